"""Functions of a system's t, x, u, p: traced from users' callables, and what is given for them."""

from __future__ import annotations

import inspect
import math
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeGuard

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value
from ..codegen._internal import (
    Shape,
    ask_degrees,
    check_shape,
    format_shape,
    in_degrees,
    level_outside,
)
from ..groups import LieGroup, Product, check_element
from ..groups._internal import ask_order, group_words
from ._blocks import ErrorCoordinates
from ._signals import (
    Input,
    Parameter,
    check_parameters,
    choose_inputs,
    names_of,
    nominal_of,
    set_parameters,
)
from ._trajectory import Trajectory

Field = Callable[[Any, Any, Any, Any], Any]
"""A callable (t, x, u, p) → column, on CasADi columns."""

# Sample times that differ by this share are the same: a time may come as a quotient of others.
AGREEMENT = 1e-9


class Signature(Protocol):
    """What decides the arguments of a system's functions."""

    @property
    def name(self) -> str:
        """Name, for messages."""
        ...

    @property
    def state(self) -> LieGroup:
        """Group of x."""
        ...

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Entries of u."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Entries of p."""
        ...

    @property
    def symbol(self) -> Any:
        """SX or MX."""
        ...

    @property
    def dt(self) -> float:
        """Sample time in s, 0 for continuous systems."""
        ...


_CALLED = ("f", "h", "step")  # functions that users call with states that they write down


class SystemFunction(ModelFunction):
    """A ModelFunction of a system: p may be a mapping of names, errors say what was meant.

    Its function and shapes are as of ModelFunction. Arguments u and p may be left out where
    `optional` names them.
    """

    _known = ("_parameters", "_dim", "_advice", "_state", "_is_new")

    def __init__(
        self,
        system: Signature,
        function: ca.Function,
        shapes: Mapping[str, Shape],
        defaults: Mapping[str, Any],
    ) -> None:
        super().__init__(function, shapes=shapes, defaults=defaults)
        self._parameters = system.parameters
        self._dim = system.state.dim
        self._state = system.state
        # Asked once about quaternions, which loops then do not pay for.
        quaternions = any(part.stop - part.start == 4 for part in system.state.unit_parts)
        self._is_new = quaternions and self.name in _CALLED
        self._advice = {"u": input_count(system), "p": parameter_names(system)}

    def __call__(self, *values: Value, **named: Value) -> Any:
        """Evaluate; the first state is looked at."""
        if self._is_new:
            self._is_new = False
            self._look_at(values, named)
        return super().__call__(*values, **named)

    def _look_at(self, values: tuple[Value, ...], named: Mapping[str, Value]) -> None:
        given = {**dict(zip(self.arguments, values, strict=False)), **named}
        x = given.get("x")
        if isinstance(x, list | tuple | np.ndarray) and np.shape(x) == (self._state.nq,):
            x = np.asarray(x)
            if x.dtype.kind in "iuf":
                ask_order(f"{self.name}: x", x, self._state)

    def _general(self, values: tuple[Value, ...]) -> Any:
        # Arguments that do not fit come this way; calls with plain arrays do not.
        if "p" in self.arguments:
            k = self.arguments.index("p")
            if isinstance(values[k], Mapping):
                p = set_parameters(self._parameters, values[k])
                return self(*values[:k], p, *values[k + 1 :])
        try:
            return super()._general(values)
        except (TypeError, ValueError) as error:
            order = self._swapped(values)
            if order:
                raise type(error)(f"{error}: {order}") from None
            for name, advice in {**self._advice, **self._of_state(values)}.items():
                if f"argument {name!r}" in str(error):
                    raise type(error)(f"{error}: {advice}") from None
            raise

    def _of_state(self, values: Sequence[Any]) -> dict[str, str]:
        """What to say of an x that is no state."""
        x = values[self.arguments.index("x")] if "x" in self.arguments else 0.0
        if hasattr(x, "x") and hasattr(x, "u"):
            return {"x": "give the point's .x"}
        size = np.shape(x)[-1:]
        return {"x": tangent_advice(self._dim)} if size == (self._dim,) else {}

    def _swapped(self, values: Sequence[Any]) -> str:
        """Say the order of arguments where those given would fit in another one."""
        if "t" not in self.arguments:
            return ""
        shapes = [np.shape(value) for value in values]
        place = dict(zip(self.arguments, self.argument_shapes, strict=True))
        x = self.arguments.index("x")
        wrong = shapes[x][-1:] != place["x"][-1:] or not place["x"]
        elsewhere = any(shape[-1:] == place["x"] for k, shape in enumerate(shapes) if k != x)
        if wrong and elsewhere:
            return f"the order of arguments is ({', '.join(self.arguments)})"
        return ""


# What callables are traced into


def symbols_of(system: Signature, symbol: Any = None) -> tuple[Value, Value, Value, Value]:
    """Fresh symbols t, x, u, p, of the system's kind unless told."""
    sym = (symbol or system.symbol).sym
    return (
        sym("t"),
        sym("x", system.state.nq),
        sym("u", len(system.inputs)),
        sym("p", len(system.parameters)),
    )


def shapes_of(system: Signature) -> dict[str, Shape]:
    """NumPy shapes of the arguments t, x, u, p, dt."""
    return {
        "t": (),
        "x": (system.state.nq,),
        "u": (len(system.inputs),),
        "p": (len(system.parameters),),
        "dt": (),
    }


def trace_field(system: Signature, name: str, build: Field, rows: int | None) -> ModelFunction:
    """``(t, x, u, p) → name``; u and p may be left out.

    `build` is ``(t, x, u, p) → column``, of so many rows if told.
    """
    return _trace_column(system, name, build, rows, ("t", "x", "u", "p"))


def trace_static(
    system: Signature, name: str, build: Callable[[Any, Any], Any], rows: int | None
) -> ModelFunction:
    """``(x, p) → name``; p may be left out."""
    return _trace_column(system, name, build, rows, ("x", "p"))


class TracedLater:
    """A model function that is traced when it is first used, and pickled as what it is."""

    def __init__(self, make: Callable[[], ModelFunction]) -> None:
        self._make = make

    @cached_property
    def traced(self) -> ModelFunction:
        """The model function."""
        return self._make()

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Evaluate."""
        return self.traced(*values, **named)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "_make":
            raise AttributeError(name)
        return getattr(self.traced, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """As the function that it is."""
        return _as_it_is, (self.traced,)


def traced_when_asked(given: Any, trace: Callable[[Any], ModelFunction]) -> Any:
    """A traced function; of one that is `TracedLater` later: what nobody asks for costs nothing."""
    if isinstance(given, TracedLater):
        return TracedLater(lambda: trace(given.traced))
    return trace(given)


def _as_it_is(function: ModelFunction) -> ModelFunction:
    return function


def trace_matrices(
    system: Signature,
    name: str,
    build: Callable[..., Any],
    arguments: str,
    results: Mapping[str, Shape],
    extra: Mapping[str, Shape] | None = None,
) -> ModelFunction:
    """Callable of some of t, x, u, p (and `extra` ones) that returns matrices or columns.

    Arguments are names, separated by spaces; extra ones are columns.
    """
    names, label = arguments.split(), f"{system.name}: {name}"
    optional = {"u": nominal_of(system.inputs), "p": nominal_of(system.parameters)}
    nominal = {key: value for key, value in optional.items() if key in names}
    symbols = dict(zip("txup", symbols_of(system), strict=True))
    shapes = {**shapes_of(system), **(extra or {})}
    for key, shape in (extra or {}).items():
        symbols[key] = system.symbol.sym(key, *shape)
    kept = {key: shapes[key] for key in names} | dict(results)
    if _is_traced(build, name, kept):
        return SystemFunction(system, build.function, kept, nominal)
    used = [symbols[key] for key in names]
    built = call_with_symbols(label, build, used, names)
    values: Any = [built] if len(results) == 1 else list(built)
    if len(values) != len(results):
        raise ValueError(f"{label} returned {len(values)} results, expected {', '.join(results)}")
    values = [system.symbol(value) for value in values]
    for (key, shape), value in zip(results.items(), values, strict=True):
        if value.shape != (*shape, 1)[:2]:
            raise ValueError(f"{label} returned {key} of shape {value.shape}, expected {shape}")
    if system.symbol is ca.SX and not isinstance(build, ModelFunction):  # free of repetitions
        values = ca.cse(values)
    function = ca.Function(name, used, values, names, list(results))
    return SystemFunction(system, function, kept, nominal)


def trace_policy(system: Signature, build: Callable[..., Any]) -> ModelFunction:
    """``(t, x, x_ref, u_ref, p) → controls``; p may be left out."""
    controls = len(choose_inputs(system.inputs, "control"))
    extra = {"x_ref": (system.state.nq,), "u_ref": (len(system.inputs),)}
    return trace_matrices(
        system, "policy", build, "t x x_ref u_ref p", {"controls": (controls,)}, extra
    )


def matrix_function(
    system: Signature,
    name: str,
    symbols: list[Value],
    results: dict[str, Any],
    *,
    is_shared: bool = True,
    made_as: type[SystemFunction] = SystemFunction,
) -> ModelFunction:
    """Named results of t, x, u, p, and dt if given; those of a capital letter are matrices.

    Results are expressions of the symbols. To look for common subexpressions takes thirty times as
    long as making the function: not where calls are few or results have little in common.
    """
    kind: Any = type(symbols[1])
    expressions: Any = [kind(value) for value in results.values()]
    if is_shared and kind is ca.SX:
        expressions = ca.cse(expressions)
    names = ["t", "x", "u", "p", "dt"][: len(symbols)]
    shapes = shapes_of(system) | {"residual": ()}
    used = {key: shapes[key] for key in (*names, *results) if key in shapes} | {
        key: value.shape
        for key, value in zip(results, expressions, strict=True)
        if key[0].isupper()
    }
    defaults: dict[str, Any] = {"p": nominal_of(system.parameters)}
    if system.dt and "dt" in names:
        defaults["dt"] = system.dt
    function = ca.Function(name, symbols, expressions, names, list(results))
    return made_as(system, function, used, defaults)


def _is_traced(build: Any, name: str, shapes: Mapping[str, Shape]) -> TypeGuard[ModelFunction]:
    """Whether a callable is a function that needs no tracing again: of another system, say."""
    if not isinstance(build, ModelFunction) or build.name != name or build.transposed:
        return False
    names, found = build.arguments + build.results, build.argument_shapes + build.result_shapes
    return dict(zip(names, found, strict=True)) == dict(shapes)


def trace_basis(system: Signature, errors: ErrorCoordinates) -> ErrorCoordinates:
    """Error coordinates with their basis as a model function ``(x, p) → N``."""
    errors.check(system.state)
    results = {"N": errors.selection.shape[::-1]}
    basis = trace_matrices(system, "basis", errors.basis, "x p", results)
    rows = errors.constraints
    held = None if rows is None else trace_static(system, "constraints", rows, None)
    named = errors.names, errors.units, held, errors.constraint_names
    return ErrorCoordinates(errors.selection, basis, *named)


def _trace_column(
    system: Signature,
    name: str,
    build: Callable[..., Any],
    rows: int | None,
    arguments: tuple[str, ...],
) -> ModelFunction:
    if not ca.Function.check_name(name):
        raise ValueError(
            f"{system.name}: {name!r} cannot name a function; use letters, digits and "
            "single underscores"
        )
    shapes = shapes_of(system)
    nominal = {"u": nominal_of(system.inputs), "p": nominal_of(system.parameters)}
    defaults = {key: value for key, value in nominal.items() if key in arguments}
    kept = {key: shapes[key] for key in arguments}
    if isinstance(build, SystemFunction):
        length = build.result_shapes[0] if rows is None else (rows,)
        if _is_traced(build, name, {**kept, name: length}):
            return SystemFunction(system, build.function, {**kept, name: length}, defaults)
    symbols = dict(zip("txup", symbols_of(system), strict=True))
    used = [symbols[key] for key in arguments]
    label = f"{system.name}: {name}"
    column = as_column(system, name, call_with_symbols(label, build, used, arguments), rows)
    try:
        function = ca.Function(name, used, [column], list(arguments), [name])
    except RuntimeError:
        free = ca.Function("free", used, [column], {"allow_free": True})
        if not free.has_free():
            raise
        raise ValueError(
            f"{system.name}: {name} depends on symbols that are not its arguments "
            f"({', '.join(map(str, free.get_free()))}); make them parameters"
        ) from None
    somewhere = {"t": np.array(0.5), "x": system.state.random(0), **nominal}
    refuse_nan(label, function, [somewhere[key] for key in arguments])
    return SystemFunction(system, function, {**kept, name: (column.shape[0],)}, defaults)


def as_column(system: Signature, name: str, value: Any, rows: int | None) -> Any:
    """What a callable returned as one column of the system's kind of symbol."""
    if isinstance(value, list | tuple):
        value = ca.vertcat(*value)
    try:
        column = system.symbol(value)
    except (NotImplementedError, TypeError):
        raise TypeError(
            f"{system.name}: {name} returned {type(value).__name__}, expected a CasADi column or "
            f"a list of scalars of kind {system.symbol.__name__}; a callable that needs MX "
            "(a solver, an MX function) takes System(..., symbol=casadi.MX)"
        ) from None
    if column.shape[1] != 1 or (rows is not None and column.shape[0] != rows):
        expected = "one column" if rows is None else f"a column of {rows}"
        raise ValueError(
            f"{system.name}: {name} returned shape {column.shape}, expected {expected} "
            f"(state {coordinate_sizes(system.state)})"
        )
    return ca.cse(column) if system.symbol is ca.SX else column


# What users write, and what goes wrong there


def call_with_symbols(
    label: str, build: Callable[..., Any], symbols: Sequence[Any], names: Sequence[str]
) -> Any:
    """What a callable returns for symbols.

    A TypeError says what it is and names its arguments where it takes others, or decides by a value
    that is not known yet. A FutureWarning tells of NumPy functions on CasADi values.
    """
    try:
        inspect.signature(build).bind(*symbols)
    except ValueError:  # no signature, as for some compiled callables
        pass
    except TypeError as error:
        raise TypeError(f"{label} must take ({', '.join(names)}): {error}") from None
    with _numpy_noticed(label):
        try:
            return build(*symbols)
        except NotImplementedError as error:
            if "Wrong number or type" not in str(error):
                raise
            raise TypeError(
                f"{label} does with CasADi columns what they cannot do ({_place(error)}): entries "
                "go by number, p[0] or p[1:3], in the order in which they were declared; functions "
                "are casadi's"
            ) from error
        except RuntimeError as error:
            if "truth value" not in str(error):
                error.add_note(f"raised by {label} ({_place(error)})")
                raise
            raise TypeError(
                f"{label} decides by the value of a CasADi expression ({_place(error)}), which is "
                "not known when it is traced; instead of if, while, and, or, min, max use "
                "casadi.if_else(x > 0, a, b), casadi.logic_and, casadi.fmin, casadi.fmax"
            ) from error


def refuse_nan(label: str, function: ca.Function, point: Sequence[np.ndarray]) -> None:
    """Raise if a function of SX holds NaN: `float` and `math` make it of symbols without a word.

    A look at a point says whether there is any reason to search.
    """
    if not function.is_a("SXFunction"):
        return
    if not np.isnan(np.concatenate([r.full().ravel() for r in function.call(list(point))])).any():
        return
    for k in range(function.n_instructions()):
        is_constant = function.instruction_id(k) == ca.OP_CONST
        if is_constant and math.isnan(function.instruction_constant(k)):
            raise ValueError(
                f"{label} contains NaN: a number in it is NaN, or float() or a function of Python's"
                " math was called on a CasADi value; use casadi's (casadi.cos for math.cos)"
            )


def _place(error: BaseException) -> str:
    """File and line of the user's code in which an error was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "casadi" not in Path(frame.filename).parts]
    last = own[-1]
    return f"{Path(last.filename).name}, line {last.lineno}"


@contextmanager
def _numpy_noticed(label: str) -> Iterator[None]:
    """Say in a line what CasADi says in fifteen; other warnings pass."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    others = [entry for entry in caught if "numpy function" not in str(entry.message)]
    for entry in others:
        warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
    if len(others) < len(caught):
        warnings.warn(
            f"{label} calls NumPy functions on CasADi values: use casadi's instead, "
            "casadi.cos for numpy.cos; what NumPy's do differs between versions of CasADi",
            FutureWarning,
            stacklevel=level_outside(),
        )


# What is given for the arguments


def complete_input(
    system: Signature, name: str, u: Any, axes: tuple[int | None, ...] = (), *, batch: bool = False
) -> np.ndarray:
    """Inputs of shape ``(*axes, n_inputs)``; the others are nominal where only controls are given.

    None in axes stands for any length; with `batch` others may come before them.
    """
    given = check_shape(name, u, (None,), batch=True)
    index = choose_inputs(system.inputs, "control")
    total, controls = len(system.inputs), len(index)
    if given.shape[-1] == controls != total:
        full = np.empty((*given.shape[:-1], total))
        full[...] = nominal_of(system.inputs)
        full[..., index] = given
        given = full
    elif given.shape[-1] != total:
        raise ValueError(
            f"{name} has shape {given.shape}, expected {format_shape((*axes, total), batch)}: "
            f"{input_count(system)}"
        )
    return check_shape(name, given, (*axes, total), batch=batch)


def input_count(system: Signature) -> str:
    """Say what the inputs of a system are, and how to get all from the controls."""
    counts = Counter(entry.role for entry in system.inputs)
    words = {entry.role: entry.role for entry in system.inputs}
    words |= {"measured": "measured input", "noise": "noise input"}
    parts = [f"{n} {words[role]}{'s' * (n != 1)}" for role, n in counts.items()]
    text = f"{system.name} has {' + '.join(parts) or 'no inputs'}"
    if len(counts) > 1 and counts["control"]:
        text += "; system.full_input(controls) fills in the nominal others"
    return text


def complete_parameters(system: Signature, p: Any, *, batch: bool = False) -> np.ndarray:
    """Parameters of shape (n_parameters,): nominal ones for None, or those of a mapping by name.

    Arrays may have leading axes with `batch`. A value outside the range of its parameter is
    refused.
    """
    if p is None:
        return nominal_of(system.parameters)
    if isinstance(p, Mapping):
        return set_parameters(system.parameters, p)
    given = check_shape("p", p, (None,), batch=batch)
    if given.shape[-1] != len(system.parameters):
        expected = format_shape((len(system.parameters),), batch)
        raise ValueError(
            f"p has shape {given.shape}, expected {expected}: {parameter_names(system)}"
        )
    return check_parameters(system.parameters, given)


def parameter_names(system: Signature) -> str:
    """Say what the parameters of a system are, and how to get all from some."""
    names = names_of(system.parameters)
    if not names:
        return f"{system.name} has no parameters"
    return (
        f"{system.name} has the parameters {', '.join(names)}; "
        "a mapping {name: value} will do, the others are then nominal"
    )


def tangent_advice(dim: int) -> str:
    """What to do with a tangent vector that was given for a state."""
    return f"{dim} is the tangent dimension: state.plus(x, d) moves a state by a tangent vector"


def coordinate_sizes(state: LieGroup) -> str:
    """Say how many coordinates each block of a state has, for messages.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, Rn
    >>> coordinate_sizes(Product(pose=SE3, twist=Rn(6)))
    'pose (7), twist (6)'
    """
    if not isinstance(state, Product):
        return f"{group_words(state)} ({state.nq})"
    return ", ".join(f"{name} ({block.nq})" for name, block in state.blocks.items())


def check_units(name: str, system: Signature, trajectory: Trajectory) -> None:
    """Refuse a trajectory whose inputs are of other units than those of the system.

    Accelerations are no torques, however many there are. It has an input for each of the system's,
    or for each of its controls; nothing is said of inputs without a unit.
    """
    own = system.inputs
    if len(trajectory.inputs) != len(own):
        own = tuple(entry for entry in own if entry.role == "control")
    if trajectory.inputs is own or len(trajectory.inputs) != len(own):
        return
    for given, meant in zip(trajectory.inputs, own, strict=True):
        if given.unit and meant.unit and given.unit != meant.unit:
            raise ValueError(
                f"{name} has the input {given.name!r} in {given.unit}, where {system.name} has "
                f"{meant.name!r} in {meant.unit}: it is of another system; give "
                "Trajectory(system.state, t, x, u) with the inputs of this one, or leave u out"
            )


def check_state(system: Signature, name: str, x: Any, *, batch: bool = False) -> np.ndarray:
    """State from outside as `check_element` takes it; points and tangent vectors are told."""
    if hasattr(x, "x") and hasattr(x, "u"):
        raise TypeError(f"{name} must be a state of {system.name}: give the point's .x")
    try:
        found = check_element(name, x, system.state, batch=batch)
        if found.ndim == 1:
            ask_of_state(name, found, system.state)
        return found
    except ValueError as error:
        size, state = np.shape(x)[-1:], system.state
        if size == (state.dim,) != (state.nq,):
            raise ValueError(f"{error}: {tangent_advice(state.dim)}") from None
        if size != (state.nq,) and isinstance(state, Product):
            raise ValueError(f"{error}: the coordinates of {coordinate_sizes(state)}") from None
        raise


def ask_of_state(name: str, x: np.ndarray, state: LieGroup) -> None:
    """Ask about angles that look like degrees."""
    for i, (value, unit) in enumerate(zip(x.tolist(), state.coordinate_units, strict=True)):
        if unit == "rad" and in_degrees(value):
            ask_degrees(f"{name}: {state.coordinate_names[i]}", value)


def sample_time(system: Signature, dt: float | None = None, name: str = "dt") -> float:
    """Length of a step in s: that of a discrete system, else the given one.

    It may be left out for discrete systems, and has to be theirs where it is given.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> sampled = System("sampled", Rn(1), lambda t, x, u, p: -0.5 * x, dt=0.1)
    >>> sample_time(sampled)
    0.1
    >>> sample_time(sampled, 0.2)
    Traceback (most recent call last):
    ...
    ValueError: sampled has the sample time 0.1 s, not dt = 0.2 s
    """
    if dt is None:
        if system.dt:
            return system.dt
        raise ValueError(f"{system.name} is continuous: give {name} > 0 in s, got None")
    value = float(check_shape(name, dt, ()))
    if value <= 0:
        raise ValueError(f"{system.name}: {name} must be positive, got {value:g} s")
    if not system.dt:
        return value
    if abs(value - system.dt) > AGREEMENT * system.dt:
        raise ValueError(
            f"{system.name} has the sample time {system.dt:g} s, not {name} = {value:g} s"
        )
    return system.dt
