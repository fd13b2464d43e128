# %% [markdown]
# # Your own vehicle: a car, from its equations to parking
#
# How does a car get from its equations to parking? A vehicle is a `System`: a group for its state, a field, inputs with their limits. We
# first write the equations of the textbook, with the heading as a number. The car then drives beside its road, and a turn is not an
# equilibrium. With the pose on SE(2) both work, and so do predictive control and plans around obstacles.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import LQR, MPC
from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import Bound, Capsule, InteriorPointSolver, keep_out
from lgcontrol.plotting import plot_path, style
from lgcontrol.scene import wheeled_body

plt.style.use(style())  # the look of lgcontrol's own figures

WHEELBASE = 2.7
inputs = [lg.Input("push", "m/s²", -4, 2), lg.Input("turn", "rad/s", -0.6, 0.6)]

# %% [markdown]
# ## What fails first: the heading as a number
#
# The equations of the textbook have five numbers: x, y, heading, speed and steering angle. The car shall follow a road to the west. The road's
# heading is 180°. The car's compass says −175°, so the car is off by 5° and 1 m.


# %%
def textbook(t, x, u, p):
    heading, speed, steering = x[2], x[3], x[4]
    rate = speed * ca.tan(steering) / WHEELBASE
    return ca.vertcat(speed * ca.cos(heading), speed * ca.sin(heading), rate, u[0], u[1])


numbers = lg.System(
    "car in five numbers",
    Product(x=Rn(1), y=Rn(1), heading=Rn(1), speed=Rn(1), steering=Rn(1)),
    textbook,
    inputs=inputs,
)
ahead = np.array([0.0, 20.0])
west = lg.Trajectory(
    numbers.state, ahead, [[-10 * s, 0, np.pi, 10, 0] for s in ahead], np.zeros((1, 2))
)
weights = {"speed": 1, "steering": 1}
law = MPC(
    numbers,
    horizon=40,
    dt=0.1,
    Q={"x": 0.05, "y": 1, "heading": 5} | weights,
    R={"push": 0.2, "turn": 2},
)
wrapped = lg.simulate(numbers, law, x0=[0, 1, np.radians(-175), 10, 0], reference=west, seconds=6)
print(f"largest distance from the road {np.abs(wrapped.x[:, 1]).max():.2f} m")
try:
    numbers.trim(where={"speed": 14.0, "steering": 0.05})
except lg.TrimError as error:
    print(error)

# %% [markdown]
# The controller sees an error of 355° and turns the long way round. Nor is there a trim point for a steady turn: x, y and heading never come
# to rest.
#
# ## The cure: the pose is an element of SE(2)
#
# The field is the velocity *in the car's frame*. Its `look` is what pictures and `lg.view` draw; without one they draw a dart.


# %%
def field(t, x, u, p):
    speed, steering = x[4], x[5]
    return ca.vertcat(speed, 0, speed * ca.tan(steering) / WHEELBASE, u[0], u[1])


car = lg.System(
    "car",
    Product(pose=SE2, speed=Rn(1, units="m/s"), steering=Rn(1, units="rad")),
    field,
    inputs=inputs,
    look=wheeled_body(
        body=(4.3, 1.7, 0.9),
        wheelbase=WHEELBASE,
        track=1.5,
        wheel=(0.33, 0.22),
        ahead=WHEELBASE / 2,  # the pose is that of the rear axle
    ),
)
lg.check_system(car)
car

# %% [markdown]
# The pose has the coordinates x, y, cos, sin: no angle wraps. The same road with the same weights:

# %%
west = lg.Trajectory(
    car.state,
    ahead,
    [np.r_[SE2.from_angle(np.pi, [-10 * s, 0]), 10, 0] for s in ahead],
    np.zeros((1, 2)),
)
law = MPC(car, horizon=40, dt=0.1, Q={"pose": [0.05, 1, 5]} | weights, R={"push": 0.2, "turn": 2})
start = np.r_[SE2.from_angle(np.radians(-175), [0, 1]), 10, 0]
on_group = lg.simulate(car, law, x0=start, reference=west, seconds=6)
print(f"largest distance from the road {np.abs(on_group.x[:, 1]).max():.2f} m")

figure, ax = plt.subplots(figsize=(7, 2.6))
ax.axhline(0, color="0.4", ls=":", label="road")
ax.plot(wrapped.x[:, 0], wrapped.x[:, 1], label="heading as a number")
ax.plot(on_group.x[:, 0], on_group.x[:, 1], label="pose on SE(2)")
ax.set(xlabel="x [m]", ylabel="y [m]")
ax.set_aspect("equal")
ax.legend(fontsize=8)
plt.show()

# %% [markdown]
# ## Trim and linearize
#
# A car at a constant speed and steering angle moves along a circle. It is at a relative equilibrium: seen from the car the motion
# is the same at all times.

# %%
turn = car.trim(where={"speed": 14.0, "steering": 0.05}, moving="pose")
lin = car.linearize(turn)
print(turn.kind, "|", lin.kind, "|", lin.controllability())
straight = car.linearize(car.trim(where={"speed": 14.0, "steering": 0.0}, moving="pose"))
follow = LQR(car, straight, Q={"pose": [0.1, 1, 5], "speed": 1, "steering": 1}, R=1, dt=0.05)
print(follow.regulator.K.round(2))

# %% [markdown]
# ## Change lanes for a car that stands in the way
#
# The reference goes straight on at 14 m/s: a `Trajectory`, seen in advance. The other car is a capsule, and so is our own
# outline; the distance of the two is kept by a soft bound. So are the lateral acceleration and the edges of the road.
# Which way round a plan goes is decided where its search begins: in the left lane. From straight on it ends to the right
# of the other car, beyond the edge of the road, at seven times the cost.

# %%
t = np.array([0.0, 20.0])
lane, left = (
    lg.Trajectory(
        car.state, t, [np.r_[SE2.exp([14.0 * s, y, 0]), 14.0, 0.0] for s in t], np.zeros((1, 2))
    )
    for y in (0.0, 3.5)
)
other = Capsule([45.0, 0.3], [47.7, 0.3], 0.9)


def outline(t, x, u, p):
    return ca.horzcat(x[:2], x[:2] + WHEELBASE * x[2:4])


def sideways(t, x, u, p):
    return x[4] ** 2 * ca.tan(x[5]) / WHEELBASE


mpc = MPC(
    car,
    horizon=40,
    dt=0.1,
    Q={"pose": [0.05, 1, 5], "speed": 1, "steering": 1},
    R={"push": 0.2, "turn": 2},
    bounds=[
        keep_out(outline, other, radius=0.9 + 0.2, soft=1000, name="other"),
        Bound(sideways, -4, 4, soft=100, name="lateral acceleration"),
        Bound("pose.y", -0.85, 4.35, soft=100, name="road"),
    ],
    guess=left,
)
x0 = np.r_[SE2.exp([0, -0.4, 0]), 11.0, 0.0]
run = lg.simulate(car, mpc, x0=x0, reference=lane, seconds=7)
print("\n".join(run.summary()))

# %%
own = ([[0.0, 0.0], [WHEELBASE, 0.0]], 0.9)
run.plot_path(obstacles={"other": ([[45.0, 0.3], [47.7, 0.3]], 0.9)}, hull=own)

# %%
for name, bounded in run.bounds.items():
    print(f"{name}: {bounded.values.min():.2f} to {bounded.values.max():.2f}")
lateral = run.bounds["lateral acceleration"]
assert np.abs(lateral.values).max() <= 4
plt.plot(run.t, lateral.values)
plt.axhline(lateral.upper, linestyle=":")
plt.axhline(lateral.lower, linestyle=":")
plt.xlabel("time [s]")
plt.ylabel("lateral acceleration [m/s²]")
plt.show()

# %% [markdown]
# ## Park
#
# Backwards between two cars: one plan from the start to the end, with the same capsules. `prepare` builds the solver to
# machine code first; without it the same iterations run with interpreted functions.

# %%
row = [Capsule([x, -2.4], [x + WHEELBASE, -2.4], 0.9) for x in (-7.55, 4.85)]
parking = lg.OptimalControlProblem(
    car,
    60,
    0.15,
    Q={"pose": [1, 1, 2], "speed": 0.1, "steering": 0.1},
    R=0.1,
    terminal={"pose": [100, 100, 200], "speed": 20, "steering": 5},
    bounds=[
        Bound("speed", -1.5, 1.5),
        Bound("steering", -0.55, 0.55),
        *(keep_out(outline, parked, radius=1.0, name=f"car{k}") for k, parked in enumerate(row)),
    ],
    reference=[-1.35, -2.4, 1, 0, 0, 0],
)
plan = InteriorPointSolver(parking).prepare().solve([4.8, 0.0, 1.0, 0.0, 0.0, 0.0])
print(plan)
plot_path(plan, hull=own)

# %% [markdown]
# The plan is a `Trajectory`: `TVLQR(car, plan.trajectory, …)` follows it, `simulate` runs it. `lgcontrol run
# car-lane-change` and `lgcontrol run car-parking` are the same with wind, slopes and criteria; with `--perturb` they
# say how much delay they stand.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. The car drives with a steering angle of 0.05 rad. Give the radius of its circle in m.

# %%
answer = ...
check(
    1,
    answer,
    lambda radius: np.isclose(radius, WHEELBASE / np.tan(0.05), rtol=0.01),
    "The turn rate is speed times tan(steering) over the wheelbase.",
)

# %% [markdown]
# 2. Give the trim point of a turn at 10 m/s with a lateral acceleration of 3 m/s².

# %%
answer = ...
check(
    2,
    answer,
    lambda point: (
        np.isclose(point.x[4], 10)
        and np.isclose(point.x[4] ** 2 * np.tan(point.x[5]) / WHEELBASE, 3)
    ),
    "Solve for the steering angle, then trim with moving='pose'.",
)

# %% [markdown]
# 3. The car drives straight at 10 m/s and brakes as hard as it can for 2 s. Give its state after that.

# %%
answer = ...
check(
    3,
    answer,
    lambda x: np.allclose(x[[0, 4]], [12.0, 2.0], atol=0.01),
    "car.rollout(x0, u, dt, steps=…) with u = [-4, 0].",
)
