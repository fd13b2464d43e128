"""What is drawn of a run: its fields, and the poses of its bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..codegen._internal import Status, check_shape
from ..groups import SE3, LieGroup
from ..scene._internal import moving_blocks


def check_run(run: Any) -> None:
    """Refuse objects that are not runs."""
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


def kicked_pieces(
    run: Any, goal: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None] | None:
    """Times, states and references at both ends of each interval, where kicks change the state.

    The end of an interval is before the kick, the start of the next one after it.
    """
    found = [
        (int(k), np.array(event.change))
        for event in getattr(getattr(run, "scenery", None), "events", ())
        if len(getattr(event, "change", ())) == run.group.dim
        for k in np.flatnonzero(np.isclose(run.t, event.t, rtol=0.0, atol=1e-9))
        if k > 0 and np.isfinite(run.x[k]).all()
    ]
    if not found:
        return None
    before = run.x.copy()
    for k, change in reversed(found):
        before[k] = run.group.plus(before[k], -change)
    t, x = (np.stack([start[:-1], end[1:]], axis=1)
            for start, end in ((run.t, run.t), (run.x, before)))  # fmt: skip
    return t, x, None if goal is None else np.stack([goal[:-1], goal[1:]], axis=1)


class PlottedStates(Protocol):
    """States and inputs over time."""

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


class PlottedRun(PlottedStates, Protocol):
    """Times, states, inputs and what was known of them, as in a simulation result."""

    @property
    def name(self) -> str:
        """Name of the plant."""
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


class PlottedNodes(PlottedStates, Protocol):
    """States and inputs over time, as in a `lgcontrol.systems.Trajectory`."""

    @property
    def hold(self) -> str:
        """How inputs go on between nodes; "zero": they are held."""
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


Bodies: TypeAlias = Callable[[np.ndarray], Any] | Mapping[str, Callable[[np.ndarray], Any]]
"""``x of shape (N, nq) → poses of shape (N, k, 7) or (N, 7)``, or one ``→ (N, 7)`` by name."""


def body_names(group: LieGroup, bodies: Bodies | None) -> list[str]:
    """Names of the bodies of a state, where there are several that have any."""
    if isinstance(bodies, Mapping):
        return [*bodies]
    names = [] if bodies is not None else [leaf.name for leaf in moving_blocks(group)]
    return names if len(names) > 1 else []


def body_poses(group: LieGroup, x: np.ndarray, bodies: Bodies | None = None) -> np.ndarray:
    """Poses of the bodies of a state: coordinates on SE(3).

    Parameters
    ----------
    x : ndarray, shape (N, nq)
    bodies : callable or mapping of str to callable, optional
        ``x of shape (N, nq) → poses of shape (N, k, 7) or (N, 7)``, or one ``→ (N, 7)`` by name; if
        left out, the blocks of the state that are motions of a body.

    Returns
    -------
    ndarray, shape (N, k, 7)

    Raises
    ------
    ValueError
        If the state has no such block.
    """
    if isinstance(bodies, Mapping):
        given = [np.asarray(place(x), dtype=np.float64) for place in bodies.values()]
        for name, poses in zip(bodies, given, strict=True):
            check_shape(f"the pose of {name!r} from bodies", poses, (len(x), 7))
        return np.stack(given, axis=1)
    if bodies is not None and not callable(bodies):
        raise TypeError(
            "bodies must be a function from states (N, nq) to poses (N, k, 7) on SE(3), or one "
            "(N, 7) by name, as in {'tool': lambda x: tree.placement('tool')(x[:, : tree.nq])}; "
            f"got {bodies!r}"
        )
    if bodies is not None:
        poses = np.asarray(bodies(x), dtype=np.float64)
        if poses.ndim == 2:
            poses = poses[:, np.newaxis]
        return check_shape("what bodies(x) returned", poses, (len(x), None, 7))
    found = [block.embed(x[:, where]) for _, block, where, _ in moving_blocks(group)]
    if not found:
        raise ValueError(
            f"the state {group} has no block that moves a body in space: give bodies=function, "
            "from states (N, nq) to poses (N, k, 7) on SE(3)"
        )
    return np.stack(found, axis=1)


def has_bodies(group: LieGroup) -> bool:
    """Whether a block of a state moves a body in space, so that it has a path without `bodies`.

    Examples
    --------
    >>> from lgcontrol.groups import SE2, Rn
    >>> has_bodies(SE2), has_bodies(Rn(2))
    (True, False)
    """
    return bool(moving_blocks(group))


def is_planar(poses: np.ndarray) -> bool:
    """Whether all poses stay in the plane z = 0 and turn about z only."""
    return not poses[..., 2:5].any()


def axes_of(poses: np.ndarray) -> np.ndarray:
    """Body axes as columns, shape (..., 3, 3)."""
    return SE3.homogeneous(poses)[..., :3, :3]


def extent_of(points: np.ndarray) -> float:
    """Largest side of the box around points (..., 3); 1 m for a body that stays in place."""
    flat = points.reshape(-1, points.shape[-1])
    return float(np.ptp(flat, axis=0).max()) or 1.0


def spread(points: np.ndarray, count: int) -> np.ndarray:
    """Indices of about `count` points at equal distances along a path (N, 3), ends included."""
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    if length[-1] == 0.0:
        return np.array([0])
    return np.unique(
        np.searchsorted(length, np.linspace(0, length[-1], count)).clip(max=len(points) - 1)
    )
