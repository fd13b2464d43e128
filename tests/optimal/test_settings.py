"""Settings: every tuned number is in one record, and Python, C and firmware read it there."""

import ast
import re
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.controllers import MPC, RealTime
from lgcontrol.optimal import Bound, InteriorPointSolver, Settings
from lgcontrol.optimal.accuracy import _accuracy

from ..benchmarks._sqp_peer import SQPSolver
from .examples import pendulum
from .test_interior_point import in_numpy

ROOT = Path(__file__).resolve().parents[2]
OPTIMAL, CONTROLLERS = ROOT / "lgcontrol" / "optimal", ROOT / "controllers"
# Texts of the interior point and of the loop around it.
KERNEL = OPTIMAL / "kernel"
TEXTS = [
    OPTIMAL / "accuracy" / "_accuracy.py",
    *(OPTIMAL / f"_{name}.py" for name in (
        "guess", "outcome", "stage_model", "given", "solutions",
    )),
    *sorted(KERNEL.glob("*.py")), *sorted(KERNEL.glob("*.[ch]")),
    *sorted(CONTROLLERS.glob("_mpc*.py")), CONTROLLERS / "_real_time.py",
    CONTROLLERS / "_steady_disturbance.py",
]  # fmt: skip
# Numbers that are no settings, and what they are.
OTHERS = {
    ("_accuracy.py", 1e-2): "share of a state or bound that a notice tells: docs/settings.md",
    ("_accuracy.py", 5e-2): "share of the cost that a notice tells: docs/settings.md",
    ("_accuracy.py", 4): "parts of a step for a notice: docs/settings.md",
    ("_accuracy.py", 3): "violations in a sentence",
    ("_accuracy.py", 12): "parts of a step in a figure",
    ("_accuracy.py", 20): "arithmetic of linear inputs",
    ("_accuracy.py", 0.998): "which node a time of phases belongs to",
    ("_accuracy.py", 0.25): "share of the cost whose change a notice calls one to first order",
    ("_accuracy.py", 1e-3): "a range next to the others that is none",
    ("_accuracy.py", 1e-8): "default of the option `tolerance`",
    ("_accuracy.py", 1e-12): "a range that is none",
    ("_interpreter.py", 8): "as the interpreter's text has it",
    ("_interpreter.py", 999): "as the interpreter's text has it",
    ("_library.py", 3): "of the code that is written, not of what it finds",
    ("_library.py", 100_000): "of the code that is written, not of what it finds",
    ("_library.py", 25_000): "of the code that is written, not of what it finds",
    ("_library.py", 1e-6): "of the check of a build",
    ("_library.py", 1e-12): "of the check of a build",
    ("_library.py", 0.1): "of the check of a build",
    ("_change.py", 1e-6): "arithmetic of derivatives: residual that counts as found",
    ("_change.py", 1e-11): "arithmetic of derivatives: residual at which they are",
    ("_change.py", 1e12): "arithmetic of derivatives: what fixes a control",
    ("_sensitivity.py", 1e-2): "what a message counts as no multiplier",
    ("_sensitivity.py", 30): "what a message counts as no multiplier",
    ("_sensitivity.py", 1e-3): "how far a solution of another solver may be off",
    ("_sensitivity.py", 1e-9): "tolerance to which such a solution is solved on",
    ("_sensitivity.py", 1e-12): "less than what limits are relaxed by",
    ("_sensitivity.py", 4): "names in a message",
    ("_loop.py", 1e-3): "arithmetic of the search for a steady state",
    ("_loop.py", 1e-6): "the same, and the default of the option `tolerance`",
    ("_loop.py", 1e-8): "arithmetic of the search for a steady state",
    ("_loop.py", 1e-9): "arithmetic of the search for a steady state",
    ("_loop.py", 1e-13): "arithmetic of the search for a steady state",
    ("_loop.py", 1000): "iterations that a log holds",
    ("_several.py", 4): "waves of random guesses of states, which any solve starts from",
    ("_several.py", 8): "waves of random guesses of controls, which any solve starts from",
    ("_several.py", 1e-3): "share of the cost up to which a message counts optima as one",
    ("_several.py", 0.05): "distance of states up to which a message counts optima as one",
    ("_several.py", 3): "optima in a message",
    ("_planner.py", 1e-6): "default of the option `tolerance`",
    ("_results.py", 1e-6): "the same, of steps",
    ("_results.py", 1e-3): "what a message counts as met",
    ("_results.py", 1e-2): "what a message counts as kept",
    ("_results.py", 20): "iterations behind which a message says more",
    ("_table.py", 1e-14): "roundings of a pivot",
    ("_table.py", 1e-11): "rounding of a state, relative: no size",
    ("_table.py", 1e-3): "a slope that is none; a violation that is rounding to refinements",
    ("_table.py", 1e-2): "of a tolerance, a violation or a range, as one step leaves them",
    ("_table.py", 3.0): "sizes of states next to the reference, in what moves others",
    ("_table.py", 0.4): "of the states: whether there are sizes",
    ("_table.py", 0.25): "places between limits of a control at which an excess is compared",
    ("_table.py", 0.75): "places between limits of a control at which an excess is compared",
    ("_table.py", 0.99): "places between limits of a control at which an excess is compared",
    ("_barrier.py", 1e-300): "far from what doubles cannot hold",
    ("scales.c", 1e-300): "far from what doubles cannot hold",
    ("optimality.c", 1e-200): "far from what doubles cannot hold",
    ("optimality.c", 1e200): "far from what doubles cannot hold",
    ("_stage_model.py", 50_000): "how code is made: results are the same to rounding",
    ("_stage_model.py", 0.1): "how code is made: results are the same to rounding",
    ("bias.c", 1e-15): "units in the last place",
    ("bias.c", 1e-32): "square of a rounding",
    ("_mpc_info.py", 8): "names in a message",
    ("_mpc_info.py", 1e-3): "s of a call from which a notice counts it as slow",
    ("_mpc_info.py", 20): "slow calls before the notice",
    ("_mpc_info.py", 1e3): "ms of a second",
    ("_mpc_export.py", 0.1): "where test vectors begin",
    ("_mpc_export.py", 1e-5): "largest tolerance of test vectors",
    ("_mpc_export.py", 16): "units in the last place that tell tolerances of test vectors",
    ("_mpc_export.py", 10): "the same: how much more than the answers move",
    ("_export.py", 1e-9): "least tolerance of test vectors",
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
    read = numbers_of_c if path.suffix in (".c", ".h") else numbers_of_python
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
    texts = [path.read_text(encoding="utf-8") for path in (*TEXTS, *OPTIMAL.rglob("*.py"))]
    texts += [(CONTROLLERS / "_base.py").read_text(encoding="utf-8")]
    uses = re.compile(rf"[.>]{entry.name}\b")
    assert any(uses.search(text) for text in texts), f"nothing reads {entry.name}"


def test_there_are_few():
    assert len(fields(Settings)) <= 60


def test_the_page_has_the_table():
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert Settings.table() in page


@pytest.mark.parametrize("name", ["COARSE_STATE", "COARSE_COST", "FEW_PARTS"])
def test_the_page_has_the_numbers_of_the_notice(name):
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {getattr(_accuracy, name):g} |" in page


def test_settings_out_of_range_are_refused_by_name():
    for given, message in (
        ({"boundary": 1.5}, "boundary must be between 0.5 and 0.999999, got 1.5: leave it out"),
        ({"real_time_far": np.nan}, "real_time_far must be between .* got nan"),
    ):
        with pytest.raises(ValueError, match=message):
            Settings(**given)
    for given, message in (
        ({"real_time_more": 1.5}, "real_time_more must be a whole number, got 1.5"),
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


OTHER = Settings(boundary=0.9, mu_first=0.1, push=0.05, fast_step=0.6, real_time_mu=1e-2)


@pytest.mark.compiled
def test_c_reads_the_settings_that_numpy_reads():
    """Other numbers, the same library: steps change, and are the same in both."""
    problem = swing().problem.with_arguments(reference=np.array(UP))
    x0, found = np.array([np.cos(0.5), np.sin(0.5), 0.0]), {}
    for name, settings in (("usual", Settings()), ("other", OTHER)):
        built = InteriorPointSolver(problem, settings=settings).prepare()
        assert built.is_compiled
        for solver in (in_numpy(problem, settings=settings), built):
            found[name, solver.is_compiled] = solver.solve(x0, max_iterations=6)
            step = solver.step(x0, t0=0.1)
            found[name, solver.is_compiled, "step"] = step
    for name in ("usual", "other"):
        for more in ((), ("step",)):
            a, b = (found[(name, is_compiled, *more)] for is_compiled in (False, True))
            np.testing.assert_allclose(a.x, b.x, atol=1e-9)
            np.testing.assert_allclose(a.u, b.u, atol=1e-9)
    assert np.abs(found["usual", True].u - found["other", True].u).max() > 1e-3


def test_a_controller_takes_settings_and_keeps_them():
    mpc = swing(settings=OTHER)
    assert mpc.settings == mpc.solver.settings == OTHER == mpc.with_parameters([1.0]).settings
    assert mpc.solver.for_problem(mpc.problem).settings == OTHER
    with pytest.raises(AttributeError, match="settings is fixed when an MPC is made"):
        mpc.settings = Settings()
    given = swing(solver=InteriorPointSolver(settings=OTHER))
    assert given.solver.settings == OTHER and given.settings == Settings()
    assert swing(solver=SQPSolver(), settings=OTHER).settings == OTHER


@pytest.mark.compiled
def test_the_rules_of_the_loop_are_settings():
    """What counts as a jump of the reference is one of them, a rule of the loop in C alone."""
    causes = {}
    for jump in (2.0, 1e6):
        mpc = swing(settings=Settings(jump=jump), real_time=RealTime(iterations=3))
        x = np.array([-np.cos(0.1), np.sin(0.1), 0.0])
        for k in range(5):
            mpc(0.1 * k, x, UP if k < 4 else [np.cos(2.0), np.sin(2.0), 0.0])
        causes[jump] = mpc._loop.plan.due
    assert causes == {2.0: "reference", 1e6: ""}
