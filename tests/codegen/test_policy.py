"""When functions are compiled, and what importing the toolkit loads."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.codegen import _policy, prepare, set_compile_policy
from lgcontrol.codegen._internal import compile_policy

from ._functions import pendulum_step

ROOT = Path(__file__).resolve().parents[2]


def test_single_calls_never_compile_by_themselves():
    function = pendulum_step()
    for _ in range(3000):
        function([1.0, 2.0], 0.5)
    assert not function.is_compiled and function._backend.vector is None


def test_small_batches_are_interpreted_large_ones_compiled(compiler):
    function = pendulum_step()
    function(np.ones((100, 2)), 0.5)
    assert function._backend.kernel_for(100) is None
    function(np.ones((100_000, 2)), 0.5)
    assert function._backend.kernel_for(100) is not None


def test_loops_prepare_what_they_call_often(compiler):
    function = pendulum_step()
    prepare(function, calls=100)
    assert not function.is_compiled
    prepare(function, calls=1_000_000)
    assert function.is_compiled


def test_loops_over_batches_prepare_the_code_for_batches(compiler, has_vectors):
    function = pendulum_step()
    prepare(function, calls=1_000, items=1_000)
    assert not function.is_compiled
    function.in_place(1_000)
    assert function._backend.kernel_for(1_000) is not None and has_vectors(function)


def test_eager_compiles_at_the_first_call(compiler):
    set_compile_policy("eager")
    single, batch, place = pendulum_step(), pendulum_step(), pendulum_step()
    single([1.0, 2.0], 0.5)
    batch([[1.0, 2.0]] * 2, 0.5)
    place.in_place()
    assert single.is_compiled and batch._backend.kernel_for(2) and place.is_compiled


def test_off_never_compiles():
    set_compile_policy("off")
    function = pendulum_step().compiled()
    prepare(function, calls=10**9)
    function(np.ones((1000, 2)), 0.5)
    assert not function.is_compiled
    set_compile_policy("auto")
    assert function.compiled() is function


def test_unknown_policies_are_refused():
    with pytest.raises(ValueError, match="unknown compile policy 'always'; valid names are auto"):
        set_compile_policy("always")


@pytest.mark.parametrize(
    ("value", "expected", "said"),
    [("off", "off", 0), ("eager", "eager", 0), ("", "auto", 0), ("0", "auto", 1)],
)
def test_the_environment_sets_the_policy(monkeypatch, fresh, notices, value, expected, said):
    monkeypatch.setenv("LGCONTROL_COMPILE", value)
    monkeypatch.setattr(_policy, "_chosen", [])
    assert compile_policy() == expected
    assert len(notices()) == said


def test_importing_loads_nothing_that_is_not_needed():
    """Plots, python-control and compilers wait until they are used: the import stays quick."""
    code = (
        "import sys, lgcontrol, lgcontrol.codegen, lgcontrol.groups, lgcontrol.systems\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert "casadi" in output
    assert not {"matplotlib", "control", "IPython", "pandas"} & set(output)
