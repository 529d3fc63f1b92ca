"""Cache the result of a lint for each file.

A file is unchanged if its size, times and inode are. If they differ, or are too recent to be trusted, its content
decides. Everything else that a result depends on is part of the cache key.
"""

from __future__ import annotations

import marshal
import os
import time
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen import cache
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Fix, Identity, Related, Severity, TextEdit
from jobgen.repo import layout

if TYPE_CHECKING:
    from jobgen.check.rules import Fact
    from jobgen.pipeline.environment import OverlayUse, Rendered
    from jobgen.report.suppress import Suppression

Encoded = tuple[Any, ...]
"""A value as data that `marshal` writes."""

FileStat = tuple[int, int, int, int]
"""Size, modification time, change time and inode of a file."""


# Two writes within the resolution of the file system's clock leave the same times.
_RACY_NS = 2_000_000_000

_MAX_FILES = 300_000


class FileResult(NamedTuple):
    """The rendered objects and the findings of some files."""

    made: list[Rendered]
    findings: list[Finding]
    names: set[str]
    used: OverlayUse
    rows: list[tuple[str, Fact]]
    comments: list[Suppression]
    unchecked: list[str]
    """The names of jobs that were not checked, or not by every check; a document that is no job has no name."""
    skipped: list[str]
    """Why the file was not read, if it was not."""


Record = tuple[FileStat, int, bytes, Encoded]
"""The stat of a file, the time of it, the digest of its content, and the encoded result."""


class ResultCache:
    """The results of the files of one lint: looked up before the work, stored after it."""

    def __init__(self, *base: bytes | str) -> None:
        self._key = cache.make_key("results", *base)
        self._known: dict[str, Record] = {}
        self._new: dict[str, Record] = {}
        found = cache.get(self._key)
        if found is not None:
            self._known = marshal.loads(found)  # noqa: S302 -- only our own text come back

    def part(self, entry: layout.FileEntry) -> FileResult | None:
        """The result of a file; None if the file must be processed."""
        known = self._known.get(_name(entry)) if entry.content is None and entry.finding is None else None
        stat = stat_file(entry.full) if known else None
        if known is None or stat is None:
            return None
        was, time_ns, digest, encoded = known
        if stat != was or is_racy(stat, time_ns):
            now = time.time_ns()
            file = layout.read_file(entry)
            if file.finding or _digest(file.content) != digest:
                return None
            self._new[_name(entry)] = (stat, now, digest, encoded)
        return decode_result(encoded, entry.path)

    def note(self, entry: layout.FileEntry, record: Record) -> None:
        """Store the result of a file."""
        self._new[_name(entry)] = record

    def save(self) -> None:
        """Write new results to the cache."""
        if self._new:
            kept = {**self._known, **self._new} if len(self._known) < _MAX_FILES else self._new
            cache.put(self._key, marshal.dumps(kept))


class FileSnapshot:
    """A file and its stat before it is processed."""

    __slots__ = ("_content", "_stat", "_time_ns", "entry")

    def __init__(self, entry: layout.FileEntry) -> None:
        self._time_ns = time.time_ns()
        # The stat is taken before the read, so a change in between is noticed next time.
        self._stat = stat_file(entry.full) if entry.content is None and entry.finding is None else None
        file = layout.read_file(entry)
        self._content = None if file.finding else file.content
        self.entry = entry if file.finding else entry._replace(content=file.content)

    def record(self, part: FileResult) -> Record | FileResult:
        """The result as a record; the result itself if it cannot be cached."""
        if self._stat is None or self._content is None or part.used.days:
            return part
        plain = _encode_result(part, self.entry.path)
        if plain is None:
            return part
        return (self._stat, self._time_ns, _digest(self._content), plain)


def _name(entry: layout.FileEntry) -> str:
    """The name of a file's result. A file that may be something else than a manifest has another result."""
    return f"{entry.full}\0" if entry.optional else entry.full


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _encode_result(part: FileResult, path: str) -> Encoded | None:
    """Encode a result; None if a rule's facts cannot be encoded."""
    used = part.used
    made = tuple((each.env, tuple(each.identity), tuple(each.location), each.position, each.item) for each in part.made)
    rows = tuple((rule, row.value, row.path, tuple(row.job)) for rule, row in part.rows)
    findings = tuple(map(encode_finding, part.findings))
    if rows or findings:
        try:
            marshal.dumps((rows, findings))
        except ValueError:
            return None
    return (
        made,
        findings,
        tuple(part.names),
        _encode_use(used),
        rows,
        tuple((tuple(comment.location), *comment[1:]) for comment in part.comments),
        tuple(part.unchecked),
        tuple(part.skipped),
        path,
    )


def _encode_use(used: OverlayUse) -> Encoded:
    hits, misses = ([(marker, tuple(where)) for marker, where in pairs] for pairs in (used.hits.items(), used.misses))
    return tuple(used.patches), hits, misses, [tuple(where) for where in used.own_misses]


def _decode_use(patches: Encoded, hits: list[Encoded], misses: list[Encoded], own_misses: list[Encoded]) -> OverlayUse:
    from jobgen.pipeline.environment import OverlayUse
    from jobgen.pipeline.trace import JobRef

    return OverlayUse(
        set(patches),
        {marker: JobRef(*where) for marker, where in hits},
        [(marker, JobRef(*where)) for marker, where in misses],
        [JobRef(*where) for where in own_misses],
        [],
    )


def decode_result(plain: Encoded, path: str) -> FileResult | None:
    """Decode a result; None if the file had another path, because locations contain it."""
    # A lint of unchanged files decodes findings only, and does not need these modules.
    from jobgen.check.rules import Fact
    from jobgen.pipeline.environment import Rendered
    from jobgen.pipeline.trace import JobRef
    from jobgen.report.suppress import Suppression

    made, findings, names, used, rows, comments, unchecked, skipped, known_path = plain
    if known_path != path:
        return None
    return FileResult(
        [Rendered(env, None, Identity(*who), Location(*location), *where) for env, who, location, *where in made],
        [decode_finding(each) for each in findings],
        set(names),
        _decode_use(*used),
        [(rule, Fact(fact, path_, JobRef(*job))) for rule, fact, path_, job in rows],
        [Suppression(Location(*location), *rest) for location, *rest in comments],
        list(unchecked),
        list(skipped),
    )


def encode_finding(found: Finding) -> Encoded:
    """Encode a finding."""
    fix: Encoded | None = None
    if found.fix:
        edits: list[Encoded] = [(edit.op, tuple(edit.location), *edit[2:]) for edit in found.fix.edits]
        fix = (tuple(edits), found.fix.safe)
    return (
        found.rule,
        found.category,
        found.severity.value,
        found.message,
        tuple(found.location),
        found.object and tuple(found.object),
        found.env,
        found.pointer,
        tuple((tuple(related.location), related.message) for related in found.related),
        found.evidence,
        fix,
    )


def decode_finding(plain: Encoded) -> Finding:
    """Decode a finding."""
    rule, category, severity, message, location, who, env, pointer, related, evidence, fix = plain
    return Finding(
        rule,
        category,
        Severity(severity),
        message,
        Location(*location),
        Identity(*who) if who else None,
        env,
        pointer,
        tuple(Related(Location(*place), text) for place, text in related),
        evidence,
        Fix(tuple(TextEdit(op, Location(*place), *rest) for op, place, *rest in fix[0]), fix[1]) if fix else None,
    )


def stat_file(path: str) -> FileStat | None:
    """Stat a file; None if it does not exist."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_racy(found: FileStat, time_ns: int) -> bool:
    """Whether a file was so recent at a time that a later change may have the same stat."""
    return max(found[1:3]) > time_ns - _RACY_NS


def digest_files(files: Iterable[layout.File]) -> bytes:
    """The digest of the paths and contents of files."""
    digest = blake2b(digest_size=16)
    for file in files:
        wrong = f"{file.finding.rule} {file.finding.message}" if file.finding else ""
        digest.update(f"{file.path} {len(file.content)} {wrong}\n".encode("utf-8", "surrogatepass"))
        digest.update(file.content)
    return digest.digest()
