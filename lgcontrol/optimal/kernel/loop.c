/* A controller around the planning kernel, call by call: clock, delay, the last plan or a new one,
 * verdict, limits. All that lasts is in the plan, `memory` and `state`. */


typedef struct {
  double own, cost, off, worst, defect; /* cost and that with penalties, hard rows exceeded in all and
                                        most, defects */
  int64_t steps;
} lg_verdict;

/* Whether it is known that the start is beyond reach, and then the controls of least excess. */
typedef struct {
  int is_known;
  double *u;
} lg_reach;

/* What the last solve or step led to, as far as plans are compared by it. */
static lg_verdict verdict(const lg_model *m, const lg_task *q, const lg_settings *o, int64_t row)
{
  const int64_t na = m->ns + m->ne;
  const double *entry = q->log + row * LG_LOG;
  lg_verdict v = {entry[LG_LOG_COST], priced_cost(m, q, q->rows, entry[LG_LOG_COST]), 0, 0, entry[LG_LOG_DEFECT], q->iterations};
  for (int64_t j = 0; j < na; j++) {
    if (is_soft(m, q, j)) continue;
    double most = 0;
    for (int64_t k = 0; k <= q->horizon; k++) {
      if (m->active[k * na + j] == 0) continue;
      double h = m->sign[j] * (q->rows[k * m->nr + m->row[j]] - q->limit[j]);
      if (j >= m->ns) h = fabs(h);
      if (isnan(h)) h = INFINITY;
      if (h > most) most = h;
    }
    if (most > o->acceptable) v.off += most;
    v.worst = larger(v.worst, most);
  }
  if (!isfinite(v.cost)) v.off = v.cost = INFINITY;
  return v;
}

/* Whether a plan exceeds hard rows by less than another, or as little and costs less. */
static int is_better(const lg_settings *o, const lg_verdict *one, const lg_verdict *other)
{
  const int is_apart = fabs(one->off - other->off) > o->acceptable;
  return is_apart ? one->off < other->off : one->cost < other->cost;
}

/* Costs of later plans: what counts as usual, older ones less. */
static void usual(const lg_loop *c, double cost, double fading)
{
  if (!isfinite(cost)) return;
  c->state[LG_LATELY] = larger(cost, fading * c->state[LG_LATELY]);
  c->state[LG_LARGEST] = larger(cost, c->state[LG_LARGEST]);
}

static void drop_first(const lg_model *m, const lg_loop *c)
{
  double *times = queue_times(m, c), *inputs = queue_inputs(m, c);
  const int64_t left = (int64_t)--c->state[LG_QUEUED];
  memmove(times, times + 1, (size_t)left * sizeof(double));
  memmove(inputs, inputs + m->nv, (size_t)(left * m->nv) * sizeof(double));
}

/* Whether another answer that acts from a time on has no place in the queue. One for the same time as
 * the last takes its place. */
static int is_full(const lg_model *m, const lg_loop *c, double t)
{
  const int64_t queued = (int64_t)c->state[LG_QUEUED];
  return (c->delay > 0 || c->ramps) && queued == c->queue && t > queue_times(m, c)[queued - 1] + c->early;
}

/* Keep an answer in mind until it has taken effect. Where there is no place the answer is the last
 * one again. */
static void remember(const lg_model *m, const lg_loop *c, double t, const double *u)
{
  if (c->delay == 0 && !c->ramps) c->state[LG_QUEUED] = 0;
  if (is_full(m, c, t)) return;
  int64_t at = (int64_t)c->state[LG_QUEUED];
  if (at > 0 && t <= queue_times(m, c)[at - 1] + c->early) at--;
  c->state[LG_QUEUED] = (double)(at + 1);
  queue_times(m, c)[at] = t;
  copy(queue_inputs(m, c) + at * m->nv, u, m->nv);
}

/* Where controls are from which the next answer is reached: as the reference has them before the first
 * one; of answers that another has replaced only where they led. */
static void begin_ramps(const lg_model *m, const lg_task *q, const lg_loop *c)
{
  double *const times = queue_times(m, c), *const inputs = queue_inputs(m, c);
  if (c->state[LG_QUEUED] == 0) {
    double x[m->nq];
    put_beside(m, q, c, x);
    copy(inputs, x + measured(m, c), m->nv);
    times[0] = c->now - c->held, c->state[LG_QUEUED] = 1;
  }
  while (c->state[LG_QUEUED] > 2 && times[2] <= c->now + c->early) {
    const int64_t queued = (int64_t)c->state[LG_QUEUED];
    double led[m->nv];
    c->state[LG_QUEUED] = 2;
    for (int64_t i = 0; i < m->nv; i++) led[i] = position(m, c, times[2], i);
    c->state[LG_QUEUED] = (double)queued;
    drop_first(m, c);
    copy(inputs, led, m->nv);
  }
}

/* After a jump of the clock, back or on by a horizon, only the last answer counts, as one that acts
 * from now on. */
static void keep_to_clock(const lg_model *m, const lg_task *q, const lg_loop *c, double t)
{
  const double passed = t - c->state[LG_CLOCK], span = (double)q->horizon * q->dt;
  const int follows = passed >= -c->early && passed <= span + c->early;
  if (c->state[LG_CALLED] != 0 && !follows) {
    while (c->state[LG_QUEUED] > 1) drop_first(m, c);
    if (c->state[LG_QUEUED] > 0) queue_times(m, c)[0] = t;
    if (c->biased > 0) *bias_of(m, c).has_seen = 0;
  }
  c->state[LG_CLOCK] = t, c->state[LG_CALLED] = 1;
}

/* Nodes of a plan without its gains and multipliers, as a start. */
static lg_verdict looked_at(const lg_model *m, lg_task *q, const lg_settings *o)
{
  q->resume = LG_FRESH, q->max_iterations = 0, q->of = LG_OF_STEPS;
  const int status = lg_newton_solve(m, q, o);
  memset(q->K, 0, (size_t)(q->horizon * m->nv * m->nx) * sizeof(double));
  lg_verdict v = verdict(m, q, o, 0);
  if (status == LG_NOT_FINITE) v.off = v.cost = INFINITY;
  return v;
}

/* The plan of the initial guess. Of states with defects, as those at rest, the cost is low: what counts
 * is the rollout of their inputs. */
static lg_verdict guessed(const lg_model *m, lg_task *q, const lg_settings *o, const lg_loop *c,
                          int must_roll_out)
{
  q->starts = c->starts;
  lg_newton_start(m, q, o);
  lg_verdict v = looked_at(m, q, o);
  if (must_roll_out && v.defect > o->acceptable) {
    q->starts = LG_OWN;
    lg_newton_start(m, q, o);
    v = looked_at(m, q, o);
  }
  return v;
}

/* Whether there is no time for more. */
static int is_over(const lg_task *q) { return q->watch && q->watch(q->log); }

static void tell(lg_loop *c, int status, const lg_verdict *v, int is_step)
{
  c->cost = v->cost, c->own_cost = v->own, c->violation = v->worst, c->iterations = v->steps;
  c->defect = v->defect;
  c->ended = status, c->stepped = is_step;
}

/* Whether all steps of the plan solve their equations, which those of implicit methods may not. */
static int is_resolved(const lg_model *m, lg_task *q)
{
  lg_state own, *s = &own;
  if (!m->resolved.call) return 1;
  open_task(m, q, s);
  const double *given[] = {q->t, q->plan, q->plan + (q->horizon + 1) * m->nq, q->p, q->steps};
  call(&m->resolved, q->horizon, given, &s->t_cost, s->scratch);
  for (int64_t k = 0; k < q->horizon; k++)
    if (!(s->t_cost[k] <= 1)) return 0;
  return 1;
}

/* By how much a hard row is exceeded at the second node, at controls of the first two, behind a step in
 * so many parts. */
static double excess_behind(const lg_model *m, const lg_task *q, lg_state *s, int64_t j, int64_t parts,
                            const double *u)
{
  double x[m->nq], rows[m->nr + 1], cost;
  rows[m->nr] = 0; /* gcc warns if there are no rows: nothing else writes it */
  in_parts(m, q, s, q->t[0], q->x0, u, q->steps[0], parts, x);
  const double *in[] = {q->t + 1, x, u + m->nu, q->x_ref + m->nq, q->u_ref + m->nu, q->p,
                        q->w + m->weights, q->steps + 1};
  double *const out[] = {&cost, rows};
  call(&m->costs, 1, in, out, s->scratch);
  const double h = m->sign[j] * (rows[m->row[j]] - q->limit[j]);
  return isnan(h) ? INFINITY : h;
}

/* Least such excess, from `u` on, which becomes the controls there: one control after the other goes to
 * that of its limits at which it is less. -1 unless it rises from there on, also next to the limits:
 * less may be in between. -1 as well where controls are found that keep the row. */
static double least_excess(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o,
                           int64_t j, int64_t parts, double *u)
{
  static const double shares[] = LG_REACH_SHARES;
  enum { LAST = sizeof shares / sizeof *shares - 1 };
  double h[LAST + 1], least = INFINITY;
  int moves = 1, rises = 1;
  for (int round = 0; moves && round < LG_REACH_ROUNDS; round++) {
    moves = 0, rises = 1;
    for (int64_t i = 0; i < 2 * m->nv; i++) {
      double *const own = u + i / m->nv * m->nu + m->controls[i % m->nv], was = *own;
      const double low = q->lower[i % m->nv], high = q->upper[i % m->nv];
      if (!isfinite(high - low)) return -1;
      for (int l = 0; l <= LAST; l++) {
        *own = low + shares[l] * (high - low);
        h[l] = excess_behind(m, q, s, j, parts, u);
        if (h[l] <= o->acceptable) return -1;
      }
      const int is_low = h[0] < h[LAST];
      for (int l = 1; l <= LAST; l++) rises = rises && (is_low ? h[l] >= h[l - 1] : h[l] <= h[l - 1]);
      least = smaller(h[0], h[LAST]);
      *own = h[0] == h[LAST] ? was : is_low ? low : high;
      moves = moves || *own != was;
    }
  }
  return rises && !moves ? least : -1;
}

/* Whether the start exceeds a hard row so much that the second node does, too, whatever controls do.
 * Then there is no plan, and controls of least excess of this row are in `u`. The corner across has to
 * say so as well, as a product of controls rises from either. If the step of the plan does not follow
 * its motion, shorter ones say so, and that the step exceeds some row there is enough.
 *
 * For each row that the start exceeds, either corner takes at most LG_REACH_ROUNDS rounds. A round is over nv
 * controls at two nodes, each at all LG_REACH_SHARES. These are `reach_steps` of the table for each control
 * and row. Each step has up to LG_REACH_PARTS parts. The watch is asked before each row. */
static int is_out_of_reach(const lg_model *m, lg_task *q, const lg_settings *o, double *u)
{
  lg_state own, *s = &own;
  double x[m->nq], rows[m->nr + 1], cost, found[2 * m->nu], across[2 * m->nu];
  if (q->horizon < 2 || m->nf > 0 || m->ns == 0) return 0;
  open_task(m, q, s);
  copy(found, q->u_ref, 2 * m->nu);
  for (int64_t i = 0; i < 2 * m->nv; i++) {
    double *const v = found + i / m->nv * m->nu + m->controls[i % m->nv];
    *v = clip(*v, q->lower[i % m->nv], q->upper[i % m->nv]);
  }
  const int64_t parts = resolved_step(m, q, s, o, q->t[0], q->x0, found, q->steps[0], x);
  const double *in[] = {q->t, q->x0, found, q->x_ref, q->u_ref, q->p, q->w, q->steps};
  double *const out[] = {&cost, rows};
  call(&m->costs, 1, in, out, s->scratch);
  for (int64_t j = 0; j < m->ns && parts > 0; j++) {
    double by_step = -INFINITY;
    if (m->active[m->ns + m->ne + j] == 0 || is_soft(m, q, j)) continue;
    if (!(m->sign[j] * (rows[m->row[j]] - q->limit[j]) > o->acceptable)) continue;
    if (is_over(q)) return 0;
    copy(u, found, 2 * m->nu);
    const double least = least_excess(m, q, s, o, j, parts, u);
    if (!(least > o->acceptable)) continue;
    copy(across, u, 2 * m->nu);
    for (int64_t i = 0; i < 2 * m->nv; i++) {
      double *const v = across + i / m->nv * m->nu + m->controls[i % m->nv];
      *v = *v > q->lower[i % m->nv] ? q->lower[i % m->nv] : q->upper[i % m->nv];
    }
    const double other = least_excess(m, q, s, o, j, parts, across);
    if (!(other > o->acceptable)) continue;
    if (other < least) copy(u, across, 2 * m->nu);
    for (int64_t l = 0; l < m->ns; l++)
      if (m->active[m->ns + m->ne + l] != 0 && !is_soft(m, q, l))
        by_step = larger(by_step, excess_behind(m, q, s, l, 1, u));
    if (by_step > o->acceptable) return 1;
  }
  return 0;
}

/* The same, looked for once a call: of the plan it takes no more than the sizes of states. */
static int is_beyond(const lg_model *m, lg_task *q, const lg_settings *o, lg_loop *c, lg_reach *start)
{
  if (!start->is_known) c->beyond = is_out_of_reach(m, q, o, start->u);
  start->is_known = 1;
  return (int)c->beyond;
}

/* What a plan is worth: as `MPCInfo.of` in Python. Of a new one with open defects nothing is known,
 * however it ended; a real-time step leaves defects of second order, which the next call closes. Of
 * a plan whose defects take half of the digits of start and reference nothing is left to close: the
 * next call begins anew, as behind a plan whose steps do not solve their equations. Where the start
 * says that there is no plan, a lost one leaves controls of least excess. */
static int judged(const lg_model *m, lg_task *q, const lg_settings *o, lg_loop *c, lg_reach *start,
                  int status, const lg_verdict *v, int is_step)
{
  const double size = larger(1, larger(largest(q->x0, m->nq, 0), largest(q->x_ref, m->nq, 0)));
  const int is_lost = status == LG_NOT_FINITE || !(v->defect * sqrt(DBL_EPSILON) <= size)
                      || !is_resolved(m, q);
  c->state[LG_PLANNED] = is_lost ? -1 : 1;
  const int is_open = is_lost || (!is_step && !(v->defect <= o->acceptable));
  if (!is_open && status == LG_INFEASIBLE) return LG_EXCEEDED;
  if (!is_open && !(v->worst > o->acceptable)) return LG_OK;
  if (!is_beyond(m, q, o, c, start)) return LG_UNSOLVED;
  if (is_lost) copy(q->plan + (q->horizon + 1) * m->nq, start->u, m->nu);
  return LG_EXCEEDED;
}

/* Plan anew: from the best of the starts, the last plan among them, to convergence, after some
 * iterations of this call. Where that gains little over the last plan what going on costs is usual
 * from now on. */
static int first(const lg_model *m, lg_task *q, const lg_settings *o, lg_loop *c, lg_reach *start,
                 int64_t taken, double going_on)
{
  int64_t sizes[8], is_last = 0;
  lg_verdict last = {INFINITY, INFINITY, INFINITY, 0, 0, 0}, v;
  const int has_last = c->state[LG_PLANNED] != 0;
  lg_newton_sizes(m, q->horizon, sizes);
  double *const kept = c->other;
  if (has_last) {
    lg_state own, *s = &own;
    open_task(m, q, s);
    for (int64_t i = 0; i < q->horizon * m->nv; i++)
      memset(s->K + i * padded(m->nx), 0, (size_t)padded(m->nx) * sizeof(double));
    later(m, q, s);
    first_state(m, q, s, s->now.x);
    last = looked_at(m, q, o);
    copy(kept, q->plan, sizes[1]);
  }
  v = guessed(m, q, o, c, 0);
  if (has_last && !is_better(o, &v, &last)) {
    copy(q->plan, kept, sizes[1]);
    is_last = 1;
  }
  copy(kept, q->plan, sizes[1]);
  q->max_iterations = c->most - taken < c->first_iterations ? c->most - taken : c->first_iterations;
  const int status = lg_newton_plan(m, q, o);
  v = verdict(m, q, o, q->iterations);
  v.steps += taken;
  if (status == LG_NOT_FINITE) copy(q->plan, kept, sizes[1]);
  const int is_gain = !has_last || (!is_last && o->jump * v.cost < last.cost);
  usual(c, larger(v.cost, is_gain ? 0 : going_on), 0);
  tell(c, status, &v, 0);
  return judged(m, q, o, c, start, status, &v, 0);
}

/* Real-time steps from the plan, of which as many as are left for the call. */
static int stepped(const lg_model *m, lg_task *q, const lg_settings *o, double started,
                   int64_t iterations, int64_t left, lg_verdict *v)
{
  q->start = started;
  q->max_iterations = iterations < left ? iterations : left;
  q->more = left - q->max_iterations;
  const int status = lg_newton_step(m, q, o);
  *v = verdict(m, q, o, 0);
  return status;
}

/* A solve from the plan or from nodes, as far as `most` steps lead, which count for the call. It ends
 * early where all of `few` steps in turn were short; its last entry is the first of the log. */
static int solved(const lg_model *m, lg_task *q, const lg_settings *o, int64_t resume, int64_t most,
                  int64_t few, lg_verdict *v)
{
  const double tolerance = q->tolerance;
  int64_t taken = 0;
  int status = LG_ITERATIONS, moves = 1;
  q->resume = resume, q->tolerance = o->acceptable, q->of = LG_OF_STEPS;
  while (status == LG_ITERATIONS && moves && taken < most && !(taken > 0 && is_over(q))) {
    q->max_iterations = most - taken < few ? most - taken : few;
    status = lg_newton_solve(m, q, o);
    taken += q->iterations, q->resume = LG_RESUME;
    moves = q->iterations > 0 && q->iterations < few; /* none if time ended before the first */
    for (int64_t i = 1; i <= q->iterations; i++)
      moves = moves || q->log[i * LG_LOG + LG_LOG_STEP] >= o->real_time_short;
  }
  q->tolerance = tolerance;
  taken += v->steps;
  *v = verdict(m, q, o, q->iterations);
  v->steps = taken;
  copy(q->log, q->log + q->iterations * LG_LOG, LG_LOG);
  return status;
}

/* Whether a solve leads to a plan: also an iterate that is not optimal and keeps all rows. */
static int is_plan(const lg_task *q, const lg_settings *o, int status, const lg_verdict *v)
{
  const int keeps = v->worst <= o->acceptable && v->defect <= o->acceptable;
  return status == LG_CONVERGED || (status != LG_NOT_FINITE && !q->elastic && keeps);
}

/* Whether hard rows that steps leave violated must be. So says a start that is too far outside. So say
 * steps that settled, or the elastic problem solved from their plan; and from a new guess no plan is
 * found: its solve says infeasible, or
 * took half of the iterations of a first plan, or the elastic problem solved from it found none
 * either. A plan that is found is the answer. Else the plan of the steps goes on, with the first inputs
 * of least violation. No other guess is tried in later calls that violate by more than half of what
 * was certified; the share doubles in a horizon. */
static int certified(const lg_model *m, lg_task *q, const lg_settings *o, lg_loop *c, lg_reach *start,
                     int status, lg_verdict *found)
{
  double *const holds = &c->state[LG_CERTIFIED];
  *holds = found->worst > o->acceptable ? *holds * exp2(1 / (double)q->horizon) : 0;
  if (status == LG_NOT_FINITE || !(found->worst > o->acceptable) || !can_relax(m, q)) return status;
  lg_verdict other = *found;
  double last[LG_LOG], first_u[m->nu], *const u = q->plan + (q->horizon + 1) * m->nq;
  const double worst = found->worst;
  int is_local = status == LG_INFEASIBLE, is_found = 0, ended = LG_ITERATIONS;
  int is_sought = *holds > 0 && worst > *holds;
  if (is_local && is_sought) return status;
  if (is_beyond(m, q, o, c, start) && is_local) return status;
  const lg_task before = *q;
  swap_plan(m, q, c->other, 0), copy(last, q->log, LG_LOG), copy(first_u, u, m->nu);
  if (!is_local && c->most > found->steps && !is_over(q)) {
    const int64_t half = (c->most - found->steps + 1) / 2;
    ended = solved(m, q, o, LG_DECIDED, half, (int64_t)o->real_time_more, &other);
    is_found = is_plan(q, o, ended, &other);
    is_local = ended == LG_INFEASIBLE;
    if (is_local) copy(first_u, u, m->nu);
  }
  for (int way = 0; way < 2 && !is_found && !c->beyond && !(is_local && is_sought); way++) {
    const int64_t taken = other.steps, left = c->most - taken;
    if (left <= 0 || is_over(q)) break;
    guessed(m, q, o, c, 0);
    const int64_t few = way == 0 ? (int64_t)o->real_time_more : left; /* another way follows */
    ended = solved(m, q, o, way == 0 ? LG_FRESH : LG_DECIDED, left, few, &other);
    is_found = is_plan(q, o, ended, &other);
    if (is_found) c->cause = LG_JUMPED;
    is_local = is_local || ended == LG_INFEASIBLE;
    is_sought = way > 0 || ended == LG_INFEASIBLE || 2 * (other.steps - taken) >= c->first_iterations;
    if (!is_found && is_local && is_sought) *holds = worst / 2;
  }
  if (is_found) {
    usual(c, other.cost, 1);
    *found = other;
    return ended == LG_CONVERGED ? ended : LG_ITERATIONS;
  }
  found->steps = other.steps;
  swap_plan(m, q, c->other, 1), copy(q->log, last, LG_LOG), copy(u, first_u, m->nu);
  q->elastic = before.elastic, q->mu = before.mu, q->penalty = before.penalty;
  return c->beyond || (is_local && is_sought) ? LG_INFEASIBLE : LG_ITERATIONS;
}

/* A plan from the last one, or a new one; what the call answers with. */
static int plan_on(const lg_model *m, lg_task *q, const lg_settings *o, lg_loop *c)
{
  double *const state = c->state;
  double beyond_u[2 * m->nu];
  lg_reach start = {0, beyond_u};
  c->cause = LG_GOES_ON, c->beyond = 0;
  q->start = state[LG_STARTED];
  if (!(state[LG_PLANNED] > 0)) {
    c->cause = state[LG_PLANNED] == 0 ? LG_FIRST : LG_FAILED;
    return first(m, q, o, c, &start, 0, 0);
  }
  int64_t left = 2 * (c->iterations_most + (int64_t)o->real_time_more);
  if (left > c->most) left = c->most;
  int due = state[LG_DUE] != 0 && left > 1;
  const double span = (double)q->horizon * q->dt;
  state[LG_DUE] = 0;
  swap_plan(m, q, c->before, 0);
  lg_verdict found, other;
  int status = stepped(m, q, o, state[LG_STARTED], c->iterations_most, left - due, &found);
  left -= found.steps;
  due = due && !is_over(q);
  const double dearest = found.cost;
  if (status == LG_NOT_FINITE) swap_plan(m, q, c->before, 1);
  if (due) {
    swap_plan(m, q, c->other, 0);
    guessed(m, q, o, c, 1);
    const int64_t most = c->iterations_most > 1 ? c->iterations_most - 1 : 1;
    const int another = stepped(m, q, o, q->t[0], most, left, &other);
    const int64_t taken = found.steps + other.steps;
    usual(c, found.cost, 0);
    if (another != LG_NOT_FINITE && (status == LG_NOT_FINITE || is_better(o, &other, &found)))
      status = another, found = other, c->cause = LG_JUMPED;
    else
      swap_plan(m, q, c->other, 1);
    found.steps = taken;
  } else if (c->restarts > 0) {
    const double fading = pow(o->jump_fading, -larger(0, (q->t[0] - state[LG_STARTED]) / span));
    const double recent = larger(fading * state[LG_LATELY], o->jump_noise * state[LG_LARGEST]);
    const int jumps = found.cost > o->jump * recent;
    const int goes_on = jumps && !is_over(q);
    if (goes_on && c->restarts > 1 && found.steps < c->most) {
      c->cause = LG_JUMPED;
      q->start = q->t[0];
      state[LG_PLANNED] = status == LG_NOT_FINITE ? -1 : 1;
      return first(m, q, o, c, &start, found.steps, found.cost);
    }
    state[LG_DUE] = jumps;
    double going_on = found.cost;
    if (goes_on && status != LG_NOT_FINITE && found.steps == c->iterations_most && left > 0) {
      swap_plan(m, q, c->other, 0);
      const int more = stepped(m, q, o, q->t[0], (int64_t)o->real_time_more, left, &other);
      other.steps += found.steps;
      if (more == LG_NOT_FINITE)
        swap_plan(m, q, c->other, 1), found.steps = other.steps;
      else
        status = more, found = other;
    }
    usual(c, larger(dearest, going_on), fading);
  }
  status = certified(m, q, o, c, &start, status, &found);
  tell(c, status, &found, 1);
  return judged(m, q, o, c, &start, status, &found, 1);
}

/* What a plan begins with. */
static double planned(const lg_model *m, const lg_task *q, const lg_loop *c, int64_t i)
{
  const double v = q->plan[(q->horizon + 1) * m->nq + m->controls[i]];
  return c->held > 0 ? q->plan[measured(m, c) + i] + c->held * v : v;
}

/* Inputs to go on with where there is no answer: the last ones, else those of the plan, else those of
 * the reference, nominal ones where that is no number. */
static int hold(const lg_model *m, const lg_task *q, const lg_loop *c)
{
  for (int64_t i = 0; i < m->nv; i++) {
    double v = q->u_ref[m->controls[i]];
    if (c->held > 0) v = q->x_ref[measured(m, c) + i];
    if (c->state[LG_ANSWERED] != 0) v = c->state[LG_NUMBERS + i];
    else if (c->state[LG_PLANNED] != 0) v = planned(m, q, c, i);
    if (!isfinite(v)) v = c->nominal[m->controls[i]];
    c->u[i] = clip(v, c->lower[i], c->upper[i]);
  }
  return LG_HELD;
}

/* Whether a state is off its group, or no state. */
static int is_odd(const lg_model *m, const lg_task *q, const lg_loop *c)
{
  double x[m->nq], given[m->nq];
  const double *in[] = {given};
  double *const out[] = {x};
  copy(given, c->x, measured(m, c));
  put_beside(m, q, c, given);
  call(&m->element, 1, in, out, q->work);
  for (int64_t i = 0; i < measured(m, c); i++)
    if (!(fabs(x[i] - c->x[i]) <= c->odd)) return 1;
  return 0;
}

/* The answer to a state: `x` at time `t` of the loop, to `u` of it; returns what it is worth. */
LG_EXPORT int lg_loop_call(const lg_model *m, lg_task *q, const lg_settings *o, lg_loop *c)
{
  double x[m->nq];
  const double t = c->now, start = t + c->delay;
  const double *const x_ref = q->x_ref, *const u_ref = q->u_ref;
  if (c->odd > 0 && is_odd(m, q, c)) return LG_ODD;
  c->crowded = 0;
  keep_to_clock(m, q, c, t);
  memset(x, 0, (size_t)m->nq * sizeof(double));
  copy(x, c->x, measured(m, c));
  if (c->biased > 0) observe(m, q, c, t, x);
  if (c->ramps) begin_ramps(m, q, c);
  while (c->delay > 0 && !c->ramps && c->state[LG_QUEUED] > 1 && queue_times(m, c)[1] <= t + c->early)
    drop_first(m, c); /* replaced by a later one */
  const int is_equal = has_equal_steps(q);
  double passed = 0;
  for (int64_t k = 0; k <= q->horizon; k++) {
    q->t[k] = start + (is_equal ? q->dt * (double)k : passed);
    if (k < q->horizon) passed += q->steps[k];
  }
  for (int64_t k = 0; m->blocks && k <= q->horizon; k++)
    c->begins[(k + 1) * m->nu - 2 * m->nv - 2] = q->t[k];
  if (c->delay > 0 && !run_on(m, q, o, c, t, start, c->biased > 0 ? bias_of(m, c).inputs : 0, x)) {
    c->status = hold(m, q, c);
    remember(m, c, start, c->u);
    return (int)c->status;
  }
  if (c->biased > 0) {
    *bias_of(m, c).has_seen = 1, *bias_of(m, c).seen_t = t;
    copy(bias_of(m, c).seen_x, c->x, measured(m, c));
  }
  c->crowded = is_full(m, c, start);
  if (c->crowded) {
    c->status = hold(m, q, c);
    return (int)c->status;
  }
  if (c->biased > 0) aim(m, q, c);
  put_beside(m, q, c, x);
  copy(q->x0, x, m->nq);
  c->status = plan_on(m, q, o, c);
  q->x_ref = x_ref, q->u_ref = u_ref;
  if (c->state[LG_PLANNED] > 0) c->state[LG_STARTED] = start;
  int fine = 1;
  for (int64_t i = 0; i < m->nv; i++) {
    c->u[i] = planned(m, q, c, i);
    fine = fine && isfinite(c->u[i]);
  }
  if (!fine) c->status = hold(m, q, c);
  for (int64_t i = 0; i < m->nv; i++) c->u[i] = clip(c->u[i], c->lower[i], c->upper[i]);
  copy(c->state + LG_NUMBERS, c->u, m->nv);
  c->state[LG_ANSWERED] = 1;
  remember(m, c, start, c->u);
  return (int)c->status;
}

/* Numbers of the state of a loop, and of its memory for other plans. */
LG_EXPORT void lg_loop_sizes(const lg_model *m, int64_t N, int64_t queue, int64_t rates, int64_t *sizes)
{
  const int64_t all = m->nx + m->nv + rates;
  int64_t own[8];
  lg_newton_sizes(m, N, own);
  sizes[0] = LG_NUMBERS + m->nv + queue * (1 + m->nv);
  if (rates > 0) sizes[0] += 3 + 2 * m->nq + m->nu + m->nv + rates + all * all;
  sizes[1] = own[1] + (N + 1) * m->nr + N * m->nv * m->nx + 2 * (m->nr + m->nx + m->nv) + own[7];
  sizes[2] = sizeof(lg_loop);
}
