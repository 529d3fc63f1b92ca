"""Keep the results of a run in memory, for the next run in the same process.

An editor starts a run at every edit. Most files are the same as before, so their results are too. The results of each
environment are kept apart, since an edit of an overlay concerns few jobs of some environments. A run with a memory
finds what a run without one finds; `tests/test_editor_lint.py` compares them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobgen.k8s.device_catalog import may_concern_devices
from jobgen.k8s.nodes import as_mapping
from jobgen.model.digest import blake2b
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.cluster_memory import ClusterMemory
from jobgen.pipeline.file_result import FileParts, FileResult, are_same, join_parts, new_result
from jobgen.pipeline.read_jobs import read_jobs
from jobgen.pipeline.result_cache import FileStat, ResultCache, digest_files, is_racy, stat_file
from jobgen.pipeline.trace import Tracer
from jobgen.repo import layout
from jobgen.repo.commit import read_date
from jobgen.repo.files import File, FileEntry, read_file

if TYPE_CHECKING:
    from jobgen.model.finding import Finding
    from jobgen.pipeline.changed_layers import LayerFiles
    from jobgen.pipeline.config import ProjectConfig
    from jobgen.pipeline.environment import EnvironmentRunner
    from jobgen.pipeline.load_policies import PolicyFiles
    from jobgen.pipeline.selectors import Membership
    from jobgen.pipeline.trace import Job
    from jobgen.repo.commit import Folder

_SHARE = 500
"""How many files are processed before their results are kept. A newer edit ends a run, and must not lose much."""

_NOTHING = new_result()
"""The result of a file that has not been processed in an environment, because its overlays have errors."""


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


class _Environment(NamedTuple):
    """An environment as it was when its overlays were valid, and the results of files in it, by name."""

    runner: EnvironmentRunner
    results: dict[str, FileResult]
    cluster: ClusterMemory


class RunMemory:
    """What the last runs in this process found."""

    def __init__(self) -> None:
        self._digest = b""
        self._project: ProjectConfig | None = None
        self.home: Path | None = None
        """The repository on disk, if it was the last one that was run there."""
        self._linted: tuple[bytes, ResultCache] | None = None
        self._tracer: tuple[bytes, Tracer] | None = None
        self._layers: LayerFiles | None = None
        self._devices = b""
        self._selected: tuple[str, ...] = ()
        self._prepared: Prepared | None = None
        self._membership: Membership | None = None
        self._files: dict[str, _Known] = {}
        self._own: dict[str, FileResult] = {}
        """The results of files by themselves, by name."""
        self._environments: dict[str, _Environment] = {}
        self._jobs: dict[str, tuple[Job, ...]] = {}
        """The outlines of the jobs of files, by name."""
        self._joined: dict[str, tuple[FileParts, FileResult]] = {}

    @property
    def prepared(self) -> Prepared | None:
        """The environments of the last run."""
        return self._prepared

    @property
    def project(self) -> ProjectConfig | None:
        """The project of the last run."""
        return self._project

    @property
    def runners(self) -> list[EnvironmentRunner]:
        """The environments of the last run. One whose overlays have errors is as it was before."""
        return [known.runner for name, known in self._environments.items() if name in self._selected]

    @property
    def is_empty(self) -> bool:
        """Whether no results are known."""
        return not self._own

    def note_linted(self, layers: bytes, results: ResultCache) -> None:
        """Keep the results on disk that a run with these layers looked up."""
        self._linted = layers, results

    def find_linted(self, layers: bytes) -> ResultCache | None:
        """Return the results on disk as they were before the last run with these layers; None if it had others."""
        return self._linted[1] if self._linted and self._linted[0] == layers else None

    def list_contents(self) -> Mapping[str, bytes] | None:
        """Return the digests of all files, by path, and of the layers, under an empty path.

        None if the objects of jobs may depend on more: on a runtime that several of them share.
        """
        if self._project and self._project.runtimes:
            return None
        return {"": self._digest, **{name: known.digest for name, known in self._files.items()}}

    def list_dated(self) -> frozenset[str]:
        """Return the files whose objects depend on the date."""
        return frozenset(name for name, (_, result) in self._joined.items() if result.used.days)

    def list_devices(self) -> frozenset[str]:
        """Return the files that may define devices, on which the objects of other files depend."""
        return frozenset(name for name, known in self._files.items() if known.devices)

    def load_project(self, layers: bytes, root: Folder, today: str, load: Callable[[], ProjectConfig]) -> ProjectConfig:
        """Return the project of the last run if no layer has changed; else load it.

        The root may be that of another revision with the same layers.
        """
        self.home = root if isinstance(root, Path) else self.home
        known = self._project
        if known is None or layers != self._digest:
            self._project, self._digest, self._prepared = load(), layers, None
        elif known.root != root or known.today != today:
            self._project, self._prepared = self.move_project(root, today), None
        assert self._project is not None
        return self._project

    def move_project(self, root: Folder, today: str) -> ProjectConfig:
        """Return the project of the last run for another revision with the same layers."""
        assert self._project is not None
        date = (today or read_date(root)) if self._project.date else ""
        return self._project._replace(root=root, today=today, date=date)

    def make_tracer(self, project: ProjectConfig) -> Tracer:
        """Return a tracer. Those of revisions with the same layers read these once."""
        if self._tracer is None or self._tracer[0] != self._digest:
            self._tracer = self._digest, Tracer(project)
            return self._tracer[1]
        return Tracer(project, self._tracer[1])

    def prepare(self, entries: Sequence[FileEntry], selected: Sequence[str], make: Callable[[], Prepared]) -> Prepared:
        """Return the environments of the last run, or prepare them. Results that may have changed are dropped.

        `selected` are the names of the environments, also of those that have errors.
        """
        self._forget_changed_files(entries)
        files = self._digest_device_files(entries)
        is_same = self._prepared is not None and self._selected == tuple(selected)
        if self._prepared is None or not is_same or files + self._digest_state(self._prepared) != self._devices:
            self._selected = tuple(selected)
            self._prepared = make()
            self._forget_changed_layers(entries)
            devices = files + self._digest_state(self._prepared)
            if devices != self._devices:
                for name, known in self._environments.items():
                    _drop(known.results, lambda result: bool(result.dependent))
                    self._environments[name] = known._replace(cluster=ClusterMemory())
            self._devices = devices
        return self._prepared

    def complete(
        self,
        entries: Sequence[FileEntry],
        process: Callable[[Sequence[EnvironmentRunner], Sequence[FileEntry]], list[FileParts]],
    ) -> list[FileResult]:
        """Return the results of all files. Those that are not known are processed."""
        assert self._prepared is not None
        runners = self._prepared.runners
        lacking: dict[tuple[int, ...], list[FileEntry]] = {}
        kept = [self._environments[runner.name].results for runner in runners]
        for entry in entries:
            name = _name(entry)
            numbers = tuple(number for number, results in enumerate(kept) if name not in results)
            if numbers or name not in self._own:
                lacking.setdefault(numbers, []).append(entry)
        for numbers, several in lacking.items():
            for share in _split_share(several, is_whole=self.is_empty):
                for entry, parts in zip(share, process([runners[each] for each in numbers], share), strict=True):
                    name = _name(entry)
                    self._own[name] = parts[0]
                    for number, part in zip(numbers, parts[1:], strict=True):
                        kept[number][name] = part
        return [self._join(name, (self._own[name], *(each[name] for each in kept))) for name in map(_name, entries)]

    def find(self, entry: FileEntry) -> FileResult | None:
        """Return the result of a file in the last run; None if it is not known."""
        known = self._joined.get(_name(entry))
        return known[1] if known else None

    def find_result(self, env: str, entry: FileEntry) -> FileResult | None:
        """Return the result of a file in an environment; None if it is not known."""
        return self._environments[env].results.get(_name(entry))

    def find_cluster(self, env: str) -> ClusterMemory:
        """Return what is known of the cluster of an environment of the last run."""
        return self._environments[env].cluster

    def list_parts(self, entries: Iterable[FileEntry]) -> Iterator[tuple[FileEntry, FileParts]]:
        """Return the results of files by themselves and in each of `runners`, as far as they are known."""
        kept = [self._environments[runner.name].results for runner in self.runners]
        for entry in entries:
            name = _name(entry)
            own = self._own.get(name)
            if own is not None:
                yield entry, (own, *(results.get(name, _NOTHING) for results in kept))

    def read_jobs(self, entry: FileEntry) -> list[Job]:
        """Read the jobs of a file, and keep their outlines."""
        assert self._project is not None
        jobs = list(read_jobs([entry], self._project.frameworks, []))
        self._jobs[_name(entry)] = tuple(map(outline_job, jobs))
        return jobs

    def list_outlines(self, entry: FileEntry) -> tuple[Job, ...]:
        """Return the outlines of the jobs of a file: what selectors match on."""
        name = _name(entry)
        if name not in self._jobs:
            self.read_jobs(entry)
        return self._jobs[name]

    def _join(self, name: str, parts: FileParts) -> FileResult:
        """Join the results of a file; the same as before if they are."""
        known = self._joined.get(name)
        if known is None or not are_same(known[0], parts):
            known = self._joined[name] = parts, join_parts(parts)
        return known[1]

    def _forget_changed_files(self, entries: Sequence[FileEntry]) -> None:
        """Update what is known about each file. The results of a file whose content has changed are dropped."""
        now = time.time_ns()
        kept: dict[str, _Known] = {}
        for entry in entries:
            if entry.finding is None:
                kept[_name(entry)] = self._update(entry, self._files.get(_name(entry)), now)
        changed = {name for name, known in self._files.items() if name not in kept or kept[name].digest != known.digest}
        # A file that cannot be read has results, too; those that depend on the date are not used again.
        changed |= self._own.keys() - kept.keys()
        changed |= {name for name, (_, result) in self._joined.items() if result.used.days}
        for name in changed:
            self._jobs.pop(name, None)
            self._joined.pop(name, None)
            for results in self._list_results():
                results.pop(name, None)
        self._files = kept

    def _list_results(self) -> Iterator[dict[str, FileResult]]:
        """Return the results of files by themselves, and those of each environment."""
        yield self._own
        yield from (known.results for known in self._environments.values())

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
            known = self._files.get(_name(entry))
            if known and known.devices:
                digest.update(f"{entry.path}\0".encode("utf-8", "surrogatepass") + known.digest)
        return digest.digest()

    def _digest_state(self, prepared: Prepared) -> bytes:
        """The digest of exported state, which may have classes and claims too, unless it belongs to the layers."""
        assert self._project is not None
        root = self._project.root
        used = (runner.expander.environment.cluster.state for runner in prepared.runners)
        folders = layout.find_unnamed_state(root, used)
        return digest_files(file for folder in sorted(folders) for file in layout.read_state(root, folder))

    def _forget_changed_layers(self, entries: Sequence[FileEntry]) -> None:
        """Drop the results that a change of layers reaches."""
        from jobgen.pipeline.changed_layers import read_layer_files

        assert self._project is not None
        assert self._prepared is not None
        before, self._layers = self._layers, read_layer_files(self._project)
        if before is None or before.common != self._layers.common:
            self._own, self._environments, self._jobs, self._joined = {}, {}, {}, {}
        else:
            self._forget_moved(before, self._layers)
            self._forget_unselected(entries)
        self._membership = self._prepared.membership
        for runner in self._prepared.runners:
            known = self._environments.get(runner.name)
            if known:
                self._forget_reached(known, runner, entries)
            results, cluster = (known.results, known.cluster) if known else ({}, ClusterMemory())
            self._environments[runner.name] = _Environment(runner, results, cluster)
        names = {*self._project.overlays, *self._selected}
        self._environments = {name: known for name, known in self._environments.items() if name in names}

    def _forget_moved(self, before: LayerFiles, after: LayerFiles) -> None:
        """Drop results with findings that may be located elsewhere now, or that hide other secrets."""
        from jobgen.pipeline.changed_layers import is_moved

        changes = before.find_changes(after)
        hides_others = bool(changes) and before.list_secrets() != after.list_secrets()
        for results in self._list_results() if changes else ():
            _drop(results, lambda result: bool(result.findings) and (hides_others or is_moved(result, changes)))

    def _forget_unselected(self, entries: Sequence[FileEntry]) -> None:
        """Drop the results of files with jobs that no environment selects, now or before: there is a finding then."""
        assert self._prepared is not None
        memberships = [each for each in (self._membership, self._prepared.membership) if each and not each.takes_all]
        for entry in entries if memberships else ():
            if any(not each.selects(job) for job in self.list_outlines(entry) for each in memberships):
                self._own.pop(_name(entry), None)

    def _forget_reached(self, known: _Environment, runner: EnvironmentRunner, entries: Sequence[FileEntry]) -> None:
        """Drop the results of files with jobs that a change of an environment may concern."""
        from jobgen.pipeline.changed_layers import compare_environments

        environment = runner.expander.environment
        change = compare_environments(known.runner.expander.environment, environment)
        if change is None:
            return
        if change.is_total:
            known.results.clear()
            return
        # Objects of devices and runtimes are used by other jobs.
        _drop(known.results, lambda result: bool(result.dependent) or any(made.companion for made in result.made))
        for entry in entries:
            if any(change.concerns(runner.attributes(job)) for job in self.list_outlines(entry)):
                known.results.pop(_name(entry), None)


def outline_job(job: Job) -> Job:
    """Return a job with only what selectors match on."""
    data = job.document.data
    metadata, spec = as_mapping(data.get("metadata")), as_mapping(data.get("spec"))
    outline: dict[str, Any] = {
        **{key: data[key] for key in ("apiVersion", "kind") if key in data},
        "metadata": {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata},
        "spec": {key: spec[key] for key in ("framework", "platform") if key in spec},
    }
    return job._replace(document=job.document._replace(data=outline), file=File(job.file.path))


def _drop(results: dict[str, FileResult], is_dropped: Callable[[FileResult], bool]) -> None:
    for name in [name for name, result in results.items() if is_dropped(result)]:
        del results[name]


def _split_share(entries: Sequence[FileEntry], *, is_whole: bool) -> Iterator[Sequence[FileEntry]]:
    """Yield entries that are processed together. The first run looks for all of them on disk at once."""
    size = len(entries) if is_whole else _SHARE
    yield from (entries[start : start + size] for start in range(0, len(entries), size))


def digest_entry(entry: FileEntry) -> bytes:
    """Return the digest of a file, as `list_contents` does."""
    return _digest(read_file(entry))


def _name(entry: FileEntry) -> str:
    """A name of a file's result. One that may be something else than a manifest has another result."""
    return f"{entry.path}\0" if entry.optional else entry.path


def _digest(file: File) -> bytes:
    wrong = file.finding.message.encode("utf-8", "surrogatepass") if file.finding else b""
    return blake2b(file.content, digest_size=16, person=b"fault" if wrong else b"").digest() + wrong
