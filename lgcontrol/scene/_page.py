"""Pages of scenes: one file with code and data that opens offline in any browser."""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import sys
import tempfile
import webbrowser
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ..io._internal import with_ending
from ._plain import to_plain

FOLDER = Path(__file__).parent / "page"
HEIGHT = 540  # pixels of a cell in a notebook
_KINDS = {"float32": "f4", "float64": "f8", "int32": "i4", "uint8": "u1"}


def page_of(scenes: Sequence[Any], *, play: bool = True) -> str:
    """HTML page that shows scenes, several of them over each other.

    Texts are data of a script that is never run as one, so nothing that a name holds is executed.
    The page's policy forbids every request.

    Parameters
    ----------
    scenes : sequence of Scene
    play : bool
        Whether motion starts by itself.
    """
    data, packed, start = [], [], 0
    for scene in scenes:
        description, arrays = to_plain(scene)
        table: dict[str, Any] = {}
        for name, values in arrays.items():
            columns = values.shape[1] if values.ndim == 2 else 1
            table[name] = [_KINDS[values.dtype.name], start, values.size, columns]
            packed.append(values.tobytes())
            start += values.nbytes
        extent = np.round(scene.extent, 6).tolist()
        data.append({"scene": description, "table": table, "extent": extent, "play": play})
    title = " · ".join(scene.title for scene in scenes)
    # Within a script no text may end it or begin a comment.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    filled = {
        "title": escape(title),
        "scene": text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"),
        "arrays": b64encode(gzip.compress(b"".join(packed), 5, mtime=0)).decode(),
        "code": _code(),
    }
    frame = (FOLDER / "page.html").read_text(encoding="utf-8")
    return re.sub(r"@(title|scene|arrays|code)@", lambda found: filled[found[1]], frame)


def write_page(path: str | os.PathLike[str], scenes: Sequence[Any], *, play: bool = True) -> Path:
    """Write a page; the file appears complete or not at all."""
    path = with_ending(Path(path), [".html"], "pages are HTML files")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        part.write_text(page_of(scenes, play=play), encoding="utf-8", errors="replace")
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def cell_of(scenes: Sequence[Any]) -> str:
    """A page as a frame within another page, such as a notebook; it can reach nothing of that."""
    return (
        f'<iframe srcdoc="{escape(page_of(scenes, play=False))}" '
        'sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{HEIGHT}px;border:0"></iframe>'
    )


def open_pages(scenes: Sequence[Any]) -> Path | None:
    """Show scenes: in a notebook as a cell, else as a file in the browser; returns its path."""
    if _is_notebook():
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        display(HTML(cell_of(scenes)))
        return None
    name = re.sub(r"[^\w.-]+", "_", scenes[0].title) or "scene"
    path = write_page(Path(tempfile.mkdtemp(prefix="lgcontrol-")) / f"{name}.html", scenes)
    webbrowser.open(path.as_uri())
    return path


def _is_notebook() -> bool:
    """Whether a notebook's kernel runs this, which IPython in a terminal is not."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


@lru_cache(maxsize=1)
def _code() -> str:
    return b64encode(gzip.compress((FOLDER / "viewer.min.js").read_bytes(), 9, mtime=0)).decode()
