"""Program: what a ModelFunction computes, in a form that C can be written for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import casadi as ca

from ._emit import emit_body

# Glue that calls SX functions is turned into one SX function up to this many instructions.
_EXPAND_LIMIT = 30_000

# Their scalar operations grow with the cube of the size, and pivoting is lost.
_GROWING = frozenset({ca.OP_SOLVE, ca.OP_INVERSE, ca.OP_DETERMINANT, ca.OP_MAP})


@dataclass(frozen=True)
class Chain:
    """How a step function is repeated: which argument is carried on, which differ by step.

    Attributes
    ----------
    argument, result : int
        Position of the argument that receives the result of the step before.
    each : tuple of int
        Positions of the arguments that have a value of their own in each step.
    """

    argument: int
    result: int
    each: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A function of dense arguments, or a chain of steps of one.

    Attributes
    ----------
    function : casadi.Function
        The function, or the single step of a chain.
    chain : Chain or None
    """

    function: ca.Function
    chain: Chain | None = None

    @cached_property
    def body(self) -> str | None:
        """C function ``lg_body`` for any number type, None where only CasADi writes the code."""
        flat = self.flat
        return None if flat is None else emit_body(flat, "lg_body")

    @cached_property
    def flat(self) -> ca.Function | None:
        """The function as an SX function; None when it is none and cannot become a small one."""
        if self.function.is_a("SXFunction"):
            return self.function
        if _expanded_size(self.function) > _EXPAND_LIMIT:
            return None
        try:
            return self.function.expand()
        except RuntimeError:
            return None

    @cached_property
    def instructions(self) -> int:
        """Operations of one evaluation, as far as CasADi can count them."""
        return (self.flat or self.function).n_instructions()

    @property
    def sizes_in(self) -> list[int]:
        """Numbers in each argument of one step."""
        return [self.function.numel_in(i) for i in range(self.function.n_in())]

    @property
    def sizes_out(self) -> list[int]:
        """Numbers in each result of one step."""
        return [self.function.numel_out(i) for i in range(self.function.n_out())]


def casadi_code(function: ca.Function) -> str:
    """C code by CasADi's generator, everything in it static; the entry is ``lg_function``.

    Raises
    ------
    NotImplementedError
        If the function holds something CasADi has no C code for, or keeps state between calls.
    """
    symbol: Callable[..., Sequence] = (
        function.sx_in if function.is_a("SXFunction") else (function.mx_in)
    )
    arguments = symbol()
    # A function keeps its name in C, where `step`, `index` or `y0` would clash with the C library.
    renamed = ca.Function("lg_function", arguments, function.call(arguments, True, False))
    generator = ca.CodeGenerator("lg_code")
    try:
        generator.add(renamed)
        code = generator.dump()
    except RuntimeError as error:
        raise NotImplementedError(str(error).strip().splitlines()[-1]) from None
    if "lg_function_checkout(void) {\n  return 0;\n}" not in code:
        raise NotImplementedError("its C code would keep state between calls")
    return code


def _expanded_size(function: ca.Function) -> float:
    """Upper estimate of the operations of the function as one SX function."""
    if function.is_a("SXFunction"):
        return function.n_instructions()
    if not function.is_a("MXFunction"):
        return math.inf
    size = 0.0
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        if operation in _GROWING:
            return math.inf
        node = function.instruction_MX(k)
        if operation == ca.OP_CALL:
            size += _expanded_size(node.which_function())
        elif operation not in (ca.OP_INPUT, ca.OP_OUTPUT):
            inner = node.dep(1).size2() if operation == ca.OP_MTIMES else 1
            size += node.nnz() * inner
        if size > _EXPAND_LIMIT:
            return size
    return size
