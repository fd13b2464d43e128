"""Signals over time gathered in panels: one for each block and unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..groups import LieGroup, Rn
from ..groups._internal import leaves

_QUANTITY = {
    "m": "position",
    "rad": "angle",
    "m/s": "velocity",
    "rad/s": "angular velocity",
    "m/s²": "acceleration",
    "N": "force",
    "N m": "torque",
}


# Signals of one unit share a panel unless the largest of one is that much larger than of another.
UNLIKE = 30.0
NOTHING = 1e-6  # and what is smaller than this part of the largest is next to nothing
ROUNDING = 1e-13  # of a state: what stays below is zero
MEETS, AT_ONCE = 1e-2, 1e-9  # of the range of a signal, and of the time axis
# Letters of a title that fit above one of two columns.
TITLE_LENGTH = 56
SHARED = 6  # signals that one axes shows at most; more have an axes each
MOST_PARTS = 24  # and more than this one axes again, with a scale of colours
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


class PassingBand(NamedTuple):
    """A limit of a signal while it counts."""

    start: float  # times between which the signal counts, s
    end: float
    lower: float  # values that pass
    upper: float
    at: float | None  # of the sample that decides, s; None for the mean of all
    value: float  # signal that is compared with the limits
    passed: bool
    text: str  # the limits in words


@dataclass(frozen=True)
class Panel:
    """Signals of one unit, in one axes or, where there are many, in an axes each."""

    title: str
    unit: str
    labels: tuple[str, ...]  # a name for each of k signals
    t: np.ndarray  # (n,)
    values: np.ndarray  # (n, k), or (n - 1, k) with steps
    dashed: np.ndarray | None = None  # (n, k) what the signals are to follow
    band: np.ndarray | None = None  # (n, k) half-width of a band about zero
    bounds: np.ndarray | None = None  # (2, k), or (2, n, k) if they change; none where not finite
    steps: bool = False  # whether values are held over the intervals between times
    joint: str = ""  # path of a block with one degree of freedom, which may share a panel
    tolerances: tuple[PassingBand, ...] = ()  # of the only signal
    t_between: np.ndarray | None = None  # shape (m,)
    between: np.ndarray | None = None  # shape (m, k), the signals there, in pieces with NaN after
    jumps: bool = False  # whether pieces make a line wherever they end

    @property
    def curve(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Pieces of `between` as one line, if all visibly end where the next value is."""
        if self.t_between is None or self.between is None:
            return None
        is_there = ~np.isnan(self.t_between)
        last = np.flatnonzero(~is_there) - 1
        if self.jumps:
            return self.t_between[is_there], self.between[is_there]
        there = np.searchsorted(self.t, self.t_between[last] - AT_ONCE * np.ptp(self.t))
        span = np.nanmax(self.values, axis=0) - np.nanmin(self.values, axis=0)
        off = np.abs(self.between[last] - self.values[np.minimum(there, len(self.t) - 1)])
        if (off <= MEETS * span + ROUNDING).all():
            return self.t_between[is_there], self.between[is_there]
        return None

    @property
    def is_split(self) -> bool:
        """Whether each signal has its own axes: many, or several with a band each."""
        count = len(self.labels)
        return (1 if self.band is not None else SHARED) < count <= MOST_PARTS

    def parts(self) -> list[Panel]:
        """A panel for each signal."""
        parts = (_columns(self, [k]) for k in range(len(self.labels)))
        return [
            replace(part, title=label, labels=("",))
            for part, label in zip(parts, self.labels, strict=True)
        ]


@dataclass(frozen=True)
class Strip:
    """What nobody judges, without numbers on its axis: marks or lines in a narrow strip.

    The title says what it is, with the numbers that matter. Values are between -1 and 1; marks have
    a status each in place of lines, and no labels.
    """

    title: str
    t: np.ndarray
    values: np.ndarray
    labels: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerdictTable:
    """Lines of text: what was judged.

    Lines are a mark and what it says.
    """

    lines: tuple[tuple[str, str], ...]


def state_panels(
    group: LieGroup,
    t: np.ndarray,
    x: np.ndarray,
    reference: np.ndarray | None,
    limits: np.ndarray | None = None,
    between: tuple[np.ndarray, np.ndarray, np.ndarray | None] | None = None,
) -> list[Panel]:
    """Panels of a state: coordinates that have a unit, then attitudes; joints side by side.

    In `between` are times (N, m), states (N, m, nq) and references of the same shape, for N pieces.
    """
    panels: list[Panel] = []
    for name, block, where, _ in leaves(group):
        value, goal = x[:, where], None if reference is None else reference[:, where]
        bounds = None if limits is None else limits[..., where]
        shown = [
            i for i, unit in enumerate(block.coordinate_units) if unit or isinstance(block, Rn)
        ]
        units = [block.coordinate_units[i] for i in shown]
        for unit in dict.fromkeys(units):
            some = [i for i, u in zip(shown, units, strict=True) if u == unit]
            panel = Panel(
                _title(name, unit, several=len(set(units)) > 1 or len(shown) < block.nq),
                unit,
                _words([block.coordinate_names[i] for i in some], name),
                t,
                value[:, some],
                dashed=None if goal is None else goal[:, some],
                bounds=None if bounds is None else bounds[..., some],
            )
            panels.append(replace(panel, joint=name if block.dim == 1 else ""))
        if len(shown) < block.nq:
            panel = _attitude(name, block, t, value, goal)
            panels.append(replace(panel, joint=name if block.dim == 1 else ""))
    panels = _side_by_side(panels)
    return panels if between is None else _with_pieces(panels, group, *between)


def _with_pieces(
    panels: list[Panel], group: LieGroup, t: np.ndarray, x: np.ndarray, reference: np.ndarray | None
) -> list[Panel]:
    """Panels with what happens between their times; see `state_panels`."""
    columns = [None if v is None else v.reshape(-1, group.nq) for v in (x, reference)]
    assert columns[0] is not None
    dense = state_panels(group, t.ravel(), columns[0], columns[1])
    known = {(one.title, one.labels): one.values for one in dense}

    def pieces(values: np.ndarray) -> np.ndarray:
        split = values.reshape(*t.shape, -1)
        return np.pad(split, ((0, 0), (0, 1), (0, 0)), constant_values=np.nan).reshape(
            -1, split.shape[-1]
        )

    times = pieces(t).ravel()
    return [
        replace(one, t_between=times, between=pieces(known[one.title, one.labels]))
        if (one.title, one.labels) in known
        else one
        for one in panels
    ]


def without_rounding(panels: Sequence[Panel]) -> list[Panel]:
    """Panels without those, and many signals without those, that are nothing but rounding."""
    acting = [[k for k in range(len(one.labels)) if _acts(one, k)] for one in panels]
    if not any(acting):
        return list(panels)
    return [
        one if not one.is_split or len(some) == len(one.labels) else _columns(one, some)
        for one, some in zip(panels, acting, strict=True)
        if some
    ]


def _acts(panel: Panel, k: int) -> bool:
    shown = [panel.values[:, k], *([] if panel.dashed is None else [panel.dashed[:, k]])]
    return bool((np.abs(np.nan_to_num(np.concatenate(shown), nan=1.0)) > ROUNDING).any())


def _side_by_side(panels: list[Panel]) -> list[Panel]:
    """Joints of one parent and unit in one panel, named after the parent, at the first's place."""
    groups: dict[Any, list[Panel]] = {}
    for k, panel in enumerate(panels):
        parent = panel.joint.rpartition(".")[0]
        groups.setdefault((parent, panel.unit) if panel.joint else k, []).append(panel)
    joined = [_joined(some) if len(some) > 1 else some[0] for some in groups.values()]
    return [part for panel in joined for part in by_range(panel)]


def by_range(panel: Panel) -> list[Panel]:
    """The panel, or several where signals are so unlike in range that some would look like zero.

    A signal that is next to nothing beside the largest has no panel of its own.
    """
    shown = [panel.values] if panel.dashed is None else [panel.values, panel.dashed]
    size = np.nanmax(np.abs(np.concatenate(shown)), axis=0, initial=0.0)
    order = np.argsort(-size, kind="stable")
    groups: list[list[int]] = []
    for i in order:
        tiny = size[i] <= NOTHING * size.max(initial=0.0)
        if groups and (tiny or size[i] * UNLIKE > size[groups[-1][0]]):
            groups[-1 if not tiny else 0].append(i)
        else:
            groups.append([i])
    if len(groups) < 2:
        return [panel]
    return [_columns(panel, sorted(group)) for group in sorted(groups, key=min)]


def _columns(panel: Panel, kept: list[int]) -> Panel:
    """Some signals of a panel, named in its title."""
    fields = ("values", "dashed", "band", "bounds", "between")
    columns = {key: getattr(panel, key) for key in fields}
    labels = tuple(panel.labels[i] for i in kept)
    return replace(
        panel,
        title=panel.title if len(kept) == 1 else f"{panel.title} ({_listed(labels, panel.title)})",
        labels=labels,
        **{key: None if value is None else value[..., kept] for key, value in columns.items()},
    )


def _listed(labels: Sequence[str], title: str) -> str:
    """As many labels as fit beside a title into one of a panel, and how many more there are."""
    if len(labels) == 1:
        return labels[0]
    shown = len(labels)
    while shown > 1:
        more = len(labels) - shown
        text = ", ".join([*labels[:shown], *[f"{more} more"] * bool(more)])
        if len(title) + len(text) + 3 <= TITLE_LENGTH:
            return text
        shown -= 1
    return f"{labels[0]}, {len(labels) - 1} more"


def _joined(panels: list[Panel]) -> Panel:
    first, parent = panels[0], panels[0].joint.rpartition(".")[0]
    columns = {
        key: None
        if getattr(first, key) is None
        else np.concatenate([getattr(panel, key) for panel in panels], axis=-1)
        for key in ("values", "dashed", "band", "bounds")
    }
    what = first.title.rpartition(", ")[2] if "estimation" in first.title else ""
    return replace(
        first,
        title=_title(parent, first.unit, what=what),
        labels=_words([panel.joint.rpartition(".")[2] for panel in panels], parent),
        **columns,
    )


def _attitude(
    name: str, block: LieGroup, t: np.ndarray, x: np.ndarray, goal: np.ndarray | None
) -> Panel:
    """Heading of a body, angle of a joint, or the rotation vector: from the goal, if any."""
    if "cos" in block.coordinate_names:
        heading = _heading(block, x)
        dashed = None
        if goal is not None:  # the turn that is nearest to the heading
            dashed = _heading(block, goal)
            dashed += 2 * np.pi * np.round((heading - dashed) / (2 * np.pi))
            leaps = np.abs(np.diff(dashed, axis=0, prepend=dashed[:1])) > np.pi
            dashed[leaps] = np.nan
        what = "heading" if block.dim > 1 else "angle"
        return Panel(_of(name, what), "rad", (what,), t, heading, dashed=dashed)
    turns = [i for i, unit in enumerate(block.tangent_units) if unit == "rad"]
    what = "rotation vector" if goal is None else "attitude error"
    if not turns:  # a group of a user's own: all of its logarithm
        turns, what = list(range(block.dim)), "logarithm" if goal is None else "error"
    vector = (block.log(x) if goal is None else block.minus(x, goal))[:, turns]
    labels = tuple(block.tangent_names[i] for i in turns)
    unit = block.tangent_units[turns[0]]
    if _passes_a_half_turn(vector):
        return Panel(_of(name, what), unit, ("angle",), t, _length(vector))
    return Panel(_of(name, what), unit, labels, t, vector)


def _length(vector: np.ndarray) -> np.ndarray:
    """Of each row, shape (n, 1)."""
    return np.linalg.norm(vector, axis=1, keepdims=True)


def _passes_a_half_turn(vector: np.ndarray) -> bool:
    """Whether a rotation vector comes back from the other side: then its angle alone is smooth."""
    return bool((np.linalg.norm(np.diff(vector, axis=0), axis=1) > np.pi).any())


def _words(labels: Sequence[str], name: str) -> tuple[str, ...]:
    """Labels that are no bare numbers: "0" and "1" of a block are its first and second."""
    own = name.rpartition(".")[2]
    if not all(label.lstrip("x").isdigit() for label in labels):
        return tuple(labels)
    if len(labels) == 1:
        return (own or labels[0],)
    numbers = [int(label.lstrip("x")) for label in labels]
    return tuple(
        f"{own} {ORDINALS[k] if len(labels) <= len(ORDINALS) else k + 1}".strip()
        if labels[0].isdigit()
        else label
        for k, label in zip(numbers, labels, strict=True)
    )


def _entry(label: str) -> str:
    """In words what "quay[1]" says: the second of several rows of one bound."""
    name, _, row = label.rstrip("]").partition("[")
    return f"{name}, point {int(row) + 1}" if row.isdigit() else label


def input_panels(
    t: np.ndarray,
    u: np.ndarray,
    names: Sequence[str],
    units: Sequence[str],
    roles: Sequence[str],
    bounds: np.ndarray | None,
    *,
    steps: bool = True,
) -> Iterator[Panel]:
    """Panels of the controls by unit, held between the times or linear."""
    own = [i for i, role in enumerate(roles) if role == "control"]
    kinds = list(dict.fromkeys(units[i] for i in own))
    for unit in kinds:
        some = [i for i in own if units[i] == unit]
        panel = Panel(
            _title("inputs", unit, several=len(kinds) > 1),
            unit,
            tuple(names[i] for i in some),
            t,
            u[:, some],
            bounds=None if bounds is None else bounds[..., some],
            steps=steps,
        )
        yield from by_range(panel)


def disturbance_strips(
    t: np.ndarray,
    u: np.ndarray,
    names: Sequence[str],
    units: Sequence[str],
    roles: Sequence[str],
) -> Iterator[Strip]:
    """A strip for the inputs of each other role that act, each of a unit next to the largest."""
    acting = [i for i, role in enumerate(roles) if role != "control" and u[:, i].any()]
    for role in dict.fromkeys(roles[i] for i in acting):
        own = [i for i in acting if roles[i] == role]
        scaled, told = np.zeros((len(u), len(own))), []
        for unit in dict.fromkeys(units[i] for i in own):
            some = [i for i in own if units[i] == unit]
            most = float(np.nanmax(np.abs(u[:, some])))
            scaled[:, [own.index(i) for i in some]] = u[:, some] / most
            listed = _listed([names[i] for i in some], "")
            told.append(f"{listed} up to {most:.2g} {unit}".rstrip())
        title = {"disturbance": "disturbances"}.get(role, role)
        labels = tuple(names[i] for i in own)
        yield Strip(f"{title}: {'; '.join(told)}", t[: len(u)], scaled, labels)


def call_strips(controllers: Mapping[str, Any]) -> Iterator[Strip]:
    """A strip for the calls of each controller: their wall time, by status."""
    for name, log in controllers.items():
        if not len(log.t):
            continue
        ms = 1e3 * np.asarray(log.info["call_time"], dtype=np.float64)
        who = f" of {name}" if len(controllers) > 1 else ""
        usual, longest = (_seconds(1e-3 * float(time)) for time in (np.median(ms), ms.max()))
        title = f"calls{who}: median {usual}, longest {longest}"
        if len(log.t) > 1:
            title += f", one each {_seconds(float(np.median(np.diff(log.t))))}"
        status = tuple(np.asarray(log.info.get("status", [""] * len(ms))).astype(str))
        yield Strip(title, log.t, 2 * ms[:, np.newaxis] / (ms.max() or 1.0) - 1, marks=status)


def _seconds(time: float) -> str:
    """A time with a unit that suits it."""
    if time >= 1.0:
        return f"{time:.4g} s"
    return f"{1e3 * time:.3g} ms" if time >= 1e-4 else f"{1e6 * time:.3g} µs"


def kept_panels(
    t: np.ndarray, kept: Mapping[str, Any], t_between: np.ndarray | None = None
) -> list[Panel]:
    """Panels of quantities with ``values``, ``lower`` and ``upper`` that are kept within limits.

    Those with the same limits share a panel; of many it has those that come nearest to them. With
    times (N, m) between the nodes of a plan they have values ``between`` there, of size N m.
    """
    together: dict[tuple[float, float, str], list[str]] = {}
    for name, entry in kept.items():
        key = (entry.lower, entry.upper, getattr(entry, "unit", ""))
        together.setdefault(key, []).append(name)
    panels = []
    for (lower, upper, unit), names in together.items():

        def slack(name: str, lower: float = lower, upper: float = upper) -> float:
            values = np.append(kept[name].values, _within(kept[name]))
            return float(np.nanmin([values - lower, upper - values], initial=np.inf))

        names.sort(key=slack)
        what = _entry(names[0]) if len(names) == 1 else "clearances" if unit == "m" else "kept"
        title = f"{what} ({_range(lower, upper, unit)})"
        if len(names) > SHARED:
            title += f", the tightest of {len(names)}"
        some = names[:SHARED]
        values = np.stack([kept[name].values for name in some], axis=1)
        bounds = np.tile([[lower], [upper]], len(some))
        labels = ("",) if len(names) == 1 else tuple(map(_entry, some))
        panel = Panel(title, unit, labels, t, values, bounds=bounds)
        if t_between is not None and all(_within(kept[name]).size for name in some):
            times, *columns = (
                np.pad(row.reshape(t_between.shape), ((0, 0), (0, 1)), constant_values=np.nan)
                for row in (t_between, *(kept[name].between for name in some))
            )
            between = np.stack([column.ravel() for column in columns], axis=1)
            panel = replace(panel, t_between=times.ravel(), between=between, jumps=True)
        panels.append(panel)
    return panels


def _within(entry: Any) -> np.ndarray:
    """Values of a quantity between nodes, none where they are not known."""
    between = getattr(entry, "between", None)
    return np.zeros(0) if between is None else between


def _range(lower: float, upper: float, unit: str) -> str:
    """Limits in words."""
    if np.isfinite(lower) and np.isfinite(upper):
        return f"{lower:.4g} to {upper:.4g} {unit}".rstrip()
    word, limit = ("at most", upper) if np.isfinite(upper) else ("at least", lower)
    return f"{word} {limit:.4g} {unit}".rstrip()


def limited_panels(t: np.ndarray, limited: Mapping[str, Any]) -> list[Panel]:
    """Panels of quantities with limits: entries of one quantity and one unit together."""
    together: dict[tuple[str, str], list[str]] = {}
    for name, entry in limited.items():
        together.setdefault((name.rpartition(".")[0] or name, entry.unit), []).append(name)
    return [
        Panel(
            title,
            unit,
            tuple(name.rpartition(".")[2] for name in names),
            t,
            np.stack([limited[name].values for name in names], axis=1),
            bounds=np.array([[limited[name].lower for name in names],
                             [limited[name].upper for name in names]]),
        )
        for (title, unit), names in together.items()
    ]  # fmt: skip


def error_panels(
    group: LieGroup,
    t: np.ndarray,
    error: np.ndarray,
    deviation: np.ndarray | None,
    what: str = "estimation error",
) -> list[Panel]:
    """Panels of errors, those of estimates with twice their standard deviation."""
    if deviation is not None and deviation.shape != error.shape:
        deviation = None
    panels: list[Panel] = []
    for name, block, _, place in leaves(group):
        start, units = place.start, block.tangent_units
        for unit in dict.fromkeys(units):
            some = [start + i for i, u in enumerate(units) if u == unit]
            labels = _words([block.tangent_names[i - start] for i in some], name)
            values = error[:, some]
            if (
                deviation is None
                and unit == "rad"
                and len(some) == 3
                and _passes_a_half_turn(values)
            ):
                labels, values = ("angle",), _length(values)
            panels.append(
                Panel(
                    _title(name, unit, several=len(set(units)) > 1, what=what),
                    unit,
                    labels,
                    t,
                    values,
                    band=None if deviation is None else 2 * deviation[:, some],
                    joint=name if block.dim == 1 else "",
                )
            )
    return _side_by_side(panels)


def task_panels(t: np.ndarray, tasks: Mapping[str, Any]) -> list[Panel]:
    """Panels of what a controller tracks besides the state: each from its goal."""
    return [
        replace(panel, title=f"{name}: {_QUANTITY.get(panel.unit, 'error')} from its goal")
        for name, task in tasks.items()
        for panel in error_panels(task.group, t, task.error, None)
    ]


def _heading(block: LieGroup, x: np.ndarray) -> np.ndarray:
    cos, sin = (x[:, block.coordinate_names.index(name)] for name in ("cos", "sin"))
    return np.unwrap(np.arctan2(sin, cos))[:, np.newaxis]


def _title(name: str, unit: str, *, several: bool = True, what: str = "") -> str:
    """Block, kind of quantity where it is needed to tell panels apart, and what is shown of it."""
    title = _of(name, _QUANTITY.get(unit, "") if several or not name else "")
    return title + (f", {what}" if what else "") if title else what or "state"


def _of(name: str, quantity: str) -> str:
    """A block and what is shown of it, which is said once."""
    if quantity == name.rpartition(".")[2]:
        name = name.rpartition(".")[0]
    return ": ".join(part for part in (name, quantity) if part)
