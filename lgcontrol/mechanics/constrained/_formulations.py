"""Formulations: how position and attitude of a body become coordinates and velocities."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
import scipy

from ...codegen import Value
from ...codegen._internal import UnknownNameError, unknown_name
from ...groups import SE3, SO3, LieGroup, Product, Rn, Translation
from ..representations._unified import UnifiedVelocity


def euler_angles(turn: scipy.spatial.transform.Rotation) -> np.ndarray:
    """Euler angles z-x-z [rad]; the third is zero where the second is, and nothing is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return turn.as_euler("ZXZ")


def half_rates(e: Any, stack: Any = np.array) -> Any:
    """G with ``ω = 2 G ė`` of Euler parameters, shape (3, 4): eq. 39c.

    `stack` makes a matrix of lists of rows, of arrays or of CasADi values.
    """
    e0, e1, e2, e3 = (e[i] for i in range(4))
    return stack([[-e1, e0, e3, -e2], [-e2, -e3, e0, e1], [-e3, e2, -e1, e0]])


def parameter_rotation(e: Any, stack: Any = np.array) -> Any:
    """A of Euler parameters [e0, e1, e2, e3], as in the paper: quadratic also off the sphere."""
    e0, e1, e2, e3 = (e[i] for i in range(4))
    return 2 * stack(
        [
            [e0 * e0 + e1 * e1 - 0.5, e1 * e2 - e0 * e3, e1 * e3 + e0 * e2],
            [e1 * e2 + e0 * e3, e0 * e0 + e2 * e2 - 0.5, e2 * e3 - e0 * e1],
            [e1 * e3 - e0 * e2, e2 * e3 + e0 * e1, e0 * e0 + e3 * e3 - 0.5],
        ]
    )


def angle_rates(angles: Any, module: Any = np, stack: Any = np.array) -> Any:
    """B with ``ω = B ε̇`` of Euler angles in body axes, shape (3, 3): eq. 43b.

    `module` has sine and cosine, NumPy or CasADi; `stack` as for `half_rates`.
    """
    theta, psi = angles[1], angles[2]
    ct, st, cp, sp = module.cos(theta), module.sin(theta), module.cos(psi), module.sin(psi)
    return stack([[sp * st, cp, 0.0], [cp * st, -sp, 0.0], [ct, 0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class Formulation:
    """Coordinates x and velocities v of one body; they determine ``(r, A)`` and ``(ṙ, ω)``.

    r is the centre of mass in the world [m], A the rotation from body to world, ṙ in world axes,
    ω in body axes.

    Parameters
    ----------
    name : str
        The word that chooses it.
    group : LieGroup
        Of the coordinates.
    pose : callable
        ``x → r, A`` on CasADi columns.
    rates : callable
        ``(x, v) → [ṙ; ω]``, linear in v, on CasADi columns.
    coordinates : callable
        ``(r, quaternion) → x`` of arrays, quaternions as in SO3.
    velocity : callable
        ``(x, [ṙ; ω]) → v`` of arrays.
    norm : callable or None
        ``x → φ`` that vanishes where the coordinates are those of a pose.
    regularity : callable or None
        ``x → c``, zero where the coordinates are singular.
    is_isometric : bool
        Whether inertias in v are regular and the same in all configurations.
    """

    name: str
    group: LieGroup
    pose: Callable[[Value], tuple[Any, Any]]
    rates: Callable[[Value, Value], Any]
    coordinates: Callable[[np.ndarray, np.ndarray], np.ndarray]
    velocity: Callable[[np.ndarray, np.ndarray], np.ndarray]
    norm: Callable[[Value], Any] | None = None
    regularity: Callable[[Value], Any] | None = None
    is_isometric: bool = False

    @cached_property
    def rate_map(self) -> ca.Function:
        """``x → T`` with ``[ṙ; ω] = T v``."""
        x, v = ca.SX.sym("x", self.group.nq), ca.SX.sym("v", self.group.dim)
        return ca.Function("rate_map", [x], [ca.jacobian(self.rates(x, v), v)])

    @cached_property
    def bent_rates(self) -> ca.Function:
        """``(x, v) → Ṫ v``."""
        x, v = ca.SX.sym("x", self.group.nq), ca.SX.sym("v", self.group.dim)
        bent = ca.jtimes(self.rates(x, v), x, self.group.rate_matrix(x) @ v)
        return ca.Function("bent_rates", [x, v], [ca.sparsify(ca.simplify(bent))])


POSITION = Translation("xyz")


def _pose_of_quaternion(x: Value) -> tuple[Any, Any]:
    return x[:3], SO3.matrix(x[3:7])


def _joined(r: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    return np.concatenate([r, quaternion])


def _columns(rows: list[list[Any]]) -> Any:
    return ca.vertcat(*(ca.horzcat(*row) for row in rows))


def _euler_angle_rotation(angles: Value) -> Any:
    phi, theta, psi = ca.vertsplit(angles)

    def about_z(a: Value) -> Any:
        return _columns([[ca.cos(a), -ca.sin(a), 0], [ca.sin(a), ca.cos(a), 0], [0, 0, 1]])

    tilt = _columns(
        [[1, 0, 0], [0, ca.cos(theta), -ca.sin(theta)], [0, ca.sin(theta), ca.cos(theta)]]
    )
    return about_z(phi) @ tilt @ about_z(psi)


def _to_euler_angles(r: np.ndarray, quaternion: np.ndarray) -> np.ndarray:
    return _joined(r, euler_angles(scipy.spatial.transform.Rotation.from_quat(quaternion)))


def _parameter_velocity(x: np.ndarray, rates: np.ndarray) -> np.ndarray:
    return _joined(rates[:3], half_rates(x[3:]).T @ rates[3:] / 2)


def _angle_velocity(x: np.ndarray, rates: np.ndarray) -> np.ndarray:
    return _joined(rates[:3], np.linalg.lstsq(angle_rates(x[3:]), rates[3:], rcond=None)[0])


def _screw_velocity(x: np.ndarray, rates: np.ndarray) -> np.ndarray:
    return _joined(SO3.matrix(x[3:]).T @ rates[:3], rates[3:])


LENGTHS, ANGLES = ("m",) * 3, ("rad",) * 3
SPLIT = Product(position=POSITION, attitude=SO3)

FORMULATIONS: dict[str, Formulation] = {
    entry.name: entry
    for entry in (
        Formulation(
            "SO3xR3",
            SPLIT,
            _pose_of_quaternion,
            lambda x, v: v,
            _joined,
            lambda x, rates: rates,
            is_isometric=True,
        ),
        Formulation(
            "SE3",
            SE3,
            _pose_of_quaternion,
            lambda x, v: ca.vertcat(SO3.matrix(x[3:7]) @ v[:3], v[3:]),
            _joined,
            _screw_velocity,
            is_isometric=True,
        ),
        Formulation(
            "rp",
            Rn(7, ("x", "y", "z", "e0", "e1", "e2", "e3"), (*LENGTHS, "", "", "", "")),
            lambda x: (x[:3], parameter_rotation(x[3:], _columns)),
            lambda x, v: ca.vertcat(v[:3], 2 * half_rates(x[3:], _columns) @ v[3:]),
            lambda r, quaternion: _joined(r, np.roll(quaternion, 1)),
            _parameter_velocity,
            norm=lambda x: (ca.sumsqr(x[3:]) - 1) / 2,
        ),
        Formulation(
            "re",
            Rn(6, ("x", "y", "z", "phi", "theta", "psi"), (*LENGTHS, *ANGLES)),
            lambda x: (x[:3], _euler_angle_rotation(x[3:])),
            lambda x, v: ca.vertcat(v[:3], angle_rates(x[3:], ca, _columns) @ v[3:]),
            _to_euler_angles,
            _angle_velocity,
            regularity=lambda x: ca.sin(x[4]),
        ),
    )
}
"""What the motion of a body may be written in, by name.

"SO3xR3" is (SO(3) × R³)ⁿ with velocities ``[ṙ in world axes; ω in body axes]``, which in the
stepping of the paper is called rA; "SE3" is SE(3)ⁿ with body twists; "rp" Euler parameters and "re"
Euler angles z-x-z.
"""


Choice: TypeAlias = (
    "str | Formulation | UnifiedVelocity | Mapping[str, str | Formulation | UnifiedVelocity]"
)
"""A formulation of all bodies, or one for each by name."""

AUTO = "auto"


def unified_formulation(unified: UnifiedVelocity) -> Formulation:
    """Poses on SE(3) with speeds of six points, given from the centre of mass, for twists.

    References
    ----------
    S. Holzinger, J. Gerstmayr, J. Schöberl: eq. 54 and 56.
    """
    screw, back = FORMULATIONS["SE3"], ca.sparsify(ca.DM(unified.inverse))
    return Formulation(
        "unified",
        unified.group,
        screw.pose,
        lambda x, w: screw.rates(x, back @ w),
        screw.coordinates,
        lambda x, rates: unified.matrix @ screw.velocity(x, rates),
        is_isometric=True,
    )


def as_formulation(given: str | Formulation | UnifiedVelocity) -> Formulation:
    """Formulation of a name or of unified velocities; "rA" is another one of "SO3xR3"."""
    if isinstance(given, Formulation):
        return given
    if isinstance(given, UnifiedVelocity):
        return unified_formulation(given)
    known = {**FORMULATIONS, "rA": FORMULATIONS["SO3xR3"]}
    if not isinstance(given, str) or given not in known:
        raise UnknownNameError(unknown_name("formulation", given, [*known, AUTO]))
    return known[given]
