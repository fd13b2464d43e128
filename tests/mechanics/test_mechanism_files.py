"""Mechanisms as JSON: what is written is read, the authors' files are, faults say their place."""

import json

import numpy as np
import pytest

import lgcontrol.mechanics.constrained as mc
from lgcontrol import models
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    Expression,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    MechanismMotor,
)

BOX = SpatialInertia.box(2.0, [0.3, 0.2, 0.1])
GROUND, BODY = Marker("ground"), Marker("rod", [-0.15, 0, 0])
SAME = 1e-13


def machine():
    """Something of everything that a file can hold."""
    rod = MechanismBody("rod", BOX, [0.15, 0, 0, 0, 0, 0, 1], [0, 0.3, 0, 0, 0, 2.0])
    disc = MechanismBody("disc", BOX, [0.3, 0, 0, 0, 0, 0, 1], [0, 0.6, 0, 0, 0, 2.0])
    tip = Marker("rod", [0.15, 0, 0]), Marker("disc")
    joints = [
        mc.revolute("hinge", GROUND, BODY),
        mc.revolute("pin", *tip),
        mc.angle_drive("turn", *tip, Expression("0.2*sin(3*t) - t**2/2")),
    ]
    motor = MechanismMotor("motor", GROUND, BODY, upper=3.0, curve=Expression("u - 0.1*w", "u w"))
    forces = [
        mc.spring_damper("spring", Marker("ground", [0, 1, 0]), tip[1], length=0.4, stiffness=90.0),
        mc.torsion_spring("coil", GROUND, BODY, torque=Expression("2*s + 0.1*w**3", "s w")),
        mc.bushing("mount", *tip, stiffness=[1, 2, 3, 4, 5, 6.0], damping=0.1),
        mc.joint_friction("bearing", GROUND, BODY, coulomb=0.2),
    ]
    return Mechanism(
        "machine",
        [rod, disc],
        joints,
        motors=[motor],
        forces=forces,
        gravity=[0, -9.81, 0],
        formulation={"rod": "SE3", "disc": "rp"},
    )


def same(one, other):
    q = one.coordinates()
    assert other.coordinates() == pytest.approx(q, abs=SAME)
    v, u = one.velocities(q), one.mechanics.base.nominal_input + 0.5
    for t in (0.0, 0.7):
        own, read = (each.dynamics(t, q, v, u) for each in (one, other))
        for name in ("phi", "G", "nu", "gamma", "M", "F"):
            assert getattr(read, name) == pytest.approx(getattr(own, name), abs=1e-11), name
    assert one.row_names == other.row_names


MECHANISMS = {
    "machine": machine,
    "three_bar": models.three_bar_mechanism,
    "four_link": lambda: models.four_link_mechanism(drive="motor", moments=3 * [[4, 4, 5]]),
    "slider_crank": lambda: models.slider_crank_mechanism(drive="motor"),
}


@pytest.mark.usually(name=("machine", "slider_crank"))
@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_written_is_read(name, tmp_path):
    made = MECHANISMS[name]()
    made.to_json(tmp_path / "it.json")
    read = Mechanism.from_json(tmp_path / "it.json")
    same(made, read)
    again = tmp_path / "again.json"
    read.to_json(again)
    assert json.loads(again.read_text()) == json.loads((tmp_path / "it.json").read_text())


def test_other_joints_are_written(tmp_path):
    bodies = [MechanismBody("rod", BOX), MechanismBody("disc", BOX, [0, 0, 0.1, 0, 0, 0, 1])]
    own, disc = Marker("rod"), Marker("disc")
    joints = [
        mc.screw("screw", GROUND, own, 0.01),
        mc.gear("gear", (GROUND, own), (GROUND, disc), (2, -3)),
        mc.rolling_disk("roll", GROUND, Marker("disc", z=[1, 0, 0]), 0.1),
        mc.distance("wire", own, disc, 0.1),
    ]
    made = Mechanism("parts", bodies, joints)
    made.to_json(tmp_path / "it.json")
    same(made, Mechanism.from_json(tmp_path / "it.json"))


def theirs():
    """The pendulum of the paper, as its authors write their files."""
    s = 0.7071067811865476

    def row(name, kind, **entries):
        zero = {"f": "0", "f_dot": "0", "f_ddot": "0"}
        return {"name": name, "type": kind, "body_i": 1, "body_j": 0, **zero, **entries}

    ends = {"s_bar_p_i": [-2, 0, 0], "s_bar_q_j": [0, 0, 0]}
    return {
        "name": "one pendulum",
        "bodies": [
            {"name": "ground", "id": 0},
            {
                "name": "rod",
                "id": 1,
                "r": [0, 2 * s, -2 * s],
                "r_dot": [0, 0, 0],
                "A": [[0, 0, 1], [0.7071, 0.7071, 0], [-0.7071, 0.7071, 0]],
                "omega": [0, 0, 0],
            },
        ],
        "constraints": [
            row("rev_x", "DP1", a_bar_i=[1, 0, 0], a_bar_j=[1, 0, 0]),
            row("rev_y", "DP1", a_bar_i=[0, 1, 0], a_bar_j=[1, 0, 0]),
            *(row(f"cd-{k}", "CD", c=list(c), **ends) for k, c in enumerate(np.eye(3))),
            row(
                "driver",
                "DP1",
                a_bar_i=[0, 1, 0],
                a_bar_j=[0, 0, -1],
                f="cos(pi/4*cos(2*t) + pi/2)",
            ),
        ],
    }


def test_files_of_the_authors_are_read(tmp_path):
    path = tmp_path / "pendulum.mdl"
    path.write_text(json.dumps(theirs()))
    own = models.pendulum_mechanism(drive="paper")
    read = Mechanism.from_json(path, inertias={"rod": own.bodies["rod"].inertia})
    q = own.coordinates()
    assert read.coordinates() == pytest.approx(q, abs=1e-15)
    one, other = (each.dynamics(0.3, q, np.zeros(6)) for each in (own, read))
    order = [0, 1, 2, 3, 4, 5]
    assert other.G == pytest.approx(one.G[order], abs=1e-14)
    assert other.gamma == pytest.approx(one.gamma[order], abs=1e-13)
    run = read.kinematics(np.linspace(0, 1, 11))
    assert run.is_success
    for word in ("SE3", "rp", "re"):
        assert read.formulated(word).kinematics([0.0, 0.5]).is_success
    with pytest.raises(
        ValueError, match=r"pendulum.mdl: bodies\[1\]: the file has no masses.*'rod'"
    ):
        Mechanism.from_json(path)


def put(*keys):
    *way, last, value = keys

    def change(data):
        for key in way:
            data = data[key]
        data[last] = value

    return change


BAD = {
    "joint": (put("joints", 0, "type", "hinge"), r"joints\[0\].type: unknown joint 'hinge'"),
    "body": (put("joints", 1, "j", "body", "disk"), "joint 'pin': unknown body 'disk'"),
    "nan": (put("bodies", 0, "mass", float("nan")), r"bodies\[0\].mass: expected finite numbers"),
    "inertia": (
        put("bodies", 1, "inertia", [1.0, 1.0, 5.0]),
        r"bodies\[1\].inertia: .*(triangle|physical|moments)",
    ),
    "rotation": (
        lambda data: data["bodies"][0].update(
            quaternion=None, rotation=[[1, 0, 0], [0, 1, 0], [0, 0, 2]]
        ),
        r"bodies\[0\].rotation: expected a rotation matrix",
    ),
    "missing": (lambda data: data["joints"][0].pop("i"), r"joints\[0\]: 'i' is missing"),
    "further": (put("joints", 0, "angle", 3.0), r"joints\[0\]: unknown entry 'angle'"),
    "shape": (put("bodies", 0, "position", [1, 2]), r"bodies\[0\].position: .*shape \(3,\)"),
    "text": (put("bodies", 0, "name", 3), r"bodies\[0\].name: expected a text, got 3"),
    "call": (
        put("joints", 2, "angle", "__import__('os').remove('x')"),
        r"joints\[2\].angle: .*is not allowed",
    ),
    "name in it": (put("joints", 2, "angle", "2*tau"), r"joints\[2\].angle: .*variable 'tau'"),
    "syntax": (put("joints", 2, "angle", "2*(t"), r"joints\[2\].angle: .*is no expression"),
    "marker": (put("forces", 2, "i", "z", [0, 0, 0]), r"forces\[2\].i: .*must not be zero"),
    "formulation": (put("formulation", "SE2"), "unknown formulation 'SE2'"),
    "format": (put("format", "urdf"), 'expected "format": "lgcontrol mechanism"'),
    "list": (put("bodies", {}), "bodies: expected a list"),
    "gravity 0": (put("gravity", 0), r"gravity: .*shape \(3,\), got shape \(\)"),
    "gravity []": (put("gravity", []), r"gravity: .*shape \(3,\), got shape \(0,\)"),
    "gravity false": (put("gravity", False), "gravity: expected numbers, got false"),
    "quaternion []": (put("bodies", 0, "quaternion", []), r"bodies\[0\].quaternion: .*shape"),
    "velocity 0": (put("bodies", 0, "velocity", 0), r"bodies\[0\].velocity: .*shape"),
    "spin 0": (put("bodies", 0, "angular_velocity", 0), r"angular_velocity: .*shape"),
    "both": (
        put("bodies", 0, "rotation", np.eye(3).tolist()),
        r"bodies\[0\]: both 'rotation' and 'quaternion' stand; give one",
    ),
    "mass true": (put("bodies", 0, "mass", True), r"bodies\[0\].mass: expected numbers, got true"),
    "mass text": (put("bodies", 0, "mass", "2"), r'bodies\[0\].mass: expected numbers, got "2"'),
    "mass huge": (put("bodies", 0, "mass", 10**400), r"bodies\[0\].mass: expected finite numbers"),
    "version": (put("version", True), 'expected "format": .*got .*True'),
    "formulation 0": (put("formulation", 0), "formulation: expected a text, got 0"),
    "symbol": (put("symbolic", ["rod.weight"]), r"symbolic: .*rod.weight"),
    "kind": (put("motors", 0, "kind", 0), r"motors\[0\].kind: expected a text, got 0"),
    "by zero": (put("joints", 2, "angle", "1/0"), r"joints\[2\].angle: .*'1/0' divides by zero"),
    "power": (put("joints", 2, "angle", "t*9**9**9**9"), r"joints\[2\].angle: .*is no finite"),
    "complex": (put("joints", 2, "angle", "(-8)**0.5"), r"joints\[2\].angle: .*is no finite real"),
    "infinite": (put("joints", 2, "angle", "1e999*t"), r"angle: .*'1e999' is no finite"),
    "arguments": (
        put("joints", 2, "angle", "sin(t,t)"),
        r"angle: .*sin has 2 arguments; give it 1",
    ),
    "atan2": (put("joints", 2, "angle", "atan2(t)"), r"angle: .*atan2 has 1 arguments; give it 2"),
    "signs": (put("joints", 2, "angle", 300 * "-" + "t"), r"joints\[2\].angle: .*100 levels"),
    "many signs": (put("joints", 2, "angle", 990 * "-" + "t"), r"joints\[2\].angle: "),
}


@pytest.mark.parametrize("name", BAD)
def test_faults_say_the_file_and_the_key(name, tmp_path):
    change, message = BAD[name]
    path = tmp_path / "machine.json"
    machine().to_json(path)
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    with pytest.raises((ValueError, TypeError, KeyError), match=f"machine.json: .*{message}"):
        Mechanism.from_json(path)


NO_JSON = {"brackets": ("{]", ".*line 1"), "deep": (100_000 * "[", ""), "digits": (5000 * "9", "")}


@pytest.mark.parametrize("name", NO_JSON)
def test_no_json_is_said(name, tmp_path):
    text, message = NO_JSON[name]
    path = tmp_path / "it.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"it.json: the file is no JSON: {message}"):
        Mechanism.from_json(path)


def test_an_entry_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "it.json"
    machine().to_json(path)
    path.write_text(path.read_text().replace('"mass": 2.0,', '"mass": 2.0, "mass": 3.0,', 1))
    with pytest.raises(ValueError, match=r"it.json: bodies\[0\]: the entry 'mass' stands twice"):
        Mechanism.from_json(path)


def test_symbols_are_written_and_read(tmp_path):
    made = machine().symbolic("rod.mass", "spring.stiffness")
    made.to_json(tmp_path / "it.json")
    read = Mechanism.from_json(tmp_path / "it.json")
    assert [p.name for p in read.equations.parameters] == ["rod.mass", "spring.stiffness"]


THEIR_FAULTS = {
    "type missing": (lambda d: d["constraints"][0].pop("type"), "'type' is missing"),
    "type 1": (put("constraints", 0, "type", 1), r"\[0\].type: expected a text, got 1"),
    "id list": (put("bodies", 0, "id", [0]), r"bodies\[0\].id: expected a whole number"),
    "side": (put("constraints", 0, "body_i", [0]), r"\[0\].body_i: expected a whole number"),
    "same id": (put("bodies", 1, "id", 0), r"bodies\[1\].id: 0 is that of 'ground' as well"),
    "omega": (put("bodies", 1, "omega", 0), r"bodies\[1\].omega: .*shape"),
}


@pytest.mark.parametrize("name", THEIR_FAULTS)
def test_faults_in_files_of_the_authors_say_the_place(name, tmp_path):
    change, message = THEIR_FAULTS[name]
    data = theirs()
    change(data)
    path = tmp_path / "pendulum.mdl"
    path.write_text(json.dumps(data))
    with pytest.raises((ValueError, TypeError, KeyError), match=f"pendulum.mdl: .*{message}"):
        Mechanism.from_json(path, inertias={"rod": BOX})


def test_names_of_files_say_what_they_are(tmp_path):
    made = machine()
    with pytest.raises(ValueError, match=r"this writes .json files, 'it.json' for example"):
        made.to_json(tmp_path / "it.yaml")
    assert not [*tmp_path.iterdir()]
    made.to_json(tmp_path / "it")
    assert [file.name for file in tmp_path.iterdir()] == ["it.json"]
    same(made, Mechanism.from_json(tmp_path / "it"))
    with pytest.raises(FileNotFoundError, match="nope.json: no such file"):
        Mechanism.from_json(tmp_path / "nope.json")
    with pytest.raises(FileNotFoundError, match="but a folder"):
        Mechanism.from_json(tmp_path)


TURN = mc.angle_drive("d", GROUND, Marker("box1"), lambda t: t)
OWN = mc.VelocityConstraint("x", ("rod",), lambda t, at, v: v["rod"][0][0])
LAW = MechanismJoint("law", [OWN])
CANNOT = {
    "drive": (models.three_bar_mechanism().with_joints(TURN), "angle of joint 'd', a function"),
    "own row": (Mechanism("m", [MechanismBody("rod", BOX)], [LAW]), "the row 'x' of joint 'law'"),
}


@pytest.mark.parametrize("coordinate", ["hinge", "rail.x", "rail.z"])
def test_drives_of_expressions_are_written(coordinate, tmp_path):
    bodies = [MechanismBody(name, BOX) for name in ("rod", "sledge")]
    joints = [mc.revolute("hinge", GROUND, BODY), mc.planar("rail", GROUND, Marker("sledge"))]
    if coordinate == "rail.z":
        joints[1] = mc.cylindrical("rail", GROUND, Marker("sledge"))
    made = Mechanism("m", bodies, joints).drive(coordinate, Expression("0.5*sin(t)"))
    made.to_json(tmp_path / "m.json")
    same(made, Mechanism.from_json(tmp_path / "m.json"))


def test_motions_of_drives_are_looked_at_once():
    rod = Mechanism("m", [MechanismBody("rod", BOX)], [mc.revolute("hinge", GROUND, BODY)])
    with pytest.raises(TypeError, match=r"drive of 'hinge': .* Expression\('0.5\*sin\(t\)'\)"):
        rod.drive("hinge", "0.5*sin(t)")
    with pytest.raises(TypeError, match=r"joint 'turn': .* write Expression"):
        mc.angle_drive("turn", GROUND, BODY, "t")
    with pytest.warns(FutureWarning, match="drive of 'hinge' calls NumPy functions") as told:
        driven = rod.drive("hinge", lambda t: 0.5 * np.sin(t))
        run = driven.kinematics([0.0, 0.1])
    assert len(told) == 1
    assert run.v[0, 5] == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("name", CANNOT)
def test_what_json_cannot_hold_is_named(name, tmp_path):
    mechanism, message = CANNOT[name]
    with pytest.raises(ValueError, match=f"JSON cannot hold {message}"):
        mechanism.to_json(tmp_path / "it.json")
    assert not (tmp_path / "it.json").exists()


@pytest.mark.parametrize("text", ["t/0", "1/(t - t)", "sin(t)/0.0"])
def test_expressions_that_divide_by_zero_are_refused(text):
    with pytest.raises(ValueError, match="divides by zero"):
        Expression(text)
