"""Implicit Runge–Kutta methods: all stages at once, by a fixed number of Newton steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import memoized
from ._method import Method
from ._motion import Lifted, LiftedMotion, Motion, solver, sparse
from ._problem import Problem, Step, nan_as_infinite
from ._tableau import Row
from ._tolerance import TOLERATED


@dataclass(frozen=True)
class ImplicitRungeKutta(Method):
    """``Θᵢ = dt Σ aᵢⱼ J_r(Θⱼ)⁻¹ f(t + cⱼ dt, x exp Θⱼ)``, the last stage being the step.

    Newton's method solves the equations with their exact Jacobian, from rest. The number of
    iterations is fixed, so that a step compiles, exports and serves an MPC. The last correction is
    returned as the residual. Derivatives follow from the implicit function theorem.

    Parameters
    ----------
    A : tuple of rows
        The last row is b: the method is stiffly accurate.
    c : tuple of float
        Times of the stages as fractions of the step, the last one 1.
    iterations : int
        Newton steps; `dataclasses.replace` makes a method with another number.

    References
    ----------
    Hairer, Wanner: Solving Ordinary Differential Equations II, sections IV.5 and IV.8.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.integrators import get_method
    >>> radau = get_method("radau_iia5")
    >>> x = radau.move(Rn(1), lambda t, x: -1e6 * x, 0.0, [1.0], 1.0)  # a fast mode is gone
    >>> bool(abs(x[0]) < 1e-5)
    True
    """

    name: str
    order: int
    A: tuple[Row, ...]
    c: Row
    stiff_order: int = 1
    iterations: int = 5
    solves = True

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Evaluations of the field in a Newton step."""
        return len(self.c)

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Newton's method, then the last stage."""
        states, largest = self.stage_states(motion, t, x, dt)
        return Step(states[-1], residual=largest)

    def stage_states(self, motion: Motion, t: Value, x: Any, dt: Value) -> tuple[list[Any], Value]:
        """States at the times of all stages, not normalised, and the largest residual.

        Parameters
        ----------
        motion : Motion
        t, x, dt
            As for `advance`.

        Returns
        -------
        tuple of list of value and value
        """
        problem, dim = motion.problem, motion.group.dim
        kernel = _newton_kernel(problem, self)
        at = (t, motion.value(x), motion.u, motion.p, dt)
        z: Any = ca.DM.zeros(self.stages * dim)
        last: Any = z
        for _ in range(self.iterations):
            r, K = kernel(*at, z)
            last = solver(K)(r)
            z = z + last
        moved: Any = nan_as_infinite(ca.fabs(last))
        largest = ca.norm_inf(moved) / (TOLERATED * (1 + ca.norm_inf(z))) if dim else 0.0

        def residual(z: Any) -> Any:
            assert isinstance(motion, LiftedMotion)
            with_parameters = motion.p_slope is not None
            by_seeds = _seed_kernel(problem, self, with_parameters)(*at, z.value)
            return Lifted(z.value, motion.chained(by_seeds, x))

        def solve(b: Any) -> Any:
            return solver(kernel(*at, z)[1])(b)

        increments = self._split(motion, motion.implicit(z, residual, solve))
        return [motion.plus(x, each) for each in increments], largest

    def _equations(self, motion: Motion, t: Value, x: Any, dt: Value, z: list[Any]) -> list[Any]:
        """``dt Σ aᵢⱼ Fⱼ − Θᵢ``, zero at the solution."""
        rates = [
            motion.algebra_rate(
                self.brackets, theta, motion.field(t + c * dt, motion.plus(x, theta))
            )
            for theta, c in zip(z, self.c, strict=True)
        ]
        sums = [[a * rate for a, rate in zip(row, rates, strict=True)] for row in self.A]
        return [dt * sum(terms[1:], terms[0]) - theta for terms, theta in zip(sums, z, strict=True)]

    def _split(self, motion: Motion, z: Any) -> list[Any]:
        dim = motion.group.dim
        return [motion.rows(z, slice(i * dim, (i + 1) * dim)) for i in range(self.stages)]


_NAMES = ("t", "x", "u", "p", "dt", "z")


def _symbols(problem: Problem, method: ImplicitRungeKutta) -> list[Any]:
    n, group, kind = method.stages * problem.group.dim, problem.group, problem.symbol
    sizes = (1, group.nq, problem.n_inputs, problem.n_parameters, 1, n)
    return [kind.sym(name, size) for name, size in zip(_NAMES, sizes, strict=True)]


@memoized
def _seed_kernel(problem: Problem, method: ImplicitRungeKutta, parameters: bool) -> ca.Function:
    """``(t, x, u, p, dt, z) → ∂r/∂(x, u, p)`` with the stages held."""
    symbols = _symbols(problem, method)
    t, x, u, p, dt, z = symbols
    motion, start = LiftedMotion.start(problem, x, u, p, parameters=parameters)
    held = method._split(motion, motion.constant(z))
    slope = motion.stack(method._equations(motion, t, start, dt, held)).slope
    if problem.symbol is ca.SX:
        slope = ca.cse(sparse(slope))
    return ca.Function(f"{method.name}_slopes", symbols, [slope], list(_NAMES), ["slope"])


@memoized
def _newton_kernel(problem: Problem, method: ImplicitRungeKutta) -> ca.Function:
    """``(t, x, u, p, dt, z) → r, −∂r/∂z``, of SX where the problem is."""
    n, s, kind = problem.group.dim, method.stages, problem.symbol
    symbols = _symbols(problem, method)
    t, x, u, p, dt, z = symbols
    motion = LiftedMotion(problem, u, p, s * n)
    start = Lifted(x, kind(n, s * n))
    unknown = method._split(motion, Lifted(z, kind(ca.DM.eye(s * n))))
    made = motion.stack(method._equations(motion, t, start, dt, unknown))
    results: Any = [made.value, -made.slope]
    if kind is ca.SX:
        results = ca.cse([ca.densify(results[0]), ca.sparsify(results[1])])
    return ca.Function(f"{method.name}_equations", symbols, results, list(_NAMES), ["r", "K"])


_ROOT = float(np.sqrt(6))

# Ehle 1969; order 2s − 1 = 5, L-stable, stage order 3.
RADAU_IIA5 = ImplicitRungeKutta(
    "radau_iia5",
    order=5,
    stiff_order=3,
    A=(
        ((88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225),
        ((296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225),
        ((16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9),
    ),
    c=((4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0),
)
