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
q, v, a = small
answer = base.identify(q, v, a, torques(q, v, a), prior=0.3)

# %% wrong 3
q, v, a = small
answer = base.identify(q, v, a, torques(q, v, a))
