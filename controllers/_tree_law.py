"""TreeLaw: a feedback law of a tree in accelerations or forces, turned into a system's controls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.mechanics import Multibody
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import System

from ._base import ControlInfo
from ._tracking import Blocks, actuation, find_blocks

# A system has the tree's own equations if its accelerations agree to this share.
SAME_DYNAMICS = 1e-8


class TreeLaw:
    """A law as one function, and how controls bring it about.

    Where the controls are generalized forces of the tree, the law is turned into them by inverse
    dynamics inside the function. Where something else drives it (thrusters) or acts on it (water),
    the system says what the controls do, and accelerations are turned into controls by a
    pseudo-inverse.

    Parameters
    ----------
    tree : Multibody
    system : System
        State: configuration and velocity of the tree.
    name : str
        Of the function.
    arguments : mapping of str to int
        Names and lengths of what the law takes after q and v.
    build : callable
        ``(q, v, *arguments) → [term, term, …]`` on CasADi columns, in the order of priority.
    gives : {"accelerations", "forces"}
        What the terms are. Forces begin with the term that the others are added to (weight);
        accelerations are added to what holds the velocity constant.

    Attributes
    ----------
    function : ModelFunction
    configuration : slice
        Where the tree's configuration is in the system's state.

    Raises
    ------
    ValueError
        If the state is another one, or the controls cannot do what the law asks for.
    """

    def __init__(
        self,
        tree: Multibody,
        system: System,
        name: str,
        arguments: Mapping[str, int],
        build: Callable[..., Sequence[Value]],
        *,
        gives: Literal["accelerations", "forces"] = "accelerations",
    ) -> None:
        self.system = system
        blocks = find_blocks(system)
        if blocks.group != tree.configuration:
            raise ValueError(
                f"the state of {system.name} has the configuration {blocks.group}, "
                f"expected that of {tree.name}: {tree.configuration}"
            )
        self.configuration, self._v = blocks.q, blocks.v
        self._p = system.nominal_parameters
        self._actuation = actuation(system, blocks)
        B = _input_matrix(tree, system, blocks, self._actuation)
        if gives == "forces" and B is None:
            raise ValueError(
                f"{system.name}: more than joint forces and weight acts on the tree; this "
                "controller needs inputs that are generalized forces (ComputedTorque and "
                "OperationalSpace do not)"
            )
        self._is_direct = B is not None
        self._check_drive(tree, B)
        inverse = None if B is None else ca.sparsify(ca.DM(np.linalg.pinv(B)))
        symbols = {key: ca.SX.sym(key, size) for key, size in arguments.items()}
        q, v = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv)
        terms = list(build(q, v, *symbols.values()))
        if inverse is not None:
            if gives == "accelerations":
                M = tree.mass_matrix(q)
                terms = [tree.bias_forces(q, v), *(M @ term for term in terms)]
            terms = [inverse @ term for term in terms]
        self.function = ModelFunction(
            ca.Function(
                name,
                [q, v, *symbols.values()],
                ca.cse([ca.SX(term) for term in terms]),
                ["q", "v", *arguments],
                [f"term{i}" for i in range(len(terms))],
            )
        )
        self._single = len(terms) == 1

    def __call__(self, t: float, x: np.ndarray, *values: Any) -> list[np.ndarray]:
        """Controls of all terms, the one that the others are added to first."""
        terms = self.function(x[self.configuration], x[self._v], *values)
        terms = [terms] if self._single else list(terms)
        if self._is_direct:
            return terms
        nominal = self.system.nominal_input
        now = self._actuation(t, x, nominal, self._p)
        inverse = np.linalg.pinv(now.effect)
        start = nominal[self.system.input_index("control")]
        return [start - inverse @ now.rate, *(inverse @ term for term in terms)]

    def _check_drive(self, tree: Multibody, B: np.ndarray | None) -> None:
        x = self.system.state.random(0)
        nominal = self.system.nominal_input
        effect = self._actuation(0.0, x, nominal, self._p).effect if B is None else B
        rank = np.linalg.matrix_rank(effect)
        if rank < tree.nv:
            raise ValueError(
                f"{self.system.name}: the controls drive {rank} of {tree.nv} degrees of freedom; "
                "this controller needs all of them"
            )


def system_of(tree: Multibody, system: System | None) -> System:
    """System that the controls act on: that of the tree unless another is given."""
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
    """Sum of controls within bounds, and whether something had to give way.

    Later terms give way first: each is scaled by the largest factor in [0, 1] that the bounds
    leave, so that it keeps its direction. Only if no factor does are controls cut one by one.

    Parameters
    ----------
    terms : sequence of ndarray, shape (m,) each
    lower, upper : ndarray, shape (m,)

    Returns
    -------
    u : ndarray, shape (m,)
    is_whole : bool

    Examples
    --------
    >>> within_bounds([np.zeros(2), np.array([4.0, 2.0])], -np.ones(2), np.ones(2))
    (array([1. , 0.5]), False)
    """
    u, is_whole = np.array(terms[0]), True
    for term in terms[1:]:
        whole = u + term
        if ((whole >= lower) & (whole <= upper)).all():
            u = whole
            continue
        is_whole = False
        u = np.clip(u + _largest_share(u, term, lower, upper) * term, lower, upper)
    limited = np.clip(u, lower, upper)
    return limited, is_whole and np.array_equal(limited, u)


def _largest_share(u: np.ndarray, term: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Largest s in [0, 1] with ``lower ≤ u + s term ≤ upper``; 1 if there is none."""
    moves = term != 0
    if ((u[~moves] < lower[~moves]) | (u[~moves] > upper[~moves])).any():
        return 1.0
    ends = np.stack([lower - u, upper - u])[:, moves] / term[moves]
    least, most = ends.min(axis=0).max(initial=0.0), ends.max(axis=0).min(initial=1.0)
    return float(most) if least <= most else 1.0


def _input_matrix(
    tree: Multibody, system: System, blocks: Blocks, drive: ModelFunction
) -> np.ndarray | None:
    """B where the system is ``M v̇ + h = B u`` with the tree's M and h; None elsewhere."""
    x = system.state.random(1, (2,))
    q, v = x[:, blocks.q], x[:, blocks.v]
    now = drive(0.0, x, system.nominal_input, system.nominal_parameters)
    B = tree.mass_matrix(q) @ now.effect
    controls = system.nominal_input[system.input_index("control")]
    own = tree.forward_dynamics(q, v, B @ controls)
    same_input = np.abs(B[1] - B[0]).max() <= SAME_DYNAMICS * max(np.abs(B).max(), 1.0)
    same_rate = np.abs(own - now.rate).max() <= SAME_DYNAMICS * max(np.abs(own).max(), 1.0)
    if not (same_input and same_rate):
        return None
    whole = B[0].round()
    return whole if np.abs(whole - B[0]).max() <= SAME_DYNAMICS else B[0]
