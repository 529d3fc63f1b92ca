"""DNS of pods on the network of the node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_text
from jobgen.k8s.objects import Pod
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep

_POLICY = "ClusterFirstWithHostNet"
_BY_NAME = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")


@rule("pod", WARNING, fields=("hostNetwork",), kinds=_BY_NAME)
def host_network_dns(pod: Pod) -> Iterator[Violation]:
    """`hostNetwork` without `dnsPolicy: ClusterFirstWithHostNet` in a job of several pods.

    Such a pod uses the DNS of its node, which usually does not resolve Services. The names by which the operator
    connects the pods, such as `MASTER_ADDR`, do not resolve then, and the job hangs.

    Set `dnsPolicy: ClusterFirstWithHostNet` next to `hostNetwork`.
    """
    manifest = pod.manifest
    node = pod.spec["hostNetwork"]
    if value_of(node) is not True or manifest.pod_count < 2:
        return
    # The MPIJob of training-operator reaches its workers through `kubectl exec`.
    if manifest.kind_name == "MPIJob" and manifest.kind and value_of(manifest.kind.api_version) == "kubeflow.org/v1":
        return
    if as_text(pod.spec.get("dnsPolicy")) in ("", "ClusterFirst", "Default"):
        key = next(key for key in pod.spec if key == "hostNetwork")
        message = f"pods on the host network cannot resolve Services; set `dnsPolicy: {_POLICY}`"
        policy = pod.spec.get("dnsPolicy")
        fix_steps = (
            (FixStep("set", policy, _POLICY),) if policy is not None else (FixStep("add", key, _POLICY, "dnsPolicy"),)
        )
        yield Violation(node if policy is None else policy, message, fix_steps=fix_steps, safe=False)
