"""The kernel as it is, without starts and second attempts of the solver: what tests compare."""

import time
from typing import NamedTuple

import numpy as np

from lgcontrol.optimal import Settings, SolveStatus
from lgcontrol.optimal._stage_model import StageModel
from lgcontrol.optimal._transcription import Nodes, Setting
from lgcontrol.optimal.kernel._library import interpreted_stages, load_stages
from lgcontrol.optimal.kernel._memory import STATUS, KernelMemory


class PlanReport(NamedTuple):
    """How a solve went: a row of `LOG` for each iterate, nodes, feedback and rows of its plan."""

    status: SolveStatus
    iterations: int
    log: np.ndarray
    x: np.ndarray
    u: np.ndarray
    K: np.ndarray
    rows: np.ndarray
    mu: float
    seconds: float
    evaluations: int
    factorizations: int

    @property
    def cost(self) -> float:
        """Cost of the last iterate without penalties."""
        return float(self.log[-1, 0])

    @property
    def kkt(self) -> float:
        """Largest residual of the last iterate."""
        return float(self.log[-1, 1:4].max())


class NewtonKKTSolver:
    """Solves an `OptimalControlProblem` by IPOPT's algorithm on Riccati sweeps.

    Its log holds `most` iterations. With `interprets`, functions are interpreted even where there
    is a compiler. Without a kernel it raises NotImplementedError: `NewtonKKT` solves.
    """

    def __init__(
        self,
        model: StageModel,
        settings: Settings | None = None,
        *,
        most: int = 1000,
        interprets: bool = False,
    ) -> None:
        self.model, self.settings = model, settings or Settings()
        stages = None if interprets else load_stages(model)
        if stages is None:
            stages = interpreted_stages(model)
        self.memory = KernelMemory(model, stages, self.settings, most)

    def solve(
        self,
        nodes: Nodes,
        setting: Setting,
        x0: np.ndarray,
        *,
        tolerance: float = 1e-6,
        max_iterations: int = 500,
    ) -> PlanReport:
        """Iterate from nodes to convergence.

        If the solve ends stalled or infeasible, the elastic problem is solved from the same nodes
        first. A problem is infeasible if both ways end at a stationary point of the violation.
        """
        return self._solve(nodes, setting, x0, None, tolerance, max_iterations)

    def _solve(
        self,
        nodes: Nodes,
        setting: Setting,
        x0: np.ndarray,
        resume: int | None,
        tolerance: float,
        most: int,
    ) -> PlanReport:
        memory, started = self.memory, time.perf_counter()
        memory.give(setting, nodes.t, x0, self.model.sides.weight)
        memory.parts["x"][:], memory.parts["u"][:] = nodes.x, nodes.u
        memory.parts["x"][0] = self.model.first_state(x0, nodes.x[0], setting.p)
        most = min(most, memory.most)
        options = {"tolerance": tolerance, "max_iterations": most}
        options["more"] = min(most, memory.most - most)
        if resume is None:
            status = memory.run("plan", **options)
        else:
            status = memory.run("solve", resume=resume, **options)
        return self._report(status, time.perf_counter() - started)

    def step(
        self, t: np.ndarray, setting: Setting, x0: np.ndarray, *, shift: int = 1, steps: int = 1
    ) -> PlanReport:
        """Real-time steps from the last plan, moved on by some stages."""
        memory, started = self.memory, time.perf_counter()
        memory.give(setting, t, x0, self.model.sides.weight)
        status = memory.run(
            "step", start=t[0] - shift * self.model.problem.dt, max_iterations=steps,
            more=memory.most,
        )  # fmt: skip
        return self._report(status, time.perf_counter() - started, is_step=True)

    def _report(self, status: int, seconds: float, *, is_step: bool = False) -> PlanReport:
        memory, task = self.memory, self.memory.task
        return PlanReport(
            STATUS[status],
            task.iterations,
            memory.arrays["log"][: 1 if is_step else task.iterations + 1].copy(),
            memory.parts["x"].copy(),
            memory.parts["u"].copy(),
            memory.arrays["K"].copy(),
            memory.arrays["rows"].copy(),
            task.mu,
            seconds,
            task.evaluations,
            task.factorizations,
        )
