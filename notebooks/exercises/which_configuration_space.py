# %% right 1
answer = 0.5 * np.array([np.cos(1.2), np.sin(1.2), 0.0])

# %% wrong 1
answer = straight[-1]

# %% right 2
answer = drift(top, "SO3xR3", 2e-3, 0.5)[1][-1] / drift(top, "SO3xR3", 1e-3, 0.5)[1][-1]

# %% wrong 2
answer = 2.0

# %% right 3
answer = "projection"

# %% wrong 3
answer = "none"
