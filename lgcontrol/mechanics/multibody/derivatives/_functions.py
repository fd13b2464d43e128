"""Second derivatives of a tree's dynamics as its properties."""

from __future__ import annotations

from ..plan._tree_function import FunctionSource, TreeFunction


class SecondDerivativeFunctions(FunctionSource):
    """Second derivatives of the dynamics, whole or weighted, and sensitivities to inertias.

    In a tensor ``T[i, j, k]`` is the derivative of entry i by variable j and then by variable k.
    CasADi has no tensors: there T is the nv × nv² matrix of slices ``[T[:, :, 0], T[:, :, 1], …]``,
    ``T[i, k * nv + j]``. What is not listed is zero or follows by symmetry.

    Derivatives by q are those of ``d ↦ f(plus(q, d))`` at 0, hence symmetric. Derivatives taken one
    after the other are not where a joint is a group that does not commute (spherical, free, …): the
    derivative along k of the derivative along j, which differences of
    `inverse_dynamics_derivatives` give, is ``T[:, j, k] + ½ K ad(e_k) e_j`` with K the first
    derivative by q and ad that of `configuration`. Chains of such joints need no more than their
    parts do (universal: nothing).

    Whole tensors are for small trees: tracing takes 0.2 ms an entry (a chain of 32 joints has
    32³, for each tensor). Above 5 s that is announced through logging, above 2 million entries it
    is refused with a ValueError; Hessians do for any tree.
    """

    @property
    def inverse_dynamics_second_derivatives(self) -> TreeFunction:
        """(q, v, a[, wrenches]) → four tensors, shape (..., nv, nv, nv) each.

        - d2_tau_d_q2, symmetric in its last two indices.
        - d2_tau_d_q_d_v: by q, then by v.
        - d2_tau_d_v2, symmetric in its last two indices.
        - d2_tau_d_q_d_a: by q, then by a. This is ∂M/∂q: ``T[:, j, :]`` is that of M by q_j.

        Derivatives by v and a, and by a twice, vanish. Wrenches stay fixed in their bodies.
        Springs and losses of joints are included. An entry is zero unless the three joints lie on
        one path from the world; where only a weighted sum over the forces is needed,
        `inverse_dynamics_hessian` costs a fraction.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> second = pendulum.inverse_dynamics_second_derivatives([np.pi / 2], [0.0], [0.0])
        >>> second.d2_tau_d_q2.round(2).tolist()  # of m g l sin(q)
        [[[-19.62]]]
        """
        return self._function("inverse_dynamics_second_derivatives")

    @property
    def forward_dynamics_second_derivatives(self) -> TreeFunction:
        """(q, v, tau[, wrenches]) → four tensors, shape (..., nv, nv, nv) each.

        - d2_a_d_q2, symmetric in its last two indices.
        - d2_a_d_q_d_v: by q, then by v.
        - d2_a_d_v2, symmetric in its last two indices.
        - d2_a_d_q_d_tau: by q, then by tau. This is ∂M⁻¹/∂q: ``T[:, j, :]`` is that of M⁻¹ by q_j
          (alone: `mass_matrix_inverse_derivatives`, which is differentiated by its last index).

        Derivatives by v and tau, and by tau twice, vanish. These tensors are full:
        `forward_dynamics_hessian` costs a fraction.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> second = pendulum.forward_dynamics_second_derivatives([np.pi / 2], [0.0], [0.0])
        >>> second.d2_a_d_q2.round(2).tolist()  # of −g / l sin(q)
        [[[9.81]]]
        """
        return self._function("forward_dynamics_second_derivatives")

    @property
    def inverse_dynamics_hessian(self) -> TreeFunction:
        """(q, v, a, weights[, wrenches]) → H_qq, H_qv, H_vv, H_qa, shape (..., nv, nv) each.

        Second derivatives of ``weights @ inverse_dynamics(q, v, a)``, in 0.8 to 1.7 times the
        operations of first derivatives: what exact-Hessian optimisation needs of the dynamics as
        constraints, the weights being multipliers. The Hessian by (q, v, a) together is
        ``[[H_qq, H_qv, H_qa], [H_qvᵀ, H_vv, 0], [H_qaᵀ, 0, 0]]``.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> arm = Multibody().add_body("a", rod, "revolute", axis="y")
        >>> arm = arm.add_body("b", rod, "revolute", "a", [0, 0, -1], axis="y")
        >>> q, v, a, weights = [0.3, -0.5], [1.0, 2.0], [0.0, 1.0], np.array([0.2, 0.7])
        >>> H = arm.inverse_dynamics_hessian(q, v, a, weights)
        >>> T = arm.inverse_dynamics_second_derivatives(q, v, a)
        >>> np.allclose(H.H_qv, np.tensordot(weights, T.d2_tau_d_q_d_v, axes=1))
        True
        """
        return self._function("inverse_dynamics_hessian")

    @property
    def forward_dynamics_hessian(self) -> TreeFunction:
        """(q, v, tau, weights[, wrenches]) → H_qq, H_qv, H_vv, H_qtau, (..., nv, nv) each.

        Second derivatives of ``weights @ forward_dynamics(q, v, tau)``; those by v and tau, and by
        tau twice, vanish. The Hessian by (q, v, tau) together is
        ``[[H_qq, H_qv, H_qtau], [H_qvᵀ, H_vv, 0], [H_qtauᵀ, 0, 0]]``.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> pendulum.forward_dynamics_hessian([1.5708], [0.0], [0.0], [2.0]).H_qq.round(2)
        array([[19.62]])
        """
        return self._function("forward_dynamics_hessian")

    @property
    def forward_dynamics_parameter_derivatives(self) -> TreeFunction:
        """(q, v, tau[, wrenches]) → ∂a/∂φ by `inertial_parameters`, shape (..., nv, 10 n_bodies).

        The sensitivity ``−M⁻¹ Y`` of accelerations to masses, first moments and inertia tensors, Y
        being `inverse_dynamics_regressor`: for parameter estimation from measured motions.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> slope = pendulum.forward_dynamics_parameter_derivatives([0.0], [0.0], [4.0])
        >>> slope[0, 6].round(3)  # by Iyy about the axis: −tau / Iyy²
        np.float64(-1.0)
        """
        return self._function("forward_dynamics_parameter_derivatives")
