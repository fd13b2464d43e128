"""Execute every notebook: notebooks/NAME.py in cells is the source, NAME.ipynb what people open.

A run fails when a cell raises, and when the kinds of its outputs (text, table, picture) are not
those stored: then look at the new notebook and commit it. Outputs are normalised, so that a run
that changes nothing but a wall time leaves a small difference.

The exercises are cells that begin with `answer = ...`. After the notebook's own cells they run with
the answers of notebooks/exercises/NAME.py: a run fails too when `check` does not accept the right
answer, or accepts the wrong one.
"""

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
PARALLEL = 2  # the smallest machine that runs these has two cores
CELL_TIMEOUT = 300  # seconds; a notebook is for reading, a cell that takes longer belongs elsewhere
OPEN = "answer = ..."  # the first line of an exercise
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def read_source(path: Path) -> Any:
    """Return the notebook of a source file, without outputs and with steady names of cells."""
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
        cell.metadata = {}
    return notebook


def kinds(notebook: Any) -> list[list[str]]:
    """Return the kinds of output of each code cell: printed text, or data by their types."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        of_cell: list[str] = []
        for output in cell.outputs:
            kind = output.get("name") or ", ".join(sorted(output.get("data", {"error": 0})))
            if of_cell[-1:] != [kind]:  # a stream may come in any number of parts
                of_cell.append(kind)
        found.append(of_cell)
    return found


def normalise(notebook: Any) -> None:
    """Remove what differs between two runs of the same code: times of cells, addresses in texts."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            # Notices of compilation depend on what the machine has on disk.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = re.sub(r"0x[0-9a-f]{6,}", "0x…", output.text)
            output.get("metadata", {}).clear()
    notebook.metadata["language_info"] = {"name": "python"}


def exercises(notebook: Any) -> list[str]:
    """Return the sources of the cells that are exercises, in their order."""
    code = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    return [source for source in code if source.startswith(OPEN)]


def answers(source: Path) -> dict[str, str]:
    """Return the code of each answer by its title: `right 1`, `wrong 1`, `right 2`, …."""
    path = source.parent / "exercises" / source.name
    if not path.exists():
        return {}
    cells = re.split(r"^# %% (.+)\n", path.read_text(encoding="utf-8"), flags=re.M)[1:]
    return dict(zip(cells[::2], (code.strip() for code in cells[1::2]), strict=True))


def answered(notebook: Any, source: Path) -> dict[str, Any]:
    """Return a cell for each answer, by its title: the exercise with that answer."""
    given = answers(source)
    return {
        f"{kind} {number}": nbformat.v4.new_code_cell(text.replace(OPEN, given[f"{kind} {number}"]))
        for number, text in enumerate(exercises(notebook), 1)
        for kind in ("right", "wrong")
    }


def misjudged(cells: dict[str, Any]) -> list[str]:
    """Return the titles of the answers that `check` took for their opposite."""
    verdicts = {"right": ": right.", "wrong": ": not yet."}
    return [
        title
        for title, cell in cells.items()
        if verdicts[title.split()[0]] not in "".join(out.get("text", "") for out in cell.outputs)
    ]


def run(source: Path) -> str | None:
    """Execute one notebook and write it; return what is wrong, None when nothing is."""
    start = time.perf_counter()
    notebook = read_source(source)
    tried = answered(notebook, source)
    own = len(notebook.cells)
    notebook.cells += tried.values()
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    )
    try:
        client.execute()
    except (CellExecutionError, TimeoutError, RuntimeError) as error:
        print(f"FAILED {source.name}\n{error}", flush=True)
        return str(error)
    notebook.cells = notebook.cells[:own]
    wrong = misjudged(tried)
    if wrong:
        message = f"exercises/{source.name}: check() misjudges {', '.join(wrong)}"
        print(f"FAILED {message}", flush=True)
        return message
    normalise(notebook)
    stored = source.with_suffix(".ipynb")
    before = kinds(nbformat.read(stored, as_version=4)) if stored.exists() else None
    nbformat.write(notebook, stored)
    if before != kinds(notebook):
        message = f"{stored.name} had other kinds of output: look at it and commit it"
        print(f"FAILED {message}", flush=True)
        return message
    print(f"ok     {source.name}  {time.perf_counter() - start:.1f} s", flush=True)
    return None


def main() -> int:
    """Run the notebooks given on the command line by their sources, all by default."""
    paths = [Path(name).resolve() for name in sys.argv[1:]] or sorted(FOLDER.glob("*.py"))
    with ThreadPoolExecutor(PARALLEL) as pool:
        errors = list(pool.map(run, paths))
    failed = sum(error is not None for error in errors)
    print(f"{len(paths)} notebooks executed, {failed} of them failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
