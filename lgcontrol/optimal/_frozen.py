"""Frozen: records that nobody changes, and that say which attributes they have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from .._names import member_hint
from ..codegen._internal import unknown_name


class Frozen:
    """Base of immutable records with slots; of their subclasses, too.

    A subclass names its attributes in ``__slots__`` and sets them by `_set`, once.
    """

    __slots__ = ()

    def _set(self, **values: Any) -> None:
        """Set attributes of a record that is being made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse: what is known by this name stays, other names are mistakes."""
        kind = type(self).__name__
        if name in public_names(type(self)):
            raise AttributeError(f"{name} is fixed when {kind} is made: make another one")
        refuse_name(self, name)

    def __delattr__(self, name: str) -> None:
        """Refuse."""
        raise AttributeError(f"{name} of {type(self).__name__} stays: make another one")

    if not TYPE_CHECKING:  # a type checker takes it for every name

        def __getattr__(self, name: str) -> Any:
            """Refuse names that there are not."""
            refuse_name(self, name)

    def __getstate__(self) -> dict[str, Any]:
        """All attributes."""
        names = (name for kind in type(self).__mro__ for name in vars(kind).get("__slots__", ()))
        return {name: getattr(self, name) for name in names if name != "__weakref__"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take them again."""
        self._set(**state)


def public_names(kind: type) -> Iterable[str]:
    """Names of the public attributes and methods of a class, in their order."""
    return [name for name in dir(kind) if not name.startswith("_")]


def refuse_name(record: object, name: str) -> NoReturn:
    """Say that there is no such attribute, and which ones there are."""
    kind = type(record)
    if name.startswith("__"):  # asked by protocols, at every copy
        raise AttributeError(f"{kind.__name__} has no attribute {name!r}", name=name, obj=record)
    text = unknown_name(f"attribute of {kind.__name__}", name, public_names(kind))
    hint = member_hint(kind, name)
    raise AttributeError(text + f" {name!r} {hint}" * bool(hint), name=name, obj=record)
