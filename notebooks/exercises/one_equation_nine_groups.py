# %% right 1
answer = lambda v, M: np.r_[
    v[2] * (M @ v)[1], -v[2] * (M @ v)[0], (M @ v)[0] * v[1] - (M @ v)[1] * v[0]
]

# %% wrong 1
answer = lambda v, M: np.zeros(3)

# %% right 2
answer = np.linalg.eigh(bodies["turn about a point"].mass_matrix([0, 0, 0, 1]))[1][:, 0]

# %% wrong 2
answer = np.array([1.0, 0.0, 0.0])

# %% right 3
answer = 3.0 * bodies["screw"].mass_matrix([0.0]).item()

# %% wrong 3
answer = 3.0 * 0.25
