"""Read YAML and JSON exactly as Kubernetes does. Errors are returned as findings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from jobgen.model.data import Location, value_of
from jobgen.model.finding import Finding, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.limits import MAX_BYTES, MAX_FINDINGS, TOO_MANY_FINDINGS
from jobgen.model.named_tuple import NamedTuple
from jobgen.yamlio.read.fast import read_lines
from jobgen.yamlio.read.scalars import quote, to_text

# Pairs of separators without anything change nothing.
_SEPARATOR = lazy_pattern(r"^---([^\n]*(?:\n|\Z))((?:---\n---\n)*)", re.MULTILINE)
_NOTHING = lazy_pattern(r"(?:[ ]*(?:#[ -~]*)?\n)*")
_CONTENT = lazy_pattern(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*")
# The white space of Go; Python's includes a few more control characters.
_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_AFTER_SEPARATOR = ("", " ", "\t", "\n", "\r", "\x85", "\u2028", "\u2029")
_LINE_OF_SPACE = lazy_pattern(rf"[{_SPACE}]*?(?:\n|(?=[^{_SPACE}])|\Z)")


class _Chunk(NamedTuple):
    """The text of one document, where it begins, and whether its separator belongs to it."""

    text: str
    line: int
    column: int
    opened: bool


MISREAD_KEY = "ambiguous-scalar"
"""The rule about a key that YAML reads as another text."""


class YamlDocument(NamedTuple):
    """One document of a file, a mapping, and where it begins."""

    data: Any
    location: Location
    is_repaired: bool = False
    """True if its text has syntax errors, and the data is what its author probably meant."""


class Source(NamedTuple):
    """A file that has been read: its documents, and the findings about its text."""

    file: str
    documents: tuple[YamlDocument, ...]
    findings: tuple[Finding, ...] = ()
    repaired: tuple[YamlDocument, ...] = ()
    """Documents with syntax errors, as they were probably meant. They are checked, and never used."""
    misread: tuple[Finding, ...] = ()
    """Keys that are another text in JSON. In the formats of jobgen, the checks of values report them, too."""


def read(content: bytes, file: str, *, traced: bool = False) -> Source:
    """Read all documents of a file; with `traced`, every key and scalar has its location."""
    findings: list[Finding] = []
    documents: list[YamlDocument] = []
    repaired: list[YamlDocument] = []
    for document in _read_documents(_decode(content, file, findings), file, findings, traced=traced):
        data, location, is_repaired = document
        if len(findings) > MAX_FINDINGS:
            findings[MAX_FINDINGS:] = [_error("too-many-errors", TOO_MANY_FINDINGS, findings[MAX_FINDINGS].location)]
            break
        if value_of(data) is None:
            continue
        if isinstance(data, dict):
            (repaired if is_repaired else documents).append(document)
        elif not is_repaired:
            found = "a list" if isinstance(data, list) else quote(to_text(value_of(data)))
            if isinstance(data, list) and data and isinstance(data[0], dict) and "kind" in data[0]:
                found += " of objects; remove each `-`, and write `---` between the objects"
            findings.append(_error("not-a-mapping", f"a document must be a mapping, and this is {found}", location))
    misread = tuple([each for each in findings if each.rule == MISREAD_KEY]) if findings else ()
    kept = [each for each in findings if each.rule != MISREAD_KEY] if misread else findings
    return Source(file, tuple(documents), tuple(kept), tuple(repaired), misread)


@lru_cache(maxsize=64)
def read_shared(content: bytes, file: str) -> Source:
    """Read a file without locations. The last files are kept, so their data must not be changed.

    A file with findings is read twice: to check it, and to search it for secrets when its batch is done.
    """
    return read(content, file)


def _decode(content: bytes, file: str, findings: list[Finding]) -> str:
    """Decode the text and drop its byte order mark. Of all tools, only kubectl also reads UTF-16 and invalid UTF-8."""
    if len(content) > MAX_BYTES:
        message = f"`{len(content)}` bytes are too many for a manifest; the limit is {MAX_BYTES}"
        findings.append(_error("file-too-large", message, Location(file)))
        return ""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", "replace")
        finding = _error("invalid-encoding", "the file is `UTF-16`; save it as UTF-8", Location(file))
        # jobgen's own formats are UTF-8.
        is_manifest = not any(part in text for part in ("\0", "\ufffd", "jobgen.dev/"))
        findings.append(finding._replace(severity=Severity.WARNING) if is_manifest else finding)
        return text if is_manifest else ""
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        place = Location(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
        message = f"byte `0x{content[error.start]:02x}` is not UTF-8; save the file as UTF-8 text"
        findings.append(_error("invalid-encoding", message, place))
        return ""


def _read_documents(text: str, file: str, findings: list[Finding], *, traced: bool) -> Iterator[YamlDocument]:
    """Read the documents of a text: those of a JSON stream if it begins with one, then those between `---` lines."""
    line, column = 1, 0
    # kubectl looks at as many characters to distinguish JSON from YAML.
    if text[:4096].lstrip(_SPACE).startswith("{"):
        documents, rest = _read_json_stream(text, file, findings, traced=traced)
        yield from documents
        if rest is None:
            return
        line += text.count("\n", 0, rest)
        column = rest - (text.rfind("\n", 0, rest) + 1)
        text = text[rest:]
    for chunk in _split_documents(text.replace("\r\n", "\n"), line, column, file, findings):
        if not _NOTHING.fullmatch(chunk.text):
            before = len(findings)
            document = _read_document(chunk, file, findings, traced=traced)
            starts = _find_objects(findings[before:]) if len(findings) > before else []
            if starts:
                yield from _read_objects(chunk, file, findings, before, starts, traced=traced)
            else:
                yield document


def _read_json_stream(
    text: str, file: str, findings: list[Finding], *, traced: bool
) -> tuple[list[YamlDocument], int | None]:
    """Read JSON values while there are any, and return them and where YAML follows: after one value, not after more."""
    from jobgen.yamlio.read.json_text import JsonStream, NotJsonError

    stream = JsonStream(text, file, traced=traced)
    documents: list[YamlDocument] = []
    try:
        for value in stream:
            findings += value.findings
            documents.append(YamlDocument(value.data, value.location, value.is_repaired))
    except NotJsonError as error:
        rest = _LINE_OF_SPACE.match(text, stream.at)
        assert rest is not None
        # To switch to YAML, kubectl looks four bytes ahead, and fails if there are fewer.
        ahead = rest.end() - rest[0].endswith("\n")
        if len(documents) < 2 and len(text[ahead : ahead + 4].encode()) >= 4:
            return documents, rest.end()
        found = text[error.at :].partition("\n")[0]
        message = f"not JSON at {quote(found)}" if found else "not JSON: the text ends in the middle of `{…}`"
        findings.append(_error("yaml-syntax", message, stream.location(error.at, error.at)))
    return documents, None


def _split_documents(text: str, line: int, column: int, file: str, findings: list[Finding]) -> Iterator[_Chunk]:
    """Split a text at its separator lines, as kubectl does."""
    start = 0
    # A separator after a document ends it; a separator after nothing opens the next document.
    opened = False
    # Most files have one document, and searching for dashes is cheaper than matching separators.
    separated = text.startswith("---") or "\n---" in text
    for match in _SEPARATOR.finditer(text) if separated else ():
        chunk = text[start : match.start()]
        yield _Chunk(chunk, line, column, opened)
        line += chunk.count("\n")
        opened = not chunk and not opened
        if problem := _check_separator(match[1], opens=opened):
            findings.append(_error("invalid-separator", problem, Location(file, line, 4 if chunk else column + 4)))
        line, column = line + 1 + match[2].count("\n"), 0
        start = match.end()
    rest = text[start:]
    yield _Chunk(rest if not rest or rest.endswith("\n") else rest + "\n", line, column, opened)


def _check_separator(after: str, *, opens: bool) -> str:
    """The reason for which Kubernetes rejects the rest of a separator line, or an empty string."""
    text = after.strip(_SPACE)
    if text and not text.startswith("#"):
        return f"{quote(text)} follows a document separator; Kubernetes allows only a comment there"
    if opens and after[:1] not in _AFTER_SEPARATOR:
        return f"{quote(after.rstrip())} touches the document separator; put a space between them"
    return ""


def _read_document(chunk: _Chunk, file: str, findings: list[Finding], *, traced: bool) -> YamlDocument:
    is_simple, data = read_lines(chunk.text)
    location = _locate_start(chunk, file)
    if is_simple and not traced:
        return YamlDocument(data, location)
    text, line, column = chunk.text, chunk.line, chunk.column
    if is_simple and isinstance(data, dict) and not column:
        # Imported late: most runs need no locations.
        from jobgen.yamlio.read.locations import UnexpectedTextError, add_locations

        try:
            return YamlDocument(add_locations(data, text, file, line), location)
        except UnexpectedTextError:
            pass  # Only the exact reader knows them.
    # Imported late: the exact reader imports the YAML library, which most runs do not need.
    from jobgen.yamlio.read.exact import compose

    if chunk.opened:
        text, line = f"---\n{text}", line - 1
    elif text.startswith("\ufeff"):
        # Go skips a byte order mark at the very beginning of a document.
        text, column = text[1:], column + 1
    composed = compose(text, file, line, column, traced=traced)
    findings += composed.findings
    return YamlDocument(composed.data, location, composed.is_repaired)


def _find_objects(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings about the keys at which other objects begin, in a document that lacks `---` above them."""
    starts: list[Finding] = []
    keys: set[str] | None = None
    names = set[str]()
    for each in findings:
        if each.rule == "duplicate-key" and each.location.column == 1:
            name = each.values[0]
            names.add(name)
            if keys is None or name in keys:
                starts.append(each)
                keys = set()
            keys.add(name)
    return starts if names >= {"apiVersion", "kind"} else []


def _read_objects(
    chunk: _Chunk, file: str, findings: list[Finding], before: int, starts: Iterable[Finding], *, traced: bool
) -> Iterator[YamlDocument]:
    """Read the objects of a document as if there were a line `---` above each, and report the missing lines."""
    del findings[before:]
    lines = chunk.text.split("\n")
    begins = [0]
    for each in starts:
        at = each.location.line - chunk.line
        message = f"{quote(lines[at])} begins another object; write a line `---` above it"
        findings.append(each._replace(message=message, related=()))
        begins.append(at)
    for begin, end in zip(begins, [*begins[1:], len(lines)], strict=True):
        text = "\n".join(lines[begin:end]) + "\n" * (end < len(lines))
        part = _Chunk(text, chunk.line + begin, 0 if begin else chunk.column, chunk.opened and not begin)
        yield _read_document(part, file, findings, traced=traced)._replace(is_repaired=True)


def _locate_start(chunk: _Chunk, file: str) -> Location:
    """The location of the document's first content, after comments and white space."""
    match = _CONTENT.match(chunk.text)
    assert match is not None
    lines = match[0].count("\n")
    column = match.end() - (match[0].rfind("\n") + 1) + (0 if lines else chunk.column)
    return Location(file, chunk.line + lines, column + 1)


def _error(rule: str, message: str, location: Location) -> Finding:
    return Finding(rule, "yaml", Severity.ERROR, message, location)
