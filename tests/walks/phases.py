import lgcontrol as lg

push = lg.Input("push", "m/s²", -1.0, 1.0)
cart = lg.System("cart", lg.Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=[push])
stop = [lg.Bound("x", 1, 1, at="terminal"), lg.Bound("v", 0, 0, at="terminal")]
fast = lg.Phase(cart, 10, (0.1, 5.0), name="go")
slow = lg.Phase(
    cart, 10, (0.1, 5.0), bounds=stop, costs=[lg.Cost(lambda t, x, u, p: x[0] ** 2)], name="stop"
)
plan = lg.PhasedProblem([fast, slow], time_weight=1.0).solve([0, 0])
law = lg.TVLQR(cart, plan.trajectory, Q=1.0, R=0.1)
run = lg.simulate(cart, law, x0=[0.02, 0.0], reference=plan.trajectory, seconds=2.0)
print(plan.durations, plan.is_success, run.is_success)
