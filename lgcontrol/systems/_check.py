"""Checks of systems: what a system promises, and whether it is group-affine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import named_options
from ..codegen._internal import MOST_SUBSTEPS, check_count
from ._definition import SystemDefinition
from ._signals import control_name
from ._step import field_derivatives, step_function
from ._tracing import check_state, complete_input, complete_parameters, symbols_of

CHECK_STEP = 1e-5  # of central differences: truncation about 1e-10, rounding about 1e-11
_FINE = (0.0, "")
NEAR_HOME = 0.1  # of samples around a home, in error coordinates
# States compared, and what rounding may leave of an exact cancellation between them.
POINTS = 8
AFFINE_ROUNDING = 1e-10


@named_options
def check_system(
    system: SystemDefinition,
    x: Any = None,
    u: Any = None,
    *,
    p: Any = None,
    samples: int = 10,
    seed: int = 0,
    tolerance: float = 1e-6,
) -> dict[str, float]:
    """Largest violation of what the toolkit relies on, over sampled states and inputs.

    Parameters
    ----------
    system : System
        For example a user's own.
    x : array_like, shape (samples, nq), optional
        States to look at; random ones if left out. They are projected first.
    u : array_like, shape (n_inputs,) or (samples, n_inputs), optional
        Inputs; random ones within the bounds, around the nominal input, if left out.
    p : array_like, shape (n_parameters,), optional
    samples : int
        Number of random states.
    seed : int
    tolerance : float
        Largest violation that passes, next to the size of what is compared.

    Returns
    -------
    dict of str to float
        Violation of each check that applies, by name: distinct names; finite field, output and
        quantities; output on its group; the same answer for both signs of a quaternion; exact
        derivatives against central differences on the group (give x away from kinks); a structure
        that gives f, with a loss Jacobian that belongs to the losses or, where it is plain, to the
        force at rest (elsewhere other forces may depend on the velocity, and D is believed), and
        momenta that move with it; error coordinates that fit the constraints; integration that
        converges with its order; invariants constant for the nominal input; idempotent
        projection; pickling.

    Raises
    ------
    ValueError
        If any check fails; the message lists all that do, and where.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import System, check_system
    >>> pendulum = System("pendulum", Product(angle=SO2, rate=Rn(1)),
    ...                   lambda t, x, u, p: ca.vertcat(x[2], u - x[1]), inputs=["torque"])
    >>> max(check_system(pendulum).values()) < 1e-6
    True
    """
    check_count("samples", samples, most=MOST_SUBSTEPS)
    points = _sample(system, x, u, p, samples, seed)
    found: dict[str, tuple[float, str]] = {}
    for name, check in CHECKS.items():
        result = check(system, points)
        if result is not None:
            found[name] = result
        if check is _finite and result is not None and result[0]:
            break  # the other checks would tell the same once more
    failed = [
        f"{name}: off by {size:.2g}{f' ({where})' if where else ''}"
        for name, (size, where) in found.items()
        if not size <= tolerance
    ]
    if failed:
        raise ValueError(f"{system.name} is not a consistent system:\n- " + "\n- ".join(failed))
    return {name: size for name, (size, _) in found.items()}


def _sample(
    system: SystemDefinition, x: Any, u: Any, p: Any, samples: int, seed: int
) -> SampledPoints:
    rng = np.random.default_rng(seed)
    p = complete_parameters(system, p)
    if x is None and (system.home != system.state.identity).any():
        x = system.retract(system.home, NEAR_HOME * rng.normal(size=(samples, system.n_errors)), p)
    elif x is None:
        x = system.state.random(rng, (samples,))
    x = np.atleast_2d(check_state(system, "x", x, batch=True))
    if system.project is not None:
        x = system.project(x, p)
    if u is None:
        lower, upper = system.input_bounds
        nominal = system.nominal_input
        low = np.where(np.isfinite(lower), lower, nominal - 1)
        high = np.where(np.isfinite(upper), upper, nominal + 1)
        u = rng.uniform(np.minimum(low, high), high, size=(len(x), system.n_inputs))
    u = complete_input(system, "u", u, batch=True)
    t = rng.uniform(0.0, 10.0, size=len(x))
    return SampledPoints(t, x, np.broadcast_to(u, (len(x), system.n_inputs)), p)


# The checks: each returns the size of the largest violation and where it is


Finding = tuple[float, str] | None
"""Size of a violation next to what is compared, and where; None where a check does not apply."""


@dataclass(frozen=True, eq=False)
class SampledPoints:
    """Samples to check, one a row; p is the same for all."""

    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray


def _worst(off: np.ndarray, scale: np.ndarray | float, names: tuple[str, ...]) -> tuple[float, str]:
    """Largest entry of an array (samples, rows) next to its scale, with its row and sample."""
    if off.size == 0:
        return _FINE
    relative = np.nan_to_num(np.abs(off) / scale, nan=np.inf)
    k, i = np.unravel_index(int(np.argmax(relative)), relative.shape)
    return float(relative[k, i]), f"{names[i]}, sample {k}"


def _slope(function: Callable[[float], np.ndarray], minus: Any = np.subtract) -> np.ndarray:
    """Derivative of a function of a number at zero, by a central difference."""
    return minus(function(CHECK_STEP), function(-CHECK_STEP)) / (2 * CHECK_STEP)


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}[{i}]" for i in range(count))


def _names(system: SystemDefinition, at: SampledPoints) -> Finding:
    kinds = {
        "state or input": (*system.state.coordinate_names, *system.input_names),
        "tangent": system.state.tangent_names,
        "output": map(control_name, system.output.tangent_names),
        "input": map(control_name, system.input_names),
        "parameter": system.parameter_names,
    }
    twice = [
        f"{kind} {name!r}"
        for kind, names in ((kind, list(names)) for kind, names in kinds.items())
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return (np.inf, "twice: " + ", ".join(twice)) if twice else _FINE


def _finite(system: SystemDefinition, at: SampledPoints) -> Finding:
    bad = []
    for name, function in {"f": system.f, "h": system.h, **system.quantities}.items():
        fine = np.isfinite(function(at.t, at.x, at.u, at.p)).all(axis=-1)
        if not fine.all():
            k = int(np.argmin(fine))
            why = "" if bad else system.unsolved(at.t[k], at.x[k], at.u[k], at.p)
            names = (*system.state.coordinate_names, *system.input_names)
            point = zip(names, (*at.x[k], *at.u[k]), strict=True)
            told = ", ".join(f"{one} = {value:.4g}" for one, value in point)
            bad.append(f"{name} at sample {k}" + (f": {why}; here {told}" if why else ""))
    return (np.inf, ", ".join(bad)) if bad else _FINE


def _on_group(system: SystemDefinition, at: SampledPoints) -> Finding:
    y = system.h(at.t, at.x, at.u, at.p)
    return _worst(y - system.output.normalize(y), 1.0, system.output.coordinate_names)


def _both_signs(system: SystemDefinition, at: SampledPoints) -> Finding:
    """A full turn leads to the other quaternion of the same state."""
    state, found = system.state, None
    for i in np.flatnonzero(np.array(state.tangent_units) == "rad"):
        other = state.plus(at.x, 2 * np.pi * np.eye(state.dim)[i])
        if np.abs(state.minus(other, at.x)).max() > 1e-6:
            continue  # an unwrapped angle: another state, though the same pose
        here, there = (system.f(at.t, x, at.u, at.p) for x in (at.x, other))
        y, z = (system.h(at.t, x, at.u, at.p) for x in (at.x, other))
        found = max(
            found or _FINE,
            _worst(there - here, 1 + np.abs(here).max(), _prefixed("f", state.tangent_names)),
            _worst(system.output.minus(z, y), 1.0, _prefixed("h", system.output.tangent_names)),
        )
    return found


def _prefixed(what: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{what}: {name}" for name in names)


def _derivatives(system: SystemDefinition, at: SampledPoints) -> Finding:
    exact = field_derivatives(system)(at.t, at.x, at.u, at.p)
    state, output = system.state, system.output

    def differences(function: Callable, minus: Any) -> tuple[np.ndarray, np.ndarray]:
        by_x = [
            _slope(lambda h, d=d: function(at.t, state.plus(at.x, h * d), at.u, at.p), minus)
            for d in np.eye(state.dim)
        ]
        by_u = [
            _slope(lambda h, d=d: function(at.t, at.x, at.u + h * d, at.p), minus)
            for d in np.eye(system.n_inputs)
        ]
        shape = (*by_x[0].shape, 0)
        return np.stack(by_x, axis=-1), np.stack(by_u, axis=-1) if by_u else np.zeros(shape)

    if system.is_discrete:
        A, B = differences(step_function(system), state.minus)
    else:
        A, B = differences(system.f, np.subtract)
        A = A - state.ad(exact.rate)
    C, D = differences(system.h, output.minus)
    return max(
        _worst(
            np.abs(found - expected).max(axis=-1, initial=0.0),
            1 + np.abs(expected).max(initial=0.0),
            tuple(f"{name}: {row}" for row in group.tangent_names),
        )
        for name, found, expected, group in (
            ("A", A, exact.A, state),
            ("B", B, exact.B, state),
            ("C", C, exact.C, output),
            ("D", D, exact.D, output),
        )
    )


def _losses_at_rest(system: SystemDefinition, at: SampledPoints, names: tuple[str, ...]) -> Finding:
    """``D = −∂F/∂v`` where nothing moves, and nothing but losses, weight and inputs acts."""
    known, state = system.structure, system.state
    x = np.array(at.x)
    x[..., state.coordinate_slice(known.velocity)] = 0.0  # type: ignore[union-attr]
    still = np.zeros((*x.shape[:-1], len(names)))
    slopes = known.balance_derivatives(at.t, x, still, at.u, at.p)  # type: ignore[union-attr]
    resisted = -slopes.by_x[..., state.tangent_slice(known.velocity)]  # type: ignore[union-attr]
    given = 0.0 * resisted
    if known.loss_jacobian is not None:  # type: ignore[union-attr]
        given = known.loss_jacobian(x, at.p)  # type: ignore[union-attr]
    off = np.abs(resisted - given).max(axis=-1)
    return _worst(off, 1 + np.abs(resisted).max(), _prefixed("loss Jacobian and force", names))


def _structure(system: SystemDefinition, at: SampledPoints) -> Finding:
    """``q̇ = v``, ``M v̇ = F``, M and D symmetric; derivatives of the balance against differences."""
    known, state = system.structure, system.state
    if known is None:
        return None
    q, v = (state.tangent_slice(b) for b in (known.configuration, known.velocity))  # type: ignore
    speeds = at.x[..., state.coordinate_slice(known.velocity)]  # type: ignore[attr-defined]
    names = state.tangent_names
    rate = system.f(at.t, at.x, at.u, at.p)
    a, M = rate[..., v], known.mass_matrix(at.x, at.p)
    F = known.force(at.t, at.x, at.u, at.p)
    size = 1 + np.abs(M).max() * (1 + np.abs(a).max()) + np.abs(F).max()
    slopes = known.balance_derivatives(at.t, at.x, a, at.u, at.p)
    B = known.input_map(at.t, at.x, at.u, at.p)
    found = [
        _worst(rate[..., q] - speeds, 1 + np.abs(speeds).max(), _prefixed("rate", names[q])),
        _worst((M @ a[..., None])[..., 0] - F, size, _prefixed("M v̇ - F", names[v])),
        _symmetric("mass matrix", M, names[v], definite=True),
        _worst(
            np.abs(B - slopes.by_u).max(axis=-1, initial=0.0),
            1 + np.abs(B).max(initial=0.0),
            _prefixed("input map and by_u", names[v]),
        ),
    ]
    if known.loss_jacobian is not None:
        losses = known.loss_jacobian(at.x, at.p)
        found.append(_symmetric("loss Jacobian", losses, names[v], definite=False))
    if known.is_plain:
        found.append(_losses_at_rest(system, at, names[v]))
    if known.losses is not None and known.loss_jacobian is not None:
        D, losses = known.loss_jacobian(at.x, at.p), known.losses
        scale = 1 + np.abs(D).max() + np.abs(losses(at.x, at.p)).max() / 100
        for k, d in enumerate(np.eye(state.dim)[v]):
            off = _slope(lambda h, d=d: losses(state.plus(at.x, h * d), at.p)) - D[..., k]
            found.append(_worst(off, scale, _prefixed("losses", names[v])))

    def balance(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        inertia = (known.mass_matrix(x, at.p) @ a[..., None])[..., 0]
        return known.force(at.t, x, u, at.p) - inertia

    exact = np.concatenate([slopes.by_x, slopes.by_u], axis=-1)
    scale = 1 + np.abs(exact).max() + size / 100  # rounding of a difference over its step
    for k, move in enumerate(np.eye(state.dim + system.n_inputs)):
        d, du = np.split(move, [state.dim])
        off = _slope(lambda h, d=d, du=du: balance(state.plus(at.x, h * d), at.u + h * du))
        off = off - exact[..., k]
        found.append(_worst(off, scale, _prefixed("balance derivatives", names[v])))
    return max(found)


def _lagrangian(system: SystemDefinition, at: SampledPoints) -> Finding:
    """``d/dt (M v) = ad_vᵀ M v + ∂T/∂q + Q`` along the field, by differences."""
    known, state = system.structure, system.state
    if known is None or known.lagrangian is None:
        return None
    inner = known.lagrangian
    own = [known.velocity, *([inner.speeds] if inner.speeds else [])]
    group = state.blocks[known.configuration]  # type: ignore[attr-defined]

    def velocity(x: np.ndarray) -> np.ndarray:
        return np.concatenate([state.split(x)[key] for key in own], axis=-1)  # type: ignore

    def momentum(x: np.ndarray) -> np.ndarray:
        return (inner.mass_matrix(x, at.p) @ velocity(x)[..., None])[..., 0]

    rate = system.f(at.t, at.x, at.u, at.p)
    h = CHECK_STEP / (1 + np.abs(rate).max())
    ahead, back = (momentum(state.plus(at.x, s * h * rate)) for s in (1.0, -1.0))
    v, p = velocity(at.x)[..., : group.dim], momentum(at.x)
    expected = inner.action(at.t, at.x, at.u, at.p)
    turning = np.swapaxes(group.ad(v), -1, -2) @ p[..., : group.dim, None]
    expected[..., : group.dim] += turning[..., 0]
    if inner.kinetic_gradient is not None:
        expected += inner.kinetic_gradient(at.x, at.p)
    off = (ahead - back) / (2 * h) - expected
    names = tuple(name for key in own for name in state.blocks[key].tangent_names)  # type: ignore
    return _worst(
        off, 1 + np.abs(expected).max() + np.abs(p).max() / h / 1e6, _prefixed("ṗ", names)
    )


def _symmetric(what: str, matrix: np.ndarray, names: tuple[str, ...], *, definite: bool) -> Any:
    """Largest asymmetry; infinite where an eigenvalue has the wrong sign."""
    size = np.abs(matrix).max(initial=0.0)
    off = np.abs(matrix - np.swapaxes(matrix, -1, -2)).max(axis=-1, initial=0.0)
    lowest = np.linalg.eigvalsh(matrix).min(axis=-1, initial=np.inf)
    wrong = lowest <= 0 if definite else lowest < -1e-9 * size
    off = np.where(wrong[..., None], np.inf, off)
    kind = f"{what} symmetric and {'positive' if definite else 'not negative'}"
    return _worst(off, 1 + size, _prefixed(kind, names))


def _errors(system: SystemDefinition, at: SampledPoints) -> Finding:
    """``E N = 1``, and retractions that have the errors asked for, to first order."""
    if system.errors is None:
        return None
    E, N = system.errors.selection, system.errors.basis(at.x, at.p)
    names = system.error_names
    found = [_worst((np.abs(E @ N - np.eye(len(E)))).max(axis=-1), 1.0, _prefixed("E N", names))]
    tangent = _prefixed("N and the projection", system.state.tangent_names)
    for z in np.eye(len(E)):

        def moved(h: float, z: np.ndarray = z) -> np.ndarray:
            return system.retract(at.x, h * z, at.p)

        off = _slope(lambda h, moved=moved: system.error(moved(h), at.x)) - z
        found.append(_worst(off, 1.0, _prefixed("retraction", names)))
        off = _slope(moved, system.state.minus) - N @ z
        found.append(_worst(off, 1 + np.abs(N).max(), tangent))
    return max(found)


def _converges(system: SystemDefinition, at: SampledPoints) -> Finding:
    """Halving the step of rk4 must divide its error by sixteen; a half of that passes."""
    if system.is_discrete:
        return None
    local = field_derivatives(system)(at.t, at.x, at.u, at.p)
    speed = np.abs(local.A).sum(axis=-1).max(axis=-1) + np.abs(local.rate).max(axis=-1)
    dt = 0.1 / (1 + speed)
    step = step_function(system, "rk4")

    def after(steps: int) -> np.ndarray:
        if system.project is not None:  # after the last one only
            return step_function(system, "rk4", steps)(at.t, at.x, at.u, at.p, dt)
        x, h = at.x, dt / steps
        for k in range(steps):
            x = step(at.t + k * h, x, at.u, at.p, h)
        return x

    once, twice, four = map(after, (1, 2, 4))
    coarse, fine = (
        np.abs(system.state.minus(x, four)).max(axis=-1, keepdims=True) for x in (once, twice)
    )
    return _worst(np.maximum(fine - coarse / 8, 0.0), 1.0, ("step",))


def _invariants(system: SystemDefinition, at: SampledPoints) -> Finding:
    if system.invariants is None:
        return None
    state, u = system.state, system.nominal_input
    here = system.invariants(at.x, at.p)
    if system.is_discrete:
        off = system.invariants(step_function(system)(at.t, at.x, u, at.p), at.p) - here
    else:
        rate = system.f(at.t, at.x, u, at.p)
        held = system.invariants
        off = _slope(lambda h: held(state.plus(at.x, h * rate), at.p))
    return _worst(off, 1 + np.abs(here).max(initial=0.0), _numbered("invariants", here.shape[-1]))


def _projection(system: SystemDefinition, at: SampledPoints) -> Finding:
    if system.project is None:
        return None
    state, again = system.state, system.project(at.x, at.p)
    return max(
        _worst(state.minus(again, at.x), 1.0, state.tangent_names),
        _worst(again - state.normalize(again), 1.0, state.coordinate_names),
    )


def _pickles(system: SystemDefinition, at: SampledPoints) -> Finding:
    try:
        copy = ForkingPickler.loads(ForkingPickler.dumps(system))  # type: ignore[attr-defined]
    except Exception as error:  # whatever an attribute of the user's raises is the finding
        return np.inf, str(error).splitlines()[0]
    here, there = (np.nan_to_num(s.f(at.t, at.x, at.u, at.p)) for s in (system, copy))
    return _worst(there - here, 1.0, system.state.tangent_names)


CHECKS: dict[str, Callable[[SystemDefinition, SampledPoints], Finding]] = {
    "names differ": _names,
    "f, h and quantities are finite": _finite,
    "h is on the output group": _on_group,
    "f and h do not see a quaternion's sign": _both_signs,
    "derivatives equal central differences": _derivatives,
    "structure is that of f": _structure,
    "momenta move with f": _lagrangian,
    "error coordinates fit the constraints": _errors,
    "steps converge with their order": _converges,
    "invariants are constant": _invariants,
    "projection is idempotent": _projection,
    "pickles": _pickles,
}


def is_group_affine(system: SystemDefinition) -> bool:
    """Whether ``A = Df − ad_f`` is the same at all states: errors are then autonomous.

    With ``X = X̄ exp(ε)`` such a system has ``ε̇ = A(t, u, p) ε`` exactly, for errors of any size,
    and a filter propagates its covariance without an error of linearization. For inertial
    navigation this holds on SE_2(3) and not on R³ × R³ × SO(3).

    Decided exactly where x does not occur in the expressions of A. Else by A at random states,
    inputs, times and parameters. Its entries are analytic: if they agree at random points, they
    agree everywhere with probability one.

    Parameters
    ----------
    system : System

    Returns
    -------
    bool

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", SE2, lambda t, x, u, p: [u[0], 0, u[1]], inputs=["speed", "turn"])
    >>> is_group_affine(cart)
    True

    References
    ----------
    Barrau and Bonnabel, The invariant extended Kalman filter as a stable observer, IEEE TAC 62(4),
    2017, theorems 1 and 2.
    """
    derivatives = field_derivatives(system)
    if system.symbol is ca.SX:
        t, x, u, p = symbols_of(system)
        if not ca.depends_on(derivatives(t, x, u, p).A, x):
            return True
    rng = np.random.default_rng(0)
    x = system.state.random(rng, (POINTS, POINTS))
    t = rng.uniform(0, 1, (POINTS, 1))
    u = system.nominal_input + rng.normal(size=(POINTS, 1, system.n_inputs))
    p = system.nominal_parameters * rng.uniform(0.5, 1.5, (POINTS, 1, system.n_parameters))
    A = derivatives(t, x, u, p).A
    spread = np.abs(A - A[:, :1]).max(axis=(1, 2, 3), initial=0.0)
    size = np.abs(A).max(axis=(1, 2, 3), initial=1.0)
    return bool((spread <= AFFINE_ROUNDING * size).all())
