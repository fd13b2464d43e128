"""Names for types that occur in signatures."""

from __future__ import annotations

from typing import Any

Value = Any
"""A NumPy array (or anything `numpy.asarray` takes), or a CasADi SX, MX or DM."""

Shape = tuple[int, ...]
