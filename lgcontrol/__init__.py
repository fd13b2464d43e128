"""Control and estimation on Lie groups: models, linearization, MPC, simulation."""
