"""Linear-quadratic regulators about points and along trajectories, in error coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, solve_continuous_are, solve_discrete_are

from ..codegen import check_shape
from ..integrators import Method
from ..systems import Linearization, Mode, System, Trajectory, step_derivatives
from ._problem import OptimalControlProblem
from ._reference import sample_reference
from ._weights import input_weight, state_weight

# Growth this small next to the size of A counts as none: rounding moves eigenvalues of chains of
# integrators by the roots of 1e-16.
BOUNDARY = 1e-5


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
    """

    K: np.ndarray
    P: np.ndarray
    poles: np.ndarray
    x: np.ndarray
    u: np.ndarray
    dt: float


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


def lqr(
    system: System,
    point: Any,
    Q: Any = 1.0,
    R: Any = 1.0,
    *,
    dt: float | None = None,
    method: str | Method = "rk4",
    p: Any = None,
    t: float = 0.0,
) -> Regulator:
    """Linear-quadratic regulator about a point that the motion stays at, or moves along steadily.

    Minimises ``∫ ½ (eᵀ Q e + δuᵀ R δu) dt``; with dt (and for discrete systems) the sum of the same
    terms times dt, with the input held over each sample.

    Parameters
    ----------
    system : System
    point : array_like, TrimPoint or Linearization
        A state (with the inputs that hold it), or an object with ``x`` and ``u``.
    Q, R : float, array_like or mapping
        Weights on the error and the controls, by name as in `OptimalControlProblem`.
    dt : float, optional
        Sample time in s; continuous feedback without it.
    method : str or Method
        Integrator of the sampled step.
    p : array_like, optional
        The system's parameters.
    t : float
        Time in s.

    Returns
    -------
    Regulator

    Raises
    ------
    ValueError
        If the linearization changes along the motion, or if no feedback stabilises it: the message
        names the modes that the controls do not reach.

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
    lin = point if isinstance(point, Linearization) else _linearize(system, point, t, p)
    if lin.kind == "none":
        raise ValueError(
            f"{system.name} does not stay at this point nor moves along a symmetry: its "
            "linearization changes; use a TrimPoint, or tvlqr along a trajectory"
        )
    sample = system.dt
    if not system.is_discrete and dt is not None:
        sample = float(check_shape("dt", dt, ()))
        if sample <= 0:
            raise ValueError(f"dt must be positive, got {sample:g} s")
    Q, R = state_weight("Q", Q, system.state), input_weight("R", R, system)
    return _design(lin, Q, R, sample, method, 1)


def tvlqr(
    system: System,
    trajectory: Trajectory,
    Q: Any = 1.0,
    R: Any = 1.0,
    *,
    terminal: Any = None,
    method: str | Method = "rk4",
    p: Any = None,
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
        Integrator of the steps.
    p : array_like, optional
        The system's parameters.

    Returns
    -------
    TrajectoryRegulator

    Raises
    ------
    ValueError
        If the trajectory has no inputs or too few nodes.

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
        raise TypeError(f"trajectory must be a Trajectory, not {type(trajectory).__name__}")
    if len(trajectory) < 2:
        raise ValueError("the trajectory needs at least two nodes")
    if trajectory.u.shape[-1] == 0:
        raise ValueError("the trajectory has no inputs: roll the system out, or solve for them")
    Q, R = state_weight("Q", Q, system.state), input_weight("R", R, system)
    P = Q if terminal is None else state_weight("terminal", terminal, system.state)
    along = system.linearize(trajectory, p=p)
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


def cost_to_go(
    problem: OptimalControlProblem, x: np.ndarray, u: np.ndarray, t: float, p: np.ndarray
) -> np.ndarray:
    """Cost of an infinite horizon after a problem's end, with its own steps and weights."""
    lin = problem.system.linearize(x, u, t=t, p=p[: problem.system.n_parameters])
    return _design(lin, problem.Q, problem.R, problem.dt, problem.method, problem.substeps).P


def _linearize(system: System, point: Any, t: float, p: Any) -> Linearization:
    if not (hasattr(point, "x") and hasattr(point, "u")):
        own = system.nominal_parameters if p is None else np.asarray(p, dtype=np.float64)
        x, u = sample_reference(system, point, np.array([t]), own)
        return system.linearize(x[0], u[0], t=t, p=p)  # type: ignore[return-value]
    return system.linearize(point, p=p)  # type: ignore[return-value]


def _design(
    lin: Linearization, Q: np.ndarray, R: np.ndarray, dt: float, method: str | Method, substeps: int
) -> Regulator:
    system = lin.system
    lin = lin.controls()
    _check(lin, Q)
    A, B = lin.A, lin.B
    if dt and not system.is_discrete:
        sampled = step_derivatives(system, method, substeps)(lin.t, lin.x, lin.u, lin.p, dt)
        A, B = sampled.A, sampled.B[:, system.input_index("control")]
    try:
        if dt:
            P = solve_discrete_are(A, B, dt * Q, dt * R)
            K = np.linalg.solve(dt * R + B.T @ P @ B, B.T @ P @ A)
        else:
            P = solve_continuous_are(A, B, Q, R)
            K = np.linalg.solve(R, B.T @ P)
    except LinAlgError as error:
        raise ValueError(
            f"the Riccati equation of {system.name} has no solution: {error}"
        ) from error
    return Regulator(K, P, np.linalg.eigvals(A - B @ K), lin.x, lin.u, dt)


def _check(lin: Linearization, Q: np.ndarray) -> None:
    """Refuse what has no regulator, and name the modes at fault."""
    unreached = [mode for mode in lin.controllability().uncontrollable if not mode.is_stable]
    if unreached:
        raise ValueError(
            f"no feedback stabilises {lin.system.name} here: the controls do not reach "
            f"{'; '.join(map(str, unreached))}. Add inputs, or leave these states out of the model"
        )
    seen = replace(lin, C=Q, D=np.zeros((len(Q), lin.B.shape[1])))
    hidden = [mode for mode in seen.observability().unobservable if not mode.is_stable]
    # What grows unseen is no obstacle: it is stabilised with the least effort.
    steady = [mode for mode in hidden if not _grows(lin, mode)]
    if steady:
        raise ValueError(
            f"the regulator of {lin.system.name} would not settle: Q gives no weight to "
            f"{'; '.join(map(str, steady))}"
        )


def _grows(lin: Linearization, mode: Mode) -> bool:
    growth = abs(mode.eigenvalue) - 1 if lin.dt else mode.eigenvalue.real
    return bool(growth > BOUNDARY * np.linalg.norm(lin.A, 2))
