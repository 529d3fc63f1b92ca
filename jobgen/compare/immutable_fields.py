"""Which fields of Kubernetes' own kinds, and of kinds without a description, cannot be changed: one table."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from functools import partial

from jobgen.k8s.compare import ChangeType
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.model.data import Node
from jobgen.model.named_tuple import NamedTuple
from jobgen.model.quantity import to_milli


class Edit(NamedTuple):
    """An edit of one field of an object, and the facts that decide whether it is rejected."""

    path: str
    op: ChangeType
    old: Mapping[str, Node]
    new: Mapping[str, Node]
    suspended: bool = False
    """True if the job has no pods because it is suspended."""
    release: Release = NEWEST_RELEASE
    queued: bool = False
    """True if Kueue manages it."""
    gates: frozenset[str] = frozenset()
    values: tuple[Node, Node] = (None, None)


class ImmutableFields(NamedTuple):
    """Fields at or below some paths, except for `mutable` ones, whose change is rejected if `rejects` is true.

    Paths and kinds are separated by spaces. `*` stands for any item of a list that has a name.
    """

    group: str
    kinds: str
    paths: str
    mutable: str = ""
    reason: str = "the field is immutable after creation"
    rejects: Callable[[Edit], bool] = lambda _: True

    def matches(self, kind: str, edit: Edit) -> bool:
        """Return True if the edit of an object of the kind is rejected."""
        return (
            kind in self.kinds.split()
            and _is_below(edit.path, self.paths)
            and not _is_below(edit.path, self.mutable)
            and self.rejects(edit)
        )


def find_immutable_field(group: str, kind: str, edit: Edit) -> ImmutableFields | None:
    """The entry of the table that rejects an edit, if there is one."""
    return next((found for found in IMMUTABLE_FIELDS if found.group == group and found.matches(kind, edit)), None)


def _is_below(path: str, parents: str) -> bool:
    return any(path == parent or path.startswith(f"{parent}/") for parent in parents.split())


def _value_at(obj: Mapping[str, Node], path: str) -> Node:
    node: Node = dict(obj)
    for step in path.split("/"):
        node = node.get(step.replace("~1", "/")) if isinstance(node, dict) else None
    return node


def _breaks_elastic_job(edit: Edit) -> bool:
    """Return True if numbers change in a job of a JobSet that is not elastic: indexed, with a completion for each pod.

    It needs a pod. A number that is not written follows from the other one.
    """
    old, new = (_read_numbers(obj) for obj in (edit.old, edit.new))
    return any(
        mode != "Indexed" or len(numbers) > 1 or any(number < 1 for number in numbers)
        for name, (mode, numbers) in new.items()
        if numbers != old.get(name, (mode, numbers))[1]
    )


def _read_numbers(jobset: Mapping[str, Node]) -> dict[Node, tuple[Node, frozenset[int]]]:
    """The completion mode of each job of a JobSet, and the numbers of its pods and completions that are written."""
    jobs, found = _value_at(jobset, "spec/replicatedJobs"), {}
    for job in jobs if isinstance(jobs, list) else ():
        spec = _value_at(job, "template/spec") if isinstance(job, dict) else None
        if isinstance(job, dict) and isinstance(spec, dict) and isinstance(job.get("name"), str):
            numbers = (spec.get("parallelism"), spec.get("completions"))
            found[job["name"]] = (spec.get("completionMode"), frozenset(n for n in numbers if isinstance(n, int)))
    return found


def _is_not_added(edit: Edit) -> bool:
    return edit.op != "added"


def _was_immutable(edit: Edit) -> bool:
    return edit.old.get("immutable") is True


def _changes_immutable_secret(edit: Edit) -> bool:
    return _was_immutable(edit) and (edit.path == "immutable" or _read_secret(edit.old) != _read_secret(edit.new))


def _read_secret(secret: Mapping[str, Node]) -> dict[str, bytes]:
    """The data of a Secret; the API server merges `stringData` into `data`."""
    data, text = secret.get("data"), secret.get("stringData")
    found: dict[str, bytes] = {}
    for key, value in data.items() if isinstance(data, dict) else ():
        try:
            found[key] = base64.b64decode(str(value))
        except binascii.Error:
            found[key] = str(value).encode()
    return found | ({key: str(value).encode() for key, value in text.items()} if isinstance(text, dict) else {})


def _shrinks(edit: Edit) -> bool:
    old, new = map(to_milli, edit.values)
    return old is not None and new is not None and new < old


def _was_running(edit: Edit) -> bool:
    """Return True if the old Job is not suspended; suspending it in the same edit is not enough."""
    return not edit.suspended or _value_at(edit.old, "spec/suspend") is not True


def _has_fixed_completions(edit: Edit) -> bool:
    """Return True if the completions of a Job cannot be changed; those of an indexed Job follow its parallelism."""
    is_indexed = _value_at(edit.new, "spec/completionMode") == "Indexed" and edit.release >= (1, 27)
    parallelism = _value_at(edit.new, "spec/parallelism")
    return not is_indexed or _value_at(edit.new, "spec/completions") != (1 if parallelism is None else parallelism)


def _changes_address(edit: Edit) -> bool:
    """Return True if the address of a Service changes; the API server keeps the one that it has if none is set."""
    if _is_external(edit):
        return False
    old, new = edit.values
    if isinstance(old, list) or isinstance(new, list):
        old, new = (value[0] if isinstance(value, list) and value else None for value in (old, new))
    return old != new and new is not None and (old is not None or new == "None")


def _changes_first_family(edit: Edit) -> bool:
    if _is_external(edit) or "None" in (_value_at(edit.old, "spec/clusterIP"), _value_at(edit.new, "spec/clusterIP")):
        return False
    old, new = edit.values
    if not isinstance(old, list) or not isinstance(new, list) or not old or not new:
        return False
    return old[0] != new[0] or (len(old) == len(new) and old != new)


def _is_external(edit: Edit) -> bool:
    return "ExternalName" in (_value_at(edit.old, "spec/type"), _value_at(edit.new, "spec/type"))


def _extends_deadline(edit: Edit) -> bool:
    old, new = edit.values
    return old is not None and (new is None or (isinstance(old, int) and isinstance(new, int) and new > old))


def _removes_item(edit: Edit) -> bool:
    old, new = (value if isinstance(value, list) else [] for value in edit.values)
    return any(item not in new for item in old)


def _adds_item(edit: Edit) -> bool:
    old, new = (value if isinstance(value, list) else [] for value in edit.values)
    return any(item not in old for item in new)


def _changes_health_check(edit: Edit) -> bool:
    """Return True if the port of a health check changes; the API server keeps the one that it has if none is set."""
    fields = ("spec/type", "LoadBalancer"), ("spec/externalTrafficPolicy", "Local")
    checks = all(_value_at(obj, path) == value for obj in (edit.old, edit.new) for path, value in fields)
    return checks and bool(edit.values[1])


def _changes_networks(edit: Edit) -> bool:
    """Return True if the networks of a ServiceCIDR change; a second one can be added to the first."""
    old, new = (value if isinstance(value, list) else [] for value in edit.values)
    return old != new and not (len(old) == 1 and len(new) == 2 and old == new[:1])


def _changes_driver(edit: Edit) -> bool:
    """Return True if a driver of a node changes otherwise than in its allocatable volumes; others can be added."""
    old, new = (_read_drivers(obj) for obj in (edit.old, edit.new))
    return any(new.get(name, driver) != driver for name, driver in old.items())


def _read_drivers(node: Mapping[str, Node]) -> dict[str, Node]:
    drivers = _value_at(node, "spec/drivers")
    found = [each for each in drivers if isinstance(each, dict)] if isinstance(drivers, list) else []
    return {str(each.get("name")): {**each, "allocatable": None} for each in found}


def _changes_scopes(edit: Edit) -> bool:
    """Return True if a ResourceQuota gets other scopes; their order does not count."""
    old, new = (_value_at(obj, "spec/scopes") for obj in (edit.old, edit.new))
    return _list_texts(old) != _list_texts(new)


def _list_texts(value: Node) -> set[str]:
    return {str(item) for item in value} if isinstance(value, list) else set()


def _keeps_rolling_update(edit: Edit) -> bool:
    """Return True if the live StatefulSet has a default `rollingUpdate`, which an apply of another type leaves there.

    The API server fills it in only where no type is written. `Replace=true` of Argo CD applies the whole object.
    """
    old = _value_at(edit.old, "spec/updateStrategy")
    has_default = not isinstance(old, dict) or not (old.get("type") or old.get("rollingUpdate"))
    options = _value_at(edit.new, f"metadata/annotations/{_SYNC_OPTIONS}")
    is_replaced = "Replace=true" in (option.strip() for option in str(options).split(","))
    return has_default and not is_replaced and _value_at(edit.new, "spec/updateStrategy/type") == "OnDelete"


def _removes_stored_version(edit: Edit) -> bool:
    """Return True if a CustomResourceDefinition loses the version in which its objects are stored."""
    return bool(_list_versions(edit.old, stored=True) - _list_versions(edit.new))


def _list_versions(definition: Mapping[str, Node], *, stored: bool = False) -> set[str]:
    versions = _value_at(definition, "spec/versions")
    found = [each for each in versions if isinstance(each, dict)] if isinstance(versions, list) else []
    return {str(each.get("name")) for each in found if not stored or each.get("storage") is True}


def _was_gated(edit: Edit) -> bool:
    return bool(_value_at(edit.old, "spec/schedulingGates"))


def _changes_tasks(edit: Edit) -> bool:
    """Return True if more of the tasks of a Volcano Job changes than their numbers of pods."""
    return _without_counts(edit.old) != _without_counts(edit.new)


def _without_counts(job: Mapping[str, Node]) -> list[Node]:
    tasks = _value_at(job, "spec/tasks")
    return [
        {"name": f"default{index}", "maxRetry": 3, **task, "replicas": None, "minAvailable": None}
        for index, task in enumerate(tasks if isinstance(tasks, list) else [])
        if isinstance(task, dict)
    ]


def _changes_components(edit: Edit) -> bool:
    """Return True if more of the components of an AppWrapper changes than their annotations."""
    old, new = (_value_at(obj, "spec/components") for obj in (edit.old, edit.new))
    return _without_annotations(old) != _without_annotations(new)


def _without_annotations(components: Node) -> list[Node]:
    found: list[Node] = []
    for item in components if isinstance(components, list) else ():
        if isinstance(item, dict):
            pod_sets = item.get("podSets")
            sets = [each for each in pod_sets if isinstance(each, dict)] if isinstance(pod_sets, list) else []
            numbers: list[Node] = [[each.get("path"), each.get("replicas", 1)] for each in sets]
            found.append({"template": item.get("template"), "podSets": numbers})
    return found


_SYNC_OPTIONS = "argocd.argoproj.io~1sync-options"
_SCHEDULING = "affinity/nodeAffinity nodeSelector tolerations schedulingGates"


def _list_scheduling(template: str, fields: str = _SCHEDULING) -> str:
    """The paths of a pod template that can be changed while the job is suspended."""
    in_spec = " ".join(f"{template}/spec/{field}" for field in fields.split())
    return f"{template}/metadata/labels {template}/metadata/annotations {in_spec}"


_JOB_TEMPLATE = "spec/template"
_JOB_RESOURCES = "spec/template/spec/containers/*/resources spec/template/spec/initContainers/*/resources"
_JOBSET_TEMPLATE = "spec/replicatedJobs/*/template/spec/template"
_JOBSET_SCHEDULING = _list_scheduling(_JOBSET_TEMPLATE, "nodeSelector tolerations schedulingGates")
_JOBSET_NUMBERS = "spec/replicatedJobs/*/template/spec/parallelism spec/replicatedJobs/*/template/spec/completions"
# Kueue may or may not have started the job, so the change may be too late.
_ADMITTED = "the template is immutable once Kueue has admitted the job; scheduling directives can be changed before"
_IMMUTABLE_DATA = "`immutable` is `true`, so neither it nor the data can be changed"
_BOUND = "a claim is immutable after it is bound"
_RBAC, _STORAGE, _PRIORITY = "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io"
_Fields = ImmutableFields
_Core = partial(_Fields, "")
_Claim = partial(_Core, "PersistentVolumeClaim")
_Pod = partial(_Core, "Pod", reason="only the images, the deadline and tolerations of a pod can be changed")
_Job = partial(_Fields, "batch", "Job")
_JobSet = partial(_Fields, "jobset.x-k8s.io", "JobSet")
_VolcanoJob = partial(
    _Fields,
    "batch.volcano.sh",
    "Job",
    reason="only `minAvailable`, `priorityClassName` and the `replicas` of tasks can be changed",
)
_AppWrapper = partial(_Fields, "workload.codeflare.dev", "AppWrapper")

IMMUTABLE_FIELDS: tuple[ImmutableFields, ...] = (
    _Core("ConfigMap", "data binaryData immutable", reason=_IMMUTABLE_DATA, rejects=_was_immutable),
    _Core("Secret", "data stringData immutable", reason=_IMMUTABLE_DATA, rejects=_changes_immutable_secret),
    _Core("Secret", "type"),
    _Core("PersistentVolume", "spec/nodeAffinity spec/csi/controllerExpandSecretRef", rejects=_is_not_added),
    _Core(
        "PersistentVolume",
        "spec",
        "spec/capacity spec/accessModes spec/persistentVolumeReclaimPolicy spec/claimRef spec/storageClassName "
        "spec/mountOptions spec/nodeAffinity spec/csi/controllerExpandSecretRef spec/volumeAttributesClassName",
        "the source of a volume is immutable after creation",
    ),
    _Claim(
        "spec/resources/requests/storage", reason="a claim can be expanded, but not be made smaller", rejects=_shrinks
    ),
    _Claim("spec/storageClassName spec/volumeName", reason=_BOUND, rejects=_is_not_added),
    _Claim(
        "spec",
        "spec/resources/requests/storage spec/volumeAttributesClassName spec/storageClassName spec/volumeName",
        _BOUND,
    ),
    _Claim("metadata/annotations/volume.beta.kubernetes.io~1storage-class"),
    _Core("ResourceQuota", "spec/scopes", rejects=_changes_scopes),
    _Core("Service", "spec/clusterIP spec/clusterIPs", rejects=_changes_address),
    _Core("Service", "spec/ipFamilies", rejects=_changes_first_family),
    _Core(
        "Service",
        "spec/loadBalancerClass",
        rejects=lambda edit: _value_at(edit.old, "spec/type") == _value_at(edit.new, "spec/type") == "LoadBalancer",
    ),
    _Core("Service", "spec/healthCheckNodePort", rejects=_changes_health_check),
    _Pod("spec/activeDeadlineSeconds", reason="the deadline can only be made shorter", rejects=_extends_deadline),
    _Pod("spec/tolerations", reason="tolerations can only be added", rejects=_removes_item),
    _Pod("spec/schedulingGates", reason="scheduling gates can only be removed", rejects=_adds_item),
    # While the pod has gates, labels can be added, and the affinity can be made narrower.
    _Pod("spec/nodeSelector", rejects=lambda edit: not _was_gated(edit) or edit.op != "added"),
    _Pod("spec/affinity/nodeAffinity", rejects=lambda edit: not _was_gated(edit)),
    _Pod(
        "spec",
        "spec/containers/*/image spec/initContainers/*/image spec/activeDeadlineSeconds spec/tolerations "
        "spec/schedulingGates spec/nodeSelector spec/affinity/nodeAffinity",
    ),
    _Fields(
        "apps",
        "StatefulSet",
        "spec",
        "spec/replicas spec/ordinals spec/template spec/updateStrategy spec/revisionHistoryLimit "
        "spec/persistentVolumeClaimRetentionPolicy spec/minReadySeconds",
    ),
    _Fields(
        "apps",
        "StatefulSet",
        "spec/updateStrategy",
        reason="the live object keeps its default `rollingUpdate`, which `OnDelete` forbids",
        rejects=_keeps_rolling_update,
    ),
    _Fields("apps", "Deployment DaemonSet ReplicaSet", "spec/selector"),
    _Fields("apps", "ControllerRevision", "data"),
    _Job(
        "spec/selector spec/completionMode spec/podFailurePolicy spec/successPolicy spec/backoffLimitPerIndex "
        "spec/managedBy"
    ),
    _Job(
        "spec/completions",
        reason="the completions of a Job are immutable, unless it is indexed and `parallelism` equals them",
        rejects=_has_fixed_completions,
    ),
    _Job(_list_scheduling(_JOB_TEMPLATE), reason=_ADMITTED, rejects=lambda edit: edit.queued),
    _Job(_JOB_TEMPLATE, reason="the template of a Job is immutable", rejects=_was_running),
    _Job(
        _JOB_RESOURCES,
        reason="the resources of a suspended Job are immutable before Kubernetes 1.36",
        rejects=lambda edit: edit.release < (1, 36),
    ),
    _Job(
        _JOB_TEMPLATE,
        f"{_list_scheduling(_JOB_TEMPLATE)} {_JOB_RESOURCES}",
        "only scheduling directives and resources of a suspended Job can be changed",
    ),
    _Fields(_RBAC, "RoleBinding ClusterRoleBinding", "roleRef"),
    _Fields(_PRIORITY, "PriorityClass", "value preemptionPolicy"),
    _Fields(_PRIORITY, "Workload", "spec/podGroups spec/podGroupTemplates"),
    _Fields(_PRIORITY, "Workload", "spec/controllerRef", rejects=_is_not_added),
    _Fields(
        _PRIORITY, "PodGroup", "spec/podGroupTemplateRef spec/schedulingPolicy", reason="a PodGroup keeps its policy"
    ),
    _Fields(_STORAGE, "StorageClass", "provisioner parameters reclaimPolicy volumeBindingMode"),
    _Fields(_STORAGE, "VolumeAttributesClass", "driverName parameters"),
    _Fields(_STORAGE, "CSIDriver", "spec/attachRequired spec/volumeLifecycleModes"),
    _Fields(_STORAGE, "CSINode", "spec/drivers", rejects=_changes_driver),
    _Fields(_STORAGE, "CSIStorageCapacity", "nodeTopology storageClassName"),
    _Fields(_STORAGE, "VolumeAttachment", "spec"),
    _Fields("storagemigration.k8s.io", "StorageVersionMigration", "spec"),
    _Fields("resource.k8s.io", "ResourceClaim ResourceClaimTemplate", "spec"),
    _Fields("resource.k8s.io", "ResourceSlice", "spec/driver spec/nodeName spec/pool/name"),
    _Fields("certificates.k8s.io", "ClusterTrustBundle", "spec/signerName"),
    _Fields("certificates.k8s.io", "PodCertificateRequest", "spec"),
    _Fields("coordination.k8s.io", "LeaseCandidate", "spec/leaseName"),
    _Fields("networking.k8s.io", "IngressClass", "spec/controller"),
    _Fields("networking.k8s.io", "IPAddress", "spec/parentRef"),
    _Fields("networking.k8s.io", "ServiceCIDR", "spec/cidrs", rejects=_changes_networks),
    _Fields("node.k8s.io", "RuntimeClass", "handler"),
    _Fields("discovery.k8s.io", "EndpointSlice", "addressType"),
    _Fields(
        "apiextensions.k8s.io", "CustomResourceDefinition", "spec/scope spec/group spec/names/kind spec/names/plural"
    ),
    _Fields(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "spec/versions",
        reason="the version in which objects are stored must stay in `spec.versions`, with `storage: false`",
        rejects=_removes_stored_version,
    ),
    # A rule of the CRD; shipped schemas of other operators have no rules about updates.
    _Fields("gateway.networking.k8s.io", "GatewayClass", "spec/controllerName"),
    # Operators: what their webhooks reject.
    _JobSet(_JOBSET_SCHEDULING, reason=_ADMITTED, rejects=lambda edit: edit.queued),
    _JobSet(
        _JOBSET_NUMBERS,
        reason="the jobs of a JobSet are immutable, unless the feature gate `ElasticJobSet` is on",
        rejects=lambda edit: "ElasticJobSet" not in edit.gates,
    ),
    _JobSet(
        _JOBSET_NUMBERS,
        reason="`parallelism` and `completions` of a JobSet can be changed in indexed jobs, to one number above 0",
        rejects=_breaks_elastic_job,
    ),
    _JobSet(
        "spec/replicatedJobs",
        _JOBSET_NUMBERS,
        reason="the jobs of a JobSet are immutable",
        rejects=lambda edit: not edit.suspended,
    ),
    _JobSet(
        "spec/replicatedJobs",
        f"{_JOBSET_SCHEDULING} {_JOBSET_NUMBERS}",
        "only scheduling directives of a suspended JobSet can be changed",
    ),
    _JobSet("spec/managedBy"),
    _Fields("leaderworkerset.x-k8s.io", "LeaderWorkerSet", "spec/leaderWorkerTemplate/subGroupPolicy/subGroupSize"),
    _VolcanoJob("spec/tasks", "spec/tasks/*/replicas spec/tasks/*/minAvailable", rejects=_changes_tasks),
    _VolcanoJob("spec", "spec/minAvailable spec/priorityClassName spec/tasks"),
    _AppWrapper("spec/components", reason="the components of an AppWrapper are immutable", rejects=_changes_components),
    _AppWrapper(
        "spec/managedBy metadata/labels/workload.codeflare.dev~1user metadata/labels/workload.codeflare.dev~1userid"
    ),
)
