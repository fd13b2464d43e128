"""Method and substeps of the steps of a plan: as fine as the fastest modes of its system need."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from ..codegen._internal import MOST_SUBSTEPS as MOST_WRITTEN
from ..codegen._internal import check_count, level_outside
from ..integrators import Method, get_method
from ..systems import System, choose_method, stable_substeps
from ._reference import sample_reference
from ._statement import AT_POINTS

# Share by which the steps of a plan may miss what a mode does in dt.
MODE_ACCURACY = 0.1
# Substeps are written out one after the other: with more, a model of its own is due.
MOST_SUBSTEPS = 20


class StepRule(NamedTuple):
    """What steps of a length need at some states, the longest one in s."""

    system: System
    longest: float

    def method(self, x: Any, u: Any, t: Any = 0.0, p: Any = None) -> str:
        """Method for steps that begin at some states."""
        return choose_method(self.system, self.longest, x, u, p=p, t=t)

    def needed(self, method: str | Method, x: Any, u: Any, t: Any = 0.0, p: Any = None) -> int:
        """Substeps for steps that begin at some states."""
        return stable_substeps(
            self.system, x, u, self.longest, method, accuracy=MODE_ACCURACY, p=p, t=t
        )

    def fault(self, method: str | Method, needed: int) -> str:
        """That more substeps are needed than there are, in a sentence."""
        return (
            f"{self.system.name}: the fastest modes need {needed} substeps of "
            f"{get_method(method).name} in dt = {self.longest:g} s, else plans are far from "
            "what the system does"
        )

    def chosen(
        self, method: str | Method, substeps: int | None, hold: str, typical: tuple[Any, ...]
    ) -> tuple[str | Method, int]:
        """Method and substeps: those that are given, else what is needed at typical states."""
        if method == "auto" and hold == AT_POINTS:
            method, substeps = "radau_iia5", 1
        if method == "auto":
            method = self.method(*typical)
        if substeps is not None:
            substeps = check_count("substeps", substeps, most=MOST_WRITTEN, remedy="shorten dt")
        needed = self.needed(method, *typical)
        if substeps is not None:
            if needed > substeps:
                fault = self.fault(method, needed)
                if hold == AT_POINTS:  # whose steps have no substeps
                    fault += f": take steps of {self.longest / needed:.2g} s"
                warnings.warn(fault, RuntimeWarning, stacklevel=level_outside())
            return method, substeps
        if needed > MOST_SUBSTEPS:
            stiff = ""
            if get_method(method).is_explicit:
                stiff = 'take method="radau_iia5" (which "auto" does for stiff systems), '
            raise ValueError(
                f"{self.fault(method, needed)}. That makes large code: shorten dt, which is in s, "
                f"leave the fastest parts out of the model, {stiff}or give substeps=… nevertheless"
            )
        return method, needed


def typical_states(system: System, reference: Any, times: np.ndarray) -> tuple[Any, ...]:
    """States, inputs and times at which steps have to keep up in any case."""
    x, u, t = [system.home], [system.nominal_input], times
    if reference is not None:
        samples = sample_reference(system, reference, t)
        x, u = [*x, *samples.x], [*u, *samples.u]
        t = np.concatenate([[0.0], t])
    return np.array(x), np.array(u), t[: len(x)]


def ends_of_steps(
    problem: Any, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray, parts: int = 1
) -> np.ndarray:
    """Ends (N, nq) of all steps from their first nodes, each made of so many shorter ones.

    Whole steps of discrete systems, which have no shorter ones; phases make theirs.
    """
    system = problem.system
    own, t, x = p[: system.n_parameters], t[:-1], x[:-1]
    if system.is_discrete:
        shorter = problem._in_parts if parts > 1 else None
        step = system.step() if shorter is None else shorter(parts)
        return np.asarray(step(t, x, u, own))
    step, h = system.step(problem.method, problem.substeps), problem.steps / parts
    for j in range(parts):
        x = np.asarray(step(t + j * h, x, u, own, h))
    return x
