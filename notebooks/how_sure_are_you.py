# %% [markdown]
# # How sure are you?
#
# A quadrotor recovers from upside down in one run. How often does it recover with another mass, more drag, a late
# controller and stronger gusts? A campaign runs many cases, says how sure the answer is, and keeps what fails.

# %%
import matplotlib.pyplot as plt
from exercises import check

from lgcontrol.campaigns import Campaign, attraction_level
from lgcontrol.controllers import LQR
from lgcontrol.models import quadrotor
from lgcontrol.simulation import Vary

# %% [markdown]
# ## The design's own variations
#
# A design declares what is uncertain. Every case also has a seed of its own, which decides the axis of the tilt and
# the gusts. The cases run on two processes, and the first one compiles the code that all of them use.

# %%
campaign = Campaign("quadrotor-recovery", cases=48)
for one in campaign.variations:
    print(one)

result = campaign.run(executor=2, progress=False)
print(result)

# %% [markdown]
# The interval matters more than the share. If none of 48 cases fails, the probability of success is above 92 % with
# 95 % confidence, and no more can be said. With ten times as many cases and no failure, it is above 99 %.

# %%
print(result.success())
print(result.success(0.99, "clopper-pearson"))
result.plot()
# %% [markdown]
# ## Until it breaks
#
# Wider ranges show where the design ends, and what ends it. Here gusts and push grow up to four times theirs, and the
# controller is up to 60 ms late, more than a sample.

# %%
wide = campaign.replaced(
    variations=[
        Vary("mass", 0.7, 1.3, relative=True),
        Vary("delay", 0.0, 0.06, unit="s"),
        Vary("disturbances", 0.0, 4.0, relative=True),
    ]
)
broken = wide.run(executor=2, progress=False)
print(broken)

# %% [markdown]
# Rank correlations tell which variation drives which criterion. The margin is the share of all ranges within which
# every case succeeds.

# %%
for criterion, row in broken.sensitivity().items():
    print(criterion, {name: round(value, 2) for name, (value, p) in row.items() if p < 0.01})

margin, first = broken.margin()
print(f"every case succeeds within {margin:.0%} of the ranges")

# %% [markdown]
# ## The worst case, once more
#
# A case is a few numbers, so it can run again at any time, bit by bit, with all that a run tells.

# %%
worst = broken.worst()[0]
print(worst.number, worst.message or worst.status, worst.inputs)
wide.replay(worst.key).plot()
# %% [markdown]
# ## Signals over time

# %%
name = broken.criterion_names[0]
t, (low, middle, high) = broken.bands(name)
fig, ax = plt.subplots(figsize=(6, 2.5))
ax.fill_between(4 * t, low, high, alpha=0.3, label="90 % of the cases")
ax.plot(4 * t, middle, label="median")
ax.set(xlabel="time [s]", ylabel="position error [m]")
ax.legend()
plt.show()

# %% [markdown]
# ## Two loops, case by case
#
# What does a delay of 40 ms cost? Case k of both campaigns has the same seed and the same gusts, so few cases tell.
# Each difference has its 95 % interval. If zero is within it, the line says "no difference shown".

# %%
gusts = Vary("disturbances", 0.0, 3.0, relative=True)
prompt, late = (
    campaign.replaced(variations=[gusts, Vary("delay", values=(delay,), unit="s")], cases=24)
    for delay in (0.0, 0.04)
)
print(prompt.run(executor=2, progress=False).compare(late.run(executor=2, progress=False)))

# %% [markdown]
# ## Where an LQR comes back from
#
# For LQR a level set of its cost answers without simulations of whole runs. Inside it, the cost of all sampled states
# falls from one sample to the next, with rotors that saturate.

# %%
quad = quadrotor()
print(attraction_level(LQR(quad, quad.trim(), dt=0.01), directions=300))

# %% [markdown]
# With `store="recovery.db"` a campaign keeps the outcomes as they come, and the same call goes on after a kill.
# `result.report("recovery.html")` writes one file with tables and plots. On the command line:
# `lgcontrol campaign quadrotor-recovery --vary "mass=*0.7:1.3" --cases 1000`.

# %% [markdown]
# ## Exercises
#
# Replace the dots and run the cell.
#
# 1. How many cases without failure show a success of at least 99 % with Wilson's interval at 95 %?

# %%
answer = ...
check(
    1,
    answer,
    lambda cases: cases / (cases + 1.96**2) >= 0.99 > (cases - 5) / (cases - 5 + 1.96**2),
    "Without a failure the lower end is n / (n + 1.96²).",
)

# %% [markdown]
# 2. The same with the interval of Clopper and Pearson, whose lower end is 0.025^(1/n).

# %%
answer = ...
check(
    2,
    answer,
    lambda cases: 0.025 ** (1 / cases) >= 0.99 > 0.025 ** (1 / (cases - 5)),
    "Take logarithms.",
)

# %% [markdown]
# 3. Give a variation of the mass by ± 10 % of its nominal value.

# %%
answer = ...
check(
    3,
    answer,
    lambda vary: vary.name == "mass" and (vary.low, vary.high) == (0.9, 1.1) and vary.relative,
    "Vary(name, low, high, relative=True).",
)
