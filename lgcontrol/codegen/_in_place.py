"""InPlaceCall: a function with argument and result memory of its own, for loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from ._loader import evaluator, find_binder
from ._validate import UnknownNameError, unknown_name

if TYPE_CHECKING:
    from ._model_function import ModelFunction


class InPlaceCall:
    """Evaluate without any copy: write into `inputs`, call, read the results.

    Made by `ModelFunction.in_place`. A call takes nothing and returns the result memory, as a named
    tuple if there are several. Each overwrites the results of the call before: copy what must last.
    For one thread at a time; make one per thread.

    Parameters
    ----------
    function : ModelFunction
    batch : int or None
        Items that each call evaluates; None for one without an axis of items.
    shared : sequence of str
        Arguments that all items share.

    Attributes
    ----------
    inputs : dict of str to ndarray
        Memory of the arguments, defaults filled in; write with ``inputs["q"][...] = q``.
    results : dict of str to ndarray
        Memory of the results.
    """

    # Python finds `__call__` in the class and gets from its slot what is to be called: a compiled
    # function without a frame of Python around it.
    __slots__ = ("__call__", "inputs", "results")
    __call__: Callable[[], Any]

    def __init__(
        self, function: ModelFunction, batch: int | None = None, shared: Sequence[str] = ()
    ) -> None:
        for name in shared:
            if name not in function.arguments:
                raise UnknownNameError(
                    unknown_name(f"argument of {function.name}", name, function.arguments)
                )
        if batch is not None and batch < 1:
            raise ValueError(f"batch must be at least 1, or None for single calls, got {batch}")
        items = batch or 1
        given = list(zip(function.arguments, function._inputs, strict=True))
        wanted = list(zip(function.results, function._outputs, strict=True))
        arguments = [
            np.zeros((1 if name in shared else items, *layout.stored)) for name, layout in given
        ]
        results = [np.zeros((items, *layout.stored)) for _, layout in wanted]
        if items == 1:
            function._backend.prepare_single(function._steps)
        else:
            function._backend.prepare_batch(items * function._steps)
        binding = function._bind_memory(arguments, results)
        self.inputs: dict[str, np.ndarray] = {
            name: layout.view(memory)[0 if batch is None or name in shared else slice(None), ...]
            for (name, layout), memory in zip(given, arguments, strict=True)
        }
        self.results: dict[str, np.ndarray] = {
            name: layout.view(memory)[0 if batch is None else slice(None), ...]
            for (name, layout), memory in zip(wanted, results, strict=True)
        }
        for name, value in function.defaults.items():
            self.inputs[name][...] = value
        views = tuple(self.results.values())
        value = views[0] if function._result_type is None else function._result_type(*views)

        def fail() -> Never:
            raise function._failure()

        def evaluate() -> Any:
            return fail() if binding.evaluate() else value

        binder = None if binding.entry is None else find_binder()
        if binding.entry is None or binder is None:
            self.__call__ = evaluate
        else:
            self.__call__ = evaluator(binder, *binding.entry, value, fail, binding.keep)
