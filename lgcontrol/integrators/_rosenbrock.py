"""Rosenbrock–W methods: linear solves with one matrix a step, perhaps not the exact Jacobian."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ._method import Method, Trial, combine
from ._motion import Motion, solver
from ._problem import Step
from ._tableau import Row


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
