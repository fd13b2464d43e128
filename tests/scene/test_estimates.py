"""Scenes of estimates: ellipsoids of two deviations about positions, in the right axes."""

import numpy as np

from lgcontrol.estimation import EKF, FactorGraph, Factors, LandmarkMap, Variables
from lgcontrol.groups import SE2, SE3
from lgcontrol.models import quadrotor
from lgcontrol.scene._internal import state_ellipsoids
from lgcontrol.simulation import simulate
from lgcontrol.systems import Sensor


def ellipsoids(scene):
    return [body for body in scene.bodies if body.name.endswith("2σ")]


def test_an_ellipsoid_stands_in_the_axes_of_its_pose():
    """Twice the deviations along body axes: x of a pose that is turned by a quarter is world y."""
    quad = quadrotor()
    x = quad.home
    x[:7] = [1.0, 2.0, 3.0, 0, 0, np.sqrt(0.5), np.sqrt(0.5)]
    P = np.diag([0.3, 0.1, 0.2] + [0.01] * 9) ** 2
    (body,) = state_ellipsoids(quad.state, x[None], P[None])
    points = body.points(0)
    assert np.allclose(points.mean(axis=0), [1, 2, 3], atol=0.05)
    assert np.allclose(np.ptp(points, axis=0), 4 * np.array([0.1, 0.3, 0.2]), rtol=0.05)


def test_a_run_with_an_estimator_shows_what_it_thinks():
    quad = quadrotor()
    trim = quad.trim()
    fix = Sensor("fix", dt=0.05, h="pose", std_discrete=0.02)
    run = simulate(
        quad,
        lambda t, x, reference: trim.u[:4],
        x0=trim.x,
        reference=trim.x,
        seconds=0.2,
        dt=0.05,
        sensors=[fix],
        estimator=EKF(quad, [fix], trim.x, std0=0.1, noise={"force.x": 0.1}),
    )
    scene = run.scene()
    assert 1 <= len(ellipsoids(scene)) <= 15
    assert "quadrotor, estimate" in [path.name for path in scene.paths]


def test_maps_and_graphs_have_scenes():
    places = LandmarkMap(3, group=SE2, std0=0.01, noise={"velocity.x": 0.1}, std_discrete=0.1)
    places.predict(0.0, [1.0, 0, 0], 0.1)
    places.update(2, [2.0, 1.0])
    scene = places.scene()
    assert {body.name for body in scene.bodies} == {"robot", "robot, 2σ", "landmark 2, 2σ"}

    steps = np.tile(SE3.exp([1.0, 0, 0, 0, 0, 0.3]), (3, 1))
    poses = np.array([SE3.identity] * 4)
    graph = FactorGraph(
        [Variables("pose", SE3, poses)],
        [
            Factors("step", lambda a, b, d: SE3.minus(SE3.compose(SE3.inverse(a), b), d),
                    [("pose", range(3)), ("pose", range(1, 4))], data=steps, std=0.1),
            Factors("fix", lambda a: SE3.log(a), [("pose", [0])], std=0.01),
        ],
    )  # fmt: skip
    marginals = graph.marginals(graph.solve().x)
    sizes = [np.ptp(body.points(0), axis=0).max() for body in ellipsoids(marginals.scene())]
    assert len(sizes) == 4 and np.all(np.diff(sizes) > 0)
