"""Rates: weights and limits on how fast inputs change; problems of other controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, check_shape, unknown_name
from ..systems import System
from ..systems._internal import INPUT
from ._input_view import KINDS, InputView
from ._places import control_places
from ._problem import OptimalControlProblem
from ._statement import AT_POINTS, collocation_of
from ._weights import WeightLike, input_weight

# Weight of the rates of linear inputs, as a share of what R makes of them in a step.
LEAST_RATE = 1e-9


@named_options
@dataclass(frozen=True, eq=False)
class Rates:
    """Weight and limit of the rates of a system's controls.

    Inputs are held over steps. The rate of a step is the change from the input of the step before
    it, divided by the step's length.

    Parameters
    ----------
    weight : float, array_like or mapping
        W of ``½ ṙᵀ W ṙ`` per s, in 1 over units per s squared; positive definite. A number, a
        diagonal, a matrix or a mapping from names of controls, as R has them.
    limit : float, array_like or mapping
        Largest rate in units of the input per s: a number, one for each control, or by names, the
        others being free.

    Examples
    --------
    >>> Rates(weight=0.01, limit=5.0).limit
    5.0
    """

    weight: WeightLike = 1e-3
    limit: ArrayLike | Mapping[str, float] = np.inf

    def limits(self, system: System) -> np.ndarray:
        """Largest rates of the controls of a system, shape (m,)."""
        places, m = control_places(system), len(system.input_index("control"))
        found = np.full(m, np.inf)
        if isinstance(self.limit, Mapping):
            for name, value in self.limit.items():
                if name not in places:
                    raise UnknownNameError(unknown_name("control", name, places))
                found[places[name]] = value
        elif np.ndim(self.limit):
            found[:] = check_shape("limit of the rates", self.limit, (m,), finite=False)
        else:
            found[:] = self.limit
        if not (found > 0).all():
            raise ValueError(f"the limit of rates must be positive, got {self.limit}")
        return found


def with_rates(
    problem: OptimalControlProblem, rates: Rates, *, period: float | None = None
) -> OptimalControlProblem:
    """The same problem with the rates of its controls weighed and bounded.

    Its state is that of the problem and a block "input", the controls that act until then. A solve
    starts from the state and the inputs that act now. Its controls are their rates, R weighs what
    the inputs are off the reference's as before. Hard and soft bounds hold as they were stated.

    Parameters
    ----------
    problem : OptimalControlProblem
        Of a continuous system.
    rates : Rates
    period : float, optional
        Time in s over which an input is held; a step if left out.

    Returns
    -------
    OptimalControlProblem

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import Input
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "N", -1, 1)])
    >>> problem = OptimalControlProblem(cart, 20, 0.1, R=1e-3, reference=[1.0])
    >>> plan = with_rates(problem, Rates(weight=0.01, limit=2.0)).solve([0.0, 0.0])
    >>> bool(abs(plan.x[:, 1]).max() <= 1.0), bool(abs(plan.u).max() <= 2.0)
    (True, True)
    """
    if problem.hold == AT_POINTS or problem.may_change is not None:
        raise ValueError(
            "rates need inputs that are held or linear and may change in every step: leave "
            'blocks and hold="collocation" out, or limit the rates of its inputs by Bound. '
            "MPC(…, rates=…, blocks=…) plans in blocks"
        )
    view = view_of(problem)
    if problem.hold == "zero":
        held = problem.dt if period is None else min(period, problem.dt)
        view = InputView(problem.system, "rates", held=held)
    weight = input_weight("weight of the rates", rates.weight, problem.system)
    return _beside(problem, view, rates, weight)


def with_linear_inputs(problem: OptimalControlProblem) -> OptimalControlProblem:
    """The problem of rates, held in each step, from inputs that act now; as `with_free_rates`."""
    view = InputView(problem.system, "linear")
    return _beside(problem, view, Rates(), _least_rates(problem))


def with_free_rates(
    problem: OptimalControlProblem, rates: Rates | None = None
) -> OptimalControlProblem:
    """The problem of rates, held in each step, for inputs that are linear or change in blocks.

    Its state is that of the problem and a block "input": linear inputs, free at the start, or those
    that were held until then. R weighs the inputs. Rates have a weight that tells plans apart and
    changes none, unless some are given: the rate of a block is its change over the length of its
    first step.
    """
    view, weight = view_of(problem), _least_rates(problem)
    if rates is None:
        rates = Rates()
    else:
        weight = input_weight("weight of the rates", rates.weight, problem.system)
    return _beside(problem, view, rates, weight, is_free=view.kind == "linear")


def _least_rates(problem: OptimalControlProblem) -> np.ndarray:
    """Weight on rates that tells plans apart and changes none."""
    return LEAST_RATE * problem.dt**2 * problem.R


def with_points(problem: OptimalControlProblem) -> OptimalControlProblem:
    """The problem of the inputs at collocation points, with polynomials between them.

    Its limits are limits of controls.
    """
    _refuse_weights(problem)
    view = view_of(problem)
    R = np.kron(np.diag([*view.method.points.values()]), problem.R)
    return problem.with_arguments(
        system=view.other_system(), method=view.method, substeps=1, R=R, **_stated(problem, view)
    )


def view_of(problem: OptimalControlProblem) -> InputView:
    """What inputs of a problem are between its nodes."""
    kind = "blocks" if problem.may_change is not None else KINDS[problem.hold]
    method = collocation_of(problem.method) if kind == "points" else None
    return InputView(problem.system, kind, method=method, may=problem.may_change)


def _refuse_weights(problem: OptimalControlProblem) -> None:
    if problem.weights:
        raise ValueError(
            f"weights that are parameters do not go together with {_called(problem)}: "
            + ", ".join(problem.weights)
            + "; hold inputs in each step, without blocks or rates, or give numbers, with a new "
            "problem for each; weights of a Residual or a Cost may be parameters"
        )


def _called(problem: OptimalControlProblem) -> str:
    if problem.hold != "zero":
        return f'hold="{problem.hold}"'
    return "rates" if problem.may_change is None else "blocks"


def _stated(problem: OptimalControlProblem, view: InputView) -> dict[str, Any]:
    """Terms and reference of a problem with other controls."""
    reference, own = problem.reference, problem.nominal_parameters
    if reference is not None:
        given = problem.times(), problem.steps, own[: problem.system.n_parameters]
        reference = view.at_nodes(reference, *given)[1]
    terms = view.terms(problem, problem.horizon, len(own), problem.R)
    return terms | {"reference": reference, "hold": "zero", "quadrature": problem.quadrature}


def _beside(
    problem: OptimalControlProblem, view: InputView, rates: Rates, R: np.ndarray, *,
    is_free: bool = False,
) -> OptimalControlProblem:  # fmt: skip
    """The problem whose controls are rates, with their limits and the weight R.

    Inputs at the start are given, or free.
    """
    system, what = problem.system, _called(problem)
    if isinstance(problem.terminal, str) and view.kind != "rates":
        raise ValueError(
            f'terminal="riccati" is of inputs held in each step: with {what} give a number'
        )
    if system.errors is not None or system.project is not None:
        raise ValueError(
            f"{system.name} has constraints, so that its inputs are held in each step: leave "
            f"{what} out"
        )
    _refuse_weights(problem)
    moved, terminal = view.other_system(rates.limits(system)), problem.terminal
    none = np.zeros((view.beside,) * 2)
    names = [moved.error_names[i] for i in problem.free_start]
    return problem.with_arguments(
        system=moved, blocks=None, free=[*names, INPUT] if is_free else names,
        Q=weights_beside(problem.Q, none if view.kind == "blocks" else problem.R), R=R,
        terminal=terminal if isinstance(terminal, str) else weights_beside(terminal, none),
        arrival=weights_beside(problem.arrival, none) if problem.arrival.any() else None,
        **_stated(problem, view),
    )  # fmt: skip


def weights_beside(Q: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Weights on errors and on the inputs beside them; both may have one for each step."""
    n, m = Q.shape[-1], R.shape[-1]
    found = np.zeros((*np.broadcast_shapes(Q.shape[:-2], R.shape[:-2]), n + m, n + m))
    found[..., :n, :n], found[..., n:, n:] = Q, R
    return found
