"""The pods of a PaddleJob: parameter servers if it has a master, else collective training.

Source: kubeflow/training-operator 1.9, pkg/controller.v1/paddlepaddle/envvar.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.convert.operators.created import Created, Fields
from jobgen.features.convert.operators.pod_edits import field_variable, variable
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
    "paddleReplicaSpecs",
    ("Master", "Worker"),
    "paddle",
    "master",
    36543,
    "OnFailure",
    "paddlejob-controller",
    ("Master",),
    first_worker=False,
)


def create_paddle_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a PaddleJob and their Services."""
    return create_replicas(read_job(obj, KIND, cluster), KIND, append_variables(_list_variables))


def _list_variables(job: TrainingJob, replicas: Replicas, index: int) -> Iterator[Fields]:
    yield variable("PYTHONUNBUFFERED", 1)
    yield variable("PADDLE_JOB_ID", job.name)
    yield variable("PADDLE_NNODES", job.total)
    leader = "Master" if "Master" in job.roles else "Worker"
    port = job.roles[leader].find_port(KIND)
    if index == 0 and replicas.role == leader:
        yield field_variable("POD_IP_DUMMY", "status.podIP")
        yield variable("PADDLE_MASTER", f"$(POD_IP_DUMMY):{port}")
    else:
        yield variable("PADDLE_MASTER", f"{job.name_pod(leader, 0)}:{port}")
    if leader == "Master":
        yield variable("PADDLE_SERVER_NUM" if replicas.role == "Master" else "PADDLE_TRAINER_NUM", 1)
