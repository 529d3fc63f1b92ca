"""Keep the results of a run in memory, for the next run in the same process.

An editor starts a run at every edit. Most files are the same as before, so their results are too. A run with a memory
finds what a run without one finds; `tests/test_editor_lint.py` compares them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from jobgen.k8s.device_catalog import may_concern_devices
from jobgen.pipeline.result_cache import FileResult, FileStat, is_racy, stat_file
from jobgen.repo.files import File, FileEntry, read_file

if TYPE_CHECKING:
    from jobgen.model.finding import Finding
    from jobgen.pipeline.config import ProjectConfig
    from jobgen.pipeline.environment import EnvironmentRunner
    from jobgen.pipeline.load_policies import PolicyFiles
    from jobgen.pipeline.selectors import Membership
    from jobgen.pipeline.trace import Tracer


class Prepared(NamedTuple):
    """The environments of a run, ready to process jobs, and what preparing them found."""

    runners: list[EnvironmentRunner]
    tracer: Tracer
    findings: tuple[Finding, ...]
    environments: Sequence[str]
    policies: tuple[str, ...]
    policy_files: PolicyFiles | None
    membership: Membership | None
    complete: bool
    unchecked_rules: frozenset[str]


class _Known(NamedTuple):
    """A file as it was in the last run."""

    stat: FileStat | None
    """None if its content is that of an editor."""
    time_ns: int
    digest: bytes
    devices: bool
    """Whether it may define classes and claims for devices, on which the results of other files depend."""
    part: FileResult | None = None
    """The result; None if it cannot be kept."""


class RunMemory:
    """What the last run in this process found."""

    def __init__(self) -> None:
        self._layers = b""
        self._project: ProjectConfig | None = None
        self._scope: tuple[object, ...] = ()
        self._prepared: Prepared | None = None
        self._known: dict[str, _Known] = {}

    @property
    def prepared(self) -> Prepared | None:
        """The environments of the last run."""
        return self._prepared

    @property
    def project(self) -> ProjectConfig | None:
        """The project of the last run."""
        return self._project

    def load_project(self, layers: bytes, load: Callable[[], ProjectConfig]) -> ProjectConfig:
        """Return the project of the last run if no layer has changed; else load it and drop all results."""
        if self._project is None or layers != self._layers:
            self._project, self._layers = load(), layers
            self._scope, self._prepared, self._known = (), None, {}
        return self._project

    def prepare(self, entries: Sequence[FileEntry], what: tuple[object, ...], make: Callable[[], Prepared]) -> Prepared:
        """Return the environments of the last run, or prepare them. Results of files that changed are dropped.

        `what` names the environments, and everything else about them that the layers do not decide.
        """
        self._forget_changed(entries)
        scope = (what, self._digest_device_files(entries))
        if self._prepared is None or scope != self._scope:
            if self._scope and self._scope[0] == scope[0]:
                self._drop_dependent()
            else:
                self._known = {name: known._replace(part=None) for name, known in self._known.items()}
            self._prepared, self._scope = make(), scope
        return self._prepared

    def complete(
        self, entries: Sequence[FileEntry], process: Callable[[Sequence[FileEntry]], list[FileResult]]
    ) -> list[FileResult]:
        """Return the results of all files. Those that are not known are processed."""
        known_parts = ((entry, part) for entry in entries if (part := self.find(entry)))
        # A result that depends on the date is not used again.
        results = {_name(entry): part for entry, part in known_parts if not part.used.days}
        missing = [entry for entry in entries if _name(entry) not in results]
        for entry, part in zip(missing, process(missing) if missing else (), strict=True):
            name = _name(entry)
            results[name] = part
            known = self._known.get(name)
            if known:
                self._known[name] = known._replace(part=part)
        return [results[_name(entry)] for entry in entries]

    def find(self, entry: FileEntry) -> FileResult | None:
        """Return the result of a file in the last run; None if it is not known."""
        known = self._known.get(_name(entry))
        return known.part if known else None

    def _forget_changed(self, entries: Sequence[FileEntry]) -> None:
        """Update what is known about each file. The result of a file whose content has changed is dropped."""
        now = time.time_ns()
        kept: dict[str, _Known] = {}
        for entry in entries:
            if entry.finding is None:
                kept[_name(entry)] = self._update(entry, self._known.get(_name(entry)), now)
        self._known = kept

    def _update(self, entry: FileEntry, known: _Known | None, now: int) -> _Known:
        stat = stat_file(entry.full) if entry.content is None else None
        if known and stat is not None and stat == known.stat and not is_racy(stat, known.time_ns):
            return known
        file = read_file(entry)
        digest = _digest(file)
        if known and digest == known.digest:
            return known._replace(stat=stat, time_ns=now)
        return _Known(stat, now, digest, may_concern_devices(file.content))

    def _digest_device_files(self, entries: Iterable[FileEntry]) -> bytes:
        digest = blake2b(digest_size=16)
        for entry in entries:
            known = self._known.get(_name(entry))
            if known and known.devices:
                digest.update(f"{entry.path}\0".encode("utf-8", "surrogatepass") + known.digest)
        return digest.digest()

    def _drop_dependent(self) -> None:
        """Drop results that depend on classes and claims for devices."""
        self._known = {
            name: known._replace(part=None) if known.part and known.part.dependent else known
            for name, known in self._known.items()
        }


def _name(entry: FileEntry) -> str:
    """A name of a file's result. One that may be something else than a manifest has another result."""
    return f"{entry.full or entry.path}\0{entry.path}\0{entry.optional}"


def _digest(file: File) -> bytes:
    wrong = file.finding.message.encode("utf-8", "surrogatepass") if file.finding else b""
    return blake2b(file.content, digest_size=16, person=b"fault" if wrong else b"").digest() + wrong
