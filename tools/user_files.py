"""Write the examples of README.md and docs, and the designs, as a user's files under build/user.

``make types`` checks them with pyright's strict rules, as somebody would who writes such a program.
Lines keep their numbers. Three things are as that person would have them: functions are annotated,
packages without types stand as Any, and matrices may have capital letters.
"""

import ast
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "user"
PAGES = ("README.md", "docs/howto/*.md")
DESIGNS = "controllers/designs"
RULES = {
    "reportConstantRedefinition": "K, A and B are matrices",
    "reportOptionalMemberAccess": "who writes a program knows that its arm has a structure",
    "reportUnusedExpression": "pages show values as a prompt does",
    "reportDuplicateImport": "blocks import what they introduce, and so do lines written here",
}
UNTYPED = ("control", "casadi as ca")  # they have types of a few parts, or wrong ones
FOREIGN = re.compile(r"\.savefig\(|pyplot\.plot\(")  # methods of matplotlib that have types in part


def annotated(source: str) -> str:
    """Annotate with Any what functions of a page take and return, as the strict rules ask for."""
    lines = source.split("\n")
    edits: list[tuple[int, int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            a = node.args
            for argument in [
                *a.posonlyargs,
                *a.args,
                *a.kwonlyargs,
                *filter(None, [a.vararg, a.kwarg]),
            ]:
                if argument.annotation is None and argument.arg not in ("self", "cls"):
                    edits.append((argument.end_lineno or 0, argument.end_col_offset or 0, ": Any"))
            if node.returns is None:
                first = node.body[0]
                end = max(
                    (row, lines[row - 1].rindex("):") + 1)
                    for row in range(node.lineno, first.lineno + 1)
                    if "):" in lines[row - 1] and row < first.lineno
                )
                edits.append((*end, " -> Any"))
    if edits:
        lines[1] = "from typing import Any"  # a page begins with its title and an empty line
    for row, column, text in sorted(edits, reverse=True):
        line = lines[row - 1].encode()
        lines[row - 1] = (line[:column] + text.encode() + line[column:]).decode()
    return "\n".join(lines)


def strict(source: str) -> str:
    """Return a program on its own lines, under the strict rules."""
    found = []
    for line in source.split("\n"):
        if line.startswith("import ") and any(f" {name}" in line for name in UNTYPED):
            kept = [part for part in line[7:].split(", ") if not part.startswith(UNTYPED)]
            names = [
                part.split(" as ")[-1].split(".")[0]
                for part in line[7:].split(", ")
                if part not in kept
            ]
            line = "; ".join(
                ["import typing"]
                + [f"import {part}" for part in kept]
                + [f"{name}: typing.Any = None" for name in names]
            )
        if FOREIGN.search(line):
            line += "  # pyright: ignore[reportUnknownMemberType]"
        found.append(line)
    rules = ", ".join(f"{rule}=false" for rule in RULES)
    return "\n".join([*found, f"# pyright: strict, {rules}", ""])


def program(page: str) -> str:
    """Return the Python blocks of a page as one program, at their lines."""
    text = (ROOT / page).read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for match in re.finditer(r"^```python[^\n]*\n(.*?)^```\s*$", text, re.MULTILINE | re.DOTALL):
        first = text.count("\n", 0, match.start(1))
        for row, line in enumerate(match[1].splitlines()):
            lines[first + row] = line
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the files anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    paths = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    for page in (path.relative_to(ROOT).as_posix() for path in paths):
        file = OUT / f"{page}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(strict(annotated(program(page))), encoding="utf-8")
    for design in sorted((ROOT / DESIGNS).glob("*.py")):
        text = design.read_text(encoding="utf-8")
        # A copy in a package of one's own imports from lgcontrol, and from its own neighbours.
        text = re.sub(r"^(from|import) \.\.\.", r"\1 lgcontrol.", text, flags=re.MULTILINE)
        text = re.sub(
            r"^(from|import) \.\.(?=\w)", r"\1 lgcontrol.controllers.", text, flags=re.MULTILINE
        )
        file = OUT / "designs" / design.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(strict(text), encoding="utf-8")


if __name__ == "__main__":
    main()
