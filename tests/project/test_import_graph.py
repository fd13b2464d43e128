"""No circle of files or folders, no arrow up, and no private attribute of another room.

Imports at the top of a module, inside functions and under TYPE_CHECKING count alike: a file that is
mentioned is a file that must be understood first.
"""

import ast
from collections.abc import Iterable, Mapping
from functools import cache

import pytest

from ._repository import module_name, python_files
from .test_house_rules import BASE, layer_of

# The top level offers names of all rooms, lazily, and models import from it as their copies would.
FACADE = "lgcontrol"


def imports(source: str, module: str, is_package: bool, known: Iterable[str]) -> set[str]:
    """Modules among the known ones that a module imports, of submodules as of names in them."""
    known, found = set(known), set()
    parents = (module if is_package else module.rpartition(".")[0]).split(".")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in known else base)
    return (found & known) - {module}


# Who may take what rooms keep for those above: a design is a user's file.
USERS = {"designs"}


def folders(graph: Mapping[str, Iterable[str]]) -> dict[str, dict[str, set[str]]]:
    """Imports among what stands in each folder, its files and its folders, by the folder's name.

    An import of a folder's list of names counts as one of the folder. A folder that is imported
    from inside its own folder stands on what it holds: that import is an arrow up.
    """
    found: dict[str, dict[str, set[str]]] = {}
    packages = {name.rpartition(".")[0] for name in graph}
    for name, targets in graph.items():
        own = [*name.split("."), *(["__init__"] if name in packages else [])]
        for target in targets:
            other = [*target.split("."), *(["__init__"] if target in packages else [])]
            k = next(i for i, (a, b) in enumerate(zip(own, other, strict=False)) if a != b)
            found.setdefault(".".join(own[:k]), {}).setdefault(own[k], set()).add(other[k])
    return found


PROTOCOL = {"_replace", "_asdict", "_fields", "_make", "_name_", "_value_"}  # of the language
ELSEWHERE = {"_axinfo", "_getframe"}  # of other packages, where these have no public way


def defined(tree: ast.AST) -> set[str]:
    """Return all names that a file binds: of functions, classes, variables, members."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # of object.__setattr__ and __slots__
    return found


def reached(tree: ast.AST, own: set[str]) -> list[str]:
    """Private attributes of other rooms' objects; what a class inherits is not."""
    found, allowed = [], own | PROTOCOL | ELSEWHERE
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        name, of = node.attr, node.value
        inherited = getattr(of, "id", "") in ("self", "cls") or (
            isinstance(of, ast.Call) and getattr(of.func, "id", "") == "super"
        )
        if not (name.startswith("__") or name in allowed or inherited):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def private_imports(source: str, module: str, is_package: bool) -> set[str]:
    """What a module imports of another room that is neither public nor in its `_internal`."""
    tree, parents = ast.parse(source), module if is_package else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = parents.split(".")[: len(parents.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            kept = parts[2:3] == ["_internal"] and layer_of(module) not in USERS
            if layer_of(name) in BASE:
                continue
            inside = any(part.startswith("_") for part in parts[3 if kept else 0 :])
            if inside and name.split(".")[0] == FACADE and layer_of(name) != layer_of(module):
                found.add(name)
    return found


def circles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Strongly connected components with more than one member (Tarjan's algorithm, by hand)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(start: str) -> None:
        work = [(start, iter(graph.get(start, ())))]
        number[start] = low[start] = len(number)
        stack.append(start)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    work.append((target, iter(graph.get(target, ()))))
                    break
                if target in stack:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    component = set(stack[stack.index(node) :])
                    del stack[stack.index(node) :]
                    if len(component) > 1:
                        found.append(component)

    for node in graph:
        if node not in number:
            visit(node)
    return found


PATHS = {module_name(path): path for path in python_files()}
ROOMS = sorted({layer_of(name) for name in PATHS} - {FACADE})


@cache
def graph_of_files() -> dict[str, set[str]]:
    """Return the modules that each file imports."""
    return {
        name: imports(path.read_text(), name, path.name == "__init__.py", PATHS)
        for name, path in PATHS.items()
    }


@pytest.mark.parametrize("room", ROOMS)
def test_no_circle_of_files_in_a_room(room):
    graph = graph_of_files()
    own = {name for name in graph if layer_of(name) == room}
    found = circles({name: sorted(graph[name] & own) for name in sorted(own)})
    assert not found, f"{room}: {[sorted(circle) for circle in found]}"


def test_no_arrow_up_among_folders():
    """Folders of a room stand on each other one way, as files do."""
    graph = {name: targets - {FACADE} for name, targets in graph_of_files().items()}
    found = {
        folder: [sorted(circle) for circle in circles({k: sorted(v) for k, v in inside.items()})]
        for folder, inside in folders(graph).items()
        if folder != FACADE  # rooms have a table of layers
    }
    assert not {folder: circle for folder, circle in found.items() if circle}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_use_no_private_attribute_of_others(room):
    trees = {name: ast.parse(PATHS[name].read_text()) for name in PATHS if layer_of(name) == room}
    own = set().union(*map(defined, trees.values()))
    found = {name: reached(tree, own) for name, tree in trees.items()}
    assert not {name: places for name, places in found.items() if places}


def test_no_circle_between_rooms():
    rooms: dict[str, set[str]] = {room: set() for room in ROOMS}
    for name, targets in graph_of_files().items():
        if layer_of(name) != FACADE:
            rooms[layer_of(name)] |= {layer_of(target) for target in targets} - {FACADE}
    assert not circles({room: sorted(targets - {room}) for room, targets in rooms.items()})


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_take_from_others_what_these_export(room):
    """What users type is in a room's list of names, what rooms above need in its `_internal`."""
    found = {
        name: sorted(
            private_imports(PATHS[name].read_text(), name, PATHS[name].name == "__init__.py")
        )
        for name in PATHS
        if layer_of(name) == room
    }
    assert not {name: names for name, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from ..groups._so3 import SO3", {"lgcontrol.groups._so3.SO3"}),
        ("def f():\n    from lgcontrol.groups import _so3", {"lgcontrol.groups._so3"}),
        ("import lgcontrol.groups._so3", {"lgcontrol.groups._so3"}),
        ("from ..groups import SO3\nfrom ._b import B\nfrom numpy import _core", set()),
        ("from ..groups._internal import ask_order\nfrom ..groups import _internal", set()),
        (
            "from ..mechanics.multibody._internal import a\nfrom ..groups._internal import _b",
            {"lgcontrol.mechanics.multibody._internal.a", "lgcontrol.groups._internal._b"},
        ),
    ],
)
def test_planted_private_imports_are_found(source, expected):
    assert private_imports(source, "lgcontrol.systems._a", False) == expected


def test_a_design_takes_what_users_type():
    source, module = "from ...groups._internal import ask_order", "lgcontrol.controllers.designs.a"
    assert private_imports(source, module, False) == {"lgcontrol.groups._internal.ask_order"}


def test_a_room_does_not_take_from_its_own_internal():
    """It takes from the file that has it: the list is for rooms above, and would close a circle."""
    found = [
        (name, target)
        for name, targets in graph_of_files().items()
        for target in targets
        if target.endswith("._internal") and layer_of(target) == layer_of(name)
    ]
    assert not found


@pytest.mark.parametrize(
    "source",
    [
        "from ._b import B",
        "def f():\n    from ._b import B",
        "if TYPE_CHECKING:\n    from . import _b",
        "import lgcontrol.groups._b",
    ],
)
def test_planted_circles_are_found(source):
    known = ["lgcontrol.groups._a", "lgcontrol.groups._b", "lgcontrol.groups._c"]
    graph = {
        known[0]: imports(source, known[0], False, known),
        known[1]: imports("from ._c import C", known[1], False, known),
        known[2]: imports("from ..groups._a import A\nimport numpy", known[2], False, known),
    }
    assert circles(graph) == [set(known)]
    graph[known[2]] = set()
    assert circles(graph) == []


def test_planted_arrows_up_are_found():
    graph = {
        "a.tree._tree": {"a.tree._joint"},
        "a.tree._system": {"a.compiled._compiled"},
        "a.compiled._compiled": {"a.tree._tree"},
        "a.tree": set(),
    }
    assert circles(folders(graph)["a"]) == [{"tree", "compiled"}]
    graph["a._system"] = graph.pop("a.tree._system")
    assert not circles(folders(graph)["a"])
    graph["a.tree._joint"] = {"a.tree"}  # the list of names stands on the files
    graph["a.tree"] = {"a.tree._joint"}
    assert circles(folders(graph)["a.tree"]) == [{"__init__", "_joint"}]


def test_planted_private_attributes_are_found():
    source = "def f(self, group, x):\n    return group._ad(x) @ self._own + x._replace()._mine"
    assert reached(ast.parse(source), {"_mine"}) == ["line 2: group._ad"]
