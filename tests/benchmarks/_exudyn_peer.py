"""Bodies and joints of a file in Exudyn's generalized-α, in a process and environment of its own.

    python _exudyn_peer.py FILE STEP STEPS RADIUS

`mechanisms.py` starts it; the answer is a line of JSON: time of a step in s, position and velocity
of every body at the end.
"""

import json
import sys
import time
from pathlib import Path

import exudyn as exu
import numpy as np
from exudyn.utilities import RigidBodyInertia

stated = json.loads(Path(sys.argv[1]).read_text())
h, steps, radius = float(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])


def built():
    mbs = exu.SystemContainer().AddSystem()
    bodies = {"ground": mbs.CreateGround()}
    for name, body in stated["bodies"].items():
        A = np.array(body["rotation"])
        bodies[name] = mbs.CreateRigidBody(
            inertia=RigidBodyInertia(body["mass"], np.array(body["inertia"])),
            referencePosition=body["position"],
            referenceRotationMatrix=A,
            initialVelocity=body["velocity"],
            initialAngularVelocity=list(A @ body["angular_velocity"]),
            gravity=stated["gravity"],
            create2D=False,
        )
    for joint in stated["joints"]:
        mbs.CreateGenericJoint(
            itemNumbers=[bodies[name] for name in joint["bodies"]],
            position=joint["point"],
            rotationMatrixAxes=np.array(joint["axes"]),
            constrainedAxes=joint["held"],
        )
    mbs.Assemble()
    return mbs, bodies


def run(count):
    mbs, bodies = built()
    settings = exu.SimulationSettings()
    settings.timeIntegration.numberOfSteps = count
    settings.timeIntegration.endTime = count * h
    settings.timeIntegration.generalizedAlpha.spectralRadius = radius
    settings.timeIntegration.verboseMode = 0
    settings.solutionSettings.writeSolutionToFile = False
    settings.linearSolver.solverType = exu.LinearSolverType.EXUdense
    begin = time.process_time()
    mbs.SolveDynamic(settings)
    spent = time.process_time() - begin
    kinds = exu.OutputVariableType.Position, exu.OutputVariableType.Velocity
    end = {
        name: [np.array(mbs.GetObjectOutputBody(number, kind)).tolist() for kind in kinds]
        for name, number in bodies.items()
        if name != "ground"
    }
    return spent, end


run(10)
short = min(run(steps // 10)[0] for _ in range(10))
whole, end = min((run(steps) for _ in range(10)), key=lambda found: found[0])
print(
    json.dumps(
        {"seconds": (whole - short) / (steps - steps // 10), "end": end, "version": exu.__version__}
    )
)
