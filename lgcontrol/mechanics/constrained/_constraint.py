"""Constraints of a mechanism with exact derivatives, and which rows depend on which."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import as_names, check_known
from ...groups import LieGroup
from ...systems._internal import check_name


@dataclass(frozen=True, eq=False)
class Constraint:
    """Equations between the coordinates of a configuration, or between velocities, by name.

    Parameters
    ----------
    name : str
        Of a joint or of a loop: what messages and reactions are called after.
    rows : str or sequence of str
        Name of each equation, such as the axis it is about.
    value : callable
        On CasADi columns. For positions ``(t, q, p) → φ(t, q)``, a column that vanishes. For
        velocities ``(t, q, p) → A, b`` with ``A(t, q) v = b(t, q)``: A has a row for each equation
        and a column for each entry of the tangent vector, b is a column.
    units : str or sequence of str
        Of φ, or of ``A v``, for each row or the same for all.
    kind : {"position", "velocity"}
        Rows on velocities (rolling without slip) leave positions as they are: nothing projects
        them.
    derivatives : callable, optional
        ``(t, q, v, p) → G, ν, γ`` in closed form, see `ConstraintTerms`; by automatic
        differentiation along the group if left out.

    Examples
    --------
    >>> ramp = Constraint("ramp", ["height"], lambda t, q, p: q[1] - 0.5 * q[0], "m")
    >>> ramp.row_names
    ('ramp.height',)
    """

    name: str
    rows: Sequence[str]
    value: Callable[[Any, Any, Any], Any]
    units: Sequence[str] = ""
    kind: Literal["position", "velocity"] = "position"
    derivatives: Callable[[Any, Any, Any, Any], Any] | None = None

    def __post_init__(self) -> None:
        name, value, kind = self.name, self.value, self.kind
        check_name("constraint", name)
        if not callable(value):
            raise TypeError(
                f"constraint {name!r}: value must be a function (t, q, p) → φ, not {value!r}"
            )
        rows = as_names(self.rows)
        units = (self.units,) * len(rows) if isinstance(self.units, str) else tuple(self.units)
        if not rows or len(set(rows)) != len(rows):
            raise ValueError(f"constraint {name!r} needs different names of its rows, not {rows}")
        if len(units) != len(rows):
            raise ValueError(f"constraint {name!r} has {len(rows)} rows and {len(units)} units")
        if kind not in ("position", "velocity"):
            raise ValueError(
                f'constraint {name!r}: kind must be "position" or "velocity", not {kind!r}'
            )
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "units", units)

    @property
    def row_names(self) -> tuple[str, ...]:
        """``name.row`` of each row."""
        return tuple(f"{self.name}.{row}" for row in self.rows)


class ConstraintTerms(NamedTuple):
    """What equations of motion need of constraints at ``(t, q, v, p)``.

    Attributes
    ----------
    phi : column (n_position)
        Zero where the rows on positions are kept.
    G : matrix (n_rows, nv)
        Derivative of ``d ↦ φ(q exp d)`` at 0, and A of rows on velocities.
    nu : column (n_rows)
        Right-hand side of ``G v = ν``: ``−∂φ/∂t``, and b of rows on velocities.
    gamma : column (n_rows)
        Right-hand side of ``G v̇ = γ``.
    """

    phi: Any
    G: Any
    nu: Any
    gamma: Any


@dataclass(frozen=True, eq=False)
class Constraints:
    """All constraints of a mechanism: rows on positions first, then those on velocities.

    Multipliers λ have the order of the rows, and the sign of ``M v̇ + Gᵀ λ = F``: the constraints
    act with the generalized force ``−Gᵀ λ``.

    Parameters
    ----------
    group : LieGroup
        Of the configuration.
    members : sequence of Constraint
        Of different names; a joint that holds positions and velocities is one of each kind.
    n_parameters : int
        Length of p.

    Examples
    --------
    A bead on the circle ``x² + y² = 1``.

    >>> from lgcontrol.groups import Rn
    >>> circle = Constraint("wire", ["radius"], lambda t, q, p: (ca.sumsqr(q) - 1) / 2, "m²")
    >>> bead = Constraints(Rn(2), [circle])
    >>> at = bead.terms(ca.DM(0), ca.DM([1, 0]), ca.DM([0, 2]), ca.DM(0, 1))
    >>> at.G, at.gamma
    (DM([[1, 0]]), DM(-4))
    """

    group: LieGroup
    members: Sequence[Constraint]
    n_parameters: int = 0

    def __post_init__(self) -> None:
        members = tuple(self.members)
        names = [(entry.name, entry.kind) for entry in members]
        twice = sorted({name for name, kind in names if names.count((name, kind)) > 1})
        if twice:
            raise ValueError(f"constraints need different names; twice there: {', '.join(twice)}")
        ordered = tuple(sorted(members, key=lambda entry: entry.kind == "velocity"))
        object.__setattr__(self, "members", ordered)

    @property
    def row_names(self) -> tuple[str, ...]:
        """``name.row`` of all rows."""
        return tuple(name for entry in self.members for name in entry.row_names)

    @property
    def units(self) -> tuple[str, ...]:
        """Of all rows."""
        return tuple(unit for entry in self.members for unit in entry.units)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(len(entry.rows) for entry in self.members)

    @property
    def n_position(self) -> int:
        """Number of rows on positions, which come first."""
        return sum(len(entry.rows) for entry in self.members if entry.kind == "position")

    def rows_of(self, name: str) -> list[int]:
        """Places of a constraint among the rows.

        Raises
        ------
        KeyError
            If there is no such constraint.
        """
        owners = [entry.name for entry in self.members for _ in entry.rows]
        check_known("constraint", dict.fromkeys(owners), name)
        return [i for i, owner in enumerate(owners) if owner == name]

    def position(self, t: Value, q: Value, p: Value) -> Value:
        """φ: what is left of the rows on positions, shape (n_position,)."""
        return self._position(t, q, p)

    def velocity(self, t: Value, q: Value, p: Value) -> tuple[Value, Value]:
        """``G, ν`` of ``G v = ν``."""
        _, G, nu, _ = self._terms(t, q, ca.DM(self.group.dim, 1), p)
        return G, nu

    def terms(self, t: Value, q: Value, v: Value, p: Value) -> ConstraintTerms:
        """φ, G, ν, γ at a time, configuration and velocity, on CasADi columns."""
        return ConstraintTerms(*self._terms(t, q, v, p))

    @cached_property
    def is_driven(self) -> bool:
        """Whether the time appears in a constraint."""
        t, q, _, p = self._symbols()
        for entry in self.members:
            values = entry.value(t, q, p)
            own = values if isinstance(values, list | tuple) else (values,)
            if any(ca.depends_on(ca.SX(value), t) for value in own):
                return True
        return False

    @cached_property
    def _position(self) -> ca.Function:
        t, q, _, p = self._symbols()
        rows = [_position_of(entry, t, q, p) for entry in self.members if _holds(entry)]
        return ca.Function(
            "constraints",
            [t, q, p],
            [ca.vertcat(ca.SX(0, 1), *rows)],
            ["t", "q", "p"],
            ["phi"],
        )

    @cached_property
    def _terms(self) -> ca.Function:
        t, q, v, p = self._symbols()
        E, places = (
            self.group.rate_matrix(q),
            {s.element_hash(): i for i, s in enumerate(ca.vertsplit(q))},
        )
        each = [self._of(entry, t, q, v, p, E, places) for entry in self.members]
        phi = [row.phi for row in each]
        stacked = [ca.vertcat(*rows) for rows in zip(*(row[1:] for row in each), strict=True)]
        if not each:
            stacked = [ca.SX(0, self.group.dim), ca.SX(0, 1), ca.SX(0, 1)]
        return ca.Function(
            "constraint_terms",
            [t, q, v, p],
            ca.cse([ca.vertcat(ca.SX(0, 1), *phi), *stacked]),
            ["t", "q", "v", "p"],
            ["phi", "G", "nu", "gamma"],
        )

    def _symbols(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        group, sizes = self.group, self.n_parameters
        return (
            ca.SX.sym("t"),
            ca.SX.sym("q", group.nq),
            ca.SX.sym("v", group.dim),
            ca.SX.sym("p", sizes),
        )

    def _of(
        self,
        entry: Constraint,
        t: ca.SX,
        q: ca.SX,
        v: ca.SX,
        p: ca.SX,
        E: Any,
        places: dict[int, int],
    ) -> ConstraintTerms:
        """Terms of one constraint, by automatic differentiation where nobody knows better.

        By the entries of q alone that it has: by all it would cost the square of their number.
        """

        def entries(value: ca.SX) -> list[int]:
            found = (places.get(symbol.element_hash()) for symbol in ca.symvar(value))
            return sorted(i for i in found if i is not None)

        n, dim = len(entry.rows), self.group.dim
        phi = _position_of(entry, t, q, p) if _holds(entry) else ca.SX(0, 1)
        if entry.derivatives is not None:
            G, nu, gamma = (ca.SX(x) for x in entry.derivatives(t, q, v, p))
        else:
            if _holds(entry):
                at = entries(phi)
                G, nu = ca.jacobian(phi, q[at]) @ E[at, :], -ca.jacobian(phi, t)
            else:
                made = entry.value(t, q, p)
                if not (isinstance(made, tuple | list) and len(made) == 2):
                    raise TypeError(
                        f"constraint {entry.name!r} on velocities must return A, b with A v = b, "
                        f"not {type(made).__name__}"
                    )
                G, nu = (ca.SX(x) for x in made)
            if G.shape != (n, dim) or nu.shape != (n, 1):
                raise ValueError(
                    f"constraint {entry.name!r} returns A of shape {G.shape} and b of shape "
                    f"{nu.shape}, expected ({n}, {dim}) and ({n},)"
                )
            rate = G @ v - nu
            at = entries(rate)
            gamma = -ca.jtimes(rate, q[at], E[at, :] @ v) - ca.jacobian(rate, t)
        return ConstraintTerms(phi, G, nu, gamma)


def _holds(entry: Constraint) -> bool:
    """Whether a constraint is on positions."""
    return entry.kind == "position"


def _position_of(entry: Constraint, t: ca.SX, q: ca.SX, p: ca.SX) -> ca.SX:
    phi: Any = entry.value(t, q, p)
    phi = ca.SX(ca.vertcat(*phi) if isinstance(phi, list | tuple) else phi)
    if phi.shape != (len(entry.rows), 1):
        raise ValueError(
            f"constraint {entry.name!r} returns a value of shape {phi.shape}, expected a column of "
            f"its {len(entry.rows)} rows: {', '.join(entry.rows)}"
        )
    return phi


# Singular values below this share of the largest count as zero.
RANK_OF_ROWS = 1e-8
# Rows shorter than this share of an upper quartile are left short: they are about to vanish.
SHORT, USUAL = 0.3, 0.75
# Share of a null vector that a row must have to be in the dependent set.
RANK_SHARE = 1e-6


def scaled_rows(G: np.ndarray, M: np.ndarray, units: Sequence[str] = ()) -> np.ndarray:
    """``G L⁻ᵀ`` with ``M = L Lᵀ``, rows of one unit divided by the length of the longest.

    A row that vanishes next to others of its unit stays what it is: a loss of rank. Without units
    all rows are alike.
    """
    W = np.linalg.solve(np.linalg.cholesky(M), G.T).T
    lengths = np.linalg.norm(W, axis=1)
    kinds = np.array(list(units) or [""] * len(W))
    for kind in set(kinds):
        own = kinds == kind
        longest = lengths[own].max(initial=0.0)
        W[own] = W[own] / longest if longest else 0.0
    return W


@dataclass(frozen=True, eq=False)
class RankOfRows:
    """Which rows depend on which, rows scaled to a length of about one."""

    rank: int  # number of independent rows
    dependent: tuple[int, ...]  # rows whose multipliers are not unique
    removable: tuple[int, ...]  # the last ones of these: those before them say the same
    values: np.ndarray  # (m,) singular values, the largest first
    combinations: np.ndarray  # (m, m) of rows, a column for each singular value

    @classmethod
    def of(cls, G: np.ndarray) -> RankOfRows:
        """By singular values; removable rows by orthogonalization in their order.

        Examples
        --------
        >>> found = RankOfRows.of(np.array([[1.0, 0], [0, 1], [1, 1]]))
        >>> found.rank, found.removable, found.dependent
        (2, (2,), (0, 1, 2))
        """
        if not G.size:
            every, m = tuple(range(len(G))), len(G)
            return cls(0, every, every, np.zeros(m), np.eye(m))
        lengths = np.linalg.norm(G, axis=1)
        W = G / np.maximum(lengths, SHORT * np.quantile(lengths, USUAL) + 1e-300)[:, None]
        U, s, _ = np.linalg.svd(W)
        rank = int((s > RANK_OF_ROWS * max(s[0], 1e-300)).sum())
        null = U[:, rank:]
        dependent = np.flatnonzero(np.linalg.norm(null, axis=1) > RANK_SHARE).tolist()
        removable, kept = [], np.zeros((0, W.shape[1]))
        if rank < len(W):
            for i, row in enumerate(W):
                rest = row - kept.T @ (kept @ row)
                rest = rest - kept.T @ (kept @ rest)
                size = np.linalg.norm(rest)
                if size > 10 * RANK_OF_ROWS:
                    kept = np.vstack([kept, rest / size])
                else:
                    removable.append(i)
        padded = np.concatenate([s, np.zeros(len(W) - len(s))])
        return cls(rank, tuple(dependent), tuple(removable), padded, U)
