"""Mechanisms in absolute coordinates against reference data of both papers."""

import json

import casadi as ca
import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.groups import SO3
from lgcontrol.mechanics._internal import FORMULATIONS
from lgcontrol.mechanics.constrained.rotation_comparison import ClosedForms
from lgcontrol.mechanics.constrained.rotation_comparison._attitudes import (
    ATTITUDES,
    attitude_type,
)
from lgcontrol.mechanics.constrained.rotation_comparison._closed_forms import PlacedBody

GAP, RATE, FORCE = 1e-14, 1e-13, 1e-12  # of coordinates up to 10, relative to the largest value

MECHANISMS = {
    "single_pendulum": models.pendulum_mechanism,
    "four_link": models.four_link_mechanism,
    "slider_crank": models.slider_crank_mechanism,
}


def row_name(name):
    joint, _, row = name.replace("-", "_").partition("_")
    return f"{joint}.{row or 'angle'}"


@pytest.fixture(scope="module", params=MECHANISMS)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def samples(case, shared):
    data = json.loads((shared / "reference" / "p002_mechanisms.json").read_text())
    return data["mechanisms"][case]["samples"]


def solved(M, G, F, gamma):
    m = len(G)
    K = np.block([[M, G.T], [G, np.zeros((m, m))]])
    both = np.linalg.solve(K, np.concatenate([F, gamma]))
    return both[: len(M)], both[len(M) :]


def compare(sample, names, multipliers, is_paper):
    """Largest difference of multipliers next to the largest one."""
    wanted = {row_name(name): value for name, value in sample["lambdas"].items()}
    if is_paper:
        wanted["driver.angle"] = sample["lambda_driver"]
    found = dict(zip(names, multipliers, strict=True))
    scale = max(abs(value) for value in wanted.values())
    return max(abs(found[name] - value) for name, value in wanted.items()) / scale


def accelerations(formulation, n, *columns):
    """``[r̈; ω̇]`` of every body from coordinates, velocities and their rates."""
    each = [column.reshape(n, -1) for column in columns]
    return np.array(
        [
            np.asarray(formulation.rate_map(q) @ a + formulation.bent_rates(q, v)).ravel()
            for q, v, a in zip(*each, strict=True)
        ]
    )


@pytest.mark.parametrize("word", FORMULATIONS)
@pytest.mark.usually(word=("SO3xR3",))
def test_every_formulation_has_the_reference_terms(case, samples, word):
    for drive in ("paper", "regular"):
        mechanism = MECHANISMS[case](drive=drive).formulated(word)
        for sample in samples:
            if drive == "paper" and sample["lambda_driver"] is None:
                continue
            names, bodies = mechanism.bodies, sample["bodies"]
            poses = {
                name: [*body["r"], *SO3.from_matrix(body["A"])]
                for name, body in zip(names, bodies, strict=True)
            }
            rates = {
                name: [*body["rdot"], *body["omega_local"]]
                for name, body in zip(names, bodies, strict=True)
            }
            q = mechanism.coordinates(poses)
            v = mechanism.velocities(q, rates)
            at = mechanism.dynamics(sample["t"], q, v)
            assert np.abs(at.phi).max() <= GAP
            assert np.abs(at.G @ v - at.nu).max() <= RATE
            a, multipliers = solved(at.M, at.G, at.F, at.gamma)
            assert compare(sample, mechanism.row_names, multipliers, drive == "paper") <= FORCE
            shown = accelerations(FORMULATIONS[word], len(names), q, v, a)
            wanted = np.array([[*body["rddot"], *body["omegadot_local"]] for body in bodies])
            assert np.abs(shown - wanted).max() <= RATE * max(1, np.abs(wanted).max())
            first = next(iter(names))
            torque = mechanism.reactions(sample["t"], q, multipliers)
            torque = torque["driver"][first][3:]
            given = np.array(sample["driver_torque_on_body1_local"])
            assert np.abs(torque - given).max() <= FORCE * max(1, np.abs(given).max())


@pytest.mark.parametrize("attitude", ATTITUDES)
def test_closed_forms_have_the_reference_terms(case, samples, attitude):
    mechanism = MECHANISMS[case](drive="paper")
    forms, made = ClosedForms(mechanism, attitude), attitude_type(attitude)
    for sample in samples:
        if sample["lambda_driver"] is None:
            continue
        placed = {
            name: PlacedBody(
                np.array(body["r"]),
                np.array(body["rdot"]),
                made.from_rotation(np.array(body["A"]), np.array(body["omega_local"])),
            )
            for name, body in zip(mechanism.bodies, sample["bodies"], strict=True)
        }
        at = forms.terms(sample["t"], placed)
        assert np.abs(at.phi).max() <= GAP
        force = -forms.balance(placed, np.zeros(forms.n))
        a, multipliers = solved(forms.mass_matrix(placed), at.G, force, at.gamma)
        assert compare(sample, forms.row_names, multipliers[: forms.n_joint_rows], True) <= FORCE
        for name, body in zip(mechanism.bodies, sample["bodies"], strict=True):
            start = forms.columns[name]
            wanted = [*body["rddot"], *body["omegadot_local"]]
            own = placed[name].attitude.acceleration(a[start + 3 : start + 3 + forms.size])
            found = np.concatenate([a[start : start + 3], own])
            assert np.abs(found - wanted).max() <= RATE * max(1, np.abs(wanted).max())


@pytest.mark.parametrize("word", ["SO3xR3", "re"])
@pytest.mark.usually(word=("SO3xR3",))
def test_kinematics_follows_the_reference(case, samples, word):
    mechanism = MECHANISMS[case]().formulated(word)
    run = mechanism.kinematics(np.linspace(0, 1.5, 31))
    # The crank turns about x: its angles z-x-z are singular twice in a turn, reported and passed.
    has_singular_angles = (case, word) == ("slider_crank", "re")
    assert run.status.name == ("SINGULAR" if has_singular_angles else "SOLVED"), run.message
    for sample in (sample for sample in samples if sample["t"] <= 1.5):
        k = round(sample["t"] / 0.05)
        poses = mechanism.poses(run.q[k])
        for pose, body in zip(poses.values(), sample["bodies"], strict=True):
            assert np.abs(pose[:3] - body["r"]).max() <= GAP * 10
            assert np.abs(SO3.matrix(pose[3:]) - np.array(body["A"])).max() <= GAP * 10
        assert compare(sample, mechanism.row_names, run.multipliers[k], False) <= FORCE


DRIFTING = {
    "heavy_top_no_gravity_T5": models.heavy_top_mechanism,
    "spherical_double_pendulum_T2": models.spherical_double_pendulum_mechanism,
    "floating_pair_T5": models.floating_pair_mechanism,
    "three_bar_proposed_T5": models.three_bar_mechanism,
}
MOVING = ["three_bar", "heavy_top", "floating_pair", "spherical_double_pendulum"]
DRIFT = 0.05  # share of the expected drift
# Gaps on SE(3) are rounding: a thousand steps of a point at 30 m/s add up to some 1e-14.
ROUNDING = 1e-13
LEAST = 1e-14  # of the energy: rounding of a thousand steps
# Local error of one step of the double pendulum [m], of which 2e-7 come together in 0.1 s: what two
# programs may differ by at the start, and by the factors of sensitivity.json later.
STEP = 1e-9
# Where that is more [m], motions of both programs are two, and so are their drifts.
SAME_PLACE = 1e-3


@pytest.mark.parametrize("until", ["first", "last"])
@pytest.mark.parametrize("word", ["SE3", "SO3xR3"])
@pytest.mark.parametrize("name", DRIFTING)
@pytest.mark.usually(name=("heavy_top_no_gravity_T5",), word=("SE3",), until=("first",))
def test_drifts_of_index_1_are_those_of_the_reference(name, word, until, shared):
    """At the first time that is stored, and at all of them."""
    data = json.loads((shared / "reference" / "p000_expected_drift.json").read_text())
    samples = data[name][word]["samples"][: 1 if until == "first" else None]
    amplified = json.loads((shared / "reference" / "sensitivity.json").read_text())
    by_time = amplified.get(name.removesuffix("_T2").removesuffix("_T5"), {"0": 0.0})
    grows = [float(t) for t in by_time], list(by_time.values())
    mechanism = DRIFTING[name]().formulated(word)
    q = mechanism.coordinates()
    system = mechanism.system(stabilization="none", at=q)
    x0 = np.concatenate([q, mechanism.velocities(q)])
    run = system.rollout(x0, dt=1e-3, steps=round(samples[-1]["t"] / 1e-3))
    energy = sum(
        system.quantities[kind](0.0, run.x).ravel()
        for kind in ("kinetic_energy", "potential_energy")
    )
    joints = len(mechanism.joints)
    gaps = np.linalg.norm(system.invariants(run.x)[:, : 3 * joints].reshape(-1, joints, 3), axis=2)
    for sample in samples:
        k, allowed = round(sample["t"] / 1e-3), 1e-8 + STEP * np.interp(sample["t"], *grows)
        com = [pose[:3] for pose in mechanism.poses(run.x[k][: len(q)]).values()]
        assert com == pytest.approx(np.array(sample["com"]), abs=allowed)
        if allowed > SAME_PLACE:
            continue
        wanted = np.array(sample["violation"])
        assert gaps[k] == pytest.approx(wanted, rel=DRIFT, abs=ROUNDING)
        drift = abs(energy[k] - energy[0])
        assert drift == pytest.approx(sample["energy_drift"], rel=DRIFT, abs=LEAST * energy[0])
    if until == "last" and allowed <= SAME_PLACE:
        largest = data[name][word]["max_violation_per_joint"]
        assert gaps.max(axis=0) == pytest.approx(np.array(largest), rel=DRIFT, abs=ROUNDING)


@pytest.mark.parametrize("word", ["SE3", "SO3xR3"])
@pytest.mark.parametrize("name", MOVING)
@pytest.mark.usually(name=("heavy_top",), word=("SE3",))
def test_projected_motions_keep_the_constraints_and_reach_the_reference(name, word, shared):
    data = json.loads((shared / "reference" / f"p000_{name}.json").read_text())
    reference = [s for s in next(iter(data["cases"].values()))["samples"] if s["t"] <= 0.5]
    mechanism = getattr(models, f"{name}_mechanism")().formulated(word)
    system = mechanism.system(at=mechanism.coordinates())
    x0 = mechanism.state()
    dt = 5e-4 if name == "spherical_double_pendulum" else 1e-3  # it turns with up to 75 rad/s
    run = system.rollout(x0, dt=dt, steps=round(reference[-1]["t"] / dt))
    gap = np.abs(system.invariants(run.x))
    rows = mechanism.constraints.n_position
    assert gap[:, :rows].max() <= 1e-15
    assert gap[:, rows:].max() <= 1e-13
    poses = mechanism.poses(run.x[-1][: system.state.blocks["configuration"].nq])
    for k, pose in enumerate(poses.values(), 1):
        key = "r" if name == "heavy_top" else f"r{k}"
        assert np.abs(pose[:3] - reference[-1][key]).max() < 1e-6


FORCES = {
    "heavy_top": {"reaction_pivot_top": "reaction_on_body_world"},
    "floating_pair": {"reaction_middle_box2": "force_1_on_2_world"},
    "spherical_double_pendulum": {
        "reaction_base_box1": "force_ground_on_1_world",
        "reaction_middle_box2": "force_1_on_2_world",
    },
}


@pytest.mark.parametrize("word", ["SE3", "SO3xR3"])
@pytest.mark.parametrize("name", FORCES)
@pytest.mark.usually(name=("spherical_double_pendulum",), word=("SE3",))
def test_forces_of_joints_are_those_of_the_reference(name, word, shared):
    """In every state that is stored, and angular accelerations with them."""
    data = json.loads((shared / "reference" / f"p000_{name}.json").read_text())
    mechanism = getattr(models, f"{name}_mechanism")().formulated(word)
    system = mechanism.system(at=mechanism.coordinates())
    suffixes = dict(zip(mechanism.bodies, ("",) if name == "heavy_top" else "12", strict=True))
    for sample in next(iter(data["cases"].values()))["samples"]:
        poses, rates, turns = {}, {}, []
        for body, k in suffixes.items():
            poses[body] = [*sample[f"r{k}"], *SO3.from_matrix(np.array(sample[f"R{k}"]))]
            rates[body] = [*sample[f"v{k}_world"], *sample[f"omega{k}_body"]]
            turns.append(sample[f"omegadot{k}_body"])
        q = mechanism.coordinates(poses)
        x = np.concatenate([q, mechanism.velocities(q, rates)])
        for quantity, key in FORCES[name].items():
            wanted = np.array(sample[key])
            A = SO3.matrix(np.array(poses[quantity.rpartition("_")[2]][3:]))
            found = A @ system.quantities[quantity](0.0, x)[:3]
            assert np.abs(found - wanted).max() <= FORCE * np.abs(wanted).max()
        found = system.f(0.0, x)[6 * len(turns) :].reshape(-1, 6)[:, 3:]
        assert np.abs(found - turns).max() <= RATE * np.abs(turns).max()


@pytest.mark.thorough
def test_double_pendulum_follows_the_reference(shared):
    data = json.loads((shared / "reference" / "p002_double_pendulum.json").read_text())
    sample = data["code_inertia"]["samples"][1]
    mechanism = models.double_pendulum_mechanism()
    system = mechanism.system()
    run = system.rollout(mechanism.state(), dt=1e-3, steps=round(float(sample["t"]) / 1e-3))
    poses = mechanism.poses(run.x[-1][:14])
    for k, pose in enumerate(poses.values(), 1):
        assert np.abs(pose[:3] - sample[f"r{k}"]).max() < 1e-9


def test_reactions_are_quantities_with_derivatives():
    mechanism = models.heavy_top_mechanism(gravity=9.81).formulated("SE3")
    system = mechanism.system(at=mechanism.coordinates())
    x = mechanism.state()
    reaction = system.quantities["reaction_pivot_top"]
    t, X = ca.SX.sym("t"), ca.SX.sym("x", len(x))
    slope = ca.Function("slope", [X], [ca.jacobian(reaction(t, X, ca.SX(0, 1), ca.SX(0, 1)), X)])
    d = np.zeros(system.state.dim)
    d[3:6] = [0.3, -0.2, 0.5]
    E = np.asarray(system.state.rate_matrix(x))
    h = 1e-6
    ahead, behind = (reaction(0.0, system.state.plus(x, s * h * d)) for s in (1, -1))
    exact = np.asarray(slope(x)) @ E @ d
    assert exact == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-4)


def test_reactions_on_both_bodies_of_a_joint_are_opposite(rng):
    mechanism = models.four_link_mechanism()
    q, lam = mechanism.coordinates(), rng.normal(size=18)
    found = mechanism.reactions(0.0, q, lam)
    turns = {body: SO3.matrix(pose[3:]) for body, pose in mechanism.poses(q).items()}
    forces = [turns[body] @ wrench[:3] for body, wrench in found["univ"].items()]
    assert forces[0] == pytest.approx(-forces[1], abs=1e-12)
    G = mechanism.dynamics(0.0, q, np.zeros(18)).G
    total = np.zeros((3, 6))
    for wrenches in found.values():
        for body, wrench in wrenches.items():
            world = np.concatenate([turns[body] @ wrench[:3], wrench[3:]])
            total[list(mechanism.bodies).index(body)] += world
    assert total.ravel() == pytest.approx(-G.T @ lam, abs=1e-12)
