"""Trees of 16 to 256 bodies: what code grows by, and how long everything takes."""

import time
from typing import Any

import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.mechanics import Multibody, SpatialInertia
from tests.benchmarks._speed_peers import PinocchioTree
from tests.benchmarks._timing import Contender, measure

SIZES = (16, 32, 64, 128, 256)
# Relative; answers of long chains to forces amplify rounding by the condition of their mass matrix.
AGREEMENT = {"inverse_dynamics": 1e-9, "mass_matrix": 1e-9, "forward_dynamics": 1e-5}
FUNCTIONS = (
    "inverse_dynamics",
    "mass_matrix",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)


def chain_of(count: int) -> Multibody:
    """A chain of revolute joints about x, y, z in turn."""
    return _tree(count, lambda k: k - 1, [("revolute", {"axis": axis}) for axis in "xyz"])


def branched_of(count: int) -> Multibody:
    """A free body that carries two bodies, each of which carries two, …; joints of four kinds."""
    kinds = [
        ("free", {}),
        ("revolute", {"axis": "x"}),
        ("prismatic", {"axis": "y"}),
        ("revolute", {"axis": (1.0, 2.0, 3.0)}),
        ("spherical", {}),
    ]
    tree = _tree(1, lambda k: -1, kinds[:1])
    return _tree(count, lambda k: (k - 1) // 2, kinds[1:], tree)


TREES = {"chain": chain_of, "branched": branched_of}


def _tree(count: int, parent: Any, kinds: Any, tree: Multibody | None = None) -> Multibody:
    tree = tree or Multibody()
    for k in range(len(tree.bodies), count):
        kind, options = kinds[k % len(kinds)]
        tree = tree.add_body(
            f"b{k}",
            SpatialInertia.box(1.0 + k % 3, (0.1, 0.2, 0.3), (0.01, 0.02, 0.03)),
            kind,
            parent="world" if parent(k) < 0 else f"b{parent(k)}",
            placement=[0.1, 0.02, 0.3],
            **options,
        )
    return tree


def large_trees(pin: Any, rounds: int, sizes: tuple[int, ...]) -> dict[str, Any]:
    """Sizes and times by tree and function; times of the chains next to Pinocchio's."""
    rows: dict[str, Any] = {}
    for kind, make in TREES.items():
        for count in sizes:
            tree = make(count)
            chain = kind == "chain"
            peer = PinocchioTree.chain(pin, tree) if pin and chain else None
            for name in FUNCTIONS:
                rows[f"{kind} {count} {name}"] = _row(tree, name, peer, rounds)
            print(f"  {kind} of {count}", flush=True)
    return rows


def _row(tree: Multibody, name: str, peer: Any, rounds: int) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    started = time.perf_counter()
    traced = getattr(tree, name)
    seconds = time.perf_counter() - started
    function = ModelFunction(traced.function)
    started = time.perf_counter()
    function.compiled(batch=False)
    compiled = time.perf_counter() - started
    program, kernel = function.program, function._backend.scalar
    if kernel is None:
        raise SystemExit(f"{name} could not be compiled")
    arguments = [
        tree.configuration.random(rng) if key == "q" else rng.normal(size=shape)
        for key, shape in zip(function.arguments, function.argument_shapes, strict=True)
    ]
    call = function.in_place()
    for key, value in zip(function.arguments, arguments, strict=True):
        call.inputs[key][...] = value
    contenders = [Contender("compiled", call)]
    if peer is not None:
        theirs = peer.value(name, arguments)
        if theirs is not None:
            off = np.abs(np.asarray(call()) - theirs).max() / np.abs(theirs).max()
            if not off < AGREEMENT[name]:
                raise SystemExit(f"{name}: ours and Pinocchio's differ by {off:.2g}")
        contenders.append(Contender("pinocchio", peer.call(name, [a[None] for a in arguments])))
    return {
        "nv": tree.nv,
        "loops": program.tape is not None,
        "operations": program.operations,
        "operations written": program.written,
        "bytes": kernel.path.stat().st_size,
        "trace s": seconds,
        "build s": compiled,
        **measure(contenders, reference="pinocchio", rounds=rounds),
    }
