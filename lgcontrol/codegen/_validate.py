"""Checks at the boundary: shapes, finiteness, names."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from itertools import chain
from math import isfinite
from typing import Any, TypeVar, cast, overload

import casadi as ca
import numpy as np

from .._names import function_hint, member_hint
from ._arguments import SHORT_TEXT, Kind, kinds_of, refusal
from ._interrupt import interruptible

WHOLE = 30  # names that a message lists completely
OWN_PACKAGE = __name__.partition(".")[0]
SHOWN_NAMES = 20  # names that it lists of more
SEMIDEFINITE = 1e-10  # share of the largest entry that is rounding
MOST_STEPS = 10**9  # of one simulation or rollout; more would take days
MOST_SUBSTEPS = 10_000  # and of whatever else makes a function longer: delays, horizons, orders
MOST_ORDER = 50  # of a polynomial or a series in double precision
_FLOAT = np.dtype(np.float64)
F = TypeVar("F", bound=Callable[..., Any])


def is_symbolic(*values: Any) -> bool:
    """Whether any value is a CasADi expression (SX or MX).

    Examples
    --------
    >>> is_symbolic(1.0, ca.SX.sym("x")), is_symbolic(ca.DM(1))
    (True, False)
    """
    return any(isinstance(value, ca.SX | ca.MX) for value in values)


def check_shape(
    name: str, value: Any, shape: Sequence[int | None], *, batch: bool = False, finite: bool = True
) -> np.ndarray:
    """`value` as a float array of the given shape, or an error that names it.

    None in a shape stands for any length. With `batch` there may be leading axes; with `finite` NaN
    and infinity are refused. The result is of float64.

    Examples
    --------
    >>> check_shape("inertia", [[1, 0], [0, 2]], (2, 2)).dtype
    dtype('float64')
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT and value.shape == shape and not finite:
        return value  # as in loops
    if type(value) is float and not shape and (isfinite(value) or not finite):
        return np.array(value)
    array = as_numbers(name, value, "an array of numbers" if len(shape) else "a number")
    expected = tuple(shape)
    tail = array.shape[len(array.shape) - len(expected) :] if batch else array.shape
    if tail != expected and (
        len(tail) != len(expected)
        or any(want is not None and want != have for want, have in zip(expected, tail, strict=True))
    ):
        raise ValueError(
            f"{name} has shape {array.shape}, expected {format_shape(expected, batch)}"
        )
    if finite and not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        place = f"entry {where} is" if where else "it is"
        raise ValueError(f"{name} is not finite: {place} {array[where]}")
    return array


def check_count(
    name: str, value: Any, *, least: int = 1, most: int = MOST_STEPS, remedy: str = ""
) -> int:
    """A whole number within bounds, or an error that names it: nobody waits for 10³⁰ of anything.

    The `remedy` is what to do instead of more.

    Examples
    --------
    >>> check_count("substeps", 10**30, most=MOST_SUBSTEPS)
    Traceback (most recent call last):
    ...
    ValueError: substeps must be at most 10,000, got 1e+30: give a smaller one
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}, got {value!r}")
    return check_quotient(name, int(value), most, remedy)


def check_quotient(name: str, value: float, most: int = MOST_STEPS, remedy: str = "") -> int:
    """Rounded number of steps that follows from times, or an error if it is more than `most`.

    `name` is that of the counted thing: "steps of 1e-12 s in 1 s".
    """
    if not value <= most:
        raise ValueError(
            f"{name} must be at most {most:,}, got {float(value):.3g}: "
            f"{remedy or 'give a smaller one'}"
        )
    return round(value)


def as_numbers(name: str, value: Any, wanted: str = "an array of numbers") -> np.ndarray:
    """`value` as a float array of its own shape, or an error that names it.

    The message asks for what is `wanted`.

    Examples
    --------
    >>> as_numbers("u", [1, 2]).dtype
    dtype('float64')
    """
    if type(value) is np.ndarray and value.dtype is _FLOAT:  # as in loops
        return value
    try:
        if isinstance(value, Mapping):
            keys = ", ".join(map(repr, list(value)[:4]))
            raise TypeError(
                f"got a mapping of {keys}; of a Product, state.join(block=…) makes coordinates"
            )
        given = np.asarray(value)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers would lose their imaginary parts")
        if given.dtype.kind in "SU":  # which NumPy would read
            raise TypeError(f"got the text {value!r}")
        if given.dtype.kind == "O" and any(entry is None for entry in given.flat):  # as NaN
            raise TypeError(f"got {value!r}")
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be {wanted}: {error}") from None


def check_list(name: str, values: Any, kind: type, example: str) -> tuple[Any, ...]:
    """A list or tuple of one type, or an error that shows one.

    The example is one entry as it is written.

    Examples
    --------
    >>> check_list("sizes", 3, int, "3")
    Traceback (most recent call last):
    ...
    TypeError: sizes must be a list of int, as in sizes=[3]; got 3
    """
    listed = isinstance(values, list | tuple)
    wrong = [value for value in values if not isinstance(value, kind)] if listed else [values]
    if wrong:
        shown = repr(wrong[0])
        shown = shown if len(shown) <= SHORT_TEXT else f"a {type(wrong[0]).__name__}"
        raise TypeError(
            f"{name} must be a list of {kind.__name__}, as in {name}=[{example}]; got {shown}"
        )
    return tuple(values)


def check_symmetric(name: str, matrix: np.ndarray, rows: Sequence[str] = ()) -> np.ndarray:
    """Symmetric part of a matrix that is symmetric but for rounding, or an error that says where.

    Rows are called by their numbers where they have no names.

    Examples
    --------
    >>> check_symmetric("P0", np.array([[1.0, 0.2], [0.3, 1.0]]), ["place", "speed"])
    Traceback (most recent call last):
    ...
    ValueError: P0 must be symmetric: it has 0.2 at (place, speed) and 0.3 at (speed, place)
    """
    skew = np.abs(matrix - matrix.T)
    if skew.max(initial=0.0) > SEMIDEFINITE * np.abs(matrix).max(initial=0.0):
        i, j = (int(k) for k in np.unravel_index(skew.argmax(), skew.shape))
        row, column = (rows[i], rows[j]) if rows else (i, j)
        raise ValueError(
            f"{name} must be symmetric: it has {matrix[i, j]:g} at ({row}, {column}) and "
            f"{matrix[j, i]:g} at ({column}, {row})"
        )
    return (matrix + matrix.T) / 2


def check_semidefinite(name: str, matrix: np.ndarray, rows: Sequence[str] = ()) -> np.ndarray:
    """Symmetric part of a weight or a covariance, or an error that says why it is none.

    An eigenvalue may be negative by rounding.

    Examples
    --------
    >>> check_semidefinite("Q", np.diag([1.0, -2.0]))
    Traceback (most recent call last):
    ...
    ValueError: Q must be positive semidefinite, its smallest eigenvalue is -2; it has -2 at (1, 1)
    """
    matrix = check_symmetric(name, matrix, rows)
    smallest = np.linalg.eigvalsh(matrix).min(initial=np.inf)
    if smallest < -SEMIDEFINITE * np.abs(matrix).max(initial=0.0):
        k = int(matrix.diagonal().argmin())
        row, least = rows[k] if rows else k, matrix[k, k]
        raise ValueError(
            f"{name} must be positive semidefinite, its smallest eigenvalue is {smallest:.3g}; "
            + (
                f"it has {least:g} at ({row}, {row})"
                if least < 0
                else "entries next to the diagonal are greater than those on it allow"
            )
        )
    return matrix


def check_increasing(name: str, t: Any, least: int = 1) -> np.ndarray:
    """Times that increase, shape (n,), or an error that says where they do not.

    There have to be `least` of them.

    Examples
    --------
    >>> check_increasing("t", [0.0, 0.1, 0.1])
    Traceback (most recent call last):
    ...
    ValueError: t must increase, got t[1] = 0.1 and t[2] = 0.1: leave one out, or give it a later \
time
    """
    times = check_shape(name, t, (None,))
    if len(times) < least:
        raise ValueError(
            f"{name} must hold at least {least} time{'s' * (least > 1)}, got {len(times)}"
        )
    early = np.flatnonzero(np.diff(times) <= 0)
    if len(early):
        k = int(early[0])
        raise ValueError(
            f"{name} must increase, got {name}[{k}] = {times[k]:g} and {name}[{k + 1}] = "
            f"{times[k + 1]:g}: leave one out, or give it a later time"
        )
    return times


def check_mapping(name: str, value: Any, example: str) -> Mapping[str, Any]:
    """A mapping by name, or an error that shows one; None is an empty one.

    The example is written as in ``"'wind': 0.1"``.

    Examples
    --------
    >>> check_mapping("where", [1.0], "'angle': 0.5")
    Traceback (most recent call last):
    ...
    TypeError: where must be a mapping of names, as in where={'angle': 0.5}; got [1.0]
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} must be a mapping of names, as in {name}={{{example}}}; got {value!r}"
        )
    return value


def level_outside() -> int:
    """Stack level of the first frame outside of this package, for a warning by who calls this.

    Whatever stands between the user's line and the warning, its text names that line.

    Examples
    --------
    >>> level_outside() >= 1
    True
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None:
        room = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if room != OWN_PACKAGE and room not in ("contextlib", "functools"):
            return level
        frame, level = frame.f_back, level + 1
    return 1


def read_only(array: np.ndarray) -> np.ndarray:
    """View of an array that nobody writes to: what others go on from.

    Examples
    --------
    >>> read_only(np.zeros(2))[0] = 1.0
    Traceback (most recent call last):
    ValueError: assignment destination is read-only
    """
    view = array.view()
    view.flags.writeable = False
    return view


def format_shape(shape: Sequence[int | None], batch: bool = False) -> str:
    """Write a shape as in ``(..., 3)``; unknown lengths are ``n``.

    Examples
    --------
    >>> format_shape((None, 3), batch=True)
    '(..., n, 3)'
    """
    parts = ["..."] * batch + ["n" if n is None else str(n) for n in shape]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Names of a list of them; a text is one name, not its letters.

    Examples
    --------
    >>> as_names("mass"), as_names(["mass", "inertia"])
    (('mass',), ('mass', 'inertia'))
    """
    return (names,) if isinstance(names, str) else tuple(names)


def check_one_by_one(function: str, names: Sequence[object]) -> None:
    """Refuse what is no name among positional arguments that are names, such as a list of them.

    Examples
    --------
    >>> check_one_by_one("symbolic", [["mass"]])
    Traceback (most recent call last):
    ...
    TypeError: symbolic takes names one by one, symbolic('a', 'b'), got ['mass']; unpack a \
list, symbolic(*names)
    """
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"{function} takes names one by one, {function}('a', 'b'), got {name!r}; unpack a "
                f"list, {function}(*names)"
            )


@overload
def named_options(called: F) -> F: ...
@overload
def named_options(*, own: str) -> Callable[[F], F]: ...
def named_options(called: Any = None, *, own: str = "") -> Any:
    """Let a function, or a class, say what its arguments are called and what they have to be.

    The call refuses unknown names, too many positional arguments, and arguments of a wrong kind: a
    text for a number, a tree for a system. Shapes and values are the function's own business.

    Calls are `interruptible`.

    Parameters
    ----------
    called : callable
    own : str
        Arguments, between spaces, that the function itself refuses with better words.

    Returns
    -------
    callable
        The same; of a class its constructor is replaced.

    Examples
    --------
    >>> @named_options
    ... def turn(angle, *, degrees=False): ...
    >>> turn(90, degree=True)
    Traceback (most recent call last):
    ...
    TypeError: turn(): unknown argument 'degree'; valid names are angle, degrees. \
Did you mean 'degrees'?
    >>> turn(90, True)
    Traceback (most recent call last):
    ...
    TypeError: turn() takes 1 argument by position (angle), got 2: name the others (degrees)
    >>> @named_options
    ... def wait(seconds: float): ...
    >>> wait("long")
    Traceback (most recent call last):
    ...
    TypeError: wait(): seconds must be a number, got 'long'
    """
    if called is None:
        return lambda called: _checked(called, frozenset(own.split()))
    return _checked(called, frozenset())


def _checked(called: Any, own: frozenset[str]) -> Any:
    """See `named_options`."""
    made: Any = called
    function: Any = made.__init__ if isinstance(called, type) else called
    if getattr(function, "__wrapped__", None):
        return made
    parameters = _named_parameters(called, function)
    kinds = {entry.kind for entry in parameters}
    names = [entry.name for entry in parameters if entry.name not in _BOUND]
    known = None if Parameter.VAR_KEYWORD in kinds else frozenset(names)
    names = [name for name in names if not name.startswith("_")]  # those that users give
    ordered = [entry.name for entry in parameters if entry.kind in _BY_POSITION]
    most = np.inf if Parameter.VAR_POSITIONAL in kinds else len(ordered)
    makes = function.__name__ == "__init__"
    owner: type = made if isinstance(made, type) else object
    finishes = makes and hasattr(owner, "_finish_making")  # see `Immutable`
    called = interruptible(function)
    required = [
        entry.name
        for entry in parameters
        if entry.default is entry.empty and entry.kind not in _VARIABLE
    ]
    single = {p.name: p for p in parameters if p.kind not in _VARIABLE}
    single = {key: entry for key, entry in single.items() if key not in {*_BOUND, *own}}
    leading = ordered[: len(required)]
    enough = len(required) if required == leading else np.inf  # by position, so that none lacks
    allowed: dict[str, tuple[Kind, ...]] | None = None  # read when first called
    sure: dict[str, frozenset[type]] = {}  # types that need no look at the value

    def check(name: str, values: tuple[Any, ...], options: dict[str, Any]) -> None:
        nonlocal allowed
        if allowed is None:
            space = dict(function.__globals__)
            for module in (sys.modules[kind.__module__] for kind in owner.__mro__ if makes):
                space = {**vars(module), **space}  # where the annotations were written
            allowed = {key: _allowed(entry, space) for key, entry in single.items()}
            allowed = {key: kinds for key, kinds in allowed.items() if kinds}
            for key, kinds in allowed.items():
                sure[key] = frozenset(one for kind in kinds for one in kind.surely)
        given = chain(zip(ordered, values, strict=False), options.items())
        for key, value in given:
            kinds = allowed.get(key)
            if kinds and type(value) not in sure[key]:
                wrong = refusal(key, value, kinds)
                if wrong:
                    raise TypeError(f"{name}(): {wrong}")

    def unbound(entries: list[str], values: tuple[Any, ...]) -> list[str]:
        # Functions of modules are methods, too: nobody gives their first argument.
        first = ordered[:1] if _method_name(checked, values) else []
        return [entry for entry in entries if entry not in {*_BOUND, *first}]

    @wraps(function)
    def checked(*values: Any, **options: Any) -> Any:
        name = type(values[0]).__name__ if makes else function.__name__
        for option in options:
            if known is not None and option not in known:
                offered = unbound(names, values)
                called_as = "" if makes else _method_name(checked, values) or name
                text = f"{called_as or name}(): {unknown_name('argument', option, offered)}"
                raise TypeError(text + _renamed_argument(called_as, values, option))
        if len(values) > most:
            own = unbound(ordered, values)
            less = len(ordered) - len(own)
            count = f"{len(own) or 'no'} argument{'s' * (len(own) != 1)} by position"
            groups = own, unbound(names, values)[len(own) :]
            shown, others = (f" ({', '.join(group)})" if group else "" for group in groups)
            raise TypeError(
                f"{name}() takes {count}{shown}, got {len(values) - less}"
                + f": name the others{others}" * bool(others)
            )
        if len(values) < enough:
            taken = ordered[: len(values)]
            missing = [key for key in required if key not in options and key not in taken]
            if missing:
                raise TypeError(f"{name}() lacks {', '.join(missing)}: give {missing[0]}=…")
        check(name, values, options)
        result = called(*values, **options)
        if finishes and type(values[0]).__init__ is checked:  # no constructor around this one
            values[0]._finish_making()
        return result

    made_signature = signature(function).replace(parameters=parameters)
    cast(Any, checked).__signature__ = made_signature
    if makes:
        made.__init__ = checked
        return made
    made = checked
    return made


def _method_name(function: Any, values: tuple[Any, ...]) -> str:
    """What a function is called as a method of its first argument; empty if it is none."""
    kinds = type(values[0]).__mro__ if values else ()
    members = chain.from_iterable(vars(kind).items() for kind in kinds)
    return next((name for name, value in members if value is function), "")


def _renamed_argument(called_as: str, values: tuple[Any, ...], option: str) -> str:
    """What became of an argument that there was once, or of arguments of any name."""
    hints = []
    for argument in (f"{called_as}({option}=)", f"{called_as}(**)"):
        hints += [function_hint(argument)] * bool(called_as)
        if values:
            owner = values[0] if isinstance(values[0], type) else type(values[0])
            hints.append(member_hint(owner, argument))
    hint = next(filter(None, hints), "")
    return f" {option!r} {hint}" * bool(hint)


def check_options(options: Iterable[str], *takers: Any, but: Sequence[str] = ()) -> None:
    """Refuse options that none of some functions takes; the first one is named.

    A person calls the first of the functions, which hands options on to the others, `but` those.

    Examples
    --------
    >>> def solve(x0, *, solver=None, **options): ...
    >>> def iterate(x0, *, tolerance=1e-6): ...
    >>> check_options(["tolerence"], solve, iterate)
    Traceback (most recent call last):
    ...
    TypeError: solve(): unknown argument 'tolerence'; valid names are x0, solver, tolerance. \
Did you mean 'tolerance'?
    """
    names = dict.fromkeys(
        entry.name
        for taker in takers
        for entry in signature(taker).parameters.values()
        if entry.kind not in _VARIABLE and entry.name not in (*_BOUND, *but)
    )
    for option in options:
        if option not in names:
            called, owner = takers[0].__name__, getattr(takers[0], "__self__", None)
            hint = _renamed_argument(called, () if owner is None else (owner,), option)
            raise TypeError(f"{called}(): {unknown_name('argument', option, list(names))}{hint}")


def _named_parameters(called: Any, function: Any) -> list[Parameter]:
    """Parameters of a function; of a constructor with those that it hands on to its base.

    ``**options: Unpack[Options]`` stands for the keys of that TypedDict, with the defaults that the
    constructor of the base has.
    """
    found = list(signature(function).parameters.values())
    handed_on = re.fullmatch(r"Unpack\[(\w+)\]", str(found[-1].annotation)) if found else None
    if not isinstance(called, type) or handed_on is None:
        return found
    base: Any = super(called, called)
    known = signature(base.__init__).parameters
    options = function.__globals__[handed_on[1]]
    return [*found[:-1], *(known[name] for name in options.__annotations__)]


def _allowed(entry: Parameter, space: Mapping[str, Any]) -> tuple[Kind, ...]:
    """Kinds of an argument; None is one where it is the default."""
    kinds = () if entry.annotation is entry.empty else kinds_of(entry.annotation, space)
    return (*kinds, *kinds_of(None, {})) if kinds and entry.default is None else kinds


_BOUND = ("self", "cls")  # what methods get without being given it
_VARIABLE = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class UnknownNameError(KeyError, ValueError):
    """A name that nothing is called by; the message lists those there are (`unknown_name`).

    It is a KeyError and a ValueError, whichever a caller expects. Its text is the message, without
    the quotes that ``str`` of a KeyError adds.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, Product
    >>> Product(pose=SE3).tangent_slice("poze")
    Traceback (most recent call last):
    ...
    lgcontrol.codegen._validate.UnknownNameError: unknown block 'poze'; valid names are pose. \
Did you mean 'pose'?
    """

    def __str__(self) -> str:
        """Return the message."""
        return str(self.args[0]) if self.args else ""


def unknown_name(kind: str, name: object, valid: Iterable[str]) -> str:
    """Message for an unknown name: lists the valid ones and suggests the nearest.

    Of more than 30 the nearest 20 are listed, after the suggestion.

    Examples
    --------
    >>> unknown_name("method", "rk5", ["euler", "rk4"])
    "unknown method 'rk5'; valid names are euler, rk4. Did you mean 'rk4'?"
    >>> unknown_name("frame", "hand", ["panda_link0", "panda_hand"])[-27:]
    " Did you mean 'panda_hand'?"
    >>> unknown_name("joint", "joint_7", [f"joint{k}" for k in range(100)])[:71]
    "unknown joint 'joint_7'. Did you mean 'joint7'? Valid names (100, the n"
    """
    names = list(valid)
    given, lower = str(name).lower(), {entry.lower(): entry for entry in reversed(names)}
    # One letter in three, four or five may be wrong: long words that share more are other words.
    cutoff = 0.6 if len(given) <= 3 else 0.75 if len(given) <= 6 else 0.8
    longer = [entry for entry in lower if len(given) > 1 and entry.startswith(given)]
    longer = longer or [entry for entry in lower if len(given) > 2 and entry.endswith(given)]
    near = get_close_matches(given, lower, n=1, cutoff=cutoff) or longer[: len(longer) == 1]
    hint = f" Did you mean {lower[near[0]]!r}?" if near else ""
    if len(names) <= WHOLE:
        known = f"valid names are {', '.join(names)}" if names else "there are none"
        return f"unknown {kind} {name!r}; {known}.{hint}"
    stem, dot, _ = given.rpartition(".")
    of_same = [entry for entry in reversed(lower) if dot and entry.startswith(stem + dot)]
    near_by = get_close_matches(given, lower, n=SHOWN_NAMES, cutoff=0.0)
    nearest = list(dict.fromkeys([*near, *of_same, *near_by]))[:SHOWN_NAMES]
    listed = ", ".join(lower[entry] for entry in nearest)
    return (
        f"unknown {kind} {name!r}.{hint} Valid names ({len(names)}, the nearest {len(nearest)} "
        f"are listed): {listed}."
    )


def check_known(kind: str, valid: Collection[str], *names: Any, where: str = "") -> None:
    """Refuse names that are not among the valid ones, by the message of `unknown_name`.

    The message begins with what the names are said of.

    Examples
    --------
    >>> check_known("axis", ("x", "y"), "x", "z", where="motor 'a'")
    Traceback (most recent call last):
    ...
    lgcontrol.codegen._validate.UnknownNameError: motor 'a': unknown axis 'z'; valid names are x, y.
    """
    for name in names:
        if not (isinstance(name, str) and name in valid):
            before = f"{where}: " if where else ""
            raise UnknownNameError(before + unknown_name(kind, name, valid))


# Angles in rad beyond which one asks whether they are degrees, the two turns of a long cable, and
# limits beyond which they stand for none.
LONG_CABLE, NO_LIMIT = 4.0 * np.pi, 720.0
BY_HAND = 5.0  # angles that people write in degrees are multiples; those in rad hardly ever


def in_degrees(values: Any) -> float:
    """The first of some angles in rad that looks like one in degrees; 0 if none does.

    Asked about are multiples of 5 from two turns to 720, of values in rad.

    Examples
    --------
    >>> in_degrees([0.3, 90]), in_degrees([0.3, 6.5])
    (90.0, 0.0)
    """
    for value in [values] if type(values) is float else np.ravel(values).tolist():
        if LONG_CABLE < abs(value) <= NO_LIMIT and value % BY_HAND == 0:
            return float(value)
    return 0.0


def ask_degrees(
    what: str, angle: float, remedy: str = "", *, beyond: float = LONG_CABLE, most: float = np.inf
) -> bool:
    """Ask by a warning whether an angle that is several turns is one in degrees.

    It asks about sizes in rad from `beyond` to `most`, and returns whether it did. The remedy is
    for an angle that is meant; for another it is np.radians.
    """
    if not beyond < abs(angle) <= most:
        return False
    turns = angle / (2.0 * np.pi)
    warnings.warn(
        f"{what} of {angle:g} rad is {turns:.1f} turns: are these degrees? "
        f"{remedy or f'Then give np.radians({angle:g})'}",
        stacklevel=level_outside(),
    )
    return True
