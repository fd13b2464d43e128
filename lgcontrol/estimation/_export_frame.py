"""What exported filters and windows have in common: names of statuses, and the example."""

from __future__ import annotations

from ..codegen._internal import C_EXAMPLE_HEAD
from ._status import PredictStatus, UpdateStatus

EQUAL = 1e-9  # of what C and Python have after a run: their rounding, grown over its events


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

    Parameters
    ----------
    name : str
        Of the package.
    kind : str
        What it is, ``"filter"`` or ``"estimator"``: the variable of the example.
    sizes : dict of str to int
        Estimate by its name, as in the tables of the run, and covariance "P".
    updates : list of str
        Functions of the measurements, called with struct and value.
    estimate : str
        Statement that fetches the estimate.
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
