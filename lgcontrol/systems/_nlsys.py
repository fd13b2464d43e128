"""Systems for python-control, nonlinear and differentially flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import casadi as ca
import numpy as np

from ..codegen import ModelFunction
from ..codegen._internal import UnknownNameError, interruptible, unknown_name
from ..groups import Rn
from ._constraints import read_point
from ._definition import SystemDefinition
from ._signals import InputChoice, Parameter, choose_inputs, control_name, control_names
from ._steadiness import classify
from ._step import step_function
from ._tracing import Field, symbols_of

if TYPE_CHECKING:
    import control
    import control.flatsys

Coordinates = Literal["group", "error"]

# Retractions have the errors that are asked for to first order; each pass doubles the digits or so.
REFINEMENTS = 3


@interruptible
def to_nlsys(
    system: SystemDefinition,
    coordinates: Coordinates = "group",
    *,
    about: Any = None,
    inputs: InputChoice = "control",
) -> control.NonlinearIOSystem:
    """Return the system as a `control.NonlinearIOSystem`.

    Parameters
    ----------
    coordinates : {"group", "error"}
        "group": the states are the stored coordinates, the outputs coordinates on the output's
        group: for simulation. "error": the states are ε in ``X = X̄(t) exp(ε)``, inputs and outputs
        the deviations from those of the motion X̄(t) through `about`: for `control.linearize`,
        `control.lqr` and linear controllers; ``ε = 0`` with zero input is an equilibrium.
    about : TrimPoint, or state of shape (nq,)
        An equilibrium or relative equilibrium, for "error".
    inputs : {"control", "measured", "disturbance", "noise", "all"}
        Inputs to keep; the others are nominal ("group") or as in `about` ("error").

    Returns
    -------
    control.NonlinearIOSystem
        It pickles. Parameters are python-control's `params`, by name. Dots in names of inputs and
        outputs become underscores, because python-control reserves them.

    Raises
    ------
    ValueError
        If `about` is missing, is given without use, or is no (relative) equilibrium.

    Notes
    -----
    With the constant rate f̄ of the nominal motion, ``ε̇ = J_r⁻¹(ε) (f(X̄ exp ε) − Ad(exp −ε) f̄)``;
    the linearization at ``ε = 0`` is that of `linearize`. It holds while rotation errors stay below
    2π.

    Examples
    --------
    >>> import control
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> clock = System("clock", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> plant = clock.to_nlsys("error", about=SO2.identity)
    >>> float(control.lqr(control.linearize(plant, 0.0), 1.0, 1.0)[0][0, 0].round(6))
    1.0
    """
    import control

    if not isinstance(coordinates, str) or coordinates not in get_args(Coordinates):
        raise UnknownNameError(unknown_name("coordinates", coordinates, get_args(Coordinates)))
    if (about is None) == (coordinates == "error"):
        raise ValueError(
            "error coordinates need about: a trim point or a state"
            if about is None
            else "about is for coordinates='error'"
        )
    kept = choose_inputs(system.inputs, inputs)
    if coordinates == "group":
        update, output = _group_functions(system)
        u, p = system.nominal_input, system.nominal_parameters
        states, outputs = system.state.coordinate_names, system.output.coordinate_names
    else:
        t, x, u, p = read_point(system, None, about, None, None)
        update, output = _error_functions(system, t, x, u, p)
        u = np.zeros(system.n_inputs)
        states, outputs = system.error_names, system.output.tangent_names
    names = system.parameter_names
    return control.nlsys(
        _Callback(update, kept, u, names, p),
        _Callback(output, kept, u, names, p),
        inputs=control_names("inputs", [system.input_names[i] for i in kept]),
        outputs=control_names("outputs", outputs),
        states=list(states),
        params=dict(zip(names, map(float, p), strict=True)),
        dt=system.dt,
        name=control_name(system.name),
    )


@dataclass(frozen=True, eq=False)
class _Callback:
    """What python-control calls: ``(t, x, u, params)``; a class, so that it pickles."""

    function: ModelFunction
    inputs: np.ndarray
    u: np.ndarray
    parameters: tuple[str, ...]
    p: np.ndarray

    def __call__(self, t: float, x: Any, u: Any, params: Mapping[str, float] | None) -> np.ndarray:
        full = self.u.copy()
        full[self.inputs] = u
        p = self.p
        if params:  # interconnected systems hand every part the parameters of all
            values = zip(self.parameters, self.p, strict=True)
            p = np.array([params.get(name, value) for name, value in values])
        return self.function(t, x, full, p)


def _group_functions(system: SystemDefinition) -> tuple[ModelFunction, ModelFunction]:
    def update(t, x, u, p):
        x = system.state.normalize(x)  # solvers let the norm drift
        if system.is_discrete:
            return step_function(system)(t, x, u, p, system.dt)
        return system.state.rate_matrix(x) @ system.f(t, x, u, p)

    def output(t, x, u, p):
        return system.h(t, system.state.normalize(x), u, p)

    return _trace(system, "update", update, system.state.nq), _trace(
        system, "output", output, system.state.nq
    )


def _error_functions(
    system: SystemDefinition, t0: float, x0: np.ndarray, u0: np.ndarray, p0: np.ndarray
) -> tuple[ModelFunction, ModelFunction]:
    kind = classify(system, t0, x0, u0, p0)
    if kind == "none":
        raise ValueError(
            f"{system.name}: about is no equilibrium or relative equilibrium; find one with trim, "
            "or linearize along a trajectory"
        )
    state, output_group = system.state, system.output
    rate = ca.DM(system.f(t0, x0, u0, p0))

    def nominal(t):
        return state.plus(ca.DM(x0), (t - t0) / (system.dt or 1.0) * rate)

    def displaced(t, z, p):
        """State whose errors are z."""
        if system.errors is None:
            return state.plus(nominal(t), z)
        X, e = nominal(t), z
        for _ in range(REFINEMENTS):
            e = e + z - system.error(system.retract(X, e, p), X)
        return system.retract(X, e, p)

    def update(t, z, du, p):
        x = displaced(t, z, p)
        if system.is_discrete:
            after = step_function(system)(t, x, u0 + du, p, system.dt)
            return system.error(after, state.plus(nominal(t), rate))
        e = z if system.errors is None else state.minus(x, nominal(t))
        moved = state.Ad(state.exp(-e)) @ rate
        change = state.right_jacobian_inverse(e) @ (system.f(t, x, u0 + du, p) - moved)
        return change if system.errors is None else ca.DM(system.error_selection) @ change

    def output(t, z, du, p):
        y = system.h(t, displaced(t, z, p), u0 + du, p)
        return output_group.minus(y, system.h(t, nominal(t), u0, p0))

    count = system.n_errors
    return _trace(system, "update", update, count), _trace(system, "output", output, count)


def _trace(system: SystemDefinition, name: str, build: Field, states: int) -> ModelFunction:
    t, _, u, p = symbols_of(system)
    x = system.symbol.sym("x", states)
    result = system.symbol(build(t, x, u, p))
    function = ca.Function(name, [t, x, u, p], [result], ["t", "x", "u", "p"], [name])
    return ModelFunction(
        function,
        shapes={
            "t": (),
            "x": (states,),
            "u": (system.n_inputs,),
            "p": (system.n_parameters,),
            name: (result.shape[0],),
        },
    )


def from_control(model: Any) -> dict[str, Any]:
    """Arguments of a System that moves as a model of python-control; see `System.from_control`."""
    import control

    if isinstance(model, control.TransferFunction):
        raise TypeError("a TransferFunction has no states: give control.ss(model)")
    if not isinstance(model, control.StateSpace | control.NonlinearIOSystem):
        kind = type(model).__name__
        raise TypeError(f"from_control takes a StateSpace or NonlinearIOSystem, not {kind}")
    if model.dt is True:
        raise ValueError(f"{model.name}: dt=True leaves the sample time open; give it in s")
    arguments: dict[str, Any] = {
        "name": model.name,
        "state": Rn(model.nstates, tuple(model.state_labels)),
        "output": Rn(model.noutputs, tuple(model.output_labels)),
        "inputs": list(model.input_labels),
        "dt": float(model.dt or 0.0),
    }
    step = 1.0 if model.dt else 0.0  # f of a discrete system is what is added
    if isinstance(model, control.StateSpace):
        A, B, C, D = (ca.DM(matrix) for matrix in (model.A, model.B, model.C, model.D))
        A = A - step * ca.DM.eye(model.nstates)
        return arguments | {
            "f": lambda t, x, u, p: A @ x + B @ u,
            "h": lambda t, x, u, p: C @ x + D @ u,
            "derivatives": lambda t, x, u, p: (A, B),
        }
    names = tuple(model.params)

    def column(value: Any) -> Any:
        return ca.vertcat(*value) if isinstance(value, list | tuple | np.ndarray) else value

    def update(t: Any, x: Any, u: Any, p: Any) -> Any:
        params = dict(zip(names, ca.vertsplit(p), strict=True)) if names else {}
        return column(model.updfcn(t, x, u, params)) - step * x

    def output(t: Any, x: Any, u: Any, p: Any) -> Any:
        if model.outfcn is None:
            return x
        params = dict(zip(names, ca.vertsplit(p), strict=True)) if names else {}
        return column(model.outfcn(t, x, u, params))

    parameters = [Parameter(name, "", float(model.params[name])) for name in names]
    return arguments | {"f": update, "h": output, "parameters": parameters}


Flag = Sequence[np.ndarray]  # an output and its time derivatives, for each flat output


def flat_system(
    system: SystemDefinition,
    forward: Callable[[np.ndarray, np.ndarray], Flag],
    reverse: Callable[[Flag], tuple[np.ndarray, np.ndarray]],
    options: dict[str, Any],
) -> control.flatsys.FlatSystem:
    """`control.flatsys.FlatSystem` on the stored coordinates and the controls of a system.

    ``forward(x, u)`` gives the flat flag for a state and the controls, ``reverse(flag)`` these for
    a flag. The states are the outputs; options replace the names of the system's own signals.
    """
    import control.flatsys

    def there(x: Any, u: Any, params: Any = None) -> Flag:
        return forward(np.ravel(x).astype(np.float64), np.ravel(u).astype(np.float64))

    def back(flag: Any, params: Any = None) -> tuple[np.ndarray, np.ndarray]:
        return reverse([np.asarray(values, dtype=np.float64) for values in flag])

    def rate(t: float, x: Any, u: Any, params: Any = None) -> np.ndarray:
        x = system.state.normalize(np.ravel(x))
        return system.state.rate_matrix(x) @ system.f(t, x, system.full_input(np.ravel(u)))

    coordinates = [control_name(name) for name in system.state.coordinate_names]
    controls = [system.input_names[i] for i in system.input_index("control")]
    signals = {
        "name": control_name(system.name),
        "inputs": control_names("inputs", controls),
        "states": coordinates,
        "outputs": coordinates,
    }
    return control.flatsys.FlatSystem(
        there, back, rate, lambda t, x, u, params=None: x, **(signals | options)
    )
