"""Write a migrated spec: edit the old text as little as possible, so that comments stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobgen.features.convert.importing.collect import find_bounds
from jobgen.features.convert.importing.import_job import rewrite_document
from jobgen.model.data import Plain, TracedKey, TracedScalar, location_of, untraced
from jobgen.model.finding import TextEdit
from jobgen.repo.files import File
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read


def replace_documents(file: File, documents: Mapping[int, Mapping[str, Plain] | str]) -> str:
    """The text of a file with some of its documents changed; one that is a text is replaced as a whole."""
    lines = _split_lines(file)
    for position in sorted(documents, reverse=True):
        new = documents[position]
        first, last = _find_lines(lines, file, position)
        text = new if isinstance(new, str) else rewrite_job(file, position, new)
        lines[first - 1 : last] = text.removesuffix("\n").split("\n")
    return "\n".join(lines).rstrip("\n") + "\n"


def _split_lines(file: File) -> list[str]:
    return file.content.decode("utf-8").replace("\r\n", "\n").split("\n")


def _find_lines(lines: list[str], file: File, position: int) -> tuple[int, int]:
    """The first and the last line of a document, without empty lines at its end."""
    first, last = find_bounds(lines, read(file.content, file.path, traced=True).documents[position].location.line)
    while last > first and not lines[last - 1].strip():
        last -= 1
    return first, last


def rewrite_job(file: File, position: int, document: Mapping[str, Plain]) -> str:
    """The text of one document of a file, changed into another document."""
    lines = _split_lines(file)
    first, last = _find_lines(lines, file, position)
    old_text = "\n".join(lines[first - 1 : last]) + "\n"
    [traced] = [each.data for each in read(old_text.encode(), file.path, traced=True).documents]
    try:
        text = apply_edits(old_text.encode(), file.path, list(_list_edits(traced, document))).decode()
        if [each.data for each in read(text.encode(), "").documents] == [document]:
            return text
    except EditRefusedError:
        pass
    return rewrite_document(old_text, document)


def _list_edits(traced: Any, after: Mapping[str, Any]) -> Iterator[TextEdit]:
    """The edits that turn one map into another."""
    anchor: TracedKey | None = None
    for key, value in traced.items():
        if key not in after:
            yield TextEdit("remove", key.location)
            continue
        anchor = key
        if untraced(value) == after[key] and type(untraced(value)) is type(after[key]):
            continue
        if isinstance(value, dict) and value and isinstance(after[key], dict) and after[key]:
            yield from _list_edits(value, after[key])
        elif isinstance(value, TracedScalar) and not isinstance(after[key], (dict, list)):
            yield TextEdit("set", value.location, after[key])
        else:
            raise EditRefusedError("a list or a map changed as a whole")
    added = [(key, value) for key, value in after.items() if key not in traced]
    if added and anchor is None:
        raise EditRefusedError("there is no entry to add another one after")
    # Each entry is added directly after the anchor, so the last one comes first.
    for key, value in reversed(added):
        assert anchor is not None, "checked above"
        yield TextEdit("add", anchor.location, value, key)


def find_line(traced: Any, field: Sequence[str | int], start: int) -> int:
    """The line of a field in a traced spec, or of its nearest parent, or where the document starts."""
    node, line = traced, start
    for step in field:
        if isinstance(step, int) and isinstance(node, list) and step < len(node):
            node = node[step]
            continue
        key = next((key for key in node if key == step), None) if isinstance(node, dict) else None
        location = location_of(key) if key is not None else None
        if key is None or location is None:
            break
        line, node = location.line, node[key]
    return line
