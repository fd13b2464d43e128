# %% [markdown]
# # One equation, nine groups
#
# A satellite turns, a ship moves in the plane, a blimp keeps level, a nut runs along its thread. Does each need its own equation of
# motion? This tutorial writes one equation for all, $M \dot v - \mathrm{ad}_v^T M v = \tau$. First we leave out its middle term and
# see a thrown body lose its momentum. Then one controller design serves all nine groups.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.mechanics import RigidBody, SpatialInertia, WrenchInput
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

body = SpatialInertia(2.0, [0.1, 0.05, 0.02], np.diag([0.10, 0.20, 0.25]))  # kg, m, kg m²
groups = {
    "turn about an axis": lg.SO2,
    "turn about a point": lg.SO3,
    "shift in space": lg.Translation("xyz"),
    "shift along and turn about an axis": lg.Cylindrical,
    "screw": lg.Helical(0.1),
    "plane": lg.SE2,
    "plane with a screw": lg.PlanarHelical(0.1),
    "level": lg.Schoenflies,
    "space": lg.SE3,
}

# %% [markdown]
# ## The same body on nine groups
#
# A group says how the body may move. Its bracket $\mathrm{ad}_v$ says how velocities in body axes change when the axes turn. The mass
# matrix is the part of the spatial inertia that the group can feel.

# %%
bodies = {
    name: RigidBody("body", group, body, [WrenchInput(group.tangent_names, name="push")])
    for name, group in groups.items()
}
for name, one in bodies.items():
    group, v = groups[name], np.arange(1.0, 1 + groups[name].dim)
    M = one.mass_matrix(group.identity)
    bracket = np.asarray(group.ad(v)).T @ M @ v
    rate = one.forward_dynamics(group.identity, v, np.zeros(group.dim))
    print(
        f"{name:36}{group.dim} degrees of freedom, residual {np.abs(M @ rate - bracket).max():.0e}"
    )

# %% [markdown]
# ## What fails: Newton's law without the bracket
#
# In body axes $M \dot v = \tau$ looks like Newton's law. It is wrong: the axes turn. We throw the body in the plane without any
# force. With the bracket the centre of mass moves along a straight line, and the momentum in space is constant. Without it the body
# flies in a circle, as if something pulled it.

# %%
plane = bodies["plane"]
M = plane.mass_matrix(lg.SE2.identity)
thrown = np.r_[lg.SE2.identity, 1.0, 0.3, 2.0]  # pose; forward, left [m/s], turn rate [rad/s]
free = lg.System(
    "without_bracket", plane.system().state, lambda t, x, u, p: [x[4], x[5], x[6], 0, 0, 0]
)
paths = {
    "with the bracket": plane.system().rollout(thrown, None, 0.01, steps=300, method="rk4"),
    "without it": free.rollout(thrown, None, 0.01, steps=300, method="rk4"),
}
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4))
for name, run in paths.items():
    pose = run.x[:, :4]
    center = lg.SE2.act(pose, [0.1, 0.05])
    axes[0].plot(*center.T, label=name)
    momentum = plane.momentum("spatial")(pose, run.x[:, 4:])
    axes[1].plot(run.t, np.linalg.norm(momentum[:, :2] - momentum[0, :2], axis=1), label=name)
axes[0].set(xlabel="x [m]", ylabel="y [m]", title="centre of mass")
axes[0].set_aspect("equal", adjustable="datalim")
axes[1].set(xlabel="time [s]", ylabel="N s", title="change of momentum in space")
axes[0].legend()
figure.tight_layout()

# %% [markdown]
# ## Nine motions of one thrown body
#
# The figure shows the path of three points of the same body on each group. All start with a velocity of one unit in every direction that
# the group has.

# %%
tips = np.array([[0.4, 0, 0], [0, 0.4, 0], [0, 0, 0.4]])
figure, axes = plt.subplots(3, 3, figsize=(8, 8), subplot_kw={"projection": "3d"})
for ax, (name, group) in zip(axes.flat, groups.items(), strict=True):
    start = np.r_[group.identity, np.ones(group.dim)]
    run = bodies[name].system().rollout(start, None, 0.02, steps=200, method="rk4")
    frames = np.array([np.asarray(group.homogeneous(x)) for x in run.x[:, : group.nq]])
    points = frames[:, None, :3, :3] @ tips[:, :, None]
    points = points[..., 0] + frames[:, None, :3, 3]
    for k in range(3):
        ax.plot(*points[:, k].T, lw=1, color=f"C{k}")
    ax.set_title(f"{name} ({group.name})", fontsize=8)
    ax.tick_params(labelsize=6, pad=-3)
    ax.set_box_aspect((1, 1, 1))
figure.tight_layout()

# %% [markdown]
# ## One design for all of them
#
# Errors are `minus(x, x_ref)` on the group, so one line designs LQR for each group. Each run starts at a random element of the group.

# %%
figure, ax = plt.subplots(figsize=(7, 3.2))
for name, one in bodies.items():
    system = one.system()
    goal = system.trim(system.state.identity)
    law = lg.LQR(system, goal, Q=1, R=0.5, dt=0.02)
    start = np.r_[groups[name].random(seed=3), np.zeros(groups[name].dim)]
    run = lg.simulate(system, law, x0=start, reference=goal, seconds=12)
    ax.semilogy(run.t, np.linalg.norm(run.error, axis=1) + 1e-12, label=name)
ax.set(xlabel="time [s]", ylabel="norm of the error", ylim=(1e-4, 20))
ax.legend(fontsize=7, ncols=3)
figure.tight_layout()

# %% [markdown]
# ## Exercises
#
# 1. Write the force of the bracket: a function of v and M that returns $\mathrm{ad}_v^T M v$ on SE(2) without `SE2.ad`.

# %%
answer = ...
check(
    1,
    answer,
    lambda bracket: np.allclose(bracket(thrown[4:], M), lg.SE2.ad(thrown[4:]).T @ M @ thrown[4:]),
    "With p = M v and v = (vx, vy, ω) the force is (ω p_y, −ω p_x, vy p_x − vx p_y).",
)

# %% [markdown]
# 2. On SO(3) a body turns steadily about an axis if the bracket vanishes. Give a rate of length one that is such an axis of
# `bodies["turn about a point"]`.

# %%
answer = ...
check(
    2,
    answer,
    lambda v: (
        np.isclose(np.linalg.norm(v), 1)
        and np.abs(
            bodies["turn about a point"].forward_dynamics([0, 0, 0, 1], v, np.zeros(3))
        ).max()
        < 1e-9
    ),
    "Take an eigenvector of the mass matrix.",
)

# %% [markdown]
# 3. A nut of this inertia runs on a thread with a pitch of 0.1 m/rad. Give the torque that accelerates it by 3 rad/s².

# %%
answer = ...
check(
    3,
    answer,
    lambda torque: np.isclose(
        bodies["screw"].forward_dynamics([0.0], [0.0], np.array([torque])).item(), 3.0
    ),
    "The mass matrix has one entry: J + m (r² + pitch²).",
)
