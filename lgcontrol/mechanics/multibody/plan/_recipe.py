"""Recipe: how a model function of a tree is made from its plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..loops._choice import Loops

Code = str | tuple[str | int, ...]
"""Shape of a result: see `Recipe`."""

Results = tuple[tuple[str, Code], ...]

_RATES = ("v", "a", "j", "s", "c")


def rate_names(count: int) -> list[str]:
    """Names of the velocity and its derivatives: v, a, j (jerk), s (snap), c (crackle), v5, ….

    The sixth and later ones are called by how often the velocity is differentiated.
    """
    return [_RATES[i] if i < len(_RATES) else f"v{i}" for i in range(count)]


# Results that only a regular mass matrix has.
_BY_MASS = ("a", "L", "M_inverse", "d_a_d_q", "d2_a_d_q2", "H_qtau", "d_a_d_parameters")


@dataclass(frozen=True)
class Recipe:
    """How a function is made.

    Parameters
    ----------
    arguments : str
        Letters of the arguments: q, v, a, tau; rates of a beyond (see `rate_names`).
    results : tuple of (str, str or tuple)
        Name and shape of each result: v (nv), vv (nv × nv), vvv (the slices of a tensor side by
        side), 3, 6, 6v, b6 (a row for each body), p (ten numbers for each body), "" for a scalar;
        with other numbers a tuple: ("v", 36).
    build : callable
        ``(plan, q, …) → expressions``.
    is_reduced : bool
        Whether regrouped inertias give the same result.
    takes_wrenches : bool
        Whether external wrenches may follow the arguments.
    keep : tuple of str
        Fixed joints that get a node of their own.
    about : str
        What the function is of, a frame for example, for its name.
    assemble : callable, optional
        ``(what build returns, …) → results``, in products of matrices.
    loops : Loops, optional
        The same for large trees.
    instead : str
        What to do where tensors are too large (see `check_size`); empty: they never are.
    """

    arguments: str
    results: Results
    build: Callable[..., Any]
    is_reduced: bool = False
    takes_wrenches: bool = False
    keep: tuple[str, ...] = ()
    about: str = ""
    assemble: Callable[..., Any] | None = None
    loops: Loops | None = None
    instead: str = ""

    def name(self, kind: str) -> str:
        """Name of the casadi.Function."""
        word = re.sub(r"[^A-Za-z0-9]+", "_", self.about).strip("_")
        return f"{kind}_of_{word or 'frame'}" if self.about else kind

    def keeping(self, joints: tuple[str, ...]) -> Recipe:
        """The recipe on a plan in which these joints have nodes of their own."""
        return replace(self, keep=joints)

    @property
    def divides_by_mass(self) -> bool:
        """Whether a singular mass matrix spoils the results."""
        return any(name in _BY_MASS for name, _ in self.results)
