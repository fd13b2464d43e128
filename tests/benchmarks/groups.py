"""Accuracy of group operations and of their first and second derivatives, next to other programs.

    python -m tests.benchmarks.groups [--directions 2] [--json FILE]

Each operation is evaluated at rotation angles from 1e-12 to π and compared with eighty-digit
references (`_group_reference`). The table shows the largest error over the angles, relative to the
norm of the reference, and the angle where it occurs. jaxlie, liecasadi and Pinocchio are measured
when they are installed. The exit code is 1 if ours misses a bound.
"""

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol import groups

if not __package__:  # run by its path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.benchmarks._group_reference import REFERENCES, derivatives

# Normwise relative error of value, first and second derivative that ours must keep.
BOUNDS = (5e-15, 5e-14, 1e-12)

OPERATIONS = (
    "exp",
    "log",
    "right_jacobian",
    "left_jacobian",
    "right_jacobian_inverse",
    "left_jacobian_inverse",
)

# Decades near zero and near π, both sides of the switches at 0.48 and one, and points between.
ANGLES = tuple(
    np.unique(
        np.concatenate(
            [
                10.0 ** np.arange(-12, 0),
                [0.3, 0.47, 0.48, 0.49, 0.7, 0.9, 1.2, 1.5, 2.0, 2.5, 3.0],
                1.0 + np.array([-1e-2, -1e-6, -1e-15, 0.0, 1e-15, 1e-6, 1e-2]),
                np.pi - 10.0 ** np.arange(-12, 0, 2),
                [np.pi],
            ]
        )
    )
)

Jet = list[np.ndarray]  # value, first and second derivative; derivative axes last


def sample(group: groups.LieGroup, angle: float, rng: np.random.Generator) -> np.ndarray:
    """Tangent vector with a rotation by an angle and a linear part of order one."""
    d = rng.normal(size=group.dim)
    turns = [i for i, unit in enumerate(group.tangent_units) if unit == "rad"]
    d[turns] *= angle / np.linalg.norm(d[turns])
    return d


def argument(group: groups.LieGroup, operation: str, d: np.ndarray) -> np.ndarray:
    """What the operation is evaluated at: log takes the element, the others the vector."""
    return group.exp(d) if operation == "log" else d


def relative_errors(ours: Jet, reference: Jet) -> list[float]:
    pairs = zip(ours, reference, strict=False)  # a library may lack derivatives
    return [float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in pairs]


# -- ours and the peers: each maker returns a function from the argument to a jet, or None ---------


@cache
def lgcontrol(name: str, operation: str) -> Callable[[np.ndarray], Jet] | None:
    group = getattr(groups, name)
    return casadi_jet(getattr(group, operation), group.nq if operation == "log" else group.dim)


def casadi_jet(function: Callable, size: int) -> Callable[[np.ndarray], Jet]:
    x = ca.SX.sym("x", size)
    value = ca.densify(function(x))
    first = ca.jacobian(ca.vec(value), x)
    second = ca.jacobian(ca.vec(first), x)
    jet = ca.Function("jet", [x], [ca.densify(ca.vec(e)) for e in (value, first, second)])
    shape = value.shape if value.shape[1] > 1 else value.shape[:1]

    def evaluate(at: np.ndarray) -> Jet:
        flat = [np.asarray(e).ravel() for e in jet(at)]
        return [e.reshape((*shape, *(size,) * order), order="F") for order, e in enumerate(flat)]

    return evaluate


@cache
def liecasadi(name: str, operation: str) -> Callable[[np.ndarray], Jet] | None:
    from liecasadi import SE3, SO3, SE3Tangent, SO3Tangent

    makers = {
        ("SO3", "exp"): (lambda d: SO3Tangent(d).exp().as_quat().coeffs(), 3),
        ("SO3", "log"): (lambda X: SO3(X).log().vec, 4),
        ("SE3", "exp"): (lambda d: pose(SE3Tangent(d).exp()), 6),
        ("SE3", "log"): (lambda X: SE3(pos=X[:3], xyzw=X[3:]).log().vec, 7),
    }

    def pose(X):
        return ca.vertcat(X.pos, X.xyzw)

    maker = makers.get((name, operation))
    return casadi_jet(*maker) if maker else None


@cache
def jaxlie(name: str, operation: str) -> Callable[[np.ndarray], Jet] | None:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import jaxlie as jl

    if name not in ("SO3", "SE3", "SE2"):
        return None
    group = getattr(jl, name)
    # our coordinates -> theirs: quaternions are scalar first and come before positions
    theirs = {"SO3": [3, 0, 1, 2], "SE3": [6, 3, 4, 5, 0, 1, 2], "SE2": [2, 3, 0, 1]}[name]
    ours = np.argsort(theirs)
    functions = {
        "exp": lambda d: group.exp(d).parameters()[ours],
        "log": lambda X: group(X[jnp.array(theirs)]).log(),
        "right_jacobian_inverse": lambda d: group.exp(d).jlog(),
    }
    if operation not in functions:
        return None
    function = functions[operation]
    jet = [jax.jit(f) for f in (function, jax.jacfwd(function), jax.jacfwd(jax.jacfwd(function)))]
    return lambda at: [np.asarray(f(jnp.asarray(at))) for f in jet]


@cache
def pinocchio(name: str, operation: str) -> Callable[[np.ndarray], Jet] | None:
    import pinocchio as pin

    functions = {
        ("SO3", "exp"): lambda d: pin.exp3_quat(d),
        ("SO3", "log"): lambda X: pin.log3(pin.Quaternion(X).matrix()),
        ("SO3", "right_jacobian"): lambda d: pin.Jexp3(d),
        ("SO3", "right_jacobian_inverse"): lambda d: pin.Jlog3(pin.exp3(d)),
        ("SE3", "exp"): lambda d: pin.exp6_quat(d),
        ("SE3", "log"): lambda X: pin.log6_quat(X).vector,
        ("SE3", "right_jacobian"): lambda d: pin.Jexp6(d),
        ("SE3", "right_jacobian_inverse"): lambda d: pin.Jlog6(pin.exp6(d)),
    }
    function = functions.get((name, operation))
    return None if function is None else lambda at: [np.asarray(function(at))]


LIBRARIES = {
    "lgcontrol": lgcontrol,
    "jaxlie": jaxlie,
    "liecasadi": liecasadi,
    "pinocchio": pinocchio,
}
DISTRIBUTIONS = {"lgcontrol": "lgcontrol", "pinocchio": "pin"}


def measure(
    libraries: list[str],
    names: list[str] | tuple[str, ...] = tuple(REFERENCES),
    angles: tuple[float, ...] = ANGLES,
    directions: int = 1,
    seed: int = 0,
) -> list[dict]:
    """Errors of every operation at every angle, a dictionary each."""
    rng = np.random.default_rng(seed)
    rows = []
    for name in names:
        group = getattr(groups, name)
        for operation in OPERATIONS:
            jets = {library: LIBRARIES[library](name, operation) for library in libraries}
            for angle in np.repeat(angles, directions):
                at = argument(group, operation, sample(group, angle, rng))
                reference = derivatives(getattr(REFERENCES[name], operation), at)
                for library, jet in jets.items():
                    if jet is None:
                        continue
                    for order, error in enumerate(relative_errors(jet(at), reference)):
                        rows.append(
                            {
                                "library": library,
                                "group": name,
                                "operation": operation,
                                "derivative": order,
                                "angle": float(angle),
                                "error": error,
                            }
                        )
    return rows


def worst(rows: list[dict]) -> dict[tuple[str, str, int, str], dict]:
    """Row with the largest error for each (group, operation, derivative, library); NaN is worst."""
    found: dict[tuple[str, str, int, str], dict] = {}
    for row in rows:
        key = (row["group"], row["operation"], row["derivative"], row["library"])
        if key not in found or not row["error"] <= found[key]["error"]:
            if key not in found or not np.isnan(found[key]["error"]):
                found[key] = row
    return found


def table(rows: list[dict], libraries: list[str]) -> str:
    largest = worst(rows)
    lines = [f"{'':<44}" + "".join(f"{library:>24}" for library in libraries)]
    for group, operation, order in dict.fromkeys(key[:3] for key in largest):
        label = f"{group} {operation} " + ("", "first", "second")[order]
        cells = (largest.get((group, operation, order, library)) for library in libraries)
        lines.append(
            f"{label:<44}"
            + "".join(
                f"{c['error']:>11.1e} at {c['angle']:<9.4g}" if c else f"{'–':>24}" for c in cells
            )
        )
    return "\n".join(lines)


def missed_bounds(rows: list[dict]) -> list[str]:
    return [
        f"{group} {operation} derivative {order}: {row['error']:.1e} > {BOUNDS[order]:.0e} "
        f"at {row['angle']!r}"
        for (group, operation, order, library), row in worst(rows).items()
        if library == "lgcontrol" and not row["error"] <= BOUNDS[order]
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--directions", type=int, default=1, help="random axes for each angle")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all errors here")
    options = parser.parse_args()
    present = [name for name in LIBRARIES if importlib.util.find_spec(name)]
    for name in LIBRARIES:
        if name not in present:
            print(f"{name} is not installed: its column is left out")
    rows = measure(present, directions=options.directions)
    print(table(rows, present))
    failures = missed_bounds(rows)
    print("\n".join(failures) or f"lgcontrol keeps its bounds {BOUNDS}")
    if options.json:
        versions = {name: version(DISTRIBUTIONS.get(name, name)) for name in present[1:]}
        report = {"bounds": BOUNDS, "versions": versions, "worst": [*worst(rows).values()]}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
