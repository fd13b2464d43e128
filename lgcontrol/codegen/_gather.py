"""C code that moves numbers between items in memory and lanes of vectors."""

from __future__ import annotations

# Blocks of W items by W numbers are transposed in registers; what is left over is part of a block
# that overlaps the one before, or reaches into the next item.
_CODE = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O3") /* below that blocks go through memory */
#endif
#ifdef __clang__
#define lg_mix(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define lg_mix(a, b, ...) __builtin_shuffle(a, b, (M){__VA_ARGS__})
#endif
typedef double U __attribute__((vector_size(8 * W), aligned(8)));
static inline void lg_transpose(V *t)
{
  V a, b;
TRANSPOSE}
static inline void lg_gather_block(V *restrict to, const double *from, const int64_t *at, int n)
{
  V t[W];
  for (int i = 0; i < W; i++) t[i] = *(const U *)(from + at[i]);
  lg_transpose(t);
  for (int i = 0; i < n; i++) to[i] = t[i];
}
/* `end` is the length of all there is in `from` */
static void lg_gather(V *restrict to, const double *from, const int64_t *at, int64_t n, int64_t end)
{
  int64_t j = 0;
  for (; j + W <= n; j += W) lg_gather_block(to + j, from + j, at, W);
  if (j == n) return;
  if (n > W) {
    lg_gather_block(to + n - W, from + n - W, at, W);
  } else if (at[W - 1] + W <= end) { /* reads on into the items that follow */
    lg_gather_block(to, from, at, n);
  } else {
    for (j = 0; j < n; j++)
      for (int i = 0; i < W; i++) to[j][i] = from[at[i] + j];
  }
}
static inline void lg_scatter_block(double *to, const V *from, const int32_t *slot, int64_t step,
                                    int64_t lanes)
{
  V t[W];
  for (int i = 0; i < W; i++) t[i] = from[slot ? slot[i] : i];
  lg_transpose(t);
  for (int i = 0; i < W; i++)
    if (i < lanes) *(U *)(to + i * step) = t[i];
}
static void lg_scatter(double *to, const V *from, const int32_t *slot, int64_t step, int64_t lanes,
                       int64_t n)
{
  int64_t j = 0;
  if (lanes == W && slot) { /* nearly always */
    for (; j + W <= n; j += W) lg_scatter_block(to + j, from, slot + j, step, W);
  } else {
    for (; j + W <= n; j += W)
      lg_scatter_block(to + j, slot ? from : from + j, slot ? slot + j : 0, step, lanes);
  }
  if (j == n) return;
  if (n > W) {
    j = n - W;
    lg_scatter_block(to + j, slot ? from : from + j, slot ? slot + j : 0, step, lanes);
    return;
  }
  int64_t i = 0;
  if (step == n) { /* writes on into the items that follow, which are written next */
    V t[W];
    for (int k = 0; k < W; k++) t[k] = from[k < n ? (slot ? slot[k] : k) : 0];
    lg_transpose(t);
    for (; i * n + W <= lanes * n && i < W; i++) *(U *)(to + i * n) = t[i];
  }
  for (; i < lanes; i++)
    for (j = 0; j < n; j++) to[i * step + j] = from[slot ? slot[j] : j][i];
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
"""


def gather_code(width: int) -> str:
    """Functions ``lg_gather`` and ``lg_scatter`` for a width that is a power of two."""
    steps = []
    stride = 1
    while stride < width:
        # Rows i and i + stride exchange the halves of each block of 2 × stride lanes.
        low = [k if not k & stride else width + k - stride for k in range(width)]
        high = [k + stride if not k & stride else width + k for k in range(width)]
        for i in (i for i in range(width) if not i & stride):
            pair = f"t[{i}], t[{i + stride}]"
            steps.append(f"  a = lg_mix({pair}, {', '.join(map(str, low))});")
            steps.append(f"  b = lg_mix({pair}, {', '.join(map(str, high))});")
            steps.append(f"  t[{i}] = a; t[{i + stride}] = b;")
        stride *= 2
    return _CODE.replace("TRANSPOSE", "".join(f"{step}\n" for step in steps))
