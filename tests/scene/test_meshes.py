"""Meshes of files: read, made smaller, missing, broken, outside, hostile."""

import struct

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.io._internal import decimated, read_mesh
from lgcontrol.mechanics import Multibody
from lgcontrol.scene import BodyShape
from lgcontrol.scene._internal import Mesh, page_of
from lgcontrol.scene._records import UPRIGHT

ROBOT = """<robot name="stick"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<origin xyz="0 0 0.5"/><inertia ixx="0.1" iyy="0.1" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><geometry><mesh filename="{}" scale="{}"/></geometry></visual></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit effort="1" velocity="1" lower="-1" upper="1"/></joint></robot>"""


def ball(around: int = 24) -> tuple[np.ndarray, np.ndarray]:
    from lgcontrol.io._internal import SphereShape

    return BodyShape(SphereShape(1.0)).surface(around)


def write_stl(path, vertices, faces):
    rows = b"".join(struct.pack("<12fH", 0, 0, 0, *vertices[face].ravel(), 0) for face in faces)
    path.write_bytes(b"solid that is none".ljust(80) + struct.pack("<I", len(faces)) + rows)


def robot(folder, mesh, scale="1 1 1", **options):
    (folder / "stick.urdf").write_text(ROBOT.format(mesh, scale))
    return Multibody.from_urdf(folder / "stick.urdf", on_finding="ignore", **options)


def volume(vertices, faces):
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    return np.einsum("ij,ij->i", np.cross(a, b), c).sum() / 6


@pytest.mark.parametrize("kind", ["binary", "text", "obj"])
def test_files_hold_the_surface(kind, tmp_path):
    vertices, faces = ball()
    path = tmp_path / ("ball.obj" if kind == "obj" else "ball.stl")
    if kind == "binary":
        write_stl(path, vertices, faces)
    elif kind == "text":
        rows = ["facet normal 0 0 0\nouter loop\n" + "".join(
            "vertex {} {} {}\n".format(*point) for point in vertices[face]) + "endloop\nendfacet"
            for face in faces]  # fmt: skip
        path.write_text("solid ball\n" + "\n".join(rows) + "\nendsolid ball\n")
    else:
        lines = ["mtllib /etc/passwd", *("v {} {} {}".format(*point) for point in vertices)]
        lines += [f"f {a + 1}/1/1 {b - len(vertices)} {c + 1}//3" for a, b, c in faces]
        path.write_text("\n".join(lines))
    found = read_mesh(path)
    assert volume(*found) == pytest.approx(volume(vertices, faces), rel=1e-5)
    assert len(found[1]) == len(faces)


def test_large_meshes_are_made_smaller_and_stay_what_they_are():
    vertices, faces = ball(260)
    assert len(faces) > 60_000
    small = decimated(vertices, faces, 20_000)
    assert 2_000 < len(small[1]) <= 20_000
    assert volume(*small) == pytest.approx(4 / 3 * np.pi, rel=0.02)
    assert np.abs(np.linalg.norm(small[0], axis=1) - 1).max() < 0.05


def test_a_mesh_beside_the_robot_is_drawn_in_its_scale(tmp_path):
    write_stl(tmp_path / "ball.stl", *ball())
    scene = robot(tmp_path, "ball.stl", "2 -2 2").scene([0.3])
    body = next(body for body in scene.bodies if body.name == "arm")
    assert scene.notices == []
    (shape,) = body.shapes
    assert isinstance(shape.geometry, Mesh)
    assert volume(shape.geometry.vertices, shape.geometry.faces) == pytest.approx(
        8 * volume(*ball()), rel=1e-5
    )
    assert np.allclose(SE3.act(body.poses[0], UPRIGHT[:3]), 0)


def test_a_mesh_of_a_package_is_read_from_its_folder_alone(tmp_path):
    package = tmp_path / "share" / "sticks" / "meshes"
    package.mkdir(parents=True)
    write_stl(package / "ball.stl", *ball())
    name = "package://sticks/meshes/ball.stl"
    own = tmp_path / "own"
    own.mkdir()
    assert robot(own, name, packages=[tmp_path / "share"]).scene().notices == []
    (told,) = robot(own, name).scene().notices
    assert (
        told.startswith("1 mesh not drawn: ball.stl. The first: ") and "packages=[folder]" in told
    )


def test_meshes_outside_missing_broken_and_huge_are_told_and_the_robot_is_drawn(tmp_path):
    outside = tmp_path / "secret.stl"
    write_stl(outside, *ball())
    inside = tmp_path / "robot"
    inside.mkdir()
    (inside / "link.stl").symlink_to(outside)
    (inside / "text.stl").write_text("solid nothing\nvertex 1 2\n")
    (inside / "cut.stl").write_bytes(b"\0" * 80 + struct.pack("<I", 9) + b"\0" * 100)
    (inside / "nan.obj").write_text("v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    (inside / "none.obj").write_text("v 0 0 0\nf 1 2 3\n")
    (inside / "far.obj").write_text("v -1e308 0 0\nv 1e308 0 0\nv 0 1e308 0\nf 1 2 3\n")
    (inside / "odd.step").write_text("what is it")
    with open(inside / "huge.stl", "wb") as file:
        file.truncate(2**26 + 1)
    reasons = {
        "../secret.stl": "leads outside",
        str(outside): "leads outside",
        "file:///etc/passwd": "leads outside",
        "link.stl": "leads outside",
        "https://example.org/a.stl": "is not fetched",
        "gone.stl": "was not found",
        "text.stl": "is no STL file",
        "cut.stl": "is no STL file",
        "nan.obj": "is not finite",
        "none.obj": "names a vertex that is not there",
        "far.obj": "a vertex is 1e+308 from the origin",
        "odd.step": "read from .stl and .obj",
        "huge.stl": "more than the 64 MiB",
    }
    for name, reason in reasons.items():
        scene = robot(inside, name).scene()
        (told,) = scene.notices
        assert reason in told, name
        assert next(body for body in scene.bodies if body.name == "arm").shapes  # derived


def test_names_of_meshes_are_text(tmp_path):
    scene = robot(tmp_path, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;.stl").scene()
    page = page_of([scene])
    assert "script>.stl" in scene.notices[0] and page.count("<script") == 4
