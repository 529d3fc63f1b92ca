"""Pods that no node has room for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.devices import is_device
from jobgen.k8s.objects import Manifest
from jobgen.model.data import untraced
from jobgen.model.quantity import to_milli

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", WARNING)
def larger_than_nodes(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A container that requests more devices than any known node has.

    All devices of a pod are devices of one node. If no node has as many, the pod stays `Pending`, also after Kueue has
    admitted the job, and the job holds its quota. The rule applies in a cluster with ClusterQueues if nodes are
    known: Node objects are among the files, or `cluster.kueue.nodes` lists them. It is a warning, because an autoscaler
    can add larger nodes; list them in `nodes`. Resources that no known node has are not reported.

    Request at most as many devices as a node has, and use more pods.
    """
    largest = queues.largest_nodes
    for pod in manifest.pods if largest else ():
        for container in (*pod.containers, *pod.init_containers):
            for name, value in {**container.requests, **container.limits}.items():
                most, wanted = largest.get(str(name), 0), to_milli(value) or 0
                # Kueue's own decision names the topology, or the quota, that the job does not fit into.
                if is_device(str(name)) and 0 < most < wanted and not queues.find_obstacle(untraced(manifest.object)):
                    message = f"{wanted // 1000} `{name}` in one pod, but the largest node has {most // 1000}"
                    yield Violation(value, f"{message}; request at most {most // 1000}, and use more pods")
                    return
