/* Stages of a problem about an iterate: values, first and second derivatives.
 *
 * An iterate has states x_k and controls u_k of its own (multiple shooting). Its defects are
 * gap_k = f(x_k, u_k) - x_k+1 in error coordinates. F is the transposed derivative [A B] of a step, G
 * that of the rows, g the gradient of the cost, and H the Gauss–Newton Hessian of the cost.
 * `bend` adds the second derivatives of dynamics and rows, weighed with their multipliers lam and price.
 * Constraints are h = d sign (row - limit) <= 0, and c = d (row - limit) = 0 for equalities. */
/* Whether a constraint is a soft row, and what it costs that one is exceeded at a node. */
LG_INLINE int is_soft(const lg_model *m, const lg_task *q, int64_t j)
{
  return j < m->ns && isfinite(q->weight[j]);
}

LG_INLINE double penalty_on(const lg_model *m, const lg_task *q, int64_t k, int64_t j, double excess)
{
  return q->weight[j] * m->active[k * (m->ns + m->ne) + j] * (excess + excess * excess / 2);
}

/* A cost with the penalties of soft rows; infinite where a row is no number. */
static double priced_cost(const lg_model *m, const lg_task *q, const double *rows, double cost)
{
  const int64_t na = m->ns + m->ne;
  double soft = 0;
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int64_t j = 0; j < na; j++) {
      if (m->active[k * na + j] == 0) continue;
      const double h = m->sign[j] * (rows[k * m->nr + m->row[j]] - q->limit[j]);
      if (isnan(h)) return INFINITY;
      if (h > 0 && is_soft(m, q, j)) soft += penalty_on(m, q, k, j, h);
    }
  return cost + soft;
}

LG_OFTEN

static int factor(const lg_model *m, const lg_task *q, lg_state *s, double dw, int bent, int identity)
{
  return (m->factor ? m->factor : lg_factor_any)(m, q, s, dw, bent, identity);
}

static void back(const lg_model *m, const lg_task *q, lg_state *s, const double *g,
                 const double *g_end, const double *gap)
{
  (m->back ? m->back : lg_back_any)(m, q, s, g, g_end, gap);
}

/* Derivatives of steps one after the other: F Aᵀ, and what inputs add in the later one. */
static void compose(const lg_model *m, lg_state *s, const double *next, double *F)
{
  const int nx = (int)m->nx, nz = nx + (int)m->nv, zv = (nz + LG_W - 1) / LG_W, zp = zv * LG_W;
  const int first = (int)m->sub_first, dense = (int)m->sub_dense;
  lg_v T_[zv * nx];
  double *T = (double *)T_;
  (void)s;
  for (int l = 0; l < nx; l++)
    if (l < first || l >= first + dense)
      for (int i = 0; i < zv; i++) T_[i + l * zv] = lg_zero;
  product(zv, 0, nx, dense, F, nz, next + first * nz, 1, nz, 0, 1, 0, 0, 0, 1,
          T + first * zp, zp);
  for (int n = 0; n < m->sub_sparse; n++) {
    const int64_t l = m->sub_rows[n], j = m->sub_columns[n];
    if (j >= nx) continue;
    for (int i = 0; i < zv; i++) T_[i + l * zv] += load(F + j * nz + i * LG_W) * next[l * nz + j];
  }
  for (int l = 0; l < nx; l++) {
    for (int j = 0; j < nx; j++) F[l * nz + j] = T[l * zp + j];
    for (int j = nx; j < nz; j++) F[l * nz + j] = T[l * zp + j] + next[l * nz + j];
  }
}

/* F Cᵀ for a matrix of which `C` has the rows that are not the identity's. */
static void turn(const lg_model *m, const double *C, double *F)
{
  const int nx = (int)m->nx, nz = nx + (int)m->nv, zv = (nz + LG_W - 1) / LG_W, zp = zv * LG_W;
  lg_v T_[zv * nx];
  const double *T = (const double *)T_;
  for (int n = 0; n < m->turn; n++) {
    const int64_t l = m->turn_rows[n], j = m->turn_columns[n];
    const int again = n && m->turn_rows[n - 1] == l;
    for (int i = 0; i < zv; i++)
      T_[i + l * zv] = (again ? T_[i + l * zv] : lg_zero) + load(F + j * nz + i * LG_W) * C[n];
  }
  for (int n = 0; n < m->turn; n++)
    copy(F + m->turn_rows[n] * nz, T + m->turn_rows[n] * zp, nz);
}

LG_SELDOM

LG_INLINE void call(const lg_function *f, int64_t items, const double *const *in,
                    double *const *out, double *scratch)
{
  f->call(f->own, items, in, out, scratch);
}

/* Error coordinates of states, each from another one; and states at error coordinates from others. */
LG_INLINE void errors(const lg_model *m, int64_t count, const double *x, const double *from, double *e,
                      double *scratch)
{
  const double *in[] = {x, from};
  double *const out[] = {e};
  call(&m->error, count, in, out, scratch);
}

LG_INLINE void retract(const lg_model *m, const lg_task *q, int64_t count, const double *x,
                       const double *e, double *to, double *scratch)
{
  const double *in[] = {x, e, q->p};
  double *const out[] = {to};
  call(&m->retract, count, in, out, scratch);
}

LG_OFTEN

/* A distance from a limit: where rounding leaves none, that of the next number. */
LG_INLINE double room(double distance, double limit)
{
  return distance == 0 ? fabs(limit) * DBL_EPSILON : distance;
}

/* How far controls are from their limits. */
static void rooms(const lg_model *m, const lg_task *q, const lg_state *s, const double *u,
                  double *restrict below, double *restrict above)
{
  const int64_t n = q->horizon * m->nv, nv = m->nv, nu = m->nu;
  const double *const lowest = s->lowest, *const highest = s->highest;
  for (int64_t k = 0; k < q->horizon && nu > nv; k++)
    for (int64_t j = 0; j < nv; j++) below[k * nv + j] = u[k * nu + m->controls[j]];
  if (nu > nv) u = below;
  for (int64_t i = 0; i < n; i++) above[i] = room(highest[i] - u[i], highest[i]);
  for (int64_t i = 0; i < n; i++) below[i] = room(u[i] - lowest[i], lowest[i]);
}

/* What functions of the end are given, besides multipliers. */
#define LG_END(x)                                                                                   \
  q->t + N, (x) + N * m->nq, q->u_ref + N * m->nu, q->x_ref + N * m->nq, q->p, q->w_end, q->P

/* Multipliers of the rows of the problem from those of constraints. */
static void row_prices(const lg_model *m, const lg_task *q, const lg_state *s, const double *z,
                       const double *nu, double *price)
{
  const int64_t M = q->horizon + 1, na = m->ns + m->ne;
  for (int64_t i = 0; i < M * m->nr; i++) price[i] = 0;
  for (int64_t k = 0; k < M && na > 0; k++) {
    double *own = price + k * m->nr;
    for (int64_t j = 0; j < na; j++)
      if (s->holds[k * na + j] != 0)
        own[m->row[j]] += m->sign[j] * s->d[m->row[j]] * (z[k * na + j] - s->v[k * na + j]);
    for (int64_t j = 0; j < m->ne && !s->mem->elastic; j++)
      if (m->active[k * na + m->ns + j] != 0)
        own[m->row[m->ns + j]] += s->d[m->row[m->ns + j]] * nu[k * m->ne + j];
  }
}

/* Multipliers of the iterate for second derivatives: of the dynamics, and of rows. */
static void prices_of(const lg_model *m, const lg_task *q, const lg_state *s, double *lam, double *price)
{
  const double over = 1 / s->scale;
  row_prices(m, q, s, s->now.z, s->now.nu, price);
  for (int64_t i = 0; i < (q->horizon + 1) * m->nr; i++) price[i] *= over;
  for (int64_t i = 0; i < q->horizon * m->nx; i++) lam[i] = s->now.lam[i] * over;
}

/* The problem about the iterate; with second derivatives for the multipliers of the last call of
 * `prices_of` to `lam_before` and `price_before` where one function has both, in H if that is `wanted`. */
static void expand_about(const lg_model *m, lg_task *q, lg_state *s, int wanted)
{
  const int64_t N = q->horizon, nx = m->nx, nz = nx + m->nv;
  const double *x = s->now.x, *u = s->now.u, *from = x;
  rooms(m, q, s, u, s->below, s->above);
  const double *given[] = {q->t, x, u, x + m->nq, q->x_ref, q->u_ref, q->p, q->w, q->steps,
                           s->lam_before, s->price_before};
  s->is_added = wanted && m->both.call && m->curved && q->exact;
  if (s->is_added) {
    double *const out[] = {s->cost, s->gap, s->rows, s->F, s->g, s->H, s->G, s->bend};
    call(&m->both, N, given, out, s->scratch);
  } else if (m->substeps > 0) {
    for (int64_t j = 0; j < m->substeps; j++) {
      double *after = j % 2 ? s->other : s->after;
      for (int64_t k = 0; k < N; k++) {
        s->lengths[k] = q->steps[k] / (double)m->substeps;
        s->times[k] = q->t[k] + (double)j * s->lengths[k];
      }
      const double *in[] = {s->times, from, u, q->p, s->lengths};
      double *const out[] = {after, j ? s->part : s->F};
      call(&m->substep, N, in, out, s->scratch);
      for (int64_t k = 0; j && k < N; k++) compose(m, s, s->part + k * nx * nz, s->F + k * nx * nz);
      from = after;
    }
    given[9] = from;
    double *const out[] = {s->cost, s->gap, s->rows, s->turn, s->g, s->H, s->G};
    call(&m->around, N, given, out, s->scratch);
    for (int64_t k = 0; m->turn && k < N; k++) turn(m, s->turn + k * m->turn, s->F + k * nx * nz);
  } else {
    double *const out[] = {s->cost, s->gap, s->rows, s->F, s->g, s->H, s->G, s->curvature, s->bend};
    call(&m->stage, N, given, out, s->scratch);
  }
  const double *end[] = {LG_END(x)};
  double *const out[] = {s->cost + N, s->rows + N * m->nr, s->g_end, s->H_end, s->G_end};
  call(&m->end, 1, end, out, s->scratch);
  s->f = 0;
  for (int64_t k = 0; k <= N; k++) s->f += s->cost[k];
  if (m->nf > 0) {
    double cost, g[nx], H[nx * nx];
    const double *in[] = {x, q->x0, q->arrival};
    double *const found[] = {&cost, g, H};
    call(&m->arrival, 1, in, found, s->scratch);
    s->f += cost;
    for (int64_t i = 0; i < nx; i++) s->g[i] += g[i];
    for (int64_t j = 0; j < nx; j++)
      for (int64_t i = 0; i < nx; i++) s->H[i + j * nz] += H[i + j * nx];
  }
}

static void expand(const lg_model *m, lg_task *q, lg_state *s)
{
  if (m->joint) prices_of(m, q, s, s->lam_before, s->price_before);
  expand_about(m, q, s, 0);
}

/* The same where second derivatives follow. */
static void expand_twice(const lg_model *m, lg_task *q, lg_state *s)
{
  if (m->joint) prices_of(m, q, s, s->lam_before, s->price_before);
  expand_about(m, q, s, 1);
}

/* Cost of the trial whose stages are known, and rows of its end. */
static double total(const lg_model *m, lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon;
  const double *x = s->trial.x, *end[] = {LG_END(x)};
  double *const found[] = {s->t_cost + N, s->t_rows + N * m->nr};
  s->trials++;
  call(&m->end_values, 1, end, found, s->scratch);
  double f = 0;
  for (int64_t k = 0; k <= N; k++) f += s->t_cost[k];
  if (m->nf > 0) {
    double cost, g[m->nx], H[m->nx * m->nx];
    const double *in[] = {x, q->x0, q->arrival};
    double *const arrived[] = {&cost, g, H};
    call(&m->arrival, 1, in, arrived, s->scratch);
    f += cost;
  }
  return f;
}

/* Cost of the trial, its defects and rows. */
static double values(const lg_model *m, lg_task *q, lg_state *s)
{
  const double *x = s->trial.x;
  const double *given[] = {q->t, x, s->trial.u, x + m->nq, q->x_ref, q->u_ref, q->p, q->w, q->steps};
  double *const out[] = {s->t_cost, s->t_gap, s->t_rows};
  call(&m->values, q->horizon, given, out, s->scratch);
  return total(m, q, s);
}

/* The trial's next state of a stage. */
static void roll(const lg_model *m, const lg_task *q, lg_state *s, int64_t k)
{
  const double *in[] = {q->t + k, s->trial.x + k * m->nq, s->trial.u + k * m->nu, q->p, q->steps + k};
  double *const out[] = {s->trial.x + (k + 1) * m->nq};
  call(&m->step, 1, in, out, s->scratch);
}

/* Cost and rows of some of the trial's stages. */
static void costs(const lg_model *m, const lg_task *q, lg_state *s, int64_t k, int64_t count)
{
  const double *in[] = {q->t + k, s->trial.x + k * m->nq, s->trial.u + k * m->nu,
                        q->x_ref + k * m->nq, q->u_ref + k * m->nu, q->p, q->w + k * m->weights,
                        q->steps + k};
  double *const out[] = {s->t_cost + k, s->t_rows + k * m->nr};
  call(&m->costs, count, in, out, s->scratch);
}

/* Second derivatives of the Lagrangian beyond the Gauss–Newton ones, for multipliers of the
 * dynamics and of rows; where they are. */
static int bend(const lg_model *m, lg_task *q, lg_state *s, const double *lam, const double *price)
{
  if (!m->curved || !q->exact) return LG_STRAIGHT;
  const int64_t N = q->horizon;
  const size_t duals = (size_t)(N * m->nx) * sizeof(double);
  const size_t rows = (size_t)(N * m->nr) * sizeof(double);
  const double *in[] = {q->t, s->now.x, s->now.u, s->now.x + m->nq, q->x_ref, q->u_ref, q->p, q->w,
                        q->steps, lam, price};
  double *const out[] = {s->curvature, s->bend};
  if (m->curvature.call && !s->is_added) {
    call(&m->curvature, N, in, out, s->scratch);
  } else if (memcmp(lam, s->lam_before, duals) || memcmp(price, s->price_before, rows)) {
    memcpy(s->lam_before, lam, duals), memcpy(s->price_before, price, rows);
    expand_about(m, q, s, s->is_added != 0); /* multipliers have changed since */
  }
  const double *end[] = {LG_END(s->now.x), price + N * m->nr};
  double *const found[] = {s->curvature_end};
  call(&m->end_curvature, 1, end, found, s->scratch);
  return s->is_added ? LG_ADDED : LG_APART;
}

/* Those for the multipliers of the iterate. */
static int curvatures(const lg_model *m, lg_task *q, lg_state *s)
{
  if (!m->curved || !q->exact || s->gauss_newton) return LG_STRAIGHT;
  prices_of(m, q, s, s->move, s->price);
  return bend(m, q, s, s->move, s->price);
}

/* How far rows of a node are over the limit of a constraint; the same, scaled. */
LG_INLINE double over(const lg_model *m, const lg_state *s, const double *rows, int64_t j)
{
  return m->sign[j] * (rows[m->row[j]] - s->limit[j]);
}

LG_INLINE double scaled(const lg_model *m, const lg_state *s, const double *rows, int64_t j)
{
  return s->d[m->row[j]] * over(m, s, rows, j);
}

/* What constraints miss: h - e + s of one-sided ones, c of equalities. */
static void misses(const lg_model *m, const lg_task *q, const lg_state *s, const lg_point *o,
                   const double *rows, double *rho, double *missed)
{
  const int64_t na = m->ns + m->ne, ne = m->ne;
  for (int64_t k = 0; k <= q->horizon && na > 0; k++) {
    const double *own = rows + k * m->nr;
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      const double h = scaled(m, s, own, j);
      rho[i] = s->holds[i] != 0 ? h - o->e[i] + o->s[i] : 0;
    }
    for (int64_t j = 0; j < ne; j++) {
      const int64_t a = m->ns + j, r = m->row[a];
      const int on = m->active[k * na + a] != 0 && !s->mem->elastic;
      missed[k * ne + j] = on ? s->d[r] * (own[r] - s->limit[a]) : 0;
    }
  }
}

LG_SELDOM
