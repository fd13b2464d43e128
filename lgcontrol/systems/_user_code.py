"""Callables of users called with symbols: what goes wrong there, said in terms of their code."""

from __future__ import annotations

import inspect
import math
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np


def call_with_symbols(
    label: str, build: Callable[..., Any], symbols: Sequence[Any], names: Sequence[str]
) -> Any:
    """What a callable returns for symbols.

    Parameters
    ----------
    label : str
        What it is, for messages.
    build : callable
    symbols : sequence
        Its arguments.
    names : sequence of str
        Their names, for messages.

    Raises
    ------
    TypeError
        If it takes other arguments, or decides by a value that is not known yet.

    Warns
    -----
    FutureWarning
        If it calls NumPy functions on CasADi values.
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
        except RuntimeError as error:
            if "truth value" not in str(error):
                raise
            raise TypeError(
                f"{label} decides by the value of a CasADi expression ({_place(error)}), which is "
                "not known when it is traced; instead of if, while, and, or, min, max use "
                "casadi.if_else(x > 0, a, b), casadi.logic_and, casadi.fmin, casadi.fmax"
            ) from error


def refuse_nan(label: str, function: ca.Function, point: Sequence[np.ndarray]) -> None:
    """Raise if a function of SX holds NaN: `float` and `math` make it of symbols without a word.

    Parameters
    ----------
    label : str
    function : casadi.Function
    point : sequence of ndarray
        Arguments at which to look whether there is any reason to search.
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
            stacklevel=_outside(),
        )


def _outside() -> int:
    """Stack level of the first frame outside of this package, seen from `_numpy_noticed`."""
    package = str(Path(__file__).parent.parent)
    level = 1
    frame = inspect.currentframe()
    frame = frame.f_back if frame is not None else None  # that of the caller, level 1
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(package) and Path(name).name != "contextlib.py":
            return level
        frame, level = frame.f_back, level + 1
    return 1
