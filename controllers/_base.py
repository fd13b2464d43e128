"""Controller: what simulations call, and what a controller says of its last call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcontrol.codegen import check_shape
from lgcontrol.groups import LieGroup
from lgcontrol.optimal import points_of, sample_reference
from lgcontrol.systems import System
from lgcontrol.systems._system import not_a_system


@dataclass(frozen=True)
class ControlInfo:
    """What a controller says of its last call.

    Parameters
    ----------
    status : str
        "ok"; "saturated" when bounds changed the answer; "held" when the state was not finite or
        no element of its group and the last input was returned, or that of the reference before
        there was one; solvers have more.
    solve_time : float
        In s; zero for closed formulas.
    message : str
    """

    status: str = "ok"
    solve_time: float = 0.0
    message: str = ""


class Controller(ABC):
    """A feedback law ``controller(t, x, reference) → controls`` that runs in samples.

    A law of your own is a subclass with `_control`; or any callable with an attribute ``dt``.

    Parameters
    ----------
    system : System
        What the controller knows of the plant.
    dt : float
        Period in s.
    offset : float
        Time of the first call in s.
    delay : float
        Time from a call to its effect in s.
    reference : optional
        Followed when a call brings none: a constant state, a TrimPoint or a Trajectory.

    Attributes
    ----------
    info : ControlInfo
        Of the last call.
    """

    def __init__(
        self,
        system: System,
        *,
        dt: float,
        offset: float = 0.0,
        delay: float = 0.0,
        reference: Any = None,
    ) -> None:
        if not isinstance(system, System):
            raise TypeError(not_a_system("system", system))
        for name, value in (("dt", dt), ("offset", offset), ("delay", delay)):
            if not check_shape(name, value, ()) >= 0 or (name == "dt" and value <= 0):
                raise ValueError(f"{name} must be positive, got {value:g} s")
        self.system = system
        self.dt, self.offset, self.delay = float(dt), float(offset), float(delay)
        self.reference = reference
        self._controls = system.input_index("control")
        lower, upper = system.input_bounds
        self._lower, self._upper = lower[self._controls], upper[self._controls]
        self.info: Any = ControlInfo()
        self._last: np.ndarray | None = None

    def __call__(self, t: float, x: Any, reference: Any = None) -> np.ndarray:
        """Controls for the measured state.

        Parameters
        ----------
        t : float
            Time in s.
        x : array_like, shape (nq,)
            State; when it is not finite or no element of the group the last controls are held,
            those of the reference if there are none.
        reference : optional
            Constant state, TrimPoint or Trajectory; that of the controller if left out.

        Returns
        -------
        ndarray, shape (n_controls,)

        Raises
        ------
        ValueError
            If the state or the reference has the wrong size, or there is no reference.
        """
        state = check_shape("x", x, (self.system.state.nq,), finite=False)
        goal = self.reference if reference is None else reference
        if not np.isfinite(state).all():
            return self._hold(float(t), goal, "the state is not finite")
        state = self.system.state.normalize(state)
        if not np.isfinite(state).all():
            return self._hold(float(t), goal, f"the state is no element of {self.system.state}")
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is held below
            u = self._control(float(t), state, goal)
        if not np.isfinite(u).all():
            return self._hold(float(t), goal, "the feedback is not finite")
        self._last = u
        return u.copy()

    def reset(self) -> None:
        """Forget earlier calls."""
        self._last = None
        self.info = ControlInfo()

    def prepare(self, t: float = 0.0, x: Any = None, reference: Any = None) -> None:
        """Get ready for a loop, so that its first call takes no longer than the others.

        `simulate` calls this after `reset`. Most controllers have nothing to do.

        Parameters
        ----------
        t : float
            Time of the first call in s.
        x : array_like, shape (nq,), optional
            State that is expected then.
        reference : optional
            As in a call.

        Raises
        ------
        ValueError
            If the state has the wrong size.
        """
        if x is not None:
            check_shape("x", x, (self.system.state.nq,), finite=False)

    @abstractmethod
    def _control(self, t: float, x: np.ndarray, reference: Any) -> np.ndarray:
        """Controls for a finite state; sets `info`."""

    def reference_states(self, times: np.ndarray, reference: Any = None) -> np.ndarray | None:
        """States of the system that a reference stands for, for the record of a run.

        Parameters
        ----------
        times : ndarray, shape (k,)
            In s.
        reference : optional
            As in a call.

        Returns
        -------
        ndarray, shape (k, nq), or None
            None where the reference is no state: the pose of a frame, or none at all.
        """
        goal = self._state_reference(self.reference if reference is None else reference)
        if goal is None:
            return None
        point = points_of(goal, times)
        states = np.asarray(getattr(point, "x", point), dtype=np.float64)
        nq = self.system.state.nq
        return np.broadcast_to(states, (len(times), nq)) if states.shape[-1:] == (nq,) else None

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: Any = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Errors of what is tracked besides the state, for the record of a run.

        Parameters
        ----------
        times : ndarray, shape (k,)
            In s.
        x : ndarray, shape (k, nq)
            States then.
        reference : optional
            As in a call.

        Returns
        -------
        dict of str to (ndarray, LieGroup)
            By name, tangent vectors of shape (k, dim) on a group.
        """
        return {}

    def _state_reference(self, reference: Any) -> Any:
        """A reference as one of the system's state, None if it is none."""
        return reference

    def _rest_reference(self, reference: Any) -> Any:
        """Where the system is held as long as nothing else is known, None for nowhere."""
        return self._state_reference(reference)

    def _hold(self, t: float, reference: Any, message: str) -> np.ndarray:
        """Controls to go on with when there is no answer."""
        self.info = ControlInfo("held", message=message)
        return np.clip(self._fallback(t, reference), self._lower, self._upper)

    def _fallback(self, t: float, reference: Any) -> np.ndarray:
        """Last controls; before there are any those of the reference, or nominal ones."""
        return self._resting_input(t, reference) if self._last is None else self._last

    def _resting_input(self, t: float, reference: Any) -> np.ndarray:
        """Controls that hold the system at the reference; nominal ones where that says nothing."""
        goal = self._rest_reference(reference)
        p = getattr(self, "_p", None)
        p = None if p is None else np.asarray(p)[: self.system.n_parameters]
        try:
            held = sample_reference(self.system, goal, np.array([t]), p).u[0]
        except ValueError:
            held = self.system.nominal_input
        return held[self._controls]

    def _saturate(self, u: np.ndarray) -> np.ndarray:
        """Controls within their bounds; notes in `info` when that changed them."""
        limited = np.clip(u, self._lower, self._upper)
        self.info = ControlInfo("ok" if np.array_equal(limited, u) else "saturated")
        return limited
