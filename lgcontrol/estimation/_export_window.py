"""Export of a moving horizon: solver, cost of arrival and loop as plain C99, with a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ..codegen import ModelFunction, trace
from ..codegen._internal import (
    LONGEST_NAME,
    CVector,
    c_comment,
    c_identifiers,
    c_number,
    c_package_name,
    c_parts,
    c_places,
    c_remark,
    c_table,
    cmake_lists,
    write_package,
)
from ..systems import System
from ._arrival import ArrivalCost
from ._export import replay_example, status_names
from ._given import OFF_UNIT
from ._log import MOST_PIECES, SAME_TIME, ULPS
from ._status import LARGEST_SQUARED, MOST_GAP_STEPS, NODE_ROUNDING


class ExportedWindow(NamedTuple):
    """What of a moving horizon is written.

    Events are a run: 0 for an interval of a step or the number of a measurement from 1 on; its
    value; estimate and covariance after it.
    """

    arrival: ArrivalCost
    move: ModelFunction  # ``(t, x, u, p, dt) → x_next`` of the system
    write_solver: Callable[[Path, str], object]  # of the window, in C
    is_whole: bool  # whether each solve goes to convergence
    x0: np.ndarray
    P0: np.ndarray
    p: np.ndarray
    events: list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]


def export_window(made: ExportedWindow, folder: str | Path, name: str) -> Path:
    """Write a moving horizon as C; see `MovingHorizon.export_c`."""
    name = c_package_name(name)[: LONGEST_NAME - len("_window")].rstrip("_")
    arrival = made.arrival
    keys = c_identifiers(arrival.sensors, otherwise="measurement")
    parts = {"first": arrival.first, "step": arrival.step, "moved": arrival.moved,
             "alone": arrival.alone, "move": made.move}  # fmt: skip
    for key, bound in arrival.sensors.items():
        normalize = bound.group.normalize
        parts[f"normal_{keys[key]}"] = trace(
            "normal", lambda y, n=normalize: n(y), {"y": (bound.group.nq,)},
            {"element": (bound.group.nq,)},
        )  # fmt: skip
    written = c_parts(parts, name)
    files = dict(written.files)
    solver = f"{name}_window"
    with TemporaryDirectory() as scratch:
        made.write_solver(Path(scratch) / "solver", solver)
        for ending in (".h", ".c"):
            path = Path(scratch) / "solver" / f"{solver}{ending}"
            files[path.name] = path.read_text(encoding="utf-8")
    files |= {
        f"{name}.h": _header(made, name, keys),
        f"{name}.c": _source(made, name, keys, written.works),
        f"{name}_test.h": _run(made, name),
        "main.c": _example(made, name, keys),
        "CMakeLists.txt": cmake_lists(name, [f"{name}.c", f"{solver}.c", *written.sources]),
    }
    return write_package(folder, files)


def _header(made: ExportedWindow, name: str, keys: dict[str, str]) -> str:
    arrival, upper = made.arrival, name.upper()
    system, n = arrival.system, arrival.system.n_errors
    inputs, N, size = max(1, system.n_inputs), arrival.horizon, arrival.inputs.size
    column, nq = n + arrival.triangle, system.state.nq
    units = [entry.unit for entry in system.inputs]
    vectors = [
        CVector("x", "estimate", nq, system.state.coordinate_names, system.state.coordinate_units),
        CVector("u", "inputs, those of noise nominal", system.n_inputs, system.input_names, units),
        CVector("p", "covariance of the error, by columns", n * n),
        CVector("error", "rows of the covariance", n, system.error_names, system.error_units),
    ]  # fmt: skip
    vectors += [
        CVector(f"y_{keys[key]}", f"measurement {key}", bound.group.nq)
        for key, bound in arrival.sensors.items()
    ]
    updates = [
        c_remark(f"Take {key} of time taken [s], now or up to {N} steps ago.") + "\n"
        f"int {name}_update_{own}({name} *e, const double y[], double taken);"
        for key, own in keys.items()
    ]
    return "\n".join([
        c_comment(f"{name}: moving horizon estimation of {system.name}", [
            "Exported by lgcontrol: C99, no allocation; all memory is in the caller's struct,",
            "which is large: make it static. SI units, radians.",
            "",
            f"{name}_estimate solves where something new came; the first time to convergence.",
            "What is not finite, too old or of the future changes nothing and is told. Intervals",
            "longer than the window move the prior alone, and the window begins anew.",
        ]),
        f'#ifndef {upper}_H\n#define {upper}_H\n#include "{name}_window.h"\n',
        c_places(name, vectors),
        "enum {\n" + status_names(upper) + "\n};\n",
        "typedef struct {",
        f"  {name}_window window; /* solver: the plan has the states of the last steps */",
        "  double t, begin;      /* s; the second of the first node */",
        "  int count, has_moved, has_plan, is_new;",
        f"  int status;           /* of the last solve, {upper}_WINDOW_OK, ... */",
        "  long unsolved, fallbacks; /* solves that led nowhere; priors kept for what was none */",
        f"  double u[{N + 1}][{size}]; /* noise, known inputs, measurements and flags by node */",
        f"  double x[{N + 1}][{nq}];",
        f"  double sum[{inputs}], length;",
        f"  double mean[{nq}], prior[{arrival.triangle}], weight[{n * n}];",
        f"  double after[{N + 1}][{column}];",
        f"}} {name};\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        "/* The first estimate, at time t. */",
        f"void {name}_init({name} *e, double t);",
        "/* Go on by dt with the inputs of that interval; returns a status. */",
        f"int {name}_predict({name} *e, const double u[{inputs}], double dt);",
        *updates,
        "/* The estimate at time e->t, with all that came. */",
        f"void {name}_estimate({name} *e, double x[{nq}]);",
        "/* Covariance of the error at the last node. */",
        f"void {name}_covariance({name} *e, double P[{n * n}]);",
        "#ifdef __cplusplus\n}\n#endif\n",
        "#endif\n",
    ])  # fmt: skip


def _source(made: ExportedWindow, name: str, keys: dict[str, str], works: dict[str, int]) -> str:
    arrival, inputs = made.arrival, made.arrival.inputs
    system, n = arrival.system, arrival.system.n_errors
    first_weight = np.linalg.inv(made.P0)
    empty = np.concatenate([np.zeros(inputs.offset), inputs.empty])
    defines = {
        "N": arrival.horizon, "DT": float(arrival.dt), "NU": inputs.size, "OFFSET": inputs.offset,
        "NI": system.n_inputs, "NQ": system.state.nq, "NE": n, "TRIANGLE": arrival.triangle,
        "COLUMN": n + arrival.triangle, "SAME_TIME": SAME_TIME,
        "WHOLE": int(made.is_whole), "DISCRETE": int(system.is_discrete),
        "FLAGS": len(inputs.flags), "INPUTS": max(1, system.n_inputs),
        "MOST_PIECES": MOST_PIECES, "MOST_GAP_STEPS": MOST_GAP_STEPS,
        "LARGEST_SQUARED": LARGEST_SQUARED, "ULPS": ULPS, "NODE_ROUNDING": NODE_ROUNDING,
    }  # fmt: skip
    text = [
        f'#include "{name}.h"',
        *(f'#include "{name}_{part}_of.h"' for part in works),
        "#include <float.h>\n#include <math.h>\n#include <string.h>\n",
        *(f"#define {key} {value!r}" for key, value in defines.items()),
        "",
        c_table("double", "first_x", made.x0),
        c_table("double", "first_prior", arrival.pack(made.P0)),
        c_table("double", "first_weight", (first_weight + first_weight.T) / 2),
        c_table("double", "parameters", made.p),
        c_table("double", "nominal", system.nominal_input),
        c_table("double", "empty", empty),
        c_table("int", "flags", np.array(inputs.flags or [0])),
        *_limits(system),
    ]
    noisy = "".join(
        f"  u[{i}] += {c_number(float(deviation))} * noise[{k}];\n"
        for k, (i, deviation) in enumerate(zip(inputs.noisy, inputs.deviation, strict=True))
    )
    for part, size in works.items():
        text.append(f"#define WORK_{part.upper()} {max(1, size)}")
        text.append(f"#define SCRATCH_{part.upper()} {', work' if size else ''}")
    loop = _LOOP.replace("NOISY", noisy)
    text.append(loop.replace("@", name).replace("$", name.upper()))
    for key, bound in arrival.sensors.items():
        own, (place, flag) = keys[key], inputs.places[key]
        lengths = []
        for part in bound.group.unit_parts:
            places = range(part.start, part.stop)
            square = " + ".join(f"y[{i}] * y[{i}]" for i in places)
            lengths.append(f"  if (!(fabs({square} - 1) <= {OFF_UNIT!r})) "
                           f"return {name.upper()}_UPDATE_OFF_GROUP;\n")  # fmt: skip
        for i, (low, high) in enumerate(zip(*(bound.limits or ((), ())), strict=True)):
            sides = [f"y[{i}] {sign} {c_number(float(end))}"
                     for sign, end in (("<=", low), (">=", high)) if np.isfinite(end)]  # fmt: skip
            if sides:
                lengths.append(f"  if ({' || '.join(sides)}) "
                               f"return {name.upper()}_UPDATE_SATURATED;\n")  # fmt: skip
        validity = bound.sensor.validity
        old = f"e->t - taken >= {float(validity)!r} || " if np.isfinite(validity) else ""
        text.append(
            f"int {name}_update_{own}({name} *e, const double y[], double taken)\n{{\n"
            f"  double work[WORK_NORMAL_{own.upper()}];\n  (void)work;\n"
            f"  if (!all_finite(y, {bound.group.nq})) return {name.upper()}_UPDATE_NOT_FINITE;\n"
            + "".join(lengths)
            + f"  if (!(taken <= e->t + rounding_of(e->t))) return {name.upper()}_UPDATE_FUTURE;\n"
            f"  if ({old}!(taken - e->begin >= -DT / 2)) return {name.upper()}_UPDATE_STALE;\n"
            "  const int node = (int)nearbyint((taken - e->begin) / DT);\n"
            f"  if (node == 0 && e->has_moved) return {name.upper()}_UPDATE_STALE;\n"
            f"  {name}_normal_{own}_of(y, e->u[node] + {place.start} "
            f"SCRATCH_NORMAL_{own.upper()});\n"
            f"  e->u[node][{flag}] = 1;\n  e->is_new = 1;\n"
            f"  return {name.upper()}_UPDATE_USED;\n}}\n"
        )
    return "\n".join(text)


def _limits(system: System[Any]) -> list[str]:
    """Tables of the bounds of measured inputs, and which inputs those are."""
    rows = system.input_index("measured")
    lower, upper = system.input_bounds
    least, most = np.full(system.n_inputs, -np.inf), np.full(system.n_inputs, np.inf)
    least[rows], most[rows] = lower[rows], upper[rows]
    return [c_table("double", "least", least), c_table("double", "most", most)]


_LOOP = """
static double rounding_of(double t)
{
  return fmax(SAME_TIME, ULPS * DBL_EPSILON * fabs(t));
}

static int all_finite(const double *values, int count)
{
  for (int i = 0; i < count; i++)
    if (!(fabs(values[i]) < LARGEST_SQUARED)) return 0;
  return 1;
}

/* Cholesky factor L of a covariance, whose lower triangle is given by columns. Returns 0 if the
   matrix is not positive definite. */
static int factor(const double *lower, double *L)
{
  for (int j = 0; j < NE; j++)
    for (int i = j; i < NE; i++) {
      double rest = *lower++;
      for (int k = 0; k < j; k++) rest -= L[i + NE * k] * L[j + NE * k];
      if (i == j && !(rest > 0 && rest < INFINITY)) return 0;
      L[i + NE * j] = i == j ? sqrt(rest) : rest / L[j + NE * j];
    }
  return 1;
}

/* Whether a covariance has an inverse. */
static int is_positive(const double *lower)
{
  double L[NE * NE];
  return factor(lower, L);
}

/* Whether this is what a window can begin with. */
static int is_prior(const double *mean, const double *prior, const double *weight)
{
  double lower[TRIANGLE], *entry = lower;
  for (int j = 0; j < NE; j++)
    for (int i = j; i < NE; i++) *entry++ = weight[i + NE * j];
  return all_finite(mean, NQ) && all_finite(prior, TRIANGLE) && all_finite(weight, NE * NE) &&
         is_positive(prior) && is_positive(lower);
}

/* Inverse of a covariance that is positive, by its factor. */
static void invert(const double *lower, double *weight)
{
  double L[NE * NE], column[NE];
  if (!factor(lower, L)) return;
  for (int c = 0; c < NE; c++) {
    for (int i = 0; i < NE; i++) {
      column[i] = i == c;
      for (int k = 0; k < i; k++) column[i] -= L[i + NE * k] * column[k];
      column[i] /= L[i + NE * i];
    }
    for (int i = NE - 1; i >= 0; i--) {
      for (int k = i + 1; k < NE; k++) column[i] -= L[k + NE * i] * column[k];
      column[i] /= L[i + NE * i];
    }
    for (int i = 0; i < NE; i++) weight[i + NE * c] = column[i];
  }
  for (int c = 0; c < NE; c++)
    for (int i = 0; i < c; i++)
      weight[i + NE * c] = weight[c + NE * i] = (weight[i + NE * c] + weight[c + NE * i]) / 2;
}

/* State after some time, or this one where that is not finite. */
static void forward(double t, const double *x, const double *u, double dt, double *next)
{
  double work[WORK_MOVE], later[NQ];
  (void)work;
  @_move_of(t, x, u, parameters, dt, later SCRATCH_MOVE);
  memcpy(next, all_finite(later, NQ) ? later : x, sizeof later);
}

/* The inputs that go on where nothing else is known. */
static void held_inputs(const @ *e, double *u)
{
  for (int i = 0; i < NI; i++)
    u[i] = e->length > 0 ? e->sum[i] / e->length
           : e->count ? e->u[e->count - 1][OFFSET + i] : nominal[i];
}

/* What the window says of each state, from the cost of arrival on. */
static void carry(@ *e)
{
  double work[WORK_FIRST > WORK_STEP ? WORK_FIRST : WORK_STEP];
  (void)work;
  @_first_of(e->mean, e->prior, e->x[0], e->u[0], parameters, e->after[0] SCRATCH_FIRST);
  for (int k = 0; k < N; k++)
    @_step_of(e->after[k], e->x[k], e->x[k + 1], e->u[k], e->u[k + 1], parameters,
              e->after[k + 1] SCRATCH_STEP);
  for (int k = 0; k <= N; k++) {
    if (all_finite(e->after[k], COLUMN) && is_positive(e->after[k] + NE)) continue;
    e->fallbacks++;
    for (int i = 0; i < NE; i++) e->after[k][i] = 0;
    memcpy(e->after[k] + NE, e->prior, sizeof e->prior);
  }
}

static void solve(@ *e)
{
  @_window *w = &e->window;
  double answer[OFFSET], held[INPUTS];
  if (!e->is_new) return;
  held_inputs(e, held);
  for (int k = e->count; k <= N; k++) memcpy(e->u[k] + OFFSET, held, NI * sizeof(double));
  for (int k = 0; k <= N; k++) {
    memcpy(w->x_ref[k], e->mean, sizeof e->mean);
    memcpy(w->u_ref[k], e->u[k], sizeof e->u[k]);
    for (int i = 0; i < OFFSET; i++) w->u_ref[k][i] = 0;
  }
  memcpy(w->arrival, e->weight, sizeof e->weight);
  if (WHOLE || !e->has_plan)
    e->status = @_window_solve(w, e->begin, e->mean, answer);
  else
    e->status = @_window_step(w, e->begin, e->mean, answer);
  e->is_new = 0, e->has_plan = e->count > 0;
  if (e->status == $_WINDOW_HELD || !(w->state[0] > 0) || /* no plan, or one that leads nowhere */
      !all_finite(w->plan.x[0], (N + 1) * NQ) || !all_finite(w->plan.u[0], N * NU)) {
    memcpy(e->x[0], e->mean, sizeof e->mean);
    for (int k = 0; k <= N; k++) {
      for (int i = 0; i < OFFSET; i++) e->u[k][i] = 0;
      if (k < N) forward(e->begin, e->x[k], e->u[k] + OFFSET, DT, e->x[k + 1]);
    }
    e->has_plan = 0, e->unsolved++;
    @_window_reset(w);
  } else {
    memcpy(e->x, w->plan.x, sizeof e->x);
    for (int k = 0; k < N; k++) memcpy(e->u[k], w->plan.u[k], OFFSET * sizeof(double));
  }
  carry(e);
}

/* Prior after an interval in which only the inputs are known. */
static void move_alone(double *mean, double *prior, double t, const double *u, double dt)
{
  double work[WORK_ALONE], next_mean[NQ], next_prior[TRIANGLE];
  (void)work;
  @_alone_of(mean, prior, t, u, parameters, dt, next_mean, next_prior SCRATCH_ALONE);
  memcpy(mean, next_mean, sizeof next_mean);
  memcpy(prior, next_prior, sizeof next_prior);
}

/* What the window says of a state, as its prior; where that is none its own one, moved on by dt. */
static void take_prior(@ *e, int k, double dt)
{
  double work[WORK_MOVED], mean[NQ], prior[TRIANGLE], weight[NE * NE];
  (void)work;
  @_moved_of(e->after[k], e->x[k], parameters, mean, prior, weight SCRATCH_MOVED);
  if (!is_prior(mean, prior, weight)) {
    e->fallbacks++, e->has_plan = 0;
    @_window_reset(&e->window);
    if (!(dt > 0)) return;
    memcpy(mean, e->mean, sizeof mean);
    memcpy(prior, e->prior, sizeof prior);
    move_alone(mean, prior, e->begin, e->u[0] + OFFSET, dt);
    if (!is_positive(prior)) return;
    invert(prior, weight);
    if (!is_prior(mean, prior, weight)) return;
  }
  memcpy(e->mean, mean, sizeof mean);
  memcpy(e->prior, prior, sizeof prior);
  memcpy(e->weight, weight, sizeof weight);
}

/* Drop the first step; what it says becomes the cost of arrival at the second node. */
static void drop(@ *e)
{
  solve(e);
  take_prior(e, 1, DT);
  e->begin += DT, e->count--, e->has_moved = 1;
  memmove(e->u[0], e->u[1], N * sizeof e->u[0]);
  memmove(e->x[0], e->x[1], N * sizeof e->x[0]);
  memmove(e->after[0], e->after[1], N * sizeof e->after[0]);
  memcpy(e->u[N] + OFFSET, empty + OFFSET, (NU - OFFSET) * sizeof(double));
  for (int i = 0; i < FLAGS; i++) e->u[0][flags[i]] = 0;
}

/* An empty window at time t, after its prior. */
static void begin_at(@ *e, double t)
{
  e->t = e->begin = t;
  e->count = e->has_moved = e->has_plan = e->is_new = 0;
  e->length = 0;
  memset(e->sum, 0, sizeof e->sum);
  memset(e->after, 0, sizeof e->after);
  for (int k = 0; k <= N; k++) {
    memcpy(e->u[k], empty, sizeof empty);
    memcpy(e->x[k], e->mean, sizeof e->mean);
    memcpy(e->after[k] + NE, e->prior, sizeof e->prior);
  }
  @_window_reset(&e->window);
}

/* Beyond the horizon: the prior, with what the window says, and an empty window after. */
static int leap(@ *e, const double *u, double dt)
{
  double begun[INPUTS], mean[NQ], prior[TRIANGLE], weight[NE * NE];
  double kept_mean[NQ], kept_prior[TRIANGLE], kept_weight[NE * NE];
  solve(e);
  memcpy(kept_mean, e->mean, sizeof kept_mean);
  memcpy(kept_prior, e->prior, sizeof kept_prior);
  memcpy(kept_weight, e->weight, sizeof kept_weight);
  take_prior(e, e->count, 0.0);
  memcpy(mean, e->mean, sizeof mean);
  memcpy(prior, e->prior, sizeof prior);
  memcpy(e->mean, kept_mean, sizeof kept_mean);
  memcpy(e->prior, kept_prior, sizeof kept_prior);
  memcpy(e->weight, kept_weight, sizeof kept_weight);
  double t = e->t - e->length, step = DT;
  const double whole = DISCRETE ? e->length + dt : dt;
  long count = (long)fmin(fmax(nearbyint(whole / DT), 1), DISCRETE ? MOST_GAP_STEPS : MOST_PIECES);
  if (!DISCRETE) step = dt / (double)count;
  if (!DISCRETE && e->length > SAME_TIME) {
    for (int i = 0; i < NI; i++) begun[i] = e->sum[i] / e->length;
    move_alone(mean, prior, t, begun, e->length);
    t += e->length;
  }
  for (; count > 0; count--, t += step) move_alone(mean, prior, t, u, step);
  if (!all_finite(mean, NQ) || !is_positive(prior)) return 0;
  invert(prior, weight);
  memcpy(e->mean, mean, sizeof mean);
  memcpy(e->prior, prior, sizeof prior);
  memcpy(e->weight, weight, sizeof weight);
  begin_at(e, e->t + dt);
  return 1;
}

void @_init(@ *e, double t)
{
  memset(e, 0, sizeof *e);
  @_window_init(&e->window);
  memcpy(e->mean, first_x, sizeof e->mean);
  memcpy(e->prior, first_prior, sizeof e->prior);
  memcpy(e->weight, first_weight, sizeof e->weight);
  begin_at(e, t);
}

int @_predict(@ *e, const double u[INPUTS], double dt)
{
  double given[INPUTS], held[INPUTS];
  int status = $_PREDICT_PREDICTED;
  const double end = e->t + dt;
  if (!(dt >= 0 && DBL_EPSILON * fabs(end) < NODE_ROUNDING * DT)) return $_PREDICT_REFUSED;
  held_inputs(e, held);
  for (int i = 0; i < NI; i++) {
    given[i] = u[i];
    if (fabs(u[i]) < LARGEST_SQUARED) continue;
    if (status == $_PREDICT_PREDICTED) status = $_PREDICT_HELD;
    given[i] = held[i];
  }
  for (int i = 0; i < NI; i++) {
    if (given[i] > least[i] && given[i] < most[i]) continue;
    status = $_PREDICT_SATURATED;
    given[i] = fmin(fmax(given[i], least[i]), most[i]);
  }
  const double rounding = rounding_of(end);
  if (dt > N * DT + rounding) return leap(e, given, dt) ? status : $_PREDICT_REFUSED;
  while (end - e->t > rounding) {
    if (!(e->length > 0) && e->count == N) drop(e);
    const double node = e->begin + (e->count + 1) * DT;
    const double step = (end < node ? end : node) - e->t;
    for (int i = 0; i < NI; i++) e->sum[i] += step * given[i];
    e->length += step, e->t += step;
    if (node - e->t > rounding) continue;
    e->t = node;
    for (int i = 0; i < NI; i++) e->u[e->count][OFFSET + i] = e->sum[i] / e->length;
    e->count++, e->is_new = 1, e->length = 0;
    for (int i = 0; i < NI; i++) e->sum[i] = 0;
  }
  return status;
}

void @_estimate(@ *e, double x[NQ])
{
  double u[INPUTS];
  solve(e);
  memcpy(x, e->x[e->count], sizeof e->mean);
  if (DISCRETE || !(e->length > SAME_TIME)) return;
  const double *noise = e->u[e->count];
  for (int i = 0; i < NI; i++) u[i] = e->sum[i] / e->length;
NOISY  forward(e->t - e->length, e->x[e->count], u, e->length, x);
}

void @_covariance(@ *e, double P[NE * NE])
{
  solve(e);
  const double *lower = e->after[e->count] + NE;
  for (int j = 0; j < NE; j++)
    for (int i = j; i < NE; i++) P[i + NE * j] = P[j + NE * i] = *lower++;
}
"""


def _run(made: ExportedWindow, name: str) -> str:
    """A run, and what the estimator has after each event."""
    kinds, values, x, P = zip(*made.events, strict=True)
    width, upper = max(len(value) for value in values), name.upper()
    padded = [np.pad(value, (0, width - len(value))) for value in values]
    return "\n".join([
        c_comment(f"{name}: a run, and what the estimator has after each event"),
        "#include <math.h>\n",
        f"enum {{ {upper}_EVENTS = {len(kinds)}, {upper}_WIDTH = {width} }};\n",
        f"static const double test_dt = {float(made.arrival.dt)!r};\n",
        c_table("int", "test_kind", np.array(kinds)),
        c_table("double", "test_value", np.array(padded)),
        c_table("double", "test_x", np.array(x)),
        c_table("double", "test_covariance", np.array([np.ravel(one) for one in P])),
    ])  # fmt: skip


def _example(made: ExportedWindow, name: str, keys: dict[str, str]) -> str:
    system = made.arrival.system
    return replay_example(
        name, "estimator", {"x": system.state.nq, "P": system.n_errors**2},
        [f"{name}_update_{own}(&estimator, value, estimator.t)" for own in keys.values()],
        f"{name}_estimate(&estimator, x);",
    )  # fmt: skip
