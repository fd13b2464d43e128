# %% [markdown]
# # Why a spring makes computed torque fail, and what flatness does
#
# A robot's gear is a spring between motor and link. Laws for rigid arms sag, ring or are unstable with it. This notebook
# takes a planar arm of two links and puts soft springs into its joints. Computed torque fails in both ways in which it can be wired.
# Then flatness computes what the motors have to do from the motion of the links.

# %%
import matplotlib.pyplot as plt
import numpy as np
from control import flatsys
from exercises import check

from lgcontrol.controllers import ComputedTorque, FeedbackLinearization, FlatFeedforward
from lgcontrol.mechanics import JointProperties, Motor, Multibody, SeriesElastic, SpatialInertia
from lgcontrol.models import elastic_planar_arm_tree
from lgcontrol.plotting import style
from lgcontrol.systems import Waypoints

plt.style.use(style())  # the look of lgcontrol's own figures

# %% [markdown]
# ## The arm, and what it shall do
#
# `SeriesElastic` is a tree with motors behind springs: links move as $M(q)\,\dot v + h = \tau$ under the torques
# $\tau = K(\theta - q)$ of the springs, motors as $B\,\ddot\theta + \tau = u$. The links are to swing up and to the side within 0.6 s,
# rest, and come back. `Waypoints` of order 9 rest with velocity to snap zero.

# %%
arm = elastic_planar_arm_tree()
print(arm, [motor.joint_spring.stiffness for motor in arm.motors.values()], "N m/rad")

system, tree = arm.system(), arm.tree
stops = [[0.0, 0.3], [1.1, -0.6], [1.1, -0.6], [0.0, 0.3], [0.0, 0.3]]
path = Waypoints(tree.configuration, [0, 0.6, 1.0, 1.6, 2.0], stops, order=9)
t = np.linspace(0, 2, 2001)
goal = path(t)
tip = tree.position("tool")

# %% [markdown]
# ## Computed torque, wired in two ways
#
# `ComputedTorque` refuses an arm with springs and says what to take instead:

# %%
try:
    ComputedTorque(arm)
except ValueError as error:
    print(error)

# %% [markdown]
# We try it anyway. The rigid arm has the inertias of the motors as armatures. Its law takes the angles of an encoder on the
# motor's side of the spring, or on the link's side. The loop runs at 1 kHz:

# %%
drives = {
    name: JointProperties(armature=motor.reflected_inertia) for name, motor in arm.motors.items()
}
rigid = ComputedTorque(tree.with_properties(**drives), frequency=20.0, saturate=False)
step = system.step("rk4", 2)
start = path.states(system, 0.0)[0]  # motors where the springs carry the weight


def follow(law, plant=step, x=start):
    states = [x]
    for now in t[:-1]:
        if np.abs(x).max() < 50:
            x = plant(now, x, np.clip(law(now, x, path), *system.input_bounds), [], 0.001)
        else:
            x = np.full(8, np.nan)  # lost
        states.append(x)
    return np.array(states)


def error(x):
    return 1e3 * np.linalg.norm(tip(x[:, :2]) - tip(goal.x), axis=1)


runs = {
    "motor encoders": follow(lambda now, x, path: rigid(now, x[4:], path)),
    "link encoders": follow(lambda now, x, path: rigid(now, x[:4], path)),
}
for name, x in runs.items():
    print(f"{name}: {error(x).max():.0f} mm at most, {error(x)[900:1000].mean():.0f} mm at rest")
    if np.isnan(x).any():
        print(f"{name}: lost at {t[np.isnan(x).any(axis=1)][0]:.2f} s")

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 3.2))
for ax, (name, x) in zip(axes, runs.items(), strict=True):
    ax.plot(t, goal.x, "k--", lw=1)
    ax.plot(t, x[:, :2])
    ax.set(title=f"rigid law on {name}", xlabel="t [s]", ylim=(-2, 2.5))
axes[0].set_ylabel("link angles [rad]")
axes[0].legend(axes[0].lines[1:], ["goal", "shoulder", "elbow"], loc="upper right")
fig.tight_layout()

# %% [markdown]
# With motor encoders the motors follow and the links do not. The links hang from springs that the law does not know: they sag
# at rest and swing after every move. With link encoders the law sees the error, and the loop is unstable.
#
# No gain helps. For one joint of inertia M with the PD $-k q - d \dot q$ at its motor, the loop has the
# polynomial $M B s^4 + (M + B) K s^2 + K d s + K k$. The term $s^3$ is missing, so by Routh two poles lie to the right
# for all gains. The poles of the spring start on the imaginary axis and leave it to the right:

# %%
M, B, K = 0.5, 0.3, 400.0  # link, motor, spring
fig, ax = plt.subplots(figsize=(5, 3.2))
for gain in np.geomspace(1, 1e3, 60):
    damping = 2 * np.sqrt(gain * (M + B))  # critical, were it rigid
    poles = np.roots([M * B, 0, (M + B) * K, K * damping, K * gain])
    ax.plot(poles.real, poles.imag, ".", c=plt.cm.viridis(np.log10(gain) / 3), ms=4)
ax.axvline(0, c="k", lw=0.5)
ax.set(xlabel="real [1/s]", ylabel="imaginary [rad/s]", title="PD on the link, gains 1 to 1000")
fig.tight_layout()

# %% [markdown]
# ## What flatness does
#
# Read the equations backwards from the link. The motion of the links determines the torque $\tau$ of every spring
# (inverse dynamics). The torque determines the deflection, and so the motor's position. Two time derivatives give the motor's
# acceleration, and so its torque:
#
# $$ \theta = q + K^{-1}\tau, \qquad u = B\,(\ddot q + K^{-1}\ddot\tau) + \tau. $$
#
# Nothing is integrated and nothing approximated; such outputs are called flat. What it takes are $\dot\tau$ and $\ddot\tau$:
# `inverse_dynamics_time_derivatives` has them by recursion, from the jerk and the snap of the links.

# %%
needed = arm.flat_map()(*goal)  # states of links and motors, and torques
deflection = system.quantities["deflection"](0.0, needed.x)
residual = system.f(0.0, needed.x, needed.u)[:, 2:4] - goal.acceleration
print(f"accelerations of the model less those asked for: {np.abs(residual).max():.1e} rad/s²")

fig, axes = plt.subplots(1, 2, figsize=(10, 3.2), sharex=True)
axes[0].plot(t, deflection)
axes[0].set(ylabel="deflection [rad]", xlabel="t [s]")
axes[1].plot(t, needed.u)
axes[1].plot(t, needed.tau, "k:", lw=1)
axes[1].set(ylabel="torque [N m]", xlabel="t [s]")
axes[1].legend(["motor, shoulder", "motor, elbow", "through springs"], fontsize=8, loc=(0.31, 0.74))
fig.tight_layout()

# %% [markdown]
# The torques of motors are not those of springs: they accelerate the motors as well. A motion
# whose snap jumps would make them jump, one whose jerk jumps is not possible at all; laws refuse it.
#
# ## The same by `control.flatsys`, on one joint
#
# python-control plans with flat systems, too. It wants the maps from the flat output to states and inputs, and back, by hand. For one link
# that hangs from a motor behind a spring they fit on a page. Both plan the same motion: from rest to rest in 0.6 s, by a polynomial of
# degree nine.

# %%
MASS, LENGTH, MOTOR, SPRING = 2.0, 0.4, 0.3, 400.0  # kg, m, kg m², N m/rad
INERTIA, WEIGHT = MASS * LENGTH**2 / 3, MASS * 9.81 * LENGTH / 2


def to_flat(x, u, params=None):
    """Link angle and its first four derivatives."""
    q, motor, rate, motor_rate = x
    tau = SPRING * (motor - q)
    a = (tau - WEIGHT * np.sin(q)) / INERTIA
    jerk = (SPRING * (motor_rate - rate) - WEIGHT * np.cos(q) * rate) / INERTIA
    turning = SPRING * ((u[0] - tau) / MOTOR - a)
    snap = (turning - WEIGHT * (np.cos(q) * a - np.sin(q) * rate**2)) / INERTIA
    return [np.array([q, rate, a, jerk, snap])]


def from_flat(flat, params=None):
    """State and input."""
    q, rate, a, jerk, snap = flat[0]
    tau = INERTIA * a + WEIGHT * np.sin(q)
    tau_rate = INERTIA * jerk + WEIGHT * np.cos(q) * rate
    turning = INERTIA * snap + WEIGHT * (np.cos(q) * a - np.sin(q) * rate**2)
    state = [q, q + tau / SPRING, rate, rate + tau_rate / SPRING]
    return np.array(state), np.array([MOTOR * (a + turning / SPRING) + tau])


ends = [from_flat([np.array([angle, 0, 0, 0, 0])]) for angle in (0.0, 1.2)]
planned = flatsys.point_to_point(
    flatsys.FlatSystem(to_flat, from_flat, inputs=1, states=4),
    0.6,
    *ends[0],
    *ends[1],
    basis=flatsys.PolyFamily(10),
)
times = np.linspace(0, 0.6, 301)
their_x, their_u = planned.eval(times)

link = SpatialInertia.rod(MASS, LENGTH, [0, 0, -1], [0, 0, -LENGTH / 2])
one = Multibody("one").add_body("link", link, "revolute", axis="y")
way = Waypoints(one.configuration, [0, 0.6], [[0.0], [1.2]], order=9)
ours = SeriesElastic(one, {"link": Motor(MOTOR, SPRING)}).flat_map()(*way(times))
order = [0, 2, 1, 3]  # ours has link, link rate, motor, motor rate
print(f"largest difference: states {np.abs(ours.x - their_x.T[:, order]).max():.0e} rad, rad/s")
print(f"motor torque {np.abs(ours.u - their_u.T).max():.0e} of {np.abs(their_u).max():.1f} N m")

# %% [markdown]
# The numbers agree to rounding. `flatsys` also optimises over a basis; it needs the four derivatives of each joint by hand. `flat_map` takes any
# tree, and its recursion is exact for two links or for seven.
#
# ## Two laws from flatness
#
# `FlatFeedforward` gives these torques plus a PD at the motors, where a PD is stable. `FeedbackLinearization`
# feeds back all four states of each joint. Errors of the links then move as chains of four integrators with poles of our choice. Here
# it includes the integral of the link error.

# %%
laws = {
    "flat feedforward": FlatFeedforward(arm, reference=path),
    "linearization": FeedbackLinearization(
        arm, frequency=40.0, integral=True, reference=path, check=False
    ),
}
for name, law in laws.items():
    runs[name] = follow(law)
    print(f"{name}: {error(runs[name]).max():.3f} mm at most")

# %% [markdown]
# ## When the model is wrong
#
# With springs 30 % softer than known, feedforward sags like every law that trusts its model; the integral of
# the link error brings the tip back.

# %%
soft = SeriesElastic(
    tree,
    {
        name: Motor(motor.inertia, 0.7 * motor.joint_spring.stiffness)
        for name, motor in arm.motors.items()
    },
)
softer = soft.system().step("rk4", 2)
begin = path.states(soft.system(), 0.0)[0]
fig, ax = plt.subplots(figsize=(8, 3.8))
ax.semilogy(t, error(runs["motor encoders"]), label="rigid law, motor encoders")
for name, law in laws.items():
    law.reset()
    x = follow(law, softer, begin)
    print(f"{name}: {error(x).max():.1f} mm at most, {error(x)[900:1000].mean():.2f} at rest")
    (line,) = ax.semilogy(t, error(runs[name]) + 1e-5, label=name)
    ax.semilogy(t, error(x), "--", c=line.get_color(), label=f"{name}, softer springs")
ax.set(xlabel="t [s]", ylabel="error of the tip [mm]", ylim=(1e-4, 1e3))
fig.legend(fontsize=8, ncols=3, loc="outside upper center")
plt.show()

# %% [markdown]
# Linearization must be fast enough, too: at 10 rad/s the loop with softer springs is unstable. Laws check
# that at construction and say so; `radii` has the numbers.

# %%
slow = FeedbackLinearization(arm, frequency=10.0, check=False)
for law in (slow, laws["linearization"]):
    radii = law.radii([0.5, 0.3])
    print({f"{factor:g} K": round(radius, 4) for factor, radius in radii.items()})

# %% [markdown]
# ## What to remember
#
# - A spring between motor and link costs two integrators. A fast PD on the link is unstable then, one on
#   the motor does not see the link.
# - The motion of the links decides everything, if it is smooth enough: position to snap.
# - A spring that is known is no error. One that is not known well needs the error of the links, and its
#   integral.
#
# The theory, dampers and arms with rigid joints: [elastic arms](../docs/theory/elastic_arms.md). `lgcontrol run elastic-ur5`
# is this on six joints.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. A torque of 20 N m shall deflect a spring by 0.05 rad. Give its stiffness in N m/rad.

# %%
answer = ...
check(
    1,
    answer,
    lambda stiffness: np.isclose(stiffness * 0.05, 20),
    "The torque is stiffness times deflection.",
)

# %% [markdown]
# 2. Give gains (k, d) of a PD at the *motor* with which all four poles of the joint above lie left of −1 1/s.


# %%
def motor_poles(k, d):
    """Poles of one joint with a PD at its motor, with M and B from above."""
    stiffness = 400.0
    return np.roots([M * 0.3, M * d, (M + 0.3) * stiffness + M * k, stiffness * d, stiffness * k])


# %%
answer = ...
check(
    2,
    answer,
    lambda gains: motor_poles(*gains).real.max() < -1,
    "At the motor every coefficient is positive: start with k = 300 and d = 15.",
)

# %% [markdown]
# 3. Give a motion from rest to rest of both links, from (0, 0) to (1, −0.5) in 0.8 s, that motors behind springs can do.

# %%
answer = ...
check(
    3,
    answer,
    lambda way: (
        np.allclose(way(0.8).x, [1, -0.5])
        and np.abs(way(0.0).snap).max() < 1e-6
        and np.abs(way(0.8).velocity).max() < 1e-9
    ),
    "Waypoints of order 9 rest up to the snap.",
)
