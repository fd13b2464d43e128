"""The C compiler of this machine: which one, what it can do, and one run of it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ._notice import notice

_CANDIDATES = ("gcc", "clang", "cc", "tcc")
_PROBE_SECONDS = 30
_BUILD_SECONDS = 900

# In functions of more operations, -O2 costs more compile time than it gains.
_O2_LIMIT = 30_000

# Every value stays the same with these: errno is not read, floating-point exceptions do not trap.
# Contraction to fused multiply-add rounds once instead of twice, so results differ from the
# interpreted ones in the last digits. Nothing that reorders sums or assumes finite values.
_VALUE_FLAGS = ("-fno-math-errno", "-fno-trapping-math")


class BuildError(Exception):
    """No library could be made; the message says why."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler that was found and asked for what it supports."""

    command: tuple[str, ...]  # program and leading arguments
    kind: str  # `"gcc"`, `"clang"` or `"tcc"`: the dialect
    native: tuple[str, ...]  # flags for the processor of this machine
    machine: str  # `"x86_64"`, `"aarch64"` or `"other"`
    width: int  # doubles in the widest vector at full speed; 1 without
    identity: str  # hash of the program, its version and the processor's features

    def flags(self, longest: int, contract: bool) -> list[str]:
        """Options for a source whose longest function has that many operations."""
        if self.kind == "tcc":
            return ["-shared", "-fPIC"]
        return [
            "-std=gnu11",
            "-O2" if longest <= _O2_LIMIT else "-O1",
            *self.native,
            *_VALUE_FLAGS,
            f"-ffp-contract={'fast' if contract else 'off'}",
            "-fvisibility=hidden",
            "-fPIC",
            "-shared",
            "-w",
        ]

    def build(self, sources: Iterable[Path], library: Path, flags: list[str]) -> None:
        """Compile C files to one shared library, several of them side by side, as they come.

        An error holds the first error lines.
        """
        folder = library.parent

        def run(*arguments: str | Path) -> None:
            done = _run([*self.command, *flags, *map(str, arguments)], _BUILD_SECONDS, folder)
            if done.returncode != 0:
                raise BuildError(f"{shlex.join(self.command)} failed: {_first_lines(done.stderr)}")

        if isinstance(sources, list) and len(sources) == 1:
            run(*sources, "-o", library, "-lm")
        else:
            objects = self._build_objects(run, sources, library)
            run(*objects, "-o", library, "-lm")
        if not library.is_file() or library.stat().st_size == 0:
            raise BuildError(f"{shlex.join(self.command)} reported success but wrote no library")

    def _build_objects(
        self, run: Callable[..., None], sources: Iterable[Path], library: Path
    ) -> list[Path]:
        """Compile sources to objects, all at once; what fails first stops the others.

        Threads of a pool would keep a program that ends waiting for them.
        """
        stop, failed = Stop.of_this_thread(), list[BaseException]()
        objects, threads = list[Path](), list[threading.Thread]()

        def work(source: Path, to: Path) -> None:
            try:
                run("-c", source, "-o", to)
            except BaseException as error:
                failed.append(error)
                stop.now()

        try:
            for source in sources:
                objects.append(library.with_name(f"{library.stem}-{source.stem}.o"))
                with stop.inside():
                    context = copy_context()
                thread = threading.Thread(
                    target=context.run, args=(work, source, objects[-1]), daemon=True
                )
                thread.start()
                threads.append(thread)
            for thread in threads:
                thread.join()
        except BaseException:
            stop.now()
            raise
        if failed:
            raise failed[0]
        return objects


def find_compiler() -> Compiler | None:
    """Return the compiler named by the environment variable CC, else the best of those on PATH.

    One that is named but cannot be used is told once, and passed over like one on PATH that fails.
    """
    return _find(os.environ.get("CC", ""), os.environ.get("PATH", ""))


@lru_cache(maxsize=8)
def _find(named: str, path: str) -> Compiler | None:
    if os.name != "posix":
        return None
    if named.strip():
        try:
            return _probe(_command(named, path))
        except BuildError as error:
            others = ", ".join(_CANDIDATES)
            notice("compiler named by CC", f"{error}. Compilers on PATH are tried: {others}")
    for name in _CANDIDATES:
        program = shutil.which(name, path=path)
        if program is not None:
            try:
                return _probe((program,))
            except BuildError:
                continue
    return None


def _command(named: str, path: str) -> tuple[str, ...]:
    """Program and arguments that CC names."""
    try:
        name, *arguments = shlex.split(named)
    except ValueError as error:  # quotes that do not end
        raise BuildError(
            f"the environment variable CC={named!r} cannot be read ({error}); "
            "unset CC or mend its quotes"
        ) from None
    program = shutil.which(name, path=path)
    if program is None:
        raise BuildError(f"the compiler CC={named!r} is not on PATH; unset CC or mend it")
    return program, *arguments


def _probe(command: tuple[str, ...]) -> Compiler:
    """Ask for the predefined macros: they tell the version and what the processor has."""
    for native in (("-march=native",), ("-mcpu=native",), ()):
        question = [*command, *native, "-v", "-dM", "-E", "-x", "c", "/dev/null"]
        answer = _run(question, _PROBE_SECONDS)
        if answer.returncode == 0:
            break
    else:
        raise BuildError(f"{shlex.join(command)} does not work: {_first_lines(answer.stderr)}")
    macros = answer.stdout
    version = [line for line in answer.stderr.splitlines() if "version" in line]
    defined = {line.split(maxsplit=2)[1] for line in macros.splitlines() if line.count(" ")}
    kind = "tcc" if "__TINYC__" in defined else "clang" if "__clang__" in defined else "gcc"
    machine = next((m for m in ("x86_64", "aarch64") if f"__{m}__" in defined), "other")
    stamp = Path(command[0]).resolve().stat()
    text = f"{command} {stamp.st_size} {stamp.st_mtime_ns} {native} {version} {macros}"
    return Compiler(
        command,
        kind,
        native,
        machine,
        _vector_width(kind, defined),
        hashlib.sha256(text.encode()).hexdigest(),
    )


def _vector_width(kind: str, defined: set[str]) -> int:
    """Doubles in one register: wider vectors than the processor has are slower than none."""
    if kind == "tcc":
        return 1
    for macro, width in (("__AVX512F__", 8), ("__AVX2__", 4), ("__SSE2__", 2), ("__ARM_NEON", 2)):
        if macro in defined:
            return width
    return 1


def _run(
    command: list[str], seconds: float, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run to the end; whatever stops us stops the compiler with all its children.

    Its own temporary files go to `folder`, its messages come in English.
    """
    environment = os.environ | {"LC_ALL": "C"} | ({"TMPDIR": str(folder)} if folder else {})
    stop = _stop_here.get()
    try:
        process = stop.start(
            lambda: subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env=environment,
                start_new_session=True,
            )
        )
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be run: {error}") from None
    with process:
        try:
            out, err = process.communicate(timeout=seconds)
        except BaseException as error:
            _kill(process)
            process.wait()  # leaving the block with KeyboardInterrupt does not
            if isinstance(error, subprocess.TimeoutExpired):
                raise BuildError(f"{command[0]} did not finish within {seconds:g} s") from None
            raise
        finally:
            stop.ended(process)
    stop.check()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


class Stop:
    """Ends the compilers that run in several threads, and keeps further ones from starting.

    Work goes on below `inside`, in any thread; `now` lets it end with `KeyboardInterrupt`. It is
    stopped with the one above, too.
    """

    def __init__(self, above: Stop | None = None) -> None:
        self._above = above
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._is_set = False

    @staticmethod
    def of_this_thread() -> Stop:
        """One that is stopped with what this thread runs."""
        return Stop(_stop_here.get())

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Make the compilers that this thread runs meanwhile ones that are stopped."""
        token = _stop_here.set(self)
        try:
            yield
        finally:
            _stop_here.reset(token)

    def now(self) -> None:
        """Stop."""
        with self._lock:
            self._is_set = True
            for process in self._running:
                _kill(process)

    def check(self) -> None:
        """Raise KeyboardInterrupt once stopped: a compiler that was killed has not failed."""
        if self._is_set:
            raise KeyboardInterrupt
        if self._above is not None:
            self._above.check()

    def start(self, make: Callable[[], subprocess.Popen[str]]) -> subprocess.Popen[str]:
        """Start a compiler, unless stopped."""
        with self._lock:
            self.check()
            process = make() if self._above is None else self._above.start(make)
            self._running.add(process)
        return process

    def ended(self, process: subprocess.Popen[str]) -> None:
        """Forget a compiler that has ended."""
        with self._lock:
            self._running.discard(process)
        if self._above is not None:
            self._above.ended(process)


_stop_here: ContextVar[Stop] = ContextVar("stop", default=Stop())  # noqa: B039 - never stopped


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a compiler with all its children; it may have ended by itself meanwhile."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _first_lines(text: str, count: int = 3) -> str:
    lines = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines()
    return "; ".join(line.strip() for line in lines[:count]) or "(it said nothing)"
