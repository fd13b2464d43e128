"""Inertial parameters from measured motion and forces, by weighted least squares."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ....codegen import check_shape
from ._least_squares import Prior, Weighted

if TYPE_CHECKING:
    from ._base_parameters import BaseParameters

UNEXCITED = 1e-10  # ratio of singular values, columns scaled to one, below which data say nothing
GOOD_CONDITION = 100.0
NAMED = 3  # parameters that messages name
ROUNDING = 1e-12  # of the largest force
ROUNDS = 5  # of weighting by residuals, with a prior: the weights settle to a percent


@dataclass(frozen=True, eq=False)
class Identification:
    """Estimated base parameters.

    Attributes
    ----------
    base : BaseParameters
    values : ndarray, shape (r,)
        Estimate of φ_b, in the order of ``base.names``.
    covariance : ndarray, shape (r, r)
        Of the estimate, for noise in the forces alone; with a prior, of prior and data together.
    noise : ndarray, shape (nv,)
        Standard deviation of each joint's force: as given, or of the residuals.
    residuals : ndarray, shape (n, nv)
        Measured minus predicted forces [N m, N].
    condition : float
        Of the weighted regressor with columns scaled to one, without the prior: below about 100 the
        motion excites all parameters well. Infinite if some are not excited at all.
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

    @property
    def relative_errors(self) -> np.ndarray:
        """Standard errors as shares of `BaseParameters.scales`, shape (r,).

        From about 1 on the motion tells less of a parameter than the description of the tree does.
        """
        return self.standard_errors / self.base.scales

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
    base: BaseParameters, q: Any, v: Any, a: Any, tau: Any, wrenches: Any, noise: Any, prior: Any
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
    # What the tree's own numbers leave: the estimate is a change of them.
    rest = tau - tree.inverse_dynamics(q, v, a, *extra)
    given = None if noise is None else check_shape("noise", noise, (tree.nv,))
    if given is not None and not (given > 0).all():
        raise ValueError(f"noise must be positive standard deviations, got {given}")
    known = None if prior is None else Prior.of(prior, len(base), base.prior_deviations)
    deviation = np.ones(tree.nv) if given is None else given
    fit = Weighted.of(Y, rest, deviation, known)
    if known is None:
        _refuse_unexcited(base, fit, n)
    if given is None:
        # Joints differ in noise by orders of magnitude: weight by what the fit before left. A prior
        # counts by the noise too, so that it takes a few rounds.
        for _ in range(1 if known is None else ROUNDS):
            deviation = _spread(rest - Y @ fit.values, len(base), tau)
            fit = Weighted.of(Y, rest, deviation, known)
        deviation = _spread(rest - Y @ fit.values, len(base), tau)
    left = rest - Y @ fit.values
    values = base.values + fit.values
    found = Identification(base, values, fit.covariance, deviation, left, fit.condition)
    if known is None:
        _warn_if_poor(found, fit)
    return found


def _spread(residuals: np.ndarray, count: int, forces: np.ndarray) -> np.ndarray:
    """Standard deviation of each joint's residuals, the estimated parameters taken off."""
    n, joints = residuals.shape
    freedom = max(n - count / joints, 1.0)
    own = np.sqrt((residuals**2).sum(axis=0) / freedom)
    # Nothing is measured better than forces are rounded.
    return np.maximum(own, ROUNDING * (np.abs(forces).max(initial=0.0) or 1.0))


def _named(base: BaseParameters, shares: np.ndarray) -> str:
    """The parameters with the largest shares."""
    worst = np.argsort(-np.abs(shares))[:NAMED]
    return ", ".join(base.parameter_names[base.columns[k]] for k in worst)


def _refuse_unexcited(base: BaseParameters, fit: Weighted, n: int) -> None:
    count, joints = len(base), base.tree.nv
    if n * joints < count:
        raise ValueError(
            f"too few samples: {n} of {joints} joints make {n * joints} equations for {count} "
            f"unknown base parameters. Give at least {-(-count // joints)} samples, better some "
            "hundreds; or say by prior=… how well the tree's own numbers are known"
        )
    if fit.condition * UNEXCITED >= 1:
        raise ValueError(
            f"{n} samples do not excite all {count} base parameters: among others "
            f"{_named(base, fit.weakest)}, and what is combined with them. Measure a motion with "
            "more joints moving, faster and in more poses; or say by prior=… how well the tree's "
            "own numbers are known, which then stand for what is not excited"
        )


def _warn_if_poor(found: Identification, fit: Weighted) -> None:
    """Say so where estimates are worth less than the tree's own numbers."""
    base, errors = found.base, found.relative_errors
    vague = int((errors > 1).sum())
    if found.condition <= GOOD_CONDITION and not vague:
        return
    reasons = []
    if found.condition > GOOD_CONDITION:
        reasons.append(
            f"the condition is {found.condition:.2g} (good: below {GOOD_CONDITION:g}), worst for "
            f"{_named(base, fit.weakest)}"
        )
    if vague:
        reasons.append(
            f"{vague} of {len(base)} standard errors exceed the size of the tree's own numbers, "
            f"most those of {_named(base, errors)}"
        )
    warnings.warn(
        f"identification of {base.tree.name!r}: {'; '.join(reasons)}. Predictions of other motions "
        "may be far off, and noise in q, v and a, which standard errors do not count, makes it "
        "worse. Measure more joints moving, faster and in more poses, or give prior=0.3: what is "
        "hardly excited then stays near the tree's numbers",
        stacklevel=4,
    )
