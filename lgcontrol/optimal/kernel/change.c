/* How a solution changes: its optimality conditions, linearized with what is active held, are solved
 * by generalized conjugate residuals on the factors of a sweep (Eisenstat, Elman and Schultz 1983).
 *
 * A change is a column: states, controls, multipliers of the dynamics and of rows. Residuals have
 * the same order: stationarity by states and controls, defects, rows. `hold` says of each row
 * whether it stays at its limit (1), or is a soft one that is exceeded (2), with its weight. */
typedef struct {
  double *eps, *du, *lam, *nu;
} lg_parts;

static int64_t lay_change(const lg_model *m, int64_t N, double *at, lg_parts *o)
{
  o->eps = at, o->du = o->eps + (N + 1) * m->nx, o->lam = o->du + N * m->nv;
  o->nu = o->lam + N * m->nx;
  return o->nu + (N + 1) * m->nr - at;
}

/* The linearized conditions for a change, and for one of the data unless that is null; returns the
 * change of the cost. */
static double conditions(const lg_model *m, const lg_task *q, lg_state *s, const lg_change *c,
                         double *change, const double *data, double *result)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr;
  const double *x = s->now.x, *u = s->now.u, *none = c->none;
  const double *dx = data ? data : none, *du = data ? dx + (N + 1) * m->nq : none;
  const double *dp = data ? du + (N + 1) * m->nu : none, *shift = data ? dp + c->parameters : none;
  lg_parts y, r;
  lay_change(m, N, change, &y), lay_change(m, N, result, &r);
  const double *in[] = {q->t, x, u, x + m->nq, q->x_ref, q->u_ref, q->p, q->w, q->steps, c->lam,
                        c->price, y.eps, y.du, dx, du, dp};
  double *const out[] = {s->cost, r.lam, s->drow, s->full};
  call(&c->along, N, in, out, s->scratch);
  const double *end[] = {q->t + N, x + N * m->nq, q->u_ref + N * m->nu, q->x_ref + N * m->nq, q->p,
                         q->w_end, q->P, c->price + N * nr, y.eps + N * nx, du + N * m->nu,
                         dx + N * m->nq, dp};
  double *const last[] = {s->cost + N, s->drow + N * nr, s->full_end};
  call(&c->end_along, 1, end, last, s->scratch);
  double cost = 0;
  for (int64_t k = 0; k <= N; k++) {
    const double *G = k < N ? s->G + k * nr * nz : s->G_end;
    double *own = k < N ? s->full + k * nz : s->full_end;
    cost += s->cost[k];
    for (int64_t i = k * nr; i < (k + 1) * nr; i++) {
      double price = y.nu[i];
      r.nu[i] = s->drow[i];
      if (c->hold[i] == LG_ROW_EXCEEDED) {
        cost += c->price[i] * s->drow[i];
        price = c->weight[i] * s->drow[i] + shift[i];
      }
      if (c->hold[i] == LG_ROW_FREE || price == 0) continue;
      for (int64_t j = 0; k < N && j < nz; j++) own[j] += G[(i - k * nr) * nz + j] * price;
      for (int64_t j = 0; k == N && j < nx; j++) own[j] += G[i - k * nr + j * nr] * price;
    }
    if (k < N) pull_back(m, s->F + k * nx * nz, y.lam + k * nx, own);
    for (int64_t i = 0; i < nx; i++)
      r.eps[k * nx + i] = own[i] - (k > 0 ? y.lam[(k - 1) * nx + i] : 0);
    for (int64_t j = 0; k < N && j < nv; j++) r.du[k * nv + j] = own[nx + j];
    for (int64_t i = 0; k < N && i < nx; i++) r.lam[k * nx + i] -= y.eps[(k + 1) * nx + i];
  }
  for (int64_t i = 0; i < nx && m->nf > 0; i++)
    for (int64_t j = 0; j < nx; j++) r.eps[i] += c->arrival[i + j * nx] * y.eps[j];
  return cost;
}

/* The change that the factors have for a residual; what is fixed stays. */
static void presolve(const lg_model *m, const lg_task *q, lg_state *s, const lg_change *c,
                     double *residual, double *change)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv, nz = nx + nv, nr = m->nr;
  lg_parts r, y;
  lay_change(m, N, residual, &r), lay_change(m, N, change, &y);
  for (int64_t k = 0; k <= N; k++) {
    const double *G = k < N ? s->G + k * nr * nz : s->G_end;
    double *own = k < N ? s->full + k * nz : s->full_end;
    for (int64_t i = 0; i < nx; i++) own[i] = -r.eps[k * nx + i];
    for (int64_t j = 0; k < N && j < nv; j++)
      own[nx + j] = c->fix[k * nv + j] ? 0 : -r.du[k * nv + j];
    for (int64_t i = k * nr; i < (k + 1) * nr; i++) {
      if (c->hold[i] != LG_ROW_HELD) continue;
      const double by = c->weight[i] * r.nu[i];
      for (int64_t j = 0; k < N && j < nz; j++) own[j] -= G[(i - k * nr) * nz + j] * by;
      for (int64_t j = 0; k == N && j < nx; j++) own[j] -= G[i - k * nr + j * nr] * by;
    }
  }
  for (int64_t i = 0; i < N * nx; i++) s->t_gap[i] = -r.lam[i];
  back(m, q, s, s->full, s->full_end, s->t_gap);
  row_changes(m, q, s);
  copy(y.eps, s->eps, (N + 1) * nx), copy(y.lam, s->d_lam, N * nx);
  for (int64_t i = 0; i < N * nv; i++) y.du[i] = c->fix[i] ? 0 : s->du[i];
  for (int64_t i = 0; i < (N + 1) * nr; i++)
    y.nu[i] = c->hold[i] == LG_ROW_HELD ? c->weight[i] * (s->drow[i] - r.nu[i]) : 0;
}

/* Squares of what residuals are weighed by: sizes of their coordinates, and 0 for what is fixed. */
static void weigh_residuals(const lg_model *m, const lg_task *q, const lg_state *s,
                            const lg_change *c, double *weights)
{
  const int64_t N = q->horizon, nx = m->nx, nv = m->nv;
  lg_parts w;
  const int64_t size = lay_change(m, N, weights, &w);
  for (int64_t i = 0; i < size; i++) weights[i] = 0;
  for (int64_t i = nx; i < (N + 1) * nx; i++) w.eps[i] = c->scale * s->size[i % nx];
  for (int64_t i = 0; i < m->nf; i++) w.eps[m->free[i]] = c->scale * s->size[m->free[i]];
  for (int64_t i = 0; i < N * nv; i++) w.du[i] = c->fix[i] ? 0 : c->scale * s->size[nx + i % nv];
  for (int64_t i = 0; i < N * nx; i++) w.lam[i] = s->rate[i % nx];
  for (int64_t i = 0; i < (N + 1) * m->nr; i++) w.nu[i] = c->hold[i] == LG_ROW_HELD ? s->d[i % m->nr] : 0;
  for (int64_t i = 0; i < size; i++) weights[i] *= weights[i];
}

static double inner(int64_t n, const double *weights, const double *a, const double *b)
{
  lg_v sums = lg_zero;
  double sum = 0;
  int64_t i = 0;
  for (; i + LG_W <= n; i += LG_W) sums += load(weights + i) * load(a + i) * load(b + i);
  for (; i < n; i++) sum += weights[i] * a[i] * b[i];
  return sum + added(sums);
}

static void add(int64_t n, double by, const double *a, double *to)
{
  for (int64_t i = 0; i < n; i++) to[i] += by * a[i];
}

/* The conditions about the solution with what is active held, factorized; 0 where that fails. */
static int factor_held(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o,
                       const lg_change *c)
{
  const int64_t N = q->horizon, nv = m->nv;
  double dw = 0;
  set_metric(m, s);
  expand(m, q, s);
  const int bent = bend(m, q, s, c->lam, c->price);
  for (int64_t i = 0; i < (N + 1) * m->nr; i++) s->weight[i] = c->hold[i] ? c->weight[i] : 0;
  for (int64_t i = 0; i < N * nv; i++)
    s->box[i] = c->fix[i] ? c->wall / c->scale * s->metric[m->nx + i % nv] : 0;
  while (!factor(m, q, s, dw, bent, 0)) {
    dw = dw > 0 ? o->regularization_grow_first * dw : o->regularization_first / c->scale;
    if (!(dw < o->regularization_most)) return 0;
  }
  return 1;
}

/* Changes for some directions: those of the data that `data` has, or right-hand sides that `left`
 * has; `changes` begins with what is given of states and controls. What remains of the conditions
 * goes to `left`: of controls that are fixed, and minus the change of rows that are not held. */
LG_EXPORT int lg_newton_change(const lg_model *m, lg_task *q, const lg_settings *o, lg_change *c)
{
  const int64_t N = q->horizon, M = N + 1, nr = m->nr, most = c->rounds;
  lg_state own, *s = &own;
  lg_parts parts;
  open_task(m, q, s);
  s->scale = q->scale = 1;
  if (!c->is_factored && !factor_held(m, q, s, o, c)) return LG_NOT_FINITE;
  const int64_t n = lay_change(m, N, 0, &parts), count = M * (m->nq + m->nu + nr) + c->parameters;
  double *weights = c->memory, *result = weights + n, *basis = result + n, *images = basis + most * n;
  double costs[most > 0 ? most : 1], worst = 0;
  weigh_residuals(m, q, s, c, weights);
  c->taken = 0;
  for (int64_t d = 0; d < c->directions; d++) {
    double *y = c->changes + d * n, *left = c->left + d * n;
    const double *data = c->is_adjoint ? 0 : c->data + d * count;
    c->cost[d] = conditions(m, q, s, c, y, data, result);
    add(n, -1, result, left);
    const double first = sqrt(inner(n, weights, left, left));
    double size = first;
    for (int64_t k = 0; k < most && size > c->goal * first; k++, c->taken++) {
      double *step = basis + k * n, *image = images + k * n;
      presolve(m, q, s, c, left, step);
      costs[k] = conditions(m, q, s, c, step, 0, image);
      for (int64_t j = 0; j < k; j++) {
        const double by = inner(n, weights, image, images + j * n);
        add(n, -by, images + j * n, image), add(n, -by, basis + j * n, step);
        costs[k] -= by * costs[j];
      }
      const double length = sqrt(inner(n, weights, image, image));
      if (!(length > 0) || !isfinite(length)) break;
      for (int64_t i = 0; i < n; i++) image[i] /= length, step[i] /= length;
      costs[k] /= length;
      const double by = inner(n, weights, left, image);
      add(n, by, step, y), add(n, -by, image, left);
      c->cost[d] += by * costs[k];
      size = sqrt(inner(n, weights, left, left));
    }
    if (first > 0) worst = widest(worst, size / first);
    if (!c->is_adjoint) continue;
    lay_change(m, N, y, &parts);
    lg_parts rest;
    lay_change(m, N, left, &rest);
    for (int64_t i = 0; i < M * nr; i++)
      s->drow[i] = c->hold[i] == LG_ROW_EXCEEDED ? -c->weight[i] * rest.nu[i] : parts.nu[i];
    double *found = c->data + d * ((M * (m->nq + m->nu)) + M * c->parameters);
    double *const of_u = found + M * m->nq, *const of_p = of_u + M * m->nu;
    const double *x = s->now.x;
    const double *in[] = {q->t, x, s->now.u, x + m->nq, q->x_ref, q->u_ref, q->p, q->w, q->steps,
                          c->lam, c->price, parts.lam, s->drow, parts.eps, parts.du};
    double *const out[] = {found, of_u, of_p};
    call(&c->against, N, in, out, s->scratch);
    const double *end[] = {q->t + N, x + N * m->nq, q->u_ref + N * m->nu, q->x_ref + N * m->nq,
                           q->p, q->w_end, q->P, c->price + N * nr, s->drow + N * nr,
                           parts.eps + N * m->nx};
    double *const last[] = {of_u + N * m->nu, found + N * m->nq, of_p + N * c->parameters};
    call(&c->end_against, 1, end, last, s->scratch);
  }
  c->residual = worst;
  return worst <= c->accepted ? LG_CONVERGED : LG_STALLED;
}
