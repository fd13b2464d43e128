import lgcontrol as lg

quad = lg.models.quadrotor()
gps = lg.Sensor("gps", "pose", std_discrete=0.1, dt=0.1)
ekf = lg.EKF(quad, [gps], quad.home, std0=0.1, noise={"force": 0.1, "torque": 0.01})
hover = quad.trim()
law = lg.LQR(quad, hover, Q={"pose": 10, "twist": 1}, R=0.1)
run = lg.simulate(
    quad, law, x0=quad.home, reference=hover, seconds=0.5, sensors=[gps], estimator=ekf, seed=1
)
print(run.is_success, ekf.counts["gps"])
