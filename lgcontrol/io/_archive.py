"""Archives of arrays with a description, and endings of files."""

from __future__ import annotations

import json
import os
import secrets
import time
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np

_WORDS = {str: "a text", bytes: "bytes", PathLike: "a path", type(None): "None"}
# NumPy reads headers as Python expressions, whose depth CPython up to 3.11.7 counts once for all
# threads: two that read at a time may raise a SystemError (CPython's issue 106905).
_READING = Lock()
LARGEST_ARCHIVE = 2**30
"""Bytes that the arrays of an archive may take in memory, unless more is asked for."""
ENDING = ".npz"
_ABANDONED = 3600.0  # seconds after which a part has lost its writer


def check_kind(function: str, name: str, value: object, kinds: type | tuple[type, ...]) -> None:
    """Refuse an argument of another kind, by the names of the function and of the argument."""
    if isinstance(value, kinds):
        return
    several = kinds if isinstance(kinds, tuple) else (kinds,)
    wanted = " or ".join(_WORDS.get(kind, f"a {kind.__name__}") for kind in several)
    raise TypeError(f"{function}(): {name} must be {wanted}, got a {type(value).__name__}")


def with_ending(path: str | PathLike[str], endings: Sequence[str], remedy: str = "") -> Path:
    """A path whose ending says what is written there.

    Without one it gets the first of the endings; what begins with a digit, as in "gain0.5", is
    none. Others are refused, with the remedy: another way to what they stand for.

    Examples
    --------
    >>> with_ending("run", [".npz"]).name, with_ending("gain0.5", [".npz"]).name
    ('run.npz', 'gain0.5.npz')
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending in endings:
        return path
    if not ending[1:2].isalpha():
        return path.with_name(path.name + endings[0])
    raise ValueError(
        f"cannot write {path}: this writes {' or '.join(endings)} files, "
        f"{path.with_suffix(endings[0]).name!r} for example{remedy and f'; {remedy}'}"
    )


# What reading a damaged archive raises, as found by cutting and flipping bytes.
DAMAGE = (
    ValueError,  # also JSON, Unicode and pickled objects
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OSError,
    EOFError,
    MemoryError,  # a shape of absurd size
    NotImplementedError,  # an unknown compression
    OverflowError,
    RecursionError,
    RuntimeError,  # an encrypted member
    SyntaxError,  # an array header
    tokenize.TokenError,  # one that does not end
    zipfile.BadZipFile,
    zlib.error,
)


def write_archive(
    path: Path,
    schema: str,
    version: int,
    arrays: Mapping[str, np.ndarray],
    description: Mapping[str, Any],
) -> Path:
    """Write arrays and a description; the file appears complete or not at all.

    Whoever is last of several writers has written it. What writers that were killed left beside it
    an hour ago and longer is removed. The schema is the kind of file; the description is what JSON
    can say. The path is returned with ``.npz`` where the name has no ending.
    """
    table = f"for a table numpy.savetxt({path.name!r}, numpy.c_[t, x], delimiter=',')"
    path = with_ending(path, [ENDING], table)
    text = json.dumps({"schema": schema, "version": version, **description})
    members = {**arrays, "description": np.array(text)}
    with part_of(path) as part, open(part, "xb") as file:
        np.savez_compressed(file, **cast(dict[str, Any], members))
    return path


@contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """A file to write to that becomes the one at a path, complete or not at all.

    Threads and processes of several machines may write at once, each to a part of its own.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    _remove_abandoned(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def read_archive(
    path: Path, schema: str, version: int, what: str, largest: int = LARGEST_ARCHIVE
) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Path with its ending, arrays and description of an archive of one schema.

    Read are versions up to this one, of what takes no more than `largest` bytes in memory; messages
    call the file `what`.
    """
    if not path.exists() and path.suffix != ENDING:
        path = path.with_name(path.name + ENDING)
    check_file(path)
    try:
        arrays = _read(path, largest)
        description = json.loads(str(arrays.pop("description")))
        found, number = description["schema"], description["version"]
    except _TooLarge as error:
        advice = f"if you trust it, load(path, largest={error.size}) reads it"
        raise ValueError(f"{error}; {advice}") from None
    except DAMAGE as error:
        raise ValueError(f"{path} is no {what}: {damage_reason(error)}") from None
    if found != schema:
        raise ValueError(f"{path} holds {found!r}, expected {schema!r}")
    if not isinstance(number, int) or number > version:
        raise ValueError(
            f"{path} has format version {number}, this lgcontrol reads up to {version}: "
            "install a newer one"
        )
    return path, arrays, description


def read_arrays(path: Path, what: str) -> dict[str, np.ndarray]:
    """Arrays of an archive that others wrote.

    Refused if they take more than `LARGEST_ARCHIVE` bytes; messages call the file `what`.
    """
    check_file(path)
    try:
        return _read(path, LARGEST_ARCHIVE)
    except _TooLarge as error:
        raise ValueError(str(error)) from None
    except DAMAGE as error:
        raise ValueError(f"{path} is no {what}: {damage_reason(error)}") from None


def check_file(path: Path) -> None:
    """Refuse a path where there is no file."""
    if path.is_dir():
        raise FileNotFoundError(
            f"{path}: no such file, but a folder; expected the name of a file in it"
        )
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")


def _read(path: Path, largest: int) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as members:  # NumPy would take a bare array or a pickle too
        listed = members.infolist()
        # None yields more than the size that stands in its directory entry.
        size = sum(member.file_size for member in listed)
        if size > largest:
            raise _TooLarge(path, size, largest)
        for member in listed:  # Python unpacks other methods whatever the directory says
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(
                    f"{member.filename} is packed by method {member.compress_type}: "
                    "arrays are stored (0) or deflated (8)"
                )
        with _READING:
            return {m.filename.removesuffix(".npy"): _array(members, m) for m in listed}


def _array(members: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One member, which must be an array: NumPy would unpack others whole, as bytes."""
    with members.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


class _TooLarge(Exception):
    """An archive is larger than what its reader allows."""

    def __init__(self, path: Path, size: int, largest: int) -> None:
        self.size = size
        super().__init__(
            f"{path} takes {size / 2**20:,.0f} MiB unpacked "
            f"({path.stat().st_size / 2**20:,.1f} MiB on disk), more than the "
            f"{largest / 2**20:,.0f} MiB that are read unasked"
        )


def damage_reason(error: Exception) -> str:
    """What an error of `DAMAGE` says of the file."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return f"{text} is missing" if isinstance(error, KeyError) else text or type(error).__name__


def _remove_abandoned(path: Path) -> None:
    with suppress(OSError):
        for part in path.parent.iterdir():
            name = part.name
            if name.startswith(f".{path.name}.") and name.endswith(".part"):
                if time.time() - part.lstat().st_mtime > _ABANDONED:
                    part.unlink()
