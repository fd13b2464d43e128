"""Six scenes in a browser: each shows its last body where the model says it is."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody
from lgcontrol.models import (
    delta_robot_tree,
    elastic_ur5,
    panda_tree,
    quadrotor,
    underwater_vehicle_arm,
)
from lgcontrol.optimal import Capsule, Sphere
from lgcontrol.scene import Scene

from ._browser import PROGRAM, Browser
from .test_page import PROGRAM_MISSING

pytestmark = pytest.mark.thorough
PAINT = (1.0, 0.0, 1.0, 1.0)
T = np.linspace(0.0, 1.0, 21)
GATES = {"gate 1": Sphere([1.0, 0.6, 1.0], 0.2), "gate 2": Capsule([2, 0, 0.4], [2, 0, 1.6], 0.1)}


@pytest.fixture(scope="module")
def browser():
    if PROGRAM is None:
        pytest.skip(PROGRAM_MISSING)
    made = Browser()
    made.size(800, 600)
    yield made
    made.close()


def quadrotor_among_gates(shared) -> tuple[Scene, str]:
    quad = quadrotor()
    x = np.tile(quad.home, (len(T), 1))
    x[:, :3] = np.column_stack([2.5 * T, np.sin(3 * T), 1 + 0.3 * T])
    goal = SE3.from_position([2.5, 0.1, 1.3])
    return quad.scene(x, T, goals=[goal], obstacles=GATES), "quadrotor"


def vehicle_with_arm(shared) -> tuple[Scene, str]:
    system = underwater_vehicle_arm()
    x = np.tile(system.home, (len(T), 1))
    at = system.state.coordinate_slice("configuration")
    x[:, at.start + 2], x[:, at.start + 8 : at.start + 11] = -1 + 0.5 * T, 0.8 * T[:, None]
    return system.scene(x, T), "arm_wrist_link"


def panda_among_capsules(shared) -> tuple[Scene, str]:
    tree = panda_tree()
    q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785]) + 0.7 * T[:, None]
    post = Capsule([0.5, -0.4, 0.0], [0.5, -0.4, 0.6], 0.05)
    return tree.scene(q, T, obstacles={"post": post}), "panda_link7"


def delta(shared) -> tuple[Scene, str]:
    robot = delta_robot_tree()
    system = robot.system(("arm1", "arm2", "arm3"))
    heights = np.repeat(np.linspace(-0.9, -0.75, 5), 5)[: len(T)]
    q = {z: robot.assemble(where={"platform.z": z}) for z in np.unique(heights)}
    x = np.array([np.concatenate([q[z], np.zeros(robot.tree.nv)]) for z in heights])
    return system.scene(x, T), "platform"


def soft_ur5(shared) -> tuple[Scene, str]:
    system = elastic_ur5()
    x = np.tile(system.home, (len(T), 1))
    x[:, 1] = -1.2 + 0.5 * T
    x[:, 2] = 0.9 * T
    return system.scene(x, T), "wrist_3_link"


def standing_quadruped(shared) -> tuple[Scene, str]:
    tree = Multibody.from_urdf(shared / "robots" / "solo12.urdf", base="free", on_finding="ignore")
    q = np.tile(tree.neutral, (len(T), 1))
    q[:, 7:] = np.tile([0.0, 0.8, -1.6], 4)
    q[:, 2] = 0.24 + 0.05 * T
    scene = tree.scene(q, T)
    (told,) = scene.notices  # the file names meshes of a package that is not there
    assert told.startswith("10 meshes not drawn: ")
    return scene, "FR_LOWER_LEG"


@pytest.mark.parametrize(
    "made",
    [quadrotor_among_gates, vehicle_with_arm, panda_among_capsules, delta, soft_ur5,
     standing_quadruped],
)  # fmt: skip
def test_a_scene_shows_its_body_where_the_model_says(made, browser, shared, tmp_path):
    scene, name = made(shared)
    body = next(body for body in scene.bodies if body.name == name)
    painted = replace(body, shapes=[replace(shape, color=PAINT) for shape in body.shapes])
    others = [painted if one is body else one for one in scene.bodies]
    page = replace(scene, bodies=others, paths=()).to_html(tmp_path / "a.html")
    browser.open(page, "?t=0&theme=light")
    seen = []
    for t in (0.0, 0.4, 1.0):
        browser.run(f"lgcontrol.show({t})")
        points = body.points(scene.frame_at(t)).tolist()
        places = np.array(browser.run(f"{json.dumps(points)}.map(p => lgcontrol.pixel(p))"))
        r, g, b = np.moveaxis(browser.picture()[:550].astype(int), 2, 0)
        y, x = np.nonzero((r > g + 60) & (b > g + 60))
        low, high = places.min(axis=0), places.max(axis=0)
        assert len(x) > 30, t
        assert x.min() > low[0] - 2 and x.max() < high[0] + 2, t
        assert y.min() > low[1] - 2 and y.max() < high[1] + 2, t
        assert np.ptp(x) > 0.5 * (high - low)[0] or np.ptp(y) > 0.5 * (high - low)[1], t
        seen.append((x.mean(), y.mean()))
    assert np.linalg.norm(np.subtract(seen[0], seen[2])) > 5
    assert browser.told == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []


def test_encoded_meshes_are_shown_and_broken_ones_are_told(browser, tmp_path):
    """DAE by the page's loader; what a file names elsewhere is not asked for."""
    corners = [[0, 0, 0], [0.5, 0, 0], [0, 0.5, 0], [0, 0, 1.0]]
    numbers = " ".join(str(value) for corner in corners for value in corner)
    (tmp_path / "good.dae").write_text(f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset>
<unit name="meter" meter="1"/><up_axis>Z_UP</up_axis></asset><library_images><image id="t">
<init_from>http://example.org/a.png</init_from></image></library_images><library_geometries>
<geometry id="g"><mesh><source id="p"><float_array id="pa" count="12">{numbers}</float_array>
<technique_common><accessor source="#pa" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="vv"><input semantic="POSITION" source="#p"/></vertices><triangles count="4">
<input semantic="VERTEX" source="#vv" offset="0"/><p>0 2 1 0 1 3 1 2 3 0 3 2</p></triangles></mesh>
</geometry></library_geometries><library_visual_scenes><visual_scene id="s"><node id="n">
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes><scene>
<instance_visual_scene url="#s"/></scene></COLLADA>""")
    (tmp_path / "bad.dae").write_text("<script>document.documentElement.dataset.owned=1</script>")
    (tmp_path / "bad.glb").write_bytes(b"glTF not")
    links = "".join(
        f'<link name="l{k}"><visual><geometry><mesh filename="{name}"/></geometry>'
        f'<material name="m"><color rgba="1 0 1 1"/></material></visual></link><joint name="j{k}" '
        f'type="revolute"><parent link="base"/><child link="l{k}"/><axis xyz="0 0 1"/>'
        '<limit effort="1" velocity="1"/></joint>'
        for k, name in enumerate(["good.dae", "bad.dae", "bad.glb"])
    )
    (tmp_path / "a.urdf").write_text(f'<robot name="a"><link name="base"/>{links}</robot>')
    tree = Multibody.from_urdf(tmp_path / "a.urdf", on_finding="ignore")
    browser.open(tree.scene().to_html(tmp_path / "a.html"), "?theme=light")
    told = browser.run("[...document.querySelectorAll('#notices p')].map(p => p.textContent)")
    assert [text[:20] for text in told] == ["a dae mesh of l1 can", "a glb mesh of l2 can"]
    assert browser.run("document.documentElement.dataset.owned ?? ''") == ""
    x, y = (round(v) for v in browser.run("lgcontrol.pixel([0.1, 0, 0.3])"))
    r, g, b = browser.picture()[y, x].astype(int)
    assert r > g + 60 and b > g + 60
    assert not [url for url in browser.requests if url.startswith("http")]


def test_many_bodies_play_smoothly(browser, tmp_path):
    """43 bodies: what the processor draws is plain from the start, and coarser where slow."""
    tree = panda_tree()
    for k in range(5):
        tree = tree.attach(panda_tree(), "world", [0.0, 1.0 + k, 0.0], f"arm{k}_")
    t = np.linspace(0.0, 100.0, 100_000)
    scene = tree.scene(tree.neutral + 0.3 * np.sin(t)[:, None] * np.ones(tree.nq), t)
    browser.open(scene.to_html(tmp_path / "a.html"), "?plots=0&play=0")
    browser.key(" ")
    browser.run("new Promise(done => setTimeout(done, 3000))")
    state = browser.run("lgcontrol.state")
    assert len(state["frameTimes"]) > 3
    assert state["plain"]  # SwiftShader: no shadows, no smoothed edges
    # The first frames decide: slow ones make the picture coarser.
    if len(state["frameTimes"]) >= 8 and np.median(state["frameTimes"][:8]) > 60:
        assert state["quality"] > 0
