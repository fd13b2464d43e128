"""Model functions of trees: declared beside what builds them, traced when first used, kept.

A function without options is its builder under `declared`; one that takes names (of a frame, a
reference, joints) or an order is an ordinary function under `takes_names` that returns
`function_of` a `Declaration`. Both become attributes of the class that users hold by being named
in its body.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import update_wrapper, wraps
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

import casadi as ca
import numpy as np

from ....codegen import ModelFunction, Value
from ....codegen._internal import Shape, check_known, interruptible
from ...representations._forms import check_reference
from ..tree._tree import Tree
from ._compiled_tree import CompiledTree, compiled

P = ParamSpec("P")
R = TypeVar("R")
Maker = TypeVar("Maker", bound="Callable[..., TreeFunction]")

Code = str | tuple[str | int, ...]
"""Shape of a result, see `Declaration`."""

LARGEST_FUNCTION = 2_000_000
"""Entries of a tensor that is still traced: beyond it takes gigabytes, and minutes."""

_LONG = 5.0  # s: traces that take longer are announced
_ENTRY_SECONDS = 2e-4  # measured: all tensors of dynamics, chains of 16 to 32 joints
_RATES = ("v", "a", "j", "s", "c")


def _has_rows(argument: str) -> bool:
    """Whether an argument has a row for each body: momenta, twists, wrenches, their rates."""
    return argument in ("momenta", "twists", "twist_rates") or argument.startswith("wrenches")


_logger = logging.getLogger("lgcontrol.mechanics")


def wrench_names(order: int) -> list[str]:
    """Names of external wrenches and their rates up to an order: wrenches, wrenches_dot, ….

    They are arguments with a row for each body, in body frames.
    """
    return [f"wrenches{ending}" for ending in derivative_endings(order)]


def derivative_endings(order: int) -> list[str]:
    """What names of time derivatives end in: "", "_dot", "_ddot", "_3", …."""
    return ["", "_dot", "_ddot", *(f"_{n}" for n in range(3, order + 1))][: order + 1]


def _columns(key: str, shape: Shape) -> Shape:
    """Shape in CasADi: a column for each body."""
    return shape[::-1] if _has_rows(key) else shape


def rate_names(count: int) -> list[str]:
    """Names of the velocity and its derivatives: v, a, j (jerk), s (snap), c (crackle), v5, ….

    The sixth and later ones are called by how often the velocity is differentiated.
    """
    return [_RATES[i] if i < len(_RATES) else f"v{i}" for i in range(count)]


class LargeTreeBuilder(Protocol):
    """The same function for large trees, in code that does not grow with them."""

    def suits(self, tree: CompiledTree) -> bool:
        """Whether it is the better way for a tree."""
        ...

    def function(
        self,
        name: str,
        tree: CompiledTree,
        p: ca.SX,
        arguments: dict[str, ca.SX],
        results: list[str],
    ) -> ca.Function:
        """The casadi.Function."""
        ...


@dataclass(frozen=True, eq=False)
class Declaration:
    """A model function of trees.

    Shapes of results are v (nv), vv (nv × nv), vvv (the slices of a tensor side by side), 3, 6, 6v
    and "" for a scalar. A row for each body is b6, ten numbers for each body p, six rows for each
    body w. Other numbers are a tuple: ("v", 36).
    """

    name: str  # of the function, and of the attribute of the class that users hold
    arguments: str  # names: q, v, a, tau; rates of a beyond (see `rate_names`)
    results: Mapping[str, Code]  # name and shape of each
    build: Callable[..., Any]  # ``(compiled tree, q, …) → expressions``
    regrouped: bool = False  # whether regrouped inertias give the same result
    wrenches: bool = False  # whether external wrenches may follow the arguments
    about: str = ""  # what it is of, a frame for example, for its name
    is_rigid: bool = False  # whether trees with added mass are refused
    keep: tuple[str, ...] = ()  # fixed joints that get a node of their own
    check: Callable[[Tree], None] | None = None  # raises if a tree has no such function
    assemble: Callable[..., Any] | None = None  # from what build returns, in products of matrices
    large: LargeTreeBuilder | None = None
    instead: str = ""  # of tensors that are too large to trace

    @property
    def symbol(self) -> str:
        """Name of the casadi.Function."""
        word = re.sub(r"[^A-Za-z0-9]+", "_", self.about).strip("_")
        return f"{self.name}_of_{word or 'frame'}" if self.about else self.name

    @interruptible
    def trace(self, tree: Tree, *, wrenches: bool) -> tuple[ca.Function, dict[str, Any]]:
        """The casadi.Function for a tree, and the options of its ModelFunction."""
        bodies = len(tree.bodies)
        sizes: dict[str, Shape] = {
            "q": (tree.nq,),
            "wrench": (6,),
            "p": (len(tree.parameters),),
        }
        names = self.arguments.split() + ["wrenches"] * wrenches
        for key in names:
            sizes.setdefault(key, (bodies, 6) if _has_rows(key) else (tree.nv,))
        symbols = {key: ca.SX.sym(key, *_columns(key, sizes[key])) for key in names}
        p = ca.SX.sym("p", len(tree.parameters))
        made = compiled(tree, p, regrouped=self.regrouped, keep=self.keep)
        arguments = symbols | ({"p": p} if tree.parameters else {})
        letters = {"v": tree.nv, "b": bodies, "p": 10 * bodies, "w": 6 * bodies}
        options: dict[str, Any] = {
            "shapes": {key: sizes[key] for key in arguments}
            | {
                key: tuple(letters[x] if x in letters else int(x) for x in code)
                for key, code in self.results.items()
            },
            "defaults": {"p": tree.parameter_values} if tree.parameters else {},
            "transposed": [key for key in names if _has_rows(key)]
            + [key for key, code in self.results.items() if code == "b6"],
        }
        name, results = self.symbol + "_with_wrenches" * wrenches, list(self.results)
        if self.large is not None and self.large.suits(made):
            return self.large.function(name, made, p, arguments, results), options
        self._check_size(made)
        built = self.build(made, *symbols.values())
        built = list(built) if isinstance(built, tuple) else [built]
        built = ca.cse([ca.SX(expression) for expression in built])
        if self.assemble is None:
            given = list(arguments.values())
            return ca.Function(name, given, built, list(arguments), results), options
        parts = ca.Function(f"{name}_parts", list(arguments.values()), built)
        matrices = [ca.MX.sym(key, *x.shape) for key, x in arguments.items()]
        built = list(self.assemble(*parts.call(matrices)))
        return ca.Function(name, matrices, built, list(arguments), results), options

    def _check_size(self, tree: CompiledTree) -> None:
        """Announce a trace that takes long; refuse one beyond all measure, with what to use."""
        if not self.instead:
            return
        entries = self._entries(tree)
        if entries > LARGEST_FUNCTION:
            raise ValueError(
                f"{self.symbol} of {tree.nv} velocities has {entries} entries that are not zero, "
                f"too many to trace: {self.instead}, or lock joints that do not matter"
            )
        if entries * _ENTRY_SECONDS > _LONG:
            _logger.warning(
                "lgcontrol: tracing %s of %d velocities (%d entries) takes about %.0f s: %s",
                self.symbol,
                tree.nv,
                entries,
                entries * _ENTRY_SECONDS,
                self.instead,
            )

    def _entries(self, tree: CompiledTree) -> int:
        """Entries of the results: of tensors, those with the three on one path."""
        depths: list[int] = []  # velocities from the root to each node
        total = triples = 0
        for node in tree.nodes:
            own = node.S.shape[1]
            before = depths[node.parent] if node.parent >= 0 else 0
            depths.append(before + own)
            triples += depths[-1] ** 3 - before**3
        for code in self.results.values():
            if code == "vvv":
                total += triples
            elif isinstance(code, tuple) and code[0] == "v":
                total += 3 * tree.nv * int(code[1])  # longer expressions
        return total


class TreeFunction(ModelFunction):
    """A model function of a tree, with external wrenches as an argument that may be left out.

    Without wrenches a smaller function is evaluated; `.with_wrenches` is the other one. Trees make
    these functions, users call them.

    Parameters
    ----------
    tree : Multibody
    declaration : Declaration
        Arguments, results and what builds them.
    options : tuple
        Names, orders and the like that the function was asked for with; pickling goes by them.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> tree.inverse_dynamics
    inverse_dynamics(q(1,), v(1,), a(1,)) -> tau(1,)
    >>> tree.inverse_dynamics([0.0], [0.0], [0.0], wrenches=[[3.0, 0, 0, 0, 0, 0]])
    array([0.])
    """

    def __init__(self, tree: Tree, declaration: Declaration, options: tuple[Any, ...] = ()) -> None:
        function, settings = declaration.trace(tree, wrenches=False)
        super().__init__(function, **settings)
        self._tree, self._declaration, self._options = tree, declaration, options
        self._with_wrenches: ModelFunction | None = None

    @property
    def takes_wrenches(self) -> bool:
        """Whether external wrenches matter to the function."""
        return self._declaration.wrenches

    @property
    def with_wrenches(self) -> ModelFunction:
        """The same function with the argument `wrenches` after its own.

        Raises
        ------
        TypeError
            If external wrenches do not matter to the function.
        """
        if not self.takes_wrenches:
            raise TypeError(f"{self.name} does not depend on external wrenches")
        if self._with_wrenches is None:
            function, settings = self._declaration.trace(self._tree, wrenches=True)
            self._with_wrenches = ModelFunction(function, **settings)
        return self._with_wrenches

    def __call__(self, *values: Value, **named: Value) -> Any:
        """Evaluate; see `ModelFunction`."""
        if self.takes_wrenches:
            own = len(self.arguments) - ("p" in self.arguments)
            if "wrenches" in named or len(values) > own:
                if len(values) > own:
                    self._refuse_parameters(values[own])
                return self.with_wrenches(*values, **named)
        return super().__call__(*values, **named)

    def _refuse_parameters(self, value: Any) -> None:
        """Refuse a row of numbers in the place of wrenches that is one for the parameters."""
        count, bodies = len(self._tree.parameters), len(self._tree.bodies)
        shape = np.shape(value) if not isinstance(value, ca.SX | ca.MX | ca.DM) else value.shape
        is_row = len(shape) == 1 or len(shape) == 2 and shape[1] == 1 < bodies
        if count and is_row and shape[0] == count:
            raise ValueError(
                f"{self.name}: {count} numbers stand where wrenches would, shape ({bodies}, 6); "
                "parameters are given by name: p=…"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._tree, self._declaration.name, self._options)


def _restore(tree: Tree, name: str, options: tuple[Any, ...]) -> TreeFunction:
    made = getattr(tree, name)
    return made(*options) if options else made


def function_of(tree: Tree, declaration: Declaration, *options: Any) -> TreeFunction:
    """The function of a tree: traced, or found where it was traced before.

    Options are what the tree's method of this name was called with, all of it.
    """

    def make() -> TreeFunction:
        if declaration.is_rigid:
            _refuse_added_mass(tree, declaration.name)
        if declaration.check is not None:
            declaration.check(tree)
        return TreeFunction(tree, declaration, options)

    return tree.memo((declaration.name, options), make)


def _refuse_added_mass(tree: Tree, name: str) -> None:
    wet = [link.name for link in tree._links if link.added_mass is not None]
    if wet:
        raise ValueError(
            f"{name} knows inertias of rigid bodies only, and a fluid adds to that of "
            f"{', '.join(map(repr, wet))}: take the tree without, "
            f"tree.with_added_mass({{{wet[0]!r}: None}})"
        )


class Declared(Generic[P, R]):
    """A builder that is an attribute of trees too: there it is their `TreeFunction`.

    Called, it builds expressions from those of a compiled tree; `of` gives the function of a tree.
    """

    def __init__(self, build: Callable[P, R], declaration: Declaration) -> None:
        self.declaration = declaration
        update_wrapper(self, build)

    def __call__(self, *values: P.args, **named: P.kwargs) -> R:
        """Build."""
        return self.declaration.build(*values, **named)

    def of(self, tree: Tree) -> TreeFunction:
        """The function of a tree."""
        return function_of(tree, self.declaration)

    @overload
    def __get__(self, tree: None, kind: type) -> Declared[P, R]: ...
    @overload
    def __get__(self, tree: Tree, kind: type) -> TreeFunction: ...
    def __get__(self, tree: Tree | None, kind: type) -> Declared[P, R] | TreeFunction:
        return self if tree is None else self.of(tree)


def declared(
    arguments: str, results: Mapping[str, Code], **fields: Any
) -> Callable[[Callable[P, R]], Declared[P, R]]:
    """Declare a builder as a function of trees, under its own name; see `Declaration`."""

    def declare(build: Callable[P, R]) -> Declared[P, R]:
        name = build.__name__  # type: ignore[attr-defined]
        return Declared(build, Declaration(name, arguments, results, build, **fields))

    return declare


def takes_names(make: Maker) -> Maker:
    """The maker of a function, with an error for who gives it numbers, which names both steps."""

    @wraps(make)
    def checked(tree: Tree, *options: Any, **named: Any) -> TreeFunction:
        given = (*options, *named.values())
        if any(_is_numeric(value) for value in given):
            name = make.__name__  # type: ignore[attr-defined]
            names = [repr(value) for value in given if isinstance(value, str)]
            raise TypeError(
                f"{name}(...) makes a function and takes names, got an array: call it in two "
                f"steps, function = tree.{name}({', '.join(names) or '...'}), then function(q, ...)"
            )
        return make(tree, *options, **named)

    return checked  # type: ignore[return-value]


def _is_numeric(value: Any) -> bool:
    """Whether a value is for the function, not for the method that makes it."""
    if isinstance(value, list | tuple):
        return any(_is_numeric(entry) or isinstance(entry, int | float) for entry in value)
    return isinstance(value, np.ndarray | ca.SX | ca.MX | ca.DM)


def frame_function(
    tree: Tree,
    name: str,
    arguments: str,
    results: Mapping[str, Code],
    build: Callable[..., Any],
    frame: str,
    reference: str | None = None,
    *options: Any,
    keep: tuple[str, ...] = (),
    **settings: Any,
) -> TreeFunction:
    """Function of one frame, from ``build(compiled tree, q, …, frame=NodeFrame, **settings)``.

    `options` are what the tree's method takes after the frame and the reference, if it takes one.
    """
    if not isinstance(frame, str):
        frames = ", ".join(tree.frames)
        raise TypeError(f"frame must be a name, got {frame!r}; valid names are {frames}")
    given = (frame, *(() if reference is None else (reference,)), *options)
    check_known("frame", tree.frames, frame)
    if reference is not None:
        check_reference(reference)
        settings["reference"] = reference

    def at_frame(made: CompiledTree, *values: Value) -> Any:
        return build(made, *values, frame=made.frames[frame], **settings)

    declaration = Declaration(name, arguments, results, at_frame, about=frame, keep=keep)
    return function_of(tree, declaration, *given)


def check_order(order: Any, zeroth: str) -> int:
    """The order of a derivative: an integer of at least 1."""
    if isinstance(order, bool) or not hasattr(order, "__index__") or order < 1:
        raise ValueError(
            f"the order of the derivative must be an integer of at least 1, not {order!r}; "
            f"the function itself is {zeroth}"
        )
    return order.__index__()
