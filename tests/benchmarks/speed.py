"""Speed of compiled functions next to other programs: trees, a single body, rollouts, calls.

    python -m tests.benchmarks.speed [--robots FOLDER] [--rounds 15] [--quick] [--out FOLDER]

Trees: time of one evaluation of ours in a batch of 256 (one thread), item after item without
vectors, in a single call from Python with arrays and in place, and of Pinocchio called from Python
into preallocated data; same random inputs, in turns, medians. The ratios are Pinocchio's time over
ours in the same turn. "generic" is code without ``-march=native``, as a wheel would hold it.
Trees of 16 to 256 bodies: operations, size of the library, times to trace, build and evaluate.
Pinocchio and MuJoCo are left out where they are not installed (`pip install lgcontrol[bench]`).
Robot files are those of ``$LGCONTROL_SHARED/robots`` or ``../shared/robots``. Writes speed.json and
speed.png.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if not __package__:  # run by its path
    sys.path.insert(0, str(ROOT))
from lgcontrol.codegen import ModelFunction, chain, compile, set_threads  # noqa: E402
from lgcontrol.codegen import _kernel as kernels  # noqa: E402
from lgcontrol.codegen._compiler import find_compiler  # noqa: E402
from lgcontrol.codegen._internal import thread_count  # noqa: E402
from lgcontrol.groups import SE3  # noqa: E402
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia  # noqa: E402
from lgcontrol.models import quadrotor  # noqa: E402
from tests.benchmarks._speed_large import SIZES, large_trees  # noqa: E402
from tests.benchmarks._speed_peers import (  # noqa: E402
    PinocchioTree,
    find,
    mujoco_quadrotor,
    mujoco_rollout,
)
from tests.benchmarks._speed_report import plot, print_tables  # noqa: E402
from tests.benchmarks._timing import Contender, measure  # noqa: E402

BATCH = 256
FUNCTIONS = (
    "inverse_dynamics",
    "mass_matrix",
    "forward_dynamics",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)
# File, base, joints that are held (a gripper's fingers).
ROBOTS = {
    "ur5": ("ur5_robot.urdf", "fixed", {}),
    "panda": ("panda.urdf", "fixed", {"panda_finger_joint1": 0.0}),
    "hyq": ("hyq_no_sensors.urdf", "free", {}),
    "solo12": ("solo12.urdf", "free", {}),
    "talos": ("talos_reduced.urdf", "free", {}),
}
AGREEMENT = 1e-9  # relative; a wrong comparison would be of different bodies


@contextmanager
def generic_code() -> Iterator[None]:
    """Compile for any processor of this kind within the block."""
    native = find_compiler()
    if native is None:
        yield
        return
    # Every x86-64 and ARM processor of 64 bits has vectors of two doubles.
    plain = replace(
        native, native=(), width=min(2, native.width), identity=f"{native.identity} any"
    )
    kernels.find_compiler = lambda: plain
    try:
        yield
    finally:
        kernels.find_compiler = find_compiler


def random_arguments(function: ModelFunction, tree: Multibody, count: int) -> list[np.ndarray]:
    """Inputs with configurations on the group."""
    rng = np.random.default_rng(6)
    return [
        tree.configuration.random(rng, (count,))
        if name == "q"
        else rng.normal(size=(count, *shape))
        for name, shape in zip(function.arguments, function.argument_shapes, strict=True)
    ]


def in_place(function: ModelFunction, arguments: list[np.ndarray]) -> Any:
    """Call with the arguments written into its memory."""
    count = len(arguments[0])
    call = function.in_place(None if count == 1 else count)
    for name, value in zip(function.arguments, arguments, strict=True):
        call.inputs[name][...] = value[0] if count == 1 else value
    return call


def contenders_for(function: ca.Function, arguments: list[np.ndarray]) -> list[Contender]:
    """Ours in all its forms."""
    native = compile(ModelFunction(function))
    scalar = compile(ModelFunction(function), batch=False)
    with generic_code():
        generic = compile(ModelFunction(function))
    first = [a[:1] for a in arguments]
    values = [a[0] for a in arguments]
    return [
        Contender("batch", in_place(native, arguments), BATCH),
        Contender("batch generic", in_place(generic, arguments), BATCH),
        Contender("scalar batch", in_place(scalar, arguments), BATCH),
        Contender("call in place", in_place(native, first)),
        Contender("call", lambda: native(*values)),
    ]


def trees(folder: Path, pin: Any, rounds: int, names: list[str]) -> dict[str, Any]:
    """Times of the tree functions of all robots."""
    rows: dict[str, Any] = {}
    for robot in names:
        file, base, held = ROBOTS[robot]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # findings of the files, which do not matter here
            tree = Multibody.from_urdf(folder / file, base=base)
        tree = tree.lock(**held) if held else tree
        # Pinocchio's algorithms know no damping or friction of joints.
        tree = tree.with_properties(
            **{name: JointProperties() for name in tree.joints if name != "root_joint"}
        )
        peer = PinocchioTree.from_file(pin, str(folder / file), tree) if pin else None
        for name in FUNCTIONS:
            function = getattr(tree, name)
            arguments = random_arguments(function, tree, BATCH)
            row = {"nv": tree.nv, "operations": function.program.operations}
            contenders = contenders_for(function.function, arguments)
            if peer is not None:
                check_same(peer, function, arguments)
                contenders.append(Contender("pinocchio", peer.call(name, arguments), BATCH))
            row |= measure(contenders, reference="pinocchio", rounds=rounds)
            rows[f"{robot} {name}"] = row
            print(f"  {robot} {name}", flush=True)
    return rows


def check_same(peer: PinocchioTree, function: ModelFunction, arguments: list[np.ndarray]) -> None:
    """Refuse to compare programs that compute different things."""
    item = [a[0] for a in arguments]
    theirs = peer.value(function.name, item)
    if theirs is None:
        return
    ours = np.asarray(function(*item))
    off = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
    if not off < AGREEMENT:
        raise SystemExit(f"{function.name}: ours and Pinocchio's differ by {off:.2g}")


def single_body(pin: Any, rounds: int) -> dict[str, Any]:
    """Forward dynamics and its derivatives of one free body."""
    inertia = SpatialInertia.box(2.0, (0.1, 0.2, 0.3), (0.01, 0.02, 0.03))
    tree = Multibody("single").add_body("root_joint", inertia, SE3)
    peer = PinocchioTree.free_body(pin, tree) if pin else None
    rows = {}
    for name in ("forward_dynamics", "forward_dynamics_derivatives"):
        function = getattr(tree, name)
        arguments = random_arguments(function, tree, BATCH)
        contenders = contenders_for(function.function, arguments)
        if peer is not None:
            check_same(peer, function, arguments)
            contenders.append(Contender("pinocchio", peer.call(name, arguments), BATCH))
        rows[f"body {name}"] = {
            "nv": 6,
            "operations": function.program.operations,
            **measure(contenders, reference="pinocchio", rounds=rounds),
        }
    return rows


def rollouts(mujoco: Any, rounds: int, quick: bool) -> dict[str, float]:
    """Steps per second of a quadrotor, Munthe-Kaas order 4, on one core."""
    system = quadrotor()
    dt, steps = 0.01, 1000
    step = system.step("rk4")
    hover = system.trim(position=[0, 0, 1])
    one = chain(step, steps, carry=("x", "x_next"), each=[]).compiled().in_place()
    for name, value in (("x", hover.x), ("u", hover.u), ("dt", dt)):
        one.inputs[name][...] = value
    starts, short = (1000 if quick else 10_000), 100
    many = chain(step, short, carry=("x", "x_next"), each=[]).compiled()
    rng = np.random.default_rng(2)
    x0 = np.broadcast_to(hover.x, (starts, len(hover.x))).copy()
    x0[:, :7] = SE3.random(rng, (starts,))

    def batch() -> Any:
        return many(0.0, x0, hover.u, system.nominal_parameters, dt)

    def on_one_thread() -> None:
        set_threads(1)
        batch()
        set_threads(None)

    contenders = [
        Contender("one start", one, steps),
        Contender("many starts, one thread", on_one_thread, starts * short),
        Contender("many starts", batch, starts * short),
    ]
    if mujoco:
        model = mujoco_quadrotor(mujoco, 0.716, np.array([0.007, 0.007, 0.012]), dt)
        data = mujoco.MjData(model)
        data.ctrl[:] = 0.716 * 9.81 / 4

        def theirs() -> None:
            for _ in range(100):
                mujoco.mj_step(model, data)

        contenders.append(Contender("mujoco, calls of mj_step", theirs, 100))
        contenders.append(Contender("mujoco, rollout", mujoco_rollout(model, data, 1000), 1000))
    times = measure(contenders, rounds=max(5, rounds // 3), seconds=0.02)
    return {name: 1e6 / time for name, time in times.items()}


def calls(rounds: int) -> dict[str, float]:
    """Microseconds of a call of next to nothing: three arguments of seven numbers, their sum."""
    a, b, c = (ca.SX.sym(name, 7) for name in "abc")
    plain = ca.Function("sum", [a, b, c], [a + b + c], ["a", "b", "c"], ["d"])
    function = compile(plain)
    values = [np.ones(7) for _ in range(3)]
    small = [np.ones((8, 7)) for _ in range(3)]
    buffer, evaluate = plain.buffer()
    for i, value in enumerate(values):
        buffer.set_arg(i, memoryview(value))
    result = np.zeros(7)
    buffer.set_res(0, memoryview(result))
    return measure(
        [
            Contender("with arrays", lambda: function(*values)),
            Contender("in place", function.in_place()),
            Contender("batch of 8", lambda: function(*small)),
            Contender("batch of 8 in place", function.in_place(8)),
            Contender("casadi with arrays", lambda: plain(*values)),
            Contender("casadi buffer", evaluate),
        ],
        rounds=rounds,
    )


BUILD = """
import time, warnings
from lgcontrol.mechanics import Multibody
from lgcontrol.codegen import compile
warnings.simplefilter("ignore")
tree = Multibody.from_urdf({path!r}).lock(panda_finger_joint1=0.0)
functions = [getattr(tree, name) for name in {names!r}]
start = time.perf_counter()
compile(functions)
print(time.perf_counter() - start)
"""


def build_times(folder: Path) -> dict[str, float]:
    """Seconds to compile the Panda's functions, cold and from the cache; and to import."""
    code = BUILD.format(path=str(folder / ROBOTS["panda"][0]), names=FUNCTIONS)
    with tempfile.TemporaryDirectory() as cache:
        cold = _run(code, LGCONTROL_CACHE=cache)
        cached = min(_run(code, LGCONTROL_CACHE=cache) for _ in range(3))
    code = (
        "import time; s = time.perf_counter(); import lgcontrol; lgcontrol.Multibody;"
        "lgcontrol.System; lgcontrol.simulate; print(time.perf_counter() - s)"
    )
    return {
        "panda set, cold": cold,
        "panda set, cached": cached,
        "import, with simulate": min(_run(code) for _ in range(5)),
    }


def _run(code: str, **environment: str) -> float:
    paths = os.pathsep.join([str(ROOT), *sys.path])
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(answer.stdout.split()[-1])


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    shared = os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared"
    parser.add_argument("--robots", type=Path, default=Path(shared) / "robots")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each contender (15)")
    parser.add_argument("--quick", action="store_true", help="arms only, fewer turns")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    rounds = 5 if options.quick else options.rounds
    compiler = find_compiler()
    if compiler is None:
        raise SystemExit("no C compiler: there is nothing to measure")
    pin, mujoco = find("pinocchio"), find("mujoco")
    results: dict[str, Any] = {
        "versions": {name: _version(name) for name in ("casadi", "numpy", "pin", "mujoco")},
        "compiler": compiler.kind,
        "doubles in a vector": compiler.width,
        "threads": thread_count(),
        "load of the machine": os.getloadavg()[0],  # above 1, others compute at the same time
        "calls": calls(rounds),
        "rollouts": rollouts(mujoco, rounds, options.quick),
        "trees": single_body(pin, rounds),
    }
    sizes = SIZES[:2] if options.quick else SIZES
    results["large trees"] = large_trees(pin, max(5, rounds // 3), sizes)
    if options.robots.is_dir():
        names = ["ur5", "panda"] if options.quick else list(ROBOTS)
        results["trees"] |= trees(options.robots, pin, rounds, names)
        results["builds"] = build_times(options.robots)
    else:
        print(f"no robot files at {options.robots}: trees are left out")
    print_tables(results)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "speed.json").write_text(json.dumps(_rounded(results), indent=1) + "\n")
    plot(results, options.out / "speed.png")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


if __name__ == "__main__":
    main()
