"""Memo: values that are computed once for an immutable object and kept with it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, TypeVar

from ._immutable import Immutable

T = TypeVar("T")


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
