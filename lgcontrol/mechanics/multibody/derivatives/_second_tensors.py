"""Second derivatives of inverse dynamics in closed form: whole tensors.

A tensor is the horizontal concatenation of its slices by the last index. Three degrees of freedom
give an entry where they lie on one path from the root. With c the most distal of the three, I its
composite, ``2 B(Y) = Y×* I − I Y× + (I Y)×̄*`` and δ the change when c moves, all entries are
products of the twists of one other degree of freedom a with what c makes of the twist of another b:

- speeds ``B(S_c)ᵀ S_b`` and bends ``(δB(V) + B(Ψ̇_c))ᵀ S_b``, both couples,
- change ``δI S_b = (B(S_c) + B(S_c)ᵀ) S_b``,
- moved ``S_b ×* I S_c``.
"""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..dynamics._mass_matrix import Entries
from ..plan._drives import force_curvatures
from ..plan._plan import Plan
from ..plan._spatial import Velocity, cross, hat
from ._second_parts import Freedom, States, freedoms, pure_couple, states


class Tensor:
    """A sparse tensor of forces that grows entry by entry."""

    def __init__(self, n: int) -> None:
        self._n, self._entries = n, Entries(n, n * n)

    def add(self, i: Freedom, j: Freedom, k: Freedom, value: Value) -> None:
        """Add to the derivative of force i by the variables of j and k."""
        column = k.place * self._n + j.place
        rows, columns = slice(i.place, i.place + 1), slice(column, column + 1)
        self._entries.add(rows, columns, value)

    def add_pair(self, i: Freedom, j: Freedom, k: Freedom, value: Value) -> None:
        """Add to both orders of j and k; half to each within a joint, where both orders come."""
        value = value / 2 if j.node == k.node else value
        self.add(i, j, k, value)
        self.add(i, k, j, value)

    def add_block(self, place: slice, block: Value) -> None:
        """Add the tensor of one joint."""
        for k in range(place.start, place.stop):
            start, n = k * self._n, place.stop - place.start
            columns = slice(start + place.start, start + place.stop)
            own = (k - place.start) * n
            self._entries.add(place, columns, block[:, own : own + n])

    def matrix(self) -> Value:
        """Slices side by side."""
        return self._entries.matrix()


def inverse_dynamics_second_derivatives(
    plan: Plan, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value, Value]:
    """∂²τ/∂q², ∂²τ/∂q∂v, ∂²τ/∂v² and ∂²τ/∂q∂a, slices side by side, nv × nv² each."""
    state = states(plan, q, v, a, wrenches)
    found = freedoms(plan, v, state)
    tensors = tuple(Tensor(plan.nv) for _ in range(4))
    for k in range(len(plan.nodes)):
        path = [f for i in reversed(plan.path(k)) for f in found[i]]
        for c in found[k]:
            _add_products(c, path, state, *tensors)
    qq, qv, vv, qa = tensors
    for place, bent, dry in force_curvatures(plan, q, v):
        qq.add_block(place, bent)
        vv.add_block(place, dry)
    return qq.matrix(), qv.matrix(), vv.matrix(), qa.matrix()


def _add_products(
    c: Freedom, path: list[Freedom], state: States, qq: Tensor, qv: Tensor, vv: Tensor, qa: Tensor
) -> None:
    """All entries with c the most distal of the three."""
    inertia, velocity = state.inertias[c.node], state.velocities[c.node]
    own = inertia.velocity(c.S)
    bent = _carried(c.S, velocity) + inertia.velocity(c.first)
    half = velocity.half_transposed(c.S)
    S, first, second, fast = (
        ca.horzcat(*columns)
        for columns in zip(*((f.S, f.first, f.second, f.fast) for f in path), strict=True)
    )
    turning, twice = 2 * S[3:, :].T, 2 * first[3:, :].T
    # Columns: what c makes of b. Products with rows, the twists of a, are matrices [a, b].
    speeds = own.half_transposed(S)
    change = own.half(S) + pure_couple(speeds)
    bends = bent.half_transposed(S)
    moved = _times(c.momentum, S)
    own_bends = cross(-half, S[3:, :]) - own.half_transposed(first)
    by_speed, by_place = turning @ speeds, twice @ speeds
    by_change, by_moved = S.T @ change, S.T @ moved
    force_qq, force_qv = twice @ bends + second.T @ change, turning @ bends + fast.T @ change
    own_qq = twice @ own_bends + second.T @ moved
    own_qv = turning @ own_bends + fast.T @ moved
    carried_q, carried_v = S.T @ _times(c.position, S), S.T @ _times(c.rate, S)
    for m, a in enumerate(path):
        for n, b in enumerate(path):
            if a.node <= b.node:
                qq.add_pair(c, b, a, own_qq[m, n])
                qv.add(c, a, b, -by_place[m, n])
                vv.add_pair(c, b, a, -by_speed[m, n])
            if a.node < b.node:
                qv.add(c, b, a, own_qv[m, n])
                qa.add(c, b, a, by_moved[m, n])
                qa.add(a, b, c, by_moved[m, n])
            if b.node == c.node:
                continue
            qq.add_pair(b, c, a, force_qq[m, n])
            qv.add(b, a, c, by_place[m, n])
            vv.add_pair(b, c, a, by_speed[m, n])
            if a.node < c.node:
                qv.add(b, c, a, force_qv[m, n])
                qa.add(b, c, a, by_change[min(m, n), max(m, n)])  # symmetric
            if b.node < a.node:
                qq.add_pair(b, c, a, -carried_q[m, n])
                qv.add(b, a, c, -carried_v[m, n])


def _carried(S: Value, velocity: Velocity) -> Velocity:
    """Change of a `Velocity` whose body is moved by S."""
    s, w = S[:3], S[3:]
    Q = cross(w, velocity.Q) + cross(w, velocity.Q.T).T + velocity.p @ s.T
    return Velocity(cross(w, velocity.p), Q)


def _times(W: Value, V: Value) -> Value:
    """``V ×* W`` for columns V and one wrench."""
    force, moment = hat(W[:3]), hat(W[3:])
    v, w = V[:3, :], V[3:, :]
    return ca.vertcat(-(force @ w), -(moment @ w) - force @ v)
