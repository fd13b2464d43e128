"""Tables and figures of A. Kissel, J. Taves, D. Negrut: absolute coordinates with matrices."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from lgcontrol import models
from lgcontrol.groups import SO3
from lgcontrol.integrators import implicit_euler3
from lgcontrol.mechanics.constrained import Mechanism
from lgcontrol.mechanics.constrained.rotation_comparison import DirectAnalysis

from ._paper import Claim, Paper, Reproduction, in_space, sheet

ATTITUDES = {"rp": "rp", "rA": "rA", "re": "rε"}
# Marks within each other: curves of formulations that agree lie on each other.
MARKS: dict[str, dict[str, Any]] = {
    "rp": {"marker": "s", "ls": "--", "ms": 10, "mfc": "none"},
    "rA": {"marker": "o", "ls": "-", "ms": 6.5, "mfc": "white"},
    "re": {"marker": "^", "ls": ":", "ms": 3.5},
}

DRIVEN: dict[str, Callable[..., Mechanism]] = {
    "pendulum": models.pendulum_mechanism,
    "four_link": models.four_link_mechanism,
    "slider_crank": models.slider_crank_mechanism,
}
ALL: dict[str, Callable[..., Mechanism]] = DRIVEN | {
    "double_pendulum": models.double_pendulum_mechanism
}
SPEEDS = {"four_link": np.pi, "slider_crank": 2 * np.pi}  # of the drivers [rad/s]
DEAD = 0.1  # nearness of the driver's row to a dead point at which another one takes over
PERIODS = {"pendulum": 3.0, "four_link": 2.0, "slider_crank": 1.0}  # s

# What the tables print: counts; of code C1 iterations, and speeds of rA and rε next to rp.
TABLE_8 = {"pendulum": (2.21, 1.40), "four_link": (2.38, 1.23), "slider_crank": (2.70, 1.47)}
TABLE_7 = {
    "pendulum": {"CD": 3, "DP1": 3, "DP2": 0, "D": 0},
    "four_link": {"CD": 12, "DP1": 6, "DP2": 0, "D": 0},
    "slider_crank": {"CD": 6, "DP1": 7, "DP2": 4, "D": 1},
}
TABLE_9 = {
    "pendulum": {"rp": 3.82, "rA": 3.80, "re": 3.80},
    "four_link": {"rp": 4.47, "rA": 4.50, "re": 4.77},
    "slider_crank": {"rp": 4.83, "rA": 4.70, "re": 4.79},
}
TABLE_10 = {
    "pendulum": (2.43, 1.29),
    "double_pendulum": (2.63, 1.21),
    "four_link": (2.62, 1.21),
    "slider_crank": (2.93, 1.31),
}

CLOSE = 0.1  # iterations
SPEED = 0.15  # share of a speed-up
TRIALS, STEPS = 5, 60  # of a time
ORDER = (0.9, 1.1)
ALIKE = 0.1  # share of "no significant difference"
FALLS = 0.75  # ratio of errors for half the step: a method of order 1 has one half
CURVE = "a curve without numbers in the text"


def as_in_the_paper(name: str, attitude: str, **options: Any) -> Any:
    """Analysis with the driver of the paper, and another one where that is near a dead point.

    Options are those of `DirectAnalysis`.
    """
    mechanism = DRIVEN[name](drive="paper")
    if name in SPEEDS:
        rate, other = SPEEDS[name], DRIVEN[name]().joints["driver"]
        options["switched"] = (other, lambda t: abs(abs(np.sin(rate * t)) - 1) < DEAD)
    return DirectAnalysis(mechanism, attitude, **options)


def table_7() -> Reproduction:
    """Table 7: basic constraints of each mechanism, with those of its driver."""
    rows = []
    for name, printed in TABLE_7.items():
        mechanism = DRIVEN[name](drive="paper")
        kinds = [row.kind for joint in mechanism.joints.values() for row in joint.rows]
        for kind, paper in printed.items():
            what = f"{name.replace('_', ' ')}, {kind}"
            rows.append(Claim(what, f"{paper}", kinds.count(kind), paper, paper))
    return Reproduction(None, tuple(rows))


def table_8() -> Reproduction:
    """Table 8: speed of the kinematics next to Euler parameters (processor time)."""

    def run(name: str, attitude: str) -> Callable[[], Any]:
        made = as_in_the_paper(name, attitude, matrix="step", is_predicted=False)
        return lambda: made.kinematics(1e-3 * np.arange(STEPS), 1e-10)

    return _speeds(TABLE_8, run)


def table_9() -> Reproduction:
    """Table 9: mean number of iterations of the position analysis."""
    rows = []
    for name, printed in TABLE_9.items():
        t = 1e-3 * np.arange(round(PERIODS[name] / 1e-3) + 1)
        for attitude, paper in printed.items():
            made = as_in_the_paper(name, attitude, matrix="step", is_predicted=False)
            run = made.kinematics(t, 1e-10)
            here = float(run.iterations[1:].mean()) if len(run.iterations) == len(t) else np.nan
            what = f"{name.replace('_', ' ')}, {ATTITUDES[attitude]}"
            rows.append(Claim(what, f"{paper:.2f}", here, paper - CLOSE, paper + CLOSE))
    return Reproduction(None, tuple(rows))


def table_10() -> Reproduction:
    """Table 10: speed of the dynamics next to Euler parameters (processor time)."""

    def run(name: str, attitude: str) -> Callable[[], Any]:
        made = (
            as_in_the_paper(name, attitude, matrix="step")
            if name in DRIVEN
            else DirectAnalysis(ALL[name](), attitude, matrix="step")
        )
        return lambda: made.dynamics(1e-3, STEPS, 1e-3)

    return _speeds(TABLE_10, run)


def _speeds(
    table: dict[str, tuple[float, float]], run: Callable[[str, str], Callable[[], Any]]
) -> Reproduction:
    """Least processor times in turns, next to that of rp."""
    rows = []
    for name, printed in table.items():
        calls = {attitude: run(name, attitude) for attitude in ATTITUDES}
        least = dict.fromkeys(calls, np.inf)
        for _ in range(TRIALS):
            for attitude, call in calls.items():
                began = time.process_time()
                call()
                least[attitude] = min(least[attitude], time.process_time() - began)
        for attitude, paper in zip(("rA", "re"), printed, strict=True):
            here, what = least["rp"] / least[attitude], name.replace("_", " ")
            rows.append(
                Claim(f"{what}, {ATTITUDES[attitude]} is faster than rp", "direction", here, 1.0)
            )
            low, high = (1 - SPEED) * paper, (1 + SPEED) * paper
            rows.append(
                Claim(f"{what}, speed of {ATTITUDES[attitude]}", f"{paper:.2f}", here, low, high)
            )
    return Reproduction(None, tuple(rows))


# Section 4: degrees of freedom with the drivers, and the rate of the crank about its x axis.
MOBILITY = {"pendulum": 0, "four_link": 0, "slider_crank": 0, "double_pendulum": 2}
CRANK_RATE, ROUNDING = -2 * np.pi, 1e-9  # rad/s


def figure_1() -> Reproduction:
    """Figure 1: the slider-crank through a turn, and what section 4 says of the mechanisms."""
    mechanism, turn = DRIVEN["slider_crank"](), PERIODS["slider_crank"]
    run = mechanism.kinematics(np.linspace(0, turn, 13))
    poses = [mechanism.poses(q) for q in run.q]
    figure, (axis,) = sheet(1, projection="3d")

    def place(pose: np.ndarray, point: Any) -> np.ndarray:
        return pose[:3] + SO3.act(pose[3:], point)

    for k, pose in enumerate(poses[:-1]):
        ends = [
            place(pose["crank"], [0, 0, 0]),
            place(pose["crank"], [0, 0.08, 0]),
            place(pose["slider"], [0, 0, 0]),
        ]
        axis.plot(*np.transpose(ends), "o-", color="C0", alpha=0.2 if k else 1.0)
    axis.set(title="slider crank", xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    in_space(axis)
    rates = [mechanism.rates(q, v)["crank"][3] for q, v in zip(run.q, run.v, strict=True)]
    worst = max(rates, key=lambda rate: abs(rate - CRANK_RATE))
    rows = [
        Claim(
            f"{name.replace('_', ' ')}: degrees of freedom",
            f"{free}",
            ALL[name]().mobility().degrees_of_freedom,
            free,
            free,
        )
        for name, free in MOBILITY.items()
    ]
    near = (CRANK_RATE - ROUNDING, CRANK_RATE + ROUNDING)
    rows.append(Claim("rate of the crank about x, the farthest [rad/s]", "−2π", worst, *near))
    return Reproduction(figure, tuple(rows))


def no_minor_steps(axis: Any) -> None:
    """Ticks at the steps alone; those beside the curve stay."""
    axis.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)


@lru_cache
def _iterations() -> dict[str, dict[str, list[float]]]:
    """Mean iterations for the four-link over 3 s, by kind of analysis, attitude and step."""
    found: dict[str, dict[str, list[float]]] = {"kinematics": {}, "dynamics": {}}
    for attitude in ATTITUDES:
        for h in COARSE:
            t = h * np.arange(round(LONG / h) + 1)
            made = as_in_the_paper("four_link", attitude, matrix="step", is_predicted=False)
            runs = {"kinematics": made.kinematics(t, TIGHT)}
            made = as_in_the_paper("four_link", attitude, matrix="step")
            runs["dynamics"] = made.dynamics(h, len(t) - 1, TIGHT / h**2)
            for kind, run in runs.items():
                mean = float(run.iterations[1:].mean()) if run.is_success else np.nan
                found[kind].setdefault(attitude, []).append(mean)
    return found


COARSE, LONG, TIGHT = (4e-2, 2e-2, 1e-2, 5e-3), 3.0, 1e-11


def _drawn_iterations(kind: str, title: str) -> Reproduction:
    found = _iterations()[kind]
    figure, (axis,) = sheet(1)
    for attitude, means in found.items():
        axis.semilogx(COARSE, means, **MARKS[attitude], label=ATTITUDES[attitude])
    axis.set(title=title, xlabel="h [s]", ylabel="iterations of a step", ylim=(0, None))
    axis.set_xticks(COARSE, [f"{h:g}" for h in COARSE])
    no_minor_steps(axis)
    axis.legend()
    means = np.array(list(found.values()))
    spread = np.max(np.nanmax(means, axis=0) / np.nanmin(means, axis=0)) - 1
    fall = means[1, 0] / means[1, -1]
    return Reproduction(
        figure,
        (
            Claim("rA: coarsest over finest step", "depends on the step", fall, 1.2),
            Claim(
                "largest difference between formulations, share", "no significant difference",
                float(spread), 0.0, ALIKE,
            ),
            *(
                Claim(f"{ATTITUDES[key]} at h = {h:g} s", CURVE, value)
                for key, row in found.items()
                for h, value in zip(COARSE, row, strict=True)
            ),
        ),
    )  # fmt: skip


def figure_2() -> Reproduction:
    """Figure 2: iterations of the kinematics of the four-link against the step."""
    return _drawn_iterations("kinematics", "four link, kinematics, to 1e-11")


def figure_3() -> Reproduction:
    """Figure 3: the double pendulum next to an ODE's solution, over 5 s and against the step."""
    mechanism, seconds, hs = models.double_pendulum_mechanism(), 5.0, (4e-3, 2e-3, 1e-3, 5e-4)
    t = np.linspace(0, seconds, 101)

    def heights(h: float, attitude: str) -> np.ndarray:
        word = {"rA": "SO3xR3"}.get(attitude, attitude)
        own = mechanism.formulated(word)
        run = own.march(own.state(), h, round(seconds / h), implicit_euler3(iterations=5))
        nq = len(own.coordinates())
        states = run.x[np.round(t / h).astype(int)]
        found = np.array([own.poses(x[:nq])["rod2"][2] for x in states])
        return found if run.is_success else np.full(len(t), np.nan)

    exact = _height_by_angles(t)
    figure, (left, right) = sheet(2)
    means: dict[str, list[float]] = {}
    for attitude, label in ATTITUDES.items():
        for h in hs:
            off = np.abs(heights(h, attitude) - exact)
            means.setdefault(attitude, []).append(float(np.sqrt(np.mean(off**2))))
            if attitude == "rA":
                left.semilogy(t[1:], off[1:], linewidth=0.8, label=f"h = {h:g} s")
        right.loglog(hs, means[attitude], **MARKS[attitude], label=label)
    left.set(title="double pendulum, rA", xlabel="t [s]", ylabel="Δz of the second rod [m]")
    right.set(title="root mean square over 5 s", xlabel="h [s]", ylabel="Δz [m]")
    right.set_xticks(hs, [f"{h:g}" for h in hs])
    no_minor_steps(right)
    for axis in (left, right):
        axis.legend()
    rows = [
        Claim(
            f"{ATTITUDES[key]}: largest ratio of Δz (root mean square) for half the step",
            "tends to the reference",
            float(np.max(np.array(row[1:]) / row[:-1])),
            0.0,
            FALLS,
        )
        for key, row in means.items()
    ]
    last = [row[-1] for row in means.values()]
    apart = max(last) / min(last) - 1
    what = f"difference between formulations at {hs[-1]:g} s, share"
    rows.append(Claim(what, "nearly identical Δz", apart, 0.0, ALIKE))
    return Reproduction(figure, tuple(rows))


def _height_by_angles(t: np.ndarray) -> np.ndarray:
    """Height of the second rod [m] from the equations of its two angles, an ODE."""
    mechanism = models.double_pendulum_mechanism()
    first, second = (body.inertia for body in mechanism.bodies.values())
    m1, m2, g = first.mass, second.mass, -mechanism.gravity[2]
    J1, J2 = (float(np.asarray(own.inertia)[2, 2]) for own in (first, second))
    length, half = 4.0, 1.0  # m, of the first rod, and to the middle of the second
    lever = m1 * length / 2 + m2 * length
    M11, M22 = J1 + m1 * length**2 / 4 + m2 * length**2, J2 + m2 * half**2

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        a, b, va, vb = x
        coupled, turned = (m2 * length * half * of(a - b) for of in (np.cos, np.sin))
        force = [
            -turned * vb**2 - lever * g * np.cos(a),
            turned * va**2 - m2 * half * g * np.cos(b),
        ]
        return np.r_[va, vb, np.linalg.solve([[M11, coupled], [coupled, M22]], force)]

    start = [0.0, -np.pi / 2, 0.0, 0.0]
    a, b = scipy.integrate.solve_ivp(
        slope, (t[0], t[-1]), start, "DOP853", t, rtol=1e-12, atol=1e-12
    ).y[:2]
    return length * np.sin(a) + half * np.sin(b)


def figure_4() -> Reproduction:
    """Figure 4: iterations of the dynamics of the four-link against the step."""
    return _drawn_iterations("dynamics", "four link, dynamics, Θ h² = 1e-11")


def figure_5() -> Reproduction:
    """Figure 5: order of rA for the pendulum, z of its centre after 3 s."""
    return _orders("pendulum", "rod", 2, ("rA",))


def figure_6() -> Reproduction:
    """Figure 6: orders of the slider-crank, x of the slider after 3 s."""
    return _orders("slider_crank", "slider", 0, tuple(ATTITUDES))


def figure_7() -> Reproduction:
    """Figure 7: orders of the four-link, z of the third link after 3 s."""
    return _orders("four_link", "rocker", 2, tuple(ATTITUDES))


def _orders(name: str, body: str, axis: int, attitudes: tuple[str, ...]) -> Reproduction:
    """Errors of velocity and acceleration after 3 s against the step, from the kinematics."""
    mechanism, hs = DRIVEN[name](), (8e-3, 4e-3, 2e-3)
    place = list(mechanism.bodies).index(body)
    figure, axes = sheet(2)
    rows = []
    for attitude in attitudes:
        direct = DirectAnalysis(mechanism, attitude)
        exact = direct.kinematics(np.linspace(0, LONG, 301), 1e-12)
        errors: dict[str, list[float]] = {"position": [], "velocity": [], "acceleration": []}
        for h in hs:
            run = direct.dynamics(h, round(LONG / h), TIGHT / h**2)
            for key, ours, wanted in (
                ("position", run.r, exact.r),
                ("velocity", run.rdot, exact.rdot),
                ("acceleration", run.rddot, exact.rddot),
            ):
                ended = run.is_success and exact.is_success
                off = abs(ours[-1, place, axis] - wanted[-1, place, axis]) if ended else np.nan
                errors[key].append(float(off))
        label = ATTITUDES[attitude]
        rows.append(
            Claim(f"{label}: error of the position [m]", "none", max(errors["position"]), 0, 1e-9)
        )
        for kind, where in zip(("velocity", "acceleration"), axes, strict=True):
            slope = float(np.polyfit(np.log(hs), np.log(errors[kind]), 1)[0])
            said = f"order {slope:.2f}" if np.isfinite(slope) else "singular on the way"
            where.loglog(hs, errors[kind], **MARKS[attitude], label=f"{label} ({said})")
            ended = "" if np.isfinite(slope) else " (the run ends at a singular attitude)"
            rows.append(Claim(f"{label}: order of the {kind}{ended}", "1", slope, *ORDER))
    for kind, unit, where in zip(("velocity", "acceleration"), ("m/s", "m/s²"), axes, strict=True):
        coordinate = "xyz"[axis]
        title = f"{name.replace('_', ' ')}: {coordinate} of the {body}, {kind}"
        where.set(title=title, xlabel="h [s]", ylabel=f"error [{unit}]")
        where.set_xticks(hs, [f"{h:g}" for h in hs])
        no_minor_steps(where)
        where.legend()
    return Reproduction(figure, tuple(rows))


PAPER = Paper(
    "A. Kissel, J. Taves, D. Negrut: Constrained multibody kinematics and dynamics in absolute "
    "coordinates: a discussion of three approaches to representing rigid body rotation",
    {
        "1": figure_1,
        "2": figure_2,
        "3": figure_3,
        "4": figure_4,
        "5": figure_5,
        "6": figure_6,
        "7": figure_7,
        "table-7": table_7,
        "table-8": table_8,
        "table-9": table_9,
        "table-10": table_10,
    },
)
