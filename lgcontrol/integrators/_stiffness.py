"""How fast modes of a problem decay: what makes it stiff."""

from __future__ import annotations

import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import memoized
from ._motion import Motion
from ._problem import Problem


def decay_rate(problem: Problem, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> float:
    """Largest rate [1/s] at which a mode decays about a state; 0 where the Jacobian is not finite.

    Fast modes that do not decay count little: no method may take long steps there.

    Parameters
    ----------
    problem : Problem
    t : float
        In s.
    x : ndarray, shape (nq,)
    u : ndarray, shape (n_inputs,)
    p : ndarray, shape (n_parameters,)
    """
    if not problem.group.dim:
        return 0.0
    A = error_matrix(problem)(t, x, u, p)
    if not np.isfinite(A).all():
        return 0.0
    return float(max(0.0, -np.linalg.eigvals(A).real.min()))


@memoized
def error_matrix(problem: Problem) -> ModelFunction:
    """``Df − ad_f``, the matrix of the errors' equation."""
    group = problem.group

    def build(t: Value, x: Value, u: Value, p: Value) -> Value:
        motion = Motion(problem, u, p)
        return motion.jacobian(t, x, u, p) - group.ad(motion.field(t, x))

    return trace(
        "error_matrix",
        build,
        {"t": (), "x": (group.nq,), "u": (problem.n_inputs,), "p": (problem.n_parameters,)},
        {"A": (group.dim, group.dim)},
        symbol=problem.symbol,
        is_shared=False,
    )
