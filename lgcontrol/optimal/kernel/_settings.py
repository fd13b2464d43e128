"""NewtonSettings: the tuned numbers of the planning kernel, handed to it as data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import isfinite


@dataclass(frozen=True)
class NewtonSettings:
    """Numbers of the interior point; those without another source are of [1]_ or of IPOPT's code.

    The cost is scaled so that its gradient at the first iterate is at most `gradient_most`; numbers
    that have the unit of a cost or of a multiplier belong to the scaled cost.

    Attributes
    ----------
    mu_first : float
        Barrier parameter of the first iterations. IPOPT's 0.1 takes 9 % more iterations.
    mu_last : float
        Last barrier parameter, as a share of the tolerance. IPOPT's 0.1 saves 1 % of iterations and
        leaves 1e-4 of the optimum where many constraints are active.
    mu_factor, mu_power : float
        The barrier parameter falls to the smaller of ``mu_factor μ`` and ``μ ** mu_power``.
    mu_error : float
        It falls where the error of the barrier problem is at most ``mu_error μ``.
    fast_step, fast_error : float
        μ falls as well after an unregularized step of at least `fast_step` that reduces the error
        of the barrier problem to the share `fast_error`. Own: 8 % fewer iterations; of 240 plans 11
        end at a dearer optimum and one at a cheaper one.
    boundary : float
        Least share τ of the distance to a bound that a step may use; ``1 − μ`` if that is larger.
    push : float
        Least distance of the first iterate from bounds, relative to the bound or to the range.
    relax : float
        Bounds are relaxed by this, relative to ``max(1, |bound|)``.
    multiplier_first : float
        Multipliers of bounds at the first iterate.
    multiplier_most : float
        Least-squares multipliers that are larger are replaced by zero, and multipliers of bounds
        after the elastic problem by `multiplier_first`.
    gradient_most, scale_least : float
        Largest gradient of the scaled cost and of scaled constraints at the first iterate, and the
        least scale.
    error_scale : float
        Mean multiplier up to which errors are not scaled down (s_max).
    sigma_most : float
        Largest ratio of a multiplier of a bound to ``μ / distance``, and of its inverse (κ_Σ).
    filter_theta, filter_phi : float
        Margins of the filter (γ_θ, γ_φ).
    switch_theta, switch_phi : float
        The switching condition (s_θ, s_φ; δ is 1).
    armijo : float
        Sufficient decrease of the barrier function (η_φ).
    theta_most, theta_least : float
        Largest violation that the filter takes, and the one below which the barrier function must
        decrease; both relative to ``max(1, θ)`` of the first iterate.
    step_least : float
        Share of the step length below which restoration begins (γ_α).
    rollout : float
        If bounds allow less than this share of a step, a rollout of the step under its feedback,
        with clipped controls, is tried before the line search. It is taken if the violation does
        not grow and the barrier function falls as for `armijo`. Own:
        without it 5 of 240 solves fewer converge, in 4 % more iterations.
    regularization_first, regularization_least, regularization_most : float
        First regularization δ_w of the Hessian, the least and the largest.
    regularization_grow_first, regularization_grow, regularization_fall : float
        Factors between regularizations.
    compliance : float
        Dual regularization δ_c of equalities. Own: sweeps with IPOPT's 1e-8 lose the digits of the
        reduced Hessian, which is then regularized; least time takes 20 % more iterations.
    refinements : float
        Most sweeps that refine the multipliers of equalities.
    refined : float
        What they leave of an equality, relative to its violation, at most.
    penalty_first, penalty_grow, penalty_most : float
        Penalty ρ on violations of the elastic problem, its growth and the largest one. Own: from
        IPOPT's 1e3 of restoration 4 of 240 solves fewer converge.
    elastic_decrease : float
        Share of the violation at which the elastic problem may be left.
    certificate : float
        Gradient of the cost, relative to the penalty, up to which a stationary point of the
        elastic problem certifies infeasibility. Own.
    tiny_most : float
        Reductions of μ after failed line searches before the solve ends as stalled.

    acceptable : float
        Residual up to which a result is usable. Own.
    jump, jump_fading, jump_noise : float
        A plan begins anew where its cost rises by the factor `jump` over the recent one, which
        falls by `jump_fading` in a horizon; the share `jump_noise` of the largest cost is noise.
        Own.
    regulator_guesses, regulator_caution : float
        Regulators whose motions are tried as starts, and the factor between their weights on
        controls. Own: with one regulator 7 of 12 starts of problem A converge.
    policy_period : float
        Longest time in s between questions to a policy. Own.
    defect_closed : float
        Defect up to which a start is a motion. Own.
    same_node, same_node_roundings : float
        Difference of times, in steps, and in roundings of a time, up to which nodes are the same.
        Own.

    real_time_mu_last : float
        Least barrier parameter of real-time steps. It follows what the first step of a call is to
        gain, shared by the terms of the barrier: it rises to that at once where it is less by more
        than `mu_error`, and falls to that in the next call. Where a call's last step gained
        something else than predicted, it falls to the square of how far off the plan is, relative
        to the derivatives of the cost. Own.
    real_time_mu, real_time_rise : float
        After a step that was cut short it is at least `real_time_mu` and rises by this factor,
        until all terms of the barrier weigh as much as the cost. Own: without the rise loops of
        the tight cart-pole violate 0.74 for 0.02, those of the slew cost 5 times as much.
    real_time_sigma : float
        As `sigma_most`, of real-time steps. Own.
    real_time_penalty : float
        Penalty on hard constraints in real-time steps, of the scaled cost. Own: with 1e4, steps
        after a disturbance are cut short by constraints that cannot be kept.
    real_time_far : float
        How far off a plan is for more steps in a call. Own.
    real_time_gain : float
        More steps are not taken where the gain of a step is that predicted, to this share. Own:
        without it problem B takes 4.1 steps a call for 2.4, the circle 4.6 for 2.2.
    real_time_short : float
        Step length below which more steps are taken. Own: without it the soft twist costs 3 %
        more at the median, and up to 35 %.
    real_time_more : float
        Most further steps of a call; as many again where something jumped. Own.
    real_time_dearer : float
        An earlier iterate that keeps all hard constraints is the answer where the last one does
        not, if it costs at most this share more than the plan at the start of the call. Own.

    Notes
    -----
    Counts and shares are those of ``python -m tests.benchmarks.planning --rules``.

    References
    ----------
    .. [1] A. Wächter and L. Biegler, On the implementation of an interior-point filter line-search
       algorithm for large-scale nonlinear programming, Mathematical Programming 106, 2006.
    """

    mu_first: float = 1.0
    mu_last: float = 0.02
    mu_factor: float = 0.2
    mu_power: float = 1.5
    mu_error: float = 10.0
    fast_step: float = 0.9
    fast_error: float = 0.5
    boundary: float = 0.99
    push: float = 1e-2
    relax: float = 1e-8
    multiplier_first: float = 1.0
    multiplier_most: float = 1e3
    gradient_most: float = 100.0
    scale_least: float = 1e-8
    error_scale: float = 100.0
    sigma_most: float = 1e10
    filter_theta: float = 1e-5
    filter_phi: float = 1e-8
    switch_theta: float = 1.1
    switch_phi: float = 2.3
    armijo: float = 1e-8
    theta_most: float = 1e4
    theta_least: float = 1e-4
    step_least: float = 0.05
    rollout: float = 0.2
    regularization_first: float = 1e-4
    regularization_least: float = 1e-20
    regularization_most: float = 1e10
    regularization_grow_first: float = 100.0
    regularization_grow: float = 8.0
    regularization_fall: float = 1 / 3
    compliance: float = 1e-4
    refinements: float = 10
    refined: float = 1e-9
    penalty_first: float = 1e4
    penalty_grow: float = 100.0
    penalty_most: float = 1e7
    elastic_decrease: float = 0.9
    certificate: float = 1e-2
    tiny_most: float = 10
    acceptable: float = 1e-4
    jump: float = 2.0
    jump_fading: float = 7.4
    jump_noise: float = 1e-2
    regulator_guesses: float = 3
    regulator_caution: float = 100.0
    policy_period: float = 0.05
    defect_closed: float = 1e-6
    same_node: float = 1e-6
    same_node_roundings: float = 4.0
    real_time_mu: float = 3e-4
    real_time_mu_last: float = 1e-8
    real_time_rise: float = 3.0
    real_time_penalty: float = 1e2
    real_time_gain: float = 0.1
    real_time_far: float = 0.1
    real_time_short: float = 0.4
    real_time_more: float = 4
    real_time_dearer: float = 0.1
    real_time_sigma: float = 1e2

    def __post_init__(self) -> None:
        """Refuse numbers that no kernel can use."""
        for field in fields(self):
            value = getattr(self, field.name)
            if not (isfinite(value) and value >= 0):
                raise ValueError(
                    f"setting {field.name} is {value!r}, expected a finite number, at least 0: "
                    f"leave it out for {field.default}"
                )
