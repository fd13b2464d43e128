"""Given: reference, parameters and terminal weight of a solve, sampled at its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import check_shape
from ..systems._internal import check_state, on_constraints
from ._bounds import refuse_deviations
from ._problem import OptimalControlProblem
from ._reference import depends_on_time, moves, sample_reference
from ._riccati import regulator_of
from ._statement import arrival_weight
from ._transcription import Setting


class Given:
    """Makes the `Setting` of a solve; what it found stays while the same is asked for."""

    def __init__(self, problem: OptimalControlProblem) -> None:
        self.problem = problem
        if not isinstance(problem.terminal, str):
            self._fixed_terminal = problem.weight("terminal").split()[0]
        self._terminal: tuple[Any, np.ndarray, np.ndarray] | None = None
        self._last: tuple[tuple[Any, bytes, float], Any, Setting] | None = None
        self._needs_time = depends_on_time(problem.system)
        self._nominal = problem.nominal_parameters

    def setting(
        self, times: np.ndarray, reference: Any = None,
        p: Mapping[str, float] | ArrayLike | None = None, arrival: ArrayLike | None = None,
    ) -> Setting:  # fmt: skip
        """Reference, parameters and weights of the ends for the times of the nodes.

        Without a reference, parameters or `arrival`, those of the problem count.
        """
        problem = self.problem
        reference = problem.reference if reference is None else reference
        if reference is None:
            refuse_deviations(problem.system, problem.bounds)
        if arrival is not None:
            weight = arrival_weight(problem.system, arrival, problem.free_start)
            return self.setting(times, reference, p)._replace(arrival=weight)
        last, p = self._last, self._nominal if p is None else p
        is_known = type(p) is np.ndarray and last is not None and p.tobytes() == last[0][1]
        values = np.asarray(p) if is_known else problem.parameter_values(p)
        if isinstance(reference, list):
            reference = check_shape("the reference's state", reference, (None,), batch=True)
        # Only an array of the caller's may have changed since; it is compared by its numbers.
        numbers = reference.tobytes() if type(reference) is np.ndarray else id(reference)
        key = numbers, values.tobytes(), float(times[0]) if self._needs_time else 0.0
        is_still = not moves(reference)
        if is_still and last is not None and last[0] == key:
            return last[2]
        own = values[: problem.system.n_parameters]
        x_ref, u_ref = sample_reference(problem.system, reference, times, own)
        weight = self._terminal_weight(reference, x_ref[-1], u_ref[-1], times[-1], values)
        box = problem.input_limits.at(values)
        found = Setting(x_ref, u_ref, values, weight, problem.arrival, box)
        if is_still:
            self._last = key, reference, found  # an id is that of the reference while this is kept
        return found

    def begun(
        self, x0: ArrayLike, t0: float, reference: Any, p: Any, arrival: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray, Setting]:
        """Start, times of the nodes and setting of a solve."""
        problem, system = self.problem, self.problem.system
        x0 = check_state(system, "x0", x0)
        times = problem.times(float(check_shape("t0", t0, ())))
        setting = self.setting(times, reference, p, arrival)
        x0 = on_constraints(system, "x0", x0, setting.p[: system.n_parameters])
        return x0, times, setting._replace(x0=x0) if len(problem.free_start) else setting

    def _terminal_weight(
        self, reference: Any, x_ref: np.ndarray, u_ref: np.ndarray, t: float, p: np.ndarray
    ) -> np.ndarray:
        """That of the problem; a Riccati solution is kept until there is another reference."""
        problem = self.problem
        if not isinstance(problem.terminal, str):
            return self._fixed_terminal
        varying = [problem.parameter_names.index(name) for name in problem.weights]
        own = np.concatenate([p[: problem.system.n_parameters], p[varying]])
        end = np.concatenate([own, x_ref, u_ref])
        kept = self._terminal
        if kept is not None and kept[0] is reference:  # as it moves on the weight stays
            end = end if not np.array_equal(kept[1][: len(own)], own) else kept[1]
        if kept is None or not np.array_equal(kept[1], end):
            weight = regulator_of(problem, x_ref, u_ref, t, p).P
            self._terminal = kept = (reference, end, weight)
        return kept[2]
