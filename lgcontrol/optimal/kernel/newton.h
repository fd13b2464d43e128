/* What the kernel and its sweeps share: vectors, an iterate, the state of a solve, products.
 *
 * Before this text stands what `_table.py` writes, structs, enumerations and numbers, and LG_W, doubles in a
 * vector. */
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifndef LG_EXPORT
#define LG_EXPORT extern __attribute__((visibility("default")))
#endif
/* Loops over the sizes of a sweep, of which compilers leave long ones as they are. */
#if defined(__GNUC__) && !defined(__clang__)
#define LG_UNROLL _Pragma("GCC unroll 16")
#else
#define LG_UNROLL
#endif
/* What runs once a stage or trial is worth more of gcc's time: from LG_OFTEN on, until LG_SELDOM. */
#if defined(__GNUC__) && !defined(__clang__)
#define LG_OFTEN _Pragma("GCC push_options") _Pragma("GCC optimize(\"O3\")")
#define LG_SELDOM _Pragma("GCC pop_options")
#else
#define LG_OFTEN
#define LG_SELDOM
#endif
#define LG_INLINE static inline __attribute__((always_inline))
/* A function that is called, and optimized like the inner loops that it holds. */
#if defined(__GNUC__) && !defined(__clang__)
#define LG_OUTLINE static __attribute__((unused, noinline, noclone, optimize("O3")))
#else
#define LG_OUTLINE static __attribute__((unused, noinline))
#endif
#if LG_W > 1
typedef double lg_v __attribute__((vector_size(8 * LG_W), may_alias));
typedef double lg_u __attribute__((vector_size(8 * LG_W), may_alias, aligned(8)));
typedef int64_t lg_m __attribute__((vector_size(8 * LG_W), may_alias)); /* all bits where it holds */
static const lg_v lg_zero = {0};
/* Half a vector; of the narrowest ones all of it. */
#define LG_HALF (LG_W > 2 ? LG_W / 2 : LG_W)
typedef double lg_h __attribute__((vector_size(8 * LG_HALF), may_alias));
typedef double lg_hu __attribute__((vector_size(8 * LG_HALF), may_alias, aligned(8)));
LG_INLINE lg_v pick(lg_m where, lg_v a, lg_v b)
{
  return (lg_v)(((lg_m)a & where) | ((lg_m)b & ~where));
}
LG_INLINE lg_v sizes_of(lg_v a) { return (lg_v)((lg_m)a & INT64_MAX); }
#else
typedef double lg_v;
typedef double lg_u;
#define LG_HALF 1
typedef double lg_h;
typedef double lg_hu;
typedef int64_t lg_m;
static const lg_v lg_zero = 0;
LG_INLINE lg_v pick(lg_m where, lg_v a, lg_v b) { return where ? a : b; }
LG_INLINE lg_v sizes_of(lg_v a) { return fabs(a); }
#endif

/* An iterate, in one block of memory. */
typedef struct {
  double *x, *u, *s, *z, *e, *y, *zl, *zu, *lam, *nu;
} lg_point;

/* Where second derivatives are: not known, apart from first ones, or added to the Hessian H. */
enum { LG_STRAIGHT, LG_APART, LG_ADDED };

#ifndef LG_MOST_FILTER
#define LG_MOST_FILTER 512
#endif
typedef struct {
  double theta[LG_MOST_FILTER], phi[LG_MOST_FILTER], most, least;
  int64_t count;
} lg_filter;

/* What a solve goes on with, next to the plan; real-time steps need LG_KEPT alone. */
typedef struct {
  LG_KEPT
  lg_filter filter, outer; /* of the problem that is solved; of the one that restoration left */
  int64_t nudges, doubts; /* times that a saddle was left; that a certificate was put to the test */
} lg_memory;

/* Memory of a solve with N steps and M nodes, name and size: sweeps, the expansion about the iterate,
 * limits, constraints, the step and its trial (t_). Distances of controls from their limits are `below`
 * and `above`; limits of all nodes are `lowest` and `highest`. `holds` says which constraints are active,
 * `gives` which have an excess, with the penalty w1 e + w2 e²/2 + v s. Multipliers of second derivatives
 * that came with the first ones are lam_before and price_before. */
#define LG_PARTS(PART)                                                                            \
  PART(P, N * nx * xp) PART(p, N * xp) PART(K, N * nv * xp) PART(k, N * nv) PART(L, N * vp * nv)  \
  PART(P0, m->nf * m->nf) PART(first, m->nf) PART(cost, M) PART(gap, N * nx) PART(rows, M * nr)   \
  PART(F, N * nz * nx) PART(g, N * nz) PART(H, N * nz * nz) PART(G, N * nr * nz) PART(g_end, nx)  \
  PART(H_end, nx * nx) PART(G_end, nr * nx) PART(curvature, N * nz * nz)                          \
  PART(curvature_end, nx * nx) PART(bend, N * m->bend) PART(times, many) PART(lengths, many)      \
  PART(after, many * m->nq) PART(other, many * m->nq) PART(part, many * nz * nx)                  \
  PART(turn, N * m->turn) PART(lower, nv) PART(upper, nv) PART(limit, na) PART(rho, M * na)       \
  PART(missed, M * ne) PART(change, M * na) PART(sigma, M * na) PART(a, M * na) PART(b, M * na)   \
  PART(weight, M * nr) PART(base, M * nr) PART(price, M * nr) PART(box, N * nv)                   \
  PART(full, N * nz) PART(full_end, nx) PART(aim, M * ne) PART(leave, M * ne) PART(drow, M * nr)  \
  PART(eps, M * nx) PART(du, N * nv) PART(d_lam, N * nx) PART(ds, M * na) PART(dz, M * na)        \
  PART(de, M * na) PART(dy, M * na) PART(dzl, N * nv) PART(dzu, N * nv) PART(d_nu, M * ne)        \
  PART(t_cost, M) PART(t_gap, N * nx) PART(t_rows, M * nr) PART(t_rho, M * na)                    \
  PART(t_missed, M * ne) PART(move, M * nx) PART(trial_memory, s->plan)                           \
  PART(saved_memory, s->plan) PART(below, N * nv) PART(above, N * nv) PART(t_below, N * nv)       \
  PART(t_above, N * nv) PART(lowest, N * nv) PART(highest, N * nv) PART(holds, M * na)            \
  PART(gives, M * na) PART(w1, M * na) PART(w2, M * na) PART(v, M * na) PART(term, M * na)        \
  PART(metric, nz) PART(rate, nz) PART(lam_before, N * m->joint * nx)                              \
  PART(price_before, M * m->joint * nr)
#define LG_PART(name, count) double *name;
typedef struct {
  LG_PARTS(LG_PART)
  double *d, *size; /* factors of rows; sizes of error coordinates and controls: rate is 1 / size, metric
                       1 / size² */
  double *scratch;
  lg_point now, trial;
  int64_t plan; /* numbers of an iterate */
  int64_t sweeps, trials, linear, extends, is_added;
  int64_t gauss_newton; /* whether the step leaves out second derivatives that are known */
  int64_t stepped, creeps; /* the trial is the iterate before; short steps in turn */
  int64_t tried, returns; /* steps since a whole one that the filter did not take, or 0; those taken back */
  double f, mu, scale, priced, gain, t_theta, t_phi, terms;
  double stat, viol, zsum, zcount, lsum, lcount, r_viol, g_size;
  double unit; /* what errors of the elastic problem are relative to: its violation by the penalty, at least 1 */
  lg_memory *mem;
} lg_state;

LG_INLINE lg_v load(const double *from) { return *(const lg_u *)(const void *)from; }

LG_INLINE lg_v roots(lg_v a)
{
#if LG_W > 1
  double v[LG_W];
  *(lg_u *)(void *)v = a;
  for (int i = 0; i < LG_W; i++) v[i] = sqrt(v[i]);
  return load(v);
#else
  return sqrt(a);
#endif
}

/* All lanes in one: one half with the other, until one is left. */
#ifdef __clang__
#define LG_TURNED(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#else
#define LG_TURNED(v, ...) __builtin_shuffle(v, (lg_m){__VA_ARGS__})
#endif
#if LG_W == 8
#define LG_FOLD(v, with) \
  v with LG_TURNED(v, 4, 5, 6, 7, 0, 1, 2, 3); \
  v with LG_TURNED(v, 2, 3, 0, 1, 6, 7, 4, 5); \
  v with LG_TURNED(v, 1, 0, 3, 2, 5, 4, 7, 6)
#elif LG_W == 4
#define LG_FOLD(v, with) \
  v with LG_TURNED(v, 2, 3, 0, 1); \
  v with LG_TURNED(v, 1, 0, 3, 2)
#endif

/* Whether a mask holds anywhere. */
LG_INLINE int is_any(lg_m where)
{
#ifdef LG_FOLD
  LG_FOLD(where, |=);
  return where[0] != 0;
#elif LG_W > 1
  int64_t any = 0;
  for (int i = 0; i < LG_W; i++) any |= where[i];
  return any != 0;
#else
  return where != 0;
#endif
}

LG_INLINE double added(lg_v v)
{
#ifdef LG_FOLD
  LG_FOLD(v, +=);
  return v[0];
#elif LG_W > 1
  double total = 0;
  for (int i = 0; i < LG_W; i++) total += v[i];
  return total;
#else
  return v;
#endif
}

/* The first numbers of a vector, zeros behind them. */
LG_INLINE lg_v first_of(const int n, lg_v v)
{
#if LG_W > 1
  lg_m place;
  for (int i = 0; i < LG_W; i++) place[i] = i;
  return (lg_v)((lg_m)v & (place < n));
#else
  return n > 0 ? v : 0;
#endif
}

/* What is read beyond the end, by less than a vector, does not count. */
LG_INLINE double dot(const int n, const double *a, const double *b)
{
  lg_v sum = lg_zero;
  int i = 0;
  for (; i + LG_W <= n; i += LG_W) sum += load(a + i) * load(b + i);
  if (i < n) sum += first_of(n - i, load(a + i)) * first_of(n - i, load(b + i));
  return added(sum);
}

/* Sums of lanes of as many vectors as each has lanes: one vector, each sum added as `added` does. */
#ifdef LG_FOLD
#ifdef __clang__
#define LG_MIXED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define LG_MIXED(a, b, ...) __builtin_shuffle(a, b, (lg_m){__VA_ARGS__})
#endif
#if LG_W == 8
#define LG_HALVES(a, b) \
  (LG_MIXED(a, b, 0, 1, 2, 3, 8, 9, 10, 11) + LG_MIXED(a, b, 4, 5, 6, 7, 12, 13, 14, 15))
#define LG_PAIRS(a, b) \
  (LG_MIXED(a, b, 0, 1, 4, 5, 8, 9, 12, 13) + LG_MIXED(a, b, 2, 3, 6, 7, 10, 11, 14, 15))
#define LG_LANES(a, b) \
  (LG_MIXED(a, b, 0, 2, 4, 6, 8, 10, 12, 14) + LG_MIXED(a, b, 1, 3, 5, 7, 9, 11, 13, 15))
LG_INLINE lg_v sums_of(const lg_v *v)
{
  const lg_v a = LG_PAIRS(LG_HALVES(v[0], v[1]), LG_HALVES(v[2], v[3]));
  const lg_v b = LG_PAIRS(LG_HALVES(v[4], v[5]), LG_HALVES(v[6], v[7]));
  return LG_LANES(a, b);
}
#else
#define LG_PAIRS(a, b) (LG_MIXED(a, b, 0, 1, 4, 5) + LG_MIXED(a, b, 2, 3, 6, 7))
#define LG_LANES(a, b) (LG_MIXED(a, b, 0, 2, 4, 6) + LG_MIXED(a, b, 1, 3, 5, 7))
LG_INLINE lg_v sums_of(const lg_v *v)
{
  return LG_LANES(LG_PAIRS(v[0], v[1]), LG_PAIRS(v[2], v[3]));
}
#endif
#endif

/* Products of rows, `apart` numbers from each other, with a vector of n numbers, as `dot` takes each;
 * `to` has whole vectors. */
LG_INLINE void dots(const int rows, const int n, const double *A, const int64_t apart,
                    const double *v, lg_v *to)
{
#ifdef LG_FOLD
  const int whole = n / LG_W, rest = n % LG_W;
  for (int j = 0; j < rows; j += LG_W) {
    lg_v sum[LG_W];
    for (int l = 0; l < LG_W; l++) {
      const double *own = A + (j + l) * apart;
      sum[l] = lg_zero;
      for (int i = 0; i < whole && j + l < rows; i++)
        sum[l] += load(own + i * LG_W) * load(v + i * LG_W);
      if (rest && j + l < rows)
        sum[l] += first_of(rest, load(own + whole * LG_W)) * first_of(rest, load(v + whole * LG_W));
    }
    to[j / LG_W] = sums_of(sum);
  }
#else
  for (int j = 0; j < rows; j++) ((double *)to)[j] = dot(n, A + j * apart, v);
#endif
}

static void copy(double *to, const double *from, int64_t count)
{
  memcpy(to, from, (size_t)count * sizeof(double));
}

/* The same for a few numbers. */
LG_INLINE void put(double *to, const double *from, int64_t count)
{
  int64_t i = 0;
  for (; i + LG_W <= count; i += LG_W) *(lg_u *)(void *)(to + i) = load(from + i);
  for (; i < count; i++) to[i] = from[i];
}

static int64_t padded(int64_t n) { return (n + LG_W - 1) / LG_W * LG_W; }

/* A vector that stays in a register, where compilers would read it again for each product. */
#if defined(__GNUC__) && defined(__x86_64__) && LG_W > 1
#define LG_KEEP(v) __asm__("" : "+v"(v))
#else
#define LG_KEEP(v) (void)(v)
#endif

/* to = times from + sign L R in a block of r vectors by c columns, kept in registers; of the last one the
 * first half alone where that is asked for. Without `from`, zero. Columns are `..._apart`, entry
 * (l, j) of R is at R[l * down + j * right]. Of a symmetric R the upper half is read: `corner` is the
 * row of its diagonal in the first column, -1 of other R. */
LG_INLINE void block(const int r, const int c, const int inner, const double *L, const int l_apart,
                     const double *R, const int down, const int right, const int corner,
                     const int sign, const double *from, const int from_apart, const double times,
                     double *to, const int to_apart, const int halves)
{
  const int n = r - halves, whole = corner < 0 ? inner : corner;
  lg_v sum[12];
  lg_h last[8];
  for (int j = 0; j < c; j++) {
    for (int i = 0; i < n; i++) {
      sum[i + j * r] = lg_zero;
      if (from) sum[i + j * r] = load(from + i * LG_W + j * from_apart) * times;
    }
    if (halves) last[j] = (lg_h){0};
    if (halves && from)
      last[j] = *(const lg_hu *)(const void *)(from + n * LG_W + j * from_apart) * times;
  }
#define LG_TERM(l, entry) \
  do { \
    lg_v own[4]; \
    lg_h end = {0}; \
    for (int i = 0; i < n; i++) { \
      own[i] = load(L + i * LG_W + (l) * l_apart); \
      LG_KEEP(own[i]); \
    } \
    if (halves) { \
      end = *(const lg_hu *)(const void *)(L + n * LG_W + (l) * l_apart); \
      LG_KEEP(end); \
    } \
    for (int j = 0; j < c; j++) { \
      const double b = sign * R[entry]; \
      for (int i = 0; i < n; i++) sum[i + j * r] += own[i] * b; \
      if (halves) last[j] += end * b; \
    } \
  } while (0)
  for (int l = 0; l < whole; l++) LG_TERM(l, l * down + j * right);
  for (int l = 0; l < c && corner >= 0; l++)
    LG_TERM(corner + l, l <= j ? (corner + l) * down + j * right : (corner + j) * down + l * right);
  for (int l = corner + c; l < inner && corner >= 0; l++)
    LG_TERM(l, (corner + j) * down + (l - corner) * right);
#undef LG_TERM
  for (int j = 0; j < c; j++) {
    for (int i = 0; i < n; i++) *(lg_v *)(void *)(to + i * LG_W + j * to_apart) = sum[i + j * r];
    if (halves) *(lg_h *)(void *)(to + n * LG_W + j * to_apart) = last[j];
  }
}

/* The same for `rows` vectors a column; of a symmetric result the upper half at least. `upper` says
 * that of a symmetric R, of as many columns, the upper half is read. */
LG_INLINE void product(const int rows, const int halves, const int inner, const int count, const double *L,
                       const int l_apart, const double *R, const int down, const int right,
                       const int upper, const int sign, const int symmetric, const double *from,
                       const int from_apart, const double times, double *to, const int to_apart)
{
#define LG_BLOCK(r, c) \
  block(r, c, inner, L + i * LG_W, l_apart, R + j * right, down, right, upper ? j : -1, sign, \
        from ? from + i * LG_W + j * from_apart : 0, from_apart, times, \
        to + i * LG_W + j * to_apart, to_apart, halves && i + r == rows)
  int j = 0;
  for (const int i = 0; symmetric && j + 8 <= count && j + 8 <= LG_W; j += 8) LG_BLOCK(1, 8);
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
  for (int i = 0, left; j < count && i < rows; i += left) {
    left = rows - i < 4 ? rows - i : 4;
    LG_LAST(4);
    LG_LAST(3);
    LG_LAST(2);
    LG_LAST(1);
  }
#undef LG_LAST
#undef LG_BLOCK
}

/* The same as a function, for sizes that are known at run time: gcc compiles it once, not at each call. */
LG_OUTLINE void product_of_any_size(const int rows, const int inner, const int count, const double *L,
                                   const int l_apart, const double *R, const int down,
                                   const int right, const int symmetric, const double *from,
                                   const int from_apart, const double times, double *to,
                                   const int to_apart)
{
  product(rows, 0, inner, count, L, l_apart, R, down, right, 0, 1, symmetric, from, from_apart,
          times, to, to_apart);
}
