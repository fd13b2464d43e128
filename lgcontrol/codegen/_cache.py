"""Cache: compiled code kept on disk, in a folder that nobody else can write to."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._notice import PATIENCE, notice

try:
    import grp
    import pwd
except ImportError:  # not on Windows
    grp = pwd = None

LIBRARY, MANIFEST = "kernel.so", "manifest.json"
_FORMAT = 1
_LIMIT = 512 * 2**20  # bytes; a compiled Panda model takes about one million
LONGEST_WAIT = 60.0  # s that a build of another process is waited for
_ABANDONED = 3600.0  # seconds after which a build folder has lost its builder
_MANIFEST_LIMIT = 1 << 16
_ENTRY, _BUILD, _TRASH = "entry-", "build-", "trash-"


class UnsafeFolder(Exception):
    """A folder or file that others could have written to; the message says which and why."""


def cache_folder() -> Path:
    """Return the folder of compiled functions.

    ``$LGCONTROL_CACHE``, else ``lgcontrol`` in ``$XDG_CACHE_HOME`` or ``~/.cache``. If that folder
    is not the user's alone or cannot be written to, the process uses a private one for its life.
    """
    try:
        folder = configured_folder()
        prepare(folder)
    except (OSError, UnsafeFolder) as error:
        notice(
            "cache",
            f"compiled functions are kept for this process only: {error}. "
            "Set LGCONTROL_CACHE to a folder of your own that only you can write to.",
        )
        return _process_folder()
    return folder


def configured_folder() -> Path:
    """Return the folder that the environment names, whether or not it can be used.

    Refused in the home of a user who has none, as users of containers.
    """
    named = os.environ.get("LGCONTROL_CACHE")
    if named:
        return _expanded(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification has relative paths ignored.
    root = Path(base) if os.path.isabs(base) else _expanded("~/.cache")
    return root / "lgcontrol"


def _expanded(path: str) -> Path:
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError:
        user = f"user {os.geteuid()}" if hasattr(os, "geteuid") else "the user"
        raise UnsafeFolder(f"{path} names a home, and {user} has none: HOME is not set") from None


def prepare(folder: Path) -> None:
    """Make the folder, for its owner only, and check that it can be trusted and written to.

    Raises
    ------
    UnsafeFolder
        If others can write to it, or exchange it or a folder above it.
    OSError
        If it cannot be made or written to.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    for above in {*folder.parents, *folder.resolve().parents}:
        _check_above(above)
    check_private(folder)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{folder} cannot be written to")


def check_private(path: Path) -> None:
    """Refuse a link, and a file or folder that is not the user's or that others can write to."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise UnsafeFolder(f"{path} is a symbolic link")
    if status.st_uid != os.geteuid():
        raise UnsafeFolder(f"{path} belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeFolder(f"{path} has mode {mode:04o}: others can write to it")


def _check_above(folder: Path) -> None:
    """Check a folder further up: whoever can rename what it holds could exchange the cache."""
    status = folder.stat()
    if status.st_uid not in (0, os.geteuid()):
        raise UnsafeFolder(f"{folder} belongs to user {status.st_uid}")
    shared = status.st_mode & 0o002 or (
        status.st_mode & 0o020 and not _is_private_group(status.st_gid)
    )
    if shared and not status.st_mode & stat.S_ISVTX:
        raise UnsafeFolder(
            f"{folder} has mode {stat.S_IMODE(status.st_mode):04o}: others can write to it"
        )


def _is_private_group(gid: int) -> bool:
    """Whether the group has the user's name, as distributions set it up for one user alone."""
    if grp is None or pwd is None:
        return False
    try:
        return grp.getgrgid(gid).gr_name == pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return False


_process: list[Path] = []


def folder_in_use() -> Path:
    """Return the folder that is configured, or that of this process where there is none."""
    try:
        return configured_folder()
    except UnsafeFolder:
        return _process_folder()


def _process_folder() -> Path:
    """Return this process's own folder, removed when it ends; forked children share it."""
    if not _process or not _process[-1].is_dir():
        folder = Path(tempfile.mkdtemp(prefix="lgcontrol-"))  # mode 0700
        prepare(folder)
        _process.append(folder)
        atexit.register(_remove, folder, os.getpid())
    return _process[-1]


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # not a forked child that inherited this handler
        shutil.rmtree(folder, ignore_errors=True)


try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None


@dataclass(frozen=True)
class CacheInfo:
    """What the cache of compiled functions holds.

    Attributes
    ----------
    folder : pathlib.Path
    entries : int
        Number of libraries.
    size : int
        Bytes they take.
    limit : int
        Bytes above which the least recently used ones are removed.
    """

    folder: Path
    entries: int
    size: int
    limit: int

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"{self.entries} compiled functions, {self.size / 2**20:.1f} MiB "
            f"of at most {self.limit / 2**20:.0f} MiB, in {self.folder}"
        )


@dataclass(frozen=True)
class CacheRemoval:
    """What `cache_clear` removed.

    Attributes
    ----------
    folder : pathlib.Path
    entries : int
        Number of libraries.
    size : int
        Bytes they took.
    """

    folder: Path
    entries: int
    size: int

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"removed {self.entries} compiled functions, {self.size / 2**20:.1f} MiB, "
            f"from {self.folder}"
        )


def cache_info() -> CacheInfo:
    """Count the compiled functions on disk.

    Returns
    -------
    CacheInfo

    Examples
    --------
    >>> cache_info().entries >= 0
    True
    """
    folder = folder_in_use()
    entries = _entries(folder)
    return CacheInfo(folder, len(entries), sum(entry.size for entry in entries), _LIMIT)


def cache_clear() -> CacheRemoval:
    """Remove every compiled function from disk; those that are loaded stay usable.

    Returns
    -------
    CacheRemoval
    """
    folder = folder_in_use()
    entries = _entries(folder)
    for entry in entries:
        _discard(entry.path)
    with suppress(OSError):
        for path in folder.iterdir():
            if path.name.startswith((_BUILD, _TRASH)):
                shutil.rmtree(path, ignore_errors=True)
    return CacheRemoval(folder, len(entries), sum(entry.size for entry in entries))


class Cache:
    """The libraries in one folder, which must have been checked (`cache_folder`).

    Where libraries take more than `limit` bytes, the least recently used ones are removed.
    """

    def __init__(self, folder: Path | None = None, limit: int = _LIMIT) -> None:
        self.folder = cache_folder() if folder is None else folder
        self.limit = limit

    def find(self, key: str) -> Path | None:
        """Return the library with this key; an entry that is not as it was published is removed."""
        entry = self.folder / f"{_ENTRY}{key}"
        try:
            _check_entry(entry, key)
        except FileNotFoundError:
            if entry.exists():  # a part is missing
                _discard(entry)
            return None
        except (OSError, ValueError, RecursionError, UnsafeFolder):
            _discard(entry)
            return None
        with suppress(OSError):
            os.utime(entry / MANIFEST)  # the time of last use, for eviction
        return entry / LIBRARY

    def remove(self, key: str) -> None:
        """Remove an entry that cannot be used."""
        _discard(self.folder / f"{_ENTRY}{key}")

    @contextmanager
    def build_folder(self) -> Iterator[Path]:
        """Make a private folder to build in; what is left of it in the end is removed."""
        folder = self.folder / f"{_BUILD}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def publish(self, key: str, build: Path, about: dict[str, Any]) -> Path:
        """Make a finished library visible to all processes, in one step.

        `build` is its folder, whose other files are dropped; `about` is kept in the manifest, for
        people.
        """
        for path in build.iterdir():
            if path.name != LIBRARY:
                path.unlink()
        library = build / LIBRARY
        library.chmod(0o600)
        manifest = {
            "format": _FORMAT,
            "key": key,
            "sha256": _digest(library),
            "size": library.stat().st_size,
            **about,
        }
        with open(build / MANIFEST, "x", encoding="utf-8", opener=_open_private) as file:
            json.dump(manifest, file, indent=1)
        entry = self.folder / f"{_ENTRY}{key}"
        try:
            build.rename(entry)
        except OSError:
            # Another process was first: its library is as good, unless it is damaged.
            if self.find(key) is None:
                build.rename(entry)
        self._evict(keep=entry)
        return entry / LIBRARY

    @contextmanager
    def lock(self, key: str, name: str) -> Iterator[None]:
        """Let one process build while others wait; the system frees it when a process dies.

        The name is that of what is built, for messages.

        Correctness does not rest on it: where locks are not supported, or a process holds one for
        `LONGEST_WAIT` or was stopped, work is done twice.
        """
        # Few files for many keys: waiting for an unrelated build is harmless.
        descriptor = _acquire(self.folder / f"lock-{key[:3]}", name)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _evict(self, keep: Path) -> None:
        entries = sorted(_entries(self.folder), key=lambda entry: entry.used)
        total = sum(entry.size for entry in entries)
        for entry in entries:
            if total <= self.limit:
                break
            if entry.path != keep:
                _discard(entry.path)
                total -= entry.size
        now = time.time()
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.name.startswith((_BUILD, _TRASH)) and (
                    now - path.lstat().st_mtime > _ABANDONED
                ):
                    shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True)
class _CachedFile:
    path: Path
    size: int
    used: float


def _entries(folder: Path) -> list[_CachedFile]:
    entries = []
    with suppress(OSError):
        for path in folder.iterdir():
            if not path.name.startswith(_ENTRY):
                continue
            try:
                size = sum(file.lstat().st_size for file in path.iterdir())
                used = (path / MANIFEST).lstat().st_mtime
            except OSError:  # being removed by another process, or incomplete
                size, used = 0, 0.0
            entries.append(_CachedFile(path, size, used))
    return entries


def _check_entry(entry: Path, key: str) -> None:
    library, manifest = entry / LIBRARY, entry / MANIFEST
    for path in (entry, manifest, library):
        check_private(path)
        if path != entry and not stat.S_ISREG(path.lstat().st_mode):  # a FIFO never ends
            raise ValueError(f"{path.name} is no file")
    if manifest.stat().st_size > _MANIFEST_LIMIT:
        raise ValueError("the manifest is too long")
    about = json.loads(manifest.read_text(encoding="utf-8"))
    if not isinstance(about, dict):
        raise ValueError("the manifest is no table")
    expected = {
        "format": _FORMAT,
        "key": key,
        "size": library.stat().st_size,
        "sha256": _digest(library),
    }
    for name, value in expected.items():
        if about.get(name) != value:
            raise ValueError(f"{name} in the manifest does not match")


def _discard(path: Path) -> None:
    """Remove an entry; renamed first, so that nobody finds half of it."""
    trash = path.with_name(f"{_TRASH}{secrets.token_hex(8)}")
    with suppress(OSError):
        path.rename(trash)
        if trash.is_symlink() or not trash.is_dir():
            trash.unlink()
        else:
            shutil.rmtree(trash, ignore_errors=True)


def _acquire(path: Path, name: str) -> int | None:
    """Open and lock a file to build a thing; None if that is not possible, or takes too long."""
    if fcntl is None:
        return None
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        return None
    began = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder, waited = _holder(descriptor), time.monotonic() - began
            if waited < LONGEST_WAIT and not (holder and _is_stopped(holder)):
                if waited > PATIENCE:
                    before = f"waiting for a build of {_called(holder)}"
                    notice(f"waiting for {path}", f"{name}: {before}")
                time.sleep(min(0.2, 0.01 + waited / 10))
                continue
            os.close(descriptor)
            state = "is stopped" if holder and _is_stopped(holder) else "does not end"
            found = f"a build of {_called(holder)} {state}"
            notice(f"without {path}", f"{name}: {found}, and is done here, too")
            return None
        except OSError:  # a file system without locks
            return descriptor
        break
    with suppress(OSError):  # for those who wait
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    return descriptor


def _called(holder: int) -> str:
    return f"process {holder}" if holder else "another process"


def _holder(descriptor: int) -> int:
    """Process that wrote itself into a lock; 0 where none did."""
    try:
        text = os.pread(descriptor, 20, 0).decode("ascii")
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdecimal() else 0


def _is_stopped(process: int) -> bool:
    """Whether a process was stopped, as by Ctrl-Z; False where the system does not tell."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
