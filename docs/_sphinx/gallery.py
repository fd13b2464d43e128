"""Pictures of the gallery open runs in 3D: one page a design, from the scene stored beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.application import Sphinx

from lgcontrol.scene import Scene

PAGE = "docs/gallery/README"
FOLDER = Path(__file__).parents[1] / "gallery"


def stored_scene(path: Path) -> Scene:
    """Read the scene of a design that docs/make_gallery.py wrote."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files if name != "scene"}
        return Scene.from_plain(json.loads(str(file["scene"])), arrays)


def link_pictures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Make each picture of the gallery that has a scene a link to its page."""
    if docname != PAGE:
        return
    for picture in list(doctree.findall(nodes.image)):
        name = Path(picture["uri"]).stem
        if (FOLDER / f"{name}.npz").exists():
            link = nodes.reference("", "", refuri=f"{name}.html", internal=True)
            link["reftitle"] = f"{name} in 3D"
            picture.replace_self(link)
            link += picture


def write_pages(app: Sphinx, exception: Exception | None) -> None:
    """Write the page of each scene that is newer than its page."""
    if exception is not None or app.builder.format != "html":
        return
    for path in sorted(FOLDER.glob("*.npz")):
        page = Path(app.outdir) / "docs" / "gallery" / f"{path.stem}.html"
        if not page.exists() or page.stat().st_mtime < path.stat().st_mtime:
            stored_scene(path).to_html(page)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", link_pictures)
    app.connect("build-finished", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
