"""Everything that may fail ends in a `Status`: a text, whether it is a success, a message."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from enum import Enum, StrEnum

import lgcontrol
import lgcontrol.controllers
from lgcontrol.codegen._internal import Result, Status

from ._repository import ROOT, python_files


def every(base: type) -> list[type]:
    """Subclasses of a base in the package, of subclasses as well."""
    for module in pkgutil.walk_packages(lgcontrol.__path__, "lgcontrol."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, queue = [], [base]
    while queue:
        below = [kind for kind in queue.pop().__subclasses__() if kind.__module__ != __name__]
        found += below
        queue += below
    return [kind for kind in found if kind.__module__.startswith("lgcontrol.")]


def test_every_status_has_a_text_and_says_whether_it_is_a_success():
    kinds = every(Status)
    names = {kind.__name__ for kind in kinds}
    assert {"SolveStatus", "IntegrationStatus", "UpdateStatus", "CallStatus", "RunStatus"} < names
    for kind in kinds:
        assert issubclass(kind, Enum), kind
        for member in kind:
            assert member.is_success in (True, False)
            assert member.text and "_" not in member.text
            if issubclass(kind, StrEnum):
                assert member.value == member.text, member


def test_every_enumeration_of_ends_is_a_status():
    """Names that end in Status are statuses, and no result has a status that is any text."""
    found = []
    for path in python_files():
        if "tests" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name.endswith("Status"):
                bases = [ast.unparse(base) for base in node.bases]
                if node.name != "Status" and "Status" not in bases:
                    found.append(f"{path.name}: {node.name} has no base Status")
            if isinstance(node, ast.ClassDef):
                for entry in node.body:
                    if isinstance(entry, ast.AnnAssign) and ast.unparse(entry.target) == "status":
                        kind = ast.unparse(entry.annotation)
                        if kind == "str" or kind.startswith("Literal"):
                            found.append(f"{path.name}: {node.name}.status is {kind}")
    assert not found, "\n".join(found)


def test_results_say_whether_they_are_a_success_by_one_name():
    names = {kind.__name__ for kind in every(Result)}
    assert {
        "OptimalSolution", "PhasedSolution", "Solution", "SimulationResult", "ControlInfo",
        "InverseKinematicsResult", "Calibration", "KinematicsResult", "March",
        "DirectResult", "GraphSolution",
    } <= names  # fmt: skip
    for kind in every(Result):
        assert not {"success", "is_solved", "is_converged"} & set(dir(kind)), kind


def test_a_calibration_that_is_not_finished_says_what_to_do():
    from lgcontrol.mechanics.multibody.parameters._calibration import (
        Calibration,
        CalibrationStatus,
    )

    made = object.__new__(Calibration)
    object.__setattr__(made, "status", CalibrationStatus.ITERATION_LIMIT)
    object.__setattr__(made, "iterations", 100)
    assert not made.is_success and "prior=" in made.message
    object.__setattr__(made, "status", CalibrationStatus.CONVERGED)
    assert made.is_success and not made.message


def test_the_page_of_troubleshooting_has_every_status():
    """Each status that a user meets stands there in code, with what to do."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    missing = {
        f"{kind.__name__}.{member.name}"
        for kind in every(Status)
        if not kind.__module__.startswith("lgcontrol.mechanics.constrained.rotation_comparison")
        for member in kind
        if f"`{member.text}`" not in page
    }
    assert not missing


def entries(text: str) -> set[str]:
    """Words in code in the first or second cell of the rows of tables."""
    rows = [line.split("|") for line in text.splitlines() if line.startswith("|")]
    return {part for row in rows for part in "".join(row[1:3]).split("`")[1::2]}


def test_every_status_has_an_entry_in_the_table_of_its_kind():
    """A heading names the kind of its table; kinds without one share the last but one."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    sections = page.split("\n## ")[1:]
    kinds = {name: s for s in sections for name in s.splitlines()[0].split("`")[1::2]}
    others = next(s for s in sections if s.startswith("Other searches"))
    assert {"SolveStatus", "CallStatus", "RunStatus", "UpdateStatus", "PredictStatus"} <= set(kinds)
    missing = [
        f"{kind.__name__}: {member.text}"
        for kind in every(Status)
        for member in kind
        if member.text not in entries(kinds.get(kind.__name__, others))
    ]
    assert not missing, "\n".join(missing)
