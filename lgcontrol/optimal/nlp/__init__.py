"""Problems as nonlinear programs, for IPOPT and fatrop.

`_nlp_program` writes the program that `_nlp_solver` hands to them.
"""
