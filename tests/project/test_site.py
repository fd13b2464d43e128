"""The reference has every public name once, by the tasks of the rooms' docstrings."""

import importlib
import importlib.util
import inspect

import pytest

from ._repository import ROOT


def _extension():
    spec = importlib.util.spec_from_file_location(
        "reference", ROOT / "docs" / "_sphinx" / "reference.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = _extension()


def _module(room: str):
    return importlib.import_module(f"lgcontrol.{room}")


@pytest.mark.parametrize("room", reference.ROOMS)
def test_every_name_has_a_task(room):
    """A name that no task lists would end on a page of further names."""
    topics = reference.topics(_module(room))
    assert "Further names" not in [topic.title for topic in topics], topics[-1].names
    listed = [name for topic in topics for name in topic.names]
    assert sorted(listed) == sorted(reference.public_names(_module(room)))


def test_every_room_has_pages():
    """A room with public names that the site leaves out cannot be looked up."""
    import lgcontrol

    rooms = {name for name in dir(lgcontrol) if inspect.ismodule(getattr(lgcontrol, name))}
    assert rooms <= set(reference.ROOMS)


def test_bases_are_shown_only_if_users_type_them():
    from lgcontrol import Bound
    from lgcontrol.mechanics import Gravity

    assert reference.shows_bases(Gravity)  # a Force
    assert not reference.shows_bases(Bound)
    assert not reference.shows_bases(type("Own", (reference.Topic,), {}))
