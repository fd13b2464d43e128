# %% right 1
import scipy.optimize

answer = scipy.optimize.least_squares(lambda q: place(q)[:3] - [0.5, 0.3, 0.7], home).x

# %% wrong 1
answer = home

# %% right 2
answer = tree.inverse_dynamics(home, np.zeros(3), np.zeros(3))

# %% wrong 2
answer = np.zeros(3)

# %% right 3
answer = retime(way, system=arm, velocity=1.5)

# %% wrong 3
answer = profile
