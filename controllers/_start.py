"""Controllers that fit a system without being asked: where predictive control starts from."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from lgcontrol.optimal import sample_reference
from lgcontrol.systems import ReferenceLike, System

from ._base import ControlInfo, Controller
from ._geometric import GeometricPD
from ._lqr import LQR
from ._thrust_vector import ThrustVectorPD

# Natural frequencies [rad/s] to try: from a vessel's to a small robot's; none that turns by more
# than this [rad] in a step, which a plan with inputs held for a step cannot do.
FREQUENCIES = (0.1, 0.3, 1.0, 3.0, 10.0)
TURN = 2.0
TILTING = 10.0  # rad/s, of vehicles that tilt their thrust
APART = 5.0  # times slower is the place than the attitude
# Calls per radian of a controller's fastest motion: enough that sampling does not upset it.
CALLS_PER_RADIAN = 10


class Hold(Controller):
    """The inputs of the reference, whatever the state.

    Parameters
    ----------
    system : System
    dt : float
    """

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        self.info = ControlInfo()
        return sample_reference(self.system, reference, np.array([t])).u[0, self._controls]


def starting_controllers(
    system: System, reference: ReferenceLike | None, t: float, dt: float, p: np.ndarray
) -> Iterator[Controller]:
    """Controllers that fit a system, for a first guess of what it can do.

    Parameters
    ----------
    system : System
    reference : optional
        Where a linear regulator is designed.
    t : float
        Time in s.
    dt : float
        Their longest period in s.
    p : ndarray
        The system's parameters.

    Yields
    ------
    Controller
        At least `Hold`; geometric ones where the state has a configuration and its velocity that
        the controls can steer, a linear regulator where the reference is an equilibrium.
    """
    yield Hold(system, dt=dt)
    point = sample_reference(system, reference, np.array([t]), p)

    def regulator() -> Controller:
        return LQR(system, system.linearize(point.x[0], point.u[0], t=t, p=p), dt=dt, p=p)

    fastest = TURN / dt

    def tilting() -> Controller:
        frequency = min(TILTING, fastest)
        often = min(dt, 1 / (frequency * CALLS_PER_RADIAN))
        slow = {"position_frequency": frequency / APART} if frequency < TILTING else {}
        return ThrustVectorPD(system, attitude_frequency=frequency, dt=often, p=p, **slow)

    def geometric(frequency: float) -> Controller:
        often = min(dt, 1 / (frequency * CALLS_PER_RADIAN))
        return GeometricPD(system, frequency=frequency, dt=often, p=p)

    own = [partial(geometric, f) for f in FREQUENCIES if f <= fastest or f == FREQUENCIES[0]]
    for attempt in (regulator, tilting, *own):
        try:
            yield attempt()
        except ValueError:  # does not fit this system
            continue
