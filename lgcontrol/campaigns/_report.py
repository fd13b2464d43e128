"""A campaign as one HTML file: tables, plots, and how to run the worst cases again."""

from __future__ import annotations

import base64
import io
import os
import secrets
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io._internal import with_ending
from ..plotting._internal import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUCCESS_COLOR, FAILURE_COLOR = "#2b8a3e", "#c92a2a"
COLUMNS = 3
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .2rem .8rem; text-align: left;
border-bottom: 1px solid #ddd } img { max-width: 100% } code { background: #f4f4f4 }
"""


def figure(result: Any) -> Figure:
    """Histograms of the criteria with their limits, and success over two variations."""
    criteria = [one for one in result.campaign.all_criteria()]
    pair = telling_pair(result)
    count = len(criteria) + (pair is not None)
    rows = -(-count // COLUMNS)
    drawn = new_figure(4.2 * min(count, COLUMNS), 3.1 * rows)
    axes = np.atleast_1d(drawn.subplots(rows, min(count, COLUMNS), squeeze=False)).ravel()
    for axis, one in zip(axes, criteria, strict=False):
        values = result.values(one.name)
        _histogram(axis, values, result.is_success)
        for limit in (one.least, one.limit):
            if np.isfinite(limit):
                axis.axvline(limit, color="black", lw=1, ls="--")
        axis.set_title(one.name, fontsize=9, wrap=True)
        axis.set_xlabel(f"value [{one.unit}]" if one.unit else "value")
    if pair is not None:
        _cloud(axes[len(criteria)], result, *pair)
    for axis in axes[count:]:
        axis.set_visible(False)
    return drawn


def telling_pair(result: Any) -> tuple[str, str] | None:
    """The two variations that say most about success."""
    from ._statistics import rank_correlation

    names = [one.name for one in result.campaign.variations or () if one.name != "seed"]
    if len(names) < 2 or not len(result):
        return None
    good = result.is_success.astype(float)
    strength = {name: abs(rank_correlation(result.inputs(name), good)[0]) for name in names}
    names.sort(key=lambda name: -np.nan_to_num(strength[name]))
    return names[0], names[1]


def write_report(result: Any, path: Path) -> Path:
    """Write the page; the file appears complete or not at all."""
    path = with_ending(path, [".html"], "reports are HTML files")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    campaign = result.campaign
    parts = [
        f"<h1>{escape(str(campaign.design))}</h1>",
        "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in result.summary()) + "</ul>",
        "<h2>Variations</h2><ul>"
        + "".join(f"<li>{escape(str(one))}</li>" for one in campaign.variations or ())
        + f"<li>seeds from {campaign.seed} on; {escape(campaign.sampling)} sampling</li></ul>",
    ]
    if len(result):
        parts += [
            "<h2>Criteria</h2>", _picture(figure(result), "criteria over all cases"),
            *_bands(result),
            "<h2>Sensitivity</h2><p>Rank correlation of each criterion with each variation; "
            "in bold where chance gives as much in less than one of 100 campaigns.</p>",
            _sensitivity(result),
            "<h2>Worst cases</h2>", _worst(result),
        ]  # fmt: skip
    parts += [
        "<h2>Processors and compilers</h2><ul>"
        + "".join(f"<li>{escape(one)}</li>" for one in result.machines())
        + "</ul>"
    ]
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(str(campaign.design))}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(parts)}</body></html>\n"
    )
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        part.write_text(page, encoding="utf-8", errors="replace")
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return path


def _histogram(axis: Any, values: np.ndarray, is_success: np.ndarray) -> None:
    finite = np.isfinite(values)
    if not finite.any():
        axis.text(0.5, 0.5, "no values", ha="center", transform=axis.transAxes)
        return
    low, high = values[finite].min(), values[finite].max()
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # one value, but for rounding
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    groups = [values[finite & is_success], values[finite & ~is_success]]
    axis.hist(
        groups, np.linspace(low, high, 31), stacked=True, color=[SUCCESS_COLOR, FAILURE_COLOR],
        label=["success", "failed"],
    )  # fmt: skip
    axis.set_ylabel("cases")


def _cloud(axis: Any, result: Any, first: str, second: str) -> None:
    x, y = result.inputs(first), result.inputs(second)
    for chosen, color, label in (
        (result.is_success, SUCCESS_COLOR, "success"),
        (~result.is_success, FAILURE_COLOR, "failed"),
    ):
        axis.scatter(x[chosen], y[chosen], s=6, color=color, label=label)
    units = {one.name: one.unit for one in result.campaign.variations or ()}
    axis.set_xlabel(f"{first} [{units[first]}]" if units[first] else first)
    axis.set_ylabel(f"{second} [{units[second]}]" if units[second] else second)
    axis.set_title("success over two variations", fontsize=9)
    axis.legend(fontsize=7)


def _bands(result: Any) -> list[str]:
    """Signals over time, where samples were kept."""
    found = []
    for one in result.campaign.all_criteria():
        try:
            found.append((one, *result.bands(one.name)))
        except ValueError:
            continue
    if not found:
        return []
    rows = -(-len(found) // COLUMNS)
    columns = min(len(found), COLUMNS)
    drawn = new_figure(4.2 * columns, 2.8 * rows)
    axes = np.atleast_1d(drawn.subplots(rows, columns, squeeze=False)).ravel()
    for axis, (one, t, (low, middle, high)) in zip(axes, found, strict=False):
        axis.fill_between(t, low, high, alpha=0.3)
        axis.plot(t, middle)
        axis.set_title(one.name, fontsize=9, wrap=True)
        axis.set_xlabel("time / duration of the run")
        axis.set_ylabel(f"[{one.unit}]" if one.unit else "value")
    for axis in axes[len(found) :]:
        axis.set_visible(False)
    text = "<h2>Signals over time</h2><p>Median, and the band that holds 90 % of the cases.</p>"
    return [text, _picture(drawn, "bands of the signals over time")]


def _sensitivity(result: Any) -> str:
    table = result.sensitivity()
    names = list(next(iter(table.values()), {}))
    if not names:
        return "<p>Only seeds varied.</p>"
    rows = ["<tr><th></th>" + "".join(f"<th>{escape(n)}</th>" for n in names) + "</tr>"]
    for criterion, row in table.items():
        cells = []
        for name in names:
            value, p = row[name]
            text = f"{value:+.2f}" if np.isfinite(value) else "–"
            cells.append(f"<td><b>{text}</b></td>" if p < 0.01 else f"<td>{text}</td>")
        rows.append(f"<tr><th>{escape(criterion)}</th>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _worst(result: Any) -> str:
    rows = [
        "<tr><th>case</th><th>values of the variations</th><th>outcome</th><th>replay</th></tr>"
    ]
    for one in result.worst(count=8):
        inputs = ", ".join(
            f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
            for name, value in one.inputs.items()
        )
        outcome = "success" if one.is_success else one.message or one.status
        rows.append(
            f"<tr><td>{one.number} (seed {one.seed})</td><td>{escape(inputs)}</td>"
            f"<td>{escape(outcome)}</td><td><code>campaign.replay({one.key[:8]!r})</code></td></tr>"
        )
    return f"<table>{''.join(rows)}</table>"


def _picture(drawn: Figure, alt: str) -> str:
    data = io.BytesIO()
    drawn.savefig(data, format="png", dpi=90)
    text = base64.b64encode(data.getvalue()).decode()
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{text}">'
