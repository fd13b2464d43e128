"""A system with stages before its inputs and integrators behind its outputs, put together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..groups import LieGroup, Product, Rn, check_element
from ._signals import Parameter
from ._stages import Stage
from ._trim_equations import blocks_of

if TYPE_CHECKING:
    from ._system import System


class Augmented:
    """Where the states and parameters of each part are, and the field made of the parts.

    Parameters
    ----------
    system : System
    stages : list of (int, Stage)
        What inputs pass through, in this order, with the position of the input.
    biased, integrated : list of int
        Entries of the output error.
    reference : array_like or None
        Nominal reference of the integrators.
    """

    def __init__(
        self,
        system: System,
        stages: list[tuple[int, Stage]],
        biased: list[int],
        integrated: list[int],
        reference: Any,
    ) -> None:
        self.system = system
        self.stages = stages
        self.biased = biased
        self.integrated = integrated
        names, units = system.output.tangent_names, system.output.tangent_units
        layout = _Layout(system)
        self.stage_rows = [
            layout.add(stage.block, [(name, system.inputs[i].unit) for name in stage.names])
            for i, stage in stages
        ]
        self.bias_rows = layout.add("bias", [(names[i], units[i]) for i in biased])
        self.integral_rows = layout.add(
            "integral", [(names[i], f"{units[i]} s".strip()) for i in integrated]
        )
        self.state, self.places = layout.finish()
        self.stage_parameters = [entry for _, stage in stages for entry in stage.parameters]
        self.reference = _reference(system.output, reference) if integrated else []

    def build(self) -> System:
        """Trace the parts into one system."""
        system = self.system
        quantities: dict[str, Any] = {
            name: self._inside(quantity) for name, quantity in system.quantities.items()
        }
        invariants, project = self._static(system.invariants), self._static(system.project)
        if invariants is not None and self.stages:
            held = invariants
            quantities["invariants"] = lambda t, x, u, p: held(x, p)
            invariants = None
        return system._like(
            state=self.state,
            f=self._field,
            h=self._output,
            output=system.output,
            parameters=_distinct([*system.parameters, *self.stage_parameters, *self.reference]),
            quantities=quantities,
            invariants=invariants,
            project=None
            if project is None
            else lambda x, p: ca.vertcat(project(x, p), x[system.state.nq :]),
        )

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
        rates = dict.fromkeys(range(system.state.nq, self.state.nq), 0)
        _, changes = self._arriving(x, u, p)
        for rows, change in zip(self.stage_rows, changes, strict=True):
            rates |= {at: change[k] for k, at in enumerate(self._at(rows))}
        if self.integrated:
            wanted = system.output.normalize(p[-len(self.reference) :])
            error = system.output.minus(self._output(t, x, u, p), wanted)
            at = self._at(self.integral_rows)
            scale = system.dt or 1.0
            rates |= {row: scale * error[i] for row, i in zip(at, self.integrated, strict=True)}
        return ca.vertcat(self._inside(system.f)(t, x, u, p), *rates.values())


class _Layout:
    """Further blocks of vectors, filled part by part."""

    def __init__(self, system: System) -> None:
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
