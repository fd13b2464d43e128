"""Trees from screw axes in the world: products of exponentials without joint frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....codegen._internal import UnknownNameError, check_shape, unknown_name
from ....groups import Helical, LieGroup, Translation
from ....systems._internal import FREE_FALL
from ...inertia._inertia import SpatialInertia
from ._link import WORLD
from ._tree import AnyTree


def tree_from_screws(
    kind: type[AnyTree],
    screws: Mapping[str, Any],
    inertias: Mapping[str, SpatialInertia],
    *,
    parents: Mapping[str, str] | None = None,
    name: str = "multibody",
    gravity: Any = FREE_FALL,
) -> AnyTree:
    """Tree without joint frames: screw axes in the world at the reference configuration.

    All body frames coincide with the world frame at q = 0, and every joint is the product
    factor ``exp(Y q)`` of its screw Y.

    Parameters
    ----------
    screws : mapping of str to array_like, shape (6,)
        Screw ``[v; ω]`` of the joint of each body, in world coordinates. An axis along the unit
        vector n through the point r has ``[r × n + pitch n; n]``, a slide ``[n; 0]``.
    inertias : mapping of str to SpatialInertia
        Inertias in world coordinates at the reference configuration.
    parents : mapping of str to str, optional
        Body that carries each body; by default the one before it.
    name : str
    gravity : array_like, shape (3,)

    References
    ----------
    Müller 2018, section 4.4.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, 1.5])
    >>> tree = Multibody.from_screws({"rod": [-2, 0, 0, 0, 1, 0]}, {"rod": rod})
    >>> tree.mass_matrix([0.0])
    array([[0.66666667]])
    """
    tree = kind(name, gravity)
    for body in (*inertias, *(parents or {})):
        if body not in screws:
            raise UnknownNameError(unknown_name("body", body, screws))
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
