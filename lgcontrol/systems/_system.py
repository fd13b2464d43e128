"""System: a left-trivialised field on a Lie group, Ẋ = X f(t, X, u, p)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Generic, TypeVar

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, check_shape, is_symbolic
from ..groups import LieGroup
from ..integrators import Mechanical, Method, Problem
from . import _augment, _linearize, _nlsys, _rollout, _trim
from ._derivatives import derivatives_function, trace_derivatives
from ._errors import ErrorCoordinates
from ._signals import (
    Input,
    InputChoice,
    Parameter,
    as_signals,
    check_limits,
    check_name,
    choose_inputs,
    names_of,
    set_by_name,
)
from ._stable_steps import warn_if_unstable
from ._step import step_function
from ._tracing import Field, trace_basis, trace_field, trace_static


def not_a_system(name: str, value: object) -> str:
    """Message for something that should have been a System; trees and bodies make one."""
    remedy = "; give its .system()" if callable(getattr(value, "system", None)) else ""
    return f"{name} must be a System, not {type(value).__name__}{remedy}"


State = TypeVar("State", bound=LieGroup, covariant=True)


class System(Generic[State]):
    """A dynamic system whose state lives on a Lie group.

    Continuous systems (``dt = 0``) move with ``Ẋ = X f(t, X, u, p)``, discrete ones (``dt > 0``)
    with ``X⁺ = plus(X, f(t, X, u, p))``.

    Parameters
    ----------
    name : str
    state : LieGroup
        Usually a Product with named blocks (pose, twist, …), used for weights, plots, signals.
        Its type is that of the attribute: a ``System[Product]`` has ``state.join``.
    f : callable
        ``(t, x, u, p) → tangent`` on CasADi columns, traced once; a casadi.Function or
        ModelFunction with these four arguments will do.
    inputs : iterable of Input or str
    parameters : iterable of Parameter or str
    h : callable, optional
        Output map ``(t, x, u, p) → coordinates on output``; the default is the state.
    output : LieGroup, optional
        Group of the output; needed with `h`.
    quantities : mapping of str to callable, optional
        Further named results ``(t, x, u, p) → column``: multipliers, powers, loads.
    invariants : callable, optional
        ``(x, p) → column`` that stays constant along motions with the nominal input: zero for
        constraints, energy, momentum.
    project : callable, optional
        ``(x, p) → x`` back onto the constraints, applied after each step.
    limits : mapping of str to (float, float), optional
        Lower and upper limits of coordinates of the state by name, such as those of joints. Nothing
        keeps them; simulations say where they are exceeded.
    derivatives : callable, optional
        ``(t, x, u, p) → Df, Bf`` where they are known in closed form: ``∂f(x exp d)/∂d`` at d = 0,
        shape (dim, dim), and ``∂f/∂u``, shape (dim, n_inputs). If left out they follow from the
        structure, or from automatic differentiation.
    structure : Mechanical, optional
        What a mechanical system is made of; its members are model functions.
    errors : ErrorCoordinates, optional
        Error coordinates that are fewer than the group's, for constrained systems.
    dt : float
        Sample time in s; 0 for continuous systems.
    symbol : type
        ``casadi.SX``, or ``casadi.MX`` for callables that need it (interpolants, solvers).

    Attributes
    ----------
    f, h : ModelFunction
        Arguments (t, x, u, p); u and p may be left out and are then nominal.
    quantities : dict of str to ModelFunction
        Arguments as of f.
    invariants, project : ModelFunction or None
        Arguments (x, p).

    Raises
    ------
    TypeError
        If a callable does not return a CasADi column.
    ValueError
        If a callable returns a column of the wrong length, or one that depends on anything but
        its arguments.

    Examples
    --------
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> def swing(t, x, u, p):
    ...     cos, sin, rate = ca.vertsplit(x)
    ...     return ca.vertcat(rate, u - p * sin)
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)), swing,
    ...     inputs=[Input("torque", "N m")], parameters=[Parameter("stiffness", "1/s²", 9.81)])
    >>> pendulum.f(0.0, [0.0, 1.0, 0.5])
    array([ 0.5 , -9.81])
    """

    def __init__(
        self,
        name: str,
        state: State,
        f: Field,
        *,
        inputs: Iterable[Input | str] = (),
        parameters: Iterable[Parameter | str] = (),
        h: Field | None = None,
        output: LieGroup | None = None,
        quantities: Mapping[str, Field] | None = None,
        invariants: Callable[..., Any] | None = None,
        project: Callable[..., Any] | None = None,
        limits: Mapping[str, tuple[float, float]] | None = None,
        derivatives: Field | None = None,
        structure: Mechanical | None = None,
        errors: ErrorCoordinates | None = None,
        dt: float = 0.0,
        symbol: type = ca.SX,
    ) -> None:
        check_name("system", name)
        for role, group in (("state", state), ("output", state if output is None else output)):
            if not isinstance(group, LieGroup):
                raise TypeError(f"{role} must be a LieGroup, not {type(group).__name__}")
        if not (np.isfinite(dt) and dt >= 0):
            raise ValueError(f"dt must be 0 (continuous) or a positive sample time, got {dt}")
        if (h is None) != (output is None):
            raise ValueError("h and output, the LieGroup of what h returns, go together")
        if symbol not in (ca.SX, ca.MX):
            raise ValueError(f"symbol must be casadi.SX or casadi.MX, not {symbol!r}")
        self.name = name
        self.state: State = state
        self.inputs: tuple[Input, ...] = as_signals(Input, inputs)
        self.parameters: tuple[Parameter, ...] = as_signals(Parameter, parameters)
        self.output: LieGroup = state if output is None else output
        self.dt = float(dt)
        self.limits: dict[str, tuple[float, float]] = check_limits(state, limits or {})
        self.symbol: Any = symbol
        self.f: ModelFunction = trace_field(self, "f", f, state.dim)
        self.h: ModelFunction = trace_field(
            self, "h", (lambda t, x, u, p: x) if h is None else h, self.output.nq
        )
        self.quantities: dict[str, ModelFunction] = {
            key: trace_field(self, key, quantity, None)
            for key, quantity in (quantities or {}).items()
        }
        self.invariants: ModelFunction | None = (
            None if invariants is None else trace_static(self, "invariants", invariants, None)
        )
        self.project: ModelFunction | None = (
            None if project is None else trace_static(self, "project", project, state.nq)
        )
        self.structure: Mechanical | None = structure
        self.errors: ErrorCoordinates | None = None if errors is None else trace_basis(self, errors)
        self._given_derivatives: ModelFunction | None = (
            None if derivatives is None else trace_derivatives(self, derivatives)
        )

    # What it is

    @property
    def n_inputs(self) -> int:
        """Number of inputs of all roles."""
        return len(self.inputs)

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return len(self.parameters)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of all inputs."""
        return names_of(self.inputs)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return names_of(self.parameters)

    @property
    def nominal_input(self) -> np.ndarray:
        """Nominal input, shape (n_inputs,)."""
        return np.array([entry.nominal for entry in self.inputs])

    @property
    def input_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, shape (n_inputs,) each."""
        return (
            np.array([entry.lower for entry in self.inputs]),
            np.array([entry.upper for entry in self.inputs]),
        )

    def input_index(self, role: InputChoice = "control") -> np.ndarray:
        """Positions of the inputs with a role, or of "all", integers of shape (k,)."""
        return choose_inputs(self.inputs, role)

    def full_input(self, control: Any, **named: float) -> np.ndarray:
        """Input vector from the controls; the other inputs are nominal unless named.

        Parameters
        ----------
        control : array_like, shape (..., n_controls)
        **named : float
            Other inputs by name.

        Returns
        -------
        ndarray, shape (..., n_inputs)
        """
        index = self.input_index("control")
        control = check_shape("control", control, (len(index),), batch=True)
        u = np.broadcast_to(self.nominal_input, (*control.shape[:-1], self.n_inputs)).copy()
        u[..., index] = control
        return set_by_name("input", self.input_names, u, named)

    @property
    def nominal_parameters(self) -> np.ndarray:
        """Nominal parameters, shape (n_parameters,)."""
        return np.array([entry.nominal for entry in self.parameters])

    def parameter_values(self, **values: float) -> np.ndarray:
        """Parameter vector with some values changed by name, shape (n_parameters,)."""
        return set_by_name("parameter", self.parameter_names, self.nominal_parameters, values)

    @property
    def state_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of the state's coordinates, infinite without, shape (nq,) each."""
        none = (-np.inf, np.inf)
        pairs = [self.limits.get(name, none) for name in self.state.coordinate_names]
        lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return lower, upper

    @property
    def derivatives(self) -> ModelFunction:
        """``(t, x, u, p) → Df, Bf`` of f: ``∂f(x exp d)/∂d`` at d = 0, and ``∂f/∂u``.

        In closed form where the maker of the system or its structure knows one. For discrete
        systems those of the increment f. `linearize` has ``Df − ad_f``.
        """
        return derivatives_function(self)

    # Errors: what tells two states apart

    @property
    def n_errors(self) -> int:
        """Number of error coordinates: the dimension of linearizations, weights and gains."""
        return self.state.dim if self.errors is None else len(self.errors.names)

    @property
    def error_names(self) -> tuple[str, ...]:
        """Names of the error coordinates."""
        return self.state.tangent_names if self.errors is None else self.errors.names

    @property
    def error_units(self) -> tuple[str, ...]:
        """Units of the error coordinates."""
        return self.state.tangent_units if self.errors is None else self.errors.units

    @property
    def error_selection(self) -> np.ndarray:
        """E, shape (n_errors, dim): constant; the identity where all coordinates are free."""
        return np.eye(self.state.dim) if self.errors is None else self.errors.selection

    def error_basis(self, x: Any, p: Any = None) -> Any:
        """N with ``E N = 1``: tangent vectors of error coordinates, shape (..., dim, n_errors)."""
        if self.errors is not None:
            return self.errors.basis(x, self.nominal_parameters if p is None else p)
        if is_symbolic(x):
            return ca.DM.eye(self.state.dim)
        batch = np.shape(x)[:-1]
        return np.broadcast_to(np.eye(self.state.dim), (*batch, self.state.dim, self.state.dim))

    def error(self, x: Any, x_ref: Any) -> Any:
        """``z = E minus(x, x_ref)``, shape (..., n_errors); NumPy with batch axes, or CasADi."""
        away = self.state.minus(x, x_ref)
        if self.errors is None:
            return away
        E = self.errors.selection
        return away @ E.T if isinstance(away, np.ndarray) else ca.DM(E) @ away

    def retract(self, x: Any, z: Any, p: Any = None) -> Any:
        """State at error coordinates z from x: ``project(plus(x, N z))``, for small z.

        Examples
        --------
        >>> from lgcontrol.groups import SO2
        >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
        >>> clock.error(clock.retract(SO2.identity, [0.5]), SO2.identity)
        array([0.5])
        """
        p = self.nominal_parameters if p is None else p
        if self.errors is not None:
            N = self.errors.basis(x, p)
            z = (N @ np.asarray(z)[..., None])[..., 0] if isinstance(N, np.ndarray) else N @ z
        moved = self.state.plus(x, z)
        return moved if self.project is None else self.project(moved, p)

    @property
    def problem(self) -> Problem:
        """The motion as integrators see it."""
        key = ("problem",)
        if key not in self._cache:
            self._cache[key] = Problem(
                self.state,
                self.f,
                lambda t, x, u, p: self.derivatives(t, x, u, p),  # made when first needed
                self.structure,
                self.n_inputs,
                self.n_parameters,
                self.symbol,
            )
        return self._cache[key]

    @property
    def is_discrete(self) -> bool:
        """Whether the system moves in samples."""
        return self.dt > 0

    def __repr__(self) -> str:
        """Name, state group, inputs, parameters."""
        kind = f"dt={self.dt:g} s" if self.is_discrete else "continuous"
        return (
            f"System({self.name!r}, {kind}, state={self.state}, "
            f"inputs=[{', '.join(self.input_names)}], "
            f"parameters=[{', '.join(self.parameter_names)}])"
        )

    # Motion

    def step(self, method: str | Method = "rk4", substeps: int = 1) -> ModelFunction:
        """One step ``(t, x, u, p, dt) → x⁺`` of a method of `lgcontrol.integrators`.

        Discrete systems ignore the method, the substeps and dt.

        Parameters
        ----------
        method : str or Method
            An integrator, for example "euler", "rk4".
        substeps : int
            Equal steps the interval dt is divided into; u is held.

        Returns
        -------
        ModelFunction
            p and, for discrete systems, dt may be left out.
        """
        return step_function(self, method, substeps)

    def discretize(
        self, dt: float, method: str | Method = "rk4", substeps: int = 1
    ) -> System[State]:
        """Discrete system that makes the same step: ``f = minus(step(x), x)``.

        Parameters
        ----------
        dt : float
            Sample time in s; the inputs are held over it.
        method, substeps
            See `step`.

        Returns
        -------
        System

        Warns
        -----
        RuntimeWarning
            If the step lets modes grow that do not, judged at the identity with nominal inputs;
            says how many substeps suffice. `stable_substeps` judges at other states.
        """
        if self.is_discrete:
            raise ValueError(f"{self.name} is discrete already, with dt = {self.dt:g} s")
        if not (np.isfinite(dt) and dt > 0):
            raise ValueError(f"dt must be a positive sample time in s, got {dt}")
        warn_if_unstable(self, dt, method, substeps)
        step = self.step(method, substeps)
        return self._like(
            f=lambda t, x, u, p: self.state.minus(step(t, x, u, p, dt), x),
            dt=dt,
        )

    rollout = _rollout.rollout
    linearize = _linearize.linearize
    trim = _trim.trim
    augment = _augment.augment
    to_nlsys = _nlsys.to_nlsys

    # Copies

    def with_parameters(self, **values: float) -> System[State]:
        """Return a copy with other nominal values of the named parameters.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> cart = System("cart", Rn(1), lambda t, x, u, p: -p * x,
        ...               parameters=[Parameter("drag", "1/s", 2.0)])
        >>> cart.with_parameters(drag=3.0).f(0.0, [1.0])
        array([-3.])
        """
        nominal = self.parameter_values(**values)
        changed = (
            Parameter(old.name, old.unit, float(value))
            for old, value in zip(self.parameters, nominal, strict=True)
        )
        return self._like(parameters=changed)

    @cached_property
    def _cache(self) -> dict[tuple[Any, ...], Any]:
        """Functions derived from f and h, built when first needed."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Functions that define the system only: derived ones are built again when needed."""
        return {key: value for key, value in self.__dict__.items() if key != "_cache"}

    def _like(self, **changes: Any) -> System[State]:
        """Copy with some arguments of the constructor changed."""
        arguments: dict[str, Any] = {
            "name": self.name,
            "state": self.state,
            "f": self.f,
            "inputs": self.inputs,
            "parameters": self.parameters,
            "h": self.h,
            "output": self.output,
            "quantities": self.quantities,
            "invariants": self.invariants,
            "project": self.project,
            "limits": self.limits,
            "derivatives": self._given_derivatives,
            "structure": self.structure,
            "errors": self.errors,
            "dt": self.dt,
            "symbol": self.symbol,
        }
        arguments |= changes
        known = arguments["state"].coordinate_names
        arguments["limits"] = {k: v for k, v in arguments["limits"].items() if k in known}
        return System(**arguments)
