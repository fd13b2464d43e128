"""A problem as a nonlinear program in tangent vectors about a centre, with its derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import ModelFunction
from .._input_limits import ControlBox
from .._masks import bounded_rows
from .._stage_model import symbols_of
from .._transcription import Transcription


class ProgramLayout(NamedTuple):
    """Places of tangent vectors d, controls u and excesses e by node, and limits, of an NLP.

    `lower` and `upper` are of the variables, then of the constraints. `nx`, `nu`, `ng` are sizes of
    the stages, `soft_rows` the rows with an excess, by node.
    """

    d: list[slice]
    u: list[slice]
    e: list[slice]
    lower: tuple[np.ndarray, np.ndarray]
    upper: tuple[np.ndarray, np.ndarray]
    is_equality: list[bool]
    nx: list[int]
    nu: list[int]
    ng: list[int]
    soft_rows: list[list[int]]

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """Multipliers (N, n) of the dynamics, of those of g."""
        n, before = self.nx[0], np.cumsum([0, *self.ng[:-1]])[:-1]
        places = (n * np.arange(len(before)) + before)[:, None] + np.arange(n)
        return -multipliers[places]

    def limits(self, box: ControlBox) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Lower and upper ones of z and g, with those of the controls."""
        found = [self.lower[0].copy(), self.lower[1]], [self.upper[0].copy(), self.upper[1]]
        for (z, _), limit in zip(found, box[:2], strict=True):
            for place in self.u:
                z[place] = limit
        return found


def build_program(transcription: Transcription) -> tuple[dict[str, Any], ProgramLayout]:
    """Functions of the program of a problem, and its layout.

    With y the tangent vectors and controls of all stages and v(y) their defects and rows, the
    constraints are ``E z + M v(S z)``. Derivatives are those of one stage, mapped. Of the dict
    "nlp" is what `casadi.nlpsol` takes, "check" judges results.
    """
    problem, rows = transcription.problem, transcription.rows
    system, N = problem.system, problem.horizon
    n, m, count = system.n_errors, len(transcription.controls), len(rows.names)
    soft = rows.soft * rows.lengths
    places: dict[str, list[slice]] = {"d": [], "u": [], "e": []}
    sizes: dict[str, list[int]] = {"nx": [], "nu": [], "ng": []}
    soft_rows: list[list[int]] = []
    z_limits: list[tuple[Any, Any]] = []
    g_limits: list[tuple[float, float]] = []
    of_z: list[tuple[int, int, float]] = []  # entries of E and M
    of_v: list[tuple[int, int, float]] = []
    at = 0
    for k in range(N + 1):
        softened = [int(r) for r in np.flatnonzero(rows.active[k]) if np.isfinite(rows.soft[r])]
        soft_rows.append(softened)
        for name, lower, upper in (
            ("d", np.full(n, -np.inf), np.full(n, np.inf)),
            ("u", np.full(m, -np.inf), np.full(m, np.inf)),  # those of the setting
            ("e", np.zeros(len(softened)), np.full(len(softened), np.inf)),
        ):
            if name != "u" or k < N:
                z_limits.append((lower, upper))
                places[name].append(slice(at, at + len(lower)))
                at += len(lower)
        sizes["nx"].append(n)
        sizes["nu"].append((m if k < N else 0) + len(softened))
    for k in range(N + 1):
        first = k * (n + count)  # of the values of this stage; the end has no defect
        if k < N:
            for i in range(n):
                of_z.append((len(g_limits), places["d"][k + 1].start + i, 1.0))
                of_v.append((len(g_limits), first + i, -1.0))
                g_limits.append((0.0, 0.0))
            first += n
        before = len(g_limits)
        if k == 0:  # the first state's centre is the given start
            for i in np.setdiff1d(np.arange(n), problem.free_start).tolist():
                of_z.append((len(g_limits), i, 1.0))
                g_limits.append((0.0, 0.0))
        for r in np.flatnonzero(rows.active[k]).tolist():
            limits, e = [(0.0, rows.lower[r], rows.upper[r])], -1
            if r in soft_rows[k]:
                e = places["e"][k].start + soft_rows[k].index(r)
                sides = [(-1.0, -np.inf, rows.upper[r]), (1.0, rows.lower[r], np.inf)]
                limits = [side for side in sides if np.isfinite(side[1:]).any()]
            for sign, lower, upper in limits:
                of_v.append((len(g_limits), first + r, 1.0))
                if sign:
                    of_z.append((len(g_limits), e, sign))
                g_limits.append((lower, upper))
        sizes["ng"].append(len(g_limits) - before)
    of_y = [place for k in range(N) for place in (places["d"][k], places["u"][k])]
    of_y.append(places["d"][N])
    kept = np.concatenate([np.arange(place.start, place.stop) for place in of_y])
    S = _matrix([(i, int(j), 1.0) for i, j in enumerate(kept)], len(kept), at)
    E = _matrix(of_z, len(g_limits), at)
    M = _matrix(of_v, len(g_limits), N * (n + count) + count)
    penalty, parameter = np.zeros(at), np.full(at, -1)
    for k, (place, chosen) in enumerate(zip(places["e"], soft_rows, strict=True)):
        penalty[place], parameter[place] = soft[k, chosen], rows.parameter[chosen]
    z_lower, z_upper = (np.concatenate([pair[i] for pair in z_limits]) for i in (0, 1))
    g_lower, g_upper = (np.array([pair[i] for pair in g_limits]) for i in (0, 1))
    layout = ProgramLayout(
        places["d"], places["u"], places["e"], (z_lower, g_lower), (z_upper, g_upper),
        (g_lower == g_upper).tolist(), **sizes, soft_rows=soft_rows,
    )  # fmt: skip
    return _functions(transcription, S, E, M, penalty, parameter), layout


def _functions(
    transcription: Transcription, S: ca.DM, E: ca.DM, M: ca.DM, soft: np.ndarray,
    parameter: np.ndarray,
) -> dict[str, Any]:  # fmt: skip
    """The program, its derivatives for CasADi's solvers, and what a result is judged by.

    Prices of excesses are numbers, times a parameter each where one is named.
    """
    problem = transcription.problem
    N, n, m = problem.horizon, problem.system.n_errors, len(transcription.controls)
    count = len(transcription.rows.names)
    shapes = {
        "t": (1, N + 1), "centre": (problem.system.state.nq, N + 1),
        "x_ref": (problem.system.state.nq, N + 1), "u_ref": (problem.system.n_inputs, N + 1),
        "p": (len(problem.nominal_parameters), 1), "P": (n, n), "arrival": (n, n),
    }  # fmt: skip
    ends = np.cumsum([0, *(a * b for a, b in shapes.values())]).tolist()
    z, symbols = ca.MX.sym("z", S.shape[1]), ca.MX.sym("given", ends[-1])
    parts = ca.vertsplit(symbols, ends)
    P = {name: ca.reshape(part, *shapes[name]) for name, part in zip(shapes, parts, strict=True)}
    multipliers, scale = ca.MX.sym("multipliers", M.shape[0]), ca.MX.sym("scale")
    y, of_values = S @ z, M.T @ multipliers
    factor = ca.vertcat(1, P["p"])[(parameter + 1).tolist()]
    penalty = ca.sparsify(ca.DM(soft)) * ca.vec(factor)
    stages, last = ca.reshape(y[: N * (n + m)], n + m, N), y[N * (n + m) :]
    along = [
        stages, P["t"][:N], P["centre"][:, :N], P["centre"][:, 1:], P["x_ref"][:, :N],
        P["u_ref"][:, :N], ca.repmat(P["p"], 1, N), ca.DM(problem.steps).T,
    ]  # fmt: skip
    if "w" not in transcription.shared:
        along.append(ca.DM(transcription.path_weights).T)
    end = [
        last, P["t"][N], P["centre"][:, N], P["x_ref"][:, N], P["u_ref"][:, N], P["p"], P["P"]
    ]  # fmt: skip
    of_stage, of_end = _stage(transcription), _end(transcription)

    def joined(which: int, *more: tuple[Any, Any]) -> list[list[Any]]:
        """Results of all stages, one list for each result."""
        mapped = of_stage[which].map(N)(*along, *(a for a, _ in more))
        ended = of_end[which](*end, *(b for _, b in more))
        if which == 2:
            mapped, ended = [mapped], [ended]
        return [[*ca.horzsplit(a, a.shape[1] // N), b] for a, b in zip(mapped, ended, strict=True)]

    pull = ca.MX(S.shape[1], S.shape[1])  # on a free first state
    if len(problem.free_start):
        pull[:n, :n] = P["arrival"]
    excess = ca.dot(penalty, z + z**2 / 2) + ca.dot(z, pull @ z) / 2
    costs, values = joined(0)
    cost = ca.sum1(ca.vertcat(*costs)) + excess
    g = E @ z + M @ ca.vertcat(*values)
    _, _, slopes, jacobians = joined(1)
    gradient = S.T @ ca.vertcat(*slopes) + penalty * (1 + z) + pull @ z
    jacobian = E + M @ ca.diagcat(*jacobians) @ S
    own = ca.reshape(of_values[: N * (n + count)], n + count, N)
    scaled = ca.vertcat(ca.repmat(scale, 1, N), own)
    at_end = ca.vertcat(scale, of_values[N * (n + count) :])
    (bends,) = joined(2, (scaled, at_end))
    bend = S.T @ ca.diagcat(*bends) @ S + scale * (ca.diag(penalty) + pull)
    return {
        "nlp": {"x": z, "p": symbols, "f": cost, "g": g},
        "grad_f": ca.Function(
            "nlp_grad_f", [z, symbols], [cost, gradient], ["x", "p"], ["f", "grad_f_x"]
        ),
        "jac_g": ca.Function(
            "nlp_jac_g", [z, symbols], [g, jacobian], ["x", "p"], ["g", "jac_g_x"]
        ),
        "hess_lag": ca.Function(
            "nlp_hess_l", [z, symbols, scale, multipliers], [ca.triu(bend)],
            ["x", "p", "lam_f", "lam_g"], ["triu_hess_gamma_x_x"],
        ),
        "check": ca.Function(
            "check", [z, symbols, multipliers],
            [cost, g, gradient + jacobian.T @ multipliers, gradient],
        ),
    }  # fmt: skip


def _stage(transcription: Transcription) -> list[ca.Function]:
    """Of a stage, at ``retract(centre, d)`` and controls v: see `_with_derivatives`."""
    problem, once = transcription.problem, transcription._functions
    given = symbols_of(once.stage_values)
    system, controls = problem.system, transcription.controls.tolist()
    symbol = type(given["x"])
    y = symbol.sym("y", system.n_errors + len(controls))
    u = symbol(given["u_ref"])
    u[controls] = y[system.n_errors :]
    own = given["p"][: system.n_parameters]
    names = ["t", "x", "x_next", "x_ref", "u_ref", "p", "dt"]
    moved = given | {"x": system.retract(given["x"], y[: system.n_errors], own), "u": u}
    if "w" in transcription.shared:
        moved["w"] = ca.DM(transcription.path_weights)
    else:
        names.append("w")
    own = [given[name] for name in names]
    return _with_derivatives(transcription, once.stage_values, moved, y, own, slice(-1))


def _end(transcription: Transcription) -> list[ca.Function]:
    """The same of the end."""
    problem, once = transcription.problem, transcription._functions
    given = symbols_of(once.terminal_values)
    system = problem.system
    y = type(given["x"]).sym("y", system.n_errors)
    own = given["p"][: system.n_parameters]
    moved = given | {
        "x": system.retract(given["x"], y, own), "w": ca.DM(transcription.end_weights),
    }  # fmt: skip
    names = [given[name] for name in ("t", "x", "x_ref", "u", "p", "P")]
    return _with_derivatives(transcription, once.terminal_values, moved, y, names, slice(-1, None))


def _with_derivatives(
    transcription: Transcription, made: ModelFunction, moved: dict[str, Any], y: Any,
    given: list[Any], nodes: slice,
) -> list[ca.Function]:  # fmt: skip
    """``(y, …) → cost, values``, these with slopes, and a Hessian.

    That is of ``scale·cost + multipliersᵀ values``; its last argument is ``[scale, multipliers]``.
    Values are defects and rows of these nodes.
    """
    cost, *others = made.function.call(list(moved.values()))
    values, holds = ca.vertcat(*others), transcription.rows.active[nodes]
    multipliers = type(y).sym("multipliers", 1 + values.shape[0])
    slopes = [ca.gradient(cost, y), ca.densify(ca.jacobian(values, y))]
    prices = multipliers[values.shape[0] + 1 - holds.shape[1] :]
    rows = bounded_rows(transcription.problem, made.function, holds, moved, prices)
    lagrangian = ca.dot(multipliers, ca.vertcat(cost, *others[:-1], rows))
    results = [[cost, values], [cost, values, *slopes], [ca.densify(ca.hessian(lagrangian, y)[0])]]
    if isinstance(y, ca.SX):
        results = [ca.cse(found) for found in results]
    arguments = [[y, *given], [y, *given], [y, *given, multipliers]]
    names = ("stage", "stage_slopes", "stage_bend")
    return [
        ca.Function(name, taken, found)
        for name, taken, found in zip(names, arguments, results, strict=True)
    ]


def _matrix(entries: Sequence[tuple[int, int, float]], rows: int, columns: int) -> ca.DM:
    """A sparse matrix of some entries."""
    i, j, values = zip(*entries, strict=True) if entries else ((), (), ())
    return ca.DM.triplet(list(i), list(j), ca.DM(list(values)), rows, columns)
