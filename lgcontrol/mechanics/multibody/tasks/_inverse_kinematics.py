"""Inverse kinematics: configurations that bring frames of a tree to targets, within limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ....codegen import ModelFunction, Value, named_options
from ....codegen._internal import (
    MOST_SUBSTEPS,
    Result,
    Shape,
    Status,
    as_numbers,
    check_count,
    check_known,
    check_shape,
)
from ....groups import SE3, SO3, LieGroup, Translation, check_element
from .._multibody import Multibody

# A frame stays in a subgroup if nothing leaves it by more than rounding, in m and rad.
CONFINED = 1e-9
# Random configurations at which this is tried; one would do but for special poses.
TRIALS = 3


class TaskKinematics(NamedTuple):
    """What a task needs to know of a frame, as CasADi expressions of q and v."""

    X: Value  # (nq of the task's group,)
    J: Value  # (dim, nv) jacobian: ``Ẋ = X (J v)^``, body-fixed as on every group
    drift: Value  # (dim,) ``J̇ v``: acceleration of the frame at constant v


@named_options
@dataclass(frozen=True, eq=False)
class FrameTask:
    """A frame of a tree, and which part of its motion matters.

    Parameters
    ----------
    frame : str
    kind : str or LieGroup
        "pose": SE3 coordinates in the world. "position": of the frame's origin, world axes.
        "orientation": SO3 coordinates. Or a subgroup of SE(3) that the frame never leaves:
        Schoenflies for the tool of a pick-and-place arm.
    weight : float or array_like
        Weight on the squared error: one number, or one per tangent coordinate [1/m², 1/rad²].

    Raises
    ------
    ValueError
        If the kind is unknown or a weight is negative.

    Examples
    --------
    >>> FrameTask("tool", "position").group.dim
    3
    """

    frame: str
    kind: str | LieGroup = "pose"
    weight: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kind, str):
            check_known("kind of task", _KINDS, self.kind)
        if not isinstance(self.kind, str) and self.kind.matrix_size != 4:
            raise ValueError(
                f"a task on {self.kind.name}: expected a subgroup with 4 × 4 matrices, such as "
                f"Schoenflies, or one of {', '.join(_KINDS)}"
            )
        weight = as_numbers(f"weight of the task on {self.frame!r}", self.weight)
        shape = () if weight.ndim == 0 else (self.group.dim,)
        weight = check_shape(f"weight of the task on {self.frame!r}", weight, shape)
        if (weight < 0).any():
            raise ValueError(f"weight of the task on {self.frame!r} is negative: {self.weight}")
        object.__setattr__(self, "weight", np.broadcast_to(weight, (self.group.dim,)))

    @property
    def group(self) -> LieGroup:
        """Group on which targets and errors of the task live."""
        return _KINDS[self.kind].group if isinstance(self.kind, str) else self.kind

    def check(self, tree: Multibody) -> None:
        """Refuse unknown frames, and frames that leave the task's subgroup.

        Raises
        ------
        KeyError
            If the tree has no such frame.
        ValueError
            If the frame leaves the subgroup.
        """
        placement = tree.placement(self.frame)
        if isinstance(self.kind, str):
            return
        H = self.group.selection
        q = tree.configuration.random(0, (TRIALS,))
        J = tree.jacobian(self.frame)(q)
        away = J - H @ np.linalg.pinv(H) @ J
        pose = ca.SX.sym("pose", 7)
        nearest = self.group.homogeneous(_subgroup(self.group).coordinates(pose))
        missed = ca.Function("missed", [pose], [nearest - SE3.homogeneous(pose)])
        off = [np.abs(missed(one).full()).max() for one in placement(q)]
        if max(np.abs(away).max(initial=0.0), *off) > CONFINED:
            raise ValueError(
                f"frame {self.frame!r} of {tree.name} leaves {self.group.name}: choose kind "
                "'pose', 'position' or 'orientation', or a frame whose axes match the subgroup's"
            )

    def kinematics(self, tree: Multibody, q: Value, v: Value | None = None) -> TaskKinematics:
        """Coordinates, Jacobian and drift for CasADi columns q and v."""
        kind = _KINDS[self.kind] if isinstance(self.kind, str) else _subgroup(self.kind)
        X = kind.coordinates(tree.placement(self.frame)(q))
        J = kind.rows @ tree.jacobian(self.frame, kind.reference)(q)
        drift = ca.SX(self.group.dim, 1)
        if v is not None:
            drift = kind.rows @ (tree.jacobian_rate(self.frame, kind.reference)(q, v) @ v)
        return TaskKinematics(X, J, drift)


class _TaskKind(NamedTuple):
    group: LieGroup
    coordinates: Callable[[Value], Value]
    reference: Any
    rows: ca.DM


def _subgroup(group: LieGroup) -> _TaskKind:
    def coordinates(pose: Value) -> Value:
        return group.from_matrix(SE3.homogeneous(pose))

    rows = ca.sparsify(ca.DM(np.linalg.pinv(group.selection)))
    return _TaskKind(group, coordinates, "body", rows)


_EYE = ca.DM.eye(6)
_KINDS = {
    "pose": _TaskKind(SE3, lambda pose: pose, "body", _EYE),
    "position": _TaskKind(Translation("xyz"), lambda pose: pose[:3], "hybrid", _EYE[:3, :]),
    "orientation": _TaskKind(SO3, lambda pose: pose[3:], "body", _EYE[3:, :]),
}


# First damping, relative to the largest curvature of the cost; smallest one, against rounding.
INVERSE_KINEMATICS_DAMPING = 1e-3
SMALLEST_DAMPING = 1e-12
# A step of this size, in rad and m, leads nowhere.
STILL_STEP = 1e-10
# A decrease by this share of the cost changes no digit of the error that counts.
NEGLIGIBLE_DECREASE = 1e-12
# A held bound is released if the descent pulls off it by more than rounding.
RELEASE = 1e-12
# Share of the predicted decrease that a step must achieve.
SUFFICIENT_DECREASE = 1e-4
# Distance of a coordinate from its limit at which it is held there, in rad and m; and least share
# of the steepest slope with which the descent pushes against the limit.
AT_LIMIT = 1e-9
PUSH = 1e-6
# Largest damping, relative as the first one: steps are then far below rounding.
LARGEST_DAMPING = 1e12


class InverseKinematicsStatus(Status, StrEnum):
    """How a search for a configuration ended.

    ``CONVERGED``: every error is within the tolerance. ``STATIONARY``: no nearby configuration
    within the limits is better. ``ITERATION_LIMIT``: all iterations are used up.
    """

    CONVERGED = "converged"
    STATIONARY = "stationary"
    ITERATION_LIMIT = "iteration limit"

    @property
    def is_success(self) -> bool:
        """Whether the targets are met."""
        return self is InverseKinematicsStatus.CONVERGED


@dataclass(frozen=True, eq=False)
class InverseKinematicsResult(Result):
    """Best configuration found, and how good it is.

    Attributes
    ----------
    q : ndarray, shape (nq,)
    status : InverseKinematicsStatus
    errors : tuple of ndarray
        ``minus(frame, target)`` of each task, shape (dim,) each [m, rad].
    error : float
        Largest entry of the errors that has a weight [m, rad].
    iterations : int
        Of all starts together.
    starts : int
        Number of starts tried.
    at_limits : tuple of str
        Joints whose limits keep the frames from coming nearer.
    message : str
        Why the targets are not met, and what to try; empty where they are.
    """

    q: np.ndarray
    status: InverseKinematicsStatus
    errors: tuple[np.ndarray, ...]
    error: float
    iterations: int
    starts: int
    at_limits: tuple[str, ...] = ()
    message: str = ""


@named_options
class InverseKinematics:
    """Finds configurations that bring frames to targets: damped Gauss-Newton on the group.

    Minimises ``½ Σ wᵢ eᵢ²`` over the configuration within the joints' limits, where e are the
    errors ``minus(frame, target)`` of all tasks, with exact Jacobians. Every step solves the
    damped linear problem within the limits by an active set, and is taken if the cost decreases.
    A target out of reach is no error: the result says how near it comes.

    Parameters
    ----------
    tree : Multibody
    tasks : str, FrameTask or sequence of FrameTask
        A frame whose pose is wanted, or what is wanted of one or several frames.
    limits : bool
        Whether the joints' position limits hold.
    tolerance : float
        Error in m and rad at which a target counts as met.
    max_iterations : int
        Per start.

    Raises
    ------
    KeyError, ValueError
        If a frame is unknown or leaves the subgroup of its task.

    References
    ----------
    J. Nocedal, S. Wright: Numerical Optimization, 2006, sections 10.3 and 16.7; the damping
    follows H. B. Nielsen: Damping parameter in Marquardt's method. IMM-REP-1999-05, 1999.

    Examples
    --------
    >>> tree = Multibody().add_body("upper", None, "revolute", axis="y")
    >>> tree = tree.add_body("lower", None, "revolute", "upper", [1, 0, 0], axis="y")
    >>> tree = tree.add_frame("tip", "lower", [1, 0, 0])
    >>> reach = InverseKinematics(tree, FrameTask("tip", "position"))
    >>> found = reach.solve([1.0, 0.0, -1.0], guess=[0.1, 0.1])
    >>> found.status.text, tree.position("tip")(found.q).round(6) + 0.0
    ('converged', array([ 1.,  0., -1.]))
    >>> far = reach.solve([3.0, 0.0, 0.0], guess=[0.1, 0.1])
    >>> far.status.text
    'stationary'
    >>> print(far.message.partition(':')[0])
    no joint moves frame 'tip' nearer to the target, it stays 1 m off
    """

    def __init__(
        self,
        tree: Multibody,
        tasks: str | FrameTask | Sequence[FrameTask],
        *,
        limits: bool = True,
        tolerance: float = 1e-8,
        max_iterations: int = 100,
    ) -> None:
        self.tree = tree
        self.tasks: tuple[FrameTask, ...] = _as_tasks(tasks)
        for task in self.tasks:
            task.check(tree)
        self._is_single = isinstance(tasks, str | FrameTask)
        self.tolerance, self.max_iterations = float(tolerance), int(max_iterations)
        self.limits, bounds = bool(limits), tree.limits
        free = np.full(tree.nv, np.inf)
        self._lower = bounds["lower"] if limits else -free
        self._upper = bounds["upper"] if limits else free
        weights = np.concatenate([np.asarray(task.weight) for task in self.tasks])
        self._root = np.sqrt(weights)
        self.function: ModelFunction = _task_errors(tree, self.tasks)

    @named_options
    def solve(
        self, target: Any, guess: Any = None, *, restarts: int = 0, seed: int = 0
    ) -> InverseKinematicsResult:
        """Configuration for a target.

        Parameters
        ----------
        target : array_like, or sequence of array_like
            Coordinates on the task's group: (7,) for a pose, (3,) for a position, (4,) for an
            orientation; one for each task if the solver was given a sequence of tasks.
        guess : array_like, shape (nq,), optional
            Configuration to begin at; the middle of the limits if left out.
        restarts : int
            Random starts to try within the limits, one after another, until one converges.
        seed : int
            Of the random starts.

        Returns
        -------
        InverseKinematicsResult
            The one with the least cost.

        Raises
        ------
        ValueError
            If a size does not fit or a number is not finite. Also if a target is no element of its
            task's group, such as a quaternion of zeros.
        """
        goal = self._goal(target)
        rng = np.random.default_rng(seed)
        group = self.tree.configuration
        if guess is None:
            q = group.exp(self._middle())
        else:
            q = check_element("guess", guess, group)
        best = self._from(self._within(q), goal)
        cost, iterations, starts = best.cost, best.iterations, 1
        check_count("restarts", restarts, least=0, most=MOST_SUBSTEPS)
        while not best.status.is_success and starts <= restarts:
            start = random_configuration(self.tree, rng, limits=self.limits)
            other = self._from(start, goal)
            iterations, starts = iterations + other.iterations, starts + 1
            if other.status.is_success or other.cost < cost:
                best, cost = other, other.cost
        sizes = np.cumsum([task.group.dim for task in self.tasks])[:-1]
        errors = tuple(np.split(best.error, sizes))
        held = () if best.status.is_success else self._held(best, goal)
        return InverseKinematicsResult(
            best.q, best.status, errors, self._largest(best.error), iterations, starts,
            tuple(dict.fromkeys(joint for joint, _ in held)),
            self._told(best.status, errors, [limit for _, limit in held], starts),
        )  # fmt: skip

    def _held(self, found: _Iterate, goal: np.ndarray) -> list[tuple[str, str]]:
        """Joints whose limits the descent pushes against, each with the limit in words."""
        group, (error, J) = self.tree.configuration, self.function(found.q, goal)
        d, slope = group.log(found.q), J.T @ (self._root**2 * error)
        size = np.linalg.norm(J, axis=0) * np.linalg.norm(self._root**2 * error)
        joints = [name for name, block in group.blocks.items() for _ in range(block.dim)]
        pushed = []
        for i, unit in enumerate(group.tangent_units):
            for word, limit, push in (
                ("lower", self._lower[i], slope[i]), ("upper", self._upper[i], -slope[i]),
            ):  # fmt: skip
                if abs(d[i] - limit) <= AT_LIMIT and push > PUSH * size[i]:
                    pushed.append((joints[i], f"{word} limit of {joints[i]} ({limit:.4g} {unit})"))
        return pushed

    def _told(
        self,
        status: InverseKinematicsStatus,
        errors: Sequence[np.ndarray],
        limits: Sequence[str],
        starts: int,
    ) -> str:
        """Why targets are not met, and what to try."""
        if status.is_success:
            return ""
        off = []
        for task, error in zip(self.tasks, errors, strict=True):
            own, units = np.where(task.weight > 0, error, 0.0), task.group.tangent_units
            parts = [
                f"{np.linalg.norm([e for e, u in zip(own, units, strict=True) if u == unit]):.4g} "
                + unit
                for unit in dict.fromkeys(units)
            ]
            if np.abs(own).max(initial=0.0) > self.tolerance:
                off.append((task.frame, " and ".join(parts)))
        frames = " and ".join(f"frame {name!r}" for name, _ in off)
        stays = "; ".join(size for _, size in off)
        if status is not InverseKinematicsStatus.STATIONARY:
            return (
                f"{frames} still {'moves' if len(off) == 1 else 'move'} nearer, {stays} off after "
                f"{self.max_iterations} iterations: take a larger max_iterations"
            )
        many = starts > 1
        tried = f"{starts} starts came no nearer" if many else "try other starts, restarts=20"
        if limits:
            return (
                f"the {' and the '.join(limits)} {'keep' if len(limits) > 1 else 'keeps'} {frames} "
                f"{stays} off the target: {tried}{'; widen' if many else ', or widen'} "
                f"{'these limits' if len(limits) > 1 else 'this limit'}"
            )
        they = "it stays" if len(off) == 1 else "they stay"
        return (
            f"no joint moves {frames} nearer to the target, {they} {stays} off: the target is out "
            f"of reach, or a better configuration is elsewhere; {tried}"
        )

    def _goal(self, target: Any) -> np.ndarray:
        targets = [target] if self._is_single else list(target)
        if len(targets) != len(self.tasks):
            raise ValueError(f"{len(targets)} targets for {len(self.tasks)} tasks: give one each")
        parts = []
        for task, value in zip(self.tasks, targets, strict=True):
            name = f"target of the task on {task.frame!r}"
            parts.append(check_element(name, value, task.group))
        return np.concatenate(parts)

    def _from(self, q: np.ndarray, goal: np.ndarray) -> _Iterate:
        """Damped Gauss-Newton iterations from one start."""
        group = self.tree.configuration
        error, J = self.function(q, goal)
        r, A = self._root * error, self._root[:, None] * J
        cost, damping, growth = r @ r / 2, 0.0, 2.0
        done = 0
        while True:
            if self._largest(error) <= self.tolerance:
                status = InverseKinematicsStatus.CONVERGED
                break
            if done == self.max_iterations:
                status = InverseKinematicsStatus.ITERATION_LIMIT
                break
            curvature = max(np.einsum("ij,ij->j", A, A).max(initial=0.0), np.finfo(float).tiny)
            if not damping:
                damping = INVERSE_KINEMATICS_DAMPING * curvature
            here = group.log(q)
            low, high = self._lower - here, self._upper - here
            step = damped_step(A, r, damping, low, high)
            gradient = A.T @ r
            predicted = -(gradient @ step) - np.square(A @ step).sum() / 2
            is_still = (
                np.abs(step).max(initial=0.0) <= STILL_STEP
                or predicted <= NEGLIGIBLE_DECREASE * cost
            )
            if is_still or damping > LARGEST_DAMPING * curvature:
                status = InverseKinematicsStatus.STATIONARY
                break
            done += 1
            trial = self._within(group.plus(q, step))
            trial_error, trial_J = self.function(trial, goal)
            trial_r = self._root * trial_error
            gain = (cost - trial_r @ trial_r / 2) / predicted
            if gain > SUFFICIENT_DECREASE:
                q, error, r, A = trial, trial_error, trial_r, self._root[:, None] * trial_J
                cost = r @ r / 2
                damping *= max(1 / 3, 1 - (2 * min(gain, 1.0) - 1) ** 3)
                damping = max(damping, SMALLEST_DAMPING * curvature)
                growth = 2.0
            else:
                damping, growth = damping * growth, 2 * growth
        return _Iterate(q, error, float(cost), status, done)

    def _largest(self, error: np.ndarray) -> float:
        """Largest entry that has a weight."""
        return float(np.abs(error[self._root > 0]).max(initial=0.0))

    def _within(self, q: np.ndarray) -> np.ndarray:
        """The configuration with every limited coordinate inside."""
        d = self.tree.configuration.log(q)
        inside = np.clip(d, self._lower, self._upper)
        if np.array_equal(inside, d):
            return self.tree.configuration.normalize(q)
        return self.tree.configuration.exp(inside)

    def _middle(self) -> np.ndarray:
        both = np.isfinite(self._lower) & np.isfinite(self._upper)
        middle = np.where(both, (np.where(both, self._lower, 0) + self._upper) / 2, 0.0)
        return np.clip(middle, self._lower, self._upper)


@dataclass(frozen=True, eq=False)
class _Iterate:
    q: np.ndarray
    error: np.ndarray
    cost: float
    status: InverseKinematicsStatus
    iterations: int


def damped_step(
    A: np.ndarray, r: np.ndarray, damping: float, lower: np.ndarray, upper: np.ndarray
) -> np.ndarray:
    """Step d that minimises ``½ |A d + r|² + ½ damping |d|²`` with ``lower ≤ 0 ≤ upper`` around d.

    A primal active-set method. It moves to the best point of the free coordinates, stops at the
    first bound in the way and holds it. Then it releases the bound with the largest inward
    multiplier. Every pass lowers the cost.
    """
    n = A.shape[1]
    H, gradient = A.T @ A + damping * np.eye(n), A.T @ r
    d = np.zeros(n)
    # -1 at a lower bound, 1 at an upper one, 0 free; start with those the descent pushes against.
    side = np.where(
        (lower >= 0) & (gradient > 0), -1, np.where((upper <= 0) & (gradient < 0), 1, 0)
    )
    for _ in range(10 * (n + 1)):
        free = np.flatnonzero(side == 0)
        move = np.zeros(n)
        if len(free):
            slope = (H @ d + gradient)[free]
            move[free] = -np.linalg.solve(H[np.ix_(free, free)], slope)
        room = np.where(move < 0, lower - d, upper - d)
        share = np.divide(room, move, out=np.full(n, np.inf), where=move != 0)
        first = int(np.argmin(share))
        if share[first] < 1:
            d = d + share[first] * move
            side[first] = -1 if move[first] < 0 else 1
            d[first] = lower[first] if move[first] < 0 else upper[first]
            continue
        d = d + move
        pull = np.where(side != 0, side * (H @ d + gradient), -np.inf)
        worst = int(np.argmax(pull))
        if not pull[worst] > RELEASE * np.abs(gradient).max():
            break
        side[worst] = 0
    return np.clip(d, lower, upper)


def _task_errors(tree: Multibody, tasks: Iterable[FrameTask]) -> ModelFunction:
    """Errors of all tasks and their Jacobian by the configuration's tangent."""
    tasks = tuple(tasks)
    q = ca.SX.sym("q", tree.nq)
    goal = ca.SX.sym("target", sum(task.group.nq for task in tasks))
    errors, rows, start = [], [], 0
    for task in tasks:
        group = task.group
        there = goal[start : start + group.nq]
        start += group.nq
        now = task.kinematics(tree, q)
        e = group.minus(now.X, there)
        errors.append(e)
        rows.append(group.right_jacobian_inverse(e) @ now.J)
    results = ca.cse([ca.SX(ca.vertcat(*errors)), ca.SX(ca.vertcat(*rows))])
    function = ca.Function(
        "task_errors", [q, goal], results, ["q", "target"], ["error", "jacobian"]
    )
    size = sum(task.group.dim for task in tasks)
    return ModelFunction(function, shapes={"error": (size,), "jacobian": (size, tree.nv)})


def _as_tasks(tasks: str | FrameTask | Sequence[FrameTask]) -> tuple[FrameTask, ...]:
    if isinstance(tasks, str):
        return (FrameTask(tasks),)
    if isinstance(tasks, FrameTask):
        return (tasks,)
    if not tasks:
        raise ValueError("inverse kinematics needs at least one task")
    return tuple(tasks)


@named_options
def random_configuration(
    tree: Multibody,
    seed: int | np.random.Generator | None = None,
    shape: int | Shape = (),
    *,
    limits: bool = True,
) -> np.ndarray:
    """Random configurations within the joints' limits.

    Joints between limits are uniform, unlimited angles uniform over a turn, rotations uniform,
    unlimited lengths standard normal.

    Parameters
    ----------
    tree : Multibody
    seed : int or numpy.random.Generator, optional
    shape : int or tuple of int
        Batch axes.
    limits : bool
        Whether limits hold.

    Returns
    -------
    ndarray, shape (..., nq)

    Examples
    --------
    >>> from lgcontrol.mechanics import JointProperties
    >>> hinge = JointProperties(lower=-0.1, upper=0.2)
    >>> tree = Multibody().add_body("door", None, "revolute", properties=hinge)
    >>> q = random_configuration(tree, seed=1, shape=100)
    >>> bool((q >= -0.1).all() and (q <= 0.2).all())
    True
    """
    rng = np.random.default_rng(seed)
    group = tree.configuration
    d = group.log(group.random(rng, shape))
    is_angle = np.array([unit == "rad" for unit in group.tangent_units], dtype=bool)
    single = [np.full(block.dim, block.dim == 1) for block in group.blocks.values()]
    turns = is_angle & np.concatenate([np.zeros(0, dtype=bool), *single])
    d = np.where(turns, rng.uniform(-np.pi, np.pi, d.shape), d)
    if limits:
        lower, upper = tree.limits["lower"], tree.limits["upper"]
        both = np.isfinite(lower) & np.isfinite(upper)
        share = rng.uniform(size=d.shape)
        low, high = np.where(both, lower, 0.0), np.where(both, upper, 0.0)
        d = np.where(both, low + share * (high - low), d)
        d = np.clip(d, lower, upper)
    return group.exp(d)
