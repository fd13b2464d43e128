"""The other solvers: IPOPT with compiled functions, Crocoddyl in an environment of its own."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import casadi as ca

from lgcontrol.optimal import NLPSolver, OptimalControlProblem

FOLDER = Path(__file__).resolve().parents[2] / "build" / "solver_peers"
# With pin 4.1 Crocoddyl 3.2 silently drops gravity.
PACKAGES = ("crocoddyl==3.2.1", "pin<4.1")
IPOPT = {"print_level": 0, "sb": "yes", "max_iter": 300, "acceptable_iter": 0}


def compiled_ipopt(problem: OptimalControlProblem, tolerance: float) -> NLPSolver:
    """IPOPT whose functions are built by gcc, as CasADi writes them.

    Interpreted, they are nine tenths of its time. What was built once is kept in ``build/``.
    """
    solver = NLPSolver(problem, plugin="ipopt").prepare()
    program, _ = solver._program()
    x, p, f, g = (program["nlp"][name] for name in ("x", "p", "f", "g"))
    scale, prices = ca.MX.sym("scale"), ca.MX.sym("prices", g.shape[0])
    cost, values, slope, own = program["check"](x, p, prices)
    names = ["x", "p"], ["f", "g"]
    both = [
        ca.Function("nlp", [x, p], [f, g], *names),
        ca.Function("nlp_f", [x, p], [f], names[0], ["f"]),
        ca.Function("nlp_g", [x, p], [g], names[0], ["g"]),
        *(program[name] for name in ("grad_f", "jac_g", "hess_lag")),
        ca.Function(  # by the parameters, too: nobody asks for that
            "nlp_grad", [x, p, scale, prices],
            [cost, values, slope + (scale - 1) * own, ca.MX(p.shape[0], 1)],
            ["x", "p", "lam_f", "lam_g"], ["f", "g", "grad_gamma_x", "grad_gamma_p"],
        ),
    ]  # fmt: skip
    FOLDER.mkdir(parents=True, exist_ok=True)
    generator = ca.CodeGenerator("ipopt_functions.c")
    for function in both:
        generator.add(function)
    source = Path(generator.generate(f"{FOLDER}{os.sep}"))
    kept = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    library = FOLDER / f"ipopt_functions_{kept}.so"
    if not library.is_file():  # gcc takes most of a minute
        made = library.with_suffix(f".{os.getpid()}")
        compiler = ["gcc", "-w", "-O1", "-march=native", "-fPIC", "-shared"]
        subprocess.run([*compiler, str(source), "-o", str(made)], check=True)
        made.rename(library)
    options = {
        "print_time": False, "error_on_fail": False, "calc_lam_p": False,
        "ipopt": IPOPT | {"tol": 0.1 * tolerance},
    }  # fmt: skip
    found = ca.nlpsol("nlp", "ipopt", str(library), options)
    solver._solver = lambda *_: found  # type: ignore[method-assign]
    return solver


class Crocoddyl:
    """Crocoddyl in a process of its own; absent where its environment cannot be made.

    Parameters
    ----------
    shared : Path
        Folder of the reference data.
    """

    def __init__(self, shared: Path) -> None:
        self.absent, self._process = "", None
        try:
            python = environment("crocoddyl", PACKAGES)
        except (OSError, subprocess.CalledProcessError) as error:
            self.absent = f"not run: pip found no {' '.join(PACKAGES)} ({error})"
            return
        self._process = subprocess.Popen(
            [str(python), str(Path(__file__).with_name("_crocoddyl_peer.py")), str(shared)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        if not self._read().get("ready"):
            self.absent = "not run: it does not start"

    def ask(self, problem: str, do: str, x0: Any = None) -> dict[str, Any]:
        """One solve or one call; times in s."""
        assert self._process is not None and self._process.stdin is not None
        asked = {"problem": problem, "do": do, "x0": None if x0 is None else list(map(float, x0))}
        self._process.stdin.write(json.dumps(asked) + "\n")
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process is not None and self._process.stdout is not None
        line = self._process.stdout.readline()
        return json.loads(line) if line else {}

    def close(self) -> None:
        """End the process."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


def environment(name: str, packages: tuple[str, ...]) -> Path:
    """Python of an environment with packages, made when first needed."""
    folder = FOLDER / name
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not (folder / "ready").is_file():
        print(f"making an environment with {' '.join(packages)} in {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        quiet = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*quiet, *packages], check=True, capture_output=True)
        (folder / "ready").touch()
    return python
