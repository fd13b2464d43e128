"""Inputs that are linear, polynomials or the same over several steps: plans of other controls.

The controls of the problem that is solved are rates of the inputs, or their values at points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen._internal import check_options, check_shape
from ..systems import System, Trajectory
from ..systems._internal import check_start, lagrange_weights, point_states
from ._problem import OptimalControlProblem
from ._rates import (
    beside_blocks,
    beside_inputs,
    beside_points,
    motion_at_points,
    with_free_rates,
    with_points,
)
from ._reference import ReferenceSamples, sample_reference
from ._solution import DERIVED, OptimalSolution
from ._solver import Solver, make_solver
from ._statement import AT_POINTS, collocation_of

# The search for the first input begins this share of its range inside of its limits.
FIRST_INSIDE = 1e-2


def solved_with_shapes(
    problem: OptimalControlProblem, starts: Sequence[Any], solver: Solver | str | None,
    refine: float | None, options: dict[str, Any],
) -> list[OptimalSolution]:  # fmt: skip
    """See `OptimalControlProblem.solve` and `solve_many`, with hold= or blocks=."""
    system = problem.system
    shape = shape_of(problem)
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
    if options.get("arrival") is not None:
        n, weight = system.n_errors, shape.inner.arrival.copy()
        weight[:n, :n] = check_shape("arrival", options["arrival"], (n, n))
        options["arrival"] = weight
    first = shape.first(samples, options["guess"], values)
    begun = np.array([[*x0, *first] for x0 in known])
    if len(begun) == 1:
        found = [shape.inner.solve(begun[0], solver=solver, **options)]
    else:
        found = shape.inner.solve_many(begun, solver=solver, **options)
    for one in found:
        one._finish()
    return [shape.read(one, samples, wanted) for one in found]


def shape_of(problem: OptimalControlProblem) -> InputShape:
    """What inputs of a problem with hold= or blocks= are, made once."""
    if "shape" not in problem._kept:
        problem._kept["shape"] = (_AtPoints if problem.hold == AT_POINTS else _ByRates)(problem)
    return problem._kept["shape"]


class InputShape(ABC):
    """What a problem's inputs are between its nodes; `inner` is the problem that is solved."""

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

    @abstractmethod
    def changes(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Changes (k, …) of a plan of the inner problem as those of states and inputs."""

    @abstractmethod
    def gradients(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its transpose: gradients by states and inputs as those by the inner ones, and by p."""

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


class _ByRates(InputShape):
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

    def changes(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        n, m, may = self.system.n_errors, len(self.controls), self.problem.may_change
        values = x[..., n:]
        if may is not None:
            values = values[:, :-1] + self.problem.steps[:, None] * may * u[..., :m]
        return x[..., :n], values

    def gradients(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        N, n, may = self.problem.horizon, self.system.n_errors, self.problem.may_change
        of_x, of_u = np.zeros((N + 1, n + u.shape[1])), np.zeros((N, u.shape[1]))
        of_x[:, :n], of_x[: len(u), n:] = x, u
        if may is not None:
            of_u[:] = self.problem.steps[:, None] * may * u
        return of_x, of_u, np.zeros(len(self.problem.nominal_parameters))


class _AtPoints(InputShape):
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
        problem, system = self.problem, self.system
        setting, own = found._setting, found._setting.p[: system.n_parameters]
        given = found.t, found.x, found.u, own, problem.steps
        t, x, values = motion_at_points(self.inner.system, self.method, *given)
        reference = sample_reference(system, wanted, t, own)
        box, u = problem.input_limits.exactly(setting.p), reference.u.copy()
        u[:, self.controls] = np.clip(values, box.lower, box.upper)
        group, inputs = system.state, system.inputs
        return replace(
            found, problem=problem, _inner=found,
            trajectory=Trajectory.unchecked(group, t, x, u, inputs, "first"),
            reference=Trajectory.unchecked(group, t, reference.x, reference.u, inputs, "first"),
        )  # fmt: skip

    def changes(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        count, N, m, c = len(x), self.problem.horizon, len(self.controls), self.method.c
        along, own = self._linearized[0], self.system.n_parameters
        at = self._arguments(found)
        states = np.empty((count, N, len(c), x.shape[-1]))
        for k in range(count):
            dp = np.tile(p[k, :own, None], (1, N))
            states[k] = np.asarray(along(*at, x[k, :-1].T, u[k].T, dp)).T.reshape(states.shape[1:])
        states[:, :, -1] = x[:, 1:]
        points = u.reshape(count, N, -1, m)
        begin, values = self._weights[:1] @ points[:, 0], self._weights[1:] @ points
        states = np.concatenate([x[:, :1], states.reshape(count, N * len(c), -1)], axis=1)
        return states, np.concatenate([begin, values.reshape(count, N * len(c), m)], axis=1)

    def gradients(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        N, c = self.problem.horizon, self.method.c
        of = x[1:].reshape(N, len(c), -1).copy()
        of_x = np.concatenate([x[:1], of[:, -1]])
        of[:, -1] = 0.0
        found_by = self._linearized[1](*self._arguments(found), of.reshape(N, -1).T)
        by_x, by_u, by_p = (np.asarray(part).T for part in found_by)
        of_x[:-1] += by_x
        of_u = self._weights[1:].T @ u[1:].reshape(N, len(c), -1)
        of_u[0] += np.outer(self._weights[0], u[0])
        of_p = np.zeros(len(self.problem.nominal_parameters))
        of_p[: self.system.n_parameters] = by_p.sum(axis=0)
        return of_x, of_u.reshape(N, -1) + by_u, of_p

    def _arguments(self, found: OptimalSolution) -> tuple[Any, ...]:
        """Arguments of the steps of a plan of the inner problem."""
        own = found._setting.p[: self.system.n_parameters]
        p = np.tile(own[:, None], (1, self.problem.horizon))
        return found.t[:-1], found.x[:-1].T, found.u.T, p, self.problem.steps

    @cached_property
    def _weights(self) -> np.ndarray:
        """Inputs at the beginning of a step and at its stages, by those at the points."""
        points = [*self.method.points]
        return np.array([lagrange_weights(points, share) for share in (0.0, *self.method.c)])

    @cached_property
    def _linearized(self) -> tuple[ca.Function, ca.Function]:
        """Changes of states at the points of all steps as tangent vectors, and the transpose.

        ``(t, x, u, p, dt, dx, du, dp) → change`` (points dim,), ``(…, of) → by_x, by_u, by_p``.
        """
        group, m = self.system.state, len(self.controls) * len(self.method.points)
        points, N = point_states(self.inner.system, self.method), self.problem.horizon
        given: list[Any] = points.sx_in() if points.is_a("SXFunction") else points.mx_in()
        t, x, u, p, dt = given
        sym = type(x).sym
        sizes = group.dim, m, p.shape[0]
        z = sym("z", sum(sizes))
        ways = ca.vertsplit(z, np.cumsum([0, *sizes]).tolist())
        X = points(*given)[0]
        moved: Any = [group.rate_matrix(x) @ ways[0], ca.vertcat(ways[1], *[0] * (u.shape[0] - m))]
        change: Any = 0
        for symbol, way in zip((x, u, p), (*moved, ways[2]), strict=True):
            change += ca.jtimes(ca.vec(X), symbol, way)
        places = [
            group.tangent_matrix(X[:, i]) @ change[i * group.nq : (i + 1) * group.nq]
            for i in range(X.shape[1])
        ]
        told: Any = ca.vertcat(*places)
        of = sym("of", told.shape[0])
        by = ca.vertsplit(ca.gradient(ca.dot(of, told), z), np.cumsum([0, *sizes]).tolist())
        apart = [sym(name, size) for name, size in zip(("dx", "du", "dp"), sizes, strict=True)]
        told = ca.substitute([told], [z], [ca.vertcat(*apart)])
        by = ca.substitute([*by], [z], [ca.DM.zeros(*z.shape)])  # linear in z
        return (
            ca.Function("along_points", [*given, *apart], told).map(N),
            ca.Function("against_points", [*given, of], [ca.densify(part) for part in by]).map(N),
        )


def _inputs(system: System, motion: Trajectory, t: np.ndarray) -> np.ndarray:
    """All inputs of a motion, nominal where it has none."""
    u = motion(t).u
    if not u.shape[-1]:
        return np.tile(system.nominal_input, (len(t), 1))
    return u if u.shape[-1] == system.n_inputs else system.full_input(u)


DERIVED["solved_with_shapes"] = solved_with_shapes
