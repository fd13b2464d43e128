"""Integrators on Lie groups: one-step maps for any tangent field, explicit and implicit."""

from ._adaptive import integrate as integrate
from ._commutator_free import CommutatorFree as CommutatorFree
from ._composition import Composition as Composition
from ._events import Event as Event
from ._index3 import generalized_alpha as generalized_alpha
from ._index3 import implicit_euler3 as implicit_euler3
from ._method import Method as Method
from ._methods import METHODS as METHODS
from ._methods import get_method as get_method
from ._munthe_kaas import MuntheKaas as MuntheKaas
from ._problem import Constrained as Constrained
from ._problem import Field as Field
from ._problem import Lagrangian as Lagrangian
from ._problem import Mechanical as Mechanical
from ._solution import Solution as Solution
from ._tableau import Tableau as Tableau
from ._tolerance import Tolerance as Tolerance
