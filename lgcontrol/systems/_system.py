"""System: a left-trivialised field on a Lie group, Ẋ = X f(t, X, u, p)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Shape, Value, check_shape, unknown_name
from ..groups import LieGroup
from ..integrators import get_method
from ._signals import Input, Parameter, Role, as_signals, check_name, names_of

if TYPE_CHECKING:
    from ._linearize import Linearization, TrajectoryLinearization
    from ._trajectory import Trajectory

Field = Callable[..., Any]
"""A callable (t, x, u, p) → column, on CasADi columns."""


class System:
    """A dynamic system whose state lives on a Lie group.

    Continuous systems (``dt = 0``) move with ``Ẋ = X f(t, X, u, p)``, discrete ones (``dt > 0``)
    with ``X⁺ = plus(X, f(t, X, u, p))``.

    Parameters
    ----------
    name : str
    state : LieGroup
        Usually a Product with named blocks (pose, twist, …), used for weights, plots, signals.
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
        ``(x, p) → column`` that stays constant along motions, or zero for constraints.
    project : callable, optional
        ``(x, p) → x`` back onto the constraints, applied after each integration step.
    dt : float
        Sample time in s; 0 for continuous systems.
    symbol : type
        ``casadi.SX``, or ``casadi.MX`` for callables that need it (interpolants, solvers).

    Attributes
    ----------
    f, h : ModelFunction
        Arguments (t, x, u, p); u and p may be left out and are then nominal.

    Raises
    ------
    ValueError
        If a callable returns a column of the wrong length.

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
        state: LieGroup,
        f: Field,
        *,
        inputs: Iterable[Input | str] = (),
        parameters: Iterable[Parameter | str] = (),
        h: Field | None = None,
        output: LieGroup | None = None,
        quantities: Mapping[str, Field] | None = None,
        invariants: Callable[..., Any] | None = None,
        project: Callable[..., Any] | None = None,
        dt: float = 0.0,
        symbol: type = ca.SX,
    ) -> None:
        check_name("system", name)
        if not isinstance(state, LieGroup):
            raise TypeError(f"state must be a LieGroup, not {type(state).__name__}")
        if not (np.isfinite(dt) and dt >= 0):
            raise ValueError(f"dt must be 0 (continuous) or a positive sample time, got {dt}")
        if h is not None and output is None:
            raise ValueError("with h, give output: the LieGroup of what h returns")
        self.name = name
        self.state = state
        self.inputs: tuple[Input, ...] = as_signals(Input, inputs)
        self.parameters: tuple[Parameter, ...] = as_signals(Parameter, parameters)
        self.output: LieGroup = output if h is not None and output is not None else state
        self.dt = float(dt)
        self.symbol = symbol
        self.f: ModelFunction = self._trace("f", f, state.dim)
        self.h: ModelFunction = self._trace("h", h or (lambda t, x, u, p: x), self.output.nq)
        self.quantities: dict[str, ModelFunction] = {
            key: self._trace(key, quantity, None) for key, quantity in (quantities or {}).items()
        }
        self.invariants: ModelFunction | None = (
            None if invariants is None else self._trace_static("invariants", invariants, None)
        )
        self.project: ModelFunction | None = (
            None if project is None else self._trace_static("project", project, state.nq)
        )

    # -- what it is -----------------------------------------------------------------------------

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

    def input_index(self, role: Role = "control") -> np.ndarray:
        """Positions of the inputs with a role, integers of shape (k,)."""
        return np.array([i for i, entry in enumerate(self.inputs) if entry.role == role], dtype=int)

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
        for name, value in named.items():
            if name not in self.input_names:
                raise KeyError(unknown_name("input", name, self.input_names))
            u[..., self.input_names.index(name)] = value
        return u

    @property
    def nominal_parameters(self) -> np.ndarray:
        """Nominal parameters, shape (n_parameters,)."""
        return np.array([entry.nominal for entry in self.parameters])

    def parameter_values(self, **values: float) -> np.ndarray:
        """Parameter vector with some values changed by name, shape (n_parameters,)."""
        p = self.nominal_parameters
        names = names_of(self.parameters)
        for name, value in values.items():
            if name not in names:
                raise KeyError(unknown_name("parameter", name, names))
            p[names.index(name)] = value
        return p

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
            f"parameters=[{', '.join(names_of(self.parameters))}])"
        )

    # -- motion ---------------------------------------------------------------------------------

    def step(self, method: str = "rk4", substeps: int = 1) -> ModelFunction:
        """One step ``(t, x, u, p, dt) → x⁺`` of a method of `lgcontrol.integrators`.

        Discrete systems ignore the method and dt.

        Parameters
        ----------
        method : str
            Name of an integrator, for example "euler", "rk4".
        substeps : int
            Equal steps the interval dt is divided into; u is held.

        Returns
        -------
        ModelFunction
            p and, for discrete systems, dt may be left out.
        """
        key = (method, substeps)
        if key not in self._steps:
            self._steps[key] = self._build_step(method, substeps)
        return self._steps[key]

    def rollout(
        self,
        x0: Any,
        u: Any,
        dt: float | None = None,
        *,
        steps: int | None = None,
        t0: float = 0.0,
        p: Any = None,
        method: str = "rk4",
        substeps: int = 1,
    ) -> Trajectory:
        """Response to a whole input sequence in one call, inputs held over each step.

        Parameters
        ----------
        x0 : array_like, shape (..., nq)
            Start, with batch axes for many starts at once.
        u : array_like, shape (..., N, n_inputs) or (n_inputs,)
            Inputs of each step, or one that is held for `steps` steps.
        dt : float
            Step in s; the sample time for discrete systems.
        steps : int, optional
            Number of steps when u is constant.
        t0 : float
            Start time in s.
        p : array_like, shape (n_parameters,), optional
        method, substeps
            See `step`.

        Returns
        -------
        Trajectory
            With N + 1 states and N inputs.
        """
        from ._rollout import rollout

        return rollout(self, x0, u, dt, steps=steps, t0=t0, p=p, method=method, substeps=substeps)

    def discretize(self, dt: float, method: str = "rk4", substeps: int = 1) -> System:
        """Discrete system that makes the same step: ``f = minus(step(x), x)``."""
        if self.is_discrete:
            raise ValueError(f"{self.name} is discrete already, with dt = {self.dt:g} s")
        step = self.step(method, substeps)
        return self._like(
            lambda t, x, u, p: self.state.minus(step(t, x, u, p, dt), x),
            name=f"{self.name}, {method}, {dt:g} s",
            dt=dt,
        )

    # -- analysis -------------------------------------------------------------------------------

    def linearize(
        self, x: Any, u: Any = None, *, t: float = 0.0, p: Any = None
    ) -> Linearization | TrajectoryLinearization:
        """Exact linearization at a point, a `TrimPoint` or along a `Trajectory`.

        See `lgcontrol.systems.linearize`.
        """
        from ._linearize import linearize

        return linearize(self, x, u, t=t, p=p)

    # -- tracing ----------------------------------------------------------------------------------

    @cached_property
    def _steps(self) -> dict[tuple[str, int], ModelFunction]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Functions only: steps are built again when needed."""
        return {key: value for key, value in self.__dict__.items() if key != "_steps"}

    def _symbols(self) -> tuple[Value, Value, Value, Value]:
        sym = self.symbol.sym
        return (
            sym("t"),
            sym("x", self.state.nq),
            sym("u", self.n_inputs),
            sym("p", self.n_parameters),
        )

    def _shapes(self) -> dict[str, Shape]:
        return {
            "t": (),
            "x": (self.state.nq,),
            "u": (self.n_inputs,),
            "p": (self.n_parameters,),
        }

    def _trace(self, name: str, build: Field, rows: int | None) -> ModelFunction:
        symbols = self._symbols()
        result = self._column(name, build(*symbols), rows)
        function = ca.Function(name, [*symbols], [result], ["t", "x", "u", "p"], [name])
        return ModelFunction(
            function,
            shapes=self._shapes() | {name: (result.shape[0],)},
            defaults={"u": self.nominal_input, "p": self.nominal_parameters},
        )

    def _trace_static(self, name: str, build: Field, rows: int | None) -> ModelFunction:
        _, x, _, p = self._symbols()
        result = self._column(name, build(x, p), rows)
        shapes = self._shapes()
        return ModelFunction(
            ca.Function(name, [x, p], [result], ["x", "p"], [name]),
            shapes={"x": shapes["x"], "p": shapes["p"], name: (result.shape[0],)},
            defaults={"p": self.nominal_parameters},
        )

    def _column(self, name: str, value: Any, rows: int | None) -> Any:
        if isinstance(value, list | tuple):
            value = ca.vertcat(*value)
        column = self.symbol(value)
        if column.shape[1] != 1 or (rows is not None and column.shape[0] != rows):
            expected = "one column" if rows is None else f"a column of {rows}"
            raise ValueError(
                f"{self.name}: {name} returned shape {column.shape}, expected {expected} "
                f"(state {self.state})"
            )
        return ca.cse(column) if self.symbol is ca.SX else column

    def _build_step(self, method: str, substeps: int) -> ModelFunction:
        if substeps < 1:
            raise ValueError(f"substeps must be at least 1, got {substeps}")
        t, x, u, p = self._symbols()
        dt = self.symbol.sym("dt")
        if self.is_discrete:
            after = self.state.normalize(self.state.plus(x, self.f(t, x, u, p)))
        else:
            after, h = x, dt / substeps
            scheme = get_method(method)
            for k in range(substeps):
                after = scheme.step(
                    self.state, lambda s, y: self.f(s, y, u, p), t + k * h, after, h
                )
        if self.project is not None:
            after = self.project(after, p)
        if self.symbol is ca.SX:
            after = ca.cse(after)
        return ModelFunction(
            ca.Function("step", [t, x, u, p, dt], [after], ["t", "x", "u", "p", "dt"], ["x_next"]),
            shapes=self._shapes() | {"dt": (), "x_next": (self.state.nq,)},
            defaults={"p": self.nominal_parameters} | ({"dt": self.dt} if self.is_discrete else {}),
        )

    def _like(self, f: Field, **changes: Any) -> System:
        """Copy of this system with another field."""
        arguments: dict[str, Any] = {
            "name": self.name,
            "state": self.state,
            "inputs": self.inputs,
            "parameters": self.parameters,
            "h": self.h,
            "output": self.output,
            "quantities": self.quantities,
            "invariants": self.invariants,
            "project": self.project,
            "dt": self.dt,
            "symbol": self.symbol,
        }
        return System(f=f, **(arguments | changes))
