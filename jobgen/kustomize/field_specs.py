"""The fields that kustomize changes in objects of each kind, and how it finds them.

A path has a `/` between its fields; lists have no step of their own. The tables are those of kustomize 5.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from jobgen.model.budget import Work, charge
from jobgen.model.data import Location, Node, TracedKey, TracedScalar, is_null, value_of
from jobgen.model.named_tuple import NamedTuple

_SCALAR_STEPS, _SCALAR_BYTES = 5, 200
"""What a value takes beside its text: itself, its key and their places."""


class FieldSpec(NamedTuple):
    """A field of some objects; an empty group, version or kind means any."""

    path: str
    kind: str = ""
    group: str = ""
    version: str = ""
    create: bool = False

    def selects(self, group: str, version: str, kind: str) -> bool:
        """Return True if objects of a type have the field."""
        return self.kind in ("", kind) and self.group in ("", group) and self.version in ("", version)


class Origin(NamedTuple):
    """Where the value that a transformer sets is written, and the name of the transformer's layer."""

    location: Location
    layer: str

    def scalar(self, value: Any, base: Node = None) -> TracedScalar:
        """Return a value in place of another."""
        charge(Work.BUILD, _SCALAR_STEPS, _SCALAR_BYTES + (len(value) if isinstance(value, str) else 0))
        return TracedScalar(value, self.location, self.layer, base)

    def key(self, name: str) -> TracedKey:
        """Return a key that the transformer adds."""
        return TracedKey.at(name, self.location, self.layer)


@lru_cache(maxsize=1024)
def split_path(path: str, separator: str = "/") -> tuple[str, ...]:
    r"""Split a path into its steps; `\` before a separator makes it part of a name."""
    steps: list[str] = []
    for part in path.removeprefix(separator).split(separator):
        if steps and steps[-1].endswith("\\"):
            steps[-1] = steps[-1][:-1] + separator + part
        else:
            steps.append(part)
    return tuple(steps)


def find_fields(node: Any, spec: FieldSpec, origin: Origin | None = None) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the mapping and the key of each field, also of a missing one if the spec creates it."""
    return _find(node, split_path(spec.path), origin if spec.create else None)


def _find(node: Any, steps: tuple[str, ...], origin: Origin | None) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(node, list):
        charge(Work.BUILD, len(node))
        for item in node:
            yield from _find(item, steps, origin)
        return
    if not isinstance(node, dict):
        return
    name = steps[0].removesuffix("[]")
    creates = origin if name == steps[0] else None
    if len(steps) == 1:
        if name in node or creates:
            yield node, name
        return
    if creates and (name not in node or is_null(node[name])):
        node[creates.key(name)] = {}
    yield from _find(node.get(name), steps[1:], origin)


def set_entry(mapping: dict[str, Any], name: str, value: Any, origin: Origin) -> None:
    """Set a scalar of a mapping; it records what it replaces, unless that is equal."""
    if name not in mapping:
        mapping[origin.key(name)] = origin.scalar(value)
    elif type(value_of(mapping[name])) is not type(value) or value_of(mapping[name]) != value:
        mapping[name] = origin.scalar(value, mapping[name])


def _specs(table: str, *, create: bool = False) -> tuple[FieldSpec, ...]:
    """Read a table: a path, then the kinds that have it, `version:Kind`, `Kind.group` or `*` for all."""
    specs: list[FieldSpec] = []
    for line in table.strip().splitlines():
        path, *kinds = line.split()
        for word in kinds:
            version, _, kind = word.rpartition(":")
            kind, _, group = kind.partition(".")
            specs.append(FieldSpec(path, "" if kind == "*" else kind, group, version, create))
    return tuple(specs)


_POD_AFFINITY = "".join(
    f"spec/template/spec/{path}/labelSelector/matchLabels Deployment.apps StatefulSet.apps\n"
    for path in (
        *(
            f"affinity/{which}/{when}DuringSchedulingIgnoredDuringExecution{term}"
            for which in ("podAffinity", "podAntiAffinity")
            for when, term in (("preferred", "/podAffinityTerm"), ("required", ""))
        ),
        "topologySpreadConstraints",
    )
)
_TEMPLATES = "v1:ReplicationController Deployment ReplicaSet DaemonSet"
_METADATA = """
metadata/{0} *
spec/template/metadata/{0} {1} {2} Job.batch
spec/jobTemplate/metadata/{0} CronJob.batch
spec/jobTemplate/spec/template/metadata/{0} CronJob.batch
"""
LABELS = (FieldSpec("metadata/labels", create=True),)
TEMPLATE_LABELS = _specs(
    _METADATA.format("labels", _TEMPLATES, "StatefulSet.apps")
    + "spec/volumeClaimTemplates[]/metadata/labels StatefulSet.apps",
    create=True,
)
COMMON_LABELS = (
    *_specs(
        """
spec/selector v1:Service v1:ReplicationController
spec/selector/matchLabels Deployment ReplicaSet DaemonSet StatefulSet.apps
""",
        create=True,
    ),
    *_specs(
        f"""
{_POD_AFFINITY}
spec/selector/matchLabels Job.batch PodDisruptionBudget.policy
spec/jobTemplate/spec/selector/matchLabels CronJob.batch
spec/podSelector/matchLabels NetworkPolicy.networking.k8s.io
spec/ingress/from/podSelector/matchLabels NetworkPolicy.networking.k8s.io
spec/egress/to/podSelector/matchLabels NetworkPolicy.networking.k8s.io
""".replace("\n\n", "\n")
    ),
    *TEMPLATE_LABELS,
)
COMMON_ANNOTATIONS = _specs(_METADATA.format("annotations", _TEMPLATES, "StatefulSet"), create=True)
NAMESPACE = (
    FieldSpec("metadata/name", "Namespace", create=True),
    FieldSpec("spec/service/namespace", "APIService", "apiregistration.k8s.io", create=True),
    FieldSpec(
        "spec/conversion/webhook/clientConfig/service/namespace", "CustomResourceDefinition", "apiextensions.k8s.io"
    ),
)
REPLICAS = _specs("spec/replicas Deployment ReplicationController ReplicaSet StatefulSet", create=True)
IMAGES = _specs(
    """
spec/containers[]/image *
spec/initContainers[]/image *
spec/volumes[]/image/reference *
spec/template/spec/containers[]/image *
spec/template/spec/initContainers[]/image *
spec/template/spec/volumes[]/image/reference *
"""
)

_WORKLOADS = {
    "spec": "Pod",
    "template/spec": "PodTemplate",
    "spec/template/spec": "Deployment ReplicaSet DaemonSet StatefulSet Job",
    "spec/jobTemplate/spec/template/spec": "CronJob",
}
_OLDER_WORKLOADS = {
    "spec": "Pod",
    "spec/template/spec": "StatefulSet Deployment ReplicationController Job DaemonSet",
    "spec/jobTemplate/spec/template/spec": "CronJob",
}


def _in_pods(paths: str, places: Mapping[str, str] = _WORKLOADS) -> str:
    return "\n".join(
        f"{place}/{path} {kinds if place != 'spec' or places is _OLDER_WORKLOADS else 'v1:Pod'}"
        for place, kinds in places.items()
        for path in paths.split()
    )


_CONTAINERS = ("containers", "initContainers")
_RBAC, _ADMISSION = "rbac.authorization.k8s.io", "admissionregistration.k8s.io"
_REFERENCES = {
    **{
        (kind, "", ""): "spec/scaleTargetRef/name HorizontalPodAutoscaler"
        for kind in ("Deployment", "ReplicationController", "ReplicaSet", "StatefulSet")
    },
    ("ConfigMap", "", "v1"): _in_pods(
        "volumes/configMap/name volumes/projected/sources/configMap/name "
        + " ".join(
            f"{each}/env/valueFrom/configMapKeyRef/name {each}/envFrom/configMapRef/name" for each in _CONTAINERS
        )
    )
    + r"""
spec/configSource/configMap Node
rules/resourceNames Role ClusterRole
metadata/annotations/nginx.ingress.kubernetes.io\/fastcgi-params-configmap Ingress""",
    ("Secret", "", "v1"): _in_pods(
        "volumes/secret/secretName volumes/projected/sources/secret/name imagePullSecrets/name "
        + " ".join(f"{each}/env/valueFrom/secretKeyRef/name {each}/envFrom/secretRef/name" for each in _CONTAINERS)
    )
    + r"""
spec/tls/secretName Ingress
metadata/annotations/ingress.kubernetes.io\/auth-secret Ingress
metadata/annotations/nginx.ingress.kubernetes.io\/auth-secret Ingress
metadata/annotations/nginx.ingress.kubernetes.io\/auth-tls-secret Ingress
imagePullSecrets/name ServiceAccount
parameters/secretName StorageClass
parameters/adminSecretName StorageClass
parameters/userSecretName StorageClass
parameters/secretRef StorageClass
rules/resourceNames Role ClusterRole
spec/template/spec/containers/env/valueFrom/secretKeyRef/name v1:Service.serving.knative.dev
spec/azureFile/secretName PersistentVolume""",
    ("Service", "", "v1"): """
spec/serviceName StatefulSet.apps
spec/rules/http/paths/backend/serviceName Ingress
spec/backend/serviceName Ingress
spec/rules/http/paths/backend/service/name Ingress
spec/defaultBackend/service/name Ingress
spec/service/name APIService.apiregistration.k8s.io
webhooks/clientConfig/service ValidatingWebhookConfiguration.admissionregistration.k8s.io
webhooks/clientConfig/service MutatingWebhookConfiguration.admissionregistration.k8s.io""",
    ("Role", _RBAC, ""): f"roleRef/name RoleBinding.{_RBAC}",
    ("ClusterRole", _RBAC, ""): f"roleRef/name RoleBinding.{_RBAC} ClusterRoleBinding.{_RBAC}",
    ("ServiceAccount", "", "v1"): f"subjects RoleBinding.{_RBAC} ClusterRoleBinding.{_RBAC}\n"
    + _in_pods("serviceAccountName", _OLDER_WORKLOADS),
    ("PersistentVolumeClaim", "", "v1"): _in_pods("volumes/persistentVolumeClaim/claimName", _OLDER_WORKLOADS),
    ("PersistentVolume", "", "v1"): "spec/volumeName PersistentVolumeClaim\nrules/resourceNames ClusterRole",
    ("StorageClass", "storage.k8s.io", "v1"): """
spec/storageClassName PersistentVolume PersistentVolumeClaim
spec/volumeClaimTemplates/spec/storageClassName StatefulSet""",
    ("PriorityClass", "scheduling.k8s.io", "v1"): _in_pods("priorityClassName", _OLDER_WORKLOADS),
    ("ValidatingAdmissionPolicy", _ADMISSION, ""): f"spec/policyName ValidatingAdmissionPolicyBinding.{_ADMISSION}",
}


class Reference(NamedTuple):
    """The fields that hold the names of objects of a kind."""

    kind: str
    group: str
    version: str
    fields: tuple[FieldSpec, ...]


REFERENCES = tuple(Reference(*key, _specs(table)) for key, table in _REFERENCES.items())
VARIABLES = _specs(
    "\n".join(
        f"{place}/{each}/{path} {kinds}"
        for place, kinds in _WORKLOADS.items()
        if place != "template/spec"
        for each in _CONTAINERS
        for path in ("args", "command", "env/value", "volumeMounts/mountPath")
    )
    + """
spec/volumes/nfs/server Pod
spec/template/spec/volumes/nfs/server DaemonSet Deployment Job ReplicaSet
spec/jobTemplate/spec/template/volumes/nfs/server CronJob
spec/template/metadata/annotations Deployment
spec/volumeClaimTemplates/spec/nfs/server StatefulSet
spec/nfs/server PersistentVolume
spec/rules/host Ingress
spec/tls/hosts Ingress
spec/tls/secretName Ingress
spec/ports/port Service
spec/ports/targetPort Service
metadata/labels *
metadata/annotations *
"""
)

_KNOWN_TYPES = """
admissionregistration.k8s.io/v1 MutatingWebhookConfiguration ValidatingWebhookConfiguration ValidatingAdmissionPolicy \
ValidatingAdmissionPolicyBinding
admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration ValidatingWebhookConfiguration
apiextensions.k8s.io/v1,v1beta1 CustomResourceDefinition
apiregistration.k8s.io/v1,v1beta1 APIService
apps/v1 | ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
autoscaling/v1,v2beta1,v2beta2 | HorizontalPodAutoscaler
batch/v1 | CronJob Job
batch/v1beta1 | CronJob
certificates.k8s.io/v1,v1beta1 CertificateSigningRequest
coordination.k8s.io/v1,v1beta1 | Lease
discovery.k8s.io/v1,v1beta1 | EndpointSlice
events.k8s.io/v1,v1beta1 | Event
extensions/v1beta1 | Ingress
flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema PriorityLevelConfiguration
networking.k8s.io/v1 IngressClass | Ingress NetworkPolicy
networking.k8s.io/v1beta1 IngressClass | Ingress
node.k8s.io/v1,v1beta1 RuntimeClass
policy/v1 | PodDisruptionBudget
policy/v1beta1 PodSecurityPolicy | PodDisruptionBudget
rbac.authorization.k8s.io/v1,v1beta1 ClusterRole ClusterRoleBinding | Role RoleBinding
scheduling.k8s.io/v1,v1beta1 PriorityClass
storage.k8s.io/v1 CSIDriver CSINode StorageClass VolumeAttachment
storage.k8s.io/v1beta1 CSIDriver CSINode StorageClass VolumeAttachment | CSIStorageCapacity
v1 ComponentStatus Namespace Node PersistentVolume | ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod \
PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount
"""


def _read_types() -> Iterator[tuple[tuple[str, str], bool]]:
    for line in _KNOWN_TYPES.strip().splitlines():
        name, *kinds = line.split()
        group, slash, versions = name.rpartition("/")
        bar = kinds.index("|") if "|" in kinds else len(kinds)
        for version in versions.split(","):
            yield from (((group + slash + version, kind), at < bar) for at, kind in enumerate(kinds) if kind != "|")


KNOWN_TYPES: Mapping[tuple[str, str], bool] = MappingProxyType(dict(_read_types()))
"""The apiVersion and kind of the types that kustomize knows, and whether their objects belong to the cluster."""
