"""Tasks of arms, legs, drones and cables as a new user states them, at default options."""

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.groups import SE3, SO2, SO3, Product, Rn
from lgcontrol.mechanics import JointProperties, LinkCapsules, Multibody, SpatialInertia
from lgcontrol.models import quadrotor
from lgcontrol.optimal import Bound, Capsule, OptimalControlProblem, Phase, PhasedProblem, keep_out
from lgcontrol.systems import Input, System
from tests.optimal.literature._task import Statement, ends, line

from ._unseen_task import unseen

G = 9.81


@unseen("robots")
def palletiser() -> Statement:
    """An arm of four joints takes 20 kg around a pillar and above a wall, least time."""

    def joint(effort: float, angle: float, speed: float) -> JointProperties:
        return JointProperties(
            lower=-angle, upper=angle, effort=effort, velocity=speed, damping=5.0
        )

    def rod(mass: float, length: float) -> SpatialInertia:
        return SpatialInertia.rod(mass, length=length, axis="x", center_of_mass=[length / 2, 0, 0])

    tree = Multibody("palletiser").add_body(
        "column", SpatialInertia.box(60.0, [0.3, 0.3, 0.5]), "revolute", axis="z",
        properties=joint(1500.0, 3.0, 2.5),
    )  # fmt: skip
    tree = tree.add_body("upper", rod(40.0, 1.2), "revolute", "column", [0.2, 0, 0.6], axis="y",
                         properties=joint(2500.0, 2.0, 2.5))  # fmt: skip
    tree = tree.add_body("lower", rod(25.0, 1.1), "revolute", "upper", [1.2, 0, 0], axis="y",
                         properties=joint(1200.0, 2.6, 3.0))  # fmt: skip
    tree = tree.add_body("wrist", rod(24.0, 0.3), "revolute", "lower", [1.1, 0, 0], axis="y",
                         properties=joint(300.0, 2.2, 4.0))  # fmt: skip
    arm = tree.system()
    links = LinkCapsules(tree, {
        "upper": ([0, 0, 0], [1.2, 0, 0], 0.12), "lower": ([0, 0, 0], [1.1, 0, 0], 0.1),
        "wrist": ([0, 0, 0], [0.45, 0, 0], 0.2),
    })  # fmt: skip
    pillar, wall = (
        Capsule([1.5, 0.9, 0.0], [1.5, 0.9, 1.6], 0.15),
        Capsule([0.8, 1.4, 0.5], [2.4, 1.4, 0.5], 0.1),
    )
    clear = [
        keep_out(links.ends(name), thing, radius=links.radius(name), name=f"{name} off {what}")
        for name in ("lower", "wrist")
        for what, thing in (("pillar", pillar), ("wall", wall))
    ]
    start, goal = [-0.3, -0.6, 1.4, 0.7], [1.4, -0.2, 1.2, 0.5]
    bounds = [
        Bound("limits"), *clear, Bound("configuration", goal, goal, at="terminal"),
        Bound("velocity", 0.0, 0.0, at="terminal"),
    ]  # fmt: skip
    problem = PhasedProblem(Phase(arm, 40, (0.5, 6.0), bounds=bounds), time_weight=1.0)
    return Statement(problem, [*start, 0, 0, 0, 0])


@unseen("robots")
def wheel_pendulum() -> Statement:
    """A pendulum with a flywheel swings up with a quarter of the torque that holds it, 4 s."""

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:  # the angle is from upright
        return ca.vertcat(x[2], (0.8 * x[1] - u) / 0.03, u / 5e-4)

    state = Product(angle=SO2, rate=Rn(1), wheel=Rn(1))
    pendulum = System(
        "wheel-pendulum", state, field, inputs=[Input("torque", "N m", -0.2, 0.2)]
    )  # fmt: skip
    problem = OptimalControlProblem(
        pendulum, 100, 0.04, Q={"angle": 1.0, "rate": 0.05, "wheel": 1e-6}, R=0.1, terminal=0.0,
        reference=[1.0, 0.0, 0.0, 0.0],
        bounds=[Bound("wheel", -300.0, 300.0), Bound("angle", 0.0, 0.0, at="terminal"),
                Bound("rate", 0.0, 0.0, at="terminal")],
    )  # fmt: skip
    return Statement(problem, [-1.0, 0.0, 0.0, 0.0])


@unseen("robots")
def hopper() -> Statement:
    """A mass of 70 kg on a leg jumps from one stone to a higher one and stops, least effort."""

    def leg(foot: Any) -> Any:
        def out(x: Any) -> Any:
            return x[:2] - ca.DM(foot)

        return out

    def stance(name: str, foot: Any) -> tuple[System, list[Bound]]:
        out = leg(foot)

        def field(t: Any, x: Any, u: Any, p: Any) -> Any:
            along = out(x) / ca.norm_2(out(x))
            across = ca.vertcat(along[1], -along[0])
            force = along * u[0] + across * u[1] / ca.norm_2(out(x))
            return ca.vertcat(x[2:], force / 70.0 - ca.vertcat(0, G))

        inputs = [Input("push", "N", 0.0, 3000.0, nominal=700.0), Input("hip", "N m", -150, 150)]
        bounds = [
            Bound(lambda t, x, u, p: ca.norm_2(out(x)), 0.5, 1.05, name="leg"),
            Bound(lambda t, x, u, p: out(x)[0] - 0.6 * out(x)[1], upper=0.0, name="grip"),
            Bound(lambda t, x, u, p: out(x)[0] + 0.6 * out(x)[1], lower=0.0, name="grip back"),
        ]
        return System(name, line("x z vx vz"), field, inputs=inputs), bounds

    def falls(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(x[2:], 0, -G)

    first, on_first = stance("first", [0.0, 0.0])
    second, on_second = stance("second", [1.4, 0.3])
    flight = System("flight", line("x z vx vz"), falls, inputs=[])
    stop = ends(x=1.4, z=1.2, vx=0.0, vz=0.0)
    problem = PhasedProblem([
        Phase(first, 30, (0.1, 1.5), R={"push": 1e-6, "hip": 1e-4}, bounds=on_first),
        Phase(flight, 5, (0.05, 1.0)),
        Phase(second, 30, (0.1, 1.5), R={"push": 1e-6, "hip": 1e-4}, bounds=[*on_second, *stop]),
    ])  # fmt: skip
    return Statement(problem, [0.0, 0.9, 0.0, 0.0])


@unseen("robots")
def walker() -> Statement:
    """Two straight legs and a hip walk on level ground, period and start free, least effort."""
    masses = (5.0, 10.0, 5.0)

    def places(q: Any) -> tuple[list[Any], Any]:  # foot, stance angle, swing angle
        hip = q[:2] + ca.vertcat(ca.sin(q[2]), ca.cos(q[2]))
        below = ca.vertcat(ca.sin(q[3]), ca.cos(q[3]))
        return [0.5 * (q[:2] + hip), hip, hip - 0.5 * below], hip - below

    q, v = ca.SX.sym("q", 4), ca.SX.sym("v", 4)
    points, swing_foot = places(q)
    M, h = ca.SX(4, 4), ca.SX(4, 1)
    for mass, place in zip(masses, points, strict=True):
        J = ca.jacobian(place, q)
        M += mass * J.T @ J
        h += mass * J.T @ (ca.jtimes(J @ v, q, v) + ca.vertcat(0, G))
    foot_J = ca.jacobian(swing_foot, q)
    u = ca.SX.sym("u", 2)
    torque = ca.vertcat(u[1] - u[0], u[0])
    swing = ca.Function("swing", [q, v, u], [ca.solve(M[2:, 2:], torque - h[2:])])
    matrix = ca.blockcat([[M, -foot_J.T], [foot_J, ca.SX(2, 2)]])
    after = ca.solve(matrix, ca.vertcat(M @ v, ca.SX(2, 1)))
    impact = ca.Function("impact", [q, v], [after[2:4]])

    def on_ground(x: Any) -> tuple[Any, Any]:
        zero = ca.DM.zeros(2)
        return ca.vertcat(zero, x[:2]), ca.vertcat(zero, x[2:])

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        at, rates = on_ground(x)
        return ca.vertcat(x[2:], swing(at, rates, u))

    def strike(t: Any, x: Any, p: Any) -> Any:
        rates = impact(*on_ground(x))
        return ca.vertcat(x[1], x[0], rates[1], rates[0])

    inputs = [Input("hip", "N m", -40.0, 40.0), Input("ankle", "N m", -20.0, 20.0)]
    robot = System("walker", line("stance swing stance_rate swing_rate"), field, inputs=inputs)
    step = 2 * np.arcsin(0.25)  # a step of 0.5 m
    bounds = [
        Bound(lambda t, x, u, p: ca.sin(x[0]) - ca.sin(x[1]), 0.5, 0.5, at="terminal",
              name="step"),
        Bound(lambda t, x, u, p: ca.cos(x[0]) - ca.cos(x[1]), 0.0, 0.0, at="terminal",
              name="foot on the ground"),
    ]  # fmt: skip
    phase = Phase(robot, 40, (0.4, 1.2), R=1.0, bounds=bounds, jump=strike)
    return Statement(
        PhasedProblem(phase, is_periodic=True), [-step / 2, step / 2, 1.0, -0.5]
    )  # fmt: skip


@unseen("robots")
def gates() -> Statement:
    """A drone passes three gates of half a metre and hovers, least time."""
    drone = quadrotor()
    places = [(2.0, 1.0, 1.5), (4.0, -1.0, 2.0), (6.0, 1.0, 0.8)]
    phases = []
    for k, place in enumerate(places):
        through = [Bound("pose.x", place[0], place[0], at="terminal")]
        through += [
            Bound(f"pose.{axis}", value - 0.25, value + 0.25, at="terminal")
            for axis, value in zip("yz", place[1:], strict=True)
        ]
        phases.append(Phase(drone, 15, (0.2, 4.0), bounds=through, name=f"gate{k}"))
    goal = np.r_[8.0, 0.0, 1.0, SO3.identity]

    def missed(t: Any, x: Any, u: Any, p: Any) -> Any:
        return SE3.minus(x[:7], ca.DM(goal))

    stop = [Bound(missed, 0.0, 0.0, at="terminal", name="goal"),
            Bound("twist", 0.0, 0.0, at="terminal")]  # fmt: skip
    phases.append(Phase(drone, 20, (0.2, 4.0), bounds=stop, name="stop"))
    return Statement(
        PhasedProblem(phases, time_weight=1.0), [0.0, 0.0, 1.0, *SO3.identity, *[0.0] * 6]
    )


def cables(most: float) -> Statement:
    """A platform of 60 kg on eight cables rises by a metre past a pillar in 3 s."""
    mass, inertia = 60.0, ca.DM(np.diag([6.0, 6.0, 9.0]))
    winches = [(sx * 4.0, sy * 3.0, 4.0) for sx in (-1, 1) for sy in (-1, 1)]
    anchors = [(sx * 0.4, sy * 0.4, 0.3) for sx in (-1, 1) for sy in (-1, 1)]
    lower = [(-sx * 0.4, sy * 0.4, -0.3) for sx in (-1, 1) for sy in (-1, 1)]
    pairs = [*zip(winches, anchors, strict=True), *zip(winches, lower, strict=True)]

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        pose, v, w = x[:7], x[7:10], x[10:13]
        R = SO3.matrix(pose[3:7])
        force, torque = mass * R.T @ ca.DM([0, 0, -G]), ca.DM.zeros(3)
        for k, (winch, anchor) in enumerate(pairs):
            pull = R.T @ (ca.DM(winch) - pose[:3]) - ca.DM(anchor)
            pull = u[k] * pull / ca.norm_2(pull)
            force, torque = force + pull, torque + ca.cross(ca.DM(anchor), pull)
        return ca.vertcat(
            v, w, force / mass - ca.cross(w, v),
            ca.solve(inertia, torque - ca.cross(w, inertia @ w)),
        )  # fmt: skip

    inputs = [Input(f"cable{k}", "N", 5.0, most, nominal=0.2 * most + 4) for k in range(8)]
    platform = System("platform", Product(pose=SE3, twist=Rn(6)), field, inputs=inputs)
    goal = np.r_[1.5, 1.0, 2.0, SO3.identity]

    def missed(t: Any, x: Any, u: Any, p: Any) -> Any:
        return SE3.minus(x[:7], ca.DM(goal))

    pillar = Capsule([0.0, 0.1, 0.0], [0.0, 0.1, 4.0], 0.2)
    problem = OptimalControlProblem(
        platform, 60, 0.05, Q=0, R=1e-4, terminal=0.0,
        bounds=[
            keep_out(lambda t, x, u, p: x[:3], pillar, radius=0.7, name="pillar"),
            Bound(missed, 0.0, 0.0, at="terminal", name="goal"),
            Bound("twist", 0.0, 0.0, at="terminal"),
        ],
    )  # fmt: skip
    return Statement(problem, [-1.5, -1.0, 1.0, *SO3.identity, *[0.0] * 6])


@unseen("robots")
def cable_robot() -> Statement:
    """With at most 1.5 kN a cable."""
    return cables(1500.0)


@unseen("robots", impossible="eight cables of 70 N carry 560 N, and the platform weighs 589 N")
def cable_robot_too_weak() -> Statement:
    """With at most 70 N a cable: it cannot rise from rest."""
    return cables(70.0)
