"""Execute every notebook in notebooks/ and fail when a cell raises; the files stay as they are."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
PARALLEL = 2  # the smallest machine that runs these has two cores
CELL_TIMEOUT = 300  # seconds; a notebook is for reading, a cell that takes longer belongs elsewhere


def run(path: Path) -> str | None:
    """Return the error of the first cell that raises, None when all ran."""
    start = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except (CellExecutionError, TimeoutError, RuntimeError) as error:
        print(f"FAILED {path.name}\n{error}", flush=True)
        return str(error)
    print(f"ok     {path.name}  {time.perf_counter() - start:.1f} s", flush=True)
    return None


def main() -> int:
    """Run the notebooks given on the command line, all by default."""
    paths = [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb"))
    if not paths:
        print("no notebooks in notebooks/ yet")
        return 0
    with ThreadPoolExecutor(PARALLEL) as pool:
        errors = list(pool.map(run, paths))
    failed = sum(error is not None for error in errors)
    print(f"{len(paths)} notebooks executed, {failed} of them raised")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
