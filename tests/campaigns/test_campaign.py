"""Campaigns: the same bits everywhere, nothing lost, nothing twice."""

import base64
import dataclasses
import importlib
import json
import math
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import webbrowser
from concurrent.futures import BrokenExecutor, Future
from functools import partial

import numpy as np
import pytest

from lgcontrol.campaigns import Campaign, CampaignError, _pool
from lgcontrol.campaigns._case import CaseOutcome, CaseStatus, _DesignArguments, run_cases
from lgcontrol.campaigns._key import key_of
from lgcontrol.campaigns._pool import ChunkSize, LocalPool, drive
from lgcontrol.campaigns._store import Store
from lgcontrol.cli import main
from lgcontrol.controllers.designs import quadrotor_recovery
from lgcontrol.scene import view
from lgcontrol.simulation import Criterion, SimulationResult, Vary, simulate

from . import _designs as designs


class Here:
    """Executor of this process, which counts cases."""

    workers = 1

    def __init__(self) -> None:
        self.calls = 0

    def submit(self, function, /, setting, cases):
        self.calls += len(cases)
        future = Future()
        future.set_result(function(setting, cases))
        return future


class Shown:
    """Prints what NumPy makes of an array."""

    def __init__(self, values) -> None:
        self.values = values

    def __repr__(self) -> str:
        return f"Shown({self.values!r})"


class Ending(Here):
    """Executor that ends after some cases."""

    def submit(self, function, /, *arguments):
        if self.calls < 3:
            return super().submit(function, *arguments)
        future = Future()
        future.set_exception(BrokenExecutor())
        return future


@pytest.fixture(scope="module")
def pool():
    """Two processes for all tests: each takes a second to start."""
    made = LocalPool(2)
    yield made
    made.stop()


def bits(result):
    return [(one.key, one.status, one.values) for one in result.cases]


@pytest.fixture(scope="module")
def result():
    return Campaign(designs.design, cases=32).run(executor=Here())


def test_processes_give_the_same_bits_as_one(pool, result):
    found = Campaign(designs.design, cases=32).run(executor=pool)
    assert bits(found) == bits(result)
    assert [one.number for one in found.cases] == list(range(32))


def test_a_replayed_case_is_the_case(result):
    campaign, case = result.campaign, result.worst()[0]
    run = campaign.replay(case.key[:10])
    assert isinstance(run, SimulationResult)
    values = {one.name: one.value(run) for one in campaign.all_criteria()}
    assert values == case.values
    with pytest.raises(ValueError, match="0 cases of this campaign have keys that begin with 'x'"):
        campaign.replay("x")


def test_a_replayed_case_says_why_it_fails(result):
    case = next(one for one in result.cases if not one.is_success)
    run = result.campaign.replay(case.key)
    value = case.values["place at the end"]
    assert run.is_success
    assert run.message == f"the case fails: place at the end: {value:.4g} m (at most 0.25 m)"
    good = next(one for one in result.cases if one.is_success)
    assert not result.campaign.replay(good.number).message
    for number in (-1, 32):
        with pytest.raises(ValueError, match=f"no case {number}: give one from 0 to 31"):
            result.campaign.replay(number)


def test_a_replayed_case_can_be_viewed_over_another_run(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    campaign = Campaign(designs.flying, cases=2)
    page = view(designs.flying().run(), campaign.replay(campaign.keys()[1]))
    assert page is not None and opened == [page.as_uri()]
    (data,) = re.findall(r'<script[^>]*id="scene"[^>]*>(.*?)</script>', page.read_text(), re.DOTALL)
    assert len(json.loads(data)) == 2


def test_a_campaign_goes_on_from_its_store(tmp_path, result):
    store, first, second = tmp_path / "a.db", Here(), Here()
    Campaign(designs.design, cases=12).run(executor=first, store=store)
    whole = Campaign(designs.design, cases=32)
    found = whole.run(executor=second, store=store)
    assert (first.calls, second.calls) == (12, 20)
    assert bits(found) == bits(result)
    assert bits(whole.open(store)) == bits(result)
    with pytest.raises(ValueError, match="there is no store"):
        whole.open(tmp_path / "b.db")


def test_keys_change_with_all_that_decides_the_bits():
    base = Campaign(designs.design, [Vary("load", 1, 2)], cases=1)
    others = [
        base.replaced(seed=1), base.replaced(seconds=1.0), base.replaced(arguments={"gain": 3.0}),
        base.replaced(variations=[Vary("load", 1, 2, relative=True)]),
        base.replaced(criteria=designs.CRITERIA[:1]),
        base.replaced(criteria=[dataclasses.replace(designs.CRITERIA[0], limit=9.0)]),
        base.replaced(design=designs.plain, variations=()),
    ]  # fmt: skip
    keys = [one.keys()[0] for one in (base, *others)]
    assert len(set(keys)) == len(keys)
    assert base.keys() == Campaign(designs.design, [Vary("load", 1, 2)], cases=1).keys()


def test_arrays_and_partial_functions_have_keys_of_all_their_bits():
    """NumPy shows 8 digits, and shortens what is long."""
    long = np.zeros(2000)
    different = [
        np.array([1.0]), np.array([1.0 + 1e-12]), np.array([[1.0]]), np.array([1]), long,
        np.where(np.arange(2000) == 1000, 1e-3, long), partial(designs.plain, seed=1),
        partial(designs.plain, seed=2), partial(designs.design, seed=1), designs.PD.__call__,
        designs.PD(1.0), designs.PD(2.0), designs.PD(1.0).__call__, b"1", {"a", "b"}, {"a"},
        Shown(long), Shown(np.where(np.arange(2000) == 1000, 1e-3, long)), np.sin, np.cos, math.sin,
    ]  # fmt: skip
    keys = [key_of({"a": one}) for one in different]
    assert len(set(keys)) == len(keys)
    assert key_of({"a": np.array([1.0])}) == keys[0]
    assert key_of({"a": partial(designs.plain, seed=1)}) == keys[6]
    first, second = (_DesignArguments({"a": one}) for one in different[:2])
    assert first != second and first == _DesignArguments({"a": np.array([1.0])})


@pytest.mark.parametrize(
    ("thing", "name"), [(threading.Lock(), "lock"), (lambda: 0, "<lambda>"),
                        (np.array([None]), "numpy.ndarray")],
)  # fmt: skip
def test_arguments_that_cannot_be_told_from_others_are_refused(thing, name):
    with pytest.raises(TypeError, match=f"cannot tell .*{name} from others in every process"):
        Campaign(designs.design, (), arguments={"gain": thing})


def test_values_of_numpy_vary_as_numbers_and_others_are_refused():
    gains = Vary("gain", values=tuple(np.arange(1, 3)))
    assert [type(one) for one in gains.values] == [int, int]
    found = Campaign(designs.design, [gains], cases=2, sampling="grid").run(executor=Here())
    assert found.inputs("gain").tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"Vary\('gain'\) takes values .* got ndarray"):
        Vary("gain", values=(np.ones(2),))


def test_a_changed_file_is_another_design(tmp_path):
    file = tmp_path / "my_design.py"
    shutil.copy(designs.__file__, file)
    keys = Campaign(f"{file}:design", cases=2).keys()
    assert keys == Campaign(f"{file}:design", cases=2).keys()
    file.write_text(file.read_text().replace("2.0 * x[1:]", "2.1 * x[1:]"))
    assert keys != Campaign(f"{file}:design", cases=2).keys()


def test_a_changed_import_or_measure_is_another_campaign(tmp_path, monkeypatch):
    file, gains, measures = (tmp_path / name for name in ("d.py", "my_gains.py", "my_measures.py"))
    shutil.copy(designs.__file__, file)
    file.write_text(file.read_text() + "\nfrom my_gains import GAIN\n")
    gains.write_text("GAIN = 1.0\n")
    measures.write_text("def end(run):\n    return 1.0\n")
    (tmp_path / "unrelated.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    end = Criterion("end", importlib.import_module("my_measures").end)
    campaign = Campaign(f"{file}:design", criteria=[end], cases=1)
    keys = [campaign.keys()]
    (tmp_path / "unrelated.py").write_text("x = 1\n")
    assert campaign.keys() == keys[0]
    for changed in (gains, measures):
        changed.write_text(changed.read_text().replace("1.0", "2.0"))
        keys.append(campaign.keys())
        assert keys[-1] not in keys[:-1]


def test_code_that_changes_meanwhile_ends_the_campaign(tmp_path):
    """A process that starts later would store other bits under the old keys."""
    file = tmp_path / "my_design.py"
    shutil.copy(designs.__file__, file)
    campaign = Campaign(f"{file}:design", cases=4)

    class Editing(Here):
        def submit(self, function, /, setting, cases):
            if self.calls == 1:
                setting = dataclasses.replace(setting, code="of before")
            return super().submit(function, setting, cases)

    class Raising(Editing):
        def submit(self, function, /, *arguments):
            try:
                return super().submit(function, *arguments)
            except CampaignError as error:
                future = Future()
                future.set_exception(error)
                return future

    with pytest.raises(CampaignError, match="the code changed while the campaign ran"):
        campaign.run(executor=Raising(), store=tmp_path / "a.db")
    assert len(campaign.open(tmp_path / "a.db")) == 1


def test_a_killed_worker_loses_no_case(pool, tmp_path, result):
    """Its case and those beside it run again, alone, and no outcome is there twice."""
    bomb, store = tmp_path / "bomb", tmp_path / "a.db"
    bomb.touch()
    campaign = Campaign(designs.deadly, (), cases=8, arguments={"once": str(bomb)})
    found = campaign.run(executor=pool, store=store)
    assert not bomb.exists()
    assert [one.status for one in found.cases] == ["completed"] * 8
    assert [one.values for one in found.cases] == [
        one.values for one in Campaign(designs.design, (), cases=8).run(executor=Here()).cases
    ]
    (count,) = sqlite3.connect(store).execute("select count(*) from outcome").fetchone()
    assert count == 8


@pytest.mark.thorough
def test_only_the_case_that_kills_its_process_alone_is_set_aside(pool):
    found = Campaign(
        designs.deadly, [Vary("poison", values=(False, True, False, False))], cases=4,
        sampling="grid",
    ).run(executor=pool)  # fmt: skip
    assert [one.status for one in found.cases] == ["completed", "killed", "completed", "completed"]
    assert found.failures() == {"its process died 3 times when it ran alone": 1}


def test_a_case_that_raises_is_an_outcome_and_may_be_tried_again(tmp_path):
    campaign = Campaign(designs.raising, [Vary("fails", values=(False, True))], cases=2,
                        sampling="grid")  # fmt: skip
    found = campaign.run(executor=Here(), store=tmp_path / "a.db")
    assert [one.status for one in found.cases] == ["completed", "error"]
    assert found.cases[1].message == "RuntimeError: no such <cart>"
    again = Here()
    campaign.run(executor=again, store=tmp_path / "a.db")
    assert again.calls == 0
    campaign.run(executor=again, store=tmp_path / "a.db", retry=True)
    assert again.calls == 1


def test_a_lost_executor_leaves_what_was_done(tmp_path, result):
    campaign = Campaign(designs.design, cases=32)
    with pytest.raises(CampaignError, match="the executor ended or lost its scheduler"):
        campaign.run(executor=Ending(), store=tmp_path / "a.db")
    assert len(campaign.open(tmp_path / "a.db")) == 3
    assert bits(campaign.run(executor=Here(), store=tmp_path / "a.db")) == bits(result)


def test_ctrl_c_keeps_what_there_is(tmp_path, result):
    lines = []

    def interrupt(line):
        lines.append(line)
        if len(lines) == 1:
            raise KeyboardInterrupt

    campaign = Campaign(designs.design, cases=32)
    with pytest.raises(KeyboardInterrupt, match=r"stopped with 1 of 32 cases in .*a.db: the same"):
        campaign.run(executor=Here(), store=tmp_path / "a.db", progress=interrupt)
    assert len(campaign.open(tmp_path / "a.db")) == 1
    found = campaign.run(executor=Here(), store=tmp_path / "a.db", progress=lines.append)
    assert bits(found) == bits(result)
    assert re.fullmatch(r"32 of 32 cases, 1 from the store, .*/s, 0 s left; \d+ failed: .*",
                        lines[-1])  # fmt: skip
    campaign.run(executor=Here(), store=tmp_path / "a.db", progress=lines.append)
    assert re.fullmatch(r"32 of 32 cases, 32 from the store; \d+ failed: .*", lines[-1])


def test_ctrl_c_before_the_first_case_has_ended_says_that_nothing_is_stored(tmp_path):
    class Stopping(Here):
        def submit(self, function, /, *arguments):
            raise KeyboardInterrupt

    for store, words in (
        (tmp_path / "a.db", "before the first of 2 cases had ended: .*a.db has none of them"),
        (None, "stopped after 0 of 2 cases, which are lost: store=FILE keeps them"),
    ):
        with pytest.raises(KeyboardInterrupt, match=words):
            Campaign(designs.design, cases=2).run(executor=Stopping(), store=store)


def test_workers_never_see_a_ctrl_c_also_while_they_begin(pool):
    """Their imports ended with a traceback of their own."""
    blocked = pool.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ()).result()
    assert signal.SIGINT in blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


SCRIPT = """
import sys
from lgcontrol.campaigns import Campaign
Campaign(sys.argv[1], cases=32).run(executor=2, store=sys.argv[2], progress=print)
"""


@pytest.mark.thorough
def test_a_killed_campaign_leaves_no_process_and_goes_on(tmp_path, result):
    store = tmp_path / "a.db"
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    design = f"{designs.__file__}:design"
    words = [sys.executable, str(script), design, str(store)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.stdout.read()  # ends when all that have the pipe have: the workers, too
    found = Campaign(design, cases=32).run(executor=Here(), store=store)
    assert [one.values for one in found.cases] == [one.values for one in result.cases]


def test_the_store_of_another_program_or_version_is_refused(tmp_path):
    campaign = Campaign(designs.design, cases=1)
    other, newer, damaged = tmp_path / "other.db", tmp_path / "newer.db", tmp_path / "damaged.db"
    sqlite3.connect(other).execute("create table a (b)")
    with pytest.raises(CampaignError, match="other.db holds other data than campaigns: give"):
        campaign.run(executor=Here(), store=other)
    campaign.run(executor=Here(), store=newer)
    sqlite3.connect(newer).execute("pragma user_version = 7")
    with pytest.raises(CampaignError, match="has version 7, this release reads 1: use the"):
        campaign.run(executor=Here(), store=newer)
    damaged.write_bytes(b"no database at all" * 100)
    with pytest.raises(CampaignError, match="is no SQLite file, or a damaged one"):
        campaign.run(executor=Here(), store=damaged)
    with pytest.raises(CampaignError, match="cannot be opened: give a file in a folder"):
        campaign.run(executor=Here(), store=tmp_path / "nowhere" / "a.db")


def test_a_store_that_cannot_be_written_to_says_so_and_is_read(tmp_path, result, monkeypatch):
    """Rights do not stop everybody, so SQLite is told to open the file for reading alone."""
    campaign, store = Campaign(designs.design, cases=32), tmp_path / "a.db"
    campaign.replaced(cases=4).run(executor=Here(), store=store)
    before = sqlite3.connect

    def connect(path, **options):
        return before(f"{path}?mode=ro", **options)

    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(CampaignError, match="cannot be (written to|opened)"):
        campaign.run(executor=Here(), store=store)
    assert bits(campaign.open(store)) == bits(result)[:4]


def test_a_store_of_which_tables_are_missing_is_explained(tmp_path):
    campaign, store = Campaign(designs.design, cases=1), tmp_path / "a.db"
    campaign.run(executor=Here(), store=store)
    sqlite3.connect(store).execute("drop table machine")
    with pytest.raises(CampaignError, match=r"the store .*a\.db: no such table: machine"):
        Store(store).machines(campaign.keys())
    sqlite3.connect(store).execute("drop table outcome")
    with pytest.raises(CampaignError, match=r"the store .*a\.db: no such table: outcome"):
        Store(store).row("a")


def test_a_store_has_one_campaign_at_a_time(tmp_path):
    campaign = Campaign(designs.design, cases=2)
    with Store(tmp_path / "a.db").writing():
        with pytest.raises(CampaignError, match="is in use by another campaign: wait for it"):
            campaign.run(executor=Here(), store=tmp_path / "a.db")
    assert len(campaign.run(executor=Here(), store=tmp_path / "a.db")) == 2


def test_a_full_disk_keeps_what_was_written(tmp_path, monkeypatch, result):
    """SQLite's own limit of a file says what a full disk says."""
    campaign, store = Campaign(designs.design, cases=32), tmp_path / "a.db"
    before = Store.writing

    def full(self):
        self._db.execute("pragma max_page_count = 8")
        return before(self)

    monkeypatch.setattr(Store, "writing", full)
    with pytest.raises(CampaignError, match="a.db is on a full disk: make room"):
        campaign.run(executor=Here(), store=store)
    monkeypatch.undo()
    assert 0 < len(campaign.open(store)) < 32
    assert bits(campaign.run(executor=Here(), store=store)) == bits(result)


def test_trajectories_stand_beside_the_store(tmp_path):
    campaign, store = Campaign(designs.design, cases=6), tmp_path / "a.db"
    with pytest.raises(ValueError, match="trajectories are files beside a store: give store="):
        campaign.run(executor=Here(), trajectories="all")
    found = campaign.run(executor=Here(), store=store, trajectories="failed")
    kept = [found.trajectory(one.key) for one in found.cases]
    assert [path is None for path in kept] == found.is_success.tolist()
    (first, *_) = [one for one in found.cases if not one.is_success]
    run = SimulationResult.load(found.trajectory(first.key))
    assert np.array_equal(run.x, campaign.replay(first.key).x)


def test_designs_without_a_draw_are_made_for_each_seed():
    found = Campaign(designs.plain, cases=3, seed=4).run(executor=Here())
    for one in found.cases:
        run = designs.plain(one.seed).run(seed=one.seed)
        assert one.values["effort"] == designs.effort(run)


@pytest.mark.parametrize(("design", "words"), [
    (lambda seed=0: None, "must be a function of a module or file"),
    ("quadrotor", "unknown design 'quadrotor'"),
    ("nowhere.py:design", "there is no file nowhere.py"),
    ("lgcontrol.groups:warp_drive", "warp_drive"),
])  # fmt: skip
def test_designs_that_no_process_could_load_are_refused(design, words):
    with pytest.raises((ValueError, AttributeError), match=words):
        Campaign(design)


@pytest.mark.parametrize(("options", "words"), [
    ({"cases": 0}, "a campaign needs cases ≥ 1"),
    ({"sampling": "dice"}, "unknown sampling 'dice'; valid names are sobol"),
    ({"criteria": [Criterion("x", lambda run: 0.0)]}, "a function or an object of a module"),
    ({"variations": [Vary("seed", 0, 1)]}, r'Vary\("seed"\) takes values='),
    ({"sampling": "grid", "cases": 3}, "has at least 4 cases, got 3"),
])  # fmt: skip
def test_campaigns_that_make_no_sense_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Campaign(designs.design, **options)


@pytest.mark.parametrize(("options", "words"), [
    ({"variations": [Vary("weight", 0, 1)]}, "unknown variation 'weight'"),
    ({"arguments": {"gains": 1.0}}, "unknown argument of .*design 'gains'"),
    ({"design": designs.empty, "variations": ()}, "has no criteria: give Campaign"),
])  # fmt: skip
def test_what_a_design_does_not_have_is_refused_before_anything_runs(options, words):
    here = Here()
    with pytest.raises(ValueError, match=words):
        Campaign(**{"design": designs.design, **options}).run(executor=here)
    assert here.calls == 0


def test_executors_are_looked_at():
    campaign = Campaign(designs.design, cases=1)
    with pytest.raises(ValueError, match="needs one process at least, got executor=0"):
        campaign.run(executor=0)
    with pytest.raises(TypeError, match="an object with submit"):
        campaign.run(executor=object())  # type: ignore[arg-type]


def test_numbers_of_chunks_in_flight_are_bounded(monkeypatch):
    """The parent hands on two chunks a worker, however many there are."""
    monkeypatch.setattr(_pool, "CHUNK", 0.0)  # of one case each

    class Counting(Here):
        workers = 2

        def __init__(self):
            super().__init__()
            self.open, self.most = [], 0

        def submit(self, function, /, *arguments):
            future = Future()
            self.open.append((future, function, arguments))
            self.most = max(self.most, sum(not one.done() for one, *_ in self.open))
            if len(self.open) >= 4 or self.calls == 0:
                self.finish()
            self.calls += 1
            return future

        def finish(self):
            for future, function, arguments in self.open:
                future.set_result(function(*arguments))
            self.open.clear()

    executor = Counting()
    assert len(Campaign(designs.design, cases=13).run(executor=executor)) == 13
    assert executor.most == 4


def test_chunks_take_0_6_s_and_are_small_at_the_end():
    size = ChunkSize(4)
    assert size.of(1000) == 1
    outcome = CaseOutcome(CaseStatus.COMPLETED, True, "", {}, seconds=0.01)
    size.learn([dataclasses.replace(outcome, seconds=9.0)])  # it compiled
    assert size.of(1000) == 1
    size.learn([outcome])
    assert [size.of(left) for left in (1000, 40, 20, 3)] == [60, 10, 5, 1]
    size.learn([dataclasses.replace(outcome, seconds=0.03)] * 9)
    assert size.of(1000) == 21


def test_the_command_runs_and_resumes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my.py"
    shutil.copy(designs.__file__, file)
    (tmp_path / "a.toml").write_text(
        f'design = "{file}:design"\ncases = 4\nexecutor = 1\nstore = "a.db"\n'
        'vary = ["load=0.5:1.0kg", {name = "gain", values = [2.0, 3.0]}]\n'
    )
    assert main(["campaign", "a.toml"]) == 0
    out = capsys.readouterr().out
    assert "success: 4 of 4" in out and "wrote a.db, a.html" in out
    assert main(["campaign", "a.toml", "--vary", "load=*8:9", "--vary", "gain=2,3"]) == 1
    assert re.search(r"failed \d ×: place at the end", capsys.readouterr().out)
    (tmp_path / "b.toml").write_text('design = "a"\nspeed = 1\n')
    assert main(["campaign", "b.toml"]) == 2
    assert "a campaign knows no 'speed'; it takes design" in capsys.readouterr().err
    assert main(["campaign", str(file) + ":design", "--vary", "load"]) == 2
    assert "give NAME=LOW:HIGH" in capsys.readouterr().err


def test_the_report_is_one_file_that_says_all(tmp_path):
    campaign = Campaign(designs.raising, [Vary("fails", values=(False, True))], cases=2,
                        sampling="grid")  # fmt: skip
    page = campaign.run(executor=Here()).report(tmp_path / "a.html").read_text()
    assert "no such &lt;cart&gt;" in page and "<cart>" not in page
    assert not re.search(r'(src|href)="(?!data:)', page)
    pictures = re.findall(r"data:image/png;base64,([^\"]+)", page)
    assert len(pictures) == 2
    assert all(base64.b64decode(one).startswith(b"\x89PNG") for one in pictures)


def test_a_notebook_shows_the_plot_of_a_result(result):
    assert result.plot()._repr_png_().startswith(b"\x89PNG")


def test_a_report_appears_complete_or_not_at_all(tmp_path, result, monkeypatch):
    path = result.report(tmp_path / "a.html")
    before = path.read_text()
    assert "<h2>Variations</h2>" in before and "<th>replay</th>" in before
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        result.report(path)
    assert path.read_text() == before and os.listdir(tmp_path) == ["a.html"]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        result.report(tmp_path / "nowhere" / "a.html")


def test_a_campaign_of_which_every_case_raises_says_so(tmp_path):
    campaign = Campaign(designs.raising, [Vary("fails", values=(True, True))], cases=2,
                        sampling="grid")  # fmt: skip
    found = campaign.run(executor=Here())
    assert "failed 2 ×: RuntimeError: no such <cart>" in str(found)
    assert np.isnan(found.values("effort")).all() and len(found.worst("effort")) == 2
    assert found.compare(found).neither == 2
    assert "effort: median nan" in found.report(tmp_path / "a.html").read_text()


@pytest.mark.thorough
def test_a_cluster_gives_the_same_bits(tmp_path, result):
    """Scheduler and worker are processes of their own; without a scheduler the remedy is told."""
    distributed = pytest.importorskip("distributed")
    address = "tcp://127.0.0.1:18787"
    campaign = Campaign(f"{designs.__file__}:design", cases=32)
    with pytest.raises(CampaignError, match="no scheduler answers at tcp://127.0.0.1:1"):
        campaign.run(executor="tcp://127.0.0.1:1")
    programs = []
    try:
        for words in (
            ["dask_scheduler", "--host", "127.0.0.1", "--port", "18787"],
            ["dask_worker", address, "--nthreads", "2"],
        ):
            name = f"distributed.cli.{words[0]}"
            command = [sys.executable, "-m", name, *words[1:], "--no-dashboard"]
            programs.append(subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL))
        with distributed.Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            found = campaign.run(executor=client)
        programs[0].kill()
        with pytest.raises(CampaignError):
            campaign.replaced(seed=99).run(executor=address)
    finally:
        for one in reversed(programs):
            one.kill()
            one.wait()
    assert [one.values for one in found.cases] == [one.values for one in result.cases]


def test_drive_needs_no_cases():
    drive(Here(), None, [], None)  # type: ignore[arg-type]


@pytest.mark.thorough  # it compiles
@pytest.mark.parametrize("cases", [1, 100_000])
def test_a_case_has_the_bits_of_a_single_run(cases):
    """`simulate` from the case's start, seed and disturbances, and what is compiled for many."""
    campaign = Campaign("quadrotor-recovery", cases=8)
    case = campaign.all_cases()[3]
    setting = dataclasses.replace(campaign._setting("none", None), cases=cases)
    (outcome,) = run_cases(setting, [case])
    task = quadrotor_recovery.design().drawn(case.seed).varied(case.values, {"mass"})
    run = simulate(
        task.plant, task.controller, x0=task.x0, reference=task.reference, seconds=task.seconds,
        seed=case.seed, **task.options,
    )  # fmt: skip
    assert outcome.values == {one.name: one.value(run) for one in task.criteria}


@pytest.mark.parametrize("design", ["design", "troubled", "plain"])
def test_cases_of_a_chunk_have_the_outcomes_of_cases_alone(design):
    """They are set up together, run, and judged together; one that raises disturbs no other."""
    campaign = Campaign(getattr(designs, design), variations=[Vary("load", 0.5, 3.0)], cases=12)
    setting = campaign._setting("failed", None)
    cases = [dataclasses.replace(case, seed=k) for k, case in enumerate(campaign.all_cases())]
    alone = [run_cases(setting, [case])[0] for case in cases]
    together = run_cases(setting, cases)
    for one, other in zip(alone, together, strict=True):
        same = [repr(dataclasses.replace(k, seconds=0.0, trajectory=b"")) for k in (one, other)]
        assert same[0] == same[1] and bool(one.trajectory) == bool(other.trajectory)
    if design == "troubled":
        said = " ".join(one.message for one in together)
        assert all(word in said for word in ("no start", "too far out", "too near"))
        assert any(one.consistency for one in together)


def test_a_store_that_is_read_only_is_read(tmp_path, monkeypatch):
    """SQLite can make no files beside it; outcomes of a log that was never merged are not lost."""
    campaign, file = Campaign(designs.design, cases=4), tmp_path / "a #1.db"
    whole = campaign.run(executor=Here(), store=file)
    copied = tmp_path / "copies" / file.name
    copied.parent.mkdir()
    shutil.copy(file, copied)  # while the store is open
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    assert bits(campaign.open(copied)) == bits(whole)
    assert [one.name for one in copied.parent.iterdir()] == [file.name]
    copied.with_name("a #1.db-wal").write_bytes(b"x")
    with pytest.raises(CampaignError, match=r"outcomes in a #1.db-wal that are not merged"):
        campaign.open(copied)


def test_outcomes_of_other_code_are_told(tmp_path):
    file = tmp_path / "a.db"
    Campaign(designs.design, cases=4).run(executor=Here(), store=file)
    other = Campaign(designs.design, cases=3, arguments={"gain": 3.0})
    assert str(other.open(file)).splitlines()[1:] == [
        "  3 cases are missing: run the campaign again to go on",
        "  4 outcomes in the store are of other cases, settings or code, and do not count here",
    ]
