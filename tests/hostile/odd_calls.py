"""Odd calls: every public callable with a wrong thing at each place in turn, and how it answers."""

from __future__ import annotations

import contextlib
import inspect
import io
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

import lgcontrol
from lgcontrol import controllers as designs
from lgcontrol import models
from lgcontrol.controllers import (
    LQR,
    MPC,
    TVLQR,
    ComputedTorque,
    GravityPD,
    Impedance,
    OperationalSpace,
    RealTime,
    SteadyDisturbance,
)
from lgcontrol.estimation import (
    EKF,
    UKF,
    LandmarkMap,
    Log,
    MovingHorizon,
    Variables,
    allan_deviation,
    gnss,
)
from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn, check_element, check_group
from lgcontrol.integrators import get_method, integrate
from lgcontrol.io import parse_urdf
from lgcontrol.mechanics import (
    FrameTask,
    InverseKinematics,
    JointProperties,
    Mimic,
    Motor,
    Multibody,
    RigidBody,
    SeriesElastic,
    SpatialInertia,
)
from lgcontrol.models import quadrotor, ur5_tree
from lgcontrol.optimal import (
    Bound,
    Capsule,
    Cone,
    Cost,
    HalfSpace,
    OptimalControlProblem,
    Residual,
    Sphere,
    keep_out,
)
from lgcontrol.plotting import plot_path, plot_run
from lgcontrol.simulation import (
    Criterion,
    HeldNoise,
    InputSignal,
    Kick,
    Pulse,
    WhiteNoise,
    simulate,
)
from lgcontrol.systems import (
    BSpline,
    Input,
    Parameter,
    ScrewMotion,
    Sensor,
    System,
    Trajectory,
    Waypoints,
    check_system,
    choose_method,
)
from lgcontrol.systems._internal import rollout_derivatives
from tests.benchmarks import _sqp_peer  # noqa: F401  # enters itself in SOLVERS


class Odd:
    """What nobody expects."""

    def __repr__(self) -> str:
        return "<odd>"


ODD: dict[str, Any] = {
    "nothing": None,
    "a number": 3.5,
    "a text": "text",
    "a list of texts": ["a", "b"],
    "a mapping": {"a": 1.0},
    "an object": Odd(),
    "a class": Odd,
    "a function": lambda a: a,
    "numbers": np.arange(4.0),
    "a matrix": np.ones((2, 3)),
}


class Call(NamedTuple):
    """A call with one odd argument."""

    label: str
    function: Callable[..., Any]
    good: dict[str, Any]
    place: str
    odd: str

    def answer(self) -> Exception | None:
        """What the call raises."""
        values = {**self.good, self.place: ODD[self.odd]}
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                call(self.function, values)
        except Exception as error:
            return error
        return None


def call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Call with arguments by name, but for those that are taken by position alone."""
    kinds = inspect.signature(function).parameters
    first = [key for key in values if key in kinds and kinds[key].kind is _POSITIONAL]
    named = {key: value for key, value in values.items() if key not in first}
    return function(*(values[key] for key in first), **named)


_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY
PACKAGES = tuple(
    str(Path(file).parent) for file in (lgcontrol.__file__, models.__file__, designs.__file__)
)


def is_ours(error: Exception) -> bool:
    """Whether a statement of the package raised it, not Python, NumPy or CasADi on its way."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    own = last.filename.startswith(PACKAGES)
    return own and (last.line or "").lstrip().startswith("raise")


class Things:
    """Small systems, trees, controllers, … that calls are made with."""

    def __init__(self) -> None:
        rod = SpatialInertia.box(1.0, [0.5, 0.1, 0.1])
        drive = JointProperties(damping=0.1, effort=20.0)
        self.cart = System(
            "cart",
            Product(place=Rn(1), speed=Rn(1)),
            lambda t, x, u, p: [x[1], (u[0] + u[1]) / p[0]],
            inputs=[Input("push", "N", -5, 5), Input("wind", "N", role="disturbance")],
            parameters=[Parameter("mass", "kg", 1.0)],
        )
        self.craft = System(
            "craft",
            Product(pose=SE2, twist=Rn(3)),
            lambda t, x, u, p: ca.vertcat(x[4:], u - x[4:]),
            inputs=["fx", "fy", "mz"],
        )
        self.tree = (
            Multibody("arm")
            .add_body("upper", rod, "revolute", joint_name="shoulder", axis="y", properties=drive)
            .add_body(
                "lower", rod, "revolute", "upper", [0.5, 0, 0, 0, 0, 0, 1], axis="y",
                joint_name="elbow", properties=drive,
            )
        )  # fmt: skip
        self.six = ur5_tree()
        self.trajectory = self.cart.rollout([0, 0], [[1, 0]] * 5, 0.1)
        self.place = Sensor("place", lambda t, x, u, p: x[:1], Rn(1), std_discrete=0.1)
        self.options: dict[str, Any] = {"std0": 1.0, "noise": {"wind": 0.1}}
        self.problem = OptimalControlProblem(self.cart, 5, 0.1, Q=1, R=1, reference=[0, 0])
        self.law = LQR(self.cart, [0, 0], dt=0.1)
        self.mpc = MPC(self.cart, 5, 0.1, reference=[0, 0])
        self.run = simulate(self.cart, self.law, x0=[1, 0], seconds=0.3)
        self.log = Log(np.arange(3) * 0.1, np.zeros((3, 2)), {"place": ([0.1, 0.2], [[0], [0]])})
        self.ik = InverseKinematics(self.tree, "lower")

    def filter(self) -> EKF:
        """A fresh filter."""
        return EKF(self.cart, [self.place], **self.options)


def entries(have: Things) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """What users call, and arguments with which each call is right."""
    cart, craft, tree = have.cart, have.craft, have.tree
    start, times = [0.0, 0.0], [0.0, 0.1, 0.2]
    drive = craft.rollout(craft.state.identity, [0.1, 0, 0], 0.1, steps=3)
    line = {"t": [0.0, 1.0, 2.0], "x": [[0.0], [1.0], [3.0]]}
    pose, attitude = SE3.identity, SO3.identity
    field = {"name": "s", "state": Rn(1), "f": lambda t, x, u, p: u}
    law, six = {"tree": tree, "dt": 0.01}, {"tree": have.six, "dt": 0.01}
    return {
        "System": (System, {**field, "inputs": ["u"], "parameters": (), "quantities": None,
                            "limits": None, "home": [0.0], "dt": 0.0}),
        "Input": (Input, {"name": "u", "unit": "N", "lower": -1.0, "upper": 1.0, "nominal": 0.0,
                          "role": "control"}),
        "Parameter": (Parameter, {"name": "m", "unit": "kg", "nominal": 1.0, "lower": 0.0}),
        "Trajectory": (Trajectory, {"group": Rn(1), "t": times, "x": [[0], [1], [2]],
                                    "u": [[0], [0]], "inputs": ["u"]}),
        "Waypoints": (Waypoints, {"group": Rn(1), **line, "order": 5, "stops": True}),
        "BSpline": (BSpline, {"group": Rn(1), "t": np.arange(8.0), "x": np.zeros((12, 1))}),
        "ScrewMotion": (ScrewMotion, {"group": SE2, "x": SE2.identity, "velocity": [1, 0, 0],
                                      "seconds": 1.0}),
        "Product": (Product, {"a": SO3, "b": Rn(2)}),
        "Rn": (Rn, {"n": 2, "names": ("a", "b")}),
        "SO3.exp": (SO3.exp, {"d": [0.1, 0, 0]}),
        "SO3.log": (SO3.log, {"X": attitude}),
        "SO3.compose": (SO3.compose, {"X": attitude, "Y": attitude}),
        "SO3.plus": (SO3.plus, {"X": attitude, "d": [0.1, 0, 0]}),
        "SO3.minus": (SO3.minus, {"X": attitude, "Y": attitude}),
        "SO3.from_matrix": (SO3.from_matrix, {"matrix": np.eye(3)}),
        "SO3.from_quaternion": (SO3.from_quaternion, {"quaternion": attitude, "order": "xyzw"}),
        "SO3.act": (SO3.act, {"X": attitude, "point": [1, 0, 0]}),
        "SE3.from_position": (SE3.from_position, {"position": [0, 0, 0]}),
        "SE3.from_quaternion": (SE3.from_quaternion, {"quaternion": attitude, "order": "xyzw",
                                                      "position": [0, 0, 0]}),
        "SE3.interpolate": (SE3.interpolate, {"X": pose, "Y": pose, "s": 0.5}),
        "SE3.distance": (SE3.distance, {"X": pose, "Y": pose, "length": 1.0}),
        "check_element": (check_element, {"name": "x", "value": attitude, "group": SO3}),
        "check_group": (check_group, {"group": SO2, "samples": 5, "seed": 0}),
        "cart.f": (cart.f, {"t": 0.0, "x": start, "u": [0, 0], "p": [1.0]}),
        "rollout": (cart.rollout, {"x0": start, "u": [[0, 0]] * 2, "dt": 0.1, "t0": 0.0, "p": None,
                                   "method": "rk4", "substeps": 1}),
        "rollout_derivatives": (rollout_derivatives, {"system": cart, "x0": start, "u": [[0, 0]],
                                                      "dt": 0.1}),
        "step": (cart.step, {"method": "rk4", "substeps": 1}),
        "discretize": (cart.discretize, {"dt": 0.1, "method": "rk4", "substeps": 1}),
        "linearize": (cart.linearize, {"x": start, "u": [0, 0], "t": 0.0, "p": [1.0]}),
        "trim": (cart.trim, {"guess": start, "u": [0, 0], "where": {"place": 1.0}, "moving": (),
                             "conditions": None, "p": None, "t": 0.0}),
        "augment": (cart.augment, {"delay": None, "lag": 0.1, "bias": "wind", "integrate": ()}),
        "with_parameters": (cart.with_parameters, {"values": {"mass": 2.0}}),
        "full_input": (cart.full_input, {"control": [1.0], "wind": 0.0}),
        "input_index": (cart.input_index, {"role": "control"}),
        "error": (cart.error, {"x": start, "x_ref": start}),
        "retract": (cart.retract, {"x": start, "z": start}),
        "to_nlsys": (cart.to_nlsys, {"coordinates": "group", "inputs": "control"}),
        "check_system": (check_system, {"system": cart, "x": start, "u": [0, 0], "samples": 2}),
        "choose_method": (choose_method, {"system": cart, "dt": 0.1, "x": start, "u": [0, 0]}),
        "trajectory": (have.trajectory, {"t": 0.1}),
        "simulate": (simulate, {
            "plant": cart, "controller": None, "x0": start, "seconds": 0.1, "reference": None,
            "dt": None, "record_dt": 0.1, "sensors": [have.place] and (), "estimator": None,
            "disturbances": (), "p": None, "saturate": True, "tolerance": 1e-6, "max_step": None,
            "seed": 0, "progress": None}),
        "simulate a law": (simulate, {
            "plant": cart, "controller": have.law, "x0": start, "seconds": 0.1, "reference": start,
            "feedback": "state", "method": "rk4", "disturbances": Kick(0.05, {"speed": [0.1]})}),
        "Sensor": (Sensor, {"name": "y", "dt": 0.1, "h": lambda t, x, u, p: x, "output": Rn(2),
                            "std_discrete": 0.1, "delay": 0.0, "dropout": 0.0}),
        "Kick": (Kick, {"time": 0.1, "change": {"speed": [0.1]}}),
        "Pulse": (Pulse, {"values": {"wind": 1.0}, "start": 0.1, "duration": 0.1}),
        "HeldNoise": (HeldNoise, {"std_discrete": {"wind": 1.0}, "dt": 0.1}),
        "WhiteNoise": (WhiteNoise, {"density": {"wind": 1.0}, "dt": 0.1}),
        "InputSignal": (InputSignal, {"function": lambda t: {"wind": 0.0}, "dt": 0.1}),
        "Criterion": (Criterion, {"name": "c", "measure": lambda run: 0.0, "limit": 1.0}),
        "run.block": (have.run.block, {"name": "place"}),
        "LQR": (LQR, {"system": cart, "point": start, "Q": 1.0, "R": 1.0, "dt": 0.1, "p": None}),
        "TVLQR": (TVLQR, {"system": cart, "trajectory": have.trajectory, "Q": 1.0, "R": 1.0,
                          "terminal": None}),
        "LQR call": (have.law, {"t": 0.0, "x": start, "reference": start, "p": None}),
        "MPC": (MPC, {
            "system": cart, "horizon": 3, "dt": 0.1, "Q": {"place": 1.0}, "R": 1.0,
            "terminal": None, "bounds": [], "residuals": [], "costs": [], "parameters": [],
            "rates": None, "method": "auto", "substeps": None, "reference": start,
            "guess": "auto", "solver": None, "delay": 0.0, "real_time": None, "disturbance": (),
            "p": None}),
        "RealTime": (RealTime, {"period": 0.1, "offset": 0.0, "iterations": 1, "budget": 0.1,
                                "first_iterations": 5, "restarts": True, "split": False}),
        "SteadyDisturbance": (SteadyDisturbance, {"of": "wind", "settling": 0.5}),
        "MPC call": (have.mpc, {"t": 0.0, "x": start, "reference": start, "p": None}),
        "MPC prepare": (have.mpc.prepare, {"t": 0.0, "x": start, "reference": start}),
        "GravityPD": (GravityPD, {**law, "stiffness": 10.0, "damping": 1.0, "system": None,
                                  "reference": None}),
        "ComputedTorque": (ComputedTorque, {**law, "frequency": 5.0, "damping_ratio": 1.0,
                                            "reference": None}),
        "OperationalSpace": (OperationalSpace, {
            **six, "task": "wrist_3_link", "frequency": 5.0, "posture": None}),
        "Impedance": (Impedance, {
            **six, "task": "wrist_3_link", "stiffness": 10.0, "damping": 1.0, "posture": None}),
        "OptimalControlProblem": (OptimalControlProblem, {
            "system": cart, "horizon": 3, "dt": 0.1, "Q": 1.0, "R": 1.0, "terminal": None,
            "reference": start, "bounds": [], "residuals": [], "costs": [], "parameters": [],
            "method": "rk4", "substeps": 1}),
        "solve": (have.problem.solve, {
            "x0": start, "solver": None, "guess": None, "t0": 0.0, "p": None, "reference": None,
            "max_iterations": 3, "tolerance": 1e-6}),
        "solve by SQP": (have.problem.solve, {
            "x0": start, "solver": "sqp", "guess": None, "t0": 0.0, "reference": None}),
        "Bound": (Bound, {"of": "place", "lower": -1.0, "upper": 1.0, "soft": None,
                          "name": "b"}),
        "Residual": (Residual, {"of": lambda t, x, u, p: x, "weight": 1.0, "name": "r"}),
        "Cost": (Cost, {"of": lambda t, x, u, p: x[0] ** 2, "name": "c"}),
        "keep_out": (keep_out, {"body": lambda t, x, u, p: x[:2], "obstacle": Sphere([0, 0], 1.0),
                                "radius": 0.1, "name": "k"}),
        "Sphere": (Sphere, {"center": [0, 0], "radius": 1.0}),
        "Capsule": (Capsule, {"start": [0, 0], "end": [1, 0], "radius": 1.0}),
        "HalfSpace": (HalfSpace, {"point": [0, 0], "normal": [1, 0]}),
        "Cone": (Cone, {"axis": [0, 0, 1], "half_angle": 0.3}),
        "EKF": (EKF, {"system": cart, "sensors": [have.place], "x0": start, "P0": np.eye(2),
                      "noise": {"wind": 0.1}, "gate": None, "iterations": None, "p": None}),
        "UKF": (UKF, {"system": cart, "sensors": [have.place], "x0": start, "std0": 1.0,
                      "noise": {"wind": 0.1}}),
        "MovingHorizon": (MovingHorizon, {
            "system": cart, "sensors": [have.place], "x0": start, "std0": 1.0,
            "noise": {"wind": 0.1}, "horizon": 2, "dt": 0.1, "bounds": ()}),
        "EKF predict": (lambda t, u, dt: have.filter().predict(t, u, dt),
                        {"t": 0.0, "u": [0, 0], "dt": 0.1}),
        "EKF update": (lambda measurement, y, t: have.filter().update(measurement, y, t=t),
                       {"measurement": "place", "y": [0.0], "t": 0.0}),
        "EKF run": (have.filter().run, {"log": have.log, "x0": start}),
        "Log": (Log, {"t": times, "u": [[0]] * 3, "measurements": {"place": (times, [[0]] * 3)}}),
        "gnss": (gnss, {"system": craft, "block": "pose", "lever_arm": None, "name": "g",
                        "std_discrete": 1.0}),
        "allan_deviation": (allan_deviation, {"signal": np.sin(np.arange(500.0)), "dt": 0.1}),
        "Variables": (Variables, {"name": "x", "group": Rn(1), "start": [[0.0]], "fixed": ()}),
        "LandmarkMap": (LandmarkMap, {
            "count": 2, "std0": 1.0, "std_discrete": 0.1,
            "noise": {"velocity.x": 0.1, "velocity.y": 0.1, "velocity.rz": 0.1}}),
        "Multibody": (Multibody, {"name": "m", "gravity": [0, 0, -9.81]}),
        "add_body": (tree.add_body, {
            "name": "b", "inertia": SpatialInertia.box(1.0, [1, 1, 1]), "joint": "revolute",
            "parent": "lower", "placement": None, "joint_name": "j", "properties": None,
            "mimic": None}),
        "parse_urdf": (parse_urdf, {"text": "<robot name='r'><link name='a'/></robot>"}),
        "tree.system": (tree.system, {"inputs": None, "wrenches": (), "forces": None}),
        "tree.symbolic": (tree.symbolic, {}),
        "tree.placement": (tree.placement, {"frame": "lower"}),
        "tree.jacobian": (tree.jacobian, {"frame": "lower"}),
        "mass_matrix": (tree.mass_matrix, {"q": [0, 0]}),
        "inverse_dynamics": (tree.inverse_dynamics, {"q": [0, 0], "v": [0, 0], "a": [0, 0]}),
        "lock": (tree.lock, {"elbow": 0.3}),
        "attach": (tree.attach, {
            "tree": Multibody().add_body("p", SpatialInertia.box(1, [1] * 3), "fixed"),
            "link": "lower", "prefix": "h_"}),
        "JointProperties": (JointProperties, {"damping": 0.1, "armature": 0.1, "effort": 1.0,
                                              "lower": -1.0}),
        "Mimic": (Mimic, {"joint": "a", "multiplier": 1.0, "offset": 0.0}),
        "SpatialInertia": (SpatialInertia, {"mass": 1.0, "center_of_mass": [0, 0, 0],
                                            "inertia": np.eye(3)}),
        "SpatialInertia.box": (SpatialInertia.box, {"mass": 1.0, "size": [1, 1, 1]}),
        "SpatialInertia.sphere": (SpatialInertia.sphere, {"mass": 1.0, "radius": 1.0}),
        "SpatialInertia.cylinder": (SpatialInertia.cylinder, {"mass": 1.0, "radius": 1.0,
                                                              "length": 1.0, "axis": [0, 0, 1]}),
        "RigidBody": (RigidBody, {"name": "b", "inertia": SpatialInertia.sphere(1.0, 1.0),
                                  "group": SE3, "forces": ()}),
        "FrameTask": (FrameTask, {"frame": "tool", "kind": "position", "weight": 1.0}),
        "InverseKinematics": (InverseKinematics, {"tree": tree, "tasks": "lower"}),
        "InverseKinematics.solve": (have.ik.solve, {"target": tree.placement("lower")([0.1, 0.2]),
                                                    "guess": [0, 0], "restarts": 0}),
        "SeriesElastic": (SeriesElastic, {
            "tree": tree, "motors": {"shoulder": Motor(0.1, 100.0), "elbow": Motor(0.1, 100.0)}}),
        "quadrotor": (quadrotor, {"mass": 1.0, "inertia": [1e-3] * 3, "arm": 0.1, "drag": None,
                                  "symbolic": ()}),
        "integrate": (integrate, {"problem": cart.problem, "x0": start, "span": [0.0, 0.1],
                                  "u": [0, 0], "p": [1.0]}),
        "get_method": (get_method, {"method": "rk4"}),
        "plot_run": (plot_run, {"run": have.run}),
        "plot_path": (plot_path, {"run": drive,
                                  "frames": 3, "goals": (), "obstacles": (), "hull": None}),
    }  # fmt: skip


def calls() -> Iterator[Call]:
    """All calls, one odd argument each."""
    for label, (function, good) in entries(Things()).items():
        for place in good:
            for odd in ODD:
                yield Call(label, function, good, place, odd)
