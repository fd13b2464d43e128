"""Immutable: objects that stay as they are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._names import member_hint
from ._validate import unknown_name


def refuse_attribute(thing: Any, name: str) -> Any:
    """Raise the error for an attribute that an object does not have, with its new name.

    Parameters
    ----------
    thing : object
        The object that has no such attribute.
    name : str
    """
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
