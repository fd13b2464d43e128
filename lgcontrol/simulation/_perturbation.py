"""How far a task's plant may be from what its controller knows: the largest factor that passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ..groups import Product
from ..systems import ReferenceLike, System
from ._contract import ControlLaw, RunStatus
from ._task import Task

# Units of velocities, of bodies, joints, wheels and water.
VELOCITIES = ("m/s", "rad/s")
# Share by which masses and inertias are off at a factor of one.
MASS = 0.2
# The factors that are tried first; between the last that passes and the first that fails, halves.
FACTORS, HALVINGS = (0.5, 1.0, 2.0, 4.0), 3


@dataclass(frozen=True)
class Robustness:
    """What `robustness` found.

    Parameters
    ----------
    factor : float
        Largest factor at which all criteria held, and at all smaller ones that were tried.
    limiting : tuple of str
        What failed at the next larger one that was tried; empty where none did.
    runs : int
        How many it took.
    """

    factor: float
    limiting: tuple[str, ...]
    runs: int


def robustness(
    task: Task, *, seed: int = 0, progress: Callable[[str], None] | None = None
) -> Robustness:
    """Largest factor of a task's perturbations at which all its criteria still hold.

    Parameters
    ----------
    task : Task
        Its `perturbed` plants; those of `weaker` where it has none.
    seed : int
        Of disturbances.
    progress : callable, optional
        Called with a line for each factor.

    Returns
    -------
    Robustness
        Factors of 0 (nothing perturbed), 0.5, 1, 2 and 4, then three halvings.

    Raises
    ------
    KeyboardInterrupt
        If a run was interrupted.
    """
    tell = progress or (lambda text: None)
    runs = 0

    def failures(factor: float) -> tuple[str, ...]:
        nonlocal runs
        for label, other in _variants(task, factor):
            runs += 1
            run = other.run(seed=seed)
            if run.status == RunStatus.INTERRUPTED:  # no limit of the plant: nothing is found
                raise KeyboardInterrupt
            failed = [] if run.success else [run.message or "the run ended early"]
            if run.success:
                failed = [v.criterion.name for v in other.judge(run) if not v.passed]
            if failed:
                tell(f"factor {factor:g}, {label}: {failed[0]}")
                return (label, *failed)
        tell(f"factor {factor:g}: all criteria hold")
        return ()

    good, bad, why = 0.0, np.inf, failures(0.0)
    if why:
        return Robustness(float("nan"), why, runs)
    for factor in FACTORS:
        found = failures(factor)
        if found:
            bad, why = factor, found
            break
        good = factor
    for _ in range(HALVINGS if np.isfinite(bad) else 0):
        middle = (good + bad) / 2
        found = failures(middle)
        good, bad, why = (middle, bad, why) if not found else (good, middle, found)
    return Robustness(good, why, runs)


def weaker(plant: System[Any], factor: float, *, drag: float = 1.0) -> System[Any]:
    """The plant with all masses and inertias that many times theirs, and other drag.

    Its controls and its drag change its velocities that much less: with gravity and gyroscopic
    forces growing like the inertia nothing else changes. Disturbances grow along. Drag is what
    tells forwards from backwards in time: the part of the accelerations that is odd in all
    velocities, those of the water among them; what has the unit of one is one.

    Parameters
    ----------
    plant : System
    factor : float
        Of masses and inertias.
    drag : float
        Of the drag; without effect where no state has the unit of a velocity.

    Returns
    -------
    System

    Raises
    ------
    ValueError
        If the plant keeps constraints: its task needs a `Task.perturbed` of its own.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=["push"])
    >>> weaker(cart, 2.0).f(0.0, [0.0, 0.0], [1.0])
    array([0. , 0.5])
    """
    if plant.n_errors != plant.state.dim:
        raise ValueError(
            f"{plant.name} keeps constraints: give its task perturbed="
            "(plant, share, factor) → plant"
        )
    controls = plant.input_index("control").tolist()
    rates = np.array([unit in VELOCITIES for unit in plant.state.tangent_units], dtype=float)
    back = 1.0 - 2.0 * _coordinates_of(plant, rates)
    water = np.array([1.0 - 2.0 * (one.unit in VELOCITIES) for one in plant.inputs])

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        idle = ca.vertcat(*(0 if i in controls else u[i] for i in range(plant.n_inputs)))
        without = plant.f.function(t, x, idle, p)
        driven = (plant.f.function(t, x, u, p) - without) / factor
        if drag == 1.0 and factor == 1.0 or not rates.any():
            return without + driven
        returned = plant.f.function(t, back * x, water * idle, p)
        lost = rates * (without - returned) / 2
        return without + (drag / factor - 1.0) * lost + driven

    return System(
        plant.name, plant.state, field, inputs=plant.inputs, parameters=plant.parameters,
        dt=plant.dt,
    )  # fmt: skip


def _coordinates_of(plant: System[Any], chosen: np.ndarray) -> np.ndarray:
    """Ones where a coordinate of the state is a chosen component of tangent vectors."""
    found = np.zeros(plant.state.nq)
    for name in plant.state.blocks if isinstance(plant.state, Product) else ():
        tangent, own = plant.state.tangent_slice(name), plant.state.coordinate_slice(name)
        if tangent.stop - tangent.start == own.stop - own.start:
            found[own] = chosen[tangent]
    return found


class Late:
    """A controller whose answers take effect later than it knows.

    Parameters
    ----------
    controller : callable
    seconds : float
    """

    def __init__(self, controller: Any, seconds: float) -> None:
        self.controller, self.seconds = controller, seconds

    def __getattr__(self, name: str) -> Any:
        """Those of the controller."""
        if name == "controller":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.controller, name)

    @property
    def delay(self) -> float:
        """Of the controller, and what comes on top."""
        return getattr(self.controller, "delay", 0.0) + self.seconds

    def __call__(self, t: float, x: np.ndarray, reference: ReferenceLike | None = None) -> Any:
        """The controller's answer."""
        return self.controller(t, x, reference)


def _perturbed(plant: System[Any], share: float, factor: float) -> System[Any]:
    """What is tried unless a task says otherwise."""
    return weaker(plant, 1.0 + share, drag=1.0 + factor)


def _variants(task: Task, factor: float) -> Iterator[tuple[str, Task]]:
    """Lighter and heavier plants with more drag behind a late controller."""
    if factor == 0:
        yield "nothing perturbed", task
        return
    control: ControlLaw | Any = task.controller
    delay = factor * float(getattr(control, "dt", 0.0))
    late: Any = Late(control, delay)
    for sign, label in ((1.0, "heavier"), (-1.0, "lighter")):
        share = sign * MASS * factor
        if share <= -0.9:
            continue
        make = task.perturbed or _perturbed
        plant = make(task.plant, share, factor)
        yield f"{label} by {100 * abs(share):g} %", replace(task, plant=plant, controller=late)
