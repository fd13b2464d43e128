"""Multiple shooting in error coordinates: a problem and a guess become a stage QP."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..codegen import compile
from ._problem import OptimalControlProblem
from ._stage_functions import build_functions
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
        self._functions, self.rows = build_functions(problem)

    def compiled(self) -> Transcription:
        """Compile the functions to machine code: seconds once, then quicker by an order."""
        compile([*self._functions, self.problem.system.state.function("plus")])
        return self

    def linearize(self, nodes: Nodes, setting: Setting, x0: np.ndarray) -> tuple[Values, StageQP]:
        """Cost and gaps of the nodes, and the QP in the steps from them."""
        n = self.problem.system.state.dim
        stage = self._functions.stage(*self._stage_arguments(nodes, setting))
        last = self._functions.terminal(*self._terminal_arguments(nodes, setting))
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
        stage = self._functions.stage_values(*self._stage_arguments(nodes, setting))
        last = self._functions.terminal_values(*self._terminal_arguments(nodes, setting))
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
