"""Which object of one side is which of the other, even where its name was made anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from jobgen.diff.snapshot import Snapshot
from jobgen.k8s.argocd_annotations import is_training_job
from jobgen.k8s.objects import as_text, get_path
from jobgen.pipeline.environment import Rendered
from jobgen.render.build import is_spec
from jobgen.render.runs import JOB_ANNOTATION

Pair = tuple[Rendered | None, Rendered | None]
_Key = Callable[[Snapshot, Rendered], Hashable]


def match_objects(old: Snapshot, new: Snapshot) -> Iterator[Pair]:
    """Every object with its counterpart, or alone: the same object, else the same job, else the same document."""
    before, after = list(old.made), list(new.made)
    for key in (_identity, _stable, _source):
        if before and after:
            yield from _paired(key, old, new, before, after)
    yield from ((one, None) for one in before)
    yield from ((None, one) for one in after)


def _paired(key: _Key, old: Snapshot, new: Snapshot, before: list[Rendered], after: list[Rendered]) -> Iterator[Pair]:
    """Those that a key leads from one side to the other; they are taken off the lists."""
    then, now = _by(key, old, before), _by(key, new, after)
    both = [(then[found], now[found]) for found in then if found in now]
    yield from both
    # By identity, for the same job may well be equal to another one.
    gone = {id(one) for pair in both for one in pair}
    before[:] = [one for one in before if id(one) not in gone]
    after[:] = [one for one in after if id(one) not in gone]


def _by(key: _Key, side: Snapshot, objects: Sequence[Rendered]) -> dict[Hashable, Rendered]:
    """The objects by key; a key that two of them have tells nothing."""
    found: dict[Hashable, Rendered] = {}
    twice: set[Hashable] = set()
    for one in objects:
        known = key(side, one)
        if known is not None and known in found:
            twice.add(known)
        elif known is not None:
            found[known] = one
    return {known: one for known, one in found.items() if known not in twice}


def _identity(side: Snapshot, made: Rendered) -> Hashable:
    group = made.identity.api_version.rpartition("/")[0]
    return (made.env, group, *made.identity[1:])


def _stable(side: Snapshot, made: Rendered) -> Hashable:
    named = as_text(get_path(made.object, "metadata", "annotations", JOB_ANNOTATION))
    return (made.env, made.identity.namespace, named) if named else None


def _source(side: Snapshot, made: Rendered) -> Hashable:
    """Where a job is written, and its name there; the files of a tree are made, and say nothing."""
    document = None if side.is_tree else side.job(made).document
    if document is None or not (is_spec(document.data) or is_training_job(side.manifest(made))):
        return None
    return (made.env, made.location.file, document.name)
