# %% right 1
answer = WHEELBASE / np.tan(0.05)

# %% wrong 1
answer = WHEELBASE / 0.5

# %% right 2
answer = car.trim(where={"speed": 10.0, "steering": np.arctan(3 * WHEELBASE / 100)}, moving="pose")

# %% wrong 2
answer = turn

# %% right 3
answer = car.rollout([0, 0, 1, 0, 10.0, 0], [-4.0, 0.0], 0.1, steps=20).x[-1]

# %% wrong 3
answer = np.array([20.0, 0, 1, 0, 10.0, 0])
