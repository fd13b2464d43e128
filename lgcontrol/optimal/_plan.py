"""Plan: what a solver found and goes on from, as one value over one column of numbers."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import UnknownNameError, check_shape, unknown_name

VERSION = 3
MOST_NAMED = 3  # parts in a message
# Numbers of a solver: start in s, barrier parameter, step length, cost, whether the iterate is one
# of the elastic problem, and what there is besides nodes.
NUMBERS = ("t", "mu", "step", "cost", "is_elastic", "content")
NODES, MULTIPLIERS, GAINS = 0, 1, 2  # contents: nodes alone; multipliers, too; gains, too
# Place of the factor of the cost among what the kernel goes on with, the part "kept".
SCALE = 3
# Numbers before those of the parts: version, key of the layout, sum of the rest.
HEAD = 3


@dataclass(frozen=True)
class PlanLayout:
    """Places of the parts of a plan in its column.

    Parameters
    ----------
    problem : str
        What the plan belongs to: a system, names of its coordinates, step and horizon.
    shapes : tuple of (str, tuple of int)
        Parts in their order.

    Attributes
    ----------
    size : int
        Numbers of a column, its head included.
    key : int
        Tells layouts apart.
    """

    problem: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]
    places: dict[str, tuple[slice, tuple[int, ...]]] = field(init=False, repr=False, compare=False)
    size: int = field(init=False, repr=False, compare=False)
    key: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Count."""
        places, count = {}, HEAD
        for name, shape in self.shapes:
            places[name] = slice(count, count + int(np.prod(shape))), shape
            count = places[name][0].stop
        text = f"{self.problem} {self.shapes}".encode()
        for name, value in (("places", places), ("size", count), ("key", zlib.crc32(text))):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Plan:
    """Nodes, multipliers, gains and numbers of the loop, in one read-only column.

    A plan is a value: copies, pickles, files and batches of it are those of its column. Solvers and
    `MPC` take one and return the next.

    Attributes
    ----------
    layout : PlanLayout
    numbers : ndarray, shape (layout.size,)
        All parts; the head is filled by `column`.

    Examples
    --------
    >>> layout = PlanLayout("wheel", (("t", ()), ("x", (3, 1))))
    >>> plan = Plan.of(layout, t=0.5, x=[[1.0], [2.0], [3.0]])
    >>> Plan.from_column(layout, plan.column())["x"][-1]
    array([3.])
    """

    layout: PlanLayout
    numbers: np.ndarray

    @classmethod
    def of(cls, layout: PlanLayout, **parts: ArrayLike) -> Plan:
        """A plan of these parts; others are zero."""
        return cls._taking(layout, np.zeros(layout.size)).changed(**parts)

    @classmethod
    def _taking(cls, layout: PlanLayout, numbers: np.ndarray, **known: Any) -> Plan:
        """A plan of numbers that are its own."""
        numbers.setflags(write=False)  # half the time of `flags.writeable`
        made = object.__new__(cls)
        known["layout"], known["numbers"] = layout, numbers
        made.__dict__.update(known)
        return made

    def __getitem__(self, name: str) -> np.ndarray:
        """A part, by its name; read-only."""
        try:
            place, shape = self.layout.places[name]
        except KeyError:
            text = unknown_name("part of a plan", name, self.layout.places)
            raise UnknownNameError(text) from None
        return self.numbers[place].reshape(shape)

    @property
    def head(self) -> tuple[float, ...]:
        """The numbers of a solver, as `NUMBERS` names them."""
        known = self.__dict__.get("_head")
        if known is None:
            known = tuple(self.numbers[HEAD : HEAD + len(NUMBERS)].tolist())
            self.__dict__["_head"] = known
        return known

    def number(self, name: str) -> float:
        """A part that is one number."""
        return float(self.numbers[self.layout.places[name][0].start])

    def parts(self) -> Mapping[str, np.ndarray]:
        """All parts by name."""
        return {name: self[name] for name in self.layout.places}

    def changed(self, **parts: Any) -> Plan:
        """A plan with other values of some parts."""
        numbers = self.numbers.copy()
        for name, value in parts.items():
            place, shape = self.layout.places[name]
            numbers[place] = check_shape(name, value, shape, finite=False).ravel()
        return self._taking(self.layout, numbers)

    def column(self) -> np.ndarray:
        """All numbers, for a file or a batch, with version, layout and a sum to check them by.

        Returns
        -------
        ndarray, shape (layout.size,)
        """
        column = self.numbers.copy()
        column[:HEAD] = VERSION, self.layout.key, zlib.crc32(column[HEAD:].tobytes())
        return column

    @classmethod
    def from_column(cls, layout: PlanLayout, column: ArrayLike) -> Plan:
        """The plan of a column, checked.

        Parameters
        ----------
        layout : PlanLayout
            Layout of the solver or controller that is to start from it.
        column : array_like, shape (layout.size,)
            Of `column`.

        Returns
        -------
        Plan

        Raises
        ------
        ValueError
            If the column is of another version or another problem, or was damaged.
        """
        numbers = np.array(check_shape("the plan's column", column, (None,), finite=False))
        version, key, total = numbers[:HEAD] if len(numbers) >= HEAD else (0, 0, 0)
        if version != VERSION:
            raise ValueError(
                f"the column is of version {version:g} of plans, expected {VERSION}: plan anew"
            )
        if key != layout.key or len(numbers) != layout.size:
            raise ValueError(
                f"the column has {len(numbers)} numbers of another problem, expected "
                f"{layout.size} of {layout.problem}: take it to the one it came from, or plan anew"
            )
        if total != zlib.crc32(numbers[HEAD:].tobytes()):
            raise ValueError("the column was damaged, its numbers do not add up: plan anew")
        return cls._taking(layout, numbers)

    def check(self, layout: PlanLayout) -> Plan:
        """The plan itself, refused where it is of another layout.

        Raises
        ------
        ValueError
            If it belongs to another problem.
        """
        if self.layout is layout or self.layout == layout:
            return self
        expected = f"expected one of {layout.problem}"
        if self.layout.problem == layout.problem:
            ours, theirs = dict(layout.shapes), dict(self.layout.shapes)
            parts = sorted(k for k in {*ours, *theirs} if ours.get(k) != theirs.get(k))
            expected += f" with other parts ({', '.join(parts[:MOST_NAMED])}"
            expected += ", …" * (len(parts) > MOST_NAMED) + "), made with the same options"
        raise ValueError(f"the plan is of {self.layout.problem}, {expected}: solve first")

    def __reduce__(self) -> tuple[Any, ...]:
        """Layout and column, checked when they are read."""
        return _read, (self.layout.problem, self.layout.shapes, self.column())

    def __repr__(self) -> str:
        """What it belongs to, and its size."""
        return f"Plan({self.layout.problem}, {self.numbers.nbytes} bytes)"


def _read(problem: str, shapes: tuple[Any, ...], column: np.ndarray) -> Plan:
    return Plan.from_column(PlanLayout(problem, shapes), column)
