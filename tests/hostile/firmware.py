"""Programs of exported controllers and estimators that take their calls from outside."""

import subprocess

import numpy as np

from ..codegen.test_export import SANITIZED, built, has_sanitizers

# After the includes: reads count numbers; ends the program where there are none.
_HEAD = """\
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static void take(double *values, int count) {
  for (int i = 0; i < count; i++) if (scanf("%lf", values + i) != 1) exit(0);
}
static void tell(const double *values, int count) {
  for (int i = 0; i < count; i++) printf("%.17g ", values[i]);
}
"""


def program_of(folder, text, into, *, is_watched=True):
    """A program of an export and what calls it, under sanitizers where there are any.

    Their build takes four times as long: not with ``is_watched=False``.
    """
    main = into / "told.c"
    main.write_text(f'#include "{folder.name}.h"\n{_HEAD}int main(void) {{\n{text}}}\n')
    sources = [main, *sorted(p.name for p in folder.glob("*.c") if p.name != "main.c")]
    level = " ".join(("-O0", *SANITIZED)) if is_watched and has_sanitizers() else "-O0"
    return built(folder, *sources, into=into, level=level)


def answers_of(program, calls):
    """Rows of numbers that a program answers to rows of numbers."""
    text = "\n".join(" ".join(map(repr, map(float, row))) for row in calls)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)


def estimator_program(estimator, into, name="own", *, is_watched=True):
    """Takes ``[kind, dt or time, values]``, kind 0 for intervals; answers ``[status, x, P]``."""
    folder = estimator.export_c(into / name, name=name)
    system, keys = estimator.system, list(estimator.sensors)
    width = width_of(estimator)
    is_filter = "typedef struct {\n  double z[" in (folder / f"{name}.h").read_text()
    n, nq = system.n_errors, system.state.nq
    cases = [f"    if (v[0] == 0) status = {name}_predict(&e, v + 2, v[1]);\n"]
    for k, key in enumerate(keys):
        last = "0" if is_filter else "v[1]"
        cases.append(f"    if (v[0] == {k + 1}) status = {name}_update_{key}(&e, v + 2, {last});\n")
    read = (f"for (int i = 0; i < {nq}; i++) x[i] = e.z[i];" if is_filter
            else f"{name}_estimate(&e, x);")  # fmt: skip
    text = (
        f"  static {name} e;\n  static double v[{2 + width}], x[{nq}], P[{n * n}];\n"
        f"  {name}_init(&e, 0.0);\n  for (;;) {{\n    int status = -1;\n"
        f"    take(v, {2 + width});\n{''.join(cases)}    {read}\n    {name}_covariance(&e, P);\n"
        f'    printf("%d ", status); tell(x, {nq}); tell(P, {n * n}); printf("\\n");\n  }}\n'
    )
    return program_of(folder, text, into, is_watched=is_watched)


def width_of(estimator):
    """Numbers of the longest input or measurement."""
    sizes = [bound.group.nq for bound in estimator.sensors.values()]
    return max([estimator.system.n_inputs, *sizes])


def mpc_program(mpc, into, name="firm"):
    """Takes ``[t, x]``, answers ``[status, u]``."""
    folder = mpc.export_c(into / name, name=name)
    nq, m = mpc.problem.system.state.nq, len(mpc.problem.input_limits.controls)
    text = (
        f"  static {name} c;\n  static double v[{1 + nq}], u[{m}];\n  {name}_init(&c);\n"
        f"  for (;;) {{\n    take(v, {1 + nq});\n    const int status = {name}_step(&c, v[0], "
        f"v + 1, u);\n"
        f'    printf("%d ", status); tell(u, {m}); printf("\\n");\n  }}\n'
    )
    return program_of(folder, text, into)
