# %% right 1
about_y = np.r_[lg.SE3.identity, 0, 0, 0, 0, 10.0, 0]
poles = turning["twist"].linearize(about_y).poles
answer = (
    2
    * np.pi
    / min(
        abs(pole.imag) for pole in poles if 0.1 < abs(pole.imag) and abs(abs(pole.imag) - 10) > 1e-3
    )
)

# %% wrong 1
answer = 2 * np.pi / 10

# %% right 2
answer = six.from_twist([2.0, 0, 0, 0, 0, 0])

# %% wrong 2
answer = np.full(6, 2.0)

# %% right 3
answer = UnifiedVelocity.hexahedral((0.5, 1.0, 1.5))

# %% wrong 3
answer = UnifiedVelocity.hexahedral()
