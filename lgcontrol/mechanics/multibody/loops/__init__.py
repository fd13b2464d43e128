"""Dynamics of large trees as loops over nodes instead of written-out code."""
