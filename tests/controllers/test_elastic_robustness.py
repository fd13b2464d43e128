"""Three cells of the stored table of laws for elastic arms, run again."""

import json

import pytest

from ..benchmarks import elastic_robustness as table

CELLS = [
    ("ur5", "feedback linearization, 5", "nominal"),
    ("ur5", "flat feedforward, motor PD", "K +30 %"),
    ("ur5", "rigid computed torque, motor angles", "nominal"),
]

pytestmark = pytest.mark.usually(case="nominal", law="feedback linearization, 5")


@pytest.fixture(scope="module")
def stored():
    return json.loads(table.RESULTS.read_text())


@pytest.mark.parametrize(("arm", "law", "case"), CELLS)
def test_cells_are_what_is_stored(arm, law, case, stored, monkeypatch):
    """To three digits: no noise is in these."""
    monkeypatch.setattr(table, "IS_COMPILED", False)
    found = table.row(arm, law, cases=[case])[case]
    assert found == pytest.approx(stored[arm]["move 0"][law][case], rel=1e-2, abs=1e-5)


def test_what_was_promised(stored):
    """In mm: the UR5's nominal error, with all errors at once, and at rest then; the Panda's."""
    ur5 = stored["ur5"]["move 0"]["feedback linearization, 5"]
    assert ur5["nominal"][0] <= 0.1
    assert ur5["all"][0] <= 25 and ur5["all"][1] <= 1
    sag = stored["ur5"]["move 0"]["rigid computed torque, motor angles"]
    assert sag["nominal"][1] > 20
    panda = stored["panda"]["move 0"]["flat feedforward, motor PD"]
    assert panda["nominal"][0] <= 0.05 and panda["all"][0] <= 12
    assert all(panda[case][0] <= 3 for case in ("K -30 %", "K +30 %", "M ±20 %"))
    assert all(moves[f"move {k}"]["seeds"] == 5 for moves in stored.values() for k in range(3))
