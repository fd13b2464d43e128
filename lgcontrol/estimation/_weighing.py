"""What gates and robust weights make of a measurement."""

from __future__ import annotations

from typing import Literal, NamedTuple

import casadi as ca

from ..codegen import Value
from ._innovations import IMPOSSIBLE, Whitened, chi_squared_quantile, likely_square
from ._status import UpdateStatus

Weight = Literal["huber", "cauchy"]
"""How the weight of an unlikely measurement falls: with its distance, or with its square."""

# Factor of a recovery on the threshold of a gate: twice the distance, in deviations. KITTI's fixes
# with gate=0.999: 0.26 m with 4, 0.60 m with 1 (test_a_gate_costs_kitti_next_to_nothing).
WIDER = 4.0


class Gate(NamedTuple):
    """Probability up to which a measurement is believed, and the squared distance that has it."""

    probability: float
    threshold: float

    @classmethod
    def of(cls, name: str, probability: float, m: int) -> Gate:
        """Gate of a measurement of dimension m.

        Parameters
        ----------
        name : str
            Of the measurement, for the message.
        """
        if isinstance(probability, str) or not 0 < probability < 1:
            raise ValueError(
                f"gate of {name!r} is a probability between 0 and 1, got {probability!r}"
            )
        return cls(float(probability), chi_squared_quantile(probability, m))


class Weighed(NamedTuple):
    """Factor on R, factor on P, whether it is rejected, status; the gate's memory from now on."""

    R: Value
    inflation: Value
    is_rejected: Value
    status: Value
    counter: Value
    width: Value


def weigh(
    said: Whitened, m: int, counter: Value, width: Value, weight: Weight | None,
    gate: Gate | None, lockout: int,
) -> Weighed:  # fmt: skip
    """What gate and robust weights make of a measurement of dimension m.

    The counter is negative until the gate acts, and then the number of rejections in a row. The
    width is a factor on the threshold: each recovery shows that good measurements were rejected,
    and makes it `WIDER` times wider. ``1 / (1 - probability)`` used measurements, among which one
    rejection of a good one is to be expected, take that back.
    """
    one = ca.SX(1)
    absurd = said.squared > chi_squared_quantile(1 - IMPOSSIBLE, m)
    if gate is not None:  # what a gate that acts lets through is as it should be
        absurd = ca.logic_and(absurd, counter < 0)
    status = ca.if_else(absurd, int(UpdateStatus.UNLIKELY), int(UpdateStatus.USED))
    R, inflation, rejected, wider = one, one, ca.SX(0), width
    if weight is not None:
        share = said.squared / likely_square(m)
        beyond = share > 1
        grown = ca.sqrt(ca.if_else(beyond, share, 1.0))
        if weight == "cauchy":
            grown = grown * grown
        R = grown
        status = ca.if_else(beyond, int(UpdateStatus.WEIGHTED), int(UpdateStatus.USED))
    if gate is not None:
        unlikely = ca.logic_and(said.squared > width * gate.threshold, counter >= 0)
        lost = ca.logic_and(unlikely, counter + 1 >= lockout)
        rejected = ca.logic_and(unlikely, ca.logic_not(lost))
        inflation = ca.if_else(lost, said.squared / m, 1.0)
        R = ca.if_else(lost, 1.0, R)
        status = ca.if_else(unlikely, int(UpdateStatus.REJECTED), status)
        status = ca.if_else(lost, int(UpdateStatus.RECOVERED), status)
        narrower = ca.fmax(1.0, width * WIDER ** -(1 - gate.probability))
        wider = ca.if_else(lost, WIDER * width, ca.if_else(rejected, width, narrower))
    counter = ca.if_else(rejected, counter + 1, ca.fmin(counter + 1, 0))
    return Weighed(R, inflation, rejected, status, counter, wider)
