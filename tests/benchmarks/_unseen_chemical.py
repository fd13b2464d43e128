"""Tasks of process and energy engineering as a new user states them, at default options."""

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, Cost, OptimalControlProblem, Phase, PhasedProblem, Residual
from lgcontrol.systems import Input, Parameter, System
from tests.optimal.literature._task import Statement, last, line

from ._unseen_task import unseen


@unseen("chemical")
def yeast() -> Statement:
    """Fed batch of baker's yeast, 20 h: most cells, ethanol below 1 g/l, oxygen limited."""

    def rates(x: Any) -> tuple[Any, Any, Any]:
        uptake = 1.8 * x[1] / (0.05 + x[1])
        room = 0.6 - uptake  # the respiratory capacity that is left, 1/h
        over = 0.5 * (ca.sqrt(room**2 + 1e-3) - room)  # sugar that overflows to ethanol
        return uptake - over, over, uptake

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        burnt, over, uptake = rates(x)
        eaten = 0.1 * x[2] / (0.1 + x[2]) / (1 + uptake / 0.3)  # ethanol as food
        thin = u[0] / x[3]
        return ca.vertcat(
            (0.5 * burnt + 0.05 * over + 0.6 * eaten - thin) * x[0],
            -uptake * x[0] + thin * (300.0 - x[1]),
            (0.48 * over - eaten) * x[0] - thin * x[2],
            u[0],
        )

    def oxygen(t: Any, x: Any, u: Any, p: Any) -> Any:
        return 0.4 * rates(x)[0] * x[0]

    tank = System(
        "yeast", line("cells sugar ethanol volume"), field,
        inputs=[Input("feed", "l/h", 0.0, 0.6)],
    )  # fmt: skip
    bounds = [
        Bound("ethanol", upper=1.0),
        Bound("volume", upper=8.0),
        Bound(oxygen, upper=7.0, name="oxygen, g/l/h"),
    ]
    most = Cost(lambda t, x, u, p: -x[0] * x[3], None, 1.0, name="cells")
    return Statement(
        PhasedProblem(Phase(tank, 80, 20.0, costs=[most], bounds=bounds)), [1.0, 0.5, 0.1, 4.0]
    )


@unseen("chemical")
def grade_change() -> Statement:
    """A cooled reactor with side products goes to another grade in 30 min; mol/m³, K, W, s."""

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        a, b, T, jacket = ca.vertsplit(x)
        k1 = 1.287e12 / 3600 * ca.exp(-9758.3 / T)
        k3 = 9.043e6 / 3.6e6 * ca.exp(-8560.0 / T)
        heat = 4200.0 * k1 * a - 11000.0 * k1 * b - 41850.0 * k3 * a**2
        return ca.vertcat(
            u[0] * (5100.0 - a) - k1 * a - k3 * a**2,
            -u[0] * b + k1 * a - k1 * b,
            -heat / 2.812e6 + u[0] * (378.05 - T) + 240.8 / 28120.0 * (jacket - T),
            (u[1] + 240.8 * (T - jacket)) / 1e4,
        )

    inputs = [
        Input("dilution", "1/s", 3 / 3600, 35 / 3600, nominal=14.19 / 3600),
        Input("heat", "W", -2500.0, 0.0, nominal=-309.0),
    ]
    reactor = System("reactor", line("a b T jacket"), field, inputs=inputs)
    problem = OptimalControlProblem(
        reactor, 60, 30.0, Q=0, terminal=0.0, R={"dilution": 100.0, "heat": 1e-8},
        residuals=[Residual(lambda t, x, u, p: x[1] - 950.0, 1e-4, 0.1, name="grade")],
        bounds=[Bound("T", 373.15, 388.15), Bound("b", 0.0), Bound("a", 0.0)],
    )  # fmt: skip
    return Statement(problem, [2140.4, 1090.3, 387.34, 386.06])


def cell() -> System:
    """A cell of 2.5 A h; its overpotential follows Butler and Volmer at once."""

    def open_circuit(charge: Any) -> Any:
        return 3.35 + 0.75 * charge - 0.35 * ca.exp(-18 * charge)

    def field(t: Any, x: Any, z: Any, u: Any, p: Any) -> Any:
        charge, T, drop = ca.vertsplit(x)
        heat = 0.015 * u**2 + drop**2 / 0.01 + u * z
        return ca.vertcat(u / 9000.0, (heat - 0.08 * (T - 298.15)) / 45.0, (0.01 * u - drop) / 30.0)

    def kinetics(t: Any, x: Any, z: Any, u: Any, p: Any) -> Any:
        exchange = 2.0 * ca.exp(3600 * (1 / 298.15 - 1 / x[1]))
        return u - 2 * exchange * ca.sinh(96485.0 * z / (2 * 8.314 * x[1]))

    return System.from_dae(
        "cell", line("charge temperature drop"), field, kinetics,
        [Parameter("overpotential", "V", 0.03)], inputs=[Input("current", "A", 0.0, 10.0)],
        home=[0.1, 298.15, 0.0],
        quantities={
            "voltage": lambda t, x, z, u, p: open_circuit(x[0]) + 0.015 * u + x[2] + z
        },
    )  # fmt: skip


def charging(longest: float) -> Statement:
    """From 10 to 80 % in the least time, at most 4.2 V and 45 °C."""
    bounds = [
        Bound("voltage", upper=4.2),
        Bound("temperature", upper=318.15),
        Bound("charge", 0.8, 0.8, at="terminal"),
    ]
    phase = Phase(cell(), 60, (300.0, longest), bounds=bounds)
    return Statement(PhasedProblem(phase, time_weight=1.0), [0.1, 298.15, 0.0])


@unseen("chemical")
def fast_charge() -> Statement:
    """In at most two hours."""
    return charging(7200.0)


@unseen("chemical", impossible="1.75 A h at 10 A take 630 s, and 600 s are allowed")
def charge_too_fast() -> Statement:
    """In at most ten minutes."""
    return charging(600.0)


@unseen("chemical")
def house() -> Statement:
    """A day with a heat pump, a tank and a tariff: least cost, comfort in the day; J/K, W, s."""

    def day(t: Any, start: float, end: float) -> Any:
        return 0.5 * (ca.tanh((t / 3600 - start) / 0.5) - ca.tanh((t / 3600 - end) / 0.5))

    def outside(t: Any) -> Any:
        return 273.15 + 2.0 - 6.0 * ca.cos(2 * np.pi * (t / 86400 - 0.12))

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        air, wall, tank = ca.vertsplit(x)
        performance = 0.4 * tank / (tank - outside(t) + 6.0)
        floor = 400.0 * u[1] * (tank - air)
        sun = 1500.0 * day(t, 9.0, 16.0)
        return ca.vertcat(
            (floor + sun + 700.0 * (wall - air) - 120.0 * (air - outside(t))) / 3e6,
            (700.0 * (air - wall) - 60.0 * (wall - outside(t))) / 6e7,
            (performance * u[0] - floor - 3.0 * (tank - 288.15)) / 2.1e6,
        )

    def price(t: Any) -> Any:  # per kWh
        return 0.22 + 0.15 * day(t, 6.0, 9.0) + 0.2 * day(t, 17.0, 21.0)

    inputs = [Input("power", "W", 0.0, 3000.0), Input("valve", "", 0.0, 1.0)]
    building = System("house", line("air wall tank"), field, inputs=inputs)
    problem = OptimalControlProblem(
        building, 96, 900.0, Q=0, terminal=0.0, R={"power": 1e-6 / 1500**2, "valve": 4e-6},
        costs=[Cost(lambda t, x, u, p: price(t) * u[0] / 3.6e6, name="bill")],
        bounds=[
            Bound(lambda t, x, u, p: x[0] - 290.15 - 3.0 * day(t, 6.0, 22.0), 0.0, name="warm"),
            Bound("air", upper=298.15),
            Bound("tank", 298.15, 328.15),
            Bound("tank", lower=308.15, at="terminal"),
        ],
    )  # fmt: skip
    return Statement(problem, [293.15, 292.15, 313.15])


@unseen("chemical")
def exchanger() -> Statement:
    """Counter-current, eight cells of hot, wall and cold; the cold outlet rises to 330 K."""
    cells, water = 8, 4180.0

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        hot, wall, cold = x[:cells], x[cells : 2 * cells], x[2 * cells :]
        before, after = ca.vertcat(363.15, hot[:-1]), ca.vertcat(cold[1:], 293.15)
        return ca.vertcat(
            (u[0] * water * (before - hot) - 900.0 * (hot - wall)) / (2.0 * water),
            900.0 * (hot - 2 * wall + cold) / 2500.0,
            (u[1] * water * (after - cold) - 900.0 * (cold - wall)) / (2.0 * water),
        )

    names = tuple(f"{kind}{k}" for kind in ("hot", "wall", "cold") for k in range(cells))
    inputs = [
        Input("hot flow", "kg/s", 0.1, 2.0, nominal=0.6),
        Input("cold flow", "kg/s", 0.3, 2.0, nominal=1.0),
    ]
    plant = System("exchanger", Rn(3 * cells, names), field, inputs=inputs)
    steady = plant.rollout(np.full(3 * cells, 320.0), [0.6, 1.0], dt=0.2, steps=3000).x[-1]
    problem = OptimalControlProblem(
        plant, 60, 2.0, Q=0, terminal=0.0, R=0.1,
        residuals=[Residual(lambda t, x, u, p: x[16] - 330.0, 1.0, 10.0, name="outlet")],
        bounds=[Bound("wall0", upper=348.15), Bound("hot7", lower=300.0)],
    )  # fmt: skip
    return Statement(problem, steady)


@unseen("chemical")
def distillation() -> Statement:
    """A batch of 10 kmol over six trays, 2 h: most distillate of 95 % by the reflux."""
    trays, boiling, holdup = 6, 1.5, 60.0  # mol/s, mol

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        pot, mole = x[0], x[1 : trays + 3]  # of pot, trays, condenser
        vapour = 2.5 * mole / (1 + 1.5 * mole)
        back = u[0] * boiling
        below, above = vapour[:-2], mole[2:]
        tray = (boiling * (below - vapour[1:-1]) + back * (above - mole[1:-1])) / holdup
        drawn = boiling - back
        return ca.vertcat(
            -drawn,
            (back * (mole[1] - mole[0]) - boiling * (vapour[0] - mole[0])) / pot,
            tray,
            boiling * (vapour[-2] - mole[-1]) / (2 * holdup),
            drawn,
            drawn * mole[-1],
        )

    names = ("pot", "x_pot", *(f"x{k}" for k in range(trays)), "x_top", "drawn", "light")
    inputs = [Input("reflux", "", 0.3, 1.0, nominal=0.8)]
    column = System("column", Rn(trays + 5, names), field, inputs=inputs)
    problem = OptimalControlProblem(
        column, 90, 80.0, Q=0, terminal=0.0, R=1e-6, costs=[last(trays + 3, -1.0)],
        bounds=[
            Bound("pot", lower=500.0),
            Bound(lambda t, x, u, p: x[-1] - 0.95 * x[-2], 0.0, at="terminal", name="purity"),
        ],
    )  # fmt: skip
    return Statement(problem, [1e4, 0.5, *[0.5] * trays, 0.5, 0.0, 0.0])
