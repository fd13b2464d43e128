# %% [markdown]
# # Your own robot file: from URDF to predictive control among obstacles
#
# How does a robot file get to predictive control? We read the file of an arm and choose a goal for its tool. First the arm goes there
# as many arms do, by a PD law in each joint. It sags, exceeds its limits and hits a ball. The file knows enough to avoid all three:
# masses for computed torque, limits for the fastest path, links as capsules for MPC. At the end the payload changes without building
# anything again.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import MPC, ComputedTorque
from lgcontrol.io import parse_urdf
from lgcontrol.mechanics import InverseKinematics, LinkCapsules
from lgcontrol.optimal import Bound, Residual, Sphere, keep_out, retime
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

link = """<link name="{0}"><inertial><origin xyz="0 0 0.25"/><mass value="{1}"/>
  <inertia ixx="0.02" iyy="0.02" izz="0.004" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
joint = """<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>
  <origin xyz="0 0 {3}"/><axis xyz="{4}"/>
  <limit lower="-2.6" upper="2.6" effort="60" velocity="4"/></joint>"""
text = f"""<robot name="mine"><link name="base"/><link name="tool"/>
  {link.format("column", 3)}{link.format("upper", 2)}{link.format("lower", 1)}
  {joint.format("turn", "base", "column", 0, "0 0 1")}
  {joint.format("shoulder", "column", "upper", 0.4, "0 1 0")}
  {joint.format("elbow", "upper", "lower", 0.5, "0 1 0")}
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/>
  <origin xyz="0 0 0.5"/></joint></robot>"""
tree = lg.Multibody.from_urdf(parse_urdf(text))
arm = tree.system()
tree

# %% [markdown]
# ## Put the tool somewhere
#
# Three joints place a point, not a whole pose: the error is that of the position.

# %%
place = tree.placement("tool")
home = np.array([0.0, 0.6, 1.0])
goal = np.array([1.4, 0.9, 0.7])
found = InverseKinematics(tree, "tool").solve(place(goal), home, restarts=5)
print(found.status, found.q.round(3))

# %% [markdown]
# ## What fails first: a PD law in each joint
#
# Each motor is a spring and a damper towards the goal. A ball stands in the way. The gains are no accident: softer ones sag more, stiffer
# ones ask for more torque.

# %%
ball = Sphere([0.55, 0.5, 0.75], 0.12)
RADIUS = 0.05  # of the lower link, m
limits = tree.limits


def report(name, run):
    """Print where the tool ends, and how far the lower link stays from the ball."""
    tips, elbows = place(run.x[:, :3])[:, :3], tree.position("lower")(run.x[:, :3])
    share = np.linspace(0.1, 1, 20)[:, None, None]
    body = elbows + share * (tips - elbows)
    gap = np.linalg.norm(body - ball.center, axis=2).min() - ball.radius - RADIUS
    off = np.linalg.norm(tips[-1] - place(found.q)[:3])
    speed = np.abs(run.x[:, 3:]).max()
    print(
        f"{name:26} tool off by {1e3 * off:4.0f} mm, link to ball {1e3 * gap:+4.0f} mm, "
        f"fastest joint {speed:.1f} of {limits['velocity'][0]:g} rad/s"
    )


proportional, damping = np.array([60.0, 120.0, 40.0]), np.array([6.0, 12.0, 4.0])
for stiffer in (0.5, 1.0, 4.0):

    def springs(t, x, reference, k=stiffer):
        return k * proportional * (found.q - x[:3]) - np.sqrt(k) * damping * x[3:]

    hanging = lg.simulate(arm, springs, x0=np.r_[home, np.zeros(3)], seconds=2.0, dt=0.005)
    report(f"PD, gains times {stiffer:g}", hanging)

# %% [markdown]
# Gravity pulls the tool down, whatever the gains. Joints turn faster than their limit, and the lower link goes through the ball.
#
# ## The first cure: the masses in the file
#
# Computed torque carries the weight and follows a path. The path comes next.
#
# ### Follow a path as fast as torques and speeds allow
#
# `retime` finds the fastest profile along the straight way in joint space; computed torque follows it.

# %%
way = lg.Waypoints(tree.configuration, [0, 1], [home, found.q], order=1)
profile = retime(way, system=arm, velocity=3.0)  # of 4 rad/s: feedback has the rest
print(profile)
track = ComputedTorque(tree, frequency=10.0, dt=0.01)
start = np.r_[home + [0.02, -0.02, 0.02], np.zeros(3)]
run = lg.simulate(arm, track, x0=start, reference=profile.motion, seconds=profile.t[-1] + 0.5)
print("\n".join(run.summary()))

# %%
run.plot()

# %% [markdown]
# The arm arrives, and no joint is too fast. The straight way still leads through the ball:

# %%
report("computed torque", run)

# %% [markdown]
# ## The second cure: predictive control among obstacles, with a payload that may change
#
# The links are capsules. The tool's goal (three parameters) and the mass of the lower
# link with its payload can change while the loop runs. Nothing is compiled again.

# %%
carrying = tree.symbolic("lower.mass")
plant = carrying.system()
links = LinkCapsules(tree, {"lower": ([0, 0, 0.05], [0, 0, 0.5], RADIUS)})


def missed(t, x, u, p):
    return place(x[:3])[:3] - p[-3:]


mpc = MPC(
    plant,
    horizon=20,
    dt=0.04,
    Q={"configuration": 0.01, "velocity": 0.05},
    R=1e-4,
    residuals=[Residual(missed, 50.0, terminal=50.0, name="tool")],
    bounds=[
        keep_out(links.ends("lower"), ball, radius=RADIUS + 0.03, soft=1000, name="ball"),
        Bound("configuration", limits["lower"], limits["upper"], soft=100),
        Bound("velocity", -limits["velocity"], limits["velocity"], soft=30),
    ],
    parameters=[f"goal.{axis}" for axis in "xyz"],
)
there = dict(zip(("goal.x", "goal.y", "goal.z"), place(found.q)[:3], strict=True))
mpc.parameters = there
x0 = np.r_[home, np.zeros(3)]
free = lg.simulate(plant, mpc, x0=x0, reference=x0, seconds=2.0)
report("MPC, 1 kg", free)

# %%
heavy = {"lower.mass": 3.0}
mpc.reset()
mpc.parameters = there | heavy
loaded = lg.simulate(plant, mpc, x0=x0, reference=x0, seconds=2.0, p=heavy)
report("MPC, 3 kg", loaded)

# %%
plt.step(free.t[: len(free.u)], free.u[:, 1], where="post", label="1 kg")
plt.step(loaded.t[: len(loaded.u)], loaded.u[:, 1], where="post", label="3 kg")
plt.xlabel("time [s]")
plt.ylabel("torque of the shoulder [N m]")
plt.legend()
plt.show()

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. Give joint angles with which the tool is at (0.5, 0.3, 0.7) m.

# %%
answer = ...
check(
    1,
    answer,
    lambda q: np.linalg.norm(place(q)[:3] - [0.5, 0.3, 0.7]) < 1e-3,
    "InverseKinematics(tree, 'tool').solve(pose, …); three joints reach the position alone.",
)

# %% [markdown]
# 2. Give the torques that hold the arm at `home`.

# %%
answer = ...
check(
    2,
    answer,
    lambda torque: np.abs(arm.f(0.0, np.r_[home, np.zeros(3)], torque)[3:]).max() < 1e-6,
    "Inverse dynamics with zero velocity and acceleration.",
)

# %% [markdown]
# 3. Give the profile along the same way with a speed limit of 1.5 rad/s.

# %%
answer = ...
check(
    3, answer, lambda slow: slow.t[-1] > 1.3 * profile.t[-1], "retime(way, system=arm, velocity=…)"
)
