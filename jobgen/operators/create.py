"""Compute the pods that the operator of an object would create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.k8s.kind_groups import get_group
from jobgen.model.data import Node, untraced
from jobgen.operators.batch_job import create_job
from jobgen.operators.created import Created, CreatedPod, Creator
from jobgen.operators.jobset import create_job_set
from jobgen.operators.pod_edits import as_string
from jobgen.operators.pytorchjob import create_pytorch_job
from jobgen.operators.trainer import create_train_job
from jobgen.spec.overlay import Cluster

_NEWEST = Cluster()
_CREATORS: Mapping[tuple[str, str], Creator] = {
    ("batch", "Job"): create_job,
    ("jobset.x-k8s.io", "JobSet"): create_job_set,
    ("kubeflow.org", "PyTorchJob"): create_pytorch_job,
    ("trainer.kubeflow.org", "TrainJob"): create_train_job,
}


def create_pods(
    obj: Mapping[str, Node], objects: Sequence[Mapping[str, Node]] = (), cluster: Cluster = _NEWEST
) -> tuple[CreatedPod, ...]:
    """Return the pods that the operator of an object creates, at the declared version; none for an unknown kind.

    `objects` has the objects that it may refer to, such as runtimes. A suspended object is treated as a running one.
    """
    return create_all(obj, objects, cluster).pods


def create_all(
    obj: Mapping[str, Node], objects: Sequence[Mapping[str, Node]] = (), cluster: Cluster = _NEWEST
) -> Created:
    """Return the pods, Services and other objects that the operator of an object creates."""
    plain: Mapping[str, Any] = untraced(obj)
    key = get_group(as_string(plain.get("apiVersion"))), as_string(plain.get("kind"))
    creator = _CREATORS.get(key)
    return creator(plain, [untraced(other) for other in objects], cluster) if creator else Created()
