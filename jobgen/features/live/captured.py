"""What is read of a cluster, and what is kept of it: no secrets, nothing that changes by itself, in a stable order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jobgen.k8s.nodes import as_list, as_mapping, get_path
from jobgen.k8s.secrets import find_secrets, redact_tree
from jobgen.model.lazy_re import lazy_pattern


class Resource(NamedTuple):
    """Objects of one kind that a capture reads."""

    group: str
    """The group and version, such as `apps/v1`; `v1` for the core group."""
    plural: str
    kept: tuple[str, ...] = ("spec",)
    """The fields beside `metadata` that are kept; `status.used` is one field of the status."""
    page: int = 500
    keeps_times: bool = False
    """True if the times of its conditions are kept: they say when something started and ended."""

    @property
    def path(self) -> str:
        """The path of the list of all objects."""
        return f"/{'api' if '/' not in self.group else 'apis'}/{self.group}/{self.plural}"


_KUEUE, _JOBS = "kueue.x-k8s.io/v1beta1", ("spec", "status.conditions", "status.active", "status.jobStatus")
RESOURCES = (
    Resource("v1", "namespaces", ()),
    Resource("v1", "nodes", ("spec.taints", "spec.unschedulable", "status.capacity", "status.allocatable")),
    Resource("v1", "resourcequotas", ("spec", "status.used")),
    Resource("v1", "limitranges"),
    Resource("v1", "serviceaccounts", ()),
    Resource("v1", "persistentvolumeclaims"),
    Resource("scheduling.k8s.io/v1", "priorityclasses", ("value", "globalDefault", "preemptionPolicy")),
    Resource("storage.k8s.io/v1", "storageclasses", ("provisioner", "volumeBindingMode", "reclaimPolicy")),
    Resource("node.k8s.io/v1", "runtimeclasses", ("handler", "scheduling", "overhead")),
    Resource("resource.k8s.io/v1", "deviceclasses"),
    Resource("resource.k8s.io/v1", "resourceslices", page=100),
    Resource("resource.k8s.io/v1", "resourceclaimtemplates"),
    Resource("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    Resource("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
    Resource("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies"),
    Resource("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings"),
    Resource(_KUEUE, "resourceflavors"),
    Resource(_KUEUE, "clusterqueues", ("spec", "status.flavorsUsage", "status.flavorsReservation")),
    Resource(_KUEUE, "localqueues"),
    Resource(_KUEUE, "cohorts"),
    Resource(_KUEUE, "topologies"),
    Resource(_KUEUE, "admissionchecks"),
    Resource(_KUEUE, "multikueueconfigs"),
    Resource(_KUEUE, "multikueueclusters", ("status.conditions",)),
    Resource(_KUEUE, "workloadpriorityclasses", ("value", "description")),
    Resource(
        _KUEUE,
        "workloads",
        ("spec.queueName", "spec.priority", "status.admission", "status.conditions"),
        keeps_times=True,
    ),
    Resource("scheduling.volcano.sh/v1beta1", "queues"),
    Resource("trainer.kubeflow.org/v1alpha1", "clustertrainingruntimes"),
    Resource("trainer.kubeflow.org/v1alpha1", "trainingruntimes"),
)
RUNNING = (
    Resource("batch/v1", "jobs", _JOBS),
    Resource("jobset.x-k8s.io/v1alpha2", "jobsets", _JOBS),
    Resource("kubeflow.org/v1", "pytorchjobs", _JOBS),
    Resource("kubeflow.org/v1", "tfjobs", _JOBS),
    Resource("kubeflow.org/v1", "xgboostjobs", _JOBS),
    Resource("kubeflow.org/v1", "paddlejobs", _JOBS),
    Resource("kubeflow.org/v1", "jaxjobs", _JOBS),
    Resource("kubeflow.org/v1", "mxjobs", _JOBS),
    Resource("kubeflow.org/v2beta1", "mpijobs", _JOBS),
    Resource("trainer.kubeflow.org/v1alpha1", "trainjobs", _JOBS),
    Resource("ray.io/v1", "rayjobs", _JOBS),
    Resource("ray.io/v1", "rayclusters", _JOBS),
    Resource("batch.volcano.sh/v1alpha1", "jobs", _JOBS),
    Resource("leaderworkerset.x-k8s.io/v1", "leaderworkersets", _JOBS),
)
"""Jobs, which `jobgen drift` compares; they are in a folder of their own, which a lint does not read."""
DEPLOYMENTS = Resource("apps/v1", "deployments")
DEFINITIONS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", page=20)
IMAGES: Mapping[str, str] = {
    "training-operator": "training-operator",
    "trainer-controller-manager": "trainer",
    "kueue": "kueue",
    "jobset": "jobset",
    "lws": "leaderworkerset",
    "mpi-operator": "mpi-operator",
    "vc-controller-manager": "volcano",
    "kuberay/operator": "kuberay",
    "appwrapper": "appwrapper",
}
"""The operators of images: their last word, or two."""
_TAG = lazy_pattern(r"v?(\d+\.\d+(?:\.\d+)?)")
_NOISE = frozenset(
    """creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generation managedFields
    resourceVersion selfLink uid""".split()
)
_NOISY_ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "control-plane.alpha.kubernetes.io/leader",
    "csi.volume.kubernetes.io/nodeid",
    "node.alpha.kubernetes.io/ttl",
    "volumes.kubernetes.io/controller-managed-attach-detach",
)
_VOLATILE = frozenset(
    ("lastTransitionTime", "lastProbeTime", "lastUpdateTime", "lastHeartbeatTime", "observedGeneration")
)


def pluralize_kind(kind: str) -> str:
    """Return the name of a kind in paths, as Kubernetes forms it by default."""
    name = kind.lower()
    if name.endswith("y"):
        return f"{name[:-1]}ies"
    return f"{name}{'es' if name.endswith(('s', 'x', 'ch', 'sh')) else 's'}"


def strip(obj: Mapping[str, Any], kept: tuple[str, ...], *, keeps_times: bool = False) -> dict[str, Any]:
    """Return what is kept of an object: its names, labels and annotations, and some of its fields, without secrets."""
    metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _NOISE}
    annotations = metadata.pop("annotations", None) or {}
    own = {key: value for key, value in annotations.items() if key not in _NOISY_ANNOTATIONS}
    found: dict[str, Any] = {key: obj.get(key) for key in ("apiVersion", "kind")}
    found["metadata"] = {**metadata, "annotations": own} if own else metadata
    for field in kept:
        first, _, below = field.partition(".")
        block = obj.get(first)
        value = block.get(below) if below and isinstance(block, dict) else block if not below else None
        if value is not None:
            place = found.setdefault(first, {}) if below else found
            place[below or first] = _without_times(
                value, _VOLATILE - {"lastTransitionTime"} if keeps_times else _VOLATILE
            )
    masked: Any = redact_tree(found, find_secrets(found))
    return dict(masked)


def _without_times(node: Any, volatile: frozenset[str]) -> Any:
    """Return a value without what changes by itself."""
    if isinstance(node, dict):
        return {key: _without_times(value, volatile) for key, value in node.items() if key not in volatile}
    return [_without_times(item, volatile) for item in node] if isinstance(node, list) else node


def find_operators(deployment: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the operators that a Deployment runs, with the versions of their images."""
    containers = get_path(deployment, "spec", "template", "spec", "containers")
    for container in map(as_mapping, as_list(containers)):
        name, _, tag = str(container.get("image", "")).partition("@")[0].rpartition(":")
        words = name.split("/")
        operator = IMAGES.get("/".join(words[-2:])) or IMAGES.get(words[-1])
        version = _TAG.match(tag)
        if operator and version:
            yield operator, str(version[1])
