"""System: the class that users hold, and the export of its step as plain C99."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, named_options
from ..codegen._internal import EXAMPLES, c_default_name, check_shape, export_functions
from ..groups import LieGroup
from ..integrators import Method, get_method
from . import _augment, _linearize, _nlsys, _rollout, _trim
from ._algebraic import dae_arguments
from ._definition import State, SystemDefinition
from ._signals import Parameter, Quantity
from ._stable_steps import choose_method, warn_if_unstable
from ._step import IncrementDerivatives, step_function

GRAVITY = 9.81  # m/s², of models and estimators that are given no other
FREE_FALL = (0.0, 0.0, -GRAVITY)  # m/s² in world axes, z up
SAME_TIME = 1e-9  # s; times this close are the same time, reached by another sum
# Examples that exported code is compared with.
EXAMPLE_SPREAD = 0.3  # of their states about home, and of their inputs about the nominal ones
EXAMPLE_STEP = 0.01  # s, of systems in continuous time


def export_system(
    system: SystemDefinition,
    folder: str | Path,
    *,
    name: str | None = None,
    method: str | Method = "rk4",
    substeps: int = 1,
) -> Path:
    """Write the system as plain C99 that needs nothing else: ``<name>_f``, ``_h`` and ``_step``.

    The functions take time, state, inputs and parameters, the step its length besides. The header
    tells where each entry stands, with its unit; it declares the nominal parameters. An example
    compares with Python.

    Parameters
    ----------
    folder : path
        New, empty, or exported before; it appears whole or not at all.
    name : str, optional
        Of the files and functions; ``"<system>_system"`` if left out.
    method : str or Method
        Of the step.
    substeps : int
        Parts that each step is divided into.

    Raises
    ------
    FileExistsError
        If the folder holds anything that was not exported, or was changed since.
    NotImplementedError
        If a function holds more than scalar and matrix operations.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u - x, inputs=["push"])
    >>> sorted(path.name for path in cart.export_c("cart_c").glob("cart_system_*.c"))
    ['cart_system_f.c', 'cart_system_h.c', 'cart_system_step.c']
    """
    functions = {"f": system.f, "h": system.h, "step": step_function(system, method, substeps)}
    state, rng = system.state, np.random.default_rng(0)
    coordinates = list(zip(state.coordinate_names, state.coordinate_units, strict=True))
    labels = {
        "x": coordinates,
        "u": [(entry.name, entry.unit) for entry in system.inputs],
        "p": [(entry.name, entry.unit) for entry in system.parameters],
    }
    lower, upper = system.input_bounds

    def drawn() -> dict[str, Any]:
        x = state.plus(system.home, EXAMPLE_SPREAD * rng.normal(size=state.dim))
        if system.project is not None:
            x = system.project(x, system.nominal_parameters)
        u = system.nominal_input + EXAMPLE_SPREAD * rng.normal(size=system.n_inputs)
        return {
            "t": rng.uniform(), "x": x, "u": np.clip(u, lower, upper),
            "p": system.nominal_parameters, "dt": system.dt or EXAMPLE_STEP,
        }  # fmt: skip

    kind = "a discrete system" if system.is_discrete else "a system in continuous time"
    return export_functions(
        functions,
        folder,
        name or c_default_name(system.name, system),
        labels,
        [drawn() for _ in range(EXAMPLES)],
        [f"{system.name}: {kind} on {state}. SI units, radians."],
    )


class System(SystemDefinition[State]):
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
    quantities : mapping of str to callable or Quantity, optional
        Further named results ``(t, x, u, p) → column``: multipliers, powers, loads; a `Quantity`
        where rows have names.
    invariants : callable, optional
        ``(x, p) → column`` that stays constant along motions with the nominal input: zero for
        constraints, energy, momentum.
    project : callable, optional
        ``(x, p) → x`` back onto the constraints, applied after each step.
    project_derivative : callable, optional
        ``(x, p) → D`` where it is known in closed form: the derivative of `project` between tangent
        spaces, shape (dim, dim); automatic if left out.
    limits : mapping of str to (float, float), optional
        Lower and upper limits by name, of coordinates of the state, such as those of joints, and
        of entries of quantities. `trim` keeps them, bounds of a problem may name them; nothing
        else does, and simulations say where they are exceeded.
    derivatives : callable, optional
        ``(t, x, u, p) → Df, Bf`` where they are known in closed form: ``∂f(x exp d)/∂d`` at d = 0,
        shape (dim, dim), and ``∂f/∂u``, shape (dim, n_inputs). If left out they follow from the
        structure, or from automatic differentiation.
    structure : Mechanical, optional
        What a mechanical system is made of; its members are model functions.
    constrained : Constrained, optional
        What a mechanical system with constraints is made of, which methods take that solve for
        multipliers themselves; its members are functions.
    errors : ErrorCoordinates, optional
        Error coordinates that are fewer than the group's, for constrained systems.
    policy : callable, optional
        ``(t, x, x_ref, u_ref, p) → controls`` that lead towards a reference from anywhere, such as
        a geometric law of the vehicle; solves start from the motion under it. Bounds are kept by
        who follows it. Copies with another state or other inputs have none.
    home : array_like, shape (nq,), optional
        State where searches, samples and judgements begin that are given none: one that keeps the
        constraints. The identity if left out.
    look : ModelLook or sequence of BodyShape, optional
        Look in scenes: that of a tree or a body, or shapes of the body that the first block of the
        state moves, in its axes.
    dt : float
        Sample time in s; 0 for continuous systems.
    symbol : type
        ``casadi.SX``, or ``casadi.MX`` for callables that need it (interpolants, solvers).

    Attributes
    ----------
    f, h : ModelFunction
        Arguments (t, x, u, p); u and p may be left out and are then nominal.
    quantities : mapping of str to ModelFunction
        To read; arguments as of f.
    limits : mapping of str to (float, float)
        To read, as are all attributes: a system does not change.
    invariants, project, project_derivative : ModelFunction or None
        Arguments (x, p).
    home : ndarray, shape (nq,)
    policy : ModelFunction or None
        Arguments (t, x, x_ref, u_ref, p).

    Raises
    ------
    TypeError
        If a callable does not return a CasADi column.
    ValueError
        If a callable returns a column of the wrong length, or one that depends on anything but
        its arguments.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Input, Parameter
    >>> def swing(t, x, u, p):
    ...     cos, sin, rate = ca.vertsplit(x)
    ...     return ca.vertcat(rate, u - p * sin)
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)), swing,
    ...     inputs=[Input("torque", "N m")], parameters=[Parameter("stiffness", "1/s²", 9.81)])
    >>> pendulum.f(0.0, [0.0, 1.0, 0.5])
    array([ 0.5 , -9.81])
    """

    # Motion

    @named_options
    def step(self, method: str | Method = "rk4", substeps: int = 1) -> ModelFunction:
        """One step ``(t, x, u, p, dt) → x⁺`` of a method of `lgcontrol.integrators`.

        Discrete systems ignore the method, the substeps and dt.

        Parameters
        ----------
        method : str or Method
            An integrator, for example "euler", "rk4"; not "auto", for which dt has to be known.
        substeps : int
            Equal steps the interval dt is divided into; u is held.

        Returns
        -------
        ModelFunction
            p and, for discrete systems, dt may be left out.

        Warns
        -----
        RuntimeWarning
            By the function, if a state violates constraints of the system and was projected.
        """
        return step_function(self, method, substeps)

    @named_options
    def discretize(
        self, dt: float, method: str | Method = "auto", substeps: int = 1
    ) -> System[State]:
        """Discrete system that makes the same step: ``f = minus(step(x), x)``.

        It has the errors and the derivatives of the step, and no structure: ``M v̇ = F`` is of the
        continuous one.

        Parameters
        ----------
        dt : float
            Sample time in s; the inputs are held over it.
        method, substeps
            See `step`; "auto" is rk4, or a method for stiff systems where that is too slow
            (`choose_method`).

        Returns
        -------
        System
            With the derivatives of the step.

        Warns
        -----
        RuntimeWarning
            If the step lets modes grow that do not, judged at the identity with nominal inputs;
            says how many substeps suffice, or which method does. `stable_substeps` judges at other
            states.
        """
        if self.is_discrete:
            raise ValueError(f"{self.name} is discrete already, with dt = {self.dt:g} s")
        if not check_shape("dt, a sample time in s,", dt, ()) > 0:
            raise ValueError(f"dt must be a positive sample time in s, got {dt}")
        if method == "auto":
            method = choose_method(self, dt)
        warn_if_unstable(self, dt, method, substeps)
        step = self.step(method, substeps)
        made = self.replaced(
            f=lambda t, x, u, p: self.state.minus(step(t, x, u, p, dt), x),
            dt=dt,
            derivatives=None,
            structure=None,
            symbol=self.symbol if step.function.is_a("SXFunction") else ca.MX,
        )
        made._later_derivatives = IncrementDerivatives(self, get_method(method), substeps, dt)
        return made

    @classmethod
    def from_control(cls, model: Any) -> System[Any]:
        """System on Rn that moves as a model of python-control.

        Parameters
        ----------
        model : control.StateSpace or control.NonlinearIOSystem
            Functions of the latter are traced with CasADi columns, so they must be arithmetic,
            NumPy's elementary functions or CasADi's; its ``params`` become parameters.

        Returns
        -------
        System
            With the names and the sample time of the model; no bounds.

        Examples
        --------
        >>> import control
        >>> cart = control.ss([[0, 1], [0, -0.5]], [[0], [2]], [[1, 0]], 0, inputs=["force"])
        >>> System.from_control(cart).linearize([0.0, 0.0]).poles.real
        array([-0.5,  0. ])
        """
        return cls(**_nlsys.from_control(model))

    @classmethod
    def from_dae(
        cls,
        name: str,
        state: LieGroup,
        f: Callable[[Any, Any, Any, Any, Any], Any],
        g: Callable[[Any, Any, Any, Any, Any], Any],
        algebraic: Iterable[Parameter | str],
        *,
        start: Callable[..., Any] | None = None,
        iterations: int = 10,
        quantities: Mapping[str, Callable[..., Any] | Quantity] | None = None,
        **options: Any,
    ) -> System[Any]:
        """System with algebraic states: ``Ẋ = X f(t, X, z, u, p)`` with ``0 = g(t, X, z, u, p)``.

        The equations determine z (index 1). Every evaluation of the field solves them by a fixed
        number of Newton steps, so that steps compile, export and serve an MPC. Derivatives follow
        from the implicit function theorem. Each algebraic state is a quantity of its name, for
        ``Bound("z")``, ``Cost("z")`` and limits.

        Parameters
        ----------
        name : str
        state : LieGroup
        f : callable
            ``(t, x, z, u, p) → tangent`` on CasADi columns.
        g : callable
            ``(t, x, z, u, p) → column``, as long as z.
        algebraic : iterable of Parameter or str
            Names of z with units. Newton's method begins at the nominal values.
        start : callable, optional
            ``(t, x, u, p) → z``: a better place to begin.
        iterations : int
            Newton steps. Where they do not end at a solution, z is not a number, and so is the
            rate: simulations and plans say so.
        quantities : mapping of str to callable or Quantity, optional
            ``(t, x, z, u, p) → column``.
        **options
            Of `System`, without f, derivatives and structure.

        Returns
        -------
        System

        Raises
        ------
        ValueError
            If the index is above 1 whatever the values: g does not determine z.

        Examples
        --------
        A tank whose outlet passes a long pipe: the flow z solves ``z + z³ = level``.

        >>> from lgcontrol.groups import Rn
        >>> tank = System.from_dae(
        ...     "tank", Rn(1, ("level",)), lambda t, x, z, u, p: u - z,
        ...     lambda t, x, z, u, p: z + z**3 - x, ["flow"], inputs=["feed"])
        >>> tank.quantities["flow"](0.0, [2.0], [0.0]), tank.f(0.0, [10.0], [2.0])
        (array([1.]), array([0.]))
        """
        taken = {"f", "derivatives", "structure"} & {*options}
        if taken:
            raise TypeError(f"from_dae makes {', '.join(sorted(taken))}: leave them out")
        arguments, equations = dae_arguments(
            name, state, f, g, algebraic, start, iterations, quantities, options
        )
        made = cls(**arguments)
        made._algebraic = equations
        return made

    rollout = _rollout.rollout
    linearize = _linearize.linearize
    trim = _trim.trim
    augment = _augment.augment
    to_nlsys = _nlsys.to_nlsys
    export_c = export_system
