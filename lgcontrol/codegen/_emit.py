"""C statements of an SX function for any number type, double or a vector of doubles."""

from __future__ import annotations

import ctypes
import heapq
import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

import casadi as ca

_FUNCTIONS_1 = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log expm1 log1p erf".split()
)
_FUNCTIONS_2 = "pow atan2 hypot fmod remainder copysign".split()
_ROUNDING = ("sqrt", "floor", "ceil")

# The vector variants of glibc's libmvec: those here are stated to be within 4 ulp.
_LIBMVEC_1 = set(_FUNCTIONS_1)
_LIBMVEC_2 = {"pow", "atan2", "hypot"}
_LIBMVEC_PREFIX = {
    ("x86_64", 2): "_ZGVbN2",
    ("x86_64", 4): "_ZGVdN4",
    ("x86_64", 8): "_ZGVeN8",
    ("aarch64", 2): "_ZGVnN2",
}

_SCALAR = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
typedef double V;
#define lg_const(x) (x)
#define lg_lt(a, b) ((double)((a) < (b)))
#define lg_le(a, b) ((double)((a) <= (b)))
#define lg_eq(a, b) ((double)((a) == (b)))
#define lg_ne(a, b) ((double)((a) != (b)))
#define lg_not(a) ((double)!(a))
#define lg_and(a, b) ((double)((a) && (b)))
#define lg_or(a, b) ((double)((a) || (b)))
#define lg_if(a, b) ((a) ? (b) : 0.0)
#define lg_any(a) ((a) != 0)
#define lg_lanes 1
#define lg_lane(a, i) (a)
static inline V lg_fmin(V a, V b) { return a < b || b != b ? a : b; }
static inline V lg_fmax(V a, V b) { return a > b || b != b ? a : b; }
static inline V lg_sign(V a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a; }
#define lg_fabs fabs
"""

_VECTOR = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#define W {width}
typedef double V __attribute__((vector_size({bytes})));
typedef int64_t M __attribute__((vector_size({bytes})));
static const V lg_one = {{{ones}}};
#define lg_lanes W
#define lg_lane(a, i) ((a)[i])
#define lg_const(x) ((V){{{constants}}})
static inline V lg_truth(M m) {{ return (V)((M)lg_one & m); }}
static inline V lg_select(M m, V a, V b) {{ return (V)(((M)a & m) | ((M)b & ~m)); }}
static inline V lg_lt(V a, V b) {{ return lg_truth((M)(a < b)); }}
static inline V lg_le(V a, V b) {{ return lg_truth((M)(a <= b)); }}
static inline V lg_eq(V a, V b) {{ return lg_truth((M)(a == b)); }}
static inline V lg_ne(V a, V b) {{ return lg_truth((M)(a != b)); }}
static inline V lg_not(V a) {{ return lg_truth((M)(a == 0.0)); }}
static inline V lg_and(V a, V b) {{ return lg_truth((M)(a != 0.0) & (M)(b != 0.0)); }}
static inline V lg_or(V a, V b) {{ return lg_truth((M)(a != 0.0) | (M)(b != 0.0)); }}
static inline V lg_if(V a, V b) {{ return (V)((M)b & (M)(a != 0.0)); }}
static inline int lg_any(V a) {{
#if defined(__AVX__) && W == 4
  typedef long long L __attribute__((vector_size(32)));
  return !__builtin_ia32_ptestz256((L)a, (L)a);
#else
  int64_t any = 0;
  for (int i = 0; i < W; i++) any |= ((M)a)[i];
  return any != 0;
#endif
}}
static inline V lg_fmin(V a, V b) {{ return lg_select((M)(a < b) | (M)(b != b), a, b); }}
static inline V lg_fmax(V a, V b) {{ return lg_select((M)(a > b) | (M)(b != b), a, b); }}
static inline V lg_fabs(V a) {{ return (V)((M)a & INT64_MAX); }}
static inline V lg_sign(V a) {{
  return lg_select((M)(a == 0.0) | (M)(a != a), a, lg_select((M)(a > 0.0), lg_one, -lg_one));
}}
"""
# Compilers take time that grows faster than the length of a function: longer ones are cut into
# pieces, which pass on what later pieces need in memory. Measured on tree dynamics of 5 000 to
# 30 000 operations: 2 to 4 times quicker to compile, to a few percent as quick to run. Stages of a
# quadrotor run 2 % faster in pieces of 500 than in those of 300, 1000 or 2000.
_WHOLE, _PIECE = 3000, 500
# Simple operations that take about as long as a quotient, a root or a call of a function does, and
# as a branch is worth.
_DEAR = 10


def scalar_prelude() -> str:
    """Operations on double."""
    names = (*_FUNCTIONS_1, *_FUNCTIONS_2, *_ROUNDING)
    return _SCALAR + "".join(f"#define lg_{name} {name}\n" for name in names)


def vector_prelude(width: int, machine: str, body: str) -> str:
    """Operations on vectors of doubles, for the GNU C vector extensions.

    Only functions that `body` calls are defined; machines without a library of vector functions
    take those of scalars.
    """
    text = _VECTOR.format(
        width=width,
        bytes=8 * width,
        ones=", ".join(["1.0"] * width),
        constants=", ".join(["x"] * width),
    )
    for name in (*_FUNCTIONS_1, *_FUNCTIONS_2, *_ROUNDING):
        if f"lg_{name}(" in body:
            two = name in _FUNCTIONS_2
            text += _vector_function(name, two, width, machine)
    return text


def _vector_function(name: str, two: bool, width: int, machine: str) -> str:
    symbol = f"{_LIBMVEC_PREFIX.get((machine, width), '')}v{'v' if two else ''}_{name}"
    if name in (_LIBMVEC_2 if two else _LIBMVEC_1) and _has_libmvec(symbol):
        parameters = "V, V" if two else "V"
        return f"extern V {symbol}({parameters});\n#define lg_{name} {symbol}\n"
    parameters, arguments = ("V a, V b", "a[i], b[i]") if two else ("V a", "a[i]")
    return (
        f"static inline V lg_{name}({parameters})\n"
        f"{{ V r; for (int i = 0; i < W; i++) r[i] = {name}({arguments}); return r; }}\n"
    )


@cache
def _has_libmvec(symbol: str) -> bool:
    """Whether glibc on this machine offers a vector function (which ones depends on its age)."""
    try:
        return hasattr(ctypes.CDLL("libmvec.so.1"), symbol)
    except OSError:
        return False


# One C expression per operation; the number type's prelude (`_number.py`) defines the lg_ names.
EXPRESSIONS: dict[int, str] = {
    ca.OP_ASSIGN: "{0}",
    ca.OP_ADD: "{0}+{1}",
    ca.OP_SUB: "{0}-{1}",
    ca.OP_MUL: "{0}*{1}",
    ca.OP_DIV: "{0}/{1}",
    ca.OP_NEG: "-{0}",
    ca.OP_SQ: "{0}*{0}",
    ca.OP_TWICE: "{0}+{0}",
    ca.OP_INV: "1.0/{0}",
    ca.OP_LT: "lg_lt({0},{1})",
    ca.OP_LE: "lg_le({0},{1})",
    ca.OP_EQ: "lg_eq({0},{1})",
    ca.OP_NE: "lg_ne({0},{1})",
    ca.OP_NOT: "lg_not({0})",
    ca.OP_AND: "lg_and({0},{1})",
    ca.OP_OR: "lg_or({0},{1})",
    ca.OP_IF_ELSE_ZERO: "lg_if({0},{1})",
    ca.OP_FMIN: "lg_fmin({0},{1})",
    ca.OP_FMAX: "lg_fmax({0},{1})",
    ca.OP_CONSTPOW: "lg_pow({0},{1})",
} | {
    getattr(ca, f"OP_{name.upper()}"): f"lg_{name}({arguments})"
    for names, arguments in (
        ((*_FUNCTIONS_1, *_ROUNDING, "fabs", "sign"), "{0}"),
        (_FUNCTIONS_2, "{0},{1}"),
    )
    for name in names
}

_SELECT = EXPRESSIONS[ca.OP_IF_ELSE_ZERO]


_CALLS = {text for text in EXPRESSIONS.values() if re.fullmatch(r"lg_[a-z0-9]+\(.*\)", text)} - {
    EXPRESSIONS[simple]
    for simple in (
        ca.OP_LT, ca.OP_LE, ca.OP_EQ, ca.OP_NE, ca.OP_NOT, ca.OP_AND, ca.OP_OR,
        ca.OP_IF_ELSE_ZERO, ca.OP_FMIN, ca.OP_FMAX, ca.OP_FABS, ca.OP_SIGN,
    )
}  # fmt: skip


@dataclass(frozen=True)
class Body:
    """C code of a function, ``lg_body``, for any number type V.

    Attributes
    ----------
    text : str
        Its parameters are pointers to the arguments, to the results, and to memory for work.
    slots : list of list of int
        With packed results, there is one pointer for all of them, to the different values only: the
        place of each entry of each result there. Empty otherwise, and when the results follow each
        other there.
    size : int
        Number of packed values.
    work : int
        Numbers of work memory.
    helpers : tuple of str
        C functions that are the same for all bodies; they stand before it, each once.
    """

    text: str
    slots: list[list[int]]
    size: int
    work: int
    helpers: tuple[str, ...] = ()


def emit_body(function: ca.Function, *, packed: bool) -> Body | None:
    """C code that evaluates an SX function.

    None if it is none, or holds an operation without C equivalent here. Entries of packed results
    that are equal (zeros, both halves of a symmetric matrix) are written once.
    """
    if not is_emittable(function):
        return None
    graph = _read(function)
    slots = [[-1] * function.numel_out(i) for i in range(function.n_out())]
    slot_of: dict[str, int] = {}
    writes: list[tuple[int, str, str]] = []  # after which value, where to, what
    for source, result, entry in graph.outputs:
        expression = graph.leaves.get(source, f"v{source}")
        if not packed:
            writes.append((source, f"r{result}[{entry}]", expression))
            continue
        if expression not in slot_of:
            slot_of[expression] = len(slot_of)
            writes.append((source, f"r[{slot_of[expression]}]", expression))
        slots[result][entry] = slot_of[expression]
    names = [f"a{i}" for i in range(function.n_in())]
    targets = ["r"] if packed else [f"r{i}" for i in range(function.n_out())]
    text, work = _write("lg_body", graph, writes, names, targets)
    return Body(text, slots if packed else [], len(slot_of), work)


def emit_function(function: ca.Function, name: str) -> tuple[str, int]:
    """C function of a given name, and the work memory that it takes as its last argument.

    Its arguments and results may be sparse: their stored entries are passed.
    """
    graph = _read(function)
    writes = [
        (source, f"r{result}[{entry}]", graph.leaves.get(source, f"v{source}"))
        for source, result, entry in graph.outputs
    ]
    names = [f"a{i}" for i in range(function.n_in())]
    return _write(name, graph, writes, names, [f"r{i}" for i in range(function.n_out())])


def is_emittable(function: ca.Function) -> bool:
    """Whether there is C code here for each operation of an SX function."""
    if not function.is_a("SXFunction") or function.has_free():
        return False
    known = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, *EXPRESSIONS}
    return all(function.instruction_id(k) in known for k in range(function.n_instructions()))


@dataclass(frozen=True)
class _Graph:
    """Values in order of computation, each computed once.

    Operations are (value, template, sources), outputs (value, result, entry); `leaves` are the
    expressions of arguments and constants.
    """

    operations: list[tuple[int, str, list[int]]]
    leaves: dict[int, str]
    outputs: list[tuple[int, int, int]]


def _read(function: ca.Function) -> _Graph:
    operations: list[tuple[int, str, list[int]]] = []
    leaves: dict[int, str] = {}
    outputs: list[tuple[int, int, int]] = []
    held: dict[int, int] = {}  # the value that each of CasADi's work slots holds at this point
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        target, source = function.instruction_output(k), function.instruction_input(k)
        if operation == ca.OP_OUTPUT:
            outputs.append((held[source[0]], target[0], target[1]))
            continue
        if operation == ca.OP_INPUT:
            leaves[k] = f"a{source[0]}[{source[1]}]"
        elif operation == ca.OP_CONST:
            leaves[k] = f"lg_const({c_number(function.instruction_constant(k))})"
        else:
            operations.append((k, EXPRESSIONS[operation], [held[i] for i in source]))
        held[target[0]] = k
    graph = _Graph(operations, leaves, outputs)
    return _reordered(graph) if len(operations) > _WHOLE else graph


def _reordered(graph: _Graph) -> _Graph:
    """The same graph, with values computed shortly before they are used.

    Vectors of a long function need more memory than the first cache has. CasADi computes result
    after result. A sum of matrices then holds all terms of all entries until the end. Here the
    first term is added to all entries, then the second.
    """
    made = {value: (template, sources) for value, template, sources in graph.operations}
    plus = EXPRESSIONS[ca.OP_ADD]
    sums = plus, EXPRESSIONS[ca.OP_SUB]
    partial: list[list[int]] = []
    for end in dict.fromkeys(value for value, _, _ in graph.outputs if value in made):
        chain = [end]
        while made[chain[-1]][0] == plus:
            before, term = made[chain[-1]][1]
            if before not in made or term not in made or made[term][0] not in sums:
                break
            chain.append(before)
        partial.append(chain)
    levels = [[value for value in level if value is not None] for level in zip_longest(*partial)]
    order: dict[int, None] = {}
    for level in reversed(levels):
        for value in level:
            _add_first_what_it_needs(made, value, order)
    operations = [(value, *made[value]) for value in _soon_over(made, [*order])]
    return _Graph(operations, graph.leaves, graph.outputs)


def _add_first_what_it_needs(
    made: dict[int, tuple[str, list[int]]], value: int, order: dict[int, None]
) -> None:
    waiting = [(value, iter(made[value][1]))]
    while waiting:
        value, sources = waiting[-1]
        needed = next((s for s in sources if s in made and s not in order), None)
        if needed is None:
            order[value] = None
            waiting.pop()
        else:
            waiting.append((needed, iter(made[needed][1])))


def _soon_over(made: dict[int, tuple[str, list[int]]], order: list[int]) -> list[int]:
    """An order in which the last use of values comes first, and else that of `order`."""
    sources = {value: [s for s in {*made[value][1]} if s in made] for value in order}
    users: dict[int, list[int]] = {value: [] for value in order}
    for value, needed in sources.items():
        for source in needed:
            users[source].append(value)
    place = {value: i for i, value in enumerate(order)}
    missing = {value: len(needed) for value, needed in sources.items()}
    left = {value: len(by) for value, by in users.items()}
    ready: list[tuple[int, int, int]] = []
    found: dict[int, None] = {}

    def offer(value: int) -> None:
        if missing[value] == 0 and value not in found:
            over = sum(left[source] == 1 for source in sources[value])
            heapq.heappush(ready, (bool(users[value]) - over, place[value], value))

    for value in order:
        offer(value)
    while ready:
        value = heapq.heappop(ready)[2]
        if value in found:
            continue
        found[value] = None
        for user in users[value]:
            missing[user] -= 1
            offer(user)
        for source in sources[value]:
            left[source] -= 1
            if left[source] == 1:
                for user in users[source]:
                    offer(user)
    return [*found]


class _Block(NamedTuple):
    """Operations that follow each other, one without a condition or some under one.

    The condition is a value: where it is zero, all of them are.
    """

    condition: int | None
    operations: list[tuple[int, str, list[int]]]


def _blocks(graph: _Graph) -> list[_Block]:
    """Operations in an order in which those that one condition selects stand together.

    Of a switch between a series and a closed form, one side is idle nearly always, and that with
    roots, quotients and calls of functions the more so.
    """
    operations = graph.operations
    place = {value: i for i, (value, _, _) in enumerate(operations)}
    selected, gates = _selected(graph, place)
    if not gates:
        return [_Block(None, [operation]) for operation in operations]
    # Place of the last one of what a selected value needs from outside.
    needs: dict[int, int] = {}
    for value, condition in reversed(selected.items()):
        sources = operations[place[value]][2]
        needs[value] = max(
            needs[source] if selected.get(source) == condition else place.get(source, -1)
            for source in sources
        )
    blocks, done = list[_Block](), set[int]()
    for i, operation in enumerate(operations):
        value, _, sources = operation
        if value in done or value in selected:
            continue
        if value not in gates:
            blocks.append(_Block(None, [operation]))
            continue
        condition = sources[0]
        waiting = [gate for gate in gates[value] if gate not in done]
        ready = [gate for gate in waiting if needs[operations[place[gate]][2][1]] < i]
        found, open_ends = set(ready), list(ready)
        while open_ends:
            for source in operations[place[open_ends.pop()]][2]:
                if selected.get(source) == condition and source not in done | found:
                    found.add(source)
                    open_ends.append(source)
        done |= found
        blocks.append(_Block(condition, [operations[k] for k in sorted(place[v] for v in found)]))
    return blocks


def _selected(graph: _Graph, place: dict[int, int]) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Values that matter under one condition alone, last ones first, each with that condition.

    And of every operation that selects them the list of all that select by the same condition.
    """
    if all(template != _SELECT for _, template, _ in graph.operations):
        return {}, {}
    only: dict[int, int | None] = {source: None for source, _, _ in graph.outputs}
    selected: dict[int, int] = {}
    cost: dict[int, int] = {}
    for value, template, sources in reversed(graph.operations):
        condition = only.get(value)
        if condition is not None:
            selected[value] = condition
            cost[condition] = cost.get(condition, 0) + (_DEAR if _is_dear(template) else 1)
        is_gate = template == _SELECT and condition is None and sources[0] in place
        for k, source in enumerate(sources):
            by = sources[0] if is_gate and k == 1 else condition
            if only.setdefault(source, by) != by:
                only[source] = None
    selected = {v: condition for v, condition in selected.items() if cost[condition] >= _DEAR}
    by_condition: dict[int, list[int]] = {}
    gates: dict[int, list[int]] = {}
    for value, template, sources in graph.operations:
        is_gate = template == _SELECT and value not in selected
        if is_gate and selected.get(sources[1]) == sources[0]:
            gates[value] = by_condition.setdefault(sources[0], [])
            gates[value].append(value)
    return selected, gates


def _is_dear(template: str) -> bool:
    return "/" in template or template in _CALLS


def _write(
    name: str,
    graph: _Graph,
    writes: list[tuple[int, str, str]],
    names: list[str],
    targets: list[str],
) -> tuple[str, int]:
    """One C function, or pieces and the function that calls them, and the work memory they need."""
    count, blocks = len(graph.operations), _blocks(graph)
    length = _PIECE if count > _WHOLE else max(1, count)
    piece_of: dict[int, int] = {}
    block_of: dict[int, int] = {}
    cuts, written = [0], 0  # blocks that pieces begin with
    for b, block in enumerate(blocks):
        if written >= length * len(cuts):
            cuts.append(b)
        for value, _, _ in block.operations:
            piece_of[value], block_of[value] = len(cuts) - 1, b
        written += len(block.operations)
    last_use: dict[int, int] = {}
    shown = {value for value, _, _ in writes}  # outside of their block
    for b, block in enumerate(blocks):
        for value, _, sources in block.operations:
            for source in sources:
                last_use[source] = piece_of[value]
                if block_of.get(source) != b:
                    shown.add(source)
        if block.condition is not None:
            piece = piece_of[block.operations[0][0]]
            last_use[block.condition] = max(last_use[block.condition], piece)
            shown.add(block.condition)
    of_value: dict[int, list[tuple[str, str]]] = {}
    lines: list[str] = []
    for value, place, expression in writes:
        if value in graph.leaves:
            lines.append(f"{place}={expression};")
        else:
            of_value.setdefault(value, []).append((place, expression))
    words = graph.leaves | {value: f"v{value}" for value in piece_of}
    memory = _Slots()
    pieces: list[list[str]] = []
    for piece, (begin, end) in enumerate(zip(cuts, [*cuts[1:], len(blocks)], strict=True)):
        memory.free_before(piece)
        loaded: set[int] = set()

        for condition, operations in blocks[begin:end]:
            seen = [value for value, _, _ in operations if value in shown]
            needed = operations[0][2]
            if condition is not None:
                needed = [condition, *(s for _, _, sources in operations for s in sources)]
            for source in needed:
                if piece_of.get(source, piece) < piece and source not in loaded:
                    loaded.add(source)
                    lines.append(f"const V v{source}=m[{memory.place[source]}];")
            if condition is not None:
                lines.append(f"V {','.join(f'v{value}' for value in seen)};")
                lines.append(f"if(lg_any(v{condition})){{")
            for value, template, sources in operations:
                terms = [words[source] for source in sources]
                if template == _SELECT and sources[0] == condition and value not in shown:
                    template = "{1}"  # where it is not so nobody asks
                kind = "" if condition is not None and value in shown else "const V "
                lines.append(f"{kind}v{value}={template.format(*terms)};")
            if condition is not None:
                lines.append(f"}}else{{{'='.join(f'v{value}' for value in seen)}=lg_const(0.0);}}")
            for value in seen:
                lines += [f"{place}={text};" for place, text in of_value.get(value, ())]
                if last_use.get(value, piece) > piece:
                    lines.append(f"m[{memory.take(value, last_use[value])}]=v{value};")
        pieces.append(lines)
        lines = []
    parameters = [f"const V *restrict {pointer}" for pointer in names]
    parameters += [f"V *restrict {pointer}" for pointer in [*targets, "m"]]
    head = f"({', '.join(parameters)})\n{{\n"
    pointers = [*names, *targets, "m"]
    texts = [_used(pointers, "\n".join(piece)) for piece in pieces]
    if len(pieces) == 1:
        return f"static void {name}{head}{texts[0]}\n}}\n", 0
    text = "".join(
        f"static __attribute__((noinline)) void {name}_part{i}{head}{piece}\n}}\n"
        for i, piece in enumerate(texts)
    )
    arguments = ", ".join(pointers)
    calls = "".join(f"{name}_part{i}({arguments});\n" for i in range(len(pieces)))
    return f"{text}static void {name}{head}{calls}}}\n", memory.size


def _used(pointers: list[str], text: str) -> str:
    """Statements after which no parameter is unused, as compilers would warn."""
    idle = [f"(void){pointer};" for pointer in pointers if f"{pointer}[" not in text]
    return "\n".join([" ".join(idle), text]) if idle else text


class _Slots:
    """Places for the values that pieces pass on, free when a value is not needed any more."""

    def __init__(self) -> None:
        self.place: dict[int, int] = {}
        self.size = 0
        self._free: list[int] = []
        self._ends: dict[int, list[int]] = {}

    def take(self, value: int, last: int) -> int:
        """Return a place that is kept until piece `last` is over."""
        if self._free:
            place = self._free.pop()
        else:
            place, self.size = self.size, self.size + 1
        self.place[value] = place
        self._ends.setdefault(last, []).append(place)
        return place

    def free_before(self, piece: int) -> None:
        """Give back the places that were last used in the piece before."""
        self._free += self._ends.pop(piece - 1, [])


def c_number(value: float) -> str:
    """A number as a C constant that is read as the same one.

    Examples
    --------
    >>> c_number(0.1), c_number(float("-inf"))
    ('0.1', '-INFINITY')
    """
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))
