"""Exported controllers: compiled alone they answer as Python does, call by call."""

import ctypes
import subprocess
from dataclasses import fields, replace
from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._compiler import Compiler
from lgcontrol.codegen._internal import find_compiler
from lgcontrol.controllers import (
    LQR,
    MPC,
    TVLQR,
    Adapted,
    ComputedTorque,
    Controller,
    ElasticImpedance,
    ElasticPD,
    ElasticStructurePreserving,
    FeedbackLinearization,
    FlatFeedforward,
    GeometricPD,
    GravityPD,
    Impedance,
    OperationalSpace,
    RealTime,
    SpringTorqueControl,
    ThrustVectorPD,
)
from lgcontrol.controllers._mpc_info import MPCInfo
from lgcontrol.groups import SO2, SO3, Product, Rn, Translation
from lgcontrol.integrators import get_method
from lgcontrol.mechanics import (
    FrameTask,
    JointProperties,
    LinearDrag,
    Motor,
    Multibody,
    SeriesElastic,
    SpatialInertia,
)
from lgcontrol.models import (
    elastic_planar_arm_tree,
    quadrotor,
    surface_vessel,
    variable_stiffness_joint_tree,
)
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    OptimalControlProblem,
    Residual,
)
from lgcontrol.optimal.kernel import _library
from lgcontrol.optimal.kernel._export import STATUSES, ExportCase
from lgcontrol.systems import Input, Parameter, System, Trajectory, Waypoints, with_accelerations
from lgcontrol.systems._internal import TrajectoryPoint

from ..benchmarks._sqp_peer import SQPSolver
from ..codegen.test_export import (
    CC,
    SANITIZED,
    STRICT,
    built,
    has_sanitizers,
    needs_compiler,
)
from ..elastic.arms import ARMS, links
from ..optimal.examples import mechanical
from ..optimal.test_phases import parked, posts
from .test_mpc import satellite
from .test_stiff_loops import DT, PLANT, TERMS

UP = [-1.0, 0.0, 0.0]
WATCHFUL = " ".join(("-O1", *SANITIZED))


def pendulum(**options):
    """Weak motor, and gusts that a plan knows nothing of."""
    return System(
        "pendulum",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u[0] + u[1] - p * x[1]),
        inputs=[Input("torque", "N m", -0.6, 0.8), Input("gust", "N m", role="disturbance")],
        parameters=[Parameter("pull", "1/s²", 1.0)],
        **options,
    )


def turning(t, x, x_ref, u_ref, p):
    """Policy: a spring to the reference."""
    e = SO2.minus(x[:2], x_ref[:2])
    return u_ref[0] - 2 * e - (x[2] - x_ref[2])


def falling():
    """A start from which the push, however long, does not lead back between the limits."""
    rod = System(
        "rod", Product(angle=Rn(1), rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], 20 * ca.sin(x[0]) + u),
        inputs=[Input("push", "N m", -1, 1)],
    )  # fmt: skip
    return MPC(
        rod, 15, 0.15, Q=1.0, R=0.05, reference=[0.0, 0.0], solver="interior_point",
        bounds=[Bound("angle", -1.0, 1.0)],
    )  # fmt: skip


TOLD = RealTime(restarts=False)  # firmware begins anew when it is told to


def mpc(system=None, **options):
    given = {
        "Q": {"angle": 1, "rate": 0.1}, "R": 0.05, "reference": UP, "solver": "interior_point",
        "method": "heun",
    } | options  # fmt: skip
    return MPC(system or pendulum(), 15, 0.15, **given)


@cache
def spacecraft():
    return satellite(limit=1.0)


# Made where they are used.
CASES = {
    "called more often, another parameter": lambda: (
        mpc(real_time=RealTime(period=0.06), p={"pull": 1.3}), [1.0, 0.0, 0.3],
    ),
    "late, called more often": lambda: (
        mpc(real_time=RealTime(period=0.06), delay=0.2), [0.6, 0.8, 0.3],
    ),
    "late by more than a step, a hard limit": lambda: (
        mpc(delay=0.35, bounds=[Bound("rate", -0.7, 0.7)]), [0.0, 1.0, 0.2],
    ),
    "hard limit that cannot be kept": lambda: (
        mpc(bounds=[Bound("rate", -0.5, 0.5)]), [0.0, 1.0, 0.9],
    ),
    "weights that change along the horizon": lambda: (
        mpc(
            Q={"angle": np.linspace(0.2, 2.0, 15)[:, None, None], "rate": 0.1},
            residuals=[Residual(lambda t, x, u, p: x[2] - 0.4, 3.0, at=range(4, 5))],
        ),
        [1.0, 0.0, 0.3],
    ),
    "soft limit, several steps": lambda: (
        mpc(bounds=[Bound("rate", -0.5, 0.5, soft=3.0)], real_time=RealTime(iterations=2)),
        [0.0, 1.0, 0.2],
    ),
    "a hard limit of what is no number": lambda: (
        mpc(bounds=[Bound(lambda t, x, u, p: ca.log(x[0]), lower=-9.0, name="height")]),
        [-0.6, 0.8, 0.0],
    ),
    "a soft one": lambda: (
        mpc(bounds=[Bound(lambda t, x, u, p: ca.log(x[0]), lower=-9.0, soft=3.0, name="height")]),
        [-0.6, 0.8, 0.0],
    ),
    "a stiff plant, whose steps solve equations": lambda: (MPC(PLANT, 8, DT, **TERMS), [-1.0, 0.0]),
    "policy, ends at rest": lambda: (
        mpc(pendulum(policy=turning), bounds=[Bound("rate", 0.0, 0.0, at="terminal")]),
        [-0.6, 0.8, 0.0],
    ),
    "a first plan that ends before it keeps its bounds": lambda: (
        mpc(bounds=[Bound("angle.cos", 0.99, at="terminal")],
            real_time=RealTime(first_iterations=1)),
        [-0.6, 0.8, 0.0],
    ),
    "bounds that nothing keeps": lambda: (falling(), [0.9, 0.0]),
    "a first plan whose defects are open": lambda: (begun(), [0.9, 0.0]),
    "on the way, first derivatives": lambda: (
        mpc(guess="screw", solver=InteriorPointSolver(second_derivatives=False)), [0.6, 0.8, 0.0],
    ),
    "soft limits that cut steps short, so that calls solve": lambda: (
        MPC(spacecraft(), 20, 0.2, Q={"attitude": 5, "rate": 1}, R=0.1, solver="interior_point",
            bounds=[Bound("rate", -0.4, 0.4, soft=100.0)], reference=spacecraft().state.identity),
        spacecraft().state.join(attitude=SO3.exp([2.0, 1.5, -1.0])),
    ),
}  # fmt: skip


def ran(folder, tmp_path, level="-O0"):
    done = subprocess.run(
        [built(folder, "main.c", f"{folder.name}.c", into=tmp_path, level=level)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def printed(folder, body, into, level="-O0"):
    """Rows of numbers that a program prints: a main with a body, and an export's struct m."""
    name, program = folder.name, into / "user.c"
    program.write_text(
        f'#include "{name}.h"\n#include <math.h>\n#include <stdio.h>\nstatic {name} m;\n'
        f"int main(void) {{\n{body}  return 0; }}\n"
    )
    built_one = built(folder, program, f"{name}.c", into=into, level=level)
    done = subprocess.run([built_one], capture_output=True, text=True, check=True)
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)


# One with first derivatives, one with soft limits whose calls solve: builds take seconds.
@pytest.mark.usually(
    name=(
        "late, called more often",
        "on the way, first derivatives",
        "soft limits that cut steps short, so that calls solve",
    )
)
@needs_compiler
@pytest.mark.parametrize(
    "name",
    CASES,
)
def test_an_exported_mpc_answers_as_python_does(name, tmp_path):
    controller, x0 = CASES[name]()
    folder = controller.export_c(tmp_path / "swing", name="swing", x0=x0)
    # A compiler that optimises looks more closely and warns of more, and takes longer.
    is_watched = name.startswith(("policy", "late, called more often"))
    code, text = ran(folder, tmp_path, "-O1" if is_watched else "-O0")
    assert code == 0, text
    assert "workspace" in text and "code" in text
    assert controller.plan is None  # the controller itself was not called


def test_what_cannot_be_kept_ends_in_a_plan_without_defects():
    controller = falling()
    controller.solver.prepare()
    controller(0.0, [0.9, 0.0])
    assert controller.info.solve == "infeasible" and controller.info.status == "infeasible"
    assert "angle exceeds its bound by" in controller.info.message
    plan, step = controller.plan, controller.system.step(controller.problem.method)
    ends = step(plan.t[:-1], plan.x[:-1], plan.u, [], 0.15)
    assert np.abs(ends - plan.x[1:]).max() < 1e-6


def begun(word="rest", iterations=4):
    """A first plan of a few iterations: its hard bounds hold, and its states are no motion yet."""
    rod = falling().system
    return MPC(
        rod, 15, 0.15, Q=1.0, R=0.05, reference=[0.0, 0.0], bounds=[Bound("angle", -1.0, 1.0)],
        guess=word, real_time=RealTime(first_iterations=iterations, restarts=False),
    )  # fmt: skip


def test_a_first_plan_whose_defects_are_open_is_no_answer():
    controller = begun()
    controller.solver.prepare()
    controller(0.0, [0.9, 0.0])
    assert controller.info.solve == "iteration limit" and controller.info.status == "unsolved"
    plan, step = controller.plan, controller.system.step(controller.problem.method)
    gap = np.abs(step(plan.t[:-1], plan.x[:-1], plan.u, [], 0.15) - plan.x[1:]).max()
    assert gap > 0.1 and f"defects up to {gap:.2g} remain" in controller.info.message


@needs_compiler
def test_firmware_refuses_a_first_plan_whose_defects_are_open(tmp_path):
    folder = begun().export_c(tmp_path / "rod", name="rod")
    body = (
        "  static const double x[] = {0.9, 0};\n  double u[ROD_NU];\n  rod_init(&m);\n"
        '  printf("%d\\n", rod_step(&m, 0, x, u) == ROD_UNSOLVED);\n'
    )
    assert printed(folder, body, tmp_path)[0, 0] == 1


@pytest.mark.thorough
@needs_compiler
@pytest.mark.parametrize(("iterations", "status"), [(5, "OK"), (1, "UNSOLVED")])
def test_firmware_says_where_steps_do_not_solve_their_equations(iterations, status, tmp_path):
    method, x0 = replace(get_method("radau_iia5"), iterations=iterations), [-1.0, 0.0]
    controller = MPC(PLANT, 8, DT, **TERMS | {"method": method})
    folder = controller.export_c(tmp_path / "stiff", name="stiff")
    body = (
        f"  static const double x[] = {{{x0[0]}, {x0[1]}}};\n  double u[STIFF_NU];\n"
        "  stiff_init(&m);\n"
        f'  printf("%d\\n", stiff_step(&m, 0, x, u) == STIFF_{status});\n'
    )
    assert printed(folder, body, tmp_path, "-O0")[0, 0] == 1
    controller(0.0, x0)
    assert controller.info.status.name == status


class Plain(Compiler):
    """Scalar code for any processor of its kind, without fused multiply-adds."""

    def flags(self, longest, contract):
        return super().flags(longest, False)


# From here the first plan stalls, or its iterations are used up, with hard rows violated.
PARKED = [
    (0, 0, 0), (0.5, 0.2, 0.1), (-0.5, -0.2, -0.1), (0, 0.5, 0.2),
    (1, 0, 0), (-1, 0, 0), (0, -0.5, 0), (0.3, -0.3, 0.3),
]  # fmt: skip


@pytest.mark.thorough
@needs_compiler
def test_firmware_accepts_the_first_plan_that_python_accepts(tmp_path, monkeypatch):
    """To the last bit, with the same arithmetic; no penalised plan whose defects are worse."""
    found = find_compiler()
    given = {entry.name: getattr(found, entry.name) for entry in fields(found)}
    plain = Plain(**given | {"native": (), "width": 1})
    monkeypatch.setattr(_library, "find_compiler", lambda: plain)
    task, _ = parked(*posts())
    solver, N = InteriorPointSolver(task.problem).prepare(), task.problem.horizon
    assert solver.is_compiled
    starts = [
        task._flat.state(np.array([7 + a, 2.7 + b, np.cos(c), np.sin(c), 0.0, 0.0]), [50**0.5])
        for a, b, c in PARKED
    ]
    folder = solver.export_c(tmp_path / "park", name="park", guess="cheapest", first_iterations=200)
    table = ", ".join(repr(float(value)) for x in starts for value in x)
    nq, nu = len(starts[0]), task.problem.system.n_inputs
    body = (
        f"  static const double x0[] = {{{table}}};\n  double u[PARK_NU];\n  park_init(&m);\n"
        f"  for (int i = 0; i < {len(starts)}; i++) {{\n    park_reset(&m);\n"
        "    const int status = park_step(&m, 0, x0 + i * PARK_NX, u);\n"
        '    printf("%d %d %.17g", status, m.iterations, m.violation);\n'
        "    for (int k = 0; k < (PARK_N + 1) * PARK_NX; k++)\n"
        '      printf(" %.17g", m.plan.x[k / PARK_NX][k % PARK_NX]);\n'
        "    for (int k = 0; k < PARK_N * PARK_NI; k++)\n"
        '      printf(" %.17g", m.plan.u[k / PARK_NI][k % PARK_NI]);\n    printf("\\n");\n  }\n'
    )
    rows = printed(folder, body, tmp_path, level="-O1 -ffp-contract=off")
    seen = set()
    for x0, row in zip(starts, rows, strict=True):
        plan = solver.solve(x0, guess="cheapest", max_iterations=200)
        if plan.iterations[-1].number > 200:  # by the other way, which firmware has no time for
            assert row[1] == 200 and STATUSES[int(row[0])] != "OK"
            continue
        assert row[1] == plan.iterations[-1].number
        assert (row[3 : 3 + (N + 1) * nq] == plan.x.ravel()).all()
        assert (row[-N * nu :] == plan.plan["u"].ravel()).all()
        worst = max((entry.amount for entry in plan.violations), default=0.0)
        # Python lists what exceeds the tolerance of the solve.
        assert row[2] == pytest.approx(worst, rel=1e-12, abs=1e-6)
        status = MPCInfo.of(plan, 0.0).status
        assert STATUSES[int(row[0])] == status.name
        seen.add((plan.status, status))
    assert len(seen) > 1


@pytest.mark.usually(delay=(0.2,))
@pytest.mark.parametrize("delay", [0.0, 0.2])
@needs_compiler
def test_what_is_no_state_and_no_time_is_answered_as_python_does(delay, tmp_path):
    states = np.array([[1.0, 0.0, 0.2], [np.nan, 0, 0], [0.5, 0.5, 0.0], [0.98, 0.199, 0.3]])
    states = np.concatenate([states, states[-1:], [[0.8000001, 0.6, 0.1]]])
    times = np.array([0.0, 0.15, 0.3, 0.45, 1e16, 5.0])
    first = ExportCase(times[:0], states[:0], np.zeros((0, 1)), [])
    controller = mpc(delay=delay, real_time=TOLD)
    answers, statuses = [], []
    for t, x in zip(times, states, strict=True):
        answers.append(controller(t, x))
        statuses.append(controller.info.status.name)
    assert statuses == ["OK", "HELD", "HELD", "OK", "HELD", "OK"]
    held = ExportCase(times, states, np.array(answers), statuses)
    folder = controller.solver.export_c(
        tmp_path / "swing", name="swing", reference=UP, cases=[first, held], delay=delay
    )
    code, text = ran(folder, tmp_path)
    assert code == 0, text


@needs_compiler
def test_a_call_tells_the_defects_that_its_plan_has_in_python_and_in_c(tmp_path):
    """A body that turns fast, kicked from call to call: after its steps plans are no motion."""
    body = spacecraft()
    rng, group = np.random.default_rng(0), body.state
    turns, rates = rng.normal(size=(8, 3)), 0.3 * rng.normal(size=(8, 3)).clip(-1, 1)
    kicks = [group.join(attitude=SO3.exp(w), rate=v) for w, v in zip(turns, rates, strict=True)]
    controller = MPC(
        body, 20, 0.2, Q={"attitude": 5, "rate": 1}, R=0.1, solver="interior_point",
        bounds=[Bound("rate", -0.4, 0.4)], reference=group.identity, real_time=TOLD,
    )  # fmt: skip
    folder = controller.export_c(tmp_path / "swing", name="swing", x0=kicks[0])
    told = []
    for k, x in enumerate(kicks):
        controller(0.2 * k, x)
        plan, step = controller.plan, body.step(controller.problem.method)
        ends = step(plan.t[:-1], plan.x[:-1], plan.u, [], 0.2)
        there = np.abs(body.error(ends, plan.x[1:])).max()
        assert controller.info.defect == pytest.approx(there, rel=1e-6, abs=1e-9)
        told.append(controller.info.defect)
    assert max(told) > 1e-3 and controller.info.status == "ok"
    table = ", ".join(repr(float(value)) for x in kicks for value in x)
    text = (
        f"  static const double x[] = {{{table}}};\n  double u[SWING_NU];\n  swing_init(&m);\n"
        f"  for (int i = 0; i < {len(kicks)}; i++) {{\n"
        "    swing_step(&m, 0.2 * i, x + i * SWING_NX, u);\n"
        '    printf("%.17g\\n", m.defect);\n  }\n'
    )
    assert printed(folder, text, tmp_path)[:, 0] == pytest.approx(told, rel=1e-4, abs=1e-8)


@needs_compiler
@pytest.mark.parametrize("level", ["-O0", pytest.param(WATCHFUL, marks=pytest.mark.thorough)])
def test_a_clock_that_jumps_is_answered_as_python_does(level, tmp_path):
    """Back by hours, epoch seconds once, a pause of many horizons, a rate that nobody knows."""
    times = np.array([0.0, 0.15, -4e4, -4e4 + 0.15, 1.7e9, 1.7e9 + 0.15, 0.3, 0.41, 1e6, -1e11])
    states = np.array([[np.cos(0.1 * k), np.sin(0.1 * k), 0.1] for k in range(len(times))])
    controller = mpc(real_time=TOLD)
    answers = np.array([controller(t, x) for t, x in zip(times, states, strict=True)])
    case = ExportCase(times, states, answers, ["OK"] * len(times))
    folder = controller.solver.export_c(tmp_path / "swing", name="swing", reference=UP,
                                        cases=[case])  # fmt: skip
    if level == WATCHFUL and not has_sanitizers():
        pytest.skip("the compiler has no sanitizers")
    code, text = ran(folder, tmp_path, level)
    assert code == 0, text


@needs_compiler
def test_references_and_parameters_are_written_at_run_time(tmp_path):
    controller = mpc(real_time=TOLD)
    goal, p = np.array([0.0, 1.0, 0.0]), {"pull": 0.5}
    folder = controller.export_c(tmp_path / "swing", name="swing")
    u_ref = 0.5  # holds the pendulum there
    body = (
        "  const double x_ref[SWING_NX] = {0, 1, 0}, x[SWING_NX] = {1, 0, 0};\n"
        f"  const double u_ref[SWING_NI] = {{{u_ref}, 0}};\n  double u[SWING_NU];\n"
        "  swing_init(&m);\n  swing_hold(&m, x_ref, u_ref);\n  m.p[SWING_P_PULL] = 0.5;\n"
        "  const int status = swing_solve(&m, 0, x, u);\n"
        '  printf("%d %.17g %.17g", status, u[0], m.plan.x[SWING_N][SWING_X_RATE]);\n'
    )
    ((status, torque, rate),) = printed(folder, body, tmp_path)
    solver = controller.solver
    found = solver.solve([1.0, 0.0, 0.0], reference=goal, p=p, tolerance=1e-6, max_iterations=50)
    np.testing.assert_allclose(found.reference.u[0], [u_ref, 0], atol=1e-12)
    assert status == 0
    u = controller(0.0, [1.0, 0.0, 0.0], goal, p=p)
    np.testing.assert_allclose([torque, rate], [u[0], controller.plan.x[-1, 2]], atol=1e-9)
    np.testing.assert_allclose(u, found.u[0, :1], atol=1e-3)  # in other scales, to a tolerance


def sinking(bound):
    """Pendulum whose torque has a limit that is a parameter, sinking from call to call."""
    return mpc(bounds=[bound], parameters=[Parameter("most", "N m", 0.7)], real_time=TOLD)


SINKING = {
    "limit": lambda: sinking(Bound("torque", upper="most")),
    "row": lambda: sinking(Bound(lambda t, x, u, p: u[0], upper="most", name="torque")),
}


@pytest.mark.usually(name=("limit",))
@needs_compiler
@pytest.mark.parametrize("name", SINKING)
def test_limits_of_inputs_that_sink_are_followed_as_python_does(name, tmp_path):
    """To the other one and below it: where limits contradict each other both say so."""
    controller = SINKING[name]()
    folder = controller.export_c(tmp_path / "swing", name="swing")
    most = [0.7, 0.5, 0.3, 0.1, -0.1, -0.3] + ([-0.6, -0.8] if name == "limit" else [-0.3] * 2)
    body = (
        "  double x[SWING_NX] = {0, 1, -0.5};\n"
        f"  const double most[] = {{{', '.join(map(str, most))}}};\n"
        "  double u[SWING_NU];\n  swing_init(&m);\n"
        f"  for (int k = 0; k < {len(most)}; k++) {{\n"
        "    m.p[SWING_P_MOST] = most[k], x[2] = k == 3 ? NAN : -0.5;\n"
        "    const int status = swing_step(&m, SWING_PERIOD * k, x, u);\n"
        '    printf("%d %.17g %.17g\\n", status, u[0], m.violation);\n  }\n'
    )
    found = printed(folder, body, tmp_path)
    answers, statuses = [], []
    for k, limit in enumerate(most):
        x = [0, 1, np.nan if k == 3 else -0.5]  # then the last answer is held, within limits
        answers += controller(0.15 * k, x, p={"most": limit}).tolist()
        statuses.append(controller.info.status.name)
    np.testing.assert_allclose(found[:, 1], answers, atol=1e-9)
    assert [STATUSES[int(status)] for status in found[:, 0]] == statuses
    if name == "limit":
        assert (np.array(answers) <= np.maximum(most, -0.6)).all()
        assert statuses == [*["OK"] * 3, "HELD", *["OK"] * 3, "INFEASIBLE"]
        assert found[-1, 1] == -0.6 and found[-1, 2] == pytest.approx(0.2, abs=1e-9)
    else:  # the limits can all be kept
        assert statuses[3] == "HELD" and "INFEASIBLE" not in statuses


@needs_compiler
def test_an_exported_plan_by_accelerations_hands_out_torques(tmp_path):
    """What `Adapted` makes of the answers in Python is a function of its own in C."""
    rod = SpatialInertia.rod(1.0, length=0.5, center_of_mass=[0, 0, -0.25])
    tree = Multibody("arm").add_body("a", rod, "revolute", axis="y")
    plant = tree.add_body("b", rod, "revolute", "a", [0, 0, -0.5], axis="x").system(wrenches="b")
    planned = with_accelerations(plant)
    taken, x = planned.quantities["input"], np.array([0.3, -0.2, 0.5, 0.1])
    controller = MPC(
        planned, 6, 0.1, Q=1.0, R=1e-3, reference=np.zeros(4), method="semi_implicit_euler",
        residuals=[Residual("input", 1e-2)], guess="rest",
    )  # fmt: skip
    law = Adapted(controller, answer=lambda t, x, u: taken(t, x, planned.full_input(u)))
    torques = law(0.0, x)
    folder = controller.export_c(tmp_path / "reach", name="reach", x0=x, calls=1)
    body = (
        f"  const double x[REACH_NX] = {{{', '.join(map(repr, x.tolist()))}}};\n"
        "  double u[REACH_NU], r[REACH_NR];\n"
        "  reach_init(&m);\n  reach_step(&m, 0, x, u);\n  reach_input(&m, 0, x, u, r);\n"
        '  printf("%.17g %.17g", r[REACH_R_INPUT_A], r[REACH_R_INPUT_B]);\n'
    )
    (found,) = printed(folder, body, tmp_path)
    np.testing.assert_allclose(found, torques, rtol=1e-9, atol=1e-9)
    # The torques lead the plant where the plan's first step ends.
    after = plant.step("semi_implicit_euler")(0.0, x, np.r_[found, np.zeros(6)], [], 0.1)
    np.testing.assert_allclose(after, controller.plan.x[1], atol=1e-9)


def test_what_has_no_c_is_refused_by_name(tmp_path):
    folder = tmp_path / "folder"
    with pytest.raises(NotImplementedError, match="SQPSolver does not export.*interior_point"):
        mpc(solver=SQPSolver()).export_c(folder)
    with pytest.raises(NotImplementedError, match="cannot start from MPC"):
        mpc(guess=mpc()).export_c(folder)
    with pytest.raises(
        ValueError, match=r"no reference to follow in firmware.*give MPC\(…, reference="
    ):
        mpc(reference=None).export_c(folder)
    with pytest.raises(ValueError, match="unknown guess 'polcy'.*Did you mean 'policy'"):
        mpc(guess="polcy")
    with pytest.raises(ValueError, match="pendulum carries no policy"):
        mpc(guess="policy")
    assert not list(tmp_path.iterdir())


def test_a_policy_is_a_start(tmp_path):
    """What the word says is what the system does under its policy."""
    system = pendulum(policy=turning)
    problem = OptimalControlProblem(system, 20, 0.05, Q=1, R=0.1, reference=UP, method="rk4")
    x0 = np.array([-0.99, 0.141, 0.0]) / np.hypot(0.99, 0.141)
    found = problem.solve(x0, solver="interior_point", guess="policy", max_iterations=0)
    goal, x = found.reference, x0
    lower, upper = system.input_bounds
    for k in range(20):
        e = np.arctan2(*(x[1::-1])) - np.pi
        u = goal.u[k, 0] - 2 * (e + 2 * np.pi * (e < -np.pi)) - x[2]
        u = np.clip(u, lower[0] + 0.014, upper[0] - 0.014)  # starts are strictly inside
        np.testing.assert_allclose(found.u[k, 0], u, atol=1e-9)
        x = system.step("rk4")(0.0, x, found.u[k], dt=0.05)
        np.testing.assert_allclose(found.x[k + 1], x, atol=1e-9)
    assert len(np.unique(found.u[:, 0])) == 20  # not at the bounds
    assert system.with_parameters({"pull": 2.0}).policy is not None
    assert system.augment(lag=0.1).policy is None


QUAD = quadrotor()
BOAT = surface_vessel()
LAWS = {
    "LQR": lambda: LQR(QUAD, QUAD.trim(position=[1, 0, 2]), Q=1, R=1, dt=0.02),
    "GeometricPD": lambda: GeometricPD(BOAT, frequency=0.3, saturate=False),
    "ThrustVectorPD": lambda: ThrustVectorPD(QUAD, saturate=False),
    "GeometricPD, at its limits": lambda: GeometricPD(BOAT, frequency=2.0),
    "ThrustVectorPD, at its limits": lambda: ThrustVectorPD(QUAD, attitude_frequency=30.0),
}


@needs_compiler
@pytest.mark.parametrize("name", LAWS)
def test_an_exported_law_answers_as_python_does(name, tmp_path):
    law = LAWS[name]()
    system, rng = law.system, np.random.default_rng(3)
    function = law._exported_law()
    point = QUAD.trim(position=[1, 0, 2]) if system is QUAD else BOAT.trim()
    statuses = set()
    for k in range(6):  # the function against calls, along a motion that turns and accelerates
        d, dd = 0.3 * rng.normal(size=(2, system.state.dim))

        def motion(t, d=d, dd=dd):
            return TrajectoryPoint(system.state.plus(point.x, t * d + t**2 * dd), point.u)

        t, x = 0.2 * k, system.state.plus(motion(0.2 * k).x, 0.3 * rng.normal(size=len(d)))
        here, after = motion(t), motion(t + law.dt)
        rate = system.state.minus(after.x, here.x) / law.dt  # coordinates of Rn: differences
        given = {"t": t, "x": x, "x_ref": here.x, "u_ref": here.u, "rate_ref": rate,
                 "p": system.nominal_parameters}  # fmt: skip
        u = function(**{key: given[key] for key in function.arguments})
        np.testing.assert_allclose(u, law(t, x, motion), rtol=1e-9, atol=1e-9)
        statuses.add(law.info.status.name)
    assert statuses <= {"OK", "SATURATED"} and ("SATURATED" in statuses) == ("limits" in name)
    folder = law.export_c(tmp_path / "law", name="law")
    code, text = ran(folder, tmp_path)
    assert code == 0, text
    header = (folder / "law.h").read_text()
    assert all(entry.unit in header for entry in system.inputs)


def arm():
    """Three links about different axes, the first of which may be pushed with little."""
    rod = SpatialInertia.rod(1.5, length=0.4, center_of_mass=[0, 0, -0.2])
    weak = JointProperties(effort=9.0)
    tree = Multibody("arm").add_body("a", rod, "revolute", axis="y", properties=weak)
    tree = tree.add_body("b", rod, "revolute", "a", [0, 0, -0.4], axis="x")
    tree = tree.add_body("c", rod, "revolute", "b", [0, 0, -0.4], axis="y")
    return tree.add_frame("tip", "c", [0, 0.1, -0.4])


def levers():
    """Controls that turn the arm's joints by ratios that change, four on three."""
    state = ARM.system().state

    def field(t, x, u, p):
        turns = (1.5 + ca.sin(x[0])) * u[0] + u[3], (2 + ca.cos(x[1])) * u[1], u[2] - u[3]
        return ca.vertcat(x[3:], *turns)

    inputs = [Input(name, "N m", -3.0, 3.0) for name in "abcd"]
    return System("levers", state, field, inputs=inputs, structure=mechanical(state, field, 4))


ARM = arm()
# The last joint settles within a tenth of a period.
LOSSY = ARM.with_properties(c=JointProperties(damping=700.0, friction=20.0))
TIP = FrameTask("tip", "position")
REST = np.array([0.3, 0.2, 0.5])
TREE_LAWS = {
    "ComputedTorque": lambda: ComputedTorque(ARM, frequency=3.0),
    "ComputedTorque, free": lambda: ComputedTorque(ARM, frequency=3.0, saturate=False),
    "ComputedTorque, losses": lambda: ComputedTorque(LOSSY, frequency=3.0),
    "OperationalSpace, losses": lambda: OperationalSpace(LOSSY, TIP, frequency=2.0, posture=REST),
    "ComputedTorque, levers": lambda: ComputedTorque(ARM, frequency=2.0, system=levers()),
    "GravityPD": lambda: GravityPD(ARM, stiffness=[5.0, 3.0, 2.0], damping=0.5),
    "Impedance": lambda: Impedance(ARM, TIP, stiffness=20.0, posture=REST),
    "OperationalSpace": lambda: OperationalSpace(ARM, TIP, frequency=2.0, posture=REST),
}


@pytest.mark.usually(
    name=("ComputedTorque, levers", "ComputedTorque, losses", "Impedance", "OperationalSpace")
)
@needs_compiler
@pytest.mark.parametrize("name", TREE_LAWS)
def test_an_exported_law_of_a_tree_answers_as_python_does(name, tmp_path):
    law, rng = TREE_LAWS[name](), np.random.default_rng(4)
    assert law.law.commanded.any() == ("losses" in name)
    function, nq = law._exported_law(), ARM.nq
    follows = ARM.configuration if "frame_ref" not in function.arguments else TIP.group
    statuses, n = set(), follows.dim
    for scale in np.repeat([0.0, 0.3, 3.0], 4):
        x = np.r_[REST, np.zeros(nq)] + scale * rng.normal(size=2 * nq)
        goal = follows.plus(
            ARM.position("tip")(x[:nq]) if follows == TIP.group else REST,
            0.2 * scale * rng.normal(size=n),
        )
        rate, change = 0.1 * scale * rng.normal(size=(2, n))

        def motion(t, goal=goal, rate=rate, change=change):
            return np.r_[goal + t * rate, rate + t * change]  # both groups are vectors

        given = {"t": 0.0, "x": x, "p": [], "q_ref": REST, "v_ref": np.zeros(nq),
                 "a_ref": np.zeros(nq)}  # fmt: skip
        names = [key for key in function.arguments if key not in ("t", "x", "p")]
        count = 2 if "frame_v_ref" in names and "frame_a_ref" not in names else 3
        given |= dict(zip(names[:count], (goal, rate, change), strict=False))
        u = law(0.0, x, motion)
        statuses.add(law.info.status.name)
        np.testing.assert_allclose(
            function(**{key: given[key] for key in function.arguments}), u, rtol=1e-9, atol=1e-9
        )
    assert statuses == ({"OK"} if "free" in name else {"OK", "SATURATED"})
    folder = law.export_c(tmp_path / "law", name="law")
    code, text = ran(folder, tmp_path)
    assert code == 0, text


@pytest.mark.usually(has_last=(True,))
@needs_compiler
@pytest.mark.parametrize("has_last", [False, True])
def test_an_exported_schedule_is_looked_up_as_python_does(has_last, tmp_path):
    craft = spacecraft()
    start = craft.state.join(attitude=SO3.exp([1.0, -0.5, 0.3]), rate=[0.1, 0.2, -0.1])
    turn = craft.rollout(start, [0.2, -0.1, 0.05], 0.1, steps=12)
    if has_last:
        turn = Trajectory(turn.group, turn.t + 0.4, turn.x, turn.input_at_nodes + 0.1)
    law, rng = TVLQR(craft, turn, Q=1, R=1), np.random.default_rng(5)
    function, schedule = law._exported_law(), law._exported_schedule()
    end, near = turn.t[-1], 3e-9
    times = np.r_[turn.t, turn.t - near, turn.t + near, turn.t[0] - 1, end + 0.05, end + 7.0]
    for t in np.r_[times, rng.uniform(turn.t[0], end, 20)]:
        x = craft.state.plus(turn(t).x, 0.3 * rng.normal(size=craft.state.dim))
        given = schedule.at(t) | {"t": t, "x": x}
        u = function(**{key: given[key] for key in function.arguments})
        np.testing.assert_allclose(u, law(t, x), rtol=1e-9, atol=1e-9)
    folder = law.export_c(tmp_path / "law", name="law")
    assert "void law(double t, const double x[7], double u[3]);" in (folder / "law.h").read_text()
    code, text = ran(folder, tmp_path)
    assert code == 0, text


def loaded(law, tmp_path):
    """An exported law as a function of Python, values by name; it was compiled alone."""
    folder, function = law.export_c(tmp_path / "law", name="law"), law._exported_law()
    library = tmp_path / "law.so"
    command = [CC, *STRICT, "-O2", "-shared", "-fPIC", str(folder / "law.c"), "-o", str(library)]
    done = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    run = ctypes.CDLL(str(library)).law
    sizes = zip(function.results, function.result_shapes, strict=True)
    results = {name: np.zeros(shape) for name, shape in sizes}
    text = (folder / "law.h").read_text()
    work = np.zeros(int(text.split("LAW_WORK ")[1].split()[0]))
    scheduled = law._exported_schedule()
    names = [k for k in function.arguments if scheduled is None or k not in scheduled.values]

    def call(**given):
        arguments = []
        for name in names:
            value = np.array(given[name], dtype=float)
            given[name] = value  # stays alive
            arguments.append(
                ctypes.c_double(value) if not value.ndim else ctypes.c_void_p(value.ctypes.data)
            )
        arrays = [*results.values(), work] if len(work) else results.values()
        run(*arguments, *(ctypes.c_void_p(array.ctypes.data) for array in arrays))
        return {name: value.copy() for name, value in results.items()}

    call.arguments = names
    return call


def raft(effect, dt=0.0):
    """A raft with thrusters in a tide; ``effect(t)`` is what they do, entry by entry."""
    count = effect(0.0).shape[1]

    def field(t, x, u, p):
        tide = ca.vertcat(0.3 * ca.sin(3 * t), p * t)
        rate = ca.vertcat(x[2:], effect(t) @ u + tide - 0.4 * x[2:])
        return 0.1 * rate if dt else rate

    inputs = [Input(f"u{i}", "N", -1.5, 1.0) for i in range(count)]
    state = Product(place=Translation("xy"), speed=Rn(2))
    return System("raft", state, field, inputs=inputs, dt=dt,
                  parameters=[Parameter("swell", "m/s³", 0.4)])  # fmt: skip


def thrusters(rows):
    """What thrusters do whose effect turns over time, all alike."""
    return lambda t: ca.horzcat(*(ca.vertcat(*row) for row in rows(ca.cos(t), 1 + t / 4)))


RAFTS = {
    "three turn": lambda: raft(thrusters(lambda c, m: [(c / m, 0), (0, 1 / m), (0.5, c)])),
    "two push one way": lambda: raft(thrusters(lambda c, m: [(c, 0.5 * m), (2 * c, m)])),
    "one, its mass falls": lambda: raft(thrusters(lambda c, m: [(m, 0.3 * m)])),
    "constant, in steps": lambda: raft(lambda t: ca.DM([[1.0, 0.5], [0.0, 0.7]]), dt=0.1),
}  # fmt: skip


def tide_law(plant):
    """Along a second of a motion, with another parameter than the nominal one."""
    path = plant.rollout(np.zeros(4), 0.3 * np.ones(plant.n_inputs), 0.1, steps=10, p=[0.3])
    return TVLQR(plant, path, Q=1, R=1, p={"swell": 0.3})


@pytest.mark.usually(name=("three turn",))
@needs_compiler
@pytest.mark.parametrize("name", RAFTS)
def test_what_holds_after_the_end_may_depend_on_time(name, tmp_path):
    """The loop goes on for three times as long as its trajectory, in C as in Python."""
    plant = RAFTS[name]()
    law = tide_law(plant)
    own, step, held = loaded(law, tmp_path), plant.step("rk4"), set()
    assert own.arguments == ["t", "x"]
    x = found = np.array([0.05, -0.1, 0.1, 0.0])
    for k in range(31):
        t = 0.1 * k
        u, answer = law(t, x), own(t=t, x=found)["u"]
        np.testing.assert_allclose(answer, u, rtol=1e-9, atol=1e-9)
        held |= {round(u[0], 9)} if k > 11 else set()
        x, found = step(t, x, u, [0.3], 0.1), step(t, found, answer, [0.3], 0.1)
    np.testing.assert_allclose(found, x, atol=1e-9)
    assert len(held) > 5  # it does not stay
    code, text = ran(tmp_path / "law", tmp_path)
    assert code == 0, text


def rise(group, goal, seconds=0.3):
    return Waypoints(group, [0, seconds], [group.identity, goal], order=9)


def elastic_arm(torque=np.inf):
    """Two elastic joints, whose motors may be weak."""
    motors = {"j0": Motor(0.2, 300.0, torque=torque), "j1": Motor(0.1, 200.0)}
    return SeriesElastic(links(["revolute"] * 2), motors)


def of_wet_arm():
    """A law that is told another drag, between the parameters of links and of motors."""
    arm, drag = ARMS["symbolic"](), LinearDrag(0.1 * np.eye(6))
    plant = arm.system(forces={"link1": [drag]}, symbolic="link1.linear_drag")
    return FlatFeedforward(arm, system=plant, check=False, reference=rise_of(arm),
                           p={"j0.spring.stiffness": 240.0})  # fmt: skip


def rise_of(arm):
    group = arm.tree.configuration
    return rise(group, group.exp(0.3 * np.ones(group.dim)))


PLANAR, ELASTIC = elastic_planar_arm_tree(), elastic_arm()
# Of motors that settle within a period.
LOSSY_MOTORS = SeriesElastic(
    PLANAR.tree,
    {name: Motor(0.05, 300.0, damping=25.0, friction=3.0) for name in PLANAR.joints},
)
VARIABLE = variable_stiffness_joint_tree()
MIXED = SeriesElastic(links(["revolute"] * 3), {"j0": Motor(0.3, 400.0), "j2": Motor(0.1, 200.0)})
STIFFER = Waypoints(Rn(1), [0, 0.25], [[0.3], [0.7]], order=9)
ELASTIC_LAWS = {
    "FlatFeedforward, integral, weak motor": lambda: FlatFeedforward(
        elastic_arm(10.0), integral=40.0, reference=rise_of(ELASTIC), check=False
    ),
    "FlatFeedforward, dampers, at the links": lambda: FlatFeedforward(
        ARMS["damped"](), stiffness=20.0, damping=3.0, side="link", saturate=False, check=False,
        reference=rise_of(ARMS["damped"]()),
    ),
    "FlatFeedforward, stiffness that moves": lambda: FlatFeedforward(
        VARIABLE, settings=STIFFER, reference=rise_of(VARIABLE), check=False
    ),
    "FlatFeedforward, parameters": of_wet_arm,
    "FeedbackLinearization, integral": lambda: FeedbackLinearization(
        PLANAR, integral=True, reference=rise_of(PLANAR), check=False
    ),
    "FeedbackLinearization, stiffness that moves": lambda: FeedbackLinearization(
        VARIABLE, settings=STIFFER, reference=rise_of(VARIABLE), check=False
    ),
    "FeedbackLinearization, held torques": lambda: FeedbackLinearization(
        MIXED, integrators=True, integral=True, frequency=25.0, reference=rise_of(MIXED),
        check=False,
    ),
    "FeedbackLinearization, losses": lambda: FeedbackLinearization(
        LOSSY_MOTORS, reference=rise_of(PLANAR), check=False
    ),
    "ElasticStructurePreserving, losses": lambda: ElasticStructurePreserving(
        LOSSY_MOTORS, reference=rise_of(PLANAR), check=False
    ),
    "SpringTorqueControl, losses": lambda: SpringTorqueControl(
        LOSSY_MOTORS, reference=rise(Rn(2), [2.0, 1.0])
    ),
    "ElasticPD": lambda: ElasticPD(PLANAR, stiffness=[400.0, 250.0], reference=[0.3, 0.2]),
    "ElasticStructurePreserving": lambda: ElasticStructurePreserving(
        PLANAR, reference=rise_of(PLANAR), check=False
    ),
    "SpringTorqueControl": lambda: SpringTorqueControl(
        PLANAR, reference=rise(Rn(2), [2.0, 1.0])
    ),
    "ElasticImpedance": lambda: ElasticImpedance(
        PLANAR, FrameTask("tool", "position"), stiffness=150.0, damping=20.0,
        reference=lambda t: np.r_[1.5 - 0.2 * t, 0.0, 0.5, -0.2, 0, 0],
    ),
}  # fmt: skip


def followed(law, t):
    """What an elastic law follows at a time, by the names of its C function."""
    names = list(law._exported_goals())
    if isinstance(law, ElasticImpedance):
        return dict(zip(names, law._goals[0](law.reference, t), strict=False))
    goal = law.goal(law.reference, t)
    return dict(zip(names, goal, strict=False)) | dict(
        zip(("k", "k_dot", "k_ddot"), law._settings(t), strict=False)
    )


@pytest.mark.usually(
    name=("FlatFeedforward, integral, weak motor", "FeedbackLinearization, held torques",
          "FeedbackLinearization, losses",
          "FeedbackLinearization, stiffness that moves", "ElasticImpedance"),
)  # fmt: skip
@needs_compiler
@pytest.mark.parametrize("name", ELASTIC_LAWS)
def test_an_exported_law_of_an_elastic_arm_closes_the_loop_as_python_does(name, tmp_path):
    """Two loops side by side, each with its own plant and memory, from a state off the goal."""
    law = ELASTIC_LAWS[name]()
    assert "losses" not in name or law.commanded.all()
    plant, state, steps = law.system, law.system.state, 300
    own, memory = loaded(law, tmp_path), law._exported_memory()
    step, rng = plant.step("rk4"), np.random.default_rng(2)
    start = law.reference_states(np.zeros(1))
    start = law._exported_state(None, rng) if start is None else start[0]
    start = state.plus(start, 0.02 * rng.normal(size=state.dim))
    x = found = start
    held = {key: np.full(len(entry.labels), np.nan) for key, entry in memory.items()}
    statuses = set()
    for k in range(steps):
        t = k * law.dt
        u = law(t, x)
        statuses.add(law.info.status.name)
        answer = own(first=float(k == 0), x=found, p=law._own, **followed(law, t), **held)
        np.testing.assert_allclose(answer["u"], u, rtol=1e-9, atol=1e-9)
        held = {key: answer[f"{key}_next"] for key in memory}
        x = step(t, x, plant.full_input(u), law._own, law.dt)
        found = step(t, found, plant.full_input(answer["u"]), law._own, law.dt)
    np.testing.assert_allclose(found, x, atol=1e-9)
    assert np.abs(state.minus(x, start)).max() > 0.02
    assert "OK" in statuses <= {"OK", "SATURATED"}
    assert "SATURATED" in statuses or "weak" not in name
    assert ("integral" in memory) == ("integral" in name or "held" in name)
    code, text = ran(tmp_path / "law", tmp_path)
    assert code == 0 and "workspace" in text, text


WATCHED = {
    "LQR": LAWS["LQR"],
    "held torques": ELASTIC_LAWS["FeedbackLinearization, held torques"],
    "in a tide": lambda: tide_law(RAFTS["three turn"]()),
    "MPC": lambda: CASES["hard limit that cannot be kept"]()[0],
}


@pytest.mark.usually(name=("held torques",))
@needs_compiler
@pytest.mark.parametrize("name", WATCHED)
def test_exported_code_runs_clean_under_sanitizers(name, tmp_path):
    if not has_sanitizers():
        pytest.skip("the compiler has no sanitizers")
    folder = WATCHED[name]().export_c(tmp_path / "law", name="law")
    code, text = ran(folder, tmp_path, WATCHFUL)
    assert code == 0, text


class Own(Controller):
    """A law of a user."""

    def _control(self, t, x, reference):
        return self.system.nominal_input


def test_laws_without_c_name_those_that_have(tmp_path):
    with pytest.raises(NotImplementedError, match="Own has no C code; LQR and TVLQR have"):
        Own(QUAD, dt=0.1).export_c(tmp_path / "law")
    with pytest.raises(NotImplementedError, match="export its controller.*translate around"):
        Adapted(LAWS["LQR"]()).export_c(tmp_path / "law")
    assert not list(tmp_path.iterdir())
