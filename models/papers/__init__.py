"""Figures and tables of the papers, computed again: ``lgcontrol paper`` draws and judges them.

A `Paper` has functions that give a `Reproduction` each: a figure or a table, with each `Claim` of
the paper about it and its `ClaimVerdict`.
"""

from ._paper import Claim as Claim
from ._paper import ClaimVerdict as ClaimVerdict
from ._paper import Paper as Paper
from ._paper import Reproduction as Reproduction
