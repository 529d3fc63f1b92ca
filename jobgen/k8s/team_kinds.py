"""The kinds that a team may have: an allow-list, and which of them create pods that jobgen counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from jobgen.k8s.kinds import BUILTIN_GROUPS, CLUSTER_SCOPED
from jobgen.k8s.workloads import POD_SETS, REPLICA_TYPES
from jobgen.model.lazy_re import lazy_pattern
from jobgen.spec.teams import KindName, TeamScope, split_kind

KINDS = "kinds"
"""The list of a team with the kinds that it may have."""
DEFAULT = "default"
"""The entry of this list that stands for what a team without a list may have."""

DEFAULT_KINDS: Mapping[str, str] = {
    "": "ConfigMap PersistentVolumeClaim Pod ReplicationController Service",
    "apps": "DaemonSet Deployment ReplicaSet StatefulSet",
    "batch": "CronJob Job",
    "batch.tensorstack.dev": """ColossalAIJob DeepSpeedJob GenericJob MPIJob PyTorchTrainingJob TensorFlowTrainingJob
    XGBoostTrainingJob""",
    "batch.volcano.sh": "CronJob Job",
    "jobset.x-k8s.io": "JobSet",
    "kubeflow.org": "JAXJob MPIJob MXJob PaddleJob PyTorchJob TFJob XGBoostJob",
    "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "ray.io": "RayCluster RayCronJob RayJob RayService",
    "trainer.kubeflow.org": "TrainJob",
    "workload.codeflare.dev": "AppWrapper",
}
"""What a team may have if its file does not say, by group: jobs, workloads of Kubernetes, and their configuration."""
_DEFAULT = frozenset((group, kind) for group, kinds in DEFAULT_KINDS.items() for kind in kinds.split())
_DEFAULT_NAMES = frozenset(kind for _, kind in _DEFAULT)

GRANTING_KINDS = frozenset(
    """Application ApplicationSet AppProject AuthorizationPolicy CiliumNetworkPolicy CleanupPolicy Endpoints
    EndpointSlice ExternalSecret GitRepo HelmChart HelmRelease InfisicalSecret Issuer Kustomization
    LimitRange LocalQueue NamespacedDeletingPolicy NamespacedGeneratingPolicy
    NamespacedImageValidatingPolicy NamespacedMutatingPolicy NamespacedValidatingPolicy NetworkPolicy Policy
    PolicyException PushSecret Queue ReferenceGrant ResourceQuota Role RoleBinding SealedSecret Secret
    SecretProviderClass SecretStore Sensor SopsSecret VaultAuth VaultDynamicSecret VaultPKISecret
    VaultStaticSecret""".split()
)
"""Kinds of a namespace that grant access, hold or read secrets, set limits, route traffic or deploy other objects."""
_WILDCARD = lazy_pattern(r"[*?\[]")
_OF_CLUSTER = lazy_pattern(r"Cluster[A-Z]")
"""By convention, how the names of kinds of the whole cluster begin if there is a kind for namespaces, too."""


def is_of_cluster(kind: str) -> bool:
    """Return True if objects of a kind are in no namespace, as far as its name says."""
    return kind in CLUSTER_SCOPED or _OF_CLUSTER.match(kind) is not None


def is_everything(pattern: str) -> bool:
    """Return True if a pattern is for all kinds: `*`."""
    return not pattern.strip("*")


def list_patterns(team: TeamScope) -> tuple[str, ...]:
    """Return the patterns of kinds that a team may have."""
    return team.allowed.get(KINDS, (DEFAULT,))


def is_kind_allowed(team: TeamScope, group: str, kind: str) -> bool:
    """Return True if a team may have objects of a kind."""
    return any(_matches(team, pattern, group, kind) for pattern in list_patterns(team))


def _matches(team: TeamScope, pattern: str, group: str, kind: str) -> bool:
    if pattern == DEFAULT:
        return is_default(team, group, kind)
    if is_everything(pattern):
        return not is_always_refused(kind)
    # A name alone means the kinds of the default with this name, if there are any: `Service` is none of Knative.
    if pattern in _DEFAULT_NAMES:
        return kind == pattern and (group, kind) in _DEFAULT
    return fnmatchcase(kind, pattern) or fnmatchcase(f"{kind}.{group}" if group else kind, pattern)


def is_default(team: TeamScope, group: str, kind: str) -> bool:
    """Return True if a team without a list may have a kind: one of the table, or one that its repository describes."""
    is_described = (group, kind) in team.described.rendered and not is_always_refused(kind)
    return (group, kind) in _DEFAULT or is_described


def is_always_refused(kind: str) -> bool:
    """Return True if a team may have a kind only if its list names it: one of the cluster, or that grants access."""
    return is_of_cluster(kind) or kind in GRANTING_KINDS


def list_default_kinds(team: TeamScope) -> list[KindName]:
    """Return the kinds that a team without a list may have."""
    described = ((group, kind) for group, kind in team.described.rendered if not is_always_refused(kind))
    return sorted({*_DEFAULT, *described})


def list_named_kinds(team: TeamScope, pattern: str) -> list[KindName] | None:
    """Return the kinds that an entry of a list is for; None if it is a pattern, or a name in any group."""
    if pattern == DEFAULT:
        return list_default_kinds(team)
    if pattern in _DEFAULT_NAMES:
        return sorted((group, kind) for group, kind in _DEFAULT if kind == pattern)
    return [split_kind(pattern)] if "." in pattern and not _WILDCARD.search(pattern) else None


def covers(patterns: Iterable[str], entry: str) -> bool:
    """Return True if patterns allow all that an entry of another list allows, as far as their texts say."""
    known = set(patterns)
    return entry in known or (DEFAULT in known and (entry in _DEFAULT_NAMES or split_kind(entry) in _DEFAULT))


# Which kinds create pods.

_COUNTED = frozenset(
    (
        *POD_SETS,
        *REPLICA_TYPES,
        ("argoproj.io", "CronWorkflow"),
        ("argoproj.io", "Workflow"),
        ("kubeflow.org", "MXJob"),
        ("sparkoperator.k8s.io", "ScheduledSparkApplication"),
        ("sparkoperator.k8s.io", "SparkApplication"),
        ("trainer.kubeflow.org", "TrainJob"),
        ("workload.codeflare.dev", "AppWrapper"),
    )
)
"""The kinds whose pods jobgen counts."""
_WITHOUT_PODS: Mapping[str, str] = {
    "bitnami.com": "SealedSecret",
    "cert-manager.io": "Certificate",
    "external-secrets.io": "ClusterExternalSecret ClusterSecretStore ExternalSecret PushSecret SecretStore",
    "gateway.networking.k8s.io": "GRPCRoute HTTPRoute ReferenceGrant TCPRoute TLSRoute UDPRoute",
    "keda.sh": "ClusterTriggerAuthentication ScaledObject TriggerAuthentication",
    "kueue.x-k8s.io": """AdmissionCheck ClusterQueue Cohort LocalQueue MultiKueueCluster MultiKueueConfig
    ProvisioningRequestConfig ResourceFlavor Topology WorkloadPriorityClass""",
    "monitoring.coreos.com": "PodMonitor Probe PrometheusRule ScrapeConfig ServiceMonitor",
    "networking.istio.io": "DestinationRule ServiceEntry Sidecar VirtualService",
    "scheduling.volcano.sh": "PodGroup Queue",
    "scheduling.x-k8s.io": "PodGroup",
    "security.istio.io": "AuthorizationPolicy PeerAuthentication RequestAuthentication",
    "snapshot.storage.k8s.io": "VolumeSnapshot",
}
"""Kinds of operators that create no pods; other kinds of Kubernetes create none either."""
_PODLESS = frozenset((group, kind) for group, kinds in _WITHOUT_PODS.items() for kind in kinds.split())


def counts_pods(group: str, kind: str) -> bool:
    """Return True if jobgen counts the pods of a kind, or knows that it creates none."""
    is_podless = group in BUILTIN_GROUPS and (group, kind) not in POD_SETS
    return is_podless or (group, kind) in _COUNTED or (group, kind) in _PODLESS


def is_counted(team: TeamScope, group: str, kind: str) -> bool:
    """Return True if what the objects of a kind request counts for the budget of a team."""
    return counts_pods(group, kind) or (group, kind) in team.described.counted or (group, kind) in team.pods


def format_kind(group: str, kind: str) -> str:
    """Return a kind as the file of a team names it."""
    return f"{kind}.{group}" if group else kind


def explain_refusal(team: TeamScope, group: str, kind: str) -> str:
    """Return why a team cannot have a kind, and what to write instead; empty if it can."""
    named = format_kind(group, kind)
    if not is_kind_allowed(team, group, kind):
        what = f"team `{team.team}` cannot have objects of kind `{kind}`"
        if KINDS in team.allowed:
            return what
        if is_always_refused(kind):
            return f"{what}; move it to a folder of the platform team"
        return f"{what} without `kinds`; the platform team can add `kinds: [{DEFAULT}, {named}]` to the team's file"
    if team.has_budget and not is_counted(team, group, kind):
        what = f"jobgen cannot count the pods of kind `{kind}` for the budget of team `{team.team}`"
        return f"{what}; say how to count them in the team's file, in `pods` as `{named}`, or use another kind"
    return ""


def list_missing(team: TeamScope, kinds: Iterable[KindName]) -> Iterator[KindName]:
    """Yield the kinds that a team without a list could have before there was an allow-list, and cannot have now."""
    for group, kind in sorted(set(kinds)):
        if not is_kind_allowed(team, group, kind) and not is_always_refused(kind):
            yield group, kind
