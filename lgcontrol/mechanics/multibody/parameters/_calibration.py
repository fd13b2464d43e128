"""Placements of joints from measured poses of a frame: least squares on the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple

import numpy as np

from ....codegen._internal import Result, Status, check_shape, interruptible
from ....groups import SE3, check_element
from ..kinematics._frames import placement
from ..kinematics._jacobian_derivatives import (
    calibration_jacobian,
    displaced_joints,
    geometric_parameters,
)
from ..tree._tree import AnyTree, Tree

RANK_OF_POSES = 1e-7  # ratio of singular values in weighted units below which poses say nothing
CALIBRATION_DAMPING = 1e-9  # of the largest squared singular value: placements are nearly right
SUFFICIENT = 1e-4  # least ratio of the actual to the predicted decrease of an accepted step
FINISHED = 1e-12  # relative predicted decrease of the cost at which the iteration has converged
MAX_ITERATIONS = 50
CALIBRATION_ROUNDS = 10  # rounds of weighting position against rotation by their residuals
WEIGHTS_SETTLE = 1e-3
EXACT_MEASUREMENT = 1e-12  # m and rad: noise of measurements that are exact but for rounding


class CalibrationStatus(Status, StrEnum):
    """How a calibration ended: no step lowers the sum of squares, or iterations are used up."""

    CONVERGED = "converged"
    ITERATION_LIMIT = "iteration limit"

    @property
    def is_success(self) -> bool:
        """Whether the sum of squares is least."""
        return self is CalibrationStatus.CONVERGED


@dataclass(frozen=True, eq=False)
class Calibration(Result, Generic[AnyTree]):
    """Estimated placements of joints.

    Attributes
    ----------
    tree : Multibody
        The tree with these placements.
    parameters : tuple of str
        Their names: `Multibody.geometric_parameters` of the joints.
    values : ndarray, shape (n_parameters,)
        Displacements by their names: places in the parent link [m], and turns of the joint frame
        from where it was [rad].
    changes : ndarray, shape (n_parameters,)
        Values minus those of the tree before.
    covariance : ndarray, shape (n_parameters, n_parameters)
        Without a prior, combinations that poses do not tell keep their values and count as certain.
    rank : int
        Number of combinations that the poses tell.
    residuals : ndarray, shape (n, 6) or (n, 3)
        Measured minus predicted: ``minus(measured, predicted)``, or positions in the world.
    noise : ndarray, shape (6,) or (3,)
        Standard deviations [m, rad]: as given, or of the residuals.
    status : CalibrationStatus
    message : str
        What to do where it is no success.
    iterations : int
    """

    tree: AnyTree
    parameters: tuple[str, ...]
    values: np.ndarray
    changes: np.ndarray
    covariance: np.ndarray
    rank: int
    residuals: np.ndarray
    noise: np.ndarray
    status: CalibrationStatus
    iterations: int

    @property
    def message(self) -> str:
        """What to do where the sum of squares is not least; empty where it is."""
        if self.is_success:
            return ""
        return (
            f"the displacements still change after {self.iterations} iterations: give a prior=, "
            "measure poses that differ more, or calibrate fewer joints at a time (joints=)"
        )

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard deviation of each value, shape (n_parameters,)."""
        return np.sqrt(np.diag(self.covariance))

    def summary(self) -> str:
        """Each parameter: change and standard error."""
        lines = [repr(self), f"  {'change':>12} {'± error':>12}  parameter"]
        rows = zip(self.changes, self.standard_errors, self.parameters, strict=True)
        return "\n".join([*lines, *(f"  {x:12.4g} {s:12.3g}  {name}" for x, s, name in rows)])

    def __repr__(self) -> str:
        """Counts and root mean squares."""
        square = np.sqrt((self.residuals**2).mean(axis=0).reshape(-1, 3).mean(axis=1))
        rms = " and ".join(f"{x:.3g} {u}" for x, u in zip(square, ("m", "rad"), strict=False))
        return (
            f"Calibration({self.tree.name!r}, {self.rank} of {len(self.values)} displacements from "
            f"{len(self.residuals)} poses, residuals {rms}, {self.status})"
        )


@interruptible
def calibrate(
    tree: AnyTree,
    frame: str,
    q: Any,
    poses: Any,
    *,
    joints: Sequence[str] = (),
    noise: Any = None,
    prior: Any = None,
) -> Calibration[AnyTree]:
    """Placements of joints from measured poses or positions of a frame.

    Damped Gauss–Newton steps of ``Σ |minus(measured, predicted) / noise|²``, and with a prior
    ``+ |change / prior|²``, with `calibration_jacobian` as derivative.

    Parameters
    ----------
    frame : str
    q : array_like, shape (n, nq)
        Configurations as the encoders tell them.
    poses : array_like, shape (n, 7) or (n, 3)
        Measured pose of the frame in the world, SE3 coordinates, or its position [m].
    joints : sequence of str
        Joints whose placements are looked for, fixed ones too; by default all that move. For a
        tracker that stands anywhere or a probe mounted anyhow, name fixed joints before the
        first or after the last one.
    noise : array_like, shape (2,), (6,) for poses or (1,), (3,) for positions, optional
        Standard deviations of position [m] and rotation [rad], of what is measured, in the
        frame's axes (positions: world's). Left out, they are estimated from the residuals.
    prior : array_like, shape (2,) or (n_parameters,), optional
        Standard deviations of the placements [m], [rad] before the measurement, such as
        tolerances of manufacture. Without, combinations that poses do not tell do not change;
        with parallel axes some are told hardly, and the prior keeps them small.

    Returns
    -------
    Calibration
        `tree` is the calibrated tree.

    Raises
    ------
    KeyError, ValueError
        If there is no such frame or joint, or numbers do not fit.

    References
    ----------
    Müller 2018, section 6.2; Hollerbach and Wampler, "The calibration index and taxonomy for
    robot kinematic calibration methods", Int. J. Robotics Research 15 (1996), 573–591.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody
    >>> drawing = Multibody().add_body("rod", None, "revolute")
    >>> drawing = drawing.add_frame("tip", "rod", [1, 0, 0])
    >>> real = drawing.with_parameters({"rod.placement.x": 1e-3, "rod.placement.rz": 2e-3})
    >>> q = np.linspace(-1, 1, 9)[:, None]
    >>> found = drawing.calibrate("tip", q, real.placement("tip")(q))
    >>> dict(zip(found.parameters, found.changes.round(9) + 0.0))["rod.placement.rz"]
    np.float64(0.002)
    >>> found.rank, found.tree.position("tip")([0.0]).round(6).tolist()
    (6, [1.000998, 0.002, 0.0])
    """
    names = displaced_joints(tree, joints)
    parameters = geometric_parameters(tree, names)
    q = check_shape("q", q, (None, tree.nq))
    measured = check_shape("poses", poses, (len(q), None))
    if measured.shape[1] not in (3, 7):
        raise ValueError(
            f"poses has shape {measured.shape}, expected ({len(q)}, 7), SE3 coordinates, or "
            f"({len(q)}, 3), positions"
        )
    if measured.shape[1] == 7:
        measured = SE3.normalize(check_element("poses", measured, SE3, batch=True))
    problem = _PlacementFit(tree, frame, names, parameters, q, measured)
    given = None if noise is None else _deviations("noise", noise, problem.rows)
    root = np.eye(len(parameters)) if prior is None else _prior_root(prior, len(parameters))
    weights = np.ones(problem.rows) if given is None else given
    start = problem.start
    fit = _minimise(problem, start, weights, root, prior is not None)
    iterations = fit.iterations
    for _ in range(CALIBRATION_ROUNDS if given is None else 0):
        before = weights
        weights = _spread(problem.residuals(fit.values), fit.rank)
        fit = _minimise(problem, start, weights, root, prior is not None)
        iterations += fit.iterations
        if np.abs(weights / before - 1).max() < WEIGHTS_SETTLE:
            break
    return Calibration(
        tree.with_parameters(dict(zip(parameters, fit.values.tolist(), strict=True))),
        parameters,
        fit.values,
        fit.values - start,
        fit.covariance,
        fit.rank,
        problem.residuals(fit.values),
        weights,
        fit.status,
        iterations,
    )


class _Fit(NamedTuple):
    values: np.ndarray
    covariance: np.ndarray
    rank: int
    status: CalibrationStatus
    iterations: int


class _PlacementFit:
    """Residuals of poses or positions and their derivatives by the placements."""

    def __init__(
        self,
        tree: Tree,
        frame: str,
        joints: tuple[str, ...],
        parameters: tuple[str, ...],
        q: np.ndarray,
        measured: np.ndarray,
    ) -> None:
        numeric = tree.without_symbols().symbolic(*parameters)
        self.start = numeric.parameter_values
        self.rows = 6 if measured.shape[1] == 7 else 3
        self._q, self._measured = q, measured
        self._pose = placement(numeric, frame)
        reference = "body" if self.rows == 6 else "hybrid"
        self._jacobian = calibration_jacobian(numeric, frame, reference, joints)

    def residuals(self, p: np.ndarray) -> np.ndarray:
        """(n, rows)."""
        predicted = self._pose(self._q, p)
        if self.rows == 3:
            return self._measured - predicted[:, :3]
        return SE3.minus(self._measured, predicted)

    def slope(self, p: np.ndarray, residuals: np.ndarray) -> np.ndarray:
        """Derivatives of minus the residuals, (n, rows, n_parameters)."""
        J = self._jacobian(self._q, p)
        return J[:, :3] if self.rows == 3 else SE3.left_jacobian_inverse(residuals) @ J


def _minimise(
    problem: _PlacementFit, start: np.ndarray, noise: np.ndarray, root: np.ndarray, with_prior: bool
) -> _Fit:
    """Damped Gauss–Newton steps in z, ``p = start + root z``, of ``|r|² (+ |z|²)``."""
    z = np.zeros(root.shape[1])

    def at(z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        p = start + root @ z
        left = problem.residuals(p)
        return p, left, float(np.sum((left / noise) ** 2) + with_prior * (z @ z))

    p, left, cost = at(z)
    damping = CALIBRATION_DAMPING
    status = CalibrationStatus.ITERATION_LIMIT
    iterations = 0
    while True:
        A = (problem.slope(p, left) / noise[:, None]).reshape(-1, len(p)) @ root
        r = (left / noise).ravel()
        if with_prior:
            A, r = np.concatenate([A, np.eye(len(z))]), np.concatenate([r, -z])
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        told = s > RANK_OF_POSES * s[0] if len(s) else s > 0
        pull = U.T @ r
        while iterations < MAX_ITERATIONS:
            gain = np.where(told, s / (s**2 + damping * s[0] ** 2 + (~told)), 0.0)
            step = gain * pull
            predicted = float(pull @ pull - np.sum((pull - s * step) ** 2))
            if predicted <= FINISHED * cost or cost <= len(r) * FINISHED**2:
                status = CalibrationStatus.CONVERGED
                break
            iterations += 1
            trial = at(z + Vt.T @ step)
            if cost - trial[2] > SUFFICIENT * predicted:
                z = z + Vt.T @ step
                p, left, cost = trial
                damping = max(damping / 10, CALIBRATION_DAMPING)
                break
            damping *= 10
        if status.is_success or iterations >= MAX_ITERATIONS:
            break
    back = root @ Vt.T
    covariance = (back * np.where(told, 1 / np.where(told, s, 1.0) ** 2, 0.0)) @ back.T
    own = np.linalg.svd(A[: left.size], compute_uv=False) if with_prior else s
    rank = int(np.sum(own > RANK_OF_POSES * own[0])) if len(own) else 0
    return _Fit(p, covariance, rank, status, iterations)


def _spread(residuals: np.ndarray, rank: int) -> np.ndarray:
    """Standard deviation of position and of rotation, what was fitted taken off."""
    parts = np.sum(residuals**2, axis=0).reshape(-1, 3).sum(axis=1)
    freedom = max(residuals.size - rank, 1) * 3 / residuals.shape[1]
    return np.repeat(np.maximum(np.sqrt(parts / freedom), EXACT_MEASUREMENT), 3)


def _deviations(name: str, value: Any, rows: int) -> np.ndarray:
    """Positive numbers for each row, from as many or one for positions and one for rotations."""
    array = check_shape(name, value, (), batch=True)
    kinds = rows // 3
    if array.shape not in ((rows,), (kinds,)) or not (array > 0).all():
        raise ValueError(
            f"{name} must be positive standard deviations, {rows} of them or "
            f"{'two, [m] and [rad]' if kinds == 2 else 'one [m]'}, got {np.asarray(value).tolist()}"
        )
    return array if array.shape == (rows,) else np.repeat(array, 3)


def _prior_root(prior: Any, count: int) -> np.ndarray:
    """Root of the covariance: of two standard deviations [m] and [rad], or one for each."""
    array = check_shape("prior", prior, (), batch=True)
    if array.shape not in ((2,), (count,)) or not (array >= 0).all():
        raise ValueError(
            f"prior must be standard deviations of the placements before the measurement, two, [m] "
            f"and [rad], or {count}, got {np.asarray(prior).tolist()}"
        )
    return np.diag(array if array.shape == (count,) else np.tile(np.repeat(array, 3), count // 6))
