"""Tape: an MX function as a table of steps over one block of memory.

Unrolled code grows with the number of operations. A large function is a graph of matrix operations
and of calls of SX functions, each of which may occur many times: here each SX function is emitted
once, and what is done where becomes numbers in a table, which a loop of C code walks through
(`_tape_code.py`). Machine code then does not grow with the graph at all, tables grow as it does.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from ._emit import EXPRESSIONS, is_emittable

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


def read_tape(function: ca.Function) -> Tape | None:
    """Tape of an MX function; None if it holds operations that there are no steps for."""
    try:
        return _TapeReader(function).tape
    except Unsupported:
        return None


@dataclass
class _Value:
    """Numbers in memory: part of a block."""

    block: int
    offset: int
    sparsity: ca.Sparsity


class _TapeReader:
    """Reads the instructions of a function one by one."""

    def __init__(self, function: ca.Function) -> None:
        if not function.is_a("MXFunction") or function.has_free():
            raise Unsupported
        self.tape = Tape()
        self._function = function
        self._sizes: list[int] = []  # of blocks
        self._first: list[int] = []  # step that writes a block first, and the last that needs it
        self._last: list[int] = []
        self._numbers: dict[str, int] = {}
        self._steps: list[tuple[str, list[tuple[int, int]], tuple[int, ...]]] = []
        self._stores: list[tuple[int, int, _Value]] = []
        self._zeros: set[int] = set()  # blocks of zeros that are not written yet
        self._shared: set[int] = set()  # blocks that several values, or results, are parts of
        held: dict[int, _Value] = {}
        for k in range(function.n_instructions()):
            slots = function.instruction_input(k)
            if function.instruction_id(k) == ca.OP_INPUT:  # these are numbers of arguments
                slots = []
            given = [held[i] if i >= 0 else None for i in slots]
            found = self._read(k, given)
            for slot, value in zip(function.instruction_output(k), found, strict=False):
                if slot >= 0 and value is not None:
                    held[slot] = value
        self._place()

    def _read(self, k: int, given: list[Any]) -> list[_Value | None]:
        """Add the steps of an instruction; returns its results."""
        operation, node = self._function.instruction_id(k), self._function.instruction_MX(k)
        if operation == ca.OP_INPUT:
            info = node.info()
            if info["segment"] or info["offset"]:
                raise Unsupported
            value = self._new(node.sparsity())
            self.tape.loads.append((info["ind"], value.block, node.nnz()))
            return [value]
        if operation == ca.OP_OUTPUT:
            info = node.info()
            value = given[0]
            self._fill([value])
            self._last[value.block] = 1 << 60
            self._shared.add(value.block)
            self._stores.append((info["ind"], info["offset"], value))
            return []
        if operation == ca.OP_CALL:
            return self._call(node.which_function(), given)
        if operation in _SAME:
            return [self._part(given[0], 0, node.sparsity())]
        if operation == ca.OP_HORZSPLIT:
            return self._split(node, given[0])
        if operation == ca.OP_GETNONZEROS:
            return [self._get(node, given[0])]
        if operation == ca.OP_MTIMES:
            slots = self._function.instruction_input(k), self._function.instruction_output(k)
            return [self._multiply(*given, in_place=slots[0][0] == slots[1][0])]
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
        name = function.serialize()
        if name not in self._numbers:
            if not is_emittable(function):
                raise Unsupported
            self._numbers[name] = len(self.tape.functions)
            self.tape.functions.append(function)
        for i, value in enumerate(given):
            if value is None:  # CasADi's way to pass zeros
                sparsity = ca.Sparsity.dense(count * function.nnz_in(i), 1)
                given[i] = self._new(sparsity)
                self._add("zero", [given[i]], sparsity.nnz())
        results = [
            self._new(ca.repmat(function.sparsity_out(i), 1, count))
            for i in range(function.n_out())
        ]
        self._add(f"call {self._numbers[name]}", [*given, *results], count)
        return list(results)

    def _split(self, node: ca.MX, value: _Value) -> list[_Value | None]:
        info = node.info()
        return [
            self._part(value, start, info["output"].sparsity_out(i))
            for i, start in enumerate(info["offset"][:-1])
        ]

    def _get(self, node: ca.MX, value: _Value) -> _Value:
        info, sparsity = node.info(), node.sparsity()
        if "slice" in info:
            start, stop, step = (info["slice"][key] for key in ("start", "stop", "step"))
            if step == 1:
                return self._part(value, start, sparsity)
            indices = list(range(start, stop, step))
        elif "nz" in info:
            indices = list(info["nz"])
        else:
            outer, inner = (
                range(*(info[key][name] for name in ("start", "stop", "step")))
                for key in ("outer", "inner")
            )
            out = self._new(sparsity)
            moved = self._part(value, outer.start + inner.start, sparsity)
            numbers = len(outer), outer.step, len(inner), inner.step
            self._add("slice", [out, moved], *numbers)
            return out
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
        else:
            raise Unsupported

    def _project(self, value: _Value, out: _Value) -> None:
        """Copy the entries that both patterns have, run by run."""
        if not value.sparsity.is_subset(out.sparsity) or not out.sparsity.is_subset(value.sparsity):
            self._add("zero", [out], out.sparsity.nnz())
        runs: list[list[int]] = []
        have = _places(value.sparsity)
        want = _places(out.sparsity)
        common, i, j = np.intersect1d(want, have, assume_unique=True, return_indices=True)
        breaks = np.flatnonzero((np.diff(i) != 1) | (np.diff(j) != 1)) + 1
        if common.size:
            for part_i, part_j in zip(np.split(i, breaks), np.split(j, breaks), strict=True):
                runs.append([int(part_i[0]), int(part_j[0]), len(part_i)])
        self._add("runs", [out, value], len(runs), *(x for run in runs for x in run))

    def _multiply(self, z: _Value, x: _Value, y: _Value, *, in_place: bool) -> _Value:
        """``z + x y``; in place where z is not needed any more."""
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


def _places(sparsity: ca.Sparsity) -> np.ndarray:
    """Places of a pattern's entries in the dense matrix, by columns; increasing."""
    columns = np.repeat(np.arange(sparsity.size2()), np.diff(sparsity.colind()))
    return columns * sparsity.size1() + np.array(sparsity.row(), dtype=np.int64)
