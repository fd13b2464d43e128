"""Plans of several stretches: `PhasedProblem` of `Phase`s, as one problem of a discrete system.

`_phase` and `_phases` are what users state. `_phase_shapes` has the inputs between the nodes of a
phase, `_phase_bounds` its bounds, `_flat_phases` the one problem. `_phase_motions` goes from nodes
to motions in time and back, `_phased_solution` and `_phased_figure` tell and draw what was found.
"""
