"""Recipe: how a joint or a force was made, so that files can hold it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from ...codegen import named_options

P = ParamSpec("P")
Made = TypeVar("Made")


def recorded(make: Callable[P, Made]) -> Callable[P, Made]:
    """Function whose result keeps the function's name and its arguments as `recipe`."""
    own = signature(make)
    called = named_options(own=" ".join(own.parameters))(make)  # kinds are the joint's business

    @wraps(make)
    def kept(*values: P.args, **named: P.kwargs) -> Made:
        made = called(*values, **named)
        given: dict[str, Any] = dict(own.bind(*values, **named).arguments)
        object.__setattr__(made, "recipe", (make.__name__, given))
        return made

    return kept
