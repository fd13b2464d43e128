"""Several functions as static C functions in one source, for algorithms in C around them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ._compiler import Compiler
from ._emit import Body, scalar_prelude, vector_prelude
from ._model_function import ModelFunction
from ._source import gather_code


@dataclass(frozen=True)
class Part:
    """A function of a unit.

    Arguments that are `shared` all items have in common: the C function has a first argument then,
    the number of items, which lie one after the other. With None it takes one item a call.
    """

    name: str
    function: ModelFunction
    shared: tuple[str, ...] | None = None


def unit_source(parts: Sequence[Part], compiler: Compiler | None) -> tuple[str, int]:
    """C source of all parts, and the numbers of work memory that each is to be handed.

    Every function takes pointers to its arguments, to its results, and to work memory aligned for
    vectors. Without a compiler the source is plain C99 for scalars. The compiler's vectors hold
    parts of several items. NotImplementedError if a function holds what there is no C code for.
    """
    width = 1 if compiler is None else compiler.width
    texts, vectors, scratch = [], [], 0
    helpers: dict[str, None] = {}
    for part in parts:
        packed = part.shared is not None and width > 1
        body = part.function.program.body(packed=packed, solves=True)
        if body is None:
            raise NotImplementedError(
                f"{part.function.name} is not made of scalar operations: it holds an interpolant, "
                "a solver, an operation on sparse matrices, or a call back into Python; write it "
                "with scalar operations of CasADi"
            )
        if packed:
            vectors.append((part, body))
        else:
            helpers |= dict.fromkeys(map(_as_double, body.helpers))
            texts.append(_scalar_part(part, body))
            scratch = max(scratch, body.work)
    source = "".join([_as_double(scalar_prelude()), *helpers, *texts])
    if vectors:
        assert compiler is not None
        helpers = dict.fromkeys(text for _, body in vectors for text in body.helpers)
        code = "".join([*helpers, *(_vector_part(part, body) for part, body in vectors)])
        source += vector_prelude(width, compiler.machine, code) + gather_code(width) + code
        scratch = max(
            scratch,
            *(
                width * (sum(part.function.program.sizes_in) + body.size + body.work)
                for part, body in vectors
            ),
        )
    return source, max(1, scratch)


def _as_double(text: str) -> str:
    """Scalar code with names of its own, so that vector code can stand beside it."""
    text = text.replace("typedef double V;\n", "")
    return re.sub(r"\bV\b", "double", re.sub(r"\blg_(?!body)", "ls_", text))


def _scalar_part(part: Part, body: Body) -> str:
    program = part.function.program
    own = f"{part.name}_body"
    text = _as_double(body.text).replace("lg_body", own)
    pointers = [f"const double *a{i}" for i in range(len(program.sizes_in))]
    pointers += [f"double *r{i}" for i in range(len(program.sizes_out))]
    if part.shared is None:
        given = [f"a{i}" for i in range(len(program.sizes_in))]
        given += [f"r{i}" for i in range(len(program.sizes_out))]
        head = f"static void {part.name}({', '.join([*pointers, 'double *m'])})\n"
        return f"{text}{head}{{\n  {own}({', '.join([*given, 'm'])});\n}}\n"
    given = [
        f"a{i}" if name in part.shared else f"a{i} + k * {size}"
        for i, (name, size) in enumerate(
            zip(part.function.arguments, program.sizes_in, strict=True)
        )
    ]
    given += [f"r{i} + k * {size}" for i, size in enumerate(program.sizes_out)]
    head = f"static void {part.name}({', '.join(['int64_t items', *pointers, 'double *m'])})\n"
    loop = "  for (int64_t k = 0; k < items; k++)\n"
    return f"{text}{head}{{\n{loop}    {own}({', '.join([*given, 'm'])});\n}}\n"


def _vector_part(part: Part, body: Body) -> str:
    program, own = part.function.program, f"{part.name}_body"
    text = body.text.replace("lg_body", own)
    sizes_in, sizes_out = program.sizes_in, program.sizes_out
    for i, slots in enumerate(body.slots):
        listed = ", ".join(map(str, slots or [0]))
        text += f"static const int32_t {part.name}_slot{i}[] = {{{listed}}};\n"
    pointers = [f"const double *a{i}" for i in range(len(sizes_in))]
    pointers += [f"double *o{i}" for i in range(len(sizes_out))]
    lines = ["  V *next = (V *)(void *)scratch;"]
    lines += [f"  V *v{i} = next; next += {size};" for i, size in enumerate(sizes_in)]
    lines.append(f"  V *r = next, *m = next + {body.size};")
    steps = [
        0 if name in (part.shared or ()) else size
        for name, size in zip(part.function.arguments, sizes_in, strict=True)
    ]
    lines += [
        "  for (int64_t k = 0; k < items; k += W) {",
        "    const int64_t lanes = items - k < W ? items - k : W;",
        "    int64_t at[W];",  # lanes beyond the last item repeat it
    ]
    for i, (size, step) in enumerate(zip(sizes_in, steps, strict=True)):
        condition = "" if step else "if (k == 0) "
        lines.append(
            f"    for (int i = 0; i < W; i++) at[i] = (k + (i < lanes ? i : lanes - 1)) * {step};"
        )
        end = f"(items - 1) * {step} + {size}"
        lines.append(f"    {condition}lg_gather(v{i}, a{i}, at, {size}, {end});")
    lines.append(f"    {own}({', '.join([f'v{i}' for i in range(len(sizes_in))])}, r, m);")
    for i, size in enumerate(sizes_out):
        if not size:
            continue
        found = f"r, {part.name}_slot{i}" if body.slots else f"r + {sum(sizes_out[:i])}, 0"
        lines.append(f"    lg_scatter(o{i} + k * {size}, {found}, {size}, lanes, {size});")
    head = f"static void {part.name}({', '.join(['int64_t items', *pointers, 'double *scratch'])})"
    return "\n".join([text, head, "{", *lines, "  }", "}", ""])
