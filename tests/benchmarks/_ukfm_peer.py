"""UKF-M's invariant filters on the draws of our benchmarks (Brossard, Barrau, Bonnabel, ICRA 2020).

They run where ``ukfm`` can be imported: with the folder ``python`` of a clone of
github.com/CAOR-MINES-ParisTech/ukfm on PYTHONPATH, since no index of packages has it. Errors, NEES
and the steps over which they are averaged are those of its benchmarks. Its tables call the
invariant EKF as accurate as the best UKFs, which take ten times as long.
"""

import importlib.util

import numpy as np

from lgcontrol.groups import SO2, SO3

NOT_RUN = "not run: ukfm cannot be imported, see _ukfm_peer.py"


def is_there():
    """Whether it can be imported."""
    return importlib.util.find_spec("ukfm") is not None


def followed(one, inputs, dt, seen):
    """States and covariances of a filter, the first ones too; `seen` are measurements by step."""
    states, covariances = [one.state], [one.P]
    for k, u in enumerate(inputs, start=1):
        one.propagation(u, dt)
        if k in seen:
            one.update(seen[k])
        states.append(one.state)
        covariances.append(one.P)
    return states, covariances


def by_step(t, at, y):
    """Measurements by the number of the sample they belong to."""
    return dict(zip(np.searchsorted(t, at - 1e-9).tolist(), y, strict=True))


def scores(errors, nees, place, first):
    """Of errors and NEES of runs and steps; the columns of the position, first step that counts."""
    attitude, position = np.mean(np.array(nees)[:, first:], axis=(0, 1))
    e = np.array(errors)[..., place]
    return {"rmse [m]": float(np.sqrt((e**2).sum(axis=-1).mean())),
            "NEES of position": float(position), "NEES of attitude": float(attitude)}  # fmt: skip


def localization(log, truth, starts, Q, P0, R):
    """Q of speeds and rate, P0 of heading and position, R of a fix; NEES after 20 s."""
    from ukfm import EKF, LOCALIZATION  # pyright: ignore[reportMissingImports]

    model = LOCALIZATION(40, 100)
    at, fixes = log.measurements["gnss"]
    errors, nees = [], []
    for x, u, y in zip(starts, log.u, fixes, strict=True):
        one = EKF(model, model.iekf_FG_ana, model.iekf_H_ana, model.left_phi, Q, R,
                  model.STATE(SO2.matrix(x[2:]), x[:2]), P0)  # fmt: skip
        inputs = [model.INPUT(row[:2], row[2]) for row in u[:-1]]
        states, Ps = followed(one, inputs, model.dt, by_step(log.t, at, y))
        turns, places = model.get_states(states, model.N)
        errors.append(model.errors(SO2.matrix(truth[:, 2:]), turns, truth[:, :2], places))
        nees.append(model.nees(errors[-1], Ps, turns, places, "LEFT"))
    return scores(errors, nees, slice(1, 3), 2000)


def inertial(log, truth, starts, Q, P0, R):
    """Q of gyro and accelerometer, P0 of attitude, velocity and position, R of all landmarks."""
    from ukfm import EKF, INERTIAL_NAVIGATION  # pyright: ignore[reportMissingImports]

    model = INERTIAL_NAVIGATION(30, 100)
    at = log.measurements["landmark0"][0]
    seen = np.concatenate([y for _, y in log.measurements.values()], axis=-1)
    true_states = SO3.matrix(truth[:, 6:]), truth[:, 3:6], truth[:, :3]
    errors, nees = [], []
    for x, u, y in zip(starts, log.u, seen, strict=True):
        turned = np.eye(9)  # errors of the attitude move the position, if they are on the right
        turned[6:, :3] = np.cross(np.eye(3), x[:3])
        start = model.STATE(SO3.matrix(x[6:]), x[3:6], x[:3])
        one = EKF(model, model.iekf_FG_ana, model.iekf_H_ana, model.right_phi, Q, R,
                  start, turned @ P0 @ turned.T)  # fmt: skip
        inputs = [model.INPUT(row[:3], row[3:]) for row in u[:-1]]
        states, Ps = followed(one, inputs, model.dt, by_step(log.t, at, y))
        found = model.get_states(states, model.N)
        errors.append(model.errors(*true_states, *found))
        nees.append(model.nees(errors[-1], Ps, *found, "RIGHT"))
    return scores(errors, nees, slice(6, 9), 1)


def slam(draws, Q, R, first):
    """All landmarks of a step at once, new ones after them; scores from step `first` on."""
    from ukfm.model.slam2d import EKF, SLAM2D  # pyright: ignore[reportMissingImports]

    errors, nees = [], []
    for angle, p, odometry, y, visible in draws:
        model = SLAM2D(len(p), 1)
        start = model.STATE(np.eye(2), np.zeros(2), np.zeros((0, 2)))
        one = EKF(start, np.zeros((3, 3)), model.f, model.h, Q, model.right_phi, aug_z=model.aug_z)
        one.jacobian_propagation = one.iekf_FG_ana
        states, Ps, known = [start], [one.P], []
        for k in range(1, len(p)):
            one.propagation(model.INPUT(*odometry[k - 1]), 1.0)
            here = np.flatnonzero(visible[k]).tolist()
            points = one.state.p_l
            for landmark in (own for own in here if own in known):
                place = known.index(landmark)
                one.state.p_l = points[place]
                rows = [0, 1, 2, 3 + 2 * place, 4 + 2 * place]
                one.iekf_jacobian_update(y[k, landmark], rows, R)
            one.state.p_l = points
            if len(one.r):
                one.state_update()
            for landmark in [own for own in here if own not in known]:
                points = one.state.p_l
                one.iekf_augment(y[k, landmark], [0, 1, 2], R)
                one.state.p_l = np.vstack([points, one.state.p_l])
                known.append(landmark)
            states.append(one.state)
            Ps.append(one.P)
        turns, places = model.get_states(states, model.N)
        errors.append(model.errors(SO2.matrix(SO2.from_angle(angle)), turns, p, places))
        nees.append(model.nees(errors[-1], Ps, turns, places, "RIGHT"))
    return scores(np.array(errors)[:, first:], nees, slice(1, 3), first)
