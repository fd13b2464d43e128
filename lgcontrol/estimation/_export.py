"""Export of filters as plain C99 with a replayed run, and what windows share with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..codegen import ModelFunction
from ..codegen._internal import (
    C_EXAMPLE_HEAD,
    CVector,
    c_comment,
    c_identifiers,
    c_package_name,
    c_parts,
    c_places,
    c_remark,
    c_table,
    cmake_lists,
    write_package,
)
from ..systems import System
from ..systems._internal import EXAMPLE_SPREAD, EXAMPLE_STEP, BoundSensor
from ._status import PredictStatus, UpdateStatus

EQUAL = 1e-9  # of what C and Python have after a run: their rounding, grown over its events
EXAMPLE_STEPS = 20  # intervals of the run that the example replays
OUTLIERS, OUTLYING = (13, 15, 16), 30.0  # intervals that end in outliers; in deviations


def status_names(upper: str) -> str:
    """Entries of a C enum with the statuses of intervals and updates."""
    words = [
        f"  {upper}_{kind}_{status.name} = {int(status)},"
        for kind, statuses in (("PREDICT", PredictStatus), ("UPDATE", UpdateStatus))
        for status in statuses
    ]
    return "\n".join(words).rstrip(",")


def replay_example(
    name: str, kind: str, sizes: dict[str, int], updates: list[str], estimate: str
) -> str:
    """``main.c``: replay the run of the test header, compare estimates and covariances.

    `kind` ("filter" or "estimator") is the variable of the example. `sizes` has the estimate by its
    name in the tables of the run, and the covariance "P"; `updates` are calls of the functions of
    the measurements, `estimate` the statement that fetches the estimate.
    """
    (x, nx), (P, n) = sizes.items()
    lines = [
        f"  static {name} {kind};",
        f"  static double {x}[{nx}], {P}[{n}];",
        "  double largest = 0;",
        f"  {name}_init(&{kind}, 0.0);",
        f"  for (int k = 0; k < {name.upper()}_EVENTS; k++) {{",
        f"    const double *value = test_value + k * {name.upper()}_WIDTH;",
        f"    if (test_kind[k] == 0) {name}_predict(&{kind}, value, test_dt);",
        *(f"    if (test_kind[k] == {i + 1}) {call};" for i, call in enumerate(updates)),
        f"    {estimate}",
        f"    {name}_covariance(&{kind}, {P});",
        f"    largest = fmax(largest, difference({x}, test_{x} + k * {nx}, {nx}));",
        f"    largest = fmax(largest, difference({P}, test_covariance + k * {n}, {n}));",
        "  }",
        '  printf("code of this program: %lu bytes\\n", code_size());',
        f'  printf("memory of the {kind}: %lu bytes\\n", (unsigned long)sizeof({kind}));',
        '  printf("largest difference from Python: %.3g\\n", largest);',
        f"  return largest <= {EQUAL!r} ? 0 : 1;",
    ]
    body = "\n".join(lines)
    return f"""\
/* Example of {name}: replays a run and compares it with that in Python. */
#include "{name}.h"
#include "{name}_test.h"
{C_EXAMPLE_HEAD}
int main(void)
{{
{body}
}}
"""


class ExportedFilter(NamedTuple):
    """What of a filter is written."""

    system: System[Any]
    sensors: dict[str, BoundSensor]
    predict: ModelFunction  # ``(z, t, u, p, dt, q) → z_next, status``
    updates: dict[str, ModelFunction]  # ``(z, t, p, y, r) → z_next, said``
    covariance: ModelFunction  # ``z → P``
    start: np.ndarray
    p: np.ndarray
    densities: np.ndarray
    noise_scale: np.ndarray


def export_filter(made: ExportedFilter, folder: str | Path, name: str) -> Path:
    """Write a filter as C; see `Filter.export_c`."""
    name = c_package_name(name)
    keys = c_identifiers(made.sensors, otherwise="measurement")
    parts = {
        "predict": made.predict,
        **{f"update_{keys[key]}": value for key, value in made.updates.items()},
        "covariance": made.covariance,
    }
    written = c_parts(parts, name)
    files = written.files | {
        f"{name}.h": _header(made, name),
        f"{name}.c": _source(made, name, written.works),
        f"{name}_test.h": _run(made, name),
        "main.c": _example(made, name),
        "CMakeLists.txt": cmake_lists(name, [f"{name}.c", *written.sources]),
    }
    return write_package(folder, files)


def _updates(made: ExportedFilter) -> list[tuple[str, BoundSensor]]:
    keys = c_identifiers(made.sensors, otherwise="measurement")
    return [(keys[key], bound) for key, bound in made.sensors.items()]


def _header(made: ExportedFilter, name: str) -> str:
    system, upper = made.system, name.upper()
    inputs, units = max(1, system.n_inputs), [entry.unit for entry in system.inputs]
    vectors = [
        CVector("x", "estimate, the first entries of z", system.state.nq,
                system.state.coordinate_names, system.state.coordinate_units),
        CVector("u", "inputs, those of noise nominal", system.n_inputs, system.input_names, units),
        CVector("p", "covariance of the error, by columns", system.n_errors**2),
        CVector("error", "rows of the covariance", system.n_errors, system.error_names,
                system.error_units),
    ]  # fmt: skip
    vectors += [
        CVector(f"y_{own}", f"measurement {key}", bound.group.nq)
        for key, (own, bound) in zip(made.sensors, _updates(made), strict=True)
    ]
    updates = [
        c_remark(
            f"Correct by {key}, taken now; nis, if not 0, gets its normalised innovation "
            "squared, NaN where it has none."
        )
        + "\n"
        f"int {name}_update_{key}({name} *f, const double y[{bound.group.nq}], double *nis);"
        for key, bound in _updates(made)
    ]
    return "\n".join([
        c_comment(f"{name}: a filter of {system.name}", [
            "Exported by lgcontrol: C99, no allocation; a struct a filter. SI units, radians.",
            "What is not finite, unlikely or impossible changes nothing and is told; measurements",
            "are to be given when they were taken: late ones are the caller's.",
        ]),
        f"#ifndef {upper}_H\n#define {upper}_H\n",
        c_places(name, vectors),
        "enum {\n" + status_names(upper) + "\n};\n",
        "typedef struct {",
        f"  double z[{len(made.start)}]; /* estimate, covariance, counters, last inputs */",
        "  double t;      /* s */",
        f"}} {name};\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        "/* The first estimate, at time t. */",
        f"void {name}_init({name} *f, double t);",
        "/* Move on by dt with the inputs of that interval; returns a status. */",
        f"int {name}_predict({name} *f, const double u[{inputs}], double dt);",
        *updates,
        "/* Covariance of the error. */",
        f"void {name}_covariance(const {name} *f, double P[{system.n_errors**2}]);",
        "#ifdef __cplusplus\n}\n#endif\n",
        "#endif\n",
    ])  # fmt: skip


def _source(made: ExportedFilter, name: str, works: dict[str, int]) -> str:
    size, n = len(made.start), made.system.n_errors**2
    inputs = max(1, made.system.n_inputs)

    def call(part: str, arguments: str) -> str:
        own = ", work" if works[part] else ""
        return f"{name}_{part}_of({arguments}{own});"

    def memory(part: str) -> str:
        return f"  double work[{works[part]}];\n" if works[part] else ""

    steps = "  const int steps = 1;\n"
    if made.system.is_discrete:
        dt = repr(float(made.system.dt))
        steps = f"  const int steps = (int)(dt / {dt} + 0.5);\n  dt = {dt};\n"
    text = [
        f'#include "{name}.h"',
        *(f'#include "{name}_{part}_of.h"' for part in works),
        "",
        c_table("double", "first", made.start),
        c_table("double", "parameters", made.p),
        c_table("double", "densities", made.densities),
        f"static void take({name} *f, const double *z)\n{{\n"
        f"  for (int i = 0; i < {size}; i++) f->z[i] = z[i];\n}}\n",
        f"void {name}_init({name} *f, double t)\n{{\n  take(f, first);\n  f->t = t;\n}}\n",
        f"int {name}_predict({name} *f, const double u[{inputs}], double dt)\n"
        f"{{\n{steps}{memory('predict')}"
        f"  double z[{size}], status = 0, worst = 0;\n"
        "  if (!(dt >= 0 && dt < 1e300)) return "
        f"{name.upper()}_PREDICT_REFUSED;\n"
        "  for (int k = 0; k < steps; k++) {\n"
        f"    {call('predict', 'f->z, f->t, u, parameters, dt, densities, z, &status')}\n"
        "    take(f, z);\n    f->t += dt;\n    if (status > worst) worst = status;\n  }\n"
        "  return (int)worst;\n}\n",
    ]
    for k, (key, bound) in enumerate(_updates(made)):
        said = 2 * bound.group.dim + 3
        scale = repr(float(made.noise_scale[k]))
        text.append(
            f"int {name}_update_{key}"
            f"({name} *f, const double y[{bound.group.nq}], double *nis)\n"
            f"{{\n{memory(f'update_{key}')}"
            f"  double z[{size}], said[{said}];\n"
            f"  {call(f'update_{key}', f'f->z, f->t, parameters, y, {scale}, z, said')}\n"
            f"  take(f, z);\n  if (nis) *nis = said[{said - 3}];\n"
            f"  return (int)said[{said - 1}];\n}}\n"
        )
    text.append(
        f"void {name}_covariance(const {name} *f, double P[{n}])\n{{\n"
        f"{memory('covariance')}  {call('covariance', 'f->z, P')}\n}}\n"
    )
    return "\n".join(text)


def _run(made: ExportedFilter, name: str) -> str:
    """A run with noise, and what the filter has after each event.

    A measurement of each kind is broken, and later ones are outliers, for what gates remember.
    """
    system, rng = made.system, np.random.default_rng(0)
    dt = system.dt or EXAMPLE_STEP
    z, t = made.start, 0.0
    x = system.state.plus(z[: system.state.nq], 0.01 * rng.normal(size=system.state.dim))
    if system.project is not None:
        x = system.project(x, made.p)
    step = system.step()
    kinds, values, after, P = [], [], [], []
    width = max([system.n_inputs, *(b.group.nq for b in made.sensors.values())], default=1)

    def record(kind: int, value: np.ndarray) -> None:
        kinds.append(kind)
        values.append(np.pad(value, (0, width - len(value))))
        after.append(z)
        P.append(np.ravel(made.covariance(z), order="F"))

    lower, upper = system.input_bounds
    for k in range(EXAMPLE_STEPS):
        u = system.nominal_input + EXAMPLE_SPREAD * rng.normal(size=system.n_inputs)
        u = np.clip(u, lower, upper)
        x = step(t, x, u, made.p, dt)
        z, _ = made.predict(z, t, u, made.p, dt, made.densities)
        t += dt
        record(0, u)
        for i, (key, bound) in enumerate(made.sensors.items()):
            y = bound.draw(t, x, u, made.p, rng)
            if k == EXAMPLE_STEPS // 2:
                y = np.full_like(y, np.nan)
            elif k in OUTLIERS:
                y = bound.group.plus(y, OUTLYING * np.sqrt(np.diagonal(bound.covariance)))
            z, _ = made.updates[key](z, t, made.p, y, made.noise_scale[i])
            record(i + 1, y)
    upper_name = name.upper()
    return "\n".join([
        c_comment(f"{name}: a run, and what the filter has after each event"),
        "#include <math.h>\n",
        f"enum {{ {upper_name}_EVENTS = {len(kinds)}, {upper_name}_WIDTH = {width} }};\n",
        f"static const double test_dt = {dt!r};\n",
        c_table("int", "test_kind", np.array(kinds)),
        c_table("double", "test_value", np.array(values)),
        c_table("double", "test_z", np.array(after)),
        c_table("double", "test_covariance", np.array(P)),
    ])  # fmt: skip


def _example(made: ExportedFilter, name: str) -> str:
    size = len(made.start)
    return replay_example(
        name, "filter", {"z": size, "P": made.system.n_errors**2},
        [f"{name}_update_{key}(&filter, value, 0)" for key, _ in _updates(made)],
        f"for (int i = 0; i < {size}; i++) z[i] = filter.z[i];",
    )  # fmt: skip
