# %% right 1
answer = max(target.steps) / 0.3

# %% wrong 1
answer = 2.0

# %% right 2
from lgcontrol.controllers import RealTime

answer = lg.MPC(
    vessel, horizon=15, dt=0.3, reference=berth, real_time=RealTime(most_iterations=8), **weights
)

# %% wrong 2
answer = mpc

# %% right 3
answer = lg.LQR(vessel, berth, Q=1, R=1, dt=0.1)

# %% wrong 3
answer = mpc
