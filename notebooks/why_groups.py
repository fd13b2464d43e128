# %% [markdown]
# # Why groups? One slew in three sets of coordinates
#
# A satellite turns to a new attitude. We write its dynamics three times: with Euler angles, with a quaternion as four free
# numbers, and on the group SO(3). The physics is the same. The question is which controllers and simulations survive.
#
# First we see what fails, then the cure.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

J = np.diag([10.0, 14.0, 18.0])  # kg m²
torques = [lg.Input(f"torque_{axis}", "N m", -2, 2) for axis in "xyz"]


def angular_acceleration(w, u):
    return ca.solve(ca.DM(J), u - ca.cross(w, J @ w))


# %% [markdown]
# ## Euler angles: roll, pitch, yaw
#
# Their rates are $\dot\alpha = T(\alpha)\,\omega$. The matrix T has $1/\cos(\text{pitch})$ in it.


# %%
def with_euler_angles(t, x, u, p):
    roll, pitch, w = x[0], x[1], x[3:]
    T = ca.blockcat(
        [
            [1, ca.sin(roll) * ca.tan(pitch), ca.cos(roll) * ca.tan(pitch)],
            [0, ca.cos(roll), -ca.sin(roll)],
            [0, ca.sin(roll) / ca.cos(pitch), ca.cos(roll) / ca.cos(pitch)],
        ]
    )
    return ca.vertcat(T @ w, angular_acceleration(w, u))


euler = lg.System(
    "euler_angles", lg.Product(angles=lg.Rn(3), rate=lg.Rn(3)), with_euler_angles, inputs=torques
)
group = lg.System(
    "on_SO3",
    lg.Product(attitude=lg.SO3, rate=lg.Rn(3)),
    lambda t, x, u, p: ca.vertcat(x[4:], angular_acceleration(x[4:], u)),
    inputs=torques,
)

# %% [markdown]
# ## LQR at ever larger pitch
#
# We design LQR about an attitude at rest with a given pitch and weigh all errors alike. On SO(3) every attitude is as good as every other,
# and the gain is the same. With Euler angles the linear model itself degenerates towards 90°.

# %%
pitches = np.array([0, 30, 60, 80, 85, 88, 89, 89.5])
gains = {"Euler angles": [], "SO(3)": []}
for degrees in pitches:
    pitch = np.deg2rad(degrees)
    at_rest = {
        "Euler angles": (euler, np.r_[0, pitch, 0, 0, 0, 0]),
        "SO(3)": (group, np.r_[lg.SO3.exp([0, pitch, 0]), 0, 0, 0]),
    }
    for name, (system, x) in at_rest.items():
        law = lg.LQR(system, system.trim(x), dt=0.1, Q=1, R=1)
        gains[name].append(np.linalg.norm(law.K))

figure, axes = plt.subplots(figsize=(7, 3.5))
for name, values in gains.items():
    axes.plot(pitches, values, "o-", label=name)
axes.set(xlabel="pitch of the goal [°]", ylabel="norm of the LQR gain")
axes.legend()
plt.show()

# %% [markdown]
# ## A slew through 90° of pitch
#
# Both laws are designed at the level attitude with the same weights. The satellite starts upside down, with a pitch of 150° and a slow
# rotation. On the way its pitch has to pass 90°.

# %%
start = np.deg2rad(150)
Q = {"Euler angles": {"angles": 1, "rate": 10}, "SO(3)": {"attitude": 1, "rate": 10}}
starts = {
    "Euler angles": np.r_[0, start, 0, 0, 0.02, 0.01],
    "SO(3)": np.r_[lg.SO3.exp([0, start, 0]), 0, 0.02, 0.01],
}
angles = {}
for name, system in (("Euler angles", euler), ("SO(3)", group)):
    goal = system.trim(system.state.identity)
    law = lg.LQR(system, goal, dt=0.1, Q=Q[name], R=1)
    run = lg.simulate(system, law, x0=starts[name], seconds=60)
    if system is group:
        error = np.linalg.norm(lg.SO3.log(run.x[:, :4]), axis=1)
    else:
        turns = [
            lg.SO3.compose(
                lg.SO3.compose(lg.SO3.exp([0, 0, x[2]]), lg.SO3.exp([0, x[1], 0])),
                lg.SO3.exp([x[0], 0, 0]),
            )
            for x in run.x
        ]
        error = np.linalg.norm(lg.SO3.log(np.array(turns)), axis=1)
    angles[name] = run.t, np.rad2deg(error)
    print(f"{name:13} ends {angles[name][1][-1]:6.1f}° from its goal")

figure, axes = plt.subplots(figsize=(7, 3.5))
for name, (t, error) in angles.items():
    axes.plot(t, error, label=name)
axes.set(xlabel="time [s]", ylabel="angle to the goal [°]")
axes.legend()
plt.show()

# %% [markdown]
# On SO(3) the slew ends at the goal. With Euler angles the satellite tumbles for ever. Near 90° of pitch the rates of roll and yaw
# explode, and the law turns the satellite against them.
#
# ## A quaternion as four free numbers
#
# A quaternion has no singularity, but its norm must stay one. Nothing in an ordinary integrator knows that. We turn the free body for some
# hours with both models and the same steps. The product with the step's exponential keeps the norm on SO(3).


# %%
def with_quaternion(t, x, u, p):
    q, w = x[:4], x[4:]
    vector, scalar = q[:3], q[3]
    rate = ca.vertcat(scalar * w + ca.cross(vector, w), -ca.dot(vector, w)) / 2
    return ca.vertcat(rate, angular_acceleration(w, u))


quaternion = lg.System(
    "quaternion", lg.Product(quaternion=lg.Rn(4), rate=lg.Rn(3)), with_quaternion, inputs=torques
)
x0 = np.r_[0, 0, 0, 1, 0.4, 0.01, 0.3]
off = {}
for name, system in (("four free numbers", quaternion), ("SO(3)", group)):
    run = system.rollout(x0, None, 0.2, steps=50_000, method="rk4")
    off[name] = run.t, np.abs(np.linalg.norm(run.x[:, :4], axis=1) - 1) + 1e-17

figure, axes = plt.subplots(figsize=(7, 3.5))
for name, (t, error) in off.items():
    axes.plot(t / 3600, error, label=name)
axes.set(xlabel="time [h]", ylabel="error of the norm", yscale="log")
axes.legend()
plt.show()

# %% [markdown]
# The linearization shows the same fact. One direction of the four free numbers, along the quaternion, is not physical. No torque moves it,
# and the Riccati equation of LQR has no stabilizing solution.

# %%
for system in (quaternion, group):
    point = system.trim(np.r_[0, 0, 0, 1, 0, 0, 0])
    linear = system.linearize(point)
    controllable = np.linalg.matrix_rank(
        np.hstack(
            [np.linalg.matrix_power(linear.A, k) @ linear.B for k in range(linear.A.shape[0])]
        )
    )
    print(f"{system.name:11} {linear.A.shape[0]} states, {controllable} of them controllable")

# %% [markdown]
# On SO(3) the errors have three components, as many as the attitude has degrees of freedom. The coordinates are a unit quaternion
# without singularity, and all derivatives are by tangent vectors.
#
# **Try:** Move the goal of the slew to a pitch of 89°. Start the satellite with a roll of 179°. Replace `rk4` by
# `variational_verlet` (its group is `SO3` with `RigidBody`) and compare the angular momentum in space.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. Give the norm of the gain of LQR on SO(3) at a pitch of 75°, with the weights above.

# %%
answer = ...
check(
    1,
    answer,
    lambda norm: np.isclose(
        norm,
        np.linalg.norm(
            lg.LQR(
                group,
                group.trim(np.r_[lg.SO3.exp([0, np.deg2rad(75), 0]), 0, 0, 0]),
                dt=0.1,
                Q=1,
                R=1,
            ).K
        ),
    ),
    "On the group every attitude is like every other.",
)

# %% [markdown]
# 2. One attitude is turned by 3 rad about z, the other by −3 rad. Give the angle between them in degrees.

# %%
answer = ...
check(
    2,
    answer,
    lambda angle: np.isclose(angle, np.degrees(2 * np.pi - 6)),
    "Take the norm of SO3.minus of both.",
)

# %% [markdown]
# 3. Give a pitch in degrees above 20° from which LQR with Euler angles still arrives within 1°.


# %%
def ends_at(degrees):
    """Norm of the last angles [°] of the loop with Euler angles."""
    law = lg.LQR(euler, euler.trim(euler.state.identity), dt=0.1, Q=Q["Euler angles"], R=1)
    x0 = np.r_[0, np.deg2rad(degrees), 0, 0, 0.02, 0.01]
    return np.rad2deg(np.linalg.norm(lg.simulate(euler, law, x0=x0, seconds=60).x[-1, :3]))


# %%
answer = ...
check(3, answer, lambda degrees: degrees > 20 and ends_at(degrees) < 1, "Stay well below 90°.")
