"""KernelMemory: structs and arrays of one problem that the kernel works on."""

from __future__ import annotations

import ctypes
from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...systems._internal import changes_in_blocks
from .._bounds import ROUNDING
from .._outcome import SolveStatus
from .._plan import HEAD, Plan, PlanLayout
from .._settings import Settings
from .._solutions import plan_layout
from .._stage_model import StageModel
from .._transcription import Setting
from ._library import Stages, load_sweeps, needed_kernel, numbers_of, sizes_of
from ._table import KEPT, LOG, OF_PLANS, Model, Task

STATUS = (SolveStatus.CONVERGED, SolveStatus.ITERATION_LIMIT, SolveStatus.STALLED,
          SolveStatus.FAILED, SolveStatus.INFEASIBLE)  # fmt: skip


def layout_of(model: StageModel, kept: int) -> PlanLayout:
    """Places of the parts of a plan: the iterate, gains, rows, scales, and the memory of steps."""
    problem, sides, n, m = model.problem, model.sides, model.n, model.m
    N, M, na = problem.horizon, problem.horizon + 1, len(sides.row) + len(sides.equal)
    rows = len(model.transcription.rows.names)
    shapes = {
        "x": (M, model.group.nq), "u": (N, problem.system.n_inputs), "s": (M, na), "z": (M, na),
        "e": (M, na), "y": (M, na), "zl": (N, m), "zu": (N, m), "lam": (N, n),
        "nu": (M, len(sides.equal)), "K": (N, m, n), "rows": (M, rows), "scales": (2, rows + n + m),
        "kept": (kept,),
    }  # fmt: skip
    return plan_layout(problem, shapes)


def has_joint(functions: Container[str]) -> bool:
    """Whether one function, `both` or `stage`, has first and second derivatives of stages."""
    is_in_stage = "end_curvature" in functions and "curvature" not in functions
    return "both" in functions or is_in_stage


class KernelMemory:
    """Structs and arrays of one problem for one thread."""

    has_kernel = True

    def __init__(self, model: StageModel, stages: Stages, settings: Settings, most: int) -> None:
        self.stages, self.most, self.own_settings = stages, most, settings
        self.settings = numbers_of(settings)
        self.constants: dict[str, np.ndarray] = {}
        self.model = self._model_of(model)
        problem, N, nr = model.problem, model.problem.horizon, len(model.transcription.rows.names)
        n, m, M = model.n, model.m, model.problem.horizon + 1
        na = len(model.sides.row) + len(model.sides.equal)
        work, plan, memory, kept = self._sizes(model)
        group, nu = model.group, problem.system.n_inputs
        self.task = Task(horizon=N, dt=problem.dt, exact=1, starts=0)
        once = model.transcription
        self.layout = layout_of(model, kept)
        self.column = np.zeros(self.layout.size)
        self.parts = {
            name: self.column[place].reshape(shape)
            for name, (place, shape) in self.layout.places.items()
        }
        own = {name: self.parts[name] for name in ("K", "rows", "scales")}
        first = self.layout.places["x"][0].start
        own["plan"] = self.column[first : first + plan]
        shapes: dict[str, Any] = {
            "t": M, "x_ref": (M, group.nq), "u_ref": (M, nu),
            "p": problem.nominal_parameters.shape, "P": (n, n), "arrival": (n, n),
            "x0": group.nq, "lower": m, "upper": m, "limit": na, "weight": na,
            "log": (most + 1, len(LOG)), "memory": memory, "work": work + 16,
            "w": once.path_weights.shape, "w_end": len(once.end_weights), "steps": N,
            "best": 2 * plan + M * nr + N * m * n + 2 * (nr + n + m) + kept,
        }  # fmt: skip
        self.arrays = own | {name: np.zeros(shape) for name, shape in shapes.items()}
        self.kept = self.arrays["memory"][:kept]
        self._given: tuple[Setting, np.ndarray] | None = None
        self.arrays["w"][:], self.arrays["w_end"][:] = once.path_weights, once.end_weights
        self.arrays["steps"][:] = problem.steps
        sides = model.sides
        self.arrays["limit"][:] = np.r_[sides.limit, sides.target]
        work_memory = self.arrays["work"]
        self.arrays["work"] = work_memory[-work_memory.ctypes.data % 64 // 8 :]
        for name, array in self.arrays.items():
            setattr(self.task, name, array.ctypes.data)
        self._structs = tuple(map(ctypes.addressof, (self.model, self.task, self.settings)))

    def _sizes(self, model: StageModel) -> tuple[int, int, int, int]:
        """Numbers of work memory, of an iterate, of memory, and of what of it steps go on with."""
        self.kernel = needed_kernel()
        sizes = sizes_of(self.kernel.sizes, self.model, model.problem.horizon)
        work, plan, memory, *_, kept = sizes.tolist()
        return work, plan, memory, kept

    def _asked(self, model: StageModel) -> int:
        """How often a start asks the policy in a step."""
        problem, period = model.problem, self.own_settings.policy_period
        if problem.system.is_discrete:
            return 1
        return max(1, int(np.ceil(problem.dt / period - ROUNDING)))

    def _model_of(self, model: StageModel) -> Any:
        once, sides, stages = model.transcription, model.sides, self.stages
        known = stages.places
        made = Model(
            nx=model.n, nq=model.group.nq, nu=model.problem.system.n_inputs, nv=model.m,
            nr=len(once.rows.names), ns=len(sides.row), ne=len(sides.equal), nf=len(model.free),
            asked=self._asked(model), discrete=model.problem.system.is_discrete,
            blocks=changes_in_blocks(model.problem.system),
            weights=0 if "w" in once.shared else once.path_weights.shape[1],
            bend=len(known["bend_rows"]), curved="end_curvature" in stages.functions,
            squares=not model.problem.costs,
            joint=has_joint(stages.functions),
            scratch=stages.scratch,
        )  # fmt: skip
        made.sparse, made.first, made.dense = known["counts"]
        places: dict[str, Any] = {
            name: value for name, value in known.items() if not name.endswith("counts")
        } | {
            "controls": model.controls, "free": model.free, "alike": model.alike,
            "row": np.r_[sides.row, sides.equal],
            "start": np.r_[model.of_start, np.zeros(len(sides.equal))],
        }  # fmt: skip
        numbers = {
            "sign": np.r_[sides.sign, np.ones(len(sides.equal))],
            "active": np.hstack([sides.active * sides.counts, sides.equal_active]),
        }
        if "sub_counts" in known:
            made.sub_sparse, made.sub_first, made.sub_dense = known["sub_counts"]
            made.substeps, made.turn = model.problem.substeps, len(known["turn_rows"])
        for kind, values in ((np.int64, places), (np.float64, numbers)):
            for name, value in values.items():
                self.constants[name] = np.array(value, dtype=kind, order="C")
                setattr(made, name, self.constants[name].ctypes.data)
        for name, function in stages.functions.items():
            setattr(made, name, function)
        sweeps = load_sweeps(model.n, model.m)
        if sweeps is not None:
            made.factor, made.back = (
                ctypes.cast(function, ctypes.c_void_p).value for function in sweeps
            )
        return made

    def exchange(self, stages: Stages) -> bool:
        """Take other code of the same functions, also within a solve; False if it needs more."""
        if stages.scratch > self.model.scratch:
            return False
        for name, function in stages.functions.items():
            setattr(self.model, name, function)
        self.model.joint = has_joint(stages.functions)
        self.stages = stages
        return True

    def plan(self, t: float, cost: float, content: float) -> Plan:
        """What the arrays hold, as a plan from a time on."""
        task = self.task
        self.parts["kept"][:] = self.kept
        alpha = float(self.kept[KEPT["alpha"]])
        numbers = t, task.mu, alpha, cost, float(task.elastic), float(content)
        self.column[HEAD : HEAD + len(numbers)] = numbers
        return Plan._taking(self.layout, self.column.copy(), _head=numbers)

    def take(self, plan: Plan) -> None:
        """Write a plan."""
        self.column[HEAD:] = plan.numbers[HEAD:]
        self.kept[:] = self.parts["kept"]

    def give(self, setting: Setting, t: np.ndarray, x0: np.ndarray, weight: np.ndarray) -> None:
        """Write what a solve is given; a setting that is there already stays."""
        arrays, box, last = self.arrays, setting.box, self._given
        arrays["t"][:], arrays["x0"][:] = t, x0
        if last is not None and last[0] is setting and last[1] is weight:
            return
        self._given = setting, weight
        for name, value in (
            ("x_ref", setting.x_ref), ("u_ref", setting.u_ref), ("p", setting.p),
            ("P", setting.terminal), ("arrival", setting.arrival), ("lower", box.lower),
            ("upper", box.upper),
        ):  # fmt: skip
            arrays[name][:] = value
        arrays["weight"][:] = np.inf
        arrays["weight"][: len(weight)] = weight

    def reserve(self, most: int) -> None:
        """Make the log hold so many iterations."""
        if most > self.most:
            self.most, self.arrays["log"] = most, np.zeros((most + 1, len(LOG)))
            self.task.log = self.arrays["log"].ctypes.data

    @contextmanager
    def beginning_at(self, mu: float) -> Iterator[None]:
        """Solves begin at a barrier parameter that is not larger than this."""
        before = self.settings.mu_first
        self.settings.mu_first = min(mu, before)
        try:
            yield
        finally:
            self.settings.mu_first = before

    def run(self, entry: str, **options: Any) -> Any:
        """An entry point of the kernel with options of the task; returns the status."""
        self.task.of = OF_PLANS
        for name, value in options.items():
            setattr(self.task, name, value)
        return self._enter(entry)

    def _enter(self, entry: str) -> Any:
        return getattr(self.kernel, entry)(*self._structs)
