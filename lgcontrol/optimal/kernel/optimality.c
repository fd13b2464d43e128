/* How far an iterate is from optimal: the barrier function and the errors of Waechter and Biegler 2006.
 *
 * phi = f + sum (w1 e + w2 e²/2 + v s) - mu sum log(distance), with the distances s, e and those of controls
 * from their limits. theta is the sum of the sizes of gaps and misses h - e + s, c. Equation (5): the error
 * for mu is the largest of stationarity / sd, violation, and |z s - mu| / sc. sd and sc exceed 1 where
 * multipliers are large. */
LG_OFTEN

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

/* Unit of a tolerance for a quantity of some size: the size itself if it is below 1, 1 from 1 to 1000, a
 * thousandth of the size above (1 / slope_least). */
LG_INLINE double tolerance_unit(const lg_settings *o, double size)
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
      const double unit = tolerance_unit(o, 1 / s->d[m->row[j]]);
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
      r_viol = widest(r_viol, s->missed[k * m->ne + j] * unit / tolerance_unit(o, unit));
    }
  }
  for (int64_t i = 0; i < N * nx; i++) r_viol = widest(r_viol, s->gap[i] / tolerance_unit(o, s->size[i % nx]));
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

LG_SELDOM
