"""Fixed: controllers that keep the attributes they were made with, but for the current state."""

from __future__ import annotations

from abc import ABCMeta
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any

from lgcontrol.codegen._internal import unknown_name

# What changes from call to call; all else is fixed when an MPC is made.
CURRENT = ("parameters", "reference", "applied", "info")
_REAL_TIME = (
    "period",
    "iterations",
    "first_iterations",
    "most_iterations",
    "budget",
    "restarts",
    "split",
)


class Fixed(ABCMeta):
    """Lets what is made know that it is: its attributes are those that it has then."""

    if not TYPE_CHECKING:  # type checkers would take its result for that of the constructor

        def __call__(cls, *values: Any, **options: Any) -> Any:
            """Make one."""
            made = super().__call__(*values, **options)
            object.__setattr__(made, "_is_made", True)
            return made

        @property
        def __signature__(cls) -> Signature:
            """That of the constructor, for help."""
            own = signature(cls.__init__)
            return own.replace(parameters=[*own.parameters.values()][1:])


def check_settable(mpc: Any, name: str, fixed: set[str]) -> None:
    """Refuse an attribute that would have no effect, and say why.

    Parameters
    ----------
    mpc : MPC
    name : str
    fixed : set of str
        What its functions are built for; other attributes are those of a subclass.
    """
    own = getattr(type(mpc), name, None)
    if isinstance(own, property) and own.fset is not None:
        return
    if name in vars(mpc) and name not in fixed:
        return
    if name == "state":
        raise AttributeError("state is read only: mpc.reset(state) goes on from a state")
    if name in _REAL_TIME:
        raise AttributeError(
            f"{name} is fixed when an MPC is made: make a new one, "
            f"MPC(…, real_time=RealTime({name}=…))"
        )
    if name in vars(mpc) or hasattr(type(mpc), name):
        raise AttributeError(
            f"{name} is fixed when an MPC is made, its functions are built for it: make a new "
            f"one, MPC(…, {name}=…)"
        )
    others = {*CURRENT, *fixed}
    known = (*CURRENT[:-1], *(key for key in vars(mpc) if key[0] != "_" and key not in others))
    raise AttributeError(unknown_name("attribute of MPC to set", name, known))
