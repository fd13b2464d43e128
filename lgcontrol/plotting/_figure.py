"""Figures of our own: not pyplot's, so nothing is kept alive and no window is needed.

This module imports matplotlib; the public functions import it when they are called.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.backend_bases import FigureCanvasBase, FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as MatplotlibFigure


class Figure(MatplotlibFigure):
    """A figure that notebooks show by themselves, and scripts with `show` or `savefig`."""

    def show(self, warn: bool = True) -> None:
        """Open a window and wait until it is closed; in a notebook, show the picture.

        Parameters
        ----------
        warn : bool
            Of no effect, as in matplotlib without a window.

        Raises
        ------
        RuntimeError
            If matplotlib has no window system to use.
        """
        from matplotlib import get_backend, pyplot

        if "inline" in get_backend().lower():
            from IPython.display import display  # pyright: ignore[reportMissingImports]

            display(self)
            return
        # A window for a short time only: pyplot's own figure in it makes place for this one.
        manager = pyplot.figure(figsize=self.get_size_inches()).canvas.manager
        try:
            if manager is None or type(manager) is FigureManagerBase:
                raise RuntimeError(
                    f"there is no window to show the figure in (matplotlib's backend is "
                    f"{get_backend()}): write it to a file with .savefig(path)"
                )
            manager.canvas.figure = self
            self.set_canvas(manager.canvas)
            pyplot.show(block=True)
        finally:
            if manager is not None:
                pyplot.close(manager.num)
            FigureCanvasBase(self)  # takes the place of the window's canvas

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write a file as matplotlib does, PNG files in one pass: it draws all twice.

        Parameters
        ----------
        fname : str, Path or file
        options
            Of matplotlib's ``savefig``; with others than ``dpi`` it is asked itself.
        """
        if options.keys() - {"dpi"} or Path(str(fname)).suffix.lower() != ".png":
            super().savefig(fname, **options)
            return
        canvas, dpi = self.canvas, self.dpi
        try:
            self.dpi = options.get("dpi") or dpi
            FigureCanvasAgg(self).print_png(fname)
        finally:
            self.dpi = dpi
            self.set_canvas(canvas)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, size in inches, that keeps its labels apart."""
    return Figure(figsize=(width, height), layout="constrained")
