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


def slam(odometry, y, visible, Q, R, kind):
    """Poses of a run and the covariances of (heading, position), errors on the right.

    All landmarks of a step at once, new ones after them, as its benchmark does; `kind` is "IEKF" or
    "right UKF".
    """
    from ukfm import JUKF  # pyright: ignore[reportMissingImports]
    from ukfm.model.slam2d import EKF, SLAM2D  # pyright: ignore[reportMissingImports]

    model = SLAM2D(len(odometry), 1)
    start = model.STATE(np.eye(2), np.zeros(2), np.zeros((0, 2)))
    if kind == "IEKF":
        one = EKF(start, np.zeros((3, 3)), model.f, model.h, Q, model.right_phi, aug_z=model.aug_z)
        one.jacobian_propagation = one.iekf_FG_ana
        move, look, augment = one.propagation, one.iekf_jacobian_update, one.iekf_augment
    else:
        robot, alpha = np.arange(3), np.full(5, 1e-3)
        one = JUKF(
            state0=start, P0=np.zeros((3, 3)), f=model.f, h=model.h, Q=Q, phi=model.right_phi,
            alpha=alpha, aug_z=model.aug_z, red_phi=model.right_red_phi,
            red_phi_inv=model.right_red_phi_inv, red_idxs=robot, up_phi=model.right_up_phi,
            up_idxs=np.arange(5), aug_phi=model.right_aug_phi,
            aug_phi_inv=model.right_aug_phi_inv, aug_idxs=robot, aug_q=2,
        )  # fmt: skip
        look, augment = one.H_num, one.aug

        def move(u, dt):
            one.state_propagation(u, dt)
            one.red_d = len(one.P)
            one.F, one.red_idxs = np.eye(one.red_d), np.arange(one.red_d)
            one.G_num(u, dt)
            one.cov_propagation()

    poses, Ps, known = [[0.0, 0.0, 1.0, 0.0]], [np.zeros((3, 3))], []
    for k in range(1, len(odometry)):
        move(model.INPUT(*odometry[k - 1]), 1.0)
        here = np.flatnonzero(visible[k]).tolist()
        points = one.state.p_l
        for landmark in (own for own in here if own in known):
            place = known.index(landmark)
            one.state.p_l = points[place]
            look(y[k, landmark], [0, 1, 2, 3 + 2 * place, 4 + 2 * place], R)
        one.state.p_l = points
        if len(one.r):
            one.state_update()
        for landmark in [own for own in here if own not in known]:
            points = one.state.p_l
            one.state.p_l = one.state.p + one.state.Rot @ y[k, landmark]
            augment(y[k, landmark], [0, 1, 2], R)
            one.state.p_l = np.vstack([points, one.state.p_l])
            known.append(landmark)
        poses.append([*one.state.p, *one.state.Rot[:, 0]])
        Ps.append(one.P[:3, :3])
    return np.array(poses), np.array(Ps)
