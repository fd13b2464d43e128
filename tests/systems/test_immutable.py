"""Objects that stay as they are made refuse attributes that they do not have."""

import copy
import pickle

import pytest

import lgcontrol as lg
from lgcontrol.models import elastic_planar_arm_tree, four_bar_tree, scara_tree

pytestmark = pytest.mark.interpreted


def field(t, x, u, p):
    return u


MAKERS = {
    "system": lambda: lg.System("still", lg.Rn(1), field, inputs=["push"]),
    "tree": scara_tree,
    "linkage": four_bar_tree,
    "elastic arm": elastic_planar_arm_tree,
    "reference": lambda: lg.Waypoints(lg.Rn(1), [0, 1], [[0.0], [1.0]]),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_misspelt_attributes_are_refused(kind):
    made = MAKERS[kind]()
    for again in (made, copy.copy(made)):
        with pytest.raises(AttributeError, match=f"attribute of {type(made).__name__} 'nmae'"):
            again.nmae = "other"
        with pytest.raises(AttributeError):
            _ = again.nmae


def test_a_pickled_object_refuses_them_too():
    made = pickle.loads(pickle.dumps(scara_tree()))
    with pytest.raises(AttributeError, match="Did you mean 'gravity'"):
        made.gravty = [0, 0, 0]


class Marked(lg.System):
    """A class of a user's."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.remark = "mine"


def test_a_subclass_has_attributes_of_its_own():
    made = Marked("still", lg.Rn(1), field, inputs=["push"])
    assert made.remark == "mine"
