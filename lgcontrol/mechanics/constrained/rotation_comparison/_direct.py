"""The paper's analyses in closed form: kinematics by Newton's method, index 3 by implicit Euler."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs  # type: ignore[attr-defined]

from ....codegen._internal import Result, Status, check_known, check_shape
from ....groups import SO3
from .._joints import MechanismJoint
from .._mechanism import Mechanism
from .._system import OFF
from ._attitudes import EulerAngles, OrientationMatrix, attitude_type
from ._closed_forms import ClosedForms, PlacedBody

Start = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""r [m], A, ṙ [m/s] in world axes and ω [rad/s] in body axes of a body."""

Matrix = Literal["iteration", "step"]
"""When the matrix of Newton's method is made: in each iteration, or once at the start of a step."""

# Where |sin θ| of an Euler angle falls below, its rates are no longer those of the body.
GIMBAL = 1e-6


class DirectStatus(Status, StrEnum):
    """How an analysis ended.

    ``NOT_CONVERGED``: Newton's method did not. ``SINGULAR_ANGLES``: the Euler angles became
    singular. ``SINGULAR_MATRIX``: the constraints did.
    """

    SOLVED = "solved"
    NOT_CONVERGED = "not converged"
    SINGULAR_ANGLES = "singular angles"
    SINGULAR_MATRIX = "singular matrix"

    @property
    def is_success(self) -> bool:
        """Whether the motion reaches the end."""
        return self is DirectStatus.SOLVED


_REASONS = {
    DirectStatus.NOT_CONVERGED: "Newton's method did not converge",
    DirectStatus.SINGULAR_ANGLES: "Euler angles became singular",
    DirectStatus.SINGULAR_MATRIX: "constraints became singular",
}


@dataclass(frozen=True, eq=False)
class DirectResult(Result):
    """A motion of bodies in closed form, up to where it ended.

    Attributes
    ----------
    t : ndarray, shape (N,)
    r, rdot, rddot : ndarray, shape (N, bodies, 3)
        Centres of mass [m], velocities and accelerations in world axes.
    A : ndarray, shape (N, bodies, 3, 3)
        Orientations, body to world.
    omega, omegadot : ndarray, shape (N, bodies, 3)
        Angular velocities and accelerations in body axes.
    multipliers : ndarray, shape (N, m)
        Of the rows of the joints.
    iterations : ndarray of int, shape (N,)
    status : DirectStatus
    message : str
    """

    t: np.ndarray
    r: np.ndarray
    A: np.ndarray
    rdot: np.ndarray
    omega: np.ndarray
    rddot: np.ndarray
    omegadot: np.ndarray
    multipliers: np.ndarray
    iterations: np.ndarray
    status: DirectStatus
    message: str


@dataclass(frozen=True, eq=False)
class DirectAnalysis:
    """Kinematics and dynamics of a mechanism as the paper does them, on arrays.

    Parameters
    ----------
    mechanism : Mechanism
        Bodies start with the nearest rates that keep the constraints.
    attitude : str
        "rA" (orientation matrix), "rp" (Euler parameters) or "re" (Euler angles).
    matrix : {"iteration", "step"}
        When the matrix of Newton's method is made.
    switched : tuple of (MechanismJoint, callable), optional
        A drive that replaces the drive of its name while ``t → bool`` is true. The paper passes
        singular positions of DP1 drivers in this way.
    is_predicted : bool
        Whether the kinematics first predicts positions with the last velocities (eq. 11).
        Otherwise it starts from the last positions, as the iterations of table 9 do.
    limit : int
        Most iterations of a step.

    References
    ----------
    Kissel, Taves, Negrut: Constrained multibody kinematics and dynamics in absolute coordinates: a
    discussion of three approaches to representing rigid body rotation, sections 2 and 3.

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> from lgcontrol.mechanics.constrained import (
    ...     Marker, Mechanism, MechanismBody, angle_drive, revolute)
    >>> axis = Marker("ground"), Marker("disc")
    >>> disc = MechanismBody("disc", SpatialInertia.box(1.0, [1, 1, 0.1]))
    >>> turned = Mechanism("disc_on_axis", [disc], [
    ...     revolute("axis", *axis), angle_drive("drive", *axis, lambda t: 2 * t)])
    >>> DirectAnalysis(turned, "rp").kinematics(np.linspace(0, 1, 11)).omega[-1].round(9)
    array([[0., 0., 2.]])
    """

    mechanism: Mechanism
    attitude: str = "rA"
    matrix: Matrix = "iteration"
    switched: tuple[MechanismJoint, Callable[[float], bool]] | None = None
    is_predicted: bool = True
    limit: int = 30

    def __post_init__(self) -> None:
        attitude_type(self.attitude)
        check_known("time to make the matrix", ("iteration", "step"), self.matrix)
        _ = self.forms  # refuses what has no closed forms

    @cached_property
    def forms(self) -> ClosedForms:
        """Constraint terms in closed form."""
        return ClosedForms(self.mechanism, self.attitude)

    @cached_property
    def _switched(self) -> ClosedForms | None:
        if self.switched is None:
            return None
        return ClosedForms(self.mechanism.with_joints(self.switched[0]), self.attitude)

    @cached_property
    def start(self) -> dict[str, Start]:
        """r, A, ṙ, ω of every body."""
        own = self.mechanism.bodies.values()
        given = {
            b.name: (b.pose[:3], SO3.matrix(b.pose[3:]), b.rates[:3], b.rates[3:]) for b in own
        }
        return consistent(ClosedForms(self.mechanism), given)

    def _placed(self) -> dict[str, PlacedBody]:
        made = attitude_type(self.attitude)
        return {
            name: PlacedBody(r, rdot, made.from_rotation(A, omega))
            for name, (r, A, rdot, omega) in self.start.items()
        }

    def _forms_at(self, t: float) -> ClosedForms:
        if self._switched is not None and self.switched is not None and self.switched[1](t):
            return self._switched
        return self.forms

    def kinematics(self, t: np.ndarray, tolerance: float = 1e-10) -> DirectResult:
        """Positions by Newton's method, then velocities, accelerations and multipliers.

        Parameters
        ----------
        t : ndarray, shape (N,)
            Times [s].
        tolerance : float
            Norm of the last correction.
        """
        t = check_shape("t", t, (None,))
        if not len(t):
            raise ValueError("t must have at least one time")
        if self.forms.m != self.forms.n:
            raise ValueError(
                f"{self.forms.m} rows for {self.forms.n} coordinates: kinematics needs as many; "
                "mobility() tells degrees of freedom that lack a drive, and rows to leave out"
            )
        record, bodies = _Record(self.forms), self._placed()
        for k, time in enumerate(t):
            forms = self._forms_at(float(time))
            if k and self.is_predicted:
                h = float(time - t[k - 1])
                bodies = {
                    name: PlacedBody(
                        body.r + h * body.rdot,
                        body.rdot,
                        body.attitude.moved(h, body.attitude.rates),
                    )
                    for name, body in bodies.items()
                }
            factors, count = None, 0
            for _ in range(self.limit):
                count += 1
                is_made = factors is None or self.matrix == "iteration"
                at = forms.terms(float(time), bodies, slopes=is_made, rates=False)
                if is_made:
                    factors = _factored(at.G)
                if factors is None:
                    return record.done(t[:k], DirectStatus.SINGULAR_MATRIX, float(time))
                d = -_solved(factors, at.phi)
                bodies = _displaced(forms, bodies, d)
                if math.sqrt(d @ d) < tolerance:
                    break
            else:
                return record.done(t[:k], DirectStatus.NOT_CONVERGED, float(time))
            found = _rates(forms, float(time), bodies)
            if found is None:
                return record.done(t[:k], DirectStatus.SINGULAR_MATRIX, float(time))
            bodies, a, multipliers = found
            record.add(forms, bodies, a, multipliers, count)
            if _are_singular(bodies):
                return record.done(t[: k + 1], DirectStatus.SINGULAR_ANGLES, float(time))
        return record.done(t, DirectStatus.SOLVED, float(t[-1]))

    def dynamics(self, h: float, steps: int, tolerance: float) -> DirectResult:
        """Index 3 by implicit Euler: eq. 32 to 38, 40, 41, 44.

        Parameters
        ----------
        h : float
            Step [s].
        steps : int
        tolerance : float
            Θ: norm of the last correction of accelerations and multipliers; positions are then
            good to h² Θ.

        Returns
        -------
        DirectResult
            From the first step on; the start itself is not in it.
        """
        if not (np.isfinite(h) and h > 0):
            raise ValueError(f"h must be positive, got {h} s")
        record, bodies = _Record(self.forms), self._placed()
        gap = np.abs(self._forms_at(0.0).terms(0.0, bodies, rates=False).phi)
        if gap.max(initial=0.0) > OFF:
            raise ValueError(
                f"the bodies do not keep the joints at the start, they are off by {gap.max():.3g}; "
                "start from Mechanism.assembled()"
            )
        n, times = self.forms.n, h * np.arange(1, steps + 1)
        found = _rates(self._forms_at(0.0), 0.0, bodies, only_accelerations=True)
        if found is None:
            return record.done(times[:0], DirectStatus.SINGULAR_MATRIX, 0.0)
        _, a, multipliers = found
        for k, time in enumerate(times):
            forms, factors, turns, count = self._forms_at(float(time)), None, [], 0
            for _ in range(self.limit):
                count += 1
                is_made = factors is None or self.matrix == "iteration"
                moved = _moved(forms, bodies, a, h)
                loads = multipliers if is_made else None
                at = forms.terms(float(time), moved, loads, rates=False)
                force = forms.balance(moved, a) + at.G.T @ multipliers
                if is_made:
                    # Unknown are positions over h², where those of a group are not its rates' sum.
                    by_q, by_v = forms.balance_derivatives(moved, a)
                    turns = forms.rates_of_move(moved, h)
                    upper = forms.mass_matrix(moved) + h * by_v
                    for own, turn in turns:
                        upper[own, own] = upper[own, own] @ turn
                    factors = _factored(_bordered(upper + h * h * (by_q + at.stiffness), at.G))
                if factors is None:
                    return record.done(times[:k], DirectStatus.SINGULAR_MATRIX, float(time))
                d = -_solved(factors, np.concatenate([force, at.phi / (h * h)]))
                for own, turn in turns:
                    d[own] = turn @ d[own]
                a, multipliers = a + d[:n], multipliers + d[n:]
                if math.sqrt(d @ d) < tolerance:
                    break
            else:
                return record.done(times[:k], DirectStatus.NOT_CONVERGED, float(time))
            bodies = _moved(forms, bodies, a, h)
            record.add(forms, bodies, a, multipliers, count)
            if _are_singular(bodies):
                return record.done(times[: k + 1], DirectStatus.SINGULAR_ANGLES, float(time))
        return record.done(times, DirectStatus.SOLVED, float(times[-1]) if steps else 0.0)


def consistent(forms: ClosedForms, start: Mapping[str, Start]) -> dict[str, Start]:
    """The nearest rates of bodies that keep the constraints at time zero."""
    bodies = {
        name: PlacedBody(r, rdot, OrientationMatrix(A, omega))
        for name, (r, A, rdot, omega) in start.items()
    }
    at = forms.terms(0.0, bodies)
    v = np.concatenate([np.concatenate(start[name][2:]) for name in forms.names])
    v = v + np.linalg.lstsq(at.G, at.nu - at.G @ v, rcond=1e-11)[0]
    rates = dict(zip(forms.names, v.reshape(-1, 6), strict=True))
    return {name: (*start[name][:2], rates[name][:3], rates[name][3:]) for name in start}


def _moved(
    forms: ClosedForms, bodies: Mapping[str, PlacedBody], a: np.ndarray, h: float
) -> dict[str, PlacedBody]:
    """After a step of implicit Euler with accelerations at its end."""
    found = {}
    for name, body in bodies.items():
        at = forms.columns[name]
        rdot = body.rdot + h * a[at : at + 3]
        rates = body.attitude.rates + h * a[at + 3 : at + 3 + forms.size]
        found[name] = PlacedBody(body.r + h * rdot, rdot, body.attitude.moved(h, rates))
    return found


def _displaced(
    forms: ClosedForms, bodies: Mapping[str, PlacedBody], d: np.ndarray
) -> dict[str, PlacedBody]:
    found = {}
    for name, body in bodies.items():
        at = forms.columns[name]
        attitude = body.attitude.displaced(d[at + 3 : at + 3 + forms.size])
        found[name] = PlacedBody(body.r + d[at : at + 3], body.rdot, attitude)
    return found


def _rates(
    forms: ClosedForms,
    t: float,
    bodies: Mapping[str, PlacedBody],
    *,
    only_accelerations: bool = False,
) -> tuple[dict[str, PlacedBody], np.ndarray, np.ndarray] | None:
    """Velocities, accelerations and multipliers where the rows decide them; None if singular."""
    at = forms.terms(t, bodies)
    G = at.G
    if not only_accelerations:
        factors = _factored(G)
        if factors is None:
            return None
        v = _solved(factors, at.nu)
        made = {}
        for name, body in bodies.items():
            c = forms.columns[name]
            attitude = type(body.attitude)(body.attitude.coordinates, v[c + 3 : c + 3 + forms.size])
            made[name] = PlacedBody(body.r, v[c : c + 3], attitude)
        bodies = made
        at = forms.terms(t, bodies, slopes=False)
    factors = _factored(_bordered(forms.mass_matrix(bodies), G))
    if factors is None:
        return None
    right = np.concatenate([-forms.balance(bodies, np.zeros(forms.n)), at.gamma])
    solved = _solved(factors, right)
    return dict(bodies), solved[: forms.n], solved[forms.n :]


def _bordered(M: np.ndarray, G: np.ndarray) -> np.ndarray:
    """``[[M, Gᵀ], [G, 0]]``."""
    m, n = G.shape
    found = np.zeros((n + m, n + m))
    found[:n, :n], found[:n, n:], found[n:, :n] = M, G.T, G
    return found


def _factored(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Factors L and U with their exchanges; None where a pivot is zero."""
    lu, exchanges, info = dgetrf(matrix)
    return None if info else (lu, exchanges)


def _solved(factors: tuple[np.ndarray, np.ndarray], right: np.ndarray) -> np.ndarray:
    return dgetrs(*factors, right)[0]


def _are_singular(bodies: Mapping[str, PlacedBody]) -> bool:
    return any(
        isinstance(body.attitude, EulerAngles)
        and abs(np.sin(body.attitude.coordinates[1])) < GIMBAL
        for body in bodies.values()
    )


class _Record:
    """What an analysis collects."""

    def __init__(self, forms: ClosedForms) -> None:
        self.names, self.rows = forms.names, forms.n_joint_rows
        self.entries: list[tuple[np.ndarray, ...]] = []
        self.counts: list[int] = []

    def add(
        self,
        forms: ClosedForms,
        bodies: Mapping[str, PlacedBody],
        a: np.ndarray,
        multipliers: np.ndarray,
        count: int,
    ) -> None:
        """One more time."""
        each = [bodies[name] for name in self.names]
        starts = [forms.columns[name] for name in self.names]
        second = [a[at + 3 : at + 3 + forms.size] for at in starts]
        entry = (
            np.array([body.r for body in each]),
            np.array([body.attitude.A for body in each]),
            np.array([body.rdot for body in each]),
            np.array([body.attitude.omega for body in each]),
            np.array([a[at : at + 3] for at in starts]),
            np.array([b.attitude.acceleration(own) for b, own in zip(each, second, strict=True)]),
            multipliers[: self.rows],
        )
        self.entries.append(entry)
        self.counts.append(count)

    def done(self, t: np.ndarray, status: DirectStatus, time: float) -> DirectResult:
        """Result with its status."""
        shapes: list[tuple[int, ...]] = [*([(len(self.names), 3)] * 6), (self.rows,)]
        shapes[1] = (len(self.names), 3, 3)
        columns: Any = [
            np.array([entry[i] for entry in self.entries]).reshape(len(self.entries), *shape)
            for i, shape in enumerate(shapes)
        ]
        text = "" if status.is_success else f"{_REASONS[status]} at t = {time:.6g} s"
        if status in (DirectStatus.SINGULAR_MATRIX, DirectStatus.NOT_CONVERGED):
            text += "; mobility() lists singular positions, and rows to leave out"
        r, A, rdot, omega, rddot, omegadot, multipliers = columns
        return DirectResult(
            t, r, A, rdot, omega, rddot, omegadot, multipliers, np.array(self.counts), status, text
        )
