"""Write the list of public names, and the changelog's table of those that have gone.

Both are read from the sources: the list from the packages' ``__init__`` files, the table from
``lgcontrol/_renamed.toml``. Tests compare them. Usage: ``python tools/public_names.py``.
"""

import re
from itertools import groupby
from pathlib import Path

from lgcontrol._names import PACKAGE, public_names, renamed

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests" / "project" / "public_names.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
BEGIN, END = "<!-- from lgcontrol/_renamed.toml -->\n", "<!-- end of the table -->\n"


def listing() -> str:
    """Return every public name by its full name, one a line."""
    names = [f"{home}.{name}" for home, found in public_names().items() for name in found]
    return "".join(f"{name}\n" for name in sorted(names))


def table() -> str:
    """Return the names that have gone as rows; those of a room with one fate share a row."""
    lines = ["| room | old name | new name | reason |", "|---|---|---|---|"]
    for room, names in sorted(renamed().items()):
        found = sorted(names.items(), key=lambda item: (item[1][0], item[1][1], item[0]))
        for (new, reason), old in groupby(found, key=lambda item: item[1]):
            shown = ", ".join(f"`{name}`" for name, _ in old)
            now = f"`{PACKAGE}.{new}`" if new else "—"
            lines.append(f"| {room} | {shown} | {now} | {reason} |")
    return "\n".join(lines) + "\n"


def changelog(text: str) -> str:
    """Return the changelog with the table as it should be."""
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    return re.sub(pattern, lambda _: BEGIN + table() + END, text, flags=re.DOTALL)


if __name__ == "__main__":
    LIST.write_text(listing(), encoding="utf-8")
    CHANGELOG.write_text(changelog(CHANGELOG.read_text(encoding="utf-8")), encoding="utf-8")
