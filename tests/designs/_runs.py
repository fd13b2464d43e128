"""Designs, made and run once for all tests of a process."""

from functools import cache
from importlib.metadata import entry_points

from lgcontrol.simulation import SimulationResult, Task

DESIGNS = {
    entry.name: entry
    for entry in entry_points(group="lgcontrol.designs")
    if entry.value.startswith("lgcontrol.")
}


@cache
def task_of(name: str) -> Task:
    return DESIGNS[name].load()(seed=0)


@cache
def run_of(name: str) -> SimulationResult:
    return task_of(name).run(seed=0)
