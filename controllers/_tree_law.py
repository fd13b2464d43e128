"""TreeLaw: a feedback law of a tree in accelerations or forces, turned into a system's controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import Shape, solve_symmetric
from lgcontrol.groups._internal import group_difference
from lgcontrol.mechanics import Multibody, SeriesElastic, random_configuration
from lgcontrol.optimal._internal import moves
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import ReferenceLike, System

from ._base import ControlInfo
from ._law_function import law_function
from ._losses import commanded_joints, loss_change
from ._tracking import blocks_of

# Arguments of laws that are numbers of the controller, in the order it has them.
GAINS = ("stiffness", "damping", "posture_stiffness", "posture_damping")


class Wish(NamedTuple):
    """What a law in accelerations asks of a tree, in CasADi columns."""

    accelerations: Sequence[Value]  # terms in the order of priority
    velocity: Value  # commanded; joints with fast losses are held to it
    damping: Value | None  # G of ``v̇ = −G v`` about rest [1/s]; None if one stays undamped


class Sampling(NamedTuple):
    """How a law in accelerations is sampled, by which it is decided what happens to losses."""

    dt: float  # period in s
    p: np.ndarray  # the system's parameters


class TreeLaw:
    """A law as one function, and how controls bring it about: ``B u = M a − F(t, x, u₀, p)``.

    Mass matrix, forces and input map are those of the system's structure, losses, water and added
    mass included. If inputs are generalized forces ``B u`` with a constant B, the law is turned
    into controls inside the function. Otherwise a pseudo-inverse of the current B does it.

    A law in accelerations cancels the losses of joints at the measured velocity. If the sampled
    loop is too slow for a loss (see `commanded_joints`), the law compensates it at the commanded
    velocity; `commanded` says of which degrees of freedom, shape (nv,).

    The law is ``build(q, v, *arguments)`` on CasADi columns, with arguments of given names and
    lengths. It gives forces ``[term, term, …]`` in the order of priority, which are added to the
    forces that carry the weight. With `sampling` it is one in accelerations and gives a `Wish`,
    which is added to the forces that hold the velocity constant.
    """

    def __init__(
        self,
        tree: Multibody,
        system: System,
        name: str,
        arguments: Mapping[str, int],
        build: Callable[..., Sequence[Value] | Wish],
        *,
        sampling: Sampling | None = None,
    ) -> None:
        structure = system.structure
        if structure is None:
            raise ValueError(
                f"{system.name} has no structure: this law needs its mass matrix and forces; take "
                "tree.system(…), or make the system with structure=Mechanical(…)"
            )
        blocks = blocks_of(system)
        if blocks.group != tree.configuration:
            raise ValueError(
                f"the configuration of {system.name} is not that of {tree.name}: "
                f"{group_difference(blocks.group, tree.configuration)}"
            )
        if sampling is None and not structure.is_plain:
            raise ValueError(
                f"{system.name}: more than joint forces and weight acts on the tree; this "
                "controller needs inputs that are generalized forces (ComputedTorque and "
                "OperationalSpace do not)"
            )
        self.system, self.blocks, self.configuration = system, blocks, blocks.q
        controls = system.input_index("control")
        self._start = system.nominal_input[controls]
        t, x = ca.SX.sym("t"), ca.SX.sym("x", system.state.nq)
        p = ca.SX.sym("p", system.n_parameters)
        symbols = {key: ca.SX.sym(key, size) for key, size in arguments.items()}
        u = ca.SX(ca.DM(system.nominal_input))
        B = ca.SX(structure.input_map(t, x, u, p))[:, controls.tolist()]
        _check_drive(system, B, (t, x, p), tree.nv)
        asked = build(x[blocks.q], x[blocks.v], *symbols.values())
        self.commanded = np.zeros(tree.nv, dtype=bool)
        if isinstance(asked, Wish):
            assert sampling is not None
            M = structure.mass_matrix(x, p)
            holding = -structure.force(t, x, u, p)
            damping = None if asked.damping is None else _at_state(x, asked.damping)
            self.commanded = commanded_joints(system, blocks, sampling.p, sampling.dt, damping)
            if self.commanded.any():
                holding += loss_change(system, blocks, self.commanded)(x, asked.velocity, p)
            terms = [holding, *(M @ term for term in asked.accelerations)]
        else:
            held = ca.SX(x)
            held[blocks.v] = 0
            terms = [-structure.force(t, held, u, p), *asked]
        self._inverts = not B.is_constant()
        if self._inverts:
            terms = [ca.densify(B), *terms]
        else:
            inverse = ca.sparsify(ca.DM(np.linalg.pinv(ca.evalf(B).full())))
            terms = [inverse @ term for term in terms]
        self.function = ModelFunction(
            ca.Function(
                name,
                [t, x, p, *symbols.values()],
                ca.cse([ca.SX(term) for term in terms]),
                ["t", "x", "p", *arguments],
                [f"term{i}" for i in range(len(terms))],
            ),
            shapes={"t": ()} | ({"term0": B.shape} if self._inverts else {}),
        )

    def __call__(
        self, t: float, x: np.ndarray, p: np.ndarray, *values: ArrayLike
    ) -> list[np.ndarray]:
        """Controls of all terms, the one that the others are added to first."""
        terms = list(self.function(t, x, p, *values))
        if self._inverts:
            inverse = np.linalg.pinv(terms[0])
            terms = [inverse @ term for term in terms[1:]]
        terms[0] = terms[0] + self._start
        return terms

    def exported(
        self,
        follows: Iterable[str],
        gains: Iterable[np.ndarray],
        bounds: tuple[np.ndarray, np.ndarray] | None,
    ) -> ModelFunction:
        """The law as one function ``(t, x, p, …) → u``, within bounds of the controls if given.

        Arguments that it `follows` stay such; `gains` become numbers: stiffness, damping, and those
        of the posture.
        """
        law = self.function
        sizes = {key: law.function.numel_in(i) for i, key in enumerate(law.arguments)}
        given = {key: ca.SX.sym(key, sizes[key]) for key in ("t", "x", "p", *follows)}
        values = given | {key: ca.DM(value) for key, value in zip(GAINS, gains, strict=False)}
        terms = law.function.call([values[key] for key in law.arguments])
        if self._inverts:
            B = terms[0]
            columns = solve_symmetric(B @ B.T, ca.horzcat(*terms[1:]))
            terms = ca.horzsplit(B.T @ columns)
        terms[0] = terms[0] + self._start
        u = sum(terms[1:], terms[0])
        if bounds is not None:
            u, _ = limited(terms, *map(ca.DM, bounds))
        return law_function(law.name, given, {"u": u})


def configuration_to_judge(tree: Multibody, reference: ReferenceLike | None) -> np.ndarray:
    """Configuration at which a law's loop is judged: a still reference, or a random one."""
    value: Any = None
    if reference is not None and not moves(reference):
        value = getattr(reference, "x", reference)
    if value is None or np.shape(value) not in ((tree.nq,), (tree.nq + tree.nv,)):
        return random_configuration(tree, 0)
    return np.asarray(value, dtype=np.float64)[: tree.nq]


def _at_state(x: Value, matrix: Value) -> Callable[[np.ndarray], np.ndarray]:
    """A matrix that depends on the state alone, in numbers."""
    function = ca.Function("matrix", [x], [ca.densify(matrix)])
    return lambda at: function(at).full()


def _check_drive(system: System, B: Value, symbols: tuple[Value, ...], count: int) -> None:
    """Refuse controls that do not reach every degree of freedom."""
    at = (0.0, system.state.identity, system.nominal_parameters)
    rank = np.linalg.matrix_rank(ca.Function("drive", list(symbols), [B])(*at).full())
    if rank < count:
        raise ValueError(
            f"{system.name}: the controls drive {rank} of {count} degrees of freedom; "
            "this controller needs all of them"
        )


def system_of(tree: Multibody, system: System | None) -> System:
    """System that the controls act on: that of the tree unless another is given."""
    if isinstance(tree, SeriesElastic) or (
        system is not None and isinstance(getattr(system.structure, "model", None), SeriesElastic)
    ):
        raise ValueError(
            "the arm has springs between motors and links, which this law for rigid trees does not "
            "know (with fast gains it is unstable, and it sags by the deflection): take "
            "FlatFeedforward or FeedbackLinearization for motions, ElasticPD or ElasticImpedance "
            "to hold, with the SeriesElastic that the system is of"
        )
    if not isinstance(tree, Multibody):
        raise TypeError(
            f"tree must be a Multibody, not {type(tree).__name__}: the controller needs the "
            "mechanics, and takes a System besides as system="
        )
    return tree.system() if system is None else system


def bounded(
    terms: Sequence[np.ndarray], lower: np.ndarray, upper: np.ndarray, saturate: bool
) -> tuple[np.ndarray, ControlInfo]:
    """Sum of controls, within bounds if asked for, and what to say of it."""
    if not saturate:
        return np.sum(terms, axis=0), ControlInfo()
    u, is_whole = within_bounds(terms, lower, upper)
    return u, ControlInfo(CallStatus.OK if is_whole else CallStatus.SATURATED)


def within_bounds(
    terms: Sequence[np.ndarray], lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Sum of controls within bounds, and whether nothing had to give way.

    Later terms give way first: each is scaled by the largest factor in [0, 1] that the bounds
    leave, so that it keeps its direction. Only if no factor does are controls cut one by one.

    Examples
    --------
    >>> within_bounds([np.zeros(2), np.array([4.0, 2.0])], -np.ones(2), np.ones(2))
    (array([1. , 0.5]), False)
    """
    if not np.isfinite(terms).all():
        return np.sum(terms, axis=0), False
    u, is_whole = _limit(len(terms), len(lower))(*terms, lower, upper)
    return u, bool(is_whole)


@cache
def _limit(count: int, size: int) -> ModelFunction:
    """`limited` as a function of a number of terms."""
    names = [*(f"term{i}" for i in range(count)), "lower", "upper"]
    results: dict[str, Shape] = {"u": (size,), "is_whole": ()}
    shapes = dict.fromkeys(names, (size,))
    return trace(
        "within_bounds", lambda *values: limited(values[:-2], *values[-2:]), shapes, results
    )


def limited(terms: Sequence[Value], lower: Value, upper: Value) -> tuple[Value, Value]:
    """`within_bounds` of CasADi columns."""
    u, is_whole = terms[0], ca.SX(1)
    for term in terms[1:]:
        whole = u + term
        fits = ca.mmin((whole >= lower) * (whole <= upper))
        share = _largest_share(u, term, lower, upper)
        scaled = ca.fmin(ca.fmax(u + share * term, lower), upper)
        u, is_whole = ca.if_else(fits, whole, scaled), is_whole * fits
    cut = ca.fmin(ca.fmax(u, lower), upper)
    return cut, is_whole * ca.mmin(cut == u)


def _largest_share(u: Value, term: Value, lower: Value, upper: Value) -> Value:
    """Largest s in [0, 1] with ``lower ≤ u + s term ≤ upper``; 1 if there is none."""
    moves = term != 0
    by = ca.if_else(moves, term, 1)
    ends = (lower - u) / by, (upper - u) / by
    least = ca.fmax(0, ca.mmax(ca.if_else(moves, ca.fmin(*ends), 0)))
    most = ca.fmin(1, ca.mmin(ca.if_else(moves, ca.fmax(*ends), 1)))
    is_stuck = ca.mmax(ca.if_else(moves, 0, ca.fmax(u < lower, u > upper)))
    return ca.if_else(ca.fmax(is_stuck, least > most), 1, most)
