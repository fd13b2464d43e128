"""Three representations of rotations compared on arrays, as Kissel, Taves and Negrut do.

Orientation matrix (rA), Euler parameters (rp) and Euler angles (rε).

- Constraint terms and equations of motion in closed form: `ClosedForms`.
- Kinematics by Newton's method, index 3 by implicit Euler: `DirectAnalysis`.

Figures and tables of the paper come from here; motions of mechanisms come from `Mechanism` itself,
which has any joint and force.
"""

from .... import _names
from ._closed_forms import ClosedForms as ClosedForms
from ._direct import DirectAnalysis as DirectAnalysis

_names.answer(__name__)
