"""Shapes of the inputs of phases: a phase of other controls, and its motions in its own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..integrators import Method
from ..systems import System, Trajectory
from ..systems._internal import (
    TrajectoryPoint,
    with_input_rates,
    with_point_inputs,
)
from ._phase import Phase
from ._rates import InputView, motion_at_points, weights_beside
from ._statement import check_blocks, collocation_of
from ._weights import error_weight, input_weight


class PhaseShape:
    """What the inputs of a phase are between its nodes, and the `inner` phase of other controls.

    Those are rates of the inputs, or their values at points. `kind`: "plain" (held), "linear" in
    each step, held in "blocks", or polynomials of "points". `may_change` (steps, m) is 1 in steps
    in which a control in blocks may change. `systems` are those of other controls that were made
    before.
    """

    def __init__(
        self, phase: Phase, kind: str, method: str | Method, point: TrajectoryPoint,
        parameters: int, systems: dict[Any, System],
    ) -> None:  # fmt: skip
        self.phase, self.kind, self.inner, self.point = phase, kind, phase, point
        system = phase.system
        self.controls, self.nq = system.input_index("control"), system.state.nq
        self.method = collocation_of(method) if kind == "points" else None
        self.points = [] if self.method is None else [*self.method.points]
        self.may_change = None
        if kind == "plain":
            return
        if system.errors is not None or system.project is not None:
            raise ValueError(
                f"phase {phase.name!r}: {system.name} has constraints, its inputs are held in each "
                "step: leave hold and blocks out"
            )
        if kind == "blocks":
            self.may_change = check_blocks(system, phase.steps, phase.blocks)
        key = id(system), kind
        if key not in systems:
            systems[key] = (
                with_point_inputs(system, self.points)
                if self.points
                else with_input_rates(system, in_blocks=kind == "blocks")
            )
        view = InputView(system, kind, points=self.points)
        about: Any = SimpleNamespace(horizon=phase.steps, nominal_parameters=np.zeros(parameters))
        bounds = [each for bound in phase.bounds for each in view.bounds(bound, about)]
        residuals, Q, R = [*map(view.residual, phase.residuals)], phase.Q, None
        if phase.R is not None:
            R = input_weight("R", phase.R, system, phase.steps)
        if self.method is not None:
            R = None if R is None else np.kron(np.diag([*self.method.points.values()]), R)
        else:
            bounds += view.known_limits()
            residuals += view.effort(R) if R is not None else []
            Q, R = self._beside(Q, R if kind == "linear" else None), None
        self.inner = replace(
            phase, system=systems[key], Q=Q, R=R, bounds=bounds, residuals=residuals,
            costs=[*map(view.cost, phase.costs)], reference=self._reference(), blocks=None,
        )  # fmt: skip

    def _beside(self, Q: Any, R: np.ndarray | None) -> np.ndarray | None:
        """Weights on errors and on the inputs beside them."""
        if Q is None and R is None:
            return None
        system, n, m = self.phase.system, self.phase.system.n_errors, len(self.controls)
        own = np.zeros((n, n)) if Q is None else error_weight("Q", Q, system, self.phase.steps)
        return weights_beside(own, np.zeros((m, m)) if R is None else R)

    def _reference(self) -> TrajectoryPoint:
        """The point of the inner phase."""
        x, u, m = self.point.x, self.point.u, len(self.controls)
        own, others = u[self.controls], np.delete(u, self.controls)
        if self.points:
            return TrajectoryPoint(x, np.concatenate([*[own] * len(self.points), others, [0, 1]]))
        more = np.concatenate([[0.0, 0.0], np.zeros(m), own]) if self.kind == "blocks" else []
        return TrajectoryPoint(self.begun(x), np.concatenate([np.zeros(m), others, more]))

    def traced(self, parameters: int) -> PhaseShape:
        """The same with CasADi functions in place of Python's."""
        made = copy(self)
        made.phase, made.inner = (one.traced(parameters) for one in (self.phase, self.inner))
        return made

    def begun(self, x: np.ndarray) -> np.ndarray:
        """A state of the inner phase, with the inputs of the reference."""
        if self.kind in ("plain", "points"):
            return x
        return np.concatenate([x, self.point.u[self.controls]])

    @property
    def more(self) -> int:
        """Inputs that the state of the inner phase has behind that of its own."""
        return 0 if self.kind in ("plain", "points") else len(self.controls)

    def filled(self, begin: Any, length: Any, may: Any) -> Mapping[str, Any]:
        """Inputs of the inner phase that say when its step is, by name."""
        if self.kind not in ("blocks", "points"):
            return {}
        names = self.inner.system.input_names
        known = {"step.begin": begin, "step.length": length}
        if self.kind == "blocks":
            m, wanted = len(self.controls), self.point.u[self.controls]
            known |= dict(zip(names[-2 * m :], [*may, *wanted], strict=True))
        return known

    def nodes(
        self, x: np.ndarray, u: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States and inputs of a motion at the nodes as those of the inner phase, fills left out.

        Inputs are those of the steps or, one more, of the nodes.
        """
        N, m = len(x) - 1, len(self.controls)
        if self.kind == "plain":
            return x, u[:N]
        at_nodes, others = u[:, self.controls], np.delete(u[:N], self.controls, axis=1)
        if self.points:
            ends = at_nodes if len(u) > N else np.concatenate([at_nodes, at_nodes[-1:]])
            held = [ends[:-1] + c * (ends[1:] - ends[:-1]) * (len(u) > N) for c in self.points]
            return x, np.hstack([*held, others, np.zeros((N, 2))])
        if self.may_change is not None:  # at the end of a step the block is what acts in it
            held = at_nodes[:N].copy()
            for k in range(1, N):
                held[k] = np.where(self.may_change[k] > 0, held[k], held[k - 1])
            at_nodes = np.concatenate([held[:1], held])
        elif len(u) == N:  # the mean of the steps beside it
            middle = (at_nodes[1:] + at_nodes[:-1]) / 2
            at_nodes = np.concatenate([at_nodes[:1], middle, at_nodes[-1:]])
        safe = np.where(lengths > 0, lengths, 1.0)
        rates = np.diff(at_nodes, axis=0) / safe[:, None]
        fills = np.zeros((N, self.inner.system.n_inputs - m - others.shape[1]))
        return np.hstack([x, at_nodes]), np.hstack([rates, others, fills])

    def read(self, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> Trajectory:
        """Nodes of the inner phase, with its inputs in each step, as a motion of the phase."""
        system, m, N = self.phase.system, len(self.controls), len(t) - 1
        group, inputs = system.state, system.inputs
        if self.kind == "plain":
            return Trajectory(group, t, x, u, inputs=inputs)
        lower, upper = (each[self.controls] for each in system.input_bounds)
        hold, others = "first", np.setdiff1d(np.arange(system.n_inputs), self.controls)
        if self.points:
            s, own = len(self.points), p[: system.n_parameters]
            rest = u[:, s * m : s * m + len(others)]
            if N:
                at = self.inner.system, self.method
                t, x, values = motion_at_points(*at, t, x, u, own, np.diff(t))
                rest = np.repeat(rest, len(self.method.c), axis=0) if self.method else rest
            else:
                values = np.tile(self.point.u[self.controls], (1, 1))
        else:
            x, values = x[:, : self.nq], x[:, self.nq :]
            rest = u[:, m : m + len(others)]
            if self.may_change is not None and N:
                hold = "zero"
                values = values[:-1] + np.diff(t)[:, None] * self.may_change * u[:, :m]
        full = np.empty((len(values), system.n_inputs))
        full[:, self.controls] = np.clip(values, lower, upper)
        full[:, others] = np.concatenate([rest, rest[-1:]])[: len(values)]
        return Trajectory.unchecked(group, t, x, full, inputs, hold)
