"""The exercises of the tutorials: `check` says whether an answer is right.

Each tutorial NAME has its solutions in NAME.py of this folder, with one wrong answer for each
exercise. `make notebooks` puts both into the notebook's cells: `check` must tell them apart.
"""

from collections.abc import Callable
from typing import Any


def check(number: int, answer: Any, condition: Callable[[Any], Any], hint: str) -> None:
    """Print whether `condition(answer)` holds, and the hint if it does not."""
    if answer is ...:
        print(f"Exercise {number}: replace the dots by your answer and run the cell.")
    elif condition(answer):
        print(f"Exercise {number}: right.")
    else:
        print(f"Exercise {number}: not yet. {hint}")
