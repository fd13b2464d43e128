/* Interior point on the group: the algorithm of `_interior_point.py`, line by line.
 *
 * Before this text stand the sizes
 *   NX NQ NU NV NP   error coordinates, state coordinates, inputs, controls, parameters
 *   NR NS NE         rows, one-sided rows, equalities
 *   NF               error coordinates of the first state that are free
 *   NW NWE           entries of the weights along the horizon and at its end
 *   LG_SPARSE LG_FIRST LG_DENSE   entries of [A B] that are not zero, but for those of the dense
 *                rows from LG_FIRST on; where rows are all taken as dense there are none
 *   LG_BEND      entries on and above the diagonal of what curvature adds to the cost to go
 * the positions of the controls and of what is free, and the functions of a stage, which work on
 * all stages at once:
 *   lg_stage lg_values lg_curvature   (items, ..., scratch)
 * where LG_SUB is 1, in place of lg_stage, LG_SUBSTEPS calls of
 *   lg_substep lg_around   (items, ..., scratch)
 * whose products of derivatives are made here: F of a substep has zeros like those of the sweep,
 * LG_SUB_SPARSE and so on, and what turns errors of its end to those of the gap is the identity but
 * for LG_TURN entries; and
 *   lg_roll lg_retract lg_error lg_end lg_end_values lg_end_curvature lg_arrival   one at a time
 * and `lg_settings`, the struct of the tuned numbers. Matrices are stored by columns, stages one
 * after the other; F = [A B]ᵀ and G of a stage with a column for each result, so that loops run
 * along memory. Nothing is allocated and nothing is kept between calls: all memory is the caller's.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#define NZ (NX + NV)
#ifndef LG_EXPORT
#define LG_EXPORT extern __attribute__((visibility("default")))
#endif
#ifndef LG_W
#define LG_W 1 /* doubles in a vector */
#endif
#ifdef __GNUC__
#define LG_INLINE static inline __attribute__((always_inline))
#else
#define LG_INLINE static inline
#endif

enum { LG_CONVERGED = 0, LG_ITERATIONS = 1, LG_STALLED = 2, LG_NOT_FINITE = 3 };
enum { LG_FREE_STATES = 0, LG_ROLL_OUT = 1, LG_REAL_TIME = 2 };
enum { LG_FRESH = 0, LG_RESUME = 1, LG_WARM = 2 };
enum { LG_LOG = 7 };

enum { MOST_TURNS = 30 }; /* of Jacobi: some ten converge */

typedef struct {
  /* what is to be solved */
  int64_t horizon;
  const double *t, *x_ref, *u_ref, *p, *w, *w_end, *P, *arrival, *lower, *upper;
  const int64_t *row, *equal;
  const double *sign, *limit, *weight, *active, *target, *equal_active;
  double dt;
  /* how */
  int64_t mode, shift, max_iterations, curved, resume;
  double tolerance, mu_first, mu_last, mu_factor, mu_power;
  /* the iterate, in and out; K is the feedback of the last step that was taken */
  double *x, *u, *below, *above, *slack, *price, *excess, *relief, *equal_price, *K, *rows;
  double mu, damping, merit_weight, best;
  int64_t waiting, idle;
  /* what is found */
  int64_t status, iterations;
  double cost, stationarity, violation, complementarity, step;
  int64_t keeps; /* whether rows keep all limits, equalities to violation_kept */
  int64_t has_kept; /* whether there is an iterate of these real-time steps that keeps hard rows */
  double before; /* cost of the plan that they go on from */
  double *log;
  const lg_settings *set; /* the tuned numbers */
  /* memory */
  double *work;
} lg_problem;

/* An expansion, a direction and a trial; pointers into the caller's memory. */
typedef struct {
  double *cost, *gap, *rows, *F, *g, *H, *G, *g_end, *H_end, *G_end;
  double *curvature, *curvature_end, *bend, *prices, *row_prices;
  double *weight, *force, *a, *b, *sigma, *change, *rho, *missed, *aim;
  double *left, *aim_before, *left_before, *aim_turn, *left_turn; /* of sweeps for equalities */
  double *k, *K, *eps, *du, *d_rows, *ds, *de, *bent_gap, *bent_rows;
  double *x, *u, *slack, *excess, *t_gap, *t_rows, *t_cost, *x_end;
  double *times, *after, *other, *part, *turn; /* of substeps */
  double *kept[11]; /* the last iterate of real-time steps that kept hard rows */
  double *kept_entry; /* of the log */
  double *scratch;
  const double *x0; /* the given start */
  const lg_settings *set;
  double first[NX], first_H[NX * NX]; /* step of the first state; of the cost to arrive there */
  double mu, damping, merit_weight, holding, undamped, decrease;
  double slope; /* of the step that the first one's cost was told by, as long as that stands */
  int waiting, curved, feasible, was_cut, raises;
} lg_state;

static double *take(double **next, int64_t count)
{
  double *here = *next;
  *next += (count + 7) / 8 * 8;
  return here;
}

static void lay_out(lg_state *s, double *memory, int64_t N, int64_t sweeps)
{
  const int64_t M = N + 1;
  s->cost = take(&memory, M), s->gap = take(&memory, N * NX), s->rows = take(&memory, M * NR);
  s->F = take(&memory, N * NZ * NX);
  s->g = take(&memory, N * NZ), s->H = take(&memory, N * NZ * NZ);
  s->G = take(&memory, N * NR * NZ);
  s->g_end = take(&memory, NX), s->H_end = take(&memory, NX * NX), s->G_end = take(&memory, NR * NX);
  s->curvature = take(&memory, N * NZ * NZ), s->curvature_end = take(&memory, NX * NX);
  s->bend = take(&memory, N * LG_BEND);
  s->prices = take(&memory, N * NX), s->row_prices = take(&memory, M * NR);
  s->weight = take(&memory, M * NR), s->force = take(&memory, M * NR);
  s->a = take(&memory, M * NS), s->b = take(&memory, M * NS), s->sigma = take(&memory, M * NS);
  s->change = take(&memory, M * NS), s->rho = take(&memory, M * NS);
  s->missed = take(&memory, M * NE), s->aim = take(&memory, M * NE);
  s->left = take(&memory, M * NE), s->aim_before = take(&memory, M * NE);
  s->left_before = take(&memory, M * NE);
  s->aim_turn = take(&memory, sweeps * M * NE);
  s->left_turn = take(&memory, sweeps * M * NE);
  s->k = take(&memory, N * NV), s->K = take(&memory, N * NV * NX);
  s->eps = take(&memory, M * NX), s->du = take(&memory, N * NV), s->d_rows = take(&memory, M * NR);
  s->ds = take(&memory, M * NS), s->de = take(&memory, M * NS);
  s->bent_gap = take(&memory, N * NX), s->bent_rows = take(&memory, M * NR);
  s->x = take(&memory, M * NQ), s->u = take(&memory, M * NU), s->slack = take(&memory, M * NS);
  s->excess = take(&memory, M * NS), s->t_gap = take(&memory, N * NX);
  s->t_rows = take(&memory, M * NR), s->t_cost = take(&memory, M);
  s->x_end = take(&memory, NQ);
  s->times = take(&memory, N * LG_SUB), s->after = take(&memory, N * NQ * LG_SUB);
  s->other = take(&memory, N * NQ * LG_SUB), s->part = take(&memory, N * NZ * NX * LG_SUB);
  s->turn = take(&memory, N * LG_TURN);
  s->kept[0] = take(&memory, M * NQ), s->kept[1] = take(&memory, N * NU);
  s->kept[2] = take(&memory, N * NV), s->kept[3] = take(&memory, N * NV);
  s->kept[4] = take(&memory, M * NS), s->kept[5] = take(&memory, M * NS);
  s->kept[6] = take(&memory, M * NS), s->kept[7] = take(&memory, M * NS);
  s->kept[8] = take(&memory, M * NE), s->kept[9] = take(&memory, N * NV * NX);
  s->kept[10] = take(&memory, M * NR), s->kept_entry = take(&memory, LG_LOG);
  s->scratch = memory;
}

/* Numbers of work memory for a horizon and so many sweeps for equalities. */
LG_EXPORT int64_t lg_work(int64_t N, int64_t sweeps)
{
  lg_state s;
  lay_out(&s, 0, N, sweeps);
  return (int64_t)((uintptr_t)s.scratch / sizeof(double)) + LG_SCRATCH;
}

/* Vectors along columns; those of local matrices are padded to whole ones, XP and ZP numbers. What
 * is loaded beyond a column's end stays in lanes that nobody reads. */
#if LG_W > 1
typedef double lg_v __attribute__((vector_size(8 * LG_W), may_alias));
typedef double lg_u __attribute__((vector_size(8 * LG_W), may_alias, aligned(8)));
static const lg_v lg_zero = {0};
#else
typedef double lg_v;
typedef double lg_u;
static const lg_v lg_zero = 0;
#endif
enum { XV = (NX + LG_W - 1) / LG_W, ZV = (NZ + LG_W - 1) / LG_W, XP = XV * LG_W, ZP = ZV * LG_W };
enum { VV = (NV + LG_W - 1) / LG_W, VP = VV * LG_W };
enum { CHUNK = XV <= 12 ? XV : 8 }; /* so many vectors and what they meet fit into registers */

LG_INLINE lg_v load(const double *from) { return *(const lg_u *)(const void *)from; }

LG_INLINE double dot(const int n, const double *a, const double *b)
{
  lg_v sum = lg_zero;
  double total = 0;
  int i = 0;
  for (; i + LG_W <= n; i += LG_W) sum += load(a + i) * load(b + i);
  for (; i < n; i++) total += a[i] * b[i];
#if LG_W > 1
  for (i = 0; i < LG_W; i++) total += sum[i];
  return total;
#else
  return total + sum;
#endif
}

static void copy(double *to, const double *from, int64_t count)
{
  memcpy(to, from, (size_t)count * sizeof(double));
}

LG_INLINE double larger_size(double so_far, double v)
{
  const double size = fabs(v);
  return size <= so_far || isnan(so_far) ? so_far : size; /* NaN stays */
}

static double largest(const double *v, int64_t n, double so_far)
{
  double most[4] = {so_far, 0, 0, 0}; /* one alone would wait for each comparison */
  int64_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int j = 0; j < 4; j++) most[j] = larger_size(most[j], v[i + j]);
  for (; i < n; i++) most[0] = larger_size(most[0], v[i]);
  return larger_size(larger_size(most[0], most[1]), larger_size(most[2], most[3]));
}

static int all_finite(const double *v, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(v[i])) return 0;
  return 1;
}

/* Excess e and distance s = e − h that minimise w (e + e²/2) − μ log e − μ log s. */
static void resolve(int64_t steps, double h, double w, double mu, double *e, double *s)
{
  const double over = fmax(h, 0.0), under = fmax(-h, 0.0);
  double v = mu / (w * (1 + over) + sqrt(w * mu));
  for (int i = 0; i < steps; i++) {
    *e = v + over, *s = v + under;
    v -= (w * (1 + *e) - mu / *e - mu / *s) / (w + mu / (*e * *e) + mu / (*s * *s));
  }
  *e = v + over, *s = v + under;
}

/* As fmax and fmin, which are calls, where the second one is a number: it stands for NaN. */
LG_INLINE double larger(double v, double number) { return v > number ? v : number; }
LG_INLINE double smaller(double v, double number) { return v < number ? v : number; }

LG_INLINE double clip(double v, double low, double high) { return smaller(larger(v, low), high); }

/* ---- evaluation -------------------------------------------------------------------------------*/

/* What the first state costs for not being the given start, to second order. */
static double arrival_cost(const lg_problem *q, lg_state *s, const double *x, double *g, double *H)
{
#if NF > 0
  double cost;
  lg_arrival(x, s->x0, q->arrival, &cost, g, H, s->scratch);
  return cost;
#else
  (void)q, (void)s, (void)x, (void)g, (void)H;
  return 0;
#endif
}

static void stages(const lg_problem *q, lg_state *s, int64_t first, int64_t count, const double *x,
                   const double *u, const double *x_next);

static double expand(const lg_problem *q, lg_state *s)
{
  const int64_t N = q->horizon;
  stages(q, s, 0, N, q->x, q->u, q->x + NQ);
  lg_end(q->t + N, q->x + N * NQ, q->u_ref + N * NU, q->x_ref + N * NQ, q->p, q->w_end, q->P,
         s->cost + N, s->rows + N * NR, s->g_end, s->H_end, s->G_end, s->scratch);
  double cost = 0;
  for (int64_t k = 0; k < N; k++) cost += s->cost[k];
  cost += s->cost[N];
  if (NF > 0) {
    double g[NX];
    cost += arrival_cost(q, s, q->x, g, s->first_H);
    for (int i = 0; i < NX; i++) s->g[i] += g[i];
    for (int j = 0; j < NX; j++)
      for (int i = 0; i < NX; i++) s->H[i + j * NZ] += s->first_H[i + j * NX];
  }
  return cost;
}

static double at_end(const lg_problem *q, const double *x, double *rows, double *scratch)
{
  const int64_t N = q->horizon;
  double cost;
  lg_end_values(q->t + N, x, q->u_ref + N * NU, q->x_ref + N * NQ, q->p, q->w_end, q->P, &cost,
                rows, scratch);
  return cost;
}

/* `h − e + s` of sides and what equalities miss; zero where they are idle. */
static void violations(const lg_problem *q, const double *rows, const double *slack,
                       const double *excess, double *rho, double *missed)
{
  for (int64_t k = 0; k <= q->horizon; k++) {
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      const double h = q->sign[j] * (rows[k * NR + q->row[j]] - q->limit[j]);
      rho[i] = q->active[i] != 0 ? h - excess[i] + slack[i] : 0.0;
    }
    for (int j = 0; j < NE; j++) {
      const int64_t i = k * NE + j;
      missed[i] = q->equal_active[i] != 0 ? rows[k * NR + q->equal[j]] - q->target[j] : 0.0;
    }
  }
}

/* Multipliers of the dynamics by an adjoint sweep, and what it leaves of stationarity. Under the
 * last gains (led) states answer for what is left of the controls': off the optimum sweeps through
 * an unstable system without them grow from node to node. */
static double adjoint(const lg_problem *q, lg_state *s, int led)
{
  const int64_t N = q->horizon;
  double price[NX], left = 0;
  for (int i = 0; i < NX; i++) {
    price[i] = s->g_end[i];
    for (int r = 0; r < NR; r++) price[i] += s->G_end[r + i * NR] * s->row_prices[N * NR + r];
  }
  for (int64_t k = N - 1; k >= 0; k--) {
    const double *F = s->F + k * NX * NZ, *G = s->G + k * NR * NZ, *K = q->K + k * NV * NX;
    lg_v along_[ZV];
    const double *along = (const double *)along_;
    double by_u[NV];
    copy(s->prices + k * NX, price, NX);
    for (int i = 0; i < ZV; i++) along_[i] = load(s->g + k * NZ + i * LG_W);
    for (int r = 0; r < NR; r++)
      for (int i = 0; i < ZV; i++)
        along_[i] += load(G + r * NZ + i * LG_W) * s->row_prices[k * NR + r];
    for (int l = 0; l < NX; l++)
      for (int i = 0; i < ZV; i++) along_[i] += load(F + l * NZ + i * LG_W) * price[l];
    for (int j = 0; j < NV; j++) by_u[j] = along[NX + j] - q->below[k * NV + j] + q->above[k * NV + j];
    left = largest(by_u, NV, left);
    copy(price, along, NX);
    for (int i = 0; i < NX && led && k > 0; i++) {
      double back = 0;
      for (int j = 0; j < NV; j++) back += K[j + i * NV] * by_u[j];
      left = largest(&back, 1, left);
      price[i] += back;
    }
  }
  for (int i = 0; i < NF; i++) left = largest(price + lg_free[i], 1, left);
  return left;
}

/* Multipliers of the dynamics, and how far the conditions of optimality are off: where states are
 * their own, with those of two adjoint sweeps that leave less. */
static void conditions(lg_problem *q, lg_state *s)
{
  const int64_t N = q->horizon;
  violations(q, s->rows, q->slack, q->excess, s->rho, s->missed);
  for (int64_t i = 0; i < (N + 1) * NR; i++) s->row_prices[i] = 0;
  for (int64_t k = 0; k <= N; k++) {
    for (int j = 0; j < NS; j++)
      if (q->active[k * NS + j] != 0)
        s->row_prices[k * NR + q->row[j]] += q->sign[j] * q->price[k * NS + j];
    for (int j = 0; j < NE; j++)
      if (q->equal_active[k * NE + j] != 0)
        s->row_prices[k * NR + q->equal[j]] += q->equal_price[k * NE + j];
  }
  double scale = largest(s->g, N * NZ, 0), product = 0;
  scale = 1 + largest(s->g_end, NX, scale);
  const double led = s->feasible ? INFINITY : adjoint(q, s, 1);
  double stationarity = adjoint(q, s, 0);
  if (led < stationarity) stationarity = adjoint(q, s, 1);
  for (int64_t k = 0; k < N; k++)
    for (int j = 0; j < NV; j++) {
      const double v = q->u[k * NU + lg_controls[j]];
      if (isfinite(q->lower[j]))
        product = larger(q->below[k * NV + j] * (v - q->lower[j]), product);
      if (isfinite(q->upper[j]))
        product = larger(q->above[k * NV + j] * (q->upper[j] - v), product);
    }
  for (int64_t k = 0; k <= N; k++)
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      if (q->active[i] == 0) continue;
      product = larger(q->price[i] * q->slack[i], product);
      if (!isfinite(q->weight[j])) continue;
      product = larger(q->relief[i] * q->excess[i], product);
      const double off = q->weight[j] * (1 + q->excess[i]) - q->price[i] - q->relief[i];
      stationarity = largest(&off, 1, stationarity);
    }
  q->stationarity = stationarity / scale;
  q->violation = largest(s->gap, N * NX, 0);
  q->violation = largest(s->rho, (N + 1) * NS, q->violation);
  q->complementarity = product / scale;
  q->violation = largest(s->missed, (N + 1) * NE, q->violation);
}

/* ---- one iteration ----------------------------------------------------------------------------*/

/* Barrier terms of rows: a weight and an offset, so that z+ = z + change + sigma dh; equalities are
 * held by a weight, about multipliers that are aimed at. */
static void barrier_terms(const lg_problem *q, lg_state *s)
{
  const double mu = s->mu;
  for (int64_t i = 0; i < (q->horizon + 1) * NR; i++) s->weight[i] = s->force[i] = 0;
  for (int64_t k = 0; k <= q->horizon; k++) {
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      const double w = q->weight[j], d = q->slack[i], z = q->price[i], e = q->excess[i];
      s->a[i] = s->b[i] = s->sigma[i] = s->change[i] = 0;
      if (isfinite(w)) {
        const double y = q->relief[i], by = y + e * w;
        s->a[i] = (mu - e * y - e * (w * (1 + e) - z - y)) / by;
        s->b[i] = e / by;
      }
      if (q->active[i] == 0) continue;
      const double share = d + z * s->b[i];
      s->sigma[i] = z / share;
      s->change[i] = (mu - d * z + z * (s->rho[i] - s->a[i])) / share;
      s->weight[k * NR + q->row[j]] += s->sigma[i];
      s->force[k * NR + q->row[j]] += q->sign[j] * (z + s->change[i]);
    }
    for (int j = 0; j < NE; j++) {
      const int64_t i = k * NE + j;
      if (q->equal_active[i] == 0) continue;
      s->weight[k * NR + q->equal[j]] += s->holding;
      s->force[k * NR + q->equal[j]] += s->aim[i] + s->holding * s->missed[i];
    }
  }
}

/* Only here more than -O1 is worth the compiler's time. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

/* to = from + sign L R in a block of r vectors by c columns, which the compiler keeps in registers;
 * without `from`, zero. Columns are `..._apart`, entry (l, j) of R is at R[l * down + j * right]. */
LG_INLINE void block(const int r, const int c, const int inner, const double *L, const int l_apart,
                     const double *R, const int down, const int right, const int sign,
                     const double *from, const int from_apart, double *to, const int to_apart)
{
  lg_v sum[12];
  for (int j = 0; j < c; j++)
    for (int i = 0; i < r; i++)
      sum[i + j * r] = from ? load(from + i * LG_W + j * from_apart) : lg_zero;
  for (int l = 0; l < inner; l++)
    for (int j = 0; j < c; j++) {
      const double b = sign * R[l * down + j * right];
      for (int i = 0; i < r; i++) sum[i + j * r] += load(L + i * LG_W + l * l_apart) * b;
    }
  for (int j = 0; j < c; j++)
    for (int i = 0; i < r; i++) *(lg_v *)(void *)(to + i * LG_W + j * to_apart) = sum[i + j * r];
}

/* to = from + sign L R for `rows` vectors a column; of a symmetric one the upper half at least */
LG_INLINE void product(const int rows, const int inner, const int count, const double *L,
                       const int l_apart, const double *R, const int down, const int right,
                       const int sign, const int symmetric, const double *from,
                       const int from_apart, double *to, const int to_apart)
{
#define LG_BLOCK(r, c) \
  block(r, c, inner, L + i * LG_W, l_apart, R + j * right, down, right, sign, \
        from ? from + i * LG_W + j * from_apart : 0, from_apart, to + i * LG_W + j * to_apart, \
        to_apart)
  int j = 0;
  for (; j + 4 <= count; j += 4) {
    const int most = symmetric ? (j + 3) / LG_W + 1 : rows;
    int i = 0;
    for (; i + 3 <= most && most - i != 4; i += 3) LG_BLOCK(3, 4);
    for (; i + 2 <= most; i += 2) LG_BLOCK(2, 4); /* four are two pairs: one alone waits for sums */
    if (i < most) LG_BLOCK(1, 4);
  }
#define LG_LAST(r) \
  if (left == r && count - j == 3) LG_BLOCK(r, 3); \
  if (left == r && count - j == 2) LG_BLOCK(r, 2); \
  if (left == r && count - j == 1) LG_BLOCK(r, 1)
  for (int i = 0, left; j < count && i < rows; i += left) { /* the last columns at once */
    left = rows - i < 4 ? rows - i : 4;
    LG_LAST(4);
    LG_LAST(3);
    LG_LAST(2);
    LG_LAST(1);
  }
#undef LG_LAST
#undef LG_BLOCK
}

#if LG_SUB
/* F of the steps so far and of the next one, together: F Aᵀ, and what inputs add in that one. */
static void compose(const double *next, double *F)
{
  lg_v T_[ZV * NX];
  double *T = (double *)T_;
  for (int l = 0; l < NX; l++)
    if (l < LG_SUB_FIRST || l >= LG_SUB_FIRST + LG_SUB_DENSE)
      for (int i = 0; i < ZV; i++) T_[i + l * ZV] = lg_zero;
  product(ZV, NX, LG_SUB_DENSE, F, NZ, next + LG_SUB_FIRST * NZ, 1, NZ, 1, 0, 0, 0,
          T + LG_SUB_FIRST * ZP, ZP);
#if LG_SUB_SPARSE > 0
  for (int n = 0; n < LG_SUB_SPARSE; n++) {
    const int l = lg_sub_rows[n], j = lg_sub_columns[n];
    if (j >= NX) continue;
    for (int i = 0; i < ZV; i++) T_[i + l * ZV] += load(F + j * NZ + i * LG_W) * next[l * NZ + j];
  }
#endif
  for (int l = 0; l < NX; l++) {
    for (int j = 0; j < NX; j++) F[l * NZ + j] = T[l * ZP + j];
    for (int j = NX; j < NZ; j++) F[l * NZ + j] = T[l * ZP + j] + next[l * NZ + j];
  }
}

#if LG_TURN > 0
/* F Cᵀ for a matrix of which `C` has the rows that are not the identity's. */
static void turn(const double *C, double *F)
{
  lg_v T_[ZV * NX];
  const double *T = (const double *)T_;
  for (int n = 0; n < LG_TURN; n++) {
    const int l = lg_turn_rows[n], j = lg_turn_columns[n];
    for (int i = 0; i < ZV; i++) {
      const lg_v sum = n && lg_turn_rows[n - 1] == l ? T_[i + l * ZV] : lg_zero;
      T_[i + l * ZV] = sum + load(F + j * NZ + i * LG_W) * C[n];
    }
  }
  for (int n = 0; n < LG_TURN; n++)
    copy(F + lg_turn_rows[n] * NZ, T + lg_turn_rows[n] * ZP, NZ);
}
#endif
#endif

/* Expansion of `count` stages from the `first` on about nodes, to the begin of the memory. */
static void stages(const lg_problem *q, lg_state *s, int64_t first, int64_t count, const double *x,
                   const double *u, const double *x_next)
{
  const double *t = q->t + first, *x_ref = q->x_ref + first * NQ, *u_ref = q->u_ref + first * NU;
#if LG_SUB
  const double h = q->dt / LG_SUBSTEPS, *from = x;
  for (int j = 0; j < LG_SUBSTEPS; j++) {
    double *after = j % 2 ? s->other : s->after;
    for (int64_t k = 0; k < count; k++) s->times[k] = t[k] + j * h;
    lg_substep(count, s->times, from, u, q->p, &h, after, j ? s->part : s->F, s->scratch);
    for (int64_t k = 0; j && k < count; k++) compose(s->part + k * NX * NZ, s->F + k * NX * NZ);
    from = after;
  }
  lg_around(count, t, x, u, x_next, x_ref, u_ref, q->p, q->w, &q->dt, from, s->cost, s->gap,
            s->rows, s->turn, s->g, s->H, s->G, s->scratch);
#if LG_TURN > 0
  for (int64_t k = 0; k < count; k++) turn(s->turn + k * LG_TURN, s->F + k * NX * NZ);
#endif
#else
  lg_stage(count, t, x, u, x_next, x_ref, u_ref, q->p, q->w, &q->dt, s->cost, s->gap, s->rows, s->F,
           s->g, s->H, s->G, s->scratch);
#endif
}

/* L Lᵀ = M for the upper half of a matrix whose columns are some doubles apart, with 1 / L on the
 * diagonal and no numbers of use above it; 0 unless it is positive definite. Columns of L are padded
 * to whole vectors. */
LG_INLINE int factor(const int size, const double *M, const int apart, lg_v *L_)
{
  const int V = (size + LG_W - 1) / LG_W, P = V * LG_W;
  double *L = (double *)L_;
  for (int j = 0; j < size; j++) {
    lg_v own[ZV];
    for (int i = 0; i < V; i++) L_[i + j * V] = lg_zero;
    for (int i = j; i < size; i++) L[i + j * P] = M[j + i * apart];
    for (int i = 0; i < V; i++) own[i] = L_[i + j * V];
    double pivot = M[j * (apart + 1)];
    for (int l = 0; l < j; l++) {
      const double by = L[j + l * P];
      pivot -= by * by;
      for (int i = 0; i < V; i++) own[i] -= L_[i + l * V] * by;
    }
    if (!(pivot > 0) || !isfinite(pivot)) return 0;
    const double over = 1 / sqrt(pivot);
    for (int i = 0; i < V; i++) L_[i + j * V] = own[i] * over;
    L[j + j * P] = over;
  }
  return 1;
}

/* R L⁻ᵀ in place, or what is `back` from there, R L⁻¹, for r vectors of the columns of R; y alike. */
LG_INLINE void solve(const int r, const int back, const double *L, lg_v *R_, double *y)
{
  for (int n = 0; n < NV; n++) {
    const int i = back ? NV - 1 - n : n;
    lg_v own[CHUNK];
    double rest = y[i];
    for (int j = 0; j < r; j++) own[j] = R_[j + i * XV];
    for (int l = back ? i + 1 : 0; l < (back ? NV : i); l++) {
      const double by = back ? L[l + i * VP] : L[i + l * VP];
      rest -= y[l] * by;
      for (int j = 0; j < r; j++) own[j] -= R_[j + l * XV] * by;
    }
    y[i] = rest * L[i * (VP + 1)];
    for (int j = 0; j < r; j++) R_[j + i * XV] = own[j] * L[i * (VP + 1)];
  }
}

LG_INLINE void solve_all(const int back, const double *L, lg_v *R_, double *y)
{
  double other[NV] = {0};
  solve(CHUNK, back, L, R_, y);
  for (int j = CHUNK; j + CHUNK <= XV; j += CHUNK) solve(CHUNK, back, L, R_ + j, other);
  if (XV % CHUNK) solve(XV % CHUNK, back, L, R_ + XV / CHUNK * CHUNK, other);
}

/* Backward sweep with the Hessians of Gauss and Newton, and what is `bent` beyond them where that is
 * not 0; and the slope of the cost and barrier along the step that it leads to where no
 * gaps are closed; 0 if a stage is concave in its controls, or the cost to go in the free start, or
 * where derivatives are no numbers. */
static int riccati(const lg_problem *q, lg_state *s, int bent)
{
  lg_v P_[XV * NX], p_[XV];
  double *P = (double *)P_, *p = (double *)p_;
  const int64_t N = q->horizon;
  /* Open gaps move states even where controls do not: damping is to bound them, too. */
  const double damped = s->feasible ? 0 : q->set->regularization_states * s->damping;
  s->decrease = 0;
  for (int i = 0; i < XV; i++) p_[i] = lg_zero;
  for (int j = 0; j < NX; j++) {
    for (int i = 0; i < NX; i++) {
      double sum = s->H_end[i + j * NX];
      if (bent) sum += s->curvature_end[i + j * NX];
      for (int r = 0; r < NR; r++)
        sum += s->G_end[r + i * NR] * s->weight[N * NR + r] * s->G_end[r + j * NR];
      P[i + j * XP] = i == j ? sum + damped : sum;
    }
    for (int i = NX; i < XP; i++) P[i + j * XP] = 0;
    p[j] = s->g_end[j];
    for (int r = 0; r < NR; r++) p[j] += s->G_end[r + j * NR] * s->force[N * NR + r];
  }
  for (int64_t k = N - 1; k >= 0; k--) {
    const double *F = s->F + k * NX * NZ, *H = s->H + k * NZ * NZ;
    const double *G = s->G + k * NR * NZ, *c = s->gap + k * NX;
    lg_v M_[ZV * NZ], PF_[XV * NZ], g_[ZV], R_[XV * NV], pull_[XV];
    double *M = (double *)M_, *PF = (double *)PF_, *g = (double *)g_, *R = (double *)R_;
    const double *pull = (const double *)pull_;
    for (int i = 0; i < XV; i++) pull_[i] = p_[i];
    for (int j = 0; j < NX; j++)
      for (int i = 0; i < XV; i++) pull_[i] += P_[i + j * XV] * c[j];
#if LG_BEND > 0
    for (int n = 0; n < LG_BEND && bent; n++) {
      const int i = lg_bend_rows[n], j = lg_bend_columns[n];
      P[i + j * XP] += s->bend[k * LG_BEND + n];
      if (i != j) P[j + i * XP] += s->bend[k * LG_BEND + n];
    }
#endif
    /* M = H + Fᵀ P F */
#if LG_SPARSE > 0
    const double *dense = F + LG_FIRST * NZ;
    lg_v T_[ZV * NX]; /* (P F)ᵀ */
    double *T = (double *)T_;
    product(XV, LG_DENSE, NZ, P + LG_FIRST * XP, XP, dense, NZ, 1, 1, 0, 0, 0, PF, XP);
    for (int n = 0; n < LG_SPARSE; n++) {
      const int l = lg_rows[n], j = lg_columns[n];
      for (int i = 0; i < XV; i++) PF_[i + j * XV] += P_[i + l * XV] * F[l * NZ + j];
    }
    for (int l = 0; l < NX; l++) {
      for (int j = 0; j < NZ; j++) T[j + l * ZP] = PF[l + j * XP];
      for (int j = NZ; j < ZP; j++) T[j + l * ZP] = 0;
    }
    product(ZV, LG_DENSE, NZ, T + LG_FIRST * ZP, ZP, dense, NZ, 1, 1, 1, H, NZ, M, ZP);
    for (int n = 0; n < LG_SPARSE; n++) {
      const int l = lg_rows[n], j = lg_columns[n];
      for (int i = 0; i <= j / LG_W; i++) M_[i + j * ZV] += T_[i + l * ZV] * F[l * NZ + j];
    }
#else
    product(XV, NX, NZ, P, XP, F, NZ, 1, 1, 0, 0, 0, PF, XP);
    product(ZV, NX, NZ, F, NZ, PF, 1, XP, 1, 1, H, NZ, M, ZP);
#endif
    if (bent)
      for (int j = 0; j < NZ; j++)
        for (int i = 0; i <= j / LG_W; i++)
          M_[i + j * ZV] += load(s->curvature + k * NZ * NZ + j * NZ + i * LG_W);
    for (int i = 0; i < ZV; i++) g_[i] = load(s->g + k * NZ + i * LG_W);
    for (int l = 0; l < NX; l++)
      for (int i = 0; i < ZV; i++) g_[i] += load(F + l * NZ + i * LG_W) * pull[l];
    for (int r = 0; r < NR; r++) {
      const double weight = s->weight[k * NR + r], force = s->force[k * NR + r];
      if (weight == 0 && force == 0) continue;
      const double *row = G + r * NZ;
      for (int i = 0; i < ZV; i++) g_[i] += load(row + i * LG_W) * force;
      for (int j = 0; j < NZ; j++) {
        const double own = weight * row[j];
        if (own == 0) continue;
        for (int i = 0; i <= j / LG_W; i++) M_[i + j * ZV] += load(row + i * LG_W) * own;
      }
    }
    for (int j = 0; j < NX; j++) M[j * (ZP + 1)] += damped;
    for (int j = 0; j < NV; j++) {
      const double v = q->u[k * NU + lg_controls[j]];
      const double down = v - q->lower[j], up = q->upper[j] - v;
      g[NX + j] += -s->mu / down + s->mu / up;
      M[(NX + j) * (ZP + 1)] +=
          q->below[k * NV + j] / down + q->above[k * NV + j] / up + s->damping;
    }
    /* L Lᵀ = M_uu; rows of L⁻¹ M_ux and L⁻¹ g_u */
    lg_v L_[VV * NV];
    double y[NV];
    const double *L = (const double *)L_;
    if (!factor(NV, M + NX * (ZP + 1), ZP, L_)) return 0;
    for (int i = 0; i < NV; i++) {
      y[i] = g[NX + i];
      for (int j = 0; j < XV; j++) R_[j + i * XV] = M_[j + (NX + i) * ZV];
    }
    solve_all(0, L, R_, y);
    for (int i = 0; i < NV; i++) s->decrease -= y[i] * y[i];
    /* P = M_xx − Rᵀ R, p = g_x − Rᵀ y: what K would give, without its rounding */
    product(XV, NV, NX, R, XP, R, XP, 1, -1, 1, M, ZP, P, XP);
    for (int j = 0; j < NX; j++)
      for (int i = 0; i < j; i++) P[j + i * XP] = P[i + j * XP];
    for (int i = 0; i < XV; i++) p_[i] = g_[i];
    for (int l = 0; l < NV; l++)
      for (int i = 0; i < XV; i++) p_[i] -= R_[i + l * XV] * y[l];
    solve_all(1, L, R_, y);
    for (int i = 0; i < NV; i++) {
      s->k[k * NV + i] = -y[i];
      for (int j = 0; j < NX; j++) s->K[k * NV * NX + i + j * NV] = -R[j + i * XP];
    }
  }
  if (!all_finite(p, NX)) return 0; /* gains alone may hide what is no number */
  for (int i = 0; i < NX; i++) s->first[i] = 0;
#if NF > 0
  enum { FP = (NF + LG_W - 1) / LG_W * LG_W };
  lg_v L_[FP / LG_W * NF];
  double M[NF * NF], y[NF];
  const double *L = (const double *)L_;
  for (int j = 0; j < NF; j++) {
    for (int i = 0; i < NF; i++) M[i + j * NF] = P[lg_free[i] + lg_free[j] * XP];
    M[j * (NF + 1)] += s->damping;
  }
  if (!factor(NF, M, NF, L_)) return 0;
  for (int i = 0; i < NF; i++) {
    y[i] = p[lg_free[i]];
    for (int l = 0; l < i; l++) y[i] -= L[i + l * FP] * y[l];
    y[i] *= L[i * (FP + 1)];
    s->decrease -= y[i] * y[i];
  }
  for (int i = NF - 1; i >= 0; i--) {
    for (int l = i + 1; l < NF; l++) y[i] -= L[l + i * FP] * y[l];
    y[i] *= L[i * (FP + 1)];
    s->first[lg_free[i]] = -y[i];
  }
#endif
  return 1;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

#if LG_CURVED
static void curvatures(const lg_problem *q, lg_state *s, const double *prices,
                       const double *row_prices)
{
  const int64_t N = q->horizon;
  lg_curvature(N, q->t, q->x, q->u, q->x + NQ, q->x_ref, q->u_ref, q->p, q->w, &q->dt, prices,
               row_prices, s->curvature, s->bend, s->scratch);
  lg_end_curvature(q->t + N, q->x + N * NQ, q->u_ref + N * NU, q->x_ref + N * NQ, q->p, q->w_end,
                   q->P, row_prices + N * NR, s->curvature_end, s->scratch);
}
#endif

#if LG_CURVED && LG_COSTS
/* What the convex part of a matrix has beyond another one that is convex, from the upper half of
 * what all of it has: by turns of Jacobi. */
static void keep_convex(const int n, const double *H, double *W)
{
  const double same = 1e-17; /* entries off the diagonal up to this share are rounding */
  double M[NZ * NZ], V[NZ * NZ] = {0}, size = 0;
  for (int j = 0; j < n; j++) {
    V[j * (n + 1)] = 1;
    for (int i = 0; i <= j; i++) {
      M[i + j * n] = M[j + i * n] = H[i + j * n] + W[i + j * n];
      size += fabs(M[i + j * n]);
    }
  }
  if (!isfinite(size)) return; /* what is no number stays so */
  for (int turns = 1, sweep = 0; turns > 0 && sweep < MOST_TURNS; sweep++) {
    turns = 0;
    for (int j = 1; j < n; j++)
      for (int i = 0; i < j; i++) {
        const double off = M[i + j * n];
        if (!(fabs(off) > same * size)) continue;
        const double lean = (M[j * (n + 1)] - M[i * (n + 1)]) / (2 * off);
        const double t = (lean < 0 ? -1 : 1) / (fabs(lean) + sqrt(lean * lean + 1));
        const double c = 1 / sqrt(t * t + 1), d = t * c;
        turns++;
        for (int l = 0; l < n; l++) {
          const double a = M[l + i * n], b = M[l + j * n];
          M[l + i * n] = c * a - d * b, M[l + j * n] = d * a + c * b;
        }
        for (int l = 0; l < n; l++) {
          const double a = M[i + l * n], b = M[j + l * n], v = V[l + i * n], w = V[l + j * n];
          M[i + l * n] = c * a - d * b, M[j + l * n] = d * a + c * b;
          V[l + i * n] = c * v - d * w, V[l + j * n] = d * v + c * w;
        }
      }
  }
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      double sum = 0;
      for (int l = 0; l < n; l++) sum += V[i + l * n] * fmax(M[l * (n + 1)], 0) * V[j + l * n];
      W[i + j * n] = sum - H[i + j * n];
    }
}

/* The convex part of the cost's own Hessians, in place of the curvature of all: Gauss and Newton's
 * have nothing of costs that are no squares. */
static void own_curvatures(const lg_problem *q, lg_state *s)
{
  double *prices = s->bent_gap, *row_prices = s->bent_rows; /* until a step is corrected */
  memset(prices, 0, (size_t)(q->horizon * NX) * sizeof(double));
  memset(row_prices, 0, (size_t)((q->horizon + 1) * NR) * sizeof(double));
  curvatures(q, s, prices, row_prices);
  for (int64_t k = 0; k < q->horizon; k++)
    keep_convex(NZ, s->H + k * NZ * NZ, s->curvature + k * NZ * NZ);
  keep_convex(NX, s->H_end, s->curvature_end);
}
#endif

/* Leave out the curvature for some iterations, or else damp; 0 if that is exhausted. After a step
 * that was cut short a few dampings are tried before: without curvature the next would be, too. */
static int make_convex(lg_state *s)
{
  const lg_settings *set = s->set;
  if (s->curved && s->waiting == 0 && (!s->was_cut || s->raises++ == set->regularization_tries)) {
    s->waiting = (int)set->gauss_newton_iterations + 1;
    s->damping = s->undamped;
    return 1;
  }
  s->damping = fmax(set->regularization_first, set->regularization_growth * s->damping);
  return s->damping <= set->regularization_last;
}

/* A product whose logarithm is taken seldom: before it gets too large or small. */
static void add_log(double *sum, double *product, double factor)
{
  const double grown = *product * factor;
  if (grown > 1e-200 && grown < 1e200) {
    *product = grown;
  } else {
    *sum += log(*product) + log(factor);
    *product = 1;
  }
}

/* Cost with barrier and prices of excess; the sum of violations. */
static double merit(const lg_problem *q, lg_state *s, double cost, const double *u,
                    const double *slack, const double *excess, const double *gap,
                    const double *rows, double *violation)
{
  const int64_t N = q->horizon;
  double total = cost, sum = 0, logs = 0, product = 1;
  for (int64_t k = 0; k < N; k++)
    for (int j = 0; j < NV; j++) {
      const double v = u[k * NU + lg_controls[j]];
      double room = 1;
      if (isfinite(q->lower[j])) room = v - q->lower[j];
      if (isfinite(q->upper[j])) room *= q->upper[j] - v;
      add_log(&logs, &product, room);
    }
  for (int64_t i = 0; i < N * NX; i++) sum += fabs(gap[i]);
  for (int64_t k = 0; k <= N; k++) {
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      if (q->active[i] == 0) continue;
      add_log(&logs, &product, slack[i]);
      if (isfinite(q->weight[j])) {
        total += q->weight[j] * (excess[i] + excess[i] * excess[i] / 2);
        add_log(&logs, &product, excess[i]);
      }
      sum += fabs(q->sign[j] * (rows[k * NR + q->row[j]] - q->limit[j]) - excess[i] + slack[i]);
    }
    for (int j = 0; j < NE; j++) {
      if (q->equal_active[k * NE + j] == 0) continue;
      sum += fabs(rows[k * NR + q->equal[j]] - q->target[j]);
    }
  }
  *violation = sum;
  return total - s->mu * (logs + log(product));
}

/* The step of the linear model, and its slope in the merit without violations. */
static double direction(const lg_problem *q, lg_state *s)
{
  const int64_t N = q->horizon;
  double slope = 0;
  for (int i = 0; i < NX; i++) s->eps[i] = s->first[i];
  for (int64_t k = 0; k < N; k++) {
    const double *F = s->F + k * NX * NZ, *G = s->G + k * NR * NZ, *K = s->K + k * NV * NX;
    double z[NZ], *du = z + NX;
    copy(z, s->eps + k * NX, NX);
    for (int i = 0; i < NV; i++) du[i] = s->k[k * NV + i];
    for (int j = 0; j < NX; j++)
      for (int i = 0; i < NV; i++) du[i] += K[i + j * NV] * z[j];
    copy(s->du + k * NV, du, NV);
    for (int i = 0; i < NX; i++)
      s->eps[(k + 1) * NX + i] = s->gap[k * NX + i] + dot(NZ, F + i * NZ, z);
    slope += dot(NZ, s->g + k * NZ, z);
    for (int i = 0; i < NV; i++) {
      const double v = q->u[k * NU + lg_controls[i]];
      slope += s->mu * (1 / (q->upper[i] - v) - 1 / (v - q->lower[i])) * du[i];
    }
    for (int r = 0; r < NR; r++) s->d_rows[k * NR + r] = dot(NZ, G + r * NZ, z);
  }
  const double *e = s->eps + N * NX;
  for (int i = 0; i < NX; i++) slope += s->g_end[i] * e[i];
  for (int r = 0; r < NR; r++) {
    double sum = 0;
    for (int j = 0; j < NX; j++) sum += s->G_end[r + j * NR] * e[j];
    s->d_rows[N * NR + r] = sum;
  }
  for (int64_t k = 0; k <= N; k++) {
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      s->ds[i] = s->de[i] = 0;
      if (q->active[i] == 0) continue;
      const double dh = q->sign[j] * s->d_rows[k * NR + q->row[j]];
      s->de[i] = s->a[i] + s->b[i] * (s->change[i] + s->sigma[i] * dh);
      s->ds[i] = -s->rho[i] - dh + s->de[i];
      slope -= s->mu * s->ds[i] / q->slack[i];
      if (isfinite(q->weight[j]))
        slope += (q->weight[j] * (1 + q->excess[i]) - s->mu / q->excess[i]) * s->de[i];
    }
  }
  return slope;
}

/* The weight on squared equalities. */
static void hold_equalities(lg_state *s, int64_t N)
{
  s->holding = s->mu;
  for (int64_t k = 0; k < N && NE > 0; k++)
    for (int i = 0; i < NZ; i++) s->holding = fmax(s->holding, s->H[(k * NZ + i) * NZ + i]);
  for (int i = 0; i < NX && NE > 0; i++) s->holding = fmax(s->holding, s->H_end[i * NX + i]);
  if (NE > 0) s->holding = largest(s->g_end, NX, largest(s->g, N * NZ, s->holding));
  s->holding *= s->set->equality_penalty;
}

/* Multipliers of equalities for the next sweep. What a sweep leaves of them is affine in what it
 * aims at: the least that multipliers tried so far could leave, and what the weight adds to that. */
static void next_aim(lg_state *s, int64_t count, int pass)
{
  const int n = (int)count;
  if (pass > 0) {
    double *q = s->left_turn + (pass - 1) * count, *d = s->aim_turn + (pass - 1) * count;
    for (int i = 0; i < n; i++) q[i] = s->left_before[i] - s->left[i];
    for (int i = 0; i < n; i++) d[i] = s->aim[i] - s->aim_before[i];
    const double least = s->set->equality_same * sqrt(dot(n, s->left_before, s->left_before));
    for (int e = 0; e < pass - 1; e++) {
      const double share = dot(n, s->left_turn + e * count, q);
      for (int i = 0; i < n; i++) q[i] -= share * s->left_turn[e * count + i];
      for (int i = 0; i < n; i++) d[i] -= share * s->aim_turn[e * count + i];
    }
    const double size = sqrt(dot(n, q, q)), scale = size > least ? 1 / size : 0;
    for (int i = 0; i < n; i++) q[i] *= scale, d[i] *= scale;
  }
  copy(s->left_before, s->left, count), copy(s->aim_before, s->aim, count);
  for (int e = 0; e < pass; e++) {
    const double share = dot(n, s->left_turn + e * count, s->left);
    for (int i = 0; i < n; i++) s->left[i] -= share * s->left_turn[e * count + i];
    for (int i = 0; i < n; i++) s->aim[i] += share * s->aim_turn[e * count + i];
  }
  for (int i = 0; i < n; i++) s->aim[i] += s->holding * s->left[i];
}

/* Sweeps and the step they lead to, about the gaps and rows of s; its slope in the merit without
 * violations, or NaN where a stage is concave. What the weight on equalities leaves of them goes to
 * their multipliers, and by further sweeps into the step. */
static double newton(const lg_problem *q, lg_state *s, int bent)
{
  const int64_t N = q->horizon, count = (N + 1) * NE;
  const lg_settings *set = q->set;
  const int most = (int)set->equality_sweeps_most;
  double slope = NAN;
  violations(q, s->rows, q->slack, q->excess, s->rho, s->missed);
  for (int64_t i = 0; i < count; i++) s->aim[i] = q->equal_price[i];
  for (int pass = 0; pass < (NE > 0 ? most : 1); pass++) {
    double left = 0, missed = 0;
    barrier_terms(q, s);
    if (!riccati(q, s, bent)) return NAN;
    /* Motions without rows close no gaps, and need no more of the step than gains. */
    slope = s->feasible && NR == 0 ? s->decrease : direction(q, s);
    for (int64_t k = 0; k <= N; k++)
      for (int j = 0; j < NE; j++) {
        const int64_t i = k * NE + j;
        s->left[i] = 0;
        if (q->equal_active[i] == 0) continue;
        s->left[i] = s->missed[i] + s->d_rows[k * NR + q->equal[j]];
        left += fabs(s->left[i]), missed += fabs(s->missed[i]);
      }
    const int is_met = pass + 1 >= set->equality_sweeps_least &&
                       left <= fmax(set->violation_least, set->equality_left * missed);
    if (NE > 0 && !is_met && pass + 1 < most) {
      next_aim(s, count, pass);
      continue;
    }
    for (int64_t i = 0; i < count; i++) s->aim[i] += s->holding * s->left[i];
    break;
  }
  return slope;
}

/* The largest share of the step that keeps controls and a free start inside; motions clip their
 * controls. */
static double longest(const lg_problem *q, const lg_state *s)
{
  const double boundary = q->set->boundary;
  double step = 1;
  for (int j = 0; j < NS && NF > 0; j++)
    if (q->active[j] != 0 && !isfinite(q->weight[j]) && s->ds[j] < 0)
      step = smaller(-boundary * q->slack[j] / s->ds[j], step);
  if (s->feasible) return step;
  for (int64_t k = 0; k < q->horizon; k++)
    for (int j = 0; j < NV; j++) {
      const double v = q->u[k * NU + lg_controls[j]], du = s->du[k * NV + j];
      const double room = du < 0 ? v - q->lower[j] : q->upper[j] - v;
      if (du != 0) step = smaller(boundary * room / fabs(du), step);
    }
  return step;
}

/* The point at a share of the step; its cost, or NaN. */
static double trial(const lg_problem *q, lg_state *s, double step)
{
  const int64_t N = q->horizon;
  const double boundary = q->set->boundary;
  double cost = 0, dev[NX];
  copy(s->u, q->u, N * NU);
  for (int i = 0; i < NX; i++) dev[i] = step * s->first[i];
  if (NF > 0) {
    lg_retract(q->x, dev, q->p, s->x, s->scratch);
  } else {
    for (int i = 0; i < NQ; i++) s->x[i] = q->x[i];
  }
  for (int64_t k = 0; k < N; k++) {
    double *u = s->u + k * NU;
    for (int i = 0; i < NV; i++) {
      const double v = q->u[k * NU + lg_controls[i]];
      double own;
      if (s->feasible) {
        own = v + step * s->k[k * NV + i];
        for (int j = 0; j < NX; j++) own += s->K[k * NV * NX + i + j * NV] * dev[j];
      } else {
        own = v + step * s->du[k * NV + i];
      }
      u[lg_controls[i]] =
          clip(own, v - boundary * (v - q->lower[i]), v + boundary * (q->upper[i] - v));
    }
    if (s->feasible) {
      double part;
      lg_roll(q->t + k, s->x + k * NQ, u, q->x + (k + 1) * NQ, q->x_ref + k * NQ,
              q->u_ref + k * NU, q->p, q->w, &q->dt, s->x + (k + 1) * NQ, &part, dev,
              s->t_rows + k * NR, s->scratch);
      if (!all_finite(s->x + (k + 1) * NQ, NQ)) return NAN;
      cost += part;
      for (int i = 0; i < NX; i++) s->t_gap[k * NX + i] = 0;
    } else {
      double move[NX];
      for (int i = 0; i < NX; i++) move[i] = step * s->eps[(k + 1) * NX + i];
      lg_retract(q->x + (k + 1) * NQ, move, q->p, s->x + (k + 1) * NQ, s->scratch);
    }
  }
  if (!s->feasible) {
    lg_values(N, q->t, s->x, s->u, s->x + NQ, q->x_ref, q->u_ref, q->p, q->w, &q->dt, s->t_cost,
              s->t_gap, s->t_rows, s->scratch);
    for (int64_t k = 0; k < N; k++) cost += s->t_cost[k];
  }
  cost += at_end(q, s->x + N * NQ, s->t_rows + N * NR, s->scratch);
  if (NF > 0) {
    double g[NX], H[NX * NX];
    cost += arrival_cost(q, s, s->x, g, H);
  }
  for (int64_t k = 0; k <= N; k++)
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      const double h = q->sign[j] * (s->t_rows[k * NR + q->row[j]] - q->limit[j]);
      s->slack[i] = larger(q->slack[i] + step * s->ds[i], (1 - boundary) * q->slack[i]);
      s->excess[i] = larger(q->excess[i] + step * s->de[i], (1 - boundary) * q->excess[i]);
      if (isfinite(q->weight[j])) continue;
      s->excess[i] = 0;
      if (q->active[i] != 0) s->slack[i] = larger(-h, s->slack[i]);
    }
  return cost;
}

static double priced(const lg_settings *set, double mu, double step, double z, double before,
                     double after)
{
  if (!isfinite(before)) return 0;
  const double own = mu / after;
  return clip(z + (step * (mu - z * before) - z * (after - before)) / before,
              set->multiplier_low * own, set->multiplier_high * own);
}

/* Take the trial, with multipliers by linearized complementarity. */
static void accept(lg_problem *q, lg_state *s, double step)
{
  const int64_t N = q->horizon;
  for (int64_t k = 0; k < N; k++)
    for (int j = 0; j < NV; j++) {
      const double old = q->u[k * NU + lg_controls[j]], new = s->u[k * NU + lg_controls[j]];
      double *below = q->below + k * NV + j, *above = q->above + k * NV + j;
      *below = priced(q->set, s->mu, step, *below, old - q->lower[j], new - q->lower[j]);
      *above = priced(q->set, s->mu, step, *above, q->upper[j] - old, q->upper[j] - new);
    }
  for (int64_t k = 0; k <= N; k++) {
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      q->price[i] = priced(q->set, s->mu, step, q->price[i], q->slack[i], s->slack[i]);
      if (isfinite(q->weight[j]))
        q->relief[i] = priced(q->set, s->mu, step, q->relief[i], q->excess[i], s->excess[i]);
      q->slack[i] = s->slack[i];
      q->excess[i] = s->excess[i];
    }
    for (int j = 0; j < NE; j++) {
      double *price = q->equal_price + k * NE + j;
      *price += step * (s->aim[k * NE + j] - *price);
    }
  }
  copy(q->x, s->x, (N + 1) * NQ), copy(q->u, s->u, N * NU);
  copy(q->rows, s->t_rows, (N + 1) * NR), copy(q->K, s->K, N * NV * NX);
}

/* Gaps and rows with what the trial at a share of the step found them to bend by. */
static void bend(const lg_problem *q, lg_state *s, double step)
{
  for (int64_t i = 0; i < q->horizon * NX; i++)
    s->bent_gap[i] = s->feasible ? 0 : s->t_gap[i] + step * s->gap[i];
  for (int64_t i = 0; i < (q->horizon + 1) * NR; i++)
    s->bent_rows[i] = s->t_rows[i] - step * s->d_rows[i];
}

static void swap_bent(lg_state *s)
{
  double *gap = s->gap, *rows = s->rows;
  s->gap = s->bent_gap, s->rows = s->bent_rows;
  s->bent_gap = gap, s->bent_rows = rows;
}

/* The merit of the trial at a share of the step, or NaN. */
static double merit_of_trial(const lg_problem *q, lg_state *s, double step)
{
  double violation;
  const double cost = trial(q, s, step);
  if (!isfinite(cost)) return NAN;
  const double there = merit(q, s, cost, s->u, s->slack, s->excess, s->t_gap, s->t_rows, &violation);
  return there + s->merit_weight * violation;
}

/* One step with the barrier's present weight; the share taken, 0 if none was found. */
static double iterate(lg_problem *q, lg_state *s, double cost_now)
{
  const int64_t N = q->horizon;
  int has_curvature = 0, has_own = 0;
  hold_equalities(s, N);
  s->raises = 0, s->undamped = s->damping, s->was_cut = q->step < q->set->step_good;
  s->waiting = s->was_cut || s->waiting == 0 ? 0 : s->waiting - 1;
  for (;;) {
    const int with_curvature = s->curved && s->waiting == 0;
    const int bent = with_curvature || (LG_COSTS && s->curved);
#if LG_CURVED
    if (with_curvature && !has_curvature) {
      curvatures(q, s, s->prices, s->row_prices);
      has_curvature = 1;
    }
#endif
#if LG_CURVED && LG_COSTS
    if (bent && !with_curvature && !has_own) {
      own_curvatures(q, s);
      has_own = 1;
    }
#endif
    (void)has_curvature, (void)has_own;
    const int is_known = !isnan(s->slope) && !bent;
    const double slope = is_known ? s->slope : newton(q, s, bent);
    s->slope = NAN;
    if (isnan(slope)) {
      if (!make_convex(s)) return 0;
      continue;
    }
    double violation;
    double now = merit(q, s, cost_now, q->u, q->slack, q->excess, s->gap, s->rows, &violation);
    double gained = violation, priced_rows = 0;
    for (int64_t k = 0; k <= N; k++)
      for (int j = 0; j < NE; j++) {
        const int64_t i = k * NE + j;
        if (q->equal_active[i] == 0) continue;
        const double moved = s->d_rows[k * NR + q->equal[j]];
        gained -= fabs(s->missed[i] + moved);
        priced_rows -= s->aim[i] * moved;
      }
    /* By KKT the slope and p'Wp are what multipliers make of the missed: half of p'Wp counts. */
    const double asked = NE > 0 ? fmax(slope, (slope + priced_rows) / 2) : slope;
    if (gained > q->set->violation_least)
      s->merit_weight = fmax(s->merit_weight, asked / ((1 - q->set->penalty_margin) * gained));
    const double descent = slope - s->merit_weight * gained, longest_step = longest(q, s);
    now += s->merit_weight * violation;
    for (double step = longest_step; step >= q->set->step_least; step /= 2) {
      double share = step, there = merit_of_trial(q, s, step), limit = q->set->rounding * fabs(now);
      int is_good = there - now <= q->set->armijo * share * descent + limit;
      if (!is_good && step == longest_step && !isnan(there) && (NS + NE > 0 || !s->feasible)) {
        bend(q, s, step);
        swap_bent(s);
        if (!isnan(newton(q, s, bent))) {
          share = fmin(step, longest(q, s));
          there = merit_of_trial(q, s, share);
          is_good = there - now <= q->set->armijo * share * descent + limit;
        }
        swap_bent(s);
        if (!is_good) newton(q, s, bent);
      }
      if (is_good) {
        accept(q, s, share);
        if (with_curvature && share < q->set->step_short) { /* the model reaches less far */
          s->damping = fmax(q->set->regularization_first, q->set->regularization_growth * s->damping);
        } else {
          s->damping /= q->set->regularization_growth;
          if (s->damping < q->set->regularization_first) s->damping = 0;
        }
        return share;
      }
    }
    if (!make_convex(s)) return 0;
  }
}

/* ---- a solve ----------------------------------------------------------------------------------*/

static void move_up(double *v, int64_t count, int64_t size)
{
  memmove(v, v + size, (size_t)((count - 1) * size) * sizeof(double));
}

/* Inputs that are no controls follow the reference. */
static void take_given_inputs(lg_problem *q)
{
  for (int64_t k = 0; k < q->horizon; k++) {
    double own[NV], *u = q->u + k * NU;
    for (int i = 0; i < NV; i++) own[i] = u[lg_controls[i]];
    for (int i = 0; i < NU; i++) u[i] = q->u_ref[k * NU + i];
    for (int i = 0; i < NV; i++) u[lg_controls[i]] = own[i];
  }
}

/* What rows at a node pay for their excess, hard ones penalty_last_input; their forces go to s->force,
 * weights that lead back to limits to s->weight. */
static double row_costs(const lg_problem *q, lg_state *s, int64_t k, const double *rows)
{
  double sum = 0;
  for (int r = 0; r < NR; r++) s->force[k * NR + r] = s->weight[k * NR + r] = 0;
  for (int j = 0; j < NS; j++) {
    const double e = q->sign[j] * (rows[q->row[j]] - q->limit[j]);
    if (q->active[k * NS + j] == 0 || !(e > 0)) continue;
    const double w = isfinite(q->weight[j]) ? q->weight[j] : q->set->penalty_last_input;
    const double pull = w * (1 + e);
    sum += w * (e + e * e / 2);
    s->force[k * NR + q->row[j]] += q->sign[j] * pull;
    s->weight[k * NR + q->row[j]] += pull / e;
  }
  return sum;
}

/* A Newton step of the last input from that in s->u[NU...], whose end is s->x_end; 0 where its
 * Hessian is not positive definite, or where it leaves the limits: that far, what is cheapest until
 * the end is a bad start for what comes after. Moves the controls of u. */
static int last_newton(const lg_problem *q, lg_state *s, double *u)
{
  const int64_t N = q->horizon, k = N - 1;
  lg_v L_[VV * NV];
  double M[NV * NV], y[NV], HB[NX];
  const double *L = (const double *)L_;
  stages(q, s, k, 1, q->x + k * NQ, s->u + NU, s->x_end);
  row_costs(q, s, k, s->rows);
  lg_end(q->t + N, s->x_end, q->u_ref + N * NU, q->x_ref + N * NQ, q->p, q->w_end, q->P, s->cost,
         s->rows, s->g_end, s->H_end, s->G_end, s->scratch);
  row_costs(q, s, N, s->rows);
  for (int j = 0; j < NV; j++) {
    const double *B = s->F + NX; /* Bᵀ, columns NZ apart */
    for (int i = 0; i < NX; i++) {
      HB[i] = 0;
      for (int l = 0; l < NX; l++) HB[i] += s->H_end[i + l * NX] * B[j + l * NZ];
    }
    y[j] = s->g[NX + j];
    for (int i = 0; i < NX; i++) y[j] += B[j + i * NZ] * s->g_end[i];
    for (int i = 0; i < NV; i++) {
      M[i + j * NV] = s->H[NX + i + (NX + j) * NZ];
      for (int l = 0; l < NX; l++) M[i + j * NV] += B[i + l * NZ] * HB[l];
    }
  }
  for (int r = 0; r < 2 * NR; r++) { /* of the step, then of its end */
    const double weight = s->weight[k * NR + r], force = s->force[k * NR + r];
    double row[NV];
    if (weight == 0) continue;
    for (int j = 0; j < NV; j++) {
      row[j] = r < NR ? s->G[r * NZ + NX + j] : 0;
      for (int l = 0; l < NX && r >= NR; l++)
        row[j] += s->G_end[r - NR + l * NR] * s->F[NX + j + l * NZ];
    }
    for (int j = 0; j < NV; j++) {
      y[j] += row[j] * force;
      for (int i = 0; i < NV; i++) M[i + j * NV] += row[i] * weight * row[j];
    }
  }
  if (!factor(NV, M, NV, L_)) return 0;
  for (int i = 0; i < NV; i++) {
    for (int l = 0; l < i; l++) y[i] -= L[i + l * VP] * y[l];
    y[i] *= L[i * (VP + 1)];
  }
  for (int i = NV - 1; i >= 0; i--) {
    for (int l = i + 1; l < NV; l++) y[i] -= L[l + i * VP] * y[l];
    y[i] *= L[i * (VP + 1)];
  }
  for (int i = 0; i < NV; i++) {
    const double moved = s->u[NU + lg_controls[i]] - y[i];
    if (!(moved >= q->lower[i] && moved <= q->upper[i])) return 0;
    u[lg_controls[i]] = moved;
  }
  return 1;
}

/* The last input of a plan that was moved on: the cheapest of holding the one before, that of the
 * reference, that with the last gains' feedback on the error, and a Newton step from the best. */
static void extend(lg_problem *q, lg_state *s)
{
  const int64_t N = q->horizon, k = N - 1;
  const double *x = q->x + k * NQ, *x_ref = q->x_ref + k * NQ, *u_ref = q->u_ref + k * NU;
  double best = INFINITY, e[NX], off[NX], part, *u = s->u;
  lg_error(x, x_ref, e, s->scratch);
  for (int number = 0; number < 4; number++) {
    for (int i = 0; i < NU; i++) u[i] = q->u[k * NU + i];
    if (number == 3 && !last_newton(q, s, u)) break;
    for (int i = 0; i < NV && (number == 1 || number == 2); i++) {
      double own = u_ref[lg_controls[i]];
      for (int j = 0; j < NX && number == 2; j++) own += q->K[k * NV * NX + i + j * NV] * e[j];
      u[lg_controls[i]] = clip(own, q->lower[i], q->upper[i]);
    }
    lg_roll(q->t + k, x, u, x, x_ref, u_ref, q->p, q->w, &q->dt, s->x, &part, off, s->t_rows,
            s->scratch);
    double cost = part + row_costs(q, s, k, s->t_rows);
    cost += at_end(q, s->x, s->t_rows, s->scratch);
    cost += row_costs(q, s, N, s->t_rows);
    if (number > 0 && !(cost < best)) continue;
    best = cost;
    for (int i = 0; i < NQ; i++) s->x_end[i] = s->x[i];
    for (int i = 0; i < NU; i++) s->u[NU + i] = u[i];
  }
  for (int i = 0; i < NQ; i++) q->x[N * NQ + i] = s->x_end[i];
  for (int i = 0; i < NU; i++) q->u[k * NU + i] = s->u[NU + i];
}

/* Move the plan on by a step: its last gain and multipliers are held. */
static void shift(lg_problem *q, lg_state *s)
{
  const int64_t N = q->horizon;
  move_up(q->x, N + 1, NQ), move_up(q->u, N, NU), move_up(q->K, N, NV * NX), take_given_inputs(q);
  move_up(q->below, N, NV), move_up(q->above, N, NV);
  move_up(q->price, N + 1, NS), move_up(q->relief, N + 1, NS), move_up(q->equal_price, N + 1, NE);
  extend(q, s);
}

/* To x the start as it is given, where it is free as x is. */
static void first_state(const lg_problem *q, lg_state *s, const double *x0, double *x)
{
#if NF > 0
  double off[NX], move[NX] = {0}, wanted[NQ];
  for (int i = 0; i < NQ; i++) wanted[i] = x[i];
  lg_error(wanted, x0, off, s->scratch);
  for (int i = 0; i < NF; i++) move[lg_free[i]] = off[lg_free[i]];
  lg_retract(x0, move, q->p, x, s->scratch);
#else
  (void)q, (void)s;
  for (int i = 0; i < NQ; i++) x[i] = x0[i];
#endif
}

/* A control that share of its range, or that far, inside of its bounds. */
static double inside_of(const lg_problem *q, int i, double v, double share)
{
  const double low = q->lower[i], high = q->upper[i];
  const int both = isfinite(low) && isfinite(high);
  const double apart = both ? share * (high - low) : share;
  return clip(v, low + apart, high - apart);
}

/* States of their own from x0 on, and their rows. */
static void take_states(lg_problem *q, lg_state *s, const double *x0, double share)
{
  const int64_t N = q->horizon;
  first_state(q, s, x0, q->x);
  for (int64_t i = 0; i < N * NV * NX; i++) q->K[i] = 0;
  for (int64_t k = 0; k < N; k++)
    for (int i = 0; i < NV; i++) {
      double *v = q->u + k * NU + lg_controls[i];
      *v = inside_of(q, i, *v, share);
    }
  if (NR == 0) return;
  lg_values(N, q->t, q->x, q->u, q->x + NQ, q->x_ref, q->u_ref, q->p, q->w, &q->dt, s->t_cost,
            s->t_gap, q->rows, s->scratch);
  at_end(q, q->x + N * NQ, q->rows + N * NR, s->scratch);
}

/* The motion from x0 under the inputs, with the gains' feedback about the plan if there is one, and
 * its rows. */
static int roll_out(lg_problem *q, lg_state *s, const double *x0, int feedback, double share)
{
  const int64_t N = q->horizon;
  double dev[NX], cost;
  for (int i = 0; i < NQ; i++) s->x[i] = q->x[i];
  first_state(q, s, x0, s->x);
  if (feedback) {
    lg_error(s->x, q->x, dev, s->scratch);
  } else {
    for (int i = 0; i < NX; i++) dev[i] = 0;
  }
  for (int64_t k = 0; k < N; k++) {
    double *u = q->u + k * NU;
    for (int i = 0; i < NV; i++) {
      double own = u[lg_controls[i]];
      if (feedback)
        for (int j = 0; j < NX; j++) own += q->K[k * NV * NX + i + j * NV] * dev[j];
      u[lg_controls[i]] = inside_of(q, i, own, share);
    }
    lg_roll(q->t + k, s->x + k * NQ, u, q->x + (k + 1) * NQ, q->x_ref + k * NQ, q->u_ref + k * NU,
            q->p, q->w, &q->dt, s->x + (k + 1) * NQ, &cost, dev, s->t_rows + k * NR, s->scratch);
    if (!all_finite(s->x + (k + 1) * NQ, NQ)) return 0;
  }
  copy(q->x, s->x, (N + 1) * NQ);
  if (NR > 0) at_end(q, q->x + N * NQ, s->t_rows + N * NR, s->scratch);
  copy(q->rows, s->t_rows, (N + 1) * NR);
  return 1;
}

/* What a distance asks for, or what was kept as far as that fits. */
static double start_price(const lg_settings *set, double mu, double room, double kept, int warm)
{
  const double own = mu / room;
  return warm ? clip(kept, set->multiplier_low * own, set->multiplier_high * own) : own;
}

/* A distance as far as it fits what was kept. */
static double start_room(const lg_settings *set, double mu, double room, double kept, int warm)
{
  if (!warm || !(kept > 0)) return room;
  return clip(room, set->multiplier_low * mu / kept, set->multiplier_high * mu / kept);
}

/* Distances and multipliers of a start, from the rows there. Where they do not fit those of rows
 * that are kept, the rows are off at first, as gaps are: multipliers are worth more. */
static void begin(lg_problem *q, lg_state *s, double share, int warm)
{
  const int64_t N = q->horizon;
  const lg_settings *set = q->set;
  const double mu = s->mu;
  for (int64_t k = 0; k < N; k++)
    for (int j = 0; j < NV; j++) {
      const int64_t i = k * NV + j;
      const double v = q->u[k * NU + lg_controls[j]];
      q->below[i] = start_price(set, mu, v - q->lower[j], q->below[i], warm);
      q->above[i] = start_price(set, mu, q->upper[j] - v, q->above[i], warm);
    }
  for (int64_t k = 0; k <= N; k++) {
    for (int j = 0; j < NS; j++) {
      const int64_t i = k * NS + j;
      const double h = q->sign[j] * (q->rows[k * NR + q->row[j]] - q->limit[j]);
      const double apart = share * fmax(1.0, fabs(q->limit[j]));
      const int soft = isfinite(q->weight[j]);
      q->excess[i] = 0, q->slack[i] = fmax(-h, apart);
      if (soft) {
        resolve(q->set->soft_newton_steps, h, q->weight[j], mu, q->excess + i, q->slack + i);
        q->excess[i] = start_room(set, mu, q->excess[i], q->relief[i], warm);
      }
      q->slack[i] = start_room(set, mu, q->slack[i], q->price[i], warm);
      q->price[i] = start_price(set, mu, q->slack[i], q->price[i], warm);
      q->relief[i] = soft ? start_price(set, mu, q->excess[i], q->relief[i], warm) : 0.0;
    }
    for (int j = 0; j < NE && !warm; j++) q->equal_price[k * NE + j] = 0;
  }
}

/* Whether one-sided hard rows are exceeded. */
static int exceeds(const lg_problem *q)
{
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int j = 0; j < NS; j++) {
      const double h = q->sign[j] * (q->rows[k * NR + q->row[j]] - q->limit[j]);
      if (q->active[k * NS + j] != 0 && !isfinite(q->weight[j]) && !(h <= q->set->violation_kept)) return 1;
    }
  return 0;
}

static int meets_equalities(const lg_problem *q)
{
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int j = 0; j < NE; j++)
      if (q->equal_active[k * NE + j] != 0 &&
          !(fabs(q->rows[k * NR + q->equal[j]] - q->target[j]) <= q->set->violation_kept))
        return 0;
  return 1;
}

/* Whether a real-time step began far off, was cut short or left hard rows exceeded. */
static int is_far(const lg_problem *q, double step)
{
  return step < q->set->step_good || fmax(q->stationarity, q->violation) > q->set->far || exceeds(q);
}

/* Copy the iterate to where it is kept, or (is_back) back. */
static void copy_kept(lg_problem *q, lg_state *s, int is_back)
{
  const int64_t N = q->horizon, M = N + 1;
  double *const parts[] = {q->x, q->u, q->below, q->above, q->slack, q->price, q->excess,
                           q->relief, q->equal_price, q->K, q->rows};
  const int64_t counts[] = {M * NQ, N * NU, N * NV, N * NV, M * NS, M * NS, M * NS,
                            M * NS, M * NE, N * NV * NX, M * NR};
  for (int i = 0; i < 11; i++)
    copy(is_back ? parts[i] : s->kept[i], is_back ? s->kept[i] : parts[i], counts[i]);
}

/* The entry of the log for an iterate. */
static void tell(const lg_problem *q, const lg_state *s, double *entry)
{
  entry[0] = q->cost, entry[1] = q->stationarity, entry[2] = q->violation;
  entry[3] = q->complementarity, entry[4] = q->step, entry[5] = s->damping, entry[6] = s->mu;
}

/* Which entry of the log is the last of real-time steps: that of an iterate from which no step leads
 * on, else the one before the last step. */
static int64_t last_entry(const lg_problem *q)
{
  return q->iterations > 0 && q->status != LG_STALLED ? q->iterations - 1 : q->iterations;
}

/* Keep an iterate of real-time steps that keeps hard rows. */
static void keep_iterate(lg_problem *q, lg_state *s)
{
  int has_hard = 0;
  for (int j = 0; j < NS; j++) has_hard |= !isfinite(q->weight[j]);
  if (!has_hard || exceeds(q) || !meets_equalities(q)) return;
  tell(q, s, s->kept_entry);
  copy_kept(q, s, 0);
  q->has_kept = 1;
}

/* The first weight of the barrier, lower where the start keeps its limits and a plan from there
 * costs little: with the others' sum far above its cost, the barrier leads far from it. */
static double first_weight(const lg_problem *q, double mu, double cost, int is_inside)
{
  double limits = 0;
  for (int j = 0; j < NV; j++)
    limits += (double)(q->horizon * (isfinite(q->lower[j]) + isfinite(q->upper[j])));
  for (int64_t k = 0; k <= q->horizon; k++) {
    const double *rows = q->rows + k * NR;
    for (int j = 0; j < NS; j++) {
      if (q->active[k * NS + j] == 0) continue;
      limits += 1;
      if (!(q->sign[j] * (rows[q->row[j]] - q->limit[j]) <= q->set->violation_kept)) return mu;
    }
    for (int j = 0; j < NE; j++) {
      if (q->equal_active[k * NE + j] == 0) continue;
      if (!(fabs(rows[q->equal[j]] - q->target[j]) <= q->set->violation_kept)) return mu;
    }
  }
  const double most = is_inside ? q->set->barrier_share : q->set->barrier_share_beyond;
  const double least = is_inside ? q->set->barrier_share_least : q->set->barrier_share_beyond_least;
  return fmin(mu, fmax(least, most * cost / fmax(1.0, limits)));
}

/* Cost that the first step leads to in the model of Gauss and Newton, gaps closed, and whether it
 * keeps limits; infinite where there is no step. */
static double predicted(const lg_problem *q, lg_state *s, int *is_inside)
{
  const int64_t N = q->horizon;
  double cost = q->cost;
  hold_equalities(s, N);
  *is_inside = 0;
  s->slope = newton(q, s, 0);
  if (isnan(s->slope)) return INFINITY;
  *is_inside = 1;
  for (int64_t k = 0; k <= N; k++)
    for (int j = 0; j < NS; j++) {
      const double row = q->rows[k * NR + q->row[j]] + s->d_rows[k * NR + q->row[j]];
      if (q->active[k * NS + j] != 0 && !(q->sign[j] * (row - q->limit[j]) <= q->set->violation_kept))
        *is_inside = 0;
    }
  for (int64_t k = 0; k < N; k++) {
    for (int i = 0; i < NV; i++) {
      const double v = q->u[k * NU + lg_controls[i]] + s->du[k * NV + i];
      if (!(v >= q->lower[i] && v <= q->upper[i])) *is_inside = 0;
    }
    double z[NZ];
    copy(z, s->eps + k * NX, NX), copy(z + NX, s->du + k * NV, NV);
    cost += dot(NZ, s->g + k * NZ, z);
    for (int i = 0; i < NZ; i++) cost += z[i] * dot(NZ, s->H + (k * NZ + i) * NZ, z) / 2;
  }
  const double *e = s->eps + N * NX;
  cost += dot(NX, s->g_end, e);
  for (int i = 0; i < NX; i++) cost += e[i] * dot(NX, s->H_end + i * NX, e) / 2;
  return fabs(cost);
}

/* Whether the barrier may fall: closer to the end iterates need be less central. */
static int is_central(const lg_settings *set, double mu, double residual)
{
  return residual <= (mu <= set->barrier_late ? set->barrier_error_late : set->barrier_error) * mu;
}

/* The next weight, less far below this one where an iterate is less central. */
static double lower_barrier(const lg_problem *q, double mu, double residual)
{
  return fmax(q->mu_last, fmin(q->mu_factor * mu, pow(fmax(mu, residual), q->mu_power)));
}

static int keeps_limits(const lg_problem *q)
{
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int j = 0; j < NS; j++) {
      const double h = q->sign[j] * (q->rows[k * NR + q->row[j]] - q->limit[j]);
      if (q->active[k * NS + j] != 0 && !(h <= 0)) return 0;
    }
  return meets_equalities(q);
}

static int end(lg_problem *q, const lg_state *s, int status)
{
  q->keeps = keeps_limits(q);
  q->mu = s->mu, q->damping = s->damping, q->merit_weight = s->merit_weight;
  q->waiting = s->waiting;
  return (int)(q->status = status);
}

/* The barrier for a real-time step by how far its start is from optimal; 1 if that is so far that
 * the start is to be made anew, further inside. Full steps leave about the square of that: after one
 * it falls down to it, since more may be the barrier's own doing. */
static int settle(lg_problem *q, lg_state *s, double step)
{
  const double off = fmax(q->stationarity, q->violation);
  if (!isfinite(off)) return 0;
  if (off > q->set->far && s->mu < q->mu_first) {
    s->mu = q->mu_first;
    return 1;
  }
  const double factor = q->mu_factor;
  const double least = fmax(factor * s->mu, step == 1 ? off * off : factor * off);
  s->mu = fmax(q->mu_last, fmin(fmin(q->mu_first, s->mu), least));
  return 0;
}

/* The largest multiplier of rows that are hard or kept: with it as the weight of violations iterates
 * that keep them are not given up for a lower cost; full steps next to an optimum need half of it.
 * Multipliers of rows that are exceeded at a price are that price; rows with at most half of it are
 * kept but for what steps are off. */
static double needed_weight(const lg_problem *q)
{
  double most = largest(q->equal_price, (q->horizon + 1) * NE, 0);
  for (int64_t k = 0; k <= q->horizon; k++)
    for (int j = 0; j < NS; j++) {
      const double h = q->sign[j] * (q->rows[k * NR + q->row[j]] - q->limit[j]);
      const int is_kept = !isfinite(q->weight[j]) || h <= q->set->violation_kept
        || q->relief[k * NS + j] >= q->weight[j] / 2;
      if (q->active[k * NS + j] != 0 && is_kept)
        most = larger(q->price[k * NS + j], most);
    }
  return most;
}

/* The largest slope of the cost at the nodes: what an excess of a row could gain. */
LG_EXPORT double lg_slope(lg_problem *q)
{
  lg_state s;
  double most = 0;
  lay_out(&s, q->work, q->horizon, q->set->equality_sweeps_most), s.set = q->set;
  s.x0 = q->x;
  expand(q, &s);
  for (int64_t i = 0; i < q->horizon * NZ; i++)
    if (isfinite(s.g[i])) most = fmax(most, fabs(s.g[i]));
  for (int i = 0; i < NX; i++)
    if (isfinite(s.g_end[i])) most = fmax(most, fabs(s.g_end[i]));
  return most;
}

/* Iterate from what the memory holds: from a guess, (resume) from where a call ended, or in real
 * time (warm) with the multipliers of the last call. */
LG_EXPORT int lg_solve(lg_problem *q, const double *x0)
{
  lg_state s;
  lay_out(&s, q->work, q->horizon, q->set->equality_sweeps_most), s.set = q->set;
  const int real_time = q->mode == LG_REAL_TIME, warm = real_time && q->resume == LG_WARM;
  const double last_step = q->step;
  s.x0 = x0, s.mu = q->mu_first, s.damping = 0, s.merit_weight = 0, s.waiting = 0, s.slope = NAN;
  s.curved = LG_CURVED && q->curved, s.feasible = q->mode != LG_FREE_STATES;
  q->iterations = 0;
  if (q->resume == LG_RESUME) {
    s.mu = q->mu, s.damping = q->damping, s.merit_weight = q->merit_weight;
    s.waiting = (int)q->waiting;
  } else {
    q->step = 1, q->best = INFINITY, q->idle = 0, q->has_kept = 0, q->before = q->cost;
    if (warm) s.mu = q->mu;
    const double share = warm ? fmin(q->set->push, s.mu) : q->set->push;
    if (!all_finite(x0, NQ)) return end(q, &s, LG_NOT_FINITE);
    if (q->shift) shift(q, &s);
    else take_given_inputs(q);
    if (s.feasible) {
      if (!roll_out(q, &s, x0, 1, share)) return end(q, &s, LG_NOT_FINITE);
    } else {
      take_states(q, &s, x0, share);
    }
    begin(q, &s, share, warm);
  }
  /* Motions with clipped controls need not be central before the barrier falls; others do. */
  const int is_eager = s.feasible && NS + NE == 0;
  for (int64_t number = 0;; number++) {
    q->cost = expand(q, &s), q->iterations = number;
    if (!isfinite(q->cost)) return end(q, &s, LG_NOT_FINITE);
    conditions(q, &s);
    if (real_time) keep_iterate(q, &s);
    if (warm && number == 0 && settle(q, &s, last_step)) {
      const double share = fmin(q->set->push, s.mu);
      if (!roll_out(q, &s, x0, 1, share)) return end(q, &s, LG_NOT_FINITE);
      begin(q, &s, share, 0);
      q->cost = expand(q, &s);
      if (!isfinite(q->cost)) return end(q, &s, LG_NOT_FINITE);
      conditions(q, &s);
    }
    if (warm && number == 0) s.merit_weight = needed_weight(q);
    if (number == 0 && q->resume != LG_RESUME && !real_time && !is_eager) {
      const double first = s.mu;
      double mu = first_weight(q, first, fabs(q->cost), 1);
      if (mu < first) {
        s.mu = mu;
        begin(q, &s, q->set->push, 0);
        conditions(q, &s);
        /* The cost of states that are no motion says nothing of what closing their gaps costs. */
        int is_inside;
        const double cost = predicted(q, &s, &is_inside);
        const double dearest = s.feasible ? fabs(q->cost) : fmax(fabs(q->cost), cost);
        mu = first_weight(q, first, dearest, is_inside);
        if (mu > s.mu) {
          s.mu = mu, s.slope = NAN;
          begin(q, &s, q->set->push, 0);
          conditions(q, &s);
        }
      }
    }
    const double residual = fmax(fmax(q->stationarity, q->violation), q->complementarity);
    tell(q, &s, q->log + number * LG_LOG);
    if (!real_time) {
      const int is_met = s.mu <= q->mu_last && residual <= q->tolerance;
      /* products as far above the last weight as a fall goes cost more than it does */
      if (is_met && (is_eager || q->mu_factor * q->complementarity <= q->mu_last))
        return end(q, &s, LG_CONVERGED);
      if (number > 0 || q->resume != LG_RESUME) {
        q->idle = residual < q->set->progress * q->best ? 0 : q->idle + 1;
        q->best = fmin(q->best, residual);
      }
      const int is_idle = q->idle > q->set->idle_most;
      if (is_idle && s.mu <= q->mu_last)
        return end(q, &s, is_met ? LG_CONVERGED : LG_STALLED);
      if (number >= q->max_iterations) return end(q, &s, LG_ITERATIONS);
      /* as central as rounding lets them be, iterates need not be more so */
      const int is_due = is_central(q->set, s.mu, residual) || (is_idle && residual <= q->set->acceptable);
      if (!is_eager && s.mu > q->mu_last && is_due) {
        s.merit_weight = needed_weight(q) / 2; /* those of another barrier are forgotten */
        do s.mu = lower_barrier(q, s.mu, residual);
        while (s.mu > q->mu_last && is_central(q->set, s.mu, residual));
        if (q->mu_factor * s.mu <= q->mu_last) s.mu = q->mu_last; /* a part of a fall is not worth it */
        q->best = INFINITY, q->idle = 0, s.slope = NAN;
      }
    }
    const double step = q->step = iterate(q, &s, q->cost);
    if (step == 0) return end(q, &s, LG_STALLED);
    if (!real_time) {
      if (is_eager && step > q->set->step_good && s.mu > q->mu_last) {
        s.mu = lower_barrier(q, s.mu, 0);
        q->best = INFINITY, q->idle = 0;
      }
    } else if (number + 1 >= q->max_iterations &&
               (number + 1 >= q->max_iterations + q->set->steps_more || !is_far(q, step))) {
      q->iterations = number + 1; /* nobody asks how far the last step got */
      return end(q, &s, LG_ITERATIONS);
    }
  }
}

/* After real-time steps: where the last one exceeds hard rows the iterate before it that kept them,
 * which is not given up for a lower cost, unless it costs more than the plan that they go on from;
 * 1 if it went there. */
LG_EXPORT int lg_go_back(lg_problem *q)
{
  if (!q->has_kept || !exceeds(q)) return 0;
  lg_state s;
  lay_out(&s, q->work, q->horizon, q->set->equality_sweeps_most), s.set = q->set;
  const double *entry = s.kept_entry;
  if (!(entry[0] <= q->before + q->set->cost_kept * fabs(q->before))) return 0;
  copy_kept(q, &s, 1);
  q->cost = entry[0], q->stationarity = entry[1], q->violation = entry[2];
  q->complementarity = entry[3], q->damping = entry[5], q->mu = entry[6];
  copy(q->log + last_entry(q) * LG_LOG, entry, LG_LOG);
  q->keeps = keeps_limits(q);
  return 1;
}
