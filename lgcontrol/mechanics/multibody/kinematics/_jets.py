"""Time derivatives 0 … n of components, as lists: products and what a motion carries along.

A vector of components that a motion carries along changes by a bracket on top of what its own
components do. Differentiating that again and again with Leibniz' rule gives every order from
brackets of known derivatives (Müller 2018, section 2; eq. 66 and its derivatives).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb

from ....codegen import Value


def leibniz(
    product: Callable[[Value, Value], Value], a: Sequence[Value], b: Sequence[Value], n: int
) -> Value:
    """n-th derivative of ``product(a, b)``; derivatives that a list lacks are zero.

    Parameters
    ----------
    product : callable
        Linear in both.
    a, b : sequence of value
        Derivatives 0, 1, … of the factors; a constant is a list of one.
    n : int
    """
    terms = [
        comb(n, i) * product(a[i], b[n - i])
        for i in range(max(0, n + 1 - len(b)), min(n + 1, len(a)))
    ]
    return sum(terms[1:], terms[0]) if terms else 0 * product(a[0], b[0])


def carried(components: Sequence[Value], bracket: Callable[[int, Value], Value]) -> list[Value]:
    """Derivatives 0 … n of ``A(t) x(t)`` for ``(A x)˙ = A ẋ + bracket(0, A x)``.

    Parameters
    ----------
    components : sequence of n + 1 columns
        Derivatives of x, already mapped by A.
    bracket : callable
        ``(i, y) →`` what the i-th derivative of A's rate does to y.
    """
    known: dict[tuple[int, int], Value] = {}

    def derivative(k: int, m: int) -> Value:
        """m-th derivative of ``A x^(k)``, with one bracket for each derivative of A's rate."""
        if (k, m) not in known:
            total = components[k + m]
            for i in range(m):
                terms = [
                    comb(m - 1 - n, i) * derivative(k + n, m - 1 - i - n) for n in range(m - i)
                ]
                total = total + bracket(i, sum(terms[1:], terms[0]))
            known[k, m] = total
        return known[k, m]

    return [derivative(0, m) for m in range(len(components))]


def seen_at_rest(
    components: Sequence[Value], bracket: Callable[[int, Value], Value]
) -> list[Value]:
    """Derivatives 0 … n of ``A(t) x(t)`` in moving axes, for ``(A x)˙ = A (ẋ + bracket(0, x))``.

    For the rate of A itself the first bracket vanishes: it may start with its derivative.
    """
    known: dict[tuple[int, int], Value] = {}

    def derivative(a: int, m: int) -> Value:
        """a-th derivative of the components of m-th derivatives at rest, sums before brackets."""
        if m == 0:
            return components[a]
        if (a, m) not in known:
            total = components[a + m]
            for i in range(a + m):
                terms = [
                    comb(a + n, i) * derivative(a + n - i, m - 1 - n)
                    for n in range(max(0, i - a), m)
                ]
                total = total + bracket(i, sum(terms[1:], terms[0]))
            known[a, m] = total
        return known[a, m]

    return [derivative(0, m) for m in range(len(components))]
