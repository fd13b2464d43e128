"""Limits of a tree's degrees of freedom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._tree import Multibody


def limits_of(tree: Multibody) -> dict[str, np.ndarray]:
    """Lower, upper, velocity and effort limits in the order of v.

    A joint that mimics hands its limits on to its leader: a bound on ``m q + b`` is one on q. Only
    the leader is driven, so its effort alone counts.
    """
    found = {
        "lower": np.full(tree.nv, -np.inf),
        "upper": np.full(tree.nv, np.inf),
        "velocity": np.full(tree.nv, np.inf),
        "effort": np.full(tree.nv, np.inf),
    }
    for link in tree._links:
        if link.joint.is_fixed:
            continue
        own = link.properties.filled(link.joint.dim)
        _, at, scale, shift = tree._places[link.joint_name]
        if scale == 0.0:
            continue
        bounds = (np.array([own.lower, own.upper]) - shift) / scale
        found["lower"][at] = np.maximum(found["lower"][at], bounds.min(axis=0))
        found["upper"][at] = np.minimum(found["upper"][at], bounds.max(axis=0))
        found["velocity"][at] = np.minimum(
            found["velocity"][at], np.array(own.velocity) / abs(scale)
        )
        if link.mimic is None:
            found["effort"][at] = own.effort
    return found
