/* Limits, sizes and scales: what makes the numbers of a problem independent of their units.
 *
 * A control has half of its range as its size. The size of a state is its largest distance from the reference, or
 * what controls of their sizes move it by. The scale of the cost and d of a row divide by gradients
 * for changes of these sizes. */

/* By how much a limit is relaxed: less than what counts as violated. */
LG_INLINE double relaxed_by(const lg_task *q, const lg_settings *o, double limit, double size)
{
  return smaller(o->relax * larger(size, fabs(limit)), q->tolerance / 10 * tolerance_unit(o, size));
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

/* A size as loops count it: 1 from 1 / size_free to size_free, continuous beyond. */
LG_INLINE double counted(const lg_settings *o, double size)
{
  return size / clip(size, 1 / o->size_free, o->size_free);
}

/* Changes of states over the horizon that controls of some sizes cause, to first order. Turn 0 has what
 * controls add in all steps, each further turn what these changes add to other states. The turns are few:
 * with each of them, states that drive each other seem to change more. Of plans a state does not drive
 * itself: a stiff one would seem to grow without limit. */
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

/* The mean of sizes of states with the same unit, for states that have none. */
static void size_by_unit(const lg_model *m, double *size)
{
  double found[m->nx];
  for (int64_t i = 0; i < m->nx; i++) {
    double logs = 0, count = 0;
    for (int64_t l = 0; l < m->nx; l++)
      if (m->alike[l] == m->alike[i] && size[l] > 0) logs += log(size[l]), count++;
    found[i] = count > 0 ? exp(logs / count) : 0;
  }
  for (int64_t i = 0; i < m->nx; i++)
    if (size[i] == 0) size[i] = found[i];
}

/* For states that have no size: LG_DRIVING times what moves another state by its size over the horizon, at most
 * what controls add. Entries of F that are rounding next to the largest of a row move nothing. */
static void size_by_motion(const lg_model *m, const lg_task *q, const lg_state *s, const double *with, double *size)
{
  const int64_t nx = m->nx, nz = nx + m->nv;
  double found[nx];
  for (int64_t i = 0; i < nx; i++) found[i] = INFINITY;
  for (int64_t l = 0; l < nx; l++) {
    double all[nx], most = 0;
    if (!(size[l] > 0)) continue;
    for (int64_t i = 0; i < nx; i++) all[i] = 0;
    for (int64_t k = 0; k < q->horizon; k++)
      for (int64_t i = 0; i < nx; i++) {
        const double own = fabs(s->F[(k * nx + l) * nz + i] - (i == l));
        all[i] += own, most = larger(most, own);
      }
    for (int64_t i = 0; i < nx; i++)
      if (i != l && all[i] > LG_BY_ROUNDING * most && isfinite(all[i]))
        found[i] = smaller(found[i], LG_DRIVING * size[l] / all[i]);
  }
  for (int64_t i = 0; i < nx; i++)
    if (size[i] == 0 && isfinite(found[i]))
      size[i] = with[i] > LG_BY_ROUNDING * found[i] ? smaller(found[i], with[i]) : found[i];
}

/* Sizes of states of plans that have none. The second turn has what drives states of the first. */
static void derive_sizes(const lg_model *m, const lg_task *q, const lg_state *s, const double *with, double *size)
{
  size_by_unit(m, size);
  for (int turn_ = 0; turn_ < 2; turn_++) {
    size_by_motion(m, q, s, with, size);
    size_by_unit(m, size);
  }
}

/* Sizes of error coordinates and controls, so that numbers of any unit are numbers of size one. States:
 * how far they are from the reference, from what equalities ask for, and what controls change.
 * Controls without limits: what changes states by their sizes; of several such sizes, plans take the largest.
 * Whether a share LG_SIZED of the states has one; the others take the mean of all sizes. */
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
  const double least = LG_BY_ROUNDING * largest(q->x_ref, (N + 1) * m->nq, largest(s->now.x, (N + 1) * m->nq, 0));
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
  for (int64_t j = 0; j < m->nf && of == LG_OF_PLANS; j++) /* as linear inputs are: what controls change */
    if (size[m->free[j]] == 0) size[m->free[j]] = with[m->free[j]];
  if (of == LG_OF_PLANS) derive_sizes(m, q, s, with, size);
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
    const double probed = larger(all, rest);
    if (!integrates) continue;
    if (probed > least && size[i] < o->push * probed) size[i] = probed;
    if (first > least && size[i] < o->push * first && of == LG_OF_PLANS) size[i] = first;
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
  return (double)known >= LG_SIZED * (double)nx;
}

/* Reciprocals of the sizes. */
static void set_metric(const lg_model *m, lg_state *s)
{
  for (int64_t i = 0; i < m->nx + m->nv; i++)
    s->rate[i] = 1 / s->size[i], s->metric[i] = s->rate[i] * s->rate[i];
}

/* The factor of the cost. Derivatives are those for changes of the sizes.
 *
 * Of plans the largest derivative becomes one. Curvature may end a derivative within such a change, as that
 * of a square next to its minimum: only the rest counts then, at least a share 1 / gradient_bent. If there
 * is next to no derivative, the curvature becomes one, as constraints lead away from the minimum.
 * Of loops the largest derivative is moved into [1, gradient_most]. Below one, half of the curvature
 * counts as a derivative, too. */
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

/* The factor of a row. Derivatives are those for changes of the sizes.
 *
 * Of plans the derivative at the node nearest to the limit becomes one of an equality, gradient_bent of
 * other rows. If there is next to none, as of a square at zero, the distance from the limit takes its place.
 * Of loops the largest derivative is at most gradient_most, and at least one if any size is not one. */
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

/* Scales of a kind; returns whether they are. If few states have a size, those of plans are those of loops:
 * other states take the mean size, of other units, and scales of loops depend less on it. */
static int set_scales(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, int64_t of)
{
  const int is_own = measure(m, q, s, o, of) || of == LG_OF_STEPS;
  if (!is_own) measure(m, q, s, o, of = LG_OF_STEPS);
  s->scale = s->mem->scale = scale_of_cost(m, q, s, o, of);
  for (int64_t r = 0; r < m->nr; r++) s->d[r] = scale_of_row(m, q, s, o, of, r);
  return is_own;
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
