"""Derivatives of inverse and forward dynamics, linearized equations, normal modes."""
