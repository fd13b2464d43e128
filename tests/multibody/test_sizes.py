"""Tensors that take long to trace are announced, those beyond all measure refused."""

import logging
from functools import cache

import pytest

from lgcontrol.mechanics import Multibody, SpatialInertia

BALL = SpatialInertia.sphere(1.0, 0.1)
TENSORS = {
    "inverse_dynamics_second_derivatives": "inverse_dynamics_hessian",
    "forward_dynamics_second_derivatives": "forward_dynamics_hessian",
    "connection_coefficients": "coriolis_matrix",
    "christoffel_symbols": "coriolis_matrix",
    "mass_matrix_derivatives": "inverse_dynamics_hessian",
    "mass_matrix_inverse_derivatives": "forward_dynamics_hessian",
}


@cache
def chain(n):
    tree, parent = Multibody(), "world"
    for i in range(n):
        tree, parent = tree.add_body(str(i), BALL, "revolute", parent, [1, 0, 0]), str(i)
    return tree


@pytest.mark.usually(kind=set(TENSORS) - {"forward_dynamics_second_derivatives"})
@pytest.mark.parametrize("kind", TENSORS)
def test_enormous_tensors_are_refused_with_a_remedy(kind):
    tree = chain(130)
    with pytest.raises(ValueError, match=f"{kind} of 130 velocities .*{TENSORS[kind]}"):
        getattr(tree, kind)
    assert hasattr(type(tree), TENSORS[kind])


def test_geometry_derivatives_of_fewer_joints():
    tree = chain(340)
    with pytest.raises(ValueError, match="2080800 entries .*name fewer joints"):
        tree.inverse_dynamics_geometry_derivatives()
    assert chain(6).inverse_dynamics_geometry_derivatives(("3",)).result_shapes == ((6, 6),)


class Announced(Exception):
    """Raised where the announcement is made: before the long trace."""


def test_long_traces_are_announced(monkeypatch):
    logger = logging.getLogger("lgcontrol.mechanics")

    class Stop(logging.Handler):
        def emit(self, record):
            raise Announced(record.getMessage())

    monkeypatch.setattr(logger, "handlers", [Stop(logging.WARNING)])
    chain(3).connection_coefficients  # noqa: B018
    tree = chain(30)
    with pytest.raises(
        Announced, match=r"connection_coefficients of 30 velocities \(27000 entries\).*coriolis_ma"
    ):
        tree.connection_coefficients  # noqa: B018


def test_branches_count_by_their_paths():
    """Joints on different branches share no entry: a star stays small."""
    star = Multibody()
    for i in range(130):
        star = star.add_body(str(i), BALL, "revolute")
    star.mass_matrix_derivatives  # noqa: B018
