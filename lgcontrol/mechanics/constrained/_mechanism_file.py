"""Mechanisms as JSON: read with the place of every fault, and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np

from ...codegen._internal import UnknownNameError, unknown_name
from ...groups import SO3
from ..inertia._inertia import SpatialInertia
from . import _joints, _marker_forces
from ._basic import CD, DP1, DP2, BasicConstraint, D, Direction
from ._expression import Expression
from ._formulations import FORMULATIONS
from ._joints import JointCoordinate, Marker, MechanismBody, MechanismJoint
from ._marker_forces import MechanismMotor

Made = TypeVar("Made")

MECHANISM_FORMAT, MECHANISM_VERSION = "lgcontrol mechanism", 1
JOINTS: dict[str, Callable[..., MechanismJoint]] = {
    name: getattr(_joints, name)
    for name in (
        "spherical", "universal", "revolute", "cylindrical", "translational", "fixed", "planar",
        "distance", "screw", "gear", "angle_drive", "position_drive", "rolling_disk",
        "rolling_sphere", "knife_edge",
    )
}  # fmt: skip
FORCES: dict[str, Callable[..., Any]] = {
    name: getattr(_marker_forces, name)
    for name in ("spring_damper", "torsion_spring", "bushing", "joint_friction")
}
ROWS: dict[str, Callable[..., BasicConstraint]] = {"DP1": DP1, "DP2": DP2, "D": D, "CD": CD}
# Arguments that may be expressions, and of what.
VARIABLES = {
    "angle": "t",
    "position": "t",
    "length": "t",
    "f": "t",
    "force": "s w",
    "torque": "s w",
}
# Rotations of files are given with some digits: how far from orthonormal they may be.
ROUNDED = 1e-3
# Files of Kissel, Taves and Negrut: their keys, and ours.
THEIRS = {
    "a_bar_i": "a_i", "a_bar_j": "a_j", "s_bar_p_i": "s_i", "s_bar_q_j": "s_j", "c": "c", "f": "f"
}  # fmt: skip


class _Repeated(dict[str, Any]):
    """An object of JSON in which an entry stands twice."""

    entry: str


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Object of the entries that were read; one of which the place is said if entries repeat."""
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    names = [name for name, _ in pairs]
    repeated = _Repeated(made)
    repeated.entry = next(name for name in made if names.count(name) > 1)
    return repeated


@dataclass(frozen=True)
class JsonValue:
    """A value of a file, with the file and the keys that lead to it."""

    file: str
    key: str
    value: Any

    def refuse(self, message: str, kind: type[Exception] = ValueError) -> NoReturn:
        """Raise an error with the place."""
        raise kind(f"{self.file}: {self.key or 'the file'}: {message}")

    def of(self, key: str, *, required: bool = True) -> JsonValue:
        """An entry of an object; of value None where it is missing and need not be there."""
        own = self.object()
        if key not in own and required:
            self.refuse(f"{key!r} is missing; there are {', '.join(own) or 'no entries'}")
        return JsonValue(self.file, f"{self.key}.{key}".lstrip("."), own.get(key))

    def object(self) -> dict[str, Any]:
        """An object of JSON."""
        if not isinstance(self.value, dict):
            self.refuse(f"expected an object, got {_shown(self.value)}", TypeError)
        if isinstance(self.value, _Repeated):
            self.refuse(f"the entry {self.value.entry!r} stands twice; keep one")
        return self.value

    def only(self, *known: str) -> None:
        """Refuse entries of other names."""
        for name in self.object():
            if name not in known:
                self.refuse(unknown_name("entry", name, known), UnknownNameError)

    def each(self) -> Iterator[JsonValue]:
        """Entries of a list; none where it is missing."""
        if self.value is None:
            return
        if not isinstance(self.value, list):
            self.refuse(f"expected a list, got {_shown(self.value)}", TypeError)
        for k, entry in enumerate(self.value):
            yield JsonValue(self.file, f"{self.key}[{k}]", entry)

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.refuse(f"expected a text, got {_shown(self.value)}", TypeError)
        return self.value

    def numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        """Finite numbers of a shape; true, false and texts are none."""
        try:
            found = np.array(self.value, dtype=float)
        except OverflowError:
            self.refuse(f"expected finite numbers, got {_shown(self.value)}")
        except (TypeError, ValueError, RecursionError):
            self.refuse(f"expected numbers, got {_shown(self.value)}", TypeError)
        entries = np.array(self.value, dtype=object).ravel()
        if any(type(entry) not in (int, float) for entry in entries):
            self.refuse(f"expected numbers, got {_shown(self.value)}", TypeError)
        if found.shape != shape:
            self.refuse(f"expected numbers of shape {shape}, got shape {found.shape}")
        if not np.isfinite(found).all():
            self.refuse(f"expected finite numbers, got {_shown(self.value)}")
        return found

    def choice(self, kind: str, known: Mapping[str, Any]) -> Any:
        """Entry of a mapping by a name."""
        name = self.text()
        if name not in known:
            self.refuse(unknown_name(kind, name, known), UnknownNameError)
        return known[name]

    def made(self, make: Callable[..., Any], *values: Any, **named: Any) -> Any:
        """What a function makes; its refusals say the place as well."""
        try:
            return make(*values, **named)
        except (ValueError, TypeError, KeyError) as error:
            self.refuse(error.args[0] if error.args else str(error), type(error))
        except (ArithmeticError, RuntimeError) as error:  # of numbers beyond what floats hold
            self.refuse(str(error))


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value)
    except RecursionError:
        return "lists or objects that are nested too deeply"
    return text if len(text) < 60 else f"{text[:55]} …"


def read_mechanism(
    path: Path, inertias: Mapping[str, SpatialInertia], make: Callable[..., Made]
) -> Made:
    """What `make` makes of a file, given as to `Mechanism`; see `Mechanism.from_json`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: the file is no JSON: {error}") from None
    root = JsonValue(str(path), "", value)
    if "constraints" in root.object() and "format" not in root.object():
        return _theirs(root, inertias, make)
    found = root.of("format").text(), root.of("version").value
    if found != (MECHANISM_FORMAT, MECHANISM_VERSION) or isinstance(found[1], bool):
        expected = f'"format": "{MECHANISM_FORMAT}" and "version": {MECHANISM_VERSION}'
        root.refuse(f"expected {expected}, got {found}")
    root.only(
        "format", "version", "name", "gravity", "formulation", "bodies", "joints", "motors",
        "forces", "symbolic",
    )  # fmt: skip
    gravity, word = root.of("gravity", required=False), root.of("formulation", required=False)
    options: dict[str, Any] = {} if gravity.value is None else {"gravity": gravity.numbers((3,))}
    if isinstance(word.value, dict):
        options["formulation"] = {body: word.of(body).text() for body in word.object()}
    elif word.value is not None:
        options["formulation"] = word.text()
    made = root.made(
        make,
        root.of("name").text(),
        [_body(node, inertias) for node in root.of("bodies").each()],
        [_joint(node) for node in root.of("joints", required=False).each()],
        motors=[_motor(node) for node in root.of("motors", required=False).each()],
        forces=[_called(node, FORCES) for node in root.of("forces", required=False).each()],
        **options,
    )
    symbols = root.of("symbolic", required=False)
    names = [node.text() for node in symbols.each()]
    return symbols.made(made.symbolic, *names) if names else made


def _body(node: JsonValue, inertias: Mapping[str, SpatialInertia]) -> MechanismBody:
    node.only(
        "name", "mass", "inertia", "position", "rotation", "quaternion", "velocity",
        "angular_velocity",
    )  # fmt: skip
    name = node.of("name").text()
    inertia = inertias.get(name)
    if inertia is None:
        moments = node.of("inertia")
        rows = moments.value if isinstance(moments.value, list) else []
        is_matrix = any(isinstance(row, list) for row in rows)
        J = moments.numbers((3, 3)) if is_matrix else np.diag(moments.numbers((3,)))
        mass = float(node.of("mass").numbers(()))
        inertia = moments.made(SpatialInertia, mass, [0, 0, 0], J)
    turn, four = node.of("rotation", required=False), node.of("quaternion", required=False)
    if turn.value is not None and four.value is not None:
        node.refuse("both 'rotation' and 'quaternion' stand; give one of them")
    attitude = SO3.identity if four.value is None else four.numbers((4,))
    pose = [*_vector(node, "position"), *(attitude if turn.value is None else _rotation(turn))]
    rates = [*_vector(node, "velocity"), *_vector(node, "angular_velocity")]
    return node.made(MechanismBody, name, inertia, pose, rates)


def _vector(node: JsonValue, key: str) -> np.ndarray:
    """Three numbers; zeros where they are left out."""
    own = node.of(key, required=False)
    return np.zeros(3) if own.value is None else own.numbers((3,))


def _rotation(node: JsonValue) -> np.ndarray:
    """Quaternion of a matrix that is given with a few digits."""
    A = node.numbers((3, 3))
    U, s, Vt = np.linalg.svd(A)
    if np.abs(s - 1).max() > ROUNDED or np.linalg.det(A) < 0:
        node.refuse("expected a rotation matrix: orthonormal columns, determinant 1")
    return np.asarray(SO3.from_matrix(A if np.abs(s - 1).max() < 1e-12 else U @ Vt))


def _marker(node: JsonValue) -> Marker:
    node.only("body", "point", "z", "x")
    own = node.object()
    vectors = {key: node.of(key).numbers((3,)) for key in ("point", "z", "x") if key in own}
    return node.made(Marker, node.of("body").text(), **vectors)


def _joint(node: JsonValue) -> MechanismJoint:
    if "rows" not in node.object():
        return _called(node, JOINTS)
    node.only("name", "rows", "point", "coordinates")
    rows = [_row(entry, entry.of("row").text(), "row") for entry in node.of("rows").each()]
    at = node.of("point", required=False)
    point = None
    if at.value is not None:
        point = at.of("body").text(), at.of("point").numbers((3,))
    coordinates = [
        own.made(JointCoordinate, own.of("name").text(), _marker(own.of("i")), _marker(own.of("j")))
        for own in node.of("coordinates", required=False).each()
    ]
    name = node.of("name").text()
    return node.made(MechanismJoint, name, rows, point, coordinates=coordinates)


def _row(node: JsonValue, name: str, *further: str, keys: Mapping[str, str] | None = None) -> Any:
    """A basic constraint, of our keys or of others."""
    make = node.of("type").choice("type of row", ROWS)
    known = {ours: theirs for theirs, ours in (keys or {}).items()}
    given, wanted = {}, [*signature(make).parameters.values()][1:]
    names = [known.get(entry.name, entry.name) for entry in wanted]
    node.only("type", *further, *names)
    for entry, key in zip(wanted, names, strict=True):
        own = node.of(key, required=entry.default is Parameter.empty)
        if own.value is None:
            continue
        given[entry.name] = own.text() if entry.name in "ij" else _argument(own, entry.name, (3,))
    return node.made(make, name, **given)


def _called(node: JsonValue, known: Mapping[str, Callable[..., Any]]) -> Any:
    """What the function of a type makes of the other entries."""
    kind = "joint" if known is JOINTS else "force"
    make, given = node.of("type").choice(kind, known), {}
    wanted = signature(make).parameters
    node.only("type", *wanted)
    for name, entry in wanted.items():
        own = node.of(name, required=entry.default is Parameter.empty)
        if own.value is None:
            continue
        if name in ("i", "j"):
            given[name] = _marker(own)
        elif name in ("first", "second"):
            given[name] = tuple(_marker(each) for each in own.each())
        elif name in ("name", "coordinate"):
            given[name] = own.text()
        elif name == "teeth":
            given[name] = tuple(int(n) for n in own.numbers((2,)))
        else:
            shape = (6,) if make is FORCES["bushing"] and isinstance(own.value, list) else ()
            given[name] = _argument(own, name, shape)
    return node.made(make, **given)


def _argument(node: JsonValue, name: str, shape: tuple[int, ...]) -> Any:
    """Numbers, or an expression where one may stand."""
    if isinstance(node.value, str) and name in VARIABLES:
        return node.made(Expression, node.value, VARIABLES[name])
    return node.numbers(() if name == "f" else shape)[()]


def _motor(node: JsonValue) -> MechanismMotor:
    node.only("name", "i", "j", "kind", "lower", "upper", "curve", "unit")
    own = node.object()
    options: dict[str, Any] = {key: node.of(key).text() for key in ("kind", "unit") if key in own}
    options |= {key: float(node.of(key).numbers(())) for key in ("lower", "upper") if key in own}
    if "curve" in own:
        curve = node.of("curve")
        options["curve"] = curve.made(Expression, curve.text(), "u w")
    markers = (_marker(node.of(side)) for side in "ij")
    return node.made(MechanismMotor, node.of("name").text(), *markers, **options)


def _theirs(
    root: JsonValue, inertias: Mapping[str, SpatialInertia], make: Callable[..., Made]
) -> Made:
    """File of Kissel, Taves and Negrut: rows between bodies by number, without masses."""
    names: dict[int | str, str] = {}
    bodies, joints = [], []
    for node in root.of("bodies").each():
        name = _identifier(node.of("name").text())
        number = _number(node.of("id"))
        if number in names:
            node.of("id").refuse(f"{number!r} is that of {names[number]!r} as well")
        names[number] = name
        if name == "ground":
            continue
        if name not in inertias:
            node.refuse(
                f"the file has no masses, inertias has none for {name!r}; give "
                f"from_json(path, inertias={{{name!r}: SpatialInertia(…)}})"
            )
        r, v = node.of("r").numbers((3,)), node.of("r_dot").numbers((3,))
        if "A" in node.object():
            turn = _rotation(node.of("A"))
        else:
            turn = np.roll(node.of("p").numbers((4,)), -1)
        omega = _vector(node, "omega")
        pose = [*r, *(turn / np.linalg.norm(turn))]
        bodies.append(node.made(MechanismBody, name, inertias[name], pose, [*v, *omega]))
    keys = {"name", "type", "body_i", "body_j", "f_dot", "f_ddot"}
    for node in root.of("constraints").each():
        own = dict(node.object())
        for side in "ij":
            body = node.of(f"body_{side}")
            number = _number(body)
            if number not in names:
                known = [str(k) for k in names]
                body.refuse(unknown_name("body", str(number), known), UnknownNameError)
            own[side] = names[number]
        if isinstance(own.get("f"), str):
            own["f"] = _plain(own["f"])
        name = _identifier(node.of("name").text())
        rest = JsonValue(
            root.file, node.key, {k: v for k, v in own.items() if k not in keys - {"type"}}
        )
        row = _row(rest, node.of("type").text().lower(), keys=THEIRS)
        joints.append(node.made(MechanismJoint, name, [row]))
    return root.made(make, _identifier(root.of("name").text()), bodies, joints)


def _number(node: JsonValue) -> int | str:
    """What a body is called by in files of the authors."""
    if type(node.value) not in (int, str):
        node.refuse(f"expected a whole number, got {_shown(node.value)}", TypeError)
    return node.value


def _identifier(name: str) -> str:
    """Name of letters, digits and underscores."""
    return re.sub(r"\W", "_", name.strip())


def _plain(text: str) -> Any:
    """Number of a text that is one."""
    try:
        return float(text)
    except ValueError:
        return text


def written(mechanism: Any) -> dict[str, Any]:
    """What a file says of a mechanism; refuses functions, forces on one body, own equations."""
    for body, own in mechanism.formulations.items():
        if FORMULATIONS.get(own.name) is not own:
            _cannot(mechanism, f"the formulation {own.name!r} of the body {body!r}")
    found: dict[str, Any] = {
        "format": MECHANISM_FORMAT,
        "version": MECHANISM_VERSION,
        "name": mechanism.name,
        "gravity": mechanism.gravity.tolist(),
        "formulation": {body: own.name for body, own in mechanism.formulations.items()},
        "bodies": [],
    }
    for name, body in mechanism.bodies.items():
        if body.forces:
            _cannot(mechanism, f"forces on the body {name!r}")
        found["bodies"].append(
            {
                "name": name,
                "mass": body.inertia.mass,
                "inertia": np.asarray(body.inertia.inertia).tolist(),
                "position": body.pose[:3].tolist(),
                "quaternion": body.pose[3:].tolist(),
                "velocity": body.rates[:3].tolist(),
                "angular_velocity": body.rates[3:].tolist(),
            }
        )
    found["joints"] = [_written_joint(mechanism, joint) for joint in mechanism.joints.values()]
    found["motors"] = []
    for motor in mechanism.motors.values():
        own = {"name": motor.name, "i": motor.i, "j": motor.j, "kind": motor.kind}
        own |= {key: getattr(motor, key) for key in ("lower", "upper")}
        own = {key: value for key, value in own.items() if value not in (np.inf, -np.inf)}
        own |= {key: getattr(motor, key) for key in ("curve", "unit") if getattr(motor, key)}
        found["motors"].append(_plain_values(mechanism, f"motor {motor.name!r}", own))
    found["forces"] = [
        _written_recipe(mechanism, f"force {force.name!r}", force.recipe)
        for force in mechanism.forces.values()
    ]
    if mechanism._symbols:
        found["symbolic"] = list(mechanism._symbols)
    return found


def _written_joint(mechanism: Any, joint: MechanismJoint) -> dict[str, Any]:
    where = f"joint {joint.name!r}"
    if joint.recipe is not None:
        return _written_recipe(mechanism, where, joint.recipe)
    rows = []
    for row in joint.rows:
        if not isinstance(row, BasicConstraint):
            _cannot(mechanism, f"the row {row.row!r} of {where}")
        own: dict[str, Any] = {"row": row.row, "type": row.kind, "f": row.f}
        if isinstance(row.u, Direction) and isinstance(row.w, Direction):
            own |= {"i": row.u.body, "a_i": row.u.vector, "j": row.w.body, "a_j": row.w.vector}
        else:
            own |= {key: getattr(row.w, key) for key in ("i", "s_i", "j", "s_j")}
            if isinstance(row.u, Direction):
                own |= {"c" if row.kind == "CD" else "a_i": row.u.vector}
        rows.append(_plain_values(mechanism, f"the row {row.row!r} of {where}", own))
    found: dict[str, Any] = {"name": joint.name, "rows": rows}
    if joint.point is not None:
        body, point = joint.point
        found["point"] = {"body": body, "point": np.asarray(point, dtype=float).tolist()}
    if joint.coordinates:
        found["coordinates"] = [
            {"name": own.name, "i": _written_marker(own.i), "j": _written_marker(own.j)}
            for own in joint.coordinates
        ]
    return found


def _written_recipe(mechanism: Any, where: str, recipe: Any) -> dict[str, Any]:
    if recipe is None:
        _cannot(mechanism, where)
    kind, given = recipe
    return {"type": kind, **_plain_values(mechanism, where, given)}


def _plain_values(mechanism: Any, where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    def plain(key: str, value: Any) -> Any:
        if isinstance(value, Marker):
            return _written_marker(value)
        if isinstance(value, Expression):
            return value.text
        if isinstance(value, list | tuple) and any(isinstance(v, Marker) for v in value):
            return [_written_marker(v) for v in value]
        if callable(value):
            _cannot(mechanism, f"{key} of {where}, a function")
        return value if isinstance(value, str) else np.asarray(value).tolist()

    return {key: plain(key, value) for key, value in values.items()}


def _written_marker(marker: Marker) -> dict[str, Any]:
    return {
        "body": marker.body,
        **{key: getattr(marker, key).tolist() for key in ("point", "z", "x")},
    }


def _cannot(mechanism: Any, what: str) -> NoReturn:
    raise ValueError(
        f"{mechanism.name}: JSON cannot hold {what}; write functions as Expression, such as "
        'Expression("pi * t"), and leave the rest to Python'
    )
