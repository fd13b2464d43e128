/* The Newton step of the primal-dual equations, and the iterate at a share of it.
 *
 * Slacks, excesses and multipliers are eliminated row by row: sigma = z / (s + z b), b = e / (y + e w2), is
 * what a row adds to the Hessian, d² G' sigma G. Limits of a control add zl / below + zu / above. An equality
 * has the dual regularization `compliance`, which sweeps with the same factors refine away.
 * A Riccati sweep solves what is left. The step goes to the share tau of the way to a bound (equation (15));
 * multipliers follow within [mu / s / sigma_most, sigma_most mu / s] (equation (16)). */
LG_OFTEN

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
  for (int64_t k = 0; k < N && nr > 0; k++) {
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
    if (!(left > o->relax * larger(LG_REFINED, most)) || turn_ + 1 == sweeps) break;
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
  for (int i = 0; i < LG_SPLIT_STEPS && is_any(goes_on); i++) {
    const lg_v a = v + over, b = v + under, per_a = 1 / a, per_b = 1 / b;
    const lg_v change = (w1 + w2 * a - mu * per_a - mu * per_b)
                        / (w2 + mu * per_a * per_a + mu * per_b * per_b);
    const lg_v left = pick(a - over < b - under, a - over, b - under) / 10;
    const lg_v next = pick(v - change > 0, v - change, left);
    const lg_m is_far = change * change > DBL_EPSILON * next * next;
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
    for (int turn_ = 0; turn_ < (equal ? LG_MULTIPLIER_SWEEPS : 1); turn_++) {
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

LG_SELDOM
