"""view: anything that has a scene, in the browser or in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ._page import open_pages
from ._scene import Scene


def view(*things: Any) -> Path | None:
    """Show models, runs and plans, several over each other.

    In a notebook as a cell; elsewhere as a file, which the browser opens.

    Parameters
    ----------
    *things : Scene, or anything with a ``scene()``
        Results, systems, trees: the first decides the camera; what follows has a colour of its own.

    Returns
    -------
    Path or None
        The file; None in a notebook.

    Raises
    ------
    TypeError
        If something has no scene.
    """
    if not things:
        raise TypeError("view() needs something to show, such as view(run) or view(run, other_run)")
    return open_pages([scene_of(thing) for thing in things])


def scene_of(thing: Any) -> Scene:
    """The scene of a thing."""
    if isinstance(thing, Scene):
        return thing
    if isinstance(thing, type) or not callable(getattr(thing, "scene", None)):
        raise TypeError(
            f"{type(thing).__name__} has no scene: give a SimulationResult, a System, a Multibody "
            "or a Scene; of a plan give system.scene(plan.trajectory)"
        )
    return thing.scene()
