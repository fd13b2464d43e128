"""Springs and dampers between bodies beside MuJoCo: four mechanisms, where their bodies end.

    python -m tests.benchmarks.marker_forces [--store]

MuJoCo runs in an environment that this makes, with RK4 at 0.1 ms. Stored numbers are what
`tests/mechanics/test_marker_forces.py` compares with.
"""

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np

import lgcontrol.mechanics.constrained as mc
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody
from tests.benchmarks._solver_peers import environment

STORE = Path(__file__).parent / "results" / "marker_forces.json"
END = 1.0  # s
BAR = SpatialInertia.box(1.5, [0.6, 0.05, 0.05])
HEAD = '<option timestep="1e-4" integrator="RK4" gravity="0 0 -9.81"/>'
MASS = 'mass="1.5" diaginertia="{:.17g} {:.17g} {:.17g}"'.format(*np.diag(np.asarray(BAR.inertia)))
WORLD, TURN = Marker("ground", z=[0, 1, 0]), {"z": [0, 1, 0]}


def tendon(first, second, numbers):
    sites = "".join(f'<site site="{name}"/>' for name in (first, second))
    return f"<tendon><spatial {numbers}>{sites}</spatial></tendon>"


def hung():
    rail = [mc.translational("rail", Marker("ground"), Marker("mass"))]
    spring = mc.spring_damper(
        "f", Marker("ground", [0.3, 0, 1]), Marker("mass"), length=0.5, stiffness=90, damping=2
    )
    body = MechanismBody("mass", BAR, [0, 0, 0.2, 0, 0, 0, 1])
    xml = f"""<worldbody><site name="a" pos="0.3 0 1"/><body name="mass" pos="0 0 0.2">
    <joint type="slide" axis="0 0 1"/><inertial pos="0 0 0" {MASS}/><site name="b"/></body>
    </worldbody>{tendon("a", "b", 'stiffness="90" damping="2" springlength="0.5"')}"""
    return Mechanism("hung", [body], rail, forces=[spring]), xml


def coiled():
    pin, end = WORLD, Marker("bar", [-0.3, 0, 0], **TURN)
    coil = mc.torsion_spring("f", pin, end, angle=0.4, stiffness=4.0, damping=0.1)
    body = MechanismBody("bar", BAR, [0.3, 0, 0, 0, 0, 0, 1])
    xml = f"""<worldbody><body name="bar"><joint type="hinge" axis="0 1 0" stiffness="4"
    damping="0.1" springref="{np.degrees(0.4):.17g}"/><inertial pos="0.3 0 0" {MASS}/></body>
    </worldbody>"""
    return Mechanism("coiled", [body], [mc.revolute("pin", pin, end)], forces=[coil]), xml


def braced():
    ends = [Marker("one", [-0.3, 0, 0], **TURN), Marker("one", [0.3, 0, 0], **TURN)]
    last = Marker("two", [-0.3, 0, 0], **TURN)
    bodies = [
        MechanismBody("one", BAR, [0.3, 0, 0, 0, 0, 0, 1]),
        MechanismBody("two", BAR, [0.9, 0, 0, 0, 0, 0, 1]),
    ]
    joints = [mc.revolute("base", WORLD, ends[0]), mc.revolute("elbow", ends[1], last)]
    forces = [
        mc.spring_damper(
            "f",
            Marker("ground", [0, 0, 0.8]),
            Marker("two", [0.3, 0, 0]),
            length=0.9,
            stiffness=60,
            damping=1.5,
        ),
        mc.joint_friction("losses", ends[1], last, damping=0.05),
    ]
    xml = f"""<worldbody><site name="a" pos="0 0 0.8"/><body name="one">
    <joint type="hinge" axis="0 1 0"/><inertial pos="0.3 0 0" {MASS}/>
    <body name="two" pos="0.6 0 0"><joint type="hinge" axis="0 1 0" damping="0.05"/>
    <inertial pos="0.3 0 0" {MASS}/><site name="b" pos="0.6 0 0"/></body></body></worldbody>
    {tendon("a", "b", 'stiffness="60" damping="1.5" springlength="0.9"')}"""
    return Mechanism("braced", bodies, joints, forces=forces), xml


def towed():
    rail = Marker("ground", z=[1, 0, 0]), Marker("cart", z=[1, 0, 0])
    pin = Marker("cart", **TURN), Marker("bar", [-0.3, 0, 0], **TURN)
    bodies = [MechanismBody("cart", BAR), MechanismBody("bar", BAR, [0.3, 0, 0, 0, 0, 0, 1])]
    joints = [mc.translational("rail", *rail), mc.revolute("pin", *pin)]
    forces = [
        mc.spring_damper(
            "f",
            Marker("cart", [0.1, 0, -0.8]),
            Marker("bar", [0.2, 0, 0]),
            length=0.3,
            stiffness=40,
        ),
        mc.joint_friction("drag", *rail, coordinate="z", damping=0.8),
    ]
    xml = f"""<worldbody><body name="cart"><joint type="slide" axis="1 0 0" damping="0.8"/>
    <inertial pos="0 0 0" {MASS}/><site name="a" pos="0.1 0 -0.8"/>
    <body name="bar"><joint type="hinge" axis="0 1 0"/><inertial pos="0.3 0 0" {MASS}/>
    <site name="b" pos="0.5 0 0"/></body></body></worldbody>
    {tendon("a", "b", 'stiffness="40" springlength="0.3"')}"""
    return Mechanism("towed", bodies, joints, forces=forces), xml


CASES = {make.__name__: make for make in (hung, coiled, braced, towed)}
PEER = """
import json, sys
import mujoco
found = {"mujoco": mujoco.__version__}
for name, xml in json.load(sys.stdin).items():
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    for _ in range(10000):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    found[name] = {
        model.body(k).name: data.xipos[k].tolist() for k in range(1, model.nbody)
    }
print(json.dumps(found))
"""


def ends(mechanism, dt=5e-4):
    """Centres of mass at the end."""
    system, x0 = mechanism.system(), mechanism.state()
    run = system.rollout(x0, system.nominal_input, dt, steps=round(END / dt))
    poses = mechanism.poses(run.x[-1][: mechanism.mechanics.configuration.nq])
    return {name: pose[:3] for name, pose in poses.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true")
    given = parser.parse_args()
    made = {name: make() for name, make in CASES.items()}
    files = {name: f"<mujoco>{HEAD}{xml}</mujoco>" for name, (_, xml) in made.items()}
    python = str(environment("mujoco", ("mujoco",)))
    told = subprocess.run(
        [python, "-c", PEER], input=json.dumps(files), check=True, capture_output=True, text=True
    ).stdout
    found = json.loads(told.splitlines()[-1])
    for name, (mechanism, _) in made.items():
        off = max(np.abs(r - found[name][body]).max() for body, r in ends(mechanism).items())
        found[name]["difference_m"] = float(off)
        print(name, found[name])
    if given.store:
        STORE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
