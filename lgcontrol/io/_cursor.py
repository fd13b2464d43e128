"""A place in the file: reads attributes and children, and says where when it cannot."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import lru_cache

from ._findings import Report, UrdfError
from ._xml import Element

# What every C library reads in every locale; float() alone would also take 1_000, nan, infinity
# and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^ \t\r\n]+")
_LONGEST_NUMBER = 128

# (pattern of what was written, what to do about it)
_REMEDIES = (
    (re.compile(r"\$[({]"), "run xacro first"),
    (re.compile(r"(?i)[+-]?(nan|inf|infinity|1\.#\w+)"), "write a finite number"),
    (re.compile(r"[+-]?[0-9.]+,[0-9.]+"), "write a decimal point, not a comma"),
    (re.compile(r".*,.*"), "separate numbers by spaces, not commas"),
    (
        re.compile(r"(?i)[0-9.+-]+\s*(deg|°|rad|mm|cm|m|kg|g|%)\w*"),
        "leave out the unit (SI, radians)",
    ),
)


def quote(value: str, longest: int = 60) -> str:
    """Text in double quotes, shortened in the middle when it is long."""
    text = value if len(value) <= longest else f"{value[: longest - 15]} ... {value[-10:]}"
    return f'"{text}"'


@lru_cache(maxsize=4096)
def closest(name: str, known: tuple[str, ...], cutoff: float = 0.75) -> str | None:
    """Find the known name that `name` looks like a misspelling of."""
    if len(name) > 40:
        return None
    matches = get_close_matches(name.lower(), known, 1, cutoff)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` (did you mean "x"?)`` or nothing."""
    match = get_close_matches(name[:80], list(known), 1, 0.6)
    return f' (did you mean "{match[0]}"?)' if match else ""


class Cursor:
    """An element with the names that lead to it and the report of its file.

    Parameters
    ----------
    element : Element
        The XML element.
    report : Report
        Receives findings and makes errors.
    owner : str
        The named element around this one, such as ``joint "elbow"``; empty at the top.
    trail : str
        The tags from the owner to this element, such as ``<inertial><mass>``.
    """

    __slots__ = ("element", "owner", "report", "trail")

    def __init__(self, element: Element, report: Report, owner: str = "", trail: str = "") -> None:
        self.element = element
        self.report = report
        self.owner = owner
        self.trail = trail

    @property
    def line(self) -> int:
        """Line the element starts on."""
        return self.element.line

    @property
    def label(self) -> str:
        """How messages name this element."""
        return f"{self.owner} {self.trail}".strip() or f"<{self.element.tag}>"

    def fail(self, message: str) -> UrdfError:
        """Make the error to raise."""
        return self.report.error(message, self.line, self.label)

    def warn(self, message: str) -> None:
        """Keep a likely mistake."""
        self.report.add("warning", message, self.line, self.label)

    def note(self, message: str) -> None:
        """Keep a remark on how the element was understood."""
        self.report.add("note", message, self.line, self.label)

    def all(self, *tags: str) -> Iterator[Cursor]:
        """Children with one of the tags, in file order."""
        for child in self.element.children:
            if child.tag in tags:
                yield Cursor(child, self.report, self.owner, f"{self.trail}<{child.tag}>")

    def child(self, tag: str) -> Cursor | None:
        """Find the child with this tag; a second one is a warning."""
        found = list(self.all(tag))
        if len(found) > 1:
            found[1].warn(f"<{tag}> appears {len(found)} times; only the first is used")
        return found[0] if found else None

    def required_child(self, tag: str, example: str) -> Cursor:
        """Find the only child with this tag.

        Raises
        ------
        UrdfError
            If there is none, or more than one.
        """
        found = list(self.all(tag))
        if not found:
            raise self.fail(f"the element <{tag}> is missing; add {example}")
        if len(found) > 1:
            raise found[1].fail(f"<{tag}> appears {len(found)} times; keep one")
        return found[0]

    def text(self, attribute: str) -> str | None:
        """Read an attribute as text; unexpanded xacro is an error."""
        value = self.element.attributes.get(attribute)
        if value is not None and ("${" in value or "$(" in value):
            raise self.fail(
                f"{attribute}={quote(value)} holds a xacro expression; run xacro first: "
                "xacro robot.urdf.xacro > robot.urdf"
            )
        return value

    def required_text(self, attribute: str) -> str:
        """Read an attribute that must be there and not be empty."""
        value = self.text(attribute)
        if value is None:
            raise self.fail(
                f"the attribute {attribute} is missing; "
                f'write <{self.element.tag} {attribute}="...">'
            )
        if not value.strip():
            raise self.fail(f'{attribute}="" is empty; expected a name')
        return value

    def numbers(self, attribute: str, count: int, meaning: str) -> tuple[float, ...] | None:
        """Read an attribute as `count` finite numbers, or None when it is absent."""
        value = self.text(attribute)
        if value is None:
            return None
        words = _WORD.findall(value)
        if all(len(word) <= _LONGEST_NUMBER and _NUMBER.fullmatch(word) for word in words):
            if len(words) != count:
                found = len(words) or "none"
                raise self.expected(attribute, value, count, meaning, f"found {found}")
            numbers = tuple(map(float, words))
            for number, word in zip(numbers, words, strict=True):
                if number in (float("inf"), float("-inf")):
                    found = f"{quote(word)} is too large for a double"
                    raise self.expected(attribute, value, count, meaning, found)
            return numbers
        wrong = next(w for w in words if len(w) > _LONGEST_NUMBER or not _NUMBER.fullmatch(w))
        remedy = next((text for pattern, text in _REMEDIES if pattern.fullmatch(wrong)), "")
        found = f"found {quote(wrong)}" + (f"; {remedy}" if remedy else "")
        raise self.expected(attribute, value, count, meaning, found)

    def expected(
        self, attribute: str, value: str, count: int, meaning: str, found: str
    ) -> UrdfError:
        """Make the error for an attribute that is not the numbers it should be."""
        amount = "a number" if count == 1 else f"{count} numbers"
        return self.fail(f"{attribute}={quote(value)}: expected {amount} ({meaning}), {found}")

    def number(self, attribute: str, meaning: str) -> float | None:
        """Read an attribute as one finite number, or None when it is absent."""
        numbers = self.numbers(attribute, 1, meaning)
        return None if numbers is None else numbers[0]

    def required_number(self, attribute: str, meaning: str) -> float:
        """Read an attribute that must be one finite number."""
        number = self.number(attribute, meaning)
        if number is None:
            raise self.fail(
                f"the attribute {attribute} ({meaning}) is missing; "
                f'write <{self.element.tag} {attribute}="...">'
            )
        return number

    def check_attributes(self, *known: str) -> None:
        """Warn of attributes that look like misspellings of known ones."""
        for name in self.element.attributes:
            if name not in known and ":" not in name and (match := closest(name, known, 0.6)):
                self.report.misspelt(f"the attribute {name}", f'"{match}"', self.line, self.label)

    def check_children(self, *known: str) -> None:
        """Warn of child elements that look like misspellings of known ones."""
        for child in self.element.children:
            if child.tag not in known and (match := closest(child.tag, known)):
                self.report.misspelt(f"<{child.tag}>", f"<{match}>", child.line, self.label)
