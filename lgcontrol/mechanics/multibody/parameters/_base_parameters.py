"""Base parameters: the combinations of inertial parameters that motion and forces reveal.

And their estimates from measured motion and forces, by weighted least squares.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

import casadi as ca
import numpy as np

from ....codegen._internal import Shape, check_shape, interruptible, level_outside
from ..dynamics._dynamics import inverse_dynamics
from ..tree._tree import AnyTree, Tree
from ._regressor import inertial_parameters, inverse_dynamics_regressor

ASYMMETRY = 1e-8  # of a covariance, relative to its largest entry: what sums of products leave


@dataclass(frozen=True, eq=False)
class Prior:
    """Knowledge before the measurement: changes x of the parameters are ``root z``, z of size 1."""

    root: np.ndarray  # (r, k) ``root rootᵀ`` is the covariance of the parameters

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
    """Solution of ``Y x ≈ rest`` with a standard deviation for each column of `rest`."""

    values: np.ndarray  # (r,)
    covariance: np.ndarray  # (r, r)
    condition: float  # of Y, weighted, in columns of length one; infinite if its rank is not full
    weakest: np.ndarray  # (r,) the combination that Y says least of, in scaled columns

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


DEPENDENT = 1e-9
"""Share of a column outside the span of others below which it depends on them: rounding leaves
about 1e-13, the shortest independent ones of robots are above 1e-5."""

NEGLIGIBLE_PARAMETER = 1e-8
"""Coefficients that names leave out: what angles of 3.14159 instead of π make of zeros."""

CONFIRMING = 5
"""Fresh random states at which combinations must give the same forces as all parameters."""

UNEXPLAINED = 1e-6
"""Largest share of a column's entries that combinations may miss there: rounding leaves 1e-11 of
arms and 1e-8 next to the threshold of `DEPENDENT`, combinations of too few states miss 1e-2."""

_OF_BODY = ("mass", "mc.x", "mc.y", "mc.z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
# Which of several parameters stands for their combination: tensors before moments before masses,
# carrying bodies before carried ones (Khalil and Dombre 2002, section 9.4).
_PREFERENCE = (4, 5, 7, 8, 9, 6, 1, 2, 3, 0)

UNEXCITED = 1e-10  # ratio of singular values, columns scaled to one, below which data say nothing
GOOD_CONDITION = 100.0
NAMED_PARAMETERS = 3  # parameters that messages name
FORCE_ROUNDING = 1e-12  # of the largest force
WEIGHTING_ROUNDS = 5  # of weighting by residuals, with a prior: the weights settle to a percent


@dataclass(frozen=True, eq=False)
class BaseParameters(Generic[AnyTree]):
    """Identifiable combinations ``φ_b = matrix φ`` of the inertial parameters φ.

    φ are `Multibody.inertial_parameters`: of each body the mass, the first moments m c and the
    inertia tensor, with everything that is fixed to the body. The tensor is about the origin of
    the link frame (not the centre of mass), in its axes. Forces of the bodies are ``Y φ = Y_b
    φ_b`` with Y_b the columns of Y at `columns`, at every state; no two different φ_b give the
    same forces. Forces of drives (armature, losses, springs) are no part of it.

    Attributes
    ----------
    tree : Multibody
    parameter_names : tuple of str
        Names of φ: ``"link.mass"`` [kg], ``"link.mc.x"`` [kg m], ``"link.Ixy"`` [kg m²].
    columns : ndarray of int, shape (r,)
        Entries of φ that stand for the combinations; each has the coefficient 1 in its own.
    matrix : ndarray, shape (r, 10 n_bodies)
        Coefficients of the combinations.
    smallest_independent, largest_dependent : float
        Share of a column that others do not explain: the least of those kept and the largest of
        those that were explained. The gap between them says how certain the rank is.
    """

    tree: AnyTree
    parameter_names: tuple[str, ...]
    columns: np.ndarray
    matrix: np.ndarray
    smallest_independent: float
    largest_dependent: float

    def __len__(self) -> int:
        """Number of base parameters: the rank of the regressor."""
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Each base parameter as a sum: ``"b.Ixx − b.Iyy"``, coefficients to six digits.

        Coefficients below 1e-8 are left out.
        """
        return tuple(
            self._sum(row, int(first)) for row, first in zip(self.matrix, self.columns, strict=True)
        )

    @property
    def values(self) -> np.ndarray:
        """Base parameters of the tree as it is described, shape (r,)."""
        return self.matrix @ inertial_parameters(self.tree)

    @property
    def identifiable(self) -> tuple[str, ...]:
        """Parameters that are revealed on their own."""
        alone = (np.abs(self.matrix) > NEGLIGIBLE_PARAMETER).sum(axis=1) == 1
        return tuple(self.parameter_names[k] for k in self.columns[alone])

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Parameters that act on nothing."""
        idle = ~(np.abs(self.matrix) > NEGLIGIBLE_PARAMETER).any(axis=0)
        return tuple(np.array(self.parameter_names, dtype=object)[idle])

    @property
    def combined(self) -> tuple[str, ...]:
        """Parameters that are revealed in combinations only."""
        other = {*self.identifiable, *self.unidentifiable}
        return tuple(name for name in self.parameter_names if name not in other)

    def regressor(self, q: Any, v: Any, a: Any) -> Any:
        """Matrix Y_b with forces of the bodies ``Y_b φ_b``, shape (..., nv, r); or symbols."""
        Y = inverse_dynamics_regressor.of(self.tree)(q, v, a)
        return Y[..., self.columns] if isinstance(Y, np.ndarray) else Y[:, self.columns.tolist()]

    @property
    def scales(self) -> np.ndarray:
        """Size of each combination by the sizes of what is in it, shape (r,).

        A first moment counts as mass times radius of gyration about the link's origin, an entry of
        an inertia tensor as mass times its square. Zeros and cancelled sums so have a size too.
        """
        return np.linalg.norm(self.prior_deviations(1.0), axis=1)

    def prior_deviations(self, share: float) -> np.ndarray:
        """Root L of the covariance ``L Lᵀ`` of φ_b where bodies are known to a share, (r, 10 n).

        Mass, first moment and inertia of every body have independent errors of that share of their
        sizes (see `scales`).
        """
        sizes = []
        for m, *h, Ixx, _, Iyy, _, _, Izz in inertial_parameters(self.tree).reshape(-1, 10):
            gyration = np.sqrt(max(Ixx + Iyy + Izz, 0.0) / (2 * m)) if m > 0 else 0.0
            radius = max(gyration, float(np.linalg.norm(h)) / m) if m > 0 else 0.0
            sizes += [m, *[m * radius] * 3, *[m * radius**2] * 6]
        return self.matrix * (share * np.abs(sizes))

    @interruptible
    def identify(
        self,
        q: Any,
        v: Any,
        a: Any,
        tau: Any,
        *,
        wrenches: Any = None,
        noise: Any = None,
        prior: Any = None,
    ) -> Identification[AnyTree]:
        """Weighted least squares for φ_b from measured motion and joint forces.

        Motion counts as exact: noise in v and a, which differentiation makes, biases the estimate
        towards zero forces for joints that hardly move. Filter (without delay) before, and move all
        joints.

        Parameters
        ----------
        q, v, a : array_like, shapes (n, nq), (n, nv), (n, nv)
            Measured states and accelerations.
        tau : array_like, shape (n, nv)
            Measured forces. What drives, losses and springs of the tree take is subtracted.
        wrenches : array_like, shape (n, n_bodies, 6), optional
            Known external wrenches.
        noise : array_like, shape (nv,), optional
            Standard deviation of each joint's force; estimated from the residuals if left out.
        prior : float, or array_like of shape (r,) or (r, r), optional
            Prior uncertainty of the tree's own numbers. Parameters that the motion hardly excites
            stay near them. A share of 0.3 means 30 % of the size of masses, first moments and
            inertias, see `prior_deviations`. Else standard deviations of φ_b, or their covariance.

        Raises
        ------
        ValueError
            If, without a prior, samples are too few, or the motion does not excite all parameters;
            the message names some that are not.

        Warns
        -----
        UserWarning
            If there is no prior, and the condition is above 100 or errors are larger than the
            sizes of the tree's numbers. The message names the worst.

        Examples
        --------
        A weighed pendulum: measured at rest, it says nothing of the inertia.

        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
        >>> q = np.linspace(-1, 1, 50)[:, None]
        >>> measured = 1.2 * tree.gravity_forces(q)
        >>> found = tree.base_parameters().identify(q, 0 * q, 0 * q, measured, prior=0.3)
        >>> dict(zip(found.base.names, found.values.round(3)))["rod.mc.z"]
        np.float64(-1.2)
        >>> dict(zip(found.base.names, found.values.round(3)))["rod.Iyy"]  # as described
        np.float64(0.667)
        """
        return identify_parameters(self, q, v, a, tau, wrenches, noise, prior)

    def summary(self) -> str:
        """Counts, and every combination with the tree's value."""
        lines = [
            repr(self),
            f"  on their own: {len(self.identifiable)}, without effect: "
            f"{len(self.unidentifiable)}, in combinations: {len(self.combined)}",
        ]
        values = zip(self.names, self.values, strict=True)
        return "\n".join([*lines, *(f"  {value:12.6g}  {name}" for name, value in values)])

    def __repr__(self) -> str:
        """Counts."""
        return (
            f"BaseParameters({self.tree.name!r}, {len(self)} of "
            f"{len(self.parameter_names)} inertial parameters)"
        )

    def _sum(self, row: np.ndarray, first: int) -> str:
        text = self.parameter_names[first]
        for k in np.flatnonzero(np.abs(row) > NEGLIGIBLE_PARAMETER):
            if k != first:
                size = f"{abs(row[k]):.6g} "
                sign = "−" if row[k] < 0 else "+"
                text += f" {sign} {'' if size == '1 ' else size}{self.parameter_names[k]}"
        return text


@dataclass(frozen=True, eq=False)
class Identification(Generic[AnyTree]):
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

    base: BaseParameters[AnyTree]
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
        return inverse_dynamics.of(self.base.tree)(q, v, a, *extra) + forces

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


def base_parameters(
    tree: AnyTree, *, seed: int | np.random.Generator = 0, samples: int | None = None
) -> BaseParameters[AnyTree]:
    """Which combinations of inertial parameters motion and joint forces reveal, by name.

    The regressor at random states is decomposed column by column: a column in the span of those
    before it is explained by them. Symbols of `symbolic` count with their nominal values: for
    others, ``tree.with_parameters(p).base_parameters()``.

    Parameters
    ----------
    seed : int or numpy.random.Generator
        For the random states; the result depends on it by rounding only.
    samples : int, optional
        Number of states; by default three times as many equations as parameters.

    Raises
    ------
    ValueError
        If samples give fewer equations than there are parameters that act.
    ArithmeticError
        If rounding hides which columns are independent, or the combinations do not give the forces
        at other random states.

    References
    ----------
    Gautier, "Numerical calculation of the base inertial parameters of robots", Journal of Robotic
    Systems 8 (1991), 485–506: rank and combinations by a QR decomposition.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> arm = Multibody().add_body("a", rod, "revolute", axis="y")
    >>> arm = arm.add_body("b", rod, "revolute", "a", [0, 0, -1.5], axis="y")
    >>> for name in arm.base_parameters().names:
    ...     print(name)
    a.mc.x
    a.mc.z − 1.5 b.mass
    a.Iyy + 2.25 b.mass
    b.mc.x
    b.mc.z
    b.Iyy
    """
    rng = np.random.default_rng(seed)
    bodies = tree.bodies
    names = tuple(f"{body}.{part}" for body in bodies for part in _OF_BODY)
    count = len(names)
    n = 10 + -(-3 * count // max(tree.nv, 1)) if samples is None else samples
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ValueError(f"samples must be a positive number of states, not {samples!r}")
    Y = _random_regressor(tree, rng, (n,)).reshape(n * tree.nv, count)
    size = np.linalg.norm(Y, axis=0)
    acting = size > DEPENDENT * size.max(initial=0.0)
    least_samples = -(-int(acting.sum()) // max(tree.nv, 1))
    if n < least_samples:  # fewer rows than columns: some would depend on others whatever they are
        raise ValueError(
            f"base_parameters of {tree.name!r}: {n} random states give {n * tree.nv} equations for "
            f"{acting.sum()} parameters that act. Give samples of at least {least_samples}, or "
            "none for three times as many equations as parameters"
        )
    scaled = Y / np.where(acting, size, 1.0)
    order = [10 * b + k for b in range(len(bodies)) for k in _PREFERENCE if acting[10 * b + k]]
    kept, least, most = _independent(scaled, order)
    if least < 1e3 * most:
        raise ArithmeticError(
            f"base_parameters of {tree.name!r}: independent and dependent parameters cannot be "
            f"told apart (shares {least:.2g} and {most:.2g}): bodies of very different size? "
            "Try more samples"
        )
    columns = np.array(sorted(kept), dtype=int)
    matrix = np.zeros((len(columns), count))
    if len(columns):
        matrix[:] = np.linalg.lstsq(scaled[:, columns], scaled, rcond=None)[0]
        matrix *= np.where(acting, size, 0.0) / size[columns, None]
        matrix[:, columns] = np.eye(len(columns))
    fresh = _random_regressor(tree, rng, (CONFIRMING,)).reshape(CONFIRMING * tree.nv, count)
    missed = np.abs(fresh[:, columns] @ matrix - fresh).max(axis=0, initial=0.0)
    missed = missed > UNEXPLAINED * np.abs(fresh).max(axis=0, initial=0.0)
    if missed[acting].any():
        worst = ", ".join(names[k] for k in np.flatnonzero(missed & acting)[:3])
        raise ArithmeticError(
            f"base_parameters of {tree.name!r}: the combinations found at {n} random states do not "
            f"give the forces at others ({worst}). Give more samples"
        )
    return BaseParameters(tree, names, columns, matrix, least, most)


def _random_regressor(tree: Tree, rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Regressors at states where weight, velocities and accelerations matter alike."""
    q = tree.configuration.random(rng, shape)
    v, a = rng.normal(scale=(2.0, 5.0), size=(*shape, tree.nv, 2)).T
    return inverse_dynamics_regressor.of(tree)(q, v.T, a.T)


def _independent(Y: np.ndarray, order: list[int]) -> tuple[list[int], float, float]:
    """Columns that those before them do not explain, and the shares next to the threshold."""
    basis = np.zeros_like(Y)
    kept: list[int] = []
    least, most = 1.0, 0.0
    for k in order:
        Q, rest = basis[:, : len(kept)], Y[:, k]
        for _ in range(2):  # once more, for what the first projection lost to rounding
            rest = rest - Q @ (Q.T @ rest)
        share = float(np.linalg.norm(rest))
        if share > DEPENDENT:
            least = min(least, share)
            basis[:, len(kept)] = rest / share
            kept.append(k)
        else:
            most = max(most, share)
    return kept, least, most


@interruptible
def identify_parameters(
    base: BaseParameters[AnyTree],
    q: Any,
    v: Any,
    a: Any,
    tau: Any,
    wrenches: Any,
    noise: Any,
    prior: Any,
) -> Identification[AnyTree]:
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
    rest = tau - inverse_dynamics.of(tree)(q, v, a, *extra)
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
        for _ in range(1 if known is None else WEIGHTING_ROUNDS):
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
    return np.maximum(own, FORCE_ROUNDING * (np.abs(forces).max(initial=0.0) or 1.0))


def _named(base: BaseParameters, shares: np.ndarray) -> str:
    """The parameters with the largest shares."""
    worst = np.argsort(-np.abs(shares))[:NAMED_PARAMETERS]
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
        stacklevel=level_outside(),
    )
