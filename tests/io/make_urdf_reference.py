"""Write tests/data/urdf/reference.json: real robots as other programs read them.

Run it with an interpreter that has yourdfpy and pin (Pinocchio), neither of which lgcontrol needs::

    python tests/io/make_urdf_reference.py FOLDER_WITH_ROBOTS

From yourdfpy come the tables of joints and links; from Pinocchio the pose of every link at joint
positions 0.3, -0.4, 0.5, -0.6, ... (movable joints in file order, nothing mimics), the centre of
mass and the inertia about it there. A free-flying base keeps the root's mass in the sum.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pinocchio as pin
import yourdfpy

OUTPUT = Path(__file__).parents[1] / "data" / "urdf" / "reference.json"


def number(value):
    return None if value is None else float(value)


def joint_row(joint):
    limit, mimic = joint.limit, joint.mimic
    names = ("lower", "upper", "velocity", "effort")
    return [
        joint.name,
        joint.type,
        joint.parent,
        joint.child,
        np.asarray(joint.axis).tolist(),
        [number(getattr(limit, name)) if limit else None for name in names],
        [mimic.joint, mimic.multiplier, mimic.offset] if mimic else None,
    ]


def tables(path):
    robot = yourdfpy.URDF.load(
        path, load_meshes=False, load_collision_meshes=False, build_scene_graph=False
    ).robot
    masses = {link.name: link.inertial.mass if link.inertial else None for link in robot.links}
    return {"joints": [joint_row(joint) for joint in robot.joints], "masses": masses}


def placements(path, joints):
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    q = pin.neutral(model)
    movable = [name for name, kind, *_ in joints if kind != "fixed"]
    for k, name in enumerate(movable):
        angle = (0.3 + 0.1 * k) * (-1) ** k
        joint = model.joints[model.getJointId(name)]
        values = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        q[joint.idx_q : joint.idx_q + joint.nq] = values
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    pin.ccrba(model, data, q, np.zeros(model.nv))
    poses = {}
    for frame, pose in zip(model.frames, data.oMf, strict=True):
        if frame.type == pin.FrameType.BODY:
            poses[frame.name] = pin.SE3ToXYZQUAT(pose).round(10).tolist()
    return {
        "mass": pin.computeTotalMass(model),
        "center_of_mass": data.com[0].round(10).tolist(),
        "centroidal_inertia": data.Ig.inertia.round(10).tolist(),
        "poses": poses,
    }


def compact(value, indent=""):
    """JSON with one joint, link or pose a line."""
    if not isinstance(value, dict):
        if value and isinstance(value, list) and isinstance(value[0], list):
            rows = ",\n".join(f"{indent} {json.dumps(row)}" for row in value)
            return f"[\n{rows}\n{indent}]"
        return json.dumps(value)
    rows = (f"{indent} {json.dumps(k)}: {compact(v, indent + ' ')}" for k, v in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def main(folder):
    robots = {}
    for path in sorted(Path(folder).glob("*.urdf")):
        table = tables(path)
        robots[path.name] = table | placements(path, table["joints"])
    sources = [f"{name} {version(name)}" for name in ("yourdfpy", "pin")]
    text = compact({"sources": sources, "robots": robots})
    OUTPUT.write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
