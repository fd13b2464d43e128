"""Lie groups: state spaces without singularities, all with one interface."""

from ._abelian import Cylindrical as Cylindrical
from ._abelian import CylindricalGroup as CylindricalGroup
from ._abelian import Helical as Helical
from ._abelian import Rn as Rn
from ._abelian import Translation as Translation
from ._base import LieGroup as LieGroup
from ._check import check_group as check_group
from ._describe import describe_group as describe_group
from ._describe import group_from_description as group_from_description
from ._element import check_element as check_element
from ._element import not_a_group as not_a_group
from ._product import Product as Product
from ._schoenflies import Schoenflies as Schoenflies
from ._schoenflies import SchoenfliesGroup as SchoenfliesGroup
from ._se2 import SE2 as SE2
from ._se2 import PlanarHelical as PlanarHelical
from ._se2 import SE2Group as SE2Group
from ._se3 import SE3 as SE3
from ._se3 import SE3Group as SE3Group
from ._sek import SE23 as SE23
from ._sek import SEK2 as SEK2
from ._sek import SEK3 as SEK3
from ._so2 import SO2 as SO2
from ._so2 import SO2Group as SO2Group
from ._so3 import SO3 as SO3
from ._so3 import SO3Group as SO3Group
