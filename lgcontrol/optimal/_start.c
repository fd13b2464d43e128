/* Where a solve starts: the cheapest of what is known without asking, as `_guess.py` has it.
 *
 * LG_POLICY says whether the system has a policy, `lg_policy(t, x, x_ref, u_ref, p, u, scratch)`,
 * LG_DISCRETE whether it is asked once a step, however long;
 * `lg_between(a, b, s, x, scratch)` interpolates states. */

enum {
  LG_REST = 1,       /* states that stay at x0 */
  LG_REFERENCE = 2,  /* the motion under the inputs of the reference */
  LG_REGULATORS = 4, /* those under linear-quadratic regulators about it */
  LG_FOLLOWED = 8,   /* that under the policy of the system */
  LG_SCREW = 16      /* states on the way from x0 to the end of the reference */
};

/* Solve `own K = cross` for a positive definite own (NV x NV), which is overwritten. */
static int solve_gains(double *own, const double *cross, double *K)
{
  for (int j = 0; j < NV; j++) {
    double d = own[j + j * NV];
    for (int l = 0; l < j; l++) d -= own[j + l * NV] * own[j + l * NV];
    if (!(d > 0)) return 0;
    own[j + j * NV] = d = sqrt(d);
    for (int i = j + 1; i < NV; i++) {
      double e = own[i + j * NV];
      for (int l = 0; l < j; l++) e -= own[i + l * NV] * own[j + l * NV];
      own[i + j * NV] = e / d;
    }
  }
  for (int c = 0; c < NX; c++) {
    double *k = K + c * NV;
    for (int i = 0; i < NV; i++) {
      k[i] = cross[i + c * NV];
      for (int l = 0; l < i; l++) k[i] -= own[i + l * NV] * k[l];
      k[i] /= own[i + i * NV];
    }
    for (int i = NV - 1; i >= 0; i--) {
      for (int l = i + 1; l < NV; l++) k[i] -= own[l + i * NV] * k[l];
      k[i] /= own[i + i * NV];
    }
  }
  return all_finite(K, NV * NX);
}

/* Gains of the regulator about the expansion in s, controls costing more by a factor. */
static void regulate(const lg_problem *q, lg_state *s, double caution)
{
  double P[NX * NX], PA[NX * NX], PB[NX * NV], own[NV * NV], cross[NV * NX];
  for (int64_t i = 0; i < q->horizon * NV * NX; i++) s->K[i] = 0;
  for (int i = 0; i < NX * NX; i++) P[i] = s->H_end[i];
  for (int64_t k = q->horizon - 1; k >= 0; k--) {
    const double *A = s->F + k * NX * NZ, *B = A + NX, *H = s->H + k * NZ * NZ; /* Aᵀ, Bᵀ */
    double *K = s->K + k * NV * NX;
    for (int i = 0; i < NX; i++) {
      for (int j = 0; j < NX; j++) {
        PA[i + j * NX] = 0;
        for (int l = 0; l < NX; l++) PA[i + j * NX] += P[i + l * NX] * A[j + l * NZ];
      }
      for (int j = 0; j < NV; j++) {
        PB[i + j * NX] = 0;
        for (int l = 0; l < NX; l++) PB[i + j * NX] += P[i + l * NX] * B[j + l * NZ];
      }
    }
    for (int i = 0; i < NV; i++) {
      for (int j = 0; j < NV; j++) {
        double sum = caution * H[NX + i + (NX + j) * NZ];
        for (int l = 0; l < NX; l++) sum += B[i + l * NZ] * PB[l + j * NX];
        own[i + j * NV] = sum;
      }
      for (int j = 0; j < NX; j++) {
        double sum = H[NX + i + j * NZ];
        for (int l = 0; l < NX; l++) sum += B[i + l * NZ] * PA[l + j * NX];
        cross[i + j * NV] = sum;
      }
    }
    if (!solve_gains(own, cross, K)) { /* the reference is where the model is singular */
      for (int i = 0; i < NV * NX; i++) K[i] = 0;
      return;
    }
    for (int j = 0; j < NX; j++)
      for (int i = 0; i < NX; i++) {
        double sum = H[i + j * NZ];
        for (int l = 0; l < NX; l++) sum += A[i + l * NZ] * PA[l + j * NX];
        for (int l = 0; l < NV; l++) sum -= K[l + i * NV] * cross[l + j * NV];
        P[i + j * NX] = sum;
      }
    for (int j = 0; j < NX; j++)
      for (int i = 0; i < j; i++)
        P[i + j * NX] = P[j + i * NX] = (P[i + j * NX] + P[j + i * NX]) / 2;
  }
}

#if LG_POLICY
/* Mean of what the policy does in a step, asked every policy_period seconds at least. */
static void policy_mean(const lg_problem *q, lg_state *s, int64_t k, double *mean)
{
  const double asked = LG_DISCRETE ? 1 : ceil(q->dt / q->set->policy_period - LG_ROUNDING);
  const double parts = fmax(1.0, asked), h = q->dt / parts;
  const double *x_ref = q->x_ref + k * NQ, *u_ref = q->u_ref + k * NU;
  double x[NQ], after[NQ], u[NU], own[NV], cost, e[NX];
  for (int i = 0; i < NQ; i++) x[i] = s->x[k * NQ + i];
  for (int i = 0; i < NU; i++) u[i] = s->u[k * NU + i];
  for (int i = 0; i < NV; i++) mean[i] = 0;
  for (double j = 0; j < parts; j++) {
    const double t = q->t[k] + j * h;
    lg_policy(&t, x, x_ref, u_ref, q->p, own, s->scratch);
    for (int i = 0; i < NV; i++) {
      u[lg_controls[i]] = inside_of(q, i, own[i], q->set->push);
      mean[i] += u[lg_controls[i]] / parts;
    }
    if (parts == 1) return;
    lg_roll(&t, x, u, x, x_ref, u_ref, q->p, q->w, &h, after, &cost, e, s->t_rows, s->scratch);
    for (int i = 0; i < NQ; i++) x[i] = after[i];
  }
}
#endif

/* Motion from x0 under the inputs of s->u, with feedback: 0 none, 1 the gains, 2 the policy. */
static void follow(const lg_problem *q, lg_state *s, const double *x0, int feedback)
{
  double e[NX], cost, own[NV];
  for (int i = 0; i < NQ; i++) s->x[i] = x0[i];
  for (int64_t k = 0; k < q->horizon; k++) {
    const double *x = s->x + k * NQ, *x_ref = q->x_ref + k * NQ, *u_ref = q->u_ref + k * NU;
    double *u = s->u + k * NU, *after = s->x + (k + 1) * NQ;
    for (int i = 0; i < NV; i++) own[i] = u_ref[lg_controls[i]];
    if (feedback == 1) {
      lg_error(x, x_ref, e, s->scratch);
      for (int i = 0; i < NV; i++) {
        for (int j = 0; j < NX; j++) own[i] -= s->K[k * NV * NX + i + j * NV] * e[j];
      }
    }
#if LG_POLICY
    if (feedback == 2) policy_mean(q, s, k, own);
#endif
    if (feedback)
      for (int i = 0; i < NV; i++) u[lg_controls[i]] = inside_of(q, i, own[i], q->set->push);
    lg_roll(q->t + k, x, u, x, x_ref, u_ref, q->p, q->w, &q->dt, after, &cost, e,
            s->t_rows + k * NR, s->scratch);
    if (!all_finite(after, NQ))
      for (int i = 0; i < NQ; i++) after[i] = x[i];
  }
}

/* Cost of the nodes in s, with the prices of soft rows; infinite where something is no number. */
static double priced_cost(const lg_problem *q, lg_state *s)
{
  const int64_t N = q->horizon;
  lg_values(N, q->t, s->x, s->u, s->x + NQ, q->x_ref, q->u_ref, q->p, q->w, &q->dt, s->t_cost,
            s->t_gap, s->t_rows, s->scratch);
  double cost = at_end(q, s->x + N * NQ, s->t_rows + N * NR, s->scratch);
  for (int64_t k = 0; k < N; k++) cost += s->t_cost[k];
  for (int64_t k = 0; k <= N; k++)
    for (int j = 0; j < NS; j++) {
      const double h = q->sign[j] * (s->t_rows[k * NR + q->row[j]] - q->limit[j]);
      if (q->active[k * NS + j] == 0) continue;
      if (isnan(h)) return INFINITY;
      if (isfinite(q->weight[j]) && h > 0) cost += q->weight[j] / q->dt * (h + h * h / 2);
    }
  for (int64_t k = 0; k <= N; k++)
    for (int j = 0; j < NE; j++)
      if (q->equal_active[k * NE + j] != 0 && isnan(s->t_rows[k * NR + q->equal[j]]))
        return INFINITY;
  return isnan(cost) ? INFINITY : cost;
}

/* The cheapest of some starts, to q->x and q->u; returns its largest gap. */
LG_EXPORT double lg_start(lg_problem *q, const double *x0, int64_t which)
{
  const int64_t N = q->horizon;
  lg_state s;
  lay_out(&s, q->work, N, q->set->equality_sweeps_most), s.set = q->set;
  if (which & LG_REGULATORS) {
    for (int64_t i = 0; i < (N + 1) * NQ; i++) q->x[i] = q->x_ref[i];
    for (int64_t i = 0; i < N * NU; i++) q->u[i] = q->u_ref[i];
    s.x0 = q->x;
    expand(q, &s);
  }
  for (int64_t i = 0; i < N * NU; i++) s.u[i] = q->u_ref[i];
  for (int64_t k = 0; k < N; k++)
    for (int i = 0; i < NV; i++) {
      double *u = s.u + k * NU + lg_controls[i];
      *u = inside_of(q, i, *u, q->set->push);
    }
  double best = 0, gap = 0;
  int taken = 0;
  double caution = 1; /* how much dearer controls are to a regulator */
  const int regulators = (int)q->set->regulator_guesses;
  for (int number = 0; number < 4 + regulators; number++) {
    if (number == 0 || number == 1) {
      if (!(which & (number == 0 ? LG_REST : LG_SCREW))) continue;
      for (int64_t k = 0; k <= N; k++) {
        const double share = (double)k / (double)N;
        if (number == 1) lg_between(x0, q->x_ref + N * NQ, &share, s.x + k * NQ, s.scratch);
        else for (int i = 0; i < NQ; i++) s.x[k * NQ + i] = x0[i];
      }
    } else if (number == 2) {
      if (!(which & LG_REFERENCE)) continue;
      follow(q, &s, x0, 0);
    } else if (number < 3 + regulators) {
      if (!(which & LG_REGULATORS)) continue;
      regulate(q, &s, caution);
      caution *= q->set->regulator_caution;
      follow(q, &s, x0, 1);
    } else {
      if (!LG_POLICY || !(which & LG_FOLLOWED)) continue;
      follow(q, &s, x0, 2);
    }
    const double cost = priced_cost(q, &s);
    if (taken && !(cost < best)) continue;
    best = cost, taken = 1, gap = largest(s.t_gap, N * NX, 0);
    for (int64_t i = 0; i < (N + 1) * NQ; i++) q->x[i] = s.x[i];
    for (int64_t i = 0; i < N * NU; i++) q->u[i] = s.u[i];
  }
  return gap;
}
