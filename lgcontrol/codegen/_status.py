"""Status and Result: how something that may fail ended, in the same words everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._immutable import refuse_attribute


class Status:
    """How something ended, for enumerations: a text, and whether it is a success.

    Enumerations of strings and of integers share it, ``class SolveStatus(Status, StrEnum)``. The
    value of a string is its text; an integer is what exported C code returns.

    Examples
    --------
    >>> from enum import IntEnum
    >>> class Landing(Status, IntEnum):
    ...     TOUCHED_DOWN = 0
    ...     GO_AROUND = 1
    ...
    ...     @property
    ...     def is_success(self):
    ...         return self is Landing.TOUCHED_DOWN
    >>> Landing(1).text, Landing(1).is_success
    ('go around', False)
    """

    if TYPE_CHECKING:

        @property
        def name(self) -> str: ...

    @property
    def text(self) -> str:
        """The words that summaries, counts and messages use."""
        return self.name.lower().replace("_", " ")

    if not TYPE_CHECKING:  # a type checker takes it for every name
        __getattr__ = refuse_attribute

    @property
    def is_success(self) -> bool:
        """Whether what was asked for was done."""
        raise NotImplementedError


class Result:
    """Result of something that may fail: a `status`, and in a `message` why, and what to do."""

    __slots__ = ()

    if TYPE_CHECKING:  # fields or properties, of the status that the result has
        status: Any
        message: Any

    if not TYPE_CHECKING:  # a type checker takes it for every name
        __getattr__ = refuse_attribute

    @property
    def is_success(self) -> bool:
        """Whether what was asked for was done; `message` says why it was not."""
        return bool(self.status.is_success)
