"""Recipe: how a model function of a tree is made from its plan."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Recipe:
    """How a function is made.

    Parameters
    ----------
    arguments : str
        Letters of the arguments: q, v, a, tau.
    results : tuple of (str, str)
        Name and shape of each result: v (nv), vv (nv × nv), vvv (the slices of a tensor side by
        side), 3, 6, 6v, b6 (a row for each body), p (ten numbers for each body), "" for a scalar.
    build : callable
        ``(plan, q, …) → expressions``.
    is_reduced : bool
        Whether regrouped inertias give the same result.
    takes_wrenches : bool
        Whether external wrenches may follow the arguments.
    keep : str
        Fixed joint through which the wrench is asked for.
    about : str
        What the function is of, a frame for example, for its name.
    """

    arguments: str
    results: tuple[tuple[str, str], ...]
    build: Callable[..., Any]
    is_reduced: bool = False
    takes_wrenches: bool = False
    keep: str = ""
    about: str = ""

    def name(self, kind: str) -> str:
        """Name of the casadi.Function."""
        word = re.sub(r"[^A-Za-z0-9]+", "_", self.about).strip("_")
        return f"{kind}_of_{word or 'frame'}" if self.about else kind

    @property
    def divides_by_mass(self) -> bool:
        """Whether a singular mass matrix spoils the results."""
        return any(name in ("a", "L", "M_inverse", "d_a_d_q") for name, _ in self.results)
