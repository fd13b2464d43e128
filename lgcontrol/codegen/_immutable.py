"""Objects that stay as they are made, keep what was computed for them, and say how a call ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from .._names import member_hint
from ._validate import unknown_name

T = TypeVar("T")


def refuse_attribute(thing: Any, name: str) -> Any:
    """Raise the error for an attribute that an object does not have, with its new name."""
    if hasattr(type(thing), name):  # a property whose own error this is
        return object.__getattribute__(thing, name)
    kind = type(thing)
    hint = "" if name.startswith("_") else member_hint(kind, name)
    text = f"{kind.__name__} has no attribute {name!r}" + f"; it {hint}" * bool(hint)
    raise AttributeError(text, name=name, obj=thing)


class Immutable:
    """Base of objects that refuse attributes that they do not have: a misspelt one changes nothing.

    The constructor, which `named_options` has replaced, ends with `_finish_making`. A subclass with
    a constructor of its own is as free as Python has it, unless it is given to `named_options`.
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse unknown names after the object is made; its private names are its own."""
        if (
            not name.startswith("_")
            and "_is_made" in vars(self)
            and name not in vars(self)
            and not hasattr(type(self), name)
        ):
            kind = type(self).__name__
            valid = [key for key in (*vars(self), *dir(type(self))) if not key.startswith("_")]
            raise AttributeError(unknown_name(f"attribute of {kind}", name, valid), name=name)
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # a type checker takes it for every name
        __getattr__ = refuse_attribute

    def _finish_making(self) -> None:
        """From here on the names are known."""
        vars(self)["_is_made"] = True


class Memo(Immutable):
    """Base of immutable objects that keep what was traced from them.

    Kept values are no part of the object: copies and pickles compute them again when needed.
    """

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse another value of what functions were traced with: they would keep the old one."""
        if "_memo" in self.__dict__ and not name.startswith("_") and name in self.__dict__:
            kind = type(self).__name__
            raise AttributeError(
                f"{name} of a {kind} is fixed: its functions hold the old value; make another "
                f"{kind}, or set parameters by with_parameters({{…}})",
                name=name,
                obj=self,
            )
        super().__setattr__(name, value)

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """Value of ``make()``, computed at the first call with this key.

        Parameters
        ----------
        key : hashable
            A tuple that begins with the name of the value and holds what else it depends on.
        make : callable
            Computes the value.

        Returns
        -------
        object
            The same object at every call.
        """
        kept: dict[Hashable, Any] = self.__dict__.setdefault("_memo", {})
        if key not in kept:
            kept.setdefault(key, make())  # another thread may have been first
        return kept[key]

    def __getstate__(self) -> dict[str, Any]:
        """Members without the values that are kept."""
        return {name: value for name, value in self.__dict__.items() if name != "_memo"}


def memoized(build: Callable[..., T]) -> Callable[..., T]:
    """``build(owner, *arguments)`` whose values are kept with the owner, and freed with it.

    The owner is a `Memo`; the arguments after it are hashable. A cache beside the owners would keep
    each of them alive.
    """

    @wraps(build)
    def kept(owner: Memo, *arguments: Hashable) -> T:
        return owner.memo((build, *arguments), lambda: build(owner, *arguments))

    return kept


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
