"""plot_convergence: slopes, gaps, labels."""

import numpy as np
import pytest

from lgcontrol.plotting import plot_convergence

H = 2.0 ** -np.arange(1, 11)


def labels(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_orders_by_step():
    """The slope of a fourth-order method is fitted above the rounding it ends in."""
    errors = {"euler": 2 * H, "rk4": 0.1 * H**4 + 1e-11}
    figure = plot_convergence(errors, H, orders={"rk4": 4}, title="steps")
    assert labels(figure) == ["euler (slope 1.0)", "rk4 (slope 4.0)"]
    ax = figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("step [s]", "error")
    (declared,) = [line for line in ax.lines if line.get_linestyle() == ":"]
    (h0, e0), (h1, e1) = declared.get_xydata()
    assert np.log(e1 / e0) / np.log(h1 / h0) == pytest.approx(4)
    np.testing.assert_allclose(ax.lines[0].get_xydata(), np.column_stack([H, 2 * H])[::-1])


def test_iterations():
    figure = plot_convergence(
        {"newton": [1, 1e-2, 1e-4, 1e-8, 0.0, np.nan]}, tolerance=1e-6, ylabel="residual"
    )
    ax = figure.axes[0]
    assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0, 1, 2, 3])
    assert ax.lines[1].get_ydata()[0] == 1e-6 and ax.get_xlabel() == "iteration"
    assert ax.get_legend() is None


def test_steps_of_each_method():
    steps = {"a": H, "b": H[:3]}
    figure = plot_convergence({"a": H**2, "b": H[:3]}, steps)
    assert labels(figure) == ["a (slope 2.0)", "b (slope 1.0)"]


def test_one_point_has_no_slope():
    assert labels(plot_convergence({"a": [0.1]}, [0.5])) == ["a"]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (({"a": [0.0, np.nan]},), {}, ValueError, "no positive, finite error"),
        (({"a": [1.0, 2.0]}, [0.1]), {}, ValueError, r"steps of a has shape \(1,\), expected \(2"),
        (({"a": [1.0]}, [-0.1]), {}, ValueError, "steps of a must be positive, got -0.1"),
        (({"a": [1.0]}, {"b": [0.1]}), {}, KeyError, "steps lack 'a'; they are for b"),
        (({"a": [1.0]}, [0.1]), {"orders": {"b": 2}}, KeyError, "orders: 'b' is none of a"),
        (({"a": "falling"},), {}, TypeError, "errors of a must be an array of numbers"),
    ],
)
def test_mistakes(arguments, options, error, text):
    with pytest.raises(error, match=text):
        plot_convergence(*arguments, **options)
