"""system_of: the System of a model whose tree or body takes its options and describes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import signature
from typing import Any, ParamSpec, TypeVar, get_type_hints

from lgcontrol.codegen import named_options
from lgcontrol.groups import Product
from lgcontrol.systems import System

P = ParamSpec("P")
Tree = TypeVar("Tree")
Made = System[Product]


def system_of(make: Callable[P, Tree]) -> Callable[[Callable[[Tree], Made]], Callable[P, Made]]:
    """Model that takes the options of what makes its tree or body, and makes a System of that.

    Its docstring gets the description of the options, its signature their defaults.

    Examples
    --------
    >>> from lgcontrol.models import panda_tree
    >>> @system_of(panda_tree)
    ... def lame_panda(tree):
    ...     '''A Panda whose motors do not work.
    ...
    ...     Returns
    ...     -------
    ...     System
    ...     '''
    ...     return tree.system(inputs=[])
    >>> lame_panda(losses=False).n_inputs
    0
    """
    options = "Parameters\n" + (make.__doc__ or "").partition("Parameters\n")[2]
    options = options.partition("Returns\n")[0]
    kinds, taken = get_type_hints(make), signature(make)
    entries = [own.replace(annotation=kinds[key]) for key, own in taken.parameters.items()]

    def declare(build: Callable[[Tree], Made]) -> Callable[P, Made]:
        def model(*values: P.args, **named: P.kwargs) -> Made:
            return build(make(*values, **named))

        own: Any = update_wrapper(model, build)
        del own.__wrapped__
        own.__signature__ = taken.replace(parameters=entries, return_annotation=System)
        own.__doc__ = (build.__doc__ or "").replace("Returns\n", f"{options}Returns\n", 1)
        return named_options(own)

    return declare
