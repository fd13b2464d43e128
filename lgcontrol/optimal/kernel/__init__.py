"""One planning kernel for all problems: a primal-dual interior point on Riccati sweeps.

`_settings` holds the tuned numbers, `_newton` the algorithm in NumPy, `newton.c` the same in C for
any problem, `change.c` derivatives of its solutions, `_table` the fields of the structs that both
sides of the C interface share.
"""
