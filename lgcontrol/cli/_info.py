"""lgcontrol list, info and cache: what there is."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from ..groups import Rn
from ..groups._internal import leaves
from ._registry import (
    DESIGNS,
    MECHANISMS,
    MODELS,
    NAMED,
    CommandError,
    design_of_file,
    entries,
    find,
    guarded,
    load,
    summary,
    table,
    unknown,
)

# What can be done with the cache.
CACHE_ACTIONS = {
    "info": "where it is, how many functions it holds and what they take",
    "clear": "remove them all; what is needed again is compiled again",
}


def list_command(options: argparse.Namespace) -> int:
    """Names with the first line of what they say of themselves."""
    for group in NAMED:
        found = entries(group)
        print(f"{group.partition('.')[2]}:")
        width = max(map(len, found), default=0)
        for name, entry in sorted(found.items()):
            try:
                text = summary(load(entry))
            except CommandError as error:  # the others are still of use
                text = f"({error})"
            print(f"  {name:{width}s}  {text}".rstrip())
        if not found:
            print("  (none; is lgcontrol installed? pip install -e . or make demo does it)")
    return 0


def info_command(options: argparse.Namespace) -> int:
    """A design, a model, a mechanism, or a file of a design, a robot or a mechanism in text."""
    name = options.name
    group, entry = find(name)
    is_file = entry is None and name.partition(":")[0].endswith(".py")
    if entry is not None or is_file:
        group = DESIGNS if is_file else group
        design = load(entry) if entry is not None else design_of_file(name)[1]
        made = guarded(name, lambda: design(seed=0) if group == DESIGNS else design())
        print(f"{name}: {summary(design)}\n")
        if group == MECHANISMS:
            print(_describe_linkage(made))
        elif group == MODELS:
            print(_describe(made))
        else:
            print(_describe(made.plant))
            print(f"\ncontroller  {type(made.controller).__name__}\nseconds     {made.seconds:g}")
            print("criteria")
            for criterion in made.criteria:
                print(f"  {criterion}")
    elif Path(name).suffix.lower() == ".json":
        print(_describe_mechanism_file(Path(name)))
    elif Path(name).suffix.lower() == ".urdf" or Path(name).is_file():
        print(_describe_urdf(Path(name)))
    else:
        raise unknown(
            name, "Files of designs end in .py, of robots in .urdf, of mechanisms in .json."
        )
    return 0


def _describe(system: Any) -> str:
    """State, inputs and parameters of a System; what has no bounds or unit says so by silence."""
    lines = [f"state, {system.state.dim} degrees of freedom", *table(_blocks(system.state))]
    if system.is_discrete:
        lines.append(f"sample time  {system.dt:g} s")
    rows = []
    for entry in system.inputs:
        bounded = np.isfinite([entry.lower, entry.upper]).any()
        bounds = f"[{entry.lower:g}, {entry.upper:g}]" if bounded else ""
        rows.append((entry.name, bounds, entry.unit, "" if entry.role == "control" else entry.role))
    lines += ["inputs", *table(rows)] if rows else []
    rows = [(entry.name, f"{entry.nominal:g}", entry.unit) for entry in system.parameters]
    return "\n".join(lines + (["parameters", *table(rows)] if rows else []))


def _blocks(state: Any) -> list[tuple[str, str]]:
    """A row for each block of a state that is no product: its name and how it moves, in words."""
    from ..mechanics._internal import name_of_group

    rows = []
    for name, group, *_ in leaves(state):
        words = name_of_group(group)
        if isinstance(group, Rn):
            units = ", ".join(dict.fromkeys(unit for unit in group.coordinate_units if unit))
            words = "a number" if group.dim == 1 else f"{group.dim} numbers"
            words += f" [{units}]" * bool(units)
        elif words != str(group) and group.dim > 1:
            words += f" ({group})"
        rows.append((name, words) if name else (words, ""))
    return rows


def _describe_linkage(linkage: Any) -> str:
    """Mobility, constraints by their rows, and the System it makes."""
    rows: dict[str, list[str]] = {}
    for name in linkage.row_names:
        owner, _, row = name.rpartition(".")
        rows.setdefault(owner, []).append(row)
    held = table([(owner, ", ".join(own)) for owner, own in rows.items()])
    q = linkage.assemble()
    lines = [str(linkage.mobility(q)), "constraints", *held, _describe(linkage.system(at=q))]
    return "\n".join(lines)


def _describe_mechanism_file(path: Path) -> str:
    """The mechanism of a file."""
    from ..mechanics.constrained import AssemblyError, Mechanism

    try:
        return _describe_linkage(Mechanism.from_json(path))
    except (OSError, ValueError, TypeError, KeyError, AssemblyError) as error:
        text = error.args[0] if isinstance(error, KeyError) else error
        raise CommandError(str(text)) from None


def _describe_urdf(path: Path) -> str:
    """The tree of a file, the limits of its joints, and what its reader found suspicious."""
    from ..io import read_urdf
    from ..mechanics import Multibody

    try:
        robot = read_urdf(path)
        tree = Multibody.from_urdf(robot, on_finding="ignore")
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    found = [f"  {finding}" for finding in robot.findings]
    rows = _limits(tree)
    limits = ["limits: position, speed, effort", *table(rows)] if rows else []
    return "\n".join([tree.summary(), *limits, *(["findings", *found] if found else [])])


def _limits(tree: Any) -> list[tuple[str, ...]]:
    """A row for each degree of freedom that has limits; what has none says so by silence."""
    limits = tree.limits
    names, units = [], []
    for joint, block in zip(tree.joints, tree.configuration.blocks.values(), strict=True):
        own = [joint] if block.dim == 1 else [f"{joint}.{axis}" for axis in block.tangent_names]
        names += own
        units += block.tangent_units
    rows = []
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        low, high, speed, effort = (
            limits[key][i] for key in ("lower", "upper", "velocity", "effort")
        )
        force = "N" if unit == "m" else "N m"
        row = (
            f"[{low:g}, {high:g}] {unit}" if np.isfinite([low, high]).any() else "",
            f"{speed:g} {unit}/s" if np.isfinite(speed) else "",
            f"{effort:g} {force}" if np.isfinite(effort) else "",
        )
        if any(row):
            rows.append((name, *row))
    return rows


def cache_command(options: argparse.Namespace) -> int:
    """What compiled functions take on disk, or their removal; what can be done with them."""
    from .. import codegen

    try:
        print(codegen.cache_clear() if options.action == "clear" else codegen.cache_info())
    except OSError as error:
        raise CommandError(str(error)) from None
    if options.action is None:
        rows = [(f"lgcontrol cache {name}", text) for name, text in CACHE_ACTIONS.items()]
        print("\n".join(table(rows)))
    return 0
