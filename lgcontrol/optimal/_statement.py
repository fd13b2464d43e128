"""Statement: what users say of an optimal control problem, checked and with its defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import (
    UnknownNameError,
    check_count,
    check_list,
    check_shape,
    read_only,
    unknown_name,
)
from ..integrators import METHODS, Method, get_method
from ..integrators._internal import ImplicitRungeKutta
from ..systems import Parameter, System
from ..systems._internal import from_wide_to_narrow
from ._bounds import Bound, check_numbers
from ._expressions import parameter_index
from ._places import control_places, error_places
from ._terms import Cost, Residual, Term, of_quantity
from ._weights import WeightLike, error_weight, named_places, single_numbers, with_numbers

# Points of integrals over a step, as shares of it, with their weights.
QUADRATURES: dict[str, tuple[tuple[float, float], ...]] = {
    "left": ((0.0, 1.0),),
    "gauss": ((0.5 - 3**-0.5 / 2, 0.5), (0.5 + 3**-0.5 / 2, 0.5)),
}
# The rule of the collocation points of the method.
AT_POINTS = "collocation"
# The rule for integrals where nobody chooses one, by what inputs are between nodes.
QUADRATURE_OF = {"zero": "left", "first": "gauss", AT_POINTS: AT_POINTS}
MOST_HORIZON = 100_000  # stages of one problem
# Weights that have to be positive: of controls, and of soft bounds.
LEAST_WEIGHT = float(np.finfo(np.float64).tiny)


def check_horizon(value: Any, dt: Any) -> int:
    """Number of steps."""
    # A float is a time that was meant, even where it is a whole number.
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        text = f"horizon must be a whole number of steps, at least 1, got {value!r}"
        if isinstance(dt, int | np.integer) and isinstance(value, float) and 0 < value < dt:
            text += f"; it comes before dt: horizon={dt}, dt={value:g}"
        elif isinstance(value, float | np.floating) and value > 0 and np.ndim(dt) == 0 and dt:
            text += f"; {value:g} s are {max(1, round(value / dt))} steps of {dt:g} s"
        raise ValueError(text)
    return check_count("horizon", value, most=MOST_HORIZON, remedy="plan a shorter time")


def names_of_parameters(system: System, extra: Sequence[Parameter]) -> list[str]:
    """Names of the system's parameters, then of the problem's own."""
    names = [entry.name for entry in (*system.parameters, *extra)]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"parameters of the same name: {', '.join(sorted(twice))}")
    return names


def end_weight(
    system: System, value: WeightLike | str | None, default: np.ndarray, parts: Mapping[str, slice],
    nominal: Mapping[str, float],
) -> np.ndarray | str:  # fmt: skip
    """Weight on the last error, or "riccati"."""
    if isinstance(value, str):
        if value != "riccati":
            raise ValueError(f"terminal must be a weight or 'riccati', not {value!r}")
        return value
    weight = default if value is None else error_weight("terminal", value, system)
    return read_only(with_numbers("terminal", weight, parts, nominal))


def arrival_weight(system: System, value: WeightLike | None, free: np.ndarray) -> np.ndarray:
    """Weight on the error of a free initial state."""
    if value is None:
        return np.zeros((system.n_errors, system.n_errors))
    weight = error_weight("arrival", value, system)
    if weight.any() and not len(free):
        raise ValueError("arrival weighs initial states that are free: name them, free=…")
    return weight


def checked_terms(
    system: System, made: type[Term], given: Sequence[Term], names: Sequence[str]
) -> tuple[Term, ...]:
    """Residuals or costs, of quantities as functions."""
    kinds = f"{made.__name__.lower()}s"
    checked = check_list(kinds, given, made, f"{made.__name__}(function)")
    terms = tuple(of_quantity(system, term) for term in checked)
    for term in terms:
        for weight in (term.weight, term.terminal):
            if isinstance(weight, str):
                parameter_index(f"weight of {term._label}", weight, names)
    return terms


def check_horizon_of(terms: Sequence[Bound | Residual | Cost], horizon: int) -> None:
    """Refuse nodes beyond the horizon."""
    for term in terms:
        if isinstance(term.at, range):
            label = f"bound {term.label!r}" if isinstance(term, Bound) else term._label
            check_numbers(label, term.at, horizon)


def check_steps(system: System, horizon: int, dt: ArrayLike | None) -> np.ndarray:
    """Lengths of the steps, s."""
    if dt is None or np.ndim(dt) == 0:
        return np.full(horizon, _check_step(system, dt))
    if system.is_discrete:
        raise ValueError(f"{system.name} has the sample time {system.dt:g} s: leave dt out")
    steps = check_shape("dt", dt, (None,))
    if len(steps) != horizon:
        raise ValueError(
            f"dt has {len(steps)} lengths for {horizon} steps: give one number, or as many as "
            "the horizon has steps"
        )
    if not (steps > 0).all():
        k = int(np.argmin(steps))
        raise ValueError(f"dt must be positive, got {steps[k]:g} s for step {k}")
    return steps


def collocation_of(method: str | Method) -> ImplicitRungeKutta:
    """A collocation method, whose last row of A has the weights of its quadrature."""
    found = get_method(method)
    if not isinstance(found, ImplicitRungeKutta):
        known = [name for name, one in METHODS.items() if isinstance(one, ImplicitRungeKutta)]
        raise ValueError(
            f"collocation points are those of an implicit Runge-Kutta method, {found.name} has "
            f"none: give method={known[0]!r}"
        )
    return found


def points_within(
    step: Any, quadrature: str, t: Any, x: Any, u: Any, p: Any, dt: Any
) -> list[tuple[float, Any, Any]]:
    """Weight, time and state of the points of a step at which a rule takes integrals."""
    found, before = [], 0.0
    for place, share in QUADRATURES[quadrature]:
        if place > before:
            x = step(t + before * dt, x, u, p, (place - before) * dt)
        found.append((share, t + place * dt, x))
        before = place
    return found


def check_points(problem: Any) -> None:
    """Refuse integrals at collocation points where steps have none."""
    system, method = problem.system, collocation_of(problem.method)
    if problem.substeps != 1:
        raise ValueError(
            f"collocation points are those of one step of {method.name}, not of "
            f"{problem.substeps} substeps: give shorter steps, dt, and leave substeps out"
        )
    if system.errors is not None or system.project is not None:
        raise ValueError(f'{system.name} has constraints: leave quadrature at "gauss"')


def check_blocks(system: System, horizon: int, blocks: Any) -> np.ndarray | None:
    """Steps in which each control may change, 1 or 0 of shape (N, m); None if all may in all."""
    if blocks is None:
        return None
    if system.is_discrete:
        raise ValueError(f"blocks: {system.name} is discrete: make what it holds a state")
    places, m = control_places(system), len(system.input_index("control"))
    given = blocks if isinstance(blocks, Mapping) else {"": blocks}
    may = np.ones((horizon, m))
    for name in given:
        if name and name not in places:
            raise UnknownNameError(unknown_name("control", name, places))
    order = from_wide_to_narrow("blocks", {name: places[name] for name in given if name})
    for name in order or given:
        value = given[name]
        what = f"blocks of {name!r}" if name else "blocks"
        may[:, places[name] if name else slice(m)] = _changes(what, horizon, value)[:, None]
    return None if may.all() else read_only(may)


def _changes(what: str, horizon: int, value: Any) -> np.ndarray:
    """1 at the first step of each block, else 0."""
    may = np.zeros(horizon)
    if not np.ndim(value):
        may[:: check_count(what, value, most=MOST_HORIZON)] = 1.0
        return may
    lengths = [check_count(what, length, most=MOST_HORIZON) for length in value]
    if sum(lengths) != horizon:
        raise ValueError(
            f"{what} have {sum(lengths)} steps, the horizon has {horizon}: lengthen the last one, "
            "or give one number, the steps of every block"
        )
    may[(np.cumsum(lengths) - lengths).astype(np.intp)] = 1.0
    return may


def check_input_hold(system: System, value: Any, method: str | Method) -> str:
    """What inputs are between the nodes: as in a trajectory, or collocated."""
    if value not in QUADRATURE_OF:
        raise UnknownNameError(unknown_name("hold", str(value), QUADRATURE_OF))
    if value != "zero" and system.is_discrete:
        raise ValueError(
            f"hold={value!r}: {system.name} is discrete and has no inputs within a step: leave it "
            'at "zero"'
        )
    if value == AT_POINTS and method != "auto":
        collocation_of(method)
    return value


def check_quadrature(system: System, value: Any, hold: str = "zero") -> str:
    """Name of a rule for integrals over a step; what inputs between the nodes need if none."""
    value = QUADRATURE_OF[hold] if value is None else value
    if value not in (*QUADRATURES, AT_POINTS):
        raise UnknownNameError(unknown_name("quadrature", str(value), (*QUADRATURES, AT_POINTS)))
    if value != "left" and system.is_discrete:
        raise ValueError(
            f"quadrature={value!r}: {system.name} is discrete and has no states within a step: "
            'leave it at "left"'
        )
    if value != AT_POINTS and hold == AT_POINTS:
        raise ValueError(
            f'quadrature={value!r}: hold="collocation" weighs inputs at the collocation points: '
            "leave quadrature out"
        )
    if value == "left" and hold == "first":
        raise ValueError(
            'quadrature="left" takes the input at the start of a step, and hold="first" has one at '
            'its end: leave quadrature out, which is "gauss" then'
        )
    return value


def _check_step(system: System, dt: Any) -> float:
    """Length of a step, s."""
    if system.is_discrete:
        if dt is not None and abs(dt - system.dt) > 1e-9 * system.dt:
            raise ValueError(f"{system.name} has the sample time {system.dt:g} s, not dt={dt:g} s")
        return system.dt
    if dt is None:
        raise ValueError(f"{system.name} is continuous: give dt, the length of a step in s")
    value = float(check_shape("dt", dt, ()))
    if value <= 0:
        raise ValueError(f"dt must be positive, got {value:g} s")
    return value


class Parametric(NamedTuple):
    """Terms of a problem in which numbers became `parameters`; also entries of its weights."""

    bounds: tuple[Bound, ...]
    residuals: tuple[Residual, ...]
    costs: tuple[Cost, ...]
    weights: list[str]
    parameters: list[Parameter]


def made_parameters(
    system: System, names: Sequence[str], bounds: Sequence[Bound], residuals: Sequence[Residual],
    costs: Sequence[Cost], terms: Mapping[str, np.ndarray | str],
) -> Parametric:  # fmt: skip
    """Limits and weights as parameters; see `OptimalControlProblem.symbolic`."""
    limits, weighed = list(bounds), [*residuals, *costs]
    labels = [entry.name for entry in weighed]
    places = {
        f"{bound.label}.{side}": (i, side)
        for i, bound in enumerate(bounds)
        for side in ("lower", "upper", "soft")
        if _is_limit(getattr(bound, side))
    }
    for entry in system.inputs:
        own = [f"{entry.name}.{side}" for side in ("lower", "upper")]
        if entry.role != "control" or not {*own} & {*names} - {*places}:
            continue
        limits.append(Bound(entry.name, entry.lower, entry.upper))
        last = len(limits) - 1
        places |= {name: (last, name.rpartition(".")[2]) for name in own if name not in places}
    of_terms = {
        f"{entry.name}.{side}": (i, side)
        for i, entry in enumerate(weighed)
        for side in ("weight", "terminal")
        if _is_limit(getattr(entry, side)) and labels.count(entry.name) == 1
    }
    weights, made, single = [], [], dict[str, float]()
    for term, matrix in terms.items():
        if not isinstance(matrix, str) and matrix.ndim == 2:
            own = (control_places if term == "R" else error_places)(system)
            single |= single_numbers(matrix, named_places(term, own))
    for name in names:
        least = 0.0
        if name in places:
            i, side = places[name]
            label = name.rpartition(".")[0]
            alike = [one for one in bounds if one.label == label and _is_limit(getattr(one, side))]
            if len(alike) > 1:
                raise ValueError(
                    f"symbolic: several bounds called {label!r} have a limit {side!r}: give each "
                    "Bound a name= of its own"
                )
            value, least = getattr(limits[i], side), LEAST_WEIGHT if side == "soft" else -np.inf
            limits[i] = replace(limits[i], **{side: name})
        elif name in of_terms:
            i, side = of_terms[name]
            value, least = getattr(weighed[i], side), 0.0 if i < len(residuals) else -np.inf
            weighed[i] = replace(weighed[i], **{side: name})
        elif name in single:
            value, least = single[name], LEAST_WEIGHT if name.partition(".")[0] == "R" else 0.0
            weights.append(name)
        else:
            known = (*places, *of_terms, *single)
            raise UnknownNameError(unknown_name("limit or weight", name, known))
        made.append(Parameter(name, "", float(value), least))
    count = len(residuals)
    squares: Any = weighed[:count]
    others: Any = weighed[count:]
    return Parametric(tuple(limits), tuple(squares), tuple(others), weights, made)


def _is_limit(value: Any) -> bool:
    """Whether a limit or a weight is one finite number."""
    if value is None or isinstance(value, str) or np.ndim(value):
        return False
    return bool(np.isfinite(value))
