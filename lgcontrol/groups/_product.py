"""Product: several groups side by side, with named blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import Shape, UnknownNameError, is_symbolic, unknown_name
from ._base import LieGroup, not_a_group
from ._element import check_element


class Product(LieGroup):
    """Direct product of groups; coordinates and tangent vectors are concatenated.

    Parameters
    ----------
    *groups : LieGroup
        Blocks that need no name: they are called "0", "1", …
    **named : LieGroup
        Named blocks, after the others.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, Product, Rn
    >>> state = Product(pose=SE3, twist=Rn(6))
    >>> state.nq, state.dim
    (13, 12)
    >>> x = state.join(pose=SE3.identity, twist=np.ones(6))
    >>> state.split(x)["twist"]
    array([1., 1., 1., 1., 1., 1.])
    """

    def __init__(self, *groups: LieGroup, **named: LieGroup) -> None:
        blocks = {str(i): group for i, group in enumerate(groups)} | named
        if len(blocks) < len(groups) + len(named):
            raise ValueError(f"a block named {sorted(named)} is also a number of an unnamed one")
        for name, group in blocks.items():
            if not re.fullmatch(r"\w+", name):
                raise ValueError(f"block name {name!r} must be of letters, digits and underscores")
            if not isinstance(group, LieGroup):
                raise TypeError(not_a_group(f"block {name!r}", group))
        items = tuple(blocks.items())
        self._dim = sum(group.dim for group in blocks.values())
        self._nq = sum(group.nq for group in blocks.values())
        self._hash = hash(items)
        self._items = items

    def __eq__(self, other: object) -> bool:
        """Whether the other is a product of the same blocks with the same names."""
        return self is other or (isinstance(other, Product) and self._items == other._items)

    def __hash__(self) -> int:
        """Hash by value."""
        return self._hash

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse changes: groups are immutable."""
        if "_items" in self.__dict__:
            raise AttributeError(f"groups are immutable: cannot set {name!r}")
        object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._items,)

    @property
    def blocks(self) -> dict[str, LieGroup]:
        """Groups by name."""
        return dict(self._items)

    @property
    def name(self) -> str:  # type: ignore[override]
        """Product of the block names and groups."""
        return "Product(" + ", ".join(f"{name}={group}" for name, group in self._items) + ")"

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Sum of the dimensions."""
        return self._dim

    @property
    def nq(self) -> int:  # type: ignore[override]
        """Sum of the coordinate counts."""
        return self._nq

    @property
    def matrix_size(self) -> int:  # type: ignore[override]
        """Sum of the matrix sizes: the representation is block-diagonal."""
        return sum(group.matrix_size for _, group in self._items)

    @property
    def point_size(self) -> int:  # type: ignore[override]
        """Sum of the point sizes: each block acts on its own point."""
        return sum(group.point_size for _, group in self._items)

    @cached_property
    def unit_parts(self) -> tuple[slice, ...]:  # type: ignore[override]
        """Slices of the coordinates of all blocks that are unit vectors."""
        starts = np.cumsum([0, *(group.nq for _, group in self._items)]).tolist()
        return tuple(
            slice(start + part.start, start + part.stop)
            for start, (_, group) in zip(starts, self._items, strict=False)
            for part in group.unit_parts
        )

    @property
    def is_commutative(self) -> bool:  # type: ignore[override]
        """Whether all blocks are."""
        return all(group.is_commutative for _, group in self._items)

    @property
    def identity(self) -> np.ndarray:
        """Identities of the blocks, shape (nq,)."""
        return np.concatenate([np.zeros(0), *(group.identity for _, group in self._items)])

    @cached_property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names with the block in front: ``pose.x``; of one number without a name, the block's."""
        return tuple(n for b, g in self._items for n in _within(b, g.coordinate_names))

    @cached_property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names with the block in front: ``pose.rx``; of one number without a name, the block's."""
        return tuple(n for b, g in self._items for n in _within(b, g.tangent_names))

    @cached_property
    def coordinate_units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Units of the coordinates."""
        return tuple(unit for _, group in self._items for unit in group.coordinate_units)

    @cached_property
    def tangent_units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Units of tangent vectors."""
        return tuple(unit for _, group in self._items for unit in group.tangent_units)

    def coordinate_slice(self, block: str) -> slice:
        """Slice of a block's coordinates."""
        return self._slice(block, "nq")

    def tangent_slice(self, block: str) -> slice:
        """Slice of a block's tangent vector."""
        return self._slice(block, "dim")

    def split(self, X: Value) -> dict[str, Value]:
        """Coordinates by block; X as for the other operations."""
        return dict(zip(self.blocks, self._parts(X, "nq"), strict=True))

    def split_tangent(self, d: Value) -> dict[str, Value]:
        """Tangent vectors by block."""
        return dict(zip(self.blocks, self._parts(d, "dim"), strict=True))

    def join(self, **values: Value) -> Value:
        """Coordinates put together from values by block; blocks left out are identities.

        One number will do for a block of one coordinate.

        Raises
        ------
        KeyError
            If a name is no block.
        ValueError
            If a block has another shape, or numbers that are no element of its group.
        """
        for name, group in self._items:
            value = values.get(name)
            if group.unit_parts and value is not None and not is_symbolic(value):
                values[name] = check_element(f"block {name!r}", value, group, batch=True)
        return self._join(values, {name: group.identity for name, group in self._items})

    def join_tangent(self, **values: Value) -> Value:
        """Tangent vectors put together from values by block; blocks left out are zero."""
        return self._join(values, {name: np.zeros(group.dim) for name, group in self._items})

    def _slice(self, block: str, size: str) -> slice:
        start = 0
        for name, group in self._items:
            length = getattr(group, size)
            if name == block:
                return slice(start, start + length)
            start += length
        raise UnknownNameError(unknown_name("block", block, self.blocks))

    def _join(self, values: Mapping[str, Value], defaults: dict[str, np.ndarray]) -> Value:
        for name in values:
            if name not in defaults:
                raise UnknownNameError(unknown_name("block", name, defaults))
        parts = []
        for name, default in defaults.items():
            part: Any = values.get(name, default)
            symbolic = isinstance(part, ca.SX | ca.MX | ca.DM)
            if not symbolic and np.ndim(part) == 0 and len(default) == 1:
                part = [part]
            shape = part.shape if symbolic else np.shape(part)
            if (shape[:1] if symbolic else shape[-1:]) != (len(default),):
                expected = f"(..., {len(default)})"
                raise ValueError(f"block {name!r} has shape {shape}, expected {expected}")
            parts.append(part)
        if any(isinstance(part, ca.SX | ca.MX | ca.DM) for part in parts):
            return ca.vertcat(*parts)
        arrays = [np.asarray(part, dtype=np.float64) for part in parts]
        if all(array.ndim == 1 for array in arrays):  # a tenth of the time
            return np.concatenate(arrays)
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        return np.concatenate([np.broadcast_to(a, batch + a.shape[-1:]) for a in arrays], axis=-1)

    def _parts(self, value: Value, size: str) -> list[Value]:
        total = getattr(self, size)
        symbolic = isinstance(value, ca.SX | ca.MX | ca.DM)
        shape = value.shape if symbolic else np.shape(value)
        length = 0 if not shape else shape[0] if symbolic else shape[-1]
        if length != total:
            raise ValueError(f"{self.name}: a value has shape {shape}, expected (..., {total})")
        bounds = np.cumsum([0, *(getattr(group, size) for _, group in self._items)])
        slices = [slice(int(a), int(b)) for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
        if symbolic:
            return [value[part] for part in slices]
        array = np.asarray(value, dtype=np.float64)
        return [array[..., part] for part in slices]

    def _each(self, operation: str, *values: tuple[Value, str]) -> list[Value]:
        """Apply an operation to every block; values come with the size that splits them."""
        parts = [self._parts(value, size) for value, size in values]
        return [
            getattr(group, operation)(*arguments)
            for (_, group), *arguments in zip(self._items, *parts, strict=True)
        ]

    def _matrix_blocks(self, M: Value) -> list[Value]:
        bounds = np.cumsum([0, *(group.matrix_size for _, group in self._items)])
        return [
            M[..., int(a) : int(b), int(a) : int(b)]
            if isinstance(M, np.ndarray)
            else M[int(a) : int(b), int(a) : int(b)]
            for a, b in zip(bounds[:-1], bounds[1:], strict=True)
        ]

    def _compose(self, X: Value, Y: Value) -> Value:
        return ca.vertcat(*self._each("_compose", (X, "nq"), (Y, "nq")))

    def _inverse(self, X: Value) -> Value:
        return ca.vertcat(*self._each("_inverse", (X, "nq")))

    def _exp(self, d: Value) -> Value:
        return ca.vertcat(*self._each("_exp", (d, "dim")))

    def _log(self, X: Value) -> Value:
        return ca.vertcat(*self._each("_log", (X, "nq")))

    def _hat(self, d: Value) -> Value:
        return ca.diagcat(*self._each("_hat", (d, "dim")))

    def _vee(self, M: Value) -> Value:
        blocks = zip(self._items, self._matrix_blocks(M), strict=True)
        return ca.vertcat(*(group._vee(block) for (_, group), block in blocks))

    def _matrix(self, X: Value) -> Value:
        return ca.diagcat(*self._each("_matrix", (X, "nq")))

    def _from_matrix(self, M: Value) -> Value:
        blocks = zip(self._items, self._matrix_blocks(M), strict=True)
        return ca.vertcat(*(group._from_matrix(block) for (_, group), block in blocks))

    def _project_matrix(self, M: np.ndarray) -> np.ndarray:
        repaired = np.array(M)
        for (_, group), block in zip(self._items, self._matrix_blocks(repaired), strict=True):
            block[...] = group._project_matrix(block)
        return repaired

    def _act(self, X: Value, p: Value) -> Value:
        return ca.vertcat(*self._each("_act", (X, "nq"), (p, "point_size")))

    def _Ad(self, X: Value) -> Value:
        return ca.diagcat(*self._each("_Ad", (X, "nq")))

    def _ad(self, d: Value) -> Value:
        return ca.diagcat(*self._each("_ad", (d, "dim")))

    def _right_jacobian(self, d: Value) -> Value:
        return ca.diagcat(*self._each("_right_jacobian", (d, "dim")))

    def _right_jacobian_inverse(self, d: Value) -> Value:
        return ca.diagcat(*self._each("_right_jacobian_inverse", (d, "dim")))

    def _normalize(self, X: Value) -> Value:
        return ca.vertcat(*self._each("_normalize", (X, "nq")))

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return np.concatenate(
            [np.zeros((*shape, 0)), *(group._random(rng, shape) for _, group in self._items)],
            axis=-1,
        )


def _within(block: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of the entries of a block; the only one without a name of its own is the block."""
    return (block,) if names == ("x0",) else tuple(f"{block}.{name}" for name in names)


def _rebuild(items: tuple[tuple[str, LieGroup], ...]) -> Product:
    return Product(**dict(items))


class Leaf(NamedTuple):
    """A block that is no product: its path, and its places in coordinates and tangent vectors."""

    name: str
    group: LieGroup
    coordinates: slice
    tangent: slice


def leaves(group: LieGroup) -> list[Leaf]:
    """Blocks at any depth that are no products; a group that is none is its own, without a name.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, Rn
    >>> [leaf.name for leaf in leaves(Product(base=SE3, arm=Product(elbow=Rn(1), wrist=Rn(1))))]
    ['base', 'arm.elbow', 'arm.wrist']
    """
    found, q, d = [], 0, 0
    for name, leaf in _named_leaves("", group):
        found.append(Leaf(name, leaf, slice(q, q + leaf.nq), slice(d, d + leaf.dim)))
        q, d = q + leaf.nq, d + leaf.dim
    return found


def _named_leaves(name: str, group: LieGroup) -> Iterator[tuple[str, LieGroup]]:
    if not isinstance(group, Product):
        yield name, group
        return
    for key, block in group.blocks.items():
        yield from _named_leaves(f"{name}.{key}".lstrip("."), block)
