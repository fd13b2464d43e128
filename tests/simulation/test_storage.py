"""Results on disk: everything comes back, and damage is told from data."""

import io
import json
import os
import zipfile
from dataclasses import fields, replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Helical, Product, Rn, Translation
from lgcontrol.scene import Scene
from lgcontrol.simulation import Cascade, HeldNoise, Kick, SimulationResult, simulate
from lgcontrol.simulation._internal import BoundedQuantity, TaskError
from lgcontrol.systems import Sensor, System, Trajectory

from ._plants import Feedback, cart, drone


class Talkative(Feedback):
    """Says numbers and texts, not always the same."""

    info: dict

    def __call__(self, t, x, reference):
        self.info = {"status": "solved" if t else "warm", "iterations": 3, "fresh": t == 0}
        if t:
            self.info["gap"] = np.float32(0.5)
        self.info["plan"] = np.zeros(3)
        return super().__call__(t, x, None)


class Guess:
    """An estimator with all that may be recorded."""

    def __init__(self):
        self.x, self.P = drone().state.identity, np.eye(12)

    def predict(self, t, u, dt):
        self.P = self.P + dt

    def update(self, sensor, y):
        if sensor == "all":
            self.x = y


def rich_run() -> SimulationResult:
    plant = drone()
    low = plant.replaced(limits={plant.state.coordinate_names[2]: (0.0, 1.0)})
    outer = Talkative(np.zeros((13, 13)), 0.1)
    inner = Feedback(0.01 * np.ones((4, 13)), 0.05)
    run = simulate(
        low,
        Cascade(outer, inner),
        x0=plant.state.random(1),
        reference=plant.state.identity,
        seconds=0.3,
        sensors=[Sensor("all", dt=0.1, std_discrete=0.1), Sensor("twist", "twist", dt=0.06)],
        estimator=Guess(),
        disturbances=[HeldNoise({"wind_x": 1.0}, 0.05), Kick(0.1, {"twist": [1] * 6})],
        seed=4,
    )
    bounds = {"clearance": BoundedQuantity(np.linspace(1, 2, len(run.t)), 0.5, np.inf)}
    log = replace(run.controllers["Talkative"], unstable="errors grow")
    return replace(
        run,
        tasks={"tip": TaskError(np.ones((len(run.t), 3)), SO3)},
        bounds=bounds,
        tracked=np.arange(12) < 6,
        controllers={**run.controllers, "Talkative": log},
    )


@pytest.fixture(scope="module")
def run() -> SimulationResult:
    return rich_run()


def plain(value):
    """Nested containers of arrays as nested lists, groups by their name."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind, value.tolist()
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if hasattr(value, "__dataclass_fields__") and not hasattr(value, "dim"):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    return value


def test_every_field_comes_back(run, tmp_path):
    assert all(getattr(run, field.name) is not None for field in fields(run))
    assert run.controllers["Talkative"].info["status"].tolist() == ["warm", "solved", "solved"]
    np.testing.assert_array_equal(run.controllers["Talkative"].info["gap"], [np.nan, 0.5, 0.5])
    assert "plan" not in run.controllers["Talkative"].info

    back = SimulationResult.load(run.save(tmp_path / "run.npz"))
    # As text, for NaN equals NaN there; how the run looks is kept as the scene.
    kept = replace(run, scenery=replace(run.scene(), plots=[]))
    single = replace(kept, scenery=Scene.from_plain(*kept.scenery.to_plain()))
    assert str(plain(back)) == str(plain(single))
    assert back.summary() == run.summary()
    assert back.group == run.group
    assert back.measurements["twist"].group == run.group.blocks["twist"]


def test_the_name_may_lack_its_ending(run, tmp_path):
    path = run.save(tmp_path / "quick0.5")
    assert path == tmp_path / "quick0.5.npz"
    assert SimulationResult.load(tmp_path / "quick0.5").t[-1] == run.t[-1]
    assert run.save(str(path)) == path  # once more, over the old one
    assert os.listdir(tmp_path) == ["quick0.5.npz"]


@pytest.mark.parametrize("what", ["run", "trajectory"])
def test_what_the_name_promises_and_is_not_written_is_refused(run, what, tmp_path):
    """By whatever is saved."""
    saved = run if what == "run" else Trajectory(run.group, run.t[:2], run.x[:2])
    with pytest.raises(ValueError, match=r"cannot write .*x.csv: .*'x.npz'.*savetxt\('x.csv', "):
        saved.save(tmp_path / "x.csv")
    assert not os.listdir(tmp_path)


def test_the_file_is_readable_as_the_folder_allows(run, tmp_path):
    reference = tmp_path / "plain"
    reference.touch()
    assert run.save(tmp_path / "a").stat().st_mode == reference.stat().st_mode


def test_a_failed_save_leaves_the_old_file_and_nothing_else(run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "a.npz")
    old = path.read_bytes()

    def full(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        run.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["a.npz"]


@pytest.mark.parametrize("group", [SE3, Product(a=Helical(0.1), b=Translation("xz")), Rn(0), SO3])
def test_groups_come_back(group, tmp_path):
    still = System("still", group, lambda t, x, u, p: ca.DM.zeros(group.dim))
    saved = simulate(still, x0=group.random(2), seconds=0.1)
    assert SimulationResult.load(saved.save(tmp_path / "a")).group == group


def test_a_group_of_ones_own_is_asked_for(tmp_path):
    class Spinor(type(SO3)):
        name = "Spinor"

    own = Spinor()
    still = System("still", own, lambda t, x, u, p: ca.DM.zeros(3))
    saved = simulate(still, x0=SO3.identity, seconds=0.1, sensors=[Sensor("all", dt=0.1)])
    path = saved.save(tmp_path / "a")
    with pytest.raises(
        ValueError, match=r"a state on Spinor, a group of your own: give it to load"
    ):
        SimulationResult.load(path)
    back = SimulationResult.load(path, group=own)
    assert back.group == own and back.measurements["all"].group == own
    with pytest.raises(ValueError, match=r"is damaged: x has shape \(11, 4\), expected \(11, 7\)"):
        SimulationResult.load(path, group=SE3)


def members(path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(path, changes: dict) -> None:
    """Write the archive anew with some arrays changed, or left out where None."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays = {name: value for name, value in (arrays | changes).items() if value is not None}
    np.savez(path, **arrays)


def described(path, **changes) -> np.ndarray:
    with np.load(path) as file:
        description = json.loads(str(file["description"]))
    return np.array(json.dumps(description | changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (lambda p: {"description": described(p, schema="photo")}, "holds 'photo', expected 'lgcon"),
        (lambda p: {"description": described(p, version=99)}, "version 99, this lgcontrol reads up "
         "to 2: install a newer one"),
        (lambda p: {"description": described(p, version="x")}, "has format version x"),
        (lambda p: {"description": np.array("{")}, "is no saved simulation result"),
        (lambda p: {"description": np.array("[]")}, "is no saved simulation result"),
        (lambda p: {"description": np.array("[" * 100_000)}, "is no saved simulation result"),
        (lambda p: {"description": None}, "no saved simulation result: description is missing"),
        (lambda p: {"x": None}, "is damaged: x is missing"),
        (lambda p: {"u": np.zeros((2, 2))}, r"is damaged: u has shape \(2, 2\)"),
        (lambda p: {"t": np.array(["a"])}, "is damaged: t must be an array of numbers"),
        (lambda p: {"reference": np.zeros(3)}, "is damaged: reference has shape"),
        (lambda p: {"controller_1_t": None}, "is damaged: controller_1_t is missing"),
        (lambda p: {"controller_0_info_0": np.zeros(9)}, "call_time of controller 0 has shape"),
        (lambda p: {"measurement_1_y": np.zeros((1, 1))}, "is damaged: measurement 1 has shape"),
        (lambda p: {"description": described(p, measurements={"a": 3})}, "is damaged"),
        (lambda p: {"description": described(p, controllers={"a": 3})}, "is damaged"),
        (lambda p: {"description": described(p, controllers=[])}, "is damaged"),
        (lambda p: {"description": described(p, input_units=["N"])}, "do not fit together"),
        (lambda p: {"description": described(p, group={"type": "Rn", "n": "x"})}, "a state on Rn"),
        (lambda p: {"description": described(p, group=7)}, "group of your own"),
    ],
)  # fmt: skip
def test_damaged_content_is_told(run, tmp_path, changes, text):
    path = run.save(tmp_path / "a")
    rewritten(path, changes(path))
    with pytest.raises(ValueError, match=text):
        SimulationResult.load(path)


def test_no_object_is_unpickled(run, tmp_path):
    path = run.save(tmp_path / "a")
    touched = tmp_path / "touched"

    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(touched),)

    rewritten(path, {"x": np.array([Bomb()], dtype=object)})
    with pytest.raises(ValueError, match="no saved simulation result: Object arrays cannot be"):
        SimulationResult.load(path)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object))
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ValueError, match="is no saved simulation result"):
        SimulationResult.load(path)
    assert not touched.exists()


def test_files_of_other_kinds_are_told(run, tmp_path):
    path = tmp_path / "a.npz"
    for content in (b"", b"hello", b"\x93NUMPY\x01\x00", b"PK\x03\x04", os.urandom(100)):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.npz is no saved simulation result"):
            SimulationResult.load(path)
    np.savez(path, a=np.zeros(3))
    with pytest.raises(ValueError, match="description is missing"):
        SimulationResult.load(path)
    with pytest.raises(FileNotFoundError, match=r"none\.npz: no such file"):
        SimulationResult.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        SimulationResult.load(tmp_path)


def test_cut_and_flipped_files_raise_or_come_back_whole(run, tmp_path, rng):
    """Whatever one byte does, there is no other exception, and no wrong number."""
    path = run.save(tmp_path / "a")
    whole, expected = path.read_bytes(), str(plain(SimulationResult.load(path)))
    damaged = [whole[: int(n)] for n in rng.integers(0, len(whole), 40)]
    for place in rng.integers(0, len(whole), 150):
        content = bytearray(whole)
        content[place] ^= int(rng.integers(1, 256))
        damaged.append(bytes(content))
    refused = 0
    for content in damaged:
        path.write_bytes(content)
        try:
            back = SimulationResult.load(path)
        except ValueError:
            refused += 1
        else:  # a byte that nothing depends on, such as a date
            assert str(plain(back)) == expected
    assert refused > len(damaged) / 2


def test_fields_that_are_absent_stay_absent(tmp_path):
    bare = simulate(cart(), x0=[0, 0], seconds=0.1)
    back = SimulationResult.load(bare.save(tmp_path / "a"))
    assert back.reference is None and back.estimate is None and back.estimate_std is None
    assert not back.controllers and not back.measurements


def test_infinite_bounds_and_states_that_are_not_finite_can_be_saved(run, tmp_path):
    assert not np.isfinite(run.input_bounds).all()
    broken = replace(run, estimate=np.full_like(run.estimate, np.nan))
    assert np.isnan(SimulationResult.load(broken.save(tmp_path / "a")).estimate).all()


def test_folders_that_do_not_exist_are_named(run, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write .*run.npz: there is no folder .*no"):
        run.save(tmp_path / "no" / "run")


def test_files_of_the_first_version_load(run, tmp_path):
    """They do not count measurements."""
    path = run.save(tmp_path / "a")
    rewritten(path, {"description": described(path, version=1, counts={})})
    back = SimulationResult.load(path)
    assert back.status == run.status and back.measurements["all"].taken == 0
    np.testing.assert_array_equal(back.measurements["all"].y, run.measurements["all"].y)
