"""Values that are kept with what they were computed from."""

import copy
import gc
import pickle
import weakref

from lgcontrol.codegen._internal import Memo, memoized


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
