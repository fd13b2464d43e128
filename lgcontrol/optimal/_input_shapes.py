"""Inputs that are linear, polynomials or the same over several steps: plans of other controls.

The controls of the problem that is solved are rates of the inputs, or their values at points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from ..codegen._internal import check_options
from ..systems import System, Trajectory
from ..systems._internal import check_start, lagrange_weights, point_states
from ._problem import OptimalControlProblem
from ._rates import beside_blocks, beside_inputs, beside_points, with_free_rates, with_points
from ._reference import ReferenceSamples, sample_reference
from ._solution import DERIVED, OptimalSolution
from ._solver import Solver, make_solver
from ._statement import AT_POINTS, collocation_of

# The search for the first input begins this share of its range inside of its limits.
FIRST_INSIDE = 1e-2


def solved_with_shapes(
    problem: OptimalControlProblem,
    starts: Sequence[Any],
    solver: Solver | str | None,
    refine: float | None,
    options: dict[str, Any],
) -> list[OptimalSolution]:
    """See `OptimalControlProblem.solve` and `solve_many`, with hold= or blocks=."""
    system = problem.system
    if "shape" not in problem._kept:
        problem._kept["shape"] = (_AtPoints if problem.hold == AT_POINTS else _ByRates)(problem)
    shape: _InputShape = problem._kept["shape"]
    chosen: Any = type(make_solver(solver, shape.inner))
    check_options(options, problem.solve, chosen.solve)
    values = problem.parameter_values(options.get("p"))
    own, times = values[: system.n_parameters], problem.times(options.get("t0", 0.0))
    known = [check_start(system, "x0", x0, own) for x0 in starts]
    if refine is not None:
        given = options | {"solver": solver}
        return [DERIVED["refined"](problem, x0, refine, given) for x0 in known]
    wanted = options.get("reference")
    wanted = problem.reference if wanted is None else wanted
    samples, nodes = shape.reference(wanted, times, own)
    guess = options.get("guess")
    options = options | {"reference": nodes, "guess": shape.guess(guess, times, nodes)}
    first = shape.first(samples, options["guess"], values)
    begun = np.array([[*x0, *first] for x0 in known])
    if len(begun) == 1:
        found = [shape.inner.solve(begun[0], solver=solver, **options)]
    else:
        found = shape.inner.solve_many(begun, solver=solver, **options)
    for one in found:
        one._finish()
    return [shape.read(one, samples, wanted) for one in found]


class _InputShape(ABC):
    """What a problem's inputs are between its nodes, and the problem of other controls.

    Attributes
    ----------
    inner : OptimalControlProblem
        That is solved.
    """

    inner: OptimalControlProblem

    def __init__(self, problem: OptimalControlProblem) -> None:
        self.problem, self.system = problem, problem.system
        self.controls = problem.system.input_index("control")

    @abstractmethod
    def reference(
        self, wanted: Any, times: np.ndarray, own: np.ndarray
    ) -> tuple[ReferenceSamples, ReferenceSamples]:
        """A reference at the nodes, of the problem and of the inner one."""

    @abstractmethod
    def first(self, samples: ReferenceSamples, guess: Any, values: np.ndarray) -> np.ndarray:
        """What the first state of the inner problem has more, at the beginning of a search."""

    @abstractmethod
    def moved(self, motion: Trajectory, times: np.ndarray, nodes: ReferenceSamples) -> Trajectory:
        """A motion of the system as one of the inner problem."""

    @abstractmethod
    def read(
        self, found: OptimalSolution, samples: ReferenceSamples, wanted: Any
    ) -> OptimalSolution:
        """A plan of the inner problem in states and inputs of the problem, within their limits."""

    def guess(self, guess: Any, times: np.ndarray, nodes: ReferenceSamples) -> Any:
        """A guess of the problem as one of the inner problem."""
        if guess is None or isinstance(guess, str):
            return guess
        if isinstance(guess, tuple):
            return tuple(self.guess(one, times, nodes) for one in guess)
        motion = getattr(guess, "trajectory", guess)
        if not isinstance(motion, Trajectory):
            raise TypeError(
                "with hold= or blocks= plans start from a word, a Trajectory or a solution, not "
                f"from {guess!r}: give its closed loop, simulate(…).trajectory"
            )
        return self.moved(motion, times, nodes)


class _ByRates(_InputShape):
    """Inputs that are linear in each step, or change in blocks."""

    def __init__(self, problem: OptimalControlProblem) -> None:
        super().__init__(problem)
        self.inner = with_free_rates(problem)

    def reference(
        self, wanted: Any, times: np.ndarray, own: np.ndarray
    ) -> tuple[ReferenceSamples, ReferenceSamples]:
        samples = sample_reference(self.system, wanted, times, own)
        if self.problem.may_change is not None:
            return samples, beside_blocks(self.problem, samples, times)
        return samples, beside_inputs(self.system, samples)

    def first(self, samples: ReferenceSamples, guess: Any, values: np.ndarray) -> np.ndarray:
        states = getattr(guess, "x", None)
        u = samples.u[0, self.controls] if states is None else states[0, self.system.state.nq :]
        return np.clip(u, *self.problem.input_limits.at(values).inside(FIRST_INSIDE))

    def moved(self, motion: Trajectory, times: np.ndarray, nodes: ReferenceSamples) -> Trajectory:
        may, m = self.problem.may_change, len(self.controls)
        middle = (times[1:] + times[:-1]) / 2
        at_nodes, held = (
            _inputs(self.system, motion, t)[:, self.controls] for t in (times, middle)
        )
        if may is not None:  # at the end of a step the block is what acts in it
            for k in range(1, len(held)):
                held[k] = np.where(may[k] > 0, held[k], held[k - 1])
            at_nodes = np.concatenate([held[:1], held])
        elif motion.hold == "zero":  # at a node the mean of the steps beside it
            at_nodes = np.concatenate([held[:1], (held[1:] + held[:-1]) / 2, held[-1:]])
        u = nodes.u[:-1].copy()
        u[:, :m] = np.diff(at_nodes, axis=0) / np.diff(times)[:, None]
        x = np.hstack([motion(times).x, at_nodes])
        return Trajectory(self.inner.system.state, times, x, u)

    def read(
        self, found: OptimalSolution, samples: ReferenceSamples, wanted: Any
    ) -> OptimalSolution:
        problem, system, n = self.problem, self.system, self.system.n_errors
        setting, may = found._setting, problem.may_change
        values = found.x[:, system.state.nq :]
        own: dict[str, Any] = {}
        if may is not None:
            values = values[:-1] + problem.steps[:, None] * may * found.u[:, : len(self.controls)]
            own["_setting"] = setting._replace(
                x_ref=samples.x, u_ref=samples.u, terminal=setting.terminal[:n, :n],
                arrival=setting.arrival[:n, :n], box=problem.input_limits.at(setting.p),
            )  # fmt: skip
        box = problem.input_limits.exactly(setting.p)
        u = samples.u[: len(values)].copy()
        u[:, self.controls] = np.clip(values, box.lower, box.upper)
        group, inputs, hold, t = system.state, system.inputs, problem.hold, found.t
        x = found.x[:, : group.nq]
        return replace(
            found, problem=problem, _inner=found,
            trajectory=Trajectory.unchecked(group, t, x, u, inputs, hold),
            reference=Trajectory.unchecked(group, t, samples.x, samples.u, inputs, hold),
            **own,
        )  # fmt: skip


class _AtPoints(_InputShape):
    """Inputs that are polynomials through their values at collocation points."""

    def __init__(self, problem: OptimalControlProblem) -> None:
        super().__init__(problem)
        self.inner, self.method = with_points(problem), collocation_of(problem.method)

    def reference(
        self, wanted: Any, times: np.ndarray, own: np.ndarray
    ) -> tuple[ReferenceSamples, ReferenceSamples]:
        samples = sample_reference(self.system, wanted, times, own)
        return samples, beside_points(self.problem, wanted, times, own)

    def first(self, samples: ReferenceSamples, guess: Any, values: np.ndarray) -> np.ndarray:
        return np.zeros(0)

    def moved(self, motion: Trajectory, times: np.ndarray, nodes: ReferenceSamples) -> Trajectory:
        u, m = nodes.u[:-1].copy(), len(self.controls)
        for i, c in enumerate(self.method.points):
            at = times[:-1] + c * np.diff(times)
            u[:, i * m : (i + 1) * m] = _inputs(self.system, motion, at)[:, self.controls]
        return Trajectory(self.system.state, times, motion(times).x, u)

    def read(
        self, found: OptimalSolution, samples: ReferenceSamples, wanted: Any
    ) -> OptimalSolution:
        problem, system, c = self.problem, self.system, self.method.c
        N, m, s, points = problem.horizon, len(self.controls), len(c), [*self.method.points]
        setting, own = found._setting, found._setting.p[: system.n_parameters]
        within = point_states(self.inner.system, self.method).map(N)
        X = within(found.t[:-1], found.x[:-1].T, found.u.T, ca.repmat(own, 1, N), problem.steps)[0]
        states = np.asarray(X).T.reshape(N, s, -1)
        states[:, -1] = found.x[1:]  # stages end with the next node
        x = np.concatenate([found.x[:1], states.reshape(N * s, -1)])
        t = found.t[:-1, None] + np.array(c) * problem.steps[:, None]
        t[:, -1] = found.t[1:]
        t = np.concatenate([found.t[:1], t.ravel()])
        values = found.u[:, : len(points) * m].reshape(N, len(points), m)
        begin = np.array(lagrange_weights(points, 0.0)) @ values[0]
        weights = np.array([lagrange_weights(points, each) for each in c])
        values = (weights @ values).reshape(N * s, m)
        reference = sample_reference(system, wanted, t, own)
        box, u = problem.input_limits.exactly(setting.p), reference.u.copy()
        u[:, self.controls] = np.clip(np.concatenate([begin[None], values]), box.lower, box.upper)
        group, inputs = system.state, system.inputs
        return replace(
            found, problem=problem, _inner=found,
            trajectory=Trajectory.unchecked(group, t, x, u, inputs, "first"),
            reference=Trajectory.unchecked(group, t, reference.x, reference.u, inputs, "first"),
        )  # fmt: skip


def _inputs(system: System, motion: Trajectory, t: np.ndarray) -> np.ndarray:
    """All inputs of a motion, nominal where it has none."""
    u = motion(t).u
    if not u.shape[-1]:
        return np.tile(system.nominal_input, (len(t), 1))
    return u if u.shape[-1] == system.n_inputs else system.full_input(u)


DERIVED["solved_with_shapes"] = solved_with_shapes
