"""Multirotors, cars and elastic arms as flat systems for python-control."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, named_options, trace
from ..groups import SE2
from ..systems import System
from ..systems._internal import MotionPoint, flat_system
from .body._flat_motion import (
    free_fall,
    heading,
    missing_acceleration,
    moves_a_pose,
    nearest_inputs,
    thrust_states,
)
from .elastic._elastic_tree import ElasticTree
from .elastic._series_elastic import to_flat_system as elastic_flat_system

if TYPE_CHECKING:
    import control.flatsys

EXACT_ACCELERATION = 1e-6  # share of an acceleration that may be missing, from rounding
PROBES = 5  # random motions on which a system is found flat or not
DEEPEST = 4  # times that speed or turn rate may have to be differentiated to reach the controls
KNOWN = (
    "to_flat_system knows systems that move a pose on SE3 (of a body its system()), vehicles on "
    "SE2 without sideslip, and elastic arms (the SeriesElastic itself, not its system()). Trees of "
    "rigid joints are not among them: their inverse_dynamics gives torques along a motion"
)
# Newton's method for the states and controls of a car converges quadratically from the identity:
# 50 steps and a step length of 1e-9 are reached only where the motion has no controls. Its residual
# is relative to the wanted speeds: 1e-9 is far below what a plan's interpolation resolves.
FLAT_STEPS, SHORTEST_FLAT_STEP, FLAT_RESIDUAL = 50, 1e-9, 1e-9
STILL_SPEED = 1e-9  # m/s


@named_options(own="plant")
def to_flat_system(
    plant: System[Any] | ElasticTree, *, backwards: bool = False, **options: Any
) -> control.flatsys.FlatSystem:
    """A multirotor, a car or an elastic arm for ``control.flatsys``.

    Flat outputs of a multirotor (pose on SE3, a push along z, turns about all axes) are position
    and heading. A car (pose on SE2, without sideslip) has its position, an elastic arm its joint
    positions.

    States of the flat system are the stored coordinates of the plant, inputs are its controls.
    `Trajectory.from_control` brings a plan back.

    Parameters
    ----------
    plant : System or ElasticTree
    backwards : bool
        Whether a car drives backwards, with a negative speed.
    **options
        Of `control.flatsys.FlatSystem`, such as a name.

    Raises
    ------
    TypeError
        If the plant is neither.
    ValueError
        If the plant is not flat by these outputs. Examples: a multirotor with drag or with its
        centre of mass off the origin, a car that slips. The message says what is missing.

    Notes
    -----
    A state with its controls has fewer numbers than the flag. At the ends of a plan the controls
    are held, which gives the derivatives of push (multirotor) and speed (car). Plans have exactly
    the states and controls that are asked for at their ends. The heading of a multirotor is in
    (−π, π], and a plan between two headings does not go through π. A car has no heading where it
    stands still, so its plans begin and end with a speed.

    References
    ----------
    M. Fliess, J. Lévine, P. Martin, P. Rouchon: Flatness and defect of non-linear systems. Int. J.
    Control 61(6), 1995. D. Mellinger, V. Kumar: Minimum snap trajectory generation and control for
    quadrotors. ICRA 2011.

    Examples
    --------
    >>> import control.flatsys
    >>> from lgcontrol.models import quadrotor
    >>> from lgcontrol.systems import Trajectory
    >>> quad = quadrotor()
    >>> start, end = quad.trim(position=[0, 0, 1]), quad.trim(position=[2, 1, 1])
    >>> plan = control.flatsys.point_to_point(
    ...     to_flat_system(quad), 2.0, start.x, start.u[:4], end.x, end.u[:4],
    ...     basis=control.flatsys.PolyFamily(10))
    >>> flight = Trajectory.from_control(plan, quad, np.linspace(0, 2, 101))
    >>> flight(1.0).x[:3].round(6)
    array([1. , 0.5, 1. ])
    """
    if isinstance(plant, ElasticTree):
        return elastic_flat_system(plant, **options)
    if not isinstance(plant, System):
        kind = type(plant).__name__
        raise TypeError(f"plant must be a System or a SeriesElastic, not {kind}: {KNOWN}")
    if plant.is_discrete:
        raise ValueError(f"{plant.name} is discrete: make a flat system of the continuous one")
    if moves_a_pose(plant):
        flatness: Any = _Thrust(plant)
    elif _plane(plant):
        flatness = _Rolling(plant, backwards)
    else:
        raise ValueError(f"{plant.name}: {KNOWN}")
    return flat_system(plant, flatness.forward, flatness.reverse, options)


def _plane(system: System[Any]) -> str | None:
    """Name of the block on SE2, where it is the only one that does not add; else None."""
    blocks = getattr(system.state, "blocks", {})
    others = [name for name, group in blocks.items() if group != SE2]
    adds = all(
        blocks[name].is_commutative and blocks[name].nq == blocks[name].dim for name in others
    )
    found = [name for name in blocks if name not in others]
    return found[0] if adds and len(found) == 1 else None


def _motion(system: System[Any], x: Any, u: Any) -> tuple[Any, Any]:
    """Field for the controls, the other inputs nominal, and the rates of the coordinates."""
    full = ca.DM(system.nominal_input) + 0 * ca.sum1(u)
    for k, i in enumerate(system.input_index("control")):
        full[int(i)] = u[k]
    field = system.f(0.0, x, full, system.nominal_parameters)
    return field, system.state.rate_matrix(x) @ field


class _Thrust:
    """Position and heading of a vehicle that pushes along its z axis."""

    def __init__(self, system: System[Any]) -> None:
        if len(system.input_index("control")) != 4:
            raise ValueError(
                f"{system.name} has {len(system.input_index('control'))} controls, and position "
                "and heading are four flat outputs: allocate to four, or use FlatMotion"
            )
        self.system, self.fall = system, free_fall(system)
        rng = np.random.default_rng(0)
        flags = rng.normal(size=(PROBES, 4, 5))
        x, rates = self._states(flags)
        u = nearest_inputs(system, 0.0, x, rates)
        off = np.abs(missing_acceleration(system, 0.0, x, u, rates)).max(axis=0)
        if off.max() > EXACT_ACCELERATION * np.abs(rates).max():
            raise ValueError(
                f"{system.name} is not flat by position and heading: on random motions "
                f"accelerations of {off[:3].max():.3g} m/s² and {off[3:].max():.3g} rad/s² are "
                "missing. Drag, or a centre of mass off the origin, does that: leave it out of the "
                "plan, or plan with OptimalControlProblem"
            )

    def forward(self, x: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        position, yaw = self._derivatives(x, u)
        flags = np.zeros((4, 5))
        flags[:3], flags[3, :3] = position, yaw
        return list(flags)

    def reverse(self, flag: Any) -> tuple[np.ndarray, np.ndarray]:
        flags = np.zeros((4, 5))
        for row, values in zip(flags, flag, strict=True):
            row[: len(values)] = values[:5]
        push = flags[:3, 2] - self.fall
        size = np.linalg.norm(push)
        if not push[2] > (1e-6 - 1) * size:
            raise ValueError(
                f"{self.system.name} has no attitude where its push is "
                f"[{', '.join(f'{value:.3g}' for value in push)}] m/s²: it falls freely or pushes "
                "straight down; give the plan more time"
            )
        x, rates = self._states(flags)
        u = nearest_inputs(self.system, 0.0, x, rates)
        return x, u[self.system.input_index("control")]

    def _states(self, flags: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = MotionPoint(*np.moveaxis(flags[..., :3, :], -1, 0))
        yaw = flags[..., 3, 0], flags[..., 3, 1], flags[..., 3, 2]
        return thrust_states(self.system, self.fall, place, yaw)

    @cached_property
    def _derivatives(self) -> ModelFunction:
        """(x, controls) → position to its snap (3, 5), heading and two derivatives (3)."""
        system: Any = self.system  # with a structure, as has been asked

        def build(x: Any, u: Any) -> list[Any]:
            rate = _motion(system, x, u)[1]
            pose = system.state.coordinate_slice(system.structure.configuration)
            position, yaw = [x[pose][:3]], [heading(x[pose][3:])]
            for made, count in ((position, 4), (yaw, 2)):
                for _ in range(count):
                    made.append(ca.jtimes(made[-1], x, rate))
            return [ca.horzcat(*position), ca.vertcat(*yaw)]

        shapes = {"x": (system.state.nq,), "u": (4,)}
        results = {"position": (3, 5), "yaw": (3,)}
        return trace("flat_outputs", build, shapes, results, symbol=system.symbol)


class _Rolling:
    """Position of a vehicle on the plane that moves along its x axis and turns.

    Speed v and turn rate ω are differentiated until the controls appear: to orders a and b. With
    ``z`` for the rest of the state, ``(z, u) → v … v⁽ᵃ⁾, ω … ω⁽ᵇ⁾`` is solved for z and u.
    """

    def __init__(self, system: System[Any], backwards: bool) -> None:
        self.system, self.sign = system, -1.0 if backwards else 1.0
        state, block, controls = system.state, _plane(system), len(system.input_index("control"))
        assert block is not None
        self.pose, place = state.coordinate_slice(block), state.tangent_slice(block)
        self.rest = np.setdiff1d(np.arange(state.nq), np.arange(state.nq)[self.pose])
        if controls != 2:
            raise ValueError(
                f"{system.name} has {controls} controls, and its position is two flat outputs"
            )
        self._refuse_slip(place)
        x, u = system.symbol.sym("x", state.nq), system.symbol.sym("u", 2)
        field, rate = _motion(system, x, u)
        speed, turn = (
            self._until_controls(field[i], x, u, rate) for i in (place.start, place.start + 2)
        )
        a, b = len(speed) - 1, len(turn) - 1
        if a + b != len(self.rest):
            raise ValueError(
                f"{system.name} is not flat by its position: {a} derivatives of the speed and {b} "
                f"of the turn rate tell {a + b} numbers of the state besides the pose, which has "
                f"{len(self.rest)}"
            )
        self.speeds, self.turns, self.length = a + 1, b + 1, max(a + 2, b + 3)
        values = ca.vertcat(*speed, *turn)
        unknown = [i for i in self.rest.tolist()]
        by = ca.horzcat(ca.jacobian(values, x)[:, unknown], ca.jacobian(values, u))
        shapes = {"x": (state.nq,), "u": (2,), "values": (a + b + 2,), "by": (a + b + 2, a + b + 2)}
        made = ca.Function("equations", [x, u], [values, by], ["x", "u"], ["values", "by"])
        self.equations = ModelFunction(made, shapes=shapes)

    def forward(self, x: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        values = self.equations(x, u).values
        self._refuse_still(values[0])
        if values[0] * self.sign < 0:
            way = "backwards" if values[0] < 0 else "forwards"
            raise ValueError(
                f"{self.system.name} drives {way} at an end of the plan: say "
                f"to_flat_system(…, backwards={values[0] < 0})"
            )
        n = self.length
        v, w = np.zeros(n - 1), np.zeros(n - 1)
        v[: self.speeds], w[: self.turns] = values[: self.speeds], values[self.speeds :]
        place = x[self.pose]
        return list(_path(n)(np.arctan2(place[3], place[2]), place[:2], v, w))

    def reverse(self, flag: Any) -> tuple[np.ndarray, np.ndarray]:
        flags = np.stack([np.asarray(values)[: self.length] for values in flag])
        self._refuse_still(np.hypot(*flags[:, 1]))
        speeds = _speeds(self.length)(flags, self.sign)
        wanted = np.concatenate([speeds.v[: self.speeds], speeds.w[: self.turns]])
        x = self.system.state.identity.copy()
        u = self._solve(x, wanted)
        x[self.pose] = [*flags[:, 0], np.cos(speeds.angle), np.sin(speeds.angle)]
        return x, u

    def _solve(self, x: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Newton's method with backtracking: fill in the rest of the state, return the controls."""
        n = len(self.rest)
        y = np.concatenate(
            [x[self.rest], self.system.nominal_input[self.system.input_index("control")]]
        )

        def residual(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            x[self.rest] = y[:n]
            found = self.equations(x, y[n:])
            return found.values - wanted, found.by

        off, jacobian = residual(y)
        for _ in range(FLAT_STEPS):
            if np.abs(off).max() <= FLAT_RESIDUAL * (1 + np.abs(wanted).max()):
                return y[n:]
            step, length = np.linalg.lstsq(jacobian, off, rcond=1e-12)[0], 1.0
            tried = residual(y - step)
            while (
                not np.linalg.norm(tried[0]) < np.linalg.norm(off) and length > SHORTEST_FLAT_STEP
            ):
                length /= 2
                tried = residual(y - length * step)
            y, (off, jacobian) = y - length * step, tried
        raise ValueError(
            f"no state and controls of {self.system.name} were found for the speed "
            f"{wanted[0]:.3g} m/s with the turn rate {wanted[self.speeds]:.3g} rad/s and their "
            "derivatives: the curve of the plan is too narrow, or the plan too quick"
        )

    def _until_controls(self, entry: Any, x: Any, u: Any, rate: Any) -> list[Any]:
        """An entry of the field and its derivatives in time, to the first with controls."""
        made = [entry]
        while not ca.jacobian(made[-1], u).nnz():
            if len(made) > DEEPEST:
                raise ValueError(
                    f"{self.system.name} is not flat by its position: its controls do not reach "
                    f"speed or turn rate within {DEEPEST} derivatives"
                )
            made.append(ca.jtimes(made[-1], x, rate))
        return made

    def _refuse_slip(self, place: slice) -> None:
        system, rng = self.system, np.random.default_rng(0)
        x = system.state.random(seed=1, shape=(PROBES,))
        u = system.full_input(rng.normal(size=(PROBES, 2)))
        field = system.f(0.0, x, u, system.nominal_parameters)
        x[:, self.pose] = SE2.identity
        turned = field - system.f(0.0, x, u, system.nominal_parameters)
        slip = np.abs(field[:, place.start + 1]).max()
        if (
            slip > EXACT_ACCELERATION
            or np.abs(turned).max() > EXACT_ACCELERATION * np.abs(field).max()
        ):
            why = (
                f"it slips by {slip:.3g} m/s"
                if slip > EXACT_ACCELERATION
                else "its field depends on its pose"
            )
            raise ValueError(
                f"{system.name} is not flat by its position: {why}, for random states and "
                "controls; plan with OptimalControlProblem"
            )

    def _refuse_still(self, speed: float) -> None:
        if not abs(speed) > STILL_SPEED:
            raise ValueError(
                f"{self.system.name} stands still, and there its position does not tell its "
                "heading: begin and end the plan with a speed, and turn back in a second plan"
            )


@lru_cache
def _path(length: int) -> ModelFunction:
    """(angle, place, v, w) → flags (2, length), from speed and turn rate with derivatives."""

    def build(angle: Any, place: Any, v: Any, w: Any) -> Any:
        now = ca.vertcat(angle, v, w)
        onward = ca.vertcat(w[0], v[1:], 0, w[1:], 0)  # the last ones are not reached
        made = [place, v[0] * ca.vertcat(ca.cos(angle), ca.sin(angle))]
        while len(made) < length:
            made.append(ca.jtimes(made[-1], now, onward))
        return ca.horzcat(*made)

    shapes = {"angle": (), "place": (2,), "v": (length - 1,), "w": (length - 1,)}
    return trace("path", build, shapes, {"flags": (2, length)})


@lru_cache
def _speeds(length: int) -> ModelFunction:
    """(flags (2, length), sign) → angle, speed and turn rate with their derivatives."""

    def build(flags: Any, sign: Any) -> list[Any]:
        now = ca.vec(flags[:, :-1])
        onward = ca.vec(flags[:, 1:])
        along, across = flags[:, 1], flags[:, 2]
        squared = ca.sumsqr(along)
        v, w = [sign * ca.sqrt(squared)], [(along[0] * across[1] - along[1] * across[0]) / squared]
        for made, count in ((v, length - 2), (w, length - 3)):
            for _ in range(count):
                made.append(ca.jtimes(made[-1], now, onward))
        return [ca.atan2(sign * along[1], sign * along[0]), ca.vertcat(*v), ca.vertcat(*w)]

    shapes = {"flags": (2, length), "sign": ()}
    results = {"angle": (), "v": (length - 1,), "w": (length - 2,)}
    return trace("speeds", build, shapes, results)
