"""Trees from screw axes in the world: products of exponentials without joint frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ....codegen import check_shape, unknown_name
from ....groups import Helical, LieGroup, Translation
from ..._inertia import SpatialInertia
from ._link import WORLD

if TYPE_CHECKING:
    from ._tree import Multibody


def tree_from_screws(
    tree: Multibody,
    screws: Mapping[str, Any],
    inertias: Mapping[str, SpatialInertia],
    parents: Mapping[str, str] | None,
) -> Multibody:
    """Add a body for each screw."""
    for body in (*inertias, *(parents or {})):
        if body not in screws:
            raise KeyError(unknown_name("body", body, screws))
    before = WORLD
    for body, screw in screws.items():
        group, pivot = screw_joint(check_shape(f"screw of {body!r}", screw, (6,)), body)
        tree = tree.add_body(
            body,
            inertias.get(body),
            group,
            before if parents is None else parents.get(body, WORLD),
            pivot,
            offset=-pivot,
        )
        before = body
    return tree


def screw_joint(screw: np.ndarray, body: str) -> tuple[LieGroup, np.ndarray]:
    """Group of a unit screw ``[v; ω]`` and the point of its axis next to the origin.

    ``exp(Y q) = T exp((h n, n) q) T⁻¹`` with T the translation to the axis.
    """
    v, w = screw[:3], screw[3:]
    speed, turn = np.linalg.norm(v), np.linalg.norm(w)
    if turn < 1e-12:
        if abs(speed - 1.0) > 1e-9:
            raise ValueError(
                f"screw of {body!r}: a slide needs a unit direction, |v| is {speed:.9g}"
            )
        return Translation("z").about(v), np.zeros(3)
    if abs(turn - 1.0) > 1e-9:
        raise ValueError(
            f"screw of {body!r}: the angular part must be a unit vector, got {turn:.9g}"
        )
    return Helical(float(v @ w)).about(w), np.cross(w, v)
