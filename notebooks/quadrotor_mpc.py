# %% [markdown]
# # A quadrotor recovers: from the model to MPC to plots
#
# A quadrotor is released upside down, has to get to a hover two metres away, and is pushed on the way.
# Its pose lives on SE(3), so no part of this notebook treats an attitude as special: 170° is an error like
# any other.

# %%
import numpy as np

import lgcontrol as lg
from lgcontrol.controllers import MPC, ThrustVectorPD
from lgcontrol.models import quadrotor
from lgcontrol.plotting import plot_path

# %% [markdown]
# ## The model
#
# Models are functions that return a `System`; their keyword arguments are its variants
# (`quadrotor?` lists them). The state is a pose on SE(3) and its body-fixed twist. The first four inputs are
# the rotors, with bounds; the others are disturbances, which controllers do not see.

# %%
quad = quadrotor()
print(quad.state)
for entry in quad.inputs:
    print(f"{entry.name:10s} {entry.role:12s} [{entry.lower:g}, {entry.upper:g}] {entry.unit}")

# %% [markdown]
# A hover is an equilibrium: `trim` finds the thrusts.

# %%
hover = quad.trim(position=[2, 1, 1])
print(hover.kind, hover.u[:4].round(4), "N, a quarter of the weight each")

# %% [markdown]
# ## The controller
#
# Weights go by the names of blocks. A pose has six tangent coordinates, position first; errors are
# `minus(x, x_ref)`, in metres and radians. The bounds of the rotors are taken from the model.

# %%
mpc = MPC(
    quad,
    horizon=40,
    dt=0.05,
    Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
    R=0.1,
    terminal={"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
)

# %% [markdown]
# ## The closed loop
#
# The start is tilted by 170° about an axis between x and y. Gusts of force and torque change every 50 ms.
# At 1.5 s a push changes the velocity by 1.4 m/s and the rates by 3.7 rad/s.
#
# Before the run `simulate` lets the controller get ready: its functions are compiled. That takes seconds the first time; the code is
# kept on disk, also for other weights and horizons. Then it plans once from the start, so that every call in the loop is quick. `mpc.prepare(t, x, reference)` does the same for a loop
# of your own.

# %%
tilt = np.radians(170) * np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
x0 = quad.state.join(pose=lg.SE3.from_rotation_vector(tilt), twist=np.zeros(6))
gusts = lg.HeldNoise(
    {f"force.{axis}": 0.5 for axis in "xyz"} | {f"torque.r{axis}": 0.01 for axis in "xyz"}, dt=0.05
)
push = lg.Kick(1.5, {"twist": [1, 0, -1, 3, -2, 1]})

run = lg.simulate(quad, mpc, x0=x0, reference=hover, seconds=4, disturbances=[gusts, push], seed=1)
print("\n".join(run.summary()))

# %%
run.plot()

# %% [markdown]
# The rotors are at their bounds while it turns: first the thrust is used to flip, meanwhile it falls; then
# it climbs. In space, with the body axes x, y, z in red, green, blue:

# %%
plot_path(run, frames=16)

# %% [markdown]
# ## What the controller intends
#
# `plan` is the trajectory that the last call found. Called by hand at the start, the controller shows the
# whole recovery before it happens; its states are group coordinates, like those of the run.

# %%
mpc.reset()
u = mpc(0.0, x0, reference=hover)
plan = mpc.plan
up = lg.SO3.act(plan.x[:, 3:7], [0.0, 0.0, 1.0])[:, 2]  # cosine of the tilt along the plan
print(
    f"thrusts now {u.round(2)} N, cost {mpc.info.cost:.2f}, upright after",
    plan.t[up > 0.95][0],
    "s",
)

# %% [markdown]
# ## Against feedback without prediction
#
# `ThrustVectorPD` points the thrust where the position error wants it. It recovers, too, and costs a fraction
# of the time; it knows nothing of the bounds ahead.

# %%
pd = ThrustVectorPD(quad, dt=0.01)
other = lg.simulate(quad, pd, x0=x0, reference=hover, seconds=4, disturbances=[gusts, push], seed=1)


def table(run):
    position = np.linalg.norm(run.block_error("pose")[:, :3], axis=1)
    late = run.t > 3.5
    return {
        "lowest height [m]": run.block("pose")[:, 2].min(),
        "within 0.3 m from [s]": run.t[np.flatnonzero(position > 0.3)[-1]],
        "mean error after 3.5 s [m]": position[late].mean(),
        "median call [ms]": 1e3 * np.median(run.control["call_time"]),
    }


mpc_row, pd_row = table(run), table(other)
print(f"{'':28s}{'MPC':>10s}{'ThrustVectorPD':>16s}")
for key in mpc_row:
    print(f"{key:28s}{mpc_row[key]:10.3f}{pd_row[key]:16.3f}")

# %% [markdown]
# ## Results leave
#
# `save` and `load` use `.npz` files without pickled objects; `to_control` returns a
# `control.TimeResponseData` in error coordinates.

# %%
import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    path = run.save(Path(folder) / "recovery.npz")
    again = lg.SimulationResult.load(path)
print(bool((again.x == run.x).all()), run.to_control().outputs.shape)

# %% [markdown]
# **Try:** Start it from `quad.state.random(seed=7)`. Halve `max_thrust` in `quadrotor(...)`. Give the model of the controller another mass than the plant (`MPC(quadrotor(mass=0.9), ...)`). Shorten the horizon until it fails.
