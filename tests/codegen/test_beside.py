"""Builds beside the program: results, failures, and that none outlives it."""

import subprocess
import sys
import threading
import time

import pytest

from lgcontrol.codegen._compiler import _run
from lgcontrol.codegen._internal import Beside, meanwhile

# Compilers that never end.
ENDLESS = """
from pathlib import Path
from lgcontrol.codegen._internal import Beside
from lgcontrol.codegen import _compiler as c
import time

def build():
    files = [Path("a"), Path("c")]
    run = lambda *given: c._run(["sleep", "599.25"], 600.0)
    return c.Compiler._build_objects(None, run, files, Path("b"))

work = Beside("an endless build", build)
time.sleep(0.3)
assert not work.is_done and "compiling for" in repr(work)
"""


def test_what_was_made_is_there_after_the_end():
    work = Beside("a sum", lambda: 1 + 1)
    assert work.wait() is work and work.is_done
    assert work.made == 2 and repr(work) == "a sum: done"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_fails_makes_nothing():
    assert Beside("nothing", lambda: [][0]).wait().made is None


def test_no_build_outlives_the_program():
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", ENDLESS], check=True, timeout=60, capture_output=True)
    assert time.perf_counter() - began < 60
    left = subprocess.run(["pgrep", "-f", "sleep 599.25"], capture_output=True, check=False)
    assert not left.stdout


def sleeps() -> None:
    _run(["sleep", "599.5"], 600.0)


def test_work_of_a_block_goes_on_beside_it_and_ends_with_it():
    asked, answered, found = threading.Event(), threading.Event(), []

    def work():
        asked.set()
        found.append(answered.wait(30))

    with meanwhile(work):
        assert asked.wait(30)
        answered.set()
    assert found == [True]


def test_work_beside_a_block_that_fails_stops_the_rest():
    with pytest.raises(ZeroDivisionError), meanwhile(sleeps, lambda: 1 / 0):
        pass


def test_a_block_that_fails_stops_the_work_beside_it_and_lets_it_clean_up():
    ended = threading.Event()

    def work():
        try:
            sleeps()
        finally:
            time.sleep(0.1)
            ended.set()

    with pytest.raises(IndexError), meanwhile(work):
        [][0]
    assert ended.is_set()
