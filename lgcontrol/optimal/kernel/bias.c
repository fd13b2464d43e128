/* The state of a loop, and a steady disturbance: its estimate from what the model predicted, and what
 * to follow in its presence so that the reference is met. */

static double *queue_times(const lg_model *m, const lg_loop *c) { return c->state + LG_NUMBERS + m->nv; }
static double *queue_inputs(const lg_model *m, const lg_loop *c) { return queue_times(m, c) + c->queue; }

/* Parts of the state of a loop that belong to it. */
typedef struct {
  double *has_seen, *seen_t, *seen_x; /* the last call: its time and state */
  double *inputs;          /* the estimate, zero for other inputs */
  double *has_target, *x, *u, *multipliers, *inverse; /* the last target, to go on from */
} lg_bias;

/* Coordinates of a measured state: the inputs that a problem with rates has behind it are not. */
static int64_t measured(const lg_model *m, const lg_loop *c) { return m->nq - (c->held > 0 ? m->nv : 0); }

/* Inputs of the system, which a problem with rates has in the order of `order`, controls first. */
static int64_t own_inputs(const lg_model *m) { return m->nu - (m->blocks ? 2 * m->nv + 2 : 0); }

static int64_t own_place(const lg_loop *c, int64_t j) { return c->held > 0 ? c->order[j] : j; }

static int64_t own_control(const lg_model *m, const lg_loop *c, int64_t i)
{
  return c->held > 0 ? c->order[i] : m->controls[i];
}

static lg_bias bias_of(const lg_model *m, const lg_loop *c)
{
  const int64_t n = measured(m, c);
  double *at = c->state + LG_NUMBERS + m->nv + c->queue * (1 + m->nv);
  lg_bias b;
  b.has_seen = at, b.seen_t = at + 1, b.seen_x = at + 2, b.inputs = b.seen_x + n;
  b.has_target = b.inputs + own_inputs(m);
  b.x = b.has_target + 1, b.u = b.x + n, b.multipliers = b.u + m->nv, b.inverse = b.multipliers + c->rates;
  return b;
}

/* Eigenvalues of a symmetric matrix (n by n), which is overwritten, and its eigenvectors in columns. */
static void eigen(int64_t n, double *A, double *values_, double *V)
{
  double last = INFINITY;
  for (int64_t i = 0; i < n * n; i++) V[i] = i % (n + 1) == 0;
  for (int sweep = 0; sweep < 60; sweep++) {
    double off = 0, all = 0;
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++) {
        const double square = A[i + j * n] * A[i + j * n];
        all += square, off += i != j ? square : 0;
      }
    if (!(off > 1e-32 * all) || off >= last) break; /* rounding alone keeps it from falling */
    last = off;
    for (int64_t j = 1; j < n; j++)
      for (int64_t i = 0; i < j; i++) {
        const double a = A[i + j * n];
        if (a == 0) continue;
        const double turn_ = (A[j + j * n] - A[i + i * n]) / (2 * a);
        const double t = (turn_ < 0 ? -1 : 1) / (fabs(turn_) + sqrt(turn_ * turn_ + 1));
        const double co = 1 / sqrt(t * t + 1), si = t * co;
        for (int64_t l = 0; l < n; l++) {
          const double p = A[l + i * n], q = A[l + j * n], v = V[l + i * n], w = V[l + j * n];
          A[l + i * n] = co * p - si * q, A[l + j * n] = si * p + co * q;
          V[l + i * n] = co * v - si * w, V[l + j * n] = si * v + co * w;
        }
        for (int64_t l = 0; l < n; l++) {
          const double p = A[i + l * n], q = A[j + l * n];
          A[i + l * n] = co * p - si * q, A[j + l * n] = si * p + co * q;
        }
      }
  }
  for (int64_t i = 0; i < n; i++) values_[i] = A[i * (n + 1)];
}

/* The pseudo-inverse of a symmetric matrix, which is overwritten, to `to`; eigenvalues up to `least`
 * times the largest count as zero. */
static void invert(int64_t n, double *A, double least, double *to, double *V, double *lambda)
{
  eigen(n, A, lambda, V);
  const double most = largest(lambda, n, 0);
  for (int64_t i = 0; i < n * n; i++) to[i] = 0;
  for (int64_t l = 0; l < n; l++) {
    if (!(fabs(lambda[l]) > least * most)) continue;
    for (int64_t j = 0; j < n; j++)
      for (int64_t i = 0; i < n; i++) to[i + j * n] += V[i + l * n] * V[j + l * n] / lambda[l];
  }
}

/* `y = A x`, A of rows by n by columns. */
static void multiply(int64_t rows, int64_t n, const double *A, const double *x, double *y)
{
  for (int64_t i = 0; i < rows; i++) y[i] = 0;
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < rows; i++) y[i] += A[i + j * rows] * x[j];
}

/* `y = Aᵀ x`. */
static void multiply_transposed(int64_t rows, int64_t n, const double *A, const double *x, double *y)
{
  for (int64_t j = 0; j < n; j++) {
    y[j] = 0;
    for (int64_t i = 0; i < rows; i++) y[j] += A[i + j * rows] * x[i];
  }
}

/* The pseudo-inverse of `Gᵀ G`, G of rows by n by columns. */
static void normal_inverse(int64_t rows, int64_t n, const double *G, double least, double *inverse)
{
  double A[n * n], V[n * n], lambda[n];
  for (int64_t j = 0; j < n; j++) multiply_transposed(rows, n, G, G + j * rows, A + j * n);
  invert(n, A, larger(least * least, 1e-15), inverse, V, lambda);
}

/* The solution of least squares and least size of `G z = b`, by its normal inverse. */
static void least_size(int64_t rows, int64_t n, const double *G, const double *b, const double *inverse,
                       double *z)
{
  double right[n];
  multiply_transposed(rows, n, G, b, right);
  multiply(n, n, inverse, right, z);
}

/* Where a control that moves to the answers is at a time; see `Delay.position`. */
static double position(const lg_model *m, const lg_loop *c, double t, int64_t i)
{
  const int64_t queued = (int64_t)c->state[LG_QUEUED];
  const double *const times = queue_times(m, c), *const inputs = queue_inputs(m, c);
  double v = inputs[i];
  for (int64_t k = 1; k < queued && times[k] <= t; k++) {
    const double passed = (k + 1 < queued ? smaller(t, times[k + 1]) : t) - times[k];
    const double after = inputs[k * m->nv + i];
    v = passed >= c->held - c->early ? after : v + larger(passed, 0) / c->held * (after - v);
  }
  return v;
}

/* Inputs that act when the next answer takes effect, behind the state of a problem with rates: the
 * last answer, before the first those of the reference. */
static void put_beside(const lg_model *m, const lg_task *q, const lg_loop *c, double *x)
{
  const int64_t n = measured(m, c), queued = (int64_t)c->state[LG_QUEUED];
  for (int64_t i = 0; i < m->nq - n; i++) {
    x[n + i] = queued > 0 ? queue_inputs(m, c)[(queued - 1) * m->nv + i] : q->x_ref[n + i];
    if (queued > 0 && c->ramps) x[n + i] = position(m, c, c->now + c->delay, i);
    if (!isfinite(x[n + i])) x[n + i] = c->nominal[m->controls[i]];
  }
}

/* A step in so many parts. */
static void in_parts(const lg_model *m, const lg_task *q, lg_state *s, double t, const double *x,
                     const double *u, double h, int64_t parts, double *after)
{
  double from[m->nq];
  const double part = h / (double)parts;
  copy(after, x, m->nq);
  for (int64_t j = 0; j < parts; j++) {
    copy(from, after, m->nq);
    one_step(m, q, s, t + (double)j * part, from, u, part, after);
  }
}

/* A step in the fewest parts, 1, 2, 4 and so on, which twice as many follow: they end no further off
 * than what is far, in sizes. Returns their number, 0 where even the most do not follow their motion. */
static int64_t resolved_step(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o,
                             double t, const double *x, const double *u, double h, double *after)
{
  double finer[m->nq], e[m->nx];
  in_parts(m, q, s, t, x, u, h, 1, after);
  for (int64_t parts = 1; parts <= LG_REACH_PARTS; parts *= 2) {
    int is_near = 1;
    if (m->discrete) return 1;
    in_parts(m, q, s, t, x, u, h, 2 * parts, finer);
    errors(m, 1, finer, after, e, s->scratch);
    for (int64_t i = 0; i < m->nx; i++)
      is_near = is_near && fabs(e[i]) <= o->real_time_far * (s->size[i] > 0 ? s->size[i] : 1);
    if (is_near) return parts;
    copy(after, finer, m->nq);
  }
  return 0;
}

/* Steps of a state from one time to another under inputs of the model; with settings, in parts that
 * follow the motion. */
static void go(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, const lg_loop *c,
               double from, double end, const double *u, double *x)
{
  double after[m->nq];
  const double steps = (end - from) / q->dt;
  const double parts = m->discrete ? nearbyint(steps) : ceil(steps - c->early);
  const double h = m->discrete ? q->dt : (end - from) / parts;
  for (double j = 0; j < parts; j++) {
    if (o) resolved_step(m, q, s, o, from + j * h, x, u, h, after);
    else one_step(m, q, s, from + j * h, x, u, h, after);
    copy(x, after, m->nq);
  }
}

/* The same under controls that move to the answers: each way in one piece, and then the rest. */
static void ramp_on(const lg_model *m, lg_task *q, lg_state *s, const lg_settings *o, const lg_loop *c,
                    double from, double end, const double *push, double *u, double *x)
{
  const int64_t queued = (int64_t)c->state[LG_QUEUED], n = measured(m, c);
  const double *const times = queue_times(m, c);
  double now = from;
  for (int64_t k = 0; k < queued; k++) {
    const double until = k + 1 < queued ? smaller(larger(times[k + 1], from), end) : end;
    const double there = k > 0 ? smaller(larger(times[k] + c->held, now), until) : now;
    for (int side = 0; side < 2; side++) {
      const double stop = side ? until : there;
      if (!(stop - now > c->early)) continue;
      for (int64_t i = 0; i < m->nv; i++) {
        const double v = position(m, c, now, i);
        x[n + i] = push ? v + push[own_control(m, c, i)] : v;
        u[m->controls[i]] = (position(m, c, stop, i) - v) / (stop - now);
      }
      go(m, q, s, o, c, now, stop, u, x);
      now = stop;
    }
  }
  for (int64_t i = 0; i < m->nv && queued > 0; i++) x[n + i] = position(m, c, now, i);
}

/* Move a state on from one time to another under the answers that are on their way, before the first
 * under nominal inputs, and a push; 0 if it is not finite. */
static int run_on(const lg_model *m, lg_task *q, const lg_settings *o, const lg_loop *c, double from,
                  double end, const double *push, double *x)
{
  lg_state own, *s = &own;
  double now = from, u[m->nu], v[m->nu], acting[m->nv];
  const int64_t n = measured(m, c), has_rates = n < m->nq;
  open_task(m, q, s);
  copy(u, c->nominal, m->nu);
  for (int64_t i = 0; i < m->nv; i++) {
    acting[i] = clip(u[m->controls[i]], c->widest_lower[i], c->widest_upper[i]);
    if (has_rates) u[m->controls[i]] = 0, x[n + i] = acting[i];
  }
  copy(v, u, m->nu);
  for (int64_t j = has_rates ? m->nv : 0; j < own_inputs(m); j++)
    if (push) v[j] = u[j] + push[own_place(c, j)];
  if (c->ramps) {
    ramp_on(m, q, s, o, c, from, end, push, v, x);
    return all_finite(x, m->nq);
  }
  const int64_t queued = (int64_t)c->state[LG_QUEUED];
  for (int64_t k = 0; k <= queued; k++) {
    const double next = k < queued ? smaller(larger(queue_times(m, c)[k], from), end) : end;
    if (next - now > c->early) {
      for (int64_t i = 0; i < m->nv; i++) {
        const double all = push ? acting[i] + push[own_control(m, c, i)] : acting[i];
        *(has_rates ? x + n + i : v + m->controls[i]) = all;
      }
      go(m, q, s, o, c, now, next, v, x);
    }
    now = next;
    if (k < queued) copy(acting, queue_inputs(m, c) + k * m->nv, m->nv);
  }
  if (has_rates) copy(x + n, acting, m->nv);
  return all_finite(x, m->nq);
}

/* Correct the estimate by the state x at time t that follows on the last one. What inputs that may
 * fail explain of the error is no disturbance. */
static void observe(const lg_model *m, lg_task *q, const lg_loop *c, double t, const double *x)
{
  const int64_t n = c->biased + c->suspects, nq = measured(m, c), nx = m->nx - (m->nq - nq);
  const lg_bias b = bias_of(m, c);
  double guess[m->nq], moved[m->nq], push[m->nu], G[nx * n], missed[m->nx], away[m->nx], asked[n];
  double inverse[n * n];
  const double h = c->bias_numbers[LG_DIFFERENCE];
  if (*b.has_seen == 0 || !(t > *b.seen_t + c->early)) return;
  copy(guess, b.seen_x, nq);
  int fine = run_on(m, q, 0, c, *b.seen_t, t, b.inputs, guess);
  for (int64_t j = 0; j < n; j++)
    for (int side = 0; side < 2; side++) {
      copy(push, b.inputs, own_inputs(m)), copy(moved, b.seen_x, nq);
      push[c->bias_places[j]] += side ? -h : h;
      fine = run_on(m, q, 0, c, *b.seen_t, t, push, moved) && fine;
      errors(m, 1, moved, guess, away, q->work);
      for (int64_t i = 0; i < nx; i++)
        G[i + j * nx] = side ? (G[i + j * nx] - away[i]) / (2 * h) : away[i];
    }
  errors(m, 1, x, guess, missed, q->work);
  if (!fine || !all_finite(missed, nx) || !all_finite(G, nx * n)) return;
  normal_inverse(nx, n, G, c->bias_numbers[LG_UNOBSERVABLE], inverse);
  least_size(nx, n, G, missed, inverse, asked);
  const double gain = 1 - exp(-(t - *b.seen_t) / c->settling);
  for (int64_t j = 0; j < c->biased; j++) {
    const int64_t i = c->bias_places[j];
    b.inputs[i] = clip(b.inputs[i] + gain * asked[j], c->inputs_lower[i], c->inputs_upper[i]);
  }
}

static void rates_at(lg_task *q, const lg_loop *c, double t, const double *x, const double *u,
                     double *rate, double *by_x, double *by_u)
{
  const double *in[] = {&t, x, u, q->p};
  double *const out[] = {rate, by_x, by_u};
  call(&c->rate, 1, in, out, q->work);
}

/* State and inputs with the rate of the reference, next to it; from the last ones, with their inverse
 * as secants left it: the estimate moves little from call to call. */
static void steady(const lg_model *m, lg_task *q, const lg_loop *c, double t, const double *x_ref,
                   const double *u_ref, double *x, double *u)
{
  const int64_t nq = measured(m, c), nx = m->nx - (m->nq - nq), nv = m->nv, nd = c->rates;
  const int64_t own = nx + nv, size = own + nd, nu = own_inputs(m);
  const lg_bias b = bias_of(m, c);
  const double *const set = c->bias_numbers;
  double wanted[nd], rate[nd], by_x[nd * nx], by_u[nd * nu], away[m->nx], to[m->nq];
  double A[size * size], K[size * size], V[size * size], lambda[size], off[size], left[size], before[size];
  double step[size], turned[size], along[size], scale = largest(c->Q, nx * nx, 0), shortest = INFINITY;
  int has_inverse = 0, has_left = 0, stands = 0;
  if (scale == 0) scale = 1;
  for (int64_t i = 0; i < size * size; i++) K[i] = 0; /* [H Jᵀ; J 0] */
  for (int64_t j = 0; j < own; j++) {
    if (j < nx) copy(K + j * size, c->Q + j * nx, nx);
    K[j * (size + 1)] += (j < nx ? set[LG_ERROR] : set[LG_EFFORT]) * scale;
  }
  rates_at(q, c, t, x_ref, u_ref, wanted, by_x, by_u);
  copy(x, x_ref, m->nq);
  for (int64_t i = 0; i < nu; i++) u[i] = u_ref[i] + b.inputs[i];
  if (*b.has_target != 0) {
    copy(x, b.x, nq), has_inverse = 1;
    for (int64_t i = 0; i < nv; i++) u[own_control(m, c, i)] = b.u[i];
  } else {
    for (int64_t i = 0; i < nd; i++) b.multipliers[i] = 0;
  }
  *b.has_target = 0;
  for (int number = 0; number <= (int)set[LG_STEPS]; number++) {
    rates_at(q, c, t, x, u, rate, by_x, by_u);
    errors(m, 1, x, x_ref, away, q->work);
    copy(before, left, has_left ? size : 0);
    copy(off, away, nx), copy(off + own, b.multipliers, nd);
    for (int64_t j = 0; j < own; j++) {
      const int64_t r = j < nx ? 0 : own_control(m, c, j - nx);
      const double *const slope = j < nx ? by_x + j * nd : by_u + r * nd;
      if (j >= nx) off[j] = u[r] - u_ref[r];
      for (int64_t i = 0; i < nd; i++) K[own + i + j * size] = K[j + (own + i) * size] = slope[i];
    }
    multiply(size, size, K, off, left);
    for (int64_t i = 0; i < nd; i++) left[own + i] = rate[i] - wanted[i];
    if (has_left) {
      double most = 0, top = 0;
      for (int64_t i = 0; i < own; i++) most = larger(most, fabs(step[i]));
      for (int64_t i = 0; i < nu; i++) top = larger(top, fabs(u[i]));
      if (most < set[LG_FOUND] * (1 + top)) {
        stands = has_inverse;
        break;
      }
      if (most > shortest) { /* it is no inverse any more */
        shortest = INFINITY, has_inverse = 0;
      } else {
        double over = 0, whole = 0;
        shortest = most;
        for (int64_t i = 0; i < size; i++) before[i] = left[i] - before[i];
        multiply(size, size, b.inverse, before, turned);
        multiply_transposed(size, size, b.inverse, step, along);
        for (int64_t i = 0; i < size; i++) over += step[i] * turned[i], whole += step[i] * step[i];
        if (fabs(over) > set[LG_SAME] * whole)
          for (int64_t j = 0; j < size; j++)
            for (int64_t i = 0; i < size; i++)
              b.inverse[i + j * size] += (step[i] - turned[i]) * along[j] / over;
      }
    }
    if (number == (int)set[LG_STEPS]) {
      stands = has_inverse;
      break;
    }
    if (!all_finite(left, size) || !all_finite(by_x, nd * nx) || !all_finite(by_u, nd * nu)) {
      copy(x, x_ref, m->nq);
      for (int64_t i = 0; i < nu; i++) u[i] = u_ref[i] + b.inputs[i];
      return;
    }
    if (!has_inverse) {
      copy(A, K, size * size);
      invert(size, A, set[LG_ROUNDED], b.inverse, V, lambda);
      has_inverse = 1;
    }
    multiply(size, size, b.inverse, left, step);
    for (int64_t i = 0; i < size; i++) step[i] = -step[i];
    retract(m, q, 1, x, step, to, q->work);
    copy(x, to, m->nq);
    for (int64_t i = 0; i < nv; i++) u[own_control(m, c, i)] += step[nx + i];
    for (int64_t i = 0; i < nd; i++) b.multipliers[i] += step[own + i];
    has_left = 1;
  }
  if (stands) {
    *b.has_target = 1;
    copy(b.x, x, nq);
    for (int64_t i = 0; i < nv; i++) b.u[i] = u[own_control(m, c, i)];
  }
  for (int64_t i = 0; i < nu; i++) u[i] = clip(u[i], c->inputs_lower[i], c->inputs_upper[i]);
}

/* Inputs of the system that the reference has at a node. */
static void own_reference(const lg_model *m, const lg_task *q, const lg_loop *c, int64_t k, double *u)
{
  for (int64_t j = 0; j < own_inputs(m); j++) u[own_place(c, j)] = q->u_ref[k * m->nu + j];
  for (int64_t i = 0; i < m->nq - measured(m, c); i++)
    u[own_control(m, c, i)] = q->x_ref[k * m->nq + measured(m, c) + i];
}

/* Inputs of the system as the reference at a node in the presence of the estimate. */
static void put_aim(const lg_model *m, const lg_task *q, const lg_loop *c, int64_t k, const double *u)
{
  const int64_t n = measured(m, c), nu = m->nu;
  double *const to = c->aim_u + k * nu;
  copy(to, q->u_ref + k * nu, nu);
  for (int64_t j = n < m->nq ? m->nv : 0; j < own_inputs(m); j++) to[j] = u[own_place(c, j)];
  for (int64_t j = 0; j < m->nq - n; j++) {
    const int64_t i = own_control(m, c, j);
    c->aim_x[k * m->nq + n + j] = u[i];
    if (m->blocks) to[nu - m->nv + j] = u[i];
  }
}

/* What to follow in the presence of the estimate: a constant reference moves to the steady state next
 * to it; along one that moves the inputs compensate for as much as they can. */
static void aim(const lg_model *m, lg_task *q, const lg_loop *c)
{
  const int64_t M = q->horizon + 1, nd = c->rates, nv = m->nv, nu = own_inputs(m);
  const lg_bias b = bias_of(m, c);
  double own[nu], u[nu];
  int moves = 0, any = 0;
  for (int64_t i = 0; i < nu; i++) any = any || b.inputs[i] != 0;
  if (!any) return;
  for (int64_t i = m->nq; i < M * m->nq; i++) moves = moves || q->x_ref[i] != q->x_ref[i - m->nq];
  for (int64_t k = 1; k < M; k++)
    for (int64_t i = k * m->nu; i < k * m->nu + nu; i++)
      moves = moves || q->u_ref[i] != q->u_ref[i - m->nu];
  copy(c->aim_x, q->x_ref, M * m->nq);
  if (!moves) {
    own_reference(m, q, c, 0, own);
    steady(m, q, c, q->t[0], q->x_ref, own, c->aim_x, u);
    for (int64_t k = 0; k < M; k++) copy(c->aim_x + k * m->nq, c->aim_x, m->nq), put_aim(m, q, c, k, u);
  } else {
    double wanted[nd], rate[nd], by_x[nd * m->nx], by_u[nd * nu], B[nd * nv + 1], z[nv + 1];
    double inverted[nd * nv + 1], inverse[nv * nv + 1];
    const size_t bytes = (size_t)(nd * nv) * sizeof(double);
    int has_inverse = 0;
    for (int64_t k = 0; k < M; k++) {
      const double *x = q->x_ref + k * m->nq;
      own_reference(m, q, c, k, u);
      rates_at(q, c, q->t[k], x, u, wanted, by_x, by_u);
      for (int64_t i = 0; i < nu; i++) u[i] += b.inputs[i];
      for (int turn_ = 0; turn_ < 2; turn_++) {
        rates_at(q, c, q->t[k], x, u, rate, by_x, by_u);
        for (int64_t i = 0; i < nv; i++) copy(B + i * nd, by_u + own_control(m, c, i) * nd, nd);
        for (int64_t i = 0; i < nd; i++) rate[i] = wanted[i] - rate[i];
        if (!has_inverse || memcmp(B, inverted, bytes) != 0) { /* constant for thrusters */
          normal_inverse(nd, nv, B, c->bias_numbers[LG_RANK], inverse);
          memcpy(inverted, B, bytes), has_inverse = 1;
        }
        least_size(nd, nv, B, rate, inverse, z);
        for (int64_t i = 0; i < nv; i++) u[own_control(m, c, i)] += z[i];
      }
      for (int64_t i = 0; i < nu; i++) u[i] = clip(u[i], c->inputs_lower[i], c->inputs_upper[i]);
      put_aim(m, q, c, k, u);
    }
  }
  q->x_ref = c->aim_x, q->u_ref = c->aim_u;
}
