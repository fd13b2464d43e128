# %% [markdown]
# # Ten minutes: from a model to a controller that keeps its limits
#
# A small ship has to go to its berth. How far do you get with a linear controller, and what does predictive control add? This tutorial
# takes a ready model, trims and linearizes it, and runs LQR. LQR sails through a jetty. Then MPC keeps clear of it.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.models import surface_vessel
from lgcontrol.optimal import Capsule, keep_out
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

# %% [markdown]
# ## 1. A model
#
# A model is a `System`. Its state is an element of a Lie group: here the pose in the plane, on SE(2), and the body-fixed velocity.
# An angle is stored by its cosine and sine, so it never wraps. The first three inputs are controls with limits. The others are disturbances.

# %%
vessel = surface_vessel()
vessel

# %% [markdown]
# ## 2. Equilibrium, linear model, LQR
#
# The berth is the origin. The ship starts 5 m away and looks backwards. Weights go by the names of the blocks.

# %%
berth = vessel.trim(position=[0, 0])
linear = vessel.linearize(berth)
print(linear)
print(linear.controllability())

Q = {"pose": [4, 4, 4], "twist": [1, 1, 1]}  # x, y, heading; velocities
lqr = lg.LQR(vessel, berth, Q=Q, R=0.05, dt=0.1)
start = vessel.state.join(pose=lg.SE2.from_angle(2.0, [3.0, -4.0]), twist=np.zeros(3))
blind = lg.simulate(vessel, lqr, x0=start, reference=berth, seconds=40)
print(blind)

# %% [markdown]
# The ship arrives. `commands at or beyond the bounds` says that LQR asks for more force than the drives have.
#
# ## 3. What fails: a jetty in the way
#
# A jetty lies between the start and the berth. It is a capsule: a segment with a radius. The ship is a capsule, too, 1.2 m long. LQR
# knows nothing of either.

# %%
jetty = Capsule([0.9, -3.6], [0.9, -1.6], 0.15)
LENGTH, RADIUS = 1.2, 0.2  # m


def hull(t, x, u, p):
    """Both ends of the ship's axis, as columns."""
    along = x[2:4] * (LENGTH / 2 - RADIUS)
    return ca.horzcat(x[:2] - along, x[:2] + along)


def clearance(run):
    """Distance of the ship's hull to the jetty at each time [m]."""
    along = run.x[:, 2:4] * (LENGTH / 2 - RADIUS)
    ship = run.x[:, None, :2] + np.linspace(-1, 1, 21)[:, None] * along[:, None]
    nearest = np.clip(ship, [0.9, -3.6], [0.9, -1.6])  # of the jetty's axis
    return np.linalg.norm(ship - nearest, axis=2).min(axis=1) - RADIUS - 0.15


print(f"LQR: smallest clearance {clearance(blind).min():.2f} m")

# %% [markdown]
# ## 4. The cure: MPC with a bound
#
# MPC plans 25 steps of 0.4 s ahead with the nonlinear model. Drive limits come from the model. `keep_out` makes the jetty a bound,
# with a margin of 0.1 m.

# %%
mpc = lg.MPC(
    vessel,
    horizon=25,
    dt=0.4,
    Q=Q,
    R=0.05,
    bounds=[keep_out(hull, jetty, radius=RADIUS + 0.1, soft=1000, name="jetty")],
)
seeing = lg.simulate(vessel, mpc, x0=start, reference=berth, seconds=40)
print(f"MPC: smallest clearance {clearance(seeing).min():.2f} m")
print(f"distance to the berth at the end {np.linalg.norm(seeing.x[-1, :2]):.3f} m")
print(seeing)

# %% [markdown]
# ## 5. A picture

# %%
outline = ([[-LENGTH / 2 + RADIUS, 0], [LENGTH / 2 - RADIUS, 0]], RADIUS)
figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
angle = np.linspace(0, 2 * np.pi, 60)
for ax, (name, run) in zip(axes, {"LQR": blind, "MPC": seeing}.items(), strict=True):
    ax.plot([0.9, 0.9], [-3.6, -1.6], color="0.35", lw=14, solid_capstyle="round")
    ax.plot(*run.x[:, :2].T, color="C0", lw=1)
    for k in np.searchsorted(run.t, [0, 2, 4, 6, 8, 10, 13, 18, 39]):
        (x, y), (c, s) = run.x[k, :2], run.x[k, 2:4]
        shape = np.array([[0.6, 0], [0.3, 0.18], [-0.6, 0.18], [-0.6, -0.18], [0.3, -0.18]])
        ax.fill(*([x, y] + shape @ [[c, s], [-s, c]]).T, color="C1", alpha=0.45, ec="C1", lw=1)
    ax.plot(0, 0, "k+", ms=12)
    ax.set(title=f"{name}: {clearance(run).min():+.2f} m from the jetty", xlabel="x [m]")
    ax.set_aspect("equal")
axes[0].set_ylabel("y [m]")
plt.show()

# %% [markdown]
# `run.plot()` shows the states, the inputs with their limits, and the times of the calls.

# %%
seeing.plot()

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell. `check` prints whether the answer is right, or a hint.
#
# 1. Trim the ship for a steady turn: forward speed 0.3 m/s, turn rate 0.1 rad/s. Give the point that `trim` returns.

# %%
answer = ...
check(
    1,
    answer,
    lambda point: (
        np.allclose(point.x[[4, 6]], [0.3, 0.1])
        and np.abs(vessel.f(0.0, point.x, point.u)[3:]).max() < 1e-6
    ),
    "Use where={'twist.vx': …, 'twist.wz': …} and moving='pose'.",
)

# %% [markdown]
# 2. Design an LQR whose slowest pole at the berth is faster than −0.5 1/s, with `R=0.05`. Give the weights Q as a dictionary.

# %%
answer = ...
check(
    2,
    answer,
    lambda Q: (
        np.abs(
            np.linalg.eigvals(
                linear.A - linear.B[:, :3] @ lg.LQR(vessel, berth, Q=Q, R=0.05, dt=0.01).regulator.K
            )
        ).min()
        > 0.5
    ),
    "Larger weights of the pose make the loop faster.",
)

# %% [markdown]
# 3. A constant wind of 0.3 N pushes along world y, a `Pulse` on the input "force.y". MPC then stops beside the berth. Give an MPC that
# arrives within 2 cm.

# %%
wind = lg.Pulse({"force.y": 0.3}, start=0.0)


def miss(law):
    run = lg.simulate(vessel, law, x0=start, reference=berth, seconds=40, disturbances=[wind])
    return np.linalg.norm(run.x[-1, :2])


# %%
answer = ...
check(
    3, answer, lambda law: miss(law) < 0.02, "Tell MPC which input is unknown: disturbance='force'."
)
