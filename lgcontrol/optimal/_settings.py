"""Settings: the tuned numbers of the interior point and of the loop around it, as data."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, fields
from functools import cache
from inspect import cleandoc
from math import isfinite
from typing import Any

from ..codegen import named_options
from ..codegen._internal import c_number, check_shape

_NW = "Nocedal and Wright 2006"
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

    Python and C read them from here: other numbers need no new build. `table` lists each of them
    with its unit, meaning and source, and what falls when it moves. To change some, name them.

    Raises
    ------
    TypeError
        If a setting has no such name, or is no number.
    ValueError
        If it is out of its range, or not whole where it is a count.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization, 2nd edition, 2006; A. Wächter and L. Biegler,
    On the implementation of an interior-point filter line-search algorithm for large-scale
    nonlinear programming, Mathematical Programming 106, 2006.

    Examples
    --------
    >>> careful = Settings(real_time_barrier=1e-3)
    >>> careful.real_time_barrier, careful.boundary
    (0.001, 0.995)
    """

    # second derivatives of the dynamics
    hessian_operations: int = _number(
        30000, 0, 10000000,
        "operations of a step up to which its second derivatives are used",
        "Panda, Talos", "not measured; see second_derivatives.py", unit="operations",
    )  # fmt: skip
    hessian_operations_exact: int = _number(
        20000, 0, 10000000,
        "the same, up to which they are exact and not those of the midpoint rule",
        "quadrotor", "not measured; see second_derivatives.py", unit="operations",
    )  # fmt: skip
    # line search and merit function
    boundary: float = _number(
        0.995, 0.5, 0.9999,
        "fraction to the boundary τ: share of the distance to a limit that a step may use",
        _NW, "cylinder at 0.9999: 27 iterations for 25",
    )  # fmt: skip
    multiplier_low: float = _number(
        1e-2, 1e-12, 1.0,
        "least multiplier of a limit, as a share of μ / distance",
        f"{_WB}, κ_Σ with 1e-10", "input rates at 0.1: 0 of 1 converge",
    )  # fmt: skip
    multiplier_high: float = _number(
        1e2, 1.0, 1e12,
        "largest multiplier of a limit, as a multiple of μ / distance",
        f"{_WB}, κ_Σ with 1e10", "cylinder at 10: 5 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    armijo: float = _number(
        1e-4, 1e-12, 0.4,
        "sufficient decrease of the merit function",
        _NW, "minimum time at 0.001: 76 iterations for 74",
    )  # fmt: skip
    step_least: float = _number(
        2.0**-12, 1e-12, 0.5,
        "step length below which the line search gives up",
        "twelve halvings", "none of 14 problems by 2 %",
    )  # fmt: skip
    penalty_margin: float = _number(
        0.5, 0.01, 0.99,
        "share of the predicted decrease that the penalty on violations leaves to the cost",
        f"{_NW}, ρ in equation 18.36",
        "cylinder at 0.25: 5 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    rounding: float = _number(
        1e-13, 0.0, 1e-6,
        "change of the merit function, relative, that is rounding",
        "double precision", "none of 14 problems by 2 %",
    )  # fmt: skip
    violation_least: float = _number(
        1e-10, 0.0, 1e-6,
        "sum of violations that is rounding",
        "double precision", "none of 14 problems by 2 %",
    )  # fmt: skip
    # regularization of the Hessian
    gauss_newton_iterations: int = _number(
        3, 1, 100,
        "Gauss–Newton iterations after a Hessian that is not positive definite",
        "user tasks", "cylinder at 1: 3 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    regularization_first: float = _number(
        1e-4, 1e-12, 1e2,
        "first regularization of the Hessian of the controls",
        f"{_WB}, δ_w", "cart-pole, tight at 0.001: 64 iterations for 57",
    )  # fmt: skip
    regularization_growth: float = _number(
        10.0, 1.5, 1e4,
        "factor between regularizations",
        f"{_WB} has 8 and 100", "cart-pole, tight at 100: 92 iterations for 57",
    )  # fmt: skip
    regularization_last: float = _number(
        1e8, 1.0, 1e20,
        "largest regularization",
        f"{_WB} has 1e40", "none of 14 problems by 2 %",
    )  # fmt: skip
    regularization_tries: int = _number(
        3, 0, 20,
        "regularizations after a shortened step before second derivatives are left out",
        "user tasks", "minimum time at 1: 0 of 1 converge",
    )  # fmt: skip
    regularization_states: float = _number(
        0.2, 0.0, 1.0,
        "regularization of states in multiple shooting, as a share of that of controls",
        "402 starts of the input rates", "cart-pole, tight at 0.02: 66 iterations for 57",
    )  # fmt: skip
    step_good: float = _number(
        0.4, 0.05, 1.0,
        "step length from which a step counts as full",
        "user tasks", "parking at 0.8: 0 of 1 converge",
    )  # fmt: skip
    step_short: float = _number(
        0.2, 0.01, 1.0,
        "step length below which the regularization grows",
        "user tasks", "cart-pole, tight at 0.4: 77 iterations for 57",
    )  # fmt: skip
    # equalities and soft constraints
    equality_penalty: float = _number(
        1e6, 1.0, 1e12,
        "penalty on squared equalities in a sweep, relative to the largest derivative of the cost",
        "user tasks", "none of 14 problems by 2 %",
    )  # fmt: skip
    equality_sweeps_least: int = _number(
        2, 1, 20,
        "sweeps for a step with equalities, at least",
        "user tasks", "minimum time at 4: cost of the closed loop 36.34 for 31.26",
    )  # fmt: skip
    equality_sweeps_most: int = _number(
        5, 1, 20,
        "the same, at most",
        "user tasks", "none of 14 problems by 2 %",
    )  # fmt: skip
    equality_left: float = _number(
        0.1, 0.0, 1.0,
        "share of an equality's violation that a step may leave",
        "user tasks", "none of 14 problems by 2 %",
    )  # fmt: skip
    equality_same: float = _number(
        1e-8, 0.0, 1e-2,
        "change of that share that is rounding",
        "double precision", "none of 14 problems by 2 %",
    )  # fmt: skip
    soft_newton_steps: int = _number(
        8, 1, 50,
        "Newton steps for the slack of a soft constraint",
        "converged from one side", "none of 14 problems by 2 %",
    )  # fmt: skip
    # barrier parameter of a solve
    push: float = _number(
        1e-2, 1e-8, 0.4,
        "distance of the first iterate from limits, relative to the range or the limit",
        f"{_WB}, κ_1", "cart-pole, tight at 0.001: 168 iterations for 57",
    )  # fmt: skip
    barrier_rollout: float = _number(
        0.1, 1e-12, 1e3,
        "first barrier parameter of rollouts that have control limits only",
        "problem A, 101 attitudes", "circle at 1: 12 iterations for 9",
    )  # fmt: skip
    barrier_rollout_factor: float = _number(
        0.1, 1e-6, 0.9,
        "its decrease is at least this factor",
        "problem A, 101 attitudes", "circle at 0.2: 10 iterations for 9",
    )  # fmt: skip
    barrier_rollout_power: float = _number(
        1.2, 1.0, 2.0,
        "or to this power, whichever is less",
        f"{_WB} has 1.5", "circle at 1.9: 10 iterations for 9",
    )  # fmt: skip
    barrier: float = _number(
        1.0, 1e-12, 1e3,
        "first barrier parameter of all other solves",
        f"{_WB} has 0.1", "input rates at 10: 0 of 1 converge",
    )  # fmt: skip
    barrier_factor: float = _number(
        0.2, 1e-6, 0.9,
        "its decrease is at least this factor",
        f"{_WB}, κ_μ", "input rates at 0.1: 0 of 1 converge",
    )  # fmt: skip
    barrier_power: float = _number(
        1.5, 1.0, 2.0,
        "or to this power, whichever is less",
        f"{_WB}, θ_μ", "cart-pole, tight at 1.9: 70 iterations for 57",
    )  # fmt: skip
    barrier_last: float = _number(
        0.02, 1e-6, 1.0,
        "last barrier parameter, relative to the tolerance",
        "user tasks", "cart-pole at 0.002: 45 iterations for 44",
    )  # fmt: skip
    barrier_least: float = _number(
        1e-11, 0.0, 1e-3,
        "least barrier parameter",
        "double precision", "none of 14 problems by 2 %",
    )  # fmt: skip
    barrier_error: float = _number(
        1.0, 1e-3, 1e3,
        "the barrier parameter decreases at a residual of this many μ",
        f"{_WB}, κ_ε with 10", "problem C, momentum at 0.1: 0 of 3 converge",
    )  # fmt: skip
    barrier_late: float = _number(
        1e-3, 0.0, 1.0,
        "barrier parameter from which a larger residual is enough",
        "cart-pole, input rates", "cart-pole, tight at 0.01: 69 iterations for 57",
    )  # fmt: skip
    barrier_error_late: float = _number(
        10.0, 1e-3, 1e3,
        "that residual in μ",
        f"{_WB}, κ_ε", "cart-pole at 1: 47 iterations for 44",
    )  # fmt: skip
    barrier_share: float = _number(
        1.0, 1e-6, 1e6,
        "largest sum of the first barrier terms, relative to the cost of a feasible guess",
        "Solo12", "none of 14 problems by 2 %",
    )  # fmt: skip
    barrier_share_least: float = _number(
        1e-4, 0.0, 1.0,
        "least first barrier parameter there",
        "Solo12", "none of 14 problems by 2 %",
    )  # fmt: skip
    barrier_share_beyond: float = _number(
        100.0, 1e-6, 1e6,
        "as barrier_share, where the first step violates a limit",
        "cylinder", "none of 14 problems by 2 %",
    )  # fmt: skip
    barrier_share_beyond_least: float = _number(
        1e-3, 0.0, 1.0,
        "as barrier_share_least, where the first step violates a limit",
        "cylinder", "none of 14 problems by 2 %",
    )  # fmt: skip
    barrier_share_warm: float = _number(
        0.1, 1e-6, 1e6,
        "as barrier_share, from a solution",
        "parking among posts", "none of 14 problems by 2 %",
    )  # fmt: skip
    idle_most: int = _number(
        30, 1, 1000,
        "iterations without progress before a solve stalls",
        "user tasks", "none of 14 problems by 2 %",
    )  # fmt: skip
    progress: float = _number(
        0.9, 0.1, 1.0,
        "decrease of the residual that counts as progress",
        "user tasks", "none of 14 problems by 2 %",
    )  # fmt: skip
    acceptable: float = _number(
        1e-4, 0.0, 1.0,
        "residual up to which a result is usable",
        f"{_WB} has 1e-6, unscaled", "none of 14 problems by 2 %",
    )  # fmt: skip
    iterations_most: int = _number(
        1000, 1, 100000,
        "largest number of iterations of a solve",
        "memory of the log", "none of 14 problems by 2 %",
    )  # fmt: skip
    # real-time steps
    real_time_barrier: float = _number(
        3e-4, 1e-12, 1.0,
        "largest barrier parameter of a call",
        "designs, seeds 0 to 4", "cart-pole at 3e-05: 6 of 12 calls violate a constraint, for 0",
    )  # fmt: skip
    real_time_barrier_last: float = _number(
        1e-8, 0.0, 1e-2,
        "least barrier parameter of a call",
        "cart by the wall rests 2 µm off",
        "cylinder at 1e-07: 4 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    real_time_barrier_factor: float = _number(
        0.2, 1e-6, 0.9,
        "decrease of the barrier parameter after a full step",
        "cart by the wall", "cylinder at 0.1: cost of the closed loop 804.6 for 213.3",
    )  # fmt: skip
    real_time_barrier_rise: float = _number(
        10.0, 1.0, 1e4,
        "increase after a call far from optimal that ended with a short step",
        "car past a pole", "cylinder at 1: 3 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    real_time_barrier_most: float = _number(
        0.1, 1e-12, 1e2,
        "largest barrier parameter after increases",
        "car past a pole", "none of 14 problems by 2 %",
    )  # fmt: skip
    far: float = _number(
        0.1, 1e-9, 1e3,
        "residual above which a plan is far from optimal",
        "designs, seeds 0 to 4", "cylinder at 0.01: 3 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    steps_more: int = _number(
        4, 0, 100,
        "further steps of a call that is far from optimal",
        "designs, seeds 0 to 4", "cart-pole at 2: 2 of 12 calls violate a constraint, for 0",
    )  # fmt: skip
    violation_kept: float = _number(
        1e-6, 0.0, 1e-2,
        "violation up to which a hard constraint counts as satisfied",
        "export cases", "problem C, momentum at 1e-05: 2 of 12 calls violate a constraint, for 1",
    )  # fmt: skip
    cost_kept: float = _number(
        0.1, 0.0, 1e3,
        "relative rise of cost up to which an iterate without violations is preferred",
        "car past a pole", "none of 14 problems by 2 %",
    )  # fmt: skip
    penalty_last_input: float = _number(
        1e6, 1.0, 1e12,
        "penalty on hard constraints in the choice of a plan's last input",
        "problem B", "none of 14 problems by 2 %",
    )  # fmt: skip
    # penalties of hard constraints that cannot be satisfied
    penalty_first: float = _number(
        1e2, 1.0, 1e8,
        "penalty on hard constraints, in largest derivatives of the cost",
        "double pendulum, 40 rails", "cylinder at 1000: 3 of 12 calls violate a constraint, for 2",
    )  # fmt: skip
    penalty_lower: int = _number(
        2, 1, 8,
        "powers of ten by which it decreases while defects stay open",
        "double pendulum, 40 rails", "none of 14 problems by 2 %",
    )  # fmt: skip
    penalty_lowest: int = _number(
        8, 1, 20,
        "powers of ten by which it decreases in all",
        "double pendulum, 40 rails", "none of 14 problems by 2 %",
    )  # fmt: skip
    penalty_dominant: float = _number(
        3.0, 1.0, 1e6,
        "share of the cost above which violations prove infeasibility",
        "double pendulum, 40 rails", "none of 14 problems by 2 %",
    )  # fmt: skip
    # search for the least violation of equalities
    restoration_after: int = _number(
        20, 1, 1000,
        "iterations before a solve asks whether equalities can be satisfied",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_decrease: float = _number(
        0.9, 0.1, 1.0,
        "decrease of the violation above which it does not ask",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_iterations: int = _number(
        40, 1, 1000,
        "iterations of that search",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_barrier: float = _number(
        1e-2, 1e-12, 1e2,
        "its first barrier parameter",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_barrier_last: float = _number(
        1e-8, 0.0, 1e-2,
        "its last barrier parameter",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_tolerance: float = _number(
        1e-6, 0.0, 1e-2,
        "its residual",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_move: float = _number(
        1e-8, 0.0, 1.0,
        "weight on changes of controls in that search",
        "uniqueness", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_stationary: float = _number(
        1e-3, 0.0, 1.0,
        "derivative of the violation, relative to its terms, that counts as zero",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    restoration_near: float = _number(
        1e-2, 0.0, 0.5,
        "distance from a limit, relative to the range, that counts as active",
        "60 starts, terminal equality", "none of 14 problems by 2 %",
    )  # fmt: skip
    # messages
    report_near: float = _number(
        1e-3, 0.0, 0.5,
        "distance from a limit, relative to the range, that a message calls at its limit",
        "messages", "not measured; see messages of infeasible plans",
    )  # fmt: skip
    report_multiplier: float = _number(
        1e-2, 0.0, 1.0,
        "multiplier of an equality, relative to the largest, that a message names",
        "messages", "not measured; see messages of infeasible plans",
    )  # fmt: skip
    # initial guesses
    defect_closed: float = _number(
        1e-6, 0.0, 1e-2,
        "defect up to which a guess is dynamically feasible",
        "rollouts of B and Talos", "none of 14 problems by 2 %",
    )  # fmt: skip
    regulator_caution: float = _number(
        100.0, 1.0, 1e6,
        "factor between the control weights of the regulators that are tried",
        "problem A from rest", "cart-pole, tight at 1000: 129 iterations for 57",
    )  # fmt: skip
    regulator_guesses: int = _number(
        3, 1, 6,
        "number of regulators that are tried",
        "problem A from rest", "problem A at 1: 7 of 12 converge",
    )  # fmt: skip
    policy_period: float = _number(
        0.05, 1e-6, 1e3,
        "longest period of a policy",
        "problem A", "cylinder at 0.005: 27 iterations for 25", unit="s",
    )  # fmt: skip
    same_node: float = _number(
        1e-6, 0.0, 0.1,
        "difference of times, in steps, up to which nodes are the same",
        "rounding of clocks", "not measured; see test_export.py, clocks",
    )  # fmt: skip
    same_node_roundings: float = _number(
        4.0, 0.0, 1e3,
        "the same, in roundings of a time",
        "rounding of clocks", "not measured; see test_hostile.py, clocks",
    )  # fmt: skip
    # the loop around the solver
    jump: float = _number(
        2.0, 1.0, 1e6,
        "rise of the cost, relative to the recent cost, that is a jump",
        "designs, seeds 0 to 4", "not measured; see test_mpc_practice.py, restarts",
    )  # fmt: skip
    jump_fading: float = _number(
        7.4, 1.0, 1e6,
        "factor by which recent cost is forgotten in a horizon",
        "designs, seeds 0 to 4", "not measured; see test_mpc_practice.py, restarts",
    )  # fmt: skip
    jump_noise: float = _number(
        1e-2, 0.0, 1.0,
        "share of the largest cost that is noise",
        "designs, seeds 0 to 4", "not measured; see test_mpc_practice.py, restarts",
    )  # fmt: skip
    bias_settling: float = _number(
        10.0, 0.1, 1e6,
        "time constant of the disturbance estimate",
        "wrong mass of the Panda",
        "not measured; see test_mpc.py, steady disturbances", unit="periods",
    )  # fmt: skip
    bias_unobservable: float = _number(
        1e-6, 0.0, 1e-1,
        "singular value, relative, below which a direction of the disturbance is unobservable",
        "rounding of differences", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    rank: float = _number(
        1e-9, 0.0, 1e-2,
        "singular value, relative, that counts as zero in inverses of the effect of inputs",
        "rounding", "not measured; see test_riccati.py, driving inputs",
    )  # fmt: skip
    bias_difference: float = _number(
        1e-3, 1e-9, 1.0,
        "step of the differences of a prediction",
        "rounding", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    target_error: float = _number(
        1e-6, 0.0, 1.0,
        "weight on errors of the steady state beyond Q, relative",
        "uniqueness", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    target_effort: float = _number(
        1e-8, 0.0, 1.0,
        "weight on its inputs, relative",
        "uniqueness", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    target_steps: int = _number(
        12, 1, 100,
        "Newton steps for the steady state",
        "offset-free tests", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    target_found: float = _number(
        1e-8, 0.0, 1e-2,
        "size of the last of them, relative",
        "offset-free tests", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    target_same: float = _number(
        1e-3, 0.0, 1.0,
        "share of a step by which a secant must differ from zero",
        "offset-free tests", "not measured; see test_mpc.py, steady disturbances",
    )  # fmt: skip
    clock_rounding: float = _number(
        1e-3, 0.0, 0.1,
        "rounding of times in periods above which a clock is refused",
        "clocks of long runs", "not measured; see test_hostile.py, clocks",
    )  # fmt: skip

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


def c_settings() -> str:
    """C text of ``lg_settings``, the struct that `settings_mirror` fills."""
    kinds = {int: "int64_t", float: "double"}
    lines = [f"  {kinds[type(entry.default)]} {entry.name};" for entry in fields(Settings)]
    return "\n".join(["typedef struct {", *lines, "} lg_settings;"])


def c_values(settings: Settings, name: str) -> str:
    """C text of a constant ``lg_settings``."""
    values = [
        str(value) if isinstance(value, int) else c_number(value)
        for value in (getattr(settings, entry.name) for entry in fields(settings))
    ]
    return f"static const lg_settings {name} = {{{', '.join(values)}}};"


def settings_mirror(settings: Settings) -> ctypes.Structure:
    """``lg_settings`` with these values."""
    return _mirror()(*(getattr(settings, entry.name) for entry in fields(settings)))


@cache
def _mirror() -> type[ctypes.Structure]:
    kinds = {int: ctypes.c_int64, float: ctypes.c_double}
    members = [(entry.name, kinds[type(entry.default)]) for entry in fields(Settings)]
    return type("lg_settings", (ctypes.Structure,), {"_fields_": members})
