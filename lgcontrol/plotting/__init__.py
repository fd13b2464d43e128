"""Plots of trajectories and simulation results."""
