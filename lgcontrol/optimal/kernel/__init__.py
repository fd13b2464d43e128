"""One planning kernel for all problems: a primal-dual interior point on Riccati sweeps.

`_settings` holds the tuned numbers. `_newton` is the algorithm in NumPy, on the barrier problem of
`_barrier` and the sweeps of `_sweep`. C has the same for any problem, in this order: `memory.c`
(numbers of a solve), `stages.c` (derivatives about an iterate), `optimality.c` (barrier function,
errors), `step.c` (Newton system), `filter.c`, `elastic.c` (restoration), `line_search.c`,
`scales.c` (sizes, limits), `solve.c`, `real_time.c` (steps of a loop). `sweep.c` is the Riccati
sweep, `start.c` the first iterate, `change.c` derivatives of solutions, `loop.c` and `bias.c` a
controller. `_table` has the structs that both sides share.
"""
