import numpy as np

import lgcontrol as lg

bar = lg.SpatialInertia.box(1.0, [0.5, 0.02, 0.02])
bars = lg.Multibody("bars").add_body("crank", bar, "revolute", axis="y")
bars = bars.add_body("coupler", bar, "revolute", "crank", [0, 0, 0.5], axis="y")
bars = bars.add_frame("end", "coupler", [0.8, 0, 0])
slider = lg.ClosedTree(bars).close_loop("joint", "end", "world", "point_on_line", axis="x")
q = slider.assemble(where={"crank": 0.3})
print(slider.mobility(q))
motion = slider.drive("crank", lambda t: 0.3 + t).kinematics(np.linspace(0, 0.5, 11))
system = slider.system(["crank"], at=q, independent="crank")
run = system.rollout(slider.state(q, speeds={"crank": 1.0}), [0.0], 0.01, steps=20)
print(motion.is_success, run.x.shape)
