# %% [markdown]
# # Legs on the ground: a standing quadruped
#
# Which torques let a four-legged robot stand, and which feedback keeps it standing when somebody pushes? Its trunk floats, so no motor
# acts on it directly. The feet on the ground are constraints. We see a free-floating model refuse to stand and a joint controller sag.
# Then `ClosedTree` holds the feet, and trim, linearization and LQR follow as for any other system.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

solo = lg.Multibody.from_urdf(
    "../tests/data/robots/solo12.urdf", base="free", on_finding="ignore"
)  # 2.5 kg, 12 motors
FEET = ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")
motors = list(solo.joints)[1:]
q = np.r_[
    solo.neutral[:7], np.tile([0.0, 0.8, -1.6], 4)
]  # trunk's pose; hip, thigh and knee of each leg
q[2] = -solo.position("FL_FOOT")(q)[2]  # the feet are on the ground
print(solo, f"| trunk {q[2]:.3f} m above the ground")

# %% [markdown]
# ## What fails first: nothing to stand on
#
# `trim` asks for an equilibrium of the free-floating robot. There is none: motors cannot carry the trunk without a ground.

# %%
try:
    solo.system(motors).trim(np.r_[q, np.zeros(18)])
except lg.TrimError as error:
    print(error)

# %% [markdown]
# ## Feet as constraints
#
# Each foot is joined to a frame of the ground by a ball joint: three equations. 18 degrees of freedom minus 12 equations leave 6. We choose
# those of the trunk as the independent ones.

# %%
grounded = solo
for foot in FEET:
    grounded = grounded.add_frame(f"ground_{foot}", "world", solo.position(foot)(q))
standing = lg.ClosedTree(grounded)
for foot in FEET:
    standing = standing.close_loop(foot, foot, f"ground_{foot}", "spherical")
print(standing.mobility(q))

trunk = [f"root_joint.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")]
robot = standing.system(motors, at=q, independent=trunk, wrenches={"base_link": "hybrid"})
rest = robot.trim(np.r_[q, np.zeros(18)])
print(rest.kind, "| torques of the front left leg:", rest.u[:3].round(3), "N m")

# %% [markdown]
# The trim has 12 torques for 6 degrees of freedom. The other 6 combinations squeeze the ground without moving the robot; `trim` takes the
# smallest torques. The ground carries the weight:


# %%
def pressure(x, u):
    """Vertical force of the ground on each foot [N]: positive while the foot pushes."""
    u = np.broadcast_to(u, (len(np.atleast_2d(x)), robot.n_inputs))
    return np.column_stack(
        [
            -robot.quantities[f"reaction_{foot}_ground_{foot}"](0.0, np.atleast_2d(x), u)[:, 2]
            for foot in FEET
        ]
    )


print("feet:", pressure(rest.x, rest.u)[0].round(2), "N; weight", round(9.81 * 2.5, 1), "N")

# %% [markdown]
# ## What fails next: springs in the joints
#
# A PD law in each joint knows neither the weight nor the ground. The trunk sags. The linear model says what happens without
# feedback: six poles to the right, an inverted pendulum in each direction of the trunk.

# %%
linear = robot.linearize(rest)
print(linear.controllability())
print("unstable poles:", np.sort(linear.poles.real)[6:].round(2), "1/s")


def springs(t, x, reference):
    return 3.0 * (q[7:] - x[7:19]) - 0.05 * x[25:37]


push = [lg.Pulse({"base_link.fy": 6.0}, start=0.3, duration=0.1)]
runs = {
    "springs": lg.simulate(robot, springs, x0=rest.x, seconds=1.2, dt=0.005, disturbances=push),
    "springs and trim torques": lg.simulate(
        robot,
        lambda t, x, ref: rest.u[:12] + springs(t, x, ref),
        x0=rest.x,
        seconds=1.2,
        dt=0.005,
        disturbances=push,
    ),
}

# %% [markdown]
# ## The cure: LQR on the manifold
#
# The errors of the system are those of the trunk. LQR uses all twelve motors for them.

# %%
lqr = lg.LQR(robot, rest, Q={"configuration": 400, "velocity": 4}, R=0.3, dt=0.005)
runs["LQR"] = lg.simulate(robot, lqr, x0=rest.x, reference=rest, seconds=1.2, disturbances=push)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4))
for name, run in runs.items():
    axes[1].plot(run.t, 1e3 * run.x[:, 2], label=name)
    axes[2].plot(run.t, 1e3 * run.x[:, 1])
    print(
        f"{name:25} trunk at the end {1e3 * run.x[-1, 2]:.1f} mm high, {1e3 * run.x[-1, 1]:.1f} mm aside"
    )
for state, color in ((rest.x, "0.2"), (runs["springs"].x[-1], "C0")):
    for leg in ("FL", "FR", "HL", "HR"):
        chain = [solo.position(f"{leg}_{part}")(state[:19]) for part in ("HFE", "KFE", "FOOT")]
        axes[0].plot(*np.array(chain)[:, [0, 2]].T, "o-", ms=3, color=color)
    hips = [solo.position(f"{leg}_HFE")(state[:19]) for leg in ("FL", "HL")]
    axes[0].plot(*np.array(hips)[:, [0, 2]].T, lw=5, color=color, alpha=0.6)
axes[0].axhline(0, color="0.6")
axes[0].set(xlabel="x [m]", ylabel="z [m]", title="trim, and after springs alone")
axes[0].set_aspect("equal")
axes[1].set(xlabel="time [s]", ylabel="height of the trunk [mm]")
axes[2].set(xlabel="time [s]", ylabel="sideways [mm]", title="push of 6 N for 0.1 s")
axes[1].legend(fontsize=8)
figure.tight_layout()

# %% [markdown]
# ## Is the model still true?
#
# A constraint also pulls. A real foot cannot: it lifts off. The forces of the run say whether the model holds. With friction 0.6 the
# horizontal part must stay within 0.6 of the vertical one, too.

# %%
run = runs["LQR"]
u = np.zeros((len(run.t), robot.n_inputs))
u[:-1] = run.u
u[-1] = run.u[-1]
vertical = np.vstack([pressure(x, one) for x, one in zip(run.x, u, strict=True)])
figure, ax = plt.subplots(figsize=(7, 3))
ax.plot(run.t, vertical, label=FEET)
ax.axhline(0, color="0.4", lw=1)
ax.set(xlabel="time [s]", ylabel="vertical force [N]", title="force of the ground on each foot")
ax.legend(ncols=4, fontsize=8)
print(
    f"smallest force of a foot {vertical.min():.1f} N: {'all feet stay' if vertical.min() > 0 else 'a foot lifts off'}"
)
plt.show()

# %% [markdown]
# ## Exercises
#
# 1. Give the trim point with the trunk 3 cm lower. Assemble the configuration first.

# %%
answer = ...
check(
    1,
    answer,
    lambda point: (
        np.isclose(point.x[2], q[2] - 0.03, atol=1e-3)
        and np.abs(robot.f(0.0, point.x, point.u)).max() < 1e-6
    ),
    "standing.assemble(q, where={'root_joint.z': …}), then robot.trim(…) with zero velocities.",
)

# %% [markdown]
# 2. Lift the hind right foot: a model whose three other feet are on the ground. Give its number of degrees of freedom.

# %%
answer = ...
check(2, answer, lambda number: number == 18 - 9, "Each ball joint has three equations.")

# %% [markdown]
# 3. Which push along y for 0.1 s, starting at the trim with LQR, makes a foot lift off? Give a force in N, not more than 3 N above the least.


# %%
def smallest(force):
    pushed = lg.simulate(
        robot,
        lqr,
        x0=rest.x,
        reference=rest,
        seconds=0.3,
        disturbances=[lg.Pulse({"base_link.fy": force}, start=0.0, duration=0.1)],
    )
    return min(pressure(x, one).min() for x, one in zip(pushed.x[:-1], pushed.u, strict=True))


# %%
answer = ...
check(
    3,
    answer,
    lambda force: smallest(force) < 0 < smallest(force - 3),
    "Try larger forces until smallest(force) is negative.",
)
