"""What C and Python share of the planning kernel, once: structs, enumerations, numbers, log."""

from __future__ import annotations

import ctypes
from dataclasses import fields
from enum import IntEnum
from typing import NamedTuple

from .._guess import STARTS
from .._masks import GOLDEN
from .._reference import SAME_NODE, SAME_NODE_ROUNDINGS
from .._settings import Settings


class Enumeration(IntEnum):
    """Names of the numbers from 0 on, with their meaning; C has LG_ before each name."""

    meaning: str

    def __new__(cls, meaning: str) -> Enumeration:
        """The next number."""
        made = int.__new__(cls, len(cls.__members__))
        made._value_, made.meaning = len(cls.__members__), meaning
        return made


class Ended(Enumeration):
    """How a solve ended."""

    CONVERGED = "at an optimum"
    ITERATIONS = "by their number, or by its watch"
    STALLED = "no step leads further"
    NOT_FINITE = "a number is infinite or none"
    INFEASIBLE = "at the least violation of hard constraints"


class Begun(Enumeration):
    """How a solve begins."""

    FRESH = "at the nodes of the plan"
    RESUME = "where the last call ended"
    ELASTIC = "at the nodes of the plan, with the elastic problem"
    WARM = "at the plan with its multipliers"
    DECIDED = "as ELASTIC, which is not left before it is solved"


class Scales(Enumeration):
    """Whose scales a plan has."""

    OF_PLANS = "those of solves for a plan, which units do not change"
    OF_STEPS = "those of loops"


class Answer(Enumeration):
    """What an answer of a loop is worth."""

    OK = "its plan keeps all hard rows"
    EXCEEDED = "hard rows cannot all be kept"
    UNSOLVED = "the plan ended before it kept them, or is no motion"
    HELD = "there is no plan: the last answer, or the reference's input"
    ODD = "the state is off its group; nothing has changed"


class Cause(Enumeration):
    """Why a plan of a loop began anew."""

    GOES_ON = "it did not"
    FIRST = "there was none"
    FAILED = "the last one leads nowhere"
    JUMPED = "something jumped"


class LoopPlace(Enumeration):
    """Numbers of the state of a loop; then the last answer, and answers that are on their way."""

    PLANNED = "whether there is a plan: 1, or -1 where it leads nowhere"
    CLOCK = "time of the last call, s"
    STARTED = "time from which the plan is, s"
    LATELY = "recent cost"
    LARGEST = "largest cost"
    DUE = "whether the plan is to begin anew"
    QUEUED = "answers that are on their way"
    CALLED = "whether there was a call"
    ANSWERED = "whether there was an answer"
    CERTIFIED = "violation above which a certificate holds that hard rows must be violated; or 0"
    NUMBERS = "how many these are"


class SearchPlace(Enumeration):
    """Numbers of the search for a target: see `LoopDisturbance.numbers`."""

    DIFFERENCE = "step of differences of a prediction"
    UNOBSERVABLE = "relative singular value of a disturbance that is none"
    RANK = "relative singular value that is none"
    ERROR = "relative weight on errors beyond Q"
    EFFORT = "relative weight on inputs"
    STEPS = "most Newton steps"
    FOUND = "relative size of the last one"
    SAME = "relative size of a secant that is none"
    ROUNDED = "relative eigenvalue that is none"


class RowState(Enumeration):
    """What a row does where a solution changes."""

    ROW_FREE = "it changes"
    ROW_HELD = "it stays at its limit"
    ROW_EXCEEDED = "it is soft and exceeded"


ENUMERATIONS = (Ended, Begun, Scales, Answer, Cause, LoopPlace, SearchPlace, RowState)
CONVERGED, ITERATIONS, STALLED, NOT_FINITE, INFEASIBLE = Ended
FRESH, RESUME, ELASTIC, WARM, _ = Begun
OF_PLANS, OF_STEPS = Scales


class FixedNumbers(NamedTuple):
    """Numbers of the interior point and its loop that are no settings, for C and Python."""

    most_left: int = 10  # times that a solved elastic problem, and a saddle, are left
    creeps: int = 5  # steps in turn that the filter cuts short, before a whole one is tried
    tried: int = 8  # further steps in which a whole one has to pay
    inverse_iterations: int = 3  # that find the direction of least curvature
    golden: float = GOLDEN
    flat: float = 1e-3  # curvature, in regularizations, and cosine of a step that are none
    unviolated: float = 1e-2  # violation, in tolerances, that counts as none
    penalty_mu: float = 1e-2  # barrier parameter at the largest penalty, as a share of violations
    refined: float = 1e-3  # violation from which on refinements of equalities end relative to it
    multiplier_sweeps: int = 3  # that refine least-squares multipliers of equalities
    split_steps: int = 8  # of Newton at most, for an excess and its slack
    roundings: int = 10  # of the barrier function, that are no change of it: IPOPT
    # Of the largest coordinate of any state: what differences of states have by rounding, and some
    # more. With 1e-8, moments of 7e9 hid the concentration and the temperature of a crystallizer.
    by_rounding: float = 1e-11
    # Pivot of the cost to go of free initial states, as a share of its diagonal, that is rounding.
    # A start that nothing fixes, as the place where a loop begins, moved by 1e26 m.
    singular: float = 1e-14
    # Share of the states that have a size, from which on scales are those of plans. With half the
    # hopper of test_phases.py is lost, with a quarter Solo12 of the benchmarks from other starts.
    sized: float = 0.4
    # A state of a plan that begins and ends at its reference: this times what moves another one by
    # its size. tests/benchmarks/planning_experiments.md has other factors.
    driving: float = 3.0
    # The look whether a start is beyond reach: rounds over all controls, shares of their ranges
    # that are tried, and most parts of a step, for its motion to be followed.
    reach_rounds: int = 8
    reach_shares: tuple[float, ...] = (0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0)
    reach_parts: int = 64

    @property
    def reach_steps(self) -> int:
        """Most steps of this look for a control and a row, from both corners, at two nodes."""
        return 2 * 2 * self.reach_rounds * len(self.reach_shares)


FIXED = FixedNumbers()

# Asked after every iteration, with a row of the log, whether a solve ends.
WATCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_double))


ENTRY = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, *[ctypes.POINTER(ctypes.c_void_p)] * 2, ctypes.c_void_p
)


class Function(ctypes.Structure):
    """``lg_function``: evaluates items with ``call(self, items, inputs, outputs, scratch)``."""

    __slots__ = ()
    _fields_ = [("call", ctypes.c_void_p), ("own", ctypes.c_void_p)]


class Field(NamedTuple):
    """A field of a struct; its kind is one of `KINDS`."""

    name: str
    kind: str
    meaning: str


# Kind of a field -> C declaration and ctypes type.
KINDS = {
    "size": ("int64_t ", ctypes.c_int64),
    "number": ("double ", ctypes.c_double),
    "places": ("const int64_t *", ctypes.c_void_p),
    "given": ("const double *", ctypes.c_void_p),
    "numbers": ("double *", ctypes.c_void_p),
    "function": ("lg_function ", Function),
    "factor": ("lg_factor ", ctypes.c_void_p),
    "back": ("lg_back ", ctypes.c_void_p),
    "watch": ("lg_watch ", ctypes.c_void_p),
}


def _table(text: str) -> tuple[Field, ...]:
    lines = (line.split(maxsplit=2) for line in text.strip().splitlines())
    return tuple(Field(name, kind, meaning) for kind, name, meaning in lines)


# A problem as all its solves have it. Matrices are stored by columns, stages one after the other;
# F = [A B]ᵀ and Gᵀ of a stage have a column for each result.
MODEL = _table("""
size nx error coordinates
size nq state coordinates
size nu inputs
size nv controls
size nr rows
size ns one-sided constraints
size ne equalities
size nf free error coordinates of the first state
size sparse entries of [A B] outside of its dense rows
size first first dense row of [A B]
size dense dense rows of [A B]
size bend entries that second derivatives of a step add to the cost to go
size curved whether second derivatives are known
size squares whether all of the cost are squares
size joint whether one function has first and second derivatives of stages
size substeps substeps whose derivatives the kernel multiplies; 0 for none
size sub_sparse as sparse, of a substep
size sub_first as first, of a substep
size sub_dense as dense, of a substep
size turn entries that turn derivatives of the end of a step to those of the defect
size scratch numbers of work memory that functions need
size discrete whether steps are those of a discrete system
size blocks whether controls are rates of inputs that change in blocks
size asked how often a start asks the policy in a step
size weights numbers from the weights of a stage to those of the next; 0 where all share them
places controls which inputs are controls
places free which error coordinates of the first state are free
places alike of each error coordinate the first one with its unit
places rows rows of the sparse entries
places columns their columns
places bend_rows rows of the entries of bend, on and above the diagonal
places bend_columns their columns
places sub_rows as rows, of a substep
places sub_columns as columns, of a substep
places turn_rows rows of the entries of turn
places turn_columns their columns
places row which row a constraint limits: ns one-sided ones, then ne equalities
given sign +1 for upper limits and equalities, -1 for lower limits
places start whether a constraint belongs to the free start and is never relaxed
given active mean steps that a node counts, of soft rows; 0 where a constraint does not hold
function stage cost, defect, rows and their derivatives
function both a stage with second derivatives, which are added to the upper half of H
function values cost, defect and rows
function curvature what the Hessian of the Lagrangian has beyond the Gauss–Newton one
function substep a substep and its derivatives
function around a stage about the end of its last substep
function end cost and rows of the last state with derivatives
function end_values cost and rows of the last state
function end_curvature as curvature, of the last state
function arrival cost of a free first state
function retract state at error coordinates from a state
function error error coordinates between states
function step the state at the end of a stage
function resolved by how much more than is tolerated a step misses its equations
function costs cost and rows of a stage, without its step
function between state at a share of the way between states
function policy controls of the system's policy
function element a state as an element of its group
factor factor sweep of exactly these sizes; null for that of any size
back back its second part
""")

# A solve: what is given, how it is to go, and what is found.
TASK = _table("""
size horizon steps
size max_iterations of this call; of a plan, of all its ways
size more further real-time steps there is room for, if a plan is far off
size resume how it begins, one of `Begun`
size starts which of `STARTS` are tried, the sum of their numbers
size of which scales, one of `Scales`
size exact whether second derivatives are used
number dt step, s; the mean of unequal ones
number tolerance largest error of a converged solve
number start time of the plan that real-time steps go on from, s
numbers t times of nodes
given steps lengths of steps, s
given x_ref reference states
given u_ref reference inputs
given p parameters
given w entries of weights along the horizon
given w_end entries of weights at the end
given P terminal weight
given arrival weight on the first error
numbers x0 given start
given lower limits of controls
given upper limits of controls
given limit limits of constraints, targets of equalities
given weight penalty weights of soft constraints; infinite for hard ones
numbers plan the iterate: x, u, s, z, e, y, zl, zu, lam, nu
numbers K feedback gains of the last step
numbers scales factors of rows and sizes; then the other ones
numbers rows values of rows
numbers log a row for each iteration
numbers work memory
numbers memory what a resumed solve goes on with
size status how it ended, one of `Ended`
size iterations how many were taken
size elastic whether the last iterate is one of the elastic problem
size evaluations trial points
size factorizations sweeps
number mu barrier parameter
number scale of the cost
number penalty of the elastic problem
watch watch called with the log of each iteration; ends the solve unless it returns 0
numbers best nodes of the start, and what was found first
""")

# A controller around the kernel.
LOOP = _table("""
size queue answers that may be on their way
size iterations_most of a call
size first_iterations of a new plan
size most iterations of any call
size restarts 0 for none, 1 for jumps, 2 for jumps at once
size starts which starts a new plan is made from
number delay from call to effect, s
number held time for which an answer is held, where controls are rates of the answers, s; else 0
numbers begins reference inputs, in which steps of blocks say when they begin; null without
size ramps whether answers are reached linearly within that time, not held
number early rounding of times, s
number now time of the call, s
number odd how far a state may be off its group where it is looked at; 0 where it is not
given x measured state
given nominal inputs before the first answer
given lower limits of controls now
given upper limits of controls now
given widest_lower limits of controls at any time
given widest_upper limits of controls at any time
size biased disturbances that are estimated
size suspects inputs that may fail
size rates rates of the system
number settling time constant of the estimate, s
places order which inputs of the system the controls and other inputs are, with rates; else null
places bias_places which inputs they are; behind them those that may fail
given bias_numbers numbers of the search for a target
given Q weight on errors of the target
given inputs_lower limits of all inputs
given inputs_upper limits of all inputs
function rate rates of the system and their derivatives
numbers aim_x reference states in the presence of the disturbance
numbers aim_u reference inputs
numbers state what lasts from call to call, besides the plan
numbers before memory for the last plan
numbers other memory for another plan
numbers u the answer
size status what the answer is worth, one of `Answer`
size cause why the plan began anew, one of `Cause`
size iterations how many were taken
size crowded whether more answers are on their way than the queue holds
size ended how the kernel ended, one of `Ended`
size stepped whether the plan is of steps, not of a solve
size beyond whether the start exceeds hard rows by more than a step can undo
number own_cost of the plan without penalties
number cost of the plan with them
number violation largest violation of a hard row
number defect largest defect of the plan
""")

# Changes of a solution, as `change.c` has them.
CHANGE = _table("""
size directions columns of changes
size parameters numbers of p
size rounds most presolves of a direction
size is_adjoint whether right-hand sides are given, and derivatives by the data are wanted
size is_factored whether the last factors are those of this solution
number goal residual, relative to the first, at which a direction is found
number accepted residual up to which it counts as found
number wall weight that fixes controls, of the scaled cost
number scale of the cost
function along changes of a stage's cost, defect, rows and gradient
function end_along the same of the end
function against derivatives by the data
function end_against the same of the end
given lam multipliers of the dynamics
given price multipliers of rows
given weight of rows that are held, in the preconditioner, and of soft ones that are exceeded
given arrival second derivatives of the cost of a free first state
given none zeros
places hold what each row does, a `RowState`
places fix whether a control stays at its limit
numbers data changes of x_ref, u_ref, p and prices of exceeded rows; or derivatives by the data
numbers changes of states, controls, multipliers of the dynamics and of rows
numbers left right-hand sides, then what is left of the conditions
numbers cost changes of the cost
numbers memory for weights, a result, and two columns a round
number residual the largest that was left, relative to the first
size taken presolves
""")

# What a solve goes on with, besides the plan; filters are behind it.
MEMORY = _table("""
number mu barrier parameter
number outer_mu that of the problem which the elastic one was begun from
number penalty of the elastic problem
number scale of the cost
number dw_last last regularization of the Hessian that was not zero
number dw the last regularization
number alpha length of the last step
number error_before error of the barrier problem before it
number outer_theta violation at which the elastic problem was begun
number spread gain of a call's first step per barrier term; not as modelled: 0, by Gauss–Newton -1
number other scale of the cost that is not in use
size elastic whether the iterate is one of the elastic problem
size tiny steps that led nowhere
size left times that a solved elastic problem was left
size beyond whether hard rows were exceeded next to an optimum, or by the last call
size of which scales the plan has
""")
KEPT = {field.name: place for place, field in enumerate(MEMORY)}

# Numbers of an iterate, for whoever watches.
LOG = (
    "cost", "stationarity", "violation", "complementarity", "step", "regularization", "mu",
    "elastic", "defect",
)  # fmt: skip


def structure(name: str, table: tuple[Field, ...]) -> type[ctypes.Structure]:
    """The Python mirror of a struct."""
    return _mirror(name, [(field.name, KINDS[field.kind][1]) for field in table])


def _mirror(name: str, members: list[tuple[str, type]]) -> type[ctypes.Structure]:
    # Without slots, a misspelt field would become an attribute that the kernel never reads.
    return type(name, (ctypes.Structure,), {"__slots__": (), "_fields_": members})


Model = structure("Model", MODEL)
Task = structure("Task", TASK)
Loop = structure("Loop", LOOP)
Change = structure("Change", CHANGE)
Numbers = _mirror("Numbers", [(field.name, ctypes.c_double) for field in fields(Settings)])


def _enumerated(names: type[Enumeration]) -> str:
    lines = (f"  LG_{one.name}, /* {one.meaning} */" for one in names)
    return "\n".join(["enum {", *lines, "};"])


def _c_value(value: float | tuple[float, ...]) -> str:
    return f"{{{', '.join(map(repr, value))}}}" if isinstance(value, tuple) else repr(value)


def header() -> str:
    """C text of all of it."""
    parts = [
        "#include <stdint.h>",
        f"#define LG_SAME_NODE {SAME_NODE!r}",
        f"#define LG_SAME_NODE_ROUNDINGS {SAME_NODE_ROUNDINGS!r}",
        *(
            f"#define LG_{name.upper()} {_c_value(value)}"
            for name, value in FIXED._asdict().items()
        ),
        *map(_enumerated, ENUMERATIONS),
        f"enum {{ {', '.join(f'LG_{word.upper()} = {bit}' for word, bit in STARTS.items())} }};",
        "typedef struct {\n  void (*call)(const void *own, int64_t items, const double *const *in,",
        "               double *const *out, double *scratch);\n  const void *own;\n} lg_function;",
        "typedef int (*lg_factor)(const void *, const void *, void *, double, int, int);",
        "typedef void (*lg_back)(const void *, const void *, void *, const double *,",
        "                        const double *, const double *);",
        "typedef int (*lg_watch)(const double *entry);",
    ]
    for name, table in (
        ("lg_model", MODEL), ("lg_task", TASK), ("lg_loop", LOOP), ("lg_change", CHANGE)
    ):  # fmt: skip
        lines = [f"  {KINDS[f.kind][0]}{f.name}; /* {f.meaning} */" for f in table]
        parts.append("\n".join(["typedef struct {", *lines, f"}} {name};"]))
    lines = [f"  double {field.name};" for field in fields(Settings)]
    parts.append("\n".join(["typedef struct {", *lines, "} lg_settings;"]))
    lines = [f"  {KINDS[f.kind][0]}{f.name}; /* {f.meaning} */" for f in MEMORY]
    parts.append(" \\\n".join(["#define LG_KEPT", *lines]))
    names = ", ".join(f"LG_LOG_{name.upper()}" for name in LOG)
    parts.append(f"enum {{ {names}, LG_LOG = {len(LOG)} }};")
    return "\n".join(parts) + "\n"
