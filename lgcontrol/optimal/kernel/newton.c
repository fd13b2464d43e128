/* A primal-dual interior point with a filter line search (Waechter and Biegler 2006) on Riccati
 * sweeps, for any problem: the algorithm of `_newton.py`, step by step.
 *
 * Before this text stand `newton.h` and the sweeps of any size. Nothing is allocated and nothing is
 * kept between calls: all memory is the caller's. */
static double *take(double **next, int64_t count)
{
  double *here = *next;
  *next += (count + 15) / 8 * 8;
  return here;
}

/* Parts of an iterate; numbers that it takes. */
static int64_t lay_point(lg_point *o, double *memory, const lg_model *m, int64_t N)
{
  const int64_t M = N + 1, na = m->ns + m->ne, sizes[] = {M * m->nq, N * m->nu, M * na, M * na,
    M * na, M * na, N * m->nv, N * m->nv, N * m->nx, M * m->ne};
  double **parts[] = {&o->x, &o->u, &o->s, &o->z, &o->e, &o->y, &o->zl, &o->zu, &o->lam, &o->nu};
  double *at = memory;
  for (int i = 0; i < 10; i++) *parts[i] = at, at += sizes[i];
  return at - memory;
}

static void lay_out(lg_state *s, double *memory, const lg_model *m, int64_t N)
{
  const int64_t M = N + 1, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr, ne = m->ne;
  const int64_t na = m->ns + ne, xp = padded(nx), vp = padded(nv), many = m->substeps > 0 ? N : 0;
  lg_point p;
  s->plan = lay_point(&p, memory, m, N);
#define LG_TAKE(name, count) s->name = take(&memory, count);
  LG_PARTS(LG_TAKE)
  s->scratch = memory;
}

/* Numbers of work memory for a horizon, of an iterate, of what a resumed solve goes on with; bytes
 * of the structs; doubles of a vector; numbers that real-time steps go on with. */
LG_EXPORT void lg_newton_sizes(const lg_model *m, int64_t N, int64_t *sizes)
{
  lg_state s;
  lay_out(&s, 0, m, N);
  sizes[0] = (int64_t)((uintptr_t)s.scratch / sizeof(double)) + m->scratch;
  sizes[1] = s.plan;
  sizes[2] = (int64_t)(sizeof(lg_memory) / sizeof(double)) + 8;
  sizes[3] = sizeof(lg_model), sizes[4] = sizeof(lg_task), sizes[5] = sizeof(lg_settings);
  sizes[6] = LG_W, sizes[7] = offsetof(lg_memory, filter) / sizeof(double);
}

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

LG_INLINE double smaller(double a, double b) { return a < b ? a : b; }
LG_INLINE double larger(double a, double b) { return a > b ? a : b; }
LG_INLINE double clip(double v, double low, double high) { return smaller(larger(v, low), high); }

/* The larger of a number and a size; NaN stays. */
LG_INLINE double widest(double most, double v)
{
  const double size = fabs(v);
  return size <= most || isnan(most) ? most : size;
}

static double largest(const double *v, int64_t n, double most)
{
  int64_t i = 0;
#if LG_W > 1
  lg_v top = lg_zero;
  lg_m odd = {0};
  for (; i + LG_W <= n; i += LG_W) {
    const lg_v own = sizes_of(load(v + i));
    top = pick(own > top, own, top);
    odd |= own != own;
  }
  if (is_any(odd)) return NAN;
  for (int l = 0; l < LG_W && i > 0; l++) most = widest(most, top[l]);
#endif
  for (; i < n; i++) most = widest(most, v[i]);
  return most;
}

static int all_finite(const double *v, int64_t n)
{
  int64_t i = 0;
  lg_m odd = {0};
  for (; i + LG_W <= n; i += LG_W) {
    const lg_v size = sizes_of(load(v + i));
    odd |= (size != size) | (size == INFINITY);
  }
  if (is_any(odd)) return 0;
  for (; i < n; i++)
    if (!isfinite(v[i])) return 0;
  return 1;
}

/* The sum of some numbers. */
static double total_of(const double *v, int64_t n)
{
  lg_v sums = lg_zero;
  double sum = 0;
  int64_t i = 0;
  for (; i + LG_W <= n; i += LG_W) sums += load(v + i);
  for (; i < n; i++) sum += v[i];
  return sum + added(sums);
}

/* ---- sweeps -----------------------------------------------------------------------------------*/

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

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

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* ---- evaluation -------------------------------------------------------------------------------*/

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

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

/* A distance from a limit: where rounding leaves none, that of the next number. */
LG_INLINE double room(double distance, double limit)
{
  return distance == 0 ? fabs(limit) * 2.220446049250313e-16 : distance;
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

/* Second derivatives of the Lagrangian beyond those of Gauss and Newton, for multipliers of the
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
  if (!m->curved || !q->exact) return LG_STRAIGHT;
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

static double sum_of(const double *v, int64_t n)
{
  lg_v sums = lg_zero;
  double sum = 0;
  int64_t i = 0;
  for (; i + LG_W <= n; i += LG_W) sums += sizes_of(load(v + i));
  for (; i < n; i++) sum += fabs(v[i]);
  return sum + added(sums);
}

/* The sum of sizes in rows of n numbers, each times that of its column. What is read beyond the last
 * row is memory of its own. */
static double weighed_sum(const double *v, int64_t rows, int64_t n, const double *by)
{
  double sum = 0, own[LG_W];
  for (int64_t i = 0; i < n; i += LG_W) {
    lg_v sums = lg_zero;
    for (int64_t k = 0; k < rows; k++) sums += sizes_of(load(v + k * n + i));
    *(lg_u *)(void *)own = sums;
    for (int64_t l = 0; l < LG_W && i + l < n; l++) sum += own[l] * by[i + l];
  }
  return sum;
}

/* The larger of a number and the largest size in rows of n numbers, each times that of its column. */
static double widest_of(const double *v, int64_t rows, int64_t n, const double *by, double most)
{
  double own[LG_W];
  for (int64_t i = 0; i < n; i += LG_W) {
    lg_v top = lg_zero;
    for (int64_t k = 0; k < rows; k++) { /* NaN stays */
      const lg_v one = sizes_of(load(v + k * n + i));
      top = pick((one <= top) | (top != top), top, one);
    }
    *(lg_u *)(void *)own = top;
    for (int64_t l = 0; l < LG_W && i + l < n; l++) most = widest(most, own[l] * by[i + l]);
  }
  return most;
}

/* The largest defect by the size of its coordinate. */
static double widest_gap(const lg_model *m, const lg_task *q, const lg_state *s, const double *gap)
{
  return widest_of(gap, q->horizon, m->nx, s->rate, 0);
}

/* Unit of a tolerance: a size below 1, one up to 1000, a thousandth of a size above. */
LG_INLINE double told(const lg_settings *o, double size)
{
  return size / clip(size, 1, 1 / o->slope_least);
}

/* The largest derivative of the cost, for changes of the size of their coordinates. */
static double widest_slope(const lg_model *m, const lg_task *q, const lg_state *s)
{
  const double most = widest_of(s->g, q->horizon, m->nx + m->nv, s->size, 0);
  return widest_of(s->g_end, 1, m->nx, s->size, most);
}

/* The sum of violations: of some, and of those of the iterate. */
static double theta_of(const lg_model *m, const lg_task *q, const lg_state *s, const double *gap,
                       const double *rho, const double *missed)
{
  const int64_t M = q->horizon + 1;
  return weighed_sum(gap, q->horizon, m->nx, s->rate) + sum_of(rho, M * (m->ns + m->ne))
         + sum_of(missed, M * m->ne);
}

static double theta(const lg_model *m, const lg_task *q, const lg_state *s)
{
  return theta_of(m, q, s, s->gap, s->rho, s->missed);
}

/* A product whose logarithm is taken before it gets too large or too small. */
LG_INLINE void add_log(double *sum, double *product, double factor)
{
  const double grown = *product * factor;
  if (grown > 1e-200 && grown < 1e200) {
    *product = grown;
  } else {
    *sum += log(*product) + log(factor);
    *product = 1;
  }
}

/* The sum of the logarithms of some numbers, of which infinite ones do not count. */
static double logs_of(const double *v, int64_t n)
{
  double sum = 0, whole = 1;
  lg_v part = lg_zero + 1;
  int64_t i = 0;
  for (; i + LG_W <= n; i += LG_W) {
    const lg_v own = load(v + i), factor = pick(own == INFINITY, lg_zero + 1, own);
    const lg_v grown = part * factor;
    const lg_m is_odd = ~((grown > 1e-200) & (grown < 1e200)) & 1;
    if (is_any(is_odd)) {
      double lanes[2 * LG_W];
      *(lg_u *)(void *)lanes = part, *(lg_u *)(void *)(lanes + LG_W) = factor;
      for (int l = 0; l < 2 * LG_W; l++) sum += log(lanes[l]);
      part = lg_zero + 1;
    } else {
      part = grown;
    }
  }
  double lanes[LG_W];
  *(lg_u *)(void *)lanes = part;
  for (int l = 0; l < LG_W; l++) add_log(&sum, &whole, lanes[l]);
  for (; i < n; i++) add_log(&sum, &whole, v[i] == INFINITY ? 1 : v[i]);
  return sum + log(whole);
}

/* The barrier function, of a point with its distances from limits. */
static double phi(const lg_model *m, const lg_task *q, const lg_state *s, const lg_point *o,
                  const double *below, const double *above, double f)
{
  const int64_t n = q->horizon * m->nv, na = (q->horizon + 1) * (m->ns + m->ne);
  const double *const holds = s->holds, *const gives = s->gives, *const e = o->e;
  const double *const w1 = s->w1, *const w2 = s->w2, *const v = s->v;
  double *restrict term = s->term;
  double sum = s->scale * f, logs = logs_of(below, n) + logs_of(above, n);
  if (na > 0) {
    for (int64_t i = 0; i < na; i++) {
      const double own = v[i] * o->s[i];
      const double excess = w1[i] * e[i] + w2[i] * e[i] * e[i] / 2;
      term[i] = holds[i] != 0 ? own + (gives[i] != 0 ? excess : 0) : 0;
    }
    sum += total_of(term, na);
    for (int64_t i = 0; i < na; i++) term[i] = holds[i] != 0 ? o->s[i] : 1;
    logs += logs_of(term, na);
    for (int64_t i = 0; i < na; i++) term[i] = gives[i] != 0 ? e[i] : 1;
    logs += logs_of(term, na);
  }
  return sum - s->mu * logs;
}

/* Slope of the barrier function along the direction. */
static double slope(const lg_model *m, const lg_task *q, const lg_state *s)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, na = (N + 1) * (m->ns + m->ne);
  const double *const below = s->below, *const above = s->above, *const du = s->du;
  const double *const holds = s->holds, *const gives = s->gives, *const e = s->now.e;
  const double *const w1 = s->w1, *const w2 = s->w2, *const v = s->v, *const ds = s->ds;
  const double *const slack = s->now.s, *const de = s->de, mu = s->mu;
  double *restrict term = s->term;
  double sum = 0;
  lg_v rest = lg_zero;
  int64_t i = 0;
  for (int64_t k = 0; k < N; k++) {
    sum += dot((int)nx, s->g + k * nz, s->eps + k * nx);
    sum += dot((int)nv, s->g + k * nz + nx, du + k * nv);
  }
  for (; i + LG_W <= N * nv; i += LG_W)
    rest += (mu / load(above + i) - mu / load(below + i)) * load(du + i);
  double left = added(rest);
  for (; i < N * nv; i++) left += (mu / above[i] - mu / below[i]) * du[i];
  sum += dot((int)nx, s->g_end, s->eps + N * nx);
  for (i = 0; i < na; i++) {
    const double own = (v[i] - mu / slack[i]) * ds[i];
    const double excess = (w1[i] + w2[i] * e[i] - mu / e[i]) * de[i];
    term[i] = holds[i] != 0 ? own + (gives[i] != 0 ? excess : 0) : 0;
  }
  return s->scale * sum + (left + total_of(term, na));
}

/* own += F lam for the multipliers of a step. */
static void pull_back(const lg_model *m, const double *F, const double *lam, double *own)
{
  const int nx = (int)m->nx, nz = nx + (int)m->nv, zv = (nz + LG_W - 1) / LG_W, zp = zv * LG_W;
  lg_v sum[zv];
  product(zv, 0, nx, 1, F, nz, lam, 1, 1, 0, 1, 0, own, zp, 1, (double *)sum, zp);
  put(own, (double *)sum, nz);
}

/* own += Gᵀ price for the rows of a stage; what has no price may be no number. */
static void pull_rows(const lg_model *m, const double *G, const double *price, double *own)
{
  const int64_t nz = m->nx + m->nv, nr = m->nr;
  for (int64_t i = 0; i < nz && nr > 0; i += LG_W) {
    lg_v sum = load(own + i);
    for (int64_t r = 0; r < nr; r++)
      if (price[r] != 0) sum += load(G + r * nz + i) * price[r];
    put(own + i, (double *)&sum, i + LG_W <= nz ? LG_W : nz - i);
  }
}

/* Violation of the hard constraints of the problem itself; the largest one and with defects. */
static double violated(const lg_model *m, const lg_task *q, const lg_state *s, double *most)
{
  const int64_t na = m->ns + m->ne;
  double sum = weighed_sum(s->gap, q->horizon, m->nx, s->rate), high = 0;
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int64_t j = 0; j < na; j++) {
      if (m->active[k * na + j] == 0 || is_soft(m, q, j)) continue;
      double h = scaled(m, s, s->rows + k * m->nr, j);
      h = j < m->ns ? larger(h, 0) : fabs(h);
      sum += h, high = larger(high, h);
    }
  *most = high;
  return sum;
}

/* Stationarity, violation, and what scales the errors. */
static void residuals(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr;
  const int64_t na = m->ns + m->ne;
  const double *const size = s->size;
  double stat = 0, along[nz + LG_W], viol = 0, r_viol = 0;
  row_prices(m, q, s, s->now.z, s->now.nu, s->price);
  for (int64_t k = 0; k < N; k++) {
    const double *F = s->F + k * nx * nz, *G = s->G + k * nr * nz, *lam = s->now.lam + k * nx;
    for (int64_t i = 0; i < nz; i++) along[i] = s->scale * s->g[k * nz + i];
    pull_rows(m, G, s->price + k * nr, along);
    pull_back(m, F, lam, along);
    for (int64_t j = 0; j < nv; j++)
      stat = widest(stat, (along[nx + j] + s->now.zu[k * nv + j] - s->now.zl[k * nv + j]) * size[nx + j]);
    for (int64_t i = 0; i < nx && k > 0; i++) stat = widest(stat, (along[i] - lam[i - nx]) * size[i]);
    for (int64_t i = 0; i < m->nf && k == 0; i++)
      stat = widest(stat, along[m->free[i]] * size[m->free[i]]);
  }
  for (int64_t i = 0; i < nx; i++) {
    double sum = s->scale * s->g_end[i] - s->now.lam[(N - 1) * nx + i];
    for (int64_t r = 0; r < nr; r++)
      if (s->price[N * nr + r] != 0) sum += s->G_end[r + i * nr] * s->price[N * nr + r];
    stat = widest(stat, sum * size[i]);
  }
  misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  s->zsum = s->zcount = 0;
  for (int64_t k = 0; k <= N; k++) {
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      if (s->holds[i] == 0) continue;
      const double unit = told(o, 1 / s->d[m->row[j]]);
      viol = widest(viol, s->rho[i]);
      r_viol = widest(r_viol, s->rho[i] / s->d[m->row[j]] / unit);
      if (s->gives[i] == 0) /* by the limit itself, not the relaxed one */
        r_viol = larger(r_viol, m->sign[j] * (s->rows[k * m->nr + m->row[j]] - q->limit[j]) / unit);
      s->zsum += s->now.z[i], s->zcount++;
      if (s->gives[i] == 0) continue;
      s->zsum += s->now.y[i], s->zcount++;
      const double cost = s->w1[i] + s->v[i] + s->w2[i] * s->now.e[i];
      stat = widest(stat, cost - s->now.z[i] - s->now.y[i]);
    }
    for (int64_t j = 0; j < m->ne; j++) {
      const double unit = 1 / s->d[m->row[m->ns + j]];
      viol = widest(viol, s->missed[k * m->ne + j]);
      r_viol = widest(r_viol, s->missed[k * m->ne + j] * unit / told(o, unit));
    }
  }
  for (int64_t i = 0; i < N * nx; i++) r_viol = widest(r_viol, s->gap[i] / told(o, s->size[i % nx]));
  for (int64_t j = 0; j < nv; j++)
    s->zcount += (double)(N * (isfinite(s->lower[j]) + isfinite(s->upper[j])));
  s->zsum += weighed_sum(s->now.zl, N, nv, size + nx) + weighed_sum(s->now.zu, N, nv, size + nx);
  s->lsum = weighed_sum(s->now.lam, N, nx, size), s->lcount = (double)(N * nx);
  if (!s->mem->elastic)
    s->lsum += sum_of(s->now.nu, (N + 1) * m->ne), s->lcount += (double)((N + 1) * m->ne);
  s->stat = stat, s->viol = widest(viol, widest_gap(m, q, s, s->gap));
  s->r_viol = widest(r_viol, s->viol);
  if (s->mem->elastic) { /* by a change of the size violations fall by at most the tolerance, relative to them */
    double most;
    violated(m, q, s, &most);
    s->unit = larger(1, s->mem->penalty * smaller(1, most));
  }
  s->g_size = widest_slope(m, q, s);
}

/* Largest distance of a product of a multiplier and its distance from mu. */
static double complementarity(const lg_model *m, const lg_task *q, const lg_state *s, double mu)
{
  const int64_t n = q->horizon * m->nv, na = (q->horizon + 1) * (m->ns + m->ne);
  const double *const below = s->below, *const above = s->above, *const zl = s->now.zl;
  const double *const zu = s->now.zu, *const slack = s->now.s, *const z = s->now.z;
  const double *const e = s->now.e, *const y = s->now.y;
  const double *const holds = s->holds, *const gives = s->gives;
  double *restrict off = s->t_below, *restrict term = s->term, most;
  for (int64_t i = 0; i < n; i++) off[i] = below[i] < INFINITY ? zl[i] * below[i] - mu : 0;
  most = largest(off, n, 0);
  for (int64_t i = 0; i < n; i++) off[i] = above[i] < INFINITY ? zu[i] * above[i] - mu : 0;
  most = largest(off, n, most);
  for (int64_t i = 0; i < na; i++) term[i] = holds[i] != 0 ? slack[i] * z[i] - mu : 0;
  most = largest(term, na, most);
  for (int64_t i = 0; i < na; i++) term[i] = gives[i] != 0 ? e[i] * y[i] - mu : 0;
  return largest(term, na, most);
}

/* What stationarity and products are divided by where multipliers are large, equation (5). */
static void error_scales(const lg_state *s, const lg_settings *o, double *sd, double *sc)
{
  const double all = (s->zsum + s->lsum) / larger(1, s->zcount + s->lcount);
  *sd = larger(o->error_scale, all) / o->error_scale;
  *sc = larger(o->error_scale, s->zsum / larger(1, s->zcount)) / o->error_scale;
}

/* The scaled error of the barrier problem, equation (5). */
static double error_of(const lg_model *m, const lg_task *q, const lg_state *s,
                       const lg_settings *o, double mu)
{
  double sd, sc;
  error_scales(s, o, &sd, &sc);
  return widest(widest(s->stat / sd, s->viol), complementarity(m, q, s, mu) / sc);
}

/* The barrier parameter with which all terms of the barrier weigh as much as the cost. */
LG_INLINE double worth(const lg_state *s)
{
  return s->scale * fabs(s->f) / larger(1, s->terms);
}

/* The last barrier parameter: its terms shift the cost by at most half of the tolerance, relative to it. One
 * that is lowered falls to half of that, as the cost may fall, too. */
static double last_of(const lg_task *q, const lg_state *s, const lg_settings *o)
{
  const double most = larger(o->mu_least, o->mu_last * q->tolerance);
  if (s->mem->elastic) return s->mu <= most * s->unit ? s->mu : larger(most, most * s->unit / 2);
  if (!(s->terms > 0) || s->mu > most) return most; /* first as far as this */
  const double own = q->tolerance * worth(s) / 2;
  return s->mu <= own ? s->mu : clip(own / 2, larger(o->mu_least, o->mu_last * most), most);
}

/* ---- the Newton system ------------------------------------------------------------------------*/

/* Terms of bounds and constraints in the matrix, and what does not depend on the right-hand side. */
static void condense(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, na = m->ns + m->ne, nv = m->nv;
  const double *const below = s->below, *const above = s->above, *const zl = s->now.zl;
  const double *const zu = s->now.zu, *const slack = s->now.s, *const z = s->now.z;
  const double *const e = s->now.e, *const y = s->now.y, *const w2 = s->w2;
  const double *const holds = s->holds, *const gives = s->gives;
  double *restrict box = s->box, *restrict b = s->b, *restrict sigma = s->sigma;
  for (int64_t i = 0; i < N * nv; i++) box[i] = zl[i] / below[i] + zu[i] / above[i];
  for (int64_t i = 0; i < (N + 1) * m->nr; i++) s->weight[i] = 0;
  if (na == 0) return;
  for (int64_t i = 0; i < (N + 1) * na; i++) b[i] = gives[i] != 0 ? e[i] / (y[i] + e[i] * w2[i]) : 0;
  for (int64_t i = 0; i < (N + 1) * na; i++)
    sigma[i] = holds[i] != 0 ? z[i] / (slack[i] + z[i] * b[i]) : 0;
  for (int64_t k = 0; k <= N; k++) {
    double *own = s->weight + k * m->nr;
    for (int64_t j = 0; j < na; j++) {
      const double d = s->d[m->row[j]];
      own[m->row[j]] += d * d * sigma[k * na + j];
    }
    for (int64_t j = m->ns; j < na && !s->mem->elastic; j++) {
      const double d = s->d[m->row[j]];
      if (m->active[k * na + j] != 0) own[m->row[j]] += d * d / o->compliance;
    }
  }
}

/* Changes of rows along the step. */
static void row_changes(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr;
  lg_v by_x[nr / LG_W + 1], by_u[nr / LG_W + 1];
  for (int64_t k = 0; k < N && nr > 0; k++)
    {
      const double *G = s->G + k * nr * nz, *own = (const double *)by_x;
      dots((int)nr, (int)nx, G, nz, s->eps + k * nx, by_x);
      dots((int)nr, (int)nv, G + nx, nz, s->du + k * nv, by_u);
      for (int64_t r = 0; r < nr; r++) s->drow[k * nr + r] = own[r] + ((const double *)by_u)[r];
    }
  for (int64_t r = 0; r < nr; r++) {
    double sum = 0;
    for (int64_t j = 0; j < nx; j++) sum += s->G_end[r + j * nr] * s->eps[N * nx + j];
    s->drow[N * nr + r] = sum;
  }
}

/* Gradients of stages with prices of rows. */
static void gradients(const lg_model *m, const lg_task *q, lg_state *s, const double *price, double mu)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr;
  for (int64_t i = 0; i < N * nz; i++) s->full[i] = s->scale * s->g[i];
  for (int64_t k = 0; k < N; k++) {
    double *own = s->full + k * nz;
    pull_rows(m, s->G + k * nr * nz, price + k * nr, own);
    for (int64_t j = 0; j < nv && mu > 0; j++)
      own[nx + j] += mu / s->above[k * nv + j] - mu / s->below[k * nv + j];
    for (int64_t j = 0; j < nv && !(mu > 0); j++)
      own[nx + j] += s->now.zu[k * nv + j] - s->now.zl[k * nv + j];
  }
  for (int64_t i = 0; i < nx; i++) {
    s->full_end[i] = s->scale * s->g_end[i];
    for (int64_t r = 0; r < nr; r++)
      if (price[N * nr + r] != 0) s->full_end[i] += s->G_end[r + i * nr] * price[N * nr + r];
  }
}

/* The step about defects and misses; 0 where it is not finite. */
static int direction(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, nv = m->nv, nr = m->nr, na = m->ns + m->ne, ne = m->ne;
  const double mu = s->mu, hold = 1 / o->compliance, *const rho = s->rho, *const missed = s->missed;
  const int equal = ne > 0 && !s->mem->elastic;
  for (int64_t i = 0; i < (N + 1) * nr; i++) s->base[i] = 0;
  const double *const z = s->now.z, *const e = s->now.e, *const y = s->now.y, *const v = s->v;
  const double *const slack = s->now.s, *const w1 = s->w1, *const w2 = s->w2, *const b = s->b;
  const double *const holds = s->holds, *const gives = s->gives, *const sigma = s->sigma;
  double *restrict own_e = s->a, *restrict change = s->change;
  for (int64_t i = 0; i < (N + 1) * na; i++) {
    const double own = (mu - e[i] * (w1[i] + v[i] + w2[i] * e[i] - z[i])) / (y[i] + e[i] * w2[i]);
    own_e[i] = gives[i] != 0 ? own : 0;
  }
  for (int64_t i = 0; i < (N + 1) * na; i++) {
    const double own = (mu - slack[i] * z[i] + z[i] * (rho[i] - own_e[i])) / (slack[i] + z[i] * b[i]);
    change[i] = holds[i] != 0 ? own : 0;
  }
  for (int64_t k = 0; k <= N; k++)
    for (int64_t j = 0; j < na; j++) {
      const int64_t i = k * na + j;
      if (holds[i] != 0)
        s->base[k * nr + m->row[j]] += m->sign[j] * s->d[m->row[j]] * (z[i] - v[i] + change[i]);
    }
  double most = 0;
  for (int64_t i = 0; i < (N + 1) * ne; i++)
    s->aim[i] = s->now.nu[i], s->leave[i] = 0, most = widest(most, missed[i]);
  const int sweeps = equal ? (int)o->refinements : 1;
  for (int turn_ = 0; turn_ < sweeps; turn_++) {
    copy(s->price, s->base, (N + 1) * nr);
    for (int64_t k = 0; k <= N && equal; k++)
      for (int64_t j = 0; j < ne; j++) {
        const int64_t a = m->ns + j, i = k * ne + j;
        if (m->active[k * na + a] != 0)
          s->price[k * nr + m->row[a]] += s->d[m->row[a]] * (s->aim[i] + hold * missed[i]);
      }
    gradients(m, q, s, s->price, mu);
    back(m, q, s, s->full, s->full_end, s->gap);
    row_changes(m, q, s);
    double left = 0;
    for (int64_t k = 0; k <= N && equal; k++)
      for (int64_t j = 0; j < ne; j++) {
        const int64_t a = m->ns + j, i = k * ne + j;
        if (m->active[k * na + a] == 0) continue;
        s->leave[i] = missed[i] + s->d[m->row[a]] * s->drow[k * nr + m->row[a]];
        left = widest(left, s->leave[i]);
      }
    if (!(left > o->relax * larger(1e-3, most)) || turn_ + 1 == sweeps) break;
    for (int64_t i = 0; i < (N + 1) * ne; i++) s->aim[i] += hold * s->leave[i];
  }
  for (int64_t i = 0; i < (N + 1) * ne; i++)
    s->d_nu[i] = equal ? s->aim[i] + hold * s->leave[i] - s->now.nu[i] : 0;
  int fine = all_finite(s->eps, (N + 1) * m->nx) && all_finite(s->du, N * nv);
  fine = fine && all_finite(s->d_nu, (N + 1) * ne);
  double *restrict ds = s->ds, *restrict dz = s->dz, *restrict de = s->de, *restrict dy = s->dy;
  for (int64_t k = 0; k <= N; k++)
    for (int64_t j = 0; j < na; j++)
      ds[k * na + j] = m->sign[j] * s->d[m->row[j]] * s->drow[k * nr + m->row[j]];
  for (int64_t i = 0; i < (N + 1) * na; i++) {
    const double dh = ds[i], own = change[i] + sigma[i] * dh, excess = own_e[i] + b[i] * own;
    const double dual = w1[i] + v[i] + w2[i] * (e[i] + excess) - z[i] - own - y[i];
    dz[i] = holds[i] != 0 ? own : 0;
    de[i] = gives[i] != 0 ? excess : 0;
    dy[i] = gives[i] != 0 ? dual : 0;
    ds[i] = holds[i] != 0 ? -rho[i] - dh + de[i] : 0;
  }
  fine = fine && all_finite(ds, (N + 1) * na) && all_finite(dz, (N + 1) * na);
  const double *const lam = s->now.lam, *const zl = s->now.zl, *const zu = s->now.zu;
  const double *const below = s->below, *const above = s->above, *const du = s->du;
  double *restrict d_lam = s->d_lam, *restrict dzl = s->dzl, *restrict dzu = s->dzu;
  for (int64_t i = 0; i < N * m->nx; i++) d_lam[i] -= lam[i];
  for (int64_t i = 0; i < N * nv; i++) {
    const double low = (mu - zl[i] * du[i]) / below[i] - zl[i];
    const double high = (mu + zu[i] * du[i]) / above[i] - zu[i];
    dzl[i] = below[i] < INFINITY ? low : 0, dzu[i] = above[i] < INFINITY ? high : 0;
  }
  return fine;
}

/* Excess e and slack s that minimise w1 e + w2 e²/2 - mu log e - mu log s for h - e + s = 0, a vector
 * of them. The error after a step of Newton is about its square: a lane stays after one whose square
 * is lost in rounding. */
static void split(const double *h_, const double *w1_, const double *w2_, double mu, double *e,
                  double *s)
{
  const lg_v h = load(h_), w1 = load(w1_), w2 = load(w2_);
  const lg_v over = pick(h > 0, h, lg_zero), under = pick(h < 0, -h, lg_zero), w = w1 + w2 * over;
  const lg_v root = roots(w * w * h * h + 4 * mu * mu), whole = root + w * sizes_of(h);
  lg_v v = (2 * mu + 4 * mu * mu / whole) / (2 * w);
  lg_m goes_on = w2 > 0;
  for (int i = 0; i < 8 && is_any(goes_on); i++) {
    const lg_v a = v + over, b = v + under, per_a = 1 / a, per_b = 1 / b;
    const lg_v change = (w1 + w2 * a - mu * per_a - mu * per_b)
                        / (w2 + mu * per_a * per_a + mu * per_b * per_b);
    const lg_v left = pick(a - over < b - under, a - over, b - under) / 10;
    const lg_v next = pick(v - change > 0, v - change, left);
    const lg_m is_far = change * change > 2.220446049250313e-16 * next * next;
    v = pick(goes_on, next, v);
    goes_on &= is_far;
  }
  *(lg_u *)(void *)e = v + over, *(lg_u *)(void *)s = v + under;
}

/* Reciprocal of the longest step that leaves a share of what is positive and falls: the largest
 * rate at which any of them falls. */
static double fastest(const double *v, const double *dv, int64_t n, double sign)
{
  double most = 0;
  lg_v top = lg_zero;
  int64_t i = 0;
  for (; i + LG_W <= n; i += LG_W) {
    const lg_v own = load(v + i), rate = -sign * load(dv + i) / own;
    top = pick((own > 0) & (rate > top), rate, top);
  }
#if LG_W > 1
  for (int l = 0; l < LG_W; l++) most = larger(top[l], most);
#else
  most = top;
#endif
  for (; i < n; i++)
    if (v[i] > 0) most = larger(-sign * dv[i] / v[i], most);
  return most;
}

/* Largest steps of primal and dual variables to the boundary. */
static void longest(const lg_model *m, const lg_task *q, const lg_state *s, double tau,
                    double *primal, double *dual)
{
  const int64_t n = q->horizon * m->nv, na = (q->horizon + 1) * (m->ns + m->ne);
  double a = larger(fastest(s->below, s->du, n, 1), fastest(s->above, s->du, n, -1));
  double b = larger(fastest(s->now.zl, s->dzl, n, 1), fastest(s->now.zu, s->dzu, n, 1));
  /* what does not hold, or gives no way, does not move */
  b = larger(b, larger(fastest(s->now.z, s->dz, na, 1), fastest(s->now.y, s->dy, na, 1)));
  a = larger(a, larger(fastest(s->now.s, s->ds, na, 1), fastest(s->now.e, s->de, na, 1)));
  *primal = a > tau ? tau / a : 1, *dual = b > tau ? tau / b : 1;
}

/* The trial at a share of the step, and its cost. */
static double move(const lg_model *m, lg_task *q, lg_state *s, double alpha)
{
  const int64_t N = q->horizon, M = N + 1, na = m->ns + m->ne;
  for (int64_t i = 0; i < M * m->nx; i++) s->move[i] = alpha * s->eps[i];
  retract(m, q, M, s->now.x, s->move, s->trial.x, s->scratch);
  if (m->nf == 0) copy(s->trial.x, s->now.x, m->nq);
  copy(s->trial.u, s->now.u, N * m->nu);
  for (int64_t k = 0; k < N; k++)
    for (int64_t j = 0; j < m->nv; j++)
      s->trial.u[k * m->nu + m->controls[j]] += alpha * s->du[k * m->nv + j];
  for (int64_t i = 0; i < M * na; i++)
    s->trial.s[i] = s->now.s[i] + alpha * s->ds[i], s->trial.e[i] = s->now.e[i] + alpha * s->de[i];
  rooms(m, q, s, s->trial.u, s->t_below, s->t_above);
  return values(m, q, s);
}

LG_INLINE double near(double z, double distance, double mu, double most)
{
  const double own = clip(z, mu / (most * distance), most * mu / distance);
  return distance < INFINITY ? own : 0;
}

/* Multipliers of bounds after a step: along their own direction, or by complementarity linearized
 * about the way that their distances went, where steps are rolled out. */
static void follow_up(const lg_state *s, int64_t n, const double *z, const double *dz, double dual,
                      const double *before, const double *after, const double *on, double most,
                      double *restrict to)
{
  const double mu = s->mu;
  if (s->linear)
    for (int64_t i = 0; i < n; i++)
      to[i] = near((mu - z[i] * (after[i] - before[i])) / before[i], after[i], mu, most);
  else
    for (int64_t i = 0; i < n; i++) to[i] = near(z[i] + dual * dz[i], after[i], mu, most);
  for (int64_t i = 0; i < n && on; i++) to[i] = on[i] != 0 ? to[i] : 0;
}

/* The trial becomes the iterate. */
static void take_trial(lg_state *s)
{
  const lg_point t = s->now;
  double *const below = s->below, *const above = s->above;
  s->now = s->trial, s->trial = t;
  s->below = s->t_below, s->above = s->t_above, s->t_below = below, s->t_above = above;
}

/* Take the trial with its multipliers. */
static void accept(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, double alpha,
                   double dual)
{
  const int64_t N = q->horizon, M = N + 1, nv = m->nv, na = m->ns + m->ne;
  const double most = s->linear ? o->real_time_sigma : o->sigma_most;
  const lg_point *const a = &s->now, *const b = &s->trial;
  const double *const lam = a->lam, *const d_lam = s->d_lam, *const nu = a->nu, *const d_nu = s->d_nu;
  double *restrict new_lam = b->lam, *restrict new_nu = b->nu;
  follow_up(s, N * nv, a->zl, s->dzl, dual, s->below, s->t_below, 0, most, b->zl);
  follow_up(s, N * nv, a->zu, s->dzu, dual, s->above, s->t_above, 0, most, b->zu);
  follow_up(s, M * na, a->z, s->dz, dual, a->s, b->s, s->holds, most, b->z);
  follow_up(s, M * na, a->y, s->dy, dual, a->e, b->e, s->gives, most, b->y);
  for (int64_t i = 0; i < N * m->nx; i++) new_lam[i] = lam[i] + alpha * d_lam[i];
  for (int64_t i = 0; i < M * m->ne; i++) new_nu[i] = nu[i] + alpha * d_nu[i];
  take_trial(s);
}

/* Least-squares multipliers of dynamics and equalities, equation (36). */
static void least_squares(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o)
{
  const int64_t N = q->horizon, nr = m->nr, na = m->ns + m->ne, ne = m->ne;
  const int equal = ne > 0 && !s->mem->elastic;
  for (int64_t i = 0; i < (N + 1) * nr; i++) s->weight[i] = 0;
  for (int64_t k = 0; k <= N && equal; k++)
    for (int64_t j = m->ns; j < na; j++)
      if (m->active[k * na + j] != 0)
        s->weight[k * nr + m->row[j]] += s->d[m->row[j]] * s->d[m->row[j]] / o->compliance;
  memset(s->now.nu, 0, (size_t)((N + 1) * ne) * sizeof(double));
  memset(s->move, 0, (size_t)((N + 1) * m->nx) * sizeof(double));
  double most = INFINITY;
  if (factor(m, q, s, 0, 0, 1)) {
    for (int turn_ = 0; turn_ < (equal ? 3 : 1); turn_++) {
      row_prices(m, q, s, s->now.z, s->now.nu, s->price);
      gradients(m, q, s, s->price, 0);
      back(m, q, s, s->full, s->full_end, s->move);
      row_changes(m, q, s);
      for (int64_t k = 0; k <= N && equal; k++)
        for (int64_t j = 0; j < ne; j++) {
          const int64_t a = m->ns + j;
          if (m->active[k * na + a] != 0)
            s->now.nu[k * ne + j] += s->d[m->row[a]] * s->drow[k * nr + m->row[a]] / o->compliance;
        }
    }
    copy(s->now.lam, s->d_lam, N * m->nx);
    most = largest(s->now.nu, (N + 1) * ne, 0);
    for (int64_t k = 0; k < N; k++)
      for (int64_t i = 0; i < m->nx; i++)
        most = widest(most, s->now.lam[k * m->nx + i] * s->size[i]);
  }
  if (most <= o->multiplier_most) return;
  memset(s->now.nu, 0, (size_t)((N + 1) * ne) * sizeof(double));
  memset(s->now.lam, 0, (size_t)(N * m->nx) * sizeof(double));
}

/* ---- filter -----------------------------------------------------------------------------------*/

static int acceptable(const lg_filter *f, const lg_settings *o, double theta_, double phi_)
{
  for (int64_t i = 0; i < f->count; i++)
    if (!(theta_ < (1 - o->filter_theta) * f->theta[i]
          || phi_ < f->phi[i] - o->armijo * f->theta[i]))
      return 0;
  return 1;
}

static void augment(lg_filter *f, double theta_, double phi_)
{
  int64_t count = 0;
  for (int64_t i = 0; i < f->count; i++)
    if (!(f->theta[i] >= theta_ && f->phi[i] >= phi_))
      f->theta[count] = f->theta[i], f->phi[count] = f->phi[i], count++;
  if (count == LG_MOST_FILTER) count = 0; /* never seen; a filter that is cleared is a valid one */
  f->theta[count] = theta_, f->phi[count] = phi_, f->count = count + 1;
}

static void begin_filter(lg_filter *f, const lg_settings *o, double theta_)
{
  f->count = 0;
  f->most = o->theta_most * larger(1, theta_), f->least = o->theta_least * larger(1, theta_);
}

/* Violations of the iterate, at which a filter begins. */
static void open_filter(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  begin_filter(&s->mem->filter, o, theta(m, q, s));
}

/* Violation and barrier function of the trial. */
static void weigh(const lg_model *m, const lg_task *q, lg_state *s, double f)
{
  misses(m, q, s, &s->trial, s->t_rows, s->t_rho, s->t_missed);
  s->t_theta = theta_of(m, q, s, s->t_gap, s->t_rho, s->t_missed);
  s->t_phi = phi(m, q, s, &s->trial, s->t_below, s->t_above, f);
}

/* What rounding may change of the barrier function. */
LG_INLINE double rounding_of(double phi_) { return 10 * 2.220446049250313e-16 * fabs(phi_); }

/* Whether the filter takes the trial that a step of length alpha leads to, which has been weighed. */
static int judge(lg_state *s, const lg_settings *o, double alpha, const double ref[3])
{
  lg_filter *filter = &s->mem->filter;
  const double th = ref[0], ph = ref[1], along = ref[2], fuzz = rounding_of(ph);
  const double t = s->t_theta, p = s->t_phi;
  if (!isfinite(t) || !isfinite(p)) return 0;
  /* what it gains, as a share of what the quadratic model says */
  s->gain = (p - ph) / (alpha * (1 - alpha / 2) * along);
  if (t > filter->most || !acceptable(filter, o, t, p - fuzz)) return 0;
  const int descends = along < 0 && alpha * pow(-along, o->switch_phi) > pow(th, o->switch_theta);
  if (th <= filter->least && descends) return p - ph - fuzz <= o->armijo * alpha * along;
  if (!(t <= (1 - o->filter_theta) * th || p - fuzz <= ph - o->armijo * th)) return 0;
  augment(filter, th, ph);
  return 1;
}

/* ---- restoration ------------------------------------------------------------------------------*/

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
  mem->elastic = 0, mem->left++;
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
  /* Nothing counts as violated, and yet the step does not descend: the rounding of violations times
   * their multipliers is more than what there is to be gained. Errors tell, then. */
  const double none = 1e-2 * q->tolerance;
  const int rounding = of_solve && most == 1 && s->mem->dw == 0 && th <= none && ref[2] >= 0;
  const double error = rounding ? error_of(m, q, s, o, s->mu) : 0;
  if (ref[2] < 0) {
    least = smaller(least, o->armijo * th / -ref[2]);
    if (th <= filter->least)
      least = smaller(least, pow(th, o->switch_theta) / pow(-ref[2], o->switch_phi));
  }
  /* A shorter step is lost in rounding; without violation the published least length is zero. */
  least = larger(least * o->step_least, 2.220446049250313e-16);
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

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* ---- a solve ----------------------------------------------------------------------------------*/

/* By how much a limit is relaxed: less than what counts as violated. */
LG_INLINE double relaxed_by(const lg_task *q, const lg_settings *o, double limit, double size)
{
  return smaller(o->relax * larger(size, fabs(limit)), q->tolerance / 10 * told(o, size));
}

/* Relaxed limits of controls and constraints, as they are now. */
static void set_limits(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  for (int64_t j = 0; j < m->nv; j++) {
    const double size = s->size[m->nx + j];
    s->lower[j] = q->lower[j] - relaxed_by(q, o, q->lower[j], size);
    s->upper[j] = q->upper[j] + relaxed_by(q, o, q->upper[j], size);
  }
  for (int64_t k = 0; k < q->horizon; k++)
    for (int64_t j = 0; j < m->nv; j++)
      s->lowest[k * m->nv + j] = s->lower[j], s->highest[k * m->nv + j] = s->upper[j];
  for (int64_t j = 0; j < m->ns + m->ne; j++) {
    const int hard = j < m->ns && !is_soft(m, q, j) && !m->start[j];
    const double by = relaxed_by(q, o, q->limit[j], 1 / s->d[m->row[j]]);
    s->limit[j] = q->limit[j] + (hard ? m->sign[j] * by : 0);
  }
}

/* How far off its limits the first iterate has a control. */
static void apart(const lg_model *m, const lg_state *s, const lg_settings *o, int64_t j, double *least,
                  double *most)
{
  const double size = s->size[m->nx + j];
  const int low = isfinite(s->lower[j]), high = isfinite(s->upper[j]);
  *least = low ? o->push * larger(size, fabs(s->lower[j])) : 0;
  *most = high ? o->push * larger(size, fabs(s->upper[j])) : 0;
  if (low && high) {
    const double range = o->push * (s->upper[j] - s->lower[j]);
    *least = smaller(*least, range), *most = smaller(*most, range);
  }
}

/* Sizes of controls that have a limit: half of their range, or how far the limit is from zero, from the
 * reference and from where the solve starts. */
static double size_of_control(const lg_model *m, const lg_task *q, const lg_state *s, int64_t j)
{
  const double low = q->lower[j], high = q->upper[j];
  if (isfinite(low) && isfinite(high)) return high > low ? (high - low) / 2 : 1;
  double most = isfinite(low) ? fabs(low) : isfinite(high) ? fabs(high) : 0;
  for (int64_t k = 0; k < q->horizon; k++) {
    const int64_t i = k * m->nu + m->controls[j];
    most = widest(widest(most, s->now.u[i]), q->u_ref[i]);
  }
  return most;
}

/* A size, or another one for none. */
LG_INLINE double known_size(double size, double other)
{
  return size > 0 && size < INFINITY ? size : other;
}

/* A size as loops count it: none from 1/30 to 30. */
LG_INLINE double counted(const lg_settings *o, double size)
{
  return size / clip(size, 1 / o->size_free, o->size_free);
}

/* Changes of states over the horizon that controls of some sizes cause, at first order: what they add
 * to steps, and what that adds to other states; two turns at most, as growth in
 * loops says nothing. Of plans a state does not add to itself: its growth, which stiff ones have, is no size. */
static void respond(const lg_model *m, const lg_task *q, const lg_state *s, const double *size,
                    int turns, int64_t of, double *found)
{
  const int64_t nx = m->nx, nv = m->nv, nz = nx + nv;
  double before[nx];
  for (int turn_ = 0; turn_ <= turns; turn_++) {
    for (int64_t l = 0; l < nx; l++) before[l] = turn_ > 0 ? found[l] : 0, found[l] = before[l];
    for (int64_t l = 0; l < nx; l++) {
      double all = 0;
      for (int64_t k = 0; k < q->horizon; k++) {
        const double *F = s->F + (k * nx + l) * nz;
        double own = 0;
        for (int64_t i = 0; i < nx && turn_ > 0; i++)
          own += i == l && of == LG_OF_PLANS ? 0 : fabs(F[i] - (i == l)) * before[i] / 2;
        for (int64_t j = 0; j < nv && turn_ == 0; j++) own += fabs(F[nx + j]) * size[j];
        if (isfinite(own)) all += own;
      }
      found[l] = larger(found[l], all);
    }
  }
}

/* Sizes of error coordinates and controls, so that numbers of any unit are numbers of size one. States:
 * how far they are from the reference, from what equalities ask for, and what controls change.
 * Controls without limits: what changes states by their sizes, of plans the largest that one asks for.
 * Whether a quarter of the states have one; the others take the mean of all sizes. With half for a quarter
 * the hopper of test_phases.py is lost, without it Solo12 of the benchmarks. */
static int measure(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, int64_t of)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr, na = m->ns + m->ne;
  double *size = s->size, others[nv + 1], with[nx];
  for (int64_t i = 0; i < nx; i++) size[i] = 0;
  errors(m, N + 1, s->now.x, q->x_ref, s->move, s->scratch);
  for (int64_t i = 0; i < (N + 1) * nx; i++)
    if (isfinite(s->move[i])) size[i % nx] = widest(size[i % nx], s->move[i]);
  for (int64_t j = 0; j < nv; j++) {
    size[nx + j] = size_of_control(m, q, s, j);
    others[j] = size[nx + j] > 0 ? 0 : 1;
  }
  for (int64_t k = 0; k <= N; k++)
    for (int64_t j = m->ns; j < na; j++) {
      const int64_t r = m->row[j], apart_ = k < N ? 1 : nr;
      const double *G = k < N ? s->G + (k * nr + r) * nz : s->G_end + r;
      if (m->active[k * na + j] == 0) continue;
      const double miss = s->rows[k * nr + r] - q->limit[j];
      double all = 0;
      for (int64_t i = 0; i < nx; i++) all += G[i * apart_] * G[i * apart_];
      for (int64_t i = 0; i < nx; i++) {
        const double own = miss * G[i * apart_] / larger(all, 1e-300);
        if (isfinite(own)) size[i] = widest(size[i], own);
      }
    }
  const double least = o->relax * largest(q->x_ref, (N + 1) * m->nq, largest(s->now.x, (N + 1) * m->nq, 0));
  for (int64_t i = 0; i < nx; i++)
    if (!(size[i] > least)) size[i] = 0; /* by rounding alone */
  respond(m, q, s, others, 2, of, with);
  double ratio = of == LG_OF_STEPS ? INFINITY : 0;
  for (int64_t i = 0; i < nx; i++)
    if (!(size[i] > 0 && with[i] > 0)) continue;
    else if (of == LG_OF_STEPS) ratio = smaller(ratio, size[i] / with[i]);
    else if (s->g_end[i] == 0 || s->H_end[i * (nx + 1)] != 0) /* what collects a cost is aimed at nothing */
      ratio = larger(ratio, size[i] / with[i]);
  if (!(ratio > 0 && ratio < INFINITY)) ratio = 1;
  for (int64_t j = 0; j < nv; j++)
    if (others[j] > 0) size[nx + j] = ratio;
  respond(m, q, s, size + nx, 0, of, with); /* states next to the reference are moved all the same */
  for (int64_t i = 0; i < nx; i++)
    if (!(size[i] > o->relax * with[i])) size[i] = 0;
  /* what changes of these sizes change, beyond the first order, too: a cost that is a state */
  copy(s->trial.x, s->now.x, (N + 1) * m->nq);
  copy(s->trial.u, s->now.u, N * m->nu);
  for (int64_t k = 0; k < N; k++)
    for (int64_t j = 0; j < nv; j++) {
      double *v = s->trial.u + k * m->nu + m->controls[j];
      const double up = s->upper[j] - *v, down = *v - s->lower[j], by_ = size[nx + j];
      *v += up >= down ? smaller(by_, up * o->boundary) : -smaller(by_, down * o->boundary);
    }
  values(m, q, s);
  for (int64_t i = 0; i < nx; i++) {
    double all = 0, rest = 0, first = 0;
    int integrates = 1;
    for (int64_t k = 0; k < N; k++) {
      const double *F = s->F + (k * nx + i) * nz;
      double by_ = 0;
      for (int64_t l = 0; l < nx; l++)
        integrates = integrates && s->F[(k * nx + l) * nz + i] == (l == i);
      for (int64_t l = 0; l < nz; l++) by_ += fabs(F[l] - (l == i)) * size[l];
      const double gap = fabs(s->gap[k * nx + i]), own = fabs(s->t_gap[k * nx + i] - s->gap[k * nx + i]);
      all += isfinite(own) ? own : 0, rest += isfinite(gap) ? gap : 0, first += isfinite(by_) ? by_ : 0;
    }
    if (integrates && size[i] < o->push * larger(all, rest)) size[i] = larger(all, rest);
    if (integrates && size[i] < o->push * first && of == LG_OF_PLANS) size[i] = first;
  }
  double logs = 0, count = 0;
  int64_t known = 0;
  for (int64_t i = 0; i < nx; i++) known += known_size(size[i], 0) > 0;
  for (int64_t i = 0; i < nz; i++)
    if (size[i] > 0 && size[i] < INFINITY) logs += log(size[i]), count++;
  const double mean = count > 0 ? exp(logs / count) : 1;
  for (int64_t i = 0; i < nz; i++) {
    size[i] = known_size(size[i], mean);
    if (of == LG_OF_STEPS) size[i] = counted(o, size[i]);
  }
  return 4 * known >= nx;
}

/* Reciprocals of the sizes. */
static void set_metric(const lg_model *m, lg_state *s)
{
  for (int64_t i = 0; i < m->nx + m->nv; i++)
    s->rate[i] = 1 / s->size[i], s->metric[i] = s->rate[i] * s->rate[i];
}

/* The scale of the cost. Of plans its derivative, for changes of the sizes, becomes one. It counts as far as
 * such a change leaves of it by curvature, but at least a share: that of a square falls on the way to its
 * least. Without a derivative at first, its curvature becomes one: constraints move it from its least. In
 * loops the derivative is at least one and at most some; below one the curvature counts, too. */
static double scale_of_cost(const lg_model *m, const lg_task *q, const lg_state *s, const lg_settings *o,
                            int64_t of)
{
  const int64_t nx = m->nx, nz = nx + m->nv, count = q->horizon * nz;
  double steepest = 0, most = 0;
  for (int64_t i = 0; i < count + nx; i++) {
    const int at_end = i >= count;
    const double size = s->size[at_end ? i - count : i % nz];
    const double slope = fabs(at_end ? s->g_end[i - count] : s->g[i]) * size;
    const double bent = (at_end ? s->H_end[(i - count) * (nx + 1)] : s->H[i * nz + i % nz]) * size * size;
    const double left = of == LG_OF_STEPS ? slope : larger(slope - bent, slope / o->gradient_bent);
    if (isfinite(left)) steepest = larger(steepest, left);
    if (isfinite(bent)) most = larger(most, bent);
  }
  if (of == LG_OF_STEPS) {
    if (!(steepest > 1)) steepest = larger(steepest, most / 2); /* maybe at an optimum of the cost alone */
    return steepest > 0 ? clip(steepest, smaller(1, o->gradient_most), o->gradient_most) / steepest : 1;
  }
  if (o->gradient_bent * steepest < o->slope_least * most) steepest = most;
  return steepest > 0 ? 1 / steepest : 1;
}

/* The scale of a row. Of plans its derivative, for changes of the sizes, becomes one if it is an equality,
 * else that of a curved cost; where it is nearest to its limit. One without, as a square at zero, has its
 * distance. In loops the largest derivative is at most some, and at least one if there are sizes. */
static double scale_of_row(const lg_model *m, const lg_task *q, const lg_state *s, const lg_settings *o,
                           int64_t of, int64_t r)
{
  const int64_t N = q->horizon, nx = m->nx, nz = nx + m->nv, nr = m->nr, na = m->ns + m->ne;
  double most = 0, near = 0, far = 0, nearest = -INFINITY, aim = o->gradient_bent, least = 0;
  for (int64_t j = 0; j < na; j++) {
    if (m->row[j] != r) continue;
    if (j >= m->ns) aim = 1;
    for (int64_t k = 0; k <= N; k++) {
      if (m->active[k * na + j] == 0) continue;
      double slope = 0;
      for (int64_t i = 0; i < (k < N ? nz : nx); i++) {
        const double own = fabs(k < N ? s->G[(k * nr + r) * nz + i] : s->G_end[r + i * nr]) * s->size[i];
        if (own > slope && isfinite(own)) slope = own;
      }
      const double off = s->rows[k * nr + r] - q->limit[j], over = j < m->ns ? m->sign[j] * off : fabs(off);
      if (over > nearest) nearest = over, near = slope;
      most = larger(most, slope);
      if (fabs(off) > far && isfinite(off)) far = fabs(off);
    }
  }
  if (of == LG_OF_STEPS) {
    for (int64_t i = 0; i < nz; i++) least = s->size[i] == 1 ? least : 1;
    const double size = !(most > 0) && least > 0 ? far : most;
    return size > 0 ? clip(size, least, o->gradient_most) / size : 1;
  }
  double size = larger(near, o->slope_near * most);
  if (size < o->slope_least * far) size = far;
  return size > 0 ? aim / size : 1;
}

/* Scales of a kind. Those of plans are those of loops where few states have a size: others take the mean of
 * these, whose units are others, and the rules of loops depend on it less. */
static void set_scales(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, int64_t of)
{
  if (!measure(m, q, s, o, of) && of == LG_OF_PLANS) measure(m, q, s, o, of = LG_OF_STEPS);
  s->scale = s->mem->scale = scale_of_cost(m, q, s, o, of);
  for (int64_t r = 0; r < m->nr; r++) s->d[r] = scale_of_row(m, q, s, o, of, r);
}

/* The other scales come into use; multipliers stay those of the ones before. */
static void swap_scales(const lg_model *m, const lg_task *q, lg_state *s)
{
  const int64_t count = m->nr + m->nx + m->nv;
  double *const in = q->scales, *const other = in + count, scale = s->mem->scale;
  for (int64_t i = 0; i < count; i++) {
    const double kept = in[i];
    in[i] = other[i], other[i] = kept;
  }
  s->scale = s->mem->scale = s->mem->other, s->mem->other = scale;
  s->mem->of = s->mem->of == LG_OF_PLANS ? LG_OF_STEPS : LG_OF_PLANS;
}

/* A plan in the scales that the task asks for: multipliers, slacks and barrier as they are in these. */
static void change_scales(const lg_model *m, const lg_task *q, lg_state *s)
{
  if (s->mem->of == q->of) return;
  const int64_t N = q->horizon, nr = m->nr, na = m->ns + m->ne, count = nr + m->nx + m->nv;
  const lg_point *now = &s->now;
  const double by = s->mem->other / s->mem->scale, *const in = q->scales, *const other = in + count;
  for (int64_t i = 0; i < (N + 1) * na; i++) {
    const double ratio = other[m->row[i % na]] / in[m->row[i % na]];
    now->s[i] *= ratio, now->e[i] *= ratio, now->z[i] *= by / ratio, now->y[i] *= by / ratio;
  }
  for (int64_t i = 0; i < (N + 1) * m->ne; i++) {
    const int64_t r = m->row[m->ns + i % m->ne];
    now->nu[i] *= by * in[r] / other[r];
  }
  for (int64_t i = 0; i < N * m->nv; i++) now->zl[i] *= by, now->zu[i] *= by;
  for (int64_t i = 0; i < N * m->nx; i++) now->lam[i] *= by;
  s->mem->mu *= by, s->mem->spread *= by;
  swap_scales(m, q, s);
}

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
  set_scales(m, q, s, o, mem->of);
  set_metric(m, s);
  for (int64_t i = 0; i < N * nv; i++) {
    const double z = s->rate[nx + i % nv];
    s->now.zl[i] = isfinite(s->lower[i % nv]) ? z : 0;
    s->now.zu[i] = isfinite(s->upper[i % nv]) ? z : 0;
  }
  set_limits(m, q, s, o);
  mem->mu = s->mu = bounded ? o->mu_first : last_of(q, s, o);
  q->scale = s->scale;
  set_form(m, q, s);
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
  s->mem->mu = s->mu, s->mem->filter.count = 0;
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
    const double place = (double)(i + 1) * 0.6180339887498949;
    s->du[i] = (place - floor(place) - 0.5) * s->size[nx + i % nv];
  }
  memset(s->eps, 0, (size_t)((N + 1) * nx) * sizeof(double));
  memset(s->move, 0, (size_t)((N + 1) * nx) * sizeof(double));
  for (int turn_ = 0; turn_ < 3; turn_++) {
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
  s->mem->alpha = 1, s->mem->error = 0;
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
  if (!(curvature < -1e-3 * mem->dw) || !(stays || fabs(along) <= 1e-3 * size)) return 0;
  mem->nudges++;
  return nudge(m, q, s, o);
}

/* The residual that is compared with the tolerance goes to the log, and is returned: violations and
 * defects in units of the problem. */
static double note(const lg_model *m, const lg_task *q, const lg_state *s, const lg_settings *o)
{
  double *row = q->log + q->iterations * LG_LOG, sd, sc;
  error_scales(s, o, &sd, &sc);
  if (s->mem->elastic) sd = larger(sd, s->unit), sc = larger(sc, s->unit);
  row[0] = s->f, row[1] = s->stat / sd, row[2] = s->r_viol;
  row[3] = complementarity(m, q, s, 0) / sc;
  row[4] = s->mem->alpha, row[5] = s->mem->dw, row[6] = s->mu, row[7] = (double)s->mem->elastic;
  row[8] = largest(s->gap, q->horizon * m->nx, 0);
  return widest(widest(row[1], row[2]), row[3]);
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

/* One more step of a solve; its status, or LG_ITERATIONS where it goes on. An iterate that met the tolerance
 * at the barrier parameter `met` was kept: a step that did not lower its error is one of rounding. */
static int advance(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, double met)
{
  lg_memory *mem = s->mem;
  const double least = larger(o->mu_least, o->mu_last * q->tolerance);
  const double before = mem->error; /* 0 at the first step: none was taken that could have lowered it */
  if (met <= least && before > 0 && error_of(m, q, s, o, s->mu) >= before) return LG_STALLED;
  double last = last_of(q, s, o);
  const int whole = mem->alpha == 1 && mem->dw == 0;
  int fast = mem->alpha >= o->fast_step && mem->dw == 0;
  double error = 0;
  while (s->mu > last) {
    error = error_of(m, q, s, o, s->mu);
    fast = fast && mem->error > 0 && (is_free(m) || error <= o->fast_error * mem->error);
    if (!(error <= o->mu_error * s->mu) && !fast) break;
    lower_barrier(s, o, last);
    fast = 0;
  }
  if (!(s->mu > last)) { /* whole steps that no longer lower it: rounding */
    error = error_of(m, q, s, o, s->mu);
    if (whole && error >= mem->error && (double)++mem->tiny > o->tiny_most) return LG_STALLED;
  }
  mem->error = error;
  s->linear = is_free(m) && s->mu > last; /* rounding next to a limit spoils the last steps */
  for (;;) {
    const double tau = larger(o->boundary, 1 - s->mu);
    const int has_gains = regularize(m, q, s, o);
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
      return LG_ITERATIONS;
    }
    if (theta(m, q, s) > 1e-2 * q->tolerance
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
  begin_form(m, q, s, o, larger(s->mu, smaller(most, o->mu_first) * 1e-2));
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
  mem->alpha = 1, mem->error = mem->dw_last = 0, mem->tiny = mem->left = 0;
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
 * whole step; beyond its end the last controls are held. Other inputs follow the reference. A clock
 * that jumped says no more than no time, or that of a whole plan. */
static void later(const lg_model *m, lg_task *q, lg_state *s)
{
  const int64_t N = q->horizon;
  const double steps = clip((q->t[0] - q->start) / q->dt, 0, (double)N), whole = nearbyint(steps);
  const double slack = larger(LG_SAME_NODE,
    LG_SAME_NODE_ROUNDINGS * 2.220446049250313e-16 * fabs(q->t[0]) / q->dt);
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

/* A distance as far as it fits the multiplier that was kept. */
LG_INLINE double fitting(double distance, double kept, double mu, double most)
{
  return kept > 0 ? clip(distance, mu / (most * kept), most * mu / kept) : distance;
}

/* The trial that the plan was rolled out to, with the multipliers of the plan. Distances from rows
 * that do not fit them are off at first, as defects are: multipliers are worth more. */
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

/* Real-time steps: the plan moves on to the times of the task, is rolled out from x0 under its gains,
 * is improved by steps of the solve at a barrier parameter that follows how far from optimal the
 * plan is; a line search that fails leaves the plan. With hard rows only the first step is rolled
 * out, and the last one if defects are large: a rollout along curved rows loses the distances that
 * their multipliers fit. Where they end with a hard row exceeded the last
 * iterate that kept all of them counts, unless it costs much more than the plan at the start. */
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
  const int64_t most = q->max_iterations + q->more;
  double off = 0, started = 0, fall = 0;
  int has_kept = 0;
  for (;;) {
    expand_twice(m, q, s);
    if (is_followed && is_free(m) && q->iterations == 0 && !isfinite(s->f)) {
      take_trial(s); /* nobody asked for the rollout's cost: the plan as it is, then */
      copy(s->now.x, x0, m->nq);
      expand_twice(m, q, s);
    }
    if (!isfinite(s->f)) status = LG_NOT_FINITE;
    if (status != LG_ITERATIONS || q->max_iterations <= 0) break;
    off = adjoint(m, q, s);
    const double cost = priced_cost(m, q, s->rows, s->f);
    if (q->iterations == 0) started = cost;
    if (has_hard(m, q) && !exceeds(m, q, s, s->rows) && largest(s->gap, N * m->nx, 0) <= q->tolerance
        && cost <= started + o->real_time_dearer * fabs(started)) {
      copy(s->saved_memory, s->now.x, s->plan);
      has_kept = 1;
    }
    const int is_first = q->iterations == 0, is_calm = s->mem->spread > 0;
    const int is_cut = s->mem->alpha < o->real_time_short;
    const double high = larger(q->mu_most, worth(s));
    const int is_raised = is_cut && s->mu < high;
    if (is_raised) {
      s->mu = s->mem->mu = larger(q->mu_most, smaller(high, o->real_time_rise * s->mu));
      recentre(m, q, s, o);
    } else if (is_first) {
      const double share = o->mu_factor, known = s->mem->alpha == 1 ? off * off : share * off;
      const double least = larger(share * s->mu, is_calm ? s->mem->spread : known);
      s->mu = s->mem->mu = larger(o->real_time_mu_last, smaller(s->mu, least));
    } else if (has_hard(m, q) ? is_solved(m, q, s, o) : is_calm) {
      s->mu = s->mem->mu = larger(o->real_time_mu_last, o->mu_factor * s->mu);
    }
    q->iterations++;
    int is_ready = 0; /* again where the state moved: at a barrier that what is to be gained fits */
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
    s->mem->spread = is_modelled && s->mem->alpha == 1 ? fall : 0;
    if (s->mem->alpha == 0) {
      status = LG_STALLED;
      break;
    }
    copy(s->rows, s->t_rows, (N + 1) * m->nr);
    const int is_far = (off > o->real_time_far && !is_modelled)
      || s->mem->alpha < o->real_time_short || exceeds(m, q, s, s->rows)
      || (has_hard(m, q) && s->mu > q->mu_most);
    const int is_due = q->iterations < q->max_iterations || (q->iterations < most && is_far);
    if (is_due && !(q->watch && q->watch(q->log))) continue;
    /* What the caller is told is known without another expansion. */
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
  /* Exceeded by two calls one after the other, and next to an optimum at a penalty: not to be kept. */
  const int is_settled = off <= o->acceptable
    || (off <= o->real_time_far && s->mem->alpha >= o->real_time_short);
  const int beyond = exceeds(m, q, s, s->rows);
  if (status != LG_NOT_FINITE && beyond && s->mem->beyond && is_settled) status = LG_INFEASIBLE;
  s->mem->beyond = beyond;
  double *row = q->log;
  row[0] = s->f, row[1] = off, row[3] = NAN, row[4] = s->mem->alpha, row[5] = s->mem->dw;
  row[2] = largest(s->gap, N * m->nx, largest(s->rho, (N + 1) * (m->ns + m->ne),
                   largest(s->missed, (N + 1) * m->ne, 0)));
  row[6] = s->mu, row[7] = (double)s->mem->elastic, row[8] = largest(s->gap, N * m->nx, 0);
  return close_task(m, q, s, status);
}
