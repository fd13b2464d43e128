"""Pose graphs in the text formats of g2o and TORO: poses, landmarks, what was measured of them."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from ._archive import check_kind

LARGEST_TEXT = 2**28  # bytes of text that are read, unpacked
LONGEST_LINE = 4096
_NUMBERS = frozenset("0123456789+-.eE")
_SEMIDEFINITE = 1e-9  # eigenvalues of an information may be negative by this share: printed digits


@dataclass(frozen=True, eq=False)
class PoseGraph:
    """Poses and landmarks, and what was measured between them, with its information.

    Attributes
    ----------
    dimension : int
        2 or 3.
    names : ndarray of int, shape (N,)
        Numbers of the poses in the file, ascending.
    poses : ndarray, shape (N, 4) or (N, 7), or None
        [x, y, cos, sin] or [x, y, z, qx, qy, qz, qw]; NaN where the file has none, None if it has
        none at all.
    fixed : ndarray of int
        Rows of the poses that are known.
    edges : ndarray of int, shape (K, 2)
        Rows of the poses, from and to.
    measured : ndarray, shape (K, 4) or (K, 7)
        ``X_from⁻¹ X_to``.
    information : ndarray, shape (K, 3, 3) or (K, 6, 6)
        Inverse covariances in tangent coordinates, [v; ω] in the frame of "to".
    landmark_names : ndarray of int, shape (L,)
        Numbers of the landmarks in the file, ascending; no landmarks if left out.
    landmarks : ndarray, shape (L, d), or None
        Positions in the world; NaN where the file has none, None if it has none at all.
    fixed_landmarks : ndarray of int
        Rows of the landmarks that are known.
    sights : ndarray of int, shape (S, 2)
        Rows of a pose and of the landmark that was seen from it.
    seen : ndarray, shape (S, d)
        ``X⁻¹ l``: where, in the frame of the pose.
    sight_information : ndarray, shape (S, d, d)
        Inverse covariances of that.
    lines : ndarray of int, shape (K,), or None
        Line of each edge in the file that it was read from; messages name it.
    """

    dimension: int
    names: np.ndarray
    poses: np.ndarray | None
    fixed: np.ndarray
    edges: np.ndarray
    measured: np.ndarray
    information: np.ndarray
    landmark_names: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    landmarks: np.ndarray | None = None
    fixed_landmarks: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    sights: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=int))
    seen: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    sight_information: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 0)))
    lines: np.ndarray | None = None


class _Line(NamedTuple):
    """What stands on a line behind its word: how many whole numbers, and how many others."""

    what: str
    dimension: int
    numbers: int
    values: int


_KINDS = {
    "VERTEX2": _Line("pose", 2, 1, 3),
    "VERTEX_SE2": _Line("pose", 2, 1, 3),
    "VERTEX3": _Line("pose", 3, 1, 6),
    "VERTEX_SE3:QUAT": _Line("pose", 3, 1, 7),
    "EDGE2": _Line("edge", 2, 2, 9),
    "EDGE_SE2": _Line("edge", 2, 2, 9),
    "EDGE3": _Line("edge", 3, 2, 27),
    "EDGE_SE3:QUAT": _Line("edge", 3, 2, 28),
    "VERTEX_XY": _Line("landmark", 2, 1, 2),
    "VERTEX_TRACKXYZ": _Line("landmark", 3, 1, 3),
    "EDGE_SE2_XY": _Line("sight", 2, 2, 5),
    "EDGE_SE3_TRACKXYZ": _Line("sight", 3, 3, 9),
    "PARAMS_SE3OFFSET": _Line("sensor", 3, 1, 7),
    "EQUIV": _Line("same", 0, 2, 0),
    "FIX": _Line("fix", 0, 1, 0),
}
# EDGE2 of TORO lists xx, xy, yy, θθ, xθ, yθ; all others the upper triangle by rows
_TORO_PLANAR = ((0, 0, 1, 2, 0, 1), (0, 1, 1, 2, 2, 2))


def read_pose_graph(path: str | PathLike[str]) -> PoseGraph:
    """Read a graph of g2o (``VERTEX_SE3:QUAT``, …) or TORO (``EDGE3``, …), gzipped or not.

    Landmarks are those of ``EDGE_SE2_XY`` and ``EDGE_SE3_TRACKXYZ``; where the sensor is in the
    body (``PARAMS_SE3OFFSET``) is taken into what it saw.

    Poses that the file declares equal (``EQUIV``) become one; edges between these are left out.
    Information is taken as that of rotation vectors, as gtsam does, also of g2o files. Their own
    program has it of the quaternion's vector part, half as long.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    PoseGraph

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a line is not understood; the message says which, and why.

    References
    ----------
    Kümmerle, Grisetti, Strasdat, Konolige and Burgard, g2o: a general framework for graph
    optimization, ICRA 2011. Grisetti, Stachniss and Burgard, Nonlinear constraint network
    optimization for efficient map learning (TORO), IEEE T-ITS 10(3), 2009.
    """
    check_kind("read_pose_graph", "path", path, (str, PathLike))
    path = Path(path)
    reader = _GraphReader(path)
    for number, line in enumerate(_lines(path), 1):
        words = line.split()
        if words and not words[0].startswith("#"):
            reader.take(number, words)
    return reader.graph()


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    with open(path, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    opened = gzip.open(path, "rb") if is_packed else open(path, "rb")
    try:
        with opened as file:
            data = file.read(LARGEST_TEXT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no whole gzip file: {error}") from None
    if len(data) > LARGEST_TEXT:
        raise ValueError(f"{path} holds more than {LARGEST_TEXT / 2**20:,.0f} MiB of text")
    try:
        return data.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: {error}") from None


class _Edge(NamedTuple):
    """A line of an edge, not checked yet; of sights, the number of the sensor or none."""

    line: int
    word: str
    begin: int
    end: int
    measured: np.ndarray
    upper: np.ndarray
    sensor: int | None = None


class _GraphReader:
    """Takes line after line, and puts the graph together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dimension = 0
        self.poses: dict[int, np.ndarray] = {}
        self.edges: list[_Edge] = []
        self.landmarks: dict[int, np.ndarray] = {}
        self.sights: list[_Edge] = []
        self.sensors: dict[int, np.ndarray] = {}
        self.same: list[tuple[int, int]] = []
        self.fixed: list[int] = []

    def take(self, line: int, words: list[str]) -> None:
        """Understand one line."""
        where, word = f"{self.path}, line {line}", words[0]
        if sum(map(len, words)) > LONGEST_LINE:
            raise ValueError(f"{where}: longer than {LONGEST_LINE} characters")
        if word not in _KINDS:
            raise ValueError(f"{where}: unknown word {word[:40]!r}; known are {', '.join(_KINDS)}")
        kind = _KINDS[word]
        if len(words) != 1 + kind.numbers + kind.values:
            raise ValueError(
                f"{where}: {word} needs {kind.numbers} whole numbers, which are names, and "
                f"{kind.values} numbers, got {len(words) - 1} words"
            )
        if kind.dimension:
            if self.dimension not in (0, kind.dimension):
                raise ValueError(
                    f"{where}: {word} is of {kind.dimension} dimensions, lines before it of "
                    f"{self.dimension}"
                )
            self.dimension = kind.dimension
        names = [self._name(where, text) for text in words[1 : 1 + kind.numbers]]
        values = self._values(where, words[1 + kind.numbers :])
        if kind.what == "fix":
            self.fixed.append(names[0])
        elif kind.what == "same":
            self.same.append((names[0], names[1]))
        elif kind.what in ("pose", "landmark", "sensor"):
            there = {"pose": self.poses, "landmark": self.landmarks, "sensor": self.sensors}
            taken = there.pop("sensor")  # sensors have names of their own
            for own in (taken,) if kind.what == "sensor" else there.values():
                if names[0] in own:
                    raise ValueError(f"{where}: {kind.what} {names[0]} was there before")
            is_point = kind.what == "landmark"
            given = values if is_point else self._coordinates(where, values)
            (taken if kind.what == "sensor" else there[kind.what])[names[0]] = given
        elif kind.what == "sight":
            d = kind.dimension
            sensor = names[2] if kind.numbers == 3 else None
            ends = names[0], names[1]
            self.sights.append(_Edge(line, word, *ends, values[:d], values[d:], sensor))
        else:
            if names[0] == names[1]:
                raise ValueError(f"{where}: the edge leads from {names[0]} to itself")
            size = {2: 3, 3: 6 if word == "EDGE3" else 7}[kind.dimension]
            pose = self._coordinates(where, values[:size])
            self.edges.append(_Edge(line, word, names[0], names[1], pose, values[size:]))

    @staticmethod
    def _name(where: str, text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise ValueError(f"{where}: {text[:40]!r} is no whole number, which names a pose")
        return int(text)

    @staticmethod
    def _values(where: str, words: list[str]) -> np.ndarray:
        for text in words:
            if not _NUMBERS.issuperset(text):
                raise ValueError(f"{where}: {text[:40]!r} is no finite decimal number")
        try:
            values = np.array([float(text) for text in words])
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if not np.isfinite(values).all():
            raise ValueError(f"{where}: a number is too large for a double")
        return values

    @staticmethod
    def _coordinates(where: str, values: np.ndarray) -> np.ndarray:
        if len(values) == 3:
            x, y, angle = values
            return np.array([x, y, np.cos(angle), np.sin(angle)])
        if len(values) == 6:
            return np.concatenate([values[:3], _quaternion(*values[3:])])
        length = np.linalg.norm(values[3:])
        if not 0.99 < length < 1.01:
            raise ValueError(
                f"{where}: the quaternion (x, y, z, w) has length {length:.3g}, expected 1"
            )
        return np.concatenate([values[:3], values[3:] / length])

    def _informations(self, edges: list[_Edge], size: int) -> np.ndarray:
        """Symmetric matrices of what stands on the lines, shape (K, n, n)."""
        upper = np.reshape([edge.upper for edge in edges], (len(edges), size * (size + 1) // 2))
        by_rows = np.triu_indices(size)
        made = np.zeros((len(upper), size, size))
        for places, some in (
            (by_rows, [edge.word != "EDGE2" for edge in edges]),
            (_TORO_PLANAR, [edge.word == "EDGE2" for edge in edges]),
        ):
            if any(some):
                rows, columns = places
                own = made[some]
                own[:, rows, columns] = own[:, columns, rows] = upper[some]
                made[some] = own
        values = np.linalg.eigvalsh(made)
        wrong = (values[:, -1] <= 0) | (values[:, 0] < -_SEMIDEFINITE * values[:, -1])
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"{self.path}, line {edges[k].line}: the information has eigenvalues from "
                f"{values[k, 0]:.3g} to {values[k, -1]:.3g}; none may be negative, some must be not"
            )
        return made

    def graph(self) -> PoseGraph:
        """The graph of all lines."""
        first = _first_names(self.same)
        if not self.edges:
            without = "; sights of landmarks alone are none: give a FactorGraph these"
            raise ValueError(f"{self.path}: no edges, so no graph{without if self.sights else ''}")
        information = self._informations(self.edges, {2: 3, 3: 6}[self.dimension])
        landmarks = self._landmarks(first)
        points = landmarks.pop("names")
        mentioned = [name for edge in self.edges for name in (edge.begin, edge.end)]
        mentioned += [edge.begin for edge in self.sights]
        for name in sorted(points.keys() & {*mentioned, *self.poses}):
            raise ValueError(f"{self.path}: {name} names a pose and a landmark")
        for name in (*self.fixed, *(name for pair in self.same for name in pair)):
            if name not in self.poses and name not in mentioned and name not in points:
                raise ValueError(f"{self.path}: there is no pose {name} to fix or to equal")
        names = sorted({first.get(name, name) for name in (*mentioned, *self.poses)})
        rows = {name: k for k, name in enumerate(names)}
        row = {name: rows[first.get(name, name)] for name in (*mentioned, *self.poses)}
        # an edge between equal poses says nothing any more
        ends = np.array([[row[edge.begin], row[edge.end]] for edge in self.edges])
        kept = np.flatnonzero(ends[:, 0] != ends[:, 1])
        if not len(kept):
            raise ValueError(f"{self.path}: no edges between different poses, so no graph")
        size = {2: 4, 3: 7}[self.dimension]
        poses = None
        if self.poses:
            poses = np.full((len(names), size), np.nan)
            for name in reversed(sorted(self.poses)):  # of equal ones, that with the first name
                poses[row[name]] = self.poses[name]
        return PoseGraph(
            self.dimension,
            np.array(names),
            poses,
            np.array(sorted({row[name] for name in self.fixed if name in row}), dtype=int),
            ends[kept],
            np.array([self.edges[k].measured for k in kept]),
            information[kept],
            sights=np.array([[row[edge.begin], points[edge.end]] for edge in self.sights],
                            dtype=int).reshape(-1, 2),
            lines=np.array([self.edges[k].line for k in kept]),
            **landmarks,
        )  # fmt: skip

    def _landmarks(self, first: dict[int, int]) -> dict[str, Any]:
        """Rows of the landmarks by their names, and what the graph has of them."""
        mentioned = {*self.landmarks, *(edge.end for edge in self.sights)}
        for name in sorted(mentioned & first.keys()):
            raise ValueError(f"{self.path}: EQUIV is for poses, {name} is a landmark")
        d, names = self.dimension, sorted(mentioned)
        rows = {name: k for k, name in enumerate(names)}
        found = None
        if self.landmarks:
            found = np.full((len(names), d), np.nan)
            for name, point in self.landmarks.items():
                found[rows[name]] = point
        information = self._informations(self.sights, d)
        seen = np.reshape([edge.measured for edge in self.sights], (-1, d))
        for k, edge in enumerate(self.sights):
            if edge.sensor is None:
                continue
            if edge.sensor not in self.sensors:
                raise ValueError(
                    f"{self.path}, line {edge.line}: there is no sensor {edge.sensor}; a line "
                    f"PARAMS_SE3OFFSET {edge.sensor} x y z qx qy qz qw says where it is in the body"
                )
            place = self.sensors[edge.sensor]
            R = scipy.spatial.transform.Rotation.from_quat(place[3:]).as_matrix()
            seen[k] = R @ seen[k] + place[:3]
            information[k] = R @ information[k] @ R.T
        fixed = np.array(sorted({rows[name] for name in self.fixed if name in rows}), dtype=int)
        return {
            "names": rows,
            "landmark_names": np.array(names, dtype=int),
            "landmarks": found,
            "fixed_landmarks": fixed,
            "seen": seen,
            "sight_information": information,
        }


def _first_names(pairs: list[tuple[int, int]]) -> dict[int, int]:
    """The smallest of the names that are equal to each."""
    first: dict[int, int] = {}

    def root(name: int) -> int:
        while first.get(name, name) != name:
            name = first[name]
        return name

    for a, b in pairs:
        low, high = sorted((root(a), root(b)))
        first[high] = low
        first.setdefault(low, low)
    return {name: root(name) for name in first}


def _quaternion(roll: float, pitch: float, yaw: float) -> np.ndarray:
    """[x, y, z, w] of ``Rz(yaw) Ry(pitch) Rx(roll)``."""
    (a, b, c), (x, y, z) = (f(np.array([roll, pitch, yaw]) / 2) for f in (np.cos, np.sin))
    return np.array([
        x * b * c - a * y * z, a * y * c + x * b * z, a * b * z - x * y * c, a * b * c + x * y * z
    ])  # fmt: skip
