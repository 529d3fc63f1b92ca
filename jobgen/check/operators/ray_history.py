"""What KubeRay requires of the collector of Ray's history server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobgen.check.admission.fields import is_set, iter_mappings, join_names
from jobgen.check.operators.checks import Violations
from jobgen.check.rules import Violation
from jobgen.k8s.nodes import as_mapping, as_text
from jobgen.model.data import Node
from jobgen.model.suggest import find_key

_COLLECTOR = "ray-history-collector"
_MANAGED = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)
_BACKEND, _AZURE_MODE = "STORAGE_BACKEND", "AZURE_STORAGE_AUTH_MODE"
_CONNECTION, _ACCOUNT = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"
_REQUIRED = {"GCS": ["GCS_BUCKET"], "S3": ["S3_REGION"], "ALIYUNOSS": ["OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"]}
_AZURE = {"connection_string": [_CONNECTION], "workload_identity": [_ACCOUNT], "default": [_ACCOUNT]}


def check_history_server(cluster: Mapping[str, Node], pods: Sequence[Mapping[str, Node]]) -> Violations:
    """Yield what is wrong with the collector of a RayCluster that has these pods."""
    if not is_set(cluster.get("historyServerOptions")):
        return
    history = as_mapping(cluster["historyServerOptions"])
    options = as_mapping(history.get("collectorOptions"))
    if not is_set(history.get("collectorOptions")):
        node = find_key(cluster, "historyServerOptions")
        yield Violation(node, "`historyServerOptions` requires `collectorOptions`; set it")
        return
    if not as_text(options.get("image")):
        node = find_key(options, "image") or find_key(history, "collectorOptions")
        yield Violation(node, "`collectorOptions` requires `image`; set it")
    yield from _check_variables(options, find_key(history, "collectorOptions"))
    for pod in pods:
        for container in iter_mappings(pod.get("containers")):
            if as_text(container.get("name")) == _COLLECTOR:
                yield Violation(container["name"], f"KubeRay adds a container `{_COLLECTOR}`; rename this one")


def _check_variables(options: Mapping[str, Node], parent: Node) -> Violations:
    """Check the variables of the collector: those that KubeRay sets, and those that a backend requires."""
    env = {as_text(entry.get("name")): entry for entry in iter_mappings(options.get("env"))}
    for name in _MANAGED:
        if name in env:
            yield Violation(env[name]["name"], f"KubeRay sets the variable `{name}`; remove it")
    backend = as_text(env.get(_BACKEND, {}).get("value"))
    if not backend:
        node = env[_BACKEND]["name"] if _BACKEND in env else find_key(options, "env") or parent
        yield Violation(node, f"the collector requires the variable `{_BACKEND}` with a `value`; set it")
        return
    node = env[_BACKEND]["value"]
    present = {name for name, entry in env.items() if as_text(entry.get("value")) or is_set(entry.get("valueFrom"))}
    if backend.upper() == "AZUREBLOB":
        mode = as_text(env.get(_AZURE_MODE, {}).get("value")).strip().lower()
        wanted = _AZURE.get(mode, [_CONNECTION, _ACCOUNT])
        if present.isdisjoint(wanted):
            message = f"`{_BACKEND}: {backend}` requires the variable {join_names(wanted, 'or')}; set it"
            yield Violation(node, message)
        return
    for name in _REQUIRED.get(backend.upper(), ()):
        if name not in present:
            yield Violation(node, f"`{_BACKEND}: {backend}` requires the variable `{name}`; set it")
