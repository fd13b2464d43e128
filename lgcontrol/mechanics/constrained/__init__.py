"""Constrained mechanics: closed loops, joints as equations, systems on their manifold."""

from ._constraint import Constraint as Constraint
from ._constraint import Constraints as Constraints
from ._constraint import ConstraintTerms as ConstraintTerms
