/* The line search: trials at shares of the step, and rollouts of it.
 *
 * A rollout takes the step's controls and its feedback: u = u + alpha k + K (x - x_plan), clipped at the limits,
 * x+ = f(x, u). It has no defects. The filter judges trials, their shares fall by half. */
LG_OFTEN

/* Penalties on what the trial's rows at a node exceed. */
static double penalties(const lg_model *m, const lg_task *q, const lg_state *s, int64_t k)
{
  const double *rows = s->t_rows + k * m->nr;
  double sum = 0;
  for (int64_t j = 0; j < m->ns; j++) {
    const double e = over(m, s, rows, j);
    if (m->active[k * (m->ns + m->ne) + j] == 0 || !(e > 0)) continue;
    sum += is_soft(m, q, j) ? penalty_on(m, q, k, j, e) : s->priced / s->scale * (e + e * e / 2);
  }
  return sum;
}

/* The last input of a trial that is moved on: the cheapest of holding the one before, that of the
 * reference, and that with the last gains' feedback on the error. */
static void extend(const lg_model *m, lg_task *q, lg_state *s, double tau)
{
  const int64_t N = q->horizon, k = N - 1, nx = m->nx, nv = m->nv, xp = padded(nx);
  double best = INFINITY, e[nx + LG_W], given[m->nu], kept[m->nu], *u = s->trial.u + k * m->nu;
  const double *u_ref = q->u_ref + k * m->nu, *x = s->trial.x;
  const double *last[] = {LG_END(x)};
  double *const found[] = {s->t_cost + N, s->t_rows + N * m->nr};
  errors(m, 1, x + k * m->nq, q->x_ref + k * m->nq, e, s->scratch);
  copy(given, u, m->nu);
  for (int number = 0; number < 3; number++) {
    copy(u, given, m->nu);
    for (int64_t j = 0; j < nv && number > 0; j++) {
      const double v = given[m->controls[j]];
      double own = u_ref[m->controls[j]];
      if (number == 2) own += dot((int)nx, s->K + (k * nv + j) * xp, e);
      u[m->controls[j]] = clip(own, v - tau * (v - s->lower[j]), v + tau * (s->upper[j] - v));
    }
    roll(m, q, s, k);
    costs(m, q, s, k, 1);
    call(&m->end_values, 1, last, found, s->scratch);
    const double cost = s->t_cost[k] + s->t_cost[N] + penalties(m, q, s, k) + penalties(m, q, s, N);
    if (number > 0 && !(cost < best)) continue;
    best = cost;
    copy(kept, u, m->nu);
  }
  copy(u, kept, m->nu);
}

/* How a rollout follows its plan: without gains, under them, with the step's changes of controls. */
enum { LG_ALONE, LG_FED, LG_STEPPED };

/* A rollout into the trial, from x0 where that is given; controls are clipped at the boundary. 0 where
 * it is not finite. Without `f` nobody asks for cost and rows. */
static int roll_out(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, double tau,
                    int how, const double *x0, double *f)
{
  const int stepped = how == LG_STEPPED;
  const int64_t N = q->horizon, M = N + 1, nx = m->nx, nv = m->nv, xp = padded(nx);
  const int64_t na = m->ns + m->ne;
  double away[nx + LG_W];
  lg_v fed[nv / LG_W + 1];
  if (stepped && m->nf > 0) retract(m, q, 1, s->now.x, s->eps, s->trial.x, s->scratch);
  else copy(s->trial.x, x0 ? x0 : s->now.x, m->nq);
  copy(s->trial.u, s->now.u, N * m->nu);
  for (int64_t k = 0; k < N; k++) {
    const int64_t at = k * m->nq;
    double *u = s->trial.u + k * m->nu;
    if (how != LG_ALONE) {
      errors(m, 1, s->trial.x + at, s->now.x + at, away, s->scratch);
      dots((int)nv, (int)nx, s->K + k * nv * xp, xp, away, fed);
    }
    for (int64_t j = 0; j < nv; j++) {
      const double v = u[m->controls[j]];
      double own = how == LG_ALONE ? v : v + ((const double *)fed)[j];
      if (stepped) own += s->k[k * nv + j];
      const double low = v - tau * (v - s->lower[j]), high = v + tau * (s->upper[j] - v);
      u[m->controls[j]] = clip(own, low, high);
    }
    if (s->extends && k == N - 1) extend(m, q, s, tau);
    roll(m, q, s, k);
    if (!all_finite(s->trial.x + (k + 1) * m->nq, m->nq)) return 0;
  }
  memset(s->t_gap, 0, (size_t)(N * nx) * sizeof(double));
  if (f) {
    costs(m, q, s, 0, N);
    *f = total(m, q, s);
    if (!isfinite(*f) || !all_finite(s->t_rows, M * m->nr)) return 0;
  }
  for (int64_t i = 0; i < M * na; i++)
    s->trial.s[i] = stepped ? larger(s->now.s[i] + s->ds[i], (1 - tau) * s->now.s[i]) : s->now.s[i];
  fit_slacks(m, q, s, o, &s->trial, s->t_rows, 0);
  rooms(m, q, s, s->trial.u, s->t_below, s->t_above);
  return 1;
}

/* The first state of a plan: x0, but for what is free of it, which the plan has. */
static void first_state(const lg_model *m, lg_task *q, lg_state *s, double *x)
{
  double away[m->nx], move_[m->nx + LG_W], to[m->nq];
  if (m->nf == 0) {
    copy(x, q->x0, m->nq);
    return;
  }
  errors(m, 1, x, q->x0, away, s->scratch);
  for (int64_t i = 0; i < m->nx; i++) move_[i] = 0;
  for (int64_t i = 0; i < m->nf; i++) move_[m->free[i]] = away[m->free[i]];
  retract(m, q, 1, q->x0, move_, to, s->scratch);
  copy(x, to, m->nq);
}

/* Whether the trial, weighed, costs at most what violations th are worth by the step's multipliers. */
static int is_affordable(const lg_model *m, const lg_task *q, const lg_state *s, double th, double phi_)
{
  double price = 0;
  for (int64_t i = 0; i < q->horizon * m->nx; i++)
    price = larger(price, fabs(s->now.lam[i] + s->d_lam[i]) * s->size[i % m->nx]);
  for (int64_t i = 0; i < (q->horizon + 1) * m->ne; i++)
    price = larger(price, fabs(s->now.nu[i] + s->d_nu[i]));
  return s->t_phi - phi_ <= price * th;
}

/* Whether a trial without a search, weighed, is taken. */
static int is_worth(lg_state *s, const lg_settings *o, const double ref[3])
{
  const int falls = s->t_phi - ref[1] - rounding_of(ref[1]) <= o->armijo * ref[2];
  return falls && s->t_theta <= larger(ref[0], s->mem->filter.least) && judge(s, o, 1, ref);
}

/* The line search; the step length that was taken, or 0. Defects of a step are about its square: one
 * that leaves none that count is not rolled out. */
static double search(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, double tau,
                     int of_solve)
{
  lg_filter *filter = &s->mem->filter;
  const double th = theta(m, q, s);
  const double ref[3] = {th, phi(m, q, s, &s->now, s->below, s->above, s->f), slope(m, q, s)};
  double most, dual, least = o->filter_theta;
  longest(m, q, s, tau, &most, &dual);
  /* Steps that the filter cuts again and again lead nowhere, as along rows of steep curvature: a whole one
   * is tried, and a filter begins there. The iterate and its filter are kept, for if it does not pay. */
  const int64_t creeps = s->creeps;
  s->creeps = 0;
  const int creeping = of_solve && !s->mem->elastic && most >= o->creeping;
  if (creeping && !s->tried && creeps >= (int64_t)LG_CREEPS << s->returns) {
    weigh(m, q, s, move(m, q, s, most));
    if (isfinite(s->t_phi) && s->t_theta <= filter->most) {
      s->tried = 1, s->mem->outer = *filter;
      augment(&s->mem->outer, th, ref[1]);
      copy(s->saved_memory, s->now.x, s->plan);
      begin_filter(filter, o, s->t_theta);
      accept(m, q, s, o, most, dual);
      return most;
    }
  }
  /* Nothing counts as violated, and yet the step does not descend: the rounding of violations times
   * their multipliers is more than what there is to be gained. Errors tell, then. */
  const double none = LG_UNVIOLATED * q->tolerance;
  const int rounding = of_solve && most == 1 && s->mem->dw == 0 && th <= none && ref[2] >= 0;
  const double error = rounding ? error_of(m, q, s, o, s->mu) : 0;
  if (ref[2] < 0) {
    least = smaller(least, o->armijo * th / -ref[2]);
    if (th <= filter->least)
      least = smaller(least, th / pow(-ref[2], o->switch_phi));
  }
  /* A shorter step is lost in rounding; without violation the published least length is zero. */
  least = larger(least * o->step_least, DBL_EPSILON);
  double f;
  const int rolls_first = s->linear || most < o->rollout;
  const double moved_by = widest_of(s->eps, q->horizon + 1, m->nx, s->rate, 0);
  if (s->linear && most == 1 && moved_by * moved_by <= filter->least) {
    weigh(m, q, s, move(m, q, s, 1));
    if (is_worth(s, o, ref)) {
      accept(m, q, s, o, 1, dual);
      return 1;
    }
  }
  if (rolls_first && roll_out(m, q, s, o, tau, LG_STEPPED, 0, &f)) {
    weigh(m, q, s, f);
    if (is_worth(s, o, ref)) {
      accept(m, q, s, o, 1, dual);
      return 1;
    }
  }
  int first = 1;
  for (double alpha = most; alpha >= least || first; alpha /= 2) {
    weigh(m, q, s, move(m, q, s, alpha));
    if (judge(s, o, alpha, ref)) {
      accept(m, q, s, o, alpha, dual);
      s->creeps = creeping && alpha < o->creeping * most ? creeps + 1 : 0;
      return alpha;
    }
    if (first && rounding) {
      const int stays = s->t_theta <= none;
      accept(m, q, s, o, 1, dual);
      expand(m, q, s), residuals(m, q, s, o);
      if (error_of(m, q, s, o, s->mu) < error) return 1;
      take_trial(s);
      expand(m, q, s), residuals(m, q, s, o);
      if (stays) return 0;
    }
    /* Defects of curved dynamics shorten the step that meets equalities; a rollout of it has none.
     * Far from the solution it may cost a thousand times as much, from where no search gets back. */
    if (first && !rolls_first && m->ne > 0 && s->mem->dw == 0
        && !(s->t_theta < th) && roll_out(m, q, s, o, tau, LG_STEPPED, 0, &f)) {
      weigh(m, q, s, f);
      if (is_affordable(m, q, s, th, ref[1]) && judge(s, o, 1, ref)) {
        accept(m, q, s, o, 1, dual);
        return 1;
      }
    }
    first = 0;
  }
  return 0;
}

LG_SELDOM
