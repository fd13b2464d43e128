# %% [markdown]
# # Vehicle and arm together, underwater
#
# An underwater vehicle holds a tool with its arm. A wave pushes. Who should do the work, the thrusters or the arm? If the arm works
# alone, the vehicle drifts off with the tool. If the vehicle only holds its own pose, the tool swings. One law for the pose of the tool
# uses all twelve drives.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import OperationalSpace
from lgcontrol.models import underwater_vehicle_arm, underwater_vehicle_arm_tree
from lgcontrol.plotting import plot_path, style

plt.style.use(style())  # the look of lgcontrol's own figures

tree, diver = underwater_vehicle_arm_tree(), underwater_vehicle_arm()
print([entry.name for entry in diver.inputs])
ready = np.concatenate([lg.SE3.identity, [0, 0.7, 0.6, 0]])  # vehicle level, arm bent
posture = np.concatenate([ready, np.zeros(tree.nv)])
tool = tree.placement("tool")
goal = tool(ready)

# %% [markdown]
# ## The coupling
#
# Mass matrix and weight belong to both. An acceleration of the shoulder by 1 rad/s² pushes the vehicle back:

# %%
M = np.asarray(tree.mass_matrix(ready))
back = -np.linalg.solve(M[:6, :6], M[:6, 7])
print(
    "vehicle's acceleration, linear",
    back[:3].round(4),
    "m/s², angular",
    back[3:].round(3),
    "rad/s²",
)

# %% [markdown]
# ## What fails: one of the two alone
#
# LQR about the posture gives one gain for thrusters and joints. First we cut the rows of the thrusters: the arm alone. Then we use the whole
# gain: it holds the posture, which is not the same as holding the tool.

# %%
rest = diver.trim(posture)
print(rest.kind)
lqr = lg.LQR(diver, rest, Q={"configuration": 100, "velocity": 1}, R=0.02, dt=0.02)
K = lqr.regulator.K
arm_only = K.copy()
arm_only[4:] = 0  # the thrusters stay at their trim values


def feedback(gain):
    return lambda t, x, reference: rest.u[: len(gain)] - gain @ diver.error(x, rest.x)


space = OperationalSpace(
    tree,
    "tool",
    system=diver,
    frequency=8.0,
    posture=posture,
    posture_frequency=[1.0] * 6 + [0.5] * 4,
    dt=0.02,
    reference=goal,
)
wave = [lg.Pulse({"force.x": 6.0, "torque.rz": 0.5}, start=1.0, duration=2.0)]
runs = {
    "arm alone": lg.simulate(
        diver, feedback(arm_only), x0=rest.x, seconds=10, dt=0.02, disturbances=wave
    ),
    "posture, all drives": lg.simulate(
        diver, feedback(K), x0=rest.x, seconds=10, dt=0.02, disturbances=wave
    ),
    "tool, all drives": lg.simulate(diver, space, x0=rest.x, seconds=10, disturbances=wave),
}


def tool_error(run):
    """Position error of the tool at each time [mm]."""
    return 1e3 * np.linalg.norm(tool(run.x[:, : tree.nq])[:, :3] - goal[:3], axis=1)


def vehicle_error(run):
    """Displacement of the vehicle at each time [mm]."""
    return 1e3 * np.linalg.norm(run.x[:, :3], axis=1)


for name, run in runs.items():
    print(
        f"{name:20} tool at most {tool_error(run).max():6.1f} mm off, vehicle {vehicle_error(run).max():6.1f} mm"
    )

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharex=True)
for name, run in runs.items():
    axes[0].semilogy(run.t, tool_error(run) + 1e-3, label=name)
    axes[1].semilogy(run.t, vehicle_error(run) + 1e-3)
for ax, title in zip(axes, ("tool", "vehicle"), strict=True):
    ax.axvspan(1, 3, color="0.9", zorder=0)
    ax.set(xlabel="time [s]", ylabel="displacement [mm]", title=title)
axes[0].legend(fontsize=8)
figure.tight_layout()

# %% [markdown]
# The law for the tool lets the vehicle move and keeps the tool. The grey band is the time of the wave.
#
# ## A goal beyond the arm
#
# The same law brings the tool to a place that the arm cannot reach. The vehicle comes along, since its posture is only the second task.

# %%
far = lg.SE3.plus(goal, [0.6, 0.3, 0.0, 0.0, 0.0, 0.3])
toward = lg.Waypoints(lg.SE3, [0, 6], [goal, far], order=5)
law = OperationalSpace(
    tree,
    "tool",
    system=diver,
    frequency=4.0,
    posture=posture,
    posture_frequency=[0.1] * 6 + [0.5] * 4,
    dt=0.02,
    reference=toward,
)
reach = lg.simulate(diver, law, x0=rest.x, seconds=9)
end = reach.x[-1, : tree.nq]
print(
    "tool misses by",
    np.abs(lg.SE3.minus(tool(end), far)).max().round(4),
    "| vehicle moved",
    np.linalg.norm(end[:3]).round(2),
    "m",
)
plot_path(reach)

# %% [markdown]
# ## Exercises
#
# 1. Which joint, accelerated by 1 rad/s², turns the vehicle most? Give its name.

# %%
answer = ...
turns = np.linalg.norm(np.linalg.solve(M[:6, :6], M[:6, 6:])[3:], axis=0)
check(
    1,
    answer,
    lambda name: name == list(tree.joints)[1:][int(np.argmax(turns))],
    "Repeat the block on coupling for all columns.",
)

# %% [markdown]
# 2. Give a frequency for the law of the tool with which the wave moves the tool by less than 5 mm.


# %%
def largest(frequency):
    law = OperationalSpace(
        tree,
        "tool",
        system=diver,
        frequency=frequency,
        posture=posture,
        posture_frequency=[1.0] * 6 + [0.5] * 4,
        dt=0.02,
        reference=goal,
    )
    return tool_error(lg.simulate(diver, law, x0=rest.x, seconds=4, disturbances=wave)).max()


# %%
answer = ...
check(
    2,
    answer,
    lambda frequency: largest(frequency) < 5,
    "The error under a steady force falls with the square of the frequency.",
)

# %% [markdown]
# 3. Give the trim point in a current of 0.2 m/s along x: `diver.trim` with the inputs given.

# %%
answer = ...
check(
    3,
    answer,
    lambda point: (
        np.isclose(point.u[diver.input_names.index("current.x")], 0.2)
        and np.abs(diver.f(0.0, point.x, point.u)[10:]).max() < 1e-6
    ),
    "where= takes names of inputs, too: where={'current.x': 0.2}.",
)
