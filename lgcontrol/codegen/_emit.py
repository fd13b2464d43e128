"""C statements of an SX function, written for any number type: double or a vector of doubles."""

from __future__ import annotations

import math

import casadi as ca

# One C expression per operation; the number type's prelude (`_number.py`) defines the lg_ names.
_EXPRESSIONS: dict[int, str] = {
    ca.OP_ASSIGN: "{0}",
    ca.OP_ADD: "{0}+{1}",
    ca.OP_SUB: "{0}-{1}",
    ca.OP_MUL: "{0}*{1}",
    ca.OP_DIV: "{0}/{1}",
    ca.OP_NEG: "-{0}",
    ca.OP_SQ: "{0}*{0}",
    ca.OP_TWICE: "{0}+{0}",
    ca.OP_INV: "1.0/{0}",
    ca.OP_LT: "lg_lt({0},{1})",
    ca.OP_LE: "lg_le({0},{1})",
    ca.OP_EQ: "lg_eq({0},{1})",
    ca.OP_NE: "lg_ne({0},{1})",
    ca.OP_NOT: "lg_not({0})",
    ca.OP_AND: "lg_and({0},{1})",
    ca.OP_OR: "lg_or({0},{1})",
    ca.OP_IF_ELSE_ZERO: "lg_if({0},{1})",
    ca.OP_FMIN: "lg_fmin({0},{1})",
    ca.OP_FMAX: "lg_fmax({0},{1})",
    ca.OP_FABS: "lg_fabs({0})",
    ca.OP_SIGN: "lg_sign({0})",
    ca.OP_SQRT: "lg_sqrt({0})",
    ca.OP_FLOOR: "lg_floor({0})",
    ca.OP_CEIL: "lg_ceil({0})",
    ca.OP_SIN: "lg_sin({0})",
    ca.OP_COS: "lg_cos({0})",
    ca.OP_TAN: "lg_tan({0})",
    ca.OP_ASIN: "lg_asin({0})",
    ca.OP_ACOS: "lg_acos({0})",
    ca.OP_ATAN: "lg_atan({0})",
    ca.OP_SINH: "lg_sinh({0})",
    ca.OP_COSH: "lg_cosh({0})",
    ca.OP_TANH: "lg_tanh({0})",
    ca.OP_ASINH: "lg_asinh({0})",
    ca.OP_ACOSH: "lg_acosh({0})",
    ca.OP_ATANH: "lg_atanh({0})",
    ca.OP_EXP: "lg_exp({0})",
    ca.OP_LOG: "lg_log({0})",
    ca.OP_EXPM1: "lg_expm1({0})",
    ca.OP_LOG1P: "lg_log1p({0})",
    ca.OP_ERF: "lg_erf({0})",
    ca.OP_POW: "lg_pow({0},{1})",
    ca.OP_CONSTPOW: "lg_pow({0},{1})",
    ca.OP_ATAN2: "lg_atan2({0},{1})",
    ca.OP_HYPOT: "lg_hypot({0},{1})",
    ca.OP_FMOD: "lg_fmod({0},{1})",
    ca.OP_REMAINDER: "lg_remainder({0},{1})",
    ca.OP_COPYSIGN: "lg_copysign({0},{1})",
}

_NAMES_A_LINE = 16


def emit_body(function: ca.Function, name: str) -> str | None:
    """C function of number type V that evaluates an SX function.

    Parameters
    ----------
    function : casadi.Function
        A function of dense arguments and results.
    name : str
        Name of the C function; its parameters are pointers to arguments, then results.

    Returns
    -------
    str or None
        None when the function is no SX function or holds an operation without C equivalent here.
    """
    if not function.is_a("SXFunction") or function.has_free():
        return None
    lines: list[str] = []
    slots = 0
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        target, source = function.instruction_output(k), function.instruction_input(k)
        if operation == ca.OP_OUTPUT:
            lines.append(f"r{target[0]}[{target[1]}]=w{source[0]};")
            continue
        if operation == ca.OP_INPUT:
            value = f"a{source[0]}[{source[1]}]"
        elif operation == ca.OP_CONST:
            value = f"lg_const({_literal(function.instruction_constant(k))})"
        elif operation in _EXPRESSIONS:
            value = _EXPRESSIONS[operation].format(*(f"w{i}" for i in source))
        else:
            return None
        slots = max(slots, target[0] + 1)
        lines.append(f"w{target[0]}={value};")
    work = [f"w{i}" for i in range(slots)]
    declared = [
        f"V {','.join(work[i : i + _NAMES_A_LINE])};" for i in range(0, slots, _NAMES_A_LINE)
    ]
    parameters = [f"const V *restrict a{i}" for i in range(function.n_in())]
    parameters += [f"V *restrict r{i}" for i in range(function.n_out())]
    head = f"static void {name}({', '.join(parameters)})\n{{\n"
    return head + "\n".join(declared + lines) + "\n}\n"


def _literal(value: float) -> str:
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    return repr(float(value))
