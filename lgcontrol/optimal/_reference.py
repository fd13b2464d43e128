"""References: constants, trim points, trajectories, sampled at the nodes of a horizon."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, prepare
from ..codegen._internal import check_shape, memoized, pseudo_inverse
from ..groups import Product, check_element
from ..systems import ReferenceLike, System, Trajectory, TrimPoint
from ..systems._internal import (
    TrajectoryPoint,
    ask_of_state,
    check_units,
    coordinate_sizes,
    field_derivatives,
    is_motion,
)

# A time that misses the end of a trajectory by rounding [s] is the end.
TIME_ROUNDING = 1e-9
# Difference of times, in steps and in roundings of a time, up to which nodes are the same.
SAME_NODE, SAME_NODE_ROUNDINGS = 1e-6, 4.0
# Share of a period by which the numbers near a time may be apart: later clocks tell no periods.
CLOCK_ROUNDING = 1e-3
# Singular values of the effect of inputs that count as none, as shares of the largest.
RANK = 1e-9
# Calls that a loop is taken to last for.
CALLS = 1000


class ReferenceSamples(NamedTuple):
    """States (k, nq) and inputs (k, n_inputs) to follow, one row a time."""

    x: np.ndarray
    u: np.ndarray


_WRITTEN = (list, tuple, np.ndarray, float, int)  # one state, as people write it


def sample_reference(
    system: System,
    reference: ReferenceLike | ReferenceSamples | None,
    times: np.ndarray,
    p: np.ndarray | None = None,
) -> ReferenceSamples:
    """States and inputs of a reference at increasing times in s.

    A reference is a state, an object with ``x`` and ``u``, a Trajectory, a motion of the
    configuration, or a function of one time that returns such. Without inputs it gets those that
    come nearest to moving the system along it: hover thrusts for a state at rest. A Trajectory
    keeps its last state. From there on it has the inputs that come nearest to holding the system at
    rest there.

    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> sample_reference(wheel, [1.0, 0.0], np.arange(3)).u.shape
    (3, 1)
    """
    if isinstance(reference, ReferenceSamples):
        return reference
    if reference is None:
        raise ValueError(
            f"{system.name} has no reference to follow: give reference=, a state, a TrimPoint or a "
            "Trajectory"
        )
    written: Any = reference if type(reference) in _WRITTEN else None
    if written is not None and np.ndim(written) != 1:
        raise ValueError(
            f"reference has shape {np.shape(written)}, expected ({system.state.nq},), one state "
            f"of {system.name}; states at times are Trajectory({system.name}.state, t, x)"
        )
    times = np.asarray(times, dtype=np.float64)
    p = system.nominal_parameters if p is None else p
    if is_motion(reference):
        x, rates = reference.states(system, times)
        u = _driving_inputs(system, times, x, p, None if system.is_discrete else rates)
        return ReferenceSamples(x, u)
    if isinstance(reference, Trajectory):
        check_units("the reference", system, reference)
    point = points_of(reference, times)
    x, u = getattr(point, "x", point), getattr(point, "u", None)
    if u is None or np.shape(u)[-1:] == (0,):
        x, u = _driven(system, times, x, p)
        if not np.isfinite(u).all():
            values = zip(system.parameters, p, strict=True)
            given = ", ".join(f"{entry.name} = {value:g}" for entry, value in values)
            first = np.atleast_2d(x)[0]
            why = system.unsolved(times[0], first, system.nominal_input, p)
            raise ValueError(
                f"nobody can say what holds {system.name} at the reference: its rate there is not "
                f"finite{' with ' + given if given else ''}: give other parameters or another "
                f"reference, or one with inputs{': ' + why if why else ''}"
            )
    elif np.ndim(x) == np.ndim(u) == 1 and not isinstance(reference, Trajectory):
        return _along(times, *_constant(system, x, u))
    else:
        x = _check_states(system, x)
    if np.shape(u)[-1] == len(system.input_index("control")) != system.n_inputs:
        u = system.full_input(u)
    u = check_shape("the reference's input", u, (system.n_inputs,), batch=True)
    if isinstance(reference, Trajectory):
        u = _at_rest_after(system, reference, times, u, p)
    return _along(times, x, u)


def prepare_sampling(system: System, reference: ReferenceLike | None, count: int) -> None:
    """Compile what samples of a motion take at every call of a loop, where that pays."""
    if is_motion(reference):
        used, known = [field_derivatives(system)], system.structure
        if known is not None and known.motion is not None:
            used.append(cast(ModelFunction, known.motion))  # systems trace what they are given
        prepare(*used, calls=CALLS, items=count)


def _along(times: np.ndarray, x: np.ndarray, u: np.ndarray) -> ReferenceSamples:
    """States and inputs, a row for each time; constants are repeated.

    Each call of a controller asks, and views take ten times as long.
    """
    states, inputs = (np.empty((len(times), values.shape[-1])) for values in (x, u))
    states[:], inputs[:] = x, u
    return ReferenceSamples(states, inputs)


def _constant(system: System, x: Any, u: Any) -> tuple[np.ndarray, np.ndarray]:
    """A state and its input, checked; those of one point stay for next time."""
    given, kept = (np.asarray(x).tobytes(), np.asarray(u).tobytes()), system.memo(("held",), dict)
    last = kept.get("last")  # one value, as in `_driven`
    if last is None or last[0] != given:
        x = _check_states(system, x)
        if len(u) == len(system.input_index("control")) != system.n_inputs:
            u = system.full_input(u)
        u = check_shape("the reference's input", u, (system.n_inputs,))
        kept["last"] = last = given, (x.copy(), u.copy())
    return last[1]


def _driven(
    system: System, times: np.ndarray, x: Any, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """States and inputs that come nearest to driving them; those of one state stay for next time.

    A controller is told the same state at every call, and pseudo-inverses take long.
    """
    x = check_shape("the reference's state", x, (None,), batch=True, finite=False)
    if x.ndim > 1 or depends_on_time(system):
        states = _check_states(system, x)
        return states, _driving_inputs(system, times, states, p)
    kept = system.memo(("driven",), dict)
    last = kept.get("last")  # one value, so that threads with other states do not mix theirs
    if last is None or not (np.array_equal(x, last[0]) and np.array_equal(p, last[1])):
        state = _check_states(system, x)
        driving = _driving_inputs(system, times, state, p)
        kept["last"] = last = (x.copy(), p.copy(), (state.copy(), driving))
    return last[2]


def points_of(reference: ReferenceLike, times: np.ndarray) -> Any:
    """What a reference is at times: one value for those that stay, one row a time for others.

    >>> points_of(lambda t: [t, 0.0], np.array([1.0, 2.0]))
    array([[1., 0.],
           [2., 0.]])
    """
    if not (callable(reference) and moves(reference)):
        return reference
    if isinstance(reference, Trajectory | TrimPoint):
        return reference(times)
    if isinstance(reference, type):
        raise TypeError(
            f"reference is the class {reference.__name__}: give one, {reference.__name__}(…), a "
            "state, a Trajectory, or a function of time"
        )
    points = [reference(float(t)) for t in times]
    if hasattr(points[0], "u"):
        return TrajectoryPoint(np.array([e.x for e in points]), np.array([e.u for e in points]))
    return np.array([getattr(point, "x", point) for point in points])


def _check_states(system: System, x: Any) -> np.ndarray:
    """States of a reference as elements of the group."""
    group, name = system.state, "the reference's state"
    x = check_shape(name, x, (None,), batch=True, finite=False)
    if x.shape[-1] != group.nq:
        blocks = group.blocks if isinstance(group, Product) else {}
        alone = [key for key, block in blocks.items() if block.nq == x.shape[-1] != group.nq]
        join = f"{system.name}.state.join({alone[0]}=…) adds the others" if alone else ""
        raise ValueError(
            f"{name} has {x.shape[-1]} coordinates, expected {group.nq}: those of "
            f"{coordinate_sizes(group)}{join and '; '}{join}"
        )
    states = check_element(name, x, group, batch=True)
    if states.ndim == 1:
        ask_of_state(name, states, group)
    return states


def _at_rest_after(
    system: System, trajectory: Trajectory, times: np.ndarray, u: np.ndarray, p: np.ndarray
) -> np.ndarray:
    """Inputs u along a trajectory, from its end on those that hold its last state.

    One node alone is a point with its input.
    """
    end = trajectory.t[-1]
    has_own = trajectory.u.shape[-2] == len(trajectory)  # the input at the last time itself
    after = times > end + TIME_ROUNDING if has_own else times > end - TIME_ROUNDING
    if len(trajectory) < 2 or not after.any():
        return u
    rest = _at_rest(system, trajectory.x[-1:])
    still = np.zeros((1, system.state.dim))
    held = _driving_inputs(system, np.maximum(times, end), rest, p, still)
    return np.where(after[:, None], held, u)


def _at_rest(system: System, x: np.ndarray) -> np.ndarray:
    """States without their velocities."""
    rest = x.copy()
    rest[..., list(system.velocities.values())] = 0.0
    return rest


def holding_inputs(system: System, t: Value, x: np.ndarray, p: np.ndarray) -> Value:
    """Inputs that come nearest to holding a system at rest at a place, as a function of time.

    The velocities of x do not count. `sample_reference` has these inputs after the end of a
    Trajectory.
    """
    kind, controls = type(t), system.input_index("control").tolist()
    values = {"x": _at_rest(system, x), "u": system.nominal_input, "p": p}
    given = {key: kind(ca.DM(value)) for key, value in values.items()}
    here = field_derivatives(system).function.call({"t": t} | given)
    u = given["u"]
    u[controls] -= pseudo_inverse(here["B"][:, controls], RANK) @ here["rate"]
    lower, upper = map(ca.DM, system.input_bounds)
    return ca.fmin(ca.fmax(u, lower), upper)


def moves(reference: object) -> bool:
    """Whether a reference is a function of time, other than a point that stays where it is.

    >>> moves([1.0, 0.0]), moves(lambda t: [t, 0.0])
    (False, True)
    """
    if not callable(reference) or getattr(reference, "kind", None) == "equilibrium":
        return False
    return bool(np.any(getattr(reference, "rate", 1.0)))


def check_constant(system: System, reference: ReferenceLike | ReferenceSamples) -> None:
    """Refuse what firmware cannot follow: a reference that is a function of time."""
    if isinstance(reference, ReferenceSamples):
        return
    kind = type(reference).__name__
    remedy = (
        "export with a constant state, and write the reference of all nodes to x_ref and u_ref "
        "before every call; u_ref holds the inputs that lead from each node to the next"
    )
    if moves(reference):
        raise NotImplementedError(
            f"an exported MPC does not sample a reference that moves (a {kind}): {remedy}"
        )
    if getattr(reference, "u", None) is None and depends_on_time(system):
        raise NotImplementedError(
            f"the inputs that hold {system.name} at the reference depend on time: give a reference "
            f"with inputs u, or {remedy}"
        )


@memoized
def depends_on_time(system: System) -> bool:
    """Whether the field of a system is a function of time, by its structure.

    >>> from lgcontrol.groups import Rn
    >>> depends_on_time(System("tide", Rn(1), lambda t, x, u, p: u - t, inputs=["pump"]))
    True
    """
    return bool(system.f.function.jac_sparsity(0, 0).nnz())


def _driving_inputs(
    system: System, times: np.ndarray, x: np.ndarray, p: np.ndarray, rates: np.ndarray | None = None
) -> np.ndarray:
    """Inputs near the nominal ones whose field comes nearest to the rate of x, within bounds.

    Rates that are not given are differences. One state has one input, or one for each time where
    the field depends on it.
    """
    states = x.reshape(-1, system.state.nq)
    if len(states) == 1 and len(times) > 1 and depends_on_time(system):
        x = states = np.repeat(states, len(times), axis=0)
    if rates is None:
        rates = np.zeros((len(states), system.state.dim))
        if len(states) > 1:
            rates[:-1] = system.state.minus(states[1:], states[:-1])
            rates[:-1] /= 1.0 if system.is_discrete else np.diff(times)[:, None]
            rates[-1] = rates[-2]
    controls = system.input_index("control")
    here = field_derivatives(system)(times[: len(states)], states, system.nominal_input, p)
    B = here.B[..., controls]
    missing = (rates - here.rate)[..., None]
    u = np.tile(system.nominal_input, (len(states), 1))
    known = np.isfinite(B).all(axis=(-2, -1)) & np.isfinite(missing).all(axis=(-2, -1))
    inverse = np.linalg.pinv(np.where(known[:, None, None], B, 0.0), rcond=RANK)
    u[:, controls] += np.where(known[:, None], (inverse @ missing)[..., 0], np.nan)
    lower, upper = system.input_bounds
    return np.clip(u, lower, upper).reshape(*x.shape[:-1], system.n_inputs)
