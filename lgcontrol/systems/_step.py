"""One step: of any method, its derivatives, and those of the vector field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value
from ..codegen._internal import MOST_SUBSTEPS, check_count, memoized
from ..groups import LieGroup
from ..integrators import Method, get_method
from ..integrators._internal import ImplicitRungeKutta, LiftedMotion, Motion, nan_as_infinite
from ._constraints import on_constraints
from ._definition import SystemDefinition
from ._tracing import (
    SystemFunction,
    check_state,
    complete_parameters,
    matrix_function,
    symbols_of,
)


class ConstrainedStep(SystemFunction):
    """A step of a constrained system: states off its constraints are projected, with a warning.

    CasADi values and chains of steps are not looked at.
    """

    _known = (*SystemFunction._known, "_system")

    def __init__(self, system: SystemDefinition, *made: Any) -> None:
        super().__init__(system, *made)
        self._system = system

    def __call__(self, *values: Value, **named: Value) -> Any:
        """Evaluate from a state that keeps the constraints."""
        values = self._bind(values, named)
        t, x, u, p, dt = values
        if not any(isinstance(value, ca.SX | ca.MX | ca.DM) for value in values):
            system = self._system
            if type(p) is not np.ndarray:
                p = complete_parameters(system, p, batch=True)
            if type(x) is not np.ndarray or x.shape[-1:] != (system.state.nq,):
                x = check_state(system, "x", x, batch=True)
            x = on_constraints(system, "x", x, p)
        return super().__call__(t, x, u, p, dt)


def step_function(
    system: SystemDefinition, method: str | Method = "rk4", substeps: int = 1
) -> ModelFunction:
    """See `System.step`."""
    scheme = _method_for(system, method, substeps)
    key = ("step",) if system.is_discrete else ("step", scheme, substeps)

    def make() -> ModelFunction:
        t, x, u, p, dt = _symbols(system, scheme)
        motion = Motion(system.problem, u, p)
        after, _ = _steps(system, scheme, substeps, motion, t, x, dt)
        is_kept = scheme.keeps_constraints or system.project is None
        # Stages are calls of one field, with next to nothing in common.
        return matrix_function(
            system,
            "step",
            [t, x, u, p, dt],
            {"x_next": after},
            is_shared=False,
            made_as=SystemFunction if is_kept else ConstrainedStep,
        )

    return system.memo(key, make)


def resolved_step(
    system: SystemDefinition, method: str | Method, substeps: int
) -> ModelFunction | None:
    """``(t, x, u, p, dt) → x_next, residual`` for methods that solve equations, None for others.

    The residual is the largest of the substeps, next to what is tolerated (see
    `lgcontrol.integrators.Step`).
    """
    scheme = _method_for(system, method, substeps)
    if system.is_discrete or not scheme.solves:
        return None

    def make() -> ModelFunction:
        t, x, u, p, dt = _symbols(system, scheme)
        motion = Motion(system.problem, u, p)
        after, residual = _steps(system, scheme, substeps, motion, t, x, dt)
        results = {"x_next": after, "residual": residual}
        return matrix_function(system, "step", [t, x, u, p, dt], results)

    return system.memo(("residual", scheme, substeps), make)


def step_residuals(
    system: SystemDefinition,
    method: str | Method,
    substeps: int,
    t: np.ndarray,
    x: np.ndarray,
    u: np.ndarray,
    p: np.ndarray,
    dt: float | np.ndarray,
) -> np.ndarray:
    """Residuals of the steps from some states, zeros for methods that solve nothing.

    One for each time and state, whose batch axes may come before that of the times.
    """
    step = resolved_step(system, method, substeps)
    if step is None:
        return np.zeros(x.shape[:-1])
    return step(t, x, u, p[..., None, :], dt).residual


def unsolved(system: SystemDefinition, method: str | Method, residual: np.ndarray) -> str:
    """Say where the equations of steps were not solved; nothing where they all were."""
    missed = ~(residual <= 1)
    if not missed.any():
        return ""
    name = get_method(method).name
    first = int(np.argmax(missed.any(axis=tuple(range(residual.ndim - 1)))))
    return (
        f"{system.name}: {missed.sum()} of {residual.size} steps of {name} did not solve "
        f"their equations, the first is step {first}; the largest residual is "
        f"{residual.max():.2g} times what is tolerated; use a shorter dt, more substeps, or "
        f"method=dataclasses.replace(get_method({name!r}), iterations=…)"
    )


def step_derivatives(
    system: SystemDefinition,
    method: str | Method = "rk4",
    substeps: int = 1,
    *,
    parameters: bool = False,
    backwards: bool = False,
) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next, A, B`` of one step: ``z⁺ = A z + B δu``, in error coordinates.

    The derivatives of the field (`System.derivatives`) go through the stages of the method, as its
    variational equations. Equations that a step solves are differentiated at their solution.

    Parameters
    ----------
    system : System
    method, substeps
        See `System.step`.
    parameters : bool
        Whether to differentiate by the parameters, too: a further result P, shape
        (n_errors, n_parameters), with ``z⁺ = A z + B δu + P δp``.
    backwards : bool
        Whether the products of the stages are multiplied out from the end of the step. With about
        as many inputs as states this takes 0.6 of the operations, for the same numbers to rounding.
        Methods that are not explicit take no notice.

    Returns
    -------
    ModelFunction

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import Parameter, System
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u - p * x, inputs=["force"],
    ...               parameters=[Parameter("drag", "1/s", 2.0)])
    >>> made = step_derivatives(cart, "euler", parameters=True)(0.0, [3.0], [1.0], dt=0.1)
    >>> made.A.item(), made.B.item(), round(made.P.item(), 9)
    (0.8, 0.1, -0.3)
    """
    scheme = _method_for(system, method, substeps)
    chained = backwards and system.symbol is ca.SX and (system.is_discrete or scheme.is_explicit)
    key = ("step_derivatives", None if system.is_discrete else (scheme, substeps), parameters,
           chained)  # fmt: skip

    def make() -> ModelFunction:
        t, x, u, p, dt = _symbols(system, scheme)
        basis = None if system.errors is None else system.errors.basis(x, p)
        motion, start = LiftedMotion.start(
            system.problem, x, u, p, parameters=parameters, basis=basis, chained=chained
        )
        after, _ = _steps(system, scheme, substeps, motion, t, start, dt)
        A, B, P = motion.split(after)
        if system.errors is not None:
            E = ca.DM(system.errors.selection)
            A, B, P = E @ A, E @ B, E @ P
        results = {"x_next": after.value, "A": A, "B": B} | ({"P": P} if parameters else {})
        symbols = [t, x, u, p, dt]
        return matrix_function(system, "step_derivatives", symbols, results)

    return system.memo(key, make)


def point_states(system: SystemDefinition, method: ImplicitRungeKutta) -> ca.Function:
    """``(t, x, u, p, dt) → X, A, B`` at the collocation points of a step, one beside the other.

    The system is continuous, without constraints. A (dim, s dim) and B (dim, s n_inputs) are
    derivatives by the tangent of the state and by the inputs.
    """

    def make() -> ca.Function:
        symbols = _symbols(system, method)
        t, x, u, p, dt = symbols
        motion, start = LiftedMotion.start(system.problem, x, u, p)
        states, _ = method.stage_states(motion, t, start, dt)
        states = [motion.normalize(state) for state in states]
        by_x, by_u, _ = zip(*map(motion.split, states), strict=True)
        results = [ca.horzcat(*parts) for parts in ([s.value for s in states], by_x, by_u)]
        return ca.Function("points", symbols, results, ["t", "x", "u", "p", "dt"], ["X", "A", "B"])

    return system.memo(("points", method), make)


def group_derivatives(
    system: SystemDefinition, t: Value, x: Value, u: Value, p: Value
) -> tuple[Value, Value]:
    """A and B of a discrete system between tangent spaces of the whole group."""
    motion, start = LiftedMotion.start(system.problem, x, u, p)
    after, _ = _steps(system, get_method("euler"), 1, motion, t, start, system.dt)
    A, B, _ = motion.split(after)
    return A, B


@dataclass(frozen=True, eq=False)
class IncrementDerivatives:
    """``(t, x, u, p) → Df, Bf`` of the increment ``f = minus(step(x), x)`` of a continuous system.

    From A, B of the step: ``A = Ad(exp(−f)) + J_r(f) Df``, ``B = J_r(f) Bf``.
    """

    system: SystemDefinition
    method: Method
    substeps: int
    dt: float

    def __call__(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """Derivatives at a point."""
        system, state = self.system, self.system.state
        motion, start = LiftedMotion.start(system.problem, x, u, p)
        after, _ = _steps(system, self.method, self.substeps, motion, t, start, self.dt)
        A, B, _ = motion.split(after)
        f = state.minus(after.value, x)
        inverse = state.right_jacobian_inverse(f)
        return inverse @ (A - state.Ad(state.exp(-f))), inverse @ B


def _method_for(system: SystemDefinition, method: str | Method, substeps: int) -> Method:
    if isinstance(method, str) and method == "auto":
        raise ValueError(
            f'{system.name}: "auto" chooses by the length of the step, which a function of dt '
            "leaves open; give choose_method(system, dt), or a name. discretize, rollout and MPC, "
            'which know dt, take "auto"'
        )
    scheme = get_method(method)
    check_count("substeps", substeps, most=MOST_SUBSTEPS, remedy="shorten the step")
    if scheme.memory:
        raise ValueError(
            f"{system.name}: {scheme.name} carries {scheme.memory} from step to step, which a "
            "function of the state alone cannot; use its own start and step"
        )
    return scheme


def _symbols(system: SystemDefinition, scheme: Method) -> list[Any]:
    symbol: Any = ca.MX if scheme.solves and not system.is_discrete else system.symbol
    return [*symbols_of(system, symbol), symbol.sym("dt")]


def _steps(
    system: SystemDefinition,
    scheme: Method,
    substeps: int,
    motion: Motion,
    t: Value,
    x: Any,
    dt: Value,
) -> tuple[Any, Value]:
    """State after a step, and the largest residual; x is lifted where the motion is."""
    residual: Any = 0.0
    if system.is_discrete:
        x = motion.normalize(motion.plus(x, motion.field(t, x)))
    else:
        h = dt / substeps
        for k in range(substeps):
            made = scheme.advance(motion, t + k * h, x, h)
            x = motion.normalize(made.state)
            residual = ca.fmax(residual, nan_as_infinite(made.residual))
    if system.project is not None and (system.is_discrete or not scheme.keeps_constraints):
        project, slope = system.project, system.project_derivative
        known = None if slope is None else lambda t, x, u, p: slope(x, p)
        x = motion.map(lambda t, x, u, p: project(x, p), t, x, known)
    return x, residual


@memoized
def field_derivatives(system: SystemDefinition) -> ModelFunction:
    """``(t, x, u, p) → A, B, C, D, rate`` of the exact linearization.

    In tangent coordinates of the whole group, constrained or not: `linearize` and
    `step_derivatives` are in the error coordinates of the system. With ``X = X̄ exp(ε)`` and
    ``Y = Ȳ exp(δy)``: continuous ``A = Df − ad_f``, ``B = ∂f/∂u``; discrete ``A, B`` of
    ``ε⁺ = A ε + B δu``, projection included. ``rate`` is f itself.
    """
    t, x, u, p = symbols_of(system)
    rate, y = system.f(t, x, u, p), system.h(t, x, u, p)
    if system.is_discrete:
        A, B = group_derivatives(system, t, x, u, p)
    else:
        Df, B = system.derivatives(t, x, u, p)
        A = Df - system.state.ad(rate)
    C, D = output_derivatives(system.state, system.output, x, u, y)
    results = {"A": A, "B": B, "C": C, "D": D, "rate": rate}
    # f and its derivatives, each shared within, have a tenth in common.
    return matrix_function(system, "linearization", [t, x, u, p], results, is_shared=False)


def output_derivatives(
    state: LieGroup, output: LieGroup, x: Value, u: Value, y: Value
) -> tuple[Value, Value]:
    """Derivatives of y between tangent spaces for displacements of x, and with respect to u.

    y are coordinates on the output group, an expression of x and u.
    """
    drop = output.tangent_matrix(y)
    return drop @ (ca.jacobian(y, x) @ state.rate_matrix(x)), drop @ ca.jacobian(y, u)
