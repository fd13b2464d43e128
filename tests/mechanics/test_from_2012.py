"""From 2012: both Coriolis matrices, the Boltzmann–Hamel definition, Proposition 5.1, misprints."""

import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SO2, SO3, Helical, Schoenflies, Translation
from lgcontrol.mechanics import Gravity, RigidBody, SpatialInertia, ad_tilde, boltzmann_hamel_matrix

from ._bodies import GROUPS, NONCOMMUTATIVE, USUAL, body_of, name_of, random_inertia, random_matrix

pytestmark = pytest.mark.usually(group=USUAL)

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "from_2012_groups.json").read_text())
PAPER_GROUPS = {
    "SE(3)": SE3,
    "X(z)": Schoenflies,
    "R^3": Translation("xyz"),
    "SE(2)": SE2,
    "SO(3)": SO3,
    "R^2": Translation("xy"),
    "R": Translation("x"),
    "H(z,pitch)": Helical(0.35),
    "SO(2)": SO2,
}

ROUNDING = 1e-11  # some hundred roundings of numbers up to a hundred
APART = 1e-2  # a wrong formula is off by numbers of order one

every_group = pytest.mark.parametrize("group", GROUPS, ids=name_of)


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(np.array(a), b, rtol=tolerance, atol=tolerance)


def differ(a, b):
    assert np.abs(np.array(a) - b).max() > APART


def hat(v):
    return np.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


# Reference numbers


@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda c: f"{c['group']}{'mass' in c}")
def test_reference_motions(case):
    group = PAPER_GROUPS[case["group"]]
    M = np.array(case["mass_matrix"])
    if "mass" in case:
        inertia = SpatialInertia(case["mass"], case["center_of_mass"], case["inertia"])
        body = RigidBody("body", group, inertia)
    else:
        body = body_of(group, M)
    X, v, vdot, tau = group.identity, case["v"], case["vdot"], case["tau"]
    close(group.selection, case["selection"])
    close(body.mass_matrix(X), M)
    close(group.right_jacobian(case["phi"]), case["velocity_transformation"])
    close(group.right_jacobian(case["phi"]) @ case["phi_rate"], v)
    close(body.inverse_dynamics(X, v, vdot), tau)
    close(body.forward_dynamics(X, v, tau), vdot)
    for form in ("ad", "ad_tilde", "boltzmann_hamel"):
        close(body.coriolis(form)(X, v) @ v, case["coriolis"])
    for form in ("ad_tilde", "boltzmann_hamel"):
        close(body.coriolis(form)(X, v), case["coriolis_matrix"])


# Proposition 5.1


@every_group
def test_proposition_5_1(group, rng):
    """The forms of C give one force, for inertias of bodies and any others."""
    for _ in range(5):
        for M in (
            random_matrix(rng, group.dim),
            group.selection.T @ random_inertia(rng).matrix @ group.selection,
        ):
            v = rng.normal(size=(4, group.dim))
            p = v @ M
            expected = -np.einsum("nji,nj->ni", group.ad(v), p)
            close(np.einsum("nij,nj->ni", ad_tilde(group, p), v), expected)
            close(np.einsum("nij,nj->ni", boltzmann_hamel_matrix(group, p), v), expected)


@every_group
def test_the_definition_gives_ad_tilde_about_any_point(group, rng):
    """The sums of eq. 54 do not depend on φ: the fields of the frame are left-invariant."""
    p, phi = rng.normal(size=(2, 6, group.dim))
    phi *= np.array([0.0, 1e-9, 1e-3, 0.3, 1.0, 1.3])[:, None]
    close(boltzmann_hamel_matrix(group, p, phi), ad_tilde(group, p))


@every_group
def test_ad_tilde_is_skew_and_the_other_form_is_not(group, rng):
    body = body_of(group, random_matrix(rng, group.dim))
    X, v = group.identity, rng.normal(size=group.dim)
    for form in ("ad_tilde", "boltzmann_hamel"):
        C = body.coriolis(form)(X, v)
        close(C + C.T, 0.0)
    C = body.coriolis("ad")(X, v)
    close(C @ v, body.coriolis_matrix(X, v) @ v)
    if not group.is_commutative:
        differ(C + C.T, 0.0)


@every_group
def test_lagranges_equations_in_exponential_coordinates(group, rng):
    """Eq. 17 and 18 written out: no Lie algebra but that of S(φ), and a potential with it."""
    body = RigidBody("body", group, random_inertia(rng), [Gravity((1.0, -2.0, -9.0))])
    n = group.dim
    phi, rate, second = (ca.SX.sym(name, n) for name in ("phi", "rate", "second"))
    v = ca.mtimes(group.right_jacobian(phi), rate)
    X = group.compose(ca.SX(ca.DM(group.random(rng))), group.exp(phi))
    L = body.kinetic_energy(X, v) - body.potential_energy(X)
    by_rate = ca.gradient(L, rate)
    change = ca.jtimes(by_rate, ca.vertcat(phi, rate), ca.vertcat(rate, second))
    force = change - ca.gradient(L, phi)
    a = ca.jtimes(v, ca.vertcat(phi, rate), ca.vertcat(rate, second))
    ours = ca.mtimes(group.right_jacobian(phi).T, body.inverse_dynamics(X, v, a))
    f = ca.Function("residual", [phi, rate, second], [force, ours])
    for scale in (0.0, 0.1, 1.0):
        lagrange, left_trivialised = f(
            scale * rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)
        )
        close(left_trivialised, lagrange)


# The formulas of the paper, written out


def test_table_1_brackets_and_coriolis_matrices(rng):
    u, v, w, p, q, r = V = rng.normal(size=6)
    p1, p2, p3, p4, p5, p6 = P = rng.normal(size=6)
    close(
        SE3.ad(V),
        [
            [0, -r, q, 0, -w, v],
            [r, 0, -p, w, 0, -u],
            [-q, p, 0, -v, u, 0],
            [0, 0, 0, 0, -r, q],
            [0, 0, 0, r, 0, -p],
            [0, 0, 0, -q, p, 0],
        ],
    )
    close(
        ad_tilde(SE3, P),
        [
            [0, 0, 0, 0, p3, -p2],
            [0, 0, 0, -p3, 0, p1],
            [0, 0, 0, p2, -p1, 0],
            [0, p3, -p2, 0, p6, -p5],
            [-p3, 0, p1, -p6, 0, p4],
            [p2, -p1, 0, p5, -p4, 0],
        ],
    )
    close(Schoenflies.ad([u, v, w, r]), [[0, -r, 0, v], [r, 0, 0, -u], [0] * 4, [0] * 4])
    close(ad_tilde(Schoenflies, P[:4]), [[0, 0, 0, -p2], [0, 0, 0, p1], [0] * 4, [p2, -p1, 0, 0]])
    close(SE2.ad([u, v, r]), [[0, -r, v], [r, 0, -u], [0, 0, 0]])
    close(ad_tilde(SE2, P[:3]), [[0, 0, -p2], [0, 0, p1], [p2, -p1, 0]])
    close(ad_tilde(SO3, P[:3]), -hat(P[:3]))
    for group in (Translation("xyz"), Translation("xy"), Translation("x"), Helical(0.35), SO2):
        close(group.ad(V[: group.dim]), np.zeros((group.dim, group.dim)))
        close(ad_tilde(group, P[: group.dim]), np.zeros((group.dim, group.dim)))


def test_euler_kirchhoff_and_planar_equations_by_component(rng):
    m, Ix, Iy, Iz = 2.0, 0.7, 0.9, 1.1
    body = SpatialInertia(m, np.zeros(3), np.diag([Ix, Iy, Iz]))
    u, v, w, p, q, r = V = rng.normal(size=6)
    du, dv, dw, dp, dq, dr = A = rng.normal(size=6)
    force = [m * (du - r * v + q * w), m * (dv + r * u - p * w), m * (dw - q * u + p * v)]
    moment = [
        Ix * dp - (Iy - Iz) * q * r,
        Iy * dq - (Iz - Ix) * r * p,
        Iz * dr - (Ix - Iy) * p * q,
    ]

    def tau(group):
        H = group.selection
        return RigidBody("body", group, body).inverse_dynamics(group.identity, H.T @ V, H.T @ A)

    close(tau(SO3), moment)  # eq. 2 to 4
    close(tau(SE3), force + moment)  # after eq. 76
    close(tau(SE2), [m * (du - r * v), m * (dv + r * u), Iz * dr])  # eq. 87
    close(tau(Schoenflies), [m * (du - r * v), m * (dv + r * u), m * dw, Iz * dr])  # eq. 96
    close(tau(Translation("xyz")), [m * du, m * dv, m * dw])


# The form of eq. 36 and 37, which is wrong


def wrong_coriolis_force(group, M, v):
    return -group.ad(M @ v).T @ v


@pytest.mark.parametrize("group", NONCOMMUTATIVE, ids=name_of)
def test_the_form_of_eq_37_differs(group, rng):
    M, v = random_matrix(rng, group.dim), rng.normal(size=group.dim)
    body = body_of(group, M)
    differ(wrong_coriolis_force(group, M, v), body.coriolis_matrix(group.identity, v) @ v)


def test_the_form_of_eq_37_reverses_eulers_equations(rng):
    M, omega = random_matrix(rng, 3), rng.normal(size=3)
    right = body_of(SO3, M).coriolis_matrix(SO3.identity, omega) @ omega
    close(wrong_coriolis_force(SO3, M, omega), -right)


def test_where_the_form_of_eq_37_coincides(rng):
    # On commutative groups both vanish, and about a principal axis nothing turns the momentum.
    for group in set(GROUPS) - set(NONCOMMUTATIVE):
        M, v = random_matrix(rng, group.dim), rng.normal(size=group.dim)
        close(wrong_coriolis_force(group, M, v), np.zeros(group.dim))
    M = random_matrix(rng, 3)
    axis = np.linalg.eigh(M)[1][:, 1]
    close(wrong_coriolis_force(SO3, M, axis), np.zeros(3))
    close(body_of(SO3, M).coriolis_matrix(SO3.identity, axis) @ axis, np.zeros(3))


# Misprints: the printed form fails, the mended one holds


def slopes_of_S(group):
    """``D[k, i, j] = ∂S_ki/∂φ_j`` at φ = 0."""
    phi = ca.SX.sym("phi", group.dim)
    S = ca.SX(group.right_jacobian(phi))
    D = ca.Function("D", [phi], [ca.jacobian(ca.vec(S), phi)])(np.zeros(group.dim)).full()
    return D.reshape(group.dim, group.dim, group.dim, order="F")


def test_table_1_prints_the_negative_for_so3(rng):
    M, v = random_matrix(rng, 3), rng.normal(size=3)
    p1, p2, p3 = p = M @ v
    printed = np.array([[0, -p3, p2], [p3, 0, -p1], [-p2, p1, 0]])
    newton = np.cross(v, p)
    differ(printed @ v, newton)
    close(-printed @ v, newton)
    close(-printed, ad_tilde(SO3, p))


@pytest.mark.usually(group=GROUPS)
@pytest.mark.parametrize("group", [SE2, Schoenflies], ids=name_of)
def test_eq_79_and_90_lack_a_minus(group):
    D = slopes_of_S(group)
    ad = np.stack([group.ad(e) for e in np.eye(group.dim)], axis=-1)
    differ(D, ad / 2)
    close(D, -ad / 2)


def test_eq_66_ends_its_first_row_with_a_third_derivative(rng):
    p = rng.normal(size=3)
    D = slopes_of_S(SO3)
    mended = np.einsum("kij,k->ij", D, p)
    printed = mended.copy()
    printed[0, 2] = D[:, 0, 1] @ p  # by φ_2 once more
    differ(printed, -hat(p) / 2)
    close(mended, -hat(p) / 2)


def test_table_1_shows_a_rotation_in_translations(rng):
    u, v, w, r = rng.normal(size=4)
    printed = np.array([[0, -r, 0, u], [r, 0, 0, v], [0, 0, 0, w], [0, 0, 0, 0]])
    group = Translation("xyz")
    differ(group.hat(group.vee(printed)), printed)
    close(group.hat([u, v, w])[:3, :3], np.zeros((3, 3)))
    assert group.ad([u, v, w]).shape == ad_tilde(group, [u, v, w]).shape == (3, 3)


@pytest.mark.usually(group=GROUPS)
@pytest.mark.parametrize("group", [SE3, Schoenflies], ids=name_of)
def test_eq_74_93_94_and_table_2_lack_the_tilde(group, rng):
    M, v = random_matrix(rng, group.dim), rng.normal(size=group.dim)
    expected = -group.ad(v).T @ M @ v
    differ(group.ad(M @ v) @ v, expected)
    close(ad_tilde(group, M @ v) @ v, expected)


@pytest.mark.usually(group=GROUPS)
@pytest.mark.parametrize("group", [SE3, SO3, SE2, Schoenflies], ids=name_of)
def test_eq_49_and_50_print_j_for_m(group, rng):
    """``∂S_sj/∂φ_l`` must be ``∂S_sm/∂φ_l``: the same at φ = 0 only."""
    n = group.dim
    phi, p = ca.SX.sym("phi", n), ca.SX.sym("p", n)
    S = ca.SX(group.right_jacobian(phi))
    slopes = ca.Function("D", [phi], [S, ca.jacobian(ca.vec(S), phi)])

    def printed_and_mended(at, p):
        S, D = (value.full() for value in slopes(at))
        D = D.reshape(n, n, n, order="F")
        inverse = np.linalg.inv(S)
        first = np.einsum("li,slm,mj,s->ij", inverse, D, inverse, p)
        printed = first - np.einsum("li,sjl,mj,s->ij", inverse, D, inverse, p)
        mended = first - np.einsum("li,sml,mj,s->ij", inverse, D, inverse, p)
        return printed, mended

    p = rng.normal(size=n)
    printed, mended = printed_and_mended(np.zeros(n), p)
    close(printed, ad_tilde(group, p))
    close(mended, ad_tilde(group, p))
    printed, mended = printed_and_mended(rng.normal(size=n), p)
    differ(printed, ad_tilde(group, p))
    close(mended, ad_tilde(group, p))


def test_eq_103_has_indices_of_another_order(rng):
    X, Y = rng.normal(size=(2, 6))
    bracket = SE3.vee(SE3.hat(X) @ SE3.hat(Y) - SE3.hat(Y) @ SE3.hat(X))
    printed = -X[2] * Y[1] + Y[2] * X[1] - X[5] * Y[2] + Y[5] * X[4]
    mended = -X[5] * Y[1] + X[4] * Y[2] + Y[5] * X[1] - Y[4] * X[2]
    differ(printed, bracket[0])
    close(mended, bracket[0])


@pytest.mark.usually(group=GROUPS)
@pytest.mark.parametrize("group", [SE3, SO3, SE2, Schoenflies], ids=name_of)
def test_eq_110_and_111_lack_the_velocity(group, rng):
    """Their right-hand sides are matrices: only times v are they the vectors on the left."""
    p, v = rng.normal(size=(2, group.dim))
    by_v = np.stack([group.ad(e) for e in np.eye(group.dim)], axis=-1)
    first, second = np.einsum("ikj,k->ij", by_v, p), np.einsum("kij,k->ij", by_v, p)
    assert first.shape == second.shape == (group.dim, group.dim)
    close(first @ v, group.ad(v) @ p)
    close(second @ v, group.ad(v).T @ p)
