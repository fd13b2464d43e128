"""Pages of the reference, written from the docstring of each room before Sphinx reads.

A room's docstring lists its public names by task, ``- Task: `name`, `name`.`` a line; each task
becomes a page, so that a page stays small and what belongs together stands together.
"""

import importlib
import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOMS = {
    "models": "Ready models",
    "controllers": "Controllers",
    "simulation": "Closed loops",
    "campaigns": "Campaigns",
    "systems": "Systems",
    "optimal": "Optimal control",
    "estimation": "Estimation",
    "mechanics": "Mechanics",
    "mechanics.constrained": "Joints as equations",
    "mechanics.representations": "Frames of twists",
    "groups": "Groups",
    "integrators": "Integrators",
    "plotting": "Figures",
    "scene": "Scenes",
    "io": "Files",
    "codegen": "Compiled functions",
}
MODELS = [
    ("Mechanisms", re.compile(r"_mechanism$")),
    ("Trees", re.compile(r"_tree$|^elastic_")),
    ("Vehicles and arms", re.compile(r"")),
]
HEAD = "```{eval-rst}\n"
TAIL = "```\n"


@dataclass(frozen=True)
class Topic:
    """One task of a room, and the names that serve it."""

    title: str
    names: list[str]


def public_names(room: Any) -> list[str]:
    """Return what a room offers: its attributes that are not modules and have no underscore."""
    return [
        name
        for name, value in vars(room).items()
        if not name.startswith("_") and not inspect.ismodule(value)
    ]


def topics(room: Any) -> list[Topic]:
    """Return the tasks that a room's docstring lists, with every public name in one of them."""
    left = dict.fromkeys(public_names(room))
    found = []
    if room.__name__.endswith("models"):
        for title, pattern in MODELS:
            names = sorted(name for name in left if pattern.search(name))
            found.insert(0, Topic(title, names))
            left = {name: None for name in left if name not in names}
        return found
    for title, text in re.findall(
        r"^- ([A-Z][^`:]*?)(?:, [^:]*?|): ?((?:.|\n(?!- |\n))*)", inspect.getdoc(room) or "", re.M
    ):
        names = [name for name in re.findall(r"(?<!`)`(\w+)`(?!`)", text) if name in left]
        left = {name: None for name in left if name not in names}
        if names:
            found.append(Topic(title, list(dict.fromkeys(names))))
    if left:
        found.append(Topic("Further names", sorted(left)))
    return found


def shows_bases(value: type) -> bool:
    """Whether all bases are names that users type; others say nothing to them."""
    public = {
        id(entry)
        for module in ROOMS
        for entry in vars(importlib.import_module(f"lgcontrol.{module}")).values()
    }
    return all(id(base) in public for base in value.__bases__)


def entry(room: Any, name: str, entered: dict[int, str]) -> str:
    """Return the directive that documents one name where users import it from.

    A name that another room offers as well is entered once; `entered` says where.
    """
    value = getattr(room, name)
    path = f"{room.__name__}.{name}"
    first = entered.setdefault(id(value), path)
    if first != path:
        return f"`{path}` is `{first}`.\n\n"
    home = inspect.getmodule(value)
    if inspect.isclass(value) and home is not None and home.__name__.startswith("lgcontrol"):
        told = ":members:" + ("\n   :show-inheritance:" if shows_bases(value) else "")
        return f".. autoclass:: {path}\n   {told}\n\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n\n"
    return f".. autodata:: {path}\n   :no-value:\n\n"


def slug(title: str) -> str:
    """Return the file's name of a page."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def write(path: Path, text: str, kept: set[Path]) -> None:
    """Write a page unless it says the same already, so that Sphinx builds only what changed."""
    kept.add(path)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_room(
    folder: Path, module: str, title: str, kept: set[Path], entered: dict[int, str]
) -> None:
    """Write the page of one room and a page for each of its tasks."""
    room = importlib.import_module(f"lgcontrol.{module}")
    home = folder / module
    lines = [f"# {title}\n", f"`lgcontrol.{module}`\n"]
    first = (inspect.getdoc(room) or "").split("\n\n")[0]
    lines += [first + "\n", "| task | names |", "|---|---|"]
    toc = []
    for topic in topics(room):
        page = slug(topic.title)
        names = ", ".join(f"`{name}`" for name in topic.names)
        lines.append(f"| [{topic.title}]({module}/{page}.md) | {names} |")
        toc.append(f"{module}/{page}")
        body = "".join(entry(room, name, entered) for name in topic.names)
        scope = f".. currentmodule:: {room.__name__}\n\n"
        write(home / f"{page}.md", f"# {topic.title}\n\n{HEAD}{scope}{body}{TAIL}", kept)
    lines += ["", "```{toctree}", ":hidden:", *toc, "```", ""]
    write(folder / f"{module}.md", "\n".join(lines), kept)


def write_pages(app: Any) -> None:
    """Write the reference below docs/reference and remove pages of names that have gone."""
    folder = Path(app.srcdir) / "docs" / "reference"
    kept: set[Path] = set()
    entered: dict[int, str] = {}
    for module, title in ROOMS.items():
        write_room(folder, module, title, kept, entered)
    index = ["# Reference", "", "| room | for |", "|---|---|"]
    for module, title in ROOMS.items():
        text = inspect.getdoc(importlib.import_module(f"lgcontrol.{module}")) or ""
        first = text.split("\n")[0]
        index.append(f"| [{title}]({module}.md) `lgcontrol.{module}` | {first} |")
    index += ["", "```{toctree}", ":hidden:", *ROOMS, "```", ""]
    write(folder / "index.md", "\n".join(index), kept)
    for path in set(folder.rglob("*.md")) - kept:
        path.unlink()


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("config-inited", lambda app, config: write_pages(app))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
