# %% right 1
answer = np.degrees(np.arctan(3.0**2 / (2 * 9.81)))

# %% wrong 1
answer = bank

# %% right 2
answer = control.lqr(plant, np.eye(12), 10 * np.eye(4))[0]

# %% wrong 2
answer = np.zeros((4, 12))

# %% right 3
answer = quad.discretize(0.1).linearize(hover.x, hover.u).A

# %% wrong 3
answer = np.eye(12) + 0.5 * lin.A
