"""Model functions of a tree: traced when first used, kept with the tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ....codegen import ModelFunction, Shape, Value
from ._recipe import Code, Recipe
from ._sizes import check_size

if TYPE_CHECKING:
    from ..tree._tree import Multibody

_ROWS = ("wrenches", "momenta")  # arguments with a row for each body


def _taking_names(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with an error that explains the two steps to who calls it with numbers."""

    @wraps(method)
    def checked(self: Any, *options: Any, **named: Any) -> Any:
        given = (*options, *named.values())
        if any(_is_numeric(value) for value in given):
            name = method.__name__
            names = [repr(value) for value in given if isinstance(value, str)]
            raise TypeError(
                f"{name}(...) makes a function and takes names, got an array: call it in two "
                f"steps, function = tree.{name}({', '.join(names) or '...'}), then function(q, ...)"
            )
        return method(self, *options, **named)

    return checked


def _is_numeric(value: Any) -> bool:
    """Whether a value is for the function, not for the method that makes it."""
    if isinstance(value, list | tuple):
        return any(_is_numeric(entry) or isinstance(entry, int | float) for entry in value)
    return isinstance(value, np.ndarray | ca.SX | ca.MX | ca.DM)


class TreeFunction(ModelFunction):
    """A model function of a tree, with external wrenches as an argument that may be left out.

    Without wrenches a smaller function is evaluated; `.with_wrenches` is the other one. Trees make
    these functions, users call them.

    Parameters
    ----------
    tree : Multibody
    name : str
        Name of the casadi.Function.
    recipe : Recipe
        Arguments, results and the recursion that makes them.
    key : tuple
        What the tree knows the function by; pickling goes by it.

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

    def __init__(self, tree: Multibody, name: str, recipe: Recipe, key: Any) -> None:
        function, options = trace_recipe(tree, name, recipe, wrenches=False)
        super().__init__(function, **options)
        self._tree, self._recipe, self._key = tree, recipe, key
        self._with_wrenches: ModelFunction | None = None

    @property
    def with_wrenches(self) -> ModelFunction:
        """The same function with the argument `wrenches` after its own.

        Raises
        ------
        TypeError
            If external wrenches do not matter to the function.
        """
        if not self._recipe.takes_wrenches:
            raise TypeError(f"{self.name} does not depend on external wrenches")
        if self._with_wrenches is None:
            name = f"{self.name}_with_wrenches"
            function, options = trace_recipe(self._tree, name, self._recipe, wrenches=True)
            self._with_wrenches = ModelFunction(function, **options)
        return self._with_wrenches

    def __call__(self, *values: Value, **named: Value) -> Any:
        """Evaluate; see `ModelFunction`."""
        if self._recipe.takes_wrenches:
            own = len(self.arguments) - ("p" in self.arguments)
            if "wrenches" in named or len(values) > own:
                if len(values) > own:
                    self._refuse_parameters(values[own])
                return self.with_wrenches(*values, **named)
        return super().__call__(*values, **named)

    def _refuse_parameters(self, value: Any) -> None:
        """Refuse a row of numbers in the place of wrenches that is one for the parameters."""
        count = len(self._tree.parameters)
        shape = np.shape(value) if not isinstance(value, ca.SX | ca.MX | ca.DM) else value.shape
        is_row = len(shape) == 1 or len(shape) == 2 and shape[1] == 1 < len(self._tree.bodies)
        if count and is_row and shape[0] == count:
            raise ValueError(
                f"{self.name}: {count} numbers stand where wrenches would, shape "
                f"({len(self._tree.bodies)}, 6); parameters are given by name: p=…"
            )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._tree, self._key)


class FunctionSource(ABC):
    """What makes model functions and keeps them: the base of the rooms of a tree's functions.

    Methods that return a function take names; one that is given numbers says so.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in list(vars(cls).items()):
            returns = getattr(method, "__annotations__", {}).get("return")
            if returns == "TreeFunction" and not name.startswith("_"):
                setattr(cls, name, _taking_names(method))

    @property
    @abstractmethod
    def is_coupled(self) -> bool:
        """Whether joints mimic others."""

    @abstractmethod
    def _function(self, kind: str, *options: Any) -> TreeFunction:
        """Make a function, or find the one made before."""


def trace_recipe(
    tree: Multibody, name: str, recipe: Recipe, *, wrenches: bool
) -> tuple[ca.Function, dict[str, Any]]:
    """The casadi.Function of a recipe and the options of its ModelFunction."""
    sizes: dict[str, Shape] = {
        "q": (tree.nq,),
        "wrench": (6,),
        "wrenches": (len(tree.bodies), 6),
        "momenta": (len(tree.bodies), 6),
        "p": (len(tree.parameters),),
    }
    names = recipe.arguments.split() + ["wrenches"] * wrenches
    for key in names:
        sizes.setdefault(key, (tree.nv,))
    symbols = {
        key: ca.SX.sym(key, *sizes[key][::-1]) if key in _ROWS else ca.SX.sym(key, *sizes[key])
        for key in names
    }
    p = ca.SX.sym("p", len(tree.parameters))
    plan = tree._plan_for(p, reduced=recipe.is_reduced, keep=recipe.keep)
    arguments = symbols | ({"p": p} if tree.parameters else {})
    shapes = {key: sizes[key] for key in arguments}
    transposed = [key for key in names if key in _ROWS]
    for key, code in recipe.results:
        shapes[key] = _result_shape(code, tree)
        if code == "b6":
            transposed.append(key)
    results = [key for key, _ in recipe.results]
    defaults = {"p": tree.parameter_values} if tree.parameters else {}
    if recipe.loops is not None and recipe.loops.suit(plan):
        function = recipe.loops.function(name, plan, p, arguments, results)
        return function, {"shapes": shapes, "defaults": defaults, "transposed": transposed}
    check_size(plan, name, recipe)
    built = recipe.build(plan, *symbols.values())
    built = list(built) if isinstance(built, tuple) else [built]
    built = ca.cse([ca.SX(expression) for expression in built])
    if recipe.assemble is None:
        function = ca.Function(name, list(arguments.values()), built, list(arguments), results)
    else:
        parts = ca.Function(f"{name}_parts", list(arguments.values()), built)
        matrices = [ca.MX.sym(key, *arguments[key].shape) for key in arguments]
        built = list(recipe.assemble(*parts.call(matrices)))
        function = ca.Function(name, matrices, built, list(arguments), results)
    return function, {"shapes": shapes, "defaults": defaults, "transposed": transposed}


def _result_shape(code: Code, tree: Multibody) -> Shape:
    sizes = {"v": tree.nv, "b": len(tree.bodies), "p": 10 * len(tree.bodies)}
    return tuple(sizes[x] if x in sizes else int(x) for x in code)


def _restore(tree: Multibody, key: Any) -> TreeFunction:
    return tree._function(*key)
