"""The public names are a decision: a stored list, and a table of the names that have gone."""

import functools
import importlib
import re
import sys

import pytest

import lgcontrol
from lgcontrol import models
from lgcontrol._names import public_names, renamed
from lgcontrol.codegen._internal import Immutable
from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia

from ._repository import ROOT

sys.path.insert(0, str(ROOT / "tools"))
tool = importlib.import_module("public_names")

# Distinct; a newcomer meets them in the reference. Six are those of scenes: the record, how a
# system looks, and what shows it; one is the look of figures for users' own, `plotting.style`; one
# is `simulate_many`, many runs in one call; five are of campaigns: Campaign, its error, Vary, tune
# and attraction_level; one is `live`, a loop with a goal that is dragged.
MOST_NAMES = 344
REMEDY = (
    "if this is meant, run `python tools/public_names.py`, and enter old names in _renamed.toml"
)


def names_of(listing: str) -> set[str]:
    return set(listing.splitlines())


def test_the_public_names_are_those_of_the_list():
    now, stored = names_of(tool.listing()), names_of(tool.LIST.read_text(encoding="utf-8"))
    assert now == stored, f"new: {sorted(now - stored)}; gone: {sorted(stored - now)}; {REMEDY}"


def test_the_names_read_from_the_sources_are_those_that_there_are():
    for package, names in public_names().items():
        module = importlib.import_module(package)
        assert not [name for name in names if not hasattr(module, name)]
        shown = {name for name in dir(module) if not name.startswith("_")}
        folders = {name for name in shown if f"{package}.{name}" in sys.modules}
        assert shown - folders <= set(names), package


def test_there_are_not_too_many():
    """Rooms are places, not names."""
    homes = {home.rpartition(".")[2] for home in public_names()}
    names = {n for found in public_names().values() for n in found}
    assert len(names - homes) <= MOST_NAMES, len(names - homes)


@pytest.mark.parametrize("package", sorted(set(public_names()) - {"lgcontrol.models"}))
def test_every_name_stands_in_the_docstring_of_its_room(package):
    """By task: what a person who looks for something reads first."""
    doc = importlib.import_module(package).__doc__
    assert not [name for name in public_names()[package] if f"`{name}`" not in doc]


def test_old_names_have_gone_and_new_ones_are_there():
    for room, names in renamed().items():
        module = importlib.import_module(f"lgcontrol.{room}")
        for old, (new, reason) in names.items():
            assert reason, old
            if "." not in old and "(" not in old:
                assert old not in public_names().get(module.__name__, ()), old
            owner = new.partition("(")[0]
            while owner:  # an argument or an attribute of an instance: its owner is there
                owner, _, last = owner.rpartition(".")
                home = f"lgcontrol.{owner}" if owner else "lgcontrol"
                if home in public_names():
                    assert last in public_names()[home], new
                    break


def test_the_changelog_has_the_table():
    text = tool.CHANGELOG.read_text(encoding="utf-8")
    assert text == tool.changelog(text), "run `python tools/public_names.py`"
    assert "| systems | `trim` | `lgcontrol.systems.System.trim` |" in text


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("lgcontrol.systems.trim", "it is now lgcontrol.systems.System.trim: the method"),
        ("lgcontrol.weaker", "lgcontrol.simulation.weaker is now lgcontrol.simulation.scaled_in"),
        ("lgcontrol.groups.SE3Group", "it is no longer public: the class behind `SE3`"),
        ("lgcontrol.DP1", "DP1 is in lgcontrol.mechanics.constrained"),
        ("lgcontrol.mechanics.SO3", "SO3 is in lgcontrol"),
    ],
)
def test_the_error_for_an_old_name_says_the_new_one(statement, told):
    package, _, name = statement.rpartition(".")
    importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute .*; {told}"):
        eval(statement)
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from '{package}'; {told}"):
        exec(f"from {package} import {name}")


def _calls_with_old_arguments():
    """Calls with each argument that the table says has gone; ``**`` stands for any name."""
    tree = Multibody("arm").add_body("rod", SpatialInertia.rod(1.0, 1.0), "revolute")
    arm = SeriesElastic(tree, {"rod": Motor(0.2, 100.0)})
    for room, names in renamed().items():
        for old, (new, reason) in names.items():
            match = re.fullmatch(r"([\w.]+)\((\w+=|\*\*)\)", old)
            if match is None or match[1] in ("Cost", "Residual"):  # these take a function besides
                continue
            owner, called = None, importlib.import_module(f"lgcontrol.{room}")
            for name in match[1].split("."):
                owner, called = called, getattr(called, name)
            if isinstance(owner, type):
                thing = arm if owner is SeriesElastic else object.__new__(owner)
                called = functools.partial(called, thing)
            told = f"is now lgcontrol.{new}: {reason}" if new else f"is gone: {reason}"
            yield pytest.param(called, match[2].strip("=").replace("**", "mass"), told, id=old)


@pytest.mark.parametrize(("call", "argument", "told"), list(_calls_with_old_arguments()))
def test_the_error_for_an_old_argument_says_the_new_one(call, argument, told):
    with pytest.raises(TypeError, match=re.escape(told)):
        call(**{argument: None})


def test_old_methods_and_attributes_say_the_new_ones():
    """Of objects, of a base, and of results."""
    linkage = models.double_pendulum_mechanism()
    told = {
        "it is now .*ClosedTree.state": lambda: models.four_bar_tree().velocity,
        "it is now .*Mechanism.march": lambda: linkage.large,
        "it is now .*is_success": lambda: linkage.march(linkage.state(), 0.01, 1).is_solved,
    }
    for message, ask in told.items():
        with pytest.raises(AttributeError, match=message):
            ask()


def test_the_error_of_a_property_is_its_own():
    class Broken(Immutable):
        @property
        def value(self):
            raise AttributeError("inner")

    with pytest.raises(AttributeError, match="^inner$"):
        Broken().value  # noqa: B018


def test_the_error_for_an_unknown_name_is_the_usual_one():
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        lgcontrol.systems.nothing  # noqa: B018
    with pytest.raises(
        ImportError, match=r"cannot import name 'nothing' from 'lgcontrol.systems' \("
    ):
        exec("from lgcontrol.systems import nothing")
    assert not hasattr(lgcontrol.systems, "trim")


def test_modules_of_rooms_are_imported_although_rooms_answer_for_names(monkeypatch):
    from lgcontrol.models import data  # loaded, whatever ran before

    monkeypatch.delitem(sys.modules, data.__name__)
    monkeypatch.delattr(lgcontrol.models, "data")
    exec("from lgcontrol.models import data")
    assert sys.modules[data.__name__] is not data


def test_the_version_is_that_of_the_distribution():
    """It is written once, in the package; an environment made before a change of it is stale."""
    from importlib.metadata import version

    assert lgcontrol.__version__ == version("lgcontrol")
