# %% [markdown]
# # Obstacles: an arm among capsules
#
# An arm has to move its tool past a post and below a bar. Which parts of the arm must the plan know? A straight line in joint angles hits
# the post. A plan that keeps only the tool clear hits it with the other links. Links as capsules are the first half of the cure. The second
# half is an initial guess on the right side of the post.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.mechanics import JointProperties, LinkCapsules
from lgcontrol.optimal import Bound, Capsule, InteriorPointSolver, Sphere, keep_out
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

limits = JointProperties(lower=-2.8, upper=2.8, velocity=4.0, effort=60.0)
LENGTHS, RADIUS = {"upper": 0.5, "lower": 0.4, "hand": 0.3}, 0.04  # m
arm = lg.Multibody("arm")
parent, at = "world", None
for name, length in LENGTHS.items():
    link = lg.SpatialInertia.rod(2 * length, length, [1, 0, 0], [length / 2, 0, 0])
    arm = arm.add_body(name, link, "revolute", parent, at, axis="z", properties=limits)
    parent, at = name, [length, 0, 0]
arm = arm.add_frame("tool", "hand", [LENGTHS["hand"], 0, 0])
system, place = arm.system(), arm.position("tool")
print(arm, arm.joints)

start, goal = np.array([-1.2, 0.5, 0.3]), np.array([1.3, -0.4, -0.3])
post = Sphere([0.75, 0.05, 0.0], 0.1)
bar = Capsule([0.1, 0.9, 0.0], [-0.05, 1.05, 0.0], 0.05)

# %% [markdown]
# ## Links as capsules
#
# Each link is a segment with a radius. `LinkCapsules` returns their ends as functions of the state; the clearance of two capsules is the
# distance of the segments minus both radii.

# %%
links = LinkCapsules(
    arm, {name: ([0, 0, 0], [length, 0, 0], RADIUS) for name, length in LENGTHS.items()}
)


def corners(q):
    """Base, elbow, wrist and tool of one configuration, shape (4, 3)."""
    frames = ("lower", "hand")
    return np.array([np.zeros(3), *(arm.position(name)(q) for name in frames), place(q)])


def clearance(states):
    """Smallest distance of any link to the post and to the bar [m]."""
    smallest = np.inf
    for q in states[:, :3]:
        points = corners(q)
        share = np.linspace(0, 1, 30)[:, None]
        body = np.vstack(
            [a + share * (b - a) for a, b in zip(points[:-1], points[1:], strict=True)]
        )
        axis = np.array([0.1, 0.9, 0]) + np.linspace(0, 1, 15)[:, None] * np.array([-0.15, 0.15, 0])
        to_post = np.linalg.norm(body - [0.75, 0.05, 0], axis=1).min() - 0.1
        to_bar = np.linalg.norm(body[:, None] - axis, axis=2).min() - 0.05
        smallest = min(smallest, to_post - RADIUS, to_bar - RADIUS)
    return smallest


# %% [markdown]
# ## Three plans
#
# All plans have 40 steps of 40 ms, end at rest at the goal and keep the limits of the joints.


# %%
def plan(bounds, guess=None, steps=40):
    """Plan from start to goal in 1.6 s; return the problem's solution."""
    problem = lg.OptimalControlProblem(
        system,
        steps,
        1.6 / steps,
        Q={"configuration": 0.1, "velocity": 0.1},
        R=1e-3,
        reference=np.r_[goal, np.zeros(3)],
        bounds=[
            Bound("configuration", goal, goal, at="terminal"),
            Bound("velocity", 0, 0, at="terminal"),
            Bound("velocity", -4, 4),
            *bounds,
        ],
    )
    return InteriorPointSolver(problem).solve(np.r_[start, np.zeros(3)], guess=guess)


margin = 0.02
obstacles = {"post": post, "bar": bar}
tool_only = [
    keep_out(lambda t, x, u, p: place(x[:3]), thing, radius=RADIUS + margin, name=f"tool {name}")
    for name, thing in obstacles.items()
]
whole_arm = [
    keep_out(links.ends(link), thing, radius=RADIUS + margin, name=f"{link} {name}")
    for link in LENGTHS
    for name, thing in obstacles.items()
]
t = 0.04 * np.arange(41)
line = start + np.linspace(0, 1, 41)[:, None] * (goal - start)
plans = {"line in joint angles": line}
for name, bounds in (("tool kept clear", tool_only), ("whole arm, no guess", whole_arm)):
    found = plan(bounds)
    plans[name] = found.x
    print(f"{name:22} {found.status}, cost {found.cost:.3f}")
for name, states in plans.items():
    print(f"{name:22} clearance {1e3 * clearance(states):+.0f} mm")


# %%
def draw(ax, states, title):
    angle = np.linspace(0, 2 * np.pi, 60)
    ax.fill(0.75 + 0.1 * np.cos(angle), 0.05 + 0.1 * np.sin(angle), color="0.35")
    ax.plot([0.1, -0.05], [0.9, 1.05], color="0.35", lw=9, solid_capstyle="round")
    for k in range(0, len(states), 4):
        ax.plot(
            *corners(states[k, :3])[:, :2].T,
            color=plt.cm.viridis(k / len(states)),
            lw=3,
            alpha=0.55,
        )
    ax.plot(*np.array([place(x[:3]) for x in states])[:, :2].T, "C3", lw=1)
    ax.set(title=title, xlabel="x [m]")
    ax.set_aspect("equal")


figure, axes = plt.subplots(1, 3, figsize=(11, 4), sharex=True, sharey=True)
for ax, (name, states) in zip(axes, plans.items(), strict=True):
    draw(ax, states, f"{name}\n{1e3 * clearance(states):+.0f} mm")
axes[0].set_ylabel("y [m]")
plt.show()

# %% [markdown]
# The third plan knows all links, and it still passes through the post. From the straight line the arm would have to jump over the post between
# two nodes. The status is `infeasible`: no small change of this plan violates the limits less. Other guesses lead to plans, as the next section
# shows. The message names the link, the obstacle, the amount and the time:

# %%
print(found.message)

# %% [markdown]
# ## The other half of the cure: where the search begins
#
# A search ends on the side of an obstacle on which it begins. Both guesses fold the arm in front of the post, with the elbow on one side or on
# the other. Compare several guesses and take the cheaper plan.

# %%
bump = np.sin(np.linspace(0, np.pi, 41))[:, None]
guesses = {
    "elbow to the left": line + bump * np.array([-0.8, 2.0, 0.5]),
    "elbow to the right": line + bump * np.array([0.8, -2.0, -0.5]),
}
sides = {}
for name, way in guesses.items():
    states = np.hstack([way, np.gradient(way, 0.04, axis=0)])
    sides[name] = plan(whole_arm, lg.Trajectory(system.state, t, states, np.zeros((40, 3))))
    print(
        f"{name:20} {sides[name].status}, cost {sides[name].cost:.3f}, clearance {1e3 * clearance(sides[name].x):+.0f} mm"
    )
figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
for ax, (name, found) in zip(axes, sides.items(), strict=True):
    draw(ax, found.x, f"{name}: cost {found.cost:.2f}")
axes[0].set_ylabel("y [m]")
plt.show()

# %% [markdown]
# ## What fails next: between the nodes
#
# Fewer nodes plan faster. This plan has 8 steps of 0.2 s instead of 40 of 40 ms, over the same 1.6 s. It starts from no guess at all, and its
# status is "converged".

# %%
coarse = plan(whole_arm, steps=8)


def between(found, parts=10):
    """States of the arm at `parts` times a step, with the inputs of the plan."""
    dt = found.t[1] - found.t[0]
    return system.rollout(found.x[0], np.repeat(found.u, parts, axis=0), dt / parts).x


for name, found in (
    ("8 steps, no guess", coarse),
    ("40 steps, elbow right", sides["elbow to the right"]),
):
    at_nodes, on_the_way = clearance(found.x), clearance(between(found))
    jump = np.linalg.norm(np.diff(place(found.x[:, :3]), axis=0), axis=1).max()
    print(
        f"{name:22} {found.status}, clearance {1e3 * at_nodes:+.0f} mm at the nodes, "
        f"{1e3 * on_the_way:+.0f} mm between them; the tool moves by up to {1e3 * jump:.0f} mm a step"
    )
figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True)
draw(axes[0], np.repeat(coarse.x, 4, axis=0), "8 steps: at the nodes")
draw(axes[1], between(coarse, 20), "8 steps: between them, too")
axes[0].set_ylabel("y [m]")
plt.show()

# %% [markdown]
# Bounds hold at nodes. The arm is in front of the post at one node and behind it at the next. The status is right,
# and the plan is wrong. Choose the step by the obstacle: no link may move further between two nodes than the obstacle
# is thick, here 200 mm. Check a plan by a rollout with shorter steps. With 40 steps the margin of 20 mm covers the 5
# mm that remain.
#
# ## Exercises
#
# 1. Give the clearance of the arm at the start in m.

# %%
answer = ...
check(
    1,
    answer,
    lambda distance: np.isclose(distance, clearance(start[None]), atol=1e-3),
    "clearance takes states, shape (N, 3) or more columns.",
)

# %% [markdown]
# 2. Give a plan that keeps the whole arm at least 35 mm away from both obstacles.

# %%
answer = ...
check(
    2,
    answer,
    lambda found: found.status == "converged" and clearance(found.x) > 0.035,
    "Build the bounds with a larger margin, and begin with one of the plans above as the guess.",
)

# %% [markdown]
# 3. How large may the radius of the post become until the plan with the elbow to the right touches it? Give it in m.

# %%
answer = ...
reach = sides["elbow to the right"].x
check(
    3,
    answer,
    lambda radius: np.isclose(radius, clearance(reach) + 0.1, atol=2e-3),
    "The clearance of the plan is what the post can grow by.",
)
