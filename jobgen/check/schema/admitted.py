"""Objects as the API server passes them to admission policies: decoded, without nulls, and with defaults.

For a custom resource the schema of its CRD decides: unknown fields and nulls of fields that are not nullable are
dropped, and defaults are filled in. Go decodes Kubernetes' own kinds: a null or an empty list is the same as no field.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from jobgen.check.schema.cel_types import generate_name
from jobgen.check.schema.crd_schema import DROPS_STATUS
from jobgen.k8s.images import parse_image_name
from jobgen.k8s.kinds import Release, parse_release
from jobgen.model.budget import Budget
from jobgen.model.data import Plain
from jobgen.model.named_tuple import NamedTuple
from jobgen.schema.own_formats import LazyFields
from jobgen.schema.types_of_release import DECODED, METADATA, Types

_PORT: dict[str, Any] = {"protocol": "TCP"}
_FILES: dict[str, Any] = {"defaultMode": 420}
_VOLUMES_SINCE: Release = (1, 31)
_REFERENCES = (
    "ConfigMapEnvSource ConfigMapKeySelector ConfigMapProjection ConfigMapVolumeSource LocalObjectReference "
    "SecretEnvSource SecretKeySelector SecretProjection"
).split()

IN_CRDS: Mapping[str, Mapping[str, tuple[Release, Any]]] = {
    "core_v1.ContainerPort": {"protocol": ((1, 0), "TCP")},
    **{f"core_v1.{name}": {"name": ((1, 30), "")} for name in _REFERENCES},
    "core_v1.GRPCAction": {"service": (_VOLUMES_SINCE, "")},
    "core_v1.FileKeySelector": {"optional": ((1, 34), False)},
    "core_v1.AzureDiskVolumeSource": {"fsType": (_VOLUMES_SINCE, "ext4"), "readOnly": (_VOLUMES_SINCE, False)},
    "core_v1.ISCSIVolumeSource": {"iscsiInterface": (_VOLUMES_SINCE, "default")},
    "core_v1.RBDVolumeSource": {
        "keyring": (_VOLUMES_SINCE, "/etc/ceph/keyring"),
        "pool": (_VOLUMES_SINCE, "rbd"),
        "user": (_VOLUMES_SINCE, "admin"),
    },
    "core_v1.ScaleIOVolumeSource": {
        "fsType": (_VOLUMES_SINCE, "xfs"),
        "storageMode": (_VOLUMES_SINCE, "ThinProvisioned"),
    },
}
"""What controller-gen writes into a CRD, each with the first release of the embedded pods that has it."""

_CONTAINER: dict[str, Any] = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_WORKLOAD: dict[str, Any] = {"replicas": 1, "revisionHistoryLimit": 10}
_TEMPLATE: dict[str, Any] = {"metadata": {}}
_DEVICE_VERSIONS = ("v1", "v1beta1", "v1beta2")
_ISCSI: dict[str, Any] = {"iscsiInterface": "default"}
_RBD: dict[str, Any] = {"keyring": "/etc/ceph/keyring", "pool": "rbd", "user": "admin"}
_SCALE_IO: dict[str, Any] = {"fsType": "xfs", "storageMode": "ThinProvisioned"}

IN_OBJECTS: Mapping[str, Mapping[str, Any]] = {
    "core_v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "core_v1.PodTemplateSpec": _TEMPLATE,
    "core_v1.Container": _CONTAINER,
    "core_v1.EphemeralContainer": _CONTAINER,
    "core_v1.ContainerPort": _PORT,
    "core_v1.Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core_v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core_v1.GRPCAction": {"service": ""},
    "core_v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core_v1.SecretVolumeSource": _FILES,
    "core_v1.ConfigMapVolumeSource": _FILES,
    "core_v1.DownwardAPIVolumeSource": _FILES,
    "core_v1.ProjectedVolumeSource": _FILES,
    "core_v1.HostPathVolumeSource": {"type": ""},
    "core_v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core_v1.ISCSIVolumeSource": _ISCSI,
    "core_v1.ISCSIPersistentVolumeSource": _ISCSI,
    "core_v1.RBDVolumeSource": _RBD,
    "core_v1.RBDPersistentVolumeSource": _RBD,
    "core_v1.ScaleIOVolumeSource": _SCALE_IO,
    "core_v1.ScaleIOPersistentVolumeSource": _SCALE_IO,
    "core_v1.AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "kind": "Shared",
        "readOnly": False,
    },
    "core_v1.ServiceSpec": {"internalTrafficPolicy": "Cluster", "sessionAffinity": "None", "type": "ClusterIP"},
    "core_v1.ServicePort": _PORT,
    "core_v1.EndpointPort": _PORT,
    "core_v1.Secret": {"type": "Opaque"},
    "core_v1.PersistentVolumeClaim": {"status": {"phase": "Pending"}},
    "core_v1.PersistentVolumeClaimSpec": {"resources": {}, "volumeMode": "Filesystem"},
    "core_v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core_v1.NamespaceSpec": {"finalizers": ["kubernetes"]},
    "core_v1.Namespace": {"spec": {}, "status": {"phase": "Active"}},
    "core_v1.Pod": {"status": {"phase": "Pending"}},
    "batch_v1.Job": {"status": {}},
    "batch_v1.CronJob": {"status": {}},
    "batch_v1.CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "failedJobsHistoryLimit": 1,
        "successfulJobsHistoryLimit": 3,
        "suspend": False,
    },
    "batch_v1.JobTemplateSpec": _TEMPLATE,
    "batch_v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "apps_v1.Deployment": {"status": {}},
    "apps_v1.DeploymentSpec": {
        **_WORKLOAD,
        "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate"},
    },
    "apps_v1.StatefulSet": {"status": {"replicas": 0, "availableReplicas": 0}},
    "apps_v1.StatefulSetSpec": {
        **_WORKLOAD,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "podManagementPolicy": "OrderedReady",
        "serviceName": "",
        "updateStrategy": {},
    },
    "apps_v1.DaemonSetSpec": {"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate"}},
    "apps_v1.ReplicaSet": {"status": {"replicas": 0}},
    "apps_v1.ReplicaSetSpec": {"replicas": 1},
    "autoscaling_v2.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "networking_v1.IngressClassParametersReference": {"scope": "Cluster"},
    "networking_v1.NetworkPolicyPort": _PORT,
    "networking_v1.NetworkPolicySpec": {"podSelector": {}},
    "rbac_v1.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    **{f"resource_{version}.ResourceClaimSpec": {"devices": {}} for version in _DEVICE_VERSIONS},
    **{f"resource_{version}.ResourceClaimTemplateSpec": _TEMPLATE for version in _DEVICE_VERSIONS},
    "scheduling_v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority", "value": 0},
    "storage_v1.CSIDriverSpec": {
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "podInfoOnMount": False,
        "requiresRepublish": False,
        "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    "storage_v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}
"""What the API server fills in and Go writes out for objects of its own kinds."""

# Kubernetes' own kinds of whose objects the API server counts the generations.
_GENERATED = frozenset(
    """CronJob DaemonSet Deployment Ingress Job MutatingAdmissionPolicy MutatingWebhookConfiguration NetworkPolicy Pod
    PodDisruptionBudget ReplicaSet ResourceClaim StatefulSet ValidatingAdmissionPolicy
    ValidatingWebhookConfiguration""".split()
)
_PLACES = {"": "core", "rbac.authorization.k8s.io": "rbac"}


def name_type(api_version: str, kind: str) -> str:
    """Return the name of the type of an object, such as `batch_v1.Job`."""
    group, _, version = api_version.rpartition("/")
    return f"{_PLACES.get(group, group.partition('.')[0])}_{version}.{kind}"


_CLAIM_KIND = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}


def _is_latest(image: str) -> bool:
    parsed = parse_image_name(image)
    return not parsed.digest and parsed.tag in ("", "latest")


def _complete_container(container: dict[str, Any]) -> dict[str, Any]:
    image = container.get("image")
    if "imagePullPolicy" not in container and isinstance(image, str):
        container["imagePullPolicy"] = "Always" if _is_latest(image) else "IfNotPresent"
    return container


def _complete_image_volume(source: dict[str, Any]) -> dict[str, Any]:
    reference = source.get("reference")
    if "pullPolicy" not in source and isinstance(reference, str):
        source["pullPolicy"] = "Always" if _is_latest(reference) else "IfNotPresent"
    return source


def _complete_pod_spec(spec: dict[str, Any]) -> dict[str, Any]:
    """Write the account in both fields; the one with the longer name decides."""
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    return {**spec, "serviceAccountName": account, "serviceAccount": account} if account else spec


def _complete_device_request(request: dict[str, Any]) -> dict[str, Any]:
    """Request one device; an older version has the request itself where a newer one has a choice."""
    if "deviceClassName" in request and request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        request.setdefault("count", 1)
    return request


def _complete_job(spec: dict[str, Any]) -> dict[str, Any]:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    return spec


def _complete_rolling_update(field: str, defaults: Mapping[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def complete(spec: dict[str, Any]) -> dict[str, Any]:
        strategy = spec.get(field)
        if isinstance(strategy, dict) and strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
            given = strategy.get("rollingUpdate")
            spec[field] = {**strategy, "rollingUpdate": {**defaults, **(given if isinstance(given, dict) else {})}}
        return spec

    return complete


def _complete_stateful_set(spec: dict[str, Any]) -> dict[str, Any]:
    """Update pods one by one; a strategy that is written gets no `rollingUpdate`."""
    strategy = spec.get("updateStrategy")
    if isinstance(strategy, dict):
        if "type" not in strategy:
            strategy = {"type": "RollingUpdate", "rollingUpdate": {}} | strategy
        rolling = strategy.get("rollingUpdate")
        if strategy["type"] == "RollingUpdate" and isinstance(rolling, dict):
            strategy = {**strategy, "rollingUpdate": {"partition": 0, **rolling}}
        spec["updateStrategy"] = strategy
    claims = spec.get("volumeClaimTemplates")
    if isinstance(claims, list):
        spec["volumeClaimTemplates"] = [_CLAIM_KIND | claim if isinstance(claim, dict) else claim for claim in claims]
    return spec


def _complete_service_port(port: dict[str, Any]) -> dict[str, Any]:
    return {**port, "targetPort": port["port"]} if "targetPort" not in port and "port" in port else port


def _complete_network_policy(spec: dict[str, Any]) -> dict[str, Any]:
    if "policyTypes" not in spec:
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    return spec


def _complete_pod(pod: dict[str, Any]) -> dict[str, Any]:
    """Request what a container's limits say, as for every pod that is created itself."""
    spec = pod.get("spec")
    if isinstance(spec, dict):
        spec.setdefault("enableServiceLinks", True)
        spec.setdefault("serviceAccountName", "default")
        spec.setdefault("serviceAccount", spec["serviceAccountName"])
        for field in ("containers", "initContainers"):
            listed = spec.get(field)
            for container in listed if isinstance(listed, list) else ():
                resources = container.get("resources") if isinstance(container, dict) else None
                limits = resources.get("limits") if isinstance(resources, dict) else None
                if isinstance(resources, dict) and isinstance(limits, dict) and limits:
                    given = resources.get("requests")
                    resources["requests"] = {**limits, **(given if isinstance(given, dict) else {})}
    return pod


_COMPLETIONS: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "core_v1.Container": _complete_container,
    "core_v1.EphemeralContainer": _complete_container,
    "core_v1.Volume": lambda volume: volume if volume.keys() - {"name"} else {**volume, "emptyDir": {}},
    "core_v1.ServicePort": _complete_service_port,
    "core_v1.ImageVolumeSource": _complete_image_volume,
    "core_v1.PodSpec": _complete_pod_spec,
    "core_v1.Pod": _complete_pod,
    "resource_v1.ExactDeviceRequest": _complete_device_request,
    "resource_v1.DeviceSubRequest": _complete_device_request,
    "resource_v1beta2.ExactDeviceRequest": _complete_device_request,
    "resource_v1beta2.DeviceSubRequest": _complete_device_request,
    "resource_v1beta1.DeviceRequest": _complete_device_request,
    "resource_v1beta1.DeviceSubRequest": _complete_device_request,
    "apps_v1.DeploymentSpec": _complete_rolling_update("strategy", {"maxSurge": "25%", "maxUnavailable": "25%"}),
    "apps_v1.DaemonSetSpec": _complete_rolling_update("updateStrategy", {"maxSurge": 0, "maxUnavailable": 1}),
    "apps_v1.StatefulSetSpec": _complete_stateful_set,
    "networking_v1.NetworkPolicySpec": _complete_network_policy,
}


Admission = Callable[[Mapping[str, Plain]], dict[str, Plain]]
_Convert = Callable[[Any], Any]

UID = "00000000-0000-4000-8000-000000000000"
"""Stands for the unique id that the API server gives every object."""
CREATION = "2026-01-01T00:00:00Z"
"""Stands for the time at which an object is created."""
# Booleans and numbers that Go leaves out if they are false or 0, because they are not pointers in k8s.io/api.
_ZERO_IS_UNSET = frozenset(
    """chapAuthDiscovery chapAuthSession count failureThreshold globalDefault healthCheckNodePort hostIPC hostNetwork
    hostPID hostPort initialDelaySeconds minReadySeconds nodePort paused periodSeconds publishNotReadyAddresses readOnly
    sslEnabled stdin stdinOnce successThreshold timeoutSeconds tty unschedulable""".split()
)
# Texts that Go writes out although they are empty, because they are pointers or always written.
_KEEPS_EMPTY_TEXT = frozenset(
    """apps_v1.StatefulSetSpec.serviceName core_v1.CSIVolumeSource.fsType core_v1.GRPCAction.service
    core_v1.HTTPHeader.value core_v1.HostPathVolumeSource.type
    core_v1.PersistentVolumeClaimSpec.storageClassName
    core_v1.PersistentVolumeClaimSpec.volumeAttributesClassName
    core_v1.PersistentVolumeSpec.volumeAttributesClassName core_v1.PodDNSConfigOption.value core_v1.Sysctl.value
    core_v1.TypedLocalObjectReference.apiGroup core_v1.TypedObjectReference.apiGroup
    discovery_v1.EndpointPort.name networking_v1.IngressClassParametersReference.apiGroup""".split()
)
# Types in which a field of such a name is a pointer.
_WITH_POINTERS = frozenset(("core_v1.AzureDiskVolumeSource", "core_v1.ClientIPConfig", "core_v1.CSIVolumeSource"))
_MANAGER: Mapping[str, Plain] = {
    "manager": "jobgen",
    "operation": "Update",
    "time": CREATION,
    "fieldsType": "FieldsV1",
    "fieldsV1": {},
}
"""Stands for who created an object, and with which fields."""
_OF_CREATION = frozenset(("uid", "creationTimestamp", "generation"))
_MAPPING_STEPS = 5
_HEAD = ("apiVersion", "kind", "metadata")
# Fields of metadata that Go leaves out if they are empty.
_EMPTY: tuple[Any, ...] = ("", [], {}, None)
# Fields of metadata that the API server empties in a new object.
_RESET = ("deletionGracePeriodSeconds", "deletionTimestamp", "resourceVersion", "selfLink")


class _Field(NamedTuple):
    """A field: how its value is converted, what a null means, and which values are the same as no field."""

    convert: _Convert | None
    keeps_null: bool
    drops: tuple[Any, ...]


_KEPT = _Field(None, keeps_null=True, drops=())


def compile_admission(
    schema: Mapping[str, Any] | None, api_version: str, kind: str, budget: Budget | None = None
) -> Admission:
    """Return the conversion of objects of a kind with a schema; without a schema only metadata is known."""
    compiler = None if schema is None else _Compiler(schema, budget)
    is_builtin = compiler is not None and compiler.is_decoded
    convert = None if schema is None or compiler is None else compiler.of_root(schema, name_type(api_version, kind))
    drops_status = is_builtin or (schema is not None and DROPS_STATUS in schema)
    is_counted = not is_builtin or kind in _GENERATED

    def admit(obj: Mapping[str, Plain]) -> dict[str, Plain]:
        head = {name: obj[name] for name in ("apiVersion", "kind") if name in obj}
        rest = {name: value for name, value in obj.items() if name not in _HEAD}
        if drops_status:
            rest.pop("status", None)
        metadata = admit_metadata(obj.get("metadata"))
        filled: dict[str, Plain] = {"uid": UID, "creationTimestamp": CREATION}
        filled["managedFields"] = [{**_MANAGER, "apiVersion": head.get("apiVersion")}]
        metadata |= {**filled, "generation": 1} if is_counted else filled
        return {**head, "metadata": metadata, **(convert(rest) if convert else rest)}

    return admit


def before_creation(admit: Admission) -> Admission:
    """The conversion for mutating policies, which see an object before it gets what only a created object has."""

    def convert(obj: Mapping[str, Plain]) -> dict[str, Plain]:
        made = admit(obj)
        metadata = made["metadata"]
        assert isinstance(metadata, dict), "every object is given some"
        known = {name: value for name, value in metadata.items() if name not in _OF_CREATION}
        return {**made, "metadata": known}

    return convert


def admit_metadata(metadata: Plain) -> dict[str, Plain]:
    """Return the metadata of an object as Go decodes it, with a generated name if the object asks for one."""
    given: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    kept = _decode_metadata(given)
    prefix = kept.get("generateName")
    if isinstance(prefix, str) and "name" not in kept:
        kept["name"] = generate_name(prefix)
    return {name: value for name, value in kept.items() if name not in _RESET}


def _decode_metadata(metadata: Any) -> Any:
    if not isinstance(metadata, dict):
        return metadata
    decoded = dict(metadata)
    for name in ("labels", "annotations"):
        if isinstance(decoded.get(name), dict):
            decoded[name] = {key: "" if item is None else item for key, item in decoded[name].items()}
    return {name: value for name, value in decoded.items() if value not in _EMPTY}


def _compile_mapping(
    fields: LazyFields[_Field],
    defaults: Sequence[tuple[str, Any, _Convert | None]],
    complete: _Convert | None,
    budget: Budget | None,
) -> _Convert:
    """The conversion of a mapping with some fields."""

    def convert_mapping(value: Any) -> Any:
        if type(value) is not dict:
            return value
        if budget:
            # Defaults may contain defaults, and grow with every level.
            budget.spend(_MAPPING_STEPS + len(value) + len(defaults))
        made: dict[str, Any] = {}
        for name, child in value.items():
            field = fields[name]
            if field is not None:
                convert, keeps_null, drops = field
                converted = convert(child) if convert and child is not None else child
                if keeps_null if converted is None else converted not in drops:
                    made[name] = converted
        for name, default, convert_default in defaults:
            if name not in made:
                made[name] = convert_default(default) if convert_default else default
        return complete(made) if complete else made

    return convert_mapping


class _Compiler:
    """Compiles the conversions of one schema, each field and each type when it first has a value."""

    def __init__(self, root: Mapping[str, Any], budget: Budget | None) -> None:
        self.budget = budget
        self.types: Mapping[str, Any] = root.get("$defs", {})
        self.is_decoded = isinstance(self.types, Types) and not self.types.in_crd
        self.release = self.types.release if isinstance(self.types, Types) else ""
        self.refs: dict[str, _Convert | None] = {}

    def of_root(self, schema: Mapping[str, Any], type_name: str) -> _Convert:
        """The conversion of an object without its head."""
        fields = {name: child for name, child in schema.get("properties", {}).items() if name not in _HEAD}
        convert = self._mapping({**schema, "properties": fields}, type_name if self.is_decoded else "")

        def convert_job(value: Any) -> Any:
            made = convert(value)
            spec = made.get("spec")
            return {**made, "spec": _complete_job(spec)} if isinstance(spec, dict) else made

        # A CronJob has no such defaults for its jobs.
        return convert_job if self.is_decoded and type_name == "batch_v1.Job" else convert

    def of(self, schema: Mapping[str, Any]) -> _Convert | None:
        """The conversion of the values of a schema node; None if nothing in them is converted."""
        if "$ref" in schema:
            return self._ref(str(schema["$ref"]))
        alternatives = schema.get("anyOf")
        if isinstance(alternatives, list) and alternatives and alternatives[-1] == {"type": "null"}:
            return self.of(alternatives[0])
        if "properties" in schema or isinstance(schema.get("additionalProperties"), dict):
            return self._mapping(schema, "")
        items = schema.get("items")
        return self._list(items) if isinstance(items, dict) else None

    def _ref(self, ref: str) -> _Convert | None:
        name = ref.rpartition("/")[2]
        if name.removeprefix(DECODED) == METADATA:
            return _decode_metadata
        if isinstance(self.types, Types) and self.types.is_scalar(name):
            return None
        if name not in self.refs:
            # A type may refer to itself: until it is compiled, its conversion is looked up for each value.
            self.refs[name] = lambda value: (self.refs[name] or _keep)(value)  # noqa: PLW0108
            schema = self.types[name]
            is_mapping = "properties" in schema
            self.refs[name] = self._mapping(schema, name.removeprefix(DECODED)) if is_mapping else self.of(schema)
        return self.refs[name]

    def _list(self, items: Mapping[str, Any]) -> _Convert:
        convert = self.of(items)
        default = items.get("default")

        def convert_list(value: Any) -> Any:
            if type(value) is not list:
                return value
            given = value if default is None else [default if item is None else item for item in value]
            return [item if item is None else convert(item) for item in given] if convert else given

        return convert_list

    def _mapping(self, schema: Mapping[str, Any], type_name: str) -> _Convert:
        extra = schema.get("additionalProperties")
        known: dict[str, Callable[[], _Field]] = {
            name: partial(self._field, child, type_name, name) for name, child in schema.get("properties", {}).items()
        }
        drops_unknown = extra is False and not schema.get("x-kubernetes-preserve-unknown-fields")
        if drops_unknown and schema.get("x-kubernetes-embedded-resource"):
            known = dict.fromkeys(_HEAD, lambda: _KEPT) | known
        others = self._field(extra) if isinstance(extra, dict) else None if drops_unknown else _KEPT
        return _compile_mapping(
            LazyFields(known, others),
            self._list_defaults(schema, type_name),
            _COMPLETIONS.get(type_name) if self.is_decoded else None,
            self.budget,
        )

    def _field(self, schema: Mapping[str, Any], type_name: str = "", name: str = "") -> _Field:
        keeps_null = bool(schema.get("nullable")) and not self.is_decoded
        return _Field(self.of(schema), keeps_null, self._list_unset(schema, type_name, name) if self.is_decoded else ())

    def _list_unset(self, schema: Mapping[str, Any], type_name: str, name: str) -> tuple[Any, ...]:
        """The values of a field that Go leaves out; a value of a mapping, which has no name, is kept."""
        if name in _ZERO_IS_UNSET and type_name not in _WITH_POINTERS:
            return [], 0
        if name and isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
            return [], {}
        is_text = name and schema.get("type") == "string" and f"{type_name}.{name}" not in _KEEPS_EMPTY_TEXT
        return ([], "") if is_text else ([],)

    def _list_defaults(self, schema: Mapping[str, Any], type_name: str) -> list[tuple[str, Any, _Convert | None]]:
        """The fields with a default; the default of a mapping gets those inside it."""
        properties = schema.get("properties", {})
        known = {name: child["default"] for name, child in properties.items() if "default" in child}
        if self.is_decoded:
            known |= IN_OBJECTS.get(type_name, {})
        else:
            release = parse_release(self.release) if self.release else None
            in_crds = IN_CRDS.get(type_name, {})
            known |= {name: value for name, (since, value) in in_crds.items() if release is None or release >= since}
        found: list[tuple[str, Any, _Convert | None]] = []
        for name, default in known.items():
            is_deep = isinstance(default, (dict, list))
            convert = self.of(properties[name]) if is_deep and name in properties else None
            found.append((name, default, partial(_copy_and_convert, convert or _keep) if is_deep else None))
        return found


def _copy_and_convert(convert: _Convert, value: Any) -> Any:
    return convert(copy.deepcopy(value))


def _keep(value: Any) -> Any:
    return value
