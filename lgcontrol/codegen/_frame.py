"""Frames: memory of arguments and results, its layout, and what evaluates on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ._kernel import Kernel, run_of
from ._loader import NOT_PLAIN, find_binder, loader
from ._program import Chain, Program, solver_in
from ._table import Table
from ._types import Shape


class Layout:
    """Shape of one item as NumPy sees it, and whether memory holds its transpose.

    Parameters
    ----------
    shape : tuple of int
        Any number of axes. CasADi has matrices only: a tensor ``T[i, j, k]`` is the matrix of its
        slices ``[T[:, :, 0], T[:, :, 1], …]``, which in memory is the same.
    by_columns : bool
        Whether the memory is CasADi's column order; else (lists of vectors) NumPy's row order.

    Attributes
    ----------
    stored : tuple of int
        Shape of one item in memory, row order.
    is_turned : bool
        Whether axes are in reverse order between memory and NumPy.
    """

    __slots__ = ("is_turned", "shape", "stored")

    def __init__(self, shape: Shape, by_columns: bool = True) -> None:
        self.shape = shape
        self.stored: Shape = shape[::-1] if by_columns else shape
        self.is_turned = by_columns and len(shape) >= 2

    def view(self, memory: np.ndarray) -> np.ndarray:
        """Items in memory, ``(n, *stored)``, as items in NumPy's order, ``(n, *shape)``."""
        return _reverse(memory) if self.is_turned else memory

    def store(self, items: np.ndarray) -> np.ndarray:
        """Contiguous memory of items ``(n, *shape)``: the array itself where possible."""
        return np.ascontiguousarray(_reverse(items) if self.is_turned else items)


def _reverse(items: np.ndarray) -> np.ndarray:
    return items.transpose(0, *range(items.ndim - 1, 0, -1))


# Operations of one call into C, some 50 ms.
LONGEST_PIECE = 200_000_000


class Piece(NamedTuple):
    """Some items, or some steps of all items.

    Attributes
    ----------
    steps : int
    arguments, results : list of ndarray
        Views of the memory of the whole call, items along the first axis.
    """

    steps: int
    arguments: list[np.ndarray]
    results: list[np.ndarray]


def pieces(
    chain: Chain | None,
    steps: int,
    operations: int,
    group: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> list[Piece]:
    """Cut a call into pieces of at most `LONGEST_PIECE` operations, or of one step of one group.

    Parameters
    ----------
    chain : Chain or None
        How steps follow each other.
    operations : int
        Of one step of one item.
    group : int
        Items that are evaluated at once.

    Returns
    -------
    list of Piece
        In the order in which they must be evaluated.
    """
    whole = Piece(steps, arguments, results)
    items = len(results[0])
    if operations * items * steps <= LONGEST_PIECE:
        return [whole]
    most = group * max(1, LONGEST_PIECE // (operations * group))
    found = []
    for first in range(0, items, most):
        part = slice(first, first + most)
        given = [array[part] if len(array) > 1 else array for array in arguments]
        made = [array[part] for array in results]
        if chain is None:
            found.append(Piece(steps, given, made))
        else:
            found += _in_steps(chain, steps, operations, given, made)
    return found


def _in_steps(
    chain: Chain,
    steps: int,
    operations: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> list[Piece]:
    """Some steps of all items after each other; each piece starts where the one before ended."""
    most = max(1, LONGEST_PIECE // (operations * len(results[0])))
    found, state = [], arguments[chain.argument]
    for first in range(0, steps, most):
        part = slice(first, min(first + most, steps))
        given = [a[:, part] if i in chain.each else a for i, a in enumerate(arguments)]
        given[chain.argument] = state
        made = [result[:, part] for result in results]
        found.append(Piece(part.stop - part.start, given, made))
        state = made[chain.result][:, -1]
    return found


_FLOAT = np.dtype(np.float64)


@dataclass(frozen=True)
class Binding:
    """What evaluates on memory.

    Attributes
    ----------
    evaluate : callable
        Returns zero or None when all went well.
    keep : object
        Must live as long as calls are made.
    entry : tuple of (callable, int), optional
        Entry point and table of a kernel that is short enough to hold up other threads.
    """

    evaluate: Callable[[], Any]
    keep: Any
    entry: tuple[Any, int] | None = None


class CallFrame:
    """Argument and result memory with what evaluates on it; used by one thread at a time.

    Attributes
    ----------
    run : callable
        ``run(values) → status``: takes a tuple of arguments and evaluates. The status is 0 or None,
        `NOT_PLAIN` for values that are not float64 arrays of the right shape, or positive when the
        evaluation failed.
    inputs : tuple of (ndarray, shape)
        A view to write to, with the shape it takes.
    outputs : tuple of ndarray
        Views to read.
    take : tuple of callable
        Copies of the outputs, in their memory order.
    evaluate : callable
        Evaluates what is in the inputs; returns zero or None when all went well.
    """

    __slots__ = ("_keep", "evaluate", "inputs", "outputs", "run", "take")

    def __init__(
        self,
        inputs: Sequence[Layout],
        outputs: Sequence[Layout],
        bind: Callable[[list[np.ndarray], list[np.ndarray]], Binding],
    ) -> None:
        arguments = [np.zeros((1, *layout.stored)) for layout in inputs]
        results = [np.zeros((1, *layout.stored)) for layout in outputs]
        binding = bind(arguments, results)
        self.evaluate = binding.evaluate
        self.inputs = tuple(
            (layout.view(memory)[0, ...], layout.shape)
            for layout, memory in zip(inputs, arguments, strict=True)
        )
        self.outputs = tuple(
            layout.view(memory)[0, ...] for layout, memory in zip(outputs, results, strict=True)
        )
        self.take = tuple(
            view.copy if view.ndim < 2 else partial(view.copy, "K") for view in self.outputs
        )
        self.run: Callable[[tuple], int | None] = self._run_in_python
        binder = None if binding.entry is None else find_binder()
        if binding.entry is not None and binder is not None:
            self.run = loader(binder, self.inputs, *binding.entry, binding.keep)
        self._keep = binding.keep

    def _run_in_python(self, values: tuple) -> int | None:
        try:
            for value, (target, shape) in zip(values, self.inputs):  # noqa: B905 - counted before
                if shape:
                    if value.shape == shape and value.dtype is _FLOAT:
                        target[...] = value
                        continue
                elif value.__class__ is float:
                    target[...] = value
                    continue
                return NOT_PLAIN
        except AttributeError:  # a list, or another thing without shape
            return NOT_PLAIN
        return self.evaluate()


def bind_interpreter(
    function: ca.Function, arguments: list[np.ndarray], results: list[np.ndarray]
) -> Binding:
    """Evaluate with CasADi's virtual machine."""
    buffer, evaluate = function.buffer()
    registers: list[tuple[Any, list[np.ndarray]]] = [
        (buffer.set_arg, arguments),
        (buffer.set_res, results),
    ]
    for register, arrays in registers:
        for i, memory in enumerate(arrays):
            if memory.size:
                register(i, memory.data)
    keep = (buffer, arguments, results)
    if function.is_a("SXFunction"):
        return Binding(evaluate, keep)
    can_fail = solver_in(function) is not None

    def evaluate_checked() -> int:
        evaluate()
        status = buffer.ret()
        if status == 0 or can_fail:
            return status
        for memory in results:  # linear equations are singular: no numbers, as in compiled code
            memory.fill(np.nan)
        return 0

    return Binding(evaluate_checked, keep)


def bind_kernel(
    kernel: Kernel,
    steps: int,
    program: Program,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> Binding:
    """Evaluate with compiled code; the first axis of every array are the items."""
    items, operations = len(results[0]), program.operations
    parts = pieces(program.chain, steps, operations, kernel.width, arguments, results)
    if len(parts) > 1:
        tables = [Table(len(p.results[0]), p.steps, p.arguments, p.results) for p in parts]
        return Binding(lambda: next((s for t in tables if (s := t.run(kernel.run))), 0), tables)
    table = Table(items, steps, arguments, results)
    total = operations * items * steps
    run = run_of(kernel, total)
    entry = (run, table.address) if run is kernel.run_short else None
    return Binding(partial(run, table.address), (table, kernel), entry)
