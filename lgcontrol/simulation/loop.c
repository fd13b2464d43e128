/* A closed loop from one event to the next, on a clock of whole ticks. Whatever only Python knows is
 * asked for: the loop returns what it needs, and goes on from there when it is called again. */
#include <math.h>
#include <string.h>
#include <time.h>
#define LG_EXPORT extern __attribute__((visibility("default")))

enum { TICK, MEASURE, MEASURED, DELIVER, COMMAND, ANSWERED, EFFECT, PUSH, SWITCHED, KEEP, KEPT, MOVE,
       MOVING, MOVED, PREDICTED };
enum { SOME_STEPS = 256, REFUSED = 5, FINISHED = -1 };

static double wall(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }
static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

static void copy(double *to, const double *from, int64_t count)
{
  memcpy(to, from, (size_t)count * sizeof(double));
}

static int all_finite(const double *x, int64_t count)
{
  for (int64_t i = 0; i < count; i++)
    if (!isfinite(x[i])) return 0;
  return 1;
}

static double largest(const double *x, int64_t count)
{
  double most = 0;
  for (int64_t i = 0; i < count; i++) most = larger(most, fabs(x[i]));
  return most;
}

static double seconds_of(const lg_loop *r, int64_t ticks)
{
  return (double)ticks * r->numerator / r->denominator;
}

static int is_due(int64_t period, int64_t offset, int64_t now)
{
  return now >= offset && (now - offset) % period == 0;
}

static int64_t due_after(int64_t period, int64_t offset, int64_t now)
{
  int64_t gone = (now - offset) % period;
  if (gone < 0) gone += period;
  const int64_t next = now + period - gone;
  return offset > next ? offset : next;
}

static int evaluate(const lg_code *code) { return code->run(code->table); }

/* Ask Python, and go on with a part of a phase. */
static int ask(lg_loop *r, int what, int phase, int64_t part)
{
  r->phase = phase, r->part = part;
  return what;
}

/* -- motion of the plant ------------------------------------------------------------------------ */

static void took(lg_loop *r, double dt, int64_t count)
{
  r->shortest_taken = smaller(r->shortest_taken, dt);
  r->longest_taken = larger(r->longest_taken, dt);
  r->taken += count;
}

static int is_lost(const lg_loop *r) { return !all_finite(r->x, r->nq) || largest(r->x, r->nq) > 1e12; }

static void begin_interval(lg_loop *r)
{
  r->done = 0, r->count = 0;
  if (!r->adaptive) {
    const double count = ceil(r->seconds / r->longest_step * (1 - 1e-12));
    r->most = larger(1, count), r->step_dt = r->seconds / r->most, r->missed_t = NAN;
    return;
  }
  const double far = larger(fabs(r->t), fabs(r->t + r->seconds));
  r->least = 10 * (nextafter(far, INFINITY) - far);
  r->most = 100000 * larger(1, r->seconds / 0.01);
  const double size = largest(r->x, r->nq);
  r->start = smaller(r->start, larger(1, size));
}

/* Equal steps; stops every now and then, and where the state or the residual is none. */
static int go_equal(lg_loop *r, double until)
{
  while ((double)r->count < r->most) {
    const double dt = r->step_dt;
    r->step_t = r->t + dt * (double)r->count;
    if (evaluate(&r->step)) return ASK_FAILED;
    copy(r->x, r->stepped, r->nq);
    if (r->solves && isnan(r->missed_t) && !(*r->error <= 1))
      r->missed_t = r->step_t, r->missed = *r->error;
    r->count++;
    if (r->count % SOME_STEPS == 0 || (double)r->count == r->most) {
      if (is_lost(r)) return ASK_TROUBLE;
      if (!isnan(r->missed_t)) return ASK_MISSED;
      if ((double)r->count < r->most && wall() > until) return ASK_PAUSE;
    }
  }
  took(r, r->step_dt, r->count);
  return FINISHED;
}

/* Whether no decay about a state can be fast enough for the stiff method: none is faster than the
 * largest sum of a row; see `Adaptive.look`. Returns -1 where that cannot be told. */
static int is_slow(lg_loop *r)
{
  double most = 0;
  r->step_t = r->t + r->done;
  if (evaluate(&r->decay)) return -1;
  if (!all_finite(r->decays, r->dim * r->dim)) return 1;
  for (int64_t i = 0; i < r->dim; i++) {
    double sum = 0;
    for (int64_t j = 0; j < r->dim; j++) sum += fabs(r->decays[i + j * r->dim]);
    most = larger(most, sum);
  }
  return 0.6 * r->h * most <= 1.0 || r->seconds * most <= 15.0;
}

/* Steps as long as the tolerance lets them be; see `Adaptive` and `StepControl`. */
static int go_adaptive(lg_loop *r, double until)
{
  const int64_t since = r->count;
  while (r->done < r->seconds) {
    if (r->taken >= r->look_at && r->seconds > 2 * r->h) {
      if (!r->looks || is_slow(r) != 1) return ASK_LOOK;
      r->look_at = r->taken + r->patience;
    }
    if (r->count - since >= 4 * SOME_STEPS && wall() > until) return ASK_PAUSE;
    const double rest = r->seconds - r->done;
    const double parts = ceil(rest / r->h * (1 - 1e-9));
    const double dt = rest / parts;
    r->step_t = r->t + r->done, r->step_dt = dt;
    if (evaluate(&r->step)) return ASK_FAILED;
    const double ratio = *r->error / r->allowed;
    if (ratio <= 1.0) {
      copy(r->x, r->stepped, r->nq);
      r->done = parts == 1 ? r->seconds : r->done + dt;
      r->count++;
      took(r, dt, 1);
      double factor = 0.9 * pow(larger(ratio, 1e-12), -0.7 / r->order);
      factor *= pow(r->before, 0.4 / r->order);
      r->before = larger(ratio, 1e-4);
      factor = smaller(10.0, larger(0.2, factor));
      r->h = smaller(factor < 1.0 ? dt * factor : larger(r->h, dt * factor), r->longest_step);
    } else {
      r->rejected++;
      r->look_at = earlier(r->look_at, r->taken + 1);
      r->before = 1.0;
      double factor = 0.2;
      if (isfinite(ratio) && ratio > 1.0) factor = larger(0.2, 0.9 * pow(ratio, -1.0 / r->order));
      r->h = dt * factor;
    }
    if ((r->h < r->least && r->done < r->seconds) || (double)r->count > r->most) return ASK_GIVE_UP;
  }
  return is_lost(r) ? ASK_TROUBLE : FINISHED;
}

/* -- sensors ------------------------------------------------------------------------------------ */

/* A measurement on its way. */
static void send(lg_loop *r, lg_sensor *s)
{
  s->count++, s->losses += s->lost;
  if (s->lost) return;
  const int64_t at = (s->first + s->waiting++) % s->queue;
  s->ticks[at] = r->now + s->delay, s->order[at] = ++r->measurements, s->taken[at] = r->t;
  copy(s->ys + at * s->ny, s->y, s->ny);
}

static int measure(lg_loop *r)
{
  lg_sensor *const all = r->sensor;
  for (; r->part < r->sensors; r->part++) {
    lg_sensor *const s = all + r->part;
    if (!is_due(s->period, s->offset, r->now)) continue;
    r->asked = r->part;
    if (!s->here) return ask(r, ASK_MEASURE, MEASURED, r->part);
    if (s->next == s->stock) return ask(r, ASK_NOISE, MEASURE, r->part);
    copy(s->error, s->errors + s->next * s->dim, s->dim);
    s->lost = s->chances[s->next++] < s->dropout;
    if (!s->lost && evaluate(&s->read)) return ASK_FAILED;
    for (int64_t i = 0; i < s->ny && s->limited && !s->lost; i++)
      s->y[i] = smaller(larger(s->y[i], s->lower[i]), s->upper[i]);
    send(r, s);
  }
  return FINISHED;
}

static lg_sensor *next_arrival(const lg_loop *r)
{
  lg_sensor *const all = r->sensor, *found = 0;
  for (lg_sensor *s = all; s < all + r->sensors; s++)
    if (s->waiting
        && (!found || s->ticks[s->first] < found->ticks[found->first]
            || (s->ticks[s->first] == found->ticks[found->first]
                && s->order[s->first] < found->order[found->first])))
      found = s;
  return found;
}

/* Count a status; returns -1 for what is none, as no number is. */
static int64_t note(lg_loop *r, int64_t *counts, int64_t *firsts, double told)
{
  if (!(told >= 0 && told < (double)r->statuses)) return r->unknown = told, -1;
  const int64_t status = (int64_t)told;
  if (!counts[status]++) firsts[status] = ++r->order_of_statuses;
  return status;
}

/* Hand the measurements that have arrived to the estimator. */
static int deliver(lg_loop *r)
{
  lg_sensor *s;
  while ((s = next_arrival(r)) && s->ticks[s->first] <= r->now) {
    r->asked = s - (lg_sensor *)r->sensor;
    if (s->delivered == s->room) return ask(r, ASK_MORE, DELIVER, 0);
    const double *const y = s->ys + s->first * s->ny;
    s->delivered_t[s->delivered] = s->taken[s->first];
    copy(s->delivered_y + s->delivered++ * s->ny, y, s->ny);
    r->measured_at = s->taken[s->first];
    copy(r->measured, y, s->ny);
    copy(s->y_est, y, s->ny);
    s->first = (s->first + 1) % s->queue, s->waiting--;
    if (!r->estimator) continue;
    if (r->estimator == 2 || !s->updates) return ask(r, ASK_UPDATE, DELIVER, 0);
    if (!r->est_has_t) r->est_t = 0, r->est_has_t = 1; /* as `Filter.update` begins */
    if (evaluate(&s->correct)) return ASK_FAILED;
    const int64_t status = note(r, s->counts, s->firsts, s->said[s->says - 1]);
    if (status < 0) return ASK_UNKNOWN;
    copy(r->z, r->z_next, r->nz);
    if ((r->successes >> status) & 1) s->squares += s->said[s->says - 3], s->used++;
    r->last_sensor = r->asked;
  }
  return FINISHED;
}

/* -- the controller ----------------------------------------------------------------------------- */

static double number_at(const void *at, int64_t kind)
{
  return kind ? *(const double *)at : (double)*(const int64_t *)at;
}

/* Whether parts of a state are of unit length, as far as its group asks for that. */
static int is_element(const lg_loop *r, const double *x)
{
  if (!all_finite(x, r->nq)) return 0;
  for (int64_t k = 0; k < r->units; k++) {
    double square = 0;
    for (int64_t i = r->unit_from[k]; i < r->unit_to[k]; i++) square += x[i] * x[i];
    if (!(fabs(square - 1) <= r->odd)) return 0;
  }
  return 1;
}

/* A call; returns whether Python is to make it, which changes nothing before. */
static int call(lg_loop *r, const double *x)
{
  const double began = wall();
  if (r->law == 1) {
    if (!is_element(r, x)) return 1;
    copy(r->law_x, x, r->nq);
    r->law_t = r->t;
    for (int64_t k = 0; k < r->tables; k++) {
      const int64_t at = (r->calls - r->rows_from) * r->table_steps[k];
      copy(((double **)r->table_to)[k], ((double **)r->table_rows)[k] + at, r->table_sizes[k]);
    }
    if (evaluate(&r->feedback_law) || !all_finite(r->answer, r->nm)) return 1;
    r->status = 0;
    for (int64_t i = 0; i < r->nm && r->law_clips; i++) {
      const double u = smaller(larger(r->answer[i], r->law_lower[i]), r->law_upper[i]);
      if (u != r->answer[i]) r->status = 1;
      r->answer[i] = u;
    }
  } else {
    int (*const kernel)(void *, void *, void *, void *) =
      (int (*)(void *, void *, void *, void *))r->kernel;
    void *const *const a = r->kernel_arguments;
    copy(r->kernel_x, x, r->nq);
    *(double *)r->kernel_t = r->t;
    r->status = kernel(a[0], a[1], a[2], a[3]);
    if (r->status == r->kernel_odd) return 1;
    copy(r->answer, r->kernel_u, r->nm);
  }
  r->elapsed = wall() - began;
  return 0;
}

static int command(lg_loop *r)
{
  if (!r->staged || !is_due(r->period, r->offset, r->now)) return FINISHED;
  if (r->calls == r->call_room) return r->asked = -1, ask(r, ASK_MORE, COMMAND, 0);
  if (!r->law || !r->law_ready) return ask(r, ASK_CALL, ANSWERED, 0);
  if (r->law == 1 && r->calls >= r->rows_to) return ask(r, ASK_ROWS, COMMAND, 0);
  const double *const x = r->feedback == 0 ? r->x : r->feedback == 1 ? r->measured : r->estimate;
  if (call(r, x)) return ask(r, ASK_CALL, ANSWERED, 0);
  int is_ordinary = r->law == 1 || r->status == 0;
  for (int64_t k = 0; k < r->watched; k++)
    if (number_at(((void **)r->watch)[k], r->watch_kind[k]) != 0) is_ordinary = 0;
  r->call_here[r->calls] = 1;
  for (int64_t k = 0; k < r->told; k++)
    r->call_told[r->calls * (r->told + 1) + k] = number_at(((void **)r->tell)[k], r->tell_kind[k]);
  r->call_told[r->calls * (r->told + 1) + r->told] = (double)r->status;
  return is_ordinary ? FINISHED - 1 : ask(r, ASK_TOLD, ANSWERED, 0);
}

/* An answer on its way. */
static void answered(lg_loop *r)
{
  const int64_t at = (r->effect_first + r->effect_waiting++) % r->effects;
  r->effect_ticks[at] = r->now + r->delay;
  copy(r->effect_answers + at * r->nm, r->answer, r->nm);
  r->call_t[r->calls] = r->t;
  copy(r->call_answer + r->calls * r->nm, r->answer, r->nm);
  r->call_elapsed[r->calls] = r->elapsed;
  r->call_age[r->calls++] = r->t - r->measured_at;
}

/* A control that moves to the last answer, at a time; as `Ramp.controls`. */
static double ramped(const lg_loop *r, int64_t i, double t)
{
  const double share = smaller(larger((t - r->ramp_begin) / r->ramp_period, 0), 1);
  return r->ramp_from[i] + share * (r->ramp_to[i] - r->ramp_from[i]);
}

/* Inputs of the plant's steps in an interval, by those in its middle; as `Ramp.inputs`. */
static void spread(lg_loop *r)
{
  const double end = r->t + r->seconds, middle = r->t + r->seconds / 2;
  double *to = r->moving;
  for (int64_t i = 0; i < r->nm; i++) {
    const double push = r->u[r->controls[i]] - ramped(r, i, middle);
    to[i] = ramped(r, i, r->t) + push, to[r->nm + i] = ramped(r, i, end) + push;
  }
  to += 2 * r->nm;
  for (int64_t i = 0; i < r->others; i++) *to++ = r->u[r->other[i]];
  to[0] = r->t, to[1] = r->seconds;
}

static void take_effect(lg_loop *r)
{
  while (r->effect_waiting && r->effect_ticks[r->effect_first] <= r->now) {
    const double *const u = r->effect_answers + r->effect_first * r->nm;
    for (int64_t i = 0; i < r->nm; i++) {
      double v = u[i];
      if (r->saturates) v = smaller(larger(v, r->lower[i]), r->upper[i]);
      if (r->ramps) r->ramp_from[i] = ramped(r, i, r->t), r->ramp_to[i] = v;
      else r->known[r->controls[i]] = v;
    }
    r->ramp_begin = r->t;
    r->effect_first = (r->effect_first + 1) % r->effects, r->effect_waiting--;
  }
}

/* -- disturbances ------------------------------------------------------------------------------- */

static int push(lg_loop *r)
{
  lg_source *const all = r->source;
  for (; r->part < r->sources; r->part++) {
    lg_source *const s = all + r->part;
    if (!is_due(s->period, s->offset, r->now)) continue;
    r->asked = r->part;
    if (s->next == s->stock) return ask(r, ASK_DRAW, PUSH, r->part);
    copy(r->part_inputs + r->part * r->nu, s->rows + s->next++ * r->nu, r->nu);
  }
  if (r->next_switch == r->now) return ask(r, ASK_SWITCH, SWITCHED, 0);
  return FINISHED;
}

static void add_up(lg_loop *r)
{
  for (int64_t i = 0; i < r->nu && r->parts; i++) {
    double sum = r->part_inputs[i];
    for (int64_t k = 1; k < r->parts; k++) sum += r->part_inputs[k * r->nu + i];
    r->total[i] = sum;
  }
}

/* -- the loop ----------------------------------------------------------------------------------- */

static int64_t next_event(const lg_loop *r)
{
  int64_t after = r->end;
  const lg_source *const sources = r->source;
  const lg_sensor *const sensors = r->sensor;
  for (int64_t k = 0; k < r->sources; k++)
    after = earlier(after, due_after(sources[k].period, sources[k].offset, r->now));
  for (int64_t k = 0; k < r->sensors; k++) {
    const lg_sensor *const s = sensors + k;
    after = earlier(after, due_after(s->period, s->offset, r->now));
    if (s->waiting) after = earlier(after, s->ticks[s->first]);
  }
  after = earlier(after, earlier(r->next_kick, r->next_switch));
  if (r->staged) after = earlier(after, due_after(r->period, r->offset, r->now));
  if (r->effect_waiting) after = earlier(after, r->effect_ticks[r->effect_first]);
  if (r->record_period) after = earlier(after, due_after(r->record_period, 0, r->now));
  return after;
}

static int keep(lg_loop *r)
{
  if (r->rows == r->row_room) return r->asked = -2, ask(r, ASK_MORE, KEEP, 0);
  r->row_t[r->rows] = r->t;
  copy(r->row_x + r->rows * r->nq, r->x, r->nq);
  if (r->estimator == 1) copy(r->row_z + r->rows * r->nz, r->z, r->nz);
  r->rows++;
  return r->estimator == 2 ? ask(r, ASK_KEEP, KEPT, 0) : FINISHED;
}

static int predict(lg_loop *r)
{
  const double far = fabs(r->t), gap = fabs(r->t - r->est_t);
  const double same = larger(r->est_same, r->est_ulps * (nextafter(far, INFINITY) - far));
  if (r->estimator == 2 || (r->est_has_t && !(gap <= same))) return ask(r, ASK_PREDICT, PREDICTED, 0);
  r->est_t = r->t, r->est_has_t = 1, r->est_dt = r->seconds;
  copy(r->est_u, r->known, r->nu);
  if (evaluate(&r->predict)) return ASK_FAILED;
  const int64_t status = note(r, r->predicted, r->predicted_first, *r->est_said);
  if (status < 0) return ASK_UNKNOWN;
  r->est_usual = r->seconds;
  if (status != REFUSED) {
    copy(r->z, r->z_next, r->nz);
    r->est_t += r->seconds;
  }
  return FINISHED;
}

/* Go on; returns what is asked for. */
static int go(lg_loop *r, double until)
{
  int wanted;
  for (;;) switch (r->phase) {
    case TICK:
      r->t = seconds_of(r, r->now);
      if (r->next_kick == r->now) return r->asked = 0, ask(r, ASK_KICK, MEASURE, 0);
      r->part = 0; /* fall through */
    case MEASURE:
      r->phase = MEASURE;
      if ((wanted = measure(r)) >= 0) return wanted; /* fall through */
    case DELIVER:
      if ((wanted = deliver(r)) >= 0) return wanted;
      r->phase = r->now < r->end ? COMMAND : KEEP;
      break;
    case MEASURED:
      send(r, (lg_sensor *)r->sensor + r->part++);
      r->phase = MEASURE;
      break;
    case COMMAND:
      if ((wanted = command(r)) >= 0) return wanted;
      r->phase = wanted == FINISHED ? EFFECT : ANSWERED;
      break;
    case ANSWERED:
      answered(r); /* fall through */
    case EFFECT:
      if (r->staged) take_effect(r);
      r->part = 0; /* fall through */
    case PUSH:
      if ((wanted = push(r)) >= 0) return wanted; /* fall through */
    case SWITCHED:
      add_up(r); /* fall through */
    case KEEP:
      if ((wanted = keep(r)) >= 0) return wanted; /* fall through */
    case KEPT:
      if (r->now == r->end) return r->phase = KEPT, ASK_DONE;
      r->after = next_event(r), r->seconds = seconds_of(r, r->after - r->now);
      r->phase = MOVE;
      if (r->varies) return ask(r, ASK_PARAMETERS, MOVE, 0); /* fall through */
    case MOVE:
      for (int64_t i = 0; i < r->nm && r->ramps; i++)
        r->known[r->controls[i]] = ramped(r, i, r->t + r->seconds / 2);
      for (int64_t i = 0; i < r->nu; i++) r->u[i] = r->known[i] + r->total[i];
      copy(r->row_u + r->intervals++ * r->nu, r->u, r->nu);
      if (r->ramps) spread(r);
      begin_interval(r); /* fall through */
    case MOVING:
      r->phase = MOVING;
      wanted = r->adaptive ? go_adaptive(r, until) : go_equal(r, until);
      if (wanted >= 0) return wanted; /* fall through */
    case MOVED:
      r->phase = MOVED;
      if (r->estimator && (wanted = predict(r)) >= 0) return wanted; /* fall through */
    case PREDICTED:
      r->now = r->after, r->phase = TICK;
      if (r->estimator == 1 && !all_finite(r->z, r->est_nq)) return ASK_LOST;
      if (r->now >= r->pause || wall() > until) return ASK_PAUSE;
  }
}

/* Go on with loops one after the other; those that there is no time for stay where they are. */
LG_EXPORT void lg_loops_go(lg_loop *const *loops, int64_t *asked, int64_t count)
{
  const double began = wall();
  for (int64_t k = 0; k < count; k++) {
    const double until = began + loops[k]->budget;
    asked[k] = k && wall() > until ? ASK_PAUSE : go(loops[k], until);
  }
}

LG_EXPORT void lg_loop_sizes(int64_t *sizes)
{
  sizes[0] = sizeof(lg_source), sizes[1] = sizeof(lg_sensor), sizes[2] = sizeof(lg_loop);
}

/* A function that CasADi interprets; where its linear equations are singular there are no numbers,
 * as in compiled code. */
LG_EXPORT int lg_interpret_buffer(const int64_t *table)
{
  void (*const evaluate)(void *) = (void (*)(void *))(intptr_t)table[0];
  int (*const ended)(void *) = (int (*)(void *))(intptr_t)table[1];
  void *const buffer = (void *)(intptr_t)table[2];
  evaluate(buffer);
  if (!ended(buffer)) return 0;
  for (int64_t k = 0; k < table[3]; k++) {
    double *const result = (double *)(intptr_t)table[4 + 2 * k];
    for (int64_t i = 0; i < table[5 + 2 * k]; i++) result[i] = NAN;
  }
  return 0;
}
