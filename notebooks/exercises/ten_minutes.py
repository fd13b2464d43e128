# %% right 1
answer = vessel.trim(where={"twist.vx": 0.3, "twist.wz": 0.1}, moving="pose")

# %% wrong 1
answer = berth

# %% right 2
answer = {"pose": [40, 40, 40], "twist": [1, 1, 1]}

# %% wrong 2
answer = {"pose": 0.1, "twist": 1}

# %% right 3
answer = lg.MPC(vessel, horizon=25, dt=0.4, Q=Q, R=0.05, disturbance="force")

# %% wrong 3
answer = lg.MPC(vessel, horizon=25, dt=0.4, Q=Q, R=0.05)
