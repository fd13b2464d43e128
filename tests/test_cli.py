"""The command line: what it prints, what it writes, how it ends."""

import importlib
import io
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol import cli, codegen
from lgcontrol.cli import _registry
from lgcontrol.groups import SE2, SE3, SO2, Helical, Product, Rn, Translation
from lgcontrol.models import three_bar_mechanism
from lgcontrol.models.papers._paper import Claim, Paper, Reproduction
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task
from lgcontrol.systems import Input, Parameter, System

ROOT = Path(__file__).resolve().parents[1]
MODULE = __name__


def boat(drag: float = 0.5) -> System:
    """Boat on SE(2) that is pushed and turned."""
    return System(
        "boat",
        Product(pose=SE2, twist=Rn(3, ("vx", "vy", "wz"), ("m/s", "m/s", "rad/s"))),
        lambda t, x, u, p: ca.vertcat(x[4:], u[0] - p * x[4] + u[2], -p * x[5], u[1] - p * x[6]),
        inputs=[
            Input("surge", "N", -2.0, 2.0),
            Input("yaw", "N m", -1.0, 1.0),
            Input("gust", "N", role="disturbance"),
        ],
        parameters=[Parameter("drag", "1/s", drag)],
    )


class Cruise:
    """Holds a speed and a turn."""

    dt = 0.1

    def __call__(self, t, x, reference):
        return np.array([1.0 - x[4], 0.5 - x[6]])


def task(seed: int, controller=None, limit: float = 2.0, criteria=None) -> Task:
    plant = boat()
    far = Criterion("speed error", lambda run: abs(run.x[-1, 4] - 1), limit, "m/s")
    way = Criterion("way made", lambda run: abs(run.x[-1, :2]).max(), unit="m")
    return Task(
        plant,
        controller or Cruise(),
        plant.state.join(pose=SE2.random(seed)),
        seconds=2.0,
        reference=plant.state.identity,
        options={"disturbances": [HeldNoise({"gust": 0.2}, 0.1)]},
        criteria=(far, way) if criteria is None else criteria,
    )


def cruise(seed: int = 0) -> Task:
    """Boat keeps its speed in gusts."""
    return task(seed)


def too_strict(seed: int = 0) -> Task:
    """Boat keeps its speed exactly."""
    return task(seed, limit=0.0)


def unbuildable(seed: int = 0) -> Task:
    """Design that raises."""
    raise ValueError("no such boat")


def raising_later(seed: int = 0) -> Task:
    """Controller that raises after a second."""

    class Faulty(Cruise):
        def __call__(self, t, x, reference):
            if t > 0.95:
                raise ZeroDivisionError("rudder lost")
            return super().__call__(t, x, reference)

    wants = Criterion("at the end", lambda run: run.x[20, 0], 100.0, "m")
    return task(seed, Faulty(), criteria=(wants,))


def diverging(seed: int = 0) -> Task:
    """Plant that leaves the finite."""
    plant = System("burst", Rn(1), lambda t, x, u, p: x**2 + u, inputs=["u"])

    def idle(t, x, reference):
        return 0.0

    always = Criterion("nothing", lambda run: 0.0, 1.0)
    return Task(plant, idle, np.ones(1), 3.0, options={"dt": 0.01}, criteria=(always,))


def interrupted(seed: int = 0) -> Task:
    """Ctrl-C half-way."""

    class Impatient(Cruise):
        def __call__(self, t, x, reference):
            if t > 0.95:
                raise KeyboardInterrupt
            return super().__call__(t, x, reference)

    return task(seed, Impatient())


def endless(seed: int = 0) -> Task:
    """Run that takes for ever and tells when it is under way."""

    class Talkative(Cruise):
        def __call__(self, t, x, reference):
            if t == 0:
                print("under way", flush=True)
            return super().__call__(t, x, reference)

    plain = task(seed)
    return Task(plain.plant, Talkative(), plain.x0, 1e7)


DESIGNS = (cruise, too_strict, unbuildable, raising_later, diverging, interrupted)


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Packages that provide the designs and the model of this file, and one that is broken."""
    # The importlib mode of pytest does not make this file importable by name.
    monkeypatch.setitem(sys.modules, "_designs", sys.modules[MODULE])
    entries = {
        _registry.DESIGNS: [
            EntryPoint(design.__name__.replace("_", "-"), f"_designs:{design.__name__}", "")
            for design in DESIGNS
        ],
        _registry.MODELS: [EntryPoint("boat", "_designs:boat", "")],
        _registry.MECHANISMS: [EntryPoint("bars", "lgcontrol.models:three_bar_mechanism", "")],
    }
    monkeypatch.setattr(_registry, "entry_points", lambda group: entries[group])
    monkeypatch.chdir(tmp_path)
    return entries


def run(capsys, *words: str) -> tuple[int, str, str]:
    status = cli.main(words)
    return status, *capsys.readouterr()


def test_list(installed, capsys):
    installed[_registry.MODELS].append(EntryPoint("wreck", "_designs:wreck", ""))
    status, out, _ = run(capsys, "list")
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == "designs:" and "models:" in lines
    assert "  cruise         Boat keeps its speed in gusts." in lines
    assert "  boat   Boat on SE(2) that is pushed and turned." in lines
    (broken,) = [line for line in lines if line.startswith("  wreck")]
    assert "(wreck (_designs:wreck) cannot be loaded: AttributeError" in broken


def test_mechanisms_are_listed_and_described(installed, capsys, tmp_path):
    assert "  bars  Two flat boxes between two points" in run(capsys, "list")[1]
    status, out, _ = run(capsys, "info", "bars")
    lines = out.splitlines()
    assert status == 0 and lines[2] == "3 degrees of freedom (3 without drives)"
    assert "  middle  x, y, z" in lines and "state, 24 degrees of freedom" in lines
    three_bar_mechanism().to_json(tmp_path / "bars.json")
    assert run(capsys, "info", str(tmp_path / "bars.json"))[1].splitlines() == lines[2:]
    (tmp_path / "bad.json").write_text('{"format": "lgcontrol mechanism", "version": 2}')
    status, _, err = run(capsys, "info", str(tmp_path / "bad.json"))
    assert status != 0 and 'bad.json: the file: expected "format"' in err


def test_list_of_nothing(installed, capsys):
    installed[_registry.DESIGNS].clear()
    assert "(none; is lgcontrol installed?" in run(capsys, "list")[1]


def test_info_of_a_model(installed, capsys):
    status, out, _ = run(capsys, "info", "boat")
    assert status == 0
    assert out.splitlines() == [
        "boat: Boat on SE(2) that is pushed and turned.",
        "",
        "state, 6 degrees of freedom",
        "  pose   planar about z (SE2)",
        "  twist  3 numbers [m/s, rad/s]",
        "inputs",
        "  surge  [-2, 2]  N",
        "  yaw    [-1, 1]  N m",
        "  gust            N    disturbance",
        "parameters",
        "  drag  0.5  1/s",
    ]


def test_info_of_a_design(installed, capsys):
    status, out, _ = run(capsys, "info", "cruise")
    assert status == 0
    assert out.splitlines()[-5:] == [
        "controller  Cruise",
        "seconds     2",
        "criteria",
        "  speed error: at most 2 m/s",
        "  way made: reported",
    ]
    status, _, err = run(capsys, "info", "unbuildable")
    assert (status, err) == (
        2,
        "lgcontrol: unbuildable cannot be made: ValueError: no such boat\n",
    )


URDF = """<robot name="swing">
  <link name="base"/>
  <joint name="hinge" type="revolute">
    <parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="1"/>
  </joint>
  <link name="arm"><inertial><mass value="2"/>
    <inertia ixx="{}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""


def test_info_of_joints_is_in_words(installed, capsys, monkeypatch):
    def arm() -> System:
        """Arm of two joints."""
        joints = Product(base=Helical(0.0), lift=Translation("z").about([1, 0, 0]), roll=SO2)
        return System("arm", Product(joints=joints, rest=SE3), lambda t, x, u, p: ca.DM.zeros(9))

    monkeypatch.setattr(sys.modules[MODULE], "boat", arm)
    assert run(capsys, "info", "boat")[1].splitlines()[2:] == [
        "state, 9 degrees of freedom",
        "  joints.base  revolute about z",
        "  joints.lift  prismatic along x",
        "  joints.roll  continuous about z",
        "  rest         free (SE3)",
    ]


def test_a_shorter_run_says_that_it_was_cut(installed, capsys):
    assert "cut short" not in run(capsys, "run", "cruise", "--no-plot", "--seconds", "2")[1]
    text = "cut short: the design takes 2 s, and its criteria are those of all of it"
    assert text in run(capsys, "run", "cruise", "--no-plot", "--seconds", "0.5")[1]


def test_info_of_a_robot_file(installed, capsys, tmp_path):
    path = tmp_path / "swing.urdf"
    path.write_text(URDF.format(1))
    status, out, _ = run(capsys, "info", str(path))
    assert status == 0
    assert "1 degrees of freedom" in out and "arm: 2 kg, hinge" in out and "findings" not in out

    assert out.splitlines()[-1].split("  ")[1:] == ["hinge", "[-1, 1] rad", "1 rad/s", "5 N m"]

    path.write_text(URDF.format(9))  # no body has such an inertia
    status, out, _ = run(capsys, "info", str(path))
    assert status == 0 and "findings\n  line 7: warning: link" in out

    path.write_text("<robot")
    status, _, err = run(capsys, "info", str(path))
    assert status == 2 and "swing.urdf" in err and "Traceback" not in err
    assert run(capsys, "info", "absent.urdf")[0] == 2


def test_run_prints_a_table_and_writes_what_it_says(installed, capsys, tmp_path):
    status, out, err = run(capsys, "run", "cruise", "--seed", "3", "--out", "deep/er")
    assert (status, err) == (0, "")  # no progress where nobody watches
    lines = out.splitlines()
    assert lines[0] == "cruise: Boat keeps its speed in gusts."
    assert lines[1].startswith("  2.00 s simulated in ")
    assert lines[2].split()[:2] == ["speed", "error"] and lines[2].endswith("at most 2 m/s  ok")
    assert lines[3].split()[:2] == ["way", "made"] and lines[3].endswith(" m")
    assert any("final error" in line for line in lines)
    assert any("controller call: median" in line for line in lines)
    folder = tmp_path / "deep" / "er"
    written = ["cruise-path.png", "cruise.npz", "cruise.png"]
    assert sorted(os.listdir(folder)) == written
    for name in written:
        assert f"deep/er/{name}" in lines[-1]
    assert (folder / "cruise.png").read_bytes()[:4] == b"\x89PNG"
    saved = SimulationResult.load(folder / "cruise.npz")
    assert saved.settings["seed"] == 3
    np.testing.assert_array_equal(saved.x, cruise(3).run(seed=3).x)


def test_run_options(installed, capsys):
    status, *_ = run(capsys, "run", "cruise", "--no-plot", "--seconds", "0.5", "--animate")
    assert status == 0
    assert sorted(os.listdir("out")) == ["cruise.gif", "cruise.npz"]
    assert SimulationResult.load("out/cruise.npz").t[-1] == 0.5


def test_a_state_without_poses_has_no_path_and_no_animation(installed, capsys):
    status, out, _ = run(capsys, "run", "diverging", "--animate")
    assert sorted(os.listdir("out")) == ["diverging.npz", "diverging.png"]
    assert "no animation: the state Rn(1) has no block that moves a body" in out


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("too-strict", "at most 0 m/s  FAILED by 0."),
        ("diverging", "  diverged: x0 is beyond 1e+12 after t = 0.99 s"),
        ("unbuildable", "  FAILED: ValueError: no such boat\n  (raised in "),
    ],
)
def test_failed_tasks(installed, capsys, name, text):
    status, out, err = run(capsys, "run", name, "--no-plot")
    assert (status, err) == (1, "") and text in out


def test_a_controller_that_raises_leaves_the_run_up_to_then(installed, capsys):
    status, out, err = run(capsys, "run", "raising-later", "--no-plot")
    assert (status, err) == (1, "")
    assert "  failed: Faulty failed at t = 1 s: ZeroDivisionError: rudder lost" in out
    assert "  at the end  (IndexError)  at most 100 m  FAILED" in out
    assert SimulationResult.load("out/raising-later.npz").t[-1] == pytest.approx(0.9)
    status, out, err = run(capsys, "run", "raising-later", "--traceback", "--no-plot")
    assert status == 1 and 'raise ZeroDivisionError("rudder lost")' in err


def test_where_a_design_raised_can_be_shown(installed, capsys):
    _, out, err = run(capsys, "run", "unbuildable", "--traceback")
    assert 'raise ValueError("no such boat")' in err and "test_cli.py" in out


def test_ctrl_c_keeps_what_there_is(installed, capsys):
    status, out, err = run(capsys, "run", "interrupted", "--no-plot")
    assert (status, err) == (130, "\nlgcontrol: stopped\n")
    assert "  interrupted: stopped at t = 1 s" in out
    assert "no criterion is judged" in out and "speed error" not in out
    assert SimulationResult.load("out/interrupted.npz").status == "interrupted"


def test_demo_runs_its_designs_and_the_worst_counts(installed, capsys, monkeypatch):
    monkeypatch.setattr("lgcontrol.cli._main.DEMO", ("too-strict", "cruise"))
    status, out, _ = run(capsys, "demo", "--no-plot", "--seconds", "0.5")
    assert status == 1
    assert sorted(os.listdir("out")) == ["cruise.npz", "too-strict.npz"]
    monkeypatch.setattr("lgcontrol.cli._main.DEMO", ("unbuildable", "cruise"))
    assert run(capsys, "demo", "--no-plot")[0] == 1
    monkeypatch.setattr("lgcontrol.cli._main.DEMO", ("cruise", "absent"))
    status, out, err = run(capsys, "demo", "--no-plot")
    assert (status, out) == (2, "") and "unknown design 'absent'" in err


@pytest.mark.parametrize("command", ["run", "info"])
def test_unknown_names_list_the_valid_ones(installed, capsys, command):
    status, out, err = run(capsys, command, "cruize")
    assert (status, out) == (2, "")
    assert "'cruize'; valid names are" in err and "Did you mean 'cruise'? " in err
    assert all(design.__name__.replace("_", "-") in err for design in DESIGNS)


def test_a_model_is_told_from_a_design(installed, capsys):
    status, _, err = run(capsys, "run", "boat")
    assert status == 2
    assert "'boat' is a model, which has no task to run: see lgcontrol info boat" in err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "cruise", "--seconds", "0"], "must be a positive number of seconds, not '0'"),
        (["run", "cruise", "--seconds", "nan"], "must be a positive number of seconds, not 'nan'"),
        (["run", "cruise", "--seconds", "long"], "must be a positive number of seconds, not 'lo"),
        (["run", "cruise", "--seed", "-1"], "must be a whole number that is not negative, not '-1"),
        (["run", "cruise", "--seed", "1.5"], "must be a whole number that is not negative"),
        (["run"], "the following arguments are required: name"),
        (["fly"], "invalid choice: 'fly'"),
        (["cache", "burn"], "invalid choice: 'burn'"),
        ([], "the following arguments are required: COMMAND"),
        ([], "run a design in closed loop"),
        (["fly"], "run a design in closed loop"),
        (["run"], "a design of `lgcontrol list`"),
        (["run", "cruise", "--pertub"], "lgcontrol run: unknown arguments: --pertub"),
        (["run", "cruise", "--pertub"], "--perturb "),
    ],
)
def test_bad_words(installed, capsys, words, text):
    with pytest.raises(SystemExit) as end:
        cli.main(words)
    assert end.value.code == 2 and text in capsys.readouterr().err


def test_a_folder_that_cannot_be_written_is_told_before_the_run(installed, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    status, out, err = run(capsys, "run", "cruise", "--out", "file/below")
    assert (status, out) == (2, "")
    assert err == "lgcontrol: --out file/below cannot be written to: Not a directory\n"
    assert run(capsys, "run", "cruise", "--out", "file")[0] == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_without_permission(installed, capsys, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    status, _, err = run(capsys, "run", "cruise", "--out", "closed")
    assert status == 2 and "Permission denied" in err


def test_a_name_cannot_lead_out_of_the_folder(installed, capsys, tmp_path):
    installed[_registry.DESIGNS].append(EntryPoint("../../evil", "_designs:cruise", ""))
    (tmp_path / "a").mkdir()
    assert run(capsys, "run", "../../evil", "--out", "a/b", "--no-plot")[0] == 0
    assert os.listdir("a/b") == [".._.._evil.npz"]


def test_two_packages_with_one_name(installed, capsys):
    installed[_registry.DESIGNS].append(EntryPoint("cruise", "other:cruise", ""))
    status, _, err = run(capsys, "run", "cruise")
    assert status == 2 and "_designs:cruise and other:cruise; uninstall one" in err
    installed[_registry.DESIGNS][-1] = EntryPoint("cruise", "_designs:cruise", "")  # found twice
    assert run(capsys, "run", "cruise", "--no-plot")[0] == 0


def test_a_package_that_does_not_load(installed, capsys):
    installed[_registry.DESIGNS].append(EntryPoint("wreck", "absent_package:design", ""))
    status, _, err = run(capsys, "run", "wreck")
    assert status == 2
    assert "wreck (absent_package:design) cannot be loaded: ModuleNotFoundError" in err


def test_a_file_of_ones_own_is_a_design(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(Path(__file__).parent / "campaigns" / "_designs.py", "mine.py")
    status, out, _ = run(capsys, "run", "mine.py", "--no-plot")
    assert status == 0 and out.startswith("mine: ") and Path("out/mine.npz").is_file()
    status, _, err = run(capsys, "run", "mine.py:absent")
    assert status == 2 and "mine.py has no function 'absent': it has " in err and "design" in err
    status, _, err = run(capsys, "run", "nowhere.py")
    assert status == 2 and "there is no file nowhere.py" in err
    status, out, _ = run(capsys, "info", "mine.py")
    assert status == 0 and out.startswith("mine.py: ") and "\ncriteria\n" in out
    Path("seedless.py").write_text("def design(horizon=40):\n    pass\n")
    for command in ("run", "info"):
        status, _, err = run(capsys, command, "seedless.py")
        assert status == 2 and "seedless.py: design() takes no seed: give it the" in err


def test_progress_on_a_terminal(installed, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert cli.main(["run", "cruise", "--no-plot"]) == 0
    shown = terminal.getvalue()
    assert "\r   50 %" in shown and "\r  100 %" in shown
    assert shown.endswith("\r       \r")  # gone before the table


def test_cache(capsys, monkeypatch):
    assert run(capsys, "cache", "info") == (0, f"{codegen.cache_info()}\n", "")
    status, out, _ = run(capsys, "cache")
    assert status == 0 and out.startswith(f"{codegen.cache_info()}\n")
    assert "lgcontrol cache info  " in out and "lgcontrol cache clear  remove them all" in out
    monkeypatch.setattr(codegen, "cache_clear", lambda: "removed nothing")  # it is the user's
    assert run(capsys, "cache", "clear") == (0, "removed nothing\n", "")

    def refuse():
        raise PermissionError(13, "Permission denied", "/cache")

    monkeypatch.setattr(codegen, "cache_clear", refuse)
    status, _, err = run(capsys, "cache", "clear")
    assert status == 2 and "Permission denied: '/cache'" in err


def process(*words: str, folder: Path, **options) -> subprocess.Popen:
    """Run ``python -m lgcontrol`` as a program that finds the designs of this file installed."""
    metadata = folder / "site" / "toys-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: toys\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[lgcontrol.designs]\ncruise = toys:cruise\nendless = toys:endless\n"
    )
    (folder / "site" / "toys.py").write_text(Path(__file__).read_text())
    package = Path(importlib.import_module("lgcontrol").__file__).parents[1]
    path = os.pathsep.join([str(folder / "site"), str(package), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-m", "lgcontrol", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_as_a_program(tmp_path):
    program = process("run", "cruise", "--no-plot", folder=tmp_path)
    out, err = program.communicate(timeout=120)
    assert (program.returncode, err) == (0, "")
    assert "wrote out/cruise.npz" in out and (tmp_path / "out" / "cruise.npz").exists()


def test_as_a_program_with_bad_input(tmp_path):
    program = process("run", "absent", folder=tmp_path)
    _, err = program.communicate(timeout=120)
    assert program.returncode == 2 and "valid names are" in err and "cruise" in err


def test_as_a_program_stopped_by_ctrl_c(tmp_path):
    program = process("run", "endless", "--no-plot", "--out", "kept", folder=tmp_path)
    assert program.stdout.readline().startswith("endless")
    assert program.stdout.readline() == "under way\n"
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=120)
    assert program.returncode == 130 and err == "\nlgcontrol: stopped\n"
    assert "interrupted: stopped at t = " in out
    assert SimulationResult.load(tmp_path / "kept" / "endless.npz").status == "interrupted"


@pytest.mark.parametrize("module", ["numpy", "lgcontrol.cli._main"])
def test_ctrl_c_while_it_loads_ends_in_one_line(module):
    """The packages of the program take long enough to be interrupted."""
    code = f"""
import sys, importlib.abc
class Impatient(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Impatient())
from lgcontrol.cli import main
sys.exit(main(["list"]))
"""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "\nlgcontrol: stopped\n")


def test_as_a_program_whose_reader_leaves(tmp_path):
    program = process("list", folder=tmp_path)
    program.stdout.close()
    program.wait(timeout=120)
    assert program.stderr.read() == "" and program.returncode == 0
    program.stderr.close()


def test_as_a_program_on_a_terminal_of_few_letters(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    program = process("run", "cruise", "--no-plot", folder=tmp_path)
    out, err = program.communicate(timeout=120)
    assert program.returncode == 0 and "effort" in out and err == ""


def picture():
    """Figure 1: a line."""
    from matplotlib.figure import Figure

    figure = Figure()
    ax = figure.add_subplot()
    ax.plot([0, 1])
    assert not ax.spines["top"].get_visible()  # in the style of the toolkit
    claims = Claim("gap | joint [m]", "0", 1e-3, 0, 1e-2), Claim("size", "a curve", 2.0)
    return Reproduction(figure, claims)


def crooked():
    """Table 2: cannot be made."""
    raise ArithmeticError("no numbers")


SHEET = Paper("A. Author: A paper", {"1": picture, "table-2": crooked})


def test_papers_are_listed_and_computed(installed, capsys):
    installed[_registry.PAPERS] = [EntryPoint("author", "_designs:SHEET", "")]
    status, out, _ = run(capsys, "paper")
    assert status == 0 and "A. Author: A paper" in out and "figures: 1, table-2" in out
    status, out, _ = run(capsys, "paper", "author")
    assert status == 0 and "table-2  Table 2: cannot be made." in out
    status, out, _ = run(capsys, "paper", "author", "1", "--out", "o")
    assert status == 0 and "0.001  reproduced" in out and "not decidable" in out
    page = Path("o/author/README.md").read_text()
    assert "| gap \\| joint [m] | 0 | 0.001 | reproduced |" in page and "(1.png)" in page
    assert Path("o/author/1.png").read_bytes().startswith(b"\x89PNG")
    assert run(capsys, "paper", "author", "1", "--out", "p", "--no-plot")[0] == 0
    assert os.listdir("p/author") == ["README.md"]


def test_papers_that_are_not_there(installed, capsys):
    installed[_registry.PAPERS] = [EntryPoint("author", "_designs:SHEET", "")]
    status, _, err = run(capsys, "paper", "autor")
    assert status == 2 and "unknown paper 'autor'; valid names are author" in err
    status, _, err = run(capsys, "paper", "author", "1", "7")
    assert status == 2 and "unknown figure of author '7'; valid names are 1, table-2, all" in err
    status, _, err = run(capsys, "paper", "author", "all")
    assert status == 2 and "author table-2 cannot be computed: ArithmeticError: no numbers" in err
    installed[_registry.PAPERS].append(EntryPoint("../x", "_designs:SHEET", ""))
    assert run(capsys, "paper", "../x", "1", "--out", "q")[0] == 0 and os.listdir("q") == [".._x"]
