# %% [markdown]
# # Minimum time on a group
#
# The first two problems have known solutions: a mass on a line, and half a turn of a body on SO(3). Both start and end at rest. For the body a turn about the axis is *not* the fastest. The third problem is the fastest motion along a given path
# on SE(2). The last one has two phases: a head fetches a part and carries it away.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.groups import SE2, SO3, Product, Rn
from lgcontrol.optimal import Bound, Phase, PhasedProblem, retime
from lgcontrol.plotting import plot_path, style

plt.style.use(style())  # the look of lgcontrol's own figures

# %% [markdown]
# ## A mass on a line: 2 √(d / a)

# %%
cart = lg.System(
    "cart",
    Rn(2, ("x", "v")),
    lambda t, x, u, p: [x[1], u],
    inputs=[lg.Input("push", "m/s²", -1, 1)],
)
stop = [Bound("x", 1, 1, at="terminal"), Bound("v", 0, 0, at="terminal")]
line = PhasedProblem(Phase(cart, 20, (0.5, 5.0), bounds=stop), time_weight=1).solve([0, 0])
print(line.durations, "known: 2 s")

# %% [markdown]
# ## Half a turn of a body
#
# Each torque is within ±1, the inertia is one about all axes. About the axis it takes √(4π) = 3.545 s. Bilimoria and Wie
# (1993) found 3.243 s: the axis nods on the way, so that two further torques help. The search begins with such a nod; where
# it begins decides which of the optima it finds.

# %%
torques = [lg.Input(f"m{axis}", "N m", -1, 1) for axis in "xyz"]
body = lg.System(
    "body", Product(q=SO3, w=Rn(3)), lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=torques
)
goal = SO3.exp([0, 0, np.pi])
ends = [
    Bound(lambda t, x, u, p: SO3.minus(x[:4], ca.DM(goal)), 0, 0, at="terminal", name="goal"),
    Bound("w", 0, 0, at="terminal"),
]
turn = PhasedProblem(Phase(body, 24, (2.0, 5.0), bounds=ends), time_weight=1)
s = np.linspace(0, 1, 25)
share = np.where(s < 0.5, 2 * s**2, 1 - 2 * (1 - s) ** 2)
nod = SO3.exp(np.c_[0.5 * np.sin(np.pi * s), 0.3 * np.sin(2 * np.pi * s), 0 * s])
q = SO3.compose(nod, SO3.exp(np.c_[0 * s, 0 * s, np.pi * share]))
u = np.c_[0.5 * np.cos(np.pi * s), 0.5 * np.cos(np.pi * s), np.where(s < 0.5, 1, -1)][:-1]
guess = lg.Trajectory(body.state, s, np.c_[q, np.zeros((25, 3))], u)
plan = turn.solve(body.state.identity, durations=[3.4], guess=guess)
print(plan.durations, "known: 3.2431 s")

# %%
plot_path(plan.trajectory)

# %%
plt.step(plan.trajectory.t[:-1], plan.trajectory.u, where="post")
plt.xlabel("time [s]")
plt.ylabel("torque [N m]")
plt.legend([entry.name for entry in torques], ncols=3, loc=(0.5, 1.01))
plt.show()

# %% [markdown]
# ## Along a given path
#
# If the path is given, only the speed along it is free, and `retime` solves a linear program. Here the path is a curve
# through three poses on SE(2). Velocities and accelerations of the body are bounded:

# %%
poses = [SE2.exp([0, 0, 0]), SE2.exp([2, 1, 0.9]), SE2.exp([3, 3, 2.2])]
curve = lg.Waypoints(
    SE2, [0, 1, 2], poses, order=5, stops=False, start=[[1, 0, 0]], end=[[1, 0, 0]]
)
fast = retime(curve, velocity={"x": 3.0, "y": 3.0, "rz": 2.0}, acceleration=4.0)
print(fast)

# %%
plt.plot(fast.t, fast.speed)
plt.xlabel("time [s]")
plt.ylabel("speed along the path [1/s]")
plt.show()

# %% [markdown]
# ## Phases: pick and place with the Schönflies head
#
# A head moves in all directions and turns about z only. It fetches a part: the empty head goes to the part, the loaded head carries it to its place.
# The masses differ, so the two phases have two models. One problem finds both durations. A plan with the loaded model for both phases is
# feasible, but it wastes time on the way to the part.

# %%
from lgcontrol.groups import Schoenflies
from lgcontrol.models import pick_and_place_head

limits = {"max_acceleration": 60.0, "max_torque": 2.0}
loaded = pick_and_place_head(payload=1.5, **limits)
force = loaded.inputs[0].upper  # N: what accelerates the loaded head by 60 m/s²
empty = pick_and_place_head(payload=0.05, max_acceleration=force / 1.05, max_torque=2.0)


def pose(place, turn):
    """Element of the Schönflies group."""
    return np.r_[place, np.cos(turn), np.sin(turn)]


home, part, box = pose([0, 0, -0.6], 0), pose([0.3, 0.1, -0.8], 1.0), pose([-0.3, 0.1, -0.75], -1.5)


def at(pose):
    """Bounds: at rest at a pose at the end of a phase."""

    def miss(t, x, u, p):
        return Schoenflies.minus(x[:5], ca.DM(pose))

    return [Bound(miss, 0, 0, at="terminal", name="place"), Bound("twist", 0, 0, at="terminal")]


def fetch(first):
    """Fastest way to the part with one model, and on to the box with the loaded one."""
    phases = [
        Phase(first, 16, (0.05, 1.0), R=1e-6, bounds=at(part), name="fetch"),
        Phase(loaded, 16, (0.05, 1.0), R=1e-6, bounds=at(box), name="carry"),
    ]
    return PhasedProblem(phases, time_weight=1.0).solve(np.r_[home, np.zeros(4)])


careless, both = fetch(loaded), fetch(empty)
for name, found in (("loaded model in both phases", careless), ("empty, then loaded", both)):
    print(
        f"{name:28} {found.status}, total {1e3 * sum(found.durations.values()):.0f} ms, {found.durations}"
    )

figure, axes = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5))
motion = both.trajectory
axes[0].plot(1e3 * motion.t, motion.x[:, :3], label=["x", "y", "z"])
axes[0].set(ylabel="place [m]")
axes[1].step(1e3 * motion.t[:-1], motion.u[:, :3], where="post")
axes[1].set(xlabel="time [ms]", ylabel="force [N]")
for ax in axes:
    ax.axvline(1e3 * both.durations["fetch"], color="0.4", ls=":")
axes[0].legend(ncols=3, fontsize=8)
axes[0].set_title("dotted: the head takes the part", fontsize=9)
figure.align_ylabels()
plt.show()

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. The mass shall go 4 m, with 1 m/s² at most, from rest to rest. Give the least time in s.

# %%
answer = ...
check(1, answer, lambda seconds: np.isclose(seconds, 4.0, rtol=0.01), "2 √(d / a).")

# %% [markdown]
# 2. Solve that problem: give the solution of a `PhasedProblem`.

# %%
answer = ...
check(
    2,
    answer,
    lambda found: (
        found.is_success
        and np.isclose(sum(found.durations.values()), 4.0, rtol=0.01)
        and np.isclose(found.trajectory.x[-1, 0], 4.0)
    ),
    "Change the terminal bound of x, and allow a duration above 4 s.",
)

# %% [markdown]
# 3. Give a profile along the curve on SE(2) with a speed of at most 1 m/s along x and y.

# %%
answer = ...
check(
    3,
    answer,
    lambda slow: (
        slow.t[-1] > fast.t[-1]
        and np.abs(slow.motion(np.linspace(0, slow.t[-1], 50)).velocity[:, :2]).max() < 1.02
    ),
    "retime(curve, velocity=…)",
)
