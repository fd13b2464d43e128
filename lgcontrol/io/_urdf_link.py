"""<link> elements of a URDF file."""

from __future__ import annotations

from collections.abc import Mapping

from ._cursor import Cursor
from ._link import InertialDescription, LinkDescription
from ._shapes import BoxShape, CapsuleShape, CylinderShape, Geometry, MeshShape, Shape, SphereShape
from ._urdf_pose import read_origin

Color = tuple[float, float, float, float]

_SHAPES = ("box", "cylinder", "sphere", "mesh", "capsule")


def read_link(element: Cursor, colors: Mapping[str, Color]) -> LinkDescription:
    """Link of a <link> element.

    Raises
    ------
    UrdfError
        If a name or number is missing or malformed.
    """
    name = element.required_text("name")
    link = Cursor(element.element, element.report, f'link "{name}"')
    link.check_attributes("name", "type")
    link.check_children("inertial", "visual", "collision", "contact", "self_collision_checking")
    return LinkDescription(
        name,
        inertial=_read_inertial(link),
        visuals=_read_shapes(link, "visual", colors),
        collisions=_read_shapes(link, "collision", colors),
        line=link.line,
    )


def _read_inertial(link: Cursor) -> InertialDescription | None:
    inertial = link.child("inertial")
    if inertial is None:
        return None
    inertial.check_children("origin", "mass", "inertia")
    mass = inertial.required_child("mass", '<mass value="..."/>')
    inertia = inertial.required_child(
        "inertia", '<inertia ixx=".." ixy=".." ixz=".." iyy=".." iyz=".." izz=".."/>'
    )
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    inertia.check_attributes(*names)
    off_diagonal = {name: inertia.number(name, "kg m²") for name in ("ixy", "ixz", "iyz")}
    absent = [name for name, value in off_diagonal.items() if value is None]
    if absent:
        inertia.warn(f"{', '.join(absent)} missing and taken as 0; URDF asks for all six entries")
    return InertialDescription(
        mass=mass.required_number("value", "mass in kg"),
        origin=read_origin(inertial),
        **{name: inertia.required_number(name, "kg m²") for name in ("ixx", "iyy", "izz")},
        **{name: value or 0.0 for name, value in off_diagonal.items()},
        line=inertial.line,
    )


def _read_shapes(link: Cursor, tag: str, colors: Mapping[str, Color]) -> tuple[Shape, ...]:
    shapes = []
    for element in link.all(tag):
        element.check_children("origin", "geometry", "material", "verbose")
        geometry = _read_geometry(element)
        origin = read_origin(element)
        material = element.child("material")
        color = None
        if material is not None:
            color = read_color(material) or colors.get(material.text("name") or "")
        if geometry is not None:
            name = element.text("name")
            shapes.append(Shape(geometry, origin, name, color, line=element.line))
    return tuple(shapes)


def read_color(material: Cursor) -> Color | None:
    """Colour that a <material> element defines, None where it only names one.

    Raises
    ------
    UrdfError
        If the numbers are malformed.
    """
    color = material.child("color")
    rgba = color and color.numbers("rgba", 4, "red green blue opacity from 0 to 1")
    if not color or not rgba:
        return None
    red, green, blue, opacity = rgba
    if not 0.0 <= min(rgba) <= max(rgba) <= 1.0:
        color.warn(f'rgba="{color.element.attributes["rgba"]}" leaves the range from 0 to 1')
    return red, green, blue, opacity


def _read_geometry(shape: Cursor) -> Geometry | None:
    """Geometry of a <visual> or <collision>; unknown ones are a finding, as they only draw."""
    geometry = shape.child("geometry")
    if geometry is None:
        shape.warn(f"no <geometry>; nothing is drawn. Add one of {_list_shapes()}")
        return None
    found = list(geometry.all(*_SHAPES))
    if not found:
        tags = ", ".join(f"<{child.tag}>" for child in geometry.element.children) or "nothing"
        geometry.warn(f"expected one of {_list_shapes()}, found {tags}; nothing is drawn")
        return None
    if len(found) > 1:
        found[1].warn("only the first shape of a <geometry> is used; give each one a <visual>")
    element = found[0]
    tag = element.element.tag
    if tag == "mesh":
        element.check_attributes("filename", "scale")
        sx, sy, sz = element.numbers("scale", 3, "factors along x y z") or (1.0, 1.0, 1.0)
        return MeshShape(element.required_text("filename"), (sx, sy, sz))
    if tag == "box":
        size = element.numbers("size", 3, "edge lengths x y z in metres")
        if size is None:
            raise element.fail('the attribute size is missing; write <box size="x y z"/>')
        _check_sizes(element, "size", *size)
        x, y, z = size
        return BoxShape((x, y, z))
    radius = element.required_number("radius", "metres")
    if tag == "sphere":
        _check_sizes(element, "radius", radius)
        return SphereShape(radius)
    length = element.required_number("length", "metres")
    _check_sizes(element, "radius or length", radius, length)
    return CylinderShape(radius, length) if tag == "cylinder" else CapsuleShape(radius, length)


def _check_sizes(element: Cursor, what: str, *sizes: float) -> None:
    if min(sizes) < 0.0:
        element.warn(f"the {what} {min(sizes):g} is negative")


def _list_shapes() -> str:
    return ", ".join(f"<{name}>" for name in _SHAPES)
