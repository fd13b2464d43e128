"""MomentumObserver: forces from outside, from the momentum and from what is known to act."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, Value, check_shape
from lgcontrol.systems import FixedParameters, System, symbols_of, values_by_name


class MomentumObserver:
    """``r = L (p − ∫ (F + Ṁ v + r) dt)`` with ``p = M(q) v``: generalized forces nobody knows of.

    Without noise ``ṙ = L (τ_external − r)``: r follows as a first-order lag, joint by joint. M and
    F are those of the system's structure, so that any mechanical system will do: in a series-
    elastic arm F has the torque through the springs, which a torque sensor may tell better than
    positions of both sides (see `update`).

    Assumptions: the model is exact, what it leaves out (friction of the links, errors of masses)
    shows as force; disturbance inputs of the system are taken as nominal, hence observed.

    Parameters
    ----------
    system : System
        With a structure.
    bandwidth : float or array_like, shape (nv,)
        L [rad/s].
    dt : float
        Period in s.
    p : mapping or array_like, optional
        The system's parameters.

    Attributes
    ----------
    force : ndarray, shape (nv,)
        r [N m, N], in the coordinates of the velocity.

    Raises
    ------
    ValueError
        If the system has no structure, or a bandwidth is not positive.

    References
    ----------
    A. De Luca, R. Mattone: Sensorless robot collision detection and hybrid force/motion control.
    ICRA 2005; A. De Luca, A. Albu-Schäffer, S. Haddadin, G. Hirzinger: Collision detection and safe
    reaction with the DLR-III lightweight manipulator arm. IROS 2006.

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm
    >>> arm = elastic_planar_arm(gravity=0.0)
    >>> observer = MomentumObserver(arm, bandwidth=50.0, dt=0.001)
    >>> x = arm.state.identity
    >>> for k in range(100):  # the upper arm speeds up, and nothing is known to push it
    ...     x[2] = 0.5 * 0.001 * k
    ...     force = observer.update(x, [0.0, 0.0])
    >>> (force / arm.structure.mass_matrix(x)[:, 0]).round(2)
    array([0.5, 0.5])
    """

    def __init__(
        self, system: System, *, bandwidth: Any, dt: float, p: FixedParameters | None = None
    ) -> None:
        if system.structure is None:
            raise ValueError(
                f"{system.name} has no structure: the observer needs its mass matrix and forces; "
                "take tree.system(…) or SeriesElastic(…).system()"
            )
        if not check_shape("dt", dt, ()) > 0:
            raise ValueError(f"dt must be positive, got {dt:g} s")
        self.system, self.dt = system, float(dt)
        known = system.structure
        nv = system.state.blocks[known.velocity].dim  # type: ignore[attr-defined]
        gain = np.asarray(bandwidth, dtype=np.float64)
        gain = check_shape("bandwidth", gain, () if gain.ndim == 0 else (nv,))
        if not (gain > 0).all():
            raise ValueError(f"bandwidth must be positive, got {bandwidth}")
        self.bandwidth = np.broadcast_to(gain, (nv,))
        self._p = values_by_name(system.parameters, system.nominal_parameters, p)
        self._function = _momentum(system)
        self.reset()

    def reset(self) -> None:
        """Forget what was observed."""
        self.force = np.zeros(len(self.bandwidth))
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def update(self, x: Any, u: Any, *, spring_torque: Any = None, t: float = 0.0) -> np.ndarray:
        """Observe a period more; returns the force from outside.

        Parameters
        ----------
        x : array_like, shape (nq,)
            State that is measured or estimated.
        u : array_like, shape (n_inputs,) or (n_controls,)
            Inputs as they acted up to now.
        spring_torque : array_like, shape (joints,), optional
            What torque sensors measured, in place of what the springs would have by their
            deflections.
        t : float
            Time in s.

        Returns
        -------
        ndarray, shape (nv,)
        """
        system, u = self.system, np.asarray(u, dtype=np.float64)
        if u.shape != (system.n_inputs,):
            u = system.full_input(u)
        x = check_shape("x", x, (system.state.nq,))
        momentum, known = self._function(t, x, u, self._p)
        if spring_torque is not None:
            known = known + self._correction(t, x, u, spring_torque)
        if self._before is not None:
            before, force = self._before
            lag = np.exp(-self.bandwidth * self.dt)
            acted = (momentum - before) / self.dt - (force + known) / 2
            self.force = lag * self.force + (1 - lag) * acted
        self._before = momentum, known
        return self.force.copy()

    def _correction(self, t: float, x: np.ndarray, u: np.ndarray, measured: Any) -> np.ndarray:
        """What measured torques add to those of the deflections, in the rows of their joints."""
        arm = getattr(self.system.structure, "model", None)
        if "spring_torque" not in self.system.quantities or arm is None:
            raise ValueError(f"{self.system.name} has no springs whose torque could be measured")
        own = self.system.quantities["spring_torque"](t, x, u, self._p)
        found = np.zeros(len(self.bandwidth))
        found[arm.mechanics.rows] = check_shape("spring_torque", measured, own.shape) - own
        return found


def _momentum(system: System) -> ModelFunction:
    """``(t, x, u, p) → M v, F + Ṁ v``; kept with the system."""
    key = ("momentum observer",)
    if key not in system._cache:
        t, x, u, p = symbols_of(system)
        known, state = system.structure, system.state
        assert known is not None
        v = x[state.coordinate_slice(known.velocity)]  # type: ignore[attr-defined]
        q = x[state.coordinate_slice(known.configuration)]  # type: ignore[attr-defined]
        group = state.blocks[known.configuration]  # type: ignore[attr-defined]
        fixed = system.symbol.sym("v", v.shape[0])
        momentum: Value = known.mass_matrix(x, p) @ fixed  # which depends on q alone
        at = system.symbol.sym("q", q.shape[0])
        where = state.coordinate_slice(known.configuration)  # type: ignore[attr-defined]
        moved = ca.vertcat(at, x[where.stop :])
        along = ca.jtimes(ca.substitute(momentum, x, moved), at, group.rate_matrix(at) @ fixed)
        change = ca.substitute(along, ca.vertcat(at, fixed), ca.vertcat(q, v))
        results = [
            ca.substitute(momentum, fixed, v), known.force(t, x, u, p) + change
        ]  # fmt: skip
        function = ca.Function(
            "momentum", [t, x, u, p], [ca.densify(ca.cse(y)) for y in results],
            ["t", "x", "u", "p"], ["momentum", "force"],
        )  # fmt: skip
        shapes = {"t": (), "x": (state.nq,), "u": (system.n_inputs,), "p": (system.n_parameters,)}
        system._cache[key] = ModelFunction(function, shapes=shapes)
    return system._cache[key]
