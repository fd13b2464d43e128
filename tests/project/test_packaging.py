"""The wheel, the sdist and the editable install hold exactly the packages' files."""

import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from ._repository import LINKS, PACKAGES, ROOT, module_name, python_files, repository_files
from .test_readme import blocks

# What a build reads besides the packages; README.md is optional here so that the tests can say more
# than "it does not build".
BUILD_INPUTS = ["pyproject.toml", "LICENSE", "README.md"]


def installed_name(name: str) -> str:
    folder, _, rest = name.partition("/")
    return f"{PACKAGES[folder].replace('.', '/')}/{rest}"


def copy_repository(target: Path) -> Path:
    """Copy what git would publish, so that no left-over build/ hides a missing package."""
    for name in repository_files(*PACKAGES, *BUILD_INPUTS):
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy)
    for link, end in LINKS.items():
        (target / link).parent.mkdir(exist_ok=True)
        (target / link).symlink_to(end)
    return target


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> Path:
    """Return a folder with the sdist and the wheel built from that sdist, as users get them."""
    source = copy_repository(tmp_path_factory.mktemp("source"))
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source]
    build = subprocess.run(command, capture_output=True, text=True)
    said = build.stdout + build.stderr
    assert build.returncode == 0, said
    assert "would be ignored" not in said, "a folder with files for users is no package: list it"
    return folder


def run_isolated(code: str, *paths: Path) -> str:
    """Run code in a Python that sees the paths and the dependencies, not this lgcontrol.

    Without ``site`` no installed .pth file is read, so the editable install under test stays out.
    """
    head = (
        "import site, sys\n"
        f"for path in {[str(path) for path in paths]!r}: site.addsitedir(path)\n"
        f"sys.path.append({sysconfig.get_paths()['purelib']!r})\n"
    )
    run = subprocess.run(
        [sys.executable, "-I", "-S", "-c", head + code], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


IMPORT_ALL = f"""
import importlib
for name in {[module_name(path) for path in python_files() if path.name == "__init__.py"]!r}:
    importlib.import_module(name)
"""

NO_TOP_LEVEL_NAMES = """
import importlib.util
assert importlib.util.find_spec("models") is None, "models is importable as a top-level name"
assert importlib.util.find_spec("controllers") is None, "controllers is a top-level name"
"""


def test_wheel_holds_the_files_of_the_repository(distributions):
    (wheel,) = distributions.glob("*.whl")
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    expected = {installed_name(name) for name in repository_files(*PACKAGES)}
    assert not expected - packed, (
        "not in the wheel; add the package to [tool.setuptools] packages, or the file's pattern to "
        f"package-data, in pyproject.toml: {sorted(expected - packed)}"
    )
    assert not packed - expected, f"in the wheel only: {sorted(packed - expected)}"


def test_sdist_holds_the_files_of_the_repository(distributions):
    (sdist,) = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = (entry.name.partition("/")[2] for entry in archive if entry.isfile())
        packed = {name for name in names if name.startswith("src/lgcontrol/")}
    expected = {f"src/{installed_name(name)}" for name in repository_files(*PACKAGES)}
    assert packed == expected, f"differ: {sorted(packed ^ expected)}"


def test_wheel_imports_under_the_installed_names_only(distributions, tmp_path):
    (wheel,) = distributions.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    where = run_isolated(
        IMPORT_ALL + NO_TOP_LEVEL_NAMES + "import lgcontrol; print(lgcontrol.__file__)", tmp_path
    )
    assert Path(where.strip()).is_relative_to(tmp_path)


RUN_DESIGN = """
from lgcontrol.cli import main
assert main(["run", "vessel-docking", "--out", "out"]) == 0
"""


@pytest.mark.thorough
def test_the_wheel_runs_the_readme_and_a_design(distributions, tmp_path, monkeypatch):
    """As for a user who has the package and not the repository."""
    (wheel,) = distributions.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code = "\n".join(block for _, block in blocks(readme, "python"))
    said = run_isolated(code + RUN_DESIGN, tmp_path / "installed")
    assert "vessel-docking" in said or "surface_vessel" in said
    assert (tmp_path / "run.png").exists() and list((tmp_path / "out").iterdir())


WITHOUT_COMPILER = """
import numpy as np
from lgcontrol.controllers import MPC
from lgcontrol.models import quadrotor
quad = quadrotor()
mpc = MPC(quad, 20, 0.05, reference=quad.trim(position=[2, 1, 1]))
assert mpc(0.0, quad.state.random(seed=1)).shape == (4,)
assert mpc.info.status == "ok", mpc.info
assert mpc.solver.has_loop and not mpc.solver.is_compiled
"""


@pytest.mark.thorough
@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels are built for x86-64")
def test_the_wheel_for_linux_plans_without_a_compiler(tmp_path, monkeypatch):
    tool = [sys.executable, ROOT / "tools" / "build_wheel.py", tmp_path]
    subprocess.run(tool, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*manylinux_*_x86_64.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    monkeypatch.setenv("PATH", str(tmp_path))
    run_isolated(WITHOUT_COMPILER, tmp_path / "installed")


def test_the_version_is_one():
    """The package has it; the file for citations repeats it."""
    import lgcontrol

    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {lgcontrol.__version__}\n" in cited


def test_the_links_are_there():
    assert {link: (ROOT / link).readlink().as_posix() for link in LINKS} == LINKS


def test_editable_install_is_a_path_and_sees_files_added_later(tmp_path):
    """Editors read paths and run no code; a file dropped into models/ is there at once."""
    source = copy_repository(tmp_path / "source")
    editable = tmp_path / "editable"
    editable.mkdir()
    hook = f"import setuptools.build_meta as b; b.build_editable({str(editable)!r})"
    build = subprocess.run([sys.executable, "-c", hook], cwd=source, capture_output=True, text=True)
    assert build.returncode == 0, build.stdout + build.stderr
    (wheel,) = editable.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(editable)
    (path,) = editable.glob("*.pth")
    assert path.read_text().strip() == str(source / "src")

    (source / "models" / "added_later.py").write_text("value = 1\n")
    (source / "controllers" / "designs" / "added").mkdir()
    (source / "controllers" / "designs" / "added" / "__init__.py").write_text("value = 2\n")
    (source / "models" / "data" / "added.toml").write_text("value = 3\n")
    code = """
from importlib.resources import files
from lgcontrol.controllers.designs.added import value as two
from lgcontrol.models.added_later import value as one
assert (one, two) == (1, 2)
assert files("lgcontrol.models.data").joinpath("added.toml").read_text() == "value = 3\\n"
"""
    run_isolated(IMPORT_ALL + code + NO_TOP_LEVEL_NAMES, editable)


def test_editors_see_what_a_development_install_offers(tmp_path):
    """Jedi reads files, as editors do, those of linked folders too."""
    jedi = pytest.importorskip("jedi")  # comes with notebooks
    project = jedi.Project(tmp_path, sys_path=[str(ROOT / "src")], smart_sys_path=False)
    for line, expected in (
        ("from lgcontrol.models import quad", "quadrotor"),
        ("from lgcontrol.controllers import MP", "MPC"),
        ("import lgcontrol as lg; lg.Mechani", "Mechanism"),
    ):
        found = jedi.Script(line, project=project).complete(1, len(line))
        assert expected in {entry.name for entry in found}


def test_entry_points_of_the_project_resolve():
    """A renamed function leaves a command or a design that fails only when somebody calls it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"scripts": project["scripts"], **project.get("entry-points", {})}
    for group, targets in groups.items():
        for name, value in targets.items():
            found = EntryPoint(name, value, group).load()
            assert callable(found) or found.figures, f"{group}: {name} = {value}"
