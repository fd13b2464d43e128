# %% [markdown]
# # From raw logs to a controller that flies on estimates
#
# How do raw logs become a state that MPC can use? We take recordings of real sensors. First we integrate what gyroscope and odometry
# measure: attitude and position drift away, and nothing says by how much. Filters correct both, state their own errors, and tell MPC a
# state. The theory is in `docs/theory/estimation.md`.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import MPC
from lgcontrol.estimation import (
    EKF,
    AttitudeHeading,
    Log,
    OffsetFree,
    beacon_range,
    gnss,
    odometry,
)
from lgcontrol.groups import SE2, SO3, Rn
from lgcontrol.io import read_broad, read_plaza
from lgcontrol.models import surface_vessel
from lgcontrol.plotting import style
from lgcontrol.systems import Sensor

plt.style.use(style())  # the look of lgcontrol's own figures

logs = Path("../tests/data/logs")  # sources and licences: README.md there

# %% [markdown]
# ## What fails first: adding up what sensors measure
#
# The first log has sixteen seconds of BROAD, trial 7: a sensor at rest, then turned by hand at up to 24 rad/s. The second log is a mower
# that drives for ninety seconds, with odometry. Both start at the truth. Rates and velocities are integrated on SO(3) and SE(2), without
# any error of the integration itself.


# %%
def added_up(group, start, rates, times):
    """Elements of the group at all times, from body-fixed rates that hold between them."""
    states = [start]
    for dt, rate in zip(np.diff(times), rates[:-1], strict=True):
        states.append(group.plus(states[-1], dt * rate))
    return np.array(states)


turned = read_broad(logs / "broad_07.npz")
known, true = turned.truth["attitude"]
integrated = added_up(SO3, true[0], turned.signals["gyro"], turned.t)
angle = np.degrees(
    np.linalg.norm(SO3.minus(true, integrated[np.searchsorted(turned.t, known)]), axis=1)
)
print(f"gyroscope alone: {angle[-1]:.1f}° off after {known[-1]:.0f} s")

recording = read_plaza(logs / "plaza_2.npz")
known, true = recording.truth["pose"]
driven = added_up(SE2, true[0], recording.signals["velocity"], recording.t)
seen = (known >= recording.t[0]) & (known <= recording.t[-1])
drift = driven[np.searchsorted(recording.t, known[seen]), :2] - true[seen, :2]
print(
    f"odometry alone: {np.linalg.norm(drift, axis=1).max():.1f} m off at most "
    f"within {np.ptp(recording.t):.0f} s"
)

# %% [markdown]
# ## The cure for attitude: gyroscope, accelerometer and magnetometer
#
# `AttitudeHeading` drives
# a model by the IMU; what corrects it is that the sensor does not drift away, and where the field points. The truth is
# from optical motion capture and only compared with: no alignment, every estimate from what was measured until then.

# %%
imu = [turned.signals[name] for name in ("gyro", "accelerometer", "magnetometer")]
model = AttitudeHeading(turned.t[1])
x0, P0 = model.start(*(one[:5] for one in imu))  # at rest a moment will do
run = model.filter(x0, P0).run(model.log(*imu))
print(run.summary())

t, truth = turned.truth["attitude"]
moves = turned.truth["moves"][1][:, 0] > 0
estimate = run.x[run.index(t), :4]
error = np.degrees(SO3.minus(truth, estimate))
total = np.sqrt((error[moves] ** 2).sum(axis=1).mean())
print(f"root mean square while it moves: {total:.2f}°")

# %%
fig, (top, bottom) = plt.subplots(2, 1, sharex=True, figsize=(8, 4.5))
top.plot(t, imu[0], linewidth=0.7, label=["x", "y", "z"])
top.set_ylabel("rate of turn [rad/s]")
top.legend(ncols=3, fontsize="small")
std = np.degrees(run.std[run.index(t), :3])
bottom.fill_between(
    t, -2 * std.max(axis=1), 2 * std.max(axis=1), color="0.9", label="±2σ, largest axis"
)
bottom.plot(t, error, linewidth=0.7)
bottom.set_ylabel("attitude error [°]")
bottom.set_xlabel("time [s]")
bottom.legend(fontsize="small")
plt.show()

# %% [markdown]
# ## The cure for position: odometry and ranges
#
# Radios on four posts tell their distance now and then, all of them some seven
# per cent too long. Neither that scale nor the bias of the ranges is known to the filter: they are states. The start
# is given, and nothing else of the truth.

# %%
mower = lg.System(
    "mower",
    lg.Product(pose=SE2, range_scale=Rn(1), range_bias=Rn(1)),
    lambda t, x, u, p: [u[0], u[1], u[2], 0, 0],
    inputs=odometry().inputs,
)
radios = [
    beacon_range(mower, post, name=name, scale="range_scale", bias="range_bias", std_discrete=0.5)
    for name, post in recording.places.items()
]
known, truth = recording.truth["pose"]
ekf = EKF(
    mower,
    radios,
    mower.state.join(pose=truth[0]),
    std0={"pose": 0.05, "range_scale": 0.1, "range_bias": 0.5},
    noise={"velocity.x": 0.1, "velocity.y": 0.05, "velocity.rz": 0.02},
    robust="huber",
)
log = Log(recording.t, recording.signals["velocity"], recording.measurements)
run = ekf.run(log)
late = run.smooth()
print(run.summary())

inside = (known >= run.t[0]) & (known <= run.t[-1])
at, truth = known[inside], truth[inside]
for name, some in (("filter", run), ("smoother", late)):
    off = some.x[some.index(at), :2] - truth[:, :2]
    print(f"{name}: {np.sqrt((off**2).sum(axis=1).mean()):.2f} m")
print(f"ranges are too long by {100 * run.x[-1, 4]:.1f} %, ± {100 * run.std[-1, 3]:.1f} %")

# %%
fig, axis = plt.subplots(figsize=(6, 5))
axis.plot(*truth[:, :2].T, "k", linewidth=2.5, alpha=0.3, label="truth")
axis.plot(*driven[:, :2].T, ":", label="odometry alone")
axis.plot(*run.x[:, :2].T, linewidth=1, label="filter")
axis.plot(*late.x[:, :2].T, linewidth=1, label="smoother")
for name, post in recording.places.items():
    axis.plot(*post, "^", color="0.4", label="posts" if name == list(recording.places)[0] else None)
axis.set_aspect("equal")
axis.set_xlabel("x [m]")
axis.set_ylabel("y [m]")
axis.legend(fontsize="small")
plt.show()

# %% [markdown]
# Are the errors as large as the filter says? Without a truth the innovations tell: their squares should be one on
# average, and each should say nothing of the next.

# %%
run.plot_consistency()

# %% [markdown]
# ## MPC on estimates
#
# The same filters close the loop. A vessel docks sideways while wind pushes it; it has fixes once a second that come
# 0.3 s late, and a compass. The push is a state of the filter's model, and `OffsetFree` passes it to the controller.
# An MPC without it comes to rest beside the berth. `simulate` takes controller, estimator and sensors. It draws the measurements that correct
# the filter.

# %%
vessel = surface_vessel()
wind = ["force.x", "force.y"]
model = vessel.augment(bias=wind, bias_walk=True)


def sensors(system):
    compass = Sensor("compass", lambda t, x, u, p: x[2:4], lg.SO2, std_discrete=0.02, dt=0.25)
    return [gnss(system, std_discrete=0.05, dt=1.0, delay=0.3), compass]


start = vessel.state.join(pose=SE2.exp([-1.0, -4.0, np.radians(50)]))
guess = vessel.state.plus(start, [0.3, -0.2, np.radians(10), 0, 0, 0])  # where it thinks it is
weights = {"Q": {"pose": [1, 1, 2], "twist": [1, 1, 1]}, "R": 0.1}
std0 = {"pose": 0.3, "twist": 0.02}

plain = EKF(vessel, sensors(vessel), guess, std0=std0, noise={"force": 0.3, "torque": 0.02})
knows = EKF(
    model,
    sensors(model),
    np.concatenate([guess, np.zeros(2)]),
    std0={**std0, "bias": 0.5},
    noise={"force": 0.1, "torque": 0.02, "force.x.walk": 0.05, "force.y.walk": 0.05},
)
both = OffsetFree(MPC(model, horizon=20, dt=0.5, **weights), knows, vessel)
runs = {}
for name, law, estimator in (
    ("wind unknown", MPC(vessel, horizon=20, dt=0.5, **weights), plain),
    ("wind estimated", both, both),
):
    runs[name] = lg.simulate(
        vessel,
        law,
        estimator=estimator,
        sensors=sensors(vessel),
        x0=start,
        reference=vessel.state.identity,
        seconds=45.0,
        disturbances=[lg.Pulse({"force.x": -0.6, "force.y": 0.4}, start=0.0)],
        seed=1,
    )
    miss = np.linalg.norm(runs[name].x[-1, :2])
    print(f"{name}: {100 * miss:.0f} cm from the berth at the end")
print("estimated wind", both.bias.round(2), "N")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
for name, done in runs.items():
    left.plot(*done.x[:, :2].T, label=name)
left.plot(0, 0, "k+", markersize=12, label="berth")
left.set_aspect("equal", adjustable="datalim")
left.set_xlabel("x [m]")
left.set_ylabel("y [m]")
left.legend(fontsize="small")
done = runs["wind estimated"]
for k, name in enumerate(("x", "y")):
    band = 2 * done.estimate_std[:, k]
    right.fill_between(done.t, -band, band, color=f"C{k}", alpha=0.15)
    right.plot(done.t, done.estimation_error[:, k], color=f"C{k}", label=name)
right.set_xlabel("time [s]")
right.set_ylabel("estimation error, ±2σ [m]")
right.legend(fontsize="small")
plt.show()

# %% [markdown]
# `lgcontrol run quadrotor-gnss` and `lgcontrol run auv-usbl` do the same in space: a quadrotor on IMU, GNSS and
# magnetometer, an underwater vehicle on DVL, depth and acoustic fixes.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. Give the root mean square of the smoother's position error of the mower in m.

# %%
answer = ...
check(
    1,
    answer,
    lambda rms: np.isclose(
        rms,
        np.sqrt(((late.x[late.index(at), :2] - truth[:, :2]) ** 2).sum(axis=1).mean()),
        rtol=0.02,
    ),
    "The block on ranges computes it for both.",
)

# %% [markdown]
# 2. Give the error of the estimated wind in N. The true wind is (−0.6, 0.4) N.

# %%
answer = ...
check(
    2,
    answer,
    lambda error: np.isclose(error, np.linalg.norm(both.bias - [-0.6, 0.4]), rtol=0.02),
    "both.bias is the estimate.",
)

# %% [markdown]
# 3. Give the share of times at which the error in x of the run with estimated wind lies within 2σ.

# %%
answer = ...
check(
    3,
    answer,
    lambda share: np.isclose(
        share, np.mean(np.abs(done.estimation_error[:, 0]) < 2 * done.estimate_std[:, 0]), atol=0.01
    ),
    "Compare done.estimation_error with done.estimate_std.",
)
