"""Designs as texts that other processes can load, and the hash of the code that they stand on."""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import lgcontrol

from ..codegen._internal import UnknownNameError, find_compiler, unknown_name
from ..simulation import Criterion

DESIGN_GROUP = "lgcontrol.designs"
SOURCES = (".py", ".c", ".h", ".toml", ".urdf", ".so")
# Programs whose other versions may give other bits.
LIBRARIES = ("numpy", "scipy", "casadi")


class CampaignError(RuntimeError):
    """A campaign cannot start or go on; what it has stays in its store."""


def refer(design: str | Callable[..., Any]) -> str:
    """Text that names a design in every process: "module:function" or "file.py:function".

    Parameters
    ----------
    design : str or callable
        A name of `lgcontrol list`, such a text, or a function of a module. A file alone means its
        function `design`.
    """
    if isinstance(design, str):
        if design.endswith(".py"):
            design = f"{design}:design"
        if ":" in design:
            load(design)
            return design
        known = {entry.name: entry.value for entry in entry_points(group=DESIGN_GROUP)}
        if design not in known:
            raise UnknownNameError(unknown_name("design", design, sorted(known)))
        return known[design]
    name, home = getattr(design, "__qualname__", ""), getattr(design, "__module__", "")
    file = None
    try:
        file = inspect.getsourcefile(design)
    except TypeError:  # no function
        pass
    if not name.isidentifier() or file is None or not Path(file).is_file():
        raise ValueError(
            f"the design {name or design!r} must be a function of a module or file, which other "
            'processes can load: write it to a file, and give "FILE.py:FUNCTION"'
        )
    if home != "__main__" and _is_importable(home, Path(file)):
        return f"{home}:{name}"
    return f"{Path(file).resolve()}:{name}"


def load(reference: str) -> Callable[..., Any]:
    """The design that a text names."""
    home, _, name = reference.rpartition(":")
    module = _from_file(home) if home.endswith(".py") else import_module(home)
    found = getattr(module, name, None)
    if not callable(found):
        own = {
            k for k, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__
        }
        there = f"it has {', '.join(sorted(own))}" if own else "it has none"
        raise ValueError(f"{home} has no function {name!r}: {there}")
    return found


def code_of(reference: str, homes: Sequence[str] = ()) -> str:
    """Hash of the code: the design, modules of criteria, the package and its libraries."""
    home = reference.rpartition(":")[0]
    if home.endswith(".py"):
        files = [Path(home)]
    else:
        files = [Path(str(inspect.getsourcefile(import_module(home))))]
    for name in homes:
        module = sys.modules.get(name)
        if str(getattr(module, "__file__", None)).endswith(".py"):
            files.append(Path(str(module.__file__)))  # type: ignore[union-attr]
    parts: set[str] = set()
    for file in files:
        if not file.resolve().is_relative_to(Path(lgcontrol.__file__).resolve().parent):
            parts |= {f"{one.name}:{_digest(one)}" for one in _sources(file)}
    return _hash([_package(), files[0].name, *sorted(parts)])


def homes_of(criteria: Sequence[Criterion] | None) -> tuple[str, ...]:
    """Modules of measures; of partial functions those of their functions."""
    measures = [getattr(one.measure, "func", one.measure) for one in criteria or ()]
    return tuple(getattr(one, "__module__", type(one).__module__) for one in measures)


def _sources(file: Path) -> set[Path]:
    """A file with what it imports of its folder and below, or with all files of its package.

    Imports are read from the text: what a process happens to have loaded says nothing of others.
    """
    if (file.parent / "__init__.py").exists():
        return set(file.parent.glob("*.py"))
    found, left = set(), [file]
    while left:
        one = left.pop()
        if one in found or not one.is_file():
            continue
        found.add(one)
        for node in ast.walk(ast.parse(one.read_bytes())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [".".join(filter(None, (node.module, a.name))) for a in node.names]
            else:
                continue
            folders = {file.parent, one.parent}
            parts = [name.split(".")[:k] for name in names for k in range(1, name.count(".") + 2)]
            for place in (Path(folder, *part) for folder in folders for part in parts):
                left += [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    return found


@cache
def machine() -> str:
    """What decides the bits besides the code: the processor's type, and the compiler."""
    compiler = find_compiler()
    known = "no compiler"
    if compiler is not None:
        known = f"{compiler.kind} {compiler.identity[:12]}"
    return f"{_processor()}, {platform.system()} {platform.machine()}, {known}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((one.partition(":")[2].strip() for one in lines if "model name" in one), "unknown")


@cache
def _package() -> str:
    """Hash of the package's sources and of the libraries' versions."""
    root = Path(lgcontrol.__file__).parent
    found = [
        Path(folder, name)
        for folder, _, names in os.walk(root, followlinks=True)
        for name in names
        if name.endswith(SOURCES)
    ]
    parts = [f"{one.relative_to(root)}:{_digest(one)}" for one in sorted(found)]
    versions = [f"{name} {_version(name)}" for name in LIBRARIES]
    return _hash([*parts, *versions, ".".join(map(str, sys.version_info[:2]))])


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _hash(parts: list[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "?"


def _is_importable(module: str, file: Path) -> bool:
    """Whether a process that has imported nothing yet finds a module at this file."""
    top, *parts = module.split(".")
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(top, None) if find is not None else None
        if spec is None:
            continue
        if not parts:
            return spec.origin is not None and Path(spec.origin).samefile(file)
        places = [Path(one, *parts) for one in spec.submodule_search_locations or ()]
        found = [one / "__init__.py" for one in places] + [one.with_suffix(".py") for one in places]
        return any(one.is_file() and one.samefile(file) for one in found)
    return False


@cache
def _from_file(path: str) -> ModuleType:
    """A file as a module that no other has the name of."""
    name = f"lgcontrol_design_{hashlib.sha256(path.encode()).hexdigest()[:12]}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not Path(path).is_file():
        raise ValueError(f"there is no file {path}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
