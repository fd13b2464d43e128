"""Machine code of the planning kernel (prebuilt, or built once a machine) and of stages."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import ModelFunction
from ...codegen._internal import (
    Compiler,
    Part,
    build_seconds,
    compile_policy,
    find_compiler,
    find_or_tell,
    interpreting_seconds,
    joined_source,
    key_of,
    meanwhile,
    notice,
    unit_source,
)
from .._settings import Settings
from .._stage_model import StageModel
from ._interpreter import LANES, Called, Interpreted, interpreter_source
from ._prebuilt import file_of, level_of_this_processor
from ._table import CHANGE as CHANGE_TABLE
from ._table import LOOP as LOOP_TABLE
from ._table import MODEL, Function, Loop, Model, Numbers, Task, header

# Read once: libraries of one process are of one text, even where the files change meanwhile.
SHARED_TEXT, SWEEP, START, BIAS, LOOP, CHANGE, *_INTERIOR_POINT = (
    Path(__file__).with_name(name).read_text(encoding="utf-8")
    for name in (
        "newton.h", "sweep.c", "start.c", "bias.c", "loop.c", "change.c",
        "memory.c", "stages.c", "optimality.c", "step.c", "filter.c", "elastic.c",
        "line_search.c", "scales.c", "solve.c", "real_time.c",
    )
)  # fmt: skip
NEWTON = "".join(_INTERIOR_POINT)

# Functions that an iteration calls once, or a solve: gcc's time for them is worth more than theirs.
SELDOM = (
    "end", "end_values", "end_curvature", "arrival", "between", "policy", "element", "resolved",
)  # fmt: skip
OFTEN_LEVEL = '"O2"'
# Of functions of more operations: gcc takes two thirds of the time of -O2, they 4 % more.
LONGEST_OFTEN = 25_000
LONG_LEVEL = (
    '"O1", "expensive-optimizations", "no-dse", "no-tree-dse", "no-tree-ccp", '
    '"no-tree-dominator-opts"'
)
# A rollout takes one step after the other, with one number in a register.
SERIAL_LEVEL = '"O2", "schedule-insns", "sched-pressure"'
LONG = 100_000
# A row of [A B] counts as sparse where at most one entry in so many is not zero; so many rows to
# one have to be, for the sweep to treat them apart.
SPARSE = 3

VISIBLE = '__attribute__((visibility("default")))'

# Compiled and interpreted functions agree to this share, where arguments that move by the other one
# leave results as they are.
CHECK, NEARBY = 1e-6, 1e-12

_ADDRESS = ctypes.c_void_p
_ENTRY = ctypes.CFUNCTYPE(None, _ADDRESS, ctypes.c_int64, _ADDRESS, _ADDRESS, _ADDRESS)


class KernelEntries(NamedTuple):
    """Entry points of the kernel, by the names of its C functions.

    Sweeps of exact sizes share the state of a solve, of `state_bytes`. `width` counts the doubles
    in its vectors.
    """

    solve: Any
    step: Any
    start: Any
    plan: Any
    sizes: Any
    loop: Any
    loop_sizes: Any
    change: Any
    interpret: int
    state_bytes: int
    width: int


# Sweeps of exact sizes write to the state of a solve, which has no mirror in Python.
_STATE_BYTES = "LG_EXPORT int64_t lg_state_bytes(void) { return (int64_t)sizeof(lg_state); }\n"


# What the text of the algorithm calls in that of the sweeps.
_SWEEPS_OF_ANY_SIZE = """
int lg_factor_any(const void *, const void *, void *, double, int, int);
void lg_back_any(const void *, const void *, void *, const double *, const double *,
                 const double *);
"""


def _head(width: int) -> str:
    return f"{header()}#define LG_W {width}\n{SHARED_TEXT}"


def sweep_text(n: str, m: str, name: str, how: str) -> str:
    """C text of sweeps of some sizes."""
    return (
        f"#define SX {n}\n#define SV {m}\n#define SWEEP(name) lg_##name##_{name}\n"
        f"#define SWEEP_EXACT {int(n.isdecimal())}\n#define LG_SWEEP {how}\n{SWEEP}"
    )


def kernel_sources(width: int) -> list[str]:
    """C texts of the kernel for vectors of so many doubles, which are compiled side by side."""
    head, interpreter = _head(width), interpreter_source()
    sweeps = sweep_text("(int)m->nx", "(int)m->nv", "any", "")
    rest = [_SWEEPS_OF_ANY_SIZE, NEWTON, START, BIAS, LOOP, CHANGE, _STATE_BYTES]
    return ["".join([head, *rest]), "".join([head, sweeps, interpreter])]


def sweep_source(width: int, n: int, m: int) -> str:
    """C text of sweeps of one pair of sizes."""
    return _head(width) + sweep_text(str(n), str(m), "exact", "LG_EXPORT") + _STATE_BYTES


def load_sweeps(n: int, m: int) -> tuple[Any, Any] | None:
    """Sweeps for so many error coordinates and controls; None where they cannot be built.

    Built once a machine, in one to three seconds; those of any size take 1.1 to 1.3 of the time.
    """
    kernel, name = load_kernel(), _name_of_sweeps(n, m)
    library = None if kernel is None else _library_of_sweeps(n, m)
    if kernel is None or library is None:
        return None
    found = _state_bytes(library)
    if found != kernel.state_bytes:
        text = f"the library has a state of {found} bytes, the kernel one of {kernel.state_bytes}"
        notice(name, f"the {name} are not used: {text}")
        return None
    return library["lg_factor_exact"], library["lg_back_exact"]


def _library_of_sweeps(n: int, m: int, tell: Callable[[str, str], None] = notice) -> Any:
    compiler, prebuilt = _compiler(), prebuilt_kernel()
    if compiler is None:
        return None
    width = compiler.width if prebuilt is None else prebuilt.width
    return _built(
        _name_of_sweeps(n, m), compiler, lambda: [sweep_source(width, n, m)],
        lambda path: ctypes.CDLL(str(path)), lambda _: None, tell,
    )  # fmt: skip


def _name_of_sweeps(n: int, m: int) -> str:
    return f"sweeps of {n} states and {m} controls"


@contextmanager
def building_sweeps(n: int, m: int, *work: Callable[[], object]) -> Iterator[None]:
    """Build sweeps for so many error coordinates and controls, and do work, beside a block.

    Sweeps that cannot be built are told of by `load_sweeps`: without a kernel nobody needs them.
    """
    compiler = _compiler()
    if compiler is not None and (compiler, _name_of_sweeps(n, m)) not in _BUILT:
        work = *work, partial(_library_of_sweeps, n, m, lambda topic, message: None)
    with meanwhile(*work):
        yield


def _state_bytes(library: Any) -> int:
    entry = library["lg_state_bytes"]
    entry.argtypes, entry.restype = [], ctypes.c_int64
    return int(entry())


_BUILT: dict[tuple[Compiler, str], Any] = {}


def _built(
    name: str, compiler: Compiler, write: Callable[[], list[str]], load: Callable[[Path], Any],
    check: Callable[[Any], str | None], tell: Callable[[str, str], None] = notice,
) -> Any:  # fmt: skip
    """A library of some sources, once a process; None (said once) as long as it cannot be built."""
    if (compiler, name) in _BUILT:
        return _BUILT[compiler, name]
    flags, sources = compiler.flags(0, True), write()
    found = find_or_tell(
        name, f"the {name} could not be built", key_of(compiler, flags, sources), compiler,
        [flags], write=lambda: iter(sources), load=load, check=check, tell=tell,
        about={"operations": 0, "written": max(map(len, sources)) // 2},
    )  # fmt: skip
    if found is not None:
        _BUILT[compiler, name] = found
    return found


@cache
def prebuilt_kernel() -> KernelEntries | None:
    """The kernel that the wheel brings for this processor; None without one of this very text."""
    level = level_of_this_processor()
    if level is None:
        return None
    path = file_of(level, kernel_sources(level.width))
    if not path.is_file():
        return None
    try:
        found = _open_kernel(path)
        wrong = _wrong_sizes(found)
    except (OSError, AttributeError) as error:
        wrong = str(error)
    else:
        if wrong is None:
            return found
    notice(path.name, f"the planning kernel {path} is damaged ({wrong}): reinstall lgcontrol")
    return None


def load_kernel() -> KernelEntries | None:
    """The kernel for this machine; None as long as it cannot be built."""
    prebuilt = prebuilt_kernel()
    compiler = _compiler() if prebuilt is None else None
    if compiler is None:
        return prebuilt
    write = partial(kernel_sources, compiler.width)
    return _built("planning kernel", compiler, write, _open_kernel, _wrong_sizes)


def needed_kernel() -> KernelEntries:
    """The kernel for this machine; NotImplementedError says why there is none."""
    kernel = load_kernel()
    if kernel is not None:
        return kernel
    if compile_policy() == "off":
        why = (
            "the compile policy is 'off'; call set_compile_policy('auto'), or unset the "
            "environment variable LGCONTROL_COMPILE"
        )
    elif _compiler() is None:
        why = (
            "no C compiler for it was found; install gcc or clang, name one in CC, or install the "
            "wheel for Linux on x86-64, which brings the kernel"
        )
    else:
        why = "it could not be built; mend what the notice of the build says"
    raise NotImplementedError(f"there is no planning kernel: {why}")


def _open_kernel(path: Path) -> KernelEntries:
    library = ctypes.CDLL(str(path))
    names = ("solve", "step", "start", "plan", "sizes")
    solve, step, start, plan, sizes = (library[f"lg_newton_{name}"] for name in names)
    for function in (solve, step, start, plan):
        function.argtypes, function.restype = [_ADDRESS] * 3, ctypes.c_int
    start.restype = ctypes.c_double
    sizes.argtypes, sizes.restype = [_ADDRESS, ctypes.c_int64, _ADDRESS], None
    loop, loop_sizes = library["lg_loop_call"], library["lg_loop_sizes"]
    change = library["lg_newton_change"]
    for function in (loop, change):
        function.argtypes, function.restype = [_ADDRESS] * 4, ctypes.c_int
    loop_sizes.argtypes = [_ADDRESS, *[ctypes.c_int64] * 3, _ADDRESS]
    loop_sizes.restype = None
    interpret = ctypes.cast(library["lg_interpret"], _ADDRESS).value
    assert interpret is not None
    width = int(sizes_of(sizes, Model(), 1)[6])
    return KernelEntries(
        solve, step, start, plan, sizes, loop, loop_sizes, change, interpret,
        _state_bytes(library), width,
    )  # fmt: skip


def _wrong_sizes(kernel: KernelEntries) -> str | None:
    """What of the structs differs between C and their mirrors."""
    model, loop = Model(), np.zeros(3, dtype=np.int64)  # both live until they are read
    found = sizes_of(kernel.sizes, model, 1)
    kernel.loop_sizes(ctypes.addressof(model), 1, 0, 0, loop.ctypes.data)
    sizes = [*found[3:6].tolist(), int(loop[2])]
    mirrors = [ctypes.sizeof(kind) for kind in (Model, Task, Numbers, Loop)]
    if sizes != mirrors:
        return f"has structs of {sizes} bytes, their mirrors {mirrors}"
    return None


def sizes_of(entry: Any, model: ctypes.Structure, horizon: int) -> np.ndarray:
    """Numbers of work memory, iterate, memory; bytes of structs; width; numbers that steps keep."""
    sizes = np.zeros(8, dtype=np.int64)
    entry(ctypes.addressof(model), horizon, sizes.ctypes.data)
    return sizes


def numbers_of(settings: Settings) -> ctypes.Structure:
    """Settings as the struct that the kernel takes."""
    return Numbers(*(float(value) for value in astuple(settings)))


def _compiler() -> Compiler | None:
    if compile_policy() == "off":
        return None
    compiler = find_compiler()
    return None if compiler is None or compiler.kind == "tcc" else compiler


# -- stages ----------------------------------------------------------------------------------------


Parts = dict[str, tuple[ModelFunction, tuple[str, ...] | None]]


def plain_parts(model: StageModel) -> Parts:
    """Functions of a problem by their names in the struct, and what their items share.

    Without second derivatives, which take longest to derive.
    """
    once, shared = model.transcription._functions, model.transcription.shared
    parts: Parts = {
        "values": (once.stage_values, shared),
        "retract": (model.retract, ("p",)),
        "end": (once.terminal, None),
        "end_values": (once.terminal_values, None),
        "error": (model.error, None),
        "step": (model.step, None),
        "costs": (model.costs, shared),
        "between": (model.between, None),
        "element": (model.element, None),
    }
    policy = model.problem.system.policy
    if policy is not None:
        parts["policy"] = policy, None
    if model.composes:
        parts |= {"substep": (model.substep, shared), "around": (model.around, shared)}
    else:
        parts["stage"] = model.stage, shared
    if len(model.free):
        parts["arrival"] = model.arrival, None
    if model.resolved is not None:
        parts["resolved"] = model.resolved, shared
    return parts


def curved_parts(model: StageModel) -> Parts:
    """Second derivatives; of a stage that has them itself that stage."""
    if model.curvature is None or model.end_curvature is None:
        return {}
    shared = model.transcription.shared
    joint = model.joint
    of_stages: Parts = (
        {"curvature": (model.curvature, shared)} if joint is None else {"stage": (joint, shared)}
    )
    return of_stages | {"end_curvature": (model.end_curvature, None)}


def write_stages(model: StageModel, compiler: Compiler) -> Iterator[str]:
    """C sources of the functions of a problem, about as long to compile each."""
    scratch = 1

    def unit(parts: Parts, level: str, joined: list[Part] | None = None) -> str:
        nonlocal scratch
        longest = max(function.program.written for function, _ in parts.values())
        if level == OFTEN_LEVEL and longest > LONGEST_OFTEN:
            level = LONG_LEVEL
        named = [Part(f"lg_{name}", *value) for name, value in parts.items()]
        text, own = unit_source(named, compiler)
        scratch = max(scratch, own)
        entries = "".join(map(entry_text, named))
        if joined is not None:
            joined += named
            own_text, own = _both(joined, compiler.width)
            scratch = max(scratch, own)
            for part in named:
                text = text.replace(f"static void {part.name}_body(", f"void {part.name}_body(")
            entries += own_text
        return f"#pragma GCC optimize({level})\n{text}{entries}"

    def only(parts: Parts, names: tuple[str, ...]) -> Parts:
        return {name: value for name, value in parts.items() if name in names}

    plain = plain_parts(model)
    often = "values", "costs", "retract", "substep", "around"
    yield unit(only(plain, often), OFTEN_LEVEL)
    yield unit(only(plain, ("step", "error")), SERIAL_LEVEL)
    every = plain | curved_parts(model)
    derivatives = list[Part]()
    for name in ("stage", "curvature"):
        if name in every:
            yield unit(only(every, (name,)), OFTEN_LEVEL, derivatives)
    yield unit(only(every, SELDOM), LONG_LEVEL)
    yield (
        f"{VISIBLE} extern const long lg_scratch;\nconst long lg_scratch = {scratch};\n"
        + "".join(
            f"{VISIBLE} extern const long lg_{name}[];\n"
            f"const long lg_{name}[] = {{{', '.join(map(str, [len(value), *value]))}}};\n"
            for name, value in places_of(model).items()
        )
    )


# Results of a stage with second derivatives: W is added to the Hessian H.
BOTH = ("cost",), ("gap",), ("rows",), ("F",), ("g",), ("H", "W"), ("G",), ("bend",)


def _both(parts: list[Part], width: int) -> tuple[str, int]:
    """C text of `both`, by bodies that stand in it or in another unit, and its work memory.

    Nothing where the parts do not have all results.
    """
    place = {name: n for n, part in enumerate(parts) for name in part.function.results}
    if width == 1 or any(name not in place for names in BOTH for name in names):
        return "", 1
    results = [[(place[name], name) for name in names] for names in BOTH]
    text, scratch = joined_source("lg_both", parts, results, width)
    last = parts[-1]
    sizes = last.function.program.sizes_in, [1] * len(BOTH)
    return text + _entry("lg_both", last, *sizes, VISIBLE), scratch


def entry_text(part: Part, kind: str = VISIBLE) -> str:
    """The entry that the kernel calls by pointer: any number of items, one after the other."""
    program = part.function.program
    return _entry(part.name, part, program.sizes_in, program.sizes_out, kind)


def _entry(name: str, part: Part, sizes_in: Any, sizes_out: Any, kind: str) -> str:
    loops = part.shared is None
    numbers = [("in", i, n) for i, n in enumerate(sizes_in)]
    numbers += [("out", i, n) for i, n in enumerate(sizes_out)]
    given = ", ".join(f"{key}[{i}]" + f" + k * {n}" * loops for key, i, n in numbers)
    loop = "for (int64_t k = 0; k < items; k++) " * loops
    return (
        f"{kind} void {name}_entry(const void *own, int64_t items, const double *const *in,\n"
        "    double *const *out, double *scratch)\n"
        f"{{\n  (void)own;\n  {loop}{name}({'items, ' * (not loops)}{given}, scratch);\n}}\n"
    )


class Stages(NamedTuple):
    """Functions of a problem in machine code, kept alive, with their `places_of`."""

    functions: dict[str, Function]
    scratch: int
    keep: Any
    places: dict[str, list[int]]


def identity_of_parts(model: StageModel) -> str:
    """Text of the functions themselves, but for second derivatives, which follow from the rest."""
    parts = plain_parts(model).items()
    return "\n".join(f"{key} {shared} {one.program.identity}" for key, (one, shared) in parts)


def load_stages(model: StageModel) -> Stages | None:
    """Machine code of the functions of a problem; None (said once) without it."""
    compiler = _compiler()
    if compiler is None:
        return None
    name = f"stages of {model.problem.system.name}"
    identity = model.transcription.identity
    if identity is None:
        identity = identity_of_parts(model)

    def sizes() -> list[int]:
        return [f.program.written for f, _ in plain_parts(model).values()]

    def flags() -> list[list[str]]:
        longest = max(sizes())
        return [compiler.flags(longest if longest > LONG else 0, True)]

    def about() -> dict[str, Any]:
        return {"operations": max(sizes()), "written": 2 * sum(sizes())}

    content = [
        _sources(), identity, f"{model.problem.method} {model.problem.substeps}",
        f"{model.curved} {model.controls.tolist()}", f"{model.settings.hessian_operations}",
    ]  # fmt: skip
    return find_or_tell(
        name, f"the {name} are interpreted", key_of(compiler, compiler.flags(0, True), content),
        compiler, flags, write=lambda: write_stages(model, compiler), load=_open_stages,
        check=lambda stages: _difference(model, stages), about=about,
    )  # fmt: skip


def interpreted_stages(model: StageModel) -> Stages:
    """Functions of a problem for the kernel's interpreter, some ten times slower.

    CasADi evaluates those that are not made of scalar operations.
    """
    return _interpreted(plain_parts(model) | curved_parts(model), places_of(model))


def iterations_of_a_build(model: StageModel, stages: Stages) -> float:
    """Iterations of a solve that take as long as compiling its functions would.

    Of functions that CasADi evaluates, which are slow; infinite for others, and where nothing is
    compiled.
    """
    if not isinstance(stages.keep, dict) or _compiler() is None:
        return np.inf
    parts = plain_parts(model) | curved_parts(model)
    often = [
        interpreting_seconds(parts[name][0].program.operations, is_callback=True)
        for name in ("values", "stage", "curvature")
        if isinstance(stages.keep.get(name), Called)
    ]
    written = sum(function.program.written for function, _ in parts.values())
    return build_seconds(written) / (model.problem.horizon * sum(often)) if often else np.inf


def _difference(model: StageModel, stages: Stages) -> str | None:
    """Which compiled function differs from the interpreted one at random arguments."""
    rng, call, problem = np.random.default_rng(0), _ENTRY, model.problem
    system, p = problem.system, problem.nominal_parameters

    def some(name: str, size: int) -> np.ndarray:
        if name in ("x", "x_next", "x_ref", "x0", "after", "a", "b"):
            moves = 0.1 * rng.normal(size=model.n)
            return np.array(model.retract(system.home, moves, p), dtype=float)
        known = {"p": p[:size], "dt": np.array([problem.dt]), "w": np.ones(size)}
        if name in known:
            return np.array(known[name], dtype=float)
        base = system.nominal_input if name in ("u", "u_ref") else np.zeros(size)
        return base + 0.1 * rng.normal(size=size)

    for name, (function, _) in (plain_parts(model) | curved_parts(model)).items():
        made = function.function
        given = [some(key, made.nnz_in(i)) for i, key in enumerate(function.arguments)]
        found = [np.zeros(made.nnz_out(i) + 8) for i in range(made.n_out())]
        scratch = np.zeros(stages.scratch + 8)
        inputs = (_ADDRESS * len(given))(*(v.ctypes.data for v in given))
        outputs = (_ADDRESS * len(found))(*(v.ctypes.data for v in found))
        at = scratch.ctypes.data + -scratch.ctypes.data % 64
        call(stages.functions[name].call)(None, 1, inputs, outputs, at)
        shaped = [v.reshape(made.size_in(i), order="F") for i, v in enumerate(given)]
        try:
            wanted, moved = made.call(shaped), made.call([(1 + NEARBY) * v for v in shaped])
        except RuntimeError:  # equations that are singular there
            continue
        numbers, near = ([np.array(v.nonzeros()) for v in values] for values in (wanted, moved))
        is_sure = all(map(partial(np.allclose, rtol=CHECK, atol=CHECK), numbers, near))
        if function.program.flat is None and not is_sure:
            continue  # Newton's method diverges there
        for have, values in zip(found, numbers, strict=True):
            if not np.allclose(have[: values.size], values, CHECK, CHECK, equal_nan=True):
                return f"differs from what CasADi makes of {function.name} at random arguments"
    return None


def _open_stages(path: Path) -> Stages:
    library = ctypes.CDLL(str(path))
    functions = {}
    for name in (
        field.name for field in (*MODEL, *LOOP_TABLE, *CHANGE_TABLE) if field.kind == "function"
    ):
        if hasattr(library, f"lg_{name}_entry"):
            entry = library[f"lg_{name}_entry"]
            functions[name] = Function(ctypes.cast(entry, _ADDRESS), None)
    places = {}
    for name in PLACES:
        if hasattr(library, f"lg_{name}"):
            count = ctypes.c_long.in_dll(library, f"lg_{name}").value
            places[name] = list((ctypes.c_long * (count + 1)).in_dll(library, f"lg_{name}"))[1:]
    scratch = ctypes.c_long.in_dll(library, "lg_scratch").value
    return Stages(functions, scratch, library, places)


def load_functions(parts: Parts, *, is_compiled: bool = True) -> Stages:
    """Machine code of functions more, that the kernel calls; interpreted without a compiler."""
    compiler, names = _compiler() if is_compiled else None, ", ".join(parts)

    def write() -> Iterator[str]:
        named = [Part(f"lg_{name}", *value) for name, value in parts.items()]
        text, scratch = unit_source(named, compiler)
        end = f"{VISIBLE} extern const long lg_scratch;\nconst long lg_scratch = {scratch};\n"
        entries = "".join(map(entry_text, named))
        yield f"#pragma GCC optimize({OFTEN_LEVEL})\n{text}{entries}{end}"

    found = None
    if compiler is not None:
        flags = compiler.flags(0, True)
        made = [f"{name} {each.program.identity}" for name, (each, _) in parts.items()]
        operations = max(each.program.operations for each, _ in parts.values())
        found = find_or_tell(
            names, f"{names} is interpreted", key_of(compiler, flags, [_sources(), *made]),
            compiler, [flags], write=write, load=_open_stages, check=lambda _: None,
            about={"operations": operations, "written": operations},
        )  # fmt: skip
    return _interpreted(parts, {}) if found is None else found


def _interpreted(parts: Parts, places: dict[str, list[int]]) -> Stages:
    """Functions as programs; CasADi evaluates those that are not made of scalar operations."""
    kernel = needed_kernel()
    made: dict[str, Called | Interpreted] = {}
    for name, (function, shared) in parts.items():
        try:
            made[name] = Interpreted(function, shared, kernel.interpret)
        except NotImplementedError:  # operations on matrices, or a table that scalars call
            made[name] = Called(function, shared)
    entries = {name: program.entry for name, program in made.items()}
    scratch = max(program.scratch for program in made.values())
    if any(isinstance(program, Called) for program in made.values()):  # may be compiled in a solve
        most = max(function.program.most_memory for function, _ in parts.values())
        scratch = max(scratch, LANES * most)
    return Stages(entries, scratch, made, places)


# Files beside this folder that decide what the functions of a problem are.
OWN_SOURCES = (
    "_places.py", "_weights.py", "_expressions.py", "_terms.py", "_bounds.py", "_rows.py",
    "_masks.py", "_stage_functions.py", "_transcription.py", "_stage_model.py",
    "_implicit_hessians.py",
)  # fmt: skip


@cache
def _sources() -> str:
    """Hash of the code that derives the functions of a problem from what it states."""
    here = Path(__file__)
    digest = hashlib.sha256(ca.CasadiMeta.version().encode())
    rooms = (here.parents[2] / room for room in ("codegen", "groups", "integrators", "systems"))
    own = [here, *(here.parents[1] / name for name in OWN_SOURCES)]
    for path in [*(path for room in rooms for path in sorted(room.glob("*.py"))), *own]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


# What of a problem's functions the kernel knows besides: counts, and places of entries.
PLACES = (
    "counts", "rows", "columns", "bend_rows", "bend_columns", "sub_counts", "sub_rows",
    "sub_columns", "turn_rows", "turn_columns",
)  # fmt: skip


def places_of(model: StageModel) -> dict[str, list[int]]:
    """Patterns of the derivatives of a problem, which are kept with its machine code."""
    found: dict[str, list[int]] = {}

    def add(word: str, function: ModelFunction) -> None:
        for name, values in pattern_of(model, function).items():
            found[word + name] = values

    add("", model.stage)
    bend = np.array(model.bend_places, dtype=np.int64).reshape(-1, 2).T
    found["bend_rows"], found["bend_columns"] = bend.tolist()
    if model.composes:
        add("sub_", model.substep)
        found["turn_rows"], found["turn_columns"] = (part.tolist() for part in model.turn)
    return found


def pattern_of(model: StageModel, function: ModelFunction) -> dict[str, list[int]]:
    """Which rows of ``[A B]`` hold little but zeros, and their entries.

    `counts` are those of these entries, the first dense row, and the number of dense ones. Of
    mechanical systems those of the configuration under explicit Euler, and all of them where
    controls are accelerations.
    """
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
    counts = [len(rows), first, count]
    return {"counts": counts, "rows": rows.tolist(), "columns": columns.tolist()}
