"""Multibody: a tree of rigid bodies whose joints are Lie groups, with all it can compute."""

from __future__ import annotations

from functools import cached_property
from inspect import signature
from typing import TYPE_CHECKING, Any

from ...systems import System
from ._look import tree_scene
from ._system import multibody_system, velocity_form
from .closed_forms import _connection as connection
from .closed_forms import _equations as equations
from .derivatives import _first as derivatives
from .derivatives import _second as second_derivatives
from .dynamics import _dynamics as dynamics
from .dynamics import _momentum as momentum
from .dynamics import _representations as representations
from .dynamics import _time_derivatives as rates
from .kinematics import _frames as frames
from .kinematics import _jacobian_derivatives as jacobians
from .kinematics import _recursions as bodies
from .parameters import _base_parameters as base
from .parameters import _calibration as calibration
from .parameters import _regressor as regressor
from .tree._tree import Tree
from .tree._urdf import tree_from_screws, tree_from_urdf

# What a system is made of, which newcomers look for on its tree.
_OF_SYSTEMS = frozenset(signature(System).parameters)


class Multibody(Tree):
    """A tree of rigid bodies, with every quantity of its mechanics as a model function.

    Trees do not change: `add_body` and its like return new ones. Start with an empty tree and add
    bodies, or read a file with `from_urdf`.

    Parameters
    ----------
    name : str
    gravity : array_like, shape (3,)
        Gravitational acceleration in the world [m/s²].

    Attributes
    ----------
    configuration : LieGroup
        Product of the joints' groups, by joint name.
    nq, nv : int
        Number of coordinates, and degrees of freedom.
    joints : tuple of str
        Joints with degrees of freedom of their own, in the order of q and v: depth-first,
        children in the order they were added.
    bodies : tuple of str
        Links that a joint moves; what is fixed to a link belongs to its body. External wrenches,
        `body_velocities` and the like have one row for each.
    links, moving_links : tuple of str
        All links, fixed ones too, and those that move on their own; `link` gives one with its
        joint.
    frames : tuple of str
        Names that `placement`, `jacobian`, … take: "world", all links, added frames, joints. A
        joint's frame is called "joint NAME" where NAME is that of another frame.
    parameters : tuple of str
        Names of the symbolic parameters (see `symbolic`).

    Notes
    -----
    By topic:

    - Building: `from_urdf`, `from_screws`, `add_body`, `add_frame`, `attach`, `lock`,
      `move_frames`, `with_properties`, `with_added_mass`; numbers: `symbolic`, `with_parameters`.
    - The System for simulation and control: `system`; its other velocities: `velocity_form`.
    - To be seen: `scene`.
    - Dynamics: `inverse_dynamics`, `forward_dynamics` (`_by_recursion`, `_by_factor`),
      `bias_forces`, `gravity_forces`, `mass_matrix` (`_inverse`, `_factor`), `coriolis_matrix`,
      `inverse_dynamics_by_recursion`, `inverse_dynamics_time_derivatives`,
      `two_velocity_dynamics`, `joint_wrenches` (`_time_derivatives`), `joint_wrench`.
    - Energy and momentum: `kinetic_energy`, `potential_energy`, `center_of_mass` (`_velocity`,
      `_acceleration`, `_jacobian`), `centroidal_momentum` (`_rate`, `_matrix`, `_matrix_rate`).
    - Kinematics of frames: `placement`, `position`, `velocity`, `acceleration`, `jacobian`,
      `jacobian_rate`, `twist_derivative`, `jerk`, `jounce`, `jacobian_time_derivative`,
      `jacobian_derivatives`, `manipulability`, `wrenches_at`; of bodies: `body_velocities`,
      `body_accelerations`.
    - Derivatives of the dynamics: `inverse_dynamics_derivatives`,
      `forward_dynamics_derivatives`, `…_second_derivatives`, `…_hessian`,
      `linearized_equations`, `linearized_error_equations`, `normal_modes`.
    - Closed forms: `system_jacobian` (`_rate`), `system_matrices`, `joint_motion`,
      `euler_jourdain_equations`, `forward_dynamics_in`,
      `inverse_dynamics_by_projection`, `lagrange_equations`, `body_momenta`,
      `momentum_dynamics`, `christoffel_symbols`, `connection_coefficients`,
      `mass_matrix_derivatives`, `mass_matrix_inverse_derivatives`.
    - Parameters: `inverse_dynamics_regressor`, `inertial_parameters`, `base_parameters`,
      `forward_dynamics_parameter_derivatives`; of the geometry: `geometric_parameters`,
      `calibrate`, `calibration_jacobian`, `jacobian_geometry_derivatives`,
      `inverse_dynamics_geometry_derivatives`.

    Functions are traced when first used and kept. q are coordinates on `configuration`, v and a
    tangent (body-fixed) velocities and their rates, tau generalized forces. Each is stacked in the
    order of `joints`. Further rates are called j (jerk), s (snap), c (crackle), v5, …. Functions
    with *wrenches* also take external wrenches [f; m] on the bodies, in the body's frame and about
    its origin. Their shape is (..., n_bodies, 6), for CasADi 6 × n_bodies. Trees with parameters
    take ``p`` last. Generalized forces include drives, losses and springs of the joints. Bodies
    move as ``M(q) a + C(q, v) v + g(q) + losses = tau + Σ Jᵀ wrench``. Derivatives by q are those
    of ``d ↦ f(plus(q, d))`` at 0.

    A tree's functions are those of its bodies and joints, and of the added mass of links in a
    fluid at rest (`with_added_mass`). Other surroundings (forces on links, a current) are given to
    `system` and known to that `System` only. In water ``system.f`` has the accelerations, and
    controllers are given the system besides the tree.

    A tree's functions are made for loops and do not check values. Coordinates that are off their
    group (a quaternion of length 2 or 0) give wrong numbers without notice.
    ``configuration.normalize(q)`` brings them back, `lgcontrol.groups.check_element` refuses them.

    In a tensor ``T[i, j, k]`` is the derivative of entry i by variable j and then by variable k.
    CasADi has no tensors: where NumPy has the shape (nv, nv, nv), symbols give the nv × nv² matrix
    of its slices ``[T[:, :, 0], T[:, :, 1], …]``, ``T[i, k * nv + j]``. Second derivatives by q
    are symmetric. Successive derivatives are not symmetric if a joint is a group that does not
    commute (spherical, free, …). Differences of `inverse_dynamics_derivatives` give the derivative
    along k of the derivative along j. It is ``T[:, j, k] + ½ K ad(e_k) e_j`` with K the first
    derivative by q and ad that of `configuration`. Tensors and matrices of stacked bodies are for
    small trees: tracing takes 0.2 ms an entry. Above 5 s a log message says so; above 2 million
    entries a ValueError refuses it. Hessians work for any tree.

    Examples
    --------
    A pendulum: a rod of 1 m on a hinge about y.

    >>> import numpy as np
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> pendulum = Multibody("pendulum").add_body("rod", rod, "revolute", axis="y")
    >>> pendulum.mass_matrix([0.3])
    array([[0.66666667]])
    >>> pendulum.gravity_forces(np.array([[0.0], [np.pi / 2]])).round(3).tolist()
    [[0.0], [9.81]]
    """

    if not TYPE_CHECKING:  # a type checker takes it for every name

        def __getattr__(self, name: str) -> Any:
            """Say where to find what a system has and a tree has not."""
            if not name.startswith("_") and (hasattr(System, name) or name in _OF_SYSTEMS):
                raise AttributeError(
                    f"a Multibody has no {name!r}; its system has: tree.system(…).{name}", name=name
                )
            return super().__getattr__(name)

    from_urdf = classmethod(tree_from_urdf)
    from_screws = classmethod(tree_from_screws)
    system = multibody_system
    velocity_form = velocity_form
    scene = tree_scene

    # Dynamics
    inverse_dynamics = dynamics.inverse_dynamics
    inverse_dynamics_time_derivatives = rates.inverse_dynamics_time_derivatives
    two_velocity_dynamics = rates.two_velocity_dynamics
    inverse_dynamics_by_recursion = representations.inverse_dynamics_by_recursion
    bias_forces = dynamics.bias_forces
    gravity_forces = dynamics.gravity_forces
    forward_dynamics = dynamics.forward_dynamics
    forward_dynamics_by_factor = dynamics.forward_dynamics_by_factor
    forward_dynamics_by_recursion = dynamics.forward_dynamics_by_recursion
    mass_matrix = dynamics.mass_matrix
    mass_matrix_factor = dynamics.mass_matrix_factor
    mass_matrix_inverse = dynamics.mass_matrix_inverse
    coriolis_matrix = derivatives.coriolis_matrix
    joint_wrenches = bodies.joint_wrenches
    joint_wrenches_time_derivatives = rates.joint_wrenches_time_derivatives
    joint_wrench = bodies.joint_wrench

    # Energy and momentum
    kinetic_energy = momentum.kinetic_energy
    potential_energy = momentum.potential_energy
    center_of_mass = momentum.center_of_mass
    center_of_mass_velocity = momentum.center_of_mass_velocity
    center_of_mass_acceleration = momentum.center_of_mass_acceleration
    center_of_mass_jacobian = momentum.center_of_mass_jacobian
    centroidal_momentum = momentum.centroidal_momentum
    centroidal_momentum_rate = momentum.centroidal_momentum_rate
    centroidal_momentum_matrix = momentum.centroidal_momentum_matrix
    centroidal_momentum_matrix_rate = momentum.centroidal_momentum_matrix_rate

    # Kinematics
    body_velocities = bodies.body_velocities
    body_accelerations = bodies.body_accelerations
    placement = frames.placement
    position = frames.position
    velocity = frames.velocity
    acceleration = frames.acceleration
    twist_derivative = frames.twist_derivative
    jerk = frames.jerk
    jounce = frames.jounce
    jacobian = frames.jacobian
    jacobian_rate = frames.jacobian_rate
    jacobian_time_derivative = frames.jacobian_time_derivative
    jacobian_derivatives = jacobians.jacobian_derivatives
    manipulability = frames.manipulability
    wrenches_at = frames.wrenches_at

    # Derivatives of the dynamics
    inverse_dynamics_derivatives = derivatives.inverse_dynamics_derivatives
    forward_dynamics_derivatives = derivatives.forward_dynamics_derivatives
    inverse_dynamics_second_derivatives = second_derivatives.inverse_dynamics_second_derivatives
    forward_dynamics_second_derivatives = second_derivatives.forward_dynamics_second_derivatives
    inverse_dynamics_hessian = second_derivatives.inverse_dynamics_hessian
    forward_dynamics_hessian = second_derivatives.forward_dynamics_hessian
    linearized_equations = derivatives.linearized_equations
    linearized_error_equations = derivatives.linearized_error_equations
    normal_modes = derivatives.normal_modes

    # Closed forms
    system_jacobian = equations.system_jacobian
    system_jacobian_rate = equations.system_jacobian_rate
    system_matrices = equations.system_matrices
    joint_motion = equations.joint_motion
    forward_dynamics_in = equations.forward_dynamics_in
    euler_jourdain_equations = equations.euler_jourdain_equations
    inverse_dynamics_by_projection = equations.inverse_dynamics_by_projection
    lagrange_equations = equations.lagrange_equations
    body_momenta = equations.body_momenta
    momentum_dynamics = equations.momentum_dynamics
    christoffel_symbols = connection.christoffel_symbols
    connection_coefficients = connection.connection_coefficients
    mass_matrix_derivatives = connection.mass_matrix_derivatives
    mass_matrix_inverse_derivatives = connection.mass_matrix_inverse_derivatives

    # Parameters
    inertial_parameters = cached_property(regressor.inertial_parameters)
    inverse_dynamics_regressor = regressor.inverse_dynamics_regressor
    forward_dynamics_parameter_derivatives = regressor.forward_dynamics_parameter_derivatives
    base_parameters = base.base_parameters
    geometric_parameters = jacobians.geometric_parameters
    calibrate = calibration.calibrate
    calibration_jacobian = jacobians.calibration_jacobian
    jacobian_geometry_derivatives = jacobians.jacobian_geometry_derivatives
    inverse_dynamics_geometry_derivatives = regressor.inverse_dynamics_geometry_derivatives
