"""Results on disk: an SQLite file that one process writes, and files of trajectories beside."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from ._case import CaseOutcome
from ._design import CampaignError
from ._sampling import Case

STORE_APPLICATION, STORE_VERSION = 0x4C47_4350, 1  # "LGCP"
BUSY = 0.5  # s that a lock of another process is waited for
_TABLES = """
create table if not exists machine (id integer primary key, text text unique not null);
create table if not exists outcome (
    key text primary key, design text not null, number integer not null, seed integer not null,
    inputs text not null, status text not null, success integer not null, message text not null,
    outputs text not null, consistency text not null, history blob not null, seconds real not null,
    machine integer not null references machine(id), finished text default current_timestamp
);
"""
# What SQLite says of a disk and a file that cannot be written.
_REASONS = (
    ("disk is full", "is on a full disk: make room"),
    ("readonly", "cannot be written to: make it writable, or give another store"),
    ("unable to open", "cannot be opened: give a file in a folder that can be written to"),
    ("disk I/O", "cannot be written to, the disk reports an error: look after it"),
    ("locked", "is in use by another campaign: wait for it, or give another store"),
)


class Store:
    """Outcomes by key. Whatever was added is there after a kill of any process.

    Parameters
    ----------
    path : path-like, optional
        An SQLite file, made if it does not exist; in memory if left out.
    reads : bool
        Whether nothing will be written: the file may be on a medium that is read-only.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, reads: bool = False) -> None:
        self.path = None if path is None else Path(path)
        with self.explained():
            self._db = sqlite3.connect(
                self._address(reads), timeout=BUSY, isolation_level=None, uri=True
            )
            self._check_version()
            self._db.row_factory = sqlite3.Row
            self._machines: dict[str, int] = {}

    def _address(self, reads: bool) -> str:
        """What SQLite opens; beside a store that it cannot write to it can make no files."""
        if self.path is None:
            return ":memory:"
        address = f"file:{quote(str(self.path))}"
        if not reads or (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)):
            return address
        log = self.path.with_name(f"{self.path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise CampaignError(
                f"the store {self.path} has outcomes in {log.name} that are not merged into it: "
                "copy both files to a folder that can be written to, and open the copy"
            )
        return f"{address}?immutable=1"

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Errors of SQLite in words that help."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            name = "in memory" if self.path is None else str(self.path)
            for sign, reason in _REASONS:
                if sign in text:
                    raise CampaignError(f"the store {name} {reason}") from error
            if "not a database" in text or "malformed" in text:
                raise CampaignError(
                    f"the store {name} is no SQLite file, or a damaged one: give another store"
                ) from error
            raise CampaignError(f"the store {name}: {text}") from error

    def _check_version(self) -> None:
        (application,) = self._db.execute("pragma application_id").fetchone()
        (version,) = self._db.execute("pragma user_version").fetchone()
        (count,) = self._db.execute("select count(*) from sqlite_master").fetchone()
        if count and application != STORE_APPLICATION:
            raise CampaignError(f"{self.path} holds other data than campaigns: give another store")
        if count and version != STORE_VERSION:
            raise CampaignError(
                f"the store {self.path} has version {version}, this release reads {STORE_VERSION}: "
                "use the release that wrote it, or give another store"
            )

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the only writer, until the end of the block or of the process."""
        with self._lock(), self.explained():
            if self.path is not None:
                self._db.execute("pragma journal_mode = wal")
                self._db.execute("pragma synchronous = normal")
            self._db.executescript(
                f"begin immediate; pragma application_id = {STORE_APPLICATION}; "
                f"pragma user_version = {STORE_VERSION}; {_TABLES} commit;"
            )
            try:
                yield
            finally:
                with suppress(sqlite3.Error):  # one file that can be copied; else the log has them
                    self._db.execute("pragma wal_checkpoint(truncate)")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """A second database whose lock the system takes back from a process that died."""
        if self.path is None:
            yield
            return
        with (
            self.explained(),
            closing(
                sqlite3.connect(f"{self.path}.lock", timeout=BUSY, isolation_level=None)
            ) as lock,
        ):
            lock.execute("pragma journal_mode = memory")  # nothing is left after a kill
            lock.execute("begin exclusive")
            yield
            lock.execute("rollback")

    def add(self, design: str, rows: Sequence[tuple[str, Case, CaseOutcome]]) -> None:
        """Keep outcomes; trajectories come first, so that each one listed is there."""
        for key, _, outcome in rows:
            if outcome.trajectory:
                self._write_trajectory(key, outcome.trajectory)
        with self.explained():
            values = [
                (
                    key, design, case.number, case.seed, json.dumps(case.values), outcome.status,
                    int(outcome.is_success), outcome.message, json.dumps(outcome.values),
                    json.dumps(outcome.consistency), outcome.history, outcome.seconds,
                    self._machine(outcome.machine),
                )
                for key, case, outcome in rows
            ]  # fmt: skip
            self._db.execute("begin immediate")
            try:
                self._db.executemany(
                    "insert or ignore into outcome (key, design, number, seed, inputs, status,"
                    " success, message, outputs, consistency, history, seconds, machine)"
                    " values (?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    values,
                )
                self._db.execute("commit")
            except BaseException:  # a Ctrl-C as well: an open transaction locks the store
                with suppress(sqlite3.Error):  # a full disk may have ended it
                    self._db.execute("rollback")
                raise

    def remove(self, key: str) -> None:
        """Forget an outcome, to run the case again."""
        with self.explained():
            self._db.execute("delete from outcome where key = ?", (key,))

    def __len__(self) -> int:
        """Number of outcomes, of whatever campaign."""
        with self.explained():
            found = self._db.execute("select count(*) from sqlite_master where name = 'outcome'")
            if not found.fetchone()[0]:
                return 0
            return self._db.execute("select count(*) from outcome").fetchone()[0]

    def row(self, key: str) -> sqlite3.Row | None:
        """Record under a key."""
        with self.explained():
            return self._db.execute("select * from outcome where key = ?", (key,)).fetchone()

    def rows(self, keys: Sequence[str], columns: str) -> Iterator[sqlite3.Row]:
        """Rows of keys that are there, in their order."""
        with self.explained():
            statement = f"select {columns} from outcome where key = ?"
            for key in keys:
                row = self._db.execute(statement, (key,)).fetchone()
                if row is not None:
                    yield row

    def machines(self, keys: Sequence[str]) -> list[str]:
        """Processors and compilers that outcomes come from."""
        found = {row["machine"] for row in self.rows(keys, "machine")}
        with self.explained():
            known = self._db.execute("select * from machine").fetchall()
        return sorted(row["text"] for row in known if row["id"] in found)

    def trajectory(self, key: str) -> Path | None:
        """File of the saved run of a key, if it was kept."""
        path = self._trajectory_path(key)
        return path if path is not None and path.is_file() else None

    def _trajectory_path(self, key: str) -> Path | None:
        if self.path is None:
            return None
        return self.path.with_name(f"{self.path.name}.runs") / key[:2] / f"{key}.npz"

    def _write_trajectory(self, key: str, data: bytes) -> None:
        path = self._trajectory_path(key)
        if path is None:
            raise CampaignError("trajectories need a store on disk: give store=FILE")
        part = path.with_suffix(".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(data)
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise CampaignError(
                f"the trajectory {path} cannot be written: {error.strerror}; make room, or run "
                'with trajectories="none"'
            ) from error

    def _machine(self, text: str) -> int:
        if text not in self._machines:
            self._db.execute("insert or ignore into machine (text) values (?)", (text,))
            row = self._db.execute("select id from machine where text = ?", (text,)).fetchone()
            self._machines[text] = row["id"]
        return self._machines[text]
