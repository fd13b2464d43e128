"""Multiple shooting in error coordinates: functions of all stages, evaluated at a guess."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..codegen import ModelFunction, prepare
from ..codegen._internal import InPlaceCall
from ._input_limits import ControlBox
from ._problem import OptimalControlProblem
from ._stage_functions import Built, StageFunctions, entries_in, identity_of

# What a build is weighed against: code on disk serves a loop of ten thousand calls, minutes on
# a vehicle or a day of simulations, so that all but the shortest horizons are compiled.
CALLS = 10_000


class Nodes(NamedTuple):
    """A guess: times, states and inputs of the nodes. States need not follow from each other."""

    t: np.ndarray
    x: np.ndarray
    u: np.ndarray


class Setting(NamedTuple):
    """What a solve is given besides the guess: reference, parameters, weights, limits.

    `terminal` (n, n) weighs the error of the last state, `arrival` (n, n) the distance of the first
    state from the given start. That start is x0, where a part of the first state is free.
    """

    x_ref: np.ndarray
    u_ref: np.ndarray
    p: np.ndarray
    terminal: np.ndarray
    arrival: np.ndarray
    box: ControlBox
    x0: np.ndarray | None = None


class Values(NamedTuple):
    """What a guess costs without penalties, and where it violates.

    `gaps` (N, n) are error coordinates from each node to where the step before it ends.
    """

    cost: float
    gaps: np.ndarray
    rows: np.ndarray


class Transcription:
    """Functions of one problem, evaluated for all stages of its horizon at once.

    Around nodes ``x̄_k`` on the group the unknowns are error coordinates ε_k of the system, with
    ``x_k = retract(x̄_k, ε_k)``: tangent vectors where nothing constrains it. With the defect ``c =
    minus(step(x̄_k, ū_k), x̄_{k+1})`` the dynamics are ``ε_{k+1} = E (c + J_r(c)⁻¹ N (A ε_k + B
    δu_k))`` to first order. A and B are the exact derivatives of the step; the cost is the
    Gauss–Newton one.

    Limits of controls are no rows. Values of w, weights of stages, nodes and the end, and dt are
    arguments, so that a problem with other ones has the same code, compiled once.
    """

    def __init__(self, problem: OptimalControlProblem) -> None:
        if not problem.is_plain:
            raise ValueError(
                "inputs that vary in a step or change in blocks: problem.solve(x0, solver=…) plans "
                "them, and MPC; a solver of its own and terminal sets take neither hold nor blocks"
            )
        self.problem = problem
        self.controls = problem.system.input_index("control")
        self._built = Built(problem)
        stated = self._built.stated
        self.rows = stated.meaning
        along = [*stated.path, *stated.costs]
        self.path_weights = entries_in(along)
        self.node_weights = entries_in(along, of_nodes=True)
        self.end_weights = entries_in([*stated.end, *stated.end_costs])
        own = {"p": True, "w": self.path_weights.ndim == 1, "dt": problem.has_equal_steps}
        self.shared = tuple(name for name, is_shared in own.items() if is_shared)
        self._calls: dict[str, InPlaceCall] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without the calls, which are bound to memory."""
        return self.__dict__ | {"_calls": {}}

    @property
    def _functions(self) -> StageFunctions:
        """Built when first asked for; copies share them."""
        return self._built.functions

    @property
    def identity(self) -> str | None:
        """Text that differs for problems with other functions; None where only those tell.

        What they are derived from, and so without deriving anything.
        """
        return identity_of(self.problem, self._built.stated)

    def prepare(self) -> None:
        """Compile the functions, as `set_compile_policy` says; for the start of a loop."""
        stages, once = self.problem.horizon, self._functions
        plus = self.problem.system.state.function("plus")
        prepare(once.stage, once.stage_values, calls=CALLS, items=stages)
        prepare(plus, calls=CALLS, items=stages + 1)
        prepare(once.terminal, once.terminal_values, calls=CALLS * stages)
        self.forget_calls()

    def forget_calls(self) -> None:
        """Make calls anew: those made before functions were compiled go on interpreting."""
        self._calls.clear()

    def values(self, nodes: Nodes, setting: Setting) -> Values:
        """Cost and gaps alone."""
        stage = self._stages("stage_values", nodes, setting)
        last = self._end("terminal_values", nodes, setting)
        rows = np.concatenate([stage.rows, last.rows[None]])
        return Values(float(stage.cost.sum() + last.cost), stage.gap.copy(), rows)

    def move(self, nodes: Nodes, x: np.ndarray, u: np.ndarray, setting: Setting) -> Nodes:
        """Nodes displaced by error coordinates x (N + 1, n) and controls u (N, m)."""
        system = self.problem.system
        inputs = nodes.u.copy()
        moved = inputs[:, self.controls] + u
        inputs[:, self.controls] = np.clip(moved, setting.box.lower, setting.box.upper)
        own = setting.p[: system.n_parameters]
        return Nodes(nodes.t, system.retract(nodes.x, x, own), inputs)

    def call_of(self, function: ModelFunction, *more: str) -> InPlaceCall:
        """A function of all stages, with weights and lengths of steps written.

        Stages share the arguments that they share in all functions, and `more`.
        """
        problem = self.problem
        call = function.in_place(problem.horizon, shared=(*self.shared, *more))
        call.inputs["w"][:] = self.path_weights
        call.inputs["dt"][...] = problem.dt if problem.has_equal_steps else problem.steps
        return call

    def kept_call(self, name: str, functions: Any, *, of_stages: bool = False) -> InPlaceCall:
        """Call of a function of these, by its name, of one point or of all stages; made once."""
        if name not in self._calls:
            function = getattr(functions, name)
            self._calls[name] = self.call_of(function) if of_stages else function.in_place()
        return self._calls[name]

    def _stages(self, name: str, nodes: Nodes, setting: Setting) -> Any:
        """Results of a function for all stages, in memory that the next call overwrites."""
        call = self.kept_call(name, self._functions, of_stages=True)
        fill_stages(call.inputs, nodes, setting)
        return call()

    def _end(self, name: str, nodes: Nodes, setting: Setting) -> Any:
        """The same for the end of the horizon."""
        call = self.kept_call(name, self._functions)
        self.fill_end(call.inputs, nodes, setting)
        return call()

    def fill_end(self, given: dict[str, np.ndarray], nodes: Nodes, setting: Setting) -> None:
        """Write the arguments of the end of the horizon."""
        given["t"][()], given["x"][:], given["u"][:] = nodes.t[-1], nodes.x[-1], setting.u_ref[-1]
        given["x_ref"][:], given["p"][:] = setting.x_ref[-1], setting.p
        given["P"][:], given["w"][:] = setting.terminal, self.end_weights


def fill_stages(given: dict[str, np.ndarray], nodes: Nodes, setting: Setting) -> None:
    """Write the arguments of all stages."""
    given["t"][:], given["x"][:], given["u"][:] = nodes.t[:-1], nodes.x[:-1], nodes.u
    given["x_next"][:], given["p"][:] = nodes.x[1:], setting.p
    given["x_ref"][:], given["u_ref"][:] = setting.x_ref[:-1], setting.u_ref[:-1]
