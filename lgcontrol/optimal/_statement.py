"""What a problem is stated in: weights by name, residuals, bounds, and all bounds as rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import (
    NO_LIMIT,
    ModelFunction,
    UnknownNameError,
    Value,
    ask_degrees,
    check_semidefinite,
    check_shape,
    check_symmetric,
    named_options,
    unknown_name,
)
from ..groups import LieGroup, check_element
from ..systems import (
    SmoothReference,
    System,
    Trajectory,
    Waypoints,
    block_slices,
    call_with_symbols,
    narrower_later,
    place_of,
    shared_names,
)

WeightLike: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""A number, a diagonal, a matrix, or a mapping from blocks and coordinates to any of these."""

StageFunction: TypeAlias = Callable[[Value, Value, Value, Value], Value]
"""Smooth function ``(t, x, u, p) → column`` of CasADi columns; u are all inputs of the system."""


def state_weight(name: str, weight: WeightLike, group: LieGroup) -> np.ndarray:
    """Weight on tangent vectors of a group.

    Parameters
    ----------
    name : str
        What messages call it, for example ``"Q"``.
    weight : float, array_like or mapping
        A number (times the identity), a diagonal (dim,), a matrix (dim, dim), or a mapping from
        blocks (joints, too) or tangent coordinates to any of these; what is not named weighs
        nothing.
    group : LieGroup

    Returns
    -------
    ndarray, shape (dim, dim)
        Symmetric, positive semidefinite.

    Raises
    ------
    ValueError
        If a name is unknown, a shape does not fit or the matrix is indefinite.

    Examples
    --------
    >>> from lgcontrol.groups import SE2, Product, Rn
    >>> craft = Product(pose=SE2, twist=Rn(3))
    >>> np.diag(state_weight("Q", {"pose": [1, 1, 5], "twist": 0.1}, craft))
    array([1. , 1. , 5. , 0.1, 0.1, 0.1])
    """
    return _assemble(name, weight, state_names(group), group.dim, strict=False)


def error_weight(name: str, weight: WeightLike, system: System) -> np.ndarray:
    """Weight on the error coordinates of a system.

    Parameters
    ----------
    name : str
    weight : float, array_like or mapping
        As in `state_weight`; with the system's own names of error coordinates where constraints
        leave fewer of them than its group has.
    system : System

    Returns
    -------
    ndarray, shape (n_errors, n_errors)
    """
    return _assemble(name, weight, error_places(system), system.n_errors, strict=False)


def input_weight(name: str, weight: WeightLike, system: System) -> np.ndarray:
    """Weight on the controls of a system.

    Parameters
    ----------
    name : str
    weight : float, array_like or mapping
        As in `state_weight`, with the names of controls, or what comes before the dot in them:
        ``{"rotor": 0.1}`` for rotor.0 to rotor.3.
    system : System

    Returns
    -------
    ndarray, shape (m, m)
        Symmetric, positive definite.

    Raises
    ------
    ValueError
        If a name is unknown, a shape does not fit or the matrix is not positive definite.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> input_weight("R", 0.5, wheel)
    array([[0.5]])
    """
    names = control_places(system)
    return _assemble(name, weight, names, len(system.input_index("control")), strict=True)


def error_places(system: System) -> dict[str, slice]:
    """Where blocks and coordinates are in the error coordinates of a system."""
    if system.errors is None:
        return state_names(system.state)
    places = {key: i for i, key in enumerate(system.error_names)}
    names = shared_names(system.error_names)
    for block, part in block_slices(system.state)[1].items():  # joints by their own names
        if part.stop - part.start == 1 and (only := system.state.tangent_names[part][0]) in places:
            names[block] = slice(places[only], places[only] + 1)
    return names | {key: slice(i, i + 1) for key, i in places.items()}


def control_places(system: System) -> dict[str, slice]:
    """Where controls, and what comes before the dot in several names, are among the controls."""
    controls = system.input_index("control")
    names = {system.input_names[i]: slice(k, k + 1) for k, i in enumerate(controls)}
    return shared_names([*names]) | names


def free_errors(system: System, start: Any) -> np.ndarray:
    """Error coordinates of the first state that are free.

    Parameters
    ----------
    system : System
    start : "given", "free" or mapping
        A mapping from blocks and tangent coordinates to "free".

    Returns
    -------
    ndarray of int, shape (k,)

    Raises
    ------
    ValueError
        If a name is unknown, or moves along the free coordinates do not stay among them: those of
        a part of a group have to be a subgroup's.

    Examples
    --------
    >>> from lgcontrol.groups import SE2, Product, Rn
    >>> from lgcontrol.systems import System
    >>> car = System("car", Product(pose=SE2, T=Rn(1)), lambda t, x, u, p: 0 * x[1:], inputs=["u"])
    >>> free_errors(car, {"T": "free", "pose.rz": "free"})
    array([2, 3])
    """
    if isinstance(start, str):
        if start not in ("given", "free"):
            raise UnknownNameError(unknown_name("start", start, ("given", "free")))
        return np.arange(system.n_errors if start == "free" else 0)
    if not isinstance(start, Mapping):
        raise TypeError(
            "start must be 'given', 'free' or a mapping such as {'duration': 'free'}, not "
            f"{start!r}; where a plan starts is given to solve()"
        )
    names = error_places(system)
    free: set[int] = set()
    for key, value in start.items():
        if key not in names:
            raise UnknownNameError(unknown_name("part of the start", key, names))
        if value not in ("given", "free"):
            raise ValueError(f"start[{key!r}] must be 'free' or 'given', not {value!r}")
        if value == "free":
            free |= set(range(names[key].start, names[key].stop))
    chosen = np.array(sorted(free), dtype=np.int64)
    basis = np.eye(system.state.dim)[chosen if system.errors is None else []]
    left = sum(np.abs(system.state.ad(a) @ basis.T).sum(axis=1) for a in basis)
    beyond = np.flatnonzero(left * ~basis.any(axis=0)) if len(basis) else []
    if len(beyond):
        missing = system.state.tangent_names[int(beyond[0])]
        raise ValueError(
            f"start: moves along {', '.join(start)} together also change {missing}: let it be "
            "free, too, or fix it by a Bound(…, at='start')"
        )
    return chosen


def state_names(group: LieGroup) -> dict[str, slice]:
    """Where blocks, blocks in blocks and tangent coordinates are in a tangent vector."""
    names = {key: slice(i, i + 1) for i, key in enumerate(group.tangent_names)}
    return block_slices(group)[1] | names


def _assemble(
    name: str, weight: WeightLike, names: Mapping[str, slice], size: int, *, strict: bool
) -> np.ndarray:
    if isinstance(weight, Mapping):
        matrix = np.zeros((size, size))
        for key in weight:
            if key not in names:
                raise UnknownNameError(unknown_name(f"entry of {name}", key, names))
        for key in narrower_later(name, {key: names[key] for key in weight}):
            part, label = names[key], f"{name}[{key!r}]"
            own = square(label, weight[key], part.stop - part.start)
            matrix[part, part] = check_semidefinite(label, own)
        missing = [
            key
            for key, part in names.items()
            if part.stop - part.start == 1 and not matrix[part, part].any()
        ]
        if strict and missing:
            raise ValueError(f"{name} gives no weight to {', '.join(missing)}: weigh every control")
    elif isinstance(weight, str):
        raise TypeError(
            f"{name} must be a number, a diagonal, a matrix, or a mapping from names to these, as "
            f"in {{{next(iter(names))!r}: 1.0}}; got {weight!r}"
        )
    else:
        matrix = square(name, weight, size, names)
    return (check_definite if strict else check_semidefinite)(name, matrix)


def square(
    name: str, value: Any, size: int, names: Mapping[str, slice] | None = None
) -> np.ndarray:
    """Matrix of a number, a diagonal or a matrix; names of its rows for messages."""
    array = check_shape(name, value, [None] * np.ndim(value))
    if array.ndim == 0:
        return array * np.eye(size)
    if array.shape not in ((size,), (size, size)):
        rows = [key for key, part in (names or {}).items() if part.stop - part.start == 1]
        raise ValueError(
            f"{name} has shape {array.shape}, expected a number, ({size},) or ({size}, {size})"
            + (f": the rows are {', '.join(rows)}" if len(rows) == size else "")
        )
    return np.diag(array) if array.ndim == 1 else array


def check_definite(name: str, matrix: np.ndarray) -> np.ndarray:
    """Refuse weights of controls that leave a combination of them free."""
    matrix = check_symmetric(name, matrix)
    smallest = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    if not smallest > 0:
        raise ValueError(
            f"{name} must be positive definite, every control must cost something; its smallest "
            f"eigenvalue is {smallest:.3g}"
        )
    return matrix


class Weight(NamedTuple):
    """A weight whose diagonal may hold parameters.

    Attributes
    ----------
    matrix : ndarray, shape (size, size)
        Numbers; where a parameter stands, what multiplies it.
    parameter : ndarray of int, shape (size,)
        Which of p stands on the diagonal, −1 for none.
    """

    matrix: np.ndarray
    parameter: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray) -> Weight:
        """Numbers alone."""
        return cls(matrix, np.full(len(matrix), -1))

    def at(self, p: np.ndarray) -> np.ndarray:
        """The matrix for values of the parameters."""
        matrix = self.matrix.copy()
        np.fill_diagonal(matrix, np.diag(matrix) * np.append(p, 1.0)[self.parameter])
        return matrix

    def split(self) -> tuple[np.ndarray, Weight]:
        """The matrix without what parameters stand for, and that."""
        varies = np.diag(np.where(self.parameter < 0, 0.0, np.diag(self.matrix)))
        return self.matrix - varies, Weight(varies, self.parameter)


def single_numbers(matrix: np.ndarray, places: Mapping[str, slice]) -> dict[str, slice]:
    """Places at which a weight is one number times the identity, and coupled to no other."""
    found = {}
    for name, part in places.items():
        alone = np.zeros_like(matrix)
        alone[part, part] = matrix[part, part][0, 0] * np.eye(part.stop - part.start)
        if np.array_equal(alone[part], matrix[part]):
            found[name] = part
    return found


def parameter_index(label: str, name: str, parameters: Sequence[str]) -> int:
    """Which parameter a name in a statement means."""
    if name not in parameters:
        raise UnknownNameError(f"{label}: {unknown_name('parameter', name, parameters)}")
    return parameters.index(name)


def column_of(label: str, function: Any, symbol: type, values: tuple[Any, ...]) -> Any:
    """What a function of (t, x, u, p) returns for symbols; what is wrong with it says its label."""
    try:
        value = call_with_symbols(label, function, values, ("t", "x", "u", "p"))
    except Exception as error:  # the user's function: any error, with what it was called with
        if str(error).startswith(label):
            raise
        sizes = ", ".join(
            f"{name} of length {value.shape[0]}"
            for name, value in zip(("x", "u", "p"), values[1:], strict=True)
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{label}, called with CasADi columns t, {sizes}: {error}") from error
    try:
        return symbol(value)
    except NotImplementedError:
        raise TypeError(f"{label} must return a CasADi column ({symbol.__name__})") from None


@named_options
@dataclass(frozen=True, eq=False)
class Residual:
    """A term ``½ r(t, x, u, p)ᵀ W r(t, x, u, p)`` of the cost.

    Parameters
    ----------
    function : callable or str
        Name of a quantity of the system, or ``(t, x, u, p) → column`` on CasADi columns, smooth; u
        holds all inputs of the system, p the parameters of the system and then those of the
        problem. A casadi.Function or a ModelFunction will do, so that mechanics can supply the pose
        of a frame. A number that changes, such as a goal, is to be a parameter (``p[k]``): one that
        stands in the function is compiled with it, and another number again.
    weight : float, array_like or str, optional
        W along the horizon, per s: a number, a diagonal, a matrix, or the name of a parameter that
        multiplies the identity; None for nothing.
    terminal : float, array_like or str, optional
        W at the end of the horizon, where u is the reference's; nothing if left out.
    name : str
        What messages call it.
    group : LieGroup, optional
        Where the residual is ``minus(…)`` of two elements of a group, that group: runs then show
        it as the error of a task, with the group's units.
    of : str, optional
        A quantity of the system, or an entry of one: the function is ``(t, y, u, p) → column`` of
        its values y instead of the state's. Derivatives that the system knows in closed form, of
        torques as of `with_accelerations`, are taken from it.
    derivatives : callable, optional
        ``(t, x, u, p) → by_x, by_u`` where they are known in closed form: that of the residual for
        displacements ``x exp d`` of the state, shape (rows, dim), and by all inputs of the system,
        shape (rows, n_inputs). Of a frame's pose by its Jacobian they take a third of the
        operations of automatic differentiation.

    Examples
    --------
    >>> height = Residual(lambda t, x, u, p: x[2] - 1.0, weight=10.0, name="height")
    >>> height.weight
    10.0
    >>> effort = Residual(lambda t, y, u, p: y - 2.0, weight=1e-3, of="input", name="effort")
    """

    function: StageFunction | str
    weight: ArrayLike | str | None = 1.0
    terminal: ArrayLike | str | None = None
    name: str = "residual"
    group: LieGroup | None = None
    of: str | None = None
    derivatives: Callable[[Value, Value, Value, Value], tuple[Value, Value]] | None = None

    def __post_init__(self) -> None:
        if self.of is not None and self.derivatives is not None:
            raise ValueError(
                f"residual {self.name!r}: of= and derivatives= do not go together; the derivatives "
                f"of {self.of!r} are those that the system knows, see Quantity"
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
    ) -> Residual:
        """The error ``minus(element, goal)`` on a group: of a frame, a position, part of a state.

        Parameters
        ----------
        element : callable
            ``(t, x, u, p) → coordinates`` on the group, such as
            ``lambda t, x, u, p: tree.placement("tool").function(x[:7])``.
        goal : array_like, SmoothReference, Trajectory or callable
            Coordinates that stay, a motion on the group, or ``(t, p) → coordinates`` on CasADi
            columns, so that a goal may be parameters. A Trajectory counts between its nodes, too.
        group : LieGroup
        weight, terminal, name
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
        >>> follow.function(1.0, ca.DM([1.5, 2.0]), None, None)
        DM([0.5, 0])
        """
        if isinstance(goal, Trajectory):
            goal = goal if len(goal) > 1 else goal.x[0]
        if isinstance(goal, Trajectory):
            goal = Waypoints(goal.group, goal.t, goal.x, order=1)
        if isinstance(goal, SmoothReference):
            if goal.group != group:
                raise ValueError(f"the goal of {name!r} moves on {goal.group}, expected {group}")
            motion = goal

            def there(t: Value, p: Value) -> Value:
                del p
                return motion.expression(t)

        elif callable(goal):
            given = goal

            def there(t: Value, p: Value) -> Value:
                return given(t, p)

        else:
            shown = check_element(f"goal of {name!r}", np.asarray(goal, float), group)

            def there(t: Value, p: Value) -> Value:
                del t, p
                return ca.DM(shown)

        def error(t: Value, x: Value, u: Value, p: Value) -> Value:
            return group.minus(element(t, x, u, p), there(t, p))

        if derivatives is None:
            return cls(error, weight, terminal, name, group)
        own = derivatives

        def slopes(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
            by_element = group.right_jacobian_inverse(error(t, x, u, p))
            by_x, by_u = own(t, x, u, p)
            return by_element @ by_x, by_element @ by_u

        return cls(error, weight, terminal, name, group, derivatives=slopes)

    def expression(
        self,
        system: System,
        t: Value,
        x: Value,
        u: Value,
        p: Value,
        known: Mapping[str, Value] | None = None,
    ) -> Value:
        """Column of the residual for symbols; known ones stand for whole quantities."""
        function = (
            self.function.function if isinstance(self.function, ModelFunction) else self.function
        )
        given = x
        if self.of is not None:
            entries = entries_of(system, self.of)
            given = system.quantity_rows(entries, t, x, u, p, known)
        return column_of(f"residual {self.name!r}", function, type(x), (t, given, u, p))

    def differentiated(
        self, system: System, value: Value, t: Value, x: Value, u: Value, p: Value
    ) -> KnownQuantity:
        """A value of the residual with its derivatives in closed form, which share operations."""
        label = f"derivatives of residual {self.name!r}"
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

    def weigh(self, size: int, parameters: Sequence[str], *, at_end: bool) -> Weight | None:
        """W for a residual of the given length; None where it does not count."""
        value = self.terminal if at_end else self.weight
        if value is None:
            return None
        label = f"weight of residual {self.name!r}"
        if isinstance(value, str):
            return Weight(np.eye(size), np.full(size, parameter_index(label, value, parameters)))
        matrix = check_semidefinite(label, square(label, value, size))
        return Weight.of(matrix) if matrix.any() else None


@named_options
@dataclass(frozen=True, eq=False)
class Cost:
    """A term ``∫ w ℓ(t, x, u, p) dt + w_N ℓ(t, x, u, p)`` of the cost: any smooth expression.

    What has a price itself and is no square of an error: energy, fuel, time, profit. Solvers with
    second derivatives ("interior_point", "ipopt", "fatrop") are made for it, "sqp" takes only its
    slope. Squares are better stated as a `Residual`.

    Parameters
    ----------
    function : callable or str
        ``(t, x, u, p) → number`` on CasADi columns, as for `Residual`; or the name of a quantity of
        the system, such as ``"kinetic_energy"`` of a robot.
    weight : float or str, optional
        w along the horizon, per s, or the name of a parameter; None for nothing.
    terminal : float or str, optional
        w_N at the end of the horizon; nothing if left out.
    name : str
        What messages call it.

    Examples
    --------
    >>> power = Cost(lambda t, x, u, p: x[0] * u[0], name="power")
    >>> power.weight
    1.0
    """

    function: StageFunction | str
    weight: float | str | None = 1.0
    terminal: float | str | None = None
    name: str = "cost"

    def expression(self, system_symbol: type, t: Value, x: Value, u: Value, p: Value) -> Value:
        """The expression for symbols."""
        function = (
            self.function.function if isinstance(self.function, ModelFunction) else self.function
        )
        value = column_of(f"cost {self.name!r}", function, system_symbol, (t, x, u, p))
        if value.shape != (1, 1):
            raise ValueError(f"cost {self.name!r} must return one number, not {value.shape}")
        return value

    def factor(self, p: Value, parameters: Sequence[str], *, at_end: bool) -> Value:
        """w, a number or that of a parameter; None where it does not count."""
        value = self.terminal if at_end else self.weight
        if isinstance(value, str):
            return p[parameter_index(f"weight of cost {self.name!r}", value, parameters)]
        if value is not None and not np.isfinite(value):
            raise ValueError(f"the weight of cost {self.name!r} must be finite, got {value}")
        return value


Term = TypeVar("Term", Residual, Cost)
Statement = TypeVar("Statement", Residual, Cost, "Bound")


def of_quantity(system: System, term: Term) -> Term:
    """A term of the cost that names a quantity of a system, as a function; others as they are.

    Parameters
    ----------
    system : System
    term : Residual or Cost

    Returns
    -------
    Residual or Cost
    """
    name, of = term.function, getattr(term, "of", None)
    for given in (name, of):
        if isinstance(given, str) and not entries_of(system, given):
            label = f"{type(term).__name__.lower()} {term.name!r}"
            raise UnknownNameError(f"{label}: {_no_quantity(system, given)}")
    if not isinstance(name, str):
        return term
    entries = entries_of(system, name)

    def rows(t: Value, x: Value, u: Value, p: Value) -> Value:
        return system.quantity_rows(entries, t, x, u, p)

    label = name if term.name == type(term).name else term.name
    if isinstance(term, Residual) and term.of is None and term.derivatives is None:
        return replace(term, function=lambda t, y, u, p: y, name=label, of=name)
    return replace(term, function=rows, name=label)


def traced_terms(
    system: System,
    terms: Sequence[Statement],
    parameters: int,
    symbol: Any = None,
) -> tuple[Statement, ...]:
    """Terms of a problem with CasADi functions in place of Python's, which do not all pickle.

    Parameters
    ----------
    system : System
    terms : sequence of Residual, Cost or Bound
    parameters : int
        Length of p.
    symbol : type, optional
        casadi.SX or casadi.MX; that of the system if left out.
    """
    symbol = symbol or system.symbol
    sizes = {"t": 1, "x": system.state.nq, "u": system.n_inputs, "p": parameters}
    point = [symbol.sym(name, size) for name, size in sizes.items()]
    return tuple(_traced(system, term, point) for term in terms)


def _traced(system: System, term: Statement, point: list[Any]) -> Statement:
    """A term with functions of symbols t, x, u, p."""
    if isinstance(term, Bound):
        if isinstance(term.of, str | ca.Function | ModelFunction):
            return term
        t, x, u, p = point
        column, names = _expression(system, term, t, x, u, p, x)
        function = ca.Function("bound", point, [column])
        return replace(term, of=NamedRows(function, names), name=term.label)
    term, changes = of_quantity(system, term), {}
    if not isinstance(term.function, ca.Function | ModelFunction):
        kind, given = type(term).__name__.lower(), list(point)
        if isinstance(term, Residual) and term.of is not None:
            rows = system.quantity_rows(entries_of(system, term.of), *point)
            given[1] = type(point[1]).sym("y", rows.shape[0])
        column = column_of(f"{kind} {term.name!r}", term.function, type(point[1]), tuple(given))
        changes["function"] = ca.Function(kind, given, [column])
    if isinstance(term, Residual) and callable(term.derivatives):
        slopes = term.derivatives(*point)
        changes["derivatives"] = ca.Function("derivatives", point, [*slopes])
    return replace(term, **changes)


def _no_quantity(system: System, name: str) -> str:
    """Message for a term of what is no quantity; parts of the state and inputs have weights."""
    message, state = (
        unknown_name(f"quantity of {system.name}", name, _quantities(system)),
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


Where = Literal["path", "terminal", "both", "start"]
# Places of bounds that hold along the horizon, not at an end of it alone.
ALONG = ("path", "both")
# What a bound calls all limits that a system knows.
LIMITS = "limits"
# Share by which limits may cross and still mean the same number.
ROUNDING = 1e-9
# Operations up to which two rows are compared before they count as others.
SAME_DEPTH = 5


@named_options
@dataclass(frozen=True, eq=False)
class Bound:
    """``lower ≤ g ≤ upper`` along the horizon.

    Parameters
    ----------
    of : str or callable
        What is bounded: a block of the state at any depth (its coordinates; by numbers of
        SO2, the angle in (−π, π]; ``"joint1"`` or ``"configuration.joint1"``,
        ``"velocity.joint1"``), one coordinate (``"pose.z"``), one tangent coordinate of a block
        that is more than one number (``"pose.rx"``: that component of minus(x, x_ref)), an input, a
        quantity of the system or an entry of one (``"deflection"``, ``"deflection.elbow"``; its
        known limits where none are given), ``"limits"`` for all whose limits the system knows, or a
        smooth function ``(t, x, u, p) → column``. A name that is both a part of the state and an
        input, as a driven joint's, is written ``"state.joint1"`` for the angle,
        ``"input.joint1"`` for the torque.
    lower, upper : float, array_like or str
        Limits; a name is that of a parameter, whose value may change from call to call. One that is
        left out is infinite; where both are, they are those that the system knows
        (`System.limits`), of joints and their rates for example. Inputs keep theirs in any case.
    soft : float or str, optional
        Weight w of the penalty ``w (s + s²/2)``, per s, on the excess s over the limits, or the
        name of a parameter. Without it the bound is hard: kept wherever the dynamics allow.
    at : {"both", "path", "terminal", "start"} or range
        Where it holds: along the horizon, at an end of it, or at nodes by their numbers, as in
        ``range(10, 11)`` for a gate that is passed at the tenth. Of the first state only what
        depends on its free part (see ``start`` of `OptimalControlProblem`) is bounded; what depends
        on inputs has no end value.
    name : str, optional
        What messages call it.

    Examples
    --------
    >>> Bound("twist", lower=-2.0, upper=2.0, soft=100.0).label
    'twist'
    """

    of: str | StageFunction
    lower: ArrayLike | str = -np.inf
    upper: ArrayLike | str = np.inf
    soft: float | str | None = None
    at: Where | range = "both"
    name: str | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.of, str) or callable(self.of)):
            raise TypeError(
                "a Bound is of a name or a function (t, x, u, p) → column, as in "
                f"Bound('speed', -1.0, 1.0); got {self.of!r}"
            )
        low, high = self._limit("lower", -np.inf), self._limit("upper", np.inf)
        for side, limit in (("lower", low), ("upper", high)):
            if np.isnan(limit).any():
                raise ValueError(
                    f"bound {self.label!r}: {side} is not a number, got {getattr(self, side)}: "
                    "leave it out where there is no limit"
                )
        if low.shape == high.shape or not (low.shape and high.shape):  # else sizes are told later
            if not (low <= high).all():
                raise ValueError(
                    f"bound {self.label!r}: lower must not exceed upper, got {self.lower} and "
                    f"{self.upper}"
                )
        if not isinstance(self.at, range) and self.at not in get_args(Where):
            raise UnknownNameError(unknown_name("place of a bound", self.at, get_args(Where)))
        price = self.soft
        if not (price is None or isinstance(price, str) or (np.isfinite(price) and price > 0)):
            raise ValueError(
                f"bound {self.label!r}: soft must be a positive weight, not {self.soft}"
            )

    def _limit(self, side: Literal["lower", "upper"], unknown: float) -> np.ndarray:
        """A limit as numbers, or what stands for one that is a parameter."""
        value = getattr(self, side)
        try:
            return np.asarray(unknown if isinstance(value, str) else value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"bound {self.label!r}: {side} must be a number, a list of numbers or the name of "
                f"a parameter, not {value!r}"
            ) from None

    @property
    def label(self) -> str:
        """Name for messages."""
        if self.name is not None:
            return self.name
        return self.of if isinstance(self.of, str) else getattr(self.of, "__name__", "bound")


class NamedRows(NamedTuple):
    """A function that a bound is of, with what messages call its rows.

    Attributes
    ----------
    function : callable
        ``(t, x, u, p) → column``.
    names : tuple of str
    """

    function: StageFunction
    names: tuple[str, ...]

    def __call__(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Return what the function does."""
        return self.function(t, x, u, p)


@dataclass(frozen=True, eq=False)
class BoundRows:
    """All bounds of a problem as rows of one column g(t, x, u, p, x_ref).

    Attributes
    ----------
    names : tuple of str
    kinds : tuple of str
        What tells rows of one name apart, "terminal upper"; empty for what has only one.
    lower, upper : ndarray, shape (rows,)
    soft : ndarray, shape (rows,)
        Penalty weights, infinite for hard bounds; 1 where they are parameters.
    parameter : ndarray of int, shape (rows,)
        Which of p is the penalty weight, −1 for none.
    active : ndarray of bool, shape (N + 1, rows)
        Where each row holds.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    soft: np.ndarray
    parameter: np.ndarray
    active: np.ndarray

    def weights(self, p: np.ndarray) -> np.ndarray:
        """Penalty weights for values of the parameters."""
        return self.soft * np.append(p, 1.0)[self.parameter]

    def excess(self, values: np.ndarray) -> np.ndarray:
        """How far values (N + 1, rows) are outside of the limits; zero where a row is idle.

        What is not a number is infinitely far outside: no bound is dropped for want of a value.
        """
        over = np.maximum(np.maximum(values - self.upper, self.lower - values), 0.0)
        return np.where(self.active, np.where(np.isnan(over), np.inf, over), 0.0)


class KnownQuantity(NamedTuple):
    """A quantity of a system whose derivatives are known, and a symbol that stands for it.

    Attributes
    ----------
    symbol : casadi.SX or casadi.MX
    value : casadi.SX or casadi.MX
        What it stands for.
    by_x, by_u : casadi.SX or casadi.MX
        Derivatives of the value by the tangent of the state and by all inputs.
    """

    symbol: Any
    value: Any
    by_x: Any
    by_u: Any


def spelled_out(expressions: Sequence[Any], known: Mapping[str, KnownQuantity]) -> list[Any]:
    """Expressions without symbols that stand for quantities."""
    if not known:
        return [*expressions]
    symbols = [quantity.symbol for quantity in known.values()]
    meant: Any = [each.value for each in known.values()]
    return [*ca.substitute([*expressions], symbols, meant)]


def _place(at: str | range) -> str:
    """Where a bound holds, for messages: "terminal", "node 5", "nodes 5 to 9"."""
    if isinstance(at, str) or not at:
        return str(at)
    nodes = f"node {at[0]}" if len(at) == 1 else f"nodes {min(at)} to {max(at)}"
    return nodes + (f" in steps of {abs(at.step)}" if len(at) > 1 and abs(at.step) > 1 else "")


def build_rows(
    system: System,
    bounds: Sequence[Bound],
    horizon: int,
    symbols: Sequence[Any],
    parameters: Sequence[str],
    free: np.ndarray,
    known: Mapping[str, KnownQuantity] | None = None,
) -> tuple[Any, BoundRows]:
    """Column g for symbols (t, x, u, p, x_ref), and what the rows mean.

    A limit that is a parameter is a row of its own: what the quantity exceeds it by, at most zero.
    Error coordinates of the first state that are free are given by their numbers. Symbols of
    known quantities stand for them.
    """
    known = known or {}
    stand_ins = {key: quantity.symbol for key, quantity in known.items()}
    columns, names, kinds, lower, upper, soft, active = [], [], [], [], [], [], []
    priced: list[int] = []
    x, u, p = symbols[1:4]
    moves = system.state.rate_matrix(x) @ system.error_basis(x, p[: system.n_parameters])
    moves = moves[:, free.tolist()]
    for bound in bounds:
        column, labels = _expression(system, bound, *symbols, known=stand_ins)
        size = column.shape[0]
        low = _limit(f"lower of bound {bound.label!r}", bound._limit("lower", -np.inf), size)
        high = _limit(f"upper of bound {bound.label!r}", bound._limit("upper", np.inf), size)
        if not (low <= high).all():
            k = int(np.flatnonzero(~(low <= high))[0])
            raise ValueError(
                f"bound {labels[k]!r}: lower must not exceed upper, got {low[k]:g} and {high[k]:g}"
            )
        price, own_price = bound.soft, -1
        if isinstance(price, str):
            own_price = parameter_index(f"soft of bound {bound.label!r}", price, parameters)
            price = 1.0
        whole = column if not known else spelled_out([column], known)[0]
        needs_input = ca.which_depends(whole, u, 1, True) if size else []
        by_free = ca.jacobian(whole, x) @ moves
        starts = set(by_free.sparsity().row()) if len(free) else set()
        for row in range(size):
            where = np.zeros(horizon + 1, dtype=bool)
            where[1:-1] = bound.at in ALONG
            where[0] = bound.at in (*ALONG, "start")
            where[-1] = bound.at in ("both", "terminal")
            if isinstance(bound.at, range):
                if bound.at and not (bound.at[0] >= 0 and bound.at[-1] <= horizon):
                    raise ValueError(
                        f"bound {labels[row]!r} at {bound.at}: nodes are 0 to {horizon}"
                    )
                where[list(bound.at)] = True
            where[0] &= needs_input[row] or row in starts
            where[-1] &= not needs_input[row]
            if bound.at == "start" and not where[0]:
                raise ValueError(
                    f"bound {labels[row]!r} at the start: nothing that it depends on is free "
                    "there; see start= of OptimalControlProblem"
                )
            side = "upper" if np.isinf(low[row]) else "lower" if np.isinf(high[row]) else ""
            limited = [(column[row], low[row], high[row], side)]
            for sign, side in ((-1.0, "lower"), (1.0, "upper")):
                limit = getattr(bound, side)
                if isinstance(limit, str):
                    k = parameter_index(f"{side} of bound {bound.label!r}", limit, parameters)
                    beyond = sign * (column[row] - p[k])
                    limited.append((beyond, -np.inf, 0.0, side))
            for value, least, most, side in limited:
                if np.isinf(least) and np.isinf(most):
                    continue
                columns.append(value)
                names.append(labels[row])
                place = "" if bound.at == "both" else _place(bound.at)
                kinds.append(" ".join(filter(None, [place, side])))
                lower.append(least)
                upper.append(most)
                soft.append(np.inf if price is None else price)
                priced.append(own_price)
                active.append(where.copy())
    _leave_fixed(columns, lower, upper, soft, active)
    rows = BoundRows(
        tuple(names),
        tuple(
            kind if names.count(name) > 1 else "" for name, kind in zip(names, kinds, strict=True)
        ),
        np.array(lower),
        np.array(upper),
        np.array(soft),
        np.array(priced, dtype=np.int64),
        np.array(active, dtype=bool).reshape(-1, horizon + 1).T,
    )
    return type(u)(ca.vertcat(*columns)).reshape((len(columns), 1)), rows


def _leave_fixed(
    columns: Sequence[Any],
    lower: Sequence[float],
    upper: Sequence[float],
    soft: Sequence[float],
    active: list[np.ndarray],
) -> None:
    """No limits where a hard equality fixes the same expression within them, such as an end.

    At a limit both together would leave nothing inside, where solvers search, and no multipliers.
    """
    for i, value in enumerate(columns):
        if not (lower[i] == upper[i] and np.isinf(soft[i]) and active[i].any()):
            continue
        for k, other in enumerate(columns):
            slack = ROUNDING * max(1.0, abs(lower[i]))
            is_within = lower[k] - slack <= lower[i] <= upper[k] + slack
            if k != i and is_within and ca.is_equal(value, other, SAME_DEPTH):
                active[k] &= ~active[i]


def bounded_along(
    system: System,
    bounds: Sequence[Bound],
    parameters: Sequence[str],
    points: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray | None],
) -> dict[str, tuple[np.ndarray, float, float]]:
    """Bounded quantities along a motion by name, with their lower and upper limits.

    Those of an end of a plan alone are left out, and without a reference those that ask for it.

    Parameters
    ----------
    system : System
    bounds : sequence of Bound
    parameters : sequence of str
        Names of p.
    points : tuple of ndarray
        Times (k,), states (k, nq), inputs (k, n_inputs), parameters (n,) and, unless it is None,
        the states of the reference (k, nq).
    """
    t, x, u, p, x_ref = points
    count = len(t)
    columns = [
        t[None],
        x.T,
        u.T,
        np.tile(p[:, None], (1, count)),
        (x if x_ref is None else x_ref).T,
    ]
    sym = system.symbol.sym
    symbols = [sym(name, len(rows)) for name, rows in zip("txupr", columns, strict=True)]
    found: dict[str, tuple[np.ndarray, float, float]] = {}
    for bound in bounds:
        column, labels = _expression(system, bound, *symbols)
        unknown = x_ref is None and ca.depends_on(column, symbols[-1])
        if bound.at not in ALONG or unknown:
            continue
        values = ca.Function("bounded", symbols, [column])(*columns).full()
        sides = []
        for side in ("lower", "upper"):
            limit = getattr(bound, side)
            number = p[parameters.index(limit)] if isinstance(limit, str) else limit
            sides.append(np.broadcast_to(np.asarray(number, dtype=np.float64), len(values)))
        for label, row, low, high in zip(labels, values, *sides, strict=True):
            _, least, most = found.get(label, (row, -np.inf, np.inf))
            found[label] = (row, max(least, float(low)), min(most, float(high)))
    return found


def entries_of(system: System, name: str) -> tuple[str, ...]:
    """Entries of a system's quantities that a name stands for; none where it is no quantity.

    Parameters
    ----------
    system : System
    name : str
        Of a quantity, or of one of its entries.
    """
    if name in system.quantity_names:
        return (name,)
    if name not in system.quantities:
        return ()
    return system.named_quantities()[name].names(name, system.quantities[name].result_shapes[0][0])


def with_known_limits(system: System, bound: Bound) -> Bound:
    """A bound by name that gives no limits, with those that the system knows.

    Parameters
    ----------
    system : System
    bound : Bound
    """
    if not isinstance(bound.of, str):
        return bound
    kind, name = _bounded_place(system, bound)
    limits = (bound.lower, bound.upper)
    gives_none = not any(isinstance(x, str) or np.isfinite(x).any() for x in limits)
    if kind == LIMITS and not gives_none:
        raise ValueError(
            f"bound {bound.label!r}: 'limits' are those that {system.name} knows: leave lower and "
            "upper out, or bound a part of the state"
        )
    entries = _entries(system, kind, name)
    if kind == "input" or not gives_none or any(np.isnan(x).any() for x in limits):
        return bound
    known = [system.limits.get(entry) for entry in entries]
    missing = [entry for entry, pair in zip(entries, known, strict=True) if pair is None]
    # A part of the state may have coordinates without limits, an entry of a quantity is meant.
    if len(missing) == len(entries) or (missing and kind == "quantity"):
        told = f"of {', '.join(missing)}: give lower= and upper=" if missing else "at all"
        raise ValueError(f"bound {bound.label!r}: {system.name} knows no limits {told}")
    pairs = [(-np.inf, np.inf) if pair is None else pair for pair in known]
    lower, upper = np.array(pairs).T
    return (
        replace(bound, lower=lower, upper=upper)
        if len(entries) > 1 or kind in ("block", LIMITS)
        else replace(bound, lower=float(lower[0]), upper=float(upper[0]))
    )


def _entries(system: System, kind: str, name: str) -> tuple[str, ...]:
    """Single names of what `_bounded_place` found."""
    if kind == "block":
        return system.state.coordinate_names[block_slices(system.state)[0][name]]
    if kind == "quantity":
        return entries_of(system, name)
    return tuple(system.limits) if kind == LIMITS else (name,)


def _quantities(system: System) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*system.quantities, *system.quantity_names)))


def _limit(label: str, value: Any, size: int) -> np.ndarray:
    """One limit a row; NaN is left to the comparison of the two limits, which it fails."""
    if np.ndim(value) == 0:
        return np.full(size, float(value))
    return check_shape(label, value, (size,), finite=False)


def check_names(system: System, bound: Bound, parameters: Sequence[str]) -> None:
    """Refuse a bound on what nothing is called by, or whose limit is no parameter.

    Parameters
    ----------
    system : System
    bound : Bound
    parameters : sequence of str
        Names of p.
    """
    if isinstance(bound.of, str):
        _bounded_place(system, bound)
    for what in ("lower", "upper", "soft"):
        value = getattr(bound, what)
        if isinstance(value, str):
            parameter_index(f"{what} of bound {bound.label!r}", value, parameters)


def check_consistent(system: System, bounds: Sequence[Bound], horizon: int) -> None:
    """Refuse hard bounds of which two leave nothing of a quantity that both name, at one node.

    Limits that are parameters may change, and functions are not compared: solves find out.

    Parameters
    ----------
    system : System
    bounds : sequence of Bound
        Whose names are known.
    horizon : int
        Number of steps.
    """
    limits: dict[tuple[str, str], list[tuple[str, range, float, float]]] = {}
    for entry in system.inputs:
        whose, nodes = f"the limits of input {entry.name!r}", range(horizon)
        limits["input", entry.name] = [(whose, nodes, entry.lower, entry.upper)]
    for bound in bounds:
        if not isinstance(bound.of, str):
            continue
        kind, name = _bounded_place(system, bound)
        _ask_degrees(system, bound, kind, name)
        if bound.soft is not None:
            continue
        entries = _entries(system, kind, name)
        whose = f"bound {bound.label!r} (at {_place(bound.at)!r})"
        sides = {"lower": bound._limit("lower", -np.inf), "upper": bound._limit("upper", np.inf)}
        low, high = (
            _limit(f"{side} of bound {bound.label!r}", value, len(entries))
            for side, value in sides.items()
        )
        if kind == "block":
            _check_on_group(system, whose, name, low, high)
        is_input = kind == "input"
        nodes = _nodes(bound.at, horizon, is_input=is_input)
        for entry, *own in zip(entries, low.tolist(), high.tolist(), strict=True):
            key = ("tangent" if kind == "tangent" else "input" if is_input else "", entry)
            for other, there, least, most in limits.setdefault(key, []):
                common = {*nodes} & {*there}
                bottom, top = max(own[0], least), min(own[1], most)
                if common and bottom - top > ROUNDING * max(1.0, abs(bottom), abs(top)):
                    raise ValueError(
                        f"{whose} and {other} contradict each other at node {min(common)}: "
                        f"{entry} cannot be at least {bottom:g} and at most {top:g}. Leave one "
                        "out, give it other nodes or a price (soft=100)"
                    )
            limits[key].append((whose, nodes, *own))


def _check_on_group(
    system: System, whose: str, name: str, low: np.ndarray, high: np.ndarray
) -> None:
    """Refuse limits of a block that none of its elements keeps, such as zeros of a quaternion."""
    group = system.state
    part, freedoms = (places[name] for places in block_slices(group))
    if freedoms.stop - freedoms.start == 1:  # limits are those of the angle
        return
    for unit in group.unit_parts:
        if not part.start <= unit.start < part.stop:
            continue
        own = slice(unit.start - part.start, unit.stop - part.start)
        least = np.maximum(0.0, np.maximum(low[own], -high[own]))
        most = np.maximum(np.abs(low[own]), np.abs(high[own]))
        if np.linalg.norm(least) > 1.0 + ROUNDING or np.linalg.norm(most) < 1.0 - ROUNDING:
            entries = ", ".join(group.coordinate_names[unit])
            raise ValueError(
                f"{whose} limits coordinates, of which ({entries}) have norm one: no element of "
                f"{name!r} is within. Bound the error from a goal instead, by "
                "lambda t, x, u, p: group.minus(x[…], goal), or single coordinates"
            )


def _ask_degrees(system: System, bound: Bound, kind: str, name: str) -> None:
    """Ask whether limits of angles that are several turns are degrees."""
    units = _units(system, kind, name)
    for side in ("lower", "upper"):
        given = bound._limit(side, 0.0)
        limits = [float(given)] * len(units) if not given.ndim else given.ravel().tolist()
        for (entry, unit), limit in zip(units.items(), limits, strict=False):  # sizes: told later
            what = f"bound {bound.label!r}: a limit of {entry}"
            remedy = f"Then give np.radians({limit:g}); leave out what is not limited"
            if unit == "rad" and ask_degrees(what, limit, remedy, most=NO_LIMIT):
                return


def _units(system: System, kind: str, name: str) -> dict[str, str]:
    """Units of what `_bounded_place` found; of [cos, sin] only that of the angle."""
    state = system.state
    if kind == "block":
        part, freedoms = (places[name] for places in block_slices(state))
        if freedoms.stop - freedoms.start == 1:
            return {name: state.tangent_units[freedoms.start]}
        return dict(zip(state.coordinate_names[part], state.coordinate_units[part], strict=True))
    if kind == "tangent":
        return {name: dict(zip(state.tangent_names, state.tangent_units, strict=True))[name]}
    units = dict(zip(state.coordinate_names, state.coordinate_units, strict=True))
    units |= {entry.name: entry.unit for entry in system.inputs if kind == "input"}
    return {entry: units.get(entry, "") for entry in _entries(system, kind, name)}


def _nodes(at: str | range, horizon: int, *, is_input: bool) -> range:
    """Nodes at which a bound holds whatever is free at the start."""
    if isinstance(at, range):
        return at
    first, last = (0, horizon) if is_input else (1, horizon + 1)
    spans = {
        "both": range(first, last),
        "path": range(first, horizon),
        "terminal": range(horizon, last),
        "start": range(1),
    }
    return spans[at]


def input_of(system: System, bound: Bound) -> int | None:
    """Which input a bound is on, by its number; None where it is on something else.

    Parameters
    ----------
    system : System
    bound : Bound
    """
    if not isinstance(bound.of, str):
        return None
    kind, name = _bounded_place(system, bound)
    return system.input_names.index(name) if kind == "input" else None


def holds_throughout(system: System, bound: Bound, horizon: int) -> bool:
    """Whether a bound is a hard limit of a control at all times of a plan.

    Parameters
    ----------
    system : System
    bound : Bound
    horizon : int
        Number of steps.
    """
    if bound.soft is not None or input_of(system, bound) not in system.input_index("control"):
        return False
    nodes = _nodes(bound.at, horizon, is_input=True)
    return max(nodes, default=0) <= horizon and {*range(horizon)} <= {*nodes}


def _bounded_place(system: System, bound: Bound) -> tuple[str, str]:
    """What the name of a bound means: "input", "block", "coordinate", "tangent" or "quantity"."""
    state, of = system.state, str(bound.of)
    blocks = block_slices(state)[0]
    of_state = dict.fromkeys((*blocks, *state.coordinate_names, *state.tangent_names))
    place, name = place_of(f"bound {bound.label!r}", of, of_state, system.input_names)
    if place == "input":
        return place, name
    for kind, known in (
        ("block", blocks),
        ("coordinate", state.coordinate_names),
        ("tangent", state.tangent_names),
    ):
        if name in known:
            if kind == "tangent":
                _refuse_deviation(bound, name, state)
            return kind, name
    if entries_of(system, of):
        return "quantity", of
    if of == LIMITS:
        return LIMITS, of
    inputs = system.input_names
    valid = dict.fromkeys(
        [
            *(f"state.{key}" if key in inputs else key for key in of_state),
            *(f"input.{key}" if key in of_state else key for key in inputs),
            *_quantities(system),
            LIMITS,
        ]
    )
    message = unknown_name("bounded quantity", of, valid)
    if of == "input" and inputs:
        message += (
            f" A bound on an input names it, Bound('input.{inputs[0]}', …); limits that always "
            "hold are lower and upper of the system's inputs"
        )
    source, _, last = of.rpartition(".")
    if last == "rate" and source in valid:
        message += (
            f" The rate of {source!r} is no state of {system.name}: to bound it make the input a "
            "state with its rate as the input, or bound a function (t, x, u, p) → rate"
        )
    raise UnknownNameError(message)


def _refuse_deviation(bound: Bound, name: str, state: LieGroup) -> None:
    """Of a block that is one angle only this is bounded: the two names look alike."""
    block, _, last = name.rpartition(".")
    part = block_slices(state)[0].get(block, slice(0, state.nq))
    if part.stop - part.start == 1:
        own = repr(block) if block else ", ".join(map(repr, state.coordinate_names))
        raise ValueError(
            f"bound {bound.label!r}: {last} is how far the angle is from its reference, which is "
            f"what weights are on; the angle itself is {own}. Limits of a deviation follow its "
            "reference as parameters, or bound a function (t, x, u, p) → deviation"
        )


def _expression(
    system: System,
    bound: Bound,
    t: Any,
    x: Any,
    u: Any,
    p: Any,
    x_ref: Any,
    known: Mapping[str, Any] | None = None,
) -> tuple[Any, tuple[str, ...]]:
    state = system.state
    if not isinstance(bound.of, str):
        function = bound.of.function if isinstance(bound.of, ModelFunction) else bound.of
        column = column_of(f"bound {bound.label!r}", function, type(x), (t, x, u, p))
        size = column.shape[0]
        if isinstance(function, NamedRows):
            return column, function.names
        return column, tuple(
            f"{bound.label}[{i}]" if size > 1 else bound.label for i in range(size)
        )
    kind, name = _bounded_place(system, bound)
    if kind == "input":
        return u[system.input_names.index(name)], (bound.label,)
    if kind == "block":
        part, freedoms = (places[name] for places in block_slices(state))
        is_number = not (np.ndim(bound.lower) or np.ndim(bound.upper))
        if is_number and freedoms.stop - freedoms.start == 1 < part.stop - part.start:
            return state.log(x)[freedoms], _called(bound, (name,))
        return x[part], _called(bound, state.coordinate_names[part])
    if kind == "coordinate":
        return x[state.coordinate_names.index(name)], (bound.label,)
    if kind == "tangent":
        return state.minus(x, x_ref)[state.tangent_names.index(name)], (bound.label,)
    if kind == LIMITS:
        limited = tuple(entry for entry in system.limits if entry in system.quantity_names)
        rows = system.quantity_rows(limited, t, x, u, p, known)
        columns = {entry: rows[i] for i, entry in enumerate(limited)}
        for entry in system.limits:
            if entry not in columns:
                part = replace(bound, of=entry, name=None)
                columns[entry] = _expression(system, part, t, x, u, p, x_ref, known)[0]
        return ca.vertcat(*(columns[e] for e in system.limits)), _called(bound, (*system.limits,))
    entries = entries_of(system, name)
    return system.quantity_rows(entries, t, x, u, p, known), _called(bound, entries)


def _called(bound: Bound, entries: tuple[str, ...]) -> tuple[str, ...]:
    """What messages call the entries of a bound: its own name is told, too."""
    if bound.name is None:
        return entries
    return (bound.name,) if len(entries) == 1 else tuple(f"{bound.name}: {e}" for e in entries)
