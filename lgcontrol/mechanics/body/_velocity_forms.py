"""Other velocities in the state of a System: momenta and unified coordinates in place of v."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol, get_args

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value
from ...codegen._internal import check_known, check_shape, interruptible, solve_symmetric
from ...groups import SE3, LieGroup, Product, Rn
from ...scene._internal import ModelLook
from ...systems import Input, Parameter, System
from .._mechanical import model_function
from ..representations._unified import UnifiedVelocity

MomentumFrame = Literal["body", "spatial"]


def check_momentum_frame(body: str, frame: str) -> None:
    """Refuse unknown frames of a momentum."""
    check_known("frame", get_args(MomentumFrame), frame, where=body)


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
        shapes = {"x": (self.state.nq,)}
        return model_function(name, build, "x p", {"result": result}, shapes, (), self.parameters)


class MovingEquations(Protocol):
    """Equations of motion on ``x = (q, v)`` that momenta and speeds of points are made of."""

    def mass_matrix(self, x: Value, p: Value) -> Value: ...  # noqa: D102
    def action(self, t: Value, x: Value, u: Value, p: Value) -> Value: ...  # noqa: D102
    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value: ...  # noqa: D102


def velocity_form_of(
    name: str,
    mechanics: MovingEquations,
    source: Product,
    parameters: tuple[Parameter, ...],
    velocity: str | UnifiedVelocity,
    frame: MomentumFrame,
    *,
    lead: LieGroup,
    momenta: Sequence[str],
    gradient: Callable[[Value, Value], Value] | None = None,
) -> VelocityForm:
    """Momenta, or speeds of points of a body or of a base, in place of the velocities in a state.

    `lead` is the group of the pose that comes first: of the body, or of the base, whose rows may be
    in space. `momenta` are names; `gradient` is ``(x, p) → ∂T/∂q`` where M depends on q.
    """
    (block, group), (usual, _) = source.blocks.items()
    dim, nq, units = lead.dim, lead.nq, group.tangent_units

    def form(
        own: str, names: Sequence[str], units: Sequence[str], *functions: Callable[..., Value]
    ) -> VelocityForm:
        state = Product(**{block: group, own: Rn(len(names), tuple(names), tuple(units))})
        return VelocityForm(source, state, parameters, *functions)

    if isinstance(velocity, UnifiedVelocity):
        if lead != SE3:
            raise ValueError(
                f"{name}: unified velocity coordinates are those of a body, or of a free base, on "
                f"SE3, not on {lead.name}; leave out velocity=, or free the base"
            )
        rest = ca.DM.eye(group.dim - dim)
        D, inverse = (
            ca.sparsify(ca.diagcat(ca.DM(X), rest)) for X in (velocity.matrix, velocity.inverse)
        )
        return form(
            velocity.block,
            (*velocity.names, *group.tangent_names[dim:]),
            ["m/s"] * dim + [f"{unit}/s" for unit in units[dim:]],
            lambda q, v, p: D @ v,
            lambda q, w, p: inverse @ w,
            lambda t, q, v, u, p: D @ mechanics.field(t, ca.vertcat(q, v), u, p)[group.dim :],
        )
    if velocity != "momentum":
        raise ValueError(
            f'{name}: velocity must be "{usual}", "momentum" or a UnifiedVelocity, not {velocity!r}'
        )
    check_momentum_frame(name, frame)

    def moved(T: Value, P: Value) -> Value:
        """Momenta with the first rows in other axes, by the coordinates of a pose."""
        return ca.vertcat(lead.Ad(T).T @ P[:dim], P[dim:])

    def in_space(q: Value, P: Value) -> Value:
        return P if frame == "body" else moved(lead.inverse(q[:nq]), P)

    def in_body(q: Value, P: Value) -> Value:
        return P if frame == "body" else moved(q[:nq], P)

    def inertia(q: Value, p: Value) -> Value:
        return mechanics.mass_matrix(ca.vertcat(q, ca.SX(group.dim, 1)), p)

    def rate(t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
        x, turning = ca.vertcat(q, v), group.ad(v).T @ (inertia(q, p) @ v)
        force = mechanics.action(t, x, u, p)
        force = force if gradient is None else force + gradient(x, p)
        if frame == "body":
            return force + turning
        # In space the first rows do not turn.
        return in_space(q, force + ca.vertcat(ca.SX(dim, 1), turning[dim:]))

    return form(
        "momentum",
        momenta,
        ["kg m/s" if unit == "m" else "kg m²/s" for unit in units],
        lambda q, v, p: in_space(q, inertia(q, p) @ v),
        lambda q, w, p: solve_symmetric(inertia(q, p), in_body(q, w)),
        rate,
    )
