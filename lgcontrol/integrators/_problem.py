"""Problem: what a method may know of the motion it steps; Step: what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca

from ..codegen import ModelFunction, Value
from ..codegen._internal import Memo
from ..groups import LieGroup

Field = Callable[[Value, Value, Value, Value], Value]
"""``field(t, x, u, p) → d``: the body-fixed velocity of ``Ẋ = X d^`` at coordinates x."""


@dataclass(frozen=True, eq=False)
class Lagrangian:
    """Inertia and what acts, apart: ``p = M v``, ``ṗ = ad_vᵀ p + ∂T/∂q + Q``.

    What methods need that keep momenta. All members are callables on CasADi columns, in a System
    model functions.

    Attributes
    ----------
    mass_matrix : callable
        ``(x, p) → M``, shape (n, n), of the velocities and of the `speeds`.
    action : callable
        ``(t, x, u, p) → Q``, shape (n,): all generalized forces, without those that come from the
        inertia and the velocity alone.
    kinetic_gradient : callable or None
        ``(x, p) → ∂T/∂q``, shape (n,), in the tangent space of q, at fixed v. None where M is the
        same in all configurations.
    carried_momentum : callable or None
        ``(x, y, p) → J(y)ᵀ Π(x)``, shape (n,): the momenta Π that the bodies have in space at a
        state x, as generalized momentum in the configuration of a state y. None where it is
        ``Ad(x⁻¹ y)ᵀ p``, as for one body.
    speeds : str
        Block of further velocities, after v: of coordinates that nothing depends on, such as
        angles of wheels. Empty where there are none.
    """

    mass_matrix: Callable[..., Any]
    action: Callable[..., Any]
    kinetic_gradient: Callable[..., Any] | None = None
    carried_momentum: Callable[..., Any] | None = None
    speeds: str = ""


@dataclass(frozen=True, eq=False)
class Mechanical:
    """Structure of a mechanical system: ``q̇ = v``, ``M(q, p) v̇ = F(t, x, u, p)``.

    The state is a Product that begins with the configuration and the velocity; further blocks
    (wheels, motors, actuators) move as the field says. All members are callables on CasADi columns,
    in a System model functions.

    Attributes
    ----------
    configuration, velocity : str
        Blocks of the state.
    mass_matrix : callable
        ``(x, p) → M``, shape (nv, nv), symmetric positive definite.
    force : callable
        ``(t, x, u, p) → F``, shape (nv,): weight, inputs, Coriolis forces, losses, everything but
        ``M v̇`` itself.
    balance_derivatives : callable
        ``(t, x, a, u, p) → by_x, by_u``: derivatives of ``F(t, x, u, p) − M(q, p) a`` at a fixed
        acceleration a, by the tangent of the state (nv, dim) and by the inputs (nv, n_inputs).
        With ``a = v̇`` they are ``M Df`` and ``M Bf`` of the velocity rows.
    loss_jacobian : callable or None
        ``(x, p) → D``, shape (nv, nv), symmetric and not negative: what losses in joints resist,
        ``−∂F/∂v`` of friction and damping alone. None where there are none.
    losses : callable or None
        ``(x, p) → L``, shape (nv,): these losses themselves, functions of the velocity. The force
        contains ``−L``. None if they are linear, as damping is; D has them then.
    model : object
        The tree or body that it was made of.
    is_plain : bool
        Whether nothing acts besides weight, losses in the joints and the inputs, and these are
        generalized forces ``B u`` with a constant matrix ``input_map``.
    lagrangian : Lagrangian or None
        Its inertia and forces apart, where the state is nothing but motion.
    input_map : callable
        ``(t, x, u, p) → ∂F/∂u``, shape (nv, n_inputs).
    motion : callable or None
        ``(q, v, a, j, s, p) → x, rate, u``: state, its rate and inputs for a trajectory of the
        configuration up to the snap, if it determines the further blocks (motors behind springs).
        None if those blocks rest.
    acceleration_hessian : callable or None
        ``(t, x, u, p, w) → H``: second derivatives of ``wᵀ v̇`` by the state, a vector of
        configuration and velocity alone, then the inputs. None where they are not known so.
    """

    configuration: str
    velocity: str
    mass_matrix: Callable[..., Any]
    force: Callable[..., Any]
    balance_derivatives: Callable[..., Any]
    input_map: Callable[..., Any]
    loss_jacobian: Callable[..., Any] | None = None
    losses: Callable[..., Any] | None = None
    model: Any = None
    is_plain: bool = False
    lagrangian: Lagrangian | None = None
    motion: Callable[..., Any] | None = None
    acceleration_hessian: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False)
class Constrained:
    """Mechanics with constraints: ``M v̇ + Gᵀ λ = F``, ``φ(t, q) = 0``.

    What methods need that solve for multipliers. The state begins with configuration and velocity;
    a further block, if any, is the time. All members are callables on CasADi columns, in a System
    functions.

    Attributes
    ----------
    n_rows : int
        Number of rows of G: those on positions first, which have a φ, then those on velocities.
    balance : callable
        ``(t, q, v, u, p, a, λ) → M a − F + Gᵀ λ``.
    position : callable
        ``(t, q, p) → φ``.
    index1 : callable
        ``(t, q, v, u, p) → M, F, G, γ``, M regular: for starts.
    velocity : callable
        ``(t, q, p) → G, ν`` of ``G v = ν``, which positions imply.
    lagrangian : Lagrangian or None
        Inertia and forces of the bodies apart, on ``[q; v]``, where M is regular without the rows.
    velocity_rows : tuple of str
        Names of constraints on velocities, which have no φ; most methods refuse them.
    loss_jacobian, losses : callable or None
        ``(x, p) → D`` and ``(x, p) → L`` of losses in joints, on ``[q; v]``, see `Mechanical`.
    """

    n_rows: int
    balance: Callable[..., Any]
    position: Callable[..., Any]
    index1: Callable[..., Any]
    velocity: Callable[..., Any]
    lagrangian: Lagrangian | None = None
    velocity_rows: tuple[str, ...] = ()
    loss_jacobian: Callable[..., Any] | None = None
    losses: Callable[..., Any] | None = None


@dataclass(frozen=True, eq=False)
class Problem(Memo):
    """A motion ``Ẋ = X f(t, X, u, p)`` as methods see it.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> Problem(SO2, lambda t, x, u, p: [u], n_inputs=1).group.name
    'SO2'
    """

    group: LieGroup
    field: Field  # `(t, x, u, p) → tangent`
    derivatives: Callable[..., Any] | None = None  # `→ ∂f(x exp d)/∂d, ∂f/∂u`; None: traced
    mechanical: Mechanical | None = None  # its structure, where it has one
    n_inputs: int = 0  # length of u
    n_parameters: int = 0
    symbol: type = ca.SX  # `casadi.SX`, or `casadi.MX` for fields that need it
    is_symbolic: bool = True  # False for plain NumPy functions
    constrained: Constrained | None = None  # constraints apart, where a method may solve them

    @classmethod
    def of(cls, group: LieGroup, field: Callable[..., Any], args: Sequence[Any] = ()) -> Problem:
        """Problem of a field ``(t, x, *args) → d``, whose further arguments are constant."""
        symbol, symbolic = ca.SX, isinstance(field, ca.Function | ModelFunction)
        if isinstance(field, ca.Function):
            field = ModelFunction(field, shapes={field.name_in(0): ()})  # the time is a number
        if isinstance(field, ModelFunction) and not field.function.is_a("SXFunction"):
            symbol = ca.MX
        return cls(
            group, lambda t, x, u, p: field(t, x, *args), symbol=symbol, is_symbolic=symbolic
        )


def nan_as_infinite(value: Value) -> Value:
    """A measure of something wrong with NaN as infinity: `casadi.fmax` drops NaN."""
    return ca.if_else(value < ca.inf, value, ca.inf)


class Step(NamedTuple):
    """What one step of a method returns.

    Attributes
    ----------
    state : value
        Coordinates at ``t + dt``.
    memory : value
        What the next step needs besides the state (multipliers, accelerations, history); empty for
        one-step methods.
    residual : value
        Largest residual of the equations the step solved, next to what is tolerated: above 1 they
        are not solved; 0 where there were none. Who runs the step makes a status of it.
    error : value or None
        Estimate of the error of the state as a tangent vector, where the method has one and it was
        asked for.
    """

    state: Any
    memory: Any = ()
    residual: Any = 0.0
    error: Any = None
