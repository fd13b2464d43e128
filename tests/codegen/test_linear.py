"""Linear equations inside functions: solved, compiled, chained, pickled; singular ones too."""

import copy
import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, chain
from lgcontrol.codegen._internal import pseudo_inverse, solve_linear

ROUNDING = 1e-13
BACKWARD = 20 * 2.0**-53  # of a stable method, relative to |A| |x|; ten unknowns
DIFFERENCE = 1e-7  # central differences with step 1e-5


def conditioned(rng, n, condition, symmetric):
    U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    A = U @ np.diag(np.geomspace(1.0, 1.0 / condition, n)) @ (U.T if symmetric else V)
    return (A + A.T) / 2 if symmetric else A


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("condition", [1e2, 1e8, 1e12])
def test_residuals_are_those_of_a_stable_method(kind, symmetric, n, condition, rng):
    A, b = kind.sym("A", n, n), kind.sym("b", n, 2)
    f = ca.Function("f", [A, b], [solve_linear(A, b, symmetric=symmetric)])
    M, rhs = conditioned(rng, n, condition, symmetric), rng.normal(size=(n, 2))
    x = f(M, rhs).full()
    assert np.abs(M @ x - rhs).max() <= BACKWARD * n * np.abs(M).max() * np.abs(x).max()


def test_numbers_are_solved_too():
    np.testing.assert_allclose(solve_linear(ca.DM([[0, 2], [4, 0]]), [2, 4]).full().ravel(), [1, 1])


PATTERNS = {
    "full": [(i, j) for i in range(3) for j in range(3)],
    "lower": [(i, j) for i in range(3) for j in range(i + 1)],
    "upper": [(i, j) for i in range(3) for j in range(i, 3)],
    "diagonal": [(0, 0), (1, 1), (2, 2)],
    "blocks": [(0, 0), (1, 1), (2, 2), (0, 1), (1, 0)],
    "permuted": [(0, 1), (1, 2), (2, 0)],
}


def kernel(pattern):
    """An SX function ``x → A, r`` with zeros in A."""
    x = ca.SX.sym("x", 3)
    A = ca.SX(3, 3)
    for i, j in PATTERNS[pattern]:
        A[i, j] = (3.0 if i == j else 1.0) + ca.sin(x[(i + j) % 3])
    return ca.Function("kernel", [x], [A, ca.vertcat(x[0] * x[1], x[2], 1)])


def solved(pattern, value):
    A, r = (part.full() for part in kernel(pattern)(value))
    return np.linalg.solve(A, r).ravel()


@pytest.mark.usually(pattern=("full", "blocks", "permuted"))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_any_pattern_of_zeros_is_compiled_differentiated_and_pickled(pattern, rng):
    x = ca.MX.sym("x", 3)
    y = solve_linear(*kernel(pattern)(x))
    f = ModelFunction(
        ca.Function(f"solved_{pattern}", [x], [y, ca.jacobian(y, x)], ["x"], ["y", "J"])
    )
    f.compiled()
    assert f.is_compiled
    points = rng.uniform(-0.5, 0.5, size=(5, 3))
    values, slopes = f(points)
    call = pickle.loads(pickle.dumps(f)).in_place()
    for point, value, slope in zip(points, values, slopes, strict=True):
        np.testing.assert_allclose(value, solved(pattern, point), rtol=ROUNDING, atol=ROUNDING)
        differences = [
            (solved(pattern, point + d) - solved(pattern, point - d)) / 2e-5
            for d in 1e-5 * np.eye(3)
        ]
        np.testing.assert_allclose(slope, np.transpose(differences), rtol=0, atol=DIFFERENCE)
        call.inputs["x"][:] = point
        np.testing.assert_allclose(call().y, value, rtol=ROUNDING)


@pytest.mark.parametrize("pattern", ["lower", "diagonal"])
def test_what_casadi_cannot_read_again_is_refused_when_it_is_pickled(pattern):
    x = ca.MX.sym("x", 3)
    f = ModelFunction(ca.Function("triangular", [x], [ca.solve(*kernel(pattern)(x))]).map(2))
    with pytest.raises(TypeError, match="solve_linear"):
        pickle.dumps(f)


def test_what_cannot_be_solved_is_refused():
    A = ca.MX.sym("A", 3, 3)
    with pytest.raises(ValueError, match=r"square .* \(3, 3\) and \(2, 1\)"):
        solve_linear(A, ca.MX.sym("b", 2))
    with pytest.raises(ValueError, match="rank 2 < 3"):
        solve_linear(ca.MX(ca.diagcat(A[:2, :2], ca.MX(1, 1))), A[:, 0])
    with pytest.raises(TypeError, match="of one kind"):
        solve_linear(A, ca.SX.sym("b", 3))


@pytest.mark.parametrize(
    "solve",
    [
        solve_linear,
        lambda A, b: solve_linear(A, b, symmetric=True),
        lambda A, b: ca.solve(A, b, "qr"),
    ],
)
def test_singular_equations_give_no_numbers_and_raise_nothing(solve):
    A, b = ca.MX.sym("A", 2, 2), ca.MX.sym("b", 2)
    f = ModelFunction(ca.Function("maybe", [A, b], [solve(A, b)]))
    items = np.array([np.eye(2), np.zeros((2, 2)), 2 * np.eye(2)])
    for _ in range(2):
        result = f(items, [1.0, 2.0])
        np.testing.assert_array_equal(result[[0, 2]], [[1.0, 2.0], [0.5, 1.0]])
        assert not np.isfinite(result[1]).any()
        assert not np.isfinite(f(items[1], [1.0, 2.0])).any()
        f.compiled()
        assert f.is_compiled


def test_systems_that_are_singular_for_every_input_are_compiled():
    x = ca.MX.sym("x", 3)
    f = ModelFunction(ca.Function("rank_one", [x], [solve_linear(x @ x.T, x)]))
    assert f.compiled().is_compiled


def implicit_step():
    """Backward Euler with three Newton steps, an SX kernel inside an MX step."""
    z, x, h = ca.SX.sym("z", 3), ca.SX.sym("x", 3), ca.SX.sym("h")
    slope = ca.vertcat(z[1] - z[0] ** 3, -ca.sin(z[0]) - z[1], z[0] * z[1] - 10 * z[2])
    equations = z - x - h * slope
    kernel = ca.Function("equations", [z, x, h], [equations, ca.jacobian(equations, z)])
    start, dt = ca.MX.sym("x", 3), ca.MX.sym("dt")
    end = start
    for _ in range(3):
        r, J = kernel(end, start, dt)
        end = end - solve_linear(J, r)
    outputs = [end, ca.norm_inf(kernel(end, start, dt)[0])]
    step = ca.Function("implicit", [start, dt], outputs, ["x", "dt"], ["x_next", "residual"])
    return ModelFunction(step, shapes={"dt": (), "residual": ()})


@pytest.mark.parametrize("copied", [lambda f: f, copy.deepcopy])
def test_chains_of_implicit_steps_are_machine_code(copied, compiler, rng):
    starts = rng.normal(size=(6, 3))
    rollout = chain(implicit_step(), 40, carry=("x", "x_next"))
    interpreted = [rollout(x, 0.05) for x in starts]
    rollout = copied(rollout.compiled())
    together = rollout(starts, 0.05)
    for k, x in enumerate(starts):
        one = rollout(x, 0.05)
        np.testing.assert_allclose(one.x_next, interpreted[k].x_next, rtol=0, atol=ROUNDING)
        np.testing.assert_array_equal(one.x_next, together.x_next[k])
        assert one.residual.max() < 1e-6
    assert rollout.is_compiled


def several(name, kind):
    x = ca.MX.sym("x", 3)
    y = solve_linear(*kernel("full")(x))
    if kind == "if":
        y = ca.if_else(x[0] > 0, y, x, True)
    if kind == "case":
        y = ca.conditional(ca.floor(x[0]), [y, 2 * y], x, True)
    f = ca.Function(name, [x], [y])
    if kind == "switch":
        return ca.Function.conditional(name, [f, ca.Function("other", [x], [x])], f)
    return {"mapaccum": f.mapaccum, "map": f.map}[kind](4) if "map" in kind else f


@pytest.mark.usually(kind=("mapaccum", "if", "switch"))
@pytest.mark.parametrize("kind", ["map", "mapaccum", "if", "case", "switch"])
def test_maps_and_branches_around_equations_are_compiled(kind, rng):
    f = ModelFunction(several(f"around_{kind}", kind))
    values = [rng.uniform(0.1, 1.9, size=shape) for shape in f.argument_shapes]
    want = f(*values)
    np.testing.assert_allclose(f.compiled()(*values), want, rtol=ROUNDING, atol=ROUNDING)
    assert f.is_compiled and f.instructions > 0


def test_maps_over_threads_are_compiled_as_loops(rng):
    x = ca.SX.sym("x", 3)
    f = ModelFunction(ca.Function("square", [x], [x**2]).map(4, "thread", 2)).compiled()
    values = rng.normal(size=(3, 4))
    np.testing.assert_array_equal(f(values), values**2)
    assert f.is_compiled


def sigma_points(n, guard):
    """A step of an unscented filter, mean and triangle of P in one column; its root is guarded."""
    z = ca.SX.sym("z", n + n * (n + 1) // 2)
    lower = [(i, j) for j in range(n) for i in range(j, n)]
    P, L = ca.SX(n, n), ca.SX.zeros(n, n)
    for k, (i, j) in enumerate(lower):
        P[i, j] = P[j, i] = z[n + k]
    for j in range(n):
        L[j, j] = ca.sqrt(ca.fmax(P[j, j] - ca.sumsqr(L[j, :j]), guard))
        for i in range(j + 1, n):
            L[i, j] = (P[i, j] - L[i, :j] @ L[j, :j].T) / L[j, j]
    points = [z[:n], *(z[:n] + s * L[:, i] for s in (1, -1) for i in range(n))]
    moved = [ca.sin(p) + p for p in points]
    mean = ca.sum2(ca.horzcat(*moved)) / len(moved)
    off = ca.horzcat(*(p - mean for p in moved))
    spread = off @ off.T / len(moved)
    column = ca.vertcat(mean, *(spread[i, j] + 0.01 for i, j in lower))
    return ModelFunction(ca.Function("sigma", [z], [column], ["z"], ["z_next"]))


def test_guarded_roots_of_random_covariances_do_not_refuse_the_code(fresh, notices):
    n = 4
    rollout = chain(sigma_points(n, 1e-12), 5, carry=("z", "z_next"))
    z = np.concatenate([np.full(n, 0.3), [float(i == j) for j in range(n) for i in range(j, n)]])
    want = rollout(z)
    np.testing.assert_allclose(rollout.compiled()(z), want, rtol=1e-10, atol=1e-12)
    assert rollout.is_compiled and not notices()


RCOND = 1e-9
INVERTED = 1e-11  # relative, at a condition of 100, and where numbers of 1e-12 count as none
SHAPES = [(1, 1), (4, 1), (1, 3), (6, 4), (4, 6), (8, 8), (12, 9)]


@pytest.mark.usually(shape=((1, 3), (6, 4), (4, 6)))
@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
@pytest.mark.parametrize("shape", SHAPES)
def test_pseudo_inverses_of_every_rank_are_those_of_numpy(kind, shape, rng):
    A = kind.sym("A", *shape)
    inverse = ca.Function("inverse", [A], [pseudo_inverse(A, RCOND)])
    for rank in range(min(shape) + 1):
        for _ in range(5):
            U, V = (np.linalg.qr(rng.normal(size=(n, n)))[0][:, : min(shape)] for n in shape)
            sizes = np.full(min(shape), 1e-12)
            sizes[:rank] = 10 ** rng.uniform(-1, 1, rank)
            value = (U * (sizes if rank else 0)) @ V.T
            want = np.linalg.pinv(value, rcond=RCOND)
            found = inverse(value).full()
            np.testing.assert_allclose(found, want, atol=INVERTED * max(1.0, np.abs(want).max()))


def test_what_stays_of_a_pseudo_inverse_is_folded():
    """Numbers cost nothing, nor do rows and columns without any."""
    t = ca.SX.sym("t")
    B = ca.SX(6, 3)
    B[2:5, :2] = ca.DM([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
    inverse = pseudo_inverse(B, RCOND)
    assert inverse.is_constant()
    np.testing.assert_allclose(
        ca.evalf(inverse).full(), np.linalg.pinv(ca.evalf(B).full()), atol=ROUNDING
    )
    B[2, 0] = t
    found = ca.Function("found", [t], [pseudo_inverse(B, RCOND)])
    want = np.linalg.pinv(ca.evalf(ca.substitute(B, t, 1.0)).full())
    np.testing.assert_allclose(found(1.0).full(), want, atol=INVERTED)
    assert found.n_instructions() < 700
