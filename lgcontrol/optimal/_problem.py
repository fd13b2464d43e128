"""OptimalControlProblem: what is to be solved, apart from any solver."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import check_shape
from ..groups import check_element
from ..integrators import Method, get_method
from ..systems import Parameter, System, stable_substeps
from ..systems._system import not_a_system
from ._bounds import Bound
from ._reference import sample_reference
from ._residual import Residual
from ._weights import input_weight, state_weight

if TYPE_CHECKING:
    from ._solution import OptimalSolution

# Share by which the steps of a plan may miss what a mode does in dt.
MODE_ACCURACY = 0.1
# Substeps are written out one after the other: with more, a model of its own is due.
MOST_SUBSTEPS = 20


@dataclass(frozen=True, eq=False)
class OptimalControlProblem:
    """Steer a system over a finite horizon at the least cost.

    With the error ``e = minus(x, x_ref)`` in tangent coordinates minimise
    ``Σₖ dt/2 (eᵀ Q e + δuᵀ R δu + Σ rᵀ W r) + ½ (eᵀ Q_N e + Σ rᵀ W_N r)`` over the controls, with
    ``δu = u − u_ref``, subject to the dynamics, the bounds of the inputs and further bounds.

    Parameters
    ----------
    system : System
        Its control inputs are free, within their bounds; other inputs follow the reference.
    horizon : int
        Number of steps N.
    dt : float, optional
        Length of a step in s; may be left out for discrete systems.
    Q : float, array_like or mapping
        Weight on the error, per s: a number, a diagonal, a matrix, or a mapping from blocks and
        tangent coordinates to these, as in ``{"pose": 10, "twist": 1}``.
    R : float, array_like or mapping
        Weight on the controls, per s; positive definite.
    terminal : float, array_like, mapping or "riccati", optional
        Weight on the last error. The default is Q held for another horizon, ``N dt Q``;
        ``"riccati"`` takes the cost of the LQR about the end of the reference.
    reference : optional
        Constant state, TrimPoint or Trajectory (then seen in advance). Solvers take others.
    bounds : sequence of Bound
    residuals : sequence of Residual
    parameters : sequence of Parameter or str
        Parameters of residuals and bounds, after those of the system.
    method : str or Method
        Integrator of the steps.
    substeps : int, optional
        Steps of the integrator in dt. If left out, as many as the fastest modes of the system at
        the reference need, actuators for example (see `lgcontrol.systems.stable_substeps`).

    Raises
    ------
    ValueError
        If a name, a size or a weight does not fit the system, or its fastest modes need more than
        20 substeps.

    Warns
    -----
    RuntimeWarning
        If the substeps given are too few.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Input, System
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[2], u - ca.sin(x[1])),
    ...     inputs=[Input("torque", "N m", -0.5, 0.5)])
    >>> problem = OptimalControlProblem(pendulum, 40, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.01)
    >>> problem.Q
    array([[1. , 0. ],
           [0. , 0.1]])
    """

    system: System
    horizon: int
    dt: float = None  # type: ignore[assignment]  # that of a discrete system
    Q: Any = 1.0
    R: Any = 1.0
    terminal: Any = None
    reference: Any = None
    bounds: Sequence[Bound] = ()
    residuals: Sequence[Residual] = ()
    parameters: Sequence[Parameter | str] = ()
    method: str | Method = "rk4"
    substeps: int = None  # type: ignore[assignment]  # what the modes need

    def __post_init__(self) -> None:
        system = self.system
        if not isinstance(system, System):
            raise TypeError(not_a_system("system", system))
        horizon = _check_horizon(self.horizon)
        if not len(system.input_index("control")):
            raise ValueError(f"{system.name} has no control inputs to optimise")
        dt = _check_step(system, self.dt)
        get_method(self.method)
        Q = state_weight("Q", self.Q, system.state)
        terminal = self.terminal
        if terminal is None:
            terminal = horizon * dt * Q
        elif not isinstance(terminal, str):
            terminal = state_weight("terminal", terminal, system.state)
        elif terminal != "riccati":
            raise ValueError(f"terminal must be a weight or 'riccati', not {terminal!r}")
        extra = tuple(Parameter(v) if isinstance(v, str) else v for v in self.parameters)
        names = [entry.name for entry in (*system.parameters, *extra)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"parameters of the same name: {', '.join(sorted(twice))}")
        values = {
            "horizon": horizon,
            "dt": dt,
            "Q": Q,
            "R": input_weight("R", self.R, system),
            "terminal": terminal,
            "bounds": _all_of("bounds", self.bounds, Bound, "Bound('twist', -1.0, 1.0)"),
            "residuals": _all_of("residuals", self.residuals, Residual, "Residual(function)"),
            "parameters": extra,
        }
        is_automatic = self.substeps is None
        values["substeps"] = 1 if is_automatic else _check_substeps(self.substeps)
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_is_automatic", is_automatic)
        needed = self._needed_substeps(*self._typical_states())
        if is_automatic and needed > MOST_SUBSTEPS:
            raise ValueError(
                f"{self._too_few(needed)}. That makes large code: leave the fastest parts out of "
                f"the model, shorten dt, or give substeps=… nevertheless"
            )
        if is_automatic:
            object.__setattr__(self, "substeps", needed)
        elif needed > self.substeps:
            warnings.warn(self._too_few(needed), RuntimeWarning, stacklevel=3)

    @property
    def nominal_parameters(self) -> np.ndarray:
        """Nominal values of the system's parameters, then of the problem's own."""
        own = [entry.nominal for entry in self.parameters if isinstance(entry, Parameter)]
        return np.concatenate([self.system.nominal_parameters, own])

    def times(self, t0: float = 0.0) -> np.ndarray:
        """Times of the nodes in s, shape (N + 1,)."""
        return t0 + self.dt * np.arange(self.horizon + 1)

    def keeping_up(self, x: Any, u: Any, t: Any = 0.0, p: Any = None) -> OptimalControlProblem:
        """The problem with as many substeps as the fastest modes at some states need.

        Parameters
        ----------
        x : array_like, shape (..., nq)
        u : array_like, shape (..., n_inputs)
        t : float or array_like
            In s.
        p : array_like, optional
            The system's parameters.

        Returns
        -------
        OptimalControlProblem
            Itself where its steps keep up, where the substeps were given by the user, and where
            states are so far off that no reasonable number would do.
        """
        if not self._is_automatic:  # type: ignore[attr-defined]
            return self
        needed = self._needed_substeps(x, u, t, p)
        if not self.substeps < needed <= MOST_SUBSTEPS:
            return self
        finer = replace(self, substeps=needed)
        object.__setattr__(finer, "_is_automatic", True)
        return finer

    def _typical_states(self) -> tuple[Any, ...]:
        """States, inputs and times at which steps have to keep up in any case."""
        x, u = [self.system.state.identity], [self.system.nominal_input]
        t = self.times()
        if self.reference is not None:
            samples = sample_reference(self.system, self.reference, t)
            x, u = [*x, *samples.x], [*u, *samples.u]
            t = np.concatenate([[0.0], t])
        return np.array(x), np.array(u), t[: len(x)]

    def _needed_substeps(self, x: Any, u: Any, t: Any = 0.0, p: Any = None) -> int:
        return stable_substeps(
            self.system, x, u, self.dt, self.method, accuracy=MODE_ACCURACY, p=p, t=t
        )

    def _too_few(self, needed: int) -> str:
        return (
            f"{self.system.name}: the fastest modes need {needed} substeps of "
            f"{get_method(self.method).name} in dt = {self.dt:g} s, else plans are far from what "
            "the system does"
        )

    def solve(self, x0: Any, *, qp: str = "auto", **options: Any) -> OptimalSolution:
        """Solve for one start; for many, keep an `SQPSolver`.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
        qp : str
            QP back-end, see `SQPSolver`.
        **options
            Of `SQPSolver.solve`: ``guess``, ``t0``, ``tolerance``, …

        Returns
        -------
        OptimalSolution
        """
        from ._sqp import SQPSolver

        start = check_element("x0", x0, self.system.state, tolerance=np.inf)
        p = options.get("p")
        own = None if p is None else np.asarray(p, dtype=np.float64)[: self.system.n_parameters]
        finer = self.keeping_up(start, self.system.nominal_input, options.get("t0", 0.0), own)
        return SQPSolver(finer, qp=qp).solve(start, **options)


def _check_horizon(value: Any) -> int:
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or value != value // 1 or value < 1:
        raise ValueError(f"horizon must be a whole number of steps, at least 1, got {value!r}")
    return int(value)


def _check_substeps(value: Any) -> int:
    if not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"substeps must be a whole number, at least 1, got {value!r}")
    return int(value)


def _all_of(name: str, values: Any, kind: type, example: str) -> tuple[Any, ...]:
    """A sequence of one type."""
    listed = isinstance(values, list | tuple)
    wrong = [value for value in values if not isinstance(value, kind)] if listed else [values]
    if wrong:
        raise TypeError(
            f"{name} must be a list of {kind.__name__}, as in {name}=[{example}]; got {wrong[0]!r}"
        )
    return tuple(values)


def _check_step(system: System, dt: float | None) -> float:
    if system.is_discrete:
        if dt is not None and abs(dt - system.dt) > 1e-9 * system.dt:
            raise ValueError(f"{system.name} has the sample time {system.dt:g} s, not dt={dt:g} s")
        return system.dt
    if dt is None:
        raise ValueError(f"{system.name} is continuous: give dt, the length of a step in s")
    value = float(check_shape("dt", dt, ()))
    if value <= 0:
        raise ValueError(f"dt must be positive, got {value:g} s")
    return value
