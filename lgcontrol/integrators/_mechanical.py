"""Steps for mechanical systems ``q̇ = v, M v̇ = F``: the velocity first, then the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import Value
from ._method import Method
from ._motion import Motion, solver
from ._problem import Step


@dataclass(frozen=True)
class SemiImplicitEuler(Method):
    """``v⁺ = v + dt v̇(t, x, u)``, then ``q⁺ = q exp(dt v⁺)``.

    Symplectic on Rn: for an Euler step it keeps the energy of swings well. Further blocks of the
    state move by explicit Euler.

    Examples
    --------
    >>> from lgcontrol.integrators import get_method
    >>> get_method("semi_implicit_euler").needs_structure
    True
    """

    name = "semi_implicit_euler"
    order = 1
    stages = 1
    needs_structure = True

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """The new velocity moves the configuration."""
        _, q, v, rest = motion.mechanics(self.name)
        rate = motion.field(t, x)
        change = motion.rows(rate, v)
        parts = [motion.rows(rate, q) + dt * change, change, motion.rows(rate, rest)]
        return Step(motion.plus(x, dt * motion.stack(parts)))

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of a loss, ``v̇ = z v``."""
        return 1 + z


@dataclass(frozen=True)
class LinearlyImplicitEuler(Method):
    """``(M + dt D) Δv = dt F(t, x, u)``, then ``q⁺ = q exp(dt v⁺)``.

    D is the Jacobian of the losses in joints: damping and friction may be as stiff as they like,
    for one sparse factor of the matrix that explicit steps need as well. All other forces are
    explicit.
    Further blocks of the state move by explicit Euler.

    Examples
    --------
    >>> from lgcontrol.integrators import get_method
    >>> complex(get_method("linearly_implicit_euler").stability(-1e8)).real < 1e-6
    True
    """

    name = "linearly_implicit_euler"
    order = 1
    stages = 1
    stiff_order = 1
    uses_losses = True
    needs_structure = True

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Accelerations by one linear solve; their derivatives by the balance of forces."""
        structure, q, v, rest = motion.mechanics(self.name)
        loss = structure.loss_jacobian

        def losses(t: Value, x: Value, u: Value, p: Value) -> Value:
            assert loss is not None
            return loss(x, p)

        at, p = motion.value(x), motion.p
        K = structure.mass_matrix(at, p)
        solve = solver(K if loss is None else K + dt * loss(at, p), symmetric=True)

        def residual(a: Any) -> Any:
            left = motion.balance(t, x, a)
            return left if loss is None else left - dt * motion.product(losses, t, x, a)

        a = motion.implicit(solve(structure.force(t, at, motion.u, p)), residual, solve)
        rate = motion.field(t, x) if rest.stop > rest.start else None
        parts = [motion.velocity(x) + dt * a, a]
        if rate is not None:
            parts.append(motion.rows(rate, rest))
        return Step(motion.plus(x, dt * motion.stack(parts)))

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of a loss, ``v̇ = z v``."""
        return 1 / (1 - z)
