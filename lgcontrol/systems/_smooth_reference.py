"""Smooth references: motions with exact derivatives, from functions, and what may stand for one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from math import comb, perm
from typing import (
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeGuard,
    get_args,
    runtime_checkable,
)

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import ModelFunction, trace
from ..codegen._internal import (
    Immutable,
    UnknownNameError,
    check_increasing,
    check_shape,
    unknown_name,
)
from ..groups import LieGroup, check_element
from ..groups._internal import leaves, not_a_group
from ._definition import SystemDefinition
from ._steadiness import TrimPoint
from ._trajectory import Trajectory

Side = Literal["after", "before"]
DERIVATIVES = ("velocity", "acceleration", "jerk", "snap")
# Share of the size of a derivative below which a change at a knot is rounding.
JUMP_TOLERANCE = 1e-9


@runtime_checkable
class StateMotion(Protocol):
    """A reference that knows the states of a system and their rates at any time.

    Controllers take what it says in place of differences; `SmoothReference` is one.
    """

    def states(self, system: SystemDefinition, t: Any, /) -> tuple[np.ndarray, np.ndarray]:
        """States (..., nq) and their rates (..., dim), per s, at times t."""
        ...


def is_motion(reference: object) -> TypeGuard[StateMotion]:
    """Whether a reference is a `StateMotion`, asked once a type: protocols take 20 µs to ask.

    Examples
    --------
    >>> is_motion([1.0, 0.0])
    False
    """
    return _is_motion(type(reference))


@cache
def _is_motion(kind: type) -> bool:
    return issubclass(kind, StateMotion)


class MotionPoint(NamedTuple):
    """A point of a motion, and its body-fixed velocity ``v = (X⁻¹ Ẋ)^∨`` with three derivatives.

    Attributes
    ----------
    x : ndarray, shape (..., nq)
    velocity : ndarray, shape (..., dim)
        v, per s.
    acceleration, jerk, snap : ndarray, shape (..., dim)
        Its first, second and third derivative, per s², s³ and s⁴.
    """

    x: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    jerk: np.ndarray
    snap: np.ndarray


class Jump(NamedTuple):
    """Lowest derivative that is not continuous at a time.

    Attributes
    ----------
    t : float
        In s.
    derivative : str
        "velocity", "acceleration", "jerk" or "snap".
    change : ndarray, shape (dim,)
        Its value after the time less that before.
    """

    t: float
    derivative: str
    change: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class SmoothReference(Immutable):
    """Motion ``X(t) = X_k exp(φ₁(t)) … exp(φ_J(t))`` between knots, with polynomials φ.

    `Waypoints`, `BSpline` and `ScrewMotion` make such motions, whatever the group; one of your own
    is its polynomials. A controller that is given one takes velocity and acceleration from it,
    exact at any time. Before the start and after the end it is at rest.

    Parameters
    ----------
    group : LieGroup
    t : array_like, shape (K + 1,)
        Increasing times of the knots in s.
    anchors : array_like, shape (K, nq)
        X_k.
    coefficients : array_like, shape (K, J, dim, degree + 1)
        Of φ in ascending powers of the share ``(t − t_k) / (t_{k+1} − t_k)`` of a span.

    Examples
    --------
    A turn about an axis that turns itself, and the system that follows it:

    >>> from lgcontrol.groups import SO3
    >>> swing, nod = [[0, 0.5], [0, 0], [0, 0]], [[0, 0], [0, 0], [0, 1]]
    >>> motion = SmoothReference(SO3, [0, 2], [SO3.identity], [[swing, nod]])
    >>> motion(1.0).velocity.round(4)
    array([ 0.2194, -0.1199,  0.5   ])
    """

    group: LieGroup
    t: np.ndarray
    anchors: np.ndarray
    coefficients: np.ndarray

    def __init__(self, group: LieGroup, t: Any, anchors: Any, coefficients: Any) -> None:
        knots = check_knots(group, t)
        spans = len(knots) - 1
        coefficients = check_shape("coefficients", coefficients, (spans, None, group.dim, None))
        self._set(
            group=group,
            t=knots,
            anchors=check_element(
                "anchors", check_shape("anchors", anchors, (spans, group.nq)), group, batch=True
            ),
            coefficients=coefficients,
        )

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __call__(self, t: Any, side: Side = "after") -> MotionPoint:
        """Place, velocity, acceleration, jerk and snap at times t.

        Parameters
        ----------
        t : float or array_like, shape (k,)
            Times in s.
        side : {"after", "before"}
            Which value counts where a derivative jumps. At the first and the last time it is the
            one inside.

        Returns
        -------
        MotionPoint
            ``x`` of shape (nq,) or (k, nq), derivatives of shape (dim,) or (k, dim).
        """
        t = np.asarray(t, dtype=np.float64)
        if side not in get_args(Side):
            raise UnknownNameError(unknown_name("side", side, get_args(Side)))
        found = np.searchsorted(self.t, t, side="right" if side == "after" else "left")
        k = np.clip(found - 1, 0, len(self.t) - 2)
        s = np.clip((t - self.t[k]) / (self.t[k + 1] - self.t[k]), 0.0, 1.0)
        x, rates = self._at(k, s)
        inside = (t >= self.t[0]) & (t <= self.t[-1])
        rates = np.where(inside[..., None, None], rates, 0.0)
        return MotionPoint(x, *np.moveaxis(rates, -1, 0))

    def _at(self, k: Any, s: Any) -> tuple[np.ndarray, np.ndarray]:
        """States (..., nq) and derivatives (..., dim, 4) at shares s of spans k."""
        x = self.anchors[k]
        rates = np.zeros((*np.shape(k), self.group.dim, len(DERIVATIVES)))
        advance = _advance(self.group)
        values = self._polynomials(k, s)
        for j in range(values.shape[-3]):
            x, rates = advance(x, rates, values[..., j, :, :])
        return x, rates

    def _polynomials(self, k: Any, s: Any) -> np.ndarray:
        """φ and four derivatives by time, shape (..., J, dim, 5)."""
        s, powers = np.asarray(s)[..., None, None, None], self._differentiated
        total = powers[-1][k]
        for power in powers[-2::-1]:
            total = total * s + power[k]
        return total

    @cached_property
    def _differentiated(self) -> np.ndarray:
        """Coefficients of φ and of four derivatives by time, (degree + 1, K, J, dim, 5)."""
        span, rows = np.diff(self.t)[:, None, None], np.moveaxis(self.coefficients, -1, 0)
        found = np.zeros((*rows.shape, len(DERIVATIVES) + 1))
        for order in range(min(len(rows), len(DERIVATIVES) + 1)):
            found[: len(rows) - order, ..., order] = rows[order:] / span**order
            for power in range(len(rows) - order):
                found[power, ..., order] *= perm(power + order, order)
        return found

    def expression(self, t: Any) -> Any:
        """Place at a symbolic time: for costs and bounds that move.

        Parameters
        ----------
        t : CasADi scalar
            In s.

        Returns
        -------
        CasADi column, shape (nq,)

        Examples
        --------
        >>> from lgcontrol.groups import SO2
        >>> turn = SmoothReference(SO2, [0, 2], [SO2.identity], [[[[0, 1]]]])
        >>> turn.expression(ca.DM(2.0)).full().ravel().round(3)
        array([0.54 , 0.841])
        """
        spans = len(self.t) - 1
        begun = [ca.DM(1), *(t >= float(knot) for knot in self.t[1:-1]), ca.DM(0)]
        here = ca.vertcat(*(begun[k] - begun[k + 1] for k in range(spans))).T
        first, length = here @ ca.DM(self.t[:-1]), here @ ca.DM(np.diff(self.t))
        s = ca.fmin(ca.fmax((t - first) / length, 0.0), 1.0)
        x = (here @ ca.DM(self.anchors)).T
        _, factors, dim, _ = self.coefficients.shape
        for j in range(factors):
            phi: Any = ca.DM.zeros(dim, 1)
            for column in np.moveaxis(self.coefficients[:, j], -1, 0)[::-1]:
                phi = phi * s + (here @ ca.DM(column)).T
            x = self.group.plus(x, phi)
        return x

    @property
    def duration(self) -> float:
        """Time from start to end, s."""
        return float(self.t[-1] - self.t[0])

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """Times at which a derivative jumps, each with the lowest one that does.

        The start and the end count: before and after the motion is at rest. Derivatives above the
        snap are not looked at.
        """
        spans = np.arange(len(self.t) - 1)
        rest = np.zeros((1, self.group.dim, len(DERIVATIVES)))
        before = np.concatenate([rest, self._at(spans, np.ones(len(spans)))[1]])
        after = np.concatenate([self._at(spans, np.zeros(len(spans)))[1], rest])
        change = after - before
        size = np.abs(self.coefficients).max(initial=0.0)
        shortest = np.diff(self.t).min()
        limit = JUMP_TOLERANCE * size / shortest ** np.arange(1, len(DERIVATIVES) + 1)
        which = (np.abs(change) > limit).any(axis=1)
        lowest = np.argmax(which, axis=1)
        return tuple(
            Jump(float(self.t[i]), DERIVATIVES[lowest[i]], change[i, :, lowest[i]])
            for i in np.flatnonzero(which.any(axis=1))
        )

    @property
    def smoothness(self) -> int:
        """How many derivatives are continuous, at most 4: 2 if the jerk is the first that jumps."""
        orders = [DERIVATIVES.index(jump.derivative) for jump in self.jumps]
        return min(orders, default=len(DERIVATIVES))

    def shift(self, seconds: float) -> SmoothReference:
        """Return the same motion later by a number of seconds."""
        later = self.t + check_shape("seconds", seconds, ())
        return SmoothReference(self.group, later, self.anchors, self.coefficients)

    def states(self, system: SystemDefinition, t: Any) -> tuple[np.ndarray, np.ndarray]:
        """States of a system whose configuration moves like this, and their rates.

        The other blocks of the state follow from the motion if the structure of the system knows
        them (``Mechanical.motion``: motors behind springs). Else they are the identity, at rest.

        Parameters
        ----------
        system : System
            Its state is this group, or has a block on it whose velocity is another block.
        t : float or array_like, shape (k,)
            In s.

        Returns
        -------
        x : ndarray, shape (..., nq)
        rate : ndarray, shape (..., dim)
            Tangent vectors of the state, per s.

        Raises
        ------
        ValueError
            If the state has no such block.

        Examples
        --------
        >>> from lgcontrol.groups import SO2, Product, Rn
        >>> from lgcontrol.systems import System
        >>> wheel = System("wheel", Product(angle=SO2, rate=Rn(1)), lambda t, x, u, p: [x[2], u],
        ...                inputs=["torque"])
        >>> turn = SmoothReference(SO2, [0, 2], [SO2.identity], [[[[0, 0, 1]]]])
        >>> turn.states(wheel, 0.0)
        (array([1., 0., 0.]), array([0. , 0.5]))
        """
        state, point = system.state, self(t)
        if state == self.group:
            return point.x, point.velocity
        speeds = system.velocities
        for name, group in getattr(state, "blocks", {}).items():
            own = state.tangent_slice(name)
            entries = range(own.start, own.stop)
            if group != self.group or not all(entry in speeds for entry in entries):
                continue
            known = system.structure
            if known is not None and known.motion is not None and name == known.configuration:
                return known.motion(*point)[:2]
            places = [speeds[entry] for entry in entries]
            x = np.tile(state.identity, (*np.shape(t), 1))
            x[..., state.coordinate_slice(name)], x[..., places] = point.x, point.velocity
            rate = np.zeros((*np.shape(t), state.dim))
            rate[..., own] = point.velocity
            shift = {  # entries of vector spaces, whose coordinates are tangent vectors
                i: leaf.tangent.start - leaf.coordinates.start
                for leaf in leaves(state)
                for i in range(state.nq)[leaf.coordinates]
            }
            rate[..., [place + shift[place] for place in places]] = point.acceleration
            return x, rate
        raise ValueError(
            f"{system.name}: no block of its state {state} is {self.group} with its velocity "
            "beside it, so this reference is no state of it: give the states as a function of time"
        )

    def sampled(self, t: Any, system: SystemDefinition | None = None) -> Trajectory:
        """Nodes at times t as a Trajectory: of this group, or of the states of a system.

        Parameters
        ----------
        t : float or array_like, shape (k,)
            A spacing in s, or increasing times.
        system : System, optional

        Returns
        -------
        Trajectory
        """
        times = np.asarray(t, dtype=np.float64)
        if not times.ndim:
            if not (np.isfinite(times) and times > 0):
                raise ValueError(f"sampled needs a spacing > 0 in s, got {t}")
            count = max(1, round(self.duration / float(times)))
            times = np.linspace(self.t[0], self.t[-1], count + 1)
        if system is None:
            return Trajectory(self.group, times, self(times).x)
        return Trajectory(system.state, times, self.states(system, times)[0])

    def __repr__(self) -> str:
        """Group, span of time, number of spans and what is continuous."""
        kept = self.smoothness
        last = "the position" if not kept else f"the {DERIVATIVES[kept - 1]}"
        return (
            f"{type(self).__name__}({self.group}: {len(self.t) - 1} spans from {self.t[0]:g} to "
            f"{self.t[-1]:g} s, continuous up to {last})"
        )


def check_knots(group: LieGroup, t: Any) -> np.ndarray:
    """At least two increasing times, shape (K + 1,) in s, of a motion on what is a group."""
    if not isinstance(group, LieGroup):
        raise TypeError(not_a_group("group", group))
    return check_increasing("t", t, 2)


@lru_cache(256)
def velocity_of_exponential(group: LieGroup) -> ModelFunction:
    """``φ̇ … φ⁗ at φ → v, v̇, v̈, v⃛`` of ``exp(φ(t))``: ``v = J_r(φ) φ̇`` and its derivatives.

    From φ with four derivatives, (dim, 5), to (dim, 4).
    """

    def build(phi: Any) -> Any:
        return ca.horzcat(*_exponential_rates(group, phi))

    return trace(
        "velocity_of_exponential",
        build,
        {"phi": (group.dim, len(DERIVATIVES) + 1)},
        {"rates": (group.dim, len(DERIVATIVES))},
    )


def _exponential_rates(group: LieGroup, phi: Any) -> list[Any]:
    """Columns v, v̇, v̈, v⃛ of exp(φ), φ with four derivatives as columns of symbols."""
    columns = ca.horzsplit(phi)
    now, onward = ca.vertcat(*columns[:-1]), ca.vertcat(*columns[1:])
    rates = [ca.densify(group.right_jacobian(columns[0]) @ columns[1])]
    for _ in DERIVATIVES[1:]:
        rates.append(ca.jtimes(rates[-1], now, onward))
    return rates


@lru_cache(256)
def _advance(group: LieGroup) -> ModelFunction:
    """``(X, V, phi) → X exp(φ), V``: the motion after one more factor.

    With ``Y = X exp(φ)``, w the velocity of exp(φ) and ``c_k = Ad(exp(−φ)) v_X^(k)`` the velocity
    of Y is ``c_0 + w``, and ``ċ_k = c_{k+1} − [w, c_k]``.
    """
    count = len(DERIVATIVES)

    def build(X: Any, V: Any, phi: Any) -> list[Any]:
        w = _exponential_rates(group, phi)
        first = ca.horzsplit(phi)[0]
        back, ads = group.Ad(group.exp(-first)), [group.ad(rate) for rate in w]
        # carried[n][k]: n-th derivative of c_k.
        carried = [[back @ column for column in ca.horzsplit(V)]]
        for n in range(count - 1):
            carried.append(
                [
                    carried[n][k + 1]
                    - sum(comb(n, j) * ads[j] @ carried[n - j][k] for j in range(n + 1))
                    for k in range(count - 1 - n)
                ]
            )
        rates = [carried[n][0] + w[n] for n in range(count)]
        return [group.plus(X, first), ca.horzcat(*rates)]

    n = group.dim
    return trace(
        "advance",
        build,
        {"X": (group.nq,), "V": (n, count), "phi": (n, count + 1)},
        {"x": (group.nq,), "rates": (n, count)},
    )


ReferenceLike: TypeAlias = ArrayLike | TrimPoint | Trajectory | StateMotion | Callable[[float], Any]
"""What is to be followed: a constant state, an equilibrium, a motion, or a function of time."""
