"""Exact linearization about the nominal solution, at a point or along a trajectory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import scipy

from ..codegen import named_options
from ..codegen._internal import html_page, html_table
from ..groups import LieGroup, Product
from ..groups._internal import group_difference
from ..integrators import Method
from . import _subspaces as subspaces
from ._constraints import on_constraints, read_point
from ._definition import SystemDefinition
from ._signals import (
    Input,
    InputChoice,
    choose_inputs,
    control_name,
    control_names,
    names_of,
)
from ._stable_steps import substeps_for
from ._steadiness import Kind, Steadiness, TrimPoint
from ._step import field_derivatives, step_derivatives
from ._tracing import check_units, complete_parameters, sample_time
from ._trajectory import Trajectory

if TYPE_CHECKING:
    import control

ACCURACY = 1e-5  # of the factors of modes over a step between nodes
SPACING = 1e-6  # relative difference of node spacings that counts as rounding
MOST_LINEARIZED = 2000  # a second or so for a trajectory of a hundred nodes


@dataclass(frozen=True, eq=False, repr=False)
class Linearization:
    """``ε̇ = A ε + B δu, δy = C ε + D δu`` with ``X = X̄ exp(ε)``, ``Y = Ȳ exp(δy)``.

    For discrete systems ``ε⁺ = A ε + B δu``.

    Attributes
    ----------
    A, B, C, D : ndarray
        Shapes (n, n), (n, m), (r, n), (r, m) with n = system.n_errors and r = output.dim.
    x, u, p : ndarray
        Where; u holds all inputs of the system.
    t : float
        Time in s.
    rate : ndarray, shape (dim,)
        The field there.
    inputs : tuple of Input
        Those the columns of B and D belong to.
    system : System
    steadiness : Steadiness
        What stays the same along the motion, found when asked: `kind` and `varying` say it.
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
    inputs: tuple[Input, ...]
    system: SystemDefinition
    steadiness: Steadiness

    @property
    def kind(self) -> Kind:
        """Equilibrium, relative equilibrium or none; looked for when first asked.

        "relative equilibrium": the field and A stay the same along the motion with the present
        rate, which is a symmetry then.
        """
        return self.steadiness.kind

    @property
    def varying(self) -> tuple[str, ...]:
        """Inputs and outputs whose columns of B, D or rows of C, D change along a steady motion.

        A force fixed in the world, for example, or a position in world coordinates.
        """
        gone = {*self.system.input_names} - {*self.input_names}
        return tuple(name for name in self.steadiness.varying if name not in gone)

    def __repr__(self) -> str:
        """Where, what kind of motion, and sizes; A, B, C and D hold the numbers."""
        (n, m), r = self.B.shape, len(self.C)
        kind = "no equilibrium" if self.kind == "none" else self.kind
        varying = f", varying: {', '.join(self.varying)}" if self.varying else ""
        return (
            f"Linearization({self.system.name!r}, {kind}, {n} states, {m} inputs, {r} outputs, "
            f"t={self.t:g} s{varying})"
        )

    def _repr_html_(self) -> str:
        """Kind of motion and the poles, for notebooks."""
        unit = "" if self.system.is_discrete else "1/s"
        return html_page(
            repr(self),
            html_table(
                "Poles",
                ("real part", "imaginary part", "unit"),
                ((pole.real, pole.imag, unit) for pole in self.poles),
            ),
        )

    @property
    def dt(self) -> float:
        """Sample time in s, 0 for continuous systems."""
        return self.system.dt

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of A, complex, shape (n,); the slowest ones last.

        Poles of a continuous system are in 1/s; a negative real part decays. Poles of a discrete
        system decay within the unit circle.
        """
        values = np.linalg.eigvals(self.A).astype(np.complex128)
        real, imaginary = np.real(values), np.imag(values)
        growth = np.abs(values) if self.system.is_discrete else real
        return values[np.lexsort((imaginary, real, growth))]

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the error states."""
        return self.system.error_names

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs of B."""
        return names_of(self.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the output errors."""
        return self.system.output.tangent_names

    @property
    def is_time_invariant(self) -> bool:
        """Whether A, B, C and D all stay the same along the nominal motion."""
        return self.kind != "none" and not self.varying

    @property
    def motion(self) -> TrimPoint:
        """Nominal motion through the point, at its present rate and with its input."""
        return TrimPoint(self.x, self.u, self.t, self.p, self.rate, self.kind, self.system)

    def varying_columns(self) -> tuple[str, ...]:
        """Names of the inputs whose columns of B change along the motion (`varying` has D too)."""
        if not self.varying:
            return ()
        changes = self.steadiness.columns_of_B
        return tuple(name for name in self.input_names if name in changes)

    def discrete(self, dt: float) -> tuple[np.ndarray, np.ndarray]:
        """``ε_{k+1} = A_d ε_k + B_d δu_k`` with the input held over steps of dt.

        Exact (a matrix exponential) where A and B stay the same along the motion; elsewhere those
        of the point are frozen. Fast modes are no obstacle. A discrete system has its own step.

        Parameters
        ----------
        dt : float
            In s; the sample time for discrete systems.

        Returns
        -------
        A : ndarray, shape (n, n)
        B : ndarray, shape (n, m)

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.systems import System
        >>> motor = System("motor", Rn(1), lambda t, x, u, p: 100 * (u - x), inputs=["u"])
        >>> A, B = motor.linearize([0.0]).discrete(0.1)  # after ten time constants
        >>> A.round(6), B.round(6)
        (array([[4.5e-05]]), array([[0.999955]]))
        """
        dt = sample_time(self.system, dt)
        if self.system.is_discrete:
            return self.A, self.B
        n, m = self.B.shape
        matrix = np.zeros((n + m, n + m))
        matrix[:n] = dt * np.hstack([self.A, self.B])
        held = scipy.linalg.expm(matrix)
        return held[:n, :n], held[:n, n:]

    def controls(self) -> Linearization:
        """Keep the control inputs only."""
        return self.with_inputs("control")

    def with_inputs(self, inputs: InputChoice) -> Linearization:
        """Keep the inputs with a role.

        Parameters
        ----------
        inputs : {"control", "measured", "disturbance", "noise", "all"}

        Returns
        -------
        Linearization
        """
        index = choose_inputs(self.inputs, inputs)
        kept = tuple(self.inputs[i] for i in index)
        return replace(self, B=self.B[:, index], D=self.D[:, index], inputs=kept)

    def to_control(self, inputs: InputChoice = "control") -> control.StateSpace:
        """Return a `control.StateSpace` in error coordinates, with names.

        python-control reserves the dot in names of signals: it becomes an underscore.

        Parameters
        ----------
        inputs : {"control", "measured", "disturbance", "noise", "all"}
            Which inputs to keep.

        Returns
        -------
        control.StateSpace

        Raises
        ------
        ValueError
            If there are no inputs of the choice or no outputs, or two names become the same.
        """
        import control

        kept = self.with_inputs(inputs)
        signals = _control_signals(self.system, kept.inputs, inputs)
        return control.StateSpace(kept.A, kept.B, kept.C, kept.D, self.dt, **signals)

    def controllability(
        self, inputs: InputChoice = "control", tolerance: float = 1e-9
    ) -> subspaces.Controllability:
        """Which error states the inputs reach; see `lgcontrol.systems.controllability`."""
        return subspaces.controllability(self, inputs, tolerance)

    def observability(self, tolerance: float = 1e-9) -> subspaces.Observability:
        """Which error states the outputs show; see `lgcontrol.systems.observability`."""
        return subspaces.observability(self, tolerance)


@dataclass(frozen=True, eq=False, repr=False)
class TrajectoryLinearization:
    """Linearizations at the nodes of a trajectory; ``along[k]`` is that of node k.

    Attributes
    ----------
    trajectory : Trajectory
    A, B, C, D : ndarray
        As in `Linearization`, with the node as first axis; continuous-time for continuous systems.
    p : ndarray, shape (n_parameters,)
    system : System
    """

    trajectory: Trajectory
    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    p: np.ndarray
    system: SystemDefinition

    def __len__(self) -> int:
        """Count the nodes."""
        return len(self.A)

    def __getitem__(self, node: int) -> Linearization:
        """Linearization at a node, with its kind of motion: ``along[0].to_control()``."""
        if isinstance(node, bool) or not isinstance(node, Integral):
            raise TypeError(
                f"index a TrajectoryLinearization with the number of a node, not {node!r}; for "
                "several nodes linearize a part of the trajectory: linearize(trajectory[10:20])"
            )
        if not -len(self) <= node < len(self):
            raise IndexError(f"node {node}: the trajectory has {len(self)} nodes")
        nodes = self.trajectory
        at = nodes.x[node], nodes.input_at_nodes[node]
        return linearize(self.system, *at, t=float(nodes.t[node]), p=self.p)

    def __repr__(self) -> str:
        """Nodes and sizes; A, B, C and D hold the numbers."""
        (nodes, n, m), t = self.B.shape, self.trajectory.t
        return (
            f"TrajectoryLinearization({self.system.name!r}, {nodes} nodes from {t[0]:g} to "
            f"{t[-1]:g} s, {n} states, {m} inputs)"
        )

    def discrete(
        self, method: str | Method = "rk4", substeps: int | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """``ε_{k+1} = A_k ε_k + B_k δu_k`` between the nodes, the inputs held.

        The errors are those from the motion of the system from each node. If the trajectory obeys
        the system, they are the errors from the next node.

        Parameters
        ----------
        method : str or Method
            See `System.step`.
        substeps : int, optional
            Equal steps between two nodes. If left out, the fewest that keep the factor of every
            mode within 1e-5 of the exact one, relative to the larger of the two and 1.

        Returns
        -------
        A : ndarray, shape (N, n, n)
        B : ndarray, shape (N, n, m)

        Raises
        ------
        ValueError
            If more than 2000 substeps are needed, or a discrete system has another sample time.
        """
        nodes, system = self.trajectory, self.system
        steps = np.diff(nodes.t)
        if system.is_discrete:
            for step in steps[[int(np.argmin(steps)), int(np.argmax(steps))]]:
                sample_time(system, step, "spacing of the nodes")
        if substeps is None:
            substeps = self._enough_substeps(method, steps)
        derivatives = step_derivatives(system, method)
        count = 1 if system.is_discrete else substeps
        u, h = nodes.u[: len(nodes) - 1], steps / count
        t, x = nodes.t[:-1], nodes.x[:-1]
        result = derivatives(t, x, u, self.p, h)
        A, B = result.A, result.B
        for k in range(1, count):
            result = derivatives(t + k * h, result.x_next, u, self.p, h)
            A, B = result.A @ A, result.A @ B + result.B
        return A, B

    def to_control(
        self,
        inputs: InputChoice = "control",
        *,
        method: str | Method = "rk4",
        substeps: int | None = None,
    ) -> control.NonlinearIOSystem:
        """The linear time-varying system from node to node, for python-control.

        ``ε_{k+1} = A_k ε_k + B_k δu_k``, ``δy_k = C_k ε_k + D_k δu_k`` with k from the time of a
        call. python-control has no class for matrices that change with time, so this is a
        discrete-time `control.NonlinearIOSystem`; it pickles. Before the first and after the last
        node the matrices there are held. ``along[k].to_control()`` is the `control.StateSpace` of
        one node.

        Parameters
        ----------
        inputs : {"control", "measured", "disturbance", "noise", "all"}
            Which inputs to keep.
        method, substeps
            As for `discrete`.

        Returns
        -------
        control.NonlinearIOSystem
            With the spacing of the nodes as sample time, and the names of `Linearization`.

        Raises
        ------
        ValueError
            If the nodes are not equally far apart, there are no inputs of the choice or no outputs,
            or two names become the same.

        Examples
        --------
        >>> import control
        >>> from lgcontrol.groups import SE2
        >>> from lgcontrol.systems import System
        >>> unicycle = System(
        ...     "unicycle", SE2, lambda t, x, u, p: [u[0], 0, u[1]], inputs=["speed", "turn"])
        >>> curve = unicycle.rollout(SE2.identity, [[1.0, 0.1 * k] for k in range(20)], dt=0.1)
        >>> plant = unicycle.linearize(curve).to_control()
        >>> aside = control.input_output_response(plant, curve.t, 0.0, [0.0, 0.1, 0.0])
        >>> aside.states[:, -1].round(3)  # the error is carried along, seen from another heading
        array([ 0.095, -0.032,  0.   ])
        """
        import control

        t, system = self.trajectory.t, self.system
        kept = choose_inputs(system.inputs, inputs)
        signals = _control_signals(system, [system.inputs[i] for i in kept], inputs)
        if len(t) < 2:
            raise ValueError("the trajectory needs at least two nodes for to_control")
        dt = (t[-1] - t[0]) / (len(t) - 1)
        if not np.allclose(np.diff(t), dt, rtol=SPACING, atol=0):
            steps = np.diff(t)
            raise ValueError(
                f"{system.name}: the nodes are {steps.min():g} to {steps.max():g} s apart, and "
                f"python-control has one sample time: linearize trajectory.resample({dt:.4g})"
            )
        A, B = self.discrete(method, substeps)
        D = self.D[:, :, kept]
        return control.nlsys(
            _TimeVarying(A, B[:, :, kept], float(t[0]), float(dt)),
            _TimeVarying(self.C, D, float(t[0]), float(dt)),
            dt=system.dt or float(dt),
            **signals,
        )

    def _enough_substeps(self, method: str | Method, steps: np.ndarray) -> int:
        if self.system.is_discrete:
            return 1
        z = steps[:, None] * np.linalg.eigvals(self.A[:-1])
        found = substeps_for(z.ravel(), method, ACCURACY)
        if found > MOST_LINEARIZED:
            k, i = np.unravel_index(int(np.argmax(np.abs(z))), z.shape)
            raise ValueError(
                f"{self.system.name}: the step of {steps[k]:g} s at node {k} needs {found} "
                f"substeps for the mode of {np.abs(z[k, i]) / steps[k]:.3g} 1/s there: leave out "
                "the states that are so fast, give substeps, or put the nodes closer together"
            )
        return found


@dataclass(frozen=True, eq=False)
class _TimeVarying:
    """``(t, x, u, params) → M_k x + N_k u``, the k of the time; a class, so that it pickles."""

    M: np.ndarray
    N: np.ndarray
    start: float
    dt: float

    def __call__(self, t: float, x: Any, u: Any, params: Any = None) -> np.ndarray:
        k = min(max(round((t - self.start) / self.dt), 0), len(self.M) - 1)
        return self.M[k] @ np.ravel(x) + self.N[k] @ np.ravel(u)


def _control_signals(
    system: SystemDefinition, inputs: Sequence[Input], choice: InputChoice
) -> dict[str, Any]:
    """Names of system, states, inputs and outputs as python-control takes them."""
    outputs = system.output.tangent_names
    if not inputs:
        raise ValueError(
            f"{system.name} has no inputs of the choice {choice!r}, which python-control needs"
        )
    if not outputs:
        raise ValueError(f"{system.name} has no outputs, which python-control needs")
    return {
        "name": control_name(system.name),
        "states": list(system.error_names),
        "inputs": control_names("inputs", names_of(inputs)),
        "outputs": control_names("outputs", outputs),
    }


@overload
def linearize(  # type: ignore[overload-overlap]  # Any stands for points
    system: SystemDefinition, x: Trajectory, *, p: Any = None
) -> TrajectoryLinearization: ...
@overload
def linearize(
    system: SystemDefinition, x: Any, u: Any = None, *, t: float | None = None, p: Any = None
) -> Linearization: ...
@named_options
def linearize(
    system: SystemDefinition, x: Any, u: Any = None, *, t: float | None = None, p: Any = None
) -> Linearization | TrajectoryLinearization:
    """Linearize exactly about the nominal solution through a point, or along a trajectory.

    With ``X = X̄ exp(ε)`` the error obeys ``ε̇ = (Df − ad_f) ε + B δu`` to first order, without an
    affine term, whether or not the point is an equilibrium. A and B hold at time t; they stay what
    they are where the result says that it is time-invariant. For systems with error coordinates of
    their own (`ErrorCoordinates`), ``A_z = E A N``, ``B_z = E B``, ``C_z = C N``.

    Parameters
    ----------
    x : array_like of shape (nq,), Trajectory, or a result with attributes x and u
        Where: a state, a trim point, or a whole trajectory.
    u : array_like, shape (n_inputs,), optional
        All inputs, or the controls alone; the others are nominal.
    t : float, optional
        Time in s; that of the point, or 0, if left out.
    p : array_like, shape (n_parameters,), optional
        Parameters; those of the point, or nominal, if left out.

    Raises
    ------
    ValueError
        If shapes are wrong, or a derivative is not finite there; the message names the entry.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> from lgcontrol.systems import System
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=["tx", "ty", "tz"])
    >>> satellite.linearize(satellite.state.identity).kind
    'equilibrium'
    """
    if isinstance(x, Trajectory):
        if u is not None:
            raise TypeError("linearize got a trajectory, which has its own inputs, and u as well")
        return _along(system, x, p)
    motion = getattr(x, "trajectory", None)
    if isinstance(motion, Trajectory):
        raise TypeError(f"x is a {type(x).__name__}: give its motion, .trajectory")
    t, x, u, p = read_point(system, t, x, u, p)
    here = field_derivatives(system)(t, x, u, p)
    _refuse_non_finite(system, here, lambda: system.unsolved(t, x, u, p) if np.ndim(x) == 1 else "")
    A, B, C, D = _in_errors(system, x, p, here)
    steadiness = Steadiness(system, t, x, u, p, here)
    return Linearization(A, B, C, D, x, u, p, t, here.rate, system.inputs, system, steadiness)


def _along(system: SystemDefinition, nodes: Trajectory, p: Any) -> TrajectoryLinearization:
    if nodes.x.ndim != 2:
        raise ValueError(f"linearize one trajectory at a time: x has shape {nodes.x.shape}")
    if nodes.u.shape[-1] != system.n_inputs or nodes.group.nq != system.state.nq:
        raise ValueError(
            f"the trajectory has {nodes.group.nq} coordinates and {nodes.u.shape[-1]} inputs, "
            f"{system.name} has {system.state.nq} and {system.n_inputs}"
        )
    if _factors(nodes.group) != _factors(system.state):
        raise ValueError(
            f"the trajectory is not on the state of {system.name}: "
            f"{group_difference(nodes.group, system.state)}"
        )
    check_units("the trajectory", system, nodes)
    p = complete_parameters(system, p)
    x = on_constraints(system, "the trajectory's x", nodes.x, p)
    if x is not nodes.x:
        nodes = Trajectory(
            nodes.group, nodes.t, x, nodes.u, inputs=nodes.inputs or None, hold=nodes.hold
        )
    result = field_derivatives(system)(nodes.t, nodes.x, nodes.input_at_nodes, p)
    _refuse_non_finite(system, result)
    A, B, C, D = _in_errors(system, nodes.x, p, result)
    return TrajectoryLinearization(nodes, A, B, C, D, p, system)


def _in_errors(
    system: SystemDefinition, x: np.ndarray, p: np.ndarray, full: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, B, C, D in the error coordinates of a system, without negative zeros."""
    A, B, C, D = full.A, full.B, full.C, full.D
    if system.errors is not None:
        E, N = system.errors.selection, system.errors.basis(x, p)
        A, B, C = E @ A @ N, E @ B, C @ N
    return A + 0.0, B + 0.0, C + 0.0, D + 0.0


def _factors(group: LieGroup) -> list[LieGroup | None]:
    """Groups that the coordinates belong to, None for one that adds; names and units are left out.

    A trajectory may have been stored, or made by another program, without the names of its blocks.
    """
    if isinstance(group, Product):
        return [factor for block in group.blocks.values() for factor in _factors(block)]
    adds = group.is_commutative and group.nq == group.dim
    return [None] * group.dim if adds else [group]


def _refuse_non_finite(
    system: SystemDefinition, result: Any, why: Callable[[], str] = lambda: ""
) -> None:
    state, output = system.state.tangent_names, system.output.tangent_names
    rows = {"rate": state, "A": state, "B": state, "C": output, "D": output}
    for name, labels in rows.items():
        value = result.rate[..., None] if name == "rate" else getattr(result, name)
        bad = np.argwhere(~np.isfinite(value))
        if len(bad):
            row, column = (int(i) for i in bad[0][-2:])
            model = "the model divides by zero there, or takes the root or the logarithm of "
            raise ValueError(
                f"{system.name}: {name} of the linearization is not finite at {labels[row]}, "
                f"column {column}: {why() or model + 'something not positive'}"
            )
