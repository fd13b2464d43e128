"""Tape: an MX function as a table of steps over one block of memory.

Unrolled code grows with the number of operations. A large function is a graph of matrix operations
and of calls of SX functions, each of which may occur many times: here each SX function is emitted
once, and what is done where becomes numbers in a table, which a loop of C code walks through.
Machine code then does not grow with the graph at all, tables grow as it does.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from ._emit import EXPRESSIONS, Body, c_number, emit_function, is_emittable

# Entries that lie side by side are copied one by one where there are fewer of them.
_SHORT_RUN = 4

_MAPS = ("Map", "OmpMap", "ThreadMap")

# What only renames the numbers of its operand.
_SAME = frozenset({ca.OP_RESHAPE, ca.OP_SPARSITY_CAST, ca.OP_ASSIGN})


class Unsupported(Exception):
    """The function holds what a tape does not know."""


@dataclass
class Tape:
    """Steps, and what they need.

    Attributes
    ----------
    steps : list of tuple
        Name of an operation (for calls and arithmetic with the function's or operation's number:
        ``"call 0"``, ``"binary 1"``), then integers: places in memory first, see `_tape_code.py`.
    functions : list of casadi.Function
        SX functions that are called.
    constants : list of float
    loads : list of (argument, place, count)
        Arguments that go to memory before the steps.
    stores : list of (result, first, place, count)
        What of the memory goes to results after the steps.
    size : int
        Numbers of memory.
    """

    steps: list[tuple[Any, ...]] = field(default_factory=list)
    functions: list[ca.Function] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    loads: list[tuple[int, int, int]] = field(default_factory=list)
    stores: list[tuple[int, int, int, int]] = field(default_factory=list)
    size: int = 0


def read_tape(function: ca.Function, *, is_dense: bool = False) -> Tape | None:
    """Tape of an MX function; None if it holds operations that there are no steps for.

    If it `is_dense`, MX functions that are called are steps as well, sparse matrices are multiplied
    as dense ones, and linear equations are solved by elimination with row exchanges. That is for
    steps of small systems, whose bits need not be those of CasADi.
    """
    try:
        return _TapeReader(function, is_dense).tape
    except Unsupported:
        return None


@dataclass
class _Value:
    """Numbers in memory: part of a block."""

    block: int
    offset: int
    sparsity: ca.Sparsity

    @property
    def is_column(self) -> bool:
        """Whether it is one column."""
        return self.sparsity.size2() == 1


class _TapeReader:
    """Reads the instructions of a function one by one."""

    def __init__(self, function: ca.Function, is_dense: bool) -> None:
        if not function.is_a("MXFunction") or function.has_free():
            raise Unsupported
        self.tape = Tape()
        self._is_dense = is_dense
        self._sizes: list[int] = []  # of blocks
        self._first: list[int] = []  # step that writes a block first, and the last that needs it
        self._last: list[int] = []
        self._numbers: dict[str, int] = {}
        self._steps: list[tuple[str, list[tuple[int, int]], tuple[int, ...]]] = []
        self._stores: list[tuple[int, int, _Value]] = []
        self._zeros: set[int] = set()  # blocks of zeros that are not written yet
        self._shared: set[int] = set()  # blocks that several values, or results, are parts of
        for result, first, value in self._walk(function, self._load):
            self._fill([value])
            self._last[value.block] = 1 << 60
            self._shared.add(value.block)
            self._stores.append((result, first, value))
        self._place()

    def _load(self, argument: int, sparsity: ca.Sparsity) -> _Value:
        value = self._new(sparsity)
        self.tape.loads.append((argument, value.block, sparsity.nnz()))
        return value

    def _walk(
        self, function: ca.Function, argument: Callable[[int, ca.Sparsity], _Value]
    ) -> list[tuple[int, int, _Value]]:
        """Add the steps of a function; returns parts of its results: which, first entry, value."""
        held: dict[int, _Value] = {}
        parts: list[tuple[int, int, _Value]] = []
        for k in range(function.n_instructions()):
            operation, node = function.instruction_id(k), function.instruction_MX(k)
            slots, to = function.instruction_input(k), function.instruction_output(k)
            if operation == ca.OP_INPUT:
                info = node.info()
                if info["segment"] or info["offset"]:
                    raise Unsupported
                held[to[0]] = argument(info["ind"], node.sparsity())
                continue
            if operation == ca.OP_OUTPUT:
                info = node.info()
                parts.append((info["ind"], info["offset"], held[slots[0]]))
                continue
            given = [held[i] if i >= 0 else None for i in slots]
            in_place = bool(slots) and slots[0] == to[0]
            for slot, value in zip(to, self._read(operation, node, given, in_place), strict=False):
                if slot >= 0 and value is not None:
                    held[slot] = value
        return parts

    def _read(
        self, operation: int, node: ca.MX, given: list[Any], in_place: bool
    ) -> list[_Value | None]:
        """Add the steps of an instruction; returns its results."""
        if operation == ca.OP_CALL:
            return self._call(node.which_function(), given)
        if operation in _SAME:
            return [self._part(given[0], 0, node.sparsity())]
        if operation == ca.OP_HORZSPLIT or (operation == ca.OP_VERTSPLIT and given[0].is_column):
            return self._split(node, given[0])
        if operation == ca.OP_GETNONZEROS:
            return [self._get(node, given[0])]
        if operation == ca.OP_MTIMES:
            return [self._multiply(*given, in_place=in_place)]
        if operation == ca.OP_SOLVE and self._is_dense:
            return [self._solve(*given, is_transposed=node.info()["tr"])]
        if operation in (ca.OP_SETNONZEROS, ca.OP_ADDNONZEROS) and self._is_dense:
            adds = operation == ca.OP_ADDNONZEROS
            return [self._set(given[0], given[1], node.info(), adds=adds)]
        out = self._new(node.sparsity())
        self._write(operation, node, given, out)
        return [out]

    def _write(self, operation: int, node: ca.MX, given: list[Any], out: _Value) -> None:
        count = node.nnz()
        if operation == ca.OP_CONST:
            self._constant(out, np.array(node.to_DM().nonzeros()))
        elif operation in (ca.OP_HORZCAT, ca.OP_VERTCAT, ca.OP_DIAGCAT):
            if operation == ca.OP_VERTCAT and node.size2() != 1:
                raise Unsupported
            start = 0
            for value in given:
                self._copy(out, start, value, 0, value.sparsity.nnz())
                start += value.sparsity.nnz()
        elif operation == ca.OP_HORZREPMAT:
            own = given[0].sparsity.nnz()
            for start in range(0, count, max(1, own)):
                self._copy(out, start, given[0], 0, own)
        elif operation == ca.OP_TRANSPOSE:
            self._transpose(given[0], out)
        elif operation == ca.OP_PROJECT:
            self._project(given[0], out)
        elif operation == ca.OP_DOT:
            rows = given[0].sparsity.nnz()
            self._add("multiply fresh", [out, given[0], given[1]], 1, rows, 1)
        elif operation == ca.OP_NORMINF:
            self._add("largest", [out, given[0]], given[0].sparsity.nnz())
        elif operation not in EXPRESSIONS:
            raise Unsupported
        elif node.is_unary():
            self._add(f"unary {operation}", [out, given[0]], count)
        elif node.is_binary():
            steps = [int(value.sparsity.nnz() == count) for value in given]
            if any(v.sparsity.nnz() not in (1, count) for v in given):
                raise Unsupported
            self._add(f"binary {operation}", [out, *given], count, *steps)
        else:
            raise Unsupported

    def _call(self, function: ca.Function, given: list[Any]) -> list[_Value | None]:
        count = 1
        if function.class_name() in _MAPS:
            parts = function.info()
            function, count = parts["f"], parts["n"]
        for i, value in enumerate(given):
            if value is None:  # CasADi's way to pass zeros
                sparsity = ca.Sparsity.dense(count * function.nnz_in(i), 1)
                given[i] = self._new(sparsity)
                self._add("zero", [given[i]], sparsity.nnz())
        if self._is_dense and count == 1 and function.is_a("MXFunction"):
            return self._inside(function, given)
        name = function.serialize()
        if name not in self._numbers:
            if not is_emittable(function):
                raise Unsupported
            self._numbers[name] = len(self.tape.functions)
            self.tape.functions.append(function)
        results = [
            self._new(ca.repmat(function.sparsity_out(i), 1, count))
            for i in range(function.n_out())
        ]
        self._add(f"call {self._numbers[name]}", [*given, *results], count)
        return list(results)

    def _inside(self, function: ca.Function, given: list[_Value]) -> list[_Value | None]:
        """The steps of a function that is called; its arguments stay as they are."""
        self._shared.update(value.block for value in given)
        parts = self._walk(function, lambda i, sparsity: self._part(given[i], 0, sparsity))
        results: list[_Value | None] = []
        for i in range(function.n_out()):
            own = [(first, value) for result, first, value in parts if result == i]
            if len(own) == 1 and own[0][1].sparsity.nnz() == function.nnz_out(i):
                results.append(self._part(own[0][1], 0, function.sparsity_out(i)))
                continue
            out = self._new(function.sparsity_out(i))
            for first, value in own:
                self._copy(out, first, value, 0, value.sparsity.nnz())
            results.append(out)
        return results

    def _solve(self, b: _Value, A: _Value, *, is_transposed: bool) -> _Value:
        """``A⁻¹ b`` or ``A⁻ᵀ b``, in copies that the elimination overwrites."""
        n, count = b.sparsity.shape
        out, matrix = self._new(b.sparsity), self._new(ca.Sparsity.dense(n, n))
        self._copy(out, 0, b, 0, n * count)
        if is_transposed:
            self._transpose(self._as_dense(A), matrix)
        else:
            self._project(A, matrix)
        self._add("solve", [out, matrix], n, count)
        return out

    def _set(self, x: _Value, y: _Value, info: dict[str, Any], *, adds: bool) -> _Value:
        """A copy of x in which entries are those of y, or have them added."""
        places = _indices(info)
        if min(places, default=0) < 0 or len({*places}) < len(places):
            raise Unsupported
        out = self._new(x.sparsity)
        self._copy(out, 0, x, 0, x.sparsity.nnz())
        if adds:
            before, y_before = self._picked(x, places, y.sparsity), y
            y = self._new(y_before.sparsity)
            self._add(f"binary {ca.OP_ADD}", [y, before, y_before], len(places), 1, 1)
        self._move(out, y, np.array(places), np.arange(len(places)))
        return out

    def _as_dense(self, value: _Value) -> _Value:
        if value.sparsity.is_dense():
            return value
        out = self._new(ca.Sparsity.dense(*value.sparsity.shape))
        self._project(value, out)
        return out

    def _split(self, node: ca.MX, value: _Value) -> list[_Value | None]:
        info = node.info()
        return [
            self._part(value, start, info["output"].sparsity_out(i))
            for i, start in enumerate(info["offset"][:-1])
        ]

    def _get(self, node: ca.MX, value: _Value) -> _Value:
        info, sparsity = node.info(), node.sparsity()
        if "slice" in info and info["slice"]["step"] == 1:
            return self._part(value, info["slice"]["start"], sparsity)
        if "outer" in info:
            outer, inner = _range(info["outer"]), _range(info["inner"])
            out = self._new(sparsity)
            moved = self._part(value, outer.start + inner.start, sparsity)
            numbers = len(outer), outer.step, len(inner), inner.step
            self._add("slice", [out, moved], *numbers)
            return out
        return self._picked(value, _indices(info), sparsity)

    def _picked(self, value: _Value, indices: list[int], sparsity: ca.Sparsity) -> _Value:
        """Entries of a value; those side by side stay where they are, or are copied together."""
        if not indices or min(indices) < 0:
            raise Unsupported
        starts = [0, *(np.flatnonzero(np.diff(indices) != 1) + 1).tolist(), len(indices)]
        if len(starts) == 2:
            return self._part(value, indices[0], sparsity)
        out = self._new(sparsity)
        if len(indices) < _SHORT_RUN * (len(starts) - 1):
            self._add("gather", [out, value], len(indices), *indices)
        else:
            bounds = zip(starts[:-1], starts[1:], strict=True)
            runs = [x for i, j in bounds for x in (i, indices[i], j - i)]
            self._add("runs", [out, value], len(starts) - 1, *runs)
        return out

    def _constant(self, out: _Value, values: np.ndarray) -> None:
        if not values.any() and not np.signbit(values).any():
            self._zeros.add(out.block)
            return
        start = len(self.tape.constants)
        stored = np.flatnonzero((values != 0) | np.signbit(values))
        if len(stored) > values.size // 4:
            self.tape.constants += values.tolist()
            self._add("constant", [out], start, values.size)
            return
        self._add("zero", [out], values.size)
        self.tape.constants += values[stored].tolist()
        self._add("entries", [out], start, stored.size, *stored.tolist())

    def _transpose(self, value: _Value, out: _Value) -> None:
        if value.sparsity.is_vector():
            self._copy(out, 0, value, 0, value.sparsity.nnz())
        elif value.sparsity.is_dense():
            self._add("transpose", [out, value], *value.sparsity.shape)
        elif self._is_dense:
            places = value.sparsity.transpose()[1]
            self._add("gather", [out, value], len(places), *places)
        else:
            raise Unsupported

    def _project(self, value: _Value, out: _Value) -> None:
        """Copy the entries that both patterns have, run by run."""
        if not value.sparsity.is_subset(out.sparsity) or not out.sparsity.is_subset(value.sparsity):
            self._add("zero", [out], out.sparsity.nnz())
        have = _places(value.sparsity)
        want = _places(out.sparsity)
        _, i, j = np.intersect1d(want, have, assume_unique=True, return_indices=True)
        self._move(out, value, i, j)

    def _move(self, out: _Value, value: _Value, i: np.ndarray, j: np.ndarray) -> None:
        """Copy the entries j of a value to the places i, those side by side together."""
        breaks = np.flatnonzero((np.diff(i) != 1) | (np.diff(j) != 1)) + 1
        parts = zip(np.split(i, breaks), np.split(j, breaks), strict=True)
        runs = [(int(a[0]), int(b[0]), len(a)) for a, b in parts if a.size]
        self._add("runs", [out, value], len(runs), *(x for run in runs for x in run))

    def _multiply(self, z: _Value, x: _Value, y: _Value, *, in_place: bool) -> _Value:
        """``z + x y``; in place where z is not needed any more."""
        if self._is_dense:
            x, y = self._as_dense(x), self._as_dense(y)
        if not x.sparsity.is_dense() or not y.sparsity.is_dense():
            raise Unsupported
        rows, inner = x.sparsity.shape
        columns = y.sparsity.size2()
        count = z.sparsity.nnz()
        out, kind = z, "multiply"
        is_dense = z.sparsity.is_dense()
        if z.block in self._zeros and is_dense:
            out, kind = self._new(z.sparsity), "multiply fresh"
        elif not in_place or z.block in self._shared or z.block in self._zeros:
            out = self._new(z.sparsity)
            self._copy(out, 0, z, 0, count)
        if is_dense:
            self._add(kind, [out, x, y], rows, inner, columns)
            return out
        numbers: list[int] = []
        starts, entries = np.array(z.sparsity.colind()), np.array(z.sparsity.row())
        for first, last in zip(starts[:-1], starts[1:], strict=True):
            own = entries[first:last]
            parts = np.split(own, np.flatnonzero(np.diff(own) != 1) + 1) if own.size else []
            numbers.append(len(parts))
            for part in parts:
                numbers += [int(part[0]), len(part)]
        self._add("multiply where", [out, x, y], rows, inner, columns, *numbers)
        return out

    def _copy(self, out: _Value, to: int, value: _Value, start: int, count: int) -> None:
        if count and value.block in self._zeros:
            self._add("zero", [_Value(out.block, out.offset + to, out.sparsity)], count)
        elif count:
            target = _Value(out.block, out.offset + to, out.sparsity)
            source = _Value(value.block, value.offset + start, value.sparsity)
            self._add("copy", [target, source], count)

    def _new(self, sparsity: ca.Sparsity) -> _Value:
        self._sizes.append(sparsity.nnz())
        self._first.append(len(self._steps))
        self._last.append(len(self._steps))
        return _Value(len(self._sizes) - 1, 0, sparsity)

    def _part(self, value: _Value, start: int, sparsity: ca.Sparsity) -> _Value:
        self._fill([value])
        self._shared.add(value.block)
        return _Value(value.block, value.offset + start, sparsity)

    def _fill(self, values: list[_Value]) -> None:
        """Write the zeros that are needed now."""
        for value in values:
            if value.block in self._zeros:
                self._zeros.remove(value.block)
                self._first[value.block] = len(self._steps)
                self._add(
                    "zero", [_Value(value.block, 0, value.sparsity)], self._sizes[value.block]
                )

    def _add(self, name: str, values: list[_Value], *numbers: int) -> None:
        self._fill(values)
        for value in values:
            self._last[value.block] = max(self._last[value.block], len(self._steps))
        places = [(value.block, value.offset) for value in values]
        self._steps.append((name, places, numbers))

    def _place(self) -> None:
        """Give blocks their places; the place of one that is needed no more is used again."""
        place = [0] * len(self._sizes)
        for _, block, _ in self.tape.loads:
            self._first[block] = -1
        memory = _TapeMemory()
        ending: dict[int, list[int]] = {}
        now = -1
        for block in sorted(range(len(self._sizes)), key=self._first.__getitem__):
            while now < self._first[block]:
                for done in ending.pop(now, []):
                    memory.give_back(place[done], self._sizes[done])
                now += 1
            if block not in self._zeros and self._sizes[block]:
                place[block] = memory.take(self._sizes[block])
                ending.setdefault(self._last[block], []).append(block)
        self.tape.size = memory.size
        self.tape.steps = [
            (name, *(place[block] + offset for block, offset in places), *numbers)
            for name, places, numbers in self._steps
        ]
        self.tape.loads = [(i, place[block], count) for i, block, count in self.tape.loads]
        self.tape.stores = [
            (i, first, place[value.block] + value.offset, value.sparsity.nnz())
            for i, first, value in self._stores
        ]


class _TapeMemory:
    """Places in one block of memory; neighbours that are free grow together."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # (start, length), sorted

    def take(self, size: int) -> int:
        """Return the start of the shortest free part that suffices, or grow."""
        fitting = [(length, i) for i, (_, length) in enumerate(self._free) if length >= size]
        if not fitting:
            start, self.size = self.size, self.size + size
            return start
        length, i = min(fitting)
        start = self._free[i][0]
        if length == size:
            del self._free[i]
        else:
            self._free[i] = start + size, length - size
        return start

    def give_back(self, start: int, size: int) -> None:
        """Free a part."""
        i = bisect(self._free, (start, 0))
        if i < len(self._free) and self._free[i][0] == start + size:
            size += self._free.pop(i)[1]
        if i and sum(self._free[i - 1]) == start:
            start, before = self._free.pop(i - 1)
            i, size = i - 1, size + before
        self._free.insert(i, (start, size))


def _range(info: dict[str, int]) -> range:
    return range(info["start"], info["stop"], info["step"])


def _indices(info: dict[str, Any]) -> list[int]:
    """Entries that a node reads or writes, as CasADi tells of it."""
    if "slice" in info:
        return list(_range(info["slice"]))
    if "nz" in info:
        return list(info["nz"])
    return [i + j for i in _range(info["outer"]) for j in _range(info["inner"])]


def _places(sparsity: ca.Sparsity) -> np.ndarray:
    """Places of a pattern's entries in the dense matrix, by columns; increasing."""
    columns = np.repeat(np.arange(sparsity.size2()), np.diff(sparsity.colind()))
    return columns * sparsity.size1() + np.array(sparsity.row(), dtype=np.int64)


# One case of the switch for each kind of step. `t` points to the numbers of the step, the places in
# memory `m` come first; a case leaves `t` at the next step.
_CASES = {
    "zero": """
      for (int64_t i = 0; i < t[1]; i++) m[t[0] + i] = lg_const(0.0);
      t += 2;""",
    "constant": """
      for (int64_t i = 0; i < t[2]; i++) m[t[0] + i] = lg_const(lg_body_constants[t[1] + i]);
      t += 3;""",
    "entries": """
      for (int64_t i = 0; i < t[2]; i++) m[t[0] + t[3 + i]] = lg_const(lg_body_constants[t[1] + i]);
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
    "largest": """
      m[t[0]] = lg_const(0.0);
      for (int64_t i = 0; i < t[2]; i++) m[t[0]] = lg_fmax(m[t[0]], lg_fabs(m[t[1] + i]));
      t += 3;""",
    "solve": """
      lg_eliminate(m + t[0], m + t[1], t[2], t[3]);
      t += 4;""",
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
_ELIMINATE = """\
/* x = A⁻¹ x for n unknowns and so many columns; each lane exchanges rows of its own, A is lost */
static lg_loops void lg_eliminate(V *restrict x, V *restrict A, int64_t n, int64_t columns)
{
  for (int64_t c = 0; c < n; c++) {
    for (int lane = 0; lane < lg_lanes; lane++) {
      int64_t largest = c;
      for (int64_t i = c + 1; i < n; i++)
        if (fabs(lg_lane(A[i + c * n], lane)) > fabs(lg_lane(A[largest + c * n], lane)))
          largest = i;
      if (largest == c) continue;
      for (int64_t j = 0; j < n + columns; j++) {
        V *column = j < n ? A + j * n : x + (j - n) * n;
        const double upper = lg_lane(column[c], lane);
        lg_lane(column[c], lane) = lg_lane(column[largest], lane);
        lg_lane(column[largest], lane) = upper;
      }
    }
    V *factor = A + c * n;
    for (int64_t i = c + 1; i < n; i++) factor[i] = factor[i] / factor[c];
    for (int64_t j = c + 1; j < n + columns; j++) {
      V *column = j < n ? A + j * n : x + (j - n) * n;
      const V pivot = column[c];
      if (lg_any(pivot))
        for (int64_t i = c + 1; i < n; i++) column[i] = column[i] - factor[i] * pivot;
    }
  }
  for (int64_t j = 0; j < columns; j++, x += n)
    for (int64_t c = n - 1; c >= 0; c--) {
      const V pivot = x[c] = x[c] / A[c + c * n];
      for (int64_t i = 0; i < c; i++) x[i] = x[i] - A[i + c * n] * pivot;
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

    With packed results there is one pointer for all of them, which follow each other.
    """
    functions, work = [], 0
    for i, called in enumerate(tape.functions):
        text, own_work = emit_function(called, f"lg_body_call{i}")
        functions.append(text)
        work = max(work, own_work)
    kinds: dict[str, int] = {}
    numbers: list[int] = []
    for name, *rest in tape.steps:
        numbers += [kinds.setdefault(name, len(kinds) + 1), *rest]
    cases = [f"    case {i}:{_case(name, tape)}\n      break;\n" for name, i in kinds.items()]
    sizes = [function.numel_out(i) for i in range(function.n_out())]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    given = [f"a{i}" for i in range(function.n_in())]
    made = ["r"] if packed else [f"r{i}" for i in range(len(sizes))]
    names = [f"const V *restrict {name}" for name in given] + [
        f"V *restrict {name}" for name in made
    ]
    constants = ", ".join(map(c_number, tape.constants))
    loops = {"multiply": _COMBINE, "transpose": _TURN, "solve": _ELIMINATE}
    used = dict.fromkeys(name.partition(" ")[0] for name in kinds)
    helpers = [_LOOPS, _COPY, *(loops[kind] for kind in used if kind in loops)]
    helpers += [_arithmetic(name) for name in kinds if name.startswith(("unary", "binary"))]
    lines = [
        *functions,
        f"static const int32_t lg_body_tape[] = {{{_table([*numbers, 0])}}};",
        f"static const double lg_body_constants[] = {{{constants}}};" if constants else "",
        f"static void lg_body({', '.join(names)}, V *restrict m)\n{{",
        f"  {' '.join(f'(void){name};' for name in given + made)}",  # some may be of no use
    ]
    lines += [f"  lg_copy(m + {place}, a{i}, {count});" for i, place, count in tape.loads if count]
    lines.append("  for (const int32_t *t = lg_body_tape; *t;) {\n    switch (*t++) {")
    lines.append("".join(cases) + "    }\n  }")
    for i, first, place, count in tape.stores:
        to = f"r + {starts[i] + first}" if packed else f"r{i} + {first}"
        lines.append(f"  lg_copy({to}, m + {place}, {count});")
    lines.append("}\n")
    return Body("\n".join(lines), [], sum(sizes), tape.size + work, tuple(helpers))


def _case(name: str, tape: Tape) -> str:
    kind, _, rest = name.partition(" ")
    if kind == "call":
        function = tape.functions[int(rest)]
        sizes = [function.nnz_in(i) for i in range(function.n_in())]
        sizes += [function.nnz_out(i) for i in range(function.n_out())]
        n = len(sizes)
        arguments = [f"m + t[{i}] + k * {size}" for i, size in enumerate(sizes)]
        call = f"lg_body_call{rest}({', '.join([*arguments, f'm + {tape.size}'])})"
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
