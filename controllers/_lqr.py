"""LQR: linear feedback of the error on the group, about a point or along a trajectory."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import Schedule, exactly, memoized
from lgcontrol.optimal import lqr, tvlqr
from lgcontrol.optimal._internal import (
    TIME_ROUNDING,
    ReferenceSamples,
    Regulator,
    TrajectoryRegulator,
    WeightLike,
    depends_on_time,
    error_weight,
    holding_inputs,
    moves,
    sample_reference,
)
from lgcontrol.simulation._internal import FunctionLaw
from lgcontrol.systems import Linearization, ReferenceLike, System, Trajectory, TrimPoint
from lgcontrol.systems._internal import Parameters, ParameterValues, sample_time

from ._base import Controller, static_law, steers
from ._law_function import Feedback, law_function

# A call that comes a rounding error early [s] belongs to the node it was meant for.
EARLY = TIME_ROUNDING

PERIOD = 0.01  # of feedback of continuous systems unless given, s


class _LinearLaw(Controller):
    """``u = u_ref − K minus(x, x_ref)``, whose references and gains are those of `_rows`."""

    _tracked: np.ndarray

    @abstractmethod
    def _rows(self, times: np.ndarray, goal: ReferenceLike | None) -> dict[str, np.ndarray]:
        """x_ref, u_ref and the transposed gain K at times, or once for all of them."""

    def tracked_errors(self) -> np.ndarray | None:
        """Errors with a weight in Q; see `Controller`."""
        return self._tracked

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        x_ref, u_ref, K = (rows[0] for rows in self._rows(np.array([t]), reference).values())
        u = u_ref[self._controls] - K.T @ self.system.error(x, x_ref)
        return self._saturate(u) if self.saturate else u

    def compiled_law(self, plant: System, reference: ReferenceLike | None) -> FunctionLaw | None:
        """The law without Python, for loops; see `FunctionLaw`."""
        is_own = type(self)._control is _LinearLaw._control
        fits = self.system.state == plant.state
        if not is_own or self._values.functions or not fits or not steers(self, plant):
            return None
        goal = self.reference if reference is None else reference
        limits = (self._lower, self._upper) if self.saturate else None
        rows = partial(self._rows, goal=goal)
        return static_law(self, _feedback(self.system), rows, limits)

    def _law(self, name: str, given: Mapping[str, Value], u: Value) -> ModelFunction:
        """Function of the law, its controls within their bounds if asked for."""
        if self.saturate:
            u = ca.fmin(ca.fmax(u, self._lower), self._upper)
        shapes = {key: given[key].shape for key in ("K",) if key in given}
        return law_function(name, given, {"u": u}, shapes)


class LQR(_LinearLaw):
    """``u = u_ref − K minus(x, x_ref)`` with the gain of the linear-quadratic regulator.

    Parameters
    ----------
    system : System
    point : array_like, TrimPoint or Linearization
        The state for which the gain is designed. The steady motion through it is the reference
        unless a call brings another; if its rate is not zero, the reference moves on.
    Q, R : float, array_like or mapping
        Weights on the error and on the controls, per s, by name: ``Q={"pose": 10, "twist": 1}``.
    dt : float, optional
        Period in s; the gain is that of the system sampled with it, exactly. If left out, 0.01 s,
        or the sample time of a discrete system.
    offset, delay : float
        See `Controller`. The design does not know the delay: a loop that it makes unstable is
        warned of.
    saturate : bool
        Whether controls are clipped to their bounds.
    p : mapping or array_like, optional
        The system's parameters, for which the gains are designed. If they change later, the inputs
        of the reference follow; the gains stay.

    Attributes
    ----------
    K : ndarray, shape (number of controls, number of errors)
        Gain.
    regulator : Regulator
        Gain K, cost to go P, poles.

    Raises
    ------
    ValueError
        If no feedback stabilises the point (the message names the modes), or for any other reason
        `lgcontrol.optimal.lqr` has.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=["tx", "ty", "tz"])
    >>> control = LQR(satellite, satellite.state.identity, Q=1, R=1, dt=0.1)
    >>> control(0.0, [1, 0, 0, 0, 0, 0, 0]).round(2)  # turned by 180° about x
    array([-2.88,  0.  ,  0.  ])
    """

    _own_checks = "system"

    def __init__(
        self,
        system: System,
        point: ArrayLike | TrimPoint | Linearization,
        Q: WeightLike = 1.0,
        R: WeightLike = 1.0,
        *,
        dt: float | None = None,
        offset: float = 0.0,
        delay: float = 0.0,
        saturate: bool = True,
        p: Parameters | None = None,
    ) -> None:
        if not isinstance(system, System):
            lqr(system, point)  # which says what was given
        given = ParameterValues(system.parameters, system.nominal_parameters, p)
        values = given.at(offset)
        period = sample_time(system, PERIOD if dt is None and not system.is_discrete else dt)
        self.regulator: Regulator = lqr(system, point, Q, R, dt=period, p=values)
        super().__init__(
            system,
            dt=period,
            offset=offset,
            delay=delay,
            saturate=saturate,
            p=p,
            reference=self.regulator.motion,
        )
        self._tracked = np.asarray(error_weight("Q", Q, system).any(axis=1))
        if delay:  # which the design does not know
            lin = system.linearize(self.regulator.x, self.regulator.u, t=offset, p=values)
            B = lin.B[:, self._controls]
            self._judge(lin.A, B, Feedback.static(-self.regulator.K))

    @property
    def K(self) -> np.ndarray:
        """Gain, shape (number of controls, number of errors)."""
        return self.regulator.K

    def __repr__(self) -> str:
        """System, period, what it keeps to, and the slowest pole."""
        slowest = np.abs(self.regulator.poles).max(initial=0.0)
        return (
            f"LQR({self.system.name!r}, dt={self.dt:g} s, about an "
            f"{self.regulator.motion.kind}, largest pole {slowest:.4g} per sample)"
        ).replace("an relative", "a relative")

    def _rows(self, times: np.ndarray, goal: ReferenceLike | None) -> dict[str, np.ndarray]:
        at = sample_reference(self.system, goal, times if moves(goal) else times[:1], self._own)
        return {"x_ref": at.x, "u_ref": at.u, "K": self.regulator.K.T[None]}

    def _exported_law(self) -> ModelFunction:
        system, sym = self.system, self.system.symbol.sym
        x, x_ref = sym("x", system.state.nq), sym("x_ref", system.state.nq)
        u_ref = sym("u_ref", system.n_inputs)
        error = system.error(x, x_ref)
        u = u_ref[self._controls.tolist()] - ca.DM(self.regulator.K) @ error
        return self._law("lqr", {"x": x, "x_ref": x_ref, "u_ref": u_ref}, u)


class TVLQR(_LinearLaw):
    """Finite-horizon feedback along a trajectory: ``u = u_ref − K(t) minus(x, x_ref)``.

    After the end of the trajectory its last state and gain are held, with the inputs that come
    nearest to holding the system there. Inputs that are linear between nodes are held over a period
    at their mean.

    Parameters
    ----------
    system : System
    trajectory : Trajectory
        States and inputs of a motion of the system; always the reference.
    Q, R : float, array_like or mapping
        Weights, per s.
    terminal : float, array_like or mapping, optional
        Weight on the last error; see `lgcontrol.optimal.tvlqr`.
    dt : float, optional
        Period in s; the spacing of the trajectory's first nodes if left out. The gains are those
        for inputs held between nodes, so another period should not be longer.
    offset, delay : float
        See `Controller`.
    saturate : bool
        Whether controls are clipped to their bounds.
    p : mapping or array_like, optional
        The system's parameters, for which the gains are designed. If they change later, the inputs
        of the reference follow; the gains stay.

    Attributes
    ----------
    regulator : TrajectoryRegulator
        Gains K and costs to go P at the nodes.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> turn = wheel.rollout(SO2.identity, [0.5], dt=0.1, steps=20)
    >>> control = TVLQR(wheel, turn, Q=1, R=1)
    >>> control(1.0, SO2.exp([0.5])).round(6)
    array([0.5])
    """

    def __init__(
        self,
        system: System,
        trajectory: Trajectory,
        Q: WeightLike = 1.0,
        R: WeightLike = 1.0,
        *,
        terminal: WeightLike | str | None = None,
        dt: float | None = None,
        offset: float = 0.0,
        delay: float = 0.0,
        saturate: bool = True,
        p: Parameters | None = None,
    ) -> None:
        if not isinstance(system, System):
            tvlqr(system, trajectory)  # which says what was given
        given = ParameterValues(system.parameters, system.nominal_parameters, p)
        values = given.at(offset)
        self.regulator: TrajectoryRegulator = tvlqr(
            system, trajectory, Q, R, terminal=terminal, p=values
        )
        spacing = float(trajectory.t[1] - trajectory.t[0])
        period = sample_time(system, spacing if dt is None else dt)
        super().__init__(
            system, dt=period, offset=offset, delay=delay, saturate=saturate, p=p,
            reference=trajectory,
        )  # fmt: skip
        self._tracked = np.asarray(error_weight("Q", Q, system).any(axis=1))

    def __repr__(self) -> str:
        """System, period, and the time it covers."""
        t = self.regulator.trajectory.t
        return (
            f"TVLQR({self.system.name!r}, dt={self.dt:g} s, {len(self.regulator.K)} gains from "
            f"{t[0]:g} to {t[-1]:g} s)"
        )

    def _rows(self, times: np.ndarray, goal: ReferenceLike | None) -> dict[str, np.ndarray]:
        along, K, now = self.regulator.trajectory, self.regulator.K, times + EARLY
        at = self._goal(now)
        gains = K[np.clip(np.searchsorted(along.t, now, side="right") - 1, 0, len(K) - 1)]
        return {"x_ref": at.x, "u_ref": at.u, "K": gains.transpose(0, 2, 1)}

    def _goal(self, times: np.ndarray) -> ReferenceSamples:
        """States of the trajectory, and inputs to be held from each time over a period."""
        along = self.regulator.trajectory
        found = sample_reference(self.system, along, times, self._own)
        if along.hold == "zero":
            return found
        middle = np.where(times < along.t[-1], np.minimum(times + self.dt / 2, along.t[-1]), times)
        return found._replace(u=sample_reference(self.system, along, middle, self._own).u)

    def _exported_law(self) -> ModelFunction:
        system, sym = self.system, self.system.symbol.sym
        nq, m, n = system.state.nq, *self.regulator.K.shape[1:]
        sizes = {"x": nq, "x_from": nq, "x_to": nq, "u_ref": m}
        values = {key: sym(key, size) for key, size in sizes.items()}
        given = {key: sym(key) for key in ("t", "t_from", "span")} | values | {"K": sym("K", m, n)}
        share = (given["t"] + EARLY - given["t_from"]) / given["span"]
        x_ref = system.state.interpolate(
            given["x_from"], given["x_to"], ca.fmin(ca.fmax(share, 0.0), 1.0)
        )
        u_ref = given["u_ref"]
        if depends_on_time(system):
            end = self.regulator.trajectory.t[-1]
            held = holding_inputs(
                system, ca.fmax(given["t"] + EARLY, end), self.regulator.trajectory.x[-1], self._own
            )
            is_after = given["t"] >= self._exported_schedule().starts[-1]
            u_ref = ca.if_else(is_after, held[self._controls.tolist()], u_ref)
        u = u_ref - given["K"] @ system.error(given["x"], x_ref)
        return self._law("tvlqr", given, u)

    def _exported_schedule(self) -> Schedule:
        """Rows of the trajectory: its intervals, its last input, and what holds it there.

        Where the last depends on time the law has it, and not this table.
        """
        along, system = self.regulator.trajectory, self.system
        if along.hold == "first" and not np.allclose(np.diff(along.t), self.dt):
            raise ValueError(
                f"inputs of the trajectory are linear between nodes, the period is {self.dt:g} s: "
                "the exported table holds one input a node. Give trajectory.resample(dt)"
            )
        end, count = along.t[-1], len(along.t) - 1
        own = [end] if along.u.shape[0] > count else []
        times = np.r_[(along.t[:-1] + along.t[1:]) / 2, own, end + 1.0]
        u = sample_reference(system, along, times, self._own).u[:, self._controls]
        rows = np.minimum(np.arange(count + len(own) + 1), count)
        after = np.nextafter(end, np.inf) if own else end - 2 * EARLY
        return Schedule(
            "t", np.r_[along.t[:-1] - EARLY, np.subtract(own, EARLY), after],
            {
                "t_from": along.t[rows], "span": np.r_[np.diff(along.t), np.ones(1 + len(own))],
                "x_from": along.x[rows], "x_to": along.x[np.minimum(rows + 1, count)],
                "u_ref": u, "K": self.regulator.K[np.minimum(rows, count - 1)],
            },
        )  # fmt: skip


@memoized
def _feedback(system: System) -> ModelFunction:
    """``(x, x_ref, u_ref, K) → u``, the same function for all gains."""
    controls = system.input_index("control").tolist()

    def build(x: Value, x_ref: Value, u_ref: Value, K: Value) -> Value:
        return u_ref[controls] - K @ system.error(x, x_ref)

    nq, shape = system.state.nq, (len(controls), system.n_errors)
    shapes = {"x": (nq,), "x_ref": (nq,), "u_ref": (system.n_inputs,), "K": shape}
    made = trace("feedback", build, shapes, {"u": shape[:1]}, symbol=system.symbol)
    return exactly(made)
