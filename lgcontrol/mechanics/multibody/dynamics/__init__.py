"""Inverse and forward dynamics, mass matrix, momenta and energies."""
