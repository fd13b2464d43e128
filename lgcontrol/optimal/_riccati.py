"""Linear-quadratic regulators about points and along trajectories, in error coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, solve_continuous_are, solve_discrete_are

from ..codegen import named_options
from ..integrators import Method
from ..systems import Linearization, System, Trajectory, TrimPoint, step_derivatives
from ..systems._internal import (
    FixedParameters,
    TrajectoryLinearization,
    balanced,
    balancing_units,
    is_stabilizable_when_sampled,
    modes_told,
    not_a_system,
    sample_time,
    values_by_name,
)
from ._problem import OptimalControlProblem
from ._reference import sample_reference
from ._weights import WeightLike, error_weight, input_weight


@dataclass(frozen=True, eq=False)
class Regulator:
    """Feedback ``u = u_ref − K minus(x, x_ref)`` and what it costs.

    Attributes
    ----------
    K : ndarray, shape (m, n)
        Gain from error states to controls.
    P : ndarray, shape (n, n)
        Cost to go: ``½ eᵀ P e``.
    poles : ndarray of complex, shape (n,)
        Of the closed loop: in 1/s, or factors per sample.
    x, u : ndarray
        Point it belongs to; u holds all inputs.
    dt : float
        Sample time in s, 0 for continuous feedback.
    motion : TrimPoint
        The steady motion through the point: what the feedback keeps to.
    """

    K: np.ndarray
    P: np.ndarray
    poles: np.ndarray
    x: np.ndarray
    u: np.ndarray
    dt: float
    motion: TrimPoint


@dataclass(frozen=True, eq=False)
class TrajectoryRegulator:
    """Feedback along a trajectory: ``u = u_ref,k − K_k minus(x, x_ref,k)``.

    Attributes
    ----------
    K : ndarray, shape (N, m, n)
    P : ndarray, shape (N + 1, n, n)
        Cost to go at the nodes.
    trajectory : Trajectory
    """

    K: np.ndarray
    P: np.ndarray
    trajectory: Trajectory


@named_options(own="system")
def lqr(
    system: System,
    point: ArrayLike | TrimPoint | Linearization,
    Q: WeightLike = 1.0,
    R: WeightLike = 1.0,
    *,
    dt: float | None = None,
    p: FixedParameters | None = None,
    t: float | None = None,
) -> Regulator:
    """Linear-quadratic regulator about an equilibrium or a steady motion.

    Minimises ``∫ ½ (eᵀ Q e + δuᵀ R δu) dt``; with dt (and for discrete systems) the sum of the same
    terms times dt, with the input held over each sample. The sampled model is exact (the matrix
    exponential of the linearization, which does not change along the motion). Modes may therefore
    be fast next to dt.

    Parameters
    ----------
    system : System
    point : array_like, TrimPoint or Linearization
        A state (with the inputs that hold it), or an object with ``x`` and ``u``.
    Q, R : float, array_like or mapping
        Weights on the error and the controls, by name as in `OptimalControlProblem`.
    dt : float, optional
        Sample time in s; continuous feedback without it. Discrete systems have their own.
    p : array_like or mapping, optional
        The system's parameters; those of the point, or nominal, if left out.
    t : float, optional
        Time in s; that of the point, or 0, if left out.

    Returns
    -------
    Regulator

    Raises
    ------
    TypeError
        If the point is a trajectory, about which `tvlqr` designs.
    ValueError
        If A or a control's column of B changes along the motion, if there are no controls, or if dt
        is not that of a discrete system. If no feedback stabilises it; the message names the modes
        that the controls do not reach.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> from lgcontrol.systems import System
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=["tx", "ty", "tz"])
    >>> lqr(satellite, satellite.state.identity).K[0].round(3)
    array([1.   , 0.   , 0.   , 1.732, 0.   , 0.   ])
    """
    _needs_controls(system)
    sample = 0.0 if dt is None and not system.is_discrete else sample_time(system, dt)
    own = None if p is None else values_by_name(system.parameters, system.nominal_parameters, p)
    if isinstance(point, Trajectory | TrajectoryLinearization):
        raise TypeError(
            f"{system.name}: one gain is about a point, not about a {type(point).__name__}: give a "
            "state or a TrimPoint, or use TVLQR(system, trajectory)"
        )
    lin = point if isinstance(point, Linearization) else _linearize(system, point, t, own)
    if lin.kind == "none":
        raise ValueError(
            f"{system.name} does not stay at this point nor moves along a symmetry: its "
            "linearization changes; use a TrimPoint, or tvlqr along a trajectory"
        )
    turning = lin.controls().varying_columns()
    if turning:
        raise ValueError(
            f"{system.name}: what {', '.join(turning)} do changes along this motion (controls "
            "fixed in the world on a body that turns?), so no constant gain is the best one: use "
            "tvlqr along a trajectory, or controls in body axes"
        )
    Q, R = error_weight("Q", Q, system), input_weight("R", R, system)
    return _design(lin, Q, R, sample)


@named_options(own="trajectory")
def tvlqr(
    system: System,
    trajectory: Trajectory,
    Q: WeightLike = 1.0,
    R: WeightLike = 1.0,
    *,
    terminal: WeightLike | None = None,
    method: str | Method = "rk4",
    p: FixedParameters | None = None,
) -> TrajectoryRegulator:
    """Finite-horizon linear-quadratic regulator along a trajectory of the system.

    Minimises the sum of ``dt/2 (eᵀ Q e + δuᵀ R δu)`` over the steps between the nodes, and
    ``½ eᵀ P e`` at the end. The time needs no end value of the kind an infinite horizon has, so
    that parts which the controls do not reach are no obstacle.

    Parameters
    ----------
    system : System
    trajectory : Trajectory
        States and inputs of a motion of the system.
    Q, R : float, array_like or mapping
        Weights, per s.
    terminal : float, array_like or mapping, optional
        P at the end; Q times 1 s if left out.
    method : str or Method
        Integrator of the steps, each divided as often as the fastest mode there needs; see
        `TrajectoryLinearization.discrete`.
    p : array_like or mapping, optional
        The system's parameters.

    Returns
    -------
    TrajectoryRegulator

    Raises
    ------
    ValueError
        If the trajectory has no inputs or too few nodes, its nodes are not one sample of a discrete
        system apart, or a mode is too fast for them.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> turn = wheel.rollout(SO2.identity, [0.5], dt=0.1, steps=20)
    >>> tvlqr(wheel, turn, Q=1, R=1).K.shape
    (20, 1, 1)
    """
    if not isinstance(trajectory, Trajectory):
        has_one = isinstance(getattr(trajectory, "trajectory", None), Trajectory)
        remedy = ": give its .trajectory" if has_one else ""
        raise TypeError(f"trajectory must be a Trajectory, not {type(trajectory).__name__}{remedy}")
    if len(trajectory) < 2:
        raise ValueError("the trajectory needs at least two nodes")
    if trajectory.u.shape[-1] == 0:
        raise ValueError("the trajectory has no inputs: roll the system out, or solve for them")
    _needs_controls(system)
    Q, R = error_weight("Q", Q, system), input_weight("R", R, system)
    P = Q if terminal is None else error_weight("terminal", terminal, system)
    own = None if p is None else values_by_name(system.parameters, system.nominal_parameters, p)
    along = system.linearize(trajectory, p=own)
    A, B = along.discrete(method)  # type: ignore[union-attr]
    B = B[:, :, system.input_index("control")]
    steps = np.diff(trajectory.t)
    gains, costs = np.empty((len(A), B.shape[2], A.shape[1])), np.empty((len(A) + 1, *P.shape))
    costs[-1] = P
    for k in range(len(A) - 1, -1, -1):
        PA, PB = costs[k + 1] @ A[k], costs[k + 1] @ B[k]
        gains[k] = np.linalg.solve(steps[k] * R + B[k].T @ PB, B[k].T @ PA)
        closed = A[k] - B[k] @ gains[k]
        # Joseph's form keeps the cost symmetric and positive.
        costs[k] = closed.T @ costs[k + 1] @ closed + steps[k] * (Q + gains[k].T @ R @ gains[k])
    return TrajectoryRegulator(gains, costs, trajectory)


def regulator_of(
    problem: OptimalControlProblem, x: np.ndarray, u: np.ndarray, t: float, p: np.ndarray
) -> Regulator:
    """Regulator about a point with the steps and weights of a problem."""
    system = problem.system
    lin = system.linearize(x, u, t=t, p=p[: system.n_parameters])
    step = None
    if not system.is_discrete:  # the model that the problem plans with, not the exact step
        derivatives = step_derivatives(system, problem.method, problem.substeps)
        made = derivatives(lin.t, lin.x, lin.u, lin.p, problem.dt)
        step = made.A, made.B[:, system.input_index("control")]
    Q, R = problem.weight("Q").at(p), problem.weight("R").at(p)
    return _design(lin, Q, R, problem.dt, step)


def _needs_controls(system: System) -> None:
    if not isinstance(system, System):
        remedy = "; control.lqr is for those of python-control" if hasattr(system, "A") else ""
        raise TypeError(not_a_system("system", system) + remedy)
    if not len(system.input_index("control")):
        others = ", ".join(system.input_names) or "none"
        raise ValueError(f"{system.name} has no control inputs to regulate with (inputs: {others})")


def _linearize(system: System, point: Any, t: float | None, p: np.ndarray | None) -> Linearization:
    if not (hasattr(point, "x") and hasattr(point, "u")):
        t = 0.0 if t is None else t
        x, u = sample_reference(system, point, np.array([t]), p)
        return system.linearize(x[0], u[0], t=t, p=p)  # type: ignore[return-value]
    return system.linearize(point, t=t, p=p)  # type: ignore[return-value]


def _design(
    lin: Linearization, Q: np.ndarray, R: np.ndarray, dt: float,
    step: tuple[np.ndarray, np.ndarray] | None = None,
) -> Regulator:  # fmt: skip
    """Regulator for a linearization, sampled exactly unless its step is given."""
    system = lin.system
    motion = lin.motion
    lin = lin.controls()
    _check(lin, Q)
    A, B = step or (lin.discrete(dt) if dt else (lin.A, lin.B))
    if dt and not is_stabilizable_when_sampled(A, B):
        raise ValueError(
            f"sampled every {dt:g} s the controls of {system.name} do not reach a mode that they "
            "reach continuously: dt is a multiple of half its period; sample otherwise"
        )
    K, P = _solve(system.name, A, B, Q, R, balancing_units(lin.A, lin.B), dt)
    poles = np.linalg.eigvals(A - B @ K)
    if not (np.abs(poles) < 1 if dt else poles.real < 0).all():
        worst = poles[np.argmax(np.abs(poles) if dt else poles.real)]
        raise ValueError(
            f"the Riccati equation of {system.name} was not solved: its feedback leaves a pole at "
            f"{worst:.6g}. Weigh states and controls less unequally"
            + (", or sample otherwise" if dt else "")
        )
    return Regulator(K, P, poles, lin.x, lin.u, dt, motion)


def _solve(
    name: str, A: np.ndarray, B: np.ndarray, Q: np.ndarray, R: np.ndarray, units: np.ndarray,
    dt: float,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Gain and cost to go, found in units in which the states are about equal in size."""
    effort, given = 1 / np.sqrt(np.diag(R)), (np.diag(Q), np.diag(R))
    A, B = balanced(A, units), B / units[:, None] * effort
    Q, R = Q * units * units[:, None], R * effort * effort[:, None]
    try:
        with np.errstate(all="ignore"):  # what is not finite has no solution
            if dt:
                P = solve_discrete_are(A, B, dt * Q, dt * R)
                K = np.linalg.solve(dt * R + B.T @ P @ B, B.T @ P @ A)
            else:
                P = solve_continuous_are(A, B, Q, R)
                K = np.linalg.solve(R, B.T @ P)
    except (LinAlgError, ValueError) as error:  # SciPy raises either for bad conditioning
        raise ValueError(
            f"the Riccati equation of {name} cannot be solved with weights from "
            f"{given[0].min():.2g} to {given[0].max():.2g} on the states and from "
            f"{given[1].min():.2g} to {given[1].max():.2g} on the controls: weigh states and "
            "controls less unequally, next to what the controls do"
        ) from error
    return effort[:, None] * K / units, P / units / units[:, None]


def _check(lin: Linearization, Q: np.ndarray) -> None:
    """Refuse what has no regulator, and name the modes at fault."""
    unreached = [mode for mode in lin.controllability().uncontrollable if not mode.is_stable]
    if unreached:
        raise ValueError(
            f"no feedback stabilises {lin.system.name} here: the controls do not reach "
            f"{modes_told(unreached)}. Add inputs, leave these states out of the model, or design "
            "about a motion in which the controls reach them"
        )
    seen = replace(lin, C=Q, D=np.zeros((len(Q), lin.B.shape[1])))
    hidden = [mode for mode in seen.observability().unobservable if not mode.is_stable]
    # What grows unseen is no obstacle: it is stabilised with the least effort.
    steady = [mode for mode in hidden if not mode.is_growing]
    if steady:
        named = list(dict.fromkeys(name for mode in steady for name in mode.states))
        give = "Give them a weight each" if len(named) > 1 else "Give it a weight"
        raise ValueError(
            f"the regulator of {lin.system.name} would not settle: Q gives no weight to "
            f"{modes_told(steady)}. {give}, by name: Q={{…, {named[0]!r}: 1}}"
        )
