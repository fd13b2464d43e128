"""Motor: the drive of an elastic joint, and springs between it and the link."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from math import inf, isfinite
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from .._coefficients import Coefficient
from ..multibody.tree._link import FRICTION_SPEED

LEAST_DIVISOR = 1e-9  # of stiffnesses and inertias that are parameters: they are divisors
SPRING_SAMPLES = 401  # deflections at which a spring is judged
RANGE = 1.0  # rad or m: judged up to here where no limit says less
JUDGED = 1e-6  # relative: rounding of torques and of their slopes by differences of formulas
BISECTIONS = 30  # of the interval between zero and the deflection of the spring at rest
NEWTON = 8  # from the outer end of what is left: monotone, then quadratic


class SpringSlopes(NamedTuple):
    """Partial derivatives of a spring's torque σ(δ, κ), and the reaction ∂E/∂κ of its setting."""

    by_deflection: Value  # first derivatives
    by_setting: Value
    second: tuple[Value, Value, Value]  # ``∂²σ/∂δ², ∂²σ/∂δ∂κ, ∂²σ/∂κ²``


@dataclass(frozen=True, eq=False)
class JointSpring(ABC):
    """A spring from the motor (behind its gear) to the link: torque σ(δ, κ), ``δ = θ − q``.

    All numbers are at the joint, where deflection is measured: N m/rad, for slides N/m. κ is what
    sets the stiffness, for springs that have that. Torque grows with deflection, and no slower the
    farther: softening springs have no unique deflection for a torque and are refused.

    Parameters
    ----------
    damping : float
        Of a damper parallel to the spring [N m s/rad]: it acts on ``θ̇ − q̇``.
    limit : float
        Largest torque through the spring [N m].
    """

    is_set: ClassVar[bool] = False
    """Whether its stiffness is set from outside or by a motor of its own."""
    is_linear: ClassVar[bool] = False
    """Whether the torque is a constant times the deflection."""

    _: KW_ONLY
    damping: float = 0.0
    limit: float = inf

    def __post_init__(self) -> None:
        check_numbers(self, "finite and not negative", damping="N m s/rad")
        check_numbers(self, "a positive limit", limit="N m")
        self._check()

    @property
    def _who(self) -> str:
        return type(self).__name__

    def numbers(self, unit: str) -> dict[str, Coefficient]:
        """Coefficients by name; `unit` is that of the deflection."""
        return {}

    def _slope(self, setting: Value, c: Mapping[str, Value]) -> Any:
        """K of springs with ``σ = k δ``; the others say torque and energy themselves."""
        return None

    def torque(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """σ for a deflection, a setting and the numbers."""
        return self._slope(setting, c) * d

    def energy(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """Energy stored, zero at rest."""
        return self._slope(setting, c) * d * d / 2

    @property
    def nominal_setting(self) -> float:
        """κ where nothing is said; 0 for springs without."""
        return 0.0

    def deflection(self, torque: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """δ with ``σ(δ) = torque``: ``τ/k``, or by halving, then Newton's steps from outside.

        Newton's alone gain a constant per step where the torque grows exponentially.
        """
        stiffness = self._slope(setting, c)
        if stiffness is not None:
            return torque / stiffness
        symbol = ca.SX.sym("d")
        known = self.torque(symbol, setting, c)
        slope = ca.jacobian(known, symbol)
        inner, d = ca.SX(1, 1), torque / ca.substitute(slope, symbol, 0)
        for _ in range(BISECTIONS):
            middle = (inner + d) / 2
            is_outside = ca.fabs(ca.substitute(known, symbol, middle)) >= ca.fabs(torque)
            inner, d = ca.if_else(is_outside, inner, middle), ca.if_else(is_outside, middle, d)
        for _ in range(NEWTON):
            at, by = ca.substitute([known, slope], [symbol], [d])
            d = d - (at - torque) / by
        return d

    def slopes(self, d: Value, setting: Value, c: Mapping[str, Value]) -> SpringSlopes:
        """Partial derivatives of the torque."""
        x, k = ca.SX.sym("d"), ca.SX.sym("k")
        known = self.torque(x, k, c)
        by_d, by_k = ca.jacobian(known, x), ca.jacobian(known, k)
        found = [by_d, by_k, ca.jacobian(by_d, x), ca.jacobian(by_d, k), ca.jacobian(by_k, k)]
        at = ca.substitute([ca.SX(y) for y in found], [x, k], [d, setting])
        by_d, by_k, twice, mixed, by_settings = (ca.sparsify(y) for y in at)
        return SpringSlopes(by_d, by_k, (twice, mixed, by_settings))

    def reaction(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """``∂E/∂κ``: what the spring does to what sets it, ``½ k′(κ) δ²`` for linear ones."""
        k = ca.SX.sym("k")
        return ca.substitute(ca.jacobian(self.energy(d, k, c), k), k, setting)

    def _check(self, reach: float = RANGE) -> None:
        """Refuse torques that do not grow, that soften, or that are not the slope of the energy."""
        symbol, c = ca.SX.sym("d"), {n: ca.DM(x.value) for n, x in self.numbers("rad").items()}
        setting = ca.DM(self.nominal_setting)
        try:
            torque, energy = (
                ca.SX(part(symbol, setting, c)) for part in (self.torque, self.energy)
            )
        except (NotImplementedError, TypeError) as error:
            raise TypeError(
                f"{self._who}: torque and energy must be made of arithmetic and CasADi's "
                f"functions of the deflection: {error}"
            ) from None
        if torque.shape != (1, 1) or energy.shape != (1, 1):
            raise ValueError(
                f"{self._who}: torque and energy must be one number each, got shapes "
                f"{torque.shape} and {energy.shape}"
            )
        found = [torque, ca.jacobian(torque, symbol), energy, ca.jacobian(energy, symbol)]
        function = ca.Function("spring", [symbol], [ca.densify(x) for x in found])
        d = np.linspace(-reach, reach, SPRING_SAMPLES)
        sigma, slope, stored, force = (x.full().ravel() for x in function(d[None]))
        middle = SPRING_SAMPLES // 2
        if not np.isfinite([sigma, slope, stored]).all():
            raise ValueError(f"{self._who}: torque or energy is not finite within ±{reach:g} rad")
        scale = max(np.abs(sigma).max(), np.finfo(float).tiny)
        if abs(sigma[middle]) > JUDGED * scale or abs(stored[middle]) > JUDGED * scale * reach:
            raise ValueError(
                f"{self._who}: torque and energy must vanish without deflection, got "
                f"{sigma[middle]:g} and {stored[middle]:g}"
            )
        worst = int(np.argmin(slope))
        if not slope[worst] > 0:
            raise ValueError(
                f"{self._who}: the stiffness is {slope[worst]:.4g} N m/rad at a deflection of "
                f"{d[worst]:.3g} rad; it must be positive everywhere within ±{reach:g} rad"
            )
        outward = np.concatenate([slope[middle::-1], slope[middle:]]).reshape(2, -1)
        if (np.diff(outward, axis=1) < -JUDGED * slope.max()).any():
            raise ValueError(
                f"{self._who}: the stiffness falls with deflection (from {slope[middle]:.4g} to "
                f"{min(slope[0], slope[-1]):.4g} N m/rad at ±{reach:g} rad); softening springs are "
                "not supported"
            )
        if np.abs(force - sigma).max() > JUDGED * scale:
            worst = int(np.argmax(np.abs(force - sigma)))
            raise ValueError(
                f"{self._who}: the torque is not the slope of the energy: {sigma[worst]:.6g} "
                f"against {force[worst]:.6g} N m at {d[worst]:.3g} rad"
            )


def is_number(value: object) -> bool:
    """Whether it is a real number, of Python or NumPy."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether it is a number that is finite."""
    return is_number(value) and isfinite(value)


_JUDGES: dict[str, Callable[[Any], bool]] = {
    "positive and finite": lambda x: is_finite(x) and x > 0,
    "finite and not negative": lambda x: is_finite(x) and x >= 0,
    "a positive limit": lambda x: is_number(x) and x > 0,
}


def check_numbers(owner: Any, kind: str, **units: str) -> None:
    """Refuse fields that are not numbers of a kind; given with their units."""
    for name, unit in units.items():
        value = getattr(owner, name)
        if not _JUDGES[kind](value):
            who = type(owner).__name__
            raise ValueError(f"{who}: {name} must be {kind} [{unit}], got {value!r}")


@named_options(own="stiffness")
@dataclass(frozen=True, eq=False)
class LinearSpring(JointSpring):
    """``σ = k δ``.

    Parameters
    ----------
    damping, limit : float
        See `JointSpring`.
    stiffness : float
        k [N m/rad].

    Examples
    --------
    >>> LinearSpring(900.0, damping=0.5).is_linear
    True
    """

    is_linear = True

    stiffness: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self, "positive and finite", stiffness="N m/rad")
        super().__post_init__()

    def numbers(self, unit: str) -> dict[str, Coefficient]:
        """The stiffness."""
        per = f"N m/{unit}" if unit == "rad" else "N/m"
        return {"stiffness": Coefficient(np.array(float(self.stiffness)), per, lower=LEAST_DIVISOR)}

    def _slope(self, setting: Value, c: Mapping[str, Value]) -> Value:
        return c["stiffness"]


@named_options(own="stiffness")
@dataclass(frozen=True, eq=False)
class HardeningSpring(JointSpring):
    """``σ = k δ + c δ³``.

    Parameters
    ----------
    damping, limit : float
        See `JointSpring`.
    stiffness : float
        k [N m/rad], at rest.
    cubic : float
        c [N m/rad³], positive.

    Examples
    --------
    >>> spring = HardeningSpring(200.0, cubic=4000.0)
    >>> round(float(spring.torque(0.1, 0.0, {"stiffness": 200.0, "cubic": 4000.0})), 6)
    24.0
    """

    stiffness: float = 0.0
    cubic: float = 0.0

    def __post_init__(self) -> None:
        check_numbers(self, "positive and finite", stiffness="N m/rad")
        if not is_finite(self.cubic) or self.cubic < 0:
            raise ValueError(
                f"{self._who}: cubic must be finite and positive, got {self.cubic!r}: softening "
                "springs are not supported"
            )
        super().__post_init__()

    def numbers(self, unit: str) -> dict[str, Coefficient]:
        """Stiffness and cubic coefficient."""
        force = "N m" if unit == "rad" else "N"
        return {
            "stiffness": Coefficient(
                np.array(float(self.stiffness)), f"{force}/{unit}", lower=LEAST_DIVISOR
            ),
            "cubic": Coefficient(np.array(float(self.cubic)), f"{force}/{unit}³", lower=0.0),
        }

    def torque(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """``k δ + c δ³``."""
        return (c["stiffness"] + c["cubic"] * d * d) * d

    def energy(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """``½ k δ² + ¼ c δ⁴``."""
        square = d * d
        return (c["stiffness"] / 2 + c["cubic"] * square / 4) * square


@named_options(own="stiffness")
@dataclass(frozen=True, eq=False)
class CustomSpring(JointSpring):
    """A spring given by its torque and its energy.

    Parameters
    ----------
    damping, limit : float
        See `JointSpring`.
    sigma, potential : callable
        ``δ → torque`` and ``δ → energy`` on CasADi values; the one is the slope of the other.
    reach : float
        Deflection up to which it is judged [rad].

    Examples
    --------
    >>> spring = CustomSpring(
    ...     sigma=lambda d: 100 * ca.sinh(5 * d), potential=lambda d: 20 * (ca.cosh(5 * d) - 1))
    >>> spring.is_linear
    False
    """

    sigma: Callable[[Any], Any] | None = None
    potential: Callable[[Any], Any] | None = None
    reach: float = RANGE

    def __post_init__(self) -> None:
        for name in ("sigma", "potential"):
            if not callable(getattr(self, name)):
                raise TypeError(
                    f"{self._who}: {name} must be a function of the deflection, not "
                    f"{getattr(self, name)!r}"
                )
        check_numbers(self, "positive and finite", reach="rad")
        super().__post_init__()

    def _check(self, reach: float = RANGE) -> None:
        super()._check(self.reach)

    def torque(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """The given value."""
        assert self.sigma is not None
        return self.sigma(d)

    def energy(self, d: Value, setting: Value, c: Mapping[str, Value]) -> Value:
        """The given value."""
        assert self.potential is not None
        return self.potential(d)


@named_options(own="stiffness")
@dataclass(frozen=True, eq=False)
class VariableSpring(JointSpring):
    """``σ = k(t) δ``: the stiffness is an input of the system, JOINT.stiffness.

    Nothing is said of how it is changed: ``½ k̇ δ²`` is the power that whoever does so puts in. The
    deflection does not jump when k does, the torque does.

    Parameters
    ----------
    damping, limit : float
        See `JointSpring`.
    nominal : float
        k where nothing else is said [N m/rad].
    lower, upper : float
        Bounds of the input; the lower one positive.

    Examples
    --------
    >>> VariableSpring(100.0, lower=20.0, upper=400.0).is_set
    True
    """

    is_set = True

    nominal: float = 0.0
    lower: float = 0.0
    upper: float = inf

    def __post_init__(self) -> None:
        check_numbers(self, "positive and finite", nominal="N m/rad", lower="N m/rad")
        if not self.lower <= self.nominal <= self.upper:
            raise ValueError(
                f"{self._who}: nominal {self.nominal:g} is outside [{self.lower:g}, "
                f"{self.upper:g}] N m/rad"
            )
        super().__post_init__()

    @property
    def nominal_setting(self) -> float:
        """The nominal stiffness."""
        return self.nominal

    def _slope(self, setting: Value, c: Mapping[str, Value]) -> Value:
        return setting


@named_options(own="stiffness")
@dataclass(frozen=True, eq=False)
class AdjustedSpring(JointSpring):
    """``σ = k(φ) δ``: a motor at φ sets the stiffness, and feels ``½ k′(φ) δ²``.

    Numbers of the motor are at φ, behind its gear; its torque is the input JOINT.stiffness_motor.

    Parameters
    ----------
    damping, limit : float
        See `JointSpring`.
    stiffness : callable
        ``φ → k`` [N m/rad], positive and growing between the stops, of CasADi values.
    lower, upper : float
        Stops of φ [rad].
    nominal : float
        Default position; the lower stop if left out.
    motor_inertia : float
        [kg m²]
    motor_damping : float
        [N m s/rad]
    torque_limit, speed_limit : float
        [N m], [rad/s]

    Examples
    --------
    >>> AdjustedSpring(stiffness=lambda phi: 50 + 200 * phi**2, lower=0.1, upper=1.5,
    ...                motor_inertia=1e-3).nominal_setting
    0.1
    """

    is_set = True

    stiffness: Callable[[Any], Any] | None = None
    lower: float = 0.0
    upper: float = 1.0
    nominal: float | None = None
    motor_inertia: float = 0.0
    motor_damping: float = 0.0
    torque_limit: float = inf
    speed_limit: float = inf

    def __post_init__(self) -> None:
        if not callable(self.stiffness):
            raise TypeError(f"{self._who}: stiffness must be a function of φ, got {self.stiffness}")
        if not -inf < self.lower < self.upper < inf:
            raise ValueError(
                f"{self._who}: stops must be finite and apart, got [{self.lower}, {self.upper}]"
            )
        check_numbers(self, "positive and finite", motor_inertia="kg m²")
        check_numbers(self, "finite and not negative", motor_damping="N m s/rad")
        check_numbers(self, "a positive limit", torque_limit="N m", speed_limit="rad/s")
        if not self.lower <= self.nominal_setting <= self.upper:
            raise ValueError(f"{self._who}: nominal {self.nominal} is beyond the stops")
        phi = ca.SX.sym("phi")
        k = ca.SX(self.stiffness(phi))
        if k.shape != (1, 1):
            raise ValueError(f"{self._who}: stiffness must be one number, got shape {k.shape}")
        function = ca.Function("k", [phi], [ca.densify(x) for x in (k, ca.jacobian(k, phi))])
        at = np.linspace(self.lower, self.upper, SPRING_SAMPLES)
        values, slopes = (x.full().ravel() for x in function(at[None]))
        if not (values > 0).all() or not (slopes >= 0).all():
            raise ValueError(
                f"{self._who}: stiffness must be positive and not fall between the stops; least "
                f"{values.min():.4g} N m/rad, least slope {slopes.min():.4g}"
            )
        super().__post_init__()

    @property
    def nominal_setting(self) -> float:
        """φ where nothing is said."""
        return self.lower if self.nominal is None else self.nominal

    def numbers(self, unit: str) -> dict[str, Coefficient]:
        """Inertia and damping of the motor."""
        return {
            "motor_inertia": Coefficient(
                np.array(float(self.motor_inertia)), "kg m²", lower=LEAST_DIVISOR
            ),
            "motor_damping": Coefficient(
                np.array(float(self.motor_damping)), "N m s/rad", lower=0.0
            ),
        }

    def _slope(self, setting: Value, c: Mapping[str, Value]) -> Value:
        assert self.stiffness is not None
        return self.stiffness(setting)


@named_options(own="inertia spring")
@dataclass(frozen=True, eq=False)
class Motor:
    """A motor, its gear and the spring behind it.

    Except for spring and deflection, all numbers are the rotor's, **before the gear**. The state,
    inputs and limits of a system are **behind it**, at the joint: ``θ = θ_rotor/ratio``, inertia
    and damping times ratio², friction and torque times ratio, speed over ratio. Numbers that are
    published at the joint ("reflected") are given as they are, with ratio 1. Losses and limits of
    the tree's joints are those of the link: bearings behind the spring, travel and speed of the
    link. Its effort limits bound the motor's torque (at the joint) where `torque` does not.

    Parameters
    ----------
    inertia : float
        Of the rotor about its axis [kg m²]; for a slide with ratio 1, kg.
    spring : float or JointSpring
        Stiffness [N m/rad] at the joint, or a spring.
    damping : float
        Viscous friction on the rotor [N m s/rad].
    friction : float
        Dry friction on the rotor [N m], smoothed as ``friction tanh(θ̇/friction_speed)``.
    ratio : float
        Turns of the rotor per turn of the joint (rad/m for a slide).
    torque, speed : float
        Largest torque and speed of the rotor.
    deflection : float
        Largest deflection of the spring, at the joint [rad].
    friction_speed : float
        Speed behind the gear over which dry friction changes sign [rad/s].

    Examples
    --------
    >>> Motor(inertia=2e-5, spring=900.0, ratio=100.0).reflected_inertia
    0.2
    """

    inertia: float
    spring: float | JointSpring
    damping: float = 0.0
    friction: float = 0.0
    ratio: float = 1.0
    torque: float = inf
    speed: float = inf
    deflection: float = inf
    friction_speed: float = FRICTION_SPEED

    def __post_init__(self) -> None:
        check_numbers(
            self, "positive and finite", inertia="kg m²", ratio="1", friction_speed="rad/s"
        )
        check_numbers(self, "finite and not negative", damping="N m s/rad", friction="N m")
        check_numbers(self, "a positive limit", torque="N m", speed="rad/s", deflection="rad")
        if not isinstance(self.spring, JointSpring):
            if not is_number(self.spring):
                raise TypeError(
                    "motor: spring must be a stiffness [N m/rad] or a spring such as "
                    f"HardeningSpring(…), not {self.spring!r}"
                )
            object.__setattr__(self, "spring", LinearSpring(float(self.spring)))

    @property
    def joint_spring(self) -> JointSpring:
        """The spring, made of its stiffness where that was given."""
        assert isinstance(self.spring, JointSpring)
        return self.spring

    @property
    def reflected_inertia(self) -> float:
        """Inertia at the joint, ``ratio² inertia``."""
        return self.ratio**2 * self.inertia
