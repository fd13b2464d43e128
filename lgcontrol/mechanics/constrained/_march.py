"""march: a motion by steps that solve for multipliers, as one call."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, chain
from ...codegen._internal import Result, Status
from ...integrators._internal import Index3Method, Problem

UNKNOWN_REASON = (
    "take shorter steps or more iterations, and look at mobility() there: constraints may be "
    "singular"
)


class MarchStatus(Status, StrEnum):
    """Whether all steps solved their equations."""

    SOLVED = "solved"
    UNSOLVED = "unsolved"

    @property
    def is_success(self) -> bool:
        """Whether all steps did."""
        return self is MarchStatus.SOLVED


@dataclass(frozen=True, eq=False)
class March(Result):
    """A motion with accelerations and multipliers.

    Attributes
    ----------
    t : ndarray, shape (N + 1,)
        Times [s].
    x : ndarray, shape (N + 1, nq)
        States.
    a : ndarray, shape (N + 1, nv)
        Accelerations v̇.
    multipliers : ndarray, shape (N + 1, m)
    residual : ndarray, shape (N,)
        Of each step, next to what is tolerated.
    unsolved : int or None
        First step that did not solve its equations: what follows is worth nothing.
    hint : str
        Why, where it is known.
    changes : int
        Of the chart, where there are charts.
    """

    t: np.ndarray
    x: np.ndarray
    a: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    unsolved: int | None
    hint: str = ""
    changes: int = 0

    @property
    def status(self) -> MarchStatus:
        """Whether all steps solved their equations."""
        return MarchStatus.SOLVED if self.unsolved is None else MarchStatus.UNSOLVED

    @property
    def message(self) -> str:
        """What went wrong, empty if nothing did."""
        if self.unsolved is None:
            return ""
        return (
            f"step {self.unsolved} (t = {self.t[self.unsolved]:.6g} s) did not solve its equations:"
            f" residual {self.residual[self.unsolved]:.2g} times what is tolerated; "
            + (self.hint or UNKNOWN_REASON)
        )

    def __repr__(self) -> str:
        """Status, times and sizes."""
        sizes = (
            f"{self.x.shape[-1]} coordinates of the state, {self.multipliers.shape[-1]} multipliers"
        )
        message = f": {self.message}" if self.message else ""
        span = f"{len(self.t)} times to {self.t[-1]:g} s"
        return f"March({self.status}, {span}, {sizes}){message}"


def check_step(dt: float, steps: int) -> None:
    """Refuse a step that is not positive, or no steps."""
    if not (np.isfinite(dt) and dt > 0 and steps >= 1):
        raise ValueError(f"dt must be positive and steps at least 1, got {dt} s and {steps}")


def first_unsolved(residual: np.ndarray) -> int | None:
    """First step whose residual is more than what is tolerated."""
    missed = np.flatnonzero(~(residual <= 1))
    return int(missed[0]) if len(missed) else None


def march_step(problem: Problem, method: Index3Method) -> ModelFunction:
    """``(t, z, u, p, dt) → z_next, residual`` with ``z = [x; v̇; a; λ]``.

    Parameters
    ----------
    problem : Problem
    method : Index3Method
    """
    inner = problem.constrained
    assert inner is not None
    nq = problem.group.nq
    nv = list(problem.group.blocks.values())[1].dim  # type: ignore[attr-defined]
    size = nq + 2 * nv + inner.n_rows
    sizes = {"t": 1, "z": size, "u": problem.n_inputs, "p": problem.n_parameters, "dt": 1}
    t, z, u, p, dt = (ca.MX.sym(name, n) for name, n in sizes.items())
    made = method.step(problem, t, z[:nq], u, p, dt, z[nq:])
    results: list[Any] = [ca.vertcat(made.state, made.memory), made.residual]
    function = ca.Function(
        "march_step", [t, z, u, p, dt], results, [*sizes], ["z_next", "residual"]
    )
    return ModelFunction(function, shapes={"t": (), "dt": (), "residual": ()})


def march(
    problem: Problem,
    method: Index3Method,
    step: ModelFunction,
    nv: int,
    x0: np.ndarray,
    u: np.ndarray,
    p: np.ndarray,
    dt: float,
    steps: int,
    t0: float,
) -> March:
    """Motion of a problem; see `Mechanism.march`."""
    nq = problem.group.nq
    start = method.start(problem, *(ca.DM(value) for value in (t0, x0, u, p)))
    z0 = np.concatenate([x0, np.asarray(ca.DM(start)).ravel()])
    run = chain(step, steps, carry=("z", "z_next"), each=["t"])
    t = t0 + dt * np.arange(steps + 1)
    made = run(t[:-1, None], z0, u, p, dt)
    z = np.vstack([z0, made.z_next.reshape(steps, -1)])
    residual = np.asarray(made.residual).ravel()
    return March(
        t,
        z[:, :nq],
        z[:, nq : nq + nv],
        z[:, nq + 2 * nv :],
        residual,
        first_unsolved(residual),
    )
