"""Reference: the four representations of twists and what is dual to them, by name."""

from __future__ import annotations

from typing import Literal, get_args

from ..codegen import unknown_name

Reference = Literal["body", "spatial", "hybrid", "mixed"]
"""Frame a twist is expressed in.

"body": point and axes of the frame; "spatial": world origin and axes; "hybrid": point of the
frame, world axes; "mixed": linear part in world axes, angular part in the frame's axes.
"""


def check_reference(reference: str) -> None:
    """Refuse unknown references."""
    if reference not in get_args(Reference):
        raise ValueError(unknown_name("reference", reference, get_args(Reference)))
