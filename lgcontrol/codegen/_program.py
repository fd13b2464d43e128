"""Program: what a ModelFunction computes, in a form that C can be written for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca

from ._emit import Body, emit_body
from ._policy import pays
from ._tape import Tape, emit_tape, read_tape

# Glue that calls SX functions is turned into one SX function up to this many instructions.
_EXPAND_LIMIT = 30_000

# What a vector kernel may work on, half of what current processors have for a core alone.
_CACHE_BYTES = 2**20

# Their scalar operations grow with the cube of the size, and pivoting is lost.
_GROWING = frozenset({ca.OP_SOLVE, ca.OP_INVERSE, ca.OP_DETERMINANT, ca.OP_MAP})

# What the C code of CasADi says of the memory it works on.
_WORK = {
    name: re.compile(rf"if \(sz_{name}\) \*sz_{name} = (\d+);")
    for name in ("arg", "res", "iw", "w")
}

# Stands where there is no code for something; that on threads is not reached.
_ERROR = re.compile(r'#error +(?!"Unknown CASADI_THREAD_TYPE)(.*)')

MAPS = {"Map", "OmpMap", "ThreadMap"}

# Functions of other classes are solvers, or come from outside.
_PLAIN = MAPS | {
    "SXFunction",
    "MXFunction",
    "MapSum",
    "Switch",
    "BSplineInterpolant",
    "LinearInterpolant",
}


@dataclass(frozen=True)
class Chain:
    """How a step function is repeated: which argument is carried on, which differ by step.

    The argument at one position receives the result of the step before; those at the positions
    `each` have a value of their own in each step.
    """

    argument: int
    result: int
    each: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Program:
    """A function of dense arguments, or a chain of steps of one."""

    function: ca.Function
    chain: Chain | None = None

    @cached_property
    def flat(self) -> ca.Function | None:
        """The function as an SX function; None when it is none and cannot become a small one."""
        if self.function.is_a("SXFunction"):
            return self.function
        size = _size(self.function)
        if size.grows or size.operations > _EXPAND_LIMIT:
            return None
        try:
            return self.function.expand()
        except RuntimeError:
            return None

    def body(self, *, packed: bool, solves: bool = False) -> Body | None:
        """C function ``lg_body`` for any number type; None where only CasADi writes the code.

        If it `solves`, linear equations may be among its steps, as in `solving_tape`.
        """
        if self.flat is not None:
            return emit_body(self.flat, packed=packed)
        tape = self.solving_tape if solves else self.tape
        return None if tape is None else emit_tape(self.function, tape, packed=packed)

    @cached_property
    def tape(self) -> Tape | None:
        """The function as a table of steps; None where it is `flat`, or cannot become one."""
        return None if self.flat is not None else read_tape(self.function)

    @cached_property
    def solving_tape(self) -> Tape | None:
        """The same with small dense matrices and linear equations; see `read_tape`."""
        return None if self.flat is not None else read_tape(self.function, is_dense=True)

    @property
    def is_ours(self) -> bool:
        """Whether the code is written here, in pieces of moderate length, and not by CasADi."""
        return self.flat is not None or self.tape is not None

    @cached_property
    def written(self) -> int:
        """Operations that the code consists of, about: those in loops count once."""
        tape = self.tape or self.solving_tape
        if tape is None:
            return self.operations
        return sum(function.n_instructions() for function in tape.functions)

    @cached_property
    def most_memory(self) -> int:
        """Numbers that the code works on for one item, arguments and results included, at most."""
        numbers = sum(self.sizes_in) + sum(self.sizes_out)
        if self.flat is not None:
            return numbers + self.flat.n_instructions()
        tape = self.solving_tape
        if tape is None:
            return numbers
        longest = max((called.n_instructions() for called in tape.functions), default=0)
        return numbers + tape.size + longest

    def pays(self, calls: int) -> bool:
        """Whether interpreting that many calls takes longer than a build."""
        return pays(self.operations, self.written, calls)

    def suits_vectors(self, width: int) -> bool:
        """Whether that many items at once are quicker than one after the other.

        The loops of a tape use vectors for a single item as well. Several items pay then only if
        their memory stays in the cache.
        """
        if self.tape is None:
            return self.flat is not None
        return 8 * width * self.tape.size <= _CACHE_BYTES

    @cached_property
    def operations(self) -> int:
        """Scalar operations of one evaluation, about."""
        return _size(self.function).operations

    @cached_property
    def identity(self) -> str:
        """Text that differs for programs that compute something different.

        RuntimeError if the function cannot be written down: it calls back into Python, say.
        """
        return f"{self.chain} {self.function.serialize()}"

    @cached_property
    def sizes_in(self) -> list[int]:
        """Numbers in each argument of one step."""
        return [self.function.numel_in(i) for i in range(self.function.n_in())]

    @cached_property
    def sizes_out(self) -> list[int]:
        """Numbers in each result of one step."""
        return [self.function.numel_out(i) for i in range(self.function.n_out())]


@dataclass(frozen=True)
class CasadiCode:
    """C code by CasADi's generator, everything in it static; the entry is ``lg_function``.

    The entry is called with arrays of these lengths.
    """

    text: str
    arguments: int
    results: int
    integers: int
    numbers: int


def casadi_code(function: ca.Function) -> CasadiCode:
    """Let CasADi write a function in C.

    NotImplementedError if it holds something CasADi has no C code for, or keeps state between
    calls.
    """
    solver = solver_in(function)
    if solver is not None:
        raise NotImplementedError(
            f"it calls {solver}, whose failures compiled code would not report"
        )
    arguments: Any = function.sx_in() if function.is_a("SXFunction") else function.mx_in()
    # A function keeps its name in C, where `step`, `index` or `y0` would clash with the C library.
    renamed = ca.Function("lg_function", arguments, function.call(arguments, True, False))
    generator = ca.CodeGenerator("lg_code")
    try:
        generator.add(renamed)
        code = generator.dump()
    except RuntimeError as error:
        raise NotImplementedError(str(error).strip().splitlines()[-1]) from None
    errors = _ERROR.findall(code)
    if errors:
        raise NotImplementedError(errors[0])
    if "lg_function_checkout(void) {\n  return 0;\n}" not in code:
        raise NotImplementedError("its C code would keep state between calls")
    # What the code works on is its own, other than what `function` needs when interpreted: calling
    # a map from another function copies all it takes and returns.
    sizes = (int(_WORK[name].findall(code)[-1]) for name in ("arg", "res", "iw", "w"))
    return CasadiCode(code, *sizes)


@dataclass(frozen=True)
class _Size:
    """Operations of a function, and whether they would multiply when written out as scalars."""

    operations: int
    grows: bool


def _size(function: ca.Function) -> _Size:
    if function.is_a("SXFunction"):
        return _Size(function.n_instructions(), False)
    if function.class_name() in MAPS:
        parts = function.info()
        return _Size(parts["n"] * _size(parts["f"]).operations, True)
    if not function.is_a("MXFunction"):
        return _Size(function.nnz_in() + function.nnz_out(), True)
    operations, grows = 0, False
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        node = function.instruction_MX(k)
        grows = grows or operation in _GROWING
        if operation == ca.OP_CALL:
            inner = _size(node.which_function())
            operations, grows = operations + inner.operations, grows or inner.grows
        elif operation == ca.OP_MTIMES:
            operations += node.nnz() * node.dep(1).size2()
        elif operation not in (ca.OP_INPUT, ca.OP_OUTPUT):
            operations += node.nnz()
    return _Size(operations, grows)


def solver_in(function: ca.Function) -> str | None:
    """Name and class of a solver, or of foreign code, that the function calls, however deep.

    Linear equations are none: where they are singular the result is not a number.
    """
    if function.class_name() not in _PLAIN:
        return f"{function.name()} ({function.class_name()})"
    if function.is_a("MXFunction"):
        for k in range(function.n_instructions()):
            if function.instruction_id(k) == ca.OP_CALL:
                found = solver_in(function.instruction_MX(k).which_function())
                if found is not None:
                    return found
    return None
