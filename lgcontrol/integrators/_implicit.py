"""Implicit methods on groups: collocation, and Rosenbrock methods with their linear equations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import memoized
from ._method import Method, Trial, combine
from ._motion import Lifted, LiftedMotion, Motion, newton_steps, solver, sparse
from ._problem import Problem, Step
from ._tableau import Row

_NAMES = ("t", "x", "u", "p", "dt", "z")
# What functions that solve for stages are called, after their method.
_SOLVED = "_solved_stages"
_ROOT, _ROOT15 = float(np.sqrt(6)), float(np.sqrt(15))


@dataclass(frozen=True)
class ImplicitRungeKutta(Method):
    """``Θᵢ = dt Σ aᵢⱼ J_r(Θⱼ)⁻¹ f(t + cⱼ dt, x exp Θⱼ)``, the last stage being the step.

    Newton's method solves the equations with their exact Jacobian, from rest. The number of
    iterations is fixed, so that a step compiles, exports and serves an MPC. The last correction is
    returned as the residual. Derivatives follow from the implicit function theorem.

    Parameters
    ----------
    A : tuple of rows
        The last row is b: the last stage is the step. Of a method that is not stiffly accurate no
        other stage depends on the last one, whose weight is zero.
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

    @property
    def points(self) -> dict[float, float]:
        """Collocation points, as shares of a step, with the weights of their quadrature."""
        return {c: b for c, b in zip(self.c, self.A[-1], strict=True) if b}

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Newton's method, then the last stage."""
        states, largest = self.stage_states(motion, t, x, dt)
        return Step(states[-1], residual=largest)

    def stage_states(self, motion: Motion, t: Value, x: Any, dt: Value) -> tuple[list[Any], Value]:
        """States at the times of all stages, not normalised, and the largest residual."""
        problem, dim = motion.problem, motion.group.dim
        kernel = _newton_kernel(problem, self)
        at = (t, motion.value(x), motion.u, motion.p, dt)
        z: Any = ca.DM.zeros(self.stages * dim)
        largest: Any = 0.0
        if dim:
            z, largest = _solved(problem, self)(*at)

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


def equations_of(function: ca.Function) -> ca.Function | None:
    """``(t, x, u, p, dt, z) → r, −∂r/∂z`` of a function that solves for stages; None of others."""
    if not function.name().endswith(_SOLVED) or function.n_in() != len(_NAMES) - 1:
        return None  # derivatives of the stages have a name that ends so, and more arguments
    for k in range(function.n_instructions()):
        if function.instruction_id(k) == ca.OP_CALL:
            return function.instruction_MX(k).which_function()
    return None


@memoized
def _solved(problem: Problem, method: ImplicitRungeKutta) -> ca.Function:
    """``(t, x, u, p, dt) → z, residual``: stages that Newton's method finds.

    CasADi differentiates the stages by the implicit function theorem, as often as it likes, and the
    residual not at all.
    """
    kernel, names = _newton_kernel(problem, method), list(_NAMES[:-1])
    *at, z = kernel.mx_in()
    first: Any = ca.DM.zeros(*z.shape)

    def equations(z: Any) -> Any:
        return kernel(*at, z)

    found, residual = newton_steps(equations, first, method.iterations)
    symbols: Any = kernel.sx_in() if problem.symbol is ca.SX else kernel.mx_in()
    r = kernel.call(symbols, True, False)[0]
    slopes = ca.Function("slopes", symbols, [ca.jacobian(r, by) for by in symbols[:-1]])
    moved: Any = solver(equations(z)[1])(ca.horzcat(*slopes.call([*at, z])))
    sizes = [value.shape[0] for value in at]
    own = ca.horzsplit(moved, np.cumsum([0, *sizes]).tolist())
    name = f"{method.name}{_SOLVED}"
    nominal = [*at, z, ca.MX.sym("residual")]
    known = ca.Function(f"jac_{name}", nominal, [*own, *(ca.MX(1, size) for size in sizes)])
    options = {"custom_jacobian": known, "enable_forward": False, "enable_reverse": False}
    return ca.Function(name, at, [found, residual], names, ["z", "residual"], options)


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


# Kuntzmann 1961, Butcher 1964, on the three Legendre points; order 2s = 6, A-stable and symmetric:
# fast modes stay as large as they are. The fourth stage is the step.
GAUSS6 = ImplicitRungeKutta(
    "gauss6",
    order=6,
    stiff_order=4,
    A=(
        (5 / 36, 2 / 9 - _ROOT15 / 15, 5 / 36 - _ROOT15 / 30, 0.0),
        (5 / 36 + _ROOT15 / 24, 2 / 9, 5 / 36 - _ROOT15 / 24, 0.0),
        (5 / 36 + _ROOT15 / 30, 2 / 9 + _ROOT15 / 15, 5 / 36, 0.0),
        (5 / 18, 4 / 9, 5 / 18, 0.0),
    ),
    c=(0.5 - _ROOT15 / 10, 0.5, 0.5 + _ROOT15 / 10, 1.0),
)


@dataclass(frozen=True)
class RosenbrockW(Method):
    """``kᵢ = dt f(x exp Σ αᵢⱼ kⱼ) + dt A Σ γᵢⱼ kⱼ`` in the algebra, ``x⁺ = x exp Σ bᵢ kᵢ``.

    The order holds for any matrix A. For mechanical systems with losses in the joints, A has the
    Jacobian of these losses alone, beside ``q̇ = v`` and the rows of further blocks. The matrix to
    factor is then ``M + γ dt D``. For other systems it is the Jacobian Df at the start of the
    step.

    Parameters
    ----------
    gamma : float
        Diagonal of the γᵢⱼ.
    alpha, gammas : tuple of rows
        Row i has the weights of the stages before stage i.
    b, b_embedded : tuple of float
        Weights of the step, and of the solution it is compared with.

    References
    ----------
    Steihaug, Wolfbrandt 1979; Rang, Angermann 2005, New Rosenbrock W-methods of order 3 for
    partial differential algebraic equations of index 1; Hairer, Wanner: Solving Ordinary
    Differential Equations II, section IV.7 (7.25 is the form that is computed).

    Examples
    --------
    >>> from lgcontrol.integrators import get_method
    >>> method = get_method("ros34pw2")
    >>> method.order, method.stages, method.has_error
    (3, 4, True)
    """

    name: str
    order: int
    gamma: float
    alpha: tuple[Row, ...]
    gammas: tuple[Row, ...]
    b: Row
    b_embedded: Row = ()
    stiff_order: int = 1
    uses_losses = True

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Evaluations of the field in a step."""
        return len(self.b)

    @property
    def has_error(self) -> bool:  # type: ignore[override]
        """Whether there are embedded weights."""
        return bool(self.b_embedded)

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """``x exp Σ mᵢ uᵢ`` with ``uᵢ = Σ γᵢⱼ kⱼ``."""
        found = self._stages(motion, t, x, dt, motion.field(t, x))
        end = motion.plus(x, combine(self._forms.m, found, 1.0))
        return Step(end, error=combine(self._forms.error, found, 1.0) if estimate else None)

    def trial(self, motion: Motion, t: Value, x: Value, velocity: Value, dt: Value) -> Trial:
        """Step with an error estimate and cubic interpolation, from the velocity at (t, x)."""
        group = motion.group
        found = self._stages(motion, t, x, dt, velocity)
        theta = combine(self._forms.m, found, 1.0)
        end = group.normalize(group.plus(x, theta))
        velocity_end = motion.field(t + dt, end)
        bend = dt * velocity - theta
        last = motion.algebra_rate(self.brackets, theta, velocity_end)
        dense = [theta, bend, theta - dt * last - bend, 0 * theta]
        return Trial(end, velocity_end, combine(self._forms.error, found, 1.0), dense, 0.0)

    def _stages(self, motion: Motion, t: Value, x: Any, dt: Value, first: Any) -> list[Any]:
        """The ``uᵢ`` of ``(1 − γ dt A) uᵢ = γ (dt f(x exp Σ aᵢⱼ uⱼ) + Σ cᵢⱼ uⱼ)``."""
        forms, found = self._forms, []
        invert = _Inverse(motion, t, x, self.gamma * dt)
        for i in range(self.stages):
            theta = combine(forms.a[i], found, 1.0)
            if theta is None:
                rate = first
            else:
                at = t + float(sum(self.alpha[i])) * dt
                velocity = motion.field(at, motion.plus(x, theta))
                rate = motion.algebra_rate(self.brackets, theta, velocity)
            right = dt * rate
            carried = combine(forms.c[i], found, 1.0)
            if carried is not None:
                right = right + carried
            found.append(invert(self.gamma * right))
        return found

    @cached_property
    def _forms(self) -> _Forms:
        n = self.stages
        G, alpha = self.gamma * np.eye(n), np.zeros((n, n))
        for i in range(n):
            G[i, : len(self.gammas[i])] = self.gammas[i]
            alpha[i, : len(self.alpha[i])] = self.alpha[i]
        inverse = np.linalg.inv(G)
        difference = np.subtract(self.b, self.b_embedded or self.b)
        return _Forms(
            _lower(alpha @ inverse),
            _lower(np.eye(n) / self.gamma - inverse),
            tuple(map(float, np.array(self.b) @ inverse)),
            tuple(map(float, difference @ inverse)),
        )


@dataclass(frozen=True)
class _Forms:
    """Coefficients in the unknowns u."""

    a: tuple[Row, ...]
    c: tuple[Row, ...]
    m: Row
    error: Row


def _lower(matrix: np.ndarray) -> tuple[Row, ...]:
    """Rows below the diagonal, rounding errors of the inverse left out."""
    kept = np.where(np.abs(matrix) > 1e-14, matrix, 0.0)
    return tuple(tuple(map(float, row[:i])) for i, row in enumerate(kept))


class _Inverse:
    """``w ↦ (1 − h A)⁻¹ w`` with the matrix A of the start of a step."""

    def __init__(self, motion: Motion, t: Value, x: Any, h: Value) -> None:
        self.motion, self.t, self.x, self.h = motion, t, x, h
        structure, at = motion.problem.mechanical, motion.value(x)
        self.loss = None if structure is None else structure.loss_jacobian
        if self.loss is None:
            A = motion.jacobian(t, at, motion.u, motion.p)
            self.solve = solver(ca.DM.eye(motion.group.dim) - h * A)
            return
        assert structure is not None
        _, self.q, self.v, self.rest = motion.mechanics("")
        self.mass = structure.mass_matrix
        self.M = self.mass(at, motion.p)
        self.solve = solver(self.M + h * self.loss(at, motion.p), symmetric=True)
        if self.rest.stop > self.rest.start:
            rows = motion.jacobian(t, at, motion.u, motion.p)[self.rest, self.rest]
            count = self.rest.stop - self.rest.start
            self.solve_rest = solver(ca.DM.eye(count) - h * rows)

    def __call__(self, w: Any) -> Any:
        return self._full(w) if self.loss is None else self._mechanical(w)

    def _full(self, w: Any) -> Any:
        motion = self.motion
        z = self.solve(motion.value(w))

        def residual(z: Any) -> Any:
            return w - z + self.h * motion.product(motion.jacobian, self.t, self.x, z)

        return motion.implicit(z, residual, self.solve)

    def _mechanical(self, w: Any) -> Any:
        motion, h, loss, mass = self.motion, self.h, self.loss, self.mass
        wv = motion.rows(w, self.v)

        def by_mass(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mass(x, p)

        def by_loss(t: Value, x: Value, u: Value, p: Value) -> Value:
            assert loss is not None
            return loss(x, p)

        def residual(z: Any) -> Any:
            inertial = motion.product(by_mass, self.t, self.x, wv - z)
            return inertial - h * motion.product(by_loss, self.t, self.x, z)

        z = motion.implicit(self.solve(self.M @ motion.value(wv)), residual, self.solve)
        parts = [motion.rows(w, self.q) + h * z, z]
        if self.rest.stop > self.rest.start:
            parts.append(self._others(motion.stack(parts), motion.rows(w, self.rest)))
        return motion.stack(parts)

    def _others(self, moved: Any, w: Any) -> Any:
        """Further blocks, whose rates may depend on the mechanical ones."""
        motion = self.motion

        def rows(t: Value, x: Value, u: Value, p: Value) -> Value:
            return motion.jacobian(t, x, u, p)[self.rest, :]

        def residual(z: Any) -> Any:
            return w - z + self.h * motion.product(rows, self.t, self.x, motion.stack([moved, z]))

        before = motion.matrix(rows, self.t, self.x)[:, : self.rest.start]
        z = self.solve_rest(motion.value(w) + self.h * (before @ motion.value(moved)))
        return motion.implicit(z, residual, self.solve_rest)


# Rang, Angermann 2005: order 3 for any matrix, stiffly accurate, L-stable; embedded order 2.
ROS34PW2 = RosenbrockW(
    "ros34pw2",
    order=3,
    gamma=0.43586652150845900,
    alpha=(
        (),
        (0.87173304301691801,),
        (0.84457060015369423, -0.11299064236484185),
        (0.0, 0.0, 1.0),
    ),
    gammas=(
        (),
        (-0.87173304301691801,),
        (-0.90338057013044082, 0.054180672388095326),
        (0.24212380706095346, -1.2232505839045147, 0.54526025533510214),
    ),
    b=(0.24212380706095346, -1.2232505839045147, 1.5452602553351020, 0.43586652150845900),
    b_embedded=(0.37810903145819369, -0.096042292212423178, 0.5, 0.21793326075422950),
    stiff_order=2,
)
