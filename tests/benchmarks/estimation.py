"""Filters on real logs and simulated problems next to peers and published numbers; their speed.

    python -m tests.benchmarks.estimation [--only broad wifibot plaza kitti sphere simulated …]

Logs are those of ``$LGCONTROL_SHARED/data`` or ``../shared/data``. vqf is measured in the same run
where it is installed, UKF-M where it can be imported (`_ukfm_peer`); the invariant filter of the
Wifibot task is written out in `_estimation_cases`. The last column of the table is what was to be
beaten. Writes results/estimation.json.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from lgcontrol.estimation import (
    EKF,
    UKF,
    Log,
    MovingHorizon,
    Preintegration,
    fit_noise,
    gnss,
    magnetometer,
    pose_graph,
)
from lgcontrol.estimation._internal import chi_squared_band
from lgcontrol.estimation._log import Rows
from lgcontrol.groups import Rn
from lgcontrol.io import (
    read_broad,
    read_kitti_imu_gnss,
    read_plaza,
    read_pose_graph,
    read_wifibot,
)
from lgcontrol.models import quadrotor
from lgcontrol.systems import Sensor

ROOT = Path(__file__).resolve().parents[2]
if not __package__:  # run by its path
    sys.path.insert(0, str(ROOT))
from tests.benchmarks import _estimation_cases as cases  # noqa: E402 - see the line above
from tests.benchmarks import _ukfm_peer as peer  # noqa: E402
from tests.benchmarks._slam import linear_slam, peer_slam, run_slam  # noqa: E402

FILTERS = {
    "EKF, two rounds": (EKF, {"iterations": 2}),
    "EKF, one round": (EKF, {"iterations": 1}),
    "EKF without reset": (EKF, {"reset": False}),
    "iterated EKF": (EKF, cases.UNKNOWN_HEADING),  # the default
    "UKF": (UKF, {}),
}


def vqf_quaternions(signals, dt):
    """VQF with its defaults, 9 axes; None where it is not installed."""
    if importlib.util.find_spec("vqf") is None:
        return None
    import vqf  # pyright: ignore[reportMissingImports]

    found = vqf.VQF(dt).updateBatch(*map(np.ascontiguousarray, signals))["quat9D"]
    return found[:, [1, 2, 3, 0]]


def broad(data):
    """Total error and inclination [deg] of each trial, and the means of the classes."""
    rows = {}
    for path in sorted((data / "broad").glob("*.npz")):
        recording = read_broad(path)
        began = time.perf_counter()
        ours = cases.run_broad(recording)
        rows[path.stem] = {"ours": cases.attitude_errors(recording, ours),
                           "seconds": time.perf_counter() - began}  # fmt: skip
        signals = [recording.signals[name] for name in ("gyro", "accelerometer", "magnetometer")]
        theirs = vqf_quaternions(signals, float(recording.t[1]))
        if theirs is not None:
            rows[path.stem]["vqf"] = cases.attitude_errors(recording, theirs)
    result = {"trials": rows}
    for who in ("ours", "vqf"):
        if all(who in row for row in rows.values()):
            kinds = [[row[who] for name, row in rows.items() if key in name]
                     for key in ("_undisturbed_", "_disturbed_")]  # fmt: skip
            result[who] = {
                "undisturbed, disturbed [deg]": [float(np.mean([e[0] for e in k])) for k in kinds],
                "inclination [deg]": float(np.mean([e[1] for k in kinds for e in k])),
            }
    return result


SCALES = (0.003, 0.005, 0.007, 0.01, 0.014)


def broad_likelihood(data):
    """The default of ``gyro_scale`` by the likelihood of headings, files and truth apart.

    The level of the field's deviation belongs to the place, so that it is each file's own; with one
    for all the optimum is flat from 0.007 to 0.014.
    """
    recordings = [read_broad(path) for path in sorted((data / "broad").glob("*.npz"))]
    rows = cases.gyro_scale_study(recordings, SCALES)
    best = max(SCALES, key=lambda scale: rows[scale]["log-likelihood, field by file"])
    return {str(scale): row for scale, row in rows.items()} | {"highest likelihood": best}


def motion(data):
    """BROAD cut into pieces that start in motion: total errors [deg] from the second second on."""
    rows = {}
    for path in sorted((data / "broad").glob("*.npz")):
        recording = read_broad(path)
        dt = float(recording.t[1])
        rows[path.stem] = cases.cut_in_motion(recording, lambda s, dt=dt: vqf_quaternions(s, dt))
    each = {key: np.concatenate([row[key] for row in rows.values()])
            for key in next(iter(rows.values()))}  # fmt: skip
    return {
        "pieces": rows,
        "mean, median, worst": {
            key: [float(f(v)) for f in (np.mean, np.median, np.max)] for key, v in each.items()
        },
    }


def wifibot(data):
    """Position RMSE [m], mean over 20 seeds of the noise of fixes."""
    rows = {}
    for path in sorted((data / "wifibot_se2").glob("*.npz")):
        recording, k = read_wifibot(path), int(path.stem.removeprefix("wifibot"))
        rows[k] = {"published IEKF": float(cases.published_wifibot(recording).mean())}
        for name, (make, options) in FILTERS.items():
            if make is EKF:
                rows[k][name] = float(cases.run_wifibot(recording, **options).mean())
    return rows | {"to beat": {1: 0.084, 3: 0.054, 5: 0.065}, "setting": "iterated EKF"}


def plaza(data):
    """Position RMSE and NEES of each drive."""
    paths = sorted((data / "plaza_range").glob("*.npz"))
    rows = {path.stem.strip("_"): cases.run_plaza(read_plaza(path)) for path in paths}
    return rows | {"to beat": "0.5 m, NEES 0.3 to 1.5"}


def kitti(data):
    """Horizontal RMSE at the fixes that are not used, NIS of those that are and its band."""
    case = cases.Kitti.of(read_kitti_imu_gnss(data / "kitti_imu_gps" / "kitti_imu_gps.npz"))
    fit = fit_noise(case.ekf, case.log, ["gyro", "accelerometer", "gnss"], max_iterations=5)
    rows = {"fitted": {"densities": fit.densities, "fix": fit.factors, "by": fit.uncertainty}}
    for name, ekf in (("as set", case.ekf), ("highest likelihood", fit.filter)):
        run = ekf.run(case.log)
        said = run.innovations["gnss"]
        rows[name] = {"rmse [m]": case.score(run), "smoothed": case.score(run.smooth()),
                      "NIS": run.consistency().nis["gnss"],
                      "band of NIS": chi_squared_band(3, int(said.is_used.sum())),
                      "log-likelihood": float(run.log_likelihood)}  # fmt: skip
    return rows | {"to beat": "0.3 m, smoothed 0.12 m, NIS within its band"}


def sphere(data):
    """Cost of sphere2500, and seconds from the file and from the arrays; wall and processor."""
    rows = {}
    for _ in range(3):
        began = np.array([time.perf_counter(), time.thread_time()])
        recorded = read_pose_graph(data / "pose_graph" / "sphere2500.txt.gz")
        read = np.array([time.perf_counter(), time.thread_time()])
        graph = pose_graph(recorded)
        found = graph.solve()
        ended = np.array([time.perf_counter(), time.thread_time()])
        best = rows.get("wall, processor [s]", [np.inf, np.inf])
        rows = {
            "cost": found.cost,
            "steps": found.iterations,
            "wall, processor [s]": np.minimum(best, ended - read).tolist(),
            "reading [s]": float((read - began)[1]),
            "marginals [s]": marginals_of(graph, found.x),
            "load": os.getloadavg()[0],
        }
    return rows | {"to beat": "364.49 in 1 s"}


def marginals_of(graph, x):
    """Seconds of processor time for the covariances of all poses."""
    began = time.thread_time()
    graph.marginals(x)
    return time.thread_time() - began


def simulated(_):
    """Localization and inertial navigation of UKF-M, 100 runs; five times 100 of the setting."""
    rows = {
        "to beat": {  # their tables; the EKF's rows there are 0.76 and 0.82 m
            "localization": "0.45 m, NEES of heading 0.94 (left and right UKF, IEKF)",
            "inertial navigation": "0.24 m, NEES 1.1 (left and right UKF, IEKF)",
        },
        "IEKF of UKF-M, same draws": {
            "localization": cases.peer_localization(), "inertial navigation": cases.peer_inertial(),
        } if peer.is_there() else peer.NOT_RUN,
        "setting": "iterated EKF",
    }  # fmt: skip
    for name, (make, options) in FILTERS.items():
        rows[name] = {"localization": cases.run_localization(make, **options),
                      "inertial navigation": cases.run_inertial(make, **options)}  # fmt: skip
    runs = (cases.run_localization, cases.run_inertial)
    rows["iterated EKF, five sets of draws"] = {
        name: spread([run(EKF, seed=s, **cases.UNKNOWN_HEADING)["rmse [m]"] for s in range(5)])
        for name, run in zip(rows["to beat"], runs, strict=True)
    }
    return rows


SLAM_SETS = range(0, 1000, 100)  # first seeds


def slam(_):
    """Planar SLAM of UKF-M with landmarks added at first sight, as published and with resets.

    Its table is of one set of 100 runs. What a set is by chance, the filter of the linearized
    problem says, which is exactly right: ours on the same draws is compared with that.
    """
    linear, bounds = zip(*(linear_slam(seed=seed) for seed in SLAM_SETS), strict=True)
    ours = [run_slam(seed=seed) for seed in SLAM_SETS]
    away = [a.summary()["position [m]"] - b.summary()["position [m]"]
            for a, b in zip(ours, linear, strict=True)]  # fmt: skip
    rows = {
        "to beat": "0.55 m, NEES 1.1 (right UKF 1.09, IEKF 1.17)",
        "right errors": by_set(ours),
        "linear": by_set(linear) | {"bound [m]": bounds[0]},
        "right errors less linear [m]": spread(away),
        "right errors, with reset": run_slam(5, reset=True, iterations=1).summary(),
        "left errors, without reset": run_slam(5, error="left", reset=False).summary(),
    }
    mean, deviation = rows["right errors"]["position [m]"]
    print(f"slam: {mean:.3f} ± {deviation:.3f} m, table 0.55; the linear control on the same draws "
          "{:.3f} ± {:.3f} m".format(*rows["linear"]["position [m]"]))  # fmt: skip
    return rows


def slam_iekf(_):
    """UKF-M's own invariant filter on the first of these sets, 4 minutes of processor time."""
    return by_set([peer_slam(seed=SLAM_SETS[0])]) if peer.is_there() else peer.NOT_RUN


def slam_ukf(_):
    """UKF-M's own right UKF on the first of these sets, 13 minutes of processor time."""
    if not peer.is_there():
        return peer.NOT_RUN
    return by_set([peer_slam(seed=SLAM_SETS[0], kind="right UKF")])


def by_set(sets):
    """Of sets of runs: each, and the means with the deviations that the draws make."""
    each = [one.summary() for one in sets]
    nees = "NEES of position, in the chart, of heading"
    rows = {"sets": {"position [m]": [one["position [m]"] for one in each],
                     nees: [one[nees] for one in each]}}  # fmt: skip
    if len(each) > 1:
        for key in ("position [m]", "heading [deg]"):
            rows[key] = spread([one[key] for one in each])
        rows[nees] = [spread(values) for values in zip(*(one[nees] for one in each), strict=True)]
    return rows


def spread(values):
    """Mean, and the deviation of it that the draws make."""
    return [float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))]


SEEDS = 30


def start(_):
    """NEES and NIS over 100 runs from first errors of σ 20° and of σ 60°, cut at 120°.

    Errors of one run last, so that a single set of runs is inside of its bands at some 60 or all
    100 % of the steps by chance; over many sets a filter that is right is so at 95 %. The filter of
    a linear problem of the same size, which is right, says how near to that chance lets it come.
    """
    rows = {}
    for degrees in (20, 60):
        for name, (make, options) in FILTERS.items():
            found, first = cases.run_turning(make, degrees, **options)
            rows[f"{name}, {degrees}°"] = {
                "NEES": found.nees, "inside": found.nees_inside, "after the first update": first,
                "NIS": found.nis, "NIS inside": found.nis_inside,
            }  # fmt: skip
    rows[f"linear, {SEEDS} seeds"] = shares([cases.run_vectors(20, seed=s) for s in range(SEEDS)])
    for name, degrees in (
        ("EKF, two rounds", 20), ("iterated EKF", 60), ("EKF, one round", 20), ("iterated EKF", 20),
    ):  # fmt: skip
        make, options = FILTERS[name]
        sets = [cases.run_turning(make, degrees, seed=s, **options)[0] for s in range(SEEDS)]
        rows[f"{name}, {degrees}°, {SEEDS} seeds"] = shares(sets)
    return rows


def shares(sets):
    """Means over sets of runs, of NEES and of the shares inside the bands with their deviations."""
    return {
        "NEES": spread([one.nees for one in sets]),
        "inside": spread([one.nees_inside for one in sets]),
        "inside, quartiles": np.quantile(
            [one.nees_inside for one in sets], [0.25, 0.5, 0.75]
        ).tolist(),
        "NIS inside": {key: spread([one.nis_inside[key] for one in sets]) for key in sets[0].nis},
    }


def speed(_):
    """Microseconds of calls of compiled code with 15 error states, and of a sample of a log."""
    system = cases.NAVIGATION
    fix = gnss(system, std_discrete=0.05)
    u = np.zeros(system.n_inputs)
    u[5] = 9.8
    calls = {}
    for name, make, options in (
        ("EKF, Euler", EKF, {"method": "euler"}),
        ("EKF, one round, Euler", EKF, {"method": "euler", "iterations": 1}),
        ("EKF, mean by rk4", EKF, {"covariance_method": "euler"}),
        ("EKF, rk4", EKF, {}),
        ("UKF, Euler", UKF, {"method": "euler"}),
    ):
        ekf = make(system, [fix], std0=1.0, noise=cases.DENSITIES | cases.WALKS, **options)
        ekf.compile()
        predict, update = ekf._predict.in_place(), ekf._updates["gnss"].in_place()
        for call in (predict, update):
            call.inputs["z"][:] = ekf.start()
        for key, value in {"u": u, "dt": 0.01, "q": ekf.densities}.items():
            predict.inputs[key][...] = value
        update.inputs["r"][...] = 1.0
        calls |= {
            (name, "predict"): predict, (name, "update of 3 rows"): update,
            (name, "EKF.predict"): lambda e=ekf: e.predict(e.t or 0.0, u, 0.01),
            (name, "EKF.update"): lambda e=ekf: e.update("gnss", np.zeros(3)),
        }  # fmt: skip
    t = 0.01 * np.arange(20_000)
    log = Log(t, np.tile(u[:6], (len(t), 1)), {"gnss": (t[::100], np.zeros((200, 3)))})
    ekf = EKF(system, [fix], std0=1.0, noise=cases.DENSITIES | cases.WALKS, method="euler")
    given, first = Rows.of(log, system, ekf.sensors), ekf.start()
    whole = ekf._loop(len(t)).compiled(batch=False)
    window = horizon_step()
    rows, sample = {"load": os.getloadavg()[0]}, "a sample of a log"
    for _ in range(8):  # apart in time: others disturb some seconds at once
        found = {at: fastest(call, repeats=5) for at, call in calls.items()}
        for (name, what), time_taken in found.items():
            row = rows.setdefault(name, {})
            row[what] = min(row.get(what, np.inf), time_taken)
        once = {
            "moving horizon, quadrotor, N = 10": fastest(window, 50, 1),
            sample: fastest(lambda: ekf._evaluate(whole, given, first), 1, 1) / len(t),
        }
        rows |= {what: min(rows.get(what, np.inf), taken) for what, taken in once.items()}
    return rows


def preintegration(_):
    """Microseconds of 100 samples of an IMU, with their Jacobian and covariance."""
    imu = np.random.default_rng(0).normal(size=(2, 100, 3))
    noise = {"gyro": 1e-3, "accelerometer": 1e-2}
    Preintegration.of(*imu, 0.01, noise=noise)  # compiled once
    taken = fastest(lambda: Preintegration.of(*imu, 0.01, noise=noise), 50, 20)
    return {"100 samples": taken, "load": os.getloadavg()[0], "to beat": "400"}


def horizon_step():
    """Steps of a window of ten, each an interval, three measurements and the estimate."""
    system, dt = quadrotor(), 0.02
    measurements = [
        gnss(system, std_discrete=0.05),
        magnetometer(system, [0.0, 0.43, -0.9], std_discrete=0.02),
        Sensor("gyro", lambda t, x, u, p: x[10:13], Rn(3), std_discrete=0.01),
    ]
    mhe = MovingHorizon(system, measurements, system.home, std0=0.1, horizon=10, dt=dt,
                        noise={"force": 0.2, "torque": 0.02}, iterations=1).prepare()  # fmt: skip
    rng, u = np.random.default_rng(0), system.trim().u
    seen = {
        name: bound.function(0.0, system.home, system.nominal_input, mhe.p)
        + 0.02 * rng.normal(size=(200, 3))
        for name, bound in mhe.sensors.items()
    }
    count = 0

    def step():
        nonlocal count
        mhe.predict(count * dt, u, dt)
        for name, values in seen.items():
            mhe.update(name, values[count % 200])
        count += 1
        return mhe.x

    return step


def fastest(call, count=500, repeats=40):
    """Microseconds of processor time of a call, the least of several loops."""
    best = np.inf
    for _ in range(repeats):
        began = time.thread_time()
        for _ in range(count):
            call()
        best = min(best, (time.thread_time() - began) / count)
    return 1e6 * best


PARTS = {
    f.__name__: f
    for f in (
        broad,
        broad_likelihood,
        motion,
        wifibot,
        plaza,
        kitti,
        sphere,
        simulated,
        slam,
        slam_iekf,
        slam_ukf,
        start,
        preintegration,
        speed,
    )  # fmt: skip
}


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    default = ROOT / "tests/benchmarks/results/estimation.json"
    parser.add_argument("--out", type=Path, default=default)
    options = parser.parse_args()
    shared = Path(os.environ.get("LGCONTROL_SHARED") or ROOT.parent / "shared")
    if not shared.is_dir():
        sys.exit(f"no reference data at {shared}; set LGCONTROL_SHARED to its folder")
    result = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.only:
        result[name] = PARTS[name](shared / "data")
        print(f"{name}: {json.dumps(result[name], indent=1, ensure_ascii=False)}", flush=True)
        options.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
