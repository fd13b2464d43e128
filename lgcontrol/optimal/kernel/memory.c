/* Memory of a solve: where its numbers are, and sums and largest ones of some of them. Nothing is
 * allocated and nothing is kept between calls: all memory is the caller's.
 *
 * The texts of an interior point stand one after the other: memory, stages, optimality, step, filter,
 * elastic, line_search, scales, solve, real_time. Before them stand `newton.h` and the sweeps of any
 * size. All are the algorithm of `_newton.py`, step by step. */
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
