"""Figures of our own: no pyplot, so nothing is kept alive and no window is needed.

This module imports matplotlib; the public functions import it when they are called.
"""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure as MatplotlibFigure


class Figure(MatplotlibFigure):
    """A figure that notebooks show without pyplot or its backends."""

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, size in inches, that keeps its labels apart."""
    return Figure(figsize=(width, height), layout="constrained")
