"""The four representations of twists, wrenches, momenta and inertias, and the ways between them.

The velocity of a body is told by a linear and an angular part. Four choices of the point that
the linear part belongs to, and of the axes the parts are along, are in use; everything that takes
a `reference` in `lgcontrol.mechanics` takes their names:

========== =================== ============ ============= =========================================
reference  point               linear axes  angular axes  twist of a body at p with rotation R
========== =================== ============ ============= =========================================
"body"     origin of the body  body         body          [Rᵀ ṗ; Rᵀ ω]
"spatial"  origin of the world world        world         [ṗ + p × ω; ω], as if the body reached
                                                          to the world's origin
"hybrid"   origin of the body  world        world         [ṗ; ω]
"mixed"    origin of the body  world        body          [ṗ; Rᵀ ω]
========== =================== ============ ============= =========================================

ω is the angular velocity along world axes. The linear part stands first everywhere in
lgcontrol: twists [v; ω], wrenches [f; m], momenta [p; L], and rows of Jacobians and inertias alike.
Wrenches and momenta are dual to twists, with the same axes: f and p along the linear axes, m and L
along the angular axes and about the point. Inertias map twists to momenta. Rates are derivatives
of the components. The names are those of Müller, "Screw and Lie group theory in multibody dynamics"
(2018), who writes [ω; v].

What others call them, and what they write first:

===================== ======================== ===================== ====================== =======
elsewhere             "body"                   "spatial"             "hybrid"               first
===================== ======================== ===================== ====================== =======
Pinocchio             LOCAL                    WORLD                 LOCAL_WORLD_ALIGNED    linear
iDynTree, ADAM,       BODY_FIXED, Body         INERTIAL_FIXED,       MIXED, Mixed           linear
JaxSim                (left trivialised)       Inertial (right t.)
Drake                 V_WB_B                   V_WB.Shift(−p_WB)     V_WB (V_WB_W)          angular
RBDL                  CalcBodySpatialJacobian  —                     CalcPointVelocity6D,   angular
                                                                     CalcPointJacobian6D
Featherstone,         link coordinates         base coordinates      —                      angular
spatial_v2
Modern Robotics       body twist V_b,          spatial twist V_s,    —                      angular
(Lynch, Park)         JacobianBody             JacobianSpace
Murray, Li, Sastry    body velocity V^b        spatial velocity V^s  —                      linear
KDL                   M.Inverse() * twist      twist.RefPoint(−p)    what solvers return    linear
MuJoCo                mj_objectVelocity,       —                     mj_objectVelocity,     angular
                      flg_local=1                                    flg_local=0; mj_jac
DART                  getSpatialVelocity(),    —                     getWorldJacobian()     angular
                      getJacobian()
RigidBodyDynamics.jl  —                        twist_wrt_world       —                      angular
MATLAB Robotics       —                        —                     geometricJacobian      angular
System Toolbox
Robotics Toolbox      jacobe                   —                     jacob0                 linear
(Corke)
ROS                   twist of Odometry,       —                     TwistStamped in a      linear
                      in child_frame_id                              fixed frame, by usage
Simscape              Non-Rotating Follower    —                     World                  —
Transform Sensor
===================== ======================== ===================== ====================== =======

"mixed" is the velocity of a free joint in MuJoCo, which calls it ``qvel``, linear first. What
misleads:

- iDynTree, ADAM and JaxSim say *mixed* for what is "hybrid" here; they have nothing for Müller's
  "mixed".
- *Spatial* in the names of RBDL, Drake and DART is Featherstone's word for any 6-vector; the
  quantities are "body" or "hybrid".
- MuJoCo's ``mj_objectVelocity`` is that of the body's frame with ``mjOBJ_XBODY``; ``mjOBJ_BODY``
  means the centre of mass.
- MuJoCo's ``cvel``, ``cdof``, ``cfrc_int`` and ``cfrc_ext`` are a fifth kind: world axes, angular
  part first, about the centre of mass of the kinematic tree (``subtree_com`` of its root).
  ``xfrc_applied`` is [f; m] in world axes about the body's own centre of mass (``xipos``).
- Bullet's velocities of links are those of their centres of mass, in world axes.
- A ROS ``Twist`` carries no frame; ``frame_id`` of a ``TwistStamped`` names axes, not the point.
- *Spatial acceleration* is the rate of a "body" or "spatial" twist; the rate of a "hybrid" one
  is the classical acceleration of the origin, with the angular acceleration.
- Simscape's *Follower* (and *Base*) measure as seen from a turning frame, which is no twist.

To bring a 6-vector with the angular part first here, move its last three entries to the front:
``np.roll(x, 3, axis=-1)``. Of a Jacobian the rows move, ``np.roll(J, 3, axis=-2)``; of a 6 × 6
matrix (inertia, adjoint) rows and columns, ``np.roll(M, 3, axis=(-2, -1))``.

The functions:

- Convert: `convert` twists, wrenches, momenta, inertias, Jacobians and their rates;
  `conversion_matrix` of all.
- One rigid body in any of them: `inertia_matrix`, `rigid_body_momentum`,
  `rigid_body_momentum_rate`, `newton_euler_wrench`, and `newton_euler_wrench_in_frames` for frames
  that are not the body's.
- Velocities of Holzinger, Gerstmayr and Schöberl: `UnifiedVelocity`.

Poses are SE3 coordinates with a unit quaternion. The converters are fast functions and do not
check it: other quaternions, zeros among them, give wrong numbers without notice.
``SE3.normalize(pose)`` repairs them, `lgcontrol.groups.check_element` refuses them.
"""

from ... import _names
from ._equations import inertia_matrix as inertia_matrix
from ._equations import newton_euler_wrench as newton_euler_wrench
from ._equations import newton_euler_wrench_in_frames as newton_euler_wrench_in_frames
from ._equations import rigid_body_momentum as rigid_body_momentum
from ._equations import rigid_body_momentum_rate as rigid_body_momentum_rate
from ._forms import conversion_matrix as conversion_matrix
from ._forms import convert as convert
from ._unified import UnifiedVelocity as UnifiedVelocity

_names.answer(__name__)
