"""Exact linearization about the nominal solution, in left-invariant error coordinates."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..codegen import check_shape
from ..groups import LieGroup, Product, check_element
from ._complete import complete_input, complete_parameters
from ._derivatives import field_derivatives
from ._linearization import Linearization, TrajectoryLinearization
from ._steadiness import Steadiness
from ._trajectory import Trajectory

if TYPE_CHECKING:
    from ._system import System


@overload
def linearize(  # type: ignore[overload-overlap]  # Any stands for points
    system: System, x: Trajectory, *, p: Any = None
) -> TrajectoryLinearization: ...
@overload
def linearize(
    system: System, x: Any, u: Any = None, *, t: float | None = None, p: Any = None
) -> Linearization: ...
def linearize(
    system: System, x: Any, u: Any = None, *, t: float | None = None, p: Any = None
) -> Linearization | TrajectoryLinearization:
    """Linearize exactly about the nominal solution through a point, or along a trajectory.

    With ``X = X̄ exp(ε)`` the error obeys ``ε̇ = (Df − ad_f) ε + B δu`` to first order, without an
    affine term, whether or not the point is an equilibrium. A and B hold at time t; they stay what
    they are where the result says that it is time-invariant. For systems with error coordinates of
    their own (`ErrorCoordinates`), ``A_z = E A N``, ``B_z = E B``, ``C_z = C N``.

    Parameters
    ----------
    system : System
    x : array_like of shape (nq,), Trajectory, or a result with attributes x and u
        Where: a state, a trim point, or a whole trajectory.
    u : array_like, shape (n_inputs,), optional
        All inputs, or the controls alone; the others are nominal.
    t : float, optional
        Time in s; that of the point, or 0, if left out.
    p : array_like, shape (n_parameters,), optional
        Parameters; those of the point, or nominal, if left out.

    Returns
    -------
    Linearization or TrajectoryLinearization

    Raises
    ------
    ValueError
        If shapes are wrong, or a derivative is not finite there; the message names the entry.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> from lgcontrol.systems import System
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=["tx", "ty", "tz"])
    >>> satellite.linearize(satellite.state.identity).kind
    'equilibrium'
    """
    if isinstance(x, Trajectory):
        if u is not None:
            raise TypeError("linearize got a trajectory, which has its own inputs, and u as well")
        return _along(system, x, p)
    t, x, u, p = read_point(system, t, x, u, p)
    here = field_derivatives(system)(t, x, u, p)
    _refuse_non_finite(system, here)
    A, B, C, D = _in_errors(system, x, p, here)
    steadiness = Steadiness(system, t, x, u, p, here)
    return Linearization(A, B, C, D, x, u, p, t, here.rate, system.inputs, system, steadiness)


def read_point(
    system: System, t: float | None, x: Any, u: Any, p: Any
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Check t, x, u, p; x may be a point that has some of the others."""
    if hasattr(x, "x") and hasattr(x, "u"):
        if u is not None:
            raise TypeError("got a point, which has its own input, and u as well")
        p = getattr(x, "p", None) if p is None else p
        t = getattr(x, "t", None) if t is None else t
        x, u = x.x, x.u
    return (
        0.0 if t is None else float(check_shape("t", t, ())),
        check_element("x", x, system.state, tolerance=inf),
        system.nominal_input if u is None else complete_input(system, "u", u),
        complete_parameters(system, p),
    )


def _along(system: System, nodes: Trajectory, p: Any) -> TrajectoryLinearization:
    if nodes.x.ndim != 2:
        raise ValueError(f"linearize one trajectory at a time: x has shape {nodes.x.shape}")
    if nodes.u.shape[-1] != system.n_inputs or nodes.group.nq != system.state.nq:
        raise ValueError(
            f"the trajectory has {nodes.group.nq} coordinates and {nodes.u.shape[-1]} inputs, "
            f"{system.name} has {system.state.nq} and {system.n_inputs}"
        )
    if _factors(nodes.group) != _factors(system.state):
        raise ValueError(
            f"the trajectory is on {nodes.group}, the state of {system.name} on {system.state}: "
            "their coordinates mean different things"
        )
    p = complete_parameters(system, p)
    result = field_derivatives(system)(nodes.t, nodes.x, nodes.input_at_nodes, p)
    _refuse_non_finite(system, result)
    return TrajectoryLinearization(nodes, *_in_errors(system, nodes.x, p, result), p, system)


def _in_errors(system: System, x: np.ndarray, p: np.ndarray, full: Any) -> tuple[np.ndarray, ...]:
    """A, B, C, D in the error coordinates of a system, without negative zeros."""
    A, B, C, D = full.A, full.B, full.C, full.D
    if system.errors is not None:
        E, N = system.errors.selection, system.errors.basis(x, p)
        A, B, C = E @ A @ N, E @ B, C @ N
    return tuple(matrix + 0.0 for matrix in (A, B, C, D))


def _factors(group: LieGroup) -> list[LieGroup | None]:
    """Groups that the coordinates belong to, None for one that adds; names and units are left out.

    A trajectory may have been stored, or made by another program, without the names of its blocks.
    """
    if isinstance(group, Product):
        return [factor for block in group.blocks.values() for factor in _factors(block)]
    adds = group.is_commutative and group.nq == group.dim
    return [None] * group.dim if adds else [group]


def _refuse_non_finite(system: System, result: Any) -> None:
    state, output = system.state.tangent_names, system.output.tangent_names
    rows = {"rate": state, "A": state, "B": state, "C": output, "D": output}
    for name, labels in rows.items():
        value = result.rate[..., None] if name == "rate" else getattr(result, name)
        bad = np.argwhere(~np.isfinite(value))
        if len(bad):
            row, column = (int(i) for i in bad[0][-2:])
            raise ValueError(
                f"{system.name}: {name} of the linearization is not finite at "
                f"{labels[row]}, column {column}: the model divides by zero there, "
                "or takes the root or the logarithm of something not positive"
            )
