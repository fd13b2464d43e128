"""Systems as plain C: field, output and step agree with Python, under one header."""

import re
import subprocess

import pytest

from lgcontrol.models import quadrotor, rover

from ..codegen.test_export import built, needs_compiler


@needs_compiler
@pytest.mark.parametrize("make", [rover, quadrotor])
def test_an_exported_system_computes_the_same(make, tmp_path):
    system = make()
    folder = system.export_c(tmp_path / "own", name="own", method="euler")
    sources = sorted(path.name for path in folder.glob("*.c"))
    program = built(folder, *sources, into=tmp_path)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    for part in ("f", "h", "step"):  # each is compared: another number in its table is noticed
        text = (folder / "own_test.h").read_text()
        wrong = re.sub(rf"(test_{part}_(?!t|x\\[|u|p|dt)\w+\[\d+\] = {{\s*)", r"\1 0.5 + ", text)
        (folder / "own_test.h").write_text(wrong)
        program = built(folder, *sources, into=tmp_path)
        assert wrong != text
        assert subprocess.run([program], capture_output=True, check=False).returncode == 1
        (folder / "own_test.h").write_text(text)
