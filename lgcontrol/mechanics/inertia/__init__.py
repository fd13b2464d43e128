"""Inertia of rigid bodies: mass, centre of mass, principal axes, solids of even density."""
