"""The pods of a JAXJob.

Source: kubeflow/training-operator 1.9, pkg/controller.v1/jax/envvar.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.convert.operators.created import Created, Fields
from jobgen.features.convert.operators.pod_edits import variable
from jobgen.features.convert.operators.training_operator import (
    JobKind,
    Replicas,
    TrainingJob,
    append_variables,
    create_replicas,
    read_job,
)
from jobgen.spec.overlay import Cluster

KIND = JobKind("jaxReplicaSpecs", ("Worker",), "jax", "jaxjob-port", 6666, "Never", "jaxjob-controller")


def create_jax_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a JAXJob and their Services."""
    return create_replicas(read_job(obj, KIND, cluster), KIND, append_variables(_list_variables))


def _list_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    yield variable("PYTHONUNBUFFERED", 1)
    yield variable("COORDINATOR_PORT", replicas.find_port(KIND))
    yield variable("COORDINATOR_ADDRESS", job.name_pod("Worker", 0))
    yield variable("NUM_PROCESSES", job.total)
    yield variable("PROCESS_ID", index)
