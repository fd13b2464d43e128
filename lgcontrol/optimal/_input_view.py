"""InputView: inputs between nodes as other controls, rates or values at points, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..systems import System
from ..systems._internal import (
    block_leads,
    lagrange_weights,
    point_states,
    polynomial_inputs,
    with_input_rates,
    with_point_inputs,
)
from ._bounds import Bound, PointRows, input_of
from ._reference import ReferenceSamples, sample_reference
from ._rows import expression_of
from ._statement import AT_POINTS
from ._terms import Cost, Residual

# What inputs are between the nodes, by the word of `hold`.
KINDS = {"zero": "plain", "first": "linear", AT_POINTS: "points"}


class InputView:
    """States, inputs and terms of a system in those of one with other controls, and back.

    `kind` is "plain" where nothing changes, or "rates" of inputs that are `held` for a time in s.
    "linear" inputs are so in each step, "blocks" hold them, and "points" are the values of their
    polynomials in a collocation method. `may` (N, m) is 1 in steps in which a control in blocks may
    change. States of the other system end with so many inputs `beside` them.
    """

    def __init__(
        self, system: System, kind: str, *, held: float = np.inf, method: Any = None,
        may: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        self.system, self.kind, self.held, self.nq = system, kind, held, system.state.nq
        self.method, self.may = method, may
        self.points = [] if method is None else [*method.points]
        self.controls = system.input_index("control")
        self.others = np.setdiff1d(np.arange(system.n_inputs), self.controls)
        self.beside = 0 if kind in ("plain", "points") else len(self.controls)

    @property
    def hold(self) -> str:
        """What inputs are between the times of `values`, as of a Trajectory."""
        return "first" if self.kind in ("linear", "points") else "zero"

    def other_system(self, limit: Any = np.inf) -> System:
        """The system with other controls; rates may have limits."""
        if self.points:
            return with_point_inputs(self.system, self.points)
        lead = self.held / 2 if self.kind == "rates" else 0.0
        return with_input_rates(self.system, limit, lead=lead, in_blocks=self.kind == "blocks")

    # -- numbers -----------------------------------------------------------------------------------

    def reference(
        self, x: np.ndarray, u: np.ndarray, begin: Any = 0.0, length: Any = 1.0, may: Any = 0.0,
        at_points: Sequence[np.ndarray] = (),
    ) -> ReferenceSamples:  # fmt: skip
        """States and inputs to follow, with what says when steps begin and how long they are.

        Controls at points are those given, or the same at all of them.
        """
        if self.kind == "plain":
            return ReferenceSamples(x, u)
        own, others, when = u[..., self.controls], u[..., self.others], []
        if self.kind in ("blocks", "points"):
            one = (*u.shape[:-1], 1)
            when = [np.broadcast_to(np.asarray(v)[..., None], one) for v in (begin, length)]
        if self.points:
            parts = at_points or [own] * len(self.points)
            return ReferenceSamples(x, np.concatenate([*parts, others, *when], axis=-1))
        more = [np.broadcast_to(may, own.shape), own] if self.kind == "blocks" else []
        return ReferenceSamples(
            np.concatenate([x, own], axis=-1),
            np.concatenate([np.zeros_like(own), others, *when, *more], axis=-1),
        )

    def at_nodes(
        self, wanted: Any, times: np.ndarray, steps: np.ndarray, own: np.ndarray | None
    ) -> tuple[ReferenceSamples, ReferenceSamples]:
        """A reference at the nodes, of the system and of the other one; `own` are parameters."""
        samples = sample_reference(self.system, wanted, times, own)
        length, may = np.append(steps, steps[-1]), self.may
        at_points = [
            samples
            if isinstance(wanted, ReferenceSamples)
            else sample_reference(self.system, wanted, times + c * length, own)
            for c in self.points
        ]
        given = [one.u[:, self.controls] for one in at_points]
        may = 0.0 if may is None else np.vstack([may, np.ones_like(may[:1])])
        return samples, self.reference(*samples, times, length, may, given)

    def leads(self, steps: np.ndarray) -> np.ndarray:
        """Times (N, 1) or (N, m) that rates act until the inputs of a step are reached."""
        if self.may is not None:
            return steps[:, None] * self.may
        return np.minimum(self.held, steps)[:, None]

    def reached(self, beside: np.ndarray, rates: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """Inputs of the steps, of the nodes if they are linear, from those beside (…, N + 1, m)."""
        if self.kind == "linear":
            return beside
        return beside[..., :-1, :] + self.leads(steps) * rates

    def values(
        self, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, states and controls of a plan with other controls; p are the system's."""
        m = len(self.controls)
        if self.points:
            return self._at_points(t, x, u, p, steps)
        if not self.beside:
            return t, x, u[:, self.controls]
        return t, x[:, : self.nq], self.reached(x[:, self.nq :], u[:, :m], steps)

    def all_inputs(self, values: np.ndarray, u: np.ndarray) -> np.ndarray:
        """All inputs, controls as given, the others those of a plan with other controls."""
        first = max(len(self.points), 1) * len(self.controls)
        rest = u[:, first : first + len(self.others)]
        if self.points:
            rest = np.repeat(rest, len(self.method.c), axis=0)
        found = np.empty((len(values), self.system.n_inputs))
        found[:, self.controls] = values
        found[:, self.others] = np.concatenate([rest, rest[-1:]])[: len(values)]
        return found

    def controls_of(
        self, inputs: Callable[[float], np.ndarray], steps: np.ndarray, *, is_held: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Inputs beside the nodes of a motion, and controls in its steps; the guess of a plan.

        `inputs` are those (N, n_inputs) at a share of each step, which may be held there.
        """
        if self.points:
            own = [inputs(share)[:, self.controls] for share in self.points]
            return np.zeros((len(steps) + 1, 0)), np.hstack(own)
        held = inputs(0.5)[:, self.controls].copy()
        if self.may is not None:  # at the end of a step the block is what acts in it
            for k in range(1, len(held)):
                held[k] = np.where(self.may[k] > 0, held[k], held[k - 1])
            beside = np.concatenate([held[:1], held])
        elif is_held:  # at a node the mean of the steps next to it
            beside = np.concatenate([held[:1], (held[1:] + held[:-1]) / 2, held[-1:]])
        else:
            beside = np.concatenate([inputs(0.0), inputs(1.0)[-1:]])[:, self.controls]
        return beside, np.diff(beside, axis=0) / np.where(steps > 0, steps, 1.0)[:, None]

    def _at_points(
        self, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Times, states and controls at the collocation points of all steps."""
        c, N, count = np.array(self.method.c), len(t) - 1, len(self.points)
        within = point_states(self.other_system(), self.method).map(N)
        X = within(t[:-1], x[:-1].T, u.T, ca.repmat(ca.DM(p), 1, N), steps)[0]
        states = np.asarray(X).T.reshape(N, len(c), -1)
        states[:, -1] = x[1:]  # stages end with the next node
        times = t[:-1, None] + c * steps[:, None]
        times[:, -1] = t[1:]
        m = len(self.controls)
        values = u[:, : count * m].reshape(N, count, m)
        begin = np.array(lagrange_weights(self.points, 0.0)) @ values[0]
        weights = np.array([lagrange_weights(self.points, float(each)) for each in c])
        return (
            np.concatenate([t[:1], times.ravel()]),
            np.concatenate([x[:1], states.reshape(N * len(c), -1)]),
            np.concatenate([begin[None], (weights @ values).reshape(N * len(c), m)]),
        )

    # -- terms -------------------------------------------------------------------------------------

    def acting(self, t: Value, x: Value, u: Value) -> Value:
        """All inputs of the system in a step."""
        if self.points:
            return polynomial_inputs(self.system, self.points, t, u)
        found: list[Any] = [None] * self.system.n_inputs
        leads: list[Any] = [self.held if self.kind == "rates" else 0.0] * self.beside
        if self.kind == "blocks":
            leads = block_leads(self.system, t, u)
        for k, i in enumerate(self.controls):
            found[i] = x[self.nq + k] + leads[k] * u[k]
        for k, i in enumerate(self.others):
            found[i] = u[self.beside + k]
        return ca.vertcat(*found)

    def terms(
        self, stated: Any, horizon: int, parameters: int, R: np.ndarray | None
    ) -> dict[str, Any]:
        """Bounds, residuals and costs of a problem or a phase, with what R weighs beside states."""
        bounds = [each for one in stated.bounds for each in self._bounds(one, horizon, parameters)]
        residuals, costs = ([self._term(one) for one in terms]
                            for terms in (stated.residuals, stated.costs))  # fmt: skip
        if self.kind == "blocks" and R is not None:
            residuals.append(self._effort(R))
        bounds += self._known_limits() if self.beside else []
        return {"bounds": bounds, "residuals": residuals, "costs": costs}

    def _effort(self, R: np.ndarray) -> Residual:
        """What R weighs of inputs in blocks, which are no errors of the state."""
        m, controls = len(self.controls), self.controls.tolist()

        def function(t: Value, x: Value, u: Value, p: Value) -> Value:
            return self.acting(t, x, u)[controls] - u[u.shape[0] - m :]

        return Residual(function, R, name="effort")

    def _term(self, term: Residual | Cost) -> Residual | Cost:
        """A residual or a cost of the system's state and inputs."""

        def function(t: Value, x: Value, u: Value, p: Value) -> Value:
            return term.expression(self.system, t, x[: self.nq], self.acting(t, x, u), p)

        unknown = {"derivatives": None} if isinstance(term, Residual) else {}
        return replace(term, of=function, function=None, **unknown)

    def _bounds(self, bound: Bound, horizon: int, parameters: int) -> Iterator[Bound]:
        """A bound on the system's state and inputs, one for each of its rows."""
        i, at, N = input_of(self.system, bound), bound.at, horizon
        if i is not None and i in self.controls and self.points and bound.soft is None:
            names = [f"input.{self.system.input_names[i]}.{j + 1}" for j in range(len(self.points))]
            # The last point of the last step is the last node.
            if at == "terminal" or (isinstance(at, range) and N in at):
                if self.points[-1] != 1.0:
                    raise ValueError(
                        f"bound {bound.label!r} at the last node: the collocation points of "
                        'the method are all within steps: take method="radau_iia5"'
                    )
                yield replace(bound, of=names[-1], name=bound.label, at=range(N - 1, N))
            for name in names if at != "terminal" else ():
                yield replace(bound, of=name, name=bound.label)
            return
        is_linear = self.kind == "linear"
        if i in self.controls and not self.points:  # what acts in a step is the block's at its end
            if at != "terminal" or is_linear:
                if is_linear:  # the block is the input at each node
                    at = "both" if at == "path" else at
                elif isinstance(at, range):
                    at = range(at.start + 1, min(at.stop, N) + 1, at.step)
                else:
                    at = range(1, 2) if at == "start" else "both"
                k = self.nq + self.controls.tolist().index(i)
                yield Bound(
                    lambda t, x, u, p: x[k], bound.lower, bound.upper, bound.soft, at, bound.label
                )
            return
        sizes = (1, self.nq, self.system.n_inputs, parameters, self.nq)
        symbols = [self.system.symbol.sym("s", size) for size in sizes]
        column, labels = expression_of(self.system, bound, *symbols)
        if ca.depends_on(column, symbols[-1]):
            raise ValueError(
                f"bound {bound.label!r} is on a deviation from the reference: with rates, linear "
                "inputs or blocks bound a function (t, x, u, p) → deviation"
            )
        of_inputs = ca.which_depends(column, symbols[2], 1, True) if labels else []
        for row, label in enumerate(labels):

            def function(t: Value, x: Value, u: Value, p: Value, row: int = row) -> Value:
                own, now = x[: self.nq], self.acting(t, x, u)
                return expression_of(self.system, bound, t, own, now, p, own)[0][row]

            lower, upper = (
                limit if isinstance(limit, str) or not np.ndim(limit) else np.ravel(limit)[row]
                for limit in (bound.lower, bound.upper)
            )
            rows: Any = function
            if self.points and at != "terminal" and ca.depends_on(column, symbols[2]):
                rows = PointRows(function, (label,))
            # Linear inputs act at the last node, too.
            whole = is_linear and at == "path" and of_inputs[row]
            yield Bound(rows, lower, upper, bound.soft, "both" if whole else at, label)

    def _known_limits(self) -> Iterator[Bound]:
        """What the system says of its controls."""
        for k, i in enumerate(self.controls, self.nq):
            entry = self.system.inputs[i]
            if np.isfinite([entry.lower, entry.upper]).any():
                yield Bound(lambda t, x, u, p, k=k: x[k], entry.lower, entry.upper, name=entry.name)
