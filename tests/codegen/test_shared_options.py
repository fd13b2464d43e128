"""Options that a constructor hands on to its base: one datum, named, shown and checked."""

from inspect import signature
from typing import TypedDict, Unpack

import pytest

from lgcontrol.codegen import named_options


class Options(TypedDict, total=False):
    speed: float
    late: bool


class Base:
    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        named_options(cls)

    def __init__(self, name: str, *, speed: float = 2.0, late: bool = False, other: int = 0):
        self.told = name, speed, late, other


class Middle(Base):
    def __init__(self, *, gain: float = 1.0, **options: "Unpack[Options]"):
        super().__init__("middle", **options)
        self.gain = gain


class Last(Middle):
    def __init__(self, *, shape: str, **options: "Unpack[Options]"):
        super().__init__(gain=3.0, **options)
        self.shape = shape


def test_the_signature_shows_them_with_their_defaults():
    assert (
        str(signature(Middle)) == "(*, gain: float = 1.0, speed: float = 2.0, late: bool = False)"
    )
    assert [*signature(Last).parameters] == ["shape", "speed", "late"]
    assert Last(shape="a", speed=4.0).told == ("middle", 4.0, False, 0)


@pytest.mark.parametrize("kind", [Middle, Last])
def test_others_are_refused_by_name_and_kind(kind):
    own = {"shape": "a"} if kind is Last else {}
    with pytest.raises(TypeError, match=rf"{kind.__name__}\(\): unknown argument 'sped'.*'speed'"):
        kind(**own, sped=1.0)
    with pytest.raises(TypeError, match="unknown argument 'other'"):  # the base's own business
        kind(**own, other=1)
    with pytest.raises(TypeError, match=r"speed must be a number, got 'fast'"):
        kind(**own, speed="fast")
