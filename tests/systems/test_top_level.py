"""Names at the top of the package load when they are used."""

import subprocess
import sys

import pytest

import lgcontrol as lg


def modules_after(statements: str) -> set[str]:
    code = f"import sys; {statements}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_neither_plots_nor_python_control():
    loaded = modules_after("import lgcontrol as lg; lg.System; lg.Trajectory; lg.SE3")
    assert "lgcontrol.systems" in loaded
    assert not loaded & {"matplotlib", "control"}


def test_importing_alone_loads_nothing_heavy():
    assert not modules_after("import lgcontrol") & {"casadi", "scipy", "matplotlib", "control"}


@pytest.mark.parametrize("name", ["System", "Input", "Parameter", "Trajectory", "SE3", "Product"])
def test_names_are_there(name):
    assert name in dir(lg)
    assert getattr(lg, name).__module__.startswith("lgcontrol") or name == "SE3"


def test_packages_are_there():
    assert lg.groups.SO3 is lg.SO3


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Systems'"):
        _ = lg.Systems
