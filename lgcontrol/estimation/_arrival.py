"""Window of a moving horizon: its inputs, and the cost of arrival, which carries what it leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, chain, trace
from ..codegen._internal import solve_symmetric
from ..integrators import Method
from ..systems import System, step_derivatives
from ..systems._internal import BoundSensor
from ._error_side import ErrorSide
from ._innovations import likely_square
from ._smoothing import symmetric


@dataclass(frozen=True, eq=False)
class WindowInputs:
    """Places of noise among the inputs of a window, and of known inputs, measurements, flags."""

    system: System[Any]
    noisy: list[int]  # inputs of the system with noise, which comes first, in deviations
    deviation: np.ndarray  # of the noise over a step
    names: list[str]  # of the data behind it: known inputs, then measurements
    places: dict[str, tuple[slice, int]]  # values and flag of each measurement
    empty: np.ndarray  # data of a node without measurements

    @classmethod
    def of(
        cls, system: System[Any], noisy: list[int], deviation: np.ndarray,
        sensors: Mapping[str, BoundSensor],
    ) -> WindowInputs:  # fmt: skip
        """For a system and its measurements."""
        names = [f"known.{name}" for name in system.input_names]
        empty = list(system.nominal_input)
        places: dict[str, tuple[slice, int]] = {}
        for name, bound in sensors.items():
            begin = len(noisy) + len(names)
            names += [f"y.{name}.{i}" for i in range(bound.group.nq)] + [f"has.{name}"]
            empty += [*bound.group.identity, 0.0]
            places[name] = slice(begin, begin + bound.group.nq), begin + bound.group.nq
        return cls(system, noisy, deviation, names, places, np.array(empty))

    @property
    def offset(self) -> int:
        """Number of noisy inputs, behind which the data stand."""
        return len(self.noisy)

    @property
    def size(self) -> int:
        """Number of all inputs of the window."""
        return self.offset + len(self.names)

    @property
    def known(self) -> slice:
        """Places of the system's known inputs among those of the window."""
        return slice(self.offset, self.offset + self.system.n_inputs)

    @property
    def flags(self) -> list[int]:
        """Whether there is each measurement, among the inputs of the window."""
        return [flag for _, flag in self.places.values()]

    def given(self, u: Any) -> Any:
        """All inputs of the system, from those of the window."""
        full: list[Any] = [u[self.offset + i] for i in range(self.system.n_inputs)]
        for k, i in enumerate(self.noisy):
            full[i] = full[i] + float(self.deviation[k]) * u[k]
        return ca.vertcat(*full)


@dataclass(frozen=True, eq=False)
class ArrivalCost:
    """Kalman filter in the charts of given states: means and covariances of the errors about them.

    A column has the mean of ``system.error(truth, x)`` and the lower triangle of its covariance, by
    columns; a prior has its state apart, and no mean.
    """

    inputs: WindowInputs
    sensors: Mapping[str, BoundSensor]
    robust: Collection[str]  # measurements whose weight falls where they are unlikely
    method: str | Method  # of the steps
    dt: float  # length of a step, s
    horizon: int  # steps of a window

    @property
    def system(self) -> System[Any]:
        """System of the states."""
        return self.inputs.system

    @property
    def triangle(self) -> int:
        """Entries of the triangle of a covariance."""
        return self.system.n_errors * (self.system.n_errors + 1) // 2

    def pack(self, P: np.ndarray) -> np.ndarray:
        """Lower triangle of a covariance, by columns."""
        columns, rows = np.triu_indices(len(P))
        return P[rows, columns]

    def covariance(self, column: np.ndarray) -> np.ndarray:
        """Covariance (n, n) of a column or a prior."""
        n = self.system.n_errors
        columns, rows = np.triu_indices(n)
        lower = np.zeros((n, n))
        lower[rows, columns] = column[-self.triangle :]
        return symmetric(lower)

    @cached_property
    def first(self) -> ModelFunction:
        """Column about the first state x, from the prior about its own ``mean``.

        In the chart of x the prior has the mean ``−e``, ``e = error(x, mean)``, and the covariance
        ``J_r(e) P J_r(e)ᵀ``; the measurements of the node come on top.
        """

        def build(mean: Any, prior: Any, x: Any, u: Any, p: Any) -> Any:
            e = self.system.error(x, mean)
            J = self._sides.reset_jacobian(mean, e, p)
            return self._corrected(-e, J @ self._full(prior) @ J.T, x, u, p)

        nq, size = self.system.state.nq, self.inputs.size
        return trace(
            "arrival_first", build,
            {"mean": (nq,), "prior": (self.triangle,), "x": (nq,), "u": (size,), "p": self._p},
            {"c": self._column},
        )  # fmt: skip

    @cached_property
    def step(self) -> ModelFunction:
        """Column about the next state, from that about this one, its measurements included."""
        inputs, system = self.inputs, self.system
        stepped = step_derivatives(system, self.method)

        def build(c: Any, x: Any, x_next: Any, u: Any, u_next: Any, p: Any) -> Any:
            m, P = self._split(c)
            made = stepped(0.0, x, inputs.given(u), p, self.dt)
            A, G = made.A, made.B[:, inputs.noisy] @ ca.diag(ca.DM(inputs.deviation))
            m = system.error(made.x_next, x_next) + A @ m - G @ u[: inputs.offset]
            return self._corrected(m, A @ P @ A.T + G @ G.T, x_next, u_next, p)

        nq, size = system.state.nq, inputs.size
        return trace(
            "arrival_step", build,
            {"c": self._column, "x": (nq,), "x_next": (nq,), "u": (size,), "u_next": (size,),
             "p": self._p},
            {"c_next": self._column},
        )  # fmt: skip

    @cached_property
    def steps(self) -> ModelFunction:
        """Columns about all states but the first."""
        each = ["x", "x_next", "u", "u_next"]
        return chain(self.step, self.horizon, carry=("c", "c_next"), each=each)

    @cached_property
    def moved(self) -> ModelFunction:
        """Column about a state as a prior about its own mean, and the weight of that."""

        def build(c: Any, x: Any, p: Any) -> Any:
            m, P = self._split(c)
            J = self._sides.reset_jacobian(x, m, p)
            P = J @ P @ J.T
            weight = solve_symmetric(P, ca.DM.eye(P.shape[0]))
            mean = self.system.state.normalize(self.system.retract(x, m, p))
            return [mean, self._lower(P), (weight + weight.T) / 2]

        n, nq = self.system.n_errors, self.system.state.nq
        return trace(
            "arrival_moved", build, {"c": self._column, "x": (nq,), "p": self._p},
            {"mean": (nq,), "prior": (self.triangle,), "weight": (n, n)},
        )  # fmt: skip

    @cached_property
    def alone(self) -> ModelFunction:
        """Prior after an interval of any length in which nothing is measured but the inputs u."""
        inputs, system = self.inputs, self.system
        stepped = step_derivatives(system, self.method)
        density = ca.DM(inputs.deviation * np.sqrt(self.dt))

        def build(mean: Any, prior: Any, t: Any, u: Any, p: Any, dt: Any) -> Any:
            made = stepped(t, mean, u, p, dt)
            G = made.B[:, inputs.noisy] @ ca.diag(density)
            P = made.A @ self._full(prior) @ made.A.T + G @ G.T / dt
            return [made.x_next, self._lower(P)]

        return trace(
            "arrival_alone", build,
            {"mean": (system.state.nq,), "prior": (self.triangle,), "t": (),
             "u": (system.n_inputs,), "p": self._p, "dt": ()},
            {"mean_next": (system.state.nq,), "prior_next": (self.triangle,)},
        )  # fmt: skip

    @property
    def _sides(self) -> ErrorSide:
        return ErrorSide(self.system, "left")

    @property
    def _column(self) -> tuple[int]:
        return (self.system.n_errors + self.triangle,)

    @property
    def _p(self) -> tuple[int]:
        return (self.system.n_parameters,)

    def _full(self, triangle: Any) -> Any:
        return ca.tril2symm(type(triangle)(ca.Sparsity.lower(self.system.n_errors), triangle))

    def _lower(self, P: Any) -> Any:
        return ca.project(P, ca.Sparsity.lower(P.shape[0])).nz[:]

    def _split(self, c: Any) -> tuple[Any, Any]:
        n = self.system.n_errors
        return c[:n], self._full(c[n:])

    def _corrected(self, m: Any, P: Any, x: Any, u: Any, p: Any) -> Any:
        """Column with the measurements of a node in it."""
        given, eye = self.inputs.given(u), ca.DM.eye(self.system.n_errors)
        for name, bound in self.sensors.items():
            part, flag = self.inputs.places[name]
            made = bound.derivatives(0.0, x, given, p)
            r, C = bound.group.minus(u[part], made.y), made.C
            L = bound.white_factor_at(0.0, x, given, p)
            R = L @ L.T
            if name in self.robust:
                knee = likely_square(bound.group.dim)
                R = R * ca.sqrt(1 + ca.dot(r, solve_symmetric(R, r)) / knee)
            K = solve_symmetric(C @ P @ C.T + R, C @ P).T * u[flag]
            m = m + K @ (r - C @ m)
            P = (eye - K @ C) @ P @ (eye - K @ C).T + K @ R @ K.T
        return ca.vertcat(m, self._lower(P))
