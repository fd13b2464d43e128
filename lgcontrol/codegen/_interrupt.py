"""Ctrl-C: it ends what runs, also where the code that it comes into swallows exceptions."""

from __future__ import annotations

import _signal  # pyright: ignore[reportMissingImports]
import _thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from functools import wraps
from types import CodeType, FrameType
from typing import Any, TypeVar

import casadi as ca

# Seconds after which an interrupt that was swallowed, or could not be raised, comes again.
AGAIN = 0.01
# Those of `signal` make enumerations, for which short calls would take several times as long.
_set_handler, _get_handler = _signal.signal, _signal.getsignal
_SIGINT = int(signal.SIGINT)
F = TypeVar("F", bound=Callable[..., Any])


def interruptible(function: F) -> F:
    """Let a Ctrl-C during a function end it with KeyboardInterrupt, wherever it comes into.

    CasADi asks Python for shapes while it chooses between overloads, and takes an exception there
    for another type. Such an interrupt is raised as soon as that code is left. One that was
    swallowed anyway, or became another exception, comes again until the function has ended.

    Handlers other than Python's own, and threads other than the main one, are left alone. The
    outermost of functions that call each other does all of it.

    Examples
    --------
    >>> @interruptible
    ... def double(x):
    ...     return 2 * x
    >>> double(3)
    6
    """

    @wraps(function)
    def guarded(*values: Any, **options: Any) -> Any:
        guard = _take()
        if guard is None:
            return function(*values, **options)
        try:
            made = function(*values, **options)
        except Exception as error:
            if guard.is_pressed:
                raise KeyboardInterrupt from error
            raise
        finally:
            guard.release()
        if guard.is_pressed:
            raise KeyboardInterrupt
        return made

    made: Any = guarded
    return made


def was_interrupted() -> bool:
    """Whether a Ctrl-C came into what goes on; only the main thread has such."""
    return _guard is not None and _guard.is_pressed and _is_main()


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if one came, also where it was swallowed a moment ago."""
    if was_interrupted():
        raise KeyboardInterrupt


def interrupt_is_answered() -> None:
    """Forget the interrupt: whoever asked gets a result that says so."""
    if _guard is not None:
        _guard.forget()


class _Guard:
    """Handles SIGINT during one call of an interruptible function."""

    def __init__(self) -> None:
        self.is_pressed = False
        self._is_again = False
        self._is_over = False
        self._number = 0  # of the interrupt that is repeated
        self._lock = _thread.allocate_lock()

    def press(self, number: int, frame: FrameType | None) -> None:
        """Raise KeyboardInterrupt, unless that would be lost or break what ends already."""
        is_again, self._is_again = self._is_again, False
        if not self.is_pressed:
            if is_again:  # of an interrupt that has been answered since
                return
            self.is_pressed = True
            if not self._is_over:
                # `threading` takes locks that the code interrupted may hold.
                _thread.start_new_thread(self._repeat, (self._number,))
        if frame is None or _must_end(frame):
            return
        if is_again and _is_raised():  # what cleans up is left in peace
            return
        raise KeyboardInterrupt

    def forget(self) -> None:
        """End the repetitions."""
        with self._lock:
            self._number += 1
            self.is_pressed = False

    def release(self) -> None:
        """Put Python's own handler back."""
        global _guard
        with self._lock:
            self._number += 1
            self._is_over = True
        _guard = None
        _set_handler(_SIGINT, signal.default_int_handler)

    def _repeat(self, number: int) -> None:
        while True:
            time.sleep(AGAIN)
            with self._lock:
                if self._number != number:
                    return
                self._is_again = True
                _thread.interrupt_main()


_guard: _Guard | None = None


def _take() -> _Guard | None:
    """Handle SIGINT from here on; None where somebody does or nobody may."""
    global _guard
    if _guard is not None or not _is_main():
        return None
    if _get_handler(_SIGINT) is not signal.default_int_handler:
        return None
    guard = _Guard()
    _set_handler(_SIGINT, guard.press)  # Python's own handler may raise in here
    _guard = guard
    return guard


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


# Code that must not be left half way.
_HANDS: tuple[CodeType, ...] = (
    _take.__code__,
    _Guard.__init__.__code__,
    _Guard.release.__code__,
    _Guard.forget.__code__,
)


def _must_end(frame: FrameType) -> bool:
    """Whether what is interrupted must not be left by an exception.

    That is the guard's own code with all that it calls, and what a wrapper of CasADi has called.
    """
    names = vars(ca.casadi)
    if frame.f_code in _HANDS:
        return True
    above = frame.f_back
    while above is not None:
        if above.f_globals is names or above.f_code in _HANDS:
            return True
        above = above.f_back
    return False


def _is_raised() -> bool:
    """Whether a KeyboardInterrupt is being handled."""
    error = sys.exception()
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
