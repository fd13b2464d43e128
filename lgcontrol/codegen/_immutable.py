"""Immutable: objects that stay as they are made."""

from __future__ import annotations

from ._validate import unknown_name


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

    def _finish_making(self) -> None:
        """From here on the names are known."""
        vars(self)["_is_made"] = True
