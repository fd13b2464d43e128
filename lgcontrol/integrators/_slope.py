"""ChainedSlope: derivatives as what they are made of, multiplied out from their end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import casadi as ca


class ChainedSlope:
    """Sum of matrices and numbers times other slopes; a seed is one without any.

    A step has fewer results than seeds where inputs count as well. Reverse accumulation carries
    only the rows of the results through the stages. It does not carry the derivatives of the field
    by inputs, which are mostly constants.

    Parameters
    ----------
    rows : int
    terms : iterable of (factor, ChainedSlope)
        Factors from the left, matrices or scalars.

    Examples
    --------
    >>> seed = ChainedSlope(2)
    >>> turned = ca.SX([[0, -1], [1, 0]]) @ seed + 3 * seed
    >>> ca.evalf(turned.by([seed])[0]).full()
    array([[ 3., -1.],
           [ 1.,  3.]])
    """

    __array_priority__ = 2000  # CasADi's matrices leave products to this class

    def __init__(self, rows: int, terms: Iterable[tuple[Any, ChainedSlope]] = ()) -> None:
        self.shape = (rows,)
        self._terms = tuple(terms)

    def __add__(self, other: ChainedSlope) -> ChainedSlope:
        return ChainedSlope(*self.shape, [(1, self), (1, other)])

    def __sub__(self, other: ChainedSlope) -> ChainedSlope:
        return ChainedSlope(*self.shape, [(1, self), (-1, other)])

    def __mul__(self, factor: Any) -> ChainedSlope:
        return ChainedSlope(*self.shape, [(factor, self)])

    __rmul__ = __mul__

    def __rmatmul__(self, M: Any) -> ChainedSlope:
        return ChainedSlope(M.shape[0], [(ca.SX(M), self)])

    def by(self, seeds: Sequence[ChainedSlope]) -> list[Any]:
        """Derivatives by some seeds, matrices of expressions."""
        found: dict[ChainedSlope, _Scaled] = {self: _Scaled(1.0, ca.SX.eye(self.shape[0]))}
        for slope in reversed(self._order()):
            ahead = found.get(slope)
            if ahead is None:
                continue
            for factor, below in slope._terms:
                if isinstance(factor, ca.SX) and not factor.is_scalar():
                    part = _Scaled(1.0, ca.sparsify(ahead.matrix @ factor))
                else:
                    part = _Scaled(factor * ahead.factor, ahead.unscaled)
                if below in found:
                    part = _Scaled(1.0, ca.sparsify(found[below].matrix + part.matrix))
                found[below] = part
        return [
            found[seed].matrix if seed in found else ca.SX(*self.shape, *seed.shape)
            for seed in seeds
        ]

    def _order(self) -> list[ChainedSlope]:
        """All slopes this is made of, each after those it is made of itself."""
        done: dict[ChainedSlope, None] = {}
        waiting = [self]
        while waiting:
            slope = waiting[-1]
            missing = [below for _, below in slope._terms if below not in done]
            if missing:
                waiting += missing
            else:
                done.setdefault(waiting.pop())
        return list(done)


class _Scaled(NamedTuple):
    """A matrix with a factor before it, so that numbers are multiplied with each other first."""

    factor: Any
    unscaled: Any

    @property
    def matrix(self) -> Any:
        """The factor multiplied in."""
        return self.factor * self.unscaled
