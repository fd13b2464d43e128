"""Names of cases: hashes of all that decides their bits."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any

import numpy as np


def key_of(parts: Mapping[str, Any]) -> str:
    """Hash of values that is the same in every process; arrays count with all their bits."""
    text = json.dumps(parts, sort_keys=True, default=_stable)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _stable(thing: Any) -> Any:
    """What JSON can write, and tells a thing from others; JSON calls this for its parts again."""
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, np.ndarray | np.generic) and not thing.dtype.hasobject:
        data = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
        return [kind, str(thing.dtype.descr), thing.shape, data]
    if isinstance(thing, functools.partial):
        return [kind, thing.func, thing.args, thing.keywords]
    if isinstance(thing, Enum):
        return [kind, thing.name]
    if isinstance(thing, PurePath):
        return [kind, str(thing)]
    if isinstance(thing, Mapping):
        return [kind, dict(thing)]
    if is_dataclass(thing) and not isinstance(thing, type):
        return [kind, {one.name: getattr(thing, one.name) for one in fields(thing)}]
    owner = getattr(thing, "__self__", None)
    if callable(thing) and hasattr(thing, "__func__"):  # a method counts with its object
        return [kind, getattr(thing, "__func__"), owner]  # noqa: B009 - checked above
    name = getattr(thing, "__qualname__", "")
    if callable(thing) and name and "<" not in name:
        return f"{thing.__module__}.{name}"
    text = "" if isinstance(thing, np.ndarray | np.generic) else repr(thing)
    if name or not text or " at 0x" in text or type(thing).__repr__ is object.__repr__:
        raise TypeError(
            f"a campaign cannot tell {name or kind} from others in every process: give numbers, "
            "texts, arrays, dataclasses, or functions of a module"
        )
    return [kind, text]
