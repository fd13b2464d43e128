"""Tasks of textbooks whose solution is known in closed form, or to many digits."""

import casadi as ca
import numpy as np

from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, Cost, Phase, PhasedProblem
from lgcontrol.systems import Input, System

from ._task import Statement, ends, last, line, task


@task("Logsdon and Biegler, Ind. Eng. Chem. Res. 28 (1989), example 2", 30.0)
def car_stops():
    """300 m from rest to rest, accelerating by at most 1 and braking by at most 2."""
    car = System(
        "car", line("x v"), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "", -2, 1)]
    )
    phase = Phase(car, 60, (1.0, 100.0), bounds=ends(x=300, v=0))
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0])


@task("Bryson and Ho, Applied Optimal Control (1975), section 3.11: 4/(9 l)", 4.0)
def bryson_denham():
    """There and back within 1/9 at the least effort."""

    def field(t, x, u, p):
        return [x[1], u, u**2 / 2]

    cart = System("cart", line("x v cost"), field, inputs=["push"])
    bounds = [Bound("x", upper=1 / 9), *ends(x=0, v=-1)]
    return Statement(PhasedProblem(Phase(cart, 60, 1.0, costs=[last(2)], bounds=bounds)), [0, 1, 0])


@task("Kelly, SIAM Review 59 (2017), section 2: 12", 12.0)
def block_moves():
    """One metre in one second from rest to rest at the least effort."""
    block = System("block", line("x v cost"), lambda t, x, u, p: [x[1], u, u**2], inputs=["push"])
    phase = Phase(block, 60, 1.0, costs=[last(2)], bounds=ends(x=1, v=0))
    return Statement(PhasedProblem(phase), [0, 0, 0])


def bead(gravity):
    """A bead on a wire whose slope is the input; y points down."""

    def field(t, x, u, p):
        return [x[2] * ca.sin(u), x[2] * ca.cos(u), gravity * ca.cos(u)]

    return System("bead", line("x y v"), field, inputs=[Input("angle", "rad", 0, np.pi)])


@task("Bernoulli's cycloid; GPOPS-II manual, brachistochrone", 0.824338)
def brachistochrone():
    """Two metres down and two to the side."""
    phase = Phase(bead(9.81), 60, (0.1, 10.0), bounds=ends(x=2, y=2))
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0, 0])


@task("Bryson and Ho, section 3.11, problem 9; IPOPT, 960 steps: 1.83401", 1.83401, is_time=True)
def brachistochrone_above_a_line():
    """One metre to the side, above the line y = x/2 + 0.1."""
    line_ = Bound(lambda t, x, u, p: x[1] - 0.5 * x[0], upper=0.1, name="line")
    phase = Phase(bead(1.0), 60, (0.1, 10.0), bounds=[line_, *ends(x=1)])
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0, 0])


@task("Meditch, IEEE Trans. Autom. Control 9 (1964); closed form", 8.24621)
def moon_lander():
    """From 10 m at 2 m/s downwards, thrust up to 3, gravity 1.5, at the least fuel."""

    def field(t, x, u, p):
        return [x[1], u - 1.5, u]

    lander = System("lander", line("h v fuel"), field, inputs=[Input("thrust", "", 0, 3)])
    phase = Phase(lander, 80, (0.1, 20.0), costs=[last(2)], bounds=ends(h=0, v=0))
    return Statement(PhasedProblem(phase), [10, -2, 0])


@task("Bryson and Ho, section 2.7, example 2: tan 105° and 240°, 5.46", 5.464, is_time=True,
      within=2e-3, note="its start is rounded to two digits")  # fmt: skip
def zermelo():
    """Across a stream whose speed grows with the distance from the bank."""

    def field(t, x, u, p):
        return [ca.cos(u) - x[1], ca.sin(u)]

    boat = System("boat", line("x y"), field, inputs=["heading"])
    phase = Phase(boat, 60, (0.1, 20.0), bounds=ends(x=0, y=0))
    return Statement(PhasedProblem(phase, time_weight=1), [3.66, -1.86])


@task("Pontryagin et al., Mathematical Theory of Optimal Processes (1962), 1.5", 2 * np.pi)
def oscillator_comes_to_rest():
    """The least time from a deflection of 4 under a push of at most 1: two half turns."""
    inputs = [Input("push", "", -1, 1)]
    oscillator = System(
        "oscillator", line("x v"), lambda t, x, u, p: [x[1], u - x[0]], inputs=inputs
    )
    phase = Phase(oscillator, 80, (0.5, 20.0), bounds=ends(x=0, v=0))
    return Statement(PhasedProblem(phase, time_weight=1), [4, 0])


@task("closed form: (32 d)^(1/3)", 32 ** (1 / 3))
def triple_integrator():
    """A metre from rest to rest in the least time, the jerk at most 1."""
    inputs = [Input("jerk", "", -1, 1)]
    cart = System("cart", line("x v a"), lambda t, x, u, p: [x[1], x[2], u], inputs=inputs)
    phase = Phase(cart, 80, (0.5, 20.0), bounds=ends(x=1, v=0, a=0))
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0, 0])


def van_der_pol(lower, upper, steps, bounds=()):
    """Van der Pol's oscillator for 5 s, at the least integral of squares."""

    def field(t, x, u, p):
        return [(1 - x[1] ** 2) * x[0] - x[1] + u, x[0], x[0] ** 2 + x[1] ** 2 + u**2]

    inputs = [Input("push", "", lower, upper)]
    oscillator = System("oscillator", line("x1 x2 cost"), field, inputs=inputs)
    phase = Phase(oscillator, steps, 5.0, costs=[last(2)], bounds=bounds)
    return Statement(PhasedProblem(phase), [0, 1, 0])


@task("Vassiliadis, Sargent and Pantelides, Ind. Eng. Chem. Res. 33 (1994), part 2: 2.868", 2.8681)
def van_der_pol_free():
    """Van der Pol's oscillator, its input between −0.3 and 1."""
    return van_der_pol(-0.3, 1.0, 100)


@task("Vassiliadis, Sargent and Pantelides (1994), part 2: 2.955", 2.9548)
def van_der_pol_bounded():
    """The same, its state at least −0.4."""
    return van_der_pol(-0.3, 1.0, 100, [Bound("x1", lower=-0.4)])


def rayleigh(end, bounds=(), lower=-np.inf, upper=np.inf):
    """Rayleigh's oscillator at the least integral of squares."""

    def field(t, x, u, p):
        return [x[1], -x[0] + x[1] * (1.4 - 0.14 * x[1] ** 2) + 4 * u, u**2 + x[0] ** 2]

    inputs = [Input("push", "", lower, upper)]
    diode = System("tunnel_diode", line("x1 x2 cost"), field, inputs=inputs)
    phase = Phase(diode, 120, end, costs=[last(2)], bounds=bounds)
    return Statement(PhasedProblem(phase), [-5, -5, 0])


@task("TOMLAB PROPT manual, Rayleigh unconstrained: 29.37608", 29.37608)
def rayleigh_free():
    """Rayleigh's oscillator for 2.5 s."""
    return rayleigh(2.5)


@task("Betts (2010), Rayleigh control constraints: 44.7209362", 44.7209362)
def rayleigh_bounded():
    """To rest in 4.5 s, the input between −1 and 1."""
    return rayleigh(4.5, ends(x1=0, x2=0), -1.0, 1.0)


@task("Betts (2010), Rayleigh mixed state-control constraints: 44.8044433", 44.8044433,
      within=2e-3)  # fmt: skip
def rayleigh_mixed():
    """The sum of the input and a sixth of the state is at most 0."""
    row = Bound(lambda t, x, u, p: u + x[0] / 6, upper=0, at="path", name="sum")
    return rayleigh(4.5, [row])


@task("Aly, Int. J. Control 28 (1978): 0.37699193", 0.37699193)
def singular_regulator():
    """A regulator whose input costs nothing: bang, then singular."""

    def field(t, x, u, p):
        return [x[1], u, (x[0] ** 2 + x[1] ** 2) / 2]

    cart = System("cart", line("x1 x2 cost"), field, inputs=[Input("push", "", -1, 1)])
    return Statement(PhasedProblem(Phase(cart, 100, 5.0, costs=[last(2)])), [0, 1, 0])


@task("Bocop examples, Fuller's problem: 0.2684", 0.26839)
def fuller():
    """Inputs that switch ever faster towards the end."""
    inputs = [Input("push", "", -1, 1)]
    cart = System("cart", line("x v cost"), lambda t, x, u, p: [x[1], u, x[0] ** 2], inputs=inputs)
    phase = Phase(cart, 150, 3.5, costs=[last(2)], bounds=ends(x=0, v=0))
    return Statement(PhasedProblem(phase), [0, 1, 0])


@task("Jacobson and Lele, IEEE Trans. Autom. Control 14 (1969): 0.1698", 0.1698, within=2e-3)
def regulator_below_a_parabola():
    """A regulator whose speed keeps below a parabola in time."""

    def field(t, x, u, p):
        return [x[1], -x[1] + u, x[0] ** 2 + x[1] ** 2 + 0.005 * u**2]

    cart = System("cart", line("x v cost"), field, inputs=[Input("push", "", -20, 20)])
    keep = Bound(lambda t, x, u, p: x[1] - 8 * (t - 0.5) ** 2, upper=-0.5, name="parabola")
    return Statement(
        PhasedProblem(Phase(cart, 100, 1.0, costs=[last(2)], bounds=[keep])), [0, -1, 0]
    )


@task("Robbins, SIAM J. Control Optim. 18 (1980); Bocop examples; IPOPT, 1,600 steps", 19.4355,
      within=2e-2)  # fmt: skip
def robbins():
    """A state constraint of third order."""

    def field(t, x, u, p):
        return [x[1], x[2], u, 3 * x[0] + 0.5 * u**2]

    cart = System("cart", line("y v a cost"), field, inputs=["jerk"])
    phase = Phase(cart, 100, 10.0, costs=[last(3)], bounds=[Bound("y", lower=0)])
    return Statement(PhasedProblem(phase), [1, -2, 0, 0])


@task("Rao and Mease, Optim. Control Appl. Methods 21 (2000): 1.3309", 1.3309, within=2e-2,
      note="25 s instead of 10,000 s: cost in the middle is nothing")  # fmt: skip
def hypersensitive():
    """A decay, a long rest, and a rise."""

    def field(t, x, u, p):
        return [-(x[0] ** 3) + u, (x[0] ** 2 + u**2) / 2]

    point = System("point", line("x cost"), field, inputs=["push"])
    phase = Phase(point, 250, 25.0, costs=[last(1)], bounds=ends(x=1))
    return Statement(PhasedProblem(phase), [1.5, 0])


@task("Luus, Iterative Dynamic Programming (2000), 10.2.4; TOMLAB PROPT: 1.25239", 1.2523896)
def singular_triple_integrator():
    """The least integral of a square under bounded jerk."""
    inputs = [Input("jerk", "", -1, 1)]
    cart = System(
        "cart", line("x1 x2 x3 cost"), lambda t, x, u, p: [x[1], x[2], u, x[0] ** 2], inputs=inputs
    )
    return Statement(PhasedProblem(Phase(cart, 100, 5.0, costs=[last(3)])), [1, 0, 0, 0])


@task("Bressan, Viscosity Solutions of Hamilton-Jacobi Equations; closed form", 500 / 9, sign=-1.0)
def singular_of_bressan():
    """Singular from the start on."""
    inputs = [Input("u", "", -1, 1)]
    plant = System("plant", line("x1 x2 x3"), lambda t, x, u, p: [u, -x[0], x[1] - x[0] ** 2],
                   inputs=inputs)  # fmt: skip
    return Statement(PhasedProblem(Phase(plant, 100, 10.0, costs=[last(2, -1.0)])), [0, 0, 0])


@task("Betts, Practical Methods for Optimal Control (2010), alp rider: 2030.85609", 2030.856)
def alp_rider():
    """A stiff system over four peaks that its norm must not cut."""

    def field(t, x, u, p):
        cost = 100 * ca.sumsqr(x[:4]) + 0.01 * ca.sumsqr(u)
        return [
            -10 * x[0] + u[0] + u[1],
            -2 * x[1] + u[0] - 2 * u[1],
            -3 * x[2] + 5 * x[3] + u[0] - u[1],
            5 * x[2] - 3 * x[3] + u[0] + 3 * u[1],
            cost,
        ]

    def above(t, x, u, p):
        peaks = [(3, 3, 12), (3, 6, 10), (3, 10, 6), (8, 15, 4)]
        return ca.sumsqr(x[:4]) - sum(a * ca.exp(-b * (t - c) ** 2) for a, c, b in peaks)

    rider = System("rider", line("y1 y2 y3 y4 cost"), field, inputs=["u1", "u2"])
    bounds = [Bound(above, lower=0.01, name="peaks"), *ends(y1=2, y2=3, y3=1, y4=-2)]
    phase = Phase(rider, 200, 20.0, costs=[last(4)], bounds=bounds)
    return Statement(PhasedProblem(phase), [2, 1, 2, 1, 0])


@task("closed form: half a disc, L²/(2π)", 1 / (2 * np.pi), sign=-1.0)
def dido():
    """The greatest area between a shore and a rope of length 1, whose far end is free."""

    def field(t, x, u, p):
        return [ca.cos(u), ca.sin(u), x[1] * ca.cos(u)]

    rope = System("rope", line("x y area"), field, inputs=[Input("angle", "rad", -np.pi, np.pi)])
    phase = Phase(rope, 60, 1.0, costs=[last(2, -1.0)], bounds=ends(y=0))
    return Statement(PhasedProblem(phase), [0, 0, 0])


@task("Nishida et al., Automatica 12 (1976); Luus (2000), chapter 4", 0.99514, within=2e-2)
def nishida():
    """A linear plant of fourth order whose end is weighed, under bounded inputs."""

    def field(t, x, u, p):
        return [
            -0.5 * x[0] + 5 * x[1],
            -5 * x[0] - 0.5 * x[1] + u,
            -0.6 * x[2] + 10 * x[3],
            -10 * x[2] - 0.6 * x[3] + u,
        ]

    plant = System("plant", Rn(4), field, inputs=[Input("u", "", -1, 1)])
    end = Cost(lambda t, x, u, p: ca.sumsqr(x), None, 1.0)
    return Statement(PhasedProblem(Phase(plant, 100, 4.2, costs=[end])), [10, 10, 10, 10])
