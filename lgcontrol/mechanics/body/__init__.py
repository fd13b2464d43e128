"""A rigid body on a Lie group: equations of motion, wheels, velocities of other forms."""
