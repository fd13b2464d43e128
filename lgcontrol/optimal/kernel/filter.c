/* The filter of Waechter and Biegler 2006, section 2.3: pairs (theta, phi) that no trial may be worse than.
 *
 * A trial is acceptable to a pair if theta <= (1 - filter_theta) theta_j or phi <= phi_j - armijo theta_j
 * (equation (18)). If theta is small and alpha (-slope)^switch_phi > theta (equation (19)), phi has
 * to fall by Armijo's rule (equation (20)). Otherwise the iterate's pair joins the filter. */
LG_OFTEN

static int acceptable(const lg_filter *f, const lg_settings *o, double theta_, double phi_)
{
  for (int64_t i = 0; i < f->count; i++)
    if (!(theta_ < (1 - o->filter_theta) * f->theta[i]
          || phi_ < f->phi[i] - o->armijo * f->theta[i]))
      return 0;
  return 1;
}

static void augment(lg_filter *f, double theta_, double phi_)
{
  int64_t count = 0;
  for (int64_t i = 0; i < f->count; i++)
    if (!(f->theta[i] >= theta_ && f->phi[i] >= phi_))
      f->theta[count] = f->theta[i], f->phi[count] = f->phi[i], count++;
  if (count == LG_MOST_FILTER) count = 0; /* never seen; a filter that is cleared is a valid one */
  f->theta[count] = theta_, f->phi[count] = phi_, f->count = count + 1;
}

static void begin_filter(lg_filter *f, const lg_settings *o, double theta_)
{
  f->count = 0;
  f->most = o->theta_most * larger(1, theta_), f->least = o->theta_least * larger(1, theta_);
}

/* Violations of the iterate, at which a filter begins. */
static void open_filter(const lg_model *m, const lg_task *q, lg_state *s, const lg_settings *o)
{
  misses(m, q, s, &s->now, s->rows, s->rho, s->missed);
  begin_filter(&s->mem->filter, o, theta(m, q, s));
  s->stepped = s->tried = 0;
}

/* Violation and barrier function of the trial. */
static void weigh(const lg_model *m, const lg_task *q, lg_state *s, double f)
{
  misses(m, q, s, &s->trial, s->t_rows, s->t_rho, s->t_missed);
  s->t_theta = theta_of(m, q, s, s->t_gap, s->t_rho, s->t_missed);
  s->t_phi = phi(m, q, s, &s->trial, s->t_below, s->t_above, f);
}

/* What rounding may change of the barrier function. */
LG_INLINE double rounding_of(double phi_) { return LG_ROUNDINGS * DBL_EPSILON * fabs(phi_); }

/* Whether the filter takes the trial that a step of length alpha leads to, which has been weighed. */
static int judge(lg_state *s, const lg_settings *o, double alpha, const double ref[3])
{
  lg_filter *filter = &s->mem->filter;
  const double th = ref[0], ph = ref[1], along = ref[2], fuzz = rounding_of(ph);
  const double t = s->t_theta, p = s->t_phi;
  if (!isfinite(t) || !isfinite(p)) return 0;
  /* what it gains, as a share of what the quadratic model says */
  s->gain = (p - ph) / (alpha * (1 - alpha / 2) * along);
  if (t > filter->most || !acceptable(filter, o, t, p - fuzz)) return 0;
  const int descends = along < 0 && alpha * pow(-along, o->switch_phi) > th;
  if (th <= filter->least && descends) return p - ph - fuzz <= o->armijo * alpha * along;
  if (!(t <= (1 - o->filter_theta) * th || p - fuzz <= ph - o->armijo * th)) return 0;
  augment(filter, th, ph);
  return 1;
}

LG_SELDOM
