"""Every public name is documented in numpydoc form and has no mutable default."""

import enum
import importlib
import inspect
import re
from itertools import pairwise
from types import ModuleType

import numpy as np
import pytest

from ._repository import module_name, python_files

MUTABLE = (list, dict, set, bytearray, np.ndarray)


def public_names(module: ModuleType) -> list[str]:
    """Return ``__all__``, else what the package re-exports: its public attributes of our making."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, ModuleType)
        and str(getattr(value, "__module__", type(value).__module__)).startswith("lgcontrol")
    )


def is_public(path) -> bool:
    return path.name == "__init__.py" and not any(p.startswith("_") for p in path.parts[:-1])


PACKAGES = [module_name(path) for path in python_files() if is_public(path)]


def documented_parameters(doc: str) -> set[str] | None:
    """Return the names in the Parameters and Attributes sections, None without either."""
    names: set[str] = set()
    lines = inspect.cleandoc(doc).splitlines()
    titles = [
        row
        for row, line in enumerate(lines[:-1])
        if line.strip() and re.fullmatch(r"-{3,}\s*", lines[row + 1])
    ]
    found = None
    for row, end in pairwise([*titles, len(lines)]):
        if lines[row].strip() not in ("Parameters", "Other Parameters", "Attributes"):
            continue
        found = names
        for line in lines[row + 2 : end]:
            if line and not line[0].isspace():
                names |= {name.strip(" *`") for name in line.partition(":")[0].split(",")}
    return found


def parameters_of(thing) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(thing)
    except ValueError:  # a builtin without one
        return []
    return [p for p in signature.parameters.values() if p.name not in ("self", "cls")]


def complaints(name: str, thing) -> list[str]:
    """Return what is wrong with the documentation and the defaults of a public object."""
    doc = inspect.getdoc(thing) if not isinstance(thing, str | int | float | tuple) else "constant"
    if not doc or not doc.splitlines()[0].strip():
        return [f"{name} has no docstring that starts with a summary line"]
    if not (inspect.isclass(thing) or inspect.isroutine(thing)):
        return []  # an instance: its class says what it is
    found = []
    if not re.search(r"[.:?!]$", re.split(r"\n\s*\n", doc)[0].rstrip()):
        found.append(f"{name}: the docstring's summary is not a sentence with a full stop")
    if inspect.isclass(thing):
        for method, value in vars(thing).items():
            function = getattr(value, "__func__", value)  # unwraps static and class methods
            if not method.startswith("_") and inspect.isfunction(function):
                found += mutable_defaults(f"{name}.{method}", function)
        if issubclass(thing, enum.Enum | BaseException) or getattr(thing, "_is_protocol", False):
            return found
        if inspect.isabstract(thing):
            return found  # users subclass it; they do not call it
        doc += "\n\n" + inspect.cleandoc(vars(thing).get("__init__", object).__doc__ or "")
    found += mutable_defaults(name, thing)
    expected = {p.name for p in parameters_of(thing) if not p.name.startswith("_")}
    documented = documented_parameters(doc)
    if expected and documented is None:
        found.append(f"{name} takes {sorted(expected)} and has no Parameters section")
    elif expected - (documented or set()):
        found.append(f"{name}: Parameters lack {sorted(expected - (documented or set()))}")
    return found


def mutable_defaults(name: str, function) -> list[str]:
    return [
        f"{name}: the default of {p.name!r} is a mutable {type(p.default).__name__}; use None"
        for p in parameters_of(function)
        if isinstance(p.default, MUTABLE)
    ]


def test_names_at_the_top_resolve():
    """The stub lists them once; each is the object of its room, rooms themselves included."""
    top = importlib.import_module("lgcontrol")
    for name, room in top._HOME.items():
        home = importlib.import_module(f"lgcontrol.{room or name}")
        assert getattr(top, name) is (getattr(home, name) if room else home)
    assert {"MPC", "System", "controllers"} <= set(dir(top))
    with pytest.raises(AttributeError, match="ScrewMotion is in lgcontrol.systems"):
        top.ScrewMotion  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_documented(package):
    module = importlib.import_module(package)
    found = [
        complaint
        for name in public_names(module)
        for complaint in complaints(f"{package}.{name}", getattr(module, name))
    ]
    assert not found, "\n".join(found)


def _planted_undocumented(x): ...


def _planted_without_parameters(x):
    """Return x."""


def _planted_incomplete(x, y, z=()):
    """Return x.

    Parameters
    ----------
    x, y : float
        Two numbers.

    Returns
    -------
    z : float
        A result, which is not the parameter of that name.
    """


def _planted_mutable(x=[]):  # noqa: B006  the violation under test
    """Return x.

    Parameters
    ----------
    x : list
        Shared by all callers.
    """


class _PlantedClass:
    """Hold a size."""

    def __init__(self, size, *, weights=None): ...

    def scale(self, factors=np.ones(2)): ...  # noqa: B008  the violation under test


def _planted_good(x, *args, y=None, **options):
    """Return x.

    Parameters
    ----------
    x : float
        A number.
    *args
        More.
    y, **options
        Others.
    """


@pytest.mark.parametrize(
    ("thing", "expected"),
    [
        (_planted_undocumented, ["no docstring"]),
        (_planted_without_parameters, ["no Parameters section"]),
        (_planted_incomplete, ["lack ['z']"]),
        (_planted_mutable, ["mutable list"]),
        (_PlantedClass, ["mutable ndarray", "no Parameters section"]),
        (_planted_good, []),
    ],
)
def test_complaints_name_each_fault(thing, expected):
    found = complaints(thing.__name__, thing)
    assert len(found) == len(expected)
    assert all(text in complaint for text, complaint in zip(expected, found, strict=True)), found
