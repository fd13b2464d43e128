# %% [markdown]
# # Legs on the ground: a quadruped and a human stand
#
# Which torques let a robot with legs stand, and which feedback keeps it standing when somebody pushes? Its trunk floats, so no motor
# acts on it directly. The feet on the ground are constraints. We see a free-floating model refuse to stand and a joint controller sag.
# Then `ClosedTree` holds the feet, and trim, linearization and LQR follow as for any other system. A human on two feet is the second
# example: the same calls, and less room to step on.

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
# ## Two feet: a human
#
# The masses, centres and radii of gyration are shares of the whole body, for a man of 73 kg and 1.74 m. Zatsiorsky
# measured them, and [de Leva (1996)](https://doi.org/10.1016/0021-9290(95)00178-6) adjusted them. Shares and lengths
# of legs, trunk and head agree with a second public table. Lengths of the arms and the mass of 73 kg were not
# compared: check them before you use this model for more than a tutorial.
#
# Hips have three joints, knees one and ankles two. Head and arms hang on the trunk without joints. Hips are 18 cm
# apart and soles 7 cm below the ankles: these two are ours.

# %%
MASS = 73.0  # kg
# length [m]; mass over the body's; centre from the upper end and radii about x, y, z over the length
SEGMENTS = {
    "trunk": (0.5319, 0.4346, 0.4486, (0.372, 0.347, 0.191)),
    "head": (0.2033, 0.0694, 0.5976, (0.362, 0.376, 0.312)),
    "upper_arm": (0.2817, 0.0271, 0.5772, (0.285, 0.269, 0.158)),
    "forearm": (0.2689, 0.0162, 0.4574, (0.276, 0.265, 0.121)),
    "hand": (0.0862, 0.0061, 0.7900, (0.628, 0.513, 0.401)),
    "thigh": (0.4222, 0.1416, 0.4095, (0.329, 0.329, 0.149)),
    "shank": (0.4340, 0.0433, 0.4459, (0.255, 0.249, 0.103)),
    "foot": (0.2581, 0.0137, 0.4415, (0.124, 0.245, 0.257)),  # lies along x
}
LENGTH = {name: values[0] for name, values in SEGMENTS.items()}
HEEL, SOLE = 0.06, 0.07  # behind and below the ankle, m
TOE = LENGTH["foot"] - HEEL


def segment(name, up=0.0, center=None):
    """Inertia of a segment whose upper end is `up` above the origin [m]."""
    length, share, middle, radii = SEGMENTS[name]
    place = [0, 0, up - middle * length] if center is None else center
    return lg.SpatialInertia(
        share * MASS, place, share * MASS * np.diag(np.square(length * np.array(radii)))
    )


human = lg.Multibody("human").add_body("trunk", segment("trunk", LENGTH["trunk"]), "free")
neck = [0, 0, LENGTH["trunk"] + 0.07]
human = human.add_body("head", segment("head", LENGTH["head"]), "fixed", "trunk", neck)
for side, y in (("left", 1), ("right", -1)):
    for name, parent, place in (
        ("upper_arm", "trunk", [0, 0.19 * y, LENGTH["trunk"]]),
        ("forearm", f"{side}_upper_arm", [0, 0, -LENGTH["upper_arm"]]),
        ("hand", f"{side}_forearm", [0, 0, -LENGTH["forearm"]]),
    ):
        human = human.add_body(f"{side}_{name}", segment(name), "fixed", parent, place)
    foot = segment("foot", center=[SEGMENTS["foot"][2] * LENGTH["foot"] - HEEL, 0, -SOLE / 2])
    for name, inertia, parent, place, axis in (
        ("hip_yaw", None, "trunk", [0, 0.09 * y, 0], "z"),
        ("hip_roll", None, f"{side}_hip_yaw", None, "x"),
        ("thigh", segment("thigh"), f"{side}_hip_roll", None, "y"),
        ("shank", segment("shank"), f"{side}_thigh", [0, 0, -LENGTH["thigh"]], "y"),
        ("ankle", None, f"{side}_shank", [0, 0, -LENGTH["shank"]], "y"),
        ("foot", foot, f"{side}_ankle", None, "x"),
    ):
        human = human.add_body(f"{side}_{name}", inertia, "revolute", parent, place, axis=axis)
    human = human.add_frame(f"{side}_sole", f"{side}_foot", [0, 0, -SOLE])
muscles = list(human.joints)[1:]
posture = np.r_[human.neutral[:7], np.tile([0, 0, -0.2, 0.4, -0.2, 0], 2)]  # knees bent by 0.4 rad
posture[2] = -human.position("left_sole")(posture)[2]
print(human, f"| hips {posture[2]:.3f} m above the ground")

# %% [markdown]
# A foot that stands flat has six equations, not three: the joint to the ground is "fixed". Two feet take twelve of 18 degrees of freedom, and
# again those of the trunk remain.

# %%
upright = human
for side in ("left", "right"):
    sole = human.placement(f"{side}_sole")(posture)
    upright = upright.add_frame(f"ground_{side}", "world", sole)
upright = lg.ClosedTree(upright)
for side in ("left", "right"):
    upright = upright.close_loop(f"{side}_sole", f"{side}_sole", f"ground_{side}", "fixed")
person = upright.system(
    muscles,
    at=posture,
    independent=[f"trunk.{axis}" for axis in ("x", "y", "z", "rx", "ry", "rz")],
    wrenches={"trunk": "hybrid"},
)
stance = person.trim(np.r_[posture, np.zeros(18)])
poles = person.linearize(stance).poles.real
print(upright.mobility(posture))
print(stance.kind, "| torques of the left leg:", stance.u[:6].round(1), "N m")
print("unstable poles:", np.sort(poles)[6:].round(2), "1/s")


def soles(run):
    """Centre of pressure from the ankle [m] and vertical force [N] of each sole, shape (N, 2)."""
    u = np.zeros((len(run.u), person.n_inputs))
    u[:, : run.u.shape[1]] = run.u
    ahead, force = [], []
    for side in ("left", "right"):
        reaction = person.quantities[f"reaction_{side}_sole_ground_{side}"]
        wrench = -np.array([reaction(0.0, x, one) for x, one in zip(run.x[:-1], u, strict=True)])
        ahead.append(-wrench[:, 4] / wrench[:, 2])
        force.append(wrench[:, 2])
    return np.array(ahead).T, np.array(force).T


# %% [markdown]
# The slowest falling pole has the time constant of an inverted pendulum. Somebody pushes the trunk forwards with 100 N for 0.1 s. Stiff springs about the
# trim point let the human fall slowly. LQR brings the trunk back.


# %%
stiffness = np.tile([300.0, 600, 600, 600, 400, 400], 2)


def stiff(t, x, reference):
    return stance.u[:12] + stiffness * (posture[7:] - x[7:19]) - 0.1 * stiffness * x[25:37]


balance = lg.LQR(person, stance, Q={"configuration": 2000, "velocity": 20}, R=0.01, dt=0.005)


def shoved(law, force, seconds=1.5):
    """Run with a push of some N forwards for 0.1 s."""
    return lg.simulate(
        person,
        law,
        x0=stance.x,
        reference=stance,
        seconds=seconds,
        dt=0.005,
        disturbances=[lg.Pulse({"trunk.fx": force}, start=0.3, duration=0.1)],
    )


human_runs = {"springs and trim torques": shoved(stiff, 100.0), "LQR": shoved(balance, 100.0)}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.6))
for name, run in human_runs.items():
    axes[1].plot(run.t, 1e3 * (run.x[:, 0] - stance.x[0]), label=name)
    axes[2].plot(run.t[:-1], 1e3 * soles(run)[0][:, 0], label=name)
    print(f"{name:25} trunk at the end {1e3 * (run.x[-1, 0] - stance.x[0]):.0f} mm ahead")
for state, color in ((stance.x, "0.2"), (human_runs["springs and trim torques"].x[-1], "C0")):
    frames = ("head", "trunk", "left_shank", "left_ankle", "left_sole")
    body = np.array([human.position(name)(state[:19]) for name in frames])
    axes[0].plot(*body[:, [0, 2]].T, "o-", color=color, lw=3, ms=4)
axes[0].plot([-HEEL, TOE], [0, 0], color="0.6", lw=5)
axes[0].set(xlabel="x [m]", ylabel="z [m]", title="trim, and after springs alone")
axes[0].set_aspect("equal")
axes[1].set(xlabel="time [s]", ylabel="trunk ahead [mm]", title="push of 100 N for 0.1 s")
axes[1].legend(fontsize=8)
axes[2].axhline(1e3 * TOE, color="0.4", ls=":")
axes[2].set(xlabel="time [s]", ylabel="pressure ahead of the ankle [mm]", title="limit: the toes")
figure.tight_layout()
plt.show()

# %% [markdown]
# Is this model still true? The feet must not tip: the centre of pressure has to stay between heel and toes. At rest it lies below the centre of
# mass. The push at which it reaches the toes is the largest that the human answers without a step.

# %%
rest_ahead = soles(human_runs["LQR"])[0][0, 0]
center = human.center_of_mass(posture)[0] - human.position("left_sole")(posture)[0]
print(
    f"pressure at rest {1e3 * rest_ahead:.1f} mm ahead of the ankle, centre of mass {1e3 * center:.1f} mm"
)
for force in (100.0, 200.0, 300.0):
    ahead, down = soles(shoved(balance, force, 0.8))
    print(
        f"push of {force:.0f} N: pressure {1e3 * ahead.min():.0f} to {1e3 * ahead.max():.0f} mm, "
        f"heel {-1e3 * HEEL:.0f}, toes {1e3 * TOE:.0f} mm; smallest force of a sole {down.min():.0f} N"
    )

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
