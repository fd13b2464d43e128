"""SteadyDisturbance: what pushes a plant besides its controls, found from what a model predicts."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, prepare
from lgcontrol.codegen._internal import UnknownNameError, memoized, unknown_name
from lgcontrol.integrators import Method
from lgcontrol.optimal import Settings
from lgcontrol.optimal._internal import ReferenceSamples
from lgcontrol.systems import System
from lgcontrol.systems._internal import symbols_of

Piece = tuple[float, np.ndarray, float]
"""Start in s, inputs and seconds of a stretch with constant inputs."""


class SteadyDisturbance:
    """Constant inputs of role "disturbance", estimated from the prediction error of full states.

    Where the model was at ``x₀`` with the estimate d and predicts ``x̂``, a measured state x says
    ``error(x, x̂) ≈ G (d* − d)`` with the derivative G of the prediction, by differences; a sample
    of Δt moves the estimate by the share ``1 − exp(−Δt/T)`` of what that asks for. The target is
    the steady state next to the reference in the presence of d: its rate is that of the reference,
    its error costs least, so that a reference position is met while the attitude tilts.

    Parameters
    ----------
    system : System
    names : str or iterable of str
        Of disturbance inputs, or what comes before the dot in several.
    settling : float
        Time constant T of the estimate, s.
    method, substeps
        Of the model's steps.
    Q : ndarray, shape (n, n)
        Weight on errors of the target.
    settings : Settings
        Of the differences and of the search for a target.

    Attributes
    ----------
    estimate : ndarray, shape (n_inputs,)
        Zero for all other inputs.

    References
    ----------
    Pannocchia and Rawlings, Disturbance models for offset-free model-predictive control, AIChE
    Journal 49(2), 2003: the conditions under which nothing is left; with full states one input for
    each row of the rates that errs.
    """

    def __init__(
        self,
        system: System,
        names: str | Iterable[str],
        settling: float,
        *,
        method: str | Method,
        substeps: int,
        Q: np.ndarray,
        settings: Settings,
    ) -> None:
        self.settings = settings
        self.system, self.settling, self.Q = system, settling, Q
        self.index = np.array(_places(system, names))
        self.estimate = np.zeros(system.n_inputs)
        self._rest: tuple[np.ndarray, ...] | None = None  # the last target, to go on from
        self._step = system.step(method, substeps)
        self._rate = _rate_slopes(system)

    def fresh(self) -> SteadyDisturbance:
        """A copy that knows nothing yet."""
        other = copy.copy(self)
        other.reset()
        return other

    def prepare(self) -> None:
        """Compile what a loop calls."""
        prepare(self._step, calls=1000)
        prepare(self._rate, calls=1000)

    @property
    def by_name(self) -> dict[str, float]:
        """The estimate."""
        names = self.system.input_names
        return {names[i]: float(self.estimate[i]) for i in self.index}

    def reset(self) -> None:
        """Nothing is known."""
        self.estimate, self._rest = np.zeros(self.system.n_inputs), None

    def numbers(self) -> np.ndarray:
        """The estimate, and where the search for a target goes on; NaN where it begins anew."""
        system, m = self.system, len(self.system.input_index("control"))
        k, dim = system.n_errors + m, system.state.dim
        sizes = system.state.nq, m, dim, (k + dim) ** 2
        rest = [np.full(size, np.nan) for size in sizes] if self._rest is None else self._rest
        return np.concatenate([self.estimate, *(np.ravel(part) for part in rest)])

    def take(self, numbers: np.ndarray) -> None:
        """Go on from `numbers`."""
        system, m = self.system, len(self.system.input_index("control"))
        k, dim = system.n_errors + m, system.state.dim
        ends = np.cumsum([system.n_inputs, system.state.nq, m, dim])
        estimate, *rest, inverse = np.split(numbers.copy(), ends)
        self.estimate, self._rest = estimate, None
        if np.isfinite(inverse).all():
            self._rest = (*rest, inverse.reshape(k + dim, k + dim))

    def observe(self, x0: np.ndarray, pieces: list[Piece], x: np.ndarray, p: np.ndarray) -> None:
        """Correct the estimate by the state x that follows on x0 after some inputs."""
        system, count, seconds = self.system, len(self.index), 0.0
        shifts = np.zeros((1 + 2 * count, system.n_inputs))
        shift = self.settings.bias_difference
        shifts[1:, self.index] = shift * np.vstack([np.eye(count), -np.eye(count)])
        guesses = np.tile(x0, (len(shifts), 1))
        for start, u, length in pieces:
            guesses = self._step(start, guesses, u + self.estimate + shifts, p, length)
            seconds += length
        guess, apart = guesses[0], system.error(guesses[1:], guesses[0])
        G = (apart[:count] - apart[count:]).T / (2 * shift)
        missed = system.error(x, guess)
        if not (np.isfinite(missed).all() and np.isfinite(G).all()):
            return
        asked = np.linalg.lstsq(G, missed, rcond=self.settings.bias_unobservable)[0]
        lower, upper = (limit[self.index] for limit in system.input_bounds)
        share = 1.0 - np.exp(-seconds / self.settling)
        moved = self.estimate[self.index] + share * asked
        self.estimate[self.index] = np.clip(moved, lower, upper)

    def target(self, samples: ReferenceSamples, t: np.ndarray, p: np.ndarray) -> ReferenceSamples:
        """What to follow instead of a reference, so that the reference is met.

        Parameters
        ----------
        samples : ReferenceSamples
            At the nodes of a plan.
        t : ndarray, shape (N + 1,)
        p : ndarray
            The system's parameters.

        Returns
        -------
        ReferenceSamples
            With the disturbance among its inputs. One that stays is moved to where the system is
            at rest; of one that moves the inputs make up for what they can.
        """
        if not self.estimate.any():
            return samples
        count = len(samples.x)
        is_still = (samples.x == samples.x[0]).all() and (samples.u == samples.u[0]).all()
        if is_still:
            x, u = self._steady(samples.x[0], samples.u[0], float(t[0]), p)
            return ReferenceSamples(np.tile(x, (count, 1)), np.tile(u, (count, 1)))
        u, controls = samples.u.copy(), self.system.input_index("control")
        wanted = self._rate(t, samples.x, u, p).rate
        u += self.estimate
        for _ in range(2):
            here = self._rate(t, samples.x, u, p)
            inverse = np.linalg.pinv(here.by_u[..., controls], rcond=self.settings.rank)
            u[:, controls] += (inverse @ (wanted - here.rate)[..., None])[..., 0]
        return ReferenceSamples(samples.x, np.clip(u, *self.system.input_bounds))

    def _steady(
        self, x_ref: np.ndarray, u_ref: np.ndarray, t: float, p: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """State and inputs with the rate of the reference, next to it.

        Begins at the last one, with its inverse as secants left it: the estimate moves little from
        call to call.
        """
        system, n, settings = self.system, self.system.n_errors, self.settings
        controls = system.input_index("control")
        wanted = self._rate(t, x_ref, u_ref, p).rate
        scale, own = np.abs(self.Q).max() or 1.0, n + len(controls)
        H = np.zeros((own, own))
        H[:n, :n] = self.Q + settings.target_error * scale * np.eye(n)
        H[n:, n:] = settings.target_effort * scale * np.eye(len(controls))

        def missed(x: np.ndarray, u: np.ndarray, prices: np.ndarray) -> tuple[np.ndarray, ...]:
            here = self._rate(t, x, u, p)
            J = np.hstack([here.by_x, here.by_u[:, controls]])
            off = np.concatenate([system.error(x, x_ref), (u - u_ref)[controls]])
            return np.concatenate([H @ off + J.T @ prices, here.rate - wanted]), J

        u = u_ref + self.estimate
        x, prices, inverse = x_ref, np.zeros(len(wanted)), None
        if self._rest is not None:
            x, held, prices, inverse = self._rest
            u[controls] = held
        self._rest, shortest = None, np.inf
        left, J = missed(x, u, prices)
        for _ in range(settings.target_steps):
            if not (np.isfinite(left).all() and np.isfinite(J).all()):
                return x_ref, u_ref + self.estimate
            if inverse is None:
                matrix = np.block([[H, J.T], [J, np.zeros((len(J), len(J)))]])
                inverse = np.linalg.pinv(matrix, rcond=settings.rounding, hermitian=True)
            step = -inverse @ left
            x, u = system.retract(x, step[:n], p), u.copy()
            u[controls] += step[n:own]
            prices = prices + step[own:]
            size = np.abs(step[:own]).max(initial=0.0)
            if size < settings.target_found * (1.0 + np.abs(u).max(initial=0.0)):
                break
            before, (left, J) = left, missed(x, u, prices)
            if size > shortest:  # it is no inverse any more
                shortest, inverse = np.inf, None
                continue
            turned, shortest = inverse @ (left - before), size
            along = step @ inverse
            if abs(step @ turned) > settings.target_same * (step @ step):
                inverse = inverse + np.outer(step - turned, along) / (step @ turned)
        if inverse is not None:
            self._rest = x, u[controls], prices, inverse
        return x, np.clip(u, *system.input_bounds)


def _places(system: System, names: str | Iterable[str]) -> list[int]:
    """Which inputs names mean."""
    listed = [names] if isinstance(names, str) else list(names)
    own = [system.input_names[i] for i in system.input_index("disturbance")]
    known: dict[str, list[str]] = {name: [name] for name in own}
    for name in own:
        if "." in name:
            known.setdefault(name.rpartition(".")[0], []).append(name)
    found: list[int] = []
    for name in listed:
        if name not in known:
            if not own:
                raise UnknownNameError(
                    f"unknown disturbance input {name!r}: {system.name} declares none, as in "
                    "Input('push', 'N', role='disturbance'); trees take system(wrenches=…)"
                )
            raise UnknownNameError(unknown_name("disturbance input", name, known))
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
