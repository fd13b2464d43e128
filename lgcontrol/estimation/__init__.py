"""Filters, moving-horizon estimation and smoothing on Lie groups."""
