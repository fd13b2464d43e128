"""Tasks of the COPS collection (Dolan, Moré, Munson: Benchmarking Optimization Software, 2004)."""

import casadi as ca
import numpy as np

from lgcontrol.optimal import Bound, Cost, Phase, PhasedProblem
from lgcontrol.systems import Input, System

from ._task import Statement, ends, last, line, task


@task("COPS 3.0, hanging chain: 5.06848", 5.06848)
def hanging_chain():
    """The least potential energy of a chain of length 4 between heights 1 and 3."""

    def field(t, x, u, p):
        stretch = ca.sqrt(1 + u**2)
        return [u, stretch, x[0] * stretch]

    chain = System("chain", line("height length energy"), field, inputs=["slope"])
    phase = Phase(chain, 100, 1.0, costs=[last(2)], bounds=ends(height=3, length=4))
    return Statement(PhasedProblem(phase), [1, 0, 0])


@task("COPS 3.0, particle steering: 0.554571", 0.554571)
def particle_steering():
    """The least time to a height of 5 at a horizontal speed of 45, under a thrust of 100."""

    def field(t, x, u, p):
        return [x[1], 100 * ca.cos(u), x[3], 100 * ca.sin(u)]

    inputs = [Input("angle", "rad", -np.pi / 2, np.pi / 2)]
    particle = System("particle", line("x vx y vy"), field, inputs=inputs)
    phase = Phase(particle, 60, (0.05, 5.0), bounds=ends(vx=45, y=5, vy=0))
    return Statement(PhasedProblem(phase, time_weight=1), [0, 0, 0, 0])


@task("COPS 3.0, Goddard rocket: 1.01283", 1.01283, sign=-1.0, within=1e-4)
def goddard():
    """The greatest height of a rocket in thin air, which ends with 0.6 of its mass."""

    def field(t, x, u, p):
        h, v, m = x[0], x[1], x[2]
        drag = 310 * v**2 * ca.exp(-500 * (h - 1))
        return [v, (u - drag) / m - 1 / h**2, -u / 0.5]

    rocket = System("rocket", line("h v m"), field, inputs=[Input("thrust", "", 0, 3.5)])
    bounds = [Bound("h", lower=1), Bound("v", lower=0), Bound("m", 0.6, 1), *ends(m=0.6)]
    phase = Phase(rocket, 100, (0.01, 1.0), costs=[last(0, -1.0)], bounds=bounds)
    return Statement(PhasedProblem(phase), [1, 0, 1])


@task("COPS 3.0, hang glider: 1248; Bulirsch et al. (1993): 1247.7", 1248.03, sign=-1.0)
def hang_glider():
    """The greatest range from 1,000 m through a thermal."""
    S, rho, m, g = 14.0, 1.13, 100.0, 9.80665

    def field(t, x, u, p):
        X = (x[0] / 100 - 2.5) ** 2
        w = x[3] - 2.5 * (1 - X) * ca.exp(-X)
        v = ca.sqrt(x[2] ** 2 + w**2)
        sin, cos, q = w / v, x[2] / v, rho * S * v**2 / 2
        L, D = u * q, (0.034 + 0.069662 * u**2) * q
        return [x[2], x[3], (-L * sin - D * cos) / m, (L * cos - D * sin) / m - g]

    glider = System("glider", line("x y vx vy"), field, inputs=[Input("lift", "", 0, 1.4)])
    speeds = {"vx": 13.2275675, "vy": -1.28750052}
    bounds = [Bound("x", lower=0), Bound("vx", lower=0), *ends(y=900, **speeds)]
    phase = Phase(glider, 150, (10.0, 200.0), costs=[last(0, -1.0)], bounds=bounds)
    return Statement(PhasedProblem(phase), [0, 1000, *speeds.values()])


@task("COPS 3.0, robot arm: 9.14093", 9.14093)
def robot_arm():
    """The least time of an arm of changing length from one place to another."""

    def field(t, x, u, p):
        inertia = ((5 - x[0]) ** 3 + x[0] ** 3) / 3
        return [*(x[i] for i in (3, 4, 5)), u[0] / 5, u[1] / (inertia * ca.sin(x[2]) ** 2),
                u[2] / inertia]  # fmt: skip

    inputs = [Input(name, "", -1, 1) for name in ("push", "turn", "lift")]
    arm = System("arm", line("rho theta phi vrho vtheta vphi"), field, inputs=inputs)
    goal = ends(rho=4.5, theta=2 * np.pi / 3, phi=np.pi / 4, vrho=0, vtheta=0, vphi=0)
    limits = [Bound("rho", 0, 5), Bound("theta", -np.pi, np.pi), Bound("phi", 0, np.pi)]
    phase = Phase(arm, 100, (1.0, 50.0), bounds=[*limits, *goal])
    return Statement(PhasedProblem(phase, time_weight=1), [4.5, 0, np.pi / 4, 0, 0, 0])


@task("COPS 3.0, catalyst mixing: −4.80556e-2", -4.80556e-2)
def catalyst_mixing():
    """The best mixture of two catalysts along a tubular reactor."""

    def field(t, x, u, p):
        there = u * (10 * x[1] - x[0])
        return [there, -there - (1 - u) * x[1]]

    reactor = System("reactor", line("a b"), field, inputs=[Input("mix", "", 0, 1)])
    made = Cost(lambda t, x, u, p: x[0] + x[1] - 1, None, 1.0)
    return Statement(PhasedProblem(Phase(reactor, 100, 1.0, costs=[made])), [1, 0])
