# %% right 1
answer = "arm_shoulder"

# %% wrong 1
answer = "arm_wrist"

# %% right 2
answer = 15.0

# %% wrong 2
answer = 2.0

# %% right 3
answer = diver.trim(posture, where={"current.x": 0.2})

# %% wrong 3
answer = rest
