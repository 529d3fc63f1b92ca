"""Find what a change of overlays and settings reaches. The results of all other jobs stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from jobgen.model.data import Location
from jobgen.model.finding import Finding
from jobgen.model.named_tuple import NamedTuple
from jobgen.pipeline.config import ProjectConfig
from jobgen.pipeline.file_result import FileResult
from jobgen.pipeline.redact import find_file_secrets
from jobgen.pipeline.result_cache import digest_files
from jobgen.repo import layout
from jobgen.repo.files import File
from jobgen.repo.root import SETTINGS
from jobgen.spec.overlay import Environment, JobAttributes, Patch


class LayerFiles(NamedTuple):
    """The files of layers that a run has read."""

    common: bytes
    """A digest of what every result depends on: all but overlays and settings, and the rules that are off."""
    texts: Mapping[str, bytes]
    """The overlays and settings by path. Environments are composed of them, and findings may be located in them."""

    def list_secrets(self) -> frozenset[str]:
        """Return the secrets in overlays and settings, which are removed from findings."""
        return frozenset(secret for text in self.texts.values() for secret in find_file_secrets(text))

    def find_changes(self, later: LayerFiles) -> dict[str, int]:
        """Return the first line that has changed in each file that has."""
        files = self.texts.keys() | later.texts.keys()
        pairs = {file: (self.texts.get(file, b""), later.texts.get(file, b"")) for file in files}
        return {file: _find_first_change(*pair) for file, pair in pairs.items() if pair[0] != pair[1]}


def read_layer_files(project: ProjectConfig) -> LayerFiles:
    """Read the files of layers."""
    texts: dict[str, bytes] = {}
    others: list[File] = []
    for file in layout.read_inputs(project.root):
        # The exported state of a cluster, which is read later, may be in the folder of an overlay.
        if file.path not in texts and (file.path == SETTINGS or file.path.startswith("overlays/")):
            texts[file.path] = file.content
        else:
            others.append(file)
    off = repr(sorted(project.severities.off))
    return LayerFiles(digest_files(others) + off.encode("utf-8", "surrogatepass"), texts)


def _find_first_change(before: bytes, after: bytes) -> int:
    lines = zip_longest(before.split(b"\n"), after.split(b"\n"))
    return next(number for number, (one, other) in enumerate(lines, 1) if one != other)


def is_moved(result: FileResult, changes: Mapping[str, int]) -> bool:
    """Whether a finding may have another location now, because the file of it has changed before its end."""
    return any(
        max(location.line, location.end_line) >= changes[location.file]
        for finding in result.findings
        for location in _list_locations(finding)
        if location.file in changes
    )


def _list_locations(finding: Finding) -> Iterator[Location]:
    yield finding.location
    yield from (related.location for related in finding.related)
    yield from (edit.location for edit in (finding.fix.edits if finding.fix else ()))


class EnvironmentChange(NamedTuple):
    """How an environment differs from what it was before."""

    before: Environment
    after: Environment
    patches: tuple[Patch, ...]
    """The patches that only one of them has, or that have been moved."""
    is_total: bool
    """Whether something differs that may concern every job."""

    def concerns(self, job: JobAttributes) -> bool:
        """Whether a job may have another result now."""
        if self.before.matches(job) != self.after.matches(job):
            return True
        return any(patch.matches(job) for patch in self.patches)


def compare_environments(before: Environment, after: Environment) -> EnvironmentChange | None:
    """Compare an environment with what it was before; None if both are the same.

    Representations are compared, because `1`, `1.0` and `true` are equal in Python.
    """
    patches = _find_changed_patches(before.patches, after.patches)
    is_total = _describe_rest(before) != _describe_rest(after)
    if not patches and not is_total and repr(before.jobs) == repr(after.jobs):
        return None
    return EnvironmentChange(before, after, patches, is_total)


def _describe_rest(environment: Environment) -> str:
    # Runtimes are files of their own.
    return repr(environment._replace(jobs=(), patches=(), runtimes={}))


def _find_changed_patches(before: tuple[Patch, ...], after: tuple[Patch, ...]) -> tuple[Patch, ...]:
    """Return the patches between the first and the last that differ, of both."""
    one, other = ([repr(patch._replace(place=0)) for patch in patches] for patches in (before, after))
    start = _count_equal(one, other)
    end = _count_equal(one[start:][::-1], other[start:][::-1])
    return (*before[start : len(before) - end], *after[start : len(after) - end])


def _count_equal(one: list[str], other: list[str]) -> int:
    """Count the items at the start that are equal."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (each, its) in pairs if each != its), min(len(one), len(other)))
