"""A tree prepared for recursions, and how model functions are declared and made from it."""
