"""Shapes of the inputs of phases: a phase of other controls, and its motions in its own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ...integrators import Method
from ...systems import System, Trajectory
from ...systems._internal import TrajectoryPoint
from .._input_view import InputView
from .._rates import weights_beside
from .._statement import check_blocks, collocation_of
from .._weights import error_weight, input_weight
from ._phase import Phase


class PhaseShape:
    """What the inputs of a phase are between its nodes, and the `inner` phase of other controls.

    `view` says how they are those of the inner phase, by its kind: "plain", "linear", "blocks" or
    "points". `point` is the reference of the phase, `inner_point` that of the inner one. `systems`
    are those of other controls that were made before.
    """

    def __init__(
        self, phase: Phase, kind: str, method: str | Method, point: TrajectoryPoint,
        parameters: int, systems: dict[Any, System],
    ) -> None:  # fmt: skip
        self.phase, self.inner, self.point, system = phase, phase, point, phase.system
        self.inner_point = point
        if kind != "plain" and (system.errors is not None or system.project is not None):
            raise ValueError(
                f"phase {phase.name!r}: {system.name} has constraints, its inputs are held in each "
                "step: leave hold and blocks out"
            )
        may = check_blocks(system, phase.steps, phase.blocks) if kind == "blocks" else None
        if kind == "blocks" and may is None:  # of one step each
            kind = "plain"
        points = collocation_of(method) if kind == "points" else None
        self.view = view = InputView(system, kind, method=points, may=may)
        if kind == "plain":
            return
        key = id(system), kind
        if key not in systems:
            systems[key] = view.other_system()
        Q, R = phase.Q, None
        if phase.R is not None:
            R = input_weight("R", phase.R, system, phase.steps)
        terms = view.terms(phase, phase.steps, parameters, R)
        if points is None:
            Q, R = self._beside(Q, R if kind == "linear" else None), None
        elif R is not None:
            R = np.kron(np.diag([*points.points.values()]), R)
        self.inner_point = TrajectoryPoint(*view.reference(point.x, point.u))
        self.inner = replace(phase, system=systems[key], Q=Q, R=R, blocks=None, **terms)

    @property
    def kind(self) -> str:
        """How the view holds inputs."""
        return self.view.kind

    def _beside(self, Q: Any, R: np.ndarray | None) -> np.ndarray | None:
        """Weights on errors and on the inputs beside them."""
        if Q is None and R is None:
            return None
        system, n, m = self.phase.system, self.phase.system.n_errors, self.view.beside
        own = np.zeros((n, n)) if Q is None else error_weight("Q", Q, system, self.phase.steps)
        return weights_beside(own, np.zeros((m, m)) if R is None else R)

    def traced(self, parameters: int) -> PhaseShape:
        """The same with CasADi functions in place of Python's."""
        made = copy(self)
        made.phase, made.inner = (one.traced(parameters) for one in (self.phase, self.inner))
        return made

    def begun(self, x: np.ndarray) -> np.ndarray:
        """A state of the inner phase, with the inputs of the reference."""
        return self.view.reference(x, self.point.u).x

    def filled(self, begin: Any, length: Any, may: Any) -> Mapping[str, Any]:
        """Inputs of the inner phase that say when its step is, by name."""
        if self.kind not in ("blocks", "points"):
            return {}
        names, controls = self.inner.system.input_names, self.view.controls
        known = {"step.begin": begin, "step.length": length}
        if self.kind == "blocks":
            values = [*may, *self.point.u[controls]]
            known |= dict(zip(names[-2 * len(controls) :], values, strict=True))
        return known

    def nodes(
        self, x: np.ndarray, u: np.ndarray, steps: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """States and inputs of a motion at the nodes as those of the inner phase, fills left out.

        Inputs are those of the steps or, one more, of the nodes.
        """
        N, is_held = len(steps), len(u) == len(steps)
        if self.kind == "plain":
            return x, u[:N]

        def inputs(share: float) -> np.ndarray:
            return u if is_held else u[:-1] + share * np.diff(u, axis=0)

        beside, own = self.view.controls_of(inputs, steps, is_held=is_held)
        others = u[:N, self.view.others]
        fills = np.zeros((N, self.inner.system.n_inputs - own.shape[1] - others.shape[1]))
        return np.hstack([x, beside]), np.hstack([own, others, fills])

    def read(self, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> Trajectory:
        """Nodes of the inner phase, with its inputs in each step, as a motion of the phase."""
        system, view = self.phase.system, self.view
        group, inputs, hold = system.state, system.inputs, view.hold
        if self.kind == "plain":
            return Trajectory(group, t, x, u, inputs=inputs)
        lower, upper = (each[view.controls] for each in system.input_bounds)
        if len(t) == 1:  # it vanished
            full = self.point.u[None].copy()
            if view.beside:
                full[:, view.controls] = np.clip(x[:, view.nq :], lower, upper)
            return Trajectory.unchecked(group, t, x[:, : view.nq], full, inputs, "first")
        t, x, values = view.values(t, x, u, p[: system.n_parameters], np.diff(t))
        full = view.all_inputs(np.clip(values, lower, upper), u)
        return Trajectory.unchecked(group, t, x, full, inputs, hold)
