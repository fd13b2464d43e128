"""plot_estimation and plot_consistency: bands that are seen without colours."""

import numpy as np

from lgcontrol.plotting import plot_consistency, plot_estimation
from lgcontrol.plotting._internal import Squares

T = np.linspace(0.0, 1.0, 30)


def edges(ax):
    """Heights of the lines at both sides of a band."""
    return [line.get_ydata()[0] for line in ax.lines if line.get_gid() == "band"]


def test_bands_of_estimates_have_edges_and_units_are_named():
    error, deviation = np.zeros((30, 2)), np.tile([0.1, 0.2], (30, 1))
    innovations = {"gps": (T, np.ones((30, 2)))}
    figure = plot_estimation(T, error, deviation, ["x", "heading"], ["m", "rad"], innovations)
    x, heading, gps = figure.axes[:3]
    assert edges(x) == [-0.2, 0.2] and edges(heading) == [-0.4, 0.4] and edges(gps) == [-2, 2]
    assert (x.get_ylabel(), heading.get_ylabel()) == ("[m]", "[rad]")
    for ax in (x, heading):  # the error is darker than the band and its edges
        error_line = next(line for line in ax.lines if line.get_gid() is None)
        assert error_line.get_color() < min(
            line.get_color() for line in ax.lines if line.get_gid() == "band"
        )


def test_the_band_of_correlations_has_edges():
    squares = Squares(T, np.ones(30), (0.5, 1.5))
    white = np.random.default_rng(0).normal(size=(30, 1))
    figure = plot_consistency(squares, {"gps": squares}, {"gps": white})
    limit = 1.96 / np.sqrt(30)
    np.testing.assert_allclose(edges(figure.axes[3]), [-limit, limit])
    assert figure.axes[0].patches[0].get_linewidth() > 0
