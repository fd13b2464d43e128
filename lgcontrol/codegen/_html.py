"""Tables in HTML, as notebooks show objects; every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

LONGEST_TABLE = 60  # rows of a table that are shown; a page of a notebook
_CELL = "text-align:left;padding:0 1em 0 0;vertical-align:top"


def html_page(title: str, *parts: str) -> str:
    """Title over parts.

    The title is text, the parts are HTML, such as that of `html_table`.
    """
    return f"<div><b>{escape(title)}</b>{''.join(parts)}</div>"


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Table of texts and numbers, these with five digits; at most 60 rows are shown.

    NaN leaves a cell empty; without rows there is no table.

    Examples
    --------
    >>> "<td" in html_table("masses", ("body", "kg"), [("arm", 2.0)])
    True
    """
    rows = list(rows)
    if not rows:
        return ""
    left = len(rows) - LONGEST_TABLE
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_cell(value)}</td>' for value in row) + "</tr>"
        for row in rows[:LONGEST_TABLE]
    )
    more = f"<p>and {left} more</p>" if left > 0 else ""
    caption = f"<p>{escape(caption)}</p>" if caption else ""
    return f"{caption}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def html_lines(lines: Iterable[str]) -> str:
    """List with an entry for each line."""
    entries = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<ul>{entries}</ul>" if entries else ""


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return "" if np.isnan(value) else ("∞" if value > 0 else "−∞")
        return escape(f"{value:.5g}")
    return escape(str(value))
