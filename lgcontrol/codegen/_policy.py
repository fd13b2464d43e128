"""When functions are compiled: the policy, and what a build costs against interpreting on."""

from __future__ import annotations

import os
from typing import Literal, get_args

from ._notice import notice
from ._validate import UnknownNameError, unknown_name

Policy = Literal["auto", "off", "eager"]

# Measured with gcc 12 on one core: a build takes a tenth of a second and 100 µs an operation,
# for scalar and vector code each; interpreting takes 2 ns an operation and 3 µs a call. A loop in C
# that calls CasADi's interpreter through Python takes 15 µs more for each of its items.
_BUILD_SECONDS, _BUILD_SECONDS_OPERATION = 0.1, 1e-4
_CALL_SECONDS, _CALL_SECONDS_OPERATION = 3e-6, 2e-9
_CALLBACK_SECONDS = 15e-6

_chosen: list[Policy] = []


def set_compile_policy(policy: Policy) -> None:
    """Choose when functions are compiled, for this process.

    Parameters
    ----------
    policy : {"auto", "off", "eager"}
        ``"auto"`` (the default) compiles on request (`ModelFunction.compiled`, `compile`) and
        where a loop of the toolkit begins. It also compiles for a batch that would take longer to
        interpret than to compile, and in a solve with implicit steps once its iterations have taken
        as long as that. The decision rests on operation counts alone, so it is the same
        in every run. A single call never waits for a compiler and nothing happens in the
        background, unless it was asked for (`MPC.prepare` with ``wait=False``). ``"off"``: never,
        requests included. ``"eager"``: at the first call with numbers. The environment variable
        LGCONTROL_COMPILE sets the policy a process starts with.

    Raises
    ------
    ValueError
        If the policy is none of these.

    Examples
    --------
    >>> set_compile_policy("auto")
    >>> compile_policy()
    'auto'
    """
    if policy not in get_args(Policy):
        raise UnknownNameError(unknown_name("compile policy", policy, get_args(Policy)))
    _chosen[:] = [policy]


def compile_policy() -> Policy:
    """Policy in force: ``"auto"``, ``"off"`` or ``"eager"``; see `set_compile_policy`."""
    if not _chosen:
        named = os.environ.get("LGCONTROL_COMPILE", "") or "auto"
        if named not in get_args(Policy):
            message = unknown_name("value of LGCONTROL_COMPILE", named, get_args(Policy))
            notice("policy", f"{message} It counts as 'auto'.")
            named = "auto"
        set_compile_policy(named)  # type: ignore[arg-type]
    return _chosen[0]


def pays(operations: int, written: int, calls: int) -> bool:
    """Whether interpreting that many calls takes longer than a build, by operation counts.

    The code has the operations `written`. A call takes more of them if the code has loops.
    """
    return calls * interpreting_seconds(operations) > build_seconds(written)


def interpreting_seconds(operations: int, *, is_callback: bool = False) -> float:
    """Time that a call takes to interpret, about, s; a callback is one from a loop in C."""
    return _CALL_SECONDS + _CALL_SECONDS_OPERATION * operations + is_callback * _CALLBACK_SECONDS


def build_seconds(written: int) -> float:
    """Time that a build takes, about, by the number of operations in the code, s."""
    return _BUILD_SECONDS + _BUILD_SECONDS_OPERATION * written
