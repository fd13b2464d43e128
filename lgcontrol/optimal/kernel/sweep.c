/* Riccati sweeps of one size: SX error coordinates, SV controls, SWEEP(name) the names of functions.
 *
 * `newton.h` stands before this text. It is compiled with the kernel for sizes that are known at run
 * time, and apart for a pair of sizes that are constants: SWEEP_EXACT is 1 there, and loops have constant
 * bounds. With other sizes the time goes to `product_of_any_size`, and gcc takes a third less for the
 * factorization around it without -O3. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#if SWEEP_EXACT
#pragma GCC optimize("O3")
#endif
#endif
#if SWEEP_EXACT
#define SWEEP_UNROLL LG_UNROLL
#define PRODUCT(rows, halves, inner, count, L, l_apart, R, down, right, symmetric, ...) \
  product(rows, halves, inner, count, L, l_apart, R, down, right, 0, 1, symmetric, __VA_ARGS__)
#else
#define SWEEP_UNROLL
#define PRODUCT(rows, halves, inner, count, L, l_apart, R, down, right, symmetric, ...) \
  product_of_any_size(rows, inner, count, L, l_apart, R, down, right, symmetric, __VA_ARGS__)
#endif

/* L D Lᵀ = M for the upper half of a matrix, with 1 / D on the diagonal of L, where it has ones; 0
 * unless it is positive definite. Columns of L are padded to whole vectors. */
LG_INLINE int SWEEP(cholesky)(const int size, const double *M, const int apart, lg_v *L_)
{
  const int Q = (size + LG_W - 1) / LG_W * LG_W;
  double *L = (double *)L_, U[size * size], own[size * size];
  SWEEP_UNROLL for (int j = 0; j < size; j++) {
    SWEEP_UNROLL for (int i = j; i < size; i++) {
      double sum = M[j + i * apart];
      SWEEP_UNROLL for (int l = 0; l < j; l++) sum -= U[i + l * size] * own[j + l * size];
      U[i + j * size] = sum;
    }
    if (!(U[j + j * size] > 0) || !isfinite(U[j + j * size])) return 0;
    const double over = 1 / U[j + j * size];
    SWEEP_UNROLL for (int i = j; i < size; i++)
      L[i + j * Q] = own[i + j * size] = i > j ? U[i + j * size] * over : over;
  }
  return 1;
}

/* Factorization of the Newton system with regularization dw; 0 unless the reduced Hessian is
 * positive definite. Kept of each stage: P of the next node, K, and L. */
LG_SWEEP int SWEEP(factor)(const void *model, const void *task, void *state, const double dw,
                           const int bent, const int identity)
{
  const lg_model *const m = model;
  const lg_task *const q = task;
  lg_state *const s = state;
  const int nx = SX, nv = SV, nz = nx + nv, nr = (int)m->nr, N = (int)q->horizon;
  const int xv = (nx + LG_W - 1) / LG_W, xp = xv * LG_W, zv = (nz + LG_W - 1) / LG_W, zp = zv * LG_W;
  const int vv = (nv + LG_W - 1) / LG_W, is_exact = SWEEP_EXACT;
  const int xh = is_exact && xp - nx >= LG_HALF, zh = is_exact && zp - nz >= LG_HALF;
  const double scale = identity ? 0 : q->scale, diagonal = identity ? 1 : dw;
  const int64_t *const rows = m->bend_rows, *const columns = m->bend_columns;
  const int bends = bent ? (int)m->bend : 0;
  lg_v P_[xv * nx], M_[zv * nz], PF_[xv * nz], R_[xv * nv], S_[xv * nv], T_[zv * nx], held[xv];
  double *P = (double *)P_, *M = (double *)M_, *PF = (double *)PF_, *R = (double *)R_;
  double *S = (double *)S_, *T = (double *)T_;
  s->sweeps++;
  for (int j = 0; j < nx; j++) {
    for (int i = 0; i < xp; i++) P[i + j * xp] = 0;
    for (int i = 0; i < nx; i++) {
      double sum = s->H_end[i + j * nx];
      if (bent) sum += s->curvature_end[i + j * nx];
      sum *= scale;
      for (int r = 0; r < nr; r++)
        sum += s->G_end[r + i * nr] * s->weight[N * nr + r] * s->G_end[r + j * nr];
      P[i + j * xp] = sum;
    }
    P[j * (xp + 1)] += diagonal * s->metric[j];
  }
  for (int k = N - 1; k >= 0; k--) {
    const double *F = s->F + (int64_t)k * nx * nz, *H = s->H + (int64_t)k * nz * nz;
    const double *W = s->curvature + (int64_t)k * nz * nz, *G = s->G + (int64_t)k * nr * nz;
    double *kept = s->P + (int64_t)k * nx * xp;
    lg_v *kept_ = (lg_v *)(void *)kept;
    /* P has its upper half alone, which was written in these parts: others would wait for them */
    for (int j = 0; j < nx; j++) {
      for (int i = 0; i < xv - xh; i++) kept_[i + j * xv] = first_of(nx - i * LG_W, P_[i + j * xv]);
      const int64_t last = (xv - 1) * LG_W + j * xp;
      if (xh) *(lg_h *)(void *)(kept + last) = *(lg_h *)(void *)(P + last);
    }
    SWEEP_UNROLL for (int j = 0; j < nx; j++)
      SWEEP_UNROLL for (int i = 0; i < j; i++) kept[j + i * xp] = P[i + j * xp];
    const int is_whole = m->sparse > 0 || (!is_exact && bends > 0); /* not its upper half alone */
    for (int i = 0; i < xv * nx && is_whole; i++) P_[i] = kept_[i];
    const double *entries = s->bend + (int64_t)k * bends;
    for (int n = 0; n < bends; n++) {
      const int i = (int)rows[n], j = (int)columns[n];
      const double own = scale * entries[n];
      P[i + j * xp] += own;
      if (i != j) P[j + i * xp] += own;
    }
    /* M = H + Fᵀ P F */
    const int is_added = bent == LG_APART, apart = is_added ? zp : nz;
    for (int j = 0; j < nz && is_added; j++)
      for (int i = 0; i <= j / LG_W; i++) {
        const lg_v sum = load(H + j * nz + i * LG_W) + load(W + j * nz + i * LG_W);
        M_[i + j * zv] = sum * scale;
      }
    const double *const from = is_added ? M : H, times = is_added ? 1 : scale;
    if (m->sparse > 0) {
      const int first = (int)m->first, dense = (int)m->dense;
      PRODUCT(xv, xh, dense, nz, P + first * xp, xp, F + first * nz, nz, 1, 0, 0, 0, 1, PF, xp);
      for (int n = 0; n < m->sparse; n++) {
        const int64_t l = m->rows[n], j = m->columns[n];
        for (int i = 0; i < xv; i++) PF_[i + j * xv] += P_[i + l * xv] * F[l * nz + j];
      }
      for (int l = 0; l < nx; l++) {
        for (int j = 0; j < nz; j++) T[j + l * zp] = PF[l + j * xp];
        for (int j = nz; j < zp; j++) T[j + l * zp] = 0;
      }
      PRODUCT(zv, zh, dense, nz, T + first * zp, zp, F + first * nz, nz, 1, 1, from, apart, times,
              M, zp);
      for (int n = 0; n < m->sparse; n++) {
        const int64_t l = m->rows[n], j = m->columns[n];
        for (int i = 0; i <= j / LG_W; i++) M_[i + j * zv] += T_[i + l * zv] * F[l * nz + j];
      }
    } else {
#if SWEEP_EXACT
      product(zv, zh, nx, nx, F, nz, P, 1, xp, 1, 1, 0, 0, 0, 1, T, zp);
#else
      product_of_any_size(zv, nx, nx, F, nz, is_whole ? P : kept, 1, xp, 0, 0, 0, 1, T, zp);
#endif
      PRODUCT(zv, zh, nx, nz, F, nz, T, zp, 1, 1, from, apart, times, M, zp);
    }
    for (int r = 0; r < nr; r++) {
      const double weight = s->weight[k * nr + r], *row = G + r * nz;
      if (weight == 0) continue;
      for (int j = 0; j < nz; j++) {
        const double own = weight * row[j];
        if (own == 0) continue;
        for (int i = 0; i <= j / LG_W; i++) M_[i + j * zv] += load(row + i * LG_W) * own;
      }
    }
    for (int j = 0; j < nz; j++) M[j * (zp + 1)] += diagonal * s->metric[j];
    for (int j = 0; j < nv && !identity; j++)
      M[(nx + j) * (zp + 1)] += s->box[k * nv + j];
    /* R = L⁻¹ M_ux by columns of the state, S = D⁻¹ R, K = -L⁻ᵀ S, P = M_xx - Rᵀ S */
    lg_v *L_ = (lg_v *)(void *)(s->L + (int64_t)k * vv * LG_W * nv);
    const double *L = (const double *)L_;
    if (!SWEEP(cholesky)(nv, M + nx * (zp + 1), zp, L_)) return 0;
    for (int i = 0; i < nv; i++) {
      for (int j = 0; j < xv; j++) held[j] = M_[j + (nx + i) * zv];
      for (int l = 0; l < i; l++)
        for (int j = 0; j < xv; j++) held[j] -= R_[j + l * xv] * L[i + l * vv * LG_W];
      for (int j = 0; j < xv; j++) R_[j + i * xv] = held[j];
      for (int j = 0; j < xv; j++) S_[j + i * xv] = held[j] * L[i * (vv * LG_W + 1)];
    }
#if SWEEP_EXACT
    product(xv, xh, nv, nx, R, xp, S, xp, 1, 0, -1, 1, M, zp, 1, P, xp);
#else
    lg_v less[xv * nv];
    for (int i = 0; i < xv * nv; i++) less[i] = -S_[i];
    product_of_any_size(xv, nv, nx, R, xp, (double *)less, xp, 1, 1, M, zp, 1, P, xp);
#endif
    double *K = s->K + (int64_t)k * nv * xp;
    for (int i = nv - 1; i >= 0; i--) {
      for (int j = 0; j < xv; j++) held[j] = S_[j + i * xv];
      for (int l = nv - 1; l > i; l--) /* the latest last, which waits for nothing else */
        for (int j = 0; j < xv; j++) held[j] -= S_[j + l * xv] * L[l + i * vv * LG_W];
      for (int j = 0; j < xv; j++) S_[j + i * xv] = held[j];
    }
    for (int i = 0; i < nv; i++)
      for (int j = 0; j < xp; j++) K[j + i * xp] = j < nx ? -S[j + i * xp] : 0;
  }
  for (int j = 0; j < nx; j++)
    for (int i = 0; i <= j; i++) {
      if (!isfinite(P[i + j * xp])) return 0;
      P[j + i * xp] = P[i + j * xp];
    }
  const int nf = (int)m->nf;
  if (nf > 0) {
    for (int j = 0; j < nf; j++)
      for (int i = 0; i < nf; i++) s->P0[i + j * nf] = P[m->free[i] + m->free[j] * xp];
    for (int j = 0; j < nf; j++) { /* in place, lower half, 1 / L on the diagonal */
      double *own = s->P0 + j * nf, pivot = own[j];
      const double rounding = LG_SINGULAR * pivot;
      for (int l = 0; l < j; l++) pivot -= s->P0[j + l * nf] * s->P0[j + l * nf];
      if (!(pivot > rounding) || !isfinite(pivot)) return 0;
      own[j] = 1 / sqrt(pivot);
      for (int i = j + 1; i < nf; i++) {
        for (int l = 0; l < j; l++) own[i] -= s->P0[i + l * nf] * s->P0[j + l * nf];
        own[i] *= own[j];
      }
    }
  }
  return 1;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

/* Steps and multipliers of the dynamics for a gradient and defects. */
LG_SWEEP void SWEEP(back)(const void *model, const void *task, void *state, const double *g,
                          const double *g_end, const double *gap)
{
  const lg_model *const m = model;
  const lg_task *const q = task;
  lg_state *const s = state;
  const int nx = SX, nv = SV, nz = nx + nv, N = (int)q->horizon, nf = (int)m->nf;
  const int xv = (nx + LG_W - 1) / LG_W, xp = xv * LG_W, zv = (nz + LG_W - 1) / LG_W;
  const int vp = (nv + LG_W - 1) / LG_W * LG_W;
  lg_v p_[xv], pull_[xv], along_[zv], a_[xv], fed_[vp / LG_W];
  double *p = (double *)p_, *pull = (double *)pull_, *along = (double *)along_, *a = (double *)a_;
  const double *fed = (const double *)fed_;
  for (int i = 0; i < xp; i++) p[i] = i < nx ? g_end[i] : 0;
  for (int k = N - 1; k >= 0; k--) {
    const double *F = s->F + (int64_t)k * nx * nz, *P = s->P + (int64_t)k * nx * xp;
    const double *K = s->K + (int64_t)k * nv * xp, *L = s->L + (int64_t)k * vp * nv;
    double *kept = s->p + (int64_t)k * xp, *step = s->k + (int64_t)k * nv;
    for (int i = 0; i < xp; i++) kept[i] = p[i];
    for (int i = 0; i < xv; i++) pull_[i] = p_[i];
    for (int j = 0; j < nx; j++)
      for (int i = 0; i < xv; i++) pull_[i] += load(P + j * xp + i * LG_W) * gap[k * nx + j];
    for (int i = 0; i < zv; i++) along_[i] = load(g + (int64_t)k * nz + i * LG_W);
    for (int l = 0; l < nx; l++)
      for (int i = 0; i < zv; i++) along_[i] += load(F + l * nz + i * LG_W) * pull[l];
    for (int i = 0; i < nv; i++) {
      double sum = -along[nx + i];
      for (int l = 0; l < i; l++) sum -= step[l] * L[i + l * vp];
      step[i] = sum;
    }
    for (int i = nv - 1; i >= 0; i--) {
      double sum = step[i] * L[i * (vp + 1)];
      for (int l = nv - 1; l > i; l--) sum -= step[l] * L[l + i * vp];
      step[i] = sum;
    }
    for (int i = 0; i < xp; i++) p[i] = i < nx ? along[i] : 0;
    for (int i = 0; i < nv; i++)
      for (int j = 0; j < xv; j++) p_[j] += load(K + i * xp + j * LG_W) * along[nx + i];
  }
  double *eps = s->eps;
  for (int i = 0; i < nx; i++) eps[i] = 0;
  if (nf > 0) {
    double *y = s->first;
    for (int i = 0; i < nf; i++) {
      y[i] = -p[m->free[i]];
      for (int l = 0; l < i; l++) y[i] -= s->P0[i + l * nf] * y[l];
      y[i] *= s->P0[i * (nf + 1)];
    }
    for (int i = nf - 1; i >= 0; i--) {
      for (int l = i + 1; l < nf; l++) y[i] -= s->P0[l + i * nf] * y[l];
      y[i] *= s->P0[i * (nf + 1)];
    }
    for (int i = 0; i < nf; i++) eps[m->free[i]] = y[i];
  }
  for (int k = 0; k < N; k++) {
    const double *F = s->F + (int64_t)k * nx * nz, *P = s->P + (int64_t)k * nx * xp;
    const double *K = s->K + (int64_t)k * nv * xp;
    double *du = s->du + (int64_t)k * nv, *lam = s->d_lam + (int64_t)k * nx;
    eps = s->eps + (int64_t)k * nx;
    put(along, eps, nx);
    dots(nv, nx, K, xp, eps, fed_);
    for (int i = 0; i < nv; i++) along[nx + i] = du[i] = s->k[(int64_t)k * nv + i] + fed[i];
    dots(nx, nz, F, nz, along, a_);
    for (int l = 0; l < nx; l++) a[l] += gap[k * nx + l];
    for (int i = 0; i < xv; i++) p_[i] = load(s->p + (int64_t)k * xp + i * LG_W);
    for (int j = 0; j < nx; j++)
      for (int i = 0; i < xv; i++) p_[i] += load(P + j * xp + i * LG_W) * a[j];
    for (int i = 0; i < nx; i++) lam[i] = p[i], eps[nx + i] = a[i];
  }
}

#undef PRODUCT
#undef SWEEP_UNROLL
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
