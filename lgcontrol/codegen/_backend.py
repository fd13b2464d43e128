"""Backend: the kernels of one ModelFunction, and when they are got."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from ._compiler import Stop
from ._kernel import Kernel, get_kernel
from ._policy import compile_policy
from ._program import Program

if TYPE_CHECKING:
    from ._frame import CallFrame


class Wanted(NamedTuple):
    """The forms that were requested; they are pickled with the function.

    Code for single calls, code for batches, and whether products and sums may be fused.
    """

    scalar: bool = False
    vector: bool = False
    contract: bool = True


class Backend:
    """What evaluates a function: nothing (CasADi interprets) or kernels."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.wanted = Wanted()
        self.scalar: Kernel | None = None
        self.vector: Kernel | None = None
        self.frames: list[CallFrame] = []
        self.is_sought = False  # on disk
        self.calls = 0  # of loops in C
        self._tried: set[bool] = set()
        self._announced: set[bool] = set()

    def request(self, *, scalar: bool = True, batch: bool, contract: bool) -> None:
        """Note what is wanted from now on; `build` gets it."""
        if contract != self.wanted.contract:
            self._tried.clear()
            self._announced.clear()
            self.is_sought = False
            self.scalar = self.vector = None
            self.frames = []
        before = self.wanted
        self.wanted = Wanted(before.scalar or scalar, before.vector or batch, contract)

    def missing(self) -> list[bool]:
        """Return which code is wanted and was not tried yet: False scalar, True vector."""
        wanted = ((False, self.wanted.scalar), (True, self.wanted.vector))
        return [v for v, is_wanted in wanted if is_wanted and v not in self._tried]

    def get(self, vector: bool) -> None:
        """Get one kernel from disk or by building it."""
        pending = {vector, *self.missing()} - self._announced  # one notice for all that is wanted
        builds = 0 if vector in self._announced else len(pending)
        self._announced |= pending
        contract = self.wanted.contract
        try:
            kernel = get_kernel(self.program, vector=vector, contract=contract, builds=builds)
        except BaseException:
            self._announced -= pending
            raise
        self._tried.add(vector)
        if vector:
            self.vector = kernel
        elif kernel is not None:
            self.scalar = kernel
            self.frames = []  # those that calls hold at this moment end with them

    def prepare_single(self, steps: int) -> None:
        """Before single calls: get what was wanted where this function was pickled, or eagerly.

        A chain of many steps is a loop that begins.
        """
        policy = compile_policy()
        is_loop = steps > 1 and policy == "auto" and self.program.pays(steps)
        if policy == "eager" or is_loop:
            self.request(batch=False, contract=self.wanted.contract)
        build([self])

    def prepare_batch(self, items: int) -> None:
        """Before a batch: the same, and build where that is quicker than interpreting."""
        if self.vector is not None:
            return
        policy = compile_policy()
        if policy == "eager" or (policy == "auto" and self.program.pays(items)):
            self.request(scalar=False, batch=True, contract=self.wanted.contract)
        build([self])
        if self.vector is None and self.wanted.vector and not self.wanted.scalar:
            self.request(batch=True, contract=self.wanted.contract)  # no vectors here
            build([self])

    def kernel_for(self, items: int) -> Kernel | None:
        """Return the best kernel there is for that many items; None to interpret."""
        if items == 1:
            return self.scalar
        return self.vector or self.scalar


def build(backends: Sequence[Backend]) -> None:
    """Get all kernels that are wanted and were not tried yet, on all cores.

    An interrupt (Ctrl-C) ends it at once; what was not built is wanted still. Compilers are started
    by other threads, since an interrupt in the midst of starting one would leave it behind.
    """
    if compile_policy() == "off":
        return
    jobs = [(backend, vector) for backend in backends for vector in backend.missing()]
    if not jobs:
        return
    for backend, _ in jobs:
        _ = backend.program.written  # once, before several threads ask
    stop = Stop()

    def get(backend: Backend, vector: bool) -> None:
        with stop.inside():
            backend.get(vector)

    pool = ThreadPoolExecutor(min(len(jobs), os.cpu_count() or 1))
    try:
        for made in [pool.submit(get, *job) for job in jobs]:
            made.result()
    except BaseException:
        stop.now()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
