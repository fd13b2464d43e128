"""The kernel that a wheel brings: which level fits a processor, and what a damaged one does."""

import pytest

from lgcontrol.optimal.kernel import _library, _prebuilt
from lgcontrol.optimal.kernel._prebuilt import LEVELS, file_of, level_of

# What /proc/cpuinfo lists of three processors, without what no level needs.
NEHALEM = "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"
HASWELL = f"{NEHALEM} abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
SKYLAKE_SERVER = f"{HASWELL} avx512bw avx512cd avx512dq avx512f avx512vl"


@pytest.mark.parametrize(
    ("features", "name"),
    [
        ("fpu sse2", None),
        (NEHALEM, "x86-64-v2"),
        (HASWELL, "x86-64-v3"),
        (HASWELL.replace("fma ", ""), "x86-64-v2"),
        (SKYLAKE_SERVER, "x86-64-v4"),
        (SKYLAKE_SERVER.replace("movbe ", ""), "x86-64-v2"),  # a hypervisor may hide single ones
    ],
)
def test_the_highest_level_that_a_processor_has_whole(features, name):
    level = level_of(frozenset(features.split()))
    assert (level and level.name) == name


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A place for kernels, and one that nobody asked before."""
    monkeypatch.setattr(_prebuilt, "FOLDER", tmp_path)
    _library.prebuilt_kernel.cache_clear()
    yield tmp_path
    _library.prebuilt_kernel.cache_clear()


@pytest.fixture
def level(monkeypatch):
    monkeypatch.setattr(_library, "level_of_this_processor", lambda: LEVELS[0])
    return LEVELS[0]


def test_a_kernel_of_another_text_is_not_looked_at(folder, level):
    sources = _library.kernel_sources(level.width)
    file_of(level, [*sources, "more"]).write_bytes(b"not a library")
    assert _library.prebuilt_kernel() is None


def test_a_damaged_kernel_is_told_and_left(folder, level, caplog):
    file_of(level, _library.kernel_sources(level.width)).write_bytes(b"not a library")
    assert _library.prebuilt_kernel() is None
    assert "is damaged" in caplog.text
