"""Attitudes in closed form on arrays: orientation matrix, Euler parameters, Euler angles."""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import scipy

from ...codegen import UnknownNameError, unknown_name

UNIT = np.eye(3)


def cross_matrix(a: np.ndarray) -> np.ndarray:
    """``ã`` with ``ã b = a × b``, shape (3, 3)."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_exp(turn: np.ndarray) -> np.ndarray:
    """Rotation matrix of a rotation vector [rad]: eq. 5."""
    angle = math.sqrt(float(turn @ turn))
    K = cross_matrix(turn)
    first = math.sin(angle) / angle if angle else 1.0
    half = math.sin(angle / 2) / (angle / 2) if angle else 1.0
    return UNIT + first * K + half * half / 2 * (K @ K)


def euler_angles(turn: scipy.spatial.transform.Rotation) -> np.ndarray:
    """Euler angles z-x-z [rad]; the third is zero where the second is, and nothing is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return turn.as_euler("ZXZ")


class Attitude(ABC):
    """Orientation of one body: what `A s` and its rates are, in some coordinates α.

    Attributes
    ----------
    size : int
        Length of α̇ and of variations δα.
    coordinates : ndarray
        α.
    rates : ndarray, shape (size,)
        α̇; of the orientation matrix ω in body axes.
    A : ndarray, shape (3, 3)
        Body to world.
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

    @abstractmethod
    def moved(self, h: float, rates: np.ndarray) -> Attitude:
        """After a step of implicit Euler, ``α⁺ = α + h α̇⁺`` or ``A⁺ = A exp(h ω⁺)``."""

    @abstractmethod
    def displaced(self, d: np.ndarray) -> Attitude:
        """At a variation of α, with the same rates."""

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
        return -self.A @ cross_matrix(s)

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


def _transposed_product(y: np.ndarray) -> np.ndarray:
    """E with ``Gᵀ y = E e``."""
    a, b, c = y
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
        return parameter_rotation(self.coordinates)

    @staticmethod
    def _by_parameters(e: np.ndarray, s: np.ndarray) -> np.ndarray:
        """``B(e, s) = ∂(A(e) s)/∂e``, linear in e: eq. 23a."""
        v = e[1:]
        B = np.empty((3, 4))
        B[:, 0] = 4 * e[0] * s + 2 * (cross_matrix(v) @ s)
        B[:, 1:] = 2 * (np.outer(v, s) + (v @ s) * np.eye(3) - e[0] * cross_matrix(s))
        return B

    def first(self, s: np.ndarray) -> np.ndarray:
        """``B(e, s)``: eq. 23a."""
        return self._by_parameters(self.coordinates, s)

    def second(self, s: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``∂(Bᵀ c)/∂e``, a constant matrix: Haug's K."""
        K = np.empty((4, 4))
        turned = cross_matrix(s) @ c
        K[0, 0] = 4 * (s @ c)
        K[0, 1:] = K[1:, 0] = 2 * turned
        K[1:, 1:] = 2 * (np.outer(s, c) + np.outer(c, s))
        return K

    def quadratic(self, s: np.ndarray) -> np.ndarray:
        """``B(ė, s) ė``."""
        return self._by_parameters(self.rates, s) @ self.rates

    @property
    def omega(self) -> np.ndarray:
        """``2 G ė``."""
        return 2 * half_rates(self.coordinates) @ self.rates

    def acceleration(self, second_rates: np.ndarray) -> np.ndarray:
        """``2 G ë``."""
        return 2 * half_rates(self.coordinates) @ second_rates

    def moved(self, h: float, rates: np.ndarray) -> EulerParameters:
        """``e + h ė⁺``."""
        return EulerParameters(self.coordinates + h * rates, rates)

    def displaced(self, d: np.ndarray) -> EulerParameters:
        """``e + δe``."""
        return EulerParameters(self.coordinates + d, self.rates)

    def inertia(self, J: np.ndarray) -> np.ndarray:
        """``4 Gᵀ J G``."""
        G = half_rates(self.coordinates)
        return 4 * G.T @ J @ G

    def inertial_torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        """``4 Gᵀ J G ë − 8 Ġᵀ J Ġ e``: eq. 39a, d."""
        G, rate = half_rates(self.coordinates), half_rates(self.rates)
        return 4 * G.T @ (J @ (G @ second_rates)) - 8 * rate.T @ (J @ (rate @ self.coordinates))

    def inertial_derivatives(
        self, J: np.ndarray, second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By the bilinearity ``G(e) x = −G(x) e``."""
        e = self.coordinates
        G, rate = half_rates(e), half_rates(self.rates)
        by_e = (
            4 * (_transposed_product(J @ (G @ second_rates)) - G.T @ J @ half_rates(second_rates))
            - 8 * rate.T @ J @ rate
        )
        by_rate = -8 * (_transposed_product(J @ (rate @ e)) - rate.T @ J @ G)
        return by_e, by_rate


class EulerAngles(Attitude):
    """rε: Euler angles φ, θ, ψ about z, x, z; singular where sin θ is zero."""

    size = 3

    def __init__(self, coordinates: np.ndarray, rates: np.ndarray) -> None:
        c, s = np.cos(coordinates), np.sin(coordinates)
        zero = np.zeros((3, 3))
        turns = []
        for k in range(3):
            parts = [zero.copy() for _ in range(3)]
            p, q, axis = (1, 2, 0) if k == 1 else (0, 1, 2)
            a, b, d = parts
            a[axis, axis] = 1.0
            a[p, p] = a[q, q] = b[q, p] = c[k]
            b[p, q] = -c[k]
            b[p, p] = b[q, q] = -s[k]
            a[p, q], a[q, p] = -s[k], s[k]
            d[p, p] = d[q, q] = -c[k]
            d[p, q], d[q, p] = s[k], -s[k]
            turns.append(parts)
        self._turns = turns
        super().__init__(coordinates, rates)

    @classmethod
    def from_rotation(cls, A: np.ndarray, omega: np.ndarray) -> EulerAngles:
        """With ``ε̇ = B⁻¹ ω``, of least length where B is singular."""
        angles = euler_angles(scipy.spatial.transform.Rotation.from_matrix(A))
        made = cls(angles, np.zeros(3))
        return cls(angles, np.linalg.lstsq(made._rate_map(), omega, rcond=None)[0])

    def _product(self, *orders: int) -> np.ndarray:
        first, second, third = (self._turns[k][order] for k, order in enumerate(orders))
        return first @ second @ third

    def _rotation(self) -> np.ndarray:
        return self._product(0, 0, 0)

    def _derivative(self, *angles: int) -> np.ndarray:
        orders = [0, 0, 0]
        for angle in angles:
            orders[angle] += 1
        return self._product(*orders)

    def first(self, s: np.ndarray) -> np.ndarray:
        """``[A_φ s, A_θ s, A_ψ s]``."""
        return np.column_stack([self._derivative(k) @ s for k in range(3)])

    def second(self, s: np.ndarray, c: np.ndarray) -> np.ndarray:
        """``cᵀ A_ab s``."""
        K = np.empty((3, 3))
        for a in range(3):
            for b in range(a + 1):
                K[a, b] = K[b, a] = c @ (self._derivative(a, b) @ s)
        return K

    def quadratic(self, s: np.ndarray) -> np.ndarray:
        """``D s`` of eq. 28b."""
        w = self.rates
        total = np.zeros(3)
        for a in range(3):
            for b in range(a + 1):
                share = w[a] * w[b] * (1 if a == b else 2)
                total += share * (self._derivative(a, b) @ s)
        return total

    def _rate_map(self) -> np.ndarray:
        """B with ``ω = B ε̇``: eq. 43b."""
        return angle_rates(self.coordinates)

    def _rate_maps(self) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
        """First and second derivatives of B by the angles."""
        (_, theta, psi) = self.coordinates
        ct, st, cp, sp = np.cos(theta), np.sin(theta), np.cos(psi), np.sin(psi)
        none = np.zeros((3, 3))

        def of(rows: list[list[float]]) -> np.ndarray:
            return np.array([[*row, 0.0] for row in rows])

        t = of([[sp * ct, 0], [cp * ct, 0], [-st, 0]])
        p = of([[cp * st, -sp], [-sp * st, -cp], [0, 0]])
        tt = of([[-sp * st, 0], [-cp * st, 0], [-ct, 0]])
        tp = of([[cp * ct, 0], [-sp * ct, 0], [0, 0]])
        pp = of([[-sp * st, -cp], [-cp * st, sp], [0, 0]])
        return [none, t, p], [[none, none, none], [none, tt, tp], [none, tp, pp]]

    @property
    def omega(self) -> np.ndarray:
        """``B ε̇``."""
        return self._rate_map() @ self.rates

    def _moving(self) -> np.ndarray:
        """Ḃ."""
        first = self._rate_maps()[0]
        return self.rates[1] * first[1] + self.rates[2] * first[2]

    def acceleration(self, second_rates: np.ndarray) -> np.ndarray:
        """``B ε̈ + Ḃ ε̇``."""
        return self._rate_map() @ second_rates + self._moving() @ self.rates

    def moved(self, h: float, rates: np.ndarray) -> EulerAngles:
        """``ε + h ε̇⁺``."""
        return EulerAngles(self.coordinates + h * rates, rates)

    def displaced(self, d: np.ndarray) -> EulerAngles:
        """``ε + δε``."""
        return EulerAngles(self.coordinates + d, self.rates)

    def inertia(self, J: np.ndarray) -> np.ndarray:
        """``Bᵀ J B``."""
        B = self._rate_map()
        return B.T @ J @ B

    def inertial_torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        """``Bᵀ (J (B ε̈ + Ḃ ε̇) + ω × J ω)``: eq. 43."""
        return self._rate_map().T @ self._torque(J, second_rates)

    def _torque(self, J: np.ndarray, second_rates: np.ndarray) -> np.ndarray:
        w = self.omega
        return J @ self.acceleration(second_rates) + cross_matrix(w) @ (J @ w)

    def inertial_derivatives(
        self, J: np.ndarray, second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By the product rule."""
        B, (first, second), rates = self._rate_map(), self._rate_maps(), self.rates
        w, torque = B @ rates, self._torque(J, second_rates)
        moving = self._moving()
        by_angles, by_rates = np.empty((3, 3)), np.empty((3, 3))
        for a in range(3):
            bent = sum((x * S for x, S in zip(rates, second[a], strict=True)), np.zeros((3, 3)))
            turned = first[a] @ rates
            slope = J @ (first[a] @ second_rates + bent @ rates)
            slope = slope + cross_matrix(turned) @ (J @ w) + cross_matrix(w) @ (J @ turned)
            by_angles[:, a] = first[a].T @ torque + B.T @ slope
            column = B[:, a]
            slope = J @ (turned + moving[:, a])
            slope = slope + cross_matrix(column) @ (J @ w) + cross_matrix(w) @ (J @ column)
            by_rates[:, a] = B.T @ slope
        return by_angles, by_rates


ATTITUDES: dict[str, type[Attitude]] = {
    "rA": OrientationMatrix,
    "rp": EulerParameters,
    "re": EulerAngles,
}
"""Attitudes of the paper by name."""


def attitude_type(name: str) -> Any:
    """Class of a name.

    Raises
    ------
    ValueError
        If there is none of that name; the message lists those there are.
    """
    if name not in ATTITUDES:
        raise UnknownNameError(unknown_name("formulation in closed form", name, ATTITUDES))
    return ATTITUDES[name]
