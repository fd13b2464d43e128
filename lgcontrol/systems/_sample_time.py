"""The length of a step, agreed between a system and whoever steps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..codegen import check_shape

if TYPE_CHECKING:
    from ._system import System

# Sample times that differ by this share are the same: a time may come as a quotient of others.
AGREEMENT = 1e-9


def sample_time(system: System, dt: float | None = None, name: str = "dt") -> float:
    """Length of a step in s: that of a discrete system, else the given one.

    Parameters
    ----------
    system : System
    dt : float, optional
        In s; may be left out for discrete systems, and has to be theirs where it is given.
    name : str
        What messages call dt.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If dt is not positive, is missing, or is not the sample time of a discrete system.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> sampled = System("sampled", Rn(1), lambda t, x, u, p: -0.5 * x, dt=0.1)
    >>> sample_time(sampled)
    0.1
    >>> sample_time(sampled, 0.2)
    Traceback (most recent call last):
    ...
    ValueError: sampled has the sample time 0.1 s, not dt = 0.2 s
    """
    if dt is None:
        if system.is_discrete:
            return system.dt
        raise ValueError(f"{system.name} is continuous: give {name} > 0 in s, got None")
    value = float(check_shape(name, dt, ()))
    if value <= 0:
        raise ValueError(f"{system.name}: {name} must be positive, got {value:g} s")
    if not system.is_discrete:
        return value
    if abs(value - system.dt) > AGREEMENT * system.dt:
        raise ValueError(
            f"{system.name} has the sample time {system.dt:g} s, not {name} = {value:g} s"
        )
    return system.dt
