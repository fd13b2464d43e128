"""Problems that solvers are compared on, as stated in `problems.json` of the reference data."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.controllers.designs.panda_mpc import HAND, POSES, READY
from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import Multibody, thrust_policy
from lgcontrol.models import panda, panda_tree
from lgcontrol.optimal import Bound, OptimalControlProblem, Residual
from lgcontrol.optimal._internal import sample_reference
from lgcontrol.systems import Input, with_accelerations
from tests.controllers import problem_a

MOMENTUM = 3.0  # N m s, of the space arm about its centre of mass, where it is bounded
FRICTION, LIFT, REACH = 0.6, 60.0, np.array([0.15, 0.05, 0.15])


def shared_folder() -> Path:
    """Where the reference data are; the program ends where they are not."""
    root = Path(__file__).resolve().parents[2]
    shared = Path(os.environ.get("LGCONTROL_SHARED") or root.parent / "shared")
    if not shared.is_dir():
        sys.exit(f"no reference data at {shared}; set LGCONTROL_SHARED to its folder")
    return shared


@dataclass
class Case:
    """A problem with starts, and where the first guess begins."""

    name: str
    problem: OptimalControlProblem
    starts: np.ndarray
    guess: Any = None


def quadrotor_flip(plant: Any, horizon: int = 40, reference: Any = problem_a.GOAL) -> Case:
    """Problem A: a quadrotor from any attitude, with the weights of its specification."""

    def residual(t, x, u, p):
        position = x[:3] - problem_a.GOAL[:3]
        return ca.vertcat(position, SO3.log(x[3:7]), SO3.matrix(x[3:7]) @ x[7:10], x[10:])

    system = problem_a.quadrotor()
    problem = OptimalControlProblem(
        system.with_policy(thrust_policy(system)), horizon, 0.05, Q=0, R=0.1, terminal=0,
        residuals=[Residual(residual, plant.wx, terminal=plant.wN)], reference=reference,
    )  # fmt: skip
    starts = [plant.x0_of(q) for q in plant.attitudes()] + [plant.X0]
    states = np.array([problem_a.from_neutral(x) for x in starts])
    return Case("A", problem, states, "policy")


def panda_reach(weight: float = 1.0) -> Case:
    """Problem B: a Panda reaches for a pose, limits of the joints hard.

    A weight multiplies that of the pose, 1 is the specification.
    """
    tree = panda_tree(losses=False)
    place, slope, limits = tree.placement(HAND), tree.jacobian(HAND), tree.limits
    target = place(READY + POSES[0])
    pose = Residual.from_goal(
        lambda t, x, u, p: place(x[:7]), target, SE3, 10.0 * weight, 1000.0 * weight, "pose",
        lambda t, x, u, p: (ca.horzcat(slope(x[:7]), ca.DM(6, 7)), ca.DM(6, 7)),
    )  # fmt: skip

    problem = OptimalControlProblem(
        panda(losses=False), 30, 0.02, Q={"configuration": 0.1, "velocity": 0.1}, R=1e-3,
        terminal={"configuration": 0.1, "velocity": 10.0}, method="semi_implicit_euler",
        residuals=[pose],
        bounds=[Bound("configuration", limits["lower"], limits["upper"])],
        reference=np.r_[READY, np.zeros(7)],
    )  # fmt: skip
    return Case("B", problem, np.r_[READY, np.zeros(7)][None], "reference")


def panda_by_accelerations() -> Case:
    """Problem B with accelerations as controls: torques are rows, and what they cost a residual."""
    forward = panda_reach()
    problem = forward.problem
    system = with_accelerations(problem.system)
    held = sample_reference(problem.system, problem.reference, np.zeros(1)).u[0]
    effort = Residual("input", 1e-3, name="effort", function=lambda t, y, u, p: y - held)
    problem = problem.with_arguments(
        system=system, R=1e-11, residuals=[*problem.residuals, effort],
        bounds=[*problem.bounds, Bound("input", at="path")],
    )  # fmt: skip
    return Case("B by accelerations", problem, forward.starts, forward.guess)


def space_arm(variant: str = "free-flying") -> Case:
    """Problem C: a free base with an arm, from any attitude.

    Besides the specification ("free-flying"): "momentum-bounded", with its angular momentum about
    the centre of mass within ±3 N m s an axis; "free-floating", without thrusters: the pose of
    the base costs nothing, the arm alone is brought to its goal.
    """
    shared = shared_folder() / "specs"
    C = json.loads((shared / "problems.json").read_text())["C_spacecraft_arm"]
    tree = Multibody.from_urdf(str(shared / "spacearm.urdf"), base="free", gravity=(0, 0, 0))
    floats = variant == "free-floating"
    names = [*("Fx", "Fy", "Fz"), *("Tx", "Ty", "Tz"), "tau1", "tau2", "tau3"]
    most = [20.0] * 3 + [5.0] * 3 + [3.0] * 3
    first = 6 if floats else 0
    inputs = [Input(n, "N", -m, m) for n, m in zip(names[first:], most[first:], strict=True)]
    system = tree.system(inputs, input_matrix=np.eye(9)[:, first:])
    goal = np.r_[1, 0.5, -0.5, 0, 0, 0, 1, 0.5, -0.6, 0.8, np.zeros(9)]

    def residual(t, x, u, p):
        here = ca.vertcat(x[:3] - goal[:3], SO3.log(x[3:7]))
        return ca.vertcat(*([] if floats else [here]), x[7:10] - goal[7:10], x[10:])

    def weights(W: dict[str, float]) -> np.ndarray:
        names = ("qj", "v_lin", "w", "vj") if floats else ("p", "R", "qj", "v_lin", "w", "vj")
        return np.repeat([float(W[name]) for name in names], 3)

    bounds = []
    if variant == "momentum-bounded":
        momentum = tree.centroidal_momentum

        def spin(t, x, u, p):
            return momentum(x[:10], x[10:])[3:]

        bounds = [Bound(spin, -MOMENTUM, MOMENTUM, name="spin")]
    problem = OptimalControlProblem(
        system, C["N"], C["dt"], Q=0, R=np.repeat([0.001, 0.01, 0.01], 3)[first:], terminal=0,
        residuals=[Residual(residual, weights(C["W"]), terminal=weights(C["WN"]))],
        bounds=bounds, reference=goal,
    )  # fmt: skip
    starts = np.tile(goal, (100, 1))
    starts[:, :3], starts[:, 7:] = 0.0, 0.0
    starts[:, 3:7] = problem_a.attitudes()[:, [1, 2, 3, 0]]
    return Case(f"C, {variant}", problem, starts)


def talos() -> Case:
    """32 joints, the left hand to a point."""
    tree = Multibody.from_urdf(
        str(shared_folder() / "robots" / "talos_reduced.urdf"), losses=False, on_finding="ignore"
    )
    place = tree.placement("gripper_left_base_link")
    rest = tree.configuration.identity
    target = place(rest)[:3] + REACH
    lower, upper = tree.limits["lower"], tree.limits["upper"]
    rest = np.clip(rest, lower, upper)

    def away(t, x, u, p):
        return place(x[: tree.nq])[:3] - target

    problem = OptimalControlProblem(
        tree.system(), 20, 0.02, Q={"configuration": 0.1, "velocity": 0.1}, R=1e-4,
        terminal={"configuration": 0.1, "velocity": 1.0}, method="euler",
        residuals=[Residual(away, 100.0, terminal=1000.0)],
        reference=np.r_[rest, np.zeros(tree.nv)],
    )  # fmt: skip
    return Case("Talos", problem, np.r_[rest, np.zeros(tree.nv)][None], "reference")


def solo() -> Case:
    """A quadruped lowers its base by 4 cm: torques, and forces of four feet within pyramids.

    The first start stands still, of eight others the joints are off by up to 0.05 rad.
    """
    tree = Multibody.from_urdf(
        str(shared_folder() / "robots" / "solo12.urdf"), base="free", on_finding="ignore"
    )
    feet = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
    made = tree.system(wrenches={foot: "hybrid" for foot in feet})
    system = replace_inputs(made, feet)
    stand = np.zeros(tree.nq)
    stand[6] = 1.0
    stand[7:] = np.tile([0.0, 0.8, -1.6], 4)
    places = [tree.placement(foot) for foot in feet]
    held = [np.array(place(stand)[:3]) for place in places]
    stand[2] -= np.mean([at[2] for at in held])
    held = [np.array(place(stand)[:3]) for place in places]
    goal = np.r_[stand, np.zeros(tree.nv)]
    goal[2] -= 0.04
    names = list(system.input_names)
    first = {foot: names.index(f"{foot}.fx") for foot in feet}

    def slip(t, x, u, p):
        return ca.vertcat(
            *(place(x[: tree.nq])[:3] - at for place, at in zip(places, held, strict=True))
        )

    def pyramids(t, x, u, p):
        rows = []
        for foot in feet:
            fx, fy, fz = (u[first[foot] + i] for i in range(3))
            rows += [FRICTION * fz - fx, FRICTION * fz + fx, FRICTION * fz - fy, FRICTION * fz + fy]
        return ca.vertcat(*rows)

    problem = OptimalControlProblem(
        system, 20, 0.02, Q={"configuration": 10, "velocity": 0.1}, R=1e-3,
        terminal={"configuration": 100, "velocity": 1.0}, method="euler",
        residuals=[Residual(slip, 1e4, terminal=1e4)],
        bounds=[Bound(pyramids, lower=0.0, name="pyramid", at="path")],
        reference=goal,
    )  # fmt: skip
    starts = np.tile(np.r_[stand, np.zeros(tree.nv)], (9, 1))
    for seed, x in enumerate(starts[1:]):
        x[7 : tree.nq] += np.random.default_rng(seed).uniform(-0.05, 0.05, tree.nq - 7)
    return Case("Solo", problem, starts, "reference")


def replace_inputs(system: Any, feet: list[str]) -> Any:
    """The same system with the forces of its feet as controls."""
    import copy

    weight = 2.5 * 9.81 / len(feet)
    forces = {f"{foot}.f{axis}" for foot in feet for axis in "xyz"}

    def control(entry: Input) -> Input:
        if entry.name not in forces:
            return entry
        lift = entry.name.endswith("fz")
        return replace(
            entry, role="control", lower=0.0 if lift else -LIFT, upper=LIFT,
            nominal=weight if lift else 0.0,
        )  # fmt: skip

    made = copy.copy(system)
    object.__setattr__(made, "inputs", tuple(control(entry) for entry in system.inputs))
    object.__setattr__(made, "_cache", {})
    return made
