"""Pose graphs: poses and landmarks from what was measured between them, without a guess."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import scipy
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..codegen import Value, named_options
from ..codegen._internal import check_known, check_shape
from ..groups import SE2, SE3, LieGroup, Rn, check_element
from ..io import PoseGraph
from ._factor_graph import FactorGraph, Factors, Loss, Variables, checked_indices
from ._normal_equations import solve_definite

_GROUPS: dict[int, LieGroup] = {2: SE2, 3: SE3}
_GUESSES = ("chordal", "given")
DIGITS = 1e-6  # share of an information's largest entry that printing it may take away


@named_options
def pose_graph(
    recorded: PoseGraph, *, guess: Literal["chordal", "given"] = "chordal",
    loss: Loss | None = None,
) -> FactorGraph:  # fmt: skip
    """Graph with variables "pose" and factors "between", from a file or from arrays.

    ``r = minus(X_from⁻¹ X_to, measured)``; with landmarks, which are variables "landmark", factors
    "sight" as well, ``r = X⁻¹ l − seen``. If no pose is fixed, the first one is, where it stands.

    Parameters
    ----------
    recorded : PoseGraph
        `lgcontrol.io.read_pose_graph` reads one.
    guess : {"chordal", "given"}
        "chordal": rotations by linear least squares on matrices, then positions. It needs no guess
        and leaves few steps to be taken. "given": the poses that were given.
    loss : str, optional
        Of `Factors`.

    Raises
    ------
    ValueError
        If an edge or a sight names a pose that is not there, measures no element of the group, or
        has an information that is none. The message has its number and the poses that it joins.

    Examples
    --------
    A square of 1 m, whose last side is 1.1 m long:

    >>> from lgcontrol.io import PoseGraph
    >>> turn = SE2.from_matrix([[0, -1, 1], [1, 0, 0], [0, 0, 1]])
    >>> sides = np.array([turn] * 4)
    >>> sides[3, 0] = 1.1
    >>> square = PoseGraph(2, np.arange(4), None, np.zeros(0, dtype=int),
    ...                    np.array([[0, 1], [1, 2], [2, 3], [3, 0]]), sides,
    ...                    np.array([np.eye(3)] * 4))
    >>> found = pose_graph(square).solve()
    >>> found.x["pose"][:, :2].round(2) + 0.0
    array([[0.  , 0.  ],
           [1.  , 0.02],
           [1.01, 1.04],
           [0.01, 1.08]])

    References
    ----------
    Carlone, Tron, Daniilidis and Dellaert, Initialization techniques for 3D SLAM, ICRA 2015:
    chordal relaxation.
    """
    check_known("guess", _GUESSES, guess)
    if recorded.dimension not in _GROUPS:
        raise ValueError(f"dimension of a pose graph is 2 or 3, got {recorded.dimension!r}")
    group = _GROUPS[recorded.dimension]
    recorded = _checked(recorded, group)
    fixed = recorded.fixed if len(recorded.fixed) else np.array([0])
    _check_connected(recorded, fixed)
    poses = recorded.poses
    if guess == "given":
        if poses is None or not np.isfinite(poses).all():
            raise ValueError('the graph lacks poses; use guess="chordal"')
    else:
        poses = _chordal(group, recorded, fixed)

    def between(a: Value, b: Value, measured: Value) -> Value:
        return group.minus(group.compose(group.inverse(a), b), measured)

    def jacobians(a: Value, b: Value, measured: Value) -> list[Value]:
        step = group.compose(group.inverse(a), b)
        J = group.right_jacobian_inverse(group.minus(step, measured))
        return [-J @ group.Ad(group.inverse(step)), J]

    variables = [Variables("pose", group, poses, fixed)]
    factors = [
        Factors(
            "between", between, [("pose", end) for end in recorded.edges.T], recorded.measured,
            information=recorded.information, loss=loss, jacobians=jacobians,
        )
    ]  # fmt: skip
    if len(recorded.landmark_names):
        points = _points(group, recorded, poses, guess)
        space = Rn(recorded.dimension)
        variables.append(Variables("landmark", space, points, recorded.fixed_landmarks))
    if len(recorded.sights):
        which = list(zip(("pose", "landmark"), recorded.sights.T, strict=True))
        factors.append(
            Factors(
                "sight", lambda X, p, seen: group.act(group.inverse(X), p) - seen, which,
                recorded.seen, information=recorded.sight_information, loss=loss,
            )
        )  # fmt: skip
    return FactorGraph(variables, factors)


def _checked(graph: PoseGraph, group: LieGroup) -> PoseGraph:
    """The graph with what it measures on its group, or an error that names the edge."""
    n, d = len(graph.names), graph.dimension
    edges = _ends("edge", graph.edges, (("pose", n), ("pose", n)))
    lines = [""] * len(edges)
    if graph.lines is not None and len(graph.lines) == len(edges):
        lines = [f"line {line} of the file, " for line in graph.lines]
    joined = [f"edge {k} ({lines[k]}from pose {graph.names[a]} to pose {graph.names[b]})"
              for k, (a, b) in enumerate(edges)]  # fmt: skip
    for k in np.flatnonzero(edges[:, 0] == edges[:, 1]):
        raise ValueError(f"{joined[k]} joins a pose with itself; leave it out")
    measured = check_shape("measured", graph.measured, (len(edges), group.nq), finite=False)
    measured = [check_element(f"measured of {who}", z, group)
                for who, z in zip(joined, measured, strict=True)]  # fmt: skip
    sights = _ends("sight", graph.sights, (("pose", n), ("landmark", len(graph.landmark_names))))
    fixed = checked_indices("fixed", graph.fixed, n)
    made = replace(
        graph, edges=edges, fixed=fixed, sights=sights,
        measured=np.array(measured).reshape(-1, group.nq),
        information=_information(joined, graph.information, group.dim),
    )  # fmt: skip
    if len(graph.landmark_names):
        checked_indices("fixed_landmarks", graph.fixed_landmarks, len(graph.landmark_names))
    if not len(sights):
        return made
    seen = check_shape("seen", graph.seen, (len(sights), d), finite=False)
    looked = [f"sight {k} (of landmark {graph.landmark_names[b]} from pose {graph.names[a]})"
              for k, (a, b) in enumerate(sights)]  # fmt: skip
    for k in np.flatnonzero(~np.isfinite(seen).all(axis=1)):
        raise ValueError(f"seen of {looked[k]} = {seen[k]} is not finite; leave it out")
    return replace(
        made, seen=seen, sight_information=_information(looked, graph.sight_information, d)
    )


def _check_connected(graph: PoseGraph, fixed: np.ndarray) -> None:
    """Refuse poses and landmarks that nothing measured joins with what is fixed."""
    n, m = len(graph.names), len(graph.landmark_names)
    joins = np.concatenate([graph.edges.reshape(-1, 2), graph.sights.reshape(-1, 2) + [0, n]])
    joins = joins.astype(int)
    links = csr_array((np.ones(len(joins)), joins.T), shape=(n + m, n + m))
    part = connected_components(links, directed=False)[1]
    known = set(part[fixed]) | set(part[n + np.asarray(graph.fixed_landmarks, dtype=int)])
    seen = np.isin(part[:n], list(known))
    if not seen.all():
        lost = [str(name) for name in np.asarray(graph.names)[~seen]]
        shown = ", ".join(lost[:8]) + (", …" if len(lost) > 8 else "")
        raise ValueError(
            f"{len(lost)} of {n} poses ({shown}) are joined by no edges with a fixed pose, so that "
            "their places cannot be found: add an edge between the parts, fix a pose of each, or "
            "solve each part alone"
        )


def _ends(what: str, given: Any, ends: tuple[tuple[str, int], ...]) -> np.ndarray:
    """Rows of what edges or sights join, shape (K, 2)."""
    rows = np.asarray(given)
    if rows.ndim != 2 or rows.shape[1] != 2 or (rows.size and rows.dtype.kind not in "iu"):
        raise ValueError(
            f"{what}s must be whole numbers of shape (K, 2), got {rows.dtype} of shape {rows.shape}"
        )
    for (name, count), column in zip(ends, rows.T, strict=True):
        for k in np.flatnonzero((column < 0) | (column >= count)):
            raise ValueError(
                f"{what} {k} is of {name} row {column[k]}; there are {count} {name}s, so give a "
                f"row from 0 to {count - 1}"
            )
    return rows.astype(int)


def _information(who: list[str], given: Any, size: int) -> np.ndarray:
    """Symmetric matrices without negative eigenvalues, shape (K, size, size)."""
    Omega = check_shape("information", given, (len(who), size, size), finite=False)
    for k in np.flatnonzero(~np.isfinite(Omega).all(axis=(1, 2))):
        raise ValueError(f"information of {who[k]} is not finite; give its inverse covariance")
    largest = np.abs(Omega).max(axis=(1, 2))
    skew = np.abs(Omega - np.swapaxes(Omega, 1, 2)).max(axis=(1, 2))
    for k in np.flatnonzero(skew > DIGITS * largest):
        raise ValueError(f"information of {who[k]} is not symmetric, by {skew[k]:.3g}")
    values = np.linalg.eigvalsh(Omega)[:, 0]
    for k in np.flatnonzero(values < -DIGITS * largest):
        raise ValueError(
            f"information of {who[k]} has the eigenvalue {values[k]:.3g}, expected none below 0"
        )
    return Omega


def _points(group: LieGroup, graph: PoseGraph, poses: np.ndarray, guess: str) -> np.ndarray:
    """Of the landmarks: as given, else where they are seen first from the poses of the start."""
    size = (len(graph.landmark_names), graph.dimension)
    given = np.full(size, np.nan) if graph.landmarks is None else graph.landmarks.copy()
    for row, sight in zip(*np.unique(graph.sights[:, 1], return_index=True), strict=True):
        is_kept = guess == "given" or row in graph.fixed_landmarks
        if not (is_kept and np.isfinite(given[row]).all()):
            given[row] = group.act(poses[graph.sights[sight, 0]], graph.seen[sight])
    if not np.isfinite(given).all():
        lonely = graph.landmark_names[~np.isfinite(given).all(axis=1)]
        raise ValueError(f"landmark {lonely[0]} has no position, and no pose saw it")
    return given


def _chordal(group: LieGroup, graph: PoseGraph, fixed: np.ndarray) -> np.ndarray:
    """Poses by two linear problems; connected components without a fixed pose stand anywhere."""
    n = len(graph.names)
    a, b = graph.edges.T
    _, part = scipy.sparse.csgraph.connected_components(
        scipy.sparse.coo_matrix((np.ones(len(a)), (a, b)), (n, n)), directed=False
    )
    lonely = [np.flatnonzero(part == k)[0] for k in set(part) - set(part[fixed])]
    held = np.zeros(n, dtype=bool)
    held[np.concatenate([fixed, np.array(lonely, dtype=int)])] = True
    known = np.broadcast_to(group.identity, (n, group.nq)).copy()
    if graph.poses is not None:
        usable = held & np.isfinite(graph.poses).all(axis=1)
        known[usable] = graph.poses[usable]
    d = graph.dimension
    M = group.matrix(graph.measured)
    turn, shift = M[:, :d, :d], M[:, :d, d]
    spread = np.diagonal(graph.information, axis1=-2, axis2=-1)
    weights = [np.maximum(part.mean(axis=-1), 1e-9) for part in (spread[:, d:], spread[:, :d])]
    here = group.matrix(known)
    # rows y of the rotations: y_b = Zᵀ y_a
    columns = np.swapaxes(here[:, :d, :d], -1, -2).reshape(n * d, d)
    found = _linear(a, b, np.swapaxes(turn, -1, -2), weights[0], held, columns,
                    np.zeros((len(a) * d, d)))  # fmt: skip
    R = _nearest_rotations(np.swapaxes(found.reshape(n, d, d), -1, -2))
    # positions: p_b = p_a + R_a t
    t = (R[a] @ shift[..., None])[..., 0]
    p = _linear(a, b, np.ones((len(a), 1, 1)), weights[1], held, here[:, :d, d], t)
    made = np.broadcast_to(np.eye(d + 1), (n, d + 1, d + 1)).copy()
    made[:, :d, :d], made[:, :d, d] = R, p
    poses = group.from_matrix(made)
    poses[held] = known[held]
    return poses


def _nearest_rotations(matrices: np.ndarray) -> np.ndarray:
    """Nearest rotations, shape (..., d, d)."""
    U, _, Vt = np.linalg.svd(matrices)
    U[..., -1] *= np.sign(np.linalg.det(U @ Vt))[..., None]
    return U @ Vt


def _linear(
    a: np.ndarray, b: np.ndarray, Z: np.ndarray, weight: np.ndarray, held: np.ndarray,
    known: Any, step: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Blocks with least ``Σ w ‖y_b − Z y_a − s‖²``, those that are held as known."""
    d, n, m = Z.shape[-1], len(held), len(a)
    rows = np.arange(m * d).reshape(m, d)
    root = np.sqrt(weight)
    blocks = np.arange(d)
    at_a = scipy.sparse.coo_matrix(
        ((-root[:, None, None] * Z).ravel(),
         (np.repeat(rows[:, :, None], d, axis=2).ravel(),
          np.repeat((a[:, None] * d + blocks)[:, None, :], d, axis=1).ravel())),
        (m * d, n * d),
    )  # fmt: skip
    at_b = scipy.sparse.coo_matrix(
        (np.repeat(root, d), (rows.ravel(), (b[:, None] * d + blocks).ravel())), (m * d, n * d)
    )
    A = (at_a + at_b).tocsc()
    free = np.repeat(~held, d)
    target = np.repeat(root, d)[:, None] * step - A[:, ~free] @ known[~free]
    made = np.array(known)
    if free.any():
        N = A[:, free]
        made[free] = solve_definite(N.T @ N, N.T @ target)
    return made
