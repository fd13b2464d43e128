"""CallFrame: the memory of one evaluation, with views in NumPy's axis order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from ._kernel import Kernel, run_of
from ._layout import Layout
from ._loader import NOT_PLAIN, find_binder, loader
from ._pieces import pieces
from ._program import Program, solver_in
from ._table import Table

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
