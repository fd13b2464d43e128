"""Constrained mechanics: closed loops, joints as equations, systems on their manifold."""

from ._assembly import AssemblyError as AssemblyError
from ._closed_tree import Analysis as Analysis
from ._closed_tree import ClosedTree as ClosedTree
from ._closed_tree import SingularPosition as SingularPosition
from ._constraint import Constraint as Constraint
from ._constraint import Constraints as Constraints
from ._constraint import ConstraintTerms as ConstraintTerms
from ._kkt import Redundancy as Redundancy
from ._kkt import Saddle as Saddle
from ._kkt import redundancy as redundancy
from ._loop import LoopJoint as LoopJoint
from ._system import ConstrainedMechanics as ConstrainedMechanics
from ._system import Stabilization as Stabilization
from ._system import constrained_system as constrained_system
