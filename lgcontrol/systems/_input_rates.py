"""with_input_rates: a system whose inputs are states and whose controls are their rates."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..groups import Product, Rn
from ._signals import Input
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
    for entry in entries:
        if np.isfinite([entry.lower, entry.upper]).any():
            limits[f"{INPUT}.{entry.name}"] = (entry.lower, entry.upper)
    return System(
        f"{system.name}_rates", state, field,
        inputs=[*inputs, *(system.inputs[i] for i in others), *more],
        parameters=system.parameters, derivatives=derivatives, limits=limits, look=system.look,
    )  # fmt: skip


def block_leads(system: System[Any], t: Any, u: Any) -> list[Any]:
    """Times by which the inputs that act are ahead of the block "input", with ``in_blocks``.

    Parameters
    ----------
    system : System
        That without rates.
    t : casadi.SX or casadi.MX
        In s.
    u : casadi.SX or casadi.MX
        Inputs of the system with rates.

    Returns
    -------
    list of casadi.SX or casadi.MX
        For each control.
    """
    begin, length, *may = ca.vertsplit(u[system.n_inputs :])
    return [may[k] * (begin + length - t) for k in range(len(system.input_index("control")))]


def _measured(system: System[Any], controls: list[int]) -> list[Input]:
    """Inputs that say when inputs may change, and what they should be."""
    entries = [system.inputs[i] for i in controls]
    return [
        *(Input(name, "s", role="measured") for name in STEP),
        *(Input(f"{entry.name}.{MAY}", role="measured") for entry in entries),
        *(Input(f"{entry.name}.{REFERENCE}", entry.unit, role="measured") for entry in entries),
    ]
