"""Matrix functions as tables of steps: each kind of step, memory that is used again, sizes."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction
from lgcontrol.codegen._tape import _CASES, read_tape

pytestmark = pytest.mark.usefixtures("compiler")

# Fused multiply-adds round once where the interpreter rounds twice.
ROUNDING = 1e-13
# The same times the condition of random matrices of five rows.
SOLVED = 1e-11


def leaf() -> ca.Function:
    """An SX function with a sparse result that is called many times."""
    x, y = ca.SX.sym("x", 3), ca.SX.sym("y", 2)
    return ca.Function("leaf", [x, y], [ca.sin(x) * y[0] + y[1], ca.diag(x) * y[0]])


def every_step() -> ca.Function:
    """A function that cannot be written out small, with every kind of step."""
    f = leaf()
    X, Y, s = ca.MX.sym("X", 3, 40), ca.MX.sym("Y", 2), ca.MX.sym("s")
    a, sparse = f.map(40)(X, ca.repmat(Y, 1, 40))
    columns = ca.horzsplit(a)
    state = columns[0]
    for column in columns[1:]:  # one call after the other
        state = f(state / 8 + column, Y)[0]
    spread = ca.mtimes(X.T, a)  # 40 × 40
    lower = ca.mac(X.T, a, ca.MX.zeros(ca.Sparsity.lower(40)))
    results = {
        "chained": state,
        "diagonals": ca.densify(sparse),
        "symmetric": ca.densify(lower) + ca.densify(lower).T,
        "added": ca.mac(X.T, a, 2 * spread),
        "cut": ca.horzcat(spread[2:9, 5:11], spread[[3, 1, 0, 2, 7, 5, 4], 7:9]),
        "picked": spread[:, [4, 5, 6, 7, 0, 1, 2, 3, 20]],
        "scaled": s * a - a / s + ca.MX(ca.DM(np.arange(120.0).reshape(3, 40))),
        "one": ca.dot(a, X) + ca.sumsqr(X),
        "stacked": ca.vertcat(state, Y, ca.MX.zeros(2), ca.MX(ca.DM([1, -0.5, 0]))),
        "unit": ca.MX(ca.densify(ca.DM.eye(20))) * s,
    }
    return ca.Function("steps", [X, Y, s], list(results.values()), ["X", "Y", "s"], list(results))


def solving() -> ca.Function:
    """Linear equations in a function that is called, which pivots, and sparse matrices."""
    A, b = ca.MX.sym("A", 5, 5), ca.MX.sym("b", 5, 2)
    M = ca.MX(ca.Sparsity.lower(5), ca.vertcat(*(A[i, j] for j in range(5) for i in range(j, 5))))
    x, y = ca.solve(A - 1.25 * ca.MX.eye(5), b, "qr"), ca.solve((A + A.T).T, b[:, 0], "qr")
    inner = ca.Function("inner", [A, b], [x, ca.horzcat(y, ca.norm_inf(x) * b[:, 0])])
    moved, sums = inner(A, leaf()(b[:3, 0], b[3:, 1])[0][0] + b)
    again, _ = inner(A + 1, b)
    kept = b + 1  # stays as it is where the product is added to it in a function that is called
    adds = ca.Function("adds", [A, b], [ca.mac(A, A, A), ca.mac(A, b, b)])(A, kept)[1]
    changed = ca.MX(A)
    changed[1:4, 2] = b[:3, 1]
    changed[[4, 0], [0, 3]] += b[1:3, :]
    upper, lower = ca.vertsplit(ca.sin(b[:, 1]), [0, 2, 5])
    results = [moved, sums, again, M.T @ (M @ b), adds, kept, changed, A, upper, ca.sumsqr(lower)]
    return ca.Function("solving", [A, b], results)


def test_every_kind_of_step_is_tested():
    steps = read_tape(every_step()).steps + read_tape(solving(), is_dense=True).steps
    used = {step[0].split()[0] if step[0] not in _CASES else step[0] for step in steps}
    assert used == {*_CASES, "call", "unary", "binary"}


def test_equations_that_steps_solve_are_those_of_casadi(rng):
    model = ModelFunction(solving())
    tape = model.program.__dict__["tape"] = model.program.solving_tape
    assert len(tape.functions) == 1
    A, b = rng.normal(size=(11, 5, 5)), rng.normal(size=(11, 5, 2))
    A[:, 0, 0] = 1.25  # no pivot without an exchange of rows
    compiled, want = model.compiled(), [solving()(*item) for item in zip(A, b, strict=True)]
    assert compiled.program.solving_tape is tape
    one = compiled(A[0], b[0])
    for i, found in enumerate(compiled(A, b)):
        exact = np.array([np.asarray(each[i]) for each in want])
        exact = exact.reshape(found.shape)
        np.testing.assert_allclose(found, exact, rtol=SOLVED, atol=SOLVED)
        np.testing.assert_allclose(one[i], exact[0], rtol=SOLVED, atol=SOLVED)


@pytest.mark.parametrize("count", [None, 11])
def test_steps_compute_what_the_interpreter_does(count, rng, has_vectors):
    compiled = ModelFunction(every_step()).compiled()
    assert compiled.is_compiled and compiled.program.flat is None
    assert count is None or has_vectors(compiled)
    batch = () if count is None else (count,)
    arguments = [rng.uniform(0.5, 2, size=batch + shape) for shape in compiled.argument_shapes]
    want = ModelFunction(every_step())(*arguments)
    for name, x, y in zip(compiled.results, compiled(*arguments), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=ROUNDING, atol=ROUNDING, err_msg=name)


def test_sums_in_place_leave_what_is_still_needed(rng):
    """The sum is the last to need z; parts of its memory are results and arguments besides."""
    X, y = ca.MX.sym("X", 6, 30), ca.MX.sym("y", 30, 5)
    f = leaf().map(30)  # keeps the function from being written out
    part = X[:, 2:7]
    z = part + 1
    kept = ca.reshape(z, 5, 6)
    summed = ca.mac(X, y, z)
    again = ca.mac(X, y, ca.mac(X, y, part))
    results = [kept, summed, again, X + f(X[:3, :], X[3:5, :])[0][0, 0]]
    function = ca.Function("sums", [X, y], results)
    compiled = ModelFunction(function).compiled(batch=False)
    assert compiled.program.tape is not None
    arguments = [rng.normal(size=(6, 30)), rng.normal(size=(30, 5))]
    want = ModelFunction(function)(*arguments)
    for x, y in zip(compiled(*arguments), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=ROUNDING, atol=ROUNDING)


def test_memory_of_what_is_no_longer_needed_is_used_again():
    x, A = ca.MX.sym("x", 50), ca.MX.sym("A", 50, 50)
    y = x
    for _ in range(100):
        y = ca.sin(A @ y)
    tape = read_tape(ca.Function("powers", [x, A], [y]))
    assert tape.size <= 50 * 50 + 4 * 50


def test_large_maps_are_vector_code_of_one_item(rng, has_vectors):
    """Code that is written once, whatever the number of calls."""
    few, many = (ModelFunction(leaf().map(n)) for n in (300, 3000))
    assert few.program.written == many.program.written
    compiled = few.compiled()
    assert compiled.is_compiled and has_vectors(compiled)
    arguments = [rng.normal(size=(9, *shape)) for shape in compiled.argument_shapes]
    want = ModelFunction(leaf().map(300))(*arguments)
    for x, y in zip(compiled(*arguments), want, strict=True):
        np.testing.assert_allclose(x, y, rtol=ROUNDING, atol=ROUNDING)


def test_what_is_no_step_is_left_to_casadi(rng):
    A, b = ca.MX.sym("A", 3, 3), ca.MX.sym("b", 3)
    solved = ca.Function("solved", [A, b], [ca.solve(A, b)])
    assert read_tape(solved) is None
    nested = ca.Function("nested", [A, b], [solved(A, leaf()(b, b[:2])[0])])
    assert read_tape(nested) is None
