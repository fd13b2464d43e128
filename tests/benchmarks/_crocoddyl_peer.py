"""Problems A and B in Crocoddyl, in a process and an environment of its own.

`solver.py` starts it, and asks for one solve or one call at a time on its standard input; each
answer is a line of JSON. Started with the folder of the reference data.
"""

import json
import sys
import time
from pathlib import Path

import crocoddyl
import numpy as np
import pinocchio as pin

SHARED = Path(sys.argv[1])
STATED = json.loads((SHARED / "specs" / "problems.json").read_text())


def panda() -> tuple:
    """Problem B: semi-implicit Euler, torques in their box, limits of angles at a price."""
    B = STATED["B_panda_reach"]
    whole = pin.buildModelFromUrdf(str(SHARED / "robots" / "panda.urdf"))
    fingers = [i for i, name in enumerate(whole.names) if "finger" in name]
    model = pin.buildReducedModel(whole, fingers, pin.neutral(whole))
    data = model.createData()
    assert abs(model.gravity.linear[2] + 9.81) < 1e-9
    q0 = np.array(B["q0"])
    hand = model.getFrameId(B["ee_frame"])
    pin.framesForwardKinematics(model, data, q0 + [0.5, 0.4, -0.4, 0.5, 0.3, 0.4, -0.6])
    target = data.oMf[hand].copy()
    hold = pin.computeGeneralizedGravity(model, data, q0)
    assert np.abs(hold).max() > 1  # Crocoddyl drops gravity with pin 4.1
    x0 = np.concatenate([q0, np.zeros(7)])
    state = crocoddyl.StateMultibody(model)
    actuation = crocoddyl.ActuationModelFull(state)

    def costs(pose: float, angle: float, rate: float, effort: float):
        total = crocoddyl.CostModelSum(state)
        weights = crocoddyl.ActivationModelWeightedQuad(np.repeat([angle, rate], 7))
        total.addCost(
            "pose",
            crocoddyl.CostModelResidual(
                state, crocoddyl.ResidualModelFramePlacement(state, hand, target)
            ),
            pose,
        )
        total.addCost(
            "state",
            crocoddyl.CostModelResidual(state, weights, crocoddyl.ResidualModelState(state, x0)),
            1.0,
        )
        limits = crocoddyl.ActivationBounds(
            np.r_[model.lowerPositionLimit - q0, -np.full(7, 1e3)],
            np.r_[model.upperPositionLimit - q0, np.full(7, 1e3)],
        )
        total.addCost(
            "limits",
            crocoddyl.CostModelResidual(
                state,
                crocoddyl.ActivationModelQuadraticBarrier(limits),
                crocoddyl.ResidualModelState(state, x0),
            ),
            1e3,
        )
        if effort:
            total.addCost(
                "effort",
                crocoddyl.CostModelResidual(state, crocoddyl.ResidualModelControl(state, hold)),
                effort,
            )
        return total

    def action(cost, dt: float):
        free = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, cost)
        made = crocoddyl.IntegratedActionModelEuler(free, dt)
        made.u_lb, made.u_ub = -np.array(B["tau_max"], float), np.array(B["tau_max"], float)
        return made

    running = action(costs(10.0, 0.1, 0.1, 1e-3), B["dt"])
    last = action(costs(1000.0, 0.1, 10.0, 0.0), 0.0)
    problem = crocoddyl.ShootingProblem(x0, [running] * B["N"], last)

    def error(x) -> list[float]:
        pin.framesForwardKinematics(model, data, x[:7])
        away = pin.log6(target.actInv(data.oMf[hand])).vector
        return [float(np.linalg.norm(away[:3])), float(np.linalg.norm(away[3:]))]

    return problem, x0, hold, error


def quadrotor() -> tuple:
    """Problem A with the weights in the coordinates of the state, Runge-Kutta steps."""
    A = STATED["A_quadrotor_flip"]
    model = pin.Model()
    joint = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    body = pin.Inertia(A["mass"], np.zeros(3), np.diag(A["J"]))
    model.appendBodyToJoint(joint, body, pin.SE3.Identity())
    state = crocoddyl.StateMultibody(model)
    arm = A["arm"] / np.sqrt(2)
    thrusters = [
        crocoddyl.Thruster(
            pin.SE3(np.eye(3), np.array([arm * x, arm * y, 0.0])),
            A["c_tau"],
            crocoddyl.ThrusterType.CCW if spin > 0 else crocoddyl.ThrusterType.CW,
            A["u_min"],
            A["u_max"],
        )
        for (x, y), spin in zip(A["rotor_xy_in_units_of_arm_over_sqrt2"], A["spin"], strict=True)
    ]
    actuation = crocoddyl.ActuationModelFloatingBaseThrusters(state, thrusters)
    goal = np.concatenate([A["ref"]["p"], [0, 0, 0, 1], np.zeros(6)])
    x0 = np.concatenate([[0, 0, 0], [1, 0, 0, 0], np.zeros(6)])
    hover = np.full(4, A["mass"] * A["g"] / 4)

    def action(weights, effort: float, dt: float):
        total = crocoddyl.CostModelSum(state, 4)
        total.addCost(
            "state",
            crocoddyl.CostModelResidual(
                state,
                crocoddyl.ActivationModelWeightedQuad(np.repeat(weights, 3)),
                crocoddyl.ResidualModelState(state, goal, 4),
            ),
            1.0,
        )
        if effort:
            residual = crocoddyl.ResidualModelControl(state, hover)
            total.addCost("effort", crocoddyl.CostModelResidual(state, residual), effort)
        free = crocoddyl.DifferentialActionModelFreeFwdDynamics(state, actuation, total)
        if dt:
            made = crocoddyl.IntegratedActionModelRK(free, crocoddyl.RKType.four, dt)
        else:
            made = crocoddyl.IntegratedActionModelEuler(free, dt)
        made.u_lb, made.u_ub = np.full(4, A["u_min"]), np.full(4, A["u_max"])
        return made

    running = action([10.0, 5.0, 1.0, 0.2], A["W"]["u"], A["dt"])
    last = action([200.0, 100.0, 50.0, 10.0], 0.0, 0.0)
    problem = crocoddyl.ShootingProblem(x0, [running] * A["N"], last)
    return problem, x0, hover, lambda x: float(np.linalg.norm(state.diff(goal, x)))


MADE = {"A": quadrotor, "B": panda}


class Peer:
    """A solver of one problem, solved anew or once more from where it was."""

    def __init__(self, name: str) -> None:
        self.problem, self.x0, self.hold, self.error = MADE[name]()
        if self.problem.nthreads > 1:  # they wait for each other where others are at work
            self.problem.nthreads = 1
        self.solver = crocoddyl.SolverBoxFDDP(self.problem)
        self.solver.th_stop = 1e-4**2  # on the square of the gradient

    def solve(self, x0: list[float] | None) -> dict:
        """To convergence from a state that stays, with the inputs that hold it."""
        start = self.x0 if x0 is None else np.array(x0)
        N = self.problem.T
        self.problem.x0 = start
        xs, us = [start] * (N + 1), [self.hold] * N
        wall, cpu = time.perf_counter(), time.process_time()
        done = self.solver.solve(xs, us, 300, False)
        return self.answer(bool(done), wall, cpu)

    def call(self, x0: list[float] | None) -> dict:
        """One iteration from the last plan, moved on by a step."""
        xs, us = list(self.solver.xs), list(self.solver.us)
        start = xs[1] if x0 is None else np.array(x0)
        self.problem.x0 = start
        wall, cpu = time.perf_counter(), time.process_time()
        done = self.solver.solve([start, *xs[2:], xs[-1]], [*us[1:], us[-1]], 1, False)
        return self.answer(bool(done), wall, cpu)

    def answer(self, done: bool, wall: float, cpu: float) -> dict:
        """Times and what was found."""
        return {
            "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu,
            "converged": done, "iterations": int(self.solver.iter),
            "cost": float(self.solver.cost), "u": list(map(float, self.solver.us[0])),
            "error": self.error(np.array(self.solver.xs[-1])),
            "versions": f"crocoddyl {crocoddyl.__version__}, pin {pin.__version__}",
        }  # fmt: skip


def main() -> None:
    """Answer until there is nothing more to ask."""
    peers: dict[str, Peer] = {}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        name = asked["problem"]
        if name not in peers:
            peers[name] = Peer(name)
        do = peers[name].solve if asked["do"] == "solve" else peers[name].call
        print(json.dumps(do(asked.get("x0"))), flush=True)


if __name__ == "__main__":
    main()
