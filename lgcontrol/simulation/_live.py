"""live: a closed loop in real time in the browser, with a goal that is dragged by hand."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape
from ..groups import SE3, check_element
from ..scene._internal import LiveScene, moving_blocks
from ..systems import System, Trajectory
from ._contract import ControlLaw

PLANT_STEPS = 5  # of the plant between calls of the controller
Follow = Callable[[ControlLaw, np.ndarray], Any]


class _Stage(Protocol):
    """What shows the loop; see `LiveScene`."""

    @property
    def url(self) -> str: ...

    @property
    def goal(self) -> np.ndarray | None: ...

    def move(self, t: float, bodies: Any) -> None: ...

    def close(self) -> None: ...


@named_options
def live(
    plant: System,
    controller: ControlLaw,
    *,
    x0: Any,
    goal: Any = None,
    follow: Follow | None = None,
    seconds: float = 600.0,
    dt: float | None = None,
    speed: float = 1.0,
    obstacles: Any = (),
    port: int = 8080,
) -> Trajectory:
    """Run a closed loop in real time in the browser, where a person drags its goal.

    Needs viser (the extra ``live``). The loop is plain: no sensors, no disturbances, a controller
    with full state. It ends after some seconds, or by Ctrl-C.

    Parameters
    ----------
    plant : System
    controller : callable
        ``controller(t, x, reference) → controls``, an `MPC` for example.
    x0 : array_like, shape (nq,)
    goal : array_like, shape (7,), optional
        Pose that can be dragged; that of the plant's pose at the start if left out.
    follow : callable, optional
        ``follow(controller, pose) → reference`` at each call. If left out, parameters ``goal.x`` …
        ``goal.qw`` of the controller are set if it has them, or any prefix with these endings. Else
        the reference is the start with its pose at the goal.
    seconds : float
        Longest time.
    dt : float, optional
        Period of a controller that has none [s].
    speed : float
        Simulated seconds per second.
    obstacles : sequence or mapping of str to obstacle
        To be shown.
    port : int
        Of this machine.

    Returns
    -------
    Trajectory
        The motion up to the end.

    Raises
    ------
    ImportError
        If viser is not installed.
    ValueError
        If the controller has no period and dt is left out, or there is no pose to follow a goal.
    """
    x = check_element("x0", x0, plant.state)
    first = plant.scene(x, obstacles=obstacles)
    pose = _first_pose(plant, x) if goal is None else check_element("goal", goal, SE3)
    stage = LiveScene(first, pose, port)
    print(f"live at {stage.url}; Ctrl-C ends it")
    webbrowser.open(stage.url)
    chosen = follow or _follower(plant, controller, x)
    try:
        return run_live(plant, controller, x, stage, chosen, seconds, dt, speed)
    finally:
        stage.close()


def run_live(
    plant: System,
    controller: ControlLaw,
    x: np.ndarray,
    stage: _Stage,
    follow: Follow,
    seconds: float,
    dt: float | None,
    speed: float,
) -> Trajectory:
    """The loop on a stage; `live` makes that and what follows its goal."""
    period = getattr(controller, "dt", None) or dt
    if not period:
        raise ValueError(f"{type(controller).__name__} has no dt: give dt=, its period in s")
    step, fixed = plant.step("rk4", PLANT_STEPS), _fixed(plant)
    times, states, inputs = [0.0], [x], []
    began = time.perf_counter()
    try:
        for k in range(int(np.ceil(seconds / period - 1e-9))):
            t, goal = k * period, stage.goal
            reference = None if goal is None else follow(controller, goal)
            control = np.asarray(controller(t, x, reference), dtype=float)
            u = plant.full_input(np.clip(control, *fixed))
            x = np.asarray(step(t, x, u, plant.nominal_parameters, period))
            times.append(t + period)
            states.append(x)
            inputs.append(u)
            stage.move(t + period, plant.scene(x).bodies)
            ahead = (t + period) / speed - (time.perf_counter() - began)
            if ahead > 0:
                time.sleep(ahead)
    except KeyboardInterrupt:
        pass
    u = np.array(inputs).reshape(-1, plant.n_inputs) if inputs else None
    named = plant.inputs if inputs else None
    return Trajectory(plant.state, times, np.array(states), u, inputs=named)


def _fixed(plant: System) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the controls."""
    index = plant.input_index("control")
    lower, upper = plant.input_bounds
    return lower[index], upper[index]


def _first_pose(plant: System, x: np.ndarray) -> np.ndarray:
    for _, block, at, _ in moving_blocks(plant.state):
        return np.asarray(block.embed(x[at]))
    raise ValueError(f"{plant.name}: the state has no pose: give goal=, the pose that is dragged")


def _follower(plant: System, controller: ControlLaw, x: np.ndarray) -> Follow:
    """What a goal means to a controller: values of its parameters, or a state to go to."""
    known = getattr(controller, "parameters", None)
    names = [*known] if isinstance(known, Mapping) else []
    prefix = next((name[: -len("x")] for name in names if name.endswith(".x")), None)
    wanted = [f"{prefix}{name}" for name in SE3.coordinate_names]
    if prefix is not None and set(wanted) <= {*names}:

        def by_parameters(law: Any, pose: np.ndarray) -> None:
            law.parameters = {**law.parameters, **dict(zip(wanted, pose.tolist(), strict=True))}

        return by_parameters
    blocks = moving_blocks(plant.state)
    if blocks and blocks[0][1] == SE3:
        place = blocks[0][2]

        def by_state(law: ControlLaw, pose: np.ndarray) -> np.ndarray:
            reference = x.copy()
            reference[place] = check_shape("goal", pose, (7,))
            return reference

        return by_state
    raise ValueError(
        f"{plant.name}: nothing says what the goal means to the controller: give follow=, a "
        "function (controller, pose) → reference, or parameters goal.x … goal.qw"
    )
