"""Designs of the quadrotor and the Panda with MuJoCo as their plant, judged by the same criteria.

    python -m tests.benchmarks.independent_plants [NAME ...]

The controllers are those of the designs; MuJoCo (bench extra) gets masses, inertias, geometry and
motors as numbers, and makes its own equations of them. A run with our plant goes first: its noise
and its kicks are repeated. Told and stored: every criterion on both plants, and by how much
MuJoCo's accelerations differ from ours at random states.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import replace
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from lgcontrol.groups import SO3
from lgcontrol.models import quadrotor
from lgcontrol.models.data import robot_file
from lgcontrol.simulation import CallStatus, Kick, Task

from ._speed_peers import find, mujoco_quadrotor

RESULTS = Path(__file__).parent / "results" / "independent_plants.json"
STEP = 0.001  # s, of MuJoCo's Runge–Kutta method


class Quadrotor:
    """A free body with four rotors, of the numbers that the model has by default."""

    def __init__(self, mujoco: Any) -> None:
        own = {k: v.default for k, v in signature(quadrotor).parameters.items()}
        self.mujoco = mujoco
        self.model = mujoco_quadrotor(mujoco, own["mass"], np.array(own["inertia"]), STEP)
        self.data = mujoco.MjData(self.model)

    @property
    def x(self) -> np.ndarray:
        """Position, quaternion x first, velocities in body axes."""
        q, v = self.data.qpos, self.data.qvel
        turned = np.r_[q[4:7], q[3]]
        return np.r_[q[:3], turned, SO3.matrix(turned).T @ v[:3], v[3:]]

    @x.setter
    def x(self, x: np.ndarray) -> None:
        self.data.qpos[:] = np.r_[x[:3], x[6], x[3:6]]
        self.data.qvel[:] = np.r_[SO3.matrix(x[3:7]) @ x[7:10], x[10:]]

    def push(self, u: np.ndarray) -> None:
        """Thrusts, a force in world axes, a torque in body axes (MuJoCo's are the world's)."""
        self.data.ctrl[:] = u[:4]
        self.data.xfrc_applied[1] = np.r_[u[4:7], SO3.matrix(self.x[3:7]) @ u[7:10]]

    def rate(self) -> np.ndarray:
        """Rate of the velocities in body axes."""
        self.mujoco.mj_forward(self.model, self.data)
        a, x = self.data.qacc, self.x
        return np.r_[SO3.matrix(x[3:7]).T @ a[:3] - np.cross(x[10:], x[7:10]), a[3:]]


class Panda:
    """The robot file, its fingers held as the design's are."""

    def __init__(self, mujoco: Any) -> None:
        text = Path(robot_file("panda")).read_text()
        text = re.sub(r'type="prismatic"', 'type="fixed"', text)
        text = re.sub(r"<mimic[^>]*/>|<dynamics[^>]*/>", "", text)
        text = re.sub(r"<(visual|collision)>.*?</\1>", "", text, flags=re.DOTALL)
        compiler = '<mujoco><compiler fusestatic="true" balanceinertia="false"/></mujoco>'
        text = text.replace("</robot>", f"{compiler}</robot>")
        self.mujoco, self.model = mujoco, mujoco.MjModel.from_xml_string(text)
        self.model.opt.timestep, self.model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
        for kind in (mujoco.mjtDisableBit.mjDSBL_CONTACT, mujoco.mjtDisableBit.mjDSBL_CONSTRAINT):
            self.model.opt.disableflags |= int(kind)
        self.data = mujoco.MjData(self.model)

    @property
    def x(self) -> np.ndarray:
        """Angles and rates."""
        return np.r_[self.data.qpos, self.data.qvel]

    @x.setter
    def x(self, x: np.ndarray) -> None:
        self.data.qpos[:], self.data.qvel[:] = x[:7], x[7:]

    def push(self, u: np.ndarray) -> None:
        """Torques and their noise."""
        self.data.qfrc_applied[:] = u[:7] + u[7:]

    def rate(self) -> np.ndarray:
        """Accelerations of the joints."""
        self.mujoco.mj_forward(self.model, self.data)
        return self.data.qacc.copy()


PLANTS = {
    "quadrotor-recovery": Quadrotor, "quadrotor-field": Quadrotor, "quadrotor-flip": Quadrotor,
    "panda-mpc": Panda, "panda-reach": Panda,
}  # fmt: skip


def accelerations(task: Task, plant: Any, count: int = 20) -> float:
    """Largest difference of MuJoCo's accelerations from ours, relative to the largest of ours."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(count):
        x = task.plant.state.random(rng)
        u = rng.normal(size=task.plant.n_inputs)
        plant.x = x
        plant.push(u)
        ours = task.plant.f(0.0, x, u)[-len(plant.rate()) :]
        worst = max(worst, float(np.abs(plant.rate() - ours).max() / np.abs(ours).max()))
    return worst


def closed_loop(task: Task, plant: Any, ours: Any) -> tuple[Any, int]:
    """The run with the other plant, and how many calls gave no answer."""
    control = task.controller
    kicks = [one for one in task.options.get("disturbances", ()) if isinstance(one, Kick)]
    control.reset()
    control.prepare(0.0, task.x0, task.reference)
    own = task.plant.input_index("control")
    plant.x = np.asarray(task.x0, dtype=float)
    states, inputs, unanswered, u, calls = [], [], 0, None, 0
    for k, t in enumerate(ours.t):
        for kick in kicks:
            if abs(kick.time - t) < 1e-9:
                change = task.plant.state.join_tangent(**kick.change)
                plant.x = task.plant.state.plus(plant.x, change)
        states.append(plant.x)
        if k == len(ours.t) - 1:
            break
        if t > calls * control.dt - 1e-9:
            u = control(t, plant.x, task.reference)
            unanswered += control.info.status in (CallStatus.UNSOLVED, CallStatus.HELD)
            calls += 1
        whole = ours.u[k].copy()  # with its noise
        whole[own] = np.clip(u, task.plant.input_bounds[0][own], task.plant.input_bounds[1][own])
        inputs.append(whole)
        steps = max(1, round((ours.t[k + 1] - t) / STEP))
        plant.model.opt.timestep = (ours.t[k + 1] - t) / steps
        for _ in range(steps):
            plant.push(whole)
            plant.mujoco.mj_step(plant.model, plant.data)
    return replace(ours, x=np.array(states), u=np.array(inputs)), unanswered


def compare(name: str, mujoco: Any) -> dict[str, Any]:
    """Criteria on both plants."""
    found = {entry.name: entry for entry in entry_points(group="lgcontrol.designs")}
    task, plant = found[name].load()(seed=0), PLANTS[name](mujoco)
    apart = accelerations(task, plant)
    ours = task.run(seed=0)
    theirs, unanswered = closed_loop(task, plant, ours)
    rows = {}
    for mine, other in zip(task.judge(ours), task.judge(theirs), strict=True):
        counted = "calls" in mine.criterion.name  # the record of calls is that of our run
        value = float(unanswered) if counted else other.value
        rows[mine.criterion.name] = {
            "limit": mine.criterion.range, "ours": mine.value, "mujoco": value,
            "passed": replace(other, value=value).passed,
        }  # fmt: skip
    return {
        "accelerations differ by": apart,
        "passed": all(row["passed"] for row in rows.values()),
        "criteria": rows,
    }


def main() -> None:
    """Run all, keep what was found of each at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PLANTS)}; all if left out")
    options = parser.parse_args()
    mujoco = find("mujoco")
    if mujoco is None:
        return
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    stored["mujoco"] = mujoco.__version__
    for name in options.names or PLANTS:
        stored[name] = compare(name, mujoco)
        print(f"{name}: {'passed' if stored[name]['passed'] else 'FAILED'}, accelerations differ "
              f"by {stored[name]['accelerations differ by']:.1e}")  # fmt: skip
        for criterion, row in stored[name]["criteria"].items():
            print(f"  {criterion}: {row['ours']:.4g} ours, {row['mujoco']:.4g} MuJoCo's "
                  f"({row['limit']})", flush=True)  # fmt: skip
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
