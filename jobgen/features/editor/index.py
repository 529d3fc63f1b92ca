"""The index of a workspace: its jobs, the objects they become, the patches that touch them, and names that files use.

The background process builds it file by file, and sends only what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Location, value_of
from jobgen.model.finding import Identity
from jobgen.rendering.environment import EnvironmentRunner
from jobgen.rendering.file_result import FileParts, are_same
from jobgen.rendering.trace import Job
from jobgen.repo.files import FileEntry
from jobgen.spec.overlay import PatchName

USED_KINDS = {
    "claimName": "PersistentVolumeClaim",
    "configMap": "ConfigMap",
    "namespace": "Namespace",
    "priorityClass": "PriorityClass",
    "priorityClassName": "PriorityClass",
    "pvc": "PersistentVolumeClaim",
    "queue": "LocalQueue",
    "runtime": "ClusterTrainingRuntime",
    "secret": "Secret",
    "secretName": "Secret",
    "serviceAccount": "ServiceAccount",
    "serviceAccountName": "ServiceAccount",
}
"""Fields that name an object, and the kind of it."""
REFERRED_KINDS = {
    "configMap": "ConfigMap",
    "configMapKeyRef": "ConfigMap",
    "configMapRef": "ConfigMap",
    "imagePullSecrets": "Secret",
    "runtimeRef": "ClusterTrainingRuntime",
    "secretKeyRef": "Secret",
    "secretRef": "Secret",
}
"""Fields with a mapping, or a list of them, whose `name` is that of an object."""
KEYED_KINDS = {"configs": "ConfigMap", "secrets": "Secret"}
"""Fields of jobs with a mapping whose keys are names of objects."""
LABEL = "label:"
"""Before the key of a label, in place of a kind: the names are its values."""


class RenderedJob(NamedTuple):
    """A job in one environment."""

    environment: str
    objects: tuple[Identity, ...]
    """The object of the job, then its companions; none if it has errors or is inactive."""
    patches: tuple[PatchName, ...]


class IndexedJob(NamedTuple):
    """A job spec or a manifest."""

    name: str
    kind: str
    """`TrainingJob`, or the kind of a manifest."""
    framework: str
    sweep: str
    location: Location
    position: int
    item: int
    environments: tuple[RenderedJob, ...]


class FileIndex(NamedTuple):
    """The jobs of a file, and the names of objects in it, by kind."""

    jobs: tuple[IndexedJob, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    """Kind and name of each object that the file defines or uses."""


def list_jobs(index: Mapping[str, FileIndex]) -> Iterator[IndexedJob]:
    """Yield the jobs of all files of an index."""
    return (job for file in index.values() for job in file.jobs)


class IndexChange(NamedTuple):
    """What changed in an index."""

    changed: Mapping[str, FileIndex] = {}
    removed: tuple[str, ...] = ()
    is_whole: bool = False
    """True if it is the first change, so that what was known before is obsolete."""


class IndexBuilder:
    """Builds the index of a workspace again and again. A file whose results are the same objects has not changed."""

    def __init__(self) -> None:
        self._results: dict[str, FileParts] = {}
        self._is_first = True

    def update(
        self,
        results: Iterable[tuple[FileEntry, FileParts]],
        runners: Sequence[EnvironmentRunner],
        read: Callable[[FileEntry], Sequence[Job]],
    ) -> IndexChange:
        """Return what changed since the last update. `read` reads the jobs of a file."""
        current = {entry.path: (entry, parts) for entry, parts in results}
        changed: dict[str, FileIndex] = {}
        for path, (entry, parts) in current.items():
            if are_same(self._results.get(path, ()), parts):
                continue
            jobs = read(entry)
            made: dict[tuple[int, int, str], list[Identity]] = {}
            for each in (each for part in parts for each in part.made):
                made.setdefault((each.position, each.item, each.env), []).append(each.identity)
            names = {name for job in jobs for name in list_names(job.document.data)}
            places = zip(jobs, locate_jobs(jobs), strict=True)
            indexed = tuple(_index_job(job, place, made, runners) for job, place in places)
            changed[path] = FileIndex(indexed, tuple(sorted(names)))
        removed = tuple(path for path in self._results if path not in current)
        self._results = {path: parts for path, (_, parts) in current.items()}
        is_first, self._is_first = self._is_first, False
        return IndexChange(changed, removed, is_first)


def _index_job(
    job: Job,
    location: Location,
    made: Mapping[tuple[int, int, str], list[Identity]],
    runners: Sequence[EnvironmentRunner],
) -> IndexedJob:
    environments: list[RenderedJob] = []
    for runner in runners:
        patches = runner.patches_for(job)
        if patches is not None:
            objects = tuple(made.get((job.position, job.item, runner.name), ()))
            used = tuple(dict.fromkeys(patch.name for patch in patches))
            environments.append(RenderedJob(runner.name, objects, used))
    document, data = job.document, job.document.data
    kind, framework = str(value_of(data.get("kind"))), as_text(as_mapping(data.get("spec")).get("framework"))
    place = (location, job.position, job.item)
    return IndexedJob(document.name, kind, framework, document.sweep, *place, tuple(environments))


def locate_jobs(jobs: Sequence[Job]) -> list[Location]:
    """Return where each job of a file begins. Items of a List are found by reading the file with locations."""
    lists = {job.position for job in jobs if job.item > 0}
    return [job.start() if job.position in lists else job.location for job in jobs]


def list_names(data: Any) -> Iterator[tuple[str, str]]:
    """Return kind and name of the objects that a document defines or uses."""
    kind, name = data.get("kind"), as_mapping(data.get("metadata")).get("name")
    if isinstance(kind, str) and kind != "TrainingJob" and isinstance(name, str):
        yield kind, name
    pending: list[Any] = [data]
    while pending:
        tree = pending.pop()
        if isinstance(tree, dict):
            for key, child in tree.items():
                yield from _list_named(key, child)
            pending += tree.values()
        elif isinstance(tree, list):
            pending += tree


def _list_named(key: Any, child: Any) -> Iterator[tuple[str, str]]:
    if _is_name(child):
        if key in USED_KINDS:
            yield USED_KINDS[key], child
    elif key in REFERRED_KINDS:
        for each in child if isinstance(child, list) else [child]:
            name = each.get("name") if isinstance(each, dict) else each
            if isinstance(name, str) and _is_name(name):
                yield REFERRED_KINDS[key], name
    elif key == "labels" and isinstance(child, dict):
        yield from ((f"{LABEL}{label}", value) for label, value in child.items() if _is_name(value))
        queue = child.get(QUEUE_LABEL)
        if isinstance(queue, str) and _is_name(queue):
            yield "LocalQueue", queue
    elif key in KEYED_KINDS and isinstance(child, dict):
        yield from ((KEYED_KINDS[key], name) for name in child if _is_name(name))


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "{{" not in value
