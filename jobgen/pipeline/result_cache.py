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
from jobgen.check.rules import Row
from jobgen.model.data import Finding, Identity, Mark
from jobgen.pipeline.environment import Rendered, Used
from jobgen.pipeline.file_stat import Stamp, is_young, stamp_of
from jobgen.pipeline.finding_codec import Plain, finding_of, plain_finding
from jobgen.pipeline.trace import Where
from jobgen.repo import layout
from jobgen.report.suppress import Suppression

_MOST = 300_000


class Part(NamedTuple):
    """What was made of some files, and what was found in them."""

    made: list[Rendered]
    findings: list[Finding]
    names: set[str]
    used: Used
    rows: list[tuple[str, Row]]
    comments: list[Suppression]


Record = tuple[Stamp, int, bytes, Plain]
"""A file as it was, at which moment, the digest of its content, and what was said of it."""


class Ledger:
    """What is known of the files of one lint; asked before the work, told after it."""

    def __init__(self, *base: bytes | str) -> None:
        self._key = cache.key_of("ledger", *base)
        self._known: dict[str, Record] = {}
        self._new: dict[str, Record] = {}
        found = cache.recall(self._key)
        if found is not None:
            self._known = marshal.loads(found)  # noqa: S302 -- only our own words come back

    def part(self, entry: layout.Entry) -> Part | None:
        """What is known of a file; None if it must be looked at."""
        known = self._known.get(entry.full) if entry.content is None and entry.finding is None else None
        stamp = stamp_of(entry.full) if known else None
        if known is None or stamp is None:
            return None
        was, moment, digest, said = known
        if stamp != was or is_young(stamp, moment):
            now = time.time_ns()
            file = layout.read(entry)
            if file.finding or _digest(file.content) != digest:
                return None
            self._new[entry.full] = (stamp, now, digest, said)
        return part_of(said, entry.path)

    def note(self, entry: layout.Entry, record: Record) -> None:
        """Keep what was said of a file."""
        self._new[entry.full] = record

    def save(self) -> None:
        """Write down what is new."""
        if self._new:
            kept = {**self._known, **self._new} if len(self._known) < _MOST else self._new
            cache.keep(self._key, marshal.dumps(kept))


class Opened:
    """A file that is about to be looked at, as it is now."""

    __slots__ = ("_content", "_moment", "_stamp", "entry")

    def __init__(self, entry: layout.Entry) -> None:
        self._moment = time.time_ns()
        # The stamp is older than what is read, so a change in between is seen the next time.
        self._stamp = stamp_of(entry.full) if entry.content is None and entry.finding is None else None
        file = layout.read(entry)
        self._content = None if file.finding else file.content
        self.entry = entry if file.finding else entry._replace(content=file.content)

    def record(self, part: Part) -> Record | Part:
        """What was said of it, as a record if it can be kept."""
        if self._stamp is None or self._content is None or part.used.days:
            return part
        plain = _plain_of(part, self.entry.path)
        if plain is None:
            return part
        return (self._stamp, self._moment, _digest(self._content), plain)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()


def _plain_of(part: Part, path: str) -> Plain | None:
    """A part as plain data; None if a rule keeps facts that are not."""
    used = part.used
    made = tuple((each.env, tuple(each.identity), tuple(each.mark), each.position, each.item) for each in part.made)
    rows = tuple((rule, row.fact, row.path, tuple(row.job)) for rule, row in part.rows)
    findings = tuple(map(plain_finding, part.findings))
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
        tuple((tuple(comment.mark), *comment[1:]) for comment in part.comments),
        path,
    )


def _plain_use(used: Used) -> Plain:
    hits, misses = ([(marker, tuple(where)) for marker, where in pairs] for pairs in (used.hits.items(), used.misses))
    return tuple(used.patches), hits, misses, [tuple(where) for where in used.own_misses]


def _use_of(patches: Plain, hits: list[Plain], misses: list[Plain], own_misses: list[Plain]) -> Used:
    return Used(
        set(patches),
        {marker: Where(*where) for marker, where in hits},
        [(marker, Where(*where)) for marker, where in misses],
        [Where(*where) for where in own_misses],
        [],
    )


def part_of(plain: Plain, path: str) -> Part | None:
    """What a record says; None if the file had another name then, by which all its places are called."""
    made, findings, names, used, rows, comments, known_path = plain
    if known_path != path:
        return None
    return Part(
        [Rendered(env, None, Identity(*who), Mark(*mark), *where) for env, who, mark, *where in made],
        [finding_of(each) for each in findings],
        set(names),
        _use_of(*used),
        [(rule, Row(fact, path_, Where(*job))) for rule, fact, path_, job in rows],
        [Suppression(Mark(*mark), *rest) for mark, *rest in comments],
    )
