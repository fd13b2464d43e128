"""Systems that nobody holds any longer are freed, with all that was made from them."""

import gc
import weakref

import numpy as np
import pytest

from lgcontrol.controllers import LQR, MPC
from lgcontrol.integrators import integrate
from lgcontrol.integrators._internal import embedded_step
from lgcontrol.simulation import simulate

from ..optimal.examples import pendulum

X0 = [1.0, 0.0, 0.0]
USES = {
    "integrate": lambda system: integrate(system.problem, X0, (0.0, 0.2), u=[0.0], p=[1.0]),
    "integrate, stiff": lambda system: integrate(
        system.problem, X0, (0.0, 0.2), u=[0.0], p=[1.0], method="ros34pw2"
    ),
    "embedded_step": lambda system: embedded_step(system.problem)(0.0, X0, [0.0], [1.0], 0.1),
    "rollout": lambda system: system.rollout(X0, [0.0], dt=0.05, steps=3, method="radau_iia5"),
    "linearize": lambda system: system.discretize(0.1, method="radau_iia5").linearize(X0, [0.0]),
    "simulate": lambda system: simulate(system, LQR(system, X0, dt=0.05), x0=X0, seconds=0.1),
    "plan": lambda system: MPC(system, 5, 0.1, reference=np.array(X0))(0.0, X0),
}


@pytest.mark.usually(use=["plan", "simulate", "linearize"])
@pytest.mark.parametrize("use", USES)
def test_a_system_is_freed_with_its_functions(use):
    system = pendulum.__wrapped__()  # the tests of other rooms keep theirs
    USES[use](system)
    seen = [weakref.ref(system), weakref.ref(system.problem)]
    del system
    gc.collect()
    assert [reference() for reference in seen] == [None, None]
