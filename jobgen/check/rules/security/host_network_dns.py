"""DNS of pods on the network of the node."""

from collections.abc import Iterator

from jobgen.check.rules import WARNING, Violation, rule
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Pod
from jobgen.k8s.workloads import RAY_CLUSTERS
from jobgen.model.data import value_of
from jobgen.model.finding import FixStep

_POLICY = "ClusterFirstWithHostNet"
_BY_NAME = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MXJob", "MPIJob")
# Kinds whose pods find each other by names, whatever their number is.
_RUNTIMES = ("ClusterTrainingRuntime", "TrainingRuntime")
_RAY = ("RayCluster", "RayJob", "RayService")
_NEED_SERVICE = ("svc", "tensorflow", "mpi", "pytorch", "ray")


@rule("pod", WARNING, fields=("hostNetwork",), kinds=(*_BY_NAME, *_RUNTIMES, *_RAY, "Job"))
def host_network_dns(pod: Pod) -> Iterator[Violation]:
    """`hostNetwork` without `dnsPolicy: ClusterFirstWithHostNet` in a job of several pods.

    Such a pod uses the DNS of its node, which usually does not resolve Services. The names by which the operator
    connects the pods, such as `MASTER_ADDR`, do not resolve then, and the job hangs. So it is with the workers of Ray,
    which connect to the Service of the head, with training runtimes, and with the plugin `svc` of Volcano, whose
    webhook sets the policy if there is none.

    Set `dnsPolicy: ClusterFirstWithHostNet` next to `hostNetwork`.
    """
    manifest = pod.manifest
    node = pod.spec["hostNetwork"]
    if value_of(node) is not True or not _is_found_by_name(pod):
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


def _is_found_by_name(pod: Pod) -> bool:
    """Return True if a pod, or the pods that it connects to, are found by names of Services."""
    manifest = pod.manifest
    if manifest.kind_name in _RUNTIMES:
        return True
    if manifest.group == "ray.io":
        path = ("headGroupSpec", "template")
        cluster = as_mapping(get_path(manifest.object, *RAY_CLUSTERS[manifest.kind_name]))
        return pod.template is not get_path(cluster, *path)
    if manifest.kind_name == "Job":
        plugins = as_mapping(manifest.spec.get("plugins"))
        is_set = bool(as_text(pod.spec.get("dnsPolicy")))
        return manifest.group == "batch.volcano.sh" and is_set and any(name in plugins for name in _NEED_SERVICE)
    return manifest.pod_count > 1
