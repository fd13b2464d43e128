"""animate_run: files that play, frames that show the right moment."""

import os
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops

from lgcontrol.groups import SE2, SE3, Rn
from lgcontrol.models import panda_tree, surface_vessel
from lgcontrol.plotting import animate_run
from lgcontrol.plotting._animate_run import _at
from lgcontrol.plotting._movie import MovingBodies
from lgcontrol.plotting._solids import LIGHT
from lgcontrol.simulation import Task, simulate
from lgcontrol.systems import Trajectory

from ._runs import T, drive, flight, joints, turn


def frames(path):
    with Image.open(path) as image:
        assert image.info["loop"] == 0
        found = []
        for k in range(image.n_frames):
            image.seek(k)
            found.append((image.info["duration"], image.convert("RGB")))
    return found


def test_gif_plays_in_real_time_and_moves(tmp_path):
    path = animate_run(flight(), tmp_path / "flight.gif", fps=8)
    assert path == tmp_path / "flight.gif" and os.listdir(tmp_path) == ["flight.gif"]
    durations, pictures = zip(*frames(path), strict=True)
    assert len(pictures) == 17  # 2 s and the start
    # 12.5 hundredths of a second in turn 12 and 13; a second more on the last one.
    assert set(durations[:-1]) == {120, 130} and sum(durations[:-1]) == 2000
    assert durations[-1] in (1120, 1130)
    for before, after in zip(pictures[:-1], pictures[1:], strict=True):
        assert ImageChops.difference(before, after).getbbox() is not None


def test_pictures_keep_their_colours(tmp_path):
    """White stays white, and the three axes are there in theirs."""
    from matplotlib.colors import to_rgb

    from lgcontrol.plotting._style import AXIS_COLORS

    *_, (_, last) = frames(animate_run(flight(reference=None), tmp_path / "a.gif", fps=2))
    pixels = np.asarray(last).reshape(-1, 3).astype(int)
    assert (pixels == 255).all(axis=1).mean() > 0.5
    for color in AXIS_COLORS:
        wanted = np.round(255 * np.array(to_rgb(color)))
        assert (np.abs(pixels - wanted).max(axis=1) <= 8).sum() > 5


@pytest.mark.usually(count=[5])
@pytest.mark.parametrize(
    ("options", "count"),
    [({"fps": 5}, 11), ({"fps": 5, "speed": 2.0}, 6), ({"fps": 1, "speed": 0.5}, 5)],
)
def test_frames_by_rate_and_speed(tmp_path, options, count):
    path = animate_run(drive(), tmp_path / "a.gif", **options)
    assert len(frames(path)) == count


@pytest.mark.usually(speed=[2.0])
@pytest.mark.parametrize("speed", [1.0, 2.0, 0.5])
def test_frames_show_their_time(speed):
    seen = []

    def bodies(x):
        seen.append(x[:, 0])
        return np.tile(SE3.identity, (len(x), 1))

    animate_run(Trajectory(Rn(1), 3 + T, 3 + T[:, np.newaxis]), fps=10, speed=speed, bodies=bodies)
    expected = 3 + speed * np.arange(round(20 / speed) + 1) / 10
    np.testing.assert_allclose(seen[0], expected)


def test_states_between_records_lie_on_the_group():
    """Interpolated, not picked: half-way between two records the body is half-way along."""
    run = turn()
    poses = _at(run, run.x, np.array([0.025, 0.5]), None)
    np.testing.assert_allclose(SE3.log(poses[:, 0])[:, 5], [0.05, 1.0], atol=1e-12)


def test_a_scene_shows_bodies_trails_and_time():
    run = flight()
    poses, goal = run.x[:, np.newaxis, :7], run.reference[:, np.newaxis, :7]
    scene = MovingBodies(poses, goal, T, "toy", linked=False, planar=False, attitude=False)
    scene.show(20)
    assert scene.clock.get_text().strip() == "1.00 s"
    trail = np.column_stack(scene.trails[0].get_data_3d())
    np.testing.assert_allclose(trail, run.x[:21, :3])
    for line, axis in zip(scene.axes_lines[0], SE3.matrix(run.x[20, :7])[:3, :3].T, strict=True):
        start, end = np.column_stack(line.get_data_3d())
        np.testing.assert_allclose(start, run.x[20, :3])
        np.testing.assert_allclose((end - start) / np.linalg.norm(end - start), axis, atol=1e-12)
    assert any(line.get_linestyle() == "--" for line in scene.ax.lines)


def test_links_of_an_arm(tmp_path):
    def bodies(x):
        poses = np.tile(SE3.identity, (len(x), 3, 1))
        poses[:, 1, :2] = np.column_stack([np.cos(x[:, 0]), np.sin(x[:, 0])])
        poses[:, 2, :2] = poses[:, 1, :2] + [1.0, 0.0]
        return poses

    run = joints(2)
    scene = MovingBodies(bodies(run.x), None, T, "", linked=True, planar=True, attitude=False)
    scene.show(7)
    np.testing.assert_allclose(scene.links.get_xydata(), bodies(run.x)[7, :, :2])
    assert animate_run(run, tmp_path / "a.gif", fps=2, bodies=bodies, linked=True).exists()


@pytest.mark.usually(make=[drive])
@pytest.mark.parametrize("make", [turn, drive, flight])
def test_notebooks_play_it(make, tmp_path):
    movie = animate_run(make(), fps=1)
    np.testing.assert_allclose(movie.times, [0.0, 1.0, 2.0])
    start, content, _ = movie._repr_html_().replace('"', ",").split(",")[1:]
    assert start == "data:image/gif;base64"
    (tmp_path / "page.gif").write_bytes(b64decode(content))
    assert len(frames(tmp_path / "page.gif")) == 3
    assert movie.save(tmp_path / "file.gif").read_bytes() == b64decode(content)


def test_long_runs_are_played_faster():
    t = np.linspace(0, 600, 11)
    run = Trajectory(SE2, t, SE2.exp(np.outer(t, [1.0, 0, 0.1])))
    movie = animate_run(run, fps=2)
    np.testing.assert_allclose(movie.times, np.arange(0, 601, 10))  # 30 s
    assert movie._scene.clock.get_text().split() == ["0.00", "s", "(20×)"]
    assert len(animate_run(run, fps=1, speed=60.0).times) == 11


def test_mistakes(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"a\.avi: an animation is written as \.gif or \.mp4"):
        animate_run(drive(), tmp_path / "a.avi")
    with pytest.raises(ValueError, match="fps must be from 1 to 100, got 0"):
        animate_run(drive(), fps=0)
    with pytest.raises(ValueError, match="speed must be positive, got 0"):
        animate_run(drive(), speed=0.0)
    with pytest.raises(ValueError, match="no block that moves a body"):
        animate_run(joints(3), tmp_path / "a.gif")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"MP4 files need the program ffmpeg.*write a \.gif"):
        animate_run(drive(), tmp_path / "a.mp4")
    assert os.listdir(tmp_path) == []


def test_a_film_that_fails_leaves_the_old_one(tmp_path, monkeypatch):
    path = animate_run(drive(), tmp_path / "a.gif", fps=1)
    old = path.read_bytes()

    def full(self, target, *arguments, **options):
        Path(target).write_bytes(b"GIF")
        raise OSError("no space left")

    monkeypatch.setattr(Image.Image, "save", full)
    with pytest.raises(OSError, match="no space left"):
        animate_run(drive(), path, fps=1)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["a.gif"]


def test_a_film_shows_the_bodies_of_an_arm_where_its_joints_put_them():
    arm = panda_tree()
    q = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
    run = simulate(arm.system(), x0=np.concatenate([q, np.zeros(7)]), seconds=0.4, max_step=0.02,
                   method="rk4")  # fmt: skip
    film = animate_run(run, fps=5)._scene
    place = arm.placement("panda_hand_tcp")
    for k, time in enumerate(film.times):
        film.show(k)
        corners = np.asarray(film.bodies._faces).reshape(-1, 3)
        hand = place(run.trajectory(time).x[:7])[:3]
        assert np.linalg.norm(corners - hand, axis=1).min() < 0.06  # m, between the fingers
    assert not film.glyphs and len(film.trails) == 1


def test_films_show_obstacles_and_the_colours_of_bodies(tmp_path):
    vessel = surface_vessel(current=(0, 0, 0))
    task = Task(
        plant=vessel, controller=lambda t, x, reference: np.zeros(3), seconds=1.0,
        x0=np.concatenate([SE2.identity, [0.4, 0.0, 0.0]]), options={"dt": 0.5},
        obstacles={"buoy": ([1.5, 1.0], 0.4)},
    )  # fmt: skip
    film = animate_run(task.run(), fps=4)
    assert "buoy" in {text.get_text() for text in film._scene.ax.texts}
    *_, (_, last) = frames(film.save(tmp_path / "buoy.gif"))
    pixels = np.asarray(last).reshape(-1, 3).astype(int)
    shapes = [shape for body in vessel.look.bodies([]) for shape in body.shapes]
    for shape in shapes:  # lit from above, as bright as can be
        wanted = 255 * np.array(shape.color[:3]) * (0.6 + 0.4 * LIGHT[2])
        assert (np.abs(pixels - wanted).max(axis=1) <= 20).sum() > 20, shape
