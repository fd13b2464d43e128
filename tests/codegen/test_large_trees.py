"""Trees of many bodies: loops instead of written-out code, chosen by size, the same results."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO2, Translation
from lgcontrol.mechanics import Joint, JointProperties, Mimic, Multibody, SpatialInertia
from lgcontrol.mechanics.multibody.large_trees import _recursions as large

FUNCTIONS = (
    "inverse_dynamics",
    "bias_forces",
    "gravity_forces",
    "mass_matrix",
    "mass_matrix_inverse",
    "forward_dynamics",
    "forward_dynamics_by_recursion",
    "inverse_dynamics_derivatives",
    "forward_dynamics_derivatives",
)
# Both ways round in another order: this much of the largest entry, for functions that divide by
# inertias times the condition of the mass matrix, some 1e4 here.
ROUNDING, AMPLIFIED = 1e-13, 1e-9

KINDS = [
    ("free", {}),
    ("revolute", {"axis": "x"}),
    ("prismatic", {"axis": (1, 2, 3)}),
    ("spherical", {}),
    ("universal", {}),
    ("continuous", {"axis": "-y"}),
    ("planar", {}),
    ("helical", {"pitch": 0.1}),
    ("cylindrical", {}),
    (Joint.chain([Translation("z"), ([0, 0, 0.1], SO2)]), {}),
]


def tree_of(count: int, parent, kinds=KINDS, **options) -> Multibody:
    """A tree with `count` moving bodies; ``parent(k)`` carries body k, −1 is the world."""
    rng, tree = np.random.default_rng(4), Multibody(**options)
    for k in range(count):
        kind, settings = kinds[k % len(kinds)]
        tree = tree.add_body(
            f"b{k}",
            SpatialInertia.box(0.5 + rng.uniform(), (0.1, 0.2, 0.3), rng.normal(size=3) / 30),
            kind,
            parent="world" if parent(k) < 0 else f"b{parent(k)}",
            placement=[*rng.normal(size=3) / 5, *(q := rng.normal(size=4)) / np.linalg.norm(q)],
            **settings,
        )
    return tree


def chain(count: int) -> Multibody:
    return tree_of(count, lambda k: k - 1, [("revolute", {"axis": axis}) for axis in "xyz"])


TREES = {
    "small": lambda: tree_of(6, lambda k: (k - 1) // 2, KINDS[1:4]),
    "chain": lambda: tree_of(6, lambda k: k - 1, KINDS[4:]),
    "branched": lambda: tree_of(5, lambda k: (k - 1) // 2),
    "forest": lambda: tree_of(6, lambda k: k - 3, KINDS[1:]),
    "one": lambda: tree_of(1, lambda k: -1),
    "properties": lambda: tree_of(
        5, lambda k: k - 2 if k > 1 else k - 1, [*KINDS[1:4], KINDS[7], KINDS[4]]
    ).with_properties(
        b0=JointProperties(armature=0.3, damping=0.2, stiffness=3.0, friction=0.1),
        b2=JointProperties(damping=[0.1, 0.2, 0.3], stiffness=[1.0, 2.0, 3.0]),
        b3=JointProperties(armature=0.1, friction=0.4),
    ),
    "parameters": lambda: tree_of(4, lambda k: (k - 1) // 2).symbolic(
        "b0.mass", "b1.center_of_mass.x", "b2.placement.z", "b3.inertia.xy", "gravity.z"
    ),
}


def limited(monkeypatch, limit):
    monkeypatch.setattr(large, "_SMALL", limit)
    monkeypatch.setattr(large, "_LARGE", limit)


@pytest.fixture
def looped(monkeypatch):
    """Every tree is large."""

    def make(build, names=FUNCTIONS):
        with monkeypatch.context() as patch:
            limited(patch, 0)
            tree = build()
            for name in names:
                function = getattr(tree, name)
                assert function.function.is_a("MXFunction")
                if function.takes_wrenches:
                    assert function.with_wrenches.function.is_a("MXFunction")
        return tree

    return make


def arguments_of(tree, function, rng, batch=()):
    q = tree.configuration.random(rng, batch)
    return [
        q
        if name == "q"
        else tree.parameter_values
        if name == "p"
        else rng.normal(size=(*batch, *s))
        for name, s in zip(function.arguments, function.argument_shapes, strict=True)
    ]


def assert_same(name, have, want):
    allowed = AMPLIFIED if "forward" in name or "inverse" in name.split("_")[-1:] else ROUNDING
    have, want = ([x] if isinstance(x, np.ndarray) else x for x in (have, want))
    for x, y in zip(have, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=allowed * max(1.0, np.abs(y).max()))


@pytest.mark.usually(kind=("properties",))
@pytest.mark.parametrize("kind", TREES)
def test_loops_compute_what_written_out_code_does(kind, looped, rng, monkeypatch):
    loops, written = looped(TREES[kind]), TREES[kind]()
    limited(monkeypatch, 1e9)
    for name in FUNCTIONS:
        have, want = getattr(loops, name), getattr(written, name)
        assert want.function.is_a("SXFunction")
        assert repr(have) == repr(want)
        given = dict(zip(want.arguments, arguments_of(written, want, rng), strict=True))
        assert_same(name, have(**given), want(**given))
        if want.takes_wrenches:
            given["wrenches"] = rng.normal(size=(len(written.bodies), 6))
            assert_same(name, have(**given), want(**given))


@pytest.mark.usually(name=("inverse_dynamics",))
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics_derivatives"])
def test_compiled_loops_agree_alone_and_in_batches(name, looped, rng, compiler, has_vectors):
    tree, written = looped(TREES["small"], (name,)), TREES["small"]()
    function = getattr(tree, name).compiled()
    assert function.is_compiled and has_vectors(function)
    arguments = arguments_of(tree, function, rng, (11,))
    want = getattr(written, name)(*arguments)
    assert_same(name, function(*arguments), want)
    one = function(*(a[4] for a in arguments))
    assert_same(name, one, want[4] if isinstance(want, np.ndarray) else [x[4] for x in want])


def test_loops_take_symbols_and_differentiate(looped, rng):
    tree, written = looped(TREES["chain"], ("inverse_dynamics",)), TREES["chain"]()
    q, v, a = arguments_of(written, written.inverse_dynamics, rng)
    x = ca.SX.sym("v", tree.nv)
    tau = tree.inverse_dynamics(ca.DM(q), x, ca.DM(a))
    assert isinstance(tau, ca.SX)
    y = ca.MX.sym("v", tree.nv)
    slope = ca.jacobian(tree.inverse_dynamics(ca.DM(q), y, ca.DM(a)), y)
    have = np.array(ca.Function("slope", [y], [slope])(v).full())
    assert_same("slope", have, written.inverse_dynamics_derivatives(q, v, a).d_tau_d_v)


def test_mimics_stay_written_out(monkeypatch):
    limited(monkeypatch, 0)
    arm = tree_of(2, lambda k: k - 1, [("revolute", {})])
    assert arm.mass_matrix.function.is_a("MXFunction")
    ball = SpatialInertia.sphere(1.0, 0.1)
    coupled = arm.add_body("follower", ball, "revolute", "b1", mimic=Mimic("b0"))
    assert coupled.mass_matrix.function.is_a("SXFunction")


@pytest.mark.parametrize(
    "name", ["mass_matrix", *(f"{x}_dynamics_derivatives" for x in ("inverse", "forward"))]
)
@pytest.mark.usually(make=(chain,), name=("mass_matrix",))
@pytest.mark.parametrize("make", [chain, lambda n: tree_of(n, lambda k: (k - 1) // 2)])
def test_estimates_of_written_out_operations_are_about_right(make, name, monkeypatch):
    """Within a factor of 2.5: the choice needs no more."""
    limited(monkeypatch, 1e9)
    tree = make(12)
    written = getattr(tree, name).instructions
    for limit, is_written in ((2.5 * written, True), (0.4 * written, False)):
        limited(monkeypatch, limit)
        assert getattr(make(12), name).function.is_a("SXFunction") == is_written


@pytest.mark.thorough
def test_chains_of_128_bodies_move_by_their_own_equations(rng):
    """Loops by themselves; M, bias forces, M⁻¹ and both dynamics fit together."""
    tree = chain(128)
    q, v, a = arguments_of(tree, tree.inverse_dynamics, rng)
    for name in FUNCTIONS[3:]:
        assert getattr(tree, name).function.is_a("MXFunction")
    M, tau = tree.mass_matrix(q), tree.inverse_dynamics(q, v, a)
    size = np.abs(tau).max()
    np.testing.assert_allclose(M @ a + tree.bias_forces(q, v), tau, rtol=0, atol=1e-12 * size)
    slopes = tree.inverse_dynamics_derivatives(q, v, a)
    np.testing.assert_allclose(slopes.d_tau_d_a, M, rtol=0, atol=1e-14 * np.abs(M).max())
    answers = tree.forward_dynamics_derivatives(q, v, tau)
    d, h = rng.normal(size=128), 1e-6
    move = tree.inverse_dynamics(tree.configuration.plus(q, h * d), v, a)
    back = tree.inverse_dynamics(tree.configuration.plus(q, -h * d), v, a)
    numeric = (move - back) / (2 * h)
    scale = np.abs(numeric).max()
    # The error of central differences at this step: h² and rounding over h.
    np.testing.assert_allclose(slopes.d_tau_d_q @ d, numeric, rtol=0, atol=1e-6 * scale)
    for slope, answer in ((slopes.d_tau_d_q, answers.d_a_d_q), (slopes.d_tau_d_v, answers.d_a_d_v)):
        np.testing.assert_allclose(M @ answer, -slope, rtol=0, atol=1e-8 * np.abs(slope).max())


@pytest.mark.usually(make=(chain,), name=("inverse_dynamics", "mass_matrix"))
@pytest.mark.parametrize(
    "name", ["inverse_dynamics", "mass_matrix", "forward_dynamics_derivatives"]
)
@pytest.mark.parametrize("make", [chain, lambda n: tree_of(n, lambda k: (k - 1) // 2, KINDS[1:3])])
def test_code_grows_linearly(make, name, looped):
    """Nothing written out grows at all; tables grow by the same for each body more."""
    trees = [looped(lambda n=n: make(n), (name,)) for n in (8, 16, 32)]
    programs = [getattr(tree, name).program for tree in trees]
    assert len({program.written for program in programs}) == 1
    small, middle, large = (
        sum(len(step) for step in program.tape.steps) + len(program.tape.constants)
        for program in programs
    )
    assert large - middle < 2.2 * (middle - small)
    assert large < 4.4 * small
