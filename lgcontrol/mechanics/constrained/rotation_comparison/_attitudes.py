"""Attitudes in closed form on arrays: orientation matrix, Euler parameters, Euler angles."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from ....codegen._internal import check_known
from .._formulations import angle_rates, euler_angles, half_rates, parameter_rotation

UNIT_MATRIX = np.eye(3)
TILDE_Z = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])


def cross_matrix(a: np.ndarray) -> np.ndarray:
    """``ã`` with ``ã b = a × b``, shape (3, 3)."""
    x, y, z = a.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_exp(turn: np.ndarray) -> np.ndarray:
    """Rotation matrix of a rotation vector [rad]: eq. 5."""
    x, y, z = turn.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    first = math.sin(angle) / angle if angle else 1.0
    half = math.sin(angle / 2) / (angle / 2) if angle else 1.0
    c = half * half / 2
    return np.array(
        [
            [1 - c * (y * y + z * z), c * x * y - first * z, c * x * z + first * y],
            [c * x * y + first * z, 1 - c * (x * x + z * z), c * y * z - first * x],
            [c * x * z - first * y, c * y * z + first * x, 1 - c * (x * x + y * y)],
        ]
    )


def turn_about_z(angle: float) -> np.ndarray:
    """Rotation matrix about z [rad]."""
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


class Attitude(ABC):
    """Orientation of one body: what `A s` and its rates are, in some coordinates α.

    `size` is the length of α̇ and of variations δα; the rates α̇ of the orientation matrix are ω in
    body axes. A maps body to world.
    """

    size: int

    def __init__(self, coordinates: np.ndarray, rates: np.ndarray) -> None:
        self.coordinates, self.rates = coordinates, rates
        self.A = self._rotation()

    @classmethod
    @abstractmethod
    def from_rotation(cls, A: np.ndarray, omega: np.ndarray) -> Attitude:
        """Of an orientation and angular velocity in body axes."""

    @abstractmethod
    def _rotation(self) -> np.ndarray: ...

    @abstractmethod
    def first(self, s: np.ndarray) -> np.ndarray:
        """``∂(A s)/∂α``, shape (3, size)."""

    @abstractmethod
    def second(self, s: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``∂(first(s)ᵀ c)/∂α``, shape (size, size)."""

    @abstractmethod
    def quadratic(self, s: np.ndarray) -> np.ndarray:
        """``d²(A s)/dt²`` where the second rates of α are zero, shape (3,)."""

    @property
    @abstractmethod
    def omega(self) -> np.ndarray:
        """Angular velocity in body axes [rad/s]."""

    @abstractmethod
    def acceleration(self, second_rates: np.ndarray) -> np.ndarray:
        """Angular acceleration ω̇ in body axes [rad/s²] for second rates of α."""

    def moved(self, h: float, rates: np.ndarray) -> Attitude:
        """After a step of implicit Euler, ``α⁺ = α + h α̇⁺`` or ``A⁺ = A exp(h ω⁺)``."""
        return type(self)(self.coordinates + h * rates, rates)

    def rates_of_move(self, h: float) -> np.ndarray | None:
        """``h ∂α̇/∂α`` of a step of length h that ended here; None where that is the identity."""
        return None

    def displaced(self, d: np.ndarray) -> Attitude:
        """At a variation of α, with the same rates."""
        return type(self)(self.coordinates + d, self.rates)

    @abstractmethod
    def inertia(self, J: np.ndarray) -> np.ndarray:
        """Mass matrix of the second rates, shape (size, size)."""

    @abstractmethod
    def inertial_torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        """Left side of Euler's equation for the coordinates, without torques."""

    @abstractmethod
    def inertial_derivatives(
        self, J: np.ndarray, second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Its derivatives by α and by α̇."""


class OrientationMatrix(Attitude):
    """rA: the orientation matrix itself, with variations ``A exp(θ̃)``."""

    size = 3

    @classmethod
    def from_rotation(cls, A: np.ndarray, omega: np.ndarray) -> OrientationMatrix:
        """As it is."""
        return cls(A, omega)

    def _rotation(self) -> np.ndarray:
        return self.coordinates

    def first(self, s: np.ndarray) -> np.ndarray:
        """``−A s̃``: eq. 13a."""
        return self.A @ cross_matrix(s).T

    def second(self, s: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``s̃ tilde(Aᵀ c)``: eq. 13c; not symmetric."""
        return cross_matrix(s) @ cross_matrix(self.A.T @ c)

    def quadratic(self, s: np.ndarray) -> np.ndarray:
        """``A ω̃ ω̃ s``."""
        K = cross_matrix(self.rates)
        return self.A @ (K @ (K @ s))

    @property
    def omega(self) -> np.ndarray:
        """The rates."""
        return self.rates

    def acceleration(self, second_rates: np.ndarray) -> np.ndarray:
        """The same."""
        return second_rates

    def moved(self, h: float, rates: np.ndarray) -> OrientationMatrix:
        """``A exp(h ω⁺)``: eq. 32d."""
        return OrientationMatrix(self.A @ rotation_exp(h * rates), rates)

    def rates_of_move(self, h: float) -> np.ndarray:
        """Inverse of the right Jacobian of ``h ω``, up to its fourth power over 720.

        Eq. 37 of the paper takes the identity; then Newton's method converges linearly.
        """
        K = cross_matrix(h * self.rates)
        return UNIT_MATRIX + K / 2 + K @ K / 12

    def displaced(self, d: np.ndarray) -> OrientationMatrix:
        """``A exp(θ̃)``: eq. 12."""
        return OrientationMatrix(self.A @ rotation_exp(d), self.rates)

    def inertia(self, J: np.ndarray) -> np.ndarray:
        """J."""
        return J

    def inertial_torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        """``J ω̇ + ω × J ω``."""
        return J @ second_rates + cross_matrix(self.rates) @ (J @ self.rates)

    def inertial_derivatives(
        self, J: np.ndarray, second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """None by θ; ``ω̃ J − tilde(J ω)`` by ω."""
        w = self.rates
        return np.zeros((3, 3)), cross_matrix(w) @ J - cross_matrix(J @ w)


def _transposed_product(y: np.ndarray) -> np.ndarray:
    """E with ``Gᵀ y = E e``."""
    a, b, c = y.tolist()
    return np.array([[0, -a, -b, -c], [a, 0, c, -b], [b, -c, 0, a], [c, b, -a, 0.0]])


class EulerParameters(Attitude):
    """rp: Euler parameters [e0, e1, e2, e3], whose norm a further equation keeps."""

    size = 4

    @classmethod
    def from_rotation(cls, A: np.ndarray, omega: np.ndarray) -> EulerParameters:
        """With ``ė = Gᵀ ω/2``."""
        x, y, z, w = scipy.spatial.transform.Rotation.from_matrix(A).as_quat()
        e = np.array([w, x, y, z])
        return cls(e, half_rates(e).T @ omega / 2)

    def _rotation(self) -> np.ndarray:
        return parameter_rotation(self.coordinates.tolist())

    @cached_property
    def _half_rates(self) -> np.ndarray:
        return half_rates(self.coordinates.tolist())

    @cached_property
    def _half_rates_of_rates(self) -> np.ndarray:
        return half_rates(self.rates.tolist())

    @staticmethod
    def _by_parameters(e: np.ndarray, s: np.ndarray) -> np.ndarray:
        """``B(e, s) = ∂(A(e) s)/∂e``, linear in e: eq. 23a."""
        v, K = e[1:], cross_matrix(s)
        B = np.empty((3, 4))
        B[:, 0] = 4 * e[0] * s - 2 * (K @ v)
        B[:, 1:] = 2 * (v[:, None] * s + (v @ s) * UNIT_MATRIX - e[0] * K)
        return B

    def first(self, s: np.ndarray) -> np.ndarray:
        """``B(e, s)``: eq. 23a."""
        return self._by_parameters(self.coordinates, s)

    def second(self, s: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``∂(Bᵀ c)/∂e``, a constant matrix: Haug's K."""
        K = np.empty((4, 4))
        product = 2 * s[:, None] * c
        K[0, 0] = 4 * (s @ c)
        K[0, 1:] = K[1:, 0] = 2 * (cross_matrix(s) @ c)
        K[1:, 1:] = product + product.T
        return K

    def quadratic(self, s: np.ndarray) -> np.ndarray:
        """``B(ė, s) ė``."""
        return self._by_parameters(self.rates, s) @ self.rates

    @property
    def omega(self) -> np.ndarray:
        """``2 G ė``."""
        return 2 * self._half_rates @ self.rates

    def acceleration(self, second_rates: np.ndarray) -> np.ndarray:
        """``2 G ë``."""
        return 2 * self._half_rates @ second_rates

    def inertia(self, J: np.ndarray) -> np.ndarray:
        """``4 Gᵀ J G``."""
        G = self._half_rates
        return 4 * G.T @ J @ G

    def inertial_torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        """``4 Gᵀ J G ë − 8 Ġᵀ J Ġ e``: eq. 39a, d."""
        G, rate = self._half_rates, self._half_rates_of_rates
        return 4 * G.T @ (J @ (G @ second_rates)) - 8 * rate.T @ (J @ (rate @ self.coordinates))

    def inertial_derivatives(
        self, J: np.ndarray, second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By the bilinearity ``G(e) x = −G(x) e``."""
        e = self.coordinates
        G, rate = self._half_rates, self._half_rates_of_rates
        by_e = (
            4
            * (
                _transposed_product(J @ (G @ second_rates))
                - G.T @ J @ half_rates(second_rates.tolist())
            )
            - 8 * rate.T @ J @ rate
        )
        by_rate = -8 * (_transposed_product(J @ (rate @ e)) - rate.T @ J @ G)
        return by_e, by_rate


class EulerAngles(Attitude):
    """rε: Euler angles φ, θ, ψ about z, x, z; singular where sin θ is zero."""

    size = 3

    @classmethod
    def from_rotation(cls, A: np.ndarray, omega: np.ndarray) -> EulerAngles:
        """With ``ε̇ = B⁻¹ ω``, of least length where B is singular."""
        angles = euler_angles(scipy.spatial.transform.Rotation.from_matrix(A))
        made = cls(angles, np.zeros(3))
        return cls(angles, np.linalg.lstsq(made._rate_map, omega, rcond=None)[0])

    def _rotation(self) -> np.ndarray:
        phi, theta, psi = self.coordinates.tolist()
        ct, st = math.cos(theta), math.sin(theta)
        tilted = np.array([[1.0, 0.0, 0.0], [0.0, ct, -st], [0.0, st, ct]])
        return turn_about_z(phi) @ tilted @ turn_about_z(psi)

    @cached_property
    def _node(self) -> np.ndarray:
        """Tilde of the line of nodes, about which θ turns, in world axes."""
        phi = float(self.coordinates[0])
        return cross_matrix(np.array([math.cos(phi), math.sin(phi), 0.0]))

    @cached_property
    def _slopes(self) -> np.ndarray:
        """``A_φ, A_θ, A_ψ``, shape (3, 3, 3)."""
        return np.array([TILDE_Z @ self.A, self._node @ self.A, self.A @ TILDE_Z])

    @cached_property
    def _bends(self) -> np.ndarray:
        """Second derivatives of A by the angles, shape (3, 3, 3, 3)."""
        first, (_, by_theta, by_psi) = TILDE_Z @ self._slopes, self._slopes
        second = [first[1], self._node @ by_theta, self._node @ by_psi]
        return np.array([first, second, [first[2], second[2], by_psi @ TILDE_Z]])

    def first(self, s: np.ndarray) -> np.ndarray:
        """``[A_φ s, A_θ s, A_ψ s]``."""
        return (self._slopes @ s).T

    def second(self, s: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``cᵀ A_ab s``."""
        return self._bends @ s @ c

    def quadratic(self, s: np.ndarray) -> np.ndarray:
        """``D s`` of eq. 28b."""
        return self.rates @ (self.rates @ (self._bends @ s))

    @cached_property
    def _rate_map(self) -> np.ndarray:
        """B with ``ω = B ε̇``: eq. 43b."""
        return angle_rates(self.coordinates)

    @cached_property
    def _rate_slopes(self) -> np.ndarray:
        """Derivatives of B by the angles, shape (3, 3, 3)."""
        (_, theta, psi) = self.coordinates.tolist()
        ct, st, cp, sp = math.cos(theta), math.sin(theta), math.cos(psi), math.sin(psi)
        found = np.zeros((3, 3, 3))
        found[1, :, 0] = sp * ct, cp * ct, -st
        found[2, :2, :2] = [[cp * st, -sp], [-sp * st, -cp]]
        return found

    def _rate_bends(self) -> np.ndarray:
        """Second derivatives of B by the angles, shape (3, 3, 3, 3)."""
        (_, theta, psi) = self.coordinates.tolist()
        ct, st, cp, sp = math.cos(theta), math.sin(theta), math.cos(psi), math.sin(psi)
        found = np.zeros((3, 3, 3, 3))
        found[1, 1, :, 0] = -sp * st, -cp * st, -ct
        found[1, 2, :2, 0] = found[2, 1, :2, 0] = cp * ct, -sp * ct
        found[2, 2, :2, :2] = [[-sp * st, -cp], [-cp * st, sp]]
        return found

    @cached_property
    def _moving(self) -> np.ndarray:
        """Ḃ."""
        _, by_theta, by_psi = self._rate_slopes
        return self.rates[1] * by_theta + self.rates[2] * by_psi

    @property
    def omega(self) -> np.ndarray:
        """``B ε̇``."""
        return self._rate_map @ self.rates

    def acceleration(self, second_rates: np.ndarray) -> np.ndarray:
        """``B ε̈ + Ḃ ε̇``."""
        return self._rate_map @ second_rates + self._moving @ self.rates

    def inertia(self, J: np.ndarray) -> np.ndarray:
        """``Bᵀ J B``."""
        B = self._rate_map
        return B.T @ J @ B

    def inertial_torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        """``Bᵀ (J (B ε̈ + Ḃ ε̇) + ω × J ω)``: eq. 43."""
        return self._rate_map.T @ self._torque(J, second_rates)

    def _torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        w = self.omega
        return J @ self.acceleration(second_rates) + cross_matrix(w) @ (J @ w)

    def inertial_derivatives(
        self, J: np.ndarray, second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By the product rule."""
        B, slopes, rates, w = self._rate_map, self._rate_slopes, self.rates, self.omega
        gyroscopic = cross_matrix(w) @ J - cross_matrix(J @ w)
        turned = (slopes @ rates).T  # ∂ω/∂ε
        bent = (slopes @ second_rates + rates @ (self._rate_bends() @ rates)).T
        by_angles = (self._torque(J, second_rates) @ slopes).T
        by_angles = by_angles + B.T @ (J @ bent + gyroscopic @ turned)
        return by_angles, B.T @ (J @ (turned + self._moving) + gyroscopic @ B)


ATTITUDES: dict[str, type[Attitude]] = {
    "rA": OrientationMatrix,
    "rp": EulerParameters,
    "re": EulerAngles,
}
"""Attitudes of the paper by name."""


def attitude_type(name: str) -> Any:
    """Class of a name."""
    check_known("formulation in closed form", ATTITUDES, name)
    return ATTITUDES[name]
