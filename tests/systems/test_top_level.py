"""Names at the top of the package load when they are used."""

import subprocess
import sys

import pytest

import lgcontrol as lg


def modules_after(statements: str) -> set[str]:
    code = f"import sys; {statements}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_neither_plots_nor_python_control_nor_solvers():
    loaded = modules_after("import lgcontrol as lg; lg.System; lg.Trajectory; lg.SE3; lg.simulate")
    assert "lgcontrol.systems" in loaded
    assert not loaded & {"matplotlib", "control"}
    # Together they take longer than everything else.
    assert not loaded & {"scipy.linalg", "scipy.optimize", "scipy.spatial"}


def test_importing_alone_loads_nothing_heavy():
    assert not modules_after("import lgcontrol") & {"casadi", "scipy", "matplotlib", "control"}


@pytest.mark.parametrize("name", ["System", "Input", "Parameter", "Trajectory", "SE3", "Product"])
def test_names_are_there(name):
    assert name in dir(lg)
    assert getattr(lg, name).__module__.startswith("lgcontrol") or name == "SE3"


def test_packages_are_there():
    assert lg.groups.SO3 is lg.SO3


def test_every_folder_is_there():
    assert lg.models.quadrotor().name == "quadrotor"
    assert lg.controllers.MPC.__name__ == "MPC"


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Systems'$"):
        _ = lg.Systems


@pytest.mark.parametrize(
    ("name", "package"),
    [("GravityPD", "controllers"), ("quadrotor", "models"), ("LinkCapsules", "mechanics")],
)
def test_names_that_are_elsewhere_are_found(name, package):
    with pytest.raises(AttributeError, match=f"'{name}'; {name} is in lgcontrol.{package}$"):
        getattr(lg, name)


def test_asking_for_private_names_loads_nothing():
    probe = "import lgcontrol; hasattr(lgcontrol, '_repr_html_')"
    assert not modules_after(probe) & {"casadi", "lgcontrol.models"}


def test_only_what_is_of_use_is_listed():
    assert not {"Any", "TYPE_CHECKING", "annotations", "import_module"} & {*dir(lg)}
    assert {"models", "controllers", "System", "__doc__"} <= {*dir(lg)}
