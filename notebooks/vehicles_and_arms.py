# %% [markdown]
# # A closed loop for each kind of vehicle and arm
#
# What does a closed loop look like for each kind of vehicle and arm? Each section is one plant, one controller and one run, on the group on
# which the plant moves: SO(3), SE(2), SE(3), Schönflies motions, the joints of an arm, a closed mechanism. The calls are the same everywhere:
# trim or plan, control, simulate, plot.

# %%
import tempfile
from pathlib import Path

import control.flatsys
import numpy as np

import lgcontrol as lg
from lgcontrol import models
from lgcontrol.controllers import LQR, TVLQR, ComputedTorque, FlatFeedforward, ThrustVectorPD
from lgcontrol.mechanics import (
    Buoyancy,
    Gravity,
    LinearDrag,
    RigidBody,
    SpatialInertia,
    WrenchInput,
)


def final_error(system, run, goal):
    """Largest entry of the error on the group at the end of a run."""
    return np.abs(system.error(run.x[-1], goal)).max()


# %% [markdown]
# ## A satellite on SO(3)
#
# The satellite is turned by 172° about an axis that is none of its own. No attitude is special for the MPC: the error is a
# rotation vector on the group.

# %%
satellite = models.satellite()
rest = satellite.trim()
mpc = lg.MPC(satellite, horizon=30, dt=2.0, Q={"pose": 1, "twist": 100}, R=0.1)
turned = satellite.state.join(pose=lg.SO3.exp([1.5, -1.8, 1.9]), twist=np.zeros(3))
run = lg.simulate(satellite, mpc, x0=turned, reference=rest, seconds=320)
print(run.is_success, final_error(satellite, run, rest.x))
run.plot()

# %% [markdown]
# ## A quadrotor on SE(3)
#
# It is released upside down, has to hover two metres away, and is pushed on the way. `ThrustVectorPD` points the thrust to where the
# position error wants it, and knows nothing of the limits ahead. MPC plans with the limits of the rotors. Both recover; MPC falls less
# deep and is there sooner.

# %%
quad = models.quadrotor()
hover = quad.trim(position=[2, 1, 1])
mpc = lg.MPC(
    quad,
    horizon=40,
    dt=0.05,
    Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
    R=0.1,
    terminal={"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]},
)
tilt = np.radians(170) * np.array([1.0, 1.0, 0.0]) / np.sqrt(2)
start = quad.state.join(pose=lg.SE3.from_rotation_vector(tilt), twist=np.zeros(6))
gusts = lg.HeldNoise(
    {f"force.{axis}": 0.5 for axis in "xyz"} | {f"torque.r{axis}": 0.01 for axis in "xyz"}, dt=0.05
)
push = lg.Kick(1.5, {"twist": [1, 0, -1, 3, -2, 1]})
for name, law in (("ThrustVectorPD", ThrustVectorPD(quad, dt=0.01)), ("MPC", mpc)):
    run = lg.simulate(
        quad, law, x0=start, reference=hover, seconds=4, disturbances=[gusts, push], seed=1
    )
    away = np.linalg.norm(run.block_error("pose")[:, :3], axis=1)
    print(
        f"{name:15} lowest {run.block('pose')[:, 2].min():.2f} m, "
        f"within 0.3 m from {run.t[np.flatnonzero(away > 0.3)[-1]]:.2f} s, "
        f"{1e3 * np.median(run.control['call_time']):.2f} ms a call"
    )
run.plot_path(frames=16)

# %% [markdown]
# Results leave as `.npz` files without pickled objects, or as python-control's own.

# %%
with tempfile.TemporaryDirectory() as folder:
    again = lg.SimulationResult.load(run.save(Path(folder) / "recovery.npz"))
print(bool((again.x == run.x).all()), run.to_control().outputs.shape)

# %% [markdown]
# ## A ship on SE(2)
#
# The vessel has to move sideways by 2 m and turn by 115°. Wind pushes it all the time; the MPC estimates the push and
# holds the berth without an offset.

# %%
from lgcontrol.simulation import Pulse

vessel = models.surface_vessel()
berth = vessel.trim(position=[0, 0])
mpc = lg.MPC(
    vessel, horizon=25, dt=0.4, Q={"pose": [4, 4, 4], "twist": 4}, R=0.05, disturbance="force"
)
start = vessel.state.join(pose=lg.SE2.from_angle(2.0, [0.5, -2.0]), twist=np.zeros(3))
wind = Pulse({"force.x": 0.2, "force.y": 0.3}, start=0.0, duration=60.0)
run = lg.simulate(vessel, mpc, x0=start, reference=berth, seconds=40, disturbances=[wind])
print(run.is_success, final_error(vessel, run, berth.x))
run.plot_path()

# %% [markdown]
# ## A car on SE(2) that cannot slip
#
# The rover stands beside its goal and cannot move sideways. Its position is a flat output: `control.flatsys` plans, the plan
# comes back as a trajectory, and TVLQR follows it from a start that is 0.2 m and 20° off.

# %%
from lgcontrol.mechanics import to_flat_system

rover = models.rover()
ends = [0, 0, 1, 0, 0.3, 0], [4, 2, 0, 1, 0.3, 0]  # pose, speed, turn rate
plan = control.flatsys.point_to_point(
    to_flat_system(rover),
    6.0,
    ends[0],
    [0, 0],
    ends[1],
    [0, 0],
    basis=control.flatsys.PolyFamily(10),
)
path = lg.Trajectory.from_control(plan, rover, np.linspace(0, 6, 301))
follow = TVLQR(rover, path, Q={"pose": 10, "twist": 1}, R=0.01)
off = rover.state.plus(path.x[0], [0.0, 0.2, np.deg2rad(20), 0, 0])
run = lg.simulate(rover, follow, x0=off, seconds=6)
print(run.is_success, final_error(rover, run, path.x[-1]))
run.plot_path()

# %% [markdown]
# ## An underwater vehicle on SE(3)
#
# A helix is a relative equilibrium: constant velocity in the axes of the body, a linear model that does not change with time.
# One LQR gain holds the whole helix.

# %%
auv = models.underwater_vehicle()
helix = auv.trim(where={"twist.vx": 0.6, "twist.vz": 0.15, "twist.wz": 0.3})
print(auv.linearize(helix))
lqr = LQR(auv, helix, Q={"pose": 20, "twist": 5}, R=0.01, dt=0.1)
off = auv.state.plus(helix.x, [0.5, -0.5, 0.3, 0.2, -0.2, 0.4, *np.zeros(6)])
run = lg.simulate(auv, lqr, x0=off, seconds=40)
print(run.is_success, np.abs(run.error[-1]).max())
run.plot_path()

# %% [markdown]
# ## A blimp on Schönflies motions
#
# A body that keeps level moves along three axes and turns about one. `RigidBody` writes its equation
# $M \dot v - \mathrm{ad}_v^T M v = \tau$ on any group; here on `Schoenflies`, with drag, weight, lift and three drives.

# %%
VOLUME, AIR = 7.0, 1.2  # m³, kg/m³
body = RigidBody(
    "blimp",
    lg.Schoenflies,
    SpatialInertia(8.5, [0, 0, -0.4], np.diag([2.0, 7.0, 7.0])),
    [
        WrenchInput(("x", "z", "rz"), name="drive"),  # no thruster pushes sideways
        Gravity(),
        Buoyancy(VOLUME, density=AIR),
        LinearDrag([0.8, 3, 3, 0, 0, 4]),
    ],
)
blimp = body.system()
hover = blimp.trim(position=[0, 0, 10])
mpc = lg.MPC(blimp, horizon=40, dt=0.25, Q={"pose": 1, "twist": 0.3}, R=0.02)
start = blimp.state.join(pose=[-4, 3, 9, np.cos(2), np.sin(2)], twist=np.zeros(4))
run = lg.simulate(blimp, mpc, x0=start, reference=hover, seconds=60)
print(run.is_success, final_error(blimp, run, hover.x))
run.plot_path()

# %% [markdown]
# ## An arm
#
# Computed torque follows a smooth path of the joints, from a start that is 0.05 rad off in each. Its samples are 2 ms apart.

# %%
tree, arm = models.ur5_tree(), models.ur5()
q = np.array([[0, -1.2, 1.5, -1.8, -1.5, 0], [1.0, -0.8, 1.1, -1.2, -1.5, 0.5]])
path = lg.Waypoints(tree.configuration, [0, 1.5, 3.0], [q[0], q[1], q[0]], order=5)
law = ComputedTorque(tree, dt=0.002)
start = np.concatenate([q[0] + 0.05, np.zeros(6)])
run = lg.simulate(arm, law, x0=start, reference=path, seconds=3)
print(run.is_success, np.abs(run.error[-1]).max())
run.plot()

# %% [markdown]
# ## A SCARA
#
# Two joints swing, a quill slides and spins: the tool moves on the Schönflies group. It picks and places in 0.8 s.

# %%
tree, scara = models.scara_tree(), models.scara()
q = np.array([[0.3, 0.8, -0.02, 0.0], [-0.7, 1.4, -0.1, 1.5]])
path = lg.Waypoints(tree.configuration, [0, 0.4, 0.8], [q[0], q[1], q[0]], order=5)
law = ComputedTorque(tree, frequency=15.0, dt=0.002)
start = np.concatenate([q[0] + [0.02, 0.02, 0.0, 0.02], np.zeros(4)])
run = lg.simulate(scara, law, x0=start, reference=path, seconds=1.0)
print(run.is_success, np.abs(run.error[-1]).max())
run.plot_path()

# %% [markdown]
# ## A Stewart platform on six legs
#
# Six legs close five loops. The errors are those of the platform, and LQR drives the legs. It starts 8 cm aside and 4 cm too high.

# %%
closed, platform = models.stewart_platform_tree(), models.stewart_platform()
rest = platform.trim(platform.home)
lqr = LQR(platform, rest, Q={"configuration": 1e6, "velocity": 1e3}, R=1e-3, dt=0.002)
aside = closed.assemble(where={"platform.x": 0.08, "platform.y": -0.05, "platform.z": 0.74})
run = lg.simulate(platform, lqr, x0=closed.state(aside), reference=rest, seconds=1.0)
print(run.is_success, np.abs(run.error[-1]).max(), "each leg carries", rest.u[0].round(1), "N")
run.plot_path()

# %% [markdown]
# ## A spacecraft with an arm
#
# The free-flying base and the seven joints are one tree. The tool's pose on SE(3) is the task; the posture asks the base to
# stay where it is. Thrusters and joints share the work, and the base is back within 2 mm and 2 mrad.

# %%
from lgcontrol.controllers import OperationalSpace

tree, craft = models.space_arm_tree(), models.space_arm()
ready = np.concatenate([lg.SE3.identity, [0, 0.3, 0.8, 0.7, 0.3, 0.2, 0]])
posture = np.concatenate([ready, np.zeros(tree.nv)])
tool = tree.placement("tool")
goal = lg.SE3.plus(tool(ready), [-0.3, 0.2, -0.2, 0.2, 0.3, -0.4])
law = OperationalSpace(
    tree,
    "tool",
    system=craft,
    frequency=0.8,
    posture=posture,
    posture_frequency=[0.5] * 6 + [0.2] * 7,
    dt=0.02,
    reference=goal,
)
run = lg.simulate(craft, law, x0=posture, seconds=20)
end = run.x[-1, : tree.nq]
print(run.is_success, np.abs(lg.SE3.minus(tool(end), goal)).max())
print("base moved by", np.abs(lg.SE3.log(end[:7])).max())
run.plot()

# %% [markdown]
# ## The same spacecraft with springs in its joints
#
# `elastic_space_arm` has a spring behind each motor of the arm. `FlatFeedforward` computes the motors' torques from the motion of the links, up
# to their snap, and the base is held by its thrusters.

# %%
elastic, soft = models.elastic_space_arm_tree(), models.elastic_space_arm()
other = np.concatenate([lg.SE3.identity, [0.5, 0.6, 1.2, 0.2, 0.5, 0.0, 0.4]])
path = lg.Waypoints(elastic.tree.configuration, [0, 4.0], [ready, other], order=9)
law = FlatFeedforward(
    elastic,
    reference=path,
    stiffness=[200] * 3 + [100] * 3 + [50] * 7,
    damping=[200] * 3 + [50] * 3 + [10] * 7,
    dt=0.005,
)
run = lg.simulate(soft, law, x0=path.states(soft, 0.0)[0], reference=path, seconds=5)
place = elastic.tree.placement("tool")
followed = lg.SE3.minus(place(run.x[:, : elastic.tree.nq]), place(path(run.t).x))
print(run.is_success, "largest error of the tool", np.abs(followed).max())

# %% [markdown]
# ## An underwater vehicle with an arm
#
# The tool stays where it is while a wave pushes the vehicle for 2 s. Eight thrusters and four joints hold it together; the
# controller does not know the wave.

# %%
tree, diver = models.underwater_vehicle_arm_tree(), models.underwater_vehicle_arm()
ready = np.concatenate([lg.SE3.identity, [0, 0.7, 0.6, 0]])
posture = np.concatenate([ready, np.zeros(tree.nv)])
tool = tree.placement("tool")
held = tool(ready)
law = OperationalSpace(
    tree,
    "tool",
    system=diver,
    frequency=8.0,
    posture=posture,
    posture_frequency=[1.0] * 6 + [0.5] * 4,
    dt=0.02,
    reference=held,
)
off = diver.state.plus(posture, [0.1, -0.1, 0.05, 0.05, -0.1, *[0.1] * 5, *np.zeros(10)])
wave = Pulse({"force.x": 6.0, "torque.rz": 0.5}, start=5.0, duration=2.0)
run = lg.simulate(diver, law, x0=off, seconds=20, disturbances=[wave])
error = np.abs(lg.SE3.minus(tool(run.x[:, : tree.nq]), held)).max(axis=1)
print(run.is_success, "largest error", error[run.t > 4].max(), "at the end", error[-1])
run.plot()
