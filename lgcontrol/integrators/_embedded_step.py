"""One step of the Dormand–Prince pair on a group: state, error and interpolation in one go."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..groups import LieGroup
from ._method import Field, combine, tangent_field
from ._methods import DORMAND_PRINCE, METHODS
from ._munthe_kaas import MuntheKaas, algebra_rate

ORDER = 5
EVALUATIONS = 6  # a step starts with the velocity that the step before ended with

# Weights of the part of the interpolation that is not fixed by values and slopes at both ends
# (Hairer, Nørsett, Wanner, section II.6): the interpolation is then of order 4.
DENSE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)


class EmbeddedStep(NamedTuple):
    """What a step of the pair gives.

    Attributes
    ----------
    x : column (nq)
        State at the end, of order 5.
    velocity : column (dim)
        Field there: the first slope of the next step.
    error : column (dim)
        Difference to the solution of order 4, as a tangent vector.
    dense : matrix (dim, 4)
        Coefficients of the interpolated tangent vector from the start (`polynomial`).
    """

    x: Any
    velocity: Any
    error: Any
    dense: Any


StepFunction = Callable[[float, np.ndarray, np.ndarray, float], EmbeddedStep]


def embedded_step(
    group: LieGroup, field: Field, t: Value, x: Value, velocity: Value, dt: Value
) -> tuple[Any, Any, Any, list[Any]]:
    """Take a step of the pair on values of any kind; ``velocity`` is the field at (t, x).

    In the algebra the step is the classical one, so its error estimate and its interpolation are
    the classical ones as well; the end point is where they return to the group.
    """
    method = METHODS["dormand_prince5"]
    assert isinstance(method, MuntheKaas)
    slopes = method.slopes(group, field, t, x, dt, method.stages, first=velocity)
    theta = combine(DORMAND_PRINCE.b, slopes, dt)
    end = group.normalize(group.plus(x, theta))
    velocity_end = field(t + dt, end)
    slopes.append(algebra_rate(group, method.brackets, theta, velocity_end))
    pairs = zip(DORMAND_PRINCE.b, DORMAND_PRINCE.b_embedded, strict=True)
    error = combine([b - other for b, other in pairs], slopes, dt)
    bend = dt * slopes[0] - theta
    dense = [theta, bend, theta - dt * slopes[-1] - bend, combine(DENSE, slopes, dt)]
    return end, velocity_end, error, dense


def step_function(group: LieGroup, field: Any, args: tuple[Any, ...]) -> tuple[Field, StepFunction]:
    """The field and its step as functions of NumPy arrays.

    A ModelFunction or casadi.Function is put into one CasADi function together with all stages;
    any other callable is evaluated stage by stage.
    """
    if isinstance(field, ca.Function | ModelFunction):
        model = field if isinstance(field, ModelFunction) else _model(field)
        compiled = _traced_step(group, model, len(args))

        def step(t: float, x: np.ndarray, velocity: np.ndarray, dt: float) -> EmbeddedStep:
            return EmbeddedStep(*compiled(t, x, velocity, dt, *args))

        return tangent_field(group, lambda t, x: model(t, x, *args)), step

    plain = tangent_field(group, lambda t, x: field(t, x, *args))

    def staged(t: float, x: np.ndarray, velocity: np.ndarray, dt: float) -> EmbeddedStep:
        end, velocity, error, dense = embedded_step(group, plain, t, x, velocity, dt)
        return EmbeddedStep(end, velocity, error, np.stack(dense, axis=-1))

    return plain, staged


@lru_cache(maxsize=128)  # a simulation integrates the same field again and again
def _traced_step(group: LieGroup, model: ModelFunction, extra: int) -> ModelFunction:
    names = model.arguments[: 2 + extra]
    shapes = dict(zip(names, model.argument_shapes, strict=False))

    def build(t: Value, x: Value, velocity: Value, dt: Value, *args: Value) -> list[Any]:
        field = tangent_field(group, lambda t, x: model(t, x, *args))
        *rest, dense = embedded_step(group, field, t, x, velocity, dt)
        return [*rest, ca.horzcat(*dense)]

    return trace(
        f"{model.name}_step",
        build,
        {"t": (), "x": (group.nq,), "velocity": (group.dim,), "dt": ()}
        | {f"argument_{name}": shapes[name] for name in names[2:]},
        {
            "end": (group.nq,),
            "end_velocity": (group.dim,),
            "error": (group.dim,),
            "dense": (group.dim, 4),
        },
        symbol=ca.SX if model.function.is_a("SXFunction") else ca.MX,
    )


@lru_cache(maxsize=128)
def _model(function: ca.Function) -> ModelFunction:
    return ModelFunction(function, shapes={function.name_in(0): ()})  # the time is a number
