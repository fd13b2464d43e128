"""constrained_system: the System of a mechanical structure that keeps constraints."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np
import scipy

from ...codegen import Value, trace
from ...codegen._internal import (
    Saddle,
    Shape,
    UnknownNameError,
    as_names,
    check_known,
    check_shape,
    factor_symmetric,
    interruptible,
    unknown_name,
)
from ...groups import LieGroup, Product, Rn
from ...groups._internal import group_difference
from ...integrators import Constrained, Mechanical
from ...scene._internal import HeldLook
from ...systems import Quantity, System
from ...systems._internal import ErrorCoordinates, TracedLater
from ._constraint import RANK_OF_ROWS, Constraints, RankOfRows, scaled_rows

Stabilization = Literal["projection", "velocity", "baumgarte", "none"]

# Independent coordinates must decide the others at least this well, next to the best choice.
WORST = 1e3
# Driven entries come first as long as they are so free, next to the freest.
ENOUGH = 0.02
# Velocities and rows up to which whole steps are written out, and up to which each solution is;
# above, equations are solved by loops.
LARGEST_INLINE = 24
LARGEST_WRITTEN_OUT = 24
CLOCK = "clock"
# Largest gap of a configuration that is taken for one that keeps the constraints [m, rad].
OFF = 1e-6
# Position errors after a step of order four are so small that the second solve ends in rounding.
POSITION_SOLVES = 2


@interruptible
def constrained_system(
    base: System[Product],
    constraints: Constraints,
    *,
    at: Any,
    independent: str | Iterable[str] | None = None,
    independent_speeds: str | Iterable[str] | None = None,
    stabilization: Stabilization = "projection",
    rates: tuple[float, float] = (5.0, 5.0),
    quantities: Mapping[str, Callable[..., Any] | Quantity] | None = None,
    coordinates: Iterable[Coordinate] = (),
    name: str | None = None,
) -> System[Product]:
    """System of a mechanical structure that keeps constraints: ``M v̇ + Gᵀ λ = F``, ``G v̇ = γ``.

    The multipliers are solved for inside f (index 1). The group of the state does not change. Its
    error coordinates are the independent entries ``z = E minus(x, x_ref)``. Linearization, LQR,
    trim and MPC so work on the manifold: ``A_z = E (Df − ad_f) N``.

    Parameters
    ----------
    base : System
        With a structure, and no further blocks in its state than configuration and velocity:
        constrain first, then `augment`.
    constraints : Constraints
        On the configuration of the base, with its parameters.
    at : array_like, shape (nq,)
        A configuration that keeps the constraints, where independent coordinates are chosen or
        judged.
    independent : iterable of str, or str, optional
        Entries of the configuration's tangent vector that decide the others; chosen by a QR
        decomposition with pivots if left out, inputs first.
    independent_speeds : iterable of str, or str, optional
        Those whose velocities decide the others, where rows on velocities leave fewer of these;
        chosen among the independent ones if left out. A wheel that turns needs ones that decide in
        every heading, such as rates of turn.
    stabilization : {"projection", "velocity", "baumgarte", "none"}
        "projection" projects the state onto the constraints after each step, in the metric of M.
        "velocity" projects the velocity alone (index 2). With "baumgarte" γ pulls back towards the
        constraints. With "none" the violation grows with the method's error. Steps in charts of
        the manifold, which need none, are ``march(…, "charts")`` of mechanisms and closed trees.
    rates : (float, float)
        α and β in ``γ − 2 α (G v − ν) − β² φ`` [1/s], for "baumgarte".
    quantities : mapping of str to callable, optional
        Further ones, ``(t, x, u, p, multipliers) → column``.
    coordinates : iterable of Coordinate, optional
        What independent entries may be besides those of the tangent vector: angles of joints.
    name : str, optional

    Returns
    -------
    System
        With the quantities of the base and "multipliers", "constraint_forces" ``−Gᵀ λ``,
        "constraint_gap" (φ, then ``G v − ν``) and "conditioning". If the time appears in
        constraints, the last block of the state is "clock", the time [s] that they see.

    Raises
    ------
    ValueError
        If the base has no structure, at does not keep the constraints, or the independent
        coordinates do not decide the others.

    Examples
    --------
    A point on a circle, carried by a slide; its height is decided by x.

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> from lgcontrol.mechanics.constrained import Constraint
    >>> mass = SpatialInertia.point_mass(1.0)
    >>> slide = Multibody().add_body("x", mass, "prismatic", axis="x")
    >>> point = slide.add_body("z", mass, "prismatic", "x", axis="z")
    >>> wire = Constraint("wire", ["length"], lambda t, q, p: (ca.sumsqr(q) - 1) / 2, "m²")
    >>> base = point.system()
    >>> ring = Constraints(point.configuration, [wire])
    >>> system = constrained_system(base, ring, at=[0.0, -1.0], independent=["x"])
    >>> system.error_names
    ('configuration.x.x', 'velocity.x.x')
    >>> system.quantities["multipliers"](0.0, [0.0, -1.0, 0.0, 0.0], [0.0, 0.0]).round(6)
    array([9.81])
    """
    further, damping = tuple(coordinates), _damping(stabilization, rates)
    mechanics = ConstrainedMechanics(base, constraints, damping, further=further)
    at = check_shape("at", at, (mechanics.configuration.nq,))
    phi = np.abs(mechanics.terms_of(mechanics.complete(at), base.nominal_parameters)[0])
    if phi.max(initial=0.0) > OFF:
        row = constraints.row_names[int(phi.argmax())]
        raise ValueError(
            f"{base.name}: at does not keep the constraints at t = 0 s, {row} is off by "
            f"{phi.max():.3g}; assemble() finds a configuration near it that does"
        )
    choice = mechanics.choose(at, independent, independent_speeds)
    kept = replace(mechanics, choice=choice)
    state, symbol = kept.state, kept.symbol
    return System(
        name or base.name,
        state,
        kept.field,
        inputs=base.inputs,
        parameters=base.parameters,
        quantities=kept.base_quantities
        | {
            "multipliers": Quantity(kept.multipliers, constraints.row_names),
            "constraint_forces": kept.constraint_forces,
            "constraint_gap": lambda t, x, u, p: kept.gap(x, p),
            "conditioning": lambda t, x, u, p: kept.conditioning(x, p),
        }
        | {key: kept.of_multipliers(value) for key, value in (quantities or {}).items()},
        invariants=kept.gap,
        **kept.projection(stabilization),
        limits=base.limits,
        derivatives=TracedLater(lambda: kept.derivatives),  # type: ignore[arg-type]
        constrained=kept.constrained,
        errors=ErrorCoordinates(
            choice.selection(state), kept.basis, *choice.names(state), kept.gap, kept.gap_names
        ),
        home=kept.complete(at),
        look=None if base.look is None else HeldLook(base.look),
        symbol=symbol,
    )


def _damping(stabilization: str, rates: tuple[float, float]) -> tuple[float, float]:
    known = get_args(Stabilization)
    check_known("stabilization", known, stabilization)
    if stabilization != "baumgarte":
        return (0.0, 0.0)
    alpha, beta = (float(rate) for rate in check_shape("rates", rates, (2,)))
    if alpha < 0 or beta < 0:
        raise ValueError(f"rates of the stabilization must not be negative, got {rates}")
    return alpha, beta


@dataclass(frozen=True, eq=False)
class Coordinate:
    """One displacement of a configuration by name: a constant row on its tangent vector.

    Parameters
    ----------
    name : str
    row : ndarray, shape (nv,)
    unit : str
    """

    name: str
    row: np.ndarray
    unit: str = ""


@dataclass(frozen=True)
class IndependentCoordinates:
    """What decides the others among displacements of the configuration, and among velocities."""

    positions: tuple[Coordinate, ...]
    velocities: tuple[Coordinate, ...]

    def selection(self, state: Product) -> np.ndarray:
        """E."""
        Eq, Ev = (_rows_of(own, state) for own in (self.positions, self.velocities))
        E = np.zeros((len(Eq) + len(Ev), state.dim))
        nv = Eq.shape[1]
        E[: len(Eq), :nv], E[len(Eq) :, nv : 2 * nv] = Eq, Ev
        return E

    def names(self, state: Product) -> tuple[list[str], list[str]]:
        """Names and units of the error coordinates: those that the state has for entries."""
        configuration, velocity = list(state.blocks)[:2]
        names = [f"{configuration}.{c.name}" for c in self.positions]
        names += [f"{velocity}.{c.name}" for c in self.velocities]
        units = [c.unit for c in self.positions]
        units += [f"{c.unit}/s" if c.unit else "1/s" for c in self.velocities]
        return names, units


def _rows_of(coordinates: Iterable[Coordinate], state: Product) -> np.ndarray:
    nv = next(iter(state.blocks.values())).dim
    return np.array([c.row for c in coordinates]).reshape(-1, nv)


def entries_of(group: LieGroup) -> dict[str, int]:
    """Entries of a tangent vector by name, those of joints with one by the joint's as well."""
    found = {name: i for i, name in enumerate(group.tangent_names)}
    if isinstance(group, Product):
        for name, block in group.blocks.items():
            if block.dim == 1:
                found[name] = group.tangent_slice(name).start
    return found


def coordinates_by_name(group: LieGroup, further: Sequence[Coordinate]) -> dict[str, Coordinate]:
    """Entries of a tangent vector and coordinates of joints, those with one by the joint's name."""
    eye, names, units = np.eye(group.dim), group.tangent_names, group.tangent_units
    found = {name: Coordinate(names[i], eye[i], units[i]) for name, i in entries_of(group).items()}
    found |= {c.name: c for c in further}
    owners = [c.name.rpartition(".")[0] for c in further]
    return found | {
        owner: c for owner, c in zip(owners, further, strict=True) if owners.count(owner) == 1
    }


@dataclass(frozen=True, eq=False)
class ConstrainedMechanics:
    """Expressions of a constrained system, each a function that steps call or write out.

    The state of `base` is no more than configuration and velocity. `damping` is α and β of
    Baumgarte's stabilisation [1/s]. Error coordinates, where they are asked for, are those of
    `choice`, which may be `further` ones besides entries of the tangent vector.
    """

    base: System[Product]
    constraints: Constraints
    damping: tuple[float, float] = (0.0, 0.0)
    choice: IndependentCoordinates = IndependentCoordinates((), ())
    further: tuple[Coordinate, ...] = ()

    def __post_init__(self) -> None:
        base = self.base
        _ = self.structure  # refuses a base without
        if len(base.state.blocks) != 2:
            further = list(base.state.blocks)[2:]
            raise ValueError(
                f"{base.name} has further states ({', '.join(further)}); constrain the mechanism "
                "alone, then augment the constrained system"
            )
        if self.constraints.group != self.configuration:
            raise ValueError(
                f"the constraints are not on the configuration of {base.name}: "
                f"{group_difference(self.constraints.group, self.configuration)}"
            )

    @property
    def structure(self) -> Mechanical:
        """Mass matrix and forces of the base."""
        if self.base.structure is None:
            raise ValueError(
                f"{self.base.name} has no structure (M v̇ = F) that constraints could act on; "
                "bodies and trees make systems that have one, with their velocities as second block"
            )
        return self.base.structure

    @property
    def configuration(self) -> LieGroup:
        """Group of q."""
        return next(iter(self.base.state.blocks.values()))

    @cached_property
    def state(self) -> Product:
        """State of the base, and the clock of driven constraints."""
        blocks = dict(self.base.state.blocks)
        if self.constraints.is_driven:
            blocks[CLOCK] = Rn(1, ("t",), ("s",))
        return Product(**blocks)

    @property
    def symbol(self) -> Any:
        """Of the system: SX where steps are written out as a whole."""
        return self._symbol_up_to(LARGEST_INLINE)

    @property
    def kernel_symbol(self) -> Any:
        """Of the functions that steps call: SX where equations are written out."""
        return self._symbol_up_to(LARGEST_WRITTEN_OUT)

    def _symbol_up_to(self, largest: int) -> Any:
        unknowns = self.configuration.dim + self.constraints.n_rows
        return ca.MX if self.base.symbol is ca.MX or unknowns > largest else ca.SX

    # What a System is made of; each takes CasADi columns of any kind

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``v, v̇``, and the rate of the clock."""
        own = self.base.state.nq
        v = x[self.configuration.nq : own]
        a = self._solution(t, x, u, p)[0]
        return ca.vertcat(v, a, *([1.0] if self.constraints.is_driven else []))

    def multipliers(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """λ."""
        return self._solution(t, x, u, p)[1]

    def dynamics(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """v̇ and λ."""
        return tuple(self._solution(t, x, u, p))  # type: ignore[return-value]

    def rows_and_mass(self, x: Value, p: Value) -> tuple[Value, Value]:
        """G and M."""
        return self._terms(x, p).G, self._mass(x, p)

    def of_multipliers(self, quantity: Callable[..., Any] | Quantity) -> Quantity:
        """A quantity that takes the multipliers as well."""
        own = quantity if isinstance(quantity, Quantity) else Quantity(quantity)
        of: Any = own.of
        return replace(own, of=lambda t, x, u, p: of(t, x, u, p, self.multipliers(t, x, u, p)))

    def constraint_forces(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``−Gᵀ λ``."""
        return -self._terms_at(x, p)[1].T @ self.multipliers(t, x, u, p)

    def derivatives(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """``Df, Bf`` by the equations of motion, differentiated at their solution."""
        return tuple(self._slopes(t, x, u, p)[:2])  # type: ignore[return-value]

    @property
    def constrained(self) -> Constrained:
        """What methods need that solve for multipliers, each a function."""
        rows, structure, base = self.constraints, self.structure, self.base
        nv = self.configuration.dim
        arguments: dict[str, Shape] = {
            "t": (),
            "q": (self.configuration.nq,),
            "v": (nv,),
            "u": (base.n_inputs,),
            "p": (base.n_parameters,),
        }
        extra: dict[str, Shape] = {"a": (nv,), "multipliers": (rows.n_rows,)}

        def function(name: str, of: str, results: dict[str, Shape], build: Any) -> TracedLater:
            own = {key: (arguments | extra)[key] for key in of.split()}
            return TracedLater(lambda: trace(name, build, own, results))

        def index1(t: Value, q: Value, v: Value, u: Value, p: Value) -> list[Value]:
            x, at = ca.vertcat(q, v), rows.terms(t, q, v, p)
            return [structure.mass_matrix(x, p), structure.force(t, x, u, p), at.G, at.gamma]

        def balance(t: Value, q: Value, v: Value, u: Value, p: Value, a: Value, f: Value) -> Value:
            M, F, G, _ = index1(t, q, v, u, p)
            return M @ a - F + G.T @ f

        m = rows.n_rows
        terms: dict[str, Shape] = {"M": (nv, nv), "F": (nv,), "G": (m, nv), "gamma": (m,)}
        return Constrained(
            m,
            function("balance", "t q v u p a multipliers", {"balance": (nv,)}, balance),
            function("position", "t q p", {"phi": (rows.n_position,)}, rows.position),
            function("index1", "t q v u p", terms, index1),
            function("velocity", "t q p", {"G": (m, nv), "nu": (m,)}, rows.velocity),
            structure.lagrangian,
            rows.row_names[rows.n_position :],
            structure.loss_jacobian,
            structure.losses,
        )

    def multiplier_derivatives(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """Derivatives of λ by the tangent of the state, and by the inputs."""
        return tuple(self._slopes(t, x, u, p)[2:])  # type: ignore[return-value]

    def gap(self, x: Value, p: Value) -> Value:
        """φ, then ``G v − ν``."""
        at = self._terms_at(x, p)
        return ca.vertcat(at[0], at[1] @ self._velocity(x) - at[2])

    @property
    def gap_names(self) -> tuple[str, ...]:
        """Names of the entries of `gap`."""
        own = self.constraints
        return (
            *(f"row {name}" for name in own.row_names[: own.n_position]),
            *(f"rate of row {name}" for name in own.row_names),
        )

    def project(self, x: Value, p: Value) -> Value:
        """State on the constraints: two solves for the positions, one for the velocities."""
        for _ in range(POSITION_SOLVES):
            x = self._to_position(x, p)
        return self._to_velocity(x, p)

    def projection(self, stabilization: Stabilization) -> dict[str, Any]:
        """What a System does after a step, and its derivative; nothing if γ does the work."""
        found: dict[str, Any] = {
            "projection": (self.project, lambda: self.project_derivative),
            "velocity": (self._to_velocity, lambda: self._to_velocity_slope),
        }
        if stabilization not in found:
            return {}
        project, derivative = found[stabilization]
        return {"project": project, "project_derivative": TracedLater(derivative)}

    def project_derivative(self, x: Value, p: Value) -> Value:
        """Derivative of `project` between tangent spaces, shape (dim, dim)."""
        slope: Any = None
        for _ in range(POSITION_SOLVES):
            own, x = self._to_position_slope(x, p), self._to_position(x, p)
            slope = own if slope is None else own @ slope
        return self._to_velocity_slope(x, p) @ slope

    def basis(self, x: Value, p: Value) -> Value:
        """N."""
        return self._basis(x, p)

    def conditioning(self, x: Value, p: Value) -> Value:
        """Share of the mobility of independent coordinates that the constraints leave, 0 to 1."""
        return self._conditioning(x, p)

    @property
    def base_quantities(self) -> dict[str, Any]:
        """The base's names of the blocks that it knows."""
        own = self.base.state.nq

        def of(quantity: Callable[..., Any]) -> Callable[..., Any]:
            return lambda t, x, u, p: quantity(t, x[:own], u, p)

        return {**self.base.named_quantities(of)}

    # Kernels

    def _symbols(self) -> tuple[Any, Any, Any, Any]:
        symbol: Any = self.kernel_symbol
        return (
            symbol.sym("t"),
            symbol.sym("x", self.state.nq),
            symbol.sym("u", self.base.n_inputs),
            symbol.sym("p", self.base.n_parameters),
        )

    def _kernel(self, name: str, arguments: str, results: list[Any], at: dict[str, Any]) -> Any:
        keys = arguments.split()
        kind: Any = self.kernel_symbol
        made: Any = [kind(ca.densify(result)) for result in results]
        made = ca.cse(made) if kind is ca.SX else made
        return ca.Function(
            name, [at[key] for key in keys], made, keys, [f"r{i}" for i in range(len(made))]
        )

    def _velocity(self, x: Value) -> Value:
        return x[self.configuration.nq : self.base.state.nq]

    def _split(self, x: Value) -> tuple[Value, Value, Value]:
        """Time that constraints see, q, v."""
        nq = self.configuration.nq
        clock = x[self.base.state.nq] if self.constraints.is_driven else ca.DM(0)
        return clock, x[:nq], self._velocity(x)

    def _terms(self, x: Value, p: Value) -> Any:
        clock, q, v = self._split(x)
        return self.constraints.terms(clock, q, v, p)

    def _mass(self, x: Value, p: Value) -> Value:
        return self.structure.mass_matrix(x[: self.base.state.nq], p)

    def _target(self, x: Value, p: Value) -> Value:
        """γ with the pull of a stabilization."""
        at, (alpha, beta) = self._terms(x, p), self.damping
        if not (alpha or beta):
            return at.gamma
        phi = ca.vertcat(at.phi, type(at.phi)(at.G.shape[0] - at.phi.shape[0], 1))
        return at.gamma - 2 * alpha * (at.G @ self._velocity(x) - at.nu) - beta**2 * phi

    @cached_property
    def _terms_at(self) -> Any:
        _, x, _, p = self._symbols()
        at = self._terms(x, p)
        return self._kernel("terms", "x p", [at.phi, at.G, at.nu, at.gamma], {"x": x, "p": p})

    @cached_property
    def _solution(self) -> ca.Function:
        """``(t, x, u, p) → v̇, λ``."""
        t, x, u, p = self._symbols()
        made = self._solved(t, x, u, p)[1]
        at = {"t": t, "x": x, "u": u, "p": p}
        return self._kernel("constrained_dynamics", "t x u p", list(made), at)

    def _solved(self, t: Any, x: Any, u: Any, p: Any) -> tuple[Saddle, tuple[Any, Any]]:
        saddle = Saddle(self._mass(x, p), self._terms(x, p).G)
        force = self.structure.force(t, x[: self.base.state.nq], u, p)
        return saddle, saddle.solve(force, self._target(x, p))

    @cached_property
    def _slopes(self) -> ca.Function:
        """``(t, x, u, p) → Df, Bf, ∂λ/∂x, ∂λ/∂u``.

        Balance and constraints are differentiated at fixed v̇ and λ, then solved for theirs.
        """
        t, x, u, p = self._symbols()
        own = self.base.state
        saddle, (a, multipliers) = self._solved(t, x, u, p)
        by_x, by_u = self.structure.balance_derivatives(t, x[: own.nq], a, u, p)
        force_by_x, rows_by_x = self._constraint_slopes(x, p, a, multipliers)
        rest = self.state.dim - own.dim
        by_x = ca.horzcat(by_x, type(by_x)(by_x.shape[0], rest)) - force_by_x
        m = self.constraints.n_rows
        right = ca.horzcat(by_x, by_u), ca.horzcat(rows_by_x, ca.DM(m, by_u.shape[1]))
        slopes, of_multipliers = saddle.solve(*right)
        n, nv = self.state.dim, by_x.shape[0]
        Df = ca.vertcat(ca.DM.eye(n)[nv : 2 * nv, :], slopes[:, :n], ca.DM(rest, n))
        Bf = ca.vertcat(ca.DM(nv, u.shape[0]), slopes[:, n:], ca.DM(rest, u.shape[0]))
        results = [Df, Bf, of_multipliers[:, :n], of_multipliers[:, n:]]
        at = {"t": t, "x": x, "u": u, "p": p}
        return self._kernel("constrained_slopes", "t x u p", results, at)

    def _constraint_slopes(self, x: Any, p: Any, a: Any, multipliers: Any) -> tuple[Any, Any]:
        """Derivatives of ``Gᵀ λ`` and of ``γ − G a`` by the tangent of the state."""

        def build(y: Any, p: Any, b: Any, force: Any) -> list[Any]:
            G = self._terms(y, p).G
            return [G.T @ force, self._target(y, p) - G @ b]

        return self._slopes_of(build, x, p, a, multipliers)

    def _slopes_of(self, build: Callable[..., list[Any]], *values: Any) -> Any:
        """Derivatives of columns ``(x, …)`` by the tangent of the state, at values of all."""
        symbol = self.base.symbol
        fixed: list[Any] = [symbol.sym("y", *value.shape) for value in values]
        E = self.state.rate_matrix(fixed[0])
        made: Any = [ca.jacobian(column, fixed[0]) @ E for column in build(*fixed)]
        made = ca.cse(made) if symbol is ca.SX else made
        return ca.Function("slopes", fixed, made).call(list(values))

    # Projection

    def _correction(self, x: Any, p: Any) -> tuple[Saddle, Any, Any]:
        """Step of the positions towards φ = 0, shortest in the metric of M, and its multipliers."""
        rows = slice(0, self.constraints.n_position)
        at = self._terms(x, p)
        saddle = Saddle(self._mass(x, p), at.G[rows, :])
        return saddle, *saddle.solve(ca.DM(self.configuration.dim, 1), -at.phi)

    def _excess(self, x: Any, p: Any) -> tuple[Saddle, Any, Any]:
        """What of the velocity breaks ``G v = ν``, in the metric of M, and its multipliers."""
        at = self._terms(x, p)
        saddle = Saddle(self._mass(x, p), at.G)
        off = at.G @ self._velocity(x) - at.nu
        return saddle, *saddle.solve(ca.DM(self.configuration.dim, 1), off)

    def _state_of(self, q: Any, v: Any, x: Any) -> Any:
        return ca.vertcat(q, v, x[self.base.state.nq :])

    @cached_property
    def _to_position(self) -> ca.Function:
        _, x, _, p = self._symbols()
        _, q, v = self._split(x)
        group = self.configuration
        moved = group.normalize(group.plus(q, self._correction(x, p)[1]))
        return self._kernel("to_position", "x p", [self._state_of(moved, v, x)], {"x": x, "p": p})

    @cached_property
    def _to_velocity(self) -> ca.Function:
        _, x, _, p = self._symbols()
        _, q, v = self._split(x)
        kept = self._state_of(q, v - self._excess(x, p)[1], x)
        return self._kernel("to_velocity", "x p", [kept], {"x": x, "p": p})

    @cached_property
    def _to_position_slope(self) -> ca.Function:
        """``δq⁺ = Ad(exp(−d)) δq + J_r(d) δd``, with the equations of the step d differentiated."""
        _, x, _, p = self._symbols()
        group = self.configuration
        saddle, d, mu = self._correction(x, p)

        def build(y: Any, p: Any, step: Any, multiplier: Any) -> list[Any]:
            at = self._terms(y, p)
            G = at.G[: self.constraints.n_position, :]
            return [self._mass(y, p) @ step + G.T @ multiplier, at.phi + G @ step]

        by = self._slopes_of(build, x, p, d, mu)
        slope = saddle.solve(-by[0], -by[1])[0]
        n, nv = self.state.dim, group.dim
        turn = group.Ad(group.inverse(group.exp(d))) @ ca.DM.eye(n)[:nv, :]
        moved = turn + group.right_jacobian(d) @ slope
        result = ca.vertcat(moved, ca.DM.eye(n)[nv:, :])
        return self._kernel("to_position_slope", "x p", [result], {"x": x, "p": p})

    @cached_property
    def _to_velocity_slope(self) -> ca.Function:
        _, x, _, p = self._symbols()
        saddle, w, eta = self._excess(x, p)

        def build(y: Any, p: Any, excess: Any, multiplier: Any) -> list[Any]:
            at = self._terms(y, p)
            force = self._mass(y, p) @ excess + at.G.T @ multiplier
            return [force, at.G @ (self._velocity(y) - excess) - at.nu]

        by = self._slopes_of(build, x, p, w, eta)
        slope = saddle.solve(-by[0], by[1])[0]
        n, nv = self.state.dim, self.configuration.dim
        eye = ca.DM.eye(n)
        result = ca.vertcat(eye[:nv, :], eye[nv : 2 * nv, :] - slope, eye[2 * nv :, :])
        return self._kernel("to_velocity_slope", "x p", [result], {"x": x, "p": p})

    # Error coordinates

    @cached_property
    def _basis(self) -> ca.Function:
        """``(x, p) → N`` with ``E N = 1`` in the null space of the constraints' derivatives.

        Each half is ``N₀ (E N₀)⁻¹`` with N₀ what pushes along the independent entries accelerate.
        """
        _, x, _, p = self._symbols()
        at, choice = self._terms(x, p), self.choice
        M, nv = self._mass(x, p), self.configuration.dim
        Eq, Ev = (_rows_of(own, self.state) for own in (choice.positions, choice.velocities))
        position = Saddle(M, at.G[: self.constraints.n_position, :])
        both = self.constraints.n_position == self.constraints.n_rows
        velocity = position if both else Saddle(M, at.G)
        Nq = _normalized(position, Eq)
        Nv = Nq if both else _normalized(velocity, Ev)

        def build(y: Any, p: Any) -> list[Any]:
            here = self._terms(y, p)
            return [here.G @ self._velocity(y) - here.nu]

        turning = self._slopes_of(build, x, p)[0][:, :nv]
        carried = velocity.solve(ca.DM(nv, Nq.shape[1]), -turning @ Nq)[0]
        carried -= Nv @ (_sparse(Ev) @ carried)
        rest = self.state.dim - 2 * nv
        result = ca.blockcat([[Nq, ca.DM(nv, Nv.shape[1])], [carried, Nv]])
        result = ca.vertcat(result, ca.DM(rest, result.shape[1]))
        return self._kernel("basis", "x p", [result], {"x": x, "p": p})

    @cached_property
    def _conditioning(self) -> ca.Function:
        _, x, _, p = self._symbols()
        M, E = self._mass(x, p), _sparse(_rows_of(self.choice.velocities, self.state))
        saddle, k = Saddle(M, self._terms(x, p).G), E.shape[0]
        kept = E @ saddle.solve(E.T, ca.DM(saddle.m, k))[0]
        free = E @ Saddle(M, ca.DM(0, M.shape[0])).solve(E.T, ca.DM(0, k))[0]
        share = _determinant(kept) / _determinant(free)
        return self._kernel("conditioning", "x p", [share], {"x": x, "p": p})

    # Choices and reports, on numbers

    def terms_of(self, x: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """φ, G and M in a state."""
        phi, G, _, _ = self._terms_at(x, p)
        M = self._mass(x, p)
        return phi.full().ravel(), G.full(), np.asarray(M, dtype=np.float64).reshape(G.shape[1], -1)

    def complete(self, q: np.ndarray, v: np.ndarray | None = None, t: float = 0.0) -> np.ndarray:
        """State of a configuration and a velocity."""
        v = np.zeros(self.configuration.dim) if v is None else v
        return np.concatenate([q, v, [t] if self.constraints.is_driven else []])

    def rank(self, x: np.ndarray, p: np.ndarray, rows: Any = slice(None)) -> RankOfRows:
        """Which rows depend on which in a state, in the metric of M; of all, or of some."""
        _, G, M = self.terms_of(x, p)
        units = [*np.array([*self.constraints.units], dtype=object)[rows]]
        return RankOfRows.of(scaled_rows(G[rows], M, units))

    def choose(
        self,
        q: np.ndarray,
        names: str | Iterable[str] | None,
        speeds: str | Iterable[str] | None = None,
    ) -> IndependentCoordinates:
        """Independent coordinates: the named ones, judged, or the best entries, inputs first."""
        base, x, p = self.base, self.complete(q), self.base.nominal_parameters
        _, G, M = self.terms_of(x, p)
        reach = self.structure.input_map(0.0, x[: base.state.nq], base.nominal_input, p)
        driven = np.abs(reach)[:, base.input_index("control")].any(axis=1)
        still = _Freedoms(M, null_space(G[: self.constraints.n_position], M), driven)
        moving = _Freedoms(M, null_space(G, M), driven)
        positions = self._named(names, still)
        if speeds is None:
            return IndependentCoordinates(positions, moving.best(positions))
        return IndependentCoordinates(positions, self._named(speeds, moving))

    def _named(
        self, names: str | Iterable[str] | None, degrees_of_freedom: _Freedoms
    ) -> tuple[Coordinate, ...]:
        group = self.configuration
        eye, units = np.eye(group.dim), group.tangent_units
        entries = [Coordinate(name, eye[i], units[i]) for i, name in enumerate(group.tangent_names)]
        best = degrees_of_freedom.best(entries)
        if names is None:
            return best
        known = coordinates_by_name(group, self.further)
        for entry in as_names(names):
            if entry not in known:
                several = [name for name in known if name.rpartition(".")[0] == entry]
                if several:
                    raise UnknownNameError(
                        f"{self.base.name}: {entry!r} has {len(several)} coordinates, expected the "
                        f"names of single ones: name some of {', '.join(several)}"
                    )
                raise UnknownNameError(unknown_name("entry of the configuration", entry, known))
        given = tuple(known[entry] for entry in as_names(names))
        degrees_of_freedom.judge(self.base.name, given, best)
        return given


def _sparse(E: np.ndarray) -> ca.DM:
    return ca.sparsify(ca.DM(E))


def _normalized(saddle: Saddle, selection: np.ndarray) -> Any:
    """``N₀ (E N₀)⁻¹`` for rows E, with N₀ what pushes along them accelerate."""
    k, E = len(selection), _sparse(selection)
    if not k:
        return ca.DM(saddle.n, 0)
    N = saddle.solve(E.T, ca.DM(saddle.m, k))[0]
    return Saddle(E @ N, ca.DM(0, k)).solve(N.T, ca.DM(0, saddle.n))[0].T


def _determinant(K: Any) -> Any:
    """Of a symmetric positive matrix: the product of its pivots."""
    k = ca.SX.sym("K", K.shape[0], K.shape[0])
    D = factor_symmetric(k)[1]
    return ca.Function(
        "determinant", [k], [functools.reduce(operator.mul, ca.vertsplit(D), ca.SX(1))]
    )(K)


def null_space(G: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Velocities that keep ``G v = 0``, orthonormal in the metric of M."""
    L, W = np.linalg.cholesky(M), scaled_rows(G, M)
    if W.any():
        _, s, Vt = np.linalg.svd(W)
        V = Vt[int((s > RANK_OF_ROWS * s[0]).sum()) :].T
    else:
        V = np.eye(len(M))
    return scipy.linalg.solve_triangular(L, V, lower=True, trans="T")


@dataclass(frozen=True, eq=False)
class _Freedoms:
    """Velocities N that constraints leave, in the metric of M, and which entries inputs drive."""

    M: np.ndarray
    N: np.ndarray
    driven: np.ndarray

    def shares(self, coordinates: Sequence[Coordinate]) -> np.ndarray:
        """How freely coordinates move, a row for each.

        The norm of an entry's row is the share of the mobility that it would have alone, without
        constraints.
        """
        E = np.array([c.row for c in coordinates]).reshape(-1, len(self.M))
        alone = np.sqrt(np.einsum("ij,jk,ik->i", E, self.M, E)) / np.einsum("ij,ij->i", E, E)
        return E @ self.N * alone[:, None]

    def best(self, coordinates: Sequence[Coordinate]) -> tuple[Coordinate, ...]:
        """Those that decide all, the freest first; driven ones while they tell something new."""
        left, chosen = self.shares(coordinates), []
        driven = np.array([c.row[self.driven].any() for c in coordinates], dtype=bool)
        for _ in range(self.N.shape[1]):
            size = np.linalg.norm(left, axis=1)
            first = size * driven
            if first.max() < ENOUGH * size.max():
                first = size
            i = int(first.argmax())
            chosen.append(i)
            r = left[i] / np.linalg.norm(left[i])
            left = left - np.outer(left @ r, r)
        return tuple(coordinates[i] for i in sorted(chosen))

    def judge(
        self, name: str, chosen: tuple[Coordinate, ...], best: tuple[Coordinate, ...]
    ) -> None:
        """Refuse coordinates that are too few, too many, or that do not decide the others."""
        own = ", ".join(c.name for c in best)
        remedy, n = f"for example {own}, or leave the choice open", self.N.shape[1]
        given, many = ", ".join(c.name for c in chosen), len({c.name for c in chosen})
        if many != n:
            raise ValueError(
                f"{name}: {n} independent entries decide the others in this configuration, "
                f"{many} are given ({given}); {remedy}"
            )
        s = np.linalg.svd(self.shares(chosen), compute_uv=False)
        if s[0] > WORST * s[-1]:
            raise ValueError(
                f"{name}: {given} do not decide the others in this configuration (condition "
                f"{s[0] / max(s[-1], np.finfo(float).tiny):.2g}): it is singular for them; {remedy}"
            )
