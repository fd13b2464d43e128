"""simulate: plant, controllers, sensors, estimator and disturbances in closed loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..integrators import Method
from ..systems import System
from ._loop import Loop
from ._result import SimulationResult
from ._sensor import Sensor


def simulate(
    plant: System,
    controller: Any = None,
    *,
    x0: Any,
    seconds: float,
    reference: Any = None,
    dt: float | None = None,
    record_dt: float | None = None,
    sensors: Sequence[Sensor] = (),
    estimator: Any = None,
    feedback: str | None = None,
    disturbances: Sequence[Any] = (),
    p: Any = None,
    saturate: bool = True,
    method: str | Method = "rk4",
    max_step: float = 0.01,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> SimulationResult:
    """Simulate a closed loop; everything in it runs at its own rate.

    All periods, offsets and delays are whole multiples of one integer tick, so that nothing drifts.
    What is due at the same time happens in this order: kicks; measurements, with the inputs held
    until then; deliveries of measurements, to the estimator; controllers from the outer to the
    inner; disturbances; record. Inputs are held in between, and the plant moves in equal steps no
    longer than `max_step`. At the end nothing is commanded any more: N periods make N calls.

    Parameters
    ----------
    plant : System
    controller : callable, optional
        ``controller(t, x, reference) → controls`` with ``dt``, and if it likes ``offset``,
        ``delay`` (from call to effect), ``info``, ``reset()`` and ``prepare(t, x, reference)``:
        before the run these two are called, the second with what the controller will see first,
        so that no call has to compile or plan from nothing. A `Cascade` runs several in a chain.
        Without one, and until the first answer takes effect, the controls are nominal.
    x0 : array_like, shape (nq,), or TrimPoint
    seconds : float
        Simulated time.
    reference : optional
        Handed to the controller as it is: a constant state, a TrimPoint, a Trajectory, a function
        of one time. A Trajectory stays where it ends; what controllers feed forward from then on
        holds the plant there.
    dt : float, optional
        Period in s of controllers that have none of their own; without a controller, of the record.
    record_dt : float, optional
        Longest time between recorded states, s. All times at which something happens are recorded
        anyway; without a controller the default is `dt` or `max_step` (one sample for discrete
        plants).
    sensors : sequence of Sensor
    estimator : optional
        ``predict(u, dt)`` with all inputs as far as they are known (disturbances are nominal) after
        each interval, ``update(sensor, y)`` with the sensor's name at each delivery, the estimate
        ``x`` and, if it likes, the covariance ``P`` and ``reset()``.
    feedback : {"estimate", "measurement", "state"}, optional
        What the controllers see: the estimate (the default with an estimator), the last delivery of
        a single sensor of the whole state (the default with sensors alone; x0 until the first one),
        or the true state.
    disturbances : sequence, or a single one
        `HeldNoise`, `WhiteNoise`, `InputSignal`, `Pulse`, `Kick`, or objects of your own with
        ``dt`` and ``sample(t, rng) → {input: value}``. Those on the same input add up, to its
        nominal value or, on a control, to what the controller says, after saturation.
    p : array_like, shape (n_parameters,), optional
        The plant's parameters; nominal if left out.
    saturate : bool
        Whether controls are clipped to the plant's bounds.
    method : str or Method
        Integrator of the plant.
    max_step : float
        Longest integration step in s; of no effect on discrete plants. Where the plant is so fast
        that a step differs grossly from a step of Euler's method (by 5 % of one plus the state),
        steps are halved from then on, down to a thousandth; the summary says so, and
        `SimulationResult.settings` has the shortest one. Euler's method itself is left alone.
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
        else than finite controls; its ``result`` is the run up to then.
    TypeError, ValueError, KeyError
        If the arguments do not fit together.

    Warns
    -----
    RuntimeWarning
        If the start or the reference is beyond limits that the plant knows, as those of joints, or
        a `Kick` or `Pulse` comes after the end.

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
    loop = Loop(
        plant,
        controller,
        x0=x0,
        seconds=seconds,
        reference=reference,
        dt=dt,
        record_dt=record_dt,
        sensors=sensors,
        estimator=estimator,
        feedback=feedback,
        disturbances=disturbances,
        p=p,
        saturate=saturate,
        method=method,
        max_step=max_step,
        seed=seed,
    )
    return loop.run(progress)
