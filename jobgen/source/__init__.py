"""YAML and JSON text to data, exactly as Kubernetes reads it; what is wrong comes back as findings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jobgen.model import Data, Finding, Leaf, Mark, Related, Severity, plain
from jobgen.source.limits import MAX_BYTES, MAX_DEPTH
from jobgen.source.lines import read_lines
from jobgen.source.scalars import through_json

_FIRST_TEXT = re.compile(rb"^[ \t]*[^ \t\r\n#]", re.MULTILINE)
_SEPARATOR = re.compile(rb"^---[^\n]*(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its data and where it begins."""

    data: Data
    mark: Mark


@dataclass(frozen=True, slots=True)
class Source:
    """A file that has been read: its documents, and what is wrong with its text."""

    file: str
    documents: tuple[Document, ...]
    findings: tuple[Finding, ...] = ()


def read(content: bytes, file: str, *, marked: bool = False) -> Source:
    """All documents of a file; with `marked`, every key and scalar carries its place."""
    if len(content) > MAX_BYTES:
        size = f"{len(content) / 1024 / 1024:.0f} MiB"
        return Source(
            file,
            (),
            (
                _error(
                    "file-too-large",
                    f"{size} is too large for a manifest; the limit is {MAX_BYTES // 1024 // 1024} MiB",
                    Mark(file),
                ),
            ),
        )
    text, findings = _decoded(content, file)
    documents: list[Document] = []
    for chunk, line in _chunks(text, file, findings):
        data, found = _document(chunk, file, line, marked=marked)
        findings += found
        if data is None:
            continue
        if not isinstance(data, dict):
            shown = "a list" if isinstance(data, list) else f"`{str(plain(data))[:40]}`"
            findings.append(
                _error(
                    "not-a-mapping", f"a document must be a mapping, and this is {shown}", _first_mark(data, file, line)
                )
            )
            continue
        documents.append(Document(data, Mark(file, line + _blank_lines(chunk))))
    return Source(file, tuple(documents), tuple(findings))


def _decoded(content: bytes, file: str) -> tuple[bytes, list[Finding]]:
    """UTF-8 without a byte order mark; kubectl also takes UTF-16, and nothing else does."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return b"", [_error("invalid-encoding", "the file is UTF-16; save it as UTF-8", Mark(file))]
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        message = f"byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8 text"
        return b"", [_error("invalid-encoding", message, Mark(file, line, column))]
    return content, []


def _chunks(text: bytes, file: str, findings: list[Finding]) -> Iterator[tuple[bytes, int]]:
    """The text between separator lines, with the line each part begins on, as kubectl cuts it."""
    if b"---" not in text:
        yield text, 1
        return
    start, line = 0, 1
    for match in _SEPARATOR.finditer(text):
        yield text[start : match.start()], line
        line += text.count(b"\n", start, match.end())
        start = match.end()
        after = match[0][3:].strip()
        if after and not after.startswith(b"#"):
            shown = after.decode("utf-8", "replace")
            message = f"`{shown[:40]}` follows a document separator; Kubernetes takes only a comment there"
            findings.append(_error("invalid-separator", message, Mark(file, line - match[0].count(b"\n"), 4)))
    yield text[start:], line


def _document(chunk: bytes, file: str, line: int, *, marked: bool) -> tuple[Data, list[Finding]]:
    if not marked:
        sure, data = read_lines(chunk.decode("utf-8"))
        if sure:
            return data, []
    if chunk.lstrip().startswith(b"{"):
        found = _json(chunk, marked=marked)
        if found is not None:
            return found
    # The exact reader brings in the YAML library; most runs never need it.
    from jobgen.source.events import compose

    return compose(chunk, file, line, marked=marked)


class _TwiceError(Exception):
    """A JSON object names a key twice; the YAML reader will say where."""


def _json(chunk: bytes, *, marked: bool) -> tuple[Data, list[Finding]] | None:
    """A chunk that begins with a brace is JSON if it parses as JSON; else YAML gets its turn."""
    if marked or chunk.count(b"{") + chunk.count(b"[") > MAX_DEPTH * 50:
        return None
    try:
        value = json.loads(chunk, object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_whole)
    except (ValueError, RecursionError, _TwiceError):
        return None
    return (through_json_tree(value), []) if _depth(value) <= MAX_DEPTH else None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _TwiceError
    return mapping


def _constant(name: str) -> Any:
    raise ValueError(name)


def _whole(digits: str) -> Any:
    number = int(digits) if len(digits) < 40 else float(digits)
    return number if -(2**63) <= number < 2**63 else float(number)


def through_json_tree(value: Any) -> Any:
    """Every number of a tree as Kubernetes reads it back."""
    if isinstance(value, dict):
        return {key: through_json_tree(child) for key, child in value.items()}
    if isinstance(value, list):
        return [through_json_tree(child) for child in value]
    return through_json(value)


def _depth(value: Any) -> int:
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            child
            for node in level
            if isinstance(node, (dict, list))
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return depth


def _first_mark(data: Data, file: str, line: int) -> Mark:
    return data.mark if isinstance(data, Leaf) else Mark(file, line)


def _blank_lines(chunk: bytes) -> int:
    """How many lines of comments and space stand before the document."""
    first = _FIRST_TEXT.search(chunk)
    return chunk.count(b"\n", 0, first.start()) if first else 0


def _error(rule: str, message: str, mark: Mark, related: tuple[Related, ...] = ()) -> Finding:
    return Finding(rule, "yaml", Severity.ERROR, message, mark, related=related)
