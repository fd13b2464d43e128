"""Scenes as arrays and a description that JSON can hold: what files keep and pages are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..io._internal import BoxShape, CapsuleShape, CylinderShape, SphereShape
from ._records import (
    SceneArrow,
    SceneBody,
    SceneEvent,
    SceneGoal,
    SceneJoint,
    ScenePath,
    ScenePlot,
)
from ._shapes import BodyShape, ConeShape, EncodedMesh, Geometry, Mesh

_SIZES: dict[str, tuple[Callable[..., Geometry], tuple[str, ...]]] = {
    "box": (BoxShape, ("size",)),
    "cylinder": (CylinderShape, ("radius", "length")),
    "capsule": (CapsuleShape, ("radius", "length")),
    "sphere": (SphereShape, ("radius",)),
    "cone": (ConeShape, ("half_angle", "length")),
}

_JOINT_TEXTS = ("name", "body", "carrier", "leader")
_JOINT_ROWS = {"before": 7, "after": 7, "twist": 6}
_JOINT_NUMBERS = {"value": 1, "lower": -1, "upper": 1, "scale": 1, "shift": 1}  # sign if infinite


def to_plain(scene: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Description, in which texts name arrays, and the arrays in single precision."""
    arrays: dict[str, np.ndarray] = {}
    known: dict[int, tuple[str, Any]] = {}  # with the values, so that no other takes their place

    def kept(values: Any, kind: Any = np.float32) -> str:
        if id(values) not in known:
            known[id(values)] = f"a{len(arrays)}", values
            arrays[f"a{len(arrays)}"] = np.ascontiguousarray(values, dtype=kind)
        return known[id(values)][0]

    def shape(own: BodyShape) -> dict[str, Any]:
        g = own.geometry
        made: dict[str, Any] = {"pose": _numbers(own.pose)}
        if own.color is not None:
            made["color"] = _numbers(own.color)
        if isinstance(g, Mesh):
            made |= {"type": "mesh", "vertices": kept(g.vertices), "faces": kept(g.faces, np.int32)}
        elif isinstance(g, EncodedMesh):
            data = np.frombuffer(g.data, dtype=np.uint8)
            made |= {"type": g.format, "data": kept(data, np.uint8), "scale": _numbers(g.scale)}
        else:
            kind = next(k for k, (make, _) in _SIZES.items() if isinstance(g, make))  # type: ignore[arg-type]
            made["type"] = kind
            made |= {key: _plain(getattr(g, key)) for key in _SIZES[kind][1]}
        return made

    description = {
        "title": scene.title,
        "t": kept(scene.t, np.float64),
        "bodies": [
            {
                "name": body.name,
                "role": body.role,
                "shapes": [shape(own) for own in body.shapes],
                "poses": kept(body.poses),
            }
            for body in scene.bodies
        ],
        "paths": [
            {"name": path.name, "role": path.role, "points": kept(path.points)}
            for path in scene.paths
        ],
        "goals": [
            {"name": goal.name, "pose": _numbers(goal.pose), "tolerance": float(goal.tolerance)}
            for goal in scene.goals
        ],
        "arrows": [
            {
                "name": arrow.name,
                "unit": arrow.unit,
                "starts": kept(arrow.starts),
                "vectors": kept(arrow.vectors),
            }
            for arrow in scene.arrows
        ],
        "events": [{"t": float(event.t), "name": event.name} for event in scene.events],
        "plots": [
            {
                "title": plot.title,
                "unit": plot.unit,
                "names": list(plot.names),
                "t": kept(plot.t, np.float64),
                "values": kept(plot.values),
                "limits": [_finite(plot.lower), _finite(plot.upper)],
            }
            for plot in scene.plots
        ],
        "camera": None if scene.camera is None else _plain(np.asarray(scene.camera).tolist()),
        "joints": [
            {
                **{key: getattr(joint, key) for key in _JOINT_TEXTS},
                **{key: _numbers(getattr(joint, key)) for key in _JOINT_ROWS},
                **{key: _finite(getattr(joint, key)) for key in _JOINT_NUMBERS},
            }
            for joint in scene.joints
        ],
        "notices": list(scene.notices),
    }
    return description, arrays


def from_plain(description: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Fields of the scene that `to_plain` described; shapes are checked against each other.

    Raises
    ------
    KeyError, TypeError, ValueError
        If something is missing or does not fit.
    """

    def array(name: Any, *sizes: int | None) -> np.ndarray:
        return check_shape(f"{name} of the scene", arrays[str(name)], sizes, finite=False)

    def shape(given: Mapping[str, Any]) -> BodyShape:
        kind = given["type"]
        geometry: Geometry
        if kind == "mesh":
            geometry = Mesh(array(given["vertices"], None, 3), arrays[str(given["faces"])])
        elif kind in ("dae", "glb"):
            x, y, z = map(float, given["scale"])
            data = arrays[str(given["data"])].astype(np.uint8).tobytes()
            geometry = EncodedMesh(kind, data, (x, y, z))
        else:
            make, keys = _SIZES[kind]
            geometry = make(*(_lists(given[key]) for key in keys))
        color = tuple(map(float, given["color"])) if "color" in given else None
        return BodyShape(geometry, check_shape("pose", given["pose"], (7,)), color)  # type: ignore[arg-type]

    camera = description["camera"]
    return dict(
        title=str(description["title"]),
        t=array(description["t"], None),
        bodies=[
            SceneBody(
                str(b["name"]),
                [shape(s) for s in b["shapes"]],
                array(b["poses"], None, 7),
                b["role"],
            )
            for b in description["bodies"]
        ],
        paths=[
            ScenePath(str(p["name"]), array(p["points"], None, 3), p["role"])
            for p in description["paths"]
        ],
        goals=[
            SceneGoal(str(g["name"]), check_shape("goal", g["pose"], (7,)), float(g["tolerance"]))
            for g in description["goals"]
        ],
        arrows=[
            SceneArrow(
                str(a["name"]), array(a["starts"], None, 3), array(a["vectors"], None, 3), a["unit"]
            )
            for a in description["arrows"]
        ],
        events=[SceneEvent(float(e["t"]), str(e["name"])) for e in description["events"]],
        plots=[
            ScenePlot(
                str(p["title"]),
                str(p["unit"]),
                tuple(map(str, p["names"])),
                array(p["t"], None),
                array(p["values"], None, len(p["names"])),
                *(_infinite(v, sign) for v, sign in zip(p["limits"], (-1, 1), strict=True)),
            )
            for p in description["plots"]
        ],  # fmt: skip
        camera=None if camera is None else check_shape("camera", camera, (2, 3)),
        joints=[_joint(given) for given in description["joints"]],
        notices=[str(text) for text in description["notices"]],
    )


def _joint(given: Mapping[str, Any]) -> SceneJoint:
    fields: dict[str, Any] = {key: str(given[key]) for key in _JOINT_TEXTS}
    fields |= {key: check_shape(key, given[key], (n,)) for key, n in _JOINT_ROWS.items()}
    fields |= {key: _infinite(given[key], sign) for key, sign in _JOINT_NUMBERS.items()}
    return SceneJoint(**fields)


def _numbers(values: Any) -> list[float]:
    """A few numbers, with the digits that a page needs."""
    return [float(f"{float(value):.7g}") for value in values]


def _plain(value: Any) -> Any:
    return [_plain(one) for one in value] if isinstance(value, tuple | list) else float(value)


def _lists(value: Any) -> Any:
    return tuple(map(float, value)) if isinstance(value, list) else float(value)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _infinite(value: Any, sign: int) -> float:
    return sign * np.inf if value is None else float(value)
