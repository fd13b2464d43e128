"""Every docstring example runs.

``pytest --doctest-modules`` would import models/arm.py as ``models.arm``, a name that does not
exist once installed; here each module is imported under its installed name.
"""

import doctest
import importlib
import io

import pytest

from ._repository import module_name, python_files

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [module_name(path) for path in python_files() if path.stem != "__main__"]

# These take seconds each; `make notebooks` runs their examples.
LARGE = {
    "lgcontrol.estimation._landmark_map",
    "lgcontrol.estimation._noise",
    "lgcontrol.estimation._offset_free",
    "lgcontrol.mechanics.constrained._closed_tree",
    *(
        f"lgcontrol.models._{name}"
        for name in (
            "delta_robot", "elastic_panda", "elastic_space_arm", "elastic_ur5", "planar_linkages",
            "stewart_platform", "two_arms", "underwater_vehicle_arm",
        )
    ),
}  # fmt: skip


@pytest.mark.usually(name=set(MODULES) - LARGE)
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # an example that saves a file saves it here
    module = importlib.import_module(name)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module):
        if test.examples:
            runner.run(test, out=report.write)
    assert not runner.failures, report.getvalue()
