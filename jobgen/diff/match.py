"""Pair the objects of two snapshots, including objects whose name changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.argocd_annotations import is_training_job
from jobgen.k8s.nodes import as_text, get_path
from jobgen.render.build import is_spec
from jobgen.render.environment import Rendered
from jobgen.render.runs import JOB_ANNOTATION

Pair = tuple[Rendered | None, Rendered | None]
_KeyFunction = Callable[[Snapshot, Rendered], Hashable]


def match_objects(old: Snapshot, new: Snapshot) -> Iterator[Pair]:
    """Yield every object with its counterpart, or alone.

    Objects match by identity, then by the `jobgen.dev/job` annotation, then by source file and job name.
    """
    yield from match_some(old, new, old.objects, new.objects)


def match_some(old: Snapshot, new: Snapshot, some: Iterable[Rendered], others: Iterable[Rendered]) -> Iterator[Pair]:
    """Yield some objects of two snapshots as `match_objects` does."""
    before, after = list(some), list(others)
    for key in (_by_identity, _by_job_annotation, _by_source):
        if before and after:
            yield from _take_pairs(key, old, new, before, after)
    yield from ((one, None) for one in before)
    yield from ((None, one) for one in after)


def match_within_files(
    old: Snapshot, new: Snapshot, files: Collection[str]
) -> tuple[list[Pair], list[Rendered], list[Rendered]]:
    """Return the objects of files that have the same identity and file on both sides, and the others of each side.

    Identities must be unique on each side, as they are if a repository can be rendered.
    """
    made = [one for one in new.objects if one.location.file in files]
    index = {(one.location.file, _by_identity(new, one)): one for one in made}
    pairs: list[Pair] = []
    left: list[Rendered] = []
    for one in old.objects:
        same = index.pop((one.location.file, _by_identity(old, one)), None)
        if same is not None:
            pairs.append((one, same))
        elif one.location.file in files:
            left.append(one)
    return pairs, left, list(index.values())


def _take_pairs(
    key: _KeyFunction, old: Snapshot, new: Snapshot, before: list[Rendered], after: list[Rendered]
) -> Iterator[Pair]:
    """Yield the objects that have the same key on both sides, and remove them from the lists."""
    old_objects, new_objects = _index(key, old, before), _index(key, new, after)
    pairs = [(old_objects[found], new_objects[found]) for found in old_objects if found in new_objects]
    yield from pairs
    # By id(), because two jobs may be equal.
    taken = {id(one) for pair in pairs for one in pair}
    before[:] = [one for one in before if id(one) not in taken]
    after[:] = [one for one in after if id(one) not in taken]


def _index(key: _KeyFunction, snapshot: Snapshot, objects: Sequence[Rendered]) -> dict[Hashable, Rendered]:
    """The objects by key, without those whose key is ambiguous."""
    index: dict[Hashable, Rendered] = {}
    ambiguous: set[Hashable] = set()
    for one in objects:
        found = key(snapshot, one)
        if found is not None and found in index:
            ambiguous.add(found)
        elif found is not None:
            index[found] = one
    return {found: one for found, one in index.items() if found not in ambiguous}


def _by_identity(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    group = rendered.identity.api_version.rpartition("/")[0]
    return (rendered.env, group, *rendered.identity[1:])


def _by_job_annotation(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    job = as_text(get_path(rendered.object, "metadata", "annotations", JOB_ANNOTATION))
    return (rendered.env, rendered.identity.namespace, job) if job else None


def _by_source(snapshot: Snapshot, rendered: Rendered) -> Hashable:
    """The file of a job and its name there; the file names of a rendered tree are generated, so they do not count."""
    document = None if snapshot.is_tree else snapshot.job(rendered).document
    if document is None or not (is_spec(document.data) or is_training_job(snapshot.manifest(rendered))):
        return None
    # The companions of a job are other objects than the job, such as its runtime.
    companion = rendered.identity.kind if rendered.companion else ""
    return (rendered.env, rendered.location.file, document.name, companion)
