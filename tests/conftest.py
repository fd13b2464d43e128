"""Fixtures for every test: seeded random numbers, reference data, no windows."""

import gc
import os
import signal
from pathlib import Path

import casadi as ca
import matplotlib
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]

matplotlib.use("Agg")
# A shell that starts the tests in the background has them ignore Ctrl-C, which some tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases `thorough` whose parameters `usually` does not name.

    ``@pytest.mark.usually(kind=("planar", "free"))`` on a test, or on its file for all tests with
    such a parameter, has the cases of these values run by default and the others with
    ``make test-thorough``. What a test says of a parameter replaces what its file says.
    """
    chosen: dict[str, bool] = {}
    for item in items:
        callspec, values = getattr(item, "callspec", None), {}
        for mark in item.iter_markers("usually"):  # the test's own first
            values = mark.kwargs | values
        named = [name for name in values if callspec and name in callspec.params]
        if callspec and named:
            usual = all(callspec.params[name] in values[name] for name in named)
            test = item.nodeid.partition("[")[0]
            chosen[test] = usual or chosen.get(test, False) or _is_part_of(item)
            if not usual:
                item.add_marker("thorough")
    never = [test for test, is_chosen in chosen.items() if not is_chosen]
    if never:
        raise pytest.UsageError(f"no case of {', '.join(never)} is among those run by default")


def pytest_collectstart() -> None:
    """Tests that are found stay: nothing is garbage yet."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep what lives to the end out of the garbage collector, which else goes through it again."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Interpret in tests marked `interpreted`, unless `compiled` is said closer to the test.

    Loops of optimal control always compile, and most tests of them end before a compiler would;
    others compile where it pays. This comes before all fixtures, those of a file too.
    """
    from lgcontrol.codegen import set_compile_policy
    from lgcontrol.codegen._internal import find_compiler

    said = [mark.name for mark in item.iter_markers() if mark.name in ("compiled", "interpreted")]
    if "compiled" in said[:1] and find_compiler() is None:
        pytest.skip("no C compiler on PATH")
    set_compile_policy("off" if "interpreted" in said[:1] else "auto")


def _is_part_of(item: pytest.Item) -> bool:
    """Whether single cases were asked for, so that others of the test were not collected."""
    return any("[" in argument for argument in item.config.args)


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


@pytest.fixture(scope="session")
def robot_file(request):
    """Return the function from a robot's file name to its path.

    That of tests/data/robots where the robot is there, without shapes, else of the shared data.
    """

    def found(name: str) -> Path:
        own = ROOT / "tests" / "data" / "robots" / name
        return own if own.is_file() else request.getfixturevalue("shared") / "robots" / name

    return found


@pytest.fixture(scope="session")
def closed_form_error():
    """Return the function that compares the derivatives of a mechanical system with AD."""
    return _closed_form_error


def _closed_form_error(system, rng, *, samples=3, balance=False) -> float:
    """Largest error of ``Df d + Bf e`` along random directions, next to the largest entry of Df.

    With `balance` that of the derivatives of ``F − M a``, at accelerations that are not those of
    the motion.
    """
    structure, state, m = system.structure, system.state, system.n_inputs
    nv = state.blocks[structure.velocity].dim
    sizes = {"x": state.nq, "u": m, "p": system.n_parameters, "a": nv, "d": state.dim, "e": m}
    x, u, p, a, d, e = symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
    if balance:
        value = structure.force(0.3, x, u, p) - structure.mass_matrix(x, p) @ a
    else:
        value = system.f(0.3, x, u, p)
    slope = ca.jtimes(value, x, state.rate_matrix(x) @ d) + ca.jtimes(value, u, e)
    exact = ca.Function("slope", symbols, [slope])
    worst = 0.0
    for _ in range(samples):
        at = {name: rng.normal(size=size) for name, size in sizes.items()}
        at["x"] = state.random(rng)
        at["p"] = system.nominal_parameters * rng.uniform(0.9, 1.1, system.n_parameters)
        point = [0.3, at["x"], *([at["a"]] if balance else []), at["u"], at["p"]]
        by_x, by_u = (structure.balance_derivatives if balance else system.derivatives)(*point)
        off = by_x @ at["d"] + by_u @ at["e"] - exact(*at.values()).full().ravel()
        scale = max(np.abs(by_x).max(), np.abs(by_u).max(initial=0.0))
        worst = max(worst, float(np.abs(off).max() / scale))
    return worst
