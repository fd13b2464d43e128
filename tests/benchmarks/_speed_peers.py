"""The other programs of the speed comparison: the same bodies, the same inputs."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from lgcontrol.mechanics import Multibody


def find(name: str) -> Any:
    """Return a module, None (with a notice) if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed: left out (the bench extra has it)")
        return None


class PinocchioTree:
    """A tree in Pinocchio, called from Python into preallocated data.

    Parameters
    ----------
    pin : module
    model : pinocchio.Model
        Its joints have the names of ours.
    tree : Multibody
        Ours.
    """

    def __init__(self, pin: Any, model: Any, tree: Multibody) -> None:
        self.pin, self.model, self.data = pin, model, model.createData()
        self._q_of: list[int] = []
        self._v_of: list[int] = []
        for name in model.names[1:]:
            q, v = tree.configuration.coordinate_slice(name), tree.configuration.tangent_slice(name)
            self._q_of += range(q.start, q.stop)
            self._v_of += range(v.start, v.stop)

    @classmethod
    def from_file(cls, pin: Any, path: str, tree: Multibody) -> "PinocchioTree":
        """Read a robot file; base and moving joints are those of ours."""
        root = tree.joints[0]
        is_free = tree.configuration.blocks[root].nq == 7
        model = (
            pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer(), root)
            if is_free
            else pin.buildModelFromUrdf(path)
        )
        extra = [model.getJointId(name) for name in model.names[1:] if name not in set(tree.joints)]
        if extra:
            model = pin.buildReducedModel(model, extra, pin.neutral(model))
        return cls(pin, model, tree)

    @classmethod
    def free_body(cls, pin: Any, tree: Multibody) -> "PinocchioTree":
        """Make a model of a tree of one free body."""
        (inertia,) = (
            link.inertia for link in map(tree.link, tree.links) if link.inertia is not None
        )
        model = pin.Model()
        joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), tree.joints[0])
        own = pin.Inertia(inertia.mass, np.array(inertia.center_of_mass), np.array(inertia.inertia))
        model.appendBodyToJoint(joint, own, pin.SE3.Identity())
        return cls(pin, model, tree)

    @classmethod
    def chain(cls, pin: Any, tree: Multibody) -> "PinocchioTree":
        """Make a model of a chain of revolute joints about coordinate axes."""
        model, parent = pin.Model(), 0
        for link in map(tree.link, tree.links):
            ((_, group),) = link.joint.steps
            joint = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[np.argmax(group.axis)]()
            T = np.array(link.placement)
            place = pin.SE3(T[:3, :3].copy(), T[:3, 3].copy())
            parent = model.addJoint(parent, joint, place, link.joint_name)
            own = link.inertia
            assert own is not None
            body = pin.Inertia(own.mass, np.array(own.center_of_mass), np.array(own.inertia))
            model.appendBodyToJoint(parent, body, pin.SE3.Identity())
        return cls(pin, model, tree)

    def call(self, function: str, arguments: list[np.ndarray]) -> Callable[[], None]:
        """Evaluate on every row of the arguments, one after the other."""
        routine = getattr(self.pin, _ROUTINES[function])
        rows = [np.ascontiguousarray(arguments[0][:, self._q_of])]
        rows += [np.ascontiguousarray(a[:, self._v_of]) for a in arguments[1:]]
        inputs = [tuple(row.copy() for row in item) for item in zip(*rows, strict=True)]
        model, data = self.model, self.data

        def evaluate() -> None:
            for item in inputs:
                routine(model, data, *item)

        return evaluate

    def value(self, function: str, arguments: list[np.ndarray]) -> np.ndarray | None:
        """First result for one item in our order, None where there is nothing to compare."""
        if function not in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            return None
        routine = getattr(self.pin, _ROUTINES[function])
        item = [arguments[0][self._q_of], *(a[self._v_of] for a in arguments[1:])]
        result = np.array(routine(self.model, self.data, *item))
        if result.ndim == 2:
            result = np.triu(result) + np.triu(result, 1).T
        ours = np.empty_like(result)
        if result.ndim == 1:
            ours[self._v_of] = result
        else:
            ours[np.ix_(self._v_of, self._v_of)] = result
        return ours


_ROUTINES = {
    "inverse_dynamics": "rnea",
    "mass_matrix": "crba",
    "forward_dynamics": "aba",
    "inverse_dynamics_derivatives": "computeRNEADerivatives",
    "forward_dynamics_derivatives": "computeABADerivatives",
}


def mujoco_rollout(model: Any, data: Any, steps: int) -> Callable[[], object]:
    """MuJoCo's own loop over steps, in one call and one thread."""
    import mujoco
    from mujoco import rollout

    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    state = np.zeros(size)
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.tile(data.ctrl, (1, steps, 1))
    return lambda: rollout.rollout(model, data, state[None], control)


def mujoco_quadrotor(mujoco: Any, mass: float, inertia: np.ndarray, dt: float) -> Any:
    """Model of a free body with four rotors, integrated by RK4, contacts and the like off."""
    # The first turns clockwise: its drag turns the body the other way.
    rotors = [((0.17, 0, 0), 1), ((0, 0.17, 0), -1), ((-0.17, 0, 0), 1), ((0, -0.17, 0), -1)]
    sites = "".join(
        f'<site name="r{i}" pos="{x} {y} {z}"/>' for i, ((x, y, z), _) in enumerate(rotors)
    )
    motors = "".join(
        f'<motor site="r{i}" gear="0 0 1 0 0 {0.016 * turn}"/>'
        for i, (_, turn) in enumerate(rotors)
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{dt}" integrator="RK4" gravity="0 0 -9.81">
        <flag contact="disable" constraint="disable" sensor="disable"/></option>
        <worldbody><body><freejoint/>
        <inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia[0]} {inertia[1]} {inertia[2]}"/>
        {sites}</body></worldbody><actuator>{motors}</actuator></mujoco>"""
    )
