"""Figures and tables of the papers, computed again: ``lgcontrol paper`` draws and judges them.

A `Paper` has functions that give a figure or a table each, with what the paper claims about it.
"""

from ._paper import Paper as Paper
