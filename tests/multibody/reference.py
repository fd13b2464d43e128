"""Models and numbers of the multibody reference data, and what of ours each number checks."""

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from lgcontrol.mechanics import Joint, JointProperties, Multibody, SpatialInertia

from .make_reference import UNUSED

_LETTERS = {"X": "x", "Y": "y", "Z": "z"}


def load(folder: Path, name: str):
    """Description and arrays of one model."""
    description = json.loads((folder / f"mbs_{name}.json").read_text())
    with np.load(folder / f"mbs_{name}.npz", allow_pickle=False) as file:
        return description, {key: file[key] for key in file.files}


def pose(R, p):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def joint_of(entry) -> Joint:
    """Joint of a synthetic reference model."""
    kind = entry.get("kind") or entry["type"].removeprefix("JointModel")
    axis = entry.get("axis") or _LETTERS.get(kind[-1], "z")
    if kind == "Composite":
        return Joint.chain([(pose(s["R"], s["p"]), joint_of(s)) for s in entry["sub_joints"]])
    if kind == "Universal":
        return Joint.of("universal", axis=entry["axis1"], axis2=entry["axis2"])
    if kind.startswith("RUB"):
        return Joint.of("continuous", axis=axis)
    if kind.startswith("H"):
        return Joint.of("helical", axis=axis, pitch=entry["pitch"])
    if kind in ("FreeFlyer", "Spherical", "SphericalZYX", "Planar", "Translation"):
        named = {"FreeFlyer": "free", "SphericalZYX": "spherical_zyx"}
        return Joint.of(named.get(kind, kind.lower()))
    return Joint.of("revolute" if kind.startswith("R") else "prismatic", axis=axis)


def tree_of(description) -> Multibody:
    """Tree of a reference description, with its frames; made once, so its functions are too."""
    read = {key: description[key] for key in ("model", "gravity", "armature", "frames")}
    joints = description["joints"]
    read["joints"] = [{k: x for k, x in j.items() if k not in UNUSED} for j in joints]
    return _tree_of(json.dumps(read, sort_keys=True))


@lru_cache(maxsize=4)  # the traced functions of a tree take memory; tests of a model are neighbours
def _tree_of(text: str) -> Multibody:
    description = json.loads(text)
    tree = Multibody(description["model"], gravity=description["gravity"])
    names = ["world"]
    for entry in description["joints"]:
        body = f"body of {entry['name']}"
        at = slice(entry["idx_v"], entry["idx_v"] + entry["nv"])
        tree = tree.add_body(
            body,
            SpatialInertia(entry["mass"], entry["com"], entry["inertia_at_com"], check="ignore"),
            joint_of(entry),
            names[entry["parent"]],
            pose(entry["placement_R"], entry["placement_p"]),
            joint_name=entry["name"],
            properties=JointProperties(armature=description["armature"][at]),
        )
        names.append(body)
    for frame in description["frames"]:
        tree = tree.add_frame(
            frame["name"], names[frame["parent_joint"]], pose(frame["R"], frame["p"])
        )
    return tree


def order(tree: Multibody, description):
    """Indices that bring the reference's q, v and bodies into the tree's order, by joint name."""
    entries = {entry["name"]: entry for entry in description["joints"]}
    number = {entry["name"]: i for i, entry in enumerate(description["joints"])}
    q = [range(e["idx_q"], e["idx_q"] + e["nq"]) for e in map(entries.get, tree.joints)]
    v = [range(e["idx_v"], e["idx_v"] + e["nv"]) for e in map(entries.get, tree.joints)]
    bodies = [number[name] for name in tree.joints]
    return np.concatenate(q), np.concatenate(v), np.array(bodies)


def checks(tree: Multibody, description, data):
    """Yield (name, ours, reference) for every number of the reference."""
    iq, iv, ib = order(tree, description)
    q, v, a, tau = (data[k][:, i] for k, i in (("q", iq), ("v", iv), ("a", iv), ("tau", iv)))
    fext = data["fext"][:, 1:][:, ib]
    square = np.ix_(range(len(q)), iv, iv)

    yield "rnea", tree.inverse_dynamics(q, v, a), data["rnea"][:, iv]
    yield "rnea_fext", tree.inverse_dynamics(q, v, a, fext), data["rnea_fext"][:, iv]
    yield "nle", tree.bias_forces(q, v), data["nle"][:, iv]
    yield "gravity", tree.gravity_forces(q), data["gravity"][:, iv]
    for name in ("by_factor", "by_recursion"):
        forward = getattr(tree, f"forward_dynamics_{name}")
        yield f"aba {name}", forward(q, v, tau), data["aba"][:, iv]
        yield f"aba_fext {name}", forward(q, v, tau, fext), data["aba_fext"][:, iv]
    yield "aba", tree.forward_dynamics(q, v, tau), data["aba"][:, iv]
    yield "M", tree.mass_matrix(q), data["M"][square]
    yield "Minv", tree.mass_matrix_inverse(q), data["Minv"][square]
    L, D = tree.mass_matrix_factor(q)
    yield "factor", np.swapaxes(L, -1, -2) @ (D[..., None] * L), data["M"][square]
    C = tree.coriolis_matrix(q, v)
    yield "Cv", (C @ v[..., None])[..., 0], data["Cv"][:, iv]
    # Mdot is a finite difference in the reference: its own tolerance below.
    yield "Mdot", C + np.swapaxes(C, -1, -2), data["Mdot"][square]
    slopes = tree.inverse_dynamics_derivatives(q, v, a, fext)
    for key, slope in zip(("rnea_dq", "rnea_dv", "rnea_da"), slopes, strict=True):
        yield key, slope, data[key][square]
    slopes = tree.forward_dynamics_derivatives(q, v, tau, fext)
    for key, slope in zip(("aba_dq", "aba_dv", "aba_dtau"), slopes, strict=True):
        yield key, slope, data[key][square]
    yield "joint_v", tree.body_velocities(q, v), data["joint_v_local"][:, 1:][:, ib]
    yield "joint_a", tree.body_accelerations(q, v, a), data["joint_a_local_spatial"][:, 1:][:, ib]
    yield "Ag", tree.centroidal_momentum_matrix(q), data["Ag"][..., iv]
    yield "dAg", tree.centroidal_momentum_matrix_rate(q, v), data["dAg"][..., iv]
    yield "hg", tree.centroidal_momentum(q, v), data["hg"]
    yield "dhg", tree.centroidal_momentum_rate(q, v, a), data["dhg"]
    yield "com", tree.center_of_mass(q), data["com"]
    yield "vcom", tree.center_of_mass_velocity(q, v), data["vcom"]
    yield "acom", tree.center_of_mass_acceleration(q, v, a), data["acom"]
    yield "Jcom", tree.center_of_mass_jacobian(q), data["Jcom"][..., iv]
    drives = 0.5 * (np.array(description["armature"])[iv] * v**2).sum(axis=-1)
    yield "kinetic_energy", tree.kinetic_energy(q, v) - drives, data["kinetic_energy"]
    yield "potential_energy", tree.potential_energy(q), data["potential_energy"]
    columns = (10 * ib[:, None] + np.arange(10)).ravel()
    Y = tree.inverse_dynamics_regressor(q, v, a)
    yield "regressor", Y, data["regressor"][:, iv][..., columns]
    yield "parameters", tree.inertial_parameters, data["parameters_phi"][0][columns]
    for i, frame in enumerate(description["frames"]):
        yield from _frame_checks(tree, frame["name"], i, data, q, v, a, iv)


def _frame_checks(tree, name, i, data, q, v, a, iv):
    T = tree.placement(name)(q)
    from lgcontrol.groups import SE3

    H = SE3.homogeneous(T)
    yield f"R {name}", H[:, :3, :3], data["frame_R"][:, i]
    yield f"p {name}", H[:, :3, 3], data["frame_p"][:, i]
    yield f"position {name}", tree.position(name)(q), data["frame_p"][:, i]
    for theirs, ours in (("local", "body"), ("world", "spatial"), ("lwa", "hybrid")):
        at = f"{name} {ours}"
        yield f"J {at}", tree.jacobian(name, ours)(q), data[f"frame_J_{theirs}"][:, i][..., iv]
        yield (
            f"Jdot {at}",
            tree.jacobian_rate(name, ours)(q, v),
            data[f"frame_Jdot_{theirs}"][:, i][..., iv],
        )
        yield f"v {at}", tree.velocity(name, ours)(q, v), data[f"frame_v_{theirs}"][:, i]
        for kind in ("spatial", "classical"):
            yield (
                f"a {kind} {at}",
                tree.acceleration(name, ours, kind)(q, v, a),
                data[f"frame_a_{kind}_{theirs}"][:, i],
            )


def moving_models(shared: Path, model: str):
    """Tree, description and samples of a model of the data on time derivatives."""
    data = json.loads((shared / "reference" / "p004_time_derivatives.json").read_text())
    description = data["models"][model] | {"frames": []}
    for entry in description["joints"]:
        if entry["type"] == "JointModelPrismaticUnaligned":
            screw = np.ravel(entry["motion_subspace_at_neutral_local_linear_first"])
            entry["axis"] = screw[:3].tolist()
    return tree_of(description), description


def reference_motions(shared: Path, model: str):
    """Tree of a model; for each sample q, v, a, j, s, and tau with its first two derivatives."""
    tree, description = moving_models(shared, model)
    iq, iv, _ = order(tree, description)
    samples = []
    for sample in description["samples"]:
        own = {key: np.array(value) for key, value in sample.items() if key != "t"}
        given = [own["q"][iq], *(own[key][iv] for key in ("v", "vdot", "vddot", "vdddot"))]
        samples.append((given, [own[key][iv] for key in ("tau", "tau_dot", "tau_ddot")]))
    return tree, samples
