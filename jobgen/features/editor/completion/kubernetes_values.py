"""Values of Kubernetes' own fields that its schemas do not list, because validation checks them.

`tests/test_completion.py` compares them with those that the checks accept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jobgen.features.editor.completion.schema_nodes import SchemaNode, Value, list_types
from jobgen.model.path import Step

BY_FIELD = {
    "completionMode": "NonIndexed Indexed",
    "concurrencyPolicy": "Allow Forbid Replace",
    "dnsPolicy": "ClusterFirst ClusterFirstWithHostNet Default None",
    "effect": "NoSchedule PreferNoSchedule NoExecute",
    "failurePolicy": "Fail Ignore",
    "imagePullPolicy": "Always IfNotPresent Never",
    "matchPolicy": "Equivalent Exact",
    "mountPropagation": "None HostToContainer Bidirectional",
    "parameterNotFoundAction": "Allow Deny",
    "podReplacementPolicy": "TerminatingOrFailed Failed",
    "preemptionPolicy": "PreemptLowerPriority Never",
    "protocol": "TCP UDP SCTP",
    "pullPolicy": "Always IfNotPresent Never",
    "restartPolicy": "Always OnFailure Never",
    "scheme": "HTTP HTTPS",
    "terminationMessagePolicy": "File FallbackToLogsOnError",
    "volumeMode": "Filesystem Block",
    "whenUnsatisfiable": "DoNotSchedule ScheduleAnyway",
}
BY_PARENT = {
    ("appArmorProfile", "type"): "RuntimeDefault Localhost Unconfined",
    ("emptyDir", "medium"): "Memory HugePages",
    ("hostPath", "type"): "Directory DirectoryOrCreate File FileOrCreate Socket CharDevice BlockDevice",
    ("matchExpressions", "operator"): "In NotIn Exists DoesNotExist",
    ("seccompProfile", "type"): "RuntimeDefault Localhost Unconfined",
    ("tolerations", "operator"): "Exists Equal",
}
ITEMS = {
    "accessModes": "ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod",
    "operations": "CREATE UPDATE DELETE CONNECT",
    "policyTypes": "Ingress Egress",
    "validationActions": "Deny Warn Audit",
}


def list_known_values(path: Sequence[Step], forms: Sequence[SchemaNode]) -> Iterator[Value]:
    """Yield the values of a field of Kubernetes that its schema does not list."""
    if list_types(forms) != ("string",) or any("enum" in form.schema for form in forms):
        return
    keys = [step for step in path if isinstance(step, str)]
    if path and isinstance(path[-1], int):
        listed = ITEMS.get(keys[-1] if keys else "", "")
    else:
        listed = BY_PARENT.get((keys[-2], keys[-1]), "") if len(keys) > 1 else ""
        listed = listed or BY_FIELD.get(keys[-1] if keys else "", "")
    yield from map(Value, listed.split())
