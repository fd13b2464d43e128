"""Poses, twists and Jacobians of frames, with their derivatives of any order."""
