"""Plants that are heavier and lose more than those that a controller knows, and late answers."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..groups import Product
from ..systems import Parameter, ReferenceLike, System
from ..systems._internal import ErrorCoordinates
from ._compiled_parts import FunctionLaw, KernelLaw
from ._controllers import another, own_offer

# Units of velocities, of bodies, joints, wheels and water.
VELOCITIES = ("m/s", "rad/s")
# Parameters of a plant made by `scaled_inertia`.
HEAVINESS, DRAG = "times_inertia", "times_drag"


def scaled_inertia(plant: System[Any], factor: float = 1.0, *, drag: float = 1.0) -> System[Any]:
    """The plant with all masses and inertias that many times theirs, and other drag.

    Its controls and its drag change its velocities that much less: with gravity and gyroscopic
    forces growing like the inertia nothing else changes, constraints included. Disturbances grow
    along, and so do springs. Drag is what tells forwards from backwards in time: the part of the
    accelerations that is odd in all velocities, those of the water among them; what has the unit
    of one is one.

    Parameters
    ----------
    plant : System
    factor : float
        Of masses and inertias: the parameter "times_inertia" of the result.
    drag : float
        Of the drag: the parameter "times_drag"; without effect where no state has the unit of a
        velocity.

    Returns
    -------
    System
        With the two parameters last: other values are no other code. It keeps no quantities.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=["push"])
    >>> heavy = scaled_inertia(cart, 2.0)
    >>> heavy.f(0.0, [0.0, 0.0], [1.0])
    array([0. , 0.5])
    >>> heavy.f(0.0, [0.0, 0.0], [1.0], [4.0, 1.0])
    array([0.  , 0.25])
    """
    n = plant.n_parameters
    idle = np.ones(plant.n_inputs)
    idle[plant.input_index("control")] = 0.0
    rates = np.array([unit in VELOCITIES for unit in plant.state.tangent_units], dtype=float)
    back = 1.0 - 2.0 * _coordinates_of(plant, rates)
    water = np.array([1.0 - 2.0 * (one.unit in VELOCITIES) for one in plant.inputs])

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        own, inertia, other_drag = p[:n], p[n], p[n + 1]
        pushed = ca.DM(idle) * u
        without = plant.f.function(t, x, pushed, own)
        driven = (plant.f.function(t, x, u, own) - without) / inertia
        if not rates.any():
            return without + driven
        returned = plant.f.function(t, ca.DM(back) * x, ca.DM(water) * pushed, own)
        lost = ca.DM(rates) * (without - returned) / 2
        return without + (other_drag / inertia - 1.0) * lost + driven

    def without_ours(function: Any) -> Any:
        return None if function is None else lambda *given: function(*given[:-1], given[-1][:n])

    errors = plant.errors
    if errors is not None:
        basis, constraints = without_ours(errors.basis), without_ours(errors.constraints)
        named = errors.names, errors.units, constraints, errors.constraint_names
        errors = ErrorCoordinates(errors.selection, basis, *named)
    return plant.replaced(
        f=field,
        h=without_ours(plant.h),
        parameters=[*plant.parameters, Parameter(HEAVINESS, "", factor), Parameter(DRAG, "", drag)],
        quantities={},
        limits={k: v for k, v in plant.limits.items() if k in plant.state.coordinate_names},
        invariants=without_ours(plant.invariants),
        project=without_ours(plant.project),
        project_derivative=without_ours(plant.project_derivative),
        errors=errors,
        derivatives=None,
        structure=None,
        policy=without_ours(plant.policy),
    )


class Late:
    """A controller whose answers take effect later than it knows.

    Parameters
    ----------
    controller : callable
    seconds : float
    """

    def __init__(self, controller: Any, seconds: float) -> None:
        self.controller, self.seconds = controller, seconds
        own = getattr(controller, "__dict__", {})
        if "system" in own:  # it still tells where states of its system should be
            self.system = own["system"]

    def __getattr__(self, name: str) -> Any:
        """Those of the controller."""
        if name == "controller":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self.controller, name)

    @property
    def delay(self) -> float:
        """Of the controller, and what comes on top."""
        return getattr(self.controller, "delay", 0.0) + self.seconds

    def __call__(self, t: float, x: np.ndarray, reference: ReferenceLike | None = None) -> Any:
        """The controller's answer."""
        return self.controller(t, x, reference)

    def compiled_law(
        self, plant: System, reference: ReferenceLike | None
    ) -> FunctionLaw | KernelLaw | None:
        """The controller without Python, for loops, which know of the delay."""
        offer = own_offer(self.controller, "compiled_law", "__call__")
        return None if offer is None else offer(plant, reference)

    def another(self) -> Late:
        """One like this, for another loop at the same time."""
        return Late(another(self.controller), self.seconds)


def _coordinates_of(plant: System[Any], chosen: np.ndarray) -> np.ndarray:
    """Ones where a coordinate of the state is a chosen component of tangent vectors."""
    if not isinstance(plant.state, Product):
        return chosen if plant.state.nq == plant.state.dim else np.zeros(plant.state.nq)
    found = np.zeros(plant.state.nq)
    for name in plant.state.blocks:
        tangent, own = plant.state.tangent_slice(name), plant.state.coordinate_slice(name)
        if tangent.stop - tangent.start == own.stop - own.start:
            found[own] = chosen[tangent]
    return found
