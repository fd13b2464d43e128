"""What a certificate leaves behind: the plan of the steps, whole."""

import numpy as np
import pytest

from lgcontrol.controllers import MPC
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound
from lgcontrol.systems import Input, System


@pytest.mark.compiled
def test_a_plan_after_a_certificate_says_of_itself_what_it_is():
    """A cart too fast for its wall: the elastic problem was solved, and the steps' plan goes on."""
    push = Input("push", "N", -1, 1)
    cart = System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u[0]], inputs=[push])
    mpc = MPC(cart, 20, 0.1, Q=1.0, R=0.1, reference=[0.4, 0.0], bounds=[Bound("x", -np.inf, 0.5)])
    mpc(0.0, [0.0, 0.0])
    mpc(0.1, [0.45, 0.9])
    assert mpc.info.status == "infeasible"
    assert mpc.state.number("certified") > 0
    assert mpc.state.number("is_elastic") == 0
