/* Steps of a loop: the last plan moves on in time, is rolled out from the measured state, and improved.
 *
 * Multipliers of the dynamics come from an adjoint sweep, lam_k = g_k + A' lam_k+1. Those of bounds and rows
 * are kept. Slacks move into [mu / (r z), r mu / z], r = real_time_sigma. Each step is one of Newton (real-time
 * iteration, Diehl, Bock and Schloeder 2005). */
/* Blocks of some numbers move on by one; the last one stays. */
static void move_on(double *v, int64_t blocks, int64_t size)
{
  if (blocks > 1) memmove(v, v + size, (size_t)((blocks - 1) * size) * sizeof(double));
}

static void shift(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon, M = N + 1, na = m->ns + m->ne;
  lg_point *o = &s->now;
  move_on(o->s, M, na), move_on(o->z, M, na), move_on(o->e, M, na), move_on(o->y, M, na);
  move_on(o->zl, N, m->nv), move_on(o->zu, N, m->nv);
  move_on(o->lam, N, m->nx), move_on(o->nu, M, m->ne);
  if (!m->blocks) move_on(s->K, N, m->nv * padded(m->nx));
}

/* Whether all steps have one length. */
static int has_equal_steps(const lg_task *q)
{
  for (int64_t k = 1; k < q->horizon; k++)
    if (q->steps[k] != q->steps[0]) return 0;
  return 1;
}

/* The step in which a time after the start of the plan is, from one before it on, with its begin. */
static int64_t step_at(const lg_task *q, double t, int64_t k, double *begin)
{
  const double slack = LG_SAME_NODE * q->dt;
  while (k < q->horizon - 1 && *begin + q->steps[k] <= t + slack) *begin += q->steps[k], k++;
  return k;
}

static void take_from(double *v, int64_t k, int64_t from, int64_t size)
{
  if (from != k) copy(v + k * size, v + from * size, size);
}

/* The same on steps of different lengths: states between nodes, controls of the steps in which the
 * middles of the new ones are, multipliers of the nearest nodes and of these steps. */
static void later_on_grid(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon, na = m->ns + m->ne;
  const double passed = clip(q->t[0] - q->start, 0, (double)N * q->dt);
  double begin = 0, middle = 0, at = 0;
  int64_t i = 0, j = 0;
  lg_point *o = &s->now;
  for (int64_t k = 0; k <= N; k++) {
    i = step_at(q, at + passed, i, &begin);
    const double share = clip((at + passed - begin) / q->steps[i], 0, 1), *x = o->x + i * m->nq;
    const double *in[] = {x, x + m->nq, &share};
    double *const out[] = {s->trial.x + k * m->nq};
    call(&m->between, 1, in, out, s->scratch);
    const int64_t node = i + ((at + passed - begin) / q->steps[i] >= 0.5);
    take_from(o->s, k, node, na), take_from(o->z, k, node, na);
    take_from(o->e, k, node, na), take_from(o->y, k, node, na), take_from(o->nu, k, node, m->ne);
    if (k == N) break;
    j = step_at(q, at + passed + q->steps[k] / 2, j, &middle);
    take_from(o->u, k, j, m->nu), take_from(o->zl, k, j, m->nv), take_from(o->zu, k, j, m->nv);
    take_from(o->lam, k, j, m->nx), take_from(s->K, k, m->blocks ? k : j, m->nv * padded(m->nx));
    at += q->steps[k];
  }
  copy(o->x, s->trial.x, (N + 1) * m->nq);
  s->extends = 0;
}

/* Inputs in blocks after a plan moved on: each block has the mean of what the plan did in its steps.
 * The last coordinates of a state are the inputs of the step before, and rates lead to those of the
 * next one where they may change. Blocks stay where they are in a plan, and so do their gains. */
static void keep_blocks(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon, nv = m->nv, may = m->nu - 2 * nv;
  for (int64_t i = 0; i < nv; i++) {
    double *const input = s->now.x + m->nq - nv + i, *const rate = s->now.u + m->controls[i];
    input[0] = q->x0[m->nq - nv + i];
    for (int64_t k = 0, end = 0; k < N; k = end) {
      double sum = 0, length = 0;
      do {
        length += q->steps[end];
        sum += q->steps[end] * input[(end + 1) * m->nq];
        end++;
      } while (end < N && q->u_ref[end * m->nu + may + i] == 0);
      const double mean = sum / length;
      rate[k * m->nu] = (mean - input[k * m->nq]) / q->steps[k];
      for (int64_t j = k + 1; j < end; j++) rate[j * m->nu] = 0;
      for (int64_t j = k + 1; j <= end; j++) input[j * m->nq] = mean;
    }
  }
}

/* The plan at the times of the task: nodes between those that it has where it is not later by a
 * whole step; beyond its end the last controls are held. Other inputs follow the reference. A time before
 * the plan counts as its start, one beyond its end as its end. */
static void later(const lg_model *m, lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon;
  const double steps = clip((q->t[0] - q->start) / q->dt, 0, (double)N), whole = nearbyint(steps);
  const double slack = larger(LG_SAME_NODE,
    LG_SAME_NODE_ROUNDINGS * DBL_EPSILON * fabs(q->t[0]) / q->dt);
  double *u = s->trial.u;
  const int is_equal = has_equal_steps(q);
  if (!is_equal) {
    later_on_grid(m, q, s);
  } else if (fabs(steps - whole) < slack && whole <= 1) {
    if (whole == 1) move_on(s->now.x, N + 1, m->nq), move_on(s->now.u, N, m->nu);
  } else {
    for (int64_t k = 0; k <= N; k++) {
      const double place = (double)k + steps;
      const double held = clip(floor(place + slack), 0, (double)(N - 1));
      const double share = clip(place - held, 0, 1), *x = s->now.x + (int64_t)held * m->nq;
      const double *in[] = {x, x + m->nq, &share};
      double *const out[] = {s->trial.x + k * m->nq};
      call(&m->between, 1, in, out, s->scratch);
      if (k < N) copy(u + k * m->nu, s->now.u + (int64_t)held * m->nu, m->nu);
    }
    copy(s->now.x, s->trial.x, (N + 1) * m->nq), copy(s->now.u, u, N * m->nu);
  }
  for (int64_t i = 0; is_equal && i < (int64_t)whole; i++) shift(m, q, s);
  s->extends = is_equal && whole > 0 && !m->blocks;
  for (int64_t k = 0; k < N && m->nu > m->nv; k++) {
    copy(u, s->now.u + k * m->nu, m->nu);
    copy(s->now.u + k * m->nu, q->u_ref + k * m->nu, m->nu);
    for (int64_t j = 0; j < m->nv; j++)
      s->now.u[k * m->nu + m->controls[j]] = u[m->controls[j]];
  }
  if (m->blocks) keep_blocks(m, q, s);
}

/* Multipliers of the dynamics by an adjoint sweep about a motion, and how far it is from optimal,
 * relative to the derivatives of the cost. */
static double adjoint(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, na = m->ns + m->ne;
  double stat = 0;
  row_prices(m, q, s, s->now.z, s->now.nu, s->price);
  gradients(m, q, s, s->price, 0);
  copy(s->d_lam + (N - 1) * nx, s->full_end, nx);
  for (int64_t k = N - 1; k >= 0; k--) {
    const double *F = s->F + k * nx * nz, *lam = s->d_lam + k * nx;
    double *own = s->full + k * nz;
    pull_back(m, F, lam, own);
    for (int64_t j = 0; j < nv; j++) stat = widest(stat, own[nx + j] * s->size[nx + j]);
    if (k > 0) copy(s->d_lam + (k - 1) * nx, own, nx);
    for (int64_t i = 0; i < m->nf && k == 0; i++)
      stat = widest(stat, own[m->free[i]] * s->size[m->free[i]]);
  }
  misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  double viol = widest_gap(m, q, s, s->gap);
  for (int64_t k = 0; k <= N; k++) {
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      if (s->holds[i] == 0) continue;
      viol = widest(viol, s->rho[i]);
    }
    for (int64_t j = 0; j < m->ne; j++)
      viol = widest(viol, s->missed[k * m->ne + j]);
  }
  return widest(stat / (1 + s->scale * widest_slope(m, q, s)), viol);
}

/* Whether there are one-sided hard rows. */
static int has_hard(const lg_model *m, const lg_task *q)
{
  for (int64_t j = 0; j < m->ns; j++)
    if (!isfinite(q->weight[j])) return 1;
  return 0;
}

/* Whether one-sided hard rows are exceeded. */
static int exceeds(const lg_model *m, const lg_task *q, const lg_state *s, const double *rows)
{
  for (int64_t k = 0; k <= q->horizon && m->ns > 0; k++)
    for (int64_t j = 0; j < m->ns; j++) {
      const double h = over(m, s, rows + k * m->nr, j);
      if (s->holds[k * (m->ns + m->ne) + j] != 0 && !isfinite(q->weight[j]) && !(h <= q->tolerance))
        return 1;
    }
  return 0;
}

/* Whether the first step of a call may be a Gauss–Newton step. Costs are squares, and nothing is hard but
 * limits of controls. The last step was whole. If it was such a step, it gained what its model predicted. */
static int may_be_gauss_newton(const lg_model *m, const lg_task *q, const lg_state *s)
{
  if (!m->squares || !m->curvature.call || !q->exact || m->ne > 0 || has_hard(m, q)) return 0;
  return s->mem->alpha == 1 && s->mem->spread >= 0;
}

/* A distance, moved next to the one that its multiplier has at the barrier parameter. */
LG_INLINE double fitting(double distance, double kept, double mu, double most)
{
  return kept > 0 ? clip(distance, mu / (most * kept), most * mu / kept) : distance;
}

/* The trial of the plan's rollout, with the multipliers of the plan. If a distance from a row does not fit
 * its multiplier, the multiplier stays and the distance moves. The first step removes that error, as it
 * removes defects. */
static void warm(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, na = m->ns + m->ne, nv = m->nv;
  const double mu = s->mu, most = o->real_time_sigma;
  for (int64_t i = 0; i < N * nv; i++) {
    s->trial.zl[i] = near(s->now.zl[i], s->t_below[i], mu, most);
    s->trial.zu[i] = near(s->now.zu[i], s->t_above[i], mu, most);
  }
  for (int64_t k = 0; k <= N; k++)
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      double z = s->now.z[i], y = s->now.y[i];
      s->trial.z[i] = s->trial.y[i] = 0;
      if (s->holds[i] == 0) continue;
      if (s->gives[i] != 0) {
        s->trial.e[i] = fitting(s->trial.e[i], y, mu, most);
        s->trial.y[i] = near(y > 0 ? y : mu / s->trial.e[i], s->trial.e[i], mu, most);
      }
      s->trial.s[i] = fitting(s->trial.s[i], z, mu, most);
      s->trial.z[i] = near(z > 0 ? z : mu / s->trial.s[i], s->trial.s[i], mu, most);
    }
  copy(s->trial.lam, s->now.lam, N * m->nx), copy(s->trial.nu, s->now.nu, (N + 1) * m->ne);
  take_trial(s);
}

/* Cost of a trial without defects, with the penalties of all constraints. */
static double merit(const lg_model *m, const lg_task *q, const lg_state *s, double f)
{
  const int64_t na = m->ns + m->ne;
  double hard = 0;
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int64_t j = 0; j < na; j++) {
      const double h = over(m, s, s->t_rows + k * m->nr, j);
      if (m->active[k * na + j] == 0 || is_soft(m, q, j)) continue;
      hard += s->d[m->row[j]] * (j < m->ns ? larger(0, h) : fabs(h));
    }
  return s->scale * priced_cost(m, q, s->t_rows, f) + s->priced * hard;
}

/* The plan into the trial, rolled out from x0 under its gains. Where that exceeds hard rows, by gains
 * that are stiff next to them, the rollout of its inputs alone is taken if its merit is lower. 0 where
 * neither is finite. */
static int follow_plan(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, double tau,
                       const double *x0)
{
  double f;
  const int is_fed = roll_out(m, q, s, o, tau, LG_FED, x0, is_free(m) ? 0 : &f);
  if (!has_hard(m, q) || (is_fed && !exceeds(m, q, s, s->t_rows))) return is_fed;
  const double fed = is_fed ? merit(m, q, s, f) : INFINITY;
  const int is_open = roll_out(m, q, s, o, tau, LG_ALONE, x0, &f);
  if (is_open && merit(m, q, s, f) < fed) return 1;
  return is_fed && roll_out(m, q, s, o, tau, LG_FED, x0, &f);
}

/* Whether the barrier problem is solved as far as its parameter asks for. */
static int is_solved(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  residuals(m, q, s, o);
  return error_of(m, q, s, o, s->mu) <= o->mu_error * s->mu;
}

/* Real-time steps. The plan moves on to the times of the task and is rolled out from x0 under its gains.
 * Steps of the solve improve it, at a barrier parameter that follows how far from optimal the plan is. A
 * line search that fails leaves the plan as it is.
 *
 * With hard rows the first step is rolled out, and the last one if defects are large. Other steps are
 * not: a rollout along curved rows changes the distances that the multipliers of these rows fit. If the
 * steps end with a hard row exceeded, the last iterate without an excess is taken instead, unless it
 * costs much more than the plan at the start. */
LG_EXPORT int lg_newton_step(const lg_model *m, lg_task *q, const lg_settings *o)
{
  const int64_t N = q->horizon;
  lg_state own, *s = &own;
  open_task(m, q, s);
  q->of = LG_OF_STEPS;
  take_up(m, q, s, o);
  s->priced = o->real_time_penalty;
  set_form(m, q, s);
  later(m, q, s);
  double tau = larger(o->boundary, 1 - s->mu);
  double x0[m->nq];
  copy(x0, s->now.x, m->nq);
  first_state(m, q, s, x0);
  const int is_followed = follow_plan(m, q, s, o, tau, x0);
  if (is_followed) warm(m, q, s, o);
  else copy(s->now.x, x0, m->nq);
  s->extends = 0;
  int status = LG_ITERATIONS;
  const int64_t more = (int64_t)o->real_time_more, most = q->max_iterations + (q->more < more ? q->more : more);
  double off = 0, started = 0, fall = 0;
  int has_kept = 0;
  for (;;) {
    s->gauss_newton = is_followed && q->iterations == 0 && may_be_gauss_newton(m, q, s);
    if (s->gauss_newton) expand(m, q, s);
    else expand_twice(m, q, s);
    if (is_followed && is_free(m) && q->iterations == 0 && !isfinite(s->f)) {
      take_trial(s); /* nobody asked for the rollout's cost: the plan as it is, then */
      copy(s->now.x, x0, m->nq);
      s->gauss_newton = 0;
      expand_twice(m, q, s);
    }
    if (!isfinite(s->f)) status = LG_NOT_FINITE;
    if (status != LG_ITERATIONS || q->max_iterations <= 0) break;
    off = adjoint(m, q, s);
    s->gauss_newton = s->gauss_newton && off <= o->real_time_far;
    const double cost = priced_cost(m, q, s->rows, s->f);
    if (q->iterations == 0) started = cost;
    if (has_hard(m, q) && !exceeds(m, q, s, s->rows) && largest(s->gap, N * m->nx, 0) <= q->tolerance
        && cost <= started + o->real_time_dearer * fabs(started)) {
      copy(s->saved_memory, s->now.x, s->plan);
      has_kept = 1;
    }
    const int is_first = q->iterations == 0, is_calm = s->mem->spread > 0;
    const int is_cut = s->mem->alpha < o->real_time_short;
    const double high = larger(o->real_time_mu, worth(s));
    const int is_raised = is_cut && s->mu < high;
    if (is_raised) {
      s->mu = s->mem->mu = larger(o->real_time_mu, smaller(high, o->real_time_rise * s->mu));
      recentre(m, q, s, o);
    } else if (is_first) {
      const double share = o->mu_factor, known = s->mem->alpha == 1 ? off * off : share * off;
      const double least = larger(share * s->mu, is_calm ? s->mem->spread : known);
      s->mu = s->mem->mu = larger(o->real_time_mu_last, smaller(s->mu, least));
    } else if (has_hard(m, q) ? is_solved(m, q, s, o) : is_calm) {
      s->mu = s->mem->mu = larger(o->real_time_mu_last, o->mu_factor * s->mu);
    }
    q->iterations++;
    int is_ready = 0; /* twice if the state moved: at a barrier parameter that fits the gain of the step */
    for (int again = 0; again < 2; again++) {
      tau = larger(o->boundary, 1 - s->mu);
      misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
      if (is_first || is_raised)
        begin_filter(&s->mem->filter, o, theta(m, q, s));
      is_ready = regularize(m, q, s, o) && direction(m, q, s, o);
      if (!is_ready || !is_first || again) break;
      fall = larger(0, -slope(m, q, s)) / larger(1, s->terms);
      if (!(fall > o->mu_error * s->mu && s->mu < high)) break;
      s->mu = s->mem->mu = smaller(high, fall);
      recentre(m, q, s, o);
    }
    if (!is_ready) {
      status = LG_STALLED;
      break;
    }
    const int is_open = largest(s->gap, N * m->nx, 0) > o->real_time_far;
    s->linear = is_first || !has_hard(m, q) || (is_open && q->iterations >= most);
    s->mem->alpha = search(m, q, s, o, tau, 0);
    const int is_modelled = fabs(s->gain - 1) <= o->real_time_gain;
    s->mem->spread = is_modelled && s->mem->alpha == 1 ? fall : s->gauss_newton ? -1 : 0;
    if (s->mem->alpha == 0 && s->gauss_newton && q->iterations < most) continue; /* the exact step, then */
    if (s->mem->alpha == 0) {
      status = LG_STALLED;
      break;
    }
    copy(s->rows, s->t_rows, (N + 1) * m->nr);
    const int is_far = (off > o->real_time_far && !is_modelled)
      || s->mem->alpha < o->real_time_short || exceeds(m, q, s, s->rows)
      || (has_hard(m, q) && s->mu > o->real_time_mu);
    const int is_due = q->iterations < q->max_iterations || (q->iterations < most && is_far);
    if (is_due && !(q->watch && q->watch(q->log))) continue;
    /* The log needs values of the trial alone, and no other expansion. */
    s->f = 0;
    for (int64_t k = 0; k <= N; k++) s->f += s->t_cost[k];
    copy(s->gap, s->t_gap, N * m->nx);
    misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
    break;
  }
  if (has_kept && status != LG_NOT_FINITE && exceeds(m, q, s, s->rows)) {
    copy(s->now.x, s->saved_memory, s->plan);
    expand(m, q, s);
    misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  }
  /* Two calls in turn exceed hard rows, and the plan is next to an optimum at a penalty: it cannot keep them. */
  const int is_settled = off <= o->acceptable
    || (off <= o->real_time_far && s->mem->alpha >= o->real_time_short);
  const int beyond = exceeds(m, q, s, s->rows);
  if (status != LG_NOT_FINITE && beyond && s->mem->beyond && is_settled) status = LG_INFEASIBLE;
  s->mem->beyond = beyond;
  double *row = q->log;
  row[LG_LOG_COST] = s->f, row[LG_LOG_STATIONARITY] = off, row[LG_LOG_COMPLEMENTARITY] = NAN;
  row[LG_LOG_VIOLATION] = largest(s->gap, N * m->nx, largest(s->rho, (N + 1) * (m->ns + m->ne),
                   largest(s->missed, (N + 1) * m->ne, 0)));
  put_state(m, q, s, row);
  return close_task(m, q, s, status);
}
