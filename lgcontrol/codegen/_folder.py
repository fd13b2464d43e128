"""Where compiled code is kept: a folder that nobody but the user can write to."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from pathlib import Path

try:
    import grp
    import pwd
except ImportError:  # not on Windows
    grp = pwd = None

from ._notice import notice


class UnsafeFolder(Exception):
    """A folder or file that others could have written to; the message says which and why."""


def cache_folder() -> Path:
    """Return the folder of compiled functions.

    ``$LGCONTROL_CACHE``, else ``lgcontrol`` in ``$XDG_CACHE_HOME`` or ``~/.cache``. If that folder
    is not the user's alone or cannot be written to, the process uses a private one for its life.

    Raises
    ------
    OSError, UnsafeFolder
        If not even that can be had.
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

    Raises
    ------
    UnsafeFolder
        If that is in the home of a user who has none, as users of containers.
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
    """Refuse a link, and a file or folder that is not the user's or that others can write to.

    Raises
    ------
    UnsafeFolder
        Says what is wrong.
    """
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
