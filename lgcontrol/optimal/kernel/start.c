/* Where a solve starts, the cheapest of what is known without asking, and which ways it goes. */

enum { LG_OWN = 32 }; /* besides the starts that have words: the motion under the inputs of the plan */

/* A control as far off its limits as a guess has it. */
static double inside_of(const lg_task *q, const lg_settings *o, int64_t j, double v)
{
  const double low = q->lower[j], high = q->upper[j];
  const double off = isfinite(low) && isfinite(high) ? o->push * (high - low) : o->push;
  return clip(v, low + off, high - off);
}

/* Gains of the regulator about the expansion; none from where the model is singular on. */
static void regulate(const lg_model *m, lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon, size = N * m->nv, xp = padded(m->nx);
  memset(s->K, 0, (size_t)(size * xp) * sizeof(double));
  memset(s->box, 0, (size_t)size * sizeof(double));
  memset(s->weight, 0, (size_t)((N + 1) * m->nr) * sizeof(double));
  memset(s->metric, 0, (size_t)(m->nx + m->nv) * sizeof(double));
  q->scale = 1;
  factor(m, q, s, 0, 0, 0);
  for (int64_t i = 0; i < size; i++)
    if (!all_finite(s->K + i * xp, xp)) memset(s->K + i * xp, 0, (size_t)xp * sizeof(double));
}

/* A step of the system. */
static void one_step(const lg_model *m, const lg_task *q, lg_state *s, double t, const double *x,
                    const double *u, double h, double *after)
{
  const double *in[] = {&t, x, u, q->p, &h};
  double *const out[] = {after};
  call(&m->step, 1, in, out, s->scratch);
}

/* Mean of what the policy does in a step, asked as often as the model says. */
static void policy_mean(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o,
                        int64_t k, double *mean)
{
  const int64_t parts = m->asked, nv = m->nv;
  const double h = q->steps[k] / (double)parts;
  double x[m->nq], after[m->nq], u[m->nu], own[nv + 1];
  copy(x, s->trial.x + k * m->nq, m->nq), copy(u, s->trial.u + k * m->nu, m->nu);
  for (int64_t i = 0; i < nv; i++) mean[i] = 0;
  for (int64_t j = 0; j < parts; j++) {
    const double t = q->t[k] + (double)j * h;
    const double *in[] = {&t, x, q->x_ref + k * m->nq, q->u_ref + k * m->nu, q->p};
    double *const out[] = {own};
    call(&m->policy, 1, in, out, s->scratch);
    for (int64_t i = 0; i < nv; i++) {
      u[m->controls[i]] = inside_of(q, o, i, own[i]);
      mean[i] += u[m->controls[i]] / (double)parts;
    }
    if (parts == 1) return;
    one_step(m, q, s, t, x, u, h, after);
    copy(x, after, m->nq);
  }
}

/* How far a state is from the reference at a node. */
static double away_from(const lg_model *m, const lg_task *q, lg_state *s, const double *x, int64_t k)
{
  double e[m->nx];
  errors(m, 1, x, q->x_ref + k * m->nq, e, s->scratch);
  return largest(e, m->nx, 0);
}

/* The motion from x0 under the inputs of the trial with feedback: of regulators, of the policy, or
 * none. One that diverges ends where it was near the last time, and its step too: that state stays,
 * under the inputs of the reference. */
static void follow(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o,
                   int64_t feedback)
{
  const int64_t nx = m->nx, nv = m->nv, nq = m->nq, xp = padded(nx);
  double e[nx + LG_W], own[nv + 1], size = 1, before = 0;
  int64_t near = 0;
  for (int64_t k = 0; k <= q->horizon; k++) size = larger(size, away_from(m, q, s, q->x0, k));
  copy(s->trial.x, q->x0, nq);
  for (int64_t k = 0; k < q->horizon; k++) {
    const double *x = s->trial.x + k * nq, *u_ref = q->u_ref + k * m->nu;
    double *u = s->trial.u + k * m->nu, *after = s->trial.x + (k + 1) * nq;
    if (feedback == LG_REGULATORS) {
      errors(m, 1, x, q->x_ref + k * nq, e, s->scratch);
      for (int64_t i = 0; i < nv; i++)
        own[i] = u_ref[m->controls[i]] + dot((int)nx, s->K + (k * nv + i) * xp, e);
    }
    if (feedback == LG_POLICY) policy_mean(m, q, s, o, k, own);
    if (feedback == LG_REGULATORS || feedback == LG_POLICY)
      for (int64_t i = 0; i < nv; i++) u[m->controls[i]] = inside_of(q, o, i, own[i]);
    one_step(m, q, s, q->t[k], x, u, q->steps[k], after);
    const double off = all_finite(after, nq) ? away_from(m, q, s, after, k + 1) : INFINITY;
    if (off * sqrt(DBL_EPSILON) <= size) { /* beyond, half of its digits are lost */
      if (larger(before, off) <= o->size_free * size) near = k;
      before = off;
      continue;
    }
    for (int64_t j = near; j < q->horizon; j++) {
      copy(s->trial.x + (j + 1) * nq, s->trial.x + near * nq, nq);
      for (int64_t i = 0; i < nv && feedback; i++)
        s->trial.u[j * m->nu + m->controls[i]] = inside_of(q, o, i, q->u_ref[j * m->nu + m->controls[i]]);
    }
    return;
  }
}

/* The cheapest of some starts, to the plan's states and inputs; returns its largest defect. */
LG_EXPORT double lg_newton_start(const lg_model *m, lg_task *q, const lg_settings *o)
{
  const int64_t N = q->horizon, nz = m->nx + m->nv, which = q->starts;
  lg_state own, *s = &own;
  double best = 0, gap = 0;
  int taken = 0;
  open_task(m, q, s);
  if (which & LG_REGULATORS) {
    copy(s->now.x, q->x_ref, (N + 1) * m->nq), copy(s->now.u, q->u_ref, N * m->nu);
    expand(m, q, s);
  }
  if (!(which & LG_OWN)) copy(s->now.u, q->u_ref, N * m->nu);
  for (int64_t k = 0; k < N; k++)
    for (int64_t i = 0; i < m->nv; i++) {
      double *u = s->now.u + k * m->nu + m->controls[i];
      *u = inside_of(q, o, i, *u);
    }
  copy(s->trial.u, s->now.u, N * m->nu);
  const int regulators = (int)o->regulator_guesses;
  for (int number = 0; number < 5 + regulators; number++) {
    const int64_t what = number == 0 ? LG_REST : number == 1 ? LG_SCREW : number == 2 ? LG_REFERENCE
      : number < 3 + regulators ? LG_REGULATORS : number == 3 + regulators ? LG_POLICY : LG_OWN;
    if (!(which & what)) continue;
    if (what == LG_REST || what == LG_SCREW) {
      for (int64_t k = 0; k <= N; k++) {
        const double share = (double)k / (double)N;
        const double *in[] = {q->x0, q->x_ref + N * m->nq, &share};
        double *const out[] = {s->trial.x + k * m->nq};
        if (what == LG_SCREW) call(&m->between, 1, in, out, s->scratch);
        else copy(s->trial.x + k * m->nq, q->x0, m->nq);
      }
    } else {
      if (what == LG_REGULATORS) {
        regulate(m, q, s);
        for (int64_t k = 0; k < N; k++) /* dearer controls for the next one */
          for (int64_t i = m->nx; i < nz; i++)
            for (int64_t j = m->nx; j < nz; j++) s->H[(k * nz + j) * nz + i] *= o->regulator_caution;
      }
      follow(m, q, s, o, what);
    }
    const double found = priced_cost(m, q, s->t_rows, values(m, q, s));
    const double cost = isnan(found) ? INFINITY : found;
    if (taken && !(cost < best)) continue;
    best = cost, taken = 1, gap = largest(s->t_gap, N * m->nx, 0);
    copy(s->now.x, s->trial.x, (N + 1) * m->nq), copy(s->now.u, s->trial.u, N * m->nu);
  }
  return gap;
}

/* Everything that a plan is, to some memory or back. */
static void swap_plan(const lg_model *m, lg_task *q, double *at, int back)
{
  int64_t sizes[8];
  lg_newton_sizes(m, q->horizon, sizes);
  double *const parts[] = {q->plan, q->rows, q->K, q->scales, q->memory};
  const int64_t count[] = {sizes[1], (q->horizon + 1) * m->nr, q->horizon * m->nv * m->nx,
    2 * (m->nr + m->nx + m->nv), sizes[7]};
  for (int i = 0; i < 5; at += count[i], i++) copy(back ? parts[i] : at, back ? at : parts[i], count[i]);
}

/* A solve from the nodes of the plan, by another way where the first leads nowhere: a problem is said
 * to be infeasible if its elastic problem, solved first from the same nodes, says so too. The other way
 * has the iterations that are left. */
LG_EXPORT int lg_newton_plan(const lg_model *m, lg_task *q, const lg_settings *o)
{
  const int64_t most = q->max_iterations;
  int64_t sizes[8];
  double *const log = q->log, last[LG_LOG];
  lg_newton_sizes(m, q->horizon, sizes);
  copy(q->best, q->plan, sizes[1]);
  if (q->resume != LG_WARM) q->resume = LG_FRESH;
  const int status = lg_newton_solve(m, q, o);
  const int64_t taken = q->iterations;
  if (!(status == LG_STALLED || status == LG_INFEASIBLE) || taken >= most || !can_relax(m, q))
    return status;
  const lg_task before = *q;
  swap_plan(m, q, q->best + sizes[1], 0);
  copy(q->plan, q->best, sizes[1]), copy(last, log + taken * LG_LOG, LG_LOG);
  q->resume = LG_ELASTIC, q->max_iterations = most - taken, q->log = log + taken * LG_LOG;
  const int other = lg_newton_solve(m, q, o);
  q->max_iterations = most, q->log = log, q->iterations += taken;
  q->evaluations += before.evaluations, q->factorizations += before.factorizations;
  if (other == LG_CONVERGED) return other;
  swap_plan(m, q, q->best + sizes[1], 1);
  copy(log + q->iterations * LG_LOG, last, LG_LOG);
  q->elastic = before.elastic, q->mu = before.mu, q->penalty = before.penalty;
  return (int)(q->status = other == status || other == LG_ITERATIONS ? other : LG_STALLED);
}
