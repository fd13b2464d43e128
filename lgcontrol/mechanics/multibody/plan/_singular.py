"""Trees in which a joint moves nothing: found and explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from ..dynamics._forward_dynamics import pivots
from ..dynamics._mass_matrix import factor, mass_diagonal, mass_matrix

if TYPE_CHECKING:
    from ..tree._tree import Multibody

SINGULAR = 1e-12  # of a degree of freedom's own inertia: what rounding leaves of nothing


def refuse_singular(tree: Multibody) -> None:
    """Refuse a mass matrix that is singular at a random configuration.

    Raises
    ------
    ValueError
        Naming the joint that moves no inertia, and what to do.
    """
    if not tree.nv:
        return
    q = ca.SX.sym("q", tree.nq)
    plan = tree._numeric_reduced_plan
    if tree.is_coupled:
        M = mass_matrix(plan, q)
        D, own = factor(M)[1], ca.diag(M)
    else:
        D, own = pivots(plan, q), mass_diagonal(plan, q)
    # A zero is divided by further down: the last one counts.
    function = ca.Function("pivots", [q], [D, own])
    D, own = (np.array(x).ravel() for x in function(tree.configuration.random(seed=1)))
    bad = [k for k in range(tree.nv) if not D[k] > SINGULAR * abs(own[k])]
    if not bad:
        return
    k = bad[-1]
    link = next(
        link
        for link in tree._moving_links
        if tree._places[link.joint_name][1].start <= k < tree._places[link.joint_name][1].stop
    )
    raise ValueError(
        f"joint {link.joint_name!r} ({link.joint}) moves no inertia: the mass matrix is singular. "
        f"Link {link.name!r} and what it carries have {'no' if own[k] == 0 else 'not enough'} mass "
        "for this motion: give the link an inertia, the joint an armature "
        f"(JointProperties), or hold it with lock({link.joint_name}=…)"
    )
