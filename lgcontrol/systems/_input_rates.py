"""Inputs whose rates are the inputs, and inputs that are accelerations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..groups import Product, Rn
from ..integrators import Mechanical
from ._signals import Input, Quantity, names_of
from ._system import System

INPUT = "input"
# Measured inputs of blocks: start and length of the step; of each control whether it may change in
# this step, and its reference.
STEP, MAY, REFERENCE = ("step.begin", "step.length"), "may_change", "reference"


def with_input_rates(
    system: System[Any], limit: Any = np.inf, *, lead: float = 0.0, in_blocks: bool = False
) -> System[Product]:
    """System with its controls as a block "input" of the state, and their rates as controls.

    Weights and bounds on rates are then those on controls. The system knows the limits of the
    inputs themselves, and ``Bound("input")`` keeps them.

    Parameters
    ----------
    system : System
        Continuous.
    limit : float or array_like, shape (m,)
        Largest rates, in units of the controls per s.
    lead : float
        Time in s by which the inputs that act are ahead of the block "input". Half a step makes
        them, in the mean, those of a loop that holds each over the step at whose end it is the
        block's.
    in_blocks : bool
        Whether inputs are held, and change at the start of the steps in which they may. The block
        "input" then goes in a step from the input before to that of the step.

    Returns
    -------
    System
        State: that of the system, then "input". Controls "rotor.0.rate" and so on, then the other
        inputs. With ``in_blocks`` measured inputs follow: "step.begin" and "step.length" in s, then
        "rotor.0.may_change" (1 or 0) and "rotor.0.reference" of each control.

    Raises
    ------
    ValueError
        If the system is discrete, or a limit is not positive.

    Examples
    --------
    >>> pull = Input("pull", "", -2, 2)
    >>> cart = System("cart", Rn(1, ("place",)), lambda t, x, u, p: u, inputs=[pull])
    >>> smooth = with_input_rates(cart, 5.0)
    >>> smooth.state, smooth.input_names, dict(smooth.limits)
    (Product(state=Rn(1), input=Rn(1)), ('pull.rate',), {'input.pull': (-2.0, 2.0)})
    """
    if system.is_discrete:
        raise ValueError(f"{system.name} is discrete: rates of inputs are of continuous systems")
    controls = system.input_index("control").tolist()
    most = np.broadcast_to(np.asarray(limit, dtype=np.float64), (len(controls),))
    if not (most > 0).all():
        raise ValueError(f"limit must be positive, got {limit}")
    blocks = system.state.blocks if isinstance(system.state, Product) else {"state": system.state}
    own = tuple(system.input_names[i] for i in controls)
    units = tuple(system.inputs[i].unit for i in controls)
    state = Product(**blocks, **{INPUT: Rn(len(own), own, units)})
    nq, dim, m = system.state.nq, system.state.dim, len(controls)
    others = [i for i in range(system.n_inputs) if i not in controls]
    entries = [system.inputs[i] for i in controls]
    inputs = [
        Input(f"{entry.name}.rate", f"{entry.unit}/s" if entry.unit else "", -rate, rate)
        for entry, rate in zip(entries, most.tolist(), strict=True)
    ]
    place = {i: nq + k for k, i in enumerate(controls)}
    rank = {i: m + k for k, i in enumerate(others)}
    more = _measured(system, controls) if in_blocks else []

    def rates(u: Any) -> Any:
        return u[system.n_inputs + 2 :][:m] * u[:m] if in_blocks else u[:m]

    def inside(t: Any, x: Any, u: Any) -> Any:
        now = [x[place[i]] if i in place else u[rank[i]] for i in range(system.n_inputs)]
        leads = block_leads(system, t, u) if in_blocks else [lead] * m
        for k, i in enumerate(controls):
            now[i] = now[i] + leads[k] * u[k] if in_blocks or lead else now[i]
        return ca.vertcat(*now)

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(system.f(t, x[:nq], inside(t, x, u), p), rates(u))

    def derivatives(t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any]:
        now = inside(t, x, u)
        Df, Bf = system.derivatives.function(t, x[:nq], now, p)
        by_x = ca.vertcat(ca.horzcat(Df, Bf[:, controls]), ca.DM(m, dim + m))
        by_u = ca.vertcat(Bf @ ca.jacobian(now, u), ca.jacobian(rates(u), u))
        return by_x, by_u

    prefix = "" if isinstance(system.state, Product) else "state."
    limits = {f"{prefix}{name}": pair for name, pair in system.limits.items()}
    return with_controls(
        system, "rates", state, field, derivatives, inputs, more,
        limits=limits | _limits_of(entries),
    )  # fmt: skip


def with_controls(
    system: System[Any], suffix: str, state: Any, field: Callable[..., Any],
    derivatives: Callable[..., Any], controls: Sequence[Input], measured: Sequence[Input] = (), *,
    limits: Mapping[str, Any], **options: Any,
) -> System[Any]:  # fmt: skip
    """System with other controls, its other inputs behind them, then measured ones."""
    kept = set(system.input_index("control").tolist())
    others = [entry for i, entry in enumerate(system.inputs) if i not in kept]
    return System(
        f"{system.name}_{suffix}", state, field, inputs=[*controls, *others, *measured],
        parameters=system.parameters, derivatives=derivatives, limits=limits, look=system.look,
        **options,
    )  # fmt: skip


def _limits_of(controls: Sequence[Input]) -> dict[str, tuple[Any, Any]]:
    """Limits of the block "input", or of the quantity: those of the controls that have some."""
    return {
        f"{INPUT}.{entry.name}": (entry.lower, entry.upper)
        for entry in controls
        if np.isfinite([entry.lower, entry.upper]).any()
    }


def block_leads(system: System[Any], t: Any, u: Any) -> list[Any]:
    """Times by which the inputs that act are ahead of the block "input", with ``in_blocks``.

    The system is that without rates, inputs are those of the one with rates; one time for each
    control.
    """
    begin, length, *may = ca.vertsplit(u[system.n_inputs :])
    return [may[k] * (begin + length - t) for k in range(len(system.input_index("control")))]


def changes_in_blocks(system: System[Any]) -> bool:
    """Whether a system is one of `with_input_rates` with ``in_blocks``."""
    m = len(system.input_index("control"))
    return tuple(system.input_names[-2 * m - 2 :][:2]) == STEP


def _measured(system: System[Any], controls: list[int]) -> list[Input]:
    """Inputs that say when inputs may change, and what they should be."""
    entries = [system.inputs[i] for i in controls]
    return [
        *(Input(name, "s", role="measured") for name in STEP),
        *(Input(f"{entry.name}.{MAY}", role="measured") for entry in entries),
        *(Input(f"{entry.name}.{REFERENCE}", entry.unit, role="measured") for entry in entries),
    ]


def with_accelerations(system: System[Any]) -> System[Product]:
    """System with accelerations as controls, and the inputs that they take as quantity "input".

    For plans of trees, where inverse dynamics and its derivatives are cheaper than forward
    dynamics: ``q̇ = v``, ``v̇ = a``, and ``u = B⁻¹ (M a − F₀)`` are rows. The system knows the
    limits of the inputs: ``Bound("input", at="path")`` keeps them. ``Residual("input", R)`` is the
    cost of the inputs, beside a small weight R on accelerations. Both have the derivatives of
    inverse dynamics in closed form. With ``semi_implicit_euler`` plans are those of the system
    itself: both methods hold accelerations over a step. Others hold inputs there, accelerations
    here. For TVLQR, `simulate` and plots, a plan becomes one of the system by its inputs, as in the
    last lines of the example.

    Parameters
    ----------
    system : System
        Continuous, of a configuration and its velocity alone, with as many controls as degrees of
        freedom, which are generalized forces ``B u`` with a constant B: ``tree.system()``.

    Returns
    -------
    System
        Controls: the accelerations by the names of the velocities. Then the other inputs.

    Raises
    ------
    ValueError
        If the system has no such structure, or its controls do not drive every degree of freedom.

    Examples
    --------
    >>> from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(3.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> weak = JointProperties(effort=5.0)
    >>> pendulum = Multibody().add_body("rod", rod, "revolute", axis="y", properties=weak).system()
    >>> planned = with_accelerations(pendulum)
    >>> planned.f(0.0, [0.0, 1.0], [2.0]), dict(planned.limits)
    (array([1., 2.]), {'input.rod': (-5.0, 5.0)})
    >>> planned.quantities["input"](0.0, [0.0, 1.0], [2.0])  # m l²/3 times the acceleration
    array([2.])
    >>> from lgcontrol.systems import Trajectory
    >>> plan = planned.rollout([0.0, 0.0], [2.0], 0.1, steps=5)
    >>> torques = planned.quantities["input"](plan.t, plan.x, plan.input_at_nodes)
    >>> driven = Trajectory(pendulum.state, plan.t, plan.x, torques, inputs=pendulum.inputs)
    >>> driven.u[0], bool(np.abs(pendulum.linearize(driven).B).max() > 0.9)
    (array([2.]), True)
    """
    structure, state = system.structure, system.state
    if structure is None or not isinstance(state, Product) or system.is_discrete:
        raise ValueError(
            f"{system.name} has no structure: accelerations are controls of systems that know "
            "their mass matrix and forces; take tree.system(…)"
        )
    configuration, velocity = structure.configuration, structure.velocity
    if tuple(state.blocks) != (configuration, velocity) or system.errors is not None:
        raise ValueError(
            f"the state of {system.name} is {state}: accelerations are controls of systems of a "
            "configuration and its velocity alone, without constraints"
        )
    controls = system.input_index("control").tolist()
    others = [i for i in range(system.n_inputs) if i not in controls]
    n, own = state.blocks[velocity].dim, state.tangent_slice(velocity)
    inverse = _inverse_drive(system, structure, controls, n)

    def inside(u: Value) -> Value:
        """Inputs of the system, its controls zero."""
        every = [ca.SX(0)] * system.n_inputs
        for k, i in enumerate(others):
            every[i] = u[n + k]
        return ca.vertcat(*every)

    def taken(t: Value, x: Value, u: Value, p: Value) -> Value:
        missing = structure.mass_matrix(x, p) @ u[:n] - structure.force(t, x, inside(u), p)
        return inverse @ missing

    def slopes(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value, Value]:
        """Those of the balance of forces, at accelerations that are the controls."""
        given = inside(u)
        by_x, by_u = structure.balance_derivatives(t, x, u[:n], given, p)
        M = structure.mass_matrix(x, p)
        by_own = ca.horzcat(M, -by_u[:, others])
        missing = M @ u[:n] - structure.force(t, x, given, p)
        return inverse @ missing, -inverse @ by_x, inverse @ by_own

    def field(t: Value, x: Value, u: Value, p: Value) -> Value:
        return ca.vertcat(x[state.coordinate_slice(velocity)], u[:n])

    def derivatives(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        by_x, by_u = ca.SX(2 * n, 2 * n), ca.SX(2 * n, n + len(others))
        by_x[:n, n:], by_u[n:, :n] = ca.DM.eye(n), ca.DM.eye(n)
        return by_x, by_u

    names, units = state.tangent_names[own], state.tangent_units[own]
    inputs = [
        Input(f"{name.removeprefix(f'{velocity}.')}.acceleration", f"{unit}²" if unit else "")
        for name, unit in zip(names, units, strict=True)
    ]
    entries = [system.inputs[i] for i in controls]
    limits = {key: pair for key, pair in system.limits.items() if key in state.coordinate_names}
    m = n + len(others)
    return with_controls(
        system, "accelerations", state, field, derivatives, inputs,
        limits=limits | _limits_of(entries),
        quantities={INPUT: Quantity(taken, names_of(entries), derivatives=slopes)},
        structure=Mechanical(
            configuration, velocity,
            mass_matrix=lambda x, p: ca.SX.eye(n),
            force=lambda t, x, u, p: u[:n],
            balance_derivatives=lambda t, x, a, u, p: (ca.SX(n, 2 * n), ca.SX.eye(m)[:n, :]),
            input_map=lambda t, x, u, p: ca.SX.eye(m)[:n, :],
        ),
    )  # fmt: skip


def _inverse_drive(
    system: System[Any], structure: Mechanical, controls: list[int], n: int
) -> ca.DM:
    """Inverse of the matrix B of the controls, where it has one and is constant."""
    symbols = [ca.SX.sym(name, size) for name, size in (
        ("t", 1), ("x", system.state.nq), ("u", system.n_inputs), ("p", system.n_parameters),
    )]  # fmt: skip
    B = ca.cse(ca.SX(structure.input_map(*symbols)))[:, controls]
    if ca.depends_on(B, ca.vertcat(*symbols)):
        raise ValueError(
            f"{system.name}: what its controls do depends on state, inputs or parameters; "
            "accelerations are controls where inputs are generalized forces"
        )
    matrix = ca.evalf(B).full()
    rank = np.linalg.matrix_rank(matrix)
    if not len(controls) == rank == n:
        raise ValueError(
            f"{system.name}: {len(controls)} controls drive {rank} of {n} degrees of freedom; "
            "accelerations are controls where there is one control for each"
        )
    return ca.sparsify(ca.DM(np.linalg.inv(matrix)))
