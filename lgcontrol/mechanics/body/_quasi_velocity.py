"""QuasiVelocity: motion in velocities ``v = S(q) q̇`` of one's own; Coriolis matrices of groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, named_options, trace
from ...groups import LieGroup, Product, Rn
from ...systems import Input, System


@named_options(own="dim")
class QuasiVelocity:
    """Velocities ``v = S(q) q̇`` that need not be rates of coordinates, and motion in them.

    q are local coordinates, n real numbers. S(q) is square and regular where the coordinates are.
    The velocities may be a body's twist beside Euler angles, or a ship's surge, sway and yaw rate
    beside its position.

    Parameters
    ----------
    dim : int
        Number n of coordinates and of velocities.
    transformation : callable
        ``S(q)``, from a CasADi column of length n to an n × n matrix.

    Raises
    ------
    ValueError
        If `dim` is not positive, or the matrix is not n × n.

    References
    ----------
    From 2012, section 2.2 and eq. 38 to 54 (in eq. 49 and 50 an index is misprinted).

    Examples
    --------
    Euler's equations in roll, pitch and yaw rates of a spacecraft:

    >>> import casadi as ca
    >>> import numpy as np
    >>> def rates(q):  # [roll, pitch, yaw] → body angular velocity
    ...     c, s = ca.cos, ca.sin
    ...     return ca.vertcat(
    ...         ca.horzcat(1, 0, -s(q[1])),
    ...         ca.horzcat(0, c(q[0]), s(q[0]) * c(q[1])),
    ...         ca.horzcat(0, -s(q[0]), c(q[0]) * c(q[1])),
    ...     )
    >>> turning = QuasiVelocity(3, rates)
    >>> momentum = np.array([1.0, 2.0, 3.0])
    >>> np.round(turning.coriolis_matrix([0.1, 0.2, 0.3], momentum), 12)
    array([[ 0.,  3., -2.],
           [-3.,  0.,  1.],
           [ 2., -1.,  0.]])
    """

    def __init__(self, dim: int, transformation: Callable[[Value], Value]) -> None:
        if not isinstance(dim, int) or dim < 1:
            raise ValueError(f"dim, the number of coordinates, must be 1 or more, got {dim!r}")
        try:
            self.matrix: ModelFunction = trace(
                "transformation", transformation, {"q": (dim,)}, {"S": (dim, dim)}
            )
        except ValueError as error:
            raise ValueError(
                f"S(q) must be a {dim} × {dim} matrix, as in ca.vertcat(ca.horzcat(…), …): {error}"
            ) from error

    def __repr__(self) -> str:
        """Number of coordinates."""
        return f"QuasiVelocity({self.dim} coordinates)"

    @classmethod
    def of_group(cls, group: LieGroup) -> QuasiVelocity:
        """Left-trivialised velocities of a group in its exponential coordinates ``X = Q exp φ``.

        ``S(φ) = I − ½ ad_φ + ⅙ ad_φ² − …`` is the group's right Jacobian.

        Parameters
        ----------
        group : LieGroup

        References
        ----------
        From 2012, eq. 29.
        """
        return _of_group(group)

    @property
    def dim(self) -> int:
        """Number of coordinates and of velocities."""
        return self.matrix.argument_shapes[0][0]

    @cached_property
    def coefficients(self) -> ModelFunction:
        """Coefficients γ of Boltzmann and Hamel: (q) → (..., n, n, n).

        ``γ[i, j, k] = Σ S⁻¹_li (∂S_jl/∂q_m − ∂S_jm/∂q_l) S⁻¹_mk``. They vanish where the velocities
        are rates of coordinates. On a group ``γ[i, j, k] v_k p_j`` is ``−ad_vᵀ p``, for every q.

        References
        ----------
        From 2012, eq. 46.
        """
        n = self.dim
        traced = trace(
            "coefficients", lambda q: ca.vec(self._coefficients(q)), {"q": (n,)}, ["gamma"]
        )
        return ModelFunction(traced.function, shapes={"gamma": (n, n, n)})

    @cached_property
    def coriolis_matrix(self) -> ModelFunction:
        """Matrix C of the force ``C v`` at momentum ``p = ∂L/∂v``: (q, p) → (..., n, n).

        ``C_ij = Σ S⁻¹_li (∂S_sl/∂q_m − ∂S_sm/∂q_l) S⁻¹_mj p_s``, skew-symmetric.

        References
        ----------
        From 2012, eq. 54.
        """
        n = self.dim
        return trace("coriolis_matrix", self._coriolis, {"q": (n,), "p": (n,)}, {"C": (n, n)})

    def inverse_dynamics(self, lagrangian: Callable[[Value, Value], Value]) -> ModelFunction:
        """Generalized force τ dual to v that an acceleration needs: (q, v, a) → (..., n).

        ``τ = d/dt ∂L/∂v − S⁻ᵀ ∂L/∂q + C(q, ∂L/∂v) v`` with ``a = v̇``. The inertia in L may depend
        on q.

        Parameters
        ----------
        lagrangian : callable
            ``L(q, v)`` [J] of CasADi columns: kinetic less potential energy.

        References
        ----------
        From 2012, eq. 26.
        """
        q, v, a = (ca.SX.sym(name, self.dim) for name in "qva")
        M, rest = self._balance(lagrangian, q, v)
        return ModelFunction(
            ca.Function("inverse_dynamics", [q, v, a], [M @ a + rest], ["q", "v", "a"], ["tau"])
        )

    def system(
        self,
        name: str,
        lagrangian: Callable[[Value, Value], Value],
        *,
        inputs: Sequence[Input] | None = None,
        force: Callable[[Value, Value, Value], Value] | None = None,
    ) -> System[Product]:
        """System with the state (q, v): ``q̇ = S⁻¹ v``, ``v̇`` by the Boltzmann–Hamel equations.

        It has the singularities of the coordinates q. On a group, `RigidBody.system` has none.

        Parameters
        ----------
        name : str
            Name of the system.
        lagrangian : callable
            ``L(q, v)`` [J] of CasADi columns.
        inputs : sequence of Input, optional
            Inputs u; the default is one for each velocity, "tau1", "tau2", ….
        force : callable, optional
            ``τ(q, v, u)``, the generalized force dual to v; the default is u.

        Raises
        ------
        ValueError
            If inputs other than one for each velocity are given without a force.
        """
        n = self.dim
        if inputs is None:
            inputs = [Input(f"tau{i + 1}") for i in range(n)]
        if force is None and len(inputs) != n:
            raise ValueError(
                f"{name}: {len(inputs)} inputs for {n} velocities need force=, τ(q, v, u)"
            )
        state = Product(coordinates=Rn(n), quasi_velocity=Rn(n))

        def field(t: Value, x: Value, u: Value, p: Value) -> Value:
            q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
            tau = ca.SX.sym("tau", n)
            M, rest = self._balance(lagrangian, q, v)
            rates = ca.vertcat(ca.solve(self._matrix(q), v), ca.solve(M, tau - rest))
            acting = u if force is None else force(x[:n], x[n:], u)
            return ca.Function("rates", [q, v, tau], [rates])(x[:n], x[n:], acting)

        return System(name, state, field, inputs=inputs)

    def _balance(
        self, lagrangian: Callable[[Value, Value], Value], q: Value, v: Value
    ) -> tuple[Value, Value]:
        """M and the rest of ``τ = M a + rest``."""
        L = ca.SX(lagrangian(q, v))
        if L.shape != (1, 1):
            raise ValueError(f"the Lagrangian must be one number, not of shape {L.shape}")
        momentum = ca.gradient(L, v)
        S = self._matrix(q)
        rest = ca.jtimes(momentum, q, ca.solve(S, v))
        rest -= ca.solve(S.T, ca.gradient(L, q))
        rest += self._coriolis(q, momentum) @ v
        return ca.jacobian(momentum, v), rest

    def _matrix(self, q: Value) -> Value:
        return ca.SX(self.matrix.function(q))

    def _coriolis(self, q: Value, p: Value) -> Value:
        local = ca.SX.sym("q", self.dim)
        covector = ca.SX.sym("p", self.dim)
        S = self._matrix(local)
        curl = ca.jacobian(S.T @ covector, local)  # curl[l, m] = Σ_s ∂S_sl/∂q_m p_s
        inverse = ca.solve(S, ca.SX.eye(self.dim))
        C = inverse.T @ (curl - curl.T) @ inverse
        return ca.Function("C", [local, covector], [C])(q, p)

    def _coefficients(self, q: Value) -> Value:
        """Slices by k, side by side: ``γ[:, j, :]`` is the Coriolis matrix at the momentum e_j."""
        n = self.dim
        by_row = [self._coriolis(q, ca.DM.eye(n)[:, j]) for j in range(n)]
        return ca.horzcat(*(ca.horzcat(*(C[:, k] for C in by_row)) for k in range(n)))


@cache
def _of_group(group: LieGroup) -> QuasiVelocity:
    return QuasiVelocity(group.dim, group.right_jacobian)


@named_options
def ad_tilde(group: LieGroup, p: Value) -> Value:
    """``ãd_p`` with ``ãd_p v = −ad_vᵀ p``: what turns velocities into forces at momentum p.

    Skew-symmetric, so a Coriolis matrix ``C = ãd_(M v)`` makes ``Ṁ − 2C`` skew-symmetric.

    Parameters
    ----------
    group : LieGroup
        The group.
    p : array_like, shape (..., dim)
        Momentum or any other covector, in coordinates dual to the group's tangent vectors.

    Returns
    -------
    ndarray or CasADi matrix, shape (..., dim, dim)

    References
    ----------
    From 2012, eq. 73 and 108, table 1.

    Examples
    --------
    >>> from lgcontrol.groups import SO3
    >>> ad_tilde(SO3, [1.0, 2.0, 3.0])
    array([[ 0.,  3., -2.],
           [-3.,  0.,  1.],
           [ 2., -1.,  0.]])
    """
    return _ad_tilde_function(group)(p)


@named_options
def boltzmann_hamel_matrix(group: LieGroup, p: Value, phi: Value | None = None) -> Value:
    """Coriolis matrix at momentum p from its definition by the velocity transformation S(φ).

    ``C_ij = Σ S⁻¹_li (∂S_sl/∂φ_m − ∂S_sm/∂φ_l) S⁻¹_mj p_s`` with ``v = S(φ) φ̇`` about any φ. The
    result is the same for every φ, and equals `ad_tilde`, which is how to compute it.

    Parameters
    ----------
    group : LieGroup
        The group.
    p : array_like, shape (..., dim)
        Momentum ``M v``.
    phi : array_like, shape (..., dim), optional
        Local coordinates about which S is differentiated; the default is 0.

    Returns
    -------
    ndarray or CasADi matrix, shape (..., dim, dim)

    References
    ----------
    From 2012, eq. 54 (in eq. 49 and 50 an index is misprinted); eq. 57 at φ = 0.

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> boltzmann_hamel_matrix(SE2, [1.0, 2.0, 3.0])
    array([[ 0.,  0., -2.],
           [ 0.,  0.,  1.],
           [ 2., -1.,  0.]])
    """
    about = np.zeros(group.dim) if phi is None else phi
    return QuasiVelocity.of_group(group).coriolis_matrix(about, p)


def ad_tilde_matrix(group: LieGroup, p: Value) -> Value:
    """`ad_tilde` on a CasADi column, without stored zeros."""
    unit = ca.DM.eye(group.dim)
    columns = [-(ca.sparsify(ca.DM(group.ad(unit[:, j]))).T @ p) for j in range(group.dim)]
    return ca.horzcat(*columns)


@cache
def _ad_tilde_function(group: LieGroup) -> ModelFunction:
    n = group.dim
    return trace("ad_tilde", lambda p: ad_tilde_matrix(group, p), {"p": (n,)}, {"C": (n, n)})
