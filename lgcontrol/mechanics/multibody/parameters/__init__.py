"""Regressors, base parameters, identification, and sensitivity to the geometry."""
