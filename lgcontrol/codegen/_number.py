"""Preludes of generated C: what the number type V and the lg_ operations on it are."""

from __future__ import annotations

import ctypes
from functools import cache

_FUNCTIONS_1 = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp log expm1 log1p erf".split()
)
_FUNCTIONS_2 = "pow atan2 hypot fmod remainder copysign".split()
_ROUNDING = ("sqrt", "floor", "ceil")

# The vector variants of glibc's libmvec: those here are stated to be within 4 ulp.
_LIBMVEC_1 = set(_FUNCTIONS_1)
_LIBMVEC_2 = {"pow", "atan2", "hypot"}
_LIBMVEC_PREFIX = {
    ("x86_64", 2): "_ZGVbN2",
    ("x86_64", 4): "_ZGVdN4",
    ("x86_64", 8): "_ZGVeN8",
    ("aarch64", 2): "_ZGVnN2",
}

_SCALAR = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
typedef double V;
#define lg_const(x) (x)
#define lg_lt(a, b) ((double)((a) < (b)))
#define lg_le(a, b) ((double)((a) <= (b)))
#define lg_eq(a, b) ((double)((a) == (b)))
#define lg_ne(a, b) ((double)((a) != (b)))
#define lg_not(a) ((double)!(a))
#define lg_and(a, b) ((double)((a) && (b)))
#define lg_or(a, b) ((double)((a) || (b)))
#define lg_if(a, b) ((a) ? (b) : 0.0)
#define lg_any(a) ((a) != 0)
static inline V lg_fmin(V a, V b) { return a < b || b != b ? a : b; }
static inline V lg_fmax(V a, V b) { return a > b || b != b ? a : b; }
static inline V lg_sign(V a) { return a > 0 ? 1.0 : a < 0 ? -1.0 : a; }
#define lg_fabs fabs
"""

_VECTOR = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#define W {width}
typedef double V __attribute__((vector_size({bytes})));
typedef int64_t M __attribute__((vector_size({bytes})));
static const V lg_one = {{{ones}}};
#define lg_const(x) ((V){{{constants}}})
static inline V lg_truth(M m) {{ return (V)((M)lg_one & m); }}
static inline V lg_select(M m, V a, V b) {{ return (V)(((M)a & m) | ((M)b & ~m)); }}
static inline V lg_lt(V a, V b) {{ return lg_truth((M)(a < b)); }}
static inline V lg_le(V a, V b) {{ return lg_truth((M)(a <= b)); }}
static inline V lg_eq(V a, V b) {{ return lg_truth((M)(a == b)); }}
static inline V lg_ne(V a, V b) {{ return lg_truth((M)(a != b)); }}
static inline V lg_not(V a) {{ return lg_truth((M)(a == 0.0)); }}
static inline V lg_and(V a, V b) {{ return lg_truth((M)(a != 0.0) & (M)(b != 0.0)); }}
static inline V lg_or(V a, V b) {{ return lg_truth((M)(a != 0.0) | (M)(b != 0.0)); }}
static inline V lg_if(V a, V b) {{ return (V)((M)b & (M)(a != 0.0)); }}
static inline int lg_any(V a) {{
#if defined(__AVX__) && W == 4
  typedef long long L __attribute__((vector_size(32)));
  return !__builtin_ia32_ptestz256((L)a, (L)a);
#else
  int64_t any = 0;
  for (int i = 0; i < W; i++) any |= ((M)a)[i];
  return any != 0;
#endif
}}
static inline V lg_fmin(V a, V b) {{ return lg_select((M)(a < b) | (M)(b != b), a, b); }}
static inline V lg_fmax(V a, V b) {{ return lg_select((M)(a > b) | (M)(b != b), a, b); }}
static inline V lg_fabs(V a) {{ return (V)((M)a & INT64_MAX); }}
static inline V lg_sign(V a) {{
  return lg_select((M)(a == 0.0) | (M)(a != a), a, lg_select((M)(a > 0.0), lg_one, -lg_one));
}}
"""


def scalar_prelude() -> str:
    """Operations on double."""
    names = (*_FUNCTIONS_1, *_FUNCTIONS_2, *_ROUNDING)
    return _SCALAR + "".join(f"#define lg_{name} {name}\n" for name in names)


def vector_prelude(width: int, machine: str, body: str) -> str:
    """Operations on vectors of doubles, for the GNU C vector extensions.

    Parameters
    ----------
    width : int
        Doubles in a vector.
    machine : str
        ``"x86_64"``, ``"aarch64"`` or another, which has no library of vector functions.
    body : str
        The code that follows: only functions that it calls are defined.
    """
    text = _VECTOR.format(
        width=width,
        bytes=8 * width,
        ones=", ".join(["1.0"] * width),
        constants=", ".join(["x"] * width),
    )
    for name in (*_FUNCTIONS_1, *_FUNCTIONS_2, *_ROUNDING):
        if f"lg_{name}(" in body:
            two = name in _FUNCTIONS_2
            text += _vector_function(name, two, width, machine)
    return text


def _vector_function(name: str, two: bool, width: int, machine: str) -> str:
    symbol = f"{_LIBMVEC_PREFIX.get((machine, width), '')}v{'v' if two else ''}_{name}"
    if name in (_LIBMVEC_2 if two else _LIBMVEC_1) and _has_libmvec(symbol):
        parameters = "V, V" if two else "V"
        return f"extern V {symbol}({parameters});\n#define lg_{name} {symbol}\n"
    parameters, arguments = ("V a, V b", "a[i], b[i]") if two else ("V a", "a[i]")
    return (
        f"static inline V lg_{name}({parameters})\n"
        f"{{ V r; for (int i = 0; i < W; i++) r[i] = {name}({arguments}); return r; }}\n"
    )


@cache
def _has_libmvec(symbol: str) -> bool:
    """Whether glibc on this machine offers a vector function (which ones depends on its age)."""
    try:
        return hasattr(ctypes.CDLL("libmvec.so.1"), symbol)
    except OSError:
        return False
