"""simulate: plant, controllers, sensors, estimator and disturbances in closed loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from types import FunctionType, MethodType
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import interruptible, level_outside
from ..integrators import Method
from ..systems import ReferenceLike, Sensor, System, TrimPoint
from ..systems._internal import Parameters, ParameterValues, check_start, not_a_system
from ._clock import check_period
from ._compiled_loop import carry_out
from ._contract import ControlLaw, Disturbance, Estimator
from ._controllers import (
    Cascade,
    alone_with,
    as_reference,
    check_model,
    make_stages,
)
from ._disturbances import Disturbances, Kick, Pulse
from ._motion import FIXED_STEP, make_motion
from ._ramp import Ramp, ramped
from ._random import check_seed
from ._record import states_followed
from ._result import SimulationResult
from ._run import (
    SimulationSetup,
    batch_here,
    bind_sensors,
    check_estimator,
    check_step_count,
    choose_feedback,
    early_end,
    make_clock,
    warn_beyond_limits,
)

P = ParamSpec("P")

# Of the motion between events, where none is given.
TOLERANCE = 1e-6
OWN_CHECKS = "seconds record_dt max_step tolerance sensors disturbances seed"
LONG_PERIOD = 5.0  # s, of sensors' periods: longer ones than a run may be rates in Hz


@interruptible
def carried_out(
    runs: Sequence[SimulationSetup], progress: Callable[[float], None] | None = None
) -> list[Callable[[], SimulationResult]]:
    """Carry out simulations; what is returned makes each result, or raises, now or later."""
    users: list[object] = []
    for run in runs:
        laws = [stage.law for stage in run.stages]
        users += laws
        if run.estimator is not None and not any(run.estimator is law for law in laws):
            users.append(run.estimator)  # one may be both
    with alone_with(users):
        return carry_out(runs, progress)


def _at_once(made: Callable[P, SimulationSetup]) -> Callable[P, SimulationResult]:
    """A function that carries out what another one sets up, with the same arguments."""

    @wraps(made)
    def run(*given: P.args, **options: P.kwargs) -> SimulationResult:
        setup = made(*given, **options)
        return carried_out([setup], setup.progress)[0]()

    told: Any = run  # for help and pages
    told.__signature__ = signature(made).replace(return_annotation="SimulationResult")
    return run


@_at_once
@named_options(own=OWN_CHECKS)
def simulate(
    plant: System,
    controller: ControlLaw | Cascade | None = None,
    *,
    x0: ArrayLike | TrimPoint,
    seconds: float,
    reference: ReferenceLike | None = None,
    dt: float | None = None,
    record_dt: float | None = None,
    sensors: Sequence[Sensor] = (),
    estimator: Estimator | None = None,
    feedback: str | None = None,
    disturbances: Sequence[Disturbance | Kick | Pulse] | Disturbance | Kick | Pulse = (),
    p: Parameters | None = None,
    saturate: bool = True,
    tolerance: float | None = None,
    method: str | Method | None = None,
    max_step: float | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> SimulationSetup:
    """Simulate a closed loop; everything in it runs at its own rate.

    All periods, offsets and delays are whole multiples of one integer tick, so that nothing drifts.
    Events that are due at the same time happen in this order: kicks; measurements, with the inputs
    held until then; deliveries of measurements, to the estimator; controllers from the outer to the
    inner; disturbances; record. Inputs are held in between, and the plant moves. At the end nothing
    is commanded any more: N periods make N calls.

    Parameters
    ----------
    plant : System
    controller : callable, optional
        ``controller(t, x, reference) → controls`` with ``dt``, and if it likes more: see
        `ControlLaw`. Before the run its ``reset()`` and ``prepare(t, x, reference)`` are called.
        The second gets what the controller will see first, so that no call has to compile or plan
        from nothing. A `Cascade` runs several in a chain. Without one, and until the first answer
        takes effect, the controls are nominal. One that remembers is in one loop at a time.
    x0 : array_like, shape (nq,), or TrimPoint
    seconds : float
        Simulated time.
    reference : optional
        Handed to the controller: a constant state, a TrimPoint, a Trajectory, a function of one
        time (which is asked once about each time). A Trajectory stays where it ends; what
        controllers feed forward from then on holds the plant there.
    dt : float, optional
        Period in s of controllers that have none of their own; without a controller, of the record.
    record_dt : float, optional
        Longest time between recorded states, s. All times at which something happens are recorded
        anyway; without a controller the default is `dt`, `max_step` or 0.01 s (one sample for
        discrete plants).
    sensors : sequence of Sensor or Sensor
    estimator : Estimator, optional
        ``predict(t, u, dt)`` with all inputs as far as they are known (disturbances are nominal)
        after each interval, ``update(sensor, y)`` with the sensor's name at each delivery, the
        estimate ``x`` and, if it likes, the covariance ``P`` and ``reset()``.
    feedback : {"estimate", "measurement", "state"}, optional
        State that the controllers see. It is the estimate (the default with an estimator), or the
        true state. With sensors alone the default is the last delivery of a single sensor of the
        whole state, x0 until the first one.
    disturbances : sequence, or a single one
        `HeldNoise`, `WhiteNoise`, `InputSignal`, `Pulse`, `Kick`, or objects of your own with
        ``dt`` and ``sample(t, rng) → {input: value}``. Those on the same input add up, to its
        nominal value or, on a control, to what the controller says, after saturation.
    p : array_like, shape (n_parameters,), or mapping of str to float or callable, optional
        The plant's parameters: a vector, or values by name, the others nominal. A function of time
        is asked whenever something happens, at least every `record_dt` (0.01 s if left out), and
        held in between.
    saturate : bool
        Whether controls are clipped to the plant's bounds.
    tolerance : float, optional
        Largest error of the motion between events, 1e-6 if left out. It is relative for coordinates
        of Rn blocks, but not less than this part of their unit, and in m and rad for motions. Steps
        are as long as it allows; each may have a hundredth of it. A run whose steps cannot be made
        to keep it ends as ``UNRESOLVED``.
    method : str or Method, optional
        An integrator for equal steps no longer than `max_step`. Nothing watches its errors, so a
        tolerance is refused. A run with a step that does not solve its equations ends as
        ``UNRESOLVED``. Left out, steps keep the tolerance.
    max_step : float, optional
        Longest integration step in s; 0.01 for equal steps, unlimited otherwise. Shorter ones are
        needed for fields that change in time faster than in the state. Of no effect on discrete
        plants.
    seed : int
        Every sensor and disturbance has its own stream: adding one does not change the others.
        The same seed gives the same run bit by bit.
    progress : callable, optional
        Called with the fraction done, at most a hundred times.

    Returns
    -------
    SimulationResult
        Also when the state diverges or the run is interrupted (Ctrl-C): see its ``status``.

    Raises
    ------
    SimulationError
        If a controller, the estimator or a disturbance raises, or a controller returns something
        else than finite controls. Its ``result`` is the run up to then.
    RuntimeError
        If a controller or the estimator is in the loop of another simulation.
    TypeError, ValueError, KeyError
        If the arguments do not fit together.

    Warns
    -----
    RuntimeWarning
        If the start or the reference is beyond limits that the plant knows, as those of joints; if
        the start is off the constraints of a closed mechanism, and was put there; if
        a reference ends on its way; if a `Kick` or `Pulse` comes after the end; if a controller was
        to see measurements and never saw one, or the estimator never got one.

    Notes
    -----
    The loop runs in C, without Python's lock, and calls Python only for the parts that are written
    in Python. ``run.execution`` names these parts. Plants, sensors, `LQR`, `TVLQR`, filters and
    `MPC` with constant references need no Python. A `Cascade`, a machine without a C compiler or
    the compile policy "off" leave the whole loop to Python. The record is the same; laws and
    filters agree with those called from Python to rounding.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Input, System
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[2], u - ca.sin(x[1])), inputs=[Input("torque", "N m")])
    >>> damper = lambda t, x, reference: -2.0 * x[2]
    >>> run = simulate(pendulum, damper, x0=[0.0, 1.0, 1.0], seconds=20, dt=0.1)
    >>> bool(abs(run.block("rate")[-1, 0]) < 1e-3)
    True
    """
    if not isinstance(plant, System):
        raise TypeError(not_a_system("plant", plant))
    seconds = check_period("seconds", seconds)
    max_step = None if max_step is None else check_period("max_step", max_step)
    if tolerance is None:
        tolerance = TOLERANCE
    elif method is not None:
        raise ValueError(
            f"method={method!r} takes equal steps, which keep no tolerance: leave out the method "
            f"to keep tolerance={tolerance!r}, or the tolerance and give max_step=…"
        )
    if not (isinstance(tolerance, float | int) and 1e-13 <= tolerance <= 1e-1):
        raise ValueError(f"tolerance must be from 1e-13 to 0.1, got {tolerance!r}")
    seed = check_seed(seed)
    begin: Any = getattr(x0, "x", x0)
    if np.ndim(begin) > 1 and np.shape(begin)[-1] == plant.state.nq:
        raise ValueError(
            f"x0 has shape {np.shape(begin)}, expected ({plant.state.nq},): a run has one start, "
            "many take simulate_many(…, x0=starts); a closed loop that is itself a System "
            "goes through all of them at once by its rollout(starts, dt=…, steps=…)"
        )
    parameters = ParameterValues(plant.parameters, plant.nominal_parameters, p)
    start = check_start(plant, "x0", begin, parameters.at(0.0))
    stages = make_stages(controller, dt)
    if stages and estimator is None:
        check_model(plant, stages[-1])
    pushes = Disturbances(plant, disturbances, seed)
    bound = bind_sensors(sensors, plant, seed)
    feedback = choose_feedback(feedback, plant, bool(stages), bound, estimator is not None)
    check_estimator(estimator, plant, bound, feedback if stages else None)
    if record_dt is not None:
        check_period("record_dt", record_dt)
    elif not stages or parameters.functions:
        record_dt = dt or (plant.dt if plant.is_discrete else max_step or FIXED_STEP)
    times = [("seconds", seconds), *pushes.times()]
    times += [time for part in (*stages, *bound) for time in part.times.named]
    times += [] if record_dt is None else [("record_dt", record_dt)]
    check_step_count(seconds, times, max_step)
    clock = make_clock(plant, times)
    for sensor in bound:
        if (
            sensor.times.dt > seconds
            and sensor.times.dt >= LONG_PERIOD
            and sensor.times.dt % 1 == 0
        ):
            warnings.warn(
                f"{sensor.times.what} has dt = {sensor.times.dt:g} s, the run takes {seconds:g} s: "
                f"is that a rate in Hz? Then give dt=1/{sensor.times.dt:g}",
                RuntimeWarning,
                stacklevel=level_outside(),
            )
    ramp, moving = None, plant
    if stages and stages[-1].is_linear:
        ramp, moving = Ramp(plant, stages[-1].times.dt), ramped(plant)
    motion = make_motion(moving, method, float(tolerance), max_step, seconds)
    end = clock.ticks("seconds", seconds)
    pushes.schedule(clock, end)
    controls = plant.input_index("control")
    lower, upper = plant.input_bounds
    goal = as_reference(reference)
    warn_beyond_limits(plant, "x0", start)
    plain = isinstance(reference, FunctionType | MethodType)
    if plant.limits and reference is not None and not plain:
        nodes = np.atleast_1d(np.asarray(getattr(reference, "t", 0.0), dtype=np.float64))
        states = states_followed(plant, stages, reference, nodes)
        if states is not None:
            warn_beyond_limits(plant, "reference", states)
    until = early_end(reference, seconds)
    if until is not None:
        warnings.warn(
            f"the reference ends at {until:g} s while it moves, the run at {seconds:g} s: in "
            "between it stays at its last state; give a longer one, or a function of time",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    return SimulationSetup(
        plant=plant,
        start=start,
        motion=motion,
        ramp=ramp,
        clock=clock,
        end=end,
        record_period=clock.ticks("record_dt", record_dt) if record_dt else 0,
        stages=stages,
        reference=goal,
        sensors=bound,
        estimator=estimator,
        feedback=feedback,
        disturbances=pushes,
        batch=batch_here.get(),
        parameters=parameters,
        bounds=(lower[controls], upper[controls]) if saturate else None,
        progress=progress,
        settings={
            "seed": seed,
            "method": motion.method,
            "tolerance": None if method is not None or plant.is_discrete else float(tolerance),
            "max_step": max_step,
            "p": parameters.at(0.0).tolist(),
            "feedback": feedback,
            "reference_ends": until,
        },
    )


# A simulation that is checked and can be carried out; arguments are those of `simulate`.
set_up: Callable[..., SimulationSetup] = simulate.__wrapped__  # type: ignore[attr-defined]
