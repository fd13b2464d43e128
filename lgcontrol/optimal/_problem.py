"""OptimalControlProblem: what is to be solved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from time import perf_counter
from typing import Any, TypedDict, TypeVar
from zlib import crc32

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import ModelFunction, named_options
from ..codegen._internal import (
    check_list,
    check_one_by_one,
    check_options,
    check_shape,
    interruptible,
    read_only,
)
from ..integrators import Method, get_method
from ..systems import Parameter, ReferenceLike, System
from ..systems._internal import (
    FixedParameters,
    TrajectoryPoint,
    as_signals,
    check_start,
    not_a_system,
    values_by_name,
)
from ._bounds import (
    Bound,
    bounded_place,
    check_consistent,
    check_names,
    ignored_limits,
    with_known_limits,
)
from ._frozen import Frozen
from ._input_limits import InputLimits
from ._obstacles import seen_obstacles
from ._places import control_places, error_places, free_errors
from ._reference import ReferenceSamples
from ._rows import SeenBound, bounded_along, seen_bounds, unit_named
from ._solution import DERIVED, OptimalSolution
from ._solver import Solver, make_solver
from ._statement import (
    AT_POINTS,
    arrival_weight,
    check_blocks,
    check_horizon,
    check_horizon_of,
    check_input_hold,
    check_points,
    check_quadrature,
    check_steps,
    checked_terms,
    end_weight,
    made_parameters,
    names_of_parameters,
)
from ._substeps import MOST_SUBSTEPS, StepRule, typical_states
from ._terms import Cost, Residual
from ._traced import traced_terms
from ._weights import (
    Weight,
    WeightLike,
    diagonal_of,
    error_weight,
    input_weight,
    parameter_places,
    with_numbers,
)

F = TypeVar("F", bound=Callable[..., Any])


class ProblemOptions(TypedDict, total=False):
    """Options of `OptimalControlProblem` that controllers take as well."""

    Q: WeightLike
    R: WeightLike
    terminal: WeightLike | str | None
    bounds: Sequence[Bound]
    residuals: Sequence[Residual]
    costs: Sequence[Cost]
    parameters: Sequence[Parameter | str]
    method: str | Method
    substeps: int | None


@named_options(own="horizon dt substeps bounds residuals costs")
class OptimalControlProblem(Frozen):
    """Steer a system over a finite horizon at the least cost.

    The error is ``e = error(x, x_ref)`` in the system's coordinates, and ``δu = u − u_ref``. Of a
    reference that is a state, ``u_ref`` holds the system there.
    Minimise ``Σₖ dt/2 (eᵀ Q e + δuᵀ R δu + Σ rᵀ W r) + ½ (eᵀ Q_N e + Σ rᵀ W_N r)`` over the
    controls, subject to the dynamics, the bounds of the inputs and further bounds.

    Parameters
    ----------
    system : System
        Its control inputs are free, within their bounds; other inputs follow the reference.
    horizon : int
        Number of steps N.
    dt : float or array_like, shape (N,), optional
        Length of a step in s, or that of each step; may be left out for discrete systems. With
        steps of different lengths a soft bound counts each node as long as its step.
    Q : float, array_like or mapping
        Weight on the error, per s: a number, a diagonal, a matrix, or a mapping from blocks and
        tangent coordinates to these, as in ``{"pose": 10, "twist": 1}``. A stack of matrices, shape
        (N, n, n), has one for each step; of numbers the shape is (N, 1, 1).
    R : float, array_like or mapping
        Weight on the controls, per s; positive definite. A stack as of Q.
    terminal : float, array_like, mapping or "riccati", optional
        Weight on the last error. The default is the last Q held for another horizon, ``N dt Q``;
        ``"riccati"`` takes the cost of the LQR about the end of the reference.
    reference : optional
        Constant state, TrimPoint or Trajectory (then seen in advance). Solvers take others. If Q
        and terminal are zero, it may be left out: R then weighs the distance from the nominal
        inputs.
    bounds : sequence of Bound
    residuals : sequence of Residual
    costs : sequence of Cost
        Terms that are no squares; they come on top of the above.
    parameters : sequence of Parameter or str
        Parameters of residuals, costs and bounds, after those of the system.
    free : str or iterable of str
        Initial states that are optimised: blocks and tangent coordinates by name, as in
        ``free="duration"``, or ``"all"``. For these x0 is the initial guess. To optimise a
        parameter, add it as a constant state with a free initial value. To optimise the final time,
        scale the vector field by such a state.
    arrival : float, array_like or mapping, optional
        Weight W₀ of ``½ e₀ᵀ W₀ e₀``, with the error ``e₀`` of the free initial state from x0. In
        estimation W₀ is the inverse of the covariance. Zero if left out.
    method : str or Method
        Integrator of the steps. "auto" is rk4, or a method for stiff systems where that is too
        slow, see `lgcontrol.systems.choose_method`.
    substeps : int, optional
        Steps of the integrator in dt. If left out, as many as the fastest modes of the system at
        the reference need, actuators for example (see `lgcontrol.systems.stable_substeps`).
    weights : sequence of str
        Names of `parameters` that are entries of Q, R or terminal, as `symbolic` makes them.
    quadrature : {"left", "gauss", "collocation"}, optional
        Integral of the terms along the horizon over a step. "left" takes their value at the start
        of the step, times dt: an error of first order. "gauss" takes two Gauss points, whose states
        the integrator finds: an error of fourth order, for about thrice the operations.
        "collocation" takes the points of the method, such as ``method="radau_iia5"``, whose states
        are found in any case: an error of the order of the method. References are held over the
        step. If left out it is "left", and "gauss" for
        ``hold="first"``.
    hold : {"zero", "first", "collocation"}
        Controls within a step: held, linear from node to node, or polynomials through their values
        at the collocation points of the method, ``"radau_iia5"`` if left out. With "first" the
        first input is free. To give it, write ``Bound("push", 0.0, 0.0, at="start")``. Limits hold
        at all nodes, the last one included; those with inputs at the points. `solve` serves all,
        `MPC` "zero" and "first", a solver of its own held inputs.
    blocks : int, sequence of int or mapping, optional
        Move blocking: steps over which an input stays. ``[1, 1, 2, 4, 8]`` has five values over 16
        steps, ``5`` changes every fifth step, ``{"steer": 5}`` leaves the other inputs free. Costs
        and limits hold at every node. `solve` and `MPC` serve it.

    Attributes
    ----------
    steps : ndarray, shape (N,)
        Length of each step in s; `dt` is their mean.
    has_equal_steps : bool
    may_change : ndarray, shape (N, m) or None
        1 in steps in which a control may change, else 0; None if `blocks` leaves all free.
    is_plain : bool
        Whether inputs are held in each step and may change in the next one.
    free_start : ndarray of int, shape (k,)
        Error coordinates of the initial state that are optimised.
    input_limits : InputLimits
        Hard limits of the controls along the whole horizon, whose values may be parameters.

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
    dt: float
    Q: np.ndarray
    R: np.ndarray
    terminal: np.ndarray | str
    reference: ReferenceLike | ReferenceSamples | None
    bounds: tuple[Bound, ...]
    residuals: tuple[Residual, ...]
    costs: tuple[Cost, ...]
    parameters: tuple[Parameter, ...]
    free: tuple[str, ...]
    arrival: np.ndarray
    method: str | Method
    substeps: int
    weights: tuple[str, ...]
    quadrature: str
    hold: str
    blocks: Any
    may_change: np.ndarray | None
    steps: np.ndarray
    has_equal_steps: bool
    free_start: np.ndarray
    input_limits: InputLimits
    _is_refined: bool
    _in_parts: Callable[[int], ModelFunction] | None
    _automatic: frozenset[str]
    _kept: dict[str, Any]
    _parts: Mapping[str, slice]

    __slots__ = (*__annotations__, "__weakref__")

    def __init__(
        self,
        system: System,
        horizon: int,
        dt: ArrayLike | None = None,
        *,
        Q: WeightLike = 1.0,
        R: WeightLike = 1.0,
        terminal: WeightLike | str | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        bounds: Sequence[Bound] = (),
        residuals: Sequence[Residual] = (),
        costs: Sequence[Cost] = (),
        parameters: Sequence[Parameter | str] = (),
        free: str | Iterable[str] = (),
        arrival: WeightLike | None = None,
        method: str | Method = "auto",
        substeps: int | None = None,
        weights: Sequence[str] = (),
        quadrature: str | None = None,
        hold: str = "zero",
        blocks: int | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
        _is_refined: bool = False,
        _in_parts: Callable[[int], ModelFunction] | None = None,
    ) -> None:
        if not isinstance(system, System):
            raise TypeError(not_a_system("system", system))
        chosen = {"terminal": terminal is None, "substeps": substeps is None,
                  "method": method == "auto", "quadrature": quadrature is None}  # fmt: skip
        if not chosen["method"]:
            get_method(method)
        horizon = check_horizon(horizon, dt)
        steps = check_steps(system, horizon, dt)
        are_equal = bool((steps == steps[0]).all())
        dt = float(steps[0] if are_equal else steps.sum() / horizon)
        extra = as_signals(Parameter, parameters)
        names = names_of_parameters(system, extra)
        nominal = {entry.name: entry.nominal for entry in extra}
        places = {"Q": error_places(system), "R": control_places(system)}
        parts = parameter_places(weights, places | {"terminal": places["Q"]}, nominal)
        Q = with_numbers("Q", error_weight("Q", Q, system, horizon), parts, nominal)
        last = end_weight(
            system, terminal, horizon * dt * (Q if Q.ndim == 2 else Q[-1]), parts, nominal
        )
        free_start = free_errors(system, free)
        known = [
            with_known_limits(system, bound)
            for bound in check_list("bounds", bounds, Bound, "Bound('twist', -1.0, 1.0)")
        ]
        chosen["reference"] = reference is None and not (
            parts or Q.any() or isinstance(last, str) or last.any()
            or any(
                isinstance(one.of, str) and bounded_place(system, one)[0] == "tangent"
                for one in known
            )
        )  # fmt: skip
        if chosen["reference"]:
            reference = TrajectoryPoint(system.home, system.nominal_input)
        self._set(
            system=system, horizon=horizon, dt=dt, steps=read_only(steps), Q=read_only(Q),
            has_equal_steps=are_equal, _kept={}, _is_refined=_is_refined,
            _in_parts=_in_parts,
            reference=reference, hold=check_input_hold(system, hold, method), blocks=blocks,
            may_change=check_blocks(system, horizon, blocks),
            quadrature=check_quadrature(system, quadrature, hold),
            R=read_only(with_numbers("R", input_weight("R", R, system, horizon), parts, nominal)),
            terminal=last, free_start=free_start,
            free=(free,) if isinstance(free, str) else tuple(free),
            arrival=read_only(arrival_weight(system, arrival, free_start)), bounds=tuple(known),
            residuals=checked_terms(system, Residual, residuals, names),
            costs=checked_terms(system, Cost, costs, names),
            parameters=extra, weights=tuple(weights), _parts=parts,
            _automatic=frozenset(name for name, is_chosen in chosen.items() if is_chosen),
        )  # fmt: skip
        if self.hold != "zero" and self.may_change is not None:
            raise ValueError(
                f"blocks hold inputs, and hold={self.hold!r} lets them vary: give one of the two. "
                "An input that is linear over a block is that of one long step: give the lengths "
                "of the blocks in s as dt=[…] in place of blocks"
            )
        for bound in self.bounds:
            check_names(system, bound, names)
        check_horizon_of((*self.bounds, *self.residuals, *self.costs), horizon)
        for cost in self.costs:
            cost.weigh(1, names, steps)
        self._set(input_limits=InputLimits(system, self.bounds, horizon, names))
        check_consistent(system, self.bounds, horizon)
        typical = typical_states(system, self.reference, self.times())
        method, substeps = self._steps_rule.chosen(method, substeps, hold, typical)
        self._set(method=method, substeps=substeps)
        if self.quadrature == AT_POINTS:
            check_points(self)

    def with_arguments(self, **arguments: Any) -> OptimalControlProblem:
        """Copy with other arguments; what was chosen by default is chosen again.

        Parameters
        ----------
        **arguments
            Of the constructor: ``problem.with_arguments(horizon=30, reference=goal)``.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["push"])
        >>> problem = OptimalControlProblem(cart, 5, 0.1)
        >>> problem.with_arguments(horizon=10).terminal  # 10 steps of 0.1 s with Q
        array([[1.]])
        """
        names = signature(OptimalControlProblem.__init__).parameters.keys() - {
            "self",
            *self._automatic,
        }
        given = {name: getattr(self, name) for name in names}
        if not self.has_equal_steps:
            given["dt"] = self.steps
        return OptimalControlProblem(**(given | arguments))

    def integrated_by(self, method: str | Method, substeps: int | None) -> OptimalControlProblem:
        """Copy with a method and substeps that were chosen, and may be chosen anew."""
        made = self.with_arguments(method=method, substeps=substeps)
        made._set(_automatic=self._automatic)
        return made

    def __getstate__(self) -> dict[str, Any]:
        """With the functions of its terms as CasADi's: those of Python do not all pickle."""
        count, symbol = len(self.all_parameters), self.symbol
        terms = {
            name: traced_terms(self.system, getattr(self, name), count, symbol)
            for name in ("bounds", "residuals", "costs")
        }
        return super().__getstate__() | terms | {"_kept": {}}

    def __repr__(self) -> str:
        """System, horizon and `terms`."""
        return f"OptimalControlProblem({self.system.name!r}, {self.grid}, {self.terms})"

    @property
    def is_plain(self) -> bool:
        """Whether inputs are held in each step and may change in the next one."""
        return self.hold == "zero" and self.may_change is None

    @property
    def grid(self) -> str:
        """Number of steps and their lengths in words; unequal ones with a sum that tells grids."""
        if self.has_equal_steps:
            return f"{self.horizon} steps of {self.dt:g} s"
        least, most = self.steps.min(), self.steps.max()
        return f"{self.horizon} steps of {least:g} to {most:g} s, {crc32(self.steps.tobytes()):x}"

    @property
    def terms(self) -> str:
        """Weights on the diagonal, bounds, and how many residuals and costs, in one line."""
        bounds = ", ".join(bound.label for bound in self.bounds)
        weights = [f"{term}={diagonal_of(getattr(self, term))}" for term in ("Q", "R", "terminal")]
        return (
            ", ".join(weights)
            + (f", bounds=[{bounds}]" if bounds else "")
            + (f", {len(self.residuals)} residuals" if self.residuals else "")
            + (f", {len(self.costs)} costs" if self.costs else "")
        )

    @property
    def symbol(self) -> Any:
        """casadi.SX or casadi.MX, that of the system; steps that solve equations are MX."""
        solves = not self.system.is_discrete and get_method(self.method).solves
        return ca.MX if solves else self.system.symbol

    @property
    def all_parameters(self) -> tuple[Parameter, ...]:
        """The system's parameters, then the problem's own."""
        return (*self.system.parameters, *self.parameters)

    @property
    def nominal_parameters(self) -> np.ndarray:
        """Nominal values of the system's parameters, then of the problem's own."""
        return np.array([entry.nominal for entry in self.all_parameters])

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the system's parameters, then of the problem's own."""
        return tuple(entry.name for entry in self.all_parameters)

    def parameter_values(self, p: FixedParameters | None = None) -> np.ndarray:
        """Values of all parameters, the system's first.

        Parameters
        ----------
        p : mapping or array_like, optional
            Values by name, the others nominal; or all of them in order.

        Returns
        -------
        ndarray, shape (n,)
        """
        return values_by_name(self.all_parameters, self.nominal_parameters, p)

    def with_parameters(self, values: Mapping[str, float]) -> OptimalControlProblem:
        """Copy with other nominal values of the named parameters; compiled code serves both.

        Parameters
        ----------
        values : mapping of str to float
        """
        nominal = self.parameter_values(values)
        count = self.system.n_parameters
        names = self.system.parameter_names
        own = tuple(
            replace(entry, nominal=float(value))
            for entry, value in zip(self.parameters, nominal[count:], strict=True)
        )
        system = self.system
        if any(name in names for name in values):
            system = system.with_parameters(nominal[:count])
        return self.with_arguments(system=system, parameters=own)

    def symbolic(self, *names: str) -> OptimalControlProblem:
        """Copy in which limits and weights are parameters, so that they may change at run time.

        Parameters
        ----------
        *names : str
            ``"label.lower"`` or ``"label.upper"`` of bounds whose limit there is one number, or of
            controls. The system's own limits stay, so that a parameter can only be the tighter one.
            ``"label.soft"`` of soft bounds. ``"Q.pose"``, ``"Q.pose.x"``, ``"R.torque"``,
            ``"terminal.pose"``, or ``"Q"`` where that weight is one number times the identity: a
            default terminal weight goes with Q. ``"name.weight"`` and ``"name.terminal"`` of
            residuals and costs of that name. Weights that change along the horizon stay numbers,
            and so do Q, R and terminal with rates, blocks or a `hold` other than "zero".

        Returns
        -------
        OptimalControlProblem
            With parameters of these names; limits and weights are their nominal values.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["push"])
        >>> problem = OptimalControlProblem(cart, 5, 0.1, bounds=[Bound("x0", upper=2.0)])
        >>> problem.symbolic("x0.upper").with_parameters({"x0.upper": 3.0}).nominal_parameters
        array([3.])
        >>> problem.symbolic("Q", "R.push").parameter_names
        ('Q', 'R.push')
        """
        check_one_by_one("symbolic", names)
        terms = {"Q": self.Q, "R": self.R, "terminal": self.terminal}
        changes = made_parameters(
            self.system, names, self.bounds, self.residuals, self.costs, terms
        )
        return self.with_arguments(
            bounds=changes.bounds,
            residuals=changes.residuals,
            costs=changes.costs,
            weights=(*self.weights, *changes.weights),
            parameters=(*self.parameters, *changes.parameters),
        )

    def weight(self, term: str) -> Weight:
        """A weight with what of it is a parameter.

        Parameters
        ----------
        term : {"Q", "R", "terminal"}
            The last of these not where it is "riccati".

        Returns
        -------
        Weight
        """
        found = Weight.of(np.array(getattr(self, term)))
        sources = {term: 1.0}
        if term == "terminal" and "terminal" in self._automatic:
            sources = {"Q": self.horizon * self.dt, "terminal": 1.0}
        for source, factor in sources.items():
            for name, part in self._parts.items():
                if name.partition(".")[0] == source:
                    found.parameter[part] = self.parameter_names.index(name)
                    own = range(part.start, part.stop)
                    found.matrix[..., own, own] = factor
        return found

    @property
    def ignored_limits(self) -> tuple[str, ...]:
        """Coordinates of the configuration whose limits the system knows and no bound mentions.

        Of the whole state where the system has no structure; and entries of quantities. Empty as
        soon as a bound is a function: it may be what keeps them.
        """
        return ignored_limits(self.system, self.bounds)

    @property
    def obstacles(self) -> dict[str, Any]:
        """What bounds keep bodies out of, and gates, by the name of the first bound of each."""
        return dict(self._once("obstacles", lambda: seen_obstacles(self.system, self.bounds)))

    def bounded(
        self,
        t: np.ndarray,
        x: np.ndarray,
        u: np.ndarray,
        p: np.ndarray | None = None,
        x_ref: np.ndarray | None = None,
    ) -> dict[str, tuple[np.ndarray, float, float]]:
        """Bounded quantities along a motion by name, with their lower and upper limits.

        Parameters
        ----------
        t : ndarray, shape (k,)
            In s.
        x : ndarray, shape (k, nq)
        u : ndarray, shape (k, n_inputs) or (k - 1, n_inputs)
            Inputs, the last held where one is missing.
        p : ndarray, shape (n,), optional
            All parameters, nominal if left out.
        x_ref : ndarray, shape (k, nq), optional
            States of the reference; what is bounded next to it is left out without one.

        Returns
        -------
        dict of str to (ndarray of shape (k,), float, float)

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["push"])
        >>> problem = OptimalControlProblem(cart, 5, 0.1, bounds=[Bound("push", upper=2.0)])
        >>> problem.bounded(np.array([0.0, 0.1]), np.zeros((2, 1)), np.ones((1, 1)))
        {'push': (array([1., 1.]), -inf, 2.0)}
        """
        last = u[-1:] if len(u) else [self.system.nominal_input]
        held = u if len(u) == len(t) else np.concatenate([u, last])
        values = self.nominal_parameters if p is None else p
        points = (t, x, held, values, x_ref)
        return bounded_along(self._seen, self.parameter_names, points)

    @property
    def weighed_errors(self) -> np.ndarray:
        """Which errors have a weight in Q or at the end, shape (dim,)."""
        names = ["Q"] if isinstance(self.terminal, str) else ["Q", "terminal"]
        weights = [self.weight(name).at(self.nominal_parameters) for name in names]
        return np.any([weight.any(axis=1) for weight in weights], axis=0)

    @property
    def _seen(self) -> tuple[SeenBound, ...]:
        """What bounds along plans keep within limits."""
        names = self.parameter_names
        return self._once("bounds", lambda: seen_bounds(self.system, self.bounds, names))

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        """What is made when somebody first asks for it: every run's record does."""
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    def is_reference_given(self, states: np.ndarray) -> bool:
        """Whether states of a reference are more than the home that stands in for none."""
        return "reference" not in self._automatic or bool((states != self.system.home).any())

    def bound_unit(self, name: str) -> str:
        """Unit of a bounded quantity: m of a clearance, that of a coordinate or an input.

        Parameters
        ----------
        name : str
            Of `bounded`.
        """
        return unit_named(self.system, self.bounds, name)

    def times(self, t0: float = 0.0) -> np.ndarray:
        """Times of the nodes in s, shape (N + 1,)."""
        if self.has_equal_steps:
            return t0 + self.dt * np.arange(self.horizon + 1)
        return t0 + np.concatenate([[0.0], np.cumsum(self.steps)])

    def keeping_up(
        self, x: ArrayLike, u: ArrayLike, t: ArrayLike = 0.0, p: ArrayLike | None = None
    ) -> OptimalControlProblem:
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
        if "substeps" not in self._automatic:
            return self
        rule, method = self._steps_rule, self.method
        asked = tuple(
            None if value is None else np.asarray(value).tobytes() for value in (x, u, t, p)
        )
        before = [one for one in self._kept.get("keeps up", ()) if one != asked]
        known = *before[-1:], asked  # runs from one start follow each other, and those to one goal
        if asked in self._kept.get("keeps up", ()):
            self._kept["keeps up"] = known
            return self
        needed = rule.needed(method, x, u, t, p)
        if needed > MOST_SUBSTEPS and "method" in self._automatic:
            method = rule.method(x, u, t, p)
            if method != self.method:
                return self.integrated_by(method, None).keeping_up(x, u, t, p)
        if not self.substeps < needed <= MOST_SUBSTEPS:
            self._kept["keeps up"] = known
            return self
        return self.integrated_by(method, needed)

    def too_few_substeps(
        self, x: ArrayLike, u: ArrayLike, t: ArrayLike = 0.0, p: ArrayLike | None = None
    ) -> str:
        """Return the fault of the substeps at some states; empty if they keep up.

        Arguments are those of `keeping_up`, which helps. Substeps that the user gave are right.

        Returns
        -------
        str
        """
        if "substeps" not in self._automatic:
            return ""
        rule = self._steps_rule
        needed = rule.needed(self.method, x, u, t, p)
        return rule.fault(self.method, needed) if needed > self.substeps else ""

    @property
    def _steps_rule(self) -> StepRule:
        return StepRule(self.system, float(self.steps.max()))

    @named_options
    def solve(
        self,
        x0: ArrayLike,
        *,
        solver: Solver | str | None = None,
        refine: float | None = None,
        starts: int | None = None,
        **options: Any,
    ) -> OptimalSolution:
        """Solve for one start; for many there is `solve_many`, or keep a solver.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
        solver : Solver or str, optional
            A key of `SOLVERS` or a solver, whose settings are used; "interior_point" if left out.
        refine : float, optional
            Share of the cost, and of the range of the states, by which the plan may miss that of
            the continuous problem, such as 1e-3. And share of the range of a bounded quantity by
            which its bound may be violated between the nodes. Of an obstacle it is one of the
            radius, if that is less. The problem is solved again with
            ``"gauss"`` quadrature and with nodes where `OptimalSolution.transcription_error` is
            large, until the sum of all steps is below. The solution has the refined `problem`.
        starts : int, optional
            Number of guesses to start from: that of `guess` and random changes of it, the same ones
            in every run. They are solved on all cores, and the cheapest plan is returned. It has
            the others as `OptimalSolution.optima`. `max_iterations` is that of each, `time_limit`
            that of all. With a callback they follow each other. Plans that are off by a
            tenth of a range between the nodes come behind the others.
        **options
            Of `Solver.solve`: ``guess``, ``t0``, ``tolerance``, … If the default guess leads to no
            plan, searches from other guesses follow, and the message says so.

        Returns
        -------
        OptimalSolution
        """
        options = options | ({} if starts is None else {"starts": starts})
        if not self.is_plain:
            return DERIVED["solved_with_shapes"](self, [x0], solver, refine, options)[0]
        chosen: Any = type(make_solver(solver, self))
        check_options(options, self.solve, chosen.solve)
        own = self.parameter_values(options.get("p"))[: self.system.n_parameters]
        start = check_start(self.system, "x0", x0, own)
        if refine is not None:
            return DERIVED["refined"](self, start, refine, options | {"solver": solver})
        return self._solved(start, is_told=True, solver=solver, **options)

    def _solved(
        self, start: np.ndarray, *, is_told: bool = False, is_last: bool = True,
        solver: Solver | str | None = None, starts: int | None = None,
        coarse: Callable[[OptimalSolution], str] | None = None, **options: Any,
    ) -> OptimalSolution:  # fmt: skip
        """See `solve`; if `is_told`, the message says where steps are coarse.

        If `is_last` and the default guess leads to no plan, others are tried. Of several starts,
        `coarse` says of which plans steps are far too long.
        """
        if not self.is_plain:
            options = options | ({} if starts is None else {"starts": starts})
            return DERIVED["solved_with_shapes"](self, [start], solver, None, options)[0]
        own = self.parameter_values(options.get("p"))[: self.system.n_parameters]
        finer = self.keeping_up(start, self.system.nominal_input, options.get("t0", 0.0), own)
        made, began = make_solver(solver, finer), perf_counter()
        if starts is None:
            found = made.solve(start, **options)
            if is_last and options.get("guess") is None:
                deadline = began + options.get("time_limit", np.inf)
                found = DERIVED["from_other_guesses"](made, start, found, deadline, options)
        else:
            coarse = coarse or (lambda one: DERIVED["coarseness"](made, one, of_motion=True))
            found = DERIVED["best_of_starts"](made, start, starts, options, coarse)
        text = DERIVED["coarseness"](made, found) if is_told else ""
        return found._with_message(found.message + text) if text else found

    @interruptible
    def solve_many(
        self, x0: ArrayLike, *, solver: Solver | str | None = None, **options: Any
    ) -> list[OptimalSolution]:
        """Solve for many starts, compiled and on all cores where the solver can.

        Parameters
        ----------
        x0 : array_like, shape (k, nq)
        solver : Solver or str, optional
            As for `solve`; the default one can.
        **options
            Of `Solver.solve`, for all starts.

        Returns
        -------
        list of OptimalSolution
            In the order of the starts, each with its status.
        """
        starts = check_shape("x0", x0, (None, self.system.state.nq))
        if not self.is_plain:
            return DERIVED["solved_with_shapes"](self, starts, solver, None, options)
        chosen = make_solver(solver, self).prepare()
        together = getattr(chosen, "solve_many", None)
        if together is not None:
            return together(starts, **options)
        return [chosen.solve(start, **options) for start in starts]


def takes_problem_options(function: F) -> F:
    """Let a function that takes ``**problem: Unpack[ProblemOptions]`` name them in its help."""
    own = signature(OptimalControlProblem.__init__).parameters
    options = [own[name] for name in ProblemOptions.__annotations__]
    told = signature(function)
    mine = [entry for entry in told.parameters.values() if entry.kind is not entry.VAR_KEYWORD]
    known: Any = function
    known.__signature__ = told.replace(parameters=[*mine, *options])
    return function
