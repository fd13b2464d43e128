/* A controller around the interior point: what `MPC` does with `InteriorPointSolver`, call by call.
 *
 * The header before this text declares lg_mpc, whose memory holds all there is; `attach` makes the
 * problem of it. Constants LG_MPC_... are those of the header. */
#include <float.h>
#include <string.h>

enum { LG_AUTO = 0, LG_STATES = 1, LG_ROLLOUT = 2 };

/* How some iterations went. */
typedef struct {
  int status;
  int64_t steps;
  double excess, violation; /* of hard one-sided rows in all; the largest, defects included */
  double gap;
  int is_unknown; /* some row is no number */
} lg_run;

/* x as an element of the state's group; 0 if it is none. */
static int element(const double *x, double *state, double *scratch)
{
  int is_off = 0;
  if (!all_finite(x, NQ)) return 0;
  lg_normalize(x, state, scratch);
  for (int i = 0; i < NQ; i++) {
    const double off = fabs(state[i] - x[i]);
    if (!(off <= LG_ELEMENT_TOLERANCE)) return 0;
    is_off |= off > LG_ELEMENT_ROUNDING;
  }
  if (!is_off)
    for (int i = 0; i < NQ; i++) state[i] = x[i];
  return 1;
}

/* How far a row is outside: what is no number is infinitely far. */
static double outside(const lg_problem *q, int64_t k, int j)
{
  const double h = q->sign[j] * (q->rows[k * NR + q->row[j]] - q->limit[j]);
  return h <= 0 ? 0 : h > 0 ? h : INFINITY;
}

/* Whether a row that counts is no number: nobody vouches for such a plan. */
static int is_unknown(const lg_problem *q)
{
  for (int64_t k = 0; k <= q->horizon; k++) {
    for (int j = 0; j < NS; j++)
      if (q->active[k * NS + j] != 0 && isnan(q->rows[k * NR + q->row[j]])) return 1;
    for (int j = 0; j < NE; j++)
      if (q->equal_active[k * NE + j] != 0 && isnan(q->rows[k * NR + q->equal[j]])) return 1;
  }
  return 0;
}

/* Whether a side belongs to the first node alone, where that is free: some start satisfies it. */
static int is_of_start(const lg_problem *q, int j)
{
  int is_later = 0;
  for (int64_t k = 1; k <= q->horizon; k++) is_later |= q->active[k * NS + j] != 0;
  return NF > 0 && q->active[j] != 0 && !is_later;
}

/* Sum of what one-sided hard rows are exceeded by; infinite where a run led nowhere. */
static double excess_of(const lg_problem *q, int status)
{
  double sum = 0;
  for (int j = 0; j < NS; j++) {
    if (isfinite(lg_weight[j])) continue;
    for (int64_t k = 0; k <= q->horizon; k++)
      if (q->active[k * NS + j] != 0) sum += outside(q, k, j);
  }
  return LG_HAS_HARD_LIMITS && status == LG_NOT_FINITE ? INFINITY : sum;
}

/* The largest gap of the nodes where some iterations ended. */
static double gap_of(const lg_problem *q)
{
  lg_state s;
  lay_out(&s, q->work, q->horizon, lg_given.equality_sweeps_most);
  return largest(s.gap, q->horizon * NX, 0);
}

/* The largest violation of a hard row. */
static double worst_of(const lg_problem *q)
{
  double worst = 0;
  for (int64_t k = 0; k <= q->horizon; k++) {
    for (int j = 0; j < NS; j++)
      if (!isfinite(lg_weight[j]) && q->active[k * NS + j] != 0)
        worst = fmax(worst, outside(q, k, j));
    for (int j = 0; j < NE; j++)
      if (q->equal_active[k * NE + j] != 0)
        worst = fmax(worst, fabs(q->rows[k * NR + q->equal[j]] - q->target[j]));
  }
  return worst;
}

static void take_barrier(lg_problem *q, const double barrier[4])
{
  q->mu_first = barrier[0], q->mu_last = barrier[1];
  q->mu_factor = barrier[2], q->mu_power = barrier[3];
}

static void keep(lg_mpc *m, const lg_problem *q, struct lg_mpc_iterate *to)
{
  memcpy(to->x, q->x, sizeof to->x);
  memcpy(to->u, q->u, sizeof to->u);
  memcpy(to->K, q->K, sizeof to->K);
  to->prices = m->prices;
  to->worst = worst_of(q), to->cost = q->cost;
}

static void restore(lg_mpc *m, lg_problem *q, const struct lg_mpc_iterate *from)
{
  m->prices = from->prices;
  q->mu = from->prices.mu, q->step = from->prices.step, q->cost = from->prices.cost;
  memcpy(q->x, from->x, sizeof from->x);
  memcpy(q->u, from->u, sizeof from->u);
  memcpy(q->K, from->K, sizeof from->K);
}

/* Iterate from the nodes of a plan; in real time from its gains and multipliers, too. */
static lg_run run(lg_mpc *m, lg_problem *q, int mode, const struct lg_mpc_iterate *from,
                  const double *x0)
{
  const int is_eager = mode == LG_ROLL_OUT && NS + NE == 0;
  take_barrier(q, mode == LG_REAL_TIME ? lg_real_time : is_eager ? lg_eager : lg_central);
  if (mode == LG_REAL_TIME) q->mu_first = m->highest;
  restore(m, q, from);
  if (mode != LG_REAL_TIME) memset(q->K, 0, sizeof from->K);
  q->resume = mode == LG_REAL_TIME ? LG_WARM : LG_FRESH;
  q->mode = mode;
  q->log[1] = q->log[2] = q->log[3] = NAN;
  lg_run found;
  found.status = lg_solve(q, x0);
  if (mode == LG_REAL_TIME) lg_go_back(q);
  m->prices.mu = q->mu, m->prices.step = q->step, m->prices.cost = q->cost;
  found.steps = q->iterations, found.gap = gap_of(q);
  found.violation = found.status == LG_NOT_FINITE && found.steps == 0 ? NAN : q->violation;
  found.excess = excess_of(q, found.status);
  found.is_unknown = is_unknown(q);
  return found;
}

/* Hard rows at a penalty, but for those that some start satisfies. */
static void soften(lg_mpc *m, lg_problem *q, double penalty)
{
  for (int j = 0; j < NS; j++) {
    const int is_softened = !isfinite(lg_weight[j]) && !is_of_start(q, j);
    m->soft_weight[j] = is_softened ? penalty : q->weight[j];
  }
  q->weight = m->soft_weight;
}

/* A penalty above what the cost gains from a violation near nodes. */
static double first_penalty(lg_problem *q, const struct lg_mpc_iterate *nodes)
{
  memcpy(q->x, nodes->x, sizeof nodes->x);
  memcpy(q->u, nodes->u, sizeof nodes->u);
  return lg_given.penalty_first * (1 + lg_slope(q));
}

#if LG_HAS_HARD_LIMITS

static int is_open(const lg_run *found) { return !(found->violation <= LG_TOLERANCE); }

static lg_run run_at(lg_mpc *m, lg_problem *q, int mode, double penalty, int lower,
                     const struct lg_mpc_iterate *from, const double *x0)
{
  double tens = 1;
  for (int i = 0; i < lower; i++) tens *= 10;
  soften(m, q, penalty / tens);
  return run(m, q, mode, from, x0);
}

/* Solve with hard rows at a penalty. Where defects stay open at it a lower one leads to a plan that
 * is dynamically feasible, and from that it rises again as far as defects close. That tells where
 * the violation then costs far more than all else and hardly falls any more. The number of the
 * iterate that was tried, and how it went. */
static int penalised(lg_mpc *m, lg_problem *q, int mode, const double *x0, lg_run *answer)
{
  const double full = first_penalty(q, &m->from);
  const lg_run first = run_at(m, q, mode, full, 0, &m->from, x0);
  lg_run higher = first, found = first;
  double excess = INFINITY;
  int lower = 0, is_told = 0;
  keep(m, q, &m->tried[0]);
  while (is_open(&higher) && lower < lg_given.penalty_lowest) {
    lower += (int)lg_given.penalty_lower;
    higher = run_at(m, q, mode, full, lower, &m->from, x0);
  }
  while (!is_open(&higher)) {
    const double before = excess;
    double tens = 1;
    found = higher, excess = found.excess;
    keep(m, q, &m->tried[1]);
    if (lower == 0 || excess <= LG_TOLERANCE) return *answer = found, 1;
    for (int i = 0; i < lower; i++) tens *= 10;
    is_told = excess > lg_given.restoration_decrease * before &&
              full / tens * excess > lg_given.penalty_dominant * fabs(q->cost);
    higher = run_at(m, q, mode, full, --lower, &m->tried[1], x0);
  }
  return *answer = is_told ? found : first, is_told;
}
#endif

/* Limits of the controls for the parameters there are; returns by what they contradict each other:
 * both are the value between them then, or the one next to it that the system allows. */
static double input_limits(const lg_mpc *m, double *low, double *high)
{
  double most = 0;
  for (int i = 0; i < NV; i++) low[i] = lg_lower[i], high[i] = lg_upper[i];
  tighten(m, low, high);
  for (int i = 0; i < NV; i++) {
    if (!(low[i] > high[i])) continue;
    const double between = clip((low[i] + high[i]) / 2, lg_lower[i], lg_upper[i]);
    if (low[i] - high[i] > LG_ROUNDING * fmax(1.0, fmax(fabs(low[i]), fabs(high[i]))))
      most = fmax(most, fmax(low[i] - between, between - high[i]));
    low[i] = high[i] = between;
  }
  return most;
}

static void prepare(lg_mpc *m, lg_problem *q, double t)
{
  m->contradiction = input_limits(m, m->lower, m->upper);
  for (int i = 0; i < NV; i++) { /* a barrier divides by distances */
    const double middle = (m->lower[i] + m->upper[i]) / 2;
    const double need = LG_LEAST_WIDTH * fmax(1.0, fabs(middle)) / 2;
    if (m->upper[i] - m->lower[i] < 2 * need)
      m->lower[i] = middle - need, m->upper[i] = middle + need;
  }
  attach(m, q);
  soft_weights(m, m->soft_weight);
  q->weight = m->soft_weight;
  for (int k = 0; k <= LG_MPC_N; k++) m->t[k] = t + LG_MPC_DT * k;
}

/* The highest weight of the barrier in the next call, by how this one ended. */
static void adapt(lg_mpc *m, const lg_problem *q, const lg_run *found)
{
  const double *last = q->log + last_entry(q) * LG_LOG;
  if (found->status == LG_NOT_FINITE) return;
  const int is_short = q->step < lg_given.step_short && fmax(last[1], last[2]) > lg_given.far;
  if (is_short && found->excess <= LG_MPC_EXCESS) /* a price of hard rows is another problem */
    m->highest = fmin(lg_given.real_time_barrier_most, lg_given.real_time_barrier_rise * m->highest);
  else if (q->step >= lg_given.step_good)
    m->highest = fmax(lg_real_time[0], lg_real_time[2] * m->highest);
}

/* Plan anew from the cheapest start, to convergence. */
static int plan(lg_mpc *m, double t, const double *x0)
{
  lg_problem q;
  prepare(m, &q, t);
  const double gap = lg_start(&q, x0, LG_STARTS);
  int mode = LG_ROLL_OUT;
  if (LG_SHOOTING != LG_ROLLOUT && !(gap <= lg_given.defect_closed)) mode = LG_FREE_STATES;
  const int needs_states = LG_SHOOTING == LG_AUTO && LG_HAS_HARD_ROWS;
  if (LG_SHOOTING == LG_STATES || needs_states) mode = LG_FREE_STATES;
  memcpy(m->from.x, q.x, sizeof m->from.x);
  memcpy(m->from.u, q.u, sizeof m->from.u);
  q.max_iterations = LG_MPC_FIRST_ITERATIONS, q.tolerance = LG_TOLERANCE;
  lg_run found = run(m, &q, mode, &m->from, x0);
  keep(m, &q, &m->best);
  if ((found.status == LG_STALLED || found.status == LG_NOT_FINITE) && LG_SHOOTING == LG_AUTO) {
    const int another = mode == LG_ROLL_OUT ? LG_FREE_STATES : LG_ROLL_OUT;
    const lg_run other = run(m, &q, another, &m->from, x0);
    if (other.status == LG_CONVERGED || found.status == LG_NOT_FINITE) {
      found = other;
      keep(m, &q, &m->best);
    }
  }
  int is_stuck = 0;
#if LG_HAS_HARD_LIMITS
  is_stuck = (found.status == LG_STALLED || found.status == LG_NOT_FINITE) &&
             (found.violation > LG_TOLERANCE || found.excess > LG_TOLERANCE);
  if (is_stuck) {
    lg_run other;
    const int number = penalised(m, &q, mode, x0, &other);
    const int is_closed = found.violation > LG_TOLERANCE && other.violation <= LG_TOLERANCE;
    const int is_worse = other.violation > found.violation; /* defects, equalities for an excess */
    if (is_closed || (other.excess < found.excess && !is_worse))
      found = other, m->best = m->tried[number];
  }
  is_stuck = is_stuck && found.excess > lg_given.acceptable;
#endif
  restore(m, &q, &m->best);
  m->is_planned = found.status != LG_NOT_FINITE && !found.is_unknown;
  m->is_priced = found.excess > LG_MPC_EXCESS;
  m->highest = lg_real_time[0];
  m->iterations = (int)found.steps, m->cost = m->best.cost, m->violation = m->best.worst;
  if (found.status == LG_NOT_FINITE) {
    memcpy(q.x, m->from.x, sizeof m->from.x);
    memcpy(q.u, m->from.u, sizeof m->from.u);
    return LG_MPC_UNSOLVED;
  }
  if (found.is_unknown) return LG_MPC_UNSOLVED;
  if (found.status == LG_CONVERGED)
    return m->violation > LG_TOLERANCE ? LG_MPC_INFEASIBLE : LG_MPC_OK;
  const int is_stalled = found.status == LG_STALLED;
  const int is_left_open = found.gap > lg_given.acceptable;
  if (is_stalled && is_left_open) return LG_MPC_UNSOLVED; /* what is no motion is no plan */
  if (!(m->violation > lg_given.acceptable)) return LG_MPC_OK;
  const int is_exceeded = is_stuck || (is_stalled && found.excess > lg_given.acceptable);
  return !is_left_open && is_exceeded ? LG_MPC_INFEASIBLE : LG_MPC_UNSOLVED;
}

/* Rows of numbers so many steps later; the last ones are held. */
static void later(double *to, const double *from, int count, int size, double whole)
{
  for (int k = 0; k < count; k++) {
    const int at = (int)clip(k + whole, 0.0, (double)(count - 1));
    for (int i = 0; i < size; i++) to[k * size + i] = from[at * size + i];
  }
}

/* The last plan at the times of the nodes, with gains and multipliers; beyond its end the last
 * input is held. */
static void move_on(lg_mpc *m, lg_problem *q, double steps, double whole)
{
  for (int k = 0; k <= LG_MPC_N; k++) {
    const double place = k + steps;
    const double held = fmin(fmax(floor(place + lg_given.same_node), 0.0), (double)(LG_MPC_N - 1));
    const int at = (int)held;
    const double share = clip(place - held, 0.0, 1.0);
    lg_between(q->x + at * NQ, q->x + (at + 1) * NQ, &share, m->from.x + k * NQ,
               q->work);
    if (k < LG_MPC_N)
      for (int i = 0; i < NU; i++) m->from.u[k * NU + i] = q->u[at * NU + i];
  }
  later(m->from.K, q->K, LG_MPC_N, NV * NX, whole);
  later(m->from.prices.below, q->below, LG_MPC_N, NV, whole);
  later(m->from.prices.above, q->above, LG_MPC_N, NV, whole);
  later(m->from.prices.price, q->price, LG_MPC_N + 1, NS, whole);
  later(m->from.prices.relief, q->relief, LG_MPC_N + 1, NS, whole);
  later(m->from.prices.equal_price, q->equal_price, LG_MPC_N + 1, NE, whole);
}

/* Real-time steps from the last plan, moved on. */
static int improve(lg_mpc *m, double t, const double *x0)
{
  lg_problem q;
  /* a clock that jumped says no more than no time, or that of a whole plan */
  const double steps = clip((t - m->t[0]) / LG_MPC_DT, 0.0, LG_MPC_N), whole = nearbyint(steps);
  const double slack = fmax(
      lg_given.same_node, lg_given.same_node_roundings * DBL_EPSILON * fabs(t) / LG_MPC_DT);
  const int is_shift = fabs(steps - whole) < slack && whole >= 0 && whole <= 1;
  double first[NU];
  prepare(m, &q, t);
  memcpy(first, q.u, sizeof first);
  m->from.prices = m->prices;
  if (is_shift) {
    memcpy(m->from.x, q.x, sizeof m->from.x);
    memcpy(m->from.u, q.u, sizeof m->from.u);
    memcpy(m->from.K, q.K, sizeof m->from.K);
  } else {
    move_on(m, &q, steps, whole);
  }
  q.shift = is_shift && whole == 1;
  q.max_iterations = LG_MPC_ITERATIONS, q.tolerance = 0;
  const int was_priced = m->is_priced;
  if (was_priced) soften(m, &q, first_penalty(&q, &m->from));
  const lg_run found = run(m, &q, LG_REAL_TIME, &m->from, x0);
  adapt(m, &q, &found);
  if (found.status != LG_NOT_FINITE) m->is_priced = found.excess > LG_MPC_EXCESS;
  int is_best = 0;
  if (found.status == LG_STALLED && found.steps == 0)
    is_best = fmax(fmax(q.log[1], q.log[2]), q.log[3] - q.log[6]) <= lg_given.acceptable;
  m->iterations = (int)found.steps, m->cost = q.cost, m->violation = worst_of(&q);
  if (found.status == LG_NOT_FINITE) {
    memcpy(q.x, m->from.x, sizeof m->from.x);
    memcpy(q.u, m->from.u, sizeof m->from.u);
    memcpy(q.u, first, sizeof first);
  }
  if (found.status == LG_NOT_FINITE || found.is_unknown ||
      (found.status == LG_STALLED && !found.steps && !is_best && m->violation <= LG_MPC_EXCESS)) {
    m->is_planned = 0; /* a plan that leads nowhere: the next call makes a new one */
    return LG_MPC_UNSOLVED;
  }
  /* exceeded next to the optimum at a price; far from it nobody can say yet */
  const double off = fmax(q.stationarity, q.violation);
  const int is_settled =
      off <= lg_given.acceptable || (off <= lg_given.far && q.step >= lg_given.step_good);
  if (was_priced && found.excess > LG_MPC_EXCESS && is_settled) return LG_MPC_INFEASIBLE;
  return m->violation > lg_given.acceptable ? LG_MPC_UNSOLVED : LG_MPC_OK;
}

/* Inputs to go on with when there is no answer: the last ones, else those of the reference; nominal
 * ones where inputs are rates of what is to be held. */
static int hold(lg_mpc *m, double u[])
{
  double low[NV], high[NV];
  input_limits(m, low, high);
  for (int i = 0; i < NV; i++) {
    double v = m->has_answered ? m->last[i] : m->u_ref[0][lg_controls[i]];
    if (m->is_planned && !m->has_answered) v = m->u[0][lg_controls[i]];
    v = LG_HOLDS && isfinite(v) ? clip(v, low[i], high[i]) : lg_nominal[i];
    u[i] = clip(v, lg_lower[i], lg_upper[i]);
  }
  return m->status = LG_MPC_HELD;
}

static int answer(lg_mpc *m, int status, double u[])
{
  for (int i = 0; i < NV; i++)
    if (!isfinite(m->u[0][lg_controls[i]])) return hold(m, u);
  double low[NV], high[NV];
  input_limits(m, low, high);
  if (m->contradiction > 0 && m->is_planned) {
    m->violation = fmax(m->violation, m->contradiction);
    status = LG_MPC_INFEASIBLE;
  }
  for (int i = 0; i < NV; i++) u[i] = m->last[i] = clip(m->u[0][lg_controls[i]], low[i], high[i]);
  m->has_answered = 1;
  return m->status = status;
}

static int is_time(double t)
{
  return fabs(t) * DBL_EPSILON < lg_given.clock_rounding * LG_MPC_PERIOD;
}

#if LG_QUEUE > 0
static void drop_first(lg_mpc *m)
{
  m->queued -= 1;
  for (int k = 0; k < m->queued; k++) {
    m->queue_t[k] = m->queue_t[k + 1];
    for (int i = 0; i < NV; i++) m->queue_u[k][i] = m->queue_u[k + 1][i];
  }
}

/* Keep an answer in mind until it has taken effect. */
static void note(lg_mpc *m, double t, const double *u)
{
  if (m->queued == LG_QUEUE) drop_first(m);
  m->queue_t[m->queued] = t;
  for (int i = 0; i < NV; i++) m->queue_u[m->queued][i] = u[i];
  m->queued += 1;
}

/* Drop answers that later ones replaced. After a jump of the clock, back or on by a horizon, only the
 * last one counts, as one that acts from now on. */
static void keep_to_clock(lg_mpc *m, double t)
{
  const double passed = t - m->clock;
  const int follows = passed >= -LG_EARLY && passed <= LG_MPC_N * LG_MPC_DT + LG_EARLY;
  if (m->has_clock && !follows && m->queued > 0) {
    while (m->queued > 1) drop_first(m);
    m->queue_t[0] = t;
  }
  m->clock = t, m->has_clock = 1;
  while (m->queued > 1 && m->queue_t[1] <= t + LG_EARLY) drop_first(m);
}

/* Move a state on for some seconds under inputs; 0 if it is no number afterwards. */
static int move(const lg_problem *q, lg_state *s, double t, double seconds, const double *u,
                double *x)
{
  const double steps = seconds / LG_MPC_DT;
  const double parts = LG_DISCRETE ? nearbyint(steps) : ceil(steps - LG_EARLY);
  const double h = LG_DISCRETE ? LG_MPC_DT : seconds / parts;
  double after[NQ], e[NX], cost;
  for (double j = 0; j < parts; j++) {
    const double now = t + j * h;
    lg_roll(&now, x, u, x, q->x_ref, q->u_ref, q->p, q->w, &h, after, &cost, e, s->t_rows,
            s->scratch);
    for (int i = 0; i < NQ; i++) x[i] = after[i];
  }
  return all_finite(x, NQ);
}

/* The state when an answer takes effect, under those that are on their way; 0 if it is no number. */
static int predict(lg_mpc *m, double t, double *x)
{
  lg_problem q;
  lg_state s;
  const double end = t + LG_MPC_DELAY;
  double now = t, u[NU];
  int is_finite = 1;
  attach(m, &q);
  lay_out(&s, q.work, q.horizon, lg_given.equality_sweeps_most);
  for (int i = 0; i < NU; i++) u[i] = lg_inputs[i];
  for (int i = 0; i < NV; i++) u[lg_controls[i]] = clip(lg_nominal[i], lg_lower[i], lg_upper[i]);
  for (int k = 0; k <= m->queued; k++) {
    const double next = k < m->queued ? fmin(fmax(m->queue_t[k], t), end) : end;
    if (next - now > LG_EARLY) is_finite &= move(&q, &s, now, next - now, u, x);
    now = next;
    for (int i = 0; i < NV && k < m->queued; i++) u[lg_controls[i]] = m->queue_u[k][i];
  }
  return is_finite;
}
#endif

/* The answer to a state, by a plan that goes on from the last one, or is made anew. */
static int call(lg_mpc *m, double t, const double x[], double u[], int is_anew)
{
  double state[NQ], start = t;
  if (!is_time(t) || !element(x, state, m->work)) return hold(m, u);
#if LG_QUEUE > 0
  keep_to_clock(m, t);
  start = t + LG_MPC_DELAY;
  if (!predict(m, t, state)) {
    hold(m, u);
    note(m, start, u);
    return m->status;
  }
#endif
  const int is_first = is_anew || !m->is_planned;
  const int status = is_first ? plan(m, start, state) : improve(m, start, state);
  answer(m, status, u);
#if LG_QUEUE > 0
  note(m, start, u);
#endif
  return m->status;
}

int lg_mpc_init(lg_mpc *m)
{
  memset(m, 0, sizeof *m);
  memcpy(m->x_ref, lg_x_ref, sizeof m->x_ref);
  memcpy(m->u_ref, lg_u_ref, sizeof m->u_ref);
  memcpy(m->P, lg_P, sizeof m->P);
  memcpy(m->arrival, lg_arrival_weight, sizeof m->arrival);
  memcpy(m->p, lg_p, sizeof m->p);
  return lg_work(LG_MPC_N, lg_given.equality_sweeps_most) <= LG_MPC_WORK ? LG_MPC_OK : LG_MPC_UNSOLVED;
}

void lg_mpc_reset(lg_mpc *m)
{
  m->is_planned = m->has_answered = 0;
#if LG_QUEUE > 0
  m->queued = m->has_clock = 0;
#endif
}

void lg_mpc_hold(lg_mpc *m, const double x_ref[LG_MPC_NX],
                 const double u_ref[LG_MPC_NI])
{
  for (int k = 0; k <= LG_MPC_N; k++) {
    for (int i = 0; i < NQ; i++) m->x_ref[k][i] = x_ref[i];
    for (int i = 0; i < NU; i++) m->u_ref[k][i] = u_ref[i];
  }
}

int lg_mpc_solve(lg_mpc *m, double t, const double x[LG_MPC_NX], double u[LG_MPC_NU])
{
  return call(m, t, x, u, 1);
}

int lg_mpc_step(lg_mpc *m, double t, const double x[LG_MPC_NX], double u[LG_MPC_NU])
{
  return call(m, t, x, u, 0);
}
