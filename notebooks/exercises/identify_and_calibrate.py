# %% right 1
answer = len(base.names)

# %% wrong 1
answer = 60

# %% right 2
_, q, v, a = sines(400, 50, seed=3)
answer = base.identify(q, v, a, torques(q, v, a))

# %% wrong 2
_, q, v, a = sines(2, 50, seed=3)
answer = base.identify(q, v, a, torques(q, v, a))

# %% right 3
answer = scipy.special.jn_zeros(0, 1)[0] / 2 * np.sqrt(9.81 / 1.0)

# %% wrong 3
answer = modes.frequencies[0] / 2
