"""Figures of A. Müller, Z. Terze: which configuration space for constrained bodies."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from lgcontrol import models
from lgcontrol.groups import SO3
from lgcontrol.mechanics.constrained import Mechanism

from ._paper import Claim, Paper, Reproduction, in_space, sheet

H = 1e-3  # step of the paper [s]
GROUPS = {"SE3": "SE(3)", "SO3xR3": "SO(3) × R³"}
# "Within the computation accuracy", "perfectly satisfied": next to steps of 1e-3 s.
ACCURATE, DRIFT = 1e-11, 1e-7  # m
ALIKE = 3.0  # ratio of curves that the paper calls similar, at most
CURVE = "a curve without numbers in the text"

MECHANISMS: dict[str, tuple[Callable[[], Mechanism], float]] = {  # and seconds
    "heavy top": (models.heavy_top_mechanism, 5.0),
    "double pendulum": (models.spherical_double_pendulum_mechanism, 1.0),
    "floating pair": (models.floating_pair_mechanism, 1.0),
    "three bars": (models.three_bar_mechanism, 1.0),
}


@lru_cache
def _motion(
    name: str, group: str, h: float = H
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Times, gaps of the joints in world axes and energy, of index 1 by RK4 without projection."""
    make, seconds = MECHANISMS[name]
    mechanism = make().formulated(group)
    q = mechanism.coordinates()
    system = mechanism.system(stabilization="none", at=q)
    x0 = np.concatenate([q, mechanism.velocities(q)])
    run = system.rollout(x0, dt=h, steps=round(seconds / h))
    assert system.invariants is not None
    names, rows = list(mechanism.joints), system.invariants(run.x)
    gaps = {joint: rows[:, 3 * k : 3 * k + 3] for k, joint in enumerate(names)}
    energy = sum(
        system.quantities[kind](0.0, run.x).ravel()
        for kind in ("kinetic_energy", "potential_energy")
    )
    return run.t, gaps, np.asarray(energy)


def _largest(name: str, group: str, joint: str) -> float:
    """Largest violation of a joint [m]."""
    return float(np.linalg.norm(_motion(name, group)[1][joint], axis=1).max())


def _gap(name: str, joint: str, claims: Callable[[float, float], list[Claim]]) -> Reproduction:
    """Violation of a joint by components on both groups."""
    figure, axes = sheet(2)
    for axis, (group, label) in zip(axes, GROUPS.items(), strict=True):
        t, gaps, _ = _motion(name, group)
        axis.plot(t, gaps[joint], label=list("xyz"))
        axis.set(title=f"{name}, {joint}: {label}", xlabel="t [s]", ylabel="violation [m]")
        axis.legend()
    return Reproduction(figure, tuple(claims(*(_largest(name, key, joint) for key in GROUPS))))


def _violations(ours: float, other: float, exact: str = "", drifts: str = "") -> list[Claim]:
    """Largest violations on both groups: "exact" to rounding, "drifts" far above it."""
    first, second = (f"largest violation on {group} [m]" for group in GROUPS.values())
    return [
        Claim(first, exact, ours, 0.0, ACCURATE) if exact else Claim(first, CURVE, ours),
        Claim(second, drifts, other, DRIFT) if drifts else Claim(second, CURVE, other),
    ]


def _pivot(ours: float, other: float) -> list[Claim]:
    exact, drifts = "correct within the computation accuracy", "significant drifts"
    return _violations(ours, other, exact, drifts)


def _pendulum_1(ours: float, other: float) -> list[Claim]:
    ratio = Claim("SO(3) × R³ over SE(3)", "SE(3) generally better", other / ours, 1.0)
    return [*_violations(ours, other), ratio]


def _pendulum_2(ours: float, other: float) -> list[Claim]:
    higher = [
        Claim(
            f"joint 2 over joint 1, {label}",
            "higher",
            value / _largest("double pendulum", key, "base"),
            1.0,
        )
        for (key, label), value in zip(GROUPS.items(), (ours, other), strict=True)
    ]
    return [*_pendulum_1(ours, other), *higher]


def _ground(ours: float, other: float) -> list[Claim]:
    return _violations(ours, other, "perfectly satisfied")


def _alike(ours: float, other: float) -> list[Claim]:
    similar = Claim("SO(3) × R³ over SE(3)", "similar", other / ours, 1 / ALIKE, ALIKE)
    return [*_violations(ours, other), similar]


def _energy(name: str, claim: str) -> Reproduction:
    """Drift of the energy on both groups; the claim is "alike" or "SE3 hundredth"."""
    figure, axes = sheet(2)
    drift = {}
    for axis, (group, label) in zip(axes, GROUPS.items(), strict=True):
        t, _, energy = _motion(name, group)
        drift[group] = float(np.abs(energy - energy[0]).max())
        axis.plot(t, energy - energy[0], color="C3")
        axis.set(title=f"{name}: {label}", xlabel="t [s]", ylabel="drift of the energy [J]")
    ratio = drift["SO3xR3"] / drift["SE3"]
    rows = [
        Claim(f"largest drift on {GROUPS[key]} [J]", CURVE, value) for key, value in drift.items()
    ]
    if claim == "alike":
        rows.append(Claim("SO(3) × R³ over SE(3)", "drifts are similar", ratio, 1 / ALIKE, ALIKE))
    else:
        energy = _motion(name, "SE3")[2][0] / 1e3
        rows.append(Claim("initial kinetic energy [kJ]", "13.97", energy, 13.965, 13.975))
        for h in (H, 2 * H, 4 * H):
            ours, other = (np.abs(np.ptp(_motion(name, group, h)[2])) for group in GROUPS)
            what = f"SO(3) × R³ over SE(3), h = {h:g} s"
            rows.append(Claim(what, "two orders of magnitude", float(other / ours), 30.0, 300.0))
    return Reproduction(figure, tuple(rows))


def _drawing(name: str) -> Reproduction:
    """The bodies at the start, and the ways of their centres."""
    figure, (axis,) = sheet(1, projection="3d")
    mechanism = MECHANISMS[name][0]()
    q = mechanism.coordinates()
    run = mechanism.system(at=q).rollout(mechanism.state(q), dt=2e-3, steps=500)
    for i, body in enumerate(mechanism.bodies.values()):
        for edge in _box(body):
            axis.plot(*edge.T, color=f"C{i}", linewidth=1.2)
        axis.plot(*run.x[:, 7 * i : 7 * i + 3].T, color=f"C{i}", linewidth=0.6, alpha=0.7)
    axis.set(title=name, xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    in_space(axis)
    joints = {"heavy top": 1, "double pendulum": 2, "floating pair": 1, "three bars": 3}[name]
    found = len(mechanism.joints)
    return Reproduction(
        figure, (Claim("spherical joints", f"{joints}", float(found), joints, joints),)
    )


def _box(body: Any) -> list[np.ndarray]:
    """Edges of the box with a body's mass and moments, in the world."""
    J, m = np.diag(body.inertia.inertia), body.inertia.mass
    sides = np.sqrt(6 * (J.sum() - 2 * J) / m)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
    at = body.pose[:3] + (corners * sides) @ SO3.matrix(body.pose[3:]).T
    return [at[[a, b]] for a in range(8) for b in range(a) if (a ^ b) in (1, 2, 4)]


def _named(number: str, what: str, call: Callable[..., Reproduction], *given: Any) -> Any:
    made = partial(call, *given)
    made.__doc__ = f"Figure {number}: {what}."
    return made


FIGURES = {
    "1": ("the heavy top", _drawing, "heavy top"),
    "2": ("drift of the pivot of the heavy top", _gap, "heavy top", "pivot", _pivot),
    "3": ("drift of the kinetic energy of the heavy top", _energy, "heavy top", "SE3 hundredth"),
    "4": ("the spherical double pendulum", _drawing, "double pendulum"),
    "5": (
        "joint 1 of the double pendulum",
        _gap,
        "double pendulum",
        "base",
        _pendulum_1,
    ),
    "6": (
        "joint 2 of the double pendulum",
        _gap,
        "double pendulum",
        "middle",
        _pendulum_2,
    ),
    "7": ("drift of the total energy of the double pendulum", _energy, "double pendulum", "alike"),
    "8": ("two floating bodies", _drawing, "floating pair"),
    "9": ("joint of the floating bodies", _gap, "floating pair", "middle", _alike),
    "10": ("drift of the kinetic energy of the floating bodies", _energy, "floating pair", "alike"),
    "11": ("the closed loop of three bars", _drawing, "three bars"),
    "12": ("joint 1 of the three bars", _gap, "three bars", "base", _ground),
    "13": ("joint 2 of the three bars", _gap, "three bars", "middle", _alike),
    "14": ("joint 3 of the three bars", _gap, "three bars", "end", _ground),
    "15": ("drift of the total energy of the three bars", _energy, "three bars", "alike"),
}

PAPER = Paper(
    "A. Müller, Z. Terze: Is there an optimal choice of configuration space for Lie group "
    "integration schemes applied to constrained MBS? DETC2013-12151",
    {number: _named(number, *entry) for number, entry in FIGURES.items()},
)
