"""Find the results of files of a commit in the cache: a lint stored them when files on disk had the same content."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from jobgen.pipeline.file_result import FileParts
from jobgen.pipeline.result_cache import ResultCache, digest_content, make_record, open_results
from jobgen.repo.commit import Folder
from jobgen.repo.files import File, FileEntry, read_file

_OF_COMMITS = "commit"


class CommitResults:
    """The results of the files of one commit.

    The results of files that have changed since are kept apart, because the next lint replaces those of files on disk.
    """

    def __init__(self, home: Folder, environments: Sequence[str], layers: bytes, linted: ResultCache | None) -> None:
        """Open the results; `linted` has those of the last lint with the same layers, as they were before it."""
        self._home = home
        self._own = ResultCache(str(home), _OF_COMMITS, ",".join(environments), layers)
        self._linted = linted or open_results(home, environments, layers)

    def find(self, entry: FileEntry, device_digest: Callable[[], str]) -> FileParts | None:
        """The results of a file; None if it must be processed."""
        if entry.content is None or entry.finding is not None:
            return None
        place, digest = self._place(entry), digest_content(entry.content)
        found = self._own.find_content(place, digest, device_digest)
        if found is None:
            found = self._linted.find_content(place, digest, device_digest)
            replaced = self._linted.find_replaced(place)
            if found is not None and replaced is not None:
                self._own.note(place, replaced)
        return found

    def find_summaries(self, entry: FileEntry) -> FileParts | None:
        """The results of a file with the summaries of its objects; None if they are not known, or do not suffice."""
        file = read_file(entry)
        if file.finding is not None:
            return None
        place, digest = self._place(entry), digest_content(file.content)
        return self._own.find_summarized(place, digest) or self._linted.find_summarized(place, digest)

    def note(self, entry: FileEntry, parts: FileParts, device_digest: Callable[[], str]) -> None:
        """Store the results of a file, unless they cannot be cached."""
        if entry.content is None or entry.finding is not None:
            return
        record = make_record(File(entry.path, entry.content), parts, device_digest)
        if record is not None:
            self._own.note(self._place(entry), record)

    def save(self) -> None:
        """Write new results to the cache."""
        self._own.save()

    def digest_device_files(self, entries: Sequence[FileEntry]) -> str:
        """The digest of those files of the commit that may have classes and claims for devices."""
        return self._own.digest_device_files(entries)

    def _place(self, entry: FileEntry) -> FileEntry:
        """The file on disk at the same path."""
        return entry._replace(full=os.path.join(str(self._home), entry.path), content=None)
