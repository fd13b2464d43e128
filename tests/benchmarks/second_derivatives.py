"""Second derivatives of the dynamics: closed forms beside AD, operations and compiled times.

    python -m tests.benchmarks.second_derivatives [--robots FOLDER] [--json FILE]

Every route gives the same numbers (checked). "AD of first derivatives" differentiates the
closed-form Jacobians once more, "AD" takes both derivatives of the recursion. Instructions are
those of CasADi with numbers for all parameters, stores of all results included; the tensors of
forward dynamics are products of matrices, counted as if written out. Times are compiled single
calls where a route has at most `COMPILED` instructions, else interpreted ones. AD of the
forward tensors of Talos would trace for minutes and is left out.
"""

import argparse
import json
import os
import warnings
from pathlib import Path

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.mechanics import Multibody

from ._timing import Contender, measure
from .multibody import ROBOTS, ROOT

CHOSEN = ("ur5", "panda", "hyq", "talos")
COMPILED = 40_000  # instructions: above, compilers take a minute and more
EXPANDED = 20  # degrees of freedom: above, products of matrices are not written out
ACCURACY = 1e-8  # of forward dynamics of the worst tree, relative to the largest entry


class Routes:
    """Second derivatives of one tree's inverse or forward dynamics by every route."""

    def __init__(self, tree: Multibody, kind: str) -> None:
        self.tree, self.kind, n = tree, kind, tree.nv
        self.q, self.v, self.last, self.weights = (
            ca.SX.sym(name, size) for name, size in (("q", tree.nq), ("v", n), ("u", n), ("w", n))
        )
        d = ca.SX.sym("d", n)
        slope = ca.jacobian(tree.configuration.plus(self.q, d), d)
        self.lift = ca.substitute(slope, d, ca.DM.zeros(n))

    def tensors(self, *, with_ad: bool = True) -> dict[str, ModelFunction]:
        """All derivatives of all entries."""
        closed = getattr(self.tree, f"{self.kind}_dynamics_second_derivatives")
        if not with_ad:
            return {"closed": closed}
        by_q, by_v, by_last = self._first()
        whole = [
            ca.jacobian(ca.vec(by_q), self.q) @ self.lift,
            ca.jacobian(ca.vec(by_q), self.v),
            ca.jacobian(ca.vec(by_v), self.v),
            ca.jacobian(ca.vec(by_last), self.q) @ self.lift,
        ]
        return {"closed": closed, "ad_of_first_derivatives": self._made(whole)}

    def hessians(self, *, with_ad: bool = True) -> dict[str, ModelFunction]:
        """All derivatives of a weighted sum."""
        closed = getattr(self.tree, f"{self.kind}_dynamics_hessian")
        if not with_ad:
            return {"closed": closed}
        by_q, by_v, by_last = (self.weights.T @ slope for slope in self._first())
        once = [
            ca.jacobian(by_q.T, self.q) @ self.lift,
            ca.jacobian(by_q.T, self.v),
            ca.jacobian(by_v.T, self.v),
            (ca.jacobian(by_last.T, self.q) @ self.lift).T,
        ]
        n, d = self.tree.nv, ca.SX.sym("d", self.tree.nv)
        way = "inverse_dynamics" if self.kind == "inverse" else "forward_dynamics_by_factor"
        moved = self.tree.configuration.plus(self.q, d)
        total = ca.dot(self.weights, getattr(self.tree, way)(moved, self.v, self.last))
        x = ca.vertcat(d, self.v, self.last)
        H = ca.substitute(ca.hessian(total, x)[0], d, ca.DM.zeros(n))
        one, two, three = slice(n), slice(n, 2 * n), slice(2 * n, 3 * n)
        twice = [H[one, one], H[one, two], H[two, two], H[one, three]]
        return {
            "closed": closed,
            "ad_of_first_derivatives": self._made(once, self.weights),
            "ad": self._made(twice, self.weights),
        }

    def _first(self):
        slopes = getattr(self.tree, f"{self.kind}_dynamics_derivatives")
        return slopes(self.q, self.v, self.last)

    def _made(self, results, *more) -> ModelFunction:
        arguments = [self.q, self.v, self.last, *more]
        names = ["q", "v", "u", "w"][: len(arguments)]
        return ModelFunction(ca.Function("ad", arguments, ca.cse(results), names, list("abcd")))


def instructions(function: ModelFunction, nv: int) -> int | None:
    """Instructions of scalars."""
    if function.function.is_a("SXFunction"):
        return function.instructions
    return function.function.expand().n_instructions() if nv <= EXPANDED else None


def compare(routes: dict[str, ModelFunction], tree: Multibody) -> dict[str, dict]:
    """Instructions and times of routes to the same numbers."""
    rng, n = np.random.default_rng(2), tree.nv
    count = len(routes["closed"].arguments) - 1
    values = [tree.configuration.random(rng), *rng.normal(size=(count, n))]
    expected = routes["closed"](*values)
    found, contenders = {}, []
    for name, function in routes.items():
        # Not by q twice: derivatives one after the other differ there (half a bracket).
        for i, (ours, theirs) in enumerate(zip(expected, function(*values), strict=True)):
            if i == 0:
                continue
            if theirs.shape != ours.shape:  # a tensor by AD: rows (i, j), columns k; the last by q
                theirs = theirs.reshape(n, n, n).transpose((1, 0, 2) if i < 3 else (1, 2, 0))
            assert np.abs(ours - theirs).max() < ACCURACY * max(1.0, np.abs(ours).max()), name
        operations = instructions(function, n)
        is_compiled = operations is not None and operations <= COMPILED
        if is_compiled:
            function.compiled(batch=False)
        found[name] = {"instructions": operations, "compiled": is_compiled}
        call = function.in_place()
        for key, value in zip(function.arguments, values, strict=True):
            call.inputs[key][...] = value
        contenders.append(Contender(name, call))
    for name, value in measure(contenders, rounds=9).items():
        found[name]["us"] = round(value, 2)
    return found


def main() -> None:
    """Measure, print a table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    shared = os.environ.get("LGCONTROL_SHARED", ROOT.parent / "shared")
    parser.add_argument("--robots", type=Path, default=Path(shared) / "robots")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, dict] = {}
    for name in CHOSEN:
        file, base, locked = ROBOTS[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = options.robots / file
            tree = Multibody.from_urdf(path, base=base, locked=locked, losses=False)
        results[name] = {"nv": tree.nv}
        for kind in ("inverse", "forward"):
            for what in ("tensors", "hessians"):
                is_large = tree.nv > EXPANDED and kind == "forward" and what == "tensors"
                routes = getattr(Routes(tree, kind), what)(with_ad=not is_large)
                results[name][f"{kind} {what}"] = found = compare(routes, tree)
                for route, row in found.items():
                    mark = "compiled" if row["compiled"] else "interpreted"
                    label = f"{name:6} {kind} {what:9} {route:24}"
                    print(f"{label} {row['instructions']!s:>8} {row['us']:>10} us {mark}")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
