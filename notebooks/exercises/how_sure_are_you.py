# %% right 1
answer = 381

# %% wrong 1
answer = 100

# %% right 2
answer = 368

# %% wrong 2
answer = 48

# %% right 3
answer = Vary("mass", 0.9, 1.1, relative=True)

# %% wrong 3
answer = Vary("mass", -0.1, 0.1)
