"""Names are never code: whatever something is called, its export is that of any other name."""

import re
import subprocess

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction
from lgcontrol.controllers import LQR, MPC, GravityPD
from lgcontrol.estimation import EKF, MovingHorizon
from lgcontrol.groups import Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.systems import Input, Parameter, Sensor, System

from .test_export import STRICT, compiled, needs_compiler

RUNS = "__attribute__((constructor)) static void own(void) { abort(); }"
# What ends comments and lines, joins them, begins others, turns the direction of writing, is C, is
# taken in C or in what is written, differs by what C has no letters for, is empty but for that.
NAMES = [
    f"*/ {RUNS} /*", f"\n{RUNS}\n", f"\r{RUNS}\r", f"*\\\n/ {RUNS}", f"*??/\n/ {RUNS}",
    f"\u2028{RUNS}", f"\u2029{RUNS}", f"\x85{RUNS}", f"\x0b{RUNS}", f"\x0c{RUNS}", f"\x00{RUNS}",
    "a/*b*/c", "/*", "*/", "/", "*", "**//", "*/*/", "/*/", "//", "// */", "*\u200b/", "*\x00/",
    "??/", "what??/", "??/??/", "??=define x", "??<", "?/", "????/", "?" * 50, "\\", "a\\", "\\n",
    "#include <x>", "\n#error no", "#define double int", "%:define", "_Pragma(\"x\")", "\"", "'",
    "\"); abort(); (\"", "%s%n", "%d", "{}", "{0}", "${x}", "$(x)", "`x`", "@", "$", "@_window",
    "NOISY", "\u202e/*\u202d", "\u2066*/", "\ufeff", "\u00ad", "\ud800", "\U0010ffff", "𝔵", "ﬁ",
    "²", "½", "°", "µ", "δ", "Δ", "漢字", "ё", "é", "e\u0301", "İ", "ß", "ẞ", "🚀", ".", "-", "_",
    "__", "speed", "Speed", "speed?", "s-p-e-e-d", "s p e e d", "1", "1e9", "0x10", "int", "INT",
    "main", "NULL", "EOF", "INFINITY", "NAN", "e", "x", "y", "z", "t", "u", "P", "work", "work_2",
    "first", "covariance", "start", "estimate", "filter", "estimator", "lg_body", "lg_mpc",
    "LG_MPC_N", "table_x", "row", "row_at", "status", "update_speed", "N", "DT", "NQ", "empty",
    "flags", "nominal", "solve", "x" * 100_000, "x" * 100_000 + "y", "*/" * 50_000, "é" * 1000,
    "_" * 1000, "a b" * 1000,
]  # fmt: skip
SHARED = 12  # names of one system: each export has several of them at once


@pytest.fixture(autouse=True)
def own_cache():
    """The user's: the planning kernel, which exports of plans call, takes seconds to build."""


def groups(count):
    """All names, so many at once."""
    return [NAMES[k : k + count] for k in range(0, len(NAMES), count)]


def hostile_system(names):
    """Everything that has a name has one of these, as long as they last."""
    one = (*names, *NAMES)
    states = Rn(2, (one[0], one[1]), (one[2], one[3]))
    return System(
        one[0], states, lambda t, x, u, p: ca.vertcat(x[1], u[0] + u[1] - p[0] * x[1]),
        inputs=[Input(one[4], one[5], -1.0, 1.0), Input(one[6], one[7], role="disturbance")],
        parameters=[Parameter(one[8], one[9], 0.1)],
    )  # fmt: skip


def hostile_sensors(names):
    return [Sensor(name, lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1) for name in names]


def exports_of(names, folder):
    """One of each kind of exporter."""
    system, sensors = hostile_system(names), hostile_sensors(names)
    noise = {system.input_names[1]: 0.1}
    law = LQR(system, [0.0, 0.0], 1.0, 1.0)
    x = ca.SX.sym("x", len(names))
    function = ModelFunction(ca.Function("f", [x], [2 * x], ["x"], ["y"]))
    labels = {"x": [(name, name) for name in names], "y": [(name, "") for name in names]}
    yield law.export_c(folder / "law")
    yield system.step().export_c(folder / "step", name=names[0] + "step")
    yield system.export_c(folder / "system")
    yield function.export_c(folder / "function", name="f" + names[-1], labels=labels, about=names)
    yield EKF(system, sensors, std0=1.0, noise=noise).export_c(folder / "filter")
    if len(names) > 4:
        return
    mhe = MovingHorizon(system, sensors, std0=1.0, noise=noise, horizon=2, dt=0.1)
    yield mhe.export_c(folder / "window")
    yield MPC(system, 3, 0.1, reference=[0.0, 0.0]).export_c(folder / "mpc")


def check(folder):
    """Comments hold no trigraph, end where they should, and what is left is C of plain letters."""
    for path in sorted(folder.iterdir()):
        text = path.read_text(encoding="utf-8")
        assert "??" not in text and len(path.name) < 200
        if path.suffix in (".c", ".h"):
            code = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
            assert code.isascii() and "abort()" not in code, path
            assert max(map(len, text.splitlines())) < 2000


@pytest.mark.interpreted
@pytest.mark.parametrize("k", range(len(groups(SHARED))))
def test_all_exports_take_all_names(k, tmp_path):
    names = list(dict.fromkeys(groups(SHARED)[k]))
    for folder in exports_of(names, tmp_path):
        check(folder)


@needs_compiler
@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("names", "largest"),
    [
        ([NAMES[0], "speed", "Speed", "speed?"], 100_000),
        *(
            pytest.param(names, np.inf, marks=pytest.mark.thorough)
            for names in (
                [NAMES[0], "speed", "Speed", "speed?"],
                [NAMES[4], "??/", "x" * 100_000, "x" * 100_000 + "y"],
                ["lg_mpc", "°", "²", "\u2028b"],
            )
        ),
    ],
    ids=["read", "names0", "names1", "names2"],
)
def test_they_build_and_run(names, largest, tmp_path):
    """Trigraphs are told of, and with C99 they count.

    Sources of more bytes than `largest` are read by the compiler, who tells of what names break.
    """
    for folder in exports_of(names, tmp_path):
        sources = sorted(folder.glob("*.c"))
        runs = sum(path.stat().st_size for path in sources) < largest
        output = ["-o", tmp_path / "a", "-lm"] if runs else ["-fsyntax-only"]
        compiled([*STRICT, "-O0", f"-I{folder}", *sources, *output])
        if runs:
            done = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout


@needs_compiler
def test_arguments_and_joints_have_names_of_their_own(tmp_path):
    names = ["lg_body", "table_starts", "row_at", "row", "work", "own", "INFINITY", "NAN"]
    given = [ca.SX.sym(name) for name in names]
    function = ca.Function("own", given, [ca.vertcat(*given)], names, ["fabs"])
    folder = ModelFunction(function).export_c(tmp_path / "own", name="own")
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    effort = JointProperties(effort=5.0)
    tree = Multibody().add_body(NAMES[0], rod, "revolute", axis="y", properties=effort)
    law = GravityPD(tree, stiffness=20.0, damping=5.0).export_c(tmp_path / "law")
    check(law)
    for place in (folder, law):
        sources = sorted(place.glob("*.c"))
        compiled([*STRICT, "-O0", f"-I{place}", *sources, "-o", tmp_path / "a", "-lm"])


def test_the_list_is_long_enough():
    assert len(set(NAMES)) >= 100
