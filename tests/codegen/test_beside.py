"""Builds beside the program: results, failures, and that none outlives it."""

import subprocess
import sys
import time

import pytest

from lgcontrol.codegen._internal import Beside

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
