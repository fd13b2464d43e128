# %% right 1
answer = gains["SO(3)"][0]

# %% wrong 1
answer = gains["Euler angles"][-1]

# %% right 2
answer = np.degrees(np.linalg.norm(lg.SO3.minus(lg.SO3.exp([0, 0, 3.0]), lg.SO3.exp([0, 0, -3.0]))))

# %% wrong 2
answer = np.degrees(6)

# %% right 3
answer = 40.0

# %% wrong 3
answer = 150.0
