"""Equations of motion as matrices, and the geometry of the kinetic energy."""
