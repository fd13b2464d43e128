"""Free box: a rigid body on SE(3) that nothing acts on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import SE3, Product
from lgcontrol.mechanics import RigidBody, SpatialInertia
from lgcontrol.systems import System


@named_options
def free_box(
    *,
    mass: float = 141.3,
    inertia: Sequence[float] = (5.2988, 1.1775, 4.3568),
    symbolic: Sequence[str] = (),
) -> System[Product]:
    """Free box on SE(3): nothing acts on it; turning about its third axis is unstable.

    The default is a steel box of 0.1 m × 0.6 m × 0.3 m. Its energy is an invariant of the system.

    Parameters
    ----------
    mass : float
        Mass [kg].
    inertia : sequence of 3 floats
        Moments of inertia about the body axes [kg m²].
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "inertia", ….

    Returns
    -------
    System
        State: pose (SE3) and body twist. No inputs.

    References
    ----------
    S. Holzinger, J. Gerstmayr, J. Schöberl: A rigid body formulation with non-redundant unified
    local velocity coordinates; after Z. Terze, A. Müller, D. Zlatar: Singularity-free time
    integration of rotational quaternions using non-redundant ordinary differential equations.
    Multibody System Dynamics 38(3), 2016.

    Examples
    --------
    >>> box = free_box()
    >>> spin = box.trim(where={"twist": [0, 0, 0, 0, 0, 100.0]})
    >>> bool(np.linalg.eigvals(box.linearize(spin).A).real.max() > 1.0)
    True
    """
    body = RigidBody(
        "free_box",
        SE3,
        SpatialInertia(mass, np.zeros(3), np.diag(inertia)),
    ).symbolic(*as_names(symbolic))
    return body.system()
