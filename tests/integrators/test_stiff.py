"""Implicit methods: coefficients, orders on smooth and stiff problems, damping of fast modes."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol import integrators
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.integrators import METHODS, Mechanical
from lgcontrol.integrators._internal import Problem, embedded_step

from ._problems import run_problem, slope, with_losses

STIFF = [method for method in METHODS.values() if method.stiff_order]
L_STABLE = [method for method in STIFF if method.name != "gauss6"]
MECHANICAL = [
    method
    for method in METHODS.values()
    if (method.needs_structure or method.uses_losses) and not method.needs_lagrangian
]
TOO_LOW, TOO_HIGH = 0.25, 0.8  # as for orders on smooth problems
COEFFICIENTS = 1e-14  # they are printed with 16 digits


def fast_drive(rate: float) -> Problem:
    """Prothero–Robinson in the velocity of a turning axis: ``v̇ = λ (v − φ) + φ̇, φ = sin(t + 0.3)``.

    The fast mode is a loss of the joint.
    """
    group = Product(angle=SO2, rate=Rn(1))

    def force(t, x, u, p):
        return rate * (x[2] - ca.sin(t + 0.3)) + ca.cos(t + 0.3)

    mechanical = Mechanical(
        "angle",
        "rate",
        lambda x, p: ca.DM(1),
        force,
        lambda t, x, a, u, p: (ca.horzcat(0, rate), ca.DM(1, 0)),
        lambda t, x, u, p: ca.DM(1, 0),
        lambda x, p: ca.DM(-rate),
    )
    return Problem(
        group, lambda t, x, u, p: ca.vertcat(x[2], force(t, x, u, p)), mechanical=mechanical
    )


@pytest.mark.parametrize("method", STIFF, ids=lambda m: m.name)
def test_stiff_order_on_prothero_robinson(method):
    problem = fast_drive(-1e6)
    x0, steps = [*SO2.identity, np.sin(0.3)], (16, 32, 64)
    ends = [run_problem(method, problem, x0, 2.0, n) for n in steps]
    rates = [abs(x[2] - np.sin(2.3)) for x in ends]
    angle = np.cos(0.3) - np.cos(2.3)
    angles = [abs(SO2.log(x[:2])[0] - angle) for x in ends]
    assert -TOO_LOW < slope(steps, rates) - method.stiff_order < TOO_HIGH, rates
    assert slope(steps, angles) > method.stiff_order - TOO_LOW, angles
    # without the fast mode's error: better than the smooth part alone would let an explicit step be
    assert max(rates) < 0.1


@pytest.mark.parametrize("method", L_STABLE, ids=lambda m: m.name)
def test_a_fast_mode_is_gone_after_a_step(method):
    """L-stability, by the step and by the factor."""
    held = fast_drive(-1e8)
    x0 = [*SO2.identity, np.sin(0.3) + 1.0]  # the mode is excited by one
    excited = run_problem(method, held, x0, 1.0, 1)
    quiet = run_problem(method, held, [*SO2.identity, np.sin(0.3)], 1.0, 1)
    assert abs(excited[2] - quiet[2]) <= 1e-6
    assert abs(method.stability(np.array([-1e8 + 0j]))[0]) <= 1e-6


def test_a_fast_mode_stays_with_gauss_points():
    """A-stability alone: the factor of the mode is 1 at infinity."""
    held, x0 = fast_drive(-1e8), [*SO2.identity, np.sin(0.3) + 1.0]
    ends = [
        run_problem(METHODS["gauss6"], held, [*SO2.identity, speed], 1.0, 1)[2]
        for speed in (x0[2], x0[2] - 1.0)
    ]
    assert abs(ends[0] - ends[1]) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("method", MECHANICAL, ids=lambda m: m.name)
def test_order_on_a_top_with_losses(method):
    """On SO(3) with a further block, against the explicit pair at short steps."""
    problem = with_losses()
    x0 = np.concatenate([problem.group.random(3)[:4], [1.0, -0.5, 2.0], [0.3]])
    exact = run_problem(METHODS["dormand_prince5"], problem, x0, 1.0, 400)
    steps = (40, 80, 160)
    errors = [
        problem.group.distance(run_problem(method, problem, x0, 1.0, n), exact) for n in steps
    ]
    assert -TOO_LOW < slope(steps, errors) - method.order < TOO_HIGH, errors


def test_order_conditions_of_the_rosenbrock_method():
    """Those of W-methods, which hold for any matrix (Hairer, Wanner II, section IV.7)."""
    method = METHODS["ros34pw2"]
    n = method.stages
    G, alpha = method.gamma * np.eye(n), np.zeros((n, n))
    for i in range(n):
        G[i, : len(method.gammas[i])] = method.gammas[i]
        alpha[i, : len(method.alpha[i])] = method.alpha[i]
    b, one = np.array(method.b), np.ones(n)
    c, g = alpha @ one, G @ one
    for value, wanted in (
        (b @ one, 1),
        (b @ c, 1 / 2),
        (b @ g, 0),
        (b @ c**2, 1 / 3),
        (b @ alpha @ c, 1 / 6),
        (b @ alpha @ g, 0),
        (b @ G @ c, 0),
        (b @ G @ g, 0),
    ):
        assert value == pytest.approx(wanted, abs=COEFFICIENTS)
    embedded = np.array(method.b_embedded)
    for value, wanted in ((embedded @ one, 1), (embedded @ c, 1 / 2), (embedded @ g, 0)):
        assert value == pytest.approx(wanted, abs=COEFFICIENTS)
    assert abs(embedded @ c**2 - 1 / 3) > 1e-3  # of lower order, else it would tell nothing
    # stiffly accurate: the last stage is the step
    np.testing.assert_allclose((alpha + G)[-1], b, rtol=0, atol=COEFFICIENTS)


def test_collocation_of_radau():
    """Σ aᵢⱼ cⱼᵏ⁻¹ = cᵢᵏ/k up to the stage order, quadrature up to the order."""
    method = METHODS["radau_iia5"]
    A, c = np.array(method.A), np.array(method.c)
    for k in range(1, method.stiff_order + 1):
        np.testing.assert_allclose(A @ c ** (k - 1), c**k / k, rtol=0, atol=COEFFICIENTS)
    for k in range(1, method.order + 1):
        assert A[-1] @ c ** (k - 1) == pytest.approx(1 / k, abs=COEFFICIENTS)


def wrist(torque: float) -> Problem:
    """Revolute about z: inertia 1.32e-4, damping 2, dry friction 1, smoothed over 0.1 rad/s."""
    inertia, damping, friction, speed = 1.32e-4, 2.0, 1.0, 0.1

    def force(t, x, u, p):
        return torque - damping * x[1] - friction * ca.tanh(x[1] / speed)

    def loss(x, p):
        return damping + friction / speed * (1 - ca.tanh(x[1] / speed) ** 2)

    mechanical = Mechanical(
        "angle",
        "rate",
        lambda x, p: ca.DM(inertia),
        force,
        lambda t, x, a, u, p: (ca.horzcat(0, -loss(x, p)), ca.DM(1, 0)),
        lambda t, x, u, p: ca.DM(1, 0),
        loss,
    )
    return Problem(
        Product(angle=Rn(1), rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], force(t, x, u, p) / inertia),
        mechanical=mechanical,
    )


def test_a_wrist_with_losses_to_tolerance():
    """Fast losses (poles to −9e4 1/s): adaptive steps against Radau at short ones."""
    problem = wrist(2.5)
    steps = (8_000, 16_000)
    coarse, exact = (
        run_problem(METHODS["radau_iia5"], problem, [0.0, 0.0], 0.05, n) for n in steps
    )
    np.testing.assert_allclose(coarse, exact, rtol=0, atol=2e-9)
    made = integrators.integrate(problem, [0.0, 0.0], (0.0, 0.05))
    assert made.status == "finished" and made.statistics.method == "ros34pw2"
    np.testing.assert_allclose(made.x[-1], exact, rtol=0, atol=5e-6)
    fine = integrators.integrate(problem, [0.0, 0.0], (0.0, 0.05), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fine.x[-1], exact, rtol=0, atol=5e-9)
    shortest = np.abs(np.diff(made.t))[:-1].min()
    assert made.statistics.shortest == pytest.approx(shortest)
    # the explicit pair is held back by stability, not by the error
    stiff, explicit = (
        integrators.integrate(problem, [0.0, 0.0], (0.0, 0.5), method=method).statistics
        for method in ("auto", "dormand_prince5")
    )
    assert explicit.steps > 8 * stiff.steps


def test_the_linearly_implicit_step_keeps_up_with_a_wrist():
    """1 ms steps where explicit ones have to be shorter than 0.03 ms, and ten ms steps."""
    problem = wrist(2.5)
    exact = integrators.integrate(problem, [0.0, 0.0], (0.0, 0.4), rtol=1e-8, atol=1e-8).x[-1]
    method = METHODS["linearly_implicit_euler"]
    coarse, fine, explicit = (
        np.abs(run_problem(METHODS[name], problem, [0.0, 0.0], 0.4, n) - exact)[0]
        for name, n in ((method.name, 40), (method.name, 400), ("euler", 400))
    )
    assert coarse < 1e-2 and fine < 1e-3 and fine < coarse / 5
    assert not explicit < 0.1


def test_explicit_pairs_are_kept_where_nothing_decays_fast():
    fast = Problem(Rn(2), lambda t, x, u, p: ca.vertcat(200 * x[1], -200 * x[0]))
    made = integrators.integrate(fast, [1.0, 0.0], (0.0, 1.0))
    assert made.statistics.method == "dormand_prince5"
    np.testing.assert_allclose(made.x[-1], [np.cos(200), -np.sin(200)], atol=2e-3)


def test_dense_output_of_stiff_steps():
    problem = fast_drive(-1e6)
    made = integrators.integrate(problem, [*SO2.identity, np.sin(0.3)], (0.0, 1.0))
    assert made.statistics.method == "ros34pw2"
    times = np.linspace(0, 1, 57)
    angles = np.cos(0.3) - np.cos(times + 0.3)
    np.testing.assert_allclose(SO2.log(made(times)[:, :2])[:, 0], angles, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["radau_iia5", "gauss6"])
def test_casadi_differentiates_solved_stages_twice(name):
    """By the implicit function theorem, in the state, the input, a parameter, time and step."""
    group = Product(angle=SO2, rate=Rn(1))

    def field(t, x, u, p):
        return ca.vertcat(x[2], u - p * ca.sin(t) * x[1] * x[2] ** 2)

    problem = Problem(group, field, n_inputs=1, n_parameters=1)
    w, sizes = ca.MX.sym("w", 7), [0, 3, 4, 5, 6, 7]
    x, u, p, t, dt = ca.vertsplit(w, sizes)
    end = METHODS[name].step(problem, t, x, u, p, dt).state
    weighted = ca.dot(ca.DM([0.7, -0.4, 1.1]), end)
    second, slope = ca.hessian(weighted, w)
    made = ca.Function("made", [w], [weighted, slope, second])
    at = np.array([np.cos(0.4), np.sin(0.4), 0.9, 0.3, 0.5, 0.2, 0.4])
    steps = 1e-5 * np.eye(7)
    ahead, behind = ([made(at + sign * step) for step in steps] for sign in (1, -1))
    for order in (0, 1):
        differences = [(a[order] - b[order]) / 2e-5 for a, b in zip(ahead, behind, strict=True)]
        found = np.asarray(made(at)[order + 1]).squeeze()
        assert np.allclose(found, np.array(differences).squeeze(), atol=1e-8)
        assert np.abs(found).min(axis=-1).max() > 1e-3


def test_residuals_tell_where_equations_are_not_solved():
    radau = METHODS["radau_iia5"]
    bent = Problem(Rn(1), lambda t, x, u, p: -(x**3) * 1e6)
    easy = radau.step(bent, 0.0, np.array([1e-3]), [], [], 1e-3)
    assert easy.residual < 1e-6 and np.isfinite(easy.state).all()
    hard = radau.step(bent, 0.0, np.array([1e3]), [], [], 1.0)
    assert hard.residual > 1 and hard.error is None and hard.memory == ()


def test_what_methods_need_is_named():
    plain = Problem(Rn(1), lambda t, x, u, p: -x)
    for name in ("semi_implicit_euler", "linearly_implicit_euler"):
        with pytest.raises(ValueError, match=f"{name} is for mechanical systems"):
            METHODS[name].step(plain, 0.0, ca.DM([1.0]), [], [], 0.1)
    with pytest.raises(TypeError, match="radau_iia5 solves equations .* not SX"):
        METHODS["radau_iia5"].step(plain, 0.0, ca.SX.sym("x"), [], [], 0.1)
    with pytest.raises(ValueError, match="rk4 does not estimate errors"):
        embedded_step(plain, "rk4")
    with pytest.raises(ValueError, match="take dormand_prince5, ros34pw2"):
        integrators.integrate(plain, [1.0], (0, 1), method="rk4")


@pytest.mark.parametrize("name", ["dormand_prince5", "ros34pw2"])
def test_embedded_steps_are_the_steps_with_their_error(name):
    """The estimate falls with the order of the lower solution, and the step is the method's."""
    problem, method = with_losses(), METHODS[name]
    x = np.concatenate([problem.group.random(3)[:4], [1.0, -0.5, 2.0], [0.3]])
    step = embedded_step(problem, name)
    assert step is embedded_step(problem, name)
    lengths, errors = np.array([0.1, 0.05, 0.025]), []
    for dt in lengths:
        made = step(0.2, x, [], [], dt)
        state = method.step(problem, 0.2, ca.DM(x), ca.DM(0, 1), ca.DM(0, 1), dt).state
        np.testing.assert_allclose(made.x_next, np.asarray(state).ravel(), rtol=0, atol=1e-13)
        errors.append(np.linalg.norm(made.error))
    assert slope(1 / lengths, errors) == pytest.approx(method.order, abs=0.4)


@pytest.mark.parametrize("method", MECHANICAL, ids=lambda m: m.name)
def test_many_steps_stay_on_the_group(method):
    """A shortened form of a million steps: after these the norm is where rounding left it."""
    x0 = np.concatenate([[0.0, 0.0, 0.0, 1.0], [1.0, -0.5, 2.0], [0.3]])
    x = run_problem(method, with_losses(), x0, 20.0, 10_000)
    assert np.isfinite(x).all() and abs(np.linalg.norm(x[:4]) - 1) < 1e-15
