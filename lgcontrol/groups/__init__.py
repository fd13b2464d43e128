"""Lie groups: state spaces without singularities, all with one interface.

- Vectors: `Rn`, and `Translation` along axes.
- Rotations: `SO2`, `SO3`.
- Poses: `SE2`, `SE3`; with a velocity or landmarks `SE23`, `SEK2`, `SEK3`.
- Motions with fewer degrees of freedom: `Schoenflies`, `Cylindrical`, `PlanarHelical`, `Helical`.
- Several together: `Product`.
- A group of your own: `LieGroup`, and `check_group`, which tests it.
- Elements from outside: `check_element` refuses coordinates that are off the group.
"""

from .. import _names
from ._abelian import Cylindrical as Cylindrical
from ._abelian import Helical as Helical
from ._abelian import Rn as Rn
from ._abelian import Translation as Translation
from ._base import LieGroup as LieGroup
from ._check import check_group as check_group
from ._element import check_element as check_element
from ._product import Product as Product
from ._schoenflies import Schoenflies as Schoenflies
from ._se2 import SE2 as SE2
from ._se2 import PlanarHelical as PlanarHelical
from ._se3 import SE3 as SE3
from ._sek import SE23 as SE23
from ._sek import SEK2 as SEK2
from ._sek import SEK3 as SEK3
from ._so2 import SO2 as SO2
from ._so3 import SO3 as SO3

_names.answer(__name__)
