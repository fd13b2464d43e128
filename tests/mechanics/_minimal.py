"""Minimal-coordinate models of closed linkages: explicit kinematics, Lagrange's equations.

Independent of the constraints: all positions are explicit functions of the independent angles.
"""

import casadi as ca

from lgcontrol.groups import Product, Rn
from lgcontrol.systems import System


def minimal_system(closed, place, drives):
    """System in the independent angles: ``d/dt ∂L/∂ẏ − ∂L/∂y = u`` with L of the open tree.

    ``place(y)`` gives all joint coordinates of the tree, one number a joint.
    """
    tree, n = closed.tree, len(drives)
    y, w = ca.SX.sym("y", n), ca.SX.sym("w", n)
    q = place(y)
    J = ca.jacobian(q, y)
    M = J.T @ tree.mass_matrix(q) @ J
    V = tree.potential_energy(q)
    energy = ca.dot(w, M @ w) / 2
    bias = ca.jtimes(M @ w, y, w) - ca.gradient(energy, y) + ca.gradient(V, y)
    parts = ca.Function("minimal", [y, w], [M, bias])

    def field(t, x, u, p):
        M, bias = parts(x[:n], x[n:])
        return ca.vertcat(x[n:], ca.solve(M, u - bias))

    return System(
        "minimal", Product(angles=Rn(n), rates=Rn(n)), field, inputs=list(drives), symbol=ca.SX
    )


def states(closed, place, y, w):
    """State of the minimal model, and of the tree."""
    at = ca.SX.sym("y", len(y))
    q = place(at)
    f = ca.Function("place", [at], [q, ca.jacobian(q, at)])
    q, J = f(y)
    return ca.vertcat(y, w).full().ravel(), ca.vertcat(q, J @ ca.DM(w)).full().ravel()


def four_bar_place(lengths=(0.3, 0.8, 0.6), ground=0.9):
    """Angles of crank, coupler and rocker for that of the crank, elbow upwards."""
    a, b, c = lengths

    def place(y):
        # The far corner is where circles about the crank's end and the rocker's pivot meet.
        ex, ez = a * ca.cos(y), a * ca.sin(y)
        dx, dz = ground - ex, -ez
        d2 = dx**2 + dz**2
        along = (b**2 - c**2 + d2) / (2 * d2)
        up = ca.sqrt(b**2 / d2 - along**2)
        px, pz = ex + along * dx - up * dz, ez + along * dz + up * dx
        coupler = ca.atan2(pz - ez, px - ex) - y
        return ca.vertcat(y, coupler, ca.atan2(pz, px - ground))

    return place


def delta_place(base_radius=0.2, arm=0.235, rod=0.8, platform_radius=0.045):
    """Angles of arms and rods, and the platform's position, for those of the arms."""

    def place(y):
        # The platform is where three spheres meet whose centres are the elbows, moved inwards.
        centres, frames = [], []
        for k in range(3):
            c, s = ca.cos(2 * ca.pi / 3 * k), ca.sin(2 * ca.pi / 3 * k)
            R = ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])
            out = base_radius - platform_radius + arm * ca.cos(y[k])
            centres.append(R @ ca.vertcat(out, 0, -arm * ca.sin(y[k])))
            frames.append(R)
        one, two, three = centres
        # Differences of the spheres are planes: their line, and the lower point on it.
        n1, n2 = two - one, three - one
        d1 = (ca.sumsqr(two) - ca.sumsqr(one)) / 2
        d2 = (ca.sumsqr(three) - ca.sumsqr(one)) / 2
        along = ca.cross(n1, n2)
        base = (d1 * ca.cross(n2, along) + d2 * ca.cross(along, n1)) / ca.sumsqr(along)
        away = base - one
        A, B, C = ca.sumsqr(along), ca.dot(along, away), ca.sumsqr(away) - rod**2
        root = ca.sqrt(B**2 - A * C)
        low = ca.if_else(along[2] > 0, (-B - root) / A, (-B + root) / A)
        platform = base + low * along
        angles = []
        for k in range(3):
            direction = frames[k].T @ (platform - centres[k]) / rod
            # In the arm's frame, which is turned about y by the arm's angle.
            c, s = ca.cos(y[k]), ca.sin(y[k])
            x = c * direction[0] - s * direction[2]
            z = s * direction[0] + c * direction[2]
            # Turned about y by the first angle, then about z: (cos a cos b, sin b, −sin a cos b).
            angles += [y[k], ca.atan2(-z, x), ca.asin(direction[1])]
        return ca.vertcat(*angles, platform)

    return place
