"""The pods of a TFJob, and TF_CONFIG.

Source: kubeflow/training-operator 1.9, pkg/controller.v1/tensorflow (tensorflow.go, tfjob_controller.go).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jobgen.features.convert.operators.created import MAX_PODS, Created, Fields
from jobgen.features.convert.operators.pod_edits import append, edit_containers, variable
from jobgen.features.convert.operators.training_operator import (
    JobKind,
    Replicas,
    TrainingJob,
    create_replicas,
    read_job,
)
from jobgen.spec.overlay import Cluster

KIND = JobKind(
    "tfReplicaSpecs",
    ("Chief", "Master", "Worker", "PS", "Evaluator"),
    "tensorflow",
    "tfjob-port",
    2222,
    "Never",
    "tfjob-controller",
    ("Chief", "Master"),
    other_roles=True,
)


def create_tf_job(obj: Fields, _objects: Sequence[Fields], cluster: Cluster) -> Created:
    """Compute the pods of a TFJob and their Services."""
    return create_replicas(read_job(obj, KIND, cluster), KIND, _inject)


def _inject(job: TrainingJob, replicas: Replicas, index: int) -> Fields:
    """Set TF_CONFIG in the training container, unless there is one pod only."""
    if job.total < 2:
        return replicas.spec
    config = variable("TF_CONFIG", json.dumps(_make_config(job, replicas, index), separators=(",", ":")))
    return edit_containers(replicas.spec, lambda each: append(each, "env", [config]), name=KIND.container)


def _make_config(job: TrainingJob, replicas: Replicas, index: int) -> dict[str, Any]:
    """Return the value of TF_CONFIG. With dynamic workers, a pod knows only itself and the parameter servers."""
    hosts = {role.lower(): _list_hosts(job, each) for role, each in sorted(job.roles.items())}
    role = replicas.role.lower()
    task = {"type": role, "index": index}
    if job.spec.get("enableDynamicWorker") is not True:
        return {"cluster": dict(sorted(hosts.items())), "task": task, "environment": "cloud"}
    worker = {str(index): hosts[role][index]} if role == "worker" else {}
    servers = hosts.get("ps", []) if role == "worker" else hosts[role][index : index + 1] if role == "ps" else []
    return {"cluster": {"worker": worker, "ps": servers}, "task": task}


def _list_hosts(job: TrainingJob, replicas: Replicas) -> list[str]:
    port = replicas.find_port(KIND)
    indexes = range(min(replicas.count, MAX_PODS))
    return [f"{job.name_pod(replicas.role, index)}.{job.namespace}.svc:{port}" for index in indexes]
