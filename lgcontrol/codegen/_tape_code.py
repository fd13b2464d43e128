"""C code that walks through a tape, for any number type V."""

from __future__ import annotations

import re

import casadi as ca

from ._emit import EXPRESSIONS, Body, c_number, emit_function
from ._tape import Tape

# One case of the switch for each kind of step. `t` points to the numbers of the step, the places in
# memory `m` come first; a case leaves `t` at the next step.
_CASES = {
    "zero": """
      for (int64_t i = 0; i < t[1]; i++) m[t[0] + i] = lg_const(0.0);
      t += 2;""",
    "constant": """
      for (int64_t i = 0; i < t[2]; i++) m[t[0] + i] = lg_const(lg_constants[t[1] + i]);
      t += 3;""",
    "entries": """
      for (int64_t i = 0; i < t[2]; i++) m[t[0] + t[3 + i]] = lg_const(lg_constants[t[1] + i]);
      t += 3 + t[2];""",
    "copy": """
      lg_copy(m + t[0], m + t[1], t[2]);
      t += 3;""",
    "slice": """
      for (int64_t k = 0; k < t[2]; k++)
        for (int64_t i = 0; i < t[4]; i++)
          m[t[0] + k * t[4] + i] = m[t[1] + k * t[3] + i * t[5]];
      t += 6;""",
    "gather": """
      for (int64_t i = 0; i < t[2]; i++) m[t[0] + i] = m[t[1] + t[3 + i]];
      t += 3 + t[2];""",
    "runs": """
      for (int64_t k = 0; k < t[2]; k++)
        lg_copy(m + t[0] + t[3 + 3 * k], m + t[1] + t[4 + 3 * k], t[5 + 3 * k]);
      t += 3 + 3 * t[2];""",
    "transpose": """
      lg_turn(m + t[0], m + t[1], t[2], t[3]);
      t += 4;""",
    "multiply": """
      for (int64_t k = 0; k < t[5]; k++)
        lg_combine(m + t[0] + k * t[3], m + t[1], t[3], t[3], m + t[2] + k * t[4], t[4]);
      t += 6;""",
    "multiply fresh": """
      for (int64_t k = 0; k < t[5]; k++) {
        V *to = m + t[0] + k * t[3];
        for (int64_t i = 0; i < t[3]; i++) to[i] = lg_const(0.0);
        lg_combine(to, m + t[1], t[3], t[3], m + t[2] + k * t[4], t[4]);
      }
      t += 6;""",
    "multiply where": """
      {
        V *to = m + t[0];
        const V *x = m + t[1], *y = m + t[2];
        const int64_t rows = t[3], inner = t[4], columns = t[5];
        t += 6;
        for (int64_t k = 0; k < columns; k++)
          for (int64_t runs = *t++; runs > 0; runs--, t += 2) {
            lg_combine(to, x + t[0], t[1], rows, y + k * inner, inner);
            to += t[1];
          }
      }""",
}

_LOOPS = """\
#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__)
#define lg_loops __attribute__((noinline, optimize("O3")))
#else
#define lg_loops
#endif
"""
_COPY = """\
static lg_loops void lg_copy(V *restrict to, const V *restrict from, int64_t n)
{
  for (int64_t i = 0; i < n; i++) to[i] = from[i];
}
"""

# Sums in the order in which CasADi's virtual machine takes them.
_COMBINE = """\
/* to += x y for a matrix x whose columns are `step` apart, and a column y */
static lg_loops void lg_combine(V *restrict to, const V *restrict x, int64_t n, int64_t step,
                                const V *restrict y, int64_t inner)
{
  int64_t j = 0;
  if (n < 8) {
    for (int64_t i = 0; i < n; i++) {
      V sum = to[i];
      for (j = 0; j < inner; j++) sum = sum + x[i + j * step] * y[j];
      to[i] = sum;
    }
    return;
  }
  for (; j + 6 <= inner; j += 6, x += 6 * step) {
    const V a = y[j], b = y[j + 1], c = y[j + 2], d = y[j + 3], e = y[j + 4], f = y[j + 5];
    for (int64_t i = 0; i < n; i++)
      to[i] = (((((to[i] + x[i] * a) + x[i + step] * b) + x[i + 2 * step] * c)
                + x[i + 3 * step] * d) + x[i + 4 * step] * e) + x[i + 5 * step] * f;
  }
  for (; j + 3 <= inner; j += 3, x += 3 * step) {
    const V a = y[j], b = y[j + 1], c = y[j + 2];
    for (int64_t i = 0; i < n; i++)
      to[i] = ((to[i] + x[i] * a) + x[i + step] * b) + x[i + 2 * step] * c;
  }
  for (; j < inner; j++, x += step) {
    const V a = y[j];
    for (int64_t i = 0; i < n; i++) to[i] = to[i] + x[i] * a;
  }
}
"""
_TURN = """\
/* transpose of a matrix of `rows` rows, by blocks that stay in the cache */
static lg_loops void lg_turn(V *restrict to, const V *restrict from, int64_t rows, int64_t columns)
{
  enum { BLOCK = 16 };
  for (int64_t k = 0; k < columns; k += BLOCK)
    for (int64_t i = 0; i < rows; i += BLOCK)
      for (int64_t c = k; c < columns && c < k + BLOCK; c++)
        for (int64_t r = i; r < rows && r < i + BLOCK; r++)
          to[r * columns + c] = from[c * rows + r];
}
"""


def emit_tape(function: ca.Function, tape: Tape, *, packed: bool) -> Body:
    """C code that evaluates an MX function by walking through its tape.

    Parameters
    ----------
    function : casadi.Function
        A function of dense arguments and results.
    tape : Tape
        Its own.
    packed : bool
        Whether there is one pointer for all results, which follow each other.
    """
    functions, work = [], 0
    for i, called in enumerate(tape.functions):
        text, own_work = emit_function(called, f"lg_call{i}")
        functions.append(text)
        work = max(work, own_work)
    kinds: dict[str, int] = {}
    numbers: list[int] = []
    for name, *rest in tape.steps:
        numbers += [kinds.setdefault(name, len(kinds) + 1), *rest]
    cases = [f"    case {i}:{_case(name, tape)}\n      break;\n" for name, i in kinds.items()]
    sizes = [function.numel_out(i) for i in range(function.n_out())]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    names = [f"const V *restrict a{i}" for i in range(function.n_in())]
    names += ["V *restrict r"] if packed else [f"V *restrict r{i}" for i in range(len(sizes))]
    constants = ", ".join(map(c_number, tape.constants))
    lines = [
        _LOOPS + _COPY,
        _COMBINE if any(name.startswith("multiply") for name in kinds) else "",
        _TURN if "transpose" in kinds else "",
        *(_arithmetic(name) for name in kinds if name.startswith(("unary", "binary"))),
        *functions,
        f"static const int32_t lg_tape[] = {{{_table([*numbers, 0])}}};",
        f"static const double lg_constants[] = {{{constants}}};" if constants else "",
        f"static void lg_body({', '.join(names)}, V *restrict m)\n{{",
    ]
    lines += [f"  lg_copy(m + {place}, a{i}, {count});" for i, place, count in tape.loads if count]
    lines.append("  for (const int32_t *t = lg_tape; *t;) {\n    switch (*t++) {")
    lines.append("".join(cases) + "    }\n  }")
    for i, first, place, count in tape.stores:
        to = f"r + {starts[i] + first}" if packed else f"r{i} + {first}"
        lines.append(f"  lg_copy({to}, m + {place}, {count});")
    lines.append("}\n")
    return Body("\n".join(lines), [], sum(sizes), tape.size + work)


def _case(name: str, tape: Tape) -> str:
    kind, _, rest = name.partition(" ")
    if kind == "call":
        function = tape.functions[int(rest)]
        sizes = [function.nnz_in(i) for i in range(function.n_in())]
        sizes += [function.nnz_out(i) for i in range(function.n_out())]
        n = len(sizes)
        arguments = [f"m + t[{i}] + k * {size}" for i, size in enumerate(sizes)]
        call = f"lg_call{rest}({', '.join([*arguments, f'm + {tape.size}'])})"
        return f"\n      for (int64_t k = 0; k < t[{n}]; k++) {call};\n      t += {n + 1};"
    if kind in ("unary", "binary"):
        if kind == "unary":
            return f"\n      lg_unary{rest}(m + t[0], m + t[1], t[2]);\n      t += 3;"
        call = f"lg_binary{rest}(m + t[0], m + t[1], m + t[2], t[3], t[4], t[5])"
        return f"\n      {call};\n      t += 6;"
    return _CASES[name]


def _arithmetic(name: str) -> str:
    """C function that applies an operation to all entries; a stride of 0 repeats a number."""
    kind, _, number = name.partition(" ")
    value = EXPRESSIONS[int(number)].format("a", "b")
    head = f"static lg_loops void lg_{kind}{number}(V *restrict to, const V *restrict x, "
    loop = "for (int64_t i = 0; i < n; i++)"
    if kind == "unary":
        return f"{head}int64_t n)\n{{\n  {loop} {{ const V a = x[i]; to[i] = {value}; }}\n}}\n"
    one, first, second = (
        f"    {loop} {{ const V a = {a}, b = {b}; to[i] = {value}; }}\n"
        for a, b in (("x[i]", "y[i]"), ("x[i]", "y[0]"), ("x[0]", "y[i]"))
    )
    return (
        f"{head}const V *restrict y, int64_t n, int dx, int dy)\n{{\n  if (dx && dy) {{\n{one}"
        f"  }} else if (dx) {{\n{first}  }} else {{\n{second}  }}\n}}\n"
    )


def _table(numbers: list[int]) -> str:
    return re.sub(r"(.{80,96}?,) ", r"\1\n", ", ".join(map(str, numbers)))
