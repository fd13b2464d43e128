"""Tasks of mechanics, geometry and economics with closed forms, and two robots."""

import casadi as ca
import numpy as np

from lgcontrol.groups import SO3, Product, Rn
from lgcontrol.optimal import Bound, Phase, PhasedProblem
from lgcontrol.systems import Input, System

from ._task import Statement, ends, last, line, task

TEXTBOOK = "closed form, e.g. Kirk, Optimal Control Theory (1970)"


@task(f"{TEXTBOOK}: tanh 1", np.tanh(1.0))
def scalar_regulator():
    """A first-order integrator for 1 s."""
    plant = System("plant", line("x cost"), lambda t, x, u, p: [u, x[0] ** 2 + u**2], inputs=["u"])
    return Statement(PhasedProblem(Phase(plant, 60, 1.0, costs=[last(1)])), [1, 0])


@task(f"{TEXTBOOK}: √2 over an infinite horizon", 2**0.5)
def regulated_cart():
    """A double integrator from a deflection of 1, for 15 s."""

    def field(t, x, u, p):
        return [x[1], u, x[0] ** 2 + u**2]

    cart = System("cart", line("x v cost"), field, inputs=["push"])
    return Statement(PhasedProblem(Phase(cart, 150, 15.0, costs=[last(2)])), [1, 0, 0])


@task(f"{TEXTBOOK}: 1/π, by the Gramian of a whole period", 1 / np.pi)
def oscillator_at_least_effort():
    """An oscillator comes to rest in a period at the least effort."""

    def field(t, x, u, p):
        return [x[1], u - x[0], u**2]

    oscillator = System("oscillator", line("x v cost"), field, inputs=["push"])
    phase = Phase(oscillator, 100, 2 * np.pi, costs=[last(2)], bounds=ends(x=0, v=0))
    return Statement(PhasedProblem(phase), [1, 0, 0])


@task(f"{TEXTBOOK}: 2 s with s (T − s) = d", 3 - 5**0.5)
def least_fuel():
    """A metre from rest to rest in 3 s at the least fuel: push, coast, brake."""
    inputs = [Input("push", "", 0, 1), Input("brake", "", 0, 1)]
    sled = System(
        "sled", line("x v fuel"), lambda t, x, u, p: [x[1], u[0] - u[1], u[0] + u[1]], inputs=inputs
    )
    phase = Phase(sled, 90, 3.0, costs=[last(2)], bounds=ends(x=1, v=0))
    return Statement(PhasedProblem(phase), [0, 0, 0])


@task(f"{TEXTBOOK}: d / v + v / a", 7.0)
def least_time_below_a_speed():
    """Ten metres from rest to rest at 2 m/s at most."""
    inputs = [Input("push", "", -1, 1)]
    cart = System("cart", line("x v"), lambda t, x, u, p: [x[1], u], inputs=inputs)
    bounds = [Bound("v", -2, 2), *ends(x=10, v=0)]
    phase = Phase(cart, 70, (0.5, 50.0), bounds=bounds)
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0])


@task("Flash and Hogan, J. Neurosci. 5 (1985): 720", 720.0, within=2e-3)
def least_jerk():
    """A metre from rest to rest in 1 s at the least squared jerk.

    Jerks held in 60 steps cost 721.0012 at least (normal equations), a share of 5/60² more.
    """

    def field(t, x, u, p):
        return [x[1], x[2], u, u**2]

    hand = System("hand", line("x v a cost"), field, inputs=["jerk"])
    phase = Phase(hand, 60, 1.0, costs=[last(3)], bounds=ends(x=1, v=0, a=0))
    return Statement(PhasedProblem(phase), [0, 0, 0, 0])


@task("Mellinger and Kumar, ICRA (2011); closed form: 100800", 100800.0, within=5e-3)
def least_snap():
    """The same at the least squared snap."""

    def field(t, x, u, p):
        return [x[1], x[2], x[3], u, u**2]

    drone = System("drone", line("x v a j cost"), field, inputs=["snap"])
    phase = Phase(drone, 60, 1.0, costs=[last(4)], bounds=ends(x=1, v=0, a=0, j=0))
    return Statement(PhasedProblem(phase), [0, 0, 0, 0, 0])


@task("closed form: 1/√(1 − c²)", 0.75**-0.5, is_time=True)
def across_a_river():
    """Straight across a steady stream of half the boat's speed."""
    unit = Bound(lambda t, x, u, p: ca.sumsqr(u), upper=1, at="path", name="speed")
    boat = System("boat", line("x y"), lambda t, x, u, p: [u[0] + 0.5, u[1]], inputs=["ux", "uy"])
    phase = Phase(boat, 40, (0.1, 20.0), bounds=[unit, *ends(x=0, y=1)])
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0])


@task("Bliss, Lectures on the Calculus of Variations (1946): catenoid", 5.9917972)
def soap_film():
    """The least area of a film between two rings of radius 1, 1 apart."""

    def field(t, x, u, p):
        return [u, 2 * np.pi * x[0] * ca.sqrt(1 + u**2)]

    film = System("film", line("r area"), field, inputs=["slope"])
    phase = Phase(film, 100, 1.0, costs=[last(1)], bounds=ends(r=1))
    return Statement(PhasedProblem(phase), [1, 0])


@task("closed form: arccos(cos 0.5 cos 1)", np.arccos(np.cos(0.5) * np.cos(1.0)))
def great_circle():
    """The shortest way over a sphere, latitude over longitude."""

    def field(t, x, u, p):
        return [u, ca.sqrt(u**2 + ca.cos(x[0]) ** 2)]

    walker = System("walker", line("latitude way"), field, inputs=["slope"])
    phase = Phase(walker, 60, 1.0, costs=[last(1)], bounds=ends(latitude=0.5))
    return Statement(PhasedProblem(phase), [0, 0])


@task("Bullo and Lewis, Geometric Control (2005); closed form: 6 θ²", 24.0)
def turn_at_least_effort():
    """A ball turns by 2 rad from rest to rest in 1 s."""

    def field(t, x, u, p):
        return ca.vertcat(x[4:7], u, ca.sumsqr(u) / 2)

    group = Product(attitude=SO3, rate=Rn(3), cost=Rn(1))
    ball = System("ball", group, field, inputs=["tx", "ty", "tz"])
    goal = SO3.exp([0, 0, 2.0])

    def missed(t, x, u, p):
        return SO3.minus(x[:4], ca.DM(goal))

    there = [Bound(missed, 0, 0, at="terminal"), Bound("rate", 0, 0, at="terminal")]
    phase = Phase(ball, 60, 1.0, costs=[last(7)], bounds=there)
    return Statement(PhasedProblem(phase), [0, 0, 0, 1, 0, 0, 0, 0])


@task("Ramsey, Economic Journal 38 (1928); closed form: T log(k/T) + r T²/2", 2 * np.log(2) + 1,
      sign=-1.0)  # fmt: skip
def consumption():
    """The greatest utility of a capital that is used up in two years."""

    def field(t, x, u, p):
        return [0.5 * x[0] - u, ca.log(u)]

    inputs = [Input("consumption", "", 0.1, 10, nominal=1.0)]
    house = System("house", line("capital utility"), field, inputs=inputs)
    phase = Phase(house, 60, 2.0, costs=[last(1, -1.0)], bounds=ends(capital=0))
    return Statement(PhasedProblem(phase), [4, 0])


@task("Pontryagin et al. (1962), 1.5: half a turn", np.pi)
def oscillator_by_half_a_turn():
    """The least time from a deflection of 2."""
    inputs = [Input("push", "", -1, 1)]
    oscillator = System(
        "oscillator", line("x v"), lambda t, x, u, p: [x[1], u - x[0]], inputs=inputs
    )
    phase = Phase(oscillator, 60, (0.5, 20.0), bounds=ends(x=0, v=0))
    return Statement(PhasedProblem(phase, time_weight=1), [2, 0])


@task("Luus (2000), two-link robot; TOMLAB PROPT: 2.98", 2.98, within=5e-3, is_time=True)
def two_link_arm():
    """The least time of an arm with two links."""

    def field(t, x, u, p):
        sin, cos = ca.sin(x[2]), ca.cos(x[2])
        m = 31 / 36 + 9 / 4 * sin**2
        first = sin * (9 / 4 * cos * x[0] ** 2 + 2 * x[1] ** 2)
        second = sin * (9 / 4 * cos * x[1] ** 2 + 7 / 2 * x[0] ** 2)
        return [
            (first + 4 / 3 * (u[0] - u[1]) - 3 / 2 * cos * u[1]) / m,
            -(second - 7 / 3 * u[1] + 3 / 2 * cos * (u[0] - u[1])) / m,
            x[1] - x[0],
            x[0],
        ]

    inputs = [Input("shoulder", "", -1, 1), Input("elbow", "", -1, 1)]
    arm = System("arm", line("w1 w2 angle place"), field, inputs=inputs)
    phase = Phase(arm, 60, (0.5, 20.0), bounds=ends(w1=0, w2=0, angle=0.5, place=0.522))
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0, 0.5, 0])


@task("Teo, Goh and Wong (1991), 7.1; Augustin and Maurer (2001): 0.03752", 0.03752)
def container_crane():
    """A container from a ship to a lorry with little swing."""

    def field(t, x, u, p):
        return [x[3], x[4], x[5], u[0] + 17.2656 * x[2], u[1],
                -(u[0] + 27.0756 * x[2] + 2 * x[4] * x[5]) / x[1],
                0.5 * (x[2] ** 2 + x[5] ** 2 + 0.01 * (u[0] ** 2 + u[1] ** 2))]  # fmt: skip

    inputs = [Input("u1", "", -2.83374, 2.83374), Input("u2", "", -0.80865, 0.71265)]
    crane = System("crane", line("x1 x2 x3 x4 x5 x6 cost"), field, inputs=inputs)
    goal = ends(x1=10, x2=14, x3=0, x4=2.5, x5=0, x6=0)
    bounds = [Bound("x4", -2.5, 2.5), Bound("x5", -1, 1), *goal]
    phase = Phase(crane, 90, 9.0, costs=[last(6)], bounds=bounds)
    return Statement(PhasedProblem(phase), [0, 22, 0, 0, -1, 0, 0])
