"""Inertial parameters from measured motion and forces, by weighted least squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ...codegen import check_shape

if TYPE_CHECKING:
    from ._base_parameters import BaseParameters

UNEXCITED = 1e-10  # ratio of singular values, columns scaled to one, below which data say nothing


@dataclass(frozen=True, eq=False)
class Identification:
    """Estimated base parameters.

    Attributes
    ----------
    base : BaseParameters
    values : ndarray, shape (r,)
        Estimate of φ_b, in the order of ``base.names``.
    covariance : ndarray, shape (r, r)
    noise : ndarray, shape (nv,)
        Standard deviation of each joint's force: as given, or of the residuals.
    residuals : ndarray, shape (n, nv)
        Measured minus predicted forces [N m, N].
    condition : float
        Of the weighted regressor with columns scaled to one: below about 100 the motion excites all
        parameters well.
    """

    base: BaseParameters
    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    residuals: np.ndarray
    condition: float

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard deviation of each estimate, shape (r,)."""
        return np.sqrt(np.diag(self.covariance))

    def inverse_dynamics(self, q: Any, v: Any, a: Any, wrenches: Any = None) -> Any:
        """Forces that the identified parameters predict, with the tree's drives, (..., nv).

        Takes NumPy batches or CasADi, like `Multibody.inverse_dynamics`.
        """
        Y, change = self.base.regressor(q, v, a), self.values - self.base.values
        forces = Y @ (change if isinstance(Y, np.ndarray) else ca.DM(change))
        extra = () if wrenches is None else (wrenches,)
        return self.base.tree.inverse_dynamics(q, v, a, *extra) + forces

    def summary(self) -> str:
        """Each parameter: estimate, standard error, value in the tree."""
        lines = [repr(self), f"  {'estimate':>12} {'± error':>12} {'in the tree':>12}  parameter"]
        rows = zip(
            self.values, self.standard_errors, self.base.values, self.base.names, strict=True
        )
        lines += [f"  {x:12.6g} {s:12.3g} {was:12.6g}  {name}" for x, s, was, name in rows]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Counts and condition."""
        return (
            f"Identification({self.base.tree.name!r}, {len(self.values)} parameters from "
            f"{len(self.residuals)} samples, condition {self.condition:.3g})"
        )


def identify_parameters(
    base: BaseParameters, q: Any, v: Any, a: Any, tau: Any, wrenches: Any, noise: Any
) -> Identification:
    """See `BaseParameters.identify`."""
    tree = base.tree
    q = check_shape("q", q, (None, tree.nq))
    n = len(q)
    v, a, tau = (
        check_shape(name, x, (n, tree.nv)) for name, x in (("v", v), ("a", a), ("tau", tau))
    )
    extra = () if wrenches is None else (check_shape("wrenches", wrenches, (n, None, 6)),)
    Y = base.regressor(q, v, a)
    known = tree.inverse_dynamics(q, v, a, *extra) - Y @ base.values
    rest = tau - known
    given = None if noise is None else check_shape("noise", noise, (tree.nv,))
    if given is not None and not (given > 0).all():
        raise ValueError(f"noise must be positive standard deviations, got {given}")
    deviation = np.ones(tree.nv) if given is None else given
    values, normal, condition = _solve(base, Y, rest, deviation)
    if given is None:
        # Joints differ in noise by orders of magnitude: weight by what the first fit left.
        deviation = _spread(rest - Y @ values, len(base))
        values, normal, condition = _solve(base, Y, rest, deviation)
        deviation = _spread(rest - Y @ values, len(base))
    return Identification(base, values, normal, deviation, rest - Y @ values, condition)


def _spread(residuals: np.ndarray, count: int) -> np.ndarray:
    """Standard deviation of each joint's residuals, the estimated parameters taken off."""
    n, joints = residuals.shape
    freedom = max(n - count / joints, 1.0)
    own = np.sqrt((residuals**2).sum(axis=0) / freedom)
    return np.maximum(own, 1e-12 * max(own.max(initial=0.0), np.finfo(float).tiny))


def _solve(
    base: BaseParameters, Y: np.ndarray, rest: np.ndarray, deviation: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Estimate, covariance, condition."""
    count = len(base)
    W = (Y / deviation[:, None]).reshape(-1, count)
    size = np.linalg.norm(W, axis=0)
    size = np.where(size > 0, size, 1.0)
    U, s, Vt = np.linalg.svd(W / size, full_matrices=False)
    if len(s) < count or s[-1] <= UNEXCITED * s[0]:
        weak = np.argsort(-np.abs(Vt[-1]))[:3] if len(s) == count else range(min(3, count))
        named = ", ".join(base.parameter_names[base.columns[k]] for k in weak)
        raise ValueError(
            f"{len(rest)} samples do not excite all {count} base parameters: among others "
            f"{named}, and what is combined with them. Measure a motion with more joints moving, "
            "faster and in more poses"
        )
    inverse = (Vt.T / s) / size[:, None]
    values = inverse @ (U.T @ (rest / deviation).ravel())
    return values, inverse @ inverse.T, float(s[0] / s[-1])
