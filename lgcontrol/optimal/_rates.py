"""Rates: weights and limits on how fast inputs change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Value, named_options
from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..systems import System
from ..systems._internal import (
    INPUT,
    block_leads,
    lagrange_weights,
    point_states,
    polynomial_inputs,
    with_input_rates,
    with_point_inputs,
)
from ._bounds import Bound, PointRows, input_of
from ._places import control_places
from ._problem import OptimalControlProblem
from ._reference import ReferenceSamples, sample_reference
from ._rows import expression_of
from ._statement import AT_POINTS, collocation_of
from ._terms import Cost, Residual
from ._weights import WeightLike, input_weight

# Weight of the rates of linear inputs, as a share of what R makes of them in a step.
LEAST_RATE = 1e-9


@named_options
@dataclass(frozen=True, eq=False)
class Rates:
    """Weight and limit of the rates of a system's controls.

    Inputs are held over steps. The rate of a step is the change from the input of the step before
    it, divided by the step's length.

    Parameters
    ----------
    weight : float, array_like or mapping
        W of ``½ ṙᵀ W ṙ`` per s, in 1 over units per s squared; positive definite. A number, a
        diagonal, a matrix or a mapping from names of controls, as R has them.
    limit : float, array_like or mapping
        Largest rate in units of the input per s: a number, one for each control, or by names, the
        others being free.

    Examples
    --------
    >>> Rates(weight=0.01, limit=5.0).limit
    5.0
    """

    weight: WeightLike = 1e-3
    limit: ArrayLike | Mapping[str, float] = np.inf

    def limits(self, system: System) -> np.ndarray:
        """Largest rates of the controls of a system, shape (m,)."""
        places, m = control_places(system), len(system.input_index("control"))
        found = np.full(m, np.inf)
        if isinstance(self.limit, Mapping):
            for name, value in self.limit.items():
                if name not in places:
                    raise UnknownNameError(unknown_name("control", name, places))
                found[places[name]] = value
        elif np.ndim(self.limit):
            found[:] = check_shape("limit of the rates", self.limit, (m,), finite=False)
        else:
            found[:] = self.limit
        if not (found > 0).all():
            raise ValueError(f"the limit of rates must be positive, got {self.limit}")
        return found


def with_rates(
    problem: OptimalControlProblem, rates: Rates, *, period: float | None = None
) -> OptimalControlProblem:
    """The same problem with the rates of its controls weighed and bounded.

    Its state is that of the problem and a block "input", the controls that act until then. A solve
    starts from the state and the inputs that act now. Its controls are their rates, R weighs what
    the inputs are off the reference's as before. Hard and soft bounds hold as they were stated.

    Parameters
    ----------
    problem : OptimalControlProblem
        Of a continuous system.
    rates : Rates
    period : float, optional
        Time in s over which an input is held; a step if left out.

    Returns
    -------
    OptimalControlProblem

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import Input
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "N", -1, 1)])
    >>> problem = OptimalControlProblem(cart, 20, 0.1, R=1e-3, reference=[1.0])
    >>> plan = with_rates(problem, Rates(weight=0.01, limit=2.0)).solve([0.0, 0.0])
    >>> bool(abs(plan.x[:, 1]).max() <= 1.0), bool(abs(plan.u).max() <= 2.0)
    (True, True)
    """
    if problem.hold == AT_POINTS or problem.may_change is not None:
        raise ValueError(
            "rates need inputs that are held or linear and may change in every step: leave "
            'blocks and hold="collocation" out, or limit the rates of its inputs by Bound. '
            "MPC(…, rates=…, blocks=…) plans in blocks"
        )
    view = InputView(problem.system, "linear")
    if problem.hold == "zero":
        held = problem.dt if period is None else min(period, problem.dt)
        view = InputView(problem.system, "rates", held)
    weight = input_weight("weight of the rates", rates.weight, problem.system)
    return _beside(problem, view, rates, weight)


def with_linear_inputs(problem: OptimalControlProblem) -> OptimalControlProblem:
    """The problem of rates, held in each step, from inputs that act now; as `with_free_rates`."""
    return _beside(problem, InputView(problem.system, "linear"), Rates(), _least_rates(problem))


def with_free_rates(
    problem: OptimalControlProblem, rates: Rates | None = None
) -> OptimalControlProblem:
    """The problem of rates, held in each step, for inputs that are linear or change in blocks.

    Its state is that of the problem and a block "input": linear inputs, free at the start, or those
    that were held until then. R weighs the inputs. Rates have a weight that tells plans apart and
    changes none, unless some are given: the rate of a block is its change over the length of its
    first step. The reference of blocks is `beside_blocks`.
    """
    view = InputView(problem.system, "linear" if problem.hold == "first" else "blocks")
    weight = _least_rates(problem)
    if rates is None:
        rates = Rates()
    else:
        weight = input_weight("weight of the rates", rates.weight, problem.system)
    return _beside(problem, view, rates, weight, is_free=view.kind == "linear")


def _least_rates(problem: OptimalControlProblem) -> np.ndarray:
    """Weight on rates that tells plans apart and changes none."""
    return LEAST_RATE * problem.dt**2 * problem.R


def with_points(problem: OptimalControlProblem) -> OptimalControlProblem:
    """The problem of the inputs at collocation points, with polynomials between them.

    Its limits are limits of controls; its reference is `beside_points`.
    """
    method = collocation_of(problem.method)
    _refuse_weights(problem)
    points = [*method.points]
    view = InputView(problem.system, "points", points=points)
    reference = problem.reference
    if reference is not None:
        own = problem.nominal_parameters[: problem.system.n_parameters]
        reference = beside_points(problem, reference, problem.times(), own)
    return problem.with_arguments(
        system=with_point_inputs(problem.system, points), hold="zero",
        quadrature=problem.quadrature, method=method, substeps=1,
        R=np.kron(np.diag([*method.points.values()]), problem.R), reference=reference,
        bounds=tuple(each for bound in problem.bounds for each in view.bounds(bound, problem)),
        residuals=tuple(map(view.residual, problem.residuals)),
        costs=tuple(map(view.cost, problem.costs)),
    )  # fmt: skip


def beside_points(
    problem: OptimalControlProblem, wanted: Any, times: np.ndarray, own: np.ndarray
) -> ReferenceSamples:
    """A reference as one of `with_points`: inputs at all points of each step."""
    system = problem.system
    controls = system.input_index("control")
    others = np.setdiff1d(np.arange(system.n_inputs), controls)
    length = np.append(problem.steps, problem.steps[-1])
    known = sample_reference(system, wanted, times, own)
    parts = []
    for c in collocation_of(problem.method).points:
        at = times + c * length
        is_fixed = isinstance(wanted, ReferenceSamples)
        samples = known if is_fixed else sample_reference(system, wanted, at, own)
        parts.append(samples.u[:, controls])
    columns = [*parts, known.u[:, others], times[:, None], length[:, None]]
    return ReferenceSamples(known.x, np.hstack(columns))


def _refuse_weights(problem: OptimalControlProblem) -> None:
    if problem.weights:
        raise ValueError(
            f"weights that are parameters do not go together with {_called(problem)}: "
            + ", ".join(problem.weights)
            + "; hold inputs in each step, without blocks or rates, or give numbers, with a new "
            "problem for each; weights of a Residual or a Cost may be parameters"
        )


def _called(problem: OptimalControlProblem) -> str:
    if problem.hold != "zero":
        return f'hold="{problem.hold}"'
    return "rates" if problem.may_change is None else "blocks"


def _beside(
    problem: OptimalControlProblem, view: InputView, rates: Rates, R: np.ndarray, *,
    is_free: bool = False,
) -> OptimalControlProblem:  # fmt: skip
    """The problem whose controls are rates, with their limits and the weight R.

    Inputs at the start are given, or free.
    """
    system, what = problem.system, _called(problem)
    if isinstance(problem.terminal, str) and view.kind != "rates":
        raise ValueError(
            f'terminal="riccati" is of inputs held in each step: with {what} give a number'
        )
    if system.errors is not None or system.project is not None:
        raise ValueError(
            f"{system.name} has constraints, so that its inputs are held in each step: leave "
            f"{what} out"
        )
    _refuse_weights(problem)
    moved = with_input_rates(
        system, rates.limits(system), lead=view.held / 2, in_blocks=view.kind == "blocks"
    )
    none = np.zeros((len(view.controls),) * 2)
    terminal = problem.terminal
    if not isinstance(terminal, str):
        terminal = weights_beside(terminal, none)
    reference = problem.reference
    if reference is not None:
        own, times = problem.nominal_parameters[: system.n_parameters], problem.times()
        samples = sample_reference(system, reference, times, own)
        reference = (
            beside_blocks(problem, samples, times)
            if view.kind == "blocks"
            else beside_inputs(system, samples)
        )
    names = [moved.error_names[i] for i in problem.free_start]
    return problem.with_arguments(
        system=moved,
        quadrature=problem.quadrature,
        hold="zero",
        blocks=None,
        free=[*names, INPUT] if is_free else names,
        Q=weights_beside(problem.Q, none if view.kind == "blocks" else problem.R),
        R=R,
        terminal=terminal,
        arrival=weights_beside(problem.arrival, none) if problem.arrival.any() else None,
        reference=reference,
        bounds=tuple(each for bound in problem.bounds for each in view.bounds(bound, problem))
        + tuple(view.known_limits()),
        residuals=(*map(view.residual, problem.residuals), *view.effort(problem.R)),
        costs=tuple(map(view.cost, problem.costs)),
    )


def weights_beside(Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Weights on errors and on the inputs beside them; both may have one for each step."""
    n, m = Q.shape[-1], R.shape[-1]
    found = np.zeros((*np.broadcast_shapes(Q.shape[:-2], R.shape[:-2]), n + m, n + m))
    found[..., :n, :n], found[..., n:, n:] = Q, R
    return found


def motion_at_points(
    system: System, method: Any, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray,
    steps: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Times, states and controls at the collocation points of all steps, from those of the nodes.

    Inputs are those of the system of `with_point_inputs`.
    """
    c, N, points = np.array(method.c), len(t) - 1, [*method.points]
    within = point_states(system, method).map(N)
    X = within(t[:-1], x[:-1].T, u.T, ca.repmat(ca.DM(p), 1, N), steps)[0]
    states = np.asarray(X).T.reshape(N, len(c), -1)
    states[:, -1] = x[1:]  # stages end with the next node
    times = t[:-1, None] + c * steps[:, None]
    times[:, -1] = t[1:]
    m = len(system.input_index("control")) // len(points)
    values = u[:, : len(points) * m].reshape(N, len(points), m)
    begin = np.array(lagrange_weights(points, 0.0)) @ values[0]
    weights = np.array([lagrange_weights(points, float(each)) for each in c])
    return (
        np.concatenate([t[:1], times.ravel()]),
        np.concatenate([x[:1], states.reshape(N * len(c), -1)]),
        np.concatenate([begin[None], (weights @ values).reshape(N * len(c), m)]),
    )


def beside_blocks(
    problem: OptimalControlProblem, known: ReferenceSamples, times: np.ndarray
) -> ReferenceSamples:
    """A reference as one of `with_free_rates`, for a problem with blocks."""
    assert problem.may_change is not None
    x, u = beside_inputs(problem.system, known)
    length = np.append(problem.steps, problem.steps[-1])
    may = np.vstack([problem.may_change, np.ones(len(problem.may_change[0]))])
    wanted = known.u[:, problem.system.input_index("control")]
    return ReferenceSamples(x, np.hstack([u, times[:, None], length[:, None], may, wanted]))


def beside_inputs(system: System, known: ReferenceSamples) -> ReferenceSamples:
    """A reference of a system as one of `with_rates`: inputs beside states, and no rates."""
    controls = system.input_index("control")
    others = np.setdiff1d(np.arange(system.n_inputs), controls)
    rest = np.zeros((len(known.x), len(controls)))
    return ReferenceSamples(
        np.hstack([known.x, known.u[:, controls]]), np.hstack([rest, known.u[:, others]])
    )


class InputView:
    """States, inputs and terms of a system in those of the one with rates.

    `kind`: "rates" of inputs that are `held` for a time, in s, "linear" in each step, held in
    "blocks", or polynomials through "points", which are shares of a step.
    """

    def __init__(
        self, system: System, kind: str, held: float = 0.0, points: Sequence[float] = ()
    ) -> None:
        self.system, self.kind, self.held, self.nq = system, kind, held, system.state.nq
        self.points = points
        self.controls = system.input_index("control").tolist()
        self.others = [i for i in range(system.n_inputs) if i not in self.controls]

    def acting(self, t: Value, x: Value, u: Value) -> Value:
        """All inputs of the system in a step."""
        if self.kind == "points":
            return polynomial_inputs(self.system, self.points, t, u)
        found: list[Any] = [None] * self.system.n_inputs
        leads = [self.held] * len(self.controls)
        if self.kind == "blocks":
            leads = block_leads(self.system, t, u)
        for k, i in enumerate(self.controls):
            found[i] = x[self.nq + k] + leads[k] * u[k]
        for k, i in enumerate(self.others):
            found[i] = u[len(self.controls) + k]
        return ca.vertcat(*found)

    def effort(self, R: np.ndarray) -> Iterator[Residual]:
        """What R weighs, where it is no error of the state."""
        if self.kind == "blocks":
            m = len(self.controls)

            def function(t: Value, x: Value, u: Value, p: Value) -> Value:
                return self.acting(t, x, u)[self.controls] - u[u.shape[0] - m :]

            yield Residual(function, R, name="effort")

    def residual(self, term: Residual) -> Residual:
        """A residual of the system's state and inputs."""

        def function(t: Value, x: Value, u: Value, p: Value) -> Value:
            return term.expression(self.system, t, x[: self.nq], self.acting(t, x, u), p)

        return Residual(function, term.weight, term.terminal, term.name, term.group, at=term.at)

    def cost(self, term: Cost) -> Cost:
        """A cost of the system's state and inputs."""

        def function(t: Value, x: Value, u: Value, p: Value) -> Value:
            return term.expression(type(x), t, x[: self.nq], self.acting(t, x, u), p)

        return Cost(function, term.weight, term.terminal, term.name, at=term.at)

    def bounds(self, bound: Bound, problem: OptimalControlProblem) -> Iterator[Bound]:
        """A bound on the system's state and inputs, one for each of its rows."""
        i, at, N = input_of(self.system, bound), bound.at, problem.horizon
        has_points = self.kind == "points"
        if i is not None and i in self.controls and has_points and bound.soft is None:
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
        if i in self.controls and not has_points:  # what acts in a step is the block's at its end
            is_linear = self.kind == "linear"
            if at != "terminal" or is_linear:
                if is_linear:  # the block is the input at each node
                    at = "both" if at == "path" else at
                elif isinstance(at, range):
                    at = range(at.start + 1, min(at.stop, problem.horizon) + 1, at.step)
                else:
                    at = range(1, 2) if at == "start" else "both"
                k = self.nq + self.controls.index(i)
                yield Bound(
                    lambda t, x, u, p: x[k], bound.lower, bound.upper, bound.soft, at, bound.label
                )
            return
        sizes = (1, self.nq, self.system.n_inputs, len(problem.nominal_parameters), self.nq)
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
            if self.kind == "points" and at != "terminal" and ca.depends_on(column, symbols[2]):
                rows = PointRows(function, (label,))
            # Linear inputs act at the last node, too.
            whole = self.kind == "linear" and at == "path" and of_inputs[row]
            yield Bound(rows, lower, upper, bound.soft, "both" if whole else at, label)

    def known_limits(self) -> Iterator[Bound]:
        """What the system says of its controls."""
        for k, i in enumerate(self.controls):
            entry = self.system.inputs[i]
            if np.isfinite([entry.lower, entry.upper]).any():
                yield Bound(
                    lambda t, x, u, p, k=k: x[self.nq + k],
                    entry.lower,
                    entry.upper,
                    name=entry.name,
                )
