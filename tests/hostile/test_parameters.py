"""Values that no parameter can have are refused by name and range, whoever is given them."""

import re
from functools import cache

import numpy as np
import pytest

from lgcontrol.controllers import LQR, MPC
from lgcontrol.groups import Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.models import quadrotor, scara_tree
from lgcontrol.optimal import OptimalControlProblem
from lgcontrol.simulation import SimulationError, simulate
from lgcontrol.systems import Parameter, System


@cache
def pendulum():
    """A rod on a joint, with four numbers that may change."""
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    tree = Multibody().add_body("rod", rod, "revolute", axis="y",
                                properties=JointProperties(damping=0.1))  # fmt: skip
    names = ("rod.mass", "rod.inertia.xx", "rod.inertia.xy", "rod.damping")
    return tree.symbolic(*names)


@cache
def system():
    return pendulum().system()


@cache
def quad():
    return quadrotor(symbolic=["mass", "inertia"])


def at_rest(p):
    plant = system()
    return simulate(plant, lambda t, x, r: [0.0], x0=[0.0, 0.0], seconds=0.1, dt=0.1, p=p)


MASS = {"rod.mass": -1.0}


def law():
    return MPC(system(), horizon=2, dt=0.1, reference=[0.0, 0.0])


DOORS = {
    "a tree": lambda p: pendulum().with_parameters(p),
    "a tree's system": lambda p: system().with_parameters(p),
    "values": lambda p: system().parameter_values(p),
    "f": lambda p: system().f(0.0, [0.0, 0.0], [0.0], p),
    "simulate": at_rest,
    "simulate, on the way": lambda p: at_rest({name: lambda t, x=x: x for name, x in p.items()}),
    "rollout": lambda p: system().rollout([0.0, 0.0], [0.0], 0.1, steps=1, p=p),
    "trim": lambda p: system().trim(p=p),
    "linearize": lambda p: system().linearize([0.0, 0.0], p=p),
    "LQR": lambda p: LQR(system(), [0.0, 0.0], p=p),
    "MPC": lambda p: MPC(system(), horizon=2, dt=0.1, p=p),
    "MPC, set": lambda p: setattr(law(), "parameters", p),
    "MPC, a call": lambda p: law()(0.0, [0.0, 0.0], p=p),
    "MPC, a copy": lambda p: law().with_parameters(p),
    "a plan": lambda p: OptimalControlProblem(system(), 2, 0.1).solve([0.0, 0.0], p=p),
}


@pytest.mark.parametrize("door", DOORS)
def test_no_mass_is_negative(door):
    text = re.escape("parameter 'rod.mass' = -1 kg is outside its range [0, inf] kg")
    with pytest.raises((ValueError, SimulationError), match=text):
        DOORS[door](MASS)


VALUES = {
    "a mass": (pendulum, {"rod.mass": -1e-9}),
    "a moment of inertia": (pendulum, {"rod.inertia.xx": -0.1}),
    "damping": (pendulum, {"rod.damping": -0.1}),
    "in a system": (system, {"rod.damping": -0.1}),
    "of a body's system": (quad, {"inertia.zz": -0.1}),
}


@pytest.mark.parametrize("case", VALUES)
def test_what_is_refused_has_a_name_and_a_range(case):
    make, values = VALUES[case]
    (name,) = values
    with pytest.raises(ValueError, match=rf"{name}' = .* is outside its range \[0, inf\]"):
        make().with_parameters(values)


def test_what_has_any_sign_is_taken():
    moved = system().with_parameters({"rod.inertia.xy": -0.001, "rod.mass": 0.0})
    assert moved.nominal_parameters[[0, 2]].tolist() == [0.0, -0.001]


def test_a_range_of_ones_own():
    share = Parameter("share", "", 0.5, lower=0.0, upper=1.0)
    plant = System("plant", Rn(1), lambda t, x, u, p: -p * x, parameters=[share])
    with pytest.raises(ValueError, match=r"'share' = 2 is outside its range \[0, 1\]"):
        plant.rollout(np.ones((3, 1)), dt=0.1, steps=1, p={"share": np.array([0.1, 2.0, 0.3])})
    with pytest.raises(ValueError, match="'share' = 2"):
        Parameter("share", "", 2.0, upper=1.0)
    with pytest.raises(ValueError, match="not an interval"):
        Parameter("share", "", 0.0, 1.0, -1.0)
    lagging = quadrotor().augment(lag=0.03)
    (name,) = [n for n in lagging.parameter_names if n.startswith("rotor.0.")]
    with pytest.raises(ValueError, match="rotor.0.time_constant' = 0 s is outside"):
        lagging.with_parameters({name: 0.0})


def test_one_name_may_be_given_as_a_text():
    tree = pendulum().add_frame("tip", "rod", [0, 0, -1])
    pushed = tree.system(wrenches="tip")
    assert [n for n in pushed.input_names if n.startswith("tip.")] == [
        f"tip.{axis}" for axis in ("fx", "fy", "fz", "mx", "my", "mz")
    ]
    assert scara_tree(symbolic="tool.mass").parameters == ("tool.mass",)
    with pytest.raises(KeyError, match="unknown parameter 'tip.mass'"):
        tree.system(symbolic="tip.mass")
