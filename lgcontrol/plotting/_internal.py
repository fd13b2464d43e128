"""What rooms above need of `lgcontrol.plotting` beyond what users type."""

from typing import TYPE_CHECKING

from ._animate_run import Movie as Movie
from ._plot_estimation import Squares as Squares
from ._plot_path import can_be_seen as can_be_seen
from ._plot_run import run_size as run_size
from ._style import COLORS as COLORS
from ._style import DASHES as DASHES
from ._style import INK as INK
from ._style import SMALL as SMALL
from ._style import style_axes as style_axes

if TYPE_CHECKING:
    from ._figure import Figure


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure that notebooks show by themselves, size in inches; imports matplotlib."""
    from ._figure import new_figure

    return new_figure(width, height)
