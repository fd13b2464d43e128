"""Steps with an estimate of their error, for adaptive integration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import memoized
from ._method import Method, Trial
from ._methods import get_method
from ._motion import Motion
from ._problem import Problem

StepFunction = Callable[[float, np.ndarray, np.ndarray, float], Trial]


def embedded_step(problem: Problem, method: str | Method = "dormand_prince5") -> ModelFunction:
    """Step with an estimate of its error, ``(t, x, u, p, dt) → x_next, error, residual``.

    The cheap entry for loops of one's own: one function for all stages, which `chain` repeats and
    `codegen.prepare` compiles. It is made once for a problem and kept with it.

    Parameters
    ----------
    problem : Problem
        For a System ``system.problem``.
    method : str or Method
        One that estimates errors: "dormand_prince5", or "ros34pw2" for stiff problems.

    Returns
    -------
    ModelFunction
        ``error`` is a tangent vector; `Tolerance.norm` weighs it. A step is short enough where
        that is at most 1, else the next one is ``0.9 norm^(−1/order)`` times as long.

    Raises
    ------
    ValueError
        If the method does not estimate errors.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> turn = Problem(SO2, lambda t, x, u, p: u * t**6, n_inputs=1)
    >>> made = embedded_step(turn)(0.0, SO2.identity, [7.0], [], 1.0)
    >>> SO2.log(made.x_next).round(2), bool(abs(made.error) > 1e-4)
    (array([1.]), True)
    """
    return _embedded_step(problem, get_method(method))


@memoized
def _embedded_step(problem: Problem, scheme: Method) -> ModelFunction:
    group, symbol = problem.group, _symbol(problem, scheme)

    def build(t: Value, x: Value, u: Value, p: Value, dt: Value) -> list[Any]:
        made = scheme.step(problem, t, x, u, p, dt, estimate=True)
        return [made.state, made.error, made.residual]

    return trace(
        "embedded_step",
        build,
        {
            "t": (),
            "x": (group.nq,),
            "u": (problem.n_inputs,),
            "p": (problem.n_parameters,),
            "dt": (),
        },
        {"x_next": (group.nq,), "error": (group.dim,), "residual": ()},
        symbol=symbol,
        is_shared=False,  # stages are calls of one field
    )


def trial_function(
    problem: Problem, method: Method, u: np.ndarray, p: np.ndarray
) -> tuple[Callable[[float, np.ndarray], np.ndarray], StepFunction]:
    """The field and its step as functions of NumPy arrays.

    Fields that are CasADi functions are put into one function together with all stages; any other
    callable is evaluated stage by stage.
    """
    if problem.is_symbolic:
        field, compiled = _traced(problem, method)

        def step(t: float, x: np.ndarray, velocity: np.ndarray, dt: float) -> Trial:
            return Trial(*compiled(t, x, u, p, velocity, dt))

        return lambda t, x: field(t, x, u, p), step

    motion = Motion(problem, u, p)

    def staged(t: float, x: np.ndarray, velocity: np.ndarray, dt: float) -> Trial:
        made = method.trial(motion, t, x, velocity, dt)
        return made._replace(dense=np.stack(made.dense, axis=-1))

    return motion.field, staged


@memoized
def _traced(problem: Problem, method: Method) -> tuple[ModelFunction, ModelFunction]:
    group, symbol = problem.group, _symbol(problem, method)
    start = {
        "t": (),
        "x": (group.nq,),
        "u": (problem.n_inputs,),
        "p": (problem.n_parameters,),
    }

    def build(t: Value, x: Value, u: Value, p: Value, velocity: Value, dt: Value) -> list[Any]:
        made = method.trial(Motion(problem, u, p), t, x, velocity, dt)
        return [*made._replace(dense=ca.horzcat(*made.dense))]

    return (
        trace(
            "field",
            lambda t, x, u, p: Motion(problem, u, p).field(t, x),
            start,
            {"velocity": (group.dim,)},
            symbol=problem.symbol,
        ),
        trace(
            "trial",
            build,
            start | {"velocity": (group.dim,), "dt": ()},
            {
                "x_next": (group.nq,),
                "end_velocity": (group.dim,),
                "error": (group.dim,),
                "dense": (group.dim, 4),
                "residual": (),
            },
            symbol=symbol,
        ),
    )


def _symbol(problem: Problem, method: Method) -> Any:
    return ca.MX if method.solves else problem.symbol
