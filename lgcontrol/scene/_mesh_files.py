"""Files of meshes: which file a robot file means, read when it is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from ..io._internal import decimated, read_bytes, read_mesh, resolve_mesh
from ._shapes import EncodedMesh, Mesh

MOST_DRAWN = 20_000  # triangles of a mesh
ENCODED = (".dae", ".glb")  # what the page's own loaders read


@dataclass(frozen=True)
class MeshFile:
    """A mesh that a robot file names; `read` opens it when it is to be drawn.

    Parameters
    ----------
    filename : str
        As in the robot file.
    scale : tuple of float, shape (3,)
    source : Path, optional
        The robot file.
    packages : mapping or iterable of paths
        Folders of packages, see `resolve_mesh`: nothing outside of them and of the folder of the
        source is read.
    """

    filename: str
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    source: Path | None = None
    packages: Mapping[str, str | PathLike[str]] | Iterable[str | PathLike[str]] = field(
        default=(), hash=False
    )

    def read(self) -> Mesh | EncodedMesh:
        """Triangles, or the bytes of a format that only pages read.

        Raises
        ------
        ValueError
            If the name leads outside, or the file is broken, too large or of another kind.
        FileNotFoundError
            If there is no such file.
        """
        path = resolve_mesh(self.filename, self.packages, source=self.source)
        kind = path.suffix.lower()
        if kind in ENCODED:
            return EncodedMesh(kind[1:], read_bytes(path), self.scale)
        vertices, faces = decimated(*read_mesh(path), MOST_DRAWN)
        mirrored = np.prod(self.scale) < 0
        return Mesh(vertices * self.scale, faces[:, ::-1] if mirrored else faces)
