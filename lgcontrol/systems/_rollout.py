"""Responses to whole input sequences: one function for all steps, compiled where that pays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, chain, named_options
from ..codegen._internal import as_numbers, check_count, check_shape, level_outside
from ..integrators import Method, get_method
from ._constraints import on_constraints
from ._definition import SystemDefinition
from ._stable_steps import choose_method, instability, stable_substeps
from ._step import resolved_step, step_derivatives, step_function, step_residuals, unsolved
from ._tracing import check_state, complete_input, complete_parameters, sample_time
from ._trajectory import Trajectory

# Motions that grow by more, next to the larger of one and the start, may be those of the steps.
SUSPICIOUS_GROWTH = 1e3


@named_options
def rollout(
    system: SystemDefinition,
    x0: Any,
    u: Any = None,
    dt: float | None = None,
    *,
    steps: int | None = None,
    t0: float = 0.0,
    p: Any = None,
    method: str | Method = "rk4",
    substeps: int = 1,
) -> Trajectory:
    """Response to a whole input sequence in one call, inputs held over each step.

    Parameters
    ----------
    x0 : array_like, shape (..., nq)
        Start, with batch axes for many starts at once.
    u : array_like, shape (..., N, n_inputs) or (n_inputs,), optional
        Inputs of each step, or one that is held for `steps` steps (nominal if left out). Controls
        alone will do: disturbances are then nominal.
    dt : float
        Step in s; the sample time for discrete systems.
    steps : int, optional
        Number of steps when u is constant.
    t0 : float
        Start time in s.
    p : array_like, shape (..., n_parameters), optional
        Parameters, with batch axes for a sweep.
    method, substeps
        See `System.step`; "auto" is what `choose_method` says about the starts.

    Returns
    -------
    Trajectory
        With N + 1 states and N inputs; batch axes of x0, u and p broadcast. If the motion diverges,
        the states are NaN from then on (`Trajectory.diverged`).

    Raises
    ------
    ValueError
        If a shape does not fit, or a start cannot be brought onto the group or the constraints.

    Warns
    -----
    RuntimeWarning
        If a start violates the constraints of a closed mechanism, and was projected. If a motion
        diverges: says which and when. If a step does not solve its equations: says
        which and how far it is off. If states grow a thousandfold and the steps let modes grow that
        do not, judged at the start: says what to do.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> run = clock.rollout(SO2.identity, [0.5], dt=0.1, steps=20)
    >>> SO2.log(run.x[-1]).round(12)
    array([1.])
    """
    given = _RolloutArguments.check(system, x0, u, dt, steps, t0, p)
    method = given.choice(system) if method == "auto" else method
    run = rollout_function(system, given.count, method, substeps)
    made = run(given.t[:-1, None], given.x0, given.u, given.p, given.dt)
    plain = isinstance(made, np.ndarray)
    trajectory = given.trajectory(system, made if plain else made.x_next)
    residual = np.zeros(1) if plain else made.residual[..., 0]
    if not _warn(system, method, trajectory, residual, given.p):
        unstable = _instability(system, given, trajectory.x, method, substeps)
        if unstable:
            warnings.warn(unstable, RuntimeWarning, stacklevel=level_outside())
    return trajectory


class RolloutDerivatives(NamedTuple):
    """A rollout with the derivatives of its steps.

    Attributes
    ----------
    trajectory : Trajectory
    A, B, P : ndarray
        Of ``z⁺ = A z + B δu + P δp`` in each of the N steps, in error coordinates: shapes
        (..., N, n_errors, n_errors), (..., N, n_errors, n_inputs), (..., N, n_errors,
        n_parameters). P is None unless asked for.
    """

    trajectory: Trajectory
    A: np.ndarray
    B: np.ndarray
    P: np.ndarray | None


@named_options
def rollout_derivatives(
    system: SystemDefinition,
    x0: Any,
    u: Any = None,
    dt: float | None = None,
    *,
    steps: int | None = None,
    t0: float = 0.0,
    p: Any = None,
    method: str | Method = "rk4",
    substeps: int = 1,
    parameters: bool = False,
) -> RolloutDerivatives:
    """Response to a whole input sequence with the derivatives of every step, in one call.

    Arguments are those of `System.rollout`, and whether to differentiate by the parameters, too.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u - 2 * x, inputs=["force"])
    >>> made = rollout_derivatives(cart, [1.0], [0.0], 0.1, steps=3, method="euler")
    >>> made.A.ravel().round(9), made.B.shape
    (array([0.8, 0.8, 0.8]), (3, 1, 1))
    """
    given = _RolloutArguments.check(system, x0, u, dt, steps, t0, p)
    method = given.choice(system) if method == "auto" else method
    one = step_derivatives(system, method, substeps, parameters=parameters)

    def make() -> ModelFunction:
        return chain(_with_columns(one), given.count, carry=("x", "x_next"), each=["t", "u"])

    march = system.memo(("rollout_derivatives", given.count, one), make)
    made = march(given.t[:-1, None], given.x0, given.u, given.p, given.dt)
    matrices = [
        np.swapaxes(made[1 + k].reshape(*made[1 + k].shape[:-1], *shape[::-1]), -1, -2)
        for k, shape in enumerate(one.result_shapes[1:])
    ]
    P = matrices[2] if parameters else None
    trajectory = given.trajectory(system, made.x_next)
    at = given.t[:-1], trajectory.x[..., :-1, :], trajectory.u, given.p, given.dt
    _warn(system, method, trajectory, step_residuals(system, method, substeps, *at), given.p)
    return RolloutDerivatives(trajectory, matrices[0], matrices[1], P)


def _with_columns(step: ModelFunction) -> ModelFunction:
    """The same results with matrices as columns, which a chain returns."""
    f = step.function
    symbols: list[Any] = [ca.MX.sym(f.name_in(i), *f.size_in(i)) for i in range(f.n_in())]
    results: list[Any] = [ca.vec(result) for result in f.call(symbols)]
    made = ca.Function(f.name(), symbols, results, f.name_in(), f.name_out())
    shapes = dict(zip(step.arguments, step.argument_shapes, strict=True))
    return ModelFunction(made, shapes=shapes, defaults=step.defaults)


@dataclass(frozen=True)
class _RolloutArguments:
    """Arguments of a rollout, checked and complete."""

    x0: np.ndarray
    u: np.ndarray
    p: np.ndarray
    t: np.ndarray
    dt: float
    batch: tuple[int, ...]

    @classmethod
    def check(
        cls,
        system: SystemDefinition,
        x0: Any,
        u: Any,
        dt: float | None,
        steps: int | None,
        t0: Any,
        p: Any,
    ) -> _RolloutArguments:
        dt = sample_time(system, dt)
        start = check_state(system, "x0", x0, batch=True)
        u = _input_sequence(system, u, steps)
        p = complete_parameters(system, p, batch=True)
        t = check_shape("t0", t0, ()) + dt * np.arange(u.shape[-2] + 1)
        axes = {"x0": start.shape[:-1], "u": u.shape[:-2], "p": p.shape[:-1]}
        try:
            batch = np.broadcast_shapes(*axes.values())
        except ValueError:
            listed = ", ".join(f"{name} {shape}" for name, shape in axes.items())
            raise ValueError(f"batch axes do not broadcast: {listed}") from None
        start = on_constraints(system, "x0", start, p)
        return cls(start, u, p, t, dt, batch)

    @property
    def count(self) -> int:
        """Number of steps."""
        return self.u.shape[-2]

    def choice(self, system: SystemDefinition) -> str:
        """Method for these starts."""
        return choose_method(system, self.dt, self.x0, self.u[..., 0, :], p=self.p, t=self.t[0])

    def trajectory(self, system: SystemDefinition, after: np.ndarray) -> Trajectory:
        """Start and the states after each step; NaN from where a motion diverges."""
        x = np.empty((*self.batch, self.count + 1, system.state.nq))
        x[..., 0, :], x[..., 1:, :] = self.x0, after
        x[np.logical_or.accumulate(~np.isfinite(x).all(axis=-1), axis=-1)] = np.nan
        u = np.broadcast_to(self.u, (*self.batch, self.count, system.n_inputs))
        return Trajectory.unchecked(system.state, self.t, x, u, system.inputs)


def rollout_function(
    system: SystemDefinition, count: int, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next`` with one row a step in t, u and x_next.

    Methods that solve equations have a second result, ``residual``.
    """
    step = resolved_step(system, method, substeps) or step_function(system, method, substeps)
    return system.memo(
        ("rollout", count, step),
        lambda: chain(step, count, carry=("x", "x_next"), each=["t", "u"]),
    )


def _warn(
    system: SystemDefinition, method: str | Method, made: Trajectory, residual: np.ndarray,
    p: np.ndarray,
) -> bool:  # fmt: skip
    """Warn the caller of the rollout of motions that diverge, else of unsolved equations."""
    text = (
        _divergence(system, made, p) if made.diverged.any() else unsolved(system, method, residual)
    )
    if text:
        warnings.warn(text, RuntimeWarning, stacklevel=level_outside())
    return bool(text)


def _instability(
    system: SystemDefinition,
    given: _RolloutArguments,
    x: np.ndarray,
    method: str | Method,
    substeps: int,
) -> str:
    """Say that the steps let modes grow that do not; empty where they keep up.

    The derivatives this takes are built only for motions that grow, and judged once for a method
    and dt, at the start of the motion that grew most.
    """
    if system.is_discrete:
        return ""
    sizes = np.abs(x).max(axis=(-2, -1), initial=0.0)
    growth = sizes / np.maximum(np.abs(x[..., 0, :]).max(axis=-1, initial=0.0), 1.0)
    if not growth.max(initial=0.0) > SUSPICIOUS_GROWTH:
        return ""

    def judge() -> str:
        worst = np.unravel_index(int(np.argmax(growth)), growth.shape)
        start, u, p = (
            np.broadcast_to(value, (*given.batch, value.shape[-1]))[worst]
            for value in (given.x0, given.u[..., 0, :], given.p)
        )
        at = {"p": p, "t": given.t[0]}
        needed = stable_substeps(system, start, u, given.dt, method, **at)
        if needed <= substeps:
            return ""
        return instability(system, "the start", start, u, given.dt, method, substeps, needed, **at)

    return system.memo(("stability of rollouts", get_method(method), substeps, given.dt), judge)


def _divergence(system: SystemDefinition, made: Trajectory, p: np.ndarray) -> str:
    """Say which motion came first to an end, and when."""
    ends = made.diverged_at
    first = tuple(int(i) for i in np.unravel_index(int(np.argmin(ends)), ends.shape))
    remedy = '; use a shorter dt or more substeps, or method="auto" where it is stiff'
    remedy = "" if system.is_discrete else remedy
    if not ends.shape:
        text = f"the rollout diverged at t = {ends:g} s, its states are NaN from then on"
        k = int(np.flatnonzero(np.isfinite(made.x).all(axis=1))[-1])
        told = system.unsolved(made.t[k], made.x[k], made.u[k], p)
        remedy = f"; {told}" if told else remedy
    else:
        index = first[0] if len(first) == 1 else first
        text = (
            f"{np.isfinite(ends).sum()} of {ends.size} rollouts diverged, the first, number "
            f"{index}, at t = {ends[first]:g} s; their states are NaN from then on "
            "(see Trajectory.diverged)"
        )
    return f"{system.name}: {text}{remedy}"


def _input_sequence(system: SystemDefinition, u: Any, steps: int | None) -> np.ndarray:
    """Inputs of shape (..., N, n_inputs)."""
    u = system.nominal_input if u is None else as_numbers("u", u)
    if u.ndim == 1:
        if steps is None:
            raise ValueError(
                f"a constant input of shape {u.shape} needs steps=N; "
                f"a sequence has shape (..., N, {system.n_inputs})"
            )
        steps = check_count("steps", steps, remedy="go on from the last state, or step longer")
        u = np.broadcast_to(u, (steps, *u.shape))
    u = complete_input(system, "u", u, (None,), batch=True)
    if steps is not None and u.shape[-2] != steps:
        raise ValueError(f"u has {u.shape[-2]} rows for {steps} steps")
    if u.shape[-2] == 0:
        raise ValueError("u holds no step: give at least one row, or steps=N with a constant u")
    return u
