"""Functions of a system's t, x, u, p: what was meant by arguments that do not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca

from ..codegen import ModelFunction, Shape, Value


class SystemFunction(ModelFunction):
    """A ModelFunction that adds advice to errors about some arguments.

    Parameters
    ----------
    function, shapes, defaults
        As of ModelFunction.
    advice : mapping of str to str
        What to add to messages about an argument.
    """

    def __init__(
        self,
        function: ca.Function,
        *,
        shapes: Mapping[str, Shape],
        defaults: Mapping[str, Any],
        advice: Mapping[str, str],
    ) -> None:
        super().__init__(function, shapes=shapes, defaults=defaults)
        self._advice = dict(advice)

    def __reduce__(self) -> tuple[Any, ...]:
        """As for a ModelFunction, with the advice."""
        _, (function, shapes, defaults, _, wanted) = super().__reduce__()
        return _rebuild, (function, shapes, defaults, self._advice, wanted)

    def _general(self, values: tuple[Value, ...]) -> Any:
        # Arguments that do not fit come this way; calls with plain arrays do not.
        try:
            return super()._general(values)
        except (TypeError, ValueError) as error:
            for name, advice in self._advice.items():
                if f"argument {name!r}" in str(error):
                    raise type(error)(f"{error}: {advice}") from None
            raise


def _rebuild(
    function: ca.Function,
    shapes: dict[str, Shape],
    defaults: dict[str, Any],
    advice: dict[str, str],
    wanted: Any,
) -> SystemFunction:
    made = SystemFunction(function, shapes=shapes, defaults=defaults, advice=advice)
    made._backend.wanted = wanted
    return made
