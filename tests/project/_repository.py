"""What the meta tests know of the repository: its files, its packages and their installed names."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Folder in the repository -> import name. An installation sees src/lgcontrol, a link, and in it the
# links to the folders that stand at the top.
LINKS = {
    "src/lgcontrol": "../lgcontrol",
    "lgcontrol/models": "../models",
    "lgcontrol/controllers": "../controllers",
}
PACKAGES = {
    "lgcontrol": "lgcontrol",
    "models": "lgcontrol.models",
    "controllers": "lgcontrol.controllers",
}


def repository_files(*folders: str) -> list[str]:
    """Return the files git tracks or would add, relative to the root; skip outside of a clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *folders],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return sorted({name for name in listing.split("\0") if name and (ROOT / name).is_file()})


def python_files(*folders: str) -> list[Path]:
    """Return the Python files of the folders (the packages by default), sorted."""
    return sorted(path for folder in folders or PACKAGES for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path, root: Path = ROOT) -> str:
    """Return the installed name of a package's file: models/arm.py is lgcontrol.models.arm."""
    folder, *rest = path.relative_to(root).with_suffix("").parts
    if rest and rest[-1] == "__init__":
        rest.pop()
    return ".".join([PACKAGES[folder], *rest])
