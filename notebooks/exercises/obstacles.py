# %% right 1
answer = clearance(start[None])

# %% wrong 1
answer = 0.0

# %% right 2
wider = [
    keep_out(links.ends(link), thing, radius=RADIUS + 0.05)
    for link in LENGTHS
    for thing in obstacles.values()
]
answer = plan(wider, sides["elbow to the right"])

# %% wrong 2
answer = sides["elbow to the right"]

# %% right 3
answer = 0.1 + clearance(sides["elbow to the right"].x)

# %% wrong 3
answer = 0.1
