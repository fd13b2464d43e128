"""Drag of a fluid, linear and quadratic in the velocity relative to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import check_shape
from .._coefficients import Coefficient
from .._fields import set_field
from ._forces import BodyMotion, Force

# Relative to the largest entry: damping matrices printed with nine digits.
DAMPING_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class LinearDrag(Force):
    """``W = −D V_r``: drag linear in the twist relative to the fluid.

    Parameters
    ----------
    damping : array_like, shape (6,) or (6, 6)
        Damping D along ``[v; ω]``, or its diagonal; N s/m and N m s/rad.
    name : str
        Name of the force.

    Raises
    ------
    ValueError
        If D would feed energy into the body.

    Examples
    --------
    >>> LinearDrag([5, 5, 5, 1, 1, 1]).damping.shape
    (6, 6)
    """

    damping: Any
    name: str = "linear_drag"

    def __post_init__(self) -> None:
        D = _damping(self)
        weakest = float(np.linalg.eigvalsh(D + D.T)[0]) / 2
        if weakest < -DAMPING_TOLERANCE * np.abs(D).max():
            raise ValueError(
                "LinearDrag: damping feeds energy in: the smallest eigenvalue of its symmetric "
                f"part is {weakest:.3g}; give drag with positive sign (W = −D V)"
            )

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """The damping."""
        return {"damping": Coefficient(self.damping, _units("s"))}

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        return -(c["damping"] @ motion.relative_twist)


@dataclass(frozen=True, eq=False)
class QuadraticDrag(Force):
    """``W = −D (|V_r| ∘ V_r)``: drag quadratic in each component of the relative twist.

    Twice differentiable in code at standstill: value, gradient and Hessian are finite there.

    Parameters
    ----------
    damping : array_like, shape (6,) or (6, 6)
        Damping D along ``[v; ω]``, or its diagonal; N s²/m² and N m s²/rad².
    name : str
        Name of the force.

    Raises
    ------
    ValueError
        If an entry of the diagonal is negative.

    Examples
    --------
    >>> QuadraticDrag([18.2, 21.7, 36.9, 1.6, 1.6, 1.6]).name
    'quadratic_drag'
    """

    damping: Any
    name: str = "quadratic_drag"

    def __post_init__(self) -> None:
        D = _damping(self)
        if (np.diag(D) < 0).any():
            raise ValueError(
                f"QuadraticDrag: damping has the negative diagonal entry {np.diag(D).min():.3g}; "
                "give drag with positive sign (W = −D |V| V)"
            )

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """The damping."""
        return {"damping": Coefficient(self.damping, _units("s²"), lower=0.0)}

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        V = motion.relative_twist
        return -(c["damping"] @ (ca.fabs(V) * V))


def _damping(force: Any) -> np.ndarray:
    """Check the damping and keep it as a matrix."""
    label = f"{type(force).__name__}: damping"
    given = np.asarray(force.damping)
    is_diagonal = given.ndim == 1
    D = np.diag(check_shape(label, given, (6,))) if is_diagonal else given
    set_field(force, "damping", check_shape(label, D, (6, 6)))
    return force.damping


def _units(time: str) -> np.ndarray:
    """Units of a damping matrix: force or moment over a power of velocity or rate."""
    power = time[1:]
    linear, angular = f"{time}/m{power}", f"{time}/rad{power}"
    row = [f"N {linear}"] * 3 + [f"N {angular}"] * 3
    return np.array([row] * 3 + [[unit.replace("N ", "N m ", 1) for unit in row]] * 3)
