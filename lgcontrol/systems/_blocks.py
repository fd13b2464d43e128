"""Blocks of a state by name, and its independent error coordinates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..groups import LieGroup, Product
from ..groups._internal import leaves

CONFIGURATION = "configuration"  # block of a mechanical state whose joints go by their own names


def blocks_of(state: LieGroup) -> dict[str, tuple[LieGroup, slice, slice]]:
    """Group, coordinates and tangent vector of each block of a state.

    A product's blocks have their own names; any other group is one block, "state". Slices are
    places in coordinates (nq), then in tangent vectors (dim).
    """
    if not isinstance(state, Product):
        return {"state": (state, slice(0, state.nq), slice(0, state.dim))}
    return {
        name: (group, state.coordinate_slice(name), state.tangent_slice(name))
        for name, group in state.blocks.items()
    }


def block_slices(group: LieGroup) -> tuple[dict[str, slice], dict[str, slice]]:
    """Places of blocks in coordinates and in tangent vectors, by name.

    Blocks in blocks have their path, ``"configuration.panda_joint1"``, and their own name where no
    other has it. If several have it, it is the one in the block "configuration": a joint's name
    alone is its angle, not that of its motor. Numbers that share what is before the dot in their
    names are found by that, too: ``"velocity.panda_joint1"``.

    Examples
    --------
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> rates = Rn(2, ("shoulder.rz", "elbow.rz"))
    >>> arm = Product(configuration=Product(shoulder=SO2, elbow=SO2), velocity=rates)
    >>> coordinates, tangents = block_slices(arm)
    >>> coordinates["elbow"], tangents["configuration.elbow"], tangents["velocity.elbow"]
    (slice(2, 4, None), slice(1, 2, None), slice(3, 4, None))
    >>> joint = Product(elbow=SO2)
    >>> block_slices(Product(motor=joint, configuration=joint))[1]["elbow"]
    slice(1, 2, None)
    """
    coordinates, tangents = _block_slices(group)
    return dict(coordinates), dict(tangents)


@lru_cache(64)
def _block_slices(group: LieGroup) -> tuple[dict[str, slice], dict[str, slice]]:
    found = list(_visit("", group, 0, 0))
    counts = Counter(path.rsplit(".")[-1] for path, _, _ in found)
    paths = {path for path, _, _ in found}
    coordinates: dict[str, slice] = {}
    tangents: dict[str, slice] = {}
    for path, q, d in found:
        own = path.rsplit(".")[-1]
        is_angle = path == f"{CONFIGURATION}.{own}"
        is_own = (counts[own] == 1 or is_angle) and own not in paths - {path}
        names = {path, own} if is_own else {path}
        for name in sorted(names, key=len, reverse=True):
            coordinates[name], tangents[name] = q, d
    for names, places in (
        (group.coordinate_names, coordinates),
        (group.tangent_names, tangents),
    ):
        for name, part in shared_names(names).items():
            places.setdefault(name, part)
    return coordinates, tangents


def circles_of(state: LieGroup) -> dict[str, tuple[LieGroup, slice]]:
    """Blocks of one angle that is kept as a circle, by all names of `block_slices`.

    Examples
    --------
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> sorted(circles_of(Product(configuration=Product(wheel=SO2, slide=Rn(1)))))
    ['configuration.wheel', 'wheel']
    """
    found = {}
    groups = {(part.start, part.stop): group for _, group, part, _ in leaves(state)}
    for name, part in block_slices(state)[0].items():
        group = groups.get((part.start, part.stop))
        if group is not None and group.dim == 1 and group.nq == 2:
            found[name] = group, part
    return found


def shared_names(names: Sequence[str]) -> dict[str, slice]:
    """Places of names that share what is before a dot, by that, where they lie side by side.

    Examples
    --------
    >>> shared_names(["speed", "rotor.0", "rotor.1"])
    {'rotor': slice(1, 3, None)}
    """
    places: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        for dot, letter in enumerate(name):
            if letter == ".":
                places.setdefault(name[:dot], []).append(k)
    return {
        stem: slice(own[0], own[-1] + 1)
        for stem, own in places.items()
        if own[-1] - own[0] == len(own) - 1
    }


def from_wide_to_narrow(what: str, places: Mapping[str, slice | Sequence[int]]) -> list[str]:
    """Names in an order in which the value of the narrowest name is set last.

    A mapping may name a block and an entry of that block. The value of the entry counts, in
    whatever order the names are written. Refused are names that stand for the same entries; `what`
    calls the mapping in the message.

    Examples
    --------
    >>> from_wide_to_narrow("lag", {"rotor.0": slice(0, 1), "rotor": slice(0, 4)})
    ['rotor', 'rotor.0']
    >>> from_wide_to_narrow("Q", {"elbow": [1], "configuration.elbow": [1]})
    Traceback (most recent call last):
    ...
    ValueError: Q: 'elbow' and 'configuration.elbow' name the same: leave one out
    """
    named: dict[tuple[int, ...], str] = {}
    for name, part in places.items():
        entries = tuple(range(part.start, part.stop) if isinstance(part, slice) else part)
        if named.setdefault(entries, name) != name:
            other = named[entries]
            raise ValueError(f"{what}: {other!r} and {name!r} name the same: leave one out")
    return [named[entries] for entries in sorted(named, key=len, reverse=True)]


def place_of(
    what: str, name: str, of_state: Collection[str], of_inputs: Collection[str]
) -> tuple[Literal["state", "input", ""], str]:
    """Whether a name is one of the state's or of the inputs', and what it is called there.

    A joint and the torque that drives it often have one name: ``"state.…"`` and ``"input.…"`` tell
    them apart. The place is empty for an unknown name; a name that is both is refused. `what` is
    what it is given for, for messages.

    Examples
    --------
    >>> place_of("where", "input.joint", ["joint"], ["joint"])
    ('input', 'joint')
    >>> place_of("where", "joint", ["joint"], ["joint"])
    Traceback (most recent call last):
    ...
    ValueError: where: 'joint' names a part of the state and an input: write 'state.joint' or \
'input.joint'
    """
    if name in of_state and name in of_inputs:
        raise ValueError(
            f"{what}: {name!r} names a part of the state and an input: write 'state.{name}' or "
            f"'input.{name}'"
        )
    if name in of_state:
        return "state", name
    if name in of_inputs:
        return "input", name
    before, _, own = name.partition(".")
    if before == "state" and own in of_state:
        return "state", own
    if before == "input" and own in of_inputs:
        return "input", own
    return "", name


def error_remedy(name: str, errors: Sequence[str], tangent: Collection[str]) -> str:
    """What to say, besides, of a name that error coordinates alone have; empty for others.

    Independent coordinates of a mechanism, such as angles of joints between bodies, are
    displacements across the state: no entry of the state has their value.

    Examples
    --------
    >>> error_remedy("mast", ["configuration.pin.rz"], ())
    ''
    >>> error_remedy("pin", ["configuration.pin.rz"], ())[:62]
    " 'pin' is an error coordinate, 'configuration.pin.rz': weights"
    """
    for entry in errors:
        stems = (entry, entry.rpartition(".")[0])
        if entry not in tangent and any(
            stem == name or stem.endswith(f".{name}") for stem in stems
        ):
            return (
                f" {name!r} is an error coordinate, {entry!r}: weights are on it, but it has no "
                "value in a state. State a joint's value by assemble(where=…) of the mechanism and "
                "trim from its state; bound coordinates of bodies, or a function (t, x, u, p)"
            )
    return ""


def _visit(path: str, group: LieGroup, q: int, d: int) -> Iterator[tuple[str, slice, slice]]:
    """Blocks at every depth with their paths, the outer ones first."""
    if not isinstance(group, Product):
        return
    for name, block in group.blocks.items():
        own = f"{path}.{name}" if path else name
        yield own, slice(q, q + block.nq), slice(d, d + block.dim)
        yield from _visit(own, block, q, d)
        q, d = q + block.nq, d + block.dim


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

        Rows of the constraints, on positions and on velocities both, must be independent, and as
        many as the entries that are not named. N solves ``[∂constraints; E] N = [0; 1]``.

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
