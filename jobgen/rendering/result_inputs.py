"""What the results of files read, and the digests that it has now.

The result of a file in an environment reads the file, what all results depend on, the environment, and the patches
that match the jobs of the file. If it has findings, it also reads the lines of layers that they are located in. So an
edit of an overlay reaches the jobs that it concerns, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from jobgen.engine.inputs import Read, digest_bytes
from jobgen.engine.store import Query, Store
from jobgen.k8s.devices import may_concern_devices
from jobgen.k8s.kinds import may_define_kinds
from jobgen.k8s.nodes import as_mapping
from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.model.lazy_re import lazy_pattern
from jobgen.rendering.config import ProjectConfig
from jobgen.rendering.environment import DAY, EnvironmentRunner
from jobgen.rendering.file_result import FileResult
from jobgen.rendering.read_jobs import Files, read_jobs
from jobgen.rendering.trace import Job
from jobgen.repo import layout
from jobgen.repo.files import File, FileEntry, read_file
from jobgen.repo.root import LAYER_FOLDERS
from jobgen.spec.overlay import Patch

DescribeMembership = Callable[[Callable[[], Sequence[Job]]], str]

_OUTLINES: Query[tuple[Job, ...]] = Query("outlines")
_FILE, _COMMON, _ENVIRONMENT, _PATCHES, _MEMBERSHIP = "file", "common", "environment", "patches", "membership"
_LINES, _SECRETS = "lines", "secrets"
ALL_PATCHES = "all patches"
"""The read of what depends on other jobs of the environment, whichever patches match these."""
SHARED = "shared"
"""The read of what other files define: devices, kinds, ConfigMaps."""
COMPARED_DAY = "compared day"
"""The read of a fact that is compared with the date; no object depends on it."""
_NAMES_OF_CONFIGS = lazy_pattern(rb"(?<![\w-])(?:ConfigMap|configs|Secret|SealedSecret)(?![\w-])")


class ResultInputs:
    """What the results of a run read, and the digests that it has now."""

    def __init__(
        self,
        project: ProjectConfig,
        store: Store,
        runners: Sequence[EnvironmentRunner],
        entries: Sequence[FileEntry],
        files: Files,
        describe_membership: DescribeMembership | None,
    ) -> None:
        """Start with the files of a run; `describe_membership` is None if it does not matter what is selected."""
        self._project = project
        self._store = store
        self._files = files
        self._describe = describe_membership
        self._runners = {runner.name: runner for runner in runners}
        self._entries = {name_entry(entry): entry for entry in entries}
        self._known: dict[tuple[str, str], str] = {}
        self._held: set[Read] = set()
        """The reads that give the same now: most of them are those of many results."""
        self._outlines: dict[str, tuple[Job, ...]] = {}
        self._patches: dict[int, str] = {}
        self._look: dict[str, Callable[[str], str]] = {
            _FILE: lambda name: digest_entry(self._entries[name]),
            _COMMON: self._digest_common,
            _ENVIRONMENT: self._digest_environment,
            _PATCHES: self._digest_patches,
            ALL_PATCHES: self._digest_all_patches,
            _MEMBERSHIP: self._describe_membership,
            _LINES: self._digest_lines,
            _SECRETS: self._digest_secrets,
            SHARED: self._digest_shared,
            DAY: lambda _: project.day(),
            COMPARED_DAY: lambda _: project.day(),
        }

    def holds(self, read: Read) -> bool:
        """Return True if a read gives the same now."""
        if read in self._held:
            return True
        is_same = self._is_same(*read)
        if is_same:
            self._held.add(read)
        return is_same

    def _is_same(self, name: str, argument: str, digest: str) -> bool:
        if name == _MEMBERSHIP and self._describe is None:
            # Whether an environment selects a job matters to what a lint says of it, not to its objects.
            return True
        if name == _PATCHES:
            # If no patch has changed, it does not matter which ones match.
            every, _, chosen = digest.partition(" ")
            if every == self.digest(ALL_PATCHES, argument.partition("\0")[0]):
                return True
            return self.digest(name, argument).partition(" ")[2] == chosen
        return self.digest(name, argument) == digest

    def digest(self, name: str, argument: str = "") -> str:
        """Return the digest of an input."""
        known = self._known.get((name, argument))
        if known is None:
            known = self._known[name, argument] = self._look[name](argument)
        return known

    def list_reads(
        self, entry: FileEntry, env: str | None, part: FileResult, *, holds_again: bool = True
    ) -> list[Read]:
        """Return what the result of a file in an environment, or by itself, has read.

        A result that does not hold again is that of this run alone.
        """
        name, others = name_entry(entry), set(part.used.reads)
        asked = [(_FILE, name), (_COMMON, "")]
        if env is None:
            asked.append((_MEMBERSHIP, name))
        else:
            asked += [(_ENVIRONMENT, env), (_PATCHES, f"{env}\0{name}")]
            others |= {DAY} if self._runners[env].expander.environment.is_dated else set()
            # Objects of devices and runtimes are used by other jobs, so other patches may reach them.
            others |= {ALL_PATCHES} if SHARED in others or any(made.companion for made in part.made) else set()
        asked += [(probe, (env or "") if probe == ALL_PATCHES else "") for probe in sorted(others)]
        if part.findings:
            asked.append((_SECRETS, ""))
            # The last line of each layer that findings are located in.
            last: dict[str, int] = {}
            for place in (place for finding in part.findings for place in _list_locations(finding)):
                if place.file in self._texts:
                    last[place.file] = max(place.line, place.end_line, last.get(place.file, 0))
            asked += [(_LINES, f"{line} {file}") for file, line in last.items()]
        reads = [(probe, argument, self.digest(probe, argument)) for probe, argument in asked]
        # No file has an empty digest, so no later run uses the result.
        return reads if holds_again else [*reads, (_FILE, name, "")]

    def list_common(self) -> list[Read]:
        """Return what any result reads of layers but for overlays."""
        return [(probe, "", self.digest(probe)) for probe in (_COMMON, _SECRETS)]

    def note_jobs(self, entry: FileEntry, jobs: Iterable[Job]) -> None:
        """Keep the outlines of the jobs of a file, which have been read."""
        self._outlines[name_entry(entry)] = tuple(map(_outline_job, jobs))

    def list_outlines(self, name: str) -> tuple[Job, ...]:
        """Return the jobs of a file with only what selectors match on."""
        outlines = self._outlines.get(name)
        if outlines is None:
            content = f"{self.digest(_FILE, name)} {self.digest(_COMMON)}"
            outlines = self._store.ask(_OUTLINES, name, lambda: self._read_outlines(name), content=content)
            self._outlines[name] = outlines
        return outlines

    def _read_outlines(self, name: str) -> tuple[Job, ...]:
        return tuple(map(_outline_job, read_jobs([self._entries[name]], self._project.kinds, [])))

    def find_contents(self) -> dict[str, str]:
        """Return the digests of all files, by path, and of the layers, under an empty path."""
        return {"": self._project.digest} | {
            entry.path: self.digest(_FILE, name) for name, entry in self._entries.items()
        }

    def digest_shared(self) -> str:
        """Return the digest of what files may share: devices and kinds that some define, and exported state."""
        return self.digest(SHARED)

    @cached_property
    def _texts(self) -> dict[str, bytes]:
        """The texts of overlays and settings, of which environments are composed."""
        layers = self._project.layers
        settings = layout.read_settings(layers)
        files = [*(file for _, file in layout.read_overlays(layers)), *([settings] if settings else ())]
        return {file.path: file.content for file in files}

    def _digest_common(self, _: str) -> str:
        """Return a digest of what every result depends on: all layers but overlays, and what settings say of rules."""
        project = self._project
        files = layout.read_layer_folders(project.layers, [top for top in LAYER_FOLDERS if top != "overlays"])
        packs = layout.read_packs(layout.read_settings(project.layers))
        said = repr((sorted(project.severities.off), packs, project.teams, project.as_written))
        return digest_bytes(digest_files(files) + said.encode("utf-8", "surrogatepass"))

    def _digest_environment(self, env: str) -> str:
        # Representations are compared, because `1`, `1.0` and `true` are equal in Python. Runtimes are files.
        rest = self._runners[env].expander.environment._replace(jobs=(), patches=(), runtimes={})
        return digest_value(rest)

    def _digest_all_patches(self, env: str) -> str:
        environment = self._runners[env].expander.environment
        return digest_value((environment.jobs, list(map(self._digest_patch, environment.patches))))

    def _digest_patches(self, argument: str) -> str:
        """Return the digest of all patches, and that of those which match the jobs of a file."""
        env, _, name = argument.partition("\0")
        runner = self._runners[env]
        every = self.digest(ALL_PATCHES, env)
        if not runner.expander.environment.jobs and not runner.expander.environment.patches:
            return f"{every} "
        found = [runner.patches_for(job) for job in self.list_outlines(name)]
        chosen = [None if each is None else list(map(self._digest_patch, each)) for each in found]
        return f"{every} {digest_value(chosen)}"

    def _digest_patch(self, patch: Patch) -> str:
        # The patches of an environment live as long as this object.
        known = self._patches.get(id(patch))
        if known is None:
            known = self._patches[id(patch)] = digest_value(patch._replace(place=0))
        return known

    def _describe_membership(self, name: str) -> str:
        """Return what environments select of the jobs of a file."""
        return "" if self._describe is None else self._describe(lambda: self.list_outlines(name))

    def _digest_lines(self, argument: str) -> str:
        line, _, file = argument.partition(" ")
        lines = self._texts.get(file, b"").split(b"\n", int(line))
        return digest_bytes(b"\n".join(lines[: int(line)]))

    def _digest_secrets(self, _: str) -> str:
        # Imported late: most answers read no text of another file.
        from jobgen.rendering.redact import find_file_secrets

        secrets = {secret for text in self._texts.values() for secret in find_file_secrets(text)}
        return digest_value(sorted(secrets))

    def _digest_shared(self, _: str) -> str:
        """Return the digest of files that define what objects of others use, and of exported state."""
        root = self._project.root
        sources = list(self._files.list_all(root))
        # Those that this run processes have been read.
        own = {entry.path: entry for entry in self._entries.values() if entry.build is None}
        files = [read_file(own.get(entry.path, entry)) for entry in sources if entry.build is None]
        found = [(file.path, digest_bytes(file.content)) for file in files if may_be_used(file.content)]
        return digest_value((found, self.digest_state()))

    def digest_state(self, _: str = "") -> str:
        """Return the digest of the exported state of clusters."""
        folders = sorted({runner.expander.environment.cluster.state for runner in self._runners.values()} - {""})
        return digest_files(
            file for folder in folders for file in layout.read_state(self._project.layers, folder)
        ).decode()


def name_entry(entry: FileEntry) -> str:
    """Return a name of a file's results: what a file was taken for decides how it is processed."""
    taken_for = {"o": entry.optional, "s": entry.is_source, "b": entry.build is not None}
    flags = "".join(letter for letter, is_set in taken_for.items() if is_set)
    return f"{entry.path}\0{flags}" if flags else entry.path


def digest_entry(entry: FileEntry) -> str:
    """Return the digest of the content of a file, or of why it cannot be read."""
    file = read_file(entry)
    if file.finding is None:
        return digest_bytes(file.content)
    return digest_value(file.finding.fault)


def digest_files(files: Iterable[File]) -> bytes:
    """Return the digest of the paths and contents of files."""
    found = [(file.path, file.finding and file.finding.fault, digest_bytes(file.content)) for file in files]
    return digest_value(found).encode()


def digest_value(value: object) -> str:
    """Return the digest of a value, whose representation says all about it."""
    return digest_bytes(repr(value).encode("utf-8", "surrogatepass"))


def concerns_others(content: bytes) -> bool:
    """Return True if objects of other files may depend on a file: it may define devices, or kinds."""
    return may_concern_devices(content) or may_define_kinds(content)


def may_be_used(content: bytes) -> bool:
    """Return True if checks of objects in other files may read a file: it may define devices, kinds or ConfigMaps."""
    return concerns_others(content) or _NAMES_OF_CONFIGS.search(content) is not None


def _list_locations(finding: Finding) -> Iterator[Location]:
    yield finding.location
    yield from (related.location for related in finding.related)
    yield from (edit.location for edit in (finding.fix.edits if finding.fix else ()))


def _outline_job(job: Job) -> Job:
    """Return a job with only what selectors match on."""
    data = job.document.data
    metadata, spec = as_mapping(data.get("metadata")), as_mapping(data.get("spec"))
    outline: dict[str, Any] = {
        **{key: data[key] for key in ("apiVersion", "kind") if key in data},
        "metadata": {key: metadata[key] for key in ("name", "namespace", "labels") if key in metadata},
        "spec": {key: spec[key] for key in ("framework", "platform") if key in spec},
    }
    return job._replace(document=job.document._replace(data=outline), file=File(job.file.path))


def make_key(scope: str, env: str | None, entry: FileEntry) -> str:
    """Return the key of the result of a file by itself, or in an environment."""
    where = "own" if env is None else f"in {env}"
    return f"{scope} {where} {name_entry(entry)}"
