"""Factor graphs: linear ones in closed form, losses, gauges, pose graphs, whole logs at once."""

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.estimation import EKF, FactorGraph, Factors, Log, Variables, pose_graph
from lgcontrol.groups import SE2, SE3, SO3, Rn
from lgcontrol.io import PoseGraph, read_pose_graph
from lgcontrol.optimal import SolveStatus
from lgcontrol.systems import System

from ._models import PLACE
from .test_filters import DT, PUSH, cart_log, cart_matrices

NONE = np.zeros(0, dtype=int)


def between(a, b, z):
    return SE3.minus(SE3.compose(SE3.inverse(a), b), z)


def test_linear_graphs_have_the_solution_of_the_normal_equations(rng):
    A, c = rng.normal(size=(40, 2, 2)), rng.normal(size=(40, 2))
    i, j = rng.integers(0, 8, (2, 40))
    std = np.array([0.5, 2.0])
    points = Variables("point", Rn(2), rng.normal(size=(9, 2)), fixed=[8])
    scale = Variables("scale", Rn(1), [[0.0]])
    graph = FactorGraph(
        [points, scale],
        [
            Factors(
                "pair",
                lambda x, y, s, d: d[:4].reshape((2, 2)).T @ x + y * 2 + s - d[4:],
                [("point", i), ("point", j), ("scale", np.zeros(40, dtype=int))],
                np.column_stack([A.reshape(40, 4), c]),
                std=std,
            ),
            Factors("known", lambda x, y: x - y, [("point", range(8)), ("point", [8] * 8)]),
        ],
    )
    found = graph.solve()
    # the same written out densely
    J, y = np.zeros((96, 17)), np.zeros(96)
    for k in range(40):
        rows = slice(2 * k, 2 * k + 2)
        J[rows, 2 * i[k] : 2 * i[k] + 2] += A[k] / std[:, None]
        J[rows, 2 * j[k] : 2 * j[k] + 2] += 2 * np.eye(2) / std[:, None]
        J[rows, 16] = 1 / std
        y[rows] = c[k] / std
    J[80:, :16] = np.eye(16)
    y[80:] = np.tile(points.start[8], 8)
    x = np.linalg.lstsq(J, y, rcond=None)[0]
    np.testing.assert_allclose(found.x["point"][:8].ravel(), x[:16], atol=1e-10)
    np.testing.assert_allclose(found.x["scale"][0], x[16:], atol=1e-10)
    np.testing.assert_array_equal(found.x["point"][8], points.start[8])
    assert found.status == SolveStatus.CONVERGED and found.iterations <= 2
    assert found.cost == pytest.approx(((J @ x - y) ** 2).sum() / 2)
    inverse = np.linalg.inv(J.T @ J)
    np.testing.assert_allclose(graph.covariance(found.x, "point", 3), inverse[6:8, 6:8], atol=1e-12)
    np.testing.assert_allclose(graph.covariance(found.x, "scale", 0), inverse[16:, 16:], atol=1e-12)
    assert not graph.covariance(found.x, "point", 8).any()


def test_a_whole_linear_log_is_the_smoother(rng):
    """First estimate, motion and measurements as factors: estimates and covariances of RTS."""
    A, B = cart_matrices()
    noisy = System("noisy", Rn(2), lambda t, x, u, p: A @ x + B * u[0] + u[1:] - x,
                   inputs=["force", "noise.x", "noise.y"], dt=DT)  # fmt: skip
    t, u, places, _ = cart_log(rng, 20)
    P0, std = np.diag([1.0, 0.5]), PUSH / np.sqrt(DT)
    log = Log(t, np.column_stack([u, u[:, 1]]), {"place": (t[1:], places)})
    late = EKF(noisy, [PLACE], P0=P0, noise={"noise": PUSH}).run(log).smooth()
    state = "state"
    graph = FactorGraph(
        [Variables(state, Rn(2), np.zeros((21, 2)))],
        [
            Factors("first", lambda x: x, [(state, [0])], information=np.linalg.inv(P0)),
            Factors("motion", lambda x, y, v: y - (A @ x + B * v),
                    [(state, range(20)), (state, range(1, 21))], u[:20, :1], std=std),
            Factors("place", lambda x, y: x[0] - y, [(state, range(1, 21))], places, std=0.1),
        ],
    )  # fmt: skip
    found = graph.solve()
    np.testing.assert_allclose(found.x[state], late.x, atol=1e-12)
    for k in (0, 7, 20):
        np.testing.assert_allclose(graph.covariance(found.x, state, k), late.P[k], atol=1e-12)


@pytest.mark.parametrize("loss", ["huber", "cauchy", "geman_mcclure"])
def test_losses_hold_outliers_off(loss):
    """Twenty numbers about 1, four at 50."""
    y = np.r_[1 + 0.1 * np.sin(np.arange(20)), np.full(4, 50.0)][:, None]

    def mean(loss):
        graph = FactorGraph(
            [Variables("x", Rn(1), [[3.0]])],
            [Factors("y", lambda x, y: x - y, [("x", [0] * 24)], y, std=0.1, loss=loss)],
        )
        found = graph.solve()
        assert found.status == SolveStatus.CONVERGED
        # the gradient of the cost is zero, next to a curvature of 2400
        h, x = 1e-5, found.x["x"]
        assert (
            abs(graph.cost({"x": x + h}) - graph.cost({"x": x - h})) / (2 * h) < 0.1
        )  # curvature 2400
        return x.item()

    assert mean(None) == pytest.approx(y.mean())
    assert mean(loss) == pytest.approx(y[:20].mean(), abs={"huber": 0.06}.get(loss, 2e-3))


def test_derivatives_by_hand_are_those_of_the_residual(rng):
    """The closed form of relative poses against differentiation."""
    X = SE3.random(rng, (5,))
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]])
    Z = SE3.random(rng, (5,))
    recorded = PoseGraph(3, np.arange(5), X, NONE, edges, Z, np.array([np.eye(6)] * 5))
    by_hand = pose_graph(recorded, guess="given")
    own = FactorGraph(
        [Variables("pose", SE3, X, [0])],
        [Factors("between", between, [("pose", end) for end in edges.T], Z)],
    )
    made = [graph._normal({"pose": X}) for graph in (by_hand, own)]
    np.testing.assert_allclose(made[0][0], made[1][0], atol=1e-10)
    np.testing.assert_allclose(made[0][1], made[1][1], atol=1e-10)
    # and these against differences of the cost
    H, gradient = made[0]
    d = rng.normal(size=len(gradient))
    moved = [own.cost(own._moved({"pose": X}, s * 1e-6 * d)) for s in (1, -1)]
    assert (moved[0] - moved[1]) / 2e-6 == pytest.approx(gradient @ d, rel=1e-6)


@pytest.mark.parametrize("group", [SE2, SE3])
def test_pose_graphs_without_noise_are_solved_from_no_guess(group, rng):
    """Chordal relaxation alone is exact then."""
    X = group.random(rng, (30,))
    edges = np.array([*zip(range(29), range(1, 30), strict=True), (0, 10), (25, 3), (7, 28)])
    Z = group.compose(group.inverse(X[edges[:, 0]]), X[edges[:, 1]])
    info = np.array([np.eye(group.dim)] * len(edges))
    dimension = {SE2: 2, SE3: 3}[group]
    graph = pose_graph(PoseGraph(dimension, np.arange(30), None, NONE, edges, Z, info))
    assert graph.cost(graph.start()) < 1e-20
    found = graph.solve()
    assert found.status == SolveStatus.CONVERGED and found.cost < 1e-20
    own = found.x["pose"]
    relative = group.compose(group.inverse(own[:1]), own)
    expected = group.compose(group.inverse(X[:1]), X)
    assert np.abs(group.minus(relative, expected)).max() < 1e-9


@pytest.mark.parametrize("group", [SE2, SE3])
@pytest.mark.parametrize("start", ["chordal", "given"])
def test_landmarks_of_a_graph_are_found_with_its_poses(group, start, rng):
    """Sights alone tell of a wrong edge; the first guesses of poses and points are off."""
    poses, points = group.random(rng, 6), rng.normal(size=(4, group.point_size))
    poses[:, : group.point_size] *= 3
    ends = np.array([[k, k + 1] for k in range(5)])
    measured = group.compose(group.inverse(poses[ends[:, 0]]), poses[ends[:, 1]])
    measured[2] = group.plus(measured[2], 0.3 * rng.normal(size=group.dim))
    weak = np.tile(np.eye(group.dim), (5, 1, 1))
    weak[2] *= 1e-12
    sights = np.array([[k, j] for k in range(6) for j in range(4)])
    M = group.matrix(group.inverse(poses[sights[:, 0]]))
    d = group.point_size
    seen = (M[:, :d, :d] @ points[sights[:, 1]][..., None])[..., 0] + M[:, :d, d]
    guess = group.plus(poses, 0.05 * rng.normal(size=(6, group.dim)))
    guess[0] = poses[0]
    graph = PoseGraph(
        d, np.arange(6), guess, np.array([0]), ends, measured, weak,
        landmark_names=np.arange(4), landmarks=points + 0.1 * rng.normal(size=points.shape),
        sights=sights, seen=seen, sight_information=np.tile(np.eye(d), (24, 1, 1)),
    )  # fmt: skip
    found = pose_graph(graph, guess=start).solve()
    np.testing.assert_allclose(found.x["landmark"], points, atol=1e-6)
    np.testing.assert_allclose(group.minus(found.x["pose"], poses), 0, atol=1e-6)


def test_a_landmark_that_nobody_saw_is_refused():
    turn = np.tile(SE2.identity, (1, 1))
    graph = PoseGraph(2, np.arange(2), None, NONE, np.array([[0, 1]]), turn, np.eye(3)[None],
                      landmark_names=np.array([7]))  # fmt: skip
    with pytest.raises(ValueError, match="landmark 7 has no position, and no pose saw it"):
        pose_graph(graph)


def city(count, extra, rng):
    """Poses along a random walk in the plane with edges across, three landmarks, one pose fixed."""
    x = SE2.random(rng, (count,))
    along = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    across = np.argwhere(np.triu(np.ones((count, count)), 2))
    ends = np.concatenate([along, rng.permutation(across)[:extra]])
    a, b = ends.T
    z = SE2.plus(SE2.compose(SE2.inverse(x[a]), x[b]), 0.1 * rng.normal(size=(len(a), 3)))
    root = rng.normal(size=(len(a), 3, 3))
    sights = np.array([[k, k % 3] for k in range(0, count, 2)])
    return PoseGraph(
        2, np.arange(count), x, np.array([3]), ends, z, root @ np.swapaxes(root, 1, 2) + np.eye(3),
        landmark_names=np.arange(count, count + 3), sights=sights,
        seen=rng.normal(size=(len(sights), 2)),
        sight_information=np.tile(2 * np.eye(2), (len(sights), 1, 1)),
    )  # fmt: skip


@pytest.mark.parametrize("extra", [0, 6, 400])
def test_marginals_are_blocks_of_the_dense_inverse(extra, rng):
    """Of a chain, of a graph with some loops, and of one that is nearly full."""
    graph = pose_graph(city(14, extra, rng))
    x = graph.start()
    found, nodes = graph.marginals(x), graph._nodes
    dense = np.linalg.inv(nodes._matrix(graph._normal(x)[0]).toarray())
    keys = [("pose", k) for k in range(14)] + [("landmark", k) for k in range(3)]
    rows = {}
    for name, k in keys:
        begin = nodes.begins[graph._bases[name] + k]
        dim = graph.variables[name].group.dim
        rows[name, k] = begin + np.arange(dim) if begin >= 0 else None
        expected = np.zeros((dim, dim))
        if begin >= 0:
            expected = dense[np.ix_(rows[name, k], rows[name, k])]
        np.testing.assert_allclose(found.covariances[name][k], expected, atol=1e-12)
        np.testing.assert_allclose(graph.covariance(x, name, k), expected, atol=1e-12)
    inside = 0
    for a in keys:
        for b in keys:
            joint = found.joint(a, b)
            if rows[a] is None or rows[b] is None:
                continue
            both = np.concatenate([rows[a], rows[b]])
            np.testing.assert_allclose(joint, dense[np.ix_(both, both)], atol=1e-12)
            ranks = (nodes.rank(graph._bases[n] + k) for n, k in (a, b))
            inside += found._inverse.block(*ranks) is not None
    # those of the factor are read off, the others solved for
    assert 2 * len(keys) < inside < len(keys) ** 2 and (inside > 150) == (extra == 400)


def test_marginals_of_a_solution_are_plotted_with_its_path(rng):
    square = pose_graph(city(8, 2, rng))
    figure = square.marginals(square.solve().x).plot()
    rings = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 61]
    assert len(rings) >= 2
    with pytest.raises(KeyError, match="valid names are pose, landmark"):
        square.marginals().plot("poses")
    with pytest.raises(KeyError, match="valid names are pose, landmark"):
        square.marginals().joint(("poses", 0))
    with pytest.raises(ValueError, match="from 0 to 7, got 8"):
        square.marginals().joint(("pose", 8))


def test_steps_that_raise_the_cost_are_damped(rng):
    """A guess that is turned by up to 170°; Gauss–Newton alone would leave."""
    z = SO3.exp(0.1 * rng.normal(size=(30, 3)))
    graph = FactorGraph(
        [Variables("R", SO3, SO3.exp([[2.0, 1.9, 1.0]])), Variables("k", Rn(1), [[8.0]])],
        [Factors("seen", lambda R, k, z: ca.sin(k) * SO3.minus(R, z) * 3 + k, [
            ("R", [0] * 30), ("k", [0] * 30)], z, loss="cauchy")],
    )  # fmt: skip
    found = graph.solve()
    assert all(b <= a for a, b in zip(found.costs, found.costs[1:], strict=False))
    assert found.cost < 0.6 * found.costs[0]
    assert found.status in (SolveStatus.CONVERGED, SolveStatus.STALLED)


def test_sphere2500(shared):
    """The published cost, from no guess."""
    graph = pose_graph(read_pose_graph(shared / "data" / "pose_graph" / "sphere2500.txt.gz"))
    found = graph.solve()
    assert found.cost == pytest.approx(364.4949, abs=1e-3)
    assert found.status == SolveStatus.CONVERGED and found.iterations <= 4


def test_a_planar_graph_with_equal_poses(shared):
    recorded = read_pose_graph(shared / "data" / "pose_graph" / "w100.graph.gz")
    costs = [pose_graph(recorded, guess=start).solve().cost for start in ("chordal", "given")]
    assert len(recorded.names) == 60 and costs[0] == pytest.approx(costs[1], rel=1e-6)


POINTS = Variables("x", Rn(1), np.zeros((3, 1)))
PULL = Factors("pull", lambda x: x, [("x", range(3))])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorGraph([POINTS], []), "needs factors"),
        (lambda: FactorGraph([POINTS], [PULL, PULL]), "factors, each with a name of its own"),
        (lambda: FactorGraph([POINTS, POINTS], [PULL]), "variables, each with a name of its own"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x: x, [("y", [0])])]), "'y'"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x: x, [("x", [3])])]), "from 0 to 2"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x: x, [("x", [0.5])])]), "whole numb"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x: x, [("x", [0])])]), "'x' number 1"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x, y: x, [
            ("x", [0, 1]), ("x", [1])])]), "as many of each"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x, d: x, [
            ("x", range(3))], np.zeros((2, 1)))]), "expected \\(3, 1\\)"),
        (lambda: Factors("f", lambda x: x, [("x", [0])], loss="tukey"), "valid names are huber"),
        (lambda: Factors("f", lambda x: x, [("x", [0])], threshold=-1), "must be positive"),
        (lambda: Factors("f", lambda x: x, [("x", [0])], std=1, information=[[1]]), "not both"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x: x, [("x", range(3))],
                                                information=[[-1.0]])]), "negative eigenvalues"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x: x, [("x", range(3))], std=0.0)]),
         "must be positive"),
        (lambda: Variables("x", Rn(1), np.zeros((3, 2))), "expected \\(..., 1\\)"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x, y: x - y, [
            ("x", [0, 1]), ("x", [1, 2])])]).covariance(
                {"x": np.zeros((3, 1))}, "x", 0), "without information"),
        (lambda: FactorGraph([POINTS], [PULL]).covariance({}, "y", 0), "valid names are x"),
        (lambda: FactorGraph([POINTS], [Factors("f", lambda x, y: x - y, [
            ("x", [0, 1]), ("x", [1, 2])])]).marginals(), "without information"),
        # a further number would be that of another variable
        (lambda: FactorGraph([POINTS, Variables("z", Rn(1), np.zeros((1, 1)))], [
            PULL, Factors("f", lambda z: z, [("z", [0])])]).covariance(
                {"x": np.zeros((3, 1)), "z": np.zeros((1, 1))}, "x", 3), "from 0 to 2"),
        (lambda: pose_graph(PoseGraph(2, np.arange(2), None, NONE, np.array([[0, 1]]),
                                      SE2.identity[None], np.eye(3)[None]), guess="given"),
         "lacks poses"),
    ],
)  # fmt: skip
def test_what_is_refused(make, message):
    with pytest.raises((ValueError, KeyError, TypeError), match=message):
        make()


def ring(**changed):
    """A hexagon of edges, with something changed."""
    ends = np.array([[k, (k + 1) % 6] for k in range(6)])
    given = {"measured": np.tile(SE2.exp([1.0, 0.0, np.pi / 3]), (6, 1)),
             "information": np.tile(np.eye(3), (6, 1, 1)), "edges": ends}  # fmt: skip
    for name, (place, value) in changed.items():
        given[name] = np.array(given[name])
        given[name][place] = value
    return PoseGraph(2, np.arange(10, 16), None, NONE, given["edges"], given["measured"],
                     given["information"], lines=np.arange(101, 107))  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"measured": ((2, 2), 3.0)}, r"edge 2 \(line 103 of the file, from pose 12 to pose 13\).*"
         r"no element of SE2: \(cos, sin\) has norm"),
        ({"measured": ((4, 0), np.nan)}, r"edge 4 .* is not finite"),
        ({"edges": ((3, 1), 9)}, "edge 3 is of pose row 9; there are 6 poses"),
        ({"edges": ((3, 1), -1)}, "edge 3 is of pose row -1"),
        ({"edges": ((3, 1), 3)}, r"edge 3 \(line 104 .* joins a pose with itself"),
        ({"information": ((1, 1, 1), -5.0)}, r"information of edge 1 .* eigenvalue -5"),
        ({"information": ((1, 0, 1), 0.7)}, r"information of edge 1 .* not symmetric, by 0.7"),
        ({"information": ((1, 0, 0), np.inf)}, r"information of edge 1 .* not finite"),
    ],
    ids=lambda entry: next(iter(entry)) if isinstance(entry, dict) else "",
)  # fmt: skip
def test_edges_off_their_group_are_refused_by_name(changed, message):
    with pytest.raises(ValueError, match=message):
        pose_graph(ring(**changed))


def test_edges_keep_the_rule_of_coordinates_and_their_lines(tmp_path):
    """Six digits are enough; a file's edges know their lines."""
    near = ring()
    near.measured[:, 2:] *= 1 + 5e-7
    assert pose_graph(near).solve().cost < 1e-20
    path = tmp_path / "ring.g2o"
    lines = [
        "# a comment",
        *(f"EDGE_SE2 {k} {(k + 1) % 6} 1 0 1.0472 1 0 0 1 0 1" for k in range(6)),
    ]
    path.write_text("\n".join(lines))
    read = read_pose_graph(path)
    np.testing.assert_array_equal(read.lines, range(2, 8))
    read.measured[5, 2:] *= 2
    with pytest.raises(ValueError, match=r"edge 5 \(line 7 of the file, from pose 5 to pose 0\)"):
        pose_graph(read)


@pytest.mark.parametrize("ask", ["solve", "marginals"])
def test_elements_that_are_given_are_checked(ask):
    graph = pose_graph(ring())
    x = graph.start()["pose"]
    for given, message in (
        ({"pose": 2 * x}, r"x\['pose'\]\[0\] .* no element of SE2"),
        ({"pose": x[:3]}, r"x\['pose'\] has shape \(3, 4\), expected \(6, 4\)"),
        ({}, "lacks the elements of 'pose'"),
        ({"pose": x, "posts": x}, "unknown variables 'posts'"),
    ):
        with pytest.raises((ValueError, KeyError), match=message):
            getattr(graph, ask)(given)


def test_long_arms_that_turn_do_not_make_it_crawl():
    """A walk through a city by noisy turns: whole steps overshoot, damped ones take hundreds."""
    rng, count, std = np.random.default_rng(0), 400, 0.1
    steps = np.zeros((count - 1, 3))
    steps[:, 0] = 1.0
    steps[:, 2] = np.pi / 2 * rng.choice([-1, 0, 0, 0, 0, 0, 0, 1], count - 1)
    poses = [SE2.identity]
    for step in steps:
        poses.append(SE2.plus(poses[-1], step))
    x = np.array(poses)
    near = np.linalg.norm(x[:, None, :2] - x[:, :2], axis=-1) < 1.5
    along = np.stack([np.arange(count - 1), np.arange(1, count)], axis=1)
    ends = np.concatenate([along, np.argwhere(np.triu(near, 5))])
    a, b = ends.T
    z = SE2.plus(SE2.compose(SE2.inverse(x[a]), x[b]), std * rng.normal(size=(len(a), 3)))
    information = np.tile(np.eye(3) / std**2, (len(a), 1, 1))
    found = pose_graph(PoseGraph(2, np.arange(count), None, NONE, ends, z, information)).solve()
    free = 3 * (len(a) - count + 1)  # of χ², twice the cost
    assert found.status == SolveStatus.CONVERGED and found.iterations < 10
    assert abs(2 * found.cost - free) < 3 * np.sqrt(2 * free)


def test_marginals_say_what_they_want():
    graph = FactorGraph(
        [Variables("level", Rn(1), np.zeros((3, 1)))],
        [Factors("each", lambda a: a, [("level", [0, 1, 2])], std=2.0)],
    )
    with pytest.raises(TypeError, match=r"of a solution give solution\.x"):
        graph.marginals(graph.solve())
    with pytest.raises(TypeError, match=r"each variable is \(name, number\)"):
        graph.marginals().joint(0, 2)


def test_parts_that_nothing_joins_are_refused_by_name():
    """A part without a fixed pose has no place: damped steps would end anywhere."""
    edges = np.array([[0, 1], [1, 2], [3, 4]])
    steps, info = np.tile(SE2.exp([1, 0, 0.1]), (3, 1)), np.tile(np.eye(3), (3, 1, 1))
    apart = PoseGraph(2, np.arange(5) + 10, None, NONE, edges, steps, info)
    with pytest.raises(ValueError, match=r"2 of 5 poses \(13, 14\) are joined by no edges"):
        pose_graph(apart)
    both = replace(apart, fixed=np.array([0, 3]), poses=np.tile(SE2.identity, (5, 1)))
    assert pose_graph(both).solve().is_success


def test_a_solution_prints_in_a_line():
    edges = np.stack([np.arange(499), np.arange(1, 500)], axis=-1)
    chain = PoseGraph(2, np.arange(500), None, NONE, edges, np.tile(SE2.exp([1, 0, 0.1]), (499, 1)),
                      np.tile(np.eye(3), (499, 1, 1)))  # fmt: skip
    text = repr(pose_graph(chain).solve())
    assert text.startswith("GraphSolution(converged, cost") and "500 pose" in text
    assert len(text) < 120 and "\n" not in text
