"""How far a task's plant may be from what its controller knows: the largest factor that passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import named_options
from ..groups import Product
from ..systems import Parameter, ReferenceLike, System
from ..systems._internal import ErrorCoordinates, ParameterValues
from ._contract import ControlLaw, RunStatus
from ._task import Task

# Units of velocities, of bodies, joints, wheels and water.
VELOCITIES = ("m/s", "rad/s")
# Share by which masses and inertias are off at a factor of one.
MASS = 0.2
# Parameters of a plant made by `scaled_inertia`.
HEAVINESS, DRAG = "times_inertia", "times_drag"
# The factors that are tried first; between the last that passes and the first that fails, halves.
FACTORS, HALVINGS = (0.5, 1.0, 2.0, 4.0), 3
MOST_RUNS = 1 + 2 * (len(FACTORS) + HALVINGS)  # one as it is, then heavier and lighter


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


@named_options
def robustness(
    task: Task, *, seed: int = 0, progress: Callable[[str], None] | None = None
) -> Robustness:
    """Largest factor of a task's perturbations at which all its criteria still hold.

    Parameters
    ----------
    task : Task
        Its `perturbed` plants; one made by `scaled_inertia` where it has none.
    seed : int
        Of disturbances.
    progress : callable, optional
        Called with a line at the start and one after the first run, saying how many runs there are
        at most and how long these take, and with one for each factor.

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
    signs = [1.0, -1.0]  # heavier, lighter: the one that failed last goes first
    make = task.perturbed or _of_weaker(task.plant)

    def failures(factor: float) -> tuple[str, ...]:
        nonlocal runs
        for sign, label, other in _variants(task, make, factor, tuple(signs)):
            runs += 1
            started = perf_counter()
            run = other.run(seed=seed)
            if runs == 1:
                taken = perf_counter() - started
                tell(f"run 1 took {taken:.1f} s: {MOST_RUNS} would take {MOST_RUNS * taken:.0f} s")
            if run.status == RunStatus.INTERRUPTED:  # no limit of the plant: nothing is found
                raise KeyboardInterrupt
            failed = [] if run.is_success else [run.message or "the run ended early"]
            if run.is_success:
                failed = [v.criterion.name for v in other.judge(run) if not v.passed]
            if failed:
                tell(f"factor {factor:g}, {label}: {failed[0]}")
                signs.sort(key=lambda other: other != sign)
                return (label, *failed)
        tell(f"factor {factor:g}: all criteria hold")
        return ()

    tell(f"at most {MOST_RUNS} runs, the first with nothing perturbed")
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


def scaled_inertia(plant: System[Any], factor: float = 1.0, *, drag: float = 1.0) -> System[Any]:
    """The plant with all masses and inertias that many times theirs, and other drag.

    Its controls and its drag change its velocities that much less: with gravity and gyroscopic
    forces growing like the inertia nothing else changes, constraints included. Disturbances grow
    along, and so do springs. Drag is what tells forwards from backwards in time: the part of the
    accelerations that is odd in all velocities, those of the water among them; what has the unit
    of one is one.

    Parameters
    ----------
    plant : System
    factor : float
        Of masses and inertias: the parameter "times_inertia" of the result.
    drag : float
        Of the drag: the parameter "times_drag"; without effect where no state has the unit of a
        velocity.

    Returns
    -------
    System
        With the two parameters last: other values are no other code. It keeps no quantities.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=["push"])
    >>> heavy = scaled_inertia(cart, 2.0)
    >>> heavy.f(0.0, [0.0, 0.0], [1.0])
    array([0. , 0.5])
    >>> heavy.f(0.0, [0.0, 0.0], [1.0], [4.0, 1.0])
    array([0.  , 0.25])
    """
    n = plant.n_parameters
    idle = np.ones(plant.n_inputs)
    idle[plant.input_index("control")] = 0.0
    rates = np.array([unit in VELOCITIES for unit in plant.state.tangent_units], dtype=float)
    back = 1.0 - 2.0 * _coordinates_of(plant, rates)
    water = np.array([1.0 - 2.0 * (one.unit in VELOCITIES) for one in plant.inputs])

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        own, inertia, other_drag = p[:n], p[n], p[n + 1]
        pushed = ca.DM(idle) * u
        without = plant.f.function(t, x, pushed, own)
        driven = (plant.f.function(t, x, u, own) - without) / inertia
        if not rates.any():
            return without + driven
        returned = plant.f.function(t, ca.DM(back) * x, ca.DM(water) * pushed, own)
        lost = ca.DM(rates) * (without - returned) / 2
        return without + (other_drag / inertia - 1.0) * lost + driven

    def without_ours(function: Any) -> Any:
        return None if function is None else lambda *given: function(*given[:-1], given[-1][:n])

    errors = plant.errors
    if errors is not None:
        basis, constraints = without_ours(errors.basis), without_ours(errors.constraints)
        errors = ErrorCoordinates(errors.selection, basis, errors.names, errors.units, constraints)
    return plant.replaced(
        f=field,
        h=without_ours(plant.h),
        parameters=[*plant.parameters, Parameter(HEAVINESS, "", factor), Parameter(DRAG, "", drag)],
        quantities={},
        limits={k: v for k, v in plant.limits.items() if k in plant.state.coordinate_names},
        invariants=without_ours(plant.invariants),
        project=without_ours(plant.project),
        project_derivative=without_ours(plant.project_derivative),
        errors=errors,
        derivatives=None,
        structure=None,
        policy=without_ours(plant.policy),
    )


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
        own = getattr(controller, "__dict__", {})
        if "system" in own:  # it still tells where states of its system should be
            self.system = own["system"]

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


def _of_weaker(plant: System[Any]) -> Callable[[float, float], Any]:
    """What is tried unless a task says otherwise."""
    made = scaled_inertia(plant)
    return lambda share, factor: (made, {HEAVINESS: 1.0 + share, DRAG: 1.0 + factor})


def _variants(
    task: Task,
    make: Callable[[float, float], tuple[System[Any], Mapping[str, float]]],
    factor: float,
    signs: tuple[float, ...],
) -> Iterator[tuple[float, str, Task]]:
    """Lighter and heavier plants with more drag behind a late controller."""
    if factor == 0:
        yield 1.0, "nothing perturbed", task
        return
    control: ControlLaw | Any = task.controller
    late: Any = Late(control, factor * float(getattr(control, "dt", 0.0)))
    for sign in signs:
        share = sign * MASS * factor
        if share <= -0.9:
            continue
        plant, values = make(share, factor)
        given = ParameterValues(
            task.plant.parameters, task.plant.nominal_parameters, task.options.get("p")
        )
        options = {**task.options, "p": given.by_name() | dict(values)}
        label = f"{'heavier' if sign > 0 else 'lighter'} by {100 * abs(share):g} %"
        yield sign, label, replace(task, plant=plant, controller=late, options=options)
