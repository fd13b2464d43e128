"""What gates and robust weights make of a measurement."""

from __future__ import annotations

from typing import Literal, NamedTuple

import casadi as ca

from ..codegen import Value
from ._normal import Whitened, likely_square
from ._status import UpdateStatus

Weight = Literal["huber", "cauchy"]
"""How the weight of an unlikely measurement falls: with its distance, or with its square."""


class Weighed(NamedTuple):
    """Factor on R, factor on P, whether it is rejected, status."""

    R: Value
    inflation: Value
    is_rejected: Value
    status: Value


def weigh(
    said: Whitened, m: int, counter: Value, weight: Weight | None, gate: float | None, lockout: int
) -> Weighed:
    """What gate and robust weights make of a measurement of dimension m.

    The counter is negative until the gate acts, and then the number of rejections in a row.
    """
    one, used = ca.SX(1), ca.SX(int(UpdateStatus.USED))
    R, status, inflation, rejected = one, used, one, ca.SX(0)
    if weight is not None:
        share = said.squared / likely_square(m)
        beyond = share > 1
        grown = ca.sqrt(ca.if_else(beyond, share, 1.0))
        if weight == "cauchy":
            grown = grown * grown
        R = grown
        status = ca.if_else(beyond, int(UpdateStatus.WEIGHTED), used)
    if gate is not None:
        unlikely = ca.logic_and(said.squared > gate, counter >= 0)
        lost = ca.logic_and(unlikely, counter + 1 >= lockout)
        rejected = ca.logic_and(unlikely, ca.logic_not(lost))
        inflation = ca.if_else(lost, said.squared / m, 1.0)
        R = ca.if_else(lost, 1.0, R)
        status = ca.if_else(unlikely, int(UpdateStatus.REJECTED), status)
        status = ca.if_else(lost, int(UpdateStatus.RECOVERED), status)
    return Weighed(R, inflation, rejected, status)
