"""Motor: the drive of an elastic joint; on which side of gear and spring its numbers are."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from ...codegen import named_options
from ..multibody.tree._link import FRICTION_SPEED
from ._joint_spring import JointSpring, LinearSpring, is_finite, is_number


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
        for name in ("inertia", "ratio", "friction_speed"):
            value = getattr(self, name)
            if not (is_finite(value) and value > 0):
                raise ValueError(f"motor: {name} must be positive and finite, got {value!r}")
        for name in ("damping", "friction"):
            value = getattr(self, name)
            if not (is_finite(value) and value >= 0):
                raise ValueError(f"motor: {name} must be finite and not negative, got {value!r}")
        for name in ("torque", "speed", "deflection"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise ValueError(f"motor: {name} limit must be positive, got {value!r}")
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
