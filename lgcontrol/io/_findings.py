"""What a reader has to say: errors that stop it, findings that do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

Severity = Literal["note", "warning"]
SHOWN = 20  # warnings of one error


def locate(path: str | PathLike[str] | None, line: int | None) -> str:
    """``path:line: ``, the prefix editors and terminals turn into a link."""
    place = "<text>" if path is None else str(path)
    return f"{place}: " if line is None else f"{place}:{line}: "


class UrdfError(ValueError):
    r"""A robot description that cannot be read, with the place and the remedy.

    The message begins with ``path:line:``.

    Parameters
    ----------
    message : str
        Finding, expectation and remedy.
    path : str or path, optional
        The file; ``<text>`` stands in the message when there is none.
    line : int, optional
        Line in the file, counted from 1; None when the whole file is meant.
    element : str, optional
        The element, such as ``joint "elbow" <limit>``.

    Examples
    --------
    >>> from lgcontrol.io import UrdfError, parse_urdf
    >>> try:
    ...     parse_urdf('<robot name="arm">\n<link/></robot>')
    ... except UrdfError as error:
    ...     print(error)
    ...     print(error.line, error.element)
    <text>:2: <link>: the attribute name is missing; write <link name="...">
    2 <link>
    """

    def __init__(
        self,
        message: str,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        element: str | None = None,
    ) -> None:
        super().__init__(locate(path, line) + message)
        self.message = message
        self.path = path
        self.line = line
        self.element = element

    def __reduce__(self) -> tuple[type[UrdfError], tuple[object, ...]]:
        """Pickle with the parts, so that worker processes can hand errors back."""
        return type(self), (self.message, self.path, self.line, self.element)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a file that reads, but deserves a look.

    Parameters
    ----------
    severity : {"note", "warning"}
        A warning is a likely mistake and an error under ``strict=True``; a note only tells
        how the file was understood.
    message : str
        Finding and remedy.
    line : int, optional
        Line in the file, counted from 1.
    element : str, optional
        The element, such as ``link "base" <inertial>``.

    Examples
    --------
    >>> from lgcontrol.io._findings import Finding
    >>> print(Finding("warning", "the mass -1 kg is negative", 7, 'link "base" <inertial>'))
    line 7: warning: link "base" <inertial>: the mass -1 kg is negative
    """

    severity: Severity
    message: str
    line: int | None = None
    element: str | None = None

    def __str__(self) -> str:
        """One line for a log."""
        place = "" if self.line is None else f"line {self.line}: "
        element = "" if self.element is None else f"{self.element}: "
        return f"{place}{self.severity}: {element}{self.message}"


class Report:
    """Collects the findings of one file and makes its errors."""

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = path
        self.findings: list[Finding] = []
        self.misspellings: list[Finding] = []

    def error(self, message: str, line: int | None, element: str | None = None) -> UrdfError:
        """Make the error to raise; the element leads the message, misspellings end it."""
        text = message if element is None else f"{element}: {message}"
        # What is reported as missing may stand in the file under a misspelt name.
        for finding in self.misspellings[-3:]:
            text += f" [see also line {finding.line}: {finding.message}]"
        return UrdfError(text, self.path, line, element)

    def add(
        self, severity: Severity, message: str, line: int | None, element: str | None = None
    ) -> None:
        """Keep a finding."""
        self.findings.append(Finding(severity, message, line, element))

    def misspelt(self, what: str, guess: str, line: int, element: str) -> None:
        """Keep the warning that a name looks like another one."""
        self.add(
            "warning", f"{what} is not known and ignored; did you mean {guess}?", line, element
        )
        self.misspellings.append(self.findings[-1])


def refuse_warnings(findings: Sequence[Finding], path: str | PathLike[str] | None) -> None:
    """Raise one error that lists every warning, placed at the first."""
    warnings = [finding for finding in findings if finding.severity == "warning"]
    if not warnings:
        return
    first = warnings[0]
    subject = "" if first.element is None else f"{first.element}: "
    lines = [f"{subject}{first.message}"]
    if len(warnings) > 1:
        lines.append(f"strict reading found {len(warnings) - 1} more:")
        lines += [f"  {finding}" for finding in warnings[1:SHOWN]]
    if len(warnings) > SHOWN:
        lines.append(f"  and {len(warnings) - SHOWN} more")
    raise UrdfError("\n".join(lines), path, first.line, first.element)
