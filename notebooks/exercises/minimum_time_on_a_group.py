# %% right 1
answer = 2 * np.sqrt(4.0)

# %% wrong 1
answer = 2.0

# %% right 2
far = [Bound("x", 4, 4, at="terminal"), Bound("v", 0, 0, at="terminal")]
answer = PhasedProblem(Phase(cart, 20, (0.5, 8.0), bounds=far), time_weight=1).solve([0, 0])

# %% wrong 2
answer = PhasedProblem(Phase(cart, 20, (0.5, 5.0), bounds=stop), time_weight=1).solve([0, 0])

# %% right 3
answer = retime(curve, velocity={"x": 1.0, "y": 1.0, "rz": 2.0}, acceleration=4.0)

# %% wrong 3
answer = fast
