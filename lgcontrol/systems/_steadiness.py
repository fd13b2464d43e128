"""Steady motions: equilibria, relative equilibria, and what varies along them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from ..codegen._internal import html_page, html_table
from ._definition import SystemDefinition
from ._step import field_derivatives
from ._subspaces import balanced, balancing_units
from ._trajectory import Trajectory, TrajectoryPoint

Kind = Literal["equilibrium", "relative equilibrium", "none"]

# Entries of gradients (SI) below this are rounding: the row does not depend on that variable. The
# slowest orbits about the earth have 1e-9, a constraint force that cancels leaves 1e-13.
NO_GRADIENT = 1e-11
# So are gradients below this share of the longest one.
ROUNDED_RATE = 1e-13

# A rate counts as zero, and as unchanged, where displacements of the state and the inputs by these
# shares of their values, or amounts in SI units, would explain it: a point typed with four digits
# should not pass, what a trim solver leaves should.
STEADINESS_SHARE = 1e-7
AMOUNT = 1e-9

ZERO_RATE = 1e-11  # rate that counts as zero in a row that depends on nothing

SLOWEST = 1e-18  # rate that takes thirty years for a nanometre: zero in any row

MATRIX_NOISE = 1e-14  # share of the largest entry of a matrix that rounding may leave of a zero

# When the motion is looked at again, in s (continuous) or samples (discrete): spread over decades,
# without a common period. Then, if it is slow, when its fastest part has come these many m, rad.
LATER = {False: (0.013, 0.1, 0.7, 1.9, 4.3), True: (1.0, 2.0, 3.0, 5.0)}
FARTHER = (0.3, 1.1, 2.7)


@dataclass(frozen=True, eq=False)
class Steadiness:
    """What stays the same along the motion with the present rate; found when asked.

    `here` is the result of `field_derivatives` at the motion's start.
    """

    system: SystemDefinition
    t: float
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    here: Any

    @property
    def kind(self) -> Kind:
        """Equilibrium, relative equilibrium or none."""
        return self._found.kind

    @property
    def varying(self) -> tuple[str, ...]:
        """Inputs and outputs whose derivatives vary along a motion of constant rate."""
        if self.kind == "none":
            return ()
        named = [
            *zip(self.system.input_names, self._found.inputs, strict=True),
            *zip(self.system.output.tangent_names, self._found.outputs, strict=True),
        ]
        return tuple(name for name, varies in named if varies)

    @property
    def columns_of_B(self) -> tuple[str, ...]:
        """Inputs whose columns of B vary."""
        pairs = zip(self.system.input_names, self._found.columns_of_B, strict=True)
        return tuple(name for name, varies in pairs if varies)

    @cached_property
    def _found(self) -> _Changes:
        return _what_changes(self.system, self.t, self.x, self.u, self.p, self.here)


class _Changes(NamedTuple):
    """Kind; which columns of B change; which columns of B or D; which rows of C or D."""

    kind: Kind
    columns_of_B: np.ndarray
    inputs: np.ndarray
    outputs: np.ndarray


class Later(NamedTuple):
    """The motion and its linearization at later times, one row a time.

    `tolerance` are changes of the rate that do not count, shape (k, dim).
    """

    t: np.ndarray
    x: np.ndarray
    there: Any
    tolerance: np.ndarray


def classify(
    system: SystemDefinition, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> Kind:
    """Kind of the motion with the present rate."""
    return Steadiness(system, t, x, u, p, field_derivatives(system)(t, x, u, p)).kind


def _what_changes(
    system: SystemDefinition, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray, here: Any
) -> _Changes:
    """Follow the motion with the present rate and see what changes; what is not finite does."""
    everything = _Changes(
        "none",
        np.ones(system.n_inputs, dtype=bool),
        np.ones(system.n_inputs, dtype=bool),
        np.ones(system.output.dim, dtype=bool),
    )
    if not all(np.isfinite(value).all() for value in (here.rate, here.A, here.B)):
        return everything
    later = follow(system, t, x, u, p, here)
    there = later.there
    units = balancing_units(here.A, here.B)
    slopes = _changes(balanced(here.A, units), balanced(there.A, units), axis=-1)
    moved = ~(np.abs(there.rate - here.rate) <= later.tolerance)
    if moved.any() or slopes.any():
        return everything
    columns = np.any(_changes(here.B / units[:, None], there.B / units[:, None], axis=-2), axis=0)
    rows = np.any(_changes(here.C * units, there.C * units, axis=-1), axis=1)
    through = _changes(here.D, there.D, axis=-2)
    still = (np.abs(here.rate) <= rate_tolerance(system, x, u, here)).all()
    return _Changes(
        "equilibrium" if still else "relative equilibrium",
        columns,
        columns | np.any(through, axis=0),
        rows | np.any(through, axis=1),
    )


def follow(
    system: SystemDefinition, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray, here: Any
) -> Later:
    """Look at the motion ``X exp((s − t) rate)`` later on."""
    limit = rate_tolerance(system, x, u, here)
    # What a solver left of a zero must not add up over a long time.
    rate = np.where(np.abs(here.rate) <= limit, 0.0, here.rate)
    steps = np.array(LATER[system.is_discrete])
    speed = np.abs(rate).max(initial=0.0)
    if speed:
        far = np.array(FARTHER) / speed
        steps = np.append(steps, far[far > steps[-1]])
    if system.is_discrete:
        steps = np.ceil(steps)
    states = system.state.compose(x, system.state.exp(steps[:, None] * rate))
    times = t + steps * (system.dt or 1.0)
    there = field_derivatives(system)(times, states, u, p)
    return Later(times, states, there, np.maximum(limit, rate_tolerance(system, states, u, there)))


def rate_tolerance(system: SystemDefinition, x: np.ndarray, u: np.ndarray, at: Any) -> np.ndarray:
    """Size of a rate that a small displacement explains, shape (..., dim).

    Each row has its own: a fast state says nothing about how steady a slow one is.
    """
    state = system.state
    if system.is_discrete:  # what the increment f depends on, not the next state
        slope = at.A - state.Ad(state.exp(-at.rate))
    else:
        slope = at.A + state.ad(at.rate)
    size = np.abs(state.log(x))
    is_angle = np.array([unit == "rad" for unit in state.tangent_units], dtype=bool)
    size = np.where(is_angle, np.maximum(size, 1.0), size)
    slope, B = np.abs(slope), np.abs(at.B)
    tolerance = (slope @ (STEADINESS_SHARE * size + AMOUNT)[..., None])[..., 0]
    tolerance = tolerance + B @ (STEADINESS_SHARE * np.abs(u) + AMOUNT)
    largest = np.maximum(slope.max(axis=-1, initial=0.0), B.max(axis=-1, initial=0.0))
    least = np.maximum(NO_GRADIENT, ROUNDED_RATE * largest.max(axis=-1, keepdims=True, initial=0.0))
    return np.maximum(np.where(largest <= least, ZERO_RATE, tolerance), SLOWEST)


def _changes(here: np.ndarray, there: np.ndarray, axis: int) -> np.ndarray:
    """Entries that change at some time, next to the largest of their row (-1) or column (-2)."""
    size = np.maximum(np.abs(here), np.abs(there))
    line = size.max(axis=axis, keepdims=True, initial=0.0)
    limit = STEADINESS_SHARE * line + MATRIX_NOISE * np.abs(here).max(initial=0.0)
    return (~(np.abs(there - here) <= limit)).any(axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class TrimPoint:
    """A motion ``X(s) = x exp((s − t) rate)`` with constant input; callable like a trajectory.

    Attributes
    ----------
    x : ndarray, shape (nq,)
        State at time t.
    u : ndarray, shape (n_inputs,)
        All inputs.
    t : float
        Time in s.
    p : ndarray, shape (n_parameters,)
    rate : ndarray, shape (dim,)
        Constant body-fixed rate, per s (per sample for discrete systems); zero, or rounding, at an
        equilibrium, whose state stays.
    kind : str
        "equilibrium" or "relative equilibrium"; "none" for the best iterate of a failure.
    system : System
    moved : ndarray, shape (dim,), or None
        ``minus(x, x_given)`` where `trim` was given a state that no input holds, and this is
        another one; None where it is the one given, or none was.
    """

    x: np.ndarray
    u: np.ndarray
    t: float
    p: np.ndarray
    rate: np.ndarray
    kind: Kind
    system: SystemDefinition
    moved: np.ndarray | None = None

    def __repr__(self) -> str:
        """Kind, state and input to five digits, the rate where it is not zero, what moved."""
        kind = "no equilibrium" if self.kind == "none" else self.kind
        values = {"x": self.x, "u": self.u}
        if self.kind != "equilibrium":
            values["rate"] = self.rate
        layout = {"precision": 5, "suppress_small": True, "max_line_width": 10**6}
        shown = (f"{name}={np.array2string(value, **layout)}" for name, value in values.items())
        return f"TrimPoint({self.system.name!r}, {kind}, {', '.join(shown)}{self._other()})"

    def _repr_html_(self) -> str:
        """State, rate and inputs by name, for notebooks."""
        kind = "no equilibrium" if self.kind == "none" else self.kind
        system, state = self.system, self.system.state
        moves = self.kind != "equilibrium"
        return html_page(
            f"{system.name}: {kind}{self._other()}",
            html_table(
                "State",
                ("coordinate", "value", "unit"),
                zip(state.coordinate_names, self.x, state.coordinate_units, strict=True),
            ),
            html_table(
                "Rate, of the entries in their units a second",
                ("entry", "value"),
                zip(state.tangent_names, self.rate, strict=True) if moves else (),
            ),
            html_table(
                "Inputs",
                ("input", "value", "unit"),
                (
                    (own.name, value, own.unit)
                    for own, value in zip(system.inputs, self.u, strict=True)
                ),
            ),
        )

    def _other(self) -> str:
        """Say that it is not the state that was given, and where it is furthest from it."""
        if self.moved is None:
            return ""
        state, k = self.system.state, int(np.argmax(np.abs(self.moved)))
        by = f"{self.moved[k]:.3g} {state.tangent_units[k]}".rstrip()
        return f", not the state given: {state.tangent_names[k]} is {by} from it"

    def __call__(self, t: Any) -> TrajectoryPoint:
        """State and input at times t [s], a float or shape (k,)."""
        t = np.asarray(t, dtype=np.float64)
        u = np.broadcast_to(self.u, (*t.shape, len(self.u)))
        if self.kind == "equilibrium":
            return TrajectoryPoint(np.broadcast_to(self.x, (*t.shape, len(self.x))).copy(), u)
        elapsed = (t - self.t) / (self.system.dt or 1.0)
        state = self.system.state
        return TrajectoryPoint(state.compose(self.x, state.exp(elapsed[..., None] * self.rate)), u)

    def trajectory(self, seconds: float, dt: float) -> Trajectory:
        """Sample the motion from t on.

        Parameters
        ----------
        seconds, dt : float
            Duration and spacing in s.

        Returns
        -------
        Trajectory
        """
        if not (dt > 0 and seconds >= dt):
            raise ValueError(f"needs 0 < dt <= seconds, got dt={dt}, seconds={seconds}")
        times = self.t + dt * np.arange(round(seconds / dt) + 1)
        x, u = self(times)
        return Trajectory(self.system.state, times, x, u, inputs=self.system.inputs)
