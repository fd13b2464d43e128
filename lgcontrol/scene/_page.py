"""Pages: scenes as plain data, in one HTML file that a browser opens."""

from __future__ import annotations

import gzip
import json
import os
import re
import sys
import tempfile
import webbrowser
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..io._internal import (
    BoxShape,
    CapsuleShape,
    CylinderShape,
    SphereShape,
    part_of,
    with_ending,
)
from ._records import (
    BodyShape,
    ConeShape,
    EncodedMesh,
    Geometry,
    Mesh,
    SceneArrow,
    SceneBody,
    SceneEvent,
    SceneGoal,
    SceneJoint,
    ScenePath,
    ScenePlot,
)

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
FOLDER = Path(__file__).parent / "page"
HEIGHT = 540  # pixels of a cell in a notebook
_KINDS = {"float32": "f4", "float64": "f8", "int32": "i4", "uint8": "u1"}


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
        "events": [
            {"t": float(event.t), "name": event.name}
            | ({"change": [*event.change]} if event.change else {})
            for event in scene.events
        ],
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

    Raises where something is missing or does not fit.
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
        events=[
            SceneEvent(float(e["t"]), str(e["name"]), tuple(e.get("change", ())))
            for e in description["events"]
        ],
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


def page_of(scenes: Sequence[Any], *, play: bool = True) -> str:
    """HTML page that shows scenes, several of them over each other.

    Texts are data of a script that is never run as one, so nothing that a name holds is executed.
    The page's policy forbids every request.
    """
    data, packed, start = [], [], 0
    for scene in scenes:
        description, arrays = to_plain(scene)
        table: dict[str, Any] = {}
        for name, values in arrays.items():
            columns = values.shape[1] if values.ndim == 2 else 1
            table[name] = [_KINDS[values.dtype.name], start, values.size, columns]
            packed.append(values.tobytes())
            start += values.nbytes
        extent = np.round(scene.extent, 6).tolist()
        data.append({"scene": description, "table": table, "extent": extent, "play": play})
    title = " · ".join(scene.title for scene in scenes)
    # Within a script no text may end it or begin a comment.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    filled = {
        "title": escape(title),
        "scene": text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
        "arrays": b64encode(gzip.compress(b"".join(packed), 5, mtime=0)).decode(),
        "code": _code(),
    }
    frame = (FOLDER / "page.html").read_text(encoding="utf-8")
    return re.sub(r"@(title|scene|arrays|code)@", lambda found: filled[found[1]], frame)


def write_page(path: str | os.PathLike[str], scenes: Sequence[Any], *, play: bool = True) -> Path:
    """Write a page; the file appears complete or not at all."""
    path = with_ending(Path(path), [".html"], "pages are HTML files")
    with part_of(path) as part:
        part.write_text(page_of(scenes, play=play), encoding="utf-8", errors="replace")
    return path


def cell_of(scenes: Sequence[Any]) -> str:
    """A page as a frame within another page, such as a notebook; it can reach nothing of that."""
    return (
        f'<iframe srcdoc="{escape(page_of(scenes, play=False))}" '
        'sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
    )


def open_pages(scenes: Sequence[Any]) -> Path | None:
    """Show scenes: in a notebook as a cell, else as a file in the browser; returns its path."""
    if _is_notebook():
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        display(HTML(cell_of(scenes)))
        return None
    name = re.sub(r"[^\w.-]+", "_", scenes[0].title) or "scene"
    path = write_page(Path(tempfile.mkdtemp(prefix="lgcontrol-")) / f"{name}.html", scenes)
    webbrowser.open(path.as_uri())
    return path


def _is_notebook() -> bool:
    """Whether a notebook's kernel runs this, which IPython in a terminal is not."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


@lru_cache(maxsize=1)
def _code() -> str:
    return b64encode(gzip.compress((FOLDER / "viewer.min.js").read_bytes(), 9, mtime=0)).decode()
