"""A plugin of pytest that breaks one promise of docs/promises.md, so that its test must fail.

LGCONTROL_MUTATION=NAME pytest -p tests.project._mutated FILE::TEST
"""

import os
from pathlib import Path

import numpy as np


def no_guard():
    """A swallowed Ctrl-C does not come again."""
    from lgcontrol.codegen import _interrupt

    _interrupt._take = lambda: None


def no_pieces():
    """Long calls go into C in one piece."""
    from lgcontrol.codegen import _frame

    _frame._in_steps = lambda chain, steps, operations, given, made: [
        _frame.Piece(steps, given, made)
    ]


def no_locks():
    """Nobody waits for the builds of others."""
    from lgcontrol.codegen import _cache

    _cache._acquire = lambda path, name: None


def no_private_folder():
    """A user without a home gets an error of Python's."""
    from lgcontrol.codegen import _cache

    _cache._expanded = lambda path: Path(path).expanduser()


def no_check_of_members():
    """Archives are unpacked, whatever their members are."""
    from lgcontrol.io import _archive

    _archive._read = lambda path, largest: dict(np.load(path))


def no_limit_of_counts():
    """Counts are taken as they are, but for absurd ones that would never end."""
    from lgcontrol.codegen import _validate

    def unnamed(name, value, most=0, remedy=""):
        if most and value > most:
            raise ValueError("too large")
        return round(value)

    _validate.check_quotient = unnamed


def writable_solutions():
    """Arrays of a solution are the solver's memory, to write to."""
    from lgcontrol.optimal import _solutions

    _solutions.read_only = lambda array: array


CACHE, STOPS = "tests/codegen/test_cache.py::test_", "tests/hostile/test_interrupts.py::test_"
MUTATIONS = {
    f"{STOPS}an_interrupt_that_was_swallowed_comes_again": no_guard,
    f"{STOPS}pieces_of_a_long_call_are_the_whole": no_pieces,
    f"{CACHE}a_build_that_does_not_end_is_waited_for_and_then_done_here": no_locks,
    f"{CACHE}a_user_without_a_home_gets_a_private_folder_and_one_notice": no_private_folder,
    "tests/hostile/test_archives.py::"
    "test_a_bomb_whose_directory_lies_is_refused_before_it_is_unpacked": no_check_of_members,
    "tests/hostile/test_counts.py::test_counts_without_limit_are_refused": no_limit_of_counts,
    "tests/optimal/test_interior_point.py::"
    "test_nobody_writes_to_what_a_solver_goes_on_from": writable_solutions,
}

if "LGCONTROL_MUTATION" in os.environ:
    MUTATIONS[os.environ["LGCONTROL_MUTATION"]]()
