"""What arguments have to be, by their annotations: other kinds are refused by name."""

from __future__ import annotations

import ast
import builtins
import os
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import PurePath
from types import NoneType, UnionType
from typing import Any

import casadi as ca
import numpy as np

_LISTS = (list, tuple, set, frozenset, Mapping, np.ndarray)
_SYMBOLS = (ca.SX, ca.MX, ca.DM)

SHORT_TEXT = 80  # letters that a message shows of a value


@dataclass(frozen=True)
class Kind:
    """What one alternative of an annotation allows.

    `text` is what a message calls it, `allows` whether a value is one, `of` what entries of a list
    have to be (anything if empty), and `cls` the class, where it is one of ours. Values of the
    types `surely` are all allowed: loops need not ask about these.
    """

    text: str
    allows: Callable[[Any], bool]
    of: tuple[Kind, ...] = ()
    cls: type | None = None
    surely: tuple[type, ...] = ()


def refusal(name: str, value: Any, kinds: Sequence[Kind]) -> str:
    """What to say of an argument that is none of some kinds; empty if it is one.

    Anything goes where there are no kinds.

    Examples
    --------
    >>> refusal("speed", "fast", kinds_of("float | None", {}))
    "speed must be a number or None, got 'fast'"
    """
    if not kinds:
        return ""
    fitting = [kind for kind in kinds if kind.allows(value)]
    if not fitting:
        for kind in kinds:
            own = getattr(kind.cls, "_refusal", None)
            if own is not None:
                return own(name, value)
        wanted = " or ".join(dict.fromkeys(kind.text for kind in kinds))
        return f"{name} must be {wanted}, got {_shown(value)}{_remedy(name, value, kinds)}"
    if not isinstance(value, _LISTS) or any(not kind.of for kind in fitting):
        return ""
    within = [entry for kind in fitting for entry in kind.of]
    looked_at = value[:1] if isinstance(value, np.ndarray) else value  # all entries are alike
    if {one for kind in within for one in kind.surely}.issuperset(map(type, looked_at)):
        return ""  # long lists of numbers in a sixtieth of the time
    for k, entry in enumerate(looked_at):
        wrong = refusal(f"{name}[{k}]", entry, within)
        if wrong:
            return wrong
    return ""


def kinds_of(annotation: Any, names: Mapping[str, Any]) -> tuple[Kind, ...]:
    """Kinds that an annotation allows; empty where it allows anything, or is not understood.

    The names of a text are looked up in `names`.
    """
    if isinstance(annotation, str):
        try:
            return _of_tree(ast.parse(annotation, mode="eval").body, names)
        except SyntaxError:
            return ()
    if annotation is None or annotation is NoneType:
        return (Kind("None", lambda value: value is None, surely=(NoneType,)),)
    origin = typing.get_origin(annotation)
    if origin is typing.Union or origin is UnionType:
        return _union(kinds_of(entry, names) for entry in typing.get_args(annotation))
    if origin is typing.Literal:
        return _literal(typing.get_args(annotation))
    if origin is not None:
        entries = typing.get_args(annotation)
        return _of_class(origin, entries, names)
    return _of_class(annotation, (), names)


def _of_tree(tree: ast.expr, names: Mapping[str, Any]) -> tuple[Kind, ...]:
    """Kinds of the text of an annotation."""
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return _union(_of_tree(side, names) for side in (tree.left, tree.right))
    if isinstance(tree, ast.Constant):
        return kinds_of(tree.value, names)
    if isinstance(tree, ast.Subscript):
        base = _look_up(tree.value, names)
        inside = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        if base is typing.Literal:
            return _literal([e.value for e in inside if isinstance(e, ast.Constant)])
        return _of_class(base, tuple(inside), names)
    return kinds_of(found, names) if (found := _look_up(tree, names)) is not None else ()


def _look_up(tree: ast.expr, names: Mapping[str, Any]) -> Any:
    """What a name or an attribute stands for; None if nobody knows, as for types' imports."""
    if isinstance(tree, ast.Name):
        return names.get(tree.id, getattr(builtins, tree.id, None))
    if isinstance(tree, ast.Attribute):
        return getattr(_look_up(tree.value, names), tree.attr, None)
    return None


def _union(parts: Iterable[tuple[Kind, ...]]) -> tuple[Kind, ...]:
    found = list(parts)
    return tuple(kind for part in found for kind in part) if all(found) else ()


def _literal(values: Sequence[Any]) -> tuple[Kind, ...]:
    types = tuple({type(value) for value in values})
    text = " or ".join(map(repr, values))
    return (Kind(f"one of {text}" if len(values) > 1 else text, lambda v: isinstance(v, types)),)


def _of_class(cls: Any, entries: tuple[Any, ...], names: Mapping[str, Any]) -> tuple[Kind, ...]:
    if not isinstance(cls, type) or cls is object:
        return ()
    if cls in _PLAIN:
        return (_PLAIN[cls],)
    if cls is Callable:
        return (Kind("a function", callable),)
    if issubclass(cls, Mapping):
        return (Kind("a mapping of names", lambda value: isinstance(value, Mapping)),)
    if issubclass(cls, Iterable) and cls.__module__ in ("builtins", "collections.abc"):
        return (_list_of(cls, entries, names),)
    if cls is os.PathLike or issubclass(cls, PurePath):
        return (Kind("a path", lambda value: isinstance(value, str | os.PathLike)),)
    if not cls.__module__.startswith("lgcontrol") or getattr(cls, "_is_protocol", False):
        return ()
    article = "an" if cls.__name__[0] in "AEIOU" else "a"
    return (
        Kind(f"{article} {cls.__name__}", lambda v: isinstance(v, cls), cls=cls, surely=(cls,)),
    )


def _list_of(cls: type, entries: tuple[Any, ...], names: Mapping[str, Any]) -> Kind:
    entries = tuple(e for e in entries if e is not ... and not _is_ellipsis(e))
    alike = len(entries) == 1 and cls is not type(None)
    of: tuple[Kind, ...] = ()
    if alike:
        entry = entries[0]
        of = _of_tree(entry, names) if isinstance(entry, ast.expr) else kinds_of(entry, names)
    texts = any(kind.text == "a text" for kind in of) or not of
    text = f"a list of {' or '.join(_plural(kind) for kind in of)}" if of else "a list"

    def allows(value: Any) -> bool:
        if isinstance(value, str | bytes):
            return texts
        if any(kind.text == "a number" for kind in of) and _is_number(value):
            return True  # one number for all entries, where the function takes that
        return hasattr(value, "__iter__") and not isinstance(value, type)

    return Kind(text, allows, of)


def _plural(kind: Kind) -> str:
    return kind.cls.__name__ if kind.cls is not None else f"{kind.text.partition(' ')[2]}s"


def _is_ellipsis(entry: Any) -> bool:
    return isinstance(entry, ast.Constant) and entry.value is ...


def _is_number(value: Any) -> bool:
    if isinstance(value, Number | np.generic):
        return not isinstance(value, complex | np.complexfloating | np.str_ | np.bytes_)
    if isinstance(value, _SYMBOLS):
        return True
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf"


def _is_whole(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, _SYMBOLS) or not value % 1)


def _is_truth(value: Any) -> bool:
    if isinstance(value, ca.SX | ca.MX):  # nobody knows yet
        return False
    return isinstance(value, bool | np.bool_) or (_is_number(value) and bool(value in (0, 1)))


_PLAIN: dict[Any, Kind] = {
    float: Kind("a number", _is_number, surely=(float, int, bool, np.float64)),
    int: Kind("a whole number", _is_whole, surely=(int, bool)),
    bool: Kind("True or False", _is_truth, surely=(bool,)),
    str: Kind("a text", lambda value: isinstance(value, str), surely=(str,)),
    bytes: Kind("bytes", lambda value: isinstance(value, bytes)),
    type: Kind("a class", lambda value: isinstance(value, type)),
}


def _remedy(name: str, value: Any, kinds: Sequence[Kind]) -> str:
    """What to write instead, where that is plain."""
    for kind in kinds:
        if kind.cls is not None and value is kind.cls:
            return f": make one, {kind.cls.__name__}(…)"
        part = kind.cls.__name__.lower() if kind.cls is not None else ""
        if part and not isinstance(value, type) and part in dir(type(value)):
            return f": give its .{part}"
        if any(entry.allows(value) for entry in kind.of):
            return f": write {name}=[…] with brackets"
    return ""


def _shown(value: Any) -> str:
    """A value in a message; of what is long its type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray) and value.ndim:
        return f"an array of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= SHORT_TEXT and "\n" not in text else f"a {type(value).__name__}"
