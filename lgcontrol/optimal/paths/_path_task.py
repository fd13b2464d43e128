"""PathTask: a path to be followed as fast as it pays, with the place on it as a state."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ...codegen import ModelFunction, named_options
from ...codegen._internal import check_shape
from ...groups import Product, Rn
from ...systems import Input, SmoothReference, System, Trajectory, Waypoints
from ...systems._internal import blocks_of, check_state
from .._bounds import Bound
from .._expressions import StageFunction
from .._terms import Cost, Residual

PROGRESS = "progress"
# Places at which the nearest one of a path is looked for first, and how often the gap is halved.
GRID, HALVINGS = 400, 40
# Share by which squares of errors may differ and count as the same: a loop begins where it ends.
SAME = 1e-6
# Seconds to full speed, unless the acceleration is given.
RUN_UP = 0.5


@named_options
class PathTask:
    """A system that goes along a path: errors, reward and limits of a place that is a state.

    The state gets a block "progress" with the place s, in the parameter of the path, and its speed.
    The rate of that, "progress.rate", is a control. Plans minimise ``∫ ½ eᵀ W e − reward · ṡ dt``
    with ``e = minus(element(x), path(s))``, besides what is weighed otherwise: there is no
    timetable, and where errors would grow the place goes slower.

    Parameters
    ----------
    system : System
        Continuous.
    path : SmoothReference or Trajectory
        On a group; what its time was is the place now. A Trajectory counts between its nodes, too.
    weight : float or array_like
        W, per s.
    element : callable, optional
        ``(t, x, u, p) → coordinates`` of what follows the path, on its group; the block of the
        state that has this group if left out.
    terminal : float or array_like, optional
        W at the end of a plan; that of a second if left out.
    speed : float
        Greatest ṡ; it never goes back.
    acceleration : float, optional
        Greatest change of ṡ per s; full speed after half a second if left out.
    reward : float
        Price of a unit of place.

    Attributes
    ----------
    system : System
        With its progress.
    plant : System
        Without.

    Raises
    ------
    ValueError
        If no block, or several, have the group of the path, or a number is not positive.

    References
    ----------
    Faulwasser and Findeisen, Nonlinear model predictive control for constrained output path
    following, IEEE Transactions on Automatic Control 61(4), 2016; Lam, Manzie and Good, Model
    predictive contouring control, CDC 2010.

    Examples
    --------
    >>> from lgcontrol.groups import Translation
    >>> from lgcontrol.optimal import OptimalControlProblem
    >>> plane = Translation("xy")
    >>> mass = System(
    ...     "mass", Product(place=plane, speed=Rn(2)), lambda t, x, u, p: ca.vertcat(x[2:], u),
    ...     inputs=[Input("fx", "N", -1, 1), Input("fy", "N", -1, 1)])
    >>> corner = Waypoints(plane, [0, 1, 2], [[0, 0], [1, 0], [1, 1]], order=3)
    >>> task = PathTask(mass, corner, weight=100.0, speed=0.5, reward=1.0)
    >>> problem = OptimalControlProblem(
    ...     task.system, 40, 0.1, Q=0.0, R=0.01, reference=task.reference, **task.terms)
    >>> plan = problem.solve(task.start([0, 0, 0, 0]))
    >>> round(float(plan.x[-1, -2]), 1)
    1.9
    """

    def __init__(
        self,
        system: System[Any],
        path: SmoothReference | Trajectory,
        *,
        weight: ArrayLike | str,
        element: StageFunction | None = None,
        terminal: ArrayLike | str | None = None,
        speed: float = 1.0,
        acceleration: float | None = None,
        reward: float = 1.0,
    ) -> None:
        if system.is_discrete:
            raise ValueError(f"{system.name} is discrete: paths are followed by continuous systems")
        if isinstance(path, Trajectory):
            path = Waypoints(path.group, path.t, path.x, order=1)
        if not isinstance(path, SmoothReference):
            raise TypeError(f"path must be a SmoothReference or a Trajectory, not {path!r}")
        acceleration = speed / RUN_UP if acceleration is None else acceleration
        for name, value in (("speed", speed), ("acceleration", acceleration), ("reward", reward)):
            if not check_shape(name, value, ()) > 0:
                raise ValueError(f"{name} must be positive, got {value}")
        self.plant, self.path, self.speed = system, path, float(speed)
        self.reward = float(reward)
        self._element = element
        self._place = _block_on(system, path) if element is None else slice(0)
        self.system = _with_progress(system, float(acceleration))
        self._nq = system.state.nq
        self._residual = Residual(
            self._error, weight, weight if terminal is None else terminal, "path", path.group
        )
        self._reward = Cost(self._loss, self.reward, None, "progress")
        self._distance: ModelFunction | None = None

    @property
    def terms(self) -> dict[str, Any]:
        """Residuals, costs and bounds for `OptimalControlProblem` and `MPC`."""
        first, last = float(self.path.t[0]), float(self.path.t[-1])
        return {
            "residuals": [self._residual],
            "costs": [self._reward],
            "bounds": [
                Bound(f"{PROGRESS}.place", first, last),
                Bound(f"{PROGRESS}.speed", 0.0, self.speed),
            ],
        }

    @property
    def reference(self) -> np.ndarray:
        """State that weights Q are of: home of the plant, at the first place, at full speed."""
        return np.concatenate([self.plant.home, [self.path.t[0], self.speed]])

    def start(self, x: ArrayLike, place: float | None = None, speed: float = 0.0) -> np.ndarray:
        """State with progress.

        Parameters
        ----------
        x : array_like, shape (nq,)
            Of the plant.
        place : float, optional
            On the path; the nearest one if left out.
        speed : float
            Of the place.

        Returns
        -------
        ndarray, shape (nq + 2,)
        """
        x = check_state(self.plant, "x", x)
        return np.concatenate([x, [self.nearest(x) if place is None else place, speed]])

    def nearest(self, x: ArrayLike) -> float:
        """Place of the path whose error is least, the first of several.

        Parameters
        ----------
        x : array_like, shape (nq,)
            Of the plant.

        Returns
        -------
        float
        """
        if self._distance is None:
            state, place = ca.SX.sym("x", self._nq), ca.SX.sym("s")
            p: Any = ca.DM(self.plant.nominal_parameters)
            u = ca.DM(self.plant.nominal_input)
            error = self._error(0.0, ca.vertcat(state, place, 0), u, p)
            made = ca.Function("distance", [state, place], [ca.sumsqr(error)], ["x", "s"], ["d"])
            self._distance = ModelFunction(made, shapes={"s": (), "d": ()})
        own = np.asarray(x, dtype=np.float64)

        def least(places: np.ndarray) -> float:
            many = np.broadcast_to(own, (len(places), len(own)))
            assert self._distance is not None
            d = np.asarray(self._distance(many, places))
            return float(places[np.argmax(d <= d.min() * (1 + SAME) + SAME**2)])

        first, last = float(self.path.t[0]), float(self.path.t[-1])
        gap = (last - first) / GRID
        place = least(np.linspace(first, last, GRID + 1))
        for _ in range(HALVINGS):
            gap /= 2
            place = least(np.clip([place, place - gap, place + gap], first, last))
        return place

    def _error(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """``minus(element, path(s))``; all but progress comes first in states and inputs."""
        element, own = self._element, x[: self._nq]
        here = own[self._place] if element is None else element(t, own, u[: self.plant.n_inputs], p)
        return self.path.group.minus(here, self.path.expression(x[self._nq]))

    def _loss(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """``-ṡ``."""
        return -x[self._nq + 1]


def _block_on(system: System[Any], path: SmoothReference) -> slice:
    """Coordinates of the block of the state that has the group of a path."""
    blocks = blocks_of(system.state)
    fitting = {name: places for name, (group, places, _) in blocks.items() if group == path.group}
    if len(fitting) != 1:
        which = ", ".join(f"{name} on {group}" for name, (group, *_) in blocks.items())
        raise ValueError(
            f"the path is on {path.group}, {len(fitting)} blocks of {system.name} are ({which}): "
            "give element=lambda t, x, u, p: … on the group of the path"
        )
    (places,) = fitting.values()
    return places


def _with_progress(system: System[Any], acceleration: float) -> System[Product]:
    """The system and a double integrator."""
    nq, n = system.state.nq, system.n_inputs
    blocks = {name: group for name, (group, *_) in blocks_of(system.state).items()}
    state = Product(**blocks, **{PROGRESS: Rn(2, ("place", "speed"), ("", "1/s"))})

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.vertcat(system.f(t, x[:nq], u[:n], p), x[nq + 1], u[n])

    def derivatives(t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any]:
        Df, Bf = system.derivatives.function(t, x[:nq], u[:n], p)
        chain, last = ca.DM([[0, 1], [0, 0]]), ca.DM([0, 1])
        return ca.diagcat(Df, chain), ca.diagcat(Bf, last)

    rate = Input(f"{PROGRESS}.rate", "1/s²", -acceleration, acceleration)

    prefix = "" if isinstance(system.state, Product) else "state."
    limits = {f"{prefix}{name}": pair for name, pair in system.limits.items()}
    return System(
        f"{system.name}_on_path", state, field, inputs=[*system.inputs, rate],
        parameters=system.parameters, derivatives=derivatives, limits=limits,
        home=np.concatenate([system.home, [0.0, 0.0]]),
    )  # fmt: skip
