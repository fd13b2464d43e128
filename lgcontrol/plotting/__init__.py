"""Figures and animations of runs, trajectories and convergence. Needs matplotlib when called.

- Runs and trajectories: `plot_run`, `plot_trajectory`, `plot_path`, `animate_run`.
- Estimates: `plot_estimation`, `plot_consistency`, `plot_map`.
- Integrators: `plot_convergence`.
- Figures of one's own in the same look: `style`.
"""

from .. import _names
from ._animate_run import animate_run as animate_run
from ._plot_estimation import plot_consistency as plot_consistency
from ._plot_estimation import plot_convergence as plot_convergence
from ._plot_estimation import plot_estimation as plot_estimation
from ._plot_estimation import plot_map as plot_map
from ._plot_path import plot_path as plot_path
from ._plot_run import plot_run as plot_run
from ._plot_run import plot_trajectory as plot_trajectory
from ._style import style as style

_names.answer(__name__)
