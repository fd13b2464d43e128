"""What a newcomer waits for: large trees, a torque loop at 1 kHz, the first call of an arm's MPC.

Run with ``python -m tests.benchmarks.newcomer``. ``before_s`` is quoted from the report that asked
for this, not measured here: wall times, that of the torque loop on a loaded machine, and the
lower one of the first call. Times of the processor are kept as well as of the wall: others may be
at work; for the first call they include the compiler's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from lgcontrol.controllers import OperationalSpace
from lgcontrol.groups import SE3
from lgcontrol.io import parse_urdf
from lgcontrol.mechanics import Multibody
from lgcontrol.models import panda_tree
from lgcontrol.simulation import simulate

RESULTS = Path(__file__).parent / "results" / "newcomer.json"
BEFORE = {
    "3200 fixed": 32.0, "800 revolute": 6.1, "OperationalSpace 1 kHz, 4 s": 22.0,
    "first call of panda-mpc": 48.0, "another goal": 48.0,
}  # fmt: skip
MOST = {"3200 fixed": 6.0, "800 revolute": 2.0, "OperationalSpace 1 kHz, 4 s": 8.0}
# In a process of its own, with nothing cached: making, preparing and calling; then other goals.
FIRST_CALL = """
import warnings
from time import perf_counter
began = perf_counter()
import numpy as np
from lgcontrol.controllers import MPC
from lgcontrol.controllers.designs import panda_mpc
from lgcontrol.groups import SE3
from lgcontrol.models import panda, panda_tree
from lgcontrol.optimal import Residual

task = panda_mpc.design()
task.controller.prepare(0.0, task.x0, task.reference)
task.controller(0.0, task.x0, task.reference)
design = perf_counter() - began

warnings.simplefilter("ignore")  # of limits that the plan leaves out
tree = panda_tree(losses=False)
place = tree.placement(panda_mpc.HAND)
names = [f"goal.{name}" for name in SE3.coordinate_names]
began = perf_counter()
arm = panda(losses=False)
mpc = MPC(
    arm, panda_mpc.HORIZON, panda_mpc.DT, Q={"configuration": 0.1, "velocity": 0.1}, R=1e-3,
    reference=task.x0, parameters=names,
    residuals=[Residual(lambda t, x, u, p: SE3.minus(place(x[:7]), p), 300.0, 100.0)],
)
goals = [place(panda_mpc.READY + np.array(offset)) for offset in panda_mpc.POSES]
mpc.parameters = dict(zip(names, goals[0]))
mpc.prepare(0.0, task.x0)
mpc(0.0, task.x0)
first = perf_counter() - began
began = perf_counter()
mpc(panda_mpc.DT, task.x0, p=dict(zip(names, goals[1])))
print(design, first, perf_counter() - began)
"""


def chain(count: int, kind: str) -> str:
    """Text of a robot of links in a row."""
    link = (
        '<link name="l{0}"><inertial><mass value="1"/>'
        '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )
    joint = (
        '<joint name="j{0}" type="{1}"><parent link="l{2}"/><child link="l{0}"/>'
        '<origin xyz="0.1 0 0"/><axis xyz="0 0 1"/><limit effort="1" velocity="1" lower="-1" '
        'upper="1"/></joint>'
    )
    parts = [link.format(k) for k in range(count + 1)]
    parts += [joint.format(k, kind, k - 1) for k in range(1, count + 1)]
    return f'<robot name="chain">{"".join(parts)}</robot>'


def build(count: int, kind: str) -> None:
    """Read a text and make a tree of it."""
    Multibody.from_urdf(parse_urdf(chain(count, kind)))


def torque_loop() -> None:
    """A hand that follows a circle for 4 s, at 1 kHz."""
    tree = panda_tree()
    q = np.array([0, -0.4, 0, -2, 0, 1.8, 0.7])
    frame = "panda_hand"
    start = tree.placement(frame)(q)

    def circle(t: float) -> np.ndarray:
        way = [0.05 * np.sin(t), 0, 0.05 * (1 - np.cos(t)), 0, 0, 0]
        return SE3.compose(start, SE3.exp(way))

    law = OperationalSpace(tree, frame, dt=0.001)
    run = simulate(tree.system(), law, x0=[*q, *np.zeros(7)], reference=circle, seconds=4)
    assert run.is_success


def first_calls() -> dict[str, dict[str, float]]:
    """Wall times in s of the first calls of an arm's MPC; nothing is cached."""
    with tempfile.TemporaryDirectory() as folder:
        began = os.times()
        done = subprocess.run(
            [sys.executable, "-c", FIRST_CALL],
            env=os.environ | {"LGCONTROL_CACHE": folder},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        spent = os.times()
    design, goal, other = (round(float(word), 3) for word in done.stdout.split()[-3:])
    cpu = sum(spent[2:4]) - sum(began[2:4])
    rows = {
        "first call of panda-mpc": {
            "wall_s": design,
            "before_s": BEFORE["first call of panda-mpc"],
        },
        "first call, goal a parameter": {"wall_s": goal, "cpu_s_of_both": round(cpu, 1)},
        "another goal": {"wall_s": other, "before_s": BEFORE["another goal"]},
    }
    for name, row in rows.items():
        print(f"{name:30}", row, flush=True)
    return rows


def timed(name: str, call, *arguments) -> dict[str, float]:
    """Wall and processor time of the better of two calls, in s."""
    found = []
    for _ in range(2):
        wall, cpu = perf_counter(), process_time()
        call(*arguments)
        found.append((perf_counter() - wall, process_time() - cpu))
    wall, cpu = min(found)
    row = {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2)}
    if name in MOST:
        row |= {"before_s": BEFORE[name], "at_most_s": MOST[name]}
    print(f"{name:30}", row, flush=True)
    return row


def main() -> None:
    """Measure, print, keep."""
    rows: dict[str, object] = {"load_at_start": round(os.getloadavg()[0], 1)}
    sizes = {"fixed": (800, 1600, 3200), "revolute": (200, 400, 800)}
    for kind, counts in sizes.items():
        for count in counts:
            rows[f"{count} {kind}"] = timed(f"{count} {kind}", build, count, kind)
        cpu = [rows[f"{count} {kind}"]["cpu_s"] for count in counts]  # type: ignore[index]
        slope = np.polyfit(np.log(counts), np.log(np.maximum(cpu, 0.01)), 1)[0]
        rows[f"exponent, {kind}"] = round(float(slope), 2)
        print(f"exponent, {kind}: {slope:.2f}")
    name = "OperationalSpace 1 kHz, 4 s"
    rows[name] = timed(name, torque_loop)
    rows |= first_calls()
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
