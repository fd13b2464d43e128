# %% right 1
answer = np.sqrt(((late.x[late.index(at), :2] - truth[:, :2]) ** 2).sum(axis=1).mean())

# %% wrong 1
answer = np.sqrt(((run.x[run.index(at), :2] - truth[:, :2]) ** 2).sum(axis=1).mean()) * 1.5

# %% right 2
answer = np.linalg.norm(both.bias - [-0.6, 0.4])

# %% wrong 2
answer = np.linalg.norm(both.bias)

# %% right 3
answer = np.mean(np.abs(done.estimation_error[:, 0]) < 2 * done.estimate_std[:, 0])

# %% wrong 3
answer = 0.5
