"""Files the reader's tests use."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def urdf_data() -> Path:
    """The small files that belong to the tests."""
    return ROOT / "tests" / "data" / "urdf"


@pytest.fixture
def robots(shared) -> Path:
    """Real robot files, which are kept with the reference data."""
    return shared / "robots"
