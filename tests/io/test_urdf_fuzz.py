"""Damaged files give a description or a UrdfError, and nothing else, in bounded time."""

import random
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lgcontrol.io import UrdfError, format_urdf, parse_urdf

DATA = Path(__file__).parents[1] / "data" / "urdf"

# Damage that finds more than random bytes do: what the reader has a rule for, or might trip over.
WORDS = [
    *("nan", "inf", "1e400", "-", "1_0", "", "0 0 0", "1e-320", "9" * 400, "${x}", "\t", "٣"),
    *("fixed", "floating", "planar", "screw", "mimic", "robot", "link", "joint", "xacro:if"),
    *("&amp;", "&x;", "<!DOCTYPE a>", "<!--", "-->", "<![CDATA[", "]]>", "<?p?>", "/>", '"', "\0"),
    *("\ud7ff", "\ufffe", "\x1b", "package://", "0", "-1", "1e308"),
]


def rearranged(text: str, rng: random.Random) -> str:
    """Well-formed XML with elements and attributes deleted, doubled, moved, renamed, replaced."""
    root = ElementTree.fromstring(text.encode())
    for _ in range(rng.randint(1, 3)):
        parents = [element for element in root.iter() if len(element)]
        parent = rng.choice(parents)
        child = rng.choice(list(parent))
        kind = rng.randrange(6)
        if kind == 0:
            parent.remove(child)
        elif kind == 1:
            parent.insert(rng.randint(0, len(parent)), child)
        elif kind == 2:
            rng.choice([p for p in parents if p is not child and p not in child.iter()]).append(
                child
            )
        elif kind == 3:
            child.tag = rng.choice(parents)[0].tag
        elif child.attrib:
            name = rng.choice(list(child.attrib))
            value = child.attrib.pop(name)
            if kind == 4:
                child.set(
                    rng.choice(["name", "xyz", "link", "value", "type", name[1:] or "x"]), value
                )
            else:
                words = [w for w in WORDS if w.isprintable()]
                child.set(name, rng.choice([*words, *rng.choice(parents).attrib.values()]))
        if not len(root):
            break
    return ElementTree.tostring(root, encoding="unicode")


def damaged(text: str, rng: random.Random) -> str | bytes:
    if rng.random() < 0.5:
        return rearranged(text, rng)
    kind = rng.randrange(7)
    lines = text.splitlines(keepends=True)
    k = rng.randrange(len(lines))
    if kind == 0:
        del lines[k : k + rng.randint(1, 5)]
    elif kind == 1:
        lines[k:k] = lines[k : k + rng.randint(1, 30)]
    elif kind == 2:
        other = rng.randrange(len(lines))
        lines[k], lines[other] = lines[other], lines[k]
    elif kind == 3:
        values = list(re.finditer(r'"([^"]*)"', text))
        for match in sorted(rng.sample(values, rng.randint(1, 3)), key=lambda m: -m.start()):
            text = text[: match.start(1)] + rng.choice(WORDS) + text[match.end(1) :]
        return text
    elif kind == 4:
        at = rng.randrange(len(text))
        return text[:at] + rng.choice(WORDS) + text[at + rng.randrange(20) :]
    elif kind == 5:
        data = bytearray(text.encode())
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return bytes(data)
    else:
        return text[: rng.randrange(len(text))]
    return "".join(lines)


def check(text: str, cases: int, seed: str) -> None:
    rng = random.Random(seed)
    outcomes = set()
    for _ in range(cases):
        broken = damaged(text, rng)
        for strict in (False, True):
            try:
                robot = parse_urdf(broken, source="fuzz.urdf", strict=strict)
                assert parse_urdf(format_urdf(robot)) == robot
                outcomes.add("read")
            except UrdfError as error:
                assert str(error).startswith("fuzz.urdf:"), error
                outcomes.add("refused")
    assert outcomes == {"read", "refused"}


@pytest.mark.parametrize("file", ["arm.urdf", "joint_types.urdf"])
def test_damaged_small_files(file):
    check((DATA / file).read_text(), 200, file)


@pytest.mark.usually(file=("falcon_bravo7_no_ee", "iris", "panda", "ur5_robot"))
@pytest.mark.parametrize(
    "file",
    [
        *("borinot_flying_arm_2", "double_pendulum_continuous", "falcon_bravo7_no_ee", "iris"),
        *("hyq_no_sensors", "panda", "solo12", "talos_reduced", "tiago", "ur5_robot", "z1"),
    ],
)
def test_damaged_real_files(robots, file):
    text = (robots / f"{file}.urdf").read_text()
    check(text, 40 if len(text) < 20_000 else 15, file)


@pytest.mark.parametrize(
    "text",
    [
        "<robot>" + "".join(f"<limk{k}/>" for k in range(20_000)) + '<link name="a"/></robot>',
        '<robot><link name="a" ' + "x" * 10**6 + '="1"/></robot>',
        '<robot><link name="a"><inertial><mass value="'
        + "1" * 10**6
        + '"/></inertial></link></robot>',
        '<robot><link name="a"><inertial><mass value="'
        + "1 " * 10**6
        + '"/></inertial></link></robot>',
    ],
    ids=["many unknown tags", "long name", "long number", "many numbers"],
)
def test_large_nonsense_gets_a_short_answer(text):
    try:
        parse_urdf(text)
    except UrdfError as error:
        assert len(str(error)) < 1000


def test_long_chains_do_not_exhaust_the_stack():
    count = 5_000
    links = "".join(f'<link name="l{k}"/>' for k in range(count))
    joints = "".join(
        f'<joint name="j{k}" type="continuous"><parent link="l{k - 1}"/><child link="l{k}"/>'
        + (f'<mimic joint="j{k - 1}"/>' if k > 1 else "")
        + "</joint>"
        for k in range(1, count)
    )
    robot = parse_urdf(f'<robot name="chain">{links}{joints}</robot>')
    assert robot.joint(f"j{count - 1}").mimic.joint == "j1"
