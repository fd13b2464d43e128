"""Files that read, but deserve a remark: where, what was found, what to do."""

import pytest

from lgcontrol.io import RobotDescription, UrdfError, parse_urdf, read_urdf
from lgcontrol.io._internal import Finding, JointLimits, find_faults

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
      <geometry><sphere radius="1"/></geometry>
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

DIAGONAL = 'ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"'
LIMIT = '<limit lower="-1" upper="1" effort="10" velocity="2"/>'


def inertia(ixx, iyy, izz, ixy=0.0):
    return f'ixx="{ixx}" ixy="{ixy}" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"'


# (name, line edited, old, new, line reported, severity, fragments of the message)
CASES = [
    # Bodies that cannot be
    (
        *("negative mass", 7, '"2"', '"-2"', 5, "warning"),
        ['link "b" <inertial>', "mass -2 kg is negative"],
    ),
    (
        *("mass without inertia", 8, DIAGONAL, inertia(0, 0, 0), 5, "warning"),
        ["mass is 2 kg but the inertia is all zero"],
    ),
    (
        *("inertia without mass", 7, '"2"', '"0"', 5, "warning"),
        ["mass is 0 but the inertia is not", "0.1 kg m²"],
    ),
    (
        *("negative moment", 8, DIAGONAL, inertia(0.1, 0.1, -0.05), 5, "warning"),
        ["not positive definite", "principal moments -0.05, 0.1, 0.1"],
    ),
    (
        *("rod", 8, DIAGONAL, inertia(0.1, 0.1, 0), 5, "warning"),
        ["not positive definite", "principal moments 0, 0.1, 0.1"],
    ),
    (
        # Eigenvalues of [[0.1, 0.2], [0.2, 0.1]]: -0.1 and 0.3.
        *("product too large", 8, DIAGONAL, inertia(0.1, 0.1, 0.1, ixy=0.2), 5, "warning"),
        ["not positive definite", "principal moments -0.1, 0.1, 0.3"],
    ),
    (
        *("triangle inequality", 8, DIAGONAL, inertia(0.1, 0.1, 0.25), 5, "warning"),
        ["triangle inequality", "exceeds the sum of the others by 0.05 kg m² (20 %)"],
    ),
    (
        *("products missing", 8, 'ixy="0" ', "", 8, "warning"),
        ["ixy missing and taken as 0"],
    ),
    # Degrees
    (
        *("angle in degrees", 16, 'rpy="0 0 0"', 'rpy="0 90 0"', 16, "warning"),
        ['joint "j" <origin>', 'rpy="0 90 0" looks like degrees', "90 degrees are 1.5708 rad"],
    ),
    (
        *("limit in degrees", 20, 'lower="-1"', 'lower="-170"', 20, "warning"),
        ["the limit -170 looks like degrees", "-170 degrees are -2.96706 rad"],
    ),
    (
        *("limit that is none", 20, 'upper="1"', 'upper="1e16"', 20, "note"),
        ["1e+16 rad limits nothing"],
    ),
    # Axes
    (
        *("axis with a scale", 19, "0 0 1", "0 0 2", 19, "warning"),
        ['xyz="0 0 2" has norm 2, expected 1'],
    ),
    (
        *("axis not normalised", 19, "0 0 1", "1 1 0", 19, "warning"),
        ["has norm 1.41421356, expected 1"],
    ),
    (
        *("axis rounded", 19, "0 0 1", "0.7071 0.7071 0", 19, "note"),
        ['xyz="0.7071 0.7071 0" has norm 0.99999', "it is normalised"],
    ),
    (
        *("pitch of a revolute joint", 19, "/>", ' pitch="0.1"/>', 19, "warning"),
        ["pitch is ignored", "this one is revolute"],
    ),
    # Limits
    (
        *("no limit", 20, LIMIT, "", 15, "warning"),
        ["a revolute joint needs <limit>", "taken as unlimited"],
    ),
    ("no effort", 20, 'effort="10" ', "", 20, "warning", ["effort missing", "unlimited"]),
    (
        *("no effort, no velocity", 20, 'effort="10" velocity="2"', "", 20, "warning"),
        ["effort and velocity missing"],
    ),
    (
        *("no bounds", 20, 'lower="-1" upper="1" ', "", 20, "warning"),
        ["lower and upper are missing", "lock the joint"],
    ),
    ("no upper bound", 20, 'upper="1" ', "", 20, "note", ["upper is missing and 0"]),
    (
        *("no room", 20, 'lower="-1" upper="1"', 'lower="0" upper="0"', 20, "warning"),
        ["both 0: the joint cannot move"],
    ),
    ("negative effort", 20, '"10"', '"-10"', 20, "warning", ["effort=-10 is negative"]),
    (
        "no effort at all",
        20,
        '"10"',
        '"0"',
        20,
        "warning",
        ["effort=0 keeps the joint from being driven"],
    ),
    (
        "no speed at all",
        20,
        '"2"',
        '"0"',
        20,
        "warning",
        ["velocity=0 keeps the joint from moving"],
    ),
    ("negative damping", 21, '"0.1"', '"-0.1"', 21, "warning", ["damping -0.1 is negative"]),
    (
        *("bounds of a continuous joint", 15, "revolute", "continuous", 20, "note"),
        ["lower and upper are ignored", 'type="revolute"'],
    ),
    (
        *("mimic of a fixed joint", 15, "revolute", "fixed", 19, "note"),
        ["<mimic>", "ignored: a fixed joint has no position"],
    ),
    (
        *("multiplier 0", 20, LIMIT, f'{LIMIT}<mimic joint="j2" multiplier="0"/>', 20, "warning"),
        ["multiplier is 0", "stays at its offset"],
    ),
    # Misspellings
    (
        *("link element", 5, "<inertial>", "<inertail>", 5, "warning"),
        ["<inertail> is not known and ignored; did you mean <inertial>?"],
    ),
    ("joint element", 20, "limit", "limits", 20, "warning", ["<limits>", "did you mean <limit>?"]),
    (
        *("robot element", 3, "/>", "/><jiont/>", 3, "warning"),
        ["<robot>", "<jiont> is not known and ignored; did you mean <joint>?"],
    ),
    (
        *("attribute", 16, "xyz", "xzy", 16, "warning"),
        ["the attribute xzy is not known and ignored", 'did you mean "xyz"?'],
    ),
    ("limit attribute", 20, "lower", "lowr", 20, "warning", ["lowr", 'did you mean "lower"?']),
    (
        *("element twice", 19, "/>", '/><axis xyz="1 0 0"/>', 19, "warning"),
        ["<axis> appears 2 times; only the first is used"],
    ),
    # Drawing
    (
        *("shape unknown", 12, '<sphere radius="1"/>', "<cone/>", 12, "warning"),
        ["expected one of <box>", "found <cone>", "nothing is drawn"],
    ),
    ("no shape", 12, '<sphere radius="1"/>', "", 12, "warning", ["found nothing"]),
    ("no geometry", 12, "geometry", "geometri", 10, "warning", ["no <geometry>"]),
    ("negative radius", 12, '"1"', '"-1"', 12, "warning", ["radius -1 is negative"]),
    (
        *("two shapes", 12, "</geometry>", '<box size="1 1 1"/></geometry>', 12, "warning"),
        ["only the first shape"],
    ),
    # The robot
    ("no name", 2, ' name="r"', "", 2, "warning", ["the attribute name is missing"]),
    ("version", 2, "<robot ", '<robot version="9" ', 2, "warning", ['version="9" is not known']),
]


def edited(name: str, line: int, old: str, new: str) -> str:
    lines = BASE.splitlines()
    assert old in lines[line - 1], (line, old)
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    text = "\n".join(lines)
    if name == "link element":
        text = text.replace("</inertial>", "</inertail>")
    if name == "no geometry":
        text = text.replace("</geometry>", "</geometri>")
    if name == "mimic of a fixed joint":
        text = text.replace('<axis xyz="0 0 1"/>', '<mimic joint="k"/>')
    if name == "multiplier 0":
        second = '<joint name="j2" type="continuous"><parent link="b"/><child link="c"/></joint>'
        text = text.replace("</robot>", f'<link name="c"/>{second}</robot>')
    return text


@pytest.mark.parametrize(
    ("text", "line", "severity", "fragments"),
    [
        pytest.param(edited(name, edit, old, new), line, severity, parts, id=name)
        for name, edit, old, new, line, severity, parts in CASES
    ],
)
def test_finding(text, line, severity, fragments):
    findings = parse_urdf(text).findings
    matching = [
        finding
        for finding in findings
        if (finding.line, finding.severity) == (line, severity)
        and all(fragment in f"{finding.element}: {finding.message}" for fragment in fragments)
    ]
    assert len(matching) == 1, [str(finding) for finding in findings]
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if not warnings:
        assert parse_urdf(text, strict=True).findings == findings
        return
    with pytest.raises(UrdfError) as caught:
        parse_urdf(text, source="robot.urdf", strict=True)
    assert str(caught.value).startswith(f"robot.urdf:{warnings[0].line}: ")
    for warning in warnings:
        assert warning.message in str(caught.value)


def test_strict_lists_all_warnings():
    text = edited("", 7, '"2"', '"-2"').replace('rpy="0 0 0"', 'rpy="90 0 0"')
    with pytest.raises(UrdfError) as caught:
        parse_urdf(text, strict=True)
    message = str(caught.value)
    assert "is negative" in message
    assert "strict reading found 2 more:" in message
    assert message.count("looks like degrees") == 2


def test_strict_shortens_long_lists():
    links = "".join(
        f'<link name="l{k}"><inertial><mass value="-1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" '
        'iyz="0" izz="1"/></inertial></link>'
        for k in range(50)
    )
    joints = "".join(
        f'<joint name="j{k}" type="fixed"><parent link="l0"/><child link="l{k}"/></joint>'
        for k in range(1, 50)
    )
    with pytest.raises(UrdfError, match="strict reading found 49 more:(?s:.)*and 30 more$"):
        parse_urdf(f'<robot name="r">{links}{joints}</robot>', strict=True)


def test_joint_that_moves_no_mass():
    text = edited("", 15, 'name="j"', 'name="j"').replace(
        "</robot>",
        '<link name="c"/><link name="d"/>'
        '<joint name="k" type="continuous"><parent link="b"/><child link="c"/></joint>'
        '<joint name="t" type="fixed"><parent link="c"/><child link="d"/></joint></robot>',
    )
    (finding,) = parse_urdf(text).findings
    assert finding.element == 'joint "k"'
    assert 'moves no mass ("c" and all links behind it have none)' in finding.message
    # Mass further out counts.
    mass = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
    heavy = text.replace('<link name="d"/>', f'<link name="d">{mass}</inertial></link>')
    assert parse_urdf(heavy).findings == ()
    # A joint that follows another adds no row to the mass matrix.
    follower = text.replace('<child link="c"/>', '<child link="c"/><mimic joint="j"/>')
    assert parse_urdf(follower).findings == ()


def test_faults_of_descriptions_made_in_code_are_those_of_the_file():
    faults = [('"2"/>', '"-2"/>'), ('0.1" friction', '-0.1" friction'), ('"10"', '"-10"')]
    text = BASE
    for old, new in faults:
        assert text.count(old) >= 1
        text = text.replace(old, new)
    read = parse_urdf(text)
    made = RobotDescription(read.name, read.links, read.joints)
    assert made.findings == ()
    told = {(finding.element, finding.message) for finding in find_faults(made)}
    assert told == {(finding.element, finding.message) for finding in read.findings}
    assert len(told) >= 3
    assert find_faults(parse_urdf(BASE)) == ()


def test_text_instead_of_a_file_name_is_not_repeated():
    with pytest.raises(UrdfError, match="the text of one.*: parse_urdf reads text$") as caught:
        read_urdf(BASE)
    assert len(str(caught.value)) < 200


def test_normalised_axis_and_bounds_as_understood():
    robot = parse_urdf(edited("", 19, "0 0 1", "0 3 4"))
    assert robot.joint("j").axis == (0.0, 0.6, 0.8)
    robot = parse_urdf(edited("", 20, 'upper="1" ', ""))
    assert robot.joint("j").limits == JointLimits(-1.0, 0.0, 2.0, 10.0)
    robot = parse_urdf(edited("", 20, LIMIT, ""))
    assert robot.joint("j").limits == JointLimits()


def test_boundary_of_the_triangle_inequality():
    # A thin plate is the equality; six printed digits can break it by rounding.
    assert parse_urdf(edited("", 8, DIAGONAL, inertia(0.1, 0.2, 0.3))).findings == ()
    assert parse_urdf(edited("", 8, DIAGONAL, inertia(0.1, 0.2, 0.300001))).findings != ()


def test_ignored_elements_are_silent():
    extra = (
        '<gazebo reference="b"><mu1>1_000</mu1></gazebo><transmission name="t"/><sensor/>'
        '<ros2_control name="x"/><drake:ignore xmlns:drake="d"/>'
    )
    assert parse_urdf(BASE.replace("</robot>", f"{extra}</robot>")).findings == ()
    inside = "<contact><stiffness value='1'/></contact><my_element/>"
    assert parse_urdf(BASE.replace("</link>", f"{inside}</link>")).findings == ()


def test_errors_point_to_misspellings_before_them():
    with pytest.raises(UrdfError) as caught:
        parse_urdf(edited("", 3, "link", "lnik"))
    assert caught.value.line == 15
    assert 'the parent link "a" does not exist' in str(caught.value)
    assert "[see also line 3: <lnik> is not known and ignored; did you mean <link>?]" in str(
        caught.value
    )


def test_findings_come_in_file_order():
    text = edited("", 20, 'effort="10" ', "").replace('value="2"', 'value="-2"')
    lines = [finding.line for finding in parse_urdf(text).findings]
    assert lines == sorted(lines)
    assert len(lines) == 2


def test_finding_as_text():
    assert str(Finding("note", "it is normalised", 3, 'joint "j" <axis>')) == (
        'line 3: note: joint "j" <axis>: it is normalised'
    )
    assert str(Finding("warning", "no place")) == "warning: no place"
