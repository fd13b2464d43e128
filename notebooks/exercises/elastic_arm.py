# %% right 1
answer = 400.0

# %% wrong 1
answer = 1.0

# %% right 2
answer = (300.0, 15.0)

# %% wrong 2
answer = (1.0, 0.0)

# %% right 3
answer = Waypoints(tree.configuration, [0, 0.8], [[0, 0], [1, -0.5]], order=9)

# %% wrong 3
answer = Waypoints(tree.configuration, [0, 0.8], [[0, 0], [1, -0.5]], order=5)
