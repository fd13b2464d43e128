"""SystemDefinition: what a system is: state, signals, functions, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, named_options
from ..codegen._internal import (
    Memo,
    Shape,
    UnknownNameError,
    check_shape,
    html_page,
    html_table,
    is_symbolic,
    solve_symmetric,
)
from ..groups import LieGroup, Product, check_element
from ..groups._internal import not_a_group
from ..integrators import Constrained, Mechanical
from ..integrators._internal import Problem
from ..scene import BodyShape, Scene
from ..scene._internal import (
    ModelLook,
    Scenery,
    as_look,
    goals_of,
    obstacle_bodies,
    scene_of_states,
    smooth_motion,
)
from ._algebraic import AlgebraicEquations
from ._blocks import ErrorCoordinates
from ._signals import (
    FixedParameters,
    Input,
    InputChoice,
    Parameter,
    Quantity,
    as_signals,
    check_limits,
    check_name,
    choose_inputs,
    names_of,
    nominal_of,
    set_by_name,
    set_parameters,
    unknown_parameter,
    values_by_name,
)
from ._tracing import (
    Field,
    TracedLater,
    complete_input,
    complete_parameters,
    matrix_function,
    symbols_of,
    trace_basis,
    trace_field,
    trace_matrices,
    trace_policy,
    trace_static,
    traced_when_asked,
)

if TYPE_CHECKING:  # a system whose state is not told is one of any state
    from typing_extensions import TypeVar

    State = TypeVar("State", bound=LieGroup, default=Any, covariant=True)
else:
    from typing import TypeVar

    State = TypeVar("State", bound=LieGroup, covariant=True)


def not_a_system(name: str, value: object) -> str:
    """Message for something that should have been a System; trees and bodies make one."""
    remedy = "; give its .system()" if callable(getattr(value, "system", None)) else ""
    if type(value).__module__.startswith("control."):
        remedy = "; System.from_control(model) makes one"
    return f"{name} must be a System, not {type(value).__name__}{remedy}"


class LimitedQuantities(NamedTuple):
    """Entries of quantities that have limits.

    The function is ``(t, x, u, p) → values``, shape (..., k).
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    function: ModelFunction


_ARGUMENTS = (
    *("name", "state", "f", "inputs", "parameters", "h", "output", "invariants", "project"),
    *("project_derivative", "limits", "structure", "constrained", "errors", "policy", "home"),
    *("look", "dt", "symbol"),
)


@named_options(own="inputs parameters")
class SystemDefinition(Memo, Generic[State]):
    """What a system is; `System` adds what it can do, and documents the arguments."""

    _refusal = staticmethod(not_a_system)  # what wrong arguments are told

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
        quantities: Mapping[str, Field | Quantity] | None = None,
        invariants: Callable[[Any, Any], Any] | None = None,
        project: Callable[[Any, Any], Any] | None = None,
        project_derivative: Callable[[Any, Any], Any] | None = None,
        limits: Mapping[str, tuple[float, float]] | None = None,
        derivatives: Field | None = None,
        structure: Mechanical | None = None,
        constrained: Constrained | None = None,
        errors: ErrorCoordinates | None = None,
        policy: Callable[[Any, Any, Any, Any, Any], Any] | None = None,
        home: Any = None,
        look: ModelLook | Sequence[BodyShape] | None = None,
        dt: float = 0.0,
        symbol: type = ca.SX,
    ) -> None:
        check_name("system", name)
        for role, group in (("state", state), ("output", state if output is None else output)):
            if not isinstance(group, LieGroup):
                raise TypeError(not_a_group(role, group))
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
        self.symbol: Any = symbol
        self.f: ModelFunction = trace_field(self, "f", f, state.dim)
        self.h: ModelFunction = trace_field(
            self, "h", (lambda t, x, u, p: x) if h is None else h, self.output.nq
        )
        named = {
            key: value if isinstance(value, Quantity) else Quantity(value)
            for key, value in (quantities or {}).items()
        }
        self.quantities: Mapping[str, ModelFunction] = MappingProxyType(
            {key: trace_field(self, key, value.of, None) for key, value in named.items()}
        )
        self._rows: dict[str, tuple[tuple[str, ...], str]] = {
            key: (value.entries, value.unit) for key, value in named.items()
        }
        # ``(t, x, u, p) → value, by_x, by_u`` of those with derivatives in closed form.
        self._slopes: dict[str, ModelFunction] = {
            key: _trace_slopes(self, key, value.derivatives)
            for key, value in named.items()
            if value.derivatives is not None
        }
        self.limits: Mapping[str, tuple[float, float]] = MappingProxyType(
            check_limits(state, self.quantity_names, limits or {})
        )
        self.invariants: ModelFunction | None = (
            None if invariants is None else trace_static(self, "invariants", invariants, None)
        )
        self.project: ModelFunction | None = (
            None if project is None else trace_static(self, "project", project, state.nq)
        )
        if project_derivative is not None and project is None:
            raise ValueError(f"{name}: project_derivative is that of project, which is missing")
        slope: Any = project_derivative
        results: dict[str, Shape] = {"slope": (state.dim, state.dim)}
        self.project_derivative: ModelFunction | None = (
            None
            if slope is None
            else traced_when_asked(
                slope,
                lambda made: trace_matrices(self, "project_derivative", made, "x p", results),
            )
        )
        self.structure: Mechanical | None = (
            None if structure is None else _trace_structure(self, structure)
        )
        self.constrained: Constrained | None = constrained
        self.errors: ErrorCoordinates | None = None if errors is None else trace_basis(self, errors)
        self.policy: ModelFunction | None = None if policy is None else trace_policy(self, policy)
        self._home = state.identity if home is None else check_element("home", home, state).copy()
        self.look: ModelLook | None = as_look(name, state, look)
        self._algebraic: AlgebraicEquations | None = None  # that f solves
        # What a discretized system makes steps of: (system, method, substeps).
        self._later_derivatives: Any = None  # traced when asked for
        self._given_derivatives: ModelFunction | None = (
            None
            if derivatives is None
            else traced_when_asked(derivatives, lambda made: _trace_derivatives(self, made))
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse to change what a system is: who else holds it, such as its tree, has the same."""
        if not name.startswith("_") and name in vars(self):
            raise AttributeError(
                f"{name} of the system {self.name} is read-only, since functions are made of it "
                "and others hold it: make another system, with_parameters(…), with_policy(…), "
                f"augment(…), or with {name}= where this one was made"
            )
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # a type checker takes it for every name

        def __getattr__(self, name: str) -> Any:
            """Say where values of parameters and inputs are, which newcomers look for here."""
            known = self.__dict__.get("parameters", ())
            if any(entry.name == name for entry in known):
                raise AttributeError(
                    f"{self.name} has no attribute {name!r} but a parameter: "
                    f"parameter_values() has its value, with_parameters({{{name!r}: …}}) another",
                    name=name,
                )
            return super().__getattr__(name)

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
        return self.memo(("input names",), lambda: names_of(self.inputs))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.memo(("parameter names",), lambda: names_of(self.parameters))

    @property
    def home(self) -> np.ndarray:
        """State where searches, samples and judgements begin, shape (nq,); a copy."""
        return self._home.copy()

    @property
    def nominal_input(self) -> np.ndarray:
        """Nominal input, shape (n_inputs,)."""
        return self.memo(("nominal input",), lambda: nominal_of(self.inputs)).copy()

    @property
    def input_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds, shape (n_inputs,) each."""
        sides = ("lower", "upper")
        rows = self.memo(("input bounds",), lambda: np.array(
            [[getattr(entry, side) for entry in self.inputs] for side in sides], dtype=np.float64
        ))  # fmt: skip
        return rows[0].copy(), rows[1].copy()

    def input_index(self, role: InputChoice = "control") -> np.ndarray:
        """Positions of the inputs with a role, or of "all", integers of shape (k,)."""
        if not isinstance(role, str):  # which is refused
            return choose_inputs(self.inputs, role)
        return self.memo(("inputs", role), lambda: choose_inputs(self.inputs, role)).copy()

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
        return self.memo(("nominal",), lambda: nominal_of(self.parameters)).copy()

    @named_options
    def parameter_values(self, values: Mapping[str, Any] | None = None) -> np.ndarray:
        """Parameter vector with some values set by name, the others nominal.

        Parameters
        ----------
        values : mapping of str to float, optional
            Values may have batch axes.

        Returns
        -------
        ndarray, shape (..., n_parameters)
        """
        return set_parameters(self.parameters, values or {})

    @property
    def state_limits(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper limits of the state's coordinates, infinite without, shape (nq,) each."""
        none = (-np.inf, np.inf)
        pairs = [self.limits.get(name, none) for name in self.state.coordinate_names]
        lower, upper = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
        return lower, upper

    @property
    def quantity_names(self) -> tuple[str, ...]:
        """Names of the entries of all quantities, which limits and bounds go by."""
        return tuple(self._quantity_places)

    @property
    def quantity_units(self) -> dict[str, str]:
        """Unit of each of `quantity_names`, empty where none was given."""
        return {name: self._rows[key][1] for name, (key, _) in self._quantity_places.items()}

    @property
    def _quantity_places(self) -> dict[str, tuple[str, int]]:
        def make() -> dict[str, tuple[str, int]]:
            return {
                name: (quantity, i)
                for quantity, value in self.named_quantities().items()
                for i, name in enumerate(
                    value.names(quantity, self.quantities[quantity].result_shapes[0][0])
                )
            }

        return self.memo(("quantity places",), make)

    def quantity_rows(
        self,
        names: Sequence[str],
        t: Value,
        x: Value,
        u: Value,
        p: Value,
        known: Mapping[str, Value] | None = None,
    ) -> Value:
        """Entries of quantities as one column, for CasADi columns.

        Parameters
        ----------
        names : sequence of str
            Among `quantity_names`.
        t, x, u, p : value
            Of p what comes after the system's own parameters is not read.
        known : mapping of str to value, optional
            Columns of whole quantities that stand for what they are.
        """
        p = p[: len(self.parameters)]
        places, columns = [self._quantity_places[name] for name in names], {**(known or {})}
        for key, _ in places:
            if key not in columns:
                columns[key] = self.quantities[key](t, x, u, p)
        return ca.vertcat(*(columns[key][i] for key, i in places))

    @property
    def quantity_derivatives(self) -> Mapping[str, ModelFunction]:
        """``(t, x, u, p) → value, by_x, by_u`` of quantities that know them in closed form."""
        return MappingProxyType(self._slopes)

    @property
    def limited_quantities(self) -> LimitedQuantities | None:
        """Entries of quantities that have limits, as one function; None where none has."""
        return self.memo(("limited quantities",), self._limited_quantities)

    def _limited_quantities(self) -> LimitedQuantities | None:
        names = tuple(name for name in self.quantity_names if name in self.limits)
        if not names:
            return None
        symbols = symbols_of(self)
        rows = {"limited": self.quantity_rows(names, *symbols)}
        function = matrix_function(self, "limited", [*symbols], rows)
        limits = np.array([self.limits[name] for name in names]).T
        units = tuple(self.quantity_units[name] for name in names)
        return LimitedQuantities(names, units, limits[0], limits[1], function)

    def named_quantities(
        self, wrap: Callable[[Any], Callable[..., Any]] | None = None
    ) -> dict[str, Quantity]:
        """Quantities with the names and units of their entries, for another system.

        Parameters
        ----------
        wrap : callable, optional
            What makes a function of the other system from one of this.
        """
        return {
            key: Quantity(value if wrap is None else wrap(value), *self._rows[key])
            if wrap is not None or key not in self._slopes
            else Quantity(value, *self._rows[key], self._slopes[key])
            for key, value in self.quantities.items()
        }

    @property
    def derivatives(self) -> ModelFunction:
        """``(t, x, u, p) → Df, Bf`` of f: ``∂f(x exp d)/∂d`` at d = 0, and ``∂f/∂u``.

        In closed form where the maker of the system or its structure knows one. For discrete
        systems those of the increment f; `discretize` leads them back to those of the field.
        `linearize` has ``Df − ad_f``.
        """
        given: Any = self._given_derivatives
        if given is not None:
            return given.traced if isinstance(given, TracedLater) else given
        return self.memo(("derivatives",), self._trace_derivatives)

    def _trace_derivatives(self) -> ModelFunction:
        t, x, u, p = symbols_of(self)
        rate = self.f(t, x, u, p)
        if self._later_derivatives is not None:
            Df, Bf = self._later_derivatives(t, x, u, p)
        elif self.structure is None or self.is_discrete:
            Df, Bf = ca.jacobian(rate, x) @ self.state.rate_matrix(x), ca.jacobian(rate, u)
        else:
            Df, Bf = _of_structure(self, self.structure, rate, (t, x, u, p))
        return matrix_function(self, "derivatives", [t, x, u, p], {"Df": Df, "Bf": Bf})

    @property
    def _knows_derivatives(self) -> bool:
        """Whether derivatives were given, apart from those of the structure."""
        return self._given_derivatives is not None or self._later_derivatives is not None

    @property
    def velocities(self) -> dict[int, int]:
        """Coordinates of x that are rates of others: ``f[entry] = x[coordinate]`` identically.

        By the entry of the tangent vector. From the structure; without one from the expressions of
        f, where these are of SX. References at rest have zeros there.

        Examples
        --------
        >>> from lgcontrol.groups import SO2, Product, Rn
        >>> from lgcontrol.systems import System
        >>> wheel = System("wheel", Product(angle=SO2, rate=Rn(1)), lambda t, x, u, p: [x[2], u],
        ...                inputs=["torque"])
        >>> wheel.velocities
        {0: 2}
        """
        later = self._later_derivatives  # of a discretized system: it has the continuous one
        of = self if later is None else later.system
        return dict(self.memo(("velocities",), lambda: _velocities(of)))

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
        >>> from lgcontrol.systems import System
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

        def make() -> Problem:
            return Problem(
                self.state,
                self.f,
                lambda t, x, u, p: self.derivatives(t, x, u, p),  # made when first needed
                None if self.is_discrete else self.structure,
                self.n_inputs,
                self.n_parameters,
                self.symbol,
                constrained=None if self.is_discrete else self.constrained,
            )

        return self.memo(("problem",), make)

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

    def _repr_html_(self) -> str:
        """Tables of the state, the inputs and the parameters, for notebooks."""
        kind = f"sample time {self.dt:g} s" if self.is_discrete else "continuous"
        state = self.state
        entries = zip(state.coordinate_names, state.coordinate_units, strict=True)
        return html_page(
            f"{self.name}, {kind}, {state.dim} error states",
            html_table("State", ("coordinate", "unit"), entries),
            html_table(
                "Inputs",
                ("input", "unit", "lower", "upper", "nominal", "role"),
                ((u.name, u.unit, u.lower, u.upper, u.nominal, u.role) for u in self.inputs),
            ),
            html_table(
                "Parameters",
                ("parameter", "unit", "nominal"),
                ((entry.name, entry.unit, entry.nominal) for entry in self.parameters),
            ),
        )

    # Copies

    @named_options
    def with_parameters(self, values: FixedParameters) -> Self:
        """Return a copy with other nominal values of some parameters.

        Parameters
        ----------
        values : mapping of str to float, or array_like of shape (n_parameters,)
            By name, or all in order.

        Raises
        ------
        KeyError
            If there is no such parameter: numbers of a model become parameters where it is made,
            ``quadrotor(symbolic=["mass"])``.
        ValueError
            If a value is not finite or outside its range.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.systems import System
        >>> cart = System("cart", Rn(1), lambda t, x, u, p: -p * x,
        ...               parameters=[Parameter("drag", "1/s", 2.0)])
        >>> cart.with_parameters({"drag": 3.0}).f(0.0, [1.0])
        array([-3.])
        """
        if isinstance(values, Mapping) and values and not self.parameters:
            raise UnknownNameError(unknown_parameter(next(iter(values)), (), self.name))
        nominal = values_by_name(self.parameters, self.nominal_parameters, values)
        return self.replaced(
            parameters=[
                replace(old, nominal=float(value))
                for old, value in zip(self.parameters, nominal, strict=True)
            ]
        )

    def with_policy(self, policy: Callable[[Any, Any, Any, Any, Any], Any] | None) -> Self:
        """Return a copy that offers a policy, see `System`; None for one without.

        Parameters
        ----------
        policy : callable
            ``(t, x, x_ref, u_ref, p) → controls`` on CasADi columns.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.systems import System
        >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["push"])
        >>> cart = cart.with_policy(lambda t, x, x_ref, u_ref, p: u_ref - (x - x_ref))
        >>> cart.policy(0.0, [2.0], [1.5], [0.0])
        array([-0.5])
        """
        return self.replaced(policy=policy)

    def with_look(self, look: ModelLook | Sequence[BodyShape] | None) -> Self:
        """Return a copy that knows how it looks, for scenes; None for one that does not.

        Parameters
        ----------
        look : ModelLook or sequence of BodyShape
            Shapes are those of the body that the first block of the state moves, in its axes.

        Examples
        --------
        >>> from lgcontrol.models import rover
        >>> from lgcontrol.scene import box
        >>> tall = rover().with_look([box((0.5, 0.4, 0.6), center=(0, 0, 0.4))])
        >>> [body.name for body in tall.look.bodies([])]
        ['rover']
        """
        return self.replaced(look=look)

    @named_options
    def scene(
        self, x: Any = None, t: Any = None, *, goals: Sequence[Any] = (), obstacles: Any = ()
    ) -> Scene:
        """What there is to see of states: the bodies of the system, with their shapes.

        Parameters
        ----------
        x : array_like, shape (nq,) or (N, nq), or Trajectory, optional
            States; `home` if left out. A trajectory is shown on the group between its nodes.
        t : array_like, shape (N,), optional
            Their times in s; 0, 1, … if left out.
        goals : sequence of poses, shape (7,)
        obstacles : sequence or mapping of str to obstacle
            Spheres, capsules and half-spaces of `lgcontrol.optimal`, or (center, radius).

        Returns
        -------
        Scene

        Raises
        ------
        ValueError
            If nothing in the state moves a body, and the system does not know how it looks.

        Examples
        --------
        >>> from lgcontrol.models import quadrotor
        >>> quadrotor().scene(obstacles=[([2.0, 0.0, 0.0], 0.5)])
        Scene('quadrotor', 1 frame, bodies: quadrotor, obstacle 1)
        """
        if hasattr(x, "group") and hasattr(x, "t"):
            t, x = smooth_motion(self.state, x.t, x.x)
        x = np.atleast_2d(self.home if x is None else check_element("x", x, self.state, batch=True))
        times = np.arange(len(x), dtype=float) if t is None else check_shape("t", t, (len(x),))
        scenery = Scenery(self.look, obstacle_bodies(obstacles, times), goals_of(goals))
        return scene_of_states(self.name, self.state, times, x, scenery)

    def __getstate__(self) -> dict[str, Any]:
        """Functions that define the system only: derived ones are built again when needed."""
        mappings = {"quantities": dict(self.quantities), "limits": dict(self.limits)}
        return super().__getstate__() | mappings

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Members as they are; mappings to read only."""
        named = {key: MappingProxyType(kept[key]) for key in ("quantities", "limits")}
        self.__dict__.update(kept | named)

    def replaced(self, **changes: Any) -> Self:
        """Copy with some arguments of the constructor changed."""
        arguments = {name: getattr(self, name) for name in _ARGUMENTS}
        arguments["quantities"] = self.named_quantities()
        arguments["derivatives"] = self._given_derivatives
        if {"state", "inputs"} & {*changes}:  # other arguments than those of the policy
            arguments["policy"] = None
        if "f" in changes:  # another motion than that of the parts
            arguments["constrained"] = None
        arguments |= changes
        known = {*arguments["state"].coordinate_names, *self.quantity_names}
        arguments["limits"] = {k: v for k, v in arguments["limits"].items() if k in known}
        made = type(self)(**arguments)
        if "f" not in changes:
            made._later_derivatives = self._later_derivatives
            made._algebraic = self._algebraic
        return made

    @property
    def has_algebraic_states(self) -> bool:
        """Whether the field solves equations for algebraic states, see `System.from_dae`."""
        return self._algebraic is not None

    def unsolved(self, t: Any, x: Any, u: Any = None, p: Any = None) -> str:
        """Which algebraic equation has no solution at a point (`from_dae`); empty where all have.

        Parameters
        ----------
        t : float
        x : array_like, shape (nq,)
        u : array_like, shape (n_inputs,), optional
            Nominal inputs if left out; the other inputs are nominal where only controls are given.
        p : mapping or array_like, shape (n_parameters,), optional
            Nominal parameters if left out; of a mapping, those it does not name.

        Returns
        -------
        str
            The equation, what Newton's method leaves of it and where, and what to do.
        """
        if self._algebraic is None:
            return ""
        u = self.nominal_input if u is None else complete_input(self, "u", u)
        return self._algebraic.unsolved(t, x, u, complete_parameters(self, p))

    def other_branch(self, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> str:
        """Where algebraic states (`from_dae`) go to another branch along a motion, else empty.

        It is told by the sign of det ∂g/∂z. Branches on which the sign is the same are not told
        apart.

        Parameters
        ----------
        t : ndarray, shape (k,)
            In s.
        x : ndarray, shape (k, nq)
        u : ndarray, shape (k, n_inputs)
        p : ndarray, shape (n_parameters,)
        """
        if self._algebraic is None or len(t) < 2:
            return ""
        names = self._algebraic.unknowns
        z = np.column_stack(
            [np.reshape(self.quantities[name](t, x, u, p), len(t)) for name in names]
        )
        k = self._algebraic.turned(t, x, u, p, z)
        if k < 0:
            return ""
        told = ", ".join(
            f"{name} from {a:.4g} to {b:.4g}"
            for name, a, b in zip(names, *z[k : k + 2], strict=True)
        )
        return (
            f"between t = {t[k]:.4g} and {t[k + 1]:.4g} s the algebraic states of {self.name} go "
            f"to another branch of g = 0, past a fold ({told}): give from_dae a start= that stays "
            "on one branch, or bounds that keep the plan off the fold"
        )


def _velocities(system: SystemDefinition) -> dict[int, int]:
    known, state = system.structure, system.state
    if known is not None:
        assert isinstance(state, Product)
        first = state.tangent_slice(known.configuration).start
        place = state.coordinate_slice(known.velocity)
        return {first + k: i for k, i in enumerate(range(place.start, place.stop))}
    if system.is_discrete or system.symbol is not ca.SX:
        return {}
    t, x, u, p = symbols_of(system)
    rate = system.f(t, x, u, p)
    found = [
        [k for k in range(state.nq) if ca.is_equal(row, x[k], 2)] for row in ca.vertsplit(rate)
    ]
    return {entry: places[0] for entry, places in enumerate(found) if places}


def _trace_structure(system: SystemDefinition, structure: Mechanical) -> Mechanical:
    """Members as model functions of the system, checked for shape."""
    state, m = system.state, system.n_inputs
    blocks = getattr(state, "blocks", {})
    for role, name in (
        ("configuration", structure.configuration),
        ("velocity", structure.velocity),
    ):
        if name not in blocks:
            raise ValueError(
                f"{system.name}: the structure's {role} is the block {name!r}, which the state has "
                f"not (blocks: {', '.join(blocks) or 'none'})"
            )
    if [*blocks][:2] != [structure.configuration, structure.velocity]:
        raise ValueError(
            f"{system.name}: the state of a structured system begins with its configuration and "
            f"its velocity, Product({structure.configuration}=…, {structure.velocity}=…, …), not "
            f"with {', '.join([*blocks][:2])}"
        )
    nv = blocks[structure.velocity].dim
    if blocks[structure.configuration].dim != nv:
        raise ValueError(
            f"{system.name}: {structure.configuration} and {structure.velocity} differ in dimension"
        )
    balance = {"by_x": (nv, state.dim), "by_u": (nv, m)}
    members: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
        "mass_matrix": ("x p", {"M": (nv, nv)}, {}),
        "force": ("t x u p", {"F": (nv,)}, {}),
        "balance_derivatives": ("t x a u p", balance, {"a": (nv,)}),
        "input_map": ("t x u p", {"B": (nv, m)}, {}),
        "loss_jacobian": ("x p", {"D": (nv, nv)}, {}),
        "losses": ("x p", {"L": (nv,)}, {}),
        "motion": (
            "q v a j s p",
            {"x_out": (state.nq,), "rate": (state.dim,), "u": (m,)},
            {"q": (blocks[structure.configuration].nq,)} | dict.fromkeys("vajs", (nv,)),
        ),
        "acceleration_hessian": ("t x u p w", {"H": (state.dim + m,) * 2}, {"w": (nv,)}),
    }

    made, inner = _all_traced(system, structure, members), structure.lagrangian
    if inner is None:
        return made
    n = nv
    if inner.speeds:
        if inner.speeds not in blocks:
            raise ValueError(
                f"{system.name}: the speeds of the Lagrangian are the block {inner.speeds!r}, "
                f"which the state has not (blocks: {', '.join(blocks)})"
            )
        n += blocks[inner.speeds].dim
    members = {
        "mass_matrix": ("x p", {"M": (n, n)}, {}),
        "action": ("t x u p", {"Q": (n,)}, {}),
        "kinetic_gradient": ("x p", {"gradient": (n,)}, {}),
        "carried_momentum": ("x y p", {"momentum": (n,)}, {"y": (state.nq,)}),
    }
    return replace(made, lagrangian=_all_traced(system, inner, members))


def _all_traced(system: SystemDefinition, owner: Any, members: Mapping[str, Any]) -> Any:
    """An owner with those of the members that it has as model functions."""

    def traced(name: str) -> Any:
        member, (arguments, results, extra) = getattr(owner, name), members[name]
        return traced_when_asked(
            member,
            lambda made: trace_matrices(system, name, made, arguments, results, extra),
        )

    return replace(owner, **{name: traced(name) for name in members if getattr(owner, name, None)})


def _trace_slopes(system: SystemDefinition, key: str, build: Callable[..., Any]) -> Any:
    """Value and derivatives of a quantity, when they are asked for."""
    rows = system.quantities[key].result_shapes[0][0]
    shapes = {
        "value": (rows,), "by_x": (rows, system.state.dim), "by_u": (rows, system.n_inputs),
    }  # fmt: skip
    name = f"{key}_derivatives"
    if isinstance(build, ModelFunction):
        return trace_matrices(system, name, build, "t x u p", shapes)
    return TracedLater(lambda: trace_matrices(system, name, build, "t x u p", shapes))


def _trace_derivatives(system: SystemDefinition, build: Callable[..., Any]) -> ModelFunction:
    n, m = system.state.dim, system.n_inputs
    return trace_matrices(system, "derivatives", build, "t x u p", {"Df": (n, n), "Bf": (n, m)})


def _of_structure(
    system: SystemDefinition,
    structure: Mechanical,
    rate: Value,
    point: tuple[Value, Value, Value, Value],
) -> tuple[Value, Value]:
    """``M Df = by_x``, ``M Bf = by_u`` in the rows of the velocity; those of q are constant."""
    t, x, u, p = point
    state = system.state
    assert isinstance(state, Product)
    own = state.tangent_slice(structure.configuration)
    speeds = state.tangent_slice(structure.velocity)
    by_x, by_u = structure.balance_derivatives(t, x, rate[speeds], u, p)
    M = ca.sparsify(structure.mass_matrix(x, p))
    solved = solve_symmetric(M, ca.sparsify(ca.horzcat(by_x, by_u)))
    rest = slice(speeds.stop, state.dim)
    Df = ca.vertcat(
        ca.DM.eye(state.dim)[speeds, :],
        solved[:, : state.dim],
        ca.jacobian(rate[rest], x) @ state.rate_matrix(x),
    )
    count = own.stop - own.start
    Bf = ca.vertcat(
        ca.DM(count, system.n_inputs), solved[:, state.dim :], ca.jacobian(rate[rest], u)
    )
    return Df, Bf
