"""Figures of S. Holzinger, J. Gerstmayr, J. Schöberl: the unstable rotation of a box."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np

from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import RigidBody, SpatialInertia
from lgcontrol.mechanics.representations import UnifiedVelocity

from ._paper import Claim, Paper, Reproduction, in_space, sheet

INERTIA = (5.2988, 1.1775, 4.3568)  # kg m²
OMEGA = (0.01, 0.0, 100.0)  # at the start [rad/s]
# After 1 s, by a Taylor series with 50 digits: doubles lose five digits to the flips.
OMEGA_END = (5.862162832632921, 6.769011439155637, -99.72873950308943)
FINE = 5120  # steps of the curves
STEPS = (80, 160, 320, 640, 1280, 2560, 5120)
FITTED = slice(1, 5)  # 1/160 to 1/1280 s: before them the flips are missed, after them rounding
BOUND = 1e-13  # of |det R − 1|, in the paper
LARGEST = 0.0581  # difference of the errors of both methods, in the paper [rad/s]


def rotation_step(
    inertia: np.ndarray, omega: np.ndarray, h: float
) -> tuple[np.ndarray, np.ndarray]:
    """RK4 of Munthe and Kaas for Euler's equations: the next ω and the rotation vector of the step.

    `inertia` are the principal moments, ω is in body axes.
    """

    def f(omega: np.ndarray) -> np.ndarray:
        return np.cross(inertia * omega, omega) / inertia

    back = SO3.right_jacobian_inverse
    k1, K1 = h * f(omega), h * omega
    k2, K2 = h * f(omega + k1 / 2), h * back(K1 / 2) @ (omega + k1 / 2)
    k3, K3 = h * f(omega + k2 / 2), h * back(K2 / 2) @ (omega + k2 / 2)
    k4, K4 = h * f(omega + k3), h * back(K3) @ (omega + k3)
    return omega + (k1 + 2 * k2 + 2 * k3 + k4) / 6, (K1 + 2 * K2 + 2 * K3 + K4) / 6


def plain_rotation(q: np.ndarray) -> np.ndarray:
    """Rotation matrix of a quaternion [x, y, z, w] as the formula has it, whatever its norm."""
    x, y, z, s = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * s), 2 * (x * z + y * s)],
            [2 * (x * y + z * s), 1 - 2 * (x * x + z * z), 2 * (y * z - x * s)],
            [2 * (x * z - y * s), 2 * (y * z + x * s), 1 - 2 * (x * x + y * y)],
        ]
    )


@lru_cache
def _run(steps: int) -> np.ndarray:
    """Poses and twists over 1 s in the six speeds of the box, by RK4."""
    body = RigidBody("box", SE3, SpatialInertia(1.0, np.zeros(3), np.diag(INERTIA)))
    unified = UnifiedVelocity.hexahedral()
    x = body.state.join(pose=SE3.identity, twist=[0, 0, 0, *OMEGA])
    form = body.velocity_form(unified)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*diverged")
        system = body.system(velocity=unified)
        run = system.rollout(form.from_velocity(x), None, 1 / steps, steps=steps, method="rk4")
    return form.to_velocity(run.x)


@lru_cache
def _rotations(steps: int) -> tuple[float, np.ndarray, np.ndarray]:
    """Error of ω after 1 s, and |det R − 1| at all steps: of matrices and of quaternions.

    The quaternions are those of Terze, Müller and Zlatar (2016), without normalization.
    """
    inertia, omega = np.array(INERTIA), np.array(OMEGA)
    R, q = np.eye(3), SO3.identity
    off = np.zeros((2, steps))
    for k in range(steps):
        omega, increment = rotation_step(inertia, omega, 1 / steps)
        turn = SO3.exp(increment)
        R, q = R @ SO3.matrix(turn), SO3.compose(q, turn)
        off[:, k] = np.abs([np.linalg.det(R) - 1, np.linalg.det(plain_rotation(q)) - 1])
    return float(np.linalg.norm(omega - OMEGA_END)), off[0], off[1]


def figure_7() -> Reproduction:
    """Figure 7: path of the point (0, 0, 1) of the body."""
    point = _point()
    figure, (axis,) = sheet(1, projection="3d")
    axis.plot(*point.T, linewidth=0.5)
    axis.set(title="path of (0, 0, 1)", xlabel="x [m]", ylabel="y [m]", zlabel="z [m]")
    in_space(axis)
    radius = np.linalg.norm(point, axis=1)
    rows = Claim("distance from the centre [m]", "1", float(radius.max()), 1 - 1e-9, 1 + 1e-9)
    return Reproduction(figure, (rows,))


def figure_8() -> Reproduction:
    """Figure 8: position of that point."""
    point = _point()
    figure, (axis,) = sheet(1)
    axis.plot(np.linspace(0, 1, FINE + 1), point, linewidth=0.8, label=list("xyz"))
    axis.set(title="position of (0, 0, 1)", xlabel="t [s]", ylabel="m")
    axis.legend()
    low, high = float(point[:, 2].min()), float(point[:, 2].max())
    return Reproduction(
        figure,
        (
            Claim("highest z [m]", "1", high, 0.99, 1.01),
            Claim("lowest z [m]", "-1", low, -1.01, -0.99),
        ),
    )


def figure_9() -> Reproduction:
    """Figure 9: angular velocity in body axes."""
    omega = _run(FINE)[:, 10:]
    figure, (axis,) = sheet(1)
    axis.plot(np.linspace(0, 1, FINE + 1), omega, linewidth=0.8, label=list("xyz"))
    axis.set(title="angular velocity", xlabel="t [s]", ylabel="rad/s")
    axis.legend()
    flips = int(np.count_nonzero(np.diff(np.sign(omega[:, 2]))))
    momentum = np.linalg.norm(omega * INERTIA, axis=1)
    drift = float(np.abs(momentum / momentum[0] - 1).max())
    return Reproduction(
        figure,
        (
            Claim("flips in 1 s", "the body flips over", float(flips), 1),
            Claim("drift of the angular momentum, share", "none, no torques act", drift, 0, 1e-6),
        ),
    )


def figure_10() -> Reproduction:
    """Figure 10: determinant of the rotation matrix in time."""
    what = "largest |det R − 1|"
    _, matrix, quaternion = _rotations(FINE)
    figure, (axis,) = sheet(1)
    t = np.linspace(0, 1, FINE + 1)[1:]
    axis.plot(t, matrix, linewidth=0.6, label="matrix")
    axis.plot(t, quaternion, linewidth=0.6, label="quaternion")
    axis.set(title=f"h = 1/{FINE} s", xlabel="t [s]", ylabel="|det R − 1|")
    axis.legend()
    return Reproduction(
        figure,
        (
            Claim(f"{what}, matrix", "a curve without numbers", float(matrix.max())),
            Claim(
                f"{what}, quaternion", "a curve without numbers", float(quaternion.max())
            ),
        ),
    )  # fmt: skip


def figure_11() -> Reproduction:
    """Figure 11: error of the angular velocity against the step."""
    ours = np.array([np.linalg.norm(_run(n)[-1, 10:] - OMEGA_END) for n in STEPS])
    other = np.array([_rotations(n)[0] for n in STEPS])
    h = 1 / np.array(STEPS)
    figure, (axis,) = sheet(1)
    axis.loglog(h, ours, "o-", label="six speeds")
    axis.loglog(h, other, "x--", label="quaternion")
    axis.set(title="error of ω after 1 s", xlabel="h [s]", ylabel="rad/s")
    axis.legend()
    slope = float(np.polyfit(np.log(h[FITTED]), np.log(ours[FITTED]), 1)[0])
    apart = float(np.abs(ours - other).max())
    return Reproduction(
        figure,
        (
            Claim("order from 1/160 to 1/1280 s", "4", slope, 3.9, 4.1),
            Claim("largest difference of both methods [rad/s]", f"{LARGEST}", apart, 0, LARGEST),
        ),
    )


def figure_12() -> Reproduction:
    """Figure 12: determinant of the rotation matrix against the step."""
    ends = np.array([[row.max() for row in _rotations(n)[1:]] for n in STEPS])
    h = 1 / np.array(STEPS)
    figure, (axis,) = sheet(1)
    axis.loglog(h, ends[:, 0], "o-", label="matrix")
    axis.loglog(h, ends[:, 1], "x--", label="quaternion")
    axis.set(title="within 1 s", xlabel="h [s]", ylabel="largest |det R − 1|")
    axis.legend()
    slopes = np.polyfit(np.log(h), np.log(ends), 1)[0]
    return Reproduction(
        figure,
        (
            Claim("largest, matrix", "below 1e-13", float(ends[:, 0].max()), 0, BOUND),
            Claim("largest, quaternion", "below 1e-13", float(ends[:, 1].max()), 0, BOUND),
            Claim(
                "quaternion over matrix, least of all steps", "the matrix slightly better",
                float((ends[:, 1] / ends[:, 0]).min()), 1.0,
            ),
            Claim(
                "rate of the quaternion less that of the matrix", "slightly higher",
                float(slopes[1] - slopes[0]), 0.05,
            ),
        ),
    )  # fmt: skip


def _point() -> np.ndarray:
    """Ways of the point (0, 0, 1) of the body [m]."""
    made: Any = SE3.act(_run(FINE)[:, :7], np.array([0.0, 0.0, 1.0]))
    return made


PAPER = Paper(
    "S. Holzinger, J. Gerstmayr, J. Schöberl: A rigid body formulation with non-redundant unified "
    "local velocity coordinates",
    {
        "7": figure_7,
        "8": figure_8,
        "9": figure_9,
        "10": figure_10,
        "11": figure_11,
        "12": figure_12,
    },
)
