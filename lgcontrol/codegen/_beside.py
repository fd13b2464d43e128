"""Builds that go on while the program does, or beside a block, and end with it."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Generic, TypeVar

from ._compiler import Stop
from ._notice import notice

Made = TypeVar("Made")

# Seconds that a program or a block that ends waits for what it stopped to clean up.
CLEANING = 5.0


class Beside(Generic[Made]):
    """Makes something in a thread of its own; when the program ends its compilers do, too.

    `make` must not work on memory that anybody else works on meanwhile; what it returned is `made`,
    None where it failed. `name` is for people.

    Examples
    --------
    >>> work = Beside("a sum", lambda: 1 + 1)
    >>> work.wait().made
    2
    """

    def __init__(self, name: str, make: Callable[[], Made]) -> None:
        self.name, self.made = name, None
        self._make, self._stop, self._began = make, Stop(), time.perf_counter()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), daemon=True)
        atexit.register(self._end)
        self._thread.start()

    def __repr__(self) -> str:
        """What is made, and for how long."""
        spent = time.perf_counter() - self._began
        return f"{self.name}: {'done' if self.is_done else f'compiling for {spent:.0f} s'}"

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    def wait(self) -> Beside[Made]:
        """Wait for the end, and return the same object."""
        self._thread.join()
        return self

    def _work(self) -> None:
        try:
            with self._stop.inside():
                self.made: Made | None = self._make()
        except KeyboardInterrupt:  # stopped
            return
        finally:
            atexit.unregister(self._end)
        if self.made is not None:
            spent = time.perf_counter() - self._began
            notice(f"{self.name} is ready", f"{self.name} runs in machine code after {spent:.1f} s")

    def _end(self) -> None:
        self._stop.now()
        self._thread.join(CLEANING)


@contextmanager
def meanwhile(*work: Callable[[], object]) -> Iterator[None]:
    """Do work in threads of its own while a block runs; the block ends with the last of them.

    If the block or a thread fails, compilers of the others are stopped, and given time to clean up.

    Examples
    --------
    >>> found = []
    >>> with meanwhile(lambda: found.append("beside")):
    ...     pass
    >>> found
    ['beside']
    """
    stop, failed = Stop.of_this_thread(), list[BaseException]()

    def run(make: Callable[[], object]) -> None:
        try:
            make()
        except BaseException as error:
            failed.append(error)
            stop.now()

    threads = list[threading.Thread]()
    try:
        with stop.inside():
            for make in work:
                context = copy_context()
                thread = threading.Thread(target=context.run, args=(run, make), daemon=True)
                thread.start()
                threads.append(thread)
            yield
        for thread in threads:
            thread.join()
    except BaseException as error:
        causes, ends = failed[:1], time.monotonic() + CLEANING
        stop.now()
        for thread in threads:
            thread.join(max(0.0, ends - time.monotonic()))
        if causes and isinstance(error, KeyboardInterrupt):
            raise causes[0] from error
        raise
    if failed:
        raise failed[0]
