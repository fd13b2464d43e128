"""Surroundings of a body: forces, fluid, actuators."""
