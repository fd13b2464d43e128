"""A tree prepared for recursions, and model functions made from it."""
