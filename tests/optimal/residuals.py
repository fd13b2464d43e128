"""Conditions of an optimum, judged apart from the solver: IPOPT's program, multipliers by fit."""

from __future__ import annotations

import numpy as np
from scipy.optimize import lsq_linear

from lgcontrol.optimal import NLPSolver, OptimalSolution
from lgcontrol.optimal._given import Given
from lgcontrol.optimal._transcription import Nodes

NEAR = 1e-12  # where a limit is met, whatever the rounding


def kkt_residual(
    plan: OptimalSolution, x0: np.ndarray, complementarity: float, solver: NLPSolver
) -> float:
    """Largest of gaps, violations and the gradient that no multipliers of the right sign balance.

    Derivatives are the exact ones of the program that IPOPT is given, about the plan. Multipliers
    of equalities are free, those of limits at most `complementarity` over the distance from the
    limit; they are what balances the gradient best, not what a solver found.
    """
    program, layout = solver._program()
    problem, transcription = solver.problem, solver.transcription
    setting = Given(problem).setting(plan.t, problem.reference)
    over = transcription.rows.excess(
        transcription.values(Nodes(plan.t, plan.x, plan.u), setting).rows
    )
    z, u = np.zeros(len(layout.lower[0])), plan.u[:, transcription.controls]
    for k, place in enumerate(layout.u):
        z[place] = u[k]
    for k, place in enumerate(layout.e):
        z[place] = over[k, layout.soft_rows[k]]
    given = np.concatenate(
        [
            plan.t, x0, plan.x[1:].ravel(), setting.x_ref.ravel(), setting.u_ref.ravel(),
            setting.p, setting.terminal.ravel(), setting.arrival.ravel(),
        ]
    )  # fmt: skip
    g, jacobian = (np.asarray(value) for value in program["jac_g"](z, given))
    slope = np.asarray(program["grad_f"](z, given)[1]).ravel()
    values, rows = np.concatenate([z, g.ravel()]), np.vstack([np.eye(len(z)), jacobian])
    lower, upper = (np.concatenate(limits) for limits in layout.limits(setting.box))
    off = max((lower - values).max(), (values - upper).max(), 0.0)
    equal = lower == upper
    left, _ = np.linalg.qr(rows[equal].T, mode="complete")
    free = left[:, np.count_nonzero(equal) :]
    sides = [(rows[~equal], (upper - values)[~equal]), (-rows[~equal], (values - lower)[~equal])]
    pulls = np.vstack([pull[np.isfinite(room)] for pull, room in sides]) @ free
    rooms = np.concatenate([room[np.isfinite(room)] for _, room in sides])
    most = complementarity / np.maximum(rooms, NEAR)
    found = lsq_linear(pulls.T, -(slope @ free), (0.0, most), method="bvls", tol=1e-15)
    return float(max(off, np.abs(found.fun).max() / (1.0 + np.abs(slope).max())))
