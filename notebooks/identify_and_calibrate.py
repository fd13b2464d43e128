# %% [markdown]
# # Identify, calibrate and understand an arm
#
# Mechanics in closed form answer three questions. Which inertial parameters do torques determine? At which places are the joints of a real arm? How does a mechanism vibrate? The theory is in `docs/theory`.

# %%
import matplotlib.pyplot as plt
import numpy as np
import scipy.special
from exercises import check

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.models import ur5_tree
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

rng = np.random.default_rng(0)
arm = ur5_tree()
print(arm.summary())

# %% [markdown]
# ## What torques can tell
#
# Forces are linear in ten numbers for each body, but not all sixty can be told apart: `base_parameters` names the
# combinations that can.

# %%
base = arm.base_parameters()
print(base)
for k in range(8):
    print(f"{base.values[k]:10.5f}  {base.names[k]}")


# %% [markdown]
# The arm moves along sums of sines; torques are measured with 0.3 N m of noise. Least squares weighted by the
# noise give the combinations, and the torques of a motion that was not used to find them.


# %%
def sines(seconds, rate, seed):
    t = np.arange(0, seconds, 1 / rate)
    rng = np.random.default_rng(seed)
    amplitude, phase = rng.uniform(0.1, 0.5, (4, 6)), rng.uniform(0, 2 * np.pi, (4, 6))
    w = 2 * np.pi * 0.15 * np.arange(1, 5)[:, None, None]
    angle = w * t[:, None] + phase[:, None]
    q = (amplitude[:, None] * np.sin(angle)).sum(0)
    v = (amplitude[:, None] * w * np.cos(angle)).sum(0)
    a = -(amplitude[:, None] * w**2 * np.sin(angle)).sum(0)
    return t, q, v, a


noise = 0.3
t, q, v, a = sines(30, 50, seed=1)
measured = arm.inverse_dynamics(q, v, a) + rng.normal(scale=noise, size=v.shape)
found = base.identify(q, v, a, measured)

t, q, v, a = sines(10, 50, seed=2)
error = found.inverse_dynamics(q, v, a) - arm.inverse_dynamics(q, v, a)
print(f"a fresh motion is predicted within {np.abs(error).max():.3f} N m (noise {noise} N m)")

# %%
fig, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(7, 4.5))
tau = arm.inverse_dynamics(q, v, a)
for k, name in enumerate(arm.joints):
    top.plot(t, tau[:, k], label=name)
    bottom.plot(t, 1e3 * error[:, k])
top.set_ylabel("joint torque [N m]")
fig.legend(ncols=3, fontsize="small", loc="outside upper center")
bottom.set_ylabel("error of prediction [mN m]")
bottom.set_xlabel("time [s]")
plt.show()

# %% [markdown]
# ## Where the joints are
#
# A real arm is not built to its drawing. Here every joint sits up to a millimetre and a milliradian off. A laser
# tracker measures poses of a probe at 60 configurations. `calibrate` fits the arm by Gauss–Newton steps on the group with the
# calibration Jacobian. It estimates the tracker's noise as well.

# %%
nominal = arm.add_frame("probe", arm.bodies[-1], [0.05, 0.02, 0.12])
names = nominal.geometric_parameters()
drawing = nominal.symbolic(*names)
truth = drawing.parameter_values + rng.uniform(-1e-3, 1e-3, len(names))
real = drawing.with_parameters(truth)

q = rng.uniform(-2.5, 2.5, (60, 6))
sigma = np.repeat([2e-5, 2e-4], 3)  # of position [m] and rotation [rad]
poses = SE3.plus(real.placement("probe")(q), sigma * rng.normal(size=(60, 6)))

found = nominal.calibrate("probe", q, poses)
print(f"poses tell {found.rank} of {len(names)} displacements")
print("noise of the tracker:", found.noise[[0, 3]].round(6), "m and rad")

# %%
fresh = rng.uniform(-2.5, 2.5, (500, 6))
fig, axis = plt.subplots(figsize=(7, 2.6))
for tree, label in ((nominal, "drawing"), (found.tree, "calibrated")):
    miss = np.linalg.norm(real.position("probe")(fresh) - tree.position("probe")(fresh), axis=1)
    axis.hist(1e3 * miss, bins=np.geomspace(1e-3, 10, 60), label=label)
axis.set_xscale("log")
axis.set_xlabel("error of the probe's position [mm]")
axis.set_ylabel("configurations")
axis.legend()
plt.show()

# %% [markdown]
# ## How a chain vibrates
#
# `linearized_equations` and `normal_modes` give small motions about a rest position. A hanging chain of 40 links has nearly
# the frequencies of a continuous one. They are $\omega_k = \frac{j_{0,k}}{2} \sqrt{g / L}$ with the zeros $j_{0,k}$ of the Bessel
# function $J_0$ (Daniel Bernoulli, 1732).

# %%
count, length = 40, 2.0
link = length / count
chain = Multibody("chain")
for k in range(count):
    rod = SpatialInertia.rod(0.1, length=link, center_of_mass=[0, 0, -link / 2])
    parent, place = (f"link{k - 1}", [0, 0, -link]) if k else ("world", None)
    chain = chain.add_body(f"link{k}", rod, "revolute", parent, place, axis="y")
modes = chain.normal_modes(np.zeros(count))
continuous = scipy.special.jn_zeros(0, 4) / 2 * np.sqrt(9.81 / length)
print("chain of links   ", modes.frequencies[:4].round(4), "rad/s")
print("continuous chain ", continuous.round(4), "rad/s")

# %%
fig, axes = plt.subplots(1, 4, sharey=True, figsize=(7, 3))
height = -link * np.arange(count + 1)
depth = length + height
for k, axis in enumerate(axes):
    angles = np.cumsum(modes.shapes[:, k])
    sideways = np.r_[0, np.cumsum(-link * angles)]
    bessel = scipy.special.j0(scipy.special.jn_zeros(0, 4)[k] * np.sqrt(depth / length))
    axis.plot(sideways / sideways[-1], height, label="links")
    axis.plot(bessel, height, "--", label="Bessel")
    axis.set_title(f"{modes.frequencies[k]:.2f} rad/s", fontsize="medium")
    axis.set_xlabel("sideways, relative")
axes[0].set_ylabel("height [m]")
axes[0].legend(fontsize="small")
plt.show()

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. Give the number of combinations of inertial parameters that torques of the UR5 determine.

# %%
answer = ...
check(1, answer, lambda number: number == len(base.names), "base.names has one name for each.")

# %% [markdown]
# 2. Give an identified arm whose torques on the held-out motion are within 0.03 N m. The noise stays at 0.3 N m.


# %%
def torques(q, v, a, seed=5):
    """Torques as they are measured [N m]."""
    return arm.inverse_dynamics(q, v, a) + np.random.default_rng(seed).normal(
        scale=noise, size=v.shape
    )


def held_out(found):
    """Largest error on a motion that was not used [N m]."""
    _, q, v, a = sines(10, 50, seed=2)
    return np.abs(found.inverse_dynamics(q, v, a) - arm.inverse_dynamics(q, v, a)).max()


# %%
answer = ...
check(
    2,
    answer,
    lambda found: held_out(found) < 0.03,
    "The error falls with the square root of the number of samples: take a longer motion.",
)

# %% [markdown]
# 3. The chain is cut to half its length. Give its lowest frequency in rad/s.

# %%
answer = ...
check(
    3,
    answer,
    lambda frequency: np.isclose(frequency, modes.frequencies[0] * np.sqrt(2), rtol=0.02),
    "The frequencies grow with the root of g / L.",
)
