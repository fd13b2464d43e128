"""``make types`` reads every package under its installed name and can fail."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ._repository import LINKS, ROOT

WRONG = 'x: int = "planted"\n'
SOURCES = {
    "lgcontrol/__init__.py": "",
    "lgcontrol/groups/__init__.py": "class Group: ...\n",
    "lgcontrol/groups/_so3.py": WRONG,
    "models/__init__.py": "from .arm import Arm as Arm\n",
    "models/arm.py": f"from ..groups import Group\n\nclass Arm(Group): ...\n\n{WRONG}",
    "controllers/__init__.py": "",
    "controllers/designs/__init__.py": "",
    "controllers/designs/hover.py": "from lgcontrol.models import Arm\n\nx: int = Arm()\n",
    "README.md": "# Title\n\n```python\nfrom lgcontrol.models import Arm\n\nArm(1)\n```\n",
    "docs/howto/twice.md": "# Tasks\n\n```python\ndef twice(x):\n    return 2 * x\n```\n",
}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_planted_type_errors_are_reported_at_the_file_people_edit(tmp_path):
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, tmp_path / name)
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for link, end in LINKS.items():
        (tmp_path / link).parent.mkdir(exist_ok=True)
        (tmp_path / link).symlink_to(end)
    # This interpreter's environment stands in for .venv, which -o takes as made.
    command = ["make", "-o", ".venv/ready", f"BIN={Path(sys.executable).parent}", "types"]
    # `make test ARGS=...` would hand its variables down.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "ARGS")}
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert run.returncode != 0
    errors = [line.strip() for line in run.stdout.splitlines() if " - error: " in line]
    # The design twice, as a user's file as well; the page's function has been annotated.
    assert sorted(Path(error.partition(":")[0]).name for error in errors) == [
        "README.md.py",
        "_so3.py",
        "arm.py",
        "hover.py",
        "hover.py",
    ], run.stdout
    assert "README.md.py:6:5 - error: Expected 0 positional arguments" in run.stdout
    assert not [error for error in errors if "lgcontrol/models" in error]
    # The designs see the very class that models/ defines, not an unknown one.
    assert any('"Arm" is not assignable to' in error for error in errors)
