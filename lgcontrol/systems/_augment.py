"""augment: a system with actuator lag, delay, biases and integrators as further states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..codegen import UnknownNameError, unknown_name
from . import _stages
from ._augmented import Augmented
from ._signals import Input

if TYPE_CHECKING:
    from ._system import System


def augment(
    system: System,
    *,
    delay: float | Mapping[str, float] | None = None,
    delay_order: int = 4,
    lag: float | Mapping[str, float] | None = None,
    bias: str | Iterable[str] = (),
    integrate: str | Iterable[str] = (),
    reference: Any = None,
) -> System:
    """Return a system with further states, each kind in a block of its own.

    A command passes the delay, then the lag, then the bias on its way to the system.

    Parameters
    ----------
    system : System
    delay : float or mapping of str to float, optional
        Delay of all controls, or of inputs by name, in s; block "delay". Exact in discrete time,
        where it must be a multiple of the sample time. In continuous time a Padé approximant of
        ``exp(−s T)`` that is good for frequencies up to about ``delay_order / T``.
    delay_order : int
        States of each delay in continuous time.
    lag : float or mapping of str to float, optional
        Time constant of the actuators of all controls, or of inputs by name, in s; block
        "actuator". In discrete time the system sees the actuator as it is at the start of a sample.
    bias : str or iterable of str
        Inputs, and output errors (names as in ``output.tangent_names``), to which an unknown
        constant is added; block "bias".
    integrate : str or iterable of str
        Output errors to integrate; block "integral", whose rate is that entry of
        ``minus(y, reference)``.
    reference : array_like, shape (output.nq,), optional
        Nominal reference of the integrators; the identity if left out.

    Returns
    -------
    System
        With the blocks of the system first, and the same inputs and output. Time constants,
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
    """
    dt = system.dt
    stages = [
        *((i, _stages.delay(entry, T, dt, delay_order)) for i, entry, T in _times(system, delay)),
        *((i, _stages.lag(entry, T, dt)) for i, entry, T in _times(system, lag)),
    ]
    biased = []
    for name in _listed("bias", bias):
        if _is_input(system, name):
            stages.append((system.input_names.index(name), _stages.constant_bias(name)))
        else:
            biased.append(system.output.tangent_names.index(name))
    integrated = [_output_index(system, name) for name in _listed("integrate", integrate)]
    if not (stages or biased or integrated):
        raise ValueError("augment: give delay, lag, bias or integrate")
    if reference is not None and not integrated:
        raise ValueError("augment: reference is for integrators; give integrate as well")
    return Augmented(system, stages, biased, integrated, reference).build()


def _times(
    system: System, values: float | Mapping[str, float] | None
) -> list[tuple[int, Input, float]]:
    if values is None:
        return []
    if not isinstance(values, Mapping):
        values = {system.input_names[i]: values for i in system.input_index("control")}
    for name in values:
        if name not in system.input_names:
            raise UnknownNameError(unknown_name("input", name, system.input_names))
    indices = [system.input_names.index(name) for name in values]
    return [(i, system.inputs[i], value) for i, value in zip(indices, values.values(), strict=True)]


def _listed(argument: str, names: str | Iterable[str]) -> list[str]:
    listed = [names] if isinstance(names, str) else list(names)
    for name in listed:
        if listed.count(name) > 1:
            raise ValueError(f"{argument}: {name!r} is given twice")
    return listed


def _is_input(system: System, name: str) -> bool:
    """Whether a bias is on an input; otherwise it is on an output error."""
    inputs, outputs = system.input_names, system.output.tangent_names
    if name in inputs and name in outputs:
        raise ValueError(f"bias: {name!r} names an input and an output error of {system.name}")
    if name not in inputs and name not in outputs:
        raise UnknownNameError(unknown_name("input or output error", name, [*inputs, *outputs]))
    return name in inputs


def _output_index(system: System, name: str) -> int:
    names = system.output.tangent_names
    if name not in names:
        raise UnknownNameError(unknown_name("output error", name, names))
    return names.index(name)
