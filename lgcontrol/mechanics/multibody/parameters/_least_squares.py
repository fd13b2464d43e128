"""Linear least squares with weights, scaled columns and what is known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....codegen._internal import check_shape

ASYMMETRY = 1e-8  # of a covariance, relative to its largest entry: what sums of products leave


@dataclass(frozen=True, eq=False)
class Prior:
    """Knowledge before the measurement: changes x of the parameters are ``root z``, z of size 1.

    Attributes
    ----------
    root : ndarray, shape (r, k)
        ``root rootᵀ`` is the covariance of the parameters.
    """

    root: np.ndarray

    @classmethod
    def of(cls, prior: Any, count: int, relative: Callable[[float], np.ndarray]) -> Prior:
        """From a share (see `relative`), standard deviations (r,) or a covariance (r, r)."""
        array = check_shape("prior", prior, (), batch=True)
        if array.shape == ():
            if not array > 0:
                raise ValueError(f"prior must be a positive share, for example 0.3, got {prior}")
            return cls(relative(float(array)))
        if array.shape == (count,):
            if not (array >= 0).all():
                raise ValueError("prior: standard deviations must not be negative")
            return cls(np.diag(array))
        if array.shape != (count, count):
            raise ValueError(
                f"prior has shape {array.shape}, expected a number (a share), standard deviations "
                f"({count},) or a covariance ({count}, {count})"
            )
        size = np.abs(array).max(initial=0.0)
        values, vectors = np.linalg.eigh((array + array.T) / 2)
        if (
            np.abs(array - array.T).max(initial=0.0) > ASYMMETRY * size
            or (values < -ASYMMETRY * size).any()
        ):
            raise ValueError("prior is no covariance: it must be symmetric without negative sides")
        return cls(vectors * np.sqrt(np.maximum(values, 0.0)))


@dataclass(frozen=True, eq=False)
class Weighted:
    """Solution of ``Y x ≈ rest`` with a standard deviation for each column of `rest`.

    Attributes
    ----------
    values : ndarray, shape (r,)
    covariance : ndarray, shape (r, r)
    condition : float
        Of Y, weighted and with columns scaled to one; infinite if its rank is not full.
    weakest : ndarray, shape (r,)
        The combination that Y says least of, in scaled columns.
    """

    values: np.ndarray
    covariance: np.ndarray
    condition: float
    weakest: np.ndarray

    @classmethod
    def of(
        cls, Y: np.ndarray, rest: np.ndarray, deviation: np.ndarray, prior: Prior | None
    ) -> Weighted:
        """Solve; Y (n, m, r), rest (n, m), deviation (m,)."""
        count = Y.shape[-1]
        W, b = (Y / deviation[:, None]).reshape(-1, count), (rest / deviation).ravel()
        size = np.linalg.norm(W, axis=0)
        acting = np.where(size > 0, size, 1.0)
        U, s, Vt = np.linalg.svd(W / acting, full_matrices=len(W) < count)
        is_full = len(s) == count and (count == 0 or s[-1] > np.finfo(float).eps * s[0])
        condition = float(s[0] / s[-1]) if is_full and count else (1.0 if is_full else np.inf)
        weakest = Vt[-1] if count else np.zeros(0)
        if prior is None:
            U, Vt = U[:, : len(s)], Vt[: len(s)]
            gain = np.divide(1, s, out=np.zeros_like(s), where=s > np.finfo(float).eps * s[:1])
            inverse = (Vt.T * gain) / acting[:, None]
            return cls(inverse @ (U.T @ b), inverse @ inverse.T, condition, weakest)
        L = prior.root
        U, s, Vt = np.linalg.svd(W @ L, full_matrices=len(W) < L.shape[1])
        back = L @ Vt.T
        values = back[:, : len(s)] @ (s / (1 + s**2) * (U[:, : len(s)].T @ b))
        # What no equation contains keeps the prior's variance.
        shrunk = np.ones(L.shape[1])
        shrunk[: len(s)] = 1 / (1 + s**2)
        return cls(values, (back * shrunk) @ back.T, condition, weakest)
