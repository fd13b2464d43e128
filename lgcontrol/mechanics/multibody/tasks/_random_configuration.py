"""Random configurations of a tree within its limits."""

from __future__ import annotations

import numpy as np

from ....codegen._internal import Shape
from .._multibody import Multibody


def random_configuration(
    tree: Multibody,
    seed: int | np.random.Generator | None = None,
    shape: int | Shape = (),
    *,
    limits: bool = True,
) -> np.ndarray:
    """Random configurations within the joints' limits.

    Joints between limits are uniform, unlimited angles uniform over a turn, rotations uniform,
    unlimited lengths standard normal.

    Parameters
    ----------
    tree : Multibody
    seed : int or numpy.random.Generator, optional
    shape : int or tuple of int
        Batch axes.
    limits : bool
        Whether limits hold.

    Returns
    -------
    ndarray, shape (..., nq)

    Examples
    --------
    >>> from lgcontrol.mechanics import JointProperties
    >>> hinge = JointProperties(lower=-0.1, upper=0.2)
    >>> tree = Multibody().add_body("door", None, "revolute", properties=hinge)
    >>> q = random_configuration(tree, seed=1, shape=100)
    >>> bool((q >= -0.1).all() and (q <= 0.2).all())
    True
    """
    rng = np.random.default_rng(seed)
    group = tree.configuration
    d = group.log(group.random(rng, shape))
    is_angle = np.array([unit == "rad" for unit in group.tangent_units], dtype=bool)
    single = [np.full(block.dim, block.dim == 1) for block in group.blocks.values()]
    turns = is_angle & np.concatenate([np.zeros(0, dtype=bool), *single])
    d = np.where(turns, rng.uniform(-np.pi, np.pi, d.shape), d)
    if limits:
        lower, upper = tree.limits["lower"], tree.limits["upper"]
        both = np.isfinite(lower) & np.isfinite(upper)
        share = rng.uniform(size=d.shape)
        low, high = np.where(both, lower, 0.0), np.where(both, upper, 0.0)
        d = np.where(both, low + share * (high - low), d)
        d = np.clip(d, lower, upper)
    return group.exp(d)
