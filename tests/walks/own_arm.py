import numpy as np

import lgcontrol as lg

bar = lg.SpatialInertia.box(1.0, [0.1, 0.1, 0.5])
tree = lg.Multibody("arm").add_body("upper", bar, "revolute", axis="y")
tree = tree.add_body("lower", bar, "revolute", "upper", [0, 0, 0.5], axis="y").symbolic(
    "lower.mass"
)
arm = tree.system().with_parameters({"lower.mass": 2.0})
fixed = tree.with_parameters({"lower.mass": 2.0})
reach = lg.InverseKinematics(fixed, "lower")
found = reach.solve(fixed.placement("lower")([0.3, 0.5]), guess=np.array([0.2, 0.2]))
plan = lg.OptimalControlProblem(arm, 10, 0.1, Q=1.0, R=0.01, reference=arm.trim()).solve(arm.home)
print(found.is_success, plan.is_success)
