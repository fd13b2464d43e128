"""Every method has its declared order on every group, and is the classical one on Rn."""

import casadi as ca
import numpy as np
import pytest
from scipy.special import ellipj

from lgcontrol.codegen import trace
from lgcontrol.groups import (
    SE2,
    SE3,
    SO3,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
)
from lgcontrol.integrators import METHODS, MuntheKaas, Tableau, get_method
from lgcontrol.integrators._internal import Problem
from lgcontrol.integrators._motion import algebra_rate

from ._problems import (
    BODY,
    EXPLICIT,
    GENERAL,
    free_body,
    manufactured,
    momentum,
    run,
    slope,
    stepper,
)

GROUPS = (
    SO3,
    SE3,
    SE2,
    SE2.about((1, 2, -3)),
    Schoenflies,
    Schoenflies.about((1, 2, -3)),
    PlanarHelical(0.2),
    Product(pose=SE3, twist=Rn(6)),
    Product(Product(SO3, Rn(1)), arm=SE2, wheel=Schoenflies),
)

STEPS = (12, 24, 48)  # large enough for the leading term, errors above 1e-11
TOO_LOW, TOO_HIGH = 0.25, 0.8  # leading terms that happen to be small show as a higher order


# Implicit methods take some seconds each: on a simple group by default, a semidirect and a product.
# All groups for one method of each family, which treat groups alike.
EVERYWHERE = [METHODS[name] for name in ("rk4", "commutator_free4", "crouch_grossman3")]
IMPLICIT = [METHODS[name] for name in ("radau_iia5", "gauss6", "ros34pw2")]
CASES = [
    pytest.param(m, G, marks=[pytest.mark.thorough] if m in IMPLICIT and G != SO3 else [])
    for m in GENERAL
    for G in (GROUPS if m in EVERYWHERE else (SO3, SE2, GROUPS[-1]))
]


@pytest.mark.usually(G=(SO3, GROUPS[-1]))
@pytest.mark.parametrize(("method", "G"), CASES, ids=lambda entry: entry.name)
def test_order_on_a_manufactured_problem(method, G):
    field, solution = manufactured(G, seed=4)
    end = 0.7
    exact = solution(end)
    errors = [G.distance(run(method, G, field, solution(0.0), end, n), exact) for n in STEPS]
    assert -TOO_LOW < slope(STEPS, errors) - method.order < TOO_HIGH, errors


INERTIA = np.array([2.0, 3.0, 4.5])
OMEGA0 = np.array([1.2, 0.0, 0.9])


def exact_omega(t):
    """Jacobi's elliptic functions: motion about the third axis from where ω₂ = 0."""
    J1, J2, J3 = INERTIA
    twice_energy, L2 = INERTIA @ OMEGA0**2, np.sum((INERTIA * OMEGA0) ** 2)
    assert L2 > twice_energy * J2
    slow, fast = J3 * twice_energy - L2, L2 - J1 * twice_energy
    rate = np.sqrt((J3 - J2) * fast / (J1 * J2 * J3))
    sn, cn, dn, _ = ellipj(rate * t, (J2 - J1) * slow / ((J3 - J2) * fast))
    return np.array([OMEGA0[0] * cn, np.sqrt(slow / (J2 * (J3 - J2))) * sn, OMEGA0[2] * dn])


@pytest.mark.parametrize("method", GENERAL, ids=lambda m: m.name)
def test_order_on_eulers_equations(method):
    field, end = free_body(INERTIA), 4.0
    x0 = np.concatenate([SO3.random(3), OMEGA0])
    steps = (32, 64, 128)
    ends = [run(method, BODY, field, x0, end, n) for n in steps]
    rates = [np.linalg.norm(x[4:] - exact_omega(end)) for x in ends]
    assert -TOO_LOW < slope(steps, rates) - method.order < TOO_HIGH, rates
    # the attitude against the conserved momentum, which no formula of a method knows of
    momenta = [np.linalg.norm(momentum(INERTIA, x) - momentum(INERTIA, x0)) for x in ends]
    assert -TOO_LOW < slope(steps, momenta) - method.order < 1 + TOO_HIGH, momenta


def test_brackets_are_what_makes_the_order(monkeypatch):
    """Without them the fourth-order tableau is of order two on a group, and of four on Rn."""
    monkeypatch.setattr(MuntheKaas, "brackets", 0)
    errors = {}
    for G in (SO3, Rn(3)):
        field, solution = manufactured(G, seed=4)
        errors[G] = [
            G.distance(run(METHODS["rk4"], G, field, solution(0.0), 0.7, n), solution(0.7))
            for n in STEPS
        ]
    assert slope(STEPS, errors[SO3]) == pytest.approx(2, abs=TOO_LOW)
    assert slope(STEPS, errors[Rn(3)]) == pytest.approx(4, abs=TOO_LOW)


def classical(method, field, t, y, h):
    """The Runge–Kutta method of the textbooks, from the weights of the method."""
    if isinstance(method, MuntheKaas):
        A, b = method.tableau.A, method.tableau.b
    else:
        A, b = ([sum_rows(stage) for stage in method.A], sum_rows(method.b))
    slopes = []
    for row in A:
        place = y + h * sum((a * k for a, k in zip(row, slopes, strict=False)), np.zeros_like(y))
        slopes.append(field(t + sum(row) * h, place))
    return y + h * sum(w * k for w, k in zip(b, slopes, strict=False))


def sum_rows(rows):
    """Exponentials of a commutative group add up."""
    total = [0.0] * max(map(len, rows), default=0)
    for row in rows:
        for j, weight in enumerate(row):
            total[j] += weight
    return total


@pytest.mark.parametrize("method", EXPLICIT, ids=lambda m: m.name)
def test_classical_method_on_vectors(method, rng):
    G = Rn(3)
    M = rng.normal(size=(3, 3))

    def field(t, y):
        return np.sin(M @ y) + t * y

    y, t, h = rng.normal(size=3), 0.3, 0.2
    ours = method.move(G, field, t, y, h)
    np.testing.assert_allclose(ours, classical(method, field, t, y, h), rtol=0, atol=1e-15)


@pytest.mark.parametrize("method", EXPLICIT, ids=lambda m: m.name)
def test_commutative_groups_pay_nothing_for_brackets(method):
    """A step on Translation × Rn has no more instructions than the same on Rn."""

    def instructions(G):
        field = trace("f", lambda t, x: ca.sin(t * x), {"t": (), "x": (5,)}, ["d"])
        return stepper(method, Problem.of(G, field)).n_instructions()

    assert instructions(Product(position=Rn(3), load=Rn(2))) == instructions(Rn(5))


@pytest.mark.parametrize("G", GROUPS, ids=lambda G: G.name)
@pytest.mark.parametrize("method", GENERAL, ids=lambda m: m.name)
def test_a_constant_velocity_is_integrated_exactly(method, G):
    velocity = np.linspace(-1.0, 2.0, G.dim)
    x = G.random(1)
    after = method.move(G, lambda t, x: velocity, 0.0, x, 1.5)
    exact = G.plus(x, 1.5 * velocity)
    np.testing.assert_allclose(G.matrix(after), G.matrix(exact), rtol=0, atol=1e-14)


# Butcher 1964, seven stages: the first whose brackets go beyond the second power of ad.
BUTCHER6 = Tableau(
    A=[
        (),
        (1 / 3,),
        (0, 2 / 3),
        (1 / 12, 1 / 3, -1 / 12),
        (-1 / 16, 9 / 8, -3 / 16, -3 / 8),
        (0, 9 / 8, -3 / 8, -3 / 4, 1 / 2),
        (9 / 44, -9 / 11, 63 / 44, 18 / 11, 0, -16 / 11),
    ],
    b=(11 / 120, 0, 27 / 40, 27 / 40, -4 / 15, -4 / 15, 11 / 120),
)


@pytest.mark.parametrize("G", [SO3, SE3, SE2], ids=lambda G: G.name)
def test_an_own_tableau_of_order_six(G):
    method = MuntheKaas("butcher6", BUTCHER6)
    assert (method.order, method.stages, method.brackets) == (6, 7, 4)
    field, solution = manufactured(G, seed=4)
    steps = (6, 9, 12)
    errors = [
        G.distance(run(method, G, field, solution(0.0), 1.0, n), solution(1.0)) for n in steps
    ]
    assert -TOO_LOW < slope(steps, errors) - 6 < TOO_HIGH, errors


def test_brackets_are_the_series_of_the_inverse_jacobian(rng):
    """Each further power that counts makes the error fall with the next power of the angle."""
    d, velocity = rng.normal(size=(2, 6))
    scales = np.array([0.4, 0.2, 0.1])
    for brackets, order in ((0, 1), (1, 2), (2, 4), (3, 4), (4, 6), (5, 6), (6, 8)):
        errors = []
        for scale in scales:
            exact = SE3.right_jacobian_inverse(scale * d) @ velocity
            found = algebra_rate(SE3, brackets, scale * d, velocity)
            errors.append(np.linalg.norm(found - exact))
        assert slope(1 / scales, errors) == pytest.approx(order, abs=0.2), brackets


def test_an_own_tableau_is_a_method():
    kutta = MuntheKaas("kutta3", Tableau(A=[(), (1 / 2,), (-1, 2)], b=(1 / 6, 2 / 3, 1 / 6)))
    assert (kutta.order, kutta.stages, kutta.brackets) == (3, 3, 1)
    assert get_method(kutta) is kutta
    field, solution = manufactured(SE3, seed=4)
    errors = [
        SE3.distance(run(kutta, SE3, field, solution(0.0), 0.7, n), solution(0.7)) for n in STEPS
    ]
    assert -TOO_LOW < slope(STEPS, errors) - 3 < TOO_HIGH
