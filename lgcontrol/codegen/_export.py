"""Export of functions: one C function of plain C99, with its test vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._number import scalar_prelude
from ._package import (
    C99_HINTS,
    C_EXAMPLE_HEAD,
    CVector,
    c_comment,
    c_identifiers,
    c_package_name,
    c_places,
    c_table,
    cmake_lists,
    write_package,
)
from ._validate import UnknownNameError, unknown_name

# A ModelFunction, which knows this file.
Exported = Any

# Test vectors that are drawn where the caller gives none.
EXAMPLES = 5


def prelude() -> str:
    """Operations of generated code on double, without what allocates memory."""
    return C99_HINTS + scalar_prelude().replace("#include <stdlib.h>\n", "")


class Schedule(NamedTuple):
    """Arguments of a function that follow from a scalar one by a table, one row after another.

    Attributes
    ----------
    by : str
        The scalar argument, a time.
    starts : ndarray, shape (n,)
        From where on each row holds, increasing; before that the first one does.
    values : mapping of str to ndarray, shape (n, ...)
        Rows of the arguments, by name.
    """

    by: str
    starts: np.ndarray
    values: Mapping[str, np.ndarray]

    def at(self, value: float) -> dict[str, np.ndarray]:
        """Arguments where the scalar has a value."""
        row = max(int(np.searchsorted(self.starts, value, side="right")) - 1, 0)
        return {key: rows[row] for key, rows in self.values.items()}


class CFunction(NamedTuple):
    """A function as C.

    Attributes
    ----------
    header, source : str
        Of the files ``name.h`` and ``name.c``.
    work : int
        Doubles of work memory, which are its last argument; none if zero.
    """

    header: str
    source: str
    work: int


def c_function(
    function: Exported,
    name: str,
    labels: Mapping[str, Sequence[tuple[str, str]]] | None = None,
    about: Sequence[str] = (),
    schedule: Schedule | None = None,
) -> CFunction:
    """A function as C; arguments, then results, then work memory.

    Parameters
    ----------
    function : ModelFunction
    name : str
        A C identifier.
    labels, about, schedule
        See `ModelFunction.export_c`.

    Returns
    -------
    CFunction
    """
    program, labels = function.program, labels or {}
    body = program.body(packed=False) if program.is_ours else None
    if body is None:
        raise NotImplementedError(
            f"{function.name} cannot be exported: it holds more than scalar and matrix operations "
            "(an interpolant, a solver, or a call back into Python); write it with those of CasADi"
        )
    sizes, c_names, scalars = _arguments(function)
    for key in set(function.arguments) & set(function.results):
        raise NotImplementedError(f"{function.name}: {key!r} names an argument and a result")
    looked_up = {} if schedule is None else schedule.values
    vectors = [
        _vector(function, key, c_names[key], sizes[key], labels)
        for key in sizes
        if key not in looked_up
    ]
    parameters = [
        f"double {c_names[key]}"
        if key in scalars
        else f"const double {c_names[key]}[{max(1, sizes[key])}]"
        for key in function.arguments
        if key not in looked_up
    ]
    parameters += [f"double {c_names[key]}[{max(1, sizes[key])}]" for key in function.results]
    work = body.work
    if work:
        parameters.append(f"double work[{name.upper()}_WORK]")
    signature = f"void {name}({', '.join(parameters)})"
    given = [
        f"table_{c_names[k]} + row * {sizes[k]}"
        if k in looked_up
        else (f"&{c_names[k]}" if k in scalars else c_names[k])
        for k in function.arguments
    ]
    given += [c_names[k] for k in function.results]
    defaults = {
        key: f"{name}_default_{c_names[key]}"
        for key in function.defaults
        if sizes[key] and key not in looked_up
    }
    header = "\n".join(
        [
            c_comment(
                f"{name}: {function!r}",
                [
                    *about,
                    "Exported by lgcontrol: C99, no allocation, no state. SI units, radians;",
                    "matrices are stored by columns. Results must not overlap arguments.",
                ],
            ),
            f"#ifndef {name.upper()}_H\n#define {name.upper()}_H\n",
            c_places(name, vectors),
            f"#define {name.upper()}_WORK {work} /* doubles of work memory */\n",
            '#ifdef __cplusplus\nextern "C" {\n#endif',
            *(
                f"extern const double {array}[{sizes[key]}]; /* of {c_names[key]} */"
                for key, array in defaults.items()
            ),
            f"{signature};",
            "#ifdef __cplusplus\n}\n#endif\n",
            "#endif\n",
        ]
    )
    source = "\n".join(
        [
            f'#include "{name}.h"',
            prelude(),
            body.text,
            *(
                c_table("double", array, function.defaults[key]).replace("static ", "")
                for key, array in defaults.items()
            ),
            "" if schedule is None else _tables(schedule, c_names),
            f"{signature}\n{{",
            *([] if schedule is None else [f"  const int row = row_at({c_names[schedule.by]});"]),
            f"  lg_body({', '.join([*given, 'work' if work else '0'])});\n}}\n",
        ]
    )
    return CFunction(header, source, work)


def _tables(schedule: Schedule, c_names: Mapping[str, str]) -> str:
    """Rows of a schedule, and the search for the one that holds."""
    tables = [c_table("double", "table_starts", schedule.starts)]
    for key, rows in schedule.values.items():
        values = np.array([_by_columns(row) for row in rows])
        tables.append(c_table("double", f"table_{c_names[key]}", values))
    search = f"""\
static int row_at(double at)
{{
  int row = 0, end = {len(schedule.starts)};
  while (end - row > 1) {{
    const int middle = row + (end - row) / 2;
    if (at >= table_starts[middle]) row = middle;
    else end = middle;
  }}
  return row;
}}
"""
    return "\n".join([*tables, search])


def export_function(
    function: Exported,
    folder: str | Path,
    name: str | None,
    labels: Mapping[str, Sequence[tuple[str, str]]],
    examples: Sequence[Mapping[str, Any]] | None,
    about: Sequence[str],
    schedule: Schedule | None,
) -> Path:
    """Write a function as C; see `ModelFunction.export_c`."""
    name = c_package_name(name or function.name)
    _check_labels(function, labels)
    made = c_function(function, name, labels, about, schedule)
    sizes, c_names, scalars = _arguments(function)
    cases = _drawn(function) if examples is None else list(examples)
    looked_up = frozenset(() if schedule is None else schedule.values)
    if schedule is not None:
        cases = [dict(case) | schedule.at(float(case[schedule.by])) for case in cases]
    return write_package(
        folder,
        {
            f"{name}.h": made.header,
            f"{name}.c": made.source,
            f"{name}_test.h": _test_vectors(function, name, c_names, sizes, cases, looked_up),
            "main.c": _example(function, name, c_names, sizes, scalars, made.work, looked_up),
            "CMakeLists.txt": cmake_lists(name),
        },
    )


def _check_labels(function: Exported, labels: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    sizes = _arguments(function)[0]
    for key, entries in labels.items():
        if key not in sizes:
            raise UnknownNameError(
                unknown_name(f"argument or result of {function.name}", key, sizes)
            )
        if len(entries) != sizes[key]:
            raise ValueError(
                f"{function.name}: {key!r} has {sizes[key]} entries and {len(entries)} labels: "
                "give each a name and a unit, matrices by columns"
            )


def _arguments(function: Exported) -> tuple[dict[str, int], dict[str, str], set[str]]:
    """Sizes and C names of arguments and results, and which arguments are scalars."""
    program = function.program
    keys = function.arguments + function.results
    sizes = dict(zip(keys, program.sizes_in + program.sizes_out, strict=True))
    shapes = zip(function.arguments, function.argument_shapes, strict=True)
    return (
        sizes,
        c_identifiers(sizes, taken=("work", "row", "row_at", "lg_body", *_tables_of(sizes))),
        {k for k, shape in shapes if shape == ()},
    )


def _tables_of(sizes: Mapping[str, int]) -> list[str]:
    """Names of tables of a schedule, which no argument may have."""
    return ["table_starts", *(f"table_{name}" for name in c_identifiers(sizes).values())]


def _vector(
    function: Exported,
    key: str,
    symbol: str,
    size: int,
    labels: Mapping[str, Sequence[tuple[str, str]]],
) -> CVector:
    shapes = dict(
        zip(
            function.arguments + function.results,
            function.argument_shapes + function.result_shapes,
            strict=True,
        )
    )
    what = "argument" if key in function.arguments else "result"
    shape = shapes[key]
    if len(shape) > 1:
        what += f", {' × '.join(map(str, shape))} by columns"
    names, units = zip(*labels[key], strict=True) if labels.get(key) else ((), ())
    return CVector(symbol, what, size, names, units)


def _drawn(function: Exported) -> list[dict[str, np.ndarray]]:
    """Arguments from a normal distribution; those with a default keep it."""
    rng = np.random.default_rng(0)
    shapes = dict(zip(function.arguments, function.argument_shapes, strict=True))
    return [
        {k: function.defaults.get(k, rng.normal(size=shape)) for k, shape in shapes.items()}
        for _ in range(EXAMPLES)
    ]


def _by_columns(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=np.float64).ravel(order="F")


def _test_vectors(
    function: Exported,
    name: str,
    c_names: Mapping[str, str],
    sizes: Mapping[str, int],
    cases: Sequence[Mapping[str, Any]],
    looked_up: frozenset[str],
) -> str:
    """Arguments and results as NumPy's calls have them."""
    text = [
        c_comment(f"{name}: test vectors, a row a call"),
        "#include <math.h>\n",
        f"enum {{ {name.upper()}_TESTS = {len(cases)} }};\n",
    ]
    columns: dict[str, list[np.ndarray]] = {key: [] for key in sizes if key not in looked_up}
    for case in cases:
        found = function(**{key: np.asarray(value, float) for key, value in case.items()})
        results = [found] if len(function.results) == 1 else list(found)
        values = dict(zip(function.results, results, strict=True)) | dict(case)
        for key in columns:
            value = values.get(key, function.defaults.get(key))
            # Lists of vectors lie one after the other.
            rows = key in function.transposed
            columns[key].append(np.ravel(value) if rows else _by_columns(value))
    for key, rows in columns.items():
        text.append(c_table("double", f"test_{c_names[key]}", np.array(rows)))
    return "\n".join(text)


def _example(
    function: Exported,
    name: str,
    c_names: Mapping[str, str],
    sizes: Mapping[str, int],
    scalars: set[str],
    work: int,
    looked_up: frozenset[str],
) -> str:
    """Program that tells sizes and checks the test vectors."""
    given = [
        f"test_{c_names[k]}[k]" if k in scalars else f"test_{c_names[k]} + k * {sizes[k]}"
        for k in function.arguments
        if k not in looked_up
    ]
    given += [f"have_{c_names[k]}" for k in function.results]
    given += ["work"] if work else []
    lines = [f"  static double have_{c_names[k]}[{max(1, sizes[k])}];" for k in function.results]
    lines += [f"  static double work[{name.upper()}_WORK];"] if work else []
    checks = [
        f"    largest = fmax(largest, difference(have_{c_names[k]}, "
        f"test_{c_names[k]} + k * {sizes[k]}, {sizes[k]}));"
        for k in function.results
    ]
    body = "\n".join(
        [
            *lines,
            "  double largest = 0;",
            f"  for (int k = 0; k < {name.upper()}_TESTS; k++) {{",
            f"    {name}({', '.join(given)});",
            *checks,
            "  }",
        ]
    )
    return f"""\
/* Example of {name}: prints sizes and checks the test vectors. */
#include "{name}.h"
#include "{name}_test.h"
{C_EXAMPLE_HEAD}
int main(void)
{{
{body}
  printf("code of this program: %lu bytes\\n", code_size());
  printf("workspace: %lu bytes\\n", {name.upper()}_WORK * (unsigned long)sizeof(double));
  printf("largest difference from Python: %.3g\\n", largest);
  return largest <= 1e-9 ? 0 : 1;
}}
"""
