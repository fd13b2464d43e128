"""Look: what bodies of a state look like, and motions that are drawn smoothly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..groups import LieGroup, Product
from ..groups._internal import Leaf, SO3Group, leaves
from ._records import BodyShape, Mesh, SceneJoint

JUMP = 10.0  # times as long as the steps next to it is a step that is a jump
LEAST_JUMP = 1e-2  # of the longest step: less is rounding, or a motion that begins
ARC = 0.1  # rad, the longest that is drawn as a straight line
LEAST_STATES = 300  # of a motion that looks smooth


def smooth(group: LieGroup, x: np.ndarray) -> np.ndarray:
    """States with others between them on the group where they are few, shape (M, nq).

    Bodies that only turn, also if they are far apart. Over jumps there are none between.
    """
    return smooth_motion(group, np.arange(len(x), dtype=float), x)[1]


def smooth_motion(group: LieGroup, t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and states as of `smooth`, shapes (M,) and (M, nq)."""
    parts = -(-LEAST_STATES // len(x)) if len(x) > 1 else 1
    if len(x) > 1 and is_attitude(group):
        _, block, where, _ = moving_blocks(group)[0]
        turns = np.linalg.norm(block.minus(x[1:, where], x[:-1, where]), axis=1)
        largest = turns.max(initial=0.0, where=np.isfinite(turns))  # runs may end in NaN
        parts = max(parts, int(np.ceil(largest / ARC)))
    if parts == 1:
        return t, x
    lengths = np.linalg.norm(group.minus(x[1:], x[:-1]), axis=1)
    share = np.arange(parts) / parts
    s = share * ~jumps(lengths)[:, np.newaxis]
    between = group.interpolate(x[:-1, np.newaxis], x[1:, np.newaxis], s)
    times = (t[:-1, np.newaxis] + np.diff(t)[:, np.newaxis] * share).ravel()
    return np.append(times, t[-1]), np.concatenate([between.reshape(-1, group.nq), x[-1:]])


def jumps(lengths: np.ndarray) -> np.ndarray:
    """Which steps of a motion are none but jumps: far longer than those before and after them."""
    if len(lengths) < 2:
        return np.zeros(len(lengths), dtype=bool)
    padded = np.concatenate([[0.0], lengths, [0.0]])
    beside = np.maximum(padded[:-2], padded[2:])
    return lengths > np.maximum(JUMP * beside, LEAST_JUMP * lengths.max())


def is_attitude(group: LieGroup) -> bool:
    """Whether the bodies of a state only turn."""
    blocks = [leaf.group for leaf in moving_blocks(group)]
    return bool(blocks) and all(isinstance(block, SO3Group) for block in blocks)


@dataclass(frozen=True, eq=False)
class DrawnForce:
    """A force on a body whose components are inputs.

    Inputs are along x, y, z in N, of the world or of the body; names that no input has stand for
    zero. The point of action is in the axes of the body, m.
    """

    name: str
    inputs: tuple[str, str, str]
    in_world: bool
    point: np.ndarray


@dataclass(frozen=True, eq=False)
class DrawnBody:
    """A body of a model: its shapes, and a point of it whose way is drawn.

    That is the tip, in the axes of the body. It may stay where it is (`is_fixed`); pushes are
    forces on it that are inputs.
    """

    name: str
    shapes: Sequence[BodyShape]
    tip: np.ndarray | None = None
    is_fixed: bool = False
    pushes: Sequence[DrawnForce] = ()


class ModelLook(Protocol):
    """What a model knows of how it looks. Models keep it with their System."""

    @property
    def block(self) -> str:
        """Block of the state whose coordinates place the bodies; empty: the whole state."""
        ...

    def bodies(self, notices: list[str]) -> Sequence[DrawnBody]:
        """Bodies; what could not be read is added to the notices."""
        ...

    def poses(self, q: np.ndarray) -> np.ndarray:
        """SE3 coordinates of the bodies, shape (N, k, 7), for coordinates (N, nq)."""
        ...

    def joints(self, q: np.ndarray) -> Sequence[SceneJoint]:
        """How pages move the bodies from coordinates (nq,); none where they cannot."""
        ...


class _Whole:
    """Looks whose bodies pages do not move one by one."""

    def joints(self, q: np.ndarray) -> Sequence[SceneJoint]:
        """None."""
        return ()


@dataclass(frozen=True, eq=False)
class RigidLook(_Whole):
    """One body whose pose is a block of the state."""

    name: str
    group: LieGroup
    shapes: Sequence[BodyShape]
    block: str = "pose"
    pushes: Sequence[DrawnForce] = ()

    def bodies(self, notices: list[str]) -> Sequence[DrawnBody]:
        """The body."""
        turns = isinstance(self.group, SO3Group)
        tip = None if turns else np.zeros(3)
        return [DrawnBody(self.name, self.shapes, tip, pushes=self.pushes)]

    def poses(self, q: np.ndarray) -> np.ndarray:
        """Of the body."""
        return np.asarray(self.group.embed(q))[:, np.newaxis]


@dataclass(frozen=True, eq=False)
class StateLook(_Whole):
    """Darts for the blocks of a state that move a body in space, where nothing else is known.

    A dart is `size` m long.
    """

    group: LieGroup
    size: float = 1.0
    block: str = ""

    def bodies(self, notices: list[str]) -> Sequence[DrawnBody]:
        """One for each block."""
        return [
            DrawnBody(
                name or "body", [dart(self.size)], None if isinstance(b, SO3Group) else np.zeros(3)
            )
            for name, b, *_ in moving_blocks(self.group)
        ]

    def poses(self, q: np.ndarray) -> np.ndarray:
        """Of the bodies."""
        found = [b.embed(q[:, where]) for _, b, where, _ in moving_blocks(self.group)]
        return np.stack(found, axis=1) if found else np.zeros((len(q), 0, 7))


@dataclass(frozen=True, eq=False)
class HeldLook(_Whole):
    """A look whose bodies hold each other, so that pages do not move one alone."""

    of: ModelLook

    @property
    def block(self) -> str:
        """As without loops."""
        return self.of.block

    def bodies(self, notices: list[str]) -> Sequence[DrawnBody]:
        """As without loops."""
        return self.of.bodies(notices)

    def poses(self, q: np.ndarray) -> np.ndarray:
        """As without loops."""
        return self.of.poses(q)


def moving_blocks(group: LieGroup) -> list[Leaf]:
    """Blocks that move a body with at least two degrees of freedom."""
    return [leaf for leaf in leaves(group) if _moves(leaf.group)]


def _moves(group: LieGroup) -> bool:
    try:
        return group.selection.shape[1] >= 2
    except TypeError:  # groups that move nothing in space say so
        return False


def dart(length: float) -> BodyShape:
    """A dart along x with its fin along z."""
    corners = np.array(
        [[0.6, 0, 0], [-0.4, 0.34, 0], [-0.22, 0, 0.06], [-0.4, -0.34, 0], [-0.4, 0, 0.26]]
    )
    faces = np.array([[0, 1, 2], [0, 2, 3], [0, 2, 4], [0, 2, 1], [0, 3, 2], [0, 4, 2]])
    return BodyShape(Mesh(length * corners, faces))


def look_for(look: ModelLook | None, group: LieGroup, x: np.ndarray) -> ModelLook | None:
    """The look of a model if the state has its block, else that of the blocks that move bodies."""
    if look is not None and (not look.block or look.block in blocks_of(group)):
        return look
    blocks = moving_blocks(group)
    if not blocks:
        return None
    if all(isinstance(block, SO3Group) for _, block, *_ in blocks):
        return StateLook(group)
    places = np.concatenate([np.asarray(b.embed(x[:, at]))[:, :3] for _, b, at, _ in blocks])
    places = places[np.isfinite(places).all(axis=1)]
    return StateLook(group, 0.12 * (float(np.ptp(places, axis=0).max(initial=0.0)) or 1.0))


def blocks_of(group: LieGroup) -> Mapping[str, LieGroup]:
    """Blocks of a product, or none."""
    return group.blocks if isinstance(group, Product) else {}


def coordinates_of(look: ModelLook, group: LieGroup, x: np.ndarray) -> np.ndarray:
    """What a look places its bodies by, out of states (N, nq)."""
    return (
        x[:, group.coordinate_slice(look.block)] if isinstance(group, Product) and look.block else x
    )


def as_look(
    name: str, state: LieGroup, look: ModelLook | Sequence[BodyShape] | None
) -> ModelLook | None:
    """A look as it is; of shapes the look of the body that the first block of the state moves."""
    if look is None or not isinstance(look, Sequence):
        return look
    found = moving_blocks(state)
    if not found:
        raise ValueError(f"{name}: the state {state} has no block that moves a body in space")
    return RigidLook(name, found[0].group, tuple(look), found[0].name)
