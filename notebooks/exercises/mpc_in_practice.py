# %% right 1
answer = lg.Bound("speed", -0.8, 0.8, soft=100)

# %% wrong 1
answer = lg.Bound("speed", -0.8, 0.8, soft=0.1)

# %% right 2
answer = 2.0**2 / (2 * 3.0)

# %% wrong 2
answer = 0.2

# %% right 3
answer = lg.MPC(cart, delay=0.25, disturbance=SteadyDisturbance("push", settling=0.5), **fast)

# %% wrong 3
answer = lg.MPC(cart, delay=0.25, **fast)
