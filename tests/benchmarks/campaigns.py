"""Campaigns of five designs, what kills leave of a campaign, and the same bits on a cluster.

    python -m tests.benchmarks.campaigns [designs] [held] [kills] [scheduler] [cluster] [rate]
        [parts] [--cases N] [--design NAME] [--workers N] [--kills N]

``designs`` stores what five designs stand and why they fail, with a picture; ``held`` judges those
that were changed, on cases that taught nothing; ``kills`` sends SIGKILL to workers and campaigns
at random times and counts what is there in the end; ``scheduler`` does so with the scheduler, the
workers and the campaign of a cluster of dask.distributed; ``cluster`` compares the bits of
processes with those of a scheduler and workers of dask.distributed; ``rate`` measures closed loops
with MPC a second and the processor time of each, a tenth of them with one worker and all with two,
and the parent's memory; ``parts`` says where a case of the recovery spends its time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from distributed import Client

from lgcontrol.campaigns import Campaign, _case
from lgcontrol.campaigns._case import run_cases
from lgcontrol.campaigns._design import machine
from lgcontrol.optimal.kernel._memory import KernelMemory
from lgcontrol.simulation import _compiled_loop

FOLDER = Path(__file__).parent / "results"
RESULTS = FOLDER / "campaigns.json"
SMALL = Path(__file__).parents[1] / "campaigns" / "_designs.py"
# Cases of each design: those of arms take seconds each.
DESIGNS = {
    "quadrotor-recovery": 128, "vessel-docking": 64, "quadrotor-gnss": 64, "elastic-panda": 64,
    "panda-reach": 64,
}  # fmt: skip
CHANGED = ("vessel-docking", "panda-reach")
HELD_SEED = 3000  # of the first case: beyond those that taught the changes
KILL_CASES = 3000
CHILD = """
import sys
from lgcontrol.campaigns import Campaign
if __name__ == "__main__":
    executor = int(sys.argv[4]) if sys.argv[4].isdigit() else sys.argv[4]
    Campaign(sys.argv[1], cases=int(sys.argv[3])).run(executor=executor, store=sys.argv[2])
"""


def designs(store: dict[str, Any], options: Any) -> None:
    """What five designs stand."""
    cases = options.cases
    for name in options.design or DESIGNS:
        count = DESIGNS[name]
        campaign = Campaign(name, cases=cases or count)
        started = time.perf_counter()
        result = campaign.run(executor=options.workers)
        success = result.success()
        margin, beyond = result.margin()
        store["designs"][name] = {
            "variations": [str(one) for one in campaign.variations or ()],
            "cases": len(result),
            "success": success.passed,
            "interval": [round(success.low, 4), round(success.high, 4)],
            "failures": result.failures(),
            "margin": round(margin, 3),
            "beyond": None if beyond is None else beyond.number,
            "sensitivity": {
                criterion: {k: round(v[0], 2) for k, v in row.items() if v[0] == v[0]}
                for criterion, row in result.sensitivity().items()
            },
            "consistency": {
                k: [round(v, 3) for v in row] for k, row in result.consistency().items()
            },
            "seconds": round(time.perf_counter() - started, 1),
        }
        result.plot().savefig(FOLDER / f"campaign_{name}.png", dpi=60)
        print(name, json.dumps(store["designs"][name], ensure_ascii=False), flush=True)
        keep(store)


def held(store: dict[str, Any], options: Any) -> None:
    """What changed designs stand on cases that were held out."""
    found = store.setdefault("held out", {})
    for name in options.design or CHANGED:
        campaign = Campaign(name, cases=options.cases or DESIGNS[name], seed=HELD_SEED)
        result = campaign.run(executor=options.workers)
        success = result.success()
        found[name] = {
            "first seed": HELD_SEED,
            "cases": len(result),
            "success": success.passed,
            "interval": [round(success.low, 4), round(success.high, 4)],
            "failures": result.failures(),
        }
        print(name, json.dumps(found[name], ensure_ascii=False), flush=True)
        keep(store)


def kills(store: dict[str, Any], options: Any) -> None:
    """Kill workers and campaigns at random times; no case may be lost or there twice."""
    chance, count = random.Random(0), options.cases or KILL_CASES
    design = f"{SMALL}:design"
    killed = {"worker": 0, "campaign": 0}
    with tempfile.TemporaryDirectory() as folder:
        child, file = Path(folder, "child.py"), Path(folder, "a.db")
        child.write_text(CHILD)
        words = [sys.executable, str(child), design, str(file), str(count), "2"]
        started = time.perf_counter()
        while True:
            process = psutil.Popen(words)
            while sum(killed.values()) < options.kills and process.poll() is None:
                workers = workers_of(process)
                if not workers:
                    time.sleep(0.1)
                    continue
                target = written(file) + chance.randint(0, 60)
                while process.poll() is None and written(file) < target:
                    time.sleep(chance.uniform(0.0, 0.1))
                try:
                    if chance.random() < 0.7:
                        os.kill(chance.choice(workers), signal.SIGKILL)
                        killed["worker"] += 1
                    else:
                        os.kill(process.pid, signal.SIGKILL)
                        killed["campaign"] += 1
                except ProcessLookupError:  # it ended by itself
                    continue
            if process.wait() == 0:
                break
        taken = time.perf_counter() - started
        store["kills"] = told(file, design, count, killed, taken)
    print(store["kills"], flush=True)
    keep(store)


def told(
    file: Path, design: str, count: int, killed: dict[str, int], taken: float
) -> dict[str, float]:
    """What a store has after kills, next to an undisturbed campaign."""
    rows = sqlite3.connect(file).execute("select key, status, outputs from outcome").fetchall()
    undisturbed = Campaign(design, cases=count).run(executor=2)
    right = {one.key: one.values for one in undisturbed.cases}
    return {
        "cases": count,
        **{f"{name} kills": times for name, times in killed.items()},
        "in the store": len(rows),
        "distinct": len({key for key, *_ in rows}),
        "set aside": sum(status == "killed" for _, status, _ in rows),
        "with other bits": sum(json.loads(out) != right[key] for key, _, out in rows),
        "seconds": round(taken, 1),
    }


def scheduler(store: dict[str, Any], options: Any) -> None:
    """Kill the scheduler, its workers or the campaign; who is gone begins anew."""
    chance, count = random.Random(1), options.cases or 1000
    design, killed = f"{SMALL}:design", {"scheduler": 0, "worker": 0, "campaign": 0}
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        child, file = Path(folder, "child.py"), Path(folder, "a.db")
        child.write_text(CHILD)
        while True:
            with dask_here(folder) as (address, programs):
                words = [sys.executable, str(child), design, str(file), str(count), address]
                process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
                while process.poll() is None and sum(killed.values()) < options.kills:
                    target = written(file) + chance.randint(1, max(count // 40, 1))
                    while process.poll() is None and written(file) < target:
                        time.sleep(chance.uniform(0.0, 0.1))
                    if process.poll() is not None:
                        break
                    name = chance.choice(list(killed))
                    killed[name] += 1
                    if name == "worker":
                        programs.pop().kill()
                        programs.append(dask("worker", folder, address, "--nthreads", "1"))
                        continue
                    (programs[0] if name == "scheduler" else process).kill()
                    break
                if process.wait() == 0:
                    break
        store["kills of a cluster"] = told(
            file, design, count, killed, time.perf_counter() - started
        )
    print(store["kills of a cluster"], flush=True)
    keep(store)


def dask(kind: str, folder: str, *words: str) -> subprocess.Popen[bytes]:
    """A program of dask.distributed."""
    own = ["--no-dashboard", *["--no-nanny"] * (kind == "worker")]
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, *own]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)


@contextmanager
def dask_here(folder: str, port: int = 18786) -> Iterator[tuple[str, list[Any]]]:
    """Scheduler and two workers as processes of their own."""
    address, programs = f"tcp://127.0.0.1:{port}", []
    try:
        programs.append(dask("scheduler", folder, "--host", "127.0.0.1", "--port", str(port)))
        programs += [dask("worker", folder, address, "--nthreads", "1") for _ in range(2)]
        with Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, programs
    finally:
        for one in reversed(programs):
            one.kill()
            one.wait()


def cluster(store: dict[str, Any], options: Any) -> None:
    """Scheduler and two workers as processes of their own, next to processes of this machine."""
    count = options.cases or 64
    with tempfile.TemporaryDirectory() as folder, dask_here(folder) as (address, _):
        campaign = Campaign("quadrotor-recovery", cases=count)
        there = campaign.run(executor=address)
        here = campaign.run(executor=2)
    same = [a.values == b.values for a, b in zip(there.cases, here.cases, strict=True)]
    store["cluster"] = {"cases": count, "same bits": sum(same)}
    print(store["cluster"], flush=True)
    keep(store)


def rate(store: dict[str, Any], options: Any) -> None:
    """Closed loops a second, stored as they come, and the processor time that they take."""
    cases, found = options.cases or 10_000, {}
    load, spent = os.getloadavg()[0], {}
    for workers, count in ((1, max(cases // 10, 1)), (2, cases)):
        campaign = Campaign("quadrotor-recovery", cases=count)
        campaign.replaced(cases=2).run(executor=workers)  # compiled before it counts
        with tempfile.TemporaryDirectory() as folder:
            started, before, file = time.perf_counter(), processor(), Path(folder, "a.db")
            success = campaign.run(executor=workers, store=file).success().passed
            size = file.stat().st_size
            found[str(workers)] = round(count / (time.perf_counter() - started), 1)
            spent[str(workers)] = {
                name: round(1e3 * (after - before[name]) / count, 2)
                for name, after in processor().items()
            }
    store["rate"] = {
        "cases": cases,
        "success": success,
        "store, MB": round(size / 1e6, 1),
        "loops a second by workers": found,
        "processor time of a case by workers, ms": spent,
        "parent's memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "load before and after": [load, os.getloadavg()[0]],
    }
    print(store["rate"], flush=True)
    keep(store)


def parts_of_a_case(store: dict[str, Any], options: Any) -> None:
    """Processor time of the parts of a case, ms: medians over cases of the least of six rounds.

    The cases are those of a chunk. Runs that go on in turns share what the run needs of Python.
    """
    campaign = Campaign("quadrotor-recovery", cases=options.cases or 40)
    setting = replace(campaign._setting("none", None), cases=10_000)
    cases = campaign.all_cases()
    run_cases(setting, cases[:1])  # compiles
    names = "set-up", "first plan", "loop in C", "Python of the run", "result and criteria"
    spent = np.full((6, len(cases), len(names)), np.inf)
    driver, solve = _compiled_loop.find_driver(build=True), KernelMemory.run
    assert driver is not None
    plan, loop, step = [0.0], [0.0], [0.0]
    _compiled_loop.find_driver = lambda build: driver._replace(go=timed(driver.go, loop))
    KernelMemory.run = timed(solve, plan)
    for one in spent:
        runs = [_case.CaseRun(setting, case, k % _case.TOGETHER) for k, case in enumerate(cases)]
        for place, do in ((0, _case.CaseRun.set_up), (4, _case.CaseRun.judge)):
            if place:
                for first in range(0, len(runs), _case.TOGETHER):
                    group = runs[first : first + _case.TOGETHER]
                    plan[0], loop[0], step[0] = 0.0, 0.0, 0.0
                    timed(_case.carry_out, step)(group)
                    shared = plan[0], loop[0], step[0] - plan[0] - loop[0]
                    one[first : first + len(group), 1:4] = np.divide(shared, len(group))
            for k, run in enumerate(runs):
                step[0] = 0.0
                timed(run.do, step)(do)
                one[k, place] = step[0]
    _compiled_loop.find_driver, KernelMemory.run = lambda build: driver, solve
    least = 1e3 * np.median(spent.min(axis=0), axis=0)
    least = np.append(least, 1e3 * np.median(spent.min(axis=0).sum(axis=1)))
    names = (*names, "whole case")
    store["parts of a case, ms"] = dict(zip(names, np.round(least, 2).tolist(), strict=True))
    print(store["parts of a case, ms"], flush=True)
    keep(store)


def timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    """The function, which adds the processor time of its thread to a number."""

    def call(*given: Any, **options: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*given, **options)
        finally:
            spent[0] += time.thread_time() - began

    return call


def processor() -> dict[str, float]:
    """Processor time of this process and of those that it has waited for, s."""
    kinds = {"parent": resource.RUSAGE_SELF, "workers": resource.RUSAGE_CHILDREN}
    used = {name: resource.getrusage(kind) for name, kind in kinds.items()}
    return {name: one.ru_utime + one.ru_stime for name, one in used.items()}


def workers_of(process: Any) -> list[int]:
    """Processes that run cases of a campaign; those that are ending have no command any more."""
    found = []
    for one in process.children(recursive=True):
        with suppress(psutil.Error):
            if "spawn_main" in " ".join(one.cmdline()):
                found.append(one.pid)
    return found


def written(file: Path) -> int:
    """Outcomes that a store has."""
    if not file.exists():
        return 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as reader:
        try:
            return reader.execute("select count(*) from outcome").fetchone()[0]
        except sqlite3.OperationalError:  # it is being made
            return 0


def keep(store: dict[str, Any]) -> None:
    """Write what was found so far."""
    store["machine"] = machine()
    RESULTS.write_text(json.dumps(store, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Run the parts that are named, all if none is."""
    parts = {
        "designs": designs, "held": held, "kills": kills, "scheduler": scheduler,
        "cluster": cluster, "rate": rate, "parts": parts_of_a_case,
    }  # fmt: skip
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", help=", ".join(parts))
    parser.add_argument("--cases", type=int)
    parser.add_argument("--design", action="append", choices=list(DESIGNS))
    parser.add_argument("--workers", type=int, default=2, help="of the part designs")
    parser.add_argument("--kills", type=int, default=50, help="number of kills")
    options = parser.parse_args()
    store = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    store.setdefault("designs", {})
    for name in options.parts or parts:
        parts[name](store, options)


if __name__ == "__main__":
    main()
