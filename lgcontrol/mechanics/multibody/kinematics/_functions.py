"""Derivatives of higher order and by the geometry, as attributes and methods of a tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ..parameters._calibration import Calibration, calibrate
from ..plan._tree_function import FunctionSource, TreeFunction
from ._frames import Reference
from ._recipes import DISPLACEMENTS, check_order, displaced_joints

if TYPE_CHECKING:
    from ..tree._tree import Multibody


class HigherOrderFunctions(FunctionSource):
    """Kinematics of higher order, and sensitivities to the geometry, in closed form.

    Arguments after q are the body-fixed velocities of the joints and their time derivatives: v,
    a, j (jerk), s (snap), c (crackle), then v5, v6, … (the fifth, sixth derivative of v).
    Derivatives by q are those of ``d ↦ f(plus(q, d))`` at 0. Frames and references are those of
    `jacobian`.
    """

    # -- time -----------------------------------------------------------------------------------

    def twist_derivative(
        self, frame: str, reference: Reference = "body", order: int = 1
    ) -> TreeFunction:
        """(q, v, a, …) → time derivative of the components of `velocity`, shape (..., 6).

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
            The components are differentiated in it. In "hybrid" and "mixed" the linear part is
            therefore the derivative of the position of the frame's origin, of order + 1; in "body"
            and "spatial" it is not.
        order : int
            At least 1. Order 1 takes (q, v, a), order 2 (q, v, a, j), and so on.

        Returns
        -------
        TreeFunction

        Raises
        ------
        KeyError, ValueError
            If there is no such frame, reference or order.

        References
        ----------
        Müller 2018, eq. 7, 14, 18, 22, 29, 32; recursively, as eq. 66 differentiated.

        Examples
        --------
        A point on a wheel of radius 2 that turns at 3 rad/s:

        >>> from lgcontrol.mechanics import Multibody
        >>> wheel = Multibody().add_body("wheel", None, "revolute")
        >>> wheel = wheel.add_frame("rim", "wheel", [2, 0, 0])
        >>> wheel.twist_derivative("rim", "hybrid", 1)([0.0], [3.0], [0.0])[:1]
        array([-18.])
        >>> wheel.twist_derivative("rim", "hybrid", 2)([0.0], [3.0], [0.0], [0.0])[1:2]
        array([-54.])
        """
        return self._function(
            "twist_derivative", frame, reference, check_order(order, "tree.velocity")
        )

    def jerk(self, frame: str, reference: Reference = "hybrid") -> TreeFunction:
        """(q, v, a, j) → second time derivative of `velocity`, shape (..., 6).

        In the default reference: jerk of the frame's origin, the third derivative of its position
        [m/s³], and second derivative of the angular velocity, both in world axes. In the others
        the second derivative of the twist's components.
        """
        return self._function("twist_derivative", frame, reference, 2)

    def jounce(self, frame: str, reference: Reference = "hybrid") -> TreeFunction:
        """(q, v, a, j, s) → third time derivative of `velocity`, shape (..., 6).

        In the default reference: jounce (snap) of the frame's origin, the fourth derivative of
        its position [m/s⁴], and third derivative of the angular velocity, both in world axes.
        """
        return self._function("twist_derivative", frame, reference, 3)

    def jacobian_time_derivative(
        self, frame: str, reference: Reference = "body", order: int = 1
    ) -> TreeFunction:
        """(q, v, a, …) → time derivative of `jacobian`, shape (..., 6, nv).

        Order 1 is `jacobian_rate` and takes (q, v), order 2 takes (q, v, a), and so on.

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
        order : int
            At least 1.

        References
        ----------
        Müller 2018, eq. 9, 17, 31.
        """
        return self._function(
            "jacobian_time_derivative", frame, reference, check_order(order, "tree.jacobian")
        )

    def inverse_dynamics_time_derivatives(self, order: int = 1) -> TreeFunction:
        """(q, v, a, j, …[, wrenches]) → tau, tau_dot, tau_ddot, …, shape (..., nv) each.

        Forces that a motion needs and how they change along it, all orders in one call because
        they share their work. Flatness-based control of series-elastic arms takes order 2: motors
        of inertias B behind springs K stand at ``θ = q + K⁻¹ tau`` and give ``B θ̈ + tau``, with
        ``θ̈ = a + K⁻¹ tau_ddot``.

        Parameters
        ----------
        order : int
            At least 1. Order 1 takes (q, v, a, j), order 2 (q, v, a, j, s), and so on.

        Returns
        -------
        TreeFunction
            Results are a named tuple: tau (that of `inverse_dynamics`), tau_dot, tau_ddot, then
            tau_3, tau_4, ….

        Raises
        ------
        ValueError
            If the order is not an integer of at least 1.

        Notes
        -----
        Weight, drives, losses (smooth dry friction, too) and springs are in. External wrenches
        are constant in their bodies' frames; those that change are added by Leibniz' rule with
        `jacobian_time_derivative`. Dry friction over a small `friction_speed` gives large
        derivatives where a joint turns back.

        For the UR5, orders up to 1 take 784 operations and up to 2 take 1424 (378 for tau alone);
        automatic differentiation along the motion 1340 and 4446. For the Panda 1459 and 2530
        (705) instead of 2567 and 8555.

        References
        ----------
        Müller 2018, section 6.3: Newton–Euler recursion (eq. 67, 68) differentiated in time.

        Examples
        --------
        A ball of 2 kg on a level hinge, 1 m below it, at jerk 1:

        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> tree.inverse_dynamics_time_derivatives()([0.0], [3.0], [0.0], [1.0]).tau_dot.round(2)
        array([60.86])
        """
        return self._function(
            "inverse_dynamics_time_derivatives", check_order(order, "tree.inverse_dynamics")
        )

    # -- coordinates ----------------------------------------------------------------------------

    def jacobian_derivatives(
        self, frame: str, reference: Reference = "body", order: int = 1
    ) -> TreeFunction:
        """``q`` → partial derivatives of `jacobian`, shape (..., 6, nv, nv[, nv …]).

        ``dJ[:, j, k]`` is the derivative of column j by degree of freedom k;
        ``dJ[:, j, k, l]`` that of ``dJ[:, j, k]`` by l: the last index is differentiated last.

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
        order : int
            At least 1.

        Returns
        -------
        TreeFunction

        Raises
        ------
        KeyError, ValueError
            If there is no such frame, reference or order, or the tensor has millions of entries.

        Notes
        -----
        By joints with one degree of freedom these are ordinary partial derivatives, symmetric in
        k, l, …. For joints with several, the derivative by k is that of ``d ↦ J(plus(q, d e_k))``
        at 0: along a left-invariant field. Derivatives are nested one-sided ones,
        ``∂²/∂s∂r J(q · exp(s e_l) · exp(r e_k))``. Those by two directions of the *same* joint do
        not commute: they differ by the derivative along the bracket of the two.

        References
        ----------
        Müller 2018, eq. 6, 13, 15 (body), 16, 21, 24 (spatial), 26 (hybrid). Eq. 26 holds for
        joints k from j to the frame; for those before j the derivative is ``[ω_k, J_j]``.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody
        >>> arm = Multibody().add_body("upper", None, "revolute")
        >>> arm = arm.add_body("lower", None, "revolute", "upper", [1, 0, 0])
        >>> arm.jacobian_derivatives("lower")([0.3, 0.0])[:1, 0, 1]
        array([1.])
        """
        return self._function(
            "jacobian_derivatives", frame, reference, check_order(order, "tree.jacobian")
        )

    # -- geometry -------------------------------------------------------------------------------

    def geometric_parameters(self, joints: Sequence[str] = ()) -> tuple[str, ...]:
        """Names of the numbers that place joints, six for each, in the order of the derivatives.

        They are numbers of `parametric`: ``joint.placement.x``, ``y``, ``z`` in the axes of the
        parent link [m], ``rx``, ``ry``, ``rz`` about the axes of the joint frame [rad]. An offset
        of a joint's angle or travel is among them, as a motion along its axis.

        Parameters
        ----------
        joints : sequence of str
            Names, fixed joints too. By default all joints that move.

        Raises
        ------
        KeyError
            If there is no such joint.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody
        >>> Multibody().add_body("rod", None, "revolute").geometric_parameters()[:2]
        ('rod.placement.x', 'rod.placement.y')
        """
        names = displaced_joints(cast("Multibody", self), _names(joints))
        return tuple(f"{name}.placement.{key}" for name in names for key in DISPLACEMENTS)

    def calibration_jacobian(
        self, frame: str, reference: Reference = "body", joints: Sequence[str] = ()
    ) -> TreeFunction:
        """``q`` → displacement of a frame by the geometry, shape (..., 6, n_parameters).

        Also called identification Jacobian. To first order, ``J π`` is how changes π of the
        placements displace the frame, a small twist in the reference: in "body" it is
        ``minus(T_changed, T)``, in "hybrid" the position and the rotation vector in the world.

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
        joints : sequence of str
            Joints whose placements change, fixed ones too; by default all that move. The columns
            are `geometric_parameters` of them.

        Returns
        -------
        TreeFunction

        Raises
        ------
        KeyError, ValueError
            If there is no such frame, joint or reference.

        Notes
        -----
        Not all parameters can be told apart by poses: the rank of the stacked Jacobians says how
        many can. `calibrate` finds placements from poses.

        References
        ----------
        Müller 2018, section 6.2: ``B exp(U π)`` in the product of exponentials.

        Examples
        --------
        A pendulum whose pivot is not where it is thought to be, found from four positions:

        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody
        >>> tree = Multibody().add_body("rod", None, "revolute").add_frame("tip", "rod", [1, 0, 0])
        >>> real = Multibody().add_body("rod", None, "revolute", placement=[1e-3, 2e-3, 0])
        >>> real = real.add_frame("tip", "rod", [1, 0, 0])
        >>> q = np.array([[0.0], [1.0], [2.0], [3.0]])
        >>> error = real.position("tip")(q) - tree.position("tip")(q)
        >>> J = tree.calibration_jacobian("tip", "hybrid")(q)[:, :3].reshape(-1, 6)
        >>> found = np.linalg.lstsq(J, error.ravel())[0]
        >>> dict(zip(tree.geometric_parameters()[:2], found[:2].round(9).tolist()))
        {'rod.placement.x': 0.001, 'rod.placement.y': 0.002}
        """
        return self._function("calibration_jacobian", frame, reference, _names(joints))

    def calibrate(
        self,
        frame: str,
        q: Any,
        poses: Any,
        *,
        joints: Sequence[str] = (),
        noise: Any = None,
        prior: Any = None,
    ) -> Calibration:
        """Placements of joints from measured poses or positions of a frame.

        Damped Gauss–Newton steps of ``Σ |minus(measured, predicted) / noise|²``, and with a prior
        ``+ |change / prior|²``, with `calibration_jacobian` as derivative.

        Parameters
        ----------
        frame : str
        q : array_like, shape (n, nq)
            Configurations as the encoders tell them.
        poses : array_like, shape (n, 7) or (n, 3)
            Measured pose of the frame in the world, SE3 coordinates, or its position [m].
        joints : sequence of str
            Joints whose placements are looked for, fixed ones too; by default all that move. For a
            tracker that stands anywhere or a probe mounted anyhow, name fixed joints before the
            first or after the last one.
        noise : array_like, shape (2,), (6,) for poses or (1,), (3,) for positions, optional
            Standard deviations of position [m] and rotation [rad], of what is measured, in the
            frame's axes (positions: world's). Left out, they are estimated from the residuals.
        prior : array_like, shape (2,) or (n_parameters,), optional
            Standard deviations of the placements [m], [rad] before the measurement, such as
            tolerances of manufacture. Without, combinations that poses do not tell do not change;
            with parallel axes some are told hardly, and the prior keeps them small.

        Returns
        -------
        Calibration
            `tree` is the calibrated tree.

        Raises
        ------
        KeyError, ValueError
            If there is no such frame or joint, or numbers do not fit.

        References
        ----------
        Müller 2018, section 6.2; Hollerbach and Wampler, "The calibration index and taxonomy for
        robot kinematic calibration methods", Int. J. Robotics Research 15 (1996), 573–591.

        Examples
        --------
        >>> import numpy as np
        >>> from lgcontrol.mechanics import Multibody
        >>> drawing = Multibody().add_body("rod", None, "revolute")
        >>> drawing = drawing.add_frame("tip", "rod", [1, 0, 0])
        >>> real = drawing.with_parameters({"rod.placement.x": 1e-3, "rod.placement.rz": 2e-3})
        >>> q = np.linspace(-1, 1, 9)[:, None]
        >>> found = drawing.calibrate("tip", q, real.placement("tip")(q))
        >>> dict(zip(found.parameters, found.changes.round(9) + 0.0))["rod.placement.rz"]
        np.float64(0.002)
        >>> found.rank, found.tree.position("tip")([0.0]).round(6).tolist()
        (6, [1.000998, 0.002, 0.0])
        """
        return calibrate(cast("Multibody", self), frame, q, poses, _names(joints), noise, prior)

    def jacobian_geometry_derivatives(
        self, frame: str, reference: Reference = "body", joints: Sequence[str] = ()
    ) -> TreeFunction:
        """``q`` → derivatives of `jacobian` by the geometry, shape (..., 6, nv, n_parameters).

        Parameters
        ----------
        frame : str
        reference : {"body", "spatial", "hybrid", "mixed"}
        joints : sequence of str
            As in `calibration_jacobian`.

        References
        ----------
        Müller 2018, section 6.2, with brackets as in eq. 6.
        """
        return self._function("jacobian_geometry_derivatives", frame, reference, _names(joints))

    def inverse_dynamics_geometry_derivatives(self, joints: Sequence[str] = ()) -> TreeFunction:
        """(q, v, a[, wrenches]) → derivatives of τ by the geometry, shape (..., nv, n_parameters).

        Bodies keep their inertias and what acts on them in their own frames; drives, losses and
        springs do not depend on the geometry. Forward dynamics change by ``−M⁻¹`` times this.

        Parameters
        ----------
        joints : sequence of str
            As in `calibration_jacobian`.

        Returns
        -------
        TreeFunction

        References
        ----------
        Müller 2018, section 6.2.

        Examples
        --------
        A ball at 1 m on a level hinge: raising the pivot along the rod changes nothing, turning
        it by an angle swings the weight.

        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> slope = tree.inverse_dynamics_geometry_derivatives()([0.0], [0.0], [0.0])
        >>> dict(zip(tree.geometric_parameters(), slope[0].round(2).tolist()))["ball.placement.ry"]
        19.62
        """
        return self._function("inverse_dynamics_geometry_derivatives", _names(joints))


def _names(joints: Sequence[str]) -> Sequence[str]:
    """Names as a key; a single string is refused later."""
    return joints if isinstance(joints, str) else tuple(joints)
