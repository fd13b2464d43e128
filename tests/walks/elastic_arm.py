import numpy as np

import lgcontrol as lg
from lgcontrol.controllers import FlatFeedforward
from lgcontrol.mechanics import Motor

bar = lg.SpatialInertia.box(1.0, [0.1, 0.1, 0.5])
tree = lg.Multibody("arm").add_body("upper", bar, "revolute", axis="y")
tree = tree.add_body("lower", bar, "revolute", "upper", [0, 0, 0.5], axis="y")
motors = {"upper": Motor(0.4, spring=900.0), "lower": Motor(0.2, spring=500.0)}
arm = lg.SeriesElastic(tree, motors)
path = lg.Waypoints(tree.configuration, [0, 1], [[0.0, 0.3], [0.8, -0.4]], order=9)
start = path(np.zeros(1))
x0 = arm.flat_map()(start.x, start.velocity, start.acceleration, start.jerk, start.snap).x[0]
law = FlatFeedforward(arm, reference=path)
run = lg.simulate(arm.system(), law, x0=x0, reference=path, seconds=0.3)
print(run.is_success, arm.symbolic("upper.motor.inertia").parameters)
