"""Export of the interior point: a predictive controller in plain C99, with its test vectors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen._internal import (
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
from ..groups._internal import ELEMENT_ROUNDING, ELEMENT_TOLERANCE
from ._expressions import entries_of
from ._guess import STARTS
from ._input_limits import LEAST_WIDTH
from ._interior_point import Barrier
from ._kernel import LOG, SOURCE, START, Memory, parts_of, pattern_of, sizes_of, start_parts
from ._reference import TIME_ROUNDING
from ._settings import c_settings, c_values
from ._stage_model import StageModel
from ._transcription import Setting

CONTROLLER = Path(__file__).with_name("_controller.c")

# What calls return, as `_controller.c` names it.
STATUSES = ("OK", "INFEASIBLE", "UNSOLVED", "HELD")

# The quantity of a system that its controls take: torques of `with_accelerations`.
INPUT = "input"

# Multipliers, which the next call goes on from.
_PRICES = ("below", "above", "price", "relief", "equal_price")


@dataclass(frozen=True, eq=False)
class ExportCase:
    """Calls of a controller from its start on, one test of an export.

    Attributes
    ----------
    t : ndarray, shape (calls,)
    x : ndarray, shape (calls, nq)
        Measured states.
    u : ndarray, shape (calls, m)
        Answers.
    status : sequence of str
        Of `STATUSES`.
    """

    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    status: Sequence[str]


@dataclass(frozen=True, eq=False)
class ExportSetting:
    """How a controller runs.

    Attributes
    ----------
    period : float
        Time between calls, s.
    iterations, first_iterations : int
        In a call, and until the first plan has converged.
    tolerance : float
        Of the first plan.
    starts : tuple of str
        Which starts a first plan is made from.
    setting : Setting
        Reference, parameters, terminal weight that it begins with.
    shooting : str
    second_derivatives : bool
    eager, central, real_time : Barrier
        Of motions without rows, of others, and of real-time steps.
    holds : bool
        Whether the last inputs go on where there is no answer; else nominal ones, as of rates.
    delay : float
        Time from call to effect, s.
    """

    period: float
    iterations: int
    first_iterations: int
    tolerance: float
    starts: tuple[str, ...]
    setting: Setting
    shooting: str
    second_derivatives: bool
    eager: Barrier
    central: Barrier
    real_time: Barrier
    holds: bool
    delay: float

    @property
    def queue(self) -> int:
        """Answers that may be on their way at once."""
        return 2 * ceil(self.delay / self.period) + 2 if self.delay else 0


def export_interior_point(
    model: StageModel,
    loop: ExportSetting,
    folder: str | Path,
    name: str,
    cases: Sequence[ExportCase],
) -> Path:
    """Write a predictive controller as C.

    Parameters
    ----------
    model : StageModel
    loop : ExportSetting
    folder : path
    name : str
        Prefix of all names.
    cases : sequence of ExportCase
        What the example checks, each from a fresh start.

    Returns
    -------
    Path

    Raises
    ------
    NotImplementedError
        If a function of the problem is not made of scalar operations.
    """
    name = c_package_name(name)
    curved = loop.second_derivatives and model.curvature is not None
    parts = [p for p in parts_of(model) if curved or "curvature" not in p.name]
    parts += [*start_parts(model), Part("lg_normalize", model.element)]
    taken = model.problem.system.quantities.get(INPUT)
    parts += [] if taken is None else [Part("lg_taken", taken)]
    functions, scratch = unit_source(parts, None)
    work = work_doubles(model, scratch)
    files = {
        f"{name}.h": _header(model, loop, work),
        f"{name}.c": "\n".join(
            [
                '#include "lg_mpc.h"\n',
                C99_HINTS,
                functions.replace("#include <stdlib.h>\n", ""),
                "#define LG_EXPORT static",
                c_settings(),
                c_values(model.settings, "lg_given"),
                sizes_of(model, scratch, curved=curved),
                pattern_of(model),
                SOURCE.read_text(encoding="utf-8"),
                START.read_text(encoding="utf-8"),
                _constants(model, loop, curved),
                CONTROLLER.read_text(encoding="utf-8"),
                "" if taken is None else _TAKEN,
            ]
        ),
        f"{name}_test.h": test_vectors(cases),
        "main.c": EXAMPLE.replace("@head@", C_EXAMPLE_HEAD).replace("@nx@", "LG_MPC_NX"),
        "CMakeLists.txt": cmake_lists(name, [f"{name}.c"]),
    }
    return write_package(folder, {key: _renamed(text, name) for key, text in files.items()})


def _renamed(text: str, name: str) -> str:
    text = re.sub(r"\blg_mpc(?=_|\b)", name, text)
    return re.sub(r"\bLG_MPC(?=_)", name.upper(), text)


def work_doubles(model: StageModel, scratch: int) -> int:
    """Numbers of work memory, by what `lay_out` takes."""
    N = model.problem.horizon
    sizes = {
        "N": N, "M": N + 1, "NX": model.n, "NV": model.m, "NQ": model.group.nq,
        "NU": model.problem.system.n_inputs, "NR": len(model.transcription.rows.names),
        "NS": len(model.sides.row), "NE": len(model.sides.equal), "NZ": model.n + model.m,
        "LG_SUB": int(model.composes), "LG_TURN": len(model.turn[0]) if model.composes else 0,
        "LG_BEND": len(model.bend_places), "sweeps": model.settings.equality_sweeps_most,
        "LG_LOG": len(LOG),
    }  # fmt: skip
    total = 0
    for term in re.findall(r"take\(&memory, ([^)]+)\)", SOURCE.read_text(encoding="utf-8")):
        count = int(np.prod([sizes[factor.strip()] for factor in term.split("*")]))
        total += -(-count // 8) * 8
    return total + scratch


def _fields(model: StageModel) -> dict[str, tuple[int, ...]]:
    """Arrays of the kernel that a controller holds, by name."""
    return {
        key: shape
        for key, shape in Memory.shapes(model, 0).items()
        if key not in ("t", "x_ref", "u_ref", "p", "P", "arrival", "x", "u", "log", *_PRICES)
    }


def _header(model: StageModel, loop: ExportSetting, work: int) -> str:
    problem, system = model.problem, model.problem.system
    state = system.state
    controls = [system.inputs[i] for i in model.controls]
    bounds = [
        f"{entry.unit}, {entry.lower:g} to {entry.upper:g}".lstrip(", ") for entry in controls
    ]
    names = problem.parameter_names
    entries: Any = (*system.parameters, *problem.parameters)
    units = {entry.name: entry.unit for entry in entries}
    vectors = [
        CVector("x", "state", state.nq, state.coordinate_names, state.coordinate_units),
        CVector("u", "controls, the answer", model.m, [e.name for e in controls], bounds),
        CVector(
            "i", "all inputs of the model, as references and plans have them", system.n_inputs,
            system.input_names, [entry.unit for entry in system.inputs],
        ),
        CVector("p", "parameters", len(names), names, [units[key] for key in names]),
    ]  # fmt: skip
    N, nq, nu = problem.horizon, state.nq, system.n_inputs
    n, taken = model.n, entries_of(system, INPUT)
    if taken:
        pairs = [system.limits.get(entry) for entry in taken]
        limits = ["" if pair is None else f"{pair[0]:g} to {pair[1]:g}" for pair in pairs]
        vectors.append(CVector("r", "inputs that the controls take", len(taken), taken, limits))
    memory = [f"  double {key}[{max(1, int(np.prod(s)))}];" for key, s in _fields(model).items()]
    shapes = model.iterate_shapes
    prices = [f"    double {key}[{max(1, int(np.prod(shapes[key])))}];" for key in _PRICES]
    most = max(loop.first_iterations, loop.iterations) + model.settings.steps_more + 1
    ns = max(1, len(model.sides.row))
    queue = ""
    if loop.queue:
        queue = f"""
  double clock, queue_t[{loop.queue}], queue_u[{loop.queue}][LG_MPC_NU]; /* answers on their way */
  int has_clock, queued;"""
    tried = ", tried[2]" if len(model.hard_limits) else ""  # hard rows at a penalty
    numbers = [
        ("N", N, "steps of a plan"),
        ("DT", float(problem.dt), "s, the length of a step"),
        ("PERIOD", float(loop.period), "s, between calls"),
        ("NX", nq, "coordinates of the state"),
        ("NU", model.m, "controls"),
        ("NI", nu, "inputs of the model"),
        ("NP", len(names), "parameters"),
        ("NE", n, "error coordinates: rows of P"),
        *([("NR", len(taken), "inputs that the controls take")] if taken else []),
        ("ITERATIONS", loop.iterations, "of a call"),
        ("FIRST_ITERATIONS", loop.first_iterations, "at most, until a first plan has converged"),
        ("EXCESS", model.settings.violation_kept, "over a hard bound that still counts as kept"),
        *([("DELAY", float(loop.delay), "s, from call to effect")] if loop.delay else []),
        ("WORK", work, "doubles of work memory"),
    ]
    wide = max(len(f"{key} {value}") for key, value, _ in numbers)
    constants = "\n".join(
        f"#define LG_MPC_{f'{key} {value}':<{wide}} /* {what} */" for key, value, what in numbers
    )
    text = c_places("LG_MPC", vectors)
    return f"""\
{
        c_comment(
            f"lg_mpc: model predictive control of {system.name}",
            [
                "Exported by lgcontrol: C99, no allocation, no global state, re-entrant: all",
                "memory is in the caller's lg_mpc. SI units, radians; matrices by columns.",
                "",
                "  static lg_mpc controller;",
                "  lg_mpc_init(&controller);",
                "  every LG_MPC_PERIOD seconds:  status = lg_mpc_step(&controller, t, x, u);",
                "",
                "The first call plans to convergence and takes longer than others; lg_mpc_solve",
                "does so ahead of time. Numbers of lg_mpc may be written between calls, p and the",
                "reference above all.",
            ],
        )
    }
#ifndef LG_MPC_H
#define LG_MPC_H
#include <stdint.h>

{constants}

{text}
/* What calls return. u is finite and within its bounds in all cases. */
enum {{
  LG_MPC_OK = 0,
  LG_MPC_INFEASIBLE = 1, /* hard bounds cannot all be kept: they are exceeded by little */
  LG_MPC_UNSOLVED = 2,   /* no step improves the last plan: its input; the next call plans anew;
                            or planning ended before all hard bounds were kept */
  LG_MPC_HELD = 3        /* t is no time or x no state: the last input, or the reference's */
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
  double x[LG_MPC_N + 1][LG_MPC_NX];
  double u[LG_MPC_N][LG_MPC_NI];
  double cost;      /* of the plan before its last step */
  double violation; /* the largest, of a hard bound */
  int status, iterations;
  /* memory */
  double contradiction;
  int is_planned, has_answered, is_priced;
  double highest; /* weight of the barrier */
  double last[LG_MPC_NU];{queue}
  double soft_weight[{ns}];
  struct lg_mpc_prices {{
{chr(10).join(prices)}
    double mu, step, cost;
  }} prices;
  struct lg_mpc_iterate {{
    double x[{(N + 1) * nq}], u[{N * nu}], K[{N * n * model.m}], worst, cost;
    struct lg_mpc_prices prices;
  }} from, best{tried};
{chr(10).join(memory)}
  double log[{most * 8}];
  double work[LG_MPC_WORK];
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
int lg_mpc_step(lg_mpc *m, double t, const double x[LG_MPC_NX], double u[LG_MPC_NU]);

/* The same from a new plan, iterated to convergence. */
int lg_mpc_solve(lg_mpc *m, double t, const double x[LG_MPC_NX], double u[LG_MPC_NU]);
{_TAKEN_HEAD if taken else ""}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _constants(model: StageModel, loop: ExportSetting, curved: bool) -> str:
    """Tables, settings, and how the problem is made of the controller's memory."""
    setting, system = loop.setting, model.problem.system
    shooting = {"auto": "LG_AUTO", "states": "LG_STATES", "rollout": "LG_ROLLOUT"}
    text = [
        f"#define LG_TOLERANCE {loop.tolerance!r}",
        f"#define LG_SHOOTING {shooting[loop.shooting]}",
        f"#define LG_HAS_HARD_ROWS {int(model.has_hard_rows)}",
        f"#define LG_HAS_HARD_LIMITS {int(len(model.hard_limits) > 0)}",
        f"#define LG_LEAST_WIDTH {LEAST_WIDTH!r}",
        f"#define LG_ELEMENT_TOLERANCE {ELEMENT_TOLERANCE!r}",
        f"#define LG_ELEMENT_ROUNDING {ELEMENT_ROUNDING!r}",
        f"#define LG_HOLDS {int(loop.holds)}",
        f"#define LG_QUEUE {loop.queue}",
        f"#define LG_EARLY {TIME_ROUNDING!r}",
        f"#define LG_STARTS {sum(STARTS[key] for key in loop.starts)}",
    ]
    constants = Memory.constants(model)
    for key, value in constants.items():
        kind = "int64_t" if key in ("row", "equal") else "double"
        text.append(c_table(kind, f"lg_{key}", np.asarray(value)))
    text += [
        c_table("double", "lg_eager", np.array(loop.eager)),
        c_table("double", "lg_central", np.array(loop.central)),
        c_table("double", "lg_real_time", np.array(loop.real_time)),
        c_table("double", "lg_lower", model.problem.input_limits.lower),
        c_table("double", "lg_upper", model.problem.input_limits.upper),
        c_table("double", "lg_nominal", system.nominal_input[model.controls]),
        c_table("double", "lg_inputs", system.nominal_input) if loop.queue else "",
        c_table("double", "lg_x_ref", setting.x_ref),
        c_table("double", "lg_u_ref", setting.u_ref),
        c_table("double", "lg_p", setting.p),
        c_table("double", "lg_P", setting.terminal.T),
        c_table("double", "lg_arrival_weight", setting.arrival),
        "static void attach(lg_mpc *m, lg_problem *q)\n{",
        "  memset(q, 0, sizeof *q);",
        f"  q->horizon = LG_MPC_N, q->dt = LG_MPC_DT, q->curved = {int(curved)};",
        "  q->set = &lg_given;",
        *(f"  q->{key} = lg_{key};" for key in constants),
        *(f"  q->{key} = m->{key}[0];" for key in ("x_ref", "u_ref", "x", "u")),
        *(
            f"  q->{key} = m->{key};"
            for key in ("t", "p", "P", "arrival", "log", "work", *_fields(model))
        ),
        *(f"  q->{key} = m->prices.{key};" for key in _PRICES),
        "}\n",
        _tighten(model),
        _soft_weights(model),
    ]
    return "#include <string.h>\n" + "\n".join(text)


def _tighten(model: StageModel) -> str:
    """C function that takes bounds of the controls into their limits; see `InputLimits`."""
    problem, lines = model.problem, []
    names = problem.parameter_names
    for i, side, limit, _ in problem.input_limits.sides:
        word, pick = (("low", "fmax"), ("high", "fmin"))[side]
        text = f"m->p[{names.index(limit)}]" if isinstance(limit, str) else c_number(limit)
        lines.append(f"  {word}[{i}] = {pick}({word}[{i}], {text});")
    head = "static void tighten(const lg_mpc *m, double *low, double *high)"
    return "\n".join([head, "{", "  (void)m, (void)low, (void)high;", *lines, "}", ""])


def _soft_weights(model: StageModel) -> str:
    """C function of the prices of soft sides, some of which are parameters."""
    rows, dt = model.transcription.rows, c_number(float(model.problem.dt))
    lines = [
        f"  weight[{j}] = m->p[{rows.parameter[row]}] * {dt};"
        for j, row in enumerate(model.sides.row.tolist())
        if rows.parameter[row] >= 0
    ]
    head = "static void soft_weights(const lg_mpc *m, double *weight)"
    copy = "  for (int j = 0; j < NS; j++) weight[j] = lg_weight[j];"
    return "\n".join([head, "{", "  (void)m;", copy, *lines, "}", ""])


def test_vectors(cases: Sequence[ExportCase]) -> str:
    """Measured states and answers of the cases."""
    none = ExportCase(np.zeros(0), np.zeros(0), np.zeros(0), [])
    cases = list(cases) or [none]
    first = [0, *np.cumsum([len(case.t) for case in cases])]
    return "\n".join(
        [
            c_comment("lg_mpc: test vectors, a row a call; each case begins from nothing"),
            "#include <math.h>\n",
            f"enum {{ LG_MPC_CASES = {len(cases)} }};",
            c_table("int", "test_first", np.array(first)),
            c_table("double", "test_t", np.concatenate([case.t for case in cases])),
            c_table("double", "test_x", np.concatenate([case.x.ravel() for case in cases])),
            c_table("double", "test_u", np.concatenate([case.u.ravel() for case in cases])),
            c_table(
                "int",
                "test_status",
                np.array([STATUSES.index(entry) for case in cases for entry in case.status]),
            ),
        ]
    )


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
  double every[NU];
  for (int i = 0; i < NU; i++) every[i] = m->u_ref[0][i];
  for (int i = 0; i < NV; i++) every[lg_controls[i]] = u[i];
  lg_taken(&t, x, every, m->p, r, m->work);
}
"""

EXAMPLE = """\
/* Example of lg_mpc: prints sizes and checks the test vectors. */
#include "lg_mpc.h"
#include "lg_mpc_test.h"
@head@
static lg_mpc example;

int main(void)
{
  double u[LG_MPC_NU], largest = 0;
  int wrong = lg_mpc_init(&example) != LG_MPC_OK;
  for (int number = 0; number < LG_MPC_CASES; number++) {
    lg_mpc_reset(&example);
    for (int k = test_first[number]; k < test_first[number + 1]; k++) {
      const int status = lg_mpc_step(&example, test_t[k], test_x + k * @nx@, u);
      wrong += status != test_status[k];
      largest = fmax(largest, difference(u, test_u + k * LG_MPC_NU, LG_MPC_NU));
    }
  }
  printf("code of this program: %lu bytes\\n", code_size());
  printf("workspace: %lu bytes\\n", (unsigned long)sizeof example);
  printf("largest difference from Python: %.3g, other statuses: %d\\n", largest, wrong);
  return largest <= 1e-9 && !wrong ? 0 : 1;
}
"""
