"""Broken files: each error names the line and says what was found, expected and to be done."""

import os
from pathlib import Path

import pytest

from lgcontrol.io import UrdfError, parse_urdf, read_urdf

BASE = """\
<?xml version="1.0"?>
<robot name="r">
  <link name="a"/>
  <link name="b">
    <inertial>
      <origin xyz="0 0 0.1" rpy="0 0 0"/>
      <mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>
    </inertial>
    <visual>
      <origin xyz="0 0 0"/>
      <geometry><box size="1 1 1"/></geometry>
    </visual>
  </link>
  <joint name="j" type="revolute">
    <origin xyz="0 0 1" rpy="0 0 0"/>
    <parent link="a"/>
    <child link="b"/>
    <axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="10" velocity="2"/>
    <dynamics damping="0.1" friction="0"/>
  </joint>
</robot>
"""


def edited(line: int, old: str, new: str) -> str:
    """BASE with a part of one line replaced."""
    lines = BASE.splitlines()
    assert old in lines[line - 1], (line, old)
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return "\n".join(lines)


# (name, line edited and reported, old, new, fragments of the message)
EDITS = [
    # Numbers
    (
        "word",
        7,
        '"2"',
        '"heavy"',
        ['link "b" <inertial><mass>', 'value="heavy"', "expected a number (mass in kg)"],
    ),
    ("nan", 7, '"2"', '"nan"', ['found "nan"', "write a finite number"]),
    ("inf", 20, '"10"', '"inf"', ['effort="inf"', 'joint "j" <limit>', "write a finite number"]),
    ("infinity", 20, '"1"', '"+Infinity"', ['found "+Infinity"', "write a finite number"]),
    ("MSVC nan", 6, "0.1", "-1.#IND", ['found "-1.#IND"', "write a finite number"]),
    ("underscore", 7, '"2"', '"1_000"', ['found "1_000"', "expected a number"]),
    ("hexadecimal", 7, '"2"', '"0x10"', ['found "0x10"']),
    ("other digits", 7, '"2"', '"٣"', ['found "٣"']),
    ("overflow", 7, '"2"', '"1e999"', ['"1e999" is too large for a double']),
    ("decimal comma", 7, '"2"', '"2,5"', ['found "2,5"', "a decimal point, not a comma"]),
    ("commas", 16, "0 0 1", "0, 0, 1", ['xyz="0, 0, 1"', "separate numbers by spaces"]),
    ("unit", 7, '"2"', '"2kg"', ['found "2kg"', "leave out the unit"]),
    ("degrees", 16, 'rpy="0 0 0"', 'rpy="0 0 90°"', ['found "90°"', "radians"]),
    (
        "two numbers",
        16,
        "0 0 1",
        "0 0",
        ["<origin>", 'xyz="0 0"', "expected 3 numbers (x y z in metres), found 2"],
    ),
    ("four numbers", 19, "0 0 1", "0 0 1 0", ["<axis>", "expected 3 numbers", "found 4"]),
    ("two masses", 7, '"2"', '"2 3"', ["expected a number (mass in kg), found 2"]),
    ("no number", 12, "1 1 1", "", ['size=""', "expected 3 numbers", "found none"]),
    ("endless digits", 7, '"2"', f'"{"1" * 200}"', ["expected a number", "111 ... 111"]),
    ("scientific without digits", 7, '"2"', '"2e"', ['found "2e"']),
    ("minus alone", 16, "0 0 1", "0 - 1", ['found "-"']),
    ("inertia entry", 8, 'ixy="0"', 'ixy="zero"', ["<inertial><inertia>", 'ixy="zero"', "kg m²"]),
    ("damping", 21, "0.1", "little", ["<dynamics>", 'damping="little"']),
    ("box", 12, "1 1 1", "1 1", ["<visual><geometry><box>", 'size="1 1"', "found 2"]),
    # xacro
    (
        "expression",
        7,
        '"2"',
        '"${mass}"',
        ['value="${mass}"', "run xacro first", "xacro robot.urdf.xacro > robot.urdf"],
    ),
    ("argument", 3, '"a"', '"$(arg prefix)a"', ["run xacro first"]),
    ("expression in a name", 17, '"a"', '"${prefix}a"', ['joint "j" <parent>', "run xacro first"]),
    (
        "macro",
        3,
        '<link name="a"/>',
        '<xacro:link_macro name="a"/>',
        ["<xacro:link_macro>", "run xacro first"],
    ),
    # Missing parts
    (
        "link without name",
        3,
        ' name="a"',
        "",
        ["<link>", "the attribute name is missing", '<link name="...">'],
    ),
    ("empty name", 3, '"a"', '""', ['name="" is empty', "expected a name"]),
    ("joint without name", 15, 'name="j" ', "", ["<joint>", "the attribute name is missing"]),
    (
        "joint without type",
        15,
        ' type="revolute"',
        "",
        ['joint "j"', "the attribute type is missing"],
    ),
    (
        "mass without value",
        7,
        'value="2"',
        'kg="2"',
        ["the attribute value (mass in kg) is missing"],
    ),
    ("inertia without izz", 8, ' izz="0.1"', "", ["the attribute izz (kg m²) is missing"]),
    ("parent without link", 17, 'link="a"', 'name="a"', ["<parent>", '<parent link="...">']),
    (
        "axis without xyz",
        19,
        'xyz="0 0 1"',
        'direction="z"',
        ["the attribute xyz is missing", '<axis xyz="0 0 1"/>'],
    ),
    # Joints
    (
        "type misspelt",
        15,
        '"revolute"',
        '"revolut"',
        ['type="revolut"', "expected one of ball, continuous, fixed", '(did you mean "revolute"?)'],
    ),
    ("type capitalised", 15, '"revolute"', '"Revolute"', ['did you mean "revolute"']),
    ("MJCF type", 15, '"revolute"', '"hinge"', ['type="hinge"', 'type="revolute" or "continuous"']),
    (
        "cylindrical",
        15,
        '"revolute"',
        '"cylindrical"',
        ["expected one of", "chain a continuous and a prismatic joint"],
    ),
    (
        "helical without pitch",
        15,
        '"revolute"',
        '"helical"',
        ['joint "j"', "needs its pitch", "metres per radian"],
    ),
    (
        "zero axis",
        19,
        "0 0 1",
        "0 0 0",
        ['xyz="0 0 0"', "gives no direction", "expected a unit vector"],
    ),
    (
        "limits swapped",
        20,
        'lower="-1" upper="1"',
        'lower="1" upper="-1"',
        ["lower=1 is greater than upper=-1", "swap them"],
    ),
    (
        "two parents",
        17,
        '<parent link="a"/>',
        '<parent link="a"/><parent link="b"/>',
        ["<parent> appears 2 times", "keep one"],
    ),
    (
        "two rotations",
        16,
        'rpy="0 0 0"',
        'rpy="0 0 0" quat_xyzw="0 0 0 1"',
        ["rpy and quat_xyzw", "keep one"],
    ),
    (
        "zero quaternion",
        16,
        'rpy="0 0 0"',
        'quat_xyzw="0 0 0 0"',
        ['quat_xyzw="0 0 0 0"', "gives no direction"],
    ),
    # XML
    (
        "quote missing",
        4,
        'name="b"',
        "name=b",
        ["not well-formed XML", "unexpected character at column 14, inside <robot>"],
    ),
    (
        "attribute twice",
        4,
        'name="b"',
        'name="b" name="c"',
        ["not well-formed XML", "duplicate attribute"],
    ),
    ("undefined entity", 4, 'name="b"', 'name="b &bull;"', ["undefined entity", "&amp;"]),
    (
        "DTD",
        1,
        '<?xml version="1.0"?>',
        '<!DOCTYPE robot SYSTEM "http://x/robot.dtd">',
        ["document type", 'from "http://x/robot.dtd"', "refused", "delete the <!DOCTYPE"],
    ),
    (
        "entity",
        1,
        '<?xml version="1.0"?>',
        '<!DOCTYPE robot [<!ENTITY m "2">]>',
        ['<!ENTITY m> declares the entity "m"', "refused"],
    ),
    (
        "external entity",
        1,
        '<?xml version="1.0"?>',
        '<!DOCTYPE robot [<!ENTITY f SYSTEM "file:///etc/passwd">]>',
        ['the entity "f", read from "file:///etc/passwd"', "refused"],
    ),
    (
        "empty DTD",
        1,
        '<?xml version="1.0"?>',
        "<!DOCTYPE robot []>",
        ["declares a document type", "refused"],
    ),
]

# (name, text, line reported, fragments of the message)
TEXTS = [
    ("tag not closed", edited(3, "/>", ">"), 23, ["<link>, opened in line 3"]),
    ("empty", "", None, ["the file is empty", "<robot>"]),
    ("blank", " \n\n", None, ["the file is empty"]),
    ("YAML", "robot:\n  name: r\n", 1, ["this is not XML", "'robot:'"]),
    ("binary", b"solid\0\0\x80\x01\xff", None, ["binary file"]),
    ("gzip", b"\x1f\x8b\x08\0\0\0\0\0", None, ["binary file"]),
    ("UTF-32", '<robot name="r"/>'.encode("utf-32"), 1, ["UTF-32", "save as UTF-8"]),
    (
        "Latin-1 unannounced",
        '<robot>\n<link name="poignée"/></robot>'.encode("latin-1"),
        2,
        ["byte 0xe9 is not UTF-8", "save the file as UTF-8"],
    ),
    (
        "not ASCII",
        '<?xml version="1.0" encoding="ascii"?>\n<robot name="é"/>'.encode(),
        2,
        ["is not ASCII text"],
    ),
    (
        "encoding unknown",
        b'<?xml version="1.0" encoding="klingon"?><robot/>',
        1,
        ['encoding="klingon"', "UTF-8", "ISO-8859-1"],
    ),
    ("surrogate", '<robot>\n<link name="\ud800"/></robot>', 2, ["lone surrogate"]),
    (
        "line before declaration",
        '\n<?xml version="1.0"?><robot name="r"/>',
        2,
        ["must be the very first"],
    ),
    (
        "cut off",
        '<robot name="r">\n<link name="a">\n',
        3,
        ["ends too early", "<link>, opened in line 2"],
    ),
    (
        "cut off in a tag",
        '<robot name="r">\n<link na',
        2,
        ["ends too early", "<robot>, opened in line 1"],
    ),
    (
        "two robots",
        '<robot name="r"><link name="a"/></robot>\n<robot name="s"/>',
        2,
        ["more text after </robot>"],
    ),
    ("only a comment", "<!-- nothing -->", 1, ["ends too early", "no complete element"]),
    (
        "SDFormat",
        '<?xml version="1.0"?>\n<sdf version="1.9"/>',
        2,
        ["this is SDFormat", "<sdf>", "not URDF"],
    ),
    ("MJCF", '<mujoco model="m"/>', 1, ["this is MJCF", "<mujoco>"]),
    ("other XML", "<svg/>", 1, ["outermost element is <svg>", "expected <robot>"]),
    (
        "bomb",
        '<!DOCTYPE r [\n<!ENTITY a "aaaa">\n<!ENTITY b "&a;&a;">]>\n<robot name="&b;"/>',
        2,
        ['the entity "a"', "refused", "expand without end"],
    ),
    (
        "parameter entity",
        '<!DOCTYPE r [\n<!ENTITY % p "x">\n%p;]>\n<robot/>',
        2,
        ['the entity "p"', "refused"],
    ),
    ("too deep", "<robot>\n" + "<a>" * 70 + "</a>" * 70 + "</robot>", 2, ["nested deeper than 64"]),
    (
        "too many elements",
        "<robot>\n" + "<a/>" * 200_001 + "</robot>",
        2,
        ["more than 200000 elements"],
    ),
    (
        "too many attributes",
        "<robot>\n<link " + " ".join(f'a{k}=""' for k in range(65)) + "/></robot>",
        2,
        ["<link> has 65 attributes, more than 64"],
    ),
    ("too large", b"<robot>" + b" " * 2**24 + b"</robot>", None, ["more than 16 MiB"]),
    ("no link", '<robot name="r">\n</robot>', 1, ["<robot>", "has no link", "at least one <link>"]),
]


def joint(name: str, parent: str, child: str, body: str = "", kind: str = "continuous") -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f"{body}</joint>"
    )


def link(name: str) -> str:
    return f'<link name="{name}"/>'


def in_robot(rows: list[str]) -> str:
    return "\n".join(['<robot name="r">', *rows, "</robot>"])


# (name, what stands in <robot>, one element a line from line 2, line reported, fragments)
TREES = [
    (
        "link twice",
        [link("a"), link("b"), link("a")],
        4,
        ['link "a"', "already taken by the link in line 2"],
    ),
    (
        "joint twice",
        [link("a"), link("b"), link("c"), joint("j", "a", "b"), joint("j", "b", "c")],
        6,
        ['joint "j"', "already taken by the joint in line 5"],
    ),
    (
        "parent missing",
        [link("base"), link("arm"), joint("j", "bass", "arm")],
        4,
        [
            'joint "j"',
            'parent link "bass" does not exist',
            'did you mean "base"',
            '"base", "arm"',
            '<link name="bass"/>',
        ],
    ),
    ("child missing", [link("a"), joint("j", "a", "b")], 3, ['child link "b" does not exist']),
    (
        "two roots",
        [link("a"), link("b"), link("c"), joint("j", "a", "c")],
        3,
        ['link "b"', '2 links have no parent: "a", "b"', "one root"],
    ),
    (
        "disconnected parts",
        [link("a"), link("b"), link("c"), link("d"), joint("j", "a", "b"), joint("k", "c", "d")],
        4,
        ['2 links have no parent: "a", "c"'],
    ),
    (
        "link with two parents",
        [
            link("a"),
            link("b"),
            link("c"),
            joint("j", "a", "b"),
            joint("k", "a", "c"),
            joint("l", "b", "c"),
        ],
        7,
        [
            'joint "l"',
            'the child link "c" already has a parent',
            'joint "k" in line 6',
            "cut the loop",
        ],
    ),
    ("own parent", [link("a"), link("b"), joint("j", "b", "b")], 4, ['same link "b"']),
    (
        "cycle of all",
        [link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")],
        5,
        ['"b", "a" form a cycle'],
    ),
    (
        "cycle beside the tree",
        [link("a"), link("b"), link("c"), joint("j", "b", "c"), joint("k", "c", "b")],
        6,
        ["form a cycle"],
    ),
    (
        "mimic of nothing",
        [link("a"), link("b"), joint("knee", "a", "b", '<mimic joint="kneee"/>')],
        4,
        ['joint "knee" <mimic>', '"kneee" to mimic does not exist', 'did you mean "knee"'],
    ),
    (
        "mimic without joint",
        [link("a"), link("b"), joint("j", "a", "b", "<mimic/>")],
        4,
        ['joint "j" <mimic>', "the attribute joint is missing"],
    ),
    (
        "mimic by a factor of no gear",
        [
            link("a"),
            link("b"),
            joint("i", "a", "b"),
            link("c"),
            joint("j", "b", "c", '<mimic joint="i" multiplier="1e308"/>'),
        ],
        6,
        ['joint "j" <mimic>', "by the factor 1e+308", "per rad or m of its leader"],
    ),
    (
        "mimics whose factors multiply to infinity",
        [
            link("a"),
            link("b"),
            joint("i", "a", "b"),
            link("c"),
            link("d"),
            joint("j", "b", "c", '<mimic joint="i" multiplier="1e5"/>'),
            joint("k", "c", "d", '<mimic joint="j" multiplier="-1e4"/>'),
        ],
        8,
        ['joint "k" <mimic>', 'follows "i" through "j" by the factor -1e+09'],
    ),
    (
        "mimic of itself",
        [link("a"), link("b"), joint("j", "a", "b", '<mimic joint="j"/>')],
        4,
        ['"j" mimic each other in a circle'],
    ),
    (
        "mimic circle",
        [
            link("a"),
            link("b"),
            link("c"),
            joint("j", "a", "b", '<mimic joint="k"/>'),
            joint("k", "b", "c", '<mimic joint="j"/>'),
        ],
        5,
        ['"j", "k" mimic each other in a circle'],
    ),
    (
        "mimic of a fixed joint",
        [
            link("a"),
            link("b"),
            link("c"),
            joint("j", "a", "b", kind="fixed"),
            joint("k", "b", "c", '<mimic joint="j"/>'),
        ],
        6,
        ['"j" is fixed with 0 degrees of freedom'],
    ),
    (
        "floating mimics",
        [
            link("a"),
            link("b"),
            link("c"),
            joint("j", "a", "b"),
            joint("k", "b", "c", '<mimic joint="j"/>', "floating"),
        ],
        6,
        ['mimicking joint "k" is floating with 6 degrees'],
    ),
    (
        "no child",
        [link("a"), link("b"), '<joint name="j" type="fixed"><parent link="a"/></joint>'],
        4,
        ["the element <child> is missing", '<child link="..."/>'],
    ),
    (
        "inertial without mass",
        ['<link name="a"><inertial><inertia ixx="1"/></inertial></link>'],
        2,
        ['link "a" <inertial>', "<mass> is missing"],
    ),
    (
        "inertial without inertia",
        ['<link name="a"><inertial><mass value="1"/></inertial></link>'],
        2,
        ["<inertia> is missing"],
    ),
    (
        "mesh without file",
        ['<link name="a"><visual><geometry><mesh/></geometry></visual></link>'],
        2,
        ["<mesh>", "the attribute filename is missing"],
    ),
    (
        "pitch twice",
        [
            link("a"),
            link("b"),
            joint(
                "j",
                "a",
                "b",
                '<axis xyz="0 0 1" pitch="1"/><drake:screw_thread_pitch value="1"/>',
                "screw",
            ),
        ],
        4,
        ["the pitch is given twice", "keep one"],
    ),
    (
        "material",
        ['<material name="m"><color rgba="1 0 0"/></material>', link("a")],
        2,
        ['rgba="1 0 0"', "expected 4 numbers", "found 3"],
    ),
]

CORPUS = [
    *((name, edited(line, old, new), line, parts) for name, line, old, new, parts in EDITS),
    *((name, in_robot(rows), line, parts) for name, rows, line, parts in TREES),
    *TEXTS,
]


def test_the_base_of_the_corpus_is_sound():
    assert parse_urdf(BASE, strict=True).findings == ()


def test_the_corpus_names_each_case_once():
    assert len({name for name, *_ in CORPUS}) == len(CORPUS) >= 45


@pytest.mark.parametrize(
    ("text", "line", "fragments"),
    [pytest.param(*case, id=name) for name, *case in CORPUS],
)
def test_broken_text(text, line, fragments):
    with pytest.raises(UrdfError) as caught:
        parse_urdf(text, source="robot.urdf")
    message = str(caught.value)
    assert message.startswith("robot.urdf: " if line is None else f"robot.urdf:{line}: "), message
    assert caught.value.line == line
    assert caught.value.path == Path("robot.urdf")
    for fragment in fragments:
        assert fragment in message


def test_error_attributes():
    with pytest.raises(UrdfError) as caught:
        parse_urdf(edited(7, '"2"', '"heavy"'))
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.path is None
    assert error.line == 7
    assert error.element == 'link "b" <inertial><mass>'
    assert str(error) == (
        '<text>:7: link "b" <inertial><mass>: value="heavy": expected a number (mass in kg), '
        'found "heavy"'
    )


def test_errors_name_the_file(tmp_path):
    path = tmp_path / "robot.urdf"
    path.write_text(edited(7, '"2"', '"heavy"'))
    with pytest.raises(UrdfError) as caught:
        read_urdf(str(path))
    assert str(caught.value).startswith(f"{path}:7: ")
    assert caught.value.path == path


def test_missing_file(tmp_path):
    (tmp_path / "panda.urdf").touch()
    with pytest.raises(UrdfError, match=r"no such file; did you mean .*panda\.urdf\?"):
        read_urdf(tmp_path / "panda.udrf")
    with pytest.raises(UrdfError, match="no such file$"):
        read_urdf(tmp_path / "nowhere" / "x.urdf")


def test_directory(tmp_path):
    (tmp_path / "panda.urdf").touch()
    with pytest.raises(UrdfError, match=r"this is a directory.*it holds panda\.urdf"):
        read_urdf(tmp_path)


def test_pipe_is_refused_without_waiting(tmp_path):
    path = tmp_path / "pipe.urdf"
    os.mkfifo(path)
    with pytest.raises(UrdfError, match="device or pipe.*use parse_urdf"):
        read_urdf(path)
    with pytest.raises(UrdfError, match="device or pipe"):
        read_urdf("/dev/zero")


def test_unreadable_names(tmp_path):
    for name in ("a\0b.urdf", "x" * 300):
        with pytest.raises(UrdfError, match="cannot be read"):
            read_urdf(tmp_path / name)


def test_large_file_is_not_read_to_the_end(tmp_path):
    path = tmp_path / "large.urdf"
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(UrdfError, match="more than 16 MiB"):
        read_urdf(path)
