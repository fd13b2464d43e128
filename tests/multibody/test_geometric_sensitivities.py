"""Derivatives by the placements of joints: AD by parameters, rebuilt trees, calibration."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import qr

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.models import panda_tree, ur5_tree

from . import zoo
from .differentiation import parameter_slope
from .test_twist_derivatives import REFERENCES, TREES, close, references_of, tip

USUAL = (("composite", "nominal"), ("driven", "elsewhere"))

OF_DIFFERENCES = 1e-7  # central differences with steps of 1e-5


def everything(tree):
    """All joints, fixed ones too, and the tree with their placements as parameters."""
    joints = [link.joint_name for link in map(tree.link, tree.links)]
    return joints, tree.symbolic(*tree.geometric_parameters(joints))


# By default a chain as it is, and joints of every sort together with other placements.
@pytest.mark.parametrize(
    ("kind", "at"),
    [
        pytest.param(*case, marks=() if case in USUAL else pytest.mark.thorough)
        for case in (
            *((kind, "nominal") for kind in TREES),
            *((kind, "elsewhere") for kind in ("helical", "universal", "driven")),
        )
    ],
)
def test_against_automatic_differentiation(kind, at, rng):
    tree = TREES[kind]
    joints, free = everything(tree)
    assert free.parameters == tree.geometric_parameters(joints)
    q, v, a, _, wrenches = zoo.state(tree, rng)
    p, values = ca.SX.sym("p", len(free.parameters)), free.parameter_values
    # At its nominal values the tree without parameters must do; elsewhere the one with them.
    own, extra = tree, ()
    if at == "elsewhere":
        values = values + 0.2 * rng.normal(size=len(values))
        own, extra = free, (values,)

    position = parameter_slope(free.position(tip(tree))(ca.SX(q), p), p, values)
    J = own.calibration_jacobian(tip(tree), "hybrid", joints)(q, *extra)
    close(J[:3], position)
    for reference in references_of(kind):
        exact = parameter_slope(free.jacobian(tip(tree), reference)(ca.SX(q), p), p, values)
        dJ = own.jacobian_geometry_derivatives(tip(tree), reference, joints)(q, *extra)
        close(dJ.reshape(exact.shape, order="F"), exact)
    forces = free.inverse_dynamics(ca.SX(q), v, a, wrenches, p)
    slope = own.inverse_dynamics_geometry_derivatives(joints)(q, v, a, wrenches, *extra)
    close(slope, parameter_slope(forces, p, values))
    if at == "nominal":
        without = parameter_slope(free.inverse_dynamics(ca.SX(q), v, a, p=p), p, values)
        close(own.inverse_dynamics_geometry_derivatives(joints)(q, v, a), without)


def _arm(displacements):
    """Two moving joints and a fixed one, each displaced: rx, ry, rz after x, y, z."""
    rng = np.random.default_rng(8)
    tree, parent = Multibody(gravity=[1, 2, -9.81]), "world"
    kinds = (("a", "revolute"), ("b", "spherical"), ("tool", "fixed"))
    for (name, kind), d in zip(kinds, displacements.reshape(3, 6), strict=True):
        placement, inertia = SE3.homogeneous(zoo.pose(rng)), zoo.random_inertia(rng)
        placement[:3, 3] += d[:3]
        placement[:3, :3] = placement[:3, :3] @ SE3.homogeneous(SE3.exp([0, 0, 0, *d[3:]]))[:3, :3]
        tree = tree.add_body(name, inertia, kind, parent, placement)
        parent = name
    return tree


def test_against_rebuilt_trees(rng):
    tree, h = _arm(np.zeros(18)), 1e-5
    joints = ("a", "b", "tool")
    q, v, a, _, wrenches = zoo.state(tree, rng)
    directions = rng.normal(size=(18, 3))
    ahead = [_arm(h * d) for d in directions.T]
    behind = [_arm(-h * d) for d in directions.T]

    def slope(function):
        pairs = zip(ahead, behind, strict=True)
        return np.stack([(function(x) - function(y)) / (2 * h) for x, y in pairs], axis=-1)

    forces = slope(lambda t: t.inverse_dynamics(q, v, a, wrenches))
    ours = tree.inverse_dynamics_geometry_derivatives(joints)(q, v, a, wrenches)
    close(ours @ directions, forces, OF_DIFFERENCES)
    poses = [[t.placement("tool")(q) for t in trees] for trees in (ahead, behind)]
    moved = SE3.minus(*np.array(poses)).T / (2 * h)
    J = tree.calibration_jacobian("tool", joints=joints)(q)
    close(J @ directions, moved, OF_DIFFERENCES)
    for reference in REFERENCES:
        columns = slope(lambda t, r=reference: t.jacobian("tool", r)(q))
        ours = tree.jacobian_geometry_derivatives("tool", reference, joints)(q)
        close(ours @ directions, columns, OF_DIFFERENCES)


def test_references_of_the_calibration_jacobian(rng):
    tree = TREES["helical"]
    q = tree.configuration.random(rng)
    T = SE3.homogeneous(tree.placement("tip")(q))
    R, p = T[:3, :3], T[:3, 3]
    body, spatial, hybrid, mixed = (tree.calibration_jacobian("tip", r)(q) for r in REFERENCES)
    close(hybrid, np.vstack([R @ body[:3], R @ body[3:]]))
    close(mixed, np.vstack([hybrid[:3], body[3:]]))
    close(spatial, np.vstack([hybrid[:3] + np.cross(p, hybrid[3:], axis=0), hybrid[3:]]))


def test_offset_of_a_joint_is_a_displacement_along_its_axis(rng):
    """A zero error of an angle: the column of the Jacobian itself."""
    tree = ur5_tree()
    q = rng.uniform(-2, 2, 6)
    names, J = tree.geometric_parameters(), tree.calibration_jacobian("tool0")(q)
    for i, link in enumerate(map(tree.link, tree.moving_links)):
        axis = np.array(link.joint.group.axis)
        turns = [names.index(f"{link.joint_name}.placement.{key}") for key in ("rx", "ry", "rz")]
        close(J[:, turns] @ axis, tree.jacobian("tool0")(q)[:, i])


def test_only_what_carries_the_frame_moves_it(rng):
    tree = TREES["universal"]
    q = tree.configuration.random(rng)
    names = tree.geometric_parameters(("a", "c", "b", "tool"))
    J = tree.calibration_jacobian("c", "body", ("a", "c", "b", "tool"))(q)
    still = [i for i, name in enumerate(names) if name[0] in "bt"]
    assert (J[:, still] == 0).all() and np.linalg.matrix_rank(J[:, :6]) == 6
    assert (tree.calibration_jacobian("world")(q) == 0).all()


def test_calibration_of_an_arm_by_measured_poses(rng):
    """UR5: 40 poses with noise; the residual falls to it, and the arm then fits other poses.

    The steps a user takes: which combinations poses can tell (rank), Gauss–Newton with the
    smallest change, check on poses that were not used.
    """
    noise, symbolic = 1e-4, ur5_tree()
    names = symbolic.geometric_parameters()
    tree = symbolic.symbolic(*names)
    nominal = tree.parameter_values
    true = nominal + rng.normal(scale=[2e-3] * 3 + [5e-3] * 3, size=(6, 6)).ravel()
    q, others = rng.uniform(-2.5, 2.5, size=(2, 40, 6))
    pose, jacobian = tree.placement("tool0"), tree.calibration_jacobian("tool0")
    measured = SE3.plus(pose(q, true), rng.normal(scale=noise, size=(40, 6)))

    stacked = jacobian(q, nominal).reshape(-1, len(names))
    sizes = np.linalg.svd(stacked, compute_uv=False)
    rank = int((sizes > 1e-10 * sizes[0]).sum())
    # Of six for each joint two are also the next joint's: turn about and slide along the axis.
    # Beyond the last joint nothing can take them.
    assert rank == 36 - 2 * 5
    assert sizes[rank - 1] > 1e-4 * sizes[0] and sizes[rank] < 1e-13 * sizes[0]
    pivots = qr(stacked, mode="r", pivoting=True)[1]
    named = [names[i] for i in pivots[:rank]]
    chosen = np.linalg.svd(stacked[:, pivots[:rank]], compute_uv=False)
    assert chosen[-1] > 1e-4 * chosen[0] and len(set(named)) == rank

    found = nominal.copy()
    for _ in range(4):
        residual = SE3.minus(measured, pose(q, found)).ravel()
        J = jacobian(q, found).reshape(-1, len(names))
        found += np.linalg.lstsq(J, residual, rcond=1e-9)[0]
    residual = SE3.minus(measured, pose(q, found))
    start = SE3.minus(measured, pose(q, nominal))
    expected = noise * np.sqrt(1 - rank / residual.size)
    assert np.sqrt((start**2).mean()) > 30 * noise
    # A mean of 214 free squares scatters by 5 %.
    assert np.sqrt((residual**2).mean()) == pytest.approx(expected, rel=0.15)
    # What was fitted is the arm, not the noise: other poses are met better than once measured.
    error = SE3.minus(pose(others, found), pose(others, true))
    assert np.sqrt((error**2).mean()) < 0.6 * noise


def test_operations_and_sizes():
    tree = panda_tree()
    free = tree.symbolic(*tree.geometric_parameters())
    p, values = ca.SX.sym("p", 42), free.parameter_values
    state = [ca.SX.sym(x, 7) for x in "qva"]
    slope = ca.jacobian(free.inverse_dynamics(*state, p=p), p)
    slope = ca.cse(ca.densify(ca.substitute(slope, p, ca.DM(values))))
    exact = ca.Function("slope", state, [slope])
    ours = tree.inverse_dynamics_geometry_derivatives()
    assert ours.result_shapes == ((7, 42),)
    assert ours.instructions < exact.n_instructions()
    assert tree.jacobian_geometry_derivatives("panda_link8").result_shapes == ((6, 7, 42),)


def test_errors():
    tree = TREES["revolute"]
    with pytest.raises(KeyError, match="unknown joint 'elbow'.*tool"):
        tree.calibration_jacobian("tip", joints=["elbow"])
    with pytest.raises(KeyError, match="unknown joint 'elbow'"):
        tree.geometric_parameters(["elbow"])
    with pytest.raises(KeyError, match="unknown joint 'elbow'"):
        tree.inverse_dynamics_geometry_derivatives(["elbow"])
    with pytest.raises(KeyError, match="unknown frame 'elbow'"):
        tree.jacobian_geometry_derivatives("elbow")
    with pytest.raises(ValueError, match="unknown reference 'world'"):
        tree.calibration_jacobian("tip", "world")
    with pytest.raises(TypeError, match=r"sequence of names: \('a',\)"):
        tree.geometric_parameters("a")
    with pytest.raises(ValueError, match="named twice: a, a"):
        tree.calibration_jacobian("tip", joints=["a", "a"])


def test_tree_with_nothing_that_moves():
    tree = Multibody().add_body("table", SpatialInertia.point_mass(1.0, [0, 0, 1]))
    assert tree.geometric_parameters() == ()
    J = tree.calibration_jacobian("table", "hybrid", ["table"])([])
    close(J, np.eye(6))
