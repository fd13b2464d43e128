"""Export of functions: one C function of plain C99, with its test vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._emit import scalar_prelude
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

# Names and units of the entries of arguments and results.
Labels = Mapping[str, Sequence[tuple[str, str]]]

# Test vectors that are drawn where the caller gives none.
EXAMPLES = 5


def prelude() -> str:
    """Operations of generated code on double, without what allocates memory."""
    return C99_HINTS + scalar_prelude().replace("#include <stdlib.h>\n", "")


class Schedule(NamedTuple):
    """Arguments of a function that follow from a scalar one by a table, one row after another.

    Row k holds from time ``starts[k]`` of the argument `by`, the first one before, too.
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

    Texts of the files ``name.h`` and ``name.c``. If `work` is not zero, memory for so many doubles
    is the last argument.
    """

    header: str
    source: str
    work: int


def c_function(
    function: Exported,
    name: str,
    labels: Labels | None = None,
    about: Sequence[str] = (),
    schedule: Schedule | None = None,
) -> CFunction:
    """A function as C; arguments, then results, then work memory.

    For `labels`, `about` and `schedule` see `ModelFunction.export_c`.
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
            *body.helpers,
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


class CParts(NamedTuple):
    """Functions of a package, each with a header and a source.

    Texts of the files by name, and doubles of work memory by function.
    """

    files: dict[str, str]
    works: dict[str, int]

    @property
    def sources(self) -> list[str]:
        """Names of the C sources."""
        return [name for name in self.files if name.endswith(".c")]


def c_parts(functions: Mapping[str, Exported], name: str) -> CParts:
    """Functions that a package calls inside, as ``<name>_<key>_of``.

    The keys are C identifiers.
    """
    files, works = {}, {}
    for key, function in functions.items():
        made, own = c_function(function, f"{name}_{key}_of"), f"{name}_{key}_of"
        files[f"{own}.h"], files[f"{own}.c"], works[key] = made.header, made.source, made.work
    return CParts(files, works)


def export_function(
    function: Exported,
    folder: str | Path,
    name: str | None,
    labels: Labels,
    examples: Sequence[Mapping[str, Any]] | None,
    about: Sequence[str],
    schedule: Schedule | None,
) -> Path:
    """Write a function as C; see `ModelFunction.export_c`."""
    name = c_package_name(name or function.name)
    _check_labels(function, labels)
    made = c_function(function, name, labels, about, schedule)
    cases = _drawn(function) if examples is None else list(examples)
    looked_up = frozenset(() if schedule is None else schedule.values)
    if schedule is not None:
        cases = [dict(case) | schedule.at(float(case[schedule.by])) for case in cases]
    check = _ExampleCheck.of(function, name, "", cases, looked_up, made.work)
    files = {f"{name}.h": made.header, f"{name}.c": made.source}
    return write_package(folder, files | _checked(name, [check], [f"{name}.c"]))


def export_functions(
    functions: Mapping[str, Exported],
    folder: str | Path,
    name: str,
    labels: Labels,
    examples: Sequence[Mapping[str, Any]],
    about: Sequence[str] = (),
) -> Path:
    """Write functions of the same arguments as one package of C functions ``<name>_<key>``.

    Parameters
    ----------
    functions : mapping of str to ModelFunction
        By keys, which are C identifiers.
    folder : path
        New, empty, or exported before.
    labels : mapping of str to sequence of (name, unit)
        What the entries of arguments and results are.
    examples : sequence of mapping
        Arguments of the test vectors by name; each function takes its own.
    about : sequence of str
        Lines for the head of the header.
    """
    name = c_package_name(name)
    files: dict[str, str] = {}
    checks, vectors = [], {}
    for key, function in functions.items():
        own = f"{name}_{key}"
        made = c_function(function, own)
        files[f"{own}.h"], files[f"{own}.c"] = made.header, made.source
        cases = [{k: case[k] for k in function.arguments} for case in examples]
        checks.append(_ExampleCheck.of(function, own, f"{key}_", cases, frozenset(), made.work))
        sizes, c_names, _ = _arguments(function)
        for k in sizes:
            if labels.get(k):
                vectors[k] = _vector(function, k, c_names[k], sizes[k], labels)
    upper = name.upper()
    header = [
        c_comment(name, [*about, "Exported by lgcontrol: C99, no allocation, no state."]),
        f"#ifndef {upper}_H\n#define {upper}_H\n",
        *(f'#include "{name}_{key}.h"' for key in functions),
        "",
        c_places(name, list(vectors.values())),
        "#endif\n",
    ]
    sources = [file for file in files if file.endswith(".c")]
    files[f"{name}.h"] = "\n".join(header)
    return write_package(folder, files | _checked(name, checks, sources))


def _check_labels(function: Exported, labels: Labels) -> None:
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
    labels: Labels,
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


class _ExampleCheck(NamedTuple):
    """Test vectors of a C function, and the lines of the example that compare with them."""

    vectors: str
    lines: str
    work: str

    @classmethod
    def of(
        cls,
        function: Exported,
        name: str,
        prefix: str,
        cases: Sequence[Mapping[str, Any]],
        looked_up: frozenset[str],
        work: int,
    ) -> _ExampleCheck:
        """Arguments and results as NumPy's calls have them, in tables ``test_<prefix><name>``."""
        sizes, c_names, scalars = _arguments(function)
        tables = {k: f"test_{prefix}{c_names[k]}" for k in sizes if k not in looked_up}
        columns: dict[str, list[np.ndarray]] = {key: [] for key in tables}
        for case in cases:
            found = function(**{key: np.asarray(value, float) for key, value in case.items()})
            results = [found] if len(function.results) == 1 else list(found)
            values = dict(zip(function.results, results, strict=True)) | dict(case)
            for key in columns:
                value = values.get(key, function.defaults.get(key))
                # Lists of vectors lie one after the other.
                rows = key in function.transposed
                columns[key].append(np.ravel(value) if rows else _by_columns(value))
        count = f"{name.upper()}_TESTS"
        vectors = [f"enum {{ {count} = {len(cases)} }};\n"]
        vectors += [c_table("double", tables[k], np.array(rows)) for k, rows in columns.items()]
        given = [
            f"{tables[k]}[k]" if k in scalars else f"{tables[k]} + k * {sizes[k]}"
            for k in function.arguments
            if k not in looked_up
        ]
        given += [f"have_{c_names[k]}" for k in function.results] + ["work"] * bool(work)
        lines = [
            f"    static double have_{c_names[k]}[{max(1, sizes[k])}];" for k in function.results
        ]
        lines += [f"    static double work[{name.upper()}_WORK];"] if work else []
        lines += [
            f"    for (int k = 0; k < {count}; k++) {{",
            f"      {name}({', '.join(given)});",
            *(
                f"      largest = fmax(largest, difference(have_{c_names[k]}, "
                f"{tables[k]} + k * {sizes[k]}, {sizes[k]}));"
                for k in function.results
            ),
            "    }",
        ]
        return cls("\n".join(vectors), "\n".join(lines), f"{name.upper()}_WORK")


def _checked(name: str, checks: Sequence[_ExampleCheck], sources: Sequence[str]) -> dict[str, str]:
    """Test vectors, the program that tells sizes and checks them, and how both are built."""
    head = c_comment(f"{name}: test vectors, a row a call")
    blocks = "\n".join(f"  {{\n{check.lines}\n  }}" for check in checks)
    work = " + ".join(check.work for check in checks)
    return {
        f"{name}_test.h": "\n".join([head, "#include <math.h>\n", *(c.vectors for c in checks)]),
        "main.c": f"""\
/* Example of {name}: prints sizes and checks the test vectors. */
#include "{name}.h"
#include "{name}_test.h"
{C_EXAMPLE_HEAD}
int main(void)
{{
  double largest = 0;
{blocks}
  printf("code of this program: %lu bytes\\n", code_size());
  printf("workspace: %lu bytes\\n", ({work}) * (unsigned long)sizeof(double));
  printf("largest difference from Python: %.3g\\n", largest);
  return largest <= 1e-9 ? 0 : 1;
}}
""",
        "CMakeLists.txt": cmake_lists(name, sources),
    }
