"""Designs, made and run once for all tests of a process."""

from functools import cache
from importlib.metadata import entry_points

from lgcontrol.codegen import set_compile_policy
from lgcontrol.codegen._internal import compile_policy
from lgcontrol.simulation import SimulationResult, Task

DESIGNS = {
    entry.name: entry
    for entry in entry_points(group="lgcontrol.designs")
    if entry.value.startswith("lgcontrol.")
}


@cache
def task_of(name: str) -> Task:
    return DESIGNS[name].load()(seed=0)


# A compiler takes longer for these than interpreted calls do.
INTERPRETED = ("auv-helix", "auv-usbl", "quadrotor-field", "quadrotor-gnss", "quadrotor-recovery")


@cache
def run_of(name: str) -> SimulationResult:
    before = compile_policy()
    set_compile_policy("off" if name in INTERPRETED else "auto")
    try:
        return task_of(name).run(seed=0)
    finally:
        set_compile_policy(before)
