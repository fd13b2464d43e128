"""What a loop asks of controllers and estimators, and the words in which calls and runs end."""

from __future__ import annotations

from enum import StrEnum


class CallStatus(StrEnum):
    """How one call of a controller ended; every answer is finite and within the bounds.

    ``OK`` and ``SATURATED`` (bounds changed the answer) are answers the controller vouches for.
    ``HELD``: the measurement was no state, an earlier input goes on. ``INFEASIBLE``: no plan keeps
    all hard bounds, the answer violates the least that was found. ``UNSOLVED``: the solver ended
    without a plan it can vouch for; the controller's info holds the solver's own status.
    """

    OK = "ok"
    SATURATED = "saturated"
    HELD = "held"
    INFEASIBLE = "infeasible"
    UNSOLVED = "unsolved"


class RunStatus(StrEnum):
    """How a simulation ended.

    ``UNRESOLVED``: steps could not be made to keep the stated tolerance. ``DIVERGED``: the state
    left all bounds although it was resolved.
    """

    COMPLETED = "completed"
    STOPPED = "stopped"
    DIVERGED = "diverged"
    UNRESOLVED = "unresolved"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
