"""Optimal-control tasks from the literature, each with its source and its known optimum."""

from . import aerospace, chemical, closed_forms, cops, textbook
from ._task import TASKS, LiteratureTask, Statement
from ._units import in_units

__all__ = [
    "TASKS", "LiteratureTask", "Statement", "aerospace", "chemical", "closed_forms", "cops",
    "in_units", "textbook",
]  # fmt: skip
