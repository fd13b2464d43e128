"""Constants that models, estimators and controllers share."""

GRAVITY = 9.81  # m/s², of models and estimators that are given no other
FREE_FALL = (0.0, 0.0, -GRAVITY)  # m/s² in world axes, z up
SAME_TIME = 1e-9  # s; times this close are the same time, reached by another sum
# Examples that exported code is compared with.
EXAMPLE_SPREAD = 0.3  # of their states about home, and of their inputs about the nominal ones
EXAMPLE_STEP = 0.01  # s, of systems in continuous time
