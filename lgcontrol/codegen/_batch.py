"""Batches: broadcast leading axes, evaluate item by item or with compiled code."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ._layout import Layout
from ._pieces import pieces
from ._threads import run_batch, thread_count
from ._types import Shape

if TYPE_CHECKING:
    from ._model_function import ModelFunction


def evaluate_batch(
    function: ModelFunction, arrays: list[np.ndarray], batch: Shape
) -> list[np.ndarray]:
    """Evaluate on float64 arrays whose leading axes broadcast to `batch`.

    Returns
    -------
    list of ndarray
        Shape ``batch + shape`` each.
    """
    count = math.prod(batch)
    arguments = [
        _items(array, layout, batch, count)
        for array, layout in zip(arrays, function._inputs, strict=True)
    ]
    results = [np.empty((count, *layout.stored)) for layout in function._outputs]
    if count:
        backend = function._backend
        backend.prepare_batch(count * function._steps)
        kernel = backend.kernel_for(count)
        if kernel is None:
            failed = interpret(function, arguments, results)
        else:
            program, group = backend.program, kernel.width * thread_count()
            of = program.chain, function._steps, program.operations, group
            failed = 0
            for piece in pieces(*of, arguments, results):
                steps = piece.steps
                failed = failed or run_batch(kernel, steps, program.operations, *piece[1:])
        if failed:
            raise function._failure()
    return [
        layout.view(result).reshape(batch + layout.shape)
        for result, layout in zip(results, function._outputs, strict=True)
    ]


def interpret(
    function: ModelFunction, arguments: list[np.ndarray], results: list[np.ndarray]
) -> int:
    """Evaluate item after item with the means for single calls; returns the first failure."""
    frames = function._backend.frames
    try:
        frame = frames.pop()
    except IndexError:
        frame = function._make_frame()
    given = [
        layout.view(memory) for layout, memory in zip(function._inputs, arguments, strict=True)
    ]
    wanted = [
        layout.view(memory) for layout, memory in zip(function._outputs, results, strict=True)
    ]
    for k in range(len(results[0])):
        for (target, _), items in zip(frame.inputs, given, strict=True):
            target[...] = items[k if len(items) > 1 else 0]
        failed = frame.evaluate()
        if failed:
            return failed
        for items, view in zip(wanted, frame.outputs, strict=True):
            items[k] = view
    frames.append(frame)
    return 0


def _items(array: np.ndarray, layout: Layout, batch: Shape, count: int) -> np.ndarray:
    """Memory of all items, or of one if all share it."""
    lead = array.shape[: array.ndim - len(layout.shape)]
    if lead != batch:
        if math.prod(lead) == 1:
            count = 1
        else:
            array = np.broadcast_to(array, batch + layout.shape)
    return layout.store(array.reshape((count, *layout.shape)))
