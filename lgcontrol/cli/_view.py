"""lgcontrol view: runs, robots, models, mechanisms and designs in the browser."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..codegen._internal import unknown_name
from ..scene import Scene
from ..scene._internal import open_pages, write_page
from ..simulation._internal import task_goals
from ._registry import DESIGNS, MECHANISMS, MODELS, CommandError, entries, guarded, load


def view_command(options: argparse.Namespace) -> int:
    """Show things over each other, or write the page."""
    scenes = [_scene_of(name, options) for name in options.names]
    for notice in dict.fromkeys(text for scene in scenes for text in scene.notices):
        print(f"  {notice}")
    show_scenes(scenes, options.out)
    return 0


def show_scenes(scenes: list[Scene], out: Path | None) -> None:
    """Write the page where a file is named, else open it."""
    try:
        path = open_pages(scenes) if out is None else write_page(out, scenes)
    except (OSError, ValueError) as error:
        raise CommandError(str(error)) from None
    print(f"  {'opened' if out is None else 'wrote'} {path}")


def _scene_of(name: str, options: argparse.Namespace) -> Scene:
    known = {group: entries(group) for group in (DESIGNS, MODELS, MECHANISMS)}
    ending = Path(name).suffix.lower()
    if name in known[DESIGNS]:
        task = guarded(name, lambda: load(known[DESIGNS][name])(seed=0))
        return _made(
            name,
            lambda: task.plant.scene(task.x0, goals=task_goals(task), obstacles=task.obstacles),
        )
    for group in (MODELS, MECHANISMS):
        if name in known[group]:
            made = guarded(name, load(known[group][name]))
            return _made(name, made.scene)
    if ending == ".npz":
        from ..simulation import SimulationResult

        return _made(name, lambda: SimulationResult.load(name).scene())
    if ending == ".urdf" or Path(name).is_file():
        return _made(name, lambda: _robot(name, options).scene())
    valid = sorted({**known[DESIGNS], **known[MODELS], **known[MECHANISMS]})
    text = unknown_name("design, model or mechanism", name, valid)
    raise CommandError(
        f"{text.removesuffix('.')}. Files of runs end in .npz, those of robots in .urdf."
    )


def _robot(path: str, options: argparse.Namespace) -> Any:
    from ..mechanics import Multibody

    base = "free" if options.free else "fixed"
    return Multibody.from_urdf(path, base=base, on_finding="ignore", packages=options.packages)


def _made(name: str, make: Any) -> Scene:
    """A scene; what is wrong with a file or a model is told in a line."""
    try:
        return make()
    except (OSError, ValueError, TypeError, KeyError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        raise CommandError(f"{name}: {text}") from None
