"""Method: a one-step map on a Lie group; subclasses hold an algorithm, instances are data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..groups import LieGroup

Field = Callable[[Value, Value], Value]
"""``field(t, x) → d``: the body-fixed velocity of ``Ẋ = X d^`` at coordinates x."""


class Method(ABC):
    """One explicit step of ``Ẋ = X · f(t, X)`` that stays on the group.

    Attributes
    ----------
    name : str
    order : int
        Order p: the error after a fixed time falls like ``dt^p``.
    stages : int
        Evaluations of the field in a step.
    """

    name: str
    order: int
    stages: int

    @abstractmethod
    def _step(self, group: LieGroup, field: Field, t: Value, x: Value, dt: Value) -> Value: ...

    def step(self, group: LieGroup, field: Field, t: Value, x: Value, dt: Value) -> Value:
        """One step of ``Ẋ = X · f(t, X)``, normalised once at its end.

        Parameters
        ----------
        group : LieGroup
            Group of the states.
        field : callable
            ``field(t, x) → d``, the body-fixed velocity, for values of the same kind as x.
        t : scalar
            Time [s] at the start of the step.
        x : CasADi column (nq), or ndarray of shape (..., nq)
            State at the start.
        dt : scalar
            Step [s]; may be symbolic or negative.

        Returns
        -------
        CasADi column or ndarray
            State at ``t + dt``, the same kind and shape as x.

        Raises
        ------
        ValueError
            If the field returns anything but a tangent vector of the group.

        Examples
        --------
        >>> from lgcontrol.groups import SO2
        >>> from lgcontrol.integrators import get_method
        >>> x = get_method("rk4").step(SO2, lambda t, x: [2.0 * t], 0.0, SO2.identity, 0.5)
        >>> SO2.log(x)
        array([0.25])
        """
        return group.normalize(self._step(group, tangent_field(group, field), t, x, dt))


def combine(coefficients: Sequence[float], slopes: Sequence[Any], dt: Value) -> Any:
    """``dt Σ aⱼ kⱼ`` without the terms whose coefficient is zero; None when none is left."""
    pairs = zip(coefficients, slopes, strict=False)  # rows of zeros at the end may be left out
    terms = [slope if a == 1 else a * slope for a, slope in pairs if a]
    return dt * sum(terms[1:], terms[0]) if terms else None


def tangent_field(group: LieGroup, field: Field) -> Field:
    """Return the field with its values checked to be tangent vectors of the group."""

    def checked(t: Value, x: Value) -> Any:
        value = field(t, x)
        if isinstance(value, list | tuple):
            symbolic = any(isinstance(entry, ca.SX | ca.MX | ca.DM) for entry in value)
            value = ca.vertcat(*value) if symbolic else np.asarray(value, dtype=np.float64)
        shape = value.shape[-1:] if isinstance(value, np.ndarray) else value.shape
        if shape not in ((group.dim,), (group.dim, 1)):
            raise ValueError(
                f"the field returned shape {value.shape}, "
                f"expected a tangent vector of {group.name}: {group.dim} numbers"
            )
        return value

    return checked
