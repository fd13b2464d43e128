"""Small functions that the tests compile."""

import casadi as ca

from lgcontrol.codegen import ModelFunction, trace


def pendulum_step() -> ModelFunction:
    """A step ``(x, u, dt) → x⁺, energy`` of a pendulum, midpoint rule."""

    def field(x, u):
        return ca.vertcat(x[1], u - ca.sin(x[0]))

    def build(x, u, dt):
        after = x + dt * field(x + dt / 2 * field(x, u), u)
        return after, after[1] ** 2 / 2 - ca.cos(after[0])

    return trace(
        "step",  # a name that the C library has too
        build,
        {"x": (2,), "u": (), "dt": ()},
        {"x_next": (2,), "energy": ()},
        defaults={"dt": 0.1},
    )


def matrix_function() -> ModelFunction:
    """Matrices that are not square, not symmetric, a list of vectors, an empty argument."""

    def build(A, b, rows, nothing):
        return A @ b, A.T * 2, rows[:, 0] + 2 * rows[:, 1], ca.vertcat(nothing, 3 * nothing)

    A, b = ca.SX.sym("A", 2, 3), ca.SX.sym("b", 3)
    rows, nothing = ca.SX.sym("rows", 3, 2), ca.SX.sym("nothing", 0)
    function = ca.Function(
        "mixed",
        [A, b, rows, nothing],
        list(build(A, b, rows, nothing)),
        ["A", "b", "rows", "nothing"],
        ["product", "turned", "sum", "empty"],
    )
    return ModelFunction(function, transposed=["rows"])


def glue_with_solve() -> ModelFunction:
    """An MX function that cannot become an SX function of moderate size: it solves and calls."""
    A, b = ca.MX.sym("A", 3, 3), ca.MX.sym("b", 3)
    x = ca.solve(A + 4 * ca.MX.eye(3), b)
    return ModelFunction(ca.Function("glue", [A, b], [x, A @ x], ["A", "b"], ["x", "check"]))
