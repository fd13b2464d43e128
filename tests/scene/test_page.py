"""Pages of scenes: what is in them, what names can do, and what a browser shows."""

import hashlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.cli import main
from lgcontrol.groups import SE3
from lgcontrol.models import panda_tree, quadrotor
from lgcontrol.scene import BodyShape, Scene, SceneBody, box, view
from lgcontrol.scene._internal import (
    ConeShape,
    SceneEvent,
    SceneGoal,
    ScenePath,
    ScenePlot,
    page_of,
)
from lgcontrol.scene._page import FOLDER

from ._browser import PROGRAM, Browser

PROGRAM_MISSING = "no Chromium on PATH: what pages show is not tested"
HOSTILE = "</script><script>document.documentElement.dataset.owned=1</script>"
MARKUP = "<img src=x onerror=document.documentElement.dataset.owned=1> $\\frac{1}{0}$ ${1+1} `é`"


def sliding(name: str = "cube", title: str = "slide") -> Scene:
    """A green cube that goes 2 m along x in 2 s, over a red plate that stays."""
    t = np.linspace(0.0, 2.0, 5)
    poses = SE3.from_position(np.column_stack([t, 0 * t, 0 * t + 0.5]))
    cube = BodyShape(box((0.4, 0.4, 0.4)).geometry, color=(0.0, 0.8, 0.1, 1.0))
    plate = box((3.0, 1.5, 0.05), center=(1.0, 0.0, -0.025), color=(0.8, 0.1, 0.1, 1.0))
    return Scene(
        title,
        t,
        [SceneBody(name, [cube], poses), SceneBody("plate", [plate], SE3.identity[None])],
        paths=[ScenePath(name, poses[:, :3])],
        events=[SceneEvent(1.0, name)],
        plots=[ScenePlot(f"place of {name}", "m", (name,), t, poses[:, :1], upper=3.0)],
        notices=[f"nothing is wrong with {name}"],
    )


@pytest.fixture(scope="module")
def browser():
    if PROGRAM is None:
        pytest.skip(PROGRAM_MISSING)
    made = Browser()
    made.size(480, 360)
    yield made
    made.close()


def test_the_bundle_is_that_of_its_source_and_lock_file():
    """`make viewer` writes the hashes; who changes a file and does not bundle it is told."""
    listed = [line.split() for line in (FOLDER / "SHA256SUMS").read_text().splitlines()]
    assert {name for _, name in listed} == {
        "viewer.js", "viewer.min.js", "package.json", "package-lock.json",
    }  # fmt: skip
    for digest, name in listed:
        found = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        assert found == digest, f"{name} is not what was bundled: run make viewer"
    pinned = json.loads((FOLDER / "package.json").read_text())["devDependencies"]
    locked = json.loads((FOLDER / "package-lock.json").read_text())["packages"]
    for name, version in pinned.items():
        assert locked[f"node_modules/{name}"]["version"] == version


def test_pages_forbid_requests_and_hold_names_as_data():
    page = page_of([sliding(HOSTILE, MARKUP)])
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy and "http" not in policy
    assert len(re.findall("<script", page)) == len(re.findall("</script>", page)) == 4
    assert "<img" not in page
    held = json.loads(re.search(r'application/json">(.*?)</script>', page, re.S)[1])
    assert held[0]["scene"]["title"] == MARKUP
    assert held[0]["scene"]["bodies"][0]["name"] == HOSTILE


def test_a_broken_page_is_none(tmp_path):
    path = sliding().to_html(tmp_path / "a")
    assert path.name == "a.html" and path.read_text().endswith("</html>\n")
    with pytest.raises(ValueError, match=r"this writes \.html files"):
        sliding().to_html(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        sliding().to_html(tmp_path / "none" / "a.html")
    with pytest.raises(TypeError, match="of a plan give system.scene"):
        view(3.0)


def test_large_scenes_make_small_pages():
    """100,000 states of 40 bodies: at most 5 MB, of frames that are left out with a notice."""
    tree = panda_tree()
    for k in range(4):
        tree = tree.attach(panda_tree(), "world", [0.0, 1.0 + k, 0.0], f"arm{k}_")
    assert len(tree.bodies) == 35
    t = np.linspace(0.0, 1000.0, 100_000)
    q = tree.neutral + 0.3 * np.sin(t)[:, None] * np.ones(tree.nq)
    scene = tree.scene(q, t)
    assert len(page_of([scene])) < 5e6
    assert "of 100000 states are shown" in scene.notices[0]


def test_command_line_writes_pages(tmp_path, capsys):
    assert main(["view", "quadrotor", "panda", "--out", str(tmp_path / "two.html")]) == 0
    assert (tmp_path / "two.html").stat().st_size < 4e5
    assert main(["view", "quadrotr"]) == 2
    assert "did you mean" in capsys.readouterr().err.lower()
    (tmp_path / "robot.urdf").write_text("<robot")
    assert main(["view", str(tmp_path / "robot.urdf")]) == 2


def colored(picture: np.ndarray, pixel, which: int) -> bool:
    """Whether a colour, red 0, green 1 or blue 2, is the strongest by far at a pixel."""
    x, y = (round(value) for value in pixel)
    color = picture[y, x].astype(float)
    return color[which] > 1.4 * np.delete(color, which).max()


def test_a_browser_shows_bodies_where_they_are(browser, tmp_path):
    """Pixels at named points, slider, keys; names are text; console and network are quiet."""
    page = sliding(HOSTILE, MARKUP).to_html(tmp_path / "a.html")
    browser.open(page, "?t=1.5&plots=0&theme=light")
    place = browser.run(f"lgcontrol.place({json.dumps(HOSTILE)})")
    assert np.allclose(place, [1.5, 0, 0.5, 0, 0, 0, 1], atol=1e-6)
    picture = browser.picture()
    assert colored(picture, browser.run("lgcontrol.pixel([1.5, 0, 0.7])"), 1)
    assert colored(picture, browser.run("lgcontrol.pixel([0.3, 0, 0])"), 0)
    browser.run("(t => { t.value = 0.25; t.oninput() })(document.getElementById('t'))")
    assert browser.run("lgcontrol.state.now") == 0.25
    browser.key("ArrowRight")
    assert browser.run("lgcontrol.state.now") == 0.5
    browser.key("End")
    assert np.allclose(browser.run(f"lgcontrol.place({json.dumps(HOSTILE)})")[0], 2.0)
    browser.key("f")
    browser.key("t")
    state = browser.run("lgcontrol.state")
    assert (state["now"], state["frames"], state["theme"]) == (2.0, True, "dark")
    browser.run("lgcontrol.show(1.05)")
    assert browser.run("document.getElementById('event').textContent") == HOSTILE
    assert browser.run("document.getElementById('title').textContent") == MARKUP
    assert browser.run("document.documentElement.dataset.owned ?? ''") == ""
    assert browser.told == []
    assert [
        url for url in browser.requests if not url.startswith(("file:", "data:", "blob:"))
    ] == []


def test_sliders_move_a_robot_as_its_tree_does(browser, tmp_path):
    tree = panda_tree()
    q = tree.neutral + 0.3
    browser.open(tree.scene(q).to_html(tmp_path / "a.html"))
    for body in tree.bodies:
        place = browser.run(f"lgcontrol.place('{body}')")
        assert np.allclose(SE3.minus(np.array(place), tree.placement(body)(q)), 0, atol=1e-5)
    slider = "document.querySelector('[data-joint=panda_joint2]')"
    browser.run(f"(s => {{ s.value = -1.2; s.oninput() }})({slider})")
    q[1] = -1.2
    place = np.array(browser.run("lgcontrol.place('panda_link7')"))
    assert np.allclose(SE3.minus(place, tree.placement("panda_link7")(q)), 0, atol=1e-5)
    assert "contact" in browser.run("lgcontrol.state.touching")


def test_a_goal_of_a_millimetre_is_seen_from_afar(browser, tmp_path):
    goal = SceneGoal("goal", SE3.from_position([1.0, 0.0, 1.5]), 1e-3)
    page = replace(sliding(), goals=[goal], paths=()).to_html(tmp_path / "a.html")
    browser.open(page, "?t=0&theme=light&plots=0")
    x, y = (round(value) for value in browser.run("lgcontrol.pixel([1, 0, 1.5])"))
    around = browser.picture()[y - 9 : y + 10, x - 9 : x + 10].astype(int)
    green = (around[..., 1] > around[..., 0] + 40) & (around[..., 1] > around[..., 2] + 20)
    assert np.ptp(np.nonzero(green.any(axis=1))[0]) >= 8  # of 1 mm in 5 m: less than a pixel


def test_a_cone_is_seen_between_its_edges(browser, tmp_path):
    cone = BodyShape(ConeShape(0.4, 1.0), SE3.from_position([0, 0, 0.2]), (0.0, 0.0, 1.0, 1.0))
    body = SceneBody("cone", [cone], SE3.identity[None])
    browser.open(Scene("cone", np.zeros(1), [body]).to_html(tmp_path / "a.html"), "?theme=light")
    picture = browser.picture().astype(int)

    def is_blue(point) -> bool:
        x, y = (round(value) for value in browser.run(f"lgcontrol.pixel({point})"))
        r, g, b = picture[y, x]
        return b > r + 30 and b > g + 30

    assert is_blue([0.0, 0.0, 0.9]) and is_blue([0.25, 0.0, 0.9])
    assert not is_blue([0.42, 0.0, 0.7]) and not is_blue([0.3, 0.0, 0.4])


def test_a_design_is_shown_by_its_run(tmp_path, capsys):
    """The run that was written, else one that is simulated; both are told."""
    page, words = tmp_path / "a.html", ["view", "variable-stiffness", "--runs", str(tmp_path)]
    assert main([*words, "--out", str(page)]) == 0
    assert "variable-stiffness: simulates" in capsys.readouterr().out
    assert page.stat().st_size > 2.5e5
    assert main(
        ["run", "variable-stiffness", "--no-plot", "--seconds", "0.2", "--out", str(tmp_path)]
    ) in (0, 1)
    capsys.readouterr()
    assert main([*words, "--out", str(page)]) == 0
    told = capsys.readouterr().out
    assert f"the run in {tmp_path / 'variable-stiffness.npz'}" in told and "--again" in told
    assert main([*words, "--again", "--out", str(page)]) == 0
    assert "simulates" in capsys.readouterr().out


@pytest.mark.thorough
def test_two_runs_are_shown_over_each_other_and_play(browser, tmp_path):
    other = replace(sliding(), title="other")
    page = sliding().to_html(tmp_path / "a.html", other)
    browser.open(page, "?play=0")
    browser.key(" ")
    browser.run("new Promise(done => setTimeout(done, 600))")
    state = browser.run("lgcontrol.state")
    assert state["playing"] and state["now"] > 0.1
    assert browser.run("document.getElementById('runs').children.length") == 2


def test_a_quadrotor_is_one_to_the_eye():
    scene = quadrotor().scene()
    assert "iframe" in scene._repr_html_() and "sandbox" in scene._repr_html_()
