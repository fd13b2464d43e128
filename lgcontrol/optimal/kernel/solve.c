/* A solve from a first iterate to a verdict: algorithm A of Waechter and Biegler 2006.
 *
 * The barrier parameter falls to max(last, min(mu_factor mu, mu^mu_power)) where the error of its problem is small
 * (equation (7)). The Hessian is regularized until the sweep finds it positive definite (algorithm IC).
 * A saddle is left along the direction of least curvature. A failed line search leads to the elastic
 * problem, and a solved elastic problem to the verdict that rows cannot be satisfied. */
static void begin(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nr = m->nr, na = m->ns + m->ne;
  lg_memory *mem = s->mem;
  memset(mem, 0, sizeof *mem);
  int bounded = na > 0;
  for (int64_t r = 0; r < nr; r++) s->d[r] = 1;
  for (int64_t j = 0; j < nv; j++) {
    const double size = known_size(size_of_control(m, q, s, j), 1);
    s->size[nx + j] = q->of == LG_OF_STEPS ? counted(o, size) : size;
  }
  set_limits(m, q, s, o);
  for (int64_t j = 0; j < nv; j++) {
    const int low = isfinite(s->lower[j]), high = isfinite(s->upper[j]);
    bounded = bounded || low || high;
    double least, most;
    apart(m, s, o, j, &least, &most);
    for (int64_t k = 0; k < N; k++) {
      double *v = s->now.u + k * m->nu + m->controls[j];
      *v = clip(*v, s->lower[j] + least, s->upper[j] - most);
    }
  }
  expand(m, q, s);
  mem->of = 1 - q->of;
  set_scales(m, q, s, o, mem->of);
  swap_scales(m, q, s);
  const int is_own = set_scales(m, q, s, o, mem->of);
  set_metric(m, s);
  for (int64_t i = 0; i < N * nv; i++) {
    const double z = s->rate[nx + i % nv];
    s->now.zl[i] = isfinite(s->lower[i % nv]) ? z : 0;
    s->now.zu[i] = isfinite(s->upper[i % nv]) ? z : 0;
  }
  set_limits(m, q, s, o);
  q->scale = s->scale;
  set_form(m, q, s);
  /* In scales of loops a small cost is not scaled up: its barrier would lead a plan far away from its optimum. */
  const double first = is_own ? o->mu_first : clip(worth(s), o->real_time_mu, o->mu_first);
  mem->mu = s->mu = bounded ? first : last_of(q, s, o);
  for (int64_t i = 0; i < (N + 1) * na; i++) s->now.s[i] = 0;
  fit_slacks(m, q, s, o, &s->now, s->rows, 1);
  for (int64_t k = 0; k <= N; k++)
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      s->now.z[i] = s->holds[i] != 0 ? 1 : 0;
      s->now.y[i] = 0;
      if (s->gives[i] == 0) continue;
      const double h = scaled(m, s, s->rows + k * m->nr, j);
      s->now.y[i] = 1;
      s->now.e[i] = larger(h, 0) + o->push, s->now.s[i] = s->now.e[i] - h;
    }
  memset(s->now.lam, 0, (size_t)(N * m->nx) * sizeof(double));
  memset(s->now.nu, 0, (size_t)((N + 1) * m->ne) * sizeof(double));
  least_squares(m, q, s, o);
  open_filter(m, q, s, o);
  mem->alpha = 1;
}

static void lower_barrier(lg_state *s, const lg_settings *o, double last)
{
  s->mu = larger(last, smaller(o->mu_factor * s->mu, pow(s->mu, o->mu_power)));
  s->mem->mu = s->mu, s->mem->filter.count = s->tried = 0;
}

/* The factorization with the least regularization that the rule of algorithm IC finds. */
static int regularize(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  lg_memory *mem = s->mem;
  condense(m, q, s, o);
  const int bent = curvatures(m, q, s);
  double dw = 0;
  while (!factor(m, q, s, dw, bent, 0)) {
    const int never = mem->dw_last == 0;
    if (dw == 0)
      dw = never ? o->regularization_first
                 : o->regularization_fall * mem->dw_last;
    else
      dw *= never ? o->regularization_grow_first : o->regularization_grow;
    if (dw > o->regularization_most) return 0;
  }
  mem->dw = dw;
  if (dw > 0) mem->dw_last = dw;
  return 1;
}

/* A multiplier for a larger barrier parameter: that of a bound that is active stays, steps move off
 * the bound. */
LG_INLINE double centred(double z, double distance, double mu)
{
  return smaller(mu / distance, larger(z, sqrt(mu)));
}

/* Multipliers of bounds and slacks of penalties at the barrier parameter. */
static void recentre(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t na = m->ns + m->ne;
  for (int64_t i = 0; i < q->horizon * m->nv; i++) {
    s->now.zl[i] = centred(s->now.zl[i], s->below[i], s->mu);
    s->now.zu[i] = centred(s->now.zu[i], s->above[i], s->mu);
  }
  fit_slacks(m, q, s, o, &s->now, s->rows, 1);
  for (int64_t i = 0; i < (q->horizon + 1) * na; i++)
    if (s->holds[i] != 0 && s->gives[i] == 0)
      s->now.z[i] = centred(s->now.z[i], s->now.s[i], s->mu);
}

/* How far an iterate is moved off a saddle: a share of the control's range, or of one unit. */
LG_INLINE double nudge_of(const lg_state *s, const lg_settings *o, int64_t nx, int64_t j)
{
  const double range = s->upper[j] - s->lower[j];
  return o->nudge * (isfinite(range) ? range : s->size[nx + j]);
}

/* The direction of least curvature of the problem that was factorized last, by inverse iterations on
 * a pattern of controls without symmetry: its largest control moves by a nudge. Returns the
 * curvature along it, without the regularization. */
static double least_curved(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv;
  double curvature = 0;
  for (int64_t i = 0; i < N * nv; i++) {
    const double place = (double)(i + 1) * LG_GOLDEN;
    s->du[i] = (place - floor(place) - 0.5) * s->size[nx + i % nv];
  }
  memset(s->eps, 0, (size_t)((N + 1) * nx) * sizeof(double));
  memset(s->move, 0, (size_t)((N + 1) * nx) * sizeof(double));
  for (int turn_ = 0; turn_ < LG_INVERSE_ITERATIONS; turn_++) {
    double before = 0, both = 0, most = 0;
    for (int64_t k = 0; k < N; k++)
      for (int64_t i = 0; i < nz; i++)
        s->full[k * nz + i] = s->metric[i] * (i < nx ? s->eps[k * nx + i] : s->du[k * nv + i - nx]);
    for (int64_t i = 0; i < nx; i++) s->full_end[i] = s->metric[i] * s->eps[N * nx + i];
    for (int64_t k = 0; k < N; k++)
      for (int64_t i = 0; i < nz; i++)
        before += s->full[k * nz + i] * s->full[k * nz + i] / s->metric[i];
    for (int64_t i = 0; i < nx; i++) before += s->full_end[i] * s->eps[N * nx + i];
    back(m, q, s, s->full, s->full_end, s->move);
    for (int64_t k = 0; k < N; k++) {
      both -= dot((int)nx, s->full + k * nz, s->eps + k * nx);
      both -= dot((int)nv, s->full + k * nz + nx, s->du + k * nv);
      for (int64_t j = 0; j < nv; j++)
        most = widest(most, s->du[k * nv + j] / nudge_of(s, o, nx, j));
    }
    both -= dot((int)nx, s->full_end, s->eps + N * nx);
    curvature = before / both - s->mem->dw;
    for (int64_t i = 0; i < N * nv; i++) s->du[i] /= most;
    for (int64_t i = 0; i < (N + 1) * nx; i++) s->eps[i] /= most;
  }
  return curvature;
}

/* Move nodes along the direction, each control as far as its limits allow; 0 where that leads out of
 * numbers. Multipliers stay. */
static int nudge(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, M = N + 1, na = m->ns + m->ne;
  for (int64_t i = 0; i < N * m->nv; i++)
    s->du[i] = clip(s->du[i], -o->boundary * s->below[i], o->boundary * s->above[i]);
  for (int64_t i = 0; i < M * na; i++) s->ds[i] = s->de[i] = 0;
  const double f = move(m, q, s, 1);
  if (!isfinite(f) || !all_finite(s->t_gap, N * m->nx) || !all_finite(s->t_rows, M * m->nr)) return 0;
  copy(s->now.x, s->trial.x, M * m->nq), copy(s->now.u, s->trial.u, N * m->nu);
  expand(m, q, s);
  open_filter(m, q, s, o);
  s->mem->alpha = 1, s->mem->error_before = 0;
  return 1;
}

/* Go on from an iterate that was moved, at a barrier parameter that leaves room for it. */
static void begin_anew(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  s->mu = s->mem->mu = larger(s->mu, o->real_time_mu);
  recentre(m, q, s, o);
  open_filter(m, q, s, o);
  s->mem->tiny = 0;
}

/* Leave a saddle, which steps of Newton do not where it is one by a symmetry: the cost falls both
 * ways along a direction in which the step is nothing. Whether that was done; the step is lost. */
static int leave_saddle(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, int stays)
{
  lg_memory *mem = s->mem;
  const int64_t N = q->horizon, nv = m->nv;
  double along = 0, size = 0;
  if (!(mem->dw > 0) || mem->nudges >= LG_MOST_LEFT) return 0;
  copy(s->trial.u, s->du, N * nv);
  const double curvature = least_curved(m, q, s, o);
  for (int64_t i = 0; i < N * nv; i++)
    along += s->trial.u[i] * s->du[i] * s->metric[m->nx + i % nv],
      size += s->du[i] * s->du[i] * s->metric[m->nx + i % nv];
  if (!(curvature < -LG_FLAT * mem->dw) || !(stays || fabs(along) <= LG_FLAT * size)) return 0;
  mem->nudges++;
  return nudge(m, q, s, o);
}

/* The rest of a row of the log: how the last step was taken, and its largest defect. */
static void put_state(const lg_model *m, const lg_task *q, const lg_state *s, double *row)
{
  row[LG_LOG_STEP] = s->mem->alpha, row[LG_LOG_REGULARIZATION] = s->mem->dw, row[LG_LOG_MU] = s->mu;
  row[LG_LOG_ELASTIC] = (double)s->mem->elastic;
  row[LG_LOG_DEFECT] = largest(s->gap, q->horizon * m->nx, 0);
}

/* The residual that is compared with the tolerance goes to the log, and is returned: violations and
 * defects in units of the problem. */
static double note(const lg_model *m, const lg_task *q, const lg_state *s, const lg_settings *o)
{
  double *row = q->log + q->iterations * LG_LOG, sd, sc;
  error_scales(s, o, &sd, &sc);
  if (s->mem->elastic) sd = larger(sd, s->unit), sc = larger(sc, s->unit);
  row[LG_LOG_COST] = s->f, row[LG_LOG_STATIONARITY] = s->stat / sd, row[LG_LOG_VIOLATION] = s->r_viol;
  row[LG_LOG_COMPLEMENTARITY] = complementarity(m, q, s, 0) / sc;
  put_state(m, q, s, row);
  return widest(widest(row[LG_LOG_STATIONARITY], row[LG_LOG_VIOLATION]), row[LG_LOG_COMPLEMENTARITY]);
}

/* Whether the elastic problem may be left where it is; it is, then. */
static int leaves(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  const lg_memory kept = *s->mem;
  double most;
  if (violated(m, q, s, &most) > o->elastic_decrease * kept.outer_theta) return 0;
  copy(s->saved_memory, s->now.x, s->plan);
  end_elastic(m, q, s, o, 0);
  const double t = theta(m, q, s);
  if (t <= o->elastic_decrease * kept.outer_theta
      && acceptable(&s->mem->filter, o, t, phi(m, q, s, &s->now, s->below, s->above, s->f)))
    return 1;
  copy(s->now.x, s->saved_memory, s->plan);
  *s->mem = kept, s->mu = kept.mu;
  set_form(m, q, s);
  misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  return 0;
}

/* After a failed line search: a rollout, or the elastic problem; 0 where neither helps. */
static int restore(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, int has_gains)
{
  lg_memory *mem = s->mem;
  const double th = theta(m, q, s), tau = larger(o->boundary, 1 - s->mu);
  double f;
  augment(&mem->filter, th, phi(m, q, s, &s->now, s->below, s->above, s->f));
  if (has_gains && roll_out(m, q, s, o, tau, LG_FED, 0, &f)) {
    misses(m, q, s, &s->trial, s->t_rows, s->t_rho, s->t_missed);
    const double t = theta_of(m, q, s, s->t_gap, s->t_rho, s->t_missed), p = phi(m, q, s, &s->trial, s->t_below, s->t_above, f);
    if (isfinite(t) && isfinite(p) && t <= o->elastic_decrease * th && t <= mem->filter.most
        && acceptable(&mem->filter, o, t, p)) {
      accept(m, q, s, o, 0, 0);
      expand(m, q, s);
      least_squares(m, q, s, o);
      return 1;
    }
  }
  if (mem->elastic || !can_relax(m, q)) return 0;
  begin_elastic(m, q, s, o);
  return 1;
}

/* Back to the iterate before a whole step that did not pay: the next one is tried after twice as many. */
static void take_back(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  lg_memory *mem = s->mem;
  copy(s->now.x, s->saved_memory, s->plan);
  mem->filter = mem->outer, mem->alpha = 0;
  s->tried = s->stepped = s->creeps = 0, s->returns++;
  expand_twice(m, q, s);
  residuals(m, q, s, o);
}

/* One more step of a solve; its status, or LG_ITERATIONS where it goes on. An iterate that met the tolerance
 * at the barrier parameter `met` was kept: a step that did not lower its error is one of rounding. */
static int advance(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, double met)
{
  lg_memory *mem = s->mem;
  if (met < INFINITY) s->creeps = s->tried = 0;
  if (s->tried > 0) {
    const double t = theta(m, q, s), p = phi(m, q, s, &s->now, s->below, s->above, s->f);
    if (t <= mem->outer.most && acceptable(&mem->outer, o, t, p - rounding_of(p))) s->tried = 0;
    else if (s->tried++ >= LG_TRIED) take_back(m, q, s, o);
  }
  const double least = larger(o->mu_least, o->mu_last * q->tolerance);
  const double before = mem->error_before; /* 0 at the first step: none was taken that could have lowered it */
  if (met <= least && before > 0 && error_of(m, q, s, o, s->mu) >= before) return LG_STALLED;
  double last = last_of(q, s, o);
  const int whole = mem->alpha == 1 && mem->dw == 0;
  int fast = mem->alpha >= o->fast_step && mem->dw == 0;
  double error = 0;
  while (s->mu > last) {
    error = error_of(m, q, s, o, s->mu);
    fast = fast && mem->error_before > 0 && (is_free(m) || error <= o->fast_error * mem->error_before);
    if (!(error <= o->mu_error * s->mu) && !fast) break;
    lower_barrier(s, o, last);
    fast = 0;
  }
  if (!(s->mu > last)) { /* whole steps that no longer lower it: rounding */
    error = error_of(m, q, s, o, s->mu);
    if (whole && error >= mem->error_before && (double)++mem->tiny > o->tiny_most) return LG_STALLED;
  }
  mem->error_before = error;
  s->linear = is_free(m) && s->mu > last; /* rounding next to a limit spoils the last steps */
  for (;;) {
    const double tau = larger(o->boundary, 1 - s->mu);
    const int has_gains = regularize(m, q, s, o);
    if (!has_gains && s->stepped && !s->tried) { /* the filter took an iterate without a step: half of what led here */
      augment(&mem->filter, theta(m, q, s), phi(m, q, s, &s->now, s->below, s->above, s->f));
      take_trial(s);
      expand_twice(m, q, s);
      mem->alpha = 0, s->stepped = 0;
      return LG_ITERATIONS;
    }
    s->stepped = 0;
    int fine = has_gains && direction(m, q, s, o);
    if (fine && mem->dw > 0 && mem->nudges < LG_MOST_LEFT) {
      if (leave_saddle(m, q, s, o, 0)) return LG_ITERATIONS;
      fine = direction(m, q, s, o);
    }
    double alpha = 0;
    if (fine) alpha = search(m, q, s, o, tau, 1);
    mem->alpha = alpha;
    if (alpha > 0) {
      expand_twice(m, q, s);
      s->stepped = 1;
      return LG_ITERATIONS;
    }
    if (s->tried > 0) {
      take_back(m, q, s, o);
      continue;
    }
    if (theta(m, q, s) > LG_UNVIOLATED * q->tolerance
        && restore(m, q, s, o, has_gains))
      return LG_ITERATIONS;
    if (!fine && q->iterations == 0) return LG_NOT_FINITE; /* there is no step at all */
    if (!(s->mu > last) || (double)++mem->tiny > o->tiny_most) return LG_STALLED;
    lower_barrier(s, o, last);
  }
}

/* What an elastic problem that is solved says; LG_ITERATIONS where the solve goes on. */
static int decide(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  lg_memory *mem = s->mem;
  double most;
  violated(m, q, s, &most);
  if (most <= q->tolerance) {
    end_elastic(m, q, s, o, 1);
    return mem->left > LG_MOST_LEFT ? LG_STALLED : LG_ITERATIONS;
  }
  if (s->scale * s->g_size <= o->certificate * mem->penalty) {
    const double before = mem->dw_last;
    mem->dw_last = 0; /* the least regularization that it takes, not that of earlier iterates */
    if (!regularize(m, q, s, o)) return LG_STALLED;
    mem->dw_last = before;
    if (mem->doubts == 0) { /* what another start undoes is no certificate */
      mem->doubts = 1;
      least_curved(m, q, s, o);
      if (!nudge(m, q, s, o)) return LG_STALLED;
      begin_anew(m, q, s, o);
      return LG_ITERATIONS;
    }
    /* a maximum tells nothing: a change of the size lowers the violation by more than is certain */
    return mem->dw <= o->certificate * mem->penalty * most ? LG_INFEASIBLE : LG_STALLED;
  }
  if (mem->penalty >= o->penalty_most) return LG_STALLED;
  mem->penalty = o->penalty_most;
  begin_form(m, q, s, o, larger(s->mu, smaller(most, o->mu_first) * LG_PENALTY_MU));
  return LG_ITERATIONS;
}

static void open_task(const lg_model *m, lg_task *q, lg_state *s)
{
  memset(s, 0, sizeof *s);
  lay_out(s, q->work, m, q->horizon);
  lay_point(&s->now, q->plan, m, q->horizon), lay_point(&s->trial, s->trial_memory, m, q->horizon);
  s->mem = (lg_memory *)(void *)q->memory;
  s->d = q->scales, s->size = q->scales + m->nr;
  q->iterations = 0;
}

/* What a plan brings besides its iterate, to go on from: limits are as they are now, controls that
 * are outside of them move in. */
static void take_up(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t xp = padded(m->nx);
  change_scales(m, q, s);
  s->mu = s->mem->mu, s->scale = q->scale = s->mem->scale;
  set_metric(m, s);
  set_limits(m, q, s, o);
  set_form(m, q, s);
  for (int64_t i = 0; i < q->horizon * m->nv; i++) put(s->K + i * xp, q->K + i * m->nx, m->nx);
  for (int64_t j = 0; j < m->nv; j++) {
    double least, most;
    apart(m, s, o, j, &least, &most);
    for (int64_t k = 0; k < q->horizon; k++) {
      double *v = s->now.u + k * m->nu + m->controls[j];
      if (!(*v > s->lower[j] && *v < s->upper[j]))
        *v = clip(*v, s->lower[j] + least, s->upper[j] - most);
    }
  }
}

/* Begin at a plan with its multipliers, at the least barrier parameter that it nearly solves. */
static void begin_warm(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  lg_memory *mem = s->mem;
  take_up(m, q, s, o);
  expand(m, q, s);
  residuals(m, q, s, o);
  const double error = error_of(m, q, s, o, 0);
  const double mu = error > q->tolerance ? smaller(o->mu_first, error / o->mu_error) : 0;
  if (mu > s->mu) {
    s->mu = mem->mu = mu;
    recentre(m, q, s, o);
  }
  open_filter(m, q, s, o);
  mem->alpha = 1, mem->error_before = mem->dw_last = 0, mem->tiny = mem->left = 0;
  mem->nudges = mem->doubts = 0;
}

static int close_task(const lg_model *m, lg_task *q, lg_state *s, int status)
{
  const int64_t xp = padded(m->nx);
  if (s->now.x != q->plan) copy(q->plan, s->now.x, s->plan);
  for (int64_t i = 0; i < q->horizon * m->nv; i++) put(q->K + i * m->nx, s->K + i * xp, m->nx);
  copy(q->rows, s->rows, (q->horizon + 1) * m->nr);
  if (status == LG_INFEASIBLE) s->mem->beyond = 1;
  q->status = status, q->elastic = s->mem->elastic, q->mu = s->mu, q->penalty = s->mem->penalty;
  q->evaluations = s->trials, q->factorizations = s->sweeps;
  return status;
}

/* Whether a solve that would end goes on: it is at a saddle, which it leaves. */
static int goes_on(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  if (q->iterations >= q->max_iterations || !regularize(m, q, s, o)) return 0;
  if (!leave_saddle(m, q, s, o, 1)) return 0;
  begin_anew(m, q, s, o);
  return 1;
}

/* Solve from the nodes of the plan, or its elastic problem first, which may have to be solved before
 * it is left; from the plan with its multipliers; or go on with the last call: `resume` says which. */
LG_EXPORT int lg_newton_solve(const lg_model *m, lg_task *q, const lg_settings *o)
{
  lg_state own, *s = &own;
  open_task(m, q, s);
  if (q->resume == LG_WARM) {
    begin_warm(m, q, s, o);
  } else if (q->resume != LG_RESUME) {
    begin(m, q, s, o);
    if ((q->resume == LG_ELASTIC || q->resume == LG_DECIDED) && can_relax(m, q)) {
      begin_elastic(m, q, s, o);
      s->mem->doubts = 1; /* this solve puts another to the test */
      if (q->resume == LG_DECIDED) s->mem->outer_theta = 0;
    }
  } else {
    take_up(m, q, s, o);
    expand(m, q, s);
  }
  double met = INFINITY; /* barrier parameter of the last iterate that met the tolerance, which is kept */
  for (;; q->iterations++) {
    int status = LG_ITERATIONS;
    double error;
    residuals(m, q, s, o);
    for (;;) {
      error = note(m, q, s, o);
      if (!isfinite(s->f) || !isfinite(s->viol)) return close_task(m, q, s, LG_NOT_FINITE);
      if (!(error <= q->tolerance && s->mu <= last_of(q, s, o))) break;
      if (!s->mem->elastic) { /* an optimum, unless the last sweep needed a regularization */
        if (!(s->mem->dw > 0) || !goes_on(m, q, s, o)) return close_task(m, q, s, LG_CONVERGED);
        q->iterations++;
        residuals(m, q, s, o);
        continue;
      }
      status = decide(m, q, s, o);
      if (status != LG_ITERATIONS) return close_task(m, q, s, status);
      residuals(m, q, s, o);
    }
    if (q->iterations >= q->max_iterations || (q->watch && q->watch(q->log + q->iterations * LG_LOG)))
      return close_task(m, q, s, LG_ITERATIONS);
    if (s->mem->elastic && leaves(m, q, s, o)) residuals(m, q, s, o);
    if (error <= q->tolerance && !s->mem->elastic) { /* rounding may end it before the last barrier */
      copy(s->saved_memory, s->now.x, s->plan);
      met = s->mu;
    }
    const int64_t moved = s->mem->nudges + s->mem->doubts;
    status = advance(m, q, s, o, met);
    if (moved != s->mem->nudges + s->mem->doubts) met = INFINITY;
    if (status == LG_STALLED && met < INFINITY && !s->mem->elastic) {
      copy(s->now.x, s->saved_memory, s->plan);
      expand(m, q, s);
      residuals(m, q, s, o);
      note(m, q, s, o);
      met = INFINITY;
      status = goes_on(m, q, s, o) ? LG_ITERATIONS : LG_CONVERGED;
    }
    if (status != LG_ITERATIONS) return close_task(m, q, s, status);
  }
}
