"""What the API server refuses a pod for, by the rules of Kubernetes 1.36.

A job is accepted with any pod template that fits its schema; what is wrong with the pods themselves shows only when the
operator makes them. These are the checks of pods, with the defaults that the server fills in first. They look at what
is there and nothing else: each table leads from a field to its check, and a valid template leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobgen.check.admission.claims import resource_claims
from jobgen.check.admission.containers import containers, ephemeral_containers, init_containers, pod_restart_policy
from jobgen.check.admission.fields import (
    PodCheck,
    Table,
    alone,
    both,
    judge,
    mapping_of,
    missing,
    number,
    string,
    text,
    word,
)
from jobgen.check.admission.metadata import METADATA, labels
from jobgen.check.admission.names import DNS_SUBDOMAIN, is_dns_subdomain
from jobgen.check.admission.network import dns_config, dns_policy, host_aliases, host_label, hostname_override
from jobgen.check.admission.podresources import pod_resources
from jobgen.check.admission.resources import overhead
from jobgen.check.admission.scheduling import affinity, readiness_gates, scheduling_gates, spread
from jobgen.check.admission.security import host_users, pod_security, share_process_namespace
from jobgen.check.admission.tolerations import tolerations
from jobgen.check.admission.volumes import named_volumes, volumes
from jobgen.check.admission.windows import system
from jobgen.model.data import Data, value_of
from jobgen.model.finding import Problem

_DNS_POLICY = word("", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")
_name = text("invalid-object-name", "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN)
_class_name = text("invalid-object-name", "the name of an object", is_dns_subdomain, DNS_SUBDOMAIN, empty=True)


def _account(key: str, value: Data, owner: Data, pod: PodCheck) -> None:
    """The old name of `serviceAccountName`, which counts where that is left out."""
    if not string(owner.get("serviceAccountName")):
        _name(key, value, owner, pod)


# Fields that depend on a feature gate which is off by default are dropped before the pod is judged; they are not here.
_SPEC: Table = {
    "activeDeadlineSeconds": number(1, 2**31 - 1),
    "affinity": alone(affinity, "matchLabelKeys"),
    "containers": containers,
    "dnsConfig": dns_config,
    "dnsPolicy": both(_DNS_POLICY, dns_policy),
    "ephemeralContainers": ephemeral_containers,
    "hostAliases": host_aliases,
    "hostUsers": host_users,
    "hostname": host_label,
    "hostnameOverride": hostname_override,
    "initContainers": init_containers,
    "nodeName": _name,
    "nodeSelector": labels,
    "os": system,
    "overhead": overhead,
    "preemptionPolicy": word("PreemptLowerPriority", "Never"),
    "priorityClassName": _name,
    "readinessGates": readiness_gates,
    "resourceClaims": resource_claims,
    "resources": pod_resources,
    "runtimeClassName": _class_name,
    "schedulingGates": scheduling_gates,
    "securityContext": pod_security,
    "serviceAccount": _account,
    "serviceAccountName": _name,
    "shareProcessNamespace": share_process_namespace,
    "subdomain": host_label,
    "tolerations": alone(tolerations),
    "topologySpreadConstraints": alone(spread, "matchLabelKeys"),
    "volumes": alone(volumes, "ephemeral"),
}

# Some annotations of Kubernetes' own speak of containers and nodes.
_METADATA = alone(mapping_of(METADATA), "security.alpha.", "security.beta.", "config.mirror")


def validate_pod_template(template: Data, restart_policy: Data = None, pod_name: str = "") -> Iterator[Problem]:
    """Why the API server refuses the pods of a template, with the restart policy that the operator gives them."""
    if not isinstance(template, dict):
        return iter(())
    metadata, spec = template.get("metadata"), template.get("spec")
    metadata = metadata if isinstance(metadata, dict) else {}
    spec = spec if isinstance(spec, dict) else {}
    policy = restart_policy if value_of(restart_policy) is not None else spec.get("restartPolicy")
    named = named_volumes(spec["volumes"]) if "volumes" in spec else {}
    pod = PodCheck(metadata, spec, named, policy, pod_name, [])
    if metadata:
        _METADATA("metadata", metadata, template, pod)
    if not value_of(spec.get("containers")):
        missing("a pod", spec, "containers", template, pod)
    judge(spec, _SPEC, pod)
    pod_restart_policy(pod)
    return iter(pod.problems)
