"""Tensors that take long to trace are announced, those beyond all measure refused."""

import logging

import pytest

from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.mechanics.multibody.plan import _sizes as sizes

BALL = SpatialInertia.sphere(1.0, 0.1)
TENSORS = {
    "inverse_dynamics_second_derivatives": "inverse_dynamics_hessian",
    "forward_dynamics_second_derivatives": "forward_dynamics_hessian",
    "connection_coefficients": "coriolis_matrix",
    "christoffel_symbols": "coriolis_matrix",
    "mass_matrix_derivatives": "inverse_dynamics_hessian",
    "mass_matrix_inverse_derivatives": "forward_dynamics_hessian",
}


def chain(n):
    tree, parent = Multibody(), "world"
    for i in range(n):
        tree, parent = tree.add_body(str(i), BALL, "revolute", parent, [1, 0, 0]), str(i)
    return tree


@pytest.mark.parametrize("kind", TENSORS)
def test_enormous_tensors_are_refused_with_a_remedy(kind):
    tree = chain(130)
    with pytest.raises(ValueError, match=f"{kind} of 130 velocities .*{TENSORS[kind]}"):
        getattr(tree, kind)
    assert hasattr(type(tree), TENSORS[kind])


def test_geometry_derivatives_of_fewer_joints(monkeypatch):
    tree = chain(6)
    monkeypatch.setattr(sizes, "LARGEST", 200)
    with pytest.raises(ValueError, match="648 entries .*name fewer joints"):
        tree.inverse_dynamics_geometry_derivatives()
    tree.inverse_dynamics_geometry_derivatives(("3",))


def test_long_traces_are_announced(monkeypatch, caplog):
    caplog.set_level(logging.WARNING, logger="lgcontrol.mechanics")
    chain(3).connection_coefficients  # noqa: B018
    assert not caplog.records
    monkeypatch.setattr(sizes, "_LONG", 0.001)
    chain(3).connection_coefficients  # noqa: B018
    text = caplog.records[-1].getMessage()
    assert "connection_coefficients of 3 velocities (27 entries)" in text
    assert "coriolis_matrix" in text


def test_branches_count_by_their_paths(monkeypatch):
    """Joints on different branches share no entry: a star stays small."""
    star = Multibody()
    for i in range(40):
        star = star.add_body(str(i), BALL, "revolute")
    monkeypatch.setattr(sizes, "LARGEST", 40)
    star.mass_matrix_derivatives  # noqa: B018
