"""augment: a system with actuator lag, delay, biases and integrators as further states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, isnan
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from ..codegen import Value, named_options
from ..codegen._internal import (
    MOST_ORDER,
    MOST_SUBSTEPS,
    UnknownNameError,
    check_count,
    check_quotient,
    unknown_name,
)
from ..groups import LieGroup, Product, Rn, check_element
from ..integrators import Mechanical
from ._blocks import ErrorCoordinates, block_slices, blocks_of, from_wide_to_narrow, shared_names
from ._definition import SystemDefinition
from ._signals import Input, Parameter
from ._tracing import Field, call_with_symbols

Plant = TypeVar("Plant", bound=SystemDefinition)


@named_options
def augment(
    system: Plant,
    *,
    delay: float | Mapping[str, float] | None = None,
    delay_order: int = 4,
    lag: float | Mapping[str, float] | None = None,
    bias: str | Iterable[str] = (),
    bias_walk: bool = False,
    bias_time: float = inf,
    integrate: str | Sequence[str] | Mapping[str, Field] = (),
    reference: Any = None,
    constant: str | Iterable[str] = (),
) -> Plant:
    """Return a system with further states, each kind in a block of its own.

    A command passes the delay, then the lag, then the bias on its way to the system.

    Parameters
    ----------
    delay : float or mapping of str to float, optional
        Delay of all controls, or of inputs by name ("rotor" for rotor.0, …), in s; block "delay".
        Exact in discrete time, where it must be a multiple of the sample time. In continuous time a
        Padé approximant of ``exp(−s T)`` that is good for frequencies up to about
        ``delay_order / T``.
    delay_order : int
        States of each delay in continuous time.
    lag : float or mapping of str to float, optional
        Time constant of the actuators of all controls, or of inputs by name, in s, where "rotor.0"
        counts for more than "rotor"; block "actuator". In discrete time the system sees the
        actuator as it is at the start of a sample.
    bias : str or iterable of str
        Inputs, and output errors (names as in ``output.tangent_names``), to which an unknown
        constant is added; block "bias".
    bias_walk : bool
        Whether each bias moves, driven by a further input of role "noise": "gyro.walk" for a bias
        on "gyro", in its unit per second. White noise on it makes a random walk.
    bias_time : float
        Correlation time in s of biases that return to zero (Gauss–Markov): stationary deviation
        ``density √(bias_time / 2)``.
    integrate : str, iterable of str or mapping
        Output errors to integrate, by entries or blocks; block "integral", whose rate is that
        entry of ``minus(y, reference)``. A mapping has functions ``(t, x, u, p) → number`` of the
        system by name, such as ``{"energy": lambda t, x, u, p: x[1] * u[0]}``: a bound on
        "integral.energy" limits their integral.
    reference : array_like, shape (output.nq,), optional
        Nominal reference of the integrators; the identity if left out.
    constant : str or iterable of str
        Constant states; block "constant", the last one. Parameters of the system become such
        states, to be found with the motion by ``free="constant"``; other names are new numbers,
        such as a largest value that an optimal control problem lowers.

    Returns
    -------
    System
        With the blocks of the system first, and the same inputs and output; the noise of biases
        comes after the other inputs. Time constants,
        continuous delays and the reference are parameters: "rotor1.time_constant",
        "rotor1.delay", "reference.pose.x". Invariants, which hold for the nominal input, become
        the quantity "invariants" where the input passes further states.

    Raises
    ------
    KeyError
        If a name is unknown.
    ValueError
        If a time is not positive or not a multiple of the sample time, or nothing is asked for.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(2, ("place", "speed")), lambda t, x, u, p: [x[1], u],
    ...               inputs=["force"])
    >>> cart.augment(lag=0.1, integrate="place").state
    Product(state=Rn(2), actuator=Rn(1), integral=Rn(1))
    >>> cart.augment(constant="peak").state.coordinate_names
    ('state.place', 'state.speed', 'constant.peak')
    """
    dt = system.dt
    stages = [
        *(
            (i, input_delay(entry, T, dt, delay_order))
            for i, entry, T in _times("delay", system, delay)
        ),
        *((i, input_lag(entry, T, dt)) for i, entry, T in _times("lag", system, lag)),
    ]
    biased = []
    for name in _listed("bias", bias):
        if _is_input(system, name):
            stages.append((system.input_names.index(name), input_bias(name)))
        else:
            biased.append(system.output.tangent_names.index(name))
    functions = dict(integrate) if isinstance(integrate, Mapping) else {}
    listed = [] if functions else _listed("integrate", integrate)
    integrated = list(dict.fromkeys(i for name in listed for i in _output_indices(system, name)))
    held = _listed("constant", constant)
    is_more = bool(stages or biased or integrated or functions)
    if not (is_more or held):
        raise ValueError("augment: give delay, lag, bias, integrate or constant")
    if reference is not None and not integrated:
        raise ValueError("augment: reference is for integrators; give integrate as well")
    parts = Augmented(system, stages, biased, integrated, reference, functions)
    made = parts.build() if is_more else system
    made = _with_constants(made, held) if held else made
    if not bias_walk and bias_time == inf:
        return made
    names = _listed("bias", bias)
    if not names:
        raise ValueError("augment: bias_walk and bias_time are of biases; give bias as well")
    if isnan(bias_time) or bias_time <= 0:
        raise ValueError(f"bias_time must be positive seconds, got {bias_time}")
    ordered = sorted(names, key=lambda name: not _is_input(system, name))  # as the rows
    return _with_walks(made, ordered, parts.rows_of_biases(), bias_time)


def _with_walks(system: Any, names: list[str], rows: list[int], seconds: float) -> Any:
    """Biases, at these coordinates and entries of f, that noise moves and that decay."""
    n, count = system.n_inputs, len(rows)
    shift = system.state.dim - system.state.nq  # the same for all blocks of vectors at the end
    entries = [row + shift for row in rows]
    E = ca.DM(np.eye(system.state.dim)[:, entries])
    dt = system.dt
    gain, decay = (dt, 1 - np.exp(-dt / seconds)) if dt else (1.0, 1 / seconds)
    units = [system.state.tangent_units[entry] for entry in entries]
    walks = [
        Input(f"{name}.walk", f"{unit}/s", role="noise")
        for name, unit in zip(names, units, strict=True)
    ]

    def inside(function: Any) -> Any:
        return lambda t, x, u, p: function(t, x, u[:n], p)

    def rate(t: Value, x: Value, u: Value, p: Value) -> Value:
        return system.f(t, x, u[:n], p) + E @ (gain * u[n:] - decay * x[rows])

    def derivatives(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        Df, Bf = system.derivatives(t, x, u[:n], p)
        return Df - decay * E @ E.T, ca.horzcat(Bf, gain * E)

    structure = system.structure
    if structure is not None:
        inner = structure

        def balance_derivatives(t: Value, x: Value, a: Value, u: Value, p: Value) -> Any:
            by_x, by_u = inner.balance_derivatives(t, x, a, u[:n], p)
            return by_x, ca.horzcat(by_u, ca.DM(by_u.shape[0], count))

        def input_map(t: Value, x: Value, u: Value, p: Value) -> Value:
            B = inner.input_map(t, x, u[:n], p)
            return ca.horzcat(B, ca.DM(B.shape[0], count))

        structure = replace(
            inner,
            force=inside(inner.force),
            balance_derivatives=balance_derivatives,
            input_map=input_map,
            acceleration_hessian=None,
        )
    return system.replaced(
        inputs=[*system.inputs, *walks],
        f=rate,
        h=inside(system.h),
        quantities=system.named_quantities(inside),
        derivatives=derivatives if system._knows_derivatives else None,
        structure=structure,
    )


def _times(
    what: str, system: SystemDefinition, values: float | Mapping[str, float] | None
) -> list[tuple[int, Input, float]]:
    if values is None:
        return []
    if not isinstance(values, Mapping):
        values = {system.input_names[i]: values for i in system.input_index("control")}
    places = {name: slice(i, i + 1) for i, name in enumerate(system.input_names)}
    places = shared_names(system.input_names) | places
    for name in values:
        if name not in places:
            raise UnknownNameError(unknown_name("input", name, places))
    found: dict[int, float] = {}
    for name in from_wide_to_narrow(what, {name: places[name] for name in values}):
        found |= dict.fromkeys(range(places[name].start, places[name].stop), values[name])
    return [(i, system.inputs[i], value) for i, value in found.items()]


def _listed(argument: str, names: str | Iterable[str]) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if listed.count(name) > 1:
            raise ValueError(f"{argument}: {name!r} is given twice")
    return listed


def _is_input(system: SystemDefinition, name: str) -> bool:
    """Whether a bias is on an input; otherwise it is on an output error."""
    inputs, outputs = system.input_names, system.output.tangent_names
    if name in inputs and name in outputs:
        raise ValueError(f"bias: {name!r} names an input and an output error of {system.name}")
    if name not in inputs and name not in outputs:
        raise UnknownNameError(unknown_name("input or output error", name, [*inputs, *outputs]))
    return name in inputs


def _output_indices(system: SystemDefinition, name: str) -> list[int]:
    """Entries of the output error: one by its name, or those of a block."""
    names, blocks = system.output.tangent_names, block_slices(system.output)[1]
    if name in names:
        return [names.index(name)]
    if name not in blocks:
        raise UnknownNameError(unknown_name("output error", name, [*names, *blocks]))
    return list(range(blocks[name].start, blocks[name].stop))


# Time constants and delays are divided by, s.
SHORTEST_LAG = 1e-9

# What stands between a command and a system, each with its states


@dataclass(frozen=True, eq=False)
class SignalStage:
    """One signal on its way, with states of its own.

    These are a block of the state, in the unit of the signal. Their rate, for discrete systems
    their change in a sample, is the second result of ``run``,
    ``(states, signal, parameters) → signal, change``.
    """

    block: str
    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    run: Callable[[Value, Value, Value], tuple[Value, Value]]


def input_lag(signal: Input, seconds: Any, dt: float) -> SignalStage:
    """First-order lag with a time constant, exact for an input that is held."""
    seconds = _positive(f"lag of {signal.name!r}", seconds)

    def run(states: Value, command: Value, p: Value) -> tuple[Value, Value]:
        share = 1 - ca.exp(-dt / p[0]) if dt else 1 / p[0]
        return states[0], share * (command - states[0])

    parameter = Parameter(f"{signal.name}.time_constant", "s", seconds, lower=SHORTEST_LAG)
    return SignalStage("actuator", (signal.name,), (parameter,), run)


def input_delay(signal: Input, seconds: Any, dt: float, order: int) -> SignalStage:
    """Delay: a chain of samples in discrete time, a rational approximation in continuous time."""
    seconds = _positive(f"delay of {signal.name!r}", seconds)
    return _chain(signal, seconds, dt) if dt else _legendre(signal, seconds, order)


def input_bias(signal: str) -> SignalStage:
    """Constant that is added."""

    def run(states: Value, value: Value, p: Value) -> tuple[Value, Value]:
        return value + states[0], 0 * states

    return SignalStage("bias", (signal,), (), run)


def _chain(signal: Input, seconds: float, dt: float) -> SignalStage:
    count = check_quotient(
        f"samples of {dt:g} s in the delay of {signal.name!r}", seconds / dt, MOST_SUBSTEPS,
        "shorten the delay, or sample more slowly",
    )  # fmt: skip
    if count < 1 or abs(count * dt - seconds) > 1e-9 * seconds:
        raise ValueError(
            f"delay of {signal.name!r}: {seconds:g} s is not a multiple of the sample time "
            f"{dt:g} s; the nearest is {max(count, 1) * dt:g} s"
        )

    def run(states: Value, command: Value, p: Value) -> tuple[Value, Value]:
        return states[count - 1], ca.vertcat(command, states[: count - 1]) - states

    return SignalStage("delay", tuple(f"{signal.name}.{k + 1}" for k in range(count)), (), run)


def _legendre(signal: Input, seconds: float, order: int) -> SignalStage:
    """Padé approximant (order − 1, order) of ``exp(−s T)``.

    The states are coefficients of the input of the last T seconds in Legendre polynomials, which
    keeps the equations well scaled and the output free of jumps.
    """
    check_count("delay_order", order, most=MOST_ORDER)
    i, j = np.meshgrid(np.arange(order), np.arange(order), indexing="ij")
    A = (2 * i + 1) * np.where(i < j, -1.0, (-1.0) ** (i - j + 1))
    B = (2 * np.arange(order) + 1) * (-1.0) ** np.arange(order)

    def run(states: Value, command: Value, p: Value) -> tuple[Value, Value]:
        return ca.sum1(states), (ca.DM(A) @ states + ca.DM(B) * command) / p[0]

    parameter = Parameter(f"{signal.name}.delay", "s", seconds, lower=SHORTEST_LAG)
    return SignalStage(
        "delay", tuple(f"{signal.name}.{k}" for k in range(order)), (parameter,), run
    )


def _positive(name: str, value: Any) -> float:
    number = float(value)
    if not (isfinite(number) and number >= SHORTEST_LAG):
        raise ValueError(f"{name} must be positive seconds, got {number}")
    return number


# The parts put together


class Augmented:
    """Places of the states and parameters of each part, and the field made of the parts.

    Inputs pass through the stages in this order, each with the position of its input. Entries of
    the output error have a bias or are integrated, about a nominal reference; `functions` of the
    arguments of the system are integrated besides.
    """

    def __init__(
        self,
        system: SystemDefinition,
        stages: list[tuple[int, SignalStage]],
        biased: list[int],
        integrated: list[int],
        reference: Any,
        functions: dict[str, Callable[..., Any]],
    ) -> None:
        self.system = system
        self.stages = stages
        self.biased = biased
        self.integrated = integrated
        self.functions = functions
        names, units = system.output.tangent_names, system.output.tangent_units
        layout = _ExtraBlocks(system)
        self.stage_rows = [
            layout.add(stage.block, [(name, system.inputs[i].unit) for name in stage.names])
            for i, stage in stages
        ]
        self.bias_rows = layout.add("bias", [(names[i], units[i]) for i in biased])
        self.integral_rows = layout.add(
            "integral",
            [(names[i], f"{units[i]} s".strip()) for i in integrated]
            + [(name, "") for name in functions],
        )
        self.state, self.places = layout.finish()
        self.stage_parameters = [entry for _, stage in stages for entry in stage.parameters]
        self.reference = _reference(system.output, reference) if integrated else []

    def rows_of_biases(self) -> list[int]:
        """Coordinates of the biases: those of inputs, then those of output errors."""
        rows = [row for (_, stage), held in zip(self.stages, self.stage_rows, strict=True)
                if stage.block == "bias" for row in held]  # fmt: skip
        return self._at([*rows, *self.bias_rows])

    def build(self) -> Any:
        """Trace the parts into one system."""
        system = self.system
        quantities: dict[str, Any] = {**system.named_quantities(self._inside)}
        invariants, project = self._static(system.invariants), self._static(system.project)
        if invariants is not None and self.stages:
            held = invariants
            quantities["invariants"] = lambda t, x, u, p: held(x, p)
            invariants = None
        return system.replaced(
            state=self.state,
            home=np.concatenate([system.home, self.state.identity[system.state.nq :]]),
            f=self._field,
            h=self._output,
            output=system.output,
            parameters=_distinct([*system.parameters, *self.stage_parameters, *self.reference]),
            quantities=quantities,
            invariants=invariants,
            project=None
            if project is None
            else lambda x, p: ca.vertcat(project(x, p), x[system.state.nq :]),
            project_derivative=self._project_derivative(system.project_derivative),
            derivatives=self._derivatives if system._knows_derivatives else None,
            structure=None if system.structure is None else self._structure(system.structure),
            errors=None if system.errors is None else self._errors(system.errors),
        )

    def _structure(self, inner: Mechanical) -> Mechanical:
        """The structure inside, with the input that arrives there."""
        nq, count = self.system.state.nq, self.system.n_parameters

        def balance_derivatives(t: Value, x: Value, a: Value, u: Value, p: Value) -> Any:
            arrives, by_x, by_u = self._arrival(x, u, p)
            inside = inner.balance_derivatives(t, x[:nq], a, arrives, p[:count])
            return ca.horzcat(inside[0], inside[1] @ by_x), inside[1] @ by_u

        def input_map(t: Value, x: Value, u: Value, p: Value) -> Value:
            arrives, _, by_u = self._arrival(x, u, p)
            return inner.input_map(t, x[:nq], arrives, p[:count]) @ by_u

        return replace(
            inner,
            mass_matrix=self._static(inner.mass_matrix),
            force=self._inside(inner.force),
            balance_derivatives=balance_derivatives,
            input_map=input_map,
            loss_jacobian=self._static(inner.loss_jacobian),
            losses=self._static(inner.losses),
            is_plain=inner.is_plain and not self.stages,
            lagrangian=None,  # lags and integrals are no motion
            acceleration_hessian=None,
        )

    def _derivatives(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """Closed forms of the field inside by the chain rule; AD for the further states."""
        system, nq, count = self.system, self.system.state.nq, self.system.n_parameters
        arrives, by_x, by_u = self._arrival(x, u, p)
        Df, Bf = system.derivatives(t, x[:nq], arrives, p[:count])
        own = self._field(t, x, u, p)[system.state.dim :]
        return (
            ca.vertcat(ca.horzcat(Df, Bf @ by_x), ca.jacobian(own, x) @ self.state.rate_matrix(x)),
            ca.vertcat(Bf @ by_u, ca.jacobian(own, u)),
        )

    def _arrival(self, x: Value, u: Value, p: Value) -> tuple[Value, Value, Value]:
        """Input that arrives inside, its derivatives by the further states and by the commands."""
        arrives = self._arriving(x, u, p)[0]
        by_x = ca.jacobian(arrives, x)[:, self.system.state.nq :]
        return arrives, by_x, ca.jacobian(arrives, u)

    def _errors(self, inner: ErrorCoordinates) -> ErrorCoordinates:
        """The further states are error coordinates of their own."""
        state, inside, count = self.state, self.system.state, self.system.n_parameters
        own = state.dim - inside.dim
        E = np.zeros((len(inner.names) + own, state.dim))
        E[: len(inner.names), : inside.dim] = inner.selection
        E[len(inner.names) :, inside.dim :] = np.eye(own)

        def basis(x: Value, p: Value) -> Value:
            return ca.diagcat(inner.basis(x[: inside.nq], p[:count]), ca.DM.eye(own))

        names = [*inner.names, *state.tangent_names[inside.dim :]]
        units = [*inner.units, *state.tangent_units[inside.dim :]]
        return ErrorCoordinates(
            E, basis, names, units, self._static(inner.constraints), inner.constraint_names
        )

    def _project_derivative(
        self, inner: Callable[..., Value] | None
    ) -> Callable[..., Value] | None:
        """The further states stay what they are."""
        if inner is None:
            return None
        slope, inside, count = inner, self.system.state, self.system.n_parameters
        own = self.state.dim - inside.dim
        return lambda x, p: ca.diagcat(slope(x[: inside.nq], p[:count]), ca.DM.eye(own))

    def _static(self, function: Callable[..., Value] | None) -> Callable[..., Value] | None:
        """Function of the state and parameters inside, for those of the whole."""
        if function is None:
            return None
        nq, count = self.system.state.nq, self.system.n_parameters
        return lambda x, p: function(x[:nq], p[:count])

    def _inside(self, function: Callable[..., Value]) -> Callable[..., Value]:
        """Function ``(t, x, u, p)`` of the system inside, with the input that arrives there."""
        nq, count = self.system.state.nq, self.system.n_parameters
        return lambda t, x, u, p: function(t, x[:nq], self._arriving(x, u, p)[0], p[:count])

    def _arriving(self, x: Value, u: Value, p: Value) -> tuple[Value, list[Value]]:
        """Input behind the stages, and the change of the states of each stage."""
        signals = ca.vertsplit(u) if self.system.n_inputs else []
        first = self.system.n_parameters
        changes = []
        for (index, stage), rows in zip(self.stages, self.stage_rows, strict=True):
            own = p[first : first + len(stage.parameters)]
            first += len(stage.parameters)
            signals[index], change = stage.run(x[self._at(rows)], signals[index], own)
            changes.append(change)
        return ca.vertcat(*signals), changes

    def _at(self, rows: list[tuple[str, int]]) -> list[int]:
        return [self.places[row] for row in rows]

    def _output(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        y = self._inside(self.system.h)(t, x, u, p)
        if not self.biased:
            return y
        choice = ca.DM(np.eye(self.system.output.dim)[:, self.biased])
        return self.system.output.plus(y, choice @ x[self._at(self.bias_rows)])

    def _field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        system = self.system
        rates: dict[int, Any] = dict.fromkeys(range(system.state.nq, self.state.nq), 0)
        scale = system.dt or 1.0
        _, changes = self._arriving(x, u, p)
        for rows, change in zip(self.stage_rows, changes, strict=True):
            rates |= {at: change[k] for k, at in enumerate(self._at(rows))}
        if self.integrated:
            wanted = system.output.normalize(p[-len(self.reference) :])
            error = system.output.minus(self._output(t, x, u, p), wanted)
            at = self._at(self.integral_rows)
            rates |= {row: scale * error[i] for row, i in zip(at, self.integrated, strict=False)}
        at = self._at(self.integral_rows[len(self.integrated) :])
        for row, (name, function) in zip(at, self.functions.items(), strict=True):
            rates[row] = scale * self._number(name, function, t, x, u, p)
        return ca.vertcat(self._inside(system.f)(t, x, u, p), *rates.values())

    def _number(
        self, name: str, function: Callable[..., Any], t: Value, x: Value, u: Value, p: Value
    ) -> Value:
        """What a function that is integrated returns, for arguments of the whole."""
        label = f"integrate: {name!r}"

        def called(*values: Value) -> Value:
            return call_with_symbols(label, function, values, ("t", "x", "u", "p"))

        value = type(x)(self._inside(called)(t, x, u, p))
        if value.shape != (1, 1):
            raise ValueError(f"{label} must return one number, not shape {value.shape}")
        return value


def _with_constants(system: Any, names: list[str]) -> Any:
    """A system with constant states, some of which take the places of its parameters."""
    if system.errors is not None:
        raise ValueError(f"constant: {system.name} has constraints, and takes no constant states")
    nq, known = system.state.nq, system.parameter_names
    units = {entry.name: entry.unit for entry in system.parameters}
    nominal = dict(zip(known, system.nominal_parameters, strict=True))
    layout = _ExtraBlocks(system)
    layout.add("constant", [(name, units.get(name, "")) for name in names])
    state, _ = layout.finish()
    kept = [entry for entry in system.parameters if entry.name not in names]

    def own(x: Value, p: Value) -> Value:
        """Parameters of the system inside."""
        rest = iter(range(len(kept)))
        return ca.vertcat(
            *(x[nq + names.index(name)] if name in names else p[next(rest)] for name in known)
        )

    def inside(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda t, x, u, p: function(t, x[:nq], u, own(x, p))

    def static(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
        return None if function is None else lambda x, p: function(x[:nq], own(x, p))

    def derivatives(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        Df, Bf = system.derivatives(t, x[:nq], u, own(x, p))
        by_constants = ca.jacobian(inside(system.f)(t, x, u, p), x)[:, nq:]
        rest = ca.DM(len(names), state.dim), ca.DM(len(names), system.n_inputs)
        return ca.vertcat(ca.horzcat(Df, by_constants), rest[0]), ca.vertcat(Bf, rest[1])

    project = static(system.project)
    return system.replaced(
        state=state,
        home=np.concatenate([system.home, [nominal.get(name, 0.0) for name in names]]),
        f=lambda t, x, u, p: ca.vertcat(inside(system.f)(t, x, u, p), ca.DM(len(names), 1)),
        h=inside(system.h),
        output=system.output,
        parameters=kept,
        quantities=system.named_quantities(inside),
        invariants=static(system.invariants),
        project=None if project is None else lambda x, p: ca.vertcat(project(x, p), x[nq:]),
        project_derivative=None,
        derivatives=derivatives if system._knows_derivatives else None,
        structure=None,
    )


class _ExtraBlocks:
    """Further blocks of vectors, filled part by part."""

    def __init__(self, system: SystemDefinition) -> None:
        self.blocks = {name: group for name, (group, _, _) in blocks_of(system.state).items()}
        self.first = system.state.nq
        self.entries: dict[str, list[tuple[str, str]]] = {}

    def add(self, block: str, states: list[tuple[str, str]]) -> list[tuple[str, int]]:
        """Take names and units of further states; returns their rows as (block, number)."""
        if not states:
            return []
        held = self.entries.setdefault(block, [])
        held += states
        return [(block, k) for k in range(len(held) - len(states), len(held))]

    def finish(self) -> tuple[Product, dict[tuple[str, int], int]]:
        """Whole state group, and the coordinate of each row."""
        places, position = {}, self.first
        for block, held in self.entries.items():
            group = Rn(len(held), tuple(n for n, _ in held), tuple(u for _, u in held))
            self.blocks[_free_name(block, self.blocks)] = group
            places |= {(block, k): position + k for k in range(len(held))}
            position += len(held)
        return Product(**self.blocks), places


def _reference(output: LieGroup, reference: Any) -> list[Parameter]:
    value = output.identity if reference is None else reference
    value = check_element("reference", value, output)
    return [
        Parameter(f"reference.{name}", unit, float(entry))
        for name, unit, entry in zip(
            output.coordinate_names, output.coordinate_units, value, strict=True
        )
    ]


def _distinct(parameters: list[Parameter]) -> list[Parameter]:
    """Parameters under names that differ, the first ones as they are."""
    found: dict[str, Parameter] = {}
    for entry in parameters:
        name = _free_name(entry.name, found)
        found[name] = replace(entry, name=name)
    return list(found.values())


def _free_name(name: str, taken: Iterable[str]) -> str:
    """Name, with the first number that makes it new where it is taken."""
    held, k, free = set(taken), 2, name
    while free in held:
        free, k = f"{name}{k}", k + 1
    return free
