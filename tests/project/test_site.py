"""The reference has every public name once, by the tasks of the rooms' docstrings."""

import importlib
import importlib.util
import re
import shutil
import subprocess
from posixpath import join, normpath
from urllib.parse import quote

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
    folders = (*(ROOT / "lgcontrol").iterdir(), ROOT / "models", ROOT / "controllers")
    rooms = {
        folder.name
        for folder in folders
        if (folder / "__init__.py").exists() and not folder.name.startswith("_")
    }
    assert rooms - set(reference.ROOMS) == {"cli"}


def test_bases_are_shown_only_if_users_type_them():
    from lgcontrol import Bound
    from lgcontrol.mechanics import Gravity

    assert reference.shows_bases(Gravity)  # a Force
    assert not reference.shows_bases(Bound)
    assert not reference.shows_bases(type("Own", (reference.Topic,), {}))


SITE = ROOT / "build" / "site"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
# What a newcomer wants, the words to search for, and the page that says it.
TASKS = {
    "fly a robot of my own file": ("URDF", "notebooks/your_own_robot"),
    "keep away from an obstacle": ("obstacle", "docs/howto/limits_and_obstacles"),
    "run MPC on a microcontroller": ("export C", "docs/howto/export_c"),
    "allow for a delay": ("delay", "notebooks/mpc_in_practice"),
    "read a status": ("infeasible", "docs/troubleshooting"),
    "plan for springs in joints": ("springs", "docs/howto/springs_in_joints"),
    "linearize about an equilibrium": ("linearize", "docs/howto/equilibrium"),
    "tell how sure a design is": ("confidence", "docs/howto/campaign"),
    "see why groups are used": ("quaternion", "notebooks/why_groups"),
    "write an integrator": ("own integrator", "docs/extending"),
}
needs_site = pytest.mark.skipif(
    not (SITE / "searchindex.js").exists(), reason="no site is built: make docs"
)


@needs_site
@pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt install chromium")
@pytest.mark.parametrize(
    "task", [task if k == 0 else pytest.param(task, marks=pytest.mark.thorough)
             for k, task in enumerate(TASKS)]
)  # fmt: skip
def test_search_finds_the_page_offline(task, tmp_path):
    words, page = TASKS[task]
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    options += ["--virtual-time-budget=8000", f"--user-data-dir={tmp_path}"]
    address = f"{(SITE / 'search.html').as_uri()}?q={quote(words)}"
    shown = subprocess.run(
        [BROWSER, *options, address], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    found = re.findall(r'<li[^>]*><a href="([^"#?]+)', shown)
    assert f"{page}.html" in found[:8], found


@needs_site
@pytest.mark.parametrize("task", TASKS)
def test_two_clicks_lead_from_the_front_page_to_a_task(task):
    _, page = TASKS[task]
    reached = near = {"docs/index.html"}
    for _ in range(2):
        near = {link for one in near for link in _links(one)} - reached
        reached = reached | near
    assert f"{page}.html" in reached


def _links(page: str) -> set[str]:
    """Pages that the text of a page links to, without the bar at its side."""
    text = (SITE / page).read_text(encoding="utf-8")
    text = text[text.index("<article") : text.index("</article>")]
    found = {
        normpath(join(page.rpartition("/")[0], link))
        for link in re.findall(r'href="([^"#:]+\.html)', text)
    }
    return {link for link in found if (SITE / link).exists()}
