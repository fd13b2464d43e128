"""terminal_set: a terminal cost and the ellipsoid about a rest that its regulator never leaves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from ..codegen._internal import check_shape, interruptible
from ..systems import Trajectory, step_derivatives
from ..systems._internal import FixedParameters
from ._bounds import Bound
from ._problem import OptimalControlProblem
from ._reference import moves, sample_reference
from ._riccati import regulator_of
from ._rows import bounded_along, seen_bounds
from ._solution import OptimalSolution

# How far a step may move an equilibrium, in error coordinates.
STAYS = 1e-6
# Radii, as shares of the ellipsoid's, at which it is checked, and what a level shrinks by.
RADII, SHRINK = (1.0, 0.8, 0.6, 0.4, 0.2), 0.8
MOST_SHRINKS = 60
# Rounding of costs, as a share of the level.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class TerminalSet:
    """States with ``V(e) = ½ eᵀ P e ≤ level``, for the error ``e = error(x, x_s)``.

    In it the regulator ``u = u_s − K e`` keeps the hard bounds, and V falls in every step by at
    least the cost of that step. A plan that ends in it can therefore be continued for ever, and
    its cost bounds that of the continuation.

    Attributes
    ----------
    P : ndarray, shape (n, n)
        Terminal weight: that of the last error of `OptimalControlProblem`.
    K : ndarray, shape (m, n)
    level : float
    x, u : ndarray
        The rest; u holds all inputs.
    checked : int
        Points at which all that was checked, with the model's own steps.
    limit : str
        What keeps the set from being larger.
    problem : OptimalControlProblem
        Problem whose plans end in it.
    """

    P: np.ndarray
    K: np.ndarray
    level: float
    x: np.ndarray
    u: np.ndarray
    checked: int
    limit: str
    problem: OptimalControlProblem

    def value(self, x: Any) -> np.ndarray:
        """V at states (..., nq)."""
        e = self.problem.system.error(x, self.x)
        return np.einsum("...i,ij,...j->...", e, self.P, e) / 2

    def contains(self, x: Any) -> np.ndarray:
        """Whether states (..., nq) are inside."""
        return self.value(x) <= self.level

    def feedback(self, x: Any) -> np.ndarray:
        """All inputs under the regulator at states (..., nq)."""
        system = self.problem.system
        e = system.error(x, self.x)
        u = np.broadcast_to(self.u, (*np.shape(e)[:-1], system.n_inputs)).copy()
        u[..., system.input_index("control")] -= e @ self.K.T
        return u

    @property
    def bound(self) -> Bound:
        """``V / level ≤ 1`` at the end of a plan."""
        system, x_s, P = self.problem.system, ca.DM(self.x), ca.DM(self.P / self.level)

        def share(t: Any, x: Any, u: Any, p: Any) -> Any:
            del t, u, p
            e = system.error(x, type(x)(x_s))
            return ca.dot(e, P @ e) / 2

        return Bound(share, upper=1.0, at="terminal", name="terminal set")

    @property
    def terms(self) -> dict[str, Any]:
        """Terminal weight and all bounds, as `OptimalControlProblem` and `MPC` take them."""
        return {"terminal": self.P, "bounds": (*self.problem.bounds, self.bound)}

    def continued(self, solution: OptimalSolution, p: FixedParameters | None = None) -> Trajectory:
        """A plan one step later: what is left of it, and the regulator for one more step.

        Keeps all bounds if the plan did and ended inside, and costs less by the cost of its first
        step at least. This plan shows that the next problem has one.

        Parameters
        ----------
        solution : OptimalSolution
        p : mapping or array_like, optional

        Returns
        -------
        Trajectory
        """
        problem = self.problem
        own = problem.parameter_values(p)[: problem.system.n_parameters]
        u = self.feedback(solution.x[-1])
        step = problem.system.step(problem.method, problem.substeps)
        after = step(solution.t[-1], solution.x[-1], u, own, problem.dt)
        return Trajectory(
            problem.system.state,
            np.append(solution.t[1:], solution.t[-1] + problem.dt),
            np.vstack([solution.x[1:], after]),
            np.vstack([solution.u[1:], u]),
        )

    def __repr__(self) -> str:
        """Level, and what limits it."""
        return f"TerminalSet(level={self.level:.6g}, limited by {self.limit})"


@interruptible
def terminal_set(
    problem: OptimalControlProblem,
    reference: Any = None,
    *,
    margin: float = 0.1,
    samples: int = 2000,
    p: FixedParameters | None = None,
) -> TerminalSet:
    """Terminal weight and set for a rest, from the linear-quadratic regulator there.

    P solves ``(A − BK)ᵀ P (A − BK) − P = −(1 + margin) dt (Q + Kᵀ R K)``, so that V falls by more
    than a step costs where the model is linear. The level is the largest at which the hard bounds,
    linearized, hold under the regulator. It shrinks until the bounds themselves hold and V falls by
    the cost of the step with the model's own steps, at all of some random points.

    Parameters
    ----------
    problem : OptimalControlProblem
        Its weights, steps, inputs' limits and hard bounds along the horizon; residuals and costs
        are not looked at.
    reference : optional
        An equilibrium, a state or a TrimPoint; that of the problem if left out.
    margin : float
        How much more than the cost V falls in the linear model: what is left for curvature.
    samples : int
        Random directions, each checked at five radii.
    p : mapping or array_like, optional
        Parameters, nominal if left out.

    Returns
    -------
    TerminalSet

    Raises
    ------
    ValueError
        If the system does not stay at the reference, a bound does not hold there or leaves no room.
        If the errors do not all cost something under the regulator.

    References
    ----------
    Chen and Allgöwer, A quasi-infinite horizon nonlinear model predictive control scheme with
    guaranteed stability, Automatica 34(10), 1998, section 3.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import Input, System
    >>> push = Input("push", "N", -1, 1)
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[push])
    >>> problem = OptimalControlProblem(cart, 20, 0.1, R=0.1, reference=[0.0, 0.0])
    >>> region = terminal_set(problem)
    >>> region
    TerminalSet(level=0.0213262, limited by push)
    >>> bool(region.contains([0.1, 0.0])), bool(region.contains([2.0, 0.0]))
    (True, False)
    """
    system = problem.system
    for name, value in (("margin", margin), ("samples", samples)):
        if not check_shape(name, value, ()) > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    reference = problem.reference if reference is None else reference
    if moves(reference):
        raise ValueError(
            "the reference moves, and a terminal set is one about an equilibrium: give reference=, "
            "a state or a TrimPoint, such as the end of the motion"
        )
    if problem.Q.ndim > 2 or problem.R.ndim > 2:
        raise ValueError(
            "weights change along the horizon, so that the cost need not fall from call to call: "
            "give one Q and one R for all steps"
        )
    values = problem.parameter_values(p)
    own = values[: system.n_parameters]
    x_s, u_s = (row[0] for row in sample_reference(system, reference, np.zeros(1), own))
    made = step_derivatives(system, problem.method, problem.substeps)(0, x_s, u_s, own, problem.dt)
    gone = float(np.abs(system.error(made.x_next, x_s)).max())
    if gone > STAYS:
        raise ValueError(
            f"{system.name} does not stay at the reference, a step moves it by {gone:.2g}: give a "
            "trim point"
        )
    K = regulator_of(problem, x_s, u_s, 0.0, values).K
    controls = system.input_index("control")
    A, B = made.A, made.B[:, controls]
    Q, R = problem.weight("Q").at(values), problem.weight("R").at(values)
    stage, closed = problem.dt * (Q + K.T @ R @ K), A - B @ K
    P = solve_discrete_lyapunov(closed.T, (1 + margin) * stage)
    P = (P + P.T) / 2
    if np.linalg.eigvalsh(P)[0] <= 0:
        raise ValueError(
            "P is not positive definite, some errors cost nothing under the regulator: weigh them"
        )
    region = TerminalSet(P, K, 1.0, x_s, u_s, 0, "", problem)
    check = _Check(region, values, samples)
    level, limit = check.linear_level()
    for _ in range(MOST_SHRINKS):
        region = replace(region, level=level, limit=limit, checked=samples * len(RADII))
        fault = check.fault(level)
        if not fault:
            return region
        level, limit = SHRINK * level, fault
    raise ValueError(
        f"no set about the reference was found: {limit} fails however near; shorten dt, or give "
        "more margin"
    )


class _Check:
    """Bounds and decrease in ellipsoids of a terminal cost."""

    def __init__(self, region: TerminalSet, p: np.ndarray, samples: int) -> None:
        self.region, self.p = region, p
        problem = region.problem
        self.own = p[: problem.system.n_parameters]
        hard = [bound for bound in problem.bounds if bound.soft is None]
        self.hard = seen_bounds(problem.system, hard, problem.parameter_names)
        self.step = problem.system.step(problem.method, problem.substeps)
        self.Q, self.R = problem.weight("Q").at(p), problem.weight("R").at(p)
        sphere = np.random.default_rng(0).normal(size=(samples, len(region.P)))
        sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
        L = np.linalg.cholesky(region.P)
        self.rays = np.sqrt(2.0) * np.linalg.solve(L.T, sphere.T).T  # V = 1

    def rows(self, x: np.ndarray, u: np.ndarray) -> dict[str, tuple[np.ndarray, float, float]]:
        """Bounded quantities and controls with their limits at states (k, nq)."""
        problem, system = self.region.problem, self.region.problem.system
        x_ref = np.tile(self.region.x, (len(x), 1))
        points = np.zeros(len(x)), x, u, self.p, x_ref
        found = bounded_along(self.hard, problem.parameter_names, points)
        box = problem.input_limits.exactly(self.p)
        for k, i in enumerate(problem.input_limits.controls.tolist()):
            found[system.input_names[i]] = u[:, i], float(box.lower[k]), float(box.upper[k])
        return found

    def linear_level(self) -> tuple[float, str]:
        """Largest level at which the linearized bounds hold, and the one that limits it."""
        region, system = self.region, self.region.problem.system
        n, h = len(region.P), 1e-6
        moves = h * np.vstack([np.zeros(n), np.eye(n), -np.eye(n)])
        x = system.retract(region.x, moves, self.own)
        best, limit, inverse = np.inf, "the model's curvature", np.linalg.inv(region.P)
        for name, (value, low, high) in self.rows(x, region.feedback(x)).items():
            room = min(high - value[0], value[0] - low)
            if not room > 0:
                raise ValueError(
                    f"{name} is {value[0]:.4g} at the reference, and limits {low:g} and {high:g} "
                    "leave no room about it: give another reference, wider limits, or a penalty "
                    "(soft=100), which need not hold in the set"
                )
            slope = (value[1 : n + 1] - value[n + 1 :]) / (2 * h)
            spread = float(slope @ inverse @ slope)
            level = room**2 / (2 * spread) if spread > 0 else np.inf
            if level < best:
                best, limit = level, name
        if not np.isfinite(best):  # nothing is bounded: as far as the model lets it
            best = float(np.max(np.diag(region.P))) * np.pi**2
        return float(best), limit

    def fault(self, level: float) -> str:
        """What fails first in the set of a level; empty for nothing."""
        region, problem = self.region, self.region.problem
        system = problem.system
        controls = system.input_index("control")
        for radius in RADII:
            e = radius * np.sqrt(level) * self.rays
            x = system.retract(region.x, e, self.own)
            u = region.feedback(x)
            for name, (value, low, high) in self.rows(x, u).items():
                slack = ROUNDING * (1 + abs(value).max())
                if not ((value >= low - slack) & (value <= high + slack)).all():
                    return name
            after = self.step(0.0, x, u, self.own, problem.dt)
            effort = (u - region.u)[:, controls]
            here = system.error(x, region.x)
            cost = problem.dt / 2 * (
                np.einsum("ki,ij,kj->k", here, self.Q, here)
                + np.einsum("ki,ij,kj->k", effort, self.R, effort)
            )  # fmt: skip
            fall = region.value(x) - region.value(after)
            if not (fall >= cost - ROUNDING * level).all():
                return "the model's curvature"
        return ""
