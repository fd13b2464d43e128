"""Exported functions: compiled alone, with all warnings, they compute what Python does."""

import hashlib
import re
import shutil
import subprocess
from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction

CC = shutil.which("gcc") or shutil.which("clang")
needs_compiler = pytest.mark.skipif(CC is None, reason="no C compiler")
STRICT = (
    "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow",
    "-Wcast-qual", "-Wstrict-prototypes", "-Wmissing-prototypes", "-Wundef",
)  # fmt: skip
SANITIZED = ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-g")


@cache
def has_sanitizers():
    """Whether the compiler has the libraries for them."""
    command = [CC, *SANITIZED, "-x", "c", "-", "-o", "/dev/null"]
    given = "int main(void) { return 0; }"
    return not subprocess.run(
        command, input=given, text=True, capture_output=True, check=False
    ).returncode


def built(folder, *sources, into, level="-O0"):
    """The example of a folder, compiled alone; what did not change since the last one stands.

    With ``-O0`` without the levels that sources ask for themselves: these take as long again.
    """
    program, flags = into / "program", [*STRICT, *level.split()]
    headers = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.h")))
    objects = []
    for source in sources or ("main.c", f"{folder.name}.c"):
        text = (folder / source).read_text(encoding="utf-8")
        if "-O0" in flags:
            text = re.sub(r'#pragma GCC optimize.*|, optimize\("O3"\)', "", text)
        given = "\n".join((text, headers, level)).encode()
        objects.append(into / f"{hashlib.sha256(given).hexdigest()}.o")
        if not objects[-1].exists():
            compiled([*flags, f"-I{folder}", "-c", "-x", "c", "-", "-o", objects[-1]], text)
    compiled([*flags, *objects, "-o", program, "-lm"])
    return program


def compiled(arguments, text=None):
    """Have the compiler do something, which has to succeed."""
    command = [CC, *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def scalar_function():
    """Results of all kinds: scalars, a matrix, constants, what an argument is."""
    t, x, p = ca.SX.sym("t"), ca.SX.sym("x", 3), ca.SX.sym("p", 2)
    results = [ca.sin(t) + ca.norm_2(x), x @ p.T, ca.SX([1, 2]), ca.if_else(x[0] > 0, x, 0 * x)]
    function = ca.Function(
        "mixed", [t, x, p], results, ["t", "x", "p"], ["length", "outer", "fixed", "kept"]
    )
    return ModelFunction(function, shapes={"t": (), "length": ()}, defaults={"p": [2.0, 3.0]})


def matrix_function():
    """What is a table of steps, not written out."""
    A, b = ca.MX.sym("A", 12, 12), ca.MX.sym("b", 12)
    shifted = A.T @ A + 12 * ca.MX.eye(12)
    z = ca.SX.sym("z", 12)
    bent = ca.Function("bent", [z], [ca.sin(z)])
    value = ca.vertcat(*(bent(shifted @ b + k) for k in range(3)))
    return ModelFunction(ca.Function("steps", [A, b], [value], ["A", "b"], ["value"]))


@needs_compiler
@pytest.mark.parametrize("make", [scalar_function, matrix_function])
def test_an_exported_function_computes_the_same(make, tmp_path):
    function = make()
    folder = function.export_c(tmp_path / function.name)
    # A compiler that optimises looks more closely and warns of more, and takes longer.
    done = subprocess.run(
        [built(folder, into=tmp_path, level="-O1")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "workspace" in done.stdout and "code" in done.stdout


@needs_compiler
def test_the_example_notices_another_result(tmp_path):
    folder = scalar_function().export_c(tmp_path / "mixed")
    text = (folder / "mixed.c").read_text()
    assert text.count("ls_sin") + text.count("lg_sin(") > 0
    (folder / "mixed.c").write_text(text.replace("lg_sin(", "lg_cos("))
    assert subprocess.run([built(folder, into=tmp_path)], check=False).returncode == 1


@needs_compiler
def test_names_units_and_values_stand_in_the_header(tmp_path):
    labels = {"x": [("pose.x", "m"), ("pose.y", "m"), ("speed", "m/s")]}
    folder = scalar_function().export_c(tmp_path / "lift", name="Lift law!", labels=labels)
    assert {path.name for path in folder.iterdir()} == {
        "lift_law.c", "lift_law.h", "lift_law_test.h", "main.c", "CMakeLists.txt",
        "MANIFEST.sha256",
    }  # fmt: skip
    program = tmp_path / "user.c"
    program.write_text(
        '#include "lift_law.h"\n#include <stdio.h>\n'
        "int main(void) { double x[3] = {0}, length[1], outer[6], fixed[2], kept[3];\n"
        "  x[LIFT_LAW_X_SPEED] = 4;\n"
        "  lift_law(0.5, x, lift_law_default_p, length, outer, fixed, kept);\n"
        '  printf("%.17g %.17g", length[0], outer[5]); return 0; }\n'
    )
    built_one = built(folder, program, "lift_law.c", into=tmp_path)
    done = subprocess.run([built_one], capture_output=True, text=True, check=True)
    np.testing.assert_allclose([*map(float, done.stdout.split())], [np.sin(0.5) + 4, 12])
    assert "m/s" in (folder / "lift_law.h").read_text()


def test_nothing_but_the_folder_is_touched_and_foreign_files_are_refused(tmp_path):
    function = scalar_function()
    beside = tmp_path / "beside.txt"
    beside.write_text("mine")
    folder = function.export_c(tmp_path / "mixed")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    assert function.export_c(tmp_path / "mixed") == folder  # over an export of its own
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    other = function.export_c(tmp_path / "mixed", name="renamed")
    assert not (other / "mixed.c").exists()

    (folder / "notes.txt").write_text("mine, too")
    with pytest.raises(FileExistsError, match=r"not exported: notes\.txt"):
        function.export_c(folder)
    (folder / "notes.txt").unlink()
    (folder / "main.c").write_text("int main(void) { return 0; } /* my own */")
    with pytest.raises(FileExistsError, match=r"changed since the export: main\.c"):
        function.export_c(folder)
    assert "my own" in (folder / "main.c").read_text()
    with pytest.raises(FileExistsError, match="is a file"):
        function.export_c(beside)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        function.export_c(tmp_path / "no" / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside.txt", "mixed"]


def test_a_failed_export_leaves_the_old_one(tmp_path, monkeypatch):
    function = scalar_function()
    folder = function.export_c(tmp_path / "mixed")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    real = type(folder).write_bytes

    def failing(path, data):
        if path.name == "main.c":
            raise OSError("disk full")
        return real(path, data)

    monkeypatch.setattr(type(folder), "write_bytes", failing)
    with pytest.raises(OSError, match="disk full"):
        function.export_c(folder, name="other")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["mixed"]


def test_what_c_cannot_hold_is_refused_by_name(tmp_path):
    x = ca.MX.sym("x")
    table = ca.interpolant("table", "linear", [[0.0, 1.0, 2.0]], [0.0, 1.0, 0.0])
    function = ModelFunction(ca.Function("looked_up", [x], [table(x)], ["x"], ["y"]))
    with pytest.raises(NotImplementedError, match="looked_up cannot be exported"):
        function.export_c(tmp_path / "looked_up")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="makes no C identifier"):
        scalar_function().export_c(tmp_path / "a", name="°")


# As they come: of other alphabets, equal but for what C has no letters for, and taken.
NAMES = ["δ", "Höhe über Grund", "time", "lg_sin", "test", "largest", "0.5 m", "x;} int y", "u"]


@pytest.mark.usually(name=("δ", "time", "lg_sin", "x;} int y"))
@needs_compiler
@pytest.mark.parametrize("name", NAMES)
def test_odd_names_make_code_that_compiles(name, tmp_path):
    A, a = ca.MX.sym("A", 12, 12), ca.MX.sym("a", 12)
    work = ca.MX.sym("work")  # as the argument that generated code has besides
    f = ca.Function("f", [A, a, work], [ca.sin(A) @ a * work], ["A", "a", "work"], ["y"])
    texts = [("φ₁", "°"), ("φ₂", "m/s²"), ("a b", "µm */ int z; /*"), ("a.b", "two\nlines"),
             ("漢", "\\"), ("字", "")]  # fmt: skip
    folder = ModelFunction(f, shapes={"work": ()}).export_c(
        tmp_path / "odd ü folder", name=name, labels={"a": texts + [(str(k), "") for k in range(6)]}
    )
    sources = sorted(path.name for path in folder.glob("*.c"))
    done = subprocess.run(
        [built(folder, *sources, into=tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    header = "".join(path.read_text() for path in folder.glob("*.h"))
    assert all(symbol in header for symbol in ("_A_2_PHI_1 = 0", "_A_2_A_B_2 = 3", "/* φ₁, ° */"))


def test_labels_fit_what_they_name(tmp_path):
    with pytest.raises(ValueError, match="'x' has 3 entries and 1 labels"):
        scalar_function().export_c(tmp_path / "a", labels={"x": [("a", "m")]})
    with pytest.raises(ValueError, match="unknown argument or result of mixed 'y'.*t, x, p"):
        scalar_function().export_c(tmp_path / "a", labels={"y": []})
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    function = scalar_function()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileExistsError, match="is the working directory.*name one in it"):
        function.export_c(".")

    def refusing(path, *args, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "mkdir", refusing)
    with pytest.raises(PermissionError, match=r"cannot write .*law: Permission denied in .*where"):
        function.export_c("law")
    assert not list(tmp_path.iterdir())
