"""ReferenceLike: what may stand where a reference is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from ._smooth_reference import StateMotion
from ._steadiness import TrimPoint
from ._trajectory import Trajectory

ReferenceLike: TypeAlias = ArrayLike | TrimPoint | Trajectory | StateMotion | Callable[[float], Any]
"""What is to be followed: a constant state, an equilibrium, a motion, or a function of time."""
