"""Settings: every tuned number is in one record, and Python, C and firmware read it there."""

import ast
import ctypes
import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.controllers import MPC, RealTime
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    Settings,
    _kernel,
)
from lgcontrol.optimal._settings import settings_mirror

from ..benchmarks._sqp_peer import SQPSolver
from .examples import pendulum

ROOT = Path(__file__).resolve().parents[2]
OPTIMAL, CONTROLLERS = ROOT / "lgcontrol" / "optimal", ROOT / "controllers"
# Texts of the interior point and of the loop around it.
TEXTS = [
    *(OPTIMAL / f"_{name}.py" for name in (
        "interior_point", "interior_solver", "interior_results", "runs", "least_violation", "guess",
        "kernel", "export", "outcome", "stage_model", "given", "solutions",
    )),
    *(OPTIMAL / f"_{name}.c" for name in ("interior_point", "start", "controller")),
    *(CONTROLLERS / f"_{name}.py" for name in (
        "mpc", "mpc_delay", "mpc_export", "mpc_loop", "mpc_plan", "mpc_rates", "real_time",
        "steady_disturbance",
    )),
]  # fmt: skip
# Numbers that are no settings, and what they are.
OTHERS = {
    ("_interior_solver.py", 1e-6): "default of the option `tolerance`",
    ("_interior_point.c", 1e-17): "half a unit in the last place",
    ("_interior_point.c", 1e-200): "far from what doubles cannot hold",
    ("_interior_point.c", 1e200): "far from what doubles cannot hold",
    ("_interior_point.c", 30): "a bound of Jacobi's sweeps that none comes near",
    ("_runs.py", 0.1): "between two looks at an interrupt, s",
    ("_runs.py", 1e-9): "no time of a clock is shorter, s",
    ("_kernel.py", 3): "of the code that is written, not of what it finds",
    ("_kernel.py", 100_000): "of the code that is written, not of what it finds",
    ("_kernel.py", 1e-6): "of the check of a build",
    ("_kernel.py", 0.1): "of the check of a build",
    ("_mpc.py", 8): "names in a message",
    ("_mpc_export.py", 0.1): "where test vectors begin",
}
PLAIN = (0, 0.5, 1, 2)
UP = [-1.0, 0.0, 0.0]


def numbers_of_python(path):
    """Real numbers anywhere, and whole ones that have a name of their own."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [entry.value for entry in ast.walk(tree) if isinstance(entry, ast.Constant)]
    found = [value for value in found if isinstance(value, float)]
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and not isinstance(
            statement.value, ast.Dict | ast.Call
        ):
            inside = (entry for entry in ast.walk(statement) if isinstance(entry, ast.Constant))
            found += [entry.value for entry in inside if type(entry.value) is int]
    return found


def numbers_of_c(path):
    """The same of C."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r'"[^"\n]*"', "", text)
    reals = re.findall(r"(?<![\w.])\d+(?:\.\d*(?:[eE][-+]?\d+)?|[eE][-+]?\d+)", text)
    named = re.findall(r"\b(?:static )?const (?:int|int64_t) \w+ = (\d+)\s*[,;]", text)
    for body in re.findall(r"enum\s*\{([^}]*)\}", text):
        entries = re.findall(r"(\w+) = (\d+)\b", body)
        named += [value for name, value in entries if not name.startswith("LG_")]
    return [*map(float, reals), *map(int, named)]


def numbers_of(path):
    read = numbers_of_c if path.suffix == ".c" else numbers_of_python
    return {value for value in read(path) if value not in PLAIN}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_no_text_has_a_tuned_number_of_its_own(path):
    found = {value for value in numbers_of(path) if (path.name, value) not in OTHERS}
    assert not found, f"{path.name}: {sorted(found)} belong to Settings"


def test_numbers_that_are_no_settings_are_still_there():
    have = {(path.name, value) for path in TEXTS for value in numbers_of(path)}
    assert set(OTHERS) <= have


def test_a_tuned_number_is_found_wherever_it_hides(tmp_path):
    """What the test above would find, so that it cannot pass for want of reading."""
    (tmp_path / "a.py").write_text("FAR = 7\n\ndef f(x, most=0.3):\n    return x * 1e-4\n")
    (tmp_path / "a.c").write_text(
        "static const int far = 7; /* 0.9 */\nenum { MORE = 4 };\ndouble f(void) { return 3e-4; }\n"
    )
    assert numbers_of(tmp_path / "a.py") == {7, 0.3, 1e-4}
    assert numbers_of(tmp_path / "a.c") == {7, 4, 3e-4}


@pytest.mark.parametrize("entry", fields(Settings), ids=lambda entry: entry.name)
def test_a_setting_says_what_it_is(entry):
    about = entry.metadata
    assert about["low"] <= entry.default <= about["high"] and about["low"] < about["high"]
    assert all(about[key] for key in ("meaning", "source", "falls", "unit"))
    texts = [path.read_text(encoding="utf-8") for path in (*TEXTS, *sorted(OPTIMAL.glob("*.py")))]
    texts += [(CONTROLLERS / "_base.py").read_text(encoding="utf-8")]
    uses = re.compile(rf"[.>]{entry.name}\b")
    assert any(uses.search(text) for text in texts), f"nothing reads {entry.name}"


def test_the_page_has_the_table():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert Settings.table() in page


def test_settings_out_of_range_are_refused_by_name():
    for given, message in (
        ({"boundary": 1.5}, "boundary must be between 0.5 and 0.9999, got 1.5: leave it out"),
        ({"far": np.nan}, "far must be between .* got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            Settings(**given)
    for given, message in (
        ({"steps_more": 1.5}, "steps_more must be a whole number, got 1.5"),
        ({"armijo": [1e-4, 1e-4]}, "armijo must be a number"),
    ):
        with pytest.raises(TypeError, match=message):
            Settings(**given)
    with pytest.raises(TypeError, match="unknown argument 'boundry'.*Did you mean 'boundary'"):
        Settings(boundry=0.9)
    with pytest.raises(ValueError, match="boundary must be between"):
        replace(Settings(), boundary=0.0)
    for maker in (InteriorPointSolver, lambda settings: swing(settings=settings)):
        with pytest.raises(TypeError, match="settings must be (a )?Settings"):
            maker(settings={"boundary": 0.9})
    with pytest.raises(FrozenInstanceError):
        Settings().boundary = 0.9


def swing(**options):
    return MPC(
        pendulum(2.0), 20, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.05, reference=UP,
        bounds=[Bound("rate", -2.5, 2.5)], **options,
    )  # fmt: skip


OTHER = Settings(
    boundary=0.9,
    equality_sweeps_most=9,
    barrier=0.3,
    push=0.05,
    step_good=0.6,
    real_time_barrier=1e-2,
)


@pytest.mark.compiled
def test_c_reads_the_settings_that_numpy_reads():
    """Other numbers, the same library: steps change, and are the same in both."""
    problem = swing().problem.with_arguments(reference=np.array(UP))
    x0, found = np.array([np.cos(0.5), np.sin(0.5), 0.0]), {}
    for name, settings in (("usual", Settings()), ("other", OTHER)):
        plain, built = (InteriorPointSolver(problem, settings=settings) for _ in range(2))
        built.prepare()
        assert built.is_compiled
        for solver in (plain, built):
            found[name, solver.is_compiled] = solver.solve(x0, max_iterations=6)
            step = solver.step(x0, t0=0.1)
            found[name, solver.is_compiled, "step"] = step
    for name in ("usual", "other"):
        for more in ((), ("step",)):
            a, b = (found[(name, is_compiled, *more)] for is_compiled in (False, True))
            np.testing.assert_allclose(a.x, b.x, atol=1e-9)
            np.testing.assert_allclose(a.u, b.u, atol=1e-9)
    assert np.abs(found["usual", True].u - found["other", True].u).max() > 1e-3


@pytest.mark.compiled
def test_a_mirror_of_another_size_is_not_used(monkeypatch):
    class Short(ctypes.Structure):
        _fields_ = settings_mirror(Settings())._fields_[:-1]

    monkeypatch.setattr(_kernel, "settings_mirror", lambda settings: Short())
    told = []
    monkeypatch.setattr(_kernel, "notice", lambda key, text: told.append(text))
    assert not InteriorPointSolver(swing().problem).prepare().is_compiled
    assert re.search(r"Short has \d+ bytes in Python and \d+ in C", told[0])


def test_a_controller_takes_settings_and_keeps_them():
    mpc = swing(settings=OTHER)
    assert mpc.settings == mpc.solver.settings == OTHER == mpc.with_parameters([1.0]).settings
    assert mpc.solver.for_problem(mpc.problem).settings == OTHER
    with pytest.raises(AttributeError, match="settings is fixed when an MPC is made"):
        mpc.settings = Settings()
    given = swing(solver=InteriorPointSolver(settings=OTHER))
    assert given.solver.settings == OTHER and given.settings == Settings()
    assert swing(solver=SQPSolver(), settings=OTHER).settings == OTHER


@pytest.mark.interpreted
def test_the_rules_of_the_loop_are_settings():
    """What counts as a jump of the reference is one of them."""
    causes = {}
    for jump in (2.0, 1e6):
        mpc = swing(settings=Settings(jump=jump), real_time=RealTime(iterations=3))
        x = np.array([-np.cos(0.1), np.sin(0.1), 0.0])
        for k in range(5):
            mpc(0.1 * k, x, UP if k < 4 else [np.cos(2.0), np.sin(2.0), 0.0])
        causes[jump] = mpc._loop.plan.due
    assert causes == {2.0: "reference", 1e6: ""}
