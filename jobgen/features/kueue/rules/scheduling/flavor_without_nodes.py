"""Flavors whose labels no node has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest
from jobgen.model.suggest import did_you_mean, find_key

if TYPE_CHECKING:
    from jobgen.features.kueue.queue_state import QueueState


@rule("queue", WARNING, kinds=("ResourceFlavor",))
def flavor_without_nodes(manifest: Manifest, queues: QueueState) -> Iterator[Violation]:
    """A ResourceFlavor whose `nodeLabels` no node has.

    Kueue gives the pods of an admitted job the labels of the flavor as node selector. Without such a node they stay
    pending, and the job holds its quota. The rule applies if nodes are known: Node objects are among the files, or
    `cluster.kueue.nodes` lists them. Nodes that an autoscaler adds later are not known; list them in `nodes`.

    Correct the labels, or add the nodes.
    """
    labels = as_mapping(manifest.spec.get("nodeLabels"))
    nodes = queues.node_labels
    wanted = {str(key): as_text(value) for key, value in labels.items()}
    if not wanted or not nodes or any(wanted.items() <= each.items() for each in nodes):
        return
    for key, value in wanted.items():
        values = sorted({each[key] for each in nodes if key in each})
        if not values:
            hint = did_you_mean(key, sorted({name for each in nodes for name in each}))
            message = f"no node has the label `{key}` of the flavor, so pods that Kueue admits to it stay pending"
            yield Violation(find_key(labels, key), f"{message}{hint or '; correct the label, or add nodes'}")
            return
        if value not in values:
            shown = ", ".join(f"`{each}`" for each in values[:5])
            message = (
                f"no node has the label `{key}: {value}` of the flavor, so pods that Kueue admits to it stay pending"
            )
            yield Violation(labels[key], f"{message}; nodes have {shown}")
            return
    message = "no node has all `nodeLabels` of the flavor, so pods that Kueue admits to it stay pending"
    yield Violation(find_key(manifest.spec, "nodeLabels"), f"{message}; correct the labels, or add nodes")
