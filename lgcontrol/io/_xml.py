"""XML with the place of each element, and a cursor that reads it without failing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from xml.parsers import expat

from ._findings import Report, UrdfError

# Ten times the largest robot files in use (meshes live elsewhere); beyond these the file is a
# mistake or an attack, and reading it would only cost memory.
MAX_BYTES = 16 * 2**20
MAX_DEPTH = 64
MAX_ELEMENTS = 200_000
MAX_ATTRIBUTES = 64

_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "ascii",
    "ascii": "ascii",
    "iso-8859-1": "latin-1",
    "latin-1": "latin-1",
    "latin1": "latin-1",
    "windows-1252": "cp1252",
    "cp1252": "cp1252",
}
_DECLARED = re.compile(rb"\s*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([^\"'>]{1,40})[\"']")
# What every C library reads in every locale; float() alone would also take 1_000, nan, infinity
# and the digits of other scripts.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"[^ \t\r\n]+")
_LONGEST_NUMBER = 128


@dataclass(slots=True)
class Element:
    """One XML element: its tag, attributes, child elements and the line it starts on."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)


def parse_xml(data: bytes | str, report: Report) -> Element:
    """Root of the element tree.

    Declarations that make XML dangerous (document types, entities) are refused, and so is
    anything above the limits of size, depth and count.
    """
    text = data if isinstance(data, str) else _decode(data, report)
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        raise report.error("this is a binary file (it holds NUL bytes), not XML text", None)
    if not text.strip():
        raise report.error("the file is empty; a URDF file holds one <robot> element", None)
    if not text.lstrip().startswith("<"):
        start = text.strip().splitlines()[0][:40]
        raise report.error(f"this is not XML: it starts with {start!r} instead of '<'", 1)
    try:
        encoded = text.encode("utf-8")
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise report.error("the text holds a lone surrogate, which is no character", line) from None
    _check_size(len(encoded), report)
    return _TreeBuilder(report).parse(encoded, text)


def _check_size(size: int, report: Report) -> None:
    if size > MAX_BYTES:
        raise report.error(
            f"the file has more than {MAX_BYTES // 2**20} MiB, the limit for a robot description; "
            "keep meshes in files of their own",
            None,
        )


def _decode(data: bytes, report: Report) -> str:
    """Text of the file by its byte-order mark, its XML declaration, or as UTF-8."""
    _check_size(len(data), report)
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise report.error(
            "the file is UTF-32 text, which XML readers do not take; save as UTF-8", 1
        )
    declared = _DECLARED.match(data)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        name, codec = "UTF-16", "utf-16"
    elif declared and not data.startswith(b"\xef\xbb\xbf"):
        name = declared.group(1).decode("ascii", "replace")
        codec = _ENCODINGS.get(name.lower(), "")
        if not codec:
            raise report.error(
                f'the XML declaration names encoding="{name}"; expected one of UTF-8, UTF-16, '
                "US-ASCII, ISO-8859-1, windows-1252: save the file as UTF-8",
                1,
            )
    else:
        name, codec = "UTF-8", "utf-8"
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        if b"\0" in data[:1024]:
            raise report.error(
                "this is a binary file (it holds NUL bytes), not XML", None
            ) from None
        line = data.count(b"\n", 0, error.start) + 1
        raise report.error(
            f"byte 0x{data[error.start]:02x} is not {name.upper()} text; save the file as UTF-8, "
            'or name its encoding in the first line: <?xml version="1.0" encoding="ISO-8859-1"?>',
            line,
        ) from None


class _TreeBuilder:
    """The expat handlers and the state between them."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EndDoctypeDeclHandler = self.doctype_end
        self.parser.EntityDeclHandler = self.entity

    def parse(self, data: bytes, text: str) -> Element:
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            raise self.report.error(self.explain(error, text), error.lineno) from None
        assert self.root is not None, "expat accepts no document without an element"
        return self.root

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self.count += 1
        if tag.startswith("xacro:"):
            raise self.report.error(
                f"<{tag}>: this is a xacro file, not yet a URDF; run xacro first: "
                "xacro robot.urdf.xacro > robot.urdf",
                line,
            )
        if len(self.open) >= MAX_DEPTH:
            raise self.report.error(f"<{tag}> is nested deeper than {MAX_DEPTH} elements", line)
        if self.count > MAX_ELEMENTS:
            raise self.report.error(f"the file has more than {MAX_ELEMENTS} elements", line)
        if len(attributes) > MAX_ATTRIBUTES:
            raise self.report.error(
                f"<{tag}> has {len(attributes)} attributes, more than {MAX_ATTRIBUTES}", line
            )
        element = Element(tag, attributes, line)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, tag: str) -> None:
        self.open.pop()

    def doctype(
        self, name: str, system_id: str | None, public_id: str | None, has_internal_subset: bool
    ) -> None:
        # An internal subset goes on to name its first entity, which makes the better message.
        if system_id or not has_internal_subset:
            outside = f' from "{system_id}"' if system_id else ""
            self.refuse(f"<!DOCTYPE {name}> declares a document type{outside}")

    def doctype_end(self) -> None:
        self.refuse("<!DOCTYPE> declares a document type")

    def entity(
        self,
        name: str,
        is_parameter: bool,
        value: str | None,
        base: str | None,
        system_id: str | None,
        public_id: str | None,
        notation: str | None,
    ) -> None:
        outside = f', read from "{system_id}"' if system_id else ""
        self.refuse(f'<!ENTITY {name}> declares the entity "{name}"{outside}')

    def refuse(self, what: str) -> None:
        raise self.report.error(
            f"{what}; document types and entities are refused, because they can read other files "
            "or expand without end: delete the <!DOCTYPE ...> and write the values out",
            self.parser.CurrentLineNumber,
        )

    def explain(self, error: expat.ExpatError, text: str) -> str:
        """Say what expat's message means for the one who wrote the file."""
        reason = expat.ErrorString(error.code)
        inner = self.open[-1] if self.open else None
        opened = f"<{inner.tag}>, opened in line {inner.line}," if inner else ""
        if reason == expat.errors.XML_ERROR_TAG_MISMATCH and inner:
            return f"not well-formed XML: {opened} is closed by a different tag"
        if reason in (expat.errors.XML_ERROR_NO_ELEMENTS, expat.errors.XML_ERROR_UNCLOSED_TOKEN):
            where = f"{opened} is not closed" if inner else "no complete element"
            return f"not well-formed XML: the file ends too early: {where}"
        if reason == expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT:
            tag = self.root.tag if self.root else "robot"
            return f"not well-formed XML: there is more text after </{tag}>; a file is one element"
        if reason == expat.errors.XML_ERROR_MISPLACED_XML_PI:
            return "the <?xml ...?> line must be the very first; delete what stands before it"
        if reason == expat.errors.XML_ERROR_UNDEFINED_ENTITY:
            return (
                "not well-formed XML: an undefined entity; write & as &amp; (only &amp; &lt; &gt; "
                "&quot; &apos; and character numbers are known)"
            )
        within = f", inside <{inner.tag}>" if inner else ""
        place = f"at column {error.offset + 1}{within}"
        if reason == expat.errors.XML_ERROR_INVALID_TOKEN:
            return f"not well-formed XML: unexpected character {place}; check quotes and brackets"
        return f"not well-formed XML: {reason} {place}"


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

    The owner is the named element around this one, such as ``joint "elbow"``, empty at the top. The
    trail are the tags from there to it, ``<inertial><mass>``. The report makes errors.
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
        """Find the only child with this tag."""
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
