"""Sensitivities: how a solution moves with its start, parameters and reference, active set held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...codegen._internal import UnknownNameError, check_shape, unknown_name
from ...systems import Trajectory
from ...systems._internal import check_state
from .._input_limits import InputLimits
from .._input_shapes import shape_of
from .._plan import SCALE
from .._problem import DERIVED, OptimalControlProblem
from .._solution import OptimalSolution
from .._transcription import Nodes
from ._change import EXCEEDED, FREE, HELD, ChangeSolver, FoundChanges, Optimum, prior_derivatives
from ._planner import InteriorPointSolver

# A limit is active whose multiplier is larger than the distance from it, both in the units of the
# solver. Where both are small and neither is so many times the other, it may be either: the barrier
# leaves both at the root of its parameter.
SMALL, APART = 1e-2, 30.0
# Least distance from a limit: limits are relaxed by less.
LEAST = 1e-12
# A solution of a solver without multipliers is solved on to this tolerance, and moves by at most
# this share of the sizes of its states.
TOLERANCE, SAME = 1e-9, 1e-3
MOST_NAMED = 4


class SolutionChange(NamedTuple):
    """First-order change of a solution.

    Attributes
    ----------
    x : ndarray, shape (N + 1, n) or (N + 1, n, k)
        Of the states that the solution has, in the error coordinates at each of them. With
        ``hold="collocation"`` these are more than the nodes.
    u : ndarray, shape (N, m) or (N, m, k)
        Of the controls that it has.
    cost : float or ndarray, shape (k,)
    durations : dict
        Of the free durations of phases, by their names.
    """

    x: np.ndarray
    u: np.ndarray
    cost: Any
    durations: dict[str, Any]


class Sensitivities:
    """Derivatives of a solution, by one factorization of its optimality conditions.

    Constraints that are active stay active. Made by `OptimalSolution.sensitivities`.

    Attributes
    ----------
    names : tuple of str
        What `by` takes: "x0", "reference", then the parameters.
    active : dict of str to int
        Number of steps and nodes at which each limit is active.
    message : str
        Which limits are met without a multiplier: the derivative there is that of one side. Empty
        where the solution is differentiable.
    """

    def __init__(
        self,
        solution: OptimalSolution,
        durations: Mapping[str, int] | None = None,
        held: np.ndarray | None = None,
    ) -> None:
        """Factorize; `durations` are places of free durations among error coordinates.

        Where controls are rates that act for the times `held` (N, 1), derivatives are those of the
        inputs that they reach, which end the state.
        """
        self._held = held
        self.solution, self.problem, self._durations = solution, solution.problem, durations or {}
        self._plain = plain = solution if solution._inner is None else solution._inner
        problem, setting = plain.problem, plain._setting
        self._shape = None if plain is solution else shape_of(self.problem)
        if setting is None:
            raise ValueError(
                "the solution was read without what it was solved for: ask the one that solve() "
                "returns"
            )
        if not solution.is_success:
            raise ValueError(
                f"the solution ended {solution.status}: only optimal ones have derivatives, solve "
                "on from it or start elsewhere"
            )
        if setting.arrival.any() and setting.x0 is None:
            raise ValueError(
                "the solution does not know the start that its prior, arrival=, is about: ask one "
                "of InteriorPointSolver or NLPSolver"
            )
        self.names = ("x0", "reference", *problem.parameter_names)
        self._setting = setting
        self._solver, self._changes = _changes_of(problem)
        self.message = ""
        self._find_active()

    # -- the active set ----------------------------------------------------------------------------

    def _find_active(self) -> None:
        """What is at its limits; where it may be either, a smaller barrier parameter tells."""
        plain, solver = self._plain, self._solver
        has_all = solver.is_whole(plain.plan)
        if has_all and not self._take(plain):
            return
        self.__dict__.pop("_prior", None)
        found = solver.resolved(plain, self._setting, TOLERANCE)
        kinks = self._take(found)
        off = plain.problem.system.error(found.x, plain.x)
        size = self._at.scales[self._at.hold.shape[1] :][: solver.model.n]
        if not (found.is_success and np.abs(off / size).max(initial=0.0) <= SAME):
            k, i = np.unravel_index(int(np.abs(off / size).argmax()), off.shape)
            why = "limits are met without multipliers" if has_all else "it lacks multipliers"
            raise ValueError(
                f"the solution is not determined well enough to have derivatives: {why}, and a "
                f"solve from it to {TOLERANCE:g} ends {found.status}, with "
                f"{plain.problem.system.error_names[i]} off by {abs(off[k, i]):.2g} at node {k}. "
                "Solve by InteriorPointSolver to a smaller tolerance, and give weights to "
                "inputs that cost nothing, as terminal= of a Residual to the last linear ones"
            )
        if kinks:
            more = ", …" * (len(kinks) > MOST_NAMED)
            self.message = (
                f"not differentiable: {', '.join(kinks[:MOST_NAMED])}{more} at a limit without a "
                "multiplier; derivatives are those of one side"
            )

    def _take(self, found: Any) -> list[str]:
        """Multipliers as the problem itself has them, and what is active; names of what may be."""
        problem, setting, plan = self._plain.problem, self._setting, found.plan
        self._first = found.x[0]
        model = self._solver.model
        sides, rows, N = model.sides, model.transcription.rows, problem.horizon
        row = np.r_[sides.row, sides.equal].astype(int)
        nr, ns, n = len(rows.names), len(sides.row), model.n
        scale, scales = float(plan["kept"][SCALE]), plan["scales"][0]
        d, size = scales[:nr], scales[nr:]
        price, weight = np.zeros((N + 1, nr)), np.zeros((N + 1, nr))
        hold = np.full((N + 1, nr), FREE)
        compliance = self._solver.settings.compliance
        soft = rows.weights(setting.p)
        kinks: list[str] = []
        for j in range(ns):
            r, on = row[j], sides.active[:, j].astype(bool)
            z, s, e, y = (plan[part][:, j] for part in ("z", "s", "e", "y"))
            is_held = on & (z > s)
            is_soft = np.isfinite(soft[r])
            is_exceeded = is_held & is_soft & (e > y)
            kinks += [rows.names[r]] * bool((on & _is_either(z, s)).any())
            kinks += [rows.names[r]] * bool((on & is_soft & (z > s) & _is_either(y, e)).any())
            price[:, r] += np.where(on, sides.sign[j] * d[r] * z / scale, 0.0)
            hold[is_held, r] = HELD
            hold[is_exceeded, r] = EXCEEDED
            weight[is_exceeded, r] = (soft[r] * rows.lengths[:, r])[is_exceeded]
        for j, r in enumerate(sides.equal):
            on = sides.equal_active[:, j].astype(bool)
            price[:, r] += np.where(on, d[r] * plan["nu"][:, j] / scale, 0.0)
            hold[on, r] = HELD
        weight = np.where(hold == EXCEEDED, weight, d**2 / (compliance * scale))
        box, controls = setting.box, model.controls
        v, most = plan["u"][:, controls], size[n:]
        self._side = np.zeros(v.shape, dtype=int)
        kinky = np.zeros(v.shape, dtype=bool)
        for side, limit, z in ((-1, box.lower, plan["zl"]), (1, box.upper, plan["zu"])):
            room = np.maximum(-side * (v - limit) / most, LEAST)
            self._side[z * most > room] = side
            kinky |= _is_either(z * most, room)
        inputs = [problem.system.input_names[i] for i in controls]
        kinks += [inputs[i] for i in np.flatnonzero(kinky.any(axis=0))]
        self._at = Optimum(
            Nodes(found.t, found.x, found.u), setting,
            plan["lam"] / scale, price, hold, weight, self._side != 0, scales, scale,
            self._prior[1][:n, :n],
        )  # fmt: skip
        one_sided = hold.astype(bool)
        one_sided[:, sides.equal] = False
        counts = Counter(dict(zip(inputs, (self._side != 0).sum(axis=0).tolist(), strict=True)))
        labels = np.array(rows.names)  # several rows, such as two limits, may have one name
        counts.update({k: int(one_sided[:, labels == k].any(axis=1).sum()) for k in rows.names})
        self.active = dict(+counts)
        return list(dict.fromkeys(kinks))

    # -- forward -----------------------------------------------------------------------------------

    def by(self, name: str) -> SolutionChange:
        """Derivatives by one of `names`.

        Parameters
        ----------
        name : str
            "x0", by its error coordinates, or "reference", by a displacement of all its states in
            the tangent space of each, its inputs held. Or a parameter that
            `OptimalControlProblem.symbolic` made one, such as a mass, a weight or a limit.

        Returns
        -------
        SolutionChange
            For "x0" and "reference" with a last axis, of the coordinates.
        """
        system = self.problem.system
        if name not in self.names:
            raise UnknownNameError(unknown_name("sensitivity", name, self.names))
        if name not in ("x0", "reference"):
            return self.forward(p={name: 1.0})
        count = system.n_errors if name == "x0" else system.state.dim
        ways: Any = [{name: one} for one in np.eye(count)]
        found = self._found([self._direction(**way) for way in ways])
        x, u, cost = (np.moveaxis(part, 0, -1) for part in (*self._reached(found), found.cost))
        return SolutionChange(x, u, cost, {name: x[0, i] for name, i in self._durations.items()})

    def forward(
        self,
        *,
        x0: ArrayLike | None = None,
        p: Mapping[str, float] | None = None,
        reference: ArrayLike | None = None,
    ) -> SolutionChange:
        """Change of the solution along a direction.

        Parameters
        ----------
        x0 : array_like, shape (n,), optional
            Error coordinates of the start from x0.
        p : mapping of str to float, optional
            Changes of parameters.
        reference : array_like, shape (dim,) or (N + 1, dim), optional
            Tangent vectors of the reference's states; its inputs stay.

        Returns
        -------
        SolutionChange
        """
        change = self._given(p or {}, np.zeros_like(self._setting.p))
        found = self._found([self._direction(x0, change, reference)])
        (x,), (u,) = self._reached(found)
        times = {name: float(x[0, i]) for name, i in self._durations.items()}
        return SolutionChange(x, u, float(found.cost[0]), times)

    def _reached(self, found: FoundChanges) -> tuple[np.ndarray, np.ndarray]:
        """The same, with the inputs that rates reach in place of these."""
        x, u = self._told(found)
        return x, u if self._held is None else x[:, :-1, -u.shape[-1] :] + self._held * u

    def _told(self, found: FoundChanges) -> tuple[np.ndarray, np.ndarray]:
        """Changes of states and inputs as the problem has them."""
        if self._shape is None:
            return found.x, found.u
        return self._shape.changes(self._plain, found.x, found.u, found.p)

    def _given(self, p: Mapping[str, float], others: np.ndarray) -> np.ndarray:
        """Numbers of the parameters, by name or else as the others."""
        values, names = others.copy(), self.problem.parameter_names
        for name, value in p.items():
            if name not in names:
                raise UnknownNameError(unknown_name("parameter", name, names))
            values[names.index(name)] = value
        return values

    def _direction(
        self,
        x0: ArrayLike | None = None,
        p: np.ndarray | None = None,
        reference: ArrayLike | None = None,
    ) -> tuple[np.ndarray, ...]:
        """Changes of x_ref, u_ref, p, prices of soft rows, first state and limits of controls."""
        system, N, model = self.problem.system, self.problem.horizon, self._solver.model
        inner = self._plain.problem.system
        first, change = np.zeros(model.n), np.zeros_like(self._setting.p) if p is None else p
        moves, limits = np.zeros((N + 1, inner.state.nq)), np.zeros((N, model.m))
        if x0 is not None:
            fixed = np.setdiff1d(np.arange(system.n_errors), model.free)
            first[fixed] = check_shape("x0", x0, (system.n_errors,))[fixed]
        if change.any():
            which, _ = self._limits
            at_kink = [i for i in self._kinks if change[i]]
            if at_kink:
                name = self.problem.parameter_names[at_kink[0]]
                raise ValueError(
                    f"not differentiable by {name}: its value, {self._setting.p[at_kink[0]]:g}, is "
                    "also the limit of the system's Input or of another bound, which stays where "
                    f"it is; solve with a tighter one, p={{{name!r}: …}}, or give the Input a "
                    "wider limit"
                )
            limits = np.where(which >= 0, np.append(change, 0.0)[which], 0.0)
        if reference is not None:
            given = np.asarray(reference, dtype=float)
            ways = np.broadcast_to(
                check_shape("reference", given, (*given.shape[:-1], system.state.dim)),
                (N + 1, system.state.dim),
            )
            maps = np.asarray(inner.state.rate_matrix(self._setting.x_ref))
            moves = np.einsum("kij,kj->ki", maps[:, :, : ways.shape[1]], ways)
        if change.any() or moves.any():
            self._check_terminal()
        slope, own = self._prices_by_weight
        u_ref = np.zeros((N + 1, inner.n_inputs))
        prices, n = slope * np.append(change, 0.0)[own], model.n
        start = np.zeros(n)
        if x0 is not None:
            start[: system.n_errors] = x0
        return moves, u_ref, change, prices, self._prior[1][:n, n:] @ start, first, limits, start

    def _found(self, directions: list[tuple[np.ndarray, ...]]) -> FoundChanges:
        *data, prior, x, u, start = (np.stack(part) for part in zip(*directions, strict=True))
        found = self._checked(self._changes.forward(self._at, tuple(data), prior, x, u))
        at = self._at  # a soft row that is exceeded by e costs w (e + e²/2), its price is w (1 + e)
        ratio = np.where(at.hold == EXCEEDED, np.abs(at.price) / at.weight, 1.0)
        share = np.sign(at.price) * (ratio**2 - 1) / (2 * ratio)
        cost = found.cost + (data[3] * share).sum(axis=(1, 2))
        cost += np.hstack([found.x[:, 0], start]) @ self._prior[0]
        return found._replace(cost=cost, p=data[2])

    @cached_property
    def _prior(self) -> tuple[np.ndarray, np.ndarray]:
        """Slope and bend of the cost of a free first state, by it and by the given start."""
        model, setting = self._solver.model, self._setting
        size = 2 * model.n
        if not setting.arrival.any():
            return np.zeros(size), np.zeros((size, size))
        own = setting.p[: model.problem.system.n_parameters]
        found = prior_derivatives(model)(self._first, setting.x0, setting.arrival, own)
        return np.asarray(found[0]).ravel(), np.asarray(found[1])

    def _checked(self, found: FoundChanges) -> FoundChanges:
        if found.is_found:
            return found
        raise ValueError(
            "the solution has no derivatives: its active constraints contradict or repeat each "
            f"other, or its Hessian is singular along them ({', '.join(self.active) or 'none'} "
            "active); weigh all controls, and state each limit once"
        )

    def adjoint(
        self,
        *,
        x: ArrayLike | None = None,
        u: ArrayLike | None = None,
        durations: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:
        """Gradient of a function of the solution by all that it depends on.

        Parameters
        ----------
        x : array_like, shape (N + 1, n), optional
            Gradient of the function by the error coordinates of the nodes.
        u : array_like, shape (N, m), optional
            By the controls. Both are as many as the solution has, as in `forward`.
        durations : mapping of str to float, optional
            By the free durations of phases.

        Returns
        -------
        dict
            "x0" (n,), "reference" (N + 1, dim), and a number for each parameter. NaN where it sets
            a limit that is also that of the system.
        """
        problem, system, model = self.problem, self.problem.system, self._solver.model
        n, inner = system.n_errors, self._plain.problem.system
        sizes = len(self.solution.x), n, len(self.solution.u), len(system.input_index("control"))
        of_x, of_u = (
            np.zeros(shape) if given is None else check_shape(name, given, shape)
            for name, given, shape in (("x", x, sizes[:2]), ("u", u, sizes[2:]))
        )
        of_x = of_x.copy()
        for name, value in (durations or {}).items():
            if name not in self._durations:
                raise UnknownNameError(unknown_name("free duration", name, self._durations))
            of_x[0, self._durations[name]] += value
        more = np.zeros(len(self._setting.p))
        if self._held is not None:
            of_x[:-1, -of_u.shape[1] :] += of_u
            of_u = self._held * of_u
        if self._shape is not None:
            of_x, of_u, more = self._shape.gradients(self._plain, of_x, of_u)
        self._check_terminal()
        found = self._checked(self._changes.adjoint(self._at, of_x[None], of_u[None]))
        by_ref, _, by_p = (-part[0] for part in found.data)
        by_p += more
        slope, own = self._prices_by_weight
        np.add.at(by_p, own[own >= 0], (slope * found.left_rows[0])[own >= 0])
        which, _ = self._limits
        np.add.at(by_p, which[which >= 0], found.left_u[0][which >= 0])
        by_p[self._kinks] = np.nan
        by_x0 = found.left_first[0]
        by_x0[model.free] = 0.0
        by_x0 -= self._prior[1][model.n :, : model.n] @ found.x[0, 0]
        maps = np.asarray(inner.state.rate_matrix(self._setting.x_ref))[:, :, : system.state.dim]
        return {
            "x0": by_x0[:n], "reference": np.einsum("kij,ki->kj", maps, by_ref),
        } | dict(zip(problem.parameter_names, by_p.tolist(), strict=True))  # fmt: skip

    def predicted(
        self,
        *,
        x0: ArrayLike | None = None,
        p: Mapping[str, float] | None = None,
        reference: ArrayLike | None = None,
    ) -> OptimalSolution:
        """See `OptimalSolution.predicted`."""
        problem, solution, setting = self.problem, self.solution, self._setting
        system, start, moves = problem.system, None, None
        values = self._given(p or {}, setting.p)
        if x0 is not None:
            # A prior is about the start that was given, off which a free first state may be.
            given = solution.x[0] if setting.x0 is None else setting.x0[: system.state.nq]
            start = system.error(check_state(system, "x0", x0), given)
        if reference is not None:
            goal = check_state(system, "reference", reference)
            moves = np.asarray(system.state.minus(goal, setting.x_ref))
        found = self._found([self._direction(start, values - setting.p, moves)])
        controls, u = system.input_index("control"), solution.u.copy()
        box, (dx, du) = problem.input_limits.at(values), self._told(found)
        u[:, controls] = np.clip(u[:, controls] + du[0], box.lower, box.upper)
        x = np.asarray(system.retract(solution.x, dx[0], values[: system.n_parameters]))
        plan = solution.plan
        if self._shape is None:
            plan = plan.changed(x=x, u=u)
        if self._shape is None and "lam" in plan.layout.places:
            plan = plan.changed(lam=plan["lam"] + self._at.scale * found.lam[0])
        hold = solution.trajectory.hold
        moved = Trajectory.unchecked(system.state, solution.t, x, u, system.inputs, hold)
        text = "predicted to first order, not solved: a guess for solve()"
        return replace(
            solution, trajectory=moved, plan=plan, cost=solution.cost + float(found.cost[0]),
            kkt=np.nan, message=text, iterations=(), _setting=None,
        )  # fmt: skip

    # -- limits and weights that are parameters ----------------------------------------------------

    @property
    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Which parameter sets the limit that a control is at, −1 for none; if others do, too."""
        which, count = limits_by(self._plain.problem.input_limits, self._setting.p)
        side = (self._side > 0).astype(int)
        column = np.arange(self._solver.model.m)
        is_on = self._side != 0
        return np.where(is_on, which[side, column], -1), is_on & (count[side, column] > 1)

    @cached_property
    def _kinks(self) -> list[int]:
        """Parameters that set a limit which another sets, too, where the plan is at it.

        Limits of inputs that are states, as linear ones are, are rows: two of them held at one node
        with one gradient.
        """
        which, is_kink = self._limits
        found = {*which[is_kink].tolist()} - {-1}
        problem, at, model = self._plain.problem, self._at, self._solver.model
        names = np.array(model.transcription.rows.names)
        for bound in problem.bounds:
            own = {limit for limit in (bound.lower, bound.upper) if isinstance(limit, str)}
            for name in {*names.tolist()} if own else ():
                if name != bound.label and not name.startswith(
                    (f"{bound.label}.", bound.label + "[")
                ):
                    continue
                held = (at.hold == HELD) & (names == name)
                nodes = np.flatnonzero(held.sum(axis=1) > 1)
                if len(nodes) and _has_twins(model.expand(at.nodes, at.setting), held, nodes):
                    found |= {problem.parameter_names.index(limit) for limit in own}
        return sorted(found)

    @property
    def _prices_by_weight(self) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the prices of exceeded rows by the parameters that are their weights."""
        rows = self._solver.model.transcription.rows
        is_set = (self._at.hold == EXCEEDED) & (rows.parameter >= 0)
        own = np.broadcast_to(rows.parameter, is_set.shape)
        weight = np.append(self._setting.p, 1.0)[rows.parameter]
        slope = np.where(is_set, self._at.price / np.where(is_set, weight, 1.0), 0.0)
        return slope, own

    def _check_terminal(self) -> None:
        if isinstance(self._plain.problem.terminal, str):
            raise NotImplementedError(
                'terminal="riccati" follows from the reference and the parameters, and its '
                "derivative is not there: give terminal= as a weight; by x0 there is one"
            )

    def __repr__(self) -> str:
        """What is active, and what is not differentiable."""
        active = ", ".join(
            f"{name} at {count} node{'s' * (count != 1)}" for name, count in self.active.items()
        )
        told = f"Sensitivities(active: {active or 'nothing'})"
        return f"{told}; {self.message}" if self.message else told


def _is_either(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether two numbers whose product is small are of about the same size."""
    return (a < APART * b) & (b < APART * a) & (np.maximum(a, b) < SMALL)


def _has_twins(at: Any, held: np.ndarray, nodes: np.ndarray) -> bool:
    """Whether two held rows of a node have the same gradient, up to a factor."""
    slopes = at.row_slopes
    for k in nodes:
        own = slopes[k, held[k]]
        own = own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), LEAST)
        if (np.abs(np.triu(own @ own.T, 1)) > 1.0 - TOLERANCE).any():
            return True
    return False


def limits_by(limits: InputLimits, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which parameter sets the lower and upper limits (2, m) of controls, and how many set them."""
    box = np.array(limits.exactly(p)[:2])
    own = np.array([limits.lower, limits.upper])
    which, count = np.full(box.shape, -1), ((own == box) & np.isfinite(box)).astype(int)
    for i, side, limit, _ in limits.sides:
        is_named = isinstance(limit, str)
        value = p[limits._parameters.index(limit)] if is_named else limit
        if value == box[side, i]:
            count[side, i] += 1
            if is_named:
                which[side, i] = limits._parameters.index(limit)
    return which, count


def _changes_of(problem: OptimalControlProblem) -> tuple[InteriorPointSolver, ChangeSolver]:
    """What is derived of a problem, for all its solutions; compiled if a solver of it is."""
    stages = problem._kept.get("stages")
    kept = problem._kept.get("sensitivities")
    if kept is None or kept[0] is not stages:
        solver = InteriorPointSolver(problem)
        if stages is not None:
            solver._take_stages(stages)
        _ = solver.memory
        made = ChangeSolver(solver.model, solver.settings, solver._stages)
        problem._kept["sensitivities"] = kept = stages, solver, made
    return kept[1:]


def sensitivities_of(solution: OptimalSolution, held: np.ndarray | None = None) -> Sensitivities:
    """Sensitivities of what a call of an MPC planned, which is solved to a small tolerance first.

    `held` are the times that its rates act, if its controls are rates; see `Sensitivities`.
    """
    if not (solution.is_success and solution.kkt <= TOLERANCE):  # of calls it is NaN
        solver, _ = _changes_of(solution.problem)
        solution = solver.resolved(solution, solution._setting, TOLERANCE)
    return Sensitivities(solution, held=held)


def predicted(solution: OptimalSolution, **changes: Any) -> OptimalSolution:
    """See `OptimalSolution.predicted`."""
    return Sensitivities(solution).predicted(**changes)


DERIVED["sensitivities"] = Sensitivities
DERIVED["predicted"] = predicted
