# %% [markdown]
# # Unstable rotation in six speeds of points
#
# A box that turns about its middle axis flips over again and again. Do we need an angular velocity to see that? This tutorial describes
# the velocity of the box by the speeds of six of its points. Every number is in m/s, and every entry of the inertia is in kg. First a
# choice of points fails. Then the flip appears in the six speeds, with the same growth rate as in the twist.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.mechanics import RigidBody, SpatialInertia
from lgcontrol.mechanics.representations import UnifiedVelocity
from lgcontrol.models import free_box
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

inertia = np.array([5.2988, 1.1775, 4.3568])  # kg m², of a steel box 0.1 × 0.6 × 0.3 m
box = RigidBody("box", lg.SE3, SpatialInertia(141.3, [0, 0, 0], np.diag(inertia)))

# %% [markdown]
# ## What fails: six points that do not tell
#
# Each speed is $w_i = b_i \cdot (v + \omega \times y_i)$ with a point $y_i$ and a direction $b_i$. We start from a good choice and move the
# second point onto the line through the first one, along its direction. The distance of two points of a rigid body is constant, so these two
# speeds agree for every motion.

# %%
good = UnifiedVelocity.hexahedral()
points, directions = good.points.copy(), good.directions.copy()
directions[1] = directions[0]
points[1] = points[0] + 0.5 * directions[0]
try:
    UnifiedVelocity(points, directions)
except ValueError as error:
    print(error)

# %% [markdown]
# ## The cure: the sides of a cube
#
# `hexahedral` takes the centres of six sides of a cube, each moving along its side. The matrix D of $w = D v$ is orthogonal, so
# nothing is amplified.

# %%
six = UnifiedVelocity.hexahedral()
M = np.diag([141.3] * 3 + list(inertia))
M_w = six.inverse.T @ M @ six.inverse
print("condition of D:", round(six.condition, 12))
print("inertia in the six speeds [kg]")
print(M_w.round(2))

# %% [markdown]
# ## The flip
#
# The box turns at 10 rad/s about its third axis, the one with the middle moment of inertia. A disturbance of 1e-3 rad/s grows.
# Both systems describe the same motion.

# %%
twist = np.array([0, 0, 0, 1e-3, 0, 10.0])
turning = {"twist": free_box(), "six speeds": box.system(velocity=six)}
starts = {"twist": twist, "six speeds": six.from_twist(twist)}
runs = {
    name: system.rollout(np.r_[lg.SE3.identity, starts[name]], None, 1e-3, steps=8000, method="rk4")
    for name, system in turning.items()
}
same = np.abs(six.from_twist(runs["twist"].x[:, 7:]) - runs["six speeds"].x[:, 7:]).max()
print(f"largest difference of the six speeds: {same:.0e} m/s")

figure, axes = plt.subplots(2, 1, sharex=True, figsize=(8, 5))
axes[0].plot(runs["twist"].t, runs["twist"].x[:, 10:], label=["ω x", "ω y", "ω z"])
axes[0].set(ylabel="rate [rad/s]")
axes[0].legend(ncols=3, loc="lower left", bbox_to_anchor=(0, 1))
axes[1].plot(
    runs["six speeds"].t, runs["six speeds"].x[:, 7:], lw=1, label=[f"w{k}" for k in range(1, 7)]
)
axes[1].set(ylabel="speed of a point [m/s]", xlabel="time [s]")
axes[1].legend(ncols=6, loc="lower left", bbox_to_anchor=(0, 1))
figure.align_ylabels()
plt.show()

# %% [markdown]
# ## The growth rate
#
# Linearization about the steady rotation has one positive pole. It is $\Omega \sqrt{(I_1 - I_3)(I_3 - I_2) / (I_1 I_2)}$ in both
# descriptions. About the other two axes all poles lie on the imaginary axis.

# %%
formula = 10 * np.sqrt(
    (inertia[0] - inertia[2]) * (inertia[2] - inertia[1]) / (inertia[0] * inertia[1])
)
spin = np.array([0, 0, 0, 0, 0, 10.0])
at_spin = {"twist": spin, "six speeds": six.from_twist(spin)}
for name, system in turning.items():
    steady = np.r_[lg.SE3.identity, at_spin[name]]
    poles = system.linearize(steady).poles
    print(f"{name:11} fastest growth {poles.real.max():.6f} 1/s, formula {formula:.6f} 1/s")

# %% [markdown]
# ## What the steps keep
#
# Nothing acts on the box, so its momentum in space is constant. Steps of RK4 lose some of it, and the loss is the same in both velocities.
# The choice of a velocity does not cure an integrator. `variational_verlet` on the twist keeps the momentum to rounding.

# %%
figure, ax = plt.subplots(figsize=(7, 3))
for name, system, start, method in (
    ("twist, RK4", turning["twist"], starts["twist"], "rk4"),
    ("six speeds, RK4", turning["six speeds"], starts["six speeds"], "rk4"),
    ("twist, variational", turning["twist"], starts["twist"], "variational_verlet"),
):
    run = system.rollout(np.r_[lg.SE3.identity, start], None, 0.02, steps=4000, method=method)
    twists = run.x[:, 7:] @ six.inverse.T if "six" in name else run.x[:, 7:]
    momentum = box.momentum("spatial")(run.x[:, :7], twists)
    change = np.linalg.norm(momentum - momentum[0], axis=1) / np.linalg.norm(momentum[0])
    ax.semilogy(run.t, change + 1e-16, "--" if "six" in name else "-", label=name)
ax.set(xlabel="time [s]", ylabel="relative change of the momentum", title="steps of 20 ms")
ax.legend()
plt.show()

# %% [markdown]
# ## Exercises
#
# 1. The box turns at 10 rad/s about its second axis. Give the period of the small wobble of that rotation in s.

# %%
answer = ...
check(
    1,
    answer,
    lambda period: np.isclose(
        2 * np.pi / period,
        10
        * np.sqrt(
            (inertia[0] - inertia[1]) * (inertia[2] - inertia[1]) / (inertia[0] * inertia[2])
        ),
        rtol=0.02,
    ),
    "Linearize about the rotation; the imaginary part of a pole is a frequency in rad/s.",
)

# %% [markdown]
# 2. Give the six speeds of a box that moves forward along x at 2 m/s and does not turn.

# %%
answer = ...
check(
    2,
    answer,
    lambda w: np.allclose(six.inverse @ w, [2, 0, 0, 0, 0, 0]),
    "w = D v, and `from_twist` does it.",
)

# %% [markdown]
# 3. Give six points and six directions of your own, as a `UnifiedVelocity` whose condition number is below 10.

# %%
answer = ...
check(
    3,
    answer,
    lambda own: own.condition < 10 and not np.allclose(np.abs(own.matrix), np.abs(six.matrix)),
    "Take the sides of a box with other lengths, or `tetrahedral`.",
)
