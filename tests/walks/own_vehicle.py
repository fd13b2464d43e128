import casadi as ca

import lgcontrol as lg


def field(t, x, u, p):
    v = x[4:]
    drag = ca.DM([0.3, 1.0, 0.6]) * v
    return ca.vertcat(v, ca.vertcat(u[0], 0, u[1]) / p[0] - drag)


state = lg.Product(pose=lg.SE2, twist=lg.Rn(3))
boat = lg.System(
    "boat", state, field, inputs=["thrust", "turn"], parameters=[lg.Parameter("mass", "kg", 2.0)]
)
lg.check_system(boat)
here = boat.trim(position=[1.0, 0.0])
law = lg.MPC(boat, horizon=20, dt=0.1, Q={"pose": 10, "twist": 1}, R=0.1, guess="regulators")
run = lg.simulate(
    boat.with_parameters({"mass": 2.5}), law, x0=state.identity, reference=here, seconds=2.0
)
print(run.is_success, run.summary())
