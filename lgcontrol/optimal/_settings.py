"""Settings: the tuned numbers of the interior point and of the loop around it, as data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from inspect import cleandoc
from math import isfinite
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape

_WB = "Wächter and Biegler 2006"


def _number(
    default: float | int, low: float, high: float, meaning: str, source: str, falls: str,
    unit: str = "1",
) -> Any:  # fmt: skip
    """A setting with its range, meaning, source, and what falls when it moves."""
    about = {
        "low": low, "high": high, "meaning": meaning, "source": source, "falls": falls,
        "unit": unit,
    }  # fmt: skip
    return field(default=default, metadata=about)


@named_options
@dataclass(frozen=True, kw_only=True)
class Settings:
    """Tuned numbers of `InteriorPointSolver` and `MPC`, in one immutable record.

    The kernel is handed them as data: other numbers need no new build. `table` lists each of them
    with its unit, meaning and source, and what falls when it moves. To change some, name them. The
    cost is scaled so that its gradient at the first iterate is at most `gradient_most`. Numbers
    with the unit of a cost or of a multiplier belong to the scaled cost.

    In the table "ablation" is one setting moved at a time on 30 problems with five starts each.

    Raises
    ------
    TypeError
        If a setting has no such name, or is no number.
    ValueError
        If it is out of its range, or not whole where it is a count.

    References
    ----------
    A. Wächter and L. Biegler, On the implementation of an interior-point filter line-search
    algorithm for large-scale nonlinear programming, Mathematical Programming 106, 2006; IPOPT is
    their code.

    Examples
    --------
    >>> careful = Settings(real_time_mu=1e-3)
    >>> careful.real_time_mu, careful.boundary
    (0.001, 0.99)
    """

    # fmt: off
    # barrier parameter
    mu_first: float = _number(1.0, 1e-8, 1e4, "first barrier parameter, of the scaled cost", "own",
        "planning --rules, iterations: 9 % more at IPOPT's 0.1")
    mu_last: float = _number(0.02, 1e-6, 1.0,
        "last barrier parameter at most, as a share of the tolerance; at least, as a share of that",
        "own", "user_tasks, costs: 1e-4 off with many active constraints at IPOPT's 0.1")
    mu_least: float = _number(1e-11, 1e-20, 1.0,
        "least barrier parameter of a solve, whatever the tolerance", "IPOPT",
        "test_interior_point.py, watched: residual 0.18 at 2e-17")
    mu_factor: float = _number(0.2, 1e-3, 0.99, "factor between barrier parameters", _WB,
        "ablation: 1 % more iterations at 0.1, 2 % fewer at 0.4")
    mu_power: float = _number(1.5, 1.0, 2.0, "power between barrier parameters", _WB,
        "ablation: 10 % more iterations at 1.2, 1 % at 1.8")
    mu_error: float = _number(10.0, 0.1, 1e3,
        "error of the barrier problem, in barrier parameters, at which it is lowered", _WB,
        "ablation: 7 % more iterations at 3; 3 % at 30, one fewer converges")
    fast_step: float = _number(0.9, 0.0, 1.0, "step length of a step that may lower it early",
        "own", "planning --rules, iterations: 8 % more without")
    fast_error: float = _number(0.5, 0.0, 1.0,
        "share to which such a step reduces the error, unless controls alone have limits", "own",
        "planning --rules, costs: 11 of 240 dearer, one cheaper")
    # interior of bounds
    boundary: float = _number(0.99, 0.5, 0.999999,
        "least share of the distance to a bound that a step uses", _WB, "user_tasks, iterations")
    push: float = _number(1e-2, 1e-8, 0.49,
        "distance of the first iterate from bounds, relative to the bound or its range, and of its "
        "excesses from zero; a state that adds up its inputs has the size of what they add in a "
        "step, where its own is less than this share of that", _WB,
        "test_many.py, starts")
    relax: float = _number(1e-8, 0.0, 1e-2,
        "share of a number that is rounding: bounds are relaxed by it, sizes below it are none, "
        "refinements of equalities end at it", _WB,
        "test_phases.py, costs of different groups")
    multiplier_most: float = _number(1e3, 0.0, 1e20,
        "largest least-squares multiplier that is taken", _WB,
        "ablation: 4 % more iterations at 0, none at 1e6")
    sigma_most: float = _number(1e10, 1.0, 1e20,
        "largest ratio of a multiplier of a bound to its central value, and of the inverse", _WB,
        "ablation: nothing at 1e6")
    # scaling
    gradient_most: float = _number(100.0, 1e-8, 1e20,
        "largest gradient of the scaled cost and of scaled constraints at the first iterate", _WB,
        "ablation: 3 % more iterations at 10, 5 % at 1000")
    size_free: float = _number(30.0, 1.0, 1e9,
        "size of states and controls up to which they are not scaled, and its inverse", "own",
        "literature in units times 1, 1e3, 1e-3: 7 fewer of 179 are solved at 10 and at 100")
    gradient_bent: float = _number(3.0, 1.0, 1e9,
        "scaled gradient at the first iterate of inequalities of a plan, and of its cost where "
        "curvature ends it within the sizes; it is 1 for equalities and other costs", "own",
        "user_tasks: 387 to 660 iterations at 5 to 20, without the double pendulum, far")
    slope_least: float = _number(1e-3, 1e-12, 1.0,
        "share of another number below which one counts as none: a gradient beside the curvature "
        "or beside the distance from a limit, and 1 beside the size of a quantity: tolerances are "
        "absolute for sizes from 1 to its inverse", "own",
        "user_tasks: 20 m fails at 0.02")
    slope_near: float = _number(0.1, 0.0, 1.0,
        "share of the largest gradient of a constraint that the one next to its limit counts for",
        "own", "21 ways around three obstacles: 5 fail at 0.3, all but one at 1")
    error_scale: float = _number(100.0, 1.0, 1e20,
        "mean multiplier up to which errors are not scaled down", _WB,
        "test_hard_problems.py: 12 % more iterations without")
    # filter and line search
    filter_theta: float = _number(1e-5, 0.0, 0.99, "margin of the filter in the violation", _WB,
        "test_hard_problems.py: 10 % fewer iterations at 1e-2; ablation: nothing at 1e-3")
    switch_phi: float = _number(2.3, 1.0, 10.0,
        "exponent of the slope in the switching condition; that of the violation is 1", _WB,
        "ablation: nothing at 1.5")
    armijo: float = _number(1e-8, 0.0, 0.5,
        "sufficient decrease of the barrier function, also in the filter", _WB,
        "ablation: nothing at 1e-4")
    theta_most: float = _number(1e4, 1.0, 1e20,
        "largest violation that the filter takes, relative to the first", _WB,
        "ablation: 1 % more iterations at 10")
    theta_least: float = _number(1e-4, 0.0, 1.0,
        "violation below which the barrier function must decrease, relative", _WB,
        "ablation: 1 % more iterations at 1e-2, none at 1e-6")
    step_least: float = _number(0.05, 0.0, 1.0,
        "share of the least useful step length at which restoration begins", _WB,
        "ablation: nothing at 0.005 and 1")
    creeping: float = _number(0.02, 0.0, 1.0,
        "share of the step that limits allow: after five shorter ones in turn a whole step is "
        "tried, and the filter begins anew", "own",
        "0: across_a_river 29 iterations for 14, oscillator_comes_to_rest 157 for 109")
    rollout: float = _number(0.2, 0.0, 10.0,
        "step length to the boundary below which a rollout is tried first", "own",
        "planning --rules: 5 of 240 fewer converge, 4 % more iterations without")
    # regularization
    regularization_first: float = _number(1e-4, 1e-20, 1e10, "first regularization of the Hessian",
        _WB, "ablation: nothing at 1e-2")
    regularization_most: float = _number(1e10, 1.0, 1e40, "largest one", "own",
        "ablation: nothing at 1e5 and 1e20")
    regularization_grow_first: float = _number(100.0, 1.0, 1e4, "its growth before one was found",
        _WB, "ablation: 1 % fewer iterations at 8, one fewer converges")
    regularization_grow: float = _number(8.0, 1.0, 1e4, "its growth", _WB,
        "ablation: 1 % more iterations at 4")
    regularization_fall: float = _number(1 / 3, 0.0, 1.0, "factor at the next iterate", _WB,
        "ablation: 4 % fewer iterations at 0.1, 5 plans dearer, 4 cheaper")
    hessian_operations: int = _number(145_000, 0, 10_000_000,
        "operations of a step up to which second derivatives are used", "Panda, Talos",
        "test_planning_kernel.py, long steps", unit="operations")
    # equalities
    compliance: float = _number(1e-4, 1e-12, 1.0, "dual regularization of equalities", "own",
        "literature: two tasks end at other optima at 1e-7 and at IPOPT's 1e-8")
    refinements: int = _number(10, 1, 100, "most sweeps that refine multipliers of equalities",
        "own", "test_hard_problems.py: 20 % more iterations at 1")
    # elastic problem
    penalty_first: float = _number(1e4, 1.0, 1e12,
        "first penalty on violations, of the scaled cost", "own",
        "planning --rules: 4 of 240 fewer converge at IPOPT's 1e3")
    penalty_most: float = _number(1e7, 1.0, 1e20, "largest penalty", "own",
        "ablation: nothing at 1e9")
    elastic_decrease: float = _number(0.55, 0.0, 1.0,
        "share of the violation at which the elastic problem may be left", f"{_WB} has 0.9",
        "test_hard_problems.py: 8 % more iterations at 0.9; test_mpc.py at 0.7")
    certificate: float = _number(1e-2, 0.0, 1e3,
        "gradient of the cost, in penalties, up to which infeasibility is certain", "own",
        "test_planning_kernel.py, least violation")
    nudge: float = _number(5e-2, 1e-12, 1.0,
        "move off a saddle, relative to the range of a control", "own",
        "literature: slew ends at 29.4 s for 28.6 at 0.03, a brachistochrone is lost at 0.2")
    # results
    tiny_most: int = _number(10, 0, 1000,
        "reductions of the barrier parameter after failed line searches, and whole steps "
        "at the last one that do not lower the residual",
        "own", "ablation: nothing at 3 and 30")
    acceptable: float = _number(1e-4, 0.0, 1.0, "residual up to which a result is usable",
        f"{_WB} has 1e-6, unscaled", "user_tasks, verdicts")
    # starts
    regulator_guesses: int = _number(3, 1, 6,
        "number of regulators whose motions are tried as starts", "problem A from rest",
        "problem A at 1: 7 of 12 converge")
    regulator_caution: float = _number(100.0, 1.0, 1e6, "factor between their weights on controls",
        "problem A from rest", "user_tasks, cart-pole, tight")
    policy_period: float = _number(0.05, 1e-6, 1e3, "longest time between questions to a policy",
        "problem A", "user_tasks, cylinder", unit="s")
    # real-time steps
    real_time_mu: float = _number(3e-4, 1e-12, 1.0,
        "barrier parameter after a step that was cut short, at least; with hard constraints, that "
        "above which more steps are taken",
        "own", "planning_loops, double pendulum far: 9 of 17 loops dearer without more steps")
    real_time_rise: float = _number(3.0, 1.0, 1e3,
        "factor by which it rises after steps that were cut short", "own",
        "planning_loops: the tight cart-pole violates 0.74 for 0.02")
    real_time_mu_last: float = _number(1e-8, 0.0, 1.0, "least barrier parameter", "own",
        "planning_loops, costs")
    real_time_penalty: float = _number(1e3, 0.0, 1e12,
        "penalty on hard constraints, of the scaled cost", "own",
        "closed_loop_plants at 1e2: 13 calls say infeasible where a solve finds a plan")
    real_time_sigma: float = _number(1e2, 1.0, 1e20, "as sigma_most", "own",
        "planning_loops, costs")
    real_time_far: float = _number(0.1, 0.0, 1e6,
        "how far off a plan is for more steps and an exact first one, and defects for a rollout at "
        "the end of a call",
        "own", "planning_loops, soft twist")
    real_time_gain: float = _number(0.1, 0.0, 1e6,
        "gain of a step, of that predicted, within which no more steps are taken and Gauss–Newton "
        "goes on", "own",
        "planning_loops: problem B takes 4.1 steps a call for 2.4, circle 4.6 for 2.2")
    real_time_short: float = _number(0.4, 0.0, 1.0, "step length below which more steps are taken",
        "own", "planning_loops: soft twist 3 % dearer at the median, up to 35 %")
    real_time_more: int = _number(4, 0, 1000,
        "most further steps of a call; as many again where something jumped", "own",
        "planning_loops, soft twist")
    real_time_dearer: float = _number(0.1, 0.0, 1e6,
        "share that an earlier iterate which keeps all hard constraints may cost more to be taken",
        "own", "test_mpc_practice.py, a plan that keeps its rows")
    # the loop around the solver
    jump: float = _number(2.0, 1.0, 1e6,
        "rise of the cost, relative to the recent cost, that is a jump", "designs, seeds 0 to 4",
        "test_mpc_practice.py, restarts")
    jump_fading: float = _number(7.4, 1.0, 1e6,
        "factor by which recent cost is forgotten in a horizon", "designs, seeds 0 to 4",
        "test_mpc_practice.py, restarts")
    jump_noise: float = _number(1e-2, 0.0, 1.0, "share of the largest cost that is noise",
        "designs, seeds 0 to 4", "test_mpc_practice.py, restarts")
    bias_settling: float = _number(10.0, 0.1, 1e6, "time constant of the disturbance estimate",
        "wrong mass of the Panda", "test_mpc.py, steady disturbances", unit="periods")
    bias_unobservable: float = _number(1e-6, 0.0, 1e-1,
        "singular value, relative, below which a direction of the disturbance is unobservable",
        "rounding of differences", "test_mpc.py, steady disturbances")
    # fmt: on

    def __post_init__(self) -> None:
        """Refuse what no solver can use."""
        for entry in fields(self):
            name, value, about = entry.name, getattr(self, entry.name), entry.metadata
            value = check_shape(f"settings: {name}", value, (), finite=False).item()
            low, high = about["low"], about["high"]
            if not (isfinite(value) and low <= value <= high):
                raise ValueError(
                    f"settings: {name} must be between {low:g} and {high:g}, got {value:g}: leave "
                    f"it out for {entry.default:g}"
                )
            if isinstance(entry.default, int):
                if value != int(value):
                    raise ValueError(f"settings: {name} must be a whole number, got {value:g}")
                value = int(value)
            object.__setattr__(self, name, value)

    @classmethod
    def table(cls) -> str:
        """Every setting: its default, unit, meaning and source, and what falls when it moves.

        Returns
        -------
        str
            A table in Markdown.
        """
        lines = [
            "| setting | value | meaning | source | falls when it moves |",
            "|---|---|---|---|---|",
        ]
        for entry in fields(cls):
            about = entry.metadata
            unit = "" if about["unit"] == "1" else f" {about['unit']}"
            lines.append(
                f"| `{entry.name}` | {entry.default:g}{unit} | {about['meaning']} | "
                f"{about['source']} | {about['falls']} |"
            )
        return "\n".join(lines)


def _documented() -> str:
    """The docstring with a section of parameters, made of the table; Python 3.13 indents none."""
    head, title, rest = cleandoc(Settings.__doc__ or "").partition("Raises\n")
    lines = ["Parameters", "----------"]
    for entry in fields(Settings):
        about = entry.metadata
        unit = "" if about["unit"] == "1" else f", in {about['unit']}"
        lines += [f"{entry.name} : {type(entry.default).__name__}"]
        lines += [f"    {about['meaning'][0].upper()}{about['meaning'][1:]}{unit}."]
    return "\n".join([head.rstrip(), "", *lines, "", title + rest])


Settings.__doc__ = _documented()
DEFAULT = Settings()


def tolerance_unit(settings: Settings, size: Any) -> Any:
    """Unit of a tolerance for a quantity of some size.

    The size itself if it is below 1, 1 from 1 to 1000, a thousandth of the size above.
    """
    return size / np.clip(size, 1, 1 / settings.slope_least)
