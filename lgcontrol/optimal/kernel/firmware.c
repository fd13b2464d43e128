/* An exported controller: what `MPC` does, call by call. The header before this text declares lg_mpc,
 * whose memory holds all there is; `attach` makes the kernel's structs of it. */

/* x as an element of the state's group; 0 if it is none. */
static int element(const double *x, double *state, double *scratch)
{
  double given[LG_MPC_NX] = {0};
  int is_off = 0;
  if (!all_finite(x, LG_MPC_NS)) return 0;
  copy(given, x, LG_MPC_NS);
  lg_element(given, state, scratch);
  for (int i = 0; i < LG_MPC_NS; i++) {
    const double off = fabs(state[i] - x[i]);
    if (!(off <= LG_ELEMENT_TOLERANCE)) return 0;
    is_off |= off > LG_ELEMENT_ROUNDING;
  }
  if (!is_off) copy(state, x, LG_MPC_NS);
  return 1;
}

/* Limits between the widest ones, tightened for the parameters there are; returns by what they
 * contradict each other: both are the value between them then, or the one next to it that the system
 * allows. */
static double agreed(const double *least, const double *most, double *low, double *high)
{
  double off = 0;
  for (int i = 0; i < LG_MPC_NU; i++) {
    if (!(low[i] > high[i])) continue;
    const double between = clip((low[i] + high[i]) / 2, least[i], most[i]);
    if (low[i] - high[i] > LG_ROUNDING * larger(1, larger(fabs(low[i]), fabs(high[i]))))
      off = larger(off, larger(low[i] - between, between - high[i]));
    low[i] = high[i] = between;
  }
  return off;
}

/* Limits of the controls for the parameters there are, and those of the answers; returns by what they
 * contradict each other. Those of the kernel are a little apart. */
static double limit(lg_mpc *m)
{
  double *const low = m->lower, *const high = m->upper;
  copy(low, lg_lower, LG_MPC_NU), copy(high, lg_upper, LG_MPC_NU);
  copy(m->exact_lower, lg_widest_lower, LG_MPC_NU), copy(m->exact_upper, lg_widest_upper, LG_MPC_NU);
  tighten(m, low, high);
  tighten_answer(m, m->exact_lower, m->exact_upper);
  agreed(lg_widest_lower, lg_widest_upper, m->exact_lower, m->exact_upper);
  const double off = agreed(lg_lower, lg_upper, low, high);
  for (int i = 0; i < LG_MPC_NU; i++) {
    const double middle = (low[i] + high[i]) / 2;
    const double need = LG_LEAST_WIDTH * larger(1, fabs(middle)) / 2;
    if (high[i] - low[i] < 2 * need) low[i] = middle - need, high[i] = middle + need;
  }
  return off;
}

static int held(lg_mpc *m, const lg_task *q, lg_loop *c, double u[])
{
  c->u = u;
  m->status = hold(&lg_problem, q, c);
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
  if (!(fabs(t) * DBL_EPSILON < LG_CLOCK_ROUNDING * LG_MPC_PERIOD)
      || !element(x, state, m->work))
    return held(m, &q, &c, u);
  c.x = state, c.now = t, c.u = u;
  if (is_anew) m->state[LG_PLANNED] = 0;
  lg_loop_call(&lg_problem, &q, &lg_given, &c);
  m->status = (int)c.status, m->iterations = (int)c.iterations;
  m->cost = c.cost, m->violation = larger(c.violation, contradiction), m->defect = c.defect;
  if (contradiction > 0 && m->status == LG_OK) m->status = LG_EXCEEDED;
  return m->status;
}

/* An array of a negative size, at which compilers stop, where the memory is too small for a solve. */
typedef char lg_memory_fits[sizeof(lg_memory) <= sizeof(((lg_mpc *)0)->memory) ? 1 : -1];

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
    const int64_t own = lg_problem.blocks ? LG_MPC_NI - 2 * LG_MPC_NU - 2 : LG_MPC_NI;
    copy(m->x_ref[k], x_ref, LG_MPC_NX);
    copy(m->u_ref[k], u_ref, own);
    if (own < LG_MPC_NI) /* steps and blocks stay: the inputs that a step wants follow them */
      copy(m->u_ref[k] + LG_MPC_NI - LG_MPC_NU, u_ref + LG_MPC_NI - LG_MPC_NU, LG_MPC_NU);
  }
}

int lg_mpc_solve(lg_mpc *m, double t, const double x[LG_MPC_NS], double u[LG_MPC_NU])
{
  return called(m, t, x, u, 1);
}

int lg_mpc_step(lg_mpc *m, double t, const double x[LG_MPC_NS], double u[LG_MPC_NU])
{
  return called(m, t, x, u, 0);
}
