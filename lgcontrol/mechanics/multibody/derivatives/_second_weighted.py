"""Hessians of weighted sums of generalized forces, without the tensors.

The weights act as the velocity of a test motion of the tree, with twists ``Λ = Σ S λ`` along the
path. The rows of what carries c and of what c carries then combine to the momenta of that motion.
Every entry is a few products of twists of one degree of freedom with wrenches of another one, in
O(n d) for n bodies and paths of length d.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ..dynamics._mass_matrix import Entries
from ..plan._drives import force_curvatures
from ..plan._plan import Plan
from ..plan._spatial import Velocity, cross, twist_cross, wrench_cross
from ._second_parts import Freedom, States, freedoms, states, sum_up


class Blocks(NamedTuple):
    """Second derivatives of a scalar by q, v and a, nv × nv each; those by v, a and a, a vanish."""

    qq: Value
    qv: Value
    vv: Value
    qa: Value


def inverse_dynamics_hessian(
    plan: Plan,
    q: Value,
    v: Value,
    a: Value,
    weights: Value,
    wrenches: Value | None = None,
) -> Blocks:
    """Second derivatives of ``weightsᵀ τ(q, v, a)``."""
    state = states(plan, q, v, a, wrenches)
    found = freedoms(plan, v, state)
    test = _test_motion(plan, state, weights)
    qq, qv, vv, qa = (Entries(plan.nv, plan.nv) for _ in range(4))
    for k, own in enumerate(found):
        path = [f for i in plan.path(k) for f in found[i]]
        for c in own:
            bend, turn, speed = _maps(c, state, test)
            for b in path:
                moved = twist_cross(test.carriers[b.node], b.S)
                turning, twice = 2 * b.S[3:], 2 * b.first[3:]
                by_place = _dot(twice, bend) + _dot(b.second, turn) + _dot(moved, c.position)
                _add_pair(qq, b, c, by_place)
                _add_pair(vv, b, c, _dot(turning, speed))
                _add(qv, b, c, _dot(twice, speed) + _dot(moved, c.rate))
                _add(qa, b, c, _dot(moved, c.momentum))
                if b.node < k:
                    _add(qv, c, b, _dot(turning, bend) + _dot(b.fast, turn))
                    _add(qa, c, b, _dot(b.S, turn))
    for place, bent, dry in force_curvatures(plan, q, v):
        n = place.stop - place.start
        for block, tensor in ((qq, bent), (vv, dry)):
            by_weights = ca.reshape(tensor.T @ weights[place], n, n)
            block.add(place, place, ca.sparsify(by_weights))
    return Blocks(*(block.matrix() for block in (qq, qv, vv, qa)))


class _Test(NamedTuple):
    """The test motion: twists of what carries the nodes; the rest with all that nodes carry."""

    carriers: list[Value]
    velocities: list[Velocity]
    halves: list[Value]


def _test_motion(plan: Plan, state: States, weights: Value) -> _Test:
    twists: list[Value] = []
    test = _Test([], [], [])
    for k, node in enumerate(plan.nodes):
        carrier = ca.DM(6, 1) if node.parent < 0 else twists[node.parent]
        twists.append(carrier + state.S[k] @ weights[node.v])
        body = state.bodies[k]
        test.carriers.append(carrier)
        test.velocities.append(body.velocity(twists[k]))
        test.halves.append(body.velocity(state.V[k]).half_transposed(twists[k]))
    sum_up(plan, test.velocities)
    sum_up(plan, test.halves)
    return test


def _maps(c: Freedom, state: States, test: _Test) -> tuple[Value, Value, Value]:
    """What, times 2 Ψ̇, Ψ̈ and 2 S of a degree of freedom, gives second derivatives.

    ``bend = B(V)ᵀ (Λ × S) − B(Λ)ᵀ Ψ̇ + S ×* Σ B(V)ᵀ Λ`` and ``speed = −B(Λ)ᵀ S``, both couples,
    and ``turn = S ×* P + I (Λ × S)`` with the momentum P of the test motion; sums over bodies and
    matrices are those of what c carries, ``Λ × S`` is with the Λ of what carries c.
    """
    k = c.node
    velocity, moved = test.velocities[k], twist_cross(test.carriers[k], c.S)
    momentum = ca.vertcat(velocity.p, velocity.angular_momentum)
    bend = state.velocities[k].half_transposed(moved) - velocity.half_transposed(c.first)
    bend = bend + cross(c.S[3:], test.halves[k])
    turn = wrench_cross(c.S, momentum) + state.inertias[k] @ moved
    return bend, turn, -velocity.half_transposed(c.S)


def _dot(a: Value, b: Value) -> Value:
    return a.T @ b


def _add(block: Entries, row: Freedom, column: Freedom, value: Value) -> None:
    block.add(slice(row.place, row.place + 1), slice(column.place, column.place + 1), value)


def _add_pair(block: Entries, b: Freedom, c: Freedom, value: Value) -> None:
    value = value / 2 if b.node == c.node else value
    _add(block, b, c, value)
    _add(block, c, b, value)
