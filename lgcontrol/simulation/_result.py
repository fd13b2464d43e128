"""SimulationResult: everything a run produced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..groups import LieGroup
from ..systems import Trajectory

if TYPE_CHECKING:
    import control
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Measurements:
    """Deliveries of one sensor.

    Attributes
    ----------
    t : ndarray, shape (K,)
        Times of measurement, s.
    y : ndarray, shape (K, nq)
        Coordinates on the sensor's group.
    """

    t: np.ndarray
    y: np.ndarray


@dataclass(frozen=True, eq=False)
class SimulationResult:
    """Times, states, inputs and whatever else a closed-loop run produced.

    Attributes
    ----------
    name : str
        Name of the plant.
    group : LieGroup
        The state's group.
    t : ndarray, shape (N + 1,)
        Times in s.
    x : ndarray, shape (N + 1, nq)
        States of the plant.
    u : ndarray, shape (N, n_inputs)
        All inputs as applied, held over each interval.
    input_names, input_units : tuple of str
    input_roles : tuple of str
    input_bounds : ndarray, shape (2, n_inputs)
    reference : ndarray, shape (N + 1, nq), or None
    estimate : ndarray, shape (N + 1, nq), or None
    measurements : dict of str to Measurements
    command : ndarray, shape (K, n_controls)
        What the controller asked for, before saturation, at its own times.
    control : dict of str to ndarray, shape (K,)
        The controller's ``info`` at each of its calls, with the key "t" for the times in s and
        "call_time" for the wall time of the call in s.
    status : str
        "completed", "diverged" (the state was no longer finite) or "interrupted".
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
    estimate: np.ndarray | None = None
    measurements: Mapping[str, Measurements] = field(default_factory=dict)
    command: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    control: Mapping[str, np.ndarray] = field(default_factory=dict)
    status: str = "completed"
    message: str = ""

    @property
    def success(self) -> bool:
        """Whether the run reached its end."""
        return self.status == "completed"

    @property
    def trajectory(self) -> Trajectory:
        """States and inputs as a Trajectory."""
        return Trajectory(self.group, self.t, self.x, self.u)

    @property
    def error(self) -> np.ndarray:
        """``minus(x, reference)`` at all times, shape (N + 1, dim)."""
        if self.reference is None:
            raise ValueError("the run had no reference state, so there is no error")
        return self.group.minus(self.x, self.reference)

    @property
    def estimation_error(self) -> np.ndarray:
        """``minus(x, estimate)`` at all times, shape (N + 1, dim)."""
        if self.estimate is None:
            raise ValueError("the run had no estimator")
        return self.group.minus(self.x, self.estimate)

    def block(self, name: str) -> np.ndarray:
        """Coordinates of a block of the state, shape (N + 1, nq of the block)."""
        return self.group.split(self.x)[name]  # type: ignore[attr-defined]

    def block_error(self, name: str) -> np.ndarray:
        """Error of a block of the state, shape (N + 1, dim of the block)."""
        return self.group.split_tangent(self.error)[name]  # type: ignore[attr-defined]

    def effort(self) -> np.ndarray:
        """Integral of the squared control inputs, unit²·s, shape (n_controls,)."""
        controls = [i for i, role in enumerate(self.input_roles) if role == "control"]
        return np.diff(self.t) @ self.u[:, controls] ** 2

    def saturation(self, tolerance: float = 1e-6) -> float:
        """Fraction of the controller's calls that asked for more than the bounds allow."""
        if self.command.size == 0:
            return 0.0
        controls = [i for i, role in enumerate(self.input_roles) if role == "control"]
        lower, upper = self.input_bounds[:, controls]
        slack = tolerance * (1 + np.abs(self.command))
        outside = (self.command < lower - slack) | (self.command > upper + slack)
        return float(outside.any(axis=1).mean())

    def summary(self) -> list[str]:
        """Lines of text: status, final error, effort, saturation, time per controller call."""
        lines = [] if self.success else [f"{self.status}: {self.message}"]
        if self.reference is not None:
            final = self.error[-1]
            for unit in dict.fromkeys(self.group.tangent_units):
                parts = final[[i for i, u in enumerate(self.group.tangent_units) if u == unit]]
                lines.append(f"final error [{unit or '1'}]: {np.linalg.norm(parts):.4g}")
        if self.u.size:
            units = dict.fromkeys(
                unit
                for unit, role in zip(self.input_units, self.input_roles, strict=True)
                if role == "control"
            )
            if len(units) == 1:
                lines.append(f"effort ∫u² dt: {self.effort().sum():.4g} ({next(iter(units))})²·s")
            lines.append(f"commands beyond the bounds: {100 * self.saturation():.1f} %")
        if "call_time" in self.control and len(self.control["call_time"]):
            ms = 1e3 * self.control["call_time"]
            lines.append(
                f"controller call: median {np.median(ms):.2f} ms, "
                f"99 % {np.percentile(ms, 99):.2f} ms, longest {ms.max():.2f} ms"
            )
        if "status" in self.control:
            names, counts = np.unique(self.control["status"].astype(str), return_counts=True)
            pairs = (f"{name} {count}" for name, count in zip(names, counts, strict=True))
            lines.append(f"controller status: {', '.join(pairs)}")
        return lines

    def plot(self) -> Figure:
        """States with reference and estimate, inputs with bounds, controller times, over time."""
        from ..plotting import plot_run

        return plot_run(self)

    def animate(self, path: str | Path | None = None, *, fps: int = 25) -> Any:
        """Body frames and trail in space; written to a GIF or MP4 file if a path is given."""
        from ..plotting import animate_run

        return animate_run(self, path, fps=fps)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file: arrays and a JSON description, no pickled objects."""
        from ._storage import save_result

        return save_result(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, group: LieGroup | None = None) -> SimulationResult:
        """Read a file written by `save`.

        Parameters
        ----------
        path : str or Path
        group : LieGroup, optional
            Needed only when the state lives on a group of your own.

        Raises
        ------
        ValueError
            If the file is not a result, damaged, or of a newer version.
        """
        from ._storage import load_result

        return load_result(Path(path), group)

    def to_control(self) -> control.TimeResponseData:
        """As `control.TimeResponseData`: outputs are the error coordinates, or the states."""
        import control

        if self.reference is not None:
            outputs, labels = self.error, self.group.tangent_names
        else:
            outputs, labels = self.x, self.group.coordinate_names
        held = np.vstack([self.u, self.u[-1:]]) if len(self.u) else np.zeros((len(self.t), 0))
        return control.TimeResponseData(
            self.t,
            outputs.T,
            self.x.T,
            held.T,
            output_labels=list(labels),
            state_labels=list(self.group.coordinate_names),
            input_labels=list(self.input_names),
            title=self.name,
            issiso=False,
        )
