"""Libraries: found in the cache, or built by one process, checked and published."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ._cache import LIBRARY, Cache, UnsafeFolder
from ._compiler import BuildError, Compiler
from ._notice import notice
from ._policy import build_seconds

Loaded = TypeVar("Loaded")

# Builds of more seconds are announced.
_LONG = 3.0


def find_or_build(
    name: str,
    key: str,
    compiler: Compiler,
    flags: Sequence[list[str]] | Callable[[], Sequence[list[str]]],
    write: Callable[[], str | Iterable[str]],
    load: Callable[[Path], Loaded],
    check: Callable[[Loaded], str | None],
    about: dict[str, Any] | Callable[[], dict[str, Any]],
    builds: int = 1,
) -> tuple[Loaded, Path]:
    """Return what `load` makes of the library with this key.

    Parameters
    ----------
    name : str
        What the code is, for messages and the manifest.
    key : str
        See `key_of`.
    flags : sequence of list of str, or callable that returns one
        Flags to build with; the later ones are taken where the code of those before is not right.
        Not called when the library is in the cache.
    write : callable
        Returns the C source, or several sources, each compiled in parallel as soon as it is
        written. It is not called when the library is in the cache.
    load : callable
        Opens the library.
    check : callable
        Says what is wrong with what was loaded, None if it computes what it should; called once
        after each build.
    about : dict, or callable that returns one
        Kept with the library beside its name, for people: ``operations``. Not called when the
        library is in the cache.
    builds : int
        Builds of about the same length that the announcement speaks of; 0 if there was one.

    Raises
    ------
    BuildError, OSError, UnsafeFolder
        If there is no way to a library that works.
    NotImplementedError
        If `write` knows no source.
    """
    store = Cache()
    found = _load_cached(store, key, load)
    if found is not None:
        return found
    with store.lock(key, name):
        found = _load_cached(store, key, load)  # built by another process meanwhile
        if found is not None:
            return found
        about = {"function": name} | (about() if callable(about) else about)
        expected = builds * build_seconds(about.get("written", 0))
        if expected > _LONG:
            notice(
                f"building {key}",
                f"compiling {name} takes about {expected:.0f} s, once: the code is kept on disk",
            )
        written = write()
        texts = [written] if isinstance(written, str) else written
        with store.build_folder() as build:
            sources: list[Path] = []
            waiting = _put(texts, build, sources)
            if isinstance(written, str):
                list(waiting)
            started = time.perf_counter()
            wrong: str | None = None
            for k, chosen in enumerate(flags() if callable(flags) else flags):
                library = build / f"{k}-{LIBRARY}"  # a library of one name is loaded once
                compiler.build(sources or waiting, library, chosen)
                loaded = load(library)
                again = check(loaded)
                if again is None:
                    library.rename(build / LIBRARY)
                    about = about | {
                        "compiler": " ".join(compiler.command),
                        "flags": chosen,
                        "seconds": round(time.perf_counter() - started, 3),
                    }
                    return loaded, store.publish(key, build, about)
                wrong = wrong or again
            raise BuildError(f"the code compiled by {compiler.command[0]} {wrong}")


def find_or_tell(
    name: str, failed: str, *given: Any, tell: Callable[[str, str], None] = notice, **how: Any
) -> Any:
    """As `find_or_build`, without the path; None, and a notice of what failed, where it fails."""
    try:
        return find_or_build(name, *given, **how)[0]
    except (BuildError, OSError, UnsafeFolder, NotImplementedError) as error:
        tell(name, f"{failed}: {error}")
        return None


def load_built(key: str, load: Callable[[Path], Loaded]) -> tuple[Loaded, Path] | None:
    """What `load` makes of the library with this key, if it was built before."""
    return _load_cached(Cache(), key, load)


def _put(texts: Iterable[str], folder: Path, sources: list[Path]) -> Iterator[Path]:
    """Files of the texts one after the other, which are noted as sources."""
    for k, text in enumerate(texts):
        path = folder / f"kernel{k}.c"
        path.write_text(text, encoding="utf-8")
        sources.append(path)
        yield path


def key_of(compiler: Compiler, flags: list[str], content: Iterable[str]) -> str:
    """Hash of all that decides a library's bytes.

    `content` are the data from which the source is written: with the code that writes it, they are
    hashed in its place, so a cached library is found without writing its source.
    """
    digest = hashlib.sha256()
    for part in (_writer(), compiler.identity, *flags, *content):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


def _load_cached(
    store: Cache, key: str, load: Callable[[Path], Loaded]
) -> tuple[Loaded, Path] | None:
    path = store.find(key)
    if path is None:
        return None
    try:
        return load(path), path
    except (OSError, AttributeError):  # no library, or one without the symbol; or removed just now
        store.remove(key)
        return None


@cache
def _writer() -> str:
    """Version of this package, and a hash of its source files where they can be read."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        text = version("lgcontrol")
    except PackageNotFoundError:  # run from a source folder that was not installed
        text = ""
    digest = hashlib.sha256(text.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
