"""Operation counts of recursions in several references, beside the counts of Müller 2018.

    python -m tests.benchmarks.representations [--json FILE]

The recursions work with body-fixed, spatial, hybrid and mixed twists (section 4 of the paper), and
with classical accelerations (`Multibody.inverse_dynamics`). Counts are CasADi instructions of the
function with numbers for all parameters, inputs and outputs included. The paper counts frame
transformations and Lie brackets of dense screws; it has no count for mixed twists. Every recursion
gets the same preparation (`_plan.py`): node frames that make joint axes coordinate axes, inertias
regrouped to fewer numbers. The zeros this leaves count only where frames are body-fixed.

Forward dynamics by articulated bodies is counted in the same way, and so are twists of all bodies
with their rates (`kinematics`), on which the paper makes claims of cost.
"""

import argparse
import json
from pathlib import Path

import casadi as ca
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

from lgcontrol.groups import SE3  # noqa: E402
from lgcontrol.mechanics import Multibody, SpatialInertia  # noqa: E402
from lgcontrol.mechanics.multibody._spatial import cross, twist_cross  # noqa: E402
from lgcontrol.mechanics.multibody.compiled._compiled_tree import compiled  # noqa: E402
from lgcontrol.mechanics.multibody.kinematics._recursions import accelerations, twists  # noqa: E402
from lgcontrol.models import panda_tree, ur5_tree  # noqa: E402

from .multibody import CHAINS, ROOT  # noqa: E402
from .multibody import chain as aligned_chain  # noqa: E402

REFERENCES = ("body", "spatial", "hybrid", "mixed")
DEFAULT = "classical"
LABELS = {DEFAULT: "classical accelerations (default)"} | {r: f"{r} twists" for r in REFERENCES}
RESULTS = ROOT / "tests/benchmarks/results"


def general_chain(n: int) -> Multibody:
    """Bodies without any symmetry on hinges in general places and directions."""
    rng = np.random.default_rng(2018)
    tree, parent = Multibody(f"general{n}"), "world"
    for i in range(n):
        points, masses = rng.normal(scale=0.3, size=(6, 3)), rng.uniform(0.1, 1.0, size=6)
        particles = [SpatialInertia.point_mass(m, x) for m, x in zip(masses, points, strict=True)]
        body = sum(particles[1:], particles[0])
        place, axis = SE3.exp(rng.normal(scale=0.5, size=6)), rng.normal(size=3)
        tree = tree.add_body(f"body{i}", body, "revolute", parent, place, axis=axis)
        parent = f"body{i}"
    return tree


KINDS = {"general": general_chain, "aligned": aligned_chain}
ARMS = {"ur5": ur5_tree, "panda": panda_tree}


def instructions(tree: Multibody) -> dict[str, int]:
    """Count of each recursion, by name."""
    counts = {DEFAULT: tree.inverse_dynamics.instructions}
    for reference in REFERENCES:
        counts[reference] = tree.inverse_dynamics_by_recursion(reference).instructions
    return counts


def forward_instructions(tree: Multibody) -> dict[str, int]:
    """Count of forward dynamics by articulated bodies in each reference, by name."""
    counts = {"default": tree.forward_dynamics_by_recursion.instructions}
    for reference in REFERENCES:
        counts[reference] = tree.forward_dynamics_in(reference).instructions
    return counts


def kinematics(tree: Multibody, reference: str) -> ca.Function:
    """(q, v, a) → twists and their rates of all bodies in a reference, by its own recursion.

    Eq. 67b and 67c (body), 71c and 71d (spatial), 73 (hybrid).
    """
    made = compiled(tree, ca.SX.sym("p", 0))
    q, v, a = (ca.SX.sym(key, n) for key, n in (("q", tree.nq), ("v", tree.nv), ("a", tree.nv)))
    if reference == "body":
        poses = made.poses(q)
        V = twists(made, poses, v)
        A = accelerations(made, poses, V, v, a, gravity=False)
    else:
        world = made.world_poses(q)
        still = ca.SX(6, 1)
        rows: dict[int, tuple] = {-1: (still, still)}
        for k, node in enumerate(made.nodes):
            (before, rate), T = rows[node.parent], world[k]
            if reference == "spatial":
                J = T.push(node.S)
                own = before + J @ v[node.v]
                rows[k] = own, rate + J @ a[node.v] + twist_cross(own, J @ v[node.v])
                continue
            J = ca.vertcat(T.R @ node.S[:3, :], T.R @ node.S[3:, :])
            lever, joint = T.p - world[node.parent].p, J @ v[node.v]
            own = before + ca.vertcat(cross(before[3:], lever), ca.SX(3, 1)) + joint
            swing = cross(rate[3:], lever) + cross(before[3:], own[:3] - before[:3])
            turned = ca.vertcat(cross(own[3:], joint[:3]), cross(own[3:], joint[3:]))
            rows[k] = own, rate + ca.vertcat(swing, ca.SX(3, 1)) + J @ a[node.v] + turned
        V, A = ([rows[k][i] for k in range(len(made.nodes))] for i in (0, 1))
    results = ca.cse([ca.SX(ca.horzcat(*V)), ca.SX(ca.horzcat(*A))])
    return ca.Function("kinematics", [q, v, a], results)


def kinematic_instructions(tree: Multibody) -> dict[str, int]:
    """Count of `kinematics` in each reference, by name."""
    return {
        reference: kinematics(tree, reference).n_instructions()
        for reference in ("body", "spatial", "hybrid")
    }


def counted(n: int) -> dict[str, dict[str, int]]:
    """What the paper counts for a chain of n bodies with joints of one degree of freedom."""
    return {
        "body": {"screw transformations": 3 * (n - 1), "brackets": 2 * n - 1},
        "spatial": {
            "screw transformations": n,
            "inertia transformations": n,
            "brackets": 2 * n - 1,
        },
        "hybrid": {
            "shifts of screws": 3 * n - 3,
            "turns of screws": n,
            "turns of inertias": n,
            "brackets": 3 * n - 1,
        },
    }


def measure() -> dict:
    """Instructions of every chain and arm, with the paper's counts of the chains."""
    chains = {kind: {str(n): instructions(make(n)) for n in CHAINS} for kind, make in KINDS.items()}
    arms = {name: instructions(make()) for name, make in ARMS.items()}
    trees = {f"general {n}": general_chain(n) for n in (1, 8, 32)}
    trees |= {f"aligned {n}": aligned_chain(n) for n in (8, 32)}
    trees |= {name: make() for name, make in ARMS.items()}
    return {
        "chains": chains,
        "arms": arms,
        "forward dynamics": {name: forward_instructions(tree) for name, tree in trees.items()},
        "kinematics": {name: kinematic_instructions(tree) for name, tree in trees.items()},
        "paper": {str(n): counted(n) for n in CHAINS},
    }


def print_tables(results: dict) -> None:
    """Print everything that was measured and the paper's counts."""
    names = (DEFAULT, *REFERENCES)
    for title, rows in (*results["chains"].items(), ("arms", results["arms"])):
        print(f"{title + ': instructions':28}" + "".join(f"{name:>12}" for name in names))
        for row, counts in rows.items():
            print(f"{row:28}" + "".join(f"{counts[name]:12d}" for name in names))
        print()
    for title in ("forward dynamics", "kinematics"):
        columns = list(next(iter(results[title].values())))
        print(f"{title + ': instructions':28}" + "".join(f"{name:>12}" for name in columns))
        for row, counts in results[title].items():
            print(f"{row:28}" + "".join(f"{counts[name]:12d}" for name in columns))
        print()
    print("Müller 2018, section 4: operations of a chain of n bodies")
    for n, counts in results["paper"].items():
        for reference, own in counts.items():
            parts = ", ".join(f"{number} {what}" for what, number in own.items())
            print(f"{n:>4} {reference:8} {parts}")


def plot(results: dict, path: Path) -> None:
    """Instructions a body over the number of bodies, and the paper's counts a body."""
    figure, axes = plt.subplots(1, 3, figsize=(14, 4.4), layout="constrained")
    for ax, (kind, rows) in zip(axes, results["chains"].items(), strict=False):
        n = np.array([int(key) for key in rows])
        for name, style in zip(LABELS, ("ko-", "C0s-", "C1^-", "C2v-", "C3d-"), strict=True):
            ax.plot(n, [rows[str(k)][name] / k for k in n], style, label=LABELS[name])
        ax.set_xscale("log", base=2)
        ax.set_xticks(n, [str(k) for k in n])
        ax.set_ylim(bottom=0)
        ax.set_xlabel("bodies")
        ax.set_ylabel("CasADi instructions a body")
        ax.set_title(f"{kind} chain of revolute joints")
        ax.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    largest = max(results["paper"], key=int)
    paper = results["paper"][largest]
    kinds = list(dict.fromkeys(what for own in paper.values() for what in own))
    left = np.zeros(len(paper))
    for i, what in enumerate(kinds):
        width = np.array([own.get(what, 0) for own in paper.values()]) / int(largest)
        axes[2].barh(list(paper), width, left=left, label=what, color=f"C{i}")
        left += width
    axes[2].invert_yaxis()
    axes[2].set_xlabel(f"operations a body ({largest} bodies)")
    axes[2].set_ylabel("twists")
    axes[2].set_title("counted by Müller 2018")
    axes[2].set_ylim(3.9, -0.6)
    axes[2].legend(loc="lower right", fontsize=8, ncols=2)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Measure, print, and keep the numbers and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=RESULTS / "representations.json")
    options = parser.parse_args()
    results = measure()
    print_tables(results)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=1) + "\n")
    plot(results, options.json.with_suffix(".png"))


if __name__ == "__main__":
    main()
