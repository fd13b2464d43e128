/* An exported controller: what `MPC` does, call by call. The header before this text declares lg_mpc,
 * whose memory holds all there is; `attach` makes the kernel's structs of it. */

/* x as an element of the state's group; 0 if it is none. */
static int element(const double *x, double *state, double *scratch)
{
  int is_off = 0;
  if (!all_finite(x, LG_MPC_NX)) return 0;
  lg_element(x, state, scratch);
  for (int i = 0; i < LG_MPC_NX; i++) {
    const double off = fabs(state[i] - x[i]);
    if (!(off <= LG_ELEMENT_TOLERANCE)) return 0;
    is_off |= off > LG_ELEMENT_ROUNDING;
  }
  if (!is_off) copy(state, x, LG_MPC_NX);
  return 1;
}

/* Limits of the controls for the parameters there are; returns by what they contradict each other:
 * both are the value between them then, or the one next to it that the system allows. Those of the
 * kernel are a little apart. */
static double limit(lg_mpc *m)
{
  double most = 0;
  double *const low = m->exact_lower, *const high = m->exact_upper;
  for (int i = 0; i < LG_MPC_NU; i++) low[i] = lg_lower[i], high[i] = lg_upper[i];
  tighten(m, low, high);
  for (int i = 0; i < LG_MPC_NU; i++) {
    m->lower[i] = low[i], m->upper[i] = high[i];
    if (low[i] > high[i]) {
      const double between = clip((low[i] + high[i]) / 2, lg_lower[i], lg_upper[i]);
      if (low[i] - high[i] > LG_ROUNDING * larger(1, larger(fabs(low[i]), fabs(high[i]))))
        most = larger(most, larger(low[i] - between, between - high[i]));
      m->lower[i] = m->upper[i] = low[i] = high[i] = between;
    }
    const double middle = (low[i] + high[i]) / 2;
    const double need = LG_LEAST_WIDTH * larger(1, fabs(middle)) / 2;
    if (high[i] - low[i] < 2 * need) m->lower[i] = middle - need, m->upper[i] = middle + need;
  }
  return most;
}

static int held(lg_mpc *m, const lg_task *q, lg_loop *c, double u[])
{
  c->u = u;
  m->status = hold(&lg_problem, q, c);
  for (int i = 0; i < LG_MPC_NU && !LG_HOLDS; i++)
    u[i] = clip(lg_nominal[lg_controls[i]], m->exact_lower[i], m->exact_upper[i]);
  return m->status;
}

/* The answer to a state, by a plan that goes on from the last one, or is made anew. */
static int called(lg_mpc *m, double t, const double x[], double u[], int is_anew)
{
  double state[LG_MPC_NX];
  lg_task q;
  lg_loop c;
  const double contradiction = limit(m);
  attach(m, &q, &c);
  soft_weights(m, m->weight);
  if (!(fabs(t) * 2.220446049250313e-16 < LG_CLOCK_ROUNDING * LG_MPC_PERIOD)
      || !element(x, state, m->work))
    return held(m, &q, &c, u);
  c.x = state, c.now = t, c.u = u;
  if (is_anew) m->state[LG_PLANNED] = 0;
  lg_loop_call(&lg_problem, &q, &lg_given, &c);
  m->status = (int)c.status, m->iterations = (int)c.iterations;
  m->cost = c.cost, m->violation = larger(c.violation, contradiction);
  if (contradiction > 0 && m->status == LG_OK) m->status = LG_EXCEEDED;
  return m->status;
}

int lg_mpc_init(lg_mpc *m)
{
  int64_t sizes[8];
  memset(m, 0, sizeof *m);
  memcpy(m->x_ref, lg_x_ref, sizeof m->x_ref);
  memcpy(m->u_ref, lg_u_ref, sizeof m->u_ref);
  memcpy(m->P, lg_P, sizeof m->P);
  memcpy(m->arrival, lg_arrival_weight, sizeof m->arrival);
  memcpy(m->p, lg_p, sizeof m->p);
  lg_newton_sizes(&lg_problem, LG_MPC_N, sizes);
  return sizes[0] <= LG_MPC_WORK ? LG_OK : LG_UNSOLVED;
}

void lg_mpc_reset(lg_mpc *m) { memset(m->state, 0, sizeof m->state); }

void lg_mpc_hold(lg_mpc *m, const double x_ref[LG_MPC_NX], const double u_ref[LG_MPC_NI])
{
  for (int k = 0; k <= LG_MPC_N; k++) {
    copy(m->x_ref[k], x_ref, LG_MPC_NX);
    copy(m->u_ref[k], u_ref, LG_MPC_NI);
  }
}

int lg_mpc_solve(lg_mpc *m, double t, const double x[LG_MPC_NX], double u[LG_MPC_NU])
{
  return called(m, t, x, u, 1);
}

int lg_mpc_step(lg_mpc *m, double t, const double x[LG_MPC_NX], double u[LG_MPC_NU])
{
  return called(m, t, x, u, 0);
}
