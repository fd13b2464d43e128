"""Dynamics of trees so large that written-out code would not be quick, or not compile."""
