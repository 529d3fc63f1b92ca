"""Validate the pods of Kubernetes' own kinds: each kind changes the pods of its template in its own way."""

from __future__ import annotations

from collections.abc import Mapping

from jobgen.check.admission import validate_pod_template
from jobgen.check.admission.fields import (
    iter_mappings,
)
from jobgen.k8s.kinds import NEWEST_RELEASE, Release
from jobgen.k8s.nodes import as_mapping, as_text, get_path
from jobgen.k8s.objects import Pod
from jobgen.model.finding import Problem
from jobgen.model.place import At, Derived, DerivedList

_ENDING = ("Never", "OnFailure")
_RUNNING = ("Always",)
_RESTART_POLICIES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): (),
    ("", "ReplicationController"): _RUNNING,
    ("apps", "DaemonSet"): _RUNNING,
    ("apps", "Deployment"): _RUNNING,
    ("apps", "ReplicaSet"): _RUNNING,
    ("apps", "StatefulSet"): _RUNNING,
    ("batch", "CronJob"): _ENDING,
    ("batch", "Job"): _ENDING,
}


def is_workload(group: str, kind: str) -> bool:
    """Return True if a kind is one of Kubernetes' own with pods."""
    return (group, kind) in _RESTART_POLICIES


def validate_workload_pod(pod: Pod, release: Release = NEWEST_RELEASE) -> list[Problem]:
    """Return the problems for which a release of Kubernetes rejects an object, or the pods of its template."""
    obj = pod.manifest.object
    group, kind = pod.manifest.group, pod.manifest.kind_name
    supported = _RESTART_POLICIES[group, kind]
    template = as_mapping(pod.template)
    if pod.template is obj:
        injected: list[str] = []
        if pod.undeclared_volumes:
            # Imported late: few pods mount what they do not declare.
            from jobgen.k8s.injected_volumes import list_injected_volumes

            injected = list_injected_volumes(pod)
        name = pod.manifest.name
        return validate_pod_template(template, None, name, added_volumes=injected, is_object=True, release=release)
    claims: list[str] = []
    if (group, kind) == ("apps", "StatefulSet"):
        templates = iter_mappings(pod.manifest.spec.get("volumeClaimTemplates"))
        claims = [as_text(get_path(one, "metadata", "name")) for one in templates]
        # A StatefulSet replaces the host name, and volumes with the name of a claim.
        own = as_mapping(template.get("spec"))
        spec = Derived({key: value for key, value in own.items() if key not in ("hostname", "subdomain")}, own)
        volumes = spec.get("volumes")
        if isinstance(volumes, list) and any(as_text(one.get("name")) in claims for one in iter_mappings(volumes)):
            # An item that is no mapping is not validated, and the others keep their numbers.
            kept = [None if as_text(as_mapping(one).get("name")) in claims else one for one in volumes]
            spec["volumes"] = DerivedList(kept, volumes)
        changed = {key: spec if key == "spec" and isinstance(value, dict) else value for key, value in template.items()}
        template = Derived(changed, template)
    problems = validate_pod_template(
        template, restart_policies=supported, added_volumes=claims, is_template=True, release=release
    )
    # No pods are created from a PodTemplate, so nothing looks for its RuntimeClass.
    return [one for one in problems if kind != "PodTemplate" or not _is_overhead(one)]


def _is_overhead(problem: Problem) -> bool:
    node = problem.node
    return type(node) is At and node.is_key and node.key == "overhead"
