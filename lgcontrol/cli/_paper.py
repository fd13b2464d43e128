"""lgcontrol paper: figures and tables of papers, computed again and judged."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ..codegen._internal import unknown_name
from ..plotting import style
from ._registry import PAPERS, CommandError, entries, guarded, load, safe_name, summary, table
from ._run import check_folder

HEADER = ("quantity", "paper", "here", "verdict")


def paper_command(options: argparse.Namespace) -> int:
    """List papers, list the figures of one, or compute some of them."""
    known = entries(PAPERS)
    if options.name is None:
        rows = []
        for name, entry in sorted(known.items()):
            paper = load(entry)
            rows += [(name, paper.title), ("", f"figures: {', '.join(paper.figures)}")]
        print("\n".join(["papers:", *table(rows)]))
        print("\nlgcontrol paper NAME lists what each figure shows; … NAME FIGURE computes it")
        return 0
    if options.name not in known:
        raise CommandError(unknown_name("paper", options.name, sorted(known)))
    paper = load(known[options.name])
    if not options.figures:
        rows = [(number, summary(call)) for number, call in paper.figures.items()]
        print("\n".join([paper.title, *table(rows)]))
        return 0
    wanted = list(paper.figures) if options.figures == ["all"] else options.figures
    for number in wanted:
        if number not in paper.figures:
            valid = [*paper.figures, "all"]
            raise CommandError(unknown_name(f"figure of {options.name}", number, valid))
    _compute(options.name, paper, dict.fromkeys(wanted), options)
    return 0


def _compute(name: str, paper: Any, numbers: dict[str, None], options: argparse.Namespace) -> None:
    from matplotlib import rc_context

    check_folder(options.out)
    folder = options.out / safe_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    page = [
        f"# {paper.title}",
        "",
        f"Computed by `lgcontrol paper {name} {' '.join(options.figures)}`.",
        "",
    ]
    for number in numbers:
        with rc_context(style()):
            page += _compute_one(name, number, paper.figures[number], folder, options)
    path = folder / "README.md"
    path.write_text("\n".join(page).rstrip() + "\n", encoding="utf-8")
    print(f"wrote {path}")


def _compute_one(
    name: str, number: str, call: Any, folder: Path, options: argparse.Namespace
) -> list[str]:
    """Print the claims of a figure and write it; lines of the page."""
    print(f"{name} {number}: {summary(call)}", flush=True)
    made = guarded(f"{name} {number}", call, "cannot be computed")
    rows = [claim.row for claim in made.claims]
    print("\n".join(table([HEADER, *rows])), flush=True)
    page = [f"## {summary(call)}", ""]
    if made.figure is not None and not options.no_plot:
        file = f"{safe_name(number)}.png"
        made.figure.savefig(folder / file, dpi=80)
        print(f"  wrote {folder / file}", flush=True)
        page += [f"![{summary(call)}]({file})", ""]
    return [*page, *_markdown(rows)]


def _markdown(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table with a heading."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [" | ".join(row) for row in [HEADER, ["---"] * len(HEADER), *escaped]]
    return [*(f"| {line} |" for line in lines), ""]
