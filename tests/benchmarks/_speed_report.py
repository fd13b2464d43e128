"""Tables and a figure of the speed comparison."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from matplotlib.ticker import ScalarFormatter  # noqa: E402

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
    """Ratios to Pinocchio as bars with the aims, and the rollouts; needs both peers."""
    rows = {name: row for name, row in results["trees"].items() if "pinocchio" in row}
    if not rows:
        return
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(14, 0.34 * len(rows) + 2), width_ratios=(2, 1), layout="constrained"
    )
    place = np.arange(len(rows))[::-1]
    shown = (("batch", "C0", 0.28), ("scalar batch", "C1", 0), ("call", "C2", -0.28))
    for column, colour, shift in shown:
        ratio = [ratio_of(row, column) for row in rows.values()]
        left.barh(place + shift, ratio, 0.27, color=colour, label=column)
    left.plot([aim_of(name) for name in rows], place, "k|", markersize=16, label="aim (batch)")
    left.axvline(1, color="0.6", linewidth=1)
    left.set_yticks(place, [name.replace("_", " ") for name in rows])
    left.set_xscale("log")
    left.set_xlabel("Pinocchio's time over ours")
    left.legend(loc="lower right", framealpha=1)
    names = list(results["rollouts"])
    speeds = [results["rollouts"][name] / 1e6 for name in names]
    right.barh(names[::-1], speeds[::-1], color="C0")
    right.set_xscale("log")
    right.set_title("quadrotor, order 4")
    right.set_xlabel("million steps a second")
    right.set_xlim(min(speeds) / 3)
    for axes in (left, right):
        axes.xaxis.set_major_formatter(ScalarFormatter())
    figure.savefig(path, dpi=120)
    plt.close(figure)
