"""Proxies of a service mesh in the pods of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.k8s.objects import Manifest, Pod
from jobgen.model.suggest import find_key

if TYPE_CHECKING:
    from jobgen.check.cluster.state import ClusterState

# Labels or annotations of pods that turn injection on or off, by mesh.
_SWITCHES = {"Istio": "sidecar.istio.io/inject", "Linkerd": "linkerd.io/inject"}
_OFF = {"Istio": "false", "Linkerd": "disabled"}
_KINDS = "JAXJob Job JobSet MPIJob PaddleJob PyTorchJob TFJob XGBoostJob"


@rule("cluster", WARNING, kinds=tuple(_KINDS.split()))
def injected_proxy(manifest: Manifest, state: ClusterState) -> Iterator[Violation]:
    """A job in a namespace whose service mesh adds a proxy to every pod.

    The label `istio-injection: enabled` of a namespace adds an Istio proxy to its pods. It intercepts the connections
    between the pods of a job: `init_process_group` hangs, or workers fail until the proxy is ready. A proxy that is an
    ordinary container also keeps running after the training, so the job does not complete.

    Set the label `sidecar.istio.io/inject: "false"` on the pods.
    """
    found = state.injecting.get(manifest.namespace)
    if found is None:
        return
    mesh, label = found
    for pod in manifest.pods:
        if pod.partial or _get_switch(pod, mesh):
            continue
        is_one = manifest.pod_count == 1 and manifest.kind is not None
        effect = "keeps the pod running after the training" if is_one else "breaks the connections between the pods"
        message = f"namespace `{manifest.namespace}` injects a sidecar of {mesh} into the pod, which {effect}"
        advice = f'set the label `{_SWITCHES[mesh]}: "{_OFF[mesh]}"` on the pods'
        node = find_key(pod.template, "spec") or manifest.object.get("kind")
        yield Violation(node, f"{message}; {advice}", ((label, "injection is enabled here"),))
        return


def _get_switch(pod: Pod, mesh: str) -> str:
    """Return what the pod says about injection; empty if it leaves that to its namespace."""
    places = (pod.metadata.get("labels"), pod.metadata.get("annotations"))
    return next((text for each in places if (text := as_text(as_mapping(each).get(_SWITCHES[mesh])))), "")
