"""Files that a robot's meshes are in, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from urllib.parse import unquote, urlsplit

PathText = str | PathLike[str]


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
    >>> from lgcontrol.io._mesh_path import resolve_mesh
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
