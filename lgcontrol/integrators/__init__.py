"""Integrators on Lie groups: one-step maps for any tangent field, explicit and implicit.

- Integrate with error control: `integrate`, which gives a `Solution`; `Tolerance`, `Event`.
- Methods: their names are in `METHODS`, and `get_method` gives one by its name;
  `generalized_alpha` and `implicit_euler3` for mechanisms.
- What is integrated: a `Field`, or a `Mechanical`, `Lagrangian` or `Constrained` problem.
- A method of your own: `MuntheKaas` and `CommutatorFree` take a `Tableau`, `Composition` takes
  steps of another method; all are a `Method`.
"""

from .. import _names
from ._adaptive import integrate as integrate
from ._explicit import CommutatorFree as CommutatorFree
from ._explicit import MuntheKaas as MuntheKaas
from ._index3 import generalized_alpha as generalized_alpha
from ._index3 import implicit_euler3 as implicit_euler3
from ._mechanical import Composition as Composition
from ._method import Method as Method
from ._methods import METHODS as METHODS
from ._methods import get_method as get_method
from ._problem import Constrained as Constrained
from ._problem import Field as Field
from ._problem import Lagrangian as Lagrangian
from ._problem import Mechanical as Mechanical
from ._solution import Event as Event
from ._solution import Solution as Solution
from ._tableau import Tableau as Tableau
from ._tolerance import Tolerance as Tolerance

_names.answer(__name__)
