"""Paths that are given: the fastest way along one, and tasks that stay on one.

`_path_limits` has the limits along a path, `_retiming` the speed, `_path_task` the terms of a plan.
"""
