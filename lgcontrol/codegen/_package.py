"""C packages: a folder of plain C99 that needs nothing else, and appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._emit import c_number

# What a folder holds that was written here, with hashes in the format of `sha256sum -c`.
CHECKSUMS = "MANIFEST.sha256"

_RESERVED = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while main sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh
    atanh exp exp2 expm1 log log10 log1p log2 logb pow sqrt cbrt hypot erf erfc tgamma lgamma gamma
    ceil floor nearbyint rint round trunc fmod remainder remquo copysign nan nextafter fdim fmax
    fmin fma fabs fpclassify isfinite isinf isnan isnormal signbit frexp ldexp modf scalbn ilogb
    j0 j1 jn y0 y1 yn signgam""".split()
)

# What a package cannot be called: functions of the C library, which it would stand in for, what its
# example has besides, and targets of CMake.
_TAKEN = frozenset(
    """abort abs accept access acos alarm assert atexit atof atoi atol atoll bcmp bind bool bsearch
    bzero calloc clearerr clock close complex connect ctime difftime div dup environ errno execv
    exit false fclose feof ferror fflush fgetc fgets file fopen fork fprintf fputc fputs fread free
    freopen fscanf fseek ftell fwrite getc getchar getenv gets gmtime index isalnum isalpha iscntrl
    isdigit isgraph islower isprint ispunct isspace isupper isxdigit kill labs ldiv link listen
    llabs lldiv llrint llround localtime longjmp lrint lround malloc memchr memcmp memcpy memmove
    memset mktime nexttoward open pause perror pipe printf putc putchar puts qsort raise rand read
    realloc recv remove rename rewind rindex scalbln scanf select send setbuf setjmp setvbuf signal
    sleep snprintf socket sprintf srand sscanf stderr stdin stdout stpcpy strcat strchr strcmp
    strcoll strcpy strcspn strerror strftime strlen strncat strncmp strncpy strpbrk strrchr strspn
    strstr strtod strtof strtok strtol strtold strtoul strxfrm sync system time tmpfile tmpnam
    tolower toupper true ungetc unlink vfprintf vprintf vsprintf wait write
    code_size difference example k largest number row_at status u work wrong
    all clean edit_cache help install list_install_components package rebuild_cache test""".split()
)
_OWN = ("lg_", "test_", "have_", "table_")  # beginnings of names in generated code
LONGEST_NAME = 63  # letters that C99 compilers tell names apart by
LONGEST_REMARK = 200  # letters of a name or a line in a comment


class CVector(NamedTuple):
    """A vector of an interface: what stands where.

    A symbol such as ``"x"``, what it is for a comment, its size, and the names and units of all
    entries or of none.
    """

    symbol: str
    what: str
    size: int
    names: Sequence[str] = ()
    units: Sequence[str] = ()


def c_identifier(name: str) -> str:
    """A name as a C identifier in lower case.

    Refused if nothing of it can stand in one.

    Examples
    --------
    >>> c_identifier("Space arm, 2"), c_identifier("sin"), c_identifier("Höhe δ")
    ('space_arm_2', 'f_sin', 'hohe_delta')
    """
    text = _letters(name).lower()
    if not text:
        shown = f"{name[:LONGEST_NAME]!r}"
        raise ValueError(f"{shown} makes no C identifier: give name='…', letters and digits")
    if text[0].isdigit() or text in _RESERVED:
        text = f"f_{text}"
    return text


def c_package_name(name: str) -> str:
    """A name as that of a package, its files and public functions.

    It is a `c_identifier`, with ``f_`` before what is taken.

    Examples
    --------
    >>> c_package_name("hover"), c_package_name("time"), c_package_name("test")
    ('hover', 'f_time', 'f_test')
    """
    text = c_identifier(name)
    return f"f_{text}" if text in _TAKEN or text.startswith(_OWN) else text


def c_default_name(owner: str, of: object) -> str:
    """Name of the package of something: its owner's, then the words of its class.

    The owner is a system; `of` is a controller, filter or estimator.

    Examples
    --------
    >>> class MovingHorizon: ...
    >>> c_default_name("cart", MovingHorizon())
    'cart_moving_horizon'
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(of).__name__)
    return f"{owner}_{words.lower()}"


def c_identifiers(
    names: Iterable[str], taken: Iterable[str] = (), *, otherwise: str | None = None
) -> dict[str, str]:
    """Identifiers of several names, all different: a number is put behind those that are not.

    None of them is one of `taken`. Names without any letter or digit are refused, or called
    `otherwise`.

    Examples
    --------
    >>> c_identifiers(["a", "A", "work"], taken=["work"])
    {'a': 'a', 'A': 'a_2', 'work': 'work_2'}
    >>> c_identifiers(["°C", "°", "K?"], otherwise="sensor")
    {'°C': 'c', '°': 'sensor', 'K?': 'k'}
    """
    used, found = set(taken), {}
    for name in names:
        text = otherwise if otherwise and not _letters(name) else c_identifier(name)
        found[name] = _free(text, used)
    return found


def _free(text: str, used: set[str]) -> str:
    """The text, with a number behind it where it is used already; it is used then."""
    candidate, number = text, 1
    while candidate in used:
        number += 1
        candidate = f"{text}_{number}"
    used.add(candidate)
    return candidate


def _letters(name: str) -> str:
    """Letters and digits of ASCII, underscores between, not too many; others by their names."""
    text = "".join(map(_spelled, unicodedata.normalize("NFKD", name[:LONGEST_REMARK])))
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")[:LONGEST_NAME].strip("_")


def _spelled(letter: str) -> str:
    if letter.isascii() or unicodedata.combining(letter):
        return letter * letter.isascii()
    found = re.search(r"LETTER (.*?)(?: WITH .*)?$", unicodedata.name(letter, ""))
    return f"_{found[1]}_" if found else "_"


def c_text(text: str) -> str:
    """Text as it may stand in a comment: the one way in which names come into C.

    It ends no comment and begins none, is one line and no trigraph, and not longer than a line of
    a page. Characters that are not printable (ends of lines, marks of the writing direction)
    become spaces. A backslash, which would join lines, becomes a slash.

    Examples
    --------
    >>> c_text("m */ int z; /*"), c_text("what??/"), c_text("two" + chr(10) + "lines")
    ('m * / int z; / *', 'what? ? /', 'two lines')
    """
    text = f"{text[:LONGEST_REMARK]}…" if len(text) > LONGEST_REMARK else text
    text = "".join(letter if letter.isprintable() else " " for letter in text.replace("\\", "/"))
    return re.sub(r"\*(?=/)|/(?=[*/])|\?(?=[?/])", r"\g<0> ", text).rstrip()


def c_remark(text: str) -> str:
    """Comment of one line."""
    return f"/* {c_text(text)} */"


def c_comment(title: str, lines: Sequence[str] = ()) -> str:
    """Comment at the head of a file."""
    title, *lines = map(c_text, (title, *lines))
    return "\n".join([f"/* {title}", *(f" * {line}".rstrip() for line in lines), " */", ""])


def c_places(prefix: str, vectors: Sequence[CVector]) -> str:
    """Size and places of vectors as C constants, with their units.

    All names begin with the prefix.
    """
    text: list[str] = []
    used: set[str] = set()
    for vector in vectors:
        count, own = vector.size, f"{prefix}_{vector.symbol}".upper()
        numbers = {0: "none", 1: "a number"}.get(count, f"{count} numbers")
        text.append(c_remark(f"{vector.symbol}: {vector.what}; {numbers}"))
        if not vector.names:
            continue
        entries = [_free(f"{own}_{_letters(name).upper() or '_'}", used) for name in vector.names]
        wide = max(len(f"  {entry} = {k},") for k, entry in enumerate(entries))
        text.append("enum {")
        for k, entry in enumerate(entries):
            comma = "," if k < count - 1 else ""
            line, name, unit = f"  {entry} = {k}{comma}", vector.names[k], vector.units[k]
            said = unit if name.isascii() else f"{name}, {unit}".rstrip(", ")
            text.append(f"{line:<{wide}} {c_remark(said)}" if said else line)
        text.append("};\n")
    return "\n".join(text)


def c_table(kind: str, name: str, values: np.ndarray) -> str:
    """A constant array of C; one zero where there are no values.

    Values are taken row by row; `kind` is the type of the entries.
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


def cmake_lists(name: str, sources: Sequence[str]) -> str:
    """CMakeLists.txt of a library and its example, which is its test."""
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

add_library({name} STATIC {" ".join(sources)})
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

    The folder is new, empty, or was written here and not changed since; FileExistsError for others.
    """
    folder = Path(folder).expanduser().resolve()
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot write {folder}: there is no folder {folder.parent}")
    _refuse_foreign(folder)
    if folder == Path.cwd():
        raise FileExistsError(
            f"{folder} is the working directory, and an export takes the place of a whole folder: "
            "name one in it"
        )
    token = secrets.token_hex(8)
    part = folder.with_name(f".{folder.name}.{token}.part")
    old = folder.with_name(f".{folder.name}.{token}.old")
    try:
        part.mkdir()
    except OSError as error:
        raise type(error)(
            f"cannot write {folder}: {error.strerror} in {folder.parent}; name a folder where you "
            "may make one"
        ) from None
    try:
        sums = []
        for name, text in files.items():
            data = text.encode()
            (part / name).write_bytes(data)
            sums.append(f"{hashlib.sha256(data).hexdigest()}  {name}\n")
        (part / CHECKSUMS).write_text("".join(sums), encoding="utf-8")
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
    manifest = folder / CHECKSUMS
    if manifest.is_file() and not manifest.is_symlink():
        lines = manifest.read_text(encoding="utf-8", errors="replace").splitlines()
        written = {name: known for known, _, name in (line.partition("  ") for line in lines)}
    foreign, changed = [], []
    for path in sorted(folder.iterdir()):
        if path.name == CHECKSUMS and written:
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
