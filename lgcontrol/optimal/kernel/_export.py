"""Export of the planning kernel: a predictive controller in plain C99, with its test vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...codegen._internal import (
    C99_HINTS,
    C_EXAMPLE_HEAD,
    CVector,
    Part,
    c_comment,
    c_number,
    c_package_name,
    c_places,
    c_table,
    cmake_lists,
    unit_source,
    write_package,
)
from ...groups._internal import ELEMENT_ROUNDING, ELEMENT_TOLERANCE
from ...systems._internal import changes_in_blocks
from .._bounds import ROUNDING
from .._expressions import entries_of
from .._guess import STARTS
from .._input_limits import LEAST_WIDTH
from .._reference import CLOCK_ROUNDING
from .._settings import Settings
from .._transcription import Setting
from ._library import (
    BIAS,
    NEWTON,
    SHARED_TEXT,
    START,
    curved_parts,
    entry_text,
    plain_parts,
    sweep_text,
)
from ._library import LOOP as LOOP_TEXT
from ._loop import (
    EXCEEDED,
    HELD,
    NUMBERS,
    OK,
    UNSOLVED,
    LoopDisturbance,
    LoopRates,
    loop_data,
)
from ._memory import KernelMemory, has_joint
from ._table import FIXED, LOG, MEMORY, MODEL, header

# Memory of a controller, of the kernel's sizes.
ARRAYS = ("K", "rows", "scales", "weight", "state", "before", "other", "best", "memory", "log",
          "work", "aim_x", "aim_u")  # fmt: skip
FIRMWARE = Path(__file__).with_name("firmware.c").read_text(encoding="utf-8")

# What calls return, as the header names it, in the order of `Answer`.
STATUSES = ("OK", "INFEASIBLE", "UNSOLVED", "HELD")

# The quantity of a system that its controls take: torques of `with_accelerations`.
INPUT = "input"

# Least tolerance of test vectors: rounding of one call.
EXACT = 1e-9


@dataclass(frozen=True, eq=False)
class ExportCase:
    """Calls of a controller from its start on: measured states, answers, names of statuses.

    The tolerance of an answer is relative to inputs above 1; `EXACT` if left out.
    """

    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    status: Sequence[str]
    tolerance: np.ndarray | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class LoopExport:
    """How an exported controller runs: the options of its loop, and what it begins with.

    `restarts` is 0 for none, 1 for jumps of the cost, 2 for jumps at once. Rates are those of the
    answers, if these are the controls. The disturbance is one that is estimated.
    """

    period: float
    delay: float
    iterations: int
    first_iterations: int
    most: int
    tolerance: float
    starts: tuple[str, ...]
    restarts: int
    setting: Setting
    rates: LoopRates | None
    disturbance: LoopDisturbance | None


def export_kernel(
    memory: KernelMemory, model: Any, settings: Settings, loop: LoopExport, folder: str | Path,
    name: str, cases: Sequence[ExportCase],
) -> Path:  # fmt: skip
    """Write a predictive controller as C, whose example checks these cases.

    It refuses functions that are not made of scalar operations.
    """
    name = c_package_name(name)
    named = [Part(f"lg_{k}", *v) for k, v in (plain_parts(model) | curved_parts(model)).items()]
    parts = [*named]
    taken = model.problem.system.quantities.get(INPUT)
    parts += [] if taken is None else [Part("lg_taken", taken)]
    if loop.disturbance is not None:
        rate = Part("lg_rate", loop.disturbance.rate)
        parts, named = [*parts, rate], [*named, rate]
    functions, scratch = unit_source(parts, None)
    problem = model.problem
    stated = problem if loop.rates is None else loop.rates.stated
    nominal = problem.system.nominal_input
    data = loop_data(stated, loop.delay, loop.period, nominal, loop.disturbance, loop.rates)
    sizes = _sizes(memory, model, loop, scratch, data[0]["queue"])
    given = ", ".join(c_number(float(value)) for value in astuple(settings))
    text = [
        '#include "lg_mpc.h"\n',
        C99_HINTS,
        functions.replace("#include <stdlib.h>\n", ""),
        f"#define LG_EXPORT static\n#define LG_W 1\n#define LG_MOST_FILTER {sizes['filter']}",
        header(),
        SHARED_TEXT,
        sweep_text(str(model.n), str(model.m), "any", "static"),
        NEWTON,
        START,
        BIAS,
        LOOP_TEXT,
        "".join(entry_text(part, "static") for part in named),
        _problem(memory, scratch, {part.name[3:] for part in named}),
        f"static const lg_settings lg_given = {{{given}}};\n",
        _constants(model, loop, stated, *data),
        FIRMWARE,
        "" if taken is None else _TAKEN,
    ]
    files = {
        f"{name}.h": _header(model, loop, sizes, bool(taken)),
        f"{name}.c": _without_unused("\n".join(text)),
        f"{name}_test.h": test_vectors(cases, memory.arrays["x0"].size, model.m),
        "main.c": EXAMPLE.replace("@head@", C_EXAMPLE_HEAD),
        "CMakeLists.txt": cmake_lists(name, [f"{name}.c"]),
    }
    return write_package(folder, {key: _renamed(value, name) for key, value in files.items()})


def _renamed(text: str, name: str) -> str:
    text = re.sub(r"\blg_mpc(?=_|\b)", name, text)
    return re.sub(r"\bLG_MPC(?=_)", name.upper(), text)


def _without_unused(text: str) -> str:
    """Without functions that only Python calls."""
    return re.sub(r"/\*[^/]*\*/\nLG_EXPORT void lg_loop_sizes\(.*?\n}\n", "", text, flags=re.S)


def _sizes(
    memory: KernelMemory, model: Any, loop: LoopExport, scratch: int, queue: int
) -> dict[str, int]:
    """Numbers of each array, by what `LG_PARTS` has for scalar code."""
    once, problem, sides = model.transcription, model.problem, model.sides
    N, n, m, own = problem.horizon, model.n, model.m, memory.model
    names: dict[str, Any] = {
        "N": N, "M": N + 1, "nx": n, "nv": m, "nz": n + m, "nr": len(once.rows.names),
        "ne": len(sides.equal), "na": len(sides.row) + len(sides.equal), "xp": n, "vp": m,
        "many": N if own.substeps > 0 else 0, "s->plan": memory.arrays["plan"].size,
        "joint": int(has_joint(curved_parts(model))),
    }  # fmt: skip
    arrays = {name: array.size for name, array in memory.arrays.items()}
    total = 0
    for term in re.findall(r" PART\(\w+, ([^)]+)\)", SHARED_TEXT):
        factors = (factor.strip().removeprefix("m->") for factor in term.split("*"))
        count = int(np.prod([names[k] if k in names else getattr(own, k) for k in factors]))
        total += (count + 15) // 8 * 8
    most = loop.most + 2
    count, whole = most + 8, arrays["best"] - arrays["plan"]
    aim, estimate = N + 1 if loop.disturbance else 0, 0
    if loop.disturbance is not None:
        group = model.group if loop.rates is None else loop.rates.stated.system.state
        estimate = 2 + group.nq + loop.disturbance.size
    return {name: arrays[name] for name in ("plan", "K", "rows", "scales", "best", "weight")} | {
        "work": total + scratch, "filter": count, "log": most * len(LOG), "memory": _memory(count),
        "other": whole, "before": whole,
        "state": NUMBERS + m + queue * (1 + m) + estimate,
        "aim_x": aim * model.group.nq, "aim_u": aim * problem.system.n_inputs,
    }  # fmt: skip


def _memory(count: int) -> int:
    """Numbers of the kernel's `lg_memory` with so many entries in each filter."""
    (body,) = re.findall(r"typedef struct \{([^{}]*)\} lg_memory;", SHARED_TEXT)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.DOTALL).replace("LG_KEPT", "")
    sizes = {"int64_t": 1, "lg_filter": 2 * count + 3}
    return len(MEMORY) + sum(
        sizes[kind] * (names.count(",") + 1) for kind, names in re.findall(r"(\w+) ([^;]+);", body)
    )


def _problem(memory: KernelMemory, scratch: int, known: set[str]) -> str:
    """The problem as a constant struct, and its tables."""
    tables, values = [], []
    for field in MODEL:
        value = getattr(memory.model, field.name)
        if field.kind == "size":
            own = {"scratch": scratch, "joint": int(has_joint(known))}
            values.append(str(own.get(field.name, value)))
        elif field.kind in ("places", "given"):
            array = memory.constants.get(field.name)
            if array is None or not array.size:
                values.append("0")
                continue
            kind = "int64_t" if field.kind == "places" else "double"
            tables.append(c_table(kind, f"lg_{field.name}", array.ravel()))
            values.append(f"lg_{field.name}")
        elif field.kind == "function":
            values.append(f"{{lg_{field.name}_entry, 0}}" if field.name in known else "{0, 0}")
        else:
            values.append("0")
    head = "static const lg_model lg_problem = {"
    return "\n".join([*tables, f"{head}\n  {', '.join(values)}\n}};\n"])


def _constants(
    model: Any, loop: LoopExport, stated: Any, numbers: dict[str, Any],
    arrays: dict[str, np.ndarray],
) -> str:  # fmt: skip
    """Tables, and how the kernel's structs are made of the controller's memory."""
    setting, once, problem = loop.setting, model.transcription, model.problem
    sides, limits = model.sides, problem.input_limits
    tables = {
        "lower": limits.lower, "upper": limits.upper,
        "x_ref": setting.x_ref, "u_ref": setting.u_ref, "p": setting.p, "P": setting.terminal.T,
        "arrival_weight": setting.arrival, "limit": np.r_[sides.limit, sides.target],
        "weight": np.r_[sides.weight, np.full(len(sides.equal), np.inf)],
        "w": once.path_weights, "w_end": once.end_weights, "steps": problem.steps,
    } | arrays  # fmt: skip
    estimate = ["  c->rate.call = lg_rate_entry, c->aim_x = m->aim_x, c->aim_u = m->aim_u;"]
    own = ("t", "p", "P", "arrival", "lower", "upper", "weight", "K", "rows", "scales", "log",
           "work", "memory", "best")  # fmt: skip
    defined = {
        "LG_ELEMENT_TOLERANCE": ELEMENT_TOLERANCE, "LG_ELEMENT_ROUNDING": ELEMENT_ROUNDING,
        "LG_LEAST_WIDTH": LEAST_WIDTH, "LG_ROUNDING": ROUNDING,
        "LG_CLOCK_ROUNDING": CLOCK_ROUNDING,
    }  # fmt: skip
    return "\n".join(
        [
            *(f"#define {key} {value!r}" for key, value in defined.items()),
            *(
                c_table("double" if value.dtype == float else "int64_t", f"lg_{key}", value)
                for key, value in tables.items()
                if key != "weight" or value.size
            ),
            "static void attach(lg_mpc *m, lg_task *q, lg_loop *c)\n{",
            "  memset(q, 0, sizeof *q), memset(c, 0, sizeof *c);",
            "  q->horizon = LG_MPC_N, q->dt = LG_MPC_DT, q->exact = 1;",
            f"  q->tolerance = {c_number(loop.tolerance)};",
            "  q->w = lg_w, q->w_end = lg_w_end, q->limit = lg_limit, q->x0 = m->x0;",
            "  q->steps = lg_steps;",
            "  q->x_ref = m->x_ref[0], q->u_ref = m->u_ref[0];",
            "  q->plan = (double *)(void *)&m->plan;",
            *(f"  q->{key} = m->{key};" for key in own),
            *(
                f"  c->{key} = {c_number(value) if isinstance(value, float) else value};"
                for key, value in numbers.items()
            ),
            *(f"  c->{key} = lg_{key};" for key in arrays),
            "  c->iterations_most = LG_MPC_ITERATIONS;",
            "  c->first_iterations = LG_MPC_FIRST_ITERATIONS, c->most = LG_MPC_MOST_ITERATIONS;",
            f"  c->restarts = {loop.restarts}, c->starts = {sum(STARTS[k] for k in loop.starts)};",
            "  c->lower = m->exact_lower, c->upper = m->exact_upper;",
            "  c->begins = m->u_ref[0];",
            "  c->state = m->state, c->before = m->before, c->other = m->other;",
            *(estimate if loop.disturbance is not None else []),
            "}\n",
            _tighten(problem, "tighten"),
            _tighten(stated, "tighten_answer"),
            _soft_weights(model),
        ]
    )


def _tighten(problem: Any, name: str) -> str:
    """C function that takes bounds of the controls into their limits; see `InputLimits`."""
    names, lines = problem.parameter_names, []
    for i, side, limit, _ in problem.input_limits.sides:
        word, pick = (("low", "larger"), ("high", "smaller"))[side]
        text = f"m->p[{names.index(limit)}]" if isinstance(limit, str) else c_number(limit)
        lines.append(f"  {word}[{i}] = {pick}({word}[{i}], {text});")
    head = f"static void {name}(const lg_mpc *m, double *low, double *high)"
    return "\n".join([head, "{", "  (void)m, (void)low, (void)high;", *lines, "}", ""])


def _soft_weights(model: Any) -> str:
    """C function of the penalty weights, some of which are parameters."""
    rows, dt = model.transcription.rows, c_number(float(model.problem.dt))
    lines = [
        f"  weight[{j}] = m->p[{rows.parameter[row]}] * {dt};"
        for j, row in enumerate(model.sides.row.tolist())
        if rows.parameter[row] >= 0
    ]
    count = len(model.sides.row) + len(model.sides.equal)
    head = "static void soft_weights(const lg_mpc *m, double *weight)"
    copy = f"  (void)m;\n  for (int j = 0; j < {count}; j++) weight[j] = lg_weight[j];"
    return "\n".join([head, "{", copy if count else "  (void)m, (void)weight;", *lines, "}", ""])


def _header(model: Any, loop: LoopExport, sizes: dict[str, int], has_input: bool) -> str:
    problem, system = model.problem, model.problem.system
    state, N = system.state, problem.horizon
    own = system if loop.rates is None else loop.rates.stated.system
    controls = [own.inputs[i] for i in own.input_index("control")]
    bounds = [
        f"{entry.unit}, {entry.lower:g} to {entry.upper:g}".lstrip(", ") for entry in controls
    ]
    is_linear = loop.rates is not None and loop.rates.is_linear
    when = " at the end of PERIOD" if is_linear else ""
    ramp = """
The controls are linear in time: let the actuator move from one answer to the
next within LG_MPC_PERIOD, the first time from the inputs of the reference.
"""
    closed = """
Measured states must satisfy the constraints of the mechanism, positions and rates:
calls in Python move them there, this code does not.
"""
    in_blocks = """
The controls change in blocks. Of the inputs in u_ref, write those that the plan is to
follow, *.reference, not step.begin, step.length and *.may_change; x_ref ends with the
controls at the reference.
"""
    beside = "" if loop.rates is None else ": without the inputs at the end of a plan's"
    mean = "" if problem.has_equal_steps else " in the mean; lg_steps has them"
    names = problem.parameter_names
    entries: Any = (*system.parameters, *problem.parameters)
    units = {entry.name: entry.unit for entry in entries}
    vectors = [
        CVector("x", "state", state.nq, state.coordinate_names, state.coordinate_units),
        CVector("u", f"controls, the answer{when}", model.m, [e.name for e in controls], bounds),
        CVector(
            "i", "all inputs of the model, as references and plans have them", system.n_inputs,
            system.input_names, [entry.unit for entry in system.inputs],
        ),
        CVector("p", "parameters", len(names), names, [units[key] for key in names]),
    ]  # fmt: skip
    taken = entries_of(system, INPUT)
    if taken:
        pairs = [system.limits.get(entry) for entry in taken]
        limits = ["" if pair is None else f"{pair[0]:g} to {pair[1]:g}" for pair in pairs]
        vectors.append(CVector("r", "inputs that the controls take", len(taken), taken, limits))
    most = (
        "of any call, whatever happens: calls that find out whether hard bounds can be kept take "
        "them all"
    )
    numbers: list[tuple[str, Any, str]] = [
        ("N", N, "steps of a plan"),
        ("DT", float(problem.dt), "s, the length of a step" + mean),
        ("PERIOD", float(loop.period), "s, between calls"),
        ("NX", state.nq, "coordinates of a state of the plan"),
        ("NS", own.state.nq, "coordinates of the measured state" + beside),
        ("NU", model.m, "controls"),
        ("NI", system.n_inputs, "inputs of the model"),
        ("NP", len(names), "parameters"),
        ("NE", model.n, "error coordinates: rows of P"),
        *([("NR", len(taken), "inputs that the controls take")] if taken else []),
        ("ITERATIONS", loop.iterations, "of a call"),
        ("FIRST_ITERATIONS", loop.first_iterations, "at most, until a first plan has converged"),
        ("MOST_ITERATIONS", loop.most, most),
        *([("DELAY", float(loop.delay), "s, from call to effect")] if loop.delay else []),
        *_reach_steps(model),
        ("WORK", sizes["work"], "doubles of work memory"),
        ("RAM", 8 * _doubles(model, loop, sizes) + 8, "bytes of lg_mpc"),
    ]
    wide = max(len(f"{key} {value}") for key, value, _ in numbers)
    constants = "\n".join(
        f"#define LG_MPC_{f'{key} {value}':<{wide}} /* {what} */" for key, value, what in numbers
    )
    multipliers = sizes["plan"] - (N + 1) * state.nq - N * system.n_inputs
    memory = "\n".join(f"  double {key}[{max(1, sizes[key])}];" for key in ARRAYS)
    text = """\
Exported by lgcontrol: C99, no allocation, no global state, re-entrant: all
memory is in the caller's lg_mpc. SI units, radians; matrices by columns.

  static lg_mpc controller;
  lg_mpc_init(&controller);
  every LG_MPC_PERIOD seconds:  status = lg_mpc_step(&controller, t, x, u);

The first call plans to convergence and takes longer than others; lg_mpc_solve
does so ahead of time. Numbers of lg_mpc may be written between calls, p and the
reference above all.
"""
    text += ramp * is_linear + in_blocks * changes_in_blocks(system)
    text += closed * (own.project is not None)
    title = f"lg_mpc: model predictive control of {system.name}"
    about = c_comment(title, text.splitlines())
    return f"""\
{about}
#ifndef LG_MPC_H
#define LG_MPC_H
#include <stdint.h>

{constants}

{c_places("LG_MPC", vectors)}
/* What calls return. u is finite and within its bounds in all cases. */
enum {{
  LG_MPC_OK = {OK:d},
  /* hard bounds cannot all be kept: they are exceeded by little */
  LG_MPC_INFEASIBLE = {EXCEEDED:d},
  /* a plan that diverges, has open defects, or ended before it kept all hard bounds */
  LG_MPC_UNSOLVED = {UNSOLVED:d},
  /* t is no time or x no state: the last input, or the reference's; or calls come so much faster
   * than PERIOD that more inputs are on their way than there is memory for */
  LG_MPC_HELD = {HELD:d}
}};

typedef struct {{
  /* to write: at node k of a plan (t + k DT) the reference, with all inputs of the model; the
   * weights on the last error and on that of a free first state, by columns; parameters */
  double x_ref[LG_MPC_N + 1][LG_MPC_NX];
  double u_ref[LG_MPC_N + 1][LG_MPC_NI];
  double P[LG_MPC_NE * LG_MPC_NE], arrival[LG_MPC_NE * LG_MPC_NE];
  double p[{max(1, len(names))}];
  /* to read: the plan, and what was found of it */
  double t[LG_MPC_N + 1];
  struct {{
    double x[LG_MPC_N + 1][LG_MPC_NX];
    double u[LG_MPC_N][LG_MPC_NI];
    double multipliers[{multipliers}];
  }} plan;
  double cost;      /* of the plan before its last step, with penalties */
  double violation; /* the largest, of a hard bound */
  double defect;    /* the largest: a step of the plan ends this far off the next state */
  int status, iterations;
  /* memory */
  double x0[LG_MPC_NX], lower[LG_MPC_NU], upper[LG_MPC_NU];
  double exact_lower[LG_MPC_NU], exact_upper[LG_MPC_NU];
{memory}
}} lg_mpc;

#ifdef __cplusplus
extern "C" {{
#endif

/* Begin: reference and parameters are those of the export. Returns LG_MPC_OK. */
int lg_mpc_init(lg_mpc *m);

/* Forget the plan; reference and parameters stay. */
void lg_mpc_reset(lg_mpc *m);

/* Follow a point: a state, and all inputs that hold the model there. */
void lg_mpc_hold(lg_mpc *m, const double x_ref[LG_MPC_NX], const double u_ref[LG_MPC_NI]);

/* Controls u for the measured state x at time t [s]; see the statuses above. */
int lg_mpc_step(lg_mpc *m, double t, const double x[LG_MPC_NS], double u[LG_MPC_NU]);

/* The same from a new plan, iterated to convergence. */
int lg_mpc_solve(lg_mpc *m, double t, const double x[LG_MPC_NS], double u[LG_MPC_NU]);
{_TAKEN_HEAD if has_input else ""}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _reach_steps(model: Any) -> list[tuple[str, int, str]]:
    """What the look of `loop.c` takes, whether a start is beyond reach; nothing without one."""
    sides, limits = model.sides, model.problem.input_limits
    rows = int((np.isinf(sides.weight) & sides.active[1]).sum()) if len(sides.row) else 0
    is_bounded = np.isfinite([limits.lower, limits.upper])
    for control, side, *_ in limits.sides:
        is_bounded[side, control] = True
    if not rows or not is_bounded.all() or len(model.free) or model.problem.horizon < 2:
        return []
    parts = "" if model.problem.system.is_discrete else (
        f", each in 1 to {FIXED.reach_parts} parts, as many as its motion takes"
    )  # fmt: skip
    told = f"steps of the model at most, besides the iterations, if x violates hard bounds{parts}"
    return [("REACH_STEPS", FIXED.reach_steps * model.m * rows, told)]


def _doubles(model: Any, loop: LoopExport, sizes: dict[str, int]) -> int:
    """Numbers in the controller's struct."""
    problem, system, m = model.problem, model.problem.system, model.m
    M, nq = problem.horizon + 1, system.state.nq
    own = M * (nq + system.n_inputs) + 2 * model.n**2 + max(1, len(problem.parameter_names)) + M
    return own + sizes["plan"] + 3 + nq + 4 * m + sum(max(1, sizes[key]) for key in ARRAYS)


_TAKEN_HEAD = """
/* Inputs r of the plant that the controls u take at x, the quantity "input" of the model: torques
 * for accelerations, within their limits as far as the plan keeps them. */
void lg_mpc_input(lg_mpc *m, double t, const double x[LG_MPC_NX], const double u[LG_MPC_NU],
                  double r[LG_MPC_NR]);
"""

_TAKEN = """
void lg_mpc_input(lg_mpc *m, double t, const double x[LG_MPC_NX], const double u[LG_MPC_NU],
                  double r[LG_MPC_NR])
{
  double every[LG_MPC_NI];
  for (int i = 0; i < LG_MPC_NI; i++) every[i] = m->u_ref[0][i];
  for (int i = 0; i < LG_MPC_NU; i++) every[lg_controls[i]] = u[i];
  lg_taken(&t, x, every, m->p, r, m->work);
}
"""


def test_vectors(cases: Sequence[ExportCase], nx: int, nu: int) -> str:
    """Measured states (nx) and answers (nu) of the cases with calls; without these one of none."""
    none = ExportCase(np.zeros(0), np.zeros(nx), np.zeros(nu), [])
    cases = [case for case in cases if len(case.t)] or [none]
    first = [0, *np.cumsum([len(case.t) for case in cases])]
    tolerances = [
        np.full(len(case.t), EXACT) if case.tolerance is None else case.tolerance for case in cases
    ]
    about = [
        "",
        f"Answers of C and Python differ by rounding. The tolerance is {EXACT:g}, or more where",
        "calls let rounding grow: ten times what the answer in Python moves if the measured",
        "states move by some units in the last place. It is relative to inputs above 1.",
    ]
    statuses = [STATUSES.index(entry) for case in cases for entry in case.status]
    numbers = {"t": [case.t for case in cases], "x": [case.x.ravel() for case in cases],
               "u": [case.u.ravel() for case in cases], "tolerance": tolerances}  # fmt: skip
    return "\n".join(
        [
            c_comment("lg_mpc: test vectors, a row a call; each case begins from nothing", about),
            "#include <math.h>\n",
            f"enum {{ LG_MPC_CASES = {len(cases)} }};",
            c_table("int", "test_first", np.array(first)),
            *(c_table("double", f"test_{k}", np.concatenate(v)) for k, v in numbers.items()),
            c_table("int", "test_status", np.array(statuses)),
        ]
    )


EXAMPLE = """\
/* Example of lg_mpc: prints sizes and checks the test vectors. */
#include "lg_mpc.h"
#include "lg_mpc_test.h"
@head@
static lg_mpc example;

int main(void)
{
  double u[LG_MPC_NU], largest = 0, share = 0;
  int wrong = lg_mpc_init(&example) != LG_MPC_OK;
  for (int number = 0; number < LG_MPC_CASES; number++) {
    lg_mpc_reset(&example);
    for (int k = test_first[number]; k < test_first[number + 1]; k++) {
      const int status = lg_mpc_step(&example, test_t[k], test_x + k * LG_MPC_NS, u);
      wrong += status != test_status[k];
      const double off = difference(u, test_u + k * LG_MPC_NU, LG_MPC_NU);
      largest = fmax(largest, off), share = fmax(share, off / test_tolerance[k]);
    }
  }
  printf("code of this program: %lu bytes\\n", code_size());
  printf("workspace: %lu bytes\\n", (unsigned long)sizeof example);
  printf("calls: %d, largest difference from Python: %.3g, %.2g of its tolerance, ",
         test_first[LG_MPC_CASES], largest, share);
  printf("other statuses: %d\\n", wrong);
  return share <= 1.0 && !wrong ? 0 : 1;
}
"""
