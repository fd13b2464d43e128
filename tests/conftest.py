"""Fixtures for every test: seeded random numbers, reference data, no windows."""

import os
from pathlib import Path

import matplotlib
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]

matplotlib.use("Agg")


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator that starts alike in every test, whatever ran before."""
    return np.random.default_rng(20120531)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of reference data: $LGCONTROL_SHARED, else ../shared; skip without it."""
    folder = Path(os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared")
    if not folder.is_dir():
        pytest.skip(f"no reference data at {folder}; set LGCONTROL_SHARED to its folder")
    return folder
