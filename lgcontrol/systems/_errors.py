"""ErrorCoordinates: which numbers tell two states of a system apart, where constraints tie them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..groups import LieGroup


@dataclass(frozen=True, eq=False)
class ErrorCoordinates:
    """Fewer error coordinates than the group has: ``z = E minus(x, x_ref)``, and back by N(x).

    The states of a constrained system are a submanifold of the group. The constant selection E has
    m independent entries. N(x) is a basis of the tangent space with ``E N = 1``. They turn the
    derivatives of the group into ``A_z = E A N``, ``B_z = E B``, ``C_z = C N``, at a point and
    along a motion, without a term in the rate of N.

    Parameters
    ----------
    selection : array_like, shape (m, dim)
        E, constant.
    basis : callable
        ``(x, p) → N``, shape (dim, m), on CasADi columns.
    names : iterable of str
        Of the m coordinates.
    constraints : callable, optional
        ``(x, p) → column`` that vanishes on the submanifold, where somebody knows it: `trim` solves
        it together with the equations of rest.
    constraint_names : iterable of str
        Of its entries, for messages.

    See Also
    --------
    ErrorCoordinates.independent : from the constraints and names of independent entries.
    """

    selection: np.ndarray
    basis: Callable[..., Any]
    names: tuple[str, ...]
    units: tuple[str, ...]
    constraints: Callable[..., Any] | None
    constraint_names: tuple[str, ...]

    def __init__(
        self,
        selection: Any,
        basis: Callable[..., Any],
        names: Iterable[str],
        units: Iterable[str] | None = None,
        constraints: Callable[..., Any] | None = None,
        constraint_names: Iterable[str] = (),
    ) -> None:
        names = tuple(names)
        E = check_shape("selection", selection, (len(names), None))
        units = ("",) * len(names) if units is None else tuple(units)
        if len(set(names)) != len(names) or len(units) != len(names):
            raise ValueError(f"error coordinates need {len(E)} different names and units: {names}")
        made = {"selection": E, "basis": basis, "names": names, "units": units}
        made |= {"constraints": constraints, "constraint_names": tuple(constraint_names)}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @classmethod
    def independent(
        cls, state: LieGroup, names: Iterable[str], constraints: Callable[..., Any]
    ) -> ErrorCoordinates:
        """Entries of the tangent vector that decide the others by the constraints.

        Parameters
        ----------
        names : iterable of str
            Independent entries of ``state.tangent_names``.
        constraints : callable
            ``(x, p) → column`` that vanishes on the submanifold; on positions and on velocities
            both. Rows must be independent, and as many as the entries that are not named.

        Returns
        -------
        ErrorCoordinates
            N solves ``[∂constraints; E] N = [0; 1]``.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> plane = Rn(2, ("x", "y"))
        >>> on_a_line = ErrorCoordinates.independent(plane, ["x"], lambda x, p: x[1] - 2 * x[0])
        >>> on_a_line.basis(ca.DM([0, 0]), ca.DM(0, 1))
        DM([1, 2])
        """
        chosen = list(names)
        for name in chosen:
            if name not in state.tangent_names:
                raise UnknownNameError(
                    unknown_name("entry of the tangent", name, state.tangent_names)
                )
        index = [state.tangent_names.index(name) for name in chosen]
        E = np.eye(state.dim)[index]

        def basis(x: Value, p: Value) -> Value:
            rows = _constraint_rows(state, constraints, x, p)
            if rows.shape[0] != state.dim - len(index):
                raise ValueError(
                    f"{rows.shape[0]} constraints leave {state.dim - rows.shape[0]} independent "
                    f"entries of {state.dim}; {len(index)} are named ({', '.join(chosen)})"
                )
            right = ca.vertcat(ca.DM(rows.shape[0], len(index)), ca.DM.eye(len(index)))
            return ca.solve(ca.densify(ca.vertcat(rows, ca.DM(E))), right)

        return cls(E, basis, chosen, [state.tangent_units[i] for i in index], constraints)

    def check(self, state: LieGroup) -> None:
        """Refuse a selection that does not fit the state."""
        if self.selection.shape[1] != state.dim or len(self.selection) > state.dim:
            raise ValueError(
                f"the selection of the error coordinates has shape {self.selection.shape}, expected"
                f" (m, {state.dim}) with m <= {state.dim} (state {state})"
            )


def _constraint_rows(state: LieGroup, constraints: Callable[..., Any], x: Value, p: Value) -> Value:
    """Derivatives of constraints for displacements of x, at x."""
    symbol: Any = ca.MX if isinstance(x, ca.MX) or isinstance(p, ca.MX) else ca.SX
    X, P = symbol.sym("x", x.shape[0]), symbol.sym("p", p.shape[0])
    phi = constraints(X, P)
    phi = ca.vertcat(*phi) if isinstance(phi, list | tuple) else phi
    slope = ca.jacobian(phi, X) @ state.rate_matrix(X)
    return ca.Function("constraint_rows", [X, P], [slope])(x, p)
