"""check_group passes every group and catches a break of each axiom by its name."""

from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, LieGroup, check_group
from lgcontrol.groups._internal import SE2Group, SO2Group

from ._samples import GROUPS, USUAL, name_of

pytestmark = pytest.mark.usually(G=USUAL)

TOLERANCE = 1e-9  # the default: ten times the error of the central differences


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_every_group_passes(G):
    assert max(check_group(G).values()) < TOLERANCE


@pytest.mark.parametrize("G", GROUPS, ids=name_of)
def test_commutative_exactly_if_it_says_so(G):
    X, Y = G.random(1, 9), G.random(2, 9)
    off = np.abs(G.matrix(G.compose(X, Y)) - G.matrix(G.compose(Y, X))).max(initial=0.0)
    assert (off < 1e-12) == G.is_commutative


def lacks_second_order(self, d):
    """Series cut as many libraries do: value right, derivatives at zero gone."""
    s = ca.fmax(d[2] ** 2, 1e-20)
    small = d[2] ** 2 < 1e-20
    exact = SE2._right_jacobian(ca.vertcat(d[:2], ca.if_else(small, ca.sqrt(s), d[2])))
    return ca.if_else(small, ca.SX.eye(3), exact)


def divides_by_norm(self, X):
    """The trick ``√(θ² + ε²)``: values right, not a number in the derivative at the identity."""
    x, y, angle = ca.vertsplit(SE2._log(X))
    return ca.vertcat(x, y, angle * ca.sqrt(angle**2) / ca.sqrt(angle**2 + 1e-30))


# Axiom -> what breaks it (other axioms may break as well).
BREAKS = {
    "equality and hash": {"__eq__": object.__eq__, "__hash__": object.__hash__},
    "names and lengths": {"tangent_names": ("x", "y")},
    "X 1 = X": {"identity": np.array([1.0, 0.0, 1.0, 0.0])},
    "X X⁻¹ = 1": {"_inverse": lambda self, X: X},
    "(X Y) Z = X (Y Z)": {
        "_compose": lambda self, X, Y: SE2._compose(X, ca.vertcat(2 * Y[:2], Y[2:]))
    },
    "X Y = Y X if is_commutative": {"is_commutative": True},
    "normalize(X) = X": {"_normalize": lambda self, X: 2 * X},
    "matrix(X Y) = matrix(X) matrix(Y)": {"_matrix": lambda self, X: SE2._matrix(X).T},
    "from_matrix(matrix(X)) = X": {"_from_matrix": lambda self, M: SE2._from_matrix(M.T)},
    "vee(hat(d)) = d": {"_vee": lambda self, M: -SE2._vee(M)},
    "matrix(exp(d)) = expm(hat(d))": {"_exp": lambda self, d: SE2._exp(1.000001 * d)},
    "log(exp(d)) = d": {"_log": lambda self, X: 1.000001 * SE2._log(X)},
    "log(exp(d)) = d, derivatives at 0": {"_log": divides_by_norm},
    "plus(Y, minus(X, Y)) = X": {"_minus": lambda self, X, Y: -SE2._minus(X, Y)},
    "interpolate(X, Y, 1) = Y": {
        "_interpolate": lambda self, X, Y, s: SE2._interpolate(X, Y, s * s * 0.9)
    },
    "(X Y) p = X (Y p)": {"_act": lambda self, X, p: SE2._act(X, p) + 1},
    "X d^ X⁻¹ = (Ad d)^": {"_Ad": lambda self, X: SE2._Ad(SE2._inverse(X))},
    "(ad(d) e)^ = d^ e^ − e^ d^": {"_ad": lambda self, d: -SE2._ad(d)},
    "right Jacobian": {"_right_jacobian": lambda self, d: SE2._left_jacobian(d)},
    "J_r = 1 − ad/2 + …, derivative at 0": {"_right_jacobian": lacks_second_order},
    "J_l(d) = J_r(−d)": {"_left_jacobian": lambda self, d: SE2._right_jacobian(d)},
    "J_l = Ad(exp d) J_r": {"_left_jacobian": lambda self, d: SE2._right_jacobian(d)},
    "J_r⁻¹ J_r = 1": {"_right_jacobian_inverse": lambda self, d: SE2._right_jacobian(d).T},
    "J_l⁻¹ J_l = 1": {"_left_jacobian_inverse": lambda self, d: SE2._left_jacobian(d).T},
    "v = F E v": {"_rate_matrix": lambda self, X: 2 * SE2._rate_matrix(X)},
    "homogeneous(exp(d)) = exp(H d) on SE(3)": {"selection": np.eye(6)[:, [1, 0, 5]]},
}


def test_each_axiom_has_a_break():
    assert set(BREAKS) == set(check_group(SE2))


# One of what a group has: representation, product, logarithm, algebra, Jacobians, rates.
SOME = {
    "equality and hash", "names and lengths", "X 1 = X", "(X Y) Z = X (Y Z)", "normalize(X) = X",
    "vee(hat(d)) = d", "log(exp(d)) = d, derivatives at 0", "plus(Y, minus(X, Y)) = X",
    "interpolate(X, Y, 1) = Y", "X d^ X⁻¹ = (Ad d)^", "J_r = 1 − ad/2 + …, derivative at 0",
    "J_l⁻¹ J_l = 1", "v = F E v", "homogeneous(exp(d)) = exp(H d) on SE(3)",
}  # fmt: skip


@pytest.mark.usually(axiom=SOME)
@pytest.mark.parametrize("axiom", BREAKS)
def test_a_broken_group_is_caught(axiom):
    broken = type("Broken", (SE2Group,), BREAKS[axiom])()
    with pytest.raises(ValueError, match="not a consistent Lie group") as failure:
        check_group(broken)
    assert f"{axiom} is off by" in str(failure.value)


def test_a_subtle_error_is_caught():
    """The quaternion of half the angle, once squared: right at 0, wrong by angle³."""
    broken = type("Broken", (SO2Group,), {"_log": lambda self, X: X[1]})()
    with pytest.raises(ValueError, match=r"log\(exp\(d\)\) = d is off"):
        check_group(broken)


@dataclass(frozen=True, repr=False)
class Scalings(LieGroup):
    """A user's own group from the documentation alone: positive factors under multiplication."""

    name = "Scalings"
    dim, nq = 1, 1
    coordinate_names, coordinate_units = ("factor",), ("",)
    tangent_names, tangent_units = ("rate",), ("",)
    is_commutative = True
    matrix_size, point_size = 1, 1

    @property
    def identity(self):
        return np.ones(1)

    def _compose(self, X, Y):
        return X * Y

    def _inverse(self, X):
        return 1 / X

    def _exp(self, d):
        return ca.exp(d)

    def _log(self, X):
        return ca.log(X)

    def _hat(self, d):
        return d

    def _vee(self, M):
        return M

    def _matrix(self, X):
        return X

    def _from_matrix(self, M):
        return M


def test_a_group_of_your_own_passes():
    assert max(check_group(Scalings()).values()) < TOLERANCE


def test_what_a_group_of_your_own_lacks_is_named():
    with pytest.raises(NotImplementedError, match="_Ad, or set is_commutative"):
        check_group(type("Broken", (Scalings,), {"is_commutative": False})())
