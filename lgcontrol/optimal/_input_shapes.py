"""Plans whose inputs are linear, polynomials or the same over several steps.

The controls of the problem that is solved are rates of the inputs, or their values at points.
"""

from __future__ import annotations

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
from ._rates import view_of, with_free_rates, with_points
from ._reference import ReferenceSamples, sample_reference
from ._solution import DERIVED, OptimalSolution
from ._solver import Solver, make_solver
from ._statement import AT_POINTS

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
    samples, nodes = shape.view.at_nodes(wanted, times, problem.steps, own)
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
    made = _AtPoints if problem.hold == AT_POINTS else InputShape
    return problem._once("shape", lambda: made(problem))


class InputShape:
    """What a problem's inputs are between its nodes; `inner` is the problem that is solved.

    Its controls are rates of inputs that are linear in each step, or change in blocks.
    """

    def __init__(self, problem: OptimalControlProblem) -> None:
        self.problem, self.system, self.view = problem, problem.system, view_of(problem)
        self.controls = self.view.controls
        self.inner = (with_points if self.view.points else with_free_rates)(problem)

    def first(self, samples: ReferenceSamples, guess: Any, values: np.ndarray) -> np.ndarray:
        """What the first state of the inner problem has more, at the beginning of a search."""
        if not self.view.beside:
            return np.zeros(0)
        states = getattr(guess, "x", None)
        u = samples.u[0, self.controls] if states is None else states[0, self.view.nq :]
        return np.clip(u, *self.problem.input_limits.at(values).inside(FIRST_INSIDE))

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
        steps, u = np.diff(times), nodes.u[:-1].copy()

        def inputs(share: float) -> np.ndarray:
            return _inputs(self.system, motion, times[:-1] + share * steps)

        beside, own = self.view.controls_of(inputs, steps, is_held=motion.hold == "zero")
        u[:, : own.shape[1]] = own
        x = np.hstack([motion(times).x, beside])
        return Trajectory(self.inner.system.state, times, x, u)

    def read(
        self, found: OptimalSolution, samples: ReferenceSamples, wanted: Any
    ) -> OptimalSolution:
        """A plan of the inner problem in states and inputs of the problem, within their limits."""
        problem, system, n = self.problem, self.system, self.system.n_errors
        setting, view, kept = found._setting, self.view, {}
        own, box = setting.p[: system.n_parameters], problem.input_limits.exactly(setting.p)
        t, x, values = view.values(found.t, found.x, found.u, own, problem.steps)
        if view.points:
            samples = sample_reference(system, wanted, t, own)
        if view.kind == "blocks":
            kept["_setting"] = setting._replace(
                x_ref=samples.x, u_ref=samples.u, terminal=setting.terminal[:n, :n],
                arrival=setting.arrival[:n, :n], box=problem.input_limits.at(setting.p),
            )  # fmt: skip
        u = samples.u[: len(values)].copy()
        u[:, self.controls] = np.clip(values, box.lower, box.upper)
        group, inputs, hold = system.state, system.inputs, view.hold
        return replace(
            found, problem=problem, _inner=found,
            trajectory=Trajectory.unchecked(group, t, x, u, inputs, hold),
            reference=Trajectory.unchecked(group, t, samples.x, samples.u, inputs, hold), **kept,
            optima=tuple(
                replace(one, solution=self.read(one.solution, samples, wanted))
                for one in found.optima
            ),
        )  # fmt: skip

    def changes(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Changes (k, …) of a plan of the inner problem as those of states and inputs."""
        n, m = self.system.n_errors, len(self.controls)
        return x[..., :n], self.view.reached(x[..., n:], u[..., :m], self.problem.steps)

    def gradients(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Its transpose: gradients by states and inputs as those by the inner ones, and by p."""
        N, n, m = self.problem.horizon, self.system.n_errors, u.shape[1]
        of_x, of_u = np.zeros((N + 1, n + m)), np.zeros((N, m))
        of_x[:, :n], of_x[: len(u), n:] = x, u
        if self.view.kind == "blocks":
            of_u[:] = self.view.leads(self.problem.steps) * u
        return of_x, of_u, np.zeros(len(self.problem.nominal_parameters))


class _AtPoints(InputShape):
    """Inputs that are polynomials through their values at collocation points."""

    def changes(
        self, found: OptimalSolution, x: np.ndarray, u: np.ndarray, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `InputShape`; states at the points change with those before them."""
        count, N, m, c = len(x), self.problem.horizon, len(self.controls), self.view.method.c
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
        """See `InputShape`."""
        N, c = self.problem.horizon, self.view.method.c
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
        shares = 0.0, *self.view.method.c
        return np.array([lagrange_weights(self.view.points, share) for share in shares])

    @cached_property
    def _linearized(self) -> tuple[ca.Function, ca.Function]:
        """Changes of states at the points of all steps as tangent vectors, and the transpose.

        ``(t, x, u, p, dt, dx, du, dp) → change`` (points dim,), ``(…, of) → by_x, by_u, by_p``.
        """
        group, m = self.system.state, len(self.controls) * len(self.view.points)
        points, N = point_states(self.inner.system, self.view.method), self.problem.horizon
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
