"""Cache the result of a lint for each file.

A file is unchanged if its size, times and inode are. If they differ, or are too recent to be trusted, its content
decides. Everything else that a result depends on is part of the cache key.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

from jobgen import cache
from jobgen.k8s.device_catalog import may_concern_devices
from jobgen.k8s.secrets import find_assignments, find_token, looks_like_secret
from jobgen.model.data import Location
from jobgen.model.digest import blake2b
from jobgen.model.finding import Finding, Fix, Identity, Related, Severity, TextEdit
from jobgen.repo.drafts import has_draft
from jobgen.repo.files import File, FileEntry, read_file

if TYPE_CHECKING:
    from jobgen.check.rules import Fact
    from jobgen.pipeline.environment import OverlayUse, Rendered
    from jobgen.pipeline.object_summary import ObjectSummary
    from jobgen.report.suppress import Suppression

Encoded = list[Any]
"""A value as JSON data: the fields of named tuples in order."""

FileStat = tuple[int, int, int, int]
"""Size, modification time, change time and inode of a file."""


# Two writes within the resolution of the file system's clock leave the same times.
_RACY_NS = 2_000_000_000

_MAX_FILES = 300_000
_COLLECTIONS: dict[str, type] = {each.__name__: each for each in (tuple, list, frozenset)}


class FileResult(NamedTuple):
    """The rendered objects and the findings of a file: of the file by itself, of one environment, or of all."""

    made: list[Rendered]
    findings: list[Finding]
    names: set[str]
    used: OverlayUse
    rows: list[tuple[str, Fact]]
    comments: list[Suppression]
    unchecked: list[str]
    """The names of jobs that were not checked, or not by every check; empty for one that cannot be read or rendered."""
    skipped: list[str]
    """Why the file was not read, if it was not."""
    dependent: list[str]
    """The names of jobs whose results depend on the classes and claims for devices in other files."""
    jobs: list[tuple[str, int, int]]
    """The name, position and item of each job of the file."""


FileParts = tuple[FileResult, ...]
"""The results of a file: of the file by itself, then of each environment."""


def new_result() -> FileResult:
    """Return a result with nothing in it."""
    from jobgen.pipeline.environment import new_overlay_use

    return FileResult([], [], set(), new_overlay_use(), [], [], [], [], [], [])


def are_same(one: FileParts, other: FileParts) -> bool:
    """Whether results are the same objects."""
    return len(one) == len(other) and all(map(is_, one, other))


def join_parts(parts: FileParts) -> FileResult:
    """Return the results of a file by itself and of environments as one."""
    from jobgen.pipeline.environment import OverlayUse

    own = parts[0]
    used = [part.used for part in parts]
    # The order of the output is job by job, then environment by environment. Items count up, members of a sweep down.
    made = [made for part in parts for made in part.made]
    made.sort(key=lambda each: (each.position, abs(each.item)))
    rendered = {(each.position, each.item) for each in made}
    # These belong to no environment, or have errors in all.
    left_out = [name for name, *place in own.jobs if tuple(place) not in rendered]
    return FileResult(
        made,
        [finding for part in parts for finding in part.findings],
        own.names,
        OverlayUse(
            {patch for use in used for patch in use.patches},
            {marker: where for use in reversed(used) for marker, where in use.hits.items()},
            [miss for use in used for miss in use.misses],
            [miss for use in used for miss in use.own_misses],
            [day for use in used for day in use.days],
        ),
        [row for part in parts for row in part.rows],
        own.comments,
        [*(name for part in parts for name in part.unchecked), *left_out],
        own.skipped,
        [name for part in parts for name in part.dependent],
        own.jobs,
    )


_DEPENDS_ON, _CONCERNS_DEVICES = -3, -2
"""Items of an encoded result: the digest of the files of devices that it depends on, if it does, and whether its own
file may be one of these."""


class Record(NamedTuple):
    """The results of a file on disk."""

    stat: FileStat
    time_ns: int
    """When the stat was taken."""
    digest: str
    encoded: Encoded


class ResultCache:
    """The results of the files of one lint: looked up before the work, stored after it."""

    def __init__(self, *base: bytes | str) -> None:
        self._key = cache.make_key("results", *base)
        self._known: dict[str, Record] = {}
        self._new: dict[str, Record] = {}
        found = cache.get_data(self._key)
        if isinstance(found, dict):
            self._known = found

    def find(self, entry: FileEntry, device_digest: Callable[[], str]) -> FileParts | None:
        """The results of a file; None if the file must be processed.

        `device_digest` returns the digest of all files with classes and claims for devices.
        """
        known = self._find(entry)
        return None if known is None else _decode_record(known, entry.path, device_digest)

    def find_summarized(self, entry: FileEntry, digest: str) -> FileParts | None:
        """The results of a file with this content, if they tell all that a render without checks does but the objects.

        None if they are not known, if something prevents a render, or if other files or the date matter.
        """
        known = self._known.get(_name(entry))
        if known is None or known[2] != digest or known[-1][_DEPENDS_ON] or known[-1][_CONCERNS_DEVICES]:
            return None
        parts = decode_parts(known[-1], entry.path)
        if parts is None or any("" in part.unchecked for part in parts):
            return None
        if any(each.object is None or each.companion for part in parts for each in part.made):
            return None
        return tuple(part._replace(findings=[], comments=[]) for part in parts)

    def find_content(self, entry: FileEntry, digest: str, device_digest: Callable[[], str]) -> FileParts | None:
        """The results that a file had when it was found here, if it has the same content; None if they are not known.

        `entry` has the path on disk of the file, which may have another content now.
        """
        known = self._known.get(_name(entry))
        return _decode_record(known, entry.path, device_digest) if known and known[2] == digest else None

    def _find(self, entry: FileEntry) -> Record | None:
        """The record of a file that has not changed since."""
        known = self._known.get(_name(entry)) if entry.content is None and entry.finding is None else None
        stat = stat_file(entry.full) if known else None
        if known is None or stat is None:
            return None
        was, time_ns, digest, encoded = known
        if stat != tuple(was) or is_racy(stat, time_ns):
            now = time.time_ns()
            file = read_file(entry)
            if file.finding or digest_content(file.content) != digest:
                return None
            self._new[_name(entry)] = Record(stat, now, digest, encoded)
        return known

    def digest_device_files(self, entries: Iterable[FileEntry]) -> str:
        """The digest of those files that may have classes and claims for devices; unchanged files are not read."""
        found = []
        for entry in entries:
            known = self._find(entry)
            if known is None:
                content = read_file(entry).content
                found += [(entry.path, digest_content(content))] if may_concern_devices(content) else []
            elif known[-1][_CONCERNS_DEVICES]:
                found.append((entry.path, known[2]))
        return digest_content(repr(sorted(found)).encode("utf-8", "surrogatepass"))

    def note(self, entry: FileEntry, record: Record) -> None:
        """Store the result of a file."""
        self._new[_name(entry)] = record

    def find_replaced(self, entry: FileEntry) -> Record | None:
        """The record of a file before another one was noted."""
        name = _name(entry)
        return self._known.get(name) if name in self._new else None

    def save(self) -> None:
        """Write new results to the cache."""
        if self._new:
            kept = {**self._known, **self._new} if len(self._known) < _MAX_FILES else self._new
            cache.put_data(self._key, kept)


def open_results(root: object, environments: Sequence[str], layers: bytes) -> ResultCache:
    """Open the results of the files of a repository with these layers."""
    return ResultCache(str(root), "repository", ",".join(environments), layers)


class FileSnapshot:
    """A file and its stat before it is processed."""

    __slots__ = ("_content", "_stat", "_time_ns", "entry")

    def __init__(self, entry: FileEntry) -> None:
        self._time_ns = time.time_ns()
        # The stat is taken before the read, so a change in between is noticed next time.
        self._stat = stat_file(entry.full) if entry.content is None and entry.finding is None else None
        file = read_file(entry)
        self._content = None if file.finding else file.content
        self.entry = entry if file.finding else entry._replace(content=file.content)

    def record(self, parts: FileParts, device_digest: Callable[[], str]) -> Record | FileParts:
        """The results as a record; the results themselves if they cannot be cached."""
        if self._stat is None or self._content is None:
            return parts
        file = File(self.entry.path, self._content)
        return make_record(file, parts, device_digest, self._stat, self._time_ns) or parts


_NO_STAT: FileStat = (0, 0, 0, 0)
"""The stat of the file of a commit."""


def make_record(
    file: File, parts: FileParts, device_digest: Callable[[], str], stat: FileStat = _NO_STAT, time_ns: int = 0
) -> Record | None:
    """The results of a file as a record; None if they cannot be cached."""
    if any(part.used.days for part in parts):
        return None
    depends_on = device_digest() if any(part.dependent for part in parts) else ""
    plain = encode_parts(parts, depends_on, file.path, concerns_devices=may_concern_devices(file.content))
    return None if plain is None else Record(stat, time_ns, digest_content(file.content), plain)


def _decode_record(known: Record, path: str, device_digest: Callable[[], str]) -> FileParts | None:
    """Decode the results of a file; None if they depend on other classes and claims for devices."""
    depends_on = known[-1][_DEPENDS_ON]
    return decode_parts(known[-1], path) if not depends_on or depends_on == device_digest() else None


def _name(entry: FileEntry) -> str:
    """The name of a file's result. A file that may be something else than a manifest has another result."""
    return f"{entry.full}\0" if entry.optional else entry.full


def digest_content(content: bytes) -> str:
    """The digest of the content of a file."""
    return blake2b(content, digest_size=16).hexdigest()


def encode_parts(parts: FileParts, depends_on: str, path: str, *, concerns_devices: bool = False) -> Encoded | None:
    """Encode results; None if a rule's facts cannot be encoded, or if they may contain a secret."""
    try:
        plain = [list(map(_encode_result, parts)), depends_on, concerns_devices, path]
    except TypeError:
        return None
    return None if contains_secret(plain) else plain


def _encode_result(part: FileResult) -> Encoded:
    return [
        [[each.env, each.object if isinstance(each.object, tuple) else None, *each[2:]] for each in part.made],
        [encode_finding(finding) for finding in part.findings],
        sorted(part.names),
        _encode_use(part.used),
        [[rule, pack(row.value), list(row.path), list(row.job)] for rule, row in part.rows],
        [list(comment) for comment in part.comments],
        part.unchecked,
        part.skipped,
        part.dependent,
        part.jobs,
    ]


def contains_secret(data: object) -> bool:
    """Whether a text in JSON data has the format of a secret; such data is not stored."""
    if isinstance(data, str):
        return bool(find_token(data)) or any(
            looks_like_secret(*pair) for pair in (find_assignments(data) if "=" in data else ())
        )
    if isinstance(data, dict):
        return any(contains_secret(part) for pair in data.items() for part in pair)
    return isinstance(data, (list, tuple)) and any(map(contains_secret, data))


def pack(value: Any) -> Any:
    """Return JSON data for a value of a fact or a fix: scalars, tuples, lists, mappings and sets of them.

    Raises:
        TypeError: The value is anything else.

    """
    if value is None or isinstance(value, (str, int, float)):
        # A subclass, such as an enumeration, would come back as its base class.
        if value is not None and type(value) not in (str, int, float, bool):
            raise TypeError(type(value).__name__)
        return value
    if type(value) is dict:
        return {"mapping": [[pack(key), pack(child)] for key, child in value.items()]}
    if type(value) not in _COLLECTIONS.values():
        raise TypeError(type(value).__name__)
    return {type(value).__name__: list(map(pack, value))}


def unpack(data: Any) -> Any:
    """Return the value that `pack` turned into JSON data."""
    if not isinstance(data, dict):
        return data
    ((name, items),) = data.items()
    if name == "mapping":
        return {unpack(key): unpack(child) for key, child in items}
    return _COLLECTIONS[name](map(unpack, items))


def _encode_use(used: OverlayUse) -> Encoded:
    hits, misses = ([[marker, where] for marker, where in pairs] for pairs in (used.hits.items(), used.misses))
    return [sorted(used.patches), hits, misses, used.own_misses]


def _decode_use(patches: Encoded, hits: Encoded, misses: Encoded, own_misses: Encoded) -> OverlayUse:
    from jobgen.pipeline.environment import OverlayUse
    from jobgen.pipeline.trace import JobRef

    return OverlayUse(
        {(overlay, place) for overlay, place in patches},
        {(name, key): JobRef(*where) for (name, key), where in hits},
        [((name, key), JobRef(*where)) for (name, key), where in misses],
        [JobRef(*where) for where in own_misses],
        [],
    )


def decode_parts(plain: Encoded, path: str) -> FileParts | None:
    """Decode results; None if the file had another path, because locations contain it."""
    parts, _, _, known_path = plain
    return tuple(map(_decode_result, parts)) if known_path == path else None


def _decode_result(plain: Encoded) -> FileResult:
    # A lint of unchanged files decodes findings only, and does not need these modules.
    from jobgen.check.rules import Fact
    from jobgen.pipeline.environment import Rendered
    from jobgen.pipeline.trace import JobRef
    from jobgen.report.suppress import Suppression

    made, findings, names, used, rows, comments, unchecked, skipped, dependent, jobs = plain
    return FileResult(
        [
            Rendered(env, _decode_summary(summary), Identity(*who), Location(*location), *where)
            for env, summary, who, location, *where in made
        ],
        [decode_finding(each) for each in findings],
        set(names),
        _decode_use(*used),
        [(rule, Fact(unpack(fact), tuple(steps), JobRef(*job))) for rule, fact, steps, job in rows],
        [
            Suppression(Location(*location), tuple(rules), line, reason, until)
            for location, rules, line, reason, until in comments
        ],
        list(unchecked),
        list(skipped),
        list(dependent),
        [(name, position, item) for name, position, item in jobs],
    )


def _decode_summary(plain: Encoded | None) -> ObjectSummary | None:
    if plain is None:
        return None
    from jobgen.pipeline.object_summary import ObjectSummary

    return ObjectSummary(*plain)


def encode_finding(found: Finding) -> Encoded:
    """Encode a finding.

    Raises:
        TypeError: A value of its fix cannot be encoded.

    """
    fix: Encoded | None = None
    if found.fix:
        fix = [[[edit.op, edit.location, *map(pack, edit[2:])] for edit in found.fix.edits], found.fix.safe]
    return [
        found.rule,
        found.category,
        found.severity.value,
        found.message,
        found.location,
        found.object,
        found.env,
        found.pointer,
        [[related.location, related.message] for related in found.related],
        found.evidence,
        found.place,
        found.also_reported_by,
        fix,
    ]


def decode_finding(plain: Encoded) -> Finding:
    """Decode a finding."""
    rule, category, severity, message, location, who, env, pointer, related, evidence, place, also, fix = plain
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
        None if evidence is None else tuple(evidence),
        place,
        tuple(also),
        Fix(tuple(TextEdit(op, Location(*start), *map(unpack, rest)) for op, start, *rest in fix[0]), fix[1])
        if fix
        else None,
    )


def stat_file(path: str) -> FileStat | None:
    """Stat a file; None if it does not exist, or if its content is not that on disk."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return None if has_draft(path, status) else to_file_stat(status)


def to_file_stat(status: os.stat_result) -> FileStat:
    """The parts of a stat that change with the content of a file."""
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def is_racy(found: FileStat, time_ns: int) -> bool:
    """Whether a file was so recent at a time that a later change may have the same stat."""
    return max(found[1:3]) > time_ns - _RACY_NS


def digest_files(files: Iterable[File]) -> bytes:
    """The digest of the paths and contents of files."""
    digest = blake2b(digest_size=16)
    for file in files:
        wrong = f"{file.finding.rule} {file.finding.message}" if file.finding else ""
        digest.update(f"{file.path} {len(file.content)} {wrong}\n".encode("utf-8", "surrogatepass"))
        digest.update(file.content)
    return digest.digest()
