"""What an MPC tells its user unasked: limits that plans do not know, and slow calls."""

from __future__ import annotations

import warnings
from typing import Any

from lgcontrol.codegen._internal import find_compiler, level_outside, notice
from lgcontrol.optimal import OptimalControlProblem

# Names that a message lists before it counts the others.
MOST_NAMED = 8
# Seconds of a call that is slow, and how many without compiled functions lead to a notice.
SLOW, MOST_SLOW = 1e-3, 20


def warn_of_limits(stated: OptimalControlProblem) -> None:
    """Warn of limits that the system knows and no bound mentions."""
    system, ignored = stated.system, stated.ignored_limits
    if not ignored:
        return
    block = ignored[0].partition(".")[0]
    shown = ", ".join(name.removeprefix(f"{block}.") for name in ignored[:MOST_NAMED])
    several = f" and {len(ignored) - MOST_NAMED} more" if ignored[MOST_NAMED:] else ""
    warnings.warn(
        f"plans of {system.name} know nothing of the limits of {shown}{several}: give "
        "bounds=[Bound('limits', soft=100)], whose numbers are those of "
        f"{system.name}.limits, or Bound({block!r}, lower, upper, soft=100) with your own",
        RuntimeWarning,
        stacklevel=level_outside(),
    )


def notice_slow_call(mpc: Any, seconds: float) -> None:
    """After some slow calls without compiled functions, say once what makes them faster."""
    if seconds < SLOW or mpc._slow >= MOST_SLOW or mpc.solver.is_prepared:
        return
    mpc._slow += 1
    if mpc._slow < MOST_SLOW:
        return
    remedy = "mpc.prepare() compiles them, so does simulate before a run"
    if find_compiler() is None:
        remedy = f"install a C compiler, gcc or clang; then {remedy}"
    notice(
        f"slow calls of {mpc.system.name}",
        f"{MOST_SLOW} calls of an MPC of {mpc.system.name} took more than {1e3 * SLOW:g} ms, "
        f"the last {1e3 * seconds:.1f} ms: its functions are interpreted: {remedy}",
    )
