"""Adapted: a controller made for one system in the loop of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from lgcontrol.systems import ReferenceLike
from lgcontrol.systems._internal import Parameters


class Adapted:
    """Translates state, reference and answer around a controller; otherwise the same controller.

    For cascades: an outer controller of a simpler model takes its state out of the plant's. Its
    answer becomes the reference of the inner one.

    Parameters
    ----------
    controller : Controller or callable
        Called with the translated state and reference.
    state : callable, optional
        ``state(x) → x`` of the controller's system.
    reference : callable, optional
        ``reference(reference) → reference`` that the controller understands.
    answer : callable, optional
        ``answer(t, x, u) → value`` to return in place of u; x is the plant's state.

    Examples
    --------
    A controller of a pose alone in the loop of a pose and its twist:

    >>> import numpy as np
    >>> steer = Adapted(lambda t, x, reference: reference - x, state=lambda x: x[:7])
    >>> steer(0.0, np.arange(13.0), np.zeros(7))
    array([ 0., -1., -2., -3., -4., -5., -6.])
    """

    def __init__(
        self,
        controller: Any,
        *,
        state: Callable[[Any], Any] | None = None,
        reference: Callable[[Any], ReferenceLike] | None = None,
        answer: Callable[[float, Any, Any], Any] | None = None,
    ) -> None:
        self.controller = controller
        self._state, self._reference, self._answer = state, reference, answer

    def __call__(
        self, t: float, x: ArrayLike, reference: ReferenceLike | None = None, **options: Any
    ) -> Any:
        """Answer of the controller, translated; options such as ``p`` are handed on."""
        u = self.controller(t, *self._translated(x, reference), **options)
        return u if self._answer is None else self._answer(t, x, u)

    def prepare(
        self, t: float = 0.0, x: ArrayLike | None = None, reference: ReferenceLike | None = None
    ) -> Self:
        """Get the controller ready, if it knows how to; see `Controller.prepare`."""
        prepare = getattr(self.controller, "prepare", None)
        if prepare is not None:
            prepare(t, *self._translated(x, reference))
        return self

    def export_c(self, folder: str | Path, **options: Any) -> Path:
        """Refused: what translates is Python.

        Raises
        ------
        NotImplementedError
            The controller inside exports, as far as its kind does.
        """
        raise NotImplementedError(
            "Adapted does not export C99, it translates by functions of Python: export its "
            "controller, .controller.export_c(…), and translate around it in firmware (a "
            "ModelFunction has export_c, too)"
        )

    @property
    def parameters(self) -> Mapping[str, float | Callable[[float], float]]:
        """Parameters of the controller, to read and to assign; see `Controller`."""
        return self.controller.parameters

    @parameters.setter
    def parameters(self, values: Parameters | None) -> None:
        self.controller.parameters = values

    def with_parameters(self, values: Parameters) -> Adapted:
        """Copy around a copy of the controller with other values of the named parameters."""
        return Adapted(
            self.controller.with_parameters(values),
            state=self._state,
            reference=self._reference,
            answer=self._answer,
        )

    def _translated(self, x: ArrayLike | None, reference: ReferenceLike | None) -> tuple[Any, Any]:
        """State and reference for the controller; what is not there stays None."""
        if x is not None and self._state is not None:
            x = self._state(x)
        if self._reference is not None:
            reference = self._reference(reference)
        return x, reference

    def __getattr__(self, name: str) -> Any:
        """``dt``, ``offset``, ``delay``, ``info``, ``reset`` and all else are the controller's."""
        if name == "controller":  # not there yet while unpickling
            raise AttributeError(name)
        return getattr(self.controller, name)
