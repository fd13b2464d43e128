"""lgcontrol view: runs, robots, models, mechanisms and designs in the browser."""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..scene import Scene
from ..scene._internal import open_pages, write_page
from ._registry import (
    DESIGNS,
    CommandError,
    end_progress,
    find,
    guarded,
    load,
    progress,
    safe_name,
    unknown,
)


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
    group, entry = find(name)
    ending = Path(name).suffix.lower()
    if group == DESIGNS:
        run = _made(name, lambda: _run_of(name, entry, options))
        return _made(name, lambda: replace(run.scene(), title=name))
    if entry is not None:
        made = guarded(name, load(entry))
        return _made(name, made.scene)
    if ending == ".npz":
        from ..simulation import SimulationResult

        return _made(name, lambda: SimulationResult.load(name).scene())
    if ending == ".urdf" or Path(name).is_file():
        return _made(name, lambda: _robot(name, options).scene())
    raise unknown(name, "Files of runs end in .npz, those of robots in .urdf.")


def _run_of(name: str, entry: Any, options: argparse.Namespace) -> Any:
    """The run of a design that `lgcontrol run` has written, else one that is simulated now."""
    from ..simulation import SimulationError, SimulationResult

    path = options.runs / f"{safe_name(name)}.npz"
    if path.is_file() and not options.again:
        written = datetime.fromtimestamp(path.stat().st_mtime)
        print(f"{name}: the run in {path}, of {written:%Y-%m-%d %H:%M}; --again simulates anew")
        return SimulationResult.load(path)
    task = guarded(name, lambda: load(entry)(seed=0))
    print(f"{name}: simulates {task.seconds:g} s", flush=True)
    try:
        return task.run(seed=0, progress=progress())
    except SimulationError as error:
        print(f"  ended early: {error}")
        return error.result
    finally:
        end_progress()


def _robot(path: str, options: argparse.Namespace) -> Any:
    from ..mechanics import Multibody

    base = "free" if options.free else "fixed"
    return Multibody.from_urdf(path, base=base, on_finding="ignore", packages=options.packages)


def _made(name: str, make: Any) -> Any:
    """What is made; what is wrong with a file or a model is told in a line."""
    try:
        return make()
    except (OSError, ValueError, TypeError, KeyError) as error:
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        told = str(text).removeprefix(f"{name}: ")
        raise CommandError(f"{name}: {told}") from None
