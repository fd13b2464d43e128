"""The gallery has every design, with its picture, and its page is what the stored runs make."""

import importlib.util
import json
from importlib.metadata import entry_points

import numpy as np
import pytest

from lgcontrol.scene import Scene

from ._repository import ROOT

_spec = importlib.util.spec_from_file_location("make_gallery", ROOT / "docs" / "make_gallery.py")
gallery = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(gallery)

RUNS = json.loads(gallery.RUNS.read_text(encoding="utf-8"))


def test_every_design_is_there_with_its_picture_and_code():
    names = {
        e.name for e in entry_points(group="lgcontrol.designs") if e.value.startswith("lgcontrol.")
    }
    assert set(RUNS) == names
    assert {path.stem for path in gallery.FOLDER.glob("*.png")} == names
    for told in RUNS.values():
        assert (ROOT / "controllers" / "designs" / told["file"]).exists()


@pytest.mark.parametrize("name", RUNS)
def test_every_design_has_a_scene_that_moves(name, tmp_path):
    with np.load(gallery.FOLDER / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files if key != "scene"}
        scene = Scene.from_plain(json.loads(str(file["scene"])), arrays)
    assert scene.title == name
    assert max(np.ptp(body.poses, axis=0).max() for body in scene.bodies) > 0.01
    assert name in scene.to_html(tmp_path / "a.html").read_text(encoding="utf-8")


def test_the_page_follows_from_the_stored_runs():
    assert (gallery.FOLDER / "README.md").read_text(encoding="utf-8") == gallery.page(RUNS)


def test_every_stored_run_passed():
    failed = [
        (name, entry["name"])
        for name, told in RUNS.items()
        for entry in told["criteria"]
        if (entry["least"] is not None and entry["value"] < entry["least"])
        or (entry["limit"] is not None and entry["value"] > entry["limit"])
    ]
    assert not failed


@pytest.mark.thorough
@pytest.mark.parametrize("name", RUNS)
def test_the_numbers_are_those_of_the_design_as_it_is(name):
    """Seed 0 is the same loop everywhere; processors round differently."""
    (entry,) = (e for e in entry_points(group="lgcontrol.designs", name=name))
    task = entry.load()(seed=0)
    stored = {told["name"]: told["value"] for told in RUNS[name]["criteria"]}
    now = {verdict.criterion.name: verdict.value for verdict in task.judge(task.run(seed=0))}
    assert stored == pytest.approx(now, rel=0.02, abs=2e-5)
