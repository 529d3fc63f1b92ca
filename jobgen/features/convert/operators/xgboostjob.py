"""The pods of an XGBoostJob, which also serves LightGBM.

Source: kubeflow/training-operator 1.9, pkg/controller.v1/xgboost/xgboost.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.convert.operators.created import MAX_PODS, Created, Fields
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

KIND = JobKind(
    "xgbReplicaSpecs",
    ("Master", "Worker"),
    "xgboost",
    "xgboostjob-port",
    9999,
    "Never",
    "xgboostjob-controller",
    ("Master",),
    first_worker=False,
)


def create_xgboost_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of an XGBoostJob and their Services."""
    return create_replicas(read_job(obj, KIND, cluster), KIND, append_variables(_list_variables))


def _list_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    master, worker = job.roles.get("Master"), job.roles.get("Worker")
    yield variable("MASTER_PORT", master.find_port(KIND) if master else KIND.port)
    yield variable("MASTER_ADDR", job.name_pod("Master", 0))
    yield variable("WORLD_SIZE", job.total)
    yield variable("RANK", index + (master.count if master and replicas.role == "Worker" else 0))
    yield variable("PYTHONUNBUFFERED", 1)
    if job.total > 1:
        yield variable("WORKER_PORT", worker.find_port(KIND) if worker else KIND.port)
        workers = range(min(job.total - 1, MAX_PODS))
        yield variable("WORKER_ADDRS", ",".join(job.name_pod("Worker", each) for each in workers))
