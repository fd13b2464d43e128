"""Trees for tests of second derivatives, and the same derivatives by AD."""

import casadi as ca
import numpy as np

from . import zoo

EXACT = 1e-11  # both routes are exact: rounding of sums of a few hundred products
PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2))


def trees():
    rng = np.random.default_rng(11)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "floating": zoo.floating(rng),
        "driven": zoo.driven(rng),
        "two_roots": zoo.two_roots(rng),
    }


TREES = trees()
# Joints of every sort, and all kinds together.
SORTS = ("helical", "planar", "spherical", "free", "universal", "composite", "driven", "two_roots")


def close(ours, theirs, tolerance=EXACT):
    scale = max(1.0, np.abs(theirs).max(initial=0.0))
    assert ours.shape == np.shape(theirs)
    assert np.abs(ours - theirs).max(initial=0.0) < tolerance * scale


def by_ad(tree, function, values, pairs):
    """Second derivatives of ``function(q, *values)`` by pairs of arguments, in exp coordinates."""
    return ad_function(tree, function, len(values), pairs)(*values)


def ad_function(tree, function, count, pairs):
    """What `by_ad` computes, as a function of the values."""
    n, at = tree.nv, ca.SX.sym("q", tree.nq)
    symbols = [ca.SX.sym(f"x{i}", n) for i in range(count)]
    f = function(tree.configuration.plus(at, symbols[0]), *symbols[1:])
    tensors = []
    for x, y in pairs:
        slope = ca.vec(ca.jacobian(f, symbols[x]))
        tensors.append(ca.densify(ca.jacobian(slope, symbols[y])))
    made = ca.Function("tensors", [at, *symbols], tensors)

    def evaluate(q, *rest):
        # Columns of vec(slope) run over i first; then comes j; the columns of the result are k.
        found = made(q, np.zeros(n), *rest)
        return [np.array(T).reshape(n, n, n).transpose(1, 0, 2) for T in found]

    return evaluate
