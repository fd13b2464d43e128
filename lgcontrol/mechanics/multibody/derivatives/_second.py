"""Second derivatives of the dynamics in closed form: whole tensors, or weighted sums.

All is resolved in the frame of the first node of each branch from the world, where twists of
different nodes meet without change of frame. A displacement of the degree of freedom S_k turns all
it carries rigidly: a wrench W of that changes by ``S_k ×* W``. On top of that twists change by
``Ψ̇_k = V_λ × S_k`` and accelerations by ``Ψ̈_k + Ψ̇_k × V`` (see `_first`). Repeated, this leads
to products of three twists X, Y, Z which all are sums over particles, ``Xᵀ 2 B(Y) Z = 2 Σ m ω_Z ·
(ṙ_Y × ṙ_X)``: antisymmetric in X and Y, and linear in the angular part of Z alone. For other
recursions to the same tensors see Singh, Russell and Wensing, "On second-order derivatives of
rigid-body dynamics" (2023).

Tensors: a tensor is the horizontal concatenation of its slices by the last index. Three degrees of
freedom give an entry where they lie on one path from the root. With c the most distal of the three,
I its composite, ``2 B(Y) = Y×* I − I Y× + (I Y)×̄*`` and δ the change when c moves, all entries are
products of the twists of one other degree of freedom a with what c makes of the twist of another b:

- speeds ``B(S_c)ᵀ S_b`` and bends ``(δB(V) + B(Ψ̇_c))ᵀ S_b``, both couples,
- change ``δI S_b = (B(S_c) + B(S_c)ᵀ) S_b``,
- moved ``S_b ×* I S_c``.

Weighted sums: the weights act as the velocity of a test motion of the tree, with twists ``Λ = Σ S
λ`` along the path. The rows of what carries c and of what c carries then combine to the momenta of
that motion. Every entry is a few products of twists of one degree of freedom with wrenches of
another one, in O(n d) for n bodies and paths of length d.

Forward dynamics: differentiating ``τ = τ(q, v, a(q, v, τ))`` twice, with x and y any of q, v, τ:
``M ∂²a/∂x∂y = −(∂²τ/∂x∂y + ∂²τ/∂x∂a ∂a/∂y + ∂²τ/∂y∂a ∂a/∂x)``, at the accelerations that the forces
cause.
"""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from .._spatial import Inertia, Pose, Velocity, carried_along, cross, twist_cross, wrench_cross
from ..closed_forms._connection import inverse_slopes, times_slopes
from ..compiled._added_forces import joint_force_curvatures, joint_force_rates
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import declared
from ..compiled._sparse import Entries, factor, inverse, solve
from ..dynamics._dynamics import forward_dynamics_by_factor, mass_matrix, refuse_singular

_INSTEAD = "{}_dynamics_hessian has weighted sums over the first index for a fraction of that"


@declared(
    "q v a",
    {"d2_tau_d_q2": "vvv", "d2_tau_d_q_d_v": "vvv", "d2_tau_d_v2": "vvv", "d2_tau_d_q_d_a": "vvv"},
    regrouped=True,
    wrenches=True,
    instead=_INSTEAD.format("inverse"),
    is_rigid=True,
)
def inverse_dynamics_second_derivatives(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value, Value]:
    """(q, v, a[, wrenches]) → four tensors, shape (..., nv, nv, nv) each.

    - d2_tau_d_q2, symmetric in its last two indices.
    - d2_tau_d_q_d_v: by q, then by v.
    - d2_tau_d_v2, symmetric in its last two indices.
    - d2_tau_d_q_d_a: by q, then by a. This is ∂M/∂q: ``T[:, j, :]`` is that of M by q_j.

    Derivatives by v and a, and by a twice, vanish. Wrenches stay fixed in their bodies. Springs
    and losses of joints are included. An entry is zero unless the three joints lie on one path
    from the world. If only a weighted sum over the forces is needed, `inverse_dynamics_hessian`
    costs a fraction.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> second = pendulum.inverse_dynamics_second_derivatives([np.pi / 2], [0.0], [0.0])
    >>> second.d2_tau_d_q2.round(2).tolist()  # of m g l sin(q)
    [[[-19.62]]]
    """
    state = _states(tree, q, v, a, wrenches)
    found = _freedoms(tree, v, state)
    tensors = tuple(_Tensor(tree.nv) for _ in range(4))
    for k in range(len(tree.nodes)):
        path = [f for i in reversed(tree.path(k)) for f in found[i]]
        for c in found[k]:
            _add_products(c, path, state, *tensors)
    qq, qv, vv, qa = tensors
    for place, bent, dry in joint_force_curvatures(tree, q, v):
        qq.add_block(place, bent)
        vv.add_block(place, dry)
    return qq.matrix(), qv.matrix(), vv.matrix(), qa.matrix()


@declared(
    "q v a weights",
    {"H_qq": "vv", "H_qv": "vv", "H_vv": "vv", "H_qa": "vv"},
    regrouped=True,
    wrenches=True,
    is_rigid=True,
)
def inverse_dynamics_hessian(
    tree: CompiledTree, q: Value, v: Value, a: Value, weights: Value, wrenches: Value | None = None
) -> _SecondDerivatives:
    """(q, v, a, weights[, wrenches]) → H_qq, H_qv, H_vv, H_qa, shape (..., nv, nv) each.

    Second derivatives of ``weights @ inverse_dynamics(q, v, a)``, in 0.8 to 1.7 times the
    operations of first derivatives. Optimization with exact Hessians needs them for the dynamics
    as constraints; the weights are the multipliers. The Hessian by (q, v, a) together is ``[[H_qq,
    H_qv, H_qa], [H_qvᵀ, H_vv, 0], [H_qaᵀ, 0, 0]]``.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> arm = Multibody().add_body("a", rod, "revolute", axis="y")
    >>> arm = arm.add_body("b", rod, "revolute", "a", [0, 0, -1], axis="y")
    >>> q, v, a, weights = [0.3, -0.5], [1.0, 2.0], [0.0, 1.0], np.array([0.2, 0.7])
    >>> H = arm.inverse_dynamics_hessian(q, v, a, weights)
    >>> T = arm.inverse_dynamics_second_derivatives(q, v, a)
    >>> np.allclose(H.H_qv, np.tensordot(weights, T.d2_tau_d_q_d_v, axes=1))
    True
    """
    state = _states(tree, q, v, a, wrenches)
    found = _freedoms(tree, v, state)
    test = _test_motion(tree, state, weights)
    qq, qv, vv, qa = (Entries(tree.nv, tree.nv) for _ in range(4))
    for k, own in enumerate(found):
        path = [f for i in tree.path(k) for f in found[i]]
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
    for place, bent, dry in joint_force_curvatures(tree, q, v):
        n = place.stop - place.start
        for block, tensor in ((qq, bent), (vv, dry)):
            by_weights = ca.reshape(tensor.T @ weights[place], n, n)
            block.add(place, place, ca.sparsify(by_weights))
    return _SecondDerivatives(*(block.matrix() for block in (qq, qv, vv, qa)))


def _forward_tensors(
    tau_qq: Value, tau_qv: Value, tau_vv: Value, tau_qa: Value, a_q: Value, a_v: Value, a_tau: Value
) -> tuple[Value, Value, Value, Value]:
    """∂²a/∂q², ∂²a/∂q∂v, ∂²a/∂v² and ∂²a/∂q∂τ, slices side by side, nv × nv² each.

    They are full: products of matrices, where entry by entry the code would be as long as the
    number of operations.
    """
    n = a_q.shape[0]
    # ∂M/∂q_j for all j, one below the other.
    slopes = ca.vertcat(tau_qa[:0, :n], *(tau_qa[:, j::n] for j in range(n)))
    bent = times_slopes(slopes, a_q)
    halves = [k * n + j for k in range(n) for j in range(k + 1)]
    swapped = [j * n + k for k in range(n) for j in range(k + 1)]
    place = {column: at for at, column in enumerate(halves)}
    whole = [place[max(j, k) * n + min(j, k)] for k in range(n) for j in range(n)]
    qq = a_tau @ (tau_qq[:, halves] + bent[:, halves] + bent[:, swapped])
    qv = a_tau @ (tau_qv + times_slopes(slopes, a_v))
    vv = a_tau @ tau_vv[:, halves]
    return -qq[:, whole], -qv, -vv[:, whole], inverse_slopes(a_tau, slopes)


@declared(
    "q v tau",
    {"d2_a_d_q2": "vvv", "d2_a_d_q_d_v": "vvv", "d2_a_d_v2": "vvv", "d2_a_d_q_d_tau": "vvv"},
    regrouped=True,
    wrenches=True,
    check=refuse_singular,
    assemble=_forward_tensors,
    instead=_INSTEAD.format("forward"),
    is_rigid=True,
)
def forward_dynamics_second_derivatives(
    tree: CompiledTree, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, ...]:
    """(q, v, tau[, wrenches]) → four tensors, shape (..., nv, nv, nv) each.

    - d2_a_d_q2, symmetric in its last two indices.
    - d2_a_d_q_d_v: by q, then by v.
    - d2_a_d_v2, symmetric in its last two indices.
    - d2_a_d_q_d_tau: by q, then by tau. This is ∂M⁻¹/∂q: ``T[:, j, :]`` is that of M⁻¹ by q_j
      (alone: `mass_matrix_inverse_derivatives`, which is differentiated by its last index).

    Derivatives by v and tau, and by tau twice, vanish. These tensors are full:
    `forward_dynamics_hessian` costs a fraction.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> second = pendulum.forward_dynamics_second_derivatives([np.pi / 2], [0.0], [0.0])
    >>> second.d2_a_d_q2.round(2).tolist()  # of −g / l sin(q)
    [[[9.81]]]
    """
    # Tensors of inverse dynamics, and ∂a/∂q, ∂a/∂v, ∂a/∂τ: for `_forward_tensors`.
    L, D = factor(mass_matrix(tree, q))
    a = forward_dynamics_by_factor(tree, q, v, tau, wrenches)
    tensors = inverse_dynamics_second_derivatives(tree, q, v, a, wrenches)
    tau_q, tau_v = _first_derivatives(tree, q, v, a, wrenches)
    return *tensors, solve(L, D, -tau_q), solve(L, D, -tau_v), inverse(L, D)


@declared(
    "q v tau weights",
    {"H_qq": "vv", "H_qv": "vv", "H_vv": "vv", "H_qtau": "vv"},
    regrouped=True,
    wrenches=True,
    check=refuse_singular,
    is_rigid=True,
)
def forward_dynamics_hessian(
    tree: CompiledTree,
    q: Value,
    v: Value,
    tau: Value,
    weights: Value,
    wrenches: Value | None = None,
) -> _SecondDerivatives:
    """(q, v, tau, weights[, wrenches]) → H_qq, H_qv, H_vv, H_qtau, (..., nv, nv) each.

    Second derivatives of ``weights @ forward_dynamics(q, v, tau)``; those by v and tau, and by
    tau twice, vanish. The Hessian by (q, v, tau) together is
    ``[[H_qq, H_qv, H_qtau], [H_qvᵀ, H_vv, 0], [H_qtauᵀ, 0, 0]]``.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> pendulum = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> pendulum.forward_dynamics_hessian([1.5708], [0.0], [0.0], [2.0]).H_qq.round(2)
    array([[19.62]])
    """
    L, D = factor(mass_matrix(tree, q))
    a = forward_dynamics_by_factor(tree, q, v, tau, wrenches)
    own = inverse_dynamics_hessian(tree, q, v, a, solve(L, D, weights), wrenches)
    tau_q, tau_v = _first_derivatives(tree, q, v, a, wrenches)
    by_force = -solve(L, D, own.qa.T).T
    bent = by_force @ tau_q
    return _SecondDerivatives(
        -own.qq - (bent + bent.T), -own.qv - by_force @ tau_v, -own.vv, by_force
    )


class _SecondDerivatives(NamedTuple):
    """Second derivatives of a scalar by q, v and a, nv × nv each; those by v, a and a, a vanish."""

    qq: Value
    qv: Value
    vv: Value
    qa: Value


class _Freedom(NamedTuple):
    """One degree of freedom."""

    place: int  # in v
    node: int
    S: Value
    first: Value  # Ψ̇
    second: Value  # Ψ̈
    fast: Value  # ``Ψ̇ + Ṡ``: its velocity adds this to the accelerations of all it carries
    momentum: Value  # ``I S`` of the composite it carries
    position: Value  # derivative of the wrench through its joint by its own position
    rate: Value  # and by its velocity


class _States(NamedTuple):
    """Of every node, in the root's frame.

    `weights` are accelerations of the world (upwards, for weight), `bodies` the nodes' own
    inertias; inertias, velocities and wrenches are with all that the node carries.
    """

    V: list[Value]
    A: list[Value]
    S: list[Value]
    weights: list[Value]
    bodies: list[Inertia]
    inertias: list[Inertia]
    velocities: list[Velocity]
    wrenches: list[Value]


def _freedoms(tree: CompiledTree, v: Value, _states: _States) -> list[list[_Freedom]]:
    """Degrees of freedom of every node."""
    found: list[list[_Freedom]] = []
    for k, node in enumerate(tree.nodes):
        i = node.parent
        carrier_V = ca.DM(6, 1) if i < 0 else _states.V[i]
        carrier_A = _states.weights[k] if i < 0 else _states.A[i]
        S, inertia, velocity = _states.S[k], _states.inertias[k], _states.velocities[k]
        own = []
        for j in range(S.shape[1]):
            s = S[:, j]
            first = twist_cross(carrier_V, s)
            second = twist_cross(carrier_A, s) + twist_cross(carrier_V, first)
            twice = fast = 2 * first
            if S.shape[1] > 1:  # otherwise S v × S is zero, but not structurally
                fast = fast + twist_cross(S @ v[node.v], s)
            position = velocity.half(twice) + inertia @ second
            rate = velocity.half(2 * s) + inertia @ fast
            position = position + wrench_cross(s, _states.wrenches[k])
            place = node.v.start + j
            own.append(_Freedom(place, k, s, first, second, fast, inertia @ s, position, rate))
        found.append(own)
    return found


def _states(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> _States:
    """Go through the tree from the root and back."""
    loads = tree.node_wrenches(wrenches)
    T: list[Pose] = []
    found = _States([], [], [], [], [], [], [], [])
    for k, node in enumerate(tree.nodes):
        pose, i = node.pose(q), node.parent
        if i < 0:
            T.append(Pose.identity())
            weight = ca.vertcat(pose.R.T @ -tree.gravity, ca.DM(3, 1))
            carrier_V, carrier_A = ca.DM(6, 1), weight
        else:
            T.append(pose if tree.nodes[i].parent < 0 else T[i] @ pose)
            weight = found.weights[i]
            carrier_V, carrier_A = found.V[i], found.A[i]
        S = T[k].push(node.S)
        joint = S @ v[node.v]
        V = carrier_V + joint
        A = carrier_A + S @ a[node.v] + twist_cross(carrier_V, joint)
        body = node.inertia if i < 0 else node.inertia.moved(T[k])
        W = body.force(V, A)
        if loads[k] is not None:
            W = W - T[k].push_wrench(loads[k])
        found.V.append(V)
        found.A.append(A)
        found.S.append(S)
        found.weights.append(weight)
        found.bodies.append(body)
        found.inertias.append(body)
        found.velocities.append(body.velocity(V))
        found.wrenches.append(W)
    for values in (found.inertias, found.velocities, found.wrenches):
        _sum_up(tree, values)
    return found


def _sum_up(tree: CompiledTree, values: list) -> None:
    """Add to every node's value those of all it carries."""
    for k in reversed(range(len(values))):
        i = tree.nodes[k].parent
        if i >= 0:
            values[i] = values[i] + values[k]


def _first_derivatives(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> tuple[Value, Value]:
    """∂τ/∂q and ∂τ/∂v from the same parts."""
    state = _states(tree, q, v, a, wrenches)
    found = _freedoms(tree, v, state)
    dq, dv = Entries(tree.nv, tree.nv), Entries(tree.nv, tree.nv)
    for k, own in enumerate(found):
        path = [f for i in tree.path(k) for f in found[i]]
        for c in own:
            half, at = 2 * state.velocities[k].half_transposed(c.S), slice(c.place, c.place + 1)
            for b in path:
                of = slice(b.place, b.place + 1)
                dq.add(at, of, half.T @ b.first[3:] + c.momentum.T @ b.second)
                dv.add(at, of, half.T @ b.S[3:] + c.momentum.T @ b.fast)
                if b.node < k:
                    dq.add(of, at, b.S.T @ c.position)
                    dv.add(of, at, b.S.T @ c.rate)
    losses_q, losses_v = joint_force_rates(tree, q, v)
    return dq.matrix() + losses_q, dv.matrix() + losses_v


class _Tensor:
    """A sparse tensor of forces that grows entry by entry."""

    def __init__(self, n: int) -> None:
        self._n, self._entries = n, Entries(n, n * n)

    def add(self, i: _Freedom, j: _Freedom, k: _Freedom, value: Value) -> None:
        """Add to the derivative of force i by the variables of j and k."""
        column = k.place * self._n + j.place
        rows, columns = slice(i.place, i.place + 1), slice(column, column + 1)
        self._entries.add(rows, columns, value)

    def add_pair(self, i: _Freedom, j: _Freedom, k: _Freedom, value: Value) -> None:
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


def _add_products(
    c: _Freedom,
    path: list[_Freedom],
    state: _States,
    qq: _Tensor,
    qv: _Tensor,
    vv: _Tensor,
    qa: _Tensor,
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
    change = own.half(S) + ca.vertcat(ca.DM(3, speeds.shape[1]), speeds)
    bends = bent.half_transposed(S)
    moved = carried_along(S, c.momentum)
    own_bends = cross(-half, S[3:, :]) - own.half_transposed(first)
    by_speed, by_place = turning @ speeds, twice @ speeds
    by_change, by_moved = S.T @ change, S.T @ moved
    force_qq, force_qv = twice @ bends + second.T @ change, turning @ bends + fast.T @ change
    own_qq = twice @ own_bends + second.T @ moved
    own_qv = turning @ own_bends + fast.T @ moved
    carried_q, carried_v = S.T @ carried_along(S, c.position), S.T @ carried_along(S, c.rate)
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


class _Test(NamedTuple):
    """The test motion: twists of what carries the nodes; the rest with all that nodes carry."""

    carriers: list[Value]
    velocities: list[Velocity]
    halves: list[Value]


def _test_motion(tree: CompiledTree, state: _States, weights: Value) -> _Test:
    twists: list[Value] = []
    test = _Test([], [], [])
    for k, node in enumerate(tree.nodes):
        carrier = ca.DM(6, 1) if node.parent < 0 else twists[node.parent]
        twists.append(carrier + state.S[k] @ weights[node.v])
        body = state.bodies[k]
        test.carriers.append(carrier)
        test.velocities.append(body.velocity(twists[k]))
        test.halves.append(body.velocity(state.V[k]).half_transposed(twists[k]))
    _sum_up(tree, test.velocities)
    _sum_up(tree, test.halves)
    return test


def _maps(c: _Freedom, state: _States, test: _Test) -> tuple[Value, Value, Value]:
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


def _add(block: Entries, row: _Freedom, column: _Freedom, value: Value) -> None:
    block.add(slice(row.place, row.place + 1), slice(column.place, column.place + 1), value)


def _add_pair(block: Entries, b: _Freedom, c: _Freedom, value: Value) -> None:
    value = value / 2 if b.node == c.node else value
    _add(block, b, c, value)
    _add(block, c, b, value)
