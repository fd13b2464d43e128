"""Every operation on every kind of value: NumPy batches, DM, SX and MX agree."""

import itertools
import pickle
from functools import lru_cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
    Translation,
    _base,
)
from lgcontrol.groups._internal import CylindricalGroup, SchoenfliesGroup, SE2Group, SO2Group

from ._samples import GROUPS, KINDS, MOTIONS, USUAL, elements, name_of, samples

pytestmark = pytest.mark.usually(G=USUAL)

SAME = 1e-14  # one rounding of numbers up to ten: compilers and CasADi may regroup a sum

# Arguments of the operations: X element, d tangent vector, p point, M matrix, h algebra, s number.
OPERATIONS = {
    "compose": "XX",
    "inverse": "X",
    "exp": "d",
    "log": "X",
    "plus": "Xd",
    "minus": "XX",
    "act": "Xp",
    "hat": "d",
    "vee": "h",
    "matrix": "X",
    "from_matrix": "M",
    "Ad": "X",
    "ad": "d",
    "right_jacobian": "d",
    "left_jacobian": "d",
    "right_jacobian_inverse": "d",
    "left_jacobian_inverse": "d",
    "normalize": "X",
    "distance": "XXs",
    "interpolate": "XXs",
    "rate_matrix": "X",
    "tangent_matrix": "X",
}
EMBEDDED = {"embed": "X", "homogeneous": "X"}


def test_unknown_attributes_name_what_a_group_has():
    with pytest.raises(AttributeError, match=r"attribute of Schoenflies.* 'rx'.*\(x, y, z, rz\)$"):
        _ = Schoenflies.rx
    with pytest.raises(AttributeError, match=r"Did you mean 'identity'\?"):
        _ = Schoenflies.identiti
    with pytest.raises(AttributeError, match=r"\(x0, .*, x11, …\)$"):
        _ = Rn(13).rx
    assert not hasattr(Schoenflies, "_missing") and not hasattr(Rn(2), "rx")


def arguments(G, letters, kind, count=4):
    """NumPy arguments with one leading batch axis."""
    makers = {
        "X": lambda seed: elements(G, kind, seed),
        "d": lambda seed: samples(G, kind, seed),
        "p": lambda seed: np.random.default_rng(seed).normal(size=(count, G.point_size)),
        "M": lambda seed: G.matrix(elements(G, kind, seed)),
        "h": lambda seed: G.hat(samples(G, kind, seed)),
        "s": lambda seed: np.linspace(0.1, 1.3, count),
    }
    values = [makers[letter](seed) for seed, letter in enumerate(letters)]
    return [np.resize(v, (count, *v.shape[1:])) for v in values]


@pytest.mark.usually(G=(SE3, Helical(0.3), USUAL[-1], Rn(0)))
@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_values_of_every_kind_agree(G):
    operations = OPERATIONS | (EMBEDDED if G in MOTIONS else {})
    for operation, letters in operations.items():
        method = getattr(G, operation)
        functions = [traced(method, symbol, arguments(G, letters, "zero")) for symbol in SYMBOLS]
        for kind in KINDS:
            batch = arguments(G, letters, kind)
            together = method(*batch)
            for row in range(2):
                values = [value[row] for value in batch]
                alone = method(*values)
                close(alone, together[row], operation)  # one may run compiled, with fused sums
                expected = alone.reshape((alone.shape + (1, 1))[:2])
                columns = [ca.DM(value) for value in values]
                result = method(*columns)
                assert isinstance(result, ca.DM), operation
                for other in (result, *(function(*columns) for function in functions)):
                    close(np.asarray(other), expected, operation)


SYMBOLS = (ca.SX, ca.MX)


def traced(method, symbol, batch):
    symbols = [symbol.sym("x", *(value.shape[1:] or (1,))) for value in batch]
    result = method(*symbols)
    assert isinstance(result, symbol), (method, type(result))
    return ca.Function("f", symbols, [ca.densify(result)])


def close(a, b, operation):
    scale = max(1.0, np.abs(b).max(initial=0.0))
    np.testing.assert_allclose(a, b, rtol=0, atol=SAME * scale, err_msg=operation)


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_batch_axes_broadcast(G):
    X, Y = G.random(1, (5, 1)), G.random(2, (3,))
    assert G.compose(X, Y).shape == (5, 3, G.nq)
    assert G.minus(X, Y).shape == (5, 3, G.dim)
    assert G.Ad(X).shape == (5, 1, G.dim, G.dim)
    assert G.matrix(X).shape == (5, 1, G.matrix_size, G.matrix_size)
    assert G.distance(X, Y).shape == (5, 3)
    assert G.exp(np.zeros((0, G.dim))).shape == (0, G.nq)
    s = np.linspace(0, 1, 4)[:, None, None]
    assert G.interpolate(X, Y, s).shape == (4, 5, 3, G.nq)
    assert np.array_equal(G.compose(X, Y)[3, 2], G.compose(X[3, 0], Y[2]))


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_numpy_and_symbols_mix(G):
    d, X = np.linspace(0.1, 0.5, G.dim), G.random(1)
    for symbol in (ca.SX, ca.MX):
        s = symbol.sym("s")
        moved = G.interpolate(X, G.plus(X, d), s)
        assert isinstance(moved, symbol)
        halfway = np.asarray(ca.Function("f", [s], [moved])(0.5))
        close(halfway.ravel(), G.plus(X, d / 2), "interpolate")


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_functions_have_named_arguments(G):
    for operation in OPERATIONS:
        function = G.function(operation).function
        assert operation in function.name()
        assert all(function.name_in()) and function.name_out() == ["result"]
    with pytest.raises(ValueError, match="valid names are compose, .*Did you mean 'compose'"):
        G.function("compos")


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_wrong_shapes_are_refused_by_name(G):
    with pytest.raises(ValueError, match=rf"log.*'X' has shape \({G.nq + 1},\), expected"):
        G.log(np.zeros(G.nq + 1))
    with pytest.raises(ValueError, match=rf"expected \({G.dim}, 1\)"):
        G.exp(ca.SX.sym("d", G.dim + 2))
    with pytest.raises(ValueError, match="exp.*'d' has shape"):
        G.exp(ca.MX.sym("d", G.dim + 2))
    with pytest.raises(ValueError, match="do not broadcast"):
        G.compose(G.random(0, 2), G.random(0, 3))
    with pytest.raises(TypeError, match="'X' must be numbers"):
        G.log("north")


def test_names_and_missing_parts_are_told():
    state = Product(pose=SE3, twist=Rn(6))
    with pytest.raises(KeyError, match="valid names are pose, twist. Did you mean 'twist'"):
        state.tangent_slice("twst")
    with pytest.raises(KeyError, match="unknown block 'speed'"):
        state.join(speed=np.zeros(6))
    with pytest.raises(ValueError, match=r"block 'twist' has shape \(5,\), expected \(..., 6\)"):
        state.join(twist=np.zeros(5))
    with pytest.raises(ValueError, match=r"block 'twist' has shape \(5, 1\)"):
        state.join(twist=ca.SX.sym("v", 5))
    with pytest.raises(ValueError, match=r"has shape \(12,\), expected \(..., 13\)"):
        state.split(np.zeros(12))
    with pytest.raises(TypeError, match="block 'pose' must be a LieGroup, not str"):
        Product(pose="SE3")
    with pytest.raises(ValueError, match="also a number"):
        Product(SO3, **{"0": SE2})
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        Product(**{"left arm": SE2})
    with pytest.raises(AttributeError, match="immutable"):
        state.dim = 3
    for group in (Rn(3), state):
        with pytest.raises(TypeError, match="no embedding"):
            _ = group.selection
        with pytest.raises(TypeError, match="no embedding"):
            group.embed(group.identity)
    with pytest.raises(ValueError, match="n >= 0, got -1"):
        Rn(-1)
    with pytest.raises(ValueError, match="1 names given, expected 2"):
        Rn(2, names=("a",))
    for axes in ("zx", "xx", "", "w"):
        with pytest.raises(ValueError, match="letters of 'xyz' in that order"):
            Translation(axes)
    for bad, message in (
        (np.zeros(3), "must not be zero"),
        ((0, 1), "shape"),
        ((0, 0, np.nan), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            SE2.about(bad)
    for group in (Helical, PlanarHelical):
        for pitch in (np.nan, np.inf):
            with pytest.raises(ValueError, match="pitch is not finite"):
                group(pitch)


def test_blocks():
    state = Product(pose=SE3, wheels=Rn(2, names=("left", "right"), units=("rad/s", "rad/s")))
    assert state.coordinate_slice("wheels") == slice(7, 9)
    assert state.tangent_slice("wheels") == slice(6, 8)
    assert state.tangent_names[-2:] == ("wheels.left", "wheels.right")
    assert state.tangent_units == ("m",) * 3 + ("rad",) * 3 + ("rad/s",) * 2
    x = state.random(1, (4,))
    parts = state.split(x)
    assert np.array_equal(state.join(**parts), x)
    d = state.log(x)
    assert np.array_equal(state.join_tangent(**state.split_tangent(d)), d)
    assert np.array_equal(state.join(), state.identity)
    symbol = ca.SX.sym("w", 2)
    assert state.join(wheels=symbol).shape == (9, 1)


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_groups_pickle_hash_and_compare_by_value(G):
    twin = pickle.loads(pickle.dumps(G))
    assert twin == G and hash(twin) == hash(G) and repr(twin) == repr(G) == G.name
    X = G.random(0)
    assert np.array_equal(twin.log(X), G.log(X))


def test_different_groups_differ():
    assert len(set(GROUPS)) == len(GROUPS)
    assert all(a != b for a, b in itertools.combinations(GROUPS, 2))
    assert Helical(0.1) != Helical(0.2) and Helical(0.0) != PlanarHelical(0.0)
    assert Rn(2) != Rn(2, names=("a", "b")) and Product(a=SO2) != Product(b=SO2)


@pytest.mark.parametrize(
    "direct",
    [
        (SO2Group((0, 0, 2)), SO2),
        (SE2Group((0, 3, 4)), SE2.about((0, 0.6, 0.8))),
        (SchoenfliesGroup((0, 0, 1e-3)), Schoenflies),
        (CylindricalGroup((2, 0, 0)), Cylindrical.about((1, 0, 0))),
        (SO2.about((1, 2, -3)), SO2.about((-2, -4, 6)).about((1, 2, -3))),
        (SE2.about((1, 6e-17, 0)), SE2.about((1, 0, 0))),
        (SE2.about((1 - 4e-16, 0, 0)), SE2.about((1, 0, 0))),
        (Helical(0.1, (0, 0, 5)), Helical(0.1)),
        (SO2.about((3e200, 4e200, 0)), SO2.about((3, 4, 0))),
    ],
)
def test_an_axis_has_one_form(direct):
    assert direct[0] == direct[1]
    again = direct[0].about(direct[0].axis)
    assert again == direct[0]
    assert abs(np.linalg.norm(direct[0].axis) - 1) < 1e-15


def test_functions_of_many_groups_do_not_pile_up(monkeypatch):
    assert _base.operation_function.cache_info().maxsize is not None
    small = lru_cache(4)(_base.operation_function.__wrapped__)
    monkeypatch.setattr(_base, "operation_function", small)
    for pitch in np.linspace(0.1, 0.2, 20):
        assert Helical(pitch).homogeneous([2.0])[2, 3] == pytest.approx(2 * pitch)
    assert small.cache_info().currsize == 4


def test_caller_arrays_stay_untouched_and_results_are_own():
    X = SE3.random(0, 3)
    before = X.copy()
    first = SE3.log(X)
    SE3.log(SE3.random(1, 3))
    assert np.array_equal(X, before)
    assert np.array_equal(first, SE3.log(X))
    assert not np.shares_memory(SE3.compose(X[0], X[1]), SE3.compose(X[0], X[1]))
    for G in (Rn(3), SO3):
        X = G.random(0)
        assert not np.shares_memory(G.normalize(X), X)


def test_nan_propagates():
    assert np.isnan(SE3.log(np.full(7, np.nan))).all()


def test_one_unit_serves_all_numbers_of_a_block():
    speeds = Rn(3, "xyz", "m/s")
    assert speeds == Rn(3, ("x", "y", "z"), ("m/s",) * 3)
    assert Rn(1, units="rad").tangent_units == ("rad",) and Rn(0, units="m").coordinate_units == ()
    assert Rn(2, units="").coordinate_units == ("", "")


@pytest.mark.parametrize("group", [SO2, Helical(0.1), Cylindrical, Schoenflies, SE2])
def test_names_have_the_letter_of_the_axis(group):
    """A rate about x is no "rz"; about an axis without a letter it is "r"."""
    for letter in "xyz":
        assert group.about(letter).tangent_names[-1] == f"r{letter}"
    if group != SE2:  # in whose own frame the normal is z
        assert group.about([1, 1, 0]).tangent_names[-1] == "r"
    assert SE2.about("x").coordinate_names[:2] == SE2.about("x").tangent_names[:2] == ("y", "z")
    assert Translation("z").about("x").coordinate_names == ("x",)


def test_symbols_keep_structural_zeros_beside_constants():
    """Rooms above call the public operations in what they trace: zeros cost them nothing."""
    d = ca.vertcat(ca.SX.sym("v"), ca.SX(4, 1), ca.SX.sym("w"))  # a screw about z, ahead
    assert SE3.ad(ca.sparsify(d)).nnz() < SE3.ad(ca.SX.sym("d", 6)).nnz() < 36
    X = ca.DM(SE3.exp([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]))
    moved = SE3.plus(X, d)
    assert isinstance(moved, ca.SX) and moved.shape == (7, 1)
    with pytest.raises(TypeError, match=r"SE3\.plus: SX and MX do not mix"):
        SE3.plus(ca.SX.sym("X", 7), ca.MX.sym("d", 6))
