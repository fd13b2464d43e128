"""How far plans are from continuous time: errors of their steps, and grids without them.

`_parts` divides a plan into steps of one system, `_between` follows these between the nodes,
`_accuracy` tells the errors, and `_refine` solves again with nodes where they are large.
"""
