"""The structure of a System that bodies and trees make, traced where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import Shape
from ..groups import Product
from ..integrators import Lagrangian, Mechanical
from ..systems import Input, Parameter
from ..systems._internal import TracedLater


class Equations(Protocol):
    """What bodies and trees know of their motion, on CasADi columns; see `Mechanical`."""

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """M."""
        ...

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """F."""
        ...

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Derivatives of F − M a by the state and by the inputs."""
        ...


class MomentumEquations(Protocol):
    """Inertia and what acts, apart; see `Lagrangian`."""

    def inertia(self, x: Value, p: Value) -> Value:
        """M of the velocities and the speeds; see `Lagrangian`."""
        ...

    def action(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Q of all forces."""
        ...


def model_function(
    name: str,
    build: Callable[..., Any],
    arguments: str,
    results: dict[str, Shape],
    shapes: Mapping[str, Shape],
    inputs: Sequence[Input],
    parameters: Sequence[Parameter],
) -> ModelFunction:
    """Function of arguments named in a text; u and p are nominal where they are left out."""
    own = {"u": inputs, "p": parameters}
    known = {**shapes, **{key: (len(entries),) for key, entries in own.items()}}
    nominal = {key: np.array([x.nominal for x in entries]) for key, entries in own.items()}
    names = arguments.split()
    defaults = {key: value for key, value in nominal.items() if key in names}
    return trace(name, build, {key: known[key] for key in names}, results, defaults=defaults)


def mechanical(
    equations: Equations,
    state: Product,
    inputs: tuple[Input, ...],
    parameters: tuple[Parameter, ...],
    *,
    loss_jacobian: Callable[..., Value] | None = None,
    losses: Callable[..., Value] | None = None,
    kinetic_gradient: Callable[..., Value] | None = None,
    carried_momentum: Callable[..., Value] | None = None,
    motion: Callable[..., Any] | None = None,
    acceleration_hessian: Callable[..., Value] | None = None,
    speeds: str = "",
    model: Any,
    is_plain: bool = False,
    momenta: MomentumEquations | None = None,
) -> Mechanical:
    """Structure of a System on a state that begins with configuration and velocity.

    Without `momenta` it has no Lagrangian: the state is more than velocities and what they move.

    Its members are model functions, each traced when it is first called: what nobody asks for costs
    nothing.
    """
    configuration, velocity = tuple(state.blocks)[:2]
    nv, m = state.blocks[velocity].dim, len(inputs)
    n = nv + (state.blocks[speeds].dim if speeds else 0)
    shapes: dict[str, Shape] = {
        "t": (),
        "x": (state.nq,),
        "y": (state.nq,),
        "q": (state.blocks[configuration].nq,),
        **dict.fromkeys("vajsw", (nv,)),
    }

    def function(name: str, arguments: str, results: dict[str, Shape], build: Any) -> TracedLater:
        taken = name, build, arguments, results, shapes, inputs, parameters
        return TracedLater(lambda: model_function(*taken))

    def input_map(t: Value, x: Value, u: Value, p: Value) -> Value:
        return equations.balance_derivatives(t, x, ca.SX(nv, 1), u, p)[1]

    def of_velocity(name: str, results: dict[str, Shape], build: Any) -> TracedLater | None:
        return None if build is None else function(name, "x p", results, build)

    def of_momentum(name: str, arguments: str, build: Any) -> TracedLater | None:
        return None if build is None else function(name, arguments, {name: (n,)}, build)

    lagrangian = (
        None
        if momenta is None
        else Lagrangian(
            function("inertia", "x p", {"M": (n, n)}, momenta.inertia),
            function("action", "t x u p", {"Q": (n,)}, momenta.action),
            of_momentum("kinetic_gradient", "x p", kinetic_gradient),
            of_momentum("carried_momentum", "x y p", carried_momentum),
            speeds,
        )
    )
    return Mechanical(
        configuration,
        velocity,
        function("mass_matrix", "x p", {"M": (nv, nv)}, equations.mass_matrix),
        function("force", "t x u p", {"F": (nv,)}, equations.force),
        function(
            "balance_derivatives",
            "t x a u p",
            {"by_x": (nv, state.dim), "by_u": (nv, m)},
            equations.balance_derivatives,
        ),
        function("input_map", "t x u p", {"B": (nv, m)}, input_map),
        of_velocity("loss_jacobian", {"D": (nv, nv)}, loss_jacobian),
        of_velocity("losses", {"L": (nv,)}, losses),
        model,
        is_plain,
        lagrangian,
        None
        if motion is None
        else function(
            "motion", "q v a j s p", {"x_out": (state.nq,), "rate": (state.dim,), "u": (m,)}, motion
        ),
        None
        if acceleration_hessian is None
        else function(
            "acceleration_hessian", "t x u p w", {"H": (state.dim + m,) * 2}, acceleration_hessian
        ),
    )
