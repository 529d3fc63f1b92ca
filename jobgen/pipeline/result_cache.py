"""What a lint said of each file, kept for the next one: a file that is what it was need not be looked at again.

A file is what it was if its size, times and number on the disk are; where they are not, or are too young to be trusted,
its content decides. Everything else that a lint depends on is in the name of the ledger.
"""

from __future__ import annotations

import marshal
import time
from hashlib import blake2b
from typing import NamedTuple

from jobgen import cache
from jobgen.check.rules import Fact
from jobgen.model.data import Location
from jobgen.model.finding import Finding, Identity
from jobgen.pipeline.environment import OverlayUse, Rendered
from jobgen.pipeline.file_stat import FileStat, is_racy, stat_file
from jobgen.pipeline.finding_codec import Encoded, decode_finding, encode_finding
from jobgen.pipeline.trace import JobRef
from jobgen.repo import layout
from jobgen.report.suppress import Suppression

_MOST = 300_000


class FileResult(NamedTuple):
    """What was made of some files, and what was found in them."""

    made: list[Rendered]
    findings: list[Finding]
    names: set[str]
    used: OverlayUse
    rows: list[tuple[str, Fact]]
    comments: list[Suppression]


Record = tuple[FileStat, int, bytes, Encoded]
"""A file as it was, at which moment, the digest of its content, and what was said of it."""


class ResultCache:
    """What is known of the files of one lint; asked before the work, told after it."""

    def __init__(self, *base: bytes | str) -> None:
        self._key = cache.make_key("ledger", *base)
        self._known: dict[str, Record] = {}
        self._new: dict[str, Record] = {}
        found = cache.get(self._key)
        if found is not None:
            self._known = marshal.loads(found)  # noqa: S302 -- only our own words come back

    def part(self, entry: layout.FileEntry) -> FileResult | None:
        """What is known of a file; None if it must be looked at."""
        known = self._known.get(entry.full) if entry.content is None and entry.finding is None else None
        stamp = stat_file(entry.full) if known else None
        if known is None or stamp is None:
            return None
        was, moment, digest, said = known
        if stamp != was or is_racy(stamp, moment):
            now = time.time_ns()
            file = layout.read_file(entry)
            if file.finding or _digest(file.content) != digest:
                return None
            self._new[entry.full] = (stamp, now, digest, said)
        return decode_result(said, entry.path)

    def note(self, entry: layout.FileEntry, record: Record) -> None:
        """Keep what was said of a file."""
        self._new[entry.full] = record

    def save(self) -> None:
        """Write down what is new."""
        if self._new:
            kept = {**self._known, **self._new} if len(self._known) < _MOST else self._new
            cache.put(self._key, marshal.dumps(kept))


class FileSnapshot:
    """A file that is about to be looked at, as it is now."""

    __slots__ = ("_content", "_moment", "_stamp", "entry")

    def __init__(self, entry: layout.FileEntry) -> None:
        self._moment = time.time_ns()
        # The stamp is older than what is read, so a change in between is seen the next time.
        self._stamp = stat_file(entry.full) if entry.content is None and entry.finding is None else None
        file = layout.read_file(entry)
        self._content = None if file.finding else file.content
        self.entry = entry if file.finding else entry._replace(content=file.content)

    def record(self, part: FileResult) -> Record | FileResult:
        """What was said of it, as a record if it can be kept."""
        if self._stamp is None or self._content is None or part.used.days:
            return part
        plain = _plain_of(part, self.entry.path)
        if plain is None:
            return part
        return (self._stamp, self._moment, _digest(self._content), plain)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _plain_of(part: FileResult, path: str) -> Encoded | None:
    """A part as plain data; None if a rule keeps facts that are not."""
    used = part.used
    made = tuple((each.env, tuple(each.identity), tuple(each.location), each.position, each.item) for each in part.made)
    rows = tuple((rule, row.value, row.path, tuple(row.job)) for rule, row in part.rows)
    findings = tuple(map(encode_finding, part.findings))
    if rows or findings:
        try:
            marshal.dumps((rows, findings))
        except ValueError:
            # Facts that only their rule understands.
            return None
    return (
        made,
        findings,
        tuple(part.names),
        _plain_use(used),
        rows,
        tuple((tuple(comment.location), *comment[1:]) for comment in part.comments),
        path,
    )


def _plain_use(used: OverlayUse) -> Encoded:
    hits, misses = ([(marker, tuple(where)) for marker, where in pairs] for pairs in (used.hits.items(), used.misses))
    return tuple(used.patches), hits, misses, [tuple(where) for where in used.own_misses]


def _use_of(patches: Encoded, hits: list[Encoded], misses: list[Encoded], own_misses: list[Encoded]) -> OverlayUse:
    return OverlayUse(
        set(patches),
        {marker: JobRef(*where) for marker, where in hits},
        [(marker, JobRef(*where)) for marker, where in misses],
        [JobRef(*where) for where in own_misses],
        [],
    )


def decode_result(plain: Encoded, path: str) -> FileResult | None:
    """What a record says; None if the file had another name then, by which all its places are called."""
    made, findings, names, used, rows, comments, known_path = plain
    if known_path != path:
        return None
    return FileResult(
        [Rendered(env, None, Identity(*who), Location(*location), *where) for env, who, location, *where in made],
        [decode_finding(each) for each in findings],
        set(names),
        _use_of(*used),
        [(rule, Fact(fact, path_, JobRef(*job))) for rule, fact, path_, job in rows],
        [Suppression(Location(*location), *rest) for location, *rest in comments],
    )
