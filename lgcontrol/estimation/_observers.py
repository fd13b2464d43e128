"""MomentumObserver: forces from outside, of the momentum that the model does not explain."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, trace
from ..codegen import compile as compile_functions
from ..codegen._internal import check_shape
from ..groups import Product
from ..systems import System
from ..systems._internal import check_state, complete_parameters


class MomentumObserver:
    """Generalized forces from outside: ``d(M v)/dt = F + Ṁ v + τ``, low-pass filtered.

    Needs no accelerations: over an interval, what the momentum ``M(q) v`` gained beyond the model's
    ``F + Ṁ v`` is the mean τ. The residual r follows it with a bandwidth, ``ṙ = k (τ − r)``. The
    tree may be fixed, floating (τ then begins with the wrench at the base, in the base's frame) or
    have springs in its joints. The torques of springs then act on the links. M and F are those of
    the system's structure, with friction, damping and the inputs in F. What the model leaves out
    shows as force; disturbance inputs are taken as nominal, hence observed.

    Parameters
    ----------
    system : System
        With a `structure`, as trees and bodies make it.
    bandwidth : float or array_like, shape (nv,)
        k in rad/s: of the residual of each velocity.
    p : array_like or mapping, optional
        Parameters of the system.

    Attributes
    ----------
    residual : ndarray, shape (nv,)
        r: estimate of the generalized forces from outside.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> arm = Multibody().add_body("link", SpatialInertia.point_mass(2.0, [1, 0, 0]), "revolute",
    ...                            axis="y")
    >>> swing = arm.system()
    >>> observer, x = MomentumObserver(swing, bandwidth=50.0), np.array([0.2, 0.0])
    >>> touched = swing.full_input([3.0 + 0.5])  # half a newton metre is from outside
    >>> for k in range(200):
    ...     _ = observer(0.001 * k, x, [3.0])
    ...     x = swing.step()(0.0, x, touched, [], 0.001)
    >>> observer.residual.round(3)
    array([0.5])

    References
    ----------
    De Luca, Albu-Schäffer, Haddadin and Hirzinger, Collision detection and safe reaction with the
    DLR-III lightweight manipulator arm, IROS 2006.
    """

    def __init__(self, system: System[Any], bandwidth: Any, *, p: Any = None) -> None:
        structure = system.structure
        if structure is None:
            raise ValueError(
                f"{system.name} does not say what its masses and forces are: give the system of a "
                "tree or a body, or one with a structure"
            )
        assert isinstance(system.state, Product)  # as structures have it
        self.system = system
        self.p: np.ndarray = complete_parameters(system, p)
        n = system.state.blocks[structure.velocity].dim
        given = np.asarray(bandwidth, dtype=np.float64)
        self.bandwidth: np.ndarray = check_shape(
            "bandwidth", np.broadcast_to(given, (n,)) if not given.ndim else given, (n,)
        )
        if (self.bandwidth <= 0).any():
            raise ValueError(f"bandwidth must be positive, got {bandwidth}")
        self.reset()

    def reset(self) -> None:
        """Nothing from outside, nothing seen yet."""
        self.residual: np.ndarray = np.zeros(len(self.bandwidth))
        self._before: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None

    @cached_property
    def momentum(self) -> ModelFunction:
        """``(t, x, u, p) → momentum, rate``: ``M v`` and ``F + Ṁ v``, what the model expects."""
        system, structure = self.system, self.system.structure
        assert structure is not None and isinstance(system.state, Product)
        state = system.state
        own = state.coordinate_slice(structure.velocity)
        q = state.coordinate_slice(structure.configuration)
        group = state.blocks[structure.configuration]

        def build(t: Any, x: Any, u: Any, p: Any) -> list[Any]:
            v = x[own]
            held = ca.SX.sym("v", v.shape[0])  # M v changes by its M alone
            there = ca.SX.sym("q", group.nq)
            at = ca.vertcat(x[: q.start], there, x[q.stop :])
            momentum = structure.mass_matrix(at, p) @ held
            along = ca.jtimes(momentum, there, group.rate_matrix(there) @ held)
            made = ca.substitute([momentum, along], [held, there], [v, x[q]])
            return [made[0], structure.force(t, x, u, p) + made[1]]

        shapes = {"t": (), "x": (state.nq,), "u": (system.n_inputs,), "p": (system.n_parameters,)}
        return trace(f"{system.name}_momentum", build, shapes, ["momentum", "rate"])

    def compile(self) -> None:
        """Build machine code for calls one at a time."""
        compile_functions(self.momentum, batch=False)

    def __call__(self, t: float, x: Any, u: Any, *, spring_torque: Any = None) -> np.ndarray:
        """Residual at a time, of the state there and the inputs held since the call before.

        Parameters
        ----------
        t : float
            s; times that do not go on begin anew with the residual as it is.
        x : array_like, shape (nq,)
            Measured or estimated. Where it is not finite the residual stays, and the next
            interval reaches back to the last state that was. It stays as well where what the model
            expects of a state is not finite.
        u : array_like, shape (n_inputs,) or (n_controls,)
        spring_torque : array_like, shape (joints,), optional
            What torque sensors in a series-elastic arm measured, in place of what the springs have
            by their deflections.

        Returns
        -------
        ndarray, shape (nv,)
        """
        x, u = np.asarray(x, dtype=np.float64), np.asarray(u, dtype=np.float64)
        if len(u) != self.system.n_inputs:
            u = self.system.full_input(u)
        if not (np.isfinite(x).all() and np.isfinite(u).all() and np.isfinite(t)):
            return self.residual.copy()
        x = check_state(self.system, "x", x)
        end = self.momentum(t, x, u, self.p)
        sensed = self._sensed(t, x, u, spring_torque)
        if self._before is not None:
            before, gained, state, sensed_before = self._before
            dt = t - before
            if dt > 0:
                begin = self.momentum(before, state, u, self.p)
                expected = begin.rate + end.rate + sensed_before + sensed
                mean = (end.momentum - gained) / dt - expected / 2
                share = -np.expm1(-self.bandwidth * dt)
                later = self.residual + share * (mean - self.residual)
                self.residual = later if np.isfinite(later).all() else self.residual
        self._before = float(t), end.momentum.copy(), x, sensed
        return self.residual.copy()

    def _sensed(self, t: float, x: np.ndarray, u: np.ndarray, measured: Any) -> np.ndarray:
        """What measured torques add to those of the deflections, in the rows of their joints."""
        found = np.zeros(len(self.residual))
        if measured is None:
            return found
        arm = getattr(self.system.structure, "model", None)
        if "spring_torque" not in self.system.quantities or arm is None:
            raise ValueError(f"{self.system.name} has no springs whose torque could be measured")
        own = self.system.quantities["spring_torque"](t, x, u, self.p)
        found[arm.mechanics.rows] = check_shape("spring_torque", measured, own.shape) - own
        return found

    def wrench(self, jacobian: Any) -> np.ndarray:
        """The wrench at a frame that explains the residual best, ``min ‖Jᵀ W − r‖``.

        Parameters
        ----------
        jacobian : array_like, shape (m, nv)
            Of the frame at the last state, ``tree.jacobian(frame)(q)``: six rows, or those of the
            forces that there may be.

        Returns
        -------
        ndarray, shape (m,)
            ``[f; m]`` in the frame of the Jacobian; of what joints cannot feel, nothing.
        """
        J = check_shape("jacobian", jacobian, (None, len(self.residual)))
        return np.linalg.lstsq(J.T, self.residual, rcond=1e-9)[0]
