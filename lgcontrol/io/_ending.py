"""with_ending: the ending of a file's name says what is written there, or it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path


def with_ending(path: str | PathLike[str], endings: Sequence[str], remedy: str = "") -> Path:
    """A path whose ending says what is written there.

    Parameters
    ----------
    path : str or path
        Without an ending it gets the first one; what begins with a digit, as in "gain0.5", is none.
    endings : sequence of str
        Of what can be written, such as ``".npz"``.
    remedy : str
        Another way to what other endings stand for, added to the message.

    Raises
    ------
    ValueError
        If the path has another ending.

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
