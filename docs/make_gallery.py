"""Draw docs/gallery: a picture of each design, its task, and the numbers that judge it.

``python docs/make_gallery.py [NAME …]`` runs the designs with seed 0, and writes a picture and the
scene of each, and ``docs/gallery/runs.json``. The page docs/gallery/README.md follows from this
file alone. `make docs` writes the page that shows a scene.
"""

import inspect
import json
import math
import sys
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")

from lgcontrol.plotting import plot_path

FOLDER = Path(__file__).with_name("gallery")
RUNS = FOLDER / "runs.json"
HEAD = """# Gallery

Every design is a model, a controller and a task with criteria. Run one with `lgcontrol run NAME`.
See it in 3D with `lgcontrol view NAME`. To change a design, copy its file. The numbers are those of
seed 0. `python docs/make_gallery.py` makes them and the pictures. On the site, a click
on a picture opens the run in 3D, where it moves.
"""
FRAMES = 150  # of a stored scene; five seconds at 30 frames a second


def drawn(name: str, load: Any) -> dict[str, object]:
    """Run a design, draw its path, and return its task and how it was judged."""
    design = load()
    task = design(seed=0)
    run = replace(task.run(), name=name)
    try:
        figure = plot_path(run)
    except ValueError:  # nothing moves in space: an angle, a speed
        figure = run.plot(criteria=task.criteria)
    figure.savefig(FOLDER / f"{name}.png", dpi=80, pil_kwargs={"optimize": True})
    store_scene(name, run)
    text = inspect.getdoc(design).partition("\n\n")[0]
    return {
        "text": text.replace("\n", " "),
        "file": inspect.getsourcefile(design).rpartition("designs/")[2],
        "criteria": [
            {
                "name": verdict.criterion.name,
                "unit": verdict.criterion.unit,
                "value": float(f"{verdict.value:.3g}"),
                "limit": finite(verdict.criterion.limit),
                "least": finite(verdict.criterion.least),
            }
            for verdict in task.judge(run)
        ],
    }


def store_scene(name: str, run: Any) -> None:
    """Write the scene of a run as arrays, if bodies move in it."""
    path = FOLDER / f"{name}.npz"
    path.unlink(missing_ok=True)
    try:
        scene = run.scene(frames=FRAMES)
    except ValueError:  # nothing moves in space
        return
    description, arrays = scene.to_plain()
    np.savez_compressed(path, scene=np.array(json.dumps(description)), **arrays)


def finite(bound: float) -> float | None:
    """Return a bound, or None if it is infinite: JSON has no such number."""
    return bound if math.isfinite(bound) else None


def limits(told: dict[str, Any]) -> str:
    """Return the range that passes."""
    words = []
    if told["least"] is not None:
        words.append(f"at least {told['least']:g}")
    if told["limit"] is not None:
        words.append(f"at most {told['limit']:g}")
    return ", ".join(words)


def page(runs: dict[str, Any]) -> str:
    """Return the page of all designs."""
    parts = [HEAD]
    for name, told in sorted(runs.items()):
        parts.append(f"## {name}\n\n![{name}]({name}.png)\n\n{told['text']}\n")
        parts += ["| criterion | value | passes |", "|---|---|---|"]
        parts += [
            f"| {entry['name']} | {entry['value']:g} {entry['unit']} | {limits(entry)} |"
            for entry in told["criteria"]
        ]
        parts.append(f"\nCode: [{told['file']}](../../controllers/designs/{told['file']})\n")
    return "\n".join(parts)


def main() -> None:
    """Run the designs that are named, or all, and write the page."""
    FOLDER.mkdir(exist_ok=True)
    runs = json.loads(RUNS.read_text(encoding="utf-8")) if RUNS.exists() else {}
    for entry in entry_points(group="lgcontrol.designs"):
        if entry.dist.name == "lgcontrol" and (not sys.argv[1:] or entry.name in sys.argv[1:]):
            runs[entry.name] = drawn(entry.name, entry.load)
            text = json.dumps(dict(sorted(runs.items())), indent=1, ensure_ascii=False)
            RUNS.write_text(text + "\n", encoding="utf-8")
            print(entry.name, flush=True)
    (FOLDER / "README.md").write_text(page(runs), encoding="utf-8")


if __name__ == "__main__":
    main()
