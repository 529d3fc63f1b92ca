"""Queues: which one a job names, and what Kueue makes of its labels."""

from __future__ import annotations

from jobgen.k8s.objects import Manifest, as_text, get_path
from jobgen.model.data import Data, value_of

DOMAIN = "kueue.x-k8s.io/"
QUEUE_LABEL = DOMAIN + "queue-name"


def get_queue(manifest: Manifest) -> Data:
    """What names the job's queue, where its kind says it; None if the job is in none."""
    field = manifest.kind.fields.get("queue") if manifest.kind else None
    found = get_path(manifest.object, *map(str, field.at)) if field else None
    return found if as_text(found) else None


def get_kueue_queue(manifest: Manifest) -> Data:
    """The label that puts a job into a queue of Kueue, or None."""
    labels = manifest.metadata.get("labels")
    found = labels.get(QUEUE_LABEL) if isinstance(labels, dict) else None
    return found if as_text(found) else None


def can_be_queued(manifest: Manifest) -> bool:
    """Whether Kueue, or TensorStack's scheduler, admits jobs of this kind: it never learnt MPIJob v1."""
    kind = manifest.kind
    return kind is not None and "queue" in kind.fields and not is_mpi_v1(manifest)


def is_mpi_v1(manifest: Manifest) -> bool:
    """Whether it is an MPIJob of the training-operator."""
    kind = manifest.kind
    return kind is not None and kind.name == "MPIJob" and kind.operator == "training-operator"


def get_suspend(manifest: Manifest) -> Data:
    """What says whether the job waits, where its kind says it; None if nothing is said."""
    field = manifest.kind.fields.get("suspend") if manifest.kind else None
    return get_path(manifest.object, *map(str, field.at)) if field else None


def is_suspended(manifest: Manifest) -> bool:
    """Whether the job is told to wait."""
    return value_of(get_suspend(manifest)) is True
