"""Compute the pods that the operator of an object would create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jobgen.features.convert.operators.created import Created, CreatedPod, Creator, Fields, as_string
from jobgen.features.convert.operators.jobset import create_job, create_job_set
from jobgen.features.convert.operators.kuberay import create_ray_cluster, create_ray_job
from jobgen.features.convert.operators.mpi_operator import create_mpi_job_v1, create_mpi_job_v2
from jobgen.features.convert.operators.tensorstack import TENSORSTACK_KINDS, create_tensorstack_job
from jobgen.features.convert.operators.trainer import create_train_job
from jobgen.features.convert.operators.training_operator import TRAINING_KINDS, create_training_job
from jobgen.features.convert.operators.volcano import create_volcano_job
from jobgen.k8s.kinds import get_group
from jobgen.model.data import Node, untraced
from jobgen.spec.overlay import Cluster

_NEWEST = Cluster()


def _create_mpi_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Choose the operator of an MPIJob, which depends on the version of its API."""
    if as_string(obj.get("apiVersion")).endswith("/v2beta1"):
        return create_mpi_job_v2(obj, cluster)
    return create_mpi_job_v1(obj, cluster)


_CREATORS: Mapping[tuple[str, str], Creator] = {
    ("batch", "Job"): create_job,
    **{("batch.tensorstack.dev", kind): create_tensorstack_job for kind in TENSORSTACK_KINDS},
    ("batch.volcano.sh", "Job"): create_volcano_job,
    ("jobset.x-k8s.io", "JobSet"): create_job_set,
    **{("kubeflow.org", kind): create_training_job for kind in TRAINING_KINDS},
    ("kubeflow.org", "MPIJob"): _create_mpi_job,
    ("ray.io", "RayCluster"): create_ray_cluster,
    ("ray.io", "RayJob"): create_ray_job,
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
    obj: Mapping[str, Node],
    objects: Sequence[Mapping[str, Node]] = (),
    cluster: Cluster = _NEWEST,
    *,
    is_plain: bool = False,
) -> Created:
    """Return the pods, Services and other objects that the operator of an object creates.

    An object that `is_plain` has no locations.
    """
    plain: Mapping[str, Any] = obj if is_plain else untraced(obj)
    key = get_group(as_string(plain.get("apiVersion"))), as_string(plain.get("kind"))
    creator = _CREATORS.get(key)
    return creator(plain, [untraced(other) for other in objects], cluster) if creator else Created()
