# %% [markdown]
# # Which configuration space? SE(3) or SO(3) × R³
#
# A body in space has a rotation and a position. Two groups hold the pair: SE(3), where both are coupled, and SO(3) × R³, where each goes
# its own way. Does the choice matter? A top on a pivot leaves its pivot on one of them. We see why, and when it does not matter.

# %%
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol import models
from lgcontrol.models import heavy_top_mechanism, three_bar_mechanism
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

SPACES = ("SO3xR3", "SE3")
NAMES = {"SO3xR3": "SO(3) × R³", "SE3": "SE(3)"}

# %% [markdown]
# ## What fails: the pivot drifts
#
# The top is a free body whose pivot is held by three equations. The integrator sees accelerations that satisfy these equations, and no
# projection corrects its steps. On SO(3) × R³ the pivot drifts away. On SE(3) it stays to rounding, with the same method and the same step.


# %%
def drift(mechanism, space, h, seconds, method="rk4"):
    """Times, largest gap of the joints [m] and states."""
    chosen = mechanism.formulated(space)
    system = chosen.system(stabilization="none")
    run = system.rollout(chosen.state(), None, h, steps=round(seconds / h), method=method)
    gap = system.quantities["constraint_gap"](0.0, run.x)
    return run.t, np.abs(gap[:, : gap.shape[1] // 2]).max(axis=1), run.x


top = heavy_top_mechanism()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
bars = three_bar_mechanism()
for ax, (title, mechanism) in zip(
    axes, {"heavy top": top, "three bars": bars}.items(), strict=True
):
    for space in SPACES:
        t, gap, _ = drift(mechanism, space, 1e-3, 1.0)
        ax.semilogy(t, gap + 1e-17, label=NAMES[space])
        print(f"{title:11} {NAMES[space]:11} gap after 1 s {gap[-1]:.0e} m")
    ax.set(title=title, xlabel="time [s]")
axes[0].set_ylabel("largest gap of a joint [m]")
axes[0].legend()
plt.show()

# %% [markdown]
# ## Why: a step is an exponential
#
# A step moves the body along $X \exp(h\xi)$. On SE(3) that is a screw motion. A body that turns about a fixed point moves along screws
# through that point, so every step keeps the point. On SO(3) × R³ the position moves along a straight line while the body
# turns. That line leaves the circle about the pivot. Between two moving bodies neither group has such a subgroup: the three bars drift
# on both.

# %%
center = np.array([0.5, 0.0, 0.0])  # of the body, from its pivot
turn = np.linspace(0, 1.2, 5)
screw = lg.SE3.exp(np.c_[np.zeros((5, 3)), np.zeros((5, 2)), turn])
moved = lg.SE3.act(screw, center)
straight = center + np.c_[0 * turn, 0.5 * turn, 0 * turn]  # tangent of the same circle
figure, ax = plt.subplots(figsize=(6, 3.6))
arc = np.linspace(0, 1.2, 100)
ax.plot(0.5 * np.cos(arc), 0.5 * np.sin(arc), color="0.7")
ax.plot(*moved[:, :2].T, "o", label="step on SE(3)")
ax.plot(*straight[:, :2].T, "s", label="step on SO(3) × R³")
for k in range(5):
    foot = straight[k] - 0.5 * np.r_[np.cos(turn[k]), np.sin(turn[k]), 0]
    ax.plot([foot[0], straight[k, 0]], [foot[1], straight[k, 1]], color="C1", lw=1)
    ax.plot(*foot[:2], "x", color="C1")
ax.plot(0, 0, "k^", ms=9, label="pivot")
ax.set(xlabel="x [m]", ylabel="y [m]", title="where the pivot of the body goes (×)")
ax.set_aspect("equal")
ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
plt.show()

# %% [markdown]
# ## Integrators side by side
#
# The gap is one error, the motion another. The reference is the top on SE(3) with steps of 0.1 ms. Both spaces have order four, and SE(3)
# has the smaller error here.

# %%
_, _, exact = drift(top, "SE3", 1e-4, 0.5)
steps = np.array([4e-3, 2e-3, 1e-3, 5e-4])
figure, ax = plt.subplots(figsize=(6, 3.4))
for space in SPACES:
    for method, mark in (("rk4", "o-"), ("heun", "s--")):
        errors = []
        for h in steps:
            _, _, x = drift(top, space, h, 0.5, method)
            errors.append(np.linalg.norm(x[-1, :3] - exact[-1, :3]))
        order = np.polyfit(np.log(steps), np.log(errors), 1)[0]
        ax.loglog(
            1e3 * steps,
            errors,
            mark,
            color=f"C{SPACES.index(space)}",
            label=f"{NAMES[space]}, {method}, order {order:.1f}",
        )
ax.set(xlabel="step [ms]", ylabel="error of the centre [m]")
ax.legend(fontsize=8)
plt.show()

# %% [markdown]
# A top on a pivot needs no constraint at all: its attitude on SO(3) says everything. The model `heavy_top` is that description. Both give the
# same attitude:

# %%
chosen = top.formulated("SE3")
whole = chosen.state()  # position, quaternion, velocity, rate
run = chosen.system().rollout(whole, None, 1e-3, steps=500, method="rk4")
alone = models.heavy_top(gravity=(0, 0, 0)).rollout(
    np.r_[whole[3:7], whole[10:13]], None, 1e-3, steps=500, method="rk4"
)
apart = np.abs(lg.SO3.minus(run.x[:, 3:7], alone.x[:, :4])).max()
print(f"largest difference of the attitudes within 0.5 s: {apart:.0e} rad")

# %% [markdown]
# ## All ready mechanisms
#
# Does the rule hold for other mechanisms? Each of them moves for 0.5 s in steps of 1 ms on both spaces.

# %%
ready = {
    "pendulum": models.pendulum_mechanism(),
    "heavy top": top,
    "double pendulum": models.double_pendulum_mechanism(),
    "two boxes on balls": models.spherical_double_pendulum_mechanism(),
    "two boxes in free fall": models.floating_pair_mechanism(),
    "three bars": bars,
    "four links in space": models.four_link_mechanism(),
    "slider-crank in space": models.slider_crank_mechanism(),
}
gaps = {
    name: [drift(mechanism, space, 1e-3, 0.5)[1].max() for space in SPACES]
    for name, mechanism in ready.items()
}
print(f"{'gap within 0.5 s [m]':24}{NAMES['SO3xR3']:>12}{NAMES['SE3']:>10}   formulated('auto')")
for name, (split, screw_gap) in gaps.items():
    automatic = {each.name for each in ready[name].formulated("auto").formulations.values()}
    print(f"{name:24}{split:12.0e}{screw_gap:10.0e}   {', '.join(sorted(automatic))}")

# %% [markdown]
# SE(3) keeps the joint to rounding where one body turns about a point or an axis of the ground: the pendulum and the top. Everywhere else both
# spaces drift alike.
#
# ## The cure
#
# Take SE(3) for a body that only the ground holds. `formulated("auto")` does that. Everywhere else keep SO(3) × R³ and let projection
# return every step to the constraints: that is the default of `system`.

# %%
print({body: each.name for body, each in top.formulated("auto").formulations.items()})
print({body: each.name for body, each in bars.formulated("auto").formulations.items()})
held = bars.formulated("SO3xR3")
system = held.system()
run = system.rollout(held.state(), None, 1e-3, steps=1000)
print(
    f"three bars with projection: gap {np.abs(system.quantities['constraint_gap'](0.0, run.x)).max():.0e} m"
)

# %% [markdown]
# ## Exercises
#
# 1. Give the position of the centre of mass after a step of 1.2 rad on SE(3), from `center`, as three numbers.

# %%
answer = ...
check(
    1,
    answer,
    lambda place: np.allclose(place, moved[-1]),
    "The pivot stays, so the centre turns on its circle.",
)

# %% [markdown]
# 2. Halve the step of the top on SO(3) × R³ from 2 ms to 1 ms. By which factor does the gap after 0.5 s shrink?

# %%
answer = ...
check(
    2,
    answer,
    lambda factor: (
        abs(
            factor * drift(top, "SO3xR3", 1e-3, 0.5)[1][-1] / drift(top, "SO3xR3", 2e-3, 0.5)[1][-1]
            - 1
        )
        < 0.2
    ),
    "Call drift with both steps and divide.",
)

# %% [markdown]
# 3. Give a `stabilization` for the three bars on SE(3) that keeps the joints closed to 1e-9 m over 1 s.


# %%
def gap_with(stabilization):
    chosen = bars.formulated("SE3")
    system = chosen.system(stabilization=stabilization)
    run = system.rollout(chosen.state(), None, 1e-3, steps=1000)
    gap = system.quantities["constraint_gap"](0.0, run.x)
    return np.abs(gap[:, : gap.shape[1] // 2]).max()


# %%
answer = ...
check(
    3,
    answer,
    lambda choice: gap_with(choice) < 1e-12,
    "The default of `system` does it; its name is in the docstring.",
)
