"""Names of cases: hashes of all that decides their bits."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Set as AnySet
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any

import numpy as np


def key_of(parts: Mapping[str, Any]) -> str:
    """Hash of values that is the same in every process; arrays count with all their bits."""
    return hashlib.sha256(_text(parts).encode()).hexdigest()[:32]


def _text(thing: Any) -> str:
    return json.dumps(thing, sort_keys=True, default=_stable)


def _stable(thing: Any) -> Any:
    """What JSON can write, and tells a thing from others; JSON calls this for its parts again.

    Objects count with what they travel as, never with what they print: that may shorten arrays.
    """
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    if isinstance(thing, np.ndarray | np.generic) and not thing.dtype.hasobject:
        data = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()
        return [kind, str(thing.dtype.descr), thing.shape, data]
    if isinstance(thing, bytes | bytearray):
        return [kind, thing.hex()]
    if isinstance(thing, Mapping):
        return [kind, dict(thing)]
    if isinstance(thing, AnySet):  # without an order that is the same in every process
        return [kind, sorted(_text(one) for one in thing)]
    if is_dataclass(thing) and not isinstance(thing, type):
        return [kind, {one.name: getattr(thing, one.name) for one in fields(thing)}]
    name = getattr(thing, "__qualname__", "")
    is_bound = not isinstance(getattr(thing, "__self__", None), ModuleType | None)
    if callable(thing) and name and "<" not in name and not is_bound:
        return f"{thing.__module__}.{name}"
    try:
        if "<" in name or isinstance(thing, np.ndarray | np.generic):
            raise TypeError(name)
        reduce: Any = thing.__reduce_ex__
        made = reduce(4)
    except Exception as error:
        raise TypeError(
            f"a campaign cannot tell {name or kind} from others in every process: give numbers, "
            "texts, arrays, dataclasses, functions of a module, or objects that pickle"
        ) from error
    if isinstance(made, str):  # a global of its module
        return [kind, made]
    make, given, *rest = made
    return [kind, make, given, *rest[:1], *(list(one) for one in rest[1:3] if one is not None)]
