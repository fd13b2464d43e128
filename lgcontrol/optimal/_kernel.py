"""Kernel: the interior point in C, built with the functions of one problem, and its memory."""

from __future__ import annotations

import ctypes
import hashlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import BuildError, ModelFunction
from ..codegen._internal import (
    Compiler,
    Part,
    UnsafeFolder,
    compile_policy,
    find_compiler,
    find_or_build,
    key_of,
    notice,
    unit_source,
)
from ._bounds import ROUNDING
from ._interior_point import Barrier, InteriorPoint, Point
from ._plan import GAINS, NUMBERS, Plan
from ._settings import c_settings, settings_mirror
from ._stage_model import StageModel
from ._transcription import Nodes, Setting

SOURCE = Path(__file__).with_name("_interior_point.c")
START = Path(__file__).with_name("_start.c")

SIZES = """
/* Bytes of the structs that Python mirrors: of a problem, or of the settings. */
LG_EXPORT int64_t lg_size(int64_t of_settings)
{
  return (int64_t)(of_settings ? sizeof(lg_settings) : sizeof(lg_problem));
}
"""

FREE_STATES, ROLL_OUT, REAL_TIME = 0, 1, 2
CONVERGED, ITERATIONS, STALLED, NOT_FINITE = range(4)
FRESH, RESUME, WARM = range(3)
LOG = ("cost", "stationarity", "violation", "complementarity", "step", "damping", "mu")

# Files of this room that decide what a library holds.
OWN_SOURCES = (
    "_places.py", "_weights.py", "_expressions.py", "_terms.py", "_bounds.py", "_rows.py",
    "_stage_functions.py", "_transcription.py", "_stage_model.py", "_kernel.py",
)  # fmt: skip

# Arguments that all stages have in common.
SHARED = ("p", "w", "dt")

# A row of [A B] counts as sparse where at most one entry in so many is not zero; so many rows to
# one have to be, for the sweep to treat them apart.
SPARSE = 3

# Functions of more operations than this are compiled at -O1.
LONG = 100_000

# Compiled and interpreted residuals of a random start agree to this share.
CHECK = 1e-6

_POINTER, _INTEGER, _NUMBER = ctypes.c_void_p, ctypes.c_int64, ctypes.c_double


class _Problem(ctypes.Structure):
    """``lg_problem``."""

    _fields_ = [
        ("horizon", _INTEGER),
        *((name, _POINTER) for name in "t x_ref u_ref p w w_end P arrival".split()),
        *((name, _POINTER) for name in "lower upper row equal".split()),
        *((name, _POINTER) for name in "sign limit weight active target equal_active".split()),
        ("dt", _NUMBER),
        *((name, _INTEGER) for name in "mode shift max_iterations curved resume".split()),
        *((name, _NUMBER) for name in "tolerance mu_first mu_last mu_factor mu_power".split()),
        *((name, _POINTER) for name in "x u below above slack price excess relief".split()),
        *((name, _POINTER) for name in "equal_price K rows".split()),
        *((name, _NUMBER) for name in "mu damping merit_weight best".split()),
        ("waiting", _INTEGER),
        ("idle", _INTEGER),
        ("status", _INTEGER),
        ("iterations", _INTEGER),
        *((name, _NUMBER) for name in "cost stationarity violation complementarity step".split()),
        ("keeps", _INTEGER),
        ("has_kept", _INTEGER),
        ("before", _NUMBER),
        ("log", _POINTER),
        ("set", _POINTER),
        ("work", _POINTER),
    ]


def parts_of(model: StageModel) -> list[Part]:
    """Functions that the C code calls.

    Raises
    ------
    NotImplementedError
        If they are too large to be written out.
    """
    curvature, end_curvature = model.curvature, model.end_curvature
    if curvature is None or end_curvature is None:
        return plain_parts(model)
    return [
        *plain_parts(model),
        Part("lg_end_curvature", end_curvature),
        Part("lg_curvature", curvature, SHARED),
    ]


def plain_parts(model: StageModel) -> list[Part]:
    """Those without second derivatives, which take longest to derive."""
    once = model.transcription._functions
    expansion = [Part("lg_stage", model.stage, SHARED)]
    if model.composes:
        expansion = [
            Part("lg_substep", model.substep, SHARED), Part("lg_around", model.around, SHARED)
        ]  # fmt: skip
    parts = [
        Part("lg_roll", model.roll),
        Part("lg_end", once.terminal),
        Part("lg_end_values", once.terminal_values),
        Part("lg_retract", model.retract),
        Part("lg_error", model.error),
        *expansion,
        Part("lg_values", once.stage_values, SHARED),
    ]
    if len(model.free):
        parts.append(Part("lg_arrival", model.arrival))
    return parts


def start_parts(model: StageModel) -> list[Part]:
    """Functions that the choice of a start calls besides."""
    policy = model.problem.system.policy
    parts = [Part("lg_between", model.between)]
    return parts if policy is None else [*parts, Part("lg_policy", policy)]


# Functions that an iteration calls once, or a solve: gcc's time for them is worth more than theirs.
SELDOM = {"lg_end", "lg_end_values", "lg_end_curvature", "lg_arrival", "lg_between", "lg_policy"}
# Those that take longest to write and to compile.
LARGEST = {"lg_stage", "lg_substep", "lg_around"}
# Of straight code -O1 takes two thirds of the time to compile of -O2, and with what the second
# word adds, fused multiply-add most of all, runs as quickly; -Og a half, and twice as long. What is
# written twice, constant or not read is not in there: looking for it takes a quarter of the rest.
OFTEN_LEVEL = (
    '"O1", "expensive-optimizations", "no-dse", "no-tree-dse", "no-tree-ccp", '
    '"no-tree-dominator-opts"'
)
SELDOM_LEVEL = '"Og"'


def write(model: StageModel, compiler: Compiler) -> Iterator[str]:
    """C sources of the kernel, about as long to compile each, one after the other.

    The first ones are compiled while second derivatives are taken.
    """
    heads, scratch = ["#include <stdint.h>"], 0

    def unit(parts: list[Part], level: str) -> str:
        nonlocal scratch
        text, own = unit_source(parts, compiler)
        for part in parts:
            text = text.replace(f"static void {part.name}(", f"void {part.name}(")
            head = re.search(rf"^void {part.name}\(.*\)$", text, re.M)
            assert head is not None
            heads.append(f"{head[0]};")
        scratch = max(scratch, own)
        return f"#pragma GCC optimize({level})\n{text}"

    plain = [*plain_parts(model), *start_parts(model)]
    seldom = [part for part in plain if part.name in SELDOM]
    often = [part for part in plain if part.name not in SELDOM]
    stages = [part for part in often if part.name in LARGEST]
    yield unit([part for part in often if part.name not in LARGEST], OFTEN_LEVEL)  # soonest there
    yield unit(stages, OFTEN_LEVEL)
    curvatures = parts_of(model)[len(plain_parts(model)) :]
    rest = [part for part in curvatures if part.name not in SELDOM]
    if rest:
        yield unit(rest, OFTEN_LEVEL)
    yield unit([*seldom, *(part for part in curvatures if part.name in SELDOM)], SELDOM_LEVEL)
    width = f"#define LG_W {compiler.width}\n"
    yield "\n".join([*heads, width, sizes_of(model, scratch), pattern_of(model), *_texts()])


def _texts() -> list[str]:
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE, START)]
    return [f"#include <stdint.h>\n{c_settings()}", *texts, SIZES]


def sizes_of(model: StageModel, scratch: int, *, curved: bool = True) -> str:
    """Sizes of a problem as C constants, and where its controls are."""
    problem, once = model.problem, model.transcription
    sizes = {
        "NX": model.n,
        "NQ": model.group.nq,
        "NU": problem.system.n_inputs,
        "NV": model.m,
        "NP": len(problem.nominal_parameters),
        "NR": len(model.transcription.rows.names),
        "NS": len(model.sides.row),
        "NE": len(model.sides.equal),
        "NF": len(model.free),
        "NW": len(once.path_weights),
        "NWE": len(once.end_weights),
        "LG_SCRATCH": scratch,
        "LG_CURVED": int(curved and model.curvature is not None),
        "LG_COSTS": int(bool(problem.costs)),
        "LG_POLICY": int(model.problem.system.policy is not None),
        "LG_DISCRETE": int(problem.system.is_discrete),
        "LG_ROUNDING": ROUNDING,
    }
    lines = [f"#define {name} {value}" for name, value in sizes.items()]
    for name, places in (("lg_controls", model.controls), ("lg_free", [*model.free, -1])):
        entries = ", ".join(str(int(place)) for place in places)
        lines.append(f"static const int {name}[] = {{{entries}}};")
    return "\n".join(lines)


def pattern_of(model: StageModel) -> str:
    """Which rows of ``[A B]`` hold little but zeros, as C constants, and their entries.

    Of mechanical systems those of the configuration under explicit Euler, and all of them where
    controls are accelerations.
    """
    rows, columns = np.array(model.bend_places, dtype=int).reshape(-1, 2).T
    lines = [
        *_pattern_of(model, model.stage, ""),
        f"#define LG_BEND {len(rows)}",
        *_places("bend_", rows, columns),
        f"#define LG_SUB {int(model.composes)}",
    ]
    if not model.composes:
        return "\n".join([*lines, "#define LG_TURN 0"])
    lines += [
        f"#define LG_SUBSTEPS {model.problem.substeps}",
        *_pattern_of(model, model.substep, "sub_"),
        f"#define LG_TURN {len(model.turn[0])}",
        *_places("turn_", *model.turn),
    ]
    return "\n".join(lines)


def _pattern_of(model: StageModel, function: ModelFunction, word: str) -> list[str]:
    made, n, size = function.function, model.n, model.n + model.m
    filled = np.ones((n, size), dtype=bool)
    if made.is_a("SXFunction"):
        found = ca.SX(made.call(made.sx_in())[function.results.index("F")])
        pattern = ca.sparsify(found).sparsity()
        filled = ca.DM(pattern, 1).full().T.reshape(n, size) > 0  # rows are columns of the result
    dense = np.flatnonzero(SPARSE * filled.sum(axis=1) > size)
    first, count = (int(dense[0]), int(dense[-1] - dense[0] + 1)) if len(dense) else (0, 0)
    if SPARSE * (n - count) < n:
        first, count = 0, n
    filled[first : first + count] = False
    rows, columns = np.nonzero(filled)
    of = f"LG_{word.upper()}"
    return [
        f"#define {of}SPARSE {len(rows)}",
        f"enum {{ {of}FIRST = {first}, {of}DENSE = {count} }};",
        *_places(word, rows, columns),
    ]


def _places(word: str, rows: np.ndarray, columns: np.ndarray) -> list[str]:
    lines = []
    for name, places in (("rows", rows), ("columns", columns)):
        text = ", ".join(map(str, places.tolist()))
        lines += [f"static const int lg_{word}{name}[] = {{{text}}};"] if len(places) else []
    return lines


class EntryPoints(NamedTuple):
    """Functions of a kernel.

    Attributes
    ----------
    solve, start, slope, go_back : callable
        ``lg_solve``, ``lg_start``, ``lg_slope`` and ``lg_go_back``.
    work : callable
        Numbers of work memory by horizon and sweeps for equalities.
    """

    solve: Callable[[Any, Any], int]
    start: Callable[[Any, Any, int], float]
    slope: Callable[[Any], float]
    go_back: Callable[[Any], int]
    work: Callable[[int, int], int]


def load(model: StageModel) -> EntryPoints | None:
    """Entry points of the kernel of a problem; None (said once) without one."""
    if compile_policy() == "off":
        return None
    name = f"interior point of {model.problem.system.name}"
    try:
        compiler = find_compiler()
        if compiler is None or compiler.kind == "tcc":
            notice(
                "interior point",
                "no C compiler found: the interior point runs in NumPy, some fifty times slower",
            )
            return None
        # What the functions are derived from stands for them: deriving takes as long as all else.
        identity = model.transcription.identity
        if identity is None:
            identity = _identity_of_parts(model)

        def sizes() -> list[int]:
            plain = [*plain_parts(model), *start_parts(model)]
            return [part.function.program.operations for part in plain]

        def flags() -> list[list[str]]:
            longest = max(sizes())
            return [compiler.flags(longest if longest > LONG else 0, True)]

        content = [
            *_texts(),
            _sources(),
            sizes_of(model, 0, curved=False),
            f"{model.problem.method} {model.problem.substeps} {model.curved}",
            f"{model.controls.tolist()}",
            f"{model.settings.hessian_operations} {model.settings.hessian_operations_exact}",
            identity,
        ]

        def about() -> dict[str, Any]:
            longest = max(sizes())  # second derivatives are about as long
            written = sum(sizes()) + (longest if model.curved else 0)
            return {"function": name, "operations": longest, "written": 2 * written}

        found, _ = find_or_build(
            key_of(compiler, compiler.flags(0, True), content),
            compiler,
            flags,
            write=lambda: write(model, compiler),
            load=lambda path: _open(path, model),
            check=lambda entries: _difference(model, entries),
            about=about,
        )
    except (BuildError, OSError, UnsafeFolder, NotImplementedError) as error:
        notice(name, f"the {name} runs in NumPy: {error}")
        return None
    return found


def _identity_of_parts(model: StageModel) -> str:
    """Text of the functions themselves, but for second derivatives, which follow from the rest."""
    parts = [*plain_parts(model), *start_parts(model)]
    programs = [part.function.program for part in parts]
    if any(program.flat is None for program in programs):
        raise NotImplementedError("its functions are too large for one source")
    named = zip(parts, programs, strict=True)
    return "\n".join(f"{part.name} {part.shared} {program.identity}" for part, program in named)


@cache
def _sources() -> str:
    """Hash of the code that derives the functions of a problem from what it states."""
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    rooms = (SOURCE.parents[1] / room for room in ("codegen", "groups", "integrators", "systems"))
    own = [SOURCE.with_name(name) for name in OWN_SOURCES]
    for path in [*(path for room in rooms for path in sorted(room.glob("*.py"))), *own]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _open(path: Path, model: StageModel) -> EntryPoints:
    library = ctypes.CDLL(str(path))
    solve, start, work = library["lg_solve"], library["lg_start"], library["lg_work"]
    slope, go_back = library["lg_slope"], library["lg_go_back"]
    slope.argtypes, slope.restype = [_POINTER], _NUMBER
    go_back.argtypes, go_back.restype = [_POINTER], ctypes.c_int
    solve.argtypes, solve.restype = [_POINTER, _POINTER], ctypes.c_int
    start.argtypes, start.restype = [_POINTER, _POINTER, _INTEGER], _NUMBER
    work.argtypes, work.restype = [_INTEGER, _INTEGER], _INTEGER
    size = library["lg_size"]
    size.argtypes, size.restype = [_INTEGER], _INTEGER
    for k, mirror in enumerate((_Problem, type(settings_mirror(model.settings)))):
        if size(k) != ctypes.sizeof(mirror):
            raise BuildError(
                f"{mirror.__name__} has {ctypes.sizeof(mirror)} bytes in Python and {size(k)} in C"
            )
    return EntryPoints(solve, start, slope, go_back, work)


def _difference(model: StageModel, entries: EntryPoints) -> str | None:
    """What the kernel makes of a random start, compared with NumPy: one step of free states."""
    problem, system, N = model.problem, model.problem.system, model.problem.horizon
    rng = np.random.default_rng(0)
    x_ref = np.repeat(system.home[None], N + 1, axis=0)
    u_ref = np.repeat(system.nominal_input[None], N + 1, axis=0)
    p, weight = problem.nominal_parameters, np.eye(model.n)
    setting = Setting(x_ref, u_ref, p, weight, weight, problem.input_limits.at(p))
    moves = 0.1 * rng.normal(size=(N + 1, model.n))
    nodes = Nodes(problem.times(), model.retract(x_ref, moves, setting.p), u_ref[:-1].copy())
    memory = Memory(model, entries, 1)
    memory.give(setting, nodes.t)
    memory.arrays["x"][:], memory.arrays["u"][:] = nodes.x, nodes.u
    barrier = Barrier.of_rollouts(model.settings, model.settings.barrier_least)
    with np.errstate(all="ignore"):
        memory.run(nodes.x[0], FREE_STATES, max_iterations=0, barrier=barrier)
        first, mu = nodes.x[0], barrier.first
        point = InteriorPoint(model, setting, nodes, first, mu, is_feasible=False)
        found = point.expand()
        if point.start_lower():
            found = point.expand()
        want = np.array([*found, point.expansion.cost])
    log = dict(zip(LOG, memory.arrays["log"][0], strict=True))
    have = np.array([log["stationarity"], log["violation"], log["complementarity"], log["cost"]])
    if not np.isfinite(want).all() or np.allclose(have, want, rtol=CHECK, atol=CHECK):
        return None
    return f"differs from NumPy at a random start: {have} instead of {want}"


class Memory:
    """What a kernel works on: settings to write, the iterate, and results; for one thread.

    Parameters
    ----------
    model : StageModel
    entries : EntryPoints
    most : int
        Iterations that the log holds.
    """

    def __init__(self, model: StageModel, entries: EntryPoints, most: int) -> None:
        problem, self.most = model.problem, most
        self._entries = entries
        count = entries.work(problem.horizon, model.settings.equality_sweeps_most)
        memory = np.zeros(count + 8)
        start = -memory.ctypes.data % 64 // 8
        shapes, constants = self.shapes(model, most), self.constants(model)
        arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in shapes.items()}
        self.layout = model.plan_layout
        self._column = np.zeros(self.layout.size)
        self._names = tuple(model.iterate_shapes)
        for name in self._names:
            place, shape = self.layout.places[name]
            arrays[name] = self._column[place].reshape(shape)
        self._put = Struct(f"{len(NUMBERS)}d").pack_into  # a third of the time of NumPy
        self._start_of_numbers = 8 * self.layout.places[NUMBERS[0]][0].start
        for name, value in constants.items():
            kind = np.int64 if name in ("row", "equal") else np.float64
            arrays[name] = np.array(value, dtype=kind, order="C")
        arrays["work"] = memory[start:]
        self.arrays = arrays
        self.start = np.zeros(model.group.nq)
        self._settings = settings_mirror(model.settings)
        self.about = _Problem(
            horizon=problem.horizon, dt=problem.dt, set=ctypes.addressof(self._settings)
        )
        for name, array in arrays.items():
            setattr(self.about, name, array.ctypes.data)
        self._address = ctypes.addressof(self.about)
        self._start = self.start.ctypes.data
        self._keep = memory
        self._held: Point | Plan | None = None  # what the arrays of the iterate say
        self._given: Setting | None = None  # and those of the setting
        self._wanted: tuple[Any, ...] = ()  # and how the last run was to go

    @staticmethod
    def constants(model: StageModel) -> dict[str, Any]:
        """Arrays that a problem fixes."""
        once, sides = model.transcription, model.sides
        return {
            "w": once.path_weights, "w_end": once.end_weights, "row": sides.row,
            "equal": sides.equal, "sign": sides.sign, "limit": sides.limit,
            "weight": sides.weight, "active": sides.active, "target": sides.target,
            "equal_active": sides.equal_active,
        }  # fmt: skip

    @staticmethod
    def shapes(model: StageModel, most: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the others, with a log of so many iterations."""
        problem, n, N = model.problem, model.n, model.problem.horizon
        return {
            "t": (N + 1,), "x_ref": (N + 1, model.group.nq),
            "u_ref": (N + 1, problem.system.n_inputs),
            "p": problem.nominal_parameters.shape, "P": (n, n), "arrival": (n, n),
            "lower": (model.m,), "upper": (model.m,),
            "log": (most + model.settings.steps_more + 1, len(LOG)),
            **model.iterate_shapes,
        }  # fmt: skip

    def keep(self) -> tuple[Point, np.ndarray, np.ndarray]:
        """Copies of the iterate, of gains (N, m, n) and of rows."""
        *values, K, rows = [self.arrays[name].copy() for name in self._names]
        self._held = point = Point(*values)
        return point, K.transpose(0, 2, 1), rows

    def plan(self, t: float, cost: float, mu_most: float, *, is_penalised: bool) -> Plan:
        """The plan that the arrays hold, from a time on."""
        about = self.about
        own = t, about.mu, about.step, cost, float(is_penalised), mu_most, float(GAINS)
        self._put(self._column.data, self._start_of_numbers, *own)
        self._held = plan = Plan._taking(self.layout, self._column.copy(), _head=own)
        return plan

    def says(self, point: Point, plan: Plan) -> None:
        """Note that the arrays hold a plan, where they hold the point that it is of."""
        if self._held is point:
            self._held = plan

    def holds(self, plan: Plan, setting: Setting) -> bool:
        """Whether the arrays hold a plan, for that setting."""
        return plan is self._held and setting is self._given

    def take(self, plan: Plan) -> None:
        """Write a plan, unless it is what the last run left."""
        if plan is not self._held:
            self._column[:] = plan.numbers

    def give(self, setting: Setting, t: np.ndarray) -> None:
        """Write what a solve is given."""
        arrays = self.arrays
        arrays["t"][:] = t
        if setting is self._given:
            return
        arrays["x_ref"][:], arrays["u_ref"][:] = setting.x_ref, setting.u_ref
        arrays["p"][:], arrays["P"][:] = setting.p, setting.terminal
        arrays["arrival"][:] = setting.arrival
        arrays["lower"][:], arrays["upper"][:] = setting.box.lower, setting.box.upper
        self._given = setting

    def run(
        self,
        x0: np.ndarray,
        mode: int,
        *,
        max_iterations: int,
        barrier: Barrier,
        tolerance: float = 0.0,
        shift: bool = False,
        curved: bool = True,
        resume: int = FRESH,
    ) -> int:
        """Solve from what the arrays hold; returns the status."""
        about, self._held = self.about, None
        self.start[:] = x0
        wanted = mode, shift, curved, resume, min(max_iterations, self.most), tolerance, barrier
        if wanted != self._wanted:
            about.mode, about.shift, about.curved, about.resume = wanted[:4]
            about.max_iterations, about.tolerance = wanted[4:6]
            about.mu_first, about.mu_last, about.mu_factor, about.mu_power = barrier
            self._wanted = wanted
        return self._entries.solve(self._address, self._start)

    def go_back(self) -> bool:
        """To the last iterate of real-time steps that kept hard rows, if they left that."""
        return bool(self.about.has_kept and self._entries.go_back(self._address))

    def slope(self, nodes: Nodes, setting: Setting) -> float:
        """The largest slope of the cost at nodes, which the arrays hold afterwards."""
        self._held = None
        self.give(setting, nodes.t)
        self.arrays["x"][:], self.arrays["u"][:] = nodes.x, nodes.u
        return self._entries.slope(self._address)

    def choose_start(self, x0: np.ndarray, which: int) -> float:
        """Nodes of the cheapest of some starts, to the arrays; returns their largest gap."""
        self.start[:], self._held = x0, None
        return self._entries.start(self._address, self._start, which)
