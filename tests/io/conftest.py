"""Files the reader's tests use."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def urdf_data() -> Path:
    """The small files that belong to the tests."""
    return ROOT / "tests" / "data" / "urdf"


@pytest.fixture
def robots() -> Path:
    """Real robot files, which are kept beside the repository."""
    folder = ROOT.parent / "shared" / "robots"
    if not folder.is_dir():
        pytest.skip(f"no robot files in {folder}")
    return folder
