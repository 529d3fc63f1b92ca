"""The fields that rules read, where a fault in one of them can make a rule say that something is missing."""

_TOTAL = frozenset(("replicas", "roles", "minAvailable"))
_AMOUNTS = frozenset(("resources", "requests", "limits", "memory"))
_POD = frozenset(("template", "spec", "containers", "initContainers"))
DEPENDS_ON: dict[str, frozenset[str]] = {
    "replica-totals": _TOTAL,
    "min-available-too-high": _TOTAL,
    "min-available-too-low": _TOTAL,
    "nnodes-mismatch": _TOTAL,
    "missing-resources": _AMOUNTS | {"cpu"},
    "missing-requests": _AMOUNTS | {"cpu"},
    "missing-memory": _AMOUNTS,
    "missing-shm": frozenset(("shm", "volumes", "volumeMounts", "mountPath", "emptyDir", "medium")),
    "missing-replicas": frozenset(("replicas",)),
    "role-without-template": frozenset(("template",)),
    "uneven-priority": _POD | {"priorityClassName"},
    "master-worker-gpu-mismatch": _POD | _AMOUNTS,
    "mpi-slots-mismatch": frozenset(("slotsPerWorker", "replicas")),
    "workers-outlive-job": frozenset(("runPolicy", "cleanPodPolicy")),
    "unmounted-volume": _POD | {"volumeMounts", "mountPath"},
    "missing-field": frozenset(),
    "missing-pod-field": frozenset(),
    "missing-role": frozenset(("spec",)),
    "unknown-volume": frozenset(("volumes",)),
    "unshared-folder": frozenset(("mount", "mounts", "volumeMounts", "volumes")),
    "conflicting-env": frozenset(),
    "invalid-env-source": frozenset(),
    "invalid-selector": frozenset(("values", "operator", "labels", "metadata", "matchLabels")),
    "rejected-child": frozenset(("spec", "template")),
    "never-starts": frozenset(("clusterSelector", "rayClusterSpec")),
    "inadmissible-job": frozenset(("rayClusterSpec",)),
    "missing-resource-limit": frozenset(("limits",)),
    "service-port-clash": frozenset(),
    "invalid-value": frozenset(),
    "rejected-by-operator": frozenset(),
    "unreachable-rendezvous": frozenset(),
    "unknown-probe-port": frozenset(("ports",)),
    "stale-image": frozenset(("image", "imagePullPolicy")),
}
"""Rules about what a job does not have, and the fields that they read; they also read those that they name."""

NAMED_IN: dict[str, tuple[str, ...]] = {
    "invalid-value": ("containers",),
    "missing-shm": ("volumeMounts",),
    "never-starts": ("tasks",),
    "rejected-by-operator": ("replicatedJobs", "tasks"),
    "service-port-clash": ("ports",),
    "unknown-probe-port": ("ports",),
    "unknown-volume": ("volumes",),
    "unmounted-volume": ("volumeMounts",),
    "unreachable-rendezvous": ("replicatedJobs",),
}
"""Rules that read the names of items, and the list of these items: an item may only lack its name by a slip."""

BLOCKS = frozenset(
    """containers headGroupSpec jobTemplate mpiReplicaSpecs pytorchReplicaSpecs rayClusterSpec replicatedJobs spec tasks
    template tfReplicaSpecs workerGroupSpecs""".split()
)
"""Fields that hold pods: without them, nothing that is said of the pods of an object is true."""
ABOUT_TEXT = frozenset(("unknown-field", "wrong-type", "yaml-syntax", "duplicate-key", "invalid-quantity"))
"""Rules about what is written, which hold whatever else is read."""
SHARED_NAMES = frozenset("args command data env image key kind labels name path type value values".split())
"""Names of fields in many places: what asks for one of them may ask for another."""
