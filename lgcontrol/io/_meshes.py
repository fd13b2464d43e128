"""Meshes: where their files are, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np

PathText = str | PathLike[str]
LARGEST_MESH = 2**26
"""Bytes of a file that is read."""
LARGEST_VERTEX = 1e9
"""Of a vertex, in the unit of the file; in single precision the page cannot square much more."""
MOST_TRIANGLES = 2_000_000
FINEST_GRID = 512  # cells along the longest side of what is decimated
_HEADER, _TRIANGLE = 84, 50  # bytes of a binary STL file, before the triangles and of each


def resolve_mesh(
    filename: str,
    package_dirs: Mapping[str, PathText] | Iterable[PathText] = (),
    *,
    source: PathText | None = None,
) -> Path:
    """File that a mesh's filename means, for drawing.

    A robot file may come from anywhere, so only files inside `package_dirs` and the folder of
    `source` are found: ``..``, absolute paths and symbolic links that lead out are refused.

    Parameters
    ----------
    filename : str
        As in the robot file: ``package://name/path``, ``model://name/path``, ``file:///path``, an
        absolute path, or a path relative to the robot file.
    package_dirs : mapping or iterable of paths
        Folder of each package by name; or folders that are packages or hold them.
    source : str or path, optional
        The robot file.

    Returns
    -------
    Path
        The existing file, with symbolic links followed.

    Raises
    ------
    ValueError
        If the name leads outside of the folders given, or is of another kind.
    FileNotFoundError
        If there is no such file; the message lists where it was looked for.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> share = pathlib.Path(tempfile.mkdtemp())
    >>> (share / "arm").mkdir()
    >>> (share / "arm" / "link.stl").touch()
    >>> resolve_mesh("package://arm/link.stl", [share]).name
    'link.stl'
    >>> resolve_mesh("package://arm/../../secret.stl", [share])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ValueError: the mesh "package://arm/../../secret.stl" leads outside of ...
    """
    if isinstance(package_dirs, str | PathLike):
        raise TypeError("package_dirs is a mapping or a list of folders; write [folder]")
    named = isinstance(package_dirs, Mapping)
    packages = {name: Path(path) for name, path in package_dirs.items()} if named else {}
    folders = list(packages.values()) if named else [Path(path) for path in package_dirs]
    allowed = list(folders)
    if source is not None:
        allowed.append(Path(source).parent)
    if "\0" in filename:
        raise ValueError(f"the mesh {filename!r} holds a NUL byte")

    scheme = filename.partition("://")[0].lower() if "://" in filename else ""
    if scheme in ("package", "model"):
        name, _, inside = filename.partition("://")[2].partition("/")
        if named:
            candidates = [packages[name] / inside] if name in packages else []
        else:
            candidates = [folder / name / inside for folder in folders]
            candidates += [folder / inside for folder in folders if folder.resolve().name == name]
    elif scheme == "file":
        candidates = [Path(unquote(urlsplit(filename).path))]
    elif scheme:
        raise ValueError(
            f'the mesh "{filename}" is at {scheme}://, which is not fetched; download it and name '
            "the local file"
        )
    elif Path(filename).is_absolute():
        candidates = [Path(filename)]
    elif source is None:
        raise ValueError(f'the mesh "{filename}" is relative to its robot file; give source=')
    else:
        candidates = [Path(source).parent / filename]

    roots = [folder.resolve() for folder in allowed]
    places = [_real(candidate, filename) for candidate in candidates]
    inside_roots = [place for place in places if any(map(place.is_relative_to, roots))]
    for place in inside_roots:
        if place.is_file():
            return place
    shown = ", ".join(map(str, roots)) or "nowhere (no package_dirs and no source)"
    if places and not inside_roots:
        raise ValueError(
            f'the mesh "{filename}" leads outside of the folders allowed: {shown}; if that is '
            "wanted, add its folder to package_dirs"
        )
    tried = ", ".join(map(str, inside_roots)) or shown
    raise FileNotFoundError(
        f'the mesh "{filename}" was not found; looked for {tried}. Add the folder of its package '
        "to package_dirs"
    )


def _real(path: Path, filename: str) -> Path:
    """Path with symbolic links followed."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ValueError(f'the mesh "{filename}" cannot be resolved: {error}') from None


def read_mesh(path: Path) -> tuple[np.ndarray, np.ndarray]:
    r"""Vertices (n, 3) and faces (k, 3) of an STL or OBJ file.

    Vertices are in the unit of the file; faces are rows of them. Refused is a file that is broken,
    too large, or of another kind.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "square.obj"
    >>> _ = file.write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n")
    >>> read_mesh(file)[1]
    array([[0, 1, 2],
           [0, 2, 3]], dtype=int32)
    """
    data = read_bytes(path)
    kind = path.suffix.lower()
    readers = {".stl": _read_stl, ".obj": _read_obj}
    if kind not in readers:
        raise ValueError(f"{path.name}: meshes are read from .stl and .obj files, not {kind!r}")
    try:
        vertices, faces = readers[kind](data)
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{path.name} is no {kind[1:].upper()} file: {error}") from None
    if not len(faces):
        raise ValueError(f"{path.name} holds no triangles")
    if len(faces) > MOST_TRIANGLES:
        raise ValueError(
            f"{path.name} has {len(faces):,} triangles, more than the {MOST_TRIANGLES:,} that are "
            "read: decimate it"
        )
    if not np.isfinite(vertices).all():
        raise ValueError(f"{path.name}: a vertex is not finite")
    if np.abs(vertices).max() > LARGEST_VERTEX:
        raise ValueError(
            f"{path.name}: a vertex is {np.abs(vertices).max():.3g} from the origin, more than the "
            f"{LARGEST_VERTEX:g} that are drawn: mend the file, or give its scale"
        )
    if not (0 <= faces.min() and faces.max() < len(vertices)):
        raise ValueError(f"{path.name}: a face names a vertex that is not there")
    return vertices, faces


def read_bytes(path: Path) -> bytes:
    """A file of a mesh, if it is not too large."""
    size = path.stat().st_size
    if size > LARGEST_MESH:
        raise ValueError(
            f"{path.name} takes {size / 2**20:.0f} MiB, more than the {LARGEST_MESH / 2**20:.0f} "
            "MiB that are read: decimate it"
        )
    return path.read_bytes()


def decimated(vertices: np.ndarray, faces: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The surface with at most so many triangles: vertices within a cell of a grid become one."""
    cells = float(FINEST_GRID)
    found = vertices, faces
    while len(found[1]) > most and cells > 1:
        found = _clustered(vertices, faces, max(int(cells), 1))
        # The number of triangles of a surface grows with the square of that of cells.
        cells *= 0.95 * min(np.sqrt(most / max(len(found[1]), 1)), 1.0)
    return found


def _clustered(
    vertices: np.ndarray, faces: np.ndarray, cells: int
) -> tuple[np.ndarray, np.ndarray]:
    low = vertices.min(axis=0)
    side = float(np.ptp(vertices, axis=0).max()) / cells or 1.0
    i, j, k = np.floor((vertices - low) / side).astype(np.int64).T
    _, place = np.unique((i * (cells + 1) + j) * (cells + 1) + k, return_inverse=True)
    count = np.bincount(place)
    mean = np.stack([np.bincount(place, vertices[:, axis]) / count for axis in range(3)], axis=1)
    a, b, c = place[faces].T
    kept = np.stack([a, b, c], axis=1)[(a != b) & (b != c) & (c != a)]
    a, b, c = np.sort(kept, axis=1).T.astype(np.int64)
    _, first = np.unique((a * len(mean) + b) * len(mean) + c, return_index=True)
    return mean, kept[np.sort(first)].astype(np.int32)


def _read_stl(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    count = int.from_bytes(data[80:_HEADER], "little") if len(data) >= _HEADER else -1
    if len(data) == _HEADER + _TRIANGLE * count:
        rows = np.frombuffer(data, np.uint8, offset=_HEADER).reshape(count, _TRIANGLE)
        corners = np.ascontiguousarray(rows[:, 12:48]).view("<f4").astype(np.float64)
    elif data.lstrip()[:5].lower() == b"solid" and b"vertex" in data:
        words = data.split()
        places = [k for k, word in enumerate(words) if word == b"vertex"]
        numbers = [words[k + 1 : k + 4] for k in places]
        corners = np.array(numbers, dtype=np.float64)
        if len(corners) % 3:
            raise ValueError(f"{len(corners)} vertices are no triangles")
    else:
        raise ValueError(
            f"{len(data)} bytes are neither {max(count, 0)} binary triangles nor a text that "
            "begins with 'solid'"
        )
    return _joined(corners.reshape(-1, 3))


def _joined(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of triangles, three rows each, as vertices that triangles share."""
    vertices, place = np.unique(corners, axis=0, return_inverse=True)
    return vertices, place.reshape(-1, 3).astype(np.int32)


def _read_obj(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    vertices: list[list[bytes]] = []
    faces: list[tuple[int, int, int]] = []
    for line in data.split(b"\n"):
        words = line.split()
        if not words:
            continue
        if words[0] == b"v":
            if len(words) < 4:
                raise ValueError(f"a vertex of {len(words) - 1} numbers")
            vertices.append(words[1:4])
        elif words[0] == b"f":
            corners = [int(word.partition(b"/")[0]) for word in words[1:]]
            rows = [k - 1 if k > 0 else len(vertices) + k for k in corners]
            if 0 in corners or len(rows) < 3:
                raise ValueError(f"the face {line.decode(errors='replace').strip()!r}")
            faces += [(rows[0], b, c) for b, c in zip(rows[1:], rows[2:], strict=False)]
    made = np.array(vertices, dtype=np.float64).reshape(-1, 3)
    return made, np.array(faces, dtype=np.int32).reshape(-1, 3)
