"""Integrators on Lie groups: one-step maps for any tangent field."""

from ._adaptive import integrate as integrate
from ._commutator_free import CommutatorFree as CommutatorFree
from ._commutator_free import crouch_grossman as crouch_grossman
from ._events import Crossings as Crossings
from ._events import Event as Event
from ._method import Field as Field
from ._method import Method as Method
from ._methods import METHODS as METHODS
from ._methods import get_method as get_method
from ._munthe_kaas import MuntheKaas as MuntheKaas
from ._problem import Mechanical as Mechanical
from ._problem import Problem as Problem
from ._problem import Step as Step
from ._solution import Solution as Solution
from ._solution import Statistics as Statistics
from ._tableau import Tableau as Tableau
from ._tableau import check_tableau as check_tableau
