"""Frame: the memory of one evaluation, with views in NumPy's axis order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from ._kernel import Kernel, run_of
from ._layout import Layout
from ._table import Table

Bind = Callable[[list[np.ndarray], list[np.ndarray]], tuple[Callable[[], Any], Any]]
"""Takes argument and result memory; returns what evaluates on it, and what must be kept alive."""


class Frame:
    """Argument and result memory with the call that evaluates it; used by one thread at a time.

    Attributes
    ----------
    inputs : tuple of (ndarray, shape)
        A view to write to, with the shape it takes.
    outputs : tuple of ndarray
        Views to read.
    take : tuple of callable
        Copies of the outputs, in their memory order.
    evaluate : callable
        Evaluates; returns zero or None when all went well.
    """

    __slots__ = ("_keep", "evaluate", "inputs", "outputs", "take")

    def __init__(self, inputs: Sequence[Layout], outputs: Sequence[Layout], bind: Bind) -> None:
        arguments = [np.zeros((1, *layout.stored)) for layout in inputs]
        results = [np.zeros((1, *layout.stored)) for layout in outputs]
        self.evaluate, self._keep = bind(arguments, results)
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


def bind_interpreter(
    function: ca.Function, arguments: list[np.ndarray], results: list[np.ndarray]
) -> tuple[Callable[[], Any], Any]:
    """Evaluate with CasADi's virtual machine."""
    buffer, evaluate = function.buffer()
    for i, memory in enumerate(arguments):
        if memory.size:
            buffer.set_arg(i, memoryview(memory))
    for i, memory in enumerate(results):
        if memory.size:
            buffer.set_res(i, memoryview(memory))
    keep = (buffer, arguments, results)
    if function.is_a("SXFunction"):
        return evaluate, keep

    def evaluate_checked() -> int:
        evaluate()
        return buffer.ret()

    return evaluate_checked, keep


def bind_kernel(
    kernel: Kernel,
    steps: int,
    operations: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> tuple[Callable[[], Any], Any]:
    """Evaluate with compiled code; the first axis of every array are the items."""
    items = len(results[0])
    table = Table(items, steps, arguments, results)
    return partial(run_of(kernel, operations * items * steps), table.address), (table, kernel)
