# %% right 1
lower = standing.assemble(q, where={"root_joint.z": q[2] - 0.03})
answer = robot.trim(np.r_[lower, np.zeros(18)])

# %% wrong 1
answer = rest

# %% right 2
answer = lg.ClosedTree(grounded)
for foot in FEET[:3]:
    answer = answer.close_loop(foot, foot, f"ground_{foot}", "spherical")
answer = answer.mobility(q).degrees_of_freedom

# %% wrong 2
answer = 6

# %% right 3
answer = next(force for force in np.arange(3.0, 60.0, 3.0) if smallest(force) < 0)

# %% wrong 3
answer = 0.5
