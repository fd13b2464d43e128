"""METHODS: the methods that come along, each a table of coefficients."""

from __future__ import annotations

from ..codegen._internal import UnknownNameError, unknown_name
from ._explicit import CommutatorFree, MuntheKaas, crouch_grossman
from ._implicit import GAUSS6, RADAU_IIA5, ROS34PW2
from ._mechanical import VARIATIONAL4, LinearlyImplicitEuler, SemiImplicitEuler
from ._method import Method
from ._momentum_methods import ENERGY, SPATIAL, VARIATIONAL
from ._tableau import Tableau

EULER = Tableau(A=[()], b=(1,))
MIDPOINT = Tableau(A=[(), (1 / 2,)], b=(0, 1))
HEUN = Tableau(A=[(), (1,)], b=(1 / 2, 1 / 2))
RK4 = Tableau(A=[(), (1 / 2,), (0, 1 / 2), (0, 0, 1)], b=(1 / 6, 1 / 3, 1 / 3, 1 / 6))

# Dormand, Prince 1980; the last row equals b, so its slope is the first of the next step.
DORMAND_PRINCE = Tableau(
    A=[
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ],
    b=(35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0),
    b_embedded=(
        5179 / 57600,
        0,
        7571 / 16695,
        393 / 640,
        -92097 / 339200,
        187 / 2100,
        1 / 40,
    ),
)

# Weights of the part of the interpolation that is not fixed by values and slopes at both ends
# (Hairer, Nørsett, Wanner, section II.6): the interpolation is then of order 4.
DENSE = (
    -12715105075 / 11282082432,
    0.0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        MuntheKaas("euler", EULER),
        MuntheKaas("midpoint", MIDPOINT),
        MuntheKaas("heun", HEUN),
        MuntheKaas("rk4", RK4),
        MuntheKaas("dormand_prince5", DORMAND_PRINCE, DENSE),
        crouch_grossman("crouch_grossman2", 2, A=[(), (1,)], b=(1 / 2, 1 / 2)),
        crouch_grossman(
            "crouch_grossman3",
            3,
            A=[(), (3 / 4,), (119 / 216, 17 / 108)],
            b=(13 / 51, -2 / 3, 24 / 17),
        ),
        CommutatorFree(
            "commutator_free4",
            4,
            A=((), ((1 / 2,),), ((0, 1 / 2),), ((1 / 2,), (-1 / 2, 0, 1))),
            b=((1 / 4, 1 / 6, 1 / 6, -1 / 12), (-1 / 12, 1 / 6, 1 / 6, 1 / 4)),
        ),
        SemiImplicitEuler(),
        LinearlyImplicitEuler(),
        VARIATIONAL,
        SPATIAL,
        ENERGY,
        VARIATIONAL4,
        ROS34PW2,
        RADAU_IIA5,
        GAUSS6,
    )
}
"""Fixed-step methods by name."""


def get_method(method: str | Method) -> Method:
    """Return the method of a name; a method is returned as it is.

    Parameters
    ----------
    method : str or Method

    Returns
    -------
    Method

    Raises
    ------
    ValueError
        If there is no method of that name; the message lists the names there are.

    Examples
    --------
    >>> get_method("rk4").order
    4
    """
    if isinstance(method, Method):
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise UnknownNameError(unknown_name("integration method", method, METHODS))
    return METHODS[method]
