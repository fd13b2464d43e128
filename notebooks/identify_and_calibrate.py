# %% [markdown]
# # Identify an arm, and judge it on motions that were not used
#
# Which parameters of an arm do data determine? We first fit all sixty inertial parameters to a small motion. The fit
# is as good as the noise allows, and it is useless. Held-out torques are off by six times the largest torque of the
# arm. Then we ask which combinations torques determine, and move the arm so that they do. Poses of the tool determine
# the places of the joints in the same way.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
from exercises import check

from lgcontrol.groups import SE3
from lgcontrol.models import ur5_tree
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

rng = np.random.default_rng(0)
arm = ur5_tree()
print(arm.summary())

# %% [markdown]
# ## What fails first: fit everything to a careful motion
#
# Forces are linear in ten numbers for each body. The arm moves along sums of sines of some 0.05 rad. Torques are
# measured with 0.3 N m of noise, and least squares fit all sixty numbers. A second motion, ten times as large, is
# held out.


# %%
def sines(seconds, rate, seed, size=1.0):
    """Times, angles, rates and accelerations of sums of sines."""
    t = np.arange(0, seconds, 1 / rate)
    rng = np.random.default_rng(seed)
    amplitude, phase = size * rng.uniform(0.1, 0.5, (4, 6)), rng.uniform(0, 2 * np.pi, (4, 6))
    w = 2 * np.pi * 0.15 * np.arange(1, 5)[:, None, None]
    angle = w * t[:, None] + phase[:, None]
    q = (amplitude[:, None] * np.sin(angle)).sum(0)
    v = (amplitude[:, None] * w * np.cos(angle)).sum(0)
    a = -(amplitude[:, None] * w**2 * np.sin(angle)).sum(0)
    return t, q, v, a


noise = 0.3  # N m
t, *held = sines(10, 50, seed=2)
tau = arm.inverse_dynamics(*held)
true_masses = arm.inertial_parameters[0::10]
masses = {}
for name, size in (("careful motion", 0.05), ("large motion", 1.0)):
    _, *used = sines(30, 50, seed=1, size=size)
    measured = arm.inverse_dynamics(*used)
    measured = measured + rng.normal(scale=noise, size=measured.shape)
    matrix = arm.inverse_dynamics_regressor(*used).reshape(-1, 60)
    sixty, *_, rank, _ = np.linalg.lstsq(matrix, measured.ravel(), rcond=None)
    fit = np.sqrt(np.mean((matrix @ sixty - measured.ravel()) ** 2))
    off = np.abs(arm.inverse_dynamics_regressor(*held) @ sixty - tau).max()
    masses[name] = sixty[0::10]
    print(f"{name:15} rank {rank} of 60, residual {fit:.2f} N m, held out off by {off:.2f} N m")
print(f"largest torque of the held-out motion {np.abs(tau).max():.0f} N m")
print("masses found", masses["large motion"].round(2), "true", true_masses.round(2), "kg")

# %% [markdown]
# The residual of both fits is the noise, so it does not tell them apart. The held-out motion does. Masses are wrong even with the large
# motion, since only 36 combinations of the sixty numbers show in torques. Least squares spread the rest at will.
#
# ## The cure: what torques can tell
#
# Forces are linear in ten numbers for each body, but not all sixty can be told apart: `base_parameters` names the
# combinations that can.

# %%
base = arm.base_parameters()
print(base)
for k in range(8):
    print(f"{base.values[k]:10.5f}  {base.names[k]}")


# %% [markdown]
# Least squares weighted by the noise give these combinations, each with its standard error. `identify` warns of the careful motion and
# names the parameters that it does not excite.

# %%
t, q, v, a = sines(30, 50, seed=1, size=0.05)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    careful = base.identify(
        q, v, a, arm.inverse_dynamics(q, v, a) + rng.normal(scale=noise, size=v.shape)
    )
print(caught[0].message)

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
# 3. Only the careful motion can be measured. Give an identified arm whose held-out torques are within 2 N m: tell `identify` how well the
# tree's own numbers are known. Here they are the truth; a drawing is 10 to 30 % off.

# %%
_, *small = sines(30, 50, seed=1, size=0.05)

# %%
answer = ...
check(
    3,
    answer,
    lambda found: held_out(found) < 2,
    "prior=0.3 keeps what the motion does not excite near the tree's numbers.",
)
