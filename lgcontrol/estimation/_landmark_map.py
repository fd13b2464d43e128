"""LandmarkMap: a robot among landmarks that join the map at first sight (SLAM)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, named_options, trace
from ..codegen import compile as compile_functions
from ..codegen._internal import (
    MOST_SUBSTEPS,
    UnknownNameError,
    as_names,
    check_count,
    check_shape,
    congruence,
)
from ..groups import SE2, SE3, SEK2, SEK3, LieGroup, Rn, check_element
from ..plotting import plot_map
from ..scene import Scene, SceneBody
from ..scene._internal import dart, place_bodies
from ..systems import Input, Sensor, System
from ._error_side import ErrorSide
from ._filter import LARGEST_FINITE
from ._given import measured
from ._kalman import EKF
from ._status import UpdateStatus, summary_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SEEN = "landmark"
POINT = (1.0, 0.5, 0.25)  # m: off all axes


@named_options(own="count std0 noise std_discrete")
class LandmarkMap:
    """Simultaneous localization and mapping with landmarks of known identity.

    An invariant filter on ``SE_{1+K}(2)`` or ``SE_{1+K}(3)``: the position of the robot and of K
    landmarks share its rotation. Errors are on the right (``X = exp(ε) X̂``) and stay there without
    a reset. Turning and moving everything at once is unobservable, and here it is the same
    direction at every estimate. No linearization can therefore invent knowledge of it; such
    knowledge makes other EKFs overconfident. A landmark is at ``l = p + R b(y)`` from its first
    measurement on, with the covariance ``G P Gᵀ + J R Jᵀ`` that follows and its correlation with
    all others. Before, it counts for nothing.

    Parameters
    ----------
    count : int
        Landmarks that there can be, K ≥ 1.
    group : LieGroup
        Of the robot's pose: SE2 or SE3.
    x0 : array_like, shape (group.nq,), optional
        First pose; the identity if left out.
    std0 : float or mapping of str to float
        Deviations of the first pose in its error coordinates, by name ("x", "rz", …) or for all.
        Zeros put the origin of the map at the robot's start.
    noise : mapping of str to float
        Densities of the inputs by name; see `EKF`.
    std_discrete : float or array_like
        Deviations of a measurement.
    sees : callable, optional
        ``b → y``: what the sensor measures of a point at b in the body frame; b itself [m] if left
        out. Range and bearing: ``lambda b: ca.vertcat(ca.norm_2(b), b / ca.norm_2(b))``, with
        ``Product(range=Rn(1), bearing=SO2)`` as `output`; an angle as a number jumps at ± π.
    places : callable, optional
        ``y → b``, its inverse; given together with `sees`. Here ``lambda y: y[0] * y[1:]``.
    output : LieGroup, optional
        Group of what `sees` returns, of as many dimensions as a landmark; Rn if left out.
    inputs : sequence of str, optional
        Names of what is measured of the motion; the velocity of the body itself, "velocity.x", …,
        "velocity.rz", if left out.
    velocity : callable, optional
        ``u → [v; ω]`` [m/s, rad/s] of the body from these inputs; given together with `inputs`. The
        noise of a differential drive is that of its wheels: ``lambda u: ca.vertcat((u[0] + u[1]) /
        2, 0, (u[1] - u[0]) / track)`` with ``inputs=["left", "right"]``.
    **options
        ``method``, ``gate``, ``robust``, ``lockout``, ``settle`` of `EKF`; also ``error`` and
        ``reset``, to see what another error or a reset do to it. No ``square_root`` and no
        ``window``: landmarks change places in the covariance itself.

    Attributes
    ----------
    filter : EKF
        Filter whose state is the whole map; its first vector is the position of the robot.

    Examples
    --------
    >>> slam = LandmarkMap(20, std0=0.0, noise={"velocity.x": 0.01, "velocity.rz": 0.01},
    ...                    std_discrete=0.1)
    >>> slam.update(7, [2.0, 1.0])
    >>> slam.predict(0.0, [0.5, 0.0, 0.0], 1.0)
    >>> slam.update(7, [1.5, 1.0])
    >>> slam.landmarks[7].round(3), slam.pose.round(3), slam.counts["landmark"]["used"]
    (array([2., 1.]), array([0.5, 0. , 1. , 0. ]), 1)

    References
    ----------
    Barrau and Bonnabel, An EKF-SLAM algorithm with consistency properties, arXiv 1510.06263, 2015.
    Brossard, Barrau and Bonnabel, Exploiting symmetries to design EKFs with consistency properties
    for navigation and SLAM, IEEE Sensors Journal 19(4), 2019.
    """

    def __init__(
        self,
        count: int,
        *,
        group: LieGroup = SE2,
        x0: Any = None,
        std0: float | Mapping[str, float],
        noise: Mapping[str, float],
        std_discrete: Any,
        sees: Callable[[Value], Value] | None = None,
        places: Callable[[Value], Value] | None = None,
        output: LieGroup | None = None,
        inputs: Sequence[str] | None = None,
        velocity: Callable[[Value], Value] | None = None,
        **options: Any,
    ) -> None:
        if group not in (SE2, SE3):
            raise ValueError(f"group of a LandmarkMap is SE2 or SE3, got {group}")
        check_count("count, the landmarks that there can be,", count, most=MOST_SUBSTEPS)
        if (sees is None) != (places is None):
            raise ValueError("sees and places, which takes it back, go together: give both or none")
        if (inputs is None) != (velocity is None):
            raise ValueError(
                "inputs and velocity, which is made of them, go together: both or none"
            )
        if options.get("square_root"):
            raise ValueError("a LandmarkMap keeps its covariance, no root of it: no square_root=")
        if options.get("window"):
            raise ValueError("a LandmarkMap takes landmarks when they are seen: no window=")
        self.group, self.count = group, count
        self._size = d = group.point_size
        self._state: Any = (SEK2 if group == SE2 else SEK3)(1 + count)
        output = Rn(d) if output is None else output
        if output.dim != d:
            raise ValueError(
                f"a landmark has {d} coordinates, output {output} has {output.dim}: one "
                "measurement must say where a landmark is; take more of them together"
            )
        self._places = (lambda y: y) if places is None else places
        if inputs is None:
            driving = [
                Input(f"velocity.{name}", f"{unit}/s", role="measured")
                for name, unit in zip(group.tangent_names, group.tangent_units, strict=True)
            ]
        else:
            driving = [Input(name, role="measured") for name in as_names(inputs)]
        state, rest = self._state, d * count

        def rate(t: Value, x: Value, u: Value, p: Value) -> Value:
            body = u if velocity is None else velocity(u)
            return ca.vertcat(body[:d], ca.DM.zeros(rest), body[d:])

        def seen(t: Value, x: Value, u: Value, p: Value) -> Value:
            R = state._rotation.matrix(state.rotation(x))
            b = R.T @ (state.vector(x, 1) - state.vector(x, 0))
            return b if sees is None else sees(b)

        self.system: System[Any] = System("landmark_map", state, rate, inputs=driving)
        pose = group.identity if x0 is None else check_element("x0", x0, group)
        start = np.concatenate([pose[:d], np.zeros(rest), pose[d:]])
        chosen: dict[str, Any] = {"error": "right", **options}
        self.filter = EKF(
            self.system, [Sensor(SEEN, seen, output, std_discrete=std_discrete)], start,
            np.diag(self._deviations(std0) ** 2), noise=noise, **chosen,
        )  # fmt: skip
        if sees is not None:
            self._check_inverse(sees)
        self._known: dict[int, None] = {}
        self._counts: Counter[str] = Counter()

    def _deviations(self, std0: float | Mapping[str, float]) -> np.ndarray:
        names = self.group.tangent_names
        given = dict(std0) if isinstance(std0, Mapping) else dict.fromkeys(names, std0)
        made = np.zeros(self._state.dim)
        places = [*range(self._size), *range(self._state.point_size, self._state.dim)]
        missing = set(names) - given.keys()
        if missing or not given.keys() <= set(names):
            raise ValueError(f"std0 names {', '.join(given)}; expected each of {', '.join(names)}")
        made[places] = [float(check_shape("std0", given[name], ())) for name in names]
        if made.min() < 0:
            raise ValueError(f"std0 must not be negative, got {std0}")
        return made

    def _check_inverse(self, sees: Callable[[Value], Value]) -> None:
        """At one point, since a wrong inverse would keep all landmarks off the map."""
        point = np.array(POINT[: self._size])
        found = np.array(ca.DM(self._places(sees(ca.DM(point)))))
        if found.shape != (self._size, 1) or not np.allclose(found[:, 0], point):
            raise ValueError(
                f"places must take back what sees says: of a point at {point} m in the body frame "
                f"it makes {found.ravel()}"
            )

    def __repr__(self) -> str:
        return (
            f"LandmarkMap({self.group}, {len(self._known)} of {self.count} landmarks seen, "
            f"errors on the {self.filter.error})"
        )

    # The estimate

    @property
    def x(self) -> np.ndarray:
        """Position, landmarks, rotation, shape (nq,); of landmarks, those in the map count."""
        return self.filter.x

    @property
    def P(self) -> np.ndarray:
        """Covariance of ``system.error(truth, x)``; of landmarks, those in the map count."""
        return self.filter.P

    @property
    def pose(self) -> np.ndarray:
        """Of the robot, coordinates on the group."""
        x = self.x
        return np.concatenate([x[: self._size], x[self._state.point_size :]])

    @property
    def pose_covariance(self) -> np.ndarray:
        """Of ``group.minus(truth, pose)``."""
        n = self._state.point_size
        rows = [*range(self._size), *range(n, self._state.dim)]
        return self.P[np.ix_(rows, rows)]

    @property
    def landmarks(self) -> dict[int, np.ndarray]:
        """Positions in the world [m], in the order in which they joined."""
        x = self.x
        return _Seen((k, self._state.vector(x, 1 + k)) for k in self._known)

    @property
    def landmark_covariances(self) -> dict[int, np.ndarray]:
        """Of the positions of landmarks in the world [m²]."""
        return _Seen((k, self._position_covariance(1 + k)) for k in self._known)

    def _position_covariance(self, vector: int) -> np.ndarray:
        """Of one of the state's vectors, in world axes."""
        own = slice(self._size * vector, self._size * (vector + 1))
        return self._rotation @ self.P[own, own] @ self._rotation.T

    @property
    def _rotation(self) -> np.ndarray:
        return self._state._rotation.matrix(self._state.rotation(self.x))

    def plot(self) -> Figure:
        """The map from above with ellipses of 2σ; see `lgcontrol.plotting.plot_map`."""
        return plot_map(
            self.pose[: self._size],
            self._rotation[:, 0],
            self._position_covariance(0),
            self.landmarks,
            self.landmark_covariances,
        )

    def scene(self) -> Scene:
        """What there is to see: the robot, and ellipsoids of 2σ of it and of the landmarks."""
        places = {f"landmark {k}": place for k, place in self.landmarks.items()}
        spread = {f"landmark {k}": P for k, P in self.landmark_covariances.items()}
        places["robot"], spread["robot"] = self.pose[: self._size], self._position_covariance(0)
        pose = self.group.embed(self.pose)[np.newaxis]
        size = 0.5 * float(np.sqrt(np.trace(spread["robot"])))
        reach = [float(np.ptp([*places.values()], axis=0).max()), size, 1e-2]
        robot = SceneBody("robot", [dart(0.06 * max(reach))], pose)
        return Scene("map", np.zeros(1), [robot, *place_bodies(places, spread)])

    @property
    def t(self) -> float | None:
        """Time of the estimate in s."""
        return self.filter.t

    @property
    def info(self) -> dict[str, Any]:
        """Of the last measurement."""
        return self.filter.info

    @property
    def counts(self) -> dict[str, Counter[str]]:
        """What became of intervals and measurements; first sights count as "added"."""
        made = self.filter.counts
        return {**made, SEEN: made[SEEN] + self._counts}

    def summary(self) -> str:
        """Say how often what became of intervals and measurements."""
        return summary_of(self.counts)

    def reset(self) -> None:
        """Back to the first pose, without landmarks."""
        self.filter.reset()
        self._known, self._counts = {}, Counter()

    # One call at a time

    def predict(self, t: float, u: Any, dt: float) -> None:
        """Move the robot; see `EKF.predict`, u are the velocity of the body or the `inputs`."""
        self.filter.predict(t, u, dt)

    def update(self, landmark: int, y: Any) -> None:
        """Correct the map by a landmark, or add it.

        Parameters
        ----------
        landmark : int
            Which one, 0 to count − 1.
        y : array_like
            The present measurement of it. A first measurement that is not finite adds nothing.
        """
        try:
            landmark = index(landmark)
        except TypeError:
            raise TypeError(
                f"a landmark is a whole number, 0 … {self.count - 1}, got {landmark!r}"
            ) from None
        if not 0 <= landmark < self.count:
            raise IndexError(f"landmark {landmark} of a map with landmarks 0 … {self.count - 1}")
        ekf, (_, y) = self.filter, measured(self.filter.sensors, SEEN, y)
        order = self._orders[landmark]
        ekf.column = ekf.column[order]
        if landmark in self._known:
            ekf.update(SEEN, y)
        else:
            ekf.column, is_added = self._add(ekf.column, ekf.t or 0.0, ekf.p, y, ekf.noise_scale[0])
            if is_added:
                self._known[landmark] = None
            word = "added" if is_added else UpdateStatus.NOT_FINITE.text
            self._counts[word] += 1
            ekf.info = {"sensor": SEEN, "status": word, "nis": np.nan}
        ekf.column = ekf.column[order]

    def compile(self) -> None:
        """Build machine code, which takes some ten seconds for twenty landmarks."""
        self.filter.compile()
        compile_functions([self._add], batch=False)

    @cached_property
    def _orders(self) -> list[np.ndarray]:
        """Orders of the carried column that exchange the first landmark for another.

        One function of the first landmark serves all: the code would be K times as long otherwise.
        """
        layout, d, state = self.filter.layout, self._size, self._state
        n = layout.n
        rows, columns = layout.places
        place = np.zeros((n, n), dtype=int)
        place[rows, columns] = place[columns, rows] = np.arange(layout.triangle)
        made = []
        for k in range(self.count):
            points = np.arange(state.point_size)
            first, own = slice(d, 2 * d), slice(d * (1 + k), d * (2 + k))
            points[first], points[own] = points[own].copy(), points[first].copy()
            x = np.concatenate([points, np.arange(state.point_size, state.nq)])
            e = np.concatenate([points, np.arange(state.point_size, state.dim)])
            packed = place[e[rows], e[columns]] + state.nq
            made.append(np.concatenate([x, packed, np.arange(x.size + packed.size, layout.size)]))
        return made

    @cached_property
    def _add(self) -> ModelFunction:
        """Put the first landmark where it is seen."""
        system, layout, d = self.system, self.filter.layout, self._size
        bound, own = self.filter.sensors[SEEN], slice(d, 2 * d)
        errors = ErrorSide(system, self.filter.error)

        def add(z: Value, t: Value, p: Value, y: Value, r: Value) -> list[Value]:
            x, lower, counters, u = layout.split(z)
            R = self._state._rotation.matrix(self._state.rotation(x))
            place = x[:d] + R @ self._places(y)
            x_new = ca.vertcat(x[:d], place, x[2 * d :])
            seen = bound.derivatives(t, x_new, u, p)
            off = bound.group.minus(y, seen.y)
            # 0 = C ε + C_l ε_l − v for what is measured with an error v
            C = ca.sparsify(seen.C @ errors.to_left(x_new))
            J = ca.inv(ca.densify(C[:, own]))
            T = ca.SX.eye(self._state.dim)
            C[:, own] = 0
            T[own, :] = -J @ C
            L = bound.white_factor_at(t, x_new, u, p) * r
            P = congruence(ca.sparsify(T), ca.tril2symm(lower))
            P[own, own] += J @ L @ L.T @ J.T
            made = layout.join(x_new, P, counters, u)
            size = ca.sumsqr(ca.vertcat(x_new, ca.diag(P)))  # not below anything if not finite
            fine = ca.logic_and(size < LARGEST_FINITE, ca.sumsqr(off) < 1e-12)
            return [ca.if_else(fine, made, z), fine]

        shapes = {"z": (layout.size,), "t": (), "p": (system.n_parameters,),
                  "y": (bound.group.nq,), "r": ()}  # fmt: skip
        return trace("add_landmark", add, shapes, {"z_next": (layout.size,), "is_added": ()})


class _Seen(dict[int, np.ndarray]):
    """By landmark; those that are not in the map yet are told."""

    def __missing__(self, landmark: int) -> np.ndarray:
        known = ", ".join(map(str, self)) or "none"
        raise UnknownNameError(f"landmark {landmark!r} has not been seen: the map has {known}")
