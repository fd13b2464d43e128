"""Rules that no linter knows: layers, dangerous calls, names of package indexes, long files."""

import ast
import re
import warnings
from functools import lru_cache

import pytest

from ._repository import ROOT, module_name, python_files, repository_files

SOFT_LINE_LIMIT = 700  # past it a file usually holds two ideas

# Layer -> layers it may import. Dependencies point one way; `io`, `scene` and `plotting` serve the
# layers on top: `io` knows nothing of the rest, `scene` is what models, plans and runs make for
# others to draw, `plotting` knows groups, scenes and what of a run it draws; who has a `plot`
# imports it when that is called.
KERNEL = {"codegen", "groups", "integrators", "systems"}
SERVICES = {"io", "plotting", "scene"}
BASE = {"_names"}  # what every package answers when it is asked for an unknown name
USER = {"lgcontrol"}  # the public top level, as users write it in what they copy
LAYERS = {
    "io": set(),
    "codegen": set(),
    "groups": {"codegen"},
    "integrators": {"codegen", "groups"},
    "systems": {"codegen", "groups", "integrators"} | SERVICES,
    "scene": {"codegen", "groups", "io"},
    "plotting": {"codegen", "groups", "scene"},
    "optimal": KERNEL | SERVICES,
    "estimation": KERNEL | SERVICES | {"optimal", "simulation"},
    "simulation": KERNEL | SERVICES,
    "mechanics": KERNEL | SERVICES,
    "models": KERNEL | SERVICES | USER | {"mechanics"},
    "controllers": KERNEL | SERVICES | USER | {"mechanics", "optimal", "estimation", "simulation"},
    "campaigns": KERNEL | SERVICES | USER | {"simulation", "estimation", "controllers"},
}
TOOLKIT = set(LAYERS) - {"models", "controllers"}
LAYERS["lgcontrol"] = TOOLKIT | {"models", "controllers"}  # resolved lazily, from __init__.pyi
LAYERS["cli"] = LAYERS["__main__"] = TOOLKIT | {"cli", "lgcontrol"}
LAYERS |= {layer: set() for layer in BASE}
LAYERS["designs"] = set(LAYERS)  # controllers/designs puts everything together


@lru_cache(maxsize=1)
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def layer_of(module: str) -> str:
    """Return the layer a module belongs to: lgcontrol.groups._so3 is in groups."""
    parts = module.split(".")
    if parts[:3] == ["lgcontrol", "controllers", "designs"]:
        return "designs"
    return parts[1] if len(parts) > 1 else "lgcontrol"


def imported_modules(tree: ast.AST, package: str) -> list[tuple[int, str]]:
    """Return (line, absolute name) of every import, those in functions and by string as well."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                parents = parents[: len(parents) - node.level + 1]
                base = ".".join([*parents, base] if base else parents)
            names = [f"{base}.{alias.name}" for alias in node.names]
            # `from lgcontrol import groups` imports a layer, `from lgcontrol import SO3` a name of
            # the top level; elsewhere the imported name does not change the layer.
            found += [(node.lineno, n if n.split(".")[1] in LAYERS else base) for n in names]
        elif isinstance(node, ast.Call) and called_name(node) in ("import_module", "__import__"):
            found += [
                (node.lineno, arg.value)
                for arg in node.args
                if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
            ]
    return found


def called_name(call: ast.Call) -> str:
    function = call.func
    return getattr(function, "id", getattr(function, "attr", ""))


def layer_violations(source: str, module: str, is_package: bool) -> list[str]:
    own = layer_of(module)
    if own not in LAYERS:
        return [f"{module}: unknown layer {own!r}; add it to LAYERS and to the layout"]
    package = module if is_package else module.rpartition(".")[0]
    allowed = LAYERS[own] | {own} | BASE
    return [
        f"line {line}: {own} must not import {name}; it may import {sorted(LAYERS[own])}"
        for line, name in imported_modules(parsed(source), package)
        if name.split(".")[0] == "lgcontrol" and layer_of(name) not in allowed
    ]


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
UNSAFE_BUILTINS = {"eval", "exec"}
# What stands in every file with one of them.
UNSAFE = re.compile(r"import\s*\(?\s*\*|pickle|dill|marshal|shelve|\b(eval|exec)\b", re.IGNORECASE)


def unsafe_constructs(source: str) -> list[str]:
    """Return star imports, pickling, and calls of the builtins eval and exec (not of methods)."""
    found = []
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names):
            found.append(f"line {node.lineno}: from {node.module} import *")
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in UNSAFE_BUILTINS:
            found.append(f"line {node.lineno}: {node.func.id}()")
        elif isinstance(node, ast.Call):
            found += [
                f"line {node.lineno}: allow_pickle"
                for keyword in node.keywords
                if keyword.arg == "allow_pickle"
                and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False)
            ]
    found += [
        f"line {line}: {name}"
        for line, name in imported_modules(parsed(source), "lgcontrol")
        if name.split(".")[0] in UNSAFE_MODULES
    ]
    return found


# Where packages come from is the user's setting. Written so that this file does not match itself.
INDEX = re.compile(
    r"pypi[.]org|pythonhosted[.]|npmjs[.]|files[.]python|deb[.]debian"
    r"|conda[.]anaconda|--(?:extra-)?index[-]url|--find[-]links|trusted[-]host|(?:extra-)?index[-]url\s*="
    r"|PIP_(?:EXTRA_)?INDEX|UV_(?:DEFAULT_)?INDEX",
    re.IGNORECASE,
)


def test_dependencies_point_one_way_and_nothing_runs_strings():
    """Layers, and no star imports, pickle, eval or exec; each file is parsed once."""
    found = []
    for path in python_files():
        source, is_package = path.read_text(), path.name == "__init__.py"
        faults = layer_violations(source, module_name(path), is_package)
        if UNSAFE.search(source):  # going through all of them takes seconds
            faults += unsafe_constructs(source)
        found += [f"{path.relative_to(ROOT)}: {fault}" for fault in faults]
    assert not found, "\n".join(found)


def test_no_star_imports_elsewhere():
    for name in repository_files("tests", "tools"):
        source = (ROOT / name).read_text() if name.endswith(".py") else ""
        if re.search(r"import\s*\(?\s*\*", source):  # parsing them all takes seconds
            found = [f for f in unsafe_constructs(source) if "import *" in f]
            assert not found, f"{name}: {found}"


def test_no_file_names_a_package_index():
    found = []
    for name in repository_files():
        try:
            text = (ROOT / name).read_text()
        except UnicodeDecodeError:
            continue
        for match in INDEX.finditer(text):
            row = text.count("\n", 0, match.start())
            line = text.split("\n")[row]
            found.append(f"{name}:{row + 1}: {line}")
    assert not found, "package indexes belong to the user's settings:\n" + "\n".join(found)


@pytest.mark.filterwarnings("default:.*over.*lines:UserWarning")
def test_long_files_are_reported():
    lengths = {p.relative_to(ROOT): len(p.read_text().splitlines()) for p in python_files()}
    long = [f"{path} ({n})" for path, n in sorted(lengths.items()) if n > SOFT_LINE_LIMIT]
    if long:
        warnings.warn(f"over {SOFT_LINE_LIMIT} lines, two ideas in one file? {long}", stacklevel=1)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("lgcontrol.groups._so3", "from ..mechanics import Multibody"),
        ("lgcontrol.groups._so3", "from .. import mechanics"),
        ("lgcontrol.groups._so3", "from lgcontrol import SE3"),
        ("lgcontrol.groups._so3", "import lgcontrol"),
        ("lgcontrol.optimal._ocp", "def f():\n    import lgcontrol.mechanics.tree"),
        ("lgcontrol.simulation._loop", "from lgcontrol import models"),
        ("lgcontrol.cli", "import importlib\nimportlib.import_module('lgcontrol.controllers')"),
        ("lgcontrol.io._urdf", "from ..groups import SO3"),
        ("lgcontrol.models.arm", "from lgcontrol.controllers import MPC"),
        ("lgcontrol.controllers.mpc", "from ..models.arm import panda"),
        ("lgcontrol.newlayer._x", "import numpy"),
    ],
)
def test_a_planted_import_upwards_is_found(module, source):
    assert layer_violations(source, module, is_package=False)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "lgcontrol.groups._so3",
            "from ._base import LieGroup\nfrom ..codegen import X",
        ),
        ("lgcontrol.mechanics.tree", "from ..systems._system import System\nfrom . import _joint"),
        ("lgcontrol.models.arm", "import lgcontrol as lg\nfrom .data import x\nimport casadi"),
        ("lgcontrol.controllers.designs.hover", "from ...models import quadrotor"),
        ("lgcontrol.controllers.designs.hover", "from lgcontrol import simulate"),
    ],
)
def test_imports_downwards_pass(module, source):
    assert not layer_violations(source, module, is_package=False)


@pytest.mark.parametrize(
    "source",
    [
        "from numpy import *",
        "import pickle",
        "from pickle import loads",
        "eval('1')",
        "def f():\n    exec('1')",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
    ],
)
def test_a_planted_unsafe_construct_is_found(source):
    assert UNSAFE.search(source) and unsafe_constructs(source)


def test_methods_named_eval_pass():
    assert not unsafe_constructs("import numpy as np\nf.eval(1)\nnp.load('x', allow_pickle=False)")


@pytest.mark.parametrize(
    "line",
    [
        "pip install -i https://pypi" + ".org/simple x",
        "uv pip install --extra-index" + "-url https://mirror.example/simple",
        "registry=https://registry.npmjs" + ".org/",
        "export PIP_" + "INDEX_URL=x",
    ],
)
def test_a_planted_package_index_is_found(line):
    assert INDEX.search(line)


def test_a_class_name_means_one_thing():
    """Names of classes, private ones as well, are given once; see rule 1 of the style."""
    homes: dict[str, list[str]] = {}
    for path in python_files():
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
            homes.setdefault(name.lstrip("_").lower(), []).append(module_name(path))
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice


# What they are asked for is another object's, whichever that is.
PASS_ON = {"TracedLater", "Adapted", "Late"}


def open_classes(source: str) -> set[str]:
    """Return classes with a ``__getattr__`` that type checkers see: they take it for every name."""
    return {
        node.name
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.ClassDef)
        for entry in node.body
        if isinstance(entry, ast.FunctionDef) and entry.name == "__getattr__"
    }


def test_misspelt_attributes_are_errors_to_type_checkers():
    """A ``__getattr__`` that gives hints stands under ``if not TYPE_CHECKING``."""
    found = set()
    for path in python_files():
        source = path.read_text()
        found |= open_classes(source) if "__getattr__" in source else set()
    assert found == PASS_ON


def test_a_planted_getattr_is_found():
    plain = "class A:\n    def __getattr__(self, name): ...\n"
    hidden = "class A:\n    if not TYPE_CHECKING:\n        def __getattr__(self, name): ...\n"
    assert open_classes(plain) == {"A"} and not open_classes(hidden)


def constants(source: str) -> list[str]:
    """Return names in capitals that a module defines, those of tuples as well."""
    names = r"[A-Z][A-Z0-9_]+(?:, [A-Z][A-Z0-9_]+)*"
    found = re.findall(rf"^({names})(?:: [^=\n]+)? = ", source, re.MULTILINE)
    return [name for line in found for name in line.split(", ")]


def test_constants_of_a_tuple_are_found():
    source = "CLOSED, NEWTON = 1e-13, 30\nLIMIT: float = 2.0\nnot_one = 3\n    INNER = 4\n"
    assert constants(source) == ["CLOSED", "NEWTON", "LIMIT"]


def test_a_constant_has_one_definition():
    """A name in capitals stands for one number: in the toolkit without designs and planning.

    Designs are tasks with numbers of their own; planning keeps its numbers in one record.
    """
    homes: dict[str, list[str]] = {}
    for path in python_files():
        module = module_name(path)
        is_toolkit = module.startswith("lgcontrol") and layer_of(module) in LAYERS
        if not is_toolkit or layer_of(module) in ("optimal", "designs", "models"):
            continue
        if "._mpc" in module:
            continue
        for name in constants(path.read_text()):
            homes.setdefault(name, []).append(module)
    twice = {name: places for name, places in homes.items() if len(places) > 1}
    assert not twice, "import it, or say whose number it is in its name"
    assert "GRAVITY" in homes and len(homes) > 300
