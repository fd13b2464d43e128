"""Systems as plain C: field, output and step agree with Python, under one header."""

import subprocess

import pytest

from lgcontrol.models import quadrotor, rover

from ..codegen.test_export import built, needs_compiler


@needs_compiler
@pytest.mark.parametrize("make", [rover, quadrotor])
def test_an_exported_system_computes_the_same(make, tmp_path):
    folder = make().export_c(tmp_path / "own", name="own", method="euler")
    sources = sorted(path.name for path in folder.glob("*.c"))

    def difference():
        done = subprocess.run(
            [built(folder, *sources, into=tmp_path)], capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1)
        return done.returncode

    assert difference() == 0
    path = folder / "own_test.h"
    text = path.read_text()
    for table in ("test_f_f[", "test_h_h[", "test_step_x_next["):  # each of the three is compared
        before, own, after = text.partition(table)
        path.write_text(before + own + after.replace("{\n", "{ 0.5 + \n", 1))
        assert difference() == 1
