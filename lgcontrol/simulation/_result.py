"""SimulationResult: everything a run produced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import unknown_name
from ..groups import LieGroup, Product
from ..systems import Trajectory, block_slices
from ..systems._signals import control_name
from ._logs import ControllerLog, Measurements, TaskError

if TYPE_CHECKING:
    import control
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class SimulationResult:
    """Times, states, inputs and whatever else a closed-loop run produced.

    Attributes
    ----------
    name : str
        Name of the plant.
    group : LieGroup
        The state's group.
    t : ndarray, shape (N + 1,)
        All times at which something happened, s.
    x : ndarray, shape (N + 1, nq)
        States of the plant; after the kick, where there was one.
    u : ndarray, shape (N, n_inputs)
        All inputs as applied, held over each interval.
    input_names, input_units : tuple of str
    input_roles : tuple of str
    input_bounds : ndarray, shape (2, n_inputs)
    reference : ndarray, shape (N + 1, nq), or None
        If the reference was a state, a function of time that gives states, or something that the
        controller says the states of (`Controller.reference_states`).
    state_limits : ndarray, shape (2, nq), or None
        Limits of the state's coordinates, as the plant knows them; infinite where there are none.
    tasks : dict of str to TaskError
        Errors of what the controller tracks besides the state: the pose of a hand.
    estimate : ndarray, shape (N + 1, nq), or None
        The estimator's ``x``, after the measurements delivered at each time.
    estimate_std : ndarray, shape (N + 1, dim), or None
        Square roots of the diagonal of the estimator's ``P``, if it has one.
    measurements : dict of str to Measurements
    controllers : dict of str to ControllerLog
        From the outer to the inner.
    settings : dict of str to value
        What else made the run: seed, method, max_step, shortest_step, p, feedback.
    status : str
        "completed", "diverged" (state or estimate were no longer finite, or the plant moves too
        fast for the steps), "interrupted" (Ctrl-C) or "failed" (in `SimulationError.result`).
    message : str
        What happened, if not completed.
    """

    name: str
    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    input_names: tuple[str, ...]
    input_units: tuple[str, ...]
    input_roles: tuple[str, ...]
    input_bounds: np.ndarray
    reference: np.ndarray | None = None
    state_limits: np.ndarray | None = None
    tasks: Mapping[str, TaskError] = field(default_factory=dict)
    estimate: np.ndarray | None = None
    estimate_std: np.ndarray | None = None
    measurements: Mapping[str, Measurements] = field(default_factory=dict)
    controllers: Mapping[str, ControllerLog] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    status: str = "completed"
    message: str = ""

    def __repr__(self) -> str:
        """Name, status and size; ``print`` shows the summary."""
        return (
            f"SimulationResult({self.name!r}, {self.status}, {self.t[-1]:g} s, "
            f"{len(self.u)} intervals)"
        )

    def __str__(self) -> str:
        """The same with the lines of `summary`."""
        return "\n  ".join([repr(self), *self.summary()])

    @property
    def success(self) -> bool:
        """Whether the run reached its end."""
        return self.status == "completed"

    @property
    def trajectory(self) -> Trajectory:
        """States and inputs as a Trajectory: callable at any time."""
        inputs = {"u": self.u} if len(self.u) else {}
        return Trajectory(self.group, self.t, self.x, **inputs)

    @property
    def error(self) -> np.ndarray:
        """``minus(x, reference)`` at all times, shape (N + 1, dim)."""
        if self.reference is None:
            raise ValueError("the run had no reference that is a state, so there is no error")
        return self.group.minus(self.x, self.reference)

    @property
    def estimation_error(self) -> np.ndarray:
        """``minus(x, estimate)`` at all times, shape (N + 1, dim)."""
        if self.estimate is None:
            raise ValueError("the run had no estimator")
        if self.estimate.shape != self.x.shape:
            raise ValueError(
                f"the estimator's x has {self.estimate.shape[1]} coordinates, the plant's state "
                f"{self.group} has {self.group.nq}: there is no error between them"
            )
        return self.group.minus(self.x, self.estimate)

    def block(self, name: str) -> np.ndarray:
        """Coordinates of a block of the state, or of a joint, shape (N + 1, nq of the block)."""
        return self.x[:, self._slices(name)[0]]

    def block_error(self, name: str) -> np.ndarray:
        """Error of a block of the state, shape (N + 1, dim of the block)."""
        return self.error[:, self._slices(name)[1]]

    def input(self, name: str) -> np.ndarray:
        """One input as applied, held over each interval, shape (N,)."""
        if name not in self.input_names:
            raise KeyError(unknown_name("input", name, self.input_names))
        return self.u[:, self.input_names.index(name)]

    @property
    def command(self) -> np.ndarray:
        """What the (innermost) controller asked for, before saturation, shape (K, n_controls)."""
        logs = list(self.controllers.values())
        none = np.zeros((0, len(self._controls)))
        return none if not logs or logs[-1].command is None else logs[-1].command

    @property
    def control(self) -> dict[str, np.ndarray]:
        """``info`` of the (innermost) controller, with the times of its calls as "t"."""
        logs = list(self.controllers.values())
        return {"t": logs[-1].t, **logs[-1].info} if logs else {}

    def effort(self) -> np.ndarray:
        """Integral of the squared control inputs, unit²·s, shape (n_controls,)."""
        return np.diff(self.t) @ self.u[:, self._controls] ** 2

    def saturation(self, tolerance: float = 1e-6) -> float:
        """Fraction of the controller's calls that met a bound or asked for more.

        Controllers that keep the bounds themselves end at them.

        Parameters
        ----------
        tolerance : float
            What a command may be away from a bound, relative to its size.
        """
        command = self.command
        if command.size == 0:
            return 0.0
        lower, upper = self.input_bounds[:, self._controls]
        slack = tolerance * (1 + np.abs(command))
        at_bound = (command <= lower + slack) | (command >= upper - slack)
        return float(at_bound.any(axis=1).mean())

    def beyond_limits(self) -> dict[str, float]:
        """By how much coordinates exceed their limits at worst, by name; those that do."""
        if self.state_limits is None:
            return {}
        lower, upper = self.state_limits
        excess = np.maximum(self.x - upper, lower - self.x).max(axis=0)
        names = self.group.coordinate_names
        return {names[i]: float(excess[i]) for i in np.flatnonzero(excess > 0)}

    def summary(self) -> list[str]:
        """Lines of text: status, final error, effort, saturation, time per controller call."""
        from ._summary import summary

        return summary(self)

    def plot(self, *, figure: Any = None) -> Figure:
        """Everything over time, in panels; see `lgcontrol.plotting.plot_run`."""
        from ..plotting import plot_run

        return plot_run(self, figure=figure)

    def plot_path(self, **options: Any) -> Figure:
        """Paths of the bodies in space; see `lgcontrol.plotting.plot_path` for the options."""
        from ..plotting import plot_path

        return plot_path(self, **options)

    def animate(self, path: str | Path | None = None, *, fps: int = 25, **options: Any) -> Any:
        """Bodies moving, in a notebook or written to a ``.gif`` or ``.mp4`` file.

        See `lgcontrol.plotting.animate_run` for the options.
        """
        from ..plotting import animate_run

        return animate_run(self, path, fps=fps, **options)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file: arrays and a JSON description, no pickled objects."""
        from ._storage import save_result

        return save_result(self, Path(path))

    @classmethod
    def load(
        cls, path: str | Path, group: LieGroup | None = None, *, largest: int = 2**30
    ) -> SimulationResult:
        """Read a file written by `save`.

        Parameters
        ----------
        path : str or Path
        group : LieGroup, optional
            Needed only when the state lives on a group of your own.
        largest : int
            Bytes that the file may take unpacked; larger ones are refused.

        Raises
        ------
        ValueError
            If the file is not a result, damaged, too large, or of a newer version.
        """
        from ._storage import load_result

        return load_result(Path(path), group, largest)

    def to_control(self) -> control.TimeResponseData:
        """As `control.TimeResponseData`: outputs are the error coordinates, or the states."""
        import control

        if self.reference is not None:
            outputs, labels = self.error, self.group.tangent_names
        else:
            outputs, labels = self.x, self.group.coordinate_names
        held = np.vstack([self.u, self.u[-1:]]) if len(self.u) else np.zeros((1, self.u.shape[1]))
        return control.TimeResponseData(
            self.t,
            outputs.T,
            self.x.T,
            held.T,
            output_labels=[control_name(label) for label in labels],
            state_labels=[control_name(label) for label in self.group.coordinate_names],
            input_labels=[control_name(label) for label in self.input_names],
            title=self.name,
            sysname=self.name,
            issiso=False,
        )

    @property
    def _controls(self) -> list[int]:
        return [i for i, role in enumerate(self.input_roles) if role == "control"]

    def _slices(self, block: str) -> tuple[slice, slice]:
        """Where a block is in coordinates and in tangent vectors."""
        if not isinstance(self.group, Product):
            raise TypeError(f"the state {self.group} has no blocks: use x and error")
        coordinates, tangents = block_slices(self.group)
        if block not in coordinates:
            raise KeyError(unknown_name("block", block, coordinates))
        return coordinates[block], tangents[block]
