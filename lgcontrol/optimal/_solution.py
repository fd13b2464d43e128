"""OptimalSolution: the result of solving an `OptimalControlProblem`.

The file of the problem imports this one, and so here a problem has no type of its own: `Problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import Result
from ..plotting import plot_path, plot_run
from ..plotting._internal import COLORS, DASHES, INK, SMALL, new_figure, style_axes
from ..systems import Trajectory
from ._frozen import refuse_name
from ._outcome import Iteration, SolveStatus, TranscriptionError, Violation, open_defects
from ._plan import Plan
from ._rows import enter_end

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_SHOWN, MOST_ROWS = 5, 10  # optima in a figure, and panels one below the other

Problem: TypeAlias = Any
"""An `OptimalControlProblem`."""


@dataclass(frozen=True, eq=False, slots=True)
class OptimalSolution(Result):
    """Result of solving an `OptimalControlProblem`.

    Attributes
    ----------
    status : SolveStatus
    message : str
        The status in a sentence, with the violated constraints.
    trajectory : Trajectory
        Best iterate: N + 1 states and N inputs.
    reference : Trajectory
        Reference that was to be followed.
    cost : float
        Of the problem, with the penalties of soft constraints. Of a real-time step, the cost before
        its last iteration.
    kkt : float
        Optimality residual: largest of the scaled gradient of the Lagrangian, the defects, the
        violations and the complementarity. NaN after real-time steps, which do not compute it.
    defect : float
        Largest defect of the dynamics: how far the end of a step is from the next node.
    violations : tuple of Violation
        Hard constraints that are violated, each at its worst node.
    iterations : tuple of Iteration
    times : dict
        Seconds in "total", "model" (functions and derivatives) and "qp".
    problem : OptimalControlProblem
    plan : Plan
        Warm start of `Solver.step`.
    optima : tuple of LocalOptimum
        Where solves from several starts ended, the cheapest first: ``cost``, ``count`` of the
        starts, ``solution``. Cheaper ones whose steps are too long come last. Empty without
        ``starts=``.
    """

    status: SolveStatus
    message: str
    trajectory: Trajectory
    reference: Trajectory
    cost: float
    kkt: float
    defect: float
    violations: tuple[Violation, ...]
    iterations: tuple[Iteration, ...]
    times: dict[str, float]
    problem: Problem
    plan: Plan
    optima: tuple[LocalOptimum, ...] = ()

    _setting: Any = field(repr=False, default=None)
    _prices: np.ndarray | None = field(repr=False, default=None)
    _inner: OptimalSolution | None = field(repr=False, default=None)
    _make: Callable[[], dict[str, Any]] | None = field(init=False, repr=False, default=None)
    _t: np.ndarray | None = field(init=False, repr=False, default=None)
    _u: np.ndarray | None = field(init=False, repr=False, default=None)

    @classmethod
    def _later(cls, make: Callable[[], dict[str, Any]], **known: Any) -> OptimalSolution:
        """A solution whose other attributes are made when somebody asks for one: loops do not."""
        made = object.__new__(cls)
        known = {"_setting": None, "_prices": None, "_inner": None, "optima": ()} | known
        for name, value in known.items():
            object.__setattr__(made, name, value)
        object.__setattr__(made, "_make", make)
        return made

    if not TYPE_CHECKING:  # a type checker takes it for every name

        def __getattr__(self, name: str) -> Any:
            """Attributes that nobody asked for so far."""
            if not name.startswith("__") and self._make is not None:
                self._finish()
                return getattr(self, name)
            refuse_name(self, name)

    def __getstate__(self) -> list[Any]:
        """All attributes."""
        self._finish()
        return [getattr(self, entry.name) for entry in fields(self)]

    def _finish(self) -> None:
        """Make the parts that nobody has asked for yet; threads that ask at once find the same."""
        make = self._make
        if make is not None:
            for name, value in make().items():
                object.__setattr__(self, name, value)
            object.__setattr__(self, "_make", None)

    @property
    def t(self) -> np.ndarray:
        """Times of the nodes, s."""
        return self.trajectory.t if self._t is None else self._t

    @property
    def x(self) -> np.ndarray:
        """States of the nodes, shape (N + 1, nq)."""
        return self.trajectory.x

    @property
    def u(self) -> np.ndarray:
        """Inputs, shape (N, n_inputs); (N + 1, n_inputs) if they are linear between nodes."""
        return self.trajectory.u if self._u is None else self._u

    def transcription_error(self, tolerance: float = 1e-8) -> TranscriptionError:
        """How far the plan is from what its system does between the nodes.

        Every step is integrated again from its first node, in ever more parts, with its integrals
        of the cost. Bounds along the horizon are looked at in between.

        Parameters
        ----------
        tolerance : float
            Of that integration, as a share of the states and of the cost.

        Returns
        -------
        TranscriptionError
            With ``state``, ``cost_change``, ``held_inputs`` and ``violations``; ``print`` says them
            in a sentence.

        Raises
        ------
        ValueError
            If the solution was made from a plan alone.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.optimal import OptimalControlProblem
        >>> from lgcontrol.systems import System
        >>> lag = System("lag", Rn(1), lambda t, x, u, p: -x + u, inputs=["u"])
        >>> found = OptimalControlProblem(lag, 5, 0.2, reference=[0.0]).solve([1.0])
        >>> error = found.transcription_error()
        >>> error.state < 1e-4, error.cost_change < -0.03  # the sum of five values is too large
        (True, True)
        """
        return DERIVED["transcription_error"](self, tolerance)

    def sensitivities(self) -> Any:
        """Derivatives by the start, the reference and all parameters; what is active stays so.

        Returns
        -------
        Sensitivities
            With ``by(name)``, ``forward(x0=, p=, reference=)`` and ``adjoint(x=, u=)``. Weights and
            limits are parameters of `OptimalControlProblem.symbolic`.

        Raises
        ------
        ValueError
            If the solution is not optimal, or its active constraints repeat each other.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.optimal import OptimalControlProblem
        >>> from lgcontrol.systems import System
        >>> lag = System("lag", Rn(1), lambda t, x, u, p: -x + u, inputs=["u"])
        >>> problem = OptimalControlProblem(lag, 5, 0.2, reference=[0.0]).symbolic("R")
        >>> found = problem.solve([1.0]).sensitivities().by("R")
        >>> bool(found.u[0, 0] > 0)  # a dearer input pulls less
        True
        """
        return DERIVED["sensitivities"](self)

    def predicted(
        self,
        *,
        x0: ArrayLike | None = None,
        p: Mapping[str, float] | None = None,
        reference: ArrayLike | None = None,
    ) -> OptimalSolution:
        """The solution for another start, other parameters or another reference, to first order.

        A guess for `solve`, which goes on from it with its multipliers. Its status is that of this
        solution. Active limits stay active, see `sensitivities`.

        Parameters
        ----------
        x0 : array_like, shape (nq,), optional
            The other start.
        p : mapping of str to float, optional
            Values of parameters, such as limits and weights of `OptimalControlProblem.symbolic`.
        reference : array_like, shape (nq,), optional
            A constant state.

        Returns
        -------
        OptimalSolution

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.optimal import OptimalControlProblem
        >>> from lgcontrol.systems import System
        >>> lag = System("lag", Rn(1), lambda t, x, u, p: -x + u, inputs=["u"])
        >>> problem = OptimalControlProblem(lag, 5, 0.2, reference=[0.0]).symbolic("R")
        >>> near = problem.solve([1.0]).predicted(x0=[1.2], p={"R": 1.1})
        >>> problem.solve([1.2], p={"R": 1.1}, guess=near).is_success
        True
        """
        return DERIVED["predicted"](self, x0=x0, p=p, reference=reference)

    def _with_message(self, message: str, **others: Any) -> OptimalSolution:
        """The solution with another message, and other attributes."""
        self._finish()
        made = replace(self, message=message, **others)
        object.__setattr__(made, "_t", self._t)
        object.__setattr__(made, "_u", self._u)
        return made

    def plot(self, **options: Any) -> Figure:
        """Plot states, inputs and what is bounded over time, a reference that was given dashed.

        Lines are the motion of each step from its first node. If steps end visibly elsewhere than
        at the next node, dots are the nodes. With ``starts=``, up to five of the cheapest optima
        are drawn over each other.

        Parameters
        ----------
        **options
            Of `lgcontrol.plotting.plot_run`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        if len(self.optima) > 1:
            return plot_optima(self.optima, options)
        problem, system, goal = self.problem, self.problem.system, self.reference.x
        at = self.t, self.x, self.u
        bounds = {
            name: SimpleNamespace(
                values=values, lower=lower, upper=upper, unit=problem.bound_unit(name)
            )
            for name, (values, lower, upper) in problem.bounded(*at, x_ref=goal).items()
        }
        names, count = problem.parameter_names, len(self.t)
        points = *at, problem.nominal_parameters, goal
        enter_end(bounds, system, problem.bounds, names, points, count - 1, count)
        motion = DERIVED["motion_between"](self)
        if motion is not None:
            t, x, goals = (value.reshape(motion[0].size, *value.shape[2:]) for value in motion[:3])
            u = inputs_within(self.u, self.trajectory.hold, *motion[0].shape)
            for name, (values, *_) in problem.bounded(t, x, u, x_ref=goals).items():
                if name in bounds:
                    bounds[name].between = values
        run = drawn(
            self, system.name, system.inputs, group=system.state, t=self.t, x=self.x, u=self.u,
            bounds=bounds, input_bounds=np.array(system.input_bounds),
            reference=goal if problem.is_reference_given(goal) else None,
            motion=motion, hold=self.trajectory.hold,
        )  # fmt: skip
        return plot_run(run, **options)

    def plot_path(self, **options: Any) -> Figure:
        """Plot the paths of the bodies with the obstacles of the bounds.

        Parameters
        ----------
        **options
            Of `lgcontrol.plotting.plot_path`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plot_path(self, **options)

    def __repr__(self) -> str:
        """Status, cost, residual and effort; the message of a plan that failed."""
        steps = self.iterations[-1].number if self.iterations else 0
        return (
            f"OptimalSolution({self.status}, cost={self.cost:.6g}, kkt={self.kkt:.1e}, "
            f"iterations={steps}, {self.times.get('total', 0.0):.3f} s){failure_told(self)}"
        )


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """A plan that solves from several starts ended at.

    Attributes
    ----------
    cost : float
    count : int
        Starts that ended there.
    solution : OptimalSolution or PhasedSolution
    """

    cost: float
    count: int
    solution: Any


def failure_told(found: Any) -> str:
    """What a representation says of a plan that failed: its message."""
    return "" if found.is_success or not found.message else f": {found.message}"


def plot_optima(optima: tuple[LocalOptimum, ...], options: dict[str, Any]) -> Figure:
    """The first optima over each other, each with its colour, cost and the number of its starts."""
    shown = optima[:MOST_SHOWN]
    motions = [[*getattr(one.solution, "parts", {"": one.solution.trajectory}).values()]
               for one in shown]  # fmt: skip
    units = {}
    for part in (part for parts in motions for part in parts):
        units |= dict(zip(part.group.coordinate_names, part.group.coordinate_units, strict=True))
        units |= {entry.name: entry.unit for entry in part.inputs}
    columns = -(-len(units) // MOST_ROWS)
    rows = -(-len(units) // columns)
    figure = options.get("figure")
    if figure is None:
        figure = new_figure(7.0 * columns, 0.8 + 1.3 * rows)
    panels = figure.subplots(rows, columns, sharex=True, squeeze=False).T.ravel()
    for ax, (name, unit) in zip(panels, units.items(), strict=False):
        style_axes(ax, f"{name} / {unit}" if unit else name)
    panels[len(units) - 1].set_xlabel("t / s", fontsize=SMALL)
    by_name = dict(zip(units, panels, strict=False))
    lines = {}
    for k, (one, parts) in enumerate(zip(shown, motions, strict=True)):
        style = {"color": COLORS[k], "linestyle": "-" if k % 2 == 0 else DASHES, "linewidth": 1.4}
        starts = "1 start" if one.count == 1 else f"{one.count} starts"
        for part in parts:
            for i, name in enumerate(part.group.coordinate_names):
                (lines[f"cost {one.cost:.6g}, {starts}"],) = by_name[name].plot(
                    part.t, part.x[:, i], **style
                )
            steps = {"drawstyle": "steps-post"} if part.hold == "zero" else {}
            u = np.vstack([part.u, part.u[-1:]])[: len(part.t)]
            for i, entry in enumerate(part.inputs):
                by_name[entry.name].plot(part.t, u[:, i], **style, **steps)
    for ax in panels[len(units) :]:
        ax.set_visible(False)
    rest = len(optima) - len(shown)
    title = f"{len(shown)} optima" + (f" of {len(optima)}" if rest else "")
    figure.suptitle(title, fontsize=SMALL + 2, color=INK)
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=2, fontsize=SMALL)
    return figure


def inputs_within(u: np.ndarray, hold: str, steps: int, count: int) -> np.ndarray:
    """Inputs at `count` equal times of each step, from its start to its end (steps * count, m)."""
    if hold == "zero":
        return np.repeat(u[:steps], count, axis=0)
    share = np.linspace(0.0, 1.0, count)[:, None]
    return (u[:-1, None] + share * np.diff(u, axis=0)[:, None]).reshape(steps * count, -1)


def drawn(found: Any, name: str, inputs: Collection[Any], **own: Any) -> Any:
    """What `plot_run` draws of a plan, with its inputs; `own` are times, states and the like.

    A title has room for the status, and for the worst violation or the first clause of the message.
    Violations of what is no motion say nothing: defects are told in their place.
    """
    told = found.message.partition("; ")[0].partition(": ")[0]
    if found.violations:
        told = open_defects(found.status, found.defect).partition(": ")[2] or found.violations[0]
    return SimpleNamespace(
        name=name, input_names=tuple(entry.name for entry in inputs),
        input_units=tuple(entry.unit for entry in inputs),
        input_roles=tuple(entry.role for entry in inputs), estimate=None, estimate_std=None,
        controllers={}, status=found.status, message=f"{found.status}, {told}", **own,
    )  # fmt: skip


DERIVED: dict[str, Callable[..., Any]] = {}
"""What follows from solutions, by name: modules that need solvers enter theirs."""
