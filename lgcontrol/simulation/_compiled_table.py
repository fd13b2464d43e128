"""Fields of the structs of the compiled loop: C text and Python mirror from one table."""

from __future__ import annotations

import ctypes
from typing import Any


class CodeStruct(ctypes.Structure):
    """``lg_code``: a function in machine code and the addresses that it works on."""

    __slots__ = ()
    _fields_ = [("run", ctypes.c_void_p), ("table", ctypes.c_void_p)]


# What Python is asked for; the loop goes on where it stopped.
ASKS = (
    "done", "pause", "kick", "measure", "noise", "update", "call", "rows", "told", "draw",
    "switch", "more", "parameters", "look", "give_up", "trouble", "missed", "predict", "keep",
    "lost", "failed", "unknown",
)  # fmt: skip

# Kind of a field -> C declaration and ctypes type.
KINDS: dict[str, tuple[str, Any]] = {
    "size": ("int64_t ", ctypes.c_int64),
    "number": ("double ", ctypes.c_double),
    "places": ("int64_t *", ctypes.c_void_p),
    "numbers": ("double *", ctypes.c_void_p),
    "code": ("lg_code ", CodeStruct),
    "pointer": ("void *", ctypes.c_void_p),
}

SOURCE = """
size period ticks
size offset ticks
size stock rows that were drawn
size next the first that was not used
numbers rows values of all inputs
"""

SENSOR = """
size period ticks
size offset ticks
size delay ticks
size ny coordinates of a measurement
size dim entries of an error
size here whether the loop measures
size updates whether the loop corrects the estimate
size stock errors that were drawn
size next the first that was not used
number dropout probability of a loss
numbers errors drawn, dim a measurement
numbers chances drawn, one a measurement
numbers error of this measurement
numbers y measurement
size lost whether it is
code read error to y
size limited whether the range has ends
numbers lower ends
numbers upper ends
size queue measurements that may be under way
size first the oldest
size waiting how many there are
places ticks of their arrival
places order in which they were taken
numbers taken times at which they were taken
numbers ys
size room delivered measurements that there is memory for
size delivered
numbers delivered_t
numbers delivered_y
size count measurements taken
size losses
code correct
numbers y_est what the correction reads
numbers said what it says, the status last
size says entries of it
places counts of statuses
places firsts in which order they came
number squares sum of the normalized innovations squared
size used measurements in it
"""

LOOP = """
number numerator of seconds in a tick
number denominator
size now tick
size end
size after the tick of the next event
size record_period 0 for none
size pause tick at which the loop stops for Python
number budget longest time of a call, s
number t time of the tick, s
size phase
size part of the phase
size asked which part is meant
size nq
size nu
size nm controls
numbers x
numbers u held inputs
numbers known inputs without disturbances
numbers total of the disturbances
numbers p
places controls
size ramps whether controls move linearly to an answer
number ramp_period s
number ramp_begin s
numbers ramp_from controls then
numbers ramp_to the answer
numbers moving inputs of the plant's steps: controls at both ends of an interval, others, its times
size others inputs that are no controls
places other
numbers lower bounds of the controls
numbers upper
size saturates
size varies whether parameters are functions of time
size adaptive
code step
number step_t
number step_dt
numbers stepped state after a step
numbers error of a step, or the residual of its equations
number h
number done part of the interval, s
number seconds length of the interval
number before error of the step before
number allowed
number order
number longest_step
number shortest_taken
number longest_taken
number least
number most
number start
size taken steps
size rejected
size look_at
size patience
size looks whether the loop looks at decays
code decay
size dim
numbers decays matrix of the errors' equation
size count steps in the interval
size solves whether steps solve equations
number missed_t
number missed
size next_kick
size next_switch
size sources
pointer source
size parts
numbers part_inputs
size sensors
pointer sensor
size measurements taken by all
numbers measured
number measured_at
size estimator 0 for none, 1 in the loop, 2 in Python
code predict
size nz
size est_nq
numbers z
numbers z_next
number est_t
size est_has_t
number est_dt
numbers est_u
numbers est_said
number est_usual
number est_same
number est_ulps
places predicted counts of statuses
places predicted_first
size statuses there are counts of so many
number unknown status that was told and is none of them
size order_of_statuses
size successes bits of the statuses of corrections
size last_sensor
numbers estimate
size feedback 0 state, 1 measurement, 2 estimate
size staged
size period ticks
size offset
size delay
size law 0 in Python, 1 a function, 2 a kernel
size law_ready
code feedback_law
number law_t
numbers law_x
numbers answer
numbers law_lower
numbers law_upper
size law_clips
size units
places unit_from
places unit_to
number odd how far a state may be off its group
size tables
pointer table_rows
pointer table_to
places table_sizes
places table_steps
size rows_from number of the first call with rows
size rows_to
pointer kernel
pointer kernel_arguments
pointer kernel_x
pointer kernel_t
pointer kernel_u
size kernel_odd status of a state to be looked at in Python
size watched
pointer watch
places watch_kind
size told
pointer tell
places tell_kind
size status of a call
number elapsed
size effects answers that may be on their way
size effect_first
size effect_waiting
places effect_ticks
numbers effect_answers
size call_room
size calls
numbers call_t
numbers call_answer
numbers call_elapsed
numbers call_age
numbers call_told
places call_here whether the loop made the call
size row_room
size rows
size intervals
numbers row_t
numbers row_x
numbers row_u
numbers row_z
"""


def _fields(text: str) -> list[tuple[str, str, str]]:
    lines = (f"{line} " for line in text.strip().splitlines())
    return [tuple(line.split(" ", 2)) for line in lines]  # type: ignore[misc]


def _mirror(name: str, text: str) -> type[ctypes.Structure]:
    # Without slots, a misspelt field would become an attribute that the loop never reads.
    members = [(field, KINDS[kind][1]) for kind, field, _ in _fields(text)]
    return type(name, (ctypes.Structure,), {"__slots__": (), "_fields_": members})


SourceStruct = _mirror("SourceStruct", SOURCE)
SensorStruct = _mirror("SensorStruct", SENSOR)
LoopStruct = _mirror("LoopStruct", LOOP)


def header() -> str:
    """C text of the structs."""
    parts = [
        "#include <stdint.h>",
        "typedef struct { int (*run)(const int64_t *); const int64_t *table; } lg_code;",
        f"enum {{ {', '.join(f'ASK_{name.upper()}' for name in ASKS)} }};",
    ]
    for name, text in (("lg_source", SOURCE), ("lg_sensor", SENSOR), ("lg_loop", LOOP)):
        lines = [f"  {KINDS[kind][0]}{field};" for kind, field, _ in _fields(text)]
        parts.append("\n".join(["typedef struct {", *lines, f"}} {name};"]))
    return "\n".join(parts) + "\n"
