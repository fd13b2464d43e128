"""Signals over time gathered in panels: one for each block and unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..groups import LieGroup, Product, Rn
from ._style import FEW_LINES

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
# Letters of a title that fit above one of two columns.
TITLE_LENGTH = 56


@dataclass(frozen=True)
class Panel:
    """Signals of one unit in one axes.

    Attributes
    ----------
    title, unit : str
    labels : tuple of str
        A name for each of k signals.
    t : ndarray, shape (n,)
    values : ndarray, shape (n, k), or (n - 1, k) with steps
    dashed : ndarray, shape (n, k), optional
        What the signals are to follow.
    band : ndarray, shape (n, k), optional
        Half-width of a band about zero.
    bounds : ndarray, shape (2, k), optional
    steps : bool
        Whether values are held over the intervals between times.
    joint : str
        Path of the block, if it has one degree of freedom and may share a panel with others.
    """

    title: str
    unit: str
    labels: tuple[str, ...]
    t: np.ndarray
    values: np.ndarray
    dashed: np.ndarray | None = None
    band: np.ndarray | None = None
    bounds: np.ndarray | None = None
    steps: bool = False
    joint: str = ""


def state_panels(
    group: LieGroup,
    t: np.ndarray,
    x: np.ndarray,
    reference: np.ndarray | None,
    limits: np.ndarray | None = None,
) -> list[Panel]:
    """Panels of a state: coordinates that have a unit, then attitudes; joints side by side."""
    panels: list[Panel] = []
    for name, block, where in leaves(group):
        value, goal = x[:, where], None if reference is None else reference[:, where]
        bounds = None if limits is None else limits[:, where]
        shown = [
            i for i, unit in enumerate(block.coordinate_units) if unit or isinstance(block, Rn)
        ]
        units = [block.coordinate_units[i] for i in shown]
        for unit in dict.fromkeys(units):
            some = [i for i, u in zip(shown, units, strict=True) if u == unit]
            panel = Panel(
                _title(name, unit, several=len(set(units)) > 1 or len(shown) < block.nq),
                unit,
                tuple(block.coordinate_names[i] for i in some),
                t,
                value[:, some],
                dashed=None if goal is None else goal[:, some],
                bounds=None if bounds is None else bounds[:, some],
            )
            panels.append(replace(panel, joint=name if block.dim == 1 else ""))
        if len(shown) < block.nq:
            panel = _attitude(name, block, t, value, goal)
            panels.append(replace(panel, joint=name if block.dim == 1 else ""))
    return _side_by_side(panels)


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

    What is next to nothing beside the largest has no panel of its own.
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
    fields = ("values", "dashed", "band", "bounds")
    columns = {key: getattr(panel, key) for key in fields}
    labels = tuple(panel.labels[i] for i in kept)
    return replace(
        panel,
        title=panel.title if len(kept) == 1 else f"{panel.title} ({_listed(labels, panel.title)})",
        labels=labels,
        **{key: None if value is None else value[:, kept] for key, value in columns.items()},
    )


def _listed(labels: Sequence[str], title: str) -> str:
    """As many labels as fit beside a title into one of a panel, and how many more there are."""
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
        else np.column_stack([getattr(panel, key) for panel in panels])
        for key in ("values", "dashed", "band", "bounds")
    }
    what = first.title.rpartition(", ")[2] if "estimation" in first.title else ""
    return replace(
        first,
        title=_title(parent, first.unit, what=what),
        labels=tuple(panel.joint.rpartition(".")[2] for panel in panels),
        **columns,
    )


def _attitude(
    name: str, block: LieGroup, t: np.ndarray, x: np.ndarray, goal: np.ndarray | None
) -> Panel:
    """Heading in a plane, or the rotation vector in space: from the goal, if there is one."""
    if "cos" in block.coordinate_names:
        heading = _heading(block, x)
        dashed = None
        if goal is not None:  # the turn that is nearest to the heading at the start
            dashed = _heading(block, goal)
            dashed += 2 * np.pi * np.round((heading[0] - dashed[0]) / (2 * np.pi))
        return Panel(_title(name, "heading"), "rad", ("heading",), t, heading, dashed=dashed)
    turns = [i for i, unit in enumerate(block.tangent_units) if unit == "rad"]
    what = "rotation vector" if goal is None else "attitude error"
    if not turns:  # a group of a user's own: all of its logarithm
        turns, what = list(range(block.dim)), "logarithm" if goal is None else "error"
    vector = (block.log(x) if goal is None else block.minus(x, goal))[:, turns]
    labels = tuple(block.tangent_names[i] for i in turns)
    return Panel(_title(name, what), block.tangent_units[turns[0]], labels, *_broken(t, vector))


def input_panels(
    t: np.ndarray,
    u: np.ndarray,
    names: Sequence[str],
    units: Sequence[str],
    roles: Sequence[str],
    bounds: np.ndarray | None,
) -> Iterator[Panel]:
    """Panels of the inputs by role and unit; of disturbances and noise those that act."""
    kinds = list(zip(roles, units, strict=True))
    for role, unit in sorted(dict.fromkeys(kinds), key=lambda kind: list(roles).index(kind[0])):
        some = [i for i, kind in enumerate(kinds) if kind == (role, unit)]
        if role != "control":
            some = [i for i in some if u[:, i].any()]
        if not some:
            continue
        title = {"control": "inputs", "disturbance": "disturbances"}.get(role, role)
        several = len({other for kind, other in kinds if kind == role}) > 1
        panel = Panel(
            _title(title, unit, several=several),
            unit,
            tuple(names[i] for i in some),
            t,
            u[:, some],
            bounds=None if bounds is None else bounds[:, some],
            steps=True,
        )
        yield from by_range(panel)


def kept_panels(t: np.ndarray, kept: Mapping[str, Any]) -> list[Panel]:
    """Panels of quantities with ``values``, ``lower`` and ``upper`` that are kept within limits.

    Many with the same limits share panels, those that come nearest to them first.
    """
    together: dict[tuple[float, float], list[str]] = {}
    for name, entry in kept.items():
        together.setdefault((entry.lower, entry.upper), []).append(name)
    panels = []
    for (lower, upper), names in together.items():

        def slack(name: str, lower: float = lower, upper: float = upper) -> float:
            values = kept[name].values
            return float(np.nanmin([values - lower, upper - values], initial=np.inf))

        names.sort(key=slack)
        for k in range(0, len(names), FEW_LINES):
            some = names[k : k + FEW_LINES]
            which = "each" if k == 0 else "each of the others"
            title = f"{lower:g} ≤ " if np.isfinite(lower) else ""
            title += some[0] if len(names) == 1 else which
            title += f" ≤ {upper:g}" if np.isfinite(upper) else ""
            values = np.stack([kept[name].values for name in some], axis=1)
            bounds = np.tile([[lower], [upper]], len(some))
            labels = ("",) if len(names) == 1 else tuple(some)
            panels.append(Panel(title, "", labels, t, values, bounds=bounds))
    return panels


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
    start = 0
    for name, block, _ in leaves(group):
        units = block.tangent_units
        for unit in dict.fromkeys(units):
            some = [start + i for i, u in enumerate(units) if u == unit]
            panels.append(
                Panel(
                    _title(name, unit, several=len(set(units)) > 1, what=what),
                    unit,
                    tuple(block.tangent_names[i - start] for i in some),
                    t,
                    error[:, some],
                    band=None if deviation is None else 2 * deviation[:, some],
                    joint=name if block.dim == 1 else "",
                )
            )
        start += block.dim
    return _side_by_side(panels)


def leaves(group: LieGroup) -> Iterator[tuple[str, LieGroup, slice]]:
    """Blocks that are no products, with their names and where their coordinates are."""

    def visit(name: str, part: LieGroup, start: int) -> Iterator[tuple[str, LieGroup, slice]]:
        if not isinstance(part, Product):
            yield name, part, slice(start, start + part.nq)
            return
        for label, block in part.blocks.items():
            yield from visit(f"{name}.{label}" if name else label, block, start)
            start += block.nq

    yield from visit("", group, 0)


def _broken(t: np.ndarray, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A gap where a rotation vector passes π and comes back from the other side."""
    after = 1 + np.flatnonzero(np.linalg.norm(np.diff(vector, axis=0), axis=1) > np.pi)
    return np.insert(t, after, t[after - 1]), np.insert(vector, after, np.nan, axis=0)


def _heading(block: LieGroup, x: np.ndarray) -> np.ndarray:
    cos, sin = (x[:, block.coordinate_names.index(name)] for name in ("cos", "sin"))
    return np.unwrap(np.arctan2(sin, cos))[:, np.newaxis]


def _title(name: str, unit: str, *, several: bool = True, what: str = "") -> str:
    """Block, kind of quantity where it is needed to tell panels apart, and what is shown of it."""
    quantity = _QUANTITY.get(unit, unit) if several or not name else ""
    if quantity == name.rpartition(".")[2]:
        name = name.rpartition(".")[0]
    parts = [part for part in (name, quantity) if part]
    return ": ".join(parts) + (f", {what}" if what else "") if parts else what or "state"
