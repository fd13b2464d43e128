"""GravityPD: springs and dampers in the joints, with the weight carried."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.mechanics import Multibody

from ._losses import held_states
from ._spring import error_of, gain, spring_damper
from ._tree_controller import TreeController, TreeOptions
from ._tree_law import TreeLaw, configuration_to_judge


class GravityPD(TreeController):
    """``τ = g(q) − J_r(e)⁻ᵀ K e − D (v − v_ref)`` with ``e = minus(q, q_ref)``.

    Needs no more of the model than its weight, and is stable for any positive gains. The energy
    ``½ vᵀ M v + ½ eᵀ K e`` falls by ``vᵀ D v`` to every rest pose. For other joints than revolute
    and prismatic ones the spring is the gradient on the group. The velocity of the reference is
    carried into the joint's own axes.

    Parameters
    ----------
    tree : Multibody
        What the controller knows of the plant.
    stiffness : float or array_like, shape (nv,)
        K [N m/rad, N/m].
    damping : float or array_like, shape (nv,)
        D [N m s/rad, N s/m].
    dt : float
        Period in s.
    system : System, optional
        Default ``tree.system()``; its controls must be generalized forces of the tree.
    reference : optional
        Configuration (nq,), state (nq + nv,), Trajectory or function of time.
    saturate : bool
        Whether the controls stay within their bounds: the spring gives way before the weight.
    offset, delay : float
        See `Controller`.
    p : mapping or array_like, optional
        The system's parameters; see `Controller`.

    Raises
    ------
    ValueError
        If gains are negative or the controls are no generalized forces of all joints.

    References
    ----------
    M. Takegaki, S. Arimoto: A new feedback method for dynamic control of manipulators. ASME J.
    Dyn. Syst. Meas. Control 103 (1981).

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> hold = GravityPD(tree, stiffness=20.0, damping=5.0, reference=[np.pi / 2])
    >>> hold(0.0, [np.pi / 2, 0.0])  # m g l / 2
    array([9.81])
    """

    _followed = ("q_ref", "v_ref")

    def __init__(
        self,
        tree: Multibody,
        *,
        stiffness: ArrayLike,
        damping: ArrayLike,
        **options: Unpack[TreeOptions],
    ) -> None:
        super().__init__(tree, **options)
        group, n = tree.configuration, tree.nv
        self.stiffness = gain("stiffness", stiffness, n)
        self.damping = gain("damping", damping, n)

        def law(q, v, q_ref, v_ref, stiffness, damping):
            e, relative = error_of(group, q, v, q_ref, v_ref)
            return [spring_damper(group, e, relative, stiffness, damping)]

        sizes = {"q_ref": tree.nq, "v_ref": n, "stiffness": n, "damping": n}
        self.law = TreeLaw(tree, self.system, "gravity_pd", sizes, law)
        self._check_loop()

    def _held_states(self) -> list[tuple[np.ndarray, Any]]:
        blocks, q = self.law.blocks, configuration_to_judge(self.tree, self.reference)
        x = held_states(self.system, blocks, q, self._own)[0]
        return [(x, q)]
