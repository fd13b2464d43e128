# %% [markdown]
# # Trim, linearize, LQR: and what the coordinates have to do with it
#
# A linear controller needs a linear model. On a group it is taken about the nominal motion, in error coordinates
# `X = X̄ exp(ε)`. This notebook linearizes at a hover and along a steady turn, and passes the result to
# [python-control](https://python-control.org).

# %%
import casadi as ca
import control
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import LQR
from lgcontrol.models import quadrotor
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

quad = quadrotor()

# %% [markdown]
# ## At a hover

# %%
hover = quad.trim(position=[0, 0, 1])
lin = quad.linearize(hover)
print(lin.kind, lin.A.shape, lin.B.shape)
print(lin.state_names)
print(lin.controllability())

# %% [markdown]
# Twelve states for six degrees of freedom, although the pose has seven coordinates. `to_control()` keeps the
# control inputs and gives a `control.StateSpace` with all names:

# %%
plant = lin.to_control()
K, S, E = control.lqr(plant, np.eye(12), np.eye(4))
print("slowest pole:", E.real.max().round(3), "1/s")

# %% [markdown]
# ### Why not linearize the stored coordinates?
#
# In stored coordinates the quaternion's norm is a thirteenth state. No input reaches it and it is not stable, so the
# Riccati equation has no stabilising solution: `control.lqr` fails, or returns a pole at zero and costs without
# meaning.

# %%
stored = quad.to_nlsys("group")
thirteen = control.linearize(stored, hover.x, hover.u[:4])
rank = np.linalg.matrix_rank(control.ctrb(thirteen.A, thirteen.B), tol=1e-6)
print(thirteen.nstates, "states, controllable:", rank)
try:
    _, costs, poles = control.lqr(thirteen, np.eye(13), np.eye(4))
    print(f"slowest pole {poles.real.max():.0e} 1/s, largest cost {np.abs(costs).max():.0e}")
except Exception as error:
    print(type(error).__name__, "-", error)


# %% [markdown]
# ### On the nonlinear plant, from a tilt of 120°
#
# The feedback is `u = u_ref − K minus(x, x_ref)`: any callable with that signature is a controller. The gain is
# linear, the error is not: `minus` measures the whole rotation.


# %%
def feedback(t, x, reference):
    return hover.u[:4] - K @ quad.state.minus(x, reference.x)


tilt = np.radians(120) * np.array([0.6, 0.8, 0.0])
x0 = quad.state.join(pose=lg.SE3.from_rotation_vector(tilt, position=[0, 0, 1]), twist=np.zeros(6))
run = lg.simulate(quad, feedback, x0=x0, reference=hover, seconds=8, dt=0.01)
print("\n".join(run.summary()))

# %%
run.plot()

# %% [markdown]
# `LQR` is a ready controller with the gain of the sampled system and weights by name. python-control's `dlqr` on the
# discretized linearization gives the same gain.

# %%
dt = 0.02
lqr = LQR(quad, hover, Q={"pose": 1, "twist": 1}, R=1, dt=dt)
sampled = quad.discretize(dt).linearize(hover.x, hover.u).to_control()
K_d, _, _ = control.dlqr(sampled, dt * np.eye(12), dt * np.eye(4))
print("largest difference of the gains:", np.abs(lqr.regulator.K - K_d).max())


# %% [markdown]
# ## Along a steady turn
#
# A relative equilibrium moves with a constant body-fixed rate: a turn, a climb, a helix. `trim` takes conditions as
# functions of the state. Here the quadrotor flies at 2 m/s along a circle of 2 m radius, so it turns at 1 rad/s. It starts at (0, −2, 1)
# and heads along x.


# %%
def turning(t, x, u, p):
    pose, twist = quad.state.split(x).values()
    return lg.SO3.matrix(pose[3:]) @ twist[3:] - ca.DM([0, 0, 1.0])  # rates in world axes


def speed(t, x, u, p):
    pose, twist = quad.state.split(x).values()
    return lg.SO3.matrix(pose[3:]) @ twist[:3] - ca.DM([2.0, 0, 0])  # velocity in world axes


guess = quad.state.join(pose=lg.SE3.identity, twist=[2, 0, 0, 0, 0, 1])
circle = quad.trim(
    guess, moving="pose", position=[0, -2, 1], conditions={"turning": turning, "speed": speed}
)
bank = np.degrees(np.linalg.norm(lg.SO3.log(circle.x[3:7])))
formula = np.degrees(np.arctan(2.0**2 / (2.0 * 9.81)))
print(f"{circle.kind}; banked by {bank:.2f}°; atan(v²/(r g)) = {formula:.2f}°")

# %% [markdown]
# About this motion the model is time-invariant although the vehicle goes round: one constant A, one constant gain.
# (What acts in world axes is not: `varying` names it.)

# %%
around = quad.linearize(circle)
print(around.kind, "| varying:", around.varying, "|", around.controllability())
follow = LQR(quad, around, Q={"pose": 10, "twist": 1}, R=1, dt=0.02)

x0 = quad.state.plus(circle.x, [0.5, -0.5, -0.3, 0.3, 0.0, 0.5, 0, 0, 0, 0, 0, 0])
lap = lg.simulate(quad, follow, x0=x0, reference=circle, seconds=10)
print("\n".join(lap.summary()))

# %%
from lgcontrol.plotting import plot_path

plot_path(lap)

# %% [markdown]
# ## Along a trajectory
#
# A plan turns the quadrotor upright from a tilt of 150°. LQR designed at the hover knows nothing of the tilt on the way. `linearize` takes the plan and returns
# A and B at each node; TVLQR has a gain for each. Both start 0.2 m and 15° off.

# %%
from lgcontrol.controllers import TVLQR

tilted = np.radians(150) * np.array([0.6, 0.8, 0.0])
begin = quad.state.join(
    pose=lg.SE3.from_rotation_vector(tilted, position=[0, 0, 1]), twist=np.zeros(6)
)
plan = lg.OptimalControlProblem(
    quad, 40, 0.05, Q={"pose": 10, "twist": 1}, R=0.1, reference=hover, terminal=200
).solve(begin)
along = quad.linearize(plan.trajectory)
print(plan.status, along.A.shape, along.B.shape)
follow = TVLQR(quad, plan.trajectory, Q={"pose": 10, "twist": 1}, R=0.1)
near = quad.state.plus(begin, [0.2, -0.2, 0.1, 0.15, -0.15, 0.15, *np.zeros(6)])
laws = {
    "LQR of the hover, to the hover": (lqr, hover),
    "TVLQR, along the plan": (follow, plan.trajectory),
}
figure, ax = plt.subplots(figsize=(7, 3))
for name, (law, reference) in laws.items():
    done = lg.simulate(quad, law, x0=near, reference=reference, seconds=2.0)
    ax.plot(done.t, done.x[:, 2], label=name)
    print(f"{name:32} height after 2 s {done.x[-1, 2]:.2f} m, planned 1.00 m")
ax.plot(plan.trajectory.t, plan.trajectory.x[:, 2], "k:", label="plan")
ax.set(xlabel="time [s]", ylabel="height [m]")
ax.legend()
plt.show()

# %% [markdown]
# `along.to_control()` is a time-varying system of python-control. Its answer to a small error is that of the nonlinear model:

# %%
small = 1e-4 * np.array([1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0])
told = control.input_output_response(along.to_control(), plan.trajectory.t, 0.0, small).states.T
moved = quad.rollout(
    quad.state.plus(plan.trajectory.x[0], small), plan.trajectory.u, 0.05, method="rk4"
)
true = quad.state.minus(moved.x, plan.trajectory.x)
print(f"largest difference {np.abs(told - true).max():.0e} of {np.abs(true).max():.0e}")

# %% [markdown]
# ## In python-control
#
# The closed loop of the hover is a `control` system like any other. The figure shows the singular values from gusts, which are
# disturbance inputs of the model, to the position errors.

# %%
force = lin.to_control("disturbance").B[:, :3]
closed = control.ss(plant.A - plant.B @ K, force, plant.C[:3], 0)
omega = np.logspace(-1, 2, 200)
sigma = control.singular_values_response(closed, omega).magnitude
for values, label in zip(np.squeeze(sigma), ("largest", "middle", "smallest"), strict=True):
    plt.loglog(omega, values, "--" if label == "middle" else "-", label=label)
plt.legend(title="singular value")
plt.xlabel("frequency [rad/s]")
plt.ylabel("gust to position [m/N]")
plt.grid(True, which="both", alpha=0.3)

# %% [markdown]
# **Try:** the helix of an underwater vehicle,
# `underwater_vehicle().trim(where={"twist": [0.4, 0, 0.1, 0, 0, 0.2], "pose.qx": 0, "pose.qy": 0})`, and its `linearize`. In a current of 0.2 m/s
# no helix is a relative equilibrium, and `trim` says why.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. The quadrotor flies at 3 m/s along a circle of 2 m radius. Give its bank angle in degrees.

# %%
answer = ...
check(
    1,
    answer,
    lambda angle: np.isclose(angle, np.degrees(np.arctan(9 / (2 * 9.81))), atol=0.2),
    "Lift turns the velocity and carries the weight: atan(v²/(r g)).",
)

# %% [markdown]
# 2. Inputs are expensive: design LQR by python-control with R ten times as large. Give the gain.

# %%
answer = ...
check(
    2,
    answer,
    lambda gain: (
        gain.shape == (4, 12)
        and np.linalg.eigvals(plant.A - plant.B @ gain).real.max() < 0
        and np.linalg.norm(gain) < np.linalg.norm(K)
    ),
    "control.lqr(plant, Q, R)",
)

# %% [markdown]
# 3. Give the matrix A of the hover, discretized with a step of 0.1 s.

# %%
answer = ...
check(
    3,
    answer,
    lambda A: np.allclose(A, quad.discretize(0.1).linearize(hover.x, hover.u).A, atol=1e-4),
    "quad.discretize(0.1) is a system, too; or take the matrix exponential.",
)
