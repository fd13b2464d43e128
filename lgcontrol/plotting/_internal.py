"""What rooms above need of `lgcontrol.plotting` beyond what users type."""

from ._animate_run import Movie as Movie
from ._plot_consistency import Squares as Squares
from ._plot_path import can_be_seen as can_be_seen
