"""What KubeRay does not start: the specs of RayClusters, alone and inside RayJobs, RayServices and RayCronJobs."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission.fields import is_set, iter_mappings, join_names
from jobgen.check.admission.metadata import describe_label_key
from jobgen.check.admission.names import (
    DNS_LABEL,
    DNS_LABEL_1035,
    LABEL_VALUE,
    is_dns_label,
    is_dns_label_1035,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
)
from jobgen.check.operators.checks import (
    CHILD_REJECTED,
    GATE_OFF,
    NEVER_STARTS,
    REJECTED,
    Check,
    Checks,
    FindViolations,
    PartCheck,
    Violations,
    check_gate,
    full_name,
    given_name,
    is_version_since,
    list_checks_at,
    name_place,
    out_of_bounds,
    require_gate,
)
from jobgen.check.operators.ray_start import check_start_options
from jobgen.check.rules import WARNING, Violation
from jobgen.k8s.nodes import as_integer, as_mapping, as_text, get_path
from jobgen.k8s.objects import Manifest
from jobgen.model.data import Plain
from jobgen.model.lazy_re import lazy_pattern
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.place import At, Place, find_at
from jobgen.model.sentence import Sentence

_COLLECTOR = "ray-history-collector"
_MANAGED = "POD_IP FQ_RAY_IP RAY_CLUSTER_NAME RAY_CLUSTER_NAMESPACE RAY_ROLE OWNER_KIND OWNER_NAME EVENTS_PORT".split()
_BACKEND, _AZURE_MODE = "STORAGE_BACKEND", "AZURE_STORAGE_AUTH_MODE"
_CONNECTION, _ACCOUNT = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"
_REQUIRED = {"GCS": ["GCS_BUCKET"], "S3": ["S3_REGION"], "ALIYUNOSS": ["OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"]}
_AZURE = {"connection_string": [_CONNECTION], "workload_identity": [_ACCOUNT], "default": [_ACCOUNT]}
OPERATOR = "kuberay"
_AUTOSCALER_V2 = "RAY_enable_autoscaler_v2"
_RESOURCE_PARAMS = ("num-cpus", "num-gpus", "memory", "resources")
_GCS_VOLUME, _GCS_PATH = "gcs-storage", "/data/gcs"
_TLS_VARIABLES = ("RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT")
_TLS_VOLUME, _TLS_PATH = "ray-tls", "/etc/ray/tls"
_version = lazy_pattern(r"\s*v?([0-9]+(?:\.[0-9]+)+)")


def _check_history_server(cluster: _RayCluster) -> Violations:
    """Check the collector that KubeRay adds to all pods."""
    if not is_set(cluster.spec.get("historyServerOptions")):
        return
    history = as_mapping(cluster.spec["historyServerOptions"])
    options, key = as_mapping(history.get("collectorOptions")), find_at(history, "collectorOptions", is_key=True)
    if not is_set(history.get("collectorOptions")):
        yield Violation(
            At(cluster.spec, "historyServerOptions", is_key=True),
            "`historyServerOptions` requires `collectorOptions`; set it",
        )
        return
    if not as_text(options.get("image")):
        yield Violation(find_at(options, "image", is_key=True) or key, "`collectorOptions` requires `image`; set it")
    yield from _check_variables(options, key)
    for group in cluster.groups:
        for container in iter_mappings(group.pod.get("containers")):
            if as_text(container.get("name")) == _COLLECTOR:
                yield Violation(
                    At(container, "name"), Sentence("KubeRay adds a container `{}`; rename this one", _COLLECTOR)
                )


def _check_variables(options: Mapping[str, Plain], parent: Place) -> Violations:
    """Check the variables of the collector: those that KubeRay sets, and those that a backend requires."""
    env = {as_text(entry.get("name")): entry for entry in iter_mappings(options.get("env"))}
    for name in _MANAGED:
        if name in env:
            yield Violation(At(env[name], "name"), Sentence("KubeRay sets the variable `{}`; remove it", name))
    backend = as_text(env.get(_BACKEND, {}).get("value"))
    if not backend:
        key = find_at(options, "env", is_key=True) or parent
        place = At(env[_BACKEND], "name") if _BACKEND in env else key
        yield Violation(place, Sentence("the collector requires the variable `{}` with a `value`; set it", _BACKEND))
        return
    place = At(env[_BACKEND], "value")
    present = {name for name, entry in env.items() if as_text(entry.get("value")) or is_set(entry.get("valueFrom"))}
    if backend.upper() == "AZUREBLOB":
        mode = as_text(env.get(_AZURE_MODE, {}).get("value")).strip().lower()
        wanted = _AZURE.get(mode, [_CONNECTION, _ACCOUNT])
        if present.isdisjoint(wanted):
            yield Violation(
                place,
                Sentence("`{}: {}` requires the variable {}; set it", _BACKEND, backend, join_names(wanted, "or")),
            )
        return
    for name in _REQUIRED.get(backend.upper(), ()):
        if name not in present:
            yield Violation(place, Sentence("`{}: {}` requires the variable `{}`; set it", _BACKEND, backend, name))


class _Group(NamedTuple):
    """The head group or a worker group of a RayCluster."""

    data: Mapping[str, Plain]
    name: str

    @property
    def params(self) -> Mapping[str, Plain]:
        return as_mapping(self.data.get("rayStartParams"))

    @property
    def pod(self) -> Mapping[str, Plain]:
        return as_mapping(get_path(self.data, "template", "spec"))

    @property
    def container(self) -> Mapping[str, Plain]:
        """The container that runs Ray, which is the first."""
        return next(iter_mappings(self.pod.get("containers")), {})


class _RayCluster(NamedTuple):
    """The spec of a RayCluster, with what else of its object matters."""

    spec: Mapping[str, Plain]
    manifest: Manifest
    has_owner: bool
    """True if a RayJob or a RayService creates the cluster."""

    @property
    def head(self) -> _Group:
        return _Group(as_mapping(self.spec.get("headGroupSpec")), "head")

    @property
    def workers(self) -> list[_Group]:
        groups = iter_mappings(self.spec.get("workerGroupSpecs"))
        return [_Group(group, as_text(group.get("groupName"))) for group in groups]

    @property
    def groups(self) -> list[_Group]:
        return [self.head, *self.workers]

    @property
    def autoscales(self) -> bool:
        return self.spec.get("enableInTreeAutoscaling") is True

    @property
    def autoscaler_options(self) -> Mapping[str, Plain]:
        return as_mapping(self.spec.get("autoscalerOptions"))

    @property
    def has_autoscaler_v2(self) -> bool:
        return as_text(self.autoscaler_options.get("version")) == "v2"

    @property
    def enables_autoscaler_v2(self) -> bool:
        """Return True if a field or a variable of the head enables version 2 of the autoscaler."""
        variable = _find_variable(self.head.container, _AUTOSCALER_V2)
        return self.has_autoscaler_v2 or (variable is not None and as_text(variable.get("value")) in ("1", "true"))


def _find_variable(container: Mapping[str, Plain], name: str) -> Mapping[str, Plain] | None:
    entries = iter_mappings(container.get("env"))
    return next((entry for entry in entries if as_text(entry.get("name")) == name), None)


def check_name(longest: int) -> FindViolations:
    """Return a check that the names of objects that KubeRay creates fit, of which this name is the start."""

    def find(manifest: Manifest) -> Violations:
        name, given = full_name(manifest), given_name(manifest)
        if len(name) > longest:
            message = Sentence(
                "`{}` has {} characters, but KubeRay appends more to it for its objects", given, len(name)
            )
            yield Violation(name_place(manifest), Sentence("{}; use at most {}", message, longest))
        elif name and not is_dns_label_1035(name) and is_dns_subdomain(name):
            message = Sentence("`{}` is the start of the name of a Service; {}", given, DNS_LABEL_1035)
            yield Violation(name_place(manifest), message)

    return find


def check_dashboard(spec: Mapping[str, Plain], *, is_local: bool = False) -> Violations:
    """Check that the dashboard runs, and that other pods reach it unless the one that submits `is_local`."""
    params = as_mapping(get_path(spec, "headGroupSpec", "rayStartParams"))
    host = as_text(params.get("dashboard-host"))
    if as_text(params.get("include-dashboard")).lower() == "false":
        message = Sentence(
            "KubeRay submits to the dashboard of the head, which `include-dashboard: false` turns off; remove it"
        )
        yield Violation(At(params, "include-dashboard"), message)
    elif host in ("127.0.0.1", "localhost", "::1") and not is_local:
        message = Sentence(
            "KubeRay submits to the dashboard of the head, which only its own pod reaches on `{}`; use `0.0.0.0`", host
        )
        yield Violation(At(params, "dashboard-host"), message)


def _check_replicas(cluster: _RayCluster) -> Violations:
    for group in cluster.workers:
        yield from out_of_bounds(group.data, "minReplicas", 0)
        yield from out_of_bounds(group.data, "maxReplicas", 0)
        yield from _compare_bounds(group)


def _compare_bounds(group: _Group, consequence: str = "") -> Violations:
    low, high = (as_integer(group.data.get(key)) for key in ("minReplicas", "maxReplicas"))
    if low is not None and high is not None and low > high >= 0:
        message = Sentence(
            "`minReplicas` of `{}` is `{}`, but `maxReplicas` is `{}`{}; swap them", group.name, low, high, consequence
        )
        yield Violation(At(group.data, "minReplicas"), message)


def _check_old_bounds(cluster: _RayCluster) -> Violations:
    """Check the bounds for versions that log that they contradict each other, and start one of both numbers."""
    for group in cluster.workers:
        for violation in _compare_bounds(group, ", which KubeRay ignores before 1.6 and refuses since then"):
            yield violation._replace(severity=WARNING)


def _check_group_names(cluster: _RayCluster) -> Violations:
    seen: set[str] = set()
    for group in cluster.workers:
        if group.name and group.name in seen:
            message = Sentence("two worker groups are named `{}`; the webhook of KubeRay rejects this, and", group.name)
            yield Violation(
                At(group.data, "groupName"), Sentence("{} without it both share their pods; use another name", message)
            )
        seen.add(group.name)


def _check_empty_groups(cluster: _RayCluster) -> Violations:
    """Check that a group that may have workers gets some."""
    for group in cluster.workers:
        replicas, low, high = (as_integer(group.data.get(key)) for key in ("replicas", "minReplicas", "maxReplicas"))
        if not cluster.autoscales and not (replicas or low) and (high or 0) > 0:
            message = Sentence(
                "group `{}` gets no workers: `replicas` is 0, and only the autoscaler raises it", group.name
            )
            place = find_at(group.data, "replicas") or At(group.data, "maxReplicas")
            change = "set `replicas`, or `enableInTreeAutoscaling: true`"
            yield Violation(place, Sentence("{}; {}", message, change), severity=WARNING)


def _check_group_labels(cluster: _RayCluster) -> Violations:
    """Check that pods can have the name of their group, which is a label of theirs and a part of their names."""
    for group in cluster.workers:
        if group.name and not (is_label_value(group.name) and is_dns_subdomain(f"a{group.name.lower()}a")):
            message = Sentence(
                "`{}` is a label and a part of the names of the group's pods, so the API server rejects", group.name
            )
            yield Violation(
                At(group.data, "groupName"), Sentence("{} all workers of the group; {}", message, DNS_LABEL)
            )


def _check_resources(cluster: _RayCluster) -> Violations:
    for group in cluster.groups:
        twice = [key for key in group.params if key in _RESOURCE_PARAMS and as_text(group.params[key])]
        if twice and as_mapping(group.data.get("resources")):
            message = Sentence(
                "`{}` of `rayStartParams` and `resources` are both set in group `{}`", twice[0], group.name
            )
            yield Violation(At(group.params, twice[0], is_key=True), Sentence("{}; remove one of them", message))


def _check_start_options(cluster: _RayCluster) -> Violations:
    for group in cluster.groups:
        yield from check_start_options(group.params)


def _check_labels(cluster: _RayCluster) -> Violations:
    for group in cluster.groups:
        if "labels" in group.params:
            message = Sentence("`labels` in `rayStartParams` of group `{}` is not supported", group.name)
            yield Violation(At(group.params, "labels", is_key=True), Sentence("{}; use `labels` of the group", message))
        labels = as_mapping(group.data.get("labels"))
        for key, value in labels.items():
            if not is_label_key(key):
                yield Violation(At(labels, key, is_key=True), describe_label_key(key))
            elif not is_label_value(as_text(value)):
                message = Sentence("label `{}` has the invalid value `{}`; {}", key, as_text(value), LABEL_VALUE)
                yield Violation(At(labels, key), message)


def _check_suspended_groups(cluster: _RayCluster) -> Violations:
    for group in cluster.workers:
        if cluster.autoscales and group.data.get("suspend") is True:
            message = Sentence(
                "worker group `{}` cannot be suspended with `enableInTreeAutoscaling`; remove one of", group.name
            )
            yield Violation(At(group.data, "suspend"), Sentence("{} them", message))


def _check_suspend_gate(cluster: _RayCluster) -> Violations:
    what = "`suspend` of a worker group"
    for group in cluster.workers:
        if group.data.get("suspend") is True:
            yield from require_gate(cluster.manifest, "RayJobDeletionPolicy", what, At(group.data, "suspend"))


def _check_restart_policies(cluster: _RayCluster) -> Violations:
    if not (cluster.autoscales and cluster.has_autoscaler_v2):
        return
    for group in cluster.groups:
        if (policy := as_text(group.pod.get("restartPolicy"))) not in ("", "Never"):
            message = Sentence(
                "`restartPolicy` of group `{}` is `{}`, but version 2 of the autoscaler requires", group.name, policy
            )
            yield Violation(
                At(group.pod, "restartPolicy"), Sentence("{} `Never`; use it, or remove the field", message)
            )


def _check_autoscaler_variable(cluster: _RayCluster) -> Violations:
    variable = _find_variable(cluster.head.container, _AUTOSCALER_V2) or {}
    value = as_text(variable.get("value"))
    if not cluster.autoscales and value in ("1", "true"):
        message = Sentence(
            "`{}` is `{}`, but `enableInTreeAutoscaling` is not true; set it, or remove the", _AUTOSCALER_V2, value
        )
        yield Violation(At(variable, "name"), Sentence("{} variable", message))


def _check_autoscaler_version(cluster: _RayCluster) -> Violations:
    variable = _find_variable(cluster.head.container, _AUTOSCALER_V2)
    if variable is not None and cluster.autoscales and is_set(cluster.autoscaler_options.get("version")):
        message = Sentence("`{}` and `autoscalerOptions.version` are both set; remove the variable", _AUTOSCALER_V2)
        yield Violation(At(variable, "name"), message)


def _check_idle_timeout(cluster: _RayCluster) -> Violations:
    yield from out_of_bounds(cluster.autoscaler_options, "idleTimeoutSeconds", 0)
    for group in cluster.workers:
        yield from out_of_bounds(group.data, "idleTimeoutSeconds", 0)
        timeout = as_integer(group.data.get("idleTimeoutSeconds"))
        if timeout is not None and timeout >= 0 and not cluster.enables_autoscaler_v2:
            message = Sentence("`idleTimeoutSeconds` of `{}` requires version 2 of the autoscaler; set", group.name)
            yield Violation(
                At(group.data, "idleTimeoutSeconds"), Sentence("{} `autoscalerOptions.version: v2`", message)
            )


def _check_autoscaler_env(cluster: _RayCluster) -> Violations:
    name = "KUBERAY_GEN_AUTOSCALER_START_CMD"
    variable = _find_variable(cluster.autoscaler_options, name)
    if variable is not None:
        yield Violation(
            At(variable, "name"), Sentence("KubeRay sets `{}`; remove it from `autoscalerOptions.env`", name)
        )


def _check_redis(cluster: _RayCluster) -> Violations:
    """Check that Redis is configured in one place only."""
    head, annotations = cluster.head, cluster.manifest.annotations
    address = _find_variable(head.container, "RAY_REDIS_ADDRESS")
    if is_set(cluster.spec.get("gcsFaultToleranceOptions")):
        moved = {
            "ray.io/ft-enabled": (annotations, "only `gcsFaultToleranceOptions`"),
            "ray.io/external-storage-namespace": (annotations, "its `externalStorageNamespace`"),
            "redis-password": (head.params, "its `redisPassword`"),
        }
        places = [
            (At(owner, name, is_key=True), use) for name, (owner, use) in moved.items() if as_text(owner.get(name))
        ]
        for name, field in (("REDIS_PASSWORD", "redisPassword"), ("RAY_REDIS_ADDRESS", "redisAddress")):
            variable = _find_variable(head.container, name)
            places += [(At(variable, "name"), f"its `{field}`")] if variable else []
        for place, use in places:
            yield Violation(
                place, Sentence("`{}` and `gcsFaultToleranceOptions` are both set; use {}", as_text(place.node), use)
            )
    elif address is not None and as_text(annotations.get("ray.io/ft-enabled")).lower() != "true":
        message = "`RAY_REDIS_ADDRESS` enables fault tolerance, but `gcsFaultToleranceOptions` is not set; set it"
        yield Violation(At(address, "name"), message)
    username = _find_variable(head.container, "REDIS_USERNAME")
    if username or as_text(head.params.get("redis-username")):
        place = At(username, "name") if username else At(head.params, "redis-username", is_key=True)
        yield Violation(
            place, Sentence("`{}` is not supported; use `gcsFaultToleranceOptions.redisUsername`", as_text(place.node))
        )


def _check_gcs_backend(cluster: _RayCluster) -> Violations:
    """Check the fields of fault tolerance against the backend that stores the state."""
    options = as_mapping(cluster.spec.get("gcsFaultToleranceOptions"))
    storage = as_mapping(options.get("storage"))
    if as_text(options.get("backend")) != "rocksdb":
        if is_set(options.get("storage")):
            message = Sentence(
                "`storage` applies to the backend `rocksdb`, but the backend is `redis`; remove one of them"
            )
            yield Violation(At(options, "storage", is_key=True), message)
        return
    for name in ("redisAddress", "redisUsername", "redisPassword", "externalStorageNamespace"):
        if options.get(name):
            yield Violation(
                At(options, name, is_key=True), Sentence("`{}` applies to the backend `redis`; remove it", name)
            )
    if as_text(storage.get("claimName")):
        for name in ("size", "storageClassName", "accessModes"):
            if storage.get(name):
                message = Sentence("`{}` and `claimName` are mutually exclusive; remove one of them", name)
                yield Violation(At(storage, name, is_key=True), message)
    head = cluster.head
    yield from _check_managed(head.container, ("RAY_gcs_storage", "RAY_gcs_storage_path"), _GCS_VOLUME, _GCS_PATH)
    for volume in iter_mappings(head.pod.get("volumes")):
        if as_text(volume.get("name")) == _GCS_VOLUME:
            yield Violation(At(volume, "name"), Sentence("KubeRay adds the volume `{}`; rename this one", _GCS_VOLUME))


def _check_managed(container: Mapping[str, Plain], names: tuple[str, ...], volume: str, path: str) -> Violations:
    """Check that a container sets no variables and has no mounts that KubeRay adds."""
    for name in names:
        variable = _find_variable(container, name)
        if variable is not None:
            yield Violation(At(variable, "name"), Sentence("KubeRay sets the variable `{}`; remove it", name))
    for mount in iter_mappings(container.get("volumeMounts")):
        if as_text(mount.get("name")) == volume or as_text(mount.get("mountPath")) == path:
            place = At(mount, "name" if as_text(mount.get("name")) == volume else "mountPath")
            yield Violation(place, Sentence("KubeRay mounts the volume `{}` at `{}`; remove this mount", volume, path))


def _check_ray_version(cluster: _RayCluster, needed: str, what: str, place: Place) -> Violations:
    version = as_text(cluster.spec.get("rayVersion"))
    numbers = _version.match(version)
    if not version:
        yield Violation(place, Sentence("{} requires `rayVersion`; set it to {} or later", what, needed))
    elif numbers is None:
        message = Sentence(
            "{} requires Ray {}, but `{}` is not a version; write one such as `{}`", what, needed, version, needed
        )
        yield Violation(At(cluster.spec, "rayVersion"), message)
    elif not is_version_since(numbers[1], needed):
        message = Sentence("{} requires Ray {}, but `rayVersion` is `{}`; use a newer version", what, needed, version)
        yield Violation(At(cluster.spec, "rayVersion"), message)


def _check_auth(cluster: _RayCluster) -> Violations:
    options = as_mapping(cluster.spec.get("authOptions"))
    is_token = as_text(options.get("mode")) == "token"
    uses_kubernetes = options.get("enableK8sTokenAuth") is True
    if uses_kubernetes and cluster.has_owner:
        message = Sentence("`enableK8sTokenAuth` is not supported in a {}; remove it", cluster.manifest.kind_name)
        yield Violation(At(options, "enableK8sTokenAuth"), message)
    elif uses_kubernetes and not is_token:
        yield Violation(At(options, "enableK8sTokenAuth"), "`enableK8sTokenAuth` requires `mode: token`; set it")
    elif is_token:
        needed = "2.55.0" if uses_kubernetes else "2.52.0"
        yield from _check_ray_version(cluster, needed, "`authOptions`", At(options, "mode"))
        if uses_kubernetes and as_text(options.get("secretName")):
            message = Sentence("`secretName` and `enableK8sTokenAuth` are mutually exclusive; remove one of them")
            yield Violation(At(options, "secretName"), message)


def _check_upgrade_strategy(cluster: _RayCluster) -> Violations:
    strategy = as_mapping(cluster.spec.get("upgradeStrategy"))
    owner = as_text(cluster.manifest.labels.get("ray.io/originated-from-crd"))
    creator = cluster.manifest.kind_name if cluster.has_owner else owner if owner in ("RayJob", "RayService") else ""
    if is_set(strategy.get("type")) and creator:
        message = Sentence(
            "`upgradeStrategy` of a RayCluster is not supported if a {} creates the cluster; remove it", creator
        )
        yield Violation(At(strategy, "type"), message)


def _check_priority(cluster: _RayCluster) -> Violations:
    for group in cluster.workers:
        if not as_integer(group.data.get("priority")):
            continue
        what = f"`priority` of `{group.name}`"
        outdated = list(_check_ray_version(cluster, "2.56.0", what, At(group.data, "priority")))
        yield from outdated
        if not outdated and not cluster.enables_autoscaler_v2:
            message = Sentence("{} requires version 2 of the autoscaler; set `autoscalerOptions.version: v2`", what)
            yield Violation(At(group.data, "priority"), message)


def _check_network_policy(cluster: _RayCluster) -> Violations:
    policy = as_mapping(cluster.spec.get("networkPolicy"))
    if not is_set(cluster.spec.get("networkPolicy")):
        return
    names = [group.name for group in cluster.workers]
    for group in cluster.workers:
        if group.name and not is_dns_label(group.name):
            message = Sentence("`{}` is part of the name of a NetworkPolicy; {}", group.name, DNS_LABEL)
            yield Violation(At(group.data, "groupName"), message)
    mode = as_text(policy.get("mode"))
    useless = {"DenyAllEgress": "ingressRules", "DenyAllIngress": "egressRules"}.get(mode, "")
    groups = list(iter_mappings(policy.get("workerGroups")))
    for rules in (as_mapping(policy.get("head")), as_mapping(policy.get("worker")), *groups):
        if useless and rules.get(useless):
            message = Sentence("`{}` has no effect with `mode: {}`, and KubeRay rejects it; remove it", useless, mode)
            yield Violation(At(rules, useless, is_key=True), message)
    for rules in groups:
        if (name := as_text(rules.get("groupName"))) and name not in names:
            yield Violation(
                At(rules, "groupName"), Sentence("there is no worker group `{}`; use one of `workerGroupSpecs`", name)
            )


def _check_tls(cluster: _RayCluster) -> Violations:
    if get_path(cluster.spec, "tlsOptions", "enabled") is not True:
        return
    for container in (*(group.container for group in cluster.groups), cluster.autoscaler_options):
        yield from _check_managed(container, _TLS_VARIABLES, _TLS_VOLUME, _TLS_PATH)


def list_cluster_checks(*path: str) -> tuple[Check, ...]:
    """Return the checks of the spec of a RayCluster that is at this path of an object."""
    backend = ("gcsFaultToleranceOptions", "backend")
    gates = (
        check_gate("GCSFaultToleranceEmbeddedStorage", *path, *backend, value="rocksdb"),
        check_gate("RayClusterNetworkPolicy", *path, "networkPolicy"),
        check_gate("RayClusterMTLS", *path, "tlsOptions"),
        check_gate("RayClusterHistoryServer", *path, "historyServerOptions"),
    )
    return (
        *list_checks_at(path, _CLUSTER_CHECKS, lambda spec, on: _RayCluster(spec, on, has_owner=path != ("spec",))),
        *(Check(GATE_OFF, gate, since="1.7") for gate in gates),
    )


_CLUSTER_CHECKS: tuple[PartCheck[_RayCluster], ...] = (
    (REJECTED, _check_group_names, "1.1", ""),
    (CHILD_REJECTED, _check_group_labels, "", ""),
    (NEVER_STARTS, _check_empty_groups, "", ""),
    (NEVER_STARTS, _check_start_options, "", ""),
    (NEVER_STARTS, _check_redis, "1.3", ""),
    (NEVER_STARTS, _check_suspended_groups, "1.3", ""),
    (NEVER_STARTS, _check_restart_policies, "1.4", ""),
    (NEVER_STARTS, _check_autoscaler_version, "1.4", ""),
    (NEVER_STARTS, _check_autoscaler_variable, "1.5", ""),
    (NEVER_STARTS, _check_resources, "1.5", ""),
    (NEVER_STARTS, _check_labels, "1.5", ""),
    (NEVER_STARTS, _check_old_bounds, "", "1.6"),
    (NEVER_STARTS, _check_replicas, "1.6", ""),
    (NEVER_STARTS, _check_idle_timeout, "1.6", ""),
    (NEVER_STARTS, _check_auth, "1.6", ""),
    (NEVER_STARTS, _check_upgrade_strategy, "1.6", ""),
    (NEVER_STARTS, _check_autoscaler_env, "1.7", ""),
    (NEVER_STARTS, _check_gcs_backend, "1.7", ""),
    (NEVER_STARTS, _check_history_server, "1.7", ""),
    (NEVER_STARTS, _check_network_policy, "1.7", ""),
    (NEVER_STARTS, _check_priority, "1.7", ""),
    (NEVER_STARTS, _check_tls, "1.7", ""),
    (GATE_OFF, _check_suspend_gate, "1.3", "1.6"),
)

CHECKS: Checks = {"RayCluster": (Check(NEVER_STARTS, check_name(53), since="1.4"), *list_cluster_checks("spec"))}
