"""The text of a migrated spec: the old text with as few changes as it takes, so that comments stay."""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.convert.importing.import_job import rewrite_document
from jobgen.convert.migrate.draft import Path
from jobgen.model.data import Data, TracedKey, TracedScalar, location_of, untraced
from jobgen.model.finding import TextEdit
from jobgen.pipeline.trace import Job
from jobgen.repo import layout
from jobgen.yamlio.edit import EditRefusedError, apply_edits
from jobgen.yamlio.read import read


def rewrite_job(file: layout.File, position: int, after: dict[str, Data]) -> str:
    """One document of a file, changed into another."""
    lines = file.content.decode("utf-8").replace("\r\n", "\n").split("\n")
    documents = read(file.content, file.path, traced=True).documents
    first, last = _bounds(lines, documents[position].location.line)
    own = ("\n".join(lines[first - 1 : last]) + "\n").encode()
    [marked] = [document.data for document in read(own, file.path, traced=True).documents]
    try:
        text = apply_edits(own, file.path, list(_edits(marked, after))).decode()
        if [document.data for document in read(text.encode(), "").documents] == [after]:
            return text
    except EditRefusedError:
        pass
    return rewrite_document(own.decode(), after)


def _bounds(lines: list[str], begin: int) -> tuple[int, int]:
    first = next((number for number in range(begin, 0, -1) if lines[number - 1].startswith("---")), 0) + 1
    after = (number for number in range(begin + 1, len(lines) + 1) if lines[number - 1].startswith("---"))
    last = next(after, len(lines) + 1) - 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return first, last


def _edits(marked: Data, after: Data) -> Iterator[TextEdit]:
    """The changes that make one map another."""
    anchor: TracedKey | None = None
    for key, value in marked.items():
        if key not in after:
            yield TextEdit("remove", key.location)
            continue
        anchor = key
        if untraced(value) == after[key] and type(untraced(value)) is type(after[key]):
            continue
        if isinstance(value, dict) and value and isinstance(after[key], dict) and after[key]:
            yield from _edits(value, after[key])
        elif isinstance(value, TracedScalar) and not isinstance(after[key], (dict, list)):
            yield TextEdit("set", value.location, after[key])
        else:
            raise EditRefusedError("a list or a map is another one now")
    added = [(key, value) for key, value in after.items() if key not in marked]
    if added and anchor is None:
        raise EditRefusedError("there is nothing to put an entry behind")
    # Each is put right behind the same entry, so the last one comes first.
    for key, value in reversed(added):
        assert anchor is not None, "checked above"
        yield TextEdit("add", anchor.location, value, key)


def find_line(job: Job, field: Path) -> int:
    """The line on which a field of a spec is said, or the nearest thing above it."""
    node: Data = job.traced_document().data["spec"]
    line = job.start().line
    for step in field:
        key = next((key for key in node if key == step), None) if isinstance(node, dict) else None
        location = location_of(key) if key is not None else None
        if key is None or location is None:
            break
        line, node = location.line, node[key]
    return line
