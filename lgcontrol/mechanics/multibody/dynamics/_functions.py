"""The model functions of a tree as its attributes and methods."""

from __future__ import annotations

from ....codegen import unknown_name
from ..kinematics._frames import Acceleration, Reference
from ..plan._tree_function import FunctionSource, TreeFunction


class TreeFunctions(FunctionSource):
    """Everything a tree can compute, each a `ModelFunction` traced when first used.

    q are coordinates on `configuration`, v and a tangent (body-fixed) velocities and their rates,
    tau generalized forces, each stacked in the order of `joints`. Where a function says *wrenches*,
    external wrenches [f; m] on the bodies may follow: in the body's frame, about its origin, shape
    (..., n_bodies, 6), for CasADi 6 × n_bodies. Trees with parameters take ``p`` last.

    Generalized forces include drives, losses and springs of the joints. Bodies move as
    ``M(q) a + C(q, v) v + g(q) + losses = tau + Σ Jᵀ wrench``.
    """

    # -- dynamics -----------------------------------------------------------------------------

    @property
    def inverse_dynamics(self) -> TreeFunction:
        """(q, v, a[, wrenches]) → tau: forces that the accelerations need, shape (..., nv).

        Their time derivatives: `inverse_dynamics_time_derivatives`.
        """
        return self._function("inverse_dynamics")

    @property
    def forward_dynamics(self) -> TreeFunction:
        """(q, v, tau[, wrenches]) → a, by whichever algorithm has fewer operations, (..., nv)."""
        return self._function("forward_dynamics")

    @property
    def forward_dynamics_by_recursion(self) -> TreeFunction:
        """(q, v, tau[, wrenches]) → a, in O(n) by articulated bodies; not with mimics."""
        if self.is_coupled:
            raise ValueError(
                "joints that mimic close loops, which the articulated-body recursion cannot "
                "follow: use forward_dynamics, or from_urdf(..., mimic=False)"
            )
        return self._function("forward_dynamics_by_recursion")

    @property
    def forward_dynamics_by_factor(self) -> TreeFunction:
        """(q, v, tau[, wrenches]) → a, from the sparse factor of the mass matrix."""
        return self._function("forward_dynamics_by_factor")

    @property
    def bias_forces(self) -> TreeFunction:
        """(q, v[, wrenches]) → tau at a = 0: Coriolis, centrifugal, weight, losses, springs."""
        return self._function("bias_forces")

    @property
    def gravity_forces(self) -> TreeFunction:
        """``q`` → tau that holds the tree at rest against weight and springs, shape (..., nv)."""
        return self._function("gravity_forces")

    @property
    def mass_matrix(self) -> TreeFunction:
        """``q`` → M with ``kinetic energy = ½ vᵀ M v``, shape (..., nv, nv)."""
        return self._function("mass_matrix")

    @property
    def mass_matrix_inverse(self) -> TreeFunction:
        """``q`` → M⁻¹, shape (..., nv, nv)."""
        return self._function("mass_matrix_inverse")

    @property
    def mass_matrix_factor(self) -> TreeFunction:
        """``q`` → (L, D) with ``M = Lᵀ diag(D) L``, L unit lower triangular, sparse."""
        return self._function("mass_matrix_factor")

    @property
    def coriolis_matrix(self) -> TreeFunction:
        """(q, v) → C with ``C v`` the velocity-dependent forces of bodies, ``Ṁ − 2 C`` skew.

        Of the many such C it is the one of the kinetic energy's own connection:
        ``C_ik = Σ_j Γ_ijk v_j`` with `connection_coefficients` Γ, `christoffel_symbols` for joints
        with one degree of freedom.
        """
        return self._function("coriolis_matrix")

    @property
    def inverse_dynamics_derivatives(self) -> TreeFunction:
        """(q, v, a[, wrenches]) → d_tau_d_q, d_tau_d_v, d_tau_d_a, shape (..., nv, nv) each.

        Derivatives by q are those of ``d ↦ f(plus(q, d))`` at 0; wrenches stay fixed in their
        bodies.
        """
        return self._function("inverse_dynamics_derivatives")

    @property
    def forward_dynamics_derivatives(self) -> TreeFunction:
        """(q, v, tau[, wrenches]) → d_a_d_q, d_a_d_v, d_a_d_tau = M⁻¹, (..., nv, nv) each."""
        return self._function("forward_dynamics_derivatives")

    @property
    def inverse_dynamics_regressor(self) -> TreeFunction:
        """(q, v, a) → Y with ``tau = Y inertial_parameters`` for the bodies, (..., nv, 10 n)."""
        return self._function("inverse_dynamics_regressor")

    @property
    def joint_wrenches(self) -> TreeFunction:
        """(q, v, a[, wrenches]) → wrench on each body through its joint, (..., n, 6)."""
        return self._function("joint_wrenches")

    def joint_wrench(self, joint: str) -> TreeFunction:
        """(q, v, a[, wrenches]) → wrench on the child through one joint, fixed ones too, (..., 6).

        It is what a force-torque sensor in the joint measures: in the joint frame after the
        motion, about its origin. External wrenches act on the body frame's link: beyond a fixed
        joint only those on moving bodies count.

        Parameters
        ----------
        joint : str

        Raises
        ------
        KeyError
            If there is no such joint.
        """
        return self._function("joint_wrench", joint)

    # -- energy and momentum --------------------------------------------------------------------

    @property
    def kinetic_energy(self) -> TreeFunction:
        """(q, v) → kinetic energy of bodies and drives [J], shape (...)."""
        return self._function("kinetic_energy")

    @property
    def potential_energy(self) -> TreeFunction:
        """``q`` → energy of weight (zero at the world's origin) and springs [J], shape (...)."""
        return self._function("potential_energy")

    @property
    def center_of_mass(self) -> TreeFunction:
        """``q`` → centre of mass of the bodies in the world [m], shape (..., 3)."""
        return self._function("center_of_mass")

    @property
    def center_of_mass_velocity(self) -> TreeFunction:
        """(q, v) → velocity of the centre of mass, world axes [m/s], shape (..., 3)."""
        return self._function("center_of_mass_velocity")

    @property
    def center_of_mass_acceleration(self) -> TreeFunction:
        """(q, v, a) → acceleration of the centre of mass, world axes [m/s²], shape (..., 3)."""
        return self._function("center_of_mass_acceleration")

    @property
    def center_of_mass_jacobian(self) -> TreeFunction:
        """``q`` → J with centre of mass velocity ``J v``, shape (..., 3, nv)."""
        return self._function("center_of_mass_jacobian")

    @property
    def centroidal_momentum(self) -> TreeFunction:
        """(q, v) → [p; L] about the centre of mass, world axes, shape (..., 6)."""
        return self._function("centroidal_momentum")

    @property
    def centroidal_momentum_rate(self) -> TreeFunction:
        """(q, v, a) → rate of `centroidal_momentum`: the external wrench it takes, (..., 6)."""
        return self._function("centroidal_momentum_rate")

    @property
    def centroidal_momentum_matrix(self) -> TreeFunction:
        """``q`` → A with momentum ``A v``, shape (..., 6, nv)."""
        return self._function("centroidal_momentum_matrix")

    @property
    def centroidal_momentum_matrix_rate(self) -> TreeFunction:
        """(q, v) → time derivative of `centroidal_momentum_matrix`, shape (..., 6, nv)."""
        return self._function("centroidal_momentum_matrix_rate")

    # -- kinematics -----------------------------------------------------------------------------

    @property
    def body_velocities(self) -> TreeFunction:
        """(q, v) → body twists [v; ω] of all bodies, shape (..., n_bodies, 6)."""
        return self._function("body_velocities")

    @property
    def body_accelerations(self) -> TreeFunction:
        """(q, v, a) → rates of the body twists, shape (..., n_bodies, 6)."""
        return self._function("body_accelerations")

    def placement(self, frame: str) -> TreeFunction:
        """``q`` → T_world_frame as SE3 coordinates, shape (..., 7).

        Parameters
        ----------
        frame : str
            One of `frames`.

        Raises
        ------
        KeyError
            If there is no such frame; the message lists them.
        """
        return self._function("placement", frame)

    def position(self, frame: str) -> TreeFunction:
        """``q`` → origin of a frame in the world [m], shape (..., 3)."""
        return self._function("position", frame)

    def jacobian(self, frame: str, reference: Reference = "body") -> TreeFunction:
        """``q`` → J with frame twist ``J v`` in the reference, shape (..., 6, nv).

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
            "body": axes and origin of the frame; "spatial": those of the world; "hybrid": origin
            of the frame, axes of the world; "mixed": linear part in world axes, angular part in
            the frame's.

        References
        ----------
        Müller 2018, section 2.
        """
        return self._function("jacobian", frame, reference)

    def jacobian_rate(self, frame: str, reference: Reference = "body") -> TreeFunction:
        """(q, v) → time derivative of `jacobian`, shape (..., 6, nv).

        Higher orders: `jacobian_time_derivative`; by coordinates: `jacobian_derivatives`.
        """
        return self._function("jacobian_rate", frame, reference)

    def velocity(self, frame: str, reference: Reference = "body") -> TreeFunction:
        """(q, v) → twist [v; ω] of a frame, shape (..., 6).

        Its derivatives: `twist_derivative`, `jerk`, `jounce`.
        """
        return self._function("velocity", frame, reference)

    def wrenches_at(self, frame: str, reference: Reference = "body") -> TreeFunction:
        """(q, wrench) → wrenches on all bodies for one [f; m] on a frame, (..., n_bodies, 6).

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
            Axes and point of the wrench, dual to those of a twist: "hybrid" is a force and a
            moment in world axes, about the frame's origin.
        """
        return self._function("wrenches_at", frame, reference)

    def acceleration(
        self, frame: str, reference: Reference = "body", kind: Acceleration = "classical"
    ) -> TreeFunction:
        """(q, v, a) → acceleration of a frame, shape (..., 6).

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
        kind : {"classical", "spatial"}
            "classical": acceleration of the frame's origin (add −gravity for what an accelerometer
            feels) and angular acceleration; "spatial": the rate of the body twist, in the axes and
            about the point of the reference.
        """
        if kind not in ("classical", "spatial"):
            raise ValueError(unknown_name("kind of acceleration", kind, ("classical", "spatial")))
        return self._function("acceleration", frame, reference, kind)
