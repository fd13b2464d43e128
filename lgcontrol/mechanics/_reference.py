"""Reference: the four representations of twists and what is dual to them, by name."""

from __future__ import annotations

from typing import Literal, get_args

from ..codegen._internal import unknown_name

Reference = Literal["body", "spatial", "hybrid", "mixed"]
"""Frame a twist is expressed in.

"body": point and axes of the frame; "spatial": world origin and axes; "hybrid": point of the
frame, world axes; "mixed": linear part in world axes, angular part in the frame's axes.
"""

_ELSEWHERE = {
    "local": "body",
    "world": "spatial",
    "local_world_aligned": "hybrid",
    "lwa": "hybrid",
    "body_fixed_representation": "body",
    "inertial_fixed_representation": "spatial",
    "inertial": "spatial",
    "mixed_representation": "hybrid",
}


def check_reference(reference: str) -> None:
    """Refuse unknown references; those of other libraries are translated in the message."""
    if reference in get_args(Reference):
        return
    message = unknown_name("reference", reference, get_args(Reference))
    here = _ELSEWHERE.get(str(reference).lower())
    raise ValueError(f"{message} {reference!r} elsewhere is {here!r} here." if here else message)
