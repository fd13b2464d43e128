"""Exact linearization about the nominal solution, in left-invariant error coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, check_shape
from ._trajectory import Trajectory

if TYPE_CHECKING:
    import control

    from ._system import System

Kind = Literal["equilibrium", "relative equilibrium", "none"]

# A motion counts as an equilibrium when the field is this small next to its derivatives: a trim
# solver reaches 1e-10, a point typed with four digits should not pass.
EQUILIBRIUM_TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Linearization:
    """``ε̇ = A ε + B δu, δy = C ε + D δu`` with ``X = X̄ exp(ε)``, ``Y = Ȳ exp(δy)``.

    For discrete systems ``ε⁺ = A ε + B δu``.

    Attributes
    ----------
    A, B, C, D : ndarray
        Shapes (n, n), (n, m), (r, n), (r, m) with n = state.dim and r = output.dim.
    x, u, p : ndarray
        Where.
    t : float
        Time in s.
    rate : ndarray, shape (n,)
        The field there.
    kind : str
        "equilibrium", "relative equilibrium" (constant rate along a symmetry: A and B stay the
        same all along the motion) or "none".
    system : System
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray
    t: float
    rate: np.ndarray
    kind: Kind
    system: System

    @property
    def dt(self) -> float:
        """Sample time in s, 0 for continuous systems."""
        return self.system.dt

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the error states."""
        return self.system.state.tangent_names

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the output errors."""
        return self.system.output.tangent_names

    @property
    def is_time_invariant(self) -> bool:
        """Whether A and B stay the same along the nominal motion."""
        return self.kind != "none"

    def controls(self) -> Linearization:
        """The same with the control inputs only."""
        index = self.system.input_index("control")
        return self._replace_inputs(index)

    def _replace_inputs(self, index: np.ndarray) -> Linearization:
        return Linearization(
            self.A,
            self.B[:, index],
            self.C,
            self.D[:, index],
            self.x,
            self.u,
            self.p,
            self.t,
            self.rate,
            self.kind,
            self.system,
        )

    def to_control(self, inputs: str = "control") -> control.StateSpace:
        """As a `control.StateSpace` with names; states and outputs are error coordinates.

        Parameters
        ----------
        inputs : {"control", "disturbance", "noise", "all"}
            Which inputs to keep.
        """
        import control

        system = self.system
        index = (
            np.arange(system.n_inputs) if inputs == "all" else system.input_index(inputs)  # type: ignore[arg-type]
        )
        return control.ss(
            self.A,
            self.B[:, index],
            self.C,
            self.D[:, index],
            self.dt,
            name=system.name.replace(".", "_"),
            states=list(self.state_names),
            inputs=[system.input_names[i].replace(".", "_") for i in index],
            outputs=[name.replace(".", "_") for name in self.output_names],
        )


@dataclass(frozen=True, eq=False)
class TrajectoryLinearization:
    """Linearizations at the nodes of a trajectory.

    Attributes
    ----------
    trajectory : Trajectory
    A, B, C, D : ndarray
        As in `Linearization`, with the node as first axis; continuous-time for continuous systems.
    system : System
    """

    trajectory: Trajectory
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    system: System
    p: np.ndarray

    def __len__(self) -> int:
        """Number of nodes."""
        return len(self.A)

    def discrete(self, method: str = "rk4", substeps: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """``ε_{k+1} = A_k ε_k + B_k δu_k`` between the nodes, the inputs held.

        Returns
        -------
        A : ndarray, shape (N, n, n)
        B : ndarray, shape (N, n, m)
        """
        nodes = self.trajectory
        count = len(nodes) - 1
        derivatives = step_derivatives(self.system, method, substeps)
        result = derivatives(nodes.t[:-1], nodes.x[:-1], nodes.u[:count], self.p, np.diff(nodes.t))
        return result.A, result.B


def linearize(
    system: System, x: Any, u: Any = None, *, t: float = 0.0, p: Any = None
) -> Linearization | TrajectoryLinearization:
    """Linearize exactly about the nominal solution through a point, or along a trajectory.

    With ``X = X̄ exp(ε)`` the error obeys ``ε̇ = (Df − ad_f) ε + B δu`` to first order, without an
    affine term, whether or not the point is an equilibrium.

    Parameters
    ----------
    system : System
    x : array_like of shape (nq,), Trajectory, or a result with attributes x and u
        Where: a state, a trim point, or a whole trajectory.
    u : array_like, shape (n_inputs,), optional
        All inputs; nominal if left out.
    t : float
        Time in s.
    p : array_like, shape (n_parameters,), optional

    Returns
    -------
    Linearization or TrajectoryLinearization

    Examples
    --------
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> from lgcontrol.systems import System
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=["tx", "ty", "tz"])
    >>> satellite.linearize(satellite.state.identity).kind
    'equilibrium'
    """
    if isinstance(x, Trajectory):
        return _along(system, x, p)
    if hasattr(x, "x") and hasattr(x, "u"):
        if u is not None:
            raise TypeError("linearize got a point with its own input, and u as well")
        p = getattr(x, "p", None) if p is None else p
        t = getattr(x, "t", t)
        x, u = x.x, x.u
    x = system.state.normalize(check_shape("x", x, (system.state.nq,)))
    u = system.nominal_input if u is None else check_shape("u", u, (system.n_inputs,))
    p = system.nominal_parameters if p is None else check_shape("p", p, (system.n_parameters,))
    derivatives = field_derivatives(system)
    result = derivatives(t, x, u, p)
    return Linearization(
        result.A,
        result.B,
        result.C,
        result.D,
        x,
        u,
        p,
        float(t),
        result.rate,
        _classify(system, derivatives, result, t, x, u, p),
        system,
    )


def _along(system: System, nodes: Trajectory, p: Any) -> TrajectoryLinearization:
    if nodes.x.ndim != 2:
        raise ValueError(f"one trajectory at a time: x has shape {nodes.x.shape}")
    p = system.nominal_parameters if p is None else check_shape("p", p, (system.n_parameters,))
    u = nodes.u if len(nodes.u) == len(nodes) else np.vstack([nodes.u, nodes.u[-1:]])
    if u.shape[-1] != system.n_inputs:
        raise ValueError(
            f"the trajectory has {u.shape[-1]} inputs, {system.name} has {system.n_inputs}"
        )
    result = field_derivatives(system)(nodes.t, nodes.x, u, p)
    return TrajectoryLinearization(nodes, result.A, result.B, result.C, result.D, system, p)


def field_derivatives(system: System) -> ModelFunction:
    """``(t, x, u, p) → A, B, C, D, rate`` of the exact linearization."""
    key = ("field_derivatives",)
    if key not in system._steps:
        t, x, u, p = system._symbols()
        state, output = system.state, system.output
        lift = state.rate_matrix(x)
        rate, y = system.f(t, x, u, p), system.h(t, x, u, p)
        if system.is_discrete:
            after = state.plus(x, rate)
            drop = state.tangent_matrix(after)
            A = drop @ (ca.jacobian(after, x) @ lift)
            B = drop @ ca.jacobian(after, u)
        else:
            A = ca.jacobian(rate, x) @ lift - state.ad(rate)
            B = ca.jacobian(rate, u)
        drop = output.tangent_matrix(y)
        C = drop @ (ca.jacobian(y, x) @ lift)
        D = drop @ ca.jacobian(y, u)
        system._steps[key] = _derivative_function(
            "linearization", system, [t, x, u, p], {"A": A, "B": B, "C": C, "D": D, "rate": rate}
        )
    return system._steps[key]


def step_derivatives(system: System, method: str = "rk4", substeps: int = 1) -> ModelFunction:
    """``(t, x, u, p, dt) → x_next, A, B`` of one step: ``ε⁺ = A ε + B δu``."""
    key = ("step_derivatives", method, substeps)
    if key not in system._steps:
        t, x, u, p = system._symbols()
        dt = system.symbol.sym("dt")
        state = system.state
        after = system.step(method, substeps)(t, x, u, p, dt)
        drop = state.tangent_matrix(after)
        A = drop @ (ca.jacobian(after, x) @ state.rate_matrix(x))
        B = drop @ ca.jacobian(after, u)
        system._steps[key] = _derivative_function(
            "step_derivatives", system, [t, x, u, p, dt], {"x_next": after, "A": A, "B": B}
        )
    return system._steps[key]


def _derivative_function(
    name: str, system: System, symbols: list[Any], results: dict[str, Any]
) -> ModelFunction:
    expressions = [system.symbol(value) for value in results.values()]
    if system.symbol is ca.SX:
        expressions = ca.cse(expressions)
    names = ["t", "x", "u", "p", "dt"][: len(symbols)]
    function = ca.Function(name, symbols, expressions, names, list(results))
    n, m, r = system.state.dim, system.n_inputs, system.output.dim
    shapes = {"A": (n, n), "B": (n, m), "C": (r, n), "D": (r, m), "dt": ()}
    shapes = {key: value for key, value in shapes.items() if key in names or key in results}
    return ModelFunction(
        function, shapes=system._shapes() | shapes, defaults={"p": system.nominal_parameters}
    )


def _classify(
    system: System,
    derivatives: ModelFunction,
    here: Any,
    t: float,
    x: np.ndarray,
    u: np.ndarray,
    p: np.ndarray,
) -> Kind:
    """Follow the motion with the present rate and see whether anything changes."""
    scale = EQUILIBRIUM_TOLERANCE * (1.0 + np.abs(here.A).max(initial=0.0))
    later = np.array([0.1, 0.7, 1.9, 4.3])
    if system.is_discrete:
        later = system.dt * np.array([1.0, 2.0, 3.0, 5.0])
        motion = np.stack([system.state.exp(k * here.rate) for k in (1, 2, 3, 5)])
    else:
        motion = system.state.exp(later[:, None] * here.rate)
    there = derivatives(t + later, system.state.compose(x, motion), u, p)
    if np.abs(there.rate - here.rate).max(initial=0.0) > scale:
        return "none"
    if np.abs(there.A - here.A).max(initial=0.0) > scale:
        return "none"
    return "equilibrium" if np.abs(here.rate).max(initial=0.0) <= scale else "relative equilibrium"
