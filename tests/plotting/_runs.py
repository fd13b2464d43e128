"""Runs to draw: made by hand, so that every number on the axes is known."""

import numpy as np

from lgcontrol.groups import SE2, SE3, SO3, LieGroup, Product, Rn
from lgcontrol.simulation import SimulationResult
from lgcontrol.simulation._internal import ControllerLog

T = np.linspace(0.0, 2.0, 41)


def result(group: LieGroup, x: np.ndarray, **fields) -> SimulationResult:
    """A run on a group without inputs, unless they are among the fields."""
    names = fields.pop("input_names", ())
    defaults = {
        "name": "toy",
        "group": group,
        "t": T,
        "x": x,
        "u": np.zeros((len(T) - 1, len(names))),
        "input_names": names,
        "input_units": ("N",) * len(names),
        "input_roles": ("control",) * len(names),
        "input_bounds": np.array([[-np.inf] * len(names), [np.inf] * len(names)]),
    }
    return SimulationResult(**(defaults | fields))


def flight(**fields) -> SimulationResult:
    """A climbing turn with rates, four rotors within bounds, wind, a controller with statuses."""
    rates = Rn(6, ("vx", "vy", "vz", "wx", "wy", "wz"), ("m/s",) * 3 + ("rad/s",) * 3)
    group = Product(pose=SE3, twist=rates)
    twist = np.tile([1.0, 0.0, 0.3, 0.0, 0.0, 1.5], (len(T), 1))
    x = np.hstack([SE3.exp(T[:, np.newaxis] * twist), twist])
    k = np.arange(len(T) - 1)
    u = np.column_stack([1.5 + np.sin(k), *[1.5 + 0.1 * k / 40] * 3, np.cos(k), np.cos(2 * k)])
    calls = ControllerLog(
        T[:-1:2],
        u[::2, :4],
        {
            "call_time": 1e-3 * (1 + 0.1 * np.arange(20)),
            "status": np.array(["solved"] * 18 + ["max_iter", "failed"]),
        },
    )
    defaults = {
        "u": u,
        "input_names": ("rotor1", "rotor2", "rotor3", "rotor4", "wind_x", "push_z"),
        "input_units": ("N",) * 5 + ("N m",),
        "input_roles": ("control",) * 4 + ("disturbance",) * 2,
        "input_bounds": np.array([[0.0] * 4 + [-np.inf] * 2, [3.0] * 4 + [np.inf] * 2]),
        "reference": group.join(pose=SE3.exp(T[:, np.newaxis] * [1.0, 0, 0.3, 0, 0, 1.2])),
        "controllers": {"mpc": calls},
    }
    return result(group, x, **(defaults | fields))


def drive(**fields) -> SimulationResult:
    """More than a turn in the plane."""
    return result(SE2, SE2.exp(T[:, np.newaxis] * [1.0, 0.0, 4.0]), **fields)


def turn(**fields) -> SimulationResult:
    """A rotation past a half turn."""
    return result(SO3, SO3.exp(T[:, np.newaxis] * [0.0, 0.0, 2.0]), **fields)


def joints(count: int) -> SimulationResult:
    """Angles of many joints, driven by as many torques."""
    names = tuple(f"joint{i + 1}" for i in range(count))
    x = np.sin(T[:, np.newaxis] * np.linspace(1, 4, count))
    return result(
        Product(q=Rn(count, names, ("rad",) * count)),
        x,
        u=x[:-1],
        input_names=tuple(f"tau{i + 1}" for i in range(count)),
    )
