"""Level set of a regulator's cost within which saturated, sampled feedback reduces it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..codegen import named_options
from ..controllers import LQR

SCALES = 60  # distances at which each direction is looked at
LARGEST_TURN = 3.0  # rad: beyond π error coordinates of rotations name other states
SUBSTEPS = 4
STAYS = 1e-6  # of the error after one sample at an equilibrium


@dataclass(frozen=True)
class AttractionLevel:
    """A level set ``eᵀ P e ≤ level`` and how far it is certified.

    Attributes
    ----------
    level : float
    P : ndarray, shape (n, n)
    directions : int
        Lines from the reference along which every sampled point of the set loses cost in a sample.
    share, confidence : float
        With this confidence at most that share of all directions has a sampled distance at which
        the cost does not fall. It is a statement of samples, no proof.
    limiting : ndarray, shape (n,), or None
        Error at which the cost first does not fall; None where nothing limited the search.
    """

    level: float
    P: np.ndarray
    directions: int
    share: float
    confidence: float
    limiting: np.ndarray | None

    def contains(self, error: np.ndarray) -> np.ndarray:
        """Whether errors, shape (..., n), are within the set."""
        error = np.asarray(error, dtype=np.float64)
        return np.einsum("...i,ij,...j->...", error, self.P, error) <= self.level

    def __str__(self) -> str:
        return (
            f"eᵀ P e ≤ {self.level:.4g}: the cost falls along {self.directions} directions; with "
            f"{self.confidence:.0%} confidence along all but {100 * self.share:.2g} % of them"
        )


@named_options
def attraction_level(
    law: LQR,
    *,
    largest: float = 1e3,
    directions: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
) -> AttractionLevel:
    """Largest level set of an LQR's cost to go in which sampled states lose cost.

    The loop is the law's own: sampled, with inputs clipped to their bounds, on the nonlinear model
    and without delay. Along each direction distances grow by equal factors, until the cost does not
    fall from one sample to the next. The shortest such distance gives the level.

    Parameters
    ----------
    law : LQR
        About an equilibrium.
    largest : float
        Largest length of the error that is looked at, in the units of the error coordinates.
    directions : int
        Random directions, uniform on the level set.
    confidence : float
    seed : int

    Returns
    -------
    AttractionLevel

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import Input, System
    >>> falling = System("falling", Rn(1), lambda t, x, u, p: x + u, inputs=[Input("u", "", -1, 1)])
    >>> found = attraction_level(LQR(falling, [0.0], Q=1.0, R=1.0))  # from |x| < 1 it comes back
    >>> bool(0.85 < np.sqrt(found.level / found.P[0, 0]) <= 1.0)
    True
    """
    if directions < 1 or not 0 < confidence < 1 or not largest > 0:
        raise ValueError(
            "attraction_level needs directions ≥ 1, 0 < confidence < 1 and largest > 0, got "
            f"{directions}, {confidence} and {largest}"
        )
    system, P = law.system, law.regulator.P
    x_ref, u_ref = law.regulator.x, law.regulator.u
    rng, p = np.random.default_rng(seed), system.nominal_parameters
    step = system.step("rk4", SUBSTEPS)
    moved = system.error(step(0.0, x_ref, u_ref, p, law.dt), x_ref)
    if np.abs(moved).max() > STAYS:
        raise ValueError("attraction_level needs an LQR about an equilibrium, not along a motion")
    sphere = rng.normal(size=(directions, len(P)))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    ways = np.linalg.solve(np.linalg.cholesky(P).T, sphere.T).T  # eᵀ P e = 1
    turning = [k for k, unit in enumerate(system.error_units) if unit == "rad"]
    reach = largest / np.linalg.norm(ways, axis=1)
    if turning:
        angle = np.linalg.norm(ways[:, turning], axis=1)
        reach = np.minimum(reach, LARGEST_TURN / np.maximum(angle, 1e-12))
    controls, (lower, upper) = system.input_index("control"), system.input_bounds
    top = float(reach.min())
    best, limiting = top, None
    for scale in top * np.geomspace(1e-3, 1.0, SCALES):
        error = scale * ways
        u = np.tile(u_ref, (directions, 1))
        u[:, controls] -= error @ law.K.T
        x = system.retract(np.tile(x_ref, (directions, 1)), error)
        after = step(0.0, x, np.clip(u, lower, upper), p, law.dt)
        left = system.error(after, x_ref)
        cost = np.einsum("ni,ij,nj->n", left, P, left)
        grows = ~(cost < scale**2)
        if grows.any():
            limiting = error[int(np.argmax(grows))]
            best = scale * 1e-3 ** (1 / (SCALES - 1))  # the distance before
            break
    share = 1.0 - (1.0 - confidence) ** (1.0 / directions)
    return AttractionLevel(float(best**2), P, directions, share, confidence, limiting)
