"""Compiled code, scalar and vector, against the interpreted function and against NumPy."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, _emit, compile, trace
from lgcontrol.codegen._emit import EXPRESSIONS
from lgcontrol.codegen._kernel import Table
from lgcontrol.groups import SE3, SO3

from ._functions import glue_with_solve, matrix_function, pendulum_step

pytestmark = pytest.mark.usefixtures("compiler")

# glibc states 4 units in the last place for its vector functions; everything else is exact.
VECTOR_ULP = 4
# Fused multiply-adds round once where the interpreter rounds twice.
ROUNDING = 1e-13

# Every operation that code is emitted for, with an expression that needs it.
OPERATIONS = {
    ca.OP_ADD: lambda a, b: a + b,
    ca.OP_SUB: lambda a, b: a - b,
    ca.OP_MUL: lambda a, b: a * b,
    ca.OP_DIV: lambda a, b: a / b,
    ca.OP_NEG: lambda a, b: -a,
    ca.OP_SQ: lambda a, b: a**2,
    ca.OP_TWICE: lambda a, b: 2 * a,
    ca.OP_INV: lambda a, b: 1 / a,
    ca.OP_LT: lambda a, b: a < b,
    ca.OP_LE: lambda a, b: a <= b,
    ca.OP_EQ: lambda a, b: a == b,
    ca.OP_NE: lambda a, b: a != b,
    ca.OP_NOT: lambda a, b: ca.logic_not(a > b),
    ca.OP_AND: lambda a, b: ca.logic_and(a > 0, b > 0),
    ca.OP_OR: lambda a, b: ca.logic_or(a > 0, b > 0),
    ca.OP_IF_ELSE_ZERO: lambda a, b: ca.if_else(a > b, a, b),
    ca.OP_FMIN: lambda a, b: ca.fmin(a, b),
    ca.OP_FMAX: lambda a, b: ca.fmax(a, b),
    ca.OP_FABS: lambda a, b: ca.fabs(a),
    ca.OP_SIGN: lambda a, b: ca.sign(a),
    ca.OP_SQRT: lambda a, b: ca.sqrt(a),
    ca.OP_FLOOR: lambda a, b: ca.floor(a),
    ca.OP_CEIL: lambda a, b: ca.ceil(a),
    ca.OP_SIN: lambda a, b: ca.sin(a),
    ca.OP_COS: lambda a, b: ca.cos(a),
    ca.OP_TAN: lambda a, b: ca.tan(a),
    ca.OP_ASIN: lambda a, b: ca.asin(a),
    ca.OP_ACOS: lambda a, b: ca.acos(a),
    ca.OP_ATAN: lambda a, b: ca.atan(a),
    ca.OP_SINH: lambda a, b: ca.sinh(a),
    ca.OP_COSH: lambda a, b: ca.cosh(a),
    ca.OP_TANH: lambda a, b: ca.tanh(a),
    ca.OP_ASINH: lambda a, b: ca.asinh(a),
    ca.OP_ACOSH: lambda a, b: ca.acosh(a),
    ca.OP_ATANH: lambda a, b: ca.atanh(a),
    ca.OP_EXP: lambda a, b: ca.exp(a),
    ca.OP_LOG: lambda a, b: ca.log(a),
    ca.OP_EXPM1: lambda a, b: ca.expm1(a),
    ca.OP_LOG1P: lambda a, b: ca.log1p(a),
    ca.OP_ERF: lambda a, b: ca.erf(a),
    ca.OP_POW: lambda a, b: a**b,
    ca.OP_CONSTPOW: lambda a, b: a**2.5,
    ca.OP_ATAN2: lambda a, b: ca.atan2(a, b),
    ca.OP_HYPOT: lambda a, b: ca.hypot(a, b),
    ca.OP_FMOD: lambda a, b: ca.fmod(a, b),
    ca.OP_REMAINDER: lambda a, b: ca.remainder(a, b),
    ca.OP_COPYSIGN: lambda a, b: ca.copysign(a, b),
}
EXACT_IN_VECTORS = """
    ADD SUB MUL DIV NEG SQ TWICE INV LT LE EQ NE NOT AND OR IF_ELSE_ZERO FMIN FMAX FABS SIGN SQRT
    FLOOR CEIL FMOD REMAINDER COPYSIGN
""".split()

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 1e-300, 1e300, np.inf, -np.inf, np.nan, 3.7, -0.1]


def every_operation() -> ModelFunction:
    return trace(
        "operations",
        lambda a, b: [build(a, b) for build in OPERATIONS.values()],
        {"a": (), "b": ()},
        {f"r{k}": () for k in OPERATIONS},
    )


@pytest.fixture(scope="module")
def pairs():
    values = np.concatenate([SPECIAL, np.random.default_rng(3).normal(size=20)])
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


def test_every_emitted_operation_is_tested():
    assert set(EXPRESSIONS) - {ca.OP_ASSIGN} == set(OPERATIONS)
    function = every_operation().function
    used = {function.instruction_id(k) for k in range(function.n_instructions())}
    assert set(OPERATIONS) <= used


def test_scalar_code_computes_each_operation_like_the_interpreter(pairs):
    interpreted, compiled = every_operation(), every_operation().compiled(batch=False)
    assert compiled.is_compiled
    for a, b in zip(*pairs, strict=True):
        for name, want, have in zip(
            interpreted.results, interpreted(a, b), compiled(a, b), strict=True
        ):
            np.testing.assert_array_equal(have, want, err_msg=f"{name} of {a}, {b}")


def test_vector_code_computes_each_operation_like_the_interpreter(pairs, compiler):
    if compiler.width == 1:
        pytest.skip("no vectors here")
    interpreted, compiled = every_operation(), every_operation().compiled()
    assert compiled._backend.vector is not None
    each = [interpreted(a, b) for a, b in zip(*pairs, strict=True)]
    expected = [np.array(column) for column in zip(*each, strict=True)]
    for operation, want, have in zip(OPERATIONS, expected, compiled(*pairs), strict=True):
        name = next(n for n in vars(ca) if n.startswith("OP_") and getattr(ca, n) == operation)
        if name.removeprefix("OP_") in EXACT_IN_VECTORS:
            np.testing.assert_array_equal(have, want, err_msg=name)
        else:
            np.testing.assert_array_equal(np.isfinite(have), np.isfinite(want), err_msg=name)
            finite = np.isfinite(want)
            np.testing.assert_array_max_ulp(have[finite], want[finite], VECTOR_ULP)
            np.testing.assert_array_equal(have[~finite], want[~finite], err_msg=name)


@pytest.mark.usually(group=(SE3,), operation=("compose", "log", "right_jacobian"))
@pytest.mark.parametrize("operation", ["compose", "log", "exp", "minus", "Ad", "right_jacobian"])
@pytest.mark.parametrize("group", [SO3, SE3], ids=str)
def test_group_operations_agree(group, operation, rng, has_vectors):
    function = group.function(operation).function
    interpreted, compiled = ModelFunction(function), compile(function)
    assert has_vectors(compiled)
    kinds = {group.nq: group.random(1, (19,)), group.dim: rng.normal(size=(19, group.dim))}
    arguments = [kinds[shape[0]] for shape in interpreted.argument_shapes]
    want = interpreted(*arguments)
    np.testing.assert_allclose(compiled(*arguments), want, rtol=ROUNDING, atol=ROUNDING)
    for k in range(3):
        one = compiled(*(argument[k] for argument in arguments))
        np.testing.assert_allclose(one, want[k], rtol=ROUNDING, atol=ROUNDING)


def test_without_contraction_single_calls_are_bit_for_bit_the_interpreted_ones(rng):
    function = SE3.function("minus").function
    interpreted, compiled = ModelFunction(function), compile(function, contract=False)
    for X, Y in zip(SE3.random(1, (50,)), SE3.random(2, (50,)), strict=True):
        np.testing.assert_array_equal(compiled(X, Y), interpreted(X, Y))


@pytest.mark.parametrize("contract", [True, False])
def test_long_functions_are_cut_into_pieces(fresh, monkeypatch, rng, has_vectors, contract):
    """Every value that a later piece needs reaches it."""
    monkeypatch.setattr(_emit, "_WHOLE", 50)
    monkeypatch.setattr(_emit, "_PIECE", 23)
    function = SE3.function("left_jacobian_inverse").function
    body = _emit.emit_body(function, packed=True)
    assert body.text.count("lg_body_part") > 10 and body.work > 10
    compiled = compile(function, contract=contract)
    assert compiled.is_compiled and has_vectors(compiled)
    d = rng.normal(size=(19, 6))
    want = ModelFunction(function)(d)
    np.testing.assert_allclose(compiled(d), want, rtol=ROUNDING, atol=ROUNDING)
    for k in range(3):
        np.testing.assert_allclose(compiled(d[k]), want[k], rtol=ROUNDING, atol=ROUNDING)


def test_sums_of_matrices_grow_together_so_that_their_terms_are_not_all_in_memory(rng):
    """Of five matrices of 64 entries, whose squares are added, three are in memory at most."""
    J = ca.SX.sym("J", 8, 8)
    X, total = J.T + ca.SX.eye(8), ca.SX(8, 8)
    for _ in range(5):
        total, X = total + X.T @ X, J @ X
    function = ca.Function("squares", [J], [total])
    assert _emit.emit_body(function, packed=True).work < 3 * 64
    made, given = ModelFunction(function), rng.normal(size=(9, 8, 8)) / 4
    np.testing.assert_allclose(compile(function)(given), made(given), rtol=1e-11)


@pytest.mark.parametrize("length", [1000, 7])
def test_what_no_item_asks_for_is_skipped(fresh, monkeypatch, length):
    """One side of a switch that all items are on, and both where they differ.

    The last switch takes what an earlier one by the same condition found; the idle side of what
    two conditions share is not skipped.
    """
    monkeypatch.setattr(_emit, "_WHOLE", length)
    monkeypatch.setattr(_emit, "_PIECE", length)
    a, b = ca.SX.sym("a"), ca.SX.sym("b")
    near, shared = a < 1, ca.exp(b * b)
    root = ca.sqrt(ca.if_else(near, 1.0, a))
    first = ca.if_else(near, ca.cosh(a) / b, ca.sin(root) / root)
    second = ca.if_else(near, ca.cos(first), ca.cos(root) / (first + 7))
    third = ca.if_else(b < 2, shared, ca.tan(b) / b) + shared
    function = ca.Function("switches", [a, b], [first, second, third], ["a", "b"], [*"xyz"])
    text = _emit.emit_body(function, packed=True).text
    assert text.count("if(lg_any(") == 5  # two for `first`, two for `second`, one for `third`
    assert all(_is_skipped(text, f"lg_{word}(") for word in ("cosh", "sin", "cos", "tan"))
    assert not _is_skipped(text, "lg_exp(")
    compiled, interpreted = compile(function), ModelFunction(function)
    left, right = np.array([[0.3], [0.5], [0.7], [0.9]]), np.array([[1.0], [1.5], [5.0], [40.0]])
    for given in (left, right, np.vstack([left[:1], right, left, right])):
        for other in (given + 0.1, 3.0 - given / 20):
            want = interpreted(given, other)
            np.testing.assert_allclose(compiled(given, other), want, rtol=ROUNDING)
            one = compiled(given[1], other[1])
            np.testing.assert_allclose(one, [value[1] for value in want], rtol=ROUNDING)


def _is_skipped(text: str, word: str) -> bool:
    """Whether all calls of a function stand under a condition."""
    depth, found = 0, []
    for line in text.splitlines():
        depth += line.startswith("if(lg_any(") - line.startswith("}else{")
        found += [depth > 0] if word in line else []
    return bool(found) and all(found)


def test_equal_results_are_computed_once():
    x = ca.SX.sym("x", 3)
    M = ca.SX(3, 3)
    for i in range(3):
        for j in range(i):
            M[i, j] = M[j, i] = x[i] * x[j]
    function = ca.Function("symmetric", [x], [ca.densify(M), ca.densify(M[:2, :])])
    body = _emit.emit_body(function, packed=True)
    assert body.size == 4 and [len(slots) for slots in body.slots] == [9, 6]
    assert len({body.slots[0][0], body.slots[0][4], body.slots[1][0]}) == 1  # the zeros


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 31])
def test_an_item_does_not_depend_on_its_place_in_the_batch(count, rng):
    compiled = compile(SE3.function("minus").function)
    X, Y = SE3.random(rng, (count,)), SE3.random(rng, (count,))
    together = compiled(X, Y)
    reverse = compiled(X[::-1], Y[::-1])[::-1]
    np.testing.assert_array_equal(together, reverse)
    if count > 1:
        pairs = np.stack([compiled(X[[k, 0]], Y[[k, 0]])[0] for k in range(count)])
        np.testing.assert_array_equal(together, pairs)


@pytest.mark.parametrize("batch", [(), (1,), (5,), (3, 4), (0,)])
def test_matrices_rows_and_empty_arguments_keep_their_order(batch, rng, has_vectors):
    compiled = matrix_function().compiled()
    assert has_vectors(compiled)
    A, b = rng.normal(size=(*batch, 2, 3)), rng.normal(size=(*batch, 3))
    rows, nothing = rng.normal(size=(*batch, 2, 3)), np.zeros((*batch, 0))
    result = compiled(A, b, rows, nothing)
    assert [r.shape for r in result] == [(*batch, 2), (*batch, 3, 2), (*batch, 3), (*batch, 0)]
    np.testing.assert_allclose(result.product, np.einsum("...ij,...j->...i", A, b), atol=ROUNDING)
    np.testing.assert_array_equal(result.turned, 2 * np.swapaxes(A, -1, -2))
    np.testing.assert_allclose(
        result.sum, rows[..., 0, :] + 2 * rows[..., 1, :], rtol=ROUNDING, atol=ROUNDING
    )


def test_batch_axes_broadcast(rng):
    interpreted, compiled = pendulum_step(), pendulum_step().compiled()
    x, u, dt = rng.normal(size=(4, 1, 2)), rng.normal(size=(3,)), rng.normal(size=(2, 1, 1))
    want, have = interpreted(x, u, dt), compiled(x, u, dt)
    assert have.x_next.shape == (2, 4, 3, 2) and have.energy.shape == (2, 4, 3)
    for w, h in zip(want, have, strict=True):
        np.testing.assert_allclose(h, w, rtol=ROUNDING, atol=ROUNDING)


def test_arguments_that_are_not_plain_arrays(rng):
    interpreted, compiled = pendulum_step(), pendulum_step().compiled()
    want = interpreted(np.array([1.0, 2.0]), 0.0, 0.5)
    read_only = np.array([1.0, 2.0])
    read_only.flags.writeable = False
    strided = np.array([1.0, 9.0, 2.0, 9.0])[::2]
    for x in ([1, 2], (1.0, 2.0), np.array([1, 2]), read_only, strided, np.float32([1, 2])):
        for u in (0, np.float64(0.0), np.array(0.0), np.int8(0)):
            have = compiled(x, u, 0.5)
            np.testing.assert_allclose(have.x_next, want.x_next, rtol=ROUNDING)
            np.testing.assert_allclose(have.energy, want.energy, rtol=ROUNDING)
    batch = np.broadcast_to(read_only, (6, 2))
    np.testing.assert_allclose(compiled(batch, 0.0, 0.5).energy, want.energy, rtol=ROUNDING)


def test_results_are_fresh_arrays():
    compiled = pendulum_step().compiled()
    first = compiled([1.0, 2.0], 0.0).x_next
    kept = first.copy()
    second = compiled([3.0, 4.0], 0.0).x_next
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second)


def test_glue_that_solves_is_compiled_from_casadis_own_code(rng):
    interpreted, compiled = glue_with_solve(), glue_with_solve().compiled()
    assert compiled.is_compiled and compiled._backend.vector is None
    A, b = rng.normal(size=(5, 3, 3)), rng.normal(size=(5, 3))
    have = compiled(A, b)
    np.testing.assert_allclose(have.check, np.einsum("kij,kj->ki", A, have.x), atol=1e-12)
    np.testing.assert_allclose(have.x, interpreted(A, b).x, atol=1e-12)


def test_small_glue_becomes_vector_code(rng, has_vectors):
    step = pendulum_step().function
    x, u = ca.MX.sym("x", 2), ca.MX.sym("u")
    function = ca.Function("two", [x, u], [step(step(x, u, 0.1)[0], u, 0.1)[0]], ["x", "u"], ["y"])
    compiled = compile(function)
    assert has_vectors(compiled)
    X, U = rng.normal(size=(9, 2)), rng.normal(size=(9, 1))
    np.testing.assert_allclose(
        compiled(X, U), ModelFunction(function)(X, U), rtol=ROUNDING, atol=ROUNDING
    )


@pytest.mark.parametrize("kind", ["map", "mapaccum", "glue"])
def test_maps_work_on_as_much_memory_as_their_code_needs(kind, rng):
    """Some hundred thousand bytes more than a map takes when it is interpreted."""
    x, u = ca.SX.sym("x", 50), ca.SX.sym("u", 50)
    item = ca.Function("item", [x, u], [ca.sin(x) * u[0] + u, ca.cos(x)], ["x", "u"], ["y", "z"])
    if kind == "glue":
        X, U = ca.MX.sym("x", 50, 100), ca.MX.sym("u", 50, 100)
        y, z = item.map(100)(X, U)
        function = ca.Function("glue", [X, U], [y * z, y + z], ["x", "u"], ["y", "z"])
    elif kind == "mapaccum":
        function = item.mapaccum(100)
    else:
        function = item.map(100)
    compiled = ModelFunction(function, transposed=["y", "z"]).compiled(batch=False)
    assert compiled.is_compiled
    assert compiled.program.operations >= 100 * item.n_instructions()
    arguments = [rng.normal(size=shape) for shape in compiled.argument_shapes]
    want = ModelFunction(function, transposed=["y", "z"])(*arguments)
    for have, expected in zip(compiled(*arguments), want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.usually(name=("main",))
@pytest.mark.parametrize("name", ["step", "index", "y0", "exp", "main", "lg_body", "gamma"])
def test_names_of_c_functions_do_no_harm(name):
    x = ca.SX.sym("x", 2)
    leaf = ca.Function(name, [x], [ca.exp(x) + 1], ["x"], ["y"])
    z, A = ca.MX.sym("x", 2), ca.MX.sym("A", 2, 2)
    glue = ca.Function(name, [z, A], [ca.solve(A, leaf(z))], ["x", "A"], ["y"])
    want = np.exp([0.5, 1.0]) + 1
    np.testing.assert_allclose(compile(leaf)([0.5, 1.0]), want, rtol=ROUNDING)
    np.testing.assert_allclose(compile(glue)([0.5, 1.0], np.eye(2)), want, rtol=ROUNDING)


def test_symbols_still_go_through_the_original_function():
    compiled = pendulum_step().compiled()
    x = ca.SX.sym("x", 2)
    assert isinstance(compiled(x, 0.0, 0.1).x_next, ca.SX)


@pytest.mark.usually(size=(1, 7, 8, 17))
@pytest.mark.parametrize("size", [1, 3, 6, 7, 8, 9, 12, 17])
def test_vector_code_stays_within_its_arrays(size, rng, compiler):
    """Blocks reach into neighbouring items, never beyond the first and the last."""
    if compiler.width == 1:
        pytest.skip("no vectors here")
    x, y = ca.SX.sym("x", size), ca.SX.sym("y", size)
    compiled = compile(ca.Function(f"shifted_{size}", [x, y], [x + y, x - y]))
    kernel = compiled._backend.vector
    for items in (1, 2, kernel.width - 1, kernel.width, kernel.width + 1, 3 * kernel.width - 2):
        around = 3 * kernel.width * size
        memory = [np.full(around * 2 + items * size, 7.0) for _ in range(2)]
        results = [m[around:-around].reshape(items, size) for m in memory]
        arguments = [rng.normal(size=(items, size)), rng.normal(size=(1, size))]
        assert Table(items, 1, arguments, results).run(kernel.run) == 0
        np.testing.assert_array_equal(results[0], arguments[0] + arguments[1])
        np.testing.assert_array_equal(results[1], arguments[0] - arguments[1])
        for m in memory:
            assert np.all(m[:around] == 7.0) and np.all(m[-around:] == 7.0)
