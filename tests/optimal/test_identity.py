"""What a library is found by: the statement of a problem, without deriving its functions."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SO2, LieGroup, PlanarHelical, Product, Rn
from lgcontrol.integrators import MuntheKaas, Tableau
from lgcontrol.optimal import Bound, Cost, InteriorPointSolver, OptimalControlProblem, Residual
from lgcontrol.optimal._stage_model import StageModel
from lgcontrol.optimal._transcription import Transcription
from lgcontrol.optimal.kernel._library import identity_of_parts
from lgcontrol.systems import Input, System

from .examples import pendulum


def swing(gain: float = 1.0, derivatives: float | None = None, **options) -> System:
    """Pendulum whose derivatives may be given, scaled by a number."""

    def slope(t, x, u, p):
        return ca.vertcat(ca.horzcat(0, 1), ca.horzcat(-gain * x[0] * derivatives, 0)), [[0], [1]]

    def exact(t, x, u, p):
        Df, Bf = slope(t, x, u, p)
        return Df, ca.DM(Bf)

    return System(
        "swing", Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u - gain * x[1]),
        inputs=[Input("torque", "N m", -1, 1)],
        derivatives=None if derivatives is None else exact, **options,
    )  # fmt: skip


def stated(system: System | None = None, **options) -> OptimalControlProblem:
    given = {"horizon": 6, "dt": 0.1, "method": "rk4", "Q": 1.0, "R": 0.1}
    return OptimalControlProblem(swing() if system is None else system, **given | options)


OTHERS = {
    "field": lambda: stated(swing(1.5)),
    "given derivatives": lambda: stated(swing(derivatives=2.0)),
    "method": lambda: stated(method="midpoint"),
    "own method": lambda: stated(
        method=MuntheKaas("rk4", Tableau(A=[(), (2 / 3,)], b=(1 / 4, 3 / 4)))
    ),
    "substeps": lambda: stated(substeps=2),
    "pattern of a weight": lambda: stated(Q={"angle": 1.0}),
    "policy": lambda: stated(swing().with_policy(lambda t, x, x_ref, u_ref, p: -x[2])),
    "free start": lambda: stated(free="all"),
    "bound": lambda: stated(bounds=[Bound("rate", -2.0, 2.0)]),
    "residual": lambda: stated(residuals=[Residual(lambda t, x, u, p: x[1], 1.0)]),
    "another residual": lambda: stated(residuals=[Residual(lambda t, x, u, p: x[1] ** 2, 1.0)]),
    "slopes of a residual": lambda: stated(
        residuals=[
            Residual(lambda t, x, u, p: x[1], 1.0,
                     derivatives=lambda t, x, u, p: (ca.horzcat(2 * x[0], 0), ca.DM(1, 1)))
        ]
    ),
    "residual at the end": lambda: stated(
        residuals=[Residual(lambda t, x, u, p: x[1], None, terminal=1.0)]
    ),
    "cost": lambda: stated(costs=[Cost(lambda t, x, u, p: u**2, 1.0)]),
    "parameter": lambda: stated().symbolic("R.torque"),
    "projection": lambda: stated(swing(project=lambda x, p: x)),
}  # fmt: skip


def identity(problem: OptimalControlProblem) -> str:
    found = Transcription(problem).identity
    assert found is not None
    return found


def test_other_numbers_are_the_same():
    """Weights, limits, lengths, references and nominal parameters are arguments."""
    known = identity(stated())
    for same in (
        stated(Q=2.0, R=3.0),
        stated(horizon=9),
        stated(dt=0.2),
        stated(terminal=5.0 * np.eye(2)),
        stated(reference=[0.0, 1.0, 0.0]),
    ):
        assert identity(same) == known
    heavy = pendulum().with_parameters({"gravity": 2.0})
    assert identity(stated(heavy)) == identity(stated(pendulum()))


def test_other_functions_are_different():
    """Wherever the text of the functions differs that of the statement does."""
    problems = [stated(), *(make() for make in OTHERS.values())]
    found = [identity(problem) for problem in problems]
    derived = [identity_of_parts(StageModel(Transcription(problem))) for problem in problems]
    assert len(set(zip(found, derived, strict=True))) == len(set(found))
    assert len(set(derived)) >= len(problems) - 2  # one projects to where it is


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_wrong_derivatives_are_told_from_right_ones(scale):
    """The field is the same: nothing but the derivatives tells."""
    assert identity(stated(swing(derivatives=scale))) != identity(stated(swing(derivatives=3.0)))


def test_pitch_of_a_group():
    def vehicle(state: LieGroup) -> OptimalControlProblem:
        system = System("vehicle", state, lambda t, x, u, p: u, inputs=["a", "b", "c"])
        return stated(system)

    texts = {identity(vehicle(group)) for group in (SE2, PlanarHelical(0.1), PlanarHelical(0.2))}
    assert len(texts) == 3


def test_classes_of_others_have_none():
    """Their sources are not hashed, so that the functions themselves are looked at."""

    class Turn(type(SO2)):
        pass

    system = System("turn", Turn(), lambda t, x, u, p: u, inputs=["speed"])
    assert Transcription(stated(system)).identity is None
    assert Transcription(stated(method="radau_iia5")).identity is None


@pytest.mark.compiled
def test_nothing_is_derived_for_a_library_that_exists():
    first = InteriorPointSolver(stated(method="heun")).prepare()
    assert first.is_compiled
    again = InteriorPointSolver(stated(method="heun", Q=3.0, horizon=9)).prepare()
    assert again.is_compiled
    assert again.transcription._built._functions is None
    assert again.solve([1.0, 0.0, 0.1], reference=[0.0, 1.0, 0.0]).is_success
    assert again.transcription._built._functions is None
