"""The versions that the package says it works with are those that are tested."""

import re
import tomllib

from ._repository import ROOT


def test_the_oldest_versions_that_are_tested_are_the_bounds_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    script = (ROOT / "tools" / "test_versions.sh").read_text(encoding="utf-8")
    oldest = re.search(r'^OLDEST="(.*)"$', script, re.MULTILINE).group(1).split()
    bounds = [re.sub(r"(>=[\d.]+).*", r"\1", entry) for entry in project["dependencies"]]
    full = [re.sub(r">=(\d+\.\d+)$", r">=\1.0", entry) for entry in bounds]
    assert [entry.replace("==", ">=") for entry in oldest] == full
    python = project["requires-python"].removeprefix(">=")
    assert f"oldest-{python}|{python}|$OLDEST" in script
