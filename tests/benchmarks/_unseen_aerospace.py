"""Tasks of flight and space as a new user states them: SI units, default options."""

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.groups import SO3, Product, Rn
from lgcontrol.optimal import (
    Bound,
    Cone,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Sphere,
    keep_out,
)
from lgcontrol.systems import Input, System
from tests.optimal.literature._task import Statement, ends, last, line

from ._unseen_task import unseen

EARTH, RADIUS, G0 = 3.986004e14, 6.371e6, 9.80665


@unseen("aerospace")
def launcher() -> Statement:
    """Two stages to a circular orbit at 200 km, most mass at the end, dynamic pressure limited."""
    spin = 408.0  # speed of the ground at 28.5 degrees

    def drag(x: Any) -> tuple[Any, Any]:
        wind = ca.vertcat(x[1], x[2] - spin)
        speed = ca.sqrt(ca.sumsqr(wind) + 1.0)
        density = 1.225 * ca.exp(-x[0] / 8500)
        return -0.5 * density * 3.2 * speed * wind, 0.5 * density * speed**2

    def stage(thrust: float, impulse: float) -> Any:
        def field(t: Any, x: Any, u: Any, p: Any) -> Any:
            r, force = RADIUS + x[0], thrust * u[1]
            air, _ = drag(x)
            return ca.vertcat(
                x[1],
                x[2] ** 2 / r - EARTH / r**2 + (force * ca.sin(u[0]) + air[0]) / x[3],
                -x[1] * x[2] / r + (force * ca.cos(u[0]) + air[1]) / x[3],
                -force / (impulse * G0),
            )

        return field

    def inputs(least: float) -> list[Input]:
        return [
            Input("pitch", "rad", -0.5, 1.6, nominal=0.8),
            Input("throttle", "", least, 1.0, nominal=0.9),
        ]

    state = line("altitude climb speed mass")
    first = System("first", state, stage(7.5e6, 300.0), inputs=inputs(0.6))
    second = System("second", state, stage(9.34e5, 348.0), inputs=inputs(0.6))
    pressure = Bound(lambda t, x, u, p: drag(x)[1], upper=35e3, name="dynamic pressure")
    along = [pressure, Bound("altitude", lower=0.0)]
    empty = Bound("mass", lower=144.3e3, at="terminal")
    orbit = ends(altitude=200e3, climb=0.0, speed=float(np.sqrt(EARTH / (RADIUS + 200e3))))
    problem = PhasedProblem([
        Phase(first, 40, (120.0, 300.0), bounds=[*along, empty], name="first",
              jump=lambda t, x, p: ca.vertcat(x[:3], x[3] - 25.6e3)),
        Phase(second, 40, (200.0, 600.0), name="second", costs=[last(3, -1.0)],
              bounds=[*along, Bound("mass", lower=26e3, at="terminal"), *orbit]),
    ])  # fmt: skip
    return Statement(problem, [0.0, 0.0, spin, 540e3])


@unseen("aerospace")
def capsule() -> Statement:
    """A capsule returns from orbit: least heat, limits on load and heat flux, 25 km at the end."""
    mass, area, lift, drag = 5500.0, 12.0, 0.39, 1.3

    def density(x: Any) -> Any:
        return 1.225 * ca.exp(-x[0] / 7200)

    def flux(x: Any) -> Any:
        return 1.74e-4 * ca.sqrt(density(x) / 4.7) * x[1] ** 3

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        h, v, path = x[0], x[1], x[2]
        r = RADIUS + h
        force = 0.5 * density(x) * v**2 * area / mass
        gravity = EARTH / r**2
        return ca.vertcat(
            v * ca.sin(path),
            -force * drag - gravity * ca.sin(path),
            force * lift * ca.cos(u[0]) / v + (v / r - gravity / v) * ca.cos(path),
            v * ca.cos(path) * RADIUS / r,
            flux(x),
        )

    def load(t: Any, x: Any, u: Any, p: Any) -> Any:
        return 0.5 * density(x) * x[1] ** 2 * area / mass * np.hypot(lift, drag) / G0

    inputs = [Input("bank", "rad", 0.0, np.pi, nominal=1.0)]
    system = System("capsule", line("altitude speed path range heat"), field, inputs=inputs)
    bounds = [
        Bound(load, upper=5.0, name="load"),
        Bound(lambda t, x, u, p: flux(x), upper=6e5, name="heat flux"),
        Bound("altitude", 25e3, 25e3, at="terminal"),
        Bound("range", 1.5e6, 2.5e6, at="terminal"),
    ]
    phase = Phase(system, 80, (200.0, 900.0), costs=[last(4)], bounds=bounds)
    return Statement(PhasedProblem(phase), [120e3, 7800.0, np.deg2rad(-2.0), 0.0, 0.0])


def booster(height: float) -> Statement:
    """A booster lands on its pad with least fuel: cones of thrust and of glide, a least thrust."""
    most, impulse = 845e3, 282.0

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        v = x[3:6]
        drag = -0.5 * 1.2 * 10.0 * ca.sqrt(ca.sumsqr(v) + 1.0) * v
        force = ca.sqrt(ca.sumsqr(u) + 1.0)
        return ca.vertcat(v, (u + drag) / x[6] - ca.vertcat(0, 0, G0), -force / (impulse * G0))

    inputs = [
        Input("fx", "N", -most, most),
        Input("fy", "N", -most, most),
        Input("fz", "N", 0.0, most, nominal=4e5),
    ]
    lander = System("booster", line("x y z vx vy vz mass"), field, inputs=inputs)
    bounds = [
        Bound(lambda t, x, u, p: ca.norm_2(u), 0.4 * most, most, name="thrust"),
        Cone([0.0, 0.0, 1.0], np.deg2rad(15.0)).force_inside(lambda t, x, u, p: u),
        Bound(lambda t, x, u, p: x[2] - ca.sqrt(ca.sumsqr(x[:2]) + 1.0) + 1.0, 0.0, name="glide"),
        Bound("mass", lower=25e3),
        *ends(x=0.0, y=0.0, z=0.0, vx=0.0, vy=0.0, vz=0.0),
    ]
    phase = Phase(lander, 50, (8.0, 60.0), costs=[last(6, -1.0)], bounds=bounds)
    return Statement(PhasedProblem(phase), [-400.0, 300.0, height, 40.0, -30.0, -180.0, 35e3])


@unseen("aerospace")
def booster_landing() -> Statement:
    """From 2 km."""
    return booster(2000.0)


@unseen(
    "aerospace",
    impossible="180 m/s in 600 m ask for 37 m/s²; thrust and drag give at most 32 m/s²",
)
def booster_too_low() -> Statement:
    """From 600 m: it cannot stop above the ground."""
    return booster(600.0)


@unseen("aerospace")
def asteroid() -> Statement:
    """An ion drive meets the orbit of an asteroid in 600 days: most mass, equinoctial elements."""
    sun, unit, day = 1.32712e20, 1.495979e11, 86400.0

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        semilatus, f, g, angle, mass = ca.vertsplit(x)
        cos, sin = ca.cos(angle), ca.sin(angle)
        w = 1 + f * cos + g * sin
        radial, along = u[0] * ca.sin(u[1]) / mass, u[0] * ca.cos(u[1]) / mass
        root = ca.sqrt(semilatus / sun)
        return ca.vertcat(
            2 * semilatus / w * root * along,
            root * (radial * sin + ((w + 1) * cos + f) * along / w),
            root * (-radial * cos + ((w + 1) * sin + g) * along / w),
            ca.sqrt(sun * semilatus) * (w / semilatus) ** 2,
            -u[0] / (3000.0 * G0),
        )

    inputs = [
        Input("thrust", "N", 0.0, 0.15, nominal=0.07),
        Input("direction", "rad", -np.pi, np.pi),
    ]
    probe = System("probe", line("semilatus f g longitude mass"), field, inputs=inputs)
    bounds = ends(semilatus=1.4 * unit, f=0.15, g=0.05)
    phase = Phase(probe, 80, 600 * day, costs=[last(4, -1.0)], bounds=bounds)
    return Statement(PhasedProblem(phase), [unit, 0.0, 0.0, 0.0, 600.0])


@unseen("aerospace")
def formation() -> Statement:
    """Two satellites of 100 kg change places along the orbit and keep 50 m apart."""
    n = 1.1e-3

    def one(x: Any, u: Any) -> Any:
        a = u / 100.0
        return ca.vertcat(
            x[3:6],
            3 * n**2 * x[0] + 2 * n * x[4] + a[0],
            -2 * n * x[3] + a[1],
            -(n**2) * x[2] + a[2],
        )

    inputs = [Input(f"{who}{axis}", "N", -0.05, 0.05) for who in "ab" for axis in "xyz"]
    pair = System(
        "pair", Product(a=Rn(6), b=Rn(6)),
        lambda t, x, u, p: ca.vertcat(one(x[:6], u[:3]), one(x[6:], u[3:])), inputs=inputs,
    )  # fmt: skip
    apart = keep_out(lambda t, x, u, p: x[:3] - x[6:9], Sphere([0, 0, 0], 50.0), name="apart")
    here, there = [0, 200.0, 0, 0, 0, 0], [0, -200.0, 0, 0, 0, 0]
    problem = OptimalControlProblem(
        pair, 80, 70.0, Q=0, R=1.0, terminal=0.0,
        bounds=[apart, Bound("a", there, there, at="terminal"),
                Bound("b", here, here, at="terminal")],
    )  # fmt: skip
    return Statement(problem, [*here, *there])


def telescope() -> System:
    """A telescope with four wheels in a pyramid; momentum of the wheels in N m s."""
    inertia = ca.DM(np.diag([900.0, 800.0, 600.0]))
    c, s = np.sqrt(2 / 3), np.sqrt(1 / 3)
    axes = ca.DM([[c, -c, 0, 0], [0, 0, c, -c], [s, s, s, s]])

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        rate, wheels = x[4:7], x[7:]
        momentum = inertia @ rate + axes @ wheels
        return ca.vertcat(rate, ca.solve(inertia, -ca.cross(rate, momentum) - axes @ u), u)

    inputs = [Input(f"torque{k}", "N m", -0.25, 0.25) for k in range(4)]
    state = Product(attitude=SO3, rate=Rn(3), wheels=Rn(4))
    return System("telescope", state, field, inputs=inputs)


@unseen("aerospace")
def telescope_turns() -> Statement:
    """By 120 degrees in 500 s past the Sun, the star tracker past the Earth, wheels biased."""

    def axis(direction: Any) -> Any:
        return lambda t, x, u, p: SO3.act(x[:4], ca.DM(direction))

    sun = np.array([np.cos(1.0), np.sin(1.0), 0.1])
    goal = ca.DM(SO3.exp([0.0, 0.0, 2 * np.pi / 3]))
    bounds = [
        Cone(sun, np.deg2rad(35.0)).outside(axis([1.0, 0.0, 0.0])),
        Cone([0.0, -0.2, 1.0], np.deg2rad(25.0)).outside(axis([0.0, 0.6, 0.8])),
        Bound("wheels", -12.0, 12.0),
        Bound(lambda t, x, u, p: SO3.minus(x[:4], goal), 0.0, 0.0, at="terminal", name="goal"),
        Bound("rate", 0.0, 0.0, at="terminal"),
    ]
    problem = OptimalControlProblem(
        telescope(), 100, 5.0, Q=0, R=1.0, terminal=0.0, bounds=bounds
    )  # fmt: skip
    return Statement(problem, [*SO3.identity, 0, 0, 0, 2.0, 2.0, -1.0, -1.0])


@unseen(
    "aerospace",
    impossible="its momentum of 45 N m s is conserved, and the wheels hold at most 27.8 N m s",
)
def telescope_tumbles() -> Statement:
    """It is to stop a rotation of 0.05 rad/s about its first axis."""
    problem = OptimalControlProblem(
        telescope(), 80, 5.0, Q=0, R=1.0, terminal=0.0,
        bounds=[Bound("wheels", -12.0, 12.0), Bound("rate", 0.0, 0.0, at="terminal")],
    )  # fmt: skip
    return Statement(problem, [*SO3.identity, 0.05, 0, 0, 0, 0, 0, 0])
