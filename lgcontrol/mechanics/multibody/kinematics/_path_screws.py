"""Screws along the path of a frame: joint axes and displacements of joint placements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ....groups import SO3
from ..plan._plan import Plan
from ..plan._spatial import Motion
from ._frames import poses_seen_from


class Screw(NamedTuple):
    """A direction in which a frame can be displaced.

    Attributes
    ----------
    node : int
        Node whose axes the components are in; −1 is the world.
    position : int
        Place along the path from the root: the screw moves what is farther out. Screws of one
        joint share it.
    column : int
        Degree of freedom, or number of the parameter.
    S : DM or SX, shape (6, 1)
    """

    node: int
    position: int
    column: int
    S: Value


def joint_screws(plan: Plan, k: int) -> list[Screw]:
    """Every direction of every joint from the root to node k."""
    return [
        Screw(i, 2 * place + 1, node.v.start + column, node.S[:, column])
        for place, i in enumerate(reversed(plan.path(k)))
        for node in [plan.nodes[i]]
        for column in range(node.S.shape[1])
    ]


def placement_screws(plan: Plan, k: int, joints: Sequence[str]) -> list[Screw]:
    """Six displacements for each of the named joints that lies on the way to node k."""
    path = plan.path(k)[::-1]
    found = []
    for number, name in enumerate(joints):
        rest = plan.rests[name]
        if rest.node in path:
            screws = placement_directions(plan, name)
            place = 2 * path.index(rest.node)
            found += [
                Screw(rest.carrier, place, 6 * number + column, screws[:, column])
                for column in range(6)
            ]
    return found


def placement_directions(plan: Plan, joint: str) -> Value:
    """Displacements by x, y, z (parent link's axes), rx, ry, rz (joint's), in the carrier's frame.

    They are the U of ``B exp(U π)`` (Müller 2018, section 6.2) for the numbers that
    `Multibody.parametric` names.
    """
    rest = plan.rests[joint]
    turn: Value = ca.DM.eye(3)
    if isinstance(rest.turn, ca.SX) and rest.turn.nnz():
        turn = SO3._right_jacobian(rest.turn)
    angular = rest.frame.push(ca.vertcat(ca.DM(3, 3), turn))
    return ca.horzcat(ca.vertcat(rest.axes, ca.DM(3, 3)), angular)


def columns(
    plan: Plan, q: Value, seat: tuple[int, Motion], screws: Sequence[Screw], axes: str
) -> list[Value]:
    """Screws in "body", "spatial" or "hybrid" components: columns of the frame's Jacobian."""
    k, T = seat
    if axes == "body":
        relative = {k: T}
        while k >= 0:
            node = plan.nodes[k]
            relative[node.parent] = node.motion(q) @ relative[k]
            k = node.parent
        return [relative[screw.node].pull(screw.S) for screw in screws]
    if axes == "hybrid":
        world = poses_seen_from(plan, q, seat)
    else:
        world = plan.world_motions(q, [k] if k >= 0 else [])
    return [world[screw.node].push(screw.S) for screw in screws]
