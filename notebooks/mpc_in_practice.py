# %% [markdown]
# # MPC in practice: limits, delay, offset, time, diagnosis
#
# An MPC that works on its own model may fail on a plant. This tutorial takes a cart on a rail and makes it fail in five ways. They are
# a limit that cannot hold, a delay, a steady push, too little time, and a task without a solution. Each has one remedy.

# %%
import casadi as ca
import matplotlib.pyplot as plt
import numpy as np
from exercises import check

import lgcontrol as lg
from lgcontrol.controllers import RealTime, SteadyDisturbance
from lgcontrol.plotting import style

plt.style.use(style())  # the look of lgcontrol's own figures

cart = lg.System(
    "cart",
    lg.Product(place=lg.Rn(1, units="m"), speed=lg.Rn(1, units="m/s")),
    lambda t, x, u, p: ca.vertcat(x[1], (u[0] + u[1]) / p[0]),
    inputs=[lg.Input("force", "N", -3, 3), lg.Input("push", "N", role="disturbance")],
    parameters=[lg.Parameter("mass", "kg", 1.0)],
)
track = {
    "Q": {"place": 1, "speed": 0.1},
    "R": 0.02,
    "horizon": 15,
    "dt": 0.1,
    "reference": [0.0, 0.0],
}

# %% [markdown]
# ## 1. Hard limits and soft ones
#
# The speed shall stay below 0.8 m/s. A push makes the cart faster than that. A hard limit then has no feasible plan, and the calls say
# so. A soft limit is a penalty: the plan trades the violation against the cost and every call has a solution.

# %%
kick = [lg.Kick(0.4, {"speed": [-1.0]})]
runs = {}
for name, limit in {
    "hard": lg.Bound("speed", -0.8, 0.8),
    "soft, penalty 100": lg.Bound("speed", -0.8, 0.8, soft=100),
    "soft, penalty 0.1": lg.Bound("speed", -0.8, 0.8, soft=0.1),
}.items():
    mpc = lg.MPC(cart, bounds=[limit], **track)
    runs[name] = lg.simulate(cart, mpc, x0=[1.0, 0.0], seconds=4, disturbances=kick)
    status = [line for line in runs[name].summary() if "status" in line]
    print(f"{name:18}", status[0].strip())

figure, ax = plt.subplots(figsize=(7, 3))
for name, run in runs.items():
    ax.plot(run.t, run.x[:, 1], label=name)
ax.axhline(-0.8, color="0.4", ls=":")
ax.set(xlabel="time [s]", ylabel="speed [m/s]")
ax.legend()
plt.show()

# %% [markdown]
# The hard limit and the large penalty give the same motion. A small penalty is no limit: the third cart exceeds it before the push.
#
# ## 2. A delay
#
# The inputs act 0.25 s late. The controller that does not know it oscillates. With `delay=0.25` it plans from the state to which the inputs on their
# way lead.


# %%
def late(seconds):
    """The cart whose inputs act late, as a law around another one."""

    def wrap(law):
        sent = []

        def answer(t, x, reference):
            sent.append(np.atleast_1d(law(t, x, [0.0, 0.0])))
            steps = round(seconds / 0.05)
            return sent[-1 - steps] if len(sent) > steps else np.zeros(1)

        return answer

    return wrap


fast = track | {"dt": 0.05, "horizon": 30, "R": 0.002}
laws = {
    "delay unknown": lg.MPC(cart, **fast),
    "delay known": lg.MPC(cart, delay=0.25, **fast),
}
delayed = {
    name: lg.simulate(cart, late(0.25)(law), x0=[1.0, 0.0], seconds=5, dt=0.05)
    for name, law in laws.items()
}

# %% [markdown]
# ## 3. A steady push
#
# A slope pushes with 0.8 N, and the mass is 40 % larger than in the model. MPC without knowledge of the push stops beside its goal. With
# `disturbance=` it estimates the push from its prediction errors and counts on it.

# %%
slope = [lg.Pulse({"push": 0.8}, start=0.0)]
offset = {
    "push unknown": lg.MPC(cart, **track),
    "push estimated": lg.MPC(cart, disturbance=SteadyDisturbance("push", settling=0.5), **track),
}
pushed = {
    name: lg.simulate(cart, law, x0=[1.0, 0.0], seconds=5, disturbances=slope, p={"mass": 1.4})
    for name, law in offset.items()
}
for name, run in pushed.items():
    print(f"{name:15} {1e3 * run.x[-1, 0]:6.1f} mm from the goal")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
for ax, title, found in (
    (axes[0], "inputs 0.25 s late", delayed),
    (axes[1], "push of 0.8 N, mass + 40 %", pushed),
):
    for name, run in found.items():
        ax.plot(run.t, run.x[:, 0], label=name)
    ax.axhline(0, color="0.4", lw=1)
    ax.set(xlabel="time [s]", title=title)
    ax.legend(fontsize=8)
axes[0].set_ylabel("place [m]")
plt.show()

# %% [markdown]
# ## 4. Too little time
#
# A call has a budget. When it is used up, the call ends with its best plan so far, and `info.solve` says so. A limit of iterations is the
# same on every machine. The later calls go on from the plan and repair it.

# %%
stop = lg.Bound("place", -0.05, 2.0)
for most in (2, 50):
    law = lg.MPC(cart, bounds=[stop], real_time=RealTime(most_iterations=most), **track)
    law(0.0, [1.0, -1.5])
    print(
        f"at most {most:2} iterations: first call {law.info.status}, {law.info.iterations} iterations"
    )
    run = lg.simulate(cart, law, x0=[1.0, -1.5], seconds=4)
    print(f"                       loop ends {1e3 * abs(run.x[-1, 0]):.2f} mm from the goal")

# %% [markdown]
# ## 5. A task without a solution
#
# The cart is 0.2 m from the end of the rail and moves towards it at 2 m/s. A force of 3 N stops it after 0.67 m. The status says infeasible, and the
# message names the constraint and the violation.

# %%
end = lg.Bound("place", 0.0, 2.0, name="rail")
problem = lg.OptimalControlProblem(cart, bounds=[end], **track)
plan = problem.solve([0.2, -2.0])
print(plan.status)
print(plan.message)

# %% [markdown]
# ## Exercises
#
# 1. Give a soft limit of the speed with which the cart without a push exceeds 0.8 m/s by less than 0.01 m/s.

# %%
answer = ...
check(
    1,
    answer,
    lambda limit: (
        limit.soft is not None
        and np.abs(
            lg.simulate(cart, lg.MPC(cart, bounds=[limit], **track), x0=[1.0, 0.0], seconds=3).x[
                :, 1
            ]
        ).max()
        < 0.81
    ),
    "Make the penalty larger.",
)

# %% [markdown]
# 2. Give the distance in m in which the cart stops from 2 m/s with 3 N.

# %%
answer = ...
check(2, answer, lambda distance: np.isclose(distance, 2 / 3, rtol=0.01), "v² / (2 a)")

# %% [markdown]
# 3. Give an MPC that ends within 2 mm of the goal with inputs 0.25 s late *and* a push of 0.8 N. It is called every 0.05 s.


# %%
def both_miss(law):
    run = lg.simulate(cart, late(0.25)(law), x0=[1.0, 0.0], seconds=8, dt=0.05, disturbances=slope)
    return abs(run.x[-1, 0])


# %%
answer = ...
check(3, answer, lambda law: both_miss(law) < 2e-3, "Give delay= and disturbance= together.")
