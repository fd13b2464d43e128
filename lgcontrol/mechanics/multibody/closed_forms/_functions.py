"""Closed forms of a tree's equations of motion, as its properties and methods."""

from __future__ import annotations

from ..derivatives._normal_modes import normal_modes
from ..kinematics._frames import Reference
from ..parameters._base_parameters import base_parameters
from ..plan._tree_function import FunctionSource, TreeFunction


class ClosedFormFunctions(FunctionSource):
    """Equations of motion as matrices, their geometry, and their linearization.

    The recursions (`inverse_dynamics`, `forward_dynamics`, `mass_matrix`, …) are faster; here are
    the objects that analysis, observers and papers speak of. All of them agree with the recursions
    to rounding.

    They are for small trees: matrices of stacked bodies grow with the square of the number of
    bodies (`system_matrices` of a chain of 64: 0.75 million operations), tensors with its cube:
    tracing takes 0.2 ms an entry, which is announced through logging above 5 s and refused with a
    ValueError above 2 million entries. CasADi has no tensors: there T is the nv × nv² matrix of
    slices ``[T[:, :, 0], T[:, :, 1], …]``, ``T[i, k * nv + j]``.
    """

    # -- stacked bodies -----------------------------------------------------------------------

    def system_jacobian(self, reference: Reference = "body") -> TreeFunction:
        """``q`` → J with the twists of all bodies ``V = J v``, shape (..., 6 n_bodies, nv).

        Six rows [v; ω] for each of `bodies`, in that order: `jacobian` of each, stacked.

        Parameters
        ----------
        reference : {"body", "spatial", "hybrid", "mixed"}

        References
        ----------
        Müller 2018, eq. 113.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> arm = Multibody().add_body("a", rod, "revolute", axis="y")
        >>> arm = arm.add_body("b", rod, "revolute", "a", [0, 0, -1], axis="y")
        >>> arm.system_jacobian()([0.0, 0.0])[6:].tolist()[0]
        [-1.0, 0.0]
        """
        return self._function("system_jacobian", reference)

    def system_jacobian_rate(self, reference: Reference = "body") -> TreeFunction:
        """(q, v) → time derivative of `system_jacobian`, shape (..., 6 n_bodies, nv).

        References
        ----------
        Müller 2018, eq. 9 (body), 17 (spatial), 27 and 28 (hybrid; misprints mended).
        """
        return self._function("system_jacobian_rate", reference)

    @property
    def system_matrices(self) -> TreeFunction:
        """(q, v) → A, X, X_rate, ad_joints, ad_bodies, M, with the body-fixed ``J = A X``.

        With n bodies and the joint twists ``x_i = X_i v`` in the bodies' frames:

        - A, (..., 6 n, 6 n): ``A_ij = Ad`` of the motion from body i to body j where j carries i
          (or is i), else zero. Block lower triangular, and free of velocities.
        - X, (..., 6 n, nv): what each joint adds to its own body's twist; constant, except for
          joints that are chains (universal, spherical_zyx, composites), whose X_rate is not zero.
        - ad_joints, ad_bodies, M, (..., 6 n, 6 n): block diagonal, of ``ad`` of the joint twists
          (the paper's a), of ``ad`` of the body twists (its b), and of the bodies' inertias.

        The rate is ``J̇ = A (X_rate − a (J − X))``. For joints of one degree of freedom ``a X`` and
        X_rate vanish and it is the paper's ``−A a J``. For joints that are one group with several
        that holds on the product with v only (``a X v = 0``), for chains not at all.

        References
        ----------
        Müller 2018, eq. 9, 10, 82, 83, 112, 113.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.sphere(2.0, 0.1)
        >>> arm = Multibody().add_body("a", ball, "revolute")
        >>> arm = arm.add_body("b", ball, "prismatic", "a", axis="x")
        >>> q, v = [0.3, 0.5], [1.0, 2.0]
        >>> s = arm.system_matrices(q, v)
        >>> J = s.A @ s.X
        >>> np.allclose(J.T @ s.M @ J, arm.mass_matrix(q))
        True
        """
        return self._function("system_matrices")

    # -- equations of motion ------------------------------------------------------------------

    def euler_jourdain_equations(self, reference: Reference = "body") -> TreeFunction:
        """(q, v[, wrenches]) → the Newton–Euler equations of all bodies, to be projected.

        ``Jᵀ (inertia (J a + J_rate v) + bias − applied) + armature a + joint_forces = tau``: what
        the projection on the admissible motions (the columns of J) removes are the wrenches of the
        joints' constraints. Also known as Kane's equations (columns of J: partial velocities),
        projection equations, and natural orthogonal complement.

        Results, with n bodies: J and J_rate (..., 6 n, nv), inertia (..., 6 n, 6 n) block diagonal,
        bias (..., 6 n) of the velocities, applied (..., 6 n): weight and external wrenches,
        armature (..., nv), joint_forces (..., nv): losses and springs.

        Parameters
        ----------
        reference : {"body", "spatial", "hybrid", "mixed"}
            What twists and wrenches are measured at and resolved in. (`wrenches` are given in the
            bodies' frames, as everywhere.)

        References
        ----------
        Müller 2018, eq. 78 and 79; a body's equations in the other references: eq. 39, 54, 57–58.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
        >>> e = tree.euler_jourdain_equations("hybrid")([0.3], [2.0])
        >>> tau = e.J.T @ (e.inertia @ e.J_rate @ [2.0] + e.bias - e.applied) + e.joint_forces
        >>> np.allclose(tau, tree.bias_forces([0.3], [2.0]))
        True
        """
        return self._function("euler_jourdain_equations", reference)

    def inverse_dynamics_by_projection(self, reference: Reference = "body") -> TreeFunction:
        """(q, v, a[, wrenches]) → tau as `inverse_dynamics`, by `euler_jourdain_equations`.

        For study and comparison: its cost grows with the square of the number of joints.

        References
        ----------
        Müller 2018, eq. 79.
        """
        return self._function("inverse_dynamics_by_projection", reference)

    @property
    def lagrange_equations(self) -> TreeFunction:
        """(q, v[, wrenches]) → M, C, Q with ``M a + C v = Q + tau``: Lagrange's equations.

        ``M = Jᵀ 𝖬 J`` with the drives' armature on its diagonal; ``C = Jᵀ (𝖬 J̇ − bᵀ 𝖬 J)``, with
        𝖬 and b the M and ad_bodies of `system_matrices`, both (..., nv, nv); Q, (..., nv), are all
        other forces but tau: weight, springs, losses, external wrenches. For joints with
        several degrees of freedom these are Lagrange's equations in quasi-velocities (Hamel's).

        The paper's matrices (eq. 84, 85), which have ``−A a J`` for J̇, are this same C for joints
        of one degree of freedom. For joints that are one group with several (spherical, free) that
        of eq. 85 is another matrix with the same ``C v``; for chains (universal) neither is right.
        ``Ṁ − 2 C`` is not skew for it, only ``vᵀ (Ṁ − 2 C) v`` vanishes: controllers that need a
        skew one take `coriolis_matrix`, which has the same ``C v``.

        References
        ----------
        Müller 2018, eq. 81, 82, 84, 85.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
        >>> tree.lagrange_equations([0.0], [1.0]).M.round(4).tolist()
        [[0.6667]]
        """
        return self._function("lagrange_equations")

    # -- momenta ------------------------------------------------------------------------------

    def body_momenta(self, reference: Reference = "spatial") -> TreeFunction:
        """(q, v) → momentum [p; L] of each body, shape (..., n_bodies, 6).

        Parameters
        ----------
        reference : {"body", "spatial", "hybrid", "mixed"}
            "spatial": world axes, about the world's origin, so that momenta of bodies add.

        References
        ----------
        Müller 2018, eq. 36.
        """
        return self._function("body_momenta", reference)

    @property
    def momentum_dynamics(self) -> TreeFunction:
        """(q, momenta, tau[, wrenches]) → v, momentum_rates: motion in phase space.

        The state is (q, Π) with the spatial momenta Π of all bodies, shape (..., n_bodies, 6), see
        `body_momenta`; ``q̇ = v`` (body-fixed) and ``Π̇ = momentum_rates``. Rates are plain vectors:
        a Runge–Kutta method keeps their sum where nothing acts from outside, to rounding.

        v comes from ``(Jᵀ 𝖬 J) v = Jᵀ Π``, solved in the order of the tree. Momenta that no
        velocity has (an integrator drifts there) are read as the nearest ones that some has; the
        sum over a free-floating tree is untouched by that. Project after each step, by
        `body_momenta` of v. Armatures are no momenta of bodies: they count in the rates only, and
        bodies alone must have a regular mass matrix.

        References
        ----------
        Müller 2018, eq. 80.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
        >>> momenta = tree.body_momenta()([0.3], [2.0])
        >>> v, rates = tree.momentum_dynamics([0.3], momenta, [0.0])
        >>> v.round(12).tolist()
        [2.0]
        """
        return self._function("momentum_dynamics")

    # -- geometry of the kinetic energy -------------------------------------------------------

    @property
    def christoffel_symbols(self) -> TreeFunction:
        """``q`` → Γ[i, j, k] of the first kind, ``M a + Γ v v + … = tau``, (..., nv, nv, nv).

        ``Γ_ijk = ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) = Γ_ikj``; the first index is the
        equation's. ``C_ij = Σ_k Γ_ijk v_k`` is `coriolis_matrix`.

        Raises
        ------
        ValueError
            If a joint's group does not commute (planar, spherical, free, …): its velocities are no
            derivatives of coordinates; `connection_coefficients` are what there is instead.

        References
        ----------
        Müller 2018, eq. 86 to 88, with misprints mended and for bodies with frames anywhere.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0)
        >>> arm = Multibody().add_body("turn", None, "revolute")
        >>> arm = arm.add_body("ball", ball, "prismatic", "turn", axis="x")
        >>> Gamma = arm.christoffel_symbols([0.3, 0.5])  # centrifugal force −m r ω²
        >>> Gamma[1].tolist()
        [[-1.0, 0.0], [0.0, 0.0]]
        """
        return self._function("christoffel_symbols")

    @property
    def connection_coefficients(self) -> TreeFunction:
        """``q`` → Γ[i, j, k] with ``M ∇_x y = M D_x y + Γ x y``, shape (..., nv, nv, nv).

        Coefficients of the Levi-Civita connection of the bodies' kinetic energy in the frame of
        body-fixed joint velocities, first kind. j is the direction of differentiation, k the field:
        ``(∇_{e_j} e_k)·e_i``. By the frame's derivatives D_j (those of ``d ↦ f(plus(q, d))``) and
        structure constants ``[e_j, e_k] = Σ_l c^l_jk e_l``, twice Γ_ijk is
        ``D_j M_ik + D_k M_ij − D_i M_jk + Σ_l (c^l_jk M_li + c^l_ik M_lj + c^l_ij M_lk)``;
        here it is evaluated without derivatives or structure constants.

        - ``Γ v v`` are the velocity-dependent forces of bodies: ``M a + Γ v v + … = tau``.
        - ``C_ik = Σ_j Γ_ijk v_j`` is `coriolis_matrix`. For joints with one degree of freedom the
          last two indices commute, and these are `christoffel_symbols`.
        - The connection keeps the metric: ``D_j M_ik = Γ_ijk + Γ_kji``, hence ``Ṁ − 2 C`` is skew;
          and has no torsion: ``Γ_ijk − Γ_ikj = Σ_l M_il c^l_jk``.

        Armatures of drives are constant and not in Γ; M is that of the bodies.

        References
        ----------
        Müller 2018, eq. 87 and 88, which are the case of one degree of freedom for each joint.
        Bullo and Lewis, Geometric Control of Mechanical Systems (2005), section 4.5.

        Examples
        --------
        Euler's equations of a free rotor: ``Γ ω ω = ω × J ω``.

        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rotor = SpatialInertia(1.0, [0, 0, 0], np.diag([1.0, 2.0, 2.5]))
        >>> tree = Multibody().add_body("rotor", rotor, "spherical")
        >>> Gamma, w = tree.connection_coefficients(tree.neutral), np.array([1.0, 2.0, 3.0])
        >>> np.einsum("ijk,j,k", Gamma, w, w).tolist()
        [3.0, -4.5, 2.0]
        """
        return self._function("connection_coefficients")

    @property
    def mass_matrix_derivatives(self) -> TreeFunction:
        """``q`` → ∂M[i, j] / ∂q[k], shape (..., nv, nv, nv).

        By q as in `inverse_dynamics_derivatives`: derivatives of ``d ↦ M(plus(q, d))`` at 0.

        References
        ----------
        Müller 2018, eq. 6 and 82.
        """
        return self._function("mass_matrix_derivatives")

    @property
    def mass_matrix_inverse_derivatives(self) -> TreeFunction:
        """``q`` → M_inverse (..., nv, nv), and its derivatives by q[k], shape (..., nv, nv, nv).

        ``∂M⁻¹/∂q_k = −M⁻¹ ∂M/∂q_k M⁻¹``: how the answer to a force changes with the pose. The same
        tensor, with its last two indices exchanged, is the ``d2_a_d_q_d_tau`` of
        `forward_dynamics_second_derivatives`: take that one where other second derivatives are
        needed too, and `forward_dynamics_hessian` where only a weighted sum is.

        References
        ----------
        Müller 2018, section 6.1.
        """
        return self._function("mass_matrix_inverse_derivatives")

    # -- linearization ------------------------------------------------------------------------

    @property
    def linearized_equations(self) -> TreeFunction:
        """(q, v, a[, wrenches]) → M, D, K, ad_v: small motions about a motion, (..., nv, nv) each.

        ``M δv̇ + D δv + K ε = δτ`` with ``X = X̄ exp(ε)``, ``ε̇ = δv − ad_v ε``. D has damping and
        gyroscopic forces, K stiffness: weight, springs, centrifugal forces, external wrenches
        (fixed in their bodies). The state matrix of (ε, δv) is
        ``[[−ad_v, 1], [−M⁻¹ K, −M⁻¹ D]]``, that of ``tree.system().linearize``. ad_v is the bracket
        of the joints' groups: zero for joints with one degree of freedom.

        About an equilibrium v and a are zero: see `normal_modes`.

        References
        ----------
        Müller 2018, section 6.1.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
        >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
        >>> tree.linearized_equations([0.0], [0.0], [0.0]).K.round(6).tolist()
        [[9.81]]
        """
        return self._function("linearized_equations")

    @property
    def linearized_error_equations(self) -> TreeFunction:
        """(q, v, a[, wrenches]) → M, D, K with ``M ε̈ + D ε̇ + K ε = δτ``, (..., nv, nv) each.

        `linearized_equations` as one equation of second order in ``ε = minus(X, X̄)``: with
        ``δv = ε̇ + ad_v ε``, ``D + M ad_v`` and ``K + D ad_v + M ad_a`` take the places of D and K.
        """
        return self._function("linearized_error_equations")

    normal_modes = normal_modes

    # -- identification -----------------------------------------------------------------------

    base_parameters = base_parameters
