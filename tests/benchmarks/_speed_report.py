"""Tables and a figure of the speed comparison."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import NullFormatter, ScalarFormatter  # noqa: E402

# Ratio to Pinocchio that we aim at, by function: arms, quadrupeds, humanoid.
AIMS = {
    "inverse_dynamics": (6, 4, 4),
    "mass_matrix": (4, 3, 3),
    "forward_dynamics": (6, 5, 3),
    "inverse_dynamics_derivatives": (7, 5, 3.5),
    "forward_dynamics_derivatives": (6, 3, 2),
}
CLASSES = {"ur5": 0, "panda": 0, "hyq": 1, "solo12": 1, "talos": 2}
BODY_AIM = 15
COLUMNS = ("batch", "batch generic", "scalar batch", "call in place", "call")


def aim_of(name: str) -> float:
    """Ratio we aim at for a row of the tree table."""
    robot, function = name.split()
    return BODY_AIM if robot == "body" else AIMS[function][CLASSES[robot]]


def ratio_of(row: dict[str, float], column: str) -> float:
    """Pinocchio's time over ours."""
    return row[f"pinocchio / {column}"]


def print_tables(results: dict[str, Any]) -> None:
    """Print everything that was measured."""
    print(
        f"\nTrees, µs an evaluation; in brackets Pinocchio's time over ours; {results['versions']}"
    )
    heads = "".join(f"{column:>18s}" for column in COLUMNS)
    print(f"{'':38s}{'ops':>8s}{heads}{'pinocchio':>11s}{'aim':>6s}")
    for name, row in results["trees"].items():
        theirs = row.get("pinocchio")
        cells = "".join(
            f"{row[c]:9.3f} {f'({ratio_of(row, c):5.1f})' if theirs else '':>8s}" for c in COLUMNS
        )
        end = f"{theirs:11.2f}" if theirs else f"{'—':>11s}"
        aim = aim_of(name)
        missed = " missed" if theirs and ratio_of(row, "batch") < aim else ""
        print(f"{name:38s}{row['operations']:8d}{cells}{end}{aim:6.1f}{missed}")
    print_large(results["large trees"])
    print("\nQuadrotor, steps of Munthe-Kaas order 4, million steps a second")
    for name, value in results["rollouts"].items():
        print(f"  {name:32s}{value / 1e6:9.3f}")
    print("\nCalls of a function of 14 additions, µs")
    for name, value in results["calls"].items():
        print(f"  {name:32s}{value:9.3f}")
    if "builds" in results:
        print("\nSeconds")
        for name, value in results["builds"].items():
            print(f"  {name:32s}{value:9.3f}")


def print_large(rows: dict[str, Any]) -> None:
    """Print what the code of large trees grows by."""
    print("\nLarge trees, code written out or (*) loops; in brackets Pinocchio's time over ours")
    heads = ("operations", "written", "bytes", "trace s", "build s", "µs")
    print(f"{'':42s}{heads[0]:>12s}" + "".join(f"{head:>9s}" for head in heads[1:]))
    for name, row in rows.items():
        ratio = f"({row['pinocchio / compiled']:5.1f})" if "pinocchio" in row else ""
        print(
            f"{name:41s}{'*' if row['loops'] else ' '}{row['operations']:12d}"
            f"{row['operations written']:9d}{row['bytes']:9d}{row['trace s']:9.2f}"
            f"{row['build s']:9.2f}{row['compiled']:9.1f} {ratio}"
        )


def plot(results: dict[str, Any], path: Path) -> None:
    """Ratios to Pinocchio with the aims (needs it), rollouts, and what large trees grow by."""
    rows = {name: row for name, row in results["trees"].items() if "pinocchio" in row}
    figure = plt.figure(figsize=(15, 0.34 * max(20, len(rows)) + 2), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
    if rows:
        _plot_ratios(left.subplots(), rows)
    top, middle, bottom = right.subplots(3, 1)
    names = list(results["rollouts"])
    speeds = [results["rollouts"][name] / 1e6 for name in names]
    top.barh(names[::-1], speeds[::-1], color="C0")
    top.set_xscale("log")
    top.set_title("quadrotor, order 4")
    top.set_xlabel("million steps a second")
    top.set_xlim(min(speeds) / 3)
    top.xaxis.set_major_formatter(ScalarFormatter())
    _plot_growth(middle, results["large trees"], "bytes", 1e-3, "library, kB")
    _plot_growth(bottom, results["large trees"], "compiled", 1.0, "evaluation, µs")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _plot_ratios(axes: Any, rows: dict[str, Any]) -> None:
    place = np.arange(len(rows))[::-1]
    shown = (("batch", "C0", 0.28), ("scalar batch", "C1", 0), ("call", "C2", -0.28))
    for column, colour, shift in shown:
        ratio = [ratio_of(row, column) for row in rows.values()]
        axes.barh(place + shift, ratio, 0.27, color=colour, label=column)
    axes.plot([aim_of(name) for name in rows], place, "k|", markersize=16, label="aim (batch)")
    axes.axvline(1, color="0.6", linewidth=1)
    axes.margins(y=0.01)
    axes.set_yticks(place, [name.replace("_", " ") for name in rows])
    axes.set_xscale("log")
    axes.set_xlabel("Pinocchio's time over ours")
    axes.legend(loc="lower right", framealpha=1)
    axes.xaxis.set_major_formatter(ScalarFormatter())


def _plot_growth(axes: Any, rows: dict[str, Any], key: str, unit: float, label: str) -> None:
    """A line for each function of the chains; dots are loops, rings written-out code."""
    lines: dict[str, list[tuple[int, float, bool]]] = {}
    for name, row in rows.items():
        kind, count, function = name.split()
        if kind == "chain":
            lines.setdefault(function, []).append((int(count), row[key] * unit, row["loops"]))
    for i, (function, points) in enumerate(lines.items()):
        counts, values, loops = zip(*points, strict=True)
        faces = [f"C{i}" if looped else "white" for looped in loops]
        axes.plot(counts, values, color=f"C{i}", linewidth=1, label=function.replace("_", " "))
        axes.scatter(counts, values, s=24, c=faces, edgecolors=f"C{i}", zorder=3)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bodies of a chain (dots: loops, rings: written out)")
    axes.set_ylabel(label)
    axes.legend(fontsize=7)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
        axis.set_minor_formatter(NullFormatter())
