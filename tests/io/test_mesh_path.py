"""Meshes are found inside the folders given, and nothing outside of them is."""

import pytest

from lgcontrol.io._internal import resolve_mesh


@pytest.fixture
def share(tmp_path):
    """share/arm/{urdf,meshes} with a mesh, and a file outside that nobody may reach."""
    for folder in ("share/arm/urdf", "share/arm/meshes", "share/hand", "outside"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("share/arm/meshes/link.stl", "share/arm/urdf/base.stl", "outside/secret.stl"):
        (tmp_path / file).touch()
    return tmp_path / "share"


def test_packages(share):
    expected = (share / "arm/meshes/link.stl").resolve()
    name = "package://arm/meshes/link.stl"
    assert resolve_mesh(name, [share]) == expected
    assert resolve_mesh(name, [share / "arm"]) == expected
    assert resolve_mesh(name, [share / "hand", share]) == expected
    assert resolve_mesh(name, {"arm": share / "arm"}) == expected
    assert resolve_mesh("model://arm/meshes/link.stl", [str(share)]) == expected
    assert resolve_mesh("package://arm/urdf/../meshes/link.stl", [share]) == expected


def test_files(share):
    mesh = (share / "arm/meshes/link.stl").resolve()
    source = share / "arm/urdf/arm.urdf"
    assert resolve_mesh("base.stl", source=source).name == "base.stl"
    assert resolve_mesh("../meshes/link.stl", [share / "arm"], source=source) == mesh
    assert resolve_mesh(str(mesh), [share]) == mesh
    assert resolve_mesh(mesh.as_uri(), [share]) == mesh


def test_spaces_in_file_urls(share):
    mesh = share / "arm" / "a b.stl"
    mesh.touch()
    assert resolve_mesh(mesh.as_uri(), [share]) == mesh.resolve()


@pytest.mark.parametrize(
    "name",
    [
        "package://arm/../../outside/secret.stl",
        "package://../outside/secret.stl",
        "package://arm//../../../outside/secret.stl",
        "../../../outside/secret.stl",
        "{outside}/secret.stl",
        "file://{outside}/secret.stl",
        "/etc/passwd",
        "file:///etc/passwd",
        "package://arm//etc/passwd",
        "package://arm/meshes/way_out/secret.stl",
        "package://arm/meshes/link_out.stl",
    ],
)
def test_ways_out_are_refused(share, name):
    outside = share.parent / "outside"
    (share / "arm/meshes/way_out").symlink_to(outside)
    (share / "arm/meshes/link_out.stl").symlink_to(outside / "secret.stl")
    name = name.format(outside=outside)
    with pytest.raises(ValueError, match="leads outside of the folders allowed.*add its folder"):
        resolve_mesh(name, [share], source=share / "arm/urdf/arm.urdf")


def test_a_link_into_another_folder_given_is_followed(share):
    outside = share.parent / "outside"
    (share / "arm/meshes/link_out.stl").symlink_to(outside / "secret.stl")
    found = resolve_mesh("package://arm/meshes/link_out.stl", [share, outside])
    assert found == (outside / "secret.stl").resolve()


def test_missing_meshes_say_where_they_were_looked_for(share):
    with pytest.raises(FileNotFoundError, match=r"package://arm/no\.stl.*arm/no\.stl.*Add the"):
        resolve_mesh("package://arm/no.stl", [share])
    with pytest.raises(FileNotFoundError, match="was not found; looked for nowhere"):
        resolve_mesh("package://arm/no.stl")
    with pytest.raises(FileNotFoundError, match="package://leg/no.stl"):
        resolve_mesh("package://leg/no.stl", {"arm": share / "arm"})
    with pytest.raises(FileNotFoundError, match="package://arm/meshes"):
        resolve_mesh("package://arm/meshes", [share])


def test_other_names(share):
    with pytest.raises(ValueError, match="https://, which is not fetched; download it"):
        resolve_mesh("https://example.com/link.stl", [share])
    with pytest.raises(ValueError, match="relative to its robot file; give source="):
        resolve_mesh("link.stl", [share])
    with pytest.raises(ValueError, match="NUL"):
        resolve_mesh("link\0.stl", [share])
    with pytest.raises(TypeError, match=r"write \[folder\]"):
        resolve_mesh("package://arm/link.stl", str(share))


def test_links_in_a_circle(share):
    loop = share / "arm" / "loop.stl"
    loop.symlink_to(loop)
    with pytest.raises((ValueError, FileNotFoundError), match="loop.stl"):
        resolve_mesh("package://arm/loop.stl", [share])
