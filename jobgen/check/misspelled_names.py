"""Find misspelled names of queues and runtimes in a file or a build that has what is meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobgen.k8s.kueue import QUEUE_LABEL
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.model.data import Plain
from jobgen.model.finding import Problem, Severity
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.meant import find_meant
from jobgen.model.place import At, find_at
from jobgen.model.sentence import Sentence

CLUSTER_RUNTIME, OWN_RUNTIME = "ClusterTrainingRuntime", "TrainingRuntime"
SHIPPED_RUNTIMES = frozenset(
    """torch-distributed torch-distributed-with-cache deepspeed-distributed mlx-distributed jax-distributed
    xgboost-distributed""".split()
)
"""The runtimes that Trainer installs; those of torchtune share a prefix."""
_LOCAL_QUEUE = ("kueue.x-k8s.io", "LocalQueue")
_VOLCANO_QUEUE = ("scheduling.volcano.sh", "Queue")
# Kinds with which the rules about admission know the queues.
_DECIDING = frozenset(("ClusterQueue", "Cohort", "Node"))
_OF_VOLCANO = {
    ("batch.volcano.sh", "Job"): ("spec", "queue"),
    ("batch.volcano.sh", "CronJob"): ("spec", "jobTemplate", "spec", "queue"),
    ("scheduling.volcano.sh", "PodGroup"): ("spec", "queue"),
}
"""Where kinds of Volcano name their queue."""
_FOR_VOLCANO = (
    ("metadata", "annotations", "scheduling.volcano.sh/queue-name"),
    ("metadata", "labels", "volcano.sh/queue-name"),
    ("spec", "runPolicy", "schedulingPolicy", "queue"),
)
"""Where other kinds name it."""
_VOLCANO_CREATES = ("default", "root")
# What a template or a script fills in before the objects are applied.
_UNFILLED = ("$", "{", "<")
_PARTS = lazy_pattern(r"[-_.]")
_SHORT = 2


def find_misspelled_names(objects: Sequence[Mapping[str, Plain]]) -> Iterator[tuple[int, Problem]]:
    """Report each name of a queue or a runtime, by the number of its object, that another of the objects is meant by.

    The cluster may have an object of this name, so that each is a warning.
    """
    named: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for obj in objects:
        namespace, name = (as_text(get_path(obj, "metadata", field)) for field in ("namespace", "name"))
        named.setdefault(_name_kind(obj), []).append((namespace, name))
    has_local = _LOCAL_QUEUE in named and _DECIDING.isdisjoint(kind for _, kind in named)
    for number, obj in enumerate(objects):
        kind = _name_kind(obj)
        if kind[1] == "TrainJob":
            yield from ((number, problem) for problem in _check_runtime(obj, named))
        if has_local:
            place = find_at(obj, "metadata", "labels", QUEUE_LABEL)
            yield from ((number, problem) for problem in _check_queue(place, obj, _LOCAL_QUEUE, named))
        if _VOLCANO_QUEUE in named:
            paths = (_OF_VOLCANO[kind],) if kind in _OF_VOLCANO else _FOR_VOLCANO
            for place in (find_at(obj, *path) for path in paths):
                yield from ((number, problem) for problem in _check_queue(place, obj, _VOLCANO_QUEUE, named))


_Named = Mapping[tuple[str, str], Sequence[tuple[str, str]]]
"""The namespaces and names of objects by group and kind."""


def _check_queue(place: At | None, obj: Mapping[str, Plain], kind: tuple[str, str], named: _Named) -> Iterator[Problem]:
    name = as_text(place.node) if place else ""
    every = [each for _, each in named[kind]]
    # A queue of this name in another namespace is another fault.
    if not name or name in every or (kind == _VOLCANO_QUEUE and name in _VOLCANO_CREATES):
        return
    known = _list_usable(named[kind], as_text(get_path(obj, "metadata", "namespace")))
    if meant := find_misspelled(name, known):
        message = Sentence("none of these objects is a {} `{}`; did you mean `{}`?", kind[1], name, meant)
        yield Problem("unknown-queue", message, place, category="scheduling", severity=Severity.WARNING)


def _check_runtime(obj: Mapping[str, Plain], named: _Named) -> Iterator[Problem]:
    holder = as_mapping(get_path(obj, "spec", "runtimeRef"))
    kind, name = as_text(holder.get("kind")) or CLUSTER_RUNTIME, as_text(holder.get("name"))
    group, _ = _name_kind(obj)
    known = _list_usable(named.get((group, kind), ()), as_text(get_path(obj, "metadata", "namespace")))
    if not name or name in known or (kind == CLUSTER_RUNTIME and is_shipped(name)):
        return
    if meant := find_misspelled(name, known) or _find_cut(name, known):
        message = f"none of these objects is a {kind} `{name}`; did you mean `{meant}`?"
    elif kind == CLUSTER_RUNTIME and (meant := find_misspelled(name, SHIPPED_RUNTIMES)):
        message = describe_unshipped(name, meant)
    elif kind == OWN_RUNTIME and is_shipped(name):
        # Another file may have one.
        place, severity = At(holder, "kind"), Severity.INFO
        yield Problem("unknown-runtime", describe_other_kind(name), place, category="fleet", severity=severity)
    if meant:
        place = At(holder, "name")
        yield Problem("unknown-runtime", message, place, category="fleet", severity=Severity.WARNING)


def is_shipped(name: str) -> bool:
    """Return True for a runtime that Trainer installs."""
    return name in SHIPPED_RUNTIMES or name.startswith("torchtune-")


def describe_unshipped(name: str, meant: str) -> str:
    """Say that Trainer installs no runtime of a name, and which one is meant."""
    return f"Trainer has no {CLUSTER_RUNTIME} `{name}`, unless the cluster has its own; did you mean `{meant}`?"


def describe_other_kind(name: str) -> str:
    """Say that Trainer installs a runtime for the whole cluster only."""
    message = f"Trainer installs `{name}` as a {CLUSTER_RUNTIME}; unless the namespace has a {OWN_RUNTIME} of this name"
    return f"{message}, write `kind: {CLUSTER_RUNTIME}`, or remove `kind`"


def find_misspelled(name: str, known: Iterable[str]) -> str:
    """Return the one known name that a name means, unless they differ in a short part, as `team-a` and `team-b` do."""
    meant = "" if any(sign in name for sign in _UNFILLED) else find_meant(name, known)
    parts, others = _PARTS.split(name), _PARTS.split(meant)
    if len(parts) == len(others) and any(
        a != b and len(a) == len(b) <= _SHORT for a, b in zip(parts, others, strict=True)
    ):
        return ""
    return meant


def _find_cut(name: str, known: Iterable[str]) -> str:
    """Return the only runtime whose name lacks its last letter, or has one more: `torch-a100` for `torch-a10`."""
    near = [each for each in known if each[:-1] == name or name[:-1] == each]
    return near[0] if len(near) == 1 else ""


def _list_usable(named: Iterable[tuple[str, str]], namespace: str) -> list[str]:
    """The names of objects that one in a namespace can use; where a file says none, it is set later."""
    return [name for own, name in named if name and (not own or not namespace or own == namespace)]


def _name_kind(obj: Mapping[str, Plain]) -> tuple[str, str]:
    return as_text(obj.get("apiVersion")).rpartition("/")[0], as_text(obj.get("kind"))
