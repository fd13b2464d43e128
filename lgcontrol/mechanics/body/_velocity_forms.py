"""Other velocities in the state of a System: momenta and unified coordinates in place of v."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, trace
from ...codegen._internal import UnknownNameError, check_shape, interruptible, unknown_name
from ...groups import LieGroup, Product, Rn
from ...scene._internal import ModelLook
from ...systems import Input, Parameter, System

MomentumFrame = Literal["body", "spatial"]


def check_momentum_frame(body: str, frame: str) -> None:
    """Refuse unknown frames of a momentum."""
    if frame not in get_args(MomentumFrame):
        raise UnknownNameError(f"{body}: {unknown_name('frame', frame, get_args(MomentumFrame))}")


@dataclass(frozen=True, eq=False)
class VelocityForm:
    """States (q, w) next to states (q, v) of the same motion: ``w = A(q, p) v``.

    What `system(velocity=...)` of bodies and trees has as its state, and the ways between the two:
    states, references and weights convert through ``v = A⁻¹ w``. Bodies and trees make it with
    `velocity_form`.

    Attributes
    ----------
    source, state : Product
        States with v and with w.
    parameters : tuple of Parameter
        Of the body or tree.
    coordinates, velocity : callable
        ``(q, v, p) → w`` and ``(q, w, p) → v`` on CasADi columns, linear in v and w.
    rate : callable
        ``(t, q, v, u, p) → ẇ``.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> from lgcontrol.mechanics import RigidBody, SpatialInertia
    >>> ball = RigidBody("ball", SE3, SpatialInertia.sphere(2.0, 0.1))
    >>> form = ball.velocity_form("momentum")
    >>> x = form.from_velocity(ball.state.join(pose=SE3.identity, twist=[3.0, 0, 0, 0, 0, 0]))
    >>> form.state.split(x)["momentum"].tolist()
    [6.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    source: Product
    state: Product
    parameters: tuple[Parameter, ...]
    coordinates: Callable[[Value, Value, Value], Value]
    velocity: Callable[[Value, Value, Value], Value]
    rate: Callable[[Value, Value, Value, Value, Value], Value]

    @cached_property
    def from_velocity(self) -> ModelFunction:
        """``(q, v) → (q, w)``: (x, p) → (..., nq)."""
        return self._state_function("from_velocity", self.coordinates)

    @cached_property
    def to_velocity(self) -> ModelFunction:
        """``(q, w) → (q, v)``: (x, p) → (..., nq)."""
        return self._state_function("to_velocity", self.velocity)

    @cached_property
    def velocity_D_state(self) -> ModelFunction:
        """T with ``δ(q, v) = T δ(q, w)`` at a state (q, w): (x, p) → (..., dim, dim)."""

        def build(x: Value, p: Value) -> Value:
            symbol = ca.SX.sym("x", self.state.nq)
            q, w = self._split(symbol)
            n = q.shape[0]
            v = self.velocity(q, w, p)
            turning = ca.substitute(
                ca.horzcat(
                    ca.jacobian(v, q) @ self._configuration.rate_matrix(q), ca.jacobian(v, w)
                ),
                symbol,
                x,
            )
            dim = self.state.dim - turning.shape[0]
            assert dim == self._configuration.dim and n == self._configuration.nq
            return ca.vertcat(ca.DM.eye(self.state.dim)[:dim, :], turning)

        n = self.state.dim
        return self._function("velocity_D_state", build, (n, n))

    def weights(self, Q: Any, x: Any, p: Any = None) -> np.ndarray:
        """Weights of errors of (q, w) that cost what errors of (q, v) do: ``Tᵀ Q T``.

        Parameters
        ----------
        Q : array_like, shape (dim, dim) or (dim,)
            Weights of the errors of (q, v), or their diagonal.
        x : array_like, shape (nq,)
            State (q, w) about which: the reference.
        p : array_like, optional

        Returns
        -------
        ndarray, shape (dim, dim)
        """
        n = self.state.dim
        Q = np.asarray(Q, dtype=np.float64)
        Q = check_shape("weights: Q", np.diag(Q) if Q.ndim == 1 else Q, (n, n))
        p = self._nominal if p is None else p
        T = np.asarray(self.velocity_D_state(check_shape("weights: x", x, (self.state.nq,)), p))
        return T.T @ Q @ T

    @interruptible
    def system(
        self,
        name: str,
        *,
        inputs: tuple[Input, ...],
        quantities: Mapping[str, Callable[..., Value]],
        invariants: Callable[..., Value] | None = None,
        limits: Mapping[str, tuple[float, float]] | None = None,
        h: Callable[[Any, Any, Any, Any], Any] | None = None,
        output: LieGroup | None = None,
        look: ModelLook | None = None,
    ) -> System[Product]:
        """System on `state`; quantities and invariants are given for states (q, v)."""

        def f(t: Value, x: Value, u: Value, p: Value) -> Value:
            q, w = self._split(x)
            v = self.velocity(q, w, p)
            return ca.vertcat(v, self.rate(t, q, v, u, p))

        def velocity(t: Value, x: Value, u: Value, p: Value) -> Value:
            return self.velocity(*self._split(x), p)

        def whole(x: Value, p: Value) -> Value:
            q, w = self._split(x)
            return ca.vertcat(q, self.velocity(q, w, p))

        def of(quantity: Callable[..., Value]) -> Callable[..., Value]:
            return lambda t, x, u, p: quantity(t, whole(x, p), u, p)

        kept = set(self.state.coordinate_names)
        return System(
            name,
            self.state,
            f,
            inputs=inputs,
            parameters=self.parameters,
            h=h,
            output=output,
            quantities={key: of(quantity) for key, quantity in quantities.items()}
            | {"velocity": velocity},
            invariants=None if invariants is None else lambda x, p: invariants(whole(x, p), p),
            limits={key: value for key, value in (limits or {}).items() if key in kept},
            look=look,
        )

    @property
    def _configuration(self) -> LieGroup:
        return next(iter(self.state.blocks.values()))

    @property
    def _nominal(self) -> np.ndarray:
        return np.array([entry.nominal for entry in self.parameters])

    def _split(self, x: Value) -> tuple[Value, Value]:
        nq = self._configuration.nq
        return x[:nq], x[nq:]

    def _state_function(self, name: str, build: Callable[..., Value]) -> ModelFunction:
        def whole(x: Value, p: Value) -> Value:
            q, other = self._split(x)
            return ca.vertcat(q, build(q, other, p))

        return self._function(name, whole, (self.state.nq,))

    def _function(
        self, name: str, build: Callable[..., Value], result: tuple[int, ...]
    ) -> ModelFunction:
        shapes = {"x": (self.state.nq,), "p": (len(self.parameters),)}
        return trace(name, build, shapes, {"result": result}, defaults={"p": self._nominal})


def velocity_state(source: Product, block: str, names: tuple[str, ...], units: Any) -> Product:
    """State with another velocity block after its configuration."""
    (configuration, group), *_ = source.blocks.items()
    return Product(**{configuration: group, block: Rn(len(names), names, tuple(units))})
