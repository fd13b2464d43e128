"""Closed forms of the basic constraints on arrays, for the three attitudes of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from .._inertia import SpatialInertia
from ._attitudes import Attitude
from ._basic import GROUND, BasicConstraint, Connection, Direction
from ._joints import MechanismJoint

NOWHERE, UNIT = np.zeros(3), np.eye(3)


class PlacedBody(NamedTuple):
    """Where a body is and how fast: r, A, ṙ and the rates of its attitude.

    Attributes
    ----------
    r, rdot : ndarray, shape (3,)
        Centre of mass [m] and its velocity [m/s], in world axes.
    attitude : Attitude
    """

    r: np.ndarray
    rdot: np.ndarray
    attitude: Attitude


class _Vector(NamedTuple):
    """A vector that bodies carry, with what its product with another one needs.

    ``parts`` are (column, body, s, sign): the vector holds ``sign · A s`` of the body, whose
    attitude begins at the column. ``points`` are (column, sign): it holds ``sign · r``.
    """

    value: np.ndarray
    rate: np.ndarray
    partial: np.ndarray  # of the rate: what the time alone does
    quadratic: np.ndarray  # second rate where those of the coordinates are zero
    parts: tuple[tuple[int, Attitude, np.ndarray, float], ...]
    points: tuple[tuple[int, float], ...]

    def slopes(self) -> list[tuple[int, np.ndarray]]:
        """Derivatives by the coordinates, as columns and blocks."""
        found = [
            (at, attitude.first(s) if sign > 0 else -attitude.first(s))
            for at, attitude, s, sign in self.parts
        ]
        return found + [(at, UNIT if sign > 0 else -UNIT) for at, sign in self.points]


class RowTerms(NamedTuple):
    """φ, G, ν, γ of all rows, and where asked the derivative of ``Gᵀ λ``.

    Attributes
    ----------
    phi, nu, gamma : ndarray, shape (m,)
    G : ndarray, shape (m, n)
    stiffness : ndarray, shape (n, n)
        Derivative of ``Gᵀ λ`` by the coordinates; of the orientation matrix not symmetric.
    """

    phi: np.ndarray
    G: np.ndarray
    nu: np.ndarray
    gamma: np.ndarray
    stiffness: np.ndarray


class ClosedForms:
    """Constraint terms and Newton's and Euler's equations of a mechanism, on arrays.

    The formulas are those of the paper, with its misprints mended, on what all basic constraints
    have in common: each is a dot product of two vectors that bodies carry. Columns are r and the
    coordinates of the attitude of one body after the other; rows of Euler parameters' norms come
    last.

    Parameters
    ----------
    inertias : mapping of str to SpatialInertia
    joints : sequence of MechanismJoint
        Of basic constraints.
    gravity : ndarray, shape (3,)
    size : int
        Length of the attitudes' coordinates: 4 for Euler parameters.

    Raises
    ------
    ValueError
        If a joint has rows that are no basic constraints.

    References
    ----------
    Kissel, Taves, Negrut: tables 2 to 6, eq. 18, 24, 29, 31, 39, 43; `docs/theory/misprints.md`.
    """

    def __init__(
        self,
        inertias: Mapping[str, SpatialInertia],
        joints: Sequence[MechanismJoint],
        gravity: np.ndarray,
        size: int,
    ) -> None:
        self.names, self.size = tuple(inertias), size
        self.masses = [body.mass for body in inertias.values()]
        self.inertias = [np.asarray(body.inertia) for body in inertias.values()]
        self.gravity = gravity
        self.rows: list[BasicConstraint] = []
        self.row_names: list[str] = []
        for joint in joints:
            for row in joint.rows:
                if not isinstance(row, BasicConstraint):
                    raise ValueError(
                        f"joint {joint.name!r}: {row.row!r} is none of DP1, DP2, D, CD, of which "
                        'alone there are closed forms; take the System in "SO3xR3", "SE3", "rp" or '
                        '"re", which differentiates any equation'
                    )
                self.rows.append(row)
                self.row_names.append(f"{joint.name}.{row.row}")
        self.columns = {name: k * (3 + size) for k, name in enumerate(self.names)}
        self.n = len(self.names) * (3 + size)
        self.n_joint_rows = len(self.rows)
        self.m = self.n_joint_rows + (len(self.names) if size == 4 else 0)

    @cached_property
    def _drives(self) -> ca.Function:
        """``t → f, ḟ, f̈`` of all rows, and ``a, ȧ, ä`` of directions that move."""
        t = ca.SX.sym("t")
        values = [row.f(t) if callable(row.f) else row.f for row in self.rows]
        moving = [v for row in self.rows for v in (row.u, row.w) if _moves(v)]
        columns = ca.vertcat(*values, *(v.vector(t) for v in moving))  # type: ignore[union-attr]
        columns = ca.SX(columns)
        rate = ca.jacobian(columns, t)
        return ca.Function("drives", [t], [ca.horzcat(columns, rate, ca.jacobian(rate, t))])

    @cached_property
    def _still(self) -> np.ndarray | None:
        """``f, ḟ, f̈`` of all rows where nothing depends on the time, None otherwise."""
        if any(callable(row.f) or _moves(row.u) or _moves(row.w) for row in self.rows):
            return None
        f = np.zeros((len(self.rows), 3))
        f[:, 0] = [row.f for row in self.rows]  # type: ignore[misc]
        return f

    def drives(self, t: float) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """``f, ḟ, f̈`` by row, shape (rows, 3), and ``a, ȧ, ä`` as columns by moving direction."""
        if self._still is not None:
            return self._still, {}
        made = np.asarray(self._drives(t))
        found, start = {}, len(self.rows)
        for row in self.rows:
            for v in (row.u, row.w):
                if _moves(v):
                    found[id(v)] = made[start : start + 3]
                    start += 3
        return made[: len(self.rows)], found

    def terms(
        self,
        t: float,
        bodies: Mapping[str, PlacedBody],
        multipliers: np.ndarray | None = None,
        *,
        rates: bool = True,
    ) -> RowTerms:
        """φ, G, ν, γ, and with multipliers the derivative of ``Gᵀ λ``.

        Parameters
        ----------
        t : float
            Time [s].
        bodies : mapping of str to PlacedBody
        multipliers : ndarray of shape (m,), optional
        rates : bool
            Whether ν and γ are wanted.
        """
        f, moving = self.drives(t)
        G = np.zeros((self.m, self.n))
        phi, nu, gamma = (np.zeros(self.m) for _ in range(3))
        K = np.zeros((self.n, self.n))
        for i, row in enumerate(self.rows):
            u = self._vector(row.u, bodies, moving, rates)
            w = u if row.w is row.u else self._vector(row.w, bodies, moving, rates)
            phi[i] = u.value @ w.value - f[i, 0]
            u_slopes = u.slopes()
            w_slopes = u_slopes if w is u else w.slopes()
            for at, block in u_slopes:
                G[i, at : at + block.shape[1]] += w.value @ block
            for at, block in w_slopes:
                G[i, at : at + block.shape[1]] += u.value @ block
            if rates:
                nu[i] = f[i, 1] - u.partial @ w.value - u.value @ w.partial
                quadratic = u.quadratic @ w.value + 2 * u.rate @ w.rate + u.value @ w.quadratic
                gamma[i] = f[i, 2] - quadratic
            if multipliers is not None:
                self._stiffen(K, float(multipliers[i]), u, w, u_slopes, w_slopes)
        if self.size == 4:
            for k, name in enumerate(self.names):
                i, at = self.n_joint_rows + k, self.columns[name] + 3
                attitude = bodies[name].attitude
                e, rate = attitude.coordinates, attitude.rates
                phi[i], gamma[i] = (e @ e - 1) / 2, -rate @ rate
                G[i, at : at + 4] = e
                if multipliers is not None:
                    K[at : at + 4, at : at + 4] += multipliers[i] * np.eye(4)
        return RowTerms(phi, G, nu, gamma, K)

    def mass_matrix(self, bodies: Mapping[str, PlacedBody]) -> np.ndarray:
        """M, block-diagonal, shape (n, n)."""
        M = np.zeros((self.n, self.n))
        for name, mass, J in zip(self.names, self.masses, self.inertias, strict=True):
            at, end = self.columns[name], self.columns[name] + 3 + self.size
            M[at : at + 3, at : at + 3] = mass * np.eye(3)
            M[at + 3 : end, at + 3 : end] = bodies[name].attitude.inertia(J)
        return M

    def balance(self, bodies: Mapping[str, PlacedBody], second_rates: np.ndarray) -> np.ndarray:
        """``M q̈ − F``: inertia less weight, without constraints, shape (n,)."""
        found = np.zeros(self.n)
        for name, mass, J in zip(self.names, self.masses, self.inertias, strict=True):
            at, end = self.columns[name], self.columns[name] + 3 + self.size
            found[at : at + 3] = mass * (second_rates[at : at + 3] - self.gravity)
            found[at + 3 : end] = bodies[name].attitude.inertial_torque(
                J, second_rates[at + 3 : end]
            )
        return found

    def balance_derivatives(
        self, bodies: Mapping[str, PlacedBody], second_rates: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of `balance` by coordinates and by rates, shape (n, n) each."""
        by_q, by_v = np.zeros((self.n, self.n)), np.zeros((self.n, self.n))
        for name, J in zip(self.names, self.inertias, strict=True):
            at, end = self.columns[name] + 3, self.columns[name] + 3 + self.size
            own = bodies[name].attitude.inertial_derivatives(J, second_rates[at:end])
            by_q[at:end, at:end], by_v[at:end, at:end] = own
        return by_q, by_v

    def _vector(
        self,
        v: Direction | Connection,
        bodies: Mapping[str, PlacedBody],
        moving: Mapping[int, np.ndarray],
        rates: bool,
    ) -> _Vector:
        if isinstance(v, Direction):
            own = moving.get(id(v))
            a = v.vector if own is None else own[:, 0]
            if v.body == GROUND:
                return _fixed(a) if own is None else _turning(a, own)
            attitude, at = bodies[v.body].attitude, self.columns[v.body] + 3
            A, parts = attitude.A, ((at, attitude, a, 1.0),)
            if not rates:
                return _Vector(A @ a, NOWHERE, NOWHERE, NOWHERE, parts, ())
            rate, quadratic = attitude.first(a) @ attitude.rates, attitude.quadratic(a)
            partial = NOWHERE
            if own is not None:
                partial = A @ own[:, 1]
                rate = rate + partial
                bent = attitude.first(own[:, 1]) @ attitude.rates
                quadratic = quadratic + 2 * bent + A @ own[:, 2]
            return _Vector(A @ a, rate, partial, quadratic, parts, ())
        value, rate, quadratic = np.zeros(3), np.zeros(3), np.zeros(3)
        parts, points = [], []
        for name, s, sign in ((v.j, v.s_j, 1.0), (v.i, v.s_i, -1.0)):
            if name == GROUND:
                value = value + sign * s
                continue
            body, at = bodies[name], self.columns[name]
            value = value + sign * (body.r + body.attitude.A @ s)
            points.append((at, sign))
            if s.any():
                parts.append((at + 3, body.attitude, s, sign))
            if rates:
                rate = rate + sign * body.rdot
                if s.any():
                    rate = rate + sign * (body.attitude.first(s) @ body.attitude.rates)
                    quadratic = quadratic + sign * body.attitude.quadratic(s)
        return _Vector(value, rate, NOWHERE, quadratic, tuple(parts), tuple(points))

    @staticmethod
    def _stiffen(
        K: np.ndarray,
        multiplier: float,
        u: _Vector,
        w: _Vector,
        u_slopes: list[tuple[int, np.ndarray]],
        w_slopes: list[tuple[int, np.ndarray]],
    ) -> None:
        """Add the derivative of a row of G times its multiplier."""
        if not multiplier:
            return
        for vector, other in ((u, w), (w, u)):
            for at, attitude, s, sign in vector.parts:
                k = attitude.size
                K[at : at + k, at : at + k] += attitude.second(s, multiplier * sign * other.value)
        for a, left in u_slopes:
            for b, right in w_slopes:
                block = multiplier * left.T @ right
                K[a : a + block.shape[0], b : b + block.shape[1]] += block
                K[b : b + block.shape[1], a : a + block.shape[0]] += block.T


def _moves(v: Direction | Connection) -> bool:
    return isinstance(v, Direction) and callable(v.vector)


def _fixed(a: Any) -> _Vector:
    return _Vector(np.asarray(a), NOWHERE, NOWHERE, NOWHERE, (), ())


def _turning(a: np.ndarray, own: np.ndarray) -> _Vector:
    return _Vector(a, own[:, 1], own[:, 1], own[:, 2], (), ())
