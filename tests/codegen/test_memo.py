"""Values that are kept with what they were computed from."""

import copy
import gc
import pickle
import weakref

import pytest

from lgcontrol.codegen._internal import Memo, memoized
from lgcontrol.mechanics import Multibody, SpatialInertia


class Owner(Memo):
    def __init__(self, number):
        self.number = number


calls = []


@memoized
def doubled(owner, by=1):
    calls.append(by)
    return [2 * owner.number * by]


def test_values_are_computed_once_and_no_part_of_the_object():
    calls.clear()
    owner = Owner(3)
    assert doubled(owner) is doubled(owner) and doubled(owner, 2) == [12] and calls == [1, 2]
    made = owner.memo(("key",), lambda: object())
    assert owner.memo(("key",), lambda: None) is made
    for twin in (pickle.loads(pickle.dumps(owner)), copy.deepcopy(owner)):
        assert vars(twin) == {"number": 3}
        assert doubled(twin) == [6] and doubled(twin) is not doubled(owner)


def test_values_go_with_their_owner():
    owner = Owner(1)
    gone = weakref.ref(owner.memo(("large",), lambda: Owner(2)))
    del owner
    gc.collect()
    assert gone() is None


def test_what_functions_were_traced_with_is_fixed():
    """A tree would keep the old gravity in the functions that it has."""
    tree = Multibody().add_body("rod", SpatialInertia.box(1.0, [1, 0.1, 0.1]), "revolute")
    tree.gravity_forces([0.3])
    with pytest.raises(AttributeError, match="gravity of a Multibody is fixed.*with_parameters"):
        tree.gravity = (0.0, 0.0, -1.6)
    moon = tree.with_parameters({"gravity.z": -1.6})
    assert moon.gravity == (0.0, 0.0, -1.6)
