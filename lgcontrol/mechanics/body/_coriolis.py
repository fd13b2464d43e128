"""Coriolis matrices of a body whose velocity lives in a Lie algebra."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, trace
from ...groups import LieGroup
from ._quasi_velocity import QuasiVelocity


def ad_tilde(group: LieGroup, p: Value) -> Value:
    """``ãd_p`` with ``ãd_p v = −ad_vᵀ p``: what turns velocities into forces at momentum p.

    Skew-symmetric, so a Coriolis matrix ``C = ãd_(M v)`` makes ``Ṁ − 2C`` skew-symmetric.

    Parameters
    ----------
    group : LieGroup
        The group.
    p : array_like, shape (..., dim)
        Momentum or any other covector, in coordinates dual to the group's tangent vectors.

    Returns
    -------
    ndarray or CasADi matrix, shape (..., dim, dim)

    References
    ----------
    From 2012, eq. 73 and 108, table 1.

    Examples
    --------
    >>> from lgcontrol.groups import SO3
    >>> ad_tilde(SO3, [1.0, 2.0, 3.0])
    array([[ 0.,  3., -2.],
           [-3.,  0.,  1.],
           [ 2., -1.,  0.]])
    """
    return _ad_tilde_function(group)(p)


def boltzmann_hamel_matrix(group: LieGroup, p: Value, phi: Value | None = None) -> Value:
    """Coriolis matrix at momentum p from its definition by the velocity transformation S(φ).

    ``C_ij = Σ S⁻¹_li (∂S_sl/∂φ_m − ∂S_sm/∂φ_l) S⁻¹_mj p_s`` with ``v = S(φ) φ̇`` about any φ. The
    result is the same for every φ, and equals `ad_tilde`, which is how to compute it.

    Parameters
    ----------
    group : LieGroup
        The group.
    p : array_like, shape (..., dim)
        Momentum ``M v``.
    phi : array_like, shape (..., dim), optional
        Local coordinates about which S is differentiated; the default is 0.

    Returns
    -------
    ndarray or CasADi matrix, shape (..., dim, dim)

    References
    ----------
    From 2012, eq. 54 (in eq. 49 and 50 an index is misprinted); eq. 57 at φ = 0.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> boltzmann_hamel_matrix(SE2, [1.0, 2.0, 3.0])
    array([[ 0.,  0., -2.],
           [ 0.,  0.,  1.],
           [ 2., -1.,  0.]])
    """
    about = np.zeros(group.dim) if phi is None else phi
    return QuasiVelocity.of_group(group).coriolis_matrix(about, p)


def ad_tilde_matrix(group: LieGroup, p: Value) -> Value:
    """`ad_tilde` on a CasADi column, without stored zeros."""
    unit = ca.DM.eye(group.dim)
    columns = [-(ca.sparsify(ca.DM(group.ad(unit[:, j]))).T @ p) for j in range(group.dim)]
    return ca.horzcat(*columns)


@cache
def _ad_tilde_function(group: LieGroup) -> ModelFunction:
    n = group.dim
    return trace("ad_tilde", lambda p: ad_tilde_matrix(group, p), {"p": (n,)}, {"C": (n, n)})
