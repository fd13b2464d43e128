"""Method: a one-step map on a Lie group; subclasses hold an algorithm, instances are data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import is_symbolic
from ..groups import LieGroup, Rn
from ._motion import Motion
from ._problem import Problem, Step


class Trial(NamedTuple):
    """A step with all that error control and interpolation need."""

    x: Any  # state at the end
    velocity: Any  # field there: the first slope of the next step
    error: Any  # estimate of the error, as a tangent vector
    dense: Any  # coefficients of the interpolated tangent vector from the start (`polynomial`)
    residual: Any  # as in `Step`


class Method(ABC):
    """One step of ``Ẋ = X · f(t, X, u, p)`` that stays on the group.

    An algorithm of your own is a subclass with `advance`, written in the operations of `Motion`;
    then steps, their derivatives and compiled rollouts follow.

    Attributes
    ----------
    name : str
    order : int
        Order p: the error after a fixed time falls like ``dt^p``.
    stages : int
        Evaluations of the field in a step.
    stiff_order : int
        Order on stiff problems, where dt is long next to the fastest modes; 0 for methods that are
        not stable there.
    has_error : bool
        Whether steps come with an estimate of their error, which adaptive integration needs.
    is_explicit : bool
        Whether a step is made of fields, sums, brackets and displacements alone.
    uses_losses : bool
        Whether it treats the losses of mechanical systems apart from other forces.
    needs_structure : bool
        Whether it is for mechanical systems that know their structure.
    needs_lagrangian : bool
        Whether these must know inertia and forces apart (`Lagrangian`), and move alone.
    keeps_constraints : bool
        Whether steps of constrained mechanics end on the constraints, of positions and velocities:
        nothing has to project them then.
    solves : bool
        Whether a step solves equations by iteration: it is then for MX, DM and NumPy values.
    memory : str
        Numbers that a step hands on to the next besides the state; empty for one-step methods.
    """

    name: str
    order: int
    stages: int
    stiff_order: int = 0
    has_error: bool = False
    is_explicit: bool = False
    uses_losses: bool = False
    needs_structure: bool = False
    needs_lagrangian: bool = False
    keeps_constraints: bool = False
    solves: bool = False
    memory: str = ""

    @property
    def brackets(self) -> int:
        """Highest power of ``ad_θ`` that the order needs, where velocities are in the algebra."""
        return max(self.order - 2, 0)

    @abstractmethod
    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """One step on the values of a motion, plain or lifted, not normalised."""

    def start(self, problem: Problem, t: Value, x: Value, u: Value = (), p: Value = ()) -> Any:
        """Memory before the first step; empty for one-step methods."""
        return ()

    def step(
        self,
        problem: Problem,
        t: Value,
        x: Value,
        u: Value,
        p: Value,
        dt: Value,
        memory: Any = (),
        *,
        estimate: bool = False,
    ) -> Step:
        """One step, normalised once at its end.

        Parameters
        ----------
        problem : Problem
        t : scalar
            Time [s] at the start of the step.
        x : CasADi column (nq), or ndarray of shape (..., nq)
            State at the start.
        u, p : column or ndarray
            Inputs, which are held, and parameters.
        dt : scalar
            Step [s]; may be symbolic or negative.
        memory : value
            From `start` or the step before.
        estimate : bool
            Whether to estimate the error, where the method can (`has_error`).

        Returns
        -------
        Step
            State at ``t + dt`` of the same kind and shape as x, memory, residual, error. Nothing
            is raised where equations are not solved: the residual tells.

        Raises
        ------
        ValueError
            If the field returns anything but a tangent vector of the group, or the method needs
            what the problem has not.
        """
        if estimate and not self.has_error:
            raise ValueError(f"{self.name} does not estimate errors")
        if self.solves and any(isinstance(value, ca.SX) for value in (t, x, u, p, dt)):
            raise TypeError(
                f"{self.name} solves equations in a step: give MX, DM or NumPy values, not SX"
            )
        if (self.stiff_order or self.solves) and not is_symbolic(t, x, u, p, dt):
            X, U, P = (ca.DM(np.asarray(value, dtype=np.float64)) for value in (x, u, p))
            made = self._stepped(problem, t, X, U, P, dt, memory, estimate)
            if isinstance(x, ca.DM):
                return made
            error = None if made.error is None else np.asarray(made.error).ravel()
            state = np.asarray(made.state).ravel()
            return Step(state, made.memory, float(made.residual), error)
        return self._stepped(problem, t, x, u, p, dt, memory, estimate)

    def _stepped(
        self,
        problem: Problem,
        t: Value,
        x: Value,
        u: Value,
        p: Value,
        dt: Value,
        memory: Any,
        estimate: bool,
    ) -> Step:
        motion = Motion(problem, u, p)
        made = self.advance(motion, t, x, dt, memory, estimate)
        return made._replace(state=motion.normalize(made.state))

    def move(
        self, group: LieGroup, field: Callable[..., Any], t: Value, x: Value, dt: Value
    ) -> Any:
        """State after one step of a plain field ``f(t, x) → d``.

        Parameters
        ----------
        group : LieGroup
            Group of the states.
        field : callable
            ``field(t, x) → d``, the body-fixed velocity, for values of the same kind as x.
        t, x, dt
            As for `step`.

        Returns
        -------
        CasADi column or ndarray

        Examples
        --------
        >>> from lgcontrol.groups import SO2
        >>> from lgcontrol.integrators import get_method
        >>> x = get_method("rk4").move(SO2, lambda t, x: [2.0 * t], 0.0, SO2.identity, 0.5)
        >>> SO2.log(x)
        array([0.25])
        """
        return self.step(Problem.of(group, field), t, x, (), (), dt).state

    def trial(self, motion: Motion, t: Value, x: Value, velocity: Value, dt: Value) -> Trial:
        """Step with an error estimate and interpolation, from the velocity at (t, x)."""
        raise ValueError(f"{self.name} does not estimate errors")

    def stability(self, z: np.ndarray) -> np.ndarray:
        """``R(z)``: factor by which a step of 1 s changes ``ẇ = z w``.

        Parameters
        ----------
        z : ndarray of complex

        Returns
        -------
        ndarray of complex
        """
        with np.errstate(over="ignore", invalid="ignore"):
            after = _plane_step(self)(np.stack([np.real(z), np.imag(z)], axis=-1))
        return after[..., 0] + 1j * after[..., 1]


def combine(coefficients: Sequence[float], slopes: Sequence[Any], dt: Value) -> Any:
    """``dt Σ aⱼ kⱼ`` without the terms whose coefficient is zero; None when none is left."""
    pairs = zip(coefficients, slopes, strict=False)  # rows of zeros at the end may be left out
    terms = [slope if a == 1 else a * slope for a, slope in pairs if a]
    return dt * sum(terms[1:], terms[0]) if terms else None


@cache
def _plane_step(method: Method) -> ModelFunction:
    """One step of 1 s of ``ẇ = z w`` from w = 1, in real and imaginary parts."""

    def field(t: Value, w: Value, u: Value, z: Value) -> Value:
        return ca.vertcat(z[0] * w[0] - z[1] * w[1], z[1] * w[0] + z[0] * w[1])

    problem = Problem(Rn(2), field, n_parameters=2)
    symbol: Any = ca.MX if method.solves else ca.SX

    def build(z: Value) -> Value:
        none = symbol(0, 1)
        return method.step(problem, 0.0, symbol(ca.DM([1.0, 0.0])), none, z, 1.0).state

    return trace("stability", build, {"z": (2,)}, {"factor": (2,)}, symbol=symbol)
