"""Multiple shooting in error coordinates: a problem and a guess become a stage QP."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, compile
from ..systems import step_derivatives
from ._bounds import build_rows
from ._problem import OptimalControlProblem
from ._stage_qp import StageQP


class Nodes(NamedTuple):
    """A guess: where each node is. States need not follow from each other.

    Attributes
    ----------
    t : ndarray, shape (N + 1,)
    x : ndarray, shape (N + 1, nq)
    u : ndarray, shape (N, n_inputs)
    """

    t: np.ndarray
    x: np.ndarray
    u: np.ndarray


class Setting(NamedTuple):
    """What a solve is given besides the guess.

    Attributes
    ----------
    x_ref, u_ref : ndarray
        Shapes (N + 1, nq), (N + 1, n_inputs).
    p : ndarray
        Parameters of the system and of the problem.
    terminal : ndarray, shape (dim, dim)
        Weight on the last error.
    """

    x_ref: np.ndarray
    u_ref: np.ndarray
    p: np.ndarray
    terminal: np.ndarray


class Values(NamedTuple):
    """What a guess costs and where it violates.

    Attributes
    ----------
    cost : float
        Without penalties on soft bounds.
    gaps : ndarray, shape (N, dim)
        Tangent vectors from each node to where the step before it ends.
    rows : ndarray, shape (N + 1, rows)
        Values of the bounded quantities.
    """

    cost: float
    gaps: np.ndarray
    rows: np.ndarray


class Transcription:
    """Functions of one problem, evaluated for all stages of its horizon at once.

    Around nodes ``x̄_k`` on the group the unknowns are tangent vectors ε_k with
    ``x_k = plus(x̄_k, ε_k)``. With the gap ``c = minus(step(x̄_k, ū_k), x̄_{k+1})`` the dynamics are
    ``ε_{k+1} = c + J_r(c)⁻¹ (A ε_k + B δu_k)`` to first order, A and B being the exact derivatives
    of the step; the cost is that of Gauss and Newton.

    Parameters
    ----------
    problem : OptimalControlProblem

    Attributes
    ----------
    rows : BoundRows
        Bounds other than those of the inputs.
    """

    def __init__(self, problem: OptimalControlProblem) -> None:
        self.problem = problem
        self.controls = problem.system.input_index("control")
        bounds = [bound[self.controls] for bound in problem.system.input_bounds]
        self.u_lower, self.u_upper = bounds
        self._build()

    def compiled(self) -> Transcription:
        """Compile the functions to machine code: seconds once, then quicker by an order."""
        plus = self.problem.system.state.function("plus")
        compile([self._stage, self._stage_values, self._terminal, self._terminal_values, plus])
        return self

    # -- evaluation --------------------------------------------------------------------------------

    def linearize(self, nodes: Nodes, setting: Setting, x0: np.ndarray) -> tuple[Values, StageQP]:
        """Cost and gaps of the nodes, and the QP in the steps from them."""
        n = self.problem.system.state.dim
        stage = self._stage(*self._stage_arguments(nodes, setting))
        last = self._terminal(*self._terminal_arguments(nodes, setting))
        C, D = np.split(stage.G, [n], axis=2)
        rows = np.concatenate([stage.rows, last.rows[None]])
        controls = nodes.u[:, self.controls]
        qp = StageQP(
            x0=self.problem.system.state.minus(x0, nodes.x[0]),
            A=stage.A,
            B=stage.B,
            c=stage.gap,
            Q=np.concatenate([stage.H[:, :n, :n], last.H[None]]),
            S=stage.H[:, n:, :n],
            R=stage.H[:, n:, n:],
            q=np.concatenate([stage.g[:, :n], last.g[None]]),
            r=stage.g[:, n:],
            u_lower=self.u_lower - controls,
            u_upper=self.u_upper - controls,
            C=np.concatenate([C, last.G[None]]),
            D=D,
            lower=self.rows.lower - rows,
            upper=self.rows.upper - rows,
            active=self.rows.active,
            soft=self.rows.soft * self.problem.dt,
        )
        return Values(float(stage.cost.sum() + last.cost), stage.gap, rows), qp

    def values(self, nodes: Nodes, setting: Setting) -> Values:
        """Cost and gaps alone."""
        stage = self._stage_values(*self._stage_arguments(nodes, setting))
        last = self._terminal_values(*self._terminal_arguments(nodes, setting))
        rows = np.concatenate([stage.rows, last.rows[None]])
        return Values(float(stage.cost.sum() + last.cost), stage.gap, rows)

    def move(self, nodes: Nodes, x: np.ndarray, u: np.ndarray) -> Nodes:
        """Nodes displaced by tangent vectors x (N + 1, dim) and controls u (N, m)."""
        inputs = nodes.u.copy()
        moved = np.clip(inputs[:, self.controls] + u, self.u_lower, self.u_upper)
        inputs[:, self.controls] = moved
        return Nodes(nodes.t, self.problem.system.state.plus(nodes.x, x), inputs)

    def excess(self, values: Values) -> np.ndarray:
        """How far bounded quantities are outside of their limits, shape (N + 1, rows)."""
        return self.rows.excess(values.rows)

    def penalty(self, values: Values, soft: np.ndarray) -> float:
        """Price of exceeding rows with finite weights."""
        finite = np.isfinite(soft)
        s = self.excess(values)[:, finite]
        return float((soft[finite] * (s + s**2 / 2)).sum())

    def _stage_arguments(self, nodes: Nodes, setting: Setting) -> tuple[np.ndarray, ...]:
        return (
            nodes.t[:-1], nodes.x[:-1], nodes.u, nodes.x[1:],
            setting.x_ref[:-1], setting.u_ref[:-1], setting.p,
        )  # fmt: skip

    def _terminal_arguments(self, nodes: Nodes, setting: Setting) -> tuple[Any, ...]:
        end = (nodes.t[-1], nodes.x[-1], setting.x_ref[-1], setting.u_ref[-1])
        return (*end, setting.p, setting.terminal)

    # -- construction ------------------------------------------------------------------------------

    def _build(self) -> None:
        problem, system = self.problem, self.problem.system
        group, sym, controls = system.state, system.symbol.sym, self.controls.tolist()
        t, x, u = sym("t"), sym("x", group.nq), sym("u", system.n_inputs)
        x_next, x_ref = sym("x_next", group.nq), sym("x_ref", group.nq)
        u_ref, p = sym("u_ref", system.n_inputs), sym("p", len(problem.nominal_parameters))
        P = sym("P", group.dim, group.dim)
        own = p[: system.n_parameters]
        step = step_derivatives(system, problem.method, problem.substeps).function
        after, A, B = step(t, x, u, own, problem.dt)
        gap = group.minus(after, x_next)
        correction = group.right_jacobian_inverse(gap)
        rows, self.rows = build_rows(system, problem.bounds, problem.horizon, (t, x, u, p, x_ref))
        lift = group.rate_matrix(x)

        def derivative(value: Any) -> Any:
            """By the tangent vector of x, then by the controls."""
            by_u = ca.jacobian(value, u)[:, controls]
            return ca.horzcat(ca.jacobian(value, x) @ lift, by_u)

        error = group.minus(x, x_ref)
        error_jacobian = group.right_jacobian_inverse(error)
        terms = [(r.expression(system.symbol, t, x, u, p), r) for r in problem.residuals]
        path = [
            (error, ca.horzcat(error_jacobian, ca.DM(group.dim, len(controls))), problem.Q),
            (
                (u - u_ref)[controls],
                ca.horzcat(ca.DM(len(controls), group.dim), ca.DM.eye(len(controls))),
                problem.R,
            ),
        ] + [
            (value, derivative(value), residual.weight_matrix(value.shape[0], at_end=False))
            for value, residual in terms
        ]
        end = [(error, error_jacobian, P)] + [
            (
                value,
                ca.jacobian(value, x) @ lift,
                residual.weight_matrix(value.shape[0], at_end=True),
            )
            for value, residual in terms
        ]
        cost, g, H = _gauss_newton(path)
        stage = {
            "cost": problem.dt * cost,
            "gap": gap,
            "rows": rows,
            "A": correction @ A,
            "B": (correction @ B)[:, controls],
            "g": problem.dt * g,
            "H": problem.dt * H,
            "G": derivative(rows),
        }
        inputs = {
            "t": t, "x": x, "u": u, "x_next": x_next, "x_ref": x_ref, "u_ref": u_ref, "p": p,
        }  # fmt: skip
        self._stage = self._function("stage", inputs, stage)
        short = dict(list(stage.items())[:3]) | {
            "gap": group.minus(
                system.step(problem.method, problem.substeps).function(t, x, u, own, problem.dt),
                x_next,
            )
        }
        self._stage_values = self._function("stage_values", inputs, short)

        cost, g, H = _gauss_newton(end)
        inputs = {"t": t, "x": x, "x_ref": x_ref, "u": u, "p": p, "P": P}
        last = {"cost": cost, "rows": rows, "g": g, "H": H, "G": ca.jacobian(rows, x) @ lift}
        self._terminal = self._function("terminal", inputs, last)
        self._terminal_values = self._function(
            "terminal_values", inputs, dict(list(last.items())[:2])
        )

    def _function(
        self, name: str, inputs: dict[str, Any], results: dict[str, Any]
    ) -> ModelFunction:
        symbol, n = self.problem.system.symbol, self.problem.system.state.dim
        rows, both = len(self.rows.names), n + len(self.controls)
        sizes = {"cost": (), "t": (), "P": (n, n), "A": (n, n), "B": (n, both - n)}
        sizes |= (
            {"H": (n, n), "G": (rows, n)}
            if "P" in inputs
            else {"H": (both, both), "G": (rows, both)}
        )
        expressions: Any = [ca.densify(symbol(value)) for value in results.values()]
        if symbol is ca.SX:
            expressions = ca.cse(expressions)
        function = ca.Function(name, [*inputs.values()], expressions, [*inputs], [*results])
        used = {key: value for key, value in sizes.items() if key in (*inputs, *results)}
        return ModelFunction(function, shapes=used)


def _gauss_newton(terms: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """Cost, gradient and Hessian of ``½ Σ rᵀ W r`` from r, its Jacobian and W."""
    cost, gradient, hessian = ca.DM(0), ca.DM(0), ca.DM(0)
    for value, jacobian, weight in terms:
        if weight is None:
            continue
        W = ca.sparsify(ca.DM(weight)) if isinstance(weight, np.ndarray) else weight
        weighted = W @ jacobian
        cost = cost + ca.dot(value, W @ value) / 2
        gradient = gradient + weighted.T @ value
        hessian = hessian + jacobian.T @ weighted
    return cost, gradient, hessian
