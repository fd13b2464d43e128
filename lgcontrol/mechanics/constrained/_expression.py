"""What files of mechanisms hold: functions as text, and how a joint or a force was made."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

import casadi as ca

from ...codegen import Value, named_options
from ...codegen._internal import check_known
from ...systems._internal import call_with_symbols

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    name: getattr(ca, name)
    for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2", "exp", "log", "sqrt", "tanh")
}
CONSTANTS = {"pi": math.pi}
ARITHMETIC: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
# Arguments of functions where there are several.
ARGUMENTS = {"atan2": 2}
LONGEST = 1000
LEVELS = 100  # levels of a text: three calls each, far from the limit of Python


@dataclass(frozen=True)
class Expression:
    """A function of some variables as text: drives and laws that files of mechanisms can hold.

    Parameters
    ----------
    text : str
        Numbers, the variables, pi, ``+ - * / **``, parentheses and sin, cos, tan, asin, acos, atan,
        atan2, exp, log, sqrt, tanh.
    variables : str
        Separated by spaces: "t" for drives, "s w" for laws of displacement and speed, "u w" for
        curves of motors.

    Raises
    ------
    ValueError
        If the text has anything else in it, a part that is no finite real number, or more than 100
        levels.

    Examples
    --------
    >>> swing = Expression("pi/4 * cos(2*t)")
    >>> float(swing(ca.DM(0.0))) == math.pi / 4
    True
    """

    text: str
    variables: str = "t"

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or len(self.text) > LONGEST:
            raise ValueError(
                f"an expression is a text of at most {LONGEST} characters, not {self.text!r:.60}"
            )
        self(*(ca.SX.sym(name) for name in self.variables.split()))

    def __call__(self, *values: Value) -> Any:
        """Value at values of the variables."""
        try:
            tree = ast.parse(self.text.strip(), mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ValueError(f"{self.text!r:.100} is no expression: {error}") from None
        known = dict(zip(self.variables.split(), values, strict=True))
        return _value(tree.body, {**CONSTANTS, **known}, self.text)


def _value(node: ast.AST, known: Mapping[str, Any], text: str, level: int = 1) -> Any:
    """Value of a part of a text."""
    if level > LEVELS:
        raise ValueError(
            f"{text!r:.100} has more than {LEVELS} levels; use fewer signs, or pair the terms of "
            "long sums by parentheses"
        )
    try:
        found = _part(node, known, text, level)
    except ArithmeticError:  # of numbers alone: by zero, or beyond what floats hold
        found = math.nan
    if isinstance(found, complex) or (isinstance(found, float) and not math.isfinite(found)):
        raise ValueError(f"{text!r:.100}: {_source(node, text)} is no finite real number")
    return found


def _part(node: ast.AST, known: Mapping[str, Any], text: str, level: int) -> Any:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        check_known("variable", known, node.id, where=f"{text!r}")
        return known[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        parts = [_value(side, known, text, level + 1) for side in (node.left, node.right)]
        if isinstance(node.op, ast.Div) and ca.SX(parts[1]).is_zero():
            raise ValueError(f"{text!r:.100}: {_source(node, text)} divides by zero")
        return ARITHMETIC[type(node.op)](*parts)
    if isinstance(node, ast.UnaryOp) and type(node.op) in ARITHMETIC:
        return ARITHMETIC[type(node.op)](_value(node.operand, known, text, level + 1))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name, wanted = node.func.id, ARGUMENTS.get(node.func.id, 1)
        check_known("function", FUNCTIONS, name, where=f"{text!r}")
        if len(node.args) != wanted:
            raise ValueError(f"{text!r}: {name} has {len(node.args)} arguments; give it {wanted}")
        return FUNCTIONS[name](*(_value(entry, known, text, level + 1) for entry in node.args))
    raise ValueError(
        f"{text!r}: {_source(node, text)} is not allowed; write numbers, variables, + - * / ** and "
        f"functions ({', '.join(FUNCTIONS)})"
    )


def _source(node: ast.AST, text: str) -> str:
    """Text of a part, quoted."""
    return f"{ast.get_source_segment(text.strip(), node)!r:.100}"


def motion_of(label: str, motion: Any, resting: str) -> Callable[[Value], Value]:
    """Motion of a drive: functions are traced once, so that what they do wrong is said once.

    An `Expression` stays one, for files; `resting` says what holds a coordinate that rests.
    """
    if isinstance(motion, Expression):
        return motion
    if isinstance(motion, str):
        raise TypeError(
            f"{label}: motion must be a function t → coordinate, not a text; write "
            f"Expression({motion!r})"
        )
    if not callable(motion):
        raise TypeError(
            f"{label}: motion must be a function t → coordinate, not {motion!r}; a coordinate that "
            f"rests is {resting}"
        )
    t = ca.SX.sym("t")
    value = ca.SX(call_with_symbols(label, motion, [t], ["t"]))
    if value.shape != (1, 1):
        raise ValueError(f"{label}: motion must return one number, not shape {value.shape}")
    return ca.Function("motion", [t], [value])


P = ParamSpec("P")
Made = TypeVar("Made")


def recorded(make: Callable[P, Made]) -> Callable[P, Made]:
    """Function whose result keeps the function's name and its arguments as `recipe`."""
    own = signature(make)
    called = named_options(own=" ".join(own.parameters))(make)  # kinds are the joint's business

    @wraps(make)
    def kept(*values: P.args, **named: P.kwargs) -> Made:
        made = called(*values, **named)
        given: dict[str, Any] = dict(own.bind(*values, **named).arguments)
        object.__setattr__(made, "recipe", (make.__name__, given))
        return made

    return kept
