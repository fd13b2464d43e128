"""LinkCapsules: links of a tree as capsules, for obstacles and for self-collision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from ....codegen import named_options
from ....codegen._internal import check_known, check_shape
from ....groups import SE3
from ....systems._internal import squared_distance
from .._multibody import Multibody


@named_options
class LinkCapsules:
    """Segments with radii that links carry along; its methods are functions for bounds.

    States are those of ``tree.system()``: the configuration comes first.

    Parameters
    ----------
    tree : Multibody
    capsules : mapping
        From names of links or frames to ``(start, end, radius)``: two points (3,) in the frame and
        a radius, in m. More than one on a frame is a list of these.

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(1.0, length=1.0, axis=[1, 0, 0], center_of_mass=[0.5, 0, 0])
    >>> tree = Multibody().add_body("a", rod, "revolute")
    >>> tree = tree.add_body("b", rod, "revolute", "a", [1, 0, 0])
    >>> tree = tree.add_body("c", rod, "revolute", "b", [1, 0, 0])
    >>> whole = [0, 0, 0], [1, 0, 0], 0.05
    >>> arm = LinkCapsules(tree, {"a": whole, "b": whole, "c": whole})
    >>> arm.pairs  # neighbours touch in their joint
    (('a', 'c'),)
    >>> folded = np.array([0.0, np.pi / 2, np.pi / 2, 0, 0, 0])  # a U: one link's length apart
    >>> arm.self_clearance()(0.0, ca.DM(folded), None, None)
    DM(4.95)
    """

    def __init__(self, tree: Multibody, capsules: Mapping[str, Any]) -> None:
        self.tree = tree
        self._parts: list[tuple[str, np.ndarray, float]] = []
        for name, given in capsules.items():
            check_known("frame", tree.frames, name)
            for start, end, radius in [given] if np.ndim(given[-1]) == 0 else given:
                ends = [check_shape(f"capsule of {name!r}", point, (3,)) for point in (start, end)]
                if not (np.isfinite(radius) and radius > 0):
                    raise ValueError(f"capsule of {name!r}: radius must be positive, got {radius}")
                self._parts.append((name, np.array(ends).T, float(radius)))

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Frames whose capsules may meet: all but neighbours, which share a joint."""
        names = list(dict.fromkeys(name for name, _, _ in self._parts))
        return tuple((a, b) for a, b in combinations(names, 2) if not self._are_neighbours(a, b))

    def ends(self, frame: str, index: int = 0) -> Callable[..., Any]:
        """``(t, x, u, p) → ends``, (3, 2), of a capsule in world axes; for `keep_out`.

        Parameters
        ----------
        frame : str
        index : int
            Which one, where the frame has several.
        """
        parts = [entry for entry in self._parts if entry[0] == frame]
        check_known(
            "frame with a capsule", dict.fromkeys(name for name, _, _ in self._parts), frame
        )
        return lambda t, x, u, p: self._ends(parts[index], x, p)

    def radius(self, frame: str, index: int = 0) -> float:
        """Radius of a capsule in m."""
        return [radius for name, _, radius in self._parts if name == frame][index]

    def self_clearance(
        self, pairs: Sequence[tuple[str, str]] | None = None, margin: float = 0.0
    ) -> Callable[..., Any]:
        """``(t, x, u, p) → (d² − R²) / (2 R)``, a row for each two capsules; at least zero.

        Near contact the clearance in m: ``Bound(arm.self_clearance(), lower=0.0)``.

        Parameters
        ----------
        pairs : sequence of pairs of str, optional
            Frames; `pairs` if left out.
        margin : float
            To keep between the surfaces, m.
        """
        which = self.pairs if pairs is None else tuple(pairs)
        if not which:
            raise ValueError(f"{self.tree.name}: there are no capsules that could meet; give pairs")
        names = sorted({name for name, _, _ in self._parts})
        check_known("frame with a capsule", names, *(name for pair in which for name in pair))

        def rows(t: Any, x: Any, u: Any, p: Any) -> Any:
            ends = [self._ends(part, x, p) for part in self._parts]
            found = []
            for a, b in which:
                for i, (first, _, r) in enumerate(self._parts):
                    for k, (second, _, s) in enumerate(self._parts):
                        if (first, second) == (a, b):
                            R = r + s + margin
                            found.append((squared_distance(ends[i], ends[k]) - R**2) / (2 * R))
            return ca.vertcat(*found)

        return rows

    def _ends(self, part: tuple[str, np.ndarray, float], x: Any, p: Any) -> Any:
        frame, ends, _ = part
        placement = self.tree.placement(frame)
        own = [p[:size] for size, *_ in placement.argument_shapes[1:]]  # of a tree with parameters
        T = SE3.matrix(placement(x[: self.tree.nq], *own))
        return T[:3, :3] @ ca.DM(ends) + ca.repmat(T[:3, 3], 1, 2)

    def _are_neighbours(self, a: str, b: str) -> bool:
        return a in self._near(b) or b in self._near(a)

    def _near(self, frame: str) -> set[str]:
        """The frame itself and the link it hangs on, through links that are fixed."""
        found, at = {frame}, frame
        while at in self.tree.links:
            link = self.tree.link(at)
            at = link.parent
            found.add(at)
            if not link.joint.is_fixed:
                break
        return found
