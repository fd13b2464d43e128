"""Terms of the cost: residuals, whose squares count, and costs as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Value, named_options
from ..codegen._internal import UnknownNameError, check_semidefinite, check_shape, unknown_name
from ..groups import LieGroup, check_element
from ..groups._internal import group_difference
from ..systems import SmoothReference, System, Trajectory, Waypoints
from ..systems._internal import block_slices
from ._bounds import ALONG, Where, check_nodes, nodes_at, place_text
from ._expressions import (
    KnownQuantity,
    StageFunction,
    column_of,
    entries_of,
    parameter_index,
    quantities_of,
)
from ._places import control_places, error_places
from ._weights import Weight, each_checked, square


class _CostTerm:
    """What residuals and costs share."""

    of: StageFunction | str
    weight: ArrayLike | str | None
    terminal: Any
    name: str
    function: StageFunction | None
    at: Where | range

    def __post_init__(self) -> None:
        kind = type(self).__name__
        check_nodes(self._label, self.at)
        if self.terminal is not None and self.at != "both":
            raise ValueError(
                f"{self._label}: terminal= weighs it at the end, which at={place_text(self.at)!r} "
                "leaves to weight=: give one of the two, or two terms"
            )
        if self.function is not None and not isinstance(self.of, str):
            raise ValueError(
                f"{self._label}: function= takes the values of a quantity: name it, "
                f"{kind}('input', function=…), or give one function (t, x, u, p) as of="
            )

    @property
    def _label(self) -> str:
        """What messages call it."""
        return f"{type(self).__name__.lower()} {self.name!r}"

    def weigh(self, size: int, parameters: Sequence[str], steps: np.ndarray) -> TermWeights:
        """Weights of a value of this size at its nodes."""
        label, horizon = f"weight of {self._label}", len(steps)

        def made(value: Any, count: int | None) -> Weight:
            """A weight of what is given: of so many steps or nodes, if it may change."""
            if isinstance(value, str):
                which = np.full(size, parameter_index(label, value, parameters))
                return Weight(np.eye(size), which)
            return Weight.of(self._numbers(label, value, size, count))

        if self.at in ALONG:
            own = None if self.weight is None else made(self.weight, horizon)
            last = None if self.terminal is None else made(self.terminal, None)
            return TermWeights(_unless_zero(own), None, _unless_zero(last))
        if self.weight is None:
            return TermWeights(None, None, None)
        nodes = np.array(nodes_at(self.at, horizon))
        found = made(self.weight, len(nodes))
        each = np.broadcast_to(found.matrix, (len(nodes), *found.matrix.shape[-2:]))
        of_steps, along = nodes < horizon, np.zeros((horizon, *each.shape[1:]))
        along[nodes[of_steps]] = each[of_steps] / steps[nodes[of_steps], None, None]
        if (along == along[:1]).all():
            along = along[0]
        last = each[~of_steps].sum(axis=0)  # of the end, or of none
        ends = (_unless_zero(found._replace(matrix=matrix)) for matrix in (along, last))
        return TermWeights(None, *ends)

    def _numbers(self, label: str, value: Any, size: int, count: int | None) -> np.ndarray:
        """The matrix of a weight, or one for each step."""
        raise NotImplementedError


@named_options(own="at")
@dataclass(frozen=True, eq=False)
class Residual(_CostTerm):
    """A term ``½ r(t, x, u, p)ᵀ W r(t, x, u, p)`` of the cost.

    Parameters
    ----------
    of : callable or str
        Name of a quantity of the system or of an entry of one, or ``(t, x, u, p) → column`` on
        CasADi columns, smooth. u holds all inputs of the system, p the parameters of the system and
        then those of the problem. A casadi.Function or a ModelFunction will do, so that mechanics
        can supply the pose of a frame. Make a number that changes, such as a goal, a parameter
        (``p[k]``): a number in the function is compiled with it, and another number again.
        Derivatives that the system knows in closed form, of torques as of `with_accelerations`, are
        taken from it.
    weight : float, array_like or str, optional
        W along the horizon, per s: a number, a diagonal, a matrix, or the name of a parameter that
        multiplies the identity; None for nothing. A stack of matrices, shape (N, n, n), has one for
        each step of the horizon; of numbers the shape is (N, 1, 1).
    terminal : float, array_like or str, optional
        W at the end of the horizon, where u is the reference's; nothing if left out.
    name : str
        What messages call it.
    group : LieGroup, optional
        Group of the two elements if the residual is their ``minus(…)``. Runs then show it as the
        error of a task, with the group's units.
    function : callable, optional
        ``(t, y, u, p) → column`` of the values y of a quantity that `of` names; y itself if left
        out.
    derivatives : callable, optional
        ``(t, x, u, p) → by_x, by_u`` if they are known in closed form. by_x is the derivative of
        the residual for displacements ``x exp d`` of the state, shape (rows, dim). by_u is by all
        inputs of the system, shape (rows, n_inputs). Of a frame's pose by its Jacobian they take a
        third of the operations of automatic differentiation.
    at : {"both", "path", "terminal", "start"} or range
        Nodes, as of a `Bound`. At ends and at nodes with numbers the weight counts as it is, not
        per s: ``½ rᵀ W r`` for each of them. A stack of weights then has one for each of these
        nodes. At nodes without a weight the residual need not be finite. Nodes are those of each
        plan, in a loop, too.

    Examples
    --------
    >>> height = Residual(lambda t, x, u, p: x[2] - 1.0, weight=10.0, name="height")
    >>> height.weight
    10.0
    >>> effort = Residual("input", 1e-3, function=lambda t, y, u, p: y - 2.0, name="effort")
    >>> gate = Residual(lambda t, x, u, p: x[:2] - ca.DM([1, 2]), 100.0, at=range(10, 11))
    """

    of: StageFunction | str
    weight: ArrayLike | str | None = 1.0
    terminal: ArrayLike | str | None = None
    name: str = "residual"
    group: LieGroup | None = None
    function: StageFunction | None = None
    derivatives: Callable[[Value, Value, Value, Value], tuple[Value, Value]] | None = None
    at: Where | range = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.function is not None and self.derivatives is not None:
            raise ValueError(
                f"{self._label}: function= and derivatives= do not go together; the "
                f"derivatives of {self.of!r} are those that the system knows, see Quantity"
            )

    @classmethod
    def from_goal(
        cls,
        element: StageFunction,
        goal: ArrayLike | SmoothReference | Trajectory | Callable[[Value, Value], Value],
        group: LieGroup,
        weight: ArrayLike | str = 1.0,
        terminal: ArrayLike | str | None = None,
        name: str = "error",
        derivatives: Callable[[Value, Value, Value, Value], tuple[Value, Value]] | None = None,
        at: Where | range = "both",
    ) -> Residual:
        """The error ``minus(element, goal)`` on a group: of a frame, a position, part of a state.

        Parameters
        ----------
        element : callable
            ``(t, x, u, p) → coordinates`` on the group, such as
            ``lambda t, x, u, p: tree.placement("tool")(x[:7])``; of a tree with parameters
            ``…(x[:7], p[:n])`` with the n parameters of the system, which come first in p.
        goal : array_like, SmoothReference, Trajectory or callable
            Coordinates that stay, a motion on the group, or ``(t, p) → coordinates`` on CasADi
            columns, so that a goal may be parameters. A Trajectory counts between its nodes, too.
        group : LieGroup
        weight, terminal, name, at
            See `Residual`.
        derivatives : callable, optional
            ``(t, x, u, p) → by_x, by_u`` of the element, in tangent vectors of the group: of a
            frame's pose the Jacobian ``tree.jacobian(frame)``.

        Returns
        -------
        Residual

        Examples
        --------
        >>> from lgcontrol.groups import Translation
        >>> from lgcontrol.systems import Waypoints
        >>> space = Translation("xy")
        >>> path = Waypoints(space, [0, 1], [[0, 0], [1, 2]])
        >>> follow = Residual.from_goal(lambda t, x, u, p: x[:2], path, space, weight=10.0)
        >>> follow.of(1.0, ca.DM([1.5, 2.0]), None, None)
        DM([0.5, 0])
        """
        if not callable(element) or isinstance(element, SmoothReference | Trajectory):
            raise TypeError(
                f"Residual.from_goal: the element of {name!r} must be a function (t, x, u, p) "
                f"→ coordinates, got {type(element).__name__}; "
                "give element, goal, group in this order"
            )
        if not isinstance(group, LieGroup):
            raise TypeError(
                f"Residual.from_goal: the group of {name!r} must be a LieGroup, got "
                f"{type(group).__name__}; give element, goal, group in this order"
            )
        if isinstance(goal, Trajectory):
            goal = goal if len(goal) > 1 else goal.x[0]
        if isinstance(goal, Trajectory):
            goal = Waypoints(goal.group, goal.t, goal.x, order=1)
        if isinstance(goal, SmoothReference):
            if goal.group != group:
                raise ValueError(
                    f"the goal of {name!r} moves on another group: "
                    f"{group_difference(goal.group, group)}"
                )
            motion = goal.expression
            there: Callable[[Value, Value], Value] = lambda t, p: motion(t)  # noqa: E731
        elif callable(goal):
            there = goal
        else:
            shown = ca.DM(check_element(f"goal of {name!r}", np.asarray(goal, float), group))
            there = lambda t, p: shown  # noqa: E731

        def error(t: Value, x: Value, u: Value, p: Value) -> Value:
            return group.minus(element(t, x, u, p), there(t, p))

        if derivatives is None:
            return cls(error, weight, terminal, name, group, at=at)
        own = derivatives

        def slopes(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
            by_element = group.right_jacobian_inverse(error(t, x, u, p))
            by_x, by_u = own(t, x, u, p)
            return by_element @ by_x, by_element @ by_u

        return cls(error, weight, terminal, name, group, derivatives=slopes, at=at)

    def expression(
        self, system: System, t: Value, x: Value, u: Value, p: Value,
        known: Mapping[str, Value] | None = None,
    ) -> Value:  # fmt: skip
        """Column of the residual for symbols; known ones stand for whole quantities."""
        function, given = self.of, x
        if isinstance(function, str):
            given = system.quantity_rows(entries_of(system, function), t, x, u, p, known)
            function = self.function or (lambda t, y, u, p: y)
        return column_of(self._label, function, (t, given, u, p))

    def differentiated(
        self, system: System, value: Value, t: Value, x: Value, u: Value, p: Value
    ) -> KnownQuantity:
        """A value of the residual with its derivatives in closed form, which share operations."""
        label = f"derivatives of {self._label}"
        assert self.derivatives is not None
        found = self.derivatives(t, x, u, p)
        rows, made = value.shape[0], [value]
        if not (isinstance(found, tuple | list) and len(found) == 2):
            raise TypeError(f"{label} must be two matrices (by_x, by_u), not {found!r}")
        for name, matrix, count in zip(
            ("by_x", "by_u"), found, (system.state.dim, system.n_inputs), strict=True
        ):
            try:
                entry = type(x)(matrix)
            except NotImplementedError:
                raise TypeError(
                    f"{label}: {name} must be a CasADi matrix, not {matrix!r}"
                ) from None
            if entry.shape != (rows, count):
                raise ValueError(
                    f"{label}: {name} has shape {entry.shape}, expected {(rows, count)}: of "
                    + ("tangent vectors of the state" if name == "by_x" else "all inputs")
                )
            made.append(entry)
        shared: Any = ca.cse(made) if isinstance(x, ca.SX) else made
        return KnownQuantity(type(x).sym(self.name, rows), *shared)

    def _numbers(self, label: str, value: Any, size: int, count: int | None) -> np.ndarray:
        return each_checked(check_semidefinite, label, square(label, value, size, steps=count))


@named_options(own="at")
@dataclass(frozen=True, eq=False)
class Cost(_CostTerm):
    """A term ``∫ w ℓ(t, x, u, p) dt + w_N ℓ(t, x, u, p)`` of the cost: any smooth expression.

    For what is no square of an error: energy, fuel, time, profit. State a square as a `Residual`.

    Parameters
    ----------
    of : callable or str
        ``(t, x, u, p) → number`` on CasADi columns, as for `Residual`; or the name of a quantity of
        the system, such as ``"kinetic_energy"`` of a robot.
    weight : float, array_like or str, optional
        w along the horizon, per s, or the name of a parameter; None for nothing. An array has a
        number for each step of the horizon.
    terminal : float or str, optional
        w_N at the end of the horizon; nothing if left out.
    name : str
        What messages call it.
    function : callable, optional
        ``(t, y, u, p) → number`` of the values y of a quantity that `of` names.
    at : {"both", "path", "terminal", "start"} or range
        Nodes, as of a `Residual`: at ends and at nodes with numbers w is not per s.

    Examples
    --------
    >>> power = Cost(lambda t, x, u, p: x[0] * u[0], name="power")
    >>> power.weight
    1.0
    """

    of: StageFunction | str
    weight: ArrayLike | str | None = 1.0
    terminal: float | str | None = None
    name: str = "cost"
    function: StageFunction | None = None
    at: Where | range = "both"

    def expression(
        self, system: System, t: Value, x: Value, u: Value, p: Value,
        known: Mapping[str, Value] | None = None,
    ) -> Value:  # fmt: skip
        """The number for symbols; arguments are those of `Residual.expression`."""
        assert not isinstance(self.of, str)  # `of_quantity` made it a function
        value = column_of(self._label, self.of, (t, x, u, p))
        if value.shape != (1, 1):
            raise ValueError(f"{self._label} must return one number, not {value.shape}")
        return value

    def _numbers(self, label: str, value: Any, size: int, count: int | None) -> np.ndarray:
        if np.ndim(value) == 0:
            return check_shape(label, value, ()).reshape(1, 1)
        return check_shape(label, value, (count,)).reshape(-1, 1, 1)


Term = TypeVar("Term", Residual, Cost)


def of_quantity(system: System, term: Term) -> Term:
    """A term of the cost that names a quantity of a system, as a function; others as they are."""
    of, function = term.of, term.function
    if not isinstance(of, str):
        return term
    entries = entries_of(system, of)
    if not entries:
        raise UnknownNameError(f"{term._label}: {_no_quantity(system, of)}")
    label = of if function is None and term.name == type(term).name else term.name
    if isinstance(term, Residual) and term.derivatives is None:
        return replace(term, name=label)

    def values(t: Value, x: Value, u: Value, p: Value) -> Value:
        y = system.quantity_rows(entries, t, x, u, p)
        return y if function is None else function(t, y, u, p)

    return replace(term, of=values, function=None, name=label)


class TermWeights(NamedTuple):
    """Weights of a term along the horizon per s, at single nodes, and at the end; None for none."""

    path: Weight | None
    nodes: Weight | None
    end: Weight | None


def _unless_zero(weight: Weight | None) -> Weight | None:
    return weight if weight is not None and weight.matrix.any() else None


def _no_quantity(system: System, name: str) -> str:
    """Message for a term of what is no quantity; parts of the state and inputs have weights."""
    message, state = (
        unknown_name(f"quantity of {system.name}", name, quantities_of(system)),
        system.state,
    )
    of = {entry: f"u[{i}]" for i, entry in enumerate(system.input_names)}
    of |= {entry: f"x[{i}]" for i, entry in enumerate(state.coordinate_names)}
    of |= {
        block: f"x[{part.start}:{part.stop}]"
        for block, part in block_slices(state)[0].items()
        if part.stop - part.start > 1
    }
    if name in of:
        message += f" {name!r} itself is a function, lambda t, x, u, p: {of[name]}"
        term = "R" if name in control_places(system) else "Q"
        if term == "R" or name in error_places(system):
            message += f"; its error is weighed by {term}={{{name!r}: …}}"
    return message
