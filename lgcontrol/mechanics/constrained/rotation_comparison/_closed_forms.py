"""Closed forms of the basic constraints on arrays, for the three attitudes of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..._coefficients import read_only
from .._basic import GROUND, Connection, Direction
from .._large import BasicRows, refuse_other_forces
from .._mechanism import Mechanism
from ._attitudes import Attitude, attitude_type

NOWHERE, UNIT = np.zeros(3), np.eye(3)
SIGNED = {1.0: UNIT, -1.0: -UNIT}


class PlacedBody(NamedTuple):
    """Pose and velocity of a body: r, A, ṙ and the rates of its attitude."""

    r: np.ndarray  # (3,) centre of mass [m] and its velocity [m/s], in world axes
    rdot: np.ndarray
    attitude: Attitude


class _Vector(NamedTuple):
    """A vector that bodies carry, with what its product with another one needs.

    ``parts`` are (column, body, s, sign): the vector holds ``sign · A s`` of the body, whose
    attitude begins at the column. ``slopes`` are its derivatives, as columns and blocks.
    """

    value: np.ndarray
    rate: np.ndarray
    partial: np.ndarray  # of the rate: what the time alone does
    quadratic: np.ndarray  # second rate where those of the coordinates are zero
    parts: tuple[tuple[int, Attitude, np.ndarray, float], ...]
    slopes: tuple[tuple[int, np.ndarray], ...]


class RowTerms(NamedTuple):
    """φ, G, ν, γ of all rows, and where asked the derivative of ``Gᵀ λ`` by the coordinates.

    That is not symmetric for the orientation matrix.
    """

    phi: np.ndarray
    G: np.ndarray
    nu: np.ndarray
    gamma: np.ndarray
    stiffness: np.ndarray


class ClosedForms:
    """Constraint terms and Newton's and Euler's equations of a mechanism, on arrays.

    The formulas are those of the paper, with its misprints mended. They use one property of all
    basic constraints: each is a dot product of two vectors that bodies carry. Columns are r and
    the coordinates of the attitude of one body after the other; rows of Euler parameters' norms
    come last.

    Parameters
    ----------
    mechanism : Mechanism
        Of basic constraints and weight alone.
    attitude : str
        "rA" (orientation matrix), "rp" (Euler parameters) or "re" (Euler angles).

    Raises
    ------
    ValueError
        If a joint has rows that are no basic constraints, or anything acts besides weight.

    References
    ----------
    Kissel, Taves, Negrut: tables 2 to 6, eq. 18, 24, 29, 31, 39, 43; `docs/theory/misprints.md`.
    """

    def __init__(self, mechanism: Mechanism, attitude: str = "rA") -> None:
        refuse_other_forces(mechanism)
        inertias = {body.name: body.inertia for body in mechanism.bodies.values()}
        size = attitude_type(attitude).size
        self.names, self.size = tuple(inertias), size
        self.masses = [body.mass for body in inertias.values()]
        self.inertias = [np.asarray(body.inertia) for body in inertias.values()]
        self.gravity = mechanism.gravity
        self.basic = BasicRows(mechanism.joints.values())
        self.rows, self.row_names = self.basic.rows, self.basic.row_names
        # Rows share vectors: the three of a spherical joint its connection, for one.
        distinct = {_identity(v): v for row in self.rows for v in (row.u, row.w)}
        self._vectors, order = list(distinct.values()), list(distinct)
        self._pairs = [
            np.array([order.index(_identity(getattr(row, v))) for row in self.rows], dtype=int)
            for v in ("u", "w")
        ]
        self._each = np.arange(len(self.rows))
        # Directions of the world that stay what they are, None for all other vectors.
        self._constant = [_constant(v) for v in self._vectors]
        self._ends = {id(v): _ends(v) for v in self._vectors if isinstance(v, Connection)}
        self.columns = {name: k * (3 + size) for k, name in enumerate(self.names)}
        self.n = len(self.names) * (3 + size)
        self._masses = np.zeros((self.n, self.n))
        for name, mass in zip(self.names, self.masses, strict=True):
            at = self.columns[name]
            self._masses[at : at + 3, at : at + 3] = mass * UNIT
        self.n_joint_rows = len(self.rows)
        self.m = self.n_joint_rows + (len(self.names) if size == 4 else 0)
        self._none, self._flat = read_only(np.zeros(self.m)), read_only(np.zeros((self.m, self.n)))
        self._square = read_only(np.zeros((self.n, self.n)))

    def terms(
        self,
        t: float,
        bodies: Mapping[str, PlacedBody],
        multipliers: np.ndarray | None = None,
        *,
        slopes: bool = True,
        rates: bool = True,
    ) -> RowTerms:
        """φ, G, ν, γ, and with multipliers the derivative of ``Gᵀ λ``.

        Parameters
        ----------
        t : float
            Time [s].
        bodies : mapping of str to PlacedBody
        multipliers : ndarray of shape (m,), optional
        slopes, rates : bool
            Whether G, and whether ν and γ are wanted; what is not wanted is zero.
        """
        f, moving = self.basic.drives(t)
        vectors = [
            own or self._vector(v, bodies, moving, slopes, rates)
            for own, v in zip(self._constant, self._vectors, strict=True)
        ]
        values = np.array([v.value for v in vectors]).reshape(-1, 3)
        first, second = self._pairs
        left, right, held = values[first], values[second], slice(self.n_joint_rows)
        phi = np.empty(self.m)
        phi[held] = np.einsum("ij,ij->i", left, right) - f[:, 0]
        G, K, nu, gamma = self._flat, self._square, self._none, self._none
        if slopes:
            count = len(vectors)
            # Derivatives of the vectors, and of the rows by the vectors: each by its partner.
            D, C = np.zeros((count, 3, self.n)), np.zeros((self.n_joint_rows, count, 3))
            for own, vector in zip(D, vectors, strict=True):
                for at, block in vector.slopes:
                    own[:, at : at + block.shape[1]] = block
            C[self._each, first] = right
            C[self._each, second] += left
            D, C = D.reshape(3 * count, self.n), C.reshape(-1, 3 * count)
            G = np.zeros((self.m, self.n))
            G[held] = C @ D
            if multipliers is not None:
                loads = multipliers[held]
                between = np.zeros((count, count))
                np.add.at(between, (first, second), loads)
                mixed = D.T @ (between @ D.reshape(count, -1)).reshape(D.shape)
                K = mixed + mixed.T
                for vector, pull in zip(vectors, (loads @ C).reshape(-1, 3), strict=True):
                    for at, attitude, s, sign in vector.parts:
                        k = attitude.size
                        K[at : at + k, at : at + k] += attitude.second(s, sign * pull)
        if rates:
            v, partial, bent = (
                np.array([vector[k] for vector in vectors]).reshape(-1, 3) for k in (1, 2, 3)
            )
            nu, gamma = np.zeros(self.m), np.zeros(self.m)
            moved = partial[first] * right + left * partial[second]
            nu[held] = f[:, 1] - moved.sum(axis=1)
            quadratic = bent[first] * right + 2 * v[first] * v[second] + left * bent[second]
            gamma[held] = f[:, 2] - quadratic.sum(axis=1)
        if self.size == 4:
            for k, name in enumerate(self.names):
                i, at = self.n_joint_rows + k, self.columns[name] + 3
                attitude = bodies[name].attitude
                e, rate = attitude.coordinates, attitude.rates
                phi[i] = (e @ e - 1) / 2
                if slopes:
                    G[i, at : at + 4] = e
                if slopes and multipliers is not None:
                    K[at : at + 4, at : at + 4] += multipliers[i] * np.eye(4)
                if rates:
                    gamma[i] = -rate @ rate
        return RowTerms(phi, G, nu, gamma, K)

    def mass_matrix(self, bodies: Mapping[str, PlacedBody]) -> np.ndarray:
        """M, block-diagonal, shape (n, n)."""
        M = self._masses.copy()
        for name, J in zip(self.names, self.inertias, strict=True):
            at, end = self.columns[name] + 3, self.columns[name] + 3 + self.size
            M[at:end, at:end] = bodies[name].attitude.inertia(J)
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

    def rates_of_move(
        self, bodies: Mapping[str, PlacedBody], h: float
    ) -> list[tuple[slice, np.ndarray]]:
        """``h ∂α̇/∂α`` of a step that ended here, by columns, where it is not the identity."""
        found = []
        for name in self.names:
            at, turn = self.columns[name] + 3, bodies[name].attitude.rates_of_move(h)
            if turn is not None:
                found.append((slice(at, at + self.size), turn))
        return found

    def _vector(
        self,
        v: Direction | Connection,
        bodies: Mapping[str, PlacedBody],
        moving: Mapping[int, np.ndarray],
        slopes: bool,
        rates: bool,
    ) -> _Vector:
        if isinstance(v, Direction):
            own = moving.get(id(v))
            a = v.vector if own is None else own[:, 0]
            if v.body == GROUND:
                return _Vector(a, own[:, 1], own[:, 1], own[:, 2], (), ())  # type: ignore[index]
            attitude, at = bodies[v.body].attitude, self.columns[v.body] + 3
            A, parts = attitude.A, ((at, attitude, a, 1.0),)
            by_attitude = ((at, attitude.first(a)),) if slopes else ()
            if not rates:
                return _Vector(A @ a, NOWHERE, NOWHERE, NOWHERE, parts, by_attitude)
            rate, quadratic = attitude.first(a) @ attitude.rates, attitude.quadratic(a)
            partial = NOWHERE
            if own is not None:
                partial = A @ own[:, 1]
                rate = rate + partial
                bent = attitude.first(own[:, 1]) @ attitude.rates
                quadratic = quadratic + 2 * bent + A @ own[:, 2]
            return _Vector(A @ a, rate, partial, quadratic, parts, by_attitude)
        value, carried = self._ends[id(v)]
        rate, quadratic, parts, blocks = NOWHERE, NOWHERE, [], []
        for name, s, sign, turns in carried:
            body, at = bodies[name], self.columns[name]
            attitude = body.attitude
            place = body.r + attitude.A @ s if turns else body.r
            value = value + place if sign > 0 else value - place
            if turns:
                parts.append((at + 3, attitude, s, sign))
            if slopes:
                blocks.append((at, SIGNED[sign]))
                if turns:
                    blocks.append((at + 3, sign * attitude.first(s)))
            if rates:
                rate = rate + sign * body.rdot
                if turns:
                    rate = rate + sign * (attitude.first(s) @ attitude.rates)
                    quadratic = quadratic + sign * attitude.quadratic(s)
        return _Vector(value, rate, NOWHERE, quadratic, tuple(parts), tuple(blocks))


def _ends(v: Connection) -> tuple[np.ndarray, list[tuple[str, np.ndarray, float, bool]]]:
    """What the ground gives to a connection; body, point, sign of each other end, if it turns."""
    at_rest, carried = NOWHERE, []
    for name, s, sign in ((v.j, v.s_j, 1.0), (v.i, v.s_i, -1.0)):
        if name == GROUND:
            at_rest = at_rest + sign * s
        else:
            carried.append((name, s, sign, bool(s.any())))
    return at_rest, carried


def _identity(v: Direction | Connection) -> Any:
    """What is equal for equal vectors."""
    if isinstance(v, Connection):
        return v.i, v.s_i.tobytes(), v.j, v.s_j.tobytes()
    return v.body, id(v) if callable(v.vector) else v.vector.tobytes()


def _constant(v: Direction | Connection) -> _Vector | None:
    if isinstance(v, Connection) or v.body != GROUND or callable(v.vector):
        return None
    return _Vector(np.asarray(v.vector), NOWHERE, NOWHERE, NOWHERE, (), ())
