"""C packages: a folder of plain C99 that needs nothing else, and appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._emit import c_number

# What a folder holds that was written here, with hashes in the format of `sha256sum -c`.
MANIFEST = "MANIFEST.sha256"

_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while main sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
    atanh exp exp2 expm1 log log10 log1p log2 logb pow sqrt cbrt hypot erf erfc tgamma lgamma gamma
    ceil floor nearbyint rint round trunc fmod remainder remquo copysign nan nextafter fdim fmax
    fmin fma fabs fpclassify isfinite isinf isnan isnormal signbit frexp ldexp modf scalbn ilogb
    j0 j1 jn y0 y1 yn signgam""".split()
)


class CVector(NamedTuple):
    """A vector of an interface: what stands where.

    Attributes
    ----------
    symbol : str
        ``"x"``.
    what : str
        ``"state"``; a comment.
    size : int
    names, units : sequence of str
        Of all entries, or of none.
    """

    symbol: str
    what: str
    size: int
    names: Sequence[str] = ()
    units: Sequence[str] = ()


def c_identifier(name: str) -> str:
    """A name as a C identifier in lower case.

    Parameters
    ----------
    name : str

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If nothing of it can stand in one.

    Examples
    --------
    >>> c_identifier("Space arm, 2"), c_identifier("sin")
    ('space_arm_2', 'f_sin')
    """
    text = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_").lower()
    if not text:
        raise ValueError(f"{name!r} makes no C identifier: give name='…', letters and digits")
    if text[0].isdigit() or text in _RESERVED:
        text = f"f_{text}"
    return text


def c_comment(title: str, lines: Sequence[str] = ()) -> str:
    """Comment at the head of a file.

    Parameters
    ----------
    title : str
    lines : sequence of str
    """
    return "\n".join([f"/* {title}", *(f" * {line}".rstrip() for line in lines), " */", ""])


def c_places(prefix: str, vectors: Sequence[CVector]) -> str:
    """Size and places of vectors as C constants, with their units.

    Parameters
    ----------
    prefix : str
        Of all names.
    vectors : sequence of CVector

    Returns
    -------
    str
    """
    text = []
    for vector in vectors:
        count, own = vector.size, f"{prefix}_{vector.symbol}".upper()
        numbers = {0: "none", 1: "a number"}.get(count, f"{count} numbers")
        text.append(f"/* {vector.symbol}: {vector.what}; {numbers} */")
        if not vector.names:
            continue
        entries = [f"{own}_{_upper(name)}" for name in vector.names]
        wide = max(len(f"  {entry} = {k},") for k, entry in enumerate(entries))
        text.append("enum {")
        for k, (entry, unit) in enumerate(zip(entries, vector.units, strict=True)):
            comma = "," if k < count - 1 else ""
            line = f"  {entry} = {k}{comma}"
            text.append(f"{line:<{wide}} /* {unit} */" if unit else line)
        text.append("};\n")
    return "\n".join(text)


def _upper(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_").upper() or "_"


def c_table(kind: str, name: str, values: np.ndarray) -> str:
    """A constant array of C; one zero where there are no values.

    Parameters
    ----------
    kind : str
        Type of its entries, ``"double"`` or one of integers.
    name : str
    values : ndarray
        Taken row by row.

    Returns
    -------
    str
    """
    flat = np.asarray(values).ravel()
    entries = [c_number(v) for v in flat] if kind == "double" else [str(int(v)) for v in flat]
    lines = _wrapped(entries or ["0"])
    return f"static const {kind} {name}[{max(1, len(entries))}] = {{\n{lines}\n}};\n"


def _wrapped(entries: list[str]) -> str:
    lines, line = [], " "
    for entry in entries:
        if len(line) + len(entry) > 96:
            lines.append(line)
            line = " "
        line += f" {entry},"
    return "\n".join([*lines, line]).rstrip(",")


def cmake_lists(name: str, sources: Sequence[str] = ()) -> str:
    """CMakeLists.txt of a library and its example, which is its test.

    Parameters
    ----------
    name : str
        Of the library and its files.
    sources : sequence of str
        Further files of the library.

    Returns
    -------
    str
    """
    return f"""\
cmake_minimum_required(VERSION 3.10)
project({name} C)

set(CMAKE_C_STANDARD 99)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O2")

add_library({name} STATIC {" ".join([f"{name}.c", *sources])})
target_include_directories({name} PUBLIC "${{CMAKE_CURRENT_SOURCE_DIR}}")
add_executable({name}_example main.c)
target_link_libraries({name}_example {name})
if(UNIX)
  target_link_libraries({name}_example m)
endif()
foreach(target {name} {name}_example)
  if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${{target}} PRIVATE -Wall -Wextra)
  endif()
endforeach()

enable_testing()
add_test(NAME {name}_agrees COMMAND {name}_example)
"""


C99_HINTS = """\
#ifndef __GNUC__
#define __attribute__(x) /* only hints */
#endif
"""
"""What stands before generated code, so that every C99 compiler reads it."""

C_EXAMPLE_HEAD = """\
#include <math.h>
#include <stdio.h>

#if defined(__linux__) && defined(__GNUC__)
extern const char __executable_start[], etext[];
static unsigned long code_size(void)
{
  return (unsigned long)(etext - __executable_start);
}
#else
static unsigned long code_size(void) { return 0; } /* ask the linker's map */
#endif

/* The largest difference, relative to numbers above 1; both may be no number at once. */
static double difference(const double *have, const double *want, int count)
{
  double largest = 0;
  for (int i = 0; i < count; i++) {
    const double off = fabs(have[i] - want[i]) / fmax(1.0, fabs(want[i]));
    if (isnan(have[i]) && isnan(want[i])) continue;
    if (isinf(have[i]) && have[i] == want[i]) continue;
    if (!(off <= largest)) largest = isnan(off) ? INFINITY : off;
  }
  return largest;
}
"""


def write_package(folder: str | Path, files: Mapping[str, str]) -> Path:
    """Write a folder of files, whole or not at all; nothing else is touched.

    Parameters
    ----------
    folder : path
        New, empty, or one that was written here and not changed since.
    files : mapping of str to str
        Texts by name.

    Returns
    -------
    Path

    Raises
    ------
    FileExistsError
        If the folder holds files that were not written here, or were changed since; or is a file.
    FileNotFoundError
        If there is no folder to put it into.
    """
    folder = Path(folder).expanduser().resolve()
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot write {folder}: there is no folder {folder.parent}")
    _refuse_foreign(folder)
    token = secrets.token_hex(8)
    part = folder.with_name(f".{folder.name}.{token}.part")
    old = folder.with_name(f".{folder.name}.{token}.old")
    part.mkdir()
    try:
        sums = []
        for name, text in files.items():
            data = text.encode()
            (part / name).write_bytes(data)
            sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
        (part / MANIFEST).write_text("".join(sums), encoding="utf-8")
        if folder.is_dir():
            os.replace(folder, old)
            try:
                os.replace(part, folder)
            except BaseException:
                os.replace(old, folder)
                raise
            shutil.rmtree(old)
        else:
            os.replace(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return folder


def _refuse_foreign(folder: Path) -> None:
    """Refuse a folder with anything in it that was not written here."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: name a folder, new or exported before")
    written = {}
    manifest = folder / MANIFEST
    if manifest.is_file() and not manifest.is_symlink():
        lines = manifest.read_text(encoding="utf-8", errors="replace").splitlines()
        written = {name: known for known, _, name in (line.partition("  ") for line in lines)}
    foreign, changed = [], []
    for path in sorted(folder.iterdir()):
        if path.name == MANIFEST and written:
            continue
        if path.name not in written or path.is_symlink() or not path.is_file():
            foreign.append(path.name)
        elif hashlib.sha256(path.read_bytes()).hexdigest() != written[path.name]:
            changed.append(path.name)
    for names, what in ((foreign, "were not exported"), (changed, "were changed since the export")):
        if names:
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
            raise FileExistsError(
                f"{folder} holds files that {what}: {shown}; an export takes a whole folder, new, "
                "empty, or exported before: name another one, or move these elsewhere"
            )
