"""Reactors, fermenters and other tasks of chemical engineering."""

import casadi as ca
import numpy as np

from lgcontrol.optimal import Bound, Cost, Phase, PhasedProblem, Residual
from lgcontrol.systems import Input, Parameter, System

from ._task import Statement, last, line, task


@task("Ray, Advanced Process Control (1981); Luus (2000): 0.610775", 0.610775, sign=-1.0)
def batch_reactor():
    """The temperature in K that makes most of an intermediate product."""

    def field(t, x, u, p):
        k1, k2 = 4000 * ca.exp(-2500 / u), 620000 * ca.exp(-5000 / u)
        return [-k1 * x[0] ** 2, k1 * x[0] ** 2 - k2 * x[1]]

    inputs = [Input("temperature", "K", 298, 398, nominal=340)]
    reactor = System("reactor", line("a b"), field, inputs=inputs)
    return Statement(PhasedProblem(Phase(reactor, 50, 1.0, costs=[last(1, -1.0)])), [1, 0])


@task("Tieu, Cluett and Penlidis, Comput. Chem. Eng. 19 (1995): 0.57353", 0.57353, sign=-1.0)
def parallel_reactions():
    """Two reactions side by side in a tube, of which one is wanted."""

    def field(t, x, u, p):
        return [-(u + u**2 / 2) * x[0], u * x[0]]

    reactor = System("reactor", line("a b"), field, inputs=[Input("u", "", 0, 5)])
    return Statement(PhasedProblem(Phase(reactor, 60, 1.0, costs=[last(1, -1.0)])), [1, 0])


@task("Luus (2000), chapter 6, stirred tank: 0.13309", 0.13309, within=2e-3)
def stirred_tank():
    """A tank reactor with two states returns to its unstable steady state."""

    def field(t, x, u, p):
        rate = (x[1] + 0.5) * ca.exp(25 * x[0] / (x[0] + 2))
        return [-(2 + u) * (x[0] + 0.25) + rate, 0.5 - x[1] - rate,
                x[0] ** 2 + x[1] ** 2 + 0.1 * u**2]  # fmt: skip

    tank = System("tank", line("temperature concentration cost"), field, inputs=["flow"])
    phase = Phase(tank, 60, 0.78, costs=[last(2)])
    return Statement(PhasedProblem(phase), [0.09, 0.09, 0])


@task("Luus (2000), chapter 6, stirred tank: 0.13309", 0.13309, within=2e-3)
def stirred_tank_bounded():
    """The same with valves that close, its flow between 0 and 5."""

    def field(t, x, u, p):
        rate = (x[1] + 0.5) * ca.exp(25 * x[0] / (x[0] + 2))
        return [-(2 + u) * (x[0] + 0.25) + rate, 0.5 - x[1] - rate,
                x[0] ** 2 + x[1] ** 2 + 0.1 * u**2]  # fmt: skip

    inputs = [Input("flow", "", 0, 5)]
    tank = System("tank", line("temperature concentration cost"), field, inputs=inputs)
    phase = Phase(tank, 60, 0.78, costs=[last(2)])
    return Statement(PhasedProblem(phase), [0.09, 0.09, 0])


@task("Park and Ramirez, AIChE J. 34 (1988); Luus: 32.686", 32.686, sign=-1.0)
def secreted_protein():
    """The feed that makes a fermenter secrete most protein."""

    def field(t, x, u, p):
        g3 = 21.87 * x[3] / ((x[3] + 0.4) * (x[3] + 62.5))
        g1, g2 = 4.75 * g3 / (0.12 + g3), x[3] / (0.1 + x[3]) * ca.exp(-5 * x[3])
        thin = u / x[4]
        return [
            g1 * (x[1] - x[0]) - thin * x[0],
            g2 * x[2] - thin * x[1],
            g3 * x[2] - thin * x[2],
            -7.3 * g3 * x[2] + thin * (20 - x[3]),
            u,
        ]

    names = line("secreted protein cells substrate volume")
    fermenter = System("fermenter", names, field, inputs=[Input("feed", "", 0, 2)])
    made = Cost(lambda t, x, u, p: x[0] * x[4], None, -1.0)
    return Statement(PhasedProblem(Phase(fermenter, 100, 15.0, costs=[made])), [0, 0, 1, 5, 1])


@task("Hong (1986); Luus (2000): 20839", 20839.0, sign=-1.0, within=2e-3)
def ethanol():
    """The feed of a fermenter of at most 200 l that makes most ethanol in 54 h."""

    def field(t, x, u, p):
        growth = 0.408 / (1 + x[2] / 16) * x[1] / (0.22 + x[1])
        making = 1 / (1 + x[2] / 71.5) * x[1] / (0.44 + x[1])
        thin = u / x[3]
        return [growth * x[0] - thin * x[0], -10 * growth * x[0] + thin * (150 - x[1]),
                making * x[0] - thin * x[2], u]  # fmt: skip

    names = line("cells sugar ethanol volume")
    fermenter = System("fermenter", names, field, inputs=[Input("feed", "l/h", 0, 12)])
    made = Cost(lambda t, x, u, p: x[2] * x[3], None, -1.0)
    full = [Bound("volume", upper=200), Bound("sugar", lower=0)]
    phase = Phase(fermenter, 108, 54.0, costs=[made], bounds=full)
    return Statement(PhasedProblem(phase), [1, 150, 0, 10])


@task("Cuthrell and Biegler, Comput. Chem. Eng. 13 (1989); Banga et al. (2005)", 87.99,
      sign=-1.0, within=5e-3)  # fmt: skip
def penicillin():
    """The feed and the time that make most penicillin."""

    def field(t, x, u, p):
        h1 = 0.11 * x[2] / (0.006 * x[0] + x[2])
        h2 = 0.0055 * x[2] / (0.0001 + x[2] * (1 + 10 * x[2]))
        thin = u / (500 * x[3])
        fed = u / x[3] * (1 - x[2] / 500)
        kept = 0.029 * x[2] / (0.0001 + x[2]) * x[0]
        return [h1 * x[0] - thin * x[0], h2 * x[0] - 0.01 * x[1] - thin * x[1],
                -h1 * x[0] / 0.47 - h2 * x[0] / 1.2 - kept + fed, u / 500]  # fmt: skip

    names = line("cells penicillin sugar volume")
    fermenter = System("fermenter", names, field, inputs=[Input("feed", "g/h", 0, 50)])
    made = Cost(lambda t, x, u, p: x[1] * x[3], None, -1.0)
    limits = [Bound("cells", 0, 40), Bound("sugar", 0, 25), Bound("volume", 0, 10)]
    phase = Phase(fermenter, 120, (50.0, 200.0), costs=[made], bounds=limits)
    return Statement(PhasedProblem(phase), [1.5, 0, 0, 7])


@task("Betts (2010), tumor anti-angiogenesis; Ledzewicz and Schättler (2007): 7571.6712", 7571.6712)
def tumour():
    """The smallest tumour after a given dose."""
    zeta, b, d, G, mu, dose, most = 0.084, 5.85, 0.00873, 0.15, 0.02, 15.0, 75.0
    size = ((b - mu) / d) ** 1.5

    def field(t, x, u, p):
        P, q = x[0], x[1]
        return [-zeta * P * ca.log(P / q), q * (b - (mu + d * P ** (2 / 3) + G * u)), u]

    tumour = System("tumour", line("p q given"), field, inputs=[Input("dose", "", 0, most)])
    bounds = [Bound("p", 0.01, size), Bound("q", 0.01, size), Bound("given", upper=dose)]
    phase = Phase(tumour, 60, (0.1, 5.0), costs=[last(0)], bounds=bounds)
    return Statement(PhasedProblem(phase), [size / 2, size / 4, 0])


@task("Sager, mintoc.de, Lotka-Volterra fishing, relaxed: 1.34408", 1.34408)
def fishing():
    """Fish so that predators and prey come to their steady state."""

    def field(t, x, u, p):
        return [x[0] - x[0] * x[1] - 0.4 * x[0] * u, -x[1] + x[0] * x[1] - 0.2 * x[1] * u,
                (x[0] - 1) ** 2 + (x[1] - 1) ** 2]  # fmt: skip

    lake = System("lake", line("prey predators cost"), field, inputs=[Input("fishing", "", 0, 1)])
    return Statement(PhasedProblem(Phase(lake, 120, 12.0, costs=[last(2)])), [0.5, 0.7, 0])


@task("Jensen (1964), tank of seven species; IPOPT, 240 steps: 21.8236", 21.8236, sign=-1.0,
      note="Luus (2000): 21.757 with inputs of eleven stages")  # fmt: skip
def tank_of_jensen():
    """The greatest profit of a tank of seven species with four inputs in 0.2 h."""

    def field(t, x, u, p):
        q = u[0] + u[1] + u[3]
        sold = 5.8 * x[0] + 23 * x[3] + 11 * x[4] + 28 * x[5] + 35 * x[6]
        profit = q * sold - 5.8 * u[3] - 3.7 * u[0] - 4.1 * u[1] - 5 * u[2] ** 2 - 0.099
        return [
            u[3] - q * x[0] - 17.6 * x[0] * x[1] - 23 * x[0] * x[5] * u[2],
            u[0] - q * x[1] - 17.6 * x[0] * x[1] - 146 * x[1] * x[2],
            u[1] - q * x[2] - 73 * x[1] * x[2],
            -q * x[3] + 35.2 * x[0] * x[1] - 51.3 * x[3] * x[4],
            -q * x[4] + 219 * x[1] * x[2] - 51.3 * x[3] * x[4],
            -q * x[5] + 102.6 * x[3] * x[4] - 23 * x[0] * x[5] * u[2],
            -q * x[6] + 46 * x[0] * x[5] * u[2],
            profit,
        ]

    inputs = [
        Input("u1", "", 0, 20),
        Input("u2", "", 0, 6),
        Input("u3", "", 0, 4),
        Input("u4", "", 0, 20),
    ]
    tank = System("tank", line("x1 x2 x3 x4 x5 x6 x7 profit"), field, inputs=inputs)
    start = [0.1883, 0.2507, 0.0467, 0.0899, 0.1804, 0.1394, 0.1046, 0]
    return Statement(PhasedProblem(Phase(tank, 60, 0.2, costs=[last(7, -1.0)])), start)


@task("Lee and Ramirez (1994); Balsa-Canto et al. (2000): 0.8164", 0.8164, sign=-1.0)
def recombinant_bacteria():
    """Glucose and inducer are fed over 10 h for most of a protein; the inducer is paid for."""

    def field(t, x, u, p):
        V, X, S, P, inducer, shock, recovery = ca.vertsplit(x)
        monod, D = S / (0.108 + S + S**2 / 14814.8), (u[0] + u[1]) / V
        mu = 0.407 * monod * (shock + 0.22 * recovery / (0.22 + inducer))
        made = 0.095 * monod * (0.0005 + inducer) / (0.022 + inducer)
        k = 0.09 * inducer / (0.034 + inducer)
        return [u[0] + u[1], (mu - D) * X, 100 * u[0] / V - D * S - mu * X / 0.51,
                made * X - D * P, 4 * u[1] / V - D * inducer, -k * shock,
                k * (1 - recovery)]  # fmt: skip

    inputs = [Input(name, "l/h", 0, 1) for name in ("glucose", "inducer")]
    states = line("V X S P inducer shock recovery")
    bacteria = System("bacteria", states, field, inputs=inputs)
    earned = Cost(lambda t, x, u, p: -x[0] * x[3], None, 1.0)
    paid = Cost(lambda t, x, u, p: 5 * u[1])
    phase = Phase(bacteria, 100, 10.0, costs=[earned, paid])
    return Statement(PhasedProblem(phase), [1, 0.1, 40, 0, 0, 1, 0])


@task("COPS 3.0, isomerization of α-pinene: 19.8721", 19.8721)
def pinene():
    """Five rates, in 1e-5 per minute, from shares of five substances at eight times."""
    times = np.array([1230.0, 3060.0, 4920.0, 7800.0, 10680.0, 15030.0, 22620.0, 36420.0])
    shares = [
        [88.35, 7.3, 2.3, 0.4, 1.75], [76.4, 15.6, 4.5, 0.7, 2.8], [65.1, 23.1, 5.3, 1.1, 5.8],
        [50.4, 32.9, 6.0, 1.5, 9.3], [37.5, 42.7, 6.0, 1.9, 12.0], [25.9, 49.1, 5.9, 2.2, 17.0],
        [14.0, 57.4, 5.1, 2.6, 21.0], [4.5, 63.1, 3.8, 2.9, 25.7],
    ]  # fmt: skip

    def field(t, x, u, p):
        a, b, c, d, e = ca.vertsplit(1e-5 * p)
        rest = b * x[0] - (c + d) * x[2] + e * x[4]
        return [-(a + b) * x[0] + 0 * u[0], a * x[0], rest, c * x[2], d * x[2] - e * x[4]]

    rates = [Parameter(name, "", 1.0) for name in "abcde"]
    reaction = System("pinene", line("y1 y2 y3 y4 y5"), field, inputs=["none"], parameters=rates)
    reaction = reaction.augment(constant=[*"abcde"])
    measured = [
        Residual(lambda t, x, u, p, y=y: x[:5] - ca.DM(y), 2.0, at=range(5 * k + 5, 5 * k + 6))
        for k, y in enumerate(shares)
    ]
    lengths = np.repeat(np.diff(times, prepend=0.0), 5)
    phase = Phase(
        reaction, 40, times[-1], lengths=lengths, residuals=measured, R=1e-9,
        bounds=[Bound("constant", lower=0.0)],
    )  # fmt: skip
    return Statement(PhasedProblem(phase, free="constant"), [100, 0, 0, 0, 0, *np.ones(5)])
