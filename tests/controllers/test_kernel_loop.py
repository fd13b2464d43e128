"""Whole calls of the kernel: those of the rules in Python, and of firmware to the last bit."""

import copy
import pickle
import re
import subprocess
import sys
from dataclasses import fields

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._compiler import Compiler
from lgcontrol.codegen._internal import find_compiler
from lgcontrol.controllers import MPC, RealTime, SteadyDisturbance, _mpc_export
from lgcontrol.groups import SO2, SO3, Product, Rn
from lgcontrol.models import satellite
from lgcontrol.optimal import Bound, InteriorPointSolver, Plan, Rates
from lgcontrol.optimal.kernel import _library
from lgcontrol.systems import Input, Parameter, System
from tests.codegen.test_export import built

pytestmark = pytest.mark.compiled
CALLS, ROUNDING = 60, 1e-12  # rounding errors of predictions, times what steps make of them
LEANING = [np.cos(0.2), np.sin(0.2), 0.0]  # half a turn has no side that rounding does not choose


@pytest.fixture(scope="module")
def pendulum():
    return System(
        "pendulum", Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], (u - 0.5 * x[1]) / p[0]),
        inputs=[Input("torque", "N m", -5, 5)], parameters=[Parameter("inertia", "kg m^2", 1.0)],
    )  # fmt: skip


class InPython(InteriorPointSolver):
    """The same solver without a loop of its own."""

    has_loop = False

    def for_problem(self, problem):
        return InPython(problem, settings=self.settings)


STEADY = RealTime(restarts=False)  # only the kernel begins plans anew


def pair(system, **options):
    given = {
        "Q": {"angle": 1, "rate": 0.1}, "R": 0.05, "reference": np.array([-1.0, 0.0, 0.0]),
        "bounds": [Bound("rate", -1.5, 1.5, soft="price")],
        "parameters": [Parameter("price", "1", 5.0)], "real_time": STEADY,
    } | options  # fmt: skip
    return [
        MPC(system, 20, 0.1, solver=solver(), **given) for solver in (InteriorPointSolver, InPython)
    ]


def drive(
    controllers, calls=CALLS, period=0.1, at=lambda k: None, clock=lambda k, t: t, rounding=ROUNDING
):
    """The same measured states to all; what they answer has to be the same."""
    rng, seen = np.random.default_rng(3), []
    system = controllers[0].system
    x = np.array([1.0, 0.0, 0.0])
    for controller in controllers:
        controller.prepare(0.0, x)
    for k in range(calls):
        reference = at(k)
        if k % 17 == 11:
            x = np.asarray(system.retract(x, [0.0, 0.8], controllers[0]._own))  # a blow
        t = clock(k, period * k)
        answers = [controller(t, x, reference) for controller in controllers]
        infos = [controller.info for controller in controllers]
        names = ("status", "iterations", "restart", "solve", "message")
        told = [[getattr(info, name) for name in names] for info in infos]
        apart = np.abs(answers[0] - answers[-1]).max()
        # Rules in Python predict over a delay, and roll new starts out, by other machine code.
        is_rounded = controllers[0].delay or told[0][2] or any(entry[2] for entry in seen)
        assert apart <= (rounding if is_rounded else 0.0), (k, told)
        assert told[0] == told[-1], k
        assert infos[0].cost == pytest.approx(infos[-1].cost, rel=rounding, abs=rounding)
        seen.append(told[0])
        x = system.step("rk4", 2)(t, x, system.full_input(answers[0]), controllers[0]._own, period)
        x = np.asarray(system.retract(x, 0.005 * rng.normal(size=2), controllers[0]._own))
    return seen, x


def test_warm_calls_pass_few_files_and_functions(pendulum):
    (mpc, _), seen = pair(pendulum), []
    mpc.prepare()
    x = np.array([1.0, 0.0, 0.0])
    for k in range(3):
        mpc(0.1 * k, x)
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
    try:
        mpc(0.3, x)
    finally:
        sys.setprofile(None)
    assert len({code.co_filename for code in seen}) <= 8
    assert len(seen) <= 25


# Steps far from an optimum multiply what predictions over a delay were rounded by.
@pytest.mark.parametrize(
    ("options", "rounding"),
    [
        ({}, ROUNDING),
        ({"delay": 0.05}, 1e-9),
        ({"delay": 0.23, "real_time": RealTime(iterations=2, restarts=False)}, 1e-7),
        ({"real_time": RealTime(period=0.04, restarts=False), "delay": 0.1}, 1e-7),
    ],
    ids=str,
)
def test_whole_calls_are_steps_of_the_solver(pendulum, options, rounding):
    both = pair(pendulum, **options)
    # Steps from the last plan lead on as well as those from a new start, but for short calls.
    goals = np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])
    at = {"at": lambda k: goals[k // 20 % 2], "rounding": rounding}
    seen, x = drive(both, period=both[0].dt, **at)
    assert not any(entry[2] for entry in seen) and np.isfinite(x).all()


@pytest.mark.parametrize("options", [{"restarts": "at once"}, {"period": 0.04}], ids=str)
def test_plans_begin_anew_where_the_goal_jumps(pendulum, options):
    mpc = pair(pendulum, real_time=RealTime(**options))[0]
    goals = np.array([-1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])
    seen, _ = drive([mpc], period=mpc.dt, at=lambda k: goals[k // 20 % 2])
    assert "reference" in [entry[2] for entry in seen]


def test_parameters_and_prices_change_between_calls(pendulum):
    both = pair(pendulum)

    names = both[0].parameters

    def change(k):
        inertia = next(name for name in names if "inertia" in name)
        if k in (15, 40):
            for one in both:
                one.parameters = {"price": 50.0 if k == 15 else 0.5, inertia: 1.0 + 0.01 * k}

    drive(both, at=change)


@pytest.mark.parametrize("kind", [list, np.array])
def test_a_goal_may_change_in_place(pendulum, kind):
    both, goal, x = pair(pendulum), kind([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])
    for k in range(3):
        if k == 2:
            goal[0], goal[1] = 0.0, 1.0
        answers = [one(0.1 * k, x, goal) for one in both]
        assert answers[0] == pytest.approx(answers[1], abs=1e-12)
        assert np.abs(answers[0][0]) > 1 if k == 2 else np.abs(answers[0][0]) < 1e-6


def test_clocks_that_jump(pendulum):
    jumps = {10: 100.0, 20: 0.5, 30: 1e6}

    def clock(k, t):
        base = [value for key, value in jumps.items() if key <= k][-1:]
        return t + (base[0] if base else 0.0)

    drive(pair(pendulum, delay=0.15), clock=clock)


def test_a_state_goes_on_bit_for_bit(pendulum):
    whole, _ = pair(pendulum, delay=0.15)
    x = np.array([1.0, 0.0, 0.0])
    whole.prepare(0.0, x)
    for k in range(8):
        u = whole(0.1 * k, x)
        x = pendulum.step("rk4", 2)(0.0, x, u, whole._own, 0.1)
    other, python = pair(pendulum, delay=0.15)
    state = whole.state
    kept = Plan.from_column(state.layout, state.column())
    others = [other, python, copy.copy(whole), pickle.loads(pickle.dumps(whole))]
    other.reset(kept)
    python.reset(kept)
    others[3].solver.prepare()
    for k in range(8, 20):
        answers = [one(0.1 * k, x) for one in (whole, *others)]
        same = [np.array_equal(answers[0], answer) for answer in answers[1:]]
        assert same[0] and same[2] and same[3], k
        assert answers[2] == pytest.approx(answers[0], abs=ROUNDING)
        x = pendulum.step("rk4", 2)(0.0, x, answers[0], whole._own, 0.1)


def test_what_reads_the_loop_changes_nothing(pendulum):
    whole, other = pair(pendulum)[0], pair(pendulum)[0]
    x = np.array([1.0, 0.0, 0.0])
    for one in (whole, other):
        one.prepare(0.0, x)
    for k in range(30):
        u = whole(0.1 * k, x)
        assert np.array_equal(u, other(0.1 * k, x))
        if k % 3 == 0:
            assert other.plan.t[0] == pytest.approx(0.1 * k)
            assert np.array_equal(other.applied, u)
            assert other.state.number("clock") == 0.1 * k
        x = pendulum.step("rk4", 2)(0.0, x, u, whole._own, 0.1)


def test_limits_that_contradict_each_other_are_named():
    cart = System(
        "cart", Rn(2, ("x", "v")), lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "N", -5, 5)],
    )  # fmt: skip
    mpc = MPC(
        cart, 10, 0.1, reference=[1.0, 0.0], solver=InteriorPointSolver(),
        bounds=[Bound("push", "least", 5.0)], parameters=[Parameter("least", "N", -1.0)],
    )  # fmt: skip
    x = np.zeros(2)
    mpc.prepare(0.0, x)
    mpc(0.0, x)
    assert mpc.info.status == "ok"
    mpc.parameters = {"least": 6.0}
    u = mpc(0.1, x)
    assert mpc.info.status == "infeasible" and "contradict each other" in mpc.info.message
    assert u == pytest.approx(5.0)


def test_what_is_not_finite_is_held(pendulum):
    whole, _ = pair(pendulum)
    x = np.array([1.0, 0.0, 0.0])
    first = whole(0.0, x)
    assert np.array_equal(whole(0.1, [np.nan, 0.0, 0.0]), first)
    assert whole.info.status == "held"
    assert whole(0.2, x).shape == (1,) and whole.info.status == "ok"


def as_it_is(text):
    """C that is compiled without optimization, in a fourth of the time."""
    return '#pragma GCC optimize("O0")\n' + re.sub(r'(GCC optimize\(\\?")O3', r"\1O0", text)


def test_further_steps_that_fail_leave_the_plan_of_the_first(pendulum, monkeypatch):
    """A kernel whose further steps spoil the plan, as functions that are not finite do."""
    step = "const int status = lg_newton_step(m, q, o);"
    assert _library.LOOP.count(step) == 1
    spoilt = step.replace("const ", "") + (
        " if (iterations == (int64_t)o->real_time_more) {"
        " for (int64_t i = 0; i < (q->horizon + 1) * m->nq + q->horizon * m->nu; i++)"
        " q->plan[i] = NAN; status = LG_NOT_FINITE; }"
    )
    first, broken = pair(pendulum)[0], pair(pendulum, real_time=RealTime())[0]
    monkeypatch.setattr(_library, "LOOP", _library.LOOP.replace(step, spoilt))
    monkeypatch.setattr(_library, "_BUILT", {})
    quick = [as_it_is(text) for text in _library.kernel_sources(find_compiler().width)]
    monkeypatch.setattr(_library, "kernel_sources", lambda width: quick)
    x, start, goal = np.array([1.0, 0.0, 0.0]), [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
    answers = []
    for one in (first, broken):
        one.prepare(0.0, x, start)
        for k in range(3):
            one(0.1 * k, x, start)
        answers.append(one(0.3, x, goal))
        assert one.info.status == "ok" and np.isfinite(one.plan.x).all()
    assert np.abs(answers[0]) > 1
    assert answers[1] == pytest.approx(answers[0], abs=ROUNDING)


@pytest.fixture(scope="module")
def pushed():
    return System(
        "pendulum", Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u[0] + u[1] - 0.5 * x[1]),
        inputs=[Input("torque", "N m", -5, 5), Input("push", "N m", -3, 3, role="disturbance")],
    )  # fmt: skip


def push(controllers, calls, goals, *, prepares=True):
    """A plant that is pushed with 0.7 N m; the same measured states to all."""
    system, rng, rows = controllers[0].system, np.random.default_rng(3), []
    x = np.array([1.0, 0.0, 0.0])
    for controller in controllers if prepares else ():
        controller.prepare(0.0, x)
    for k in range(calls):
        goal = goals[k * len(goals) // calls]
        t = 0.1 * k + (50.0 if k > 0.8 * calls else 0.0)
        answers = [controller(t, x, goal) for controller in controllers]
        rows.append([t, x, goal, answers])
        x = system.step("rk4", 2)(t, x, [answers[0][0], 0.7], [], 0.1)
        x = np.asarray(system.retract(x, 1e-4 * rng.normal(size=2), []))
    return rows, x


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delay": 0.15},
        {"delay": 0.15, "hold": "first"},
        {"delay": 0.15, "rates": Rates(weight=1e-5)},
        {"blocks": [1, 1, 2, 4, 4, 8]},
    ],
    ids=["held", "delayed", "linear", "rates", "blocks"],
)
def test_steady_disturbances_are_those_of_the_rules_in_python(pushed, options):
    options = {"disturbance": SteadyDisturbance("push", settling=0.3)} | options
    both = pair(pushed, bounds=(), parameters=(), **options)
    goals = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    rows, x = push(both, 80, goals)
    for t, _, _, answers in rows:
        assert answers[0] == pytest.approx(answers[1], abs=1e-6), t
    found = both[0].disturbance["push"]
    assert found == pytest.approx(both[1].disturbance["push"], abs=1e-6)
    if "hold" not in options:  # this plant holds what it is answered
        assert found == pytest.approx(0.7, abs=0.05)
        assert np.abs(pushed.error(x, goals[1])).max() < 0.05
    other = pair(pushed, bounds=(), parameters=(), **options)[0]
    state = both[0].state
    other.reset(Plan.from_column(state.layout, state.column()))
    assert np.array_equal(other(58.0, x, goals[1]), both[0](58.0, x, goals[1]))


def test_a_late_call_takes_as_many_steps_of_the_model_as_in_python(pushed):
    both = pair(pushed, bounds=(), parameters=(), disturbance=SteadyDisturbance("push"))
    for one in both:
        one(0.0, [1.0, 0.0, 0.0])
        one(0.5, [np.cos(0.4), np.sin(0.4), 0.9])
    found = [one.disturbance["push"] for one in both]
    assert abs(found[0]) > 0.01 and found[0] == pytest.approx(found[1], abs=1e-9)


class Plain(Compiler):
    """Scalar code for any processor of its kind, without fused multiply-adds: that of firmware."""

    def flags(self, longest, contract):
        return super().flags(longest, False)


@pytest.fixture
def plain(monkeypatch):
    found = find_compiler()
    given = {entry.name: getattr(found, entry.name) for entry in fields(found)}
    monkeypatch.setattr(_library, "_compiler", lambda: Plain(**given | {"native": (), "width": 1}))


def played(folder, tmp_path, table, body):
    """What an export answers to rows of numbers, with its status."""
    text = ", ".join("NAN" if v != v else repr(float(v)) for v in table.ravel())
    program = tmp_path / "user.c"
    program.write_text(
        '#include "swing.h"\n#include <math.h>\n#include <stdio.h>\nstatic swing m;\n'
        f"int main(void) {{\n  static const double given[] = {{{text}}};\n  double u[1];\n"
        f"  swing_init(&m);\n  for (int k = 0; k < {len(table)}; k++) {{\n"
        f"    const double *row = given + {table.shape[1]} * k;\n{body}"
        "    const int status = swing_step(&m, row[0], row + 1, u);\n"
        '    printf("%.17g %d\\n", u[0], status);\n  }\n  return 0; }\n'
    )
    done = subprocess.run(
        [built(folder, program, "swing.c", into=tmp_path, level="-O0 -ffp-contract=off")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return np.array([line.split() for line in done.stdout.splitlines()], dtype=float)


LATE = {"delay": 0.23, "real_time": RealTime(iterations=2)}


@pytest.mark.usually(options=(LATE,))
@pytest.mark.parametrize(
    "options", [{}, LATE, {"real_time": RealTime(restarts="at once")}], ids=str
)
def test_firmware_answers_to_the_last_bit(pendulum, plain, options, tmp_path):
    """In a closed loop with delay, restarts, blows, prices that change, a clock that jumps."""
    goals = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    mpc, rng = pair(pendulum, **options)[0], np.random.default_rng(5)
    folder = mpc.export_c(tmp_path / "swing", name="swing", x0=LEANING)
    mpc.solver.prepare()
    rows, x, restarts = [], np.array([1.0, 0.0, 0.0]), set()
    for k in range(CALLS):
        if k == 15:
            mpc.parameters = {"price": 50.0}
        if k % 17 == 11:
            x = np.asarray(pendulum.retract(x, [0.0, 0.8], mpc._own))
        t, goal = 0.1 * k + (1000.0 if k >= 50 else 0.0), goals[k // 20 % 2]
        measured = np.full(3, np.nan) if k == 33 else x
        u = mpc(t, measured, goal)
        restarts.add(getattr(mpc.info, "restart", ""))
        status = ("ok", "infeasible", "unsolved", "held").index(str(mpc.info.status))
        holding = mpc.solver._given.setting(mpc.problem.times(t), goal, mpc._p).u_ref[0]
        rows.append([t, *measured, *goal, *holding, 50.0 if k >= 15 else 5.0, *u, status])
        x = pendulum.step("rk4", 2)(t, x, pendulum.full_input(u), mpc._own, 0.1)
        x = np.asarray(pendulum.retract(x, 0.005 * rng.normal(size=2), mpc._own))
    assert len(restarts) > 1
    table = np.array(rows)
    price = mpc.problem.parameter_names.index("price")
    body = f"    swing_hold(&m, row + 4, row + 7);\n    m.p[{price}] = row[8];\n"
    found = played(folder, tmp_path, table[:, :9], body)
    apart = np.flatnonzero((found != table[:, 9:]).any(axis=1))
    assert not len(apart), (apart, found[apart], table[apart, 9:])


@pytest.mark.usually(every=(0.01,))
@pytest.mark.parametrize("every", [0.01, 0.05, 0.1])
def test_calls_faster_than_the_period_forget_no_input_on_its_way(pendulum, every, tmp_path):
    """Plans begin where the plant is when they take effect, and a full queue holds the input."""
    both, delay = pair(pendulum, delay=0.2, bounds=(), parameters=()), 0.2
    folder = both[0].export_c(tmp_path / "swing", name="swing", x0=LEANING)
    step, started, rows = pendulum.step("rk4", 2), {}, []
    x, sent, told = np.array([1.0, 0.0, 0.0]), [], set()
    for k in range(50):
        t = every * k
        answers = [one(t, x) for one in both]
        assert answers[0] == pytest.approx(answers[1], abs=1e-7)
        assert both[0].info.status == both[1].info.status
        told.add(str(both[0].info.status))
        rows.append([t, *x, *answers[0], ("ok", "", "unsolved", "held").index(both[0].info.status)])
        sent.append((t + delay, answers[0]))
        if both[0].info.status == "ok":
            started[t + delay] = [one.plan.x[0] for one in both]
        else:
            assert "make the MPC with the period of its calls" in both[0].info.message
            assert both[0].info.message == both[1].info.message
        acting = [u for when, u in sent if when <= t + 1e-9] or [np.zeros(1)]
        x = step(t, x, acting[-1], both[0]._own, every)
        for when in [when for when in started if abs(when - t - every) < 1e-9]:
            for first in started.pop(when):
                assert pendulum.state.minus(first, x) == pytest.approx(0.0, abs=1e-6)
    assert told == ({"ok"} if every > 0.03 else {"ok", "held"})
    assert np.ptp([row[4] for row in rows]) > 0.5
    table = np.array(rows)
    found = played(folder, tmp_path, table[:, :4], "")
    assert found == pytest.approx(table[:, 4:], abs=1e-6)


def test_an_estimate_that_knows_which_actuators_may_fail_does_not_chase_a_dead_one():
    """A wheel of a satellite dies: the estimate without that knowledge turns it by 3 rad."""
    axes = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    craft = satellite(wheels=True, wheel_axes=axes.tolist())
    controls, advance = craft.input_index("control"), craft.step("rk4", 10)
    ends = []
    for may_fail in ((), "wheel"):
        mpc = MPC(
            craft, 20, 5.0, Q={"pose": 1.0, "twist": 20.0, "wheel_speed": 0.0}, R=0.2,
            terminal={"pose": 100.0, "twist": 3e4, "wheel_speed": 0.0},
            reference=craft.state.identity,
            disturbance=SteadyDisturbance("disturbance", may_fail=may_fail),
        )  # fmt: skip
        x = np.r_[SO3.exp([1.0, -0.8, 0.5]), np.zeros(7)]
        mpc.prepare(0.0, x)
        for k in range(100):
            w = craft.nominal_input.copy()
            w[controls] = mpc(5.0 * k, x)
            w[0] = 0.02  # N m, a torque that stays
            if k >= 4:
                w[controls[2]] = 0.0
            x = advance(0.0, x, w, [], 5.0)
        ends.append(np.linalg.norm(SO3.log(x[:4])))
    assert ends[0] > 1 and ends[1] < 0.03
    assert mpc.disturbance["disturbance.rx"] == pytest.approx(0.02, abs=1e-4)
    with pytest.raises(ValueError, match="unknown control input 'wheels'"):
        MPC(craft, 20, 5.0, disturbance=SteadyDisturbance("disturbance", may_fail="wheels"))


@pytest.mark.usually(may_fail=("torque",), delay=(0.15,))
@pytest.mark.parametrize("may_fail", [(), "torque"])
@pytest.mark.parametrize("delay", [0.0, 0.15])
def test_firmware_estimates_disturbances_to_the_last_bit(pushed, plain, may_fail, delay, tmp_path):
    given = SteadyDisturbance("push", settling=0.3, may_fail=may_fail)
    options = {"disturbance": given, "delay": delay}
    mpc = pair(pushed, bounds=(), parameters=(), **options)[0]
    folder = mpc.export_c(tmp_path / "swing", name="swing", x0=LEANING)
    mpc.solver.prepare()
    goals = np.array([-1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    rows, _ = push([mpc], 60, goals, prepares=False)
    if not may_fail:  # torque and push act alike: half of the error is each one's
        assert mpc.disturbance["push"] == pytest.approx(0.7, abs=0.15)
    given = mpc.solver._given
    table = [
        [t, *x, *goal, *given.setting(mpc.problem.times(t), goal, mpc._p).u_ref[0]]
        for t, x, goal, _ in rows
    ]
    found = played(folder, tmp_path, np.array(table), "    swing_hold(&m, row + 4, row + 7);\n")
    assert np.array_equal(found[:, 0], [answers[0][0] for *_, answers in rows])


def test_the_header_of_firmware_says_its_size(pendulum, tmp_path):
    mpc = pair(pendulum, delay=0.23)[0]
    folder = mpc.export_c(tmp_path / "swing", name="swing", x0=LEANING, calls=2)
    done = subprocess.run([built(folder, into=tmp_path)], capture_output=True, text=True)
    (said,) = [line.split()[2] for line in (folder / "swing.h").read_text().splitlines()
               if line.startswith("#define SWING_RAM")]  # fmt: skip
    assert f"workspace: {said} bytes" in done.stdout


@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 60), ({"most_iterations": 4}, 4), ({"most_iterations": 1}, 1),
     ({"restarts": "at once", "most_iterations": 12}, 12)],
    ids=str,
)  # fmt: skip
def test_no_call_takes_more_iterations_than_it_may(pendulum, options, most, tmp_path):
    """Goals and states jump; the header of firmware says the same number, its calls keep it."""
    options = {"bounds": [Bound("rate", -1.5, 1.5)], "real_time": RealTime(**options)}
    mpc = MPC(
        pendulum, 20, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.05, reference=[-1.0, 0.0, 0.0],
        solver=InteriorPointSolver(), **options,
    )  # fmt: skip
    folder = mpc.export_c(tmp_path / "swing", name="swing", x0=LEANING, calls=2)
    x, taken, rng = np.array([1.0, 0.0, 0.0]), [], np.random.default_rng(2)
    for k in range(60):
        goal = [*SO2.exp([2.5 * (k // 4 % 3)]), 0.0]
        if k % 7 == 6:
            x = np.asarray(pendulum.retract(x, rng.normal(size=2), mpc._own))
        u = mpc(0.1 * k, x, goal)
        taken.append(mpc.info.iterations)
        x = pendulum.step("rk4", 2)(0.0, x, u, mpc._own, 0.1)
    assert taken[0] <= most and min(most, 6) <= max(taken[1:]) <= most
    header = (folder / "swing.h").read_text()
    assert f"#define SWING_MOST_ITERATIONS {most} " in " ".join(header.split())


def test_rates_of_inputs_and_a_delay_run_in_the_kernel_and_in_firmware(pendulum, plain, tmp_path):
    """What acts is behind the state, predicted over the delay; rates keep their limit."""
    given = {
        "Q": {"angle": 1, "rate": 0.1}, "R": 0.05, "reference": [-1.0, 0.0, 0.0], "delay": 0.15,
        "rates": Rates(weight=0.01, limit=4.0), "bounds": [Bound("torque", -2.0, "most")],
        "parameters": [Parameter("most", "N m", 3.0)], "real_time": RealTime(restarts=False),
    }  # fmt: skip
    mpc, python = (
        MPC(pendulum, 20, 0.1, solver=solver(), **given)
        for solver in (InteriorPointSolver, InPython)
    )
    folder = mpc.export_c(tmp_path / "swing", name="swing", x0=LEANING)
    mpc.solver.prepare(), python.solver.prepare()
    step, rng, rows, answers = pendulum.step("rk4", 2), np.random.default_rng(1), [], []
    x, rates = np.array([1.0, 0.0, 0.0]), []
    for k in range(40):
        t, p = 0.1 * k, {"most": 3.0 if k < 25 else 1.0}
        measured = np.full(3, np.nan) if k == 17 else x
        u, same = mpc(t, measured, p=p), python(t, measured, p=p)
        assert mpc._kernel.is_ahead or k == 17
        assert u == pytest.approx(same, abs=1e-7) and mpc.info.status == python.info.status
        status = ("ok", "infeasible", "unsolved", "held").index(str(mpc.info.status))
        rows.append([t, *measured, p["most"], *u, status])
        rates.append((u[0] - answers[-1]) / 0.1 if answers else 0.0)
        answers.append(u[0])
        acting = answers[k - 1] if k > 0 else 0.0
        late = answers[k - 2] if k > 1 else 0.0  # the delay is one and a half periods
        x = step(t, x, [late], mpc._own, 0.05)
        x = step(t, x, [acting], mpc._own, 0.05)
        x = np.asarray(pendulum.retract(x, 0.003 * rng.normal(size=2), mpc._own))
    assert max(map(abs, rates[:25])) == pytest.approx(4.0, abs=1e-3)
    assert max(answers) > 2.0 and max(answers[25:]) <= 1.0
    table, place = np.array(rows), mpc.problem.parameter_names.index("most")
    body = f"    m.p[{place}] = row[4];\n"
    found = played(folder, tmp_path, table[:, :5], body)
    assert np.array_equal(found, table[:, 5:])


def any_task(rng):
    """A chain of integrators that bends, with weights, limits and times drawn at random."""
    n, m = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    A, B, bend = rng.normal(size=(2 * n, 2 * n)) / n, rng.normal(size=(2 * n, m)), rng.normal()
    system = System(
        "chain", Product(turn=SO2, rest=Rn(2 * n)),
        lambda t, x, u, p: ca.vertcat(x[2], A @ x[2:] + bend * ca.sin(x[2:]) + B @ u),
        inputs=[Input(f"u{i}", "", -2, 2) for i in range(m)],
    )  # fmt: skip
    soft = float(rng.choice([np.inf, 20.0]))
    bounds = [Bound("rest", -1.5, 1.5, soft=None if np.isinf(soft) else soft)]
    options = {"bounds": bounds if rng.random() < 0.7 else []}
    if rng.random() < 0.4:
        options["rates"] = Rates(weight=0.01, limit=float(rng.uniform(2, 20)))
    if rng.random() < 0.5:
        options["delay"] = float(rng.uniform(0.01, 0.3))
    return MPC(
        system, int(rng.integers(5, 25)), 0.1, Q=rng.uniform(0.1, 10, 2 * n + 1), R=0.1,
        reference=[*SO2.exp(rng.uniform(-1, 1, 1)), *np.zeros(2 * n)], **options,
        real_time=RealTime(
            iterations=int(rng.integers(1, 4)), restarts=[True, False, "at once"][rng.integers(3)]
        ),
    )  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(20))
def test_firmware_of_any_task_answers_to_the_last_bit(seed, plain, tmp_path, monkeypatch):
    monkeypatch.setattr(_mpc_export, "TWINS", 0)  # all calls, also where rounding grows
    rng = np.random.default_rng(seed)
    mpc = any_task(rng)
    mpc.prepare()
    x0 = mpc.system.retract(mpc.reference, rng.normal(size=mpc.system.n_errors), [])
    folder = mpc.export_c(tmp_path / "chain", name="chain", x0=x0, calls=20)
    program = built(folder, into=tmp_path, level="-O1 -ffp-contract=off")
    done = subprocess.run([program], capture_output=True, text=True)
    assert "calls: 20, largest difference from Python: 0, " in done.stdout
    assert "other statuses: 0" in done.stdout
