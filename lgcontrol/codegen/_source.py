"""C source of a kernel: the function's code and one entry point that runs it over a batch.

The entry point is ``int lg_run(const int64_t *f)``. `f` holds the number of items, the number of
steps of a chain (else 1), then a pair (address, stride in doubles) for every argument and result.
Items are stored one after the other, matrices by columns, the steps of a chain as columns. It
returns 0, 1 when the function failed (a solver inside it), 2 when memory ran out.
"""

from __future__ import annotations

import casadi as ca

from ._emit import Body, scalar_prelude, vector_prelude
from ._program import CasadiCode, Program, casadi_code

# Blocks of W items by W numbers are transposed in registers; what is left over is part of a block
# that overlaps the one before, or reaches into the next item.
_CODE = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3") /* below that blocks go through memory */
#endif
#ifdef __clang__
#define lg_mix(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define lg_mix(a, b, ...) __builtin_shuffle(a, b, (M){__VA_ARGS__})
#endif
typedef double U __attribute__((vector_size(8 * W), aligned(8)));
static inline void lg_transpose(V *t)
{
  V a, b;
TRANSPOSE}
static inline void lg_gather_block(V *restrict to, const double *from, const int64_t *at, int n)
{
  V t[W];
  for (int i = 0; i < W; i++) t[i] = *(const U *)(from + at[i]);
  lg_transpose(t);
  for (int i = 0; i < n; i++) to[i] = t[i];
}
/* `end` is the length of all there is in `from` */
static void lg_gather(V *restrict to, const double *from, const int64_t *at, int64_t n, int64_t end)
{
  int64_t j = 0;
  for (; j + W <= n; j += W) lg_gather_block(to + j, from + j, at, W);
  if (j == n) return;
  if (n > W) {
    lg_gather_block(to + n - W, from + n - W, at, W);
  } else if (at[W - 1] + W <= end) { /* reads on into the items that follow */
    lg_gather_block(to, from, at, n);
  } else {
    for (j = 0; j < n; j++)
      for (int i = 0; i < W; i++) to[j][i] = from[at[i] + j];
  }
}
static inline void lg_scatter_block(double *to, const V *from, const int32_t *slot, int64_t step,
                                    int64_t lanes)
{
  V t[W];
  for (int i = 0; i < W; i++) t[i] = from[slot ? slot[i] : i];
  lg_transpose(t);
  for (int i = 0; i < W; i++)
    if (i < lanes) *(U *)(to + i * step) = t[i];
}
static void lg_scatter(double *to, const V *from, const int32_t *slot, int64_t step, int64_t lanes,
                       int64_t n)
{
  int64_t j = 0;
  if (lanes == W && slot) { /* nearly always */
    for (; j + W <= n; j += W) lg_scatter_block(to + j, from, slot + j, step, W);
  } else {
    for (; j + W <= n; j += W)
      lg_scatter_block(to + j, slot ? from : from + j, slot ? slot + j : 0, step, lanes);
  }
  if (j == n) return;
  if (n > W) {
    j = n - W;
    lg_scatter_block(to + j, slot ? from : from + j, slot ? slot + j : 0, step, lanes);
    return;
  }
  int64_t i = 0;
  if (step == n) { /* writes on into the items that follow, which are written next */
    V t[W];
    for (int k = 0; k < W; k++) t[k] = from[k < n ? (slot ? slot[k] : k) : 0];
    lg_transpose(t);
    for (; i * n + W <= lanes * n && i < W; i++) *(U *)(to + i * n) = t[i];
  }
  for (; i < lanes; i++)
    for (j = 0; j < n; j++) to[i * step + j] = from[slot ? slot[j] : j][i];
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
"""
_EXPORT = 'extern __attribute__((visibility("default"))) int lg_run(const int64_t *f)\n{\n'
# Work memory up to this many numbers lies on the stack.
_STACK_DOUBLES = 4096


def gather_code(width: int) -> str:
    """Functions ``lg_gather`` and ``lg_scatter`` for a width that is a power of two."""
    steps = []
    stride = 1
    while stride < width:
        # Rows i and i + stride exchange the halves of each block of 2 × stride lanes.
        low = [k if not k & stride else width + k - stride for k in range(width)]
        high = [k + stride if not k & stride else width + k for k in range(width)]
        for i in (i for i in range(width) if not i & stride):
            pair = f"t[{i}], t[{i + stride}]"
            steps.append(f"  a = lg_mix({pair}, {', '.join(map(str, low))});")
            steps.append(f"  b = lg_mix({pair}, {', '.join(map(str, high))});")
            steps.append(f"  t[{i}] = a; t[{i + stride}] = b;")
        stride *= 2
    return _CODE.replace("TRANSPOSE", "".join(f"{step}\n" for step in steps))


# Maps over threads run one part after the other: batches and separate functions take the cores.
_CASADI_HEAD = """\
#include <stdint.h>
#include <stdlib.h>
#define CASADI_SYMBOL_EXPORT static
#define CASADI_THREAD_TYPE 0
#define CASADI_THREAD_HANDLE int
#define CASADI_THREAD_CREATE(t, f, a) ((t) = 0, (void)f(a))
#define CASADI_THREAD_JOIN(t) ((void)(t))
#define CASADI_THREAD_WORKER_RETURN void *
#define CASADI_THREAD_WORKER_ARG void *
#define CASADI_THREAD_RETURN_VALUE 0
"""


def scalar_source(program: Program) -> str:
    """C source that evaluates one item after the other.

    NotImplementedError if there is no C code for the function.
    """
    body = program.body(packed=False)
    if body is not None:
        parts = [scalar_prelude(), *body.helpers, body.text, _scalar_entry(program, body.work)]
        return "\n".join(parts)
    code = casadi_code(program.function)
    body = _casadi_body(program.function, code)
    return "\n".join([_CASADI_HEAD, code.text, body, _scalar_entry(program, None)])


def vector_source(program: Program, width: int, machine: str) -> str:
    """C source that evaluates `width` items at once.

    NotImplementedError if the function is not made of scalar operations.
    """
    body = program.body(packed=True)
    if body is None:
        raise NotImplementedError("it is not made of scalar operations")
    text = "\n".join([*body.helpers, body.text])
    prelude = vector_prelude(width, machine, text)
    return "\n".join([prelude, gather_code(width), text, _vector_entry(program, body)])


def _casadi_body(function: ca.Function, code: CasadiCode) -> str:
    """``lg_body`` around CasADi's calling convention; work memory lives during one call."""
    arguments = [f"const double *a{i}" for i in range(function.n_in())]
    results = [f"double *r{i}" for i in range(function.n_out())]
    fill = [f"  arg[{i}] = a{i};" for i in range(function.n_in())]
    fill += [f"  res[{i}] = r{i};" for i in range(function.n_out())]
    small = code.numbers <= _STACK_DOUBLES and code.integers <= _STACK_DOUBLES
    if small:
        work = f"  casadi_int iw[{max(1, code.integers)}];\n"
        work += f"  double w[{max(1, code.numbers)}];\n"
        call = "  return lg_function(arg, res, iw, w, 0) ? 1 : 0;\n"
    else:
        work = f"  casadi_int *iw = malloc({max(1, code.integers)} * sizeof(casadi_int));\n"
        work += f"  double *w = malloc({max(1, code.numbers)} * sizeof(double));\n"
        work += "  int failed = 2;\n"
        call = "  if (iw && w) failed = lg_function(arg, res, iw, w, 0) ? 1 : 0;\n"
        call += "  free(iw);\n  free(w);\n  return failed;\n"
    head = f"static int lg_body({', '.join(arguments + results)})\n{{\n"
    head += f"  const double *arg[{max(1, code.arguments)}];\n"
    head += f"  double *res[{max(1, code.results)}];\n"
    return head + work + "\n".join(fill) + "\n" + call + "}\n"


def _pointers(program: Program) -> list[str]:
    lines = ["  const int64_t items = f[0], steps = f[1];"]
    at = 2
    for letter, sizes, kind in (
        ("a", program.sizes_in, "const double"),
        ("r", program.sizes_out, "double"),
    ):
        for i in range(len(sizes)):
            lines.append(f"  {kind} *{letter}{i} = ({kind} *)(intptr_t)f[{at}];")
            lines.append(f"  const int64_t s{letter}{i} = f[{at + 1}];")
            at += 2
    return [*lines, "  (void)items; (void)steps;"]


def _scalar_entry(program: Program, work: int | None) -> str:
    """Entry point around ``lg_body``; `work` is None for CasADi's code, which can fail."""
    chain = program.chain
    each = () if chain is None else chain.each
    arguments = [
        f"a{i} + k * sa{i}" + (f" + j * {size}" if i in each else "")
        for i, size in enumerate(program.sizes_in)
    ]
    results = [
        f"r{i} + k * sr{i}" + ("" if chain is None else f" + j * {size}")
        for i, size in enumerate(program.sizes_out)
    ]
    lines = _pointers(program)
    on_heap = work is not None and work > _STACK_DOUBLES
    if on_heap:
        lines.append(f"  double *m = malloc({work} * sizeof(double));\n  if (!m) return 2;")
    elif work is not None:
        lines.append(f"  double m[{max(1, work)}];")
    lines.append("  for (int64_t k = 0; k < items; k++) {")
    if chain is not None:
        lines.append(f"    const double *x = {arguments[chain.argument]};")
        arguments[chain.argument] = "x"
        lines.append("    for (int64_t j = 0; j < steps; j++) {")
    if work is None:
        call = f"lg_body({', '.join(arguments + results)})"
        lines.append(f"    const int failed = {call};\n    if (failed) return failed;")
    else:
        lines.append(f"    lg_body({', '.join([*arguments, *results, 'm'])});")
    if chain is not None:
        lines.append(f"      x = {results[chain.result]};\n    }}")
    lines.append("  }\n  free(m);" if on_heap else "  }")
    return _EXPORT + "\n".join([*lines, "  return 0;", "}", ""])


def _vector_entry(program: Program, body: Body) -> str:
    chain = program.chain
    each = () if chain is None else chain.each
    sizes_in, sizes_out = program.sizes_in, program.sizes_out
    tables = "".join(
        f"static const int32_t lg_slot{i}[] = {{{', '.join(map(str, slots or [0]))}}};\n"
        for i, slots in enumerate(body.slots)
    )
    lines = _pointers(program)
    total = max(1, sum(sizes_in) + body.size + body.work)
    lines += [
        f"  V *memory = aligned_alloc(sizeof(V), {total} * sizeof(V)), *next = memory;",
        "  if (!memory) return 2;",
    ]
    lines += [f"  V *va{i} = next; next += {size};" for i, size in enumerate(sizes_in)]
    lines += [
        f"  V *r = next, *m = next + {body.size};",
        "  for (int64_t k = 0; k < items; k += W) {",
        "    const int64_t lanes = items - k < W ? items - k : W;",
        "    int64_t lane[W];",  # lanes beyond the last item repeat it: no item is special
        "    for (int i = 0; i < W; i++) lane[i] = k + (i < lanes ? i : lanes - 1);",
    ]
    for i, size in enumerate(sizes_in):
        lines.append(f"    int64_t at{i}[W];")
        lines.append(f"    const int64_t end{i} = (items - 1) * sa{i} + {size};")
        lines.append(f"    for (int i = 0; i < W; i++) at{i}[i] = lane[i] * sa{i};")
        if i not in each:  # what all items share is spread over the lanes once
            is_carried = chain is not None and i == chain.argument
            condition = "" if is_carried else f"if (k == 0 || sa{i}) "
            lines.append(f"    {condition}lg_gather(va{i}, a{i}, at{i}, {size}, end{i});")
    indent = "    "
    if chain is not None:
        lines.append("    for (int64_t j = 0; j < steps; j++) {")
        indent = "      "
        for i in each:
            size = sizes_in[i]
            left = f"end{i} - j * {size}"
            lines.append(f"{indent}lg_gather(va{i}, a{i} + j * {size}, at{i}, {size}, {left});")
    names = [f"va{i}" for i in range(len(sizes_in))]
    lines.append(f"{indent}lg_body({', '.join([*names, 'r', 'm'])});")
    for i, size in enumerate(sizes_out):
        to = f"r{i} + k * sr{i}" + ("" if chain is None else f" + j * {size}")
        found = f"r, lg_slot{i}" if body.slots else f"r + {sum(sizes_out[:i])}, 0"
        lines.append(f"{indent}lg_scatter({to}, {found}, sr{i}, lanes, {size});")
    if chain is not None:
        i, size = chain.result, sizes_out[chain.result]
        place = f"lg_slot{i}[i]" if body.slots else f"{sum(sizes_out[:i])} + i"
        lines.append(
            f"{indent}for (int64_t i = 0; i < {size}; i++) va{chain.argument}[i] = r[{place}];"
        )
        lines.append("    }")
    return tables + _EXPORT + "\n".join([*lines, "  }", "  free(memory);", "  return 0;", "}", ""])
