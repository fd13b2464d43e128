# %% [markdown]
# # Your own robot file: from URDF to predictive control among obstacles
#
# This notebook reads the file of an arm, moves its tool to a pose, and follows a path. MPC then finds a way among
# obstacles. At the end the payload changes without building anything again.

# %%
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import MPC, ComputedTorque
from lgcontrol.io import parse_urdf
from lgcontrol.mechanics import InverseKinematics, LinkCapsules
from lgcontrol.optimal import Bound, Residual, Sphere, keep_out, retime

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
# ## Follow a path as fast as torques and speeds allow
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
# ## Predictive control among obstacles, with a payload that may change
#
# A ball stands in the way. The links are capsules. The tool's goal (three parameters) and the mass of the lower
# link with its payload can change while the loop runs. Nothing is compiled again.

# %%
carrying = tree.symbolic("lower.mass")
plant = carrying.system()
ball = Sphere([0.55, 0.5, 0.75], 0.12)
links = LinkCapsules(tree, {"lower": ([0, 0, 0.05], [0, 0, 0.5], 0.05)})


def missed(t, x, u, p):
    return place(x[:3])[:3] - p[-3:]


limits = tree.limits
mpc = MPC(
    plant,
    horizon=20,
    dt=0.04,
    Q={"configuration": 0.01, "velocity": 0.05},
    R=1e-4,
    residuals=[Residual(missed, 50.0, terminal=50.0, name="tool")],
    bounds=[
        keep_out(links.ends("lower"), ball, radius=0.05 + 0.03, soft=1000, name="ball"),
        Bound("configuration", limits["lower"], limits["upper"], soft=100),
        Bound("velocity", -limits["velocity"], limits["velocity"], soft=30),
    ],
    parameters=[f"goal.{axis}" for axis in "xyz"],
)
there = dict(zip(("goal.x", "goal.y", "goal.z"), place(found.q)[:3], strict=True))
mpc.parameters = there
x0 = np.r_[home, np.zeros(3)]
free = lg.simulate(plant, mpc, x0=x0, reference=x0, seconds=2.0)


def report(run):
    tips = place(run.x[:, :3])[:, :3]
    ends = [place(q)[:3] for q in run.x[:, :3]]
    print("tool off its goal:", np.linalg.norm(tips[-1] - place(found.q)[:3]).round(4), "m")
    print(
        "tool to the ball:",
        (np.linalg.norm(np.array(ends) - ball.center, axis=1).min() - 0.12).round(3),
        "m",
    )


report(free)

# %%
heavy = {"lower.mass": 3.0}
mpc.reset()
mpc.parameters = there | heavy
loaded = lg.simulate(plant, mpc, x0=x0, reference=x0, seconds=2.0, p=heavy)
report(loaded)

# %%
import matplotlib.pyplot as plt

from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

plt.step(free.t[: len(free.u)], free.u[:, 1], where="post", label="1 kg")
plt.step(loaded.t[: len(loaded.u)], loaded.u[:, 1], where="post", label="3 kg")
plt.xlabel("time [s]")
plt.ylabel("torque of the shoulder [N m]")
plt.legend()

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
