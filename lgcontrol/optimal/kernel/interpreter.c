/* An interpreter of CasADi's scalar instructions, eight items at once: functions of a problem
 * without a compiler for them.
 *
 * `LG_OP_...` are CasADi's numbers of operations, which `_interpreter.py` writes before this text. */
typedef struct {
  int32_t op, to, a, b; /* operation, where its result goes, operands */
} lg_instruction;

typedef struct {
  const lg_instruction *code; /* ends with LG_OP_END */
  const double *constants;
  const int64_t *in_steps, *out_steps; /* numbers from item to item, 0 where items share them */
} lg_program;

enum { LG_LANES = 8 };
typedef double lg_lanes __attribute__((vector_size(8 * LG_LANES), may_alias));
typedef int64_t lg_masks __attribute__((vector_size(8 * LG_LANES), may_alias));

#define LG_MASK(m) ((lg_lanes)((lg_masks)(m) & (lg_masks)one))
#define LG_EACH(value) \
  for (int i = 0; i < count; i++) { \
    const double x = w[c->a][i], y = w[c->b][i]; \
    (void)x, (void)y; \
    w[c->to][i] = value; \
  } \
  break

/* An entry of the kernel's table of functions, whose `own` is a program; scratch holds its values. */
LG_EXPORT void lg_interpret(const void *own, int64_t items, const double *const *in,
                            double *const *out, double *scratch)
{
  const lg_program *const p = own;
  lg_lanes *const w = (lg_lanes *)(void *)scratch;
  const lg_lanes one = {1, 1, 1, 1, 1, 1, 1, 1}, zero = {0};
  for (int64_t at = 0; at < items; at += LG_LANES) {
    const int count = items - at < LG_LANES ? (int)(items - at) : LG_LANES;
    for (const lg_instruction *c = p->code; c->op != LG_OP_END; c++) {
      switch (c->op) {
        case LG_OP_ASSIGN: w[c->to] = w[c->a]; break;
        case LG_OP_ADD: w[c->to] = w[c->a] + w[c->b]; break;
        case LG_OP_SUB: w[c->to] = w[c->a] - w[c->b]; break;
        case LG_OP_MUL: w[c->to] = w[c->a] * w[c->b]; break;
        case LG_OP_DIV: w[c->to] = w[c->a] / w[c->b]; break;
        case LG_OP_NEG: w[c->to] = -w[c->a]; break;
        case LG_OP_SQ: w[c->to] = w[c->a] * w[c->a]; break;
        case LG_OP_TWICE: w[c->to] = w[c->a] + w[c->a]; break;
        case LG_OP_INV: w[c->to] = one / w[c->a]; break;
        case LG_OP_LT: w[c->to] = LG_MASK(w[c->a] < w[c->b]); break;
        case LG_OP_LE: w[c->to] = LG_MASK(w[c->a] <= w[c->b]); break;
        case LG_OP_EQ: w[c->to] = LG_MASK(w[c->a] == w[c->b]); break;
        case LG_OP_NE: w[c->to] = LG_MASK(w[c->a] != w[c->b]); break;
        case LG_OP_NOT: w[c->to] = LG_MASK(w[c->a] == zero); break;
        case LG_OP_AND: w[c->to] = LG_MASK((w[c->a] != zero) & (w[c->b] != zero)); break;
        case LG_OP_OR: w[c->to] = LG_MASK((w[c->a] != zero) | (w[c->b] != zero)); break;
        case LG_OP_IF_ELSE_ZERO:
          w[c->to] = (lg_lanes)((lg_masks)(w[c->a] != zero) & (lg_masks)w[c->b]);
          break;
        case LG_OP_FMIN: LG_EACH(fmin(x, y));
        case LG_OP_FMAX: LG_EACH(fmax(x, y));
        case LG_OP_FABS: LG_EACH(fabs(x));
        case LG_OP_SIGN: LG_EACH(x < 0 ? -1 : x > 0 ? 1 : x);
        case LG_OP_SQRT: LG_EACH(sqrt(x));
        case LG_OP_FLOOR: LG_EACH(floor(x));
        case LG_OP_CEIL: LG_EACH(ceil(x));
        case LG_OP_SIN: LG_EACH(sin(x));
        case LG_OP_COS: LG_EACH(cos(x));
        case LG_OP_TAN: LG_EACH(tan(x));
        case LG_OP_ASIN: LG_EACH(asin(x));
        case LG_OP_ACOS: LG_EACH(acos(x));
        case LG_OP_ATAN: LG_EACH(atan(x));
        case LG_OP_SINH: LG_EACH(sinh(x));
        case LG_OP_COSH: LG_EACH(cosh(x));
        case LG_OP_TANH: LG_EACH(tanh(x));
        case LG_OP_ASINH: LG_EACH(asinh(x));
        case LG_OP_ACOSH: LG_EACH(acosh(x));
        case LG_OP_ATANH: LG_EACH(atanh(x));
        case LG_OP_EXP: LG_EACH(exp(x));
        case LG_OP_LOG: LG_EACH(log(x));
        case LG_OP_EXPM1: LG_EACH(expm1(x));
        case LG_OP_LOG1P: LG_EACH(log1p(x));
        case LG_OP_ERF: LG_EACH(erf(x));
        case LG_OP_POW:
        case LG_OP_CONSTPOW: LG_EACH(pow(x, y));
        case LG_OP_ATAN2: LG_EACH(atan2(x, y));
        case LG_OP_HYPOT: LG_EACH(hypot(x, y));
        case LG_OP_FMOD: LG_EACH(fmod(x, y));
        case LG_OP_REMAINDER: LG_EACH(remainder(x, y));
        case LG_OP_COPYSIGN: LG_EACH(copysign(x, y));
        case LG_OP_CONST: w[c->to] = zero + p->constants[c->a]; break;
        case LG_OP_INPUT: {
          const double *from = in[c->a] + c->b;
          const int64_t step = p->in_steps[c->a];
          for (int i = 0; i < LG_LANES; i++) /* lanes beyond the last item repeat it */
            w[c->to][i] = from[(at + (i < count ? i : count - 1)) * step];
          break;
        }
        case LG_OP_OUTPUT: {
          double *to = out[c->a] + c->b;
          const int64_t step = p->out_steps[c->a];
          for (int i = 0; i < count; i++) to[(at + i) * step] = w[c->to][i];
          break;
        }
      }
    }
  }
}
