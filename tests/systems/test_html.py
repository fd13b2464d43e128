"""What notebooks show of systems and what comes of them: tables by name, all text escaped."""

import re
from html import unescape

import casadi as ca
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.codegen._internal import html_table

pytestmark = pytest.mark.interpreted

TAGS = {"div", "b", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}


@pytest.fixture(scope="module")
def cart():
    return lg.System(
        "cart <script>alert(1)</script>",
        lg.Product(pose=lg.SE2, speed=lg.Rn(1, ("x",), units="m/s")),
        lambda t, x, u, p: ca.vertcat(x[4], 0, 0, u[0] / p[0]),
        inputs=[lg.Input("push & pull", "N", -2.0, 3.0)],
        parameters=[lg.Parameter("mass", "kg", 1.5)],
    )


def cells(html):
    """Text of each row of all tables; checks that tags are ours and close."""
    names = re.findall(r"<(/?)([a-z]+)[^>]*>", html)
    assert {name for _, name in names} <= TAGS
    open_tags = []
    for closing, name in names:
        if closing:
            assert open_tags.pop() == name
        else:
            open_tags.append(name)
    assert not open_tags
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [[unescape(c) for c in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]


def test_a_system_shows_states_inputs_and_parameters(cart):
    html = cart._repr_html_()
    assert "<script>" not in html
    rows = cells(html)
    assert ["push & pull", "N", "-2", "3", "0", "control"] in rows
    assert ["mass", "kg", "1.5"] in rows
    assert [name for name, unit in (r for r in rows if len(r) == 2)][1:] == list(
        cart.state.coordinate_names
    )


def test_points_and_linearizations_show_their_numbers(cart):
    rest = cart.trim()
    rows = cells(rest._repr_html_())
    assert ["speed.x", "0", "m/s"] in rows
    moving = cart.trim(where={"speed": 2.0})
    assert "relative equilibrium" in moving._repr_html_()
    assert ["pose.x", "2"] in cells(moving._repr_html_())
    linear = cart.linearize(rest)
    assert len(cells(linear._repr_html_())) == 1 + cart.state.dim


def test_motions_and_runs(cart):
    motion = cart.rollout(cart.state.identity, np.ones((10, 1)), dt=0.1)
    rows = cells(motion._repr_html_())
    assert rows[0] == ["coordinate", "at 0 s", "at 1 s", "unit"]
    assert ["speed.x", "0", f"{1 / 1.5:.5g}", "m/s"] in rows
    run = lg.simulate(
        cart, lambda t, x, r: np.zeros(1), x0=cart.state.identity, seconds=0.1, dt=0.1
    )
    assert "completed" in run._repr_html_() and "<li>" in run._repr_html_()


def test_long_tables_are_cut():
    rows = cells(html := html_table("many", ("number",), ([k] for k in range(1000))))
    assert len(rows) == 61 and "and 940 more" in html
    assert html_table("none", ("number",), []) == ""
    assert ["∞"] in cells(html_table("", ("x",), [[np.inf], [np.nan], [-np.inf]]))
