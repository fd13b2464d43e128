"""Laws of a configuration and its body-fixed velocity, blocks of any system's state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Unpack

import numpy as np

from lgcontrol.systems import System

from ._base import Controller, LawOptions
from ._goal import still_state
from ._losses import held_states
from ._tracking import actuation, blocks_of, tracked_blocks


class BlockOptions(LawOptions, total=False):
    """Arguments that every law of two blocks takes besides its own; see `BlockController`."""

    dt: float
    configuration: str | None
    velocity: str | None


class BlockController(Controller):
    """A law that cancels the model's dynamics of a configuration and its velocity.

    Parameters
    ----------
    system : System
        State with a configuration and its body-fixed velocity; affine in the controls.
    dt : float
        Period in s.
    configuration, velocity : str, optional
        The two blocks; those of the system's structure if left out.
    reference, saturate, offset, delay, p
        See `Controller`.
    """

    def __init__(
        self,
        system: System,
        *,
        dt: float = 0.01,
        configuration: str | None = None,
        velocity: str | None = None,
        **loop: Unpack[LawOptions],
    ) -> None:
        super().__init__(system, dt=dt, **loop)
        self.blocks = blocks_of(system, configuration, velocity)
        self._actuation = actuation(system, self.blocks)

    def tracked_errors(self) -> np.ndarray | None:
        """Errors of the configuration and its velocity; see `Controller`."""
        return tracked_blocks(self.system, self.blocks)

    def _held_states(self) -> Iterable[tuple[np.ndarray, Any]]:
        q = still_state(self.system, self.reference)[self.blocks.q]
        return [(x, x) for x in held_states(self.system, self.blocks, q, self._own)]
