"""Build the wheel for Linux on x86-64, with the planning kernel for three levels of processors.

    python tools/build_wheel.py [FOLDER]

Its users need no compiler for the kernel. It holds what is committed. FOLDER is dist/ if left out.
"""

import re
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from lgcontrol.codegen._internal import find_compiler
from lgcontrol.optimal.kernel._library import kernel_sources
from lgcontrol.optimal.kernel._prebuilt import FOLDER, LEVELS, file_of

ROOT = Path(__file__).resolve().parents[1]
# The oldest C library that a wheel can name (PEP 600).
OLDEST_GLIBC = (2, 5)


def build_kernels(folder: Path) -> None:
    """Compile the kernel for each level."""
    compiler = find_compiler()
    if compiler is None or compiler.machine != "x86_64" or compiler.kind == "tcc":
        sys.exit("the kernels need gcc or clang on x86-64: apt-get install -y gcc")
    for level in LEVELS:
        sources = kernel_sources(level.width)
        own = replace(compiler, native=(f"-march={level.name}",), width=level.width)
        with tempfile.TemporaryDirectory() as work:
            files = [Path(work, f"{k}.c") for k in range(len(sources))]
            for file, text in zip(files, sources, strict=True):
                file.write_text(text, encoding="utf-8")
            library = Path(work, "kernel.so")
            own.build(files, library, own.flags(0, True))
            Path(folder, file_of(level, sources).name).write_bytes(library.read_bytes())
        print(f"built the kernel for {level.name}")


def needed_glibc(folder: Path) -> tuple[int, int]:
    """Newest version of the C library whose symbols the kernels in a folder use."""
    found = {OLDEST_GLIBC}
    for library in folder.glob("*.so"):
        for major, minor in re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes()):
            found.add((int(major), int(minor)))
    return max(found)


def main(out: Path) -> None:
    """Build in a copy of what git has, so that the tree stays as it is."""
    with tempfile.TemporaryDirectory() as work:
        tree = subprocess.run(["git", "stash", "create"], cwd=ROOT, capture_output=True, text=True)
        archive = subprocess.run(
            ["git", "archive", tree.stdout.strip() or "HEAD"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        subprocess.run(["tar", "-x", "-C", work], input=archive.stdout, check=True)
        folder = work / FOLDER.relative_to(ROOT)
        build_kernels(folder)
        major, minor = needed_glibc(folder)
        tag = f"manylinux_{major}_{minor}_x86_64"
        subprocess.run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out,
             f"-C--build-option=--plat-name={tag}", work],
            check=True,
        )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist").resolve())
