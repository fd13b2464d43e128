# %% [markdown]
# # From a constraint to a controller
#
# How is a closed mechanism controlled? It is a tree of bodies with further equations. First we differentiate the
# equation of a slider-crank twice, as textbooks do. The mechanism comes apart, and its linear model has states that
# no input reaches. Then every step stays on the manifold of the constraints. A slider-crank, a four-bar linkage, LQR
# in one independent angle and a delta robot under MPC follow.

# %%
import casadi as ca
import control
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import MPC
from lgcontrol.mechanics import ClosedTree, Multibody, SpatialInertia
from lgcontrol.models import delta_robot_tree, four_bar_tree
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

# %% [markdown]
# ## What fails first: the equation differentiated twice
#
# Two bars hang on one another. The end of the second bar, the piston, has to stay on the x axis: $\varphi(q) = 0$. Its second derivative
# $J \ddot q + \dot J \dot q = 0$ is linear in the accelerations, so it goes below the equations of motion, with a multiplier.

# %%
crank, rod = 0.2, 0.5
bars = (
    Multibody("slider_crank")
    .add_body(
        "crank", SpatialInertia.rod(0.5, crank, [1, 0, 0], [crank / 2, 0, 0]), "revolute", axis="-y"
    )
    .add_body(
        "rod",
        SpatialInertia.rod(0.8, rod, [1, 0, 0], [rod / 2, 0, 0]),
        "revolute",
        "crank",
        [crank, 0, 0],
        axis="-y",
    )
    .add_frame("piston", "rod", [rod, 0, 0])
)
q, v = ca.SX.sym("q", 2), ca.SX.sym("v", 2)
height = bars.position("piston")(q)[2]
J = ca.jacobian(height, q)
motion = ca.blockcat([[bars.mass_matrix(q), J.T], [J, 0]])
right = ca.vertcat(-bars.inverse_dynamics(q, v, ca.SX.zeros(2)), -ca.jtimes(J @ v, q, v))
torque = ca.SX.sym("torque")
solved = ca.solve(motion, right + ca.vertcat(torque, 0, 0))[:2]
accelerations = ca.Function("accelerations", [q, v, torque], [solved])
by_hand = lg.System(
    "slider-crank by hand",
    lg.Product(angles=lg.Rn(2, units="rad"), rates=lg.Rn(2, units="rad/s")),
    lambda t, x, u, p: ca.vertcat(x[2:], accelerations(x[:2], x[2:], u)),
    inputs=[lg.Input("crank", "N m")],
)
STEP, SECONDS = 0.01, 20
closed = np.array([1.0, -1.0 - np.arcsin(crank * np.sin(1.0) / rod)])  # piston on the axis
slope = np.array(ca.Function("slope", [q], [J])(closed)).ravel()
moving = np.r_[closed, 8.0, -8.0 * slope[0] / slope[1]]  # and moving along it
apart = by_hand.rollout(moving, [0.0], STEP, steps=round(SECONDS / STEP), method="rk4")
off_axis = np.abs(bars.position("piston")(apart.x[:, :2])[:, 2])
print(f"piston off its axis after {SECONDS} s: {1e3 * off_axis[-1]:.1f} mm")

at_rest = [np.array(accelerations(closed, [0, 0], tau)).ravel() for tau in (0.0, 1.0)]
holding = -at_rest[0][0] / (at_rest[1] - at_rest[0])[0]  # N m: no acceleration of the crank
print(by_hand.linearize(np.r_[closed, 0, 0], [holding]).controllability())

# %% [markdown]
# Errors of $\varphi$ are integrated twice and nothing brings them back: the piston leaves its axis. A linear model of all four states has
# states that no torque reaches, since the equation fixes them. LQR does not exist for it.
#
# ## The cure: steps on the manifold
#
# The same equation is one row `φ(t, q, p)` of a `ClosedTree`.

# %%
slider = ClosedTree(bars).constrain(
    "guide", "height", lambda t, q, p: bars.position("piston")(q)[2], "m"
)
q = slider.assemble(where={"crank": 1.0})
print("angles", q.round(4), "| piston at", bars.position("piston")(q).round(12))
print(slider.mobility(q))

# %% [markdown]
# The System keeps the state of the whole tree, and every step ends on the constraint. The multiplier is the force of the
# guide on the piston.

# %%
system = slider.system(["crank"], at=q, independent="crank")
start = slider.state(q, speeds={"crank": 8.0})
run = system.rollout(start, [0.0], STEP, steps=round(SECONDS / STEP))
gap = system.quantities["constraint_gap"](0.0, run.x)
force = system.quantities["multipliers"](run.t, run.x, np.zeros((len(run.t), 1)))
energy = sum(system.quantities[k](0.0, run.x) for k in ("kinetic_energy", "potential_energy"))
print(f"largest gap {abs(gap[:, 0]).max():.0e} m, of its rate {abs(gap[:, 1]).max():.0e} m/s")
print(f"energy drifts by {np.ptp(energy):.1e} of {energy[0, 0]:.3f} J")
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
axes[0].semilogy(apart.t, off_axis + 1e-17, label="differentiated twice")
axes[0].semilogy(run.t, np.abs(gap[:, 0]) + 1e-17, label="on the manifold")
axes[0].set(xlabel="time [s]", ylabel="piston off its axis [m]")
axes[0].legend()
axes[1].plot(run.t[:150], -force[:150])
axes[1].set(xlabel="time [s]", ylabel="force of the guide [N]")
figure.tight_layout()
plt.show()

# %% [markdown]
# ## A joint that closes a loop: the four-bar linkage
#
# `close_loop` writes the equations of a joint between two frames. In a plane some of them say nothing new; the analysis
# names them, and the equations of motion are solved all the same.

# %%
linkage = four_bar_tree(joint="revolute")
q = linkage.assemble(where={"crank": 0.5})
print(linkage.mobility(q))
bar = linkage.system(["crank"], at=q, independent="crank")
print(bar.error_names)

# %% [markdown]
# ### Linearization on the manifold
#
# Two of the six states are independent. E selects the crank's angle and rate, and N(x) is a basis of the tangent space
# with `E N = 1`. The errors `z = E minus(x, x_ref)` then have the matrix `A_z = E (Df − ad_f) N`. It is exact at an equilibrium and
# along a motion, and python-control takes it.

# %%
rest = bar.trim(np.concatenate([q, np.zeros(3)]))
lin = bar.linearize(rest)
print(lin.kind, "| torque that holds it:", rest.u.round(3), "N m")
print(lin.A.round(4), lin.B.round(4).ravel())
K, _, poles = control.lqr(lin.to_control(), np.diag([100, 1]), [[0.1]])
print("K =", K.round(2), "| poles", poles.round(2))


# %%
def feedback(t, x, reference):
    return rest.u - K @ bar.error(x, reference.x)


away = linkage.assemble(q, where={"crank": 1.3})
run = lg.simulate(
    bar, feedback, x0=np.concatenate([away, np.zeros(3)]), reference=rest, seconds=2, dt=0.005
)
run.plot()

# %% [markdown]
# ### Singular positions
#
# A parallelogram, all of whose bars are in line at zero: there its loop loses a row, and the crank does not decide the
# others. A simulation runs through without notice; ask.

# %%
flat = four_bar_tree((0.3, 0.9, 0.3), 0.9)
print(flat.mobility(np.zeros(3)))
q = flat.assemble(where={"crank": 0.4})
parallelogram = flat.system(["crank"], at=q, independent="crank")
through = parallelogram.rollout(flat.state(q, speeds={"crank": -2.0}), [0.0], 0.002, steps=100)
for position in flat.mobility(through).singular_positions:
    print(position)

# %% [markdown]
# The other kind of singular position concerns the drives. "conditioning" is 0 where the independent joints do not determine the
# others. A crank leads the linkage through its whole turn. A rocker does not: it stops where crank and coupler are in line. A plan can
# bound "conditioning" as a quantity of the system.

# %%
angles = np.linspace(0, 2 * np.pi, 181)
turn, guess = [], linkage.assemble(where={"crank": 0.0})
for angle in angles:
    guess = linkage.assemble(guess, where={"crank": angle})
    turn.append(np.concatenate([guess, np.zeros(3)]))
figure, axes = plt.subplots(figsize=(7, 2.8))
for joint in ("crank", "rocker"):
    chosen = linkage.system(["crank"], at=turn[20][:3], independent=joint)
    axes.plot(
        np.degrees(angles),
        chosen.quantities["conditioning"](0.0, turn),
        label=f"{joint} independent",
    )
axes.set(xlabel="angle of the crank [°]", ylabel="conditioning")
axes.legend()
plt.show()

# %% [markdown]
# ## A delta robot under predictive control
#
# Twelve joints and nine equations; the errors are the angles and rates of the three arms. The plan is a motion of the
# whole mechanism: each of its states keeps the loops. The true robot has a load that the model does not know.

# %%
robot = delta_robot_tree()
arms = ["arm1", "arm2", "arm3"]
model = robot.system(arms, independent=arms)
print(robot.mobility(model.home[: robot.tree.nq]))
goal = model.trim(
    np.r_[
        robot.assemble(where={"platform.x": 0.1, "platform.y": 0.05, "platform.z": -0.8}),
        np.zeros(12),
    ]
)
mpc = MPC(
    model, horizon=20, dt=0.02, method="midpoint", Q={"configuration": 50, "velocity": 0.1}, R=0.01
)
true = delta_robot_tree(load=0.2).system(arms, independent=arms)
run = lg.simulate(true, mpc, x0=model.home, reference=goal, seconds=1.0)
gap = model.quantities["constraint_gap"](0.0, mpc.plan.x)
print(f"largest gap of the last plan: {abs(gap[:, :9]).max():.0e} m")
print("\n".join(run.summary()))

# %%
place = robot.tree.position("platform")
way = place(run.x[:, : robot.tree.nq])
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2))
axes[0].plot(run.t, way, label=["x", "y", "z"])
axes[0].plot(run.t, np.broadcast_to(place(goal.x[: robot.tree.nq]), way.shape), "k:", lw=0.8)
axes[0].set(xlabel="time [s]", ylabel="platform [m]")
axes[0].legend()
axes[1].step(run.t[:-1], run.u[:, :3], where="post", label=arms)
axes[1].set(xlabel="time [s]", ylabel="torque [N m]")
axes[1].legend()
figure.tight_layout()

# %% [markdown]
# **Try:** `lgcontrol run delta-pick`, and `lgcontrol run five-bar-reach`: a bound on "conditioning" keeps its plan away
# from a singularity. `two_arms()` has two UR5 that hold one bar. `robot.drive("arm1", lambda t: …)` drives a joint in time.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. Give a configuration of the four-bar linkage with its crank at 1.0 rad and its loop closed.

# %%
answer = ...
check(
    1,
    answer,
    lambda q: (
        np.isclose(q[0], 1.0)
        and np.abs(bar.quantities["constraint_gap"](0.0, np.r_[q, np.zeros(3)])).max() < 1e-9
    ),
    "linkage.assemble(where=…) closes the loop.",
)

# %% [markdown]
# 2. Give the torque in N m that holds the linkage at a crank angle of 1.0 rad.

# %%
at_one = np.r_[linkage.assemble(where={"crank": 1.0}), np.zeros(3)]

# %%
answer = ...
check(
    2,
    answer,
    lambda torque: np.abs(bar.f(0.0, at_one, np.array([torque]))[3:]).max() < 1e-6,
    "Trim the system there; u is the torque.",
)

# %% [markdown]
# 3. At that angle the crank turns with 1 rad/s. Give the rate of the rocker in rad/s.

# %%
answer = ...
check(
    3,
    answer,
    lambda rate: np.isclose(rate, linkage.state(at_one[:3], speeds={"crank": 1.0})[5]),
    "linkage.state(q, speeds=…) returns all rates.",
)
