"""A cache of compiled functions for these tests alone, and a compiler or a skip."""

import logging
from contextlib import suppress

import pytest

from lgcontrol.codegen import _kernel, _notice, set_compile_policy
from lgcontrol.codegen._compiler import BuildError, find_compiler
from lgcontrol.codegen._frame import find_binder


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory):
    """One folder for the session, so that a function is compiled once."""
    folder = tmp_path_factory.mktemp("cache")
    folder.chmod(0o700)
    return folder


@pytest.fixture(autouse=True)
def own_cache(session_cache, monkeypatch):
    """Tests never see the user's cache; functions are compiled where users' are."""
    monkeypatch.setenv("LGCONTROL_CACHE", str(session_cache))
    set_compile_policy("auto")
    with suppress(BuildError):
        find_binder()  # built once a process: here, so that no test finds it among its own


@pytest.fixture
def compiler():
    """The compiler; tests that need one are skipped without."""
    try:
        found = find_compiler()
    except BuildError as error:
        pytest.skip(str(error))
    if found is None:
        pytest.skip("no C compiler on PATH")
    return found


@pytest.fixture
def has_vectors(compiler):
    """Says whether a function runs vector code, as far as this machine has vectors at all.

    A wrong vector kernel is refused and the scalar one does its work: values alone do not tell.
    """
    return lambda function: compiler.width == 1 or function._backend.vector is not None


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty cache and a process that has loaded and said nothing yet; returns the folder."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LGCONTROL_CACHE", str(folder))
    monkeypatch.setattr(_kernel, "_loaded", {})
    monkeypatch.setattr(_kernel, "_failed", set())
    monkeypatch.setattr(_notice, "_said", set())
    return folder


@pytest.fixture
def notices(caplog):
    """Texts of the notices so far, as a callable."""
    caplog.set_level(logging.WARNING, logger="lgcontrol.codegen")
    return lambda: [record.getMessage() for record in caplog.records]
