"""The queue of a job and whether the job is suspended, as Kueue reads them."""

from __future__ import annotations

from collections.abc import Sequence

from jobgen.k8s.kueue_integrations import INTEGRATIONS
from jobgen.k8s.nodes import as_text, get_path
from jobgen.k8s.objects import Manifest, Pod
from jobgen.k8s.team_uses import QUEUES
from jobgen.k8s.workloads import find_workload
from jobgen.model.data import Plain
from jobgen.model.finding import Cause, add_article
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, find_at

DOMAIN = "kueue.x-k8s.io/"
QUEUE_LABEL = DOMAIN + "queue-name"


def get_queue(manifest: Manifest) -> Plain:
    """Return the node that names the job's queue, in the field that its kind has for it; None if there is no queue."""
    if manifest.kind is None:
        return get_kueue_queue(manifest) if is_managed_by_kueue(manifest) else None
    field = manifest.kind.fields.get("queue")
    found = get_path(manifest.object, *map(str, field.at)) if field else None
    return found if as_text(found) else None


def find_queue(manifest: Manifest) -> At | None:
    """Return the place of the name of the job's queue, in the field that its kind has for it."""
    field = manifest.kind.fields.get("queue") if manifest.kind else None
    path = ("metadata", "labels", QUEUE_LABEL) if manifest.kind is None else map(str, field.at) if field else ()
    return find_at(manifest.object, *path) if path else None


def get_kueue_queue(manifest: Manifest) -> Plain:
    """Return the value of Kueue's queue label, or None."""
    if QUEUE_LABEL not in manifest.labels:
        return None
    found = manifest.labels[QUEUE_LABEL]
    return found if as_text(found) else None


def can_be_queued(manifest: Manifest) -> bool:
    """Return True if Kueue, or TensorStack's scheduler, supports this kind. Kueue does not support MPIJob v1."""
    if manifest.kind is None:
        return is_managed_by_kueue(manifest)
    return "queue" in manifest.kind.fields and not is_mpi_v1(manifest)


# Kinds without a kind description whose pods Kueue admits together. It admits those of a Deployment one by one.
_MANAGED = {
    "apps": ("StatefulSet",),
    "batch": ("Job",),
    "jobset.x-k8s.io": ("JobSet",),
    "leaderworkerset.x-k8s.io": ("LeaderWorkerSet",),
    "ray.io": ("RayCluster", "RayJob", "RayService"),
    "workload.codeflare.dev": ("AppWrapper",),
}


def is_managed_by_kueue(manifest: Manifest) -> bool:
    """Return True if Kueue manages objects of this kind, with all their pods together."""
    if manifest.kind is None:
        # An object that another one has as text also has no kind description.
        version = as_text(manifest.object.get("apiVersion"))
        is_described = manifest.group.endswith("kubeflow.org") and (version, manifest.kind_name) in INTEGRATIONS
        return is_described or is_managed_kind(manifest.group, manifest.kind_name)
    field = manifest.kind.fields.get("queue")
    return field is not None and field.at[-1] == QUEUE_LABEL and not is_mpi_v1(manifest)


def is_managed_kind(group: str, kind: str) -> bool:
    """Return True if Kueue manages objects of a kind that has no kind description."""
    return kind in _MANAGED.get(group, ())


# Kinds whose label Kueue reads, although it admits their pods one by one.
_LABELED = (("", "Pod"), ("apps", "Deployment"))
# Kinds that create objects for which Kueue reads no label of theirs or of their pods.
_UNMANAGED = (("ray.io", "RayCronJob"), ("batch.volcano.sh", "CronJob"))


class QueueAdvice(NamedTuple):
    """What to write so that pods wait in a queue; without words if they do."""

    words: str = ""
    cause: Cause = ""


def advise_queue(manifest: Manifest, pods: Sequence[Pod]) -> QueueAdvice:
    """Return what to write so that these pods of an object wait in a queue."""
    kind = (manifest.group, manifest.kind_name)
    if get_queue(manifest) is not None and can_be_queued(manifest):
        return QueueAdvice()
    others = [use for use in manifest.uses if use.what == QUEUES and not use.qualifier.startswith(DOMAIN)]
    schedulers = {as_text(pod.spec.get("schedulerName")) for pod in pods}
    # The queue of another scheduler is one only where that scheduler runs.
    if others and ("kueue" not in manifest.cluster.operators or not schedulers & {"", "default-scheduler"}):
        return QueueAdvice()
    if kind == ("batch", "CronJob"):
        label = get_path(manifest.spec, "jobTemplate", "metadata", "labels", QUEUE_LABEL)
        return QueueAdvice("" if as_text(label) else f"set `{QUEUE_LABEL}` in the labels of its `jobTemplate`")
    if kind in _LABELED:
        return QueueAdvice("" if get_kueue_queue(manifest) is not None else f"set the label `{QUEUE_LABEL}`")
    if can_be_queued(manifest):
        return QueueAdvice("set `queue`" if manifest.kind else f"set the label `{QUEUE_LABEL}`")
    unmanaged = f"Kueue does not manage {add_article(manifest.kind_name)}"
    if kind in _UNMANAGED:
        return QueueAdvice(f"{unmanaged}, so use a kind that it manages")
    if pods and all(as_text(get_path(pod.metadata, "labels", QUEUE_LABEL)) for pod in pods):
        return QueueAdvice()
    return QueueAdvice(f"{unmanaged}, so set the label `{QUEUE_LABEL}` in its pod template", "unmanaged kind")


def is_mpi_v1(manifest: Manifest) -> bool:
    """Return True if the object is an MPIJob of the training-operator."""
    kind = manifest.kind
    return kind is not None and kind.name == "MPIJob" and kind.operator == "training-operator"


def stays_suspended(manifest: Manifest) -> bool:
    """Return True if a job is suspended in Git, and no queue starts it; a suspended schedule starts nothing."""
    workload = find_workload(manifest.group, manifest.kind_name)
    if workload is not None and workload.scheduled:
        return manifest.spec.get("suspend") is True
    return is_suspended(manifest) and get_kueue_queue(manifest) is None


def creates_wrapped_objects(manifest: Manifest) -> bool:
    """Return True if the objects inside an AppWrapper are created: it is not suspended, or a queue starts it."""
    return manifest.spec.get("suspend") is not True or get_kueue_queue(manifest) is not None


def find_suspend(manifest: Manifest) -> At | None:
    """Return the place of the job's suspend field; None if its kind has no such field or it is not set."""
    path = find_suspend_path(manifest)
    return find_at(manifest.object, *path) if path else None


def find_suspend_path(manifest: Manifest) -> tuple[str, ...]:
    """Return the path of the field that suspends a job; empty if its kind has none."""
    workload = find_workload(manifest.group, manifest.kind_name)
    if workload is not None:
        return workload.suspend
    field = manifest.kind.fields.get("suspend") if manifest.kind else None
    return tuple(map(str, field.at)) if field else ()


def is_suspended(manifest: Manifest) -> bool:
    """Return True if the job is suspended."""
    path = find_suspend_path(manifest)
    return bool(path) and get_path(manifest.object, *path) is True
