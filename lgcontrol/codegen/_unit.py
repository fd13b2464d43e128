"""Several functions as static C functions in one source, for algorithms in C around them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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

    @cached_property
    def packed(self) -> Body | None:
        """C code for vectors of items."""
        return self.function.program.body(packed=True, solves=True)


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
        program = part.function.program
        body = part.packed if packed else program.body(packed=False, solves=True)
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
    own, program = f"{part.name}_body", part.function.program
    text, found = body.text.replace("lg_body", own), []
    for i, size in enumerate(program.sizes_out):
        slots = _table(f"{part.name}_slot{i}", body.slots[i] if body.slots else [])
        text += slots if body.slots else ""
        start = sum(program.sizes_out[:i])
        place = f"r0, {part.name}_slot{i}" if body.slots else f"r0 + {start}, 0"
        line = f"lg_scatter(o{i} + k * {size}, {place}, {size}, lanes, {size});"
        found.append((0, line if size else ""))
    return text + _over_items(part.name, part, [(own, len(program.sizes_in), body.size)], [], found)


def joined_source(
    name: str, parts: Sequence[Part], results: Sequence[Sequence[tuple[int, str]]], width: int
) -> tuple[str, int]:
    """C source of a function that evaluates parts of the same items, and the work memory it needs.

    The last part has the arguments of all. The others begin with the same ones. A result is the sum
    of some results of parts, each given by the number of its part and by its name. A sum is a
    symmetric matrix, and its upper half is written. Bodies of parts come from `unit_source`.
    """
    made = [part.packed for part in parts if part.packed is not None]
    assert len(made) == len(parts)
    text, found, after = "", list[tuple[int, str]](), list[str]()
    called = []
    for part, body in zip(parts, made, strict=True):
        count = len(part.function.program.sizes_in)
        called.append((f"{part.name}_body", count, body.size))
        given = ", ".join(["const V *restrict"] * count + ["V *restrict"] * 2)
        text += f"extern void {part.name}_body({given});\n"
    total = 0
    for i, terms in enumerate(results):
        places = []
        for number, result in terms:
            program, body = parts[number].function.program, made[number]
            at = parts[number].function.results.index(result)
            start = sum(program.sizes_out[:at])
            straight = list(range(start, start + program.sizes_out[at]))
            places.append(body.slots[at] if body.slots else straight)
        size, slots, pointer = len(places[0]), places[0], f"r{terms[0][0]}"
        if len(terms) > 1:
            pairs = list(dict.fromkeys(zip(*places, strict=True)))
            place_of = {pair: k for k, pair in enumerate(pairs)}
            slots, pointer = (
                [place_of[pair] for pair in zip(*places, strict=True)],
                f"(sum + {total})",
            )
            names = [f"{name}_term{i}_{k}" for k in range(len(terms))]
            text += "".join(map(_table, names, map(list, zip(*pairs, strict=True))))
            plus = " + ".join(f"r{n}[{own}[i]]" for (n, _), own in zip(terms, names, strict=True))
            after.append(f"    for (int i = 0; i < {len(pairs)}; i++) {pointer}[i] = {plus};")
            total += len(pairs)
        text += _table(f"{name}_slot{i}", slots)
        side = math.isqrt(size)
        if len(terms) > 1 and side >= width:
            line = (
                f"for (int j = 0; j < {side}; j++)\n"
                f"      lg_scatter(o{i} + k * {size} + j * {side}, {pointer}, "
                f"{name}_slot{i} + j * {side}, {size}, lanes,\n"
                f"                 j / W * W + W < {side} ? j / W * W + W : {side});"
            )
        else:
            line = (
                f"lg_scatter(o{i} + k * {size}, {pointer}, {name}_slot{i}, {size}, lanes, {size});"
            )
        found.append((max(number for number, _ in terms), line if size else ""))
    scratch = total + sum(parts[-1].function.program.sizes_in) + max(body.work for body in made)
    text += _over_items(name, parts[-1], called, [f"V *sum = m; m += {total};", *after], found)
    return text, width * (scratch + sum(body.size for body in made))


def _table(name: str, numbers: Sequence[int]) -> str:
    return f"static const int32_t {name}[] = {{{', '.join(map(str, numbers or [0]))}}};\n"


def _over_items(
    name: str, part: Part, called: list[tuple[str, int, int]], between: list[str],
    found: list[tuple[int, str]],
) -> str:  # fmt: skip
    """C function over items, which gathers the arguments of a part, calls bodies, and scatters."""
    sizes_in = part.function.program.sizes_in
    pointers = [f"const double *a{i}" for i in range(len(sizes_in))]
    pointers += [f"double *o{i}" for i in range(len(found))]
    lines = ["  V *next = (V *)(void *)scratch;"]
    lines += [f"  V *v{i} = next; next += {size};" for i, size in enumerate(sizes_in)]
    lines += [f"  V *r{i} = next; next += {size};" for i, (_, _, size) in enumerate(called)]
    lines += ["  V *m = next;", *(f"  {line}" for line in between[:1])]
    steps = [
        0 if argument in (part.shared or ()) else size
        for argument, size in zip(part.function.arguments, sizes_in, strict=True)
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
    for i, (body, count, _) in enumerate(called):
        lines.append(f"    {body}({', '.join([*(f'v{j}' for j in range(count)), f'r{i}', 'm'])});")
        lines += between[1:] if i + 1 == len(called) else []
        lines += [f"    {line}" for number, line in found if number == i and line]
    head = f"static void {name}({', '.join(['int64_t items', *pointers, 'double *scratch'])})"
    return "\n".join([head, "{", *lines, "  }", "}", ""])
