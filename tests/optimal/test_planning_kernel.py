"""The planning kernel: in C as in NumPy, against IPOPT, infeasible problems, its fields."""

import ctypes
from dataclasses import fields, replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, set_compile_policy
from lgcontrol.groups import SE3, Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.optimal import (
    Bound,
    InteriorPointSolver,
    NLPSolver,
    OptimalControlProblem,
    SolveStatus,
    _stage_model,
)
from lgcontrol.optimal._plan import SCALE
from lgcontrol.optimal._settings import Settings
from lgcontrol.optimal._stage_model import StageModel
from lgcontrol.optimal._transcription import Nodes
from lgcontrol.optimal.kernel import _library
from lgcontrol.optimal.kernel._interpreter import Interpreted
from lgcontrol.optimal.kernel._memory import STATUS
from lgcontrol.optimal.kernel._newton import NewtonKKT
from lgcontrol.optimal.kernel._table import (
    CONVERGED,
    ELASTIC,
    FRESH,
    INFEASIBLE,
    LOG,
    MEMORY,
    MODEL,
    TASK,
    Function,
    Loop,
    Numbers,
    Task,
    header,
)
from lgcontrol.systems import Input, System

from .examples import double_integrator
from .kernel_solver import NewtonKKTSolver
from .test_interior_point import HANGING, PROBLEMS, in_numpy, slew, swing, turned
from .user_tasks import TASKS

# Both forms sum in different orders: iterates part by rounding, more so the longer a solve is.
SAME_LOG, SAME_NODES, TOLERANCE = 1e-6, 1e-8, 1e-6
# A solve ends within 1e-9 of active bounds: of such distances seven digits are right.
SAME_STEPS = 1e-6
# Equalities have the weight 1e8 in sweeps: of step lengths of least time five digits are right.
SAME_LENGTHS = 1e-4
ROUNDED = 1e-12  # defects of a motion
FAST = turned(2.0, 2) + np.r_[np.zeros(4), 1.5, 0.0, 0.0]  # beyond its limit at the first node


def cases():
    """Problems and starts by name."""
    found = {name: PROBLEMS[name] for name in PROBLEMS}
    found["slew, too fast"] = slew(bounds=[Bound("rate", -0.5, 0.5)]), FAST
    # Saddles by symmetry: the row has no slope where the motion begins.
    no_slope = swing(bounds=[Bound("angle.cos", 0.8, 0.8, at="terminal")], reference=HANGING)
    found["swing, no slope"] = no_slope, HANGING
    for name in ("cart-pole, tight", "terminal equality", "minimum time"):
        task = TASKS[name]()
        found[name] = task.problem, task.x0
    return found


CASES = cases()


class Ready:
    """A problem with the nodes that both forms begin at."""

    def __init__(self, problem, x0):
        solver = InteriorPointSolver(problem)
        self.model = StageModel(solver.transcription)
        self.x0, times = x0, problem.times()
        self.setting = solver._given.setting(times, problem.reference, None)
        found = solver.solve(x0, max_iterations=0)
        x = found.x.copy()
        x[0] = self.model.first_state(x0, x[0], self.setting.p)
        self.nodes = Nodes(times, x, found.u.copy())

    def in_c(self, settings=None, **options):
        solver = NewtonKKTSolver(self.model, settings)
        return solver.solve(self.nodes, self.setting, self.x0, tolerance=TOLERANCE, **options)

    def one_way(self):
        solver = NewtonKKTSolver(self.model)
        return solver._solve(self.nodes, self.setting, self.x0, FRESH, TOLERANCE, 500)

    def in_numpy(self, most=500):
        with np.errstate(all="ignore"):
            given = self.model, self.setting, self.nodes, self.x0, Settings(), TOLERANCE
            return NewtonKKT(*given).solve(most)


def _by_rounding(ready, oracle):
    """How much the log of the oracle differs if its nodes change by their last digit."""
    nodes, rng, found = ready.nodes, np.random.default_rng(0), []
    for _ in range(3):
        x, u = (v + np.spacing(v) * rng.choice([-1, 1], size=v.shape) for v in (nodes.x, nodes.u))
        ready.nodes = Nodes(nodes.t, x, u)
        found.append(np.abs(ready.in_numpy().log - oracle.log))
    ready.nodes = nodes
    return np.max(found, axis=0)


@pytest.mark.compiled
@pytest.mark.usually(name=("swing, stopped", "slew, too fast", "cart-pole, tight"))
@pytest.mark.parametrize("name", CASES)
def test_c_goes_the_way_of_numpy(name):
    ready = Ready(*CASES[name])
    ours, oracle = ready.one_way(), ready.in_numpy()
    assert ours.status == STATUS[oracle.status]
    assert len(ours.log) == len(oracle.log)
    # Midway a reduced Hessian of these is nearly singular: rounding grows by ten digits in the
    # swing, and by five in the slew, whose oracle moves as much by the last digits of its nodes.
    grows = name in ("swing, no slope", "slew, too fast")
    rounded = _by_rounding(ready, oracle) if grows else 0.0 * oracle.log
    for column, share, least in (
        (0, SAME_LOG, 0),
        (slice(4, 8), SAME_LENGTHS, 0),
        (8, SAME_LENGTHS, ROUNDED),
    ):
        have, want = ours.log[:, column], oracle.log[:, column]
        allowed = share * np.abs(want) + least + 10 * rounded[:, column]
        assert np.all((np.abs(have - want) <= allowed) | (np.isnan(have) & np.isnan(want)))
    np.testing.assert_allclose(ours.x, oracle.iterate.x, atol=SAME_NODES)
    np.testing.assert_allclose(ours.u, oracle.iterate.u, atol=SAME_NODES)


@pytest.mark.compiled
def test_the_elastic_problem_first_goes_the_way_of_numpy():
    ready = Ready(*CASES["cart-pole, tight"])
    solver = NewtonKKTSolver(ready.model)
    given = ready.setting, ready.x0, ELASTIC, TOLERANCE, 500
    ours = solver._solve(ready.nodes, *given)
    state = ready.model, ready.setting, ready.nodes, ready.x0, Settings(), TOLERANCE
    oracle = NewtonKKT(*state).solve(500, is_elastic=True)
    assert ours.status == STATUS[oracle.status] == "converged"
    assert ours.log[0, 7] == 1 and ours.log[-1, 7] == 0  # the elastic problem, then the problem
    np.testing.assert_allclose(ours.log[:, 0], oracle.log[:, 0], rtol=SAME_LOG)


@pytest.mark.compiled
def test_a_plan_that_is_hard_to_find_is_not_called_infeasible():
    # Least times from far off: the first way ends at a stationary point of the violation.
    task, second = TASKS["minimum time"](), []
    problem, system = task.problem, task.problem.system
    for seed in (1, 19, 31, 118):
        move = np.random.default_rng(seed).normal(size=system.n_errors)
        ready = Ready(problem, np.asarray(system.retract(task.x0, move, [])))
        if ready.one_way().status == "infeasible":
            second.append(ready.in_c().status)
    assert second and set(second) == {"converged"}


@pytest.mark.compiled
@pytest.mark.parametrize("size", [0.05, 0.2])
@pytest.mark.parametrize("name", ["swing, soft", "swing, stopped", "slew, slow", "slew, far"])
def test_real_time_steps_in_c_are_those_of_numpy(name, size):
    ready = Ready(*CASES[name])
    solver = NewtonKKTSolver(ready.model)
    solver.solve(ready.nodes, ready.setting, ready.x0, tolerance=TOLERANCE)
    given = ready.model, ready.setting, ready.nodes, ready.x0, Settings(), TOLERANCE
    oracle = NewtonKKT(*given)
    oracle.solve(500)
    rng, counts = np.random.default_rng(0), []
    for _ in range(3):  # of one to five steps
        move = size * rng.normal(size=ready.model.n)
        x0 = np.asarray(ready.model.retract(ready.x0, move, ready.setting.p))
        ours = solver.step(ready.nodes.t, ready.setting, x0, shift=0)
        before = oracle.factorizations
        assert oracle.step(x0) == (ours.status != "stalled")
        assert ours.mu == pytest.approx(oracle.mu, rel=SAME_LENGTHS)
        counts.append(oracle.factorizations - before)
        assert counts[-1] == ours.factorizations
        np.testing.assert_allclose(ours.x, oracle.it.x, atol=SAME_STEPS)
        np.testing.assert_allclose(ours.u, oracle.it.u, atol=SAME_STEPS)
    assert size < 0.2 or max(counts) > 1


@pytest.mark.compiled
def test_real_time_steps_lead_to_the_goal():
    ready = Ready(*CASES["slew, slow"])
    problem, x = ready.model.problem, ready.x0
    solver = NewtonKKTSolver(ready.model)
    plan = solver.solve(ready.nodes, ready.setting, x, tolerance=TOLERANCE)
    for _ in range(25):
        x = problem.system.step(problem.method)(0.0, x, plan.u[0], [], problem.dt)
        plan = solver.step(ready.nodes.t, ready.setting, x)
        assert np.abs(x[4:]).max() <= 0.5 + 1e-3
    assert np.abs(problem.system.error(x, ready.setting.x_ref[0])).max() < 0.02


@pytest.mark.usually(name=("swing", "swing, soft", "swing, stopped"))
@pytest.mark.parametrize("is_compiled", [pytest.param(True, marks=pytest.mark.compiled), False])
def test_controls_that_end_on_their_limits_leave_a_step(is_compiled):
    """Clipped at a share of 1e-8 of a distance of 1e-8 they have none left, to the last bit."""
    push = Input("push", "N", -1.0, 1.0)
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=[push])
    problem = OptimalControlProblem(cart, 20, 0.1, Q=[100.0, 1.0], R=1e-3, reference=[0.0, 0.0])
    solver = InteriorPointSolver(problem).prepare() if is_compiled else in_numpy(problem)
    assert solver.is_compiled == is_compiled
    plan = solver.solve([3.0, 0.0]).plan
    for k, x in enumerate([[3.0, 0.0], [3.16, 0.25], [2.94, -0.01], [2.9, 0.1]]):
        found = solver.step(x, plan=plan, t0=0.1 * k, iterations=1)
        plan = found.plan
        assert found.status is not SolveStatus.FAILED, k
        assert np.isfinite([*plan["zl"].ravel(), *plan["zu"].ravel()]).all()


@pytest.mark.parametrize("name", PROBLEMS)
def test_finds_the_optimum_that_ipopt_finds(name):
    problem, x0 = PROBLEMS[name]
    ready = Ready(problem, x0)
    found = ready.in_numpy()
    assert found.status == CONVERGED
    start = InteriorPointSolver(problem).solve(x0, max_iterations=0).trajectory
    peer = NLPSolver(problem, plugin="ipopt").solve(x0, guess=start, tolerance=1e-8)
    rows = ready.model.transcription
    values = rows.values(Nodes(ready.nodes.t, found.iterate.x, found.iterate.u), ready.setting)
    cost = values.cost + rows.rows.penalty(values.rows, rows.rows.weights(ready.setting.p))
    assert cost == pytest.approx(peer.cost, rel=1e-5)


def test_infeasible_problems_end_with_the_least_violation():
    # The first step cannot brake to the limit of the rate: no plan keeps it at the second node.
    ready = Ready(*CASES["slew, too fast"])
    found = ready.in_numpy()
    assert found.status == INFEASIBLE
    _, _, violation, *_ = found.log[-1]
    assert violation <= TOLERANCE  # of the elastic problem: a motion of the system
    rows = ready.model.transcription.values(
        Nodes(ready.nodes.t, found.iterate.x, found.iterate.u), ready.setting
    )
    assert np.abs(rows.gaps).max() <= TOLERANCE
    excess = ready.model.transcription.rows.excess(rows.rows)
    assert excess[1].max() > 0.1
    assert excess[-1].max() <= 1e-5  # later nodes keep it: the rest of the plan is of use


@pytest.mark.compiled
def test_stages_that_compute_something_else_are_not_used():
    model = Ready(*CASES["swing"]).model
    stages = _library.load_stages(model)
    assert _library._difference(model, stages) is None
    wrong = stages.functions | {"end_values": stages.functions["error"]}
    assert "terminal_values" in _library._difference(model, stages._replace(functions=wrong))


@pytest.mark.compiled
def test_structs_and_their_mirrors_are_of_one_size(monkeypatch):
    kernel = _library.load_kernel()
    assert _library._wrong_sizes(kernel) is None

    class Longer(ctypes.Structure):
        _fields_ = [*_library.Task._fields_, ("more", ctypes.c_double)]

    monkeypatch.setattr(_library, "Task", Longer)
    assert "bytes" in _library._wrong_sizes(kernel)


@pytest.mark.compiled
def test_sweeps_of_another_state_are_not_used(monkeypatch):
    kernel = _library.load_kernel()
    longer = _library.SHARED_TEXT.replace("} lg_state;", "  double more;\n} lg_state;")
    own = {key: one for key, one in _library._BUILT.items() if one is kernel}
    monkeypatch.setattr(_library, "_BUILT", dict(own))
    assert _library.load_sweeps(3, 1) is not None
    monkeypatch.setattr(_library, "_BUILT", own)
    monkeypatch.setattr(_library, "SHARED_TEXT", longer)
    assert _library.load_kernel() is kernel and _library.load_sweeps(3, 1) is None


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["slew, too fast", "terminal equality", "carts"])
def test_sweeps_of_any_size_lead_to_the_plan_of_exact_ones(name, monkeypatch):
    if name == "carts":  # positions have sparse rows, which sweeps treat apart
        problem = OptimalControlProblem(
            double_integrator(), 20, 0.1, Q=1, R=0.1, method="euler", reference=np.zeros(4)
        )
        x0 = np.ones(4)
    else:
        problem, x0 = CASES[name]
    solver = InteriorPointSolver(problem)
    expected, model = solver.solve(x0), solver.memory.model
    assert model.factor and (model.sparse if name == "carts" else model.bend)
    for entry in ("factor", "back"):  # the kernel has its own
        monkeypatch.setattr(model, entry, None)
    found = solver.solve(x0)
    assert found.status == expected.status
    assert len(found.iterations) == len(expected.iterations)
    np.testing.assert_allclose(found.x, expected.x, atol=SAME_NODES)


@pytest.mark.compiled
def test_a_kernel_that_was_refused_once_is_there_later():
    model = Ready(*CASES["swing"]).model
    set_compile_policy("off")
    assert _library.load_sweeps(model.n, model.m) is None
    with pytest.raises(NotImplementedError, match=r"policy is 'off'; call set_compile_policy"):
        NewtonKKTSolver(model)
    set_compile_policy("auto")
    assert NewtonKKTSolver(model).memory.kernel is _library.load_kernel()
    assert _library.load_sweeps(model.n, model.m) is not None


@pytest.mark.compiled
def test_interpreted_stages_lead_where_compiled_ones_do():
    ready = Ready(*CASES["swing, stopped"])
    compiled = ready.in_c()
    solver = NewtonKKTSolver(ready.model, interprets=True)
    ours = solver.solve(ready.nodes, ready.setting, ready.x0, tolerance=TOLERANCE)
    assert ours.status == compiled.status and ours.iterations == compiled.iterations
    np.testing.assert_allclose(ours.x, compiled.x, atol=SAME_NODES)


@pytest.mark.compiled
@pytest.mark.parametrize("name", ["terminal equality", "slew, too fast"])
def test_first_and_second_derivatives_in_one_function_lead_to_the_same_plan(name, monkeypatch):
    problem, x0 = CASES[name]
    apart = InteriorPointSolver(problem)
    expected = apart.solve(x0)
    problem._kept.clear()
    monkeypatch.setattr(_stage_model, "SHORTEST_JOINT", 0)
    monkeypatch.setattr(_stage_model, "LEAST_SHARED", 0.0)
    joint = InteriorPointSolver(problem)
    found = joint.solve(x0)
    problem._kept.clear()
    assert "curvature" in apart.memory.stages.functions
    assert "curvature" not in joint.memory.stages.functions
    assert found.status == expected.status
    assert len(found.iterations) == len(expected.iterations)
    np.testing.assert_allclose(found.x, expected.x, atol=SAME_NODES)


@pytest.mark.compiled
def test_the_interpreter_knows_what_casadi_does(rng):
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    one = [ca.sin, ca.cos, ca.tan, ca.exp, ca.tanh, ca.sinh, ca.cosh, ca.atan, ca.asinh, ca.erf,
           ca.floor, ca.ceil, ca.sign, ca.fabs, ca.expm1, ca.logic_not]  # fmt: skip
    two = [ca.atan2, ca.fmin, ca.fmax, ca.fmod, ca.hypot, ca.copysign, ca.remainder]
    values = [f(x) for f in one] + [f(x, y) for f in two]
    values += [ca.log(1 + x**2), ca.sqrt(1 + y**2), ca.log1p(x**2), ca.asin(x / 9), ca.acos(y / 9)]
    values += [ca.atanh(x / 9), ca.acosh(1 + y**2), x / y, -x, 2 * x, 1 / y, (1 + x**2) ** y]
    values += [x < y, x <= y, x == y, x != y, ca.logic_and(x < y, y > 0), ca.logic_or(x < y, y > 0)]
    values += [ca.if_else(x > y, x, y), ca.if_else(x > 0, ca.sqrt(x), 0), x - y, x * y + 3.0]
    f = ModelFunction(ca.Function("f", [x, y], [ca.vertcat(*values)], ["x", "y"], ["z"]))
    kernel = _library.load_kernel()
    program = Interpreted(f, (), kernel.interpret)
    items = rng.normal(size=(11, 2)) * 3
    given = [np.ascontiguousarray(items[:, i]) for i in range(2)]
    found, scratch = np.zeros((11, len(values))), np.zeros(program.scratch + 8)
    at = scratch.ctypes.data + -scratch.ctypes.data % 64
    inputs = (ctypes.c_void_p * 2)(*(v.ctypes.data for v in given))
    outputs = (ctypes.c_void_p * 1)(found.ctypes.data)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64] + [ctypes.c_void_p] * 3)
    call(kernel.interpret)(program.entry.own, 11, inputs, outputs, at)
    want = np.array([f.function(*item).full().ravel() for item in items])
    np.testing.assert_allclose(found, want, rtol=1e-14)


def test_header_has_all_fields():
    text = header()
    names = [field.name for field in (*MODEL, *TASK, *fields(Settings))]
    assert all(f"{name};" in text for name in names)
    assert f"LG_LOG = {len(LOG)}" in text
    assert MEMORY[SCALE].name == "scale"


def test_second_derivatives_of_long_steps_are_exact():
    task = TASKS["circle"]()
    transcription = InteriorPointSolver(task.problem).transcription
    model = StageModel(transcription)
    ready = Ready(task.problem, task.x0)
    rng, k, step = np.random.default_rng(0), 3, 1e-4
    N, n, m = task.problem.horizon, model.n, model.m
    prices, rows = np.zeros((N, n)), np.zeros((N + 1, 0))
    prices[k] = rng.normal(size=n)
    nodes = ready.nodes
    after = np.asarray(model.advance(k, nodes, ready.setting, nodes.x[k], nodes.u[k])[0])
    x = nodes.x.copy()
    x[k + 1] = after
    nodes = Nodes(nodes.t, x, nodes.u)
    W, _ = model.hessians(nodes, ready.setting, prices, rows, model.expand(nodes, ready.setting))

    def defect(d):
        moved = np.asarray(model.retract(nodes.x[k], d[:n], ready.setting.p))
        u = nodes.u[k].copy()
        u[model.controls] += d[n:]
        return prices[k] @ model.advance(k, nodes, ready.setting, moved, u)[2]

    own, cost = W[k], model.expand(nodes, ready.setting)
    d = rng.normal(size=n + m)
    second = (defect(step * d) - 2 * defect(0 * d) + defect(-step * d)) / step**2
    costs = _cost_bend(model, nodes, ready.setting, k, d, step) - d @ cost.H[k] @ d
    assert d @ own @ d - costs == pytest.approx(second, rel=1e-4, abs=1e-6)


def test_a_call_of_several_items_leaves_none_out():
    problem, x0 = PROBLEMS["swing, stopped"]
    model = InteriorPointSolver(problem).model
    stages = _library.load_stages(model)
    assert stages is not None
    rng, items = np.random.default_rng(0), 3
    a, b = (x0 + rng.normal(size=(items, model.group.nq)) for _ in range(2))
    found, scratch = np.full((items, model.n), np.nan), np.zeros(stages.scratch + 8)
    inputs = (ctypes.c_void_p * 2)(a.ctypes.data, b.ctypes.data)
    outputs = (ctypes.c_void_p * 1)(found.ctypes.data)
    at = scratch.ctypes.data + -scratch.ctypes.data % 64
    _library._ENTRY(stages.functions["error"].call)(None, items, inputs, outputs, at)
    np.testing.assert_allclose(found, model.error(a, b), rtol=1e-12, atol=1e-12)


def _arm(method, substeps=1):
    """Two joints with damping, friction and gravity; one input is a disturbance."""
    body = SpatialInertia(1.0, [0.1, 0.2, -0.5], 0.1 * np.eye(3))
    losses = JointProperties(damping=0.3, friction=0.2)
    tree = (
        Multibody()
        .add_body("upper", body, "revolute", axis="y", properties=losses)
        .add_body("lower", body, "revolute", "upper", SE3.from_position([0, 0, -1]), axis="x",
                  properties=losses)
    )  # fmt: skip
    push = Input("push", "N m", role="disturbance")
    system = tree.system([*tree.system().inputs, push], input_matrix=[[1, 0, 0.5], [0, 1, 1]])
    return OptimalControlProblem(
        system, 4, 0.1, reference=np.zeros(4), method=method, substeps=substeps
    )


@pytest.mark.parametrize("method, substeps", [("semi_implicit_euler", 1), ("euler", 1), ("rk4", 2)])
def test_arms_bend_as_the_closed_form_says(method, substeps):
    problem = _arm(method, substeps)
    system, structure = problem.system, problem.system.structure
    assert structure.acceleration_hessian is not None
    other = system.replaced(structure=replace(structure, acceleration_hessian=None))
    found, wanted = (
        InteriorPointSolver(each).model.curvature
        for each in (problem, problem.with_arguments(system=other))
    )
    assert found.function.n_instructions() != wanted.function.n_instructions()
    rng = np.random.default_rng(0)
    given = [rng.normal(size=size) for size in found.program.sizes_in]
    for have, want in zip(found.function.call(given), wanted.function.call(given), strict=True):
        have, want = np.array(have), np.array(want)
        np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-9 * np.abs(want).max(initial=0))


def _cost_bend(model, nodes, setting, k, d, step):
    """Second difference of a stage's cost."""

    def cost(share):
        moved = np.asarray(model.retract(nodes.x[k], share * d[: model.n], setting.p))
        u = nodes.u[k].copy()
        u[model.controls] += share * d[model.n :]
        return model.advance(k, nodes, setting, moved, u)[1]

    return (cost(step) - 2 * cost(0.0) + cost(-step)) / step**2


@pytest.mark.parametrize("struct", [Task, Loop, Numbers, Function])
def test_structs_refuse_fields_that_the_kernel_does_not_have(struct):
    with pytest.raises(AttributeError, match="mu_fixed"):
        struct(mu_fixed=1)
    with pytest.raises(AttributeError, match="mu_fixed"):
        struct().mu_fixed = 1


@pytest.mark.compiled
def test_real_time_steps_follow_disturbances_with_the_barrier():
    """It rises at once with what a step is to gain, and a plan that only moves on lets it fall."""
    ready = Ready(*CASES["slew, far"])
    solver, times = NewtonKKTSolver(ready.model), ready.nodes.t
    assert str(solver.solve(ready.nodes, ready.setting, ready.x0).status) == "converged"
    levels, x, dt = [], ready.x0, times[1] - times[0]
    for k in range(20):
        plan = solver.step(times + k * dt, ready.setting, x, shift=k > 0)
        levels.append(plan.mu)
        x = plan.x[1]
        if k == 9:
            x = np.asarray(ready.model.retract(x, np.full(ready.model.n, 0.1), ready.setting.p))
    assert levels[10] > 10 * levels[9]
    assert levels[-1] < 1e-2 * max(levels[10:])
