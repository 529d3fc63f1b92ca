"""Cache the result of a lint for each file.

A file is unchanged if its size, times and inode are. If they differ, or are too recent to be trusted, its content
decides. Everything else that a result depends on is part of the cache key.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Sequence

from jobgen import cache
from jobgen.k8s.custom_kinds import may_define_kinds
from jobgen.k8s.device_catalog import may_concern_devices
from jobgen.model.digest import blake2b
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.encoded_results import Encoded, EncodedParts, encode_parts
from jobgen.pipeline.file_result import FileParts
from jobgen.repo.drafts import has_draft
from jobgen.repo.files import File, FileEntry, read_file

FileStat = tuple[int, int, int, int]
"""Size, modification time, change time and inode of a file."""


# Two writes within the resolution of the file system's clock leave the same times.
_RACY_NS = 2_000_000_000

_MAX_FILES = 300_000
_DECODER = json.JSONDecoder()


class Record(NamedTuple):
    """The results of a file on disk."""

    stat: FileStat
    time_ns: int
    """When the stat was taken."""
    digest: str
    depends_on: str
    """The digest of the files with devices and kinds that the results depend on; empty if they depend on none."""
    concerns_others: bool
    """Whether the file may be one of these."""
    path: str
    outlines: str
    facts: str
    """The results as JSON. Most runs decode those of some files only."""

    def decode(self, path: str) -> FileParts | None:
        """Decode the results; None if the file had another path."""
        # A lint of unchanged files decodes nothing, and does not need this module.
        from jobgen.pipeline.decoded_results import decode_parts

        if path != self.path:
            return None
        return decode_parts(EncodedParts(path, _load(self.outlines), _load(self.facts)), path)

    def decode_summaries(self, path: str) -> FileParts | None:
        """Decode the results without facts, findings and comments, which only checks need."""
        from jobgen.pipeline.decoded_results import decode_outline

        if path != self.path:
            return None
        outlines = (decode_outline(outline, []) for outline in _load(self.outlines))
        return tuple(part._replace(findings=[], comments=[]) for part in outlines)


def _write_records(records: dict[str, Record]) -> bytes:
    """The records as the content of an entry: a line of JSON with all but the results, then the results."""
    index = {name: [*each[:-2], len(each.outlines), len(each.facts)] for name, each in records.items()}
    parts = (part for each in records.values() for part in each[-2:])
    return "".join((_dump(index), "\n", *parts)).encode()


def _read_records(content: bytes) -> dict[str, Record]:
    """The records of an entry; none if it is damaged."""
    found: dict[str, Record] = {}
    start = 0
    try:
        line, _, results = content.decode("ascii").partition("\n")
        for name, (stat, time_ns, digest, depends_on, devices, path, *lengths) in json.loads(line).items():
            middle, end = start + lengths[0], start + lengths[0] + lengths[1]
            parts = results[start:middle], results[middle:end]
            found[name] = Record(tuple(stat), time_ns, digest, depends_on, devices, path, *parts)
            start = end
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}
    return found


class ResultCache:
    """The results of the files of one lint: looked up before the work, stored after it."""

    def __init__(self, *base: bytes | str) -> None:
        self._key = cache.make_key("results", *base)
        self._known: dict[str, Record] = {}
        self._new: dict[str, Record] = {}
        found = cache.get(self._key)
        if found is not None:
            self._known = _read_records(found)

    def find(self, entry: FileEntry, shared_digest: Callable[[], str]) -> FileParts | None:
        """The results of a file; None if the file must be processed.

        `shared_digest` returns the digest of all files with devices and kinds that objects of other files may use.
        """
        known = self._find(entry)
        return None if known is None else _decode_record(known, entry.path, shared_digest)

    def find_summarized(self, entry: FileEntry, digest: str) -> FileParts | None:
        """The results of a file with this content, if they tell all that a render without checks does but the objects.

        None if they are not known, if something prevents a render, or if other files or the date matter.
        """
        known = self._known.get(_name(entry))
        if known is None or known.digest != digest or known.depends_on or known.concerns_others:
            return None
        parts = known.decode_summaries(entry.path)
        if parts is None or any("" in part.unchecked for part in parts):
            return None
        if any(each.object is None or each.companion for part in parts for each in part.made):
            return None
        return parts

    def find_content(self, entry: FileEntry, digest: str, shared_digest: Callable[[], str]) -> FileParts | None:
        """The results that a file had when it was found here, if it has the same content; None if they are not known.

        `entry` has the path on disk of the file, which may have another content now.
        """
        known = self._known.get(_name(entry))
        return _decode_record(known, entry.path, shared_digest) if known and known.digest == digest else None

    def _find(self, entry: FileEntry) -> Record | None:
        """The record of a file that has not changed since."""
        known = self._known.get(_name(entry)) if entry.content is None and entry.finding is None else None
        stat = stat_file(entry.full) if known else None
        if known is None or stat is None:
            return None
        if stat != known.stat or is_racy(stat, known.time_ns):
            now = time.time_ns()
            file = read_file(entry)
            if file.finding or digest_content(file.content) != known.digest:
                return None
            self._new[_name(entry)] = known._replace(stat=stat, time_ns=now)
        return known

    def digest_shared_files(self, entries: Iterable[FileEntry]) -> str:
        """The digest of those files on which results of others may depend; unchanged files are not read."""
        found = []
        for entry in entries:
            known = self._find(entry)
            if known is None:
                content = read_file(entry).content
                found += [(entry.path, digest_content(content))] if _concerns_others(content) else []
            elif known.concerns_others:
                found.append((entry.path, known.digest))
        return digest_content(repr(sorted(found)).encode("utf-8", "surrogatepass"))

    def note(self, entry: FileEntry, record: Record) -> None:
        """Store the result of a file."""
        self._new[_name(entry)] = record

    def save(self) -> None:
        """Write new results to the cache."""
        if self._new:
            kept = {**self._known, **self._new} if len(self._known) < _MAX_FILES else self._new
            cache.put(self._key, _write_records(kept))


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

    def record(self, parts: FileParts, shared_digest: Callable[[], str]) -> Record | FileParts:
        """The results as a record; the results themselves if they cannot be cached."""
        if self._stat is None or self._content is None or any(part.used.days for part in parts):
            return parts
        path, content = self.entry.path, self._content
        depends_on = shared_digest() if any(part.dependent for part in parts) else ""
        plain = encode_parts(parts, path)
        if plain is None:
            return parts
        known = self._stat, self._time_ns, digest_content(content), depends_on, _concerns_others(content)
        return Record(*known, path, _dump(plain.outlines), _dump(plain.facts))


def _dump(plain: Encoded | dict[str, Encoded]) -> str:
    return json.dumps(plain, separators=(",", ":"))


def _load(text: str) -> Encoded:
    """Read what `_dump` wrote: without the spaces that `json.loads` looks for, which takes longer than a short text."""
    plain: Encoded = _DECODER.raw_decode(text)[0]
    return plain


def _decode_record(known: Record, path: str, shared_digest: Callable[[], str]) -> FileParts | None:
    """Decode the results of a file; None if they depend on other devices or kinds than there are."""
    return known.decode(path) if not known.depends_on or known.depends_on == shared_digest() else None


def _concerns_others(content: bytes) -> bool:
    """Return True if objects of other files may depend on a file: it may define devices, or kinds."""
    return may_concern_devices(content) or may_define_kinds(content)


def _name(entry: FileEntry) -> str:
    """The name of a file's result. A file that may be something else than a manifest has another result."""
    return f"{entry.full}\0" if entry.optional else entry.full


def digest_content(content: bytes) -> str:
    """The digest of the content of a file."""
    return blake2b(content, digest_size=16).hexdigest()


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
