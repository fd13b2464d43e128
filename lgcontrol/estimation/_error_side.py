"""ErrorSide: errors of an estimate on its left or on its right, and how they change charts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import check_known
from ..systems import System

Error = Literal["left", "right"]
"""Where an error stands: ``X = X̂ exp(ε)`` (left-invariant), or ``X = exp(ε) X̂`` (right-)."""


@dataclass(frozen=True)
class ErrorSide:
    """Errors of estimates of a system's state; left ones are in its error coordinates."""

    system: System[Any]  # without constraints for right errors
    error: Error  # {"left", "right"}

    def __post_init__(self) -> None:
        check_known("error", get_args(Error), self.error)
        if self.error == "right" and self.system.errors is not None:
            raise ValueError(
                f"{self.system.name} has constraints, whose error coordinates are left-invariant; "
                'use error="left"'
            )

    def retracted(self, x: Value, d: Value, p: Value) -> Value:
        """State at an error d from x."""
        state = self.system.state
        if self.error == "right":
            return state.compose(state.exp(d), x)
        return self.system.retract(x, d, p)

    def to_left(self, x: Value) -> Value:
        """Matrix that takes errors of this side to error coordinates of the system."""
        state = self.system.state
        if self.error == "left":
            return ca.DM.eye(self.system.n_errors)
        return state.Ad(state.inverse(x))

    def reset_jacobian(self, x: Value, d: Value, p: Value) -> Value:
        """Derivative of the error about the corrected estimate by that about x."""
        system, state = self.system, self.system.state
        if self.error == "right":
            return state.left_jacobian(d)
        if system.errors is None:
            return state.right_jacobian(d)
        N = system.error_basis(x, p)
        return ca.DM(system.error_selection) @ state.right_jacobian(N @ d) @ N

    def reset_jacobian_inverse(self, x: Value, d: Value, p: Value) -> Value:
        """Inverse of `reset_jacobian`, with the basis at x on constrained systems."""
        system, state = self.system, self.system.state
        if self.error == "right":
            return state.left_jacobian_inverse(d)
        if system.errors is None:
            return state.right_jacobian_inverse(d)
        N = system.error_basis(x, p)
        return ca.DM(system.error_selection) @ state.right_jacobian_inverse(N @ d) @ N

    def difference(self, a: Value, b: Value) -> Value:
        """Error of a about b."""
        state = self.system.state
        if self.error == "right":
            return state.log(state.compose(a, state.inverse(b)))
        return self.system.error(a, b)

    def to_system(self, x: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Covariances (..., n, n) in error coordinates of the system, from those of this side."""
        if self.error == "left":
            return P
        back = self.system.state.Ad(self.system.state.inverse(x))
        return back @ P @ np.swapaxes(back, -1, -2)

    def from_system(self, x: np.ndarray, P: np.ndarray) -> np.ndarray:
        """Covariances (..., n, n) of this side, from those in error coordinates of the system."""
        if self.error == "left":
            return P
        forth = self.system.state.Ad(x)
        return forth @ P @ np.swapaxes(forth, -1, -2)
