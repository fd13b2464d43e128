"""Optimal control problems on Lie groups and the solvers behind them."""
