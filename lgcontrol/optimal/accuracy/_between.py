"""Between: the motion of a plan within its steps, and the bounds that are violated there."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ...systems import choose_method
from .._outcome import Violation
from .._rows import rows_along
from .._transcription import Transcription
from ._parts import PlanPart

# Steps are halved up to this number of parts until their ends do not move.
MOST_PARTS = 4096
# Bounds are looked at in at least so many parts of a step. An excess below a share of the range of
# the bounded quantity is rounding. That range is at least a share of its size. Of a clearance,
# whose range is that of the whole way, it is at most the radius.
SAMPLES, LEAST_SHARE, LEAST_RANGE = 32, 1e-6, 1e-3


class Between:
    """Motion between nodes: every step from its first node, with its input held."""

    def __init__(self, part: PlanPart) -> None:
        problem, self.nodes, self.setting = part.problem, part.nodes, part.setting
        self.problem = problem
        self.own = part.setting.p[: problem.system.n_parameters]
        self.step, self.parts = problem.system.step(problem.method, problem.substeps), 1

    def integrated(self, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
        """Ends of all steps and their integrals, in ever more parts until they do not change."""
        problem, nodes, setting = self.problem, self.nodes, self.setting
        method = choose_method(
            problem.system, problem.dt, nodes.x[:-1], nodes.u, p=self.own, t=nodes.t[:-1]
        )
        method = method if method == "rk4" else "radau_iia5"
        self.step = problem.system.step(method, 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # parts of a step are shorter
            fine = problem.with_arguments(quadrature="gauss", method=method, substeps=1, bounds=())
        once = Transcription(fine)
        values, before, parts = once._functions.stage_values, None, 1
        over_steps, of_nodes = once.path_weights - once.node_weights, np.zeros(problem.horizon)
        given = setting.x_ref[:-1], setting.u_ref[:-1], setting.p

        def costs(t: np.ndarray, x: np.ndarray, weights: np.ndarray, h: np.ndarray) -> np.ndarray:
            return values(t, x, nodes.u, x, *given, weights, h)[0]

        if once.node_weights.any():
            of_nodes = costs(nodes.t[:-1], nodes.x[:-1], once.node_weights, problem.steps)
        while True:
            h, total = problem.steps / parts, of_nodes
            *starts, (_, x) = self.motion(parts)
            for t, start in starts:
                total = total + costs(t, start, over_steps, h)
            if before is not None:
                size = 1.0 + np.abs(nodes.x).max()
                moved = np.abs(x - before[0]).max() / size
                change = np.abs(total - before[1]).sum() / max(np.abs(total).sum(), 1e-300)
                if not (max(moved, change) > tolerance) or parts >= MOST_PARTS:
                    self.parts = parts
                    return x, total
            before, parts = (x, total), 2 * parts

    def motion(self, parts: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Times and states of all steps at the ends of their parts, the first nodes included."""
        t, x, h = self.nodes.t[:-1], self.nodes.x[:-1], self.problem.steps / parts
        yield t, x
        for j in range(parts):
            (x,) = mapped(self.step.function, t + j * h, x, self.nodes.u, self.own, h)
            yield t + (j + 1) * h, x

    def violations(
        self, motion: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[tuple[Violation, ...], np.ndarray]:
        """Bounds that are violated within steps by more than at their nodes, the worst first.

        And the largest violation within each step, as in `TranscriptionError`.
        """
        problem, worst = self.problem, np.zeros(self.problem.horizon)
        if not problem._seen:
            return (), worst
        t, x = map(np.array, zip(*motion, strict=True))
        found: list[tuple[float, Violation]] = []
        for i, (seen, label, over, low, high) in enumerate(self._excesses(motion)):
            at_nodes, within = over[0], over[1:]
            if not seen.needs_input:
                at_nodes = np.maximum(at_nodes, np.append(over[0, 1:], over[-1, -1]))
                within = over[1:-1]
            finite, size = over[np.isfinite(over)], 1.0
            if finite.size:
                size = max(np.ptp(finite), LEAST_RANGE * np.abs(finite).max(), 1e-300)
            if seen.bound.shown is not None:
                size = min(size, seen.bound.shown.size)
            excess = within.max(axis=0)
            is_beyond = excess > np.maximum(at_nodes, 0.0) + LEAST_SHARE * size
            if not is_beyond.any():
                continue
            worst = np.maximum(worst, np.where(is_beyond, excess / size, 0.0))
            k = int(np.where(is_beyond, excess, 0.0).argmax())
            j = 1 + int(within[:, k].argmax())
            time, amount = self._peak(i, k, j, t, x, over[:, k])
            unit = problem.bound_unit(label)
            side = "lower" if np.isinf(high) else "upper" if np.isinf(low) else ""
            found.append((amount / size, Violation(label, time, k, amount, side, unit)))
        found.sort(key=lambda pair: -pair[0])
        return tuple(violation for _, violation in found), worst

    def sampled(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Motion in as many parts of each step as bounds are looked at in."""
        return list(self.motion(self.parts * -(-SAMPLES // self.parts)))

    def soft_costs(
        self, once: Transcription, rows: np.ndarray, motion: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> np.ndarray:
        """What integrals of the penalties of soft bounds over each step have beyond the nodes'.

        Rows (N + 1, rows) are those of the problem of `once` at the nodes.
        """
        parameters, p, steps = self.problem.parameter_names, self.setting.p, self.problem.steps
        found, parts = np.zeros(len(steps)), len(motion) - 1
        for seen, _, over, *_ in self._excesses(motion):
            soft = seen.bound.soft
            if soft is None:
                continue
            weight = p[parameters.index(soft)] if isinstance(soft, str) else soft
            s = np.maximum(over, 0.0)
            each = weight * (s + s**2 / 2)
            found += steps / parts * (each.sum(axis=0) - (each[0] + each[-1]) / 2)
        meaning = once.rows
        weights = meaning.weights(p)
        is_soft, s = np.isfinite(weights), meaning.excess(rows)
        at_nodes = np.where(is_soft, weights, 0.0) * np.where(is_soft, s + s**2 / 2, 0.0)
        # A node counts its own step, or by the trapezoidal rule half of that and of the one before.
        own = np.append(steps, 0.0)[:, None]
        is_half = np.any(meaning.lengths != np.append(steps, steps[-1])[:, None], axis=0)
        after = np.where(is_half, own / 2, own)
        before = meaning.lengths - after
        return found - (after * at_nodes)[:-1].sum(axis=1) - (before * at_nodes)[1:].sum(axis=1)

    def _excesses(
        self, motion: Sequence[tuple[np.ndarray, np.ndarray]]
    ) -> Iterator[tuple[Any, str, np.ndarray, float, float]]:
        """Of each row bound, label, how far it is exceeded (parts + 1, N), and both limits."""
        parts, (t, x) = len(motion) - 1, map(np.array, zip(*motion, strict=True))
        steps = np.arange(self.problem.horizon)
        shares = np.repeat(np.arange(parts + 1) / parts, len(steps))
        every = self._rows(np.tile(steps, parts + 1), shares, t.ravel(), x.reshape(shares.size, -1))
        for seen, label, values, low, high in every:
            yield seen, label, _over(values, low, high).reshape(parts + 1, -1), low, high

    def _rows(
        self, k: np.ndarray, share: np.ndarray, t: np.ndarray, x: np.ndarray
    ) -> Iterator[Any]:
        """`rows_along` at shares of steps k, references between those of the nodes."""
        problem, group, given = self.problem, self.problem.system.state, self.setting.x_ref
        between = given[k]
        if (given != given[0]).any():
            moved = share[:, None] * np.asarray(group.minus(given[k + 1], given[k]))
            between = np.asarray(group.plus(given[k], moved))
        points = t, x, self.nodes.u[k], self.setting.p, between
        return rows_along(problem._seen, problem.parameter_names, points)

    def _peak(
        self, i: int, k: int, j: int, t: np.ndarray, x: np.ndarray, over: np.ndarray
    ) -> tuple[float, float]:
        """Time and excess of the largest violation by row i near sample j of step k."""
        time, amount, parts = float(t[j, k]), float(over[j]), len(over) - 1
        if not (j < parts and np.isfinite(over[j - 1 : j + 2]).all()):
            return time, amount
        before, here, after = over[j - 1 : j + 2]
        bend = before - 2 * here + after
        move = 1.0 + ((before - after) / (2 * bend) if bend < 0 else 0.0)  # of samples, from j - 1
        h = self.problem.steps[k] / parts
        start = t[j - 1, k], x[j - 1, k]
        end = np.asarray(self.step(*start, self.nodes.u[k], self.own, move * h))
        there = np.array([k]), np.array([(j - 1 + move) / parts]), np.array([start[0] + move * h])
        for row, (_, _, values, low, high) in enumerate(self._rows(*there, end.reshape(1, -1))):
            found = float(_over(values, low, high)[0])
            if row == i and found > amount:
                time, amount = float(there[2][0]), found
        return time, amount


def mapped(function: ca.Function, *values: np.ndarray) -> list[np.ndarray]:
    """Results of a function of numbers and vectors for all steps, in one call of CasADi.

    A value for all is a vector. Values for each step are rows.
    """
    sizes = [function.size1_in(i) for i in range(len(values))]
    given = [
        np.reshape(value, (-1, size) if np.size(value) != size else (1, size)).T
        for value, size in zip(values, sizes, strict=True)
    ]
    return [np.asarray(found).T for found in function.call(given)]


def _over(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """How far values are outside of limits, negative inside; infinite if not a number."""
    over = np.maximum(values - high, low - values)
    return np.where(np.isnan(over), np.inf, over)
