/* Feasibility restoration by the elastic problem: hard rows and equalities may be exceeded at a penalty rho.
 *
 * Rows become h - e + s = 0 with the penalty rho e; an equality c becomes one whose slack costs rho as
 * well, so that rho |c| is what it costs. Soft rows have the penalty w (e + e²/2) in either problem. */
LG_OFTEN

/* Excess and slack of constraints that were gathered, at some places of a point. */
typedef struct {
  double h[LG_W], w1[LG_W], w2[LG_W];
  int64_t at[LG_W];
  int count;
} lg_pairs;

static void fit_pairs(const lg_state *s, lg_pairs *p, lg_point *to, int dual)
{
  double excess[LG_W], slack[LG_W];
  for (int i = p->count; i < LG_W; i++)
    p->h[i] = p->h[0], p->w1[i] = p->w1[0], p->w2[i] = p->w2[0];
  split(p->h, p->w1, p->w2, s->mu, excess, slack);
  for (int i = 0; i < p->count; i++) {
    to->e[p->at[i]] = excess[i], to->s[p->at[i]] = slack[i];
    if (dual) to->z[p->at[i]] = s->mu / slack[i], to->y[p->at[i]] = s->mu / excess[i];
  }
  p->count = 0;
}

/* Slacks that fit the rows of a point, with their multipliers where `dual` is set. */
static void fit_slacks(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o,
                       lg_point *at, const double *rows, int dual)
{
  const int64_t na = m->ns + m->ne;
  lg_pairs pairs;
  pairs.count = 0;
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      if (s->holds[i] == 0) {
        at->s[i] = 1, at->e[i] = at->z[i] = at->y[i] = 0;
        continue;
      }
      const double h = scaled(m, s, rows + k * m->nr, j);
      if (s->gives[i] != 0) {
        const int n = pairs.count++;
        pairs.h[n] = h, pairs.w1[n] = s->w1[i] + s->v[i], pairs.w2[n] = s->w2[i], pairs.at[n] = i;
        if (pairs.count == LG_W) fit_pairs(s, &pairs, at, dual);
      } else {
        const double least = o->push * larger(1, fabs(s->limit[j] * s->d[m->row[j]]));
        at->e[i] = at->y[i] = 0;
        at->s[i] = larger(-h, at->s[i] > 0 ? smaller(at->s[i], least) : least);
      }
    }
  if (pairs.count > 0) fit_pairs(s, &pairs, at, dual);
}

/* Which constraints hold in which form, for the problem itself or the elastic one. */
static void set_form(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t na = m->ns + m->ne, elastic = s->mem->elastic;
  int64_t terms = 0;
  for (int64_t j = 0; j < na; j++) {
    const int is_equal = j >= m->ns, soft = is_soft(m, q, j), may = !soft && m->start[j] == 0;
    const int is_priced = may && !is_equal && s->priced > 0;
    const int is_elastic = may && !is_priced && elastic;
    const double d = s->d[m->row[j]], hard = is_priced ? s->priced : is_elastic ? s->mem->penalty : 0;
    const double first = soft ? q->weight[j] * s->scale / d : hard;
    for (int64_t k = 0, i = j; k <= q->horizon; k++, i += na) {
      const int on = (!is_equal || elastic) && m->active[i] != 0;
      const int gives = on && (soft || is_priced || is_elastic);
      const double share = soft ? m->active[i] : 1;
      s->holds[i] = on, s->gives[i] = gives, s->v[i] = is_equal && is_elastic ? hard : 0;
      s->w1[i] = first * share, s->w2[i] = soft ? first / d * share : 0;
      terms += on + gives;
    }
  }
  for (int64_t j = 0; j < m->nv; j++)
    terms += q->horizon * (isfinite(s->lower[j]) + isfinite(s->upper[j]));
  s->terms = (double)terms;
}

/* Whether controls have limits alone, which every rollout keeps. */
static int is_free(const lg_model *m) { return m->ns + m->ne == 0; }

static int can_relax(const lg_model *m, const lg_task *q)
{
  for (int64_t j = 0; j < m->ns; j++)
    if (!isfinite(q->weight[j]) && m->start[j] == 0) return 1;
  return m->ne > 0;
}

/* Begin the constraints of the problem, or of the elastic one, at a barrier parameter. */
static void begin_form(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o, double mu)
{
  s->mu = s->mem->mu = mu, s->mem->tiny = 0;
  set_form(m, q, s);
  fit_slacks(m, q, s, o, &s->now, s->rows, 1);
  open_filter(m, q, s, o);
}

/* From the problem to the elastic one, about the same nodes. */
static void begin_elastic(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  lg_memory *mem = s->mem;
  double most;
  mem->outer = mem->filter, mem->outer_mu = mem->mu;
  mem->outer_theta = theta(m, q, s);
  violated(m, q, s, &most);
  mem->elastic = 1, mem->penalty = o->penalty_first;
  begin_form(m, q, s, o, larger(mem->mu, most));
  for (int64_t i = 0; i < q->horizon * m->nv; i++)
    s->now.zl[i] = s->mu / s->below[i], s->now.zu[i] = s->mu / s->above[i];
  least_squares(m, q, s, o);
}

/* Back to the problem itself. */
static void end_elastic(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, int optimal)
{
  lg_memory *mem = s->mem;
  const int64_t N = q->horizon, M = N + 1, na = m->ns + m->ne;
  for (int64_t k = 0; k < M; k++)
    for (int64_t j = 0; j < m->ne; j++) {
      const int64_t i = k * na + m->ns + j;
      s->now.nu[k * m->ne + j] = s->holds[i] != 0 ? s->now.z[i] - s->v[i] : 0;
    }
  mem->elastic = 0, mem->left++, s->stepped = 0;
  if (!optimal) mem->mu = s->mu = mem->outer_mu;
  mem->filter = mem->outer;
  if (optimal) mem->filter.count = 0;
  set_form(m, q, s);
  for (int64_t k = 0; k < M; k++)
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      if (s->holds[i] == 0) {
        s->now.s[i] = 1, s->now.z[i] = s->now.e[i] = s->now.y[i] = 0;
      } else if (s->gives[i] == 0) {
        const double h = scaled(m, s, s->rows + k * m->nr, j);
        s->now.e[i] = s->now.y[i] = 0;
        s->now.s[i] = larger(-h, s->now.s[i]);
        s->now.z[i] = near(s->now.z[i], s->now.s[i], s->mu, o->sigma_most);
        if (!optimal && s->now.z[i] > o->multiplier_most) s->now.z[i] = 1;
      }
    }
  misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  mem->tiny = 0;
  if (!optimal) least_squares(m, q, s, o);
}

LG_SELDOM
