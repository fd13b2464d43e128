"""What must be there to be drawn: of runs, of trajectories, of the system of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from ..codegen._internal import Status
from ..groups import LieGroup


def check_run(run: Any) -> None:
    """Refuse what is no run.

    Raises
    ------
    TypeError
    """
    if isinstance(run, type) or not (hasattr(run, "group") and hasattr(run, "x")):
        raise TypeError(
            "run must be a SimulationResult or a Trajectory (of a plan: plan.trajectory), got "
            f"{type(run).__name__}"
        )


def events_of(run: Any) -> list[tuple[float, str]]:
    """What happened in a run with its time in s: kicks, pushes, and new starts of a plan."""
    events = getattr(getattr(run, "scenery", None), "events", ())
    found = [(float(event.t), str(event.name)) for event in events]
    for log in run.controllers.values():
        why = np.asarray(log.info.get("restart", ())).astype(str)
        chosen = [k for k, text in enumerate(why) if text not in ("", "first")]
        found += [(float(log.t[k]), f"new start: {why[k]}") for k in chosen]
    return sorted(found)


class PlottedRun(Protocol):
    """Times, states, inputs and what was known of them, as in a simulation result."""

    @property
    def name(self) -> str:
        """Name of the plant."""
        ...

    @property
    def group(self) -> LieGroup:
        """The state's group."""
        ...

    @property
    def t(self) -> np.ndarray:
        """Times in s, shape (N + 1,)."""
        ...

    @property
    def x(self) -> np.ndarray:
        """States, shape (N + 1, nq)."""
        ...

    @property
    def u(self) -> np.ndarray:
        """Inputs held over each interval, shape (N, n_inputs)."""
        ...

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        ...

    @property
    def input_units(self) -> tuple[str, ...]:
        """Units of the inputs."""
        ...

    @property
    def input_roles(self) -> tuple[str, ...]:
        """Roles of the inputs."""
        ...

    @property
    def input_bounds(self) -> np.ndarray:
        """Lower and upper bounds, shape (2, n_inputs)."""
        ...

    @property
    def reference(self) -> np.ndarray | None:
        """States to follow, shape (N + 1, nq)."""
        ...

    @property
    def estimate(self) -> np.ndarray | None:
        """Estimates, shape (N + 1, nq)."""
        ...

    @property
    def estimate_std(self) -> np.ndarray | None:
        """Standard deviations of the estimates, shape (N + 1, dim)."""
        ...

    @property
    def controllers(self) -> Mapping[str, Any]:
        """Calls of each controller: ``t`` and ``info`` with "call_time" and perhaps "status"."""
        ...

    @property
    def status(self) -> Status:
        """How it ended."""
        ...

    @property
    def message(self) -> str:
        """What happened, if that is no success."""
        ...


class PlottedNodes(Protocol):
    """States and inputs over time, as in a `lgcontrol.systems.Trajectory`."""

    @property
    def group(self) -> LieGroup:
        """The state's group."""
        ...

    @property
    def t(self) -> np.ndarray:
        """Times in s."""
        ...

    @property
    def x(self) -> np.ndarray:
        """States."""
        ...

    @property
    def u(self) -> np.ndarray:
        """Inputs."""
        ...

    @property
    def inputs(self) -> tuple[Any, ...]:
        """What the inputs are, with ``name``, ``unit``, ``role``, ``lower``, ``upper``."""
        ...


class Plant(Protocol):
    """A system, as far as a figure names it."""

    @property
    def name(self) -> str:
        """Title."""
        ...

    @property
    def inputs(self) -> tuple[Any, ...]:
        """As of `PlottedNodes`."""
        ...
