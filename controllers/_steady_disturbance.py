"""SteadyDisturbance: what pushes a plant besides its controls, found from what a model predicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, named_options, prepare
from lgcontrol.codegen._internal import UnknownNameError, check_shape, memoized, unknown_name
from lgcontrol.optimal._internal import SEARCH, LoopDisturbance, ReferenceSamples
from lgcontrol.systems import System
from lgcontrol.systems._internal import symbols_of


@named_options
@dataclass(frozen=True, slots=True)
class SteadyDisturbance:
    """Disturbance inputs that are unknown and constant, for offset-free control by an `MPC`.

    The controller estimates the disturbance from the prediction error of its model, and counts with
    it in its plans. It tracks the reachable steady state closest to the reference, in the norm of
    Q.

    Parameters
    ----------
    of : str or iterable of str
        Inputs of role "disturbance", or what comes before the dot in several names.
    settling : float, optional
        Time constant of the estimate in s; ten periods if left out. With a short time constant the
        estimate takes the effect of a wrong mass in motion for a disturbance. A Panda that carries
        1 kg it does not know, with a delay of 40 ms, violates hard limits of 2.61 rad/s: by 2.0
        rad/s with 0.2 s, by 1.3 with 0.4 s, by 0.8 with 1 s, by 0.5 without an estimate. It keeps
        them without the mass. Tell the model the mass, or set tighter bounds than must hold.
    may_fail : str or iterable of str
        Controls whose actuators may fail. What these explain of a prediction error is no
        disturbance: the estimate does not chase a dead actuator. To tell one from the other, the
        state must show it, as the speed of a reaction wheel does.

    Examples
    --------
    >>> SteadyDisturbance("push", settling=0.5).settling
    0.5
    """

    of: str | Iterable[str]
    settling: float | None = None
    may_fail: str | Iterable[str] = ()

    def __post_init__(self) -> None:
        if self.settling is not None and not check_shape("settling", self.settling, ()) > 0:
            raise ValueError(f"settling must be positive, got {self.settling:g} s")


class DisturbanceEstimate(NamedTuple):
    """Estimate, and where the search for the steady state goes on.

    The target is state, controls and multipliers of the last steady state, and the inverse of its
    equations.
    """

    inputs: np.ndarray  # (n_inputs,), zero for all that are no estimated disturbance
    target: tuple[np.ndarray, ...] | None = None


class DisturbanceEstimator:
    """Constant inputs of role "disturbance", estimated from the prediction error of full states.

    With the estimate d the model predicts ``x̂`` from ``x₀``. A measured state x says ``error(x,
    x̂) ≈ G (d* − d)``, with the derivative G of the prediction by differences. A sample of Δt moves
    the estimate by ``1 − exp(−Δt/T)`` times this correction, where T is `settling` if none is
    given. Directions whose relative singular value is below `unobservable` are left out.

    The target is the steady state next to the reference in the presence of d. It has the rate of
    the reference at the least cost of its error, weighted by Q.

    References
    ----------
    Pannocchia and Rawlings, Disturbance models for offset-free model-predictive control, AIChE
    Journal 49(2), 2003: the conditions under which no offset remains; with full states one
    disturbance for each rate that errs.
    """

    def __init__(
        self, system: System, given: SteadyDisturbance, settling: float, *, Q: np.ndarray,
        unobservable: float,
    ) -> None:  # fmt: skip
        self.system, self.Q, self.unobservable = system, Q, unobservable
        self.settling = settling if given.settling is None else float(given.settling)
        self.index = np.array(_places(system, given.of, "disturbance"))
        suspects = _places(system, given.may_fail, "control")
        self._explaining = np.array([*self.index, *suspects], dtype=int)
        self._rate = _rate_slopes(system)

    def prepare(self, step: ModelFunction) -> None:
        """Compile what a loop calls, and the step that it predicts by."""
        prepare(step, calls=1000)
        prepare(self._rate, calls=1000)

    @property
    def in_kernel(self) -> LoopDisturbance:
        """The same for calls of the kernel."""
        return LoopDisturbance(
            self._explaining, len(self.index), self.settling, self.Q, self.unobservable, self._rate,
            sum(self._sizes),
        )  # fmt: skip

    def by_name(self, state: DisturbanceEstimate) -> dict[str, float]:
        """The estimate."""
        names = self.system.input_names
        return {names[i]: float(state.inputs[i]) for i in self.index}

    def numbers(self, state: DisturbanceEstimate) -> np.ndarray:
        """An estimate as numbers, as the kernel has it: inputs, whether there is a target, that."""
        numbers, target = np.zeros(sum(self._sizes)), state.target
        numbers[: len(state.inputs)] = state.inputs
        if target is not None:
            parts = [[1.0], *(np.ravel(part, order="F") for part in target)]
            numbers[len(state.inputs) :] = np.concatenate(parts)
        return numbers

    def estimate(self, numbers: np.ndarray) -> DisturbanceEstimate:
        """The estimate of `numbers`."""
        inputs, is_known, *rest, inverse = np.split(numbers.copy(), np.cumsum(self._sizes[:-1]))
        if not is_known[0]:
            return DisturbanceEstimate(inputs)
        size = round(len(inverse) ** 0.5)
        return DisturbanceEstimate(inputs, (*rest, inverse.reshape(size, size, order="F")))

    @property
    def _sizes(self) -> tuple[int, ...]:
        """Numbers in the parts of an estimate."""
        system, m = self.system, len(self.system.input_index("control"))
        dim = system.state.dim
        return system.n_inputs, 1, system.state.nq, m, dim, (system.n_errors + m + dim) ** 2

    def observe(
        self, state: DisturbanceEstimate, predicted: Callable[[np.ndarray], np.ndarray],
        seconds: float, x: np.ndarray,
    ) -> DisturbanceEstimate:  # fmt: skip
        """Correct an estimate by a state, and by those that inputs (k, n_inputs) predict for it."""
        system, count, shift = self.system, len(self._explaining), SEARCH.difference
        shifts = np.zeros((1 + 2 * count, system.n_inputs))
        shifts[1:, self._explaining] = shift * np.vstack([np.eye(count), -np.eye(count)])
        guesses = predicted(state.inputs + shifts)
        guess, apart = guesses[0], system.error(guesses[1:], guesses[0])
        G = (apart[:count] - apart[count:]).T / (2 * shift)
        missed = system.error(x, guess)
        if not (np.isfinite(missed).all() and np.isfinite(G).all()):
            return state
        asked = np.linalg.lstsq(G, missed, rcond=self.unobservable)[0][: len(self.index)]
        lower, upper = (limit[self.index] for limit in system.input_bounds)
        gain = 1.0 - np.exp(-seconds / self.settling)
        inputs = state.inputs.copy()
        inputs[self.index] = np.clip(inputs[self.index] + gain * asked, lower, upper)
        return state._replace(inputs=inputs)

    def target(
        self, state: DisturbanceEstimate, samples: ReferenceSamples, t: np.ndarray, p: np.ndarray
    ) -> tuple[DisturbanceEstimate, ReferenceSamples]:
        """What to follow at the nodes t of a plan instead of a reference, so that it is met.

        The samples that are returned have the disturbance among their inputs. A constant reference
        moves to the steady state; along one that moves the inputs compensate for as much as they
        can.
        """
        if not state.inputs.any():
            return state, samples
        count = len(samples.x)
        is_still = (samples.x == samples.x[0]).all() and (samples.u == samples.u[0]).all()
        if is_still:
            state, x, u = self._steady(state, samples.x[0], samples.u[0], float(t[0]), p)
            return state, ReferenceSamples(np.tile(x, (count, 1)), np.tile(u, (count, 1)))
        u, controls = samples.u.copy(), self.system.input_index("control")
        wanted = self._rate(t, samples.x, u, p).rate
        u += state.inputs
        for _ in range(2):
            here = self._rate(t, samples.x, u, p)
            inverse = np.linalg.pinv(here.by_u[..., controls], rcond=SEARCH.rank)
            u[:, controls] += (inverse @ (wanted - here.rate)[..., None])[..., 0]
        return state, ReferenceSamples(samples.x, np.clip(u, *self.system.input_bounds))

    def _steady(
        self, state: DisturbanceEstimate, x_ref: np.ndarray, u_ref: np.ndarray, t: float,
        p: np.ndarray,
    ) -> tuple[DisturbanceEstimate, np.ndarray, np.ndarray]:  # fmt: skip
        """State and inputs with the rate of the reference, next to it.

        Begins at the last one, with its inverse as secants left it: the estimate moves little from
        call to call.
        """
        system, n = self.system, self.system.n_errors
        controls = system.input_index("control")
        wanted = self._rate(t, x_ref, u_ref, p).rate
        scale, own = np.abs(self.Q).max() or 1.0, n + len(controls)
        H = np.zeros((own, own))
        H[:n, :n] = self.Q + SEARCH.error * scale * np.eye(n)
        H[n:, n:] = SEARCH.effort * scale * np.eye(len(controls))

        def missed(x: np.ndarray, u: np.ndarray, multipliers: np.ndarray) -> tuple[np.ndarray, ...]:
            here = self._rate(t, x, u, p)
            J = np.hstack([here.by_x, here.by_u[:, controls]])
            off = np.concatenate([system.error(x, x_ref), (u - u_ref)[controls]])
            return np.concatenate([H @ off + J.T @ multipliers, here.rate - wanted]), J

        u = u_ref + state.inputs
        x, multipliers, inverse = x_ref, np.zeros(len(wanted)), None
        if state.target is not None:
            x, held, multipliers, inverse = state.target
            u[controls] = held
        state, shortest = state._replace(target=None), np.inf
        left, J = missed(x, u, multipliers)
        for _ in range(SEARCH.steps):
            if not (np.isfinite(left).all() and np.isfinite(J).all()):
                return state, x_ref, u_ref + state.inputs
            if inverse is None:
                matrix = np.block([[H, J.T], [J, np.zeros((len(J), len(J)))]])
                inverse = np.linalg.pinv(matrix, rcond=SEARCH.rounded, hermitian=True)
            step = -inverse @ left
            x, u = system.retract(x, step[:n], p), u.copy()
            u[controls] += step[n:own]
            multipliers = multipliers + step[own:]
            size = np.abs(step[:own]).max(initial=0.0)
            if size < SEARCH.found * (1.0 + np.abs(u).max(initial=0.0)):
                break
            before, (left, J) = left, missed(x, u, multipliers)
            if size > shortest:  # it is no inverse any more
                shortest, inverse = np.inf, None
                continue
            turned, shortest = inverse @ (left - before), size
            along = step @ inverse
            if abs(step @ turned) > SEARCH.same * (step @ step):
                inverse = inverse + np.outer(step - turned, along) / (step @ turned)
        if inverse is not None:
            state = state._replace(target=(x, u[controls], multipliers, inverse))
        return state, x, np.clip(u, *system.input_bounds)


def _places(
    system: System, names: str | Iterable[str], role: Literal["control", "disturbance"]
) -> list[int]:
    """Which inputs of a role names mean."""
    listed = [names] if isinstance(names, str) else list(names)
    own = [system.input_names[i] for i in system.input_index(role)]
    known: dict[str, list[str]] = {name: [name] for name in own}
    for name in own:
        if "." in name:
            known.setdefault(name.rpartition(".")[0], []).append(name)
    found: list[int] = []
    for name in listed:
        if name not in known:
            if not own:
                raise UnknownNameError(
                    f"unknown {role} input {name!r}: {system.name} declares none, as in "
                    "Input('push', 'N', role='disturbance'); trees take system(wrenches=…)"
                )
            raise UnknownNameError(unknown_name(f"{role} input", name, known))
        found += [i for i in map(system.input_names.index, known[name]) if i not in found]
    return found


@memoized
def _rate_slopes(system: System) -> ModelFunction:
    """``(t, x, u, p) → rate, by_x, by_u``: f, by error coordinates, by inputs."""
    t, x, u, p = symbols_of(system)
    rate = system.f(t, x, u, p)
    lift = system.state.rate_matrix(x) @ system.error_basis(x, p)
    results = {"rate": rate, "by_x": ca.jacobian(rate, x) @ lift, "by_u": ca.jacobian(rate, u)}
    function = ca.Function(
        "rate_slopes", [t, x, u, p], [ca.densify(value) for value in results.values()],
        ["t", "x", "u", "p"], [*results],
    )  # fmt: skip
    n = system.state.dim
    shapes: dict[str, tuple[int, ...]] = {
        "t": (), "by_x": (n, system.n_errors), "by_u": (n, system.n_inputs),
    }  # fmt: skip
    return ModelFunction(function, shapes=shapes)
