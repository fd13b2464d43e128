"""What the package and its rooms say when they are asked for a name that they do not have."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NoReturn

PACKAGE = __name__.partition(".")[0]


def answer(package: str) -> None:
    """Let a room say where a name is that it does not have.

    The function is set from outside of the room's source: a ``__getattr__`` there would tell type
    checkers that the room has every name.

    Parameters
    ----------
    package : str
        The room, by its full name.
    """
    sys.modules[package].__dict__["__getattr__"] = lambda name: refuse(package, name)


def refuse(package: str, name: str) -> NoReturn:
    """Raise the error for a name that a package does not have.

    Raises
    ------
    AttributeError
        With the new name, or with the package that has the name.
    ImportError
        The same within ``from package import name``, which would drop the text of the other.
    """
    hint = hint_for(package, name)
    asker = sys._getframe(2).f_globals.get("__name__")  # past the module's __getattr__
    if hint and asker == "importlib._bootstrap":
        raise ImportError(f"cannot import name {name!r} from {package!r}{hint}", name=package)
    raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")


def hint_for(package: str, name: str) -> str:
    """Where a name is that a package does not have, or what became of it; empty if unknown."""
    if name.startswith("_"):
        return ""  # what debuggers, notebooks and the import system ask of every module
    old = renamed()
    room = package.partition(".")[2]
    for section in [room, *sorted(old)]:
        if name in old.get(section, {}):
            new, reason = old[section][name]
            was = "it" if section == room else f"{PACKAGE}.{section}.{name}"
            if new:
                return f"; {was} is now {PACKAGE}.{new}: {reason}"
            return f"; {was} is no longer public: {reason}"
    homes = [home for home, names in public_names().items() if name in names and home != package]
    return f"; {name} is in {min(homes, key=lambda home: (home.count('.'), home))}" if homes else ""


@lru_cache(256)
def member_hint(owner: type, member: str) -> str:
    """Say what became of a method, an attribute or an argument, as in ``"assemble(held=)"``.

    Parameters
    ----------
    owner : type
        The class; its bases count as well.
    member : str
        Of a constructor's argument ``"(symbolic=)"``.

    Returns
    -------
    str
        "is now …", "is gone: …", or nothing where it never was.
    """
    dot = "" if member.startswith("(") else "."
    return _gone([f"{base.__name__}{dot}{member}" for base in owner.__mro__])


def function_hint(argument: str) -> str:
    """The same for an argument of a function, as in ``"pose_graph(start=)"``."""
    return _gone([argument])


def _gone(names: list[str]) -> str:
    for entries in renamed().values():
        for name in names:
            if name in entries:
                new, reason = entries[name]
                return f"is now {PACKAGE}.{new}: {reason}" if new else f"is gone: {reason}"
    return ""


@cache
def renamed() -> dict[str, dict[str, tuple[str, str]]]:
    """Return the names that have gone: room → old name → (where it is now, reason)."""
    import tomllib

    text = Path(__file__).with_name("_renamed.toml").read_text(encoding="utf-8")
    return {
        room: {old: (new, reason) for old, (new, reason) in names.items()}
        for room, names in tomllib.loads(text).items()
    }


@cache
def public_names() -> dict[str, tuple[str, ...]]:
    """Return the names that each package offers, read from the sources without importing them."""
    found = {}
    for package, file in packages():
        stub = file.with_suffix(".pyi")  # of the top level, whose names load when they are used
        text = (stub if stub.is_file() else file).read_text(encoding="utf-8")
        names = re.findall(r"\b(?!_)(\w+) as \1\b", text)
        if names:
            found[package] = tuple(sorted(names))
    return found


def packages() -> Iterator[tuple[str, Path]]:
    """Yield every public package below this one, by its full name, with its ``__init__.py``."""
    # Two rooms may stand elsewhere: where they are, the import system knows.
    from importlib.util import find_spec

    def below(package: str, folder: Path) -> Iterator[tuple[str, Path]]:
        yield package, folder / "__init__.py"
        for file in sorted(folder.glob("[!_]*/__init__.py")):
            yield from below(f"{package}.{file.parent.name}", file.parent)

    found = dict(below(PACKAGE, Path(__file__).parent))
    for room in ("models", "controllers"):
        spec = find_spec(f"{PACKAGE}.{room}")
        if spec and spec.origin:
            found.update(below(spec.name, Path(spec.origin).parent))
    yield from found.items()
