"""Trajectory: times, states and inputs, with interpolation on the group."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..codegen import named_options
from ..codegen._internal import (
    UnknownNameError,
    as_numbers,
    check_increasing,
    check_shape,
    html_page,
    html_table,
    level_outside,
    unknown_name,
)
from ..groups import LieGroup, Product, check_element
from ..groups._internal import describe_group, group_difference, group_from_description, not_a_group
from ..io._internal import DAMAGE, damage_reason, read_archive, write_archive
from ._signals import Input, as_signals, control_name

if TYPE_CHECKING:
    import control
    from matplotlib.figure import Figure


TRAJECTORY_SCHEMA, TRAJECTORY_VERSION = "lgcontrol.trajectory", 1
LIMIT_ROUNDING = 1e-9  # relative excess of a limit that is rounding
DRIFT = 1e-2  # of the norms of quaternions and circles in responses of python-control's solvers
_TEXTS = ("name", "unit", "role")
_NUMBERS = ("lower", "upper", "nominal")
# Inputs between nodes: those of the node before, or linear to the node after.
HOLDS = ("zero", "first")
Made = TypeVar("Made")


class TrajectoryPoint(NamedTuple):
    """State and input at one time (or, with arrays of times, at many).

    Attributes
    ----------
    x : ndarray, shape (..., nq)
    u : ndarray, shape (..., n_inputs)
    """

    x: np.ndarray
    u: np.ndarray


@named_options
@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """States and inputs over time; callable at any time.

    Between nodes the state follows the group's screw interpolation. The input is held, or linear
    with ``hold="first"``. Before the start and after the end the first and last values are held.

    Parameters
    ----------
    group : LieGroup
        The state's group.
    t : array_like, shape (N + 1,)
        Increasing times in s.
    x : array_like, shape (..., N + 1, nq)
        States. Missing digits are made up for (see `lgcontrol.groups.check_element`), anything
        else off the group is refused.
    u : array_like, shape (..., N, n_inputs) or (..., N + 1, n_inputs), optional
        Input held from each time on; the one at the last time may be left out.
    inputs : iterable of Input or str, optional
        What the columns of u are, for plots: ``system.inputs``, or names.
    hold : {"zero", "first"}
        Inputs between the nodes: "zero" is a zero-order hold, "first" interpolates linearly. Then u
        has a row for each node.

    Notes
    -----
    A rollout that diverges keeps the states up to then: `diverged` and `diverged_at` tell which
    of a batch and when, and its states from there on are NaN.

    Raises
    ------
    ValueError
        If shapes do not fit, times do not increase, or a state is no element of the group.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> turn = Trajectory(SO2, [0.0, 1.0], SO2.exp([[0.0], [1.0]]))
    >>> SO2.log(turn(0.5).x)
    array([0.5])
    """

    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    inputs: tuple[Input, ...]
    hold: str

    def __init__(
        self,
        group: LieGroup,
        t: Any,
        x: Any,
        u: Any = None,
        *,
        inputs: Iterable[Input | str] | None = None,
        hold: str = "zero",
    ) -> None:
        if not isinstance(group, LieGroup):
            raise TypeError(not_a_group("group", group))
        check_hold(hold)
        t = check_increasing("t", t)
        x = check_shape("x", x, (None, group.nq), batch=True)
        if x.shape[-2] != len(t):
            raise ValueError(f"x has {x.shape[-2]} states for {len(t)} times")
        u = np.zeros((*x.shape[:-2], len(t), 0)) if u is None else u
        u = check_shape("u", u, (None, None), batch=True)
        if u.shape[-2] not in (max(len(t) - 1, 1), len(t)):
            raise ValueError(
                f"u has {u.shape[-2]} rows, expected {len(t) - 1} (one per step) or {len(t)}"
            )
        if hold == "first" and u.shape[-2] != len(t):
            raise ValueError(
                f"hold='first' needs the input at each of the {len(t)} times, u has {u.shape[-2]} "
                "rows"
            )
        x = check_element("x", x, group, batch=True)
        signals = () if inputs is None else as_signals(Input, inputs)
        if inputs is not None and len(signals) != u.shape[-1]:
            raise ValueError(f"inputs names {len(signals)} inputs, u has {u.shape[-1]}")
        vars(self).update(group=group, t=t, x=x, u=u, inputs=signals, hold=hold)

    @classmethod
    def unchecked(
        cls,
        group: LieGroup,
        t: np.ndarray,
        x: np.ndarray,
        u: np.ndarray,
        inputs: tuple[Input, ...] = (),
        hold: str = "zero",
    ) -> Trajectory:
        """Trajectory of arrays that are known to fit; the states may end in NaN."""
        made = object.__new__(cls)
        vars(made).update(group=group, t=t, x=x, u=u, inputs=inputs, hold=hold)
        return made

    @classmethod
    def constant(cls, group: LieGroup, x: Any, u: Any = None, *, t: float = 0.0) -> Trajectory:
        """Reference that stays where it is: one node, held for ever.

        Parameters
        ----------
        group : LieGroup
        x : array_like, shape (nq,)
        u : array_like, shape (n_inputs,), optional
        t : float
            Time of the node in s.

        Returns
        -------
        Trajectory
        """
        return cls(group, np.array([t]), np.asarray(x)[None], None if u is None else [u])

    @classmethod
    def from_functions(
        cls,
        group: LieGroup,
        t: Any,
        x: Callable[[float], Any],
        u: Callable[[float], Any] | None = None,
    ) -> Trajectory:
        """Sample functions of time.

        Parameters
        ----------
        group : LieGroup
        t : array_like, shape (N + 1,)
            Times in s.
        x : callable
            ``x(t) → coordinates`` of shape (nq,), called at one time after another.
        u : callable, optional
            ``u(t) → input`` of shape (n_inputs,), called in the same way.

        Returns
        -------
        Trajectory

        Examples
        --------
        >>> from lgcontrol.groups import SO2
        >>> turn = Trajectory.from_functions(SO2, [0, 1, 2], lambda t: SO2.exp([0.5 * t]))
        >>> len(turn)
        3
        """
        times = check_shape("t", t, (None,))
        states = np.array([x(float(time)) for time in times])
        inputs = None if u is None else np.array([u(float(time)) for time in times])
        return cls(group, times, states, inputs)

    @classmethod
    def from_control(cls, plan: Any, system: Any, t: Any = None) -> Trajectory:
        """States and inputs of a system from a plan or a response of python-control.

        Parameters
        ----------
        plan : control.flatsys.SystemTrajectory or control.TimeResponseData
            On the stored coordinates of the system. A plan is what `point_to_point` and
            `solve_flat_ocp` return for `to_flat_system`; a response is what simulations of
            `to_nlsys` return.
        system : System, or what makes one by its ``system()``
            System of the states and inputs: the argument of `to_flat_system`, such as an elastic
            arm.
        t : array_like, shape (N + 1,), optional
            Increasing times in s. A plan needs them, a response has its own.

        Returns
        -------
        Trajectory
            With all inputs of the system; those that python-control does not know are nominal.
            Inputs of a plan are taken in the middle of each interval. Held there, they follow the
            plan with an error of second order in the spacing. Inputs of a response are held from
            its times on. States that a solver let drift off the group are brought back onto it.

        Warns
        -----
        RuntimeWarning
            If a plan exceeds limits of inputs: says which, by how much and when.

        Raises
        ------
        TypeError
            If the first argument is neither, or the second neither is nor makes a System.
        ValueError
            If the times are missing, numbers of states or inputs differ, or a state is no element
            of the group.

        Examples
        --------
        >>> import control.flatsys
        >>> from lgcontrol.mechanics import to_flat_system
        >>> from lgcontrol.models import rover
        >>> car = rover(kinematic=True)
        >>> plan = control.flatsys.point_to_point(
        ...     to_flat_system(car), 4.0, [0, 0, 1, 0], [1, 0], [3, 2, 1, 0], [1, 0],
        ...     basis=control.flatsys.PolyFamily(8))
        >>> path = Trajectory.from_control(plan, car, np.linspace(0, 4, 81))
        >>> run = car.rollout(path.x[0], path.u, 0.05)
        >>> bool(np.abs(car.state.minus(run.x, path.x)).max() < 1e-3)
        True
        """
        if callable(make := getattr(system, "system", None)):
            system = make()
        if not isinstance(getattr(system, "state", None), LieGroup):
            raise TypeError(f"system must be a System, not {type(system).__name__}")
        is_plan = callable(getattr(plan, "eval", None))
        if is_plan:
            if t is None:
                raise ValueError(
                    "a plan of control.flatsys does not say when it ends: give t, the times of the "
                    "nodes, such as np.linspace(0, seconds, 101)"
                )
            times = check_increasing("t", t, 2)
            states, inputs = plan.eval(times)[0], plan.eval((times[:-1] + times[1:]) / 2)[1]
        elif all(hasattr(plan, name) for name in ("time", "states", "inputs")):
            times = check_increasing("the response's time", plan.time)
            states, inputs = plan.states, np.zeros((0, len(times)))
            if plan.inputs is not None:
                inputs = np.reshape(plan.inputs, (-1, len(times)))
        else:
            raise TypeError(
                "plan must be a plan of control.flatsys or a control.TimeResponseData, "
                f"not {type(plan).__name__}"
            )
        controls = len(system.input_index("control"))
        knows_all = len(inputs) == system.n_inputs
        for what, given, wanted in (
            ("states", len(states), system.state.nq),
            ("inputs", len(inputs), system.n_inputs if knows_all else controls),
        ):
            if given != wanted:
                raise ValueError(
                    f"the plan has {given} {what}, {system.name} has {wanted}: plan with "
                    "to_flat_system or to_nlsys of the same system"
                )
        u = inputs.T if knows_all else system.full_input(inputs.T)
        x = check_shape("the plan's states", np.transpose(states), (len(times), system.state.nq))
        x = check_element("the plan's states", x, system.state, batch=True, tolerance=DRIFT)
        made = cls(system.state, times, x, u, inputs=system.inputs)
        if is_plan:
            _warn_of_limits(made)
        return made if is_plan or t is None else made.resample(t)

    @classmethod
    def concatenate(cls, pieces: Sequence[Trajectory]) -> Trajectory:
        """Put trajectories one after another; each is moved to start where the last one ends.

        At a node that two parts share, the state and the input of the later one count.

        Parameters
        ----------
        pieces : sequence of Trajectory
            On the same group, all with inputs or none.

        Returns
        -------
        Trajectory
        """
        if not pieces:
            raise ValueError("concatenate needs at least one trajectory")
        t, x, u = [], [], []
        start = pieces[0].t[0]
        for i, piece in enumerate(pieces):
            if piece.group != pieces[0].group:
                raise ValueError(
                    f"trajectory {i} is not on the group of the first: "
                    f"{group_difference(piece.group, pieces[0].group)}"
                )
            if piece.hold != pieces[0].hold:
                raise ValueError(
                    f"trajectory {i} has hold={piece.hold!r}, the first {pieces[0].hold!r}: "
                    "resample does not change that; give all of them the same"
                )
            kept = len(piece) - (i < len(pieces) - 1)
            t.append(piece.t[:kept] - piece.t[0] + start)
            x.append(piece.x[..., :kept, :])
            u.append(piece.input_at_nodes[..., :kept, :])
            start += piece.duration
        joined = (np.concatenate(t), np.concatenate(x, -2), np.concatenate(u, -2))
        if np.isnan(joined[1][..., :-1, :]).any():
            raise ValueError("cannot join anything to a rollout that diverged: slice it before")
        return cls(pieces[0].group, *joined, inputs=pieces[0].inputs or None, hold=pieces[0].hold)

    def __call__(self, t: Any) -> TrajectoryPoint:
        """State and input at times t.

        Parameters
        ----------
        t : float or array_like, shape (k,)
            Times in s.

        Returns
        -------
        TrajectoryPoint
            ``x`` of shape (..., nq), ``u`` of shape (..., n_inputs); with the axis of t before
            the last one if t is an array.
        """
        t = as_numbers("t", t)
        held = np.searchsorted(self.t, t, side="right") - 1
        last = len(self.t) - 1
        k = np.clip(held, 0, max(last - 1, 0))
        # A node counts for itself: what follows may have diverged.
        after = np.where(t > self.t[k], np.minimum(k + 1, last), k)
        span = np.where(after > k, self.t[after] - self.t[k], 1.0)
        s = np.clip((t - self.t[k]) / span, 0.0, 1.0)
        x = self.group.interpolate(self.x[..., k, :], self.x[..., after, :], s)
        u = self.u[..., np.clip(held, 0, self.u.shape[-2] - 1), :]
        if self.hold == "first":
            u = u + s[..., None] * (self.u[..., after, :] - u)
        return TrajectoryPoint(x, u)

    def __len__(self) -> int:
        """Count the times."""
        return len(self.t)

    def __getitem__(self, nodes: slice) -> Trajectory:
        """Nodes of a slice, which keeps at least one: ``run[10:20]``, ``run[::5]``."""
        if not isinstance(nodes, slice):
            raise TypeError("index a trajectory with a slice of nodes, call it with a time")
        t = self.t[nodes]
        if len(t) < 1 or (np.diff(t) <= 0).any():
            raise ValueError(f"{nodes} keeps no node of {len(self)}, or turns time around")
        return self.unchecked(
            self.group, t, self.x[..., nodes, :], self.input_at_nodes[..., nodes, :], self.inputs,
            self.hold,
        )  # fmt: skip

    def __repr__(self) -> str:
        """Group or its blocks, number of nodes, span of time and how many diverged."""
        group = self.group
        what = ", ".join(group.blocks) if isinstance(group, Product) else str(group)
        batch = f", batch {self.x.shape[:-2]}" if self.x.ndim > 2 else ""
        gone = int(np.count_nonzero(self.diverged))
        ended = "" if not gone else f", {gone} diverged" if batch else ", diverged"
        return (
            f"Trajectory({what}: {len(self)} nodes from {self.t[0]:g} to {self.t[-1]:g} s, "
            f"{self.u.shape[-1]} inputs{batch}{ended})"
        )

    def _repr_html_(self) -> str:
        """First and last state of the only or first motion, for notebooks."""
        x = self.x.reshape(-1, *self.x.shape[-2:])[0]
        group = self.group
        entries = zip(group.coordinate_names, x[0], x[-1], group.coordinate_units, strict=True)
        ends = f"at {self.t[0]:g} s", f"at {self.t[-1]:g} s"
        return html_page(repr(self), html_table("", ("coordinate", *ends, "unit"), entries))

    @property
    def diverged(self) -> np.ndarray:
        """Whether the motion came to an end before the last time, booleans of shape (...)."""
        return np.asarray(~np.isfinite(self.x[..., -1, :]).all(axis=-1))

    @property
    def diverged_at(self) -> np.ndarray:
        """First time without a finite state in s, infinity where there is none, shape (...)."""
        gone = ~np.isfinite(self.x).all(axis=-1)
        return np.where(gone.any(axis=-1), self.t[np.argmax(gone, axis=-1)], np.inf)

    @property
    def duration(self) -> float:
        """Time from start to end, s."""
        return float(self.t[-1] - self.t[0])

    @property
    def input_at_nodes(self) -> np.ndarray:
        """Inputs with one row a node, shape (..., N + 1, n_inputs): the last one is held."""
        if self.u.shape[-2] == len(self.t):
            return self.u
        return np.concatenate([self.u, self.u[..., -1:, :]], axis=-2)

    def shift(self, seconds: float) -> Trajectory:
        """Return the same motion later by a number of seconds."""
        shift = check_shape("seconds", seconds, ())
        return self.unchecked(self.group, self.t + shift, self.x, self.u, self.inputs, self.hold)

    def resample(self, t: Any) -> Trajectory:
        """Interpolate at other times.

        Parameters
        ----------
        t : float or array_like, shape (k,)
            A spacing in s (the last step is shorter where it does not divide the duration), or
            increasing times.

        Returns
        -------
        Trajectory
        """
        times = np.asarray(t, dtype=np.float64)
        if times.ndim:
            times = check_increasing("t", times)
        else:
            if not (np.isfinite(times) and times > 0):
                raise ValueError(f"resample needs a spacing > 0 in s, got {t}")
            whole = int(np.floor(self.duration / times * (1 + 1e-12)))
            times = self.t[0] + times * np.arange(whole + 1)
            if self.t[-1] - times[-1] > 1e-9 * self.duration:
                times = np.append(times, self.t[-1])
        x, u = self(times)
        return self.unchecked(self.group, times, x, u, self.inputs, self.hold)

    # Files and figures

    def to_control(self) -> control.TimeResponseData:
        """As `control.TimeResponseData`: outputs are the coordinates of the state.

        Raises
        ------
        ValueError
            If this is a batch of trajectories.
        """
        if self.x.ndim > 2:
            raise ValueError(
                f"{self!r} is a batch, and a response is one motion: take one of them, "
                "Trajectory(batch.group, batch.t, batch.x[0], batch.u[0])"
            )
        u, names = self.input_at_nodes, [entry.name for entry in self.inputs]
        labels = self.group.coordinate_names
        return time_response(self.group, self.t, self.x, u, self.x, labels, inputs=names)

    def plot(self, *, figure: Any = None) -> Figure:
        """States and inputs over time; see `lgcontrol.plotting.plot_trajectory`."""
        from ..plotting import plot_trajectory

        return plot_trajectory(self, figure=figure)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file: arrays and a JSON description, no pickled objects.

        Returns
        -------
        Path
            Where it is: with ``.npz`` where the name has no ending.

        Raises
        ------
        ValueError
            If the name has another ending.
        """
        group, inputs = self.group, self.inputs
        numbers = [[getattr(entry, key) for key in _NUMBERS] for entry in inputs]
        numbers = np.array(numbers, dtype=np.float64).reshape(len(inputs), len(_NUMBERS))
        arrays = {"t": self.t, "x": self.x, "u": self.u, "inputs": numbers}
        description = {
            "group": describe_group(group),
            "units": {"t": "s", "x": group.coordinate_units},
            "coordinate_names": group.coordinate_names,
            "inputs": [[getattr(entry, key) for key in _TEXTS] for entry in inputs],
            "hold": self.hold,
        }
        kind = TRAJECTORY_SCHEMA, TRAJECTORY_VERSION
        return write_archive(Path(path), *kind, arrays, description)

    @classmethod
    def load(
        cls, path: str | Path, group: LieGroup | None = None, *, largest: int = 2**30
    ) -> Trajectory:
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
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file is no trajectory, damaged, too large, or of a newer version.
        """
        kind = TRAJECTORY_SCHEMA, TRAJECTORY_VERSION, "saved trajectory"
        return read_on_group(Path(path), *kind, group, largest, _from_plain)


def time_response(
    group: LieGroup,
    t: np.ndarray,
    x: np.ndarray,
    u: np.ndarray,
    outputs: np.ndarray,
    labels: Sequence[str],
    *,
    inputs: Sequence[str] = (),
    name: str | None = None,
) -> control.TimeResponseData:
    """A motion as python-control has it.

    With one row of inputs a node; `labels` are names of the outputs.
    """
    import control

    return control.TimeResponseData(
        t,
        outputs.T,
        x.T,
        u.T if u.shape[1] else None,
        output_labels=[control_name(label) for label in labels],
        state_labels=[control_name(label) for label in group.coordinate_names],
        input_labels=[control_name(label) for label in inputs] or None,
        title=name,
        sysname=name,
        issiso=False,
    )


def check_hold(value: Any) -> str:
    """What inputs are between nodes."""
    if value not in HOLDS:
        raise UnknownNameError(unknown_name("hold", str(value), HOLDS))
    return value


def _warn_of_limits(plan: Trajectory) -> None:
    """Say by how much a plan that knows no limits exceeds those of the inputs."""
    told = []
    for entry, u in zip(plan.inputs, plan.u.T, strict=True):
        excess = np.maximum(u - entry.upper, entry.lower - u)
        k = int(np.argmax(excess))
        if excess[k] > LIMIT_ROUNDING * (1 + abs(u[k])):
            value, limits = (
                f"{u[k]:.4g} {entry.unit}".rstrip(),
                f"{entry.lower:g} to {entry.upper:g}",
            )
            told.append(f"{entry.name} = {value} at t = {plan.t[k]:.4g} s, its limits are {limits}")
    if told:
        text = f"the plan exceeds limits of inputs: {'; '.join(told)}. Give the motion more time"
        warnings.warn(text, RuntimeWarning, stacklevel=level_outside())


def read_on_group(
    path: Path,
    schema: str,
    version: int,
    what: str,
    group: LieGroup | None,
    largest: int,
    make: Callable[[dict[str, Any], dict[str, Any], LieGroup], Made],
) -> Made:
    """Read what lives on a group; one of the user's own has to be given.

    ``make(arrays, description, group)`` returns what was saved; see `read_archive` for the others.
    """
    path, arrays, description = read_archive(path, schema, version, what, largest)
    if group is None:
        given: Any = description.get("group")
        try:
            group = group_from_description(given)
        except DAMAGE:
            name = given.get("type") if isinstance(given, dict) else given
            raise ValueError(
                f"{path} has a state on {name}, a group of your own: give it to "
                "load(path, group=...)"
            ) from None
    try:
        return make(arrays, description, group)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {damage_reason(error)}") from None


def _from_plain(arrays: dict[str, Any], description: dict[str, Any], group: LieGroup) -> Trajectory:
    texts = description["inputs"]
    numbers = check_shape("inputs", arrays["inputs"], (len(texts), len(_NUMBERS)), finite=False)
    inputs = tuple(
        Input(**dict(zip(_TEXTS, map(str, words), strict=True)),
              **dict(zip(_NUMBERS, map(float, row), strict=True)))
        for words, row in zip(texts, numbers, strict=True)
    )  # fmt: skip
    x = check_shape("x", arrays["x"], (None, group.nq), batch=True, finite=False)
    # The states of a rollout that diverged end in NaN; there may be none in between.
    gone = np.asarray(np.isnan(x).any(axis=-1))
    if (gone[..., :-1] & ~gone[..., 1:]).any() or gone[..., :1].any():
        raise ValueError("x has states of NaN other than at its end")
    filled = np.where(gone[..., None], group.identity, x)
    hold = description.get("hold", "zero")  # files before it say nothing
    made = Trajectory(group, arrays["t"], filled, arrays["u"], inputs=inputs or None, hold=hold)
    x = np.where(gone[..., None], np.nan, made.x)
    return Trajectory.unchecked(group, made.t, x, made.u, made.inputs, hold)
