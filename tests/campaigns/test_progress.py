"""What a terminal shows of a campaign, read back from the characters that it is sent."""

import os
import re
import sys
from io import StringIO

import pytest

from lgcontrol.campaigns._case import CaseOutcome, CaseStatus
from lgcontrol.campaigns._progress import CampaignProgress
from lgcontrol.campaigns._sampling import Case

LONG = "position error, mean of the last 0.25 s, attitude error, mean of the last 0.25 s"


class Terminal(StringIO):
    """Standard error of a terminal."""

    def isatty(self):
        return True

    def screen(self):
        """Lines that are seen: carriage returns, line feeds, cursor up, and erasing to the end."""
        lines, row, column = [""], 0, 0
        for up, erase, text in re.findall(r"\x1b\[(\d+)A|(\x1b\[K)|([^\x1b])", self.getvalue()):
            if up:
                row -= int(up)
                assert row >= 0
            elif erase:
                lines[row] = lines[row][:column]
            elif text == "\r":
                column = 0
            elif text == "\n":
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            else:
                lines[row] = lines[row][:column] + text + lines[row][column + 1 :]
                column += 1
        return lines


@pytest.mark.parametrize("columns", [80, 40])
def test_bar_and_table_of_failures_are_rewritten_within_the_width(monkeypatch, columns):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((columns, 24)))
    monkeypatch.setattr("lgcontrol.campaigns._progress.EVERY", -1.0)
    shown = CampaignProgress(8, ["", LONG])
    assert terminal.screen()[0].startswith("[#####...............] 2 of 8 cases, 2")
    for k, reason in enumerate(["", LONG, "b", "", "c", "d"]):
        outcome = CaseOutcome(CaseStatus.COMPLETED, not reason, reason, {})
        shown.tell(Case(k, k, {}), outcome)
    shown.end()
    bar, failed, *table, last = terminal.screen()
    assert bar.startswith("[####################] 8 of 8 cases, 2 from the store, "[: columns - 1])
    assert failed == "5 failed:" and last == ""
    assert [line[:10] for line in table] == [
        f"     {n} × {why}" for n, why in ((2, LONG[0]), (1, "b"), (1, "c"))
    ]
    assert all(len(line) < columns for line in terminal.screen())
    assert (LONG in table[0]) == (len(LONG) + 9 < columns)
