"""What readers and writers are given, checked by kind."""

from __future__ import annotations

from os import PathLike


def check_kind(function: str, name: str, value: object, kinds: type | tuple[type, ...]) -> None:
    """Refuse an argument of another kind, by the names of the function and of the argument."""
    if isinstance(value, kinds):
        return
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    wanted = " or ".join(_WORDS.get(kind, f"a {kind.__name__}") for kind in several)
    raise TypeError(f"{function}(): {name} must be {wanted}, got a {type(value).__name__}")


_WORDS = {str: "a text", bytes: "bytes", PathLike: "a path", type(None): "None"}
