"""What a figure or table of a paper says, beside what comes out here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcontrol.plotting._internal import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class ClaimVerdict(StrEnum):
    """Whether what a paper states comes out here.

    ``UNDECIDABLE``: the text states no number and no claim that a number could be held against.
    """

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNDECIDABLE = "not decidable"


@dataclass(frozen=True)
class Claim:
    """A number of a paper, or a claim, beside the number that comes out here.

    Parameters
    ----------
    what : str
        The quantity, with its unit.
    paper : str
        What the paper states.
    here : float
        What comes out here; NaN where nothing does.
    least, most : float
        Between which numbers it counts as reproduced. With neither the verdict is "not decidable".

    Examples
    --------
    >>> str(Claim("order", "1", 1.02, 0.9, 1.1).verdict)
    'reproduced'
    >>> str(Claim("gap [m]", "a curve without numbers", 1e-6).verdict)
    'not decidable'
    """

    what: str
    paper: str
    here: float
    least: float = -np.inf
    most: float = np.inf

    @property
    def verdict(self) -> ClaimVerdict:
        """Whether the number is within its limits."""
        if not np.isfinite([self.least, self.most]).any():
            return ClaimVerdict.UNDECIDABLE
        good = self.least <= self.here <= self.most
        return ClaimVerdict.REPRODUCED if good else ClaimVerdict.NOT_REPRODUCED

    @property
    def row(self) -> tuple[str, str, str, str]:
        """Quantity, the paper's, ours and the verdict, as text."""
        return self.what, self.paper, f"{self.here:.4g}", str(self.verdict)


@dataclass(frozen=True, eq=False)
class Reproduction:
    """A figure or table of a paper as it comes out here.

    Attributes
    ----------
    figure : matplotlib.figure.Figure or None
        The picture; tables have none.
    claims : tuple of Claim
    """

    figure: Figure | None
    claims: tuple[Claim, ...]


@dataclass(frozen=True, eq=False)
class Paper:
    """A paper and the functions that compute its figures and tables again.

    Parameters
    ----------
    title : str
    figures : mapping of str to callable
        Functions without arguments that return a `Reproduction`, by the number of the figure, or
        ``table-`` and its number. The first line of their docstrings says what they show.
    """

    title: str
    figures: Mapping[str, Callable[[], Reproduction]] = field(default_factory=dict)


def sheet(columns: int, **options: Any) -> tuple[Figure, list[Any]]:
    """A figure with axes in a row; options are those of `add_subplot`."""
    figure = new_figure(4.6 * columns, 3.8)
    return figure, [figure.add_subplot(1, columns, k + 1, **options) for k in range(columns)]


def in_space(axis: Any) -> None:
    """Equal scales, few ticks, and room for the names of axes in space."""
    axis.set_aspect("equal")
    axis.locator_params(nbins=4)
    axis.set_box_aspect(axis.get_box_aspect(), zoom=0.82)  # the layout does not know of their names
    for side in (axis.xaxis, axis.yaxis, axis.zaxis):
        side.labelpad = 8.0
