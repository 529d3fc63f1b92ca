"""The fields that rules read, where a fault in one of them can make a rule say that something is missing."""

_TOTAL = frozenset(("replicas", "roles", "minAvailable"))
_AMOUNTS = frozenset(("resources", "requests", "limits", "memory"))
DEPENDS_ON: dict[str, frozenset[str]] = {
    "replica-totals": _TOTAL,
    "min-available-too-high": _TOTAL,
    "min-available-too-low": _TOTAL,
    "nnodes-mismatch": _TOTAL,
    "missing-resources": _AMOUNTS | {"cpu"},
    "missing-requests": _AMOUNTS | {"cpu"},
    "missing-memory": _AMOUNTS,
    "missing-shm": frozenset(("shm", "volumes")),
    "missing-field": frozenset(),
    "missing-pod-field": frozenset(),
    "missing-role": frozenset(("spec",)),
    "unknown-volume": frozenset(("volumes",)),
    "unshared-folder": frozenset(("mount", "mounts", "volumeMounts", "volumes")),
    "conflicting-env": frozenset(),
    "invalid-env-source": frozenset(),
    "invalid-selector": frozenset(("values", "operator")),
    "rejected-child": frozenset(("spec", "template")),
    "never-starts": frozenset(("clusterSelector", "rayClusterSpec")),
    "inadmissible-job": frozenset(("rayClusterSpec",)),
    "stale-image": frozenset(("image", "imagePullPolicy")),
}
"""Rules about what a job does not have, and the fields that they read; they also read those that they name."""
