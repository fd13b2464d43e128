# %% right 1
answer = linkage.assemble(where={"crank": 1.0})

# %% wrong 1
answer = np.array([1.0, 0.0, 0.0])

# %% right 2
answer = bar.trim(at_one).u[0]

# %% wrong 2
answer = 0.0

# %% right 3
answer = linkage.state(at_one[:3], speeds={"crank": 1.0})[5]

# %% wrong 3
answer = 1.0
