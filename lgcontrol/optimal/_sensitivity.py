"""Sensitivities: how a solution moves with its start, parameters and reference, active set held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import bmat, csc_matrix, eye
from scipy.sparse.linalg import splu

from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..systems import Trajectory
from ..systems._internal import check_state
from ._nlp_program import build_program
from ._plan import SCALE
from ._solution import DERIVED, OptimalSolution
from ._transcription import Nodes, Transcription

# Distance from a limit, as a share of it or of one, up to which it may be active; and that within
# which it is met exactly, so that a vanishing multiplier is a kink.
NEAR, MET = 1e-3, 1e-7
# Multipliers below this share of the largest gradient of the cost are none.
WEAK = 1e-6
# A limit with a smaller multiplier, that is not so many times its distance, may be either: the
# barrier leaves both at the root of its parameter.
SMALL, APART = 1e-2, 30.0
# Limits are told apart in so many rounds at most.
MOST_ROUNDS = 20
# Largest relative change of a box's limits by which their slopes are taken: they are linear.
NUDGE = 1e-6
MOST_NAMED = 4


class SolutionChange(NamedTuple):
    """First-order change of a solution.

    Attributes
    ----------
    x : ndarray, shape (N + 1, n) or (N + 1, n, k)
        Of the nodes, in the error coordinates at each of them.
    u : ndarray, shape (N, m) or (N, m, k)
        Of the controls.
    cost : float or ndarray, shape (k,)
    """

    x: np.ndarray
    u: np.ndarray
    cost: Any


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

    def __init__(self, solution: OptimalSolution) -> None:
        self.solution, self.problem = solution, solution.problem
        problem, setting = self.problem, solution._setting
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
        if setting.arrival.any():
            raise NotImplementedError(
                "sensitivities of problems with arrival= are not there: add the prior as a Residual"
            )
        self.names = ("x0", "reference", *problem.parameter_names)
        if "sensitivities" not in problem._kept:  # what takes long serves all its solutions
            once = Transcription(problem)
            program, layout = build_program(once)
            check = program["check"]
            program |= {"along": check.forward(1), "against": check.reverse(1)}
            problem._kept["sensitivities"] = once, program, layout
        once, self._program, self._layout = problem._kept["sensitivities"]
        self._setting, layout = setting, self._layout
        nodes = Nodes(solution.t, solution.x, solution.u)
        self._z = np.zeros(len(layout.lower[0]))
        over = once.excess(once.values(nodes, setting))
        for k, place in enumerate(layout.u):
            self._z[place] = nodes.u[k, once.controls]
        for k, place in enumerate(layout.e):
            self._z[place] = over[k, layout.soft_rows[k]]
        parts = nodes.t, nodes.x, setting.x_ref, setting.u_ref, setting.p, setting.terminal
        sizes = {"t": 0, "centre": 1, "x_ref": 2, "u_ref": 3, "p": 4, "P": 5}
        columns = [np.ravel(part) for part in (*parts, setting.arrival)]
        ends = np.cumsum([0, *map(len, columns)])
        self._places = {name: slice(ends[i], ends[i + 1]) for name, i in sizes.items()}
        self._given = np.concatenate(columns)
        self._results: Any = None
        self._names_of_rows(once)
        self._find_active()
        self._factor()

    # -- the active set ----------------------------------------------------------------------------

    def _names_of_rows(self, once: Transcription) -> None:
        """What messages call the variables and the constraints."""
        problem, layout, rows = self.problem, self._layout, once.rows
        controls = [problem.system.input_names[i] for i in once.controls]
        self._of_z = np.full(len(self._z), "", dtype=object)
        for place in layout.u:
            self._of_z[place] = controls
        for k, place in enumerate(layout.e):
            self._of_z[place] = [rows.names[r] for r in layout.soft_rows[k]]
        n, N = problem.system.n_errors, problem.horizon
        self._of_g = np.full(len(layout.lower[1]), "", dtype=object)
        at = 0
        for k in range(N + 1):
            at += n if k < N else 0
            if k == 0:
                fixed = np.setdiff1d(np.arange(n), problem.free_start)
                self._start = at + np.arange(len(fixed)), fixed
                at += len(fixed)
            for r in np.flatnonzero(rows.active[k]).tolist():
                soft = r in layout.soft_rows[k]
                sides = int(np.isfinite([rows.lower[r], rows.upper[r]]).sum()) if soft else 1
                self._of_g[at : at + sides] = rows.names[r]
                at += sides

    def _find_active(self) -> None:
        """Limits that hold with a multiplier, and these, by least squares."""
        layout = self._layout
        lower, upper = layout.limits(self._setting.box)
        g, J = self._program["jac_g"](self._z, self._given)
        slope = _column(self._program["grad_f"](self._z, self._given)[1])
        self._J, values = csc_matrix(J.sparse()), (self._z, _column(g))
        room = [
            np.minimum(v - low, high - v) / np.maximum(1.0, np.abs(v))
            for v, low, high in zip(values, lower, upper, strict=True)
        ]
        side = [
            np.where(high - v <= v - low, 1.0, -1.0)
            for v, low, high in zip(values, lower, upper, strict=True)
        ]
        equal = np.array(layout.is_equality)
        on_z, on_g = room[0] <= NEAR, equal | (room[1] <= NEAR)
        weak = WEAK * max(1.0, float(np.abs(slope).max(initial=0.0)))
        nu, own = np.zeros(len(equal)), np.zeros(len(on_z))
        for _ in range(MOST_ROUNDS):
            free = np.flatnonzero(~on_z)
            A = self._J[np.flatnonzero(on_g)][:, free]
            count = A.shape[0]
            K = bmat([[eye(len(free)), A.T], [A, -1e-12 * eye(count)]], format="csc")
            found = splu(K).solve(np.r_[-slope[free], np.zeros(count)])
            nu = np.zeros(len(equal))
            nu[on_g] = found[len(free) :]
            own = -(slope + self._J.T @ nu)
            bad_z = on_z & (own * side[0] < weak)
            bad_g = on_g & ~equal & (nu * side[1] < weak)
            if not (bad_z.any() or bad_g.any()):
                break
            # The worst of all first: multipliers change with the set.
            least = own * side[0], nu * side[1]
            worst = min(least[0][bad_z].min(initial=np.inf), least[1][bad_g].min(initial=np.inf))
            limit = worst if worst >= -weak else 0.5 * worst
            on_z &= ~(bad_z & (least[0] <= limit + weak))
            on_g &= ~(bad_g & (least[1] <= limit + weak))
        self._nu, self._on_z, self._on_g, self._slope = nu, on_z, on_g, slope
        size = max(1.0, float(np.abs(slope).max(initial=0.0)))
        kinks = [
            name
            for names, distance, on, multiplier in (
                (self._of_z, np.abs(room[0]), on_z, own * side[0] / size),
                (self._of_g, np.where(equal, np.inf, np.abs(room[1])), on_g, nu * side[1] / size),
            )
            for name in names[
                np.where(
                    on & np.isfinite(distance),
                    multiplier < np.minimum(SMALL, APART * distance),
                    distance <= MET,
                )
            ]
            if name
        ]
        self._side = side[0]
        told = list(dict.fromkeys([*self._of_z[on_z], *self._of_g[on_g & ~equal]]))
        self.active = {
            name: int((self._of_z[on_z] == name).sum() + (self._of_g[on_g & ~equal] == name).sum())
            for name in told
        }
        names = list(dict.fromkeys(kinks))
        self.message = ""
        if names:
            more = ", …" * (len(names) > MOST_NAMED)
            self.message = (
                f"not differentiable: {', '.join(names[:MOST_NAMED])}{more} at a limit without a "
                "multiplier; derivatives are those with the limit left"
            )

    def _factor(self) -> None:
        """Factors of the optimality conditions with what is active held."""
        upper = csc_matrix(self._program["hess_lag"](self._z, self._given, 1.0, self._nu).sparse())
        H = upper + upper.T
        H.setdiag(upper.diagonal())
        self._free, self._kept = np.flatnonzero(~self._on_z), np.flatnonzero(self._on_g)
        A = self._J[self._kept]
        self._H, self._A = csc_matrix(H), A
        K = bmat(
            [[self._H[self._free][:, self._free], A[:, self._free].T], [A[:, self._free], None]],
            format="csc",
        )
        try:
            self._factors = splu(K)
        except RuntimeError:
            raise ValueError(
                "the solution has no derivatives: its active constraints contradict or repeat each "
                f"other, or its Hessian is singular along them ({', '.join(self.active) or 'none'} "
                "active); weigh all controls, and state each limit once"
            ) from None

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
        if name == "x0":
            found = [self.forward(x0=one) for one in np.eye(system.n_errors)]
        elif name == "reference":
            found = [self.forward(reference=one) for one in np.eye(system.state.dim)]
        else:
            return self.forward(p={name: 1.0})
        return SolutionChange(*(np.stack(part, axis=-1) for part in zip(*found, strict=True)))

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
        dz, _, cost = self._moved(x0, p, reference)
        layout = self._layout
        return SolutionChange(
            np.array([dz[place] for place in layout.d]),
            np.array([dz[place] for place in layout.u]),
            cost,
        )

    def _moved(
        self, x0: ArrayLike | None, p: Mapping[str, float] | None, reference: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Change of the variables, of the multipliers of the constraints and of the cost."""
        system, N = self.problem.system, self.problem.horizon
        seed, limits = np.zeros(len(self._given)), np.zeros(len(self._z))
        target = np.zeros(len(self._on_g))
        if x0 is not None:
            rows, fixed = self._start
            target[rows] = check_shape("x0", x0, (system.n_errors,))[fixed]
        if p is not None:
            change = np.zeros(len(self._setting.p))
            for name, value in p.items():
                if name not in self.problem.parameter_names:
                    known = self.problem.parameter_names
                    raise UnknownNameError(unknown_name("parameter", name, known))
                change[self.problem.parameter_names.index(name)] = value
            seed[self._places["p"]] = change
            limits, is_kink = self._limits_by(change)
            if is_kink:
                raise ValueError(
                    f"not differentiable by {', '.join(p)}: the limit that it sets is also that of "
                    "the system or of another bound, give a tighter value"
                )
        if reference is not None:
            given = np.asarray(reference, dtype=float)
            moves = np.broadcast_to(
                check_shape("reference", given, (*given.shape[:-1], system.state.dim)),
                (N + 1, system.state.dim),
            )
            maps = np.asarray(system.state.rate_matrix(self._setting.x_ref))
            seed[self._places["x_ref"]] = np.einsum("kij,kj->ki", maps, moves).ravel()
        if seed.any():
            self._check_terminal()
        of_cost, of_g, of_slope = self._along(seed)
        fixed = np.flatnonzero(self._on_z)
        dz = np.zeros(len(self._z))
        dz[fixed] = limits[fixed]
        right = np.r_[
            -(of_slope + self._H @ dz)[self._free], (target - of_g - self._J @ dz)[self._kept]
        ]
        found, multipliers = self._factors.solve(right), np.zeros(len(self._on_g))
        dz[self._free] = found[: len(self._free)]
        multipliers[self._kept] = found[len(self._free) :]
        return dz, multipliers, float(of_cost + self._slope @ dz)

    def adjoint(self, *, x: ArrayLike | None = None, u: ArrayLike | None = None) -> dict[str, Any]:
        """Gradient of a function of the solution by all that it depends on.

        Parameters
        ----------
        x : array_like, shape (N + 1, n), optional
            Gradient of the function by the error coordinates of the nodes.
        u : array_like, shape (N, m), optional
            By the controls.

        Returns
        -------
        dict
            "x0" (n,), "reference" (N + 1, dim), and a number for each parameter. NaN where it sets
            a limit that is also that of the system.
        """
        problem, layout, system = self.problem, self._layout, self.problem.system
        N, n, m = problem.horizon, system.n_errors, layout.u[0].stop - layout.u[0].start
        w = np.zeros(len(self._z))
        for places, given, name, shape in (
            (layout.d, x, "x", (N + 1, n)),
            (layout.u, u, "u", (N, m)),
        ):
            if given is not None:
                for place, value in zip(places, check_shape(name, given, shape), strict=True):
                    w[place] = value
        self._check_terminal()
        count = len(self._free)
        found = self._factors.solve(np.r_[w[self._free], np.zeros(len(self._kept))])
        a, b = np.zeros(len(w)), np.zeros(len(self._on_g))
        a[self._free], b[self._kept] = found[:count], found[count:]
        by_given = self._against(-b, -a)
        of_limits = np.where(self._on_z, w - self._H @ a - self._J.T @ b, 0.0)
        by_p = by_given[self._places["p"]]
        names = problem.parameter_names
        if problem.input_limits.is_limited:
            for i, one in enumerate(np.eye(len(names))):
                slopes, is_kink = self._limits_by(one)
                by_p[i] = np.nan if is_kink else by_p[i] + of_limits @ slopes
        rows, fixed = self._start
        by_x0 = np.zeros(n)
        by_x0[fixed] = b[rows]
        maps = np.asarray(system.state.rate_matrix(self._setting.x_ref))
        of_reference = by_given[self._places["x_ref"]].reshape(N + 1, -1)
        return {
            "x0": by_x0,
            "reference": np.einsum("kij,ki->kj", maps, of_reference),
        } | dict(zip(names, by_p.tolist(), strict=True))

    def predicted(
        self,
        *,
        x0: ArrayLike | None = None,
        p: Mapping[str, float] | None = None,
        reference: ArrayLike | None = None,
    ) -> OptimalSolution:
        """See `OptimalSolution.predicted`."""
        problem, solution, setting = self.problem, self.solution, self._setting
        system, names = problem.system, problem.parameter_names
        values, start, moves = setting.p.copy(), None, None
        for name, value in (p or {}).items():
            if name not in names:
                raise UnknownNameError(unknown_name("parameter", name, names))
            values[names.index(name)] = value
        if x0 is not None:
            start = system.error(check_state(system, "x0", x0), solution.x[0])
        if reference is not None:
            goal = check_state(system, "reference", reference)
            moves = np.asarray(system.state.minus(goal, setting.x_ref))
        steps = dict(zip(names, (values - setting.p).tolist(), strict=True))
        changes = {name: step for name, step in steps.items() if step}
        dz, multipliers, cost = self._moved(start, changes or None, moves)
        dx, du = (np.array([dz[place] for place in part]) for part in self._layout[:2])
        controls, u = system.input_index("control"), solution.u.copy()
        box = problem.input_limits.at(values)
        u[:, controls] = np.clip(u[:, controls] + du, box.lower, box.upper)
        x = np.asarray(system.retract(solution.x, dx, values[: system.n_parameters]))
        plan = solution.plan.changed(x=x, u=u)
        if "lam" in plan.layout.places:
            scale = plan["kept"][SCALE]
            plan = plan.changed(lam=plan["lam"] + scale * self._layout.prices(multipliers))
        moved = Trajectory.unchecked(system.state, solution.t, x, u, system.inputs)
        text = "predicted to first order, not solved: a guess for solve()"
        return replace(
            solution, trajectory=moved, plan=plan, cost=solution.cost + cost, kkt=np.nan,
            message=text, iterations=(), _setting=None,
        )  # fmt: skip

    # -- derivatives of the program ----------------------------------------------------------------

    def _along(self, seed: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Change of cost, constraints and the Lagrangian's gradient with what is given."""
        check = self._program["check"]
        at = self._z, self._given, self._nu
        if not seed.any():
            return 0.0, np.zeros(len(self._nu)), np.zeros(len(self._z))
        none = np.zeros(len(self._z)), np.zeros(len(self._nu))
        found = self._program["along"](*at, *self._checked(check, at), none[0], seed, none[1])
        cost, g, slope, _ = (_column(value) for value in found)
        return float(cost[0]), g, slope

    def _against(self, of_g: np.ndarray, of_slope: np.ndarray) -> np.ndarray:
        """Gradient of a sum of constraints and of the Lagrangian's gradient by what is given."""
        check = self._program["check"]
        at = self._z, self._given, self._nu
        seeds = 0.0, of_g, of_slope, np.zeros(len(self._z))
        return _column(self._program["against"](*at, *self._checked(check, at), *seeds)[1])

    def _checked(self, check: Any, at: tuple[np.ndarray, ...]) -> Any:
        """Results of the program at the solution, computed once."""
        if self._results is None:
            self._results = check(*at)
        return self._results

    def _limits_by(self, change: np.ndarray) -> tuple[np.ndarray, bool]:
        """Change of the active limits of controls with parameters, and whether it has a kink."""
        found = np.zeros(len(self._z))
        limits, p = self.problem.input_limits, self._setting.p
        step = NUDGE * max(1.0, float(np.abs(p).max(initial=0.0)))
        back, here, ahead = (limits.at(p + sign * step * change)[:2] for sign in (-1.0, 0.0, 1.0))
        with np.errstate(invalid="ignore"):  # of controls without a limit
            both = np.array([np.subtract(ahead, here), np.subtract(here, back)]) / step
        both = np.nan_to_num(both)
        for place in self._layout.u:
            is_upper = self._side[place] > 0
            found[place], other = (np.where(is_upper, pair[1], pair[0]) for pair in both)
            apart = np.abs(found[place] - other) > NUDGE * np.abs(both).max(initial=1.0)
            if (apart & self._on_z[place]).any():
                return found, True
        return found, False

    def _check_terminal(self) -> None:
        if isinstance(self.problem.terminal, str):
            raise NotImplementedError(
                'terminal="riccati" follows from the reference and the parameters, and its '
                "derivative is not there: give terminal= as a weight; by x0 there is one"
            )

    def __repr__(self) -> str:
        """What is active, and what is not differentiable."""
        active = ", ".join(f"{name} at {count}" for name, count in self.active.items())
        return "; ".join(
            filter(None, [f"Sensitivities(active: {active or 'nothing'})", self.message])
        )


def _column(value: Any) -> np.ndarray:
    """Numbers of a CasADi column."""
    return np.asarray(value).ravel()


def predicted(solution: OptimalSolution, **changes: Any) -> OptimalSolution:
    """See `OptimalSolution.predicted`."""
    return Sensitivities(solution).predicted(**changes)


DERIVED["sensitivities"] = Sensitivities
DERIVED["predicted"] = predicted
